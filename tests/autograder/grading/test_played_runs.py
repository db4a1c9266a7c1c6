"""A run of `grade` whose submissions are graded by the test, and the parts that start graders."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Sequence
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import (
    BadSuite,
    DeviceUnavailable,
    HostFailed,
    KitError,
    NothingToGrade,
    ResultsInUse,
)
from autograder.course import Assignment, Course, Limits
from autograder.grading import batch, grader, run, station_program
from autograder.grading import bench as bench_module
from autograder.grading.bench import Bench, start_class_bench
from autograder.grading.examples import Examples
from autograder.grading.grader import AssignmentGrader
from autograder.grading.pool import FinishedJob
from autograder.grading.request import GradeRequest, GradeSummary, Watcher
from autograder.grading.run import grade_command
from autograder.grading.share import Share
from autograder.grading.station_program import Line
from autograder.records.model import Graded, Result, SmallExample, Speed
from autograder.records.results import (
    TimingFile,
    course_sha256,
    load_timing,
    lock_results,
    read_result,
    result_bytes,
    result_path,
    write_result,
)
from autograder.records.submission import FoundSubmission

Outcomes = dict[str, Graded]


class Machines:
    """Grades as `outcomes` says, in place of this machine's processes."""

    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes = outcomes
        self.refused = {"m2": "no walls", "m1": "no kit"}
        self.calls: list[Any] = []
        self.during: Callable[[str], None] = lambda student: None

    def grade(
        self,
        course: Course,
        assignment: Assignment,
        submissions: Sequence[FoundSubmission],
        isolation: str,
        warn: Callable[[str], None],
    ) -> Generator[tuple[Graded, bytes], None, None]:
        names = [submission.student for submission in submissions]
        self.calls.append((assignment.name, names, isolation))
        for name in names:
            graded = self.outcomes[name]
            content = result_bytes(graded.result) if graded.result else b""
            yield graded, content
            self.during(name)


class Told(Watcher):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.begun: list[tuple[str, int]] = []
        self.steps: list[str] = []
        self.ended = 0

    def begin(self, assignment: str, total: int) -> None:
        self.begun.append((assignment, total))

    def step(self, graded: Graded) -> None:
        self.steps.append(graded.student)

    def warn(self, line: str) -> None:
        self.lines.append(line)

    def __exit__(self, *error: object) -> None:
        self.ended += 1


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A built assignment m1, with submissions of ada, bob and cyd."""
    course = Course(tmp_path)
    assignment = Assignment("m1", tmp_path)
    for path in (assignment.release, assignment.solution, assignment.source):
        path.parent.mkdir(parents=True)
        path.touch()
    assignment.suite.mkdir(parents=True)
    for student in ("ada", "bob", "cyd"):
        path = course.submitted / student / "m1" / "m1.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(student)
    return course


def result(course: Course, student: str, **fields: Any) -> Result:
    """A result that is current: of this notebook and this suite."""
    sha256 = hashlib.sha256(student.encode()).hexdigest()
    suite = course_sha256(course, Assignment("m1", course.root))
    whole = Result("m1", student, sha256, suite, "strict", 0.0, 0.0, (), ())
    return dataclasses.replace(whole, **fields)


def graded(course: Course, *students: str, **fields: Any) -> Outcomes:
    return {
        student: Graded(student, result(course, student, **fields))
        for student in students
    }


def grade(
    course: Course, machines: Machines, told: Watcher | None = None, **options: Any
) -> GradeSummary:
    request = GradeRequest(
        course,
        Assignment("m1", course.root),
        results=course.results,
        other_machines=machines,
        **options,
    )
    return grade_command(request, told or Told())


def test_a_class_is_graded_once_and_then_current(course: Course) -> None:
    machines = Machines(graded(course, "ada", "bob", "cyd"))
    told = Told()
    summary = grade(course, machines, told)
    assert machines.calls == [("m1", ["ada", "bob", "cyd"], "auto")]
    assert [each.student for each in summary.results] == ["ada", "bob", "cyd"]
    assert (summary.graded, summary.problems, summary.speeds) == (3, (), ())
    assert summary.refused == ("m2: no walls", "m1: no kit")
    assert told.begun == [("m1", 3)]
    assert told.steps == ["ada", "bob", "cyd"]
    assert (told.lines, told.ended) == ([], 1)
    # a machine that has run for a while would show in a sum of the two times
    assert 0.0 <= summary.seconds < time.monotonic() / 2
    again = grade(course, machines, told)
    assert len(machines.calls) == 1
    assert len(told.begun) == 1
    assert [each.student for each in again.results] == ["ada", "bob", "cyd"]
    assert again.graded == 0
    forced = grade(course, machines, force=True, isolation="uid")
    assert machines.calls[1] == ("m1", ["ada", "bob", "cyd"], "uid")
    assert forced.graded == 3


def test_a_run_waits_for_no_other_run_of_the_same_results(course: Course) -> None:
    machines = Machines(graded(course, "ada", "bob", "cyd"))
    with (
        lock_results(course.kept / "locks", course.results, "m1"),
        pytest.raises(ResultsInUse),
    ):
        grade(course, machines)
    assert machines.calls == []
    grade(course, machines)
    assert len(machines.calls) == 1


def test_only_the_submissions_that_changed_are_graded(course: Course) -> None:
    machines = Machines(graded(course, "ada", "bob", "cyd"))
    grade(course, machines)
    (course.submitted / "bob" / "m1" / "m1.ipynb").write_text("other")
    result_path(course.results, "m1", "cyd").unlink()
    summary = grade(course, machines)
    assert machines.calls[1][1] == ["bob", "cyd"]
    assert summary.graded == 2


def test_problems_have_no_results_and_untried_ones_keep_theirs(
    course: Course,
) -> None:
    folder = course.results
    for student in ("ada", "bob"):
        write_result(folder, result(course, student, suite_sha256="old"))
    outcomes = graded(course, "cyd", isolation="landlock+cuda")
    outcomes["ada"] = Graded("ada", problem="no notebook")
    outcomes["bob"] = Graded("bob", problem="no host", untried=True)
    told = Told()
    summary = grade(course, Machines(outcomes), told)
    assert [problem.student for problem in summary.problems] == ["ada", "bob"]
    # an older result still is a result
    assert [each.student for each in summary.results] == ["bob", "cyd"]
    assert summary.graded == 1
    assert read_result(folder, "m1", "ada") is None
    bob = read_result(folder, "m1", "bob")
    assert bob is not None
    assert bob.suite_sha256 == "old"
    entries = {entry.student: entry for entry in load_timing(folder, "m1")}
    assert entries["ada"].problem == "no notebook"
    assert entries["bob"].older == "no host"
    (line,) = told.lines
    assert line.startswith(
        "WARNING: the strict walls do not stand here; isolation was 'l"
    )


def test_a_result_that_disappears_is_a_problem(course: Course) -> None:
    machines = Machines(graded(course, "ada", "bob", "cyd"))

    def remove(student: str) -> None:
        if student == "bob":
            result_path(course.results, "m1", "ada").unlink()

    machines.during = remove
    summary = grade(course, machines)
    assert [each.student for each in summary.results] == ["bob", "cyd"]
    (problem,) = summary.problems
    assert (problem.student, problem.untried) == ("ada", True)
    assert problem.problem.startswith(
        f"its result has disappeared from {course.results / 'm1'} while this ran; "
    )


def test_a_run_that_is_interrupted_keeps_what_it_has(course: Course) -> None:
    machines = Machines(graded(course, "ada", "bob", "cyd"))

    def interrupt(student: str) -> None:
        if student == "bob":
            raise KeyboardInterrupt

    machines.during = interrupt
    told = Told()
    with pytest.raises(KeyboardInterrupt):
        grade(course, machines, told)
    assert told.ended == 1
    assert read_result(course.results, "m1", "bob") is not None
    assert read_result(course.results, "m1", "cyd") is None
    names = [entry.student for entry in load_timing(course.results, "m1")]
    assert names == ["ada", "bob"]


def test_an_assignment_that_is_not_built_is_not_graded(course: Course) -> None:
    Assignment("m1", course.root).solution.unlink()
    with pytest.raises(KitError, match="is not built; run `autograder build m1`"):
        grade(course, Machines({}))


def test_without_submissions_there_is_nothing_to_grade(course: Course) -> None:
    shutil.rmtree(course.submitted)
    with pytest.raises(NothingToGrade):
        grade(course, Machines({}))


def test_a_share_grades_its_part_and_the_first_reports_for_all(course: Course) -> None:
    (course.submitted / "dan.IPYNB").touch()
    machines = Machines(graded(course, "ada", "bob", "cyd"))
    first = grade(course, machines, share=Share(1, 2))
    second = grade(course, machines, share=Share(2, 2))
    assert [call[1] for call in machines.calls] == [["ada", "cyd"], ["bob"]]
    assert [each.student for each in second.results] == ["bob"]
    assert (len(first.overlooked), len(second.overlooked)) == (1, 0)
    files = sorted(path.name for path in course.results.glob("m1.timing/*.json"))
    assert files == ["1-of-2.json", "2-of-2.json"]


def test_a_device_needs_a_kernel_in_the_suite(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = graded(course, "ada", "bob", "cyd", isolation="strict+cuda")
    machines = Machines(outcomes)
    with pytest.raises(DeviceUnavailable, match="no test of m1 launches a kernel"):
        grade(course, machines, device="cuda")
    suite = Assignment("m1", course.root).suite
    (suite / "test_k.py").write_text("student.launch('k')")
    for student, outcome in graded(course, "ada", "bob", "cyd").items():
        speeds = (Speed("small", 1.0, 2.0),) if student != "bob" else ()
        assert outcome.result is not None
        on_gpu = dataclasses.replace(outcome.result, isolation="strict+cuda")
        outcomes[student] = Graded(student, on_gpu, speeds=speeds)
    told = Told()
    summary = grade(course, machines, told, device="cuda", workers=2)
    assert [entry.student for entry in summary.speeds] == ["ada", "cyd"]
    assert told.lines == [
        "on a GPU one submission is graded at a time; --workers has no effect"
    ]
    told = Told()
    grade(course, machines, told, device="cuda", force=True)
    part = grade(
        course,
        machines,
        told,
        device="cuda",
        workers=1,
        paths=(course.submitted / "ada" / "m1" / "m1.ipynb",),
    )
    assert [entry.student for entry in part.speeds] == ["ada"]
    assert told.lines == []
    with pytest.raises(DeviceUnavailable, match="behind the walls 'uid'"):
        grade(course, machines, device="cuda", isolation="uid")
    assert grade(course, machines, force=True).speeds == ()


def test_a_broken_timing_file_makes_all_anew(course: Course) -> None:
    machines = Machines(graded(course, "ada", "bob", "cyd"))
    grade(course, machines)
    (course.results / "m1.timing.json").write_text("{")
    told = Told()
    summary = grade(course, machines, told)
    assert summary.graded == 3
    (line,) = told.lines
    assert line.endswith(
        "which results are older ones is not known, so all are graded again"
    )


def test_a_result_that_an_earlier_run_marked_is_graded_again(course: Course) -> None:
    machines = Machines(graded(course, "ada", "bob", "cyd"))
    grade(course, machines)
    timing = TimingFile(course.results, "m1")
    timing.mark_older(["ada"])
    timing.note([Graded("bob", problem="a problem of an earlier notebook")])
    grade(course, machines)
    assert machines.calls[1][1] == ["ada", "bob"]


# where graders are started


def test_this_machine_grades_where_no_other_does(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    def grade_batch(*arguments: Any, **options: Any) -> Any:
        calls.append((arguments, options))
        return iter(())

    monkeypatch.setattr(batch, "grade_batch", grade_batch)
    monkeypatch.setattr(run, "find_device", lambda name: f"the device {name}")
    assignment = Assignment("m1", course.root)
    request = GradeRequest(course, assignment, workers=3, isolation="uid")
    run._start_batch(request, [], Told())
    run._start_batch(dataclasses.replace(request, device="cuda"), [], Told())
    expected = {"workers": 3, "isolation": "uid", "device": None}
    assert calls[0] == ((course, assignment, []), expected)
    assert calls[1][1]["device"] == "the device cuda"


@pytest.mark.parametrize(
    ("workers", "submissions", "device", "graders"),
    [
        (None, 3, None, 3),
        (None, 9, None, 4),
        (2, 9, None, 2),
        (9, 3, None, 3),
        (None, 0, None, 1),
        (9, 9, "cuda", 1),
    ],
)
def test_a_class_has_as_many_graders_as_it_can_use(
    course: Course,
    monkeypatch: pytest.MonkeyPatch,
    workers: int | None,
    submissions: int,
    device: Any,
    graders: int,
) -> None:
    """On four cores; 2 minutes for the run."""
    benches: list[Any] = []
    pools: list[Any] = []

    class PlayedBench:
        grader = SimpleNamespace(grade_to_bytes="method")

        def __init__(self, *arguments: Any) -> None:
            benches.append(arguments)

        def __enter__(self) -> PlayedBench:
            return self

        def __exit__(self, *error: object) -> None: ...

    class PlayedPool:
        def __init__(self, bench: Any, jobs: Any, work: Any, until: float) -> None:
            pools.append((jobs, work, until))

        def run(self) -> Any:
            for job in pools[-1][0]:
                yield FinishedJob(job, fault="none")

    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(batch, "Bench", PlayedBench)
    monkeypatch.setattr(batch, "Pool", PlayedPool)
    monkeypatch.setattr(batch, "find_extras", lambda *arguments: ("torch",))
    monkeypatch.setattr("time.monotonic", lambda: 1000.0)
    timed = dataclasses.replace(course, limits=Limits(run_minutes=2.0))
    files = [FoundSubmission(str(n), Path(f"{n}.ipynb")) for n in range(submissions)]
    assignment = Assignment("m1", course.root)
    records = list(
        batch.grade_batch(
            timed, assignment, files, workers=workers, isolation="uid", device=device
        )
    )
    assert [record.student for record, _ in records] == [each.student for each in files]
    assert benches == [(timed, assignment, "uid", graders, ("torch",), device)]
    assert pools == [(files, "method", 1120.0)]


@pytest.mark.parametrize(
    ("workers", "files", "graders"),
    [(None, 9, 4), (2, 9, 2), (9, 3, 3), (None, 0, 1)],
)
def test_a_bench_for_a_class_has_a_grader_for_each_core(
    course: Course,
    monkeypatch: pytest.MonkeyPatch,
    workers: int | None,
    files: int,
    graders: int,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(bench_module, "find_extras", lambda *arguments: ("torch",))
    monkeypatch.setattr(bench_module, "Bench", lambda *arguments: arguments)
    assignment = Assignment("m1", course.root)
    submissions = [FoundSubmission("ada", Path("m1.ipynb"))] * files
    started: Any = start_class_bench(course, assignment, submissions, workers)
    assert started == (course, assignment, "auto", graders, ("torch",))


@pytest.fixture
def played_bench(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Bench, list[Any]]]:
    """Starts a bench whose hosts and grader are played; and what was told of them."""

    told: list[Any] = []

    def start(
        fault: BaseException | None = None, with_torch: bool = False, **options: Any
    ) -> tuple[Bench, list[Any]]:
        told.clear()
        host = SimpleNamespace(
            tier="uid", extras=("sympy",), clients=["client"], closed=0
        )

        def close() -> None:
            host.closed += 1

        host.close = close

        def launch(*arguments: Any) -> Any:
            told.append(("launch", *arguments[1:4]))
            return host

        def prove(course: Course, isolation: str, launched: Any) -> Any:
            told.append(("prove", isolation))
            if fault is not None:
                raise fault
            return launched

        class PlayedGrader:
            def __init__(self, course: Course, assignment: Assignment) -> None:
                told.append(("grader", assignment.name))
                assert not gc.isenabled()

            def isolation(self, client: object) -> str:
                return f"walls of {client}"

            def use_device(self, device: object) -> None:
                told.append(("device", device))

        release = SimpleNamespace(cells=[], companions={})
        monkeypatch.setattr(bench_module, "load_release", lambda assignment: release)
        monkeypatch.setattr(bench_module, "launch_host", launch)
        monkeypatch.setattr(bench_module, "prove_host", prove)
        monkeypatch.setattr(bench_module, "needs_torch", lambda assignment: with_torch)
        monkeypatch.setattr(bench_module, "open_device", lambda *arguments: arguments)
        monkeypatch.setattr(grader, "AssignmentGrader", PlayedGrader)
        told.append(host)
        bench = Bench(course, Assignment("m1", course.root), **options)
        return bench, told

    start.told = told  # type: ignore[attr-defined]
    return start


Start = Callable[..., tuple[Bench, list[Any]]]


def test_a_bench_launches_loads_and_proves(played_bench: Start) -> None:
    bench, (host, *told) = played_bench(
        isolation="uid", clients=3, extras=("matplotlib",), with_torch=True
    )
    assert told == [
        ("launch", "uid", 3, ("matplotlib", "torch")),
        ("grader", "m1"),
        ("prove", "uid"),
    ]
    assert gc.isenabled()
    assert bench.isolation == "walls of client"
    assert (bench.hosts, bench.host) == ([host], host)
    assert host.closed == 0
    with bench as same:
        assert same is bench
    assert host.closed == 1


def test_a_bench_without_torch_asks_for_none(
    played_bench: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    _, (_, launched, *_) = played_bench()
    assert launched == ("launch", "auto", 1, ())


def test_a_bench_that_cannot_begin_closes_its_hosts(played_bench: Start) -> None:
    with pytest.raises(HostFailed, match=r"^no walls$"):
        played_bench(fault=HostFailed("no walls"))
    host, *_ = played_bench.told  # type: ignore[attr-defined]
    assert host.closed == 1
    assert gc.isenabled()


def test_a_bench_with_a_device_tells_its_grader(played_bench: Start) -> None:
    device: Any = "the device"
    bench, told = played_bench(isolation="none", device=device)
    assert told[-1] == ("device", (bench.course, "none", "the device"))


# a grader with a device


def test_a_grader_times_the_function_that_the_suite_times(
    monkeypatch: pytest.MonkeyPatch, course: Course
) -> None:
    speed_test: Any = SimpleNamespace(question="double", function="double")
    tests: list[Any] = [None, speed_test, SimpleNamespace(question="gone")]
    monkeypatch.setattr(grader, "load_speed_test", lambda suite: tests.pop(0))
    made = object.__new__(AssignmentGrader)
    made.assignment = Assignment("m1", course.root)
    made.questions = {"double": SimpleNamespace()}  # type: ignore[dict-item]
    made._speed_meter = None
    made._device = None
    client: Any = SimpleNamespace(tier="namespaces")
    assert made.isolation(client) == "strict"
    device: Any = SimpleNamespace(device=SimpleNamespace(name="cuda"))
    made.use_device(device)
    assert made.isolation(client) == "strict+cuda"
    assert made._speed_meter is None
    made.use_device(device)
    assert made._speed_meter is not None
    assert made._speed_meter.test is speed_test
    with pytest.raises(BadSuite, match=r"speed\.py: there is no question 'gone'$"):
        made.use_device(device)


# examples


def test_a_question_without_a_wrong_answer_has_no_example(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing: Any = None
    known: Any = SimpleNamespace(
        record=lambda question, mistake: SimpleNamespace(runs=lambda runs: {})
    )
    examples = Examples(nothing, known, {}, (), Limits())
    finder: Any = SimpleNamespace()
    examples._finder = finder
    example = SmallExample("double(1)", "1", "2")
    found: list[Any] = [example]

    def find(failed: Any, functions: Any, fresh_functions: Any) -> Any:
        assert (functions, fresh_functions) == ("functions", "fresh functions")
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    finder.find = find
    asker: Any = SimpleNamespace(
        functions="functions", fresh_functions="fresh functions"
    )
    question: Any = SimpleNamespace(name="double")
    right = SimpleNamespace(answered=True, passed=True)
    wrong: Any = {"test_a": SimpleNamespace(answered=True, passed=False)}
    unwritten: Any = {"test_a": SimpleNamespace(answered=False, passed=False)}
    assert examples.find(question, {"test_a": right}, asker) is None  # type: ignore[dict-item]
    assert examples.find(question, unwritten, asker) is None
    assert examples.find(question, wrong, asker) is example
    found[0] = ValueError("an integer of 5000 digits")
    assert examples.find(question, wrong, asker) is None
    found[0] = HostFailed("gone")
    with pytest.raises(HostFailed):
        examples.find(question, wrong, asker)
    found[0] = example
    monkeypatch.setattr("autograder.grading.examples.loaded_torch", lambda: None)
    assert examples.find(question, wrong, asker) is None
    assert not examples.is_free("double")


# a station


def test_a_line_receives_a_submission_into_a_folder_of_its_number(
    tmp_path: Path,
) -> None:
    class Packed:
        def unpack_below(self, folder: Path) -> FoundSubmission:
            return FoundSubmission("ada", folder)

    connection: Any = SimpleNamespace(fileno=lambda: 17, recv=lambda: (5, Packed()))
    line = Line(connection, tmp_path)
    assert line.fileno() == 17
    assert line.receive() == (5, FoundSubmission("ada", tmp_path / "5"))


@pytest.mark.parametrize("fault", [KitError("no walls stand"), EOFError(), None])
def test_a_station_says_why_it_cannot_grade(
    monkeypatch: pytest.MonkeyPatch, fault: BaseException | None
) -> None:
    reader, writer = Pipe()
    duplicates: list[tuple[int, int]] = []

    def serve(connection: Any) -> None:
        assert connection.fileno() == writer.fileno()
        assert not os.get_inheritable(writer.fileno())
        if fault is not None:
            raise fault
        connection.send("served")

    os.set_inheritable(writer.fileno(), True)
    monkeypatch.setattr(sys, "argv", ["station", str(writer.fileno())])
    monkeypatch.setattr(os, "dup2", lambda *pair: duplicates.append(pair))
    monkeypatch.setattr(station_program, "serve", serve)
    monkeypatch.setattr(
        station_program,
        "Connection",
        lambda descriptor: writer if descriptor == writer.fileno() else None,
    )
    station_program.main()
    assert duplicates == [(2, 1)]
    answers = []
    while reader.poll():
        answers.append(reader.recv())
    said = ["no walls stand"] if isinstance(fault, KitError) else []
    assert answers == (["served"] if fault is None else said)
    reader.close()
    writer.close()


def test_a_station_answers_each_submission_and_clears_its_folder(
    monkeypatch: pytest.MonkeyPatch, course: Course
) -> None:
    sent: list[Any] = []
    connection: Any = SimpleNamespace(
        recv=lambda: (course.root, "m1", "auto", 2, ("torch",)), send=sent.append
    )
    benches: list[Any] = []
    scratch: list[Path] = []

    class PlayedBench:
        grader = SimpleNamespace(
            grade_to_bytes=lambda client, submission: submission.student.encode()
        )

        def __init__(self, *arguments: Any) -> None:
            benches.append((arguments[0].root, arguments[1].name, *arguments[2:]))

        def __enter__(self) -> PlayedBench:
            return self

        def __exit__(self, *error: object) -> None: ...

    class PlayedPool:
        def __class_getitem__(cls, kind: object) -> type[PlayedPool]:
            return cls

        def __init__(self, bench: Any, jobs: Any, work: Any, *, arrivals: Line) -> None:
            self.work = work
            scratch.append(arrivals._scratch)

        def run(self) -> Any:
            (scratch[0] / "4").mkdir()
            (scratch[0] / "5").mkdir()
            job = (4, FoundSubmission("ada", Path("m1.ipynb")))
            yield FinishedJob(job, self.work(None, job))
            assert sorted(path.name for path in scratch[0].iterdir()) == ["5"]
            yield FinishedJob((5, job[1]), fault="the host is gone")

    monkeypatch.setattr(station_program, "load_course", lambda root: course)
    monkeypatch.setattr(station_program, "Bench", PlayedBench)
    monkeypatch.setattr(station_program, "Pool", PlayedPool)
    station_program.serve(connection)
    assert benches == [(course.root, "m1", "auto", 2, ("torch",))]
    assert sent == ["", (4, b"ada", ""), (5, None, "the host is gone")]
    assert not scratch[0].exists()
