"""Tests of which pytest would do no more than call them: its protocol for one costs more than most tests do."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from _pytest.python import get_direct_param_fixture_func

from autograder.suite import plugin

_MARKS = frozenset(("points", "uses", "forbid", "parametrize"))


def is_plain(item: pytest.Item) -> bool:
    """Whether a test is a function of `student`, `reference` and its own parameters, and nothing else has a say in it:
    no fixture of the suite's, no conftest.py, no class, and no mark that pytest acts on."""
    if type(item) is not pytest.Function or item.cls is not None or inspect.iscoroutinefunction(item.function):
        return False
    known: Any = item._fixtureinfo
    used = [known.name2fixturedefs.get(name) for name in known.names_closure if name != "request"]
    files = (Path(getattr(one, "__file__", None) or "").name for one in item.config.pluginmanager.get_plugins())
    return (
        all(definitions and _is_given(definitions[-1].func) for definitions in used)
        and "request" not in known.argnames
        and {mark.name for mark in item.iter_markers()} <= _MARKS
        and "conftest.py" not in files
    )


def _is_given(fixture: Any) -> bool:
    """Whether it is the kit's, or stands for a parameter."""
    return fixture is get_direct_param_fixture_func or fixture.__module__ == plugin.__name__


def call_plainly(item: Any, fixtures: plugin.Fixtures) -> BaseException | None:
    """Call a plain test as pytest would; what it raised, or None."""
    plugin.pytest_runtest_setup(item)
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    try:
        item.obj(**{name: parameters[name] if name in parameters else fixtures.given(name)
                    for name in item._fixtureinfo.argnames})  # fmt: skip
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None
