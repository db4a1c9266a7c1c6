"""The platforms by their names: what the command line and the instructors' page offer follows from
their modules.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.course.platform_names import NAMES, PUSH_PLATFORMS, WITH_IDS
from autograder.course.roster import read_roster
from autograder.platforms.registry import (
    export_formats,
    platforms,
    with_downloads,
    with_own_file,
)

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
MODULES = {
    "collect",
    "submission_folder",
    "api_client",
    "download_people",
    "files_beside",
    "moodle_worksheet",
    "canvas_gradebook",
    "fill",
    "push",
    "platform",
    "registry",
    "canvas_api",
    "moodle_api",
    "__init__",
}


def first_cells(heading: str) -> set[str]:
    """The words in the first column of the table on the instructors' page that has this heading."""
    table = PAGE.split(f"| {heading} |")[1].split("\n\n")[0]
    return {
        word
        for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
        for word in re.findall(r"`([^`]+)`", row)
    }


def test_every_module_of_a_platform_is_registered() -> None:
    there = {path.stem for path in (ROOT / "autograder" / "platforms").glob("*.py")}
    assert there - MODULES == NAMES.keys()


def test_the_page_has_a_row_for_every_download_and_every_format() -> None:
    assert first_cells("`--from`") == set(with_downloads())
    assert first_cells("format") == set(export_formats())


def test_what_can_be_pushed_and_what_is_filled() -> None:
    assert [
        name for name, platform in platforms().items() if platform.interface
    ] == list(PUSH_PLATFORMS)
    assert [name for name in with_own_file() if not NAMES[name].own_file] == []
    assert PUSH_PLATFORMS == ("canvas", "moodle", "classroom")


@pytest.mark.parametrize("name", WITH_IDS)
def test_the_class_list_has_a_column_for_every_platform_with_ids(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "students.csv").write_text(f"id,{name}\ns1,77\n", encoding="utf-8")
    roster = read_roster(tmp_path)
    assert roster is not None
    assert roster[0].ids_on(name) == ("77",)
