"""The solution regions of a cell: the lines from `### BEGIN SOLUTION` to `### END SOLUTION`.

A written answer may be followed by a marking guide between `### BEGIN MARK SCHEME` and
`### END MARK SCHEME`.

A marker has a line for itself. A line that only resembles a marker is refused, since a misspelt
marker would leave the answer in the release.
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
    """Make sure that the markers pair up around an answer.

    Raises:
        RegionError: says which line is wrong and why.
    """
    for number, line in enumerate(source.split("\n")):
        if line.strip() not in (BEGIN, END) and _RESEMBLES_A_MARKER.search(line):
            raise RegionError(number, _advice(line.strip()))
    answers(source)


def answers(source: str) -> list[str]:
    """The lines between the markers, of all regions. Raises: RegionError."""
    return _split(source, BEGIN, END, "solution region")[1]


def split_scheme(source: str) -> tuple[str, str]:
    """A written answer's cell without its marking guide, and the guide or "".

    Raises:
        RegionError: the markers do not pair up, or the guide is empty.
    """
    outside, scheme = _split(source, BEGIN_SCHEME, END_SCHEME, "marking guide")
    return "\n".join(outside).rstrip("\n"), "\n".join(scheme).strip("\n")


def _split(
    source: str, begin: str, end: str, region: str
) -> tuple[list[str], list[str]]:
    """The lines outside of the regions, and the lines inside.

    Raises:
        RegionError: the markers do not pair up, or a region is empty.
    """
    outside: list[str] = []
    inside: list[str] = []
    opened: int | None = None
    is_filled = False
    for number, line in enumerate(source.split("\n")):
        text = line.strip()
        if text == begin:
            if opened is not None:
                raise RegionError(
                    number, f"a second {begin} before the {end} of the first"
                )
            opened, is_filled = number, False
        elif text == end:
            if opened is None:
                raise RegionError(number, f"{end} without a {begin} before it")
            if not is_filled:
                raise RegionError(opened, f"the {region} is empty")
            opened = None
        elif opened is None:
            outside.append(line)
        else:
            inside.append(line)
            is_filled = is_filled or bool(text)
    if opened is not None:
        raise RegionError(opened, f"{begin} without an {end} after it")
    return outside, inside


def _advice(text: str) -> str:
    if re.search("solution", text, re.IGNORECASE):
        return (
            f"{text!r} looks like a marker; write {BEGIN} or {END} on a line of its own"
        )
    if re.search("scheme", text, re.IGNORECASE):
        return (
            f"{text!r}: a marking guide stands in a written answer, between {BEGIN_SCHEME} and "
            f"{END_SCHEME}"
        )
    return f"{text!r}: graded tests belong in tests/hidden/, where no notebook can leak them"


def complete(source: str) -> str:
    """The cell of the answer key: with the answer, without the markers."""
    return "\n".join(
        line for line in source.split("\n") if line.strip() not in (BEGIN, END)
    )


def replace_answers(source: str, stub: str) -> str:
    """The cell of the release: a stub in place of every region, with the marker's indentation."""
    lines: list[str] = []
    inside = False
    for line in source.split("\n"):
        text = line.strip()
        if text == BEGIN:
            inside = True
            lines.append(line.replace(BEGIN, stub).rstrip())
        elif text == END:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def question_stub(question: str) -> str:
    """The line of the release in place of the student's answer."""
    return f'raise NotImplementedError("{question}: write your answer here")'


def is_stub_message(text: str) -> bool:
    """Whether an error's text comes from a stub, perhaps through a wrapping error."""
    return ": write your answer here" in text
