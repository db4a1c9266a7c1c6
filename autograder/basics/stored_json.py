"""Records as JSON: written in the same bytes each time, read back typed, refused in words where
they are broken.

Somebody may have edited such a file, an editor saved it with a byte-order mark, or a disk damaged
it. What decodes is of the right types all the way down; everything else is a `ValueError` that says
where in the file it is wrong.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

MAX_STORED = 256_000_000
"""Bytes of one file: times of a million submissions."""

_Record = TypeVar("_Record")
_WRONG = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<where>.*)`)?", re.DOTALL)


def read_stored(path: Path, kind: type[_Record]) -> _Record:
    """The record in a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such record; says where and why.
    """
    return decode_stored(stored_text(path), kind)


def stored_text(path: Path) -> str:
    """The text of a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is far too large, or no UTF-8.
    """
    with path.open("rb") as file:
        data = file.read(MAX_STORED + 1)
    if len(data) > MAX_STORED:
        raise ValueError(f"it is larger than {MAX_STORED // 1_000_000} MB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not in UTF-8 (byte {error.start})") from None


def decode_stored(text: str, kind: type[_Record]) -> _Record:
    """The record in a text; what it holds beyond the record's fields, as a later version may write,
    is ignored.

    Python's parser and not msgspec's own, which refuses half a surrogate pair: a student's message
    may hold one.

    Raises:
        ValueError: it is no such record; says where and why.
    """
    try:
        raw = json.loads(text, object_pairs_hook=_without_twins, parse_constant=_refuse)
        return msgspec.convert(raw, kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.ValidationError as error:
        wrong = _WRONG.fullmatch(str(error))
        what, where = (wrong["what"], wrong["where"]) if wrong else (str(error), "")
        raise ValueError(f"{what}{f' in {where}' if where else ''}".replace("`", "")) from None


def encode_stored(record: object) -> str:
    """The text of a file that holds the record; the same text for the same record.

    Python's encoder writes the numbers and strings, and msgspec breaks the lines: Python's own
    `indent` takes six times as long, and half a surrogate pair is an error to msgspec's encoder.
    """
    compact = json.dumps(msgspec.to_builtins(record), ensure_ascii=False)
    return (
        msgspec.json.format(compact.encode("utf-8", "surrogatepass"), indent=1).decode(
            "utf-8", "surrogatepass"
        )
        + "\n"
    )


def encode_line(record: object) -> bytes:
    """The record as JSON on one line, in ASCII."""
    return json.dumps(msgspec.to_builtins(record)).encode()


def decode_line(line: bytes, kind: type[_Record]) -> _Record:
    """The record that another process of the kit sent by `encode_line`; infinity and NaN are
    numbers here.
    """
    return msgspec.convert(json.loads(line), kind)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it says {twin[:100]!r} twice")
    return record


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")
