"""A course of one assignment whose second question uses the first: softmax, and attention built on
it.
"""

from __future__ import annotations

from pathlib import Path

from courses import write_assignment

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
    e = torch.exp(z - z.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
    ### END SOLUTION

# %% check="softmax"
assert float(softmax(torch.zeros(2))[0]) == 0.5

# %% question="attention"
def attention(q, k, v):
    """q: [N_q, d], k: [N_k, d], v: [N_k, d_v]; gives [N_q, d_v]."""
    ### BEGIN SOLUTION
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q has {q.shape[-1]} features, k has {k.shape[-1]}")
    return softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])) @ v
    ### END SOLUTION

# %% check="attention"
assert attention(torch.ones(1, 2), torch.ones(3, 2), torch.ones(3, 2)).shape == (1, 2)

# %% question="counter"
class Counter:
    """Counts up."""

    ### BEGIN SOLUTION
    def __init__(self, start):
        self.value = start

    def add(self, n):
        self.value += n
        return self.value
    ### END SOLUTION

# %% check="counter"
assert Counter(1).add(1) == 2
'''

SUITE = {
    "test_softmax.py": '''\
import torch

from autograder.suite import assert_close, call_twice, forbid, ones, points, randn

pytestmark = forbid("torch.softmax")


@points(2)
def test_rows_sum_to_one(student):
    """Which axis do you sum over?"""
    assert_close(student.softmax(randn(3, 5)).sum(-1), ones(3))


@points(2)
def test_values_are_those_of_the_answer_key(student, reference):
    z = randn(3, 5)
    assert_close(call_twice(student.softmax, z), reference.softmax(z))
''',
    "test_attention.py": """\
import torch

from autograder.suite import assert_close, assert_refused, points, randn, uses

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


@points(1)
def test_refuses_other_widths(student):
    assert_refused(student.attention, randn(2, 3), randn(5, 6), randn(5, 4), sizes=(3, 6))
""",
    "test_counter.py": """\
from autograder.suite import points


@points(1)
def test_counts(student):
    counter = student.Counter(3)
    counter.add(4)
    assert counter.value == 7, "3 + 4 is 7"
""",
    "mistakes.py": """\
import torch

from autograder.suite import mistake


@mistake("softmax", hint="Each row should sum to 1.")
def over_the_rows(z, dim=-1):
    e = torch.exp(z)
    return e / e.sum(0, keepdim=True)


@mistake(
    "attention",
    hint="What keeps the spread of the scores near 1?",
    replace=(" / math.sqrt(q.shape[-1])", ""),
    keeps=0.5,
)
def no_scale(): ...


@mistake("counter", function="Counter", hint="Does it remember?")
class Forgets:
    def __init__(self, start):
        self.value = start

    def add(self, n):
        return self.value + n
""",
    "alternates.py": """\
import torch

from autograder.suite import alternate


@alternate("softmax")
def by_log(z, dim=-1):
    return torch.exp(z - torch.logsumexp(z, dim, keepdim=True))


@alternate("softmax")
def by_double(z, dim=-1):
    e = z.exp()
    return e.div(e.sum(dim, keepdim=True))


@alternate("attention")
def by_rows(q, k, v):
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"{q.shape[-1]} and {k.shape[-1]}")
    return torch.stack([softmax(k @ row / q.shape[-1] ** 0.5) @ v for row in q])


@alternate("attention")
def by_einsum(q, k, v):
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"{q.shape[-1]} and {k.shape[-1]}")
    return softmax(torch.einsum("id,jd->ij", q, k) / q.shape[-1] ** 0.5) @ v


@alternate("counter", function="Counter")
class Lists:
    def __init__(self, start):
        self.parts = [start]

    @property
    def value(self):
        return sum(self.parts)

    def add(self, n):
        self.parts.append(n)
        return self.value


@alternate("counter", function="Counter")
class Slots:
    __slots__ = ("value",)

    def __init__(self, start):
        self.value = start

    def add(self, n):
        self.value = self.value + n
        return self.value
""",
}


def write_course(root: Path) -> None:
    limits = (
        "[limits]\ncall_seconds = 2.0\ncell_seconds = 2.0\nsubmission_seconds = "
        "60.0\nmemory_mb = 600\n"
    )
    write_assignment(root, "small", SOURCE, SUITE, limits)


ANSWERS = {
    "softmax": "def softmax(z, dim=-1):\n    e = torch.exp(z - z.max())\n    return e / "
    "e.sum(dim, keepdim=True)\n",
    "attention": (
        "def attention(q, k, v):\n"
        "    if q.shape[-1] != k.shape[-1]:\n"
        "        raise ValueError(f'{q.shape[-1]} is not {k.shape[-1]}')\n"
        "    return softmax(q @ k.T / math.sqrt(q.shape[-1])) @ v\n"
    ),
    "counter": (
        "class Counter:\n"
        "    def __init__(self, start):\n"
        "        self.value = start\n"
        "    def add(self, n):\n"
        "        self.value += n\n"
    ),
}
"""Right answers: 4, 6 and 1 points."""
