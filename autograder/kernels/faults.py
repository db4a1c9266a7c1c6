"""The faults of a kernel: what a GPU would do wrong or refuse, with the student's line."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass

_TEXT_LENGTH = 80
_DEFINITION = re.compile(r"^\s*def\s+(\w+)")


class KernelFault(Exception):
    """A kernel did something wrong; the message names program, tensor, element and line."""

    is_located = False  # whether the message names the line already


class MemoryFault(KernelFault):
    """A kernel touches memory that is not its own, or that another program or lane may touch at the
    same time, or reads what nobody has put there.
    """


class StaticAssertion(KernelFault):
    """tl.static_assert fails for the constants of a launch."""


class Unreadable(KernelFault):
    """The text of a compiled kernel is not TTIR, or holds an operation without a meaning here."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A place in a student's source.

    Attributes:
        file: as Python names it; a notebook's cell has a name too.
        line: counted in the file, from 1.
        variable: the variable that the statement assigns; "" where it assigns none.
    """

    file: str
    line: int
    variable: str = ""

    def __str__(self) -> str:
        """Such as "line 5 of add_kernel, x (`x = tl.load(x_ptr + at)`)"."""
        lines = linecache.getlines(self.file)
        text = lines[self.line - 1].strip() if 0 < self.line <= len(lines) else ""
        name, first = _function_around(lines, self.line)
        where = f"line {self.line - first + 1}"
        if name:
            where += f" of {name}"
        if self.variable:
            where += f", {self.variable}"
        if text:
            where += f" (`{text[:_TEXT_LENGTH]}`)"
        return where


def _function_around(lines: list[str], line: int) -> tuple[str, int]:
    """The function that a line stands in, and the function's first line; ("", 1) for none."""
    for number in range(min(line, len(lines)), 0, -1):
        if match := _DEFINITION.match(lines[number - 1]):
            return match[1], number
    return "", 1


def program_in_words(program: tuple[int, ...]) -> str:
    """A program as messages name it."""
    return str(program[0]) if len(program) == 1 else str(program)
