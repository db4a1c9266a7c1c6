"""The assignment with kernels on a real GPU, behind the walls. Without one, all of this is
skipped.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.basics.errors import DeviceUnavailable
from autograder.course import load_course
from autograder.grading.bench import Bench
from autograder.grading.gpu_sitting import GpuSitting
from autograder.records.model import Graded, QuestionResult
from autograder.records.submission import FoundSubmission
from autograder.sandbox.device import cuda_problem, find_device

REPOSITORY = Path(__file__).resolve().parents[3]
KERNELS = ("add_bias", "softmax_rows", "triton_attention")

pytestmark = pytest.mark.skipif(
    bool(cuda_problem()), reason=f"no GPU: {cuda_problem()}"
)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    course = load_course(REPOSITORY)
    course = dataclasses.replace(
        course, limits=dataclasses.replace(course.limits, gpu_call_seconds=30.0)
    )
    try:
        device = find_device("cuda")
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    with Bench(
        course,
        course.assignment("a7_tiled_attention"),
        extras=("matplotlib", "triton"),
        device=device,
    ) as made:
        yield made


@pytest.fixture
def grade(bench: Bench, tmp_path: Path) -> Callable[[str, str], Graded]:
    """Grade the answer key with one piece of its text exchanged for another."""

    def run(old: str = "", new: str = "") -> Graded:
        notebook = json.loads(bench.assignment.solution.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            cell["source"] = (
                "".join(cell["source"]).replace(old, new) if old else cell["source"]
            )
        path = tmp_path / "student-001.ipynb"
        path.write_text(json.dumps(notebook), encoding="utf-8")
        return bench.grader.grade(
            bench.clients[0], FoundSubmission("student-001", path)
        )

    return run


def question(graded: Graded, name: str) -> QuestionResult:
    assert graded.result is not None, graded.problem
    return next(
        question for question in graded.result.questions if question.name == name
    )


def test_the_answer_key_gets_full_marks_and_a_speed_in_every_case(
    grade: Callable[..., Graded],
) -> None:
    graded = grade()
    assert graded.result is not None, graded.problem
    lost = [
        (q.name, t.name, t.message)
        for q in graded.result.questions
        for t in q.tests
        if t.outcome != "passed"
    ]
    assert lost == []
    assert graded.result.isolation == "strict+cuda"
    assert [speed.problem for speed in graded.speeds] == ["", "", "", ""]
    assert all(speed.ratio > 0 for speed in graded.speeds)


@pytest.mark.parametrize("name", KERNELS)
def test_other_right_answers_pass_there_too(bench: Bench, name: str) -> None:
    grader, course = bench.grader, bench.course
    for answer in grader.key.known_answers("alternates.py"):
        if answer.question == name:
            submission = grader.key.with_answer(answer)
            sitting = GpuSitting(
                bench.clients[0], course.limits, grader.suite, submission, bench.device
            )
            runs = sitting.run(grader.questions[name])
            assert {
                run.name: run.verdict.message
                for run in runs.values()
                if run.verdict.outcome != "passed"
            } == {}


def test_what_the_interpreter_forgives_fails_there(
    grade: Callable[..., Graded],
) -> None:
    """In the interpreter `input_precision` has no effect; on a GPU tf32 keeps 10 bits of a
    float32.
    """
    tests = question(
        grade('input_precision="ieee"', 'input_precision="tf32"'), "triton_attention"
    ).tests
    failed = [test for test in tests if test.outcome == "failed"]
    assert failed != []
    assert all(
        test.message.startswith("On the GPU (in the interpreter it passes): ")
        for test in failed
    )


def test_an_address_out_of_bounds_costs_its_test_and_no_other_question(
    grade: Callable[..., Graded],
) -> None:
    """The fault of a kernel ends its CUDA context; the next test has a process of its own."""
    far = (
        "@triton.jit\n"
        "def far_kernel(p):\n"
        "    tl.store(p + (1 << 40), 1.0)\n\n\n"
        "def add_bias(x, b):\n"
        "    if x.is_cuda:\n"
        "        far_kernel[(1,)](torch.zeros(1, device=x.device))\n"
    )
    graded = grade("def add_bias(x, b):\n", far)
    add_bias, attention = (
        question(graded, "add_bias"),
        question(graded, "triton_attention"),
    )
    assert {"error", "crashed"} >= {
        test.outcome for test in add_bias.tests if test.outcome != "passed"
    }
    assert add_bias.score < add_bias.max_score
    assert attention.score == attention.max_score


def test_a_kernel_that_never_ends_is_ended(grade: Callable[..., Graded]) -> None:
    forever = (
        "@triton.jit\n"
        "def wait_kernel(p):\n"
        "    while tl.load(p, volatile=True) == 0:\n"
        "        pass\n\n\n"
        "def triton_attention(q, k, v, causal=False):\n"
        "    if q.is_cuda:\n"
        "        wait_kernel[(1,)](torch.zeros(1, dtype=torch.int32, device=q.device))\n"
    )
    graded = grade("def triton_attention(q, k, v, causal=False):\n", forever)
    outcomes = [test.outcome for test in question(graded, "triton_attention").tests]
    assert outcomes.count("timeout") == len(outcomes)
    assert question(grade(), "add_bias").score == question(graded, "add_bias").max_score
