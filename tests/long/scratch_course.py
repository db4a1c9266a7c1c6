"""A small course in a folder of its own, its results, and a table of what went wrong: what programs
of faults share.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASSIGNMENT = "a2_attention"
CLASS = (
    "student-003",
    "student-023",
    "student-024",
    "student-030",
    "student-031",
    "student-032",
)
"""Right answers, mistakes with carried points, a crash, a hang."""


@dataclass(frozen=True)
class ScratchCourse:
    """A copy of one assignment with a small class, in a folder of its own."""

    root: Path
    assignment: str = ASSIGNMENT

    @property
    def temporary(self) -> Path:
        """The temporary folder of every command that is run here."""
        return self.root / "tmp"

    def write(self) -> None:
        for part in ("course.toml", "tests/hidden/pytest.ini"):
            (self.root / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / part, self.root / part)
        for folder in ("source", "assignments", "solutions", "tests/hidden"):
            shutil.copytree(
                ROOT / folder / self.assignment, self.root / folder / self.assignment
            )
        self.temporary.mkdir()
        self.command("demo", self.assignment).wait()
        for student in (self.root / "submitted").iterdir():
            if student.name not in CLASS:
                shutil.rmtree(student)

    def command(self, *arguments: str | Path) -> subprocess.Popen[str]:
        program = (
            "import sys; from autograder.cli.commands import main; sys.argv[0] = "
            "'autograder'; main()"
        )
        return subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            cwd=self.root,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(ROOT), *sys.path])
        return os.environ | {"TMPDIR": str(self.temporary), "PYTHONPATH": path}

    def grade(self, out: Path) -> subprocess.Popen[str]:
        return self.command("grade", self.assignment, "--workers", "2", "--out", out)

    def results(self, out: Path) -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in (out / self.assignment).glob("*.json")
        }

    def undisturbed(self, students: Sequence[str]) -> dict[str, bytes]:
        """Write it, and grade its students while nothing goes wrong: the results that count as
        right.
        """
        self.root.mkdir()
        self.write()
        out = self.root / "undisturbed"
        self.grade(out).communicate()
        right = self.results(out)
        if len(right) != len(students):
            raise SystemExit(
                f"the undisturbed run gave {len(right)} results, not {len(students)}"
            )
        return right


def is_left_behind(path: Path) -> bool:
    return path.suffix == ".part" or path.name.startswith(
        ("attention-kit-", ".canary-")
    )


@dataclass
class Row:
    """One kind of fault: how often it was done, how many results were compared after it, and what
    was wrong.
    """

    fault: str
    done: int = 0
    compared: int = 0
    wrong: int = 0


def table(rows: list[Row]) -> str:
    lines = [
        "| fault | times | results compared | wrong, missing or left behind |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row.fault} | {row.done} | {row.compared} | {row.wrong} |" for row in rows
    ]
    return "\n".join(lines)
