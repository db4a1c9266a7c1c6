"""What known mistakes answered is kept on disk: read back as it was, never stale, never trusted to
be readable.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from autograder.basics.errors import StudentError, StudentMissing, StudentTimeout
from autograder.course import Course
from autograder.diagnosis.known_runs import KnownRuns
from autograder.grading.bench import Bench
from autograder.records.model import Result
from autograder.sitting.agreement import answers_agree
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call
from autograder.wire.values import MAX_TEXT, HandleReference

OVER_THE_ROWS = (
    "def softmax(z, dim=-1):\n    e = torch.exp(z - z.amax(0, keepdim=True))\n    return e / "
    "e.sum(0, keepdim=True)\n"
)


@pytest.fixture
def kept(course: Course, tmp_path: Path) -> KnownRuns:
    elsewhere = dataclasses.replace(course, root=tmp_path)
    return KnownRuns(elsewhere, course.assignment("small"), "inputs")


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob(".autograder/known/**/*.safetensors"))


CALLS = (
    Call("softmax", (), {}, result=torch.tensor([[0.25, 0.75]], dtype=torch.float64)),
    Call(
        "heads",
        (),
        {},
        result=(torch.arange(6).reshape(2, 3).t(), [True, None, 0.1], {"n": 2**70}),
    ),
    Call("f", (), {}, fault=StudentError("ValueError", "d differs")),
    Call("g", (), {}, fault=StudentMissing("not there"), changed=("z",)),
)


def test_a_run_comes_back_as_it_was(kept: KnownRuns) -> None:
    run = TestRun("test_rows[2]", Verdict("failed", "said to a student"), CALLS)
    kept.save("over_the_rows", [run])
    back = kept.load("over_the_rows", "test_rows[2]")
    assert back is not None
    assert back.verdict.outcome == "failed"
    assert all(
        answers_agree(mine, call, None)
        for mine, call in zip(back.calls, CALLS, strict=True)
    )
    assert [call.changed for call in back.calls] == [(), (), (), ("z",)]
    assert back.calls[1].result[0].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert back.calls[1].result[1:] == ([True, None, 0.1], {"n": 2**70})


def test_a_run_made_now_is_as_one_from_disk(kept: KnownRuns) -> None:
    """Of an object that stays in the worker the name of its class is left: what explains an answer
    may not depend on which runs were on disk.
    """

    class Held:
        reference = HandleReference(3, "Cache")

    held = Held()
    calls = (*CALLS, Call("Cache", (), {}, result=[held, torch.ones(2)]))
    run = TestRun("test_rows", Verdict("failed", "said to a student"), calls)
    (made_now,) = kept.save_and_reload("over_the_rows", [run])
    from_disk = kept.load("over_the_rows", "test_rows")
    assert from_disk is not None
    assert repr(made_now) == repr(from_disk)
    assert made_now.calls[-1].result[0] == "Cache"


def test_a_run_that_cannot_be_kept_stays_as_it_is(kept: KnownRuns) -> None:
    hung = TestRun("test_f", Verdict("timeout"), ())
    too_long = Call("f", (), {}, result="x" * (MAX_TEXT + 1))
    for run in (hung, TestRun("test_f", Verdict("passed"), (too_long,))):
        (made_now,) = kept.save_and_reload("slow", [run])
        assert made_now is run


def test_a_run_that_was_not_kept_is_not_there(kept: KnownRuns) -> None:
    kept.save("over_the_rows", [TestRun("test_rows", Verdict("passed"), ())])
    assert kept.load("over_the_rows", "test_columns") is None
    assert kept.load("no_scale", "test_rows") is None


def test_a_hang_is_not_kept(kept: KnownRuns, tmp_path: Path) -> None:
    """It may have been the machine's doing."""
    calls = (Call("f", (), {}, fault=StudentTimeout("too long")),)
    kept.save("slow", [TestRun("test_f", Verdict("timeout"), calls)])
    assert kept.load("slow", "test_f") is None
    assert not files(tmp_path)


def test_another_suite_knows_nothing_of_it_and_clears_it_away(
    course: Course, kept: KnownRuns, tmp_path: Path
) -> None:
    kept.save("over_the_rows", [TestRun("test_rows", Verdict("passed"), ())])
    changed = KnownRuns(
        dataclasses.replace(course, root=tmp_path),
        course.assignment("small"),
        "other inputs",
    )
    assert changed.load("over_the_rows", "test_rows") is None
    changed.save("no_scale", [TestRun("test_rows", Verdict("passed"), ())])
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("damage", [b"", b"not a file of tensors", b"\xff" * 64])
def test_a_damaged_file_is_as_good_as_none(
    kept: KnownRuns, tmp_path: Path, damage: bytes
) -> None:
    kept.save("over_the_rows", [TestRun("test_rows", Verdict("failed"), CALLS)])
    (path,) = files(tmp_path)
    path.write_bytes(damage)
    assert kept.load("over_the_rows", "test_rows") is None
    path.write_bytes(damage)
    kept.save("over_the_rows", [TestRun("test_rows", Verdict("failed"), CALLS)])
    assert kept.load("over_the_rows", "test_rows") is not None


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(
    course: Course, tmp_path: Path
) -> None:
    (tmp_path / ".autograder").write_text("a file where the folder should be")
    kept = KnownRuns(
        dataclasses.replace(course, root=tmp_path), course.assignment("small"), "inputs"
    )
    kept.save("over_the_rows", [TestRun("test_rows", Verdict("passed"), ())])
    assert kept.load("over_the_rows", "test_rows") is None


def test_the_second_time_no_mistake_is_run(
    bench: Bench, grade: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = grade(softmax=OVER_THE_ROWS)
    grader = bench.grader
    monkeypatch.setattr(
        grader._known, "_records", {}
    )  # as a new process, which remembers nothing

    def refuse(*_: object) -> None:
        raise AssertionError("a mistake was run again")

    monkeypatch.setattr(grader._known, "run", refuse)
    second = grade(softmax=OVER_THE_ROWS)
    assert second == first
    assert [q.diagnosis.mistake for q in second.questions if q.diagnosis] == [
        "over_the_rows"
    ]
