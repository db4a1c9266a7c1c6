"""Folders that live elsewhere, at hand while a command works: fetched before, put meanwhile and at its end."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.errors import KitError, ResultsInUse, StorageUnavailable
from autograder.folders import Folder
from autograder.storage.order import Order, written_down

if TYPE_CHECKING:
    from autograder.course import Course

_RESULTS_MB = 1024
"""No file of the kit's own comes near it: the report of a large class is the largest."""


@contextlib.contextmanager
def at_hand(
    course: Course, tell: Callable[[str], None], *, read: Collection[Folder] = (), written: Collection[Folder] = ()
) -> Iterator[None]:
    """Inside, the copies of these folders are what stands at their addresses, and what is written into `written` is put
    there. A folder of the course's own is what it is, and costs nothing.

    Args:
        tell: gets a line for what a person should know.

    Raises:
        StorageUnavailable: an address cannot be read or written; says what is safe.
        ResultsInUse: another run writes there.
    """
    orders = [
        Order(
            address=address,
            copy=os.fspath(getattr(course, folder.path).absolute()),
            most=(course.limits.notebook_mb if folder is Folder.SUBMITTED else _RESULTS_MB) << 20,
            written=folder in written,
        )
        for folder in dict.fromkeys((*read, *written))
        if (address := course.address(folder))
    ]
    if not orders:
        yield
        return
    if importlib.util.find_spec("fsspec") is None:
        raise StorageUnavailable(
            "folders at an address need fsspec: `pip install 'attention-kit[s3]'`, or fsspec alone"
        )
    with _Courier(orders, tell) as courier:
        try:
            yield
        except SystemExit:  # a command's own status: it holds only where everything is put
            courier.end()
            raise
        except BaseException:
            try:
                courier.end()
            except KitError as error:  # the other error is what the person must know first
                tell(str(error))
            raise
        courier.end()


def own_folders(
    course: Course,
    tell: Callable[[str], None],
    paths: Collection[Path] = (),
    results: Path | None = None,
    *,
    written: bool = True,
) -> contextlib.AbstractContextManager[None]:
    """`at_hand` of the course's own submissions and results, but for those in whose place others were named.

    Args:
        written: whether the command writes results.

    Raises:
        StorageUnavailable: what was named on the command line is an address.
    """
    for path in (*paths, *([results] if results else [])):
        if re.match(r"[a-z][a-z0-9+.-]+:/", str(path)):
            raise StorageUnavailable(
                f"{path}: an address is named in course.toml, under [folders]; here a folder of this machine is meant"
            )
    own = [] if results else [Folder.RESULTS]
    read = [*([] if paths else [Folder.SUBMITTED]), *([] if written else own)]
    return at_hand(course, tell, read=read, written=own if written else [])


class _Courier:
    """The program beside this command. A context manager: it has ended afterwards."""

    def __init__(self, orders: Sequence[Order], tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autograder.storage.courier"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("AUTOGRADER_DEBUG") else subprocess.DEVNULL,
            start_new_session=True,  # an interrupt at the terminal ends the command, which then has it put what is left
            text=True,
            encoding="utf-8",
        )
        self._orders = orders

    def __enter__(self) -> _Courier:
        try:
            self._send(written_down(self._orders))
            self._answer("ready")
        except BaseException:
            self._stop()
            raise
        return self

    def end(self) -> None:
        """Have everything put."""
        self._send("end")
        self._answer("done")

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has said why, or the answer is missing
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _answer(self, wanted: str) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            kind, text = json.loads(line)
            if kind == wanted:
                return
            if kind == "say":
                self._tell(text)
            else:
                raise ResultsInUse(text) if kind == "in use" else StorageUnavailable(text)
        raise StorageUnavailable(
            "the program that reads and writes the course's folders has ended; run the command again, nothing is lost. "
            "AUTOGRADER_DEBUG=1 in front of it shows why"
        )

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
