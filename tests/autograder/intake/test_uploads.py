"""What is taken out of a download, and what is named as left out, each by a small archive."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from autograder.basics.errors import KitError
from autograder.intake import archives
from autograder.intake.archives import SkippedFile, Upload, UploadedFile, open_upload
from autograder.intake.wanted_files import WantedFiles

NOTEBOOK = b"{}"
WANTED = WantedFiles(
    20, lambda name: name == "list.csv", "m1", weights_bytes=8, nicknames=True
)
BESIDE_NOTHING = "more weights than are unpacked at once: collect in parts"


def zip_of(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def opened(folder: Path, files: dict[str, bytes]) -> Upload:
    source = folder / "export.zip"
    source.write_bytes(zip_of(files))
    (folder / "scratch").mkdir()
    return open_upload(source, folder / "scratch", WANTED)


def paths(upload: Upload) -> list[str]:
    return ["/".join((*file.parts, *file.inside)) for file in upload.files]


def reasons(upload: Upload) -> list[str]:
    return [str(file) for file in upload.skipped]


def test_notebooks_come_with_what_lies_beside_them(tmp_path: Path) -> None:
    files = {
        "list.csv": b"name",
        "ada/m1.ipynb": NOTEBOOK,
        "ada/ada_m1.safetensors": b"weights",
        "ada/ada_nickname.txt": b"Ada",
        "ada/photo.png": b"picture",
        "ada/other.safetensors": b"weights",
    }
    upload = opened(tmp_path, files)
    assert paths(upload) == list(files)[:4]
    assert [file.file.read_bytes() for file in upload.files] == [
        b"name",
        NOTEBOOK,
        b"weights",
        b"Ada",
    ]
    assert upload.skipped == (
        SkippedFile(
            "ada/photo.png", ("ada", "photo.png"), "not a notebook", companion=True
        ),
        SkippedFile(
            "ada/other.safetensors",
            ("ada", "other.safetensors"),
            "the weights must be called m1.safetensors",
        ),
    )


def test_a_folder_is_read_like_an_archive(tmp_path: Path) -> None:
    source = tmp_path / "export"
    (source / "ada").mkdir(parents=True)
    (source / "ada/m1.ipynb").write_bytes(NOTEBOOK)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert paths(open_upload(source, scratch, WANTED)) == ["ada/m1.ipynb"]


def test_what_is_no_download_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(KitError, match=r"gone\.zip does not exist: name the file"):
        open_upload(tmp_path / "gone.zip", tmp_path, WANTED)
    (tmp_path / "text.zip").write_text("no archive")
    with pytest.raises(KitError, match=r"text\.zip is no archive that can be read"):
        open_upload(tmp_path / "text.zip", tmp_path, WANTED)


def test_files_of_a_system_are_worth_no_line(tmp_path: Path) -> None:
    names = ["__MACOSX/m1.ipynb", ".git/m1.ipynb", "ada/._m1.ipynb", "ada/.DS_Store"]
    upload = opened(tmp_path, dict.fromkeys([*names, "ada/.m1.ipynb"], NOTEBOOK))
    assert paths(upload) == ["ada/.m1.ipynb"]
    assert upload.skipped == ()


def test_a_path_that_leads_out_is_named(tmp_path: Path) -> None:
    upload = opened(tmp_path, {"../m1.ipynb": NOTEBOOK, "ada/m1.ipynb": NOTEBOOK})
    assert paths(upload) == ["ada/m1.ipynb"]
    out = SkippedFile("../m1.ipynb", (), "its path leads out of the upload")
    assert upload.skipped == (out,)


def test_a_download_has_so_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_ENTRIES", 2)
    files = {"ada/m1.ipynb": NOTEBOOK, "ada/a.png": b"", "ben/a.png": b""}
    with pytest.raises(KitError, match=r"^more than 2 files: this is not an export"):
        opened(tmp_path, files)
    (tmp_path / "two").mkdir()
    assert len(opened(tmp_path / "two", dict(list(files.items())[:2])).files) == 1


def test_notebooks_have_so_many_bytes_and_weights_count_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_TOTAL", 4)
    files = {
        "ada/m1.ipynb": NOTEBOOK,
        "ada/m1.safetensors": b"weights",
        "ben/m1.ipynb": NOTEBOOK,
    }
    assert len(opened(tmp_path, files).files) == 3
    (tmp_path / "more").mkdir()
    with pytest.raises(KitError, match=r"^more than 0 GB of notebooks: collect them"):
        opened(tmp_path / "more", {**files, "cyd/m1.ipynb": NOTEBOOK})


def test_weights_beyond_the_bound_of_all_are_left_and_notebooks_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_WEIGHTS_TOTAL", 13)
    files = {
        "ada/m1.safetensors": b"7 bytes",
        "ben/m1.safetensors": b"8 bytes!",
        "ben/m1.ipynb": NOTEBOOK,
        "cyd/m1.safetensors": b"6bytes",
    }
    upload = opened(tmp_path, files)
    assert paths(upload) == ["ada/m1.safetensors", "ben/m1.ipynb", "cyd/m1.safetensors"]
    assert reasons(upload) == [f"ben/m1.safetensors: {BESIDE_NOTHING}"]


def test_every_kind_of_file_has_its_own_largest_size(tmp_path: Path) -> None:
    files = {
        "a.ipynb": bytes(20),
        "b.ipynb": bytes(21),
        "m1.safetensors": bytes(8),
        "x_m1.safetensors": bytes(9),
    }
    upload = opened(tmp_path, files)
    assert paths(upload) == ["a.ipynb", "m1.safetensors"]
    assert reasons(upload) == [
        "b.ipynb: larger than 20 bytes",
        "x_m1.safetensors: larger than 8 bytes",
    ]


# archives that students hand in


def test_an_archive_within_is_opened_once(tmp_path: Path) -> None:
    inner = zip_of(
        {
            "work/m1.ipynb": NOTEBOOK,
            "work/m1.zip": zip_of({"m1.ipynb": NOTEBOOK}),
            "list.csv": b"",
        }
    )
    upload = opened(tmp_path, {"ada.zip": inner})
    (file,) = upload.files
    assert (file.parts, file.inside) == (("ada.zip",), ("work", "m1.ipynb"))
    assert (file.name, file.folders) == ("m1.ipynb", ("ada",))
    assert file.file.read_bytes() == NOTEBOOK
    assert upload.skipped == (
        SkippedFile(
            "ada.zip/work/m1.zip",
            ("ada.zip",),
            "an archive in an archive is not opened: ask for the notebook itself",
        ),
        # a student's list is none of the platform's
        SkippedFile("ada.zip/list.csv", ("ada.zip",), "not a notebook", companion=True),
    )


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("MAX_WITHIN", 100, "an archive of more than 0 MB is not opened"),
        (
            "MAX_ENTRIES_WITHIN",
            1,
            "an archive that holds too much: ask for the notebook itself",
        ),
        (
            "MAX_STATED_WITHIN",
            9,
            "an archive that holds too much: ask for the notebook itself",
        ),
    ],
)
def test_an_archive_within_holds_so_much(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
    reason: str,
) -> None:
    """Two files of 5 bytes each, in more than 100 bytes of zip."""
    inner = zip_of({"a.ipynb": b"5byte", "b.ipynb": b"5byte"})
    files = {"ada.zip": inner, "ben.ipynb": NOTEBOOK}
    (tmp_path / "within").mkdir()
    assert len(opened(tmp_path / "within", files).files) == 3
    monkeypatch.setattr(archives, limit, value)
    upload = opened(tmp_path, files)
    assert paths(upload) == ["ben.ipynb"]
    assert upload.skipped == (SkippedFile("ada.zip", ("ada.zip",), reason),)


def test_an_archive_within_that_has_no_notebook_is_one_line(tmp_path: Path) -> None:
    files = {"ada.zip": zip_of({"a.html": b"", "b.png": b""}), "ben.zip": b"damaged"}
    upload = opened(tmp_path, files)
    assert upload.files == ()
    assert reasons(upload) == [
        "ada.zip: an archive without a notebook that can be taken",
        "ben.zip: an archive that cannot be unpacked: ask for the notebook itself",
    ]


def test_a_file_is_shown_by_the_end_of_its_path() -> None:
    file = UploadedFile(("export", "ada", "m1.ipynb"))
    assert (file.display_path, file.folders) == ("ada/m1.ipynb", ("export", "ada"))
    within = UploadedFile(("export", "ada.zip"), inside=("work", "m1.ipynb"))
    assert within.display_path == "export/ada.zip/work/m1.ipynb"
    assert (within.name, within.folders) == ("m1.ipynb", ("export",))
