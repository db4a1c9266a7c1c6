"""The ledger of a course: one student for all the names that platforms, folders, results and people
use for that student.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from autograder.basics.file_transaction import FileTransaction
from autograder.course import Course
from autograder.course.platform_names import PER_ASSIGNMENT
from autograder.course.roster import Person, fold_text, read_roster
from autograder.ledger.candidates import identity_of
from autograder.ledger.folder_names import can_be_shown, is_one_component, safe_folder
from autograder.ledger.identity_matching import (
    Evidence,
    Id,
    Identity,
    id_key,
    name_key,
    name_keys,
)
from autograder.ledger.ledger_file import (
    NO_STUDENTS,
    Event,
    Groups,
    LedgerContent,
    Link,
    StudentRecord,
    read_content,
    write_content,
)
from autograder.records.results import path_name


def read_ledger(course: Course) -> Ledger:
    """Read the course's ledger and class list; the ledger is empty where nobody is known.

    Raises:
        KitError: the ledger's file or the class list is broken.
    """
    content = read_content(course.root)
    roster = read_roster(course.root)
    return Ledger(course, content, roster)


class Ledger:
    """The students of a course, with their folders, groups, ids and accounts.

    Lookups change nothing. `save` writes the changes that `learn`, `set_group` and the functions of
    `linking.py` make.

    Attributes:
        roster: the class list; None where the course has no list.
        listed: the people of the class list by their ids there, which are students' names here.
    """

    def __init__(
        self, course: Course, content: LedgerContent, roster: Sequence[Person] | None
    ) -> None:
        self._root = course.root
        self._submitted = course.submitted
        self._content = content
        self.roster = roster
        self.listed = {person.id: person for person in roster or ()}
        self._class_list_groups: dict[str, Groups] = {}
        self._students_by_link: dict[tuple[str, str, str], str] = {}
        self._students_by_folder: dict[str, str] = {}
        for record in content.students.values():
            self._index(record)

    def save(self, files: FileTransaction | None = None) -> None:
        """Write the ledger's file, whole or not at all; with `files`, together with those."""
        write_content(self._root, self._content, files)

    # Records

    def record(self, student: str) -> StudentRecord:
        """The facts about a student; an empty record for a student whom no download brought."""
        return self._content.students.get(student) or StudentRecord(student, student)

    def has_record(self, student: str) -> bool:
        """Whether a download or a platform's file brought a student of this name."""
        return student in self._content.students

    def unlisted_by_account(self) -> dict[str, StudentRecord]:
        """By each of their accounts, the students who are not in the class list."""
        return {
            fold_text(account): record
            for record in self._content.students.values()
            if record.student not in self.listed
            for account in record.accounts
        }

    def learn(
        self,
        student: str,
        identity: Identity,
        assignment: str,
        evidence: Evidence,
        source: str,
    ) -> None:
        """Add an identity's ids, accounts and name to the facts about a student."""
        record = self._content.students.get(student)
        if record is None:
            record = StudentRecord(student, self._new_folder(student))
        links = {link.key: link for link in record.links}
        for platform, id_ in identity.ids:
            link = Link(platform, id_, assignment if platform in PER_ASSIGNMENT else "")
            earlier = links.get(link.key)
            sure = evidence != "name"
            if earlier is None:
                self._unlink(link)
                self._note(
                    source,
                    assignment,
                    student,
                    evidence,
                    link=link,
                )
            elif evidence in ("id", "name"):
                sure = earlier.sure  # the same id again is no new evidence
            links[link.key] = replace(link, sure=sure)
        accounts = {
            fold_text(account): account
            for account in (*record.accounts, *identity.accounts)
        }
        record = replace(
            record,
            name=identity.name or record.name,
            accounts=tuple(accounts.values()),
            links=tuple(links.values()),
        )
        self._put(record)

    def mark_namesake(self, student: str) -> None:
        """Note that somebody else has the student's name, which is no evidence from now on."""
        self._put(replace(self.record(student), namesake=True))

    def forget_links(self, student: str, platform: str, assignment: str) -> None:
        """Remove the ids by which the platform knows the student in this assignment alone."""
        for link in self.record(student).links:
            if (link.platform, link.assignment) == (platform, assignment):
                self._unlink(link)

    def _put(self, record: StudentRecord) -> None:
        self._content.students[record.student] = record
        self._index(record)

    def _index(self, record: StudentRecord) -> None:
        for link in record.links:
            self._students_by_link[link.key] = record.student
        if record.folder != record.student:
            self._students_by_folder[record.folder] = record.student

    def _unlink(self, link: Link) -> None:
        """Take an id from the student who has it: every id is one student's."""
        student = self._students_by_link.pop(link.key, None)
        if student is None:
            return
        record = self._content.students[student]
        links = tuple(
            kept_link for kept_link in record.links if kept_link.key != link.key
        )
        self._content.students[student] = replace(record, links=links)

    def _note(
        self,
        source: str,
        assignment: str,
        student: str,
        evidence: Evidence,
        *,
        link: Link | None = None,
        members: tuple[str, ...] = (),
    ) -> None:
        """Add a line to the history."""
        when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        platform, id_ = link.platform_id if link else ("", "")
        event = Event(
            when,
            source,
            assignment,
            student,
            evidence,
            platform,
            id_,
            members,
        )
        self._content.history.append(event)

    # Folders

    def folder(self, student: str) -> str:
        """The name of the student's folder in submitted/, autograded/ and feedback/, which is
        nbgrader's id of the student.
        """
        if self.has_record(student):
            return self.record(student).folder
        if student in self._unprintable_folders:
            return self._unprintable_folders[student]
        if is_one_component(student) and can_be_shown(student):
            return student
        return path_name(student)

    def student_in(self, folder: str) -> str:
        """The student whose folder this is: mostly the student's name is the folder's."""
        if student := self._students_by_folder.get(folder):
            return student
        return folder if can_be_shown(folder) else safe_folder(folder)

    def submission(self, student: str, assignment: str) -> Path:
        """The folder in which the student's submission lies, or would lie."""
        return (
            self._submitted / self.folder(self.holder(student, assignment)) / assignment
        )

    def students_with_notebooks(self, assignment: str) -> set[str]:
        """Students in whose folder a notebook of the assignment lies."""
        folders = {
            path.parts[-3] for path in self._submitted.glob(f"*/{assignment}/*.ipynb")
        }
        folders = {folder for folder in folders if not folder.startswith(NO_STUDENTS)}
        # submitted/ may also have a notebook for each student, without folders
        folders |= {path.stem for path in self._submitted.glob("*.ipynb")}
        return {self.student_in(folder) for folder in folders}

    def _new_folder(self, student: str) -> str:
        """The folder of a student without a record: a folder that a person made, else a folder
        that every system takes.
        """
        folder = self.folder(student)
        return folder if folder in self._folders else safe_folder(student)

    @cached_property
    def _folders(self) -> list[str]:
        paths = self._submitted.glob("*") if self._submitted.is_dir() else []
        return [path.name for path in paths if not path.name.startswith(NO_STUDENTS)]

    @cached_property
    def _unprintable_folders(self) -> dict[str, str]:
        """Student → folder, where a person made a folder whose name is no printable text."""
        return {
            safe_folder(folder): folder
            for folder in self._folders
            if not can_be_shown(folder)
        }

    # Groups

    def members(self, student: str, assignment: str) -> tuple[str, ...]:
        """The students whose work lies in the student's folder: a group, or the student alone."""
        return self._groups(assignment).get(student) or (student,)

    def holder(self, student: str, assignment: str) -> str:
        """The student in whose folder the student's submission lies: the group's, or their own."""
        for holder, members in self._groups(assignment).items():
            if student in members:
                return holder
        return student

    def is_group(self, student: str, assignment: str) -> bool:
        """Whether the submission in the student's folder is a group's."""
        return student in self._groups(assignment)

    def listed_group(self, name: str) -> tuple[str, ...]:
        """The members of the class list's group with this name, however a platform writes it."""
        return self._listed_groups.get(name_key(name), ())

    def set_group(
        self,
        assignment: str,
        holder: str,
        members: Sequence[str],
        source: str,
    ) -> None:
        """Note that the work in the holder's folder is that of these students, who leave any other
        group of the assignment.
        """
        groups = self._content.groups.setdefault(assignment, {})
        group = tuple(members)
        if groups.get(holder) == group:
            return
        for other_holder, others in groups.items():
            if other_holder != holder:
                groups[other_holder] = tuple(
                    member for member in others if member not in group
                )
        groups[holder] = group
        self._note(
            source,
            assignment,
            holder,
            "group",
            members=group,
        )

    def add_group(
        self,
        assignment: str,
        holder: str,
        identity: Identity,
        members: Sequence[str],
        source: str,
    ) -> None:
        """Note that this identity of a download is a group, whose work lies in the holder's folder.

        The identity's number is the group's, or that of whoever handed in for the group: the holder
        is not known by it.
        """
        if not self.has_record(holder):
            self._put(StudentRecord(holder, self._new_folder(holder), identity.name))
        keys = set(map(id_key, identity.ids))
        for link in self.record(holder).links:
            if id_key(link.platform_id) in keys:
                self._unlink(link)
        self.set_group(assignment, holder, members, source)

    def end_group(self, assignment: str, student: str, source: str) -> None:
        """Note that the work in the student's folder is their own."""
        groups = self._content.groups.get(assignment, {})
        if groups.pop(student, None):
            self._note(
                source,
                assignment,
                student,
                "group",
                members=(student,),
            )

    def without_own_work(
        self, assignment: str, holder: str, students: Iterable[str]
    ) -> tuple[str, ...]:
        """These students without those who hand in by themselves or in another group: for them
        their own work counts.
        """
        handing_in = self.students_with_notebooks(assignment) - {holder}
        return tuple(
            student
            for student in students
            if student not in handing_in
            and self.holder(student, assignment) in (student, holder)
        )

    def _groups(self, assignment: str) -> Groups:
        """Holder → members: the groups of the class list whose work is here, and those that
        downloads and worksheets named, which count before the class list.
        """
        if assignment not in self._class_list_groups:
            self._class_list_groups[assignment] = self._find_class_list_groups(
                assignment
            )
        named = self._content.groups.get(assignment, {})
        return {**self._class_list_groups[assignment], **named}

    def _find_class_list_groups(self, assignment: str) -> Groups:
        if not self._listed_groups:
            return {}
        handed_in = self.students_with_notebooks(assignment)
        groups = {}
        for student in handed_in - self.listed.keys():
            if members := self.listed_group(self.name(student)):
                groups[student] = tuple(
                    member for member in members if member not in handed_in
                )
        return groups

    @cached_property
    def _listed_groups(self) -> Groups:
        """The groups of the class list, by the key of their names."""
        groups: Groups = {}
        for person in self.listed.values():
            if person.group:
                key = name_key(person.group)
                groups[key] = (*groups.get(key, ()), person.id)
        return groups

    # People

    def name(self, student: str) -> str:
        """The person's name, as the class list or a platform writes it; else the student's name
        here.
        """
        listed = self.listed.get(student)
        return self.record(student).name or (listed.name if listed else "") or student

    def describe(self, student: str, assignment: str) -> str:
        """The student as messages about conflicts write them."""
        return str(identity_of(self.record(student), assignment))

    def ids(self, student: str, assignment: str) -> dict[str, str]:
        """Platform → the id by which it knows the student in this assignment."""
        return {
            link.platform: link.id for link in self.record(student).links_in(assignment)
        }

    def has_accounts(self, student: str) -> bool:
        """Whether an email or a login of the student's is known, so that they are no group."""
        return bool(self.record(student).accounts)

    def find_linked(self, ids: Iterable[Id], assignment: str) -> str | None:
        """The student whom a platform knows by one of these ids; None where nobody is known."""
        for id_ in ids:
            for scope in (assignment, ""):
                if student := self._students_by_link.get((*id_key(id_), scope)):
                    return student
        return None

    def name_in_download(self, row: Identity) -> str:
        """The name that a download gives to the person with the row's id, where it differs from
        the row's; else "".
        """
        student = self.find_linked(row.ids, "")
        name = self.record(student).name if student is not None else ""
        return "" if name_key(name) in name_keys(row.name) else name

    def is_listed_id(self, platform: str, id_: str) -> bool:
        """Whether the class list has this id of the platform."""
        return any(
            fold_text(id_) in map(fold_text, person.ids_on(platform))
            for person in self.listed.values()
        )

    def is_known_id(self, platform: str, id_: str) -> bool:
        """Whether the class list or an earlier download has this id of the platform."""
        if self.is_listed_id(platform, id_):
            return True
        return self.find_linked([(platform, id_)], "") is not None

    def same_people(self) -> dict[str, str]:
        """Student → the first of all students who share an account: one person, to whom Moodle gave
        several numbers.
        """
        owners: dict[str, str] = {}
        first: dict[str, str] = {}
        for student, record in sorted(self._content.students.items()):
            accounts = [fold_text(account) for account in record.accounts]
            joined = {
                first[owners[account]] for account in accounts if account in owners
            }
            first[student] = min(joined, default=student)
            for apart in joined - {first[student]}:
                # two people until this student came, with an account of each
                same = [name for name in first if first[name] == apart]
                first |= dict.fromkeys(same, first[student])
            owners |= dict.fromkeys(accounts, student)
        return first
