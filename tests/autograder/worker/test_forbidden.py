"""A forbidden function is stopped by whatever name it is called, and told by that name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from autograder.worker.forbidden import Ban, ForbiddenCall


@pytest.fixture
def ban() -> Iterator[Ban]:
    ban = Ban(["torch.nn.functional.unfold", "torch.softmax"])
    yield ban
    ban.lift()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: torch.nn.functional.unfold(x, 2), "torch.nn.functional.unfold"),
        (
            lambda x: x.unfold(2, 2, 2),
            "Tensor.unfold",
        ),  # another function of the same name
        (lambda x: torch.softmax(x, -1), "torch.softmax"),
        (lambda x: torch.nn.functional.softmax(x, -1), "torch.softmax"),
        (lambda x: x.softmax(-1), "Tensor.softmax"),
    ],
)
def test_the_function_is_named_as_it_was_called(
    ban: Ban, call: Callable[[torch.Tensor], torch.Tensor], name: str
) -> None:
    with (
        pytest.raises(ForbiddenCall, match=f"^{name} may not be called here"),
        ban.watching(),
    ):
        call(torch.zeros(1, 1, 4, 4))
    assert ban.called == name
