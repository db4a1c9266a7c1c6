"""Files that change together: after a kill, a full disk or a power cut all files are new, or none.

New files are written beside the files that they replace, and a journal lists them. Then the journal
is renamed, which commits the transaction, and the files are put in place. After a cut in between,
the next command finds the journal: it finishes a committed transaction, undoes any other, and says
so. Journals lie in `unfinished/` of a course's folder for the kit's records.
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
from autograder.basics.whole_files import (
    Content,
    name_file_in_errors,
    part_path,
    write_part,
)

_JOURNALS = "unfinished"
_WRITTEN = ".jsonl"
_COMMITTED = ".committed"
_PATIENCE = 20.0
"""Seconds that a command waits for another command which puts its files in place."""
_Action = Literal["begin", "make", "database", "replace", "move", "remove"]


@dataclass(frozen=True, slots=True)
class _Step:
    """A line of a journal.

    Attributes:
        do: "begin" is the first line; "make" makes a folder; after "database" the files are put in
            place once the database has changed.
        path: the file or folder to replace, remove, move or make: an absolute path, so that a later
            command finds it from any folder; after "begin", the command.
        other: the new file that replaces `path`, or the new place of `path`; for a database, the
            number in its `user_version` after the change.
    """

    do: _Action
    path: str = ""
    other: str = ""


class FileTransaction:
    """The files that one command writes, moves and removes, all of them or none.

    `with FileTransaction(...) as files:` puts the files in place at the end of the block; where the
    block ends with an error, everything stays as it was.
    """

    def __init__(self, folder: Path, command: str) -> None:
        """
        Args:
            folder: the course's folder for the kit's records; where the folder cannot be written,
                nothing is finished after a kill.
            command: the running command, for messages.
        """
        self._folder = folder
        self._command = command
        self._steps: list[_Step] = []
        self._staged: set[Path] = set()
        self._leaving: set[Path] = set()
        self._journal: io.TextIOWrapper | None = None
        name = f"{os.getpid()}-{secrets.token_hex(8)}{_WRITTEN}"
        self._journal_path = folder / _JOURNALS / name

    def write(
        self,
        path: Path,
        content: Content,
        *,
        to_disk: bool = True,
    ) -> None:
        """Write a new file, or the new content of a file.

        Args:
            to_disk: flush the file, so that it outlasts a loss of power.
        """
        write_part(
            path,
            self.stage(path),
            content,
            to_disk=to_disk,
        )

    def stage(self, path: Path) -> Path:
        """The name under which the caller writes the new content of a file."""
        path = path.absolute()
        self.make_folder(path.parent)
        part = part_path(path)
        self._add_step("replace", path, part)
        self._staged.add(path)
        return part

    def change_database(self, path: Path) -> int:
        """Tie the files to a change of an SQLite database, which the caller commits.

        Returns:
            the number to write as `user_version` in the same transaction of the database: whoever
            finds it later knows that the change was committed.
        """
        number = 1 + secrets.randbelow((1 << 31) - 1)  # a new database has 0
        self._add_step("database", path, str(number))
        return number

    def make_folder(self, folder: Path) -> None:
        """Make a folder, and the folders above it."""
        folder = folder.absolute()
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        with name_file_in_errors(folder):
            for path in reversed(missing):
                self._add_step("make", path)
                path.mkdir(exist_ok=True)

    def will_exist(self, path: Path) -> bool:
        """Whether a file exists at the end of the transaction."""
        return path.is_file() or path.absolute() in self._staged

    def will_vanish(self, path: Path) -> bool:
        """Whether the transaction moves or removes a file or folder."""
        return path.absolute() in self._leaving

    def move(self, path: Path, to: Path) -> None:
        """Move a file or a folder to a name that is free."""
        self._leaving.add(path.absolute())
        self._add_step("move", path, to.absolute())

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists."""
        self._leaving.add(path.absolute())
        self._add_step("remove", path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None or _is_database_changed(self._steps):
                self._commit()
            else:
                _undo(self._steps)
                self._forget_journal()
        finally:
            if self._journal is not None:
                self._journal.close()

    def _commit(self) -> None:
        with _hold_commit_lock(self._folder):
            try:
                self._mark_committed()
                _apply(self._steps[:1])  # where this fails no file has changed yet
            except BaseException as error:
                is_changed = _is_database_changed(self._steps)
                if not is_changed and self._forget_journal():
                    _undo(self._steps)
                elif isinstance(error, OSError) and (
                    is_changed or self._is_committed()
                ):
                    raise _unfinished(
                        error,
                        self._command,
                        0,
                        len(self._steps),
                    ) from error
                raise
            _apply_each(self._steps, self._command)
        self._forget_journal()

    def _is_committed(self) -> bool:
        return self._journal_path.suffix == _COMMITTED

    def _mark_committed(self) -> None:
        """Rename the journal: a new name takes no space, so that a full disk changes nothing."""
        if self._journal is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._journal.fileno())
            committed = self._journal_path.with_suffix(_COMMITTED)
            self._journal_path = self._journal_path.replace(committed)

    def _add_step(
        self,
        do: _Action,
        path: Path,
        other: Path | str = "",
    ) -> None:
        step = _Step(do, str(path.absolute()), str(other))
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
        """Remove the journal; False where a later command will still find it."""
        with contextlib.suppress(OSError):
            self._journal_path.unlink(missing_ok=True)
        return not self._journal_path.exists()


def recover_transactions(folder: Path, tell: Callable[[str], None]) -> None:
    """Finish, or undo, the transactions of commands that were cut off; `tell` prints a line for
    each.

    Raises:
        KitError: another command puts its files in place and does not end, or a journal cannot be
            read.
    """
    for path in sorted((folder / _JOURNALS).glob("*.*")):
        with (
            contextlib.suppress(FileNotFoundError),
            path.open("r+", encoding="utf-8") as journal,
        ):
            if not _is_abandoned(journal, path):
                continue
            command, steps = _read_journal(path)
            if path.suffix == _COMMITTED or _is_database_changed(steps):
                with _hold_commit_lock(folder):
                    _apply_each(steps, command)
                tell(
                    f"{command} was cut off while it put its files in place; that is finished now"
                )
            else:
                _undo(steps)
                tell(
                    f"{command} was cut off before its files were in place: run it again"
                )
            path.unlink(missing_ok=True)


def _is_abandoned(journal: io.TextIOWrapper, path: Path) -> bool:
    """Whether no command works on a journal any more; a command that is about to end may end."""
    deadline = time.monotonic() + _PATIENCE
    while path.exists():
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return path.exists()
        except BlockingIOError:
            if path.suffix != _COMMITTED:
                return False  # that command has changed nothing yet
            if time.monotonic() > deadline:
                command, _ = _read_journal(path)
                raise KitError(
                    f"{command} puts its files in place and does not end: wait for it, or end it"
                ) from None
            time.sleep(0.05)
    return False


def _read_journal(path: Path) -> tuple[str, list[_Step]]:
    """The command of a journal, and its steps. The last line may be half a line."""
    try:
        lines = stored_text(path).split("\n")[:-1]
        steps = [decode_stored(line, _Step) for line in lines]
    except ValueError as error:
        raise KitError(
            f"{path}: {error}; what it lists is unfinished: look at it, and move it away"
        ) from error
    command = steps[0].path if steps else "a command"
    return command, [step for step in steps if step.do != "begin"]


def _apply_each(steps: list[_Step], command: str) -> None:
    """Put the new files in place, one by one; files in place already stay.

    Raises:
        KitError: a step failed; the next command tries again.
    """
    for number, step in enumerate(steps):
        try:
            _apply([step])
        except OSError as error:
            raise _unfinished(
                error,
                command,
                number,
                len(steps),
            ) from error


def _unfinished(
    error: OSError,
    command: str,
    done: int,
    steps: int,
) -> KitError:
    return KitError(
        f"{explain_error(error)}. {command} has put {done} of {steps} files in place; the next "
        "command goes on"
    )


def _apply(steps: list[_Step]) -> None:
    for step in steps:
        path = Path(step.path)
        other = Path(step.other)
        with name_file_in_errors(path):
            if step.do == "replace":
                with contextlib.suppress(
                    FileNotFoundError
                ):  # the new file is in place already
                    other.replace(path)
            elif step.do == "move":
                if not other.exists() and path.exists():
                    path.rename(other)
            elif step.do == "remove":
                path.unlink(missing_ok=True)


def _is_database_changed(steps: list[_Step]) -> bool:
    """Whether the change of a database that goes with the files has been committed."""
    step = next((step for step in steps if step.do == "database"), None)
    if step is None or not Path(step.path).is_file():
        return False
    try:
        with contextlib.closing(sqlite3.connect(step.path)) as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        return False
    return str(version) == step.other


def _undo(steps: list[_Step]) -> None:
    """Remove the new files and folders; no existing file has changed yet."""
    for step in reversed(steps):
        with contextlib.suppress(OSError):
            if step.do == "replace":
                Path(step.other).unlink(missing_ok=True)
                # the journal of a new SQLite database
                Path(f"{step.other}-journal").unlink(missing_ok=True)
            elif step.do == "make":
                Path(step.path).rmdir()


@contextlib.contextmanager
def _hold_commit_lock(folder: Path) -> Iterator[None]:
    """Let no other command of the course put its files in place, so that files of two never mix."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            path = folder / _JOURNALS / "lock"
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context(path.open("a", encoding="utf-8"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
