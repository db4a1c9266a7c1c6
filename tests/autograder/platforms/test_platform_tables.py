"""Platforms' own files and pages with marks that the test makes: who gets what, who is skipped,
and what is said of it.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.basics.errors import KitError, PlatformUnavailable
from autograder.course import Course
from autograder.course.course import PlatformAddress
from autograder.course.platform_names import ANONYMOUS
from autograder.course.roster import Person
from autograder.intake.archives import UploadedFile
from autograder.ledger import Identity
from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs.outcome_words import cap_note, carried_note, kept_note
from autograder.platforms import github, gradescope, lti, push
from autograder.platforms.brightspace import read_grades
from autograder.platforms.canvas import canvas_csv
from autograder.platforms.canvas_gradebook import read_gradebook
from autograder.platforms.folder import find_owners
from autograder.platforms.github import (
    _repository,
    classroom_notices,
    escape,
    job_summary,
    points_output,
    repository_prefix,
)
from autograder.platforms.gradescope import (
    _scalar,
    _status,
    _submissions,
    find_notebook,
    problem_json,
    results_json,
)
from autograder.platforms.moodle import new_worksheet
from autograder.platforms.moodle_api import _identity
from autograder.platforms.moodle_worksheet import read_worksheet
from autograder.platforms.platform import (
    Download,
    Standing,
    Standings,
    cells_by_title,
)
from autograder.platforms.push import _assert_taken, _check_maximum, _person, read_token
from autograder.records.model import Diagnosis, Graded, QuestionResult, Result
from autograder.records.submission import CellOutcome


def result(student: str, points: float, of: float = 10.0, **fields: Any) -> Result:
    answered = question("double", outcome("test_doubles", points, of))
    whole = Result("m1", student, "sha", "suite", "strict", points, of, (answered,), ())
    return dataclasses.replace(whole, **fields)


def mark(student: str, points: float, of: float = 10.0) -> Mark:
    return mark_from_result(result(student, points, of))


MARKS = [mark("ada", 8.5), mark("bob", 7.0), mark("cyd", 9.0), mark("dan", 3.0)]
STUDENTS = {1: "ada", 2: "bob", 3: "cyd"}


def outcomes(difference: Any) -> list[tuple[str, str]]:
    return [(change.student, change.outcome) for change in difference.changes]


def test_cells_have_the_titles_of_their_columns() -> None:
    """The first of two columns with one title counts; a file may end after its titles, or be
    empty.
    """
    titles = [" ID", "Name ", "ID"]
    lines = [["7", " Ada ", "501"], ["8"], ["9", "Cyd", "502", "more"]]
    assert cells_by_title([titles, *lines]) == {
        1: {"ID": "7", "Name": "Ada"},
        2: {"ID": "8"},
        3: {"ID": "9", "Name": "Cyd"},
    }
    assert cells_by_title([titles]) == {}
    assert cells_by_title([]) == {}


# Moodle

HEADINGS = [
    "Identifier",
    "Full name",
    "Email address",
    "Status",
    "Grade",
    "Maximum Grade",
    "Grade can be changed",
    "Last modified (submission)",
    "Last modified (grade)",
]


def row(
    number: int, grade: str = "", changed: str = "Yes", marked: str = "-"
) -> list[str]:
    handed_in = "Thursday, 1 October 2026, 9:59 PM"
    name = ["Ada", "Bob", "Cyd"][number - 1]
    identifier = f"Participant {number}"
    return [
        identifier,
        name,
        f"{name}@x.edu",
        "S",
        grade,
        "10.00",
        changed,
        handed_in,
        marked,
    ]


def test_a_worksheet_gives_what_moodle_takes() -> None:
    table = [HEADINGS, row(1), row(2, changed="No"), row(3, "9.00")]
    worksheet = read_worksheet(table, ",")
    assert (worksheet.maximum, worksheet.language, worksheet.scale) == (
        "10.00",
        "en",
        False,
    )
    assert worksheet.rows[1] == Identity((("moodle", "1"),), ("Ada@x.edu",), "Ada")
    text, difference = worksheet.fill(MARKS, STUDENTS)
    assert outcomes(difference) == [
        ("ada", "gets"),
        ("bob", "skipped"),
        ("cyd", "keeps"),
    ]
    assert difference.changes[1].reason.startswith(
        "its grade cannot be changed, since it"
    )
    assert difference.changes[0].person == "Ada (Participant 1)"
    assert difference.missing == ("dan",)
    (note,) = difference.notes
    assert note.startswith("upload this worksheet before the feedback files")
    grades = [line.split(",")[4] for line in text.splitlines()]
    assert grades[:1] == ["Grade"]
    assert text.splitlines()[1].split(",")[4] == "8.5"
    _, nothing = worksheet.fill([MARKS[2]], {3: "cyd"})
    assert nothing.notes == ()


def test_a_row_without_a_participants_number_is_nobodys() -> None:
    """The table that is uploaded keeps it."""
    odd = ["", *row(2)[1:]]
    spaced = ["Participant 3  ", *row(3)[1:]]
    worksheet = read_worksheet([HEADINGS, row(1), odd, spaced], ",")
    assert list(worksheet.rows) == [1, 3]
    assert worksheet.rows[3].ids == (("moodle", "3"),)
    assert list(worksheet.hand_in_times("UTC")) == [1, 3]
    text, difference = worksheet.fill(MARKS[:1], {1: "ada"})
    assert [line.partition(",")[0] for line in text.splitlines()[1:]] == [
        "Participant 1",
        "",
        "Participant 3  ",
    ]
    assert difference.changes[1].person == "Bob (no number)"


def test_a_worksheet_without_a_word_on_locked_grades_locks_none() -> None:
    place = HEADINGS.index("Grade can be changed")
    table = [HEADINGS, row(1), row(2, changed="No")]
    without = [[*line[:place], *line[place + 1 :]] for line in table]
    _, difference = read_worksheet(without, ",").fill(MARKS[:2], STUDENTS)
    assert outcomes(difference) == [("ada", "gets"), ("bob", "gets")]
    assert difference.notes[0].startswith("upload this worksheet before")
    assert len(difference.notes) == 1


def test_a_mark_above_moodles_maximum_is_skipped() -> None:
    worksheet = read_worksheet([HEADINGS, row(1), row(2)], ",")
    marks = [mark("ada", 10.0), dataclasses.replace(mark("bob", 10.0), total=10.5)]
    _, difference = worksheet.fill(marks, STUDENTS)
    assert outcomes(difference) == [("ada", "gets"), ("bob", "skipped")]
    assert difference.changes[1].reason == "it is above the maximum of 10.00"


def test_a_worksheet_of_another_maximum_is_refused() -> None:
    worksheet = read_worksheet([HEADINGS, row(1)], ",")
    with pytest.raises(
        ValueError, match=r"^the maximum grade in Moodle is 10.00, and the"
    ):
        worksheet.fill([mark("ada", 3.0, of=20.0)], STUDENTS)
    # where nobody is known nothing can go wrong
    _, difference = worksheet.fill([mark("ada", 3.0, of=20.0)], {})
    assert outcomes(difference) == [("", "keeps")]
    scale = [*HEADINGS, "Scale"]
    words = read_worksheet([scale, [*row(1), "good"]], ",")
    assert words.scale
    with pytest.raises(ValueError, match=r"^the grades in Moodle are words of a scale"):
        words.fill(MARKS, STUDENTS)
    assert not read_worksheet([scale, [*row(1), ""]], ",").scale


def test_times_of_a_worksheet() -> None:
    table = [HEADINGS, row(1), row(2), row(3)]
    table[2][7] = "-"
    table[3][7] = "yesterday"
    times = read_worksheet(table, ",").hand_in_times("UTC")
    assert list(times) == [1, 3]
    assert str(times[1]) == "2026-10-01 21:59:00+00:00"
    assert isinstance(times[3], str)


def test_a_worksheet_in_an_unknown_language_needs_its_column() -> None:
    table = [["Id", "Nimi", "Hinne", "Suurin"], ["Osaleja 7", "Ada", "", "10"]]
    with pytest.raises(
        ValueError, match=r"has no column 'Grade' beside one .* of: Id, Ni"
    ):
        read_worksheet(table, ",")
    worksheet = read_worksheet(table, ",", column="HINNE")
    assert (worksheet.language, worksheet.maximum, worksheet.grade_column) == (
        "",
        "10",
        2,
    )
    _, difference = worksheet.fill([mark("ada", 8.0)], {1: "ada"})
    assert difference.notes[1] == (
        "whether grades are locked cannot be told: the worksheet's language is not known here"
    )
    other = [*table, ["Osaleja 8", "Bob", "", "20"]]
    assert read_worksheet(other, ",", column="Hinne").maximum == ""
    empty = [*table, ["Osaleja 8", "Bob", "", ""]]
    assert read_worksheet(empty, ",", column="Hinne").maximum == ""
    for short in ([], [["Grade", "x"]]):
        with pytest.raises(ValueError, match="it is not a grading worksheet of Moodle"):
            read_worksheet(short, ",", column="Grade")


# Canvas

TITLES = [
    "Student",
    "ID",
    "SIS User ID",
    "SIS Login ID",
    "Section",
    "m1 (4711)",
    "Score",
]
POINTS = ["    Points Possible", "", "", "", "", "10.00", "(read only)"]


def canvas_row(number: int, points: str = "") -> list[str]:
    name = ["Ada", "Bob", "Cyd"][number - 1]
    return [name, f"10{number}", "", name.lower(), "A", points, ""]


def test_a_gradebook_of_canvas_gives_to_who_is_assigned() -> None:
    table = [TITLES, POINTS, canvas_row(1), canvas_row(2, "N/A"), canvas_row(3, "ex")]
    gradebook = read_gradebook(table, ",", "m1")
    assert (gradebook.title, gradebook.possible, gradebook.width) == (
        "m1 (4711)",
        "10.00",
        5,
    )
    rows = {2: "ada", 3: "bob", 4: "cyd"}
    text, difference = gradebook.fill(MARKS, rows)
    assert outcomes(difference) == [
        ("ada", "gets"),
        ("bob", "skipped"),
        ("cyd", "skipped"),
    ]
    reasons = [change.reason for change in difference.changes]
    assert reasons[1] == "Canvas does not assign this assignment to them"
    assert reasons[2].startswith("they are excused in Canvas")
    assert text.splitlines() == [
        "Student,ID,SIS User ID,SIS Login ID,Section,m1 (4711)",
        "    Points Possible,,,,,10.00",
        "Ada,101,,ada,A,8.5",
    ]
    assert difference.notes == ()
    with pytest.raises(
        ValueError, match=r"^'m1 \(4711\)' has 10 points in Canvas, and"
    ):
        gradebook.fill([mark("ada", 3.0, of=20.0)], rows)


def test_a_column_that_canvas_posts_by_hand_is_told() -> None:
    posting = ["", "", "", "", "", "Manual Posting", ""]
    table = [TITLES, POINTS, posting, canvas_row(1)]
    gradebook = read_gradebook(table, ",", "m1")
    assert gradebook.is_posted_by_hand
    _, difference = gradebook.fill(MARKS, {3: "ada"})
    (note,) = difference.notes
    assert note.startswith(
        "students see the marks in 'm1 (4711)' only when you post them"
    )
    _, same = gradebook.fill(MARKS, {})
    assert same.notes == ()


def test_a_column_without_points_in_canvas_is_told() -> None:
    points = [*POINTS[:5], "", ""]
    gradebook = read_gradebook([TITLES, points, canvas_row(1)], ",", "m1")
    _, difference = gradebook.fill(MARKS, {2: "ada"})
    assert difference.notes == (
        "'m1 (4711)' has no points in Canvas, and the marks here are out of 10",
    )


@pytest.mark.parametrize(
    ("titles", "points", "words"),
    [
        (["Name", "ID"], [], "it is not a gradebook that Canvas exported"),
        (["Student", "A", "B", "ID"], [], "it is not a gradebook that Canvas exported"),
        (TITLES, [*POINTS[:5], "(read only)", ""], "Canvas does not let anybody write"),
    ],
)
def test_what_is_no_gradebook_of_canvas_is_refused(
    titles: list[str], points: list[str], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        read_gradebook([titles, points] if points else [titles], ",", "m1")
    with pytest.raises(ValueError, match="it is not a gradebook"):
        read_gradebook([], ",", "m1")


# Brightspace

GRADES = [
    "OrgDefinedId",
    "Username",
    "m1 Points Grade <Numeric MaxPoints:10>",
    "End-of-Line",
]


def test_grades_of_brightspace_are_given_and_cut() -> None:
    table = [
        GRADES,
        ["#1", "ada", "", "#"],
        ["#2", "bob", "7", "#"],
        ["#3", "cyd", "", "#"],
    ]
    grades = read_grades(table, ",", "m1")
    assert (grades.maximum, grades.column) == ("10", 2)
    assert grades.hand_in_times("UTC") == {}
    marks = [MARKS[0], MARKS[1], dataclasses.replace(MARKS[2], total=10.5)]
    text, difference = grades.fill(marks, STUDENTS)
    assert outcomes(difference) == [("ada", "gets"), ("bob", "keeps"), ("cyd", "gets")]
    assert difference.changes[2].reason.startswith(
        "cut to 10 unless *Can Exceed* is set"
    )
    lines = [line.split(",") for line in text.splitlines()]
    assert [line[2] for line in lines[1:]] == ["8.5", "10.5"]
    assert [line[-1] for line in lines[1:]] == ["#", "#"]
    with pytest.raises(ValueError, match="is out of 10 points in Brightspace, and the"):
        grades.fill([mark("ada", 3.0, of=20.0)], STUDENTS)


def test_an_item_that_brightspace_lacks_is_made() -> None:
    table = [GRADES, ["#1", "ada", "", "#"]]
    grades = read_grades(table, ",", "m2")
    assert grades.column is None
    (note,) = grades.notes
    assert note.endswith("offer to make one; `--column` names another of: m1")
    text, _ = grades.fill([mark("ada", 8.0)], {1: "ada"})
    assert "m2 Points Grade <Numeric MaxPoints:10>" in text
    with pytest.raises(
        ValueError, match="no points of a grade item 'm3'; there are: m1"
    ):
        read_grades(table, ",", "m1", column="m3")
    with pytest.raises(
        ValueError, match="2 grade items are called 'm1': name one with"
    ):
        read_grades([[*GRADES, GRADES[2]], []], ",", "m1")
    with pytest.raises(ValueError, match="it has no column OrgDefinedId or Username"):
        read_grades([["Name"]], ",", "m1")


# interfaces


def standing(mark: float | None = None, refused: str = "") -> Standing:
    identity = Identity((("canvas", "101"),), (), "Ada")
    return Standing("101", identity, mark, refused=refused)


@pytest.mark.parametrize(
    ("person", "maximum", "extra", "mark", "outcome"),
    [
        (standing(), 10.0, False, 10.0, "gets"),
        (standing(), 10.0, False, 10.5, "skipped"),
        (standing(), 10.0, True, 10.5, "gets"),
        (standing(), None, False, 10.5, "gets"),
        (standing(refused="locked"), 10.0, False, 3.0, "skipped"),
    ],
)
def test_a_platform_takes_marks_up_to_its_maximum(
    person: Standing, maximum: float | None, extra: bool, mark: float, outcome: str
) -> None:
    standings = Standings("m1", maximum, (person,), extra=extra)
    decided, reason = _person(person, "ada", standings).decide(mark)
    assert decided == outcome
    expected = person.refused or "it is above the 10 there"
    assert reason == (expected if outcome == "skipped" else "")


def test_another_maximum_on_the_platform_is_refused() -> None:
    _check_maximum("canvas", Standings("m1", 10.0, ()), 10.0)
    _check_maximum("canvas", Standings("m1", None, ()), 20.0)
    _check_maximum("canvas", Standings("m1", 10.0, ()), 0.0)
    with pytest.raises(KitError, match=r"^'m1' has 10 points on canvas, and the marks"):
        _check_maximum("canvas", Standings("m1", 10.0, ()), 20.0)


def test_marks_that_did_not_arrive_are_named() -> None:
    standings = Standings("m1", 10.0, (standing(8.5),))
    _assert_taken("canvas", {"101": 8.5}, standings)
    with pytest.raises(
        PlatformUnavailable,
        match=r"^canvas took 0 of 2 marks, and not those of Ada \(canvas 101\), 102: they",
    ):
        _assert_taken("canvas", {"101": 8.6, "102": 1.0}, standings)
    with pytest.raises(PlatformUnavailable, match=r"^canvas took 0 of 1 marks"):
        _assert_taken("canvas", {"101": 8.5}, Standings("m1", 10.0, (standing(),)))


def test_a_token_comes_from_the_environment_or_a_file_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "course"
    root.mkdir()
    file = tmp_path / "token"
    monkeypatch.delenv("CANVAS_TOKEN", raising=False)
    monkeypatch.delenv("CANVAS_TOKEN_FILE", raising=False)
    with pytest.raises(
        KitError, match=r"^no token for canvas: put it into \$CANVAS_TOKEN"
    ):
        read_token(root, "canvas")
    monkeypatch.setenv("CANVAS_TOKEN_FILE", str(file))
    with pytest.raises(KitError, match=r"cannot be read \(FileNotFoundError\)$"):
        read_token(root, "canvas")
    file.write_text(" secret\n")
    file.chmod(0o640)
    with pytest.raises(KitError, match="can be read by others: chmod 600"):
        read_token(root, "canvas")
    file.chmod(0o600)
    assert read_token(root, "canvas") == "secret"
    file.write_text("t" * 4094 + "\n")
    assert read_token(root, "canvas") == "t" * 4094
    # of more than 4095 characters the end may be missing
    for text in ("", "two words", "a\x07b", "t" * 4095 + "\n", "t" * 9999):
        file.write_text(text)
        with pytest.raises(
            KitError, match="holds no token: one line with nothing else"
        ):
            read_token(root, "canvas")
    monkeypatch.setenv("CANVAS_TOKEN_FILE", str(root / "token"))
    with pytest.raises(KitError, match="lies in the course's folder, where it could"):
        read_token(root, "canvas")
    monkeypatch.setenv("CANVAS_TOKEN", " direct ")
    assert read_token(root, "canvas") == "direct"


def test_a_platform_without_an_address_is_named(tmp_path: Path) -> None:
    course = Course(tmp_path, platforms={"canvas": PlatformAddress("https://x", "")})
    with pytest.raises(KitError, match="does not say which course on canvas is meant"):
        push.open_interface(course, "canvas", "m1")
    course = Course(tmp_path, platforms={"canvas": PlatformAddress("", "7")})
    with pytest.raises(KitError, match="write `url` and `course` under \\[canvas\\]"):
        push.open_interface(course, "canvas", "m1")


# GitHub


def test_points_of_a_run_are_sums() -> None:
    results = [result("ada", 8.5), result("bob", 7.0)]
    assert points_output(results) == "points=15.5\nmax_points=20\n"
    assert points_output([], 20.0) == "points=0\nmax_points=20\n"
    assert classroom_notices(results, 10.0) == (
        "::notice title=Autograding complete::Points 15.5/30\n"
        "::notice title=Autograding report::"
        '{"totalPoints":15.5,"maxPoints":30}\n'
    )


def test_a_summary_has_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [result("ada", 8.5), result("bob", 7.0), result("cyd", 9.0)]
    problem = Graded("eve", problem="no notebook")
    whole = job_summary(results, [problem])
    assert whole.startswith(
        "## Not graded\n\nStudent: <code>eve</code>\n\nno notebook\n"
    )
    assert "## m1: 8.5 of 10 points" in whole
    first = len(job_summary([], [problem]))
    monkeypatch.setattr(github, "LARGEST_SUMMARY", first)
    assert job_summary([], [problem]).count("not shown") == 0
    cut = job_summary(results, [problem])
    assert cut.endswith("\n3 more results are not shown here.\n")
    monkeypatch.setattr(github, "LARGEST_SUMMARY", first - 1)
    assert job_summary([], [problem]) == "\n1 more results are not shown here.\n"


def test_a_summary_names_failures_with_hints_and_notes() -> None:
    failed = outcome("test_doubles", 0.0, 2.0, message="`double(1)` is 3")
    answer = dataclasses.replace(
        question("double", failed, outcome("test_right", 1.0, 1.0)),
        diagnosis=Diagnosis("half", "You *halve*."),
        slips=(Diagnosis("sign", "the sign", ("test_doubles",)),),
    )
    text = job_summary([result("ada", 1.0, 3.0, questions=(answer,), isolation="none")])
    assert "**Graded without isolation.**" in text
    assert "| <code>double</code> | 1 / 3 | You &#42;halve&#42;&#46; |" in text
    assert (
        "- **doubles** (not right yet)<br><code>&#96;double&#40;1&#41;&#96; is 3</code>"
        in text
    )
    assert "<br>the sign" in text
    assert "right (" not in text


def test_a_summary_fits_the_runner_and_messages_a_line() -> None:
    """GitHub takes a mebibyte of one step. Of a message 1000 characters are shown."""
    assert github.LARGEST_SUMMARY == 900_000
    for length, words in ((1000, "m" * 1000), (1001, "m" * 1000 + " … &#40;1 charact")):
        failed = outcome("test_doubles", 0.0, 2.0, message="m" * length)
        whole = result("ada", 0.0, 2.0, questions=(question("double", failed),))
        problem = Graded("eve", problem="m" * length)
        summary = job_summary([whole], [problem])
        assert summary.count(words) == 2
        assert summary.count("charact") == (0 if length == 1000 else 2)


def test_a_summary_says_why_points_differ_from_those_of_the_tests() -> None:
    """Carried from another question's mistake, kept for a slip, lost to a fault of memory."""
    failed = outcome("test_doubles", 0.0, 2.0)
    answer = dataclasses.replace(
        question("double", failed, outcome("test_right", 1.0, 1.0)),
        carried=0.5,
        kept=0.25,
        capped=0.25,
    )
    whole = result("ada", 1.0, 3.0, questions=(answer,))
    lines = job_summary([whole]).splitlines()
    start = lines.index("### double")
    assert [line for line in lines[start + 1 :] if line] == [
        escape(carried_note(answer, whole)),
        kept_note(answer),
        cap_note(answer),
        "- **doubles** (not right yet)",
    ]
    assert not any(lines[start + 1 : start + 8 : 2])


def test_text_is_harmless_in_markdown() -> None:
    assert escape("a-b <x>\n#1 -c") == "a-b &#60;x&#62;<br>&#35;1 &#45;c"
    assert repository_prefix("A1 Word_Vectors!") == "a1-word_vectors-"


# Gradescope


def test_a_question_is_passed_failed_or_neither() -> None:
    def answered(score: float) -> QuestionResult:
        return dataclasses.replace(result("ada", 0.0).questions[0], score=score)

    assert _status(answered(10.0)) == {"status": "passed"}
    assert _status(answered(0.0)) == {"status": "failed"}
    assert _status(answered(0.5)) == {}


def test_a_page_of_gradescope() -> None:
    cells = (
        CellOutcome("fine", "ok"),
        CellOutcome("told", "ok", "a note"),
        CellOutcome("bad", "error"),
    )
    whole = result("ada", 8.5, cells=cells, isolation="none")
    page = json.loads(results_json(whole, "a note", written=5.0, visibility="hidden"))
    assert page["score"] == 8.5
    assert page["output"].split("\n") == [
        "a note",
        "Not in this score: 5 points of written answers, which a person gives.",
        "Graded without isolation. The code ran without walls around it. Treat this score "
        "as provisional.",
        "Cell told ran: a note",
        "Cell bad raised an error",
    ]
    (entry,) = page["tests"]
    assert (entry["name"], entry["score"], entry["max_score"]) == ("double", 8.5, 10.0)
    assert entry["visibility"] == "hidden"
    assert "status" not in entry
    plain = json.loads(results_json(result("ada", 10.0)))
    assert (plain["output"], plain["tests"][0]["status"]) == ("", "passed")
    assert plain["stdout_visibility"] == "hidden"
    problem = json.loads(problem_json("no notebook"))
    assert (problem["score"], problem["tests"]) == (0.0, [])
    assert problem["output"] == "This submission could not be graded: no notebook"


def test_the_notebook_is_the_only_one_or_the_one_of_that_name(tmp_path: Path) -> None:
    words = r"^Hand in m1.ipynb; there is "
    with pytest.raises(ValueError, match=words + "no notebook"):
        find_notebook(tmp_path, "m1")
    (tmp_path / "mine.ipynb").touch()
    assert find_notebook(tmp_path, "m1") == tmp_path / "mine.ipynb"
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "m1.ipynb").touch()
    (tmp_path / "a.ipynb").touch()
    assert find_notebook(tmp_path, "m1") == tmp_path / "below" / "m1.ipynb"
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "m1.ipynb").touch()
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "mine.ipynb")
    assert find_notebook(tmp_path, "m1") == tmp_path / "below" / "m1.ipynb"
    (tmp_path / "m1.ipynb").touch()
    with pytest.raises(ValueError, match=words + "a.ipynb, m1.ipynb, m1.ipynb, mine"):
        find_notebook(tmp_path, "m1")
    for number in range(10):  # of many ten are named
        (tmp_path / f"a{number}.ipynb").touch()
    with pytest.raises(ValueError, match=r"a0\.ipynb, .*, a8\.ipynb\.$"):
        find_notebook(tmp_path, "m1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", "it's"),
        ('"a \\" b"', 'a " b'),
        (" plain ", "plain"),
        ("null", ""),
        ("~", ""),
        ("'", "'"),
        ("''", ""),
    ],
)
def test_a_value_of_gradescopes_list(text: str, value: str) -> None:
    assert _scalar(text) == value


def test_gradescopes_list_names_people_and_times() -> None:
    text = """\
submission_1:
  :submitters:
  - :name: Ada
    :sid: "17"
    :email: ada@x.edu
  - :name: Bob
  :created_at: 2026-10-01 12:00:00 +0000
  :results:
    :tests:
    - :name: Eve
'submission_2':
  :submitters:
  - :name: ''
  :created_at: !ruby/object:ActiveSupport::TimeWithZone
    utc: 2026-10-02 12:00:00.000000000 Z
    time: 2026-10-02 14:00:00.000000000 Z
submission_3:
  :created_at: yesterday
"""
    listed = _submissions(text, "UTC")
    assert list(listed) == ["submission_1", "submission_2", "submission_3"]
    first, second, third = listed.values()
    assert first.people == (
        Identity((("gradescope", "17"),), ("17", "ada@x.edu"), "Ada"),
        Identity((), (), "Bob"),
    )
    assert str(first.created) == "2026-10-01 12:00:00+00:00"
    assert second.people == ()
    assert str(second.created) == "2026-10-02 12:00:00+00:00"
    assert third.created is None
    assert third.unread
    assert gradescope._submissions("", "UTC") == {}


@pytest.mark.parametrize(
    ("lines", "day"),
    [
        (["  :created_at: !ruby/object:T", "    time: 2026-10-02 14:00:00 Z"], 2),
        (["  :created_at: !ruby/object:T", "    zone: 2026-10-02 14:00:00 Z"], None),
        (["  :created_at: 2026-10-01 12:00:00 Z", "    time: 2026-10-02 14:00 Z"], 1),
        (["  :created_at: 2026-10-01 12:00:00 Z", "    utc: 2026-10-02 12:00 Z"], 2),
        # times of other things
        (["  :created_at: 2026-10-01 12:00:00 Z", "  :graded_at:", "    utc: x"], 1),
        (["  :graded_at: !ruby/object:T", "    utc: 2026-10-02 12:00:00 Z"], None),
        (["    utc: 2026-10-02 12:00:00 Z"], None),
    ],
)
def test_when_gradescope_got_a_submission(lines: list[str], day: int | None) -> None:
    text = "\n".join(["submission_1:", *lines])
    created = _submissions(text, "UTC")["submission_1"].created
    assert (created.day if created else None) == day


# Where the platform's own file was not given


def known(student: str, points: float, **fields: Any) -> Mark:
    return dataclasses.replace(mark(student, points), **fields)


ADA = Person("ada", "Ada", "ada@x.edu", "A", {})


def test_a_new_worksheet_has_who_has_a_number() -> None:
    marks = [
        known("ada", 8.5, person=ADA, ids={"moodle": "1"}),
        known("bob", 7.0, ids={"moodle": "2"}),
        known("cyd", 6.0),
    ]
    text, difference = new_worksheet(marks, "m1")
    assert [line.split(",")[:4] for line in text.splitlines()[1:]] == [
        ["Participant 1", "Ada", "ada@x.edu", "8.5"],
        ["Participant 2", "bob", "", "7"],
    ]
    assert difference.missing == ("cyd",)
    text, _ = new_worksheet(marks[1:], "m1")
    assert text.splitlines()[1].split(",") == ["Participant 2", "bob", "7", "-"]


def test_a_new_gradebook_has_who_is_known_to_canvas() -> None:
    marks = [
        known("ada", 8.5, person=ADA, ids={"canvas": "101", ANONYMOUS: "x"}),
        known("bob", 7.0, ids={ANONYMOUS: "y"}),
        known("cyd", 6.0),
    ]
    text, difference = canvas_csv(marks, "m1")
    assert [line.split(",")[:6] for line in text.splitlines()[2:]] == [
        ["Ada", "101", "", "", "A", "8.5"],
        ["cyd", "", "", "cyd", "", "6"],
    ]
    assert difference.missing == ("bob",)


@pytest.mark.parametrize(
    ("person", "identity"),
    [
        ({"fullname": "Participant 12"}, Identity((("moodle", "12"),))),
        (
            {"fullname": "Agent 007", "email": "b@x.edu", "username": "bond"},
            Identity((), ("b@x.edu", "bond"), "Agent 007"),
        ),
        ({"fullname": "Ada"}, Identity((), (), "Ada")),
    ],
)
def test_a_hidden_participant_is_a_number(
    person: dict[str, str], identity: Identity
) -> None:
    assert _identity(person) == identity


@pytest.mark.parametrize(
    ("path", "repository"),
    [
        ("m1-ada/m1.ipynb", 1),
        ("M1_Ada/src/m1.ipynb", 1),
        ("class/m1-ada/m1.ipynb", 2),
        ("m1-submissions/m1-ada/m1.ipynb", 2),
        ("m1-submissions/m1.ipynb", 1),
        ("m1-/m1.ipynb", None),
        ("m1/m1-ada", None),
    ],
)
def test_a_clone_is_the_outermost_folder_with_the_prefix(
    path: str, repository: int | None
) -> None:
    parts = tuple(path.split("/"))
    expected = None if repository is None else parts[:repository]
    assert _repository(UploadedFile(parts), "m1-") == expected
    assert _repository(UploadedFile(parts), "") is None


def test_a_mark_that_waits_is_not_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str, dict[str, Any]]] = []
    monkeypatch.setattr(
        lti.LtiServices,
        "_ask",
        lambda self, method, address, scope, *, content, kind: sent.append(
            (method, address, content)
        ),
    )
    services = object.__new__(lti.LtiServices)
    for waits in (True, False):
        services.send_score("https://x/items/3?a=1", lti.Score("7", 8.5, 10.0, waits))
    (method, address, first), (_, _, last) = sent
    assert (method, address) == ("POST", "https://x/items/3/scores?a=1")
    assert (first["activityProgress"], first["gradingProgress"]) == (
        "Submitted",
        "PendingManual",
    )
    assert (last["activityProgress"], last["gradingProgress"]) == (
        "Completed",
        "FullyGraded",
    )
    given = (last["userId"], last["scoreGiven"], last["scoreMaximum"])
    assert given == ("7", 8.5, 10.0)


@pytest.mark.parametrize(
    ("path", "student"),
    [
        ("m1/ada.ipynb", "ada"),
        ("ada.ipynb", "ada"),
        ("ada/m1/work.ipynb", "ada"),
        ("class/ada/m1/work.ipynb", "ada"),
        ("ada/work.ipynb", "ada"),
        ("ada/m1/old/work.ipynb", None),
        ("ada/previous/m1/work.ipynb", None),
    ],
)
def test_a_folder_is_the_students_or_the_file_is(
    path: str, student: str | None
) -> None:
    file = UploadedFile(tuple(path.split("/")))

    def is_id(*_: str) -> bool:
        return False

    download = Download([file], "m1", is_id, is_id, "UTC", Path(), Path())
    owner = find_owners(download)(file)
    assert (owner and owner.student) == student
