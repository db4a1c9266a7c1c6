"""Store records as JSON: the same record gives the same bytes, and decoding checks all types.

Somebody may have edited a file, an editor saved it with a byte-order mark, or a disk damaged it.
Any such fault is a `ValueError` that names the place in the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec

MAX_STORED = 256_000_000
"""Bytes of one file: the times of a million submissions."""

_Record = TypeVar("_Record")


def read_stored(path: Path, kind: type[_Record]) -> _Record:
    """Read the record in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has no such record; says where and why.
    """
    return decode_stored(stored_text(path), kind)


def stored_text(path: Path) -> str:
    """Read the text of a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is far too large, or not in UTF-8.
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
    """Decode a record; fields that the record does not have, as a later version may write, are
    ignored.

    Python's parser is used, since msgspec's refuses half a surrogate pair, which a student's
    message may contain.

    Raises:
        ValueError: the text is no such record; says where and why.
    """
    try:
        raw = json.loads(
            text,
            object_pairs_hook=_refuse_twins,
            parse_constant=_refuse_constant,
        )
        return msgspec.convert(raw, kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.ValidationError as error:
        fault, _, place = str(error).partition(" - at `")
        place = (
            place.removesuffix("`")
            .removeprefix("key in ")
            .removeprefix("$")
            .removeprefix(".")
        )
        message = f"{fault} in {place}" if place else fault
        raise ValueError(message.replace("`", "")) from None


def encode_stored(record: object) -> str:
    """Encode a record as the text of a file; the same text for the same record.

    Python's encoder writes the numbers and strings, and msgspec breaks the lines: Python's `indent`
    takes six times as long, and half a surrogate pair is an error to msgspec's encoder.
    """
    compact = json.dumps(msgspec.to_builtins(record), ensure_ascii=False)
    indented = msgspec.json.format(compact.encode("utf-8", "surrogatepass"), indent=1)
    return indented.decode("utf-8", "surrogatepass") + "\n"


def encode_line(record: object) -> bytes:
    """Encode a record as JSON on one line, in ASCII."""
    return json.dumps(msgspec.to_builtins(record)).encode()


def decode_line(line: bytes, kind: type[_Record]) -> _Record:
    """Decode a record that another process of the kit encoded by `encode_line`; infinity and NaN
    are numbers here.
    """
    return msgspec.convert(json.loads(line), kind)


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it says {twin[:100]!r} twice")
    return record


def _refuse_constant(constant: str) -> float:
    raise ValueError(f"{constant} is no number")
