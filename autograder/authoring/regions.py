"""The solution regions of a cell: what stands between `### BEGIN SOLUTION` and `### END SOLUTION`.

A written answer may be followed by a marking guide between `### BEGIN MARK SCHEME` and
`### END MARK SCHEME`.

A marker is a line of its own. A line that only resembles one is refused, since a misspelt marker
would leave the answer in the release.
"""

from __future__ import annotations

import re

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
BEGIN_SCHEME = "### BEGIN MARK SCHEME"
END_SCHEME = "### END MARK SCHEME"
WRITTEN_STUB = "*Your answer here.*"

_RESEMBLES_A_MARKER = re.compile(
    r"\b(BEGIN|END)[ _-]*(SOLUTIONS?|HIDDEN +TESTS?|MARK +SCHEME)\b|^\s*#+\s*(?i:(begin|end)[ "
    r"_-]*solution)"
)


class RegionError(ValueError):
    """The markers of a cell do not pair up.

    Attributes:
        line: index of the offending line in the cell, from 0.
    """

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


def has_region(source: str) -> bool:
    """Whether any line is a marker."""
    return any(line.strip() in (BEGIN, END) for line in source.split("\n"))


def check_regions(source: str) -> None:
    """Make sure that the markers pair up and that something stands between them.

    Raises:
        RegionError: says which line is wrong and why.
    """
    for number, line in enumerate(source.split("\n")):
        if line.strip() not in (BEGIN, END) and _RESEMBLES_A_MARKER.search(line):
            raise RegionError(number, _advice(line.strip()))
    _parted(source, BEGIN, END, "solution region")


def without_scheme(source: str) -> tuple[str, str]:
    """A written answer's cell without its marking guide, and the guide, "" where there is none.

    Raises:
        RegionError: the markers do not pair up, or nothing stands between them.
    """
    kept, scheme = _parted(source, BEGIN_SCHEME, END_SCHEME, "marking guide")
    return "\n".join(kept).rstrip("\n"), "\n".join(scheme).strip("\n")


def _parted(source: str, begin: str, end: str, what: str) -> tuple[list[str], list[str]]:
    """The lines outside of the markers, and those between them.

    Raises:
        RegionError: the markers do not pair up, or nothing stands between them.
    """
    kept: list[str] = []
    inside: list[str] = []
    opened: int | None = None
    filled = False
    for number, line in enumerate(source.split("\n")):
        text = line.strip()
        if text == begin:
            if opened is not None:
                raise RegionError(number, f"a second {begin} before the {end} of the first")
            opened, filled = number, False
        elif text == end:
            if opened is None:
                raise RegionError(number, f"{end} without a {begin} before it")
            if not filled:
                raise RegionError(opened, f"the {what} is empty")
            opened = None
        else:
            (kept if opened is None else inside).append(line)
            filled = filled or bool(text)
    if opened is not None:
        raise RegionError(opened, f"{begin} without an {end} after it")
    return kept, inside


def _advice(text: str) -> str:
    if re.search("solution", text, re.IGNORECASE):
        return f"{text!r} looks like a marker; write {BEGIN} or {END} on a line of its own"
    if re.search("scheme", text, re.IGNORECASE):
        return (
            f"{text!r}: a marking guide stands in a written answer, between {BEGIN_SCHEME} and "
            f"{END_SCHEME}"
        )
    return f"{text!r}: graded tests belong in tests/hidden/, where no notebook can leak them"


def complete(source: str) -> str:
    """The cell of the answer key: the markers gone, the answer there."""
    return "\n".join(line for line in source.split("\n") if line.strip() not in (BEGIN, END))


def replace_answers(source: str, stub: str) -> str:
    """The cell of the release: every region replaced by `stub`, at the indentation of its first
    marker.
    """
    kept: list[str] = []
    inside = False
    for line in source.split("\n"):
        text = line.strip()
        if text == BEGIN:
            inside = True
            kept.append(line[: len(line) - len(line.lstrip())] + stub)
        elif text == END:
            inside = False
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def answers(source: str) -> list[str]:
    """The lines between the markers, of all regions. Raises: RegionError."""
    return _parted(source, BEGIN, END, "solution region")[1]


def question_stub(question: str) -> str:
    """What stands in the release where the student's answer goes."""
    return f'raise NotImplementedError("{question}: write your answer here")'


def is_stub_message(text: str) -> bool:
    """Whether an error's text comes from a stub, maybe wrapped in another error's."""
    return ": write your answer here" in text
