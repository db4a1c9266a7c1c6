"""The proxy `student` with a worker whose replies are the test's."""

from __future__ import annotations

import time
from typing import Any

import pytest

from autograder.basics.errors import (
    StudentCrashed,
    StudentError,
    StudentForbidden,
    StudentMissing,
)
from autograder.course import Limits
from autograder.sandbox.stand_in_answers import StandIns
from autograder.sandbox.student import Handle, Student, argument_encoder
from autograder.suite.calls import CallLog, start_log
from autograder.suite.objects import NotData
from autograder.wire.frames import Frame, WireError
from autograder.wire.values import Decoder, Encoder, HandleReference


class PlayedWorker:
    """Answers each request with the next of `replies`."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.replies = list(replies)
        self.requests: list[tuple[dict[str, Any], float, str]] = []
        self.alive = True
        self.stand_ins = StandIns({}, Limits())

    def request(
        self, header: dict[str, Any], tensors: Any, seconds: float, call: str
    ) -> Frame:
        self.requests.append((header, seconds, call))
        return Frame(self.replies.pop(0), {})

    def kill(self) -> None:
        self.alive = False


def value(content: Any) -> dict[str, Any]:
    """A reply with this value."""
    return {"ok": True, "value": Encoder(refer).encode(content)}


def refer(content: Any) -> HandleReference | None:
    return content if isinstance(content, HandleReference) else None


def arguments(header: dict[str, Any]) -> Any:
    return Decoder({}, lambda reference: reference).decode(header["value"])


class Counter:
    """The answer key's class."""


@pytest.fixture
def log() -> CallLog:
    return start_log({"Counter": Counter, "double": lambda x: 2 * x})


OBJECT = HandleReference(3, "Counter")


def student_of(*replies: dict[str, Any]) -> tuple[Student, PlayedWorker]:
    worker: Any = PlayedWorker(*replies)
    return Student.in_worker(worker, 5.0, {"double": "def double(x): ..."}), worker


def test_a_call_is_one_request_and_stands_in_the_log(log: CallLog) -> None:
    student, worker = student_of({**value(14), "changed": ["x", "y" * 90]})
    assert student.double(7, by=2) == 14
    ((header, seconds, name),) = worker.requests
    assert (header["op"], header["name"], seconds, name) == (
        "call",
        "double",
        5.0,
        "double",
    )
    assert arguments(header) == [[7], {"by": 2}]
    (call,) = log.calls
    assert (call.name, call.arguments, call.keywords) == ("double", (7,), {"by": 2})
    assert (call.result, call.of_suite, call.fault) == (14, False, None)
    assert call.changed[0] == "x"
    assert len(call.changed[1]) <= 80


def test_a_repeated_call_keeps_its_arguments_in_the_worker(
    log: CallLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([10.0, 12.5, 20.0, 21.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    student, worker = student_of(value(None), value(14))
    assert student.repeat("double", 3, ((7,), {"by": 2})) == (None, 2.5)
    assert student.repeat("double", 9, give=True) == (14, 1.0)
    (first, seconds, name), (second, _, _) = worker.requests
    assert (seconds, name) == (5.0, "double")
    assert arguments(first) == [[7], {"by": 2}]
    assert "value" not in second
    assert [
        (header["op"], header["name"], header["times"], header["give"])
        for header in (first, second)
    ] == [("repeat", "double", 3, False), ("repeat", "double", 9, True)]
    assert log.calls == []  # it serves no test


def test_a_text_of_a_cell_is_known_to_the_log(log: CallLog) -> None:
    student, _ = student_of()
    assert not log.used_submission
    assert student.source("double") == "def double(x): ..."
    assert log.used_submission
    assert student.source("half") == ""


@pytest.mark.parametrize(
    ("reply", "fault", "words"),
    [
        ({"missing": True}, StudentMissing, "^`double` is not defined$"),
        (
            {"forbidden": "torch.softmax"},
            StudentForbidden,
            "^`double` calls torch.softmax, which this question is about: write it out",
        ),
        (
            {"ok": False, "error": {"type": "KeyError", "message": "7"}},
            StudentError,
            "7",
        ),
        ({"ok": 1, "value": 2}, StudentError, "Exception"),
        (
            {"ok": True, "value": {"no": "value"}},
            StudentCrashed,
            "^double gave an answer that cannot be taken: ",
        ),
        ({**value(1), "cost": [1]}, StudentCrashed, "its cost cannot be read"),
        ({**value(1), "lines": -1}, StudentCrashed, "the count of its lines cannot"),
    ],
)
def test_a_reply_without_a_value_is_a_fault_of_the_call(
    log: CallLog, reply: dict[str, Any], fault: type[Exception], words: str
) -> None:
    student, worker = student_of(reply)
    with pytest.raises(fault, match=words) as raised:
        student.double(7)
    assert log.calls[0].fault is raised.value
    # a worker whose answer cannot be taken is not asked again
    assert worker.alive == (fault is not StudentCrashed)


@pytest.fixture
def with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch counts as loaded, whichever tests ran before."""
    monkeypatch.setattr("autograder.sandbox.student.loaded_torch", object)


def test_costs_are_counted_where_torch_is_loaded(
    log: CallLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.sandbox.student.loaded_torch", lambda: None)
    student, worker = student_of()
    with pytest.raises(ImportError, match=r"^what a call costs is counted in operat"):
        student.counted("double", 7)
    assert worker.requests == []


@pytest.mark.usefixtures("with_torch")
def test_costs_lines_and_kernels_that_do_not_come_are_a_crash(log: CallLog) -> None:
    student, worker = student_of(value(1), value(1), value(1))
    with pytest.raises(StudentCrashed, match=r"^double came back without its cost$"):
        student.counted("double", 7)
    with pytest.raises(StudentCrashed, match=r"without the count of its lines$"):
        student.counted_lines("double", 7)
    with pytest.raises(StudentCrashed, match=r"without the record of its kernels$"):
        student.launch("double", 7)
    costs, lines, launch = [header for header, _, _ in worker.requests]
    assert costs["cost"] is True
    assert lines["lines"] is True
    assert launch["launch"] == ["x"]


@pytest.mark.usefixtures("with_torch")
def test_costs_and_lines_come_with_the_result(log: CallLog) -> None:
    replies = {**value(14), "cost": [1, 2, 3, 4, 5]}, {**value(14), "lines": 6}
    student, _ = student_of(*replies, replies[0])
    result, cost = student.counted("double", 7)
    assert (result, log.calls[0].cost) == (14, cost)
    assert student.counted_lines("double", 7) == (14, 6)
    assert student.cost("double", 7) == cost


def test_an_object_is_expected_of_a_class_alone(log: CallLog) -> None:
    student, _ = student_of(value(OBJECT), value(OBJECT))
    counter = student.Counter(1)
    assert isinstance(counter, Handle)
    assert (counter.is_expected, counter.of_suite) == (True, False)
    assert (counter.name, counter.reference) == ("Counter", OBJECT)
    other = student.double(7)
    assert (other.is_expected, other.of_suite) == (False, False)
    student, _ = student_of(value(HandleReference(4, "C" * 81)))
    assert student.Counter(1).name == "C" * 79 + "…"


def test_methods_of_an_object_are_asked_for_once(log: CallLog) -> None:
    is_method = {"ok": True, "method": True}
    student, worker = student_of(
        value(OBJECT), is_method, value(2), value(3), value(9), value(10)
    )
    counter = student.Counter(1)
    assert (counter.add(1), counter.add(1)) == (2, 3)
    assert (counter.value, counter.value) == (9, 10)
    asked = [
        (header["op"], header.get("handle"), header.get("attribute"))
        for header, _, _ in worker.requests
    ]
    assert asked == [
        ("call", None, None),
        ("get", 3, "add"),
        ("call", 3, "add"),
        ("call", 3, "add"),
        ("get", 3, "value"),
        ("get", 3, "value"),
    ]
    names = [(call.name, call.is_attribute) for call in log.calls]
    assert names[-2:] == [("Counter.value", True)] * 2
    assert names[:2] == [("Counter", False), ("Counter.add", False)]
    with pytest.raises(AttributeError, match=r"^_hidden$"):
        _ = counter._hidden


def test_methods_are_asked_for_once_for_all_objects_of_a_class(log: CallLog) -> None:
    is_method = {"ok": True, "method": True}
    second = HandleReference(4, "Counter")
    of_other_call = HandleReference(5, "Counter")
    student, worker = student_of(
        value(OBJECT), is_method, value(1), value(second), value(2)
    )
    assert (student.Counter().tick(1), student.Counter().tick(2)) == (1, 2)
    operations = [header["op"] for header, _, _ in worker.requests]
    assert operations == ["call", "get", "call", "call", "call"]
    # another call may return a class of its own with the same name
    worker.replies += [value(of_other_call), is_method, value(3)]
    assert student.make().tick(3) == 3
    operations = [header["op"] for header, _, _ in worker.requests[5:]]
    assert operations == ["call", "get", "call"]


def test_an_object_goes_with_its_process(log: CallLog) -> None:
    student, worker = student_of(value(OBJECT))
    counter = student.Counter(1)
    worker.alive = False
    gone = r"^Counter is gone with the process that it lived in$"
    with pytest.raises(StudentCrashed, match=gone):
        _ = counter.add
    with pytest.raises(StudentCrashed, match=gone):
        counter(1)


def test_a_function_of_the_suite_is_defined_once_in_a_worker(log: CallLog) -> None:
    student, worker = student_of(value(OBJECT), value(1), value(OBJECT))
    text = "def drive(x): return x"
    drive = student.define(text, "drive")
    assert student.define(text, "drive") is drive
    assert drive.of_suite
    header = {"op": "define", "source": text, "name": "drive", "sees_notebook": False}
    assert worker.requests == [(header, 5.0, "drive")]
    assert drive(1) == 1
    assert log.calls[0].of_suite
    assert student.define("def drive(x): return -x", "drive") is not drive
    worker.replies.append(value(OBJECT))
    student.define("def more(x): return x", "more", sees_notebook=True)
    assert worker.requests[-1][0]["sees_notebook"] is True
    with pytest.raises(SyntaxError):
        student.define("def drive(:", "drive")


def test_a_text_that_makes_no_object_is_the_submissions_doing(log: CallLog) -> None:
    student, _ = student_of(value(7))
    with pytest.raises(StudentCrashed, match=r"^drive could not be defined$"):
        student.define("drive = 7", "drive")


def test_an_object_of_the_suites_function_is_the_suites(log: CallLog) -> None:
    student, _ = student_of(value(OBJECT), value(HandleReference(4, "Driver")))
    made = student.define("def make(): ...", "make")()
    assert (made.of_suite, made.is_expected, made.name) == (True, True, "Driver")


def test_a_name_of_pythons_protocols_is_no_function(log: CallLog) -> None:
    student, _ = student_of()
    with pytest.raises(AttributeError, match=r"^__array__$"):
        _ = student.__array__
    assert student.double.describe_kind() == "a function"


def test_what_refuses_to_be_data_is_lent_to_nobody() -> None:
    class Refusing(NotData):
        def __call__(self) -> int:
            return 1

    worker: Any = PlayedWorker()
    encoder = argument_encoder(worker)
    with pytest.raises(WireError):
        encoder.encode([Refusing()])
    assert worker.stand_ins._lent == []
    encoder.encode([len, len, abs])
    assert worker.stand_ins._lent == [len, abs]


def test_an_object_within_an_answer_is_the_students(log: CallLog) -> None:
    layer = HandleReference(3, "Layer")
    student, worker = student_of(value([layer]), value(9))
    (handle,) = student.double(7)
    assert handle(2) == 9
    assert len(worker.requests) == 2  # nothing was asked of the object
    assert [call.of_suite for call in log.calls] == [False, False]
