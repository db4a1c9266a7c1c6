"""Several messages in one frame: their headers in a list, and their tensors under one roof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autograder.wire.frames import Block, Frame, WireError

ANSWER_OF_STEP = "answer of step"
"""The kind of a handle that names what an earlier request of the same bundle was answered; no class
has such a name.
"""


def bundle(frames: Sequence[Frame]) -> tuple[list[dict[str, Any]], dict[str, Block]]:
    """The headers of messages, and their tensors, each with its message's number before its key."""
    headers = [frame.header for frame in frames]
    tensors = {
        f"{number}:{key}": block
        for number, frame in enumerate(frames)
        for key, block in frame.tensors.items()
    }
    return headers, tensors


def unbundle(headers: Any, tensors: Mapping[str, Block]) -> list[Frame]:
    """The messages of a bundle.

    Raises:
        WireError: this is no bundle.
    """
    if type(headers) is not list or any(type(header) is not dict for header in headers):
        raise WireError("no list of messages where one should be")
    blocks: dict[str, dict[str, Block]] = {
        str(number): {} for number in range(len(headers))
    }
    for key, block in tensors.items():
        number, _, own_key = key.partition(":")
        if number not in blocks:
            raise WireError("a tensor of no message")
        blocks[number][own_key] = block
    return [Frame(header, blocks[str(number)]) for number, header in enumerate(headers)]
