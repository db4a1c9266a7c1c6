"""Bounds on the memory and time that the trusted side spends on a worker's answers.

An answer is small, but a suite or a stand-in can compute something large from it: two columns of a
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
    """The trusted side took too long over a worker's answer."""


@contextlib.contextmanager
def memory_bound(megabytes: int, since: int = 0) -> Iterator[None]:
    """Allocations inside fail once this process has grown by so many megabytes.

    Does nothing where the kernel does not tell the size of the process.

    Args:
        since: the size in pages from which growth counts; 0 for the size now.
    """
    try:
        pages = since or pages_in_use()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    except (OSError, ValueError):
        yield
        return
    limit = pages * resource.getpagesize() + (megabytes << 20)
    if soft != resource.RLIM_INFINITY:
        limit = min(soft, limit)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def pages_in_use() -> int:
    """The pages of this process's address space.

    Raises:
        OSError: the kernel does not say.
    """
    # takes a fifth of the time of Path.read_text, and runs once a test
    descriptor = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(descriptor, 100).split()[0])
    finally:
        os.close(descriptor)


LEAST_SECONDS = 0.01
"""A timer of 0 seconds would be switched off."""


@contextlib.contextmanager
def time_bound(
    seconds: float, error: type[BaseException] = OutOfTime
) -> Iterator[None]:
    """Raise an error inside after so many seconds of this process's processor time.

    Waiting and being stopped take no processor time. The exception is raised between two steps of
    Python: see `interruptible_gradients`. Only the main thread gets signals: in other threads the
    bound does nothing.

    The end of a `torch.no_grad()` is Python too, and may be what is interrupted: afterwards torch
    computes gradients as before, or every later test of this process would be without.

    Args:
        error: another one where code inside catches every Exception.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if _is_in_destructor(frame):
            # Python drops an exception there: raise it a moment later
            signal.setitimer(signal.ITIMER_PROF, LEAST_SECONDS)
            return
        raise error("the time for checking what came back is used up.")

    torch = loaded_torch()
    had_gradients = torch is not None and torch.is_grad_enabled()
    outer_handler = signal.signal(signal.SIGPROF, stop)
    began = time.process_time()
    # of an outer bound, whose clock keeps running; 0 for none
    outer_seconds, _ = signal.getitimer(signal.ITIMER_PROF)
    shorter = min(seconds, outer_seconds or seconds)
    signal.setitimer(signal.ITIMER_PROF, max(shorter, LEAST_SECONDS))
    try:
        yield
    finally:
        if outer_seconds:
            elapsed = time.process_time() - began
            outer_seconds = max(outer_seconds - elapsed, LEAST_SECONDS)
        signal.setitimer(signal.ITIMER_PROF, outer_seconds)
        signal.signal(signal.SIGPROF, outer_handler)
        if torch is not None:
            torch.set_grad_enabled(had_gradients)


def _is_in_destructor(frame: FrameType | None) -> bool:
    """Whether a `__del__` is at work in this frame or below it."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def interruptible_gradients() -> Iterator[None]:
    """Computations inside have gradients, even while a backward pass runs, and `time_bound` can
    interrupt their backward pass.

    torch walks back through a graph without a step of Python: a backward pass of a minute could not
    be interrupted. The hook makes a step of Python whenever the pass looks at a saved tensor.
    """
    torch = loaded_torch()
    if torch is None:
        yield
        return

    def identity(tensor: Any) -> Any:
        return tensor

    with (
        torch.enable_grad(),
        torch.autograd.graph.saved_tensors_hooks(identity, identity),
    ):
        yield
