"""Whose fault it is that a test ended in another exception than an assertion's: the suite's, or not
known yet.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

import pytest

from autograder.basics.errors import StudentFault, SuiteFault
from autograder.suite.calls import CallLog

_UNSOUND = (NameError, ImportError, SyntaxError)
"""What only the text of a program can be to blame for."""
_KIT = Path(__file__).resolve().parents[1]


def is_suites_own(raised: BaseException, log: CallLog, suite: Path) -> bool:
    """Whether no answer of a student's can have caused it: nothing was asked yet, or the suite's
    text is unsound.
    """
    if isinstance(raised, StudentFault):
        return False
    if not log.asked or isinstance(raised, pytest.FixtureLookupError):
        return True
    if not isinstance(raised, _UNSOUND):
        return False
    frames = traceback.extract_tb(raised.__traceback__)
    innermost = Path(frames[-1].filename) if frames else Path()
    return innermost.is_relative_to(suite) or innermost.is_relative_to(_KIT)


def suite_fault(raised: BaseException, test: str, suite: Path) -> SuiteFault:
    """The fault of a test that raised by itself: file, line, and what it raised; the traceback from
    there on.
    """
    trace: TracebackType | None = raised.__traceback__
    while trace is not None and not Path(trace.tb_frame.f_code.co_filename).is_relative_to(suite):
        trace = trace.tb_next  # what called the suite is of no interest
    frames = [
        frame for frame in traceback.extract_tb(trace) if Path(frame.filename).is_relative_to(suite)
    ]
    place = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else str(suite)
    said = str(raised).strip().partition("\n")[0]
    message = f"{place}: {test} raised {type(raised).__name__}{f': {said}' if said else ''}"
    lines = traceback.format_exception(type(raised), raised, trace or raised.__traceback__)
    return SuiteFault(
        f"{message}. The suite is to blame, and no submission.", "".join(lines).rstrip()
    )
