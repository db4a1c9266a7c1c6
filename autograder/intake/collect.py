"""Put what a course system lets one download into `submitted/<student>/<assignment>/`.

Everything is unpacked and sorted in a folder of its own first; only then are students' folders touched. What
was collected before is moved aside, never lost.
"""

from __future__ import annotations

import filecmp
import itertools
import os
import shutil
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from autograder.course import Assignment, Course
from autograder.errors import KitError, NothingToGrade, UnreadableSubmission
from autograder.handed_in import MAX_TIMESTAMP, read_handed_in, shown
from autograder.intake.archives import Upload, open_upload
from autograder.intake.names import safe_student
from autograder.intake.origins import EXPECTED, Claimed, Origin, claim_files, parse_time

__all__ = ["Origin", "collect"]

TIMESTAMP = "timestamp.txt"
PREVIOUS = "previous"


def collect(course: Course, assignment: Assignment, source: Path, origin: Origin) -> list[str]:
    """Collect the submissions in `source`, an archive or a folder.

    Returns:
        What was done, line by line: how many, then whatever was replaced, chosen or left out, and why.

    Raises:
        NothingToGrade: no file follows the origin's naming; says what was expected and what is there.
        KitError: the archive cannot be read, or holds far too much.
    """
    submitted = course.root / "submitted"
    submitted.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".collecting-", dir=submitted) as scratch:
        upload = open_upload(source, Path(scratch), course.limits.notebook_mb << 20)
        claimed, odd = claim_files(upload.files, origin, assignment.name)
        if not claimed:
            there = [*odd, *upload.refused, *(shown("/".join(parts)) for parts in upload.others)]
            example = f"; there is, for example, {there[0]}" if there else "; there is no notebook at all"
            raise NothingToGrade(f"{shown(source)}: no file is named like {EXPECTED[origin]}{example}")
        said: list[str] = []
        done = {"new": 0, "replaced": 0, "unchanged": 0}
        by_student: dict[str, list[Claimed]] = {}
        for claim in claimed:
            by_student.setdefault(claim.student, []).append(claim)
        for name in sorted(by_student):
            student = safe_student(name)
            if student != name:
                said.append(f"{student}: the name {shown(name)} cannot be a folder's name, so it was changed")
            chosen = _choose(by_student[name], assignment.name, student, said)
            what = _install(submitted / student / assignment.name, assignment.name, chosen, student, said)
            if what:
                done[what] += 1
        counts = ", ".join(f"{count} {what}" for what, count in done.items())
        first = f"{sum(done.values())} submissions of {assignment.name}: {counts}"
        return [first, *said, *odd, *upload.refused, *_about_others(upload, origin)]


def _about_others(upload: Upload, origin: Origin) -> list[str]:
    """A line for each file that is no notebook, unless a notebook came with it (pictures, a README)."""
    notebooks = {file.parts[:-1] for file in upload.files if file.parts[-1].endswith(".ipynb")} - {()}
    flat = origin in ("canvas", "moodle")  # all students' files may lie in one folder
    beside = [p for p in upload.others if not flat and any(p[:n] in notebooks for n in range(1, len(p)))]
    alone = [f"{shown('/'.join(parts))}: not a notebook" for parts in upload.others if parts not in set(beside)]
    return [*alone, f"{len(beside)} other files beside the notebooks were left"] if beside else alone


def _choose(claims: Sequence[Claimed], assignment: str, student: str, said: list[str]) -> Claimed:
    """The latest attempt; in one attempt the notebook that is called like the assignment, else the latest file."""
    latest = max(claim.attempt for claim in claims)
    best = max(
        (claim for claim in claims if claim.attempt == latest),
        key=lambda claim: (claim.stem == assignment, claim.rank, claim.file.parts),
    )
    if len(claims) > 1:
        left = ", ".join(_shown(claim) for claim in claims if claim is not best)
        said.append(f"{student}: {len(claims)} notebooks; took {_shown(best)}, left {left}")
    if best.late:
        said.append(f"{student}: marked as late")
    return best


def _shown(claim: Claimed) -> str:
    return shown("/".join(claim.file.parts[-2:]))


def _install(folder: Path, assignment: str, claim: Claimed, student: str, said: list[str]) -> str:
    """Move one notebook to its place; what lay there goes to `previous/`. Returns what was done."""
    if folder.is_symlink() or folder.parent.is_symlink():
        said.append(f"{student}: {shown(folder)} is a link; nothing was written there")
        return ""
    notebook = folder / f"{assignment}.ipynb"
    if notebook.is_file() and not notebook.is_symlink() and filecmp.cmp(notebook, claim.file.file, shallow=False):
        _write_time(folder, claim)
        return "unchanged"
    there = [path for path in folder.iterdir() if path.name != PREVIOUS] if folder.is_dir() else []
    older = _handed_in(folder)
    if older and claim.handed_in and claim.handed_in < older:
        said.append(f"{student}: what is collected already is newer; kept it")
        return "unchanged"
    folder.mkdir(parents=True, exist_ok=True)
    if there:
        aside = _aside(folder)
        for path in sorted(there):
            path.rename(aside / path.name)
        said.append(f"{student}: the earlier submission is kept in {PREVIOUS}/{aside.name}")
    # A group's file goes to several students: copy, then one rename, so that no half notebook is ever there.
    staged = folder / f".{assignment}.new"
    shutil.copyfile(claim.file.file, staged)
    os.replace(staged, notebook)  # noqa: PTH105 - the pair of copy and replace reads better so
    _write_time(folder, claim)
    return "replaced" if there else "new"


def _aside(folder: Path) -> Path:
    """A new folder for the earlier submission, named by its time where that is known, else by number."""
    previous = folder / PREVIOUS
    if previous.is_symlink():
        raise KitError(f"{shown(previous)} is a link: remove it, it must be a folder")
    previous.mkdir(exist_ok=True)
    moment = _handed_in(folder)
    stamp = moment.strftime("%Y-%m-%dT%H%M%SZ") if moment else ""
    numbered = (f"{stamp}-{number}" if stamp else str(number) for number in itertools.count(1))
    names = itertools.chain([stamp] if stamp else [], numbered)
    aside = next(previous / name for name in names if not (previous / name).exists())
    aside.mkdir()
    return aside


def _handed_in(folder: Path) -> datetime | None:
    """When the submission in the folder was handed in, where a timestamp says so."""
    try:
        return parse_time(read_handed_in(folder / TIMESTAMP, MAX_TIMESTAMP).decode("utf-8", errors="replace"))
    except UnreadableSubmission:
        return None


def _write_time(folder: Path, claim: Claimed) -> None:
    """The hand-in time in nbgrader's form, always in UTC."""
    if claim.handed_in is not None:
        text = claim.handed_in.strftime("%Y-%m-%d %H:%M:%S.%f UTC")
        path = folder / TIMESTAMP
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")
