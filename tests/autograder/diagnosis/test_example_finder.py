"""Examples for students: the call, both answers and their differences, worked out by hand."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.basics.errors import StudentError, StudentTimeout
from autograder.course import Limits
from autograder.diagnosis.example_finder import ExampleFinder, FailedQuestion
from autograder.diagnosis.suite_inputs import call_fingerprint
from autograder.records.model import SmallExample
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call, Cost

Function = Callable[..., Any]
QUERIES = torch.arange(15.0).view(3, 5).sin()
KEYS = torch.arange(20.0).view(4, 5).cos()
SMALLEST = "f(torch.tensor([[0.], [0.]]), torch.tensor([[0.]]))"


def attention_weights(q: Tensor, k: Tensor) -> Tensor:
    if q.shape[-1] != k.shape[-1]:
        raise ValueError("widths differ")
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)


def over_the_queries(q: Tensor, k: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-2)


def call_of(function: Function, *arguments: Any) -> Call:
    call = Call("f", arguments, {})
    try:
        call.result = function(*arguments)
    except StudentError as fault:
        call.fault = fault
    except ValueError as error:
        call.fault = StudentError("ValueError", str(error))
    return call


def run_of(name: str, outcome: Any, *calls: Call) -> TestRun:
    return TestRun(name, Verdict(outcome), calls)


def find(
    key: Function,
    student: Function,
    *arguments: Any,
    suite: Path = Path("/nowhere"),
    suite_inputs: Collection[str] = (),
    worker: Any = None,
    **changes: Any,
) -> SmallExample | None:
    """The example for a question `f` with one failed test, which makes one call."""
    call = dataclasses.replace(call_of(student, *arguments), **changes)
    key_call = call_of(key, *arguments)
    failed = FailedQuestion(
        "f",
        {"test": run_of("test", "failed", call)},
        {"test": run_of("test", "passed", key_call)},
        {call_fingerprint(call), *suite_inputs},
    )
    finder = ExampleFinder(suite, {"f": key}, ["f"], Limits())
    worker = worker or SimpleNamespace(f=student)
    return finder.find(failed, lambda: worker, lambda: worker)


def test_softmax_over_the_queries() -> None:
    """Two queries of 0 and one key: each query has weight 1; over the queries, each has 1/2."""
    example = find(attention_weights, over_the_queries, QUERIES, KEYS)
    assert example is not None
    assert example.call == SMALLEST
    assert example.yours == "torch.tensor([[0.5], [0.5]])"
    assert example.expected == "torch.tensor([[1.], [1.]])"
    assert example.table is not None
    assert example.table.yours == (("0.5",), ("0.5",))
    assert example.table.expected == (("1",), ("1",))
    assert example.table.differs == ((True,), (True,))
    assert example == find(attention_weights, over_the_queries, QUERIES, KEYS)


def test_doubles_become_floats() -> None:
    example = find(attention_weights, over_the_queries, QUERIES.double(), KEYS.double())
    assert example is not None
    assert example.call == SMALLEST


def test_no_input_of_a_test() -> None:
    """Where the smallest call is a test's, the numbers or sizes are others."""
    smallest = Call("f", (torch.zeros(2, 1).double(), torch.zeros(1, 1).double()), {})
    inputs = {call_fingerprint(smallest)}
    example = find(
        attention_weights, over_the_queries, QUERIES, KEYS, suite_inputs=inputs
    )
    assert example is not None
    assert example.call != SMALLEST
    only = find(attention_weights, over_the_queries, *smallest.arguments)
    assert only is not None
    assert only.call == SMALLEST.replace("0.", "1.")


def test_a_double_and_its_float_are_one_input() -> None:
    """Of a test's doubles, the call with the floats next to them is the test's call too."""
    doubles = torch.arange(400.0).double().sin()
    fingerprints = {
        call_fingerprint(Call("f", (x,), {})) for x in (doubles, doubles.float())
    }
    assert len(fingerprints) == 1
    assert call_fingerprint(Call("f", (doubles + 1e-3,), {})) not in fingerprints


def test_a_wrong_number_stays_a_number() -> None:
    """The sample variance of one number is NaN, another mistake. 0 and -1 lie 1/2
    from their mean: the variance is 1/4, and divided by one less 1/2.
    """

    def variance(x: Tensor) -> Tensor:
        return (x - x.mean()).square().mean()

    def sample_variance(x: Tensor) -> Tensor:
        return (x - x.mean()).square().sum() / (x.numel() - 1)

    example = find(variance, sample_variance, torch.tensor([0.5, -1.25, 3.0, 2.0]))
    assert example is not None
    assert example.call == "f(torch.tensor([0., -1.]))"
    assert example.yours == "torch.tensor(0.5)"
    assert example.expected == "torch.tensor(0.25)"


def test_the_answer_key_accepts_the_call() -> None:
    """The key refuses fewer than three rows; an answer that takes two does not make it two."""

    def total(x: Tensor) -> Tensor:
        if x.shape[0] < 3:
            raise ValueError("too few")
        return x.sum(0) + 1

    example = find(total, lambda x: x.sum(0), torch.arange(10.0).view(5, 2))
    assert example is not None
    assert example.call == "f(torch.tensor([[0.], [0.], [0.]]))"
    assert (example.yours, example.expected) == (
        "torch.tensor([0.])",
        "torch.tensor([1.])",
    )


def test_an_exception_in_place_of_an_answer() -> None:
    def square_only(x: Tensor) -> Tensor:
        if x.shape[0] != x.shape[1]:
            raise StudentError("RuntimeError", "square, please, at 0x7f001122aabb")
        return x

    example = find(lambda x: x, square_only, torch.arange(12.0).view(3, 4))
    assert example is not None
    assert example.yours == "raises RuntimeError: square, please, at 0x…"
    assert example.expected in (
        "torch.tensor([[0.], [0.]])",
        "torch.tensor([[0., 0.]])",
    )
    assert example.table is None


def test_a_refusal_in_words() -> None:
    """The difference is no value: one line with the call's shapes."""
    example = find(attention_weights, lambda q, k: q, QUERIES, KEYS[:, :3])
    assert example is not None
    assert example.call == "f(q[3, 5] float32, k[4, 3] float32)"
    assert example.note == "must raise ValueError; yours returns an answer."
    assert example.yours == ""


def test_a_cost_in_words() -> None:
    example = find_costly(operations=40)
    assert example is not None
    assert (
        example.note
        == "has the right value; it takes more torch operations than it needs."
    )
    assert find_costly(operations=10) is None


def find_costly(operations: int) -> SmallExample | None:
    key_call = dataclasses.replace(
        call_of(attention_weights, QUERIES, KEYS), cost=Cost(10, 600, 60, 60, 60)
    )
    cost = Cost(operations, 600, 60, 60, 60)
    failed = FailedQuestion(
        "f",
        {"test": run_of("test", "failed", dataclasses.replace(key_call, cost=cost))},
        {"test": run_of("test", "passed", key_call)},
        (),
    )
    finder = ExampleFinder(Path("/nowhere"), {"f": attention_weights}, ["f"], Limits())
    return finder.find(failed, lambda: None, lambda: None)


def test_an_answer_that_changes_by_itself_has_no_example() -> None:
    numbers = itertools.count(1.0)
    assert find(lambda x: x, lambda x: x + next(numbers), torch.ones(2, 2)) is None


def test_a_hang_ends_the_search() -> None:
    """The submission is asked nothing more after it hung."""
    asked = []

    def slow(x: Tensor) -> Tensor:
        asked.append(x)
        if x.numel() < 6:
            raise StudentTimeout("no answer")
        return x + 1

    assert find(lambda x: x, slow, torch.ones(3, 4)) is None
    assert sum(x.numel() < 6 for x in asked) == 1


CONTRACT = """
from autograder.suite.contracts import calls, contract, tensor

contract("f", calls(x=tensor("N", "D")), allowed_if=lambda x: x.shape[1] > 1)
"""


def test_the_contract_says_which_calls_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "contracts.py").write_text(CONTRACT)
    example = find(lambda x: x, lambda x: x + 1, torch.ones(3, 4), suite=tmp_path)
    assert example is not None
    assert example.call == "f(torch.tensor([[0., 0.]]))"


def test_a_call_that_cannot_be_made_again(tmp_path: Path) -> None:
    """The contract's own calls take the place of a call with an object among its arguments."""
    (tmp_path / "contracts.py").write_text(CONTRACT)

    def of_anything(x: Any) -> Any:
        return x if isinstance(x, Tensor) else torch.zeros(2)

    def wrong(x: Any) -> Any:
        return of_anything(x) + 1

    example = find(of_anything, wrong, object(), suite=tmp_path)
    assert example is not None
    assert example.call == "f(torch.tensor([[0., 0.]]))"
    assert (example.yours, example.expected) == (
        "torch.tensor([[1., 1.]])",
        "torch.tensor([[0., 0.]])",
    )


@pytest.mark.parametrize("changes", [{"of_suite": True}, {"is_attribute": True}])
def test_a_fault_that_only_the_suites_own_code_sees(
    changes: Any, tmp_path: Path
) -> None:
    """The contract's calls show what a driver of the suite, or an attribute, got wrong."""
    (tmp_path / "contracts.py").write_text(CONTRACT)
    ones = torch.ones(3, 4)
    example = find(lambda x: x, lambda x: x + 1, ones, suite=tmp_path, **changes)
    assert example is not None
    assert example.call == "f(torch.tensor([[0., 0.]]))"
    assert (
        find(lambda x: x, lambda x: x.clone(), ones, suite=tmp_path, **changes) is None
    )


def test_a_call_that_is_too_long_for_a_page_makes_way_for_a_shorter_one(
    tmp_path: Path,
) -> None:
    """Forty words cannot become fewer; the contract has a call with none."""
    (tmp_path / "contracts.py").write_text(
        "from autograder.suite.contracts import calls, choice, contract\n"
        'contract("f", calls(words=choice([])), allowed_if=lambda words: True)\n'
    )
    words = ["x" * 40] * 40

    def wrong(words: list[str]) -> float:
        return 1.0 if not words or len("".join(words)) == 1600 else 0.0

    example = find(lambda words: 0.0, wrong, words, suite=tmp_path)
    assert example is not None
    assert (example.call, example.yours) == ("f([])", "1.0")


@pytest.mark.parametrize(("parts", "is_shown"), [(2, True), (4, False)])
def test_a_long_call_is_the_example_where_there_is_no_shorter_one(
    parts: int, is_shown: bool
) -> None:
    """Zeros are four characters each: 600 are too long to read and short enough to paste."""

    def wrong(*xs: torch.Tensor) -> float:
        return float(all(len(x) == 300 for x in xs) and len(xs) == parts)

    example = find(lambda *_: 0.0, wrong, *[torch.ones(300)] * parts)
    assert (example is not None) == is_shown
    if example is not None:
        zeros = f"torch.tensor([{', '.join(['0.'] * 300)}])"
        assert example.call == f"f({zeros}, {zeros})"
        assert example.yours == "1.0"


def test_a_tensor_that_is_not_written_out_is_no_example() -> None:
    """Of more than 400 numbers only the shape would stand there, and nobody can run that."""
    example = find(lambda x: 0.0, lambda x: float(len(x) == 401), torch.ones(401))
    assert example is None


def test_a_long_call_that_cannot_be_made_smaller_is_not_played() -> None:
    """1500 operations of the answer key leave room for two candidates: the call would stay as it is,
    and a hundred words of 40 letters are too many for a page.
    """
    played = []

    def right(words: list[str]) -> float:
        total = torch.zeros(())
        for _ in range(1500):
            total = total + 0.0
        return float(total)

    def wrong(words: list[str]) -> float:
        played.append(words)
        return 1.0

    assert find(right, wrong, ["x" * 40] * 100) is None
    assert len(played) == 1  # in the test itself
    find(right, wrong, ["x" * 40])
    assert len(played) > 2


FORMS = """
from autograder.suite.contracts import contract

def twice(draw, play, name):
    play.helpers = "def twice(x):\\n    return [f(x), f(x)]\\n"
    play.helper("twice", draw.choose("x", (4.0, 5.0)))

contract("f", twice)
"""


def test_scripts_that_the_suite_writes_for_students(tmp_path: Path) -> None:
    """A helper uses the notebook's names, and stands above the call. Two ones are wrong where twos
    are right.
    """
    (tmp_path / "examples.py").write_text(FORMS)
    worker: Any = SimpleNamespace(f=lambda x: 1.0)
    worker.define = lambda text, name, **_: lambda x: [1.0, 1.0]
    example = find(
        lambda x: 2.0,
        worker.f,
        object(),
        suite=tmp_path,
        worker=worker,
    )
    assert example is not None
    assert example.call == "def twice(x):\n    return [f(x), f(x)]\n\ntwice(0.0)"
    assert (example.yours, example.expected) == ("[1.0, 1.0]", "[2.0, 2.0]")


@pytest.mark.parametrize(("size", "first"), [(900, "f("), (1100, "def twice(x)")])
def test_a_call_with_many_numbers_comes_after_those_of_the_suite(
    size: int, first: str, tmp_path: Path
) -> None:
    """1,100 doubles are 8,800 bytes: more than the 8,192 that may become small enough."""
    (tmp_path / "examples.py").write_text(FORMS)
    worker: Any = SimpleNamespace(f=lambda x: 1.0)
    worker.define = lambda text, name, **_: lambda x: [1.0, 1.0]
    numbers = torch.ones(size, dtype=torch.float64)
    example = find(lambda x: 2.0, worker.f, numbers, suite=tmp_path, worker=worker)
    assert example is not None
    assert example.call.startswith(first)


def test_a_difference_that_the_contract_allows_is_never_clear(tmp_path: Path) -> None:
    """A twentieth is seen at once, and this contract allows a tenth."""
    contract = (
        "from autograder.suite.contracts import calls, contract, tensor\n"
        'contract("f", calls(x=tensor("n")), sizes={"n": (1, 2)}, tolerance=TOLERANCE)\n'
    )
    ones = torch.ones(2)
    for tolerance, is_shown in (({"float32": 0.1}, False), ({"float32": 0.03}, True)):
        text = contract.replace("TOLERANCE", str(tolerance))
        (tmp_path / "contracts.py").write_text(text)
        example = find(lambda x: x, lambda x: 1.05 * x, ones, suite=tmp_path)
        assert (example is not None) == is_shown


def test_what_earlier_calls_have_left_behind_is_no_example() -> None:
    """The answer counts its calls. In a worker of its own the first call is right."""

    def counting() -> Function:
        calls: list[Any] = []

        def f(x: Tensor) -> Tensor:
            calls.append(x)
            return x + (len(calls) > 1)

        return f

    call = call_of(counting(), torch.ones(2))
    call.result = torch.zeros(2)
    key_call = call_of(lambda x: x, torch.ones(2))
    failed = FailedQuestion(
        "f",
        {"test": run_of("test", "failed", call, call)},
        {"test": run_of("test", "passed", key_call, key_call)},
        (),
    )
    finder = ExampleFinder(Path("/nowhere"), {"f": lambda x: x}, ["f"], Limits())
    used: Any = SimpleNamespace(f=counting())

    def fresh() -> Any:
        return SimpleNamespace(f=counting())

    assert finder.find(failed, lambda: used, fresh) is None


def test_a_call_that_the_contract_does_not_allow_is_no_sign_of_memory(
    tmp_path: Path,
) -> None:
    """The first failed test's call has one column, where two are asked for; the second has three."""
    (tmp_path / "contracts.py").write_text(CONTRACT)
    xs = torch.ones(3, 1), torch.ones(3, 3)
    calls = [call_of(lambda x: x + 1, x) for x in xs]
    failed = FailedQuestion(
        "f",
        {"test": run_of("test", "failed", *calls)},
        {"test": run_of("test", "passed", *[call_of(lambda x: x, x) for x in xs])},
        (),
    )
    finder = ExampleFinder(tmp_path, {"f": lambda x: x}, ["f"], Limits())
    worker: Any = SimpleNamespace(f=lambda x: x + 1)
    example = finder.find(failed, lambda: worker, lambda: None)
    assert example is not None
    assert example.call == "f(torch.tensor([[0., 0.]]))"


def test_an_answer_key_that_computes_for_long_is_not_asked(tmp_path: Path) -> None:
    """Of a contract's calls only those of few operations are tried: 5000 additions are too many."""
    (tmp_path / "contracts.py").write_text(CONTRACT)

    def slow(x: Any) -> Any:
        for _ in range(5000):
            x = x + 0
        return x

    asked = []

    def wrong(x: Any) -> Any:
        asked.append(x)
        return x + 1

    call = Call("f", (object(),), {}, result=1)
    key_call = Call("f", (object(),), {}, result=2)
    failed = FailedQuestion(
        "f",
        {"test": run_of("test", "failed", call)},
        {"test": run_of("test", "passed", key_call)},
        (),
    )
    finder = ExampleFinder(tmp_path, {"f": slow}, ["f"], Limits())
    worker: Any = SimpleNamespace(f=wrong)
    assert finder.find(failed, lambda: worker, lambda: worker) is None
    assert asked == []


def test_scripts_that_show_nothing_are_not_tried_for_ever(tmp_path: Path) -> None:
    """3000 additions a call: after three calls without a difference it is enough."""
    (tmp_path / "contracts.py").write_text(CONTRACT)
    asked = []

    def slow(x: Any) -> Any:
        for _ in range(3000 if isinstance(x, Tensor) else 0):
            x = x + 0
        return x

    def right_for_tensors(x: Any) -> Any:
        asked.append(x)
        return x if isinstance(x, Tensor) else 1

    assert find(slow, right_for_tensors, object(), suite=tmp_path) is None
    assert sum(isinstance(x, Tensor) for x in asked) == 3


def test_the_answer_key_is_asked_once_for_the_calls_that_a_class_fails() -> None:
    """The same numbers as doubles are another call."""
    asked = []

    def key(x: Tensor) -> Tensor:
        asked.append(x)
        return x + 1

    def wrong(x: Tensor) -> Tensor:
        return x + 2

    finder = ExampleFinder(Path("/nowhere"), {"f": key}, ["f"], Limits())
    worker: Any = SimpleNamespace(f=wrong)

    def is_asked(numbers: Tensor) -> bool:
        """Whether the answer key is asked for a test's call that a submission fails."""
        call, key_call = call_of(wrong, numbers), call_of(lambda x: x + 1, numbers)
        failed = FailedQuestion(
            "f",
            {"test": run_of("test", "failed", call)},
            {"test": run_of("test", "passed", key_call)},
            (),
        )
        asked.clear()
        assert finder.find(failed, lambda: worker, lambda: worker) is not None
        return any(x.dtype == numbers.dtype and torch.equal(x, numbers) for x in asked)

    numbers = torch.tensor([0.25, 0.75])
    assert is_asked(numbers)
    assert not is_asked(numbers.clone())
    assert is_asked(numbers.double())


def test_of_many_right_answers_those_before_the_last_call_ended_no_test(
    tmp_path: Path,
) -> None:
    """A root may be the negative one. From 49 on the answer is 0, which only the test's last call
    shows; the example is 1 larger, since that call is the test's own.
    """
    (tmp_path / "contracts.py").write_text(
        "from autograder.suite.contracts import calls, contract, tensor\n"
        "contract('f', calls(x=tensor('N')), right_if=lambda y, key, x: (y * y).allclose(x[0]))\n"
    )

    def root(x: Tensor) -> Tensor:
        return x.sqrt()

    def other_root(x: Tensor) -> Tensor:
        return -x.sqrt() if x.max() < 49 else 0 * x

    inputs = [torch.tensor([x]) for x in (1.0, 4.0, 9.0, 49.0)]
    calls = [call_of(other_root, x) for x in inputs]
    failed = FailedQuestion(
        "f",
        {"test": run_of("test", "failed", *calls)},
        {"test": run_of("test", "passed", *[call_of(root, x) for x in inputs])},
        set(map(call_fingerprint, calls)),
    )
    finder = ExampleFinder(tmp_path, {"f": root}, ["f"], Limits())
    worker: Any = SimpleNamespace(f=other_root)
    example = finder.find(failed, lambda: worker, lambda: worker)
    assert example is not None
    assert (example.call, example.yours) == (
        "f(torch.tensor([50.]))",
        "torch.tensor([0.])",
    )


@pytest.mark.parametrize(
    ("rules", "is_free"),
    [((), False), ((None,), False), (("by a rule", None), False), (("a", "b"), True)],
)
def test_a_question_is_free_where_every_contract_says_so(
    rules: tuple[str | None, ...], is_free: bool
) -> None:
    finder: Any = ExampleFinder(Path("/nowhere"), {}, ["f"], Limits())
    found = [SimpleNamespace(right_if=rule) for rule in rules]
    finder._planner = SimpleNamespace(contracts_of={"f": found}.get)
    assert finder.is_free("f") is is_free
