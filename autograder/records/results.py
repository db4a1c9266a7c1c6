"""Results on disk: one JSON file a submission, written whole or not at all.

<folder>/<assignment>/<student>.json      the result
<folder>/<assignment>.timing.json         how long each submission took, and which could not be
graded <folder>/<assignment>.timing/3-of-16.json the same, of a run that graded one share of the
class (`--share 3/16`) <folder>/history/<assignment>/<day>/      results that were replaced, by
date; below feedback/ the pages
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
"""Takes a line that a person should read beside what was asked for."""
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f/\\:%\ud800-\udfff]|^\.")
_OF_NO_RESULT = ("run_minutes", "speed_bonus", "speed_bonus_at")
"""Settings that decide whether there is a result, or what stands beside it, and not what stands in
it.
"""
_MOST_WRITES = 100
"""How often a run writes the timing file, about: all of it each time, which for 10 000 submissions
would be 25 GB.
"""
_LONGEST_NAME = 200  # bytes; a file system takes 255, and an ending follows


def path_name(student: str) -> str:
    """The student as one path component: whatever could leave the folder becomes %XX.

    Raises:
        ValueError: the name is empty.
    """
    if not student:
        raise ValueError("a student without a name")
    name = _UNSAFE.sub(lambda found: _percent(found.group()), student)
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return name.encode()[: _LONGEST_NAME - 17].decode(errors="ignore") + "~" + digest


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def result_path(folder: Path, assignment: str, student: str) -> Path:
    """Where the student's result lies."""
    return folder / assignment / f"{path_name(student)}.json"


def write_result(folder: Path, result: Result) -> Path:
    """Write the result; an interrupted write leaves the old file, or none. Another result that it
    replaces is kept in the history.
    """
    return store_result(folder, result.assignment, result.student, result_bytes(result))


def store_result(folder: Path, assignment: str, student: str, content: bytes | None) -> Path:
    """As `write_result`, of what `result_bytes` has made of a result elsewhere; None removes the
    student's result: what was handed in now is no notebook, and keeps no old score.
    """
    path = result_path(folder, assignment, student)
    if kept := copy_for_history(folder, assignment, path, content, path.name):
        write_whole(*kept)
    if content is None:
        path.unlink(missing_ok=True)
    else:
        write_whole(path, content)
    return path


def result_bytes(result: Result) -> bytes:
    """The result file's content; a lone surrogate becomes a backslash escape."""
    return result.to_json().encode("utf-8", "backslashreplace")


def copy_for_history(
    results: Path, assignment: str, old: Path, new: bytes | None, name: str
) -> tuple[Path, bytes] | None:
    """The copy for the history of a file that is about to be replaced by other content, or removed:
    where, and what.

    Args:
        old: the file; None is returned where it is not there.
        new: what takes its place; None where nothing does.
        name: the copy's name in the day's folder. Where that is taken, the folder is the next of
            that day.
    """
    if not old.is_file() or (content := old.read_bytes()) == new:
        return None
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    days = itertools.chain([day], (f"{day}.{number}" for number in itertools.count(2)))
    paths = (results / HISTORY / assignment / each / name for each in days)
    return next(path for path in paths if not path.exists()), content


@contextlib.contextmanager
def lock_results(locks: Path, folder: Path, assignment: str, share: str = "") -> Iterator[None]:
    """Inside, no other run of this course writes results of the assignment into the folder, but for
    other shares of the class where this run grades a share.

    The lock ends with the process, however that ends. What a run that was killed left half written
    is removed by the next run of the whole class: beside a share another one may be writing it.

    Args:
        locks: the course's folder for locks.
        share: the name of the share, "" for the whole class.

    Raises:
        ResultsInUse: another run holds it; says which.
    """
    place = hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[
        :16
    ]
    what, otherwise = (
        f"writes results of {assignment} into {folder}",
        ", or name another folder with --out",
    )
    lock = f"{assignment}-{place}"
    with contextlib.ExitStack() as held:
        locked = held.enter_context(hold_lock(locks / lock, what, otherwise, shared=bool(share)))
        if share:
            held.enter_context(
                hold_lock(locks / f"{lock}-{share}", f"{what}, the share {share}", otherwise)
            )
        elif locked:
            clear_parts(folder / assignment)
            clear_parts(folder, timing_path(folder, assignment).name)
        yield


def read_results(folder: Path, assignment: str, tell: Tell) -> list[Result]:
    """Every result of the assignment, by student. `tell` gets a line for each file that is
    broken.
    """
    results = []
    for path in sorted((folder / assignment).glob("*.json")):
        try:
            results.append(_read(path, assignment))
        except (OSError, ValueError) as error:
            tell(f"{path}: left out, {one_line(str(error))}; grade this submission again")
    return sorted(results, key=lambda result: result.student)


def read_result(folder: Path, assignment: str, student: str) -> Result | None:
    """The student's result; None where there is none, or its file is broken."""
    try:
        return _read(result_path(folder, assignment, student), assignment)
    except (OSError, ValueError):
        return None


def _read(path: Path, assignment: str) -> Result:
    result = Result.from_json(stored_text(path))
    check_sums(result)
    if result.assignment != assignment or path.name != f"{path_name(result.student)}.json":
        raise ValueError(f"it holds the result of {result.student!r} in {result.assignment!r}")
    return result


def results_as_json(folder: Path, assignment: str, students: Sequence[str]) -> Iterator[str]:
    """The results of these students as one JSON array, a part for each: their files' own text."""
    before = "["
    for student in students:
        yield before + result_path(folder, assignment, student).read_text(encoding="utf-8").rstrip()
        before = ",\n"
    yield "]\n" if before != "[" else "[]\n"


def course_sha256(course: Course, assignment: Assignment) -> str:
    """Hash of everything on the course's side that decides a result: the suite, the answer key, the
    release, the limits and the way scores are made. It is a result's `suite_sha256`: where any of
    it changes, the result is stale.
    """
    digest = hashlib.sha256(suite_sha256(assignment.suite).encode())
    for notebook in (assignment.solution, assignment.release):
        digest.update(hashlib.sha256(notebook.read_bytes()).digest())
    settings = [
        {
            name: value
            for name, value in dataclasses.asdict(part).items()
            if name not in _OF_NO_RESULT
        }
        for part in (course.limits, course.grading)
    ]
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


def timing_path(folder: Path, assignment: str, share: str = "") -> Path:
    """Where times lie: not in the assignment's folder, since a student may be called "timing". Each
    share of a class has a file of its own: of two runs that rewrite one file at once, one would
    lose the other's entries.
    """
    return (
        _folder_of_shares(folder, assignment) / f"{share}.json"
        if share
        else folder / f"{assignment}.timing.json"
    )


def _folder_of_shares(folder: Path, assignment: str) -> Path:
    return folder / f"{assignment}.timing"


class TimingFile:
    """The timing file during a run: times and problems are noted as they come, and stand on disk at
    once, or in a large class after a hundredth of it. A run that is killed in between loses those
    times; older results that it replaced meanwhile stay marked as such, and are graded once more.

    Submissions that are not part of the run keep theirs. The file of a whole class takes in those
    of shares.

    Args:
        share: the name of the share of the class that is graded, "" for the whole class.
        students: who is in that share; its file has no others.
    """

    def __init__(
        self, folder: Path, assignment: str, share: str = "", students: Collection[str] = ()
    ) -> None:
        self._folder, self._assignment = folder, assignment
        self._path = timing_path(folder, assignment, share)
        self._entries: dict[str, Graded] = {}
        self._texts: dict[str, str] = {}
        self._unwritten = 0
        for entry in read_timing(folder, assignment):
            if not share or entry.student in students:
                self._put(entry)

    def expect(self, students: Sequence[str]) -> None:
        """Say of older results that they are to be replaced: where the run ends before, the next
        one knows.
        """
        older = [student for student in students if self._has_result(student)]
        for student in older:
            self._keep(student, "it was to be graded again, and the run ended first")
        if older:
            self._write(to_disk=False)

    def note(self, graded: Sequence[Graded], *, more: bool = False) -> None:
        """Take in what came of submissions, whose results are written already, and write the file.

        Args:
            more: whether others will be noted: the file need not be written each time.
        """
        self.take_in(graded)
        self._unwritten += len(graded)
        if not more or self._unwritten * _MOST_WRITES >= len(self._entries):
            self._write(to_disk=not more)

    def take_in(self, graded: Sequence[Graded]) -> None:
        """As `note`, without writing the file."""
        for one in graded:
            if one.untried and self._has_result(one.student):
                self._keep(one.student, one.problem)
                continue
            seconds = {stage: round(value, 4) for stage, value in one.seconds.items()}
            self._put(dataclasses.replace(one, seconds=seconds, older=""))

    def _write(self, *, to_disk: bool) -> None:
        self._unwritten = 0
        write_whole(self._path, self.text(), to_disk=to_disk)
        if self._path == timing_path(self._folder, self._assignment):
            shutil.rmtree(_folder_of_shares(self._folder, self._assignment), ignore_errors=True)

    def text(self) -> str:
        """The file's content."""
        parts = ",\n".join(self._texts[student] for student in sorted(self._texts))
        listed = f"[\n{parts}\n ]" if parts else "[]"
        return f'{{\n "assignment": {json.dumps(self._assignment)},\n "submissions": {listed}\n}}\n'

    def _keep(self, student: str, why_older: str) -> None:
        known = self._entries.get(student, Graded(student))
        self._put(dataclasses.replace(known, problem="", older=why_older))

    def _put(self, entry: Graded) -> None:
        """Each entry becomes text once: the file is written as often as there are submissions."""
        self._entries[entry.student] = dataclasses.replace(entry, result=None)
        fields: dict[str, object] = {
            "student": entry.student,
            "seconds": entry.seconds,
            "problem": entry.problem,
        }
        speeds = [
            dataclasses.asdict(speed) | {"ratio": round(speed.ratio, 3)} for speed in entry.speeds
        ]
        optional = {"speeds": speeds, "older": entry.older, "machine": entry.machine}
        fields |= {name: value for name, value in optional.items() if value}
        text = json.dumps(fields, indent=1)
        self._texts[entry.student] = "  " + text.replace("\n", "\n  ")

    def _has_result(self, student: str) -> bool:
        return result_path(self._folder, self._assignment, student).exists()


@dataclass(frozen=True, slots=True)
class _StoredTimes:
    """The content of a timing file."""

    submissions: tuple[Graded, ...]


def read_timing(folder: Path, assignment: str, tell: Tell | None = None) -> list[Graded]:
    """The entries of a timing file; none where there is no such file, or it is broken, of which
    `tell` gets a line.
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
    """The entries of the timing file and of those of shares, by student: each from the file that
    was written last. None where there are no such files.

    Raises:
        ValueError: a file is broken; names it.
    """
    paths = [timing_path(folder, assignment), *_folder_of_shares(folder, assignment).glob("*.json")]
    entries: dict[str, Graded] = {}
    for path in sorted(
        (path for path in paths if path.is_file()), key=lambda path: path.stat().st_mtime_ns
    ):
        entries |= {entry.student: entry for entry in _entries_of(path)}
    return [entries[student] for student in sorted(entries)]


def _entries_of(path: Path, *, once_more: bool = True) -> tuple[Graded, ...]:
    """The entries of one timing file.

    Raises:
        ValueError: it is broken; names it.
    """
    try:
        return read_stored(path, _StoredTimes).submissions
    except OSError as error:
        if error.errno == errno.ESTALE and once_more:  # another machine has just replaced the file
            return _entries_of(path, once_more=False)
        raise ValueError(f"{path}: left out, {one_line(str(error))}") from error
    except ValueError as error:
        raise ValueError(f"{path}: left out, {one_line(str(error))}") from error
