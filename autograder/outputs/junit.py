"""Results as JUnit XML, for continuous integration and editors."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from autograder.model import Graded, Result, TestOutcome
from autograder.text import clean, one_line, shorten

LONGEST_MESSAGE = 4000
_FAILURES = ("failed", "forbidden")  # a wrong answer; every other outcome but "passed" is an error


def junit_xml(results: Sequence[Result], problems: Sequence[Graded] = ()) -> str:
    """One test suite a submission, one test case a test. `problems` become suites with one error."""
    root = ElementTree.Element("testsuites")
    for result in results:
        _add_suite(root, result)
    for problem in problems:
        suite = _suite(root, one_line(problem.student), tests=1, failures=0, errors=1)
        case = ElementTree.SubElement(suite, "testcase", classname=one_line(problem.student), name="can be graded")
        _add_reason(case, "error", "not graded", problem.problem)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_suite(root: ElementTree.Element, result: Result) -> None:
    outcomes = [test.outcome for question in result.questions for test in question.tests]
    failures = sum(outcome in _FAILURES for outcome in outcomes)
    errors = len(outcomes) - failures - outcomes.count("passed")
    name = f"{one_line(result.assignment)}.{one_line(result.student)}"
    suite = _suite(root, name, tests=len(outcomes), failures=failures, errors=errors)
    for question in result.questions:
        for test in question.tests:
            _add_case(suite, f"{name}.{one_line(question.name)}", test)


def _suite(root: ElementTree.Element, name: str, **counts: int) -> ElementTree.Element:
    return ElementTree.SubElement(root, "testsuite", {"name": name, **{k: str(v) for k, v in counts.items()}})


def _add_case(suite: ElementTree.Element, classname: str, test: TestOutcome) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=classname, name=one_line(test.name))
    if test.outcome != "passed":
        _add_reason(case, "failure" if test.outcome in _FAILURES else "error", test.outcome, test.message)


def _add_reason(case: ElementTree.Element, kind: str, type_: str, message: str) -> None:
    text = shorten(clean(message), LONGEST_MESSAGE)
    reason = ElementTree.SubElement(case, kind, type=type_, message=shorten(one_line(message), 200))
    reason.text = text
