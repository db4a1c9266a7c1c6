"""Loads the libraries of a host and makes them do once what they would do late in every worker."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

_MODULES_BY_EXTRA = {
    "matplotlib": ("matplotlib.pyplot",),
    "dynamo": ("torch._dynamo", "torch.optim"),
    "sympy": ("torch.fx.experimental.symbolic_shapes",),
    "triton": (
        "triton",
        "triton.language",
        "autograder.kernels.roofline",
        "autograder.worker.warm_triton",
    ),
    "triton on a device": ("triton", "triton.language"),
}


def prepare_environment(scratch: str, device: str) -> None:
    """Set one thread (a fork of a process that has run two hangs), no files written, and for the
    device "cpu" Triton's interpreter.
    """
    for variable in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ):
        os.environ[variable] = "1"
    for variable in ("TRITON_HOME", "TORCHINDUCTOR_CACHE_DIR", "MPLCONFIGDIR"):
        os.environ[variable] = scratch
    os.environ.update(MPLBACKEND="Agg", **interpreter_environment(device))
    sys.dont_write_bytecode = True


def interpreter_environment(device: str) -> dict[str, str]:
    """The variable that has Triton's own interpreter run kernels: the device "cpu" of the kit's
    tests has no other driver.
    """
    return {"TRITON_INTERPRET": "1"} if device == "cpu" else {}


def triton_environment(scratch: str) -> dict[str, str]:
    """Variables for Triton in a worker with a device: it keeps what it compiles in its scratch
    folder, and the driver keeps nothing.
    """
    return {
        "TRITON_HOME": scratch,
        "TRITON_CACHE_DIR": f"{scratch}/triton",
        "CUDA_CACHE_DISABLE": "1",
    }


def warm_libraries(extras: list[str]) -> None:
    """Do once, single-threaded and before any wall, what the libraries would do late in every
    worker.
    """
    import numpy

    numpy.linalg.svd(numpy.eye(3))
    if "torch" in extras:
        with contextlib.suppress(ImportError):
            _warm_torch()
    for extra in extras:
        for module in _MODULES_BY_EXTRA.get(extra, ()):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
    if torch := sys.modules.get("torch"):
        # torch's table of FLOPs imports triton where it is installed: seventy mappings more for
        # every fork to copy
        with _without("triton"):
            importlib.import_module("autograder.wire.cost_counter")
        importlib.import_module("autograder.wire.gradients")
        torch.manual_seed(0)


def _warm_torch() -> None:
    """Import torch and run the operations whose first call is slow."""
    import torch

    torch.set_num_threads(1)
    functional = torch.nn.functional
    q = torch.randn(1, 2, 6, 6, requires_grad=True)
    functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        a = torch.ones(6, 6, dtype=dtype)
        (a @ a).softmax(-1)
    functional.layer_norm(torch.ones(2, 6), (6,))
    functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1]))
    functional.conv2d(torch.ones(1, 3, 6, 6), torch.ones(2, 3, 3, 3))
    torch.einsum("ij,jk->ik", torch.eye(3), torch.eye(3))
    torch.linalg.svd(torch.eye(3))
    repr(q)


@contextlib.contextmanager
def _without(module: str) -> Iterator[None]:
    """Inside the block, `module` cannot be imported, unless it is imported already."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]  # the import system's "is not there"
    try:
        yield
    finally:
        del sys.modules[module]


def warm_loop() -> None:
    """Make one call through a worker's own code, so that no module of the kit is imported or
    compiled behind the walls.
    """
    import numpy

    from autograder.wire.frames import Frame, receive_frame, send_frame
    from autograder.wire.libraries import loaded_torch
    from autograder.wire.values import Encoder
    from autograder.worker.loop import Loop

    grader_end, worker_end = socket.socketpair()
    encoder = Encoder(lambda _: None)
    torch = loaded_torch()
    if torch:
        argument = torch.ones(3)
        source = "import torch\ndef f(x):\n    return torch.softmax(x * 2, -1)\n"
        forbidden = ["torch.nn.functional.gelu"]
    else:
        argument = numpy.ones(3)
        source = "import numpy as np\ndef f(x):\n    return np.exp(x * 2).sum(-1)\n"
        forbidden = []
    cells = [["warm", source]]
    load = {"id": 1, "op": "load", "cells": cells, "forbid": forbidden}
    call = {
        "id": 2,
        "op": "call",
        "name": "f",
        "value": encoder.encode([[argument], {}]),
        "cost": torch is not None,
    }
    send_frame(grader_end, Frame(load, {}))
    send_frame(grader_end, Frame(call, encoder.tensors))
    grader_end.shutdown(socket.SHUT_WR)
    Loop(worker_end).serve()
    receive_frame(grader_end, 1 << 20)
    header = receive_frame(grader_end, 1 << 20).header
    if not header["ok"]:
        raise RuntimeError(f"the host's own trial call failed: {header}")
    grader_end.close()
    worker_end.close()
    for name in ("student", "google", "google.colab"):
        sys.modules.pop(name, None)


def compile_released_code(path: Path) -> None:
    """Compile the release's given cells (id to text) and companions (path to text), which lie in a
    JSON file, once for all workers.
    """
    from autograder.worker.cells import compile_ahead
    from autograder.worker.companion_modules import compile_companions_ahead

    code = json.loads(path.read_text(encoding="utf-8"))
    compile_ahead(code["cells"])
    compile_companions_ahead(code["companions"])
