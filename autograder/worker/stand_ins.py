"""Functions and classes whose answers come over the wire: stand-ins for prerequisites, and
functions of a test's own.

The answer key and the suite stay where they are. What stands here sends its arguments to the
trusted side and returns what comes back, gradients included; there is nothing else in it to read.
Of an object only the number is here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType, SimpleNamespace
from typing import Any

from autograder.wire.libraries import is_tensor
from autograder.wire.trees import leaves, mapped
from autograder.wire.values import HandleReference


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back for one question, and the number that names it when its gradients are asked
    for.
    """

    value: Any
    number: int


Ask = Callable[[dict[str, Any], Any], Answered]
"""Sends a question with a value over the wire and returns its answer."""


class StandInRefused(ValueError):
    """The arguments of a stand-in cannot be right."""


class FunctionRaised(RuntimeError):
    """A function of the test's own raised on these arguments; the text is its exception's."""


class StandInObject:
    """An object of a class that is stood in for."""

    _stand_in: int


def _called(ask: Ask, question: dict[str, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The answer to a call, a function of its arguments where they want gradients."""
    inputs = [leaf for leaf in leaves([args, kwargs]) if is_tensor(leaf) and leaf.requires_grad]
    answer = ask(question, [list(args), kwargs])
    if not inputs:
        return answer.value
    from autograder.wire.gradients import linked

    return linked(
        answer.value,
        inputs,
        lambda gradients: ask({"backward": answer.number}, list(gradients)).value,
    )


def make_stand_in(name: str, ask: Ask, own: Any = None) -> Callable[..., Any]:
    """A function that asks the trusted side, and looks like the student's `own` from outside."""

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        return _called(ask, {"name": name}, args, kwargs)

    stand_in.__name__ = stand_in.__qualname__ = name
    if isinstance(own, FunctionType):
        functools.update_wrapper(stand_in, own)
        del stand_in.__wrapped__  # type: ignore[attr-defined]  # which would hand out the student's own
        code = own.__code__
        stand_in.__code__ = stand_in.__code__.replace(
            co_name=code.co_name, co_filename=code.co_filename, co_firstlineno=code.co_firstlineno
        )
        with contextlib.suppress(TypeError, ValueError):
            stand_in.__signature__ = inspect.signature(own)  # type: ignore[attr-defined]
    return stand_in


def make_function(number: int, ask: Ask) -> Callable[..., Any]:
    """A function of a test's own, by the number that it has on the trusted side."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return _called(ask, {"function": number}, args, kwargs)

    return function


def make_stand_in_class(
    name: str, methods: Sequence[str], ask: Ask, own: Any = None
) -> type[StandInObject]:
    """A class called `name` whose objects live on the trusted side. It has the module and the text
    of the student's `own`, and can be told from it all the same: by its bases and its methods.
    """

    def construct(self: StandInObject, *args: Any, **kwargs: Any) -> None:
        self._stand_in = ask({"name": name}, [list(args), kwargs]).value._stand_in

    def attribute(self: StandInObject, asked: str) -> Any:
        if asked.startswith("_"):
            raise AttributeError(asked)
        try:
            return ask({"object": self._stand_in, "attribute": asked}, [[], {}]).value
        except StandInRefused:
            raise AttributeError(f"{name!r} object has no attribute {asked!r}") from None

    def method(called: str) -> Callable[..., Any]:
        def call(self: StandInObject, *args: Any, **kwargs: Any) -> Any:
            return _called(ask, {"object": self._stand_in, "method": called}, args, kwargs)

        call.__name__ = called
        return call

    members: dict[str, Any] = {"__init__": construct, "__getattr__": attribute}
    members |= {called: method(called) for called in methods}
    members |= {
        "__module__": getattr(own, "__module__", "student"),
        "__doc__": getattr(own, "__doc__", None),
    }
    return type(name, (StandInObject,), members)


def crossing(value: Any) -> Any:
    """Arguments as they can cross: objects of the notebook that only hold data (a configuration) by
    what they hold.
    """
    return mapped(_plain, value)


def _plain(leaf: Any) -> Any:
    if isinstance(leaf, StandInObject):
        return HandleReference(leaf._stand_in, type(leaf).__name__)
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        return SimpleNamespace(
            **{f.name: crossing(getattr(leaf, f.name)) for f in dataclasses.fields(leaf)}
        )
    kind = type(leaf)
    if (
        kind.__module__ == "student"
        and hasattr(leaf, "__dict__")
        and not any(callable(m) for m in _own(kind))
    ):
        return SimpleNamespace(**crossing(vars(leaf)))
    return leaf


def _own(kind: type) -> list[Any]:
    """The public members of a class."""
    return [member for name, member in vars(kind).items() if not name.startswith("_")]
