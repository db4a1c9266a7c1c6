"""The instructor's day in README.md, command by command, on a small course: each of them works in
the place it has.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from courses import handed_in, write_assignment
from jupyter_core.command import list_subcommands
from small_course import ANSWERS, SOURCE, SUITE

from autograder.cli.commands import main
from autograder.course import load_course
from autograder.nbgrader.gradebook import open_gradebook

README = Path(__file__).resolve().parents[3] / "README.md"
WRITTEN = (
    '\n# %% [markdown] written="why" points=5\n# Why?\n# ### BEGIN SOLUTION\n# So.\n# ### '
    "END SOLUTION\n"
)
ROSTER = (
    'Student,ID,SIS Login ID,Section\n    Points Possible,,,\n"Doe, Jane",101,jane,A\n"Roe, '
    'Max",102,max,A\n'
)

pytestmark = pytest.mark.usefixtures("standing_host")


def commands() -> list[str]:
    """Every line of the fenced blocks of the day, for the small course's assignment."""
    day = (
        README.read_text(encoding="utf-8")
        .partition("## A day as an instructor")[2]
        .partition("\n## ")[0]
    )
    blocks = re.findall(r"^```\n(.*?)^```", day, re.MULTILINE | re.DOTALL)
    return [
        line.replace("a2_attention", "small")
        for block in blocks
        for line in block.splitlines()
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course folder with what the platform lets an instructor download."""
    write_assignment(tmp_path, "small", SOURCE + WRITTEN, SUITE, "")
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr("doejane_101_11_small.ipynb", _with_answer(handed_in(ANSWERS)))
        archive.writestr(
            "roemax_LATE_102_12_small-1.ipynb",
            handed_in({**ANSWERS, "counter": "class Counter: 0"}),
        )
        archive.writestr("leezoe_103_13_small.pdf", "")
    (tmp_path / "canvas-gradebook.csv").write_text(ROSTER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _with_answer(notebook: str) -> str:
    made = json.loads(notebook)
    meta = {
        "attention_kit": {"role": "written", "name": "why"},
        "nbgrader": {
            "grade_id": "written_why",
            "solution": True,
            "grade": True,
            "points": 5,
        },
    }
    made["cells"].append(
        {"cell_type": "markdown", "source": "Because rows sum to 1.", "metadata": meta}
    )
    return json.dumps(made)


def _score_by_hand(folder: Path) -> None:
    """What a person does in the formgrader."""
    with open_gradebook(load_course(folder)) as gradebook:
        for student, points in (("doejane_101", 4.0), ("roemax_102", 0.0)):
            grade = gradebook.find_grade("written_why", "small", "small", student)
            grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()


def test_the_day_of_an_instructor(folder: Path) -> None:
    said = {}
    for command in commands():
        words = shlex.split(command)
        if (
            words[0] == "jupyter"
        ):  # it would stay open; that it is there is what can be tested
            assert words[1:] in [[name] for name in list_subcommands()]
            _score_by_hand(folder)
            continue
        assert words[0] == "autograder"
        done = CliRunner().invoke(main, words[1:])
        assert done.exit_code == 0, f"{command}: {done.output}"
        said[command] = done.output
    assert (
        "leezoe_103: has no notebook here"
        in said["autograder collect small submissions.zip --from canvas"]
    )
    assert said["autograder report small"].splitlines()[-1] == (
        f"class report: {(folder / 'results' / 'small.html').as_uri()}"
    )
    with (folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert (
        rows["doejane_101"]["written"],
        rows["doejane_101"]["total"],
        rows["doejane_101"]["max"],
    ) == (
        "4",
        "15",
        "16",
    )
    assert rows["leezoe_103"]["status"] == "no notebook"
    assert (folder / "canvas.csv").read_text(encoding="utf-8").splitlines()[
        2
    ] == '"Doe, Jane",101,jane,A,15'
    with zipfile.ZipFile(folder / "feedback.zip") as archive:
        assert sorted(archive.namelist()) == [
            "doejane_101_11_small.html",
            "roemax_LATE_102_12_small-1.html",
        ]
    totals = (folder / "course.csv").read_text(encoding="utf-8").splitlines()
    assert totals[1] == "doejane_101,,,,93.75,,93.75,"  # 15 of 16
