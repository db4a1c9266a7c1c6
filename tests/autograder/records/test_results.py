import contextlib
import dataclasses
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from courses import on_stderr

from autograder.basics.whole_files import write_whole
from autograder.course import Assignment, Course, Grading, Limits
from autograder.grading.staleness import why_stale
from autograder.records import results
from autograder.records.model import Graded, Result, Speed, TwoAnswers


def test_a_result_comes_back_as_it_was(
    tmp_path: Path, plain: Result, hostile: Result
) -> None:
    paths = [results.write_result(tmp_path, result) for result in (plain, hostile)]
    assert paths[0] == tmp_path / "attention" / "ada.json"
    assert paths[0].read_text(encoding="utf-8") == plain.to_json()
    # "=" sorts before "a"
    assert results.read_results(tmp_path, "attention", on_stderr) == [hostile, plain]


STORED = Path(__file__).with_name("stored")
"""Files as `json.dumps(dataclasses.asdict(...), indent=1)` wrote them, before msgspec did. They
stay as they are.
"""


def test_a_result_of_an_earlier_version_is_written_back_in_the_same_bytes(
    tmp_path: Path,
) -> None:
    (result,) = results.read_results(STORED, "attention", on_stderr)
    softmax, attention = result.questions
    assert (result.score, result.max_score, result.walls, result.flagged) == (
        6.75,
        7.25001,
        "strict",
        ("softmax",),
    )
    assert (softmax.carried, softmax.kept, softmax.tests[2].max_points) == (
        1.0,
        0.5,
        1e-05,
    )
    assert (
        softmax.tests[1].message
        == '`softmax(z)` gives [\x1b[31m0.1, 1e-07]\nÜber \ud800 "x" \u2028 数'
    )
    assert softmax.two_answers[0].answers == ("float32[2]: 1", "float32[2]: 2")
    assert (attention.diagnosis, attention.two_answers) == (None, ())
    path = results.write_result(tmp_path, result)
    assert path.read_bytes() == (STORED / "attention" / "ada.json").read_bytes()


def test_a_timing_file_of_an_earlier_version_is_written_back_in_the_same_bytes() -> (
    None
):
    ada, bob, cyd = results.load_timing(STORED, "attention")
    assert (ada.seconds, [speed.ratio for speed in ada.speeds]) == (
        {"read": 0.25, "tests": 1.0},
        [4.0, 0.0],
    )
    assert (bob.problem, bob.machine, bob.seconds) == (
        "bob.ipynb: kein Notizbuch (ü)",
        "m1",
        {"run": 0.0},
    )
    assert cyd == Graded(
        "cyd", older="it was to be graded again, and the run ended first"
    )
    text = results.TimingFile(STORED, "attention").text()
    assert text.encode() == (STORED / "attention.timing.json").read_bytes()


def test_a_timing_file_holds_a_name_that_is_no_utf_8(tmp_path: Path) -> None:
    graded = Graded("\udcff", None, "\udcff.ipynb: is empty")
    results.TimingFile(tmp_path, "attention").note([graded])
    assert results.load_timing(tmp_path, "attention") == [graded]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (
            '{"student": "ada", "seconds": {"run": -1}}',
            r"Expected float >= 0.0 in submissions\[0\]\.seconds",
        ),
        (
            '{"student": "ada", "seconds": {"run": 1e10}}',
            "Expected float <= 1000000000.0 in submissions",
        ),
        (
            '{"student": "", "seconds": {}}',
            r"Expected str of length >= 1 in submissions\[0\]\.student",
        ),
        (
            '{"student": "ada", "speeds": [{"case": "", "seconds": -1, "baseline_seconds": 0}]}',
            "Expected float >= 0.0",
        ),
    ],
)
def test_times_that_are_none_are_refused(tmp_path: Path, entry: str, why: str) -> None:
    results.timing_path(tmp_path, "attention").write_text(
        f'{{"submissions": [{entry}]}}', encoding="utf-8"
    )
    with pytest.raises(ValueError, match=why):
        results.load_timing(tmp_path, "attention")


def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, plain: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = results.write_result(tmp_path, plain)

    def full_disk(descriptor: int) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        results.write_result(tmp_path, dataclasses.replace(plain, score=0.0))
    assert path.read_text(encoding="utf-8") == plain.to_json()
    assert [p.name for p in path.parent.iterdir()] == ["ada.json"]


def test_pieces_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    pieces: list[str | bytes] = ["a,ü\n", b"b,1\n", "\ud800\n"]
    write_whole(path, iter(pieces))
    assert path.read_bytes() == "a,ü\nb,1\n\\ud800\n".encode()

    def broken() -> Iterator[str]:
        yield "half"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_whole(path, broken())
    assert path.read_bytes() == "a,ü\nb,1\n\\ud800\n".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    ("student", "name"),
    [
        ("student-001", "student-001"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
        ("..", "%2E."),
        (".hidden", "%2Ehidden"),
        ("a\\b:c", "a%5Cb%3Ac"),
        ("a\nb\x00", "a%0Ab%00"),
        ("100%", "100%25"),
        ("Zoë 数", "Zoë 数"),
    ],
)
def test_a_student_is_one_path_component(student: str, name: str) -> None:
    assert results.path_name(student) == name


def test_a_long_name_fits_a_file_system_and_stays_its_own() -> None:
    first, second = (results.path_name("数" * 100 + ending) for ending in "ab")
    assert first != second
    assert len(first.encode()) <= 200


def test_a_longer_name_is_cut_at_200_bytes() -> None:
    """It keeps 183 of them, and its hash tells it from others."""
    assert results.path_name("x" * 200) == "x" * 200
    cut = results.path_name("x" * 201)
    assert cut[:184] == "x" * 183 + "~"
    assert len(cut) == 200
    assert results.path_name("数" * 67)[:62] == "数" * 61 + "~"


def test_a_student_needs_a_name() -> None:
    with pytest.raises(ValueError):
        results.path_name("")


def test_a_result_of_schema_1_is_read_and_stays_as_it_was(plain: Result) -> None:
    text = plain.to_json().replace('"schema": 2', '"schema": 1')
    assert "made_by" not in text
    old = Result.from_json(text)
    assert old.made_by == {}
    assert old.to_json() == text


def test_a_result_says_what_made_it(plain: Result) -> None:
    made_by = {"kit": "0.1.0 0123456789ab", "python": "3.11", "tier": "namespaces"}
    text = dataclasses.replace(plain, made_by=made_by).to_json()
    assert json.loads(text)["made_by"] == made_by
    assert Result.from_json(text).made_by == made_by


def test_broken_files_are_named_and_the_rest_is_read(
    tmp_path: Path, plain: Result
) -> None:
    path = results.write_result(tmp_path, plain)
    (path.parent / "student-002.json").write_text("{", encoding="utf-8")
    (path.parent / "student-003.json").write_text("[" * 100_000, encoding="utf-8")
    # somebody else's result
    (path.parent / "student-004.json").write_text(plain.to_json(), encoding="utf-8")
    (path.parent / "student-005.json").write_text(
        plain.to_json().replace('"schema": 2', '"schema": 3'), encoding="utf-8"
    )
    broken: list[str] = []
    assert results.read_results(tmp_path, "attention", broken.append) == [plain]
    assert [Path(line.partition(":")[0]).name for line in broken] == [
        "student-002.json",
        "student-003.json",
        "student-004.json",
        "student-005.json",
    ]
    assert "'ada'" in broken[2]


def test_a_broken_file_is_told_in_one_line(
    tmp_path: Path, plain: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    results.write_result(tmp_path, plain).write_text("{", encoding="utf-8")
    assert results.read_results(tmp_path, "attention", on_stderr) == []
    assert "ada.json: left out" in capsys.readouterr().err


def test_no_folder_is_no_results(tmp_path: Path) -> None:
    assert results.read_results(tmp_path, "attention", on_stderr) == []


def test_current_means_the_same_submission_suite_and_walls(
    tmp_path: Path, plain: Result
) -> None:
    results.write_result(tmp_path, plain)

    def current(
        student: str = "ada",
        submission: str = "sha-ada",
        suite: str = "suite-1",
        isolation: str = "strict",
    ) -> bool:
        result = results.read_result(tmp_path, "attention", student)
        return result is not None and not why_stale(
            result, submission, suite, {isolation}
        )

    assert current()
    assert not current(student="student-002")
    assert not current(submission="other")
    assert not current(suite="suite-2")
    assert not current(isolation="none")
    (tmp_path / "attention" / "ada.json").write_text("{", encoding="utf-8")
    assert not current()


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_a_result_under_another_students_name_is_left_out(
    tmp_path: Path, plain: Result, name: str
) -> None:
    """Before its own name in the alphabet, or behind."""
    path = results.write_result(tmp_path, plain)
    path.rename(path.with_name(f"{name}.json"))
    lines: list[str] = []
    assert results.read_results(tmp_path, "attention", lines.append) == []
    assert len(lines) == 1
    assert "it holds the result of " in lines[0]


def test_a_forgotten_result_is_gone(tmp_path: Path, plain: Result) -> None:
    results.write_result(tmp_path, plain)
    results.store_result(tmp_path, "attention", "ada", None)
    results.store_result(tmp_path, "attention", "nobody", None)
    assert results.read_results(tmp_path, "attention", on_stderr) == []


def test_every_input_of_a_score_counts(tmp_path: Path) -> None:
    assignment = Assignment("attention", tmp_path)
    for path in (assignment.release, assignment.solution):
        path.parent.mkdir(parents=True)
        path.write_text("{}", encoding="utf-8")
    course = Course(tmp_path)
    before = results.course_sha256(course, assignment)
    assert before == results.course_sha256(Course(tmp_path), assignment)
    others = {
        results.course_sha256(
            dataclasses.replace(course, limits=Limits(call_seconds=6.0)), assignment
        ),
        results.course_sha256(
            dataclasses.replace(course, grading=Grading(carry_credit=0.5)), assignment
        ),
    }
    # these decide when a run ends, and what is beside a result
    longer = dataclasses.replace(
        course,
        limits=Limits(run_minutes=7.0),
        grading=Grading(speed_bonus=5.0, speed_bonus_at=9.0),
    )
    assert results.course_sha256(longer, assignment) == before
    assignment.solution.write_text("{ }", encoding="utf-8")
    others.add(results.course_sha256(course, assignment))
    assignment.release.write_text("{ }", encoding="utf-8")
    others.add(results.course_sha256(course, assignment))
    write_whole(assignment.suite / "test_softmax.py", "")
    others.add(results.course_sha256(course, assignment))
    assert len(others | {before}) == 6


def test_times_of_a_partial_run_are_merged(
    tmp_path: Path, plain: Result, problem: Graded
) -> None:
    ada = Graded("ada", plain, "", {"read": 0.25, "tests": 1.0})
    results.TimingFile(tmp_path, "attention").note([ada, problem])
    path = results.timing_path(tmp_path, "attention")
    results.TimingFile(tmp_path, "attention").note(
        [dataclasses.replace(ada, seconds={"tests": 2.0})]
    )
    assert path == tmp_path / "attention.timing.json"
    entries = json.loads(path.read_text(encoding="utf-8"))["submissions"]
    assert entries[0] == {"student": "ada", "seconds": {"tests": 2.0}, "problem": ""}
    assert [
        (entry.student, entry.problem)
        for entry in results.read_timing(tmp_path, "attention")
    ] == [
        ("ada", ""),
        (problem.student, problem.problem),
    ]


def test_times_have_four_digits_and_ratios_three(tmp_path: Path) -> None:
    speed = Speed("small", 0.3, 1.0)
    graded = Graded("ada", seconds={"run": 1.23456, "tests": 0.00004}, speeds=(speed,))
    file = results.TimingFile(tmp_path, "attention")
    file.note([graded])
    (entry,) = json.loads(file.text())["submissions"]
    assert entry["seconds"] == {"run": 1.2346, "tests": 0.0}
    assert entry["speeds"] == [
        {
            "case": "small",
            "seconds": 0.3,
            "baseline_seconds": 1.0,
            "problem": "",
            "ratio": 3.333,
        }
    ]
    assert Speed("small", 0.0, 1.0).ratio == 0.0
    assert Speed("small", 0.3, 1.0, "it hangs").ratio == 0.0


def test_a_student_called_timing_has_a_result(tmp_path: Path, plain: Result) -> None:
    result = dataclasses.replace(plain, student="timing")
    results.TimingFile(tmp_path, "attention").note([Graded("timing", result)])
    results.write_result(tmp_path, result)
    assert results.read_results(tmp_path, "attention", on_stderr) == [result]


def test_a_broken_timing_file_stops_nothing(tmp_path: Path, plain: Result) -> None:
    results.timing_path(tmp_path, "attention").write_text(
        '{"submissions": [1]}', encoding="utf-8"
    )
    assert results.read_timing(tmp_path, "attention") == []
    results.TimingFile(tmp_path, "attention").note([Graded("ada", plain)])
    assert [entry.student for entry in results.read_timing(tmp_path, "attention")] == [
        "ada"
    ]


def test_the_timing_file_of_a_large_class_is_written_a_hundred_times_and_not_for_each(
    tmp_path: Path, plain: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    monkeypatch.setattr(
        results,
        "write_whole",
        lambda path, text, to_disk: written.append(
            len(json.loads(text)["submissions"])
        ),
    )
    timing = results.TimingFile(tmp_path, "attention")
    class_ = [
        Graded(f"s{number:03}", plain, "", {"tests": 1.0}) for number in range(250)
    ]
    for one in class_:
        timing.note([one], more=True)
    assert written == [*range(1, 101), *range(102, 202, 2), *range(203, 251, 3)]
    timing.note(class_)
    assert written[-1] == 250


def test_equal_tests_of_a_class_are_one_object(plain: Result) -> None:
    read = [Result.from_json(plain.to_json()) for _ in range(2)]
    assert read[0].questions[0].tests[0] is read[1].questions[0].tests[0]
    assert read[0].cells[0] is read[1].cells[0]
    assert read[0].to_json() == plain.to_json()


def test_a_clock_that_jumps_loses_nothing_of_the_history(
    tmp_path: Path, plain: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter(
        [
            datetime(2038, 1, 19, tzinfo=UTC),
            datetime(1970, 1, 1, tzinfo=UTC),
            datetime(2038, 1, 19, tzinfo=UTC),
        ]
    )
    monkeypatch.setattr(
        results, "datetime", SimpleNamespace(now=lambda zone: next(moments))
    )
    for number in range(4):
        results.write_result(
            tmp_path, dataclasses.replace(plain, suite_sha256=f"suite-{number}")
        )
    kept = {
        path.parent.name: Result.from_json(path.read_text())
        for path in tmp_path.glob("history/attention/*/ada.json")
    }
    assert {day: result.suite_sha256 for day, result in kept.items()} == {
        "2038-01-19": "suite-0",
        "1970-01-01": "suite-1",
        "2038-01-19.2": "suite-2",
    }


def test_a_result_of_another_assignment_is_broken(
    tmp_path: Path, plain: Result
) -> None:
    told: list[str] = []
    for name in ("a1", "z1"):
        (tmp_path / name).mkdir()
        text = dataclasses.replace(plain, assignment="m1").to_json()
        (tmp_path / name / "ada.json").write_text(text, encoding="utf-8")
        assert results.read_results(tmp_path, name, told.append) == []
    assert len(told) == 2


def test_records_to_come_are_written_with_those_that_are_there(
    tmp_path: Path, plain: Result
) -> None:
    file = results.TimingFile(tmp_path, "attention")
    file.note([Graded(f"s{number:03}", plain) for number in range(200)])
    names = [entry.student for entry in results.read_timing(tmp_path, "attention")]
    file.note([Graded("zoe", plain)], more=True)
    # one of 201 is less than a hundredth
    assert results.read_timing(tmp_path, "attention")[-1].student == names[-1]
    file.note([])
    assert results.read_timing(tmp_path, "attention")[-1].student == "zoe"


def test_only_the_run_of_a_whole_class_without_others_clears_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared: list[Path] = []
    monkeypatch.setattr(results, "clear_parts", lambda path, *_: cleared.append(path))
    is_locked = True

    held: list[tuple[Path, str, str, bool]] = []

    @contextlib.contextmanager
    def hold(
        lock: Path, action: str, alternative: str, *, shared: bool = False
    ) -> Iterator[bool]:
        held.append((lock, action, alternative, shared))
        yield is_locked

    monkeypatch.setattr(results, "hold_lock", hold)
    with results.lock_results(tmp_path / "locks", tmp_path, "m1", "1-of-2"):
        assert cleared == []
    with results.lock_results(tmp_path / "locks", tmp_path, "m1"):
        assert cleared == [tmp_path / "m1", tmp_path]
    is_locked = False
    with results.lock_results(tmp_path / "locks", tmp_path, "m1"):
        assert len(cleared) == 2
    # a lock for each folder that a run may write into
    with results.lock_results(tmp_path / "locks", tmp_path / "other", "m1"):
        pass
    whole, share, *others = [lock for lock, *_ in held]
    assert share == whole.with_name(f"{whole.name}-1-of-2")
    assert others[0] == others[1] == whole != others[2]
    assert {lock.parent for lock in (whole, *others)} == {tmp_path / "locks"}
    assert len(whole.name) == len("m1-") + 16
    action = f"writes results of m1 into {tmp_path}"
    alternative = ", or name another folder with --out"
    assert [rest for _, *rest in held[:3]] == [
        [action, alternative, True],
        [f"{action}, the share 1-of-2", alternative, False],
        [action, alternative, False],
    ]


def test_a_headline_keeps_the_questions_with_two_answers(plain: Result) -> None:
    first, *others = plain.questions
    twice = TwoAnswers("test_rows", "softmax(1)", ("first", "again"), ("1", "2"))
    flagged = dataclasses.replace(first, two_answers=(twice,))
    short = dataclasses.replace(plain, questions=(flagged, *others)).headline()
    assert short.questions == (dataclasses.replace(flagged, tests=()),)
    assert (short.cells, short.score) == ((), plain.score)
