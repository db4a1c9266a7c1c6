"""Proves a hidden suite with answers whose worth is known.

* The answer key gets full marks, the untouched release none.
* Every alternate gets full marks on its question.
* Every mistake loses points on its own question. It can lose none elsewhere but where it is used: a question's
  answer calls others only where it says so (`uses`), which is checked on the answer key's own text, and the rest of
  the answer key does not change with the mistake.
* Nearly every mutant of the answer key loses points, where mutants are asked for.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.course import Assignment, Course
from autograder.errors import NotProven
from autograder.grading.batch import Bench, extras_for
from autograder.proof.equivalent import load_equivalent
from autograder.proof.mutants import (
    ENOUGH_KILLED,
    Judged,
    all_mutants,
    judge_mutants,
    killed_share,
    mutant_trials,
    sample,
    stale,
)
from autograder.proof.trials import Proctor, Trial, Tried, known_trial, seconds_of
from autograder.suite.known import KnownAnswer

FEWEST_ALTERNATES = 2


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to prove.

    Attributes:
        question: only this one; "" for all.
        mutants: how many mutants to try, None for all; 0 for none.
    """

    question: str = ""
    mutants: int | None = 0
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """What became of one assignment.

    Attributes:
        problems: what is not as it should be.
    """

    assignment: str
    isolation: str
    max_score: float
    tried: tuple[Tried, ...]
    mutants: tuple[Judged, ...]
    problems: tuple[str, ...]

    def of(self, kind: str) -> list[Tried]:
        return [one for one in self.tried if one.trial.kind == kind and one.trial.draw == 0]

    def __str__(self) -> str:
        said = (
            f"{self.assignment}: proven behind {self.isolation} walls; answer key {self.max_score:g} points, "
            f"release 0, {len(self.of('mistake'))} mistakes caught, {len(self.of('alternate'))} alternates pass"
        )
        if self.mutants:
            said += f", {killed_share(self.mutants):.1%} of {len(self.mutants)} mutants killed"
        return said


def verify_command(course: Course, names: Sequence[str], wanted: Wanted) -> list[Proof]:
    """Verify the named assignments, or all.

    Raises:
        NotProven: what is not as it should be, of all of them together.
    """
    assignments = [course.assignment(name) for name in dict.fromkeys(names)] or course.assignments()
    proofs = [verify(course, assignment, wanted) for assignment in assignments]
    problems = [f"{proof.assignment}: {problem}" for proof in proofs for problem in proof.problems]
    if problems:
        raise NotProven("\n".join(problems))
    return proofs


def verify(course: Course, assignment: Assignment, wanted: Wanted = Wanted()) -> Proof:
    """Prove one assignment's suite, as far as it holds."""
    extras = extras_for(assignment, (), course.limits)
    with Bench(course, assignment, "auto", wanted.workers or os.cpu_count() or 1, extras) as bench:
        answers = [*bench.suite.mistakes, *bench.suite.known_answers("alternates.py")]
        problems = [*_undeclared(bench), *_unknown(bench, answers), *_too_few(bench, answers)]
        tried: list[Tried] = []
        mutants: list[Judged] = []
        if not problems:
            trials = [Trial(kind, name, kind) for name in bench.suite.questions for kind in ("key", "release")]
            trials += [known_trial(answer) for answer in answers]
            tried = list(Proctor(bench, {}).run([trial for trial in trials if wanted.question in ("", trial.question)]))
            problems = [problem for one in tried for problem in _wrong(bench, one)]
        if not problems and wanted.mutants != 0:
            mutants, problems = _try_mutants(bench, wanted, [one for one in tried if one.trial.kind == "key"])
        return Proof(
            assignment.name,
            bench.isolation,
            bench.suite.suite.max_score,
            tuple(tried),
            tuple(mutants),
            tuple(sorted(problems)),
        )


def _try_mutants(bench: Bench, wanted: Wanted, keys: Sequence[Tried]) -> tuple[list[Judged], list[str]]:
    listed = load_equivalent(bench.assignment.suite)
    cells = {cell.id: cell.source for cell in bench.suite.key().cells if cell.id in bench.suite.questions}
    made = all_mutants(cells, {key.trial.question: key.observed for key in keys})
    of_question = [mutant for mutant in made if wanted.question in ("", mutant.question)]
    chosen = sample(of_question, wanted.mutants, bench.assignment.name)
    tried = list(Proctor(bench, seconds_of(keys)).run(mutant_trials(chosen)))
    judged = judge_mutants(tried, chosen, listed)
    problems = [f"mutant {one.trial.question}: {one.trial.name}: {one.problem}" for one in tried if one.problem]
    problems += stale(listed, made, judged)
    if (share := killed_share(judged)) < ENOUGH_KILLED:
        alive = [f"{one.mutant.question}: {one.mutant.name}" for one in judged if one.fate == "survived"]
        problems.append(f"{share:.1%} of the mutants are killed, of at least {ENOUGH_KILLED:.0%}; these survive:")
        problems += [f"survives: {name}" for name in alive]
    return judged, problems


def _wrong(bench: Bench, tried: Tried) -> Iterable[str]:
    """What is not as it should be with the outcome of a trial."""
    trial = tried.trial
    name = trial.question if trial.kind in ("key", "release") else f"{trial.question}/{trial.name}"
    if tried.problem:
        yield f"{trial.kind} {name}: {tried.problem}"
        return
    worth = {test.name: test.points for test in bench.suite.questions[trial.question].tests}
    for test in tried.tests:
        if trial.kind == "key" and test.outcome != "passed":
            yield f"the answer key fails {name}: {test.name}: {test.message}"
        if trial.kind == "release" and test.outcome == "passed" and worth[test.name] > 0:
            yield f"the untouched release passes {name}: {test.name} ({worth[test.name]:g} points)"
        if trial.kind == "alternate" and test.outcome != "passed":
            yield f"alternate {name} fails {test.name}: {test.message}"
    if trial.kind == "mistake" and not any(worth[test] > 0 for test in tried.failed):
        yield f"mistake {name} is not caught by any test"


def _undeclared(bench: Bench) -> Iterable[str]:
    """Calls between questions of the answer key that the suite does not declare with `uses`."""
    calls = {cell.id: _names_in(cell.source) for cell in bench.suite.key().cells if cell.role == "question"}
    questions = bench.suite.questions
    for name, names in calls.items():
        if name not in questions:
            continue
        for other in sorted(names & questions.keys() - {name, *questions[name].uses}):
            yield f"the answer to {name} calls {other}: say so in test_{name}.py (uses({other!r}))"
    for name, question in questions.items():
        for other in question.uses:
            if other not in questions:
                yield f"test_{name}.py: uses({other!r}), which is no question"


def _names_in(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


def _unknown(bench: Bench, answers: Sequence[KnownAnswer]) -> Iterable[str]:
    for answer in answers:
        if answer.question not in bench.suite.questions:
            yield f"{answer.name} answers {answer.question!r}, which is no question"
        if answer.name in bench.suite.suite.bench.reference:
            yield f"known answer {answer.name} is named like something in the notebook"


def _too_few(bench: Bench, answers: Sequence[KnownAnswer]) -> Iterable[str]:
    for name in bench.suite.questions:
        if not any(answer.question == name for answer in answers if answer.is_mistake):
            yield f"{name} has no mistake in mistakes.py"
        count = sum(answer.question == name for answer in answers if not answer.is_mistake)
        if count < FEWEST_ALTERNATES:
            yield f"{name} has {count} alternates in alternates.py; at least {FEWEST_ALTERNATES} prove a suite"
