"""The needs of kernels on a GPU, told without one: figures that follow from a kernel's text."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from launched import launched
from sized_kernels import centered, filled, product

from autograder.course import load_course
from autograder.kernels.gpu_figures import H100, H200
from autograder.kernels.launch_capture import capture_launches
from autograder.kernels.resources import OutOfResources, occupancy, resources
from autograder.kernels.roofline import Roofline, roofline
from autograder.kernels.strict_triton import trace
from autograder.sitting.reference import load_reference

REPOSITORY = Path(__file__).resolve().parents[3]
Attention = Callable[..., Any]


@pytest.fixture(scope="module")
def attention() -> Attention:
    """The answer key's `triton_attention`."""
    answers = load_reference(load_course(REPOSITORY).assignment("a7_tiled_attention"))
    function: Attention = answers["triton_attention"]
    return function


def on_meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


def test_launches_are_captured_and_not_run() -> None:
    x = torch.zeros(100)
    launches = capture_launches(filled, x)
    assert x.tolist() == [0.0] * 100
    assert [launch.keywords["SIZE"] for launch in launches] == [64, 128]
    assert [launch.keywords["num_warps"] for launch in launches] == [2, 4]
    assert [launch.arguments[1] for launch in launches] == [100, 100]


def test_values_beyond_a_thread_s_registers_are_spilled() -> None:
    """8192 float32 that live at the same time: 256 for each of 32 threads, which have 255
    registers; 64 for each of 128 threads.
    """
    (one_warp,) = resources(centered, on_meta(8192), num_warps=1)
    (four_warps,) = resources(centered, on_meta(8192), num_warps=4)
    assert one_warp.registers == 255
    assert one_warp.spilled_bytes > 0
    assert 64 < four_warps.registers < 128
    assert four_warps.spilled_bytes == 0
    assert "nothing spilled" in str(four_warps)
    assert f"{one_warp.spilled_bytes} bytes spilled" in str(one_warp)


def test_operands_of_a_product_lie_in_shared_memory() -> None:
    """Two tiles of 64 × 64 float16 are 16 KB, and the program has little else."""
    (needs,) = resources(product, *[on_meta(64, 64, dtype=torch.float16)] * 2)
    assert 16384 <= needs.shared_bytes < 32768
    assert needs.kernel == "product_kernel"
    assert needs.types == "*fp16, *fp32, SIZE=64, PRECISION=ieee"


def test_more_shared_memory_than_a_gpu_has_is_refused() -> None:
    """Two tiles of 256 × 256 float32 are 512 KB, and an H200 has 227."""
    pattern = r"product_kernel needs \d+ bytes of shared memory .* an H200 has 232448"
    with pytest.raises(OutOfResources, match=pattern):
        resources(product, on_meta(256, 256), on_meta(256, 256))
    with pytest.raises(
        OutOfResources, match="num_warps=64, and a program on an H100 has at most 32"
    ):
        resources(centered, on_meta(4096), gpu=H100, num_warps=64)


def test_a_launch_in_grading_is_refused_where_a_gpu_would_refuse_it() -> None:
    x = torch.ones(256, 256)
    with pytest.raises(OutOfResources, match="of shared memory"):
        launched(product, (x, x))
    with pytest.raises(OutOfResources, match="num_warps=6; a GPU takes 1, 2, 4"):
        launched(lambda x: centered(x, num_warps=6), (x[0],))
    assert (
        launched(lambda x: centered(x, num_warps=None, num_stages=None), (x[0],))[1][
            "kernels"
        ]
        == 1
    )
    y, figures = launched(product, (x[:16, :16].contiguous(), x[:16, :16].contiguous()))
    assert figures["dots"] == 1
    assert y[0, 0] == 2 * 16 + 2 * 16


@pytest.mark.parametrize(
    ("num_warps", "registers", "shared_bytes", "expected"),
    [
        (4, 82, 32768, (5, "registers")),  # 88 · 32 · 4 = 11264 of 65536
        (4, 118, 65536, (3, "shared memory")),  # 66560 of 233472
        (4, 29, 16, (16, "the number of warps")),  # 64 / 4
        (1, 16, 0, (32, "the number of programs")),
        (8, 255, 0, (1, "registers")),  # all of 65536
    ],
)
def test_how_many_programs_a_multiprocessor_keeps(
    num_warps: int, registers: int, shared_bytes: int, expected: tuple[int, str]
) -> None:
    assert occupancy(H200, num_warps, registers, shared_bytes) == expected


def test_the_answer_key_s_attention_spills_next_to_nothing(
    attention: Attention,
) -> None:
    """float32, d = 64, causal: with four warps 596 bytes of each thread were. Triton 3.8 spills 8."""
    (needs,) = resources(attention, *[on_meta(1, 4, 512, 64)] * 3, causal=True)
    assert needs.spilled_bytes <= 8
    assert needs.programs >= 2


# the roofline


def roofline_of(function: Callable[..., Any], *arguments: Any) -> Roofline:
    _, recording = trace(function, *arguments)
    return roofline(recording, function, *arguments)


def test_work_is_counted() -> None:
    """A product of 32 × 32: 2 · 32³ operations; two operands of 2 bytes, a result of 4."""
    x = torch.ones(32, 32).half()
    work = roofline_of(product, x, x.clone())
    assert (work.flops, work.bytes_moved) == (65536, 32 * 32 * (2 + 2 + 4))
    assert work.intensity == 8.0
    assert work.precision == "half"
    assert work.bound_by(H200) == "traffic"
    assert work.flops_a_second(H200) == 8 * 4.8e12
    assert work.seconds(H100) == 8192 / 3.35e12


def test_the_peak_is_that_of_the_slowest_product() -> None:
    x = torch.ones(32, 32)
    whole = roofline_of(product, x, x.clone())
    rounded = roofline_of(product, x, x.clone(), "tf32")
    assert (whole.precision, rounded.precision) == ("float32", "tf32")
    assert (whole.peak(H200), rounded.peak(H200)) == (67e12, 494.7e12)


def test_attention_on_the_roofline(attention: Attention) -> None:
    """N = 128, d = 16, two query tiles of 64: q and o once, k and v for each query tile, and a
    log-sum-exp of 4 bytes a row.
    """
    q, k, v = (torch.randn(1, 1, 128, 16) for _ in range(3))
    work = roofline_of(attention, q, k, v)
    assert work.flops == 4 * 128 * 128 * 16
    assert work.bytes_moved == 4 * (2 * 128 * 16 + 2 * 2 * 128 * 16 + 128)
    assert work.bound_by(H200) == "products"
    assert math.isclose(work.seconds(H200), work.flops / 67e12)
