"""What a hidden suite holds, without running it: questions, tests, points, and what each builds
on.
"""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autograder.basics.errors import BadSuite


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """One test of a suite; `name` is the function's, with its parameters where it has some."""

    name: str
    points: float
    hint: str
    """First paragraph of its docstring, shown where the test fails."""


@dataclass(frozen=True, slots=True)
class SuiteQuestion:
    """One question of a suite: one file `test_<name>.py`."""

    name: str
    tests: tuple[SuiteTest, ...]
    uses: tuple[str, ...]
    forbidden: tuple[str, ...]

    @property
    def points(self) -> float:
        """The sum of its tests' points."""
        return sum(test.points for test in self.tests)


@dataclass(frozen=True, slots=True)
class Collected:
    """A suite as pytest collected it.

    Attributes:
        questions: in the order of their files.
        items: pytest's own, by question and test.
    """

    questions: tuple[SuiteQuestion, ...]
    items: Mapping[tuple[str, str], pytest.Item]


def collect_suite(folder: Path) -> Collected:
    """Collect the suite in `folder` by pytest's own rules; imports its tests, runs none.

    Raises:
        BadSuite: no such folder, no tests, a test without points, or a file that does not import.
    """
    if not folder.is_dir():
        raise BadSuite(f"{folder}: there is no hidden suite for this assignment")
    _forget_modules(folder)
    collector = _Collector(folder)
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*pytest_arguments(folder), "--collect-only"], plugins=[collector])
    if collector.problems:
        raise BadSuite(collector.problems[0])
    if not collector.items:
        raise BadSuite(
            f"{folder}: no tests found; a suite has one file test_<question>.py for each question"
        )
    by_question: dict[str, list[pytest.Item]] = {}
    for item in collector.items:
        by_question.setdefault(_question_of(item), []).append(item)
    questions = tuple(_question(name, its_items) for name, its_items in by_question.items())
    return Collected(questions, {(_question_of(item), item.name): item for item in collector.items})


def _question_of(item: pytest.Item) -> str:
    """The question that a collected test belongs to: its file's stem without `test_`."""
    return item.path.stem.removeprefix("test_")


def _question(name: str, items: list[pytest.Item]) -> SuiteQuestion:
    tests = []
    for item in items:
        mark = item.get_closest_marker("points")
        if mark is None:
            raise BadSuite(
                f"{item.path}: {item.name} has no @points; every test of a hidden suite says "
                "what it is worth"
            )
        doc = (getattr(getattr(item, "obj", None), "__doc__", None) or "").strip()
        tests.append(
            SuiteTest(item.name, float(mark.args[0]), " ".join(doc.split("\n\n")[0].split()))
        )
    return SuiteQuestion(name, tuple(tests), _marked(items, "uses"), _marked(items, "forbid"))


def _marked(items: list[pytest.Item], mark: str) -> tuple[str, ...]:
    names = (name for item in items for marker in item.iter_markers(mark) for name in marker.args)
    return tuple(dict.fromkeys(names))


_IDLE_PLUGINS = (
    "cacheprovider",
    "doctest",
    "faulthandler",
    "junitxml",
    "logging",
    "pastebin",
    "stepwise",
    "terminal",
    "threadexception",
    "unraisableexception",
)
"""Plugins of pytest that write reports, or watch for what a suite does not do: they cost more than
a test.
"""


def pytest_arguments(folder: Path, file: Path | None = None) -> list[str]:
    """How pytest is started on a suite's folder, or on a file in it: nothing outside the folder has
    a say in it.
    """
    course = folder.parent
    without = [argument for plugin in _IDLE_PLUGINS for argument in ("-p", f"no:{plugin}")]
    return [
        str(file or folder),
        "--assert=plain",
        "--import-mode=importlib",
        "--capture=no",
        "--disable-plugin-autoload",
        "-c",
        str(course / "pytest.ini"),
        "--rootdir",
        str(course),
        *without,
        "-p",
        "autograder.suite.plugin",
    ]


def _forget_modules(folder: Path) -> None:
    """Make pytest import the suite's files anew.

    A long-lived process must see what was changed since, and a suite of the same name in another
    course is another.
    """
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "")
        # pytest calls them <assignment>.test_<question>; a library may be called like the
        # assignment
        if name.startswith(f"{folder.name}.") and file.parent.parts[-2:] == (
            folder.parent.name,
            folder.name,
        ):
            del sys.modules[name]


class _Collector:
    """A plugin that notes what was collected, and what keeps a file of the suite from being
    imported, one line each.
    """

    def __init__(self, folder: Path) -> None:
        self.items: list[pytest.Item] = []
        self.problems: list[str] = []
        self._folder = folder

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = list(session.items)

    def pytest_exception_interact(
        self,
        node: pytest.Item | pytest.Collector,
        call: pytest.CallInfo[Any],
        report: pytest.CollectReport,
    ) -> None:
        if call.excinfo is None:
            return
        # pytest wraps what an import raises
        error = call.excinfo.value.__cause__ or call.excinfo.value
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).is_relative_to(self._folder)]
        line = error.lineno if isinstance(error, SyntaxError) else own[-1].lineno if own else None
        place = f"{node.path}, line {line}" if line else str(node.path)
        said = (
            error.msg if isinstance(error, SyntaxError) else str(error).strip().rpartition("\n")[2]
        )
        self.problems.append(f"{place}: it does not import: {type(error).__name__}: {said}")
