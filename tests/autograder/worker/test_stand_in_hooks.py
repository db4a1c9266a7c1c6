"""Hooks in the functions of questions: with them, a function is still what the student wrote."""

from __future__ import annotations

import ast
import builtins
import inspect
from typing import Any

import pytest

from autograder.wire.signatures import signature_digest
from autograder.worker.cells import describe_error, run_cell
from autograder.worker.stand_in_hooks import StandInHooks, compile_with_hooks
from autograder.worker.stand_ins import StandInReply, make_stand_in


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> StandInHooks:
    for name in ("__stood_in__", "__stand_in_answer__"):
        monkeypatch.setattr(
            builtins, name, None, raising=False
        )  # and taken away afterwards
    return StandInHooks()


def run(source: str, *names: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(
        compile_with_hooks(source, "<cell f>", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, names),
        namespace,
    )
    return namespace


@pytest.mark.parametrize(
    ("source", "positional", "named"),
    [
        (
            "def f(a, /, b, *rest, c=3, **more):\n    return 0",
            (1, 2, 5),
            {"c": 3, "d": 4},
        ),
        ("f = lambda a, /, b, *rest, c=3, **more: 0", (1, 2, 5), {"c": 3, "d": 4}),
        ("f: object = lambda a, b, x=5, **more: 0", (1, 2, 5), {"d": 4}),
        (
            "try:\n    def f(a, b, x, d):\n        return 0\nfinally:\n    pass",
            (1, 2, 5, 4),
            {},
        ),
    ],
)
def test_whoever_answers_gets_what_the_function_was_called_with(
    hooks: StandInHooks, source: str, positional: tuple[int, ...], named: dict[str, int]
) -> None:
    f = run(source, "f")["f"]
    assert f(1, 2, 5, d=4) == 0
    assert hooks.stand_in(f, lambda *args, **kwargs: (args, kwargs))
    assert f(1, 2, 5, d=4) == (positional, named)


@pytest.mark.parametrize(
    "source",
    [
        "def g(a):\n    return 0\nf = g",
        "import functools\n@functools.cache\ndef f(a):\n    return 0",
        "def f(a):\n    yield a",
        "async def f(a):\n    return a",
        "class f:\n    def f(self, a):\n        return 0",
        "def g():\n    def f(a):\n        return 0\n    return f\nf = g()",
    ],
)
def test_other_forms_do_not_ask(hooks: StandInHooks, source: str) -> None:
    assert not hooks.stand_in(run(source, "f")["f"], lambda: 0)


def test_a_copy_of_the_same_text_is_another_function(hooks: StandInHooks) -> None:
    first, second = (run("def f():\n    return 1", "f")["f"] for _ in range(2))
    assert first.__code__ == second.__code__
    hooks.stand_in(first, lambda: 2)
    assert (first(), second()) == (2, 1)


def test_names_lines_docstring_and_locals_are_those_of_the_text(
    hooks: StandInHooks,
) -> None:
    source = 'def f(a):\n    """Doc."""\n    b = a\n    return locals()\n'
    f, plain = run(source, "f")["f"], run(source)["f"]
    assert f(1) == {"a": 1, "b": 1}
    assert f.__doc__ == "Doc."
    for name in (
        "co_varnames",
        "co_argcount",
        "co_firstlineno",
        "co_filename",
        "co_flags",
        "co_nlocals",
    ):
        assert getattr(f.__code__, name) == getattr(plain.__code__, name), name


def test_errors_have_the_students_own_lines(hooks: StandInHooks) -> None:
    names: dict[str, Any] = {}
    assert run_cell("f", "def f(a):\n    return 1 / a\n", names, ("f",)) is None
    with pytest.raises(ZeroDivisionError) as caught:
        names["f"](0)
    assert describe_error(caught.value)["frames"] == [
        "cell f, line 2, in f: return 1 / a"
    ]


def test_an_error_of_a_stand_in_has_no_line_of_the_function_in_whose_place_it_answers(
    hooks: StandInHooks,
) -> None:
    def refuses(*_: Any) -> None:
        raise ValueError("these arguments cannot be right")

    names: dict[str, Any] = {}
    run_cell("f", "def f(a):\n    return 1 / a\n", names, ("f",))
    run_cell("g", "def g(a):\n    return f(a)\n", names, ("f",))
    hooks.stand_in(names["f"], refuses)
    with pytest.raises(ValueError, match="cannot be right") as caught:
        names["g"](0)
    assert describe_error(caught.value)["frames"] == [
        "cell g, line 2, in g: return f(a)"
    ]


@pytest.mark.parametrize(
    "source",
    ["def f(:\n    pass", "def f():\n    return\nreturn 3", "def f(a, a):\n    pass"],
)
def test_what_is_not_python_is_told_as_without(source: str) -> None:
    with pytest.raises(SyntaxError) as plain:
        compile(source, "<cell f>", "exec", dont_inherit=True)
    with pytest.raises(SyntaxError) as hooked:
        compile_with_hooks(source, "<cell f>", 0, ("f",))
    assert (hooked.value.msg, hooked.value.lineno) == (
        plain.value.msg,
        plain.value.lineno,
    )


def test_signatures_agree_where_names_kinds_and_defaults_do() -> None:
    def key(z, dim=-1): ...  # type: ignore[no-untyped-def]  # as students write them

    assert signature_digest(key) == signature_digest(lambda z, dim=-1: z)
    for other in (
        lambda z, dim=0: z,
        lambda z, dim: z,
        lambda x, dim=-1: x,
        lambda z, *, dim=-1: z,
        lambda z: z,
    ):
        assert signature_digest(other) != signature_digest(key)
    assert signature_digest(lambda z, dim=-1.0: z) != signature_digest(key)
    assert signature_digest(lambda z, dim=[]: z) == "" == signature_digest(3)  # type: ignore[arg-type]


def test_a_stand_in_of_a_function_that_does_not_ask_has_its_looks() -> None:
    own = run("def f(scores, axis=0):\n    'Mine.'\n    return scores")["f"]
    stand_in = make_stand_in(
        "f", lambda question, value: StandInReply((question, value), 0), own
    )
    assert stand_in(1, dim=2) == ({"name": "f"}, [[1], {"dim": 2}])
    for name in (
        "__name__",
        "__qualname__",
        "__module__",
        "__doc__",
        "__annotations__",
    ):
        assert getattr(stand_in, name) == getattr(own, name), name
    for name in ("co_name", "co_filename", "co_firstlineno"):
        assert getattr(stand_in.__code__, name) == getattr(own.__code__, name), name
    assert inspect.signature(stand_in) == inspect.signature(own)
    assert not hasattr(stand_in, "__wrapped__")
