"""Tests of which pytest would do no more than call them: its protocol for one costs more than most tests do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from autograder.suite.plugin import GIVEN, Fixtures, begin

_MARKS = frozenset(("points", "uses", "forbid", "parametrize"))


def is_plain(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Whether a test is a function of `student`, `reference` and its own parameters, and nothing else has a say in it:
    no fixture of the suite's, no conftest.py, no class, and no mark that pytest acts on."""
    if type(item) is not pytest.Function or item.cls is not None or inspect.iscoroutinefunction(item.function):
        return False
    marks = list(item.iter_markers())
    files = (Path(getattr(one, "__file__", None) or "").name for one in item.config.pluginmanager.get_plugins())
    asks_for = set(_asks_for(item.function))
    return (
        asks_for <= GIVEN | parameters(item).keys()
        and set(item.fixturenames) <= asks_for | {"request"}  # which `student` and `reference` ask for
        and not any(hasattr(item.module, name) for name in GIVEN)
        and {mark.name for mark in marks} <= _MARKS
        and not any(mark.kwargs.get("indirect") for mark in marks)
        and "conftest.py" not in files
    )


@cache
def _asks_for(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of its parameters: looked up once a test, and not once a submission."""
    return tuple(inspect.signature(function).parameters)


def parameters(item: pytest.Item) -> Mapping[str, Any]:
    """What `parametrize` gives a test.

    The one thing here that pytest does not document: tests/autograder/suite/test_plain_tests.py says so when another
    version has it no more, and pyproject.toml goes up to the next minor version only when that was tried.
    """
    return item.callspec.params if hasattr(item, "callspec") else {}


def call_plainly(item: pytest.Function, fixtures: Fixtures) -> BaseException | None:
    """Call a plain test as pytest would; what it raised, or None."""
    begin(item, fixtures)
    own = parameters(item)
    try:
        item.obj(**{name: own[name] if name in own else fixtures.given(name) for name in _asks_for(item.function)})
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None
