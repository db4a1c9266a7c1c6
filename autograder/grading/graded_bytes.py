"""A graded submission as bytes, in which it crosses processes and machines: one line with the
record, of whose result only the headline, and then the content of the result's file.

The result's file is made where the submission was graded; the driver passes the bytes on.
"""

from __future__ import annotations

import dataclasses

from autograder.basics.stored_json import decode_line, encode_line
from autograder.records.model import Graded
from autograder.records.results import result_bytes


def pack_graded(graded: Graded) -> bytes:
    """The bytes of a graded submission."""
    if graded.result is None:
        return encode_line(graded) + b"\n"
    headline = dataclasses.replace(graded, result=graded.result.headline())
    return encode_line(headline) + b"\n" + result_bytes(graded.result)


def unpack_graded(data: bytes) -> tuple[Graded, bytes]:
    """The record of a submission, and the content of its result's file ("" without a result)."""
    line, _, content = data.partition(b"\n")
    return decode_line(line, Graded), content
