"""Companions: the files that `build` writes beside a notebook, and how they reach the worker."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from tiny_course import HEADER, TINY

from autograder.authoring.build import (
    BuiltNotebooks,
    build_assignment,
    stale_files,
    write_build,
)
from autograder.authoring.companions import (
    carried_text,
    module_name,
    move_into_companions,
)
from autograder.authoring.source_notebook import read_source
from autograder.basics.definitions import bound_names
from autograder.basics.errors import BadSource
from autograder.course import Assignment, Course
from autograder.intake.companion_files import load_companions
from autograder.intake.released_notebook import load_release
from autograder.sitting.reference import load_reference
from autograder.suite.collection import SuiteQuestion

QUESTION = '# %% question="f"\ndef f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n'
LIBRARY = '''\
# %% given="library" module="library"
def _log_of_two():
    return math.log(2.0)


def halved(x):
    """x in two."""
    return x * math.exp(-_log_of_two())

'''
WITH_LIBRARY = TINY.replace(
    '# %% question="double"', LIBRARY + '# %% question="double"'
).replace("return x * math.exp(-math.log(2.0))", "return halved(x)")


def move(tiny: Assignment, text: str) -> tuple[list[str], dict[str, str]]:
    """The texts of the cells, and the companions."""
    tiny.source.write_text(HEADER + text, encoding="utf-8")
    notebook, companions = move_into_companions(read_source(tiny), {})
    return [cell.source for cell in notebook.cells], companions


@pytest.fixture
def built(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> BuiltNotebooks:
    """The tiny course with a library in a module, built and written."""
    tiny.source.write_text(WITH_LIBRARY, encoding="utf-8")
    notebooks = build_assignment(course, tiny, questions)
    write_build(tiny, notebooks)
    return notebooks


def test_the_import_of_a_helper_becomes_one_from_a_file_beside_the_notebook(
    tiny: Assignment,
) -> None:
    given = (
        '# %% given="expect"\nimport math\n'
        "from autograder.student_tools.expect import expect  # ours\n\n"
    )
    cells, companions = move(tiny, given + QUESTION)
    assert cells[0] == (
        "import math\nfrom tiny_tools import check, checking, expect, next_hint, progress  # ours"
    )
    (path,) = companions
    assert path == "tiny_tools.py"
    assert "\ndef expect(actual: Any, expected: Any, atol: float" in companions[path]
    assert "type: ignore" not in companions[path]
    assert "from autograder" not in companions[path]


def test_the_import_of_the_tracer_ships_the_strict_interpreter(
    tiny: Assignment,
) -> None:
    given = '# %% given="strict"\nif f:\n    from autograder.kernels.strict_triton import trace\n\n'
    cells, companions = move(tiny, QUESTION + given)
    assert cells[1] == "if f:\n    from tiny_kernels import trace"
    body = ast.parse(companions["tiny_kernels.py"]).body
    names = [
        node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    ]
    assert {"Strict", "install", "trace"} <= set(names)
    assert {"Memory", "Compiler", "Autotuned"} <= set(
        names
    )  # of the files that it imports
    # files share one namespace there
    assert len(names) == len(set(names))
    assert "from autograder" not in companions["tiny_kernels.py"]


def test_a_name_that_students_are_asked_for_is_not_imported(tiny: Assignment) -> None:
    """A course may ask for a function called `predict`, or `check`."""
    tools = (
        '# %% given="expect"\nfrom autograder.student_tools.expect import expect\n'
        "from autograder.student_tools.predictions import predict\n\n"
    )
    asked = QUESTION.replace('"f"', '"check"').replace("def f", "def check")
    cells, _ = move(tiny, tools + asked)
    assert cells[0] == "from tiny_tools import checking, expect, next_hint, progress"
    prediction = (
        '# %% predict="one"\npredict("How many?", answer=1, because="One.")\n\n'
    )
    with pytest.raises(BadSource, match="so no question can be called predict"):
        move(tiny, tools + prediction + asked.replace("check", "predict"))
    cells, _ = move(tiny, tools + prediction + QUESTION)
    assert cells[0].endswith(
        "import check, checking, expect, next_hint, predict, progress"
    )


def test_files_of_one_companion_share_no_name(tiny: Assignment) -> None:
    """They become one module: a helper of one file would replace that of another."""
    given = (
        '# %% given="expect"\nfrom autograder.student_tools.expect import expect\n'
        "from autograder.student_tools.no_triton import NoTriton, kernels_run\n\n"
    )
    _, companions = move(tiny, given + QUESTION)
    body = ast.parse(companions["tiny_tools.py"]).body
    is_import = (ast.Import, ast.ImportFrom)
    names = [
        name
        for node in body
        if not isinstance(node, is_import)
        for name in bound_names(node)
    ]
    assert [name for name in names if names.count(name) > 1] == []


def test_a_text_comes_once_and_after_those_that_it_needs() -> None:
    kernels = "autograder.kernels."
    text = carried_text([f"{kernels}compiler", f"{kernels}memory"])
    assert text.count("class Memory:") == 1
    assert text.index("class KernelFault") < text.index("class Compiler")


def test_a_given_cell_becomes_a_module_with_the_imports_that_it_needs(
    tiny: Assignment,
) -> None:
    imports = '# %% given="imports"\nimport math\nimport os\n\n'
    cells, companions = move(tiny, imports + LIBRARY + QUESTION)
    assert cells[:2] == [
        "import math\nimport os",
        "# Their text is in tiny_library.py;\n# help(halved) shows what one of them does.\n"
        "from tiny_library import halved",
    ]
    head, _, text = companions["tiny_library.py"].partition("import math")
    assert ast.get_docstring(ast.parse(head)) is not None
    assert text.startswith("\n\n\ndef _log_of_two():\n")
    assert "import os" not in text


def test_a_long_import_is_wrapped_to_88_columns(tiny: Assignment) -> None:
    functions = "".join(f"def function_number_{n}():\n    pass\n\n" for n in range(9))
    cells, _ = move(tiny, f'# %% given="g" module="many"\n{functions}' + QUESTION)
    assert max(map(len, cells[0].split("\n"))) <= 88
    body = ast.parse(cells[0]).body
    assert isinstance(body[0], ast.ImportFrom)
    assert [alias.name for alias in body[0].names] == [
        f"function_number_{n}" for n in range(9)
    ]


def test_a_module_that_needs_a_name_of_the_notebook_is_refused(
    tiny: Assignment,
) -> None:
    with pytest.raises(
        BadSource, match="the module library needs math, which neither it nor an"
    ):
        move(tiny, LIBRARY + QUESTION)


def test_the_name_of_an_assignment_becomes_that_of_a_module() -> None:
    assert module_name("week-1.2", "tools") == "week_1_2_tools"
    assert module_name("2024", "tools") == "_2024_tools"


def test_a_file_that_is_not_the_built_one_is_refused(
    tiny: Assignment, built: BuiltNotebooks
) -> None:
    library = tiny.release.with_name("tiny_library.py")
    assert load_companions(tiny.release) == {"tiny_library.py": library.read_text()}
    assert load_release(tiny).companions == built.companions
    library.write_text(library.read_text() + "\n")
    with pytest.raises(
        BadSource, match=r"tiny_library\.py is not the file that tiny\.ipynb was"
    ):
        load_release(tiny)
    library.unlink()
    with pytest.raises(BadSource, match=r"tiny_library\.py cannot be read"):
        load_release(tiny)


def test_a_file_that_the_source_has_no_more_is_stale(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    built: BuiltNotebooks,
) -> None:
    assert stale_files(tiny, built) == []
    tiny.source.write_text(TINY, encoding="utf-8")
    again = build_assignment(course, tiny, questions)
    names = [path.name for path in stale_files(tiny, again)]
    assert names == [
        "tiny_library.py",
        "tiny_library.py",
    ]  # of the release, of the answer key
    write_build(tiny, again)
    assert not tiny.release.with_name("tiny_library.py").exists()
    assert "attention_kit" not in json.loads(again.release_bytes)["metadata"]


@pytest.mark.usefixtures("built")
def test_two_answer_keys_import_their_own_files_of_one_name(tiny: Assignment) -> None:
    """In one process, as the tests of this kit load them."""
    first = load_reference(tiny)
    for folder in (tiny.release.parent, tiny.solution.parent):
        file = folder / "tiny_library.py"
        text = file.read_text()
        file.write_text(text.replace("return x *", "return 3 * x *"))
    _sign_again(tiny.solution)
    second = load_reference(tiny)
    assert (first["halved"](4), second["halved"](4)) == (2.0, 6.0)


def _sign_again(notebook: Path) -> None:
    """Let the notebook's metadata fit the changed files beside it."""
    from autograder.intake.companion_files import companion_metadata

    texts = {path.name: path.read_text() for path in notebook.parent.glob("*.py")}
    raw = json.loads(notebook.read_text())
    raw["metadata"] |= companion_metadata(texts)
    notebook.write_text(json.dumps(raw))
