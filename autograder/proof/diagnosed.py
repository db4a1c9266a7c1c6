"""What students would be told, and what a mistake would cost them: answers that are graded as
submissions are.

* `samples.py` of a suite holds answers in students' own words, each with the mistakes that are true
  of it. It measures diagnosis, which is made by people who know `mistakes.py`: there, every mistake
  names itself.
* A known mistake on an otherwise right submission should cost its own question only, and no other
  should get a hint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.diagnosis.diagnostician import NamedMistakes
from autograder.grading.bench import Bench
from autograder.proof.trials import examine_each
from autograder.proof.unfinished import Unfinished
from autograder.sandbox.host_process import HostClient
from autograder.sitting.charges import adjust_verdicts
from autograder.sitting.sitting import Sitting
from autograder.suite.known_answers import KnownAnswer
from autograder.suite.prerequisites import prerequisites

FILE = "samples.py"
MOST_UNNAMED = 0.1
"""The share of the samples that do not get the name they deserve, at most; of a few, one may
not.
"""
MOST_MISNAMED = 0.01
"""The share of the samples that get a name they do not deserve, at most."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the author of one sample would be told.

    Attributes:
        deserves: as in `KnownAnswer`; None for a right answer.
        named: the mistakes that were named, the first one first.
        lost: points.
    """

    question: str
    name: str
    deserves: tuple[str, ...] | None
    named: tuple[str, ...]
    lost: float

    @property
    def verdict(self) -> Literal["right", "too little", "wrong"]:
        """Whether the diagnosis names first what it should, misses it, or says something that is
        not so.
        """
        deserved = self.deserves or ()
        if set(self.named) - set(deserved):
            return "wrong"
        return "right" if self.named[:1] == deserved[:1] else "too little"


@dataclass(frozen=True, slots=True)
class Alone:
    """What one known mistake costs an otherwise right submission.

    Attributes:
        named: the mistakes that its own question names.
        elsewhere: points that other questions lost.
        hinted: other questions that name a mistake.
    """

    question: str
    name: str
    named: tuple[str, ...]
    elsewhere: Mapping[str, float]
    hinted: tuple[str, ...]


def samples_of(bench: Bench) -> list[KnownAnswer]:
    """The answers of the suite's `samples.py`; none where there is no such file."""
    return bench.grader.key.known_answers(FILE)


def unfit_samples(samples: Iterable[KnownAnswer], mistakes: Iterable[KnownAnswer]) -> Iterator[str]:
    """Samples that deserve a name which no mistake of their question has."""
    known = {(mistake.question, mistake.name) for mistake in mistakes}
    for sample in samples:
        for name in sample.deserves or ():
            if (sample.question, name) not in known:
                yield (
                    f"{FILE}: {sample.name} deserves {name}, which is no mistake of "
                    f"{sample.question}"
                )


def diagnose_samples(bench: Bench, samples: Sequence[KnownAnswer]) -> tuple[list[Told], list[str]]:
    """Each sample with what its author would be told, and what went wrong. Only its own question is
    graded: the rest is the answer key's.
    """

    def tell(client: HostClient, sample: KnownAnswer) -> Told:
        grader = bench.grader
        question = grader.questions[sample.question]
        sitting = Sitting(
            client, grader.course.limits, grader.suite, grader.key.with_answer(sample)
        )
        with contextlib.closing(sitting):
            runs = sitting.run(question)
        outcomes = adjust_verdicts(runs)
        lost = sum(
            test.points
            for test in question.tests
            if outcomes[test.name].verdict.outcome != "passed"
        )
        named = grader.diagnose(client, {sample.question: runs})[sample.question]
        return Told(sample.question, sample.name, sample.deserves, _names(named), lost)

    examined = examine_each(bench, samples, tell, Told)
    told = [record for _, record, _ in examined if record]
    problems = [
        f"{sample.question}/{sample.name}: {problem}" for sample, _, problem in examined if problem
    ]
    return told, problems + list(sample_problems(told))


def sample_problems(told: Sequence[Told]) -> Iterator[str]:
    """What is not as it should be with samples and what is said to them."""
    for one in told:
        if one.deserves is None and one.lost:
            yield (
                f"{FILE}: {one.question}/{one.name} is a right answer, and loses "
                f"{one.lost:g} points"
            )
        if one.deserves is not None and not one.lost:
            yield f"{FILE}: {one.question}/{one.name} is a wrong answer, and loses nothing"
    rightly, wrongly = shares(told)
    wrong = sum(one.deserves is not None for one in told)
    if round((1 - rightly) * wrong) > max(1, MOST_UNNAMED * wrong) or wrongly > MOST_MISNAMED:
        yield f"{FILE}: {rightly:.0%} are named rightly, {wrongly:.0%} wrongly:"
        for one in told:
            if one.verdict != "right":
                names = " and ".join(one.named) or "nothing"
                deserved = " and ".join(one.deserves or ()) or "nothing"
                yield f"{FILE}: {one.question}/{one.name} is told {names}, and deserves {deserved}"


def shares(told: Iterable[Told]) -> tuple[float, float]:
    """Of the wrong answers, the share that is named rightly and the share that is named wrongly;
    (1, 0) where there are none.
    """
    verdicts = [one.verdict for one in told if one.deserves is not None]
    if not verdicts:
        return 1.0, 0.0
    return verdicts.count("right") / len(verdicts), verdicts.count("wrong") / len(verdicts)


Wrong = KnownAnswer | Unfinished
"""A wrong answer that a submission, right otherwise, has to one question."""


def grade_alone(bench: Bench, answers: Sequence[Wrong]) -> tuple[list[Alone], list[str]]:
    """Each wrong answer as a submission that is right otherwise, and what went wrong. Graded are
    its own question and those that build on it: the others are the answer key's and cannot change.
    """
    uses = {name: question.uses for name, question in bench.grader.questions.items()}

    def grade(client: HostClient, answer: Wrong) -> Alone:
        grader = bench.grader
        touched = [
            name
            for name in uses
            if name == answer.question or answer.question in prerequisites(name, uses)
        ]
        if isinstance(answer, Unfinished):
            submission = answer.of(grader.key.submission, grader.suite.released[answer.question])
        else:
            submission = grader.key.with_answer(answer)
        result, _ = grader.grade_submission(client, submission, touched)
        own = next(q for q in result.questions if q.name == answer.question)
        others = [q for q in result.questions if q is not own]
        return Alone(
            answer.question,
            answer.name,
            named=_names(NamedMistakes(own.diagnosis, own.slips)),
            elsewhere={q.name: q.max_score - q.score for q in others if q.score < q.max_score},
            hinted=tuple(q.name for q in others if q.diagnosis or q.slips),
        )

    examined = examine_each(bench, answers, grade, Alone)
    alone = [record for _, record, _ in examined if record]
    problems = [
        f"{answer.question}/{answer.name}: {problem}" for answer, _, problem in examined if problem
    ]
    for one in alone:
        costs = ", ".join(f"{points:g} of {question}" for question, points in one.elsewhere.items())
        if costs:
            problems.append(f"{one.question}/{one.name} alone costs points elsewhere: {costs}")
        for question in one.hinted:
            problems.append(f"{one.question}/{one.name} alone brings a hint to {question}")
    return alone, problems


def _names(named: NamedMistakes) -> tuple[str, ...]:
    return tuple(diagnosis.mistake for diagnosis in (named.first, *named.slips) if diagnosis)
