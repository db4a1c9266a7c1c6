"""Results on disk: one JSON file a submission, written whole or not at all.

- `<folder>/<assignment>/<student>.json`: the result.
- `<folder>/<assignment>.timing.json`: the time that each submission took, and the submissions that
  could not be graded.
- `<folder>/<assignment>.timing/3-of-16.json`: the same for a run that graded one share of the class
  (`--share 3/16`).
- `<folder>/history/<assignment>/<day>/`: results that were replaced, by date; pages below
  `feedback/`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from autograder.basics.locks import hold_lock
from autograder.basics.safe_text import one_line
from autograder.basics.stored_json import read_stored, stored_text
from autograder.basics.whole_files import clear_parts, write_whole
from autograder.course import Assignment, Course
from autograder.course.fingerprint import suite_sha256
from autograder.records.model import Graded, Result
from autograder.records.sums import check_sums

HISTORY = "history"
Tell = Callable[[str], None]
"""Prints a line that a person should read beside the command's output."""
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f/\\:%\ud800-\udfff]|^\.")
_NOT_HASHED = ("run_minutes", "speed_bonus", "speed_bonus_at")
"""Settings that change no content of a result, only whether there is one, or other files."""
_MOST_WRITES = 100
"""How often a run writes the whole timing file, about. One write for each of 10 000 submissions
would be 25 GB.
"""
_LONGEST_NAME = 200  # bytes; a file system takes 255, and an ending follows


def path_name(student: str) -> str:
    """The student as one path component: each character that could leave the folder becomes %XX.

    Raises:
        ValueError: the name is empty.
    """
    if not student:
        raise ValueError("a student without a name")
    name = _UNSAFE.sub(_percent_encode, student)
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return name.encode()[: _LONGEST_NAME - 17].decode(errors="ignore") + "~" + digest


def _percent_encode(character: re.Match[str]) -> str:
    data = character[0].encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in data)


def result_path(
    folder: Path,
    assignment: str,
    student: str,
) -> Path:
    """The path of the student's result."""
    return folder / assignment / f"{path_name(student)}.json"


def write_result(folder: Path, result: Result) -> Path:
    """Write the result; an interrupted write leaves the old file, or none. A different result is
    kept in the history before it is replaced.
    """
    return store_result(
        folder,
        result.assignment,
        result.student,
        result_bytes(result),
    )


def store_result(
    folder: Path,
    assignment: str,
    student: str,
    content: bytes | None,
) -> Path:
    """Write the content of a result file, which `result_bytes` made, perhaps on another machine.

    Args:
        content: None removes the student's result: a submission that is no notebook keeps no old
            score.
    """
    path = result_path(folder, assignment, student)
    if copy := copy_for_history(
        folder,
        assignment,
        path,
        content,
        path.name,
    ):
        write_whole(*copy)
    if content is None:
        path.unlink(missing_ok=True)
    else:
        write_whole(path, content)
    return path


def result_bytes(result: Result) -> bytes:
    """The result file's content; a lone surrogate becomes a backslash escape."""
    return result.to_json().encode("utf-8", "backslashreplace")


def copy_for_history(
    results: Path,
    assignment: str,
    old: Path,
    new: bytes | None,
    name: str,
) -> tuple[Path, bytes] | None:
    """The history's path and content for a file that is about to be replaced or removed.

    Args:
        old: the file; a missing file has no copy.
        new: the new content; None where the file is removed.
        name: the copy's name in the day's folder. Where that name exists, the copy goes to a second
            folder of the day.
    """
    if not old.is_file() or (content := old.read_bytes()) == new:
        return None
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    folder = results / HISTORY / assignment
    path = folder / day / name
    numbers = itertools.count(2)
    while path.exists():
        path = folder / f"{day}.{next(numbers)}" / name
    return path, content


@contextlib.contextmanager
def lock_results(
    locks: Path,
    folder: Path,
    assignment: str,
    share: str = "",
) -> Iterator[None]:
    """Hold the lock on results: no other run of this course writes results of the assignment into
    the folder, but for other shares of the class where this run grades a share.

    The lock ends with the process, however that ends. The next run of the whole class removes files
    that a killed run left half written; a run of a share does not, since another share may be
    writing them.

    Args:
        locks: the course's folder for locks.
        share: the name of the share, "" for the whole class.

    Raises:
        ResultsInUse: another run holds the lock; says which.
    """
    place = str(folder.resolve()).encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(place).hexdigest()[:16]
    lock = locks / f"{assignment}-{digest}"
    action = f"writes results of {assignment} into {folder}"
    alternative = ", or name another folder with --out"
    with contextlib.ExitStack() as stack:
        is_locked = stack.enter_context(
            hold_lock(
                lock,
                action,
                alternative,
                shared=bool(share),
            )
        )
        if share:
            share_lock = lock.with_name(f"{lock.name}-{share}")
            share_action = f"{action}, the share {share}"
            stack.enter_context(hold_lock(share_lock, share_action, alternative))
        elif is_locked:
            clear_parts(folder / assignment)
            clear_parts(folder, timing_path(folder, assignment).name)
        yield


def read_results(
    folder: Path,
    assignment: str,
    tell: Tell,
) -> list[Result]:
    """Every result of the assignment, by student; `tell` prints a line for each broken file."""
    results = []
    for path in sorted((folder / assignment).glob("*.json")):
        try:
            results.append(_read(path, assignment))
        except (OSError, ValueError) as error:
            tell(
                f"{path}: left out, {one_line(str(error))}; grade this submission again"
            )
    return sorted(results, key=lambda result: result.student)


def read_result(
    folder: Path,
    assignment: str,
    student: str,
) -> Result | None:
    """The student's result; None where the file is missing or broken."""
    try:
        return _read(result_path(folder, assignment, student), assignment)
    except (OSError, ValueError):
        return None


def _read(path: Path, assignment: str) -> Result:
    result = Result.from_json(stored_text(path))
    check_sums(result)
    if (
        result.assignment != assignment
        or path.name != f"{path_name(result.student)}.json"
    ):
        raise ValueError(
            f"it holds the result of {result.student!r} in {result.assignment!r}"
        )
    return result


def results_as_json(
    folder: Path,
    assignment: str,
    students: Sequence[str],
) -> Iterator[str]:
    """The result files of these students as one JSON array, a part for each student."""
    separator = "["
    for student in students:
        text = result_path(folder, assignment, student).read_text(encoding="utf-8")
        yield separator + text.rstrip()
        separator = ",\n"
    yield "]\n" if students else "[]\n"


def course_sha256(course: Course, assignment: Assignment) -> str:
    """Hash of everything on the course's side that decides a result: the suite, the answer key, the
    release, the limits and the rules for scores.

    A result stores the hash as `suite_sha256`, and is stale once the hash changes.
    """
    digest = hashlib.sha256(suite_sha256(assignment.suite).encode())
    for notebook in (assignment.solution, assignment.release):
        digest.update(hashlib.sha256(notebook.read_bytes()).digest())
    settings = [dataclasses.asdict(course.limits), dataclasses.asdict(course.grading)]
    for section in settings:
        for name in _NOT_HASHED:
            section.pop(name, None)
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


def timing_path(
    folder: Path,
    assignment: str,
    share: str = "",
) -> Path:
    """The path of the timing file: not in the assignment's folder, since a student may be called
    "timing".

    Each share of a class has a separate file: of two runs that rewrite one file at once, one would
    lose the other's entries.
    """
    if share:
        return _folder_of_shares(folder, assignment) / f"{share}.json"
    return folder / f"{assignment}.timing.json"


def _folder_of_shares(folder: Path, assignment: str) -> Path:
    return folder / f"{assignment}.timing"


class TimingFile:
    """The timing file during a run, which records times and problems as they come.

    They are on disk at once, or in a large class after each hundredth of it. A run that is killed
    in between loses those times; the results that it replaced meanwhile stay marked as older, and
    are graded once more.

    Submissions that are not part of the run keep their entries. The file of a whole class takes in
    the entries of shares.

    Args:
        share: the name of the share of the class that is graded, "" for the whole class.
        students: the students of that share; the share's file has no other students.
    """

    def __init__(
        self,
        folder: Path,
        assignment: str,
        share: str = "",
        students: Collection[str] = (),
    ) -> None:
        self._folder = folder
        self._assignment = assignment
        self._path = timing_path(folder, assignment, share)
        self._entries: dict[str, Graded] = {}
        self._texts: dict[str, str] = {}
        self._unwritten = 0
        for entry in read_timing(folder, assignment):
            if not share or entry.student in students:
                self._put(entry)

    def mark_older(self, students: Sequence[str]) -> None:
        """Mark stored results as older before a run replaces them: where the run is killed first,
        the next run knows.
        """
        graded_before = [student for student in students if self._has_result(student)]
        for student in graded_before:
            self._keep_older(
                student, "it was to be graded again, and the run ended first"
            )
        if graded_before:
            self._write(to_disk=False)

    def note(self, graded: Sequence[Graded], *, more: bool = False) -> None:
        """Add records of submissions whose results are written already, and write the file.

        Args:
            more: whether further records will come: the file need not be written each time.
        """
        self.add(graded)
        self._unwritten += len(graded)
        if not more or self._unwritten * _MOST_WRITES >= len(self._entries):
            self._write(to_disk=not more)

    def add(self, graded: Sequence[Graded]) -> None:
        """Add records without writing the file."""
        for entry in graded:
            if entry.untried and self._has_result(entry.student):
                self._keep_older(entry.student, entry.problem)
                continue
            seconds = {stage: round(value, 4) for stage, value in entry.seconds.items()}
            self._put(
                dataclasses.replace(
                    entry,
                    seconds=seconds,
                    older="",
                )
            )

    def _write(self, *, to_disk: bool) -> None:
        self._unwritten = 0
        write_whole(
            self._path,
            self.text(),
            to_disk=to_disk,
        )
        if self._path == timing_path(self._folder, self._assignment):
            shutil.rmtree(
                _folder_of_shares(self._folder, self._assignment), ignore_errors=True
            )

    def text(self) -> str:
        """The file's content."""
        entries = ",\n".join(self._texts[student] for student in sorted(self._texts))
        listed = f"[\n{entries}\n ]" if entries else "[]"
        assignment = json.dumps(self._assignment)
        return f'{{\n "assignment": {assignment},\n "submissions": {listed}\n}}\n'

    def _keep_older(self, student: str, reason: str) -> None:
        entry = self._entries.get(student, Graded(student))
        self._put(
            dataclasses.replace(
                entry,
                problem="",
                older=reason,
            )
        )

    def _put(self, entry: Graded) -> None:
        """Add an entry and its text, made once: the file is written many times."""
        self._entries[entry.student] = dataclasses.replace(entry, result=None)
        fields: dict[str, object] = {
            "student": entry.student,
            "seconds": entry.seconds,
            "problem": entry.problem,
        }
        speeds = []
        for speed in entry.speeds:
            speeds.append(dataclasses.asdict(speed) | {"ratio": round(speed.ratio, 3)})
        optional = {"speeds": speeds, "older": entry.older, "machine": entry.machine}
        fields |= {name: value for name, value in optional.items() if value}
        text = json.dumps(fields, indent=1)
        self._texts[entry.student] = "  " + text.replace("\n", "\n  ")

    def _has_result(self, student: str) -> bool:
        return result_path(
            self._folder,
            self._assignment,
            student,
        ).exists()


@dataclass(frozen=True, slots=True)
class _StoredTimes:
    """The content of a timing file."""

    submissions: tuple[Graded, ...]


def read_timing(
    folder: Path,
    assignment: str,
    tell: Tell | None = None,
) -> list[Graded]:
    """The entries of a timing file; none where the file is missing, or is broken, which `tell`
    prints.
    """
    try:
        return load_timing(folder, assignment)
    except ValueError as error:
        if tell is not None:
            tell(
                f"{error}; times, and why some could not be graded, are not known until the next "
                "`autograder grade`"
            )
        return []


def load_timing(folder: Path, assignment: str) -> list[Graded]:
    """The entries of the timing file and of the shares' files, by student: of several entries the
    one in the file that was written last.

    Raises:
        ValueError: a file is broken; names the file.
    """
    shares = _folder_of_shares(folder, assignment).glob("*.json")
    paths = [
        path for path in (timing_path(folder, assignment), *shares) if path.is_file()
    ]
    entries: dict[str, Graded] = {}
    for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns):
        entries |= {entry.student: entry for entry in _read_entries(path)}
    return [entries[student] for student in sorted(entries)]


def _read_entries(path: Path, *, retry: bool = True) -> tuple[Graded, ...]:
    """Read one timing file.

    Raises:
        ValueError: the file is broken; names the file.
    """
    try:
        return read_stored(path, _StoredTimes).submissions
    except (OSError, ValueError) as error:
        # Another machine has just replaced the file.
        if retry and isinstance(error, OSError) and error.errno == errno.ESTALE:
            return _read_entries(path, retry=False)
        raise ValueError(f"{path}: left out, {one_line(str(error))}") from error
