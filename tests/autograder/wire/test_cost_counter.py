"""What a call costs, counted by hand."""

from __future__ import annotations

import torch

from autograder.wire.cost_counter import CostCounter


def test_what_is_alive_at_once_is_counted_and_views_are_not() -> None:
    with CostCounter() as counter:
        a = torch.ones(10)  # 10 alive
        b = a * 2  # 20
        del a
        c = b + 1  # 20: one has gone
        del b, c
        d = torch.ones(15)  # 15: both have
        e = torch.cat([d[:5], d])  # a view, and 15 + 20 alive
        e += 1  # nothing new
        e[:20:2].mul_(2)
    assert counter.figures() == [9, 0, 20, 35, 10 + 10 + 10 + 15 + 20]


def test_an_expanded_tensor_counts_what_it_holds() -> None:
    with CostCounter() as counter:
        # 3 + 100 + 6 alive, and what the product copies
        torch.ones(3, 1).expand(3, 50) @ torch.ones(50, 2)
    _, flops, largest, peak, _ = counter.figures()
    assert (flops, largest) == (2 * 3 * 50 * 2, 100)
    assert peak >= 3 + 100 + 6


def test_what_was_done_elsewhere_comes_on_top_of_what_is_alive() -> None:
    counter = CostCounter()
    with counter:
        kept = torch.ones(10)
    counter.add([2, 7, 30, 40, 50])
    assert counter.figures() == [3, 7, 30, 10 + 40, 60]
    assert kept.sum() == 10
