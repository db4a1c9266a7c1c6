"""Grading with a device beside the interpreter. No GPU is needed: "cpu" drives the same code, with
kernels in Triton's own interpreter, in workers of a second host behind the walls that a GPU gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_course import ON_DEVICE, answer, notebook

from autograder.basics.errors import (
    DeviceUnavailable,
    IsolationUnavailable,
    StudentError,
)
from autograder.course import Course
from autograder.grading import speed_meter
from autograder.grading.bench import Bench
from autograder.grading.graded_bytes import pack_graded, unpack_graded
from autograder.records.model import Graded, QuestionResult
from autograder.records.submission import FoundSubmission
from autograder.sandbox.host_process import Device
from autograder.sandbox.student import Student
from autograder.sandbox.worker_process import Worker
from autograder.suite.timed_functions import BASELINE

REPOSITORY = Path(__file__).resolve().parents[3]
SECONDS_OF_THE_BASELINE, SECONDS_OF_AN_ANSWER = 0.008, 0.002


@pytest.fixture(scope="module")
def bench(course: Course) -> Iterator[Bench]:
    try:
        opened = Bench(
            course,
            course.assignment("kernels"),
            extras=("triton",),
            device=Device("cpu", "the CPU"),
        )
    except DeviceUnavailable as error:
        if isinstance(error.__cause__, IsolationUnavailable):
            pytest.skip(str(error))
        raise
    with opened as started:
        yield started


@pytest.fixture
def grade(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Graded]:
    """Grades an answer. Calls are made as often as ever; what they take is said, and not
    measured.
    """
    monkeypatch.setattr(speed_meter, "LONG_ENOUGH", 0.02)
    monkeypatch.setattr(speed_meter, "ROUNDS", 1)
    honest = Student.repeat

    def repeat(
        self: Student,
        name: str,
        times: int,
        given: tuple[Any, Any] | None = None,
        *,
        give: bool = False,
    ) -> tuple[Any, float]:
        result, _ = honest(self, name, times, given, give=give)
        return result, times * (
            SECONDS_OF_THE_BASELINE if name == BASELINE else SECONDS_OF_AN_ANSWER
        )

    monkeypatch.setattr(Student, "repeat", repeat)

    def run(double: str) -> Graded:
        path = tmp_path / "student-001.ipynb"
        path.write_text(notebook(double), encoding="utf-8")
        return bench.grader.grade(
            bench.clients[0], FoundSubmission("student-001", path)
        )

    return run


def question(graded: Graded) -> QuestionResult:
    assert graded.result is not None
    return graded.result.questions[0]


def test_a_right_answer_passes_in_both_and_has_a_speed(
    grade: Callable[[str], Graded], bench: Bench
) -> None:
    graded = grade(answer())
    assert graded.result is not None
    assert (graded.result.score, graded.result.max_score) == (5.0, 5.0), graded.result
    assert graded.result.isolation == bench.isolation
    assert bench.isolation.endswith("+cpu")
    (measured,) = graded.speeds
    assert (measured.case, measured.problem) == ("n = 50", "")
    assert measured.ratio == pytest.approx(4.0)
    assert "speed" in graded.seconds
    scored, content = unpack_graded(pack_graded(graded))
    assert content.decode() == graded.result.to_json()
    assert scored.result == graded.result.headline()
    assert (scored.seconds, scored.speeds) == (graded.seconds, graded.speeds)


def test_an_answer_that_is_wrong_on_the_device_alone_fails_there(
    grade: Callable[[str], Graded],
) -> None:
    graded = grade(answer(f"y += {ON_DEVICE}"))
    double = question(graded)
    assert [test.outcome for test in double.tests] == ["failed", "failed", "failed"]
    assert double.tests[0].message.startswith(
        "On the GPU (in the interpreter it passes): `double(x[70] float32)`"
    )
    assert double.diagnosis is None
    assert double.score == 0.0  # a refusal counts where the function also answers
    assert graded.speeds == ()


def test_an_answer_that_is_wrong_in_the_interpreter_fails_as_without_a_device(
    grade: Callable[[str], Graded],
) -> None:
    double = question(grade(answer("y += x")))
    assert [test.outcome for test in double.tests] == ["failed", "failed", "failed"]
    assert "GPU" not in double.tests[0].message
    assert double.diagnosis is not None
    assert double.diagnosis.mistake == "triples"


def test_an_answer_that_numpy_writes_over_the_kernels_is_none(
    grade: Callable[[str], Graded],
) -> None:
    """The wrapper doubles x, as it should, past torch: the kernel has left 3 x."""
    import_and_write = (
        "import numpy as np; y += x; np.from_dlpack(y)[...] = 2 * np.from_dlpack(x)"
    )
    double = question(grade(answer(import_and_write)))
    assert [test.outcome for test in double.tests] == ["error", "error", "failed"]
    assert (
        "raised KernelFault: Something other than torch and the kernels has written into"
        in double.tests[0].message
    )
    assert double.score == 0.0


def test_an_exception_on_the_device_has_the_students_own_line(
    grade: Callable[[str], Graded],
) -> None:
    double = question(grade(answer(f"y = y.no_such_thing() if {ON_DEVICE} else y")))
    assert [test.outcome for test in double.tests] == ["error", "error", "failed"]
    said = double.tests[0].message
    assert said.startswith(
        "On the GPU (in the interpreter it passes): `double(x[70] float32)` raised AttributeError"
    )
    assert "no_such_thing" in said


def test_the_end_of_the_process_on_the_device_costs_its_test_and_no_other(
    grade: Callable[[str], Graded],
) -> None:
    double = question(grade(answer(f"len(x) == 70 and {ON_DEVICE} and os._exit(1)")))
    assert [test.outcome for test in double.tests] == ["crashed", "passed", "passed"]


def test_a_call_that_hangs_on_the_device_is_ended(
    grade: Callable[[str], Graded],
) -> None:
    forever = f"while len(x) == 70 and {ON_DEVICE}: pass"
    double = question(grade(answer(f"exec({forever!r})")))
    assert [test.outcome for test in double.tests] == ["timeout", "passed", "passed"]
    assert "3 s" in double.tests[0].message


def test_a_function_that_does_nothing_when_it_is_timed_has_no_speed(
    grade: Callable[[str], Graded],
) -> None:
    (empty,) = grade(answer("y = y if len(x) != 50 else torch.zeros_like(x)")).speeds
    assert (empty.ratio, empty.seconds) == (0.0, 0.0)
    assert "differs from the baseline's by 98" in empty.problem  # 2 · 49
    (none,) = grade(answer("y = y if len(x) != 50 else None")).speeds
    assert none.ratio == 0.0
    assert "not of the baseline's shape" in none.problem


def test_a_hostile_answer_reads_nothing_hidden_and_reaches_nobody(
    grade: Callable[[str], Graded], course: Course
) -> None:
    canary = course.root / "tests" / "hidden" / "kernels" / "canary.txt"
    canary.write_text("CANARY", encoding="utf-8")
    steal = (
        "import glob, os\n"
        f"found = glob.glob('/proc/*/root{canary}') + glob.glob('/proc/*/cwd/tests') + "
        "glob.glob('/**/canary.txt')\n"
        "others = [n for n in os.listdir('/proc') if n.isdigit() and int(n) != os.getpid()]\n"
        "found += [f'/proc/{n}/{name}' for n in others for name in ('environ', 'maps', 'cmdline')]\n"
        f"for path in [{str(canary)!r}, *found]:\n"
        "    try:\n"
        "        text = open(path).read()\n"
        "    except OSError:\n"
        "        continue\n"
        "    raise RuntimeError('READ ' + path + text)\n"
    )
    try:
        graded = grade(answer(f"exec({steal!r}) if {ON_DEVICE} else None"))
    finally:
        canary.unlink()
    assert graded.result is not None
    assert graded.result.score == 5.0, graded.result
    assert "CANARY" not in graded.result.to_json()


@pytest.fixture
def inside(bench: Bench) -> Iterator[Callable[[str], Student]]:
    """A worker with a device that has run a cell."""
    workers = []

    def run(cell: str) -> Student:
        workers.append(Worker(bench.device.client, bench.device.limits))
        load = {"op": "load", "cells": [["cell", cell]], "forbid": []}
        loaded = workers[-1].request(load, {}, 20.0, "the cell").header
        assert loaded["ok"] is True, loaded
        return Student.in_worker(workers[-1], 30.0)

    yield run
    for worker in workers:
        worker.kill()


def test_a_repeated_call_gives_its_last_result(
    inside: Callable[[str], Student],
) -> None:
    student = inside(
        "seen = []\ndef f(x, *, by):\n    seen.append(1)\n    return x * by + len(seen)\n"
    )
    assert student.repeat("f", 3, ((10,), {"by": 2}), give=True)[0] == 23
    assert student.repeat("f", 2)[0] is None
    assert student.repeat("f", 1, give=True)[0] == 26
    with pytest.raises(StudentError, match="by"):
        student.repeat("f", 1, ((10,), {}))
