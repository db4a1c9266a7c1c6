"""One notebook that carries a release, the environment of students, and published solutions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_course import TINY

from autograder.authoring.build import BuiltNotebooks, build_assignment, write_build
from autograder.authoring.published_solutions import publish_solutions
from autograder.authoring.single_file import colab_badge
from autograder.authoring.student_environment import environment_files
from autograder.authoring.student_package import write_release
from autograder.basics.errors import KitError
from autograder.course import Assignment, Course
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import load_release
from autograder.records.submission import FoundSubmission
from autograder.student_tools import check_here
from autograder.suite.collection import SuiteQuestion

LIBRARY = '''\
# %% given="library" module="library"
def quarter(x):
    """x in four."""
    return x / 4

'''


@pytest.fixture
def built(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> BuiltNotebooks:
    """The tiny course with a library, data and a figure."""
    tiny.source.write_text(
        TINY.replace('# %% question="double"', LIBRARY + '# %% question="double"')
    )
    (tiny.source.parent / "data").mkdir()
    (tiny.source.parent / "data" / "numbers.csv").write_bytes(b"1,2\xff")
    notebooks = build_assignment(course, tiny, questions)
    write_build(tiny, notebooks)
    return notebooks


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text())
    return notebook


@pytest.mark.usefixtures("built")
def test_one_notebook_carries_all_and_is_handed_in_like_any_other(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "out" / "tiny.ipynb"
    assert write_release(course, tiny, questions, file, "colab") == ["tiny.ipynb"]
    notebook = read(file)
    texts = ["".join(cell["source"]) for cell in notebook["cells"]]
    assert "![a line](data:image/svg+xml;base64,PHN2Zy8+)" in texts[0]
    first = notebook["cells"][1]
    assert first["metadata"]["cellView"] == "form"
    assert first["metadata"]["jupyter"] == {"source_hidden": True}
    assert texts[1].startswith("# @title Files of this notebook: run this cell first {")
    assert "colab" in notebook["metadata"]

    # its first cell writes the files, and then does what it does in the release
    (tmp_path / "host").mkdir()
    monkeypatch.chdir(tmp_path / "host")
    names: dict[str, Any] = {}
    exec(texts[1], names)
    assert names["math"].pi > 3
    assert sorted(path.as_posix() for path in Path().rglob("*") if path.is_file()) == [
        "check.py",
        "data/numbers.csv",
        "environment.yml",
        "requirements.txt",
        "tiny.cells.json",
        "tiny_library.py",
    ]
    assert Path("data/numbers.csv").read_bytes() == b"1,2\xff"

    # handed in, no cell of it counts as changed, with its metadata or without
    for change in (lambda cell: None, lambda cell: cell.update(metadata={})):
        for cell in notebook["cells"]:
            change(cell)
        file.write_text(json.dumps(notebook))
        found = FoundSubmission("ada", file)
        submission = read_submission(found, load_release(tiny), course.limits)
        assert [cell.id for cell in submission.cells if "changed" in cell.note] == []
        assert not any("b64decode" in cell.source for cell in submission.cells)
        assert not any(cell.id.startswith("extra") for cell in submission.cells)


@pytest.mark.usefixtures("built")
def test_a_single_file_overwrites_nothing(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    tmp_path: Path,
) -> None:
    file = tmp_path / "tiny.ipynb"
    write_release(course, tiny, questions, file, "plain")
    write_release(course, tiny, questions, file, "plain")  # the same file again
    with pytest.raises(KitError, match="is there already"):
        write_release(course, tiny, questions, file, "kaggle")
    with pytest.raises(KitError, match=r"name a file ending in \.ipynb"):
        write_release(course, tiny, questions, tmp_path / "tiny.zip", "kaggle")


def test_a_badge_opens_the_notebook_at_github() -> None:
    host = "https://colab.research.google.com"
    assert colab_badge("ada/course", "a2/a2.ipynb") == (
        f"[![Open in Colab]({host}/assets/colab-badge.svg)]"
        f"({host}/github/ada/course/blob/main/a2/a2.ipynb)"
    )


def test_students_get_the_grader_s_torch() -> None:
    import torch

    files = environment_files(["numpy", "torch"])
    requirements = files["requirements.txt"].decode()
    assert f"\ntorch=={torch.__version__.partition('+')[0]}\n" in requirements
    assert "the CPU build of the same version" in requirements
    assert "\nnumpy>=" in requirements
    assert "      - torch==" in files["environment.yml"].decode()
    assert environment_files([])["requirements.txt"] == b"jupyterlab\n"


@pytest.mark.usefixtures("built")
def test_published_solutions_have_outputs_and_pictures(
    course: Course, tiny: Assignment, tmp_path: Path
) -> None:
    """This starts a kernel."""
    to = tmp_path / "public"
    names = publish_solutions(course, tiny, to, quick=True)
    assert names[:2] == ["tiny.html", "tiny.ipynb"]
    assert sorted(path.name for path in to.iterdir()) == [
        "data",
        "figures",
        "tiny.html",
        "tiny.ipynb",
        "tiny_library.py",
    ]
    cells = {cell["id"]: cell for cell in read(to / "tiny.ipynb")["cells"]}
    assert cells["demo-both"]["outputs"][0]["text"].strip() == "5.0"
    assert not any(id_.startswith("guide") for id_ in cells)
    page = (to / "tiny.html").read_text()
    assert "doubled_by_addition" in page
    assert "data:image/svg+xml;base64,PHN2Zy8+" in page
    assert "PHN2Zy8+" not in (to / "tiny.ipynb").read_text()

    key = read(tiny.solution)
    key["cells"][3]["source"] = "1 / 0"
    tiny.solution.write_text(json.dumps(key))
    with pytest.raises(
        KitError, match="cell 4 of the answer key fails: ZeroDivisionError"
    ):
        publish_solutions(course, tiny, to, quick=True)


def test_without_a_file_what_ran_is_looked_at() -> None:
    """As on a host that shows no file to the kernel."""
    released = [
        {
            "metadata": {"attention_kit": {"role": "question", "name": "f"}},
            "source": ["def f", "(x):"],
        },
        {"metadata": {}, "source": "text"},
    ]
    history = [
        "",
        "import math",
        "def f(x):\n    return 1",
        "f(2)",
        "# mine\ndef f(x):\n    return 2",
    ]
    cells = list(check_here._answered(released, history))
    assert [cell["source"] for cell in cells] == [
        "# mine\ndef f(x):\n    return 2",
        "text",
    ]
    assert next(check_here._answered(released, []))["source"] == "def f(x):"
