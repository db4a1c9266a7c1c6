"""Building: the release, the answer key, their metadata, and what is written where."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.utils import compute_checksum
from tiny_course import TINY, suite_question

from autograder.authoring.build import BuiltNotebooks, build_assignment, write_build
from autograder.basics.errors import BadSource, BadSuite
from autograder.course import Assignment, Course
from autograder.suite.collection import SuiteQuestion


@pytest.fixture
def built(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> BuiltNotebooks:
    return build_assignment(course, tiny, questions)


def cells(content: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(content)["cells"]
    return found


def cell(content: bytes, cell_id: str) -> dict[str, Any]:
    (found,) = (c for c in cells(content) if c["id"] == cell_id)
    return found


def text(content: bytes, cell_id: str) -> str:
    return "".join(cell(content, cell_id)["source"])


def marks(content: bytes, cell_id: str) -> dict[str, Any]:
    found = dict(cell(content, cell_id)["metadata"]["nbgrader"])
    assert len(found.pop("checksum")) == 32
    return found


def test_the_release_has_a_stub_where_the_answer_was(built: BuiltNotebooks) -> None:
    assert text(built.release_bytes, "question-double") == (
        'def double(x):\n    """Twice x."""\n    raise NotImplementedError("double: write your '
        'answer here")'
    )


def test_every_region_gets_a_stub_at_its_indentation(built: BuiltNotebooks) -> None:
    stub = 'raise NotImplementedError("half: write your answer here")'
    assert (
        text(built.release_bytes, "question-half")
        == f"def half(x):\n    if x == 0:\n        {stub}\n    {stub}"
    )


def test_the_answer_key_is_complete_and_without_markers(built: BuiltNotebooks) -> None:
    assert text(built.solution_bytes, "question-half") == (
        "def half(x):\n    if x == 0:\n        return x\n    return x * math.exp(-math.log(2.0))"
    )
    assert b"SOLUTION" not in built.solution_bytes


def test_a_written_answer_is_left_to_the_student(built: BuiltNotebooks) -> None:
    question = "Why is half(double(x)) the same as x?\n\n"
    assert text(built.release_bytes, "written-why") == question + "*Your answer here.*"
    assert text(built.solution_bytes, "written-why") == (
        question
        + "Halving undoes doubling, since one multiplies by two and the other divides by it."
    )


def test_the_cells_of_both_notebooks_have_the_same_ids(built: BuiltNotebooks) -> None:
    ids = [c["id"] for c in cells(built.release_bytes)]
    assert ids == [c["id"] for c in cells(built.solution_bytes)]
    assert ids[0].startswith("text-")
    assert ids[1:] == [
        "given-imports",
        "question-double",
        "check-double_1",
        "check-double",
        "question-half",
        "check-half",
        "demo-both",
        "written-why",
    ]


def test_every_cell_says_what_it_is(built: BuiltNotebooks) -> None:
    assert [
        tuple(c["metadata"]["attention_kit"][k] for k in ("role", "name"))
        for c in cells(built.release_bytes)
    ] == [
        ("text", ""),
        ("given", "imports"),
        ("question", "double"),
        ("check", "double"),
        ("check", "double"),
        ("question", "half"),
        ("check", "half"),
        ("demo", "both"),
        ("written", "why"),
    ]


READ_ONLY = {
    "grade": False,
    "solution": False,
    "locked": True,
    "task": False,
    "schema_version": 3,
    "cell_type": "code",
}


@pytest.mark.parametrize(
    ("cell_id", "settings"),
    [
        ("given-imports", {**READ_ONLY, "grade_id": "given_imports"}),
        (
            "question-double",
            {**READ_ONLY, "grade_id": "double", "solution": True, "locked": False},
        ),
        ("check-double_1", {**READ_ONLY, "grade_id": "check_double_1"}),
        (
            "check-double",
            {**READ_ONLY, "grade_id": "check_double", "grade": True, "points": 2.5},
        ),
        (
            "check-half",
            {**READ_ONLY, "grade_id": "check_half", "grade": True, "points": 3},
        ),
        (
            "written-why",
            {
                **READ_ONLY,
                "grade_id": "written_why",
                "grade": True,
                "solution": True,
                "locked": False,
                "points": 5,
                "cell_type": "markdown",
            },
        ),
    ],
)
def test_nbgrader_settings(
    built: BuiltNotebooks, cell_id: str, settings: dict[str, Any]
) -> None:
    assert marks(built.release_bytes, cell_id) == settings
    assert marks(built.solution_bytes, cell_id) == settings


def test_demos_and_text_are_not_nbgraders(built: BuiltNotebooks) -> None:
    plain = [c for c in cells(built.release_bytes) if "nbgrader" not in c["metadata"]]
    assert [c["metadata"]["attention_kit"]["role"] for c in plain] == ["text", "demo"]


def test_whole_points_are_written_as_integers(built: BuiltNotebooks) -> None:
    assert isinstance(marks(built.release_bytes, "check-half")["points"], int)


def test_points_carry_no_dust_of_adding_up(course: Course, tiny: Assignment) -> None:
    built = build_assignment(
        course, tiny, {"double": suite_question(0.1 + 0.2), "half": suite_question(0.7)}
    )
    assert marks(built.release_bytes, "check-double")["points"] == 0.3
    assert built.points == 6


def test_locked_cells_can_neither_be_edited_nor_deleted(built: BuiltNotebooks) -> None:
    assert {
        c["id"]: (
            c["metadata"].get("editable", True),
            c["metadata"].get("deletable", True),
        )
        for c in cells(built.release_bytes)[1:]
    } == {
        "given-imports": (False, False),
        "question-double": (True, False),
        "check-double_1": (False, False),
        "check-double": (False, False),
        "question-half": (True, False),
        "check-half": (False, False),
        "demo-both": (True, True),
        "written-why": (True, False),
    }


def test_a_question_without_a_check_gets_a_grade_cell(built: BuiltNotebooks) -> None:
    assert text(built.release_bytes, "check-half") == (
        "# half is worth 3 points. It has no visible check: try it on examples of your own."
    )


def test_nbgrader_accepts_both_notebooks(built: BuiltNotebooks) -> None:
    for content in (built.release_bytes, built.solution_bytes):
        notebook = nbformat.reads(content.decode(), as_version=4)
        nbformat.validate(notebook)
        MetadataValidator().validate_nb(notebook)
        for c in notebook.cells:
            if "nbgrader" in c.metadata:
                assert c.metadata.nbgrader.checksum == compute_checksum(c)


def test_the_notebook_is_plain_and_ends_with_a_newline(built: BuiltNotebooks) -> None:
    notebook = json.loads(built.release_bytes)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"] == {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    assert all(
        c["outputs"] == [] and c["execution_count"] is None
        for c in notebook["cells"]
        if "outputs" in c
    )
    assert built.release_bytes.endswith(b"}\n")
    assert list(notebook) == sorted(notebook)


def test_building_twice_gives_the_same_bytes(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    built: BuiltNotebooks,
) -> None:
    assert build_assignment(course, tiny, dict(reversed(questions.items()))) == built


def test_points_of_all_kinds_are_added_up(built: BuiltNotebooks) -> None:
    assert (built.notebook.questions, built.points) == (("double", "half"), 10.5)


def test_figures_and_data_go_out_and_hidden_files_do_not(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    folder = tiny.source.parent
    for name in (
        "data/deep/b.csv",
        "data/a.csv",
        "data/.secret",
        "figures/__pycache__/x.pyc",
        "notes/plan.md",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    assert build_assignment(course, tiny, questions).files == (
        ("figures/line.svg", b"<svg/>"),
        ("data/a.csv", b"data/a.csv"),
        ("data/deep/b.csv", b"data/deep/b.csv"),
    )


def test_a_link_among_the_figures_is_refused(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    (tiny.source.parent / "figures" / "key.svg").symlink_to(tiny.suite / "test_half.py")
    with pytest.raises(
        BadSource,
        match=r"^source/tiny/figures/key\.svg: a link; put the file itself here",
    ):
        build_assignment(course, tiny, questions)


def test_a_missing_picture_is_refused(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    (tiny.source.parent / "figures" / "line.svg").unlink()
    with pytest.raises(
        BadSource,
        match=r"^source/tiny/tiny\.py:8: the text refers to figures/line\.svg, which is not",
    ):
        build_assignment(course, tiny, questions)


def test_a_question_without_tests_is_refused(course: Course, tiny: Assignment) -> None:
    with pytest.raises(BadSuite) as caught:
        build_assignment(course, tiny, {"double": suite_question(1.0)})
    assert (
        str(caught.value)
        == "tests/hidden/tiny: no tests for half; a question has a file test_<question>.py"
    )


def test_tests_without_a_question_are_refused(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    with pytest.raises(BadSuite) as caught:
        build_assignment(course, tiny, {**questions, "third": suite_question(1.0)})
    assert str(caught.value) == (
        "tests/hidden/tiny: tests for third, which the notebook does not ask; it asks double, half"
    )


def test_two_cells_of_one_grade_id_are_refused(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    more = (
        '\n# %% question="check_half"\ndef check_half():\n    ### BEGIN SOLUTION\n    return 1\n '
        "   ### END SOLUTION\n"
    )
    tiny.source.write_text(TINY + more)
    with pytest.raises(
        BadSource,
        match=r"its grade_id would be 'check_half', like that of source/tiny/tiny\.py:\d+; ",
    ):
        build_assignment(course, tiny, {**questions, "check_half": suite_question(1.0)})


def test_both_notebooks_and_their_files_are_written(
    tiny: Assignment, built: BuiltNotebooks
) -> None:
    written = write_build(tiny, built)
    assert [path.relative_to(tiny.root).as_posix() for path in written] == [
        "assignments/tiny/figures/line.svg",
        "assignments/tiny/tiny.ipynb",
        "solutions/tiny/figures/line.svg",
        "solutions/tiny/tiny.ipynb",
    ]
    assert tiny.release.read_bytes() == built.release_bytes
    assert tiny.solution.read_bytes() == built.solution_bytes
    assert {path.name for path in tiny.release.parent.iterdir()} == {
        "tiny.ipynb",
        "figures",
    }


def test_writing_again_changes_nothing(tiny: Assignment, built: BuiltNotebooks) -> None:
    write_build(tiny, built)
    before = tiny.release.stat().st_mtime_ns
    assert write_build(tiny, built) == []
    assert tiny.release.stat().st_mtime_ns == before


def test_figures_that_the_source_no_longer_has_are_removed_and_nothing_else(
    tiny: Assignment, built: BuiltNotebooks
) -> None:
    write_build(tiny, built)
    folder = tiny.release.parent
    for name in ("figures/old/gone.svg", "data/gone.csv", "header.ipynb"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("old")
    removed = write_build(tiny, built)
    assert [path.relative_to(folder).as_posix() for path in removed] == [
        "data/gone.csv",
        "figures/old/gone.svg",
    ]
    assert {path.name for path in folder.iterdir()} == {
        "tiny.ipynb",
        "figures",
        "header.ipynb",
    }
    assert [path.name for path in (folder / "figures").iterdir()] == ["line.svg"]


def test_old_files_stay_whole_when_writing_fails(
    tiny: Assignment, built: BuiltNotebooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_build(tiny, built)
    old = tiny.release.read_bytes()
    newer = type(built)(b"new release", b"new key", (), built.notebook, built.points)

    def disk_full(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", disk_full)
    with pytest.raises(OSError, match="no space left"):
        write_build(tiny, newer)
    assert tiny.release.read_bytes() == old
    assert {path.name for path in tiny.release.parent.iterdir()} == {
        "tiny.ipynb",
        "figures",
    }
