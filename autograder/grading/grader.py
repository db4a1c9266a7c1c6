"""Grades submissions of one assignment, one after the other, in this process: reads, runs,
diagnoses, carries.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from autograder.authoring.check_names import names_of_checks
from autograder.basics.errors import BadSuite, OutOfReach, UnreadableSubmission
from autograder.basics.points import total
from autograder.course import Assignment, Course
from autograder.diagnosis.answer_key import AnswerKey
from autograder.diagnosis.diagnostician import Diagnostician, NamedMistakes
from autograder.diagnosis.known_runs import KnownRuns
from autograder.diagnosis.known_sitting import KnownSitting
from autograder.grading.gpu_grader import GpuSitting
from autograder.grading.timing import SpeedMeter
from autograder.intake.cell_matching import find_answer_cell
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import Release, load_release
from autograder.records.model import (
    FoundSubmission,
    Graded,
    QuestionResult,
    Result,
    Speed,
    Submission,
    TestOutcome,
    TwoAnswers,
)
from autograder.records.results import course_sha256
from autograder.sandbox.device import DeviceHost
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.tiers import isolation_name
from autograder.sitting.charges import adjust_verdicts
from autograder.sitting.loaded_suite import LoadedSuite
from autograder.sitting.pricing import points_lost
from autograder.sitting.reference import load_reference
from autograder.sitting.replay import replay
from autograder.sitting.sitting import Sitting, TestRun
from autograder.sitting.verdict import explain_name, explain_unfit
from autograder.suite.calls import CallLog
from autograder.suite.collection import SuiteQuestion
from autograder.suite.prerequisites import prerequisites
from autograder.suite.timed_functions import load_speed_test

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Settled:
    """What counts of one question's runs.

    Attributes:
        runs: its tests as they are charged.
        again: lost tests once more, with stand-ins for failed prerequisites.
        carried: tests that are lost in `runs` and pass with stand-ins.
    """

    runs: Mapping[str, TestRun]
    again: Mapping[str, TestRun]
    carried: frozenset[str]

    @property
    def is_lost(self) -> bool:
        """Whether any test is lost."""
        return _passed(self.runs) != self.runs.keys()


class AssignmentGrader:
    """Everything about an assignment that is loaded once: suite, answer key, release, known
    mistakes.

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
        self.suite = LoadedSuite(assignment, self.reference, _released_questions(self.release))
        self.sha256 = course_sha256(course, assignment)
        self.key = AnswerKey(assignment, self.release, course.limits)
        self.mistakes = self.key.known_answers("mistakes.py")
        self.known_runs = KnownRuns(course, assignment, self.sha256)
        self._known = KnownSitting(self.key, self.suite, course.limits, self.known_runs)
        self.diagnostician = Diagnostician(self._known, self.mistakes, self.key.cells)
        self._key_runs: dict[tuple[str, str], TestRun] = {}
        self._device: DeviceHost | None = None
        self._speed: SpeedMeter | None = None
        self._names_of_checks = names_of_checks(self.release)
        self._uses = {question.name: tuple(question.uses) for question in self.suite.questions}

    def use(self, device: DeviceHost) -> None:
        """Run kernels on the device too from now on, and time what the suite says is timed.

        Raises:
            BadSuite: what is timed is no question of the suite.
        """
        self._device = device
        if (test := load_speed_test(self.assignment.suite)) is not None:
            if test.question not in self.questions:
                raise BadSuite(
                    f"{self.assignment.suite}/speed.py: there is no question {test.question!r}"
                )
            self._speed = SpeedMeter(device, test)

    def behind(self, client: HostClient) -> str:
        """How results name what was graded behind: the walls, and the device if there is one."""
        walls = isolation_name(client.tier)
        return f"{walls}+{self._device.device.name}" if self._device else walls

    def sit(self, client: HostClient, submission: Submission) -> Sitting:
        """The submission in front of the suite."""
        if self._device is not None:
            return GpuSitting(client, self.course.limits, self.suite, submission, self._device)
        return Sitting(client, self.course.limits, self.suite, submission)

    @property
    def questions(self) -> Mapping[str, SuiteQuestion]:
        """The suite's questions by name."""
        return {question.name: question for question in self.suite.questions}

    def grade(self, client: HostClient, found: FoundSubmission) -> Graded:
        """Grade one submission. What is wrong with it ends up in the answer; only the machine's
        faults are raised.

        Raises:
            HostFailed: no worker can be had.
        """
        started = time.monotonic()
        try:
            submission = read_submission(found, self.release, self.course.limits)
        except UnreadableSubmission as problem:
            return Graded(
                found.student, problem=str(problem), untried=isinstance(problem, OutOfReach)
            )
        read = time.monotonic() - started
        result, seconds = self.grade_submission(client, submission)
        started = time.monotonic()
        speeds = self._speeds(submission, result)
        timed = {"speed": time.monotonic() - started} if speeds else {}
        return Graded(
            submission.student, result, seconds={"read": read, **seconds, **timed}, speeds=speeds
        )

    def _speeds(self, submission: Submission, result: Result) -> tuple[Speed, ...]:
        """How fast the function is that the suite times; nothing where not all tests of its
        question passed.
        """
        if self._speed is None or self._device is None:
            return ()
        question = next(q for q in result.questions if q.name == self._speed.test.question)
        if any(test.outcome != "passed" for test in question.tests):
            return ()
        client, limits = self._device.client, self._device.limits
        try:
            with contextlib.closing(Sitting(client, limits, self.suite, submission)) as there:
                speeds = self._speed.measure(there.workplace.worker())
        # whatever it is, the result is there already, and is not lost for a time
        except Exception as error:
            problem = f"it has no speed here: {str(error) or repr(error)}"
            speeds = (Speed(self._speed.test.function, 0.0, 0.0, problem),)
        if client.fault is not None:
            raise client.fault  # it could cost a bonus
        return speeds

    def grade_submission(
        self, client: HostClient, submission: Submission, only: Collection[str] = ()
    ) -> tuple[Result, dict[str, float]]:
        """The result of a submission that was read (of some of its questions alone, where they are
        named), and the wall time by stage.

        Raises:
            HostFailed: the machine failed; whatever was seen until then says nothing of the
                submission.
        """
        with contextlib.closing(self.sit(client, submission)) as sitting:
            asked = [
                question for question in self.suite.questions if not only or question.name in only
            ]
            return self._result(client, submission, sitting, asked), sitting.watch.seconds

    def _result(
        self,
        client: HostClient,
        submission: Submission,
        sitting: Sitting,
        asked: Sequence[SuiteQuestion],
    ) -> Result:
        seen = sitting.run_all(asked)
        flags = {question.name: sitting.two_answers.get(question.name, ()) for question in asked}
        for question in asked:
            seen[question.name] = self._explained(client, question, seen[question.name])
        settled = self.settle(sitting, seen)
        with sitting.watch.stage("carry", whole=True):
            for name, counted in settled.items():
                flags[name] += replay(
                    client, sitting, self.questions[name], seen[name], counted.again, self.reference
                )
        lost = {
            name: {**seen[name], **question.again}
            for name, question in settled.items()
            if question.is_lost
        }
        with sitting.watch.stage("diagnosis"):
            named = self.diagnose(client, lost)
        questions = tuple(
            self._question_result(
                q, settled[q.name], named.get(q.name, NamedMistakes()), flags[q.name]
            )
            for q in asked
        )
        cells = (*sitting.workplace.cells, *submission.notices)
        return Result(
            assignment=self.assignment.name,
            student=submission.student,
            submission_sha256=submission.sha256,
            suite_sha256=self.sha256,
            isolation=self.behind(client),
            score=total([q.score for q in questions]),
            max_score=total([q.max_score for q in questions]),
            questions=questions,
            cells=tuple(
                dataclasses.replace(cell, message=explain_name(cell.message, self._names_of_checks))
                for cell in cells
            ),
        )

    def settle(
        self, sitting: Sitting, seen: Mapping[str, dict[str, TestRun]]
    ) -> dict[str, Settled]:
        """What counts of each question's runs, and which points come back because a prerequisite
        failed.
        """
        runs = {name: adjust_verdicts(first) for name, first in seen.items()}
        failed = {name for name in runs if _passed(runs[name]) != runs[name].keys()}
        uses = self._uses_in(sitting.workplace.submission)
        settled = {}
        with sitting.watch.stage("carry", whole=True):
            for name, first in seen.items():
                again = (
                    self._with_stand_ins(sitting, name, first, failed, uses)
                    if name in failed
                    else {}
                )
                counted = adjust_verdicts(first, again)
                carried = _passed(adjust_verdicts(again, first)) - _passed(counted)
                settled[name] = Settled(counted, again, frozenset(carried))
        return settled

    def _with_stand_ins(
        self,
        sitting: Sitting,
        name: str,
        runs: Mapping[str, TestRun],
        failed: set[str],
        uses: Mapping[str, Sequence[str]],
    ) -> dict[str, TestRun]:
        """The lost tests of a question once more, with its failed prerequisites stood in for: a
        test that is lost again is lost by the question's own fault.

        All tests of the question run, in their order, so that a fault that one call leaves behind
        for the next shows here too. Classes are stood in for along with any function, whose
        stand-in takes no objects of the student's.
        """
        question = self.questions[name]
        charges = adjust_verdicts(runs)
        # Forgiven failures too: one test is charged for each cause, and with stand-ins it may pass.
        lost = [
            test
            for test, run in runs.items()
            if (run.verdict.outcome, charges[test].verdict.outcome) != ("passed", "passed")
        ]
        before = prerequisites(name, uses)
        wrong = tuple(other for other in before if other in failed)
        if not wrong or not any(runs[test].answered for test in lost):
            return {}
        wrong += tuple(other for other in before if other not in wrong and self._is_class(other))
        again = sitting.run(question, stand_ins=wrong)
        return {test: again[test] for test in lost}

    def _uses_in(self, submission: Submission) -> dict[str, tuple[str, ...]]:
        """Which questions each question builds on: those that its suite declares, and earlier ones
        that the student's own cell names. The answer key need not call what a student's right
        answer calls.
        """
        uses: dict[str, tuple[str, ...]] = {}
        for name, declared in self._uses.items():
            cell = find_answer_cell(submission, name)
            words = set(_WORD.findall(cell.source)) if cell else set()
            uses[name] = (
                *declared,
                *(other for other in uses if other in words and other not in declared),
            )
        return uses

    def _explained(
        self, client: HostClient, question: SuiteQuestion, runs: dict[str, TestRun]
    ) -> dict[str, TestRun]:
        """The runs of a question's tests, with words for the answers that a test could not work
        with.

        Raises:
            SuiteFault: a test cannot work with the answers of the answer key either.
        """
        with self._known.use_client(client):
            for name, run in runs.items():
                if run.suite_fault is not None:
                    key = self._key_run(question, name)
                    if key.suite_fault is not None:
                        raise key.suite_fault
                    log = CallLog(self.reference, list(run.calls))
                    runs[name] = dataclasses.replace(
                        run, verdict=explain_unfit(run.verdict, log, key.calls), suite_fault=None
                    )
        return runs

    def _key_run(self, question: SuiteQuestion, test: str) -> TestRun:
        if (question.name, test) not in self._key_runs:
            runs = self._known.run(question, None, (test,))
            self._key_runs |= {(question.name, name): run for name, run in runs.items()}
        return self._key_runs[question.name, test]

    def diagnose(
        self, client: HostClient, runs: Mapping[str, Mapping[str, TestRun]]
    ) -> dict[str, NamedMistakes]:
        """The mistakes that explain what each question lost.

        Args:
            runs: by question all its tests, as they ran with right prerequisites.
        """
        with self._known.use_client(client):
            return {
                question: self.diagnostician.name_mistakes(self.questions[question], its)
                for question, its in runs.items()
            }

    def _is_class(self, name: str) -> bool:
        return isinstance(self.reference.get(name), type)

    def _question_result(
        self,
        question: SuiteQuestion,
        settled: Settled,
        named: NamedMistakes,
        two_answers: tuple[TwoAnswers, ...],
    ) -> QuestionResult:
        """The score of a question, of which `named` mistakes explain what was lost by its own
        fault.
        """
        points = {test.name: test.points for test in question.tests}
        tests = []
        for test in question.tests:
            verdict = settled.runs[test.name].verdict
            reached = test.points if verdict.outcome == "passed" else 0.0
            message = explain_name(verdict.text, self._names_of_checks)
            tests.append(TestOutcome(test.name, verdict.outcome, reached, test.points, message))
        regained = total(
            [points[test] * self.course.grading.carry_credit for test in settled.carried]
        )
        own = points.keys() - _passed(settled.runs) - settled.carried
        kept = total([*(points[test] for test in own), -points_lost(own, points, named.prices)])
        return QuestionResult(
            name=question.name,
            score=total([*(test.points for test in tests), regained, kept]),
            max_score=total(points.values()),
            carried=regained,
            diagnosis=named.first,
            tests=tuple(tests),
            slips=named.slips,
            kept=kept,
            two_answers=two_answers,
        )


def _passed(runs: Mapping[str, TestRun]) -> set[str]:
    """The tests that count as passed."""
    return {test for test, run in runs.items() if run.verdict.outcome == "passed"}


def _released_questions(release: Release) -> dict[str, str]:
    """The text of each question cell as students get it, in the order of the notebook."""
    return {cell.name: cell.source for cell in release.cells if cell.role == "question"}
