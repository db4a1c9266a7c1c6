"""A course of one small assignment, `tiny`: every kind of cell, one figure, one suite."""

from __future__ import annotations

from pathlib import Path

import courses

from autograder.suite.collection import SuiteQuestion, SuiteTest

HEADER = """\
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

"""

TINY = (
    HEADER
    + '''\
# %% [markdown]
# # Doubling
#
# ![a line](figures/line.svg)

# %% given="imports"
import math

# %% question="double"
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    doubled_by_addition = x + x
    return doubled_by_addition
    ### END SOLUTION

# %% check="double"
assert double(3) == 6

# %% check="double"
assert double(-1.5) == -3.0

# %% question="half"
def half(x):
    if x == 0:
        ### BEGIN SOLUTION
        return x
        ### END SOLUTION
    ### BEGIN SOLUTION
    return x * math.exp(-math.log(2.0))
    ### END SOLUTION

# %% demo="both"
shown = half(double(5))
print(shown)

# %% [markdown] written="why" points=5
# Why is half(double(x)) the same as x?
#
# ### BEGIN SOLUTION
# Halving undoes doubling, since one multiplies by two and the other divides by it.
# ### END SOLUTION
'''
)

POINTS = {"double": 2.5, "half": 3.0}

SUITE = {
    "test_double.py": """\
from autograder.suite import points


@points(1.5)
def test_doubles_a_number_never_shown(student):
    assert student.double(7) == 14


@points(1)
def test_doubles_nothing(student):
    assert student.double(0) == 0
""",
    "test_half.py": """\
from autograder.suite import points


@points(3)
def test_halves_an_odd_number(student):
    assert abs(student.half(7) - 3.5) < 1e-9, "seven halves are three and a half"
""",
}


def write_assignment(root: Path, name: str, source: str, suite: dict[str, str]) -> None:
    """One more assignment of the course, with a figure."""
    courses.write_assignment(
        root, name, source, suite, '[course]\nname = "Small Course"\n'
    )
    figures = root / "source" / name / "figures"
    figures.mkdir()
    (figures / "line.svg").write_text("<svg/>", encoding="utf-8")


def suite_question(points: float, forbidden: tuple[str, ...] = ()) -> SuiteQuestion:
    """A question of one test."""
    return SuiteQuestion("question", (SuiteTest("test_it", points, ""),), (), forbidden)
