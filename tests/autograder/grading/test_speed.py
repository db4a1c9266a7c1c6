"""What keeps grading quick, without a clock: what is loaded, what is sent, what is counted
where.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from autograder.grading.extras import EXTRAS
from autograder.wire.frames import pack
from autograder.wire.values import Encoder

ROOT = Path(__file__).resolve().parents[3]

COUNTING = """
import sys
import torch
from autograder.wire.cost_counter import CostCounter
with CostCounter() as counter:
    torch.ones(2, 3) @ torch.ones(3, 4)
assert counter.flops == 2 * 2 * 3 * 4, counter.flops
print("torch._dynamo" in sys.modules, "sympy" in sys.modules)
"""


def test_counting_costs_loads_no_compiler() -> None:
    """It would double the time that the host takes to start, and the memory that every fork
    copies.
    """
    said = subprocess.run(
        [sys.executable, "-c", COUNTING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["False", "False"]


def packed(tensors: dict[str, torch.Tensor]) -> bytes:
    """The tensors as the wire sends them, under these names."""
    encoder = Encoder(lambda _: None)
    encoder.encode(list(tensors.values()))
    return pack(dict(zip(tensors, encoder.tensors.values(), strict=True)))


@pytest.mark.parametrize(
    "tensors",
    [
        {"0": torch.arange(6, dtype=torch.float64).reshape(2, 3)},
        {"0": torch.tensor(2.5), "1": torch.tensor(7, dtype=torch.float64)},
        {"0": torch.zeros(0, 3)},
        {"0": torch.tensor([True, False, True])},
        {
            "0": torch.arange(4, dtype=torch.int32),
            "1": torch.arange(4, dtype=torch.int16),
        },
        {"0": torch.ones(3, dtype=torch.bfloat16)},
    ],
)
def test_a_block_of_tensors_reads_back_as_safetensors(
    tensors: dict[str, torch.Tensor],
) -> None:
    from safetensors.torch import load

    back = load(packed(tensors))
    assert back.keys() == tensors.keys()
    for key, value in tensors.items():
        assert back[key].dtype == value.dtype
        assert torch.equal(back[key], value)
        assert back[key].shape == value.shape


def test_a_block_of_one_kind_is_what_safetensors_writes() -> None:
    tensors = {
        str(i): torch.full((2, i), float(i), dtype=torch.float64) for i in (1, 2, 3)
    }
    assert packed(tensors) == save(tensors)


def test_layout_and_memory_shared_with_others_do_not_matter() -> None:
    whole = torch.arange(12, dtype=torch.float64).reshape(3, 4)
    from safetensors.torch import load

    back = load(packed({"turned": whole.t(), "column": whole[:, 1], "same": whole}))
    assert back["turned"].tolist() == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    assert back["column"].tolist() == [1, 5, 9]
    assert back["same"].tolist() == whole.tolist()


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("opt = torch.optim.SGD(p, lr=0.1)", "dynamo"),
        ("from torch.utils.checkpoint import checkpoint", "dynamo"),
        ("y.backward(torch.ones(3))", "sympy"),
        ("torch.autograd.grad(y, x, grad_outputs=g)", "sympy"),
        ("import matplotlib.pyplot as plt", "matplotlib"),
    ],
)
def test_what_makes_torch_load_more_is_seen(code: str, extra: str) -> None:
    assert {name for name, sign in EXTRAS.items() if sign.search(code)} - {"torch"} == {
        extra
    }


def test_a_plain_backward_needs_nothing_more() -> None:
    assert not any(sign.search("loss.sum().backward()") for sign in EXTRAS.values())
