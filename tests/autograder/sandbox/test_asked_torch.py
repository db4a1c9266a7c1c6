"""What torch is asked of a GPU, in a process that the test plays."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import DeviceUnavailable
from autograder.sandbox.device import _ask_torch


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A process that prints `output`, or ends by `fault`; `calls` has how it was started."""
    asked = SimpleNamespace(output='{"error": ""}', fault=None, calls=[])

    def run(command: list[str], **options: Any) -> Any:
        asked.calls.append((command[:-1], options))
        if asked.fault is not None:
            raise asked.fault
        return SimpleNamespace(stdout=asked.output)

    monkeypatch.setattr(subprocess, "run", run)
    return asked


def test_torch_has_two_minutes_to_load_and_to_answer(asked: SimpleNamespace) -> None:
    asked.output = '{"name": "a GPU", "error": ""}'
    assert _ask_torch() == {"name": "a GPU", "error": ""}
    ((command, options),) = asked.calls
    assert command == [sys.executable, "-I", "-c"]
    assert options == {
        "capture_output": True,
        "text": True,
        "timeout": 120.0,
        "check": True,
    }


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            subprocess.CalledProcessError(
                1, "x", stderr="Traceback\n  line\nOSError: no\n"
            ),
            r"OSError: no$",
        ),
        (subprocess.TimeoutExpired("x", 120.0), r"timed out after 120\.0 seconds$"),
        (OSError("no memory"), r"no memory$"),
    ],
)
def test_a_torch_that_does_not_answer_is_told_in_its_last_line(
    asked: SimpleNamespace, fault: Exception, words: str
) -> None:
    asked.fault = fault
    with pytest.raises(
        DeviceUnavailable, match=f"^torch could not be asked for a GPU: .*{words}"
    ) as caught:
        _ask_torch()
    assert "Traceback" not in str(caught.value)


def test_an_answer_that_is_no_json_is_none(asked: SimpleNamespace) -> None:
    asked.output = "a warning of the driver"
    with pytest.raises(DeviceUnavailable, match="could not be asked for a GPU: Expect"):
        _ask_torch()
