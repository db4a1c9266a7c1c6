"""The pytest plugin of a hidden suite: seeds, the call log, and the fixtures `student` and
`reference`.

The code that starts a session (`sitting/loaded_suite.py`) puts the values of the fixtures into the
session's config.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autograder.suite.calls import start_log
from autograder.wire.libraries import loaded_torch

FIXTURE_NAMES = frozenset(("student", "reference"))
"""The fixtures that every suite has."""


@dataclass(slots=True)
class Fixtures:
    """Values of the fixtures of the running session, set anew for every submission and question.

    Attributes:
        student: the proxy; None in a session that grades nobody.
        reference: names of the answer key.
        draw: number of the draw of random inputs; students are graded with draw 0.
    """

    student: Any = None
    reference: Mapping[str, Any] = field(default_factory=dict)
    draw: int = 0

    def value_of(self, fixture: str) -> Any:
        """The value of `student` or `reference`.

        Raises:
            UsageError: the session has no student.
        """
        if fixture == "reference":
            return SimpleNamespace(**self.reference)
        if self.student is None:
            raise pytest.UsageError(
                "hidden suites are run by `autograder grade` or `autograder verify`"
            )
        return self.student


fixtures_key = pytest.StashKey[Fixtures]()


def pytest_configure(config: pytest.Config) -> None:
    """A hook of pytest: give the session fixtures, which are empty until a grader fills them."""
    config.stash.setdefault(fixtures_key, Fixtures())


def seed(name: str, draw: int = 0) -> None:
    """Seed every generator that a suite may draw from, by the test's name."""
    number = zlib.crc32(name.encode(), draw)
    if torch := loaded_torch():
        # torch.manual_seed also stores a traceback for every accelerator: a millisecond a test
        torch.default_generator.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


def begin_test(item: pytest.Item, fixtures: Fixtures) -> None:
    """Give a test random draws and a log of calls of its own."""
    seed(f"{item.path.stem}::{item.name}", fixtures.draw)
    start_log(fixtures.reference)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A hook of pytest: begin a test."""
    begin_test(item, item.config.stash[fixtures_key])


@pytest.fixture
def student(request: pytest.FixtureRequest) -> Any:
    """Proxy to the submission's functions, behind the walls."""
    return request.config.stash[fixtures_key].value_of("student")


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Any:
    """The answer key's functions, in the trusted process."""
    return request.config.stash[fixtures_key].value_of("reference")
