"""The course that is attacked: small, and full of canaries that must never be seen."""

from __future__ import annotations

import json
from pathlib import Path

from attack import ANSWERS, FULL, notebook

CANARY = "CANARY"
"""Every hidden text holds one: CANARY-SUITE, CANARY-KEY and so on."""

SOURCE = '''\
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% given="imports"
import math

import torch

# %% question="softmax"
def softmax(z, dim=-1):
    """z: [...]; a distribution along dim."""
    ### BEGIN SOLUTION
    # CANARY-KEY
    e = torch.exp(z - z.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
    ### END SOLUTION

# %% check="softmax"
assert float(softmax(torch.zeros(2))[0]) == 0.5

# %% question="attention"
def attention(q, k, v):
    """q: [N_q, d], k: [N_k, d], v: [N_k, d_v]; gives [N_q, d_v]."""
    ### BEGIN SOLUTION
    return softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])) @ v
    ### END SOLUTION

# %% check="attention"
assert attention(torch.ones(1, 2), torch.ones(3, 2), torch.ones(3, 2)).shape == (1, 2)

# %% question="total"
def total(numbers):
    """The sum of a list of integers."""
    ### BEGIN SOLUTION
    return sum(numbers)
    ### END SOLUTION

# %% check="total"
assert total([1, 2]) == 3

# %% question="meter"
class Meter:
    """Counts up."""

    ### BEGIN SOLUTION
    def __init__(self, start):
        self.value = start

    def add(self, n):
        self.value += n
    ### END SOLUTION

# %% check="meter"
Meter(1).add(1)
'''

SUITE = {
    "test_softmax.py": """\
# CANARY-SUITE
from autograder.suite import assert_close, call_twice, forbid, ones, points, randn

pytestmark = forbid("torch.softmax")


@points(2)
def test_rows_sum_to_one(student):
    assert_close(student.softmax(randn(3, 5)).sum(-1), ones(3))


@points(2)
def test_values_are_those_of_the_answer_key(student, reference):
    z = randn(3, 5)
    assert_close(call_twice(student.softmax, z), reference.softmax(z))
""",
    "test_attention.py": """\
from autograder.suite import assert_close, points, randn, uses

pytestmark = uses("softmax")


@points(3)
def test_mixes_values(student, reference):
    q, k, v = randn(2, 3), randn(5, 3), randn(5, 4)
    assert_close(student.attention(q, k, v), reference.attention(q, k, v))


@points(2)
def test_gradients_flow(student, reference):
    q, k, v = randn(2, 3, grad=True), randn(5, 3), randn(5, 4)
    p = q.detach().clone().requires_grad_()
    student.attention(q, k, v).pow(2).sum().backward()
    reference.attention(p, k, v).pow(2).sum().backward()
    assert_close(q.grad, p.grad, what="the gradient of q")
""",
    "test_total.py": """\
from autograder.suite import assert_equal, points


@points(1)
def test_adds(student):
    assert_equal(student.total([1, 2, 3, 4]), 10)
""",
    "test_meter.py": """\
from autograder.suite import assert_equal, points


@points(2)
def test_counts(student):
    meter = student.Meter(3)
    meter.add(4)
    assert_equal(meter.value, 7)
""",
    "mistakes.py": """\
# CANARY-MISTAKE
import torch

from autograder.suite import mistake


@mistake("softmax", hint="Each row should sum to 1.")
def over_the_rows(z, dim=-1):
    e = torch.exp(z)
    return e / e.sum(0, keepdim=True)
""",
    "alternates.py": "",
}

LIMITS = """\
[limits]
call_seconds = 1.0
cell_seconds = 1.0
submission_seconds = 15.0
memory_mb = 600
processes = 16
file_mb = 4
scratch_mb = 8
reply_mb = 8
notebook_mb = 2
"""


def write_vault(root: Path, hidden_ini: Path) -> None:
    """Write the course's source, suite and working data; `hidden_ini` is the kit's own pytest.ini
    for suites.
    """
    neighbour = notebook(
        {**ANSWERS, "total": "# CANARY-NEIGHBOUR\n" + ANSWERS["total"]}
    )
    files = {
        "source/vault/vault.py": SOURCE,
        "tests/hidden/pytest.ini": hidden_ini.read_text(encoding="utf-8"),
        **{f"tests/hidden/vault/{name}": text for name, text in SUITE.items()},
        "gradebook.db": "CANARY-GRADEBOOK",
        ".autograder/known/vault/canary": "CANARY-KNOWN",
        "results/vault/neighbour.json": f'{{"score": {FULL}, "x": "CANARY-RESULT"}}',
        "submitted/neighbour/vault/vault.ipynb": json.dumps(neighbour),
        "course.toml": LIMITS + "[totals]\nassignment_points = 0\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
