"""Every path of a folder: through links, the shell's own path and further mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.sandbox import reach

LINE = "{number} 1 {device} {root} {point} rw,relatime - ext4 /dev/{device} rw\n"


@pytest.fixture(autouse=True)
def no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PWD", raising=False)


def with_mounts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *mounts: tuple[str, str, str]
) -> None:
    """The machine has these mounts: device, folder of the file system, where it is shown."""
    file = tmp_path / "mountinfo"
    lines = [
        LINE.format(number=number, device=device, root=root, point=point)
        for number, (device, root, point) in enumerate(mounts)
    ]
    file.write_text("".join(lines) + "a line of another form\n")
    monkeypatch.setattr(reach, "_MOUNTS", file)


def test_a_link_adds_the_real_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_mounts(monkeypatch, tmp_path)
    course = tmp_path / "course"
    course.mkdir()
    (tmp_path / "link").symlink_to(course)
    assert reach.every_path(tmp_path / "link") == [f"{tmp_path}/link", str(course)]
    assert reach.every_path(course) == [str(course)]


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ([("8:1", "/", "/"), ("8:1", "/", "/mnt")], ["/mnt/srv/course"]),
        ([("8:1", "/", "/"), ("8:1", "/srv", "/b")], ["/b/course"]),
        ([("8:1", "/", "/"), ("8:1", "/srv/course", "/c")], ["/c"]),
        # a part of the course is shown
        ([("8:1", "/", "/"), ("8:1", "/srv/course/tests", "/t")], ["/t"]),
        # a neighbour whose name begins alike
        ([("8:1", "/", "/"), ("8:1", "/srv/course2", "/n"), ("8:1", "/sr", "/s")], []),
        # another file system
        ([("8:1", "/", "/"), ("8:2", "/srv", "/b")], []),
        # the course's own file system is mounted at /srv, with its folders below
        (
            [("8:1", "/", "/"), ("8:2", "/data", "/srv"), ("8:2", "/", "/all")],
            ["/all/data/course"],
        ),
        # of two mounts on one point the later counts
        (
            [
                ("8:1", "/", "/"),
                ("8:2", "/", "/srv"),
                ("8:3", "/", "/srv"),
                ("8:3", "/", "/x"),
            ],
            ["/x/course"],
        ),
        ([("8:1", "/", r"/"), ("8:1", "/", r"/my\040disk")], ["/my disk/srv/course"]),
        ([], []),
    ],
)
def test_mounts_of_the_same_file_system_show_it_too(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mounts: list[tuple[str, str, str]],
    expected: list[str],
) -> None:
    with_mounts(monkeypatch, tmp_path, *mounts)
    assert reach.every_path(Path("/srv/course")) == ["/srv/course", *expected]


def test_a_machine_that_tells_no_mounts_has_the_named_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reach, "_MOUNTS", tmp_path / "missing")
    assert reach.every_path(Path("/srv/course")) == ["/srv/course"]


def test_the_path_that_a_person_typed_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The shell went through a link; the folder is named from where the shell stands."""
    with_mounts(monkeypatch, tmp_path)
    real, link = tmp_path / "real", tmp_path / "typed"
    (real / "course").mkdir(parents=True)
    link.symlink_to(real)
    monkeypatch.chdir(real)
    monkeypatch.setenv("PWD", str(link))
    assert reach.every_path(Path("course")) == [f"{real}/course", f"{link}/course"]
    for elsewhere in (str(tmp_path), f"{tmp_path}/missing", str(real)):
        monkeypatch.setenv("PWD", elsewhere)
        assert reach.every_path(Path("course")) == [f"{real}/course"]
    monkeypatch.setenv("PWD", str(link))
    assert reach.every_path(tmp_path / "other") == [f"{tmp_path}/other"]


def test_a_mount_has_five_fields(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "mountinfo"
    file.write_text("1 2 8:1 /a /b\n1 2 8:1 /a\n1 2 8:1 /c\\040d /e rw shared:1\n")
    monkeypatch.setattr(reach, "_MOUNTS", file)
    mounts = [(m.device, m.root, m.point) for m in reach._read_mounts()]
    assert mounts == [("8:1", "/a", "/b"), ("8:1", "/c d", "/e")]
    monkeypatch.setattr(reach, "_MOUNTS", tmp_path / "none")
    assert reach._read_mounts() == []
