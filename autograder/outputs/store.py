"""Results on disk: one JSON file a submission, written whole or not at all.

<folder>/<assignment>/<student>.json      the result
<folder>/<assignment>.timing.json         how long each submission took, and which could not be graded
<folder>/history/<assignment>/            results that were replaced, by date
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.course import Assignment, Grading, Limits
from autograder.model import Graded, Result, Speed
from autograder.outputs.history import keep_replaced
from autograder.outputs.text import one_line
from autograder.whole_files import write_whole

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f/\\:%\ud800-\udfff]|^\.")
_OF_NO_RESULT = ("run_minutes", "speed_bonus", "speed_bonus_at")
"""Settings that decide whether there is a result, or what stands beside it, and not what stands in it."""
_LONGEST_NAME = 200  # bytes; a file system takes 255, and an ending follows


@dataclass(frozen=True, slots=True)
class Timed:
    """How one submission fared when it was last graded. `problem` is "" where it has a result; `speeds` are there
    where it was graded with a device; `older` says why its result is an older one: it was to be graded again, and was
    not."""

    student: str
    seconds: dict[str, float]
    problem: str = ""
    speeds: tuple[Speed, ...] = ()
    older: str = ""

    def to_dict(self) -> dict[str, object]:
        entry: dict[str, object] = {"student": self.student, "seconds": self.seconds, "problem": self.problem}
        speeds = [dataclasses.asdict(speed) | {"ratio": round(speed.ratio, 3)} for speed in self.speeds]
        return entry | ({"speeds": speeds} if speeds else {}) | ({"older": self.older} if self.older else {})


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
    """Write the result; an interrupted write leaves the old file, or none. Another result that it replaces is kept in
    the history."""
    path = result_path(folder, result.assignment, result.student)
    text = result.to_json()
    keep_replaced(folder, result.assignment, path, text.encode("utf-8", "backslashreplace"), path.name)
    write_whole(path, text)
    return path


def forget_result(folder: Path, assignment: str, student: str) -> None:
    """Move the student's result to the history: what can no longer be graded must not keep an old score."""
    path = result_path(folder, assignment, student)
    keep_replaced(folder, assignment, path, None, path.name)
    path.unlink(missing_ok=True)


def _say_broken(path: Path, reason: str) -> None:
    print(f"{path}: left out, {one_line(reason)}; grade this submission again", file=sys.stderr)


def read_results(folder: Path, assignment: str, on_broken: Callable[[Path, str], None] = _say_broken) -> list[Result]:
    """Every result of the assignment, by student. A broken file goes to `on_broken` with the reason."""
    results = []
    for path in sorted((folder / assignment).glob("*.json")):
        try:
            result = Result.from_json(path.read_text(encoding="utf-8"))
            if result.assignment != assignment or path.name != f"{path_name(result.student)}.json":
                raise ValueError(f"it holds the result of {result.student!r} in {result.assignment!r}")
        except (OSError, ValueError, RecursionError) as error:
            on_broken(path, str(error))
        else:
            results.append(result)
    return sorted(results, key=lambda result: result.student)


def is_current(
    folder: Path, assignment: str, student: str, submission_sha256: str, suite_sha256: str, isolation: str
) -> bool:
    """Whether the stored result was made from exactly this submission, with this suite and these walls."""
    try:
        result = Result.from_json(result_path(folder, assignment, student).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    made_from = (result.assignment, result.student, result.submission_sha256, result.suite_sha256, result.isolation)
    return made_from == (assignment, student, submission_sha256, suite_sha256, isolation)


def inputs_sha256(suite_sha256: str, assignment: Assignment, limits: Limits, grading: Grading) -> str:
    """Hash of everything on the course's side that decides a result: the suite, the answer key, the release,
    the limits and the way scores are made. As a result's `suite_sha256` it makes every one of them count."""
    digest = hashlib.sha256(suite_sha256.encode())
    for notebook in (assignment.solution, assignment.release):
        digest.update(hashlib.sha256(notebook.read_bytes()).digest())
    settings = [
        {name: value for name, value in dataclasses.asdict(part).items() if name not in _OF_NO_RESULT}
        for part in (limits, grading)
    ]
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


def _speed(raw: dict[str, object]) -> Speed:
    seconds, baseline = float(str(raw["seconds"])), float(str(raw["baseline_seconds"]))
    return Speed(str(raw["case"]), seconds, baseline, str(raw["problem"]))


def timing_path(folder: Path, assignment: str) -> Path:
    """Where times lie: not in the assignment's folder, since a student may be called "timing"."""
    return folder / f"{assignment}.timing.json"


def write_timing(folder: Path, assignment: str, graded: Sequence[Graded]) -> Path:
    """Note times and problems of a run; submissions that were not part of it keep theirs."""
    timed = {entry.student: entry for entry in read_timing(folder, assignment)}
    for one in graded:
        if one.untried and result_path(folder, assignment, one.student).exists():
            known = timed.get(one.student, Timed(one.student, {}))  # its older result stays, and so do its times
            timed[one.student] = dataclasses.replace(known, problem="", older=one.problem)
            continue
        seconds = {stage: round(value, 4) for stage, value in one.seconds.items()}
        timed[one.student] = Timed(one.student, seconds, one.problem if one.result is None else "", one.speeds)
    entries = [timed[student].to_dict() for student in sorted(timed)]
    path = timing_path(folder, assignment)
    write_whole(path, json.dumps({"assignment": assignment, "submissions": entries}, indent=1) + "\n")
    return path


def read_timing(folder: Path, assignment: str) -> list[Timed]:
    """What `write_timing` noted; nothing where there is no such file, or it is broken: times decide no score."""
    try:
        raw = json.loads(timing_path(folder, assignment).read_text(encoding="utf-8"))
        return [
            Timed(
                str(e["student"]),
                dict(e["seconds"]),
                str(e["problem"]),
                tuple(map(_speed, e.get("speeds", ()))),
                str(e.get("older", "")),
            )
            for e in raw["submissions"]
        ]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
