"""docs/architecture.md tells what there is, and the package keeps to it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "autograder"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MODULES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
    if "templates" not in path.parts
}


def named_modules() -> set[str]:
    """Modules in the first column of a table; in "`suite/calls.py`, `kinds.py`" the folder counts on."""
    found = set()
    for row in re.findall(r"^\| (`[^|]+) \|", PAGE, re.MULTILINE):
        folder = ""
        for code in re.findall(r"`([^`]+)`", row):
            folder = code.rpartition("/")[0] + "/" if "/" in code else folder
            found.add(code if "/" in code else folder + code)
    return {name for name in found if name.endswith(".py")}


def test_the_tables_name_every_module_and_no_other() -> None:
    assert named_modules() == {name for name in MODULES if not name.endswith(("__init__.py", "__main__.py"))}
