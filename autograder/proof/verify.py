"""Proves a hidden suite with answers whose worth is known.

* The answer key gets full marks, the untouched release none.
* Every alternate gets full marks on its question.
* Every mistake loses points on its question. Other questions can lose points only if their answers
  call it: a call must be declared with `uses`, which is checked on the answer key's text, and the
  rest of the answer key does not change with the mistake.
* Nearly every mutant of the answer key loses points, and answers without an idea score next to
  nothing, where mutants are asked for.
* Right answers pass and mistakes are caught with other draws of the inputs too, where draws are
  asked for.
* No comparison allows less than by default, unless the question's text says so.
* Samples of students' answers get the name they deserve, and known mistakes cost their own question
  only, where that is asked for; so do questions that are not finished.
* A short hunt finds no allowed call in which an alternate, or a mutant that survives, differs from
  the answer key.
* Harder inputs of the notebook refuse no right answer.
* Two known mistakes in one answer cost no less than the dearer one and, where they are named, no
  more than their sum, where that is asked for.
* Predicates of mistakes (`shows=`) are true of their mistakes and false of everything else, where
  that is asked for.
"""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from autograder.authoring.suite_checks import find_suite_problems
from autograder.basics.errors import KitError
from autograder.course import Assignment, Course
from autograder.course.fingerprint import CONTRACTS_FILE
from autograder.grading.bench import Bench
from autograder.grading.extras import find_extras
from autograder.proof.cost_exceptions import load_costs
from autograder.proof.equivalent import Equivalent, load_equivalent
from autograder.proof.evidence_proof import prove_evidence
from autograder.proof.figures import (
    QuestionFigures,
    cost_problems,
    flaky,
    question_figures,
)
from autograder.proof.mutants import (
    ENOUGH_KILLED,
    JudgedMutant,
    all_mutants,
    judge_mutants,
    killed_share,
    mutant_trials,
    sample,
    stale_entries,
    too_many_alive,
)
from autograder.proof.pairs import combine_mistakes, price_problems
from autograder.proof.tolerances import unstated_tolerances
from autograder.proof.trials import (
    Proctor,
    Replacement,
    Trial,
    TrialOutcome,
    known_trial,
)
from autograder.proof.unfinished import unfinished_forms
from autograder.proof.whole_submissions import (
    SAMPLES_FILE,
    DiagnosedSample,
    LoneAnswer,
    diagnose_samples,
    grade_alone,
    unfit_samples,
    verdict_shares,
)
from autograder.proof.wrappers import trivial_answers
from autograder.suite.known_answers import KnownAnswer
from autograder.suite.prerequisites import prerequisites

FEWEST_ALTERNATES = 2
"""Alternates that each question needs: a single right answer does not show what a suite demands."""
_OfQuestion = TypeVar("_OfQuestion", bound=Replacement | Trial | Equivalent)


@dataclass(frozen=True, slots=True)
class ProofRequest:
    """What to prove. A count is None for all, and 0 for none.

    Attributes:
        question: only this one; "" for all.
        mutants: how many mutants to try. With mutants, answers without an idea are tried too: all
            of them with all mutants, one for each question with a sample.
        draws: with how many draws of the random inputs.
        workers: how many processes; None for one a core.
        samples: how many samples to diagnose.
        alone: how many known answers to grade in submissions that are right otherwise.
        unfinished: how many earlier questions to leave unfinished in such submissions.
        pairs: how many pairs of known mistakes to price together, and a third as many triples; no
            triples with all pairs.
        evidence: of how many mistakes to prove the predicates (`shows=`).
    """

    question: str = ""
    mutants: int | None = 0
    draws: int = 1
    workers: int | None = None
    samples: int | None = 0
    alone: int | None = 0
    unfinished: int | None = 0
    pairs: int | None = 0
    evidence: int | None = 0


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof of one assignment's suite, or the problems that stand against it.

    Attributes:
        cells: the answer key's cell of each question.
        figures: of each question with trials.
        lone_mistakes: known mistakes in submissions that are right otherwise.
    """

    assignment: str
    isolation: str
    max_score: float
    cells: Mapping[str, str]
    figures: tuple[QuestionFigures, ...]
    problems: tuple[str, ...]
    samples: tuple[DiagnosedSample, ...] = ()
    lone_mistakes: tuple[LoneAnswer, ...] = ()

    @property
    def mutants(self) -> list[JudgedMutant]:
        """Every mutant that was tried, of all questions."""
        return [mutant for question in self.figures for mutant in question.mutants]

    def __str__(self) -> str:
        mistakes = sum(len(question.mistakes) for question in self.figures)
        alternates = sum(question.alternates for question in self.figures)
        parts = [
            f"{self.assignment}: proven behind {self.isolation} walls; answer key "
            f"{self.max_score:g} points",
            "release 0",
            f"{mistakes} mistakes caught",
            f"{alternates} alternates pass",
        ]
        if self.mutants:
            share = f"{killed_share(self.mutants):.1%}"
            parts.append(f"{share} of {len(self.mutants)} mutants killed")
        if self.samples:
            right, wrong = verdict_shares(self.samples)
            parts.append(f"{len(self.samples)} samples: {right:.0%} named rightly")
            parts.append(f"{wrong:.0%} wrongly")
        if self.lone_mistakes:
            lone = self.lone_mistakes
            harmless = [
                mistake for mistake in lone if not (mistake.elsewhere or mistake.hinted)
            ]
            count = f"{len(harmless)} of {len(lone)}"
            parts.append(f"{count} mistakes alone touch no other question")
        return ", ".join(parts)


def verify_command(
    course: Course,
    names: Sequence[str],
    request: ProofRequest,
) -> list[Proof]:
    """Verify the named assignments, or all.

    Raises:
        KitError: no assignment has the question that is asked for.
    """
    assignments = [course.assignment(name) for name in dict.fromkeys(names)]
    assignments = assignments or course.assignments()
    proofs = [verify(course, assignment, request) for assignment in assignments]
    if request.question and not any(
        proof.figures or proof.problems for proof in proofs
    ):
        listed = ", ".join(assignment.name for assignment in assignments)
        raise KitError(f"there is no question {request.question!r} in {listed}")
    return proofs


def verify(
    course: Course,
    assignment: Assignment,
    request: ProofRequest = ProofRequest(),
) -> Proof:
    """The proof of one assignment's suite."""
    extras = find_extras(assignment, (), course.limits)
    workers = request.workers or os.cpu_count() or 1
    with Bench(course, assignment, "auto", workers, extras) as bench:
        return _Prover(bench, request).prove()


class _Prover:
    """Proves the suite of one bench. The methods add to one list of problems."""

    def __init__(self, bench: Bench, request: ProofRequest) -> None:
        self._bench, self._grader, self._request = bench, bench.grader, request
        self._questions = self._grader.questions
        key = self._grader.key
        self._cells = {
            name: cell for name, cell in key.cells.items() if name in self._questions
        }
        self._alternates = key.known_answers("alternates.py")
        self._problems: list[str] = []

    def prove(self) -> Proof:
        """The proof. Trials come first, and mutants only where all known answers are as they
        should be.
        """
        assignment, suite = self._bench.assignment, self._grader.suite
        answers = [*self._grader.mistakes, *self._alternates]
        self._problems += find_suite_problems(
            assignment.suite, suite.questions, self._grader.key.cells
        )
        self._problems += [
            *self._undeclared_calls(),
            *self._misnamed_answers(answers),
            *self._questions_without_answers(answers),
        ]
        outcomes: list[TrialOutcome] = []
        mutants: list[JudgedMutant] = []
        if not self._problems:
            outcomes = self._try_known(answers)
        if not self._problems and self._request.mutants != 0:
            keys = [outcome for outcome in outcomes if outcome.trial.kind == "key"]
            mutants = self._try_mutants(keys)
            outcomes += self._try_trivial(keys)
        exceptions = load_costs(assignment.suite)
        figures = question_figures(suite.questions, outcomes, mutants, exceptions or {})
        self._problems += cost_problems(figures, exceptions, self._questions)
        self._problems += flaky(outcomes)
        samples = self._diagnose_samples()
        lone_mistakes = self._grade_alone()
        if not self._problems:
            self._problems += self._hunt(mutants)
            self._problems += self._try_harder_inputs()
        self._price_together()
        self._prove_evidence()
        return Proof(
            assignment.name,
            self._bench.isolation,
            suite.max_score,
            self._cells,
            tuple(figures),
            tuple(sorted(self._problems)),
            tuple(samples),
            tuple(lone_mistakes),
        )

    def _hunt(self, mutants: Sequence[JudgedMutant]) -> Iterator[str]:
        """Right answers and surviving mutants that differ from the answer key in an allowed call.

        Contracts need torch, which a suite without them may lack.
        """
        if not (self._bench.assignment.suite / CONTRACTS_FILE).exists():
            return
        from autograder.proof.hunt import hunt_known_answers

        alive = [judged.mutant for judged in mutants if judged.fate != "killed"]
        hunted = hunt_known_answers(self._bench, alive, self._request.question)
        yield from hunted.problems
        for find in hunted.finds:
            yield (
                f"{find.question}: {find.kind} {find.answer} differs from the answer key "
                f"({find.way}) in {find.title}; `autograder hunt` shows the call"
            )

    def _try_harder_inputs(self) -> list[str]:
        """Right answers that harder inputs of the notebook refuse. They need torch."""
        if not (self._bench.assignment.suite / CONTRACTS_FILE).exists():
            return []
        from autograder.proof.harder_proof import refused_right_answers

        question = self._request.question
        return refused_right_answers(
            self._bench.course, self._bench.assignment, question
        )

    def _asked_for(self, answers: Sequence[_OfQuestion]) -> list[_OfQuestion]:
        """The answers to questions that the request asks for."""
        question = self._request.question
        return [answer for answer in answers if question in ("", answer.question)]

    def _choose(
        self,
        answers: Sequence[_OfQuestion],
        count: int | None,
    ) -> list[_OfQuestion]:
        """`count` of the answers that the request asks for, the same ones each time."""
        return sample(self._asked_for(answers), count, self._bench.assignment.name)

    def _undeclared_calls(self) -> Iterator[str]:
        """Calls between questions of the answer key that the suite does not declare with `uses`."""
        for name, cell in self._cells.items():
            nodes = ast.walk(ast.parse(cell))
            names = {node.id for node in nodes if isinstance(node, ast.Name)}
            declared = {name, *self._questions[name].uses}
            for called in sorted(names & self._questions.keys() - declared):
                yield (
                    f"the answer to {name} calls {called}: say so in test_{name}.py "
                    f"(uses({called!r}))"
                )

    def _misnamed_answers(self, answers: Sequence[KnownAnswer]) -> Iterator[str]:
        for answer in answers:
            if answer.question not in self._questions:
                yield f"{answer.name} answers {answer.question!r}, which is no question"
            if answer.name in self._grader.reference:
                yield f"known answer {answer.name} is named like something in the notebook"

    def _questions_without_answers(
        self, answers: Sequence[KnownAnswer]
    ) -> Iterator[str]:
        for name in self._questions:
            kinds = [answer.is_mistake for answer in answers if answer.question == name]
            if not any(kinds):
                yield f"{name} has no mistake in mistakes.py"
            if kinds.count(False) < FEWEST_ALTERNATES:
                yield (
                    f"{name} has {kinds.count(False)} alternates in alternates.py; at least "
                    f"{FEWEST_ALTERNATES} prove a suite"
                )

    def _try_known(self, answers: Sequence[KnownAnswer]) -> list[TrialOutcome]:
        """Trials of the answer key, the release and all known answers. Further draws are tried
        where all is well with the first.
        """
        trials = [Trial("key", name, "key") for name in self._questions]
        trials += [Trial("release", name, "release") for name in self._questions]
        trials += [known_trial(answer) for answer in answers]
        trials = self._asked_for(trials)
        outcomes = Proctor(self._bench).run(trials)
        keys = [outcome for outcome in outcomes if outcome.trial.kind == "key"]
        for outcome in outcomes:
            self._problems += self._trial_problems(outcome)
        self._problems += unstated_tolerances(self._grader.release, keys)
        if self._problems or self._request.draws == 1:
            return outcomes
        redrawn = [
            dataclasses.replace(trial, draw=draw)
            for draw in range(1, self._request.draws)
            for trial in trials
            if trial.kind != "release"
        ]
        return outcomes + Proctor(self._bench, keys, earlier=outcomes).run(redrawn)

    def _trial_problems(self, outcome: TrialOutcome) -> Iterator[str]:
        trial = outcome.trial
        name, kind = trial.title, trial.kind
        if outcome.problem:
            yield f"{kind} {name}: {outcome.problem}"
            return
        tests = self._questions[trial.question].tests
        points = {test.name: test.points for test in tests}
        for test in outcome.tests:
            is_passed, worth = test.outcome == "passed", points[test.name]
            if kind == "key" and not is_passed:
                yield f"the answer key fails {name}: {test.name}: {test.message}"
            if kind == "release" and is_passed and worth > 0:
                yield f"the untouched release passes {name}: {test.name} ({worth:g} points)"
            if kind == "alternate" and not is_passed:
                yield f"alternate {name} fails {test.name}: {test.message}"
        if outcome.carried:
            yield (
                f"{kind} {name} gets back the points of {', '.join(outcome.carried)}, and what "
                "it builds on is right"
            )
        lost = sum(points[test] for test in outcome.failed)
        if kind == "mistake" and lost == 0:
            yield f"mistake {name} is not caught by any test"

    def _try_mutants(self, keys: Sequence[TrialOutcome]) -> list[JudgedMutant]:
        mutants = [
            mutant
            for key in keys
            for mutant in all_mutants(
                key.trial.question, self._cells[key.trial.question], key.observed
            )
        ]
        chosen = self._choose(mutants, self._request.mutants)
        outcomes = Proctor(self._bench, keys).run(mutant_trials(chosen))
        for outcome in outcomes:
            if outcome.problem:
                trial = outcome.trial
                self._problems.append(
                    f"mutant {trial.question}: {trial.name}: {outcome.problem}"
                )
        listed = self._asked_for(load_equivalent(self._bench.assignment.suite))
        judged = judge_mutants(outcomes, chosen, listed)
        self._problems += stale_entries(listed, mutants, judged)
        if too_many_alive(judged, sampled=len(chosen) < len(mutants)):
            self._problems.append(
                f"{killed_share(judged):.1%} of the mutants are killed, of at least "
                f"{ENOUGH_KILLED:.0%}; these survive:"
            )
            alive = [mutant.mutant for mutant in judged if mutant.fate == "survived"]
            self._problems += [
                f"survives: {mutant.question}: {mutant.name}" for mutant in alive
            ]
        return judged

    def _try_trivial(self, keys: Sequence[TrialOutcome]) -> list[TrialOutcome]:
        """Trials of answers without an idea; where mutants are a sample, one for each question."""
        count = None if self._request.mutants is None else 1
        trials = []
        for key in keys:
            question = key.trial.question
            answers = trivial_answers(question, self._cells[question], key.observed)
            for answer in sample(answers, count, question):
                trials.append(Trial("trivial", question, answer.name, answer.cell))
        return Proctor(self._bench, keys).run(trials)

    def _diagnose_samples(self) -> list[DiagnosedSample]:
        samples = self._grader.key.known_answers(SAMPLES_FILE)
        if unfit := list(unfit_samples(samples, self._grader.mistakes)):
            self._problems += unfit
            return []
        chosen = self._choose(samples, self._request.samples)
        diagnosed, problems = diagnose_samples(self._bench, chosen)
        self._problems += problems
        return diagnosed

    def _grade_alone(self) -> list[LoneAnswer]:
        """Known mistakes in submissions that are right otherwise. Alternates and unfinished forms
        of prerequisites have to be as harmless there.
        """
        chosen = self._choose(self._grader.mistakes, self._request.alone)
        lone_mistakes, problems = grade_alone(self._bench, chosen)
        self._problems += problems
        uses = {name: question.uses for name, question in self._questions.items()}
        used = {name for question in uses for name in prerequisites(question, uses)}
        alternates = self._choose(self._alternates, self._request.alone)
        right = [answer for answer in alternates if answer.question in used]
        released = self._grader.suite.released
        forms = [
            form
            for name, cell in self._cells.items()
            if name in used and name in released
            for form in unfinished_forms(name, cell, released[name])
        ]
        for answers in (right, self._choose(forms, self._request.unfinished)):
            self._problems += grade_alone(self._bench, answers)[1]
        return lone_mistakes

    def _prove_evidence(self) -> None:
        if self._request.evidence != 0:
            self._problems += prove_evidence(
                self._bench,
                self._asked_for(self._grader.mistakes),
                self._asked_for(self._alternates),
                self._request.evidence,
            )

    def _price_together(self) -> None:
        pairs = self._request.pairs
        triples = 0 if pairs is None else pairs // 3
        mistakes = self._asked_for(self._grader.mistakes)
        cells, seed = self._grader.key.cells, self._bench.assignment.name
        groups = combine_mistakes(mistakes, cells, 2, pairs, seed)
        groups |= combine_mistakes(mistakes, cells, 3, triples, seed)
        self._problems += price_problems(self._bench, groups)
