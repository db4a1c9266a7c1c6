"""Links between the ledger's students and the identities in downloads and in platforms' files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from autograder.basics.errors import KitError
from autograder.course.platform_names import NAMES
from autograder.course.roster import Person, fold_text
from autograder.ledger.book import Ledger
from autograder.ledger.candidates import (
    candidate_for_download,
    candidate_for_rows,
    candidate_from_list,
    has_other_id,
    identity_of,
    present_ids,
    shared_names,
    without_contradicted_links,
)
from autograder.ledger.identity_matching import (
    Conflict,
    Evidence,
    Identity,
    Match,
    id_key,
    match_identities,
    name_key,
    name_keys,
)
from autograder.ledger.ledger_file import StudentRecord


def assert_certain(
    conflicts: Iterable[Conflict], students: Collection[str], platform: str
) -> None:
    """Make sure that no conflict concerns one of these students.

    Raises:
        KitError: a conflict does; says what to do.
    """
    concerned = [
        conflict
        for conflict in conflicts
        if any(key in students for key in conflict.keys)
    ]
    if concerned:
        raise KitError(_describe_conflicts(concerned, platform))


def _describe_conflicts(conflicts: Collection[Conflict], platform: str) -> str:
    """The conflicts in words, and how a person decides them."""
    have_ids = any(
        identity.ids for conflict in conflicts for identity in conflict.identities
    )
    column = platform if have_ids else "email"
    messages = "; ".join(dict.fromkeys(conflict.message for conflict in conflicts))
    entry = NAMES[platform]
    hint = (
        f", or give {entry.title}'s {entry.own_file} as `--roster`"
        if entry.own_file
        else ""
    )
    return (
        f"nothing was changed: {messages}. Write who is who into students.csv, column "
        f"`{column}`{hint}"
    )


def find_in_class_list(
    ledger: Ledger, students: Iterable[str], assignment: str
) -> tuple[dict[str, Person], list[Conflict]]:
    """The person of the class list whom each student is, and what could not be decided."""
    matches, conflicts = _match_class_list(ledger, students, assignment)
    people = {
        student: ledger.listed[match.key]
        for student, match in matches.items()
        if match.key is not None
    }
    return people, conflicts


def _match_class_list(
    ledger: Ledger, students: Iterable[str], assignment: str
) -> tuple[dict[str, Match], list[Conflict]]:
    names = list(students)
    identities = [identity_of(ledger.record(student), assignment) for student in names]
    present = present_ids(identities)
    candidates = [
        candidate_from_list(person, present) for person in ledger.listed.values()
    ]
    matches, conflicts = match_identities(identities, candidates)
    return dict(zip(names, matches, strict=True)), conflicts


def match_rows(
    ledger: Ledger,
    platform: str,
    assignment: str,
    rows: Sequence[Identity],
    students: Collection[str],
) -> tuple[list[Match], list[Conflict]]:
    """Match each row of a platform's file to one of these students, in `Match.key`.

    Args:
        rows: all rows of the file, in their order: whether a name is unmistakable depends on all of
            them.
        students: the students who may be meant; of a group the members, and the student in whose
            folder the group's work lies.
    """
    holders = _group_holders(ledger, rows, students)
    alone = sorted(set(students) - set(holders.values()))
    people = _people_of_students(ledger, assignment, rows, alone)
    names = {id_key(id_): row.name for row in rows for id_ in row.ids}
    candidates = [
        candidate_for_rows(
            ledger.record(student),
            people.get(student),
            platform,
            assignment,
            names,
        )
        for student in alone
    ]
    single_rows = [row for number, row in enumerate(rows) if number not in holders]
    single_matches, conflicts = match_identities(single_rows, candidates)
    remaining = iter(single_matches)
    matches = []
    for number, row in enumerate(rows):
        if number in holders:
            matches.append(Match(row, holders[number], "group"))
        else:
            matches.append(next(remaining))
    return matches, conflicts


def _group_holders(
    ledger: Ledger, rows: Sequence[Identity], students: Iterable[str]
) -> dict[int, str]:
    """The number of a row → the student in whose folder the work of the row's group lies."""
    by_name = {
        name_key(ledger.name(student)): student
        for student in students
        if student not in ledger.listed
    }
    holders = {}
    for number, row in enumerate(rows):
        group = name_key(row.group)
        if row.group and group in by_name:
            holders[number] = by_name[group]
    return holders


def _people_of_students(
    ledger: Ledger, assignment: str, rows: Iterable[Identity], students: Iterable[str]
) -> dict[str, Person]:
    """The person of the class list whom each student is. A name that several rows have is no
    evidence.
    """
    matches, _ = _match_class_list(ledger, students, assignment)
    shared = shared_names(rows)
    people = {}
    for student, match in matches.items():
        is_shared = match.evidence == "name" and name_keys(match.identity.name) & shared
        if match.key is not None and not is_shared:
            people[student] = ledger.listed[match.key]
    return people


def learn_rows(
    ledger: Ledger,
    platform: str,
    assignment: str,
    rows: Sequence[Identity],
    students: Collection[str],
    source: str,
) -> list[Conflict]:
    """Take ids, accounts and groups from all rows of a platform's file; returns what could not be
    decided.
    """
    matches, conflicts = match_rows(
        ledger,
        platform,
        assignment,
        rows,
        students,
    )
    rows_of_groups: dict[str, list[Identity]] = {}
    for match in matches:
        if match.key is None:
            continue
        if match.evidence == "group":
            rows_of_groups.setdefault(match.key, []).append(match.identity)
        else:
            ledger.learn(
                match.key,
                match.identity,
                assignment,
                match.evidence,
                source,
            )
    for holder in rows_of_groups:
        # The number in the holder's folder name is the group's, and no participant's.
        ledger.forget_links(holder, platform, assignment)
    members = [row for group_rows in rows_of_groups.values() for row in group_rows]
    names = [_suggest_name(row) for row in members]
    linked = link_download(
        ledger,
        platform,
        assignment,
        members,
        names,
        source,
    )
    students_of_rows = dict(zip(members, linked, strict=True))
    for holder, group_rows in rows_of_groups.items():
        group = ledger.without_own_work(
            assignment, holder, [students_of_rows[row] for row in group_rows]
        )
        ledger.set_group(assignment, holder, group, source)
    return conflicts


def _suggest_name(row: Identity) -> str:
    """The name here of somebody who is new, as a Moodle download would give it."""
    return f"{row.name}_{row.ids[0][1]}" if row.ids and row.name else str(row)


def link_download(
    ledger: Ledger,
    platform: str,
    assignment: str,
    identities: Sequence[Identity],
    suggested: Sequence[str],
    source: str,
    everybody: Sequence[Identity] = (),
) -> list[str]:
    """Link each identity in a download to a student; returns the students, in the same order.

    Args:
        suggested: for each identity the name of the student, where the person is new.
        everybody: all people in the platform's own file, where there is one.

    Raises:
        KitError: two identities would be one person of the class list, or one identity is two
            people.
    """
    present = present_ids(identities)
    candidates = [
        candidate_for_download(person, ledger.record(person.id), assignment, present)
        for person in ledger.listed.values()
    ]
    candidates = without_contradicted_links(candidates, (*identities, *everybody))
    matches, conflicts = match_identities(identities, candidates, everybody)
    if conflicts:
        raise KitError(_describe_conflicts(conflicts, platform))
    unlisted = ledger.unlisted_by_account()
    shared = shared_names((*identities, *everybody))
    students = []
    for match, name in zip(matches, suggested, strict=True):
        student, evidence = _choose_student(
            ledger,
            match,
            assignment,
            name,
            unlisted,
        )
        ledger.learn(
            student,
            match.identity,
            assignment,
            evidence,
            source,
        )
        if student not in ledger.listed and name_keys(match.identity.name) & shared:
            ledger.mark_namesake(student)
        students.append(student)
    return students


def _choose_student(
    ledger: Ledger,
    match: Match,
    assignment: str,
    suggested: str,
    unlisted: Mapping[str, StudentRecord],
) -> tuple[str, Evidence]:
    """The student, new or not, whom an identity of a download means, and the evidence.

    Args:
        unlisted: by account, the students outside the class list as they were before the download.
    """
    identity = match.identity
    linked = ledger.find_linked(identity.ids, assignment)
    is_linked_to_listed = linked in ledger.listed
    if match.key is not None and (linked is None or is_linked_to_listed):
        evidence = "id" if linked == match.key else match.evidence
        return match.key, evidence
    if linked is not None and not is_linked_to_listed:
        return linked, "id"
    for account in identity.accounts:
        record = unlisted.get(fold_text(account))
        if record is not None and not has_other_id(record, identity, assignment):
            return record.student, "account"
    is_taken = suggested in ledger.listed or (
        ledger.has_record(suggested)
        and has_other_id(ledger.record(suggested), identity, assignment)
    )
    if is_taken and identity.ids:
        return f"{suggested} ({identity.ids[0][1]})", "new"
    return suggested, "new"
