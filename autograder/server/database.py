"""The tables of the server's database, on SQLite or PostgreSQL, and the way to open it.

Times are seconds since 1970, in UTC: SQLite has no type for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    Select,
    Table,
    Text,
    UniqueConstraint,
    UpdateBase,
    create_engine,
    delete,
    event,
    false,
    inspect,
    text,
)
from sqlalchemy.schema import CreateColumn

from autograder.basics.errors import KitError

metadata = MetaData()

attempts = Table(
    "attempts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("student", Text, nullable=False),
    Column("assignment", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("received", Float, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("runs", Integer, nullable=False, default=0),
    Column("machine", Text, nullable=False, default=""),
    Column("leased_until", Float, nullable=False, default=0.0),
    Column("started", Float),
    Column("finished", Float),
    Column("suite_sha256", Text, nullable=False, default=""),
    Column("score", Float),
    Column("max_score", Float),
    Column("problem", Text, nullable=False, default=""),
    Column("filed", Boolean, nullable=False, default=False),
    Column("aside", Boolean, nullable=False, server_default=false()),
    Column("handed_in_by", Text, nullable=False, server_default=""),
    Column("weights_note", Text, nullable=False, server_default=""),
    Column("nickname", Text, nullable=False, server_default=""),
    Column("nickname_note", Text, nullable=False, server_default=""),
    # SQLite reads a row from its begin, page by page: what is large stands last
    Column("answer", LargeBinary),
    Column("proposal", LargeBinary),
    Column("notebook", LargeBinary, nullable=False),
    Column("weights", LargeBinary),
    UniqueConstraint("student", "assignment", "number"),
    Index("attempts_by_state", "state", "priority", "received"),
    Index("attempts_by_end", "state", "finished", "started"),
)
"""One row for each notebook that was handed in; `attempts.py` explains the columns."""

api_keys = Table(
    "api_keys",
    metadata,
    Column("student", Text, primary_key=True),
    Column("key_sha256", Text, nullable=False),
)
"""Keys of `check.py --submit`. Names and emails of people stand in the ledger alone."""

links = Table(
    "links",
    metadata,
    Column("key_sha256", Text, primary_key=True),
    Column("student", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("expires", Float, nullable=False),
    Column("used", Float),
)
"""One-time links for signing in. The key itself is in the link alone."""

requests = Table(
    "requests",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("student", Text, nullable=False),
    Column("assignment", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("asked", Float, nullable=False),
    Column("reply", Text, nullable=False, default=""),
    Column("replied_by", Text, nullable=False, default=""),
    Column("replied", Float),
)
"""What students ask about a question's grading."""

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("time", Float, nullable=False),
    Column("person", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("detail", Text, nullable=False),
)
"""Who changed what: marks, extensions, links."""

lti_states = Table(
    "lti_states",
    metadata,
    Column("state", Text, primary_key=True),
    Column("nonce", Text, nullable=False),
    Column("issuer", Text, nullable=False),
    Column("expires", Float, nullable=False),
)
"""Launches from learning platforms that have begun."""

lti_columns = Table(
    "lti_columns",
    metadata,
    Column("issuer", Text, primary_key=True),
    Column("assignment", Text, primary_key=True),
    Column("line_item", Text, nullable=False),
    Column("line_items", Text, nullable=False),
    Column("roster_url", Text, nullable=False),
)
"""Where learning platforms take marks of an assignment, and where their roster is."""

sent_marks = Table(
    "sent_marks",
    metadata,
    Column("assignment", Text, primary_key=True),
    Column("student", Text, primary_key=True),
    Column("mark", Text, nullable=False),
)
"""The marks that learning platforms have, as they were last sent."""


def open_database(address: str) -> Engine:
    """Open the database, and make tables and columns that are missing.

    Args:
        address: as SQLAlchemy writes it, `sqlite:////path/to/file` or `postgresql+psycopg://…`.

    Raises:
        KitError: a table of another version lacks a column that cannot be filled.
    """
    is_sqlite = address.startswith("sqlite")
    options: dict[str, Any] = {"connect_args": {"timeout": 30}} if is_sqlite else {}
    engine = create_engine(address, pool_pre_ping=not is_sqlite, **options)
    if is_sqlite:
        event.listen(engine, "connect", _prepare_sqlite)
    metadata.create_all(engine)
    _add_columns(engine)
    for index in attempts.indexes:
        index.create(engine, checkfirst=True)
    return engine


def _prepare_sqlite(connection: Any, _: object) -> None:
    """Readers do not wait for writers, and what was committed survives a loss of power."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _add_columns(engine: Engine) -> None:
    """Add the columns that a database of an earlier version lacks."""
    inspector = inspect(engine)
    for table in metadata.sorted_tables:
        present = {column["name"] for column in inspector.get_columns(table.name)}
        missing = [column for column in table.columns if column.name not in present]
        for column in missing:
            if not column.nullable and column.server_default is None:
                raise KitError(
                    f"the server's database is of another version: {table.name} lacks "
                    f"{column.name}; move the database away, and students hand in anew"
                )
            definition = CreateColumn(column).compile(engine)
            with engine.begin() as connection:
                connection.execute(
                    text(f"ALTER TABLE {table.name} ADD COLUMN {definition}")
                )


def read(engine: Engine, query: Select[Any]) -> Sequence[Row[Any]]:
    """The rows that a query finds."""
    with engine.connect() as connection:
        rows: Sequence[Row[Any]] = connection.execute(query).all()
    return rows


def read_value(engine: Engine, query: Select[Any]) -> Any:
    """The first column of the first row; None where there is no row."""
    with engine.connect() as connection:
        return connection.execute(query).scalar()


def change(engine: Engine, *statements: UpdateBase) -> int:
    """Execute statements in one transaction; returns how many rows the last one has changed."""
    with engine.begin() as connection:
        for statement in statements:
            done = connection.execute(statement)
        return int(done.rowcount)


def change_row(engine: Engine, statement: UpdateBase) -> Row[Any] | None:
    """Execute a statement that returns what it changes; the first row, None where there is none."""
    with engine.begin() as connection:
        return connection.execute(statement).first()


def replace_row(engine: Engine, table: Table, **values: object) -> None:
    """Write a row, in place of the one with the same primary key where there is one."""
    key = [column == values[column.name] for column in table.primary_key.columns]
    change(engine, delete(table).where(*key), table.insert().values(values))
