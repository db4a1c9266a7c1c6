"""The class list, `students.csv` beside course.toml: who there is, whatever came in. It is optional.

| column | what it is |
| --- | --- |
| `id` | what the student is called here: the name of the folder in `submitted/`, where nothing else gave it one |
| `name`, or `first_name` and `last_name`; `email`; `section` | shown in exports and the report, and used to find the person |
| `canvas`, `moodle`, `gradescope`, `github`, `blackboard`, `ilias` | what the platform knows the person by |
"""  # noqa: E501 - a table

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autograder.errors import KitError
from autograder.tables import read_table, table_bytes

ROSTER_FILE = "students.csv"
PLATFORMS = ("canvas", "moodle", "gradescope", "github", "blackboard", "ilias")
_COLUMNS = ("id", "name", "first_name", "last_name", "email", "section", *PLATFORMS)


@dataclass(frozen=True, slots=True)
class Person:
    """One student of the class list; `ids` are those on platforms, by the platform's name."""

    id: str
    name: str
    email: str
    section: str
    ids: Mapping[str, str]


@dataclass(frozen=True)
class Roster:
    """Everybody in the class."""

    people: tuple[Person, ...]

    def find(self, names: Iterable[str], platform: str = "", platform_id: str = "") -> Person | None:
        """The person whom the platform knows by that id; else whom one of the names calls, and nobody else."""
        if person := self._by_platform.get((platform, same(platform_id))) if platform_id else None:
            return person
        for name in names:
            if (
                person := self._by_id.get(same(name))
                or self._by_email.get(same(name))
                or self._by_name.get(_words(name))
            ):
                return person
        return None

    @cached_property
    def _by_platform(self) -> dict[tuple[str, str], Person]:
        return {(platform, same(of)): person for person in self.people for platform, of in person.ids.items()}

    @cached_property
    def _by_id(self) -> dict[str, Person]:
        return {same(person.id): person for person in self.people}

    @cached_property
    def _by_email(self) -> dict[str, Person]:
        return {same(person.email): person for person in self.people if person.email}

    @cached_property
    def _by_name(self) -> dict[str, Person]:
        """By the words of the name, in whatever order and however they are joined, where one person alone has them."""
        found: dict[str, Person | None] = {}
        for person in self.people:
            words = _words(person.name).split()
            for start in range(len(words)):
                turned = [*words[start:], *words[:start]]
                for form in {"".join(turned), " ".join(turned)}:
                    found[form] = person if found.get(form, person) is person else None
        return {form: person for form, person in found.items() if person is not None}


def _words(name: str) -> str:
    return " ".join(re.findall(r"\w+", same(name)))


def same(text: str) -> str:
    """The text so that two writings of one name are equal: composed letters, one case, one kind of apostrophe."""
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
        ids = {platform: of for platform in PLATFORMS if (of := cells.get(platform, ""))}
        for key in (("id", same(cells["id"])), *((platform, same(of)) for platform, of in ids.items())):
            if (before := seen.setdefault(key, number)) != number:
                raise ValueError(f"rows {before} and {number} have the same {key[0]}, {key[1]!r}")
        name = cells.get("name") or f"{cells.get('first_name', '')} {cells.get('last_name', '')}".strip()
        yield Person(cells["id"], name, cells.get("email", ""), cells.get("section", ""), ids)
