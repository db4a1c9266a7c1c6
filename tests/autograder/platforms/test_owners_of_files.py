"""Whose a file of a download is, by its path and by the note beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.intake.archives import UploadedFile
from autograder.intake.collected import Arrival
from autograder.ledger import Identity
from autograder.marks.marks import Mark
from autograder.platforms import edx, ilias, sakai
from autograder.platforms.platform import Download

PERSON = "Lovelace, Ada(al1)"


def upload(path: str, file: Path = Path()) -> UploadedFile:
    return UploadedFile(tuple(path.split("/")), file)


@pytest.mark.parametrize(
    ("note", "moment", "is_unread"),
    [
        ("20261001120030250", datetime(2026, 10, 1, 12, 0, 30, 250000, UTC), False),
        ("2026-10-01T12:00:00Z", datetime(2026, 10, 1, 12, tzinfo=UTC), False),
        ("soon", None, True),
    ],
)
def test_sakai_writes_the_time_beside_the_attachments(
    tmp_path: Path, note: str, moment: datetime | None, is_unread: bool
) -> None:
    written = tmp_path / "timestamp.txt"
    written.write_text(note, encoding="utf-8")

    def is_id(*_: str) -> bool:
        return False

    files = [upload(f"m1/{PERSON}/timestamp.txt", written)]
    download = Download(files, "m1", is_id, is_id, "UTC", Path(), Path())
    find_owner = sakai.find_owners(download)
    owner = find_owner(upload(f"m1/{PERSON}/Submission attachment(s)/work.ipynb"))
    assert owner is not None
    assert (owner.student, owner.stem, owner.place) == ("al1", "work", ("m1", PERSON))
    assert owner.identity == Identity((("sakai", "al1"),), ("al1",), "Ada Lovelace")
    assert (owner.handed_in, bool(owner.unread)) == (moment, is_unread)
    for other in ("Feedback Attachment(s)/work.ipynb", "work.ipynb"):
        assert find_owner(upload(f"m1/{PERSON}/{other}")) is None
    assert find_owner(upload("m1/work.ipynb")) is None


@pytest.mark.parametrize(
    ("name", "late"),
    [
        ("work.ipynb", False),
        ("Late Submission - work.ipynb", True),
        ("verspätete Abgabe - work.ipynb", True),
        ("Verspaetete Abgabe - work.ipynb", True),
    ],
)
def test_ilias_names_the_person_in_the_folder(name: str, late: bool) -> None:
    owner = ilias.find_owner(upload(f"m1/Lovelace_Ada_al_1_17/{name}"))
    assert owner is not None
    assert (owner.student, owner.stem) == ("Lovelace_Ada_al_1_17", "work")
    assert owner.identity == Identity((("ilias", "17"),), ("al_1",), "Ada Lovelace")
    assert owner.late is late


@pytest.mark.parametrize(
    "path",
    ["work.ipynb", "m1/work.ipynb", "Feedback_files/Lovelace_Ada_al_17/work.ipynb"],
)
def test_other_files_of_ilias_are_nobodys(path: str) -> None:
    assert ilias.find_owner(upload(path)) is None


def test_feedback_for_ilias_lies_in_the_persons_folder() -> None:
    arrival = Arrival("ilias", "17", "Ada", "m1/Lovelace_Ada_al_17/work.ipynb")
    mark = Mark("ada", "graded", arrival=arrival)
    assert ilias.feedback_name(mark, "m1") == (
        "multi_feedback/Lovelace_Ada_al_17/m1.html"
    )
    assert ilias.feedback_name(Mark("ada", "graded"), "m1") == ""
    other = Arrival("canvas", "17", "Ada", "work.ipynb")
    assert ilias.feedback_name(Mark("ada", "graded", arrival=other), "m1") == ""


def test_edx_names_the_person_in_the_file() -> None:
    owner = edx.find_owner(upload("m1/[1] - ada_l - work.ipynb"))
    assert owner is not None
    assert (owner.student, owner.stem, owner.place) == ("ada_l", "work", ("ada_l",))
    assert owner.identity == Identity((("edx", "ada_l"),), ("ada_l",), "ada_l")
    assert edx.find_owner(upload("m1/ada_l - work.ipynb")) is None
