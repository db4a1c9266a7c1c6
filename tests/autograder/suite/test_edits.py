"""Known answers as changes of the answer key."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.basics.errors import BadSuite
from autograder.suite.edits import EditError, apply_changes
from autograder.suite.known_answers import load_known_answers

KEY = '''def scores(q, k, mask=None):
    """q @ k.T / sqrt(d), and nothing where the mask is False.

    Source: q @ k.T
    """
    d = q.shape[-1]
    if mask is not None:
        if mask.dtype != torch.bool:
            raise ValueError("a boolean mask")

        q = q * mask
    return q @ k.T / math.sqrt(d)
'''


def test_a_part_of_a_line_is_exchanged_and_docstrings_are_not_searched() -> None:
    assert apply_changes(KEY, [("q @ k.T", "k @ q.T")]).endswith(
        "    return k @ q.T / math.sqrt(d)\n"
    )
    assert "q @ k.T / sqrt(d), and" in apply_changes(KEY, [("q @ k.T", "k @ q.T")])


def test_a_block_is_found_at_any_indentation_and_new_lines_get_it() -> None:
    block = """
    if mask.dtype != torch.bool:
        raise ValueError("a boolean mask")

    q = q * mask
    """
    new = """
    for row in q:
        row *= mask
    """
    after = apply_changes(KEY, [(block, new)])
    assert (
        "    if mask is not None:\n        for row in q:\n            row *= mask\n    return"
        in after
    )
    more = apply_changes(KEY, [("d = q.shape[-1]", "d = q.shape[-1]\nd = d + 1")])
    assert "    d = q.shape[-1]\n    d = d + 1\n    if mask" in more


def test_every_change_is_made_on_the_key_as_it_is() -> None:
    after = apply_changes(
        KEY, [("math.sqrt(d)", "d"), ("d = q.shape[-1]", "d = math.sqrt(d)")]
    )
    assert after.endswith("q @ k.T / d\n")
    assert "    d = math.sqrt(d)\n" in after


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([("q.T", "q")], "'q.T' stands nowhere in the answer key"),
        ([("mask", "no")], "'mask' stands 5 times in the answer key"),
        ([("q @ k.T", "k"), ("k.T / math", "k / math")], "two of its changes overlap"),
        ([("sqrt", "sqrt")], "it changes nothing"),
        ([("", "x")], "it replaces nothing"),
        (
            [("return q", "return (q")],
            "no Python: '\\(' was never closed at 'return \\(q @ k.T / math.sqrt\\(d\\)'",
        ),
    ],
)
def test_an_edit_that_does_not_fit_says_why(
    changes: list[tuple[str, str]], said: str
) -> None:
    with pytest.raises(EditError, match=said):
        apply_changes(KEY, changes)


def test_an_edit_in_a_file_becomes_a_cell_and_a_misfit_has_its_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mistakes.py"
    text = """from autograder.suite import mistake


@mistake("scores", hint="Divide by the root.", replace=("math.sqrt(d)", "d"))
def no_root(): ...


@mistake(
    "scores",
    hint="Which way round?",
    replace=[("q @ k.T", "k @ q.T"), ("q.shape", "k.shape")],
)
def keys_ask():
    ...
"""
    path.write_text(text)
    first, second = load_known_answers(path, {"scores": KEY})
    assert (first.question, first.name, first.hint) == (
        "scores",
        "no_root",
        "Divide by the root.",
    )
    assert first.cell == KEY.replace("math.sqrt(d)", "d")
    assert "d = k.shape[-1]" in second.cell
    path.write_text(text.replace("q.shape", "v.shape"))
    with pytest.raises(
        BadSuite,
        match=r"mistakes\.py, line 8: keys_ask does not fit the answer key of scores: 'v.shape'",
    ):
        load_known_answers(path, {"scores": KEY})
