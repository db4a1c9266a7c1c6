"""Searches an answer with full marks for an allowed call in which it differs from the answer key.

The answer runs behind walls, as in grading. Scripts are drawn from the question's contracts with a
seed, the same ones for every answer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from autograder.course import Limits
from autograder.diagnosis.script_judge import AnswerDifference, ScriptJudge
from autograder.diagnosis.script_play import KeyPlayer, StudentPlayer
from autograder.diagnosis.shrinking import Shrunk, shrink
from autograder.records.submission import Submission
from autograder.sandbox.host_process import HostClient
from autograder.sitting.loaded_suite import LoadedSuite
from autograder.sitting.sitting import Sitting
from autograder.suite.collection import SuiteQuestion
from autograder.suite.contracts import Contract, deal_scripts
from autograder.suite.script_steps import StepAnswer
from autograder.suite.script_text import script_lines, script_title, value_text
from autograder.suite.scripts import Made, Script, float_dtypes

AnswerKind = Literal["student", "key", "alternate", "mutant", "sample"]
_ROUND = 100
"""Scripts that are drawn at once; further ones are drawn while there is time."""
_CALL_SECONDS = 3.0
_MOST_FAULTS = 4
"""Calls that hang or end the process while a script shrinks; each takes seconds."""
_MOST_ROUNDS_KEPT = 200
_LONGEST_ANSWER = 2000
"""Letters of an answer in a find."""
_MOST_HISTORY = 40
"""Scripts before the one that shows a difference, among which the one is looked for that made it.
"""


@dataclass(frozen=True, slots=True)
class HuntLimits:
    """How long a question of an answer is searched.

    Attributes:
        seconds: of processor time; the scripts are as many as that allows.
        scripts: at most so many.
        seed: other seeds draw other scripts.
    """

    seconds: float = 2.0
    scripts: int = 100_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Find:
    """An allowed call in which an answer with full marks differs from the answer key.

    Attributes:
        kind, answer: which answer: "student", and whose.
        way: how it differs, as in `AnswerDifference`.
        title: the calls in one line.
        lines: the calls as Python.
        right: the answer key's answer, as Python.
        wrong: the other answer, or the exception.
    """

    kind: AnswerKind
    question: str
    answer: str
    way: str
    title: str
    lines: tuple[str, ...]
    right: str
    wrong: str

    @property
    def name(self) -> str:
        """The find in one line, as `hunted.toml` lists it."""
        return f"{self.kind} {self.answer}: {self.way}: {self.title}"


@dataclass(frozen=True, slots=True)
class _Card:
    """A script with the answer key's answers."""

    contract: Contract
    judge: ScriptJudge
    script: Script
    right: Sequence[StepAnswer]


class Hunter:
    """Searches answers, in a grader's process.

    Args:
        contracts: of the suite's questions.
        names: the answer key's names.
        is_listed: whether a find has a reason and is not told.
    """

    def __init__(
        self,
        suite: LoadedSuite,
        limits: Limits,
        contracts: Sequence[Contract],
        names: Mapping[str, Any],
        hunt_limits: HuntLimits,
        is_listed: Callable[[Find], bool],
    ) -> None:
        self._suite = suite
        self._limits = dataclasses.replace(
            limits,
            call_seconds=min(limits.call_seconds, _CALL_SECONDS),
            submission_seconds=max(
                limits.submission_seconds, 100 * hunt_limits.seconds
            ),
        )
        self._contracts = contracts
        self._names = names
        self._key_player = KeyPlayer(names)
        self._hunt_limits = hunt_limits
        self._is_listed = is_listed
        self._cards: dict[tuple[str, int], list[_Card]] = {}

    def cards(
        self,
        question: str,
        round_number: int,
    ) -> list[_Card]:
        """The scripts of one round that the answer key accepts, drawn once in a process."""
        name = (question, round_number)
        if name not in self._cards:
            if len(self._cards) > _MOST_ROUNDS_KEPT:
                self._cards.clear()
            contracts = [
                contract
                for contract in self._contracts
                if contract.question == question
            ]
            seed = self._hunt_limits.seed + 1_000_003 * round_number
            count = min(_ROUND, self._hunt_limits.scripts)
            judges = {id(contract): self._judge(contract) for contract in contracts}
            cards = []
            for contract, script in deal_scripts(contracts, count, seed):
                judge = judges[id(contract)]
                right = judge.right_answers(script)
                if right is not None:
                    cards.append(_Card(contract, judge, script, right))
            self._cards[name] = cards
        return self._cards[name]

    def _judge(self, contract: Contract) -> ScriptJudge:
        player = self._key_player
        if contract.definition is not None:
            player = KeyPlayer({**self._names, contract.function: contract.definition})
        return ScriptJudge(
            player,
            contract.tolerance,
            contract.equals == "free",
            contract.right_if,
            may_narrow=contract.dtypes != ("float64",),
        )

    def search(
        self,
        client: HostClient,
        submission: Submission,
        question: SuiteQuestion,
        kind: AnswerKind,
        answer: str,
        stand_ins: tuple[str, ...] = (),
    ) -> Find | None:
        """The first find that is not listed; None where there is none in time.

        Args:
            stand_ins: earlier questions for which the answer key answers, so that a find is about
                this question.
        """
        start_sitting = functools.partial(
            self._sitting, client, submission, question, stand_ins
        )
        with contextlib.closing(start_sitting()) as sitting:
            student = StudentPlayer(sitting.functions(), self._names)
            history: list[Script] = []
            for card in self._cards_in_time(question.name, sitting):
                difference = card.judge.difference(
                    card.script, student.play(card.script), card.right
                )
                if difference is not None:
                    shrunk = self._shrink(start_sitting, card, history)
                    if shrunk is not None:
                        find = _as_find(kind, question.name, answer, shrunk)
                        if not self._is_listed(find):
                            return find
                history.append(card.script)
        return None

    def _cards_in_time(
        self,
        question: str,
        sitting: Sitting,
    ) -> Iterator[_Card]:
        played = 0
        seconds = 0.0
        round_number = 0
        while cards := self.cards(question, round_number):
            for card in cards:
                spent = sitting.workplace.spent.processor
                started = time.process_time()
                yield card
                played += 1
                seconds += time.process_time() - started
                seconds += max(0.0, sitting.workplace.spent.processor - spent)
                if (
                    seconds > self._hunt_limits.seconds
                    or played >= self._hunt_limits.scripts
                ):
                    return
            round_number += 1

    def _sitting(
        self,
        client: HostClient,
        submission: Submission,
        question: SuiteQuestion,
        stand_ins: tuple[str, ...],
    ) -> Sitting:
        sitting = Sitting(client, self._limits, self._suite, submission)
        sitting.workplace.prepare(question.forbidden, stand_ins)
        return sitting

    def _shrink(
        self,
        start_sitting: Callable[[], Sitting],
        card: _Card,
        history: Sequence[Script],
    ) -> Shrunk | None:
        """The smallest script like the card's that shows a difference in a fresh worker.

        Where the card's script alone shows none there, an earlier script has left something behind:
        then the smallest pair of an earlier script and this one.
        """
        with contextlib.closing(start_sitting()) as sitting:
            shrunk = shrink(card.script, self._examiner(card, sitting))
        for candidate in (shrunk.script, card.script) if shrunk is not None else ():
            # the worker that shrank may remember what it was asked before
            difference = self._first_difference(start_sitting, card, candidate)
            if difference is not None:
                return Shrunk(candidate, difference, 1)
        for earlier in reversed(history[-_MOST_HISTORY:]):
            pair = _in_a_row(earlier, card.script)
            difference = self._first_difference(start_sitting, card, pair)
            if difference is not None:
                return Shrunk(pair, difference, 1)
        return None

    def _first_difference(
        self,
        start_sitting: Callable[[], Sitting],
        card: _Card,
        script: Script,
    ) -> AnswerDifference | None:
        """The difference that a script shows in a worker that has answered nothing else."""
        with contextlib.closing(start_sitting()) as sitting:
            return self._examiner(card, sitting)(script)

    def _examiner(
        self,
        card: _Card,
        sitting: Sitting,
    ) -> Callable[[Script], AnswerDifference | None]:
        student = StudentPlayer(sitting.functions(), self._names)
        dtypes = float_dtypes(card.script) | set(card.contract.dtypes)
        faults = 0

        def examine(script: Script) -> AnswerDifference | None:
            nonlocal faults
            if faults > _MOST_FAULTS:
                return None
            if not float_dtypes(script) <= dtypes or not card.contract.allows(script):
                return None
            right = card.judge.right_answers(script)
            if right is None:
                return None
            difference = card.judge.difference(script, student.play(script), right)
            faults += difference is not None and difference.kind == "fault"
            return difference

        return examine


def _in_a_row(first: Script, second: Script) -> Script:
    """Both scripts as one; the steps of the second count their objects on."""
    shift = len(first.steps)

    def moved(leaf: Any) -> Any:
        return Made(leaf.step + shift) if isinstance(leaf, Made) else leaf

    steps = [
        dataclasses.replace(step, on=moved(step.on))
        for step in second.map_arguments(moved).steps
    ]
    helpers = second.helpers or first.helpers
    return Script((*first.steps, *steps), second.settings, helpers, second.gradients)


def _as_find(
    kind: AnswerKind,
    question: str,
    answer: str,
    shrunk: Shrunk,
) -> Find:
    difference = shrunk.difference
    wrong = (
        difference.text if difference.answer is None else _shortened(difference.answer)
    )
    return Find(
        kind,
        question,
        answer,
        difference.kind,
        script_title(shrunk.script),
        tuple(script_lines(shrunk.script)),
        _shortened(difference.right),
        f"{difference.text} {wrong}".strip()
        if difference.kind in ("form", "changed")
        else wrong,
    )


def _shortened(value: Any) -> str:
    text = value_text(value)
    return text if len(text) <= _LONGEST_ANSWER else f"{text[:_LONGEST_ANSWER]}…"
