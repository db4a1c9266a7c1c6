"""What a run leaves in its timing file: entries of shares, older results, problems; and class-wide
results as JSON.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from autograder.records import results as results_module
from autograder.records.model import (
    Graded,
    ManualGrades,
    ManualScore,
    Result,
    Speed,
)
from autograder.records.results import (
    TimingFile,
    load_timing,
    read_timing,
    results_as_json,
    timing_path,
    write_result,
)


def write_plain_result(folder: Path, student: str) -> Result:
    result = Result("m1", student, "sha", "suite", "strict", 1.0, 2.0, (), ())
    write_result(folder, result)
    return result


def test_the_file_of_a_whole_class_takes_in_those_of_shares(tmp_path: Path) -> None:
    for share, student in (("1-of-2", "ada"), ("2-of-2", "ben")):
        graded = Graded(student, seconds={"run": 1.5})
        TimingFile(tmp_path, "m1", share, [student]).note([graded])
    shares = tmp_path / "m1.timing"
    assert sorted(path.name for path in shares.iterdir()) == [
        "1-of-2.json",
        "2-of-2.json",
    ]
    TimingFile(tmp_path, "m1").note([Graded("cyd", problem="no notebook")])
    assert not shares.exists()
    assert [entry.student for entry in load_timing(tmp_path, "m1")] == [
        "ada",
        "ben",
        "cyd",
    ]


def test_the_file_of_a_share_keeps_the_students_of_the_share_alone(
    tmp_path: Path,
) -> None:
    TimingFile(tmp_path, "m1").note([Graded("ada"), Graded("ben")])
    share = TimingFile(tmp_path, "m1", "1-of-2", ["ada", "cyd"])
    share.note([Graded("cyd")])
    stored = json.loads(timing_path(tmp_path, "m1", "1-of-2").read_text())
    assert [entry["student"] for entry in stored["submissions"]] == ["ada", "cyd"]


def test_of_two_files_the_entry_that_was_written_last_counts(tmp_path: Path) -> None:
    for number, share in enumerate(("1-of-2", "2-of-2")):
        graded = Graded("ada", problem=f"problem {number}")
        TimingFile(tmp_path, "m1", share, ["ada"]).note([graded])
        seconds = 100 - number
        os.utime(timing_path(tmp_path, "m1", share), (seconds, seconds))
    (entry,) = load_timing(tmp_path, "m1")
    assert entry.problem == "problem 0"


def test_a_result_that_was_not_tried_again_is_marked_as_older(tmp_path: Path) -> None:
    """Of ada there is a result, which stays; of ben there is none, so he has the problem."""
    write_plain_result(tmp_path, "ada")
    times = TimingFile(tmp_path, "m1")
    times.note([Graded("ada", seconds={"run": 1.0}, machine="node 1")])
    untried = [
        Graded(student, problem="no host", untried=True) for student in ("ada", "ben")
    ]
    times.note(untried)
    ada, ben = load_timing(tmp_path, "m1")
    assert (ada.problem, ada.older) == ("", "no host")
    assert (ada.seconds, ada.machine) == ({"run": 1.0}, "node 1")
    assert (ben.problem, ben.older) == ("no host", "")


def test_results_are_marked_before_they_are_graded_again(tmp_path: Path) -> None:
    write_plain_result(tmp_path, "ada")
    times = TimingFile(tmp_path, "m1")
    times.mark_older(["ben"])
    assert not timing_path(tmp_path, "m1").exists()
    times.mark_older(["ada", "ben"])
    (entry,) = load_timing(tmp_path, "m1")
    assert (entry.student, entry.older) == (
        "ada",
        "it was to be graded again, and the run ended first",
    )
    times.note([Graded("ada", seconds={"run": 2.00004})])
    (entry,) = load_timing(tmp_path, "m1")
    assert (entry.older, entry.seconds) == ("", {"run": 2.0})


def test_a_file_is_written_after_each_hundredth_of_its_class(tmp_path: Path) -> None:
    """Of 200 students after two records, and at the end of the run."""
    students = [f"s{number:03}" for number in range(200)]
    TimingFile(tmp_path, "m1").note([Graded(student) for student in students])
    times = TimingFile(tmp_path, "m1")

    def problems() -> int:
        return sum(bool(entry.problem) for entry in load_timing(tmp_path, "m1"))

    written = []
    for student in students[:5]:
        times.note([Graded(student, problem="none")], more=True)
        written.append(problems())
    assert written == [0, 2, 2, 4, 4]
    times.note([])
    assert problems() == 5


def test_a_file_that_another_machine_replaces_is_read_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    TimingFile(tmp_path, "m1").note([Graded("ada")])
    read_stored: Any = vars(results_module)["read_stored"]
    errors = [OSError(errno.ESTALE, "Stale file handle")]

    def read(*arguments: object) -> object:
        if errors:
            raise errors.pop()
        return read_stored(*arguments)

    monkeypatch.setattr(results_module, "read_stored", read)
    assert [entry.student for entry in load_timing(tmp_path, "m1")] == ["ada"]
    # of another error, and of a second one, the file is broken
    for number in (errno.EIO, errno.ESTALE):
        errors += [OSError(number, "no file")] * 2
        lines: list[str] = []
        assert read_timing(tmp_path, "m1", lines.append) == []
        assert "no file" in lines[0]
        assert len(errors) == (1 if number == errno.EIO else 0)
        errors.clear()


def test_a_time_is_less_than_thirty_years(tmp_path: Path) -> None:
    path = timing_path(tmp_path, "m1")
    for seconds, is_read in ((1e9, True), (1.1e9, False)):
        entry = {"student": "ada", "seconds": {"run": seconds}, "problem": ""}
        path.write_text(json.dumps({"submissions": [entry]}))
        assert len(read_timing(tmp_path, "m1")) == is_read


def test_a_speed_without_a_time_has_no_ratio() -> None:
    assert Speed("small", 0.5, 2.0).ratio == 4.0
    assert Speed("small", 0.0, 2.0).ratio == 0.0
    assert Speed("small", 0.5, 2.0, "it differs").ratio == 0.0


# a class in one text


def test_results_of_a_class_are_one_array(tmp_path: Path) -> None:
    results = [write_plain_result(tmp_path, student) for student in ("ada", "ben")]
    text = "".join(results_as_json(tmp_path, "m1", ["ben", "ada"]))
    assert json.loads(text) == [
        json.loads(result.to_json()) for result in reversed(results)
    ]
    one = "".join(results_as_json(tmp_path, "m1", ["ada"]))
    assert one == f"[{results[0].to_json().rstrip()}]\n"
    assert "".join(results_as_json(tmp_path, "m1", [])) == "[]\n"


# points of people


def test_points_of_people_are_equal_whatever_the_gradebook_was_filled_from() -> None:
    score = ManualScore("why", 2.0, 1.5)
    grades = ManualGrades("ada", (score,))
    same = ManualGrades(
        "ada",
        (ManualScore("why", 2.0, 1.5, answer="hash"),),
        automatic={"double": 1.0},
        submission="hash",
    )
    assert same == grades
    assert ManualGrades("ada", (ManualScore("why", 2.0, 1.0),)) != grades
