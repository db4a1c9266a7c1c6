"""The people and groups of one download, linked to the ledger's students."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from autograder.intake.owners import Owner
from autograder.ledger import Identity, Ledger, link_download
from autograder.ledger.identity_matching import name_key


class DownloadPeople:
    """The owners of a download's files.

    Attributes:
        students: the student whom each identity means, or the student in whose folder a group's
            work lies.
    """

    def __init__(
        self, ledger: Ledger, platform: str, assignment: str, rows: Sequence[Identity]
    ) -> None:
        self.students: dict[Identity, str] = {}
        self._ledger = ledger
        self._platform = platform
        self._assignment = assignment
        self._rows = rows

    def identify(self, owners: Sequence[Owner], source: str) -> None:
        """Ask the ledger for all students at once: whether a name is unmistakable depends on all of
        them.

        Raises:
            KitError: nobody can say who is who.
        """
        names = {
            owner.identity: unicodedata.normalize("NFC", owner.student)
            for owner in owners
        }
        groups = {}
        for owner in owners:
            if not owner.members and (group := self._find_group(owner)):
                groups[owner.identity] = group
        for owner in owners:
            for member in owner.members:
                labels = filter(None, (*member.accounts, member.name))
                names.setdefault(member, next(labels, owner.student))
        people = [identity for identity in names if identity not in groups]
        students = self._link(
            [_add_row(identity, self._rows) for identity in people],
            [names[identity] for identity in people],
            source,
        )
        self.students = dict(zip(people, students, strict=True))
        for identity, (holder, members) in groups.items():
            self._ledger.add_group(
                self._assignment,
                holder,
                identity,
                members,
                source,
            )
            self.students[identity] = holder

    def _find_group(self, owner: Owner) -> tuple[str, tuple[str, ...]] | None:
        """The group's name here and its members, where the platform's own file, the ledger or the
        class list says that the owner is a group.
        """
        student = unicodedata.normalize("NFC", owner.student)
        name = owner.identity.name
        holder = student if self._ledger.has_record(student) else name
        rows = [
            row
            for row in self._rows
            if row.group and name_key(row.group) == name_key(name)
        ]
        if rows:
            suggested = [f"{row.name}_{row.ids[0][1]}" for row in rows]
            members = self._link(rows, suggested, "--roster")
            return holder, self._ledger.without_own_work(
                self._assignment, holder, members
            )
        for group in (holder, name):
            if self._ledger.is_group(group, self._assignment):
                return group, self._ledger.members(group, self._assignment)
        listed = self._ledger.listed_group(name)
        return (holder, listed) if listed else None

    def _link(
        self, identities: Sequence[Identity], suggested: Sequence[str], source: str
    ) -> list[str]:
        return link_download(
            self._ledger,
            self._platform,
            self._assignment,
            identities,
            suggested,
            source,
            self._rows,
        )


def _add_row(identity: Identity, rows: Iterable[Identity]) -> Identity:
    """The identity with the accounts and the name of the row that has the same id."""
    for row in rows:
        if set(row.ids) & set(identity.ids):
            accounts = (*identity.accounts, *row.accounts)
            return Identity(
                identity.ids, accounts, row.name or identity.name, row.group
            )
    return identity
