"""Solution regions: what is cut out, what is kept, and which markers are refused."""

from __future__ import annotations

import pytest

from autograder.authoring import regions

TWO = (
    "class A:\n    def f(self):\n        ### BEGIN SOLUTION\n        return 1\n        ### END "
    "SOLUTION\n\n"
    + (
        "    def g(self):\n        x = 2\n        ### BEGIN SOLUTION\n        x += 1\n      "
        "  return x\n"
        "        ### END SOLUTION"
    )
)


def test_every_region_becomes_the_stub_at_its_own_indentation() -> None:
    assert regions.replace_answers(TWO, "raise E") == (
        "class A:\n    def f(self):\n        raise E\n\n    def g(self):\n        x = 2\n   "
        "     raise E"
    )


def test_the_answer_key_loses_the_markers_only() -> None:
    assert regions.complete(TWO) == (
        "class A:\n    def f(self):\n        return 1\n\n"
        "    def g(self):\n        x = 2\n        x += 1\n        return x"
    )


def test_answers_are_the_lines_between_the_markers() -> None:
    assert regions.answers(TWO) == [
        "        return 1",
        "        x += 1",
        "        return x",
    ]


def test_the_stub_names_its_question() -> None:
    stub = regions.question_stub("softmax")
    assert stub == 'raise NotImplementedError("softmax: write your answer here")'
    assert regions.is_stub_message("softmax: write your answer here")
    assert not regions.is_stub_message("softmax: not implemented")


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        (
            "a\n### BEGIN SOLUTION\nb",
            1,
            "### BEGIN SOLUTION without an ### END SOLUTION after it",
        ),
        (
            "a\n\n### END SOLUTION",
            2,
            "### END SOLUTION without a ### BEGIN SOLUTION before it",
        ),
        (
            "### BEGIN SOLUTION\nb\n### BEGIN SOLUTION\nc\n### END SOLUTION",
            2,
            "a second ### BEGIN SOLUTION before the ### END SOLUTION of the first",
        ),
        (
            "a\n### BEGIN SOLUTION\n\n### END SOLUTION",
            1,
            "the solution region is empty",
        ),
        (
            "## BEGIN SOLUTION\nb",
            0,
            "'## BEGIN SOLUTION' looks like a marker; "
            "write ### BEGIN SOLUTION or ### END SOLUTION on a line of its own",
        ),
        (
            "a\nb  ### END SOLUTION",
            1,
            "'b  ### END SOLUTION' looks like a marker; "
            "write ### BEGIN SOLUTION or ### END SOLUTION on a line of its own",
        ),
        (
            "# begin solution",
            0,
            "'# begin solution' looks like a marker; write ### BEGIN SOLUTION or ### END "
            "SOLUTION on a line of its own",
        ),
        (
            "### BEGIN HIDDEN TESTS",
            0,
            "'### BEGIN HIDDEN TESTS': graded tests belong in tests/hidden/, where no notebook "
            "can leak them",
        ),
    ],
)
def test_markers_that_do_not_pair_up_are_refused(
    source: str, line: int, message: str
) -> None:
    with pytest.raises(regions.RegionError) as caught:
        regions.check_regions(source)
    assert (caught.value.line, str(caught.value)) == (line, message)


def test_prose_about_solutions_is_no_marker() -> None:
    regions.check_regions(
        "In the end solutions differ: we begin, solution by solution."
    )
