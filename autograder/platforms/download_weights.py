"""The files of weights in a download, and to which notebook each belongs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from autograder.intake.archives import SkippedFile, UploadedFile
from autograder.intake.handed_in_weights import WEIGHTS_SUFFIX, why_not_weights
from autograder.intake.owners import FindOwner, Owner, timestamp
from autograder.intake.wanted_files import WantedFiles
from autograder.ledger import Identity


def rank_file(file: UploadedFile, owner: Owner, assignment: str) -> tuple[object, ...]:
    """Orders the files of one student: the latest attempt is the largest, and in one attempt the
    file that is called like the assignment, else the latest file.
    """
    file_rank = owner.rank or (timestamp(file.modified),)
    return (
        owner.attempt,
        owner.stem == assignment,
        not file.inside,
        file_rank,
        file.parts + file.inside,
    )


class DownloadWeights:
    """The weights of a download.

    Args:
        files: the download's files that were unpacked.
        people: those of whom the download has a notebook.

    Attributes:
        alone: the weights of everybody else, as skipped files.
    """

    def __init__(
        self,
        files: Sequence[UploadedFile],
        wanted: WantedFiles,
        find_owner: FindOwner,
        people: Collection[Identity],
    ) -> None:
        self._assignment = wanted.assignment
        self._owned: dict[Identity, list[tuple[UploadedFile, Owner]]] = {}
        self.alone: list[tuple[SkippedFile, Owner | None]] = []
        for file in files:
            if not wanted.is_weights(file.name):
                continue
            owner = find_owner(file)
            if owner is not None and owner.identity in people:
                self._owned.setdefault(owner.identity, []).append((file, owner))
                continue
            reason = "no notebook came with these weights"
            skipped = SkippedFile(file.display_path, file.parts, reason)
            self.alone.append((skipped, owner))

    def choose(
        self, notebook: Owner, identities: Collection[Identity]
    ) -> tuple[UploadedFile, Owner] | None:
        """The weights of the notebook's attempt, and their owner; None where none came with it.

        Args:
            notebook: the notebook's owner.
            identities: the student's in this download.
        """
        of_attempt = [
            (file, owner)
            for identity in identities
            for file, owner in self._owned.get(identity, ())
            if owner.attempt == notebook.attempt
        ]
        return max(
            of_attempt,
            key=lambda entry: rank_file(entry[0], entry[1], self._assignment),
            default=None,
        )

    def why_not(self, file: UploadedFile, owner: Owner) -> str:
        """Why weights cannot be kept; "" where they can."""
        content = file.file.read_bytes()
        name = f"{owner.stem}{WEIGHTS_SUFFIX}"
        return why_not_weights(name, content, self._assignment)
