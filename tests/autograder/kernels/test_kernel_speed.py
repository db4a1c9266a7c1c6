"""Speeds: what a suite declares, and what the timing file, the exports, the pages and the command
line make of them.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from click.testing import CliRunner
from courses import on_stderr
from kernel_course import answer, notebook

from autograder.basics.errors import BadCourseFile, BadSuite
from autograder.cli.commands import main
from autograder.course import Course, Grading, Limits, load_course
from autograder.grading import speed_meter
from autograder.grading.speed_meter import SpeedMeter
from autograder.grading.staleness import why_stale
from autograder.outputs.feedback_page import render_feedback
from autograder.outputs.speed_table import describe_speeds, speed_bonus
from autograder.records.model import Graded, QuestionResult, Result, Speed, TestOutcome
from autograder.records.results import (
    TimingFile,
    course_sha256,
    read_result,
    read_timing,
    timing_path,
    write_result,
)
from autograder.reporting.marks_commands import ExportRequest, export_command
from autograder.suite.timed_functions import SpeedCase, SpeedTest, load_speed_test

REPOSITORY = Path(__file__).resolve().parents[3]
# 2 and 8 times: 4 in the geometric mean
FAST = (Speed("N = 1024", 0.5, 1.0), Speed("N = 4096", 0.25, 2.0))


def result(student: str, isolation: str = "strict+cuda") -> Result:
    double = QuestionResult(
        "double",
        4.0,
        4.0,
        0.0,
        None,
        (TestOutcome("test_doubles", "passed", 4.0, 4.0),),
    )
    return Result("kernels", student, "a", "b", isolation, 4.0, 4.0, (double,), ())


# what is declared


def test_the_kits_own_assignment_is_timed_against_attention() -> None:
    test = load_speed_test(REPOSITORY / "tests" / "hidden" / "a7_tiled_attention")
    assert test is not None
    assert (test.question, test.function) == ("triton_attention", "triton_attention")
    names: dict[str, object] = {}
    exec(test.baseline, names)
    baseline = names["baseline"]
    assert callable(baseline)
    q, k, v = (
        torch.zeros(1, 1, 2, 1),
        torch.zeros(1, 1, 3, 1),
        torch.tensor([3.0, 6.0, 9.0]).view(1, 1, 3, 1),
    )
    assert baseline(q, k, v).flatten().tolist() == pytest.approx([6.0, 6.0])
    # aligned at the bottom right: the first of two queries sees two of three keys
    assert baseline(q, k, v, causal=True).flatten().tolist() == pytest.approx(
        [4.5, 6.0]
    )
    assert test.answer((q, k)) is q
    cases = test.cases()
    assert [case.name for case in cases] == [
        "N = 1024",
        "N = 1024, causal",
        "N = 4096",
        "N = 4096, causal",
    ]
    assert [case.keywords["causal"] for case in cases] == [False, True, False, True]
    assert cases[2].arguments[0].shape == (1, 16, 4096, 64)
    assert cases[0].arguments[0].dtype == torch.float16


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("QUESTION = 'double'\n", "speed.py: TOLERANCE is missing"),
        (
            "import no_such_module\n",
            "speed.py: it does not import: ModuleNotFoundError",
        ),
    ],
)
def test_a_declaration_that_lacks_something_is_named(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "speed.py").write_text(text, encoding="utf-8")
    with pytest.raises(BadSuite, match=said):
        load_speed_test(tmp_path)


def test_most_suites_declare_nothing(tmp_path: Path) -> None:
    assert load_speed_test(tmp_path) is None


# points


def test_the_bonus_grows_from_the_baselines_speed_on() -> None:
    grading = Grading(speed_bonus=3.0, speed_bonus_at=7.0)
    assert speed_bonus(FAST, grading) == 1.5  # 4 times: half the way from 1 to 7
    assert speed_bonus([Speed("n", 0.1, 1.0)], grading) == 3.0
    assert speed_bonus([Speed("n", 2.0, 1.0)], grading) == 0.0
    assert speed_bonus([*FAST, Speed("n", 0.0, 1.0, "wrong")], grading) == 0.0
    assert speed_bonus([], grading) == 0.0
    assert speed_bonus(FAST, Grading()) == 0.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[grading]\nspeed_bonus = -1.0\n",
            "speed_bonus = -1.0: it must be a number from 0 to 1000",
        ),
        (
            "[grading]\nspeed_bonus_at = 1.0\n",
            "speed_bonus_at = 1.0: it must be a number above 1, up to 1000",
        ),
        (
            "[limits]\ngpu_call_seconds = 0\n",
            "gpu_call_seconds = 0: it must be a number above 0, up to 86400",
        ),
    ],
)
def test_settings_that_make_no_sense_are_named(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "course.toml").write_text(text, encoding="utf-8")
    with pytest.raises(BadCourseFile, match=said):
        load_course(tmp_path)


def test_a_bonus_makes_no_result_stale_and_a_limit_does(course: Course) -> None:
    assignment = course.assignment("kernels")
    grading = dataclasses.replace(course.grading, speed_bonus=2.0, speed_bonus_at=9.0)
    before = course_sha256(course, assignment)
    assert (
        course_sha256(dataclasses.replace(course, grading=grading), assignment)
        == before
    )
    for change in ("call_seconds", "gpu_call_seconds"):
        limits = dataclasses.replace(course.limits, **{change: 7.0})  # type: ignore[arg-type]
        assert (
            course_sha256(dataclasses.replace(course, limits=limits), assignment)
            != before
        )


# files and pages


def test_speeds_stand_in_the_timing_file_and_never_in_the_result(
    tmp_path: Path,
) -> None:
    graded = Graded("student-001", result("student-001"), speeds=FAST)
    TimingFile(tmp_path, "kernels").note(
        [graded, Graded("student-002", result("student-002"))]
    )
    path = timing_path(tmp_path, "kernels")
    first, second = json.loads(path.read_text(encoding="utf-8"))["submissions"]
    assert first["speeds"][1] == {
        "case": "N = 4096",
        "seconds": 0.25,
        "baseline_seconds": 2.0,
        "problem": "",
        "ratio": 8.0,
    }
    assert "speeds" not in second
    assert [entry.speeds for entry in read_timing(tmp_path, "kernels")] == [FAST, ()]
    assert "speed" not in result("student-001").to_json()


def test_a_result_of_a_gpu_is_none_of_a_cpu(tmp_path: Path) -> None:
    write_result(tmp_path, result("student-001"))
    stored = read_result(tmp_path, "kernels", "student-001")
    assert stored is not None
    assert not why_stale(stored, "a", "b", {"strict+cuda"})
    assert why_stale(stored, "a", "b", {"strict"})
    assert (
        result("x").walls,
        result("x", "none+cuda").walls,
        result("x", "uid").walls,
    ) == (
        "strict",
        "none",
        "uid",
    )


def test_the_bonus_is_a_column_of_its_own_where_the_course_gives_one(
    course: Course, tmp_path: Path
) -> None:
    for student in ("student-001", "student-002"):
        write_result(tmp_path, result(student))
    graded = [Graded("student-001", result("student-001"), speeds=FAST)]
    TimingFile(tmp_path, "kernels").note(graded)

    def rows(given: Course) -> list[list[str]]:
        (text,) = export_command(
            ExportRequest(given, given.assignment("kernels"), tmp_path, "csv"),
            on_stderr,
        )
        return list(csv.reader(io.StringIO(text)))

    assert rows(course)[0] == ["student", "double", "total", "max", "status", "note"]
    generous = dataclasses.replace(
        course, grading=Grading(speed_bonus=3.0, speed_bonus_at=7.0)
    )
    assert rows(generous) == [
        ["student", "double", "total", "max", "speed_bonus", "status", "note"],
        ["student-001", "4", "4", "4", "1.5", "graded", ""],
        ["student-002", "4", "4", "4", "0", "graded", ""],
    ]


def test_people_read_how_many_times() -> None:
    said = describe_speeds([*FAST, Speed("N = 9", 0.0, 1.0, "it has no speed here")])
    assert (
        said
        == "N = 1024: 2.00 times; N = 4096: 8.00 times; N = 9: it has no speed here"
    )
    page = render_feedback(result("student-001"), speed=said)
    assert "8.00 times" in page
    assert "Speed on a GPU" not in render_feedback(result("student-001"))


# the command line


@pytest.fixture
def handed_in(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(course.root)
    path = tmp_path / "student-001.ipynb"
    path.write_text(notebook(answer()), encoding="utf-8")
    return path


def test_without_cuda_the_command_says_what_is_missing(
    handed_in: Path, tmp_path: Path
) -> None:
    if torch.version.cuda is not None:
        pytest.skip("this torch has CUDA")
    done = CliRunner().invoke(
        main,
        [
            "grade",
            "kernels",
            str(handed_in),
            "--device",
            "cuda",
            "--workers",
            "2",
            "--out",
            str(tmp_path / "out"),
        ],
    )
    assert done.exit_code == 2
    assert "one submission is graded at a time; --workers has no effect" in done.stderr
    assert "autograder: this build of torch has no CUDA: install" in done.stderr
    assert not (tmp_path / "out").exists()


def test_walls_that_a_gpu_does_not_go_with_are_refused(
    handed_in: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    done = CliRunner().invoke(
        main,
        [
            "grade",
            "kernels",
            str(handed_in),
            "--device",
            "cuda",
            "--isolation",
            "landlock",
            "--out",
            out,
        ],
    )
    assert done.exit_code == 2
    assert "behind the walls 'landlock' no GPU can be used" in done.stderr


def test_an_assignment_without_kernels_has_nothing_for_a_gpu(
    handed_in: Path, course: Course, tmp_path: Path
) -> None:
    suite = course.root / "tests" / "hidden" / "kernels" / "test_double.py"
    text = suite.read_text(encoding="utf-8")
    suite.write_text(text.replace("student.launch(", "student.cost("), encoding="utf-8")
    try:
        done = CliRunner().invoke(
            main,
            [
                "grade",
                "kernels",
                str(handed_in),
                "--device",
                "cuda",
                "--out",
                str(tmp_path / "out"),
            ],
        )
    finally:
        suite.write_text(text, encoding="utf-8")
    assert done.exit_code == 2
    assert "no test of kernels launches a kernel" in done.stderr


# what goes wrong


def _meter(
    monkeypatch: pytest.MonkeyPatch, times: dict[str, object], answer: object = None
) -> SpeedMeter:
    """A meter whose `_timed` gives these results, without any worker."""
    monkeypatch.setattr(
        speed_meter,
        "Worker",
        lambda *_: SimpleNamespace(load=lambda *_: iter([None]), kill=lambda: None),
    )

    def timed(student: object, name: str, case: SpeedCase) -> tuple[object, float]:
        given = times[name]
        if isinstance(given, Exception):
            raise given
        return given, 0.5

    monkeypatch.setattr(speed_meter, "_time_call", timed)
    cases = (SpeedCase("one", (), {}),)
    take = cast("Any", answer or (lambda result: result))
    bench = cast("Any", SimpleNamespace(client=None, limits=Limits()))
    return SpeedMeter(
        bench, SpeedTest("double", "double", "", lambda: cases, take, 0.1)
    )


NO_WORKER = cast("Any", None)


@pytest.mark.parametrize(
    "wrong",
    [(torch.ones(2), 1), torch.ones(0), AttributeError("shape"), RuntimeError("sizes")],
)
def test_a_baseline_that_is_none_costs_nobody_a_result(
    monkeypatch: pytest.MonkeyPatch, wrong: object
) -> None:
    (made,) = _meter(monkeypatch, {"baseline": wrong}).measure(NO_WORKER)
    assert (made.case, made.ratio) == ("baseline", 0.0)
    assert made.problem.startswith("the baseline itself has no speed here")


def test_a_strange_answer_has_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"baseline": torch.ones(2), "double": [1.0, 1.0]}
    (made,) = _meter(monkeypatch, answers, lambda result: result.float()).measure(
        NO_WORKER
    )
    assert made.ratio == 0.0
    assert "has no attribute 'float'" in made.problem
    (fine,) = _meter(
        monkeypatch, {"baseline": torch.ones(2), "double": torch.ones(2)}
    ).measure(NO_WORKER)
    assert (fine.ratio, fine.problem) == (1.0, "")
