"""Grades submissions of one assignment, one after the other, in this process: reads, runs, diagnoses, carries."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence

from autograder.course import Assignment, Course
from autograder.errors import OutOfReach, UnreadableSubmission
from autograder.grading.answer_key import AnswerKey
from autograder.grading.charges import charged
from autograder.grading.diagnosis import Diagnostician, Named
from autograder.grading.known_runs import KnownRuns
from autograder.grading.known_sitting import KnownSitting
from autograder.grading.loaded_suite import LoadedSuite
from autograder.grading.outcomes import unfit
from autograder.grading.reference import load_reference
from autograder.grading.sitting import Sitting, TestRun
from autograder.intake.notebook import read_submission
from autograder.intake.release import Release, load_release
from autograder.model import (
    Diagnosis,
    FoundSubmission,
    Graded,
    QuestionResult,
    Result,
    Submission,
    TestOutcome,
)
from autograder.points import total
from autograder.prerequisites import prerequisites
from autograder.results import course_sha256
from autograder.sandbox.host import HostClient
from autograder.sandbox.tiers import isolation_name
from autograder.suite.calls import CallLog
from autograder.suite.collect import SuiteQuestion


class AssignmentGrader:
    """Everything about an assignment that is loaded once: suite, answer key, release, known mistakes.

    Attributes:
        reference: the answer key's names, as tests call them.
        key: the answer key as a submission.
        suite: the collected suite.
        diagnostician: names mistakes.
    """

    def __init__(self, course: Course, assignment: Assignment) -> None:
        self.course, self.assignment = course, assignment
        self.release = load_release(assignment)
        self.reference = load_reference(assignment)
        self.suite = LoadedSuite(assignment, self.reference, _questions_in_order(self.release))
        self.sha256 = course_sha256(course, assignment)
        self.key = AnswerKey(assignment, self.release, course.limits)
        self.mistakes = self.key.known_answers("mistakes.py")
        self.known_runs = KnownRuns(course, assignment, self.sha256)
        self._known = KnownSitting(self.key, self.suite, course.limits)
        self.diagnostician = Diagnostician(self._known, self.mistakes, self.key.cells, self.known_runs)
        self._key_runs: dict[tuple[str, str], TestRun] = {}
        self._uses = {question.name: question.uses for question in self.suite.questions}

    def behind(self, client: HostClient) -> str:
        """How results name what was graded behind."""
        return isolation_name(client.tier)

    def sit(self, client: HostClient, submission: Submission) -> Sitting:
        """The submission in front of the suite."""
        return Sitting(client, self.course.limits, self.suite, submission)

    @property
    def questions(self) -> Mapping[str, SuiteQuestion]:
        """The suite's questions by name."""
        return {question.name: question for question in self.suite.questions}

    def grade(self, client: HostClient, found: FoundSubmission) -> Graded:
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
        graded = self.grade_read(client, submission)
        return dataclasses.replace(graded, seconds={"read": read, **graded.seconds})

    def grade_read(self, client: HostClient, submission: Submission) -> Graded:
        """Grade a submission that was read."""
        result, seconds = self.grade_submission(client, submission)
        return Graded(submission.student, submission.path, result, seconds=seconds)

    def grade_submission(
        self, client: HostClient, submission: Submission, only: Collection[str] = ()
    ) -> tuple[Result, dict[str, float]]:
        """The result of a submission that was read (of some of its questions alone, where they are named), and the wall
        time by stage.

        Raises:
            HostFailed: the machine failed; whatever was seen until then says nothing of the submission.
        """
        with contextlib.closing(self.sit(client, submission)) as sitting:
            asked = [question for question in self.suite.questions if not only or question.name in only]
            return self._result(client, submission, sitting, asked), sitting.watch.seconds

    def _result(
        self, client: HostClient, submission: Submission, sitting: Sitting, asked: Sequence[SuiteQuestion]
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
            isolation=self.behind(client),
            score=total(q.score for q in questions),
            max_score=total(q.max_score for q in questions),
            questions=questions,
            cells=(*sitting.place.cells, *submission.notices),
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
        with self._known.with_workers_of(client):
            for name, run in runs.items():
                if run.suspect is not None:
                    key = self._key_run(question, name)
                    if key.suspect is not None:
                        raise key.suspect
                    log = CallLog(self.reference, list(run.calls))
                    runs[name] = dataclasses.replace(run, verdict=unfit(run.verdict, log, key.calls), suspect=None)
        return runs

    def _key_run(self, question: SuiteQuestion, test: str) -> TestRun:
        if (question.name, test) not in self._key_runs:
            runs = self._known.run(question, None, (test,))
            self._key_runs |= {(question.name, name): run for name, run in runs.items()}
        return self._key_runs[question.name, test]

    def diagnose(self, client: HostClient, runs: Mapping[str, Mapping[str, TestRun]]) -> dict[str, Named]:
        """The mistakes that explain what each question lost.

        Args:
            runs: by question all its tests, as they ran with right prerequisites.
        """
        with self._known.with_workers_of(client):
            return {question: self._named(self.questions[question], its) for question, its in runs.items()}

    def _named(self, question: SuiteQuestion, runs: Mapping[str, TestRun]) -> Named:
        """The mistakes of one question; what is charged to one test is explained there alone."""
        points = {test.name: test.points for test in question.tests}
        lost = {name for name, run in charged(runs).items() if run.verdict.outcome != "passed"}
        if not lost:
            return Named()
        named = self.diagnostician.name(question, runs, points)

        def of_lost(diagnosis: Diagnosis) -> Diagnosis:
            return dataclasses.replace(diagnosis, tests=tuple(test for test in diagnosis.tests if test in lost))

        return dataclasses.replace(
            named, first=of_lost(named.first) if named.first else None, slips=tuple(map(of_lost, named.slips))
        )

    def _is_class(self, name: str) -> bool:
        return isinstance(self.reference.get(name), type)

    def _carried(self, runs: Mapping[str, TestRun], again: Mapping[str, TestRun], points: Mapping[str, float]) -> float:
        """Points that come back: of tests that pass with stand-ins, and only with them."""
        passed = [{test for test, run in its.items() if run.verdict.outcome == "passed"} for its in (runs, again)]
        won = (points[test] for test in again if test in passed[1] - passed[0])
        return total(its * self.course.grading.carry_credit for its in won)


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
