"""Prepares a host for workers that run kernels on an NVIDIA GPU. No CUDA call is made here: a CUDA
context does not survive a fork, so each worker makes its own, behind the walls.

Triton starts a C compiler once in a process, and NVIDIA's assembler for each kernel. A worker
starts no process. So the C part is compiled and loaded here, and kernels go to the driver as PTX,
which it assembles in the worker itself.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any


def prepare(driver_cuda: str, driver_folder: str) -> list[str]:
    """Load Triton's part for NVIDIA GPUs; returns the folders of the driver's libraries, from which
    workers load more.

    Args:
        driver_cuda: the newest CUDA version that the driver knows, such as "13.0".
        driver_folder: the folder of libcuda, which may be one that the system's linker does not
            search.

    Raises:
        OSError: Triton's part cannot be compiled or loaded; the message says what is missing.
    """
    from triton.backends.nvidia.driver import CudaDriver
    from triton.runtime import driver

    assemble_in_the_driver(driver_cuda)
    library = Path(driver_folder, "libcuda.so.1")
    if driver_folder and library.exists():
        os.environ["TRITON_LIBCUDA_PATH"] = (
            driver_folder  # where Triton links, instead of ldconfig
        )
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)  # found by its name from now on
    try:
        driver.set_active(
            CudaDriver()
        )  # compiles: it must not be made again behind the walls
    except Exception as error:
        raise OSError(
            f"Triton's part for NVIDIA GPUs cannot be compiled here: {error}"
        ) from error
    folders = driver_folders(Path("/proc/self/maps").read_text(encoding="utf-8"))
    if not folders:
        raise OSError("the driver's library libcuda.so.1 was not loaded")
    return sorted({*folders, driver_folder} - {""})


def assemble_in_the_driver(driver_cuda: str) -> None:
    """Have Triton stop at PTX, in a version that both the driver and Triton's own assembler
    know.
    """
    from triton.backends.nvidia import compiler

    def numbers(version: str) -> list[int]:
        return [int(part) for part in version.split(".")]

    assembler = compiler.get_ptxas(80)
    version = min(assembler.version, driver_cuda, key=numbers)
    unused_assembler = type(assembler)("", version)

    def keep_ptx(
        self: Any, src: str, metadata: Any, opt: Any, capability: Any
    ) -> bytes:
        return src.encode()

    compiler.get_ptxas = lambda arch: unused_assembler
    compiler.get_ptxas_version = lambda arch=80: f"the driver, CUDA {version}"
    compiler.CUDABackend.make_cubin = keep_ptx


def driver_folders(maps: str) -> list[str]:
    """Folders of the driver's libraries in `maps`, the /proc/self/maps of a process."""
    folders = set()
    for line in maps.splitlines():
        path = line.split(maxsplit=5)[-1].strip()
        if "/libcuda.so" in line and path.startswith("/"):
            folders.add(str(Path(path).parent))
    return sorted(folders)
