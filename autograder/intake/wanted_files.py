"""Which files of a download the kit takes, and how large each may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autograder.intake.handed_in_weights import WEIGHTS_SUFFIX
from autograder.intake.nicknames import MOST_NICKNAME_BYTES, NICKNAME_FILE


@dataclass(frozen=True, slots=True)
class WantedFiles:
    """The files that are taken out of an upload, beside archives, which are opened.

    Attributes:
        notebook_bytes: size of the largest notebook, and of the largest description.
        describes: says of a file's name whether the file lists owners or times of notebooks.
        assignment: the assignment's name, by which weights are called.
        weights_bytes: size of the largest file of weights; 0 where none are taken.
        nicknames: whether a file with a nickname is taken.
    """

    notebook_bytes: int
    describes: Callable[[str], bool]
    assignment: str = ""
    weights_bytes: int = 0
    nicknames: bool = False

    def has_weights_ending(self, name: str) -> bool:
        """Whether a file may be meant as weights, under whatever name."""
        return bool(self.weights_bytes) and name.lower().endswith(WEIGHTS_SUFFIX)

    def is_weights(self, name: str) -> bool:
        """Whether a file is called like the weights; platforms write more before the name."""
        return self.has_weights_ending(name) and self.assignment in name

    def is_nickname(self, name: str) -> bool:
        """Whether a file may hold a nickname; platforms write more before the name."""
        return self.nicknames and name.lower().endswith(NICKNAME_FILE)

    def lies_beside(self, name: str) -> bool:
        """Whether a file is none of a platform's, and belongs to a student's notebook."""
        return self.is_weights(name) or self.is_nickname(name)

    def limit(self, name: str) -> int:
        """The most bytes of a file of that name."""
        if self.is_nickname(name):
            return MOST_NICKNAME_BYTES
        return self.weights_bytes if self.is_weights(name) else self.notebook_bytes
