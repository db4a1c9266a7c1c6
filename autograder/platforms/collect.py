"""The command `collect`: puts a platform's download into `submitted/<student>/<assignment>/`.

Everything is unpacked and sorted in a folder outside the students' folders first. Submissions that
were collected before are moved aside, never lost. A record keeps what was done (`collected.py`).
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from autograder.basics.errors import KitError, NothingToGrade
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.handed_in import printable_name
from autograder.basics.locks import hold_lock
from autograder.course import Assignment, Course
from autograder.course.platform_names import ANONYMOUS, NAMES
from autograder.intake.archives import (
    SkippedFile,
    Upload,
    UploadedFile,
    notebook_stem,
    open_upload,
)
from autograder.intake.collected import (
    Arrival,
    Collected,
    NotTaken,
    read_collected,
    record_path,
)
from autograder.intake.handed_in_weights import weights_limit, weights_name
from autograder.intake.nicknames import takes_nickname
from autograder.intake.overlooked import PREVIOUS
from autograder.intake.owners import FindOwner, FindTime, Owner, add_times
from autograder.intake.wanted_files import WantedFiles
from autograder.ledger import Identity, read_ledger
from autograder.platforms.download_people import DownloadPeople
from autograder.platforms.files_beside import FilesBeside, rank_file
from autograder.platforms.fill import read_own_table
from autograder.platforms.platform import Download, DownloadFormat, Platform, Table
from autograder.platforms.registry import platforms, with_downloads, with_own_file
from autograder.platforms.submission_folder import SubmissionFolder

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
        asked: hand-in times from the platform's interface, by its id of a person.

    Returns:
        What was done, line by line: how many, then whatever was replaced, chosen or left out, and
        why. The record has the same lines.

    Raises:
        NothingToGrade: no file follows the platform's naming; the message has an example of a file
            in the download.
        KitError: no such platform; the archive cannot be read, or is far too large; or nobody can
            say who is who.
    """
    platform = platforms().get(origin)
    if platform is None or platform.download is None:
        raise KitError(
            f"unknown origin {origin!r}: it is one of {', '.join(with_downloads())}"
        )
    course.submitted.mkdir(exist_ok=True)
    table = read_own_table(roster) if roster else None
    rows = _read_people(origin, platform, table[0], roster) if table and roster else []
    with _only_collector(course) as scratch:
        wanted = WantedFiles(
            course.limits.notebook_mb << 20,
            _describes_some_download,
            assignment.name,
            weights_limit(course, assignment.name),
            takes_nickname(course, assignment),
        )
        upload = open_upload(source, scratch, wanted)
        with FileTransaction(
            course.kept, f"`autograder collect {assignment.name}`"
        ) as files:
            collection = _Collection(
                course,
                assignment.name,
                origin,
                platform.download,
                rows,
                files,
                wanted,
            )
            # platforms tell owners by notebooks: what lies beside finds its own by the same rules
            described = [
                file for file in upload.files if not wanted.lies_beside(file.name)
            ]
            download = Download(
                described,
                assignment.name,
                collection.is_known_id,
                collection.ledger.is_listed_id,
                course.about.timezone,
                source,
                scratch,
                table,
            )
            find_owner = platform.download.find_owners(download)
            find_owner = add_times(find_owner, _times_by_id(origin, asked or {}))
            return collection.run(upload, source, find_owner)


def _describes_some_download(name: str) -> bool:
    """Whether a file of that name says, in any platform's download, whose notebooks are or when
    they were handed in.
    """
    formats = (platform.download for platform in platforms().values())
    return any(format_.describes(name) for format_ in formats if format_)


@contextlib.contextmanager
def _only_collector(course: Course) -> Iterator[Path]:
    """An empty folder to unpack into, while no other command collects. Folders of killed commands
    are removed.
    """
    with hold_lock(
        course.kept / "locks" / "collect", "collects into submitted/"
    ) as locked:
        if locked:
            for abandoned in course.submitted.glob(f"{_SCRATCH}*"):
                shutil.rmtree(abandoned, ignore_errors=True)
        with tempfile.TemporaryDirectory(
            prefix=_SCRATCH, dir=course.submitted, ignore_cleanup_errors=True
        ) as scratch:
            yield Path(scratch)


def _read_people(
    origin: str,
    platform: Platform,
    table: Table,
    roster: Path,
) -> list[Identity]:
    """Everybody in the platform's own file.

    Raises:
        KitError: the platform has no such file, or this file has nobody.
    """
    if platform.own_file is None:
        files = [
            f"--from {name}, its {NAMES[name].own_file}" for name in with_own_file()
        ]
        raise KitError(f"--roster is for {', and '.join(files)}")
    people = list(platform.own_file.read_people(table).values())
    if not people:
        title = NAMES[origin].title
        raise KitError(
            f"{roster}: nobody stands in it; it must be the file that {title} lets one download"
        )
    return people


def _times_by_id(origin: str, times: Mapping[str, datetime]) -> FindTime:
    """A function that finds a hand-in time by the platform's id of the owner."""

    def find_time(_: UploadedFile, owner: Owner) -> tuple[datetime | None, str]:
        for platform, id_ in owner.identity.ids:
            if platform == origin and id_ in times:
                return times[id_], ""
        return None, ""

    return find_time


class _Collection:
    """One download on its way to `submitted/`."""

    def __init__(
        self,
        course: Course,
        assignment: str,
        origin: str,
        format_: DownloadFormat,
        rows: Sequence[Identity],
        files: FileTransaction,
        wanted: WantedFiles,
    ) -> None:
        self.ledger = read_ledger(course)
        self._submitted = course.submitted
        self._assignment = assignment
        self._origin = origin
        self._format = format_
        self._row_ids = {id_ for row in rows for id_ in row.ids}
        self._files = files
        self._earlier = read_collected(course.submitted, assignment)
        self._wanted = wanted
        self._lines: list[str] = []
        self._without_weights: list[str] = []
        self._people = DownloadPeople(self.ledger, origin, assignment, rows)

    def is_known_id(self, platform: str, id_: str) -> bool:
        """Whether the platform's own file, the class list or an earlier download has this id."""
        return (platform, id_) in self._row_ids or self.ledger.is_known_id(
            platform, id_
        )

    def run(self, upload: Upload, source: Path, find_owner: FindOwner) -> list[str]:
        """Sort and install the submissions, and write the ledger and the record."""
        claims, misnamed = self._read_claims(upload, find_owner)
        if not claims:
            examples = [*misnamed, *map(str, upload.skipped)]
            content = (
                f", for example, {examples[0]}" if examples else " no notebook at all"
            )
            raise NothingToGrade(
                f"{printable_name(source)}: no file is named like {self._format.example}; "
                f"there is{content}"
            )
        people = {claim.owner.identity for claim in claims}
        beside = FilesBeside(upload.files, self._wanted, find_owner, people)
        skipped = self._read_skipped(upload, beside.alone, find_owner)
        owners = [claim.owner for claim in claims]
        owners += [owner for _, owner in skipped if owner]
        download_name = printable_name(source.name)
        self._identify(owners, download_name)
        claims_of_students: dict[str, list[_Claim]] = {}
        for claim in claims:
            student = self._people.students[claim.owner.identity]
            claims_of_students.setdefault(student, []).append(claim)
        self._put_aside_work_of_others()
        changes = {"new": 0, "replaced": 0, "unchanged": 0}
        arrivals = {}
        for student in sorted(claims_of_students):
            of_student = claims_of_students[student]
            claim = self._choose(of_student, student)
            folder = self._submission_folder(student)
            identities = {own.owner.identity for own in of_student}
            came = beside.choose(claim.owner, identities)
            self._lines += [f"{student}: {problem}" for problem in came.problems]
            if self._wanted.weights_bytes and not came.has_weights:
                self._without_weights.append(student)
            change, line = folder.install(
                claim.file.file, claim.owner.handed_in, came.kept
            )
            if line:
                self._lines.append(f"{student}: {line}")
            if change:
                changes[change] += 1
                arrivals[student] = self._arrival(claim.file, claim.owner)
                self._set_group(student, claim.owner, download_name)
        not_taken, skipped_lines = self._describe_skipped(claims_of_students, skipped)
        counts = ", ".join(f"{count} {change}" for change, count in changes.items())
        lines = [f"{sum(changes.values())} submissions of {self._assignment}: {counts}"]
        lines += [*self._lines, *misnamed, *skipped_lines]
        for student, missing in not_taken.items():
            lines.append(f"{student}: has no notebook here: {missing.reason}")
        if self._without_weights:
            name = weights_name(self._assignment)
            lines.append(f"without {name}: {', '.join(self._without_weights)}")
        record = self._update_record(download_name, arrivals, not_taken)
        if record.absent:
            absent = ", ".join(record.absent)
            lines.append(f"collected before and not in this download, kept: {absent}")
        record = replace(record, said=tuple(lines))
        self.ledger.save(self._files)
        self._files.write(
            record_path(self._submitted, self._assignment), record.to_json()
        )
        return lines

    def _submission_folder(self, student: str) -> SubmissionFolder:
        return SubmissionFolder(self._folder_path(student), self._files)

    def _folder_path(self, student: str) -> Path:
        return self._submitted / self.ledger.folder(student) / self._assignment

    def _read_claims(
        self, upload: Upload, find_owner: FindOwner
    ) -> tuple[list[_Claim], list[str]]:
        """The notebooks of the download with their owners, and a line for each notebook whose name
        does not tell an owner.
        """
        claims = []
        misnamed = []
        for file in upload.files:
            if notebook_stem(file.name) is None:
                continue
            owner = find_owner(file)
            if owner is not None:
                claims.append(_Claim(file, owner))
            else:
                misnamed.append(
                    f"{printable_name('/'.join(file.parts))}: not named like a {self._origin} "
                    f"download ({self._format.example})"
                )
        return claims, misnamed

    def _read_skipped(
        self, upload: Upload, alone: Sequence[SkippedFile], find_owner: FindOwner
    ) -> list[tuple[SkippedFile, Owner | None]]:
        """The skipped files of the download, and those that came without a notebook, each with its
        owner where it is somebody's work.

        A description that proves a hand-in, such as Blackboard's receipt, counts as skipped: the
        download may have no other file of that person.
        """
        skipped = [*upload.skipped, *alone]
        if self._format.description_is_hand_in:
            reason = "no file came with this attempt"
            skipped += [
                SkippedFile(
                    printable_name(file.parts[-1]), file.parts, reason, companion=True
                )
                for file in upload.files
                if self._format.describes(file.parts[-1])
            ]
        owned: list[tuple[SkippedFile, Owner | None]] = []
        for file in skipped:
            is_work = bool(file.parts) and self._is_work(file)
            owned.append(
                (file, find_owner(UploadedFile(file.parts)) if is_work else None)
            )
        return owned

    def _is_work(self, file: SkippedFile) -> bool:
        """Whether a file says that somebody handed something in: in a plain folder, a picture alone
        does not.
        """
        return (
            self._format.holds_only_work
            or not file.companion
            or file.parts[-2:-1] == (self._assignment,)
        )

    def _identify(self, owners: Sequence[Owner], source: str) -> None:
        """Link everybody to a student, and note what a person should know of the names."""
        self._people.identify(owners, source)
        for student in dict.fromkeys(self._people.students.values()):
            folder = self.ledger.folder(student)
            if folder != student and not (self._submitted / folder).exists():
                self._lines.append(
                    f"{student}: no folder can be called that, so it is {folder}"
                )
        doubts = {owner.doubt: owner for owner in owners if owner.doubt}
        for doubt, owner in doubts.items():
            self._lines.append(
                f"{self._people.students[owner.identity]}: {doubt}? The file's name says no more; "
                "the class list or `--roster` can"
            )

    def _set_group(self, student: str, owner: Owner, source: str) -> None:
        """Note whose work lies in the student's folder, and put aside the work that a member handed
        in alone before.
        """
        if not owner.members:
            if self._format.tells_groups:
                self.ledger.end_group(self._assignment, student, source)
            return
        members = tuple(
            dict.fromkeys(self._people.students[member] for member in owner.members)
        )
        self.ledger.set_group(self._assignment, student, members, source)
        for member, arrival in list(self._earlier.students.items()):
            if member not in members or member == student:
                continue
            self._forget_arrival(member)
            if arrival.origin != self._origin:
                continue
            if self._submission_folder(member).put_aside():
                self._lines.append(
                    f"{member}: hands in with {student} now; the earlier notebook is in {PREVIOUS}/"
                )

    def _put_aside_work_of_others(self) -> None:
        """Put aside earlier work that lies in one student's folder and was handed in by an id that
        is another student's by now.
        """
        for student, arrival in list(self._earlier.students.items()):
            actual = self.ledger.find_linked(
                [(arrival.platform, arrival.id)], self._assignment
            )
            if actual in (None, student) or self.ledger.is_group(
                student, self._assignment
            ):
                continue
            self._forget_arrival(student)
            if previous := self._submission_folder(student).put_aside():
                self._lines.append(
                    f"{student}: what lay here was handed in by {arrival.origin} {arrival.id}, "
                    f"who is {actual}: it is kept in {PREVIOUS}/{previous}"
                )

    def _forget_arrival(self, student: str) -> None:
        """Take the student out of the record of earlier downloads."""
        arrivals = dict(self._earlier.students)
        del arrivals[student]
        self._earlier = replace(self._earlier, students=arrivals)

    def _choose(self, claims: Sequence[_Claim], student: str) -> _Claim:
        """Choose the latest attempt; in one attempt the notebook that is called like the
        assignment, else the latest file.
        """
        best = max(
            claims,
            key=lambda claim: rank_file(claim.file, claim.owner, self._assignment),
        )
        owner = best.owner
        if len(claims) > 1:
            left = ", ".join(
                claim.file.display_path for claim in claims if claim is not best
            )
            self._lines.append(
                f"{student}: {len(claims)} notebooks; took {best.file.display_path}, left {left}"
            )
        if owner.late:
            self._lines.append(f"{student}: marked as late")
        if owner.unread:
            self._lines.append(
                f"{student}: when it was handed in is not known: {owner.unread}"
            )
        return best

    def _describe_skipped(
        self,
        claims: Mapping[str, Sequence[_Claim]],
        skipped: Sequence[tuple[SkippedFile, Owner | None]],
    ) -> tuple[dict[str, NotTaken], list[str]]:
        """The students of whom the download has a file but no notebook; and lines about the other
        skipped files.
        """
        folders = {
            claim.file.folders for group in claims.values() for claim in group
        } - {()}
        arrivals: dict[str, Arrival] = {}
        reasons: dict[str, list[str]] = {}
        lines = []
        companions = 0
        for file, owner in skipped:
            student = self._people.students[owner.identity] if owner else None
            has_notebook = student in claims
            if owner and student and not has_notebook:
                arrivals.setdefault(
                    student, self._arrival(UploadedFile(file.parts), owner)
                )
                reasons.setdefault(student, []).append(str(file))
            is_platforms = bool(file.parts) and file.parts[-1] in self._format.own_files
            lies_beside = any(
                file.parts[:n] in folders for n in range(1, len(file.parts))
            )
            if is_platforms or (file.companion and (has_notebook or lies_beside)):
                companions += 1
            elif not student or has_notebook:
                lines.append(str(file))
        if companions:
            lines.append(f"{companions} other files beside the notebooks were left")
        not_taken = {
            student: NotTaken(student, arrival, "; ".join(reasons[student][:3]))
            for student, arrival in arrivals.items()
        }
        return not_taken, lines

    def _arrival(self, file: UploadedFile, owner: Owner) -> Arrival:
        identity = owner.identity
        platform = ""
        id_ = next(iter(identity.accounts), "")
        if identity.ids:
            platform, id_ = identity.ids[0]
        name = identity.name or owner.student
        if self._format.calls_by_student:
            name = owner.student
        path = "/".join(file.parts)
        is_anonymous = platform == ANONYMOUS
        return Arrival(
            self._origin,
            id_,
            name,
            path,
            owner.late,
            owner.unread,
            is_anonymous,
        )

    def _update_record(
        self,
        source: str,
        arrivals: Mapping[str, Arrival],
        not_taken: Mapping[str, NotTaken],
    ) -> Collected:
        """The record of earlier downloads, updated by this download."""
        present = arrivals.keys() | not_taken.keys()
        students = {**self._earlier.students, **arrivals}
        missing = {
            student: entry
            for student, entry in self._earlier.not_taken.items()
            if student not in present
        }
        absent = [
            student
            for student, arrival in self._earlier.students.items()
            if arrival.origin == self._origin
            and student not in present
            and self._folder_path(student).is_dir()
        ]
        return Collected(
            dict(sorted(students.items())),
            dict(sorted({**missing, **not_taken}.items())),
            tuple(sorted(absent)),
            source,
        )
