import io
from collections.abc import Sequence
from dataclasses import replace

import pytest

from autograder.cli.summaries import describe_ungraded
from autograder.grading.request import GradeSummary
from autograder.outputs.terminal import question_sign, select_rows, terminal_table
from autograder.records.model import Graded, QuestionResult, Result


def printed(results: Sequence[Result], width: int = 100, color: bool = False) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
    ).print(
        terminal_table(
            *select_rows(results), sum(result.walls == "none" for result in results)
        )
    )
    return out.getvalue()


def test_a_row_a_student(plain: Result) -> None:
    lines = [" ".join(line.split()) for line in printed([plain]).splitlines()]
    assert lines[0] == "student score of 1 2 3 diagnosis"
    assert lines[2] == "ada 11 20 ~ + ~ softmax_over_queries"
    assert lines[-1] == "1:softmax 2:attention 3:heads"


@pytest.mark.parametrize(
    ("score", "carried", "expected"),
    [(4.0, 0.0, "✓"), (0.0, 0.0, "✗"), (1.0, 0.0, "~"), (4.0, 2.0, "+")],
)
def test_marks(score: float, carried: float, expected: str) -> None:
    assert (
        question_sign(QuestionResult("softmax", score, 4.0, carried, None, ()))
        == expected
    )


def test_names_are_neither_markup_nor_escapes(plain: Result, hostile: Result) -> None:
    text = printed([replace(plain, student="[bold]x[/]"), hostile])
    assert "[bold]x[/]" in text
    assert "=cmd|' /C calc'!A0<script>" in text
    assert "1 graded without isolation" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_what_was_not_graded_is_named_without_escapes(problem: Graded) -> None:
    assert describe_ungraded(GradeSummary((), (problem,), 0, 0.0)) == [
        "not graded: student-005<script>alert(1)</script>: not a notebook "
        "[link](javascript:alert(1))red"
    ]


def test_marks_stand_under_their_question(plain: Result, hostile: Result) -> None:
    lines = printed([hostile, replace(plain, student="ada")]).splitlines()
    assert lines[0].index("1 2 3") == lines[3].index("~ + ~")
    assert "1:softmax   2:attention   3:heads" in lines


def test_markup_in_a_name_changes_no_colour(plain: Result) -> None:
    assert (
        "\x1b[1m"
        not in printed([replace(plain, student="[bold]x[/]")], color=True)
        .split("x[/]")[0]
        .split("\n")[-1]
    )


def test_the_middle_of_a_long_class_is_counted(plain: Result) -> None:
    text = printed([replace(plain, student=f"student-{i:03}") for i in range(200)])
    assert "… 160 more …" in text
    assert text.count("student-") == 40
    assert "student-019" in text
    assert "student-020" not in text
    assert "student-179" not in text
    assert "student-180" in text
    rows = [line.split()[0] for line in text.splitlines()[2:43]]
    assert rows[19:22] == ["student-019", "…", "student-180"]
    assert "…" not in printed(
        [replace(plain, student=f"student-{i:03}") for i in range(40)]
    )


def test_of_41_rows_one_is_left_out() -> None:
    """And of 40, none."""
    rows = list(range(1, 42))
    assert select_rows(rows) == ([*range(1, 21), *range(22, 42)], 1)
    assert select_rows(rows[:40]) == (rows[:40], 0)
    assert select_rows([]) == ([], 0)


def test_a_long_name_is_cut_at_28_characters(plain: Result) -> None:
    names = ["x" * 28, "y" * 29]
    results = [replace(plain, student=name) for name in names]
    rows = printed(results, width=200).splitlines()[2:4]
    assert [row.split()[0] for row in rows] == ["x" * 28, "y" * 27 + "…"]


def test_everything_fits_100_columns(plain: Result) -> None:
    many = tuple(
        replace(plain.questions[0], name=f"scaled_dot_product_attention_{i}")
        for i in range(12)
    )
    text = printed([replace(plain, student="x" * 300, questions=many), plain])
    assert max(len(line) for line in text.splitlines()) <= 100
    assert " 9 10 11 12 " in text.splitlines()[0]
    assert " ~  ~  ~  ~  ~  ~  ~  ~  ~  ~  ~  ~ " in text
