"""Functions and classes whose answers come over the wire: stand-ins for prerequisites, and
functions of a test's own.

The answer key and the suite stay on the trusted side. A stand-in sends its arguments there and
returns the reply, gradients included: its code gives nothing away. Of an object only the number is
in the worker.
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
class StandInReply:
    """The reply to one question, and the number under which its gradients can be asked for."""

    value: Any
    number: int


Ask = Callable[[dict[str, Any], Any], StandInReply]
"""Sends a question with a value over the wire and returns the reply."""


class StandInRefused(ValueError):
    """The arguments of a stand-in cannot be right."""


class FunctionRaised(RuntimeError):
    """A function of the test's own raised on these arguments; the text is its exception's."""


class StandInObject:
    """An object of a class that is stood in for."""

    _stand_in: int


def remote_function(question: dict[str, Any], ask: Ask) -> Callable[..., Any]:
    """A function that sends each call to the trusted side as this question."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return _call(ask, question, args, kwargs)

    return function


def _call(
    ask: Ask, question: dict[str, Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Ask for the answer to a call. Where arguments require gradients, so does the answer, and its
    backward pass is another question.
    """
    inputs = [
        leaf
        for leaf in leaves([args, kwargs])
        if is_tensor(leaf) and leaf.requires_grad
    ]
    reply = ask(question, [list(args), kwargs])
    if not inputs:
        return reply.value
    from autograder.wire.gradients import linked

    def pull_back(gradients: Any) -> Any:
        return ask({"backward": reply.number}, list(gradients)).value

    return linked(reply.value, inputs, pull_back)


def make_stand_in(name: str, ask: Ask, replaced: Any = None) -> Callable[..., Any]:
    """A stand-in for a function of the answer key, made to look like the student's function that
    the stand-in replaces.
    """
    stand_in = remote_function({"name": name}, ask)
    stand_in.__name__ = stand_in.__qualname__ = name
    if isinstance(replaced, FunctionType):
        functools.update_wrapper(stand_in, replaced)
        del stand_in.__wrapped__  # type: ignore[attr-defined]  # would hand out the student's function
        code = replaced.__code__
        stand_in.__code__ = stand_in.__code__.replace(
            co_name=code.co_name,
            co_filename=code.co_filename,
            co_firstlineno=code.co_firstlineno,
        )
        with contextlib.suppress(TypeError, ValueError):
            stand_in.__signature__ = inspect.signature(replaced)  # type: ignore[attr-defined]
    return stand_in


def make_stand_in_class(
    name: str, methods: Sequence[str], ask: Ask, replaced: Any = None
) -> type[StandInObject]:
    """A class called `name` whose objects live on the trusted side. Module and text are those of
    the student's class; bases and methods are not.
    """

    def construct(self: StandInObject, *args: Any, **kwargs: Any) -> None:
        reply = ask({"name": name}, [list(args), kwargs])
        self._stand_in = reply.value._stand_in

    def get_attribute(self: StandInObject, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        question = {"object": self._stand_in, "attribute": attribute}
        try:
            return ask(question, [[], {}]).value
        except StandInRefused:
            raise AttributeError(
                f"{name!r} object has no attribute {attribute!r}"
            ) from None

    def make_method(method: str) -> Callable[..., Any]:
        def call(self: StandInObject, *args: Any, **kwargs: Any) -> Any:
            question = {"object": self._stand_in, "method": method}
            return _call(ask, question, args, kwargs)

        call.__name__ = method
        return call

    members: dict[str, Any] = {"__init__": construct, "__getattr__": get_attribute}
    members |= {method: make_method(method) for method in methods}
    members["__module__"] = getattr(replaced, "__module__", "student")
    members["__doc__"] = getattr(replaced, "__doc__", None)
    return type(name, (StandInObject,), members)


def as_data(value: Any) -> Any:
    """Arguments as they can cross the wire: objects of the notebook that only hold data (a
    configuration) become namespaces.
    """
    return mapped(_leaf_as_data, value)


def _leaf_as_data(leaf: Any) -> Any:
    if isinstance(leaf, StandInObject):
        return HandleReference(leaf._stand_in, type(leaf).__name__)
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        values = {}
        for field in dataclasses.fields(leaf):
            values[field.name] = as_data(getattr(leaf, field.name))
        return SimpleNamespace(**values)
    kind = type(leaf)
    if (
        kind.__module__ == "student"
        and hasattr(leaf, "__dict__")
        and not _has_public_method(kind)
    ):
        return SimpleNamespace(**as_data(vars(leaf)))
    return leaf


def _has_public_method(kind: type) -> bool:
    return any(
        callable(member)
        for name, member in vars(kind).items()
        if not name.startswith("_")
    )
