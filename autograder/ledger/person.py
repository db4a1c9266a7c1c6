"""What is known of somebody, from the class list and from the ledger's records, for matching."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from autograder.basics.errors import KitError
from autograder.course.platform_names import NAMES, PER_ASSIGNMENT
from autograder.course.roster import Person, same
from autograder.ledger.identity_matching import (
    Conflict,
    Id,
    Identity,
    Known,
    id_key,
    name_key,
    name_keys,
)
from autograder.ledger.ledger_file import Link, Record

_NUMBERED = re.compile(r"(.+)_(\d+)", re.DOTALL)


def ambiguous(conflicts: Collection[Conflict], platform: str) -> str:
    """What to tell whoever can decide conflicts, and how they do."""
    have_ids = any(identity.ids for conflict in conflicts for identity in conflict.identities)
    column = platform if have_ids else "email"
    messages = "; ".join(dict.fromkeys(conflict.message for conflict in conflicts))
    entry = NAMES[platform]
    hint = f", or give {entry.title}'s {entry.own_file} as `--roster`" if entry.own_file else ""
    return (
        f"nothing was changed: {messages}. Write who is who into students.csv, column "
        f"`{column}`{hint}"
    )


def assert_certain(conflicts: Iterable[Conflict], students: Collection[str], platform: str) -> None:
    """Make sure that it is certain whose the marks of these students are.

    Raises:
        KitError: a conflict concerns one of them; says what to do.
    """
    if concerned := [
        conflict for conflict in conflicts if any(key in students for key in conflict.keys)
    ]:
        raise KitError(ambiguous(concerned, platform))


def identity_of(record: Record, assignment: str) -> Identity:
    """A student, to be found in the class list."""
    ids = tuple((link.platform, link.id) for link in links_in_force(record, assignment))
    name = "" if record.namesake else record.name or record.student
    return Identity(ids, (record.student, *record.accounts), name)


def known_student(
    record: Record,
    person: Person | None,
    platform: str,
    assignment: str,
    names_in_rows: Mapping[Id, str],
) -> Known:
    """A student, and whatever the class list says of them, to match a platform's rows to.

    Args:
        names_in_rows: by every id that stands in a row, as `id_key` writes it.
    """
    listed = known_of_list(person, names_in_rows.keys()) if person else Known(record.student)
    ids = {(link.platform, link.id): link.sure for link in links_in_force(record, assignment)}
    numbered = None if record.links else _NUMBERED.fullmatch(record.student)
    # perhaps a platform's folder that somebody put there: where a row has the name too, it is its
    # id
    if numbered:
        id_in_name = (platform, numbered[2])
        if name_key(names_in_rows.get(id_in_name, "")) in name_keys(numbered[1]):
            ids[id_in_name] = True
    names = tuple(
        filter(None, ("" if record.namesake else record.name or record.student, *listed.names))
    )
    if names_in_rows and any(known_on == platform for known_on, _ in ids):
        names = ()  # the platform's id is known, so no other row is theirs
    accounts = (record.student, *record.accounts, *listed.accounts)
    return Known(record.student, {**ids, **listed.ids}, accounts, names)


def known_listed(person: Person, record: Record, assignment: str, present: Collection[Id]) -> Known:
    """Somebody of the class list, and what earlier downloads linked to them, to match a download
    to.
    """
    listed = known_of_list(person, present)
    settled = {platform for platform, _ in listed.ids} - PER_ASSIGNMENT
    learned = {
        (link.platform, link.id): link.sure
        for link in links_in_force(record, assignment)
        if link.platform not in settled
    }
    return Known(
        person.id, {**learned, **listed.ids}, (*listed.accounts, *record.accounts), listed.names
    )


def without_contradicted(people: Iterable[Known], identities: Iterable[Identity]) -> list[Known]:
    """The people without ids that a name linked to them, where an account of theirs has another id
    on the platform.
    """
    ids_of_accounts: dict[str, set[Id]] = {}
    for identity in identities:
        for account in identity.accounts:
            ids_of_accounts.setdefault(same(account), set()).update(map(id_key, identity.ids))
    checked = []
    for person in people:
        certain = set().union(
            *(ids_of_accounts.get(same(account), set()) for account in person.accounts)
        )
        on_platform = dict(certain)
        ids = {
            id_: sure
            for id_, sure in person.ids.items()
            if sure or on_platform.get(id_[0], id_key(id_)[1]) == id_key(id_)[1]
        }
        checked.append(replace(person, ids=ids))
    return checked


def known_of_list(person: Person, present: Collection[Id]) -> Known:
    """A row of the class list. Numbers that hold within one assignment count where they are
    present.
    """
    ids = {
        (platform, id_): True
        for platform in person.ids
        for id_ in person.ids_on(platform)
        if platform not in PER_ASSIGNMENT or id_key((platform, id_)) in present
    }
    return Known(person.id, ids, tuple(filter(None, (person.id, person.email))), (person.name,))


def shared_names(identities: Iterable[Identity]) -> set[str]:
    """Every form of names that several of them have."""
    ids: dict[str, set[tuple[Id, ...]]] = {}
    for identity in identities:
        for form in name_keys(identity.name):
            ids.setdefault(form, set()).add(tuple(sorted(map(id_key, identity.ids))))
    return {form for form, of_form in ids.items() if len(of_form) > 1}


def present_ids(identities: Iterable[Identity]) -> set[Id]:
    """All ids of these identities, as `id_key` writes them."""
    return {id_key(id_) for identity in identities for id_ in identity.ids}


def links_in_force(record: Record, assignment: str) -> list[Link]:
    """The student's links that hold for the assignment."""
    return [link for link in record.links if link.assignment in ("", assignment)]


def has_other_id(record: Record, identity: Identity, assignment: str) -> bool:
    """Whether a platform of the identity knows the student by another id."""
    values = dict(map(id_key, identity.ids))
    links = (id_key((link.platform, link.id)) for link in links_in_force(record, assignment))
    return any(platform in values and value != values[platform] for platform, value in links)
