"""Every command that writes files, cut off at each of its writes: killed, on a full disk, on one
that can only be read.

    python tests/long/file_faults.py [--points N] [--seed S] [--only COMMAND]

A small course is made once. Each command is run on a copy of it in a process of its own, in which
every call that changes a file is a point: opening to write, a write, a flush, a rename, a removal,
a new folder, a statement of SQL. For each point and fault the command is cut off there. Then the
next command begins, as any command of the kit does, and every file of the course must be as before,
or as after, all of them alike; the command run again must end as if nothing had happened, and leave
nothing behind. `--points` takes a sample that the seed decides. The last lines on standard output
are a table for docs/security.md; the exit status is 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import dataclasses
import io
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from file_faults_course import COMMANDS, Command, make_course

FAULTS = ("killed", "full disk", "read-only disk")
TORN = "killed"
_MAKES = {"open", "write", "fsync", "mkdir", "sql"}
"""What needs space on a disk."""

State = dict[str, bytes]


@dataclass
class Row:
    """One command: how many points it has, how many times it was cut off, what it was found to be,
    what was wrong.
    """

    command: str
    points: int = 0
    done: int = 0
    old: int = 0
    new: int = 0
    wrong: list[str] = field(default_factory=list)


# In the process that is cut off


class Points:
    """Counts the calls that change files, and does the fault at one of them."""

    def __init__(self, fault: str = "", at: int = -1) -> None:
        self.count = 0
        self._fault, self._at = fault, at

    def reach(
        self, what: str, before_the_end: Callable[[], object] = lambda: None
    ) -> None:
        """A call is about to be made; `before_the_end` does a half of it."""
        number, self.count = self.count, self.count + 1
        if self._fault == "killed" and number == self._at:
            before_the_end()
            os.kill(os.getpid(), signal.SIGKILL)
        elif (
            self._fault == "full disk"
            and number >= self._at >= 0
            and what in _MAKES - {"sql"}
        ):
            raise OSError(28, "No space left on device")
        elif (
            self._fault == "read-only disk"
            and number >= self._at >= 0
            and what not in ("sql", "write", "fsync")
        ):
            raise OSError(30, "Read-only file system")

    def install(self) -> None:
        """Let every call of this process that changes a file pass by here."""
        for name in (
            "replace",
            "rename",
            "unlink",
            "remove",
            "mkdir",
            "rmdir",
            "fsync",
        ):
            setattr(os, name, self._wrapped(getattr(os, name), name))
        opened = io.open

        def open_(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
            if not set(mode) & set("wxa+") or str(file) == os.devnull:
                return opened(file, mode, *rest, **more)
            self.reach("open")
            if "b" not in mode or "+" in mode:
                return opened(file, mode, *rest, **more)
            return io.BufferedWriter(_Raw(self, file, mode))

        for module in (io, builtins):
            setattr(module, "open", open_)  # noqa: B010  # no type checker knows that one may
        connect: Callable[..., sqlite3.Connection] = sqlite3.connect

        def connect_(*arguments: Any, **more: Any) -> sqlite3.Connection:
            connection = connect(*arguments, **more)
            connection.set_trace_callback(lambda statement: self.reach("sql"))
            return connection

        for module in (sqlite3, sqlite3.dbapi2):
            setattr(module, "connect", connect_)  # noqa: B010

    def _wrapped(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **more: Any) -> Any:
            self.reach(name)
            return call(*arguments, **more)

        return wrapped


class _Raw(io.FileIO):
    """A file whose writes are points; a process that is killed in one has written a half."""

    def __init__(self, points: Points, file: Any, mode: str) -> None:
        super().__init__(file, mode.replace("b", ""))
        self._points = points

    def write(self, data: Any) -> int:
        half = bytes(data)[: len(data) // 2]
        self._points.reach("write", lambda: super(_Raw, self).write(half))
        return super().write(data) or 0


@dataclass(frozen=True)
class Ended:
    """How a process ended: its status, what it said, and how many points it passed."""

    status: int
    said: str
    points: int


def run(command: Command, root: Path, fault: str = "", at: int = -1) -> Ended:
    """Run a command in a fork of this process, in which everything is imported already."""
    report = root.parent / f"{root.name}.said"
    child = os.fork()
    if child == 0:
        points, said = Points(fault, at), io.StringIO()
        status = 70
        try:
            os.chdir(root)
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(said),
            ):
                points.install()
                status = command.run(root)
        except BaseException:
            said.write(traceback.format_exc())
        finally:
            handle = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.write(handle, f"{points.count}\n{said.getvalue()}".encode())
            os._exit(status)
    _, code = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(code)
    count, _, said_ = (
        report.read_text().partition("\n") if report.exists() else ("0", "", "")
    )
    report.unlink(missing_ok=True)
    return Ended(status, said_, int(count))


# What is on the disk


def state_of(root: Path) -> State:
    """Every file of the course but what the kit keeps for itself; of a gradebook what stands in
    it.
    """
    files = (
        path
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".autograder" not in path.parts
    )
    return {
        path.relative_to(root).as_posix(): _content(path)
        for path in files
        if not path.name.endswith("-journal")
    }


def _content(path: Path) -> bytes:
    if path.name != "gradebook.db":
        return path.read_bytes()
    with contextlib.closing(sqlite3.connect(path)) as book:
        rows = book.execute(
            "SELECT student.id, cell.name, grade.auto_score, grade.needs_manual_grade FROM grade "
            "JOIN submitted_notebook ON grade.notebook_id = submitted_notebook.id JOIN "
            "submitted_assignment ON submitted_notebook.assignment_id = submitted_assignment.id "
            "JOIN student ON submitted_assignment.student_id = student.id JOIN base_cell AS cell "
            "ON grade.cell_id = cell.id ORDER BY 1, 2"
        ).fetchall()
        return repr(rows).encode()


def _only_parts(state: State) -> State:
    return {
        name: content
        for name, content in state.items()
        if name.endswith(".part") or "/.collecting-" in name
    }


def check(
    command: Command, base: Path, old: State, new: State, fault: str, at: int, row: Row
) -> None:
    """Cut the command off at one point of a fresh copy, and look at everything that follows."""
    from autograder.basics.file_transaction import recover_transactions

    root = base.parent / "cut-off"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(base, root, symlinks=True)
    wrong = []
    ended = run(command, root, fault, at)
    if fault != "killed":
        if ended.status not in (0, 2) or "Traceback" in ended.said:
            wrong.append(f"status {ended.status}, {ended.said[-600:]}")
        if ended.status == 2 and not ended.said.splitlines()[-1].startswith(
            "autograder: "
        ):
            wrong.append(f"said {ended.said!r}")
    lines: list[str] = []
    recover_transactions(command.kept(root), lines.append)
    after = state_of(root)
    whole = {
        name: content
        for name, content in after.items()
        if name not in _only_parts(after)
    }
    if whole == old:
        row.old += 1
    elif whole == new:
        row.new += 1
    else:
        differing = [
            name
            for name in {*whole, *new}
            if whole.get(name) not in (old.get(name), new.get(name))
        ]
        wrong.append(f"neither old nor new; of neither: {differing[:3]}; {lines}")
    if (
        fault != "killed"
        and whole == new != old
        and ended.status == 2
        and "goes on" not in ended.said
    ):
        wrong.append(f"it is done, and it said {ended.said!r}")
    # `new` refuses to do again what is done, and `collect` says that nothing is new
    if whole != new:
        again = run(command, root)
        if again.status != 0:
            wrong.append(f"again: status {again.status}, {again.said[-300:]}")
    last = state_of(root)
    if whole == new:  # what was unpacked to be collected the next `collect` removes
        last = {
            name: content
            for name, content in last.items()
            if "/.collecting-" not in name
        }
    if last != new:
        names = [name for name in {*last, *new} if last.get(name) != new.get(name)]
        wrong.append(f"again: other than undisturbed: {names[:3]}")
    if left := list(command.kept(root).glob("unfinished/*.*")):
        wrong.append(f"left behind: {left}")
    row.done += 1
    row.wrong += [f"{row.command}, {fault} at {at}: {problem}" for problem in wrong]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--points",
        type=int,
        default=0,
        help="so many for each command and fault (0: all)",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only",
        default="",
        help="commands whose names hold one of these, with commas between them",
    )
    options = parser.parse_args()
    rng, rows = random.Random(options.seed), []
    with tempfile.TemporaryDirectory(prefix="file-faults-") as folder:
        course = make_course(Path(folder) / "course")
        for command in COMMANDS:
            if not any(name in command.name for name in options.only.split(",")):
                continue
            base = Path(folder) / "before"
            shutil.rmtree(base, ignore_errors=True)
            shutil.copytree(course, base)
            command.prepare(base)
            rows.append(faults_of(command, base, options.points, rng))
            print(
                f"{command.name}: {rows[-1].done} done, {len(rows[-1].wrong)} wrong",
                file=sys.stderr,
            )
    for problem in (problem for row in rows for problem in row.wrong):
        print(problem, file=sys.stderr)
    print(
        "| command | points | cut off | as before | as after | wrong |\n| --- | --- | --- | --- "
        "| --- | --- |"
    )
    for row in rows:
        print(
            f"| {row.command} | {row.points} | {row.done} | {row.old} | {row.new} | "
            f"{len(row.wrong)} |"
        )
    raise SystemExit(any(row.wrong for row in rows))


def faults_of(command: Command, base: Path, sample: int, rng: random.Random) -> Row:
    """Every fault of one command, at every point or a sample of them."""
    row = Row(command.name)
    old, undisturbed = state_of(base), base.parent / "undisturbed"
    shutil.rmtree(undisturbed, ignore_errors=True)
    shutil.copytree(base, undisturbed, symlinks=True)
    ended = run(command, undisturbed)
    new = state_of(undisturbed)
    row = dataclasses.replace(row, points=ended.points)
    if ended.status != 0 or new == old:
        row.wrong.append(
            f"{command.name}, undisturbed: status {ended.status}, changes {new != old}: "
            f"{ended.said}"
        )
        return row
    for fault in FAULTS:
        numbers = range(ended.points)
        for at in (
            sorted(rng.sample(numbers, min(sample, len(numbers))))
            if sample
            else numbers
        ):
            check(command, base, old, new, fault, at, row)
    return row


if __name__ == "__main__":
    main()
