"""The stored standings of a class: `<folder>/<assignment>.leaderboard.json` beside the results.

A measured number is kept as long as the submission, its weights and the suite are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from autograder.basics.stored_json import encode_stored, read_stored
from autograder.basics.whole_files import write_whole


@dataclass(frozen=True, slots=True)
class RankedSubmission:
    """One submission's numbers.

    Attributes:
        submission_sha256, weights_sha256: what was measured.
        numbers: by measure.
        reasons: by measure, why there is no number.
    """

    student: str
    submission_sha256: str
    weights_sha256: str
    numbers: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankedClass:
    """The class at one time.

    Attributes:
        suite_sha256: `course_sha256` when the numbers were measured.
    """

    suite_sha256: str
    standings: tuple[RankedSubmission, ...] = ()


def standings_path(folder: Path, assignment: str) -> Path:
    """The path of the standings among the results in `folder`."""
    return folder / f"{assignment}.leaderboard.json"


def read_standings(folder: Path, assignment: str, suite_sha256: str) -> RankedClass:
    """The stored standings; empty where none are stored for this suite: they can be made again."""
    try:
        stored = read_stored(standings_path(folder, assignment), RankedClass)
    except (OSError, ValueError):
        return RankedClass(suite_sha256)
    return stored if stored.suite_sha256 == suite_sha256 else RankedClass(suite_sha256)


def write_standings(folder: Path, assignment: str, standings: RankedClass) -> None:
    """Store the standings."""
    content = encode_stored(standings).encode("utf-8", "backslashreplace")
    write_whole(standings_path(folder, assignment), content)
