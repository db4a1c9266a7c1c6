"""The ledger of a course: one student for everything that platforms, folders, results and people
call them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.course import Course
from autograder.course.platform_names import PER_ASSIGNMENT
from autograder.course.roster import Person, Roster, read_roster, same
from autograder.ledger.folder_names import (
    can_be_shown,
    is_one_component,
    safe_folder,
)
from autograder.ledger.identity_matching import (
    Conflict,
    Evidence,
    Id,
    Identity,
    Match,
    id_key,
    match_identities,
    name_key,
    name_keys,
)
from autograder.ledger.ledger_file import (
    NO_STUDENTS,
    Event,
    Link,
    Record,
    Records,
    link_key,
    read_records,
    write_records,
)
from autograder.ledger.person import (
    ambiguous,
    has_other_id,
    identity_of,
    known_listed,
    known_of_list,
    known_student,
    links_in_force,
    present_ids,
    shared_names,
    without_contradicted,
)
from autograder.records.results import path_name


def read_ledger(course: Course) -> Ledger:
    """The course's ledger, with its class list; empty where nothing is known of anybody.

    Raises:
        KitError: the ledger's file or the class list is broken.
    """
    return Ledger(
        course.root,
        course.submitted,
        read_records(course.root),
        read_roster(course.root),
    )


class Ledger:
    """Who is who. Lookups change nothing; what `link_download`, `learn_rows` and `set_group` change
    `save` writes.
    """

    def __init__(
        self, root: Path, submitted: Path, records: Records, roster: Roster | None
    ) -> None:
        self._root, self._submitted, self._records = root, submitted, records
        self.roster = roster
        self._listed = {person.id: person for person in roster.people} if roster else {}
        self._links = {
            link_key(link): r.student for r in records.students.values() for link in r.links
        }
        self._listed_groups: dict[str, dict[str, tuple[str, ...]]] = {}

    def save(self, files: FileTransaction | None = None) -> None:
        """Write the ledger's file, whole or not at all; with `files`, together with those."""
        write_records(self._root, self._records, files)

    # Students and their folders

    def folder(self, student: str) -> str:
        """The student's folder in submitted/, autograded/ and feedback/, which is nbgrader's id of
        them.
        """
        if record := self._records.students.get(student):
            return record.folder
        plain = is_one_component(student) and can_be_shown(student)
        return self._odd_folders.get(student, student if plain else path_name(student))

    def student_in(self, folder: str) -> str:
        """The student whose folder this is: mostly the folder's own name."""
        if student := self._by_folder.get(folder):
            return student
        return folder if can_be_shown(folder) else safe_folder(folder)

    def submission(self, student: str, assignment: str) -> Path:
        """The folder in which the student's submission lies, or would lie."""
        return self._submitted / self.folder(self.holder(student, assignment)) / assignment

    def students_with_notebooks(self, assignment: str) -> set[str]:
        """Students in whose folder a notebook of the assignment lies."""
        folders = {path.parts[-3] for path in self._submitted.glob(f"*/{assignment}/*.ipynb")}
        folders = {folder for folder in folders if not folder.startswith(NO_STUDENTS)}
        # a notebook for each, without folders
        folders |= {path.stem for path in self._submitted.glob("*.ipynb")}
        renamed = self._by_folder
        return {renamed.get(folder) or self.student_in(folder) for folder in folders}

    @cached_property
    def _folders(self) -> list[str]:
        paths = self._submitted.glob("*") if self._submitted.is_dir() else []
        return [path.name for path in paths if not path.name.startswith(NO_STUDENTS)]

    @cached_property
    def _odd_folders(self) -> dict[str, str]:
        """Student → folder, where somebody made a folder whose name is no text."""
        return {safe_folder(folder): folder for folder in self._folders if not can_be_shown(folder)}

    @property
    def _by_folder(self) -> dict[str, str]:
        return {
            r.folder: r.student for r in self._records.students.values() if r.folder != r.student
        }

    # Groups

    def members(self, student: str, assignment: str) -> tuple[str, ...]:
        """Whose the submission in the student's folder is: a group's members, or the student
        alone.
        """
        return self._groups(assignment).get(student) or (student,)

    def holder(self, student: str, assignment: str) -> str:
        """In whose folder the student's submission lies: their group's, or their own."""
        groups = self._groups(assignment)
        return next((holder for holder, members in groups.items() if student in members), student)

    def is_group(self, student: str, assignment: str) -> bool:
        """Whether the submission in the student's folder is a group's."""
        return student in self._groups(assignment)

    def _groups(self, assignment: str) -> Mapping[str, tuple[str, ...]]:
        """Groups that downloads and worksheets told of; and those of the class list, where their
        work is there.
        """
        if assignment not in self._listed_groups:
            self._listed_groups[assignment] = self._groups_of_class_list(assignment)
        return {**self._listed_groups[assignment], **self._records.groups.get(assignment, {})}

    def _groups_of_class_list(self, assignment: str) -> dict[str, tuple[str, ...]]:
        if not self._members_in_list:
            return {}
        handed_in = self.students_with_notebooks(assignment)
        members = {
            student: self.listed_group(self.name(student))
            for student in handed_in - self._listed.keys()
        }
        return {
            student: tuple(m for m in listed if m not in handed_in)
            for student, listed in members.items()
            if listed
        }

    @cached_property
    def _members_in_list(self) -> dict[str, tuple[str, ...]]:
        """The groups of the class list, by the key of their names."""
        members: dict[str, tuple[str, ...]] = {}
        for person in self._listed.values():
            if person.group:
                key = name_key(person.group)
                members[key] = (*members.get(key, ()), person.id)
        return members

    def set_group(self, assignment: str, holder: str, members: Sequence[str], source: str) -> None:
        """Note that the work in the holder's folder is that of these students; they leave any other
        group of theirs.
        """
        groups = self._records.groups.setdefault(assignment, {})
        if groups.get(holder) == tuple(members):
            return
        for former in [former for former in groups if former != holder]:
            groups[former] = tuple(member for member in groups[former] if member not in members)
        groups[holder] = tuple(members)
        self._note(source, assignment, holder, "group", members=tuple(members))

    def add_group(
        self, assignment: str, holder: str, identity: Identity, members: Sequence[str], source: str
    ) -> None:
        """Note that what a download calls by this identity is a group's work, which lies in the
        holder's folder.

        The identity's number is the group's, or that of whoever handed in for it: the holder is not
        known by it.
        """
        self._records.students.setdefault(
            holder, Record(holder, self._new_folder(holder), identity.name)
        )
        record = self._records.students[holder]
        for link in record.links:
            if id_key((link.platform, link.id)) in map(id_key, identity.ids):
                self._unlink(link)
        self.set_group(assignment, holder, members, source)

    def end_group(self, assignment: str, student: str, source: str) -> None:
        """Note that the work in the student's folder is their own."""
        groups = self._records.groups.get(assignment, {})
        if groups.pop(student, None):
            self._note(source, assignment, student, "group", members=(student,))

    # People

    def name(self, student: str) -> str:
        """The student's own name, as the class list or a platform writes it; else what they are
        called here.
        """
        return self._record(student).name or student

    def shown(self, student: str, assignment: str) -> str:
        """The student as messages about conflicts write them."""
        return str(identity_of(self._record(student), assignment))

    def ids(self, student: str, assignment: str) -> dict[str, str]:
        """What each platform knows the student by, for this assignment."""
        return {
            link.platform: link.id for link in links_in_force(self._record(student), assignment)
        }

    def has_accounts(self, student: str) -> bool:
        """Whether an email or a login of the student's is known, so that they are no group."""
        return bool(self._record(student).accounts)

    def whose(self, platform: str, id_: str, assignment: str) -> str | None:
        """The student whom the platform knows by this id; None where nobody is known by it."""
        return self._holder_of([(platform, id_)], assignment)

    def name_in_download(self, row: Identity) -> str:
        """What a download calls whoever has the row's id, where that is another name than the
        row's; else "".
        """
        holder = self._holder_of(row.ids, "")
        name = self._record(holder).name if holder is not None else ""
        return "" if name_key(name) in name_keys(row.name) else name

    def lists(self, platform: str, id_: str) -> bool:
        """Whether the class list says that the platform knows somebody by this id."""
        return any(
            same(id_) in map(same, person.ids_on(platform)) for person in self._listed.values()
        )

    def knows(self, platform: str, id_: str) -> bool:
        """Whether the class list or an earlier download has this id."""
        linked = self._links.get((*id_key((platform, id_)), ""))
        return linked is not None or self.lists(platform, id_)

    def has_record(self, student: str) -> bool:
        """Whether a download or a platform's file brought a student of this name."""
        return student in self._records.students

    def joined(self) -> dict[str, str]:
        """Student → one name for all students who share an account: a person whom Moodle gave
        several numbers.
        """
        first: dict[str, str] = {}
        joined = {}
        for student, record in sorted(self._records.students.items()):
            accounts = [same(account) for account in record.accounts]
            joined[student] = min(
                (first[account] for account in accounts if account in first), default=student
            )
            first |= {account: joined[student] for account in accounts if account not in first}
        return joined

    def listed_group(self, name: str) -> tuple[str, ...]:
        """The members of the group of the class list that a platform writes like this."""
        return self._members_in_list.get(name_key(name), ())

    def people(
        self, students: Iterable[str], assignment: str
    ) -> tuple[dict[str, Person], list[Conflict]]:
        """Who in the class list these students are, and whom nobody can tell."""
        matches, conflicts = self._matches_in_list(students, assignment)
        people = {
            student: self._listed[match.key]
            for student, match in matches.items()
            if match.key is not None
        }
        return people, conflicts

    def _matches_in_list(
        self, students: Iterable[str], assignment: str
    ) -> tuple[dict[str, Match], list[Conflict]]:
        names = list(students)
        identities = [identity_of(self._record(student), assignment) for student in names]
        present = present_ids(identities)
        listed = [known_of_list(person, present) for person in self._listed.values()]
        matches, conflicts = match_identities(identities, listed)
        return dict(zip(names, matches, strict=True)), conflicts

    def match_rows(
        self, platform: str, assignment: str, rows: Sequence[Identity], students: Collection[str]
    ) -> tuple[list[Match], list[Conflict]]:
        """Whose each row of a platform's file is, of these students; `Match.key` is the student.

        Args:
            rows: all rows of the file, in their order: whether a name is unmistakable depends on
                all of them.
            students: whoever may get something; of a group the members, and the student in whose
                folder its work lies.
        """
        holders = {
            name_key(self.name(student)): student
            for student in students
            if student not in self._listed
        }
        groups = {
            number: holders[name_key(row.group)]
            for number, row in enumerate(rows)
            if row.group and name_key(row.group) in holders
        }
        alone = sorted(set(students) - set(groups.values()))
        in_list, _ = self._matches_in_list(alone, assignment)
        shared = shared_names(rows)  # a link by such a name is none
        people = {
            student: self._listed[match.key]
            for student, match in in_list.items()
            if match.key is not None
            and not (match.evidence == "name" and name_keys(match.identity.name) & shared)
        }
        names = {id_key(id_): row.name for row in rows for id_ in row.ids}
        candidates = [
            known_student(self._record(s), people.get(s), platform, assignment, names)
            for s in alone
        ]
        decided, conflicts = match_identities(
            [row for number, row in enumerate(rows) if number not in groups], candidates
        )
        remaining = iter(decided)
        matches = [
            Match(row, groups[number], "group") if number in groups else next(remaining)
            for number, row in enumerate(rows)
        ]
        return matches, conflicts

    def learn_rows(
        self,
        platform: str,
        assignment: str,
        rows: Sequence[Identity],
        students: Collection[str],
        source: str,
    ) -> list[Conflict]:
        """Take ids, accounts and groups from all rows of a platform's file; returns what could not
        be decided.
        """
        matches, conflicts = self.match_rows(platform, assignment, rows, students)
        rows_of_groups: dict[str, list[Identity]] = {}
        for match in matches:
            if match.key is not None and match.evidence == "group":
                rows_of_groups.setdefault(match.key, []).append(match.identity)
            elif match.key is not None:
                self._learn(match.key, match.identity, assignment, match.evidence, source)
        for holder in rows_of_groups:
            # its number is the group's, and no participant's
            self._forget_links(holder, platform, assignment)
        in_groups = list(itertools.chain.from_iterable(rows_of_groups.values()))
        names = [
            f"{row.name}_{row.ids[0][1]}" if row.ids and row.name else str(row) for row in in_groups
        ]
        linked = self.link_download(platform, assignment, in_groups, names, source)
        students_of_rows = dict(zip(in_groups, linked, strict=True))
        for holder, members in rows_of_groups.items():
            of_group = [students_of_rows[row] for row in members]
            self.set_group(
                assignment, holder, self.without_own_work(assignment, holder, of_group), source
            )
        return conflicts

    def without_own_work(
        self, assignment: str, holder: str, students: Iterable[str]
    ) -> tuple[str, ...]:
        """These students, but for those who hand in by themselves or with others: their own work
        counts.
        """
        handing_in = self.students_with_notebooks(assignment) - {holder}
        return tuple(
            s for s in students if s not in handing_in and self.holder(s, assignment) in (s, holder)
        )

    def link_download(
        self,
        platform: str,
        assignment: str,
        identities: Sequence[Identity],
        suggested: Sequence[str],
        source: str,
        everybody: Sequence[Identity] = (),
    ) -> list[str]:
        """The student of each identity in a download, in their order. Whoever is new gets the
        suggested name.

        Args:
            everybody: everybody whom the platform's own file has, where there is one.

        Raises:
            KitError: two of them would be one person of the class list, or one of them is two
                people.
        """
        present = present_ids(identities)
        listed = [
            known_listed(p, self._record(p.id), assignment, present) for p in self._listed.values()
        ]
        listed = without_contradicted(listed, (*identities, *everybody))
        matches, conflicts = match_identities(identities, listed, everybody)
        if conflicts:
            raise KitError(ambiguous(conflicts, platform))
        accounts = {
            same(account): record
            for record in self._records.students.values()
            if record.student not in self._listed
            for account in record.accounts
        }
        shared = shared_names((*identities, *everybody))
        students: list[str] = []
        for match, name in zip(matches, suggested, strict=True):
            student, evidence = self._home(match, assignment, name, accounts)
            students.append(student)
            self._learn(student, match.identity, assignment, evidence, source)
            if student not in self._listed and name_keys(match.identity.name) & shared:
                self._records.students[student] = dataclasses.replace(
                    self._records.students[student], namesake=True
                )
        return students

    def _home(
        self, match: Match, assignment: str, suggested: str, unlisted: Mapping[str, Record]
    ) -> tuple[str, Evidence]:
        """The student, new or not, whom an identity of a download is, and what that was concluded
        from.

        Args:
            unlisted: by account, students who are not in the class list.
        """
        identity = match.identity
        holder = self._holder_of(identity.ids, assignment)
        if match.key is not None and (
            holder is None or (holder in self._listed and holder != match.key)
        ):
            return match.key, match.evidence
        if holder is not None and not (holder in self._listed and match.key is None):
            return holder, "id"
        for account in identity.accounts:
            record = unlisted.get(same(account))
            if record is not None and not has_other_id(record, identity, assignment):
                return record.student, "account"
        namesake = self._records.students.get(suggested)
        taken = suggested in self._listed or (
            namesake is not None and has_other_id(namesake, identity, assignment)
        )
        return (
            f"{suggested} ({identity.ids[0][1]})" if taken and identity.ids else suggested
        ), "new"

    def _holder_of(self, ids: Iterable[Id], assignment: str) -> str | None:
        holders = (
            self._links.get((*id_key(id_), scope)) for id_ in ids for scope in (assignment, "")
        )
        return next(filter(None, holders), None)

    def _learn(
        self, student: str, identity: Identity, assignment: str, evidence: Evidence, source: str
    ) -> None:
        record = self._records.students.get(student) or Record(student, self._new_folder(student))
        links = {link_key(link): link for link in record.links}
        for platform, id_ in identity.ids:
            link = Link(platform, id_, assignment if platform in PER_ASSIGNMENT else "")
            earlier = links.get(link_key(link))
            if earlier is not None and evidence in ("id", "name"):
                sure = earlier.sure  # found again by the same id, which says nothing new
            else:
                sure = evidence != "name"
            links[link_key(link)] = dataclasses.replace(link, sure=sure)
            if earlier is None:
                self._unlink(link)
                self._links[link_key(link)] = student
                self._note(source, assignment, student, evidence, platform=platform, id=id_)
        accounts = {same(account): account for account in (*record.accounts, *identity.accounts)}
        self._records.students[student] = dataclasses.replace(
            record,
            name=identity.name or record.name,
            accounts=tuple(accounts.values()),
            links=tuple(links.values()),
        )

    def _new_folder(self, student: str) -> str:
        """The folder of a student without a record: one made by hand, else one that every system
        takes.
        """
        return folder if (folder := self.folder(student)) in self._folders else safe_folder(student)

    def _unlink(self, link: Link) -> None:
        """An id is one student's: take it from whoever had it."""
        if (holder := self._links.pop(link_key(link), None)) is not None:
            record = self._records.students[holder]
            links = tuple(
                kept_link for kept_link in record.links if link_key(kept_link) != link_key(link)
            )
            self._records.students[holder] = dataclasses.replace(record, links=links)

    def _forget_links(self, student: str, platform: str, assignment: str) -> None:
        for link in self._record(student).links:
            if link.platform == platform and link.assignment == assignment:
                self._unlink(link)

    def _note(
        self,
        source: str,
        assignment: str,
        student: str,
        evidence: Evidence,
        *,
        platform: str = "",
        id: str = "",
        members: tuple[str, ...] = (),
    ) -> None:
        when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._records.history.append(
            Event(when, source, assignment, student, evidence, platform, id, members)
        )

    def _record(self, student: str) -> Record:
        return self._records.students.get(student) or Record(student, student)
