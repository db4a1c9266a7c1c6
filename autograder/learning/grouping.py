"""Groups nameless answers by behaviour: the same failed tests, with the same answers to the same
calls.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping, Sequence

from autograder.learning.behaviour import NamelessAnswer, RunStore
from autograder.records.groups import MistakeGroup
from autograder.sitting.agreement import answers_agree, gradients_agree
from autograder.sitting.sitting import TestRun

_NAME_LETTERS = 4
_Runs = Mapping[str, TestRun | None]


def group_answers(
    answers: Sequence[NamelessAnswer], store: RunStore
) -> list[MistakeGroup]:
    """The groups of a class, the largest first; each answer is in one group.

    Rounding makes agreement no equivalence, so the order of comparisons counts: by student. The
    same class gives the same groups.
    """
    by_behaviour: dict[str, list[list[NamelessAnswer]]] = {}
    for answer in sorted(answers, key=lambda answer: (answer.question, answer.student)):
        candidates = by_behaviour.setdefault(_describe_behaviour(answer), [])
        runs = store.load(answer)
        for members in candidates:
            if _behave_alike(runs, store.load(members[0]), store.load_key(answer)):
                members.append(answer)
                break
        else:
            candidates.append([answer])
    groups = []
    for behaviour, candidates in by_behaviour.items():
        candidates.sort(
            key=lambda members: (-len(members), _code_order(_shortest(members)))
        )
        digest = hashlib.sha256(behaviour.encode()).hexdigest()[:_NAME_LETTERS]
        for number, members in enumerate(candidates, 1):
            name = f"{members[0].question}-{digest}"
            groups.append(
                _make_group(name if number == 1 else f"{name}-{number}", members)
            )
    return sorted(groups, key=lambda group: (-len(group.students), group.name))


def _describe_behaviour(answer: NamelessAnswer) -> str:
    """What two answers of a group have in common to the letter. No number of an answer is part of
    it: numbers differ by rounding, from machine to machine.
    """
    tests = [(test.name, test.outcome, test.departures) for test in answer.tests]
    return repr((answer.question, tests, answer.ways))


def _behave_alike(first: _Runs, second: _Runs, key: _Runs) -> bool:
    return all(_runs_agree(first[test], second[test], key[test]) for test in first)


def _runs_agree(
    first: TestRun | None, second: TestRun | None, key: TestRun | None
) -> bool:
    """Whether two answers gave the same answers to the calls of one test. Runs that are not stored
    have no answers to compare.
    """
    if first is None or second is None:
        return first is second
    if len(first.calls) != len(second.calls):
        return False
    key_calls = key.calls if key else ()
    for index, (call, other) in enumerate(zip(first.calls, second.calls, strict=True)):
        key_call = key_calls[index] if index < len(key_calls) else None
        if not answers_agree(call, other, key_call) or not gradients_agree(call, other):
            return False
    return True


def _make_group(name: str, members: Sequence[NamelessAnswer]) -> MistakeGroup:
    shortest = _shortest(members)
    others = [
        member
        for member in members
        if not member.problem and member.code != shortest.code
    ]
    return MistakeGroup(
        name=name,
        question=shortest.question,
        tests=tuple(test.name for test in shortest.tests),
        ways=shortest.ways,
        message=shortest.message,
        code=shortest.code,
        problem=shortest.problem,
        other_code=_least_like(shortest.code, others),
        students=tuple(sorted(member.student for member in members)),
    )


def _least_like(code: str, others: Sequence[NamelessAnswer]) -> str:
    """The code that is written most differently; "" without others."""

    def likeness(
        answer: NamelessAnswer,
    ) -> tuple[float, tuple[bool, int, int, str, str]]:
        words, other_words = code.split(), answer.code.split()
        ratio = difflib.SequenceMatcher(
            None, words, other_words, autojunk=False
        ).ratio()
        return ratio, _code_order(answer)

    return min(others, key=likeness).code if others else ""


def _shortest(members: Sequence[NamelessAnswer]) -> NamelessAnswer:
    return min(members, key=_code_order)


def _code_order(answer: NamelessAnswer) -> tuple[bool, int, int, str, str]:
    """Answers with few faults first, then short code; answers that cannot be learned last."""
    length = len(answer.code)
    return bool(answer.problem), answer.faults, length, answer.code, answer.student
