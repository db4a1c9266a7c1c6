"""A notebook of any format is read; anything else is refused in one line that names the file."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as given_
from hypothesis import settings
from hypothesis import strategies as st
from multiples import ANSWERS, AT, notebook, sheet

from autograder.basics.errors import UnreadableSubmission
from autograder.course import Course
from autograder.intake.notebook import read_submission
from autograder.intake.reading import MAX_CELLS, parse_notebook
from autograder.intake.released_notebook import Release
from autograder.records.submission import FoundSubmission, Submission

Read = Callable[..., Submission]


@pytest.fixture
def expected(read: Read) -> list[tuple[str, str]]:
    return [(cell.id, cell.source) for cell in read(sheet(ANSWERS)).cells]


def cells_of(submission: Submission) -> list[tuple[str, str]]:
    return [(cell.id, cell.source) for cell in submission.cells]


def as_format_3() -> dict[str, Any]:
    cells = []
    for cell in sheet(ANSWERS):
        old = {
            key: value
            for key, value in cell.items()
            if key not in ("source", "execution_count")
        }
        key = "input" if cell["cell_type"] == "code" else "source"
        cells.append(
            {**old, key: cell["source"], "language": "python", "collapsed": False}
        )
    cells.append(
        {"cell_type": "heading", "level": 2, "source": "The end", "metadata": {}}
    )
    return {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {},
        "worksheets": [{"cells": cells[:5]}, {"cells": cells[5:]}],
    }


def with_ids(*ids: str) -> dict[str, Any]:
    return notebook(
        [{**cell, "id": ids[n % len(ids)]} for n, cell in enumerate(sheet(ANSWERS))]
    )


def by_lines(ends: bool) -> dict[str, Any]:
    return notebook(
        [
            {**cell, "source": cell["source"].splitlines(keepends=ends)}
            for cell in sheet(ANSWERS)
        ]
    )


@pytest.mark.parametrize(
    "content",
    [
        as_format_3(),
        {**notebook(sheet(ANSWERS)), "nbformat_minor": 0},
        {"cells": sheet(ANSWERS)},
        with_ids("a", "b"),
        with_ids("same"),
        by_lines(ends=True),
        by_lines(ends=False),
        notebook(
            [
                {**cell, "source": cell["source"].replace("\n", "\r\n")}
                for cell in sheet(ANSWERS)
            ]
        ),
        notebook(
            [
                7,
                None,
                "cell",
                *sheet(ANSWERS),
                {"cell_type": "code"},
                {"cell_type": ["code"], "source": {}},
            ]
        ),
        json.dumps(notebook(sheet(ANSWERS))).encode("utf-8-sig"),
        json.dumps(notebook(sheet(ANSWERS))).encode("utf-16"),
        json.dumps(notebook(sheet(ANSWERS))).encode("utf-32-be"),
        json.dumps(notebook(sheet(ANSWERS)), indent=2).replace("\n", "\r\n").encode(),
    ],
    ids=[
        "format-3",
        "4.0",
        "no-format",
        "ids",
        "same-ids",
        "lines",
        "bare-lines",
        "crlf",
        "odd-cells",
        "bom",
        "utf-16",
        "utf-32",
        "crlf-file",
    ],
)
def test_every_format_gives_the_same_cells(
    read: Read, expected: list[tuple[str, str]], content: Any
) -> None:
    assert cells_of(read(content)) == expected


def test_letters_in_windows_1252_are_read_and_it_is_said(read: Read) -> None:
    cells = sheet({**ANSWERS, "double": ANSWERS["double"] + "  # naïve"})
    submission = read(json.dumps(notebook(cells), ensure_ascii=False).encode("cp1252"))
    assert submission.cells[1].source.endswith("# naïve")
    assert [notice.id for notice in submission.notices] == ["notebook"]
    assert "Windows-1252" in submission.notices[0].message


def test_half_a_surrogate_can_be_written_as_utf_8(read: Read) -> None:
    cells = sheet({**ANSWERS, "double": ANSWERS["double"] + "  # \ud800"})
    assert read(cells).cells[1].source.endswith("# \ufffd")


def test_outputs_are_dropped(read: Read, expected: list[tuple[str, str]]) -> None:
    cells = sheet(ANSWERS)
    cells[AT["double"]]["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": "8 " * 1000}
    ]
    assert cells_of(read(cells)) == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 not a notebook", "is not a notebook"),
        (b"<html>Log in</html>", "is not a notebook"),
        (b"\xff\xfe\x00", "is not a notebook"),
        (
            b'{\n<<<<<<< HEAD\n "cells": []\n=======\n "cells": [1]\n>>>>>>> mine\n}',
            "unresolved merge conflict",
        ),
        (b"[1, 2]", "has no cells"),
        (b'{"cells": {"a": 1}}', "has no cells"),
        (b'{"worksheets": 3}', "has no cells"),
        (b'{"cells": ' + b"1" * 5000 + b"}", "is not a notebook"),
        (b"[" * 200_000, "nested too deeply"),
        (b"[" * 600_000, "too many lists"),
        (b" " * (2**20 + 1), "larger than 1 MB"),
        (
            json.dumps(notebook([{"cell_type": "raw"}] * (MAX_CELLS + 1))).encode(),
            "more than 2000 cells",
        ),
    ],
)
def test_what_is_no_notebook_is_refused_in_one_line(
    read: Read, content: bytes, reason: str
) -> None:
    with pytest.raises(UnreadableSubmission) as refusal:
        read(content)
    message = str(refusal.value)
    assert message.startswith("student-001.ipynb: ")
    assert reason in message
    assert "\n" not in message


def test_far_too_much_code_is_refused() -> None:
    cells = [{"cell_type": "code", "source": "x" * 1_100_000}] * 2
    with pytest.raises(UnreadableSubmission, match="more than 2 MB of text"):
        parse_notebook(json.dumps(notebook(cells)).encode(), "big.ipynb")


@pytest.fixture
def refused(course: Course, release: Release) -> Callable[[Path], str]:
    def refused_(path: Path) -> str:
        with pytest.raises(UnreadableSubmission) as refusal:
            read_submission(
                FoundSubmission("student-001", path), release, course.limits
            )
        return str(refusal.value)

    return refused_


def test_what_is_no_file_is_refused(
    tmp_path: Path, refused: Callable[[Path], str]
) -> None:
    (tmp_path / "folder.ipynb").mkdir()
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert "is a folder" in refused(tmp_path / "folder.ipynb")
    assert "is a pipe" in refused(tmp_path / "pipe.ipynb")
    assert "no such file" in refused(tmp_path / "none.ipynb")
    assert "is a device" in refused(Path("/dev/zero"))


def test_links_to_other_work_are_refused(
    tmp_path: Path, course: Course, refused: Callable[[Path], str]
) -> None:
    key = course.root / "solutions" / "m1" / "m1.ipynb"
    submitted = tmp_path / "submitted"
    for student in ("student-005", "secret"):
        (submitted / student).mkdir(parents=True)
    (submitted / "link.ipynb").symlink_to(key)
    (submitted / "secret" / "m1").symlink_to(key.parent)
    (submitted / "trudy").symlink_to(submitted / "student-005")
    (submitted / "student-005" / "m1").mkdir()
    (submitted / "student-005" / "m1" / "m1.ipynb").write_bytes(key.read_bytes())
    assert "is a link" in refused(submitted / "link.ipynb")
    assert "is a link" in refused(submitted / "secret" / "m1" / "m1.ipynb")
    assert "is a link" in refused(submitted / "trudy" / "m1" / "m1.ipynb")


def test_a_hostile_file_name_stays_on_one_line(
    tmp_path: Path, refused: Callable[[Path], str]
) -> None:
    path = tmp_path / "a\nb\x1b[31m\u202e.ipynb"
    path.write_bytes(b"")
    assert refused(path).startswith("a?b?[31m?.ipynb: ")


def test_a_renamed_notebook_and_its_neighbours_are_spoken_of(
    tmp_path: Path, course: Course, release: Release
) -> None:
    folder = tmp_path / "submitted" / "student-001" / "m1"
    folder.mkdir(parents=True)
    (folder / "my m1.ipynb").write_text(json.dumps(notebook(sheet(ANSWERS))))
    (folder / "old.ipynb").write_text("{}")
    submission = read_submission(
        FoundSubmission("student-001", folder / "my m1.ipynb"), release, course.limits
    )
    messages = [notice.message for notice in submission.notices]
    assert len(messages) == 2
    assert "is called my m1.ipynb, not m1.ipynb" in messages[0]
    assert "old.ipynb" in messages[1]


KEYS = ["cells", "cell_type", "source", "metadata", "nbgrader", "worksheets"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given_(VALUES.map(lambda value: json.dumps(value).encode()) | st.binary())
def test_anything_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(UnreadableSubmission):
        cells = parse_notebook(data, "any.ipynb").cells
        assert all(isinstance(cell.source, str) for cell in cells)


def test_reading_loads_no_heavy_library() -> None:
    """A fresh interpreter, since other tests of this run have them loaded."""
    import subprocess

    modules = "autograder.intake.notebook, autograder.intake.find, autograder.platforms.collect"
    script = (
        f"import sys, {modules}; print({{'torch', 'nbformat', 'nbgrader', 'numpy'}} & "
        "set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
