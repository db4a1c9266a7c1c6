"""Results as JUnit XML, for continuous integration and editors."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element

from autograder.basics.safe_text import clean, one_line, shorten
from autograder.records.model import Graded, Result

LONGEST_MESSAGE = 4000
_FAILURES = (
    "failed",
    "forbidden",
)  # a wrong answer; every other outcome but "passed" is an error


def junit_xml(
    results: Sequence[Result], problems: Sequence[Graded] = ()
) -> Iterator[str]:
    """A test suite for each submission, a test case for each test; a problem is a suite too.

    Comes in pieces: of a large class only one suite is in memory. The sums stand at the top, so
    results are counted first.
    """
    sums = Counter[str](tests=len(problems), failures=0, errors=len(problems))
    for result in results:
        sums.update(_count(result))
    attributes = ""
    for name, count in sums.items():
        attributes += f' {name}="{count}"'
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    if not results and not problems:
        yield f"<testsuites{attributes} />\n"
        return
    yield f"<testsuites{attributes}>\n"
    for result in results:
        yield _text(_suite_of(result))
    for problem in problems:
        student = one_line(problem.student)
        counts = {"tests": 1, "failures": 0, "errors": 1}
        suite = _suite(student, counts)
        case = _case(suite, student, "can be graded")
        _add_reason(case, "error", "not graded", problem.problem)
        yield _text(suite)
    yield "</testsuites>\n"


def _text(suite: Element) -> str:
    ElementTree.indent(suite, level=1)
    return f"  {ElementTree.tostring(suite, encoding='unicode')}\n"


def _count(result: Result) -> dict[str, int]:
    tests = 0
    passed = 0
    failures = 0
    for question in result.questions:
        for test in question.tests:
            tests += 1
            passed += test.outcome == "passed"
            failures += test.outcome in _FAILURES
    errors = tests - passed - failures
    return {"tests": tests, "failures": failures, "errors": errors}


def _suite_of(result: Result) -> Element:
    name = f"{one_line(result.assignment)}.{one_line(result.student)}"
    suite = _suite(name, _count(result))
    for question in result.questions:
        classname = f"{name}.{one_line(question.name)}"
        for test in question.tests:
            case = _case(suite, classname, one_line(test.name))
            if test.outcome in _FAILURES:
                _add_reason(case, "failure", test.outcome, test.message)
            elif test.outcome != "passed":
                _add_reason(case, "error", test.outcome, test.message)
    return suite


def _suite(name: str, counts: Mapping[str, int]) -> Element:
    attributes = {attribute: str(count) for attribute, count in counts.items()}
    return Element("testsuite", {"name": name, **attributes})


def _case(suite: Element, classname: str, name: str) -> Element:
    return ElementTree.SubElement(suite, "testcase", classname=classname, name=name)


def _add_reason(case: Element, kind: str, outcome: str, message: str) -> None:
    short = shorten(one_line(message), 200)
    reason = ElementTree.SubElement(case, kind, type=outcome, message=short)
    reason.text = shorten(clean(message), LONGEST_MESSAGE)
