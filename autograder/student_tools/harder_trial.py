"""Calls of a student's function about which claims are made, and what a broken claim is."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from autograder.student_tools.answer_differences import CheckDifference, compare_answers
from autograder.student_tools.harder_draws import DrawnCalls, float_arguments
from autograder.suite.script_steps import play_step
from autograder.suite.scripts import Script, ScriptStep, is_float_tensor, map_leaves
from autograder.wire.trees import leaves

SHARE = 1e-5
"""The difference in float64 that is no mistake, as a share of the largest number: an answer may
compute in float32 inside.
"""
_SHARE_OF_KERNELS = 1e-4
"""The same in float32, the widest numbers of kernels."""


class ClaimBroken(AssertionError):
    """A claim that does not hold of a call.

    Attributes:
        difference: what differs; None where the sentence says all.
    """

    def __init__(
        self,
        sentence: str,
        difference: CheckDifference | None = None,
    ) -> None:
        super().__init__(sentence)
        self.difference = difference


@dataclass(eq=False, repr=False)
class HarderTrial:
    """Calls of a student's function, about which claims are made.

    Attributes:
        names: the names of the notebook.
        refuses: arguments and axes that must fit: "w_x.0".
        is_kernel: whether the function launches kernels: these have no float64, and their tensors
            are on the notebook's `device`.
    """

    drawn: DrawnCalls
    names: Mapping[str, Any]
    refuses: Sequence[str] = ()
    is_kernel: bool = False
    _answers: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def script(self) -> Script:
        """The calls."""
        return self.drawn.script

    def play(self, script: Script) -> list[Any]:
        """The answers to other calls; raises what the student's code raises."""
        made: list[Any] = []
        answers = []
        helpers: dict[str, Any] = {}
        if script.helpers:
            helpers["torch"] = torch
            exec(
                compile(
                    script.helpers,
                    "<helpers>",
                    "exec",
                ),
                helpers,
            )

        def find(step: ScriptStep) -> Any:
            if step.kind == "helper":
                return helpers[step.name]
            return self.find_function(step)

        for step in script.steps:
            answer, made_object = play_step(
                step,
                made,
                find,
            )
            answers.append(answer.value)
            made.append(made_object)
        return answers

    @property
    def answers(self) -> list[Any]:
        """The answers to the calls as they were drawn."""
        if "drawn" not in self._answers:
            self._answers["drawn"] = self.play(self.script)
        return self._answers["drawn"]

    @property
    def wide_answers(self) -> list[Any]:
        """The answers to the calls in the widest numbers."""
        if "wide" not in self._answers:
            self._answers["wide"] = self.play(self.script.map_arguments(self.widen))
        return self._answers["wide"]

    def widen(self, leaf: Any) -> Any:
        """A float tensor, or a float dtype, in float64, or in float32 for a kernel."""
        return _in_dtype(leaf, torch.float32 if self.is_kernel else torch.float64)

    @property
    def share(self) -> float:
        """The difference in the widest numbers that is no mistake, as a share of the largest."""
        return _SHARE_OF_KERNELS if self.is_kernel else SHARE

    @property
    def dtype(self) -> torch.dtype | None:
        """The one dtype of all float arguments; None where there are none, or several."""
        dtypes = {tensor.dtype for tensor in float_arguments(self.script)}
        dtypes |= {
            leaf for leaf in self.script.leaves() if isinstance(leaf, torch.dtype)
        }
        return dtypes.pop() if len(dtypes) == 1 else None

    @property
    def floor(self) -> float:
        """The largest float among the arguments, at most 1."""
        sizes = [largest_number(tensor) for tensor in float_arguments(self.script)]
        return min(1.0, max(sizes, default=1.0))

    def find_function(self, step: ScriptStep) -> Any:
        """The notebook's function of a step; a kernel's takes and gives tensors of the CPU."""
        function = self.names[step.name]
        device = self.names.get("device", "cpu") if self.is_kernel else "cpu"
        if device == "cpu":
            return function
        return functools.partial(_call_on, device, function)

    def first_call(self) -> ScriptStep | None:
        """The first call of the question's function; None where there is none."""
        for step in self.script.steps:
            is_call = step.kind == "call" and step.on is None
            if is_call and step.name == self.drawn.allowed.function:
                return step
        return None

    def the_call(self) -> ScriptStep | None:
        """The one call of the question's function; None where the calls are several."""
        return self.first_call() if len(self.script.steps) == 1 else None

    def bound_arguments(self, step: ScriptStep) -> dict[str, Any]:
        """The arguments of a call by name."""
        signature = inspect.signature(self.names[step.name])
        return dict(signature.bind(*step.arguments, **step.keywords).arguments)


Claim = Callable[[HarderTrial], None]
"""Raises ClaimBroken where the claim does not hold."""


def _in_dtype(leaf: Any, wide: torch.dtype) -> Any:
    """A float tensor, or a float dtype, in another one; anything else as it is."""
    if isinstance(leaf, torch.dtype):
        return wide if leaf.is_floating_point else leaf
    return leaf.to(wide) if is_float_tensor(leaf) else leaf


def _call_on(
    device: str,
    function: Callable[..., Any],
    *arguments: Any,
    **keywords: Any,
) -> Any:
    """Call a function with its tensors on a device; the answer comes back to the CPU."""

    def there(leaf: Any) -> Any:
        return leaf.to(device) if isinstance(leaf, Tensor) else leaf

    def here(leaf: Any) -> Any:
        return leaf.cpu() if isinstance(leaf, Tensor) else leaf

    moved = map_leaves(there, list(arguments))
    answer = function(*moved, **map_leaves(there, keywords))
    return map_leaves(here, answer)


def largest_number(value: Any) -> float:
    """The largest finite number in an answer, without its sign; 0 where there is none."""
    largest = 0.0
    for leaf in leaves(value):
        if isinstance(leaf, Tensor) and leaf.numel() and leaf.dtype != torch.bool:
            finite = leaf.detach().double().abs()
            finite = finite[finite.isfinite()]
            largest = max(largest, float(finite.max()) if finite.numel() else 0.0)
        elif isinstance(leaf, float) and math.isfinite(leaf):
            largest = max(largest, abs(leaf))
    return largest


def find_difference(
    actual: Any, expected: Any, share: float = SHARE, floor: float = 0.0
) -> CheckDifference | None:
    """How two answers differ by more than a share of the largest number; None where they do not."""
    both_lists = all(isinstance(value, (list, tuple)) for value in (actual, expected))
    if both_lists and len(actual) == len(expected):
        for mine, other in zip(
            actual,
            expected,
            strict=True,
        ):
            if difference := find_difference(
                mine,
                other,
                share,
                floor,
            ):
                return difference
        return None
    if (
        isinstance(actual, dict)
        and isinstance(expected, dict)
        and actual.keys() == expected.keys()
    ):
        return find_difference(
            [actual[key] for key in expected], list(expected.values()), share, floor
        )
    is_exact = isinstance(expected, Tensor) and not is_float_tensor(expected)
    largest = 0.0 if is_exact else max(largest_number(expected), floor)
    return compare_answers(
        _detached(actual),
        _detached(expected),
        share * largest,
    )


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def claim_same(
    sentence: str,
    actual: Any,
    expected: Any,
    share: float,
    floor: float,
) -> None:
    """Claim that two answers are the same. Raises: ClaimBroken."""
    difference = find_difference(
        actual,
        expected,
        share,
        floor,
    )
    if difference is not None:
        raise ClaimBroken(sentence, difference)


def with_arguments(
    trial: HarderTrial,
    step: ScriptStep,
    arguments: Mapping[str, Any],
) -> Script:
    """The one call of a trial with other arguments, by name where that is possible."""
    parameters = inspect.signature(trial.names[step.name]).parameters
    by_place = [
        name
        for name, parameter in parameters.items()
        if name in arguments and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    keywords = {name: arguments[name] for name in arguments if name in step.keywords}
    placed = tuple(arguments[name] for name in by_place if name not in keywords)
    return Script(
        (
            ScriptStep(
                step.name,
                placed,
                keywords,
            ),
        ),
        {},
        trial.script.helpers,
    )


def replacing(tensors: Mapping[int, Tensor]) -> Callable[[Any], Any]:
    """Puts tensors in the places of those with these ids."""

    def replace(leaf: Any) -> Any:
        return tensors.get(id(leaf), leaf)

    return replace


def short_dtype(dtype: torch.dtype) -> str:
    """A dtype without the name of its library: float32."""
    return str(dtype).removeprefix("torch.")
