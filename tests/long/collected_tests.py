"""A pytest session that has collected tests once, and runs some of them in a fork for each request.

pytest, the imports and the collection cost a mutant nothing then.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import shutil
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import pytest
from forked_tests import TIMED_OUT, run_here
from swapped_code import Functions, loaded_functions, swap_code

_CRASHED = 70
_START_SECONDS = 30.0
"""What a fork may take before its first test."""


class Plugin(Protocol):
    """A pytest plugin that is told when the tests are over."""

    def finish(self) -> None:
        """Called in the fork after the last test."""


@dataclass(frozen=True, slots=True)
class ModuleChange:
    """A module of the engine in two texts.

    Attributes:
        module: as "grading/pool.py".
    """

    module: str
    original: str
    changed: str


@dataclass(frozen=True, slots=True)
class _Request:
    limits: dict[str, float]
    change: ModuleChange | None
    plugin: tuple[type[Any], tuple[Any, ...]] | None


class CollectedTests:
    """Tests of a copied tree, collected in a process of their own.

    Args:
        names: files of tests.

    Attributes:
        node_ids: the collected tests.
    """

    def __init__(self, tree: Path, names: list[str]) -> None:
        self._connection, server_end = Pipe()
        self._process = os.fork()
        if self._process == 0:
            self._connection.close()
            _collect(tree, names, server_end)
        server_end.close()
        self.node_ids: list[str] = self._connection.recv()

    def run(
        self,
        limits: dict[str, float],
        change: ModuleChange | None = None,
        plugin: tuple[type[Plugin], tuple[Any, ...]] | None = None,
    ) -> tuple[int, str]:
        """Run tests in their order until the first fails.

        Args:
            limits: the tests, each with the seconds that it may take.
            change: the module that the tests meet.
            plugin: class and arguments of a plugin that takes part. With one, all tests run.

        Returns:
            0, another status or TIMED_OUT; the last test that began.
        """
        self._connection.send(_Request(limits, change, plugin))
        status, last = self._connection.recv()
        return status, last

    def close(self) -> None:
        """End the session."""
        self._connection.close()
        os.waitpid(self._process, 0)


def _collect(tree: Path, names: list[str], connection: Connection) -> None:
    """Collect, and answer requests until nobody sends any; ends this process."""
    options = ["--maxfail=1000", "--continue-on-collection-errors"]
    status = _CRASHED
    try:
        status = run_here(tree, [*options, *names], lambda: [_Server(tree, connection)])
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


class _Server:
    """The plugin that answers requests in the place of running the tests."""

    def __init__(self, tree: Path, connection: Connection) -> None:
        self.tree = tree
        self.connection = connection
        self.items: dict[str, pytest.Item] = {}
        self.functions: Functions = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        self.functions = loaded_functions(self.tree / "autograder")
        gc.freeze()  # a collection of garbage in a fork would copy every page
        self.connection.send(list(self.items))
        while True:
            try:
                request = self.connection.recv()
            except EOFError:
                return True
            self.connection.send(self._answer(request))

    def _answer(self, request: _Request) -> tuple[int, str]:
        scratch = self.tree.with_suffix(".tmp")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        progress, progress_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(progress)
            status = _CRASHED
            try:
                os.setsid()  # one signal ends the tests and what they started
                tempfile.tempdir = None  # it was looked up before
                self._run(request, progress_end)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(progress_end)
        try:
            return _watch(child, progress, request.limits)
        finally:
            os.close(progress)

    def _run(self, request: _Request, progress: int) -> None:
        items = [self.items[name] for name in request.limits]
        plugins = items[0].config.pluginmanager
        ends_at_failure = request.plugin is None
        plugins.register(_Progress(progress, ends_at_failure))
        plugin = None
        if request.plugin is not None:
            kind, arguments = request.plugin
            plugin = kind(*arguments)
            plugins.register(plugin)
        change = request.change
        if change is not None:
            path = str(self.tree / "autograder" / change.module)
            swap_code(self.functions[path], change.original, change.changed)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if plugin is not None:
            plugin.finish()


class _Progress:
    """A plugin that tells which test begins, and may end the process at the first failure."""

    def __init__(self, progress: int, ends_at_failure: bool) -> None:
        self.progress = progress
        self.ends_at_failure = ends_at_failure

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        os.write(self.progress, nodeid.encode() + b"\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.ends_at_failure:
            os._exit(1)


def _watch(child: int, progress: int, limits: dict[str, float]) -> tuple[int, str]:
    """Wait for a fork; its status and the last test that began."""
    last = ""
    unread = b""
    status = None
    deadline = time.monotonic() + _START_SECONDS
    while True:
        process, wait_status = os.waitpid(child, os.WNOHANG)
        while select.select([progress], [], [], 0.0 if process else 0.02)[0]:
            data = os.read(progress, 1 << 16)
            if not data:
                break
            *names, unread = (unread + data).split(b"\n")
            if names:
                last = names[-1].decode()
                deadline = time.monotonic() + limits[last]
        if process:
            status = os.waitstatus_to_exitcode(wait_status)
            break
        if time.monotonic() > deadline:
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
        return TIMED_OUT, last
    return status, last
