"""Proves a hidden suite with answers whose worth is known.

* The answer key gets full marks, the untouched release none.
* Every alternate gets full marks on its question.
* Every mistake loses points on its own question. It can lose none elsewhere but where it is used: a
  question's answer calls others only where it says so (`uses`), which is checked on the answer
  key's own text, and the rest of the answer key does not change with the mistake.
* Nearly every mutant of the answer key loses points, and answers without an idea score next to
  nothing, where mutants are asked for.
* Right answers pass and mistakes are caught with other draws of the inputs too, where draws are
  asked for.
* No comparison allows less than by default, unless the question's text says so.
* Samples of students' answers get the name they deserve, and known mistakes cost their own question
  only, where that is asked for; so do questions that are not finished.
* Two known mistakes in one answer cost no more than their sum and no less than the dearer one,
  where that is asked for.
"""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from autograder.authoring.suite_checks import suite_problems
from autograder.basics.errors import KitError
from autograder.course import Assignment, Course
from autograder.grading.bench import Bench
from autograder.grading.extras import extras_for
from autograder.proof.code_mutants import Mutant
from autograder.proof.cost_exceptions import load_costs
from autograder.proof.diagnosed import (
    Alone,
    Told,
    diagnose_samples,
    grade_alone,
    samples_of,
    shares,
    unfit_samples,
)
from autograder.proof.equivalent import load_equivalent
from autograder.proof.figures import QuestionFigures, cost_problems, flaky, question_figures
from autograder.proof.mutants import (
    ENOUGH_KILLED,
    Judged,
    all_mutants,
    judge_mutants,
    killed_share,
    mutant_trials,
    sample,
    stale,
    too_many_alive,
)
from autograder.proof.pairs import groups_of, price_problems
from autograder.proof.tolerances import untold_tolerances
from autograder.proof.trials import Proctor, Trial, Tried, known_trial, seconds_of
from autograder.proof.unfinished import Unfinished, unfinished_forms
from autograder.proof.wrapped import trivial_answers
from autograder.suite.known_answers import KnownAnswer
from autograder.suite.prerequisites import prerequisites

FEWEST_ALTERNATES = 2
_Answer = TypeVar("_Answer", KnownAnswer, Unfinished)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to prove.

    Attributes:
        question: only this one; "" for all.
        mutants: how many mutants to try, None for all; 0 for none. With mutants, answers without an
            idea are tried too: with all of them all, with a sample one for each question.
        draws: with how many draws of the random inputs.
        samples, alone: how many samples to diagnose, and known answers to grade as submissions that
            are right otherwise; None for all.
        unfinished: how many earlier questions to leave unfinished in submissions that are right
            otherwise; None for all.
        pairs: how many pairs of known mistakes to price together, and a third as many triples; None
            for all pairs.
    """

    question: str = ""
    mutants: int | None = 0
    draws: int = 1
    workers: int | None = None
    samples: int | None = 0
    alone: int | None = 0
    unfinished: int | None = 0
    pairs: int | None = 0


@dataclass(frozen=True, slots=True)
class Proof:
    """What became of one assignment.

    Attributes:
        cells: the answer key's cell of each question.
        figures: of each question that was looked at.
        problems: what is not as it should be.
        told: what the authors of samples would be told.
        alone: known mistakes as submissions that are right otherwise.
    """

    assignment: str
    isolation: str
    max_score: float
    cells: Mapping[str, str]
    figures: tuple[QuestionFigures, ...]
    problems: tuple[str, ...]
    told: tuple[Told, ...] = ()
    alone: tuple[Alone, ...] = ()

    @property
    def mutants(self) -> list[Judged]:
        """Every mutant that was tried, of all questions."""
        return [mutant for question in self.figures for mutant in question.mutants]

    def __str__(self) -> str:
        mistakes = sum(len(question.mistakes) for question in self.figures)
        alternates = sum(question.alternates for question in self.figures)
        said = (
            f"{self.assignment}: proven behind {self.isolation} walls; answer key "
            f"{self.max_score:g} points, "
            f"release 0, {mistakes} mistakes caught, {alternates} alternates pass"
        )
        if self.mutants:
            said += f", {killed_share(self.mutants):.1%} of {len(self.mutants)} mutants killed"
        if self.told:
            rightly, wrongly = shares(self.told)
            said += (
                f", {len(self.told)} samples: {rightly:.0%} named rightly, {wrongly:.0%} wrongly"
            )
        if self.alone:
            own = sum(not one.elsewhere and not one.hinted for one in self.alone)
            said += f", {own} of {len(self.alone)} mistakes alone touch no other question"
        return said


def verify_command(course: Course, names: Sequence[str], wanted: Wanted) -> list[Proof]:
    """Verify the named assignments, or all; each proof says what is not as it should be.

    Raises:
        KitError: no assignment has the question that is asked for.
    """
    assignments = [course.assignment(name) for name in dict.fromkeys(names)] or course.assignments()
    proofs = [verify(course, assignment, wanted) for assignment in assignments]
    if wanted.question and not any(proof.figures or proof.problems for proof in proofs):
        named = ", ".join(assignment.name for assignment in assignments)
        raise KitError(f"there is no question {wanted.question!r} in {named}")
    return proofs


def verify(course: Course, assignment: Assignment, wanted: Wanted = Wanted()) -> Proof:
    """Prove one assignment's suite, as far as it holds."""
    extras = extras_for(assignment, (), course.limits)
    with Bench(course, assignment, "auto", wanted.workers or os.cpu_count() or 1, extras) as bench:
        alternates = bench.grader.key.known_answers("alternates.py")
        answers = [*bench.grader.mistakes, *alternates]
        problems = suite_problems(
            assignment.suite, bench.grader.suite.questions, bench.grader.key.cells
        )
        problems += [*_undeclared(bench), *_unknown(bench, answers), *_too_few(bench, answers)]
        tried: list[Tried] = []
        mutants: list[Judged] = []
        if not problems:
            tried, problems = _try_known(bench, wanted, answers)
        if not problems and wanted.mutants != 0:
            keys = [outcome for outcome in tried if outcome.trial.kind == "key"]
            mutants, problems = _try_mutants(bench, wanted, keys)
            tried += _try_trivial(bench, wanted, keys)
        costs = load_costs(assignment.suite)
        figures = question_figures(bench.grader.suite.questions, tried, mutants, costs or {})
        problems += [*cost_problems(figures, costs, bench.grader.questions), *flaky(tried)]
        told, alone, elsewhere = _grade_submissions(bench, wanted, alternates)
        return Proof(
            assignment.name,
            bench.isolation,
            bench.grader.suite.max_score,
            _cells(bench),
            tuple(figures),
            tuple(sorted([*problems, *elsewhere])),
            tuple(told),
            tuple(alone),
        )


def _grade_submissions(
    bench: Bench, wanted: Wanted, alternates: Sequence[KnownAnswer]
) -> tuple[list[Told], list[Alone], list[str]]:
    """What is measured on whole submissions, and what went wrong: samples; known answers,
    unfinished questions and groups of mistakes in submissions that are right otherwise.
    """
    mistakes = [mistake for mistake in bench.grader.mistakes if _is_wanted(wanted, mistake)]
    samples = samples_of(bench)
    told: list[Told] = []
    problems = list(unfit_samples(samples, bench.grader.mistakes))
    if not problems:
        told, problems = diagnose_samples(bench, _sample_of(samples, wanted, wanted.samples, bench))
    alone, costs_elsewhere = grade_alone(bench, _sample_of(mistakes, wanted, wanted.alone, bench))
    problems += costs_elsewhere

    uses = {name: question.uses for name, question in bench.grader.questions.items()}
    used = {other for name in uses for other in prerequisites(name, uses)}
    forms = [form for name in uses if name in used for form in unfinished_forms(name)]
    right = [
        answer
        for answer in _sample_of(alternates, wanted, wanted.alone, bench)
        if answer.question in used
    ]
    problems += grade_alone(bench, right)[1]
    problems += grade_alone(bench, _sample_of(forms, wanted, wanted.unfinished, bench))[1]

    triples = 0 if wanted.pairs is None else wanted.pairs // 3
    for size, count in ((2, wanted.pairs), (3, triples)):
        groups = (
            groups_of(mistakes, bench.grader.key.cells, size, count, bench.assignment.name)
            if count != 0
            else []
        )
        problems += price_problems(bench, groups)
    return told, alone, problems


def _is_wanted(wanted: Wanted, answer: KnownAnswer | Unfinished | Mutant) -> bool:
    return wanted.question in ("", answer.question)


def _sample_of(
    answers: Sequence[_Answer], wanted: Wanted, count: int | None, bench: Bench
) -> list[_Answer]:
    """So many of the answers to the wanted questions, the same ones each time."""
    return sample(
        [answer for answer in answers if _is_wanted(wanted, answer)], count, bench.assignment.name
    )


def _try_known(
    bench: Bench, wanted: Wanted, answers: Sequence[KnownAnswer]
) -> tuple[list[Tried], list[str]]:
    """The answer key, the release and all known answers; with further draws, the first and the
    last.
    """
    trials = [
        Trial(kind, name, kind) for name in bench.grader.questions for kind in ("key", "release")
    ]
    trials += [known_trial(answer) for answer in answers]
    trials = [trial for trial in trials if wanted.question in ("", trial.question)]
    tried = Proctor(bench, {}).run(trials)
    keys = [outcome for outcome in tried if outcome.trial.kind == "key"]
    problems = [problem for outcome in tried for problem in _wrong(bench, outcome)]
    problems += untold_tolerances(bench.grader.release, keys)
    if not problems and wanted.draws > 1:
        again = [
            dataclasses.replace(trial, draw=draw)
            for draw in range(1, wanted.draws)
            for trial in trials
            if trial.kind != "release"
        ]
        tried += Proctor(bench, seconds_of(keys), earlier=tried).run(again)
    return tried, problems


def _try_mutants(
    bench: Bench, wanted: Wanted, keys: Sequence[Tried]
) -> tuple[list[Judged], list[str]]:
    listed = [
        entry
        for entry in load_equivalent(bench.assignment.suite)
        if wanted.question in ("", entry.question)
    ]
    made = all_mutants(_cells(bench), {key.trial.question: key.observed for key in keys})
    made = [mutant for mutant in made if _is_wanted(wanted, mutant)]
    chosen = sample(made, wanted.mutants, bench.assignment.name)
    tried = Proctor(bench, seconds_of(keys)).run(mutant_trials(chosen))
    judged = judge_mutants(tried, chosen, listed)
    problems = [
        f"mutant {one.trial.question}: {one.trial.name}: {one.problem}"
        for one in tried
        if one.problem
    ]
    problems += stale(listed, made, judged)
    if too_many_alive(judged, sampled=len(chosen) < len(made)):
        share = (
            f"{killed_share(judged):.1%} of the mutants are killed, of at least {ENOUGH_KILLED:.0%}"
        )
        problems.append(f"{share}; these survive:")
        alive = [mutant.mutant for mutant in judged if mutant.fate == "survived"]
        problems += [f"survives: {mutant.question}: {mutant.name}" for mutant in alive]
    return judged, problems


def _try_trivial(bench: Bench, wanted: Wanted, keys: Sequence[Tried]) -> list[Tried]:
    """Answers without an idea, to each question that was observed; where mutants are a sample, one
    to each.
    """
    cells = _cells(bench)
    trials = []
    for key in keys:
        question = key.trial.question
        answers = trivial_answers(question, cells[question], key.observed)
        chosen = sample(answers, None if wanted.mutants is None else 1, question)
        trials += [Trial("trivial", question, answer.name, answer.cell) for answer in chosen]
    return Proctor(bench, seconds_of(keys)).run(trials)


def _cells(bench: Bench) -> dict[str, str]:
    """The answer key's cell of each question."""
    return {
        name: cell
        for name, cell in bench.grader.key.cells.items()
        if name in bench.grader.questions
    }


def _wrong(bench: Bench, tried: Tried) -> Iterable[str]:
    """What is not as it should be with the outcome of a trial."""
    trial = tried.trial
    name = trial.question if trial.kind in ("key", "release") else f"{trial.question}/{trial.name}"
    if tried.problem:
        yield f"{trial.kind} {name}: {tried.problem}"
        return
    worth = {test.name: test.points for test in bench.grader.questions[trial.question].tests}
    for test in tried.tests:
        if trial.kind == "key" and test.outcome != "passed":
            yield f"the answer key fails {name}: {test.name}: {test.message}"
        if trial.kind == "release" and test.outcome == "passed" and worth[test.name] > 0:
            yield f"the untouched release passes {name}: {test.name} ({worth[test.name]:g} points)"
        if trial.kind == "alternate" and test.outcome != "passed":
            yield f"alternate {name} fails {test.name}: {test.message}"
    if tried.carried:
        yield (
            f"{trial.kind} {name} gets back the points of {', '.join(tried.carried)}, and what "
            "it builds on is right"
        )
    if trial.kind == "mistake" and not any(worth[test] > 0 for test in tried.failed):
        yield f"mistake {name} is not caught by any test"


def _undeclared(bench: Bench) -> Iterable[str]:
    """Calls between questions of the answer key that the suite does not declare with `uses`."""
    questions = bench.grader.questions
    for name, cell in _cells(bench).items():
        names = {node.id for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Name)}
        for other in sorted(names & questions.keys() - {name, *questions[name].uses}):
            yield f"the answer to {name} calls {other}: say so in test_{name}.py (uses({other!r}))"


def _unknown(bench: Bench, answers: Sequence[KnownAnswer]) -> Iterable[str]:
    for answer in answers:
        if answer.question not in bench.grader.questions:
            yield f"{answer.name} answers {answer.question!r}, which is no question"
        if answer.name in bench.grader.reference:
            yield f"known answer {answer.name} is named like something in the notebook"


def _too_few(bench: Bench, answers: Sequence[KnownAnswer]) -> Iterable[str]:
    for name in bench.grader.questions:
        if not any(answer.question == name for answer in answers if answer.is_mistake):
            yield f"{name} has no mistake in mistakes.py"
        count = sum(answer.question == name for answer in answers if not answer.is_mistake)
        if count < FEWEST_ALTERNATES:
            yield (
                f"{name} has {count} alternates in alternates.py; at least {FEWEST_ALTERNATES} "
                "prove a suite"
            )
