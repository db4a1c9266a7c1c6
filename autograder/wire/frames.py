"""Length-prefixed frames: a JSON header, and tensors as one block of safetensors bytes.

    u32 header length | u64 body length | header (JSON object) | body (safetensors, may be empty)

Every length is checked before a byte of it is read, so a sender cannot make the reader allocate more than its limit.
How long is waited for the other side, the caller's `Patience` decides. Nothing is unpickled or evaluated.
"""

from __future__ import annotations

import json
import socket
import struct
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load

_PREFIX = struct.Struct("<IQ")
MAX_HEADER = 2 << 20
MAX_TENSORS = 4096
MAX_NESTING = 100
"""Levels of lists and objects in a header: a value of the deepest kind takes 80, and `repr` must not overflow."""
MAX_BODY_HEADER = 1 << 20
"""Bytes that safetensors' own header may take: more would be a million names, made before they can be counted."""
_CHUNK = 1 << 20
_PIECES_BETWEEN_LOOKS = 16
"""A sender whose single bytes are always there in time is never waited for, and so it is looked at now and then."""
_as_json = json.JSONEncoder(separators=(",", ":")).encode
_CODES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
"""What safetensors calls the dtypes that may cross."""


class WireError(Exception):
    """The other side sent what is no frame, or more than it may."""


class WireClosed(Exception):
    """The other side is gone."""


class Patience(Protocol):
    """How long a reader or writer goes on with one frame. What either method raises ends it in the middle."""

    def wait(self, *, write: bool) -> None:
        """Wait until the socket, which is non-blocking, can be written to, or read from."""

    def look(self) -> None:
        """Look whether the other side may go on: it sends, or reads, without being waited for."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: a JSON object and the tensors that it refers to by key."""

    header: dict[str, Any]
    tensors: dict[str, torch.Tensor]


def send_frame(sock: socket.socket, frame: Frame, patience: Patience | None = None) -> None:
    """Send one frame. The socket is a blocking one where there is no `patience`.

    Raises:
        WireError: the header is too large.
        WireClosed: nobody reads any more.
    """
    header = _as_json(frame.header).encode()
    if len(header) > MAX_HEADER:
        raise WireError(f"header of {len(header)} bytes; at most {MAX_HEADER} can cross")
    body = _pack(frame.tensors) if frame.tensors else b""
    _send_all(sock, memoryview(_PREFIX.pack(len(header), len(body)) + header + body), patience)


def receive_frame(sock: socket.socket, max_body: int, patience: Patience | None = None) -> Frame:
    """Receive one frame whose tensors take at most `max_body` bytes. The socket is a blocking one where there is no
    `patience`.

    Raises:
        WireError, WireClosed: see there.
    """
    header_length, body_length = _PREFIX.unpack(_receive(sock, _PREFIX.size, patience))
    if header_length > MAX_HEADER:
        raise WireError(f"a header of {header_length} bytes; at most {MAX_HEADER} may come")
    if body_length > max_body:
        raise WireError(f"an answer of {body_length / 1e6:.0f} MB; at most {max_body / 1e6:.0f} MB may come")
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
    body = bytes(_receive(sock, body_length, patience))
    if int.from_bytes(body[:8], "little") > MAX_BODY_HEADER:
        raise WireError("a block of tensors with too long a list of names")
    try:
        tensors = load(body)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError, AttributeError) as error:
        raise WireError("a block of tensors that cannot be read") from error
    if len(tensors) > MAX_TENSORS:
        raise WireError(f"{len(tensors)} tensors; at most {MAX_TENSORS} may come")
    return Frame(header, tensors)


def _is_too_deep(header: dict[str, Any]) -> bool:
    """Level by level, not by recursion."""
    level: list[Any] = [header]
    for _ in range(MAX_NESTING):
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) in (dict, list)
        ]
        if not level:
            return False
    return True


def _pack(tensors: dict[str, torch.Tensor]) -> bytes:
    """The block that `safetensors.torch.save` makes, written here: for small tensors in an eighth of the time."""
    entries, parts, end = {}, [], 0
    for key, value in tensors.items():
        # numpy knows no bfloat16, and takes the bytes of any layout in order
        numbers = value.resolve_neg().view(torch.int16) if value.dtype == torch.bfloat16 else value
        data = numbers.numpy(force=True).tobytes()
        entries[key] = {
            "dtype": _CODES[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [end, end + len(data)],
        }
        parts.append(data)
        end += len(data)
    header = _as_json(entries).encode()
    header += b" " * (-len(header) % 8)
    return b"".join((len(header).to_bytes(8, "little"), header, *parts))


def _send_all(sock: socket.socket, data: memoryview, patience: Patience | None) -> None:
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


def _receive(sock: socket.socket, length: int, patience: Patience | None) -> bytearray:
    """Exactly `length` bytes. The buffer grows with what arrives, not with what was announced."""
    data, pieces = bytearray(), 0
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
