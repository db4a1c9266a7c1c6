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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from autograder.course import Assignment, Course
from autograder.errors import KitError, NothingToGrade, UnreadableSubmission
from autograder.handed_in import MAX_TIMESTAMP, read_handed_in, shown
from autograder.intake.archives import RECEIPT, Incoming, LeftOut, Upload, notebook_stem, open_upload
from autograder.intake.collected import Arrival, Collected, NotTaken, read_collected, record_path
from autograder.intake.hand_in_times import FindTime, times_by_id, times_of_commits, times_of_worksheet, with_times
from autograder.intake.moodle_worksheet import read_worksheet
from autograder.intake.origins import EXPECTED, Origin, find_owners, looks_like
from autograder.intake.overlooked import PREVIOUS
from autograder.intake.owners import Owner
from autograder.ledger import Identity, read_ledger
from autograder.ledger.matching import name_key
from autograder.ledger.rows import canvas_rows, moodle_rows, with_rows
from autograder.locks import only_one
from autograder.tables import read_table, table_bytes
from autograder.times import read_time
from autograder.together import Together

__all__ = ["Origin", "collect"]

NAMES = {"edx": "Open edX", "ilias": "ILIAS", "github": "GitHub"}
"""Platforms that are not written like their `--from` with a capital."""

_OWN_FILES = {
    "sakai": {"comments.txt", "feedbackText.html", "grades.csv", "grades.xls", "grades.xlsx"},
    "edx": {"submissions.csv"},
    "brightspace": {"index.html"},
}
"""What a platform writes beside what students handed in."""

TIMESTAMP = "timestamp.txt"
_SCRATCH = ".collecting-"


@dataclass(frozen=True, slots=True)
class _Claim:
    """A notebook and one of its owners."""

    file: Incoming
    owner: Owner

    @property
    def shown(self) -> str:
        return shown("/".join((*self.file.parts[-2:], *self.file.inside)))


def collect(
    course: Course,
    assignment: Assignment,
    source: Path,
    origin: Origin,
    roster: Path | None = None,
    asked: Mapping[str, datetime] | None = None,
) -> list[str]:
    """Collect the submissions in `source`, an archive or a folder.

    Args:
        roster: Moodle's grading worksheet or Canvas's gradebook, which say more of people and of groups.
        asked: when people handed in, by the platform's id, as its interface says.

    Returns:
        What was done, line by line: how many, then whatever was replaced, chosen or left out, and why. The record
        holds the same lines.

    Raises:
        NothingToGrade: no file follows the origin's naming; says what was expected and what is there.
        KitError: the archive cannot be read, or holds far too much; or nobody can say who is who.
    """
    submitted = course.submitted
    submitted.mkdir(exist_ok=True)
    rows = _rows(origin, roster) if roster else []
    with _only_collector(course) as scratch:
        upload = open_upload(source, scratch, course.limits.notebook_mb << 20)
        times = times_by_id(origin, asked) if asked else None
        times = times or _times(origin, source, scratch, roster, course.about.timezone)
        with Together(course.kept, f"`autograder collect {assignment.name}`") as files:
            return _Collection(course, assignment, origin, upload, rows, times, files).put(source)


@contextlib.contextmanager
def _only_collector(course: Course) -> Iterator[Path]:
    """An empty folder to unpack into, while no other command collects; what one that was killed left is removed."""
    with only_one(course.kept / "locks" / "collect", "collects into submitted/") as locked:
        for abandoned in course.submitted.glob(f"{_SCRATCH}*") if locked else ():
            shutil.rmtree(abandoned, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=course.submitted, ignore_cleanup_errors=True) as scratch:
            yield Path(scratch)


def _times(origin: Origin, source: Path, scratch: Path, roster: Path | None, zone: str) -> FindTime | None:
    """Where hand-in times are found that the download's names do not tell; None for nowhere."""
    if origin == "github":
        return times_of_commits(source, scratch)
    if origin != "moodle" or roster is None:
        return None
    try:
        return times_of_worksheet(read_worksheet(*read_table(table_bytes(roster))), zone)
    except ValueError:
        return None  # a worksheet in a language that is not known here still says who is who


def _rows(origin: Origin, roster: Path) -> list[Identity]:
    try:
        table, _ = read_table(table_bytes(roster))
    except ValueError as error:
        raise KitError(f"{roster}: {error}") from error
    if origin not in ("moodle", "canvas"):
        raise KitError("--roster is for --from moodle, its grading worksheet, and --from canvas, its gradebook")
    if not (rows := list((moodle_rows if origin == "moodle" else canvas_rows)(table).values())):
        raise KitError(f"{roster}: nobody stands in it; it must be the file that {origin.title()} lets one download")
    return rows


class _Collection:
    """One download, on its way to `submitted/`."""

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        origin: Origin,
        upload: Upload,
        rows: Sequence[Identity],
        times: FindTime | None,
        files: Together,
    ) -> None:
        self._files = files
        self._submitted, self._assignment, self._origin = course.submitted, assignment.name, origin
        self._upload, self._ledger, self._rows = upload, read_ledger(course), rows
        row_ids = {id_ for row in rows for id_ in row.ids}

        def knows(platform: str, id_: str) -> bool:
            listed = self._ledger.lists if origin == "github" else self._ledger.knows
            return (platform, id_) in row_ids or listed(platform, id_)

        self._owner_of = find_owners(origin, upload.files, assignment.name, knows, course.about.timezone)
        if times is not None:
            self._owner_of = with_times(self._owner_of, times)
        self._before = read_collected(self._submitted, assignment.name)
        self._said: list[str] = []
        self._students: dict[Identity, str] = {}
        self._groups: dict[Identity, tuple[str, tuple[str, ...]]] = {}

    def put(self, source: Path) -> list[str]:
        """Sort, install, and write the ledger and the record."""
        notebooks = [file for file in self._upload.files if notebook_stem(file.name) is not None]
        owned = [(file, self._owner_of(file)) for file in notebooks]
        odd = [
            f"{shown('/'.join(file.parts))}: not named like a {self._origin} download ({EXPECTED[self._origin]})"
            for file, owner in owned if owner is None
        ]  # fmt: skip
        claims_in_order = [_Claim(file, owner) for file, owner in owned if owner is not None]
        if not claims_in_order:
            self._refuse(source, odd)
        self._assert_one_platform(claims_in_order)
        left_out = [(left, self._owner_of_left(left)) for left in (*self._upload.left_out, *self._receipts())]
        self._identify([*(c.owner for c in claims_in_order), *(o for _, o in left_out if o)], shown(source.name))
        claims: dict[str, list[_Claim]] = {}
        for claim in claims_in_order:
            claims.setdefault(self._students[claim.owner.identity], []).append(claim)
        self._put_aside_what_is_others()
        done = {"new": 0, "replaced": 0, "unchanged": 0}
        arrivals = {}
        for student in sorted(claims):
            chosen = self._choose(claims[student], student)
            folder = self._submitted / self._ledger.folder(student) / self._assignment
            if what := _install(self._files, folder, self._assignment, chosen, student, self._said):
                done[what] += 1
                arrivals[student] = _arrival(self._origin, chosen.file, chosen.owner)
                self._set_group(student, chosen.owner, shown(source.name))
        not_taken, lines_left_out = self._left_out(claims, left_out)
        counts = ", ".join(f"{count} {what}" for what, count in done.items())
        first = f"{sum(done.values())} submissions of {self._assignment}: {counts}"
        lines = [first, *self._said, *odd, *lines_left_out]
        lines += [f"{one.student}: has no notebook here: {one.reason}" for one in not_taken.values()]
        record = self._record(source, arrivals, not_taken)
        if record.absent:
            lines.append(f"collected before and not in this download, kept: {', '.join(record.absent)}")
        record = Collected(record.students, record.not_taken, record.absent, record.source, tuple(lines))
        self._ledger.save(self._files)
        self._files.write(record_path(self._submitted, self._assignment), record.to_json())
        return lines

    def _identify(self, owners: Sequence[Owner], source: str) -> None:
        """Ask the ledger for everybody at once: whether a name is unmistakable depends on all of them."""
        names = {owner.identity: unicodedata.normalize("NFC", owner.student) for owner in owners}
        self._groups = {
            owner.identity: group for owner in owners if not owner.members and (group := self._group(owner))
        }  # fmt: skip
        for owner in owners:
            for member in owner.members:
                names.setdefault(member, next(filter(None, (*member.accounts, member.name)), owner.student))
        people = {identity: with_rows(identity, self._rows) for identity in names if identity not in self._groups}
        students = self._ledger.link_download(
            self._origin,
            self._assignment,
            list(people.values()),
            [names[identity] for identity in people],
            source,
            self._rows,
        )
        self._students = dict(zip(people, students, strict=True))
        for identity, (name, members) in self._groups.items():
            self._ledger.add_group(self._assignment, name, identity, members, source)
            self._students[identity] = name
        for student, folder in ((s, self._ledger.folder(s)) for s in dict.fromkeys(self._students.values())):
            if folder != student and not (self._submitted / folder).exists():
                self._said.append(f"{student}: no folder can be called that, so it is {folder}")
        for owner in {owner.doubt: owner for owner in owners if owner.doubt}.values():
            self._said.append(f"{self._students[owner.identity]}: {owner.doubt}? The file's name says no more; the "
                              "class list or `--roster` can")  # fmt: skip

    def _group(self, owner: Owner) -> tuple[str, tuple[str, ...]] | None:
        """Where the owner is a group, by the platform's own file, the ledger or the class list: its name here, and its
        members."""
        student, name = unicodedata.normalize("NFC", owner.student), owner.identity.name
        folder_name = student if self._ledger.has_record(student) else name
        if rows := [row for row in self._rows if row.group and name_key(row.group) == name_key(name)]:
            suggested = [f"{row.name}_{row.ids[0][1]}" for row in rows]
            members = self._ledger.link_download(
                self._origin, self._assignment, rows, suggested, "--roster", self._rows
            )
            return folder_name, self._ledger.without_own_work(self._assignment, folder_name, members)
        for group in (folder_name, name):
            if self._ledger.is_group(group, self._assignment):
                return group, self._ledger.members(group, self._assignment)
        listed = self._ledger.listed_group(name)
        return (folder_name, listed) if listed else None

    def _set_group(self, student: str, owner: Owner, source: str) -> None:
        """Note whose the work in the student's folder is; what a member handed in alone before is put aside."""
        if not owner.members:
            if self._origin == "gradescope":  # which says of every submission whose it is
                self._ledger.end_group(self._assignment, student, source)
            return
        members = tuple(dict.fromkeys(self._students[member] for member in owner.members))
        self._ledger.set_group(self._assignment, student, members, source)
        alone = {
            name: arrival for name, arrival in self._before.students.items() if name in members and name != student
        }
        elsewhere = {name: arrival for name, arrival in self._before.students.items() if name not in alone}
        self._before = replace(self._before, students=elsewhere)
        for member, arrival in alone.items():
            folder = self._submitted / self._ledger.folder(member) / self._assignment
            there = _there(self._files, folder)
            if there and arrival.origin == self._origin and not folder.is_symlink():
                _put_aside(self._files, folder, there)
                self._said.append(f"{member}: hands in with {student} now; the earlier notebook is in {PREVIOUS}/")

    def _put_aside_what_is_others(self) -> None:
        """Earlier work that lies in one student's folder, and was handed in by an id that is another's by now."""
        arrivals = dict(self._before.students)
        for student, arrival in self._before.students.items():
            actual = self._ledger.whose(arrival.platform, arrival.id, self._assignment)
            if actual in (None, student) or self._ledger.is_group(student, self._assignment):
                continue
            folder = self._submitted / self._ledger.folder(student) / self._assignment
            there = _there(self._files, folder)
            if there and not folder.is_symlink():
                self._said.append(
                    f"{student}: what lay here was handed in by {arrival.origin} {arrival.id}, who is {actual}: it is "
                    f"kept in {PREVIOUS}/{_put_aside(self._files, folder, there)}"
                )
            del arrivals[student]
        self._before = replace(self._before, students=arrivals)

    def _assert_one_platform(self, claims: Sequence[_Claim]) -> None:
        """A folder that is one platform's download is none with a folder for each student.

        Raises:
            KitError: several people's work would be one student's.
        """
        if self._origin != "folder":
            return
        for claim in claims:
            platform = looks_like(claim.file)
            if platform and claim.file.folders[-1:] != (self._assignment,):
                raise KitError(
                    f"{claim.shown}: {NAMES.get(platform, platform.title())} names files like this, and a folder there "
                    f"is no student: collect it with --from {platform}"
                )
        places: dict[str, set[tuple[str, ...]]] = {}
        for claim in claims:
            places.setdefault(unicodedata.normalize("NFC", claim.owner.student), set()).add(claim.owner.place)
        for student, folders in places.items():
            if len(folders) > 1:
                some = ", ".join(shown("/".join(place)) for place in sorted(folders)[:3])
                raise KitError(
                    f"{shown(student)} would be one student with notebooks from {len(folders)} places: {some}. A "
                    "student is the folder in which a notebook lies: give each a folder of their own, or name the "
                    "platform that the download is from"
                )

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

    def _owner_of_left(self, left: LeftOut) -> Owner | None:
        return self._owner_of(Incoming(left.parts)) if left.parts and self._is_work(left) else None

    def _left_out(
        self, claims: dict[str, list[_Claim]], left_out: Sequence[tuple[LeftOut, Owner | None]]
    ) -> tuple[dict[str, NotTaken], list[str]]:
        """Those of whom the download has something, but no notebook; and a line for whatever else was left."""
        folders = {claim.file.folders for claim in itertools.chain(*claims.values())} - {()}
        reasons: dict[str, tuple[Arrival, list[str]]] = {}
        lines, beside = [], 0
        for left, owner in left_out:
            student = self._students[owner.identity] if owner else None
            has_notebook = student in claims
            if owner and student and not has_notebook:
                arrival = _arrival(self._origin, Incoming(left.parts), owner)
                reasons.setdefault(student, (arrival, []))[1].append(str(left))
            own_file = bool(left.parts) and left.parts[-1] in _OWN_FILES.get(self._origin, ())
            lies_beside = any(left.parts[:n] in folders for n in range(1, len(left.parts)))
            if own_file or (left.companion and (has_notebook or lies_beside)):
                beside += 1
            elif not student or has_notebook:
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
            and (self._submitted / self._ledger.folder(student) / self._assignment).is_dir()
        ]  # fmt: skip
        return Collected(
            dict(sorted(students.items())), dict(sorted({**kept, **not_taken}.items())), tuple(sorted(absent)),
            shown(source.name),
        )  # fmt: skip


def _arrival(origin: Origin, file: Incoming, owner: Owner) -> Arrival:
    identity = owner.identity
    platform, id_ = next(iter(identity.ids), ("", next(iter(identity.accounts), "")))
    name = owner.student if origin == "canvas" else identity.name or owner.student
    path = "/".join(file.parts)
    return Arrival(origin, id_, name, path, owner.late, owner.unread, platform == "canvas-anonymous")


def _install(files: Together, folder: Path, assignment: str, claim: _Claim, student: str, said: list[str]) -> str:
    """Move one notebook to its place; what lay there goes to `previous/`. Returns what was done."""
    if folder.is_symlink() or folder.parent.is_symlink():
        said.append(f"{student}: {shown(folder)} is a link; nothing was written there")
        return ""
    notebook = folder / f"{assignment}.ipynb"
    there = _there(files, folder)
    is_notebook = notebook in there and notebook.is_file() and not notebook.is_symlink()
    if is_notebook and filecmp.cmp(notebook, claim.file.file, shallow=False):
        _write_time(files, folder, claim.owner)
        return "unchanged"
    older = _handed_in(folder) if folder / TIMESTAMP in there else None
    if older and claim.owner.handed_in and claim.owner.handed_in < older:
        said.append(f"{student}: what is collected already is newer; kept it")
        return "unchanged"
    if there:
        said.append(f"{student}: the earlier submission is kept in {PREVIOUS}/{_put_aside(files, folder, there)}")
    files.write(notebook, claim.file.file.read_bytes())
    _write_time(files, folder, claim.owner)
    return "replaced" if there else "new"


def _there(files: Together, folder: Path) -> list[Path]:
    """What lies in a submission's folder and stays there, but for earlier submissions."""
    found = folder.iterdir() if folder.is_dir() else ()
    return [path for path in found if path.name != PREVIOUS and not files.will_leave(path)]


def _put_aside(files: Together, folder: Path, paths: Sequence[Path]) -> str:
    """Move files of a submission into `previous/`; returns the folder's name there."""
    aside = _aside(files, folder)
    for path in sorted(paths):
        files.move(path, aside / path.name)
    return aside.name


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
