"""Grades strangers' answers, and says what suites and hints are worth for people who never saw
them.

    python benchmarks/strangers.py [ASSIGNMENT …] [--set NAME] [--half seen|unseen]
                                   [--report docs/suites.md]

In the course, whose solutions must be built. Each answer takes the place of the answer key's for
its question and is graded like a student's submission, behind this machine's best walls: its
question and those that build on it. The results go to `strangers/measured/`, and a review sheet for
each assignment to `build/strangers/`. A person reads it, and writes into the answers' file whether
the hints are true (`named`, `told`) and who is right where label and result contradict each other
(`truly_wrong`). `--report` without an assignment grades nothing, and puts the table of the unseen
halves into a page.

Answers wear out: once suites and hints were mended with a set, it measures no more. A further set
stands in a folder of its own, `strangers/NAME/ASSIGNMENT.toml`, and `--set NAME` grades and reports
that set alone; its results go to `strangers/NAME/measured/`, and its table between the marks
`begin of strangers NAME` and `end of strangers NAME` of the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from strangers_figures import (
    GradedAnswer,
    Half,
    StrangersAnswer,
    assignments,
    figures_of,
    folder_of,
    load_answers,
    load_graded,
    open_decisions,
    store_graded,
)

from autograder.course import Course, load_course
from autograder.grading.bench import Bench
from autograder.grading.extras import find_extras
from autograder.proof.code_mutants import Variant
from autograder.proof.proof_report import markdown_table
from autograder.proof.trials import examine_each, grade_answer
from autograder.records.submission import FoundSubmission
from autograder.sandbox.host_process import HostClient
from autograder.suite.prerequisites import affected_questions

GRADERS = 2
"""Processes that grade beside each other."""


def grade(
    course: Course, assignment_name: str, answers: Sequence[StrangersAnswer]
) -> tuple[list[GradedAnswer], list[str]]:
    """The results of the answers, and why the others could not be graded."""
    assignment = course.assignment(assignment_name)
    key = FoundSubmission("key", assignment.solution)
    extras = find_extras(assignment, [key], course.limits)
    with Bench(course, assignment, clients=GRADERS, extras=extras) as bench:
        uses = {
            name: question.uses for name, question in bench.grader.questions.items()
        }

        def grade_variant(client: HostClient, variant: Variant) -> GradedAnswer:
            affected = affected_questions(variant.question, uses)
            results = grade_answer(bench, client, variant, affected)
            questions = {result.name: result for result in results}
            question = questions.pop(variant.question)
            diagnoses = [
                named for named in (question.diagnosis, *question.slips) if named
            ]
            return GradedAnswer(
                variant.name,
                lost=round(1 - question.score / question.max_score, 4),
                elsewhere={
                    name: round(other.max_score - other.score, 4)
                    for name, other in questions.items()
                    if other.score < other.max_score
                },
                mistakes=tuple(diagnosis.mistake for diagnosis in diagnoses),
                hints=tuple(diagnosis.hint for diagnosis in diagnoses),
                evidence=question.evidence,
                failed={
                    test.name: test.message
                    for test in question.tests
                    if test.outcome != "passed"
                },
            )

        variants = [
            Variant(answer.question, answer.id, answer.code) for answer in answers
        ]
        return examine_each(bench, variants, grade_variant, GradedAnswer)


def print_results(
    answers: Sequence[StrangersAnswer], graded: dict[str, GradedAnswer]
) -> None:
    """A line for each answer, and the figures of each half."""
    for answer in answers:
        if result := graded.get(answer.id):
            kind = "right" if answer.right else f"{len(answer.faults)} wrong"
            elsewhere = f" elsewhere {result.elsewhere}" if result.elsewhere else ""
            mistakes = ", ".join(result.mistakes) or "–"
            print(
                f"{answer.id:45} {kind:8} lost {result.lost:4.0%}{elsewhere}  {mistakes}"
            )
            for hint in (*result.hints, result.evidence):
                if hint:
                    print(f"    {hint}")
    halves: tuple[Half, ...] = ("seen", "unseen")
    rows = []
    for half in halves:
        if of_half := [answer for answer in answers if answer.half == half]:
            rows.append(figures_of(of_half, graded).row(half))
    print(markdown_table(rows))


def review_sheet(
    answers: Sequence[StrangersAnswer], graded: dict[str, GradedAnswer]
) -> str:
    """Everything that a person needs to judge the answers' results, as text."""
    parts = []
    for answer in answers:
        if answer.id not in graded:
            continue
        result = graded[answer.id]
        lines = [
            f"== {answer.id} ({answer.question}, {answer.half})",
            answer.code.strip(),
            "",
        ]
        lines += [f"label: {fault}" for fault in answer.faults or ("right",)]
        lines.append(f"lost: {result.lost:.0%} {result.elsewhere or ''}".rstrip())
        lines += [f"hint: {hint}" for hint in result.hints]
        if result.evidence:
            lines.append(f"evidence: {result.evidence}")
        lines += [
            f"failed: {name}: {message}" for name, message in result.failed.items()
        ]
        lines += [
            f"TO DECIDE {decision}" for decision in open_decisions(answer, result)
        ]
        lines.append(f"told = {list(result.mistakes)}".replace("'", '"'))
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def write_report(page: Path, set_name: str) -> None:
    """Put the figures of a set's unseen halves between the two marks of a page.

    Raises:
        SystemExit: the page lacks the marks.
    """
    folder = folder_of(set_name)
    title = f"strangers {set_name}".strip()
    begin, end = f"<!-- begin of {title} -->", f"<!-- end of {title} -->"
    text = page.read_text(encoding="utf-8")
    if begin not in text or end not in text:
        raise SystemExit(
            f"{page} lacks the lines {begin} and {end}: put them where the table goes"
        )
    rows = []
    all_answers: list[StrangersAnswer] = []
    all_graded: dict[str, GradedAnswer] = {}
    for assignment in assignments(folder):
        graded = load_graded(assignment, folder)
        answers = load_answers(assignment, folder)
        unseen = [answer for answer in answers if answer.half == "unseen"]
        if not graded:
            continue
        for answer in unseen:
            for decision in open_decisions(answer, graded[answer.id]):
                print(f"{assignment}: {answer.id}: {decision}")
        rows.append(figures_of(unseen, graded).row(assignment))
        all_answers += unseen
        all_graded |= graded
    rows.append(figures_of(all_answers, all_graded).row("all"))
    before, rest = text.split(begin)
    _, after = rest.split(end)
    page.write_text(
        f"{before}{begin}\n{markdown_table(rows)}\n{end}{after}", encoding="utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT")
    parser.add_argument("--set", default="", dest="set_name", metavar="NAME")
    parser.add_argument("--half", choices=["seen", "unseen"])
    parser.add_argument("--report", type=Path, metavar="PAGE")
    options = parser.parse_args()
    course = load_course(Path.cwd())
    folder = folder_of(options.set_name)
    names = options.assignments
    if not names and not options.report:
        names = assignments(folder)
    sheets = Path("build", "strangers", options.set_name)
    for name in names:
        answers = load_answers(name, folder)
        chosen = [answer for answer in answers if options.half in (None, answer.half)]
        graded, problems = grade(course, name, chosen)
        store_graded(name, graded, folder)
        by_id = load_graded(name, folder)
        print(f"{name}:")
        print_results(chosen, by_id)
        for problem in problems:
            print(f"not graded: {problem}")
        sheets.mkdir(parents=True, exist_ok=True)
        sheet = sheets / f"{name}.txt"
        sheet.write_text(review_sheet(chosen, by_id), encoding="utf-8")
        print(f"review sheet: {sheet}")
    if options.report:
        write_report(options.report, options.set_name)


if __name__ == "__main__":
    main()
