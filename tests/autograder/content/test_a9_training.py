"""What keeps a training run of a9: the name of its file, and how the file is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from answer_keys import answer_key


@pytest.fixture(scope="module")
def key() -> SimpleNamespace:
    return answer_key("a9_language_model")


def written(source: str, **names: Any) -> Callable[..., Any]:
    """The function `f` of a notebook with these other names."""
    exec(source, names)
    function: Callable[..., Any] = names["f"]
    return function


TWICE = "def f(x):\n    return 2 * x"


def test_equal_parts_have_one_fingerprint(key: SimpleNamespace) -> None:
    config = dict.fromkeys(
        ("vocab_size", "d_model", "num_layers", "num_heads", "d_ff"), 8
    )
    first, second = (key.LMConfig(**config, context_length=4) for _ in range(2))
    ids = torch.arange(5)
    commented = written("# doubled\ndef f(number):\n    # twice\n    return 2 * number")
    assert key.fingerprint(first, ids, [(1, 2)], written(TWICE)) == key.fingerprint(
        second, ids.clone(), [(1, 2)], commented
    )


@pytest.mark.parametrize(
    "other",
    [
        (4, torch.arange(3), written(TWICE)),
        (3, torch.tensor([0, 1, 3]), written(TWICE)),
        (3, torch.arange(3), written("def f(x):\n    return 3 * x")),
        (3, torch.arange(3), written("def f(x):\n    return [2 * y for y in x]")),
    ],
)
def test_another_number_text_or_function_has_another_fingerprint(
    key: SimpleNamespace, other: tuple[Any, ...]
) -> None:
    assert key.fingerprint(*other) != key.fingerprint(
        3, torch.arange(3), written(TWICE)
    )


def test_the_code_of_called_functions_counts(key: SimpleNamespace) -> None:
    source = "def f(x):\n    return [g(y) for y in x]"
    halved, doubled = (
        written(source, g=written(f"def f(x):\n    return x {s} 2")) for s in "/*"
    )
    assert key.fingerprint(halved) != key.fingerprint(doubled)


def test_a_function_that_calls_itself_has_a_fingerprint(key: SimpleNamespace) -> None:
    recursive = written("def f(x):\n    return f(x - 1) if x else 0")
    assert key.fingerprint(recursive) == key.fingerprint(recursive)


def test_a_file_is_the_old_one_or_the_new_one(
    key: SimpleNamespace, tmp_path: Path
) -> None:
    path = tmp_path / "weights.pt"
    key.save_whole({"step": 1}, path)
    with pytest.raises(TypeError, match="cannot pickle"):
        key.save_whole({"step": (number for number in [2])}, path)
    assert torch.load(path, weights_only=True) == {"step": 1}
    key.save_whole({"step": 3}, path)
    assert torch.load(path, weights_only=True) == {"step": 3}
    assert [file.name for file in tmp_path.iterdir()] == ["weights.pt"]
