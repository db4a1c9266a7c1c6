"""The tables of the server's database: what may be empty, and that no text has a bound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, String, text

from autograder.basics.errors import KitError
from autograder.server.database import metadata, open_database

MAY_BE_EMPTY = {
    "attempts": {
        "started",
        "finished",
        "score",
        "max_score",
        "answer",
        "proposal",
        "weights",
    },
    "links": {"used"},
    "requests": {"replied"},
}
"""Columns without a value at first; no other may lack one."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_database(f"sqlite:///{tmp_path}/server.db")
    yield engine
    engine.dispose()


def test_only_what_comes_later_may_be_empty() -> None:
    empty = {
        table.name: {column.name for column in table.columns if column.nullable}
        for table in metadata.sorted_tables
    }
    assert {name: columns for name, columns in empty.items() if columns} == MAY_BE_EMPTY


def test_a_name_may_be_as_long_as_a_platform_makes_it() -> None:
    """No text has a bound, on PostgreSQL either: an issuer's address, or a student's id by LTI."""
    texts = [
        column.type
        for table in metadata.sorted_tables
        for column in table.columns
        if isinstance(column.type, String)
    ]
    assert {each.length for each in texts} == {None}


def test_a_new_attempt_needs_what_every_attempt_has(engine: Engine) -> None:
    insert = (
        "INSERT INTO attempts (student, assignment, number, received, sha256, state, "
        "priority, runs, machine, leased_until, suite_sha256, problem, filed, notebook) "
        "VALUES ('ada', 'm1', 1, 0, '', 'waiting', 0, 0, '', 0, '', '', 0, x'7b7d')"
    )
    with engine.begin() as connection:
        connection.execute(text(insert))
        row = connection.execute(text("SELECT * FROM attempts")).mappings().one()
    assert (row["aside"], row["handed_in_by"], row["nickname"]) == (0, "", "")
    with pytest.raises(Exception, match="UNIQUE"), engine.begin() as connection:
        connection.execute(text(insert))


def test_what_nobody_gives_a_row_is_nothing() -> None:
    """An attempt was begun never, and no other program knows of it."""
    defaults = {
        f"{table.name}.{column.name}": column.default.arg
        for table in metadata.sorted_tables
        for column in table.columns
        if column.default is not None
    }
    assert defaults == {
        "attempts.runs": 0,
        "attempts.machine": "",
        "attempts.leased_until": 0.0,
        "attempts.suite_sha256": "",
        "attempts.problem": "",
        "attempts.filed": False,
        "requests.reply": "",
        "requests.replied_by": "",
    }


def test_columns_that_a_database_lacks_are_added(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/server.db"
    engine = open_database(address)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE attempts DROP COLUMN nickname"))
        connection.execute(text("ALTER TABLE requests DROP COLUMN replied"))
    engine.dispose()
    engine = open_database(address)
    with engine.begin() as connection:
        for table, column in (("attempts", "nickname"), ("requests", "replied")):
            connection.execute(text(f"SELECT {column} FROM {table}"))
        connection.execute(text("ALTER TABLE requests DROP COLUMN text"))
    engine.dispose()
    with pytest.raises(KitError, match=r"another version: requests lacks text; move"):
        open_database(address)


def test_what_was_committed_survives_a_loss_of_power(engine: Engine) -> None:
    with engine.connect() as connection:
        mode = connection.execute(text("PRAGMA journal_mode")).scalar_one()
        level = connection.execute(text("PRAGMA synchronous")).scalar_one()
    assert (mode, level) == ("wal", 2)
