"""Files that are packed, and the table of totals, by values worked out by hand."""

from __future__ import annotations

import dataclasses
import io
import zipfile
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest

from autograder.basics.errors import KitError
from autograder.course import Assignment, Course
from autograder.course.roster import Person
from autograder.marks.marks import Mark
from autograder.outputs.bundle import (
    archive_entry,
    course_files,
    files_below,
    render_script,
)
from autograder.outputs.feedback_archive import pack_feedback
from autograder.outputs.feedback_page import feedback_path
from autograder.outputs.kit_wheel import kit_wheel, write_kit_wheel
from autograder.outputs.totals import (
    course_totals,
    find_split_students,
    totals,
    totals_csv,
)
from autograder.records.model import Result

RESULT = Result("m1", "ada", "sha", "suite", "strict", 1.0, 8.0, (), ())


def test_files_below_are_regular_ones_without_caches(tmp_path: Path) -> None:
    for name in ("b/file", "a", "c.pyc", "__pycache__/d", ".ipynb_checkpoints/e"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    names = [path.relative_to(tmp_path).as_posix() for path in files_below(tmp_path)]
    assert names == ["a", "b/file"]


def test_an_entry_has_rights_and_no_time_of_its_own() -> None:
    entry = archive_entry("a", 0o755)
    assert (entry.filename, entry.external_attr >> 16 & 0o777) == ("a", 0o755)
    # the first time that a zip can write
    assert entry.date_time == (1980, 1, 1, 0, 0, 0)
    # of Unix, whose rights count, and compressed
    assert (entry.create_system, entry.compress_type) == (3, zipfile.ZIP_DEFLATED)


def test_the_files_of_an_assignment_come_with_the_suites_settings(
    tmp_path: Path,
) -> None:
    course, assignment = Course(tmp_path), Assignment("m1", tmp_path)
    paths = {
        "source": assignment.source,
        "release": assignment.release,
        "solution": assignment.solution,
        "test": assignment.suite / "test_m1.py",
        "settings": assignment.suite.parent / "pytest.ini",
    }
    for name, command in (
        ("release", "build"),
        ("solution", "build"),
        ("test", "verify"),
    ):
        words = rf"is not there: run `autograder {command} m1` first$"
        with pytest.raises(KitError, match=words):
            list(course_files(course, assignment))
        paths[name].parent.mkdir(parents=True)
        paths[name].touch()
    order = ["release", "solution", "test"]
    assert list(course_files(course, assignment)) == [paths[name] for name in order]
    paths["source"].parent.mkdir(parents=True)
    for name in ("source", "settings"):
        paths[name].touch()
    order = ["settings", "source", *order]
    assert list(course_files(course, assignment)) == [paths[name] for name in order]


def test_a_script_is_filled_in_between_its_own_braces(tmp_path: Path) -> None:
    """Shells and workflows use jinja's. A name that nobody gives is a mistake of the template."""
    template = tmp_path / "run.sh"
    template.write_text(
        "<# of a bundle #>\n<% for name in names %>\necho ${{ x }} << name >>\n<% endfor %>\n"
    )
    script = render_script(template, names=["m1", "m2"])
    assert script == "echo ${{ x }} m1\necho ${{ x }} m2\n"
    with pytest.raises(jinja2.UndefinedError):
        render_script(template)


def test_feedback_is_packed_under_one_name_a_page(tmp_path: Path) -> None:
    """Ada and bob are a group, whose page is packed once; who has no result, or no page yet, is
    left out, and whom the platform does not know is named.
    """
    marks = [mark(student, 1.0) for student in ("ada", "bob", "cyd", "dan", "eve")]
    names = dict.fromkeys(("ada", "bob"), "team.html") | {"dan": "dan.html"}
    graded = [
        dataclasses.replace(each, result=result)
        for each, result in zip(
            marks, [RESULT, RESULT, RESULT, None, RESULT], strict=True
        )
    ]
    for student in ("ada", "bob", "cyd", "dan"):
        path = feedback_path(tmp_path, "m1", student)
        path.parent.mkdir(parents=True)
        path.write_text(f"page of {student}", encoding="utf-8")

    def name_of_page(mark: Mark, assignment: str) -> str:
        assert assignment == "m1"
        return names.get(mark.student, "")

    pieces, unknown = pack_feedback(graded, "m1", tmp_path, name_of_page)
    assert unknown == ("cyd",)
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
        (entry,) = archive.infolist()
        assert (entry.filename, archive.read(entry)) == ("team.html", b"page of bob")
        assert entry.external_attr >> 16 & 0o777 == 0o644


def test_a_kit_that_pip_does_not_know_has_no_wheel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", unknown)
    with pytest.raises(KitError, match=r"^attention-kit is not installed here"):
        kit_wheel()


def test_a_wheel_has_the_package_and_what_pip_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RECORD has the hash of each other file, in base 64 without its padding."""
    package = tmp_path / "autograder"
    package.mkdir()
    for name in ("__init__.py", "py.typed", "old.pyc"):
        (package / name).write_text(name, encoding="utf-8")
    licence = tmp_path / "pip.dist-info/licenses/LICENSE"
    licence.parent.mkdir(parents=True)
    licence.write_text("MIT", encoding="utf-8")
    other = tmp_path / "pip.dist-info/INSTALLER"
    located = [
        SimpleNamespace(parent=path.parent, name=path.name, locate=lambda p=path: p)
        for path in (licence, other)
    ]
    texts = {"METADATA": "Name: attention-kit\n"}
    kit = SimpleNamespace(version="1.2.3", files=located, read_text=texts.get)
    monkeypatch.setattr(metadata, "distribution", lambda name: kit)
    monkeypatch.setattr("autograder.__file__", str(package / "__init__.py"))
    name, content = kit_wheel()
    assert name == "attention_kit-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        files = {path: wheel.read(path).decode() for path in wheel.namelist()}
        rights = {entry.external_attr >> 16 & 0o777 for entry in wheel.infolist()}
    folder = "attention_kit-1.2.3.dist-info"
    record = files.pop(f"{folder}/RECORD")
    assert files == {
        f"{folder}/METADATA": "Name: attention-kit\n",
        f"{folder}/WHEEL": "Wheel-Version: 1.0\nGenerator: attention-kit\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
        f"{folder}/entry_points.txt": "",
        f"{folder}/licenses/LICENSE": "MIT",
        "autograder/__init__.py": "__init__.py",
        "autograder/py.typed": "py.typed",
    }
    assert rights == {0o644}
    lines = record.split("\n")
    assert lines[2] == (
        # of nothing
        f"{folder}/entry_points.txt,"
        "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0"
    )
    assert [line.partition(",")[0] for line in lines] == [
        *sorted(files),
        f"{folder}/RECORD",
        "",
    ]
    assert lines[-2] == f"{folder}/RECORD,,"
    assert kit_wheel() == (name, content)
    kit.files = None  # where pip kept no list
    _, content = kit_wheel()
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        assert f"{folder}/licenses/LICENSE" not in wheel.namelist()


def test_the_wheel_takes_the_place_of_another_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kit"
    folder.mkdir()
    for name in ("attention_kit-0.0.9-py3-none-any.whl", "other-1.whl"):
        (folder / name).touch()
    wheel = "attention_kit-0.1.0-py3-none-any.whl"
    monkeypatch.setattr(
        "autograder.outputs.kit_wheel.kit_wheel", lambda: (wheel, b"wheel")
    )
    assert write_kit_wheel(Course(tmp_path), folder) == folder / wheel
    assert sorted(path.name for path in folder.iterdir()) == [wheel, "other-1.whl"]
    assert (folder / wheel).read_bytes() == b"wheel"
    write_kit_wheel(Course(tmp_path), folder)
    assert (folder / wheel).exists()


def mark(student: str, points: float, status: str = "graded", **fields: object) -> Mark:
    return Mark(student, status, total=points, max_score=8.0, **fields)  # type: ignore[arg-type]


def test_the_table_of_totals_says_what_is_missing() -> None:
    ada = Person("s1", "Ada", "a@b", "A", {})
    by_assignment = {
        "m1": [mark("ada", 6.0, person=ada), mark("bob", 8.0)],
        "m2": [mark("ada_7", 1.0, person=ada), mark("bob", 0.0, "no notebook")],
        "m3": [mark("bob", 4.0, "waits for a person")],
    }
    rows = totals(by_assignment, drop_lowest=1)
    lines = [
        line.split(",") for line in totals_csv(rows, list(by_assignment)).splitlines()
    ]
    assert lines == [
        [
            "student",
            "name",
            "email",
            "section",
            "m1",
            "m2",
            "m3",
            "dropped",
            "total",
            "note",
        ],
        [
            "bob",
            "",
            "",
            "",
            "100",
            "0",
            "",
            "",
            "",
            "m2: no notebook; m3: waits for a person",
        ],
        [
            "s1",
            "Ada",
            "a@b",
            "A",
            "75",
            "12.5",
            "0",
            "m3",
            "43.75",
            "m3: handed in nothing",
        ],
    ]
    provisional = totals(by_assignment, drop_lowest=1, provisional=True)
    assert provisional[0].total == 75.0
    assert totals_csv([], []).startswith(
        "student,name,email,section,dropped,total,note"
    )


def test_who_is_numbered_anew_in_each_assignment_may_have_a_row_for_each() -> None:
    """Ada is in the class list, Bob has both assignments, and Cyd's platform keeps its numbers."""
    ada = Person("s1", "Ada", "a@b", "A", {})
    numbered = {"moodle": "7"}
    by_assignment = {
        "m1": [
            mark("ada", 6.0, person=ada, ids=numbered),
            mark("bob", 8.0, ids=numbered),
            mark("cyd", 8.0, ids={"canvas": "8"}),
            mark("dan", 8.0, ids={"canvas": "8", "moodle": "9"}),
            mark("eve", 8.0, ids={"moodle": ""}),
        ],
        "m2": [mark("bob", 8.0, ids=numbered)],
    }
    rows = totals(by_assignment, drop_lowest=0)
    assert find_split_students(rows, list(by_assignment)) == {"dan": "moodle"}


def test_one_assignment_always_counts() -> None:
    (row,) = totals({"m1": [mark("ada", 6.0)]}, drop_lowest=3)
    assert (row.total, row.dropped) == (75.0, ())


def test_a_total_has_two_digits() -> None:
    by_assignment = {name: [mark("ada", 1.0)] for name in ("m1", "m2")}
    by_assignment["m3"] = [mark("ada", 0.0)]
    (row,) = totals(by_assignment, drop_lowest=0)
    assert row.total == 8.333333
    (_, line) = totals_csv([row], list(by_assignment)).splitlines()
    assert line.split(",")[-2] == "8.33"


def test_a_course_names_its_own_assignments(tmp_path: Path) -> None:
    source = Assignment("m1", tmp_path).source
    source.parent.mkdir(parents=True)
    source.touch()
    lines: list[str] = []
    marks = {"m1": [mark("ada", 6.0)]}
    (row,) = course_totals(Course(tmp_path), marks, lines.append, provisional=False)
    assert (row.total, lines) == (75.0, [])
    (tmp_path / "course.toml").write_text("[totals.weights]\nm9 = 1\n")
    from autograder.course import load_course

    with pytest.raises(KitError):
        course_totals(load_course(tmp_path), marks, lines.append, provisional=False)
