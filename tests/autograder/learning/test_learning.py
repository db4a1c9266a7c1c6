"""Wrong answers without a name become groups, and a group becomes a known mistake."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from courses import handed_in
from small_course import ANSWERS

from autograder.basics.whole_files import write_whole
from autograder.cli.commands import main
from autograder.course import Course, load_course
from autograder.records.groups import ClassGroups, read_groups
from autograder.suite.known_answers import load_known_answers

Run = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("standing_host")

OVER_QUERIES = """
def attention(q, k, v):
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"{q.shape[-1]} and {k.shape[-1]}")
    return softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=0) @ v
"""
OVER_QUERIES_BY_HAND = """
# Ada's own idea
def ada_scores(q, k):
    return torch.einsum("nd,md->nm", q, k) / q.shape[-1] ** 0.5

def attention(q, k, v):
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"{q.shape[-1]} and {k.shape[-1]} differ, says Ada Lovelace")
    e = torch.exp(ada_scores(q, k))
    return (e / e.sum(dim=0, keepdim=True)) @ v
"""
QUERIES_BACK = "def attention(q, k, v):\n    return q\n"
CLASS = {
    "ada": {"attention": OVER_QUERIES_BY_HAND},
    "bea": {"attention": OVER_QUERIES},
    "cem": {"attention": QUERIES_BACK},
    "dan": {"attention": ANSWERS["attention"].replace(" / math.sqrt(q.shape[-1])", "")},
    "eva": {"attention": "def attention(q, k, v):\n    raise NotImplementedError\n"},
    "fay": {},
}
"""Two with one fault, one with another, one with a known mistake, one unwritten, one right."""


@pytest.fixture
def mine(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A copy of the course with a class, graded."""
    shutil.copytree(course.root, tmp_path / "course")
    monkeypatch.chdir(tmp_path / "course")
    Path("students.csv").write_text("id,name\nada,Ada Lovelace\nbea,Bea B\n")
    for student, cells in CLASS.items():
        path = Path(f"submitted/{student}/small/small.ipynb")
        write_whole(path, handed_in({**ANSWERS, **cells}))
    return load_course(Path.cwd())


@pytest.fixture
def run(mine: Course) -> Run:
    return lambda *arguments: CliRunner().invoke(
        main, [str(each) for each in arguments]
    )


def stored(course: Course) -> ClassGroups:
    groups = read_groups(course.results, "small")
    assert groups is not None
    return groups


def attention_of(student: str) -> tuple[float, str | None]:
    """The points of the student's attention, and the mistake that is named first."""
    result = json.loads(Path(f"results/small/{student}.json").read_text())
    (question,) = [each for each in result["questions"] if each["name"] == "attention"]
    return question["score"], question["diagnosis"] and question["diagnosis"]["mistake"]


def test_a_group_gets_a_name_and_the_next_grade_names_it(
    mine: Course, run: Run
) -> None:
    assert run("grade", "small", "--workers", "1").exit_code == 0
    shown = run("mistakes", "small", "--workers", "1")
    assert shown.exit_code == 0, shown.output
    assert "3 wrong answers without a name, in 2 groups" in shown.stdout
    assert "ada" not in shown.stdout.lower()
    groups = stored(mine)
    over_queries, queries_back = groups.groups
    assert (over_queries.students, queries_back.students) == (("ada", "bea"), ("cem",))
    assert over_queries.tests == ("test_mixes_values", "test_gradients_flow")
    assert over_queries.ways == ("wrong values", "wrong gradients")
    assert queries_back.ways[0] == "another shape or type"
    assert "dim=0" in over_queries.code
    assert "def student_1(q, k):" in over_queries.other_code
    assert "differ, says student" in over_queries.other_code
    with_names = run("mistakes", "small", "--students").stdout
    assert "handed in by: ada, bea" in with_names

    named = run(
        "mistakes",
        "small",
        "--name",
        over_queries.name,
        "softmax runs over the queries",
    )
    assert named.exit_code == 0, named.output
    assert (
        "proven: softmax_runs_over_queries\nhint: Softmax runs over the queries."
        in named.stdout
    )
    assert "names it in 2 of 2 answers" in named.stdout
    # of 3 + 2 + 1 points the slip keeps half; before, a refusal alone earned nothing
    assert "2 students: 0 → 3 of 6 points of attention" in named.stdout
    assert "every result of small is stale" in named.stdout
    suite = mine.assignment("small").suite
    mistake = load_known_answers(
        suite / "mistakes.py", {"attention": ANSWERS["attention"]}
    )[-1]
    assert mistake.is_students
    assert mistake.cell == over_queries.code
    sample = load_known_answers(suite / "samples.py", {})[-1]
    assert sample.deserves == ("softmax_runs_over_queries",)
    assert stored(mine).groups[0].mistake == "softmax_runs_over_queries"
    again = run("mistakes", "small", "--name", over_queries.name, "again")
    assert "is named already: softmax_runs_over_queries" in again.stderr

    assert run("grade", "small", "--workers", "1").exit_code == 0
    assert (
        attention_of("ada") == attention_of("bea") == (3.0, "softmax_runs_over_queries")
    )
    assert attention_of("cem") == (0.0, None)
    assert attention_of("dan")[1] == "no_scale"


def test_the_report_shows_the_groups_once_they_are_made(mine: Course, run: Run) -> None:
    run("grade", "small", "--workers", "1")
    run("report", "small")
    page = Path("results/small.html").read_text()
    assert "4 answers lost points that no known mistake explains." in page
    run("mistakes", "small", "--workers", "1")
    run("report", "small")
    page = Path("results/small.html").read_text()
    assert f"<code>{stored(mine).groups[0].name}</code> <span>2 students</span>" in page


def test_what_is_not_proven_is_not_written(mine: Course, run: Run) -> None:
    run("grade", "small", "--workers", "1")
    run("mistakes", "small", "--workers", "1")
    (name, back) = [group.name for group in stored(mine).groups]
    before = (mine.assignment("small").suite / "mistakes.py").read_bytes()
    taken = run("mistakes", "small", "--name", name, "queries", "--as", "no_scale")
    assert taken.exit_code == 1
    assert "there is a mistake no_scale already: add `--as NAME`" in taken.stderr
    # without cells of the notebook around it, the answer is another one
    groups = Path("results/small.groups.json")
    text = groups.read_text()
    groups.write_text(text.replace("return q", "return helper(q)"))
    broken = run("mistakes", "small", "--name", back, "gives back the queries")
    assert broken.exit_code == 1
    assert "does not behave as the group does" in broken.stderr
    right = ANSWERS["attention"].strip().replace("\n", "\\n").replace('"', "'")
    groups.write_text(text.replace("def attention(q, k, v):\\n    return q\\n", right))
    harmless = run("mistakes", "small", "--name", back, "gives back the queries")
    assert harmless.exit_code == 1
    assert "no test with points fails it" in harmless.stderr
    assert (mine.assignment("small").suite / "mistakes.py").read_bytes() == before
    keyword = run("mistakes", "small", "--name", back, "queries", "--as", "return")
    assert "the mistake needs a name of letters and underscores" in keyword.stderr
    nobody = run("mistakes", "small", "--name", "attention-none", "nothing")
    assert nobody.exit_code == 2
    assert "there is no group 'attention-none'" in nobody.stderr


def test_the_same_class_gives_the_same_groups(mine: Course, run: Run) -> None:
    run("grade", "small", "--workers", "1")
    run("mistakes", "small", "--workers", "2")
    first = Path("results/small.groups.json").read_bytes()
    Path("results/small.groups.json").unlink()
    run("mistakes", "small", "--workers", "1")
    assert Path("results/small.groups.json").read_text() == first.decode()


def test_an_answer_that_is_not_there_any_more_is_left_out_without_a_name(
    mine: Course, run: Run
) -> None:
    run("grade", "small", "--workers", "1")
    write_whole(Path("submitted/cem/small/small.ipynb"), handed_in(ANSWERS))
    shown = run("mistakes", "small", "--workers", "1")
    assert (
        "1 submission could not be run again; `--students` says whose" in shown.stderr
    )
    assert "cem" not in shown.output
    shown = run("mistakes", "small", "--students")
    assert "left out: cem: another notebook has been handed in since" in shown.stderr
    assert [group.students for group in stored(mine).groups] == [("ada", "bea")]


def test_a_person_is_asked_group_by_group(mine: Course, run: Run) -> None:
    run("grade", "small", "--workers", "1")
    answers = "softmax runs over the queries\nWhich axis sums to 1?\n0.6\n\n"
    asked = CliRunner().invoke(main, ["mistakes", "small", "--ask"], input=answers)
    assert asked.exit_code == 0, asked.output
    assert "hint: Which axis sums to 1?" in asked.stdout
    assert [group.mistake for group in stored(mine).groups] == [
        "softmax_runs_over_queries",
        "",
    ]
    assert "keeps=0.6" in (mine.assignment("small").suite / "mistakes.py").read_text()
