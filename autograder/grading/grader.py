"""Grades submissions of one assignment in this process: reads, runs, carries points, names
mistakes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from autograder.authoring.check_names import names_of_checks
from autograder.basics.errors import (
    BadSuite,
    OutOfReach,
    SuiteFault,
    UnreadableSubmission,
)
from autograder.basics.points import total
from autograder.course import Assignment, Course
from autograder.course.fingerprint import result_software
from autograder.diagnosis.answer_key import AnswerKey
from autograder.diagnosis.asking import Asker
from autograder.diagnosis.diagnostician import Diagnostician, NamedMistakes
from autograder.diagnosis.known_runs import KnownRuns
from autograder.diagnosis.known_sitting import KnownSitting
from autograder.grading.carried_points import (
    SettledQuestion,
    passed_tests,
    settle_questions,
)
from autograder.grading.examples import Examples
from autograder.grading.gpu_sitting import GpuSitting
from autograder.grading.graded_bytes import pack_graded
from autograder.grading.speed_meter import SpeedMeter
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import load_release
from autograder.records.model import (
    Graded,
    QuestionResult,
    Result,
    Speed,
    TestOutcome,
    TwoAnswers,
)
from autograder.records.results import course_sha256
from autograder.records.submission import CellOutcome, FoundSubmission, Submission
from autograder.sandbox.device import DeviceHost
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.student import Student
from autograder.sandbox.tiers import isolation_name
from autograder.sitting.loaded_suite import LoadedSuite
from autograder.sitting.pricing import least_loss, points_lost
from autograder.sitting.reference import load_reference
from autograder.sitting.replay import replay
from autograder.sitting.sitting import Sitting, TestRun
from autograder.sitting.verdict import explain_name, explain_unfit
from autograder.suite.calls import CallLog
from autograder.suite.collection import SuiteQuestion
from autograder.suite.known_answers import KnownAnswer
from autograder.suite.timed_functions import load_speed_test


@dataclass(frozen=True, slots=True)
class Failure:
    """The failed tests of one question on one submission, and the answer key's runs of them."""

    runs: Mapping[str, TestRun]
    key_runs: Mapping[str, TestRun]


class AssignmentGrader:
    """Grades submissions with all that is loaded once for an assignment: suite, answer key,
    release, known mistakes.

    Attributes:
        reference: the answer key's names, as tests call them.
        key: the answer key as a submission.
        suite: the collected suite.
        questions: the suite's questions by name, in the order of the notebook.
        diagnostician: names mistakes.
    """

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
    ) -> None:
        self.course = course
        self.assignment = assignment
        self.release = load_release(assignment)
        released_questions = {
            cell.name: cell.source
            for cell in self.release.cells
            if cell.role == "question"
        }
        self.reference = load_reference(assignment)
        self.suite = LoadedSuite(assignment, self.reference, released_questions)
        self.questions = {question.name: question for question in self.suite.questions}
        self.sha256 = course_sha256(course, assignment)
        self.key = AnswerKey(assignment, self.release, course.limits)
        self.mistakes = self.key.known_answers("mistakes.py")
        self.known_runs = KnownRuns(course, assignment, self.sha256)
        self._known = KnownSitting(self.key, self.suite, course.limits, self.known_runs)
        self.diagnostician = Diagnostician(self._known, self.mistakes, self.key.cells)
        self._examples = Examples(
            assignment, self._known, self.reference, self.questions, course.limits
        )
        self._key_runs: dict[tuple[str, str], TestRun] = {}
        self._device: DeviceHost | None = None
        self._speed_meter: SpeedMeter | None = None
        self._names_of_checks = names_of_checks(self.release)

    def use_device(self, device: DeviceHost) -> None:
        """Run kernels on the device too from now on, and time the function that the suite times.

        Raises:
            BadSuite: the timed function is no question of the suite.
        """
        self._device = device
        speed_test = load_speed_test(self.assignment.suite)
        if speed_test is None:
            return
        if speed_test.question not in self.questions:
            raise BadSuite(
                f"{self.assignment.suite}/speed.py: there is no question {speed_test.question!r}"
            )
        self._speed_meter = SpeedMeter(device, speed_test)

    def isolation(self, client: HostClient) -> str:
        """The walls, and the device if there is one, as results name them."""
        walls = isolation_name(client.tier)
        return f"{walls}+{self._device.device.name}" if self._device else walls

    def grade_to_bytes(
        self,
        client: HostClient,
        submission_file: FoundSubmission,
    ) -> bytes:
        """Grade one submission for another process; a fault of the suite is part of the record.

        Raises:
            HostFailed: no worker can be had.
        """
        try:
            graded = self.grade(client, submission_file)
        except SuiteFault as fault:
            problem = f"{submission_file.path.name}: {fault}"
            graded = Graded(submission_file.student, problem=problem, untried=True)
        return pack_graded(graded)

    def grade(
        self,
        client: HostClient,
        submission_file: FoundSubmission,
    ) -> Graded:
        """Grade one submission. A problem of the submission is part of the record; only the
        machine's faults are raised.

        Raises:
            HostFailed: no worker can be had.
            SuiteFault: a test of the suite is at fault.
        """
        started = time.monotonic()
        try:
            submission = read_submission(
                submission_file, self.release, self.course.limits
            )
        except UnreadableSubmission as problem:
            untried = isinstance(problem, OutOfReach)
            return Graded(
                submission_file.student, problem=str(problem), untried=untried
            )
        seconds = {"read": time.monotonic() - started}
        result, stages = self.grade_submission(client, submission)
        seconds |= stages
        started = time.monotonic()
        speeds: tuple[Speed, ...] = ()
        if self._speed_meter is not None:
            speeds = self._speed_meter.measure_submission(
                self.suite, submission, result
            )
        if speeds:
            seconds["speed"] = time.monotonic() - started
        return Graded(submission.student, result, seconds=seconds, speeds=speeds)

    def grade_submission(
        self,
        client: HostClient,
        submission: Submission,
        only: Collection[str] = (),
    ) -> tuple[Result, dict[str, float]]:
        """The result of a submission, and the wall time by stage.

        Args:
            only: the questions to grade; all where none are named.

        Raises:
            HostFailed: the machine failed; what was seen until then says nothing of the submission.
        """
        questions = [q for q in self.suite.questions if not only or q.name in only]
        with contextlib.closing(self._start_sitting(client, submission)) as sitting:
            results = self._grade_questions(client, sitting, questions)
            cells = [*sitting.workplace.cells, *submission.notices]
        result = Result(
            assignment=self.assignment.name,
            student=submission.student,
            submission_sha256=submission.sha256,
            suite_sha256=self.sha256,
            isolation=self.isolation(client),
            made_by={**result_software(), "tier": client.tier},
            score=total([question.score for question in results]),
            max_score=total([question.max_score for question in results]),
            questions=tuple(results),
            cells=tuple([self._explain_cell(cell) for cell in cells]),
        )
        return result, sitting.watch.seconds

    def run_failures(
        self,
        client: HostClient,
        submission: Submission,
        names: Collection[str],
    ) -> dict[str, Failure]:
        """What diagnosis would see of some questions: each question's failed tests, with right
        prerequisites. Questions without a written answer, and those that fail by their
        prerequisites alone, are left out.

        Raises:
            HostFailed: the machine failed.
        """
        with contextlib.closing(self._start_sitting(client, submission)) as sitting:
            runs = sitting.run_all(self.suite.questions)
            self._explain_unfit_answers(client, runs)
            settled = settle_questions(sitting, runs, self.questions, self.reference)
        failures = {}
        with self._known.use_client(client):
            for name in names:
                merged = {**runs[name], **settled[name].stand_in_runs}
                failed = {
                    test: run
                    for test, run in merged.items()
                    if not run.passed and run.answered
                }
                if failed:
                    key_record = self._known.record(self.questions[name], None)
                    failures[name] = Failure(failed, key_record.runs(failed))
        return failures

    def learn(self, mistake: KnownAnswer) -> None:
        """Name one more mistake from now on, which is not in the suite's files yet."""
        self.mistakes.append(mistake)
        self.name_only(self.mistakes)

    def name_only(self, mistakes: Sequence[KnownAnswer]) -> None:
        """Name these mistakes from now on, and no others."""
        self.diagnostician = Diagnostician(self._known, mistakes, self.key.cells)

    def _start_sitting(
        self,
        client: HostClient,
        submission: Submission,
    ) -> Sitting:
        limits = self.course.limits
        if self._device is not None:
            return GpuSitting(client, limits, self.suite, submission, self._device)
        return Sitting(client, limits, self.suite, submission)

    def _explain_cell(self, cell: CellOutcome) -> CellOutcome:
        message = explain_name(cell.message, self._names_of_checks)
        return dataclasses.replace(cell, message=message)

    def _grade_questions(
        self,
        client: HostClient,
        sitting: Sitting,
        questions: Sequence[SuiteQuestion],
    ) -> list[QuestionResult]:
        runs = sitting.run_all(questions)
        self._explain_unfit_answers(client, runs)
        settled = settle_questions(sitting, runs, self.questions, self.reference)
        flags = {}
        with sitting.watch.stage("carry", whole=True):
            for question in questions:
                stand_in_runs = settled[question.name].stand_in_runs
                flags[question.name] = sitting.two_answers.get(
                    question.name, ()
                ) + replay(
                    client,
                    sitting,
                    question,
                    runs[question.name],
                    stand_in_runs,
                    self.reference,
                )
        failed = {
            name: {**runs[name], **question.stand_in_runs}
            for name, question in settled.items()
            if question.has_failed
        }
        with sitting.watch.stage("diagnosis"):
            named = self.diagnose(client, sitting, failed)
        results = []
        for question in questions:
            mistakes = named.get(question.name, NamedMistakes())
            results.append(
                self._question_result(
                    question, settled[question.name], mistakes, flags[question.name]
                )
            )
        return results

    def _explain_unfit_answers(
        self,
        client: HostClient,
        runs: Mapping[str, dict[str, TestRun]],
    ) -> None:
        """Put messages into the runs of tests that could not work with the submission's answers.

        Raises:
            SuiteFault: a test cannot work with the answers of the answer key either.
        """
        with self._known.use_client(client):
            for name, question_runs in runs.items():
                for test, run in question_runs.items():
                    if run.suite_fault is None:
                        continue
                    key_run = self._key_run(self.questions[name], test)
                    if key_run.suite_fault is not None:
                        raise key_run.suite_fault
                    log = CallLog(self.reference, list(run.calls))
                    verdict = explain_unfit(run.verdict, log, key_run.calls)
                    question_runs[test] = dataclasses.replace(
                        run, verdict=verdict, suite_fault=None
                    )

    def _key_run(
        self,
        question: SuiteQuestion,
        test: str,
    ) -> TestRun:
        """The run of a test on the answer key; stored runs have no `suite_fault`."""
        name = (question.name, test)
        if name not in self._key_runs:
            self._key_runs[name] = self._known.run(question, None, (test,))[test]
        return self._key_runs[name]

    def diagnose(
        self,
        client: HostClient,
        sitting: Sitting,
        runs: Mapping[str, Mapping[str, TestRun]],
    ) -> dict[str, NamedMistakes]:
        """The mistakes that explain each question's failures, with examples that show them.

        Args:
            sitting: the submission's, for further calls of its functions.
            runs: by question all its tests, as they ran with right prerequisites.
        """
        named = {}
        with self._known.use_client(client):
            for name, question_runs in runs.items():
                question = self.questions[name]
                stand_ins = max(run.stand_ins for run in question_runs.values())
                open_functions = partial(sitting.open_functions, question, stand_ins)
                asker = self.make_asker(question, open_functions)
                mistakes = self.diagnostician.name_mistakes(
                    question, question_runs, asker
                )
                example = self._examples.find(question, question_runs, asker)
                named[name] = dataclasses.replace(mistakes, example=example)
                sitting.close()
        return named

    def make_asker(
        self,
        question: SuiteQuestion,
        open_functions: Callable[[], Student],
    ) -> Asker:
        """What makes sights of one submission's answers to a question."""
        return Asker(
            open_functions,
            self.reference,
            self.course.limits,
            is_free=self._examples.is_free(question.name),
        )

    def show_mistakes(
        self,
        client: HostClient,
        question: SuiteQuestion,
        runs: Mapping[str, TestRun],
        asker: Asker,
        *,
        is_right: bool,
    ) -> list[str]:
        """The mistakes that show by evidence in the runs of a question.

        Args:
            is_right: whether the answer is a right one, all of whose calls are looked at.
        """
        with self._known.use_client(client):
            if is_right:
                return self.diagnostician.show_in_right_answer(question, runs, asker)
            return self.diagnostician.show_mistakes(question, runs, asker)

    def _question_result(
        self,
        question: SuiteQuestion,
        settled: SettledQuestion,
        mistakes: NamedMistakes,
        two_answers: tuple[TwoAnswers, ...],
    ) -> QuestionResult:
        """The score of a question.

        Args:
            mistakes: explain what was lost by the question's own fault.
            two_answers: calls that were answered differently in two runs.
        """
        points = {test.name: test.points for test in question.tests}
        passed = passed_tests(settled.runs)
        tests = []
        for test in question.tests:
            verdict = settled.runs[test.name].verdict
            reached = test.points if test.name in passed else 0.0
            message = explain_name(verdict.text, self._names_of_checks)
            tests.append(
                TestOutcome(test.name, verdict.outcome, reached, test.points, message)
            )
        credit = self.course.grading.carry_credit
        carried_points = total([credit * points[test] for test in settled.carried])
        own_failures = points.keys() - passed - settled.carried
        by_tests = total([points[test] for test in own_failures])
        failed_runs = [settled.runs[test] for test in own_failures]
        lost = max(
            points_lost(own_failures, points, mistakes.prices),
            least_loss(failed_runs, total(points.values())),
        )
        # a named mistake may cost less than the tests that it fails, a memory fault more
        kept_points = max(0.0, total([by_tests, -lost]))
        capped_points = max(0.0, total([lost, -by_tests]))
        reached_points = [test.points for test in tests]
        return QuestionResult(
            name=question.name,
            score=total([*reached_points, carried_points, kept_points, -capped_points]),
            max_score=total(points.values()),
            carried=carried_points,
            diagnosis=mistakes.first,
            tests=tuple(tests),
            slips=mistakes.slips,
            kept=kept_points,
            capped=capped_points,
            two_answers=two_answers,
            evidence=mistakes.evidence,
            example=mistakes.example,
        )
