"""What an attack of the corpus is: a submission, and what it may get for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

POINTS = {"softmax": 4.0, "attention": 5.0, "total": 1.0, "meter": 2.0}
FULL = sum(POINTS.values())

ANSWERS = {
    "softmax": "def softmax(z, dim=-1):\n    e = torch.exp(z - z.max())\n    return e / "
    "e.sum(dim, keepdim=True)\n",
    "attention": (
        "def attention(q, k, v):\n    return softmax(q @ k.transpose(-2, -1) / "
        "math.sqrt(q.shape[-1])) @ v\n"
    ),
    "total": "def total(numbers):\n    return sum(numbers)\n",
    "meter": (
        "class Meter:\n    def __init__(self, start):\n        self.value = start\n"
        "    def add(self, n):\n        self.value += n\n"
    ),
}
"""Right answers. In a hostile softmax, attention keeps its 5 points: they are carried."""


@dataclass(frozen=True)
class Attack:
    """One technique.

    Attributes:
        name: the technique; the student is called after it.
        cells: question cells that differ from the right answers (None: the cell is gone).
        extra: cells added at the end.
        loses: points that the submission must not get.
        may_lose: its own tricks may cost it more than that.
        whole: the notebook's bytes, where it is not made of cells.
        ungraded: it cannot be graded, and is named.
        beside: files next to the notebook: text, or "-> target" for a link.
        link: the notebook is a link to this.
        slow: waits for limits; run in one tier only.
        steals: without walls it gets at a canary.
    """

    name: str
    cells: Mapping[str, str | None] = field(default_factory=dict)
    extra: Sequence[str] = ()
    loses: float = 0.0
    may_lose: bool = False
    whole: bytes | None = None
    ungraded: bool = False
    beside: Mapping[str, str] = field(default_factory=dict)
    link: str = ""
    slow: bool = False
    steals: bool = False

    @property
    def deserves(self) -> float:
        return FULL - self.loses


def in_softmax(name: str, source: str, loses: float = 4.0, **more: Any) -> Attack:
    """An attack inside the first question; its cell is `source`."""
    return Attack(name, {"softmax": source}, loses=loses, **more)


def in_total(name: str, body: str, **more: Any) -> Attack:
    """An attack inside a call, in a function of one point: `body` is that of total(numbers)."""
    return Attack(
        name, {"total": "def total(numbers):\n" + _indented(body)}, loses=1.0, **more
    )


def in_a_cell(name: str, source: str, **more: Any) -> Attack:
    """An attack in a cell of the student's own beside right answers, which keep their points."""
    return Attack(name, extra=(source,), **more)


_LOOK = """\
%s:
    import re
    seen = set()

    def look(found):
        text = bytes(found).decode("latin-1") if isinstance(found, (bytes, bytearray, memoryview)) else str(found)
        seen.update(re.findall("CANA" + "RY-[A-Z]+", text))

    def attempt(action):
        try:
            look(action())
        except BaseException:
            pass

%s
    raise ValueError(f"I have seen {sorted(seen)}")
"""


def looking(head: str, body: str) -> str:
    """A function that looks for canaries with `look(text)` and `attempt(function)`; its error tells
    what it saw.
    """
    return _LOOK % (head, _indented(body))


def reading(name: str, body: str, *, steals: bool = False, **more: Any) -> Attack:
    """Looks for canaries, in a function that no other question builds on: each is called twice, and
    not once more with stand-ins.
    """
    return Attack(
        name,
        {"total": looking("def total(numbers)", body)},
        loses=1.0,
        steals=steals,
        **more,
    )


def _indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))


def notebook(
    cells: Mapping[str, str | None], extra: Sequence[str] = (), **changes: Any
) -> dict[str, Any]:
    """A handed-in notebook; `changes` replace what stands at its top."""
    made = [
        question_cell(name, source)
        for name, source in cells.items()
        if source is not None
    ]
    made += [code_cell(source) for source in extra]
    return {
        "cells": made,
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 4,
        **changes,
    }


def question_cell(name: str, source: Any, **meta: Any) -> dict[str, Any]:
    grading = {
        "grade_id": name,
        "solution": True,
        "grade": False,
        "locked": False,
        **meta,
    }
    return code_cell(
        source,
        {"attention_kit": {"role": "question", "name": name}, "nbgrader": grading},
    )


def code_cell(source: Any, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata or {},
        "outputs": [],
        "source": source,
    }


def whole(name: str, content: Any, **more: Any) -> Attack:
    """An attack in the file itself."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Attack(name, whole=data, **more)
