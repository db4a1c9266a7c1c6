"""Count the pixels of a picture from its first bytes: a PNG of 100 kB can fill 10 GB of a browser.

This module decodes no picture. Browsers decode them, the instructor's in the formgrader too.
"""

from __future__ import annotations

import base64
import binascii
import struct

MAX_PIXELS = 50_000_000
"""Far above any screenshot or photograph: 200 MB in a browser."""

GRAY_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5Erk"
    "Jggg=="
)
"""A PNG in base64, which replaces a picture that is too large in a page. The answer stays an
answer.
"""

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of the segments that state a JPEG's size."""


def limit_picture(data: str) -> str:
    """The picture, in base64, or `GRAY_PIXEL` in place of a picture with too many pixels.

    The media type decides nothing: browsers go by a picture's first bytes.
    """
    try:
        return GRAY_PIXEL if count_pixels(base64.b64decode(data)) > MAX_PIXELS else data
    except (binascii.Error, ValueError):
        return data  # no browser can read it either


def count_pixels(data: bytes) -> int:
    """Width times height of a PNG, JPEG, GIF, WebP, BMP or AVIF, as its header states them; 0 for
    any other data.
    """
    try:
        width, height = _read_size(data)
    except (struct.error, IndexError):
        return 0
    return abs(width) * abs(height)


def _read_size(data: bytes) -> tuple[int, int]:
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
    if data[4:8] == b"ftyp" and (box := data.find(b"ispe", 0, 10_000)) > 0:
        return struct.unpack_from(">II", data, box + 8)
    return 0, 0


def _jpeg_size(data: bytes) -> tuple[int, int]:
    start = 2
    while data[start] == 0xFF:
        marker = data[start + 1]
        if marker == 0xFF:  # any number of these may stand before a marker
            start += 1
        elif marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", data, start + 5)
            return width, height
        else:
            length = struct.unpack_from(">H", data, start + 2)[0]
            start += 2 + max(length, 2)
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    form = data[12:16]
    if form == b"VP8X":
        # three bytes each
        low_width, high_width, low_height, high_height = struct.unpack_from(
            "<HBHB", data, 24
        )
        width = (high_width << 16 | low_width) + 1
        height = (high_height << 16 | low_height) + 1
        return width, height
    if form == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        width = (bits & 0x3FFF) + 1
        height = (bits >> 14 & 0x3FFF) + 1
        return width, height
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF
