"""A folder at an address that fsspec knows: listed, read and written whole. The only module that speaks to a store."""

from __future__ import annotations

import errno
import hashlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import fsspec

from autograder.addresses import shown_address, without_secrets
from autograder.errors import ResultsInUse, StorageUnavailable
from autograder.storage.copy import IN_USE, Listed, is_passing, why_no_file
from autograder.text import clean, one_line

_OBJECT_STORES = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci", "ocilake", "tos", "obs", "cos", "cosn"}
)
"""Where a put is whole by itself, folders need not be made, and one listing names everything below a prefix."""
_NO_ANSWER = frozenset({"HTTPClientError", "ClientConnectionError", "ConnectionError", "gaierror", "SSHException"})
_OUR_PART = re.compile(r"\.[0-9a-f]{16}\.part")
"""How files are called while they are put where a put is not whole."""
_TIMES = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")


class Remote:
    """The folder.

    Raises:
        StorageUnavailable: nothing here can speak to such an address; says what to install.
    """

    def __init__(self, address: str) -> None:
        self.address, self.shown = address, shown_address(address)
        if address.startswith("memory:"):
            raise StorageUnavailable(f"{self.shown}: it would be gone when this command ends; name a place that stays")
        with self.explaining("reached"):
            self._fs, root = fsspec.core.url_to_fs(address)
        self._root = root.rstrip("/")
        protocol = self._fs.protocol
        self._is_store = bool(
            _OBJECT_STORES & {protocol} if isinstance(protocol, str) else _OBJECT_STORES & {*protocol}
        )
        self.many_at_once = bool(self._fs.async_impl)
        self._parts: list[str] = []

    def listing(self, tell: Any) -> dict[str, Listed]:
        """Every file by its path below the folder, and in the same listing who writes there.

        Args:
            tell: gets a line for each object that can be no file here; nothing of these is read.
        """
        with self.explaining("listed"):
            self._fs.invalidate_cache()
            entries = self._one_listing() if self._is_store else list(self._walk(self._root))
        found: dict[str, Listed] = {}
        left_out: list[str] = []
        for entry in entries:
            key = str(entry["name"]).removeprefix(self._root + "/")
            if _OUR_PART.fullmatch(PurePosixPath(key).name):
                self._parts.append(str(entry["name"]))
            if key.endswith("/") or is_passing(PurePosixPath(key).name):  # a folder's marker; what is half written
                continue
            why = why_no_file(key)
            if not why and (entry.get("islink") or entry.get("type") != "file"):
                why = "it is a link or no file"
            if why:
                left_out.append(f"{clean(key, 120)!r}: {why}")
            else:
                found[key] = Listed(int(entry.get("size") or 0), _signature(entry))
        for key in [key for key in found if any(part.as_posix() in found for part in PurePosixPath(key).parents)]:
            for part in PurePosixPath(key).parents:
                if found.pop(part.as_posix(), None) is not None:
                    left_out.append(f"{clean(part.as_posix(), 120)!r}: others lie in it as in a folder")
        for line in left_out[:_MOST_TOLD]:
            tell(f"{self.shown}: left out, {line}")
        if len(left_out) > _MOST_TOLD:
            tell(f"{self.shown}: left out, {len(left_out) - _MOST_TOLD} more of such names")
        return found

    def get(self, key: str, most: int) -> bytes:
        """Up to `most` bytes of a file, and one more where it is larger."""
        with self.explaining("read", key):
            return bytes(self._fs.cat_file(self._at(key), start=0, end=most + 1))

    def put(self, key: str, content: bytes) -> str:
        """Write a file whole; returns its signature."""
        path = self._at(key)
        with self.explaining("written", key):
            if self._is_store:
                answer = self._fs.pipe_file(path, content)
                return _signature(answer if isinstance(answer, Mapping) and "ETag" in answer else self._fs.info(path))
            parent, _, name = path.rpartition("/")
            part = f"{parent}/.{hashlib.sha256(name.encode()).hexdigest()[:16]}.part"
            self._fs.makedirs(parent, exist_ok=True)
            self._fs.pipe_file(part, content)
            self._fs.mv(part, path)
            self._fs.invalidate_cache()
            return _signature(self._fs.info(path))

    def clear_parts(self) -> None:
        """Remove what commands that were killed have left half written, as the last listing has it. Nobody else may be
        writing there."""
        for part in self._parts if not self._is_store else ():  # a store has none of ours
            self.remove(part.removeprefix(self._root + "/"))
        self._parts = []

    def remove(self, key: str) -> None:
        """Remove a file; nothing happens where it is not there."""
        with self.explaining("removed", key):
            try:
                self._fs.rm_file(self._at(key))
            except FileNotFoundError:
                return

    def claim(self, who: str, mine: str) -> None:
        """Write into the folder who writes there now.

        Args:
            mine: what the claim of this copy begins with: one that a killed run of its left is taken over.

        Raises:
            ResultsInUse: somebody else does, or was killed and could not say that it has ended.
        """
        path, claim = self._at(IN_USE), f"{mine}\n{who}\n".encode()
        with self.explaining("written", IN_USE):
            if not self._is_store:
                self._fs.makedirs(self._root, exist_ok=True)
            try:
                if not self._is_store and self._fs.exists(path):
                    raise FileExistsError(path)
                self._fs.pipe_file(path, claim, **({"mode": "create"} if self._is_store else {}))
                return
            except (FileExistsError, OSError) as error:
                if not _says_it_is_there(error):
                    raise
            there = bytes(self._fs.cat_file(path, start=0, end=1000)).decode("utf-8", "replace")
        theirs, _, other = there.partition("\n")
        if theirs != mine:
            raise ResultsInUse(
                f"another run ({one_line(other)[:200] or 'of which nothing is known'}) writes into {self.shown}: wait "
                f"until it has ended. Where it was killed, and will not be started again, remove {self.shown}/{IN_USE}"
            )

    def release(self) -> None:
        """Nobody writes there any more."""
        self.remove(IN_USE)

    def explaining(self, what: str, key: str = "") -> _Explaining:
        """Inside, whatever goes wrong becomes one line: where, what, and what to do."""
        return _Explaining(self.address, f"{self.shown}/{clean(key, 120)}" if key else self.shown, what)

    def _at(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _one_listing(self) -> list[Mapping[str, Any]]:
        found = self._fs.find(self._root, detail=True)
        return [entry for name, entry in found.items() if name.startswith(self._root + "/")]

    def _walk(self, folder: str) -> Iterator[Mapping[str, Any]]:
        """By fsspec's own `walk`, a folder that cannot be listed would look empty."""
        try:
            entries = self._fs.ls(folder, detail=True)
        except FileNotFoundError:
            return  # nothing was put there so far
        for entry in entries:
            if entry["type"] == "directory" and not entry.get("islink"):
                if not is_passing(PurePosixPath(entry["name"]).name):
                    yield from self._walk(entry["name"])
            else:
                yield entry


_MOST_TOLD = 20


_UNDER_WAY: dict[int, tuple[float, str]] = {}
"""What each thread waits for, and since when."""


def unanswered(seconds: float) -> str:
    """What has been waited for so long, as one line; "" where nothing has. Libraries try again and again where a server
    is silent: s3fs for a quarter of an hour."""
    latest = time.monotonic() - seconds
    for since, what in list(_UNDER_WAY.values()):
        if since < latest:
            return (
                f"{what}: no answer from there for {seconds:.0f} seconds; is the server up? Run the command again then"
            )
    return ""


class _Explaining:
    def __init__(self, address: str, where: str, what: str) -> None:
        self._address, self._where, self._what = address, where, what

    def __enter__(self) -> None:
        _UNDER_WAY[threading.get_ident()] = (time.monotonic(), f"{self._where} cannot be {self._what}")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _UNDER_WAY.pop(threading.get_ident(), None)
        if error is None or not isinstance(error, Exception) or isinstance(error, StorageUnavailable | ResultsInUse):
            return
        raise StorageUnavailable(
            without_secrets(f"{self._where} cannot be {self._what}: {_meant(error)}", self._address)
        )


def _meant(error: Exception) -> str:
    """What an error of a store means, and what to do. Libraries name their errors in their own ways."""
    said = one_line(str(error))[:300]
    names = {kind.__name__ for kind in type(error).__mro__} | {type(error.__cause__).__name__}
    if isinstance(error, ImportError | ValueError) and ("nstall" in said or "rotocol not known" in said):
        return f"{said}. For s3:// that is `pip install 'attention-kit[s3]'`"
    if "xpired" in said or names & {"TokenRetrievalError", "UnauthorizedSSOTokenError"}:
        return f"the credentials have expired ({said}); get new ones, and run the command again"
    if "Credential" in said or names & {"NoCredentialsError", "PartialCredentialsError", "AuthenticationException"}:
        return f"there are no credentials that it takes ({said}); set them as its library reads them"
    if isinstance(error, PermissionError) or "orbidden" in said:
        return f"these credentials may not do that ({said or 'access denied'}); ask for the right, or use others"
    if isinstance(error, FileNotFoundError):
        return f"there is no such bucket or file ({said}); is the name right, and is it made?"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "there is no space left there; free some and run the command again"
    if names & _NO_ANSWER or "Timeout" in "".join(names):
        return f"no answer from there ({said or type(error).__name__}); is the address right, is the server up?"
    return f"{said or type(error).__name__}; run the command again, it goes on where it was"


def _says_it_is_there(error: Exception) -> bool:
    said = str(error)
    return isinstance(error, FileExistsError) or "PreconditionFailed" in said or "pre-condition" in said.lower()


def _signature(entry: Mapping[str, Any]) -> str:
    """What changes with a file's content: the store's own hash of it, or else its size and time."""
    tag = entry.get("ETag") or entry.get("etag") or entry.get("md5Hash")
    if tag:
        return str(tag).strip('"')
    when = next((entry[name] for name in _TIMES if entry.get(name) is not None), "")
    return f"{entry.get('size')} {when}"
