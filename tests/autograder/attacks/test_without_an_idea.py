"""Answers without an idea earn nothing on a real assignment, question by question, beside right
answers.
"""

from __future__ import annotations

from pathlib import Path

from without_an_idea import KINDS, without_an_idea

from autograder.course import load_course
from autograder.grading.bench import Bench
from autograder.proof.trials import Proctor, Trial

REPOSITORY = Path(__file__).resolve().parents[3]


def test_they_earn_nothing_in_any_question_of_a2() -> None:
    course = load_course(REPOSITORY)
    with Bench(course, course.assignment("a2_attention"), "auto", clients=2) as bench:
        trials = [
            Trial("trivial", cell.id, kind, without_an_idea(kind, cell.source))
            for cell in bench.grader.key.submission.cells
            if cell.id in bench.grader.questions
            for kind in KINDS
        ]
        tried = list(Proctor(bench).run(trials))
        worth = {
            (q.name, t.name): t.points
            for q in bench.grader.questions.values()
            for t in q.tests
        }
    assert len(tried) == 12 * len(KINDS)
    assert [one.problem for one in tried if one.problem] == []
    earned = [
        (one.trial.question, one.trial.name, test.name)
        for one in tried
        for test in one.tests
        if test.outcome == "passed" and worth[one.trial.question, test.name] > 0
    ]
    assert earned == []
