"""Draws calls for harder inputs, and draws them smaller: the calls that a question allows.

Whatever is drawn is drawn by whole numbers. A call is made smaller by drawing it again with smaller
numbers, so every smaller call is one that the question allows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from autograder.suite.contract_calls import FULL, Form, Play, allows_all
from autograder.suite.contract_draws import CallRejected, Scope, WholeNumbers
from autograder.suite.scripts import Script, is_float_tensor

_TAME = 40
"""Percent of calls with numbers of the style "normal" alone, for gradients."""
MOST_SMALLER = 400
"""Calls that are tried to make one smaller."""
_FEW_NUMBERS = 12
"""Tensors of at most so many numbers are made simpler number by number."""


class ChosenNumbers:
    """A source of whole numbers: first those of a list, as far as they fit, and then random or
    lowest ones.

    Attributes:
        made: all numbers so far.
    """

    def __init__(
        self,
        first: Sequence[int] = (),
        further: random.Random | None = None,
    ) -> None:
        self.made: list[int] = []
        self._first = first
        self._further = further

    def __call__(
        self,
        low: int,
        high: int,
    ) -> int:
        """A whole number from low to high, both included."""
        place = len(self.made)
        if place < len(self._first):
            number = min(max(self._first[place], low), high)
        elif self._further is not None:
            number = self._further.randint(low, high)
        else:
            number = low
        self.made.append(number)
        return number


@dataclass(eq=False, repr=False)
class AllowedCalls:
    """What a question allows: a contract, as the notebook needs it.

    Attributes:
        form: draws the calls of one script.
        sizes: smallest and largest size, by name.
        gradients: whether gradients are part of the answer.
        has_choices: whether an answer may choose among equal numbers, so that rounding decides.
        allowed_if: says of the arguments of a call whether it is allowed.
    """

    question: str
    function: str
    form: Form
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    dtypes: Sequence[str] = FULL
    gradients: bool = False
    has_choices: bool = False
    allowed_if: Callable[..., bool] | None = None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The kinds of the arguments, by name; none where a function draws the calls."""
        parameters: Mapping[str, Any] = getattr(
            self.form,
            "parameters",
            {},
        )
        return parameters

    def draw(self, numbers: WholeNumbers) -> DrawnCalls:
        """Draw a script. Raises: CallRejected."""
        scope = Scope(
            numbers,
            self.sizes,
            self.dtypes,
        )
        scope.is_tame = scope.happens(_TAME)
        play = Play()
        self.form(
            scope,
            play,
            self.function,
        )
        script = Script(
            tuple(play.steps),
            dict(scope.settings),
            play.helpers,
        )
        drawn = DrawnCalls(
            self,
            script,
            scope.free,
            is_tame=scope.is_tame,
        )
        if not drawn.is_allowed():
            raise CallRejected
        return drawn


@dataclass(eq=False, repr=False)
class DrawnCalls:
    """A script that was drawn.

    Attributes:
        free: the tensors of its arguments that may have any floats.
        is_tame: whether all floats are of the style "normal".
    """

    allowed: AllowedCalls
    script: Script
    free: Sequence[Tensor]
    is_tame: bool

    def is_allowed(self) -> bool:
        """Whether `allowed_if` takes all calls of the question's function."""
        return allows_all(self.allowed.allowed_if, self.allowed.function, self.script)

    def with_tensor(
        self,
        old: Tensor,
        new: Tensor,
    ) -> DrawnCalls:
        """The same calls with another tensor in one's place."""
        script = self.script.map_arguments(lambda leaf: new if leaf is old else leaf)
        free = [new if tensor is old else tensor for tensor in self.free]
        return DrawnCalls(
            self.allowed,
            script,
            free,
            self.is_tame,
        )


StillFails = Callable[[DrawnCalls], bool]
"""Whether smaller calls show the same."""


class SmallerCalls:
    """Looks for the smallest calls that still fail.

    Args:
        drawn: calls that fail.
        numbers: the whole numbers that they were drawn with.
        fails: says of other calls whether they fail in the same way.
        has_time: whether there is time for another try.
    """

    def __init__(
        self,
        drawn: DrawnCalls,
        numbers: Sequence[int],
        fails: StillFails,
        has_time: Callable[[], bool],
    ) -> None:
        self.drawn = drawn
        self._numbers = list(numbers)
        self._fails = fails
        self._has_time = has_time
        self._tries = 0

    def find(self) -> DrawnCalls:
        """The smallest calls that were found."""
        while self._shrink_numbers():
            pass
        self._simplify_tensors()
        return self.drawn

    def _shrink_numbers(self) -> bool:
        """Go once through all numbers; returns whether any became smaller."""
        has_moved = False
        place = 0
        while place < len(self._numbers):
            for smaller in _smaller_numbers(self._numbers[place]):
                if self._try_numbers(
                    [*self._numbers[:place], smaller, *self._numbers[place + 1 :]]
                ):
                    has_moved = True
                    break
            place += 1
        return has_moved

    def _try_numbers(self, numbers: Sequence[int]) -> bool:
        if self._tries >= MOST_SMALLER or not self._has_time():
            return False
        source = ChosenNumbers(numbers)
        try:
            drawn = self.drawn.allowed.draw(source)
        except CallRejected:
            return False
        is_smaller = (len(source.made), source.made) < (
            len(self._numbers),
            self._numbers,
        )
        if is_smaller and self._try(drawn):
            self._numbers = source.made
            return True
        return False

    def _try(self, drawn: DrawnCalls) -> bool:
        """Keep calls that are allowed and fail."""
        if self._tries >= MOST_SMALLER or not self._has_time():
            return False
        self._tries += 1
        if not drawn.is_allowed() or not self._fails(drawn):
            return False
        self.drawn = drawn
        return True

    def _simplify_tensors(self) -> None:
        """Plain layouts; then zeros, ones or whole numbers for each tensor, and for its numbers."""
        for place in range(len(self.drawn.free)):
            tensor = self.drawn.free[place]
            if not tensor.is_contiguous():
                self._try(self.drawn.with_tensor(tensor, tensor.contiguous()))
            for simplify in _SIMPLER:
                tensor = self.drawn.free[place]
                simple = simplify(tensor)
                if bool((simple == tensor).all()):
                    break
                if self._try(self.drawn.with_tensor(tensor, simple)):
                    break
            self._simplify_elements(place)

    def _simplify_elements(self, place: int) -> None:
        count = self.drawn.free[place].numel()
        for element in range(count if 1 < count <= _FEW_NUMBERS else 0):
            tensor = self.drawn.free[place]
            simple = tensor.clone()
            if simple.flatten()[element] != 0 and simple.is_contiguous():
                simple.view(-1)[element] = 0
                self._try(self.drawn.with_tensor(tensor, simple))


def _smaller_numbers(number: int) -> Iterator[int]:
    """0 first, then numbers that come near."""
    yield from dict.fromkeys(
        n for n in (0, 1, number // 2, number - 1) if 0 <= n < number
    )


_SIMPLER: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda tensor: tensor * 0,
    lambda tensor: tensor * 0 + 1,
    lambda tensor: tensor.round().clamp(-2, 2),
    lambda tensor: tensor.round(),
    lambda tensor: (10 * tensor).round() / 10,
)


def float_arguments(script: Script) -> list[Tensor]:
    """The float tensors among the arguments."""
    return [leaf for leaf in script.leaves() if is_float_tensor(leaf)]
