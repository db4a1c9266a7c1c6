"""A class is ranked by counts that are worked out behind walls."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from courses import handed_in
from small_course import ANSWERS

from autograder.basics.whole_files import write_whole
from autograder.cli.commands import main
from autograder.course import Course

Run = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("standing_host")

MEASURES = """
import torch
from autograder.leaderboard import NotRanked, measure


@measure("floating point operations of attention", unit="FLOP", needs=("attention",))
def operations(entrant):
    q = torch.ones(5, 2)
    answer, cost = entrant.student.counted("attention", q, q, q)
    if not torch.allclose(answer, q):
        raise NotRanked("attention to ones gives ones")
    return cost.flops


@measure("largest weight", unit="", needs=(), weights=True, decimals=1)
def largest_weight(entrant):
    return float(entrant.weights.tensors["w"][1].max()) + entrant.weights.settings.shift
"""
TWICE = ANSWERS["attention"].replace("return softmax", "q @ k.mT\n    return softmax")
"""Right, and q kᵀ is multiplied once too often."""


@pytest.fixture
def run(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Commands in a copy of the course with a leaderboard and a class, graded."""
    shutil.copytree(course.root, tmp_path / "course")
    monkeypatch.chdir(tmp_path / "course")
    write_whole(Path("tests/hidden/small/leaderboard.py"), MEASURES.encode())
    write_whole(Path("students.csv"), b"id,name\nada,Ada L\nbea,Bea B\ncem,Cem C\n")
    wrong = "def attention(q, k, v):\n    return v * 2\n"
    for student, answer in (
        ("ada", TWICE),
        ("bea", ANSWERS["attention"]),
        ("cem", wrong),
    ):
        path = Path(f"submitted/{student}/small/small.ipynb")
        write_whole(path, handed_in({**ANSWERS, "attention": answer}))

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, [*arguments, "--workers", "1"])

    graded = invoke("grade", "small")
    assert graded.exit_code == 0, graded.output
    return invoke


def save_weights(student: str, name: str = "small.safetensors") -> None:
    import json

    import torch
    from safetensors.torch import save

    tensors = {"w.0": torch.zeros(2), "w.1": torch.tensor([1.5, -3.0])}
    content = save(tensors, metadata={"settings": json.dumps({"shift": 2})})
    Path(f"submitted/{student}/small/{name}").write_bytes(content)


def test_the_smallest_count_is_first_and_a_wrong_answer_is_not_ranked(run: Run) -> None:
    Path("submitted/ada/small/nickname.txt").write_text("Countess <b>\nsecond line")
    ranked = run("leaderboard", "small", "--students")
    assert ranked.exit_code == 0, ranked.output
    lines = ranked.stdout.splitlines()
    # q kᵀ and p v: 2 products of 5 · 5 · 2 multiply-adds; ada multiplies once more
    assert lines[0].startswith(
        "floating point operations of attention: 2 ranked; first: nobody "
    )
    assert lines[1].endswith(" (bea): 200")
    assert lines[2] == "2. Countess <b> (ada): 300"
    assert lines[3] == "not ranked: cem: `attention` has not all of its points"
    page = Path("results/small.leaderboard.html").read_text()
    assert "Countess &lt;b&gt;" in page
    assert "<b>" not in page
    assert "bea" not in page
    assert "cem" not in page


def test_weights_are_read_within_limits(run: Run) -> None:
    save_weights("ada")
    save_weights("bea", "other.safetensors")
    Path("submitted/cem/small/small.safetensors").write_bytes(b"\xff" * 100)
    ranked = run("leaderboard", "small", "--students").stdout
    assert "(ada): 3.5" in ranked  # 1.5 and the shift of 2
    assert (
        "not ranked: bea: small.safetensors does not lie beside the notebook" in ranked
    )
    assert (
        "not ranked: cem: small.safetensors: is no safetensors file; save it again"
        in ranked
    )

    save_weights("bea")
    again = run("leaderboard", "small", "--students").stdout
    assert "(bea): 3.5" in again
    assert again.count("1. ") == 3  # two share the first place


def test_people_are_called_as_the_course_says(run: Run) -> None:
    settings = Path("course.toml")
    before = settings.read_text()
    for names, shown in (("names", "Bea B"), ("ids", "bea")):
        settings.write_text(f'{before}\n[leaderboard]\nnames = "{names}"\n')
        assert (
            f"1. {shown} (bea): 200" in run("leaderboard", "small", "--students").stdout
        )


def test_a_nickname_is_one_student_s_however_it_is_written(run: Run) -> None:
    """Ada comes first in the list of ids; bea's is the same name in the full width of capitals."""
    for student, nickname in (("ada", "Countess"), ("bea", "ＣＯＵＮＴＥＳＳ\u200d")):
        Path(f"submitted/{student}/small/nickname.txt").write_text(nickname)
    ranked = run("leaderboard", "small", "--students").stdout
    assert "2. Countess (ada): 300" in ranked
    assert re.search(r"1\. nobody \d{4} \(bea\): 200", ranked)


def test_a_suite_without_measures_says_so(run: Run) -> None:
    Path("tests/hidden/small/leaderboard.py").unlink()
    ranked = run("leaderboard", "small")
    assert ranked.exit_code == 2
    assert "small has no leaderboard: docs/authoring.md says" in ranked.output
