"""Put what a course system lets one download into `submitted/<student>/<assignment>/`.

Everything is unpacked and sorted in a folder of its own first; only then are students' folders
touched. What was collected before is moved aside, never lost. What was done is kept in a record
(`collected.py`).
"""

from __future__ import annotations

import contextlib
import filecmp
import itertools
import shutil
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from autograder.basics.errors import KitError, NothingToGrade
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.handed_in import printable_name
from autograder.basics.locks import hold_lock
from autograder.basics.tables import read_table, table_bytes
from autograder.course import Assignment, Course
from autograder.course.platform_names import ANONYMOUS, NAMES
from autograder.intake.archives import SkippedFile, Upload, UploadedFile, notebook_stem, open_upload
from autograder.intake.collected import Arrival, Collected, NotTaken, read_collected, record_path
from autograder.intake.overlooked import PREVIOUS
from autograder.intake.owners import FindOwner, FindTime, Owner, add_times
from autograder.ledger import Identity, link_download, read_ledger
from autograder.ledger.identity_matching import name_key
from autograder.marks.late_policy import TIMESTAMP_FILE, read_timestamp
from autograder.platforms.platform import Download, Platform, Table
from autograder.platforms.registry import platforms, with_downloads, with_own_file

_SCRATCH = ".collecting-"


@dataclass(frozen=True, slots=True)
class _Claim:
    """A notebook and one of its owners."""

    file: UploadedFile
    owner: Owner


def collect(
    course: Course,
    assignment: Assignment,
    source: Path,
    origin: str,
    roster: Path | None = None,
    asked: Mapping[str, datetime] | None = None,
) -> list[str]:
    """Collect the submissions in `source`, an archive or a folder.

    Args:
        origin: the name of the platform.
        roster: the platform's own file, which says more of people and of groups.
        asked: when people handed in, by the platform's id, as its interface says.

    Returns:
        What was done, line by line: how many, then whatever was replaced, chosen or left out, and
        why. The record holds the same lines.

    Raises:
        NothingToGrade: no file follows the platform's naming; the message gives an example of an
            expected name.
        KitError: no such platform; the archive cannot be read, or holds far too much; or nobody can
            say who is who.
    """
    platform = platforms().get(origin)
    if platform is None or platform.find_owners is None:
        raise KitError(f"unknown origin {origin!r}: it is one of {', '.join(with_downloads())}")
    submitted = course.submitted
    submitted.mkdir(exist_ok=True)
    table = _read_roster(roster) if roster else None
    rows = _people(origin, platform, table[0], roster) if table and roster else []
    with _only_collector(course) as scratch:
        upload = open_upload(
            source, scratch, course.limits.notebook_mb << 20, _describes_some_download
        )
        with FileTransaction(course.kept, f"`autograder collect {assignment.name}`") as files:
            collection = _Collection(course, assignment, origin, upload, rows, files)
            find_owner = platform.find_owners(collection.download(source, scratch, table))
            return collection.put(source, add_times(find_owner, _times_by_id(origin, asked or {})))


def _describes_some_download(name: str) -> bool:
    """Whether a file of that name says, in any platform's download, whose notebooks are or when
    they were handed in.
    """
    return any(platform.describes(name) for platform in platforms().values() if platform.describes)


@contextlib.contextmanager
def _only_collector(course: Course) -> Iterator[Path]:
    """An empty folder to unpack into, while no other command collects. Folders of killed commands
    are removed.
    """
    with hold_lock(course.kept / "locks" / "collect", "collects into submitted/") as locked:
        for abandoned in course.submitted.glob(f"{_SCRATCH}*") if locked else ():
            shutil.rmtree(abandoned, ignore_errors=True)
        with tempfile.TemporaryDirectory(
            prefix=_SCRATCH, dir=course.submitted, ignore_cleanup_errors=True
        ) as scratch:
            yield Path(scratch)


def _read_roster(roster: Path) -> tuple[Table, str]:
    """The lines of a platform's own file, and what separates their cells."""
    try:
        return read_table(table_bytes(roster))
    except ValueError as error:
        raise KitError(f"{roster}: {error}") from error


def _people(origin: str, platform: Platform, table: Table, roster: Path) -> list[Identity]:
    """Everybody in the platform's own file.

    Raises:
        KitError: the platform has no such file, or nobody stands in this one.
    """
    if platform.read_people is None:
        files = [f"--from {name}, its {NAMES[name].own_file}" for name in with_own_file()]
        raise KitError(f"--roster is for {', and '.join(files)}")
    if not (people := list(platform.read_people(table).values())):
        title = NAMES[origin].title
        raise KitError(
            f"{roster}: nobody stands in it; it must be the file that {title} lets one download"
        )
    return people


def _times_by_id(origin: str, asked: Mapping[str, datetime]) -> FindTime:
    """When each person handed in, by what the platform knows them by."""

    def find(_: UploadedFile, owner: Owner) -> tuple[datetime | None, str]:
        ids = (id_ for platform, id_ in owner.identity.ids if platform == origin)
        return next((asked[id_] for id_ in ids if id_ in asked), None), ""

    return find


class _Collection:
    """One download, on its way to `submitted/`."""

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        origin: str,
        upload: Upload,
        rows: Sequence[Identity],
        files: FileTransaction,
    ) -> None:
        self._files, self._zone = files, course.about.timezone
        self._submitted, self._assignment, self._origin = course.submitted, assignment.name, origin
        self._platform = platforms()[origin]
        self._upload, self._ledger, self._rows = upload, read_ledger(course), rows
        self._before = read_collected(self._submitted, self._assignment)
        self._said: list[str] = []
        self._students: dict[Identity, str] = {}
        self._groups: dict[Identity, tuple[str, tuple[str, ...]]] = {}

    def download(self, source: Path, scratch: Path, roster: tuple[Table, str] | None) -> Download:
        """What the platform's module needs to tell whose each file is."""
        row_ids = {id_ for row in self._rows for id_ in row.ids}

        def knows(platform: str, id_: str) -> bool:
            return (platform, id_) in row_ids or self._ledger.is_known_id(platform, id_)

        return Download(
            self._upload.files,
            self._assignment,
            knows,
            self._ledger.is_listed_id,
            self._zone,
            source,
            scratch,
            roster,
        )

    def put(self, source: Path, find_owner: FindOwner) -> list[str]:
        """Sort, install, and write the ledger and the record."""
        notebooks = [file for file in self._upload.files if notebook_stem(file.name) is not None]
        owned = [(file, find_owner(file)) for file in notebooks]
        odd = [
            f"{printable_name('/'.join(file.parts))}: not named like a {self._origin} download "
            f"({self._platform.example})"
            for file, owner in owned
            if owner is None
        ]
        claims_in_order = [_Claim(file, owner) for file, owner in owned if owner is not None]
        if not claims_in_order:
            self._refuse(source, odd)
        left_out = [
            (
                left,
                find_owner(UploadedFile(left.parts))
                if left.parts and self._is_work(left)
                else None,
            )
            for left in (*self._upload.skipped, *self._without_a_file())
        ]
        self._identify(
            [*(c.owner for c in claims_in_order), *(o for _, o in left_out if o)],
            printable_name(source.name),
        )
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
                self._set_group(student, chosen.owner, printable_name(source.name))
        not_taken, lines_left_out = self._left_out(claims, left_out)
        counts = ", ".join(f"{count} {what}" for what, count in done.items())
        first = f"{sum(done.values())} submissions of {self._assignment}: {counts}"
        lines = [first, *self._said, *odd, *lines_left_out]
        lines += [
            f"{one.student}: has no notebook here: {one.reason}" for one in not_taken.values()
        ]
        record = self._record(source, arrivals, not_taken)
        if record.absent:
            lines.append(
                f"collected before and not in this download, kept: {', '.join(record.absent)}"
            )
        record = Collected(
            record.students, record.not_taken, record.absent, record.source, tuple(lines)
        )
        self._ledger.save(self._files)
        self._files.write(record_path(self._submitted, self._assignment), record.to_json())
        return lines

    def _identify(self, owners: Sequence[Owner], source: str) -> None:
        """Ask the ledger for everybody at once: whether a name is unmistakable depends on all of
        them.
        """
        names = {owner.identity: unicodedata.normalize("NFC", owner.student) for owner in owners}
        self._groups = {
            owner.identity: group
            for owner in owners
            if not owner.members and (group := self._group(owner))
        }
        for owner in owners:
            for member in owner.members:
                names.setdefault(
                    member, next(filter(None, (*member.accounts, member.name)), owner.student)
                )
        people = {
            identity: _with_row(identity, self._rows)
            for identity in names
            if identity not in self._groups
        }
        students = link_download(
            self._ledger,
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
        for student, folder in (
            (s, self._ledger.folder(s)) for s in dict.fromkeys(self._students.values())
        ):
            if folder != student and not (self._submitted / folder).exists():
                self._said.append(f"{student}: no folder can be called that, so it is {folder}")
        for owner in {owner.doubt: owner for owner in owners if owner.doubt}.values():
            self._said.append(
                f"{self._students[owner.identity]}: {owner.doubt}? The file's name "
                "says no more; the "
                "class list or `--roster` can"
            )

    def _group(self, owner: Owner) -> tuple[str, tuple[str, ...]] | None:
        """Where the owner is a group, by the platform's own file, the ledger or the class list: its
        name here, and its members.
        """
        student, name = unicodedata.normalize("NFC", owner.student), owner.identity.name
        folder_name = student if self._ledger.has_record(student) else name
        if rows := [
            row for row in self._rows if row.group and name_key(row.group) == name_key(name)
        ]:
            suggested = [f"{row.name}_{row.ids[0][1]}" for row in rows]
            members = link_download(
                self._ledger,
                self._origin,
                self._assignment,
                rows,
                suggested,
                "--roster",
                self._rows,
            )
            return folder_name, self._ledger.without_own_work(
                self._assignment, folder_name, members
            )
        for group in (folder_name, name):
            if self._ledger.is_group(group, self._assignment):
                return group, self._ledger.members(group, self._assignment)
        listed = self._ledger.listed_group(name)
        return (folder_name, listed) if listed else None

    def _set_group(self, student: str, owner: Owner, source: str) -> None:
        """Note whose the work in the student's folder is; what a member handed in alone before is
        put aside.
        """
        if not owner.members:
            if self._platform.says_whose:
                self._ledger.end_group(self._assignment, student, source)
            return
        members = tuple(dict.fromkeys(self._students[member] for member in owner.members))
        self._ledger.set_group(self._assignment, student, members, source)
        alone = {
            name: arrival
            for name, arrival in self._before.students.items()
            if name in members and name != student
        }
        elsewhere = {
            name: arrival for name, arrival in self._before.students.items() if name not in alone
        }
        self._before = replace(self._before, students=elsewhere)
        for member, arrival in alone.items():
            folder = self._submitted / self._ledger.folder(member) / self._assignment
            there = _there(self._files, folder)
            if there and arrival.origin == self._origin and not folder.is_symlink():
                _put_aside(self._files, folder, there)
                self._said.append(
                    f"{member}: hands in with {student} now; the earlier notebook is in {PREVIOUS}/"
                )

    def _put_aside_what_is_others(self) -> None:
        """Earlier work that lies in one student's folder, and was handed in by an id that is
        another's by now.
        """
        arrivals = dict(self._before.students)
        for student, arrival in self._before.students.items():
            actual = self._ledger.find_linked([(arrival.platform, arrival.id)], self._assignment)
            if actual in (None, student) or self._ledger.is_group(student, self._assignment):
                continue
            folder = self._submitted / self._ledger.folder(student) / self._assignment
            there = _there(self._files, folder)
            if there and not folder.is_symlink():
                self._said.append(
                    f"{student}: what lay here was handed in by {arrival.origin} {arrival.id}, "
                    f"who is {actual}: it is "
                    f"kept in {PREVIOUS}/{_put_aside(self._files, folder, there)}"
                )
            del arrivals[student]
        self._before = replace(self._before, students=arrivals)

    def _refuse(self, source: Path, odd: Sequence[str]) -> None:
        there = [*odd, *(str(one) for one in self._upload.skipped)]
        example = (
            f"; there is, for example, {there[0]}" if there else "; there is no notebook at all"
        )
        raise NothingToGrade(
            f"{printable_name(source)}: no file is named like {self._platform.example}{example}"
        )

    def _choose(self, claims: Sequence[_Claim], student: str) -> _Claim:
        """The latest attempt; in one attempt the notebook that is called like the assignment, else
        the latest file.
        """
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
            left = ", ".join(claim.file.display_path for claim in claims if claim is not best)
            self._said.append(
                f"{student}: {len(claims)} notebooks; took {best.file.display_path}, left {left}"
            )
        if best.owner.late:
            self._said.append(f"{student}: marked as late")
        if best.owner.unread:
            self._said.append(f"{student}: when it was handed in is not known: {best.owner.unread}")
        return best

    def _left_out(
        self, claims: dict[str, list[_Claim]], left_out: Sequence[tuple[SkippedFile, Owner | None]]
    ) -> tuple[dict[str, NotTaken], list[str]]:
        """Those of whom the download has something, but no notebook; and a line for whatever else
        was left.
        """
        folders = {claim.file.folders for claim in itertools.chain(*claims.values())} - {()}
        reasons: dict[str, tuple[Arrival, list[str]]] = {}
        lines, beside = [], 0
        for left, owner in left_out:
            student = self._students[owner.identity] if owner else None
            has_notebook = student in claims
            if owner and student and not has_notebook:
                arrival = _arrival(self._origin, UploadedFile(left.parts), owner)
                reasons.setdefault(student, (arrival, []))[1].append(str(left))
            own_file = bool(left.parts) and left.parts[-1] in self._platform.own_files
            lies_beside = any(left.parts[:n] in folders for n in range(1, len(left.parts)))
            if own_file or (left.companion and (has_notebook or lies_beside)):
                beside += 1
            elif not student or has_notebook:
                lines.append(str(left))
        not_taken = {
            student: NotTaken(student, arrival, "; ".join(why[:3]))
            for student, (arrival, why) in reasons.items()
        }
        return not_taken, [
            *lines,
            f"{beside} other files beside the notebooks were left",
        ] if beside else lines

    def _without_a_file(self) -> list[SkippedFile]:
        """What proves that somebody handed in something, where no file of theirs may be in the
        download.
        """
        proves = self._platform.proves_hand_in
        proofs = [file for file in self._upload.files if proves and proves(file.parts[-1])]
        return [
            SkippedFile(
                printable_name(f.parts[-1]), f.parts, "no file came with this attempt", True
            )
            for f in proofs
        ]

    def _is_work(self, left: SkippedFile) -> bool:
        """Whether a file says that somebody handed something in: in a plain folder, a picture alone
        does not.
        """
        return (
            self._platform.holds_only_work
            or not left.companion
            or left.parts[-2:-1] == (self._assignment,)
        )

    def _record(
        self, source: Path, arrivals: dict[str, Arrival], not_taken: dict[str, NotTaken]
    ) -> Collected:
        """The old record, updated by this download."""
        here = arrivals.keys() | not_taken.keys()
        before = self._before
        students = {**before.students, **arrivals}
        kept = {student: one for student, one in before.not_taken.items() if student not in here}
        absent = [
            student
            for student, arrival in before.students.items()
            if arrival.origin == self._origin
            and student not in here
            and (self._submitted / self._ledger.folder(student) / self._assignment).is_dir()
        ]
        return Collected(
            dict(sorted(students.items())),
            dict(sorted({**kept, **not_taken}.items())),
            tuple(sorted(absent)),
            printable_name(source.name),
        )


def _with_row(identity: Identity, rows: Iterable[Identity]) -> Identity:
    """An identity of a download, with the accounts and the name that a row has for the same id."""
    row = next((row for row in rows if set(row.ids) & set(identity.ids)), None)
    if row is None:
        return identity
    return Identity(
        identity.ids, (*identity.accounts, *row.accounts), row.name or identity.name, row.group
    )


def _arrival(origin: str, file: UploadedFile, owner: Owner) -> Arrival:
    identity = owner.identity
    platform, id_ = next(iter(identity.ids), ("", next(iter(identity.accounts), "")))
    name = (
        owner.student if platforms()[origin].called_as_student else identity.name or owner.student
    )
    path = "/".join(file.parts)
    return Arrival(origin, id_, name, path, owner.late, owner.unread, platform == ANONYMOUS)


def _install(
    files: FileTransaction,
    folder: Path,
    assignment: str,
    claim: _Claim,
    student: str,
    said: list[str],
) -> str:
    """Move one notebook to its place; what lay there goes to `previous/`. Returns what was done."""
    if folder.is_symlink() or folder.parent.is_symlink():
        said.append(f"{student}: {printable_name(folder)} is a link; nothing was written there")
        return ""
    notebook = folder / f"{assignment}.ipynb"
    there = _there(files, folder)
    is_notebook = notebook in there and notebook.is_file() and not notebook.is_symlink()
    if is_notebook and filecmp.cmp(notebook, claim.file.file, shallow=False):
        _write_time(files, folder, claim.owner)
        return "unchanged"
    older = _handed_in(folder) if folder / TIMESTAMP_FILE in there else None
    if older and claim.owner.handed_in and claim.owner.handed_in < older:
        said.append(f"{student}: what is collected already is newer; kept it")
        return "unchanged"
    if there:
        said.append(
            f"{student}: the earlier submission is kept in "
            f"{PREVIOUS}/{_put_aside(files, folder, there)}"
        )
    files.write(notebook, claim.file.file.read_bytes())
    _write_time(files, folder, claim.owner)
    return "replaced" if there else "new"


def _there(files: FileTransaction, folder: Path) -> list[Path]:
    """What lies in a submission's folder and stays there, but for earlier submissions."""
    found = folder.iterdir() if folder.is_dir() else ()
    return [path for path in found if path.name != PREVIOUS and not files.will_vanish(path)]


def _put_aside(files: FileTransaction, folder: Path, paths: Sequence[Path]) -> str:
    """Move files of a submission into `previous/`; returns the folder's name there."""
    aside = _aside(files, folder)
    for path in sorted(paths):
        files.move(path, aside / path.name)
    return aside.name


def _aside(files: FileTransaction, folder: Path) -> Path:
    """A new folder for the earlier submission, named by its time where that is known, else by
    number.
    """
    previous = folder / PREVIOUS
    if previous.is_symlink():
        raise KitError(f"{printable_name(previous)} is a link: remove it, it must be a folder")
    moment = _handed_in(folder)
    stamp = moment.strftime("%Y-%m-%dT%H%M%SZ") if moment else ""
    numbered = (f"{stamp}-{number}" if stamp else str(number) for number in itertools.count(1))
    names = itertools.chain([stamp] if stamp else [], numbered)
    aside = next(previous / name for name in names if not (previous / name).exists())
    files.make_folder(aside)
    return aside


def _handed_in(folder: Path) -> datetime | None:
    """When the submission in the folder was handed in, where a timestamp says so that can be
    read.
    """
    try:
        return read_timestamp(folder)
    except ValueError:
        return None


def _write_time(files: FileTransaction, folder: Path, owner: Owner) -> None:
    """The hand-in time in nbgrader's form, always in UTC."""
    if owner.handed_in is not None:
        files.write(folder / TIMESTAMP_FILE, owner.handed_in.strftime("%Y-%m-%d %H:%M:%S.%f UTC"))
