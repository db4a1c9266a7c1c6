"""From the command to the result file, calls lead into modules below, with five exceptions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from courses import handed_in
from small_course import ANSWERS

from autograder.course import Course

UPWARD = {
    "cli/base.py -> cli/commands.py",
    "sandbox/stand_in_answers.py -> sitting/replay.py",
    "wire/frames.py -> sandbox/worker_process.py",
    "wire/gradients.py -> sandbox/student.py",
    "wire/values.py -> sandbox/student.py",
}
"""In docs/architecture.md, "Ways through the modules", with the reason for each."""
WRONG_SOFTMAX = "def softmax(z, dim=-1):\n    e = torch.exp(z)\n    return e / e.sum(0, keepdim=True)\n"
"""A known mistake, in a function that another question calls: the submission is diagnosed, and runs
with stand-ins too.
"""


def test_five_calls_lead_up_from_the_command_to_the_result(
    course: Course, tmp_path: Path
) -> None:
    notebook = tmp_path / "student-001.ipynb"
    notebook.write_text(
        handed_in({**ANSWERS, "softmax": WRONG_SOFTMAX}), encoding="utf-8"
    )
    calls = tmp_path / "calls"
    program = Path(__file__).with_name("upward_calls.py")
    command = [
        sys.executable,
        str(program),
        str(calls),
        "grade",
        "small",
        str(notebook),
    ]
    subprocess.run(
        [*command, "--out", str(tmp_path / "results")],
        cwd=course.root,
        check=True,
        capture_output=True,
    )
    assert set(calls.read_text().splitlines()) == UPWARD
