"""The pages in a real browser: nothing of a submission runs, and no element of a page comes from
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from browser import (
    HOSTILE,
    IN_AN_ATTRIBUTE,
    PAYLOADS,
    QUIET,
    STEERING,
    Page,
    in_a_browser,
    needs_chromium,
)
from courses import built_course, handed_in
from markupsafe import escape

from autograder.basics.errors import IsolationUnavailable
from autograder.course.roster import Person
from autograder.intake.collected import Arrival, Collected
from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs.class_report import render_report
from autograder.outputs.feedback_page import render_feedback
from autograder.records.model import (
    Diagnosis,
    Graded,
    ManualGrades,
    ManualScore,
    QuestionResult,
    Result,
    TestOutcome,
)
from autograder.records.submission import CellOutcome, FoundSubmission

pytestmark = needs_chromium

Texts = Callable[[str], str]
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


def hostile(name: str) -> str:
    return HOSTILE[name]


def harmless(name: str) -> str:
    return f"a word about {name}"


def result(text: Texts) -> Result:
    """A result in which every text is one of the submission's; each payload stands in every place
    once.
    """
    questions = tuple(
        QuestionResult(
            name=text(name),
            score=1.0,
            max_score=3.0,
            carried=0.0,
            diagnosis=Diagnosis(text(name), text(name)),
            tests=(
                TestOutcome(f"test_{text(name)}", "passed", 1.0, 1.0),
                TestOutcome(
                    f"test_{text(name)}[{text(name)}]", "error", 0.0, 2.0, text(name)
                ),
            ),
        )
        for name in HOSTILE
    )
    cells = tuple(CellOutcome(text(name), "error", text(name)) for name in HOSTILE)
    every = " ".join(map(text, HOSTILE))
    score, full = float(len(questions)), 3.0 * len(questions)
    return Result(every, every, "a", "b", "none", score, full, questions, cells)


def feedback(text: Texts) -> str:
    made = mark_from_result(result(text))
    scores = tuple(
        ManualScore(text(name), 2.0, 1.0, comment=text(name)) for name in HOSTILE
    )
    hand = ManualGrades("", scores, scores)
    assert made.result is not None
    return render_feedback(made.result, mark=replace(made, by_hand=hand))


def report(text: Texts) -> str:
    made = result(text)
    timing = [
        Graded(text(name), seconds={text(name): 1.0}, older=text(name))
        for name in HOSTILE
    ]
    arrival = Arrival("canvas", text("attribute"), text("attribute"), text("attribute"))
    others = [
        Mark(
            text(name),
            "no notebook",
            text(name),
            Person(text(name), text(name), text(name), text(name), {}),
            arrival,
        )
        for name in HOSTILE
    ]
    said = Collected(source=text("attribute"), said=tuple(map(text, HOSTILE)))
    pages = {made.student: "../feedback/x.html"}
    return "".join(
        render_report(
            made.assignment, [mark_from_result(made), *others], timing, said, pages
        )
    )


def control() -> str:
    """A page that escapes nothing, and has no policy."""
    parts = "".join(f"<div>{payload}</div>" for payload in PAYLOADS.values())
    return (
        "<!DOCTYPE html><html><title>x</title><body><i "
        f'title="{IN_AN_ATTRIBUTE}">x</i>{parts}</body></html>'
    )


def unescaped(page: str) -> str:
    """The page as it would be if its templates forgot to escape what runs."""
    for payload in (*PAYLOADS.values(), IN_AN_ATTRIBUTE):
        assert str(escape(payload)) in page
        page = page.replace(str(escape(payload)), payload)
    return page


def assert_untouched(page: Page, as_harmless: str) -> None:
    assert page.ran == set()
    assert page.elements == Page(as_harmless).elements
    assert all(
        re.fullmatch(r"#(question|written)-\d+|\.\./feedback/x\.html", link)
        for link in page.links
    )
    assert not [mark for mark in STEERING if mark in page.text]


def test_this_browser_runs_what_is_not_escaped(tmp_path: Path) -> None:
    assert in_a_browser(control(), tmp_path).ran == {*PAYLOADS, "attribute"}


def test_this_browser_goes_elsewhere(tmp_path: Path) -> None:
    page = (
        f"<!DOCTYPE html><html><title>x</title><body>{QUIET['refresh']}</body></html>"
    )
    assert in_a_browser(page, tmp_path).ran == {"elsewhere"}


@pytest.mark.parametrize("page", [feedback, report])
def test_escaping_holds_without_the_policy(
    page: Callable[[Texts], str], tmp_path: Path
) -> None:
    html, found = _POLICY.subn('<meta content="" http-equiv="x">', page(hostile))
    assert found == 1
    seen = in_a_browser(html, tmp_path)
    assert_untouched(seen, page(harmless))
    text = " ".join(seen.text.split())
    for name in (*PAYLOADS, "attribute", "link", "refresh", "template", "entities"):
        assert HOSTILE[name] in text, name


@pytest.mark.parametrize("page", [feedback, report])
def test_the_policy_holds_without_escaping(
    page: Callable[[Texts], str], tmp_path: Path
) -> None:
    seen = in_a_browser(unescaped(page(hostile)), tmp_path)
    assert ("script", ()) in seen.elements
    assert seen.ran == set()


def test_names_and_statuses_stand_on_one_line_on_a_telephone(tmp_path: Path) -> None:
    """At 390 px each has one line, but a word of 80 letters; and the page is no wider than the
    screen.
    """
    made = replace(
        result(lambda name: "x"),
        questions=result(lambda name: "scaled_dot_product_attention").questions[:1],
    )
    names = ("Maximiliane Oberhauser", "ada", "w" * 80)
    marks = [
        replace(
            mark_from_result(replace(made, student=f"s{n}")),
            status="waits for a person",
            person=Person(name, name, "", "", {}),
        )
        for n, name in enumerate(names)
    ]
    page = _POLICY.sub("", "".join(render_report("a", marks)))
    measure = """
        const page = f.contentDocument, marks = document.documentElement.dataset;
        const lines = e => {
            const range = page.createRange();
            range.selectNodeContents(e);
            return new Set([...range.getClientRects()].map(box => box.top)).size;
        };
        const counted = selector =>
            [...page.querySelectorAll(selector)].map(e => lines(e) > 1 ? "n" : "1").join("");
        marks["names_" + counted(".by-student td.who .soft bdi")] = 1;
        marks["questions_" + counted("td > a > code")] = 1;
        marks["heads_" + counted("thead th").replaceAll("1", "")] = 1;
        marks["status_" + counted(".by-student td.status")] = 1;
        marks["wider_" + (page.documentElement.scrollWidth > 390)] = 1;
    """
    frame = (
        '<iframe id="f" width="390" height="900" style="border:0" '
        f'srcdoc="{escape(page)}"></iframe>'
    )
    script = f"<script>f.onload = () => {{{measure}}}</script>"
    seen = in_a_browser(
        f"<!DOCTYPE html><html><title>x</title><body>{frame}{script}</body></html>",
        tmp_path,
    )
    assert seen.ran == {
        "names_11n",
        "questions_1",
        "heads_",
        "status_111",
        "wider_false",
    }


def test_a_graded_submission_in_its_own_page(tmp_path: Path) -> None:
    """Messages, class names and source lines of a submission that was really graded."""
    from small_course import ANSWERS, write_course

    from autograder.grading.bench import Bench

    course = built_course(tmp_path / "course", write_course)
    name = next(iter(ANSWERS))
    every = " ".join(HOSTILE.values())

    def submission(text: str) -> str:
        head = ANSWERS[name].partition("\n")[0]
        raises = f"{head}\n    raise type({text!r}, (Exception,), {{}})({text!r})\n"
        return handed_in(
            {**ANSWERS, name: raises}, [f"raise ValueError({text!r})  # {text!a}"]
        )

    results = []
    try:
        with Bench(course, course.assignment("small")) as bench:
            for student, text in (("hostile", every), ("harmless", "a word")):
                path = tmp_path / f"{student}.ipynb"
                path.write_text(submission(text), encoding="utf-8")
                graded = bench.grader.grade(
                    bench.clients[0], FoundSubmission("student-001", path)
                )
                assert graded.result is not None, graded.problem
                results.append(graded.result)
    except IsolationUnavailable as error:
        pytest.skip(f"no isolation stands here: {error}")
    hostile_one, harmless_one = results
    assert hostile_one.score == harmless_one.score < harmless_one.max_score
    html = _POLICY.sub('<meta content="" http-equiv="x">', render_feedback(hostile_one))
    assert "&lt;script&gt;" in html
    assert_untouched(in_a_browser(html, tmp_path), render_feedback(harmless_one))
