import pytest

from autograder.basics.points import format_points, is_full, total
from autograder.basics.safe_text import clean, describe_test, one_line, shorten


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;javascript:x\x1b\\label\x1b]8;;\x1b\\", "label"),
        ("\x9b2Jtext", "text"),
        ("\x1bctext", "text"),
        ("\x1b", ""),
        ("a\x00b\x08c\x7fd", "abcd"),
        ("abc\u202edcba\u2066\u200f", "abcdcba"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("tab\tstays", "tab\tstays"),
        ("lone \ud800 surrogate", "lone � surrogate"),
        ("non\ufffechar\U000e0041acter", "noncharacter"),
        ("ünïcode 数 👩‍🔬", "ünïcode 数 👩‍🔬"),
    ],
)
def test_clean_leaves_only_text(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_one_line_has_single_spaces() -> None:
    assert one_line(" a\n\tb  c\x1b[1m ") == "a b c"


def test_shorten_counts_what_it_leaves_out() -> None:
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdef", 4) == "abcd … (2 characters more)"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "test_each_query_distributes_over_the_keys",
            "each query distributes over the keys",
        ),
        ("test_shapes[3-4]", "shapes (3-4)"),
        ("test_", "test_"),
    ],
)
def test_a_test_name_reads_as_its_claim(name: str, expected: str) -> None:
    assert describe_test(name) == expected


def test_totals_have_no_dust() -> None:
    assert total([0.1] * 10) == 1.0
    assert total([0.1, 0.2]) == 0.3
    assert str(total([])) == "0.0"


@pytest.mark.parametrize(
    ("points", "digits", "expected"),
    [
        (4.000000001, 6, "4"),
        (17.5, 2, "17.5"),
        (10 / 3, 2, "3.33"),
        (10 / 3, 6, "3.333333"),
        (-1e-9, 2, "0"),
        (100.0, 0, "100"),
        (0.0, 2, "0"),
        (-0.004, 2, "0"),
    ],
)
def test_points_as_text(points: float, digits: int, expected: str) -> None:
    assert format_points(points, digits) == expected


def test_full_marks_survive_rounding() -> None:
    assert is_full(sum([0.1] * 10), 1.0)
    assert not is_full(0.99, 1.0)
