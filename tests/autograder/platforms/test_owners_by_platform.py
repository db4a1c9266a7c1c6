"""Whose a file is by the names that Gradescope, Blackboard, Brightspace and GitHub give files."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.basics.errors import KitError
from autograder.intake.archives import UploadedFile
from autograder.intake.collected import Arrival
from autograder.intake.owners import FindOwner, Owner
from autograder.ledger import Identity
from autograder.marks.marks import Mark
from autograder.platforms import (
    blackboard,
    brightspace,
    canvas,
    edx,
    folder,
    gradescope,
    ilias,
    moodle,
)
from autograder.platforms.github import _equal_folders, _shared_prefix
from autograder.platforms.moodle_worksheet import read_people
from autograder.platforms.platform import Download


def upload(path: str, file: Path = Path()) -> UploadedFile:
    return UploadedFile(tuple(path.split("/")), file)


def a_download(*files: UploadedFile, zone: str = "UTC") -> Download:
    def is_id(*_: str) -> bool:
        return False

    return Download(list(files), "m1", is_id, is_id, zone, Path(), Path())


def owner_of(find_owner: FindOwner, path: str) -> Owner:
    owner = find_owner(upload(path))
    assert owner is not None
    return owner


# Gradescope


def person(name: str, number: str) -> str:
    return f"  - :name: {name}\n    :sid: '{number}'\n    :email: {number}@x.edu\n"


ADA, BEN = (
    Identity((("gradescope", number),), (number, f"{number}@x.edu"), name)
    for name, number in (("Ada", "s1"), ("Ben", "s2"))
)
LIST = (
    "submission_7:\n  :created_at: 2026-10-01 12:00:00 Z\n  :submitters:\n"
    + person("Ada", "s1")
    + person("Ben", "s2")
    + "submission_8:\n  :created_at: 2026-10-01 13:00:00 Z\n  :submitters:\n"
    + person("Ben", "s2")
)


@pytest.fixture
def gradescope_owner(tmp_path: Path) -> FindOwner:
    path = tmp_path / "list"
    path.write_text(LIST, encoding="utf-8")
    listed = upload("export/submission_metadata.yml", path)
    within = upload("export/submission_9/submission_metadata.yml", tmp_path / "none")
    return gradescope.find_owners(a_download(listed, within))


def test_a_submission_of_gradescopes_is_its_submitters(
    gradescope_owner: FindOwner,
) -> None:
    group = owner_of(gradescope_owner, "export/submission_7/deep/m1.ipynb")
    assert (group.student, group.identity, group.members) == ("s1", ADA, (ADA, BEN))
    assert group.handed_in == datetime(2026, 10, 1, 12, tzinfo=UTC)
    assert group.attempt == (group.handed_in.timestamp(), 7.0)
    # a file nearer to the top is preferred
    assert group.rank == (-3.0, 0.0)
    single = owner_of(gradescope_owner, "export/submission_8/m1.ipynb")
    assert (single.student, single.identity, single.members) == ("s2", BEN, ())
    assert single.rank == (-2.0, 0.0)


def test_a_submission_that_is_not_listed_is_called_by_its_folder(
    gradescope_owner: FindOwner,
) -> None:
    unlisted = owner_of(gradescope_owner, "export/submission_9/m1.ipynb")
    assert unlisted.student == "submission_9"
    assert unlisted.identity == Identity(name="submission_9")
    assert (unlisted.handed_in, unlisted.members) == (None, ())
    assert gradescope_owner(upload("export/m1.ipynb")) is None


def test_a_list_that_a_student_handed_in_is_not_read(tmp_path: Path) -> None:
    """In the folder of a submission, or deeper; the file here is not even there."""
    for path in ("submission_9", "export/submission_9", "submission_9/deep/er"):
        within = upload(f"{path}/submission_metadata.yml", tmp_path / "none")
        find_owner = gradescope.find_owners(a_download(within))
        assert owner_of(find_owner, f"{path}/m1.ipynb").student == "submission_9"


def test_a_single_person_without_an_account_is_known_by_name(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("submission_7:\n  :submitters:\n  - :name: Ada\n", encoding="utf-8")
    listed = upload("submission_metadata.yml", path)
    owner = owner_of(
        gradescope.find_owners(a_download(listed)), "submission_7/m1.ipynb"
    )
    assert (owner.student, owner.identity) == ("Ada", Identity(name="Ada"))


def test_two_people_of_one_name_without_accounts_are_refused(tmp_path: Path) -> None:
    entry = "submission_{}:\n  :submitters:\n  - :name: Ada\n"
    path = tmp_path / "list"
    path.write_text(entry.format(7) + entry.format(8), encoding="utf-8")
    listed = upload("submission_metadata.yml", path)
    with pytest.raises(KitError, match=r"^Ada stands in several of Gradescope's"):
        gradescope.find_owners(a_download(listed))


# Blackboard

NAME = "m1_{user}_attempt_2026-10-01-12-00-00{end}"


def blackboard_owner(tmp_path: Path, receipt: str, user: str = "al1") -> Owner:
    path = tmp_path / "receipt"
    path.write_text(receipt, encoding="utf-8")
    receipt_file = upload(NAME.format(user=user, end=".txt"), path)
    find_owner = blackboard.find_owners(a_download(receipt_file))
    return owner_of(find_owner, NAME.format(user=user, end="_work.ipynb"))


@pytest.mark.parametrize(("lines_before", "name"), [(9_970, "Ada"), (10_000, "al1")])
def test_the_head_of_a_receipt_has_ten_thousand_bytes(
    tmp_path: Path, lines_before: int, name: str
) -> None:
    """A student may hand in a file that looks like a receipt, and is long."""
    receipt = f"{'x' * (lines_before - 1)}\nName: Ada (al1)\n"
    assert blackboard_owner(tmp_path, receipt).identity.name == name


@pytest.mark.parametrize("folder", ["", "export/", "export/Our course/"])
def test_a_download_may_lie_in_folders(tmp_path: Path, folder: str) -> None:
    """Where somebody has packed it anew: the file's own name says whose it is."""
    named = f"{folder}adalovelace_11_22_m1.ipynb"
    find_owner = canvas.find_owners(a_download(upload(named)))
    assert owner_of(find_owner, named).student == "adalovelace_11"
    anonymous = f"{folder}anon_aB3de_22_m1.ipynb"
    find_owner = canvas.find_owners(a_download(upload(anonymous)))
    assert owner_of(find_owner, anonymous).student == "anon_aB3de"
    receipt = tmp_path / "receipt"
    receipt.write_text("Name: Ada (a_l)\n", encoding="utf-8")
    written = upload(folder + NAME.format(user="a_l", end=".txt"), receipt)
    find_owner = blackboard.find_owners(a_download(written))
    work = folder + NAME.format(user="a_l", end="_work.ipynb")
    assert owner_of(find_owner, work).identity.name == "Ada"
    of_edx = f"{folder}[1] - ada - m1.ipynb"
    assert owner_of(edx.find_owner, of_edx).student == "ada"
    for module, path in ((blackboard, work), (edx, of_edx)):
        download = module.PLATFORM.download
        assert download is not None
        assert download.recognises(upload(path))
        assert not download.recognises(upload(f"{path}/m1.ipynb"))


def test_a_file_that_blackboard_did_not_name_is_nobodys() -> None:
    find_owner = blackboard.find_owners(a_download())
    assert find_owner(upload("al1_attempt/m1.ipynb")) is None


def test_a_receipt_of_blackboards_tells_name_and_time(tmp_path: Path) -> None:
    receipt = (
        "\ufeffName: Ada Lovelace (a_l)\nDate Submitted: 2026-10-01 11:59:00 UTC\n\n"
        "Name: Eve (eve)\n"
    )
    owner = blackboard_owner(tmp_path, receipt, "a_l")
    assert (owner.student, owner.stem) == ("a_l", "work")
    assert owner.identity == Identity(
        (("blackboard", "a_l"),), ("a_l",), "Ada Lovelace"
    )
    assert owner.handed_in == datetime(2026, 10, 1, 11, 59, tzinfo=UTC)
    assert owner.attempt == (20261001120000.0,)


@pytest.mark.parametrize(
    "receipt", ["", "Date Submitted:\n", "Date Submitted: soon\n", "Name: Eve (eve)\n"]
)
def test_without_a_receipts_time_that_in_the_name_counts(
    tmp_path: Path, receipt: str
) -> None:
    owner = blackboard_owner(tmp_path, receipt)
    assert (owner.student, owner.identity.name) == ("al1", "al1")
    assert owner.handed_in == datetime(2026, 10, 1, 12, tzinfo=UTC)
    assert owner.unread == ""


def test_a_receipt_with_an_empty_date_has_nothing_that_cannot_be_read(
    tmp_path: Path,
) -> None:
    """Without a zone nobody knows the time; the reason is that of the time in the name."""
    path = tmp_path / "receipt"
    path.write_text("Date Submitted:  \n", encoding="utf-8")
    receipt_file = upload(NAME.format(user="al1", end=".txt"), path)
    find_owner = blackboard.find_owners(a_download(receipt_file, zone=""))
    owner = owner_of(find_owner, NAME.format(user="al1", end="_work.ipynb"))
    assert owner.handed_in is None
    assert "2026-10-01 12:00:00" in owner.unread


# Brightspace

ATTEMPT = "101-202 - Ada Lovelace - Oct 1, 2026 1105 AM"


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        (f"{ATTEMPT}/work.ipynb", "work"),
        (f"{ATTEMPT} - work.ipynb", "work"),
        (f"{ATTEMPT} - work.ipynb/inner.ipynb", "work"),
    ],
)
def test_an_attempt_of_brightspace_is_a_folder_or_the_beginning_of_a_file(
    path: str, stem: str
) -> None:
    find_owner = brightspace.find_owners(a_download())
    owner = owner_of(find_owner, path)
    assert (owner.student, owner.stem) == ("Ada Lovelace_101", stem)
    assert owner.identity == Identity((("brightspace", "101"),), (), "Ada Lovelace")
    assert owner.handed_in == datetime(2026, 10, 1, 11, 5, tzinfo=UTC)
    assert owner.place == (path.partition("/")[0],)
    assert find_owner(upload("index.html")) is None


def test_a_day_that_is_none_orders_first(tmp_path: Path) -> None:
    find_owner = brightspace.find_owners(a_download())
    odd = owner_of(find_owner, f"{ATTEMPT.replace('Oct 1', 'Foo 1')}/work.ipynb")
    assert (odd.attempt, odd.handed_in) == ((0.0,), None)
    assert odd.unread
    early, late = (
        owner_of(find_owner, f"{ATTEMPT.replace('1105 AM', clock)}/work.ipynb").attempt
        for clock in ("1259 AM", "100 PM")
    )
    assert late[0] - early[0] == 12 * 3600 + 60


# GitHub


@pytest.mark.parametrize(
    ("paths", "places"),
    [
        (["ada/hw/a.ipynb", "ben/HW/a.ipynb"], ["ada/hw", "ben/HW"]),
        # one of them deeper than the others: the first depth of equal names counts
        (["x/ada/hw/a.ipynb", "x/ben/hw/deep/a.ipynb"], ["x/ada/hw", "x/ben/hw"]),
        (["ada/hw/a.ipynb", "ben/lab/a.ipynb"], []),
        (["ada/hw/a.ipynb", "ada/hw/b.ipynb"], []),
        (["ada/a.ipynb", "ben/a.ipynb"], []),
        # a file above the folders is in none of them
        (["a.ipynb", "ada/hw/a.ipynb", "ben/hw/a.ipynb"], ["ada/hw", "ben/hw"]),
        ([], []),
    ],
)
def test_folders_of_owners_hold_repositories_of_one_name(
    paths: list[str], places: list[str]
) -> None:
    folders = _equal_folders([upload(path) for path in paths])
    assert sorted("/".join(folder) for folder in folders) == places


@pytest.mark.parametrize(
    ("paths", "prefix"),
    [
        (["hw-1-ada/a.ipynb", "hw-1-ben/a.ipynb"], "hw-1-"),
        (["HW_1-ada/a.ipynb", "hw-1-bob/a.ipynb"], "hw-1-"),
        (["all/hw-ada/a.ipynb", "all/hw-ben/a.ipynb"], "hw-"),
        (["all/hw-ada/a.ipynb", "all/hw-ben/a.ipynb", "all/b.ipynb"], "hw-"),
        (["all/hw-ada/a.ipynb", "all/hw-ben/a.ipynb", "b.ipynb"], "hw-"),
        (["hwada/a.ipynb", "hwben/a.ipynb"], ""),
        (["hw-ada/a.ipynb"], ""),
        ([], ""),
    ],
)
def test_a_prefix_that_all_repositories_share_ends_with_a_hyphen(
    paths: list[str], prefix: str
) -> None:
    assert _shared_prefix([upload(path) for path in paths]) == prefix


# a folder for each student


@pytest.mark.parametrize(
    ("path", "student", "place"),
    [
        ("all/ada/m1/work.ipynb", "ada", "all/ada"),
        ("ada/work.ipynb", "ada", "ada"),
        ("m1/work.ipynb", "work", "m1/work.ipynb"),
        ("work.ipynb", "work", "work.ipynb"),
    ],
)
def test_a_folder_is_its_students_or_the_file_is(
    path: str, student: str, place: str
) -> None:
    owner = owner_of(folder.find_owners(a_download()), path)
    assert (owner.student, owner.place) == (student, tuple(place.split("/")))


@pytest.mark.parametrize(
    "path",
    ["ada/m1/previous/1/m1.ipynb", "ada/m1/deep/m1.ipynb", "ada/m1/x/y/m1.ipynb"],
)
def test_what_lies_deeper_in_a_students_folder_is_nobodys(path: str) -> None:
    assert folder.find_owners(a_download())(upload(path)) is None


# Canvas


def canvas_user(path: str, *known: str) -> tuple[str, str]:
    """The user of a file whose name may be read in two ways, and the doubt."""
    download = dataclasses.replace(
        a_download(), is_known_id=lambda platform, id_: id_ in known
    )
    owner = owner_of(canvas.find_owners(download), path)
    return owner.identity.ids[0][1], owner.doubt


def test_a_name_of_canvas_with_two_readings_is_that_of_a_known_id() -> None:
    """User 7's second file `9_m1`, or user 8's `m1` whose name ends with a 7."""
    path = "doe_7_8_9_m1.ipynb"
    assert canvas_user(path, "7") == ("7", "")
    assert canvas_user(path, "8") == ("8", "")
    # of two that are known the first reading
    assert canvas_user(path, "7", "8") == ("7", "")
    # nobody is known: the file that is called like the assignment
    assert canvas_user(path) == ("8", "user 8, or 7")
    assert canvas_user("doe_7_8_9_other.ipynb") == ("7", "user 7, or 8")


def test_canvas_has_fewer_users_than_uploads() -> None:
    """User 9 with upload 8 is none, user 8 with upload 70 may be one."""
    assert canvas_user("doe_9_8_70_other.ipynb") == ("8", "user 8, or 9")
    assert canvas_user("doe_9_8_7_m1.ipynb") == ("8", "user 8, or 9")
    assert canvas_user("doe_9_8_7_other.ipynb") == ("9", "user 9, or 8")


def test_a_folder_of_ilias_names_its_person() -> None:
    for path in ("Low_Ben_ben_7/m1.ipynb", "all/m1/Low_Ben_ben_7/m1.ipynb"):
        owner = owner_of(ilias.find_owner, path)
        assert owner.identity == Identity((("ilias", "7"),), ("ben",), "Ben Low")
        assert not owner.late
    for path in ("m1.ipynb", "Low_Ben_ben_7/Feedback_files/Low_Eve_eve_8/m1.ipynb"):
        assert ilias.find_owner(upload(path)) is None
    late = owner_of(ilias.find_owner, "Low_Ben_ben_7/Late Submission - m1.ipynb")
    assert (late.late, late.stem) == (True, "m1")


def test_a_persons_folder_of_moodles_may_lie_in_others() -> None:
    for folders in ("", "all/m1/"):
        path = f"{folders}Ben Low_7_assignsubmission_file_/m1.ipynb"
        owner = owner_of(moodle.find_owner, path)
        assert (owner.student, owner.stem) == ("Ben Low_7", "m1")
        assert owner.identity == Identity((("moodle", "7"),), (), "Ben Low")
    assert moodle.find_owner(upload("all/m1/m1.ipynb")) is None


# notes and pages


def test_a_note_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """A time of hand-in is a line, and no file of a megabyte."""
    note = tmp_path / "note"
    note.write_bytes(b"2026" * 300_000)
    path = "ada/m1/timestamp.txt"
    find_owner = folder.find_owners(a_download(upload(path, note)))
    owner = owner_of(find_owner, "ada/m1/m1.ipynb")
    assert owner.handed_in is None
    assert owner.unread


@pytest.mark.parametrize(
    ("origin", "file", "of_canvas"),
    [
        ("canvas", "export/ada_11_22_m1.ipynb", "ada_11_22_m1.html"),
        ("canvas", "ada_11_22_work.zip", "ada_11_22_work.html"),
        ("moodle", "ada_11_22_m1.ipynb", ""),
        ("", "", ""),
    ],
)
def test_canvas_takes_a_page_under_the_name_of_what_was_handed_in(
    origin: str, file: str, of_canvas: str
) -> None:
    arrival = Arrival(origin, "11", "Ada", file) if origin else None
    mark = Mark("ada", "graded", arrival=arrival)
    assert canvas.feedback_name(mark, "m1") == of_canvas


def test_moodle_takes_a_page_under_name_and_number() -> None:
    """No name there may have a `_`, and a `/` would be a folder."""
    mark = Mark("Ada_B/C_17", "graded", ids={"moodle": "17"})
    assert moodle.feedback_name(mark, "m1") == (
        "Ada B C_17_assignsubmission_file_/m1.html"
    )
    assert moodle.feedback_name(Mark("ada", "graded"), "m1") == ""


def test_a_worksheet_of_two_columns_has_names() -> None:
    people = read_people([["Nummer", "Name"], ["Teilnehmer 5", " Ada "], ["x 6"]])
    assert people == {
        1: Identity((("moodle", "5"),), (), "Ada"),
        2: Identity((("moodle", "6"),)),
    }
