"""The class list, the optional file `students.csv` beside course.toml: everybody in the class.

| column | what it is |
| --- | --- |
| `id` | the student's id in this course: the name of the folder in `submitted/`, unless a download named it |
| `name`, or `first_name` and `last_name`; `email`; `section` | shown in exports and the report, and used to find the person |
| `group` | the name of the group that hands in together, as the platform writes it |
| a platform's name, as `canvas` | the person's id on the platform; all ids with spaces between, where a platform numbers people anew in each assignment |

The ledger decides which person a name or an id means.
"""  # noqa: E501 - a table

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.tables import read_table, table_bytes
from autograder.course.platform_names import PER_ASSIGNMENT, WITH_IDS

ROSTER_FILE = "students.csv"
_COLUMNS = (
    "id",
    "name",
    "first_name",
    "last_name",
    "email",
    "section",
    "group",
    *WITH_IDS,
)


@dataclass(frozen=True, slots=True)
class Person:
    """One student of the class list.

    Attributes:
        ids: the student's ids on platforms, by the platform's name.
    """

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
        return (
            tuple(re.split(r"[\s,;]+", text)) if platform in PER_ASSIGNMENT else (text,)
        )


def fold_text(text: str) -> str:
    """The text with composed letters, in one case and with one kind of apostrophe, so that two
    spellings of a name are equal.
    """
    text = unicodedata.normalize("NFC", text).casefold()
    return " ".join(re.sub(r"[\u2018\u2019\u02bc`´]", "'", text).split())


def read_roster(root: Path) -> Sequence[Person] | None:
    """The class list of the course in `root`; None without the file.

    Raises:
        KitError: the file is no list with ids, or names a person twice.
    """
    path = root / ROSTER_FILE
    if not path.exists():
        return None
    try:
        rows, _ = read_table(table_bytes(path))
        return tuple(_people(rows))
    except (OSError, ValueError) as error:
        raise KitError(f"{path}: {error}") from error


def _people(rows: list[list[str]]) -> Iterator[Person]:
    heading = (
        [cell.strip().lower().removesuffix("_id") for cell in rows[0]] if rows else []
    )
    if unknown := [cell for cell in heading if cell not in _COLUMNS]:
        raise ValueError(
            f"unknown column {unknown[0]!r}; there are: {', '.join(_COLUMNS)}"
        )
    if "id" not in heading:
        raise ValueError("there is no column `id`")
    row_numbers: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows[1:], 2):
        cells = dict.fromkeys(_COLUMNS, "")
        cells |= zip(heading, (cell.strip() for cell in row), strict=False)
        if not cells["id"]:
            raise ValueError(f"row {number} has no id")
        person = Person(
            cells["id"],
            cells["name"] or f"{cells['first_name']} {cells['last_name']}".strip(),
            cells["email"],
            cells["section"],
            {platform: cells[platform] for platform in WITH_IDS if cells[platform]},
            cells["group"],
        )
        keys = [("id", fold_text(person.id))]
        for platform in person.ids:
            keys += [(platform, fold_text(id_)) for id_ in person.ids_on(platform)]
        for kind, id_ in keys:
            earlier = row_numbers.setdefault((kind, id_), number)
            if earlier != number:
                raise ValueError(
                    f"rows {earlier} and {number} have the same {kind}, {id_!r}"
                )
        yield person
