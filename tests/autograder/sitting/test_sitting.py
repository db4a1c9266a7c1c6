"""Questions in one worker: what passes there counts, and what does not runs again in a fresh
one.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from courses import handed_in
from small_course import ANSWERS

from autograder.course import Limits
from autograder.grading.bench import Bench
from autograder.intake.notebook import read_submission
from autograder.records.submission import FoundSubmission
from autograder.sandbox.host_process import HostClient, WorkerGrant
from autograder.sitting import sitting as sitting_module
from autograder.sitting.sitting import Sitting
from autograder.suite.collection import SuiteQuestion
from autograder.worker.forbidden import Ban, ForbiddenCall

BY_TORCH = {
    "softmax": "def softmax(z, dim=-1):\n    return torch.softmax(z, dim)\n",
    "attention": ANSWERS["attention"]
    .replace("softmax(", "torch.softmax(")
    .replace(") @ v", ", -1) @ v"),
}
NO_GRADIENTS = ANSWERS["softmax"].replace(
    "    return", "    torch.set_grad_enabled(False)\n    return"
)
"""Right, and the end of every gradient in its process."""


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[Limits]:
    """The workers that are asked for from now on."""
    asked: list[Limits] = []
    honest = HostClient.fork_worker

    def fork_worker(self: HostClient, limits: Limits) -> WorkerGrant:
        asked.append(limits)
        return honest(self, limits)

    monkeypatch.setattr(HostClient, "fork_worker", fork_worker)
    return asked


@pytest.fixture
def sit(bench: Bench, tmp_path: Path) -> Iterator[Callable[..., Sitting]]:
    with contextlib.ExitStack() as stack:

        def opened(*extra: str, **cells: str | float) -> Sitting:
            """Right answers but for `cells`, and cells more; what is a number is a limit."""
            path = tmp_path / "student-001.ipynb"
            answers = {
                name: value for name, value in cells.items() if isinstance(value, str)
            }
            path.write_text(handed_in({**ANSWERS, **answers}, extra), encoding="utf-8")
            others: dict[str, Any] = {
                name: value
                for name, value in cells.items()
                if not isinstance(value, str)
            }
            limits = dataclasses.replace(bench.course.limits, **others)
            submission = read_submission(
                FoundSubmission("student-001", path), bench.grader.release, limits
            )
            sitting = Sitting(bench.clients[0], limits, bench.grader.suite, submission)
            return stack.enter_context(contextlib.closing(sitting))

        yield opened


def all_questions(sitting: Sitting) -> Sequence[SuiteQuestion]:
    return sitting._suite.questions


def outcomes(sitting: Sitting, questions: Sequence[SuiteQuestion]) -> list[list[str]]:
    return [
        [run.verdict.outcome for run in its.values()]
        for its in sitting.run_all(questions).values()
    ]


ALL_PASS = [["passed"] * 2, ["passed"] * 3, ["passed"]]


def test_right_answers_need_one_worker(
    bench: Bench, sit: Callable[..., Sitting], forks: list[Limits]
) -> None:
    assert outcomes(sit(), bench.grader.suite.questions) == ALL_PASS
    assert len(forks) == 1


def test_a_wrong_answer_needs_a_fresh_one_and_the_next_goes_on_there(
    bench: Bench, sit: Callable[..., Sitting], forks: list[Limits]
) -> None:
    wrong = "def attention(q, k, v):\n    return v\n"
    assert outcomes(sit(attention=wrong), bench.grader.suite.questions) == [
        ["passed", "passed"],
        ["failed", "failed", "failed"],
        ["passed"],
    ]
    assert len(forks) == 2


def test_what_one_question_does_to_its_process_costs_no_other(
    bench: Bench, sit: Callable[..., Sitting], forks: list[Limits]
) -> None:
    sitting = sit(softmax=NO_GRADIENTS, attention=BY_TORCH["attention"])
    assert outcomes(sitting, bench.grader.suite.questions) == ALL_PASS
    assert len(forks) == 2


COMPUTES = "import time\nends = time.process_time() + 0.3\nwhile time.process_time() < ends:\n    pass\n"
"""A cell that takes 0.3 seconds of processor time, and a little of what it takes to look at the
clock.
"""
ALL_WRONG = {
    "softmax": "softmax = abs\n",
    "attention": "attention = abs\n",
    "counter": "Counter = abs\n",
}


def test_running_the_same_cells_again_takes_nothing_of_what_the_submission_has(
    sit: Callable[..., Sitting], forks: list[Limits]
) -> None:
    """Three workers of 0.3 s each, and 0.6 s are allowed."""
    sitting = sit(COMPUTES, submission_seconds=0.6, **ALL_WRONG)
    assert not {"passed", "timeout"} & {
        outcome for its in outcomes(sitting, all_questions(sitting)) for outcome in its
    }
    assert len(forks) == 3
    assert 0.3 < sitting.workplace.spent.processor < 0.6


def test_there_is_an_end_to_running_the_same_cells_again(
    sit: Callable[..., Sitting], forks: list[Limits]
) -> None:
    """1.4 s are allowed, and 2.8 s for what runs again: that is over in the fourth worker, the
    third to run again. A worker has 0.2 s for the rest, on a slow machine too.
    """
    longer = COMPUTES.replace("0.3", "1.2")
    sitting = sit(longer, submission_seconds=1.4, **ALL_WRONG)
    runs = sitting.run_all([*all_questions(sitting), all_questions(sitting)[0]])[
        "softmax"
    ].values()
    said = "the time for running the notebook's cells again (2.8 s of processor time) is used up."
    assert {
        (run.verdict.outcome, run.verdict.message[-len(said) :]) for run in runs
    } == {("timeout", said)}
    assert len(forks) == 4


def test_whether_a_cell_ends_within_its_limit_is_decided_once(
    sit: Callable[..., Sitting],
) -> None:
    """The cell stays within its limit the first time, and not the second."""
    slow = COMPUTES.replace("0.3", "0.1") + "here = 1\n"
    counter = ANSWERS["counter"].replace(
        "self.value = start", "self.value = start - 1 + here"
    )
    sitting = sit(slow, cell_seconds=0.2, softmax="softmax = abs\n", counter=counter)
    assert {cell.id: cell.outcome for cell in sitting.workplace.cells}[
        "extra-1"
    ] == "ok"
    submission = sitting.workplace.submission
    slower = [
        dataclasses.replace(cell, source=cell.source.replace("0.1", "0.3"))
        for cell in submission.cells
    ]
    sitting.workplace.submission = dataclasses.replace(submission, cells=tuple(slower))
    assert outcomes(sitting, all_questions(sitting))[2] == ["passed"]
    assert {cell.id: cell.outcome for cell in sitting.workplace.cells}[
        "extra-1"
    ] == "ok"


def test_an_attempt_that_does_not_count_is_not_charged_and_yet_has_an_end(
    sit: Callable[..., Sitting],
) -> None:
    sitting = sit(softmax=NO_GRADIENTS, attention=BY_TORCH["attention"])
    sitting.run_all(all_questions(sitting)[:1])
    before = sitting.workplace.spent
    sitting.workplace.charge(1.0)  # an attempt
    sitting.workplace.refund_since(before)
    assert sitting.workplace.spent == before
    assert sitting.workplace.may_attempt
    sitting.workplace.charge(2 * sitting._limits.submission_seconds)
    sitting.workplace.refund_since(before)
    assert sitting.workplace.spent == before
    assert not sitting.workplace.may_attempt


def test_what_one_question_forbids_another_may_call(
    bench: Bench, sit: Callable[..., Sitting], forks: list[Limits]
) -> None:
    softmax, attention, _ = bench.grader.suite.questions
    assert outcomes(sit(**BY_TORCH), [softmax, attention]) == [
        ["forbidden"] * 2,
        ["passed"] * 3,
    ]
    assert len(forks) == 1


def test_what_a_later_question_forbids_is_forbidden_in_a_worker_that_served_others(
    bench: Bench, sit: Callable[..., Sitting]
) -> None:
    softmax, attention, _ = bench.grader.suite.questions
    assert outcomes(sit(**BY_TORCH), [attention, softmax]) == [
        ["passed"] * 3,
        ["forbidden"] * 2,
    ]


def test_a_function_outside_torch_is_forbidden_before_the_cells_run(
    bench: Bench, sit: Callable[..., Sitting], forks: list[Limits]
) -> None:
    softmax, attention, counter = bench.grader.suite.questions
    strict = dataclasses.replace(attention, forbidden=("math.sqrt",))
    taken = "from math import sqrt as root\n" + ANSWERS["attention"].replace(
        "math.sqrt", "root"
    )
    # the third test is over before a root is taken
    assert outcomes(sit(attention=taken), [softmax, strict, counter])[1] == [
        "forbidden",
        "forbidden",
        "passed",
    ]
    assert len(forks) == 2


def test_a_module_that_was_forbidden_works_again_once_the_ban_is_lifted() -> None:
    ban = Ban(["torch.nn.Softmax"])
    try:
        with pytest.raises(ForbiddenCall):
            torch.nn.Softmax(dim=0)(torch.zeros(2))
        with ban.watching():
            # an operation, which has another name
            assert torch.softmax(torch.zeros(2), 0).tolist() == [0.5, 0.5]
            with pytest.raises(ForbiddenCall):
                torch.nn.Softmax(dim=0)(torch.zeros(2))
    finally:
        ban.lift()
    assert torch.nn.Softmax(dim=0)(torch.zeros(2)).tolist() == [0.5, 0.5]


def test_what_asks_no_mode_is_forbidden_under_every_name() -> None:
    """Optimizers and functions of torch.nn.utils are no torch operations, and may have been
    imported before.
    """
    from torch.nn.utils import clip_grad_norm_ as clip
    from torch.optim import AdamW as Optimizer

    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.tensor([3.0, 4.0])
    ban = Ban(["torch.nn.utils.clip_grad_norm_", "torch.optim.AdamW"])
    try:
        with pytest.raises(ForbiddenCall, match="clip_grad_norm_"):
            clip([weight], 1.0)
        with pytest.raises(ForbiddenCall, match="AdamW"):
            Optimizer([weight])
    finally:
        ban.lift()
    assert float(clip([weight], 10.0)) == 5.0
    assert len(Optimizer([weight]).param_groups) == 1


HANGS = "def softmax(z, dim=-1):\n    while {condition}:\n        pass\n"


def messages(sitting: Sitting, question: str) -> list[str]:
    runs = sitting.run_all(all_questions(sitting))[question].values()
    return [run.verdict.message for run in runs]


def test_what_builds_on_a_function_that_always_hangs_is_tried_once(
    sit: Callable[..., Sitting], forks: list[Limits]
) -> None:
    """Workers: two end in tests of softmax, one in the first of attention, and counter has one."""
    first, *others = messages(
        sit(softmax=HANGS.format(condition=True), call_seconds=0.2), "attention"
    )
    assert first.startswith("attention did not end within 0.2 s of processor time")
    assert (
        others == ["Not run: a test of this question hung, and so did `softmax`."] * 2
    )
    assert len(forks) == 4


def test_a_function_that_passes_its_own_tests_is_not_given_up(
    sit: Callable[..., Sitting],
) -> None:
    """Softmax hangs on two rows, as attention's tests have them, and on no input of its own."""
    hangs = HANGS.format(condition="len(z) == 2")
    rest = ANSWERS["softmax"].split("\n", 1)[1]
    sitting = sit(softmax=hangs + rest, call_seconds=0.2)
    first, second, third = messages(sitting, "attention")
    for message in (first, second):
        assert message.startswith("attention did not end within 0.2 s")
    assert third == "Not run: two tests of this question hung."


SLOW = (
    "import time\n\ndef attention(q, k, v):\n    ends = time.process_time() + 0.3\n"
    "    while time.process_time() < ends:\n        pass\n"
)


def test_a_slow_right_answer_has_the_whole_limit_in_a_fresh_worker(
    sit: Callable[..., Sitting],
    forks: list[Limits],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call takes 0.3 s, of which a worker that has served softmax allows 0.1."""
    monkeypatch.setattr(sitting_module, "ATTEMPT_SECONDS", 0.1)
    rest = ANSWERS["attention"].split("\n", 1)[1]
    sitting = sit(attention=SLOW + rest)
    assert outcomes(sitting, all_questions(sitting)) == ALL_PASS
    assert len(forks) == 2
    assert sitting.two_answers == {"attention": ()}
