"""Who stands in the rows of Canvas's gradebook and of Moodle's grading worksheet.

Moodle writes headings in the language of whoever downloads the worksheet, and leaves names out where grading is
anonymous. Its first column ends in the participant's number whatever the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from autograder.ledger.matching import Identity

_GROUP = {"group", "gruppe", "groupe", "grupo", "gruppo", "groep", "grupp", "grupa", "ryhmä", "グループ", "小组"}
_STATUS = {"status", "statut", "estado", "estat", "stato", "tila", "stav", "ステータス", "状态"}
_ACCOUNTS = {
    "username", "id number", "anmeldename", "id-nummer", "nom d'utilisateur", "numéro d'identification",
    "nombre de usuario", "número de id", "gebruikersnaam",
}  # fmt: skip
_CANVAS_ACCOUNTS = ("SIS Login ID", "SIS User ID", "Integration ID")


def moodle_rows(table: Sequence[Sequence[str]]) -> dict[int, Identity]:
    """By the number of the row in the table: who it is of. A participant's number counts for this assignment alone."""
    header = [cell.strip().casefold() for cell in table[0]] if table else []
    named = len(header) > 1 and header[1] not in _STATUS
    group = next((place for place, heading in enumerate(header) if heading in _GROUP), None)
    accounts = [place for place, heading in enumerate(header) if heading in _ACCOUNTS]
    identities = {}
    for number, row in enumerate(table[1:], 1):
        participant = re.search(r"(\d+)\s*$", row[0]) if row else None
        if participant is None:
            continue
        emails = [cell for cell in row[1:] if re.fullmatch(r"[^\s@]+@[^\s@]+", cell)]
        further = (row[place].strip() for place in accounts if place < len(row))
        identities[number] = Identity(
            (("moodle", participant[1]),),
            tuple(dict.fromkeys(filter(None, (*emails[:1], *further)))),
            row[1].strip() if named and len(row) > 1 else "",
            row[group].strip() if group is not None and group < len(row) else "",
        )
    return identities


def canvas_rows(table: Sequence[Sequence[str]]) -> dict[int, Identity]:
    """By the number of the row in the table: who it is of, for all rows that have an id."""
    header = [cell.strip() for cell in table[0]] if table else []
    identities = {}
    for number, row in enumerate(table[1:], 1):
        cells = dict(zip(header, (cell.strip() for cell in row), strict=False))
        if id_ := cells.get("ID", ""):
            name = cells.get("Student") or f"{cells.get('FirstName', '')} {cells.get('LastName', '')}".strip()
            accounts = tuple(filter(None, (cells.get(heading, "") for heading in _CANVAS_ACCOUNTS)))
            identities[number] = Identity((("canvas", id_),), accounts, name)
    return identities


def with_rows(identity: Identity, rows: Iterable[Identity]) -> Identity:
    """An identity of a download, with the accounts and the name that a row has for the same id."""
    row = next((row for row in rows if set(row.ids) & set(identity.ids)), None)
    if row is None:
        return identity
    return Identity(identity.ids, (*identity.accounts, *row.accounts), row.name or identity.name, row.group)
