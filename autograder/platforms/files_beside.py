"""The files of a download that lie beside notebooks, weights and nicknames, and to which notebook
each belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.intake.archives import SkippedFile, UploadedFile
from autograder.intake.handed_in_weights import (
    WEIGHTS_SUFFIX,
    weights_name,
    why_not_weights,
)
from autograder.intake.nicknames import NICKNAME_FILE, why_not_nickname
from autograder.intake.owners import FindOwner, Owner, timestamp
from autograder.intake.wanted_files import WantedFiles
from autograder.ledger import Identity

_OwnedFile = tuple[UploadedFile, Owner]


def rank_file(file: UploadedFile, owner: Owner, stem: str) -> tuple[object, ...]:
    """Orders the files of one student: the latest attempt is the largest, and in one attempt the
    file whose name is `stem` and an ending, else the latest file.
    """
    file_rank = owner.rank or (timestamp(file.modified),)
    return (
        owner.attempt,
        owner.stem == stem,
        not file.inside,
        file_rank,
        file.parts + file.inside,
    )


@dataclass(frozen=True, slots=True)
class CameBeside:
    """What came beside one notebook.

    Attributes:
        kept: the files that are kept, each by the name that it gets.
        problems: a line for each file that is not.
        has_weights: whether weights came, kept or not.
    """

    kept: dict[str, Path]
    problems: list[str]
    has_weights: bool


class FilesBeside:
    """The files of a download that lie beside notebooks.

    Args:
        files: the download's files that were unpacked.
        people: those of whom the download has a notebook.

    Attributes:
        alone: the files of everybody else, as skipped files.
    """

    def __init__(
        self,
        files: Sequence[UploadedFile],
        wanted: WantedFiles,
        find_owner: FindOwner,
        people: Collection[Identity],
    ) -> None:
        self._assignment = wanted.assignment
        self._owned: dict[Identity, list[_OwnedFile]] = {}
        self._is_weights = wanted.is_weights
        self._is_nickname = wanted.is_nickname
        self.alone: list[SkippedFile] = []
        for file in files:
            if not wanted.lies_beside(file.name):
                continue
            owner = find_owner(file)
            if owner is not None and owner.identity in people:
                self._owned.setdefault(owner.identity, []).append((file, owner))
            else:
                self.alone.append(self._skip(file))

    def _skip(self, file: UploadedFile) -> SkippedFile:
        is_weights = self._is_weights(file.name)
        reason = "not a notebook"
        if is_weights:
            reason = "no notebook came with these weights"
        return SkippedFile(
            file.display_path,
            file.parts,
            reason,
            companion=not is_weights,
        )

    def choose(self, notebook: Owner, identities: Collection[Identity]) -> CameBeside:
        """The files that came with a notebook.

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
        kept = {}
        problems = []
        weights = _best(of_attempt, self._is_weights, self._assignment)
        if weights is not None:
            file, owner = weights
            content = file.file.read_bytes()
            name = f"{owner.stem}{WEIGHTS_SUFFIX}"
            if reason := why_not_weights(name, content, self._assignment):
                problems.append(f"{reason}; the notebook was taken alone")
            else:
                kept[weights_name(self._assignment)] = file.file
        stem = Path(NICKNAME_FILE).stem
        nickname = _best(of_attempt, self._is_nickname, stem)
        if nickname and nickname[1].stem.lower() == stem:
            path = nickname[0].file
            if reason := why_not_nickname(path.read_bytes()):
                problems.append(f"{reason}; the notebook was taken without it")
            else:
                kept[NICKNAME_FILE] = path
        return CameBeside(kept, problems, has_weights=weights is not None)


def _best(
    files: Sequence[_OwnedFile],
    is_meant: Callable[[str], bool],
    stem: str,
) -> _OwnedFile | None:
    """The file of one kind that counts among those of one attempt; None where there is none."""
    return max(
        (entry for entry in files if is_meant(entry[0].name)),
        key=lambda entry: rank_file(entry[0], entry[1], stem),
        default=None,
    )
