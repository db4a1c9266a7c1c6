"""Grades submissions of one assignment, one after the other, in this process: reads, runs, diagnoses, carries."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from types import TracebackType

from autograder.course import Assignment, Course
from autograder.errors import BadSuite, OutOfReach, UnreadableSubmission
from autograder.fingerprint import suite_sha256
from autograder.grading.charges import charged
from autograder.grading.diagnosis import Diagnostician, Named
from autograder.grading.known_runs import KnownRuns
from autograder.grading.outcomes import unfit
from autograder.grading.reference import load_reference
from autograder.grading.sitting import Sitting, TestRun
from autograder.grading.speed import SpeedMeter
from autograder.grading.suite_session import SuiteSession
from autograder.intake.matching import cell_of
from autograder.intake.notebook import read_submission
from autograder.intake.release import Release, load_release
from autograder.model import (
    Cell,
    Diagnosis,
    FoundSubmission,
    Graded,
    QuestionResult,
    Result,
    Speed,
    Submission,
    TestOutcome,
)
from autograder.points import total
from autograder.prerequisites import prerequisites
from autograder.results import inputs_sha256
from autograder.sandbox.device import DeviceBench
from autograder.sandbox.host import HostClient
from autograder.suite.calls import CallLog
from autograder.suite.collect import SuiteQuestion
from autograder.suite.known import KnownAnswer, load_known_answers
from autograder.suite.speed import load_speed_test


class SuiteGrader:
    """Everything about an assignment that is loaded once: suite, answer key, release, known mistakes.

    A context manager, because the pytest session inside must be ended.
    """

    def __init__(self, course: Course, assignment: Assignment) -> None:
        self.course, self.assignment = course, assignment
        self.release = load_release(assignment)
        self.suite = SuiteSession(assignment, load_reference(assignment), _questions_in_order(self.release))
        self.sha256 = inputs_sha256(suite_sha256(assignment.suite), assignment, course.limits, course.grading)
        self.known_runs = KnownRuns(course, assignment, self.sha256)
        self._key: Submission | None = None
        self.mistakes = self.known_answers("mistakes.py")
        self._diagnosticians: dict[int, Diagnostician] = {}
        self._mistakes = MistakeRunner(self)
        self._key_runs: dict[tuple[str, str], TestRun] = {}
        self._uses = {question.name: question.uses for question in self.suite.questions}
        self._device: DeviceBench | None = None
        self._speed: SpeedMeter | None = None

    def use_device(self, device: DeviceBench) -> None:
        """Run kernels there too from now on, and time what the suite says is timed.

        Raises:
            BadSuite: what is timed is no question of the suite.
        """
        self._device = device
        if (test := load_speed_test(self.assignment.suite)) is not None:
            if test.question not in self.questions:
                raise BadSuite(f"{self.assignment.suite}/speed.py: there is no question {test.question!r}")
            self._speed = SpeedMeter(device, test)

    @property
    def questions(self) -> Mapping[str, SuiteQuestion]:
        """The suite's questions by name."""
        return {question.name: question for question in self.suite.questions}

    def grade(self, client: HostClient, isolation: str, found: FoundSubmission) -> Graded:
        """Grade one submission. What is wrong with it ends up in the answer; only the machine's faults are raised.

        Raises:
            HostFailed: no worker can be had.
        """
        started = time.monotonic()
        try:
            submission = read_submission(found, self.release, self.course.limits)
        except UnreadableSubmission as problem:
            return Graded(found.student, found.path, None, str(problem), untried=isinstance(problem, OutOfReach))
        read = time.monotonic() - started
        result, seconds = self.grade_submission(client, isolation, submission)
        started = time.monotonic()
        speeds = self._speeds(submission, result)
        timing = {"speed": time.monotonic() - started} if speeds else {}
        return Graded(found.student, found.path, result, "", {"read": read, **seconds, **timing}, speeds=speeds)

    def _speeds(self, submission: Submission, result: Result) -> tuple[Speed, ...]:
        """How fast the function is that the suite times, where all tests of its question passed."""
        if self._device is None or self._speed is None:
            return ()
        question = next(q for q in result.questions if q.name == self._speed.test.question)
        if any(test.outcome != "passed" for test in question.tests):
            return ()
        try:
            with contextlib.closing(
                Sitting(self._device.client, self._device.limits, self.suite, submission)
            ) as sitting:
                speeds = self._speed.measure(sitting.open_worker())
        except Exception as error:  # whatever it is, the result is there already, and is not lost for a time
            problem = f"it has no speed here: {str(error) or repr(error)}"
            speeds = (Speed(self._speed.test.function, 0.0, 0.0, problem),)
        if (fault := self._device.client.fault) is not None:
            raise fault  # it could cost a bonus
        return speeds

    def grade_submission(
        self, client: HostClient, isolation: str, submission: Submission, only: Collection[str] = ()
    ) -> tuple[Result, dict[str, float]]:
        """The result of a submission that was read (of some of its questions alone, where they are named), and the wall
        time by stage.

        Raises:
            HostFailed: the machine failed; whatever was seen until then says nothing of the submission.
        """
        sitting = Sitting(client, self.course.limits, self.suite, submission, self._device)
        with contextlib.closing(sitting):
            asked = [question for question in self.suite.questions if not only or question.name in only]
            return self._result(client, isolation, submission, sitting, asked), sitting.watch.seconds

    def _result(
        self,
        client: HostClient,
        isolation: str,
        submission: Submission,
        sitting: Sitting,
        asked: Sequence[SuiteQuestion],
    ) -> Result:
        seen = sitting.run_all(asked)
        for question in asked:
            seen[question.name] = self._explained(client, question, seen[question.name])
        runs = {name: charged(its) for name, its in seen.items()}
        failed = {name for name, its in runs.items() if any(r.verdict.outcome != "passed" for r in its.values())}
        points = {q.name: {test.name: test.points for test in q.tests} for q in asked}
        with sitting.watch.stage("carry", whole=True):
            again = {name: self._with_stand_ins(sitting, name, seen, failed) for name in runs if name in failed}
        with sitting.watch.stage("diagnosis"):
            named = self.diagnose(client, {name: {**seen[name], **again[name]} for name in again})
        runs |= {name: charged(seen[name], again[name]) for name in again}
        carried = {name: self._carried(runs[name], charged(again[name], seen[name]), points[name]) for name in again}
        questions = tuple(
            _question_result(q, runs[q.name], carried.get(q.name, 0.0), named.get(q.name, Named())) for q in asked
        )
        return Result(
            assignment=self.assignment.name,
            student=submission.student,
            submission_sha256=submission.sha256,
            suite_sha256=self.sha256,
            isolation=isolation,
            score=total(q.score for q in questions),
            max_score=total(q.max_score for q in questions),
            questions=questions,
            cells=(*sitting.cells, *submission.notices),
        )

    def _with_stand_ins(
        self, sitting: Sitting, name: str, runs: dict[str, dict[str, TestRun]], failed: set[str]
    ) -> dict[str, TestRun]:
        """The failed tests of a question once more, its failed prerequisites stood in for: what is the question's own.

        A test that counts what a call costs runs with all prerequisites stood in for, at the answer key's cost: what
        a helper costs too much is charged where the helper is asked for. Classes are stood in for along with any
        function, whose stand-in takes no objects of the student's.
        """
        question = self.questions[name]
        counts = charged(runs[name])
        # those too that are not charged, since another one is: with stand-ins that one may pass
        lost = {
            test: run
            for test, run in runs[name].items()
            if (run.verdict.outcome, counts[test].verdict.outcome) != ("passed", "passed")
        }
        before = prerequisites(name, self._uses)
        wrong = tuple(other for other in before if other in failed)
        wrong += tuple(other for other in before if wrong and other not in wrong and self._is_class(other))
        if not before or not any(run.answered for run in lost.values()):
            return {}
        counted = tuple(test for test, run in lost.items() if any(call.cost for call in run.calls))
        others = tuple(test for test in lost if test not in counted)
        again = sitting.run(question, others, wrong) if wrong and others else {}
        return again | (sitting.run(question, counted, tuple(before)) if counted else {})

    def _explained(self, client: HostClient, question: SuiteQuestion, runs: dict[str, TestRun]) -> dict[str, TestRun]:
        """The runs of a question's tests, with words for the answers that a test could not work with.

        Raises:
            SuiteFault: a test cannot work with the answers of the answer key either.
        """
        with contextlib.closing(self._mistakes):
            for name, run in runs.items():
                if run.suspect is not None:
                    key = self._key_run(client, question, name)
                    if key.suspect is not None:
                        raise key.suspect
                    log = CallLog(self.suite.bench.reference, list(run.calls))
                    runs[name] = dataclasses.replace(run, verdict=unfit(run.verdict, log, key.calls), suspect=None)
        return runs

    def _key_run(self, client: HostClient, question: SuiteQuestion, test: str) -> TestRun:
        if (question.name, test) not in self._key_runs:
            self._key_runs |= {
                (question.name, name): run
                for name, run in self._mistakes.run(client, question.name, None, (test,)).items()
            }
        return self._key_runs[question.name, test]

    def diagnose(self, client: HostClient, runs: Mapping[str, Mapping[str, TestRun]]) -> dict[str, Named]:
        """The mistakes that explain what each question lost.

        Args:
            runs: by question all its tests, as they ran with right prerequisites.
        """
        with contextlib.closing(self._mistakes):
            return {question: self._named(client, question, its) for question, its in runs.items()}

    def _named(self, client: HostClient, question: str, runs: Mapping[str, TestRun]) -> Named:
        """The mistakes of one question; what is charged to one test is explained there alone."""
        points = {test.name: test.points for test in self.questions[question].tests}
        lost = {name for name, run in charged(runs).items() if run.verdict.outcome != "passed"}
        if not lost:
            return Named()
        named = self._diagnostician(client).name(question, runs, points)

        def of_lost(diagnosis: Diagnosis) -> Diagnosis:
            return dataclasses.replace(diagnosis, tests=tuple(test for test in diagnosis.tests if test in lost))

        return dataclasses.replace(
            named, first=of_lost(named.first) if named.first else None, slips=tuple(map(of_lost, named.slips))
        )

    def _is_class(self, name: str) -> bool:
        return isinstance(self.suite.bench.reference.get(name), type)

    def _carried(self, runs: Mapping[str, TestRun], again: Mapping[str, TestRun], points: Mapping[str, float]) -> float:
        """Points that come back: of tests that pass with stand-ins, and only with them."""
        passed = [{test for test, run in its.items() if run.verdict.outcome == "passed"} for its in (runs, again)]
        won = (points[test] for test in again if test in passed[1] - passed[0])
        return total(its * self.course.grading.carry_credit for its in won)

    # known answers

    def key(self) -> Submission:
        """The answer key as a submission."""
        if self._key is None:
            found = FoundSubmission("answer-key", self.assignment.solution)
            self._key = read_submission(found, self.release, self.course.limits)
        return self._key

    def known_answers(self, file: str) -> list[KnownAnswer]:
        """Those of `mistakes.py`, `alternates.py` or `samples.py`."""
        return load_known_answers(self.assignment.suite / file, self.key_cells)

    @property
    def key_cells(self) -> dict[str, str]:
        """The answer key's cell of each question."""
        return {cell.id: cell.source for cell in self.key().cells if cell.role == "question"}

    def with_answer(self, answer: KnownAnswer) -> Submission:
        """The answer key with one answer exchanged for a known one."""
        cell = Cell("known_answer", "extra", answer.cell)
        return dataclasses.replace(self.key(), student=answer.name, cells=(*self.key().cells, cell))

    def _diagnostician(self, client: HostClient) -> Diagnostician:
        def run(question: str, answer: KnownAnswer | None, tests: tuple[str, ...]) -> dict[str, TestRun]:
            return self._mistakes.run(client, question, answer, tests)

        if id(client) not in self._diagnosticians:
            self._diagnosticians[id(client)] = Diagnostician(self.mistakes, self.key_cells, run, self.known_runs)
        return self._diagnosticians[id(client)]

    def close(self) -> None:
        """End the suite's pytest session."""
        self.suite.close()

    def __enter__(self) -> SuiteGrader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class MistakeRunner:
    """Runs the known mistakes of a question one after the other in one worker: a fork and the answer key's cells once.

    Only for diagnosis; `verify` proves each of them in a worker of its own.
    """

    def __init__(self, grader: SuiteGrader) -> None:
        self._grader = grader
        self._question = ""
        self._sitting: Sitting | None = None

    def run(
        self, client: HostClient, question: str, answer: KnownAnswer | None, tests: tuple[str, ...]
    ) -> dict[str, TestRun]:
        """Run tests of a question on a mistake, or on the answer key where that is None."""
        grader = self._grader
        submission = grader.with_answer(answer) if answer else grader.key()
        if self._sitting is None or self._question != question:
            self.close()
            self._sitting = Sitting(client, grader.course.limits, grader.suite, submission)
            self._question = question
        else:
            # the key's own answer first: the mistake before may have bound other names than this one
            own = cell_of(grader.key(), question)
            self._sitting.go_on_with(submission, [*([own] if own else []), *submission.cells[-1:] * bool(answer)])
        return self._sitting.run(grader.questions[question], tests, keep_worker=True, keep_calls=True)

    def close(self) -> None:
        """End the worker that is open, if one is."""
        if self._sitting is not None:
            self._sitting.close()
            self._sitting = None


def _questions_in_order(release: Release) -> list[str]:
    return [cell.name for cell in release.cells if cell.role == "question"]


def _question_result(question: SuiteQuestion, runs: dict[str, TestRun], carried: float, named: Named) -> QuestionResult:
    tests = []
    for test in question.tests:
        verdict = runs[test.name].verdict
        points = test.points if verdict.outcome == "passed" else 0.0
        tests.append(TestOutcome(test.name, verdict.outcome, points, test.points, verdict.said))
    most = total(t.max_points for t in tests)
    reached = total([*(t.points for t in tests), carried])
    kept = max(named.keeps * most - reached, 0.0)
    return QuestionResult(
        name=question.name,
        score=total([reached, kept]),
        max_score=most,
        carried=carried,
        diagnosis=named.first,
        tests=tuple(tests),
        slips=named.slips,
        kept=total([kept]),
    )
