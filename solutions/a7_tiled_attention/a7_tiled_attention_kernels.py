"""A strict interpreter of Triton kernels: you need not read it.

Made by `autograder build`; the notebook a7_tiled_attention.ipynb imports it.
"""

from collections import Counter
from typing import Any

import numpy as np

_SPAN = 40  # every tensor owns 2**40 bytes of addresses, half of them before its first element
_ALIGNED = 16  # bytes: what tensor descriptors ask of an address holds here as it does on a GPU
_LANE = 32  # bits of a lane's number within its tile; the shape of the tile stands above them
_LANES = "nothing orders the lanes of a program, so the result would be a matter of luck"
_Array = np.ndarray[Any, Any]


class KernelFault(Exception):
    """A kernel did something wrong; the message names program, tensor and element."""


class Elements:
    """All elements of one storage, with the programs and times of loads and stores. All tensors of
    a storage share this object.
    """

    def __init__(self, storage: Any, size: int) -> None:
        self._address, self.size = storage.data_ptr(), size
        self.count = storage.nbytes() // size
        self.stored_at: _Array | None = None  # the clock of the last store; made by the first one
        self.stored_by: _Array | None = None  # its lane
        self.left: _Array | None = None  # the bits that it left
        self.added: _Array | None = None  # whether an atomic operation has changed an element
        # elements and lanes of this program's loads since a barrier
        self.loaded: list[tuple[_Array, _Array]] = []
        self.kept = False  # whether a load found what was there before the launch

    def bits(self) -> _Array:
        """The memory, each element as an unsigned number."""
        self.__array_interface__ = {
            "data": (self._address, False),
            "shape": (self.count,),
            "typestr": f"<u{self.size}",
            "version": 3,
        }
        return np.asarray(self)

    def add(self, where: _Array) -> None:
        """Note elements that an atomic operation changes; the new values are not known here."""
        if self.added is None:
            self.added = np.zeros(self.count, dtype=bool)
        self.added[where] = True

    @property
    def count_stored(self) -> int:
        """How many elements the launch has stored or added to."""
        clocks = (
            self.stored_at if self.stored_at is not None else np.zeros(self.count, dtype=np.int64)
        )
        return int(np.count_nonzero(clocks if self.added is None else (clocks > 0) | self.added))

    def write_into(self, expected: _Array, stored: _Array, unsure: _Array) -> None:
        """Apply the launch's stores to the bytes that a storage had before the launch.

        Args:
            stored: set to 1 where a byte was written.
            unsure: set to True where the value that was written is not known.
        """
        end = self.count * self.size
        if self.stored_at is not None:
            is_stored = self.stored_at > 0
            expected[:end].view(f"u{self.size}")[is_stored] = self.left[is_stored]
            stored[:end].reshape(-1, self.size)[is_stored] = 1
        if self.added is not None:
            stored[:end].reshape(-1, self.size)[self.added] = 1
            unsure[:end].reshape(-1, self.size)[self.added] = True

    @property
    def changed_what_it_found(self) -> bool:
        """Whether the launch loaded elements from before the launch, and stored some."""
        return self.kept and self.stored_at is not None


class Region:
    """One tensor argument of a running kernel, and its addresses."""

    def __init__(self, name: str, tensor: Any, number: int, elements: Elements) -> None:
        self.name, self.tensor, self.elements = name, tensor, elements
        self.address, self.size = tensor.data_ptr(), tensor.element_size()
        self.start = (self.address - tensor.untyped_storage().data_ptr()) // self.size
        self.base = (number << _SPAN) + self.address % _ALIGNED
        self.shape, self.strides = list(tensor.shape), list(tensor.stride())
        self.extent = (
            1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
            if tensor.numel()
            else 0
        )
        self.valid = np.zeros(self.extent, dtype=bool)
        self.in_shape(self.valid)[...] = True
        self.whole, self.bytes = bool(self.valid.all()), self.extent * self.size
        self.counts: dict[str, _Array] = {}  # by verb, where a trace asks for them

    def in_shape(self, values: _Array) -> _Array:
        """A number for each address, seen in the tensor's shape."""
        steps = [stride * values.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(values, self.shape, steps, writeable=True)

    def index_of(self, offset: int) -> tuple[list[int], int]:
        """The index of the element `offset` after the first, and what is left over between two
        elements.

        An element past the end is told as a row too many: rows are the last axis but one.
        """
        index, remainder, rows = [0] * len(self.shape), int(offset), max(len(self.shape) - 2, 0)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis] and (axis == rows or self.shape[axis] > 1):
                steps = remainder // self.strides[axis]
                index[axis] = steps if axis == rows else max(0, min(steps, self.shape[axis] - 1))
                remainder -= index[axis] * self.strides[axis]
        return index, remainder


class Memory:
    """All tensors of one launch, and a clock that goes on by one with each access.

    Args:
        names: names of tensors, by the address of their storage; other tensors have the name of
            the kernel's parameter.
    """

    def __init__(self, names: dict[int, str], *, traced: bool) -> None:
        self.regions: dict[int, Region] = {}
        self.elements: dict[tuple[int, int], Elements] = {}  # by address and size of an element
        self.loads: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self.program: tuple[int, ...] = ()
        self._names, self._traced = names, traced
        self._by_argument: dict[int, Region] = {}
        self._clock = 0
        self._starts: list[int] = []  # the clock when each program began
        # the clock at each program's last atomic operation, which publishes its earlier stores
        self._released: list[int] = []
        self._ordered = 0  # the clock at the last barrier of this program
        self._shapes: dict[tuple[int, ...], int] = {}
        self._lanes: dict[tuple[int, ...], _Array] = {}

    # tensors

    def add(self, name: str, value: Any) -> None:
        """Give the tensors of an argument (a tensor, a descriptor, a tuple of them) their
        addresses.
        """
        if isinstance(value, tuple):
            for part in value:
                self.add(name, part)
            return
        # of a tensor descriptor, or of a tensor seen in another dtype
        tensor = getattr(value, "base", value)
        if not hasattr(tensor, "data_ptr"):
            return
        storage, size, number = (
            tensor.untyped_storage(),
            tensor.element_size(),
            len(self.regions) + 1,
        )
        elements = self.elements.setdefault((storage.data_ptr(), size), Elements(storage, size))
        given_name = self._names.get(storage.data_ptr())
        region = Region(given_name or name.removesuffix("_ptr"), tensor, number, elements)
        self.regions[number] = self._by_argument[id(value)] = self._by_argument[id(tensor)] = region

    def _who(self) -> str:
        return f"program {program_in_words(self.program)}"

    def region_of(self, argument: Any) -> Region | None:
        """The region of a kernel's argument; None for an argument that is no tensor."""
        return self._by_argument.get(id(argument))

    # time

    def begin(self, program: tuple[int, ...]) -> None:
        """The next program starts. They run one after the other here."""
        self.program = program
        self._starts.append(self._clock + 1)
        self._released.append(0)
        self.barrier()

    def barrier(self) -> None:
        """A barrier: lanes of this program see all earlier accesses of the program's lanes."""
        self._ordered = self._clock + 1
        for elements in self.elements.values():
            elements.loaded.clear()

    def atomic(self) -> None:
        """An atomic operation: publishes the stores of this program, and sees those that earlier
        programs have published.
        """
        self._released[-1] = self._clock

    # accesses

    def touch(
        self, addresses: _Array, on: _Array, verb: str, values: _Array | None = None
    ) -> tuple[_Array, list[tuple[Region, _Array]]]:
        """Check and count one access of the lanes that are `on`.

        Args:
            verb: "reads", "writes" or "adds to".
            values: what is written, a number a lane.

        Returns:
            The addresses in real memory, and each tensor that is touched with the offsets of its
            elements.

        Raises:
            KernelFault: the access leaves its tensor, or the result would depend on an order that
                nobody promises.
        """
        self._clock += 1
        lanes = self._lanes_of(addresses.shape)
        everything = bool(np.logical_and.reduce(on, axis=None))
        active = (addresses.reshape(-1) if everything else addresses[on]).view(np.int64)
        written = values
        if not everything:
            lanes = lanes[on.reshape(-1)]
            written = values[on] if values is not None else None
        elif values is not None:
            written = values.reshape(-1)
        moved, touched = active, []
        for region, owned, ends in self._by_region(active, verb):
            if owned is None:
                offsets = self._offsets(region, active, ends, verb)
                self._check(region, offsets, lanes, verb, written)
                moved = active + (region.address - region.base)
            else:
                offsets = self._offsets(region, active[owned], ends, verb)
                self._check(
                    region, offsets, lanes[owned], verb, None if written is None else written[owned]
                )
                moved = np.where(owned, active + (region.address - region.base), moved)
            touched.append((region, offsets))
        if everything:
            return moved.view(np.uint64).reshape(addresses.shape), touched
        real = np.zeros(addresses.shape, dtype=np.uint64)
        real[on] = moved.view(np.uint64)
        return real, touched

    def _check(
        self, region: Region, offsets: _Array, lanes: _Array, verb: str, written: _Array | None
    ) -> None:
        if written is not None:
            self._check_store(region, offsets, lanes, written)
        else:
            self._check_load(region, offsets, lanes, verb)
        self._count(region, offsets, verb)

    def _lanes_of(self, shape: tuple[int, ...]) -> _Array:
        """A number a lane. Equal numbers in two accesses mean one lane: an element of tiles of one
        shape.
        """
        lanes = self._lanes.get(shape)
        if lanes is None:
            squeezed = tuple(n for n in shape if n > 1)
            kind = self._shapes.setdefault(squeezed, len(self._shapes))
            lanes = self._lanes[shape] = np.arange(int(np.prod(shape)), dtype=np.int64) + (
                kind << _LANE
            )
        return lanes

    def _by_region(
        self, addresses: _Array, verb: str
    ) -> list[tuple[Region, _Array | None, tuple[int, int]]]:
        """Each tensor that is touched, a mask of the tensor's addresses (None: all), and the first
        and the last of these.
        """
        if not addresses.size:
            return []
        half = 1 << (_SPAN - 1)
        ends = _ends(addresses)
        first, last = ends[0] + half >> _SPAN, ends[1] + half >> _SPAN
        if first == last:
            return [(self._region(first, verb), None, ends)]
        numbers = (addresses + half) >> _SPAN
        touched = [
            (self._region(number, verb), numbers == number)
            for number in np.unique(numbers).tolist()
        ]
        return [(region, owned, _ends(addresses[owned])) for region, owned in touched]

    def _region(self, number: int, verb: str) -> Region:
        region = self.regions.get(number)
        if region is None:
            raise KernelFault(f"{self._who()} {verb} an address that belongs to no tensor")
        return region

    def _offsets(
        self, region: Region, addresses: _Array, ends: tuple[int, int], verb: str
    ) -> _Array:
        """How many elements after the first each address lies; all must be elements."""
        distances = addresses - region.base
        offsets: _Array = (
            distances >> region.size.bit_length() - 1
        )  # an element has 1, 2, 4 or 8 bytes
        misalignments = distances & region.size - 1
        between = np.logical_or.reduce(misalignments)
        if (
            region.whole
            and not between
            and ends[0] >= region.base
            and ends[1] - region.base < region.bytes
        ):
            return offsets
        inside = (offsets >= 0) & (offsets < region.extent)
        inside[inside] = region.valid[offsets[inside]]
        wrong = ~inside | (misalignments != 0)
        if not wrong.any():
            return offsets
        name, shape = region.name, region.shape
        index, remainder = region.index_of(int(offsets[wrong][0]))
        if remainder or misalignments[wrong][0]:
            raise KernelFault(
                f"{self._who()} {verb} memory between the elements of {name} (shape "
                f"{shape}, strides "
                f"{region.strides}): do the strides belong to {name}?"
            )
        row = max(len(shape) - 2, 0)
        if shape and index[row] >= shape[row]:
            raise KernelFault(
                f"{self._who()} {verb} {name}{index}, and {name} has {shape[row]} rows (its "
                f"shape is {shape})"
            )
        raise KernelFault(f"{self._who()} {verb} {name}{index}, and the shape of {name} is {shape}")

    def _count(self, region: Region, offsets: _Array, verb: str) -> None:
        if verb != "writes":
            self.loads[region.name] += offsets.size
        if verb != "reads":
            self.stores[region.name] += offsets.size
        if self._traced:
            for kind in {
                "reads": ("reads",),
                "writes": ("writes",),
                "adds to": ("reads", "writes"),
            }[verb]:
                counts = region.counts.setdefault(kind, np.zeros(region.extent, dtype=np.int64))
                np.add.at(counts, offsets, 1)

    # order

    def _check_load(self, region: Region, offsets: _Array, lanes: _Array, verb: str) -> None:
        """Refuse a load or an atomic operation after a store that nothing orders before this
        lane.
        """
        elements, where = region.elements, offsets + region.start
        if (
            elements.stored_at is not None
            and elements.stored_by is not None
            and (stored := elements.stored_at[where]).any()
        ):
            self._refuse_foreign(region, offsets, stored, verb)
            clashes = (stored >= self._ordered) & (elements.stored_by[where] != lanes)
            if verb == "reads" and clashes.any():
                raise KernelFault(
                    f"{self._who()} reads {_place(region, offsets, clashes)}, which another lane "
                    "of it has written: "
                    f"{_LANES}. tl.debug_barrier() between the store and the load orders them; "
                    "better is to keep the "
                    "value in a variable"
                )
            elements.kept = elements.kept or not stored.all()
        else:
            elements.kept = True
        if verb == "reads":
            elements.loaded.append((where, lanes))
        else:
            elements.add(where)

    def _check_store(self, region: Region, offsets: _Array, lanes: _Array, values: _Array) -> None:
        """Refuse a store where another lane or program has read or written another value, and
        nothing orders the two.
        """
        elements, where = region.elements, offsets + region.start
        if elements.stored_at is None or elements.stored_by is None:
            elements.stored_at = np.zeros(elements.count, dtype=np.int64)
            elements.stored_by = np.zeros(elements.count, dtype=np.int64)
            elements.left = np.zeros(elements.count, dtype=f"u{elements.size}")
        clocks, by = elements.stored_at, elements.stored_by
        bits = values.view(f"u{values.itemsize}")
        if (stored := clocks[where]).any():
            self._refuse_foreign(region, offsets, stored, "writes")
            clashes = (stored >= self._ordered) & (by[where] != lanes)
            if clashes.any() and (clashes := clashes & (elements.bits()[where] != bits)).any():
                raise KernelFault(
                    f"{self._who()} writes {_place(region, offsets, clashes)}, where another lane "
                    "of it has written "
                    f"something else: {_LANES}. tl.debug_barrier() between the two "
                    "stores orders them"
                )
        clocks[where] = self._clock
        by[where] = lanes
        # two lanes of this store, one element
        if lanes.size > 1 and (lost := by[where] != lanes).any():
            last = dict(zip(lanes.tolist(), bits.tolist(), strict=True))
            lost &= bits != np.array([last[lane] for lane in by[where].tolist()], dtype=bits.dtype)
            if lost.any():
                raise KernelFault(
                    f"two lanes of {self._who()} write {_place(region, offsets, lost)}, and not "
                    f"the same: {_LANES}"
                )
        if elements.loaded:
            self._refuse_late(region, where, lanes, bits)
        elements.left[where] = bits

    def _refuse_late(self, region: Region, where: _Array, lanes: _Array, bits: _Array) -> None:
        """Refuse a store into elements that other lanes of this program have loaded: on a GPU these
        loads may come later.
        """
        elements = region.elements
        writer = np.full(elements.count, -1, dtype=np.int64)
        writer[where] = lanes
        changed = np.zeros(elements.count, dtype=bool)
        changed[where] = elements.bits()[where] != bits
        for seen, by in elements.loaded:
            clashes = (writer[seen] >= 0) & (writer[seen] != by) & changed[seen]
            if clashes.any():
                raise KernelFault(
                    f"{self._who()} writes {_place(region, seen - region.start, clashes)}, "
                    "which another "
                    f"lane of it has loaded: {_LANES}. tl.debug_barrier() between the load and "
                    "the store orders them"
                )

    def _refuse_foreign(self, region: Region, offsets: _Array, stored: _Array, verb: str) -> None:
        """Refuse to touch elements that another program has stored, unless both programs have done
        an atomic operation since.
        """
        foreign = (stored > 0) & (stored < self._starts[-1])
        if foreign.any() and self._released[-1]:
            owners = np.searchsorted(self._starts, stored[foreign], side="right") - 1
            foreign[foreign] = np.array(self._released)[owners] < stored[foreign]
        if foreign.any():
            raise KernelFault(
                f"{self._who()} {verb} {_place(region, offsets, foreign)}, which another "
                "program has "
                "written: programs run in any order, so the result would be a matter of luck"
            )


def _ends(addresses: _Array) -> tuple[int, int]:
    """The first and the last."""
    if addresses.size == 1:
        return (only := int(addresses[0])), only
    return int(np.minimum.reduce(addresses)), int(np.maximum.reduce(addresses))


def _place(region: Region, offsets: _Array, which: _Array) -> str:
    return f"{region.name}{region.index_of(int(offsets[which][0]))[0]}"


def program_in_words(program: tuple[int, ...]) -> str:
    """A program as messages name it."""
    return str(program[0]) if len(program) == 1 else str(program)


import ast
import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import triton
from triton._C.libtriton import ir
from triton._utils import find_paths_if, get_iterable_path
from triton.backends.compiler import GPUTarget
from triton.compiler import code_generator
from triton.compiler.compiler import ASTSource, make_backend
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
from triton.language.core import base_value
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, mangle_type


_TARGET = ("cuda", 80, 32)  # an A100; later GPUs refuse nothing more
_MOST_KEPT = 4096


class StaticAssertion(KernelFault):
    """tl.static_assert fails for the constants of a launch."""


class Compiler:
    """Compiles kernels that were made for the interpreter. One for a process, made before any
    kernel has run.
    """

    def __init__(self) -> None:
        self._twins: dict[Any, JITFunction[Any]] = {}
        self._known: dict[Any, KernelFault | None] = {}
        target = GPUTarget(*_TARGET)
        self._backend = make_backend(target)
        # an overflow check beside each operation on integers refuses nothing, and is a quarter of
        # the work
        options = {"arch": "sm80", "enable_fp_fusion": True, "sanitize_overflow": False}
        self._options = self._backend.parse_options(options)
        # one context for all modules: loading dialects takes as long as compiling a small kernel
        self._context = ir.context()
        ir.load_dialects(self._context)
        self._backend.load_dialects(self._context)
        members = {
            name: getattr(triton.language, name, None) for name in vars(triton.language.tensor)
        }
        self.members = {
            getattr(triton.language.tensor, name): function
            for name, function in members.items()
            if isinstance(function, InterpretedFunction)
        }
        compiler = self

        class Generator(code_generator.CodeGenerator):
            """Triton's generator, for functions that were made to be interpreted."""

            def __init__(
                self,
                context: Any,
                prototype: Any,
                gscope: dict[str, Any],
                *arguments: Any,
                **named: Any,
            ) -> None:
                names = _names_in(named["jit_fn"]) & gscope.keys()
                super().__init__(
                    context,
                    prototype,
                    {n: compiler.twin(gscope[n]) for n in names},
                    *arguments,
                    **named,
                )
                # by the loop's body: the initial values of variables that the loop carries
                self._loops: dict[int, dict[str, Any]] = {}

            def _find_carries(
                self, node: Any, liveins: dict[str, Any], ignore: Any = frozenset()
            ) -> Any:
                """The variables that a loop carries from one turn to the next. Triton's generator
                compiles the body to find them, and then once more. Here every name that the body
                assigns is carried, also where its value does not change.
                """
                if not isinstance(node, ast.For):
                    return super()._find_carries(node, liveins, ignore)
                assigned = _assigned_in(node) - set(ignore)
                carried = {name: value for name, value in liveins.items() if name in assigned}
                names, handles, types = [], [], []
                for name, value in carried.items():
                    if isinstance(value, base_value) and (
                        parts := code_generator.flatten_values_to_ir([value])
                    ):
                        names.append(name)
                        handles += parts
                        types.append(value.type)
                self._loops[id(node.body)] = carried
                self.lscope, self.local_defs = liveins.copy(), dict[str, Any]()
                return names, handles, types

            def visit_compound_statement(self, stmts: Any) -> None:
                super().visit_compound_statement(stmts)
                for name, initial in self._loops.pop(id(stmts), {}).items():
                    if isinstance(initial, base_value):
                        self._verify_loop_carried_variable(name, self.lscope[name], initial)
                    else:
                        assert name not in self.local_defs, (
                            f"Loop carried variable {name} is not a triton value"
                        )

            def call_Function(self, node: Any, fn: Any, args: list[Any], kws: Any) -> Any:  # noqa: N802
                member = compiler.members.get(getattr(fn, "__func__", None))
                if member is not None:  # x.sum(0) for tl.sum(x, 0)
                    fn, args = member, [fn.__self__, *args]
                return super().call_Function(node, compiler.twin(fn), args, kws)

            def call_JitFunction(self, fn: Any, *arguments: Any, **named: Any) -> Any:  # noqa: N802
                twin = compiler.twin(fn)
                _refuse_print(twin)
                return super().call_JitFunction(twin, *arguments, **named)

        code_generator.CodeGenerator = Generator

    def twin(self, value: Any) -> Any:
        """The compilable form of an interpreted function; any other value stays as it is."""
        if not isinstance(value, InterpretedFunction):
            return value
        if value not in self._twins:
            twin = self._twins[value] = JITFunction(value.fn, **value.kwargs)
            # Triton would make a hash of all functions that this one calls, twins or not
            twin.hash = f"{twin.__qualname__} {len(self._twins)}"
            # each compilation reads the syntax tree, and none changes it
            twin.parse = functools.cache(twin.parse)
        return self._twins[value]

    def check(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Compile a kernel for this launch, unless that has been done for an equal launch.

        Raises:
            KernelFault: the kernel does not compile; the message says which line, and why.
        """
        kernel = self.twin(function)
        bound = kernel.signature.bind(
            *arguments,
            **{name: value for name, value in keywords.items() if name in function.arg_names},
        )
        bound.apply_defaults()
        values = list(bound.arguments.values())
        signature = {
            parameter.name: "constexpr"
            if parameter.is_constexpr
            else _type_of(value, parameter, kernel.__name__)
            for parameter, value in zip(kernel.params, values, strict=True)
        }
        # constants stand inside of tuples, too: a stride of 1 is a constant
        paths = find_paths_if(list(signature.values()), lambda _, kind: kind == "constexpr")
        constants = {path: get_iterable_path(values, path) for path in paths}
        key = (function, str(signature), repr(constants))
        if key not in self._known:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[key] = self._compile(kernel, signature, constants)
        fault = self._known[key]
        if fault is not None:
            raise fault

    def _compile(
        self, kernel: Any, signature: dict[str, Any], constants: dict[Any, Any]
    ) -> KernelFault | None:
        functions, modules = (
            self._backend.get_codegen_implementation(self._options),
            self._backend.get_module_map(),
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _refuse_print(kernel)
                source = ASTSource(kernel, signature, constants, {})
                source.make_ir(
                    GPUTarget(*_TARGET), self._options, functions, modules, self._context
                )
        except CompilationError as error:
            return self._describe(kernel, error)
        except KernelFault as fault:
            return fault
        return None

    def _describe(self, kernel: Any, error: CompilationError) -> KernelFault:
        """The refusal in our words, with the student's line that led to it last."""
        chain: list[BaseException] = [error]
        while isinstance(chain[-1].__cause__, CompilationError | KernelFault):
            chain.append(chain[-1].__cause__)
        if isinstance(chain[-1], KernelFault):
            return chain[-1]
        errors = [link for link in chain if isinstance(link, CompilationError)]
        student_twins = {twin.src: twin for twin in self._twins.values() if not is_library(twin)}
        last = next(link for link in reversed(errors) if link.src in student_twins or link is error)
        reason = next((link.error_message for link in reversed(errors) if link.error_message), "")
        kind = (
            StaticAssertion if isinstance(errors[-1], CompileTimeAssertionFailure) else KernelFault
        )
        line = _line_of(student_twins.get(last.src, kernel), last.node)
        return kind(f"{line}: {_reason(str(reason), last.node)}")


def is_library(function: Any) -> bool:
    """Whether a function of @triton.jit is Triton's own."""
    return str(function.fn.__module__).startswith("triton.")


@functools.lru_cache(maxsize=_MOST_KEPT)
def _names_in(function: Any) -> set[str]:
    """Names that a function's text mentions: only these globals are converted."""
    return {node.id for node in ast.walk(function.parse()) if isinstance(node, ast.Name)}


@functools.lru_cache(maxsize=_MOST_KEPT)
def _assigned_in(loop: ast.For) -> set[str]:
    """Names that the body of a loop assigns."""
    nodes = (node for statement in loop.body for node in ast.walk(statement))
    return {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _refuse_print(function: Any) -> None:
    if is_library(function) or "print" not in _names_in(function):
        return
    for node in ast.walk(function.parse()):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ):
            raise KernelFault(
                f"{_line_of(function, node)}: `print` belongs to Python. On a GPU it is refused, "
                "or prints a line for "
                "each element of each program: take it out (tl.device_print is there while you "
                "look for an error)"
            )


def _type_of(value: Any, parameter: Any, kernel: str) -> Any:
    try:
        return mangle_type(value, not parameter.do_not_specialize)
    except Exception as error:  # of any kind, where Triton does not know the value's type
        raise KernelFault(
            f"{kernel} is given {parameter.name} = {str(value)[:60]} ({type(value).__name__}), "
            "which cannot be passed "
            "to a kernel: tensors and numbers can, anything else only as tl.constexpr"
        ) from error


def _line_of(function: Any, node: Any) -> str:
    """Where in the student's text a node stands: "no GPU would compile line 5 of softmax_kernel
    (`break`)".
    """
    lines, line = function.src.splitlines(), getattr(node, "lineno", 1)
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return f"no GPU would compile line {line} of {function.__name__} (`{text[:80]}`)"


_REASONS: tuple[tuple[str, Callable[..., str]], ...] = (
    (
        r"Cannot access global variable (\w+) from",
        lambda name: (
            f"`{name}` is neither an argument, nor a tl.constexpr, nor a function of "
            "@triton.jit or of tl"
        ),
    ),
    (r"unsupported AST node type: (\w+)", lambda name: f"kernels know no `{name.lower()}`"),
    (r"^NameError\(['\"](\w+) is not defined['\"]\)$", lambda name: f"`{name}` is not defined"),
    (r"^\w+\((['\"])(.*)\1,?\)$", lambda _, text: str(text)),  # the repr of an exception
)


def _reason(text: str, node: Any) -> str:
    for pattern, words in _REASONS:
        if match := re.search(pattern, text, re.DOTALL):
            return words(*match.groups())
    return text or f"kernels know no `{type(node).__name__.lower()}`"


from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


MOST_AT_ONCE = 4
"""Configurations of one launch. Where there are more, the first runs always, and the others take
turns.
"""
# by bytes of an element: how far sums in another order may differ
_TOLERANCE = {2: 2e-2, 4: 1e-3, 8: 1e-6}
_Array = np.ndarray[Any, Any]


class Autotuned:
    """Launches of kernels with several configurations.

    Args:
        quietly: runs a launch of which only the faults count.
        memory: gives the memory of the last launch.
    """

    def __init__(
        self, quietly: Callable[[Callable[[], Any]], None], memory: Callable[[], Memory]
    ) -> None:
        self._quietly, self._memory = quietly, memory
        self._launches = 0

    def run(
        self, tuner: Any, plain: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Launch with each configuration in turn. What the first wrote stays.

        Args:
            tuner: Triton's `Autotuner`.
            plain: the tuner's original method `run`, for a tuner of one configuration.
        """
        if len(tuner.configs) == 1:
            return plain(tuner, *args, **kwargs)
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        tensors = Memory({}, traced=False)
        for name, value in {**tuner.nargs, **kwargs}.items():
            tensors.add(name, value)
        distinct = self._in_turn(_distinct(tuner.prune_configs(kwargs), tuner.arg_names))
        if any(region.tensor.device.type != "cpu" for region in tensors.regions.values()):
            distinct = distinct[:1]  # their memory cannot be compared from here
        try:
            self._all(tuner, args, kwargs, distinct, tensors)
        finally:
            tuner.nargs = None
        return None

    def _in_turn(self, configs: list[Any]) -> list[Any]:
        self._launches += 1
        later = configs[1:]
        turn = self._launches * (MOST_AT_ONCE - 1) % len(later) if len(later) >= MOST_AT_ONCE else 0
        return configs[:1] + (later[turn:] + later[:turn])[: MOST_AT_ONCE - 1]

    def _all(self, tuner: Any, args: Any, kwargs: Any, configs: list[Any], tensors: Memory) -> None:
        original = _kept(tensors)
        written: list[tuple[Any, list[_Array]]] = []
        refused: StaticAssertion | None = None
        for config in configs:
            try:
                if written:
                    _put_back(tensors, original)
                    self._quietly(lambda config=config: _launch(tuner, args, kwargs, config))
                else:
                    _launch(tuner, args, kwargs, config)
            except StaticAssertion as error:  # Triton leaves such a configuration out
                refused = error
                continue
            except Exception as error:
                if len(configs) == 1:
                    raise
                message = (
                    str(error)
                    if isinstance(error, KernelFault)
                    else f"{type(error).__name__}: {error}"
                )
                raise KernelFault(f"with the configuration {_words(config)}: {message}") from error
            if not written:
                tuner.best_config = config
                self._refuse_a_second_run(tuner, args, kwargs, config, tensors)
            written.append((config, _kept(tensors)))
        if not written:
            raise refused or KernelFault("no configuration is left to run")
        _compare(tensors, written)
        _put_back(tensors, written[0][1])

    def _refuse_a_second_run(
        self, tuner: Any, args: Any, kwargs: Any, config: Any, tensors: Memory
    ) -> None:
        """Launch once more and compare: Triton times a kernel by many launches, so a kernel that
        adds to its earlier results must be reset in between.
        """
        excused = {*tuner.reset_to_zero, *tuner.restore_value}
        named = {**tuner.nargs, **kwargs}
        shielded = Memory({}, traced=False)
        for name in excused & named.keys():
            shielded.add(name, named[name])
        changed = [
            key
            for key, entry in self._memory().elements.items()
            if entry.changed_what_it_found and key not in shielded.elements
        ]
        if not changed or tuner.user_defined_pre_hook:
            return
        once = _kept(tensors)
        self._quietly(lambda: _launch(tuner, args, kwargs, config))
        twice = _kept(tensors)
        _put_back(tensors, once)
        for entry in _differences(tensors, once, twice):
            raise KernelFault(
                f"launched twice, the kernel writes something else to {entry.name}{entry.place}: "
                "autotune launches it "
                "many times to find the fastest configuration. Name it in reset_to_zero or "
                "restore_value"
            )


def _launch(tuner: Any, args: Any, kwargs: Any, config: Any) -> None:
    """Launch one configuration as Triton does: reset tensors first, then call the configuration's
    hook.
    """
    if conflicts := kwargs.keys() & config.kwargs.keys():
        raise KernelFault(
            f"{', '.join(sorted(conflicts))} is passed to the launch and set by autotune: "
            "leave it to one"
        )
    named = {**tuner.nargs, **kwargs, **config.all_kwargs()}
    tuner.pre_hook(named, reset_only=True)
    if config.pre_hook is not None:
        config.pre_hook(named)
    tuner.fn.run(*args, **kwargs, **config.all_kwargs())


def _distinct(configs: list[Any], parameters: list[str]) -> list[Any]:
    """The configurations without those that the kernel cannot tell from an earlier one."""
    seen: dict[str, Any] = {}
    for config in configs:
        visible = {name: value for name, value in config.all_kwargs().items() if name in parameters}
        seen.setdefault(f"{sorted(visible.items())} {id(config.pre_hook)}", config)
    return list(seen.values())


def _words(config: Any) -> str:
    return "(" + ", ".join(f"{name}: {value}" for name, value in config.kwargs.items()) + ")"


def _kept(tensors: Memory) -> list[_Array]:
    return [elements.bits().copy() for elements in tensors.elements.values()]


def _put_back(tensors: Memory, contents: list[_Array]) -> None:
    for elements, bits in zip(tensors.elements.values(), contents, strict=True):
        elements.bits()[...] = bits


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """The first element of a tensor that two configurations have written differently."""

    name: str
    place: list[int]
    first: float
    second: float


def _compare(tensors: Memory, written: list[tuple[Any, list[_Array]]]) -> None:
    """All configurations must have written the same, but for rounding."""
    (first, first_contents), *later = written
    unequal = [
        (config, unlike[0])
        for config, contents in later
        if (unlike := _differences(tensors, first_contents, contents))
    ]
    if not unequal:
        return
    config, difference = unequal[0]
    outcomes = [
        f"{_words(config)} the kernel writes {difference.second:.6g}",
        f"{_words(first)} {difference.first:.6g}",
    ]
    outvoted = len(unequal) == len(later) > 1 and not _differences(
        tensors, later[0][1], later[1][1]
    )
    if outvoted or difference.first != difference.first:
        outcomes = [
            f"{_words(first)} the kernel writes {difference.first:.6g}",
            f"{_words(config)} {difference.second:.6g}",
        ]
    raise KernelFault(
        f"with the configuration {outcomes[0]} to {difference.name}{difference.place}, with "
        f"{outcomes[1]}: autotune takes the fastest, so each must be right"
    )


def _differences(
    tensors: Memory, first: list[_Array], second: list[_Array]
) -> list[ResultDifference]:
    """The tensors whose contents differ by more than rounding."""
    pairs = {
        id(elements): pair
        for elements, *pair in zip(tensors.elements.values(), first, second, strict=True)
    }
    differences = []
    for region in tensors.regions.values():
        pair = pairs[id(region.elements)]
        if np.array_equal(pair[0], pair[1]):
            continue
        a, b = (
            _numbers(region, bits[region.start : region.start + region.extent]) for bits in pair
        )
        with np.errstate(all="ignore"):
            differs = np.abs(a - b) > _TOLERANCE.get(region.tensor.element_size(), 0) * np.maximum(
                1, np.abs(a)
            )
            differs |= (
                (np.isnan(a) != np.isnan(b)) | (np.isinf(a) & (a != b)) | (np.isinf(b) & (a != b))
            )
        places = np.nonzero(differs & region.valid)[0]
        if places.size:
            place = region.index_of(int(places[0]))[0]
            differences.append(
                ResultDifference(region.name, place, float(a[places[0]]), float(b[places[0]]))
            )
    return differences


def _numbers(region: Any, bits: _Array) -> _Array:
    """Elements as float64, whatever they are."""
    kind = str(region.tensor.dtype).removeprefix("torch.")
    if kind.startswith("float8"):
        return bits.astype(np.float64)
    if kind == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view(np.dtype(kind)).astype(np.float64)


import enum
import functools
import inspect
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import triton
from triton.runtime import interpreter

_TOUCHES = re.compile("load|store|atomic|descriptor|program_id|print|assert|assume|barrier")
"""Operations that each program makes, also where all arguments are constant."""
_MOST_STEPS = 20_000
_MOST_BYTES = 64 << 20  # of one program's tiles, which a tape keeps until the program ends
_SLOT = "attention_kit_slot"
_TYPE = "attention_kit_type"
HANDLES = tuple(
    kind
    for name in ("TensorHandle", "BlockPointerHandle", "TensorDescHandle")
    if (kind := getattr(interpreter, name, None)) is not None
)


def makes_handles(name: str) -> bool:
    """Whether a member of the builder is an operation on tiles."""
    return name.startswith("create_") or (name.startswith("get_") and not name.endswith("_ty"))


class _Mode(enum.Enum):
    AWAY = enum.auto()  # operations run, and are not recorded
    RECORDING = enum.auto()  # operations run and are recorded
    FEEDING = enum.auto()  # operations have been played: calls return those results


class _Stretch:
    """Operations up to where Python asks for a value.

    Attributes:
        calls: the slots of all operations, in the order in which Python calls them.
        steps: operations that each program makes: a function, the slots of the arguments, and the
            slot of the result.
        asked: a function that reads the value, and the slot of the tile; None at the end of the
            program.
        ways: the next stretch, for each value.
    """

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...], int]] = []
        self.asked: tuple[Callable[[Any], Any], int] | None = None
        self.ways: dict[Any, _Stretch] = {}


class _Tape:
    """The operations of one launch. A slot holds a constant, or None for a value that differs by
    program.
    """

    def __init__(self) -> None:
        self.slots: list[Any] = []
        self.constant: list[bool] = []
        self.start: _Stretch | None = None
        self.torn = False  # not to be played: an operation cannot be followed
        self.steps = self.bytes = 0

    def add(self, value: Any, *, constant: bool) -> int:
        self.slots.append(value if constant else None)
        self.constant.append(constant)
        return len(self.slots) - 1

    def label(self, result: Any, slot: int) -> None:
        """Mark handles with their slots; handles of a tuple have the slots after the tuple's."""
        if isinstance(result, tuple):
            for number, part in enumerate(result, slot + 1):
                self.label(part, number)
        elif isinstance(result, HANDLES):
            setattr(result, _SLOT, (self, slot))

    def slot_of(self, argument: Any, stretch: _Stretch) -> int:
        """The slot of an argument. A handle that no operation has made tears the tape."""
        if isinstance(argument, HANDLES):
            tape, slot = getattr(argument, _SLOT, (None, 0))
            if tape is not self:
                self.torn = True
            return int(slot)
        if isinstance(argument, list | tuple) and any(
            isinstance(part, HANDLES) for part in argument
        ):
            parts = tuple(self.slot_of(part, stretch) for part in argument)
            constant = all(self.constant[part] for part in parts)
            slot = self.add(argument, constant=constant)
            if not constant:
                stretch.steps.append((lambda *values: list(values), parts, slot))
            return slot
        return self.add(argument, constant=True)


class Recorder:
    """Records and plays builder calls: stands between Triton's semantics and the builder of this
    process.
    """

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._mode = _Mode.AWAY
        self._tape = _Tape()
        self._stretch = _Stretch()
        self._values: list[Any] = []  # by slot, of the program that is played
        self._feed: list[int] = []
        self._fed = self._answers = 0
        self._fault: Exception | None = None
        self._as_compiled = False  # no tile is asked for its value, as no compiler asks
        # how often code has read the elements of a tile without the builder
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._builder, name)
        if not makes_handles(name) or not callable(member):
            return member
        pure = _TOUCHES.search(name) is None
        operation = functools.partial(self._operation, member, pure)
        setattr(self, name, operation)
        return operation

    # a launch

    def clear(self) -> None:
        """Forget the tape: a launch begins, or ends."""
        self._tape, self._mode = _Tape(), _Mode.AWAY
        self._values, self._feed, self._fault = [], [], None

    def know(self, argument: Any) -> None:
        """Enter an argument of the launch as a constant: all programs get it."""
        if isinstance(argument, tuple | triton.language.tuple):
            for part in argument:
                self.know(part)
        elif isinstance(handle := getattr(argument, "handle", None), HANDLES):
            self._tape.label(handle, self._tape.add(handle, constant=True))
            for sizes in ("shape", "strides"):  # of a descriptor
                self.know(getattr(argument, sizes, None))

    def over(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a kernel: programs are played from the tape where there is one."""

        @functools.wraps(kernel)
        def program(**arguments: Any) -> None:
            self._program(functools.partial(kernel, **arguments))

        program.__signature__ = inspect.signature(kernel)
        return program

    def _program(self, run: Callable[[], Any]) -> None:
        tape = self._tape
        try:
            if tape.torn or self._builder.grid_dim == (1, 1, 1):
                run()
            elif tape.start is None:
                tape.start = self._stretch = _Stretch()
                self._mode = _Mode.RECORDING
                run()
            elif not self._play(tape, tape.start):
                self._mode = _Mode.FEEDING
                run()
        finally:
            self._mode = _Mode.AWAY

    def _play(self, tape: _Tape, stretch: _Stretch) -> bool:
        """Play a program's operations; False where Python has to take over."""
        values = self._values = tape.slots.copy()
        self._feed, self._fed, self._answers, self._fault = [], 0, 0, None
        while True:
            for function, arguments, slot in stretch.steps:
                try:
                    values[slot] = function(*[values[place] for place in arguments])
                except Exception as fault:
                    self._feed += stretch.calls[: stretch.calls.index(slot)]
                    self._fault = fault
                    return False
            self._feed += stretch.calls
            self._stretch = stretch
            if stretch.asked is None:
                return True
            read, place = stretch.asked
            self._answers += 1
            following = stretch.ways.get(read(values[place]))
            if following is None:
                return False
            stretch = following

    # what the semantics ask of the builder

    def _operation(
        self, function: Callable[..., Any], pure: bool, /, *arguments: Any, **named: Any
    ) -> Any:
        if self._mode is _Mode.AWAY:
            return function(*arguments, **named)
        if self._mode is _Mode.FEEDING:
            return self._handed_out()
        if named:
            function = functools.partial(_by_name, function, tuple(named))
            arguments = (*named.values(), *arguments)
        self._mode = _Mode.AWAY  # calls that the operation makes in turn are not recorded
        result = function(*arguments)
        tape, stretch = self._tape, self._stretch
        places = tuple(tape.slot_of(argument, stretch) for argument in arguments)
        constant = pure and all(tape.constant[place] for place in places)
        slot = tape.add(result, constant=constant)
        stretch.calls.append(slot)
        if not constant:
            stretch.steps.append((function, places, slot))
        for number, part in enumerate(result if isinstance(result, tuple) else ()):
            part_slot = tape.add(part, constant=constant)
            if not constant:
                stretch.steps.append((functools.partial(_part, number), (slot,), part_slot))
        tape.label(result, slot)
        tape.steps += 1
        tape.bytes += 0 if constant else _bytes(result)
        tape.torn = tape.torn or tape.steps > _MOST_STEPS or tape.bytes > _MOST_BYTES
        self._mode = _Mode.AWAY if tape.torn else _Mode.RECORDING
        return result

    def _handed_out(self) -> Any:
        if self._fed == len(self._feed):
            assert self._fault is not None, "Python has called what the tape does not know"
            raise self._fault.with_traceback(None)
        slot = self._feed[self._fed]
        self._fed += 1
        result = self._values[slot]
        self._tape.label(result, slot)
        return result

    # functions that read elements without the builder

    def followed(self, owner: Any, name: str, value: Any) -> Any:
        """The replacement of a member of Triton's language that reads elements, so that the tape
        records it.
        """
        if owner is triton.language.tensor:
            if name == "__bool__":
                return lambda tensor: self._answer(value, tensor)
            # Triton 3.6 asks numpy for an int in a way that numpy has given up
            if name == "__index__":
                return lambda tensor: self._answer(
                    lambda tile: int(tile.handle.data.item()), tensor
                )
            if name in ("__repr__", "__str__"):
                return lambda tensor: self._shown(value, tensor)
            if name == "T":
                return property(
                    lambda tensor: interpreter.interpreter_semantic.permute(tensor, (1, 0))
                )
        if name in ("reduce", "associative_scan"):
            return functools.partial(self._over_an_axis, value)
        return value

    def unasked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function of Triton's language that tests whether it was passed a tile: a tile of 0
        must count as true.
        """

        def called(*arguments: Any, **named: Any) -> Any:
            outer, self._as_compiled = self._as_compiled, True
            try:
                return function(*arguments, **named)
            finally:
                self._as_compiled = outer

        return called

    def _answer(self, read: Callable[[Any], Any], tensor: Any) -> Any:
        """The value of a tile that Python asks for. A tile of several elements is true, with any
        values.
        """
        if self._as_compiled:
            return True
        value, mode = read(tensor), self._mode
        if tensor.handle.data.size > 1:
            return value
        self.looks += 1
        if mode is _Mode.AWAY:
            return value
        slot = self._tape.slot_of(tensor.handle, self._stretch)
        if self._tape.torn:
            self._mode = _Mode.AWAY
            return value
        if self._tape.constant[slot]:
            return value
        if mode is _Mode.FEEDING:
            self._answers -= 1
            if self._answers or self._fault is not None:
                return value
            self._mode = _Mode.RECORDING  # the answer that was new
        else:
            self._stretch.asked = (lambda handle: read(SimpleNamespace(handle=handle)), slot)
        following = self._stretch.ways[value] = _Stretch()
        self._stretch = following
        return value

    def _shown(self, show: Callable[[Any], str], tensor: Any) -> str:
        self.looks += 1
        if self._mode is not _Mode.AWAY:
            self._tape.torn = True
        return show(tensor)

    def _over_an_axis(
        self, function: Callable[..., Any], values: Any, *arguments: Any, **named: Any
    ) -> Any:
        """Record a reduction or a scan, which the interpreter computes on the elements."""
        several = isinstance(values, tuple)
        tensors = values if several else (values,)
        types = [tensor.type for tensor in tensors]

        def compute(*handles: Any) -> Any:
            tiles = tuple(
                triton.language.tensor(*pair) for pair in zip(handles, types, strict=True)
            )
            results = function(tiles if several else tiles[0], *arguments, **named)
            for tile in results if several else (results,):
                tile.handle.set_attr(_TYPE, tile.type)
            return tuple(tile.handle for tile in results) if several else results.handle

        builder = interpreter.interpreter_semantic.builder
        results = builder.create_over_an_axis(compute, *(tensor.handle for tensor in tensors))
        tiles = tuple(
            triton.language.tensor(handle, handle.attr[_TYPE])
            for handle in (results if several else (results,))
        )
        return tiles if several else tiles[0]

    def create_over_an_axis(self, compute: Callable[..., Any], *handles: Any) -> Any:
        """A reduction or a scan as an operation of the builder, which has none."""
        return self._operation(compute, True, *handles)


def _by_name(function: Callable[..., Any], names: tuple[str, ...], *values: Any) -> Any:
    return function(*values[len(names) :], **dict(zip(names, values, strict=False)))


def _part(number: int, whole: tuple[Any, ...]) -> Any:
    return whole[number]


def _bytes(result: Any) -> int:
    parts = result if isinstance(result, tuple) else (result,)
    return sum(part.data.nbytes for part in parts if isinstance(part, interpreter.TensorHandle))


import functools
from collections.abc import Callable
from typing import Any

import triton
from triton.runtime import interpreter


_MOST_PHRASES = 4096
_tensor = triton.language.tensor
_PLAIN = frozenset((int, bool, str, type(None)))


class _Unknown(Exception):
    """A value that types and constants do not describe."""


def _kind(value: Any) -> Any:
    """The key of a value: of a tile the type, of anything else type and value."""
    kind = type(value)
    if kind is _tensor:
        return value.type.name
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return kind, value.hex()  # 0.0 is not -0.0
    if kind is triton.language.dtype:
        return kind, value.name
    if kind is triton.language.constexpr:
        return kind, _kind(value.value)
    if kind is slice:
        return kind, _kind(value.start), _kind(value.stop), _kind(value.step)
    if kind is tuple or kind is list:
        return kind, *map(_kind, value)
    raise _Unknown


class _Phrase:
    """The builder calls of a function.

    Attributes:
        steps: operations, each with its arguments and, for every tile among them, the place and the
            number of the handle.
        result: the number of the result's handle, and the tensor's attributes; None for a function
            without result.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[Callable[..., Any], list[Any], list[tuple[int, int]]]] = []
        self.result: tuple[int, dict[str, Any]] | None = None

    def again(self, handles: list[Any]) -> Any:
        for operation, template, tiles in self.steps:
            arguments = template.copy()
            for place, source in tiles:
                arguments[place] = handles[source]
            handles.append(operation(*arguments))
        if self.result is None:
            return None
        source, parts = self.result
        tensor = _tensor.__new__(_tensor)
        tensor.__dict__.update(parts)
        tensor.handle = handles[source]
        return tensor


class _Notes:
    """Stands in for the builder while a function is called for the first time."""

    def __init__(self, builder: Any, handles: list[Any]) -> None:
        self._builder, self._handles = builder, handles
        # whole: a phrase can hold all builder calls so far
        self.phrase, self.whole = _Phrase(), True

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._builder, name)
        return (
            functools.partial(self._ask, member)
            if makes_handles(name) and callable(member)
            else member
        )

    def _ask(self, operation: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        # calls that the operation makes in turn are not noted
        interpreter.interpreter_semantic.builder = self._builder
        result = operation(*arguments, **named)
        interpreter.interpreter_semantic.builder = self
        tiles = [
            (place, self.source(value))
            for place, value in enumerate(arguments)
            if isinstance(value, HANDLES)
        ]
        self.phrase.steps.append((operation, list(arguments), tiles))
        nested = [
            *named.values(),
            *(part for value in arguments if isinstance(value, list | tuple) for part in value),
        ]
        if named or isinstance(result, tuple) or any(isinstance(part, HANDLES) for part in nested):
            self.whole = False
        self._handles.append(result)
        return result

    def source(self, handle: Any) -> int:
        """The number of a handle, in the order in which handles were made."""
        for place, earlier in enumerate(self._handles):
            if earlier is handle:
                return place
        self.whole = False
        return 0

    def end(self, result: Any) -> _Phrase | None:
        """The phrase; None where a phrase cannot hold all builder calls."""
        if type(result) is _tensor:
            self.phrase.result = self.source(result.handle), {**vars(result), "handle": None}
        elif result is not None:
            self.whole = False
        for _, arguments, tiles in self.phrase.steps:
            for place, _source in tiles:
                arguments[place] = None  # keeps no tile alive
        return self.phrase if self.whole else None


class Phrases:
    """All phrases of a process."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[Any, _Phrase | None] = {}
        self._listening = False

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of Triton's language that does the same, sooner."""

        def spoken(*arguments: Any, **named: Any) -> Any:
            if self._listening:
                return function(*arguments, **named)
            try:
                key = (
                    function,
                    *map(_kind, arguments),
                    *[(name, _kind(value)) for name, value in named.items()],
                )
                phrase = self._known[key]
            except _Unknown:
                return function(*arguments, **named)
            except KeyError:
                return self._listen(key, function, arguments, named)
            if phrase is None:
                return function(*arguments, **named)
            return phrase.again(
                [v.handle for v in (*arguments, *named.values()) if type(v) is _tensor]
            )

        return spoken

    def _listen(self, key: Any, function: Callable[..., Any], arguments: Any, named: Any) -> Any:
        semantic, looks = interpreter.interpreter_semantic, self._recorder.looks
        handles = [
            value.handle for value in (*arguments, *named.values()) if type(value) is _tensor
        ]
        if len(set(map(id, handles))) < len(handles):  # of x * x nobody could say which x is which
            return function(*arguments, **named)
        notes = semantic.builder = _Notes(self._recorder, handles)
        self._listening = True
        try:
            result = function(*arguments, **named)
        finally:
            self._listening = False
            semantic.builder = self._recorder
        if len(self._known) >= _MOST_PHRASES:
            self._known.clear()
        phrase = notes.end(result)
        self._known[key] = phrase if looks == self._recorder.looks else None
        return result


import ast
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
from triton.runtime import interpreter


class Language:
    """Triton's language as kernels see it in the interpreter.

    The interpreter exchanges some hundred functions at each launch, and at each call of a function
    like tl.max, and the latter stay exchanged. Here they are found once, and stand exchanged while
    a launch lasts.
    """

    def __init__(self, recorder: Recorder) -> None:
        language = types.FunctionType(
            (lambda: None).__code__, {"tl": triton.language, "core": triton.language.core}
        )
        scope = interpreter._patch_lang(language)
        phrases, during = Phrases(recorder), {}
        for owner, name, _ in scope._changes:
            value = recorder.followed(owner, name, vars(owner)[name])
            # the method that the interpreter's function replaces
            member = (getattr(value, "__kwdefaults__", None) or {}).get("member")
            if member:
                function = _with_semantic(member)
                value = phrases.of(
                    recorder.unasked(function) if name in ("load", "store") else function
                )
            during[id(owner), name] = value
        self._changes = [
            (owner, name, original, during[id(owner), name])
            for owner, name, original in scope._changes
        ]
        scope.restore()
        tensor = triton.language.tensor
        # methods such as x.exp(), which the interpreter has forgotten
        for name, member in vars(tensor).items():
            if (id(tensor), name) not in during and "_semantic" in _parameters(member):
                self._changes.append((tensor, name, member, phrases.of(_with_semantic(member))))
        # from Triton 3.8 on a class; its methods need the interpreter's semantic
        block_pointer = getattr(triton.language.core, "_block_ptr", None)
        for name in ("advance", "load", "store") if block_pointer else ():
            method = getattr(block_pointer, name)
            original = vars(block_pointer).get(name, interpreter._MISSING)
            self._changes.append((block_pointer, name, original, _with_semantic(method)))
        self._phrases, self._library = phrases, dict[Any, Callable[..., Any]]()
        self._depth = 0
        self._dtypes: dict[str, Any] = {}
        self._np_dtype = interpreter._get_np_dtype
        interpreter._get_np_dtype = self._get_np_dtype
        interpreter._patch_lang = self._exchange
        interpreter.FunctionRewriter.ast_transformer = _AsCompiled()
        interpreter.FunctionRewriter._compile_and_exec = _compile_and_exec
        # from Triton 3.8 on block pointers are made of other operations
        if hasattr(interpreter, "BlockPointerHandle"):
            interpreter.BlockPointerHandle.materialize_pointers = _pointers_of_a_block
        interpreter.TensorHandle.__init__ = _make_handle
        interpreter.InterpretedFunction.__call__ = lambda kernel, *args, **kwargs: self._call(
            kernel, args, kwargs
        )

    def _exchange(self, _: Any) -> "Language":
        self._depth += 1
        if self._depth == 1:
            for owner, name, _original, during in self._changes:
                setattr(owner, name, during)
        return self

    def restore(self) -> None:
        """Put the original functions back; the interpreter calls this at the end of a launch."""
        self._depth -= 1
        if self._depth:
            return
        for owner, name, original, _ in reversed(self._changes):
            if original is interpreter._MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, original)

    def _call(self, kernel: Any, args: Any, kwargs: Any) -> Any:
        """A function of @triton.jit that a kernel calls."""
        self._exchange(None)
        try:
            function = self._library.get(kernel)
            if function is None:
                function = kernel.rewrite()
                if is_library(kernel):
                    function = self._library[kernel] = self._phrases.of(function)
            return function(*args, **kwargs)
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error
        finally:
            self.restore()

    def _get_np_dtype(self, kind: Any) -> Any:
        """numpy's type for one of Triton's. The interpreter asks some thousand times a launch."""
        name = kind.name
        dtype = self._dtypes.get(name)
        if dtype is None:
            dtype = self._dtypes[name] = self._np_dtype(kind)
        return dtype


def _parameters(member: Any) -> tuple[str, ...]:
    """The parameters of a function that tensors have as a method; none for anything else."""
    signature = getattr(member, "signature", None) or getattr(member, "__signature__", None)
    return tuple(signature.parameters) if signature is not None else ()


def _with_semantic(method: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments, **named: method(
        *arguments, **{**named, "_semantic": interpreter.interpreter_semantic}
    )


def _make_handle(
    handle: Any, data: np.ndarray[Any, Any], dtype: Any, attr: dict[str, Any] | None = None
) -> None:
    """Make and check a tile as Triton's own method does, and sooner: the smallest program makes
    some twenty.
    """
    handle.data, handle.dtype, handle.attr = data, dtype, {} if attr is None else attr
    pointer = isinstance(dtype, triton.language.pointer_type)
    if not pointer and data.itemsize > 1 and data.itemsize * 8 > dtype.primitive_bitwidth:
        raise ValueError(f"{data.dtype} holds no {dtype}")


@functools.lru_cache(maxsize=1024)
def _tile(shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Distances in bytes from a tile's first element to each element.

    Args:
        steps: bytes from one element to the next along each axis.
    """
    places = np.indices(shape, dtype=np.int64)
    distances: np.ndarray[Any, Any] = np.tensordot(
        np.array(steps, dtype=np.int64), places, axes=1
    ).view(np.uint64)
    return distances


@functools.lru_cache(maxsize=1024)
def _within(shape: tuple[int, ...], axis: int, first: int, end: int) -> np.ndarray[Any, Any]:
    """A mask of the elements of a tile that lie within an axis.

    Args:
        first: where the tile begins on the axis.
        end: the length of the axis.
    """
    places: np.ndarray[Any, Any] = first + np.indices(shape, dtype=np.int64)[axis]
    return (places >= 0) & (places < end)


def _pointers_of_a_block(block: Any, boundary_check: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """The addresses of a block pointer's elements, and a mask of elements within the checked
    axes.
    """
    size, shape = block.base.get_element_ty().primitive_bitwidth // 8, tuple(block.block_shape)
    firsts = [int(offset.data.item()) for offset in block.offsets]
    steps = [size * int(stride.data.item()) for stride in block.strides]
    start = int(block.base.data.item()) + sum(
        first * step for first, step in zip(firsts, steps, strict=True)
    )
    addresses = _tile(shape, tuple(steps)) + np.uint64(start % (1 << 64))
    inside = _within(shape, 0, 0, shape[0])
    for axis in boundary_check:
        inside = inside & _within(shape, axis, firsts[axis], int(block.shape[axis].data.item()))
    return interpreter.TensorHandle(addresses, block.base.dtype.scalar), inside


class _AsCompiled(interpreter.ASTTransformer):
    """`and`, `or` and `not` of tiles, element by element. For Python a whole tile is true."""

    def visit_Assign(self, node: ast.Assign) -> Any:  # noqa: N802
        node.value = self.visit(node.value)  # Triton's transformer leaves the value as it is
        return super().visit_Assign(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:  # noqa: N802
        self.generic_visit(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        parts: list[ast.expr] = [ast.Lambda(args=nothing, body=value) for value in node.values]
        word = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return _calling("attention_kit_logical", node, ast.Constant(word), *parts)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:  # noqa: N802
        self.generic_visit(node)
        return (
            _calling("attention_kit_not", node, node.operand)
            if isinstance(node.op, ast.Not)
            else node
        )


def _calling(name: str, node: ast.expr, *arguments: ast.expr) -> ast.expr:
    function = ast.Name(id=name, ctx=ast.Load())
    return ast.copy_location(ast.Call(func=function, args=list(arguments), keywords=[]), node)


def _logical(word: str, *parts: Callable[[], Any]) -> Any:
    """`and` or `or`, as on a GPU: all tiles and scalars are combined, constants decide in their
    order.
    """
    tensors: list[Any] = []
    value: Any = None
    for part in parts:
        value = part()
        if isinstance(value, triton.language.tensor):
            tensors.append(value)
        elif bool(value) == (word == "logical_or"):
            return value
    if not tensors:
        return value
    result, *later = tensors
    for tensor in later:
        result = getattr(result, word)(tensor)
    return result


def _not(value: Any) -> Any:
    return value.__not__() if isinstance(value, triton.language.tensor) else not value


_HELPERS = {"attention_kit_logical": _logical, "attention_kit_not": _not}


def _compile_and_exec(rewriter: Any, tree: ast.Module) -> Any:
    """Compile a rewritten kernel. The notebook gets only the names that the rewriting has put into
    the text: Triton's method would add all names of the interpreter, and a kernel could use names
    that no GPU knows.
    """
    names, scope = rewriter.fn.__globals__, dict(rewriter.kwargs)
    student_names = set(rewriter.fn.__code__.co_names)
    helpers = {**vars(interpreter), **_HELPERS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in helpers and node.id not in student_names:
            names.setdefault(node.id, helpers[node.id])
    exec(compile(tree, rewriter.filename, "exec"), names, scope)
    return scope[rewriter.fn.__name__]


import contextlib
import dataclasses
import inspect
import math
import operator
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import triton
from triton.runtime import autotuner, interpreter


_TESTED = ((3, 6), (3, 9))
MOST_PROGRAMS = 1 << 18
"""Programs of one launch. They run one after the other, and the quickest takes longer than 20
microseconds: no limit of time allows more, and a list of very many would fill the memory first.
"""
_POISON = {"f": float("nan"), "b": True}


class UnknownTriton(ImportError):
    """This version of Triton has no interpreter that the strict one could hook into."""


class Recording:
    """The accesses of the kernels of one call. `loads` and `stores` count elements by tensor;
    `reads` and `writes` hold how often each element was touched, in the tensor's shape; `steps`
    lists the accesses program by program. The last three are filled where `keep_steps` is set.
    """

    def __init__(self, names: dict[int, str], keep_steps: bool) -> None:
        # names: by the address of a tensor's storage
        self.names, self.keep_steps = names, keep_steps
        self.kernels = self.programs = self.dots = self.flops = self.largest = 0
        self.loads: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self.unfilled: list[str] = []  # tensors with masked lanes loaded without `other`
        self.reads: dict[str, np.ndarray[Any, Any]] = {}
        self.writes: dict[str, np.ndarray[Any, Any]] = {}
        self.steps: list[tuple[tuple[int, ...], str, str, list[range]]] = []

    def __str__(self) -> str:
        lines: dict[tuple[int, ...], list[str]] = {}
        for program, verb, name, box in self.steps:
            spans = ", ".join(
                str(r.start) if len(r) == 1 else f"{r.start}…{r.stop - 1}" for r in box
            )
            lines.setdefault(program, []).append(f"    {verb} {name}[{spans}]")
        text = [
            f"program {program_in_words(program)}\n" + "\n".join(lines[program])
            for program in sorted(lines)
        ]
        moved = ", ".join(
            f"{name} {count}" for name, count in [*self.loads.items(), *self.stores.items()]
        )
        return "\n".join(
            [*text, f"{self.programs} programs, {self.dots} dots; elements moved: {moved}"]
        )

    def add(self, memory: Memory) -> None:
        """Add the accesses of one launch."""
        self.loads.update(memory.loads)
        self.stores.update(memory.stores)
        for region in memory.regions.values():
            for verb, totals in (("reads", self.reads), ("writes", self.writes)):
                if verb in region.counts:
                    shaped, total = region.in_shape(region.counts[verb]), totals.get(region.name, 0)
                    same = np.shape(total) in ((), shaped.shape)
                    totals[region.name] = shaped + total if same else shaped.copy()


class Strict:
    """The hooks in the interpreter of this process; `install()` makes them or finds them."""

    def __init__(self) -> None:
        self.recording = Recording({}, keep_steps=False)
        self.memory = Memory({}, traced=False)
        self.seed = 0
        self.around_launch: Callable[[list[Any]], contextlib.AbstractContextManager[Any]] = (
            contextlib.nullcontext
        )
        self._order: list[tuple[int, ...]] = []
        self._axes = 1
        builder = interpreter.interpreter_builder
        self._original = {
            name: getattr(builder, name) for name in _HOOKED if hasattr(builder, name)
        }
        for name in self._original:
            setattr(builder, name, getattr(self, "_" + name))
        # Triton computes overflow beside each operation, for an assertion that nobody switches on
        builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
        self._recorder = Recorder(builder)
        interpreter.interpreter_builder = interpreter.interpreter_semantic.builder = self._recorder
        self._convert = interpreter._implicit_cvt
        interpreter._implicit_cvt = self._implicit_cvt
        self._compiler = Compiler()
        Language(self._recorder)
        self._wrap_executor(interpreter.GridExecutor)
        self._wrap_kernels(interpreter.InterpretedFunction)
        self._wrap_autotuner(autotuner.Autotuner)

    @contextlib.contextmanager
    def record(self, names: dict[int, str], *, keep_steps: bool = False) -> Iterator[Recording]:
        """Record every kernel launched inside. `names` gives tensors their names by the address of
        their storage.
        """
        outer, self.recording = self.recording, Recording(names, keep_steps)
        try:
            yield self.recording
        finally:
            self.recording = outer

    # a launch

    def _wrap_executor(self, executor: Any) -> None:
        """Around each launch: the tensors' names and addresses first, then the counts; faults come
        out as they are.
        """
        call, to_host, from_host = (
            executor.__call__,
            executor._init_args_hst,
            executor._restore_args_dev,
        )

        def init_args(grid: Any, args_dev: Any, kwargs: Any) -> Any:
            tensors = _tensors_in((*args_dev, *kwargs.values()))
            # a tensor passed twice is copied: only copies tell the two parameters apart
            apart = len(set(map(id, tensors))) == len(tensors)
            stays = apart and all(tensor.device.type == "cpu" for tensor in tensors)
            args, keywords = (args_dev, kwargs) if stays else to_host(grid, args_dev, kwargs)
            self._open(inspect.getcallargs(grid.fn, *args, **keywords))
            return args, keywords

        def restore_args(grid: Any, args_dev: Any, args: Any, *keywords: Any) -> None:
            if args is not args_dev:
                from_host(grid, args_dev, args, *keywords)

        def launch(grid: Any, *args: Any, **kwargs: Any) -> Any:
            self._recorder.clear()
            grid.fn = self._recorder.over(grid.fn)
            try:
                with np.errstate(all="ignore"):  # a GPU does not warn of infinities
                    call(grid, *args, **kwargs)
            except interpreter.InterpreterError as error:
                cause: BaseException = error
                while (
                    isinstance(cause, interpreter.InterpreterError) and cause.__cause__ is not None
                ):
                    cause = cause.__cause__
                raise cause from None
            finally:
                self._recorder.clear()
                self.recording.add(self.memory)

        executor._init_args_hst, executor._restore_args_dev, executor.__call__ = (
            init_args,
            restore_args,
            launch,
        )

    def _wrap_kernels(self, kernels: Any) -> None:
        """Compile each kernel before a launch."""
        run = kernels.run

        def compiled(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            if not warmup:
                self._compiler.check(kernel, args, kwargs)
            grid = (lambda meta, sizes=grid: tuple(sizes(meta))) if callable(grid) else tuple(grid)
            with self.around_launch(_tensors_in((*args, *kwargs.values()))):
                return run(kernel, *args, grid=grid, warmup=warmup, **kwargs)

        kernels.run = compiled

    def _wrap_autotuner(self, tuners: Any) -> None:
        """Run all configurations of autotune: without a GPU none is the fastest."""
        run = tuners.run
        tuned = Autotuned(self._quietly, lambda: self.memory)

        def run_all(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            with self.around_launch(_tensors_in((*args, *kwargs.values()))):
                return tuned.run(tuner, run, args, kwargs)

        tuners.run = run_all

    def _quietly(self, launch: Callable[[], Any]) -> None:
        """Launch once more: faults count, and the largest tile, but no accesses."""
        memory = self.memory
        with self.record(self.recording.names) as recording:
            launch()
        self.recording.largest = max(self.recording.largest, recording.largest)
        self.recording.unfilled += [
            name for name in recording.unfilled if name not in self.recording.unfilled
        ]
        self.memory = memory

    def _open(self, arguments: dict[str, Any]) -> None:
        self._order = []
        self.recording.kernels += 1
        self.memory = Memory(self.recording.names, traced=self.recording.keep_steps)
        for name, value in arguments.items():
            self.memory.add(name, value)

    def _implicit_cvt(self, argument: Any) -> Any:
        """A tensor argument as the kernel sees it: a pointer to the address of the tensor's
        region.
        """
        converted = self._convert(argument)
        region = self.memory.region_of(argument)
        if region is not None and hasattr(argument, "data_ptr"):
            converted.handle.data = np.array([region.base], dtype=np.uint64)
        self._recorder.know(converted)
        return converted

    def _set_grid_dim(self, *sizes: Any) -> None:
        grid = [operator.index(size) for size in sizes]
        programs = math.prod(grid)
        if programs > MOST_PROGRAMS:
            raise KernelFault(
                f"a launch of {programs} programs: on a CPU they run one after the other, "
                f"{MOST_PROGRAMS} at most"
            )
        self._original["set_grid_dim"](*grid)

    def _set_grid_idx(self, x: int, y: int, z: int) -> None:
        """Run the programs in a shuffled order: a GPU promises none."""
        grid = interpreter.interpreter_builder.grid_dim
        if not self._order:
            self._order = list(np.ndindex(*grid))
            random.Random(self.seed).shuffle(self._order)
            self._axes = max([axis + 1 for axis in range(3) if grid[axis] > 1], default=1)
        place = self._order[(x * grid[1] + y) * grid[2] + z]
        self.memory.begin(place[: self._axes])
        self.recording.programs += 1
        self._original["set_grid_idx"](*place)

    # accesses

    def _create_masked_load(
        self, pointers: Any, mask: Any, other: Any, *arguments: Any, **options: Any
    ) -> Any:
        mask = _as_handle(mask)
        real, names = self._touch(pointers, mask, "reads")
        if other is None and not mask.data.all():
            self.recording.unfilled += [
                name for name in names if name not in self.recording.unfilled
            ]
            element = pointers.get_element_ty()
            kind = interpreter._get_np_dtype(element)
            # bfloat16 is stored as an unsigned integer, and the largest one is a NaN
            lost = np.iinfo(kind).max if kind.kind in "iu" else _POISON[kind.kind]
            other = type(pointers)(np.full(pointers.data.shape, lost, dtype=kind), element)
        return self._original["create_masked_load"](real, mask, other, *arguments, **options)

    def _create_masked_store(
        self, pointers: Any, value: Any, mask: Any, *arguments: Any, **options: Any
    ) -> Any:
        mask = _as_handle(mask)
        real, _ = self._touch(pointers, mask, "writes", value.data)
        return self._original["create_masked_store"](real, value, mask, *arguments, **options)

    def _create_tensor_pointer_load(
        self, pointer: Any, boundary_check: Any, *arguments: Any
    ) -> Any:
        try:
            return self._original["create_tensor_pointer_load"](pointer, boundary_check, *arguments)
        except KernelFault as fault:
            raise _naming_unchecked_axes(fault, pointer, boundary_check) from None

    def _create_tensor_pointer_store(
        self, pointer: Any, value: Any, boundary_check: Any, *arguments: Any
    ) -> Any:
        try:
            return self._original["create_tensor_pointer_store"](
                pointer, value, boundary_check, *arguments
            )
        except KernelFault as fault:
            raise _naming_unchecked_axes(fault, pointer, boundary_check) from None

    def _create_atomic_rmw(
        self, operation: Any, pointers: Any, value: Any, mask: Any, *arguments: Any
    ) -> Any:
        real, _ = self._touch(pointers, mask, "adds to")
        self.memory.atomic()
        return self._original["create_atomic_rmw"](operation, real, value, mask, *arguments)

    def _create_atomic_cas(self, pointers: Any, compare: Any, value: Any, *arguments: Any) -> Any:
        mask = type(pointers)(np.ones_like(pointers.data, dtype=bool), triton.language.int1)
        real, _ = self._touch(pointers, mask, "adds to")
        self.memory.atomic()
        return self._original["create_atomic_cas"](real, compare, value, *arguments)

    def _create_barrier(self) -> None:
        self.memory.barrier()
        self._original["create_barrier"]()

    def _create_dot(self, a: Any, b: Any, *arguments: Any) -> Any:
        if triton.language.bfloat16 in (a.dtype.scalar, b.dtype.scalar):
            raise KernelFault(
                "tl.dot of bfloat16 is wrong in the interpreter: use float16 or float32 on a CPU"
            )
        product = self._original["create_dot"](a, b, *arguments)
        self.recording.dots += 1
        self.recording.flops += 2 * product.data.size * a.data.shape[-1]
        self.recording.largest = max(self.recording.largest, product.data.size)
        return product

    def _touch(
        self, pointers: Any, mask: Any, verb: str, values: Any = None
    ) -> tuple[Any, list[str]]:
        """Check and count one access; returns pointers with real addresses, and the names of the
        tensors.
        """
        shape = pointers.data.shape
        on = mask.data if mask.data.shape == shape else np.broadcast_to(mask.data, shape)
        if values is not None and values.shape != shape:
            values = np.broadcast_to(values, shape)
        real, touched = self.memory.touch(pointers.data, on, verb, values)
        self.recording.largest = max(self.recording.largest, pointers.data.size)
        if self.recording.keep_steps:
            for region, offsets in touched:
                seen = np.zeros(region.extent, dtype=bool)
                seen[offsets] = True
                axes = np.nonzero(region.in_shape(seen))
                box = [range(int(axis.min()), int(axis.max()) + 1) for axis in axes]
                self.recording.steps.append((self.memory.program, verb, region.name, box))
        return type(pointers)(real, pointers.dtype), [region.name for region, _ in touched]


_HOOKED = (
    "set_grid_dim",
    "set_grid_idx",
    "create_masked_load",
    "create_masked_store",
    "create_tensor_pointer_load",
    "create_tensor_pointer_store",
    "create_atomic_rmw",
    "create_atomic_cas",
    "create_barrier",
    "create_dot",
)


def _tensors_in(value: Any) -> list[Any]:
    """The tensors of an argument, which may be a tensor, a descriptor or a tuple."""
    if isinstance(value, tuple):
        return [tensor for part in value for tensor in _tensors_in(part)]
    tensor = getattr(value, "base", value)
    return [tensor] if hasattr(tensor, "data_ptr") else []


def _as_handle(mask: Any) -> Any:
    """A mask as a handle: block pointers and descriptors pass a bare array."""
    if isinstance(mask, np.ndarray):
        return interpreter.TensorHandle(mask, triton.language.int1)
    return mask


def _naming_unchecked_axes(fault: KernelFault, pointer: Any, boundary_check: Any) -> KernelFault:
    """A fault of a block pointer, with the axes that `boundary_check` leaves out."""
    axes = [str(axis) for axis in range(len(pointer.block_shape)) if axis not in boundary_check]
    if not axes:
        return fault
    return KernelFault(
        f"{fault}; boundary_check of this block pointer leaves out axis {' and '.join(axes)}"
    )


def _interpreted() -> bool:
    return isinstance(triton.language.max, interpreter.InterpretedFunction)


def install() -> Strict:
    """The strict interpreter of this process.

    Raises:
        UnknownTriton: this Triton is older than the tested versions, or newer, and a small kernel
            fails in it.
    """
    strict = getattr(interpreter, "attention_kit_strict", None)
    if strict is None:
        version = tuple(int(part) for part in triton.__version__.split(".")[:2])
        if version < _TESTED[0]:
            raise _unknown()
        try:
            strict = Strict()
            if version > _TESTED[1]:
                _probe(strict)
        except Exception as error:
            raise _unknown(f", in which it fails ({type(error).__name__}: {error})") from error
        interpreter.attention_kit_strict = strict
    return strict


def _unknown(reason: str = "") -> UnknownTriton:
    return UnknownTriton(
        "the strict interpreter knows Triton 3.6 to 3.9, and this is "
        f"{triton.__version__}{reason}: pip install triton==3.7.1"
    )


@triton.jit
def _probe_kernel(x_ptr, y_ptr, n, block: triton.language.constexpr):
    """Each program adds its row's sum to its row."""
    places = triton.language.program_id(0) * n + triton.language.arange(0, block)
    inside = triton.language.arange(0, block) < n
    x = triton.language.load(x_ptr + places, mask=inside, other=0.0)
    triton.language.store(y_ptr + places, x + triton.language.sum(x, 0), mask=inside)


def _probe(strict: Strict) -> None:
    """Run a right kernel, and check that a kernel which leaves its tensor is refused."""
    x, y = torch.arange(6.0), torch.zeros(6)
    with strict.record({}) as seen:
        _probe_kernel[(2,)](x, y, 3, block=4)
    if y.tolist() != [3.0, 4.0, 5.0, 15.0, 16.0, 17.0] or (seen.programs, dict(seen.loads)) != (
        2,
        {"x": 6},
    ):
        raise RuntimeError("a small kernel is not what it should be")
    with contextlib.suppress(KernelFault):
        _probe_kernel[(2,)](x, y, 4, block=4)
        raise RuntimeError("an address past the end is not refused")


def trace(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> tuple[Any, Recording]:
    """Call a function that launches kernels; returns its result and a recording of all accesses.

    Print the recording to read it; `recording.reads["k"]` counts how often each element of k was
    read. Tensors that the function was given have the names of its parameters, others those of the
    kernel's parameters.
    """
    if not _interpreted():
        raise RuntimeError(
            "kernels run on the GPU here: to trace them set TRITON_INTERPRET=1 before "
            "triton is imported"
        )
    bound = inspect.signature(function).bind(*arguments, **keywords).arguments
    names = {
        t.untyped_storage().data_ptr(): name
        for name, t in bound.items()
        if isinstance(t, torch.Tensor)
    }
    with install().record(names, keep_steps=True) as recording:
        result = function(*arguments, **keywords)
    return result, recording


if _interpreted():
    install()


from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """A GPU's figures.

    Attributes:
        half_flops: operations in a second by the tensor cores on float16 and bfloat16.
        tf32_flops: the same on float32 that is rounded to 10 bits.
        float32_flops: operations in a second on whole float32, without the tensor cores.
        bytes_a_second: between the chip and its memory.
        capability: NVIDIA's number of the chip's kind.
        shared_bytes: the most shared memory of one program.
        shared_bytes_of_processor: shared memory of a multiprocessor, for all programs on it.
        registers: registers of a multiprocessor.
        registers_of_thread: the most registers of one thread.
        warps: the most warps on a multiprocessor; a warp is 32 threads.
        programs: the most programs on a multiprocessor.
        warps_of_program: the most warps of one program.
    """

    name: str
    half_flops: float
    tf32_flops: float
    float32_flops: float
    bytes_a_second: float
    capability: int = 90
    shared_bytes: int = 227 << 10
    shared_bytes_of_processor: int = 228 << 10
    registers: int = 64 << 10
    registers_of_thread: int = 255
    warps: int = 64
    programs: int = 32
    warps_of_program: int = 32


H100 = Gpu("H100", 989.5e12, 494.7e12, 67e12, 3.35e12)
H200 = Gpu("H200", 989.5e12, 494.7e12, 67e12, 4.8e12)


import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction


@dataclass(frozen=True)
class KernelLaunch:
    """A kernel with the arguments of one launch.

    Attributes:
        kernel: Triton's object, made for a GPU or for the interpreter.
        keywords: arguments by name, and options such as `num_warps`.
    """

    kernel: Any
    grid: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


def capture_launches(
    function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> list[KernelLaunch]:
    """The launches that a call of `function` makes.

    No kernel runs, so tensors may lie on torch's device "meta", which has no memory: sizes can be
    as large as on a GPU. A kernel with several configurations gives a launch for each.
    """
    launches: list[KernelLaunch] = []

    def note(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **options: Any) -> None:
        launches.append(KernelLaunch(kernel, grid, args, options))

    def note_each_configuration(tuner: Any, *args: Any, **options: Any) -> None:
        for config in tuner.configs:
            tuner.fn.run(*args, **{**options, **config.all_kwargs()})

    with (
        _replaced(note, InterpretedFunction, JITFunction),
        _replaced(note_each_configuration, Autotuner),
    ):
        function(*arguments, **keywords)
    return launches


@contextlib.contextmanager
def noted_launches() -> Iterator[list[KernelLaunch]]:
    """Inside the block, the launches of kernels, which run as without it."""
    launches: list[KernelLaunch] = []

    def noting(run_kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **options: Any) -> Any:
            launches.append(KernelLaunch(kernel, grid, args, options))
            return run_kernel(kernel, *args, grid=grid, warmup=warmup, **options)

        return run

    with contextlib.ExitStack() as patches:
        for kernel_type in (InterpretedFunction, JITFunction):
            patches.enter_context(_replaced(noting(kernel_type.run), kernel_type))
        yield launches


@contextlib.contextmanager
def _replaced(run: Callable[..., Any], *kernel_types: Any) -> Iterator[None]:
    """Inside the block, launches of these kinds of kernels call `run`."""
    with contextlib.ExitStack() as patches:
        for kernel_type in kernel_types:
            patches.enter_context(mock.patch.object(kernel_type, "run", run))
        yield


import functools
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import triton
from triton._C.libtriton import ir, nvidia, passes
from triton.backends.compiler import GPUTarget
from triton.compiler import code_generator
from triton.compiler.compiler import ASTSource, make_backend
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, create_function_from_signature


_SHARED_OF_SYSTEM = 1 << 10  # bytes that CUDA adds to the shared memory of each program
_REGISTER_STEP = 8  # a warp gets registers in steps of 8 for each of its 32 threads
_THREADS = 32
_ASSEMBLER_SECONDS = 120.0
_USUAL_WARPS, _USUAL_STAGES = 4, 3
_WARPS = (1, 2, 4, 8, 16, 32)
_PTX_VERSION = 80  # of PTX, for a pass that asks for a version and needs none without a GPU


class OutOfResources(Exception):
    """No such GPU could launch the kernel: a program asks for more than the GPU has."""


@dataclass(frozen=True)
class Resources:
    """The needs of one program of a kernel.

    Attributes:
        registers: of each thread.
        spilled_bytes: bytes of each thread that found no register and go to memory and back.
        shared_bytes: shared memory.
        programs: programs that a multiprocessor keeps at a time; 0 where it can launch none.
        bound_by: what keeps more programs away.
    """

    kernel: str
    types: str
    gpu: Gpu
    num_warps: int
    registers: int
    spilled_bytes: int
    shared_bytes: int
    programs: int
    bound_by: str

    @property
    def occupancy(self) -> float:
        """The share of the warps that a multiprocessor could keep."""
        return self.programs * self.num_warps / self.gpu.warps

    def __str__(self) -> str:
        spills = f"{self.spilled_bytes} bytes spilled" if self.spilled_bytes else "nothing spilled"
        return (
            f"{self.kernel}({self.types}) on {self.gpu.name}: {self.registers} registers a thread, "
            f"{spills}, {self.shared_bytes} of {self.gpu.shared_bytes} bytes of shared memory, "
            f"{self.num_warps} warps; a multiprocessor keeps {self.programs} programs "
            f"({self.occupancy:.0%} of its warps), limited by {self.bound_by}"
        )


def resources(
    function: Callable[..., Any], *arguments: Any, gpu: Gpu = H200, **keywords: Any
) -> list[Resources]:
    """Compile the kernels that a call of `function` launches, and tell their needs.

    No kernel runs, and tensors may be on torch's device "meta".

    Raises:
        OutOfResources: no such GPU could launch a kernel.
    """
    needs = []
    for launch in capture_launches(function, *arguments, **keywords):
        resource = resources_of(launch, gpu)
        if resource not in needs:
            needs.append(resource)
    return needs


def resources_of(launch: KernelLaunch, gpu: Gpu = H200) -> Resources:
    """The needs of one launch's kernel. Takes seconds: the assembler runs.

    Raises:
        OutOfResources: no such GPU could launch the kernel.
    """
    compiled = GpuCompilation(launch, gpu)
    shared_bytes = compiled.shared_bytes()
    refuse_too_much(compiled.name, compiled.num_warps, shared_bytes, gpu)
    registers, spilled_bytes = assemble(compiled.ptx(), gpu.capability)
    programs, bound_by = occupancy(gpu, compiled.num_warps, registers, shared_bytes)
    return Resources(
        kernel=compiled.name,
        types=compiled.types,
        gpu=gpu,
        num_warps=compiled.num_warps,
        registers=registers,
        spilled_bytes=spilled_bytes,
        shared_bytes=shared_bytes,
        programs=programs,
        bound_by=bound_by,
    )


def refuse_too_much(kernel: str, num_warps: int, shared_bytes: int, gpu: Gpu) -> None:
    """Refuse what a launch on a GPU would refuse.

    Raises:
        OutOfResources: names the resource, and what to do.
    """
    if shared_bytes > gpu.shared_bytes:
        raise OutOfResources(
            f"{kernel} needs {shared_bytes} bytes of shared memory for a program, and an "
            f"{gpu.name} has {gpu.shared_bytes}: smaller tiles, or a smaller num_stages"
        )
    if num_warps > gpu.warps_of_program:
        raise OutOfResources(
            f"{kernel} asks for num_warps={num_warps}, and a program on an {gpu.name} has at most "
            f"{gpu.warps_of_program}"
        )


def occupancy(gpu: Gpu, num_warps: int, registers: int, shared_bytes: int) -> tuple[int, str]:
    """How many programs a multiprocessor keeps at a time, and what keeps more away."""
    of_a_thread = -(-registers // _REGISTER_STEP) * _REGISTER_STEP
    limits = {
        "the number of programs": gpu.programs,
        "the number of warps": gpu.warps // num_warps,
        "shared memory": gpu.shared_bytes_of_processor // (shared_bytes + _SHARED_OF_SYSTEM),
        "registers": gpu.registers // (of_a_thread * _THREADS) // num_warps,
    }
    bound_by = min(limits, key=limits.__getitem__)
    return limits[bound_by], bound_by


def refuse_large_launches(launches: list[KernelLaunch], largest: int, gpu: Gpu = H200) -> None:
    """Refuse launches that a GPU would refuse. Compiles the kernels where the largest tile could
    make one too large; no assembler runs, and no other process.

    Args:
        largest: elements of the largest tile of these launches.

    Raises:
        OutOfResources: names the kernel.
    """
    for launch in launches:
        name = launch.kernel.__name__
        num_warps = launch.keywords.get("num_warps", _USUAL_WARPS)
        stages = launch.keywords.get("num_stages", _USUAL_STAGES)
        if num_warps not in _WARPS:
            choices = "1, 2, 4, 8, 16 or 32"
            raise OutOfResources(f"{name} asks for num_warps={num_warps}; a GPU takes {choices}")
        # two operands in each stage of the loop, of 4 bytes an element
        if 2 * 4 * largest * max(stages, 1) > gpu.shared_bytes:
            compiled = GpuCompilation(launch, gpu)
            refuse_too_much(name, num_warps, compiled.shared_bytes(), gpu)


class GpuCompilation:
    """A kernel on its way to a GPU, for the argument types and constants of one launch.

    Attributes:
        types: the types and constants, for people.
    """

    def __init__(self, launch: KernelLaunch, gpu: Gpu) -> None:
        kernel = _compilable(launch.kernel)
        target = GPUTarget("cuda", gpu.capability, _THREADS)
        self._backend = make_backend(target)
        bind = create_function_from_signature(kernel.signature, kernel.params, self._backend)
        bound, specialization, options = bind(*launch.arguments, **launch.keywords)
        self._options, signature, constants, attributes = kernel._pack_args(
            self._backend, options, bound, specialization, options
        )
        self.name = str(kernel.__name__)
        self.num_warps = int(self._options.num_warps)
        pointers = [kind for kind in signature.values() if str(kind).startswith("*")]
        chosen = [f"{p.name}={bound[p.name]}" for p in kernel.params if p.is_constexpr]
        self.types = ", ".join([*dict.fromkeys(pointers), *chosen])
        context = ir.context()
        ir.load_dialects(context)
        self._backend.load_dialects(context)
        source = ASTSource(kernel, signature, constants, attributes)
        with mock.patch.object(code_generator, "CodeGenerator", _generator()):
            self._module = source.make_ir(
                target,
                self._options,
                self._backend.get_codegen_implementation(self._options),
                self._backend.get_module_map(),
                context,
            )
        self._stages: dict[str, Callable[..., Any]] = {}
        self._backend.add_stages(self._stages, self._options, source.language)
        self._metadata: dict[str, Any] = {}
        self._module = self._stages["ttir"](self._module, self._metadata)
        self.text = str(self._module)
        self._context = context

    @functools.cache  # noqa: B019  (a compilation lives as long as its one use)
    def _gpu_module(self) -> Any:
        return self._stages["ttgir"](self._module, self._metadata)

    def shared_bytes(self) -> int:
        """Shared memory of one program. Takes a tenth of a second: no code is generated."""
        module = self._gpu_module()
        manager = ir.pass_manager(module.context)
        passes.ttgpuir.add_combine_tensor_select_and_if(manager)
        try:
            passes.ttgpuir.add_allocate_warp_groups(manager)
        except TypeError:  # from Triton 3.9 on it also asks whether races are looked for
            passes.ttgpuir.add_allocate_warp_groups(manager, False)
        passes.convert.add_scf_to_cf(manager)
        capability = self._backend.target.arch
        nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(manager, capability, _PTX_VERSION)
        manager.run(module, "shared_memory")
        return int(module.get_int_attr("ttg.shared"))

    def ptx(self) -> str:
        """The text for the assembler."""
        module = self._stages["llir"](self._gpu_module(), self._metadata)
        return str(self._stages["ptx"](module, self._metadata))


def assemble(ptx: str, capability: int) -> tuple[int, int]:
    """Registers of a thread, and bytes of a thread that are spilled, by the assembler's report.

    Raises:
        OSError: the assembler fails, or is not there.
    """
    from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

    arch = sm_arch_from_capability(capability)
    with tempfile.TemporaryDirectory(prefix="resources-") as folder:
        text, program = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        text.write_text(ptx, encoding="utf-8")
        command = [get_ptxas(capability).path, "-v", f"--gpu-name={arch}", str(text)]
        done = subprocess.run(
            [*command, "-o", str(program)],
            capture_output=True,
            text=True,
            timeout=_ASSEMBLER_SECONDS,
            check=False,
        )
    registers = re.search(r"Used (\d+) registers", done.stderr)
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    if done.returncode or registers is None or spills is None:
        raise OSError(f"NVIDIA's assembler fails: {done.stderr.strip()[-300:]}")
    return int(registers[1]), int(spills[1])


@functools.cache
def _compilable(function: Any) -> Any:
    """The form of a function of @triton.jit that Triton compiles. Any other value stays."""
    if not isinstance(function, InterpretedFunction):
        return function
    compilable: Any = JITFunction(function.fn, **function.kwargs)
    # Triton would hash every called function, and knows no hash of an interpreted function
    compilable.hash = f"{compilable.__qualname__} {id(function)}"
    return compilable


@functools.cache
def _interpreted_members() -> dict[Any, Any]:
    """Methods of tensors that Triton's interpreter replaced, with the functions of `tl` that do the
    same.
    """
    members = {}
    for name in vars(triton.language.tensor):
        function = getattr(triton.language, name, None)
        if isinstance(function, InterpretedFunction):
            members[getattr(triton.language.tensor, name)] = function
    return members


def _generator() -> Any:
    """Triton's code generator, for functions that were made to be interpreted as well."""

    class Generator(code_generator.CodeGenerator):
        def __init__(
            self, context: Any, prototype: Any, gscope: Any, *arguments: Any, **named: Any
        ) -> None:
            scope = {
                name: _compilable(value) if isinstance(value, InterpretedFunction) else value
                for name, value in gscope.items()
            }
            super().__init__(context, prototype, scope, *arguments, **named)

        def call_Function(self, node: Any, fn: Any, args: Any, kws: Any) -> Any:  # noqa: N802
            member = _interpreted_members().get(getattr(fn, "__func__", None))
            if member is not None:  # x.sum(0) for tl.sum(x, 0)
                fn, args = member, [fn.__self__, *args]
            if isinstance(fn, InterpretedFunction):
                fn = _compilable(fn)
            return super().call_Function(node, fn, args, kws)

    return Generator


import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch


__all__ = ["H100", "H200", "Roofline", "resources", "roofline"]

_DOT = re.compile(r"tt\.dot [^:]*?(inputPrecision = tf32)?\s*: tensor<[\dx]+x(\w+)[,>]")
_WHOLE, _ROUNDED, _HALF = "float32", "tf32", "half"


@dataclass(frozen=True)
class Roofline:
    """The work of a function's kernels.

    Attributes:
        flops: operations of `tl.dot`; a product and its sum are two.
        bytes_moved: bytes that programs load and store. Some come from the chip's cache: a GPU can
            be faster than this traffic says.
        precision: of the slowest product: "float32", "tf32" or "half"; "half" where there is none.
    """

    flops: int
    bytes_moved: int
    precision: str

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.bytes_moved

    def flops_a_second(self, gpu: Gpu) -> float:
        """The most that the GPU can do of these operations in a second."""
        return min(self.peak(gpu), self.intensity * gpu.bytes_a_second)

    def peak(self, gpu: Gpu) -> float:
        """The GPU's speed for products of this precision, if no byte had to be moved."""
        peaks = {
            _WHOLE: gpu.float32_flops,
            _ROUNDED: gpu.tf32_flops,
            _HALF: gpu.half_flops,
        }
        return peaks[self.precision]

    def seconds(self, gpu: Gpu) -> float:
        """The least time on this GPU."""
        return max(self.flops / self.peak(gpu), self.bytes_moved / gpu.bytes_a_second)

    def bound_by(self, gpu: Gpu) -> str:
        """What the GPU waits for: "traffic" or "products"."""
        waits = self.intensity * gpu.bytes_a_second < self.peak(gpu)
        return "traffic" if waits else "products"


def roofline(
    recording: Any, function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> Roofline:
    """The work of the kernels that a function launches.

    Args:
        recording: the trace of the same call, `trace(function, …)[1]`.
    """
    launches = capture_launches(function, *arguments, **keywords)
    sizes = _element_sizes(function, arguments, keywords, launches)
    moved = sum(
        count * sizes[name]
        for counts in (recording.loads, recording.stores)
        for name, count in counts.items()
    )
    return Roofline(recording.flops, moved, _slowest_precision(launches))


def _element_sizes(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    launches: list[KernelLaunch],
) -> dict[str, int]:
    """Bytes of an element of each tensor, by the names of a recording."""
    tensors: dict[str, Any] = {}
    for launch in launches:
        parameters = launch.kernel.arg_names
        by_parameter = {**dict(zip(parameters, launch.arguments, strict=False)), **launch.keywords}
        for name, value in by_parameter.items():
            tensors[name.removesuffix("_ptr")] = value
    tensors |= inspect.signature(function).bind(*arguments, **keywords).arguments
    return {
        name: value.element_size()
        for name, value in tensors.items()
        if isinstance(value, torch.Tensor)
    }


def _slowest_precision(launches: list[KernelLaunch]) -> str:
    precisions = set()
    for text in {GpuCompilation(launch, H200).text for launch in launches}:
        for rounded, element in _DOT.findall(text):
            if element != "f32":
                precisions.add(_HALF)
            else:
                precisions.add(_ROUNDED if rounded else _WHOLE)
    slowest_first = (_WHOLE, _ROUNDED, _HALF)
    return next((kind for kind in slowest_first if kind in precisions), _HALF)
