"""A strict interpreter for Triton kernels on a CPU: errors that a GPU would not forgive are faults
with a name.

Triton's interpreter runs programs one after the other on real memory: an address past the end reads
rubbish or corrupts the heap, a masked lane without `other` is 0, races do not show, and Python runs
that no GPU would compile. The strict interpreter checks and counts every access, and compiles every
kernel first, as far as that goes without a GPU. `build` copies its text into notebooks with
kernels, so the text uses nothing but numpy, torch and triton.
"""

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

from autograder.kernels.autotune import Autotuned
from autograder.kernels.compiler import Compiler
from autograder.kernels.language import Language
from autograder.kernels.memory import KernelFault, Memory, program_in_words
from autograder.kernels.tape import Recorder

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


@triton.jit  # type: ignore[untyped-decorator]
def _probe_kernel(x_ptr, y_ptr, n, block: triton.language.constexpr):  # type: ignore[no-untyped-def]
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
