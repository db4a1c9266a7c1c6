"""Property mutants: each wrapper does what its name says, and is chosen where it makes sense."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from autograder.proof.torch_changes import (
    STATISTICS,
    computing,
    difference_of_squares,
    filling,
    in_half_precision,
    largest_of_all,
    mean_of_row,
    nothing,
    over_axis_1,
    shifted_by,
    widening_first,
)
from autograder.proof.wrapper_functions import (
    as_share,
    counting_once,
    ignoring,
    keeping_answers,
    lining_up_from_the_left,
    no_larger_than_sizes,
    remembering,
    sharing_state,
)
from autograder.proof.wrappers import observe, reachable_names
from autograder.suite.calls import Call, CallLog

INF = math.inf


def own_softmax(z: torch.Tensor) -> torch.Tensor:
    peak = z.amax(dim=-1, keepdim=True)
    powers = torch.exp(z - peak)
    return powers / powers.sum(dim=-1, keepdim=True)


def torchs_softmax(z: torch.Tensor) -> torch.Tensor:
    return torch.softmax(z, dim=-1)


@pytest.mark.parametrize("softmax", [own_softmax, torchs_softmax])
@pytest.mark.parametrize(
    ("changes", "scores", "expected"),
    [
        (
            shifted_by(mean_of_row),
            [[0.0, 0.0], [math.log(3.0), 0.0]],
            [[0.5, 0.5], [0.75, 0.25]],
        ),
        (shifted_by(mean_of_row), [[900.0, 0.0, 0.0]], [[math.nan, 0.0, 0.0]]),
        (
            shifted_by(largest_of_all),
            [[0.0, 0.0], [-800.0, -800.0]],
            [[0.5, 0.5], [math.nan] * 2],
        ),
        (shifted_by(nothing), [[90.0, 0.0]], [[math.nan, 0.0]]),
        (shifted_by(nothing, 50.0), [[80.0, 60.0, -INF]], [[0.5, 0.5, 0.0]]),
    ],
)
def test_a_softmax_is_shifted_otherwise(
    softmax: Any, changes: Any, scores: list[list[float]], expected: list[list[float]]
) -> None:
    answer = computing(softmax, changes)(torch.tensor(scores))
    torch.testing.assert_close(answer, torch.tensor(expected), equal_nan=True)
    narrow = computing(softmax, changes, (torch.float16,))
    torch.testing.assert_close(
        narrow(torch.tensor(scores)), softmax(torch.tensor(scores))
    )


def test_logarithms_are_shifted_too() -> None:
    z = torch.tensor([[1.0, 2.0, 3.0]])
    shifted = computing(
        lambda z: (z.log_softmax(-1), z.logsumexp(-1)), shifted_by(mean_of_row)
    )
    torch.testing.assert_close(shifted(z), (z.log_softmax(-1), z.logsumexp(-1)))
    assert shifted(300 * z)[1].tolist() == [INF]


@pytest.mark.parametrize(("number", "filled"), [(-50.0, -50.0), (None, -65504.0)])
def test_minus_infinity_is_filled_with_a_number(
    number: float | None, filled: float
) -> None:
    mask = torch.tensor([True, False])

    def masked(z: torch.Tensor) -> torch.Tensor:
        return z.masked_fill(mask, -INF) + z.masked_fill(~mask, 0.0)

    z = torch.tensor([0.0, 2.0]).half()
    assert computing(masked, filling(number))(z).tolist() == [filled, 2.0]


def test_sums_are_rounded_to_half_precision() -> None:
    def total(x: torch.Tensor) -> torch.Tensor:
        return x.float().sum()

    x = torch.full((2049,), 1.0)
    assert in_half_precision(total, STATISTICS)(x.half()).item() == 2048
    assert in_half_precision(total, STATISTICS)(x).item() == 2049


def test_a_variance_is_a_difference_of_squares() -> None:
    def variance(x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(dim=-1, keepdim=True)).pow(2).mean(dim=-1)

    changed = computing(variance, difference_of_squares())
    assert changed(torch.tensor([[1.0, 3.0]])).tolist() == [1.0]
    assert changed(torch.tensor([[4097.0, 4099.0]])).tolist() != [1.0]


def test_the_last_axis_is_taken_for_axis_1() -> None:
    x = torch.arange(8.0).view(2, 2, 2)
    changed = computing(lambda x: x.sum(dim=-1), over_axis_1("sum"))
    assert changed(x).tolist() == [[2.0, 4.0], [10.0, 12.0]]
    assert changed(x[0]).tolist() == [1.0, 5.0]


def described(x: float, top: int | None = None, share: float = 1.0) -> tuple[Any, ...]:
    return x, top, share


def test_a_setting_counts_for_nothing_beside_another() -> None:
    given = ignoring(described, "top", None, "share", 1.0, where_given=True)
    assert given(1, 5) == (1, 5, 1.0)
    assert given(1, 5, 0.5) == (1, None, 0.5)
    absent = ignoring(described, "top", None, "share", 1.0, where_given=False)
    assert absent(1, 5) == (1, None, 1.0)
    assert absent(1, top=5, share=0.5) == (1, 5, 0.5)
    assert as_share(described, "share", "x")(4.0, share=0.5) == (4.0, None, 2.0)


def test_a_mask_lines_up_from_the_left_and_a_number_has_a_limit() -> None:
    def shapes(q: torch.Tensor, mask: torch.Tensor) -> tuple[int, ...]:
        return tuple(mask.shape)

    q = torch.zeros(2, 3, 4, 5)
    left = lining_up_from_the_left(shapes, "mask")
    assert left(q, torch.ones(2, 4, 4).bool()) == (2, 1, 4, 4)
    assert left(q, torch.ones(4, 4).bool()) == (4, 4)
    limited = no_larger_than_sizes(lambda x, top=None: top, "top")
    assert limited(q, 5) == 5
    with pytest.raises(RuntimeError, match="out of range"):
        limited(q, 6)


def test_answers_are_kept_for_a_part_of_the_arguments() -> None:
    def product(x: torch.Tensor, times: int = 2) -> torch.Tensor:
        return x * times

    one, two = torch.tensor([1.0]), torch.tensor([2.0])
    by_x = keeping_answers(product, ("x",))
    assert [by_x(one), by_x(one, 3), by_x(two)] == [2.0, 2.0, 4.0]
    by_shape = keeping_answers(product, ("x", "times"), by_shape=True)
    assert [by_shape(one), by_shape(two), by_shape(two, 3)] == [2.0, 2.0, 6.0]
    changed_default = remembering(product, "times")
    assert [changed_default(one), changed_default(one, 5), changed_default(one)] == [
        2.0,
        5.0,
        5.0,
    ]


def test_half_precision_is_widened_as_a_whole_and_comes_back_as_half() -> None:
    seen = []

    def scaled(x: torch.Tensor, factor: int) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(x.dtype)
        return x * factor, x.float().sum()

    x = torch.ones(3, dtype=torch.float16)
    widened = widening_first(scaled)(x, 2)
    assert seen[-1] == torch.float32
    assert [t.dtype for t in widened] == [torch.float16, torch.float32]
    widening_first(scaled)(x.double(), 2)
    assert seen[-1] == torch.float64


def test_a_tensor_in_two_places_counts_once() -> None:
    def count(params: dict[str, Any]) -> int:
        return sum(t.numel() for t in [params["a"], *params["blocks"]])

    w, own = torch.ones(4), torch.ones(3)
    params = {"a": own, "blocks": [w, w, w]}
    assert count(params) == 15
    assert counting_once(count)(params) == 7


def test_objects_share_their_attributes() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

    kind = sharing_state(Counter)
    first, second = kind(), kind()
    first.count += 1
    assert second.count == 1
    assert kind().count == first.count == 0


SOURCE = """
import math
import torch

def widen(x):
    return x.float()

def attend(q, k, mask=None, scale=1.0):
    scores = widen(q) @ widen(k).mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1).to(q.dtype)
"""


def names_for(dtype: torch.dtype, *shape: int) -> list[str]:
    """The names of the property mutants of `attend`, called with tensors of this dtype and shape."""
    scope: dict[str, Any] = {}
    exec(SOURCE, scope)
    x = torch.ones(*shape, dtype=dtype)
    mask = torch.ones(shape[-2], shape[-2]).bool()
    call = Call(
        "attend", (x, x), {"mask": mask, "scale": 0.5}, result=scope["attend"](x, x)
    )
    (observed,) = observe(
        [call], CallLog(scope).signature, reachable_names([SOURCE], [])
    )
    return [name for name, _ in observed.properties]


def test_mutants_are_chosen_by_what_a_function_reaches_and_is_called_with() -> None:
    in_double, in_half = (
        names_for(torch.float64, 2, 3),
        names_for(torch.float16, 2, 2, 3, 3),
    )
    for name in (
        "ignores mask where scale is given",
        "ignores scale where mask is not given",
        "keeps answers by k alone",
        "keeps answers by all but mask",
        "remembers scale",
        "subtracts one maximum from all rows",
        "clamps scores to ±50",
        "fills with -1e4",
    ):
        assert name in in_double
        assert name in in_half
    for name in (
        "lines mask up from the left",
        "multiplies matrices in half precision",
        "subtracts no maximum, in half precision",
        "softmax over axis 1",
    ):
        assert name not in in_double
        assert name in in_half
    assert not any(name.startswith("takes") and "share" in name for name in in_double)
    assert not any("variance" in name for name in in_half)


def test_a_function_of_arrays_has_no_mutants_of_torch() -> None:
    source = "def half(x, by=2):\n    return x / by\n"
    scope: dict[str, Any] = {}
    exec(source, scope)
    call = Call("half", (np.array([2.0]),), {}, result=np.array([1.0]))
    (observed,) = observe(
        [call], CallLog(scope).signature, reachable_names([source], [])
    )
    assert [name for name, _ in observed.properties] == [
        "changes x",
        "squeezes its arrays",
        "returns single precision",
        "fails for a large by",
        "keeps answers by x alone",
        "keeps answers by by alone",
        "remembers by",
    ]


def test_a_modules_function_leads_to_no_helper_of_its_name() -> None:
    own = "def pairs(x):\n    return torch.tensor(x)\n"
    helper = "def tensor(x):\n    return torch.softmax(x, 0)\n"
    assert "softmax" not in reachable_names([own], [helper])("pairs").everywhere
    calling = own.replace("torch.", "")
    assert "softmax" in reachable_names([calling], [helper])("pairs").everywhere


@pytest.mark.parametrize(
    "own",
    [
        "def starts(seed):\n    dice = seed + 1\n    return dice\n",
        "def starts(dice):\n    return dice\n",
    ],
)
def test_a_variable_leads_to_no_helper_of_its_name(own: str) -> None:
    helper = "def dice(x):\n    return torch.softmax(x, 0)\n"
    reached = reachable_names([own], [helper])("starts")
    assert "softmax" not in reached.everywhere | reached.near
