"""Contracts: what they draw, and that they draw the same for the same seed."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from autograder.basics.errors import BadSuite
from autograder.suite.contracts import (
    Contract,
    calls,
    choice,
    computed,
    deal_scripts,
    flag,
    load_contracts,
    mask,
    maybe,
    size,
    tensor,
    tokens,
    whole,
)
from autograder.suite.script_text import script_lines, script_title
from autograder.suite.scripts import Made, Script, ScriptStep


def scripts_of(contract: Contract, count: int = 150, seed: int = 0) -> list[Script]:
    return [script for _, script in deal_scripts([contract], count, seed)]


def test_sizes_of_one_name_are_equal() -> None:
    attend = Contract(
        "attend", "attend", calls(s=tensor("B", "T"), h=tensor("B", "T", "H"))
    )
    for script in scripts_of(attend):
        for step in script.steps:
            scores, states = step.arguments
            assert scores.shape == states.shape[:2]


def test_sizes_differ_coincide_and_go_beyond_the_small_ones() -> None:
    attend = Contract(
        "attend", "attend", calls(s=tensor("B", "T"), h=tensor("B", "T", "H"))
    )
    shapes = [
        tuple(script.steps[0].arguments[1].shape) for script in scripts_of(attend)
    ]
    assert any(len(set(shape)) == 3 for shape in shapes)
    assert any(len(set(shape)) == 1 and shape[0] > 1 for shape in shapes)
    assert any(max(shape) > 8 for shape in shapes)


def test_an_expression_of_sizes() -> None:
    split = Contract("split", "split", calls(x=tensor("B", "H*d"), num_heads=size("H")))
    for script in scripts_of(split, 40):
        x, num_heads = script.steps[0].arguments
        assert x.shape[1] % num_heads == 0


def test_leading_axes_are_shared() -> None:
    weights = Contract(
        "w", "w", calls(q=tensor("...", "N", "d"), k=tensor("...", "M", "d"))
    )
    ranks = set()
    for script in scripts_of(weights, 60):
        q, k = script.steps[0].arguments
        assert q.shape[:-2] == k.shape[:-2]
        ranks.add(q.ndim)
    assert ranks == {2, 3, 4, 5}


def test_every_pair_of_settings_is_drawn() -> None:
    contract = Contract(
        "f",
        "f",
        calls(a=choice("x", "y", "z"), b=flag(), c=maybe(whole(1, 3))),
        dtypes=("float64",),
    )
    seen = set()
    for script in scripts_of(contract):
        seen |= set(itertools.combinations(sorted(script.settings.items()), 2))
    for a, b, c in itertools.product("xyz", "01", ("left out", "there")):
        assert {
            (("a", a), ("b", b)),
            (("a", a), ("c is", c)),
            (("b", b), ("c is", c)),
        } <= seen


def test_settings_that_are_left_out_are_not_given_and_others_by_keyword() -> None:
    contract = Contract("f", "f", calls(x=whole(0, 3), top_k=maybe(whole(1, 3))))
    keywords = {tuple(script.steps[0].keywords) for script in scripts_of(contract, 30)}
    assert keywords == {(), ("top_k",)}


def test_a_second_call_differs_in_one_argument() -> None:
    contract = Contract("f", "f", calls(x=tensor("N"), y=tensor("N")))
    pairs = [script.steps for script in scripts_of(contract) if len(script.steps) == 2]
    assert pairs
    for first, second in pairs:
        same = [a is b for a, b in zip(first.arguments, second.arguments, strict=True)]
        assert sorted(same) == [False, True]


def test_tokens_and_masks() -> None:
    contract = Contract(
        "f",
        "f",
        calls(
            ids=tokens("B", "N", below="V"),
            vocab=size("V"),
            mask=mask("B", "N", "N", broadcasts=True),
        ),
    )
    for script in scripts_of(contract, 60):
        ids, vocab, allowed = script.steps[0].arguments
        assert ids.dtype == torch.int64
        assert int(ids.min()) >= 0
        assert int(ids.max()) < vocab
        torch.broadcast_shapes(allowed.shape, (*ids.shape, ids.shape[1]))
        assert allowed.dtype == torch.bool


def test_an_argument_that_follows_from_others() -> None:
    contract = Contract(
        "f",
        "f",
        calls(
            x=tensor("N", "d"), n=computed(lambda call: call.arguments["x"].shape[0])
        ),
    )
    for script in scripts_of(contract, 20):
        for step in script.steps:
            assert step.arguments[0].shape[0] == step.arguments[1]


def test_the_same_seed_draws_the_same_scripts_and_another_seed_others() -> None:
    contract = Contract("f", "f", calls(x=tensor("N", "d"), n=whole(1, 9)))
    first = ["\n".join(script_lines(script)) for script in scripts_of(contract, 40)]
    again = ["\n".join(script_lines(script)) for script in scripts_of(contract, 40)]
    other = [
        "\n".join(script_lines(script)) for script in scripts_of(contract, 40, seed=1)
    ]
    assert first == again
    assert first != other


def test_a_contract_that_allows_nothing_draws_nothing() -> None:
    contract = Contract("f", "f", calls(n=whole(0, 9)), allowed_if=lambda n: n > 9)
    assert scripts_of(contract) == []


def test_arguments_that_are_not_allowed_are_not_drawn() -> None:
    contract = Contract("f", "f", calls(n=whole(0, 9)), allowed_if=lambda n: n % 2 == 0)
    drawn = {
        step.arguments[0] for script in scripts_of(contract) for step in script.steps
    }
    assert drawn == {0, 2, 4, 6, 8}


def test_nothing_is_left_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hypothesis would keep a folder of what it found in sources."""
    monkeypatch.chdir(tmp_path)
    scripts_of(Contract("f", "f", calls(n=whole(1, 9))), 20)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_contracts(tmp_path: Path) -> None:
    (tmp_path / "contracts.py").write_text(
        "from autograder.suite.contracts import calls, contract, whole\n"
        'contract("double", calls(n=whole(0, 9)))\n'
        'contract("halve", calls(n=whole(0, 9)), function="half")\n'
    )
    contracts = load_contracts(tmp_path)
    assert [(c.question, c.function) for c in contracts] == [
        ("double", "double"),
        ("halve", "half"),
    ]
    assert load_contracts(tmp_path / "nowhere") == []


def test_a_file_that_does_not_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "contracts.py").write_text("contract()\n")
    with pytest.raises(BadSuite, match=r"contracts\.py: does not run: NameError"):
        load_contracts(tmp_path)


def test_a_script_as_python() -> None:
    cache = Made(0)
    script = Script(
        (
            ScriptStep("KVCache", (2, torch.float64)),
            ScriptStep("append", (torch.tensor([[0.5, 1.0]]),), on=cache),
            ScriptStep("length", on=cache, kind="read"),
            ScriptStep(
                "f", (), {"mask": torch.tensor([True]), "p": [1, "a"], "c": cache}
            ),
        )
    )
    assert script_lines(script) == [
        "made_0 = KVCache(2, torch.float64)",
        "made_0.append(torch.tensor([[0.5, 1.]]))",
        "made_0.length",
        "f(mask=torch.tensor([True]), p=[1, 'a'], c=made_0)",
    ]
    assert script_title(script) == (
        "KVCache(2, torch.float64); made_0.append(float32[1, 2]); made_0.length; "
        "f(mask=bool[1], p=[1, 'a'], c=made_0)"
    )


def test_text_of_tensors_gives_equal_tensors() -> None:
    for tensor_of_any in (
        torch.tensor([1 / 3, 1e-9, float("-inf"), 2.0]),
        torch.tensor([[1 / 3, 2.0]], dtype=torch.float64),
        torch.tensor([0.1], dtype=torch.float16),
        torch.zeros(0, 3),
        torch.tensor([[1, 2], [3, 4]]).T,
        torch.tensor(True),
    ):
        line = script_lines(Script((ScriptStep("f", (tensor_of_any,)),)))[0]
        value = eval(line.removeprefix("f"), {"torch": torch})
        assert value.dtype == tensor_of_any.dtype
        assert torch.equal(value, tensor_of_any)
        assert value.stride() == tensor_of_any.stride()
