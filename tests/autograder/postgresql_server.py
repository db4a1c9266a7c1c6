"""A server of PostgreSQL for tests, where one is installed."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROGRAMS = [
    *map(Path, os.environ["PATH"].split(os.pathsep)),
    *Path("/usr/lib/postgresql").glob("*/bin"),
]


def program(name: str) -> Path | None:
    return next(
        (folder / name for folder in PROGRAMS if os.access(folder / name, os.X_OK)),
        None,
    )


def somebody_else() -> str | None:
    """PostgreSQL does not run as root; the Debian package has a user for it, and a group of that
    name.
    """
    return "postgres" if os.geteuid() == 0 else None


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Callable[[], str]]:
    """A server of a module's own, reached by a socket in its folder; gives addresses of new, empty
    databases.
    """
    initdb, postgres = program("initdb"), program("postgres")
    if initdb is None or postgres is None:
        pytest.skip(
            "no PostgreSQL server is installed (Debian: apt-get install postgresql)"
        )
    who = somebody_else()
    if who and who not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip(
            "PostgreSQL does not run as root, and there is no user called postgres"
        )
    # where a socket's path is short, and another user may read
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    if who:
        shutil.chown(folder, who)
    made = [
        str(initdb),
        "-D",
        str(folder / "data"),
        "-U",
        "postgres",
        "--auth=trust",
        "--no-sync",
        "--encoding=UTF8",
    ]
    subprocess.run(made, check=True, capture_output=True, user=who, group=who)
    run = [
        str(postgres),
        "-D",
        str(folder / "data"),
        "-k",
        str(folder),
        "-c",
        "listen_addresses=",
        "-c",
        "fsync=off",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(run, stdout=log, stderr=log, user=who, group=who)
    numbers = itertools.count()

    def new_database() -> str:
        import psycopg

        name = f"course{next(numbers)}"
        with psycopg.connect(
            host=str(folder), user="postgres", dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql+psycopg://postgres:secret@/{name}?host={folder}"

    try:
        while process.poll() is None and not (folder / ".s.PGSQL.5432.lock").exists():
            os.sched_yield()
        subprocess.run(
            [program("pg_isready") or "pg_isready", "-h", folder, "-t", "10"],
            capture_output=True,
        )
        yield new_database
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)
