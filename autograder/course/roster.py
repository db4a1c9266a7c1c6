"""The class list, `students.csv` beside course.toml: who there is, whatever came in. It is optional.

| column | what it is |
| --- | --- |
| `id` | what the student is called here: the name of the folder in `submitted/`, where nothing else gave it one |
| `name`, or `first_name` and `last_name`; `email`; `section` | shown in exports and the report, and used to find the person |
| `group` | the name of the group that hands in together, as the platform writes it |
| a platform's name, as `canvas` | what the platform knows the person by; where it numbers people anew in each assignment, all numbers with spaces between |

Who is meant by a name or an id, the ledger decides.
"""  # noqa: E501 - a table

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.tables import read_table, table_bytes
from autograder.course.platform_names import PER_ASSIGNMENT, WITH_IDS

ROSTER_FILE = "students.csv"
_COLUMNS = ("id", "name", "first_name", "last_name", "email", "section", "group", *WITH_IDS)


@dataclass(frozen=True, slots=True)
class Person:
    """One student of the class list; `ids` are those on platforms, by the platform's name."""

    id: str
    name: str
    email: str
    section: str
    ids: Mapping[str, str]
    group: str = ""

    def ids_on(self, platform: str) -> tuple[str, ...]:
        """The person's ids on the platform: several where the platform numbers people anew in each
        assignment.
        """
        text = self.ids.get(platform, "")
        return tuple(re.split(r"[\s,;]+", text)) if platform in PER_ASSIGNMENT else (text,)


@dataclass(frozen=True)
class Roster:
    """Everybody in the class."""

    people: tuple[Person, ...]


def same(text: str) -> str:
    """The text so that two writings of one name are equal: composed letters, one case, one kind of
    apostrophe.
    """
    text = unicodedata.normalize("NFC", text).casefold()
    return " ".join(re.sub(r"[\u2018\u2019\u02bc`´]", "'", text).split())


def read_roster(root: Path) -> Roster | None:
    """The class list of the course in `root`; None where there is none.

    Raises:
        KitError: it is no list with ids, or somebody stands in it twice.
    """
    path = root / ROSTER_FILE
    if not path.exists():
        return None
    try:
        rows, _ = read_table(table_bytes(path))
        return Roster(tuple(_people(rows)))
    except (OSError, ValueError) as error:
        raise KitError(f"{path}: {error}") from error


def _people(rows: list[list[str]]) -> Iterable[Person]:
    heading = [cell.strip().lower().removesuffix("_id") for cell in rows[0]] if rows else []
    if unknown := [cell for cell in heading if cell not in _COLUMNS]:
        raise ValueError(f"unknown column {unknown[0]!r}; there are: {', '.join(_COLUMNS)}")
    if "id" not in heading:
        raise ValueError("there is no column `id`")
    seen: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows[1:], 2):
        cells = dict(zip(heading, (cell.strip() for cell in row), strict=False))
        if not cells.get("id"):
            raise ValueError(f"row {number} has no id")
        ids = {platform: of for platform in WITH_IDS if (of := cells.get(platform, ""))}
        name = (
            cells.get("name")
            or f"{cells.get('first_name', '')} {cells.get('last_name', '')}".strip()
        )
        person = Person(
            cells["id"],
            name,
            cells.get("email", ""),
            cells.get("section", ""),
            ids,
            cells.get("group", ""),
        )
        own = [(platform, same(of)) for platform in ids for of in person.ids_on(platform)]
        for key in (("id", same(person.id)), *own):
            if (before := seen.setdefault(key, number)) != number:
                raise ValueError(f"rows {before} and {number} have the same {key[0]}, {key[1]!r}")
        yield person
