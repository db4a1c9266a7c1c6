"""Files that change together: after a kill, a full disk or a power cut all of them are new, or none
is.

New files are written beside those that they replace, and a journal lists them. Once the journal has
its second name they are put in place. Whatever ends in between, the next command finds the journal:
it finishes one of the second name, undoes any other, and says so. Journals lie in `unfinished/` of
a course's folder for what the kit keeps.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from autograder.basics.errors import KitError
from autograder.basics.explain import explain_error
from autograder.basics.stored_json import decode_stored, encode_line, stored_text
from autograder.basics.whole_files import Content, name_file_in_errors, part_path, write_part

_JOURNALS, _WRITTEN, _COMMITTED = "unfinished", ".jsonl", ".committed"
_PATIENCE = 20.0
"""Seconds that a command waits for another one which puts its files in place."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A line of a journal.

    Attributes:
        do: "begin" stands before the others; "make" is a folder that was not there; of "database"
            the other files are put in place where it has been changed.
        path: what is replaced, removed, moved or made: an absolute path, so that a later command
            finds it wherever that command is called; of "begin", the command.
        other: the new file that takes the place of `path`, or where `path` is moved; of a database,
            the number that its `user_version` has after the change.
    """

    do: Literal["begin", "make", "database", "replace", "move", "remove"]
    path: str = ""
    other: str = ""


class FileTransaction:
    """Files that one command writes, moves and removes.

    `with FileTransaction(...) as files:` puts them in place at its end; where the block ends with
    an error, everything stays as it was.
    """

    def __init__(self, kept: Path, command: str) -> None:
        """
        Args:
            kept: the course's folder for what the kit keeps; where nothing can be written there,
                nothing is finished after a kill.
            command: what is running, as it may stand in a message.
        """
        self._kept, self._command = kept, command
        self._steps: list[_Step] = []
        self._staged: set[Path] = set()
        self._leaving: set[Path] = set()
        self._journal: io.TextIOWrapper | None = None
        self._journal_path = kept / _JOURNALS / f"{os.getpid()}-{secrets.token_hex(8)}{_WRITTEN}"

    def write(self, path: Path, content: Content, *, to_disk: bool = True) -> None:
        """Replace a file, or make it.

        Args:
            to_disk: flush it, so that it outlasts a loss of power.
        """
        part = self.stage(path)
        write_part(path, part, content, to_disk=to_disk)

    def stage(self, path: Path) -> Path:
        """The name under which somebody else writes the new file that takes the place of `path`."""
        path = path.absolute()
        self.make_folder(path.parent)
        part = part_path(path)
        self._note(_Step("replace", str(path), str(part)))
        self._staged.add(path)
        return part

    def change_database(self, path: Path) -> int:
        """Let these files go with a change of an SQLite database, which happens by itself.

        Returns:
            what the transaction has to write as `user_version`: whoever finds it there knows that
            it was committed.
        """
        number = 1 + secrets.randbelow((1 << 31) - 1)  # 0 is what a database has of itself
        self._note(_Step("database", str(path.absolute()), str(number)))
        return number

    def make_folder(self, folder: Path) -> None:
        """Make a folder, and those above it."""
        folder = folder.absolute()
        with name_file_in_errors(folder):
            for each in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
                self._note(_Step("make", str(each)))
                each.mkdir(exist_ok=True)

    def will_exist(self, path: Path) -> bool:
        """Whether a file will be there once everything is in place."""
        return path.is_file() or path.absolute() in self._staged

    def will_vanish(self, path: Path) -> bool:
        """Whether what lies there now is to be moved or removed."""
        return path.absolute() in self._leaving

    def move(self, path: Path, to: Path) -> None:
        """Move a file or a folder to a name that is free."""
        self._leaving.add(path.absolute())
        self._note(_Step("move", str(path.absolute()), str(to.absolute())))

    def remove(self, path: Path) -> None:
        """Remove a file; nothing happens where it is not there."""
        self._leaving.add(path.absolute())
        self._note(_Step("remove", str(path.absolute())))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None or _is_in_database(self._steps):
                self._commit()
            else:
                _undo(self._steps)
                self._forget_journal()
        finally:
            if self._journal is not None:
                self._journal.close()

    def _commit(self) -> None:
        with _hold_commit_lock(self._kept):
            try:
                self._mark_committed()
                _apply(self._steps[:1])  # where this fails no file has changed yet
            except BaseException as error:
                database = _is_in_database(self._steps)
                if not database and self._forget_journal():
                    _undo(self._steps)
                elif isinstance(error, OSError) and (
                    database or self._journal_path.suffix == _COMMITTED
                ):
                    raise _unfinished(error, self._command, 0, len(self._steps)) from error
                raise
            _apply_again(self._steps, self._command)
        self._forget_journal()

    def _mark_committed(self) -> None:
        """A new name takes no space: a disk that is full now changes nothing any more."""
        if self._journal is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._journal.fileno())
            committed = self._journal_path.with_suffix(_COMMITTED)
            self._journal_path.replace(committed)
            self._journal_path = committed

    def _note(self, step: _Step) -> None:
        if not self._steps:
            self._open_journal()
            self._log(_Step("begin", self._command))
        self._log(step)
        self._steps.append(step)

    def _open_journal(self) -> None:
        # a course that can only be read, and files that go elsewhere
        with contextlib.suppress(OSError):
            self._journal_path.parent.mkdir(parents=True, exist_ok=True)
            self._journal = self._journal_path.open("x", encoding="utf-8")
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _log(self, step: _Step) -> None:
        if self._journal is not None:
            with name_file_in_errors(self._journal_path):
                self._journal.write(encode_line(step).decode() + "\n")
                self._journal.flush()

    def _forget_journal(self) -> bool:
        """Whether no later command will find it."""
        with contextlib.suppress(OSError):
            self._journal_path.unlink(missing_ok=True)
        return not self._journal_path.exists()


def recover_transactions(kept: Path, tell: Callable[[str], None]) -> None:
    """Finish, or undo, what commands that were cut off had begun; `tell` gets a line for each.

    Raises:
        KitError: another command puts its files in place and does not end, or a journal cannot be
            read.
    """
    for path in sorted((kept / _JOURNALS).glob("*.*")):
        with contextlib.suppress(FileNotFoundError), path.open("r+", encoding="utf-8") as journal:
            if not _is_abandoned(journal, path):
                continue
            command, steps = _read_journal(path)
            if path.suffix == _COMMITTED or _is_in_database(steps):
                with _hold_commit_lock(kept):
                    _apply_again(steps, command)
                tell(f"{command} was cut off while it put its files in place; that is finished now")
            else:
                _undo(steps)
                tell(f"{command} was cut off before its files were in place: run it again")
            path.unlink(missing_ok=True)


def _is_abandoned(journal: io.TextIOWrapper, path: Path) -> bool:
    """Whether nobody works on what the journal lists. Who is about to end is waited for."""
    until = time.monotonic() + _PATIENCE
    while path.exists():
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return path.exists()
        except BlockingIOError:
            if path.suffix != _COMMITTED:
                return False  # it has changed nothing yet
            if time.monotonic() > until:
                command, _ = _read_journal(path)
                raise KitError(
                    f"{command} puts its files in place and does not end: wait for it, or end it"
                ) from None
            time.sleep(0.05)
    return False


def _read_journal(path: Path) -> tuple[str, list[_Step]]:
    """The command, and its steps. The last line may be half a line."""
    try:
        lines = stored_text(path).split("\n")[:-1]
        steps = [decode_stored(line, _Step) for line in lines]
    except ValueError as error:
        raise KitError(
            f"{path}: {error}; what it lists is unfinished: look at it, and move it away"
        ) from error
    command = steps[0].path if steps else "a command"
    return command, [step for step in steps if step.do != "begin"]


def _apply_again(steps: list[_Step], command: str) -> None:
    """Put the new files in place, from the first on: what is there already stays.

    Raises:
        KitError: it cannot go on; the next command tries again.
    """
    for number, step in enumerate(steps):
        try:
            _apply([step])
        except OSError as error:
            raise _unfinished(error, command, number, len(steps)) from error


def _unfinished(error: OSError, command: str, done: int, steps: int) -> KitError:
    return KitError(
        f"{explain_error(error)}. {command} has put {done} of {steps} files in place; the next "
        "command goes on"
    )


def _apply(steps: list[_Step]) -> None:
    for step in steps:
        path, other = Path(step.path), Path(step.other)
        with name_file_in_errors(path):
            if step.do == "replace":
                with contextlib.suppress(FileNotFoundError):  # it is in place already
                    other.replace(path)
            elif step.do == "move":
                if not other.exists() and path.exists():
                    path.rename(other)
            elif step.do == "remove":
                path.unlink(missing_ok=True)


def _is_in_database(steps: list[_Step]) -> bool:
    """Whether the change of a database that goes with these files has been committed."""
    step = next((step for step in steps if step.do == "database"), None)
    if step is None or not Path(step.path).is_file():
        return False
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(step.path)) as database,
    ):
        return [str(number) for number in database.execute("PRAGMA user_version").fetchone()] == [
            step.other
        ]
    return False


def _undo(steps: list[_Step]) -> None:
    """Remove the new files, and the folders that were made for them; nothing else was touched
    yet.
    """
    for step in reversed(steps):
        with contextlib.suppress(OSError):
            if step.do == "replace":
                Path(step.other).unlink(missing_ok=True)
                # of a database that was being made
                Path(f"{step.other}-journal").unlink(missing_ok=True)
            elif step.do == "make":
                Path(step.path).rmdir()


@contextlib.contextmanager
def _hold_commit_lock(kept: Path) -> Iterator[None]:
    """Inside, no other command of the course puts its files in place; so files of two never mix."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            (kept / _JOURNALS).mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((kept / _JOURNALS / "lock").open("a", encoding="utf-8"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
