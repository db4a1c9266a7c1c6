"""The leaderboard of a9: bits a byte, on models whose bits are known."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.leaderboard import Entrant, NotRanked

SUITE = Path(__file__).resolve().parents[3] / "tests" / "hidden" / "a9_language_model"


@pytest.fixture(scope="module")
def bits() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "leaderboard_of_a9", SUITE / "leaderboard.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Player:
    """A submission in this process."""

    def __init__(self, model: Callable[[Tensor], Tensor], flops: int = 0) -> None:
        self._model, self._flops = model, flops

    def bpe_encode(self, text: Tensor, merges: Any) -> Tensor:
        return text.long()

    def language_model(self, ids: Tensor, params: Any, sizes: Any) -> Tensor:
        return self._model(ids)

    def counted(self, name: str, *arguments: Any) -> tuple[Tensor, Any]:
        return getattr(self, name)(*arguments), SimpleNamespace(flops=self._flops)


def entrant(
    model: Callable[[Tensor], Tensor], again: Any = None, flops: int = 0
) -> Entrant:
    tensors = {"params": {}, "merges": torch.zeros(0, 2, dtype=torch.long)}
    weights: Any = SimpleNamespace(
        tensors=tensors, settings=SimpleNamespace(context_length=100)
    )
    player: Any = Player(model, flops)
    return Entrant(player, None, lambda: player if again is None else again, 5, weights)


def uniform(ids: Tensor) -> Tensor:
    return torch.zeros(*ids.shape, 256)


def peeking(ids: Tensor) -> Tensor:
    logits = uniform(ids)
    logits[:, :-1].scatter_(2, ids[:, 1:, None], 50.0)
    return logits


def test_who_knows_nothing_needs_eight_bits_a_byte(bits: ModuleType) -> None:
    assert bits.held_out_bits(entrant(uniform)) == pytest.approx(8)


def test_who_knows_that_the_text_is_ascii_needs_seven(bits: ModuleType) -> None:
    def ascii_alone(ids: Tensor) -> Tensor:
        return torch.cat(
            [torch.zeros(*ids.shape, 128), torch.full((*ids.shape, 128), -1e4)], -1
        )

    assert bits.held_out_bits(entrant(ascii_alone)) == pytest.approx(math.log2(128))


def test_a_look_at_later_tokens_is_found(bits: ModuleType) -> None:
    with pytest.raises(NotRanked, match="depends on later tokens"):
        bits.held_out_bits(entrant(peeking))


def test_operations_are_bounded(bits: ModuleType) -> None:
    with pytest.raises(NotRanked, match="4,000,000 are allowed"):
        bits.held_out_bits(entrant(uniform, flops=10**12))


def test_tokens_stand_for_some_bytes_and_no_more(bits: ModuleType) -> None:
    doubling = [(97, 97), *[(255 + n, 255 + n) for n in range(1, 40)]]
    with pytest.raises(NotRanked, match="more than 256 bytes"):
        bits.token_lengths(doubling)
    with pytest.raises(NotRanked, match="not there yet"):
        bits.token_lengths([(97, 256)])
    assert bits.token_lengths([(97, 98), (256, 99)])[256:] == [2, 3]


def test_each_token_but_the_first_is_predicted_once(bits: ModuleType) -> None:
    rows = list(bits.windows(torch.arange(26), 3))
    predicted = [token for batch in rows for row in batch for token in row[1:].tolist()]
    assert predicted == list(range(1, 26))
    assert rows[-1].shape == (1, 2)


def test_no_line_of_the_text_stands_in_what_students_get() -> None:
    given = Path(
        SUITE.parents[2] / "source/a9_language_model/data/shakespeare.txt"
    ).read_text()
    lines = (SUITE / "held_out.txt").read_text(encoding="ascii").splitlines()
    assert len(lines) > 500
    assert [line for line in lines if len(line) > 20 and line in given] == []
