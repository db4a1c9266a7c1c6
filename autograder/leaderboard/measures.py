"""What an assignment's leaderboard ranks: measures in `leaderboard.py` beside the suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autograder.basics.errors import BadSuite
from autograder.basics.python_files import run_python_file
from autograder.course import Assignment
from autograder.intake.handed_in_weights import HandedInWeights
from autograder.sandbox.student import Student

_registered: list[Measure] = []


class NotRanked(Exception):
    """A measure cannot rank a submission; the message says why, to its student."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """One submission in front of a measure.

    Attributes:
        student: the submission's functions, in a worker that has run its cells.
        reference: the answer key's names, which run in this process.
        start_again: gives the functions in a fresh worker, which remembers nothing.
        seed: a number that follows from the submission and the suite; no student knows it before.
        weights: the weights beside the notebook, for measures that ask for them.
    """

    student: Student
    reference: Any
    start_again: Callable[[], Student]
    seed: int
    weights: HandedInWeights | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """A number by which submissions are ranked: the smallest is first.

    Attributes:
        needs: questions that must have full marks.
        takes_weights: whether weights must lie beside the notebook.
        decimals: digits behind the point, by which places are given too.
        work_out: gives the number.
    """

    name: str
    title: str
    unit: str
    needs: tuple[str, ...]
    takes_weights: bool
    decimals: int
    work_out: Callable[[Entrant], float]


def measure(
    title: str,
    *,
    unit: str,
    needs: tuple[str, ...],
    weights: bool = False,
    decimals: int = 0,
) -> Callable[[Callable[[Entrant], float]], Callable[[Entrant], float]]:
    """Register a function that takes an `Entrant` and returns a number; the smallest is first.

    Args:
        title: what the number says, as a heading.
        needs: questions that must have full marks.
        weights: whether the number is about weights that lie beside the notebook.
        decimals: digits behind the point.
    """

    def register(work_out: Callable[[Entrant], float]) -> Callable[[Entrant], float]:
        _registered.append(
            Measure(work_out.__name__, title, unit, needs, weights, decimals, work_out)
        )
        return work_out

    return register


def load_measures(assignment: Assignment) -> tuple[Measure, ...]:
    """The measures of an assignment; none where its suite has no `leaderboard.py`.

    Raises:
        BadSuite: the file does not import, or needs a question that there is not.
    """
    path = assignment.leaderboard
    if not path.exists():
        return ()
    _registered.clear()
    try:
        run_python_file(path, f"{assignment.name}.leaderboard")
    except Exception as error:
        raise BadSuite(
            f"{path}: it does not import: {type(error).__name__}: {error}"
        ) from error
    for registered in _registered:
        for name in registered.needs:
            if not (assignment.suite / f"test_{name}.py").exists():
                raise BadSuite(
                    f"{path}: {registered.name} needs {name}, which is no question"
                )
    return tuple(_registered)
