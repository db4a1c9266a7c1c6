"""Addresses of folders that do not lie on this disk, as fsspec writes them, and their names here."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from urllib.parse import quote, unquote

_LONGEST_NAME = 200
_ON_THIS_DISK = re.compile(r"(?:file|local)://")


def shown_address(address: str) -> str:
    """The address without the user and the password that may stand in it."""
    return re.sub(r"://[^/]*@", "://", address).rstrip("/")


def without_secrets(text: str, address: str) -> str:
    """A text in which the password of the address, if it has one, stands no more."""
    found = re.match(r"[^:]+://[^/@]*:([^/]*)@", address)
    secrets = {found[1], unquote(found[1])} - {""} if found else set()
    for secret in secrets:
        text = text.replace(secret, "…")
    return text


def name_here(address: str) -> str:
    """A name for the folder of the copy: the address as one path component."""
    name = quote(shown_address(address), safe="")
    if len(name) <= _LONGEST_NAME:
        return name
    return name[: _LONGEST_NAME - 17] + "~" + hashlib.sha256(name.encode()).hexdigest()[:16]


def one_in_the_other(one: str, other: str) -> bool:
    """Whether two addresses are the same, or one lies in the other."""
    first, second = (f"{shown_address(address)}/" for address in (one, other))
    return bool(one and other) and (first.startswith(second) or second.startswith(first))


def folder_on_this_disk(address: str) -> Path | None:
    """The folder of an address like file:///mnt/course; None for others."""
    found = _ON_THIS_DISK.match(address)
    return Path(address[found.end() :]) if found else None
