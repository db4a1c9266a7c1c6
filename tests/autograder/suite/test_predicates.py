"""Predicates of evidence, on answers worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from autograder.suite.answer_predicates import equal
from autograder.suite.objects import NotData
from autograder.suite.probing_predicates import changes_by_itself
from autograder.suite.shows import PREDICATES, read_shows
from autograder.suite.sight import Sight, Unseen, look, look_safely, make_predicate

HALF = [[0.75, 0.25], [0.25, 0.75]]
"""Rows and columns sum to 1."""
ROWS = [[0.75, 0.25], [0.5, 0.5]]
COLUMNS = [[0.75, 0.5], [0.25, 0.5]]


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def still(_: str, __: Mapping[str, Any]) -> Sight:
    raise Unseen("nobody to ask")


def see(shows: str, answer: Any, right: Any, **arguments: Any) -> bool | None:
    """What a pair of answers shows of a predicate."""
    return look(read_shows(shows), Sight(arguments, answer, right, still))


@pytest.mark.parametrize(
    ("shows", "answer", "right", "verdict"),
    [
        ("sums_to_one(-2)", COLUMNS, ROWS, True),
        ("sums_to_one(-2)", ROWS, HALF, None),
        ("sums_to_one(-2)", [[0.5, 0.5], [0.25, 0.75]], ROWS, False),
        ("sums_to_one(0, 1)", [[0.5, 0.25], [0.25, 0.0]], ROWS, True),
        ("off_by_a_factor()", [2.0, 4.0, 6.0], [1.0, 2.0, 3.0], True),
        ("off_by_a_factor()", [2.0, 4.0, 7.0], [1.0, 2.0, 3.0], False),
        ("off_by_a_factor()", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], False),
        ("off_by_a_factor()", [0.0, 0.0, 0.0], [1.0, 2.0, 3.0], False),
        ("off_by_a_factor()", [2.0, 2.0], [1.0, 1.0], None),
        ("off_by_a_constant()", [3.0, 4.0, 7.0], [1.0, 2.0, 5.0], True),
        ("off_by_a_constant()", [3.0, 4.0, 8.0], [1.0, 2.0, 5.0], False),
        ("axes_exchanged()", [[1.0, 3.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]], True),
        ("axes_exchanged()", [[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [2.0, 4.0]], None),
        ("back_to_front(-1)", [3.0, 2.0, 1.0], [1.0, 2.0, 3.0], True),
        ("back_to_front(-1)", [3.0, 1.0, 2.0], [1.0, 2.0, 3.0], False),
        ("in_another_order()", [3.0, 1.0, 2.0], [1.0, 2.0, 3.0], True),
        ("in_another_order()", [3.0, 1.0, 2.5], [1.0, 2.0, 3.0], False),
        ("shifted_along(0, 1)", [9.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0], True),
        ("shifted_along(0, -1)", [9.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0], False),
        ("is_what('square')", [1.0, 4.0, 9.0], [1.0, 2.0, 3.0], True),
        ("is_what('minus')", [-1.0, -2.0], [1.0, 2.0], True),
        ("is_what('root')", [1.0, 4.0, 9.0], [1.0, 2.0, 3.0], False),
        ("needs_softmax(-1)", [[0.0, 0.0], [1.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]], True),
        (
            "needs_softmax(-1)",
            [[0.0, 1.0], [1.0, 1.0]],
            [[0.5, 0.5], [0.5, 0.5]],
            False,
        ),
        ("same_along(0)", [[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]], True),
        ("same_along(0)", [[1.0, 2.0], [1.0, 2.0]], [[5.0, 2.0], [5.0, 2.0]], None),
        ("outside(-1, 1)", [0.5, 1.5], [0.5, 0.9], True),
        ("outside(-1, 1)", [0.5, 0.7], [0.5, 0.9], False),
        ("outside(-1, 1)", [0.5, 1.5], [0.5, 2.0], None),
        ("not_finite()", [1.0, float("nan")], [1.0, 2.0], True),
        ("not_finite()", [1.0, 3.0], [1.0, 2.0], False),
        ("finite_for_infinite()", [1.0, -1e30], [1.0, float("-inf")], True),
        ("finite_for_infinite()", [3.0, float("-inf")], [1.0, float("-inf")], False),
        ("one_hot(-1)", [[1.0, 0.0], [0.0, 1.0]], ROWS, True),
        ("one_hot(-1)", ROWS, HALF, False),
        ("equal_shares(-1)", [[0.5, 0.5], [0.5, 0.5]], ROWS, True),
        ("equal_shares(-1)", [[1.0, 1.0], [1.0, 1.0]], ROWS, False),
        ("one_axis_more()", [[1.0], [2.0]], [1.0, 2.0], True),
        ("one_axis_more()", [1.0, 2.0], [1.0, 2.0], False),
        ("one_axis_less()", [1.0, 2.0], [[1.0], [2.0]], True),
        ("one_axis_less()", [1.0, 2.0], [1.0, 2.0], None),
        ("shape_with_axes_exchanged(0, 1)", [[7.0], [8.0]], [[1.0, 2.0]], True),
        ("shape_with_axes_exchanged(0, 1)", [[7.0, 8.0]], [[1.0, 2.0]], False),
        ("something_where_nothing_is_right()", [0.25, 0.75], [0.0, 1.0], True),
        ("something_where_nothing_is_right()", [0.0, 1.0], [0.0, 0.5], False),
        ("nothing_where_something_is_right()", [0.0, 1.0], [0.5, 0.5], True),
        ("nothing_where_something_is_right()", [0.0, 1.0], [0.0, 0.5], False),
        ("something_only_where_nothing_is_right()", [[0.0, 3.0]], [[1.0, 0.0]], True),
        ("something_only_where_nothing_is_right()", [[1.0, 3.0]], [[1.0, 0.0]], False),
        ("something_only_where_nothing_is_right()", [[1.0, 3.0]], [[1.0, 2.0]], None),
        ("something_only_where_nothing_is_right()", [[0.0, 0.0]], [[1.0, 0.0]], False),
    ],
)
def test_what_an_answer_shows(
    shows: str, answer: Any, right: Any, verdict: bool | None
) -> None:
    assert see(shows, tensor(answer), tensor(right)) is verdict


def test_factors_in_sizes_of_arguments() -> None:
    q, v = torch.ones(2, 9), torch.ones(2, 4)
    right = tensor([1.0, 2.0])
    assert see("off_by_a_factor('q[-1]**0.5')", 3 * right, right, q=q) is True
    assert see("off_by_a_factor('q[-1]**-1')", right / 9, right, q=q) is True
    assert see("off_by_a_factor('q[-1]**0.5')", 2 * right, right, q=q) is False
    assert (
        see("off_by_a_factor('q[-1]**0.5 * v[-1]**-0.5')", 1.5 * right, right, q=q, v=v)
        is True
    )
    assert see("off_by_a_factor('heads**0.5')", 2 * right, right, heads=4) is True
    assert see("off_by_a_factor('v[-1]')", 2 * right, right, q=q) is None
    assert see("sums_to('q[-1]**-0.5')", tensor(ROWS) / 3, tensor(ROWS), q=q) is True
    assert see("sums_to('q[-1]**-0.5')", tensor(ROWS) / 2, tensor(ROWS), q=q) is False


def test_scores_are_compared_whatever_axis_they_are_normalized_along() -> None:
    """Scores 0, 1, 2, 4 times two: the weights are normalized over rows, and then over columns."""
    scores = tensor([[0.0, 1.0], [2.0, 4.0]])
    right = torch.softmax(scores, dim=-1)
    for axis in (-1, -2):
        weights = torch.softmax(2 * scores, dim=axis)
        assert see("scores_off_by()", weights, right) is True
        assert (
            see("scores_off_by('q[-1]**0.5')", weights, right, q=torch.ones(1, 4))
            is True
        )
        assert (
            see("scores_off_by('q[-1]**-0.5')", weights, right, q=torch.ones(1, 4))
            is False
        )
    hidden = tensor([[True, True, False], [True, True, True]]).bool()
    scores = tensor([[0.0, 1.0, 5.0], [2.0, 4.0, 3.0]])
    masked, doubled = (
        torch.softmax((factor * scores).masked_fill(~hidden, -torch.inf), dim=-1)
        for factor in (1, 2)
    )
    assert (
        see("scores_off_by('q[-1]**0.5')", doubled, masked, q=torch.ones(1, 4)) is True
    )


def test_dtypes_masks_and_arguments() -> None:
    mask = torch.tensor([True, False, True])
    assert see("complement()", ~mask, mask) is True
    assert see("complement()", mask, mask) is False
    assert see("has_dtype('float32')", torch.ones(2), tensor([1.0, 1.0])) is True
    assert (
        see("has_dtype('float32')", tensor([1.0, 1.0]), torch.ones(2).half()) is False
    )
    assert see("has_dtype('float32')", torch.ones(2), torch.ones(2)) is None
    assert (
        see(
            "repeats('x')", tensor([1.0, 2.0]), tensor([2.0, 1.0]), x=tensor([1.0, 2.0])
        )
        is True
    )
    assert (
        see(
            "repeats('x')", tensor([1.0, 3.0]), tensor([2.0, 1.0]), x=tensor([1.0, 2.0])
        )
        is False
    )


def test_an_entry_that_is_never_drawn() -> None:
    """Sixty draws of 0, 1 and 2, twenty of each."""
    ids = torch.tensor([0, 1, 2])
    right = torch.arange(60) % 3
    without_2 = torch.arange(60) % 2
    shows = "lacks('ids', -1)"
    assert see(shows, without_2, right, ids=ids) is True
    assert see("lacks('ids', 0)", without_2, right, ids=ids) is False
    assert see(shows, right, right, ids=ids) is False
    assert (
        see(shows, torch.zeros(60).long(), right, ids=ids) is False
    )  # 1 is missing too
    assert see(shows, without_2, without_2, ids=ids) is None
    assert see(shows, without_2[:59], right, ids=ids) is None
    assert see(shows, without_2[:57], right[:57], ids=ids) is None  # missing by chance


def test_a_triangle_at_the_other_corner() -> None:
    right = torch.tensor([[True, True, True, False], [True, True, True, True]])
    top_left = torch.tensor([[True, False, False, False], [True, True, False, False]])
    shows = "triangle_at_the_top_left()"
    assert see(shows, top_left, right) is True
    assert see(shows, top_left.float() / 2, right) is True
    assert see(shows, right, right) is False
    assert see(shows, ~right, right) is False
    assert see(shows, top_left[:, :2], right[:, 2:]) is None


def test_parts_of_an_answer() -> None:
    first, second = tensor([1.0, 2.0]), tensor([[3.0]])
    assert see("parts_exchanged()", (second, first), (first, second)) is True
    assert see("parts_exchanged()", (first, second), (first, second)) is False
    assert (
        see("part(1, sums_to_one(-2))", (0, tensor(COLUMNS)), (0, tensor(ROWS))) is True
    )
    assert (
        see("part('loss', off_by_a_factor())", {"loss": 2 * first}, {"loss": first})
        is True
    )
    assert see("part(1, sums_to_one(-2))", tensor(COLUMNS), tensor(ROWS)) is None


def test_predicates_are_joined() -> None:
    wrong = 2 * tensor(COLUMNS)
    assert see("sums_to_one(-2) & not_finite()", tensor(COLUMNS), tensor(ROWS)) is False
    assert see("sums_to_one(-2) & ~not_finite()", tensor(COLUMNS), tensor(ROWS)) is True
    assert (
        see("sums_to_one(-2) | sums_to_one(-1)", tensor(COLUMNS), tensor(ROWS)) is True
    )
    assert see("sums_to_one(-2) | not_finite()", wrong, tensor(ROWS)) is False
    joined = read_shows("sums_to_one(-2) & not_finite()")
    assert read_shows("sums_to_one(-2)").parts < joined.parts


def test_a_student_reads_what_is_so_and_not_what_is_ruled_out() -> None:
    ruled_out = "~through_unit('x', sums_to_one(-2))"
    assert read_shows(f"same_along(0) & {ruled_out}").said == (
        "is the same all along axis 0"
    )
    assert read_shows("part(1, same_along(0) & ~not_finite())").said == (
        "at `[1]` is the same all along axis 0"
    )
    assert read_shows(ruled_out).said == ""


def ask(
    shows: str,
    student: Callable[..., Any],
    key: Callable[..., Any],
    **arguments: Any,
) -> bool | None:
    """What a call of two functions shows of a predicate that asks again."""

    def make(values: Mapping[str, Any]) -> Sight:
        def again(_: str, changes: Mapping[str, Any]) -> Sight:
            return make({**values, **changes})

        return Sight(values, student(**values), key(**values), again)

    return look(read_shows(shows), make(arguments))


X = tensor([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]])
W = tensor([[1.0, 2.0], [-1.0, 0.5]])


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


def running_sum(x: torch.Tensor) -> torch.Tensor:
    return x.cumsum(0)


def softmax_average(k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(k @ k.T, -1) @ v


@pytest.mark.parametrize(
    ("shows", "student", "key", "arguments", "verdict"),
    [
        ("ignores('w')", lambda x, w: 2 * x, product, (X, W), True),
        ("ignores('w')", lambda x, w: x @ w.T, product, (X, W), False),
        ("ignores('w')", lambda x, w: x, lambda x, w: 2 * x, (X, W), None),
        ("right_once_transposed('w')", lambda x, w: x @ w.T, product, (X, W), True),
        ("right_once_transposed('w')", lambda x, w: x - w.T[0], product, (X, W), False),
        (
            "right_once_scaled('w', 'w[-1]**-1')",
            lambda x, w: 2 * x @ w,
            product,
            (X, W),
            True,
        ),
        (
            "right_once_scaled('w', 'w[-1]**-1')",
            lambda x, w: 3 * x @ w,
            product,
            (X, W),
            False,
        ),
        (
            "right_once_exchanged('x', 'w')",
            lambda x, w: w @ x,
            product,
            (W, W.T + 1),
            True,
        ),
        (
            "ignores_the_size_of('w')",
            lambda x, w: x @ (w / w.norm()),
            product,
            (X, W),
            True,
        ),
        ("ignores_the_size_of('w')", lambda x, w: x @ w + 1, product, (X, W), False),
    ],
)
def test_what_two_functions_show(
    shows: str,
    student: Callable[..., Any],
    key: Callable[..., Any],
    arguments: tuple[Any, Any],
    verdict: bool | None,
) -> None:
    assert ask(shows, student, key, x=arguments[0], w=arguments[1]) is verdict


def test_time_and_batch() -> None:
    whole = lambda x: x.sum(0, keepdim=True).expand_as(x)  # noqa: E731
    assert ask("depends_on_later('x', 0)", whole, running_sum, x=X) is True
    assert ask("depends_on_later('x', 0)", lambda x: x, running_sum, x=X) is False
    assert ask("depends_on_later('x', 0)", lambda x: x, whole, x=X) is None
    assert ask("mixes_the_batch('x')", whole, lambda x: x + 1, x=X) is True
    calls = iter(range(9))
    counting = lambda x: x + next(calls)  # noqa: E731
    assert ask("mixes_the_batch('x')", counting, lambda x: x + 1, x=X) is None
    first = lambda x: x[:1].expand_as(x)  # noqa: E731
    assert ask("needs_the_first_only('x', 0)", first, running_sum, x=X) is True
    assert ask("needs_the_first_only('x', 0)", lambda x: x, running_sum, x=X) is False
    assert (
        ask("needs_the_last_only('x', 0)", lambda x: x[-1:], running_sum, x=X) is True
    )
    assert ask("needs_the_last_only('x', 0)", first, running_sum, x=X) is False


def test_parts_of_arguments() -> None:
    params = {"w": W, "b": tensor([1.0, 2.0])}
    key = lambda x, params, config: x @ params["w"] + config.times * params["b"]  # noqa: E731
    arguments = {"x": X, "params": params, "config": SimpleNamespace(times=2)}
    without_b = lambda x, params, config: x @ params["w"]  # noqa: E731
    once = lambda x, params, config: x @ params["w"] + params["b"]  # noqa: E731
    assert ask("ignores('params.b')", without_b, key, **arguments) is True
    assert ask("ignores('params.b')", once, key, **arguments) is False
    assert ask("ignores('config.times')", once, key, **arguments) is True
    assert ask("ignores('params.c')", once, key, **arguments) is None
    assert params["b"].tolist() == [1.0, 2.0]


def test_weights_behind_an_average() -> None:
    k, v = X, tensor([[1.0], [2.0], [4.0]])
    columns = lambda k, v: torch.softmax(k @ k.T, -2) @ v  # noqa: E731
    assert (
        ask("through_unit('v', sums_to_one(-2))", columns, softmax_average, k=k, v=v)
        is True
    )
    doubled = lambda k, v: torch.softmax(2 * k @ k.T, -1) @ v  # noqa: E731
    scores = "through_unit('v', scores_off_by())"
    assert ask(scores, doubled, softmax_average, k=k, v=v) is True
    assert (
        ask("through_unit('v', sums_to_one(-2))", doubled, softmax_average, k=k, v=v)
        is False
    )


def test_weights_that_do_not_sum_to_one() -> None:
    k, v = X, tensor([[1.0], [2.0], [4.0]])
    columns = lambda k, v: torch.softmax(k @ k.T, -2) @ v  # noqa: E731
    doubled = lambda k, v: torch.softmax(2 * k @ k.T, -1) @ v  # noqa: E731
    assert ask("is_no_average('v')", columns, softmax_average, k=k, v=v) is True
    assert ask("is_no_average('v')", doubled, softmax_average, k=k, v=v) is False


def test_an_argument_may_have_any_name() -> None:
    columns, rows = lambda text: text.sum(0), lambda text: text.sum(1)
    assert (
        ask("right_once_transposed('text')", columns, rows, text=tensor(ROWS)) is True
    )


def test_masks() -> None:
    mask = torch.tensor([True, False, True])
    kept = lambda x, mask=None: x if mask is None else x * mask  # noqa: E731
    x = tensor([1.0, 2.0, 3.0])
    inverted = lambda x, mask: x if mask is None else x * ~mask  # noqa: E731
    assert ask("right_once_inverted('mask')", inverted, kept, x=x, mask=mask) is True
    assert ask("right_without('mask')", lambda x, mask: x, kept, x=x, mask=mask) is True
    assert ask("right_without('mask')", inverted, kept, x=x, mask=mask) is False


def test_numpy_and_numbers_show_what_tensors_show() -> None:
    assert see("off_by_a_factor()", np.array([2.0, 4.0]), np.array([1.0, 2.0])) is True
    assert ask("ignores('n')", lambda n: 3, lambda n: n + 1, n=1) is True
    # 2 is no other answer than 1, and 3 is
    assert ask("ignores('n')", lambda n: max(n, 2), lambda n: n + 1, n=1) is False


def test_numbers_beyond_64_bits_are_compared_exactly() -> None:
    assert see("off_by_a_factor()", 1 << 70, 1 << 69) is None
    assert ask("ignores('n')", lambda n: 1 << 70, lambda n: n + 1, n=1) is None


def test_a_predicate_that_raises_shows_nothing_in_grading() -> None:
    def broken(_: Sight) -> bool:
        raise TypeError("a fault of the suite")

    predicate = make_predicate("is broken", broken)
    sight = Sight({}, tensor([1.0]), tensor([1.0]), still)
    assert look_safely(predicate, sight) is None
    with pytest.raises(TypeError):
        look(predicate, sight)


def test_each_predicate_is_in_this_file() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    missing = [name for name in PREDICATES if f"{name}(" not in source]
    assert missing == []


@pytest.mark.parametrize(
    "text",
    [
        "open('file')",
        "sums_to_one",
        "sums_to_one(-1) + 1",
        "sums_to_one(axis=(lambda: 0)())",
        "3",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_shows(text)


def test_objects_of_a_student_are_never_compared() -> None:
    """`==` of such an object is an error, which must not end the grading of a submission."""
    first, second = NotData(), NotData()
    assert equal(first, first)
    assert not equal(first, second)
    assert not equal([1.0, first], [1.0, second])
    assert not equal(first, tensor([1.0]))
    sight = Sight({}, (1.0, first), 1.0, lambda *_: sight)
    assert look_safely(make_predicate("changes", changes_by_itself), sight) is None
