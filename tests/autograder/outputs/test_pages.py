"""The feedback page and the class report: what they say, and that no text in them acts."""

import base64
import dataclasses
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from autograder.basics.file_transaction import FileTransaction
from autograder.basics.safe_text import clean
from autograder.basics.whole_files import write_whole
from autograder.intake.collected import Collected
from autograder.marks.late_policy import Lateness
from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs.class_report import render_report, write_report
from autograder.outputs.feedback_page import feedback_path, render_feedback
from autograder.outputs.outcome_words import cap_note, carried_note, kept_note
from autograder.outputs.pages import prose
from autograder.outputs.statistics import (
    class_shares,
    histogram,
    summarize_questions,
    summarize_timing,
)
from autograder.records.model import (
    Diagnosis,
    Graded,
    ManualGrades,
    ManualScore,
    Result,
    TwoAnswers,
)
from autograder.suite.prerequisites import prerequisites

VOID = {"meta", "br", "rect", "link", "img", "input"}


class Page(HTMLParser):
    """The elements and the text of a page; complains about tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = self.style = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(
        self, tag: str, attributes: list[tuple[str, str | None]]
    ) -> None:
        self.elements.append((tag, dict(attributes)))
        self.text += " " if tag in ("br", "td", "th") else ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(
        self, tag: str, attributes: list[tuple[str, str | None]]
    ) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.style += data
        else:
            self.text += data


def words(html: str) -> str:
    return " ".join(Page(html).text.split())


def assert_harmless(html: str) -> None:
    page = Page(html)
    assert not {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "form",
        "base",
        "i",
        "b",
    } & {tag for tag, _ in page.elements}
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {
        name for name in names if name.startswith("on") or name in ("style", "src")
    }
    targets = [
        attributes["href"] for _, attributes in page.elements if "href" in attributes
    ]
    assert all(re.fullmatch(r"#question-\d+", target or "") for target in targets)
    assert clean(html) == html
    policy = next(
        a["content"]
        for _, a in page.elements
        if a.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert (
        policy
        == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in page.style
    assert "@import" not in page.style


def test_feedback_says_what_was_lost_and_why(plain: Result) -> None:
    text = words(render_feedback(plain, {"attention": ["softmax"]}))
    assert "Feedback for ada 11 of 20 points" in text
    assert (
        "softmax 2 of 4 points Look here first. Each row should sum to 1: does dim point "
        "at the keys?" in text
    )
    assert (
        "each query distributes over the keys 0 of 2 · not right yet softmax(z[4, 7]) differs "
        "first at [0, 1]." in text
    )
    assert (
        "You lost nothing here for the mistake in softmax: with a right answer in its place, "
        "yours passes" in text
    )
    assert (
        "What failed with the earlier mistake in place causal 0 of 4 · not right yet row 0 "
        "looks ahead." in text
    )
    assert "library was put back as released: it differed from the release" in text
    assert "attention ran: there were two copies; the first one counts" in text
    assert "heat_map did not run" in text
    assert "without isolation" not in text


def test_tests_that_fail_alike_share_one_message(plain: Result) -> None:
    text = words(render_feedback(plain))
    assert text.count("there is no split_heads") == 1
    assert (
        "order of heads 0 of 4 · your notebook does not define it merge undoes split 0 of 3"
        in text
    )


def test_passed_tests_are_folded_away(plain: Result) -> None:
    html = render_feedback(plain)
    assert (
        html.count("<details>") == 4
    )  # passed tests of three questions, and what cost nothing
    assert "<details open" not in html


def test_hostile_feedback_is_text(hostile: Result) -> None:
    html = render_feedback(hostile)
    assert_harmless(html)
    text = words(html)
    assert "<script>alert(1)</script>" in text
    assert "[link](javascript:alert(1))" in text
    assert "<b>bold</b> ünïcode 数 �" in text
    assert "Graded without isolation." in text
    assert "(8000 characters more)" in text


def test_plain_pages_keep_the_policy(plain: Result) -> None:
    assert_harmless(render_feedback(plain))
    assert_harmless("".join(render_report("attention", [mark_from_result(plain)])))


def test_code_in_backticks_is_escaped_code() -> None:
    assert (
        prose("use `a<b` & `c`, not `")
        == "use <code>a&lt;b</code> &amp; <code>c</code>, not `"
    )


def test_partly_carried_points_are_counted(plain: Result) -> None:
    from dataclasses import replace

    question = replace(plain.questions[1], score=5.0, carried=3.0)
    assert carried_note(question, plain, ["softmax"]) == (
        "3 of these points count in spite of the mistake in `softmax`: "
        "with a right answer in its place, yours passes more tests."
    )
    assert carried_note(question, plain, []).startswith(
        "3 of these points count in spite of a mistake in a question"
    )
    assert carried_note(plain.questions[0], plain, ["heads"]) == ""


def test_prerequisites_of_prerequisites_count() -> None:
    uses = {
        "block": ["attention", "norm"],
        "attention": ["softmax"],
        "softmax": ["block"],
    }
    assert prerequisites("block", uses) == ["attention", "norm", "softmax"]
    assert prerequisites("norm", uses) == []


def test_feedback_lies_where_nbgrader_looks(tmp_path: Path) -> None:
    assert (
        feedback_path(tmp_path, "attention", "ada")
        == tmp_path / "ada" / "attention" / "attention.html"
    )


def test_no_submission_has_no_questions_to_show(plain: Result) -> None:
    from dataclasses import replace

    empty = replace(plain, questions=(), cells=(), score=0.0, max_score=0.0)
    assert "0 of 0 points" in words(render_feedback(empty))
    assert_harmless("".join(render_report("attention", [mark_from_result(empty)])))


def test_the_page_adds_what_a_person_gave(plain: Result) -> None:
    waits = dataclasses.replace(
        mark_from_result(plain), status="waits for a person", max_score=25.0
    )
    text = words(render_feedback(plain, mark=waits))
    assert (
        "11 of 20 points Up to 5 more points, for written answers, are given by a person."
        in text
    )
    hand = ManualGrades(
        "ada",
        (ManualScore("why", 5.0, 4.0, comment="Say <b>why</b> rows sum to 1."),),
        (
            ManualScore("heads", 10.0, 8.0, extra_credit=1.0, comment="Nearly."),
            ManualScore("softmax", 4.0, None),
        ),
    )
    given = dataclasses.replace(
        mark_from_result(plain),
        by_hand=hand,
        written=5.0,
        score=21.0,
        total=18.5,
        max_score=25.0,
        late=Lateness(10.0),
    )
    html = render_feedback(plain, mark=given)
    text = words(html)
    assert (
        "Feedback for ada 21 of 25 points 18.5 count, since it was handed in late."
        in text
    )
    assert "why 4 of 5 points Say <b>why</b> rows sum to 1." in text
    assert (
        "Looked at by a person heads counts 8 points, 1 of extra credit: Nearly."
        in text
    )
    assert_harmless(html.replace("#written-", "#question-"))


def test_report_counts_the_class(
    plain: Result, hostile: Result, problem: Graded
) -> None:
    timing = [
        Graded("ada", seconds={"read": 0.5, "tests": 1.5}),
        dataclasses.replace(problem, seconds={"read": 1.0}),
    ]
    broken = Mark(problem.student, "could not be graded", problem.problem)
    html = "".join(
        render_report(
            "attention",
            [mark_from_result(plain), mark_from_result(hostile), broken],
            timing,
        )
    )
    assert_harmless(html)
    text = words(html)
    assert "2 graded, 1 could not be graded" in text
    assert "44.2% mean · 44.2% median" in text  # 11/20 and 1/3
    assert "1 graded without isolation." in text
    assert "Results of 2 different suites." in text
    assert (
        "student-005<script>alert(1)</script> could not be graded: not a notebook "
        "[link](javascript:alert(1))red" in text
    )
    assert (
        "1 softmax_over_queries Each row should sum to 1: does dim point at the keys?"
        in text
    )
    assert "Median 1.5 s a submission. Slowest: ada with 2 s." in text
    assert "read 1.5 s · tests 1.5 s over all submissions" in text


def test_report_of_nobody(problem: Graded) -> None:
    html = "".join(
        render_report(
            "attention", [Mark(problem.student, "could not be graded", problem.problem)]
        )
    )
    assert_harmless(html)
    assert "0 graded, 1 could not be graded" in words(html)


def test_the_class_is_there_in_three_orders_without_a_script(plain: Result) -> None:
    better = dataclasses.replace(plain, student="zoe", score=19.0)
    html = "".join(
        render_report(
            "attention",
            [
                mark_from_result(plain),
                Mark("max", "handed in nothing"),
                mark_from_result(better),
            ],
        )
    )
    tables = re.findall(r'<table class="class">.*?</table>', html, re.DOTALL)
    assert len(tables) == 3
    for table, order in zip(
        tables,
        (["ada", "max", "zoe"], ["zoe", "ada", "max"], ["max", "ada", "zoe"]),
        strict=True,
    ):
        assert re.findall(r"<bdi>(\w+)</bdi>", table) == order
    assert html.count('type="radio"') == 3
    assert html.count(" checked>") == 1


def test_every_question_has_a_column_with_its_number(plain: Result) -> None:
    many = tuple(
        dataclasses.replace(plain.questions[0], name=f"q{i}") for i in range(1, 12)
    )
    html = "".join(
        render_report(
            "attention", [mark_from_result(dataclasses.replace(plain, questions=many))]
        )
    )
    assert re.findall(r'<th scope="col" class="sign" title="q(\d+)">(\d+)</th>', html)[
        :11
    ] == [(str(i), str(i)) for i in range(1, 12)]


def test_the_report_leads_to_the_pages(tmp_path: Path, plain: Result) -> None:
    odd = dataclasses.replace(plain, student="Åda #1?")
    marks = [mark_from_result(plain), mark_from_result(odd)]
    write_whole(
        feedback_path(tmp_path / "feedback", "attention", odd.student),
        render_feedback(odd),
    )
    with FileTransaction(tmp_path / "kept", "a test") as files:
        path = write_report(
            files,
            tmp_path / "results",
            "attention",
            marks,
            [],
            Collected(),
            tmp_path / "feedback",
        )
    assert path == tmp_path / "results" / "attention.html"
    links = set(re.findall(r'href="(\.\.[^"]+)"', path.read_text(encoding="utf-8")))
    assert links == {"../feedback/%C3%85da%20%231%3F/attention/attention.html"}


def test_the_report_shows_what_collect_did(plain: Result) -> None:
    said = (
        "2 submissions of attention: 2 new",
        "eve: has no notebook here: eve.pdf: not a notebook",
    )
    text = words(
        "".join(
            render_report(
                "attention",
                [mark_from_result(plain)],
                collected=Collected(source="all.zip", said=said),
            )
        )
    )
    assert (
        "Collected The last download: all.zip 2 submissions of attention: 2 new eve: has no "
        "notebook here" in text
    )


@pytest.mark.parametrize(
    ("score", "bin_"), [(0.0, 0), (1.99, 0), (2.0, 1), (6.0, 3), (19.9, 9), (20.0, 9)]
)
def test_histogram_bins(plain: Result, score: float, bin_: int) -> None:
    from dataclasses import replace

    counts = histogram(class_shares([mark_from_result(replace(plain, score=score))]))
    assert counts == [1 if i == bin_ else 0 for i in range(10)]


def flagged(result: Result, flag: TwoAnswers) -> Result:
    first, *others = result.questions
    return dataclasses.replace(
        result, questions=(dataclasses.replace(first, two_answers=(flag,)), *others)
    )


def test_report_shows_both_answers_to_one_call(plain: Result) -> None:
    runs = ("a worker that had served other questions", "a fresh worker, which counts")
    flag = TwoAnswers(
        "test_is_stable",
        "softmax(z[4, 7])",
        runs,
        ("float64[4, 7], at [0, 1]: 2", "ValueError: no"),
    )
    html = "".join(render_report("attention", [mark_from_result(flagged(plain, flag))]))
    text = words(html)
    assert "Two answers to one call" in text
    assert (
        "ada softmax softmax(z[4, 7]) test_is_stable a worker that had served other questions: "
        "float64[4, 7], at [0, 1]: 2 a fresh worker, which counts: ValueError: no"
    ) in text
    assert "Two answers" not in "".join(
        render_report("attention", [mark_from_result(plain)])
    )
    # for a person to judge first
    assert "ValueError: no" not in render_feedback(flagged(plain, flag))


def test_answers_in_the_report_are_text(plain: Result) -> None:
    attack = "<script>alert(1)</script> <b>b</b> [link](javascript:alert(1)) \x1b[31m"
    flag = TwoAnswers(attack, attack, (attack, attack), (attack, attack))
    assert_harmless(
        "".join(render_report("attention", [mark_from_result(flagged(plain, flag))]))
    )


def test_statistics_of_a_question(plain: Result, hostile: Result) -> None:
    softmax, attention, heads = summarize_questions([plain, plain, hostile])
    assert (softmax.mean, softmax.max_score, softmax.right_share) == (5 / 3, 4.0, 0.0)
    assert softmax.mean_share == pytest.approx((0.5 + 0.5 + 1 / 3) / 3)
    assert [(name, count) for (name, _), count in softmax.mistakes] == [
        ("softmax_over_queries", 2),
        ("mistake", 1),
    ]
    assert softmax.failing[0] == ("each query distributes over the keys", 2)
    assert (attention.right_share, attention.carried, attention.failing) == (
        1.0,
        2,
        (("causal", 2),),
    )
    assert heads.mean == 3.0


def test_no_times_no_summary() -> None:
    assert summarize_timing([Graded("ada")]) is None


def test_a_slip_keeps_its_share_and_a_second_one_stands_under_its_test(
    plain: Result,
) -> None:
    """3 of 6 points kept where the tests give 1; the second mistake explains one test and is said
    there, and the page says that each has its own price. A slip by itself is called the one slip.
    """
    softmax = dataclasses.replace(
        plain.questions[0],
        score=3.0,
        max_score=6.0,
        kept=2.0,
        slips=(
            Diagnosis(
                "no_checks",
                "Which sizes cannot be right?",
                ("test_each_query_distributes_over_the_keys",),
            ),
        ),
    )
    text = words(render_feedback(dataclasses.replace(plain, questions=(softmax,))))
    assert (
        "You keep 3 of 6 points: a known slip costs what it costs by itself, and "
        "whatever else failed" in text
    )
    failed = tuple(test.name for test in softmax.tests if test.outcome != "passed")
    assert softmax.diagnosis is not None
    alone = dataclasses.replace(
        softmax,
        slips=(),
        diagnosis=dataclasses.replace(softmax.diagnosis, tests=failed),
    )
    assert kept_note(alone) == "You keep 3 of 6 points for this slip."
    repaired = dataclasses.replace(softmax, slips=(), diagnosis=None)
    assert kept_note(repaired) == (
        "You keep 3 of 6 points: an answer that one change makes right costs what a slip costs."
    )
    capped = dataclasses.replace(softmax, capped=1.0)
    page = words(render_feedback(dataclasses.replace(plain, questions=(capped,))))
    assert "gets at most half of its question's points: 3 of 6 points here." in page
    assert cap_note(softmax) == ""
    assert (
        "softmax(z[4, 7]) differs first at [0, 1]. Which sizes cannot be right?" in text
    )
    statistics = summarize_questions(
        [dataclasses.replace(plain, questions=(softmax,))]
    )[0]
    assert statistics.kept == 1
    assert [(name, count) for (name, _), count in statistics.mistakes] == [
        ("softmax_over_queries", 1),
        ("no_checks", 1),
    ]
