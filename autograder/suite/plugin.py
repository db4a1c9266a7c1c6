"""The pytest plugin of a hidden suite: seeds, the call log, and the fixtures `student` and `reference`.

Whoever runs a session says what the fixtures are by setting `Bench` on the config (autograder/grading does).
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from autograder.suite.calls import start_log


@dataclass(slots=True)
class Bench:
    """What the running session tests: set anew for every submission and question.

    Attributes:
        student: gives the proxy for a test, or raises a StudentFault.
        reference: names of the answer key.
        draw: which draw of the random inputs; 0 is the one that students are graded with.
    """

    student: Callable[[], Any] | None = None
    reference: Mapping[str, Any] = field(default_factory=dict)
    draw: int = 0

    def given(self, fixture: str) -> Any:
        """What a test gets for `student` or `reference`.

        Raises:
            StudentFault: there is no student to be had.
            UsageError: nobody has said who the student is.
        """
        if fixture == "reference":
            return SimpleNamespace(**self.reference)
        if self.student is None:
            raise pytest.UsageError("hidden suites are run by `autograder grade` or `autograder verify`")
        return self.student()


bench_key = pytest.StashKey[Bench]()


def pytest_configure(config: pytest.Config) -> None:
    """A hook of pytest: a session has a bench, empty until a grader fills it."""
    config.stash.setdefault(bench_key, Bench())


def seed(name: str, draw: int = 0) -> None:
    """Seed every generator that a suite may draw from, by the test's own name."""
    number = zlib.crc32(name.encode(), draw)
    # torch.manual_seed also notes a traceback for every accelerator: a millisecond a test
    torch.default_generator.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A hook of pytest: each test has its own draws and its own log of calls."""
    bench = item.config.stash[bench_key]
    seed(f"{item.path.stem}::{item.name}", bench.draw)
    start_log(bench.reference)


@pytest.fixture
def student(request: pytest.FixtureRequest) -> Any:
    """Proxy to the submission's functions, behind the walls."""
    return request.config.stash[bench_key].given("student")


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Any:
    """The answer key's functions, in the trusted process."""
    return request.config.stash[bench_key].given("reference")
