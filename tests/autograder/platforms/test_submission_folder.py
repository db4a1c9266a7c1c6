"""What a new submission replaces, and where the earlier one goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.platforms.submission_folder import SubmissionFolder

NOON = datetime(2026, 10, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Student:
    """A student's folder of m1, into which notebooks with these texts are installed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "submitted/ada/m1"

    def install(
        self, text: str, time: datetime | None = None, **beside: str
    ) -> tuple[str, str]:
        files = {}
        for name, content in {"m1": text, **beside}.items():
            files[name] = self.root / f"{name}-new"
            files[name].write_text(content, encoding="utf-8")
        notebook = files.pop("m1")
        with FileTransaction(self.root / "kept", "a test") as transaction:
            folder = SubmissionFolder(self.folder, transaction)
            return folder.install(notebook, time, files)

    def put_aside(self) -> str | None:
        with FileTransaction(self.root / "kept", "a test") as transaction:
            return SubmissionFolder(self.folder, transaction).put_aside()

    def texts(self) -> dict[str, str]:
        """The files here, without times, by path."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != "timestamp.txt"
        }


@pytest.fixture
def ada(tmp_path: Path) -> Student:
    return Student(tmp_path)


def test_the_first_submission_is_new_and_the_same_again_unchanged(ada: Student) -> None:
    assert ada.install("one", NOON, weights="w") == ("new", "")
    assert ada.texts() == {"m1.ipynb": "one", "weights": "w"}
    time = ada.folder / "timestamp.txt"
    assert time.read_text() == "2026-10-01 12:00:00.000000 UTC"
    assert ada.install("one", NOON + HOUR, weights="w") == ("unchanged", "")
    assert time.read_text() == "2026-10-01 13:00:00.000000 UTC"
    assert ada.install("one", None, weights="w") == ("unchanged", "")
    assert time.read_text() == "2026-10-01 13:00:00.000000 UTC"


def test_an_earlier_submission_is_kept_under_its_time(ada: Student) -> None:
    ada.install("one", NOON)
    stamp = "2026-10-01T120000Z"
    kept = "the earlier submission is kept in previous/"
    assert ada.install("two", NOON) == ("replaced", f"{kept}{stamp}")
    assert ada.install("three", NOON) == ("replaced", f"{kept}{stamp}-1")
    assert ada.texts() == {
        "m1.ipynb": "three",
        f"previous/{stamp}/m1.ipynb": "one",
        f"previous/{stamp}-1/m1.ipynb": "two",
    }


def test_without_a_time_earlier_submissions_have_numbers(ada: Student) -> None:
    for text in ("one", "two", "three"):
        ada.install(text)
    assert ada.texts() == {
        "m1.ipynb": "three",
        "previous/1/m1.ipynb": "one",
        "previous/2/m1.ipynb": "two",
    }
    (ada.folder / "timestamp.txt").write_text("no time")
    assert ada.install("four")[1].endswith("previous/3")


def test_what_was_handed_in_earlier_does_not_replace_what_came_later(
    ada: Student,
) -> None:
    ada.install("one", NOON)
    assert ada.install("zero", NOON - HOUR) == (
        "unchanged",
        "what is collected already is newer; kept it",
    )
    assert ada.texts() == {"m1.ipynb": "one"}
    # at the same time, or at a time that nobody knows, the download counts
    assert ada.install("two", None)[0] == "replaced"


def test_new_weights_replace_the_old_ones_alone(ada: Student) -> None:
    ada.install("one", None, weights="w1", nickname="Ada")
    assert ada.install("one", None, weights="w2", nickname="Ada") == (
        "replaced",
        "the earlier submission is kept in previous/1",
    )
    assert ada.texts() == {
        "m1.ipynb": "one",
        "nickname": "Ada",
        "previous/1/weights": "w1",
        "weights": "w2",
    }
    # a new notebook takes the others along
    ada.install("two")
    assert ada.texts() == {
        "m1.ipynb": "two",
        "previous/1/weights": "w1",
        "previous/2/m1.ipynb": "one",
        "previous/2/nickname": "Ada",
        "previous/2/weights": "w2",
    }


def test_weights_that_come_later_replace_nothing(ada: Student) -> None:
    ada.install("one")
    assert ada.install("one", None, weights="w") == ("replaced", "")
    assert ada.texts() == {"m1.ipynb": "one", "weights": "w"}


def test_a_submission_is_put_aside_once(ada: Student) -> None:
    assert ada.put_aside() is None
    ada.install("one", NOON)
    assert ada.put_aside() == "2026-10-01T120000Z"
    assert ada.texts() == {"previous/2026-10-01T120000Z/m1.ipynb": "one"}
    assert ada.put_aside() is None


@pytest.mark.parametrize("link", ["submitted/ada/m1", "submitted/ada"])
def test_nothing_is_written_through_a_link(
    ada: Student, tmp_path: Path, link: str
) -> None:
    elsewhere = tmp_path / "elsewhere/m1"
    elsewhere.mkdir(parents=True)
    path = tmp_path / link
    path.parent.mkdir(parents=True)
    path.symlink_to(elsewhere if path.name == "m1" else elsewhere.parent)
    change, line = ada.install("one")
    assert (change, line.endswith(" is a link; nothing was written there")) == (
        "",
        True,
    )
    assert list(elsewhere.iterdir()) == []
    if path.name == "m1":
        (elsewhere / "m1.ipynb").touch()
        assert ada.put_aside() is None


def test_a_folder_of_earlier_submissions_that_is_a_link_is_refused(
    ada: Student, tmp_path: Path
) -> None:
    ada.install("one")
    (tmp_path / "elsewhere").mkdir()
    (ada.folder / "previous").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KitError, match=r"previous is a link: remove it"):
        ada.install("two")
    assert (ada.folder / "m1.ipynb").read_text() == "one"
