"""A course of one question that launches a kernel, with a function to time."""

from __future__ import annotations

from pathlib import Path

from courses import handed_in, write_assignment

SOURCE = '''\
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% given="imports"
import os
import sys

import torch
import triton
import triton.language as tl

# %% question="double"
@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n, other=0.0), mask=at < n)
    ### END SOLUTION

def double(x):
    """x: [n]; gives 2 x, by a kernel."""
    ### BEGIN SOLUTION
    if x.ndim != 1:
        raise ValueError(f"{x.ndim} axes")
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(len(x), 32),)](x, y, len(x), BLOCK=32)
    return y
    ### END SOLUTION

# %% check="double"
assert double(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]

# %% question="half"
def half(x):
    """x / 2."""
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION

# %% check="half"
assert half(2.0) == 1.0
'''

SUITE = {
    "test_double.py": '''\
from autograder.suite import assert_close, assert_refused, points, randn, zeros


@points(2)
def test_every_element_is_doubled(student):
    """Is the last block ragged?"""
    x = randn(70).float()
    y, launch = student.launch("double", x)
    assert launch.programs == 3, f"{launch.programs} programs"
    assert_close(y, 2 * x)


@points(1)
def test_any_length(student):
    for n in (1, 33):
        x = randn(n).float()
        y, launch = student.launch("double", x)
        assert launch.loads == {"x": n}
        assert_close(y, 2 * x)


@points(1)
def test_one_axis_only(student):
    assert_refused(student.double, zeros(2, 3), sizes=(2,))
''',
    "test_half.py": """\
from autograder.suite import points


@points(1)
def test_halves(student):
    assert student.half(3.0) == 1.5
""",
    "mistakes.py": """\
import torch

from autograder.suite import mistake


@triton.jit
def _triple_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 3 * tl.load(x_ptr + at, mask=at < n, other=0.0), mask=at < n)


@mistake("double", hint="Twice, not three times.")
def triples(x):
    if x.ndim != 1:
        raise ValueError(f"{x.ndim} axes")
    y = torch.empty_like(x)
    _triple_kernel[(triton.cdiv(len(x), 32),)](x, y, len(x), BLOCK=32)
    return y
""",
    "speed.py": '''\
"""Doubling, timed."""

import torch

QUESTION = "double"
TOLERANCE = 1e-6


def baseline(x):
    return 2 * x


def cases():
    yield "n = 50", (torch.arange(50.0),), {}
''',
}

KERNEL = (
    "@triton.jit\n"
    "def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
    "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n, other=0.0), mask=at < n)\n"
)
WRAPPER = (
    "def double(x):\n"
    "    if x.ndim != 1:\n"
    "        raise ValueError(f'{x.ndim} axes')\n"
    "    y = torch.empty_like(x)\n"
    "    double_kernel[(triton.cdiv(len(x), 32),)](x, y, len(x), BLOCK=32)\n"
    "    DO\n"
    "    return y\n"
)
ON_DEVICE = "'autograder.worker.launches' not in sys.modules"
"""True in a worker with a device, which loads no strict interpreter."""


def answer(do: str = "pass") -> str:
    """A right answer whose wrapper also does this before it returns y."""
    return KERNEL + "\n\n" + WRAPPER.replace("DO", do)


def write_course(root: Path) -> None:
    write_assignment(
        root,
        "kernels",
        SOURCE,
        SUITE,
        "[limits]\ncall_seconds = 5.0\ngpu_call_seconds = 3.0\n",
    )


def notebook(double: str) -> str:
    return handed_in({"double": double, "half": "def half(x):\n    return x / 2\n"})
