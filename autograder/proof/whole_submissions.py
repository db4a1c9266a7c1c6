"""Answers graded like students' submissions: their diagnoses, and losses of other questions.

* `samples.py` of a suite holds answers in students' own words, each with the mistakes that are true
  of it. They measure diagnosis, which `mistakes.py` cannot: its authors know it, and every mistake
  names itself.
* A known mistake on an otherwise right submission should cost its own question only, and bring no
  other question a hint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.diagnosis.missing_checks import LACKS_A_CHECK
from autograder.grading.bench import Bench
from autograder.proof.trials import Replacement, examine_each, grade_answer
from autograder.records.model import QuestionResult
from autograder.sandbox.host_process import HostClient
from autograder.suite.known_answers import KnownAnswer
from autograder.suite.prerequisites import affected_questions

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
        """Whether the first name is the deserved one; "wrong" where a name is not true."""
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


def unfit_samples(
    samples: Iterable[KnownAnswer],
    mistakes: Iterable[KnownAnswer],
) -> Iterator[str]:
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
        (question,) = grade_answer(bench, client, sample, [sample.question])
        lost = question.max_score - question.score
        named = _mistakes_in(question)
        return DiagnosedSample(
            sample.question, sample.name, sample.deserves, named, lost
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
    unnamed = round((1 - right) * count)
    if unnamed > max(1, MOST_UNNAMED * count) or wrong > MOST_MISNAMED:
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
    right, wrong = verdicts.count("right"), verdicts.count("wrong")
    return right / len(verdicts), wrong / len(verdicts)


def grade_alone(
    bench: Bench,
    answers: Sequence[Replacement],
) -> tuple[list[LoneAnswer], list[str]]:
    """Each answer in a submission that is right otherwise, and losses of other questions. Only the
    answer's question and the questions that build on it are graded: the others cannot change.
    """
    uses = {name: question.uses for name, question in bench.grader.questions.items()}

    def grade(client: HostClient, answer: Replacement) -> LoneAnswer:
        affected = affected_questions(answer.question, uses)
        graded = grade_answer(bench, client, answer, affected)
        questions = {question.name: question for question in graded}
        question = questions.pop(answer.question)
        return LoneAnswer(
            answer.question,
            answer.name,
            named=_mistakes_in(question),
            elsewhere={
                name: question.max_score - question.score
                for name, question in questions.items()
                if question.score < question.max_score
            },
            hinted=tuple(
                name
                for name, question in questions.items()
                if question.diagnosis or question.slips
            ),
        )

    results, problems = examine_each(bench, answers, grade, LoneAnswer)
    for result in results:
        title = f"{result.question}/{result.name}"
        losses = [
            f"{points:g} of {question}" for question, points in result.elsewhere.items()
        ]
        if losses:
            problems.append(
                f"{title} alone costs points elsewhere: {', '.join(losses)}"
            )
        for question in result.hinted:
            problems.append(f"{title} alone brings a hint to {question}")
    return results, problems


def _mistakes_in(question: QuestionResult) -> tuple[str, ...]:
    """The known mistakes that a result names. A missing check that none of them leaves out is told
    by a sentence that is always true.
    """
    diagnoses = (question.diagnosis, *question.slips)
    names = [diagnosis.mistake for diagnosis in diagnoses if diagnosis]
    return tuple(name for name in names if name != LACKS_A_CHECK)
