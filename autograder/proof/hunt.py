"""Implements `autograder hunt`: looks for answers with full marks that are wrong somewhere.

Answers: of the class, the suite's alternates and right samples, and mutants of the answer key that
survive or are listed as equivalent.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.basics.errors import KitError, NothingToGrade
from autograder.course import Assignment, Course
from autograder.course.fingerprint import CONTRACTS_FILE, EXAMPLES_FILE
from autograder.grading.bench import Bench
from autograder.grading.extras import find_extras
from autograder.intake.find import find_submissions
from autograder.intake.notebook import read_submission
from autograder.proof.code_mutants import Variant
from autograder.proof.equivalent import HUNTED_FILE, load_equivalent
from autograder.proof.hunt_search import AnswerKind, Find, Hunter, HuntLimits
from autograder.proof.mutants import all_mutants, mutant_trials, sample
from autograder.proof.trials import (
    Proctor,
    Trial,
    TrialOutcome,
    examine_each,
    with_answer,
)
from autograder.proof.whole_submissions import SAMPLES_FILE
from autograder.records.results import read_results
from autograder.records.submission import FoundSubmission, Submission
from autograder.sandbox.host_process import HostClient
from autograder.suite.contracts import Contract, load_contracts
from autograder.suite.known_answers import KnownAnswer
from autograder.suite.prerequisites import prerequisites


@dataclass(frozen=True, slots=True)
class HuntRequest:
    """What to hunt.

    Attributes:
        question: only this one; "" for all.
        limits: how long each question of each answer is searched.
        minutes: how long the whole hunt may take, in the place of the limit on each answer.
        mutants: how many mutants are put in front of the suite, besides those that are listed as
            equivalent; None for all.
        results: the folder of the class's results.
        workers: how many processes; None for one a core.
    """

    question: str = ""
    limits: HuntLimits = field(default_factory=HuntLimits)
    minutes: float | None = None
    mutants: int | None = 0
    results: Path | None = None
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class HuntedAnswer:
    """An answer with full marks on a question.

    Attributes:
        cell: the answer's cell; "" for a student and the answer key.
        notebook: of a student.
    """

    kind: AnswerKind
    question: str
    name: str
    cell: str = ""
    notebook: str = ""


@dataclass(frozen=True, slots=True)
class Hunt:
    """The outcome of a hunt.

    Attributes:
        finds: in the order of the answers; at most one for each answer to a question.
        answers: how many were searched.
        without_contract: questions that have none.
        problems: answers that could not be searched, and why.
    """

    assignment: str
    finds: tuple[Find, ...]
    answers: int
    without_contract: tuple[str, ...]
    problems: tuple[str, ...]


def hunt(
    course: Course,
    assignment: Assignment,
    request: HuntRequest,
) -> Hunt:
    """Search the class, alternates, samples and mutants of one assignment.

    Raises:
        KitError: there is no such question.
    """
    workers = request.workers or os.cpu_count() or 1
    with Bench(
        course, assignment, "auto", workers, find_extras(assignment, (), course.limits)
    ) as bench:
        questions = bench.grader.questions
        if request.question and request.question not in questions:
            raise KitError(
                f"there is no question {request.question!r} in {assignment.name}"
            )
        contracts = load_contracts(assignment.suite)
        with_contract = {contract.question for contract in contracts}
        answers = [
            answer
            for answer in (
                *_of_key(bench),
                *known_right_answers(bench),
                *_of_mutants(bench, request),
                *_of_class(bench, request),
            )
            if answer.question in with_contract
            and request.question in ("", answer.question)
        ]
        limits = request.limits
        if request.minutes is not None:
            share = 60 * request.minutes * workers / max(1, len(answers))
            limits = dataclasses.replace(limits, seconds=share)
        return hunt_answers(bench, contracts, answers, limits)


def hunt_answers(
    bench: Bench,
    contracts: Sequence[Contract],
    answers: Iterable[HuntedAnswer],
    limits: HuntLimits,
) -> Hunt:
    """Search these answers, as far as their questions have contracts.

    Raises:
        KitError: a contract is about no question of the suite.
    """
    grader = bench.grader
    with_contract = {contract.question for contract in contracts}
    if unknown := with_contract - grader.questions.keys():
        raise KitError(
            f"{CONTRACTS_FILE}: {min(unknown)!r} is no question of {grader.assignment.name}"
        )
    listed = load_equivalent(grader.assignment.suite, HUNTED_FILE)
    hunter = Hunter(
        grader.suite,
        grader.course.limits,
        contracts,
        grader.reference,
        limits,
        lambda find: any(entry.matches(find) for entry in listed),
    )

    uses = {name: question.uses for name, question in grader.questions.items()}

    def search(client: HostClient, answer: HuntedAnswer) -> list[Find]:
        stand_ins: Sequence[str] = ()
        if answer.kind == "student":  # whose earlier answers may be wrong
            stand_ins = prerequisites(answer.question, uses)
        find = hunter.search(
            client,
            _submission(bench, answer),
            grader.questions[answer.question],
            answer.kind,
            answer.name,
            tuple(stand_ins),
        )
        return [find] if find else []

    jobs = [answer for answer in answers if answer.question in with_contract]
    records, problems = examine_each(bench, jobs, search, list[Find])
    finds = tuple(find for record in records for find in record)
    without = [name for name in grader.questions if name not in with_contract]
    return Hunt(
        grader.assignment.name, finds, len(jobs), tuple(without), tuple(problems)
    )


SHORT_HUNT = HuntLimits(seconds=2.0, scripts=25)
"""The limits of the hunt that `verify` makes: as many scripts for everybody, so that the outcome is
the same on every machine.
"""


def hunt_known_answers(
    bench: Bench,
    mutants: Iterable[Variant],
    question: str = "",
) -> Hunt:
    """A short hunt on the answer key, right known answers, and some mutants; of the scripts for
    students on what is right alone.
    """
    suite = bench.assignment.suite
    contracts, forms = (
        [
            contract
            for contract in load_contracts(suite, file)
            if question in ("", contract.question)
        ]
        for file in (CONTRACTS_FILE, EXAMPLES_FILE)
    )
    right_answers = [*_of_key(bench), *known_right_answers(bench)]
    answers = [*right_answers, *as_hunted_mutants(mutants)]
    hunt = hunt_answers(bench, contracts, answers, SHORT_HUNT)
    if not forms:
        return hunt
    of_forms = hunt_answers(bench, forms, right_answers, SHORT_HUNT)
    return dataclasses.replace(
        hunt,
        finds=(*hunt.finds, *of_forms.finds),
        problems=(*hunt.problems, *of_forms.problems),
    )


def _submission(bench: Bench, answer: HuntedAnswer) -> Submission:
    grader = bench.grader
    if answer.kind == "student":
        notebook = FoundSubmission(answer.name, Path(answer.notebook))
        return read_submission(notebook, grader.release, grader.course.limits)
    if answer.kind == "key":
        return grader.key.submission
    if answer.kind == "mutant":
        return with_answer(
            grader.key, Variant(answer.question, answer.name, answer.cell)
        )
    return grader.key.with_answer(
        KnownAnswer(answer.question, answer.name, "", answer.cell)
    )


def _of_key(bench: Bench) -> list[HuntedAnswer]:
    """The answer key itself: a find there means that its answers differ from call to call."""
    return [HuntedAnswer("key", name, "answer key") for name in bench.grader.questions]


def known_right_answers(bench: Bench) -> list[HuntedAnswer]:
    """Alternates, and samples that are right."""
    key = bench.grader.key
    answers = [
        HuntedAnswer("alternate", answer.question, answer.name, answer.cell)
        for answer in key.known_answers("alternates.py")
    ]
    for answer in key.known_answers(SAMPLES_FILE):
        if answer.deserves is None:
            answers.append(
                HuntedAnswer("sample", answer.question, answer.name, answer.cell)
            )
    return answers


def _of_mutants(bench: Bench, request: HuntRequest) -> list[HuntedAnswer]:
    """Mutants that are listed as equivalent, and those of a sample that survive the suite."""
    grader = bench.grader
    names = [name for name in grader.questions if request.question in ("", name)]
    keys = Proctor(bench).run([Trial("key", name, "key") for name in names])
    cells = grader.key.cells
    mutants = [
        mutant
        for key in keys
        for mutant in all_mutants(
            key.trial.question, cells[key.trial.question], key.observed
        )
    ]
    equivalent = load_equivalent(grader.assignment.suite)
    listed = [
        mutant
        for mutant in mutants
        if any(entry.matches(mutant) for entry in equivalent)
    ]
    others = [mutant for mutant in mutants if mutant not in listed]
    chosen = sample(others, request.mutants, grader.assignment.name)
    outcomes = Proctor(bench, keys).run(mutant_trials(chosen))
    return as_hunted_mutants([*listed, *surviving_mutants(chosen, outcomes)])


def surviving_mutants(
    mutants: Sequence[Variant],
    outcomes: Sequence[TrialOutcome],
) -> list[Variant]:
    """The mutants that lost nothing."""
    return [
        mutant
        for mutant, outcome in zip(mutants, outcomes, strict=True)
        if not outcome.failed and not outcome.problem
    ]


def as_hunted_mutants(mutants: Iterable[Variant]) -> list[HuntedAnswer]:
    """Mutants as answers to search."""
    return [
        HuntedAnswer("mutant", mutant.question, mutant.name, mutant.cell)
        for mutant in mutants
    ]


def _of_class(bench: Bench, request: HuntRequest) -> list[HuntedAnswer]:
    """Answers of the class with full marks, by the results on disk."""
    course, assignment = bench.course, bench.assignment
    results = read_results(
        request.results or course.results, assignment.name, _tell_nobody
    )
    if not results:
        return []
    try:
        submissions = find_submissions(course, assignment, ())
    except NothingToGrade:
        return []
    notebooks = {submission.student: str(submission.path) for submission in submissions}
    answers = []
    for result in results:
        for question in result.questions:
            is_full = question.max_score > 0 and question.score >= question.max_score
            if is_full and result.student in notebooks:
                notebook = notebooks[result.student]
                answers.append(
                    HuntedAnswer("student", question.name, result.student, "", notebook)
                )
    return answers


def _tell_nobody(line: str) -> None:
    """`grade` and `report` tell of broken results."""


def describe_hunt(hunted: Hunt) -> Iterator[str]:
    """The outcome as lines for the terminal."""
    for number, find in enumerate(hunted.finds, start=1):
        yield f"{number}. {find.question}, {find.kind} {find.answer}: {find.way}"
        yield from (f"   {line}".rstrip() for line in find.lines)
        yield f"   right: {find.right}"
        yield f"   given: {find.wrong}"
    yield from _describe_students(hunted.finds)
    for problem in hunted.problems:
        yield f"not searched: {problem}"
    if hunted.without_contract:
        yield f"without a contract in {CONTRACTS_FILE}: {', '.join(hunted.without_contract)}"
    found = "1 find" if len(hunted.finds) == 1 else f"{len(hunted.finds)} finds"
    yield f"{hunted.assignment}: {found} in {hunted.answers} answers with full marks"


def _describe_students(finds: Sequence[Find]) -> Iterator[str]:
    """Whom of the class the finds concern, by question."""
    students: dict[str, list[str]] = {}
    for find in finds:
        if find.kind == "student":
            students.setdefault(find.question, []).append(find.answer)
    for question, names in students.items():
        yield f"{question} is wrong somewhere, at full marks: {', '.join(sorted(names))}"
    if students:
        yield (
            "their marks stay until a test catches it: --write proposes one, and `autograder "
            "regrade` shows whose mark it would move"
        )
