"""What an answer may cost or score, and `costs.toml` of a suite: what its author says of single answers, with reasons.

[softmax.misses_the_point]
"what comes out is no distribution" = ["keeps_the_scores"]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.errors import BadSuite
from autograder.proof.equivalent import read_tables
from autograder.proof.wrapped import TRIVIAL

if TYPE_CHECKING:
    from autograder.proof.figures import Cost, QuestionFigures

FILE = "costs.toml"
MOST_FOR_A_SLIP = 1 / 2
"""The largest share of its question's points that a mistake may lose: a right idea with one slip."""
LEAST_FOR_THE_POINT = 1 / 3
"""The smallest share of its question's points that a mistake loses which misses the point of the question."""
MOST_FOR_NOTHING = 0.05
"""The largest share of its points that a question may give to an answer without an idea."""

KINDS = ("misses_the_point", "dear", "cheap", "for_nothing")
"""What is said of an answer: it misses the point of its question; it is a slip and loses more than a slip should; it
misses the point and loses less than it should; it has no idea and scores more than it should."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Said:
    """What a suite's author says of one answer.

    Attributes:
        kind: one of `KINDS`.
    """

    kind: str
    reason: str


def load_costs(suite: Path) -> Mapping[tuple[str, str], Said] | None:
    """(question, name of the answer) → what is said of it; None where the suite has no such file.

    Raises:
        BadSuite: the file is no TOML, or not of that form; an answer is listed twice; a reason is empty.
    """
    path = suite / FILE
    if not path.exists():
        return None
    listed: dict[tuple[str, str], Said] = {}
    for question, kinds in read_tables(path).items():
        for kind, reasons in kinds.items():
            if kind not in KINDS or not isinstance(reasons, dict):
                raise BadSuite(
                    f"{path}: [{question}.{kind}] is none of {', '.join(f'[{question}.{k}]' for k in KINDS)}"
                )
            for reason, names in reasons.items():
                if not reason.strip() or not isinstance(names, list) or not names:
                    raise BadSuite(f'{path}: [{question}.{kind}] lists "reason" = ["answer", "other answer"]')
                for name in names:
                    if (question, name) in listed:
                        raise BadSuite(f"{path}: {question}/{name} is listed twice")
                    listed[question, name] = Said(kind, reason)
    return listed


def cost_problems(
    figures: Sequence[QuestionFigures], listed: Mapping[tuple[str, str], Said] | None, questions: Collection[str]
) -> list[str]:
    """Answers that cost or score another share than they should, and entries of costs.toml that say nothing true.

    Args:
        figures: of the questions that were looked at; only their entries are checked.
        listed: what costs.toml says; None where there is none, and then any mistake may cost what it does.
        questions: all of the suite.
    """
    said_of = listed or {}
    problems = [f"{FILE}: there is no question {of}" for of in sorted({of for of, _ in said_of} - set(questions))]
    for question in figures:
        its = {name: said for (of, name), said in said_of.items() if of == question.name}
        known = {mistake.name for mistake in question.mistakes} | TRIVIAL.keys()
        for name, said in its.items():
            if name not in known:
                problems.append(f"{FILE}, [{question.name}.{said.kind}]: there is no answer {name}; take the entry out")
        for mistake in question.mistakes if listed is not None else ():
            problems += _of_mistake(question.name, mistake, its.get(mistake.name))
        for name, share in question.trivial.items():
            problems += _for_nothing(question.name, name, share, its.get(name))
    return problems


def _of_mistake(question: str, mistake: Cost, said: Said | None) -> Iterator[str]:
    kind, lost = said.kind if said else "", mistake.lost
    does = f"mistake {question}/{mistake.name} loses {lost:.0%}"
    is_dear, is_cheap = lost > MOST_FOR_A_SLIP + _ROUNDING, lost < LEAST_FOR_THE_POINT - _ROUNDING
    if not kind and is_dear:
        yield f"{does}, and is not in {FILE}: a right idea with one slip loses half at most"
    elif kind == "misses_the_point" and is_cheap:
        yield f"{does}: what misses the point of its question loses a third at least"
    elif (kind == "dear" and not is_dear) or (kind == "cheap" and not is_cheap):
        yield f"{does}, which is not {kind}: take it out of [{question}.{kind}] in {FILE}"
    elif kind == "for_nothing":
        yield f"{FILE}, [{question}.for_nothing]: {mistake.name} is a mistake, not an answer without an idea"


def _for_nothing(question: str, name: str, share: float, said: Said | None) -> Iterator[str]:
    if said is None and share > MOST_FOR_NOTHING + _ROUNDING:
        yield f"{question}: an answer that is {name} scores {share:.0%} of the points"
    elif said is not None and share <= MOST_FOR_NOTHING + _ROUNDING:
        yield f"{question}: an answer that is {name} scores {share:.0%}: take it out of {FILE}"
