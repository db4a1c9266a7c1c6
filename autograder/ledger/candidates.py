"""Candidates for a match: the people of the class list and the students of the ledger, each with
the ids, accounts and names that are known of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from autograder.course.platform_names import PER_ASSIGNMENT
from autograder.course.roster import Person, fold_text
from autograder.ledger.identity_matching import (
    Candidate,
    Id,
    Identity,
    id_key,
    name_key,
    name_keys,
)
from autograder.ledger.ledger_file import StudentRecord

_NAME_WITH_ID = re.compile(r"(.+)_(\d+)", re.DOTALL)


def identity_of(record: StudentRecord, assignment: str) -> Identity:
    """A student as an identity, to be matched to the class list."""
    ids = tuple(link.platform_id for link in record.links_in(assignment))
    return Identity(ids, (record.student, *record.accounts), _name_of(record))


def candidate_from_list(person: Person, present: Collection[Id]) -> Candidate:
    """A person of the class list.

    Args:
        present: the ids in the download, as `id_key` writes them. A number that holds within one
            assignment counts only where it is among these.
    """
    ids = {
        (platform, id_): True
        for platform in person.ids
        for id_ in person.ids_on(platform)
        if platform not in PER_ASSIGNMENT or id_key((platform, id_)) in present
    }
    accounts = tuple(filter(None, (person.id, person.email)))
    return Candidate(person.id, ids, accounts, (person.name,))


def candidate_for_download(
    person: Person, record: StudentRecord, assignment: str, present: Collection[Id]
) -> Candidate:
    """A person of the class list with what earlier downloads linked to them, to match a download
    to. An id in the class list outranks every link to the same platform.
    """
    listed = candidate_from_list(person, present)
    settled = {platform for platform, _ in listed.ids} - PER_ASSIGNMENT
    linked = {
        link.platform_id: link.sure
        for link in record.links_in(assignment)
        if link.platform not in settled
    }
    accounts = (*listed.accounts, *record.accounts)
    return Candidate(person.id, {**linked, **listed.ids}, accounts, listed.names)


def candidate_for_rows(
    record: StudentRecord,
    person: Person | None,
    platform: str,
    assignment: str,
    names_in_rows: Mapping[Id, str],
) -> Candidate:
    """A student with what the class list says of them, to match a platform's rows to.

    Args:
        names_in_rows: the name in a row, by each id of the row as `id_key` writes it.
    """
    if person:
        listed = candidate_from_list(person, names_in_rows.keys())
    else:
        listed = Candidate(record.student)
    ids = {link.platform_id: link.sure for link in record.links_in(assignment)}
    ids |= listed.ids
    name_with_id = None if record.links else _NAME_WITH_ID.fullmatch(record.student)
    if name_with_id:
        # Somebody may have put a platform's folder, `name_id`, into submitted/ by hand. The number
        # is the student's id where the row with that id has the same name.
        id_in_name = (platform, name_with_id[2])
        name_in_row = names_in_rows.get(id_in_name, "")
        if name_key(name_in_row) in name_keys(name_with_id[1]):
            ids[id_in_name] = True
    names = tuple(filter(None, (_name_of(record), *listed.names)))
    if names_in_rows and any(id_platform == platform for id_platform, _ in ids):
        names = ()  # the platform's id is known, so no other row is theirs
    accounts = (record.student, *record.accounts, *listed.accounts)
    return Candidate(record.student, ids, accounts, names)


def without_contradicted_links(
    candidates: Iterable[Candidate], identities: Iterable[Identity]
) -> list[Candidate]:
    """The candidates without the ids that a name alone linked to them, where one of their accounts
    has another id on that platform.
    """
    ids_of_accounts: dict[str, set[Id]] = {}
    for identity in identities:
        for account in identity.accounts:
            ids = ids_of_accounts.setdefault(fold_text(account), set())
            ids.update(map(id_key, identity.ids))
    checked = []
    for candidate in candidates:
        certain: dict[str, str] = {}
        for account in candidate.accounts:
            certain |= dict(ids_of_accounts.get(fold_text(account), ()))
        kept_ids = {}
        for id_, is_sure in candidate.ids.items():
            platform, value = id_key(id_)
            if is_sure or certain.get(platform, value) == value:
                kept_ids[id_] = is_sure
        checked.append(replace(candidate, ids=kept_ids))
    return checked


def shared_names(identities: Iterable[Identity]) -> set[str]:
    """Every form of a name that several of these identities have."""
    ids_by_name: dict[str, set[tuple[Id, ...]]] = {}
    for identity in identities:
        ids = tuple(sorted(map(id_key, identity.ids)))
        for form in name_keys(identity.name):
            ids_by_name.setdefault(form, set()).add(ids)
    return {form for form, rivals in ids_by_name.items() if len(rivals) > 1}


def present_ids(identities: Iterable[Identity]) -> set[Id]:
    """All ids of these identities, as `id_key` writes them."""
    return {id_key(id_) for identity in identities for id_ in identity.ids}


def has_other_id(record: StudentRecord, identity: Identity, assignment: str) -> bool:
    """Whether a platform of the identity knows the student by another id."""
    values = dict(map(id_key, identity.ids))
    for link in record.links_in(assignment):
        platform, value = id_key(link.platform_id)
        if value != values.get(platform, value):
            return True
    return False


def _name_of(record: StudentRecord) -> str:
    """The name by which a student can be found; "" where somebody else has the name too."""
    return "" if record.namesake else record.name or record.student
