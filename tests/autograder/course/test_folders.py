"""Where things lie in a course is said once, so that nothing that is hidden can be forgotten."""

from __future__ import annotations

import ast
from pathlib import Path

from autograder.course import Course
from autograder.course.folders import GRADEBOOK, Folder

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "autograder"
NAMES = {folder.path for folder in Folder} | {GRADEBOOK}


def test_student_code_sees_of_a_course_what_students_get_and_nothing_else() -> None:
    seen = {folder.path for folder in Folder if not folder.hidden}
    assert seen == {"assignments", "exchange"}
    assert {path.name for path in Course(Path("/course")).hidden} == {
        folder.path for folder in Folder
    } - seen


def test_every_folder_of_a_course_is_one_of_those() -> None:
    course = Course(Path("/course"))
    paths = [
        getattr(course, name)
        for name, kind in vars(Course).items()
        if isinstance(kind, property)
    ]
    tops = {
        path.relative_to(course.root).parts[0]
        for path in paths
        if isinstance(path, Path)
    }
    assert tops <= NAMES
    assert len(tops) > 6


def test_no_other_module_says_where_a_folder_lies() -> None:
    """`course.root / "results"` and its like: below a course's root stands no name that is written
    by hand.
    """
    found = [
        f"{file.relative_to(ROOT)}, line {node.lineno}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if "templates" not in file.parts
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        if isinstance(node.right, ast.Constant) and node.right.value in NAMES
        if ast.unparse(node.left).endswith("root")
    ]
    assert found == []


def test_working_data_is_never_committed() -> None:
    ignored = set((ROOT / ".gitignore").read_text(encoding="utf-8").split())
    assert {
        f"/{folder.path}/" for folder in Folder if folder.working
    } - ignored == set()
