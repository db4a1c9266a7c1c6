"""Length-prefixed frames: a JSON header, and the numbers of tensors and arrays as safetensors
bytes.

    u32 header length | u64 body length | header (JSON object) | body (safetensors, may be empty)

Every length is checked before a byte of it is read, so a sender cannot make the reader allocate
more than its limit. The caller's `Patience` decides how long to wait for the other side. Nothing is
unpickled or evaluated.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from safetensors import SafetensorError, deserialize

_PREFIX = struct.Struct("<IQ")
MAX_HEADER = 2 << 20
MAX_TENSORS = 4096
MAX_NESTING = 100
"""Levels of lists and objects in a header: the deepest value takes 80, and `repr` must not
overflow.
"""
MAX_BODY_HEADER = 1 << 20
"""Bytes that safetensors' own header may take: more would be a million names, made before they can
be counted.
"""
_CHUNK = 1 << 20
_PIECES_BETWEEN_LOOKS = 16
"""A sender whose single bytes always arrive in time is never waited for; `Patience.look` sees such
a sender once in so many pieces.
"""
_to_json = json.JSONEncoder(separators=(",", ":")).encode


class WireError(Exception):
    """The other side sent no valid frame, or a larger one than is allowed."""


class WireClosed(Exception):
    """The other side is gone."""


class Patience(Protocol):
    """How long a reader or writer goes on with one frame. An exception from either method ends the
    transfer in the middle.
    """

    def wait(self, *, write: bool) -> None:
        """Wait until the socket, which is non-blocking, can be written to, or read from."""

    def look(self) -> None:
        """Check whether the other side, which sends or reads without a pause, may go on."""


class Block(NamedTuple):
    """The numbers of one tensor or array.

    Attributes:
        dtype: what safetensors calls it, such as "F64".
        data: the numbers, the last axis running fastest.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes | bytearray


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: a JSON object, and the tensors and arrays whose keys the object holds."""

    header: dict[str, Any]
    tensors: dict[str, Block]


def send_frame(
    sock: socket.socket,
    frame: Frame,
    patience: Patience | None = None,
) -> None:
    """Send one frame. The socket is a blocking one where there is no `patience`.

    Raises:
        WireError: the header is too large.
        WireClosed: nobody reads any more.
    """
    header = _to_json(frame.header).encode()
    if len(header) > MAX_HEADER:
        raise WireError(
            f"header of {len(header)} bytes; at most {MAX_HEADER} can cross"
        )
    body = pack(frame.tensors) if frame.tensors else b""
    message = _PREFIX.pack(len(header), len(body)) + header + body
    _send_all(sock, memoryview(message), patience)


def receive_frame(
    sock: socket.socket,
    max_body: int,
    patience: Patience | None = None,
) -> Frame:
    """Receive one frame whose tensors take at most `max_body` bytes. The socket is a blocking one
    where there is no `patience`.

    Raises:
        WireError: no valid frame, or one that is too large.
        WireClosed: the other side is gone.
    """
    prefix = _receive(sock, _PREFIX.size, patience)
    header_length, body_length = _PREFIX.unpack(prefix)
    if header_length > MAX_HEADER:
        raise WireError(
            f"a header of {header_length} bytes; at most {MAX_HEADER} may come"
        )
    if body_length > max_body:
        raise WireError(
            f"an answer of {body_length / 1e6:.0f} MB; at most {max_body / 1e6:.0f} MB may come"
        )
    try:
        header = json.loads(_receive(sock, header_length, patience))
    except (ValueError, RecursionError) as error:
        raise WireError("a header that is not JSON") from error
    if type(header) is not dict:
        raise WireError("a header that is not an object")
    if _is_too_deep(header):
        raise WireError("a header nested too deeply")
    if not body_length:
        return Frame(header, {})
    body = _receive(sock, body_length, patience)
    return Frame(header, unpack(bytes(body)))


def unpack(body: bytes) -> dict[str, Block]:
    """The blocks in safetensors bytes.

    Raises:
        WireError: no safetensors bytes, or too many tensors.
    """
    if int.from_bytes(body[:8], "little") > MAX_BODY_HEADER:
        raise WireError("a block of tensors with too long a list of names")
    try:
        described = deserialize(body)  # type: ignore[no-untyped-call]
    except (SafetensorError, ValueError, TypeError, OverflowError) as error:
        raise WireError("a block of tensors that cannot be read") from error
    if len(described) > MAX_TENSORS:
        raise WireError(f"{len(described)} tensors; at most {MAX_TENSORS} may come")
    blocks = {}
    for key, entry in described:
        blocks[key] = Block(entry["dtype"], tuple(entry["shape"]), entry["data"])
    return blocks


def _is_too_deep(header: dict[str, Any]) -> bool:
    """Whether a header has more than MAX_NESTING levels, counted without recursion."""
    level: list[Any] = [header]
    for _ in range(MAX_NESTING):
        children: list[Any] = []
        for parent in level:
            children += parent.values() if type(parent) is dict else parent
        level = [child for child in children if type(child) in (dict, list)]
        if not level:
            return False
    return True


def pack(
    tensors: Mapping[str, Block],
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """Safetensors bytes of some blocks. For small tensors this takes an eighth of the library's
    time.
    """
    entries: dict[str, Any] = {}
    if metadata:
        entries["__metadata__"] = dict(metadata)
    end = 0
    for key, block in tensors.items():
        begin = end
        end += len(block.data)
        entries[key] = {
            "dtype": block.dtype,
            "shape": block.shape,
            "data_offsets": [begin, end],
        }
    header = _to_json(entries).encode()
    header += b" " * (-len(header) % 8)
    length = len(header).to_bytes(8, "little")
    data = [block.data for block in tensors.values()]
    return b"".join([length, header, *data])


def _send_all(
    sock: socket.socket,
    data: memoryview,
    patience: Patience | None,
) -> None:
    sent = pieces = 0
    while sent < len(data):
        try:
            sent += sock.send(data[sent : sent + _CHUNK])
        except BlockingIOError:
            if patience is None:
                raise
            patience.wait(write=True)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise WireClosed from error
        pieces += 1
        if patience is not None and pieces % _PIECES_BETWEEN_LOOKS == 0:
            patience.look()


def _receive(
    sock: socket.socket,
    length: int,
    patience: Patience | None,
) -> bytearray:
    """Exactly `length` bytes. The buffer grows with the bytes that arrive, not with the announced
    length.
    """
    data = bytearray()
    pieces = 0
    while len(data) < length:
        try:
            piece = sock.recv(min(length - len(data), _CHUNK))
        except BlockingIOError:
            if patience is None:
                raise
            patience.wait(write=False)
            continue
        except ConnectionResetError as error:
            raise WireClosed from error
        if not piece:
            raise WireClosed
        data += piece
        pieces += 1
        if patience is not None and pieces % _PIECES_BETWEEN_LOOKS == 0:
            patience.look()
    return data
