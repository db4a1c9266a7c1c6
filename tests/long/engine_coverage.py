"""Which lines of the engine each test runs, measured once and kept in `build/engine_coverage/`.

A test file is measured again when it changed, or a module that it runs. A test that takes longer
than a mutant's budget is ended and left out: no mutant could meet it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import line_marks
import pytest
from collected_tests import CollectedTests
from forked_tests import ROOT, TIMED_OUT

STORE = ROOT / "build" / "engine_coverage"
_RECORDS = "records.jsonl"
MOST_SECONDS = 300.0
"""The limit of one test that is run without a mutant."""


@dataclass(frozen=True, slots=True)
class TestLines:
    """The lines of the engine that one test runs.

    Attributes:
        test: its node id.
        seconds: what it takes while it is traced, with the fixtures that it is first to ask for.
        lines: module, as "grading/pool.py" → line numbers.
        shared: seconds that fixtures take which it shares with others, such as a host.
    """

    __test__ = False  # no test class, whatever its name

    test: str
    seconds: float
    lines: dict[str, list[int]]
    shared: float = 0.0


@dataclass(slots=True)
class FileCoverage:
    """The tests of one file that passed, and the files whose change makes this outdated.

    Attributes:
        not_passed: tests that were skipped or failed.
        too_long: tests that were ended after `limit` seconds.
    """

    hashes: dict[str, str] = field(default_factory=dict)
    tests: list[TestLines] = field(default_factory=list)
    not_passed: list[str] = field(default_factory=list)
    too_long: list[str] = field(default_factory=list)
    limit: float = 0.0

    def is_current(self, limit: float) -> bool:
        """Whether the test file and all modules that it ran are what they were, and no test that
        may take so many seconds was ended earlier.
        """
        if self.too_long and self.limit < limit:
            return False
        return bool(self.hashes) and all(
            _hash(ROOT / name) == value for name, value in self.hashes.items()
        )


class _Recorder:
    """A pytest plugin: takes the marked lines after each test and writes them to a file."""

    def __init__(self, folder: Path, tree: Path) -> None:
        os.environ["PYTHONPATH"] += os.pathsep + str(folder)  # for what tests start
        os.environ[line_marks.FOLDER] = str(folder)
        self.folder = folder
        self.package = tree / "autograder"
        self.marks = line_marks.LineMarks(folder)
        self.marks.start()
        self.passed = False
        self.fixture_seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.passed = True
        self.marks.start()
        start = time.monotonic()
        result = yield
        record = self._record(item, time.monotonic() - start)
        with (self.folder / _RECORDS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that is skipped or fails is no proof against a mutant."""
        if not report.passed:
            self.passed = False

    def finish(self) -> None:
        """Trace no more: this process ends soon."""
        sys.settrace(None)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Iterator[None]:
        """Time the fixtures that several tests share."""
        start = time.monotonic()
        result = yield
        if fixturedef.scope != "function":
            seconds = time.monotonic() - start
            self.fixture_seconds[fixturedef.argname] = seconds
        return result

    def _record(self, item: pytest.Item, seconds: float) -> dict[str, Any]:
        lines = {
            Path(path).relative_to(self.package).as_posix(): numbers
            for path, numbers in self.marks.take().items()
        }
        names = getattr(item, "fixturenames", ())
        shared = sum(self.fixture_seconds.get(name, 0.0) for name in names)
        return {
            "test": item.nodeid,
            "seconds": round(seconds, 3),
            "lines": lines,
            "shared": round(shared, 3),
            "passed": self.passed,
        }


def measure_coverage(
    collected: CollectedTests, tree: Path, names: list[str], limit: float
) -> dict[str, FileCoverage]:
    """Test file → its coverage, measured where none is stored or the stored one is outdated.

    Args:
        limit: seconds that a test may take while it is traced.
    """
    coverage = {}
    for name in names:
        coverage[name] = _load(name)
        if coverage[name].is_current(limit):
            continue
        start = time.monotonic()
        coverage[name] = _measure_file(collected, tree, name, limit)
        _store(name, coverage[name])
        print(_describe(name, coverage[name], time.monotonic() - start), flush=True)
    return coverage


def _describe(name: str, coverage: FileCoverage, seconds: float) -> str:
    """One line: the file and how many of its tests were measured."""
    counts = [
        f"{len(coverage.tests)} tests",
        f"{len(coverage.not_passed)} left out",
        f"{len(coverage.too_long)} too long",
        f"{seconds:.0f} s",
    ]
    return f"{name}: {', '.join(counts)}"


def _measure_file(
    collected: CollectedTests, tree: Path, name: str, limit: float
) -> FileCoverage:
    folder = tree.with_suffix(".marks")
    shutil.rmtree(folder, ignore_errors=True)
    line_marks.lay_out(tree, folder)
    tests = [test for test in collected.node_ids if test.partition("::")[0] == name]
    coverage = FileCoverage({name: _hash(tree / name)}, limit=limit)
    while tests:
        plugin = (_Recorder, (folder, tree))
        status, last = collected.run(dict.fromkeys(tests, limit), plugin=plugin)
        if status != TIMED_OUT:
            break
        coverage.too_long.append(last)
        tests = tests[tests.index(last) + 1 :]
    records = folder / _RECORDS
    if not records.exists():
        coverage.not_passed.append(name)
        return coverage
    for line in records.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record.pop("passed"):
            coverage.tests.append(TestLines(**record))
        else:
            coverage.not_passed.append(record["test"])
    for module in {module for test in coverage.tests for module in test.lines}:
        coverage.hashes[f"autograder/{module}"] = _hash(tree / "autograder" / module)
    return coverage


def _stored_at(name: str) -> Path:
    """Names of test modules stand once in the package, so that folders need not tell them apart."""
    return STORE / f"{Path(name).stem}.json"


def _load(name: str) -> FileCoverage:
    path = _stored_at(name)
    if not path.exists():
        return FileCoverage()
    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["tests"] = [TestLines(**test) for test in stored["tests"]]
    return FileCoverage(**stored)


def _store(name: str, coverage: FileCoverage) -> None:
    STORE.mkdir(parents=True, exist_ok=True)
    path = _stored_at(name)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(coverage)), encoding="utf-8")
    partial.replace(path)


def _hash(path: Path) -> str:
    if not path.exists():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
