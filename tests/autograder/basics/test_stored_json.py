"""Records that come back from files are of the right types all the way down, or refused in words;
and they add up.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autograder.basics.stored_json import (
    decode_line,
    decode_stored,
    encode_line,
    encode_stored,
    read_stored,
)
from autograder.records.model import QuestionResult, Result, TestOutcome
from autograder.records.sums import check_sums, describe_misvaluation


@dataclass(frozen=True)
class Part:
    points: float
    name: str = ""


@dataclass(frozen=True)
class Record:
    parts: tuple[Part, ...]


def test_a_record_comes_back_and_what_a_later_version_added_is_ignored() -> None:
    text = '{"parts": [{"points": 2, "name": "\\ud800", "later": {}}], "more": [1]}'
    assert decode_stored(text, Record) == Record((Part(2.0, "\ud800"),))


def test_a_line_between_processes_holds_half_a_surrogate_pair_and_infinity() -> None:
    record = Record((Part(math.inf, "\udcff\ud800"),))
    line = encode_line(record)
    assert line == b'{"parts": [{"points": Infinity, "name": "\\udcff\\ud800"}]}'
    assert decode_line(line, Record) == record


def test_a_file_is_indented_by_one_and_holds_half_a_surrogate_pair() -> None:
    record = {"name": "ü\ud800", "parts": [], "points": [1e-05, 2.0]}
    lines = [
        "{",
        ' "name": "ü\ud800",',
        ' "parts": [],',
        ' "points": [',
        "  1e-05,",
        "  2.0",
        " ]",
        "}",
        "",
    ]
    assert encode_stored(record).split("\n") == lines


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            '{"parts": [{"points": "2"}]}',
            r"Expected float, got str in parts\[0\]\.points",
        ),
        (
            '{"parts": [{"points": true}]}',
            r"Expected float, got bool in parts\[0\]\.points",
        ),
        (
            '{"parts": [{"points": 1, "name": null}]}',
            r"Expected str, got null in parts\[0\]\.name",
        ),
        ('{"parts": {}}', "Expected array, got object in parts"),
        ('{"parts": [{}]}', r"missing required field points in parts\[0\]"),
        ("[]", "Expected object, got array"),
        ('{"parts": [{"points": NaN}]}', "NaN is no number"),
        ('{"parts": [], "parts": []}', "it says 'parts' twice"),
        ('{"parts": ' + "[" * 100_000, "nested too deeply"),
        ('{"parts": [{"points": ' + "9" * 5_000 + "}]}", "integer string conversion"),
        ("", "Expecting value"),
        ("\ufeff{}", "BOM"),
    ],
)
def test_what_is_no_such_record_is_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_stored(text, Record)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_bytes(b'{"parts": []}\xff')
    with pytest.raises(ValueError, match=r"not in UTF-8 \(byte 13\)"):
        read_stored(tmp_path / "record.json", Record)


def result(**changes: Any) -> Result:
    """5.5 of 7: a test of 3 passed, one of 4 failed, 2 carried and 0.5 kept."""
    tests = (
        TestOutcome("test_a", "passed", 3.0, 3.0),
        TestOutcome("test_b", "failed", 0.0, 4.0),
    )
    question = QuestionResult("f", 5.5, 7.0, 2.0, None, tests, (), 0.5)
    of_question = {
        name.removeprefix("question_"): v
        for name, v in changes.items()
        if name.startswith("question_")
    }
    of_test = {
        name.removeprefix("test_"): value
        for name, value in changes.items()
        if name.startswith("test_")
    }
    if of_test:
        question = dataclasses.replace(
            question, tests=(dataclasses.replace(tests[0], **of_test), tests[1])
        )
    question = dataclasses.replace(question, **of_question)
    of_result = {
        name: value
        for name, value in changes.items()
        if "_" not in name or name == "max_score"
    }
    return dataclasses.replace(
        Result("a", "ada", "s", "t", "strict", 5.5, 7.0, (question,), ()), **of_result
    )


def test_a_result_that_adds_up_is_believed() -> None:
    check_sums(result())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"score": 1e9}, "score is 1e\\+09, and its parts make 5.5"),
        ({"max_score": 8.0}, "max_score is 8, and its parts make 7"),
        ({"score": 1e9, "question_score": 1e9}, "f has 1e\\+09 points of 7"),
        (
            {"score": 6.0, "question_score": 6.0},
            "f: score is 6, and its parts make 5.5",
        ),
        ({"score": -1.0, "question_score": -1.0}, "f has -1 points of 7"),
        ({"score": float("nan")}, "score is nan"),
        ({"test_points": 4.0}, "f: test_a has 4 points of 3"),
        ({"test_max_points": float("inf")}, "f: test_a has 3 points of inf"),
        ({"question_carried": 8.0}, "f: carried has 8 points of 7"),
        ({"question_kept": -1.0}, "f: kept has -1 points of 7"),
    ],
)
def test_points_that_do_not_add_up_are_told(
    changes: dict[str, float], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        check_sums(result(**changes))


def test_a_result_is_worth_what_its_suite_is() -> None:
    assert describe_misvaluation(result(), {"f": 7.0}) == ""
    assert describe_misvaluation(result(), {"f": 9.0}) == "f is worth 9, not 7"
    assert "its questions are not those" in describe_misvaluation(
        result(), {"f": 7.0, "g": 1.0}
    )
