"""The pytest plugin of a hidden suite: seeds, the call log, and the fixtures `student` and
`reference`.

Whoever runs a session says what the fixtures are by filling the `Fixtures` of its config
(autograder/grading does).
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

GIVEN = frozenset(("student", "reference"))
"""The fixtures that every suite has."""


@dataclass(slots=True)
class Fixtures:
    """What tests of the running session are given: set anew for every submission and question.

    Attributes:
        student: the proxy; None where nobody has said who the student is.
        reference: names of the answer key.
        draw: which draw of the random inputs; 0 is the one that students are graded with.
    """

    student: Any = None
    reference: Mapping[str, Any] = field(default_factory=dict)
    draw: int = 0

    def given(self, fixture: str) -> Any:
        """What a test gets for `student` or `reference`.

        Raises:
            UsageError: nobody has said who the student is.
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
    """A hook of pytest: a session has fixtures, empty until a grader fills them."""
    config.stash.setdefault(fixtures_key, Fixtures())


def seed(name: str, draw: int = 0) -> None:
    """Seed every generator that a suite may draw from, by the test's own name."""
    number = zlib.crc32(name.encode(), draw)
    if torch := loaded_torch():
        # torch.manual_seed also notes a traceback for every accelerator: a millisecond a test
        torch.default_generator.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


def begin(item: pytest.Item, fixtures: Fixtures) -> None:
    """Before each test: it has its own draws and its own log of calls."""
    seed(f"{item.path.stem}::{item.name}", fixtures.draw)
    start_log(fixtures.reference)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A hook of pytest."""
    begin(item, item.config.stash[fixtures_key])


@pytest.fixture
def student(request: pytest.FixtureRequest) -> Any:
    """Proxy to the submission's functions, behind the walls."""
    return request.config.stash[fixtures_key].given("student")


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Any:
    """The answer key's functions, in the trusted process."""
    return request.config.stash[fixtures_key].given("reference")
