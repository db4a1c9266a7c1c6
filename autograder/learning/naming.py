"""Makes a known mistake of a group: proves the mistake, and writes it into the suite."""

from __future__ import annotations

import dataclasses
import keyword
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.errors import KitError, NotProven
from autograder.basics.locks import hold_lock
from autograder.basics.safe_text import describe_test
from autograder.basics.whole_files import write_whole
from autograder.course import Assignment, Course
from autograder.grading.bench import Bench
from autograder.intake.notebook import read_submission
from autograder.learning.mistakes_file import (
    add_definition,
    mistake_text,
    name_from_sentence,
    sample_text,
)
from autograder.proof.cost_exceptions import load_costs
from autograder.proof.figures import cost_problems, question_figures
from autograder.proof.trials import Proctor, examine_jobs, known_trial
from autograder.proof.whole_submissions import SAMPLES_FILE, grade_alone
from autograder.records.groups import MistakeGroup
from autograder.records.results import course_sha256
from autograder.records.submission import FoundSubmission
from autograder.sandbox.host_process import HostClient
from autograder.suite.known_answers import KnownAnswer

KEEPS = 0.5
"""The share of its question's points that a learned mistake keeps, unless the instructor says
otherwise: a right idea with one slip loses half at most.
"""
MISTAKES_FILE = "mistakes.py"
SAMPLE = "the_groups_other_answer"
"""The name under which a group's other answer is graded before it is a sample."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A group with the name that the instructor gives it.

    Attributes:
        hint: the message for students.
        keeps: the share of the question's points that an answer keeps whose only fault this is.
        name: the mistake's name.
    """

    group: MistakeGroup
    hint: str
    keeps: float
    name: str

    @property
    def answer(self) -> KnownAnswer:
        """The mistake as the suite would load it."""
        group = self.group
        return KnownAnswer(
            group.question,
            self.name,
            self.hint,
            group.code,
            keeps=self.keeps,
            function=group.question,
            is_students=True,
        )


@dataclass(frozen=True, slots=True)
class Regraded:
    """A member's question before and after the mistake has a name.

    Attributes:
        named: the mistakes that are named in the question after.
    """

    student: str
    before: float
    after: float
    max_score: float
    named: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A student of a group, with the notebook and the question's score in the stored result."""

    file: FoundSubmission
    question: str
    before: float


def make_lesson(
    group: MistakeGroup,
    sentence: str,
    hint: str | None,
    keeps: float | None,
    name: str | None,
    assignment: Assignment,
) -> Lesson:
    """A lesson with defaults for what the instructor left out: the sentence as hint, half of the
    points, and a name from the sentence.

    Raises:
        KitError: the group has no code or a name already, or the mistake's name is taken or is no
            identifier.
    """
    if group.mistake:
        raise KitError(f"{group.name} is named already: {group.mistake}")
    if group.problem:
        raise KitError(
            f"{group.name} has no answer that can become a known mistake: {group.problem}; write "
            f"one into {assignment.suite / MISTAKES_FILE} by hand"
        )
    sentence = " ".join(sentence.split())
    if not sentence:
        raise KitError("say in one sentence what is wrong")
    name = name or name_from_sentence(sentence)
    if not name.isidentifier() or keyword.iskeyword(name):
        raise KitError(
            "the mistake needs a name of letters and underscores: add `--as NAME`"
        )
    hint = hint or _as_hint(sentence)
    return Lesson(group, hint, KEEPS if keeps is None else keeps, name)


def _as_hint(sentence: str) -> str:
    """A sentence with a capital letter and a full stop."""
    end = "" if sentence[-1] in ".?!" else "."
    return sentence[0].upper() + sentence[1:] + end


def prove_lesson(
    bench: Bench, lesson: Lesson, members: Sequence[Member]
) -> tuple[list[Regraded], list[str]]:
    """The members' scores with the mistake named, and whatever stands against the mistake.

    Nothing is written: the bench's grader learns the mistake, and runs it in workers.
    """
    grader = bench.grader
    problems = list(_name_problems(bench, lesson))
    if problems:
        return [], problems
    mistake = lesson.answer
    grader.learn(mistake)
    problems += _trial_problems(bench, lesson)
    if problems:
        return [], problems
    lone_answers, elsewhere = grade_alone(bench, [mistake])
    problems += elsewhere
    for lone_answer in lone_answers:
        if lone_answer.named[:1] != (mistake.name,):
            told = " and ".join(lone_answer.named) or "nothing"
            problems.append(f"it is not distinct: by itself it is told {told}")
    regraded, faults = _regrade_members(bench, members)
    problems += faults
    unnamed = [
        member.student for member in regraded if mistake.name not in member.named
    ]
    if len(unnamed) == len(regraded):
        problems.append(
            "cut out of its notebook, the answer does not behave as the group does: it may use "
            f"variables of other cells; write it into {MISTAKES_FILE} by hand"
        )
    return regraded, problems


def check_sample(bench: Bench, lesson: Lesson) -> Lesson:
    """The lesson, without the group's other answer where that does not get the mistake's name: it
    may have a second fault, or need the rest of its notebook.
    """
    if not lesson.group.other_code:
        return lesson
    sample = dataclasses.replace(
        lesson.answer, name=SAMPLE, cell=lesson.group.other_code
    )
    lone_answers, problems = grade_alone(bench, [sample])
    if not problems and [answer.named for answer in lone_answers] == [(lesson.name,)]:
        return lesson
    return dataclasses.replace(
        lesson, group=dataclasses.replace(lesson.group, other_code="")
    )


def _name_problems(bench: Bench, lesson: Lesson) -> Iterator[str]:
    names = {answer.name for answer in bench.grader.mistakes}
    if lesson.name in names:
        yield f"there is a mistake {lesson.name} already: add `--as NAME`"
    if lesson.name in bench.grader.reference:
        yield f"{lesson.name} is a name of the notebook: add `--as NAME`"


def _trial_problems(bench: Bench, lesson: Lesson) -> Iterator[str]:
    """What the answer by itself shows: it must fail tests of its question, and cost what a mistake
    may cost.
    """
    grader = bench.grader
    (outcome,) = Proctor(bench).run([known_trial(lesson.answer)])
    if outcome.problem:
        yield outcome.problem
        return
    question = grader.questions[lesson.group.question]
    points = {test.name: test.points for test in question.tests}
    if not sum(points[test] for test in outcome.failed):
        yield (
            "no test with points fails it: with the answer key's other answers it is right; the "
            "fault lies in what the students' answers call"
        )
    if outcome.carried:
        listed = ", ".join(map(describe_test, outcome.carried))
        yield f"it gets back the points of {listed}, and what it builds on is right"
    exceptions = load_costs(bench.assignment.suite)
    if exceptions is not None:
        figures = question_figures([question], [outcome], [], exceptions)
        for problem in cost_problems(figures, exceptions, grader.questions):
            if f"/{lesson.name} " in problem:
                yield f"{problem}; give it `--keeps`, or list it there first"


def _regrade_members(
    bench: Bench, members: Sequence[Member]
) -> tuple[list[Regraded], list[str]]:
    """The question of each member graded again, with the mistake among the known ones."""
    grader = bench.grader

    def regrade(client: HostClient, member: Member) -> Regraded:
        submission = read_submission(member.file, grader.release, bench.course.limits)
        result, _ = grader.grade_submission(client, submission)
        (question,) = [
            each for each in result.questions if each.name == member.question
        ]
        diagnoses = [each for each in (question.diagnosis, *question.slips) if each]
        named = tuple(diagnosis.mistake for diagnosis in diagnoses)
        return Regraded(
            submission.student, member.before, question.score, question.max_score, named
        )

    regraded = []
    faults = []
    for member, record, fault in examine_jobs(bench, members, regrade, Regraded):
        if record is None:
            faults.append(f"{member.file.student}: {fault}")
        else:
            regraded.append(record)
    return regraded, faults


def write_lesson(
    course: Course, assignment: Assignment, lesson: Lesson, suite_sha256: str
) -> str:
    """Write a proven mistake into the suite, and a second answer of its group as a sample; the hash
    of the course's side after that.

    Args:
        suite_sha256: the hash with which the mistake was proven.

    Raises:
        NotProven: the suite has changed since.
    """
    group = lesson.group
    lock = course.kept / "locks" / f"{assignment.name}-mistakes"
    with hold_lock(lock, f"writes {MISTAKES_FILE} of {assignment.name}"):
        if course_sha256(course, assignment) != suite_sha256:
            raise NotProven("the suite has changed meanwhile: run the command again")
        mistakes = assignment.suite / MISTAKES_FILE
        text = mistake_text(
            group.question, lesson.name, lesson.hint, lesson.keeps, group.code
        )
        _append(mistakes, text, "mistake")
        if group.other_code:
            samples = assignment.suite / SAMPLES_FILE
            name = f"{lesson.name}_in_other_words"
            text = sample_text(group.question, name, lesson.name, group.other_code)
            _append(samples, text, "sample")
        return course_sha256(course, assignment)


def _append(path: Path, definition: str, decorator: str) -> None:
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    write_whole(path, add_definition(before, definition, decorator))
