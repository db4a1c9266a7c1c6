"""The way to a station, whose program the test plays: answers by number, faults, and its end."""

from __future__ import annotations

import contextlib
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import KitError
from autograder.diagnosis.diagnostician import NamedMistakes
from autograder.grading import extras, station_program
from autograder.grading.extras import needs_torch
from autograder.grading.grader import AssignmentGrader
from autograder.grading.packed_submission import PackedSubmission
from autograder.grading.station import MachineFault, Station


def packed(student: str) -> PackedSubmission:
    """Made for each call: the cluster's tests look for submissions that nobody let go of."""
    return PackedSubmission(student, (f"{student}.ipynb",), b"{}")


class PlayedProgram:
    """The station's process, in a thread of this one. `play` gets the station's end of the line."""

    play: Callable[[Connection], None]
    started: list[PlayedProgram]

    def __init__(self, command: list[str], **options: Any) -> None:
        self.command, self.options = command, options
        self.calls: list[Any] = []
        (number,) = options["pass_fds"]
        assert command[-1] == str(number)
        self.line = Connection(os.dup(number))
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        self.started.append(self)

    def _run(self) -> None:
        try:
            type(self).play(self.line)
        finally:
            self.line.close()

    def wait(self, timeout: float | None = None) -> int:
        self.calls.append(("wait", timeout))
        return 3

    def kill(self) -> None:
        self.calls.append("kill")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Station]]:
    """Starts a station whose program is played."""
    PlayedProgram.started = []
    monkeypatch.setattr(subprocess, "Popen", PlayedProgram)

    def make(play: Callable[[Connection], None]) -> Station:
        PlayedProgram.play = staticmethod(play)
        return Station(Path("/course"), "m1", "auto", 2, ("torch",))

    yield make
    for program in PlayedProgram.started:
        program.thread.join()


def test_a_station_is_told_its_order_and_answers_by_number(
    start: Callable[..., Station],
) -> None:
    orders: list[Any] = []

    def play(line: Connection) -> None:
        orders.append(line.recv())
        line.send("")
        first, second = line.recv(), line.recv()
        # the second comes first
        line.send((second[0], second[1].student.encode(), ""))
        line.send((first[0], first[1].student.encode(), ""))
        line.recv()

    station = start(play)
    answers: dict[str, bytes] = {}

    def grade(packed: PackedSubmission) -> None:
        answers[packed.student] = station.grade(packed)

    threads = [
        threading.Thread(target=grade, args=(each,))
        for each in (packed("ada"), packed("bob"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {"ada": b"ada", "bob": b"bob"}
    assert orders == [(Path("/course"), "m1", "auto", 2, ("torch",))]
    assert not station.ended
    (program,) = PlayedProgram.started
    assert program.command[1:4] == ["-P", "-m", "autograder.grading.station_program"]
    assert program.options["start_new_session"] is True
    assert program.options["stdin"] == subprocess.DEVNULL
    station._line.send("end")
    station.close()
    assert program.calls == ["kill", ("wait", 10.0)]


def test_a_fault_is_that_of_its_submission(start: Callable[..., Station]) -> None:
    def play(line: Connection) -> None:
        line.recv()
        line.send("")
        number, _ = line.recv()
        line.send((number, None, "the host is gone"))
        number, packed = line.recv()
        line.send((number, packed.student.encode(), ""))
        line.recv()

    station = start(play)
    with pytest.raises(MachineFault, match=r"^the host is gone$"):
        station.grade(packed("ada"))
    assert station.grade(packed("bob")) == b"bob"
    station._line.send("end")


def test_what_waits_when_a_station_ends_fails(start: Callable[..., Station]) -> None:
    def play(line: Connection) -> None:
        line.recv()
        line.send("")
        line.recv()

    station = start(play)
    words = r"^the graders of this machine ended while they graded this submission$"
    with pytest.raises(MachineFault, match=words):
        station.grade(packed("ada"))
    PlayedProgram.started[0].thread.join()
    with pytest.raises(MachineFault, match=words):
        station.grade(packed("bob"))
    assert station.ended
    assert station._line.closed


def test_a_station_that_cannot_grade_is_ended_and_says_why(
    start: Callable[..., Station],
) -> None:
    def play(line: Connection) -> None:
        line.recv()
        line.send("no walls stand")

    with pytest.raises(KitError, match=r"^no walls stand$"):
        start(play)
    assert PlayedProgram.started[0].calls == ["kill", ("wait", 10.0)]


def test_a_program_that_ends_before_its_answer_did_not_start(
    start: Callable[..., Station],
) -> None:
    with pytest.raises(
        MachineFault, match=r"^its graders did not start \(status 3\); the"
    ):
        start(lambda line: None)


def test_the_program_takes_the_number_of_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = station_program.__file__
    monkeypatch.setattr(sys, "argv", [path])
    with pytest.raises(IndexError):
        runpy.run_path(path, run_name="__main__")


# which suites need torch


def test_torch_is_needed_by_code_and_not_by_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    cells: list[Any] = []
    notebook = SimpleNamespace(cells=cells)
    monkeypatch.setattr(extras, "parse_notebook", lambda data, name: notebook)
    monkeypatch.setattr(extras, "load_companions", lambda path: dict(companions))
    companions: dict[str, str] = {}
    key = tmp_path / "key.ipynb"
    key.touch()
    assignment: Any = SimpleNamespace(solution=key, suite=suite, name="m1")

    def needs(kind: str, source: str) -> bool:
        cells[:] = [SimpleNamespace(kind=kind, source=source)]
        return needs_torch(assignment)

    assert needs("code", "import torch")
    assert not needs("markdown", "import torch")
    assert not needs("code", "import math  # torch")
    companions["p.py"] = "from torch import nn"
    assert needs("code", "import math")
    companions.clear()
    file = suite / "test_a.py"
    for text, is_needed in (
        ("from autograder.suite import points", False),
        ("from autograder.suite import points, randn", True),
        ("from autograder.suite import (\n    points,\n    zeros,\n)", True),
        ("student.cost('f')", True),
        ('forbid("torch.softmax")', True),
        ('forbid("math.exp")', False),
    ):
        file.write_text(text)
        assert needs("code", "import math") == is_needed, text
    file.write_bytes(b"\xff")
    assert not needs("code", "import math")


# mistakes that show


def test_a_right_answer_is_looked_at_in_all_of_its_calls() -> None:
    diagnostician = SimpleNamespace(
        show_in_right_answer=lambda *arguments: ["right", *arguments],
        show_mistakes=lambda *arguments: ["wrong", *arguments],
    )
    known = SimpleNamespace(use_client=contextlib.nullcontext)
    made: Any = object.__new__(AssignmentGrader)
    made.diagnostician, made._known = diagnostician, known
    for is_right, word in ((True, "right"), (False, "wrong")):
        shown = made.show_mistakes("client", "q", {}, "asker", is_right=is_right)
        assert shown == [word, "q", {}, "asker"]
    assert NamedMistakes() == NamedMistakes(None, (), (), "", None)
