"""A bench's hosts, and a sitting on a GPU, with hosts and workers that the test plays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from played_host import PlayedHost

from autograder.basics.errors import HostFailed, StudentCrashed, StudentTimeout
from autograder.course import Course, Limits
from autograder.grading import bench as bench_module
from autograder.grading import grader as grader_module
from autograder.grading.bench import Bench, count_graders
from autograder.grading.gpu_sitting import GpuSitting, OnDevice
from autograder.grading.grader import AssignmentGrader
from autograder.records.submission import FoundSubmission
from autograder.sitting.sitting import Sitting, TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call, Launch, start_log
from autograder.suite.collection import SuiteQuestion, SuiteTest


@pytest.fixture
def played(course: Course, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Bench]:
    """Starts a bench of so many clients, without a grader. `launched` has what each host was told;
    the first host falls from namespaces to landlock.
    """

    def launch(
        course: Course, isolation: str, clients: int, extras: Any, code: Any
    ) -> PlayedHost:
        launched.append((isolation, clients, extras, code))
        return PlayedHost("namespaces", clients, extras)

    def prove(course: Course, isolation: str, host: PlayedHost) -> PlayedHost:
        if isolation == "auto":
            host.close()
            return PlayedHost("landlock", len(host.clients), host.extras)
        return (
            host if not host.is_closed else PlayedHost(isolation, len(host.clients), ())
        )

    launched: list[Any] = []
    monkeypatch.setattr(bench_module, "launch_host", launch)
    monkeypatch.setattr(bench_module, "prove_host", prove)

    def start(clients: int) -> Bench:
        bench = object.__new__(Bench)
        bench.course, bench.assignment = course, course.assignment("small")
        bench._device_host = None
        bench.launched = launched  # type: ignore[attr-defined]
        bench.hosts = bench._launch_hosts("auto", clients, ("torch",))
        return bench

    return start


@pytest.mark.parametrize(
    ("clients", "shares"),
    [(1, [1]), (8, [8]), (9, [5, 4]), (17, [6, 6, 5]), (24, [8, 8, 8])],
)
def test_graders_are_shared_among_hosts_of_eight(
    played: Callable[[int], Bench], clients: int, shares: list[int]
) -> None:
    bench = played(clients)
    assert [len(host.clients) for host in bench.hosts] == shares
    assert len(bench.clients) == clients


def test_each_core_has_a_grader_while_there_are_submissions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    pairs = [(None, 9), (None, 3), (2, 9), (9, 3), (None, 0)]
    assert [count_graders(*pair) for pair in pairs] == [4, 3, 2, 3, 1]
    # a system may not tell its cores
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert count_graders(None, 9) == 1


def test_a_host_is_told_given_cells_and_no_answer(
    played: Callable[[int], Bench],
) -> None:
    ((isolation, _, extras, code),) = played(1).launched  # type: ignore[attr-defined]
    assert (isolation, extras) == ("auto", ("torch",))
    assert list(code.cells) == ["given_imports"]
    assert "def " not in "".join(code.cells.values())


def test_all_hosts_have_the_walls_of_the_first(played: Callable[[int], Bench]) -> None:
    bench = played(17)
    launched = list(bench.hosts)
    bench._prove_hosts("auto")
    assert [host.tier for host in bench.hosts] == ["landlock"] * 3
    assert all(host.is_closed for host in launched)  # type: ignore[attr-defined]
    kept = list(bench.hosts)
    bench._prove_hosts("landlock")
    assert bench.hosts == kept


def test_a_submission_is_graded_once_more_after_a_fault_of_the_host(
    played: Callable[[int], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = played(9)
    first_hosts = list(bench.hosts)
    failures = [HostFailed("gone")]

    def grade(client: object, submission: FoundSubmission) -> str:
        if failures:
            raise failures.pop()
        assert client in bench.clients
        return "graded"

    bench.grader = SimpleNamespace(grade=grade)  # type: ignore[assignment]
    submission = FoundSubmission("ada", bench.course.root)
    assert bench.grade(submission) == "graded"  # type: ignore[comparison-overlap]
    assert all(host.is_closed for host in first_hosts)  # type: ignore[attr-defined]
    assert not any(host.is_closed for host in bench.hosts)  # type: ignore[attr-defined]
    assert [len(host.clients) for host in bench.hosts] == [5, 4]
    failures += [HostFailed("gone")] * 2
    with pytest.raises(HostFailed):
        bench.grade(submission)
    with bench:
        pass
    assert all(host.is_closed for host in bench.hosts)  # type: ignore[attr-defined]


def test_the_device_is_opened_again_with_new_hosts(
    played: Callable[[int], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = played(1)
    opened: list[Any] = []
    used: list[Any] = []

    def open_device(course: Course, isolation: str, device: str) -> Any:
        host = PlayedHost(isolation, 1, ())
        opened.append(SimpleNamespace(device=device, host=host))
        return opened[-1]

    monkeypatch.setattr(bench_module, "open_device", open_device)
    bench.grader = SimpleNamespace(use_device=used.append)  # type: ignore[assignment]
    device: Any = "cuda"
    bench._open_device("auto", device)
    first: Any = bench.device
    bench.renew_hosts()
    assert first.host.is_closed
    second: Any = bench.device
    assert [first, second] == opened
    assert [(each.device, each.host.tier) for each in opened] == [
        ("cuda", "auto"),
        ("cuda", "namespaces"),
    ]
    assert used == opened
    with bench:
        pass
    assert second.host.is_closed


def test_a_grader_with_a_device_sits_on_it(course: Course) -> None:
    """The two sittings share one watch, and have clients and limits of their own."""
    device: Any = SimpleNamespace(client="device's", limits=Limits(call_seconds=9.0))
    suite: Any = SimpleNamespace(fixtures=SimpleNamespace(reference={}))
    grader: Any = object.__new__(AssignmentGrader)
    grader.course, grader.suite, grader._device = course, suite, None
    submission: Any = "the submission"
    plain = grader._start_sitting("own", submission)
    assert type(plain) is Sitting
    grader._device = device
    sitting = grader._start_sitting("own", submission)
    assert isinstance(sitting, GpuSitting)
    on_device = sitting._on_device
    each: Any
    for each, client, limits in (
        (plain, "own", course.limits),
        (sitting, "own", course.limits),
        (on_device, "device's", device.limits),
    ):
        assert (each._client, each._limits) == (client, limits)
        assert each.workplace.submission == submission
        assert each._suite is suite
    assert on_device.watch is sitting.watch


def test_a_mistake_that_is_learned_is_named_from_then_on() -> None:
    grader: Any = object.__new__(AssignmentGrader)
    grader.mistakes = ["old"]
    grader._known = "known answers"
    grader.key = SimpleNamespace(cells="cells")
    made: list[Any] = []

    class PlayedDiagnostician:
        def __init__(self, *arguments: Any) -> None:
            made.append(arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grader_module, "Diagnostician", PlayedDiagnostician)
        grader.learn("new")
    assert made == [("known answers", ["old", "new"], "cells")]
    assert isinstance(grader.diagnostician, PlayedDiagnostician)


# on a GPU

LAUNCH = Launch(1, 1, 0, 4, {}, {}, (), ())
TESTS = tuple(SuiteTest(f"test_{name}", 1.0, "") for name in "abcde")
QUESTION = SuiteQuestion("kernel", TESTS, (), ())


def run_of(
    name: str, outcome: Any = "passed", launch: Launch | None = LAUNCH
) -> TestRun:
    return TestRun(name, Verdict(outcome), (Call("kernel", (), {}, launch=launch),))


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, TestRun]]:
    """The runs of `QUESTION` where the interpreter gives `runs`, and tests raise this on the
    GPU. `sitting` is the last sitting, with the number of times that either worker was closed.
    """

    def play(
        runs: dict[str, TestRun], raised: dict[str, BaseException], **options: Any
    ) -> dict[str, TestRun]:
        def closing(count: list[str], name: str) -> Callable[..., None]:
            return lambda *_: count.append(name)

        sitting = object.__new__(GpuSitting)
        closed: list[str] = []
        device_sitting = SimpleNamespace(
            _prepare_student=lambda *_: None,
            close=closing(closed, "device"),
            _machine_fault=None,
        )
        sitting._on_device = device_sitting  # type: ignore[assignment]

        def run_in_interpreter(*_: object, **options: bool) -> dict[str, TestRun]:
            # its calls say which tests launched, and its worker stays for the device's turn
            assert options == {"keep_worker": True, "keep_calls": True}
            return dict(runs)

        monkeypatch.setattr(Sitting, "run", run_in_interpreter)
        monkeypatch.setattr(Sitting, "close", closing(closed, "interpreter"))
        monkeypatch.setattr(sitting, "_prepare_student", lambda *_: None)
        tried: list[str] = []

        def run_test(question: SuiteQuestion, test: SuiteTest, student: object) -> Any:
            tried.append(test.name)
            return raised.get(test.name), None

        def judge(
            question: str, test: SuiteTest, error: Any, log: Any, **_: Any
        ) -> TestRun:
            verdict = Verdict("failed", "it differs") if error else Verdict("passed")
            return TestRun(test.name, verdict, ())

        monkeypatch.setattr(sitting, "_run_test", run_test)
        monkeypatch.setattr(sitting, "_judge_run", judge)
        result = sitting.run(QUESTION, **options)
        play.tried, play.closed, play.sitting = tried, closed, sitting  # type: ignore[attr-defined]
        return result

    return play


def test_what_passed_with_kernels_runs_on_the_gpu_too(
    on_gpu: Callable[..., dict[str, TestRun]],
) -> None:
    runs = {
        "test_a": run_of("test_a"),
        "test_b": run_of("test_b", "failed"),
        "test_c": run_of("test_c", launch=None),
    }
    judged = on_gpu(runs, {})
    assert on_gpu.tried == ["test_a"]  # type: ignore[attr-defined]
    assert [run.verdict.outcome for run in judged.values()] == [
        "passed",
        "failed",
        "passed",
    ]
    assert [len(run.calls) for run in judged.values()] == [0, 1, 0]
    assert on_gpu.closed == ["device", "interpreter"]  # type: ignore[attr-defined]


def test_calls_and_workers_are_kept_where_they_are_asked_for(
    on_gpu: Callable[..., dict[str, TestRun]],
) -> None:
    judged = on_gpu({"test_a": run_of("test_a")}, {}, keep_calls=True, keep_worker=True)
    assert [call.launch for call in judged["test_a"].calls] == [LAUNCH]
    assert on_gpu.closed == []  # type: ignore[attr-defined]


def test_a_fault_on_the_gpu_is_told_and_ends_that_worker(
    on_gpu: Callable[..., dict[str, TestRun]],
) -> None:
    judged = on_gpu(
        {name: run_of(name) for name in ("test_a", "test_b")},
        {
            "test_a": StudentCrashed("illegal access"),
            "test_b": AssertionError("differs"),
        },
        keep_worker=True,
    )
    for run in judged.values():
        assert run.verdict.outcome == "failed"
        assert (
            run.verdict.message
            == "On the GPU (in the interpreter it passes): it differs"
        )
        assert len(run.calls) == 1
    assert on_gpu.closed == ["device"]  # type: ignore[attr-defined]


def test_after_two_hangs_the_question_has_no_more_time_on_the_gpu(
    on_gpu: Callable[..., dict[str, TestRun]],
) -> None:
    hang = StudentTimeout("it hangs")
    runs = {test.name: run_of(test.name) for test in TESTS}
    runs["test_e"] = run_of("test_e", launch=None)
    judged = on_gpu(runs, {"test_a": hang, "test_c": hang})
    # what launches nothing needs no GPU
    assert judged["test_e"].verdict.outcome == "passed"
    assert on_gpu.tried == ["test_a", "test_b", "test_c"]  # type: ignore[attr-defined]
    last = judged["test_d"].verdict
    assert (last.outcome, last.message) == (
        "timeout",
        "Not run on the GPU: two tests of this question hung there.",
    )
    assert judged["test_b"].verdict.outcome == "passed"


def test_a_fault_of_either_machine_counts(
    on_gpu: Callable[..., dict[str, TestRun]], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_gpu({}, {})
    sitting = on_gpu.sitting  # type: ignore[attr-defined]
    own, device = HostFailed("interpreter"), HostFailed("device")
    for own_fault, device_fault, expected in (
        (own, device, own),
        (None, device, device),
    ):
        monkeypatch.setattr(Sitting, "_machine_fault", own_fault)
        sitting._on_device._machine_fault = device_fault
        assert sitting._machine_fault is expected
    assert not sitting._continue_worker(QUESTION)


def test_a_launch_has_the_gpus_result_and_the_interpreters_counts() -> None:
    log = start_log({})

    def on_gpu_kernel(x: int) -> int:
        log.note(Call("kernel", (x,), {}))
        return 10 * x

    interpreter = SimpleNamespace(kernel=lambda x: -x, plain=lambda x: x + 1)
    device = SimpleNamespace(kernel=on_gpu_kernel)
    second = dataclasses.replace(LAUNCH, programs=7)
    student: Any = OnDevice(interpreter, device, [LAUNCH, second])  # type: ignore[arg-type]
    assert student.plain(1) == 2
    assert student.launch("kernel", 3) == (30, LAUNCH)
    assert student.launch("kernel", 4) == (40, second)
    assert [call.launch for call in log.calls] == [LAUNCH, second]
    with pytest.raises(
        AssertionError, match="kernel answers differently than in the interpreter"
    ):
        student.launch("kernel", 5)
