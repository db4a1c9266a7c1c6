"""Mutants of an answer key: which are made, what they are called, and what becomes of them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from autograder.basics.errors import BadSuite
from autograder.proof.code_mutants import Variant, code_mutants, double_mutants
from autograder.proof.equivalent import Equivalent, load_equivalent
from autograder.proof.mutants import (
    Fate,
    JudgedMutant,
    judge_mutants,
    killed_share,
    mutant_trials,
    sample,
    stale_entries,
    too_many_alive,
)
from autograder.proof.trials import TrialOutcome, TrialTest
from autograder.proof.wrappers import (
    TRIVIAL,
    ObservedFunction,
    observe,
    property_mutants,
    reachable_names,
    trivial_answers,
)
from autograder.suite.calls import Call, CallLog


def plainly(source: str) -> list[str]:
    """Its lines without needless parentheses."""
    return ast.unparse(ast.parse(source)).split("\n")


def changes(body: str) -> set[str]:
    """What becomes of the first line of a function's body, by all mutants."""
    return {
        plainly(mutant.cell)[1].strip()
        for mutant in code_mutants("f", f"def f(a, b, c):\n    {body}\n")
    }


@pytest.mark.parametrize(
    ("line", "mutants"),
    [
        ("return a + b", {"return a - b", "return a", "return b"}),
        (
            "return (a - b) * c",
            {
                "return (a + b) * c",
                "return a * c",
                "return (b - a) * c",
                "return (a - b) / c",
                "return a - b",
                "return c",
            },
        ),
        ("return a @ b", {"return a", "return b @ a", "return (a @ b).detach()"}),
        ("return a[1:]", {"return a[2:]", "return a[0:]", "return a[:]"}),
        ("return a[:b]", {"return a[:b + 1]", "return a[:b - 1]", "return a[:]"}),
        ("return -1", {"return 0", "return -2", "return 1"}),
        ("return a[-1]", {"return a[0]", "return a[-2]"}),
        ("return True", {"return False"}),
        ("return not a", {"return a"}),
        ("return a if b else c", {"return a", "return c"}),
        ("return a, b", {"return (b, a)"}),
        (
            "return a.transpose(1, 2)",
            {
                "return a",
                "return a.transpose(2, 2)",
                "return a.transpose(0, 2)",
                "return a.transpose(1, 3)",
                "return a.transpose(1, 1)",
                "return a.transpose(1, 4)",
                "return a.transpose(1, 0)",
            },
        ),
        (
            "return a.amax(dim=b)",
            {"return a", "return a.amax()", "return a.amin(dim=b)"},
        ),
        ("return math.sqrt(a)", {"return a"}),
        ("return torch.exp(a)", {"return a", "return torch.exp(a).detach()"}),
        (
            "return a.tril()",
            {"return a", "return a.triu()", "return a.tril(-1)", "return a.tril(1)"},
        ),
        (
            "return -math.inf",
            {"return math.inf", "return -10000.0", "return -1000000000.0"},
        ),
        ("return a < b", {"return a <= b", "return a >= b"}),
        (
            "return a in (b, c)",
            {"return a not in (b, c)", "return a in (c,)", "return a in (b,)"},
        ),
        ("return a and b", {"return a or b", "return a", "return b"}),
        (
            "return [x for x in a if x]",
            {"return [x for x in a if True]", "return [x for x in a if not x]"},
        ),
        (
            "return any(x for x in a)",
            {
                "return all((x for x in a))",
                "return (x for x in a)",
                "return any((x for x in list(a)[:1]))",
                "return any((x for x in list(a)[-1:]))",
            },
        ),
        (
            "return a.masked_fill(b, 1.5)",
            {
                "return a",
                "return a.masked_fill(b, 1.5).detach()",
                "return a.masked_fill(1.5, b)",
                "return a.masked_fill(b.all(), 1.5)",
                "return a.masked_fill(b, 2.5)",
                "return a.masked_fill(b, 0.5)",
                "return a.masked_fill(b, 3.0)",
                "return a.masked_fill(b, 0.0)",
            },
        ),
        ("a += b", {"a -= b", "pass"}),
        ("return f'{a + 1}'", set()),
    ],
)
def test_every_kind_of_syntax_is_mutated(line: str, mutants: set[str]) -> None:
    assert changes(line) == mutants


def test_checks_are_dropped_turned_round_and_weakened() -> None:
    source = (
        "def f(x, w, d):\n    if w.shape != (d, 4) or d < 1:\n        raise ValueError(f'{d} is "
        "0')\n    return x\n"
    )
    lines = {"".join(plainly(m.cell)[1:3]).strip() for m in code_mutants("f", source)}
    error = "        raise ValueError(f'{d} is 0')"
    for test in (
        "not (w.shape != (d, 4) or d < 1)",
        "False",
        "w.shape != (d, 4)",
        "d < 1",
        "w.shape != (d, 4) and d < 1",
        "w.shape == (d, 4) or d < 1",
        "w.shape < (d, 4) or d < 1",
        "w.shape > (d, 4) or d < 1",
        "(*w.shape[:0], *w.shape[1:]) != (4,) or d < 1",
        "(*w.shape[:1], *w.shape[2:]) != (d,) or d < 1",
        "w.shape != (d, 5) or d < 1",
        "w.shape != (d, 4) or d <= 1",
        "w.shape != (d, 4) or d < 0",
    ):
        assert f"if {test}:{error}" in lines, test
    assert any("RuntimeError" in line for line in lines)


def test_a_statement_is_left_out_only_where_its_names_stay_bound() -> None:
    source = "def f(x):\n    y = x * 2\n    x = y\n    for z in y:\n        x = z\n    return x\n"
    left_out = [
        m.name for m in code_mutants("f", source) if m.name.endswith("left out")
    ]
    assert left_out == ["x = y: left out", "for z in y: left out", "x = z: left out"]


def test_mutants_differ_in_meaning_and_name_and_docstrings_stay() -> None:
    source = (
        'def f(x, y):\n    """1 + 1."""\n    # the sum\n    return x + 1 + (x + 1) * '
        'len("ä")  # 1\n'
    )
    mutants = code_mutants("f", source)
    dumps = {ast.dump(ast.parse(m.cell)) for m in mutants}
    assert len(dumps) == len({m.name for m in mutants}) == len(mutants)
    assert all('"""1 + 1."""\n    # the sum' in m.cell for m in mutants)
    assert 'return x + 1 + (x + 1) * len("ä"): 1 → 2 (2)' in {m.name for m in mutants}


def test_two_changes_at_once_lie_apart_and_are_the_same_each_time() -> None:
    source = "def f(a, b):\n    c = a + 1\n    return c * b\n"
    doubles = double_mutants("f", source, 7)
    assert doubles == double_mutants("f", source, 7)
    assert len(doubles) == 7
    singles = {mutant.name: mutant.cell for mutant in code_mutants("f", source)}
    for double in doubles:
        first, second = double.parts
        assert double.name == f"{first.name}; {second.name}"
        assert singles[first.name] == first.cell
        assert singles[second.name] == second.cell
        changed = [plainly(cell) for cell in (double.cell, first.cell, second.cell)]
        assert len({tuple(lines) for lines in changed}) == 3


def test_two_equivalent_changes_are_equivalent_together() -> None:
    one, two = Variant("f", "x: 1 → 2", ""), Variant("f", "y: 1 → 2", "")
    both = Variant("f", "x: 1 → 2; y: 1 → 2", "", (one, two))
    entries = [Equivalent("f", "x: …", "x is not read")]

    def fate(listed: list[Equivalent]) -> tuple[Fate, str]:
        outcome = TrialOutcome(mutant_trials([both])[0])
        (judged,) = judge_mutants([outcome], [both], listed)
        return judged.fate, judged.reason

    assert fate(entries) == ("survived", "")
    entries.append(Equivalent("f", "y: …", "nor is y"))
    assert fate(entries) == ("equivalent", "x is not read")


# What a wrapper makes of the answer key

SOURCE = """
class Store:
    def __init__(self, n):
        self.n = n

    @property
    def size(self):
        return self.n

    def put(self, x, times):
        return x * times


def scaled(x, mask=None):
    return x * 2
"""
ROW = torch.tensor([[1.0, 2.0]])


def seen() -> list[ObservedFunction]:
    calls = [
        Call("scaled", (ROW,), {"mask": ROW > 0}, result=2 * ROW),
        Call("Store.put", (torch.tensor(3),), {"times": 2}, result=torch.tensor(6)),
        Call("Store.size", (), {}, result=1, is_attribute=True),
        Call("other", (ROW,), {}, result=ROW),
    ]
    return observe(calls, signatures(SOURCE), reachable_names([SOURCE], []))


def signatures(source: str) -> Callable[[str], inspect.Signature | None]:
    """The signatures of a cell's functions and methods, as the log of calls gives them."""
    scope: dict[str, Any] = {}
    exec(source, scope)
    return CallLog(scope).signature


def run(cell: str, function: str, *arguments: Any, **keywords: Any) -> Any:
    scope: dict[str, Any] = {}
    exec(cell, scope)
    return scope[function](*arguments, **keywords)


def test_a_function_is_observed_and_wrapped_where_it_makes_sense() -> None:
    assert [observed.function for observed in seen()] == [
        "scaled",
        "Store.put",
        "other",
        "Store",
    ]
    mutants = {
        mutant.name: mutant.cell
        for mutant in property_mutants("scaled", SOURCE, seen())
    }
    assert list(mutants) == [
        "scaled: changes x",
        "scaled: changes mask",
        "scaled: takes contiguous tensors only",
        "scaled: squeezes its result",
        "scaled: detaches its result",
        "scaled: returns double precision",
        "scaled: returns half precision",
        "scaled: returns lists for tensors",
        "scaled: keeps answers by x alone",
        "scaled: keeps answers by mask alone",
        "scaled: keeps answers by the shapes of tensors",
        "scaled: remembers mask",
        "Store.put: changes x",
        "Store.put: returns lists for tensors",
        "Store.put: returns int32 for int64",
        "Store: objects share their attributes",
    ]
    x, mask = ROW.clone(), ROW > 0
    assert torch.equal(run(mutants["scaled: changes x"], "scaled", x), 2 * ROW)
    assert torch.equal(x, ROW + 1)
    run(mutants["scaled: changes mask"], "scaled", x, mask=mask)
    assert not mask.any()
    assert run(mutants["scaled: squeezes its result"], "scaled", ROW).shape == (2,)
    assert (
        run(mutants["scaled: returns half precision"], "scaled", ROW).dtype
        == torch.float16
    )
    assert (
        run(
            mutants["scaled: detaches its result"],
            "scaled",
            ROW.clone().requires_grad_(),
        ).requires_grad
        is False
    )
    with pytest.raises(RuntimeError, match="stride"):
        run(
            mutants["scaled: takes contiguous tensors only"],
            "scaled",
            torch.ones(2, 3).T,
        )


def test_trivial_answers_have_the_form_of_an_answer_and_no_idea() -> None:
    function = [one for one in seen() if one.function == "scaled"]
    answers = {
        answer.name: answer.cell
        for answer in trivial_answers("scaled", SOURCE, function)
    }
    assert list(answers) == list(TRIVIAL)
    assert torch.equal(run(answers["zeros"], "scaled", ROW), torch.zeros(1, 2))
    assert torch.equal(run(answers["ones"], "scaled", ROW), torch.ones(1, 2))
    assert run(answers["NaN"], "scaled", ROW).isnan().all()
    assert run(answers["its first argument"], "scaled", ROW) is ROW
    with pytest.raises(ValueError, match=r"\b1 2 3 4 5\b"):
        run(answers["always ValueError"], "scaled", ROW)


PLAIN = """
import numpy as np

def counted(words, weights):
    return {"n": len(words), "total": np.int64(7), "mean": weights / 2, "words": {*words}, "first": words[0]}

def backwards(words):
    words = words + []
    words.reverse()
    return words
"""


def plain_seen() -> list[ObservedFunction]:
    words, weights = ["b", "a"], np.array([[2.0, 4.0]])
    calls = [
        Call("counted", (words, weights), {}, result={"n": 2, "mean": weights / 2}),
        Call("backwards", (words,), {}, result=["a", "b"]),
    ]
    return observe(calls, signatures(PLAIN), reachable_names([PLAIN], []))


def test_answers_of_arrays_and_plain_values_are_changed_too() -> None:
    mutants = {
        mutant.name: mutant.cell
        for mutant in property_mutants("counted", PLAIN, plain_seen())
    }
    assert list(mutants) == [
        "counted: changes words",
        "counted: changes weights",
        "counted: squeezes its arrays",
        "counted: returns single precision",
        "counted: returns floats for whole numbers",
        "counted: keeps answers by words alone",
        "counted: keeps answers by weights alone",
        "backwards: changes words",
    ]
    words, weights = ["b", "a"], np.array([[2.0, 4.0]])
    right = run(mutants["counted: changes weights"], "counted", words, weights)
    assert right["mean"].tolist() == [[1.0, 2.0]]
    assert weights.tolist() == [[3.0, 5.0]]
    assert run(mutants["backwards: changes words"], "backwards", words) == ["a", "b"]
    assert words == ["b", "a", None]
    assert run(mutants["counted: squeezes its arrays"], "counted", ["b"], weights)[
        "mean"
    ].shape == (2,)
    assert (
        run(mutants["counted: returns single precision"], "counted", ["b"], weights)[
            "mean"
        ].dtype
        == np.float32
    )


def test_a_trivial_answer_is_no_right_answer_of_any_kind() -> None:
    """Of arrays, numpy's numbers, sets and texts nothing is left: an answer in numpy alone does not
    score as zeros.
    """
    answers = {
        answer.name: answer.cell
        for answer in trivial_answers("counted", PLAIN, plain_seen())
    }
    zeros = run(answers["zeros"], "counted", ["b", "a"], np.array([[2.0, 4.0]]))
    assert zeros["mean"].tolist() == [[0.0, 0.0]]
    assert {**zeros, "mean": None} == {
        "n": 0,
        "total": 0,
        "mean": None,
        "words": set(),
        "first": "",
    }
    ones = run(answers["ones"], "counted", ["b", "a"], np.array([[2.0, 4.0]]))
    assert (ones["n"], ones["total"], ones["mean"].tolist()) == (1, 1, [[1.0, 1.0]])
    assert np.isnan(
        run(answers["NaN"], "counted", ["b"], np.array([2.0]))["mean"]
    ).all()
    assert run(answers["zeros"], "backwards", ["b", "a"]) == ["", ""]


def test_a_trivial_answer_changes_no_object() -> None:
    names = [answer.name for answer in trivial_answers("Store", SOURCE, seen())]
    assert names == ["its first argument", "always ValueError"]


# What became of them

M = [Variant("f", name, "") for name in ("one", "two", "three", "four")]


def tried(failing: dict[str, bool]) -> list[TrialOutcome]:
    outcome = {True: "failed", False: "passed"}
    return [
        TrialOutcome(
            trial, (TrialTest("test_a", outcome[failing[trial.name]], "", (), 0.1),)
        )
        for trial in mutant_trials(M)
        if trial.name in failing
    ]


def test_the_fate_of_each_mutant_and_the_share_of_killed_ones() -> None:
    listed = [
        Equivalent("f", "th…", "nothing is below zero"),
        Equivalent("g", "two", "another question's"),
    ]
    judged = judge_mutants(
        tried({"one": True, "two": False, "three": False, "four": True}), M, listed
    )
    assert [one.fate for one in judged] == [
        "killed",
        "survived",
        "equivalent",
        "killed",
    ]
    assert judged[2].reason == "nothing is below zero"
    assert killed_share(judged) == pytest.approx(2 / 3)
    assert killed_share([]) == 1.0


def test_one_of_a_sample_may_survive_and_one_in_a_hundred_of_all() -> None:
    def judged(alive: int, of: int) -> list[JudgedMutant]:
        fates: list[tuple[Fate, int]] = [
            ("survived", alive),
            ("killed", of - alive),
            ("equivalent", 60),
        ]
        return [JudgedMutant(M[0], fate) for fate, times in fates for _ in range(times)]

    assert [too_many_alive(judged(alive, 40), sampled=True) for alive in (0, 1, 2)] == [
        False,
        False,
        True,
    ]
    assert [too_many_alive(judged(alive, 40), sampled=False) for alive in (0, 1)] == [
        False,
        True,
    ]
    assert [too_many_alive(judged(alive, 300), sampled=False) for alive in (3, 4)] == [
        False,
        True,
    ]


def test_a_stale_entry_is_named() -> None:
    listed = [Equivalent("f", pattern, "why") for pattern in ("o…e", "five", "two")]
    judged = judge_mutants(tried({"one": True, "two": False}), M, listed)
    assert stale_entries(listed, M, judged) == [
        "equivalent.toml, [f]: the mutant 'one' is killed; take the entry 'o…e' out",
        "equivalent.toml, [f]: there is no mutant 'five'; take the entry out",
    ]


def test_a_sample_is_the_same_every_time_and_in_order() -> None:
    some = sample(M, 2, "a1")
    assert some == sample(M, 2, "a1")
    assert len(some) == 2
    assert [M.index(one) for one in some] == sorted(M.index(one) for one in some)
    assert sample(M, None, "a1") == sample(M, 9, "a1") == M


def test_equivalent_mutants_are_listed_with_a_reason(tmp_path: Path) -> None:
    assert load_equivalent(tmp_path) == []
    file = tmp_path / "equivalent.toml"
    file.write_text(
        '[f]\n"they are equal" = ["return x: x → y", "y = …"]\n', encoding="utf-8"
    )
    entry, shortened = load_equivalent(tmp_path)
    assert entry == Equivalent("f", "return x: x → y", "they are equal")
    assert shortened.matches(Variant("f", "y = x.sum(): x.sum() → x", ""))
    assert not shortened.matches(Variant("f", "z = y = x: x → 1", ""))
    for wrong in (
        '[f]\n"" = ["a"]\n',
        '[f]\n"why" = "a"\n',
        '[f]\n"why" = []\n',
        '[f]\n"why" = [""]\n',
        'f = "x"\n',
        "[f\n",
    ):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(BadSuite, match=r"equivalent\.toml"):
            load_equivalent(tmp_path)
