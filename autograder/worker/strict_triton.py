"""A strict interpreter for Triton kernels on a CPU: what a GPU would not forgive is a fault with a name.

Triton's own interpreter runs programs one after the other on real memory: an address past the end reads rubbish or
corrupts the heap, a masked lane without `other` is 0, and races do not show. Here every tensor gets addresses of its
own, so that each access can be told apart, checked and counted. The same text stands in the notebook that needs it
(`build` copies it), so it uses nothing but numpy, torch and triton.
"""

import contextlib
import inspect
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import triton
from triton.runtime import interpreter

_SPAN = 40  # every tensor owns 2**40 bytes of addresses, half of them before its first element
_POISON = {"f": float("nan"), "b": True}


class KernelFault(Exception):
    """What a kernel did, in words: which program, which tensor, which element."""


class UnknownTriton(ImportError):
    """This version of Triton has no interpreter that the strict one could hook into."""


class Region:
    """One tensor argument of a running kernel: which addresses are its own, and how often each element was touched."""

    def __init__(self, name: str, tensor: Any, number: int) -> None:
        self.name, self.tensor, self.base = name, tensor, number << _SPAN
        self.shape, self.strides = list(tensor.shape), list(tensor.stride())
        extent = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)) if tensor.numel() else 0
        self.valid = np.zeros(extent, dtype=bool)
        self.in_shape(self.valid)[...] = True
        self.reads, self.writes = np.zeros(extent, dtype=np.int64), np.zeros(extent, dtype=np.int64)
        self.writer = np.full(extent, -1, dtype=np.int64)

    def in_shape(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A number for each address, seen in the tensor's shape."""
        steps = [stride * values.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(values, self.shape, steps, writeable=True)

    def index_of(self, offset: int) -> tuple[list[int], int]:
        """The index of the element `offset` after the first, and what is left over between two elements.

        An element past the end is told as a row too many: rows are the last axis but one.
        """
        index, rest, rows = [0] * len(self.shape), int(offset), max(len(self.shape) - 2, 0)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis] and (axis == rows or self.shape[axis] > 1):
                steps = rest // self.strides[axis]
                index[axis] = steps if axis == rows else max(0, min(steps, self.shape[axis] - 1))
                rest -= index[axis] * self.strides[axis]
        return index, rest


class Recording:
    """What the kernels of one call touched. `loads` and `stores` count elements by tensor; `reads` and `writes` hold
    how often each element was touched, in the tensor's shape; `steps` is the story, program by program."""

    def __init__(self, names: dict[int, str], keep_steps: bool) -> None:
        self.names, self.keep_steps = names, keep_steps  # names: by the address of a tensor's storage
        self.kernels = self.programs = self.dots = self.largest = 0
        self.loads: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self.unfilled: list[str] = []  # tensors with masked lanes loaded without `other`
        self.reads: dict[str, np.ndarray[Any, Any]] = {}
        self.writes: dict[str, np.ndarray[Any, Any]] = {}
        self.steps: list[tuple[tuple[int, ...], str, str, list[range]]] = []

    def __str__(self) -> str:
        lines: dict[tuple[int, ...], list[str]] = {}
        for program, verb, name, box in self.steps:
            spans = ", ".join(str(r.start) if len(r) == 1 else f"{r.start}…{r.stop - 1}" for r in box)
            lines.setdefault(program, []).append(f"    {verb} {name}[{spans}]")
        text = [f"program {_shown(program)}\n" + "\n".join(lines[program]) for program in sorted(lines)]
        moved = ", ".join(f"{name} {count}" for name, count in [*self.loads.items(), *self.stores.items()])
        return "\n".join([*text, f"{self.programs} programs, {self.dots} dots; elements moved: {moved}"])


class Strict:
    """The hooks in the interpreter. One for a process: `install()` makes it or finds it."""

    def __init__(self) -> None:
        self.recording = Recording({}, keep_steps=False)
        self.seed = 0
        self.regions: dict[int, Region] = {}
        self._by_tensor: dict[int, Region] = {}
        self._order: list[int] = []
        self._program: tuple[int, ...] = ()
        self._number = 0
        builder = interpreter.interpreter_builder
        self._original = {name: getattr(builder, name) for name in _HOOKED}
        for name in _HOOKED:
            setattr(builder, name, getattr(self, "_" + name))
        self._convert = interpreter._implicit_cvt
        interpreter._implicit_cvt = self._implicit_cvt
        self._wrap_executor(interpreter.GridExecutor)

    @contextlib.contextmanager
    def record(self, names: dict[int, str], *, keep_steps: bool = False) -> Iterator[Recording]:
        """Record every kernel launched inside. `names` gives tensors their names by the address of their storage."""
        before, self.recording = self.recording, Recording(names, keep_steps)
        try:
            yield self.recording
        finally:
            self.recording = before

    # a launch

    def _wrap_executor(self, executor: Any) -> None:
        """Around each launch: the tensors' names and addresses first, then the counts; faults come out as they are."""
        call, to_host = executor.__call__, executor._init_args_hst

        def init_args(grid: Any, args_dev: Any, kwargs: Any) -> Any:
            args, keywords = to_host(grid, args_dev, kwargs)
            self._open(inspect.getcallargs(grid.fn, *args, **keywords))
            return args, keywords

        def launch(grid: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                with np.errstate(all="ignore"):  # a GPU does not warn of infinities
                    call(grid, *args, **kwargs)
            except interpreter.InterpreterError as error:
                cause: BaseException = error
                while isinstance(cause, interpreter.InterpreterError) and cause.__cause__ is not None:
                    cause = cause.__cause__
                raise cause from None
            finally:
                self._close()

        executor._init_args_hst, executor.__call__ = init_args, launch

    def _open(self, arguments: dict[str, Any]) -> None:
        self._order = []
        self.recording.kernels += 1
        for name, value in arguments.items():
            tensor = getattr(value, "base", value)  # of a tensor descriptor
            if hasattr(tensor, "data_ptr"):
                known = self.recording.names.get(tensor.untyped_storage().data_ptr())
                region = Region(known or name.removesuffix("_ptr"), tensor, len(self.regions) + 1)
                self.regions[len(self.regions) + 1] = self._by_tensor[id(tensor)] = region

    def _close(self) -> None:
        for region in self.regions.values():
            for counts, kept in ((region.reads, self.recording.reads), (region.writes, self.recording.writes)):
                if counts.any():
                    before = kept.get(region.name, 0)
                    shaped = region.in_shape(counts)
                    kept[region.name] = shaped + before if np.shape(before) in ((), shaped.shape) else shaped.copy()
        self.regions, self._by_tensor = {}, {}

    def _implicit_cvt(self, argument: Any) -> Any:
        """A tensor argument as the kernel sees it: a pointer, whose address here is the tensor's own."""
        converted = self._convert(argument)
        region = self._by_tensor.get(id(argument))
        if region is not None and hasattr(argument, "data_ptr"):
            converted.handle.data = np.array([region.base], dtype=np.uint64)
        return converted

    def _set_grid_idx(self, x: int, y: int, z: int) -> None:
        """The programs in a shuffled order: on a GPU nobody knows which comes first."""
        grid = interpreter.interpreter_builder.grid_dim
        if not self._order:
            self._order = list(range(int(np.prod(grid))))
            random.Random(self.seed).shuffle(self._order)
        self._number = self._order[(x * grid[1] + y) * grid[2] + z]
        place = tuple(int(i) for i in np.unravel_index(self._number, grid))
        axes = max([axis + 1 for axis in range(3) if grid[axis] > 1], default=1)
        self._program = place[:axes]
        self.recording.programs += 1
        self._original["set_grid_idx"](*place)

    # accesses

    def _create_masked_load(self, pointers: Any, mask: Any, other: Any, *rest: Any, **options: Any) -> Any:
        real, names = self._touch(pointers, mask, "reads")
        if other is None and not mask.data.all():
            self.recording.unfilled += [name for name in names if name not in self.recording.unfilled]
            element = pointers.get_element_ty()
            kind = interpreter._get_np_dtype(element)
            lost = np.iinfo(kind).max if kind.kind in "iu" else _POISON[kind.kind]  # of bfloat16's bits: a NaN too
            other = type(pointers)(np.full(pointers.data.shape, lost, dtype=kind), element)
        return self._original["create_masked_load"](real, mask, other, *rest, **options)

    def _create_masked_store(self, pointers: Any, value: Any, mask: Any, *rest: Any, **options: Any) -> Any:
        real, _ = self._touch(pointers, mask, "writes")
        return self._original["create_masked_store"](real, value, mask, *rest, **options)

    def _create_atomic_rmw(self, operation: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        real, _ = self._touch(pointers, mask, "adds to")
        return self._original["create_atomic_rmw"](operation, real, value, mask, *rest)

    def _create_atomic_cas(self, pointers: Any, compare: Any, value: Any, *rest: Any) -> Any:
        mask = type(pointers)(np.ones_like(pointers.data, dtype=bool), triton.language.int1)
        real, _ = self._touch(pointers, mask, "adds to")
        return self._original["create_atomic_cas"](real, compare, value, *rest)

    def _create_dot(self, a: Any, b: Any, *rest: Any) -> Any:
        if triton.language.bfloat16 in (a.dtype.scalar, b.dtype.scalar):
            raise KernelFault("tl.dot of bfloat16 is wrong in the interpreter: use float16 or float32 on a CPU")
        product = self._original["create_dot"](a, b, *rest)
        self.recording.dots += 1
        self.recording.largest = max(self.recording.largest, product.data.size)
        return product

    def _touch(self, pointers: Any, mask: Any, verb: str) -> tuple[Any, list[str]]:
        """Check and count one access; the pointers with their real addresses, and whose they are."""
        on = np.broadcast_to(mask.data, pointers.data.shape)
        addresses = pointers.data[on].astype(np.int64)
        real = np.zeros(pointers.data.shape, dtype=np.uint64)
        found = np.zeros_like(addresses)
        names = []
        numbers = (addresses + (1 << (_SPAN - 1))) >> _SPAN
        for number in np.unique(numbers) if addresses.size else ():
            region = self.regions.get(int(number))
            if region is None:
                raise KernelFault(f"program {_shown(self._program)} {verb} an address that belongs to no tensor")
            mine = numbers == number
            size = region.tensor.element_size()
            offsets, beside = np.divmod(addresses[mine] - region.base, size)
            self._check(region, offsets, beside, verb)
            self._count(region, offsets, verb)
            found[mine] = region.tensor.data_ptr() + offsets * size
            names.append(region.name)
        real[on] = found.astype(np.uint64)
        self.recording.largest = max(self.recording.largest, pointers.data.size)
        return type(pointers)(real, pointers.dtype), names

    def _check(self, region: Region, offsets: Any, beside: Any, verb: str) -> None:
        inside = (offsets >= 0) & (offsets < region.valid.size)
        inside[inside] = region.valid[offsets[inside]]
        wrong = ~inside | (beside != 0)
        if wrong.any():
            name, shape = region.name, region.shape
            index, rest = region.index_of(int(offsets[wrong][0]))
            place = f"program {_shown(self._program)} {verb} {name}{index}"
            if rest or beside[wrong][0]:
                raise KernelFault(
                    f"program {_shown(self._program)} {verb} memory between the elements of {name} "
                    f"(shape {shape}, strides {region.strides}): do the strides belong to {name}?"
                )
            row = max(len(shape) - 2, 0)
            if shape and index[row] >= shape[row]:
                raise KernelFault(f"{place}, and {name} has {shape[row]} rows (its shape is {shape})")
            raise KernelFault(f"{place}, and the shape of {name} is {shape}")
        if verb == "adds to":
            return
        others = (region.writer[offsets] >= 0) & (region.writer[offsets] != self._number)
        if others.any():
            index, _ = region.index_of(int(offsets[others][0]))
            raise KernelFault(
                f"program {_shown(self._program)} {verb} {region.name}{index}, which another program has written: "
                "programs run in any order, so the result would be a matter of luck"
            )

    def _count(self, region: Region, offsets: Any, verb: str) -> None:
        if verb != "writes":
            np.add.at(region.reads, offsets, 1)
            self.recording.loads[region.name] += offsets.size
        if verb != "reads":
            np.add.at(region.writes, offsets, 1)
            self.recording.stores[region.name] += offsets.size
            if verb == "writes":
                region.writer[offsets] = self._number
        if self.recording.keep_steps:
            touched = np.zeros(region.valid.size, dtype=bool)
            touched[offsets] = True
            axes = np.nonzero(region.in_shape(touched))
            box = [range(int(axis.min()), int(axis.max()) + 1) for axis in axes]
            self.recording.steps.append((self._program, verb, region.name, box))


_HOOKED = (
    "set_grid_idx",
    "create_masked_load",
    "create_masked_store",
    "create_atomic_rmw",
    "create_atomic_cas",
    "create_dot",
)


def install() -> Strict:
    """The strict interpreter of this process.

    Raises:
        UnknownTriton: see there.
    """
    known = getattr(interpreter, "attention_kit_strict", None)
    if known is None:
        owners = {
            interpreter: ("GridExecutor", "InterpreterError", "InterpretedFunction", "_implicit_cvt", "_get_np_dtype"),
            getattr(interpreter, "interpreter_builder", None): _HOOKED,
            getattr(interpreter, "GridExecutor", None): ("_init_args_hst",),
        }
        missing = [name for owner, names in owners.items() for name in names if not hasattr(owner, name)]
        if missing:
            raise UnknownTriton(
                f"triton {triton.__version__} is not one that the strict interpreter knows (3.6 to 3.9): its own "
                f"interpreter has no {', '.join(missing)}. Install triton 3.7.1."
            )
        known = interpreter.attention_kit_strict = Strict()
    return known


def trace(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> tuple[Any, Recording]:
    """Call a function that launches kernels; its result, and what each program touched.

    Print the recording to read it; `recording.reads["k"]` counts how often each element of k was read. Tensors that
    the function was given have the names of its parameters, others those of the kernel's parameters.
    """
    if not isinstance(triton.language.max, interpreter.InterpretedFunction):
        raise RuntimeError(
            "kernels run on the GPU here: to trace them set TRITON_INTERPRET=1 before triton is imported"
        )
    given = inspect.signature(function).bind(*arguments, **keywords).arguments
    names = {t.untyped_storage().data_ptr(): name for name, t in given.items() if isinstance(t, torch.Tensor)}
    with install().record(names, keep_steps=True) as recording:
        result = function(*arguments, **keywords)
    return result, recording


def _shown(program: tuple[int, ...]) -> str:
    return str(program[0]) if len(program) == 1 else str(program)


install()
