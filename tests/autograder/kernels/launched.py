"""A launch with what the strict interpreter counted of it, and the inputs of tests that launch
twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from autograder.worker.launches import watch_launches

X = torch.randn(13, 20, generator=torch.Generator().manual_seed(1))
HEADS = [
    torch.randn(1, 2, 70, 16, generator=torch.Generator().manual_seed(n))
    for n in range(3)
]


def launched(
    function: Callable[..., torch.Tensor], arguments: tuple[Any, ...]
) -> tuple[torch.Tensor, dict[str, Any]]:
    with watch_launches(function, arguments, {}) as record:
        return function(*arguments), record.figures()
