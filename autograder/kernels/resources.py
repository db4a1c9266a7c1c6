"""Registers, spills, shared memory and occupancy of a kernel on an H100 or H200, without a GPU.

Triton's own passes and the assembler that Triton brings run on a CPU. So a kernel is compiled here
as for a launch on a GPU.
"""

import functools
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton._C.libtriton import ir, nvidia, passes
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.runtime.jit import create_function_from_signature

from autograder.kernels.gpu_figures import H200, Gpu
from autograder.kernels.launch_capture import KernelLaunch, capture_launches

_SHARED_OF_SYSTEM = 1 << 10  # bytes that CUDA adds to the shared memory of each program
_REGISTER_STEP = 8  # a warp gets registers in steps of 8 for each of its 32 threads
_THREADS = 32
_ASSEMBLER_SECONDS = 120.0
_USUAL_WARPS, _USUAL_STAGES = 4, 3
_WARPS = (1, 2, 4, 8, 16, 32)
_PTX_VERSION = (
    80  # of PTX, for a pass that asks for a version and needs none without a GPU
)


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
        spills = (
            f"{self.spilled_bytes} bytes spilled"
            if self.spilled_bytes
            else "nothing spilled"
        )
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


def occupancy(
    gpu: Gpu, num_warps: int, registers: int, shared_bytes: int
) -> tuple[int, str]:
    """How many programs a multiprocessor keeps at a time, and what keeps more away."""
    of_a_thread = -(-registers // _REGISTER_STEP) * _REGISTER_STEP
    limits = {
        "the number of programs": gpu.programs,
        "the number of warps": gpu.warps // num_warps,
        "shared memory": gpu.shared_bytes_of_processor
        // (shared_bytes + _SHARED_OF_SYSTEM),
        "registers": gpu.registers // (of_a_thread * _THREADS) // num_warps,
    }
    bound_by = min(limits, key=limits.__getitem__)
    return limits[bound_by], bound_by


def refuse_large_launches(
    launches: list[KernelLaunch], largest: int, gpu: Gpu = H200
) -> None:
    """Refuse launches that a GPU would refuse. Compiles the kernels where the largest tile could
    make one too large; no assembler runs, and no other process.

    Args:
        largest: elements of the largest tile of these launches.

    Raises:
        OutOfResources: names the kernel.
    """
    for launch in launches:
        name = launch.kernel.__name__
        options = {
            key: value for key, value in launch.keywords.items() if value is not None
        }
        num_warps = options.get("num_warps", _USUAL_WARPS)
        stages = options.get("num_stages", _USUAL_STAGES)
        if num_warps not in _WARPS:
            choices = "1, 2, 4, 8, 16 or 32"
            raise OutOfResources(
                f"{name} asks for num_warps={num_warps}; a GPU takes {choices}"
            )
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
        kernel = launch.kernel
        target = GPUTarget("cuda", gpu.capability, _THREADS)
        self._backend = make_backend(target)
        bind = create_function_from_signature(
            kernel.signature, kernel.params, self._backend
        )
        bound, specialization, options = bind(*launch.arguments, **launch.keywords)
        options.setdefault(
            "enable_fp_fusion", True
        )  # the default, about which Triton 3.9 warns
        self._options, signature, constant_values, attributes = kernel._pack_args(
            self._backend, options, bound, specialization, options
        )
        self.name = str(kernel.__name__)
        self.num_warps = int(self._options.num_warps)
        pointers = [kind for kind in signature.values() if str(kind).startswith("*")]
        constants = {p.name: bound[p.name] for p in kernel.params if p.is_constexpr}
        chosen = [
            f"{name}={getattr(v, '__name__', v)}" for name, v in constants.items()
        ]
        self.types = ", ".join([*dict.fromkeys(pointers), *chosen])
        context = ir.context()
        ir.load_dialects(context)
        self._backend.load_dialects(context)
        source = ASTSource(kernel, signature, constant_values, attributes)
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

    @functools.cached_property
    def _gpu_module(self) -> Any:
        return self._stages["ttgir"](self._module, self._metadata)

    def shared_bytes(self) -> int:
        """Shared memory of one program. Takes a tenth of a second: no code is generated."""
        module = self._gpu_module
        manager = ir.pass_manager(module.context)
        passes.ttgpuir.add_combine_tensor_select_and_if(manager)
        try:
            passes.ttgpuir.add_allocate_warp_groups(manager)
        except (
            TypeError
        ):  # from Triton 3.9 on it also asks whether races are looked for
            passes.ttgpuir.add_allocate_warp_groups(manager, False)
        passes.convert.add_scf_to_cf(manager)
        capability = self._backend.target.arch
        nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(
            manager, capability, _PTX_VERSION
        )
        manager.run(module, "shared_memory")
        return int(module.get_int_attr("ttg.shared"))

    def ptx(self) -> str:
        """The text for the assembler."""
        module = self._stages["llir"](self._gpu_module, self._metadata)
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
    spills = re.search(
        r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr
    )
    if done.returncode or registers is None or spills is None:
        raise OSError(f"NVIDIA's assembler fails: {done.stderr.strip()[-300:]}")
    return int(registers[1]), int(spills[1])
