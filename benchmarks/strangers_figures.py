"""Strangers' answers with their labels and results, and the figures made of them.

An answer stands in `strangers/ASSIGNMENT.toml`. Somebody who had seen the release alone wrote it,
and wrote down what is wrong with it before it was graded. Its result, which `strangers.py` writes,
stands in `strangers/measured/ASSIGNMENT.json`. A further set of answers has a folder of its own,
`strangers/SET/`, with the same files: what is mended with one set is measured by the next one.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from autograder.basics.natural_order import natural_order
from autograder.basics.stored_json import encode_stored, read_stored

FOLDER = Path(__file__).resolve().parent / "strangers"
Half = Literal["seen", "unseen"]
Judgement = Literal["", "rightly", "wrongly", "not"]


@dataclass(frozen=True, slots=True)
class StrangersAnswer:
    """An answer to one question, with its label and a person's judgement of its result.

    Attributes:
        half: suites may be changed after a look at the "seen" half; the other one measures them.
        right: whether the docstring allows everything that the answer does.
        faults: a sentence for each fault; none for a right answer.
        named: whether the hints that the answer got are true of it. One false hint makes it
            "wrongly"; "not" is an answer without a hint; "" has not been judged.
        told: the mistakes whose hints were judged. The judgement is void where the answer is told
            others.
        truly_wrong: what a person found by hand where result and label contradict each other: a
            wrong answer at full marks, or a right one that loses. None before that.
    """

    id: str
    question: str
    half: Half
    right: bool
    faults: tuple[str, ...]
    code: str
    named: Judgement = ""
    told: tuple[str, ...] = ()
    truly_wrong: bool | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether the answer is wrong, by the check by hand where there was one."""
        return not self.right if self.truly_wrong is None else self.truly_wrong


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """The result of an answer in a submission that is right otherwise.

    Attributes:
        lost: the share of its question's points.
        elsewhere: points that other questions lost.
        mistakes: the known mistakes that were named, the first one first.
        hints: what the student reads, a hint for each of `mistakes`.
        evidence: what the student reads where no mistake is named first.
        failed: the failed tests' messages, by the test's name.
    """

    id: str
    lost: float
    elsewhere: dict[str, float] = field(default_factory=dict)
    mistakes: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    evidence: str = ""
    failed: dict[str, str] = field(default_factory=dict)


def folder_of(set_name: str) -> Path:
    """The folder of a set of answers; "" is the first set.

    Raises:
        SystemExit: the set has no answers.
    """
    folder = FOLDER / set_name
    if not any(folder.glob("*.toml")):
        raise SystemExit(f"{folder} has no answers: write ASSIGNMENT.toml there")
    return folder


def assignments(folder: Path = FOLDER) -> list[str]:
    """The assignments with strangers' answers."""
    names = [path.stem for path in folder.glob("*.toml")]
    return sorted(names, key=natural_order)


def load_answers(assignment: str, folder: Path = FOLDER) -> list[StrangersAnswer]:
    """The answers to an assignment, in the order of their file."""
    tables = tomllib.loads((folder / f"{assignment}.toml").read_text(encoding="utf-8"))
    return msgspec.convert(tables["answer"], list[StrangersAnswer])


def load_graded(assignment: str, folder: Path = FOLDER) -> dict[str, GradedAnswer]:
    """The stored results of an assignment's answers by id; none before the first measurement."""
    path = _measured(assignment, folder)
    if not path.exists():
        return {}
    return {graded.id: graded for graded in read_stored(path, tuple[GradedAnswer, ...])}


def store_graded(
    assignment: str, graded: Iterable[GradedAnswer], folder: Path = FOLDER
) -> None:
    """Store results beside those of answers that were not graded now."""
    merged = load_graded(assignment, folder) | {answer.id: answer for answer in graded}
    answers = load_answers(assignment, folder)
    results = [merged[answer.id] for answer in answers if answer.id in merged]
    path = _measured(assignment, folder)
    path.parent.mkdir(exist_ok=True)
    path.write_text(encode_stored(results), encoding="utf-8")


def _measured(assignment: str, folder: Path) -> Path:
    return folder / "measured" / f"{assignment}.json"


def open_decisions(answer: StrangersAnswer, graded: GradedAnswer) -> Iterator[str]:
    """What a person has yet to decide about an answer, in words."""
    has_lost = graded.lost > 0
    if has_lost == answer.right and answer.truly_wrong is None:
        yield "truly_wrong: look by hand whether the label or the suite is right"
    if has_lost and answer.is_wrong:
        if not answer.named:
            yield "named: read the hints against the label"
        elif answer.told != graded.mistakes:
            yield f"named: judged with the hints {list(answer.told)}, which are others now"


@dataclass(frozen=True, slots=True)
class StrangersFigures:
    """The figures of some answers.

    Attributes:
        wrong, right: how many answers are wrong, and right.
        missed: wrong answers at full marks.
        robbed: right answers that lose points.
        rightly, wrongly, only_evidence: how many of the wrong answers that fail are told true
            hints alone; a false hint; no hint, and what is true of the answer.
        slip_losses: the shares that failing answers with a single fault lose.
        elsewhere: wrong answers that take points from other questions.
    """

    wrong: int
    right: int
    missed: int
    robbed: int
    rightly: int
    wrongly: int
    only_evidence: int
    slip_losses: tuple[float, ...]
    elsewhere: int

    @property
    def failing(self) -> int:
        """How many wrong answers lose points."""
        return self.wrong - self.missed

    def row(self, name: str) -> dict[str, str]:
        """The cells of a table's row, by heading."""
        losses = self.slip_losses
        return {
            "assignment": name,
            "wrong answers": str(self.wrong),
            "at full marks": _share(self.missed, self.wrong),
            "right answers": str(self.right),
            "that lose": _share(self.robbed, self.right),
            "named rightly": _share(self.rightly, self.failing),
            "wrongly": _share(self.wrongly, self.failing),
            "evidence alone": _share(self.only_evidence, self.failing),
            "one slip loses": f"{statistics.median(losses):.0%}" if losses else "–",
            "cost elsewhere": str(self.elsewhere),
        }


def _share(count: int, total: int) -> str:
    return f"{count} ({count / total:.0%})" if total else "–"


def figures_of(
    answers: Iterable[StrangersAnswer], graded: Mapping[str, GradedAnswer]
) -> StrangersFigures:
    """The figures of those answers that have a result."""
    pairs = [(answer, graded[answer.id]) for answer in answers if answer.id in graded]
    wrong = [pair for pair in pairs if pair[0].is_wrong]
    right = [result for answer, result in pairs if not answer.is_wrong]
    failing = [(answer, result) for answer, result in wrong if result.lost > 0]
    judgements = [answer.named for answer, _ in failing]
    return StrangersFigures(
        wrong=len(wrong),
        right=len(right),
        missed=len(wrong) - len(failing),
        robbed=sum(result.lost > 0 for result in right),
        rightly=judgements.count("rightly"),
        wrongly=judgements.count("wrongly"),
        only_evidence=sum(
            not result.mistakes and bool(result.evidence) for _, result in failing
        ),
        slip_losses=tuple(
            result.lost for answer, result in failing if len(answer.faults) == 1
        ),
        elsewhere=sum(bool(result.elsewhere) for _, result in wrong),
    )
