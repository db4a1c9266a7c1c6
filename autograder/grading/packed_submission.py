"""A submission as bytes, on its way to a station that grades, perhaps on another machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autograder.basics.handed_in import read_handed_in
from autograder.intake.find import SUFFIX
from autograder.intake.notebook import check_is_file, is_in_layout
from autograder.records.submission import FoundSubmission


@dataclass(frozen=True, slots=True)
class PackedSubmission:
    """A submission on its way to a machine.

    Attributes:
        place: the last parts of its path, the file's name at the end: what a result says of the
            name depends on them.
        neighbour: the name of another notebook in the folder, which a result mentions, or "".
    """

    student: str
    place: tuple[str, ...]
    data: bytes
    neighbour: str = ""

    def unpack_below(self, folder: Path) -> FoundSubmission:
        """Write the notebook to disk, at a path that gives the same words in a result as the
        original path.
        """
        path = folder.joinpath(*self.place)
        path.parent.mkdir(parents=True)
        path.write_bytes(self.data)
        if self.neighbour:
            (path.parent / self.neighbour).touch()
        return FoundSubmission(self.student, path)


def pack_submission(
    submission: FoundSubmission, assignment: str, limit: int
) -> PackedSubmission:
    """Read a submission for the journey: at most `limit` bytes.

    Raises:
        UnreadableSubmission: with the words that a grader on this machine would have.
    """
    path = submission.path
    check_is_file(submission, assignment)
    data = read_handed_in(path, limit)
    if not is_in_layout(path, submission.student, assignment):
        return PackedSubmission(submission.student, (path.name,), data)
    names = {entry.name for entry in path.parent.iterdir()} - {path.name}
    neighbour = min((name for name in names if name.endswith(SUFFIX)), default="")
    place = (submission.student, assignment, path.name)
    return PackedSubmission(submission.student, place, data, neighbour)
