"""Questions in one worker: what passes there counts, and what does not runs again in a fresh one."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch
from courses import handed_in
from small_course import ANSWERS

from autograder.course import Limits
from autograder.grading.bench import Bench
from autograder.grading.sitting import Sitting
from autograder.intake.notebook import read_submission
from autograder.model import FoundSubmission
from autograder.sandbox.host import HostClient, WorkerGrant
from autograder.suite.collect import SuiteQuestion
from autograder.worker.forbidden import Ban, ForbiddenCall

BY_TORCH = {
    "softmax": "def softmax(z, dim=-1):\n    return torch.softmax(z, dim)\n",
    "attention": ANSWERS["attention"].replace("softmax(", "torch.softmax(").replace(") @ v", ", -1) @ v"),
}
NO_GRADIENTS = ANSWERS["softmax"].replace("    return", "    torch.set_grad_enabled(False)\n    return")
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

        def opened(**cells: str) -> Sitting:
            path = tmp_path / "student-001.ipynb"
            path.write_text(handed_in({**ANSWERS, **cells}), encoding="utf-8")
            limits = bench.course.limits
            submission = read_submission(FoundSubmission("student-001", path), bench.grader.release, limits)
            sitting = Sitting(bench.clients[0], limits, bench.grader.suite, submission)
            return stack.enter_context(contextlib.closing(sitting))

        yield opened


def outcomes(sitting: Sitting, questions: Sequence[SuiteQuestion]) -> list[list[str]]:
    return [[run.verdict.outcome for run in its.values()] for its in sitting.run_all(questions).values()]


ALL_PASS = [["passed"] * 2, ["passed"] * 3, ["passed"]]


def test_right_answers_need_one_worker(bench: Bench, sit: Callable[..., Sitting], forks: list[Limits]) -> None:
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
    deadline = sitting.place.deadline
    assert outcomes(sitting, bench.grader.suite.questions) == ALL_PASS
    assert len(forks) == 2
    assert sitting.place.deadline > deadline  # the attempt that does not count takes no time of the submission's


def test_what_one_question_forbids_another_may_call(
    bench: Bench, sit: Callable[..., Sitting], forks: list[Limits]
) -> None:
    softmax, attention, _ = bench.grader.suite.questions
    assert outcomes(sit(**BY_TORCH), [softmax, attention]) == [["forbidden"] * 2, ["passed"] * 3]
    assert len(forks) == 1


def test_what_a_later_question_forbids_is_forbidden_in_a_worker_that_served_others(
    bench: Bench, sit: Callable[..., Sitting]
) -> None:
    softmax, attention, _ = bench.grader.suite.questions
    assert outcomes(sit(**BY_TORCH), [attention, softmax]) == [["passed"] * 3, ["forbidden"] * 2]


def test_a_function_outside_torch_is_forbidden_before_the_cells_run(
    bench: Bench, sit: Callable[..., Sitting], forks: list[Limits]
) -> None:
    softmax, attention, counter = bench.grader.suite.questions
    strict = dataclasses.replace(attention, forbidden=("math.sqrt",))
    taken = "from math import sqrt as root\n" + ANSWERS["attention"].replace("math.sqrt", "root")
    # the third test is over before a root is taken
    assert outcomes(sit(attention=taken), [softmax, strict, counter])[1] == ["forbidden", "forbidden", "passed"]
    assert len(forks) == 2


def test_a_module_that_was_forbidden_works_again_once_the_ban_is_lifted() -> None:
    ban = Ban(["torch.nn.Softmax"])
    try:
        with pytest.raises(ForbiddenCall):
            torch.nn.Softmax(dim=0)(torch.zeros(2))
        with ban:
            assert torch.softmax(torch.zeros(2), 0).tolist() == [0.5, 0.5]  # an operation, which has another name
            with pytest.raises(ForbiddenCall):
                torch.nn.Softmax(dim=0)(torch.zeros(2))
    finally:
        ban.lift()
    assert torch.nn.Softmax(dim=0)(torch.zeros(2)).tolist() == [0.5, 0.5]


def test_what_asks_no_mode_is_forbidden_under_every_name() -> None:
    """Optimizers and functions of torch.nn.utils are no torch operations, and may have been imported before."""
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
