"""Stand-ins for prerequisites that failed: functions whose answers come over the wire.

The answer key stays where it is; a stand-in sends its arguments to the trusted side and returns what comes back,
gradients included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.utils._pytree import tree_flatten, tree_unflatten

Ask = Callable[[dict[str, Any], Any], Any]
"""Sends a question with a value over the wire and returns the answer's value."""


class StandInRefused(ValueError):
    """The arguments of a stand-in cannot be right."""


class _Crossing(Function):
    """Links what came back to the arguments that it was made from."""

    @staticmethod
    def forward(ctx: Any, pull: Callable[[tuple[Any, ...]], list[Any]], outputs: list[Tensor], *inputs: Tensor) -> Any:
        ctx.pull = pull
        return tuple(output.detach() for output in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, None, *ctx.pull(gradients))


def make_stand_in(name: str, ask: Ask) -> Callable[..., Any]:
    """A function called `name` that asks the trusted side."""

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        inputs = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor) and leaf.requires_grad]
        answer = ask({"stand_in": name}, [list(args), kwargs])
        value, number = answer["value"], answer["number"]
        leaves, structure = tree_flatten(value)
        linked = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.requires_grad]
        if not inputs or not linked:
            return value

        def pull(gradients: tuple[Any, ...]) -> list[Any]:
            return list(ask({"stand_in_backward": number}, list(gradients))["value"])

        outputs = _Crossing.apply(pull, [leaves[i] for i in linked], *inputs)  # type: ignore[no-untyped-call]
        for i, output in zip(linked, outputs, strict=True):
            leaves[i] = output
        return tree_unflatten(leaves, structure)

    stand_in.__name__ = stand_in.__qualname__ = name
    return stand_in
