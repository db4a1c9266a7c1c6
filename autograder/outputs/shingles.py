"""Fingerprints of written answers: every run of `RUN` words, without case and punctuation.

Answers are short, so every run counts (Broder's shingles). Code is longer: `code_fingerprints.py`
keeps a part of its runs.
"""

from __future__ import annotations

import re
import unicodedata

from autograder.outputs.code_fingerprints import Fingerprint, hash_run

RUN = 4

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['’][^\W_]+)*")
"""Chinese and Japanese have no spaces between words: each character counts as a word."""


def shingles(text: str) -> list[Fingerprint]:
    """The runs of words in a text, in order, each with its first and last line (from 0).

    A run ends at an empty line: nobody wrote the end of the prompt and the beginning of an answer
    together.
    """
    runs = []
    words: list[tuple[str, int]] = []
    for number, line in enumerate(text.split("\n")):
        if not line.strip():
            words = []
        for word in _WORD.findall(_plain(line)):
            words.append((word.casefold(), number))
            words = words[-RUN:]
            if len(words) < RUN:
                continue
            symbols = ["words"]  # so that no run of code's tokens is equal
            symbols += [text for text, _ in words]
            _, first_line = words[0]
            runs.append(Fingerprint(hash_run(symbols), first_line, number))
    return runs


def _plain(line: str) -> str:
    """The line without look-alike letters and without invisible characters."""
    normal = unicodedata.normalize("NFKC", line)
    return "".join(
        character for character in normal if unicodedata.category(character) != "Cf"
    )
