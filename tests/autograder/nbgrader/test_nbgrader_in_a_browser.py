"""nbgrader's own feedback page, as this course makes it, in a real browser."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nbgrader_course import TinyCourse, release_cells, result_for

from autograder.nbgrader import feedback_exporter, student_html
from autograder.records.model import Graded

sys.path.append(str(Path(__file__).resolve().parents[1] / "outputs"))

from browser import HOSTILE, IN_AN_ATTRIBUTE, PAYLOADS, in_a_browser, needs_chromium

pytestmark = [needs_chromium, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

_STUDENT = re.sub(r"[/\x00-\x1f]", "", PAYLOADS["image"])  # a folder's name


def _hand_in(tiny: TinyCourse, graded: dict[str, Any], text: str, student: str) -> None:
    """Text of a student's in the answers, in Markdown, in outputs, in cells of their own and in the
    result's words.
    """
    cells = release_cells()
    cells[0].source = f"# Mine\n\n{text}"
    cells[2].source = f"def double(x):\n    return {text!r}"
    cells[-1].source = f"Because {text}"
    extra = type(cells[2])(
        cell_type="code",
        execution_count=1,
        id="extra",
        metadata={},
        source=f"print({text!r})",
        outputs=[
            {"output_type": "display_data", "metadata": {}, "data": {"text/html": text}}
        ],
    )
    tiny.hand_in(student, [*cells, extra])
    made = result_for(student)
    half = replace(
        made.questions[1], tests=(replace(made.questions[1].tests[0], message=text),)
    )
    cell = replace(made.cells[0], outcome="error", message=text)
    graded[student] = Graded(
        student, replace(made, questions=(made.questions[0], half), cells=(cell,))
    )


def test_nothing_of_a_submission_runs(
    tiny: TinyCourse, graded: dict[str, Any], tmp_path: Path
) -> None:
    text = " ".join(
        [*PAYLOADS.values(), IN_AN_ATTRIBUTE, HOSTILE["link"], HOSTILE["refresh"]]
    )
    _hand_in(tiny, graded, text, _STUDENT)
    tiny.autograde()
    html = tiny.feedback(_STUDENT)
    assert "onerror" in html
    page = in_a_browser(html, tmp_path)
    assert page.ran == set()
    assert not {"iframe", "base", "form", "animate", "video", "math"} & {
        tag for tag, _ in page.elements
    }
    assert not [
        names
        for tag, names in page.elements
        if any(n.startswith("on") or n == "srcdoc" for n in names)
    ]
    assert "Because" in page.text
    assert not [
        link
        for link in page.links
        if link.startswith("javascript:") or link == "elsewhere.html"
    ]


def test_without_our_markdown_and_policy_it_would(
    tiny: TinyCourse,
    graded: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The payload does run on this page where nbconvert renders Markdown by itself; the policy
    alone stops it, too.
    """
    _hand_in(tiny, graded, PAYLOADS["image"], "ada")
    tiny.autograde()
    monkeypatch.setattr(student_html, "_clean", lambda html, attachments: html)
    student_html._without_attachments.cache_clear()
    assert in_a_browser(tiny.feedback("ada"), tmp_path).ran == set()
    monkeypatch.setattr(feedback_exporter, "_POLICY", "")
    assert in_a_browser(tiny.feedback("ada"), tmp_path).ran == {"image"}
    student_html._without_attachments.cache_clear()
