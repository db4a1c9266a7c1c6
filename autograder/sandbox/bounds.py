"""Bounds on what the trusted side itself spends on what came from a worker.

An answer is small, but what a suite or a stand-in computes from it need not be: two columns of a
million numbers make a matrix of terabytes.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from autograder.basics.errors import StudentTimeout
from autograder.wire.libraries import loaded_torch


class OutOfTime(StudentTimeout):
    """The trusted side took too long over something that a worker sent."""


@contextlib.contextmanager
def memory_bound(megabytes: int, since: int = 0) -> Iterator[None]:
    """Allocations inside fail once this process has grown by so much, since now or since it had
    `since` pages.

    Does nothing where the kernel does not say.
    """
    try:
        pages = since or pages_in_use()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    except (OSError, ValueError):
        yield
        return
    most = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(
        resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(soft, most), hard)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def pages_in_use() -> int:
    """The pages of this process's address space.

    Raises:
        OSError: the kernel does not say.
    """
    # a fifth of Path.read_text: once a test
    descriptor = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(descriptor, 100).split()[0])
    finally:
        os.close(descriptor)


LEAST_SECONDS = 0.01
"""A timer of nothing would be none."""


@contextlib.contextmanager
def time_bound(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside after so much processor time of this process, between two steps of
    Python's: see `interruptible_gradients`. To wait takes nothing of it, and neither does a process
    that is stopped.

    Only the main thread gets signals: elsewhere it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTime("the time for checking what came back is used up.")

    before = signal.signal(signal.SIGPROF, stop)
    began = time.process_time()
    # of a bound around this one, whose clock goes on
    left, _ = signal.getitimer(signal.ITIMER_PROF)
    signal.setitimer(signal.ITIMER_PROF, max(min(seconds, left or seconds), LEAST_SECONDS))
    try:
        yield
    finally:
        outer = max(left - (time.process_time() - began), LEAST_SECONDS) if left else 0.0
        signal.setitimer(signal.ITIMER_PROF, outer)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def interruptible_gradients() -> Iterator[None]:
    """What is computed inside has gradients, even while a backward pass runs, and can be
    interrupted on its way back.

    torch walks back through a graph without a step of Python's: a loop of a minute would have no
    end before its own. With a hook there is one wherever a step back looks at a tensor that it
    kept.
    """
    torch = loaded_torch()
    if torch is None:
        yield
        return

    def as_it_is(tensor: Any) -> Any:
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(as_it_is, as_it_is):
        yield
