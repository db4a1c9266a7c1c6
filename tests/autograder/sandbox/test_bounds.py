"""Bounds on what the trusted side spends: they hold inside torch's backward pass too."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder.sandbox import bounds
from autograder.sandbox.bounds import (
    OutOfTime,
    interruptible_gradients,
    memory_bound,
    pages_in_use,
    time_bound,
)

STEPS = 20_000
"""Many times a hundredth of a second on the way back."""


def test_a_long_way_back_ends_when_its_time_is_up() -> None:
    x = torch.ones(3, requires_grad=True)
    with interruptible_gradients():
        y = x
        for _ in range(STEPS):
            y = torch.tanh(y)
    with pytest.raises(OutOfTime), time_bound(0.01):
        y.sum().backward()


def test_gradients_are_those_without() -> None:
    x = torch.linspace(-1, 1, 5, requires_grad=True)
    with interruptible_gradients():
        y = torch.tanh(x) * x
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(gradient, torch.autograd.grad((torch.tanh(x) * x).sum(), x)[0])


OPEN = resource.RLIM_INFINITY
HARD = 1 << 40


@pytest.mark.parametrize(
    ("soft", "since", "limit"),
    [
        # 1000 pages of 4096 bytes and 3 megabytes
        (OPEN, 0, 4_096_000 + 3_145_728),
        (OPEN, 2000, 8_192_000 + 3_145_728),
        # a limit of the shell that is lower stays
        (5_000_000, 0, 5_000_000),
        (9_000_000, 0, 4_096_000 + 3_145_728),
    ],
)
def test_memory_may_grow_by_so_many_megabytes(
    monkeypatch: pytest.MonkeyPatch, soft: int, since: int, limit: int
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(resource, "getpagesize", lambda: 4096)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, HARD))
    monkeypatch.setattr(resource, "setrlimit", lambda *call: calls.append(call))
    monkeypatch.setattr(bounds, "pages_in_use", lambda: 1000)
    with memory_bound(3, since):
        assert calls == [(resource.RLIMIT_AS, (limit, HARD))]
    assert calls[1:] == [(resource.RLIMIT_AS, (soft, HARD))]
    with pytest.raises(MemoryError), memory_bound(3, since):
        raise MemoryError
    assert calls[3:] == [(resource.RLIMIT_AS, (soft, HARD))]


@pytest.mark.parametrize("error", [OSError, ValueError])
def test_where_the_kernel_tells_no_size_memory_has_no_bound(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def silent() -> int:
        raise error

    def refused(*call: object) -> None:
        raise AssertionError(call)

    monkeypatch.setattr(bounds, "pages_in_use", silent)
    monkeypatch.setattr(resource, "setrlimit", refused)
    with memory_bound(3):
        pass


def test_the_size_of_a_process_is_the_kernels_first_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "read", lambda descriptor, most: b"1234 56 7 8 0 9 0\n")
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    assert pages_in_use() == 1234
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


@pytest.mark.parametrize(
    ("seconds", "outer", "elapsed", "timers"),
    [
        (3.0, 0.0, 1.0, [3.0, 0.0]),
        (3.0, 5.0, 1.0, [3.0, 4.0]),
        (7.0, 5.0, 1.0, [5.0, 4.0]),
        # 0 would switch the timer off
        (0.0, 0.0, 1.0, [0.01, 0.0]),
        (3.0, 5.0, 6.0, [3.0, 0.01]),
    ],
)
def test_a_bound_on_time_sets_a_timer_and_sets_the_outer_one_back(
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    outer: float,
    elapsed: float,
    timers: list[float],
) -> None:
    times = iter([10.0, 10.0 + elapsed])
    timer = signal.ITIMER_PROF
    calls: list[Any] = []
    handler = signal.getsignal(signal.SIGPROF)
    monkeypatch.setattr(time, "process_time", lambda: next(times))
    monkeypatch.setattr(signal, "getitimer", lambda which: (outer, 0.0))
    monkeypatch.setattr(signal, "setitimer", lambda *call: calls.append(call))
    with time_bound(seconds):
        assert signal.getsignal(signal.SIGPROF) is not handler
    assert calls == [(timer, timers[0]), (timer, timers[1])]
    assert signal.getsignal(signal.SIGPROF) is handler


def in_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_another_thread_has_no_bound_on_time() -> None:
    finished = []

    def work() -> None:
        with time_bound(0.01):
            finished.append(True)

    in_thread(work)
    assert finished == [True]


def test_without_torch_there_are_no_gradients_to_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "loaded_torch", lambda: None)
    with torch.no_grad(), interruptible_gradients():
        assert not torch.is_grad_enabled()
    with torch.no_grad():
        with time_bound(5.0):
            torch.set_grad_enabled(True)
        assert torch.is_grad_enabled()  # nobody set it back
    monkeypatch.undo()
    with torch.no_grad(), interruptible_gradients():
        assert torch.is_grad_enabled()


class _Stopped(BaseException):
    """Passes through `except Exception`."""


def _runs_for_ever() -> None:
    while True:
        with contextlib.suppress(Exception):
            sum(range(1000))


def test_a_bound_may_end_code_that_catches_every_exception() -> None:
    with pytest.raises(_Stopped), time_bound(0.01, _Stopped):
        _runs_for_ever()


class _Slow:
    """Takes a while to be taken apart, like a graph of many tensors."""

    def __del__(self) -> None:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            sum(range(1000))


def _takes_an_object_apart_and_goes_on() -> None:
    end = time.process_time() + 5.0
    _Slow()
    while time.process_time() < end:
        sum(range(1000))


def test_a_bound_whose_time_is_up_in_a_destructor_still_ends_the_code() -> None:
    """Python drops what a destructor raises; without a second try the code would go on."""
    with pytest.raises(_Stopped), time_bound(0.01, _Stopped):
        _takes_an_object_apart_and_goes_on()


def _is_interrupted_before_gradients_are_back() -> None:
    torch.set_grad_enabled(False)
    _runs_for_ever()


def test_a_bound_leaves_gradients_as_they_were() -> None:
    """As where the end of `torch.no_grad()` is interrupted before it has done its work."""
    with pytest.raises(_Stopped), time_bound(0.01, _Stopped):
        _is_interrupted_before_gradients_are_back()
    assert torch.is_grad_enabled()
    with torch.no_grad():
        with pytest.raises(_Stopped), time_bound(0.01, _Stopped):
            _is_interrupted_before_gradients_are_back()
        assert not torch.is_grad_enabled()
