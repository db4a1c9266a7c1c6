"""Fingerprints of text in words: every run of `RUN` words, whatever their case, punctuation and
markup.

Answers are short, so every run counts (Broder's shingles); `fingerprints.py` has those of code,
which is longer.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from autograder.outputs.code_fingerprints import Fingerprint

RUN = 4

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['’][^\W_]+)*")
"""Chinese and Japanese have no spaces between words: each of their characters counts as one."""


def shingles(text: str) -> list[Fingerprint]:
    """The runs of words in a text, in their order, each with the lines (from 0) on which it begins
    and ends.

    None goes over an empty line: the end of the prompt and the beginning of an answer are nobody's
    words together.
    """
    runs = []
    words: list[tuple[str, int]] = []
    for number, line in enumerate(text.split("\n")):
        if not line.strip():
            words = []
        for word in _WORD.findall(_plain(line)):
            words = [*words[1 - RUN :], (word.casefold(), number)]
            if len(words) == RUN:
                runs.append(Fingerprint(_hash([each for each, _ in words]), words[0][1], number))
    return runs


def _plain(line: str) -> str:
    """The line without letters that only look like others, and without invisible ones."""
    normal = unicodedata.normalize("NFKC", line)
    return "".join(character for character in normal if unicodedata.category(character) != "Cf")


def _hash(words: list[str]) -> bytes:
    # "words" keeps a run of words apart from a run of code's tokens
    return hashlib.blake2b(
        "\0".join(["words", *words]).encode("utf-8", "surrogatepass"), digest_size=8
    ).digest()
