"""Folders of a course at an address: the same bytes as on this disk, nothing read twice, and nothing lost."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from courses import handed_in
from small_course import ANSWERS

from autograder.cli import main
from autograder.course import Course, Folders, load_course, settings_of_nobody
from autograder.errors import BadCourseFile, ResultsInUse, StorageUnavailable, UnreadableSubmission
from autograder.folders import Folder
from autograder.handed_in import read_handed_in
from autograder.storage.at_hand import at_hand
from autograder.whole_files import write_whole

SERVER = Path(__file__).with_name("store_server.py")
BOTH = {"read": [Folder.SUBMITTED], "written": [Folder.RESULTS]}
WRONG = "def softmax(z, dim=-1):\n    return z.exp() / z.exp().sum(dim=0)\n"
SPY = """
import glob, os
seen = sorted(name for name in os.environ if "AWS" in name)
for place in PLACES:
    try:
        seen += os.listdir(place)
    except OSError:
        pass
for path in glob.glob("/proc/*/environ"):
    try:
        seen += ["environ"] if b"AWS_" in open(path, "rb").read() else []
    except OSError:
        pass
raise RuntimeError(f"seen: {seen}")
"""


class Store:
    """A running server with a bucket, and what it was asked."""

    def __init__(self, port: int, log: Path) -> None:
        boto3 = pytest.importorskip("boto3", reason="pip install 'attention-kit[dev]' brings a server of S3")
        self._log = log
        self.client: Any = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
        self.client.create_bucket(Bucket="course")

    def put(self, key: str, content: bytes | str) -> None:
        self.client.put_object(Bucket="course", Key=key, Body=content)

    def get(self, key: str) -> bytes:
        return bytes(self.client.get_object(Bucket="course", Key=key)["Body"].read())

    def keys(self, prefix: str) -> set[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="course", Prefix=f"{prefix}/")
        return {entry["Key"].removeprefix(f"{prefix}/") for page in pages for entry in page.get("Contents", ())}

    def asked(self) -> list[str]:
        """Requests since this was called last, as "GET key" or "LIST"; further pages of a listing are left out."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        self._log.write_text("", encoding="utf-8")
        parts = [line.partition(" /course") for line in lines if "continuation-token" not in line]
        return sorted(
            "LIST" if "list-type" in rest else f"{method} {rest.split(' ')[0].removeprefix('/')}"
            for method, _, rest in parts
        )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    pytest.importorskip("moto", reason="pip install 'attention-kit[dev]' brings a server of S3")
    pytest.importorskip("s3fs", reason="pip install 'attention-kit[s3]'")
    log = tmp_path_factory.mktemp("store") / "log"
    log.touch()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "AWS_ACCESS_KEY_ID": "course", "AWS_SECRET_ACCESS_KEY": "never-shown", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }  # fmt: skip
    with (
        pytest.MonkeyPatch.context() as patch,
        subprocess.Popen(
            [sys.executable, str(SERVER), str(port), str(log)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server,
    ):
        for name, value in settings.items():
            patch.setenv(name, value)
        for _ in range(600):
            try:
                urllib.request.urlopen(settings["AWS_ENDPOINT_URL"], timeout=10).close()
                break
            except OSError:
                time.sleep(0.1)
        yield Store(port, log)
        server.kill()


def copied(course: Course, to: Path, submitted: str, results: str) -> Course:
    """The course once more, as on another machine, with folders at these addresses."""
    shutil.copytree(course.root, to, ignore=shutil.ignore_patterns("submitted", "results", "storage"))
    with (to / "course.toml").open("a", encoding="utf-8") as file:
        file.write(f'[folders]\nsubmitted = "{submitted}"\nresults = "{results}"\n')
    return load_course(to)


def bare(tmp_path: Path, name: str, base: str = "s3://course") -> Course:
    """A course of nothing but settings."""
    root = tmp_path / name
    root.mkdir(parents=True)
    return Course(root, elsewhere=Folders(f"{base}/{name}/submitted", f"{base}/{name}/results"))


def below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def command(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str, status: int = 0) -> str:
    monkeypatch.chdir(folder)
    ended = CliRunner().invoke(main, arguments)
    assert ended.exit_code == status, ended.output
    return ended.output


# a course in a store


@pytest.mark.usefixtures("standing_host")
def test_a_class_in_a_store_gets_what_it_gets_on_this_disk(
    course: Course, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through collect, grade, report, export and totals; what stands there is read once, and student code sees neither
    the copies nor the credentials."""
    here = copied(course, tmp_path / "here", "s3://course/fall/submitted", "s3://course/fall/results")
    places = [os.fspath(place) for place in (here.submitted, here.results, here.kept)]
    answers = {
        "ann": handed_in(ANSWERS),
        "bob": handed_in({**ANSWERS, "softmax": WRONG}),
        "spy": handed_in(ANSWERS, [SPY.replace("PLACES", repr(places))]),
        "not": "no notebook",
    }
    for student, text in answers.items():
        for folder in (tmp_path / "download", tmp_path / "local" / "submitted"):
            write_whole(folder / student / "small" / "small.ipynb", text)
    shutil.copytree(course.root, tmp_path / "local", dirs_exist_ok=True)
    command(tmp_path / "local", monkeypatch, "grade", "small", "--workers", "1", status=1)
    wanted = below(tmp_path / "local" / "results" / "small")
    assert set(wanted) == {"ann.json", "bob.json", "spy.json"}

    command(here.root, monkeypatch, "collect", "small", os.fspath(tmp_path / "download"), "--from", "folder")
    assert store.keys("fall/submitted") >= {f"{student}/small/small.ipynb" for student in answers}
    store.asked()
    said = command(here.root, monkeypatch, "grade", "small", "--workers", "1", status=1)
    assert "s3://course/fall/results/small" in said
    assert {key: store.get(f"fall/results/small/{key}") for key in wanted} == wanted
    assert store.keys("fall/results") == {*(f"small/{key}" for key in wanted), "small.timing.json"}
    assert not [line for line in store.asked() if line.startswith("GET fall/submitted")], "collect has put them itself"
    cells = json.loads(wanted["spy.json"])["cells"]
    assert next(cell["message"] for cell in cells if cell["id"] == "extra-1").startswith("RuntimeError: seen: []\n")

    store.client.delete_object(Bucket="course", Key="fall/submitted/not/small/small.ipynb")
    store.asked()
    command(here.root, monkeypatch, "grade", "small")  # nothing is new: nobody starts to grade
    claim = "fall/results/.in-use"
    assert store.asked() == [f"DELETE {claim}", "LIST", "LIST", f"PUT {claim}"]

    other = copied(course, tmp_path / "other", "s3://course/fall/submitted", "s3://course/fall/results")
    table = command(other.root, monkeypatch, "export", "small", "--format", "csv")
    assert "ann,4,6,1,11,11,graded," in table
    assert "without a mark, withdrawn: 1: not" in table
    asked = store.asked()
    assert len([line for line in asked if line.startswith("GET")]) == len(store.keys("fall")), asked
    assert not [line for line in asked if line.startswith(("PUT", "DELETE"))]
    assert "never-shown" not in said + "".join(map(str, [below(here.kept), below(other.kept)]))


def test_what_changed_there_is_fetched_once_and_what_is_gone_goes(store: Store, tmp_path: Path) -> None:
    course = bare(tmp_path, "changes")
    for number in range(90):  # three pages
        store.put(f"changes/submitted/s{number}/a/a.ipynb", str(number))
    with at_hand(course, print, read=[Folder.SUBMITTED]):
        assert below(course.submitted) == {f"s{number}/a/a.ipynb": str(number).encode() for number in range(90)}
    store.put("changes/submitted/s7/a/a.ipynb", "8")
    store.put("changes/submitted/s91/a/a.ipynb", "")
    store.client.delete_object(Bucket="course", Key="changes/submitted/s3/a/a.ipynb")
    store.asked()
    with at_hand(course, print, read=[Folder.SUBMITTED]):
        there = below(course.submitted)
    assert there["s7/a/a.ipynb"] == b"8"
    assert there["s91/a/a.ipynb"] == b""
    assert len(there) == 90
    assert not (course.submitted / "s3").exists()
    assert store.asked() == ["GET changes/submitted/s7/a/a.ipynb", "LIST"]


def test_no_name_and_no_size_of_an_object_leads_astray(store: Store, tmp_path: Path) -> None:
    course = dataclasses.replace(
        bare(tmp_path, "names"), limits=dataclasses.replace(Course(tmp_path).limits, notebook_mb=1)
    )
    taken = {"Ann/a/a.ipynb", "ann/a/a.ipynb", "huge/a/a.ipynb", "twin/a/a.ipynb", "ü/a/a b#.ipynb"}
    odd = {"../../x", "a//b", "/abs", "s/../../../y", "./z", "nul\0/a", f"{'n' * 300}/a", "q/a?versionId=1", "twin"}
    for key in {*taken, *odd, "marker/a/"}:
        store.put(f"names/submitted/{key}", b" " * ((1 << 20) + 1) if key.startswith("huge") else key)
    told: list[str] = []
    before = below(tmp_path)
    store.asked()
    with at_hand(course, told.append, read=[Folder.SUBMITTED]):
        assert {
            path.relative_to(course.submitted).as_posix() for path in course.submitted.rglob("*") if path.is_file()
        } == taken
        with pytest.raises(UnreadableSubmission, match="is larger than 1 MB"):
            read_handed_in(course.submitted / "huge" / "a" / "a.ipynb", 1 << 20)
    assert len([line for line in store.asked() if line.startswith("GET")]) == len(taken) - 1
    assert len(told) == len(odd)
    assert all(line.startswith("s3://course/names/submitted: left out, ") for line in told)
    assert [line for line in told if "'twin'" in line] == [
        "s3://course/names/submitted: left out, 'twin': others lie in it as in a folder"
    ]
    outside = {path for path in below(tmp_path) if not path.startswith("names/.autograder/storage/")}
    assert outside == set(before)


def test_both_changed_and_neither_is_lost(tmp_path: Path) -> None:
    course, told = bare(tmp_path, "both", f"file://{tmp_path}/there"), list[str]()
    there = tmp_path / "there" / "both" / "results"
    write_whole(there / "a" / "s.json", "first")
    with at_hand(course, told.append, written=[Folder.RESULTS]):
        pass
    write_whole(course.results / "a" / "s.json", "here")
    write_whole(course.results / "a" / "new.json", "new")
    write_whole(there / "a" / "s.json", "there")
    with at_hand(course, told.append, read=[Folder.RESULTS]):
        assert below(course.results) == {"a/s.json": b"there", "a/new.json": b"new"}
    assert below(there) == {"a/s.json": b"there", "a/new.json": b"new"}, "whatever comes next puts what is not put"
    aside = course.results.with_name(f"{course.results.name}.aside")
    assert below(aside) == {"1/a/s.json": b"here"}
    assert f"a/s.json was changed here and at file://{there}" in told[0]


@pytest.mark.parametrize("kind", ["s3", "file"])
def test_somebody_else_writes_there(kind: str, store: Store, tmp_path: Path) -> None:
    course = bare(tmp_path, "used", "s3://course" if kind == "s3" else f"file://{tmp_path}/there")
    claim = "0123\nprocess 7 on laptop, since today\n"
    if kind == "s3":
        store.put("used/results/.in-use", claim)
    else:
        write_whole(tmp_path / "there" / "used" / "results" / ".in-use", claim)
    with (
        pytest.raises(ResultsInUse, match=r"process 7 on laptop, since today.* writes into .*used/results: wait"),
        at_hand(course, print, written=[Folder.RESULTS]),
    ):
        raise AssertionError
    with at_hand(course, print, read=[Folder.RESULTS]):  # whoever only reads may
        assert below(course.results) == {}


WRITER = """
import sys, time
from pathlib import Path
from autograder.course import Course, Folders
from autograder.folders import Folder
from autograder.results import replaced
from autograder.storage.at_hand import at_hand
from autograder.whole_files import write_whole

course = Course(Path(sys.argv[1]), elsewhere=Folders(results="s3://course/killed/results"))
with at_hand(course, print, written=[Folder.RESULTS]):
    for number in range(60):
        path, content = course.results / "a" / f"s{number}.json", sys.argv[2].encode() * 1000
        if not path.exists() or path.read_bytes() != content:
            if copy := replaced(course.results, "a", path, content, path.name):
                write_whole(*copy)
            write_whole(path, content)
            time.sleep(0.04)
"""


def test_a_killed_command_loses_nothing_that_stood_there(store: Store, tmp_path: Path) -> None:
    """The first text is written; then another one takes its place, by commands that are killed. At any time each result
    stands there whole, in the one text or the other, and what was replaced is in the history in the end."""
    program = [sys.executable, "-c", WRITER, os.fspath(tmp_path)]
    subprocess.run([*program, "old"], check=True)
    draw = random.Random(20)
    for _ in range(2):
        with subprocess.Popen([*program, "new"]) as running:
            time.sleep(draw.uniform(1.0, 4.0))
            running.send_signal(signal.SIGKILL)
        results = {
            key: store.get(f"killed/results/{key}") for key in store.keys("killed/results") if key.startswith("a/")
        }
        assert len(results) == 60
        assert {*results.values()} <= {b"old" * 1000, b"new" * 1000}
    subprocess.run([*program, "new"], check=True)
    there = {key: store.get(f"killed/results/{key}") for key in store.keys("killed/results")}
    assert {content for key, content in there.items() if key.startswith("a/")} == {b"new" * 1000}
    history = [content for key, content in there.items() if key.startswith("history/a/")]
    assert {*history} == {b"old" * 1000}
    assert len(history) >= 60, "whoever is killed between the copy and the new text makes the copy once more"
    assert not [key for key in there if not key.startswith(("a/", "history/"))], (
        "nobody is said to write there any more"
    )


# what goes wrong


def test_a_bucket_that_is_not_there(store: Store, tmp_path: Path) -> None:
    course = bare(tmp_path, "x", "s3://no-such-bucket")
    wanted = r"s3://no-such-bucket/x/submitted cannot be listed: there is no such bucket"
    with pytest.raises(StorageUnavailable, match=wanted), at_hand(course, print, **BOTH):
        raise AssertionError


def test_no_server_answers(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "course.toml").write_text('[folders]\nsubmitted = "s3://course/a"\nresults = "s3://course/b"\n')
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    said = command(tmp_path, monkeypatch, "totals", status=2)
    assert said.startswith("autograder: s3://course/a cannot be listed: no answer from there")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("nosuch://place/x", "not known"),
        ("memory://place/x", "it would be gone when this command ends; name a place that stays"),
    ],
)
def test_an_address_that_nothing_can_serve(address: str, wanted: str, tmp_path: Path) -> None:
    course = Course(tmp_path, elsewhere=Folders(results=address))
    with pytest.raises(StorageUnavailable, match=wanted), at_hand(course, print, written=[Folder.RESULTS]):
        raise AssertionError


def test_what_could_not_be_put_is_put_by_the_next_command(tmp_path: Path) -> None:
    """The folder at the address is gone in the middle: one line says so, and the results are safe."""
    (there := tmp_path / "there").mkdir()
    course = Course(tmp_path / "course", elsewhere=Folders(results=f"file://{there}/results"))
    wanted = "1 files are not there yet. They are safe in the copy on this disk"

    def fault() -> None:
        shutil.rmtree(there)
        there.touch()
        write_whole(course.results / "a" / "s.json", "one")

    with pytest.raises(StorageUnavailable, match=wanted), at_hand(course, print, written=[Folder.RESULTS]):
        fault()
    there.unlink()
    with at_hand(course, print, read=[Folder.RESULTS]):
        pass
    assert below(there) == {"results/a/s.json": b"one"}


def test_a_folder_of_files_is_written_whole_and_its_links_are_not_followed(tmp_path: Path) -> None:
    (there := tmp_path / "there").mkdir()
    write_whole(there / "submitted" / "ann" / "a.ipynb", "ann")
    write_whole(there / "results" / "a" / ".0123456789abcdef.part", "half of what a killed command wrote")
    (tmp_path / "secret").write_text("answers")
    (there / "submitted" / "link.ipynb").symlink_to(tmp_path / "secret")
    (there / "submitted" / "folder").symlink_to(tmp_path)
    told: list[str] = []
    course = Course(tmp_path / "course", elsewhere=Folders(f"file://{there}/submitted", f"file://{there}/results"))
    with at_hand(course, told.append, **BOTH):
        assert below(course.submitted) == {"ann/a.ipynb": b"ann"}
        write_whole(course.results / "a" / "s.json", "one")
    assert below(there / "results") == {"a/s.json": b"one"}
    assert [line.rpartition(": ")[2] for line in told] == ["it is a link or no file"] * 2
    assert {there / "submitted", there / "results"} <= set(course.hidden)


# settings


@pytest.mark.parametrize(
    ("submitted", "results"),
    [
        ("/mnt/course", ""),
        ("s3:/bucket", ""),
        ("zip://x::s3://bucket/course.zip", ""),
        ("s3://bucket/submitted?x", ""),
        ("s3://bucket/course", "s3://bucket/course/results"),
        ("s3://bucket/course", "s3://bucket/course/"),
    ],
)
def test_addresses_that_make_no_sense(submitted: str, results: str, tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text(f'[folders]\nsubmitted = "{submitted}"\nresults = "{results}"\n')
    with pytest.raises(BadCourseFile, match=r"folders\.submitted"):
        load_course(tmp_path)


def test_addresses_stay_with_the_instructors(tmp_path: Path) -> None:
    course = Course(tmp_path, elsewhere=Folders(results="sftp://me:p%40ss@host/course"))
    assert "host" not in settings_of_nobody(course)
    assert course.shown_place(course.results / "a") == "sftp://host/course/a"
    assert "p%40ss" not in os.fspath(course.results)


def test_an_address_on_the_command_line_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "course.toml").touch()
    said = command(tmp_path, monkeypatch, "totals", "--results", "s3://bucket/results", status=2)
    assert "an address is named in course.toml, under [folders]" in said
    assert [path.name for path in tmp_path.iterdir()] == ["course.toml"]


def test_a_course_on_this_disk_starts_no_other_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    with at_hand(Course(tmp_path), print, **BOTH):
        pass
    assert not any(tmp_path.iterdir())
