"""Plans in which scripts the fault of a failed question is looked for, and judged by which rules.

Three kinds, in this order: calls of failed tests, the scripts that `examples.py` of the suite
writes for students, and scripts that the question's contracts allow. What the answer key says to
the last two, and how long it takes, is computed once in a process.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from autograder.basics.errors import BadSuite
from autograder.course import Limits
from autograder.course.fingerprint import CONTRACTS_FILE, EXAMPLES_FILE
from autograder.diagnosis.bounded_counter import BoundedCounter, PlayTooLong
from autograder.diagnosis.script_judge import ScriptJudge
from autograder.diagnosis.script_play import KeyPlayer
from autograder.diagnosis.suite_inputs import script_fingerprints
from autograder.sandbox.bounds import OutOfTime, memory_bound, time_bound
from autograder.suite.calls import Call, size_in_bytes
from autograder.suite.contracts import Contract, deal_scripts, load_contracts
from autograder.suite.script_steps import StepAnswer
from autograder.suite.script_text import script_lines
from autograder.suite.scripts import Script, ScriptStep
from autograder.wire.cost_counter import CostCounter
from autograder.wire.values import Encoder

MOST_CANDIDATES = 60
"""Calls that are tried to make one call smaller."""
_MOST_OPERATIONS = 4000
"""Torch operations of the answer key for all candidates: fewer candidates where a call is long."""
_FEWEST_CANDIDATES = 8
_MOST_FLOPS = 20_000_000
_LARGEST_CALL = 1 << 16
"""Bytes of the arguments of a call that is made smaller."""
_LARGE_CALL = 1 << 13
"""Bytes of the arguments of a call that rarely becomes small enough for a page."""
_FAILED_CALLS = 2
"""Calls of failed tests that are tried."""
_DEALT_SCRIPTS = 24
"""Scripts that are drawn from the contracts of a question, and from its forms in `examples.py`."""
_DRAWN_SCRIPTS = 12
"""Scripts of a question's contracts that are tried: the shortest of those dealt, since a model
cannot be made small within the candidates that there are.
"""
_MOST_LONG = 2
"""Scripts of a contract that may take the answer key too long: then no further one is tried."""
_STEPS_BESIDE_WRITTEN = 100
"""Steps of these scripts where `examples.py` has others for the question."""
_LONGEST_HELPERS = 600
"""Characters of a contract's helpers: longer ones would be most of what the student reads."""
_MOST_KEPT = 200
"""Plans of calls of failed tests that are kept, the answer key's answers among them."""
Source = Literal["written", "drawn"]
"""Where a script comes from: `examples.py` of the suite, or a contract."""
_DATA = (bool, int, float, str, bytes, type(None), torch.dtype, np.ndarray)


@dataclass(frozen=True, slots=True)
class ScriptRules:
    """The answer key, and the contracts that say which calls are allowed.

    Attributes:
        contracts: none where nobody says.
    """

    player: KeyPlayer
    contracts: Sequence[Contract]

    @property
    def tolerance(self) -> Mapping[str, float]:
        """What the first contract allows beyond rounding."""
        return self.contracts[0].tolerance if self.contracts else {}

    def judge(self, tolerance: Mapping[str, float]) -> ScriptJudge:
        """A judge that moves the answer key's arguments as rarely as it may."""
        first = self.contracts[0] if self.contracts else None
        # nobody says which of several equal numbers is chosen: then any may be
        is_free = first is None or first.equals == "free"
        right_if = first.right_if if first is not None else None
        return ScriptJudge(
            self.player,
            tolerance,
            is_free,
            right_if,
            may_narrow=first is None or first.dtypes != ("float64",),
            tries=4 if is_free else 0,
        )

    def allows(self, script: Script) -> bool:
        """Whether a contract allows the script."""
        if not self.contracts:
            return True
        try:
            return any(contract.allows(script) for contract in self.contracts)
        except (
            Exception
        ):  # the suite's own function, on arguments that it does not expect
            return False


@dataclass(frozen=True, slots=True)
class PlannedScript:
    """A script in which a fault is looked for.

    Attributes:
        right_answers: the answer key's answers.
        fingerprints: those of its calls.
        most_candidates: how many scripts are tried to make it smaller; 1 for the script alone.
        operations: the answer key's torch operations for it.
    """

    script: Script
    rules: ScriptRules
    right_answers: Sequence[StepAnswer]
    fingerprints: tuple[str, ...]
    most_candidates: int
    operations: int


class ScriptPlanner:
    """Plans scripts for the questions of one suite.

    Args:
        suite: the suite's folder.
        reference: the answer key's names.
    """

    def __init__(
        self,
        suite: Path,
        reference: Mapping[str, Any],
        limits: Limits,
    ) -> None:
        self._contracts = _load_sound_contracts(suite, CONTRACTS_FILE)
        self._forms = _load_sound_contracts(suite, EXAMPLES_FILE)
        self._reference = reference
        self._limits = limits
        self._kept: dict[tuple[str, Source], Iterator[PlannedScript]] = {}
        self._too_long: Counter[int] = Counter()
        self._plans: dict[tuple[str, bytes], PlannedScript | None] = {}

    def contracts_of(self, question: str) -> list[Contract]:
        """The contracts of a question, as the suite's file has them in order."""
        return _about(question, self._contracts)

    def scripts(
        self,
        question: str,
        calls: Sequence[Call],
    ) -> Iterator[PlannedScript]:
        """The scripts to try for a question, without those on which the answer key works too long
        or which it refuses.

        Args:
            calls: calls of failed tests.
        """
        of_tests = filter(None, map(_as_script, calls))
        failed = list(itertools.islice(of_tests, _FAILED_CALLS))
        has_written = bool(_about(question, self._forms))
        # where the suite has calls of its own to show, a model's numbers come after them
        is_late = [has_written and _is_large(script) for script in failed]
        early = [
            script for script, late in zip(failed, is_late, strict=True) if not late
        ]
        yield from self._plan_failed(question, early)
        yield from self._planned_once(question, "written")
        yield from self._plan_failed(question, itertools.compress(failed, is_late))
        yield from self._planned_once(question, "drawn")

    def _plan_failed(
        self,
        question: str,
        scripts: Iterable[Script],
    ) -> Iterator[PlannedScript]:
        """Plans calls of failed tests."""
        contracts = self.contracts_of(question)
        for script in scripts:
            functions = {step.name for step in script.steps}
            called = [
                contract for contract in contracts if contract.function in functions
            ]
            planned = self._plan_failed_once(question, script, called)
            if planned is not None:
                yield planned

    def _plan_failed_once(
        self, question: str, script: Script, contracts: Sequence[Contract]
    ) -> PlannedScript | None:
        """The plan of a test's call: kept, since many submissions fail the same call. None where
        the answer key refuses it, or works on it too long.
        """
        place = question, _content(script)
        if place in self._plans:
            plan = self._plans[place]
        else:
            try:
                plan = self._plan(script, contracts)
            except PlayTooLong:
                plan = None
            if len(self._plans) == _MOST_KEPT:
                self._plans.clear()
            self._plans[place] = plan
        return plan and dataclasses.replace(plan, script=script)

    def _planned_once(self, question: str, source: Source) -> Iterator[PlannedScript]:
        """Scripts that are the same for every submission: each is planned when it is first needed,
        and kept.
        """
        place = question, source
        if place not in self._kept:
            deal = self._deal_written if source == "written" else self._deal_drawn
            self._kept[place] = self._plan_each(deal(question))
        self._kept[place], scripts = itertools.tee(self._kept[place])
        return scripts

    def _deal_written(self, question: str) -> list[tuple[Contract, Script]]:
        """The scripts that `examples.py` of the suite writes for students."""
        return _dealt(_about(question, self._forms))

    def _deal_drawn(self, question: str) -> list[tuple[Contract, Script]]:
        """Scripts that the question's contracts allow."""
        drawn = [
            (contract, script)
            for contract, script in _dealt(self.contracts_of(question))
            if len(script.helpers) <= _LONGEST_HELPERS
        ]
        drawn.sort(key=lambda pair: _length(pair[1]))
        drawn = drawn[:_DRAWN_SCRIPTS]
        if not _about(question, self._forms):
            return drawn
        steps = itertools.accumulate(len(script.steps) for _, script in drawn)
        return [
            pair
            for pair, count in zip(drawn, steps, strict=True)
            if count <= _STEPS_BESIDE_WRITTEN
        ]

    def _plan_each(
        self, dealt: Iterable[tuple[Contract, Script]]
    ) -> Iterator[PlannedScript]:
        """Plans scripts; none more of a contract whose scripts take the answer key too long."""
        for contract, script in dealt:
            if self._too_long[id(contract)] >= _MOST_LONG:
                continue
            try:
                planned = self._plan(script, [contract])
            except PlayTooLong:
                self._too_long[id(contract)] += 1
                continue
            if planned is not None:
                yield planned

    def _plan(
        self,
        script: Script,
        contracts: Sequence[Contract],
    ) -> PlannedScript | None:
        """The script with the answer key's answers; None where it refuses a call, or no contract
        allows it.

        Raises:
            PlayTooLong: the answers take too long.
        """
        names = dict(self._reference)
        for contract in contracts:
            if contract.definition is not None:
                names[contract.function] = contract.definition
        rules = ScriptRules(KeyPlayer(names), contracts)
        if not rules.allows(script):
            return None
        limits = self._limits
        counter = BoundedCounter(_MOST_OPERATIONS)
        try:
            bounds = memory_bound(limits.memory_mb), time_bound(limits.call_seconds)
            with bounds[0], bounds[1], counter:
                answers = rules.player.play(script)
            is_long = counter.operations > _MOST_OPERATIONS
        except OutOfTime:
            is_long = True
        if is_long:
            raise PlayTooLong
        if not rules.judge({}).is_sound(script, answers):
            return None
        fingerprints = tuple(script_fingerprints(script))
        most = _most_candidates(counter)
        return PlannedScript(
            script, rules, answers, fingerprints, most, counter.operations
        )


def _most_candidates(counter: CostCounter) -> int:
    """How many candidates are tried: fewer for long calls; of the longest the script alone."""
    share: int = _MOST_OPERATIONS // max(1, counter.operations)
    if share < 4 or counter.flops > _MOST_FLOPS:
        return 1
    return max(_FEWEST_CANDIDATES, min(MOST_CANDIDATES, share))


def _load_sound_contracts(suite: Path, file: str) -> list[Contract]:
    """The contracts of a file; none where the file does not run, which `verify` tells."""
    try:
        return load_contracts(suite, file)
    except BadSuite:
        return []


def _about(question: str, contracts: Sequence[Contract]) -> list[Contract]:
    return [contract for contract in contracts if contract.question == question]


def _dealt(contracts: Sequence[Contract]) -> list[tuple[Contract, Script]]:
    """Different scripts of some contracts in turn, of each contract the short ones first."""
    if not contracts:
        return []
    dealt = deal_scripts(contracts, _DEALT_SCRIPTS, seed=0)
    by_contract: dict[int, dict[tuple[str, ...], tuple[Contract, Script]]] = {}
    for contract, script in sorted(dealt, key=lambda pair: _length(pair[1])):
        scripts = by_contract.setdefault(id(contract), {})
        scripts.setdefault(tuple(script_lines(script)), (contract, script))
    rounds = itertools.zip_longest(
        *[scripts.values() for scripts in by_contract.values()]
    )
    return [pair for pairs in rounds for pair in pairs if pair is not None]


def _as_script(call: Call) -> Script | None:
    """The call as a script; None where it cannot be made again: a method, an object, much data."""
    arguments = [*call.arguments, *call.keywords.values()]
    if "." in call.name or size_in_bytes(arguments) > _LARGEST_CALL:
        return None
    script = Script((ScriptStep(call.name, call.arguments, call.keywords),))
    if not all(isinstance(leaf, (*_DATA, torch.Tensor)) for leaf in script.leaves()):
        return None
    return script.map_arguments(_detached)


def _content(script: Script) -> bytes:
    """A digest that is the same for the same calls with the same data alone."""
    encoder = Encoder(lambda _: None, keep_strides=True)
    calls = [
        [step.name, list(step.arguments), dict(step.keywords)] for step in script.steps
    ]
    text = json.dumps(encoder.encode(calls))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for block in encoder.tensors.values():
        digest.update(f"{block.dtype}{block.shape}".encode())
        digest.update(block.data)
    return digest.digest()


def _is_large(script: Script) -> bool:
    return size_in_bytes(script.leaves()) > _LARGE_CALL


def _length(script: Script) -> int:
    """How long the script's text is."""
    return sum(map(len, script_lines(script)))


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf
