"""How large a picture is once it is decoded, from its first bytes: a PNG of 100 kB can fill 10 GB
of a browser.

Nothing here decodes a picture; whoever opens a page does, the instructor in the formgrader too.
"""

from __future__ import annotations

import base64
import binascii
import struct

MAX_PIXELS = 50_000_000
"""Far above any screenshot or photograph: 200 MB in a browser."""

GRAY_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
"""A PNG in base64: what stands in a page in place of a picture that is too large. The answer stays
an answer.
"""

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of the segments that state a JPEG's size."""


def limit_picture(data: str) -> str:
    """The picture, in base64, as it may stand in a page: itself, or `GRAY_PIXEL` where it has too
    many pixels.

    Its media type decides nothing: browsers go by what a picture's first bytes say.
    """
    try:
        return GRAY_PIXEL if count_pixels(base64.b64decode(data)) > MAX_PIXELS else data
    except (binascii.Error, ValueError):
        return data  # no browser can read it either


def count_pixels(data: bytes) -> int:
    """Width times height of a PNG, JPEG, GIF, WebP, BMP or AVIF, as its header states them; 0 of
    anything else.
    """
    try:
        width, height = _size(data)
    except (struct.error, IndexError):
        return 0
    return abs(width) * abs(height)


def _size(data: bytes) -> tuple[int, int]:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return struct.unpack_from(">II", data, 16)
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return struct.unpack_from("<HH", data, 6)
    if data.startswith(b"BM"):
        return struct.unpack_from("<ii", data, 18)
    if data.startswith(b"\xff\xd8"):
        return _jpeg_size(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp_size(data)
    if data[4:8] == b"ftyp" and (at := data.find(b"ispe", 0, 10_000)) > 0:
        return struct.unpack_from(">II", data, at + 8)
    return 0, 0


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        if data[at + 1] == 0xFF:  # any number of these may stand before a marker
            at += 1
        elif data[at + 1] in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        else:
            at += 2 + max(struct.unpack_from(">H", data, at + 2)[0], 2)
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    form = data[12:16]
    if form == b"VP8X":
        # three bytes each
        width, width_above, height, height_above = struct.unpack_from("<HBHB", data, 24)
        return (width_above << 16 | width) + 1, (height_above << 16 | height) + 1
    if form == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF
