"""Figures of two GPUs: their speed, and the limits of one kernel.

Speed and bandwidth are those of NVIDIA's data sheets for the H100 SXM and the H200 SXM, without
sparsity; the limits are those of compute capability 9.0 in the CUDA C++ Programming Guide.
"""

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
