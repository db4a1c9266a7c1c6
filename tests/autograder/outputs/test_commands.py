import csv
import dataclasses
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from courses import on_stderr

from autograder.basics.errors import BadCourseFile, KitError, NothingToGrade
from autograder.course import Course, load_course
from autograder.intake.collected import Arrival, Collected, NotTaken, record_path
from autograder.marks.marks import mark_from_result
from autograder.outputs.feedback_page import feedback_path
from autograder.outputs.totals import totals
from autograder.records.model import (
    Graded,
    QuestionResult,
    Result,
    TestOutcome,
    TwoAnswers,
)
from autograder.records.results import TimingFile, write_result
from autograder.reporting.marks_commands import (
    ExportRequest,
    export_command,
    report_command,
    totals_command,
)

SETTINGS = Path(__file__).parents[2] / "hidden" / "pytest.ini"
SUITE = """
from autograder.suite import points, uses

pytestmark = [uses({uses})]

@points(4)
def test_it(student: str) -> None:
    pass
"""


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course whose question `attention` builds on `softmax`."""
    files = {
        "course.toml": "",
        "source/attention/attention.py": "",
        "tests/hidden/pytest.ini": SETTINGS.read_text(encoding="utf-8"),
        "tests/hidden/attention/test_softmax.py": SUITE.format(uses="'nothing'"),
        "tests/hidden/attention/test_attention.py": SUITE.format(uses="'softmax'"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return load_course(tmp_path)


@pytest.fixture
def uncarried(plain: Result) -> Result:
    """The same with nothing carried: a report of it need not ask the suite."""
    return dataclasses.replace(
        plain,
        questions=tuple(
            dataclasses.replace(question, carried=0.0, kept=question.carried)
            for question in plain.questions
        ),
    )


def export(course: Course, format: str, **options: Any) -> list[str]:
    request = ExportRequest(
        course,
        course.assignment("attention"),
        course.root / "results",
        format,
        **options,
    )
    return list(export_command(request, on_stderr))


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def with_settings(course: Course, text: str) -> Course:
    (course.root / "course.toml").write_text(text, encoding="utf-8")
    return load_course(course.root)


def put(course: Course, student: str, time: str | None = None) -> None:
    """A submission in submitted/, of which only the name and the time matter here."""
    folder = course.root / "submitted" / student / "attention"
    folder.mkdir(parents=True)
    (folder / "attention.ipynb").write_text("{}", encoding="utf-8")
    if time:
        (folder / "timestamp.txt").write_text(time, encoding="utf-8")


def test_report_writes_a_page_a_student_and_one_for_the_class(
    course: Course, plain: Result
) -> None:
    results = course.root / "results"
    write_result(results, plain)
    lines = list(
        report_command(course, course.assignment("attention"), results, on_stderr)
    )
    assert lines == [
        f"1 feedback pages in {course.root / 'feedback'}",
        f"class report: {(results / 'attention.html').as_uri()}",
    ]
    page = (
        course.root / "feedback" / "ada" / "attention" / "attention.html"
    ).read_text(encoding="utf-8")
    assert "the mistake in <code>softmax</code>" in page
    assert 'href="../feedback/ada/attention/attention.html"' in (
        results / "attention.html"
    ).read_text(encoding="utf-8")


def test_a_suite_that_does_not_import_stops_no_report(
    course: Course, plain: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    (course.root / "tests/hidden/attention/test_broken.py").write_text(
        "import nothing_of_that_name\n"
    )
    write_result(course.root / "results", plain)
    assert (
        len(
            list(
                report_command(
                    course,
                    course.assignment("attention"),
                    course.root / "results",
                    on_stderr,
                )
            )
        )
        == 2
    )
    assert "does not import" in capsys.readouterr().err


def test_a_class_of_problems_has_a_report(course: Course, problem: Graded) -> None:
    results = course.root / "results"
    TimingFile(results, "attention").note([Graded(problem.student, None, "unreadable")])
    old = feedback_path(course.root / "feedback", "attention", problem.student)
    old.parent.mkdir(parents=True)
    old.write_text("an old score", encoding="utf-8")
    (line,) = report_command(course, course.assignment("attention"), results, on_stderr)
    assert line == f"class report: {(results / 'attention.html').as_uri()}"
    assert not old.exists()


def test_nothing_graded_says_what_to_run(course: Course) -> None:
    commands: tuple[Callable[[], list[str]], ...] = (
        lambda: list(
            report_command(
                course,
                course.assignment("attention"),
                course.root / "results",
                on_stderr,
            )
        ),
        lambda: export(course, "csv"),
        lambda: export(course, "gradebook"),
    )
    for command in commands:
        with pytest.raises(NothingToGrade, match="autograder grade attention"):
            command()
    with pytest.raises(NothingToGrade, match="autograder grade"):
        list(
            totals_command(
                course, course.root / "results", None, on_stderr, provisional=False
            )
        )


def test_export_to_the_screen_and_to_a_file(
    course: Course, plain: Result, tmp_path: Path
) -> None:
    write_result(course.root / "results", plain)
    (text,) = export(course, "csv")
    assert rows(text)[1] == ["ada", "2", "6", "3", "11", "20", "graded", ""]
    file = tmp_path / "scores.csv"
    assert export(course, "csv", to=file) == [f"1 results of attention in {file}"]
    assert file.read_text(encoding="utf-8") == text + "\n"


@pytest.mark.parametrize("format", ["csv", "junit", "tests"])
def test_an_export_names_who_gave_two_answers_to_one_call(
    course: Course, uncarried: Result, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    flag = TwoAnswers("test_it", "softmax(z)", ("one run", "another"), ("1", "2"))
    first, *others = uncarried.questions
    questions = (dataclasses.replace(first, two_answers=(flag,)), *others)
    for student, result in (
        ("ada", dataclasses.replace(uncarried, questions=questions)),
        ("zoe", uncarried),
    ):
        write_result(
            course.root / "results", dataclasses.replace(result, student=student)
        )
    export(course, format)
    said = capsys.readouterr().err
    assert (
        "two answers to one call, for a person to look at: 1: ada (softmax); `autograder "
        "report` shows them" in said
    )


def test_nobody_disappears(
    course: Course, uncarried: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever became of a submission, its student is in every table, in the report, and on
    stderr.
    """
    results = course.root / "results"
    (course.root / "students.csv").write_text(
        "id,name,email,section\nada,Ada Roe,,A\nzoe,Zoe Lee,,B\n", encoding="utf-8"
    )
    for student in ("ada", "gone"):
        write_result(results, dataclasses.replace(uncarried, student=student))
    TimingFile(results, "attention").note([Graded("bad", None, "bad.ipynb: is empty")])
    for student in ("ada", "bad", "new"):
        put(course, student)
    arrivals = {
        name: Arrival("canvas", name, name, f"{name}_1_2_a.ipynb")
        for name in ("ada", "gone", "new", "pdf")
    }
    pdf = NotTaken("pdf", arrivals.pop("pdf"), "pdf_1_2_a.pdf: not a notebook")
    path = record_path(course.root / "submitted", "attention")
    path.parent.mkdir()
    path.write_text(Collected(arrivals, {"pdf": pdf}).to_json(), encoding="utf-8")
    (text,) = export(course, "csv")
    table = rows(text)
    total, status, note = (table[0].index(name) for name in ("total", "status", "note"))
    assert [(row[0], row[total], row[status], row[note]) for row in table[1:]] == [
        ("ada", "11", "graded", ""),
        ("bad", "", "could not be graded", "bad.ipynb: is empty"),
        (
            "gone",
            "",
            "withdrawn",
            "its submission is not in submitted/ any more, so its 11 of 20 do not count: put it "
            "there if they should",
        ),
        ("new", "", "not graded yet", ""),
        ("pdf", "", "no notebook", "pdf_1_2_a.pdf: not a notebook"),
        ("zoe", "", "handed in nothing", ""),
    ]
    said = capsys.readouterr().err
    for line in (
        "withdrawn: 1: gone",
        "no notebook: 1: pdf",
        "handed in nothing: 1: zoe",
        "could not be graded: 1: bad",
    ):
        assert line in said
    for format in ("canvas", "moodle", "tests", "junit"):
        export(course, format)
    list(report_command(course, course.assignment("attention"), results, on_stderr))
    page = (results / "attention.html").read_text(encoding="utf-8")
    for name in ("ada", "bad", "gone", "new", "pdf", "zoe"):
        assert f"<bdi>{name}</bdi>" in page
    assert not feedback_path(course.root / "feedback", "attention", "gone").exists()


def test_results_of_other_folders_are_not_withdrawn(
    course: Course, plain: Result
) -> None:
    write_result(course.root / "elsewhere", plain)
    put(course, "somebody")
    request = ExportRequest(
        course, course.assignment("attention"), course.root / "elsewhere", "csv"
    )
    (text,) = export_command(request, on_stderr)
    assert rows(text)[1][0:1] + rows(text)[1][-2:-1] == ["ada", "graded"]


LATE = """
[course]
timezone = "Europe/Berlin"
[late]
policy = "per_day"
penalty_per_day = 0.1
late_days = 1
[due]
attention = "2026-03-01 12:00"
[extensions.attention]
bea = 2
s3 = "2026-03-09 12:00"
"""


def test_lateness_by_due_time_extension_and_late_days(
    course: Course, plain: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    late = with_settings(course, LATE)
    (course.root / "students.csv").write_text(
        "id,name\ns3,Cleo Roe\n", encoding="utf-8"
    )
    times = {
        # three days begun, one of them her own: 2 of 20 points for each
        "ada": "2026-03-03 13:00:00 CET",
        "bea": "2026-03-03 11:00:00 CET",
        "Cleo Roe": "2026-03-09 10:59:00 UTC",
        "dan": "whenever",
    }
    for student, time in times.items():
        put(course, student, time)
        write_result(
            course.root / "results", dataclasses.replace(plain, student=student)
        )
    (text,) = export(late, "csv")
    table = {row[0]: row for row in rows(text)}
    at = {
        name: rows(text)[0].index(name)
        for name in ("total", "minutes_late", "total_after_late", "note")
    }
    assert [table[name][at["total_after_late"]] for name in times] == [
        "7",
        "11",
        "11",
        "",
    ]
    assert table["ada"][at["minutes_late"]] == str(2 * 24 * 60 + 60 - 24 * 60)
    assert table["ada"][at["note"]] == "late days used: 1"
    assert (
        "when it was handed in is not known: 'whenever' is no time"
        in table["dan"][at["note"]]
    )
    assert "without a mark, time cannot be read: 1: dan" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[due]\nattention = "soon"', r"due\.attention: 'soon' is no time"),
        ('[due]\nattention = "2026-03-01 12:00"', "has no time zone"),
        ("[due]\nattention = 2026-03-01", "must be a time"),
        ("[due]\nattention = 2026-03-01T12:00:00", "has no time zone"),
        ("[extensions]\nattention = 3", r"\[extensions\.attention\] must be one table"),
        (
            "[extensions.attention]\nada = -1",
            r"extensions\.attention\.ada = -1: it must be a number of days",
        ),
        ("[extensions.attention]\nada = inf", "must be a number of days"),
        ("due = 3", r"\[due\] must be one table"),
        ('[course]\ntimezone = "Mars"', "names a time zone"),
        ("[totals]\ndrop_lowest = -1", r"totals\.drop_lowest"),
    ],
)
def test_times_in_the_settings_are_checked(course: Course, text: str, why: str) -> None:
    with pytest.raises(BadCourseFile, match=why):
        with_settings(course, text)


def test_a_late_policy_without_due_times_is_said(
    course: Course, plain: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    late = with_settings(course, '[late]\npolicy = "zero"\n')
    write_result(course.root / "results", plain)
    (text,) = export(late, "csv")
    assert rows(text)[1] == ["ada", "2", "6", "3", "11", "20", "graded", ""]
    assert (
        "without late penalties: nobody says when attention is due"
        in capsys.readouterr().err
    )


def test_canvas_by_a_roster_file(course: Course, plain: Result, tmp_path: Path) -> None:
    roster = tmp_path / "canvas.csv"
    roster.write_text(
        'Student,ID,SIS Login ID,Section\n"Lovelace, Ada",7,ada,A\n', encoding="utf-8"
    )
    write_result(course.root / "results", plain)
    (text,) = export(course, "canvas", roster=roster)
    others = tmp_path / "other.csv"
    others.write_text("name\n", encoding="utf-8")
    with pytest.raises(
        KitError, match=r"other\.csv: it is not a gradebook that Canvas"
    ):
        export(course, "canvas", roster=others)
    assert text.splitlines()[2] == '"Lovelace, Ada",7,ada,A,11'


def test_feedback_pages_go_back_in_the_names_of_the_platform(
    course: Course,
    uncarried: Result,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = {
        "ada_12": Arrival("canvas", "12", "ada", "ada_LATE_12_345_a-1.ipynb"),
        "Max Roe_7": Arrival(
            "moodle", "7", "Max_Roe", "Max Roe_7_assignsubmission_file_/a.ipynb"
        ),
        "Lee_Zoe_zl_9": Arrival(
            "ilias", "9", "Zoe Lee", "x/Abgaben/Lee_Zoe_zl_9/a.ipynb"
        ),
        "zip_13": Arrival("canvas", "13", "zip", "zip_13_346_work.zip"),
    }
    for student in files:
        put(course, student)
        write_result(
            course.root / "results", dataclasses.replace(uncarried, student=student)
        )
    path = record_path(course.root / "submitted", "attention")
    path.parent.mkdir()
    path.write_text(Collected(files).to_json(), encoding="utf-8")
    list(
        report_command(
            course, course.assignment("attention"), course.root / "results", on_stderr
        )
    )
    expected = {
        "canvas": ["ada_LATE_12_345_a-1.html", "zip_13_346_work.html"],
        "moodle": ["Max Roe_7_assignsubmission_file_/attention.html"],
        "ilias": ["multi_feedback/Lee_Zoe_zl_9/attention.html"],
    }
    for platform, names in expected.items():
        to = tmp_path / f"{platform}.zip"
        export(course, f"{platform}-feedback", to=to)
        with zipfile.ZipFile(to) as archive:
            assert sorted(archive.namelist()) == names
        assert (
            f"without a name that {platform} knows: {4 - len(names)}: "
            in capsys.readouterr().err
        )
        again = to.read_bytes()
        export(course, f"{platform}-feedback", to=to)
        assert to.read_bytes() == again
    with pytest.raises(KitError, match="name a file for it"):
        export(course, "canvas-feedback")


def test_the_mark_of_the_course_drops_the_lowest(
    course: Course, plain: Result, tmp_path: Path
) -> None:
    settings = with_settings(course, "[totals]\ndrop_lowest = 1\n")
    (course.root / "students.csv").write_text(
        "id,name\nada,Ada Roe\nzoe,Zoe Lee\n", encoding="utf-8"
    )
    scores = {"attention": 11.0, "heads": 20.0, "masks": 5.0}
    for name, score in scores.items():
        (course.root / "source" / name).mkdir(exist_ok=True)
        (course.root / "source" / name / f"{name}.py").write_text("", encoding="utf-8")
        tests = (TestOutcome("test_it", "failed", score, 20.0),)
        questions = (QuestionResult("softmax", score, 20.0, 0.0, None, tests),)
        write_result(
            course.root / "results",
            dataclasses.replace(
                plain, assignment=name, score=score, questions=questions
            ),
        )
    write_result(course.root / "results", dataclasses.replace(plain, student="zoe"))
    to = tmp_path / "totals.csv"
    (line,) = totals_command(
        settings, course.root / "results", to, on_stderr, provisional=False
    )
    assert line == f"totals of 2 students over 3 assignments in {to}"
    assert rows(to.read_text(encoding="utf-8")) == [
        [
            "student",
            "name",
            "email",
            "section",
            "attention",
            "heads",
            "masks",
            "dropped",
            "total",
            "note",
        ],
        ["ada", "Ada Roe", "", "", "55", "100", "25", "masks", "77.5", ""],
        [
            "zoe",
            "Zoe Lee",
            "",
            "",
            "55",
            "0",
            "0",
            "heads",
            "27.5",
            "heads: handed in nothing; masks: handed in nothing",
        ],
    ]


def test_a_total_of_which_a_part_is_not_known_is_none(plain: Result) -> None:
    known, waits = (
        mark_from_result(plain),
        dataclasses.replace(mark_from_result(plain), status="waits for a person"),
    )
    (row,) = totals({"a": [known], "b": [waits]}, 1)
    assert (row.total, row.dropped) == (None, ())
    (row,) = totals({"a": [known], "b": [waits]}, 1, provisional=True)
    assert (row.total, row.dropped) == (55.0, ("a",))
    (row,) = totals({"a": [known]}, 3)
    assert (row.total, row.dropped) == (55.0, ())
