"""Clean a student's text before it is escaped for any format.

Control characters drive a terminal, bidirectional overrides disguise text, and a lone surrogate or
a non-character makes a file that no XML parser accepts. No name or error message needs any of them.
"""

from __future__ import annotations

import re

_TERMINAL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # window titles, links and other strings
    r"|\x1b[ -/]*[0-~]"  # the rest of the escapes
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_NEW_LINE = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f"
    # bidirectional marks, embeddings, overrides, isolates
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    r"\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(text: str, longest: int | None = None) -> str:
    """The text without terminal sequences, control and bidirectional characters; lines end in a
    newline.

    Args:
        longest: the most characters of the result, the last one an ellipsis where text was cut
            off.
    """
    text = _NEW_LINE.sub("\n", _TERMINAL.sub("", text))
    text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _UNPRINTABLE.sub("", text))
    if longest is None or len(text) <= longest:
        return text
    return text[: longest - 1] + "…"


def one_line(text: str) -> str:
    """Cleaned text on one line with single spaces."""
    return " ".join(clean(text).split())


def shorten(text: str, limit: int) -> str:
    """The text with at most about `limit` characters, and a count of the omitted characters."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} … ({len(text) - limit} characters more)"


def describe_test(test_name: str) -> str:
    """A test's name as a claim: test_rows_sum_to_one[3] -> "rows sum to one (3)"."""
    name, _, parameters = one_line(test_name).partition("[")
    words = name.removeprefix("test_").replace("_", " ").strip() or name
    return f"{words} ({parameters.removesuffix(']')})" if parameters else words
