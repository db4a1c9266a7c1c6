"""`check.py` knows the cells of a notebook whatever tool saved it."""

from __future__ import annotations

import pytest
from awkward import AWKWARD, TOOLS
from nbgrader_course import release_cells

from autograder.authoring.self_check import Released, hash_of, hash_of_first_line, match, read_cells

CODE = ["given_library", "double", "check_double", "half", "check_half"]


def released() -> list[Released]:
    """The release's cells as a table of `autograder release` names them."""
    made = []
    for cell in release_cells():
        if kit := cell.metadata.get("attention_kit"):
            defines = (kit.name,) if kit.role == "question" else ()
            texts = hash_of(cell.source), hash_of_first_line(cell.source)
            made.append(Released(cell.metadata.nbgrader.grade_id, kit.role, kit.name, defines, *texts))
    return made


@pytest.mark.parametrize("tool", [*TOOLS, "windows-1252"])
def test_every_code_cell_is_found_in_its_order(tool: str) -> None:
    cells = read_cells(AWKWARD[tool])
    found = match(released(), cells)
    assert [name for name in found if name in CODE] == CODE
    assert all(len(found[name]) == 1 for name in CODE)
    numbers = [found[name][0].number for name in CODE]
    assert numbers == sorted(numbers)
    assert found["half"][0].source.strip() == "def half(x):\n    return x // 2"
