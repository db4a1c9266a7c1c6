"""Shares of a class (`--share 3/16`): they make the results of the whole class, also where several
run at once.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from courses import handed_in
from small_course import ANSWERS

from autograder.basics.errors import KitError, ResultsInUse
from autograder.basics.whole_files import write_whole
from autograder.cli.commands import main
from autograder.course import Course
from autograder.grading import batch
from autograder.grading.request import GradeRequest, GradeSummary
from autograder.grading.run import grade_command
from autograder.grading.share import Share, parse_share
from autograder.records.model import Graded, QuestionResult, Result, TestOutcome
from autograder.records.results import (
    course_sha256,
    lock_results,
    read_timing,
    result_bytes,
)
from autograder.records.submission import FoundSubmission

STUDENTS = ("ada", "bob", "cyd", "dan", "eve", "fay", "gus")
Grade = Callable[..., GradeSummary]


def test_shares_are_the_class_without_overlap() -> None:
    found = [FoundSubmission(student, Path()) for student in STUDENTS]
    shares = [
        [submission.student for submission in Share(number, 3).select(found)]
        for number in (1, 2, 3)
    ]
    assert shares == [["ada", "dan", "gus"], ["bob", "eve"], ["cyd", "fay"]]
    assert Share(9, 9).select(found) == []


@pytest.mark.parametrize(
    "text",
    ["0/16", "17/16", "x", "3", "3/0", "-1/3", "3/16/2", " 3/16", "1.5/3", "٣/١٦", ""],
)
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(KitError, match="write the third of sixteen shares as 3/16"):
        parse_share(text)


@pytest.mark.parametrize("number", [1, 3, 16])
def test_the_first_and_the_last_share_are_shares(number: int) -> None:
    assert parse_share(f"{number}/16") == Share(number, 16)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--share", "0/16"), "--share 0/16:"),
        (("--share", "1/2", "--cluster", "local:2"), "--share does not go with"),
    ],
)
def test_the_command_refuses(
    more: tuple[str, ...], said: str, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(course.root)
    done = CliRunner().invoke(main, ["grade", "small", *more])
    assert (done.exit_code, said in done.output) == (2, True)


@pytest.fixture
def grade(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grade:
    """Run the command on a class of seven, where grading is nothing; `after` is called after each
    submission.
    """
    assignment = course.assignment("small")
    for student in STUDENTS:
        write_whole(tmp_path / "handed-in" / f"{student}.ipynb", handed_in(ANSWERS))

    def run(
        share: Share | None = None,
        out: str = "results",
        *,
        after: Callable[[str], None] = lambda student: None,
    ) -> GradeSummary:
        def graded(
            course: Course, _: object, todo: Sequence[FoundSubmission], **more: Any
        ) -> Iterator[tuple[Graded, bytes]]:
            for submission in todo:
                sha256 = hashlib.sha256(submission.path.read_bytes()).hexdigest()
                tests = (TestOutcome("test_it", "passed", 1.0, 1.0),)
                question = QuestionResult("softmax", 1.0, 1.0, 0.0, None, tests)
                suite = course_sha256(course, assignment)
                result = Result(
                    "small",
                    submission.student,
                    sha256,
                    suite,
                    "strict",
                    1.0,
                    1.0,
                    (question,),
                    (),
                )
                yield (
                    Graded(submission.student, result.headline(), seconds={"run": 1.5}),
                    result_bytes(result),
                )
                after(submission.student)

        monkeypatch.setattr(batch, "grade_batch", graded)
        request = GradeRequest(
            course, assignment, (tmp_path / "handed-in",), tmp_path / out, share=share
        )
        return grade_command(request)

    return run


def results(tmp_path: Path, out: str = "results") -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in (tmp_path / out / "small").iterdir()
    }


def test_shares_one_after_the_other_make_the_whole_class(
    grade: Grade, tmp_path: Path
) -> None:
    grade(out="whole")
    summaries = [grade(Share(number, 3)) for number in (2, 3, 1)]
    assert [summary.graded for summary in summaries] == [2, 2, 3]
    assert [row.student for row in summaries[0].results] == ["bob", "eve"]
    assert results(tmp_path) == results(tmp_path, "whole")
    assert read_timing(tmp_path / "results", "small") == read_timing(
        tmp_path / "whole", "small"
    )
    assert grade().graded == 0


def test_two_shares_at_once_make_the_whole_class(grade: Grade, tmp_path: Path) -> None:
    """The second begins and ends while the first is at work, and so does the third."""
    others = itertools.chain([2, 3], itertools.repeat(0))

    def meanwhile(student: str) -> None:
        if number := next(others):
            grade(Share(number, 3))

    grade(out="whole")
    assert grade(Share(1, 3), after=meanwhile).graded == 3
    assert results(tmp_path) == results(tmp_path, "whole")
    assert read_timing(tmp_path / "results", "small") == read_timing(
        tmp_path / "whole", "small"
    )


def test_a_share_leaves_alone_what_another_is_just_writing(
    grade: Grade, tmp_path: Path
) -> None:
    part = tmp_path / "results" / "small" / ".bob.json.0123456789abcdef.part"
    part.parent.mkdir(parents=True)
    part.touch()
    grade(Share(1, 3))
    assert part.exists()
    grade()  # which runs alone
    assert not part.exists()


def test_folders_of_shares_are_laid_into_one(grade: Grade, tmp_path: Path) -> None:
    """With `cp`, in any order: no two shares write a file of one name."""
    grade(out="whole")
    for number in (1, 2, 3):
        grade(Share(number, 3), f"share-{number}")
    for number in (3, 1, 2):
        for path in (tmp_path / f"share-{number}").rglob("*.json"):
            to = tmp_path / "results" / path.relative_to(tmp_path / f"share-{number}")
            assert not to.exists()
            write_whole(to, path.read_bytes())
    assert results(tmp_path) == results(tmp_path, "whole")
    assert read_timing(tmp_path / "results", "small") == read_timing(
        tmp_path / "whole", "small"
    )
    assert grade().graded == 0


def test_a_share_runs_beside_others_but_neither_twice_nor_beside_the_whole_class(
    grade: Grade, course: Course, tmp_path: Path
) -> None:
    locks = course.root / ".autograder" / "locks"
    with lock_results(locks, tmp_path / "results", "small", "1-of-3"):
        with pytest.raises(ResultsInUse, match="the share 1-of-3"):
            grade(Share(1, 3))
        with pytest.raises(ResultsInUse, match="writes results of small"):
            grade()
        assert grade(Share(2, 3)).graded == 2
    with (
        lock_results(locks, tmp_path / "results", "small"),
        pytest.raises(ResultsInUse, match="writes results of small"),
    ):
        grade(Share(1, 3))


def test_a_share_that_nobody_is_in_grades_nothing(grade: Grade, tmp_path: Path) -> None:
    assert grade(Share(8, 8)).results == ()
    assert not (tmp_path / "results").exists()


def test_the_times_that_were_written_last_count(grade: Grade, tmp_path: Path) -> None:
    """A share after the whole class, and the whole class after a share."""
    grade()
    write_whole(tmp_path / "handed-in" / "bob.ipynb", handed_in(ANSWERS) + "\n")
    killed = pytest.raises(KeyboardInterrupt)

    def interrupt(student: str) -> None:
        raise KeyboardInterrupt

    with killed:
        grade(Share(2, 3), after=interrupt)
    assert grade(Share(2, 3)).graded == 0
    write_whole(tmp_path / "handed-in" / "bob.ipynb", handed_in(ANSWERS) + "\n\n")
    assert grade().graded == 1
    assert [
        entry.student for entry in read_timing(tmp_path / "results", "small")
    ] == list(STUDENTS)
    assert not [
        entry for entry in read_timing(tmp_path / "results", "small") if entry.older
    ]
    assert not (tmp_path / "results" / "small.timing").exists()


def test_a_broken_file_of_a_share_is_named(grade: Grade, tmp_path: Path) -> None:
    grade(Share(1, 3))
    write_whole(tmp_path / "results" / "small.timing" / "2-of-3.json", "{")
    told: list[str] = []
    assert read_timing(tmp_path / "results", "small", told.append) == []
    assert len(told) == 1
    assert "small.timing/2-of-3.json: left out" in told[0]
    assert grade().graded == len(STUDENTS)  # which results are older ones was not known
    assert grade().graded == 0


def test_the_first_share_alone_names_what_is_no_submission(
    grade: Grade, tmp_path: Path
) -> None:
    write_whole(tmp_path / "handed-in" / "hal.IPYNB", "{}")
    named = [len(grade(Share(number, 2)).overlooked) for number in (1, 2)]
    assert named == [1, 0]
