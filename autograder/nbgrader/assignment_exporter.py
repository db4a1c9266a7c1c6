"""`nbgrader generate_assignment` and `generate_solution`: the same bytes as `autograder build`.

The kit builds an assignment with a hidden suite. Other notebooks go through nbgrader's own steps.
Only their cells are saved by the kit, so that an assignment can be corrected after students have
handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.converters import GenerateAssignment, GenerateSolution
from nbgrader.preprocessors import CheckCellMetadata, NbGraderPreprocessor, SaveCells

from autograder.authoring.build import build_assignment, write_build
from autograder.authoring.build_commands import suite_questions
from autograder.course import find_course
from autograder.nbgrader.assignment_rows import register_release
from autograder.nbgrader.gradebook import open_gradebook
from autograder.nbgrader.released_cells import nbgrader_notebook, suite_assignment

_TEXT = "attention_kit_text"


class BuiltExporter(NotebookExporter):  # type: ignore[misc]
    """Writes the built notebook, byte for byte."""

    def from_notebook_node(
        self, notebook: Any, resources: Any = None, **keywords: Any
    ) -> tuple[Any, Any]:
        output, resources = super().from_notebook_node(notebook, resources, **keywords)
        return resources.get(_TEXT, output), resources


class SaveRelease(SaveCells):  # type: ignore[misc]
    """Saves the cells of an assignment in one transaction, also when it has submissions."""

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        where = resources["nbgrader"]
        course = find_course(Path.cwd())
        with open_gradebook(course, where["db_url"]) as gradebook:
            release = nbgrader_notebook(where["notebook"], notebook)
            register_release(
                gradebook.db, gradebook.course_id, where["assignment"], release
            )
            gradebook.db.commit()
        return notebook, resources


class _MakeNotebook(NbGraderPreprocessor):  # type: ignore[misc]
    """Replaces a stand-in notebook by the built one, or runs nbgrader's steps.

    Attributes:
        nbgraders_steps: steps for a notebook without a hidden suite.
        own_steps: steps after a build.
        built_part: the field of `BuiltNotebooks` with the notebook.
    """

    nbgraders_steps: ClassVar[Sequence[type[Any]]]
    own_steps: ClassVar[Sequence[type[Any]]]
    built_part: ClassVar[str]

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        where = resources["nbgrader"]
        course = find_course(Path.cwd())
        steps = self.nbgraders_steps
        assignment = suite_assignment(course, where["assignment"], where["notebook"])
        if assignment is not None:
            built = build_assignment(course, assignment, suite_questions(assignment))
            write_build(assignment, built)
            resources[_TEXT] = getattr(built, self.built_part).decode()
            notebook = nbformat.reads(resources[_TEXT], as_version=4)
            steps = self.own_steps
        for step in steps:
            notebook, resources = step(parent=self.parent)(notebook, resources)
        return notebook, resources


class MakeRelease(_MakeNotebook):
    """`nbgrader generate_assignment`."""

    nbgraders_steps: ClassVar[Sequence[type[Any]]] = [
        SaveRelease if step is SaveCells else step
        for step in GenerateAssignment.preprocessors.default()
    ]
    own_steps = (CheckCellMetadata, SaveRelease)
    built_part = "release_bytes"


class MakeSolution(_MakeNotebook):
    """`nbgrader generate_solution`."""

    nbgraders_steps = GenerateSolution.preprocessors.default()
    own_steps = ()
    built_part = "solution_bytes"
