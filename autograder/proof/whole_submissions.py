"""Answers graded as students' submissions are: which mistakes are named, and what other questions
lose.

* `samples.py` of a suite holds answers in students' own words, each with the mistakes that are true
  of it. They measure diagnosis, which `mistakes.py` cannot: its authors know it, and every mistake
  names itself.
* A known mistake on an otherwise right submission should cost its own question only, and bring no
  other question a hint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.diagnosis.diagnostician import NamedMistakes
from autograder.grading.bench import Bench
from autograder.proof.trials import Answer, examine_each, with_answer
from autograder.sandbox.host_process import HostClient
from autograder.sitting.charges import adjust_verdicts
from autograder.sitting.sitting import Sitting
from autograder.suite.known_answers import KnownAnswer
from autograder.suite.prerequisites import prerequisites

SAMPLES_FILE = "samples.py"
MOST_UNNAMED = 0.1
"""The share of the samples that do not get the name they deserve, at most; of a few, one may
not.
"""
MOST_MISNAMED = 0.01
"""The share of the samples that get a name they do not deserve, at most."""


@dataclass(frozen=True, slots=True)
class DiagnosedSample:
    """A sample with its diagnosis.

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
        """Whether the diagnosis names first what it should; "wrong" if a name is not true."""
        deserved = self.deserves or ()
        if set(self.named) - set(deserved):
            return "wrong"
        return "right" if self.named[:1] == deserved[:1] else "too little"


@dataclass(frozen=True, slots=True)
class LoneAnswer:
    """The result of an answer in a submission that is right otherwise.

    Attributes:
        named: the mistakes that are named in the answer's question.
        elsewhere: points that other questions lost.
        hinted: other questions that name a mistake.
    """

    question: str
    name: str
    named: tuple[str, ...]
    elsewhere: Mapping[str, float]
    hinted: tuple[str, ...]


def unfit_samples(samples: Iterable[KnownAnswer], mistakes: Iterable[KnownAnswer]) -> Iterator[str]:
    """Samples that deserve a name which no mistake of their question has."""
    known = {(mistake.question, mistake.name) for mistake in mistakes}
    for sample in samples:
        for name in sample.deserves or ():
            if (sample.question, name) not in known:
                yield (
                    f"{SAMPLES_FILE}: {sample.name} deserves {name}, which is no mistake of "
                    f"{sample.question}"
                )


def diagnose_samples(
    bench: Bench, samples: Sequence[KnownAnswer]
) -> tuple[list[DiagnosedSample], list[str]]:
    """The samples with their diagnoses, and problems. Only the sample's question is graded: the
    other answers are the answer key's.
    """

    def diagnose(client: HostClient, sample: KnownAnswer) -> DiagnosedSample:
        grader = bench.grader
        question = grader.questions[sample.question]
        submission = grader.key.with_answer(sample)
        sitting = Sitting(client, grader.course.limits, grader.suite, submission)
        with contextlib.closing(sitting):
            runs = sitting.run(question)
        failed = {
            name for name, run in adjust_verdicts(runs).items() if run.verdict.outcome != "passed"
        }
        lost = sum(test.points for test in question.tests if test.name in failed)
        named = grader.diagnose(client, {sample.question: runs})[sample.question]
        return DiagnosedSample(
            sample.question, sample.name, sample.deserves, _mistakes_in(named), lost
        )

    diagnosed, problems = examine_each(bench, samples, diagnose, DiagnosedSample)
    return diagnosed, [*problems, *sample_problems(diagnosed)]


def sample_problems(samples: Sequence[DiagnosedSample]) -> Iterator[str]:
    """Samples that lose points and should not, or the other way round; and the samples that are
    not named rightly, where there are too many of them.
    """
    for sample in samples:
        title = f"{SAMPLES_FILE}: {sample.question}/{sample.name}"
        if sample.deserves is None and sample.lost:
            yield f"{title} is a right answer, and loses {sample.lost:g} points"
        if sample.deserves is not None and not sample.lost:
            yield f"{title} is a wrong answer, and loses nothing"
    right, wrong = verdict_shares(samples)
    count = sum(sample.deserves is not None for sample in samples)
    if round((1 - right) * count) > max(1, MOST_UNNAMED * count) or wrong > MOST_MISNAMED:
        yield f"{SAMPLES_FILE}: {right:.0%} are named rightly, {wrong:.0%} wrongly:"
        for sample in samples:
            if sample.verdict != "right":
                title = f"{SAMPLES_FILE}: {sample.question}/{sample.name}"
                names = " and ".join(sample.named) or "nothing"
                deserved = " and ".join(sample.deserves or ()) or "nothing"
                yield f"{title} is told {names}, and deserves {deserved}"


def verdict_shares(samples: Iterable[DiagnosedSample]) -> tuple[float, float]:
    """The shares of the wrong answers that are named rightly and wrongly; (1, 0) without any."""
    verdicts = [sample.verdict for sample in samples if sample.deserves is not None]
    if not verdicts:
        return 1.0, 0.0
    return verdicts.count("right") / len(verdicts), verdicts.count("wrong") / len(verdicts)


def grade_alone(bench: Bench, answers: Sequence[Answer]) -> tuple[list[LoneAnswer], list[str]]:
    """Each answer in a submission that is right otherwise, and what other questions lose. Graded
    are the answer's question and those that build on it: the others cannot change.
    """
    uses = {name: question.uses for name, question in bench.grader.questions.items()}

    def grade(client: HostClient, answer: Answer) -> LoneAnswer:
        grader = bench.grader
        affected = [
            name
            for name in uses
            if name == answer.question or answer.question in prerequisites(name, uses)
        ]
        submission = with_answer(grader.key, answer)
        result, _ = grader.grade_submission(client, submission, affected)
        questions = {question.name: question for question in result.questions}
        question = questions.pop(answer.question)
        return LoneAnswer(
            answer.question,
            answer.name,
            named=_mistakes_in(NamedMistakes(question.diagnosis, question.slips)),
            elsewhere={
                name: question.max_score - question.score
                for name, question in questions.items()
                if question.score < question.max_score
            },
            hinted=tuple(
                name for name, question in questions.items() if question.diagnosis or question.slips
            ),
        )

    results, problems = examine_each(bench, answers, grade, LoneAnswer)
    for result in results:
        title = f"{result.question}/{result.name}"
        losses = [f"{points:g} of {question}" for question, points in result.elsewhere.items()]
        if losses:
            problems.append(f"{title} alone costs points elsewhere: {', '.join(losses)}")
        for question in result.hinted:
            problems.append(f"{title} alone brings a hint to {question}")
    return results, problems


def _mistakes_in(named: NamedMistakes) -> tuple[str, ...]:
    return tuple(diagnosis.mistake for diagnosis in (named.first, *named.slips) if diagnosis)
