"""What a comparison says: the call, the place, and in which way the answer differs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from autograder.basics.errors import StudentError
from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    assert_same_gradients,
    assert_varies,
    call_twice,
    tensor,
    zeros,
)
from autograder.suite.calls import (
    Call,
    current_log,
    describe_call_of,
    describe_last,
    start_log,
)
from autograder.suite.compare import are_equal


def layer_norm(x: Any, gamma: Any, beta: Any, eps: float = 1e-5) -> None:
    """Gives the arguments of the recorded call their names."""


@pytest.fixture(autouse=True)
def log() -> None:
    start_log({"layer_norm": layer_norm}).calls.append(
        Call("layer_norm", (zeros(4, 6), zeros(6), zeros(6)), {"eps": 0.1})
    )


CALL = "`layer_norm(x[4, 6], gamma[6], beta[6], eps=0.1)`"


def said(check: Callable[..., object], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        check(*args, **kwargs)
    return str(caught.value)


def test_equal_tensors_pass() -> None:
    assert_close(
        torch.tensor([1.0, 2.0 + 1e-7]).double(), torch.tensor([1.0, 2.0]).double()
    )
    assert_close(
        torch.tensor([float("nan"), float("inf")]),
        torch.tensor([float("nan"), float("inf")]),
    )
    assert_close(1.0, 1.0000001)
    assert_close(np.array([1.0]), np.array([1.0]))


@pytest.mark.parametrize(
    ("actual", "expected", "distances"),
    [
        ([1.0, 2.0], [1.0, 2.0], [0.0]),
        ([1.0, 2.0], [1.0, 2.0 + 1e-6], [1e-6 / (2e-6 + 2e-6 * (2.0 + 1e-6))]),
        ([1.0, float("inf")], [1.0, float("inf")], [0.0]),
        ([float("inf")], [float("inf")], []),
        ([float("nan"), 1.0], [float("nan"), 1.0], [0.0]),
        ([], [], []),
    ],
)
def test_the_distance_is_noted_as_a_share_of_what_is_allowed(
    actual: list[float], expected: list[float], distances: list[float]
) -> None:
    assert_close(
        *(torch.tensor(values, dtype=torch.float64) for values in (actual, expected))
    )
    assert current_log().distances == pytest.approx(distances)


@pytest.mark.parametrize(
    ("actual", "expected", "end"),
    [
        (
            None,
            torch.ones(2),
            "should be a tensor of shape [2], and is None (is a `return` missing?).",
        ),
        ([1.0], torch.ones(1), "should be a tensor of shape [1], and is a list."),
        (torch.ones(2, 3), torch.ones(3, 2), "has shape [2, 3]; it should be [3, 2]."),
        (
            torch.ones(2),
            torch.ones(2).double(),
            "has dtype float32; it should be float64.",
        ),
        (True, 1.0, "should be a number, and is a bool."),
        (
            torch.tensor([2.0, 4.0]),
            torch.tensor([4.0, 8.0]),
            "differs from the expected value first at [0]: yours is 2, 0.5 times the "
            "expected value, "
            "and so everywhere.",
        ),
        (
            torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
            torch.tensor([[1.0, 3.0], [2.0, 4.0]]),
            "differs from the expected value first at [0, 1]: yours is 2. It is the expected "
            "matrix transposed.",
        ),
        (
            torch.tensor([1.0, 2.5, 0.0]),
            torch.tensor([1.0, 2.0, 1.0]),
            "differs from the expected value first at [1]: yours is 2.5, too large by 0.5. 2 of "
            "3 elements differ.",
        ),
        (
            torch.tensor([1.0, float("nan")]),
            torch.tensor([1.0, 0.0]),
            "is nan at [1], where a finite number is expected. 1 of 2 elements differ.",
        ),
        (
            torch.tensor([[True, False], [True, True]]),
            torch.tensor([[True, True], [True, True]]),
            "is False at [0, 1], where True is expected. 1 of 4 elements differ.",
        ),
        # an empty row that should be 0: no common factor of the rest is worth telling
        (
            torch.tensor([1.0, 2.0, 0.5]),
            torch.tensor([1.0, 2.0, 0.0]),
            "differs from the expected value first at [2]: yours is 0.5, too large by 0.5. 1 of "
            "3 elements differ.",
        ),
    ],
)
def test_the_message_says_how_they_differ(actual: Any, expected: Any, end: str) -> None:
    assert said(assert_close, actual, expected) == f"{CALL} {end}"


def test_a_part_is_named() -> None:
    message = said(assert_close, torch.ones(1), torch.ones(2), what="the gradient of x")
    assert message == f"the gradient of x of {CALL} has shape [1]; it should be [2]."


def scaled(
    x: torch.Tensor, params: dict[str, list[torch.Tensor]], times: float = 3.0
) -> torch.Tensor:
    """The sum of x · g, three times: x gets 3 g, and g gets 3 x."""
    each: torch.Tensor = times * x * params["norms"][0]
    return each.sum()


def of_student(answer: Callable[..., Any]) -> Callable[..., Any]:
    """As `student.scaled` notes its calls."""

    def called(*arguments: Any) -> Any:
        start_log({"scaled": scaled}).calls.append(Call("scaled", arguments, {}))
        return answer(*arguments)

    return called


SCALED = "`scaled(x[2], params={'norms': list of 1})`"


def leaves() -> tuple[torch.Tensor, dict[str, list[torch.Tensor]]]:
    return tensor([1.0, -2.0], grad=True), {"norms": [tensor([5.0, 7.0], grad=True)]}


def test_right_gradients_pass_and_the_answer_comes_back() -> None:
    answer = assert_same_gradients(
        of_student(lambda x, p: 3 * torch.dot(x, p["norms"][0])), scaled, *leaves()
    )
    assert answer.item() == 3 * (1 * 5 - 2 * 7)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda x, p: None,
            f"{SCALED} should be a tensor, and is None (is a `return` missing?).",
        ),
        (
            lambda x, p: scaled(x, p).detach(),
            f"{SCALED} is cut off from its arguments, so that no gradient reaches them. Was it "
            "detached, made under "
            "`no_grad`, or built anew with `.item()`, numpy or `torch.tensor(...)`?",
        ),
        (
            lambda x, p: 3 * p["norms"][0].sum(),
            f"No gradient of {SCALED} arrives at x.",
        ),
        # the right value: the detached half of g keeps its gradient 3 x from being whole
        (
            lambda x, p: (
                (scaled(x, p) + scaled(x, {"norms": [p["norms"][0].detach()]})) / 2
            ),
            f"the gradient of params['norms'][0] of {SCALED} differs from the expected value "
            "first at [0]: "
            "yours is 1.5, 0.5 times the expected value, and so everywhere.",
        ),
        (
            lambda x, p: scaled(x + tensor([0.0, 1.0]), p),
            f"the gradient of params['norms'][0] of {SCALED} differs from the expected value "
            "first at [1]: "
            "yours is -3, too large by 3. 1 of 2 elements differ.",
        ),
    ],
)
def test_the_gradient_that_is_wrong_is_named(
    answer: Callable[..., Any], message: str
) -> None:
    assert said(assert_same_gradients, of_student(answer), scaled, *leaves()) == message


def test_each_element_of_an_answer_counts_by_itself() -> None:
    """Swapped elements have the same sum, and every one of them the gradient 1."""
    message = said(
        assert_same_gradients,
        of_student(lambda x: x.flip(0)),
        lambda x: 1 * x,
        leaves()[0],
    )
    assert message.startswith(
        "the gradient of x of `scaled(x[2])` differs from the expected value first at [0]"
    )


def test_a_tolerance_is_of_the_size_of_a_gradient() -> None:
    x, g = tensor([1.0], grad=True), {"norms": [tensor([333.0])]}
    near = of_student(lambda x, g: scaled(x, g, 3.003))  # 999.999 for 999
    assert_same_gradients(near, scaled, x, g, tolerance=1e-3)
    assert "too large by 0.999" in said(
        assert_same_gradients, near, scaled, x, g, tolerance=0.9e-3
    )


def test_only_arguments_that_ask_are_compared() -> None:
    x, params = tensor([1.0, -2.0], grad=True), {"norms": [tensor([5.0, 7.0])]}
    assert_same_gradients(
        of_student(lambda x, p: scaled(x, {"norms": [p["norms"][0].detach()]})),
        scaled,
        x,
        params,
    )
    with pytest.raises(RuntimeError):
        assert_same_gradients(of_student(scaled), scaled, x.detach(), params)


@pytest.mark.parametrize(
    ("actual", "expected", "end"),
    [
        (3, 4, "yours is 3, and that is not right."),
        (True, 1, "yours is a bool, where an int is expected."),
        ([1, 2], [1, 2, 3], "yours has 2 entries, not as many as expected (3)."),
        ({"a": 1}, {"a": 1, "b": 2}, "the key 'b' is missing."),
        ({"a": 1, "z": 2}, {"a": 1}, "there should be no key 'z'."),
        ([("a", "b")], [("a", "c")], "yours is 'b' at [0][1], and that is not right."),
        (
            [0, 1],
            np.array([0, 1]),
            "yours is a list, where a numpy array of shape [2] is expected.",
        ),
        (
            np.array([0, 1]),
            [0, 1],
            "yours is a numpy array of shape [2], where a list is expected.",
        ),
        (
            (np.array([0, 1]), 3),
            (np.array([0, 2]), 3),
            "yours is another numpy array at [0].",
        ),
        (
            {"a": np.ones(2)},
            {"a": np.ones(2, dtype=int)},
            "yours is another numpy array at ['a'].",
        ),
        ({"b", "a"}, {"a"}, "yours is {'a', 'b'}, and that is not right."),
        (set(), {"a"}, "yours is set(), and that is not right."),
    ],
)
def test_equality_names_the_first_difference_and_not_the_answer(
    actual: Any, expected: Any, end: str
) -> None:
    assert said(assert_equal, actual, expected) == f"{CALL}: {end}"


@pytest.mark.parametrize(
    ("actual", "expected", "end"),
    [
        (
            np.array([0, 1]),
            np.array([0, 2]),
            " differs from the expected value first at [1]: yours is 1",
        ),
        (
            np.array([0.0, 1.0]),
            np.array([0, 1]),
            " has dtype float64; it should be int64.",
        ),
        (np.zeros((2, 1)), np.zeros(2), " has shape [2, 1]; it should be [2]."),
    ],
)
def test_arrays_are_equal_in_shape_dtype_and_numbers(
    actual: Any, expected: Any, end: str
) -> None:
    assert said(assert_equal, actual, expected).startswith(CALL + end)


def test_right_arrays_pass_however_they_lie_in_memory() -> None:
    """`[::-1]` has a negative stride, a mean over an axis of a list is a numpy scalar, and [] is a
    shape.
    """
    backwards = np.arange(3.0)[::-1]
    for compare in (assert_equal, assert_close):
        compare(np.array([2.0, 1.0, 0.0]), backwards)
        compare(backwards, np.array([2.0, 1.0, 0.0]))
        compare(np.array(2.5), np.array(2.5))
        compare(1.5, np.array([1.0, 2.0]).mean())
        compare(3, np.array([1, 2]).sum())
    assert_equal({"a": [backwards, {1, 2}]}, {"a": (np.array([2.0, 1.0, 0.0]), {2, 1})})
    assert call_twice(lambda: backwards) is backwards


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (
            [0.5, 0.25],
            [0.5, 0.5],
            f"entry 1 of {CALL} differs from the expected value: yours is 0.25",
        ),
        ([0.5], [0.5, 0.5], f"{CALL} has 1 entry; it should have 2."),
        (0.5, [0.5], f"{CALL} should be a list, and is a float."),
        ({"a": 1.0}, {"b": 1.0}, f"{CALL} has no key 'b'."),
        ({"a": 1.0, "b": 1.0}, {"b": 1.0}, f"{CALL} should have no key 'a'."),
        (
            (1.0, np.ones(2)),
            (1.0, np.ones(3)),
            f"entry 1 of {CALL} has shape [2]; it should be [3].",
        ),
        (
            [["a", 1.0]],
            [["b", 1.0]],
            f"entry 0 of entry 0 of {CALL}: yours is 'a', and that is not right.",
        ),
        (
            [0, 1],
            np.array([0, 1]),
            f"{CALL} should be a numpy array of shape [2], and is a list.",
        ),
    ],
)
def test_closeness_goes_through_lists_tuples_and_dicts(
    actual: Any, expected: Any, message: str
) -> None:
    assert said(assert_close, actual, expected).startswith(message)


def test_close_entries_pass() -> None:
    """0.1 + 0.2 is not 0.3 in binary fractions."""
    assert_close([0.1 + 0.2, (1, "a", None)], [0.3, (1.0, "a", None)])
    assert_close(
        {"a": np.array([0.1 + 0.2]), "b": True}, {"a": np.array([0.3]), "b": True}
    )


def test_numbers_are_compared_with_all_their_digits() -> None:
    """0.1 is no number of float32, and 1e39 is beyond its range."""
    assert_close(0.1, 0.1, atol=0.0, rtol=0.0)
    assert_close(1e39, 1e39, rtol=0.0)
    with pytest.raises(AssertionError, match="too large by 1e-09"):
        assert_close(0.100000001, 0.1, atol=1e-10, rtol=0.0)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (torch.tensor([1.0, 2.0]), ""),  # a standard deviation of the root of 1/2
        (np.array([1.0, 2.0]), ""),
        (
            np.array([1.0, 1.0]),
            "The numbers of the logits are all alike, or are no numbers.",
        ),
        (
            torch.tensor([1.0, 1.001]),
            "The numbers of the logits are all alike, or are no numbers.",
        ),
        (
            torch.tensor([1.0, float("nan")]),
            "The numbers of the logits are all alike, or are no numbers.",
        ),
        (
            torch.tensor([1.0, float("inf")]),
            "The numbers of the logits are all alike, or are no numbers.",
        ),
        (
            torch.tensor([1.0]),
            "The numbers of the logits are all alike, or are no numbers.",
        ),
        (torch.tensor([1, 2]), "the logits should be a tensor or an array of floats"),
        ([1.0, 2.0], "the logits should be a tensor or an array of floats"),
    ],
)
def test_numbers_that_vary_are_finite_floats(answer: Any, said: str) -> None:
    with (
        pytest.raises(AssertionError, match=said) if said else contextlib.nullcontext()
    ):
        assert_varies(answer, above=1e-3, what="the logits")


def test_equality_takes_tuples_for_lists_and_whole_floats() -> None:
    assert_equal((1, [2, 3]), [1, (2, 3)])
    assert_equal(2.0, 2)


def test_refusal_wants_a_value_error_that_names_the_sizes() -> None:
    def refuses(
        message: str, kind: str = "ValueError", kinds: tuple[str, ...] = ()
    ) -> Callable[..., None]:
        def call() -> None:
            raise StudentError(kind, message, (), kinds)

        return call

    assert_refused(refuses("3 is not 5"), sizes=(3, 5))
    assert_refused(refuses("x", "ShapeError", ("ShapeError", "ValueError")))
    assert "should name the sizes" in said(
        assert_refused, refuses("they differ"), sizes=(3, 5)
    )
    assert "and raises RuntimeError: no" in said(
        assert_refused, refuses("no", "RuntimeError")
    )
    assert_refused(refuses("transformer.ln_f.bias is missing"), naming="ln_f.bias")
    assert "should name head" in said(
        assert_refused, refuses("only w_head and b_head are there"), naming="head"
    )
    assert "these arguments cannot be right" in said(assert_refused, lambda: None)


@pytest.mark.parametrize(
    ("message", "size", "named"),
    [
        ("10 is not 12", 1, False),
        ("k = 1", 1, True),
        ("[4, 7] and [5, 7]", 5, True),
        ("7x3 does not fit", 3, True),
        ("5 + 3 exceed 7", 8, True),
        ("5 are there, 3 come, 7 fit", 15, True),
        (
            "5, 7 and 3",
            8,
            False,
        ),  # only numbers that follow each other are parts of a sum
        ("-3 is negative", -3, True),
        ("−3 is negative", -3, True),
        ("-3 is negative", 3, True),
        ("float64", 64, False),
        ("w1 has 2 rows", 1, False),
        ("0.5 is not 2", 5, False),
        ("There are 6.", 6, True),
    ],
)
def test_a_size_is_named_as_a_whole_number_or_by_its_parts(
    message: str, size: int, named: bool
) -> None:
    def call() -> None:
        raise StudentError("ValueError", message)

    if named:
        assert_refused(call, sizes=(size,))
        assert current_log().calls[-1].refused
    else:
        assert "should name the sizes" in said(assert_refused, call, sizes=(size,))


def first_leak(fn: Any, x: Any) -> None:
    """Where it leaks.

    Returns:
        a row, or None where there is none.
    """


def test_none_is_no_missing_return_where_it_is_a_right_answer() -> None:
    assert said(assert_equal, None, 3).endswith(
        "yours is None (is a `return` missing?), where an int is expected."
    )
    start_log({"first_leak": first_leak}).calls.append(
        Call("first_leak", (abs, zeros(4, 6)), {})
    )
    message = said(assert_equal, None, 3)
    assert (
        message
        == "`first_leak(fn=function, x[4, 6])`: yours is None, where an int is expected."
    )


def test_a_call_is_described_with_unusual_dtypes_and_small_dicts() -> None:
    params = {"w": zeros(2, 3), "n": 4}
    start_log({}).calls.append(
        Call("f", (zeros(2, dtype=torch.float16), params, dict.fromkeys(range(9))), {})
    )
    assert (
        describe_last()
        == "`f(tensor[2] float16, {'w': tensor[2, 3], 'n': 4}, {9 entries})`"
    )


def test_an_attribute_is_no_call() -> None:
    current_log().calls.append(Call("Cache.length", (), {}, is_attribute=True))
    assert describe_last() == "`Cache.length`"


@pytest.mark.parametrize(
    ("value", "subject"),
    [
        ([[4, 2], [1]], "`search(k=2)`"),
        (7.5, "`search(k=2)`"),
        (zeros(3), "`search(k=2)`"),
        (11, "`Cache.num_free`"),
        (torch.tensor(11.0), "`Cache.num_free`"),
        ([3, 11], "`Cache.num_free`"),
    ],
)
def test_a_number_that_was_read_in_between_is_not_to_blame(
    value: Any, subject: str
) -> None:
    """A test looks whether blocks are free (11 are), and then at what the search found."""
    start_log({}).calls += [
        Call("search", (), {"k": 2}, result=[[4, 2], [1]]),
        Call("Cache.num_free", (), {}, result=11, is_attribute=True),
    ]
    assert describe_call_of(value) == subject


def test_calling_twice_notices_another_answer() -> None:
    answers = iter([torch.ones(1), torch.zeros(1)])
    assert "another answer the second time" in said(call_twice, lambda: next(answers))


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]), False),
        (torch.tensor([1.0]), torch.tensor([1.0]).double(), False),
        (torch.tensor([float("nan")]), torch.tensor([float("nan")]), True),
        (torch.tensor([float("inf")]), torch.tensor([3.4028234663852886e38]), False),
        ([1, (2.0, "a")], [1, (2.0, "a")], True),
        ({"a": 1.0}, {"a": 1.1}, False),
        (1, True, False),
        (float("nan"), float("nan"), True),
        (None, None, True),
        (SimpleNamespace(w=torch.ones(2)), SimpleNamespace(w=torch.ones(2)), True),
        (SimpleNamespace(w=torch.ones(2)), SimpleNamespace(w=torch.zeros(2)), False),
    ],
)
def test_sameness_goes_through_and_through(left: Any, right: Any, equal: bool) -> None:
    assert are_equal(left, right) is equal
