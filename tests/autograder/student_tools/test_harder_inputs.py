"""Harder inputs: calls are drawn by a seed, a claim that fails is shown by a small call, and right
answers pass.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.student_tools import harder_inputs
from autograder.student_tools.harder import try_harder
from autograder.student_tools.harder_claims import GENERAL
from autograder.student_tools.harder_draws import AllowedCalls, ChosenNumbers
from autograder.student_tools.harder_inputs import (
    QUESTIONS,
    HarderFailure,
    HarderSearch,
    about,
    contract,
    holds,
)
from autograder.student_tools.no_triton import NoTriton
from autograder.student_tools.notebook_facts import FACTS
from autograder.suite.contract_calls import calls
from autograder.suite.contract_parameters import tensor

Answer = Callable[..., Any]


@pytest.fixture(autouse=True)
def centered_question() -> Iterator[None]:
    """A question: rows around zero, plus a shift."""
    QUESTIONS.clear()
    contract("centered", calls(x=tensor("...", "D"), shift=tensor("D")), gradients=True)
    about("centered", refuses="shift.0")

    @holds("centered", "Without a shift each row sums to 0.")
    def rows_sum_to_zero(centered: Answer, x: Tensor, shift: Tensor) -> Any:
        sums = centered(x, 0 * shift).sum(dim=-1)
        return sums, torch.zeros_like(sums)

    yield
    QUESTIONS.clear()


def centered(x: Tensor, shift: Tensor) -> Tensor:
    if shift.shape != x.shape[-1:]:
        raise ValueError("shift does not fit")
    return x - x.mean(dim=-1, keepdim=True) + shift


def search(answer: Answer, seed: int = 3) -> HarderFailure | None:
    result = HarderSearch("centered", {"centered": answer}, seed, seconds=20).run()
    failure: HarderFailure | None = result.failure
    return failure


def test_a_right_answer_passes_with_any_seed() -> None:
    assert [search(centered, seed) for seed in range(4)] == [None] * 4


def sums_over_the_first_axis(x: Tensor, shift: Tensor) -> Tensor:
    return (
        centered(x, shift) + x.mean(dim=-1, keepdim=True) - x.mean(dim=0, keepdim=True)
    )


def checks_nothing(x: Tensor, shift: Tensor) -> Tensor:
    return centered(x, shift[..., : x.shape[-1]])


def changes_its_argument(x: Tensor, shift: Tensor) -> Tensor:
    answer = centered(x, shift)
    with torch.no_grad():
        x += 1
    return answer


def forgets_the_dtype(x: Tensor, shift: Tensor) -> Tensor:
    return centered(x, shift).float()


def needs_contiguous_numbers(x: Tensor, shift: Tensor) -> Tensor:
    return centered(x.clone().as_strided(x.shape, x.contiguous().stride()), shift)


def detaches(x: Tensor, shift: Tensor) -> Tensor:
    return centered(x.detach(), shift)


def overflows(x: Tensor, shift: Tensor) -> Tensor:
    return centered((x * 1e304) / 1e304, shift)


WRONG = {
    sums_over_the_first_axis: "Without a shift each row sums to 0.",
    checks_nothing: "sizes",
    changes_its_argument: "unchanged",
    forgets_the_dtype: "dtype",
    needs_contiguous_numbers: "layout",
    detaches: "gradient",
    overflows: "finite",
}


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: answer.__name__)
def test_each_fault_breaks_the_claim_about_it(answer: Answer) -> None:
    claim = GENERAL.get(WRONG[answer])
    sentence = claim.__doc__ if claim else WRONG[answer]
    failure = search(answer)
    if answer is overflows:  # NaN is in the sums as well
        assert failure is not None
        assert failure.sentence in ("Without a shift each row sums to 0.", sentence)
        return
    assert failure is not None
    assert failure.sentence == sentence


@pytest.mark.parametrize("is_installed", [True, False])
def test_the_call_that_is_shown_is_small(
    is_installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two numbers in a row, or two rows, are the smallest of which it fails."""
    if not is_installed:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    failure = search(sums_over_the_first_axis)
    assert failure is not None
    (line,) = failure.lines
    call = eval(line, {"torch": torch, "centered": lambda *arguments: arguments})
    assert call[0].numel() <= 2
    assert failure.difference is not None
    names = {"torch": torch, "centered": sums_over_the_first_axis}
    assert isinstance(eval(line, names), Tensor)


def test_the_same_seed_draws_the_same_calls() -> None:
    allowed = AllowedCalls("centered", "centered", calls(x=tensor("B", "D")))
    first = allowed.draw(ChosenNumbers((5, 1, 2)))
    again = allowed.draw(ChosenNumbers((5, 1, 2)))
    assert first.script.steps[0].arguments[0].equal(again.script.steps[0].arguments[0])
    assert search(forgets_the_dtype) is not None
    one, other = search(forgets_the_dtype), search(forgets_the_dtype)
    assert one is not None
    assert other is not None
    assert one.lines == other.lines


def test_calls_that_may_be_refused_are_no_failures() -> None:
    def refuses_all(x: Tensor, shift: Tensor) -> Tensor:
        raise ValueError("no")

    failure = search(refuses_all)
    assert failure is not None
    assert failure.problem == "Your code raised ValueError: no"
    about("centered", except_for="answers")
    assert search(refuses_all) is None
    assert harder_inputs.refused(refuses_all, 1, 2)


def test_a_claim_may_use_the_names_of_the_notebook() -> None:
    seen = []

    @holds("centered", "The notebook's helper is there.")
    def uses_a_helper(
        centered: Answer, x: Tensor, shift: Any = None, *, notebook: Any
    ) -> bool:
        seen.append(notebook["helper"])
        return True

    names = {"centered": centered, "helper": 7}
    result = HarderSearch("centered", names, 3, seconds=20, most_calls=2).run()
    assert result.failure is None
    assert seen == [7, 7]


def test_an_answer_that_is_right_the_second_time_is_described_by_the_first() -> None:
    calls_so_far = []

    def raises_at_first(x: Tensor, shift: Tensor) -> Tensor:
        calls_so_far.append(1)
        if len(calls_so_far) == 1:
            raise LookupError("nothing is kept yet")
        return centered(x, shift)

    failure = search(raises_at_first)
    assert failure is not None
    assert failure.problem == "Your code raised LookupError: nothing is kept yet"


def in_float32_alone(x: Tensor, shift: Tensor) -> Tensor:
    """As a kernel: it has no float64."""
    if x.dtype == torch.float64:
        raise TypeError("no kernel adds float64")
    return centered(x, shift)


def test_kernels_are_asked_in_float32() -> None:
    contract(
        "as_kernel", calls(x=tensor("B", "D"), shift=tensor("D")), dtypes=("float16",)
    )
    names = {"as_kernel": in_float32_alone}
    for is_kernel in (True, False):
        about("as_kernel", is_kernel=is_kernel)
        result = HarderSearch("as_kernel", names, seed=3, seconds=20).run()
        assert (result.failure is None) == is_kernel


def test_tensors_of_a_kernel_are_on_the_device_of_the_notebook() -> None:
    devices = set()

    def on_device(x: Tensor, shift: Tensor) -> Tensor:
        devices.add(x.device.type)
        return torch.ones(x.shape)

    about("centered", is_kernel=True)
    HarderSearch("centered", {"centered": on_device, "device": "meta"}, seed=3).run()
    HarderSearch("centered", {"centered": on_device, "device": "cpu"}, seed=3).run()
    assert devices == {"meta", "cpu"}


def test_where_there_is_no_triton_the_box_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    about("centered", is_kernel=True)
    monkeypatch.setitem(FACTS, "harder_module", harder_inputs.__name__)
    names = {"centered": centered, "triton": NoTriton("use Linux")}
    box = try_harder("centered", names, seed=3, seconds=2.0)
    assert (box.state, box.lines) == ("open", ["use Linux"])
    box = try_harder("centered", {"centered": centered, "triton": torch}, 3, 2.0)
    assert box.state != "open"
