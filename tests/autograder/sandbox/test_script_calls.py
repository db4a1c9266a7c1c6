"""A script crosses in one request, and is answered as its calls would be one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from autograder.basics.errors import (
    StudentCrashed,
    StudentError,
    StudentMissing,
    StudentTimeout,
)
from autograder.course import Limits
from autograder.grading.bench import Bench
from autograder.sandbox.script_calls import call_in_one_request
from autograder.sandbox.stand_in_answers import StandIns
from autograder.sandbox.student import Handle, Student
from autograder.sandbox.worker_process import Worker
from autograder.suite.calls import Call, start_log
from autograder.suite.scripts import Made, Script, ScriptStep
from autograder.wire.bundles import ANSWER_OF_STEP
from autograder.wire.frames import Frame

SOURCE = """
import torch

class Cache:
    def __init__(self, size):
        self.size, self.rows = size, []

    def append(self, row):
        if len(self.rows) == self.size:
            raise ValueError("full")
        self.rows.append(row)
        return torch.stack(self.rows)

    @property
    def length(self):
        return len(self.rows)

def total(cache, factor=1):
    return factor * sum(float(row.sum()) for row in cache.rows)

def grows(x):
    x.append(1)

def spins():
    while True:
        pass

def text(size):
    return "x" * size

def doubled_cube(x):
    return 2 * cube(x)

def cube(x):
    return x
"""
HELPER = "def filled(size, row):\n    cache = Cache(size)\n    cache.append(row)\n    return cache\n"
ROW = torch.tensor([1.0, 2.0])


@pytest.fixture
def worker(bench: Bench) -> Iterator[Worker]:
    worker = Worker(bench.host.clients[0], Limits(call_seconds=1.0))
    list(worker.load([("cell", SOURCE)], 5.0, "the cells"))
    yield worker
    worker.kill()


@pytest.fixture
def student(worker: Worker) -> Student:
    start_log({})
    return Student.in_worker(worker, 1.0)


def call(name: str, *arguments: Any, on: int | None = None, **keywords: Any) -> Any:
    made = None if on is None else Made(on)
    return ScriptStep(name, arguments, keywords, made)


def play(student: Student, *steps: ScriptStep, helpers: str = "") -> list[Call]:
    return call_in_one_request(student, Script(steps, helpers=helpers))


def test_steps_use_the_objects_of_earlier_ones(student: Student) -> None:
    calls = play(
        student,
        call("Cache", 2),
        call("append", ROW, on=0),
        call("append", 10 * ROW, on=0),
        ScriptStep("length", on=Made(0), kind="read"),
        call("total", Made(0), factor=2),
        ScriptStep("append", on=Made(0), kind="read"),
    )
    assert [made.name for made in calls] == [
        "Cache",
        "Cache.append",
        "Cache.append",
        "Cache.length",
        "total",
        "Cache.append",
    ]
    assert isinstance(calls[0].result, Handle)
    assert torch.equal(calls[1].result, torch.tensor([[1.0, 2.0]]))
    assert torch.equal(calls[2].result, torch.tensor([[1.0, 2.0], [10.0, 20.0]]))
    # 1 + 2 + 10 + 20, twice
    assert [made.result for made in calls[3:5]] == [2, 66.0]
    assert isinstance(calls[5].result, Handle)  # a method is no data


def test_data_of_an_earlier_step_can_be_passed_on(student: Student) -> None:
    calls = play(student, call("cube", ROW), call("cube", [Made(0)]))
    assert torch.equal(calls[1].result[0], ROW)


def test_a_helper_sees_the_notebook(student: Student) -> None:
    helper = ScriptStep("filled", (3, ROW), kind="helper")
    for _ in range(2):
        calls = play(student, helper, call("total", Made(0)), helpers=HELPER)
        assert calls[1].result == 3.0


def test_the_first_fault_ends_the_script(student: Student, worker: Worker) -> None:
    before = worker._requests
    calls = play(
        student,
        call("Cache", 1),
        call("append", ROW, on=0),
        call("append", ROW, on=0),
        call("total", Made(0)),
    )
    assert worker._requests == before + 1
    assert len(calls) == 3
    fault = calls[2].fault
    assert isinstance(fault, StudentError)
    assert (fault.type_name, fault.message) == ("ValueError", "full")
    assert isinstance(play(student, call("nobody"))[0].fault, StudentMissing)
    missing = play(student, call("cube", 1), call("append", on=0))[1].fault
    assert isinstance(missing, StudentError)
    assert missing.type_name == "AttributeError"


def test_changed_arguments_are_told_of_their_step(student: Student) -> None:
    calls = play(student, call("cube", [2]), call("grows", [2]))
    assert [made.changed for made in calls] == [(), ("x",)]


def test_a_hang_ends_the_worker(student: Student, worker: Worker) -> None:
    with pytest.raises(StudentTimeout, match="cube, spins did not end within 1 s"):
        play(student, call("cube", 1), call("spins"))
    assert not worker.alive


def test_answers_too_long_for_one_frame_are_a_fault(student: Student) -> None:
    """A header takes 2 MiB: two texts of 1 MiB each do not fit together."""
    long = call("text", 1 << 20)
    (only,) = play(student, long, long)
    assert isinstance(only.fault, StudentCrashed)
    # the worker goes on
    assert play(student, call("cube", 5))[0].result == 5


def test_stand_ins_are_asked_in_the_middle_of_a_script(
    student: Student, worker: Worker
) -> None:
    worker.stand_ins = StandIns({"cube": lambda x: x**3}, Limits())
    header = worker.stand_ins.request()
    assert worker.request(header, {}, 1.0, "stand-ins").header["ok"]
    calls = play(student, call("doubled_cube", 2), call("doubled_cube", ROW))
    assert calls[0].result == 16
    assert torch.equal(calls[1].result, torch.tensor([2.0, 16.0]))


def test_what_hostile_workers_answer_is_a_fault() -> None:
    class Hostile:
        alive = True

        def __init__(self, replies: Any) -> None:
            self.replies = replies
            self.stand_ins = StandIns({}, Limits())

        def request(self, *_: Any) -> Frame:
            return Frame({"replies": self.replies}, {})

        def kill(self) -> None:
            self.alive = False

    start_log({})
    wrong: list[Any] = [None, {}, "x", [1], [[]]]
    for replies in wrong:
        worker: Any = Hostile(replies)
        with pytest.raises(StudentCrashed, match="cannot be taken"):
            play(Student.in_worker(worker, 1.0), call("f"), call("f"))
        assert not worker.alive
    worker = Hostile([{"ok": True, "value": {"h": 0, "k": ANSWER_OF_STEP}}, {}, {}])
    calls = play(Student.in_worker(worker, 1.0), call("f"), call("f"))
    assert [type(made.fault).__name__ for made in calls] == ["NoneType", "StudentError"]
