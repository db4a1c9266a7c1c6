"""Put what a course system lets one download into `submitted/<student>/<assignment>/`.

Everything is unpacked and sorted in a folder of its own first; only then are students' folders touched. What
was collected before is moved aside, never lost. What was done is kept in a record (`collected.py`).
"""

from __future__ import annotations

import contextlib
import filecmp
import itertools
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autograder.course import Assignment, Course
from autograder.errors import KitError, NothingToGrade, UnreadableSubmission
from autograder.handed_in import MAX_TIMESTAMP, read_handed_in, shown
from autograder.intake.archives import RECEIPT, Incoming, LeftOut, Upload, notebook_stem, open_upload
from autograder.intake.collected import Arrival, Collected, NotTaken, known_people, read_collected, record_path
from autograder.intake.names import safe_student
from autograder.intake.origins import EXPECTED, Origin, Owner, whose
from autograder.locks import only_one
from autograder.roster import read_roster
from autograder.times import read_time
from autograder.together import Together

__all__ = ["Origin", "collect"]

TIMESTAMP = "timestamp.txt"
PREVIOUS = "previous"
_SCRATCH = ".collecting-"


@dataclass(frozen=True, slots=True)
class _Claim:
    """A notebook and one of its owners."""

    file: Incoming
    owner: Owner

    @property
    def shown(self) -> str:
        return shown("/".join((*self.file.parts[-2:], *self.file.inside)))


def collect(course: Course, assignment: Assignment, source: Path, origin: Origin) -> list[str]:
    """Collect the submissions in `source`, an archive or a folder.

    Returns:
        What was done, line by line: how many, then whatever was replaced, chosen or left out, and why. The record
        holds the same lines.

    Raises:
        NothingToGrade: no file follows the origin's naming; says what was expected and what is there.
        KitError: the archive cannot be read, or holds far too much.
    """
    submitted = course.submitted
    submitted.mkdir(exist_ok=True)
    with _only_collector(course) as scratch:
        upload = open_upload(source, scratch, course.limits.notebook_mb << 20)
        with Together(course.kept, f"`autograder collect {assignment.name}`") as files:
            return _Collection(course, assignment, origin, upload).put(files, source)


@contextlib.contextmanager
def _only_collector(course: Course) -> Iterator[Path]:
    """An empty folder to unpack into, while no other command collects; what one that was killed left is removed."""
    with only_one(course.kept / "locks" / "collect", "collects into submitted/") as locked:
        for abandoned in course.submitted.glob(f"{_SCRATCH}*") if locked else ():
            shutil.rmtree(abandoned, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=course.submitted, ignore_cleanup_errors=True) as scratch:
            yield Path(scratch)


class _Collection:
    """One download, on its way to `submitted/`."""

    def __init__(self, course: Course, assignment: Assignment, origin: Origin, upload: Upload) -> None:
        self._submitted, self._assignment, self._origin = course.submitted, assignment.name, origin
        self._upload, self._roster = upload, read_roster(course.root)
        self._owners = whose(origin, upload.files, assignment.name, course.about.timezone)
        self._known = known_people(self._submitted, assignment.name, origin)
        self._before = read_collected(self._submitted, assignment.name)
        self._said: list[str] = []
        self._renamed: set[str] = set()

    def put(self, files: Together, source: Path) -> list[str]:
        """Sort, install, and write the record."""
        notebooks = [file for file in self._upload.files if notebook_stem(file.name) is not None]
        claims: dict[str, list[_Claim]] = {}
        odd: list[str] = []
        for file in notebooks:
            owners = self._owners(file)
            for owner in owners:
                claims.setdefault(self._student(owner), []).append(_Claim(file, owner))
            if not owners:
                odd.append(f"{shown('/'.join(file.parts))}: not named like a {self._origin} download "
                           f"({EXPECTED[self._origin]})")  # fmt: skip
        if not claims:
            self._refuse(source, odd)
        done = {"new": 0, "replaced": 0, "unchanged": 0}
        arrivals = {}
        for student in sorted(claims):
            chosen = self._choose(claims[student], student)
            folder = self._submitted / student / self._assignment
            if what := _install(files, folder, self._assignment, chosen, student, self._said):
                done[what] += 1
                arrivals[student] = _arrival(self._origin, chosen.file, chosen.owner)
        not_taken, left_out = self._left_out(claims)
        counts = ", ".join(f"{count} {what}" for what, count in done.items())
        first = f"{sum(done.values())} submissions of {self._assignment}: {counts}"
        lines = [first, *self._said, *odd, *left_out]
        lines += [f"{one.student}: has no notebook here: {one.reason}" for one in not_taken.values()]
        record = self._record(source, arrivals, not_taken)
        if record.absent:
            lines.append(f"collected before and not in this download, kept: {', '.join(record.absent)}")
        record = Collected(record.students, record.not_taken, record.absent, record.source, tuple(lines))
        files.write(record_path(self._submitted, self._assignment), record.to_json())
        return lines

    def _student(self, owner: Owner) -> str:
        """What the owner is called here: as before, as in the roster, or as the platform says.

        A person whose name changed on the platform, or is written in decomposed letters this time, stays one.
        """
        if known := self._known.get(owner.id):
            return known
        person = self._roster and self._roster.find((owner.student, *owner.aliases), self._origin, owner.id)
        name = unicodedata.normalize("NFC", person.id if person else owner.student)
        student = safe_student(name)
        if student != name and student not in self._renamed:
            self._renamed.add(student)
            self._said.append(f"{student}: the name {shown(name)} cannot be a folder's name, so it was changed")
        self._known[owner.id] = student
        return student

    def _refuse(self, source: Path, odd: Sequence[str]) -> None:
        there = [*odd, *(str(one) for one in self._upload.left_out)]
        example = f"; there is, for example, {there[0]}" if there else "; there is no notebook at all"
        raise NothingToGrade(f"{shown(source)}: no file is named like {EXPECTED[self._origin]}{example}")

    def _choose(self, claims: Sequence[_Claim], student: str) -> _Claim:
        """The latest attempt; in one attempt the notebook that is called like the assignment, else the latest file."""
        latest = max(claim.owner.attempt for claim in claims)
        best = max(
            (claim for claim in claims if claim.owner.attempt == latest),
            key=lambda c: (
                c.owner.stem == self._assignment,
                not c.file.inside,
                c.owner.rank,
                c.file.parts + c.file.inside,
            ),
        )
        if len(claims) > 1:
            left = ", ".join(claim.shown for claim in claims if claim is not best)
            self._said.append(f"{student}: {len(claims)} notebooks; took {best.shown}, left {left}")
        if best.owner.late:
            self._said.append(f"{student}: marked as late")
        if best.owner.unread:
            self._said.append(f"{student}: when it was handed in is not known: {best.owner.unread}")
        return best

    def _left_out(self, claims: dict[str, list[_Claim]]) -> tuple[dict[str, NotTaken], list[str]]:
        """Those of whom the download has something, but no notebook; and a line for whatever else was left."""
        folders = {claim.file.folders for claim in itertools.chain(*claims.values())} - {()}
        reasons: dict[str, tuple[Arrival, list[str]]] = {}
        lines, beside = [], 0
        for left in (*self._upload.left_out, *self._receipts()):
            file = Incoming(left.parts)
            owners = self._owners(file) if left.parts and self._is_work(left) else []
            students = {self._student(owner): owner for owner in owners}
            for student, owner in students.items():
                if student not in claims:
                    arrival = _arrival(self._origin, file, owner)
                    reasons.setdefault(student, (arrival, []))[1].append(str(left))
            has_one = students.keys() & claims.keys() or any(
                left.parts[:n] in folders for n in range(1, len(left.parts))
            )
            if left.companion and has_one:
                beside += 1
            elif not students.keys() - claims.keys():
                lines.append(str(left))
        not_taken = {
            student: NotTaken(student, arrival, "; ".join(why[:3])) for student, (arrival, why) in reasons.items()
        }
        return not_taken, [*lines, f"{beside} other files beside the notebooks were left"] if beside else lines

    def _receipts(self) -> list[LeftOut]:
        """Blackboard's receipts: where nothing else came of somebody, they say that something was handed in."""
        receipts = [f for f in self._upload.files if self._origin == "blackboard" and RECEIPT.search(f.parts[-1])]
        return [LeftOut(shown(f.parts[-1]), f.parts, "no file came with this attempt", True) for f in receipts]

    def _is_work(self, left: LeftOut) -> bool:
        """Whether a file says that somebody handed something in: in a plain folder, a picture alone does not."""
        return self._origin != "folder" or not left.companion or left.parts[-2:-1] == (self._assignment,)

    def _record(self, source: Path, arrivals: dict[str, Arrival], not_taken: dict[str, NotTaken]) -> Collected:
        """What is known now: this download, and of others whatever it does not speak of."""
        here = arrivals.keys() | not_taken.keys()
        before = self._before
        students = {**before.students, **arrivals}
        kept = {student: one for student, one in before.not_taken.items() if student not in here}
        absent = [
            student for student, arrival in before.students.items()
            if arrival.origin == self._origin and student not in here
            and (self._submitted / student / self._assignment).is_dir()
        ]  # fmt: skip
        return Collected(
            dict(sorted(students.items())), dict(sorted({**kept, **not_taken}.items())), tuple(sorted(absent)),
            shown(source.name),
        )  # fmt: skip


def _arrival(origin: Origin, file: Incoming, owner: Owner) -> Arrival:
    name = owner.aliases[-1] if origin == "ilias" else (owner.aliases or (owner.student,))[0]
    return Arrival(origin, owner.id, name, "/".join(file.parts), owner.late, owner.unread)


def _install(files: Together, folder: Path, assignment: str, claim: _Claim, student: str, said: list[str]) -> str:
    """Move one notebook to its place; what lay there goes to `previous/`. Returns what was done."""
    if folder.is_symlink() or folder.parent.is_symlink():
        said.append(f"{student}: {shown(folder)} is a link; nothing was written there")
        return ""
    notebook = folder / f"{assignment}.ipynb"
    if notebook.is_file() and not notebook.is_symlink() and filecmp.cmp(notebook, claim.file.file, shallow=False):
        _write_time(files, folder, claim.owner)
        return "unchanged"
    there = [path for path in folder.iterdir() if path.name != PREVIOUS] if folder.is_dir() else []
    older = _handed_in(folder)
    if older and claim.owner.handed_in and claim.owner.handed_in < older:
        said.append(f"{student}: what is collected already is newer; kept it")
        return "unchanged"
    if there:
        aside = _aside(files, folder)
        for path in sorted(there):
            files.move(path, aside / path.name)
        said.append(f"{student}: the earlier submission is kept in {PREVIOUS}/{aside.name}")
    files.write(notebook, claim.file.file.read_bytes())
    _write_time(files, folder, claim.owner)
    return "replaced" if there else "new"


def _aside(files: Together, folder: Path) -> Path:
    """A new folder for the earlier submission, named by its time where that is known, else by number."""
    previous = folder / PREVIOUS
    if previous.is_symlink():
        raise KitError(f"{shown(previous)} is a link: remove it, it must be a folder")
    moment = _handed_in(folder)
    stamp = moment.strftime("%Y-%m-%dT%H%M%SZ") if moment else ""
    numbered = (f"{stamp}-{number}" if stamp else str(number) for number in itertools.count(1))
    names = itertools.chain([stamp] if stamp else [], numbered)
    aside = next(previous / name for name in names if not (previous / name).exists())
    files.make(aside)
    return aside


def _handed_in(folder: Path) -> datetime | None:
    """When the submission in the folder was handed in, where a timestamp says so that can be read."""
    try:
        text = read_handed_in(folder / TIMESTAMP, MAX_TIMESTAMP).decode("utf-8", "replace")
        return read_time(text, unnamed="UTC")
    except (UnreadableSubmission, ValueError):
        return None


def _write_time(files: Together, folder: Path, owner: Owner) -> None:
    """The hand-in time in nbgrader's form, always in UTC."""
    if owner.handed_in is not None:
        files.write(folder / TIMESTAMP, owner.handed_in.strftime("%Y-%m-%d %H:%M:%S.%f UTC"))
