"""A share of a class: every n-th submission, so that n machines grade one class without knowing of
each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.basics.errors import KitError
from autograder.records.submission import FoundSubmission


@dataclass(frozen=True, slots=True)
class Share:
    """The share `number` of `count`; the first is 1."""

    number: int
    count: int

    @property
    def name(self) -> str:
        """The share in file names."""
        return f"{self.number}-of-{self.count}"

    def select(self, submissions: Sequence[FoundSubmission]) -> list[FoundSubmission]:
        """The share's part of a class that is sorted by student. It may be empty."""
        return list(submissions[self.number - 1 :: self.count])


def parse_share(text: str) -> Share:
    """Read the argument of `--share`, as in `3/16`.

    Raises:
        KitError: the text names no share.
    """
    numbers = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if numbers is not None:
        share = Share(int(numbers[1]), int(numbers[2]))
        if 1 <= share.number <= share.count:
            return share
    raise KitError(
        f"--share {text}: write the third of sixteen shares as 3/16; they are 1/16 to 16/16"
    )
