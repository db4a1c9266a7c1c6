"""A known mistake that a student wrote changes nothing but its own answers."""

from __future__ import annotations

from autograder.grading.bench import Bench
from autograder.suite.known_answers import KnownAnswer

POISON = """\
import math
math.sqrt = lambda x: 1.0
torch.Tensor.__matmul__ = lambda a, b: 0

def attention(q, k, v):
    return q
"""


def test_it_cannot_change_what_other_known_answers_compute(bench: Bench) -> None:
    """They share one worker a question; a student's answer gets one of its own."""
    grader = bench.grader
    known, question = grader._known, grader.questions["attention"]
    poison = KnownAnswer("attention", "poison", "hint", POISON, is_students=True)
    tests = ["test_mixes_values"]
    with known.use_client(bench.clients[0]):
        before = known.run(question, None, tests)
        poisoned = known.run(question, poison, tests)
        after = known.run(question, None, tests)
    assert before["test_mixes_values"].passed
    assert not poisoned["test_mixes_values"].passed
    assert after["test_mixes_values"].passed


def test_its_stored_runs_are_those_of_its_own_text() -> None:
    """A mistake is proven before the suite's hash knows its text."""
    first = KnownAnswer("f", "wrong", "hint", "f = 1", is_students=True)
    second = KnownAnswer("f", "wrong", "hint", "f = 2", is_students=True)
    assert first.stored_name != second.stored_name
    assert KnownAnswer("f", "wrong", "hint", "f = 1").stored_name == "wrong"
