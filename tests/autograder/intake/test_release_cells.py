"""The release as the matcher sees it."""

from __future__ import annotations

import json

import pytest
from multiples import LIBRARY, WRITTEN, code, notebook, question, text

from autograder.basics.errors import KitError
from autograder.course import Assignment
from autograder.intake.released_notebook import Release, load_release


def test_cells_have_ids_roles_and_names(release: Release) -> None:
    assert [(cell.id, cell.role, cell.name) for cell in release.cells] == [
        ("text_1", "text", "text_1"),
        ("given_imports", "given", "imports"),
        ("text_3", "text", "text_3"),
        ("double", "question", "double"),
        ("check_double", "check", "double"),
        ("given_library", "given", "library"),
        ("triple", "question", "triple"),
        ("check_triple", "check", "triple"),
        ("Counter", "question", "Counter"),
        ("check_Counter", "check", "Counter"),
        ("demo_plot", "demo", "plot"),
        ("written_why", "written", "why"),
    ]
    assert release.by_id["given_library"].source == LIBRARY
    assert release.by_id["written_why"].source == WRITTEN
    assert release.functions == {
        "double": {"double"},
        "triple": {"triple"},
        "Counter": {"Counter"},
    }


def test_a_question_may_define_several_functions(assignment: Assignment) -> None:
    stub = "@jit\ndef add_kernel(x):\n    pass\n\n\ndef add(x):\n    pass"
    assignment.release.write_text(json.dumps(notebook([question("add", stub)])))
    assert load_release(assignment).functions == {"add": {"add_kernel", "add"}}


@pytest.mark.parametrize(
    "content", [None, "{", json.dumps(notebook([text("# Nothing"), code("x = 1")]))]
)
def test_a_release_that_is_not_built_says_what_to_run(
    assignment: Assignment, content: str | None
) -> None:
    assignment.release.unlink()
    if content is not None:
        assignment.release.write_text(content)
    with pytest.raises(KitError, match=r"m1\.ipynb .*run `autograder build m1`"):
        load_release(assignment)
