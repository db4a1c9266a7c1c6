"""What numbers and forms say of wrong answers, in a sentence, where nothing else is known of them.

The sentences hold whatever made the answers wrong: they compare each answer with the right one to
the same call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from autograder.suite.answer_predicates import Numbers, equal, to_array
from autograder.suite.kinds import describe_other_kind
from autograder.suite.sight import Sight, Unseen
from autograder.wire.trees import leaves

_MOST_NAMED_PARTS = 4


def describe_forms(sights: Sequence[Sight]) -> str:
    """How all wrong answers are of another kind than the right ones; "" where one is of the right
    kind.
    """
    if any(_is_of_right_kind(sight.answer, sight.right) for sight in sights):
        return ""
    differences = {describe_other_kind(sight.answer, sight.right) for sight in sights}
    if len(differences) == 1:
        difference = differences.pop()
        if difference and not difference.startswith("["):
            return f"In the calls that are wrong, your answer {difference}"
    return "In the calls that are wrong, your answer is of another kind than the right one."


def _is_of_right_kind(answer: Any, right: Any) -> bool:
    """Whether an answer is of the right kind, whatever its sizes: those of a counterexample are
    free, and a failed comparison names them.
    """
    if isinstance(right, list):
        return isinstance(answer, (list, tuple))
    if isinstance(right, tuple):
        is_tuple = isinstance(answer, (list, tuple)) and len(answer) == len(right)
        return is_tuple and all(map(_is_of_right_kind, answer, right))
    if isinstance(right, dict):
        has_keys = isinstance(answer, dict) and answer.keys() == right.keys()
        return has_keys and all(
            _is_of_right_kind(answer[name], right[name]) for name in right
        )
    try:
        return to_array(answer).ndim == to_array(right).ndim
    except Unseen:
        return type(answer) is type(right)


def describe_numbers(sights: Sequence[Sight]) -> str:
    """Which parts, or how many numbers, of the wrong answers are right; "" where that says nothing.
    Of whole numbers, and of yes and no, it is told how many are wrong: many are right by chance.

    Args:
        sights: of tests that compare numbers with the right ones.
    """
    if not sights:
        return ""
    if all(equal(sight.answer, sight.right) for sight in sights):
        return "All numbers in your answers are right: what is wrong is something else."
    if any(isinstance(sight.right, (tuple, dict)) for sight in sights):
        # what belongs together is not counted together: many parts come back as they went in
        return _parts_in_words(sights)
    pairs = [
        pair
        for sight in sights
        for pair in _arrays_side_by_side(sight.answer, sight.right)
    ]
    if not pairs or any(answer.shape != right.shape for answer, right in pairs):
        return ""
    if not any(_count_right(answer, right) for answer, right in pairs):
        return "None of the numbers in your wrong answers is right."
    floats = [(answer, right) for answer, right in pairs if right.dtype.kind == "f"]
    if not floats:
        size = sum(right.size for _, right in pairs)
        wrong = size - sum(_count_right(answer, right) for answer, right in pairs)
        if not wrong:
            return ""
        return f"{wrong} of the {size} entries in your wrong answers are wrong."
    if len(floats) < len(pairs):
        return ""
    # many wrong answers have zeros where zeros are right
    telling = [(answer[right != 0], right[right != 0]) for answer, right in floats]
    counted = sum(right.size for _, right in telling)
    right_numbers = sum(_count_right(answer, right) for answer, right in telling)
    if not 0 < right_numbers < counted:
        return ""
    return f"{right_numbers} of the {counted} numbers in your wrong answers are right."


def _parts_in_words(sights: Sequence[Sight]) -> str:
    """Which parts of an answer in parts are right in all wrong answers, and which are in none; ""
    where the parts are others, or each is right in some.
    """
    verdicts: dict[str, set[bool]] = {}
    for sight in sights:
        parts = _parts(sight.answer, sight.right)
        if len(parts) < 2 or (verdicts and parts.keys() != verdicts.keys()):
            return ""
        for name, is_right in parts.items():
            verdicts.setdefault(name, set()).add(is_right)
    right = [name for name, seen in verdicts.items() if seen == {True}]
    wrong = [name for name, seen in verdicts.items() if seen == {False}]
    if not wrong:
        return ""
    if len(wrong) == len(verdicts):
        return "In the calls that are wrong, no part of your answer is right."
    if len(right) + len(wrong) < len(verdicts):
        is_or_are = "is" if len(wrong) == 1 else "are"
        never_right = f"{_listed(wrong)} of your answer {is_or_are} never right"
        return f"In the calls that are wrong, {never_right}."
    is_or_are = "is" if len(right) == 1 else "are"
    return (
        f"In the calls that are wrong, {_listed(right)} of your answer {is_or_are} right, and "
        f"{_listed(wrong)} not."
    )


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMED_PARTS:
        return f"{len(names)} parts"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _parts(answer: Any, right: Any) -> dict[str, bool]:
    """By part of a tuple or a dict, whether it is right; empty where the parts differ."""
    if (
        isinstance(right, dict)
        and isinstance(answer, dict)
        and answer.keys() == right.keys()
    ):
        return {f"`[{key!r}]`": equal(answer[key], right[key]) for key in right}
    is_tuple = isinstance(right, tuple) and isinstance(answer, (tuple, list))
    if is_tuple and len(answer) == len(right):
        pairs = enumerate(zip(answer, right, strict=True))
        return {f"`[{place}]`": equal(*pair) for place, pair in pairs}
    return {}


def _arrays_side_by_side(answer: Any, right: Any) -> Iterator[tuple[Numbers, Numbers]]:
    """The numbers of an answer and of the right one, part by part; none where the parts differ."""
    answer_leaves, right_leaves = leaves(answer), leaves(right)
    if len(answer_leaves) != len(right_leaves):
        return
    for pair in zip(answer_leaves, right_leaves, strict=True):
        try:
            yield to_array(pair[0]), to_array(pair[1])
        except Unseen:
            continue


def _count_right(answer: Numbers, right: Numbers) -> int:
    return int(np.isclose(answer, right, rtol=1e-4, atol=1e-6, equal_nan=True).sum())
