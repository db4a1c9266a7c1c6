"""What travels between the driver and the machines, a share at a time: submissions' bytes there, results' back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.handed_in import read_handed_in
from autograder.intake.find import SUFFIX
from autograder.intake.notebook import in_layout, refuse_what_is_no_file
from autograder.model import FoundSubmission


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A submission as a machine is given it.

    Attributes:
        place: the last parts of its path, the file's name at the end: what a result says of the name depends on them.
        beside: the name of another notebook in its folder, or "": a result says so.
    """

    student: str
    place: tuple[str, ...]
    data: bytes
    beside: str = ""

    def write_below(self, folder: Path) -> FoundSubmission:
        """Put it on disk so that it reads as where it came from."""
        path = folder.joinpath(*self.place)
        path.parent.mkdir(parents=True)
        path.write_bytes(self.data)
        if self.beside:
            (path.parent / self.beside).touch()
        return FoundSubmission(self.student, path)


def taken_in(found: FoundSubmission, assignment: str, limit: int) -> HandedIn:
    """Read a submission for the journey: at most `limit` bytes.

    Raises:
        UnreadableSubmission: with the words that a grader on this machine would have.
    """
    path = found.path
    refuse_what_is_no_file(found, assignment)
    data = read_handed_in(path, limit)
    if not in_layout(path, found.student, assignment):
        return HandedIn(found.student, (path.name,), data)
    beside = min(_others(path), default="")
    return HandedIn(found.student, (found.student, assignment, path.name), data, beside)


def _others(path: Path) -> Iterator[str]:
    return (other.name for other in path.parent.iterdir() if other.name.endswith(SUFFIX) and other.name != path.name)


@dataclass(frozen=True, slots=True)
class Order:
    """What a machine is to grade with.

    Attributes:
        root: the course's folder on that machine.
        graders: how many submissions are graded there at once.
        extras: what its hosts load (grading/extras.py).
    """

    root: Path
    assignment: str
    isolation: str
    graders: int
    extras: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a machine says of one submission.

    Attributes:
        content: what a grader answered, as it crosses between the processes of a laptop.
        fault: why there is none, where the machine or the suite is to blame.
    """

    content: bytes | None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a machine says to a share. With neither answers nor a refusal it has not got the course (any more).

    Attributes:
        machine: its name, for people.
        answers: one for each submission of the share, in its order.
        refusal: why this machine can grade nothing.
    """

    machine: str
    answers: tuple[Answer, ...] = ()
    refusal: str = ""
