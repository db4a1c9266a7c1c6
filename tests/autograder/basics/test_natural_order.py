"""Names stand in the order in which people count them."""

from __future__ import annotations

from autograder.basics.natural_order import natural_order


def test_digits_count_as_numbers() -> None:
    names = ["a10_experiments", "a2_attention", "a1_word_vectors", "a12_kernels"]
    assert sorted(names, key=natural_order) == [
        "a1_word_vectors",
        "a2_attention",
        "a10_experiments",
        "a12_kernels",
    ]


def test_text_and_numbers_at_one_place_have_an_order() -> None:
    names = ["week", "week10", "7", "weekly", "week2", "week02", ""]
    assert sorted(names, key=natural_order) == [
        "",
        "7",
        "week",
        "week02",
        "week2",
        "week10",
        "weekly",
    ]


def test_other_digits_than_ascii_are_text() -> None:
    assert sorted(["a٣", "a2", "a²"], key=natural_order) == ["a2", "a²", "a٣"]
