"""Collects a hidden suite without running it: questions, tests, points, and prerequisites."""

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
    """One test of a suite.

    Attributes:
        name: the function's name, with its parameters if it has any.
        hint: first paragraph of the docstring, for a student who fails the test.
    """

    name: str
    points: float
    hint: str


@dataclass(frozen=True, slots=True)
class SuiteQuestion:
    """One question of a suite: one file `test_<name>.py`."""

    name: str
    tests: tuple[SuiteTest, ...]
    uses: tuple[str, ...]
    forbidden: tuple[str, ...]

    @property
    def points(self) -> float:
        """The points of all tests together."""
        return sum(test.points for test in self.tests)


@dataclass(frozen=True, slots=True)
class CollectedSuite:
    """A suite as pytest collected it.

    Attributes:
        questions: the questions, in the order of their files.
        items: pytest's items, by question and test.
    """

    questions: tuple[SuiteQuestion, ...]
    items: Mapping[tuple[str, str], pytest.Item]


def collect_suite(folder: Path) -> CollectedSuite:
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
    items = {}
    for item in collector.items:
        question = item.path.stem.removeprefix("test_")
        by_question.setdefault(question, []).append(item)
        items[question, item.name] = item
    questions = tuple(_question(name, tests) for name, tests in by_question.items())
    return CollectedSuite(questions, items)


def _question(name: str, items: list[pytest.Item]) -> SuiteQuestion:
    tests = []
    for item in items:
        mark = item.get_closest_marker("points")
        if mark is None:
            raise BadSuite(
                f"{item.path}: {item.name} has no @points; every test of a hidden suite says "
                "what it is worth"
            )
        docstring = (getattr(getattr(item, "obj", None), "__doc__", None) or "").strip()
        hint = " ".join(docstring.split("\n\n")[0].split())
        tests.append(SuiteTest(item.name, float(mark.args[0]), hint))
    return SuiteQuestion(
        name,
        tuple(tests),
        _arguments_of_marks(items, "uses"),
        _arguments_of_marks(items, "forbid"),
    )


def _arguments_of_marks(
    items: list[pytest.Item],
    mark: str,
) -> tuple[str, ...]:
    """The arguments of all marks of that name, each once."""
    names: list[str] = []
    for item in items:
        for marker in item.iter_markers(mark):
            names += marker.args
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
"""Plugins of pytest that write reports, or watch for events that no suite has: they take longer
than a test.
"""


def pytest_arguments(folder: Path, file: Path | None = None) -> list[str]:
    """The command line of pytest for a suite's folder, or for a file in it. No configuration
    outside the folder counts.
    """
    course = folder.parent
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
        *(f"-pno:{plugin}" for plugin in _IDLE_PLUGINS),
        "-pautograder.suite.plugin",
    ]


def _forget_modules(folder: Path) -> None:
    """Make pytest import the suite's files anew.

    A long-lived process must see changes of the files, and another course may have a suite of the
    same name.
    """
    place = (folder.parent.name, folder.name)
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "")
        # pytest names them <assignment>.test_<question>; a library may have the assignment's name
        if name.startswith(f"{folder.name}.") and file.parent.parts[-2:] == place:
            del sys.modules[name]


class _Collector:
    """A plugin of pytest that notes the collected items, and a line for each file that does not
    import.
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
        error = (
            call.excinfo.value.__cause__ or call.excinfo.value
        )  # pytest wraps import errors
        if isinstance(error, SyntaxError):
            line, message = error.lineno, error.msg
        else:
            line, message = None, str(error).strip().rpartition("\n")[2]
            for frame in traceback.extract_tb(error.__traceback__):
                if Path(frame.filename).is_relative_to(self._folder):
                    line = frame.lineno
        place = f"{node.path}, line {line}" if line else str(node.path)
        self.problems.append(
            f"{place}: it does not import: {type(error).__name__}: {message}"
        )
