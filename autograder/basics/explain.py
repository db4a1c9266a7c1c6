"""Explain an error of the machine in one line: the file, the fault, and a remedy."""

from __future__ import annotations

import errno
import sqlite3
import sys

from autograder.basics.errors import KitError
from autograder.basics.missing_extras import missing_extra

_NO_SPACE = (
    "there is no space left there; free some and run the command again. What was there before "
    "is unchanged"
)
_NOT_ALLOWED = (
    "it may not be read, or not be written; change its permissions, or name another "
    "place"
)
_WHAT_TO_DO = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.EROFS: "that disk can only be read; name another place",
    errno.ENOTDIR: "a file stands where a folder is needed; remove it, or name another place",
    errno.EEXIST: "something stands where a folder is needed; remove it, or name another place",
    errno.EISDIR: "it is a folder where a file is needed; name a file",
    errno.ENOTEMPTY: "it is a folder that is not empty; name another place",
    errno.ENOENT: "there is no such file or folder; is the name right?",
    errno.ENAMETOOLONG: "the name is too long; name another place",
    errno.ELOOP: "it is a link that leads to itself; name the file or folder itself",
    errno.EFBIG: "it would be larger than this system or `ulimit -f` allows",
    errno.EMFILE: "too many files are open; raise `ulimit -n`, or use fewer --workers",
    errno.ENFILE: "this machine has too many files open; end other programs",
    errno.EAGAIN: "this machine can start no more processes; end others, raise `ulimit -u`, or "
    "use fewer --workers",
    errno.ENOMEM: "this machine's memory, or what `ulimit -v` allows of it, is used up; use "
    "fewer --workers",
    errno.EIO: "the disk or the connection to it failed",
}


def explain_error(error: BaseException) -> str | None:
    """An error of the machine or the caller in one line; None for a fault in the kit.

    An error of a database names no file: the code that opened the database has added the file to
    the error's notes.
    """
    if isinstance(error, KitError):
        return str(error)
    if isinstance(error, OSError) and error.errno is not None:
        remedy = _WHAT_TO_DO.get(error.errno, error.strerror or "the system refused it")
        return f"{error.filename}: {remedy}" if error.filename else remedy
    if isinstance(error, MemoryError):
        return _WHAT_TO_DO[errno.ENOMEM]
    if _is_database_error(error):
        database = "; ".join(getattr(error, "__notes__", ())) or "the gradebook"
        return f"{database}: {_explain_database_error(error)}"
    return missing_extra(error)


def _is_database_error(error: BaseException) -> bool:
    if isinstance(error, sqlite3.Error):
        return True
    sqlalchemy = sys.modules.get(
        "sqlalchemy.exc"
    )  # None where nothing has loaded sqlalchemy
    return sqlalchemy is not None and isinstance(error, sqlalchemy.SQLAlchemyError)


def _explain_database_error(error: BaseException) -> str:
    message = str(getattr(error, "orig", None) or error).split("\n")[0]
    if "locked" in message:
        return (
            "the database is in use by another program (the formgrader?); close it and run the "
            "command again"
        )
    if "readonly" in message or "unable to open" in message:
        return f"{_NOT_ALLOWED} (the database says: {message})"
    if "full" in message:
        return _NO_SPACE
    return f"the database cannot be used ({message}); nothing was changed in it"
