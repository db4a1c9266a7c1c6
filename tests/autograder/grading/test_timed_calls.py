"""The time of a call is told from many calls, by a clock that the test plays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from autograder.basics.errors import HostFailed
from autograder.course import Limits
from autograder.grading import speed_meter
from autograder.grading.speed_meter import (
    SpeedMeter,
    _explain_difference,
    _time_call,
)
from autograder.records.model import Speed
from autograder.sandbox.student import Student
from autograder.suite.timed_functions import SpeedCase, SpeedTest


class PlayedStudent:
    """Each request takes `overhead` seconds and `each` for a call; notes the counts of calls."""

    def __init__(self, overhead: float, each: float) -> None:
        self.overhead = overhead
        self.each = each
        self.counts: list[int] = []

    def repeat(
        self, name: str, times: int, arguments: Any = None, *, give: bool = False
    ) -> tuple[str, float]:
        assert name == "attention"
        self.counts.append(times)
        # the first request alone brings the arguments, and the worker keeps them
        is_first = len(self.counts) == 1
        assert arguments == (((1,), {}) if is_first else None)
        return f"answer {give}", self.overhead + times * self.each


def timed(student: Any) -> tuple[Any, float]:
    return _time_call(student, "attention", SpeedCase("small", (1,), {}))


@pytest.mark.parametrize(
    ("overhead", "each", "rounds"),
    [
        # 0.05 s and 1024 times 0.2 ms are 0.25 s, and with 256 times 0.1 s
        (0.05, 2e-4, [4, 16, 64, 256, 1024]),
        # never 0.2 s: 4096 calls are the most
        (0.0, 1e-6, [4, 16, 64, 256, 1024, 4096]),
        (0.0, 0.01, [4, 16, 64]),
        (0.0, 0.0125, [4, 16]),
        (0.0, 0.05, [4]),
        (0.0, 0.2, [2]),
    ],
)
def test_calls_are_added_until_they_take_a_fifth_of_a_second(
    overhead: float, each: float, rounds: list[int]
) -> None:
    student = PlayedStudent(overhead, each)
    answer, seconds = timed(student)
    assert answer == "answer True"
    assert seconds == pytest.approx(each)
    most = rounds[-1]
    tried = [] if most == 2 else rounds
    assert student.counts == [1, 1, *tried, *[most] * 3, *[1] * 3, most]


def test_calls_that_take_no_time_have_none() -> None:
    with pytest.raises(ValueError, match="more calls take no longer than one"):
        timed(PlayedStudent(0.1, 0.0))


def test_an_answer_differs_by_more_than_the_tolerance() -> None:
    ones = torch.ones(2)
    assert _explain_difference(ones + 0.25, ones, 0.25) == ""
    message = "it has no speed here: its result differs from the baseline's by "
    assert _explain_difference(ones + 0.5, ones, 0.25) == message + "0.5"
    assert _explain_difference(ones * torch.nan, ones, 0.25) == message + "nan"
    shape = "it has no speed here: its result is not of the baseline's shape"
    assert _explain_difference(torch.ones(3), ones, 0.25) == shape
    assert _explain_difference([1.0, 1.0], ones, 0.25) == shape


# a submission's function beside the baseline

LIMITS = Limits(call_seconds=7.0, cell_seconds=11.0)
CASES = (SpeedCase("small", (1,), {}), SpeedCase("large", (2,), {}))
TEST = SpeedTest(
    "attend", "attention", "def baseline", lambda: CASES, lambda answer: answer[0], 0.25
)


class PlayedWorker:
    """A worker that writes down what it loads, in `loaded`; `started` has all."""

    started: list[PlayedWorker]

    def __init__(self, client: object, limits: Limits) -> None:
        assert (client, limits) == ("client", LIMITS)
        self.loaded: list[Any] = []
        self.is_killed = False
        self.started.append(self)

    def load(self, *arguments: Any) -> Any:
        self.loaded.append(arguments)
        yield "loaded"

    def kill(self) -> None:
        self.is_killed = True


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A meter whose calls have the results of `results`, by function and case; an exception there
    is raised. `asked` has the limit of a call for each worker.
    """
    device: Any = SimpleNamespace(client="client", limits=LIMITS)
    meter: Any = SpeedMeter(device, TEST)
    ones = torch.ones(2)
    meter.asked = []
    meter.results = {
        ("baseline", "small"): (ones, 0.5),
        ("baseline", "large"): (2 * ones, 3.0),
        ("attention", "small"): ((ones, "weights"), 0.25),
        ("attention", "large"): ((2 * ones, "weights"), 1.5),
    }

    def in_worker(worker: object, call_seconds: float) -> object:
        meter.asked.append(call_seconds)
        return worker

    def time_call(student: object, name: str, case: SpeedCase) -> Any:
        is_baselines = isinstance(student, PlayedWorker)
        assert is_baselines == (name == "baseline")
        result = meter.results[name, case.name]
        if isinstance(result, Exception):
            raise result
        return result

    PlayedWorker.started = []
    monkeypatch.setattr(speed_meter, "Worker", PlayedWorker)
    monkeypatch.setattr(Student, "in_worker", in_worker)
    monkeypatch.setattr(speed_meter, "_time_call", time_call)
    return meter


def test_each_case_has_its_time_beside_the_baselines(meter: Any) -> None:
    assert meter.measure("the submission's") == (
        Speed("small", 0.25, 0.5),
        Speed("large", 1.5, 3.0),
    )
    (worker,) = PlayedWorker.started
    ((cells, seconds, words),) = worker.loaded
    assert (cells, seconds) == ([("baseline", "def baseline")], 11.0)
    assert words == "the baseline"
    assert worker.is_killed
    assert meter.asked == [7.0, 7.0]


def test_the_baseline_is_timed_once(meter: Any) -> None:
    first = meter.measure("the submission's")
    assert meter.measure("another one's") == first
    assert len(PlayedWorker.started) == 1


def test_a_case_that_is_wrong_or_fails_has_no_time_and_the_others_have(
    meter: Any,
) -> None:
    meter.results["attention", "small"] = ((torch.zeros(2), "weights"), 0.25)
    wrong = "it has no speed here: its result differs from the baseline's by 1"
    assert meter.measure("the submission's") == (
        Speed("small", 0.0, 0.5, wrong),
        Speed("large", 1.5, 3.0),
    )
    meter.results["attention", "small"] = ValueError("no time")
    assert meter.measure("the submission's")[0] == Speed(
        "small", 0.0, 0.5, "it has no speed here: no time"
    )


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (ValueError("no such function"), "no such function"),
        ((3.0, 0.5), "it must give one tensor"),
        ((torch.ones(0), 0.5), "it must give one tensor"),
    ],
)
def test_a_baseline_at_fault_is_told_and_its_worker_ends(
    meter: Any, result: Any, words: str
) -> None:
    meter.results["baseline", "large"] = result
    problem = f"the baseline itself has no speed here: {words}"
    assert meter.measure("the submission's") == (Speed("baseline", 0.0, 0.0, problem),)
    assert PlayedWorker.started[0].is_killed
    assert meter._baseline == []


def meter_without_baseline(fault: HostFailed | None = None) -> SpeedMeter:
    device: Any = SimpleNamespace(
        client=SimpleNamespace(fault=fault), limits=SimpleNamespace()
    )
    test: Any = SimpleNamespace(question="double", function="double")
    return SpeedMeter(device, test)


def measured(meter: SpeedMeter, outcome: str) -> tuple[Speed, ...]:
    nothing: Any = None
    tests = [SimpleNamespace(outcome="passed"), SimpleNamespace(outcome=outcome)]
    questions = [
        SimpleNamespace(name="other", tests=[SimpleNamespace(outcome="failed")]),
        SimpleNamespace(name="double", tests=tests),
    ]
    result: Any = SimpleNamespace(questions=questions)
    return meter.measure_submission(nothing, nothing, result)


def test_only_a_right_function_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError("no worker")

    monkeypatch.setattr("autograder.grading.speed_meter.Sitting", refuse)
    assert measured(meter_without_baseline(), "failed") == ()
    (speed,) = measured(meter_without_baseline(), "passed")
    assert speed == Speed("double", 0.0, 0.0, "it has no speed here: no worker")
    with pytest.raises(HostFailed, match=r"^gone$"):
        measured(meter_without_baseline(HostFailed("gone")), "passed")
