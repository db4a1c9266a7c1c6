"""Results as JUnit XML, for continuous integration and editors."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from autograder.basics.safe_text import clean, one_line, shorten
from autograder.records.model import Graded, Result, TestOutcome

LONGEST_MESSAGE = 4000
_FAILURES = ("failed", "forbidden")  # a wrong answer; every other outcome but "passed" is an error


def junit_xml(results: Sequence[Result], problems: Sequence[Graded] = ()) -> Iterator[str]:
    """One test suite a submission, one test case a test. `problems` become suites with one error.

    In pieces: of a large class no more than one suite is in memory. The sums come first, so results
    are counted before.
    """
    sums = Counter[str](tests=len(problems), failures=0, errors=len(problems))
    for result in results:
        sums.update(_counts(result))
    written = "".join(f' {name}="{count}"' for name, count in sums.items())
    some = bool(results or problems)
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{written}{">" if some else " />"}\n'
    for result in results:
        yield _text(_suite_of(result))
    for problem in problems:
        suite = _suite(one_line(problem.student), {"tests": 1, "failures": 0, "errors": 1})
        case = ElementTree.SubElement(
            suite, "testcase", classname=one_line(problem.student), name="can be graded"
        )
        _add_reason(case, "error", "not graded", problem.problem)
        yield _text(suite)
    if some:
        yield "</testsuites>\n"


def _text(suite: ElementTree.Element) -> str:
    ElementTree.indent(suite, level=1)
    return f"  {ElementTree.tostring(suite, encoding='unicode')}\n"


def _counts(result: Result) -> dict[str, int]:
    outcomes = [test.outcome for question in result.questions for test in question.tests]
    failures = sum(outcome in _FAILURES for outcome in outcomes)
    errors = len(outcomes) - failures - outcomes.count("passed")
    return {"tests": len(outcomes), "failures": failures, "errors": errors}


def _suite_of(result: Result) -> ElementTree.Element:
    name = f"{one_line(result.assignment)}.{one_line(result.student)}"
    suite = _suite(name, _counts(result))
    for question in result.questions:
        for test in question.tests:
            _add_case(suite, f"{name}.{one_line(question.name)}", test)
    return suite


def _suite(name: str, counts: Mapping[str, int]) -> ElementTree.Element:
    return ElementTree.Element(
        "testsuite", {"name": name, **{k: str(v) for k, v in counts.items()}}
    )


def _add_case(suite: ElementTree.Element, classname: str, test: TestOutcome) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=classname, name=one_line(test.name))
    if test.outcome != "passed":
        _add_reason(
            case, "failure" if test.outcome in _FAILURES else "error", test.outcome, test.message
        )


def _add_reason(case: ElementTree.Element, kind: str, type_: str, message: str) -> None:
    text = shorten(clean(message), LONGEST_MESSAGE)
    reason = ElementTree.SubElement(case, kind, type=type_, message=shorten(one_line(message), 200))
    reason.text = text
