"""Which extra of the kit a command lacks: `pip install attention-kit` brings what grading needs,
and an extra brings the packages of one room.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
EXTRAS = {
    "notebook": frozenset(
        {
            "jupyter_client",
            "jupytext",
            "mistune",
            "nbclient",
            "nbconvert",
            "nbformat",
            "nbgrader",
        }
    ),
    "nbgrader": frozenset(
        {
            "mistune",
            "nbconvert",
            "nbformat",
            "nbgrader",
            "nh3",
            "sqlalchemy",
            "traitlets",
        }
    ),
    "cluster": frozenset({"cryptography", "dask", "distributed"}),
    "platforms": frozenset({"canvasapi", "httpx", "requests"}),
    "server": frozenset(
        {
            "cryptography",
            "httpx",
            "itsdangerous",
            "jwt",
            "multipart",
            "python_multipart",
            "sqlalchemy",
            "starlette",
            "tomlkit",
            "uvicorn",
        }
    ),
    "postgresql": frozenset({"psycopg"}),
}
"""Extra → modules that the kit imports and that only this extra, or one of several, brings."""
_OF_ROOM = {"authoring": "notebook"}
"""Rooms whose extra has another name than the room."""


def missing_extra(error: BaseException) -> str | None:
    """The line for a module that an extra brings and that is not installed here; None for every
    other error.

    Several extras bring httpx or SQLAlchemy: the outermost room on the way to the import says which
    is meant.
    """
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    module = error.name.partition(".")[0]
    candidates = [extra for extra, modules in EXTRAS.items() if module in modules]
    if not candidates:
        return None
    rooms = [_OF_ROOM.get(room, room) for room in _rooms(error)]
    extra = next((room for room in rooms if room in candidates), candidates[0])
    return f"{module} is not installed here: pip install 'attention-kit[{extra}]'"


def _rooms(error: BaseException) -> Iterator[str]:
    """The kit's rooms on the way to an error, from the command line inwards."""
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(_PACKAGE):
            yield path.relative_to(_PACKAGE).parts[0]
