"""JUnit, GitHub and Gradescope: what these systems read."""

import json
import re
import stat
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from stored_results import outcome, question, result_of

from autograder.basics.errors import IsolationUnavailable
from autograder.outputs.junit import junit_xml
from autograder.platforms import gradescope
from autograder.platforms.github import (
    classroom_notices,
    escape,
    job_summary,
    points_output,
)
from autograder.platforms.github import main as github_main
from autograder.platforms.gradescope import (
    find_notebook,
    grade_submission,
    problem_json,
    results_json,
)
from autograder.records.model import Graded, Result
from autograder.records.results import TimingFile, write_result


def test_junit_counts_failures_and_errors(
    plain: Result, hostile: Result, problem: Graded
) -> None:
    text = "".join(junit_xml([plain, hostile], [problem]))
    root = ElementTree.fromstring(text.encode())
    assert root.attrib == {"tests": "11", "failures": "2", "errors": "5"}
    suite = root[0]
    assert suite.attrib == {
        "name": "attention.ada",
        "tests": "7",
        "failures": "2",
        "errors": "2",
    }
    failed = suite.findall("testcase")[1]
    assert failed.get("name") == "test_each_query_distributes_over_the_keys"
    assert failed.get("classname") == "attention.ada.softmax"
    assert failed[0].tag == "failure"
    assert failed[0].text == "`softmax(z[4, 7])` differs first at [0, 1]."
    assert [case[0].get("type") for case in suite.findall("testcase")[5:]] == [
        "missing",
        "missing",
    ]
    assert (
        root[2][0][0].get("message") == "not a notebook [link](javascript:alert(1))red"
    )


def test_junit_keeps_markup_as_text(hostile: Result) -> None:
    text = "".join(junit_xml([hostile]))
    error = ElementTree.fromstring(text.encode()).find(".//testcase/error")
    assert error is not None
    assert (error.text or "").startswith("<script>alert(1)</script>\nred\n")
    assert "<script>" not in text


def test_junit_of_a_class_where_nobody_could_be_graded(problem: Graded) -> None:
    root = ElementTree.fromstring("".join(junit_xml([], [problem])).encode())
    assert root.attrib == {"tests": "1", "failures": "0", "errors": "1"}
    counts = {"tests": "1", "failures": "0", "errors": "1"}
    assert [suite.attrib for suite in root] == [{"name": problem.student, **counts}]
    assert [case.get("name") for case in root.iter("testcase")] == ["can be graded"]


def test_junit_of_no_submission_has_no_suite() -> None:
    root = ElementTree.fromstring("".join(junit_xml([])).encode())
    assert (root.tag, root.attrib, list(root)) == (
        "testsuites",
        {"tests": "0", "failures": "0", "errors": "0"},
        [],
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", "a&#124;b"),
        ("<b>", "&#60;b&#62;"),
        ("`x`", "&#96;x&#96;"),
        ("::error::x", "&#58;&#58;error&#58;&#58;x"),
        ("##[error]x", "&#35;&#35;&#91;error&#93;x"),
        ("[a](javascript:x)", "&#91;a&#93;&#40;javascript&#58;x&#41;"),
        ("@somebody $x$ &amp;", "&#64;somebody &#36;x&#36; &#38;amp&#59;"),
        ("- item\n1. two", "&#45; item<br>1&#46; two"),
        ("top-k of 数", "top-k of 数"),
        ("\x1b[31mred", "red"),
    ],
)
def test_markdown_is_escaped(text: str, expected: str) -> None:
    assert escape(text) == expected


def test_summary_of_a_fully_right_submission_is_its_table() -> None:
    right = result_of(
        "ada",
        question(
            "softmax", outcome("test_rows", 2.0, 2.0), outcome("test_shift", 1.0, 1.0)
        ),
        cells=[],
        isolation="strict",
        suite="suite-1",
    )
    assert job_summary([right]).splitlines() == [
        "## attention: 3 of 3 points",
        "",
        "Student: <code>ada</code>",
        "",
        "| question | points | look here first |",
        "| --- | ---: | --- |",
        "| <code>softmax</code> | 3 / 3 |  |",
        "",
    ]


def test_summary_of_a_result(plain: Result) -> None:
    lines = job_summary([plain]).splitlines()
    assert lines[0] == "## attention: 11 of 20 points"
    assert lines[2] == "Student: <code>ada</code>"
    assert lines[6].startswith(
        "| <code>softmax</code> | 2 / 4 | Each row should sum to 1&#58; does &#96;dim&#96; point"
    )
    assert lines[7] == "| <code>attention</code> | 6 / 6 |  |"
    assert (
        "- **order of heads** (your notebook does not define it)<br><code>there is no "
        "split&#95;heads</code>" in lines
    )


def test_summary_of_a_hostile_result(hostile: Result) -> None:
    text = job_summary([hostile])
    assert "::" not in text
    assert set(re.findall(r"</?(\w+)", text)) == {"code", "br"}
    assert "javascript:" not in text
    assert "\x1b" not in text
    assert all(line.count("|") in (0, 4) for line in text.splitlines())
    assert "**Graded without isolation.**" in text


def test_rendered_markdown_has_no_element_of_a_students(
    plain: Result, hostile: Result
) -> None:
    from markdown_it import MarkdownIt

    html = (
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .render(job_summary([plain, hostile]))
    )
    frame = {
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "strong",
        "code",
        "br",
    }
    assert set(re.findall(r"</?(\w+)", html)) == frame
    assert "[link](javascript:alert(1))" in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_carried_points_are_explained(plain: Result) -> None:
    note = (
        "You lost nothing here for a mistake in a question that it builds on: with a right "
        "answer in its place"
    )
    assert note in json.loads(results_json(plain))["tests"][1]["output"]
    assert escape(note) in job_summary([plain])


def test_a_summary_has_a_largest_size(hostile: Result) -> None:
    text = job_summary([hostile] * 2000)
    assert len(text.encode()) < 1024 * 1024
    assert "more results are not shown here." in text


def test_points_are_numbers(plain: Result, hostile: Result) -> None:
    assert points_output([plain]) == "points=11\nmax_points=20\n"
    assert (
        points_output([plain, replace(hostile, score=0.1 + 0.2)])
        == "points=11.3\nmax_points=23\n"
    )


def test_classroom_gets_the_notices_of_its_own_reporter(plain: Result) -> None:
    """As classroom-resources/autograding-grading-reporter writes them (src/notify-classroom.js):
    `Points 11/20` under the one title, and what JSON.stringify makes of totalPoints and maxPoints
    under the other; 20.0 is 20 there.
    """
    half = replace(plain, score=8.5)
    assert classroom_notices([half]).splitlines() == [
        "::notice title=Autograding complete::Points 8.5/20",
        '::notice title=Autograding report::{"totalPoints":8.5,"maxPoints":20}',
    ]
    assert "Points 0/20\n" in classroom_notices([], not_graded=20.0)


def test_the_runner_gets_summary_and_points(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plain: Result,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        monkeypatch.setenv(name, str(tmp_path / name))
    write_result(tmp_path / "results", plain)
    assert github_main(["attention", str(tmp_path / "results"), str(tmp_path)]) == 0
    assert (tmp_path / "GITHUB_OUTPUT").read_text(
        encoding="utf-8"
    ) == "points=11\nmax_points=20\n"
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text(
        encoding="utf-8"
    ) == job_summary([plain])
    assert capsys.readouterr().out == classroom_notices([plain])
    assert github_main(["other", str(tmp_path / "results"), str(tmp_path)]) == 1
    assert capsys.readouterr().out == ""


def test_a_notebook_that_could_not_be_graded_has_its_reason_and_its_points(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    problem: Graded,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two of them, of 20 points each; the 5 of a written answer are a person's."""
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        monkeypatch.setenv(name, str(tmp_path / name))
    cells = [
        {"metadata": {"attention_kit": {"role": role}, "nbgrader": {"points": points}}}
        for role, points in (("check", 12), ("check", 8), ("written", 5))
    ]
    release = tmp_path / "course/assignments/attention/attention.ipynb"
    release.parent.mkdir(parents=True)
    release.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    problems = [problem, replace(problem, student="ben")]
    TimingFile(tmp_path / "results", "attention").note(problems)
    assert (
        github_main(["attention", str(tmp_path / "results"), str(tmp_path / "course")])
        == 1
    )
    assert capsys.readouterr().out == classroom_notices([], 40.0)
    assert (tmp_path / "GITHUB_OUTPUT").read_text(
        encoding="utf-8"
    ) == "points=0\nmax_points=40\n"
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")
    assert "Not graded" in summary
    assert "not a notebook" in summary
    assert "[link]" not in summary
    assert "\x1b" not in summary


def test_gradescope_has_an_entry_a_question(plain: Result) -> None:
    page = json.loads(results_json(plain))
    assert page["score"] == 11.0
    assert page["stdout_visibility"] == "hidden"
    assert {
        page["output_format"],
        *(test["output_format"] for test in page["tests"]),
    } == {"text"}
    assert [
        (t["name"], t["score"], t["max_score"], t.get("status")) for t in page["tests"]
    ] == [
        (
            "softmax",
            2.0,
            4.0,
            None,
        ),  # with a part of its points neither passed nor failed
        ("attention", 6.0, 6.0, "passed"),
        ("heads", 3.0, 10.0, None),
    ]
    assert {t["visibility"] for t in page["tests"]} == {"visible"}
    assert page["tests"][0]["output"].splitlines() == [
        "Look here first: Each row should sum to 1: does `dim` point at the keys?",
        "",
        "✓ rows sum to one (2 of 2): passed",
        "✗ each query distributes over the keys (0 of 2): not right yet",
        "    `softmax(z[4, 7])` differs first at [0, 1].",
    ]
    assert page["output"].splitlines() == [
        "Cell library was put back as released: it differed from the release",
        "Cell attention ran: there were two copies; the first one counts",
        "Cell heat_map did not run",
    ]


def test_gradescope_says_what_a_person_gives_and_shows_what_the_course_says(
    plain: Result,
) -> None:
    page = json.loads(results_json(plain, written=5.0, visibility="after_published"))
    assert page["output"].startswith(
        "Not in this score: 5 points of written answers, which a person gives."
    )
    assert {t["visibility"] for t in page["tests"]} == {"after_published"}
    nothing = replace(plain.questions[0], score=0.0)
    assert (
        json.loads(results_json(replace(plain, questions=(nothing,))))["tests"][0][
            "status"
        ]
        == "failed"
    )


def test_gradescope_says_when_no_wall_stood(hostile: Result) -> None:
    text = results_json(hostile)
    assert json.loads(text)["output"].startswith("Graded without isolation")
    assert "\\u001b" not in text
    assert "\\u202e" not in text
    assert "\\ud800" not in text


def test_gradescope_reads_a_problem_too() -> None:
    page = json.loads(problem_json("not a notebook\x1b[31m"))
    assert (page["score"], page["tests"]) == (0.0, [])
    assert page["output"] == "This submission could not be graded: not a notebook"


def test_the_notebook_that_was_handed_in(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no notebook"):
        find_notebook(tmp_path, "attention")
    (tmp_path / "mine.ipynb").write_text("{}", encoding="utf-8")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "mine.ipynb").write_text("{}", encoding="utf-8")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "mine.ipynb")
    assert find_notebook(tmp_path, "attention").name == "mine.ipynb"
    (tmp_path / "other.ipynb").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"mine\.ipynb, other\.ipynb"):
        find_notebook(tmp_path, "attention")
    (tmp_path / "attention.ipynb").write_text("{}", encoding="utf-8")
    assert find_notebook(tmp_path, "attention").name == "attention.ipynb"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Gradescope's folder, with a submission in it."""
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "mine.ipynb").write_text("{}", encoding="utf-8")
    return tmp_path


@pytest.fixture
def stand_in(tmp_path: Path, plain: Result) -> Callable[..., list[str]]:
    """A command in the place of `autograder`: it refuses every mode but some, and knows what it
    will find.
    """

    def make(
        stands: Sequence[str], problem: str = "", isolation: str = "strict"
    ) -> list[str]:
        result = replace(plain, isolation=isolation)
        (tmp_path / "result.json").write_text(result.to_json(), encoding="utf-8")
        script = tmp_path / "stand_in.py"
        script.write_text(
            "import pathlib, shutil, sys\n"
            "a = sys.argv\n"
            "mode, out = a[a.index('--isolation') + 1], pathlib.Path(a[a.index('--out') + 1])\n"
            f"if mode not in {stands!r}:\n"
            "    print('no walls for', mode, file=sys.stderr); sys.exit(2)\n"
            f"if {problem!r}:\n"
            "    from autograder.records.model import Graded\n"
            "    from autograder.records.results import TimingFile\n"
            f"    TimingFile(out, 'attention').note([Graded('mine', None, {problem!r})]); "
            "sys.exit(1)\n"
            "(out / 'attention').mkdir()\n"
            f"shutil.copy({str(tmp_path / 'result.json')!r}, out / 'attention' / 'ada.json')\n",
            encoding="utf-8",
        )
        return [sys.executable, str(script)]

    return make


def graded(base: Path, command: Sequence[str]) -> Any:
    return json.loads(grade_submission("attention", base, base, command, print))


def test_strict_walls_need_no_note(
    base: Path, stand_in: Callable[..., list[str]]
) -> None:
    page = graded(base, stand_in(["strict", "auto"]))
    assert page["score"] == 11.0
    assert "walls" not in page["output"]


def test_weaker_walls_are_said_out_loud(
    base: Path, stand_in: Callable[..., list[str]]
) -> None:
    page = graded(base, stand_in(["auto"], isolation="no-open"))
    assert page["score"] == 11.0
    assert page["output"].startswith(
        "The strict walls do not stand in this container; graded behind weaker ones (no-"
    )


def test_no_walls_no_score(
    base: Path, stand_in: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AUTOGRADER_ALLOW_NO_ISOLATION", raising=False)
    with pytest.raises(IsolationUnavailable, match="no walls for auto"):
        graded(base, stand_in(["none"]))


def test_a_container_at_fault_gives_nobody_a_score(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*arguments: object) -> NoReturn:
        raise IsolationUnavailable("no walls")

    monkeypatch.setattr(gradescope, "BASE", base)
    monkeypatch.setattr(gradescope, "grade_submission", refuse)
    assert gradescope.main(["attention", str(base)]) == 2
    assert capsys.readouterr().out == "no walls\n"
    assert not (base / "results").exists()


def test_no_walls_where_the_instructor_accepts_it(
    base: Path, stand_in: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOGRADER_ALLOW_NO_ISOLATION", "1")
    page = graded(base, stand_in(["none"], isolation="none"))
    assert page["score"] == 11.0
    assert page["output"].startswith("Graded without isolation")


def test_a_submission_at_fault_is_not_tried_again(
    base: Path, stand_in: Callable[..., list[str]]
) -> None:
    page = graded(base, stand_in(["strict"], problem="not a notebook"))
    assert (page["score"], page["output"]) == (
        0.0,
        "This submission could not be graded: not a notebook",
    )


def test_nothing_handed_in(base: Path, stand_in: Callable[..., list[str]]) -> None:
    (base / "submission" / "mine.ipynb").unlink()
    assert (
        "Hand in attention.ipynb; there is no notebook."
        in graded(base, stand_in(["strict"]))["output"]
    )


def test_the_page_is_written_where_gradescope_reads_it(
    base: Path, monkeypatch: pytest.MonkeyPatch, plain: Result
) -> None:
    monkeypatch.setattr(gradescope, "BASE", base)
    monkeypatch.setattr(
        gradescope, "grade_submission", lambda *arguments: results_json(plain)
    )
    assert gradescope.main(["attention", str(base)]) == 0
    page = base / "results" / "results.json"
    assert page.read_text(encoding="utf-8") == results_json(plain)
    assert stat.S_IMODE(page.stat().st_mode) == 0o644
