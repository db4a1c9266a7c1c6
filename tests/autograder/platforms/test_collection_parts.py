"""Steps of collecting a download, each by itself, by values worked out by hand."""

from __future__ import annotations

import dataclasses
import errno
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import KitError, NothingToGrade
from autograder.course import Course
from autograder.intake.archives import SkippedFile, UploadedFile
from autograder.intake.collected import Arrival, Collected, NotTaken
from autograder.intake.owners import Owner
from autograder.ledger import Identity
from autograder.platforms import folder, github, gradescope
from autograder.platforms.collect import _Claim, _Collection, _only_collector
from autograder.platforms.download_people import _add_row
from autograder.platforms.files_beside import rank_file
from autograder.platforms.platform import Download
from autograder.platforms.registry import bundles


def upload(path: str) -> UploadedFile:
    return UploadedFile(tuple(path.split("/")))


def is_id(*_: str) -> bool:
    return False


def a_download(scratch: Path, *paths: str) -> Download:
    files = [upload(path) for path in paths]
    return Download(files, "m1", is_id, is_id, "UTC", Path(), scratch)


def collection(earlier: Collected, submitted: Path) -> Any:
    return SimpleNamespace(
        _origin="moodle",
        _assignment="m1",
        _earlier=earlier,
        _format=SimpleNamespace(holds_only_work=False, calls_by_student=False),
        _folder_path=lambda student: submitted / student,
    )


def test_a_picture_is_work_in_the_folder_of_the_assignment_alone(
    tmp_path: Path,
) -> None:
    collected = collection(Collected(), tmp_path)

    def is_work(path: str, *, companion: bool) -> bool:
        skipped = SkippedFile(path, tuple(path.split("/")), "no notebook", companion)
        return _Collection._is_work(collected, skipped)

    assert is_work("ada/m1/photo.png", companion=True)
    assert not is_work("ada/photo.png", companion=True)
    assert not is_work("m1/ada/photo.png", companion=True)
    assert is_work("ada/work.docx", companion=False)


def test_the_record_keeps_what_this_download_does_not_speak_of(tmp_path: Path) -> None:
    for student in ("ada", "ben", "cleo"):
        (tmp_path / student).mkdir()
    ada = Arrival("moodle", "1", "Ada", "ada.ipynb")
    ben = Arrival("moodle", "2", "Ben", "ben.ipynb")
    cleo = Arrival("canvas", "3", "Cleo", "cleo.ipynb")
    gone = Arrival("moodle", "4", "Gone", "gone.ipynb")  # somebody removed the folder
    dan = Arrival("moodle", "5", "Dan", "dan.ipynb")
    dan_before, eve, fay = [
        NotTaken(name, Arrival("moodle", "6", name, "work.docx"), "no notebook")
        for name in ("dan", "eve", "fay")
    ]
    earlier = Collected(
        {"ada": ada, "ben": ben, "cleo": cleo, "gone": gone},
        {"dan": dan_before, "eve": eve},
    )
    arrivals, not_taken = {"ada": ada, "dan": dan}, {"fay": fay}
    collected = collection(earlier, tmp_path)
    record = _Collection._update_record(collected, "b.zip", arrivals, not_taken)
    assert record.students == {
        "ada": ada,
        "ben": ben,
        "cleo": cleo,
        "dan": dan,
        "gone": gone,
    }
    assert record.not_taken == {"eve": eve, "fay": fay}
    # of this platform, and still there
    assert record.absent == ("ben",)


def test_folders_in_a_clone_are_neither_forks_nor_clones(tmp_path: Path) -> None:
    """Each has `src` in it, which is nobody's fork; one clone may have several folders."""
    paths = ("m1-ada/src/m1.ipynb", "m1-ben/src/m1.ipynb")
    for downloaded in (paths, ("m1-ada/src/m1.ipynb", "m1-ada/docs/m1.ipynb")):
        find_owner = github.find_owners(a_download(tmp_path, *downloaded))
        owner = find_owner(upload(downloaded[0]))
        assert owner is not None
        assert (owner.student, owner.place) == ("ada", ("m1-ada",))


def test_the_instructors_own_repository_tells_no_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Around all clones: its commits say when the submissions were stored."""
    asked: list[Any] = []

    def last_commit(clone: Path, path: str) -> tuple[None, str]:
        asked.append((clone, path))
        return None, "no commit"

    commits = SimpleNamespace(last_commit=last_commit)
    monkeypatch.setattr(github, "CommitTimes", lambda scratch: commits)
    for folder_ in (tmp_path, tmp_path / "m1-ada"):
        (folder_ / ".git").mkdir(parents=True)
    find_time = github._times_of_commits(tmp_path, tmp_path / "scratch")
    file = upload("m1-ada/src/m1.ipynb")
    ada = Owner("ada", Identity((), (), "ada"), "m1")
    assert find_time(file, ada) == (None, "")
    assert find_time(file, dataclasses.replace(ada, place=("m1-ben",))) == (None, "")
    assert asked == []
    own = dataclasses.replace(ada, place=("m1-ada",))
    assert find_time(file, own) == (None, "no commit")
    assert asked == [(tmp_path / "m1-ada", "src/m1.ipynb")]


def test_files_are_ordered_by_attempt_name_archive_rank_and_path() -> None:
    """From the least to the most likely: each is preferred for one reason alone."""
    in_archive = dataclasses.replace(upload("z.zip"), inside=("m1.ipynb",))
    files = [
        (upload("z"), 1.0, "m1", 9.0),  # an earlier attempt
        (upload("z"), 2.0, "draft", 9.0),  # called otherwise
        (in_archive, 2.0, "m1", 9.0),  # in an archive
        (upload("z"), 2.0, "m1", 1.0),  # of a lower rank
        (upload("a"), 2.0, "m1", 2.0),
        (upload("b"), 2.0, "m1", 2.0),
    ]
    ada = Identity((), (), "Ada")
    ranks = [
        rank_file(file, Owner("ada", ada, stem, attempt=(n,), rank=(rank,)), "m1")
        for file, n, stem, rank in files
    ]
    assert sorted(ranks) == ranks
    # without a rank the time of the file orders them
    early, late = (
        dataclasses.replace(upload(path), modified=datetime(2026, 10, day, tzinfo=UTC))
        for path, day in (("b", 1), ("a", 2))
    )
    owner = Owner("ada", ada, "m1")
    assert rank_file(early, owner, "m1") < rank_file(late, owner, "m1")


def test_what_is_chosen_of_several_notebooks_is_told() -> None:
    """The later attempt; in one attempt the notebook that is called like the assignment."""
    ada = Identity((("canvas", "1"),), (), "Ada")

    def claim(path: str, attempt: float, **fields: Any) -> _Claim:
        stem = path.rpartition("/")[2].removesuffix(".ipynb")
        return _Claim(
            upload(path), Owner("ada", ada, stem, attempt=(attempt,), **fields)
        )

    first = claim("ada/m1.ipynb", 1.0)
    second = claim("ada/draft.ipynb", 2.0)
    third = claim("ada/m1.ipynb", 2.0, late=True, unread="'noon' is no time")
    collected: Any = SimpleNamespace(_assignment="m1", _lines=[])
    assert _Collection._choose(collected, [first], "ada") is first
    assert collected._lines == []
    assert _Collection._choose(collected, [first, second, third], "ada") is third
    assert collected._lines == [
        "ada: 3 notebooks; took ada/m1.ipynb, left ada/m1.ipynb, ada/draft.ipynb",
        "ada: marked as late",
        "ada: when it was handed in is not known: 'noon' is no time",
    ]


@pytest.mark.parametrize(
    ("misnamed", "skipped", "there"),
    [
        (
            ["a.ipynb: not named"],
            [SkippedFile("b", ("b",), "big")],
            "a.ipynb: not named",
        ),
        (
            [],
            [SkippedFile("b", ("b",), "big"), SkippedFile("c", ("c",), "old")],
            "b: big",
        ),
        ([], [], ""),
    ],
)
def test_a_download_without_anybodys_notebook_is_refused_with_an_example(
    misnamed: list[str], skipped: list[SkippedFile], there: str
) -> None:
    collected: Any = SimpleNamespace(
        _read_claims=lambda *_: ([], misnamed),
        _format=SimpleNamespace(example="lastfirst_1_2_name.ipynb"),
    )
    unpacked: Any = SimpleNamespace(skipped=skipped)
    with pytest.raises(NothingToGrade) as refused:
        _Collection.run(collected, unpacked, Path("a.zip"), lambda file: None)
    content = f", for example, {there}" if there else " no notebook at all"
    assert str(refused.value) == (
        f"a.zip: no file is named like lastfirst_1_2_name.ipynb; there is{content}"
    )


@pytest.mark.parametrize("is_hand_in", [True, False])
def test_a_receipt_alone_says_that_somebody_handed_in(
    tmp_path: Path, is_hand_in: bool
) -> None:
    """Of a platform whose descriptions prove it; a picture is work there only in the folder."""
    ada = Owner("ada", Identity((), (), "Ada"), "m1")
    collected = collection(Collected(), tmp_path)
    collected._format.description_is_hand_in = is_hand_in
    collected._format.describes = lambda name: name.endswith(".txt")
    collected._is_work = lambda file: _Collection._is_work(collected, file)
    unpacked: Any = SimpleNamespace(
        skipped=[SkippedFile("x", (), "leads out of the archive")],
        files=[
            upload("ada/receipt.txt"),
            upload("ada/m1/receipt.txt"),
            upload("m1.ipynb"),
        ],
    )
    alone = [SkippedFile("photo.png", ("m1", "photo.png"), "no notebook", True)]
    reason = "no file came with this attempt"
    receipts: list[Any] = [
        (SkippedFile("receipt.txt", ("ada", "receipt.txt"), reason, True), None),
        (SkippedFile("receipt.txt", ("ada", "m1", "receipt.txt"), reason, True), ada),
    ]
    found = _Collection._read_skipped(collected, unpacked, alone, lambda file: ada)
    assert found == [
        (unpacked.skipped[0], None),
        (alone[0], ada),
        *(receipts if is_hand_in else []),
    ]


def test_files_without_a_notebook_are_a_students_or_are_told() -> None:
    """Of four files of ben's three are named; what lies beside ada's notebook is counted."""
    ada, ben = (
        Owner(name, Identity((("canvas", name),), (), name), "m1")
        for name in ("ada", "ben")
    )
    students = {ada.identity: "ada", ben.identity: "ben"}

    def arrival(file: UploadedFile, owner: Owner) -> str:
        return f"{owner.student} by {'/'.join(file.parts)}"

    collected: Any = SimpleNamespace(
        _people=SimpleNamespace(students=students),
        _format=SimpleNamespace(own_files={"grades.csv"}),
        _arrival=arrival,
    )

    def skipped(path: str, companion: bool = False) -> SkippedFile:
        return SkippedFile(path, tuple(path.split("/")), "no notebook", companion)

    claims: Any = {"ada": [_Claim(upload("top/ada/m1.ipynb"), ada)]}
    files: list[tuple[SkippedFile, Owner | None]] = [
        *[(skipped(f"ben/{number}.docx"), ben) for number in range(4)],
        (skipped("ada/more.docx"), ada),
        (skipped("ada/photo.png", True), ada),
        (skipped("top/ada/deep/photo.png", True), None),
        (skipped("grades.csv"), None),
        (skipped("other/photo.png", True), None),
        (SkippedFile("..", (), "leads out", False), None),
    ]
    found: Any = _Collection._describe_skipped(collected, claims, files)
    not_taken, lines = found
    reason = "; ".join(f"ben/{number}.docx: no notebook" for number in range(3))
    assert {
        name: (entry.student, entry.arrival, entry.reason)
        for name, entry in not_taken.items()
    } == {"ben": ("ben", "ben by ben/0.docx", reason)}
    assert lines == [
        "ada/more.docx: no notebook",
        "other/photo.png: no notebook",
        "..: leads out",
        "3 other files beside the notebooks were left",
    ]


def test_names_that_a_person_should_know_of_are_told_once(tmp_path: Path) -> None:
    """Of a folder that a person made already, and of a student without a doubt, nothing is."""
    ada, ben, cyd = (Identity((("canvas", n),), (), n) for n in ("1", "2", "3"))
    students = {ada: "A:B", ben: "C:D", cyd: "cyd"}
    folders = {"A:B": "A_B-1", "C:D": "C_D-2", "cyd": "cyd"}
    (tmp_path / "C_D-2").mkdir()
    identified: list[Any] = []
    collected: Any = SimpleNamespace(
        _people=SimpleNamespace(
            identify=lambda *given: identified.append(given), students=students
        ),
        ledger=SimpleNamespace(folder=folders.get),
        _submitted=tmp_path,
        _lines=[],
    )
    doubt = "user 2, or 7"
    owners = [
        Owner("a", ada, "m1"),
        Owner("b", ben, "m1", doubt=doubt),
        Owner("b", ben, "m1", doubt=doubt),
    ]
    _Collection._identify(collected, owners, "a.zip")
    assert identified == [(owners, "a.zip")]
    assert collected._lines == [
        "A:B: no folder can be called that, so it is A_B-1",
        "C:D: user 2, or 7? The file's name says no more; the class list or `--roster` can",
    ]


def test_an_arrival_has_the_first_id_or_else_an_account(tmp_path: Path) -> None:
    collected = collection(Collected(), tmp_path)

    def ids_of(identity: Identity) -> tuple[str, str]:
        owner = Owner("ada", identity, "work")
        arrival = _Collection._arrival(collected, upload("ada/work.ipynb"), owner)
        return arrival.id, arrival.name

    two_ids = Identity((("canvas", "7"), ("canvas", "8")), ("al1",), "Ada")
    assert ids_of(two_ids) == ("7", "Ada")
    assert ids_of(Identity((), ("al1", "ada@example.org"))) == ("al1", "ada")


def test_a_row_with_the_same_id_adds_accounts_and_the_name() -> None:
    rows = [
        Identity((("moodle", "4"),), ("other",), "Other", "Team Blue"),
        Identity((("moodle", "5"),), ("ada@example.org",), "Ada Lovelace", "Team Red"),
    ]
    identity = Identity((("moodle", "5"),), ("al1",), "ada")
    assert _add_row(identity, rows) == Identity(
        (("moodle", "5"),), ("al1", "ada@example.org"), "Ada Lovelace", "Team Red"
    )
    unknown = Identity((("moodle", "6"),), ("al1",), "ada")
    assert _add_row(unknown, rows) is unknown


def test_only_an_assignment_accepted_again_has_a_number(tmp_path: Path) -> None:
    paths = ["m1-ada/work.ipynb", "m1-ada-1/work.ipynb", "m1-ben/deep/work.ipynb"]
    find_owner = github.find_owners(a_download(tmp_path, *paths))
    owners = [find_owner(upload(path)) for path in paths]
    tries = [(owner.student, owner.attempt) for owner in owners if owner is not None]
    assert tries == [("ada", (0.0,)), ("ada", (1.0,)), ("ben", (0.0,))]
    forks = ["ann/m1/work.ipynb", "ben/m1/work.ipynb"]
    find_owner = github.find_owners(a_download(tmp_path, *forks))
    owners = [find_owner(upload(path)) for path in forks]
    tries = [(owner.student, owner.attempt) for owner in owners if owner is not None]
    assert tries == [("ann", (0.0,)), ("ben", (0.0,))]


def test_three_of_the_places_of_one_student_are_named(tmp_path: Path) -> None:
    groups = [f"group{number}/ada/work.ipynb" for number in range(1, 5)]
    with pytest.raises(KitError) as raised:
        folder.find_owners(a_download(tmp_path, *groups))
    assert (
        "ada would be one student with notebooks from 4 places: "
        "group1/ada, group2/ada, group3/ada. A student is"
    ) in str(raised.value)


def test_students_get_the_bundle_of_github_alone() -> None:
    for_students = [name for name, each in bundles().items() if each.is_for_students]
    assert for_students == ["github"]
    assert len(bundles()) > 1


def test_ten_of_the_notebooks_that_may_be_meant_are_named(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"try{number:02}.ipynb").touch()
    with pytest.raises(ValueError, match=r"Hand in m1\.ipynb") as raised:
        gradescope.find_notebook(tmp_path, "m1")
    named = ", ".join(f"try{number:02}.ipynb" for number in range(10))
    assert str(raised.value) == f"Hand in m1.ipynb; there is {named}."


def test_a_file_that_cannot_be_removed_ends_no_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has the file open on a network's disk. The next collector removes it."""

    def refuse(*_: object, **_options: object) -> None:
        raise OSError(errno.EBUSY, "in use")

    course = Course(tmp_path)
    course.submitted.mkdir()
    with monkeypatch.context() as patched, _only_collector(course) as scratch:
        assert scratch.parent == course.submitted
        (scratch / "a.ipynb").touch()
        patched.setattr("os.unlink", refuse)
    assert (scratch / "a.ipynb").exists()
    with _only_collector(course) as next_scratch:
        assert list(course.submitted.iterdir()) == [next_scratch]
    assert list(course.submitted.iterdir()) == []
