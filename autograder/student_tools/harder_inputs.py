"""Harder inputs: calls that a question allows, drawn at random, and claims that hold of each.

`build` makes a companion of this module, of a suite's contracts and of `harder.py` beside the
source notebook; `harder(attend)` in a notebook loads it. Nothing in it knows an answer: a claim
compares answers of the student's own function with each other, or names what holds of all.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from autograder.student_tools.answer_differences import CheckDifference
from autograder.student_tools.harder_claims import GENERAL, answers_every_call
from autograder.student_tools.harder_draws import (
    AllowedCalls,
    ChosenNumbers,
    DrawnCalls,
    SmallerCalls,
)
from autograder.student_tools.harder_hypothesis import shrink_with_hypothesis
from autograder.student_tools.harder_trial import (
    SHARE,
    Claim,
    ClaimBroken,
    HarderTrial,
    claim_same,
)
from autograder.suite.contract_calls import FULL, Form
from autograder.suite.contract_draws import CallRejected
from autograder.suite.script_text import script_lines, script_title
from autograder.suite.scripts import map_leaves

MOST_CALLS = 60
_MOST_REJECTED = 600
_SHRINKING = 0.5
"""The share of the time that is kept for making a failing call smaller."""

Property = Callable[..., Any]
"""Takes the student's function and the arguments of a call, and the names of the notebook if it has
a parameter `notebook`. Returns whether something holds, or what was answered and what it should be;
None where the call is no case of it.
"""


@dataclass(eq=False, repr=False)
class OwnClaim:
    """A claim about one question, by its author.

    Attributes:
        sentence: what holds.
        share: the difference that is no mistake, as a share of the largest number.
    """

    sentence: str
    property: Property
    share: float

    def __call__(self, trial: HarderTrial) -> None:
        step = trial.first_call()
        if step is None:
            return

        def fresh(leaf: Any) -> Any:
            wide = trial.widen(leaf)
            return wide.clone() if isinstance(wide, torch.Tensor) else wide

        arguments = map_leaves(fresh, list(step.arguments))
        keywords = map_leaves(fresh, dict(step.keywords))
        if "notebook" in inspect.signature(self.property).parameters:
            keywords["notebook"] = trial.names
        outcome = self.property(trial.find_function(step), *arguments, **keywords)
        if outcome is None or outcome is True:
            return
        if isinstance(outcome, tuple):
            actual, expected = outcome
            sentence = "It does not hold here."
            share = max(self.share, trial.share)
            claim_same(sentence, actual, expected, share, trial.floor)
        elif not bool(outcome):
            raise ClaimBroken("It does not hold here.")


@dataclass(eq=False, repr=False)
class HarderQuestion:
    """What harder inputs know of one question.

    Attributes:
        allowed: the calls that the question allows, in one form or several.
        claims: by author; general ones are not among them.
        except_for: words of general claims that do not hold here.
        refuses: arguments and axes that must fit: "w_x.0".
        is_kernel: whether the question's function launches kernels.
    """

    allowed: list[AllowedCalls] = field(default_factory=list)
    claims: list[OwnClaim] = field(default_factory=list)
    except_for: Sequence[str] = ()
    refuses: Sequence[str] = ()
    is_kernel: bool = False

    def all_claims(self) -> list[Claim]:
        """General claims and the author's, which come after the first general one: without an
        answer none makes sense.
        """
        general = [
            claim for word, claim in GENERAL.items() if word not in self.except_for
        ]
        return [*general[:1], *self.claims, *general[1:]]


def _sentence(claim: Claim) -> str:
    """What a claim says."""
    if isinstance(claim, OwnClaim):
        return claim.sentence
    return (claim.__doc__ or "").strip()


QUESTIONS: dict[str, HarderQuestion] = {}


def contract(
    question: str,
    form: Form,
    *,
    function: str = "",
    sizes: Mapping[str, tuple[int, int]] | None = None,
    dtypes: Sequence[str] = FULL,
    gradients: bool = False,
    equals: str = "ordered",
    allowed_if: Callable[..., bool] | None = None,
) -> None:
    """Register calls that a question allows, as `contracts.py` of the suite does."""
    allowed = AllowedCalls(
        question,
        function or question,
        form,
        sizes or {},
        dtypes,
        gradients,
        equals == "free",
        allowed_if,
    )
    QUESTIONS.setdefault(question, HarderQuestion()).allowed.append(allowed)


def about(
    question: str,
    *,
    refuses: str = "",
    except_for: str = "",
    is_kernel: bool = False,
) -> None:
    """Say of a question what general claims cannot know.

    Args:
        refuses: arguments and axes, "w_x.0 w_h.1": one more along this axis, and the call must
            raise ValueError. An entry of a dict is "params.w_y.0".
        except_for: words of `GENERAL` for claims that do not hold. Without "answers" a call may
            be refused with ValueError: then nothing else is claimed of it.
        is_kernel: the function launches kernels of Triton. They have no float64: claims get
            float32, and differences may be ten times as large.
    """
    entry = QUESTIONS.setdefault(question, HarderQuestion())
    entry.is_kernel = is_kernel
    entry.refuses = refuses.split()
    entry.except_for = except_for.split()


def holds(
    question: str,
    sentence: str,
    share: float = SHARE,
) -> Callable[[Property], Property]:
    """Register a claim about a question: a function of the answer's function and a call's
    arguments, whose floats are in float64 (float32 for a kernel).
    """

    def register(check: Property) -> Property:
        entry = QUESTIONS.setdefault(question, HarderQuestion())
        entry.claims.append(
            OwnClaim(
                sentence,
                check,
                share,
            )
        )
        return check

    return register


def refused(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> bool:
    """Whether a call raises ValueError."""
    try:
        function(*arguments, **keywords)
    except ValueError:
        return True
    return False


# the search


@dataclass(eq=False, repr=False)
class HarderFailure:
    """A call of which a claim does not hold.

    Attributes:
        sentence: what should hold.
        problem: in what it fails.
        title: the call in one line, with shapes.
        lines: the call as Python.
    """

    sentence: str
    problem: str
    title: str
    lines: Sequence[str]
    difference: CheckDifference | None = None
    error: Exception | None = None


@dataclass(eq=False, repr=False)
class HarderResult:
    """What became of the harder inputs of a question.

    Attributes:
        calls: how many were tried.
        sentences: what was claimed of each.
        failure: the smallest call that fails; None where all is well.
    """

    calls: int
    sentences: Sequence[str]
    failure: HarderFailure | None = None


@dataclass(eq=False, repr=False)
class _BrokenClaim:
    """A claim that does not hold of some calls, and what it raised."""

    claim: Claim
    problem: Exception


class HarderSearch:
    """Searches the calls that a question allows for one of which a claim does not hold.

    Args:
        names: the names of the notebook.
        seed: the same calls for the same seed.
        seconds: for all; a part of them for making a failing call smaller.
    """

    def __init__(
        self,
        question: str,
        names: Mapping[str, Any],
        seed: int,
        seconds: float = 2.0,
        most_calls: int = MOST_CALLS,
    ) -> None:
        self._entry = QUESTIONS[question]
        self._claims = self._entry.all_claims()
        self._names = names
        self._seed = seed
        self._end = time.monotonic() + seconds
        self._seconds = seconds
        self._most_calls = most_calls
        self.calls = 0

    def run(self, *, makes_smaller: bool = True) -> HarderResult:
        """Draw calls until one fails, or calls or time are used up."""
        sentences = [_sentence(claim) for claim in self._claims]
        for drawn, numbers in self._draw():
            self.calls += 1
            broken = self._first_broken(drawn)
            if broken is not None:
                if makes_smaller:
                    drawn = self._smallest(
                        drawn,
                        numbers,
                        broken,
                    )
                return HarderResult(
                    self.calls,
                    sentences,
                    self._describe(drawn, broken),
                )
            if self._is_over(self._seconds * _SHRINKING):
                break
        return HarderResult(self.calls, sentences)

    def _is_over(self, kept: float = 0.0) -> bool:
        return time.monotonic() > self._end - kept

    def _draw(self) -> Iterator[tuple[DrawnCalls, list[int]]]:
        forms = self._entry.allowed
        count = 0
        for number in range(_MOST_REJECTED):
            allowed = forms[number % len(forms)]
            source = ChosenNumbers(further=random.Random(f"{self._seed} {number}"))
            with contextlib.suppress(CallRejected):
                yield allowed.draw(source), source.made
                count += 1
            if count >= self._most_calls:
                return

    def _first_broken(self, drawn: DrawnCalls) -> _BrokenClaim | None:
        """The first claim that does not hold."""
        trial = self._trial(drawn)
        if "answers" in self._entry.except_for and _is_refused(trial):
            return None
        for claim in self._claims:
            problem = _problem(claim, trial)
            if problem is not None:
                return _BrokenClaim(claim, problem)
        return None

    def _trial(self, drawn: DrawnCalls) -> HarderTrial:
        return HarderTrial(
            drawn,
            self._names,
            self._entry.refuses,
            self._entry.is_kernel,
        )

    def _smallest(
        self,
        drawn: DrawnCalls,
        numbers: Sequence[int],
        broken: _BrokenClaim,
    ) -> DrawnCalls:
        """The smallest calls of which the claim fails in the same way."""

        def fails(smaller: DrawnCalls) -> bool:
            problem = _problem(broken.claim, self._trial(smaller))
            return type(problem) is type(broken.problem)

        is_half_over = functools.partial(self._is_over, self._seconds * _SHRINKING / 2)
        if smaller := shrink_with_hypothesis(
            drawn,
            self._seed,
            fails,
            is_half_over,
        ):
            drawn, numbers = smaller
        return SmallerCalls(
            drawn,
            numbers,
            fails,
            lambda: not self._is_over(),
        ).find()

    def _describe(
        self,
        drawn: DrawnCalls,
        broken: _BrokenClaim,
    ) -> HarderFailure:
        sentence = _sentence(broken.claim)
        # an answer that remembers earlier calls may be right this time
        problem = _problem(broken.claim, self._trial(drawn)) or broken.problem
        title, lines = script_title(drawn.script), script_lines(drawn.script)
        if isinstance(problem, ClaimBroken):
            return HarderFailure(
                sentence,
                str(problem),
                title,
                lines,
                problem.difference,
            )
        text = f"Your code raised {type(problem).__name__}: {problem}"
        return HarderFailure(
            sentence,
            text,
            title,
            lines,
            error=problem,
        )


def _is_refused(trial: HarderTrial) -> bool:
    """Whether a call is answered with ValueError."""
    return isinstance(_problem(answers_every_call, trial), ValueError)


def _problem(claim: Claim, trial: HarderTrial) -> Exception | None:
    """What a claim raises; None where it holds."""
    try:
        with torch.enable_grad():
            claim(trial)
    except Exception as error:  # a student's code may raise anything
        return error
    return None
