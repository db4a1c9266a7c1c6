"""Tells the suite's faults from the students': a test that ended in an exception other than an
AssertionError.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

import pytest

from autograder.basics.errors import StudentFault, SuiteFault
from autograder.suite.calls import CallLog

_UNSOUND = (NameError, ImportError, SyntaxError)
"""Exceptions that only the text of a program can cause."""
_KIT = Path(__file__).resolve().parents[1]


def is_suite_fault(raised: BaseException, log: CallLog, suite: Path) -> bool:
    """Whether no answer of a student's can have caused the exception: the test had not called the
    submission yet, or the suite's text is unsound.
    """
    if isinstance(raised, StudentFault):
        return False
    if not log.used_submission or isinstance(raised, pytest.FixtureLookupError):
        return True
    if not isinstance(raised, _UNSOUND):
        return False
    frames = traceback.extract_tb(raised.__traceback__)
    innermost = Path(frames[-1].filename) if frames else Path()
    return innermost.is_relative_to(suite) or innermost.is_relative_to(_KIT)


def suite_fault(raised: BaseException, test: str, suite: Path) -> SuiteFault:
    """The error of a suite whose test raised by itself: file, line, exception, and the traceback
    within the suite.
    """
    trace: TracebackType | None = raised.__traceback__
    while trace is not None and not Path(
        trace.tb_frame.f_code.co_filename
    ).is_relative_to(suite):
        trace = trace.tb_next
    frames = traceback.extract_tb(trace)
    suite_frames = [
        frame for frame in frames if Path(frame.filename).is_relative_to(suite)
    ]
    place = str(suite)
    if suite_frames:
        place = f"{suite_frames[-1].filename}, line {suite_frames[-1].lineno}"
    message = f"{place}: {test} raised {type(raised).__name__}"
    if first_line := str(raised).strip().partition("\n")[0]:
        message += f": {first_line}"
    lines = traceback.format_exception(
        type(raised), raised, trace or raised.__traceback__
    )
    return SuiteFault(
        f"{message}. The suite is to blame, and no submission.",
        "".join(lines).rstrip(),
    )
