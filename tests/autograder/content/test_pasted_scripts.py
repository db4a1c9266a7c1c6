"""The scripts that suites write for students give, pasted below the answer key, what the page says."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch
from answer_keys import ROOT, answer_key

from autograder.course.fingerprint import EXAMPLES_FILE
from autograder.diagnosis.example_texts import answer_text
from autograder.diagnosis.script_play import KeyPlayer
from autograder.suite.contracts import deal_scripts, load_contracts
from autograder.suite.script_text import script_lines

SUITES = sorted((ROOT / "tests" / "hidden").glob(f"*/{EXAMPLES_FILE}"))


def pasted(text: str, names: dict[str, Any]) -> Any:
    """What the last line of a text gives below a notebook."""
    body = ast.parse(text).body
    last = body.pop()
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(body, []), "<pasted>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<pasted>", "eval"), names)


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.parent.name)
def test_a_pasted_script_gives_what_the_played_one_does(path: Any) -> None:
    """One script of each form. Where a step is an object's, the page has no text of it."""
    contracts = load_contracts(path.parent, EXAMPLES_FILE)
    names = vars(answer_key(path.parent.name))
    dealt = deal_scripts(contracts, len(contracts), seed=0)
    player = KeyPlayer(names)
    compared = 0
    for contract, script in dealt:
        assert contract.question in names
        answer = player.play(script)[-1]
        if answer.fault is not None:  # drawn beside what the docstring allows
            continue
        text = "import types\n" + "\n".join(script_lines(script))
        value = pasted(text, {**names, "torch": torch})
        if answer_text(answer.value, is_rounded=True) != repr("an object"):
            compared += 1
            assert answer_text(value, is_rounded=True) == answer_text(
                answer.value, is_rounded=True
            )
    assert compared > len(contracts) // 2
