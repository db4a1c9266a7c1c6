"""The proxy: data, handles and gradients cross and come back; nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from autograder.basics.errors import (
    StudentCrashed,
    StudentError,
    StudentFault,
    StudentMissing,
    StudentTimeout,
)
from autograder.course import Limits
from autograder.grading.bench import Bench
from autograder.sandbox.stand_in_answers import StandIns
from autograder.sandbox.student import Handle, Student
from autograder.sandbox.worker_process import Worker
from autograder.suite.calls import describe_last, last_call, start_log
from autograder.wire.frames import Frame

SOURCE = """
import torch, numpy

def same(x):
    return x

def shape_of(x):
    return x.shape, x.stride(), x.dtype

def scaled(x, by):
    return {"y": x * by, "n": [1, (2.5, None)]}

def grows(x):
    x.append(1)

def fails():
    raise KeyError("no such key")

def rude():
    class Loud(Exception):
        def __str__(self):
            raise ValueError
    raise Loud

def spins():
    while True:
        pass

def product(a, b):
    return a @ b

def rows(a, b):
    return torch.stack([a[i] @ b for i in range(a.shape[0])])

def apply(f, x):
    return f(x) + 1

def run(x, edit, refuse=False):
    eval(edit) if "=" not in edit else exec(edit)
    if refuse:
        raise ValueError("refused all the same")

class Duck:
    def __getattr__(self, name):
        return lambda *args: True

    def __eq__(self, other):
        return True

def duck(x):
    return Duck()

def look_into(f):
    import inspect, linecache
    seen = [str(linecache.cache), repr(f), str(getattr(f, "__dict__", ""))]
    try:
        seen.append(inspect.getsource(f))
    except OSError as error:
        seen.append(str(error))
    closure = [cell.cell_contents for cell in f.__closure__ or ()]
    return " ".join([*seen, str(closure), str(f.__defaults__), str(f.__doc__)])

def use_helper(x):
    return helper(x).sum()

def lend_own_function(x):
    return helper(lambda t: 3 * t * t, x)

class Config:
    def __init__(self, factor):
        self.factor = factor

def use_box(box, x, factor):
    assert len(box) == 2
    return helper(box.add(x), by=Config(factor))

class Box:
    def __init__(self, value):
        self.value = value
        self.w = torch.ones(2)

    def double(self):
        self.value = self.value * 2
        return self

    def __call__(self, x):
        return x + self.value

    def call(self, x):
        return x - self.value
"""


@pytest.fixture
def worker(bench: Bench) -> Iterator[Worker]:
    made = Worker(bench.host.clients[0], bench.course.limits)
    loaded = made.request(
        {"op": "load", "cells": [["a", SOURCE]], "forbid": []}, {}, 5.0, "the cell"
    )
    assert loaded.header["ok"] is True
    yield made
    made.kill()


@pytest.fixture
def student(worker: Worker) -> Student:
    start_log({"Box": type})
    return Student.in_worker(worker, 2.0, {"same": "def same(x): ..."})


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        -(2**70),
        2.5,
        float("inf"),
        1 + 2j,
        "text ✓",
        [1, [2.0, "a"]],
        (1, (2,)),
        {"a": 1, (1, 2): [None]},
        {1, 2},
        torch.float16,
        torch.tensor([[1, 2], [3, 4]]),
        torch.ones(0, 3),
        torch.tensor(1.5),
        np.arange(6).reshape(2, 3),
        torch.tensor([True, False]),
        torch.ones(2, dtype=torch.float16),
    ],
)
def test_data_crosses_and_comes_back(student: Student, value: Any) -> None:
    back = student.same(value)
    assert type(back) is type(value)
    if isinstance(value, torch.Tensor):
        assert torch.equal(back, value)
        assert back.dtype == value.dtype
    elif isinstance(value, np.ndarray):
        assert np.array_equal(back, value)
    else:
        assert back == value


def test_a_configuration_is_a_plain_object_there(student: Student) -> None:
    back = student.same(SimpleNamespace(num_heads=3, tied=True))
    assert (back.num_heads, back.tied) == (3, True)


def test_strides_survive(student: Student) -> None:
    x = torch.arange(24.0).view(2, 3, 4)
    assert student.shape_of(x.transpose(0, 2)) == ((4, 3, 2), (1, 4, 12), torch.float32)
    assert student.shape_of(x[:, ::2, 1:])[1] == (12, 8, 1)
    assert student.shape_of(torch.ones(3, 1).expand(3, 5))[1] == (1, 0)
    assert torch.equal(student.same(x.permute(2, 0, 1)), x.permute(2, 0, 1))


def test_results_nest(student: Student) -> None:
    back = student.scaled(torch.ones(2), by=3)
    assert torch.equal(back["y"], torch.tensor([3.0, 3.0]))
    assert back["n"] == [1, (2.5, None)]


def test_arguments_are_copies_and_changes_are_noticed(student: Student) -> None:
    mine = [0]
    student.grows(mine)
    call = last_call()
    assert mine == [0]
    assert call is not None
    assert call.changed == ("x",)


def test_errors_name_the_students_own_lines(student: Student) -> None:
    with pytest.raises(StudentError) as caught:
        student.fails()
    error = caught.value
    assert (error.type_name, error.message) == ("KeyError", "'no such key'")
    assert error.frames == ('cell a, line 17, in fails: raise KeyError("no such key")',)
    assert error.kinds[:3] == ("KeyError", "LookupError", "Exception")


def test_an_exception_that_cannot_be_read_is_still_one(student: Student) -> None:
    with pytest.raises(StudentError, match="the exception has no readable message"):
        student.rude()


def test_a_missing_name_says_so(student: Student) -> None:
    with pytest.raises(StudentMissing, match="`nothing` is not defined"):
        student.nothing(1)


def test_a_hang_kills_the_worker_and_only_it(student: Student, worker: Worker) -> None:
    with pytest.raises(StudentTimeout, match="spins did not end within 2 s"):
        student.spins()
    assert not worker.alive
    with pytest.raises(StudentCrashed):
        student.same(1)


def test_gradients_cross(student: Student) -> None:
    a, b = (
        torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 2, dtype=torch.float64),
    )
    weights = torch.randn(3, 2, dtype=torch.float64)
    (student.product(a, b) * weights).sum().backward()
    assert a.grad is not None
    assert torch.allclose(a.grad, weights @ b.T)


def test_gradients_flow_through_two_calls_and_on_our_side(student: Student) -> None:
    a = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    eye = torch.eye(3, dtype=torch.float64)
    student.product(student.product(a, eye) * 2, eye).sum().backward()
    assert a.grad is not None
    assert torch.equal(a.grad, torch.full((3, 3), 2.0, dtype=torch.float64))


def test_handles_stay_and_are_driven_from_here(student: Student) -> None:
    box = student.Box(3)
    assert isinstance(box, Handle)
    assert box.value == 3
    again = box.double()
    assert (again.value, box.value) == (6, 6)
    assert box(4) == 10
    assert (
        box.call(4) == -2
    )  # a method of the student's, whatever the proxy's own are called
    assert torch.equal(box.w, torch.ones(2))
    assert student.same(box).value == 6


def test_whether_an_attribute_is_a_method_is_asked_once_and_data_each_time(
    student: Student, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    request = worker.request

    def noted(header: dict[str, Any], *rest: Any) -> Frame:
        asked.append(f"{header['op']} {header.get('attribute', '')}")
        return request(header, *rest)

    box = student.Box(3)
    monkeypatch.setattr(worker, "request", noted)
    values = [(box.double(), box.value)[1] for _ in range(2)]
    assert values == [6, 12]
    assert asked == [
        "get double",
        "call double",
        "get value",
        "call double",
        "get value",
    ]


def test_one_text_of_the_suite_is_defined_once(student: Student) -> None:
    text = "numbers = []\ndef f(x):\n    numbers.append(x)\n    return len(numbers)\n"
    assert student.define(text, "f")(7) == 1
    assert student.define(text, "f")(7) == 2


def test_a_text_of_the_suite_sees_the_notebook_where_it_is_asked_to(
    student: Student,
) -> None:
    with pytest.raises(StudentError, match="same"):
        student.define("def f(x):\n    return same(x)\n", "f")(7)
    text = "def g(x):\n    return [same(x)]\n"
    assert student.define(text, "g", sees_notebook=True)(7) == [7]


def test_a_text_of_the_suite_that_makes_no_function_is_a_fault(
    student: Student,
) -> None:
    """Only a submission that has changed Python can bring this about."""
    with pytest.raises(StudentCrashed, match="f could not be defined"):
        student.define("f = 3\n", "f")
    with pytest.raises(SyntaxError):
        student.define("def f(x)\n", "f")


def test_functions_of_the_suite_are_defined_there(student: Student) -> None:
    tripled = student.define("def f(x):\n    return 3 * x\n", "f")
    assert student.apply(tripled, 5) == 16


def test_a_function_of_the_suite_stays_here_with_its_gradients(
    student: Student,
) -> None:
    assert student.apply(lambda x: 3 * x, 5) == 16
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    student.apply(lambda x: x * x, x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]


def test_what_a_function_of_the_suite_raises_is_told(student: Student) -> None:
    with pytest.raises(
        StudentError, match="FunctionRaised: IndexError: list index out of range"
    ):
        student.apply(lambda x: [][x], 5)


def test_of_a_function_of_the_suite_there_is_nothing_to_read(student: Student) -> None:
    def secret(x: int) -> str:
        return "the text of the suite"

    driver = student.define(
        "def drive():\n    return 'the text of the suite'\n", "drive"
    )
    for function in (secret, driver):
        assert "the text of the suite" not in student.look_into(function)


@pytest.mark.parametrize(
    ("edit", "places"),
    [
        ("x['w'].add_(1)", ("x['w']",)),
        ("x['w'].unsqueeze_(0)", ("x['w']",)),
        ("x['blocks'][1].mul_(2)", ("x['blocks'][1]",)),
        ("x['sizes'].n = 5", ("x['sizes'].n",)),
        ("x['blocks'].pop()", ("x['blocks']",)),
        ("x['new'] = 1", ("x",)),
        ("x['mask'].logical_not_()", ("x['mask']",)),
        ("x['words'].add('c')", ("x['words']",)),
        ("x['w'].requires_grad_()", ()),
        ("dict(x)['w'] + 1", ()),
    ],
)
def test_what_a_call_changes_is_found_wherever_it_is(
    student: Student, edit: str, places: tuple[str, ...]
) -> None:
    value = {
        "w": torch.tensor([1.0, float("nan")]),
        "blocks": [torch.ones(2), torch.ones(2)],
        "words": {"a", "b"},
        "sizes": SimpleNamespace(n=4),
        "mask": torch.tensor([True, False]),
    }
    student.run(value, edit)
    call = last_call()
    assert call is not None
    assert call.changed == places
    with pytest.raises(StudentError, match="refused all the same"):
        student.run(value, edit, refuse=True)
    call = last_call()
    assert call is not None
    assert call.changed == places


DUCK = [
    ("it is compared", lambda duck: duck == 3),
    ("it is asked for its truth", lambda duck: bool(duck)),
    ("it is counted", lambda duck: len(duck)),
    ("it is gone through", lambda duck: list(duck)),
    ("it is indexed", lambda duck: duck[0]),
    ("it is added", lambda duck: 1 + duck),
    ("it is summed like a tensor", lambda duck: duck.sum()),
    ("its shape is read", lambda duck: duck.shape),
    ("its equal is called", lambda duck: duck.equal(torch.ones(2))),
    ("it is appended to like a list", lambda duck: duck.append(1)),
]


@pytest.mark.parametrize(("how", "use"), DUCK)
def test_an_object_is_no_data(
    student: Student, how: str, use: Callable[[Any], object]
) -> None:
    duck = student.duck(3)
    with pytest.raises(AssertionError) as caught:
        use(duck)
    assert str(caught.value) == (
        "`duck(3)` gives an object of class Duck, where data is expected (a tensor, a "
        "number, a list)."
    )


def test_a_method_is_no_data_and_says_what_may_be_missing(student: Student) -> None:
    box = student.Box(3)
    with pytest.raises(
        AssertionError,
        match=r"`Box.double` is a method .is a `@property` missing.., where data",
    ):
        assert box.double


def test_what_an_object_gives_is_no_object_that_was_asked_for(student: Student) -> None:
    box = student.Box(student.duck(3))
    with pytest.raises(
        AssertionError, match=r"`Box.value` gives an object of class Duck"
    ):
        box.value.sum()


def test_costs_are_counted(student: Student) -> None:
    a, b = torch.ones(3, 4), torch.ones(4, 5)
    cost = student.cost("product", a, b)
    assert (cost.operations, cost.flops, cost.largest, cost.peak, cost.moved) == (
        1,
        2 * 3 * 4 * 5,
        15,
        15,
        15,
    )
    assert (
        student.cost("rows", torch.ones(6, 4), b).operations
        > student.cost("rows", a, b).operations
    )
    product, counted = student.counted("product", a, b)
    assert counted == cost
    assert torch.equal(product, a @ b)


def test_lines_are_counted(student: Student) -> None:
    few, few_lines = student.counted_lines("rows", torch.ones(3, 4), torch.ones(4, 5))
    assert few.tolist() == [[4.0] * 5] * 3
    _, many_lines = student.counted_lines("rows", torch.ones(50, 4), torch.ones(4, 5))
    assert 40 <= many_lines - few_lines <= 50
    _, product_lines = student.counted_lines(
        "product", torch.ones(50, 4), torch.ones(4, 5)
    )
    assert product_lines == 1


def stand_in(worker: Worker, **names: Any) -> None:
    answers = StandIns(names, Limits())
    worker.stand_ins = answers
    assert worker.request(answers.request(), {}, 2.0, "stand-ins").header["ok"] is True


def test_a_stand_in_answers_with_gradients(student: Student, worker: Worker) -> None:
    stand_in(worker, helper=lambda x: x * x)
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = student.use_helper(x)
    y.backward()
    assert (y.item(), x.grad.tolist()) == (14.0, [2.0, 4.0, 6.0])  # type: ignore[union-attr]


def test_a_stand_in_differentiates_through_the_students_own_function(
    student: Student, worker: Worker
) -> None:
    def slope(function: Callable[[Any], Any], x: torch.Tensor) -> torch.Tensor:
        leaf = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(function(5 * leaf).sum(), leaf)
        return gradient

    stand_in(worker, helper=slope)
    # d/dx of 3 (5x)² is 150 x
    assert student.lend_own_function(torch.tensor([1.0, 2.0])).tolist() == [
        150.0,
        300.0,
    ]


def test_each_question_to_a_stand_in_has_gradients_of_its_own(
    student: Student, worker: Worker
) -> None:
    """The sum of (2x)² and of (3x)²: 8x and 18x, whichever was asked first."""
    factors = iter([2.0, 3.0, 3.0, 2.0])

    def helper(x: torch.Tensor) -> torch.Tensor:
        return (next(factors) * x) ** 2

    stand_in(worker, helper=helper)
    for first, second in ((8.0, 18.0), (18.0, 8.0)):
        x = torch.tensor([1.0], requires_grad=True)
        y = torch.tensor([10.0], requires_grad=True)
        (student.use_helper(x) + student.use_helper(y)).backward()
        assert (x.grad.tolist(), y.grad.tolist()) == ([first], [10 * second])  # type: ignore[union-attr]


def test_a_stand_in_refuses_what_the_answer_key_refuses(
    student: Student, worker: Worker
) -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("secret reason of the answer key")

    stand_in(worker, helper=refuses)
    with pytest.raises(StudentError) as caught:
        student.use_helper(torch.ones(2))
    assert "secret" not in str(caught.value)


def test_a_stand_in_refuses_with_the_sizes_and_no_word(
    student: Student, worker: Worker
) -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        raise ValueError(f"secret: {len(x)} rows, at most 3")

    stand_in(worker, helper=refuses)
    with pytest.raises(StudentError, match=r"\(5, 3\)") as caught:
        student.use_helper(torch.ones(5))
    assert "secret" not in str(caught.value)


class Tally:
    """A class of an answer key: what is added to it stays."""

    def __init__(self, start: torch.Tensor) -> None:
        self._sum = start

    @property
    def sum(self) -> torch.Tensor:
        return self._sum

    def add(self, x: torch.Tensor) -> Tally:
        self._sum = self._sum + x
        return self

    def __len__(self) -> int:
        return len(self._sum)


def test_an_object_of_a_stand_in_lives_on_the_trusted_side(
    student: Student, worker: Worker
) -> None:
    stand_in(worker, Box=Tally, helper=lambda tally, by: tally.sum * by.factor)
    tally = student.Box(torch.tensor([1.0, 2.0]))
    assert tally.name == "Box"
    assert student.use_box(tally, torch.tensor([10.0, 20.0]), 3).tolist() == [
        33.0,
        66.0,
    ]
    assert tally.sum.tolist() == [11.0, 22.0]


@pytest.mark.parametrize("name", ["_sum", "__class__", "__init__", "nothing"])
def test_of_an_object_of_a_stand_in_only_what_is_public_can_be_had(
    student: Student, worker: Worker, name: str
) -> None:
    stand_in(worker, Box=Tally)

    def answer(frame: Frame) -> Frame:
        return worker.stand_ins.answer(frame, lambda *_: frame)

    assert answer is not None
    made = answer(
        Frame(
            {
                "id": 1,
                "stand_in": {"name": "Box"},
                "value": {"l": [{"l": [3]}, {"d": []}]},
            },
            {},
        )
    )
    assert made.header["value"] == {"h": 0, "k": "Box"}
    nothing: dict[str, Any] = {"l": [{"l": []}, {"d": []}]}
    for asked in ({"object": 0, "attribute": name}, {"object": 0, "method": name}):
        assert (
            "refused"
            in answer(Frame({"id": 1, "stand_in": asked, "value": nothing}, {})).header
        )


def test_a_stand_in_asks_an_object_of_the_students(
    student: Student, worker: Worker
) -> None:
    """The answer key's function reads attributes of the student's Box, and calls it and its method,
    over there.
    """

    def helper(box: Any) -> Any:
        return box.w * box.double().value + box(1)

    stand_in(worker, helper=helper)
    assert student.use_helper(student.Box(5)).item() == 2 * (10 + 11)


def test_a_stand_in_may_ask_whether_an_object_of_the_students_has_something(
    student: Student, worker: Worker
) -> None:
    stand_in(
        worker, helper=lambda box: box.w * getattr(box, "window", 3) + hasattr(box, "w")
    )
    assert student.use_helper(student.Box(5)).item() == 2 * (3 + 1)


def test_a_stand_in_refuses_where_the_students_object_fails(
    student: Student, worker: Worker
) -> None:
    stand_in(worker, helper=lambda box: box.nothing)
    with pytest.raises(StudentError, match="cannot be right"):
        student.use_helper(student.Box(5))
    assert student.same(1) == 1  # both sides are still in step


def test_a_question_to_a_stand_in_has_a_size(student: Student, worker: Worker) -> None:
    """One operation on so many numbers cannot be interrupted: 16 MB is the most."""
    stand_in(worker, helper=lambda x: x)
    assert student.use_helper(torch.ones(2000, 2000)).item() == 4e6
    with pytest.raises(StudentError, match="cannot be right"):
        student.use_helper(torch.ones(2100, 2100))


def test_a_stand_in_costs_what_it_costs_the_answer_key(
    student: Student, worker: Worker
) -> None:
    """The product of [3, 4] and [4, 3] is 2·3·4·3 FLOPs and 9 numbers; the student's own sum is an
    operation more.
    """
    stand_in(worker, helper=lambda x: x @ x.T)
    cost = student.cost("use_helper", torch.ones(3, 4))
    assert (cost.operations, cost.flops, cost.largest) == (3, 72, 12)
    assert cost.moved == 9 + 1


FAULTS: list[tuple[str, Callable[[Student], object]]] = [
    ("an unknown handle", lambda s: s._call("x", {"handle": 99}, (), {})),
    ("no such attribute", lambda s: s.Box(1).nothing),
]


@pytest.mark.parametrize(("name", "ask"), FAULTS)
def test_odd_requests_fail_the_test_and_no_more(
    student: Student, name: str, ask: Callable[[Student], object]
) -> None:
    with pytest.raises(StudentFault):
        ask(student)


def test_messages_name_the_students_call_and_not_the_suites_own(
    student: Student,
) -> None:
    make = student.define(
        "class Tape:\n    def read(self):\n        return 1\n\ndef make():\n    return Tape()\n",
        "make",
    )
    student.same(3)
    tape = make()
    assert tape.read() == 1
    assert describe_last() == "`same(3)`"
