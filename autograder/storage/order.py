"""What a command asks of the courier: one order for each folder, as JSON on its first line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """A folder to carry.

    Attributes:
        copy: where it lies on this disk.
        most: bytes of a file; a larger one is not fetched.
        written: whether the command writes into it.
    """

    address: str
    copy: str
    most: int
    written: bool


def written_down(orders: Sequence[Order]) -> str:
    """Orders as one line."""
    return json.dumps([asdict(order) for order in orders])


def read_orders(line: str) -> list[Order]:
    """What `written_down` made."""
    return [Order(**one) for one in json.loads(line)]
