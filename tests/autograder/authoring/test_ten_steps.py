"""docs/authoring.md's ten steps, followed to the letter in a new course: what they say to write is
written, what they say to run is run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from autograder.authoring import build_check
from autograder.authoring.execute import CellError
from autograder.cli.commands import main
from autograder.worker.companion_modules import CompanionModules

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "authoring.md"
OF_EVERY_ASSIGNMENT = ("test_suites_page.py", "test_marking_guides.py")
"""The files of tests/autograder/content that look at all assignments of the course that they lie
in.
"""
_STEP = re.compile(r"^\d+\. ", re.MULTILINE)
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_CHANGE = re.compile(r"[Ii]n\s+`([^`]+)`,\s+change\s+`([^`]+)`\s+to\s+`([^`]+)`")
_ABOVE = re.compile(r"line\s+`([^`]+)`\s+of\s+`([^`]+)`:\s*$")
_AT_THE_END = re.compile(r"[Aa]t the end of\s+`([^`]+)`:\s*$")
_WRITE = re.compile(r"Write\s+`([^`]+)`:\s*$")


def steps_of(heading: str) -> list[str]:
    section = (
        PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    )
    return _STEP.split(section)[1:]


def follow(step: str) -> Iterator[str]:
    """Do what a step says; yields what its commands print."""
    for file, old, new in _CHANGE.findall(step):
        text = Path(file).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} should hold {old!r} once"
        Path(file).write_text(text.replace(old, new), encoding="utf-8")
    read = 0
    for block in _BLOCK.finditer(step):
        said, read = step[read : block.start()].rstrip(), block.end()
        kind, text = block[1], textwrap.dedent(block[2])
        if kind in ("python", "toml"):
            write(said, text)
        else:
            yield from run(text)


def write(said: str, text: str) -> None:
    """Put a block of text where the words above it say."""
    if above := _ABOVE.search(said):
        line, file = above.groups()
        old = Path(file).read_text(encoding="utf-8")
        assert old.count(f"{line}\n") == 1
        Path(file).write_text(
            old.replace(f"{line}\n", f"{text}{line}\n"), encoding="utf-8"
        )
    elif end := _AT_THE_END.search(said):
        with Path(end[1]).open("a", encoding="utf-8") as file_:
            file_.write(text)
    else:
        new = _WRITE.search(said)
        assert new is not None, f"nobody is told where this goes: {text}"
        Path(new[1]).write_text(text, encoding="utf-8")


def run(commands: str) -> Iterator[str]:
    for command in commands.splitlines():
        program, *arguments = command.split()
        if program == "cd":
            os.chdir(arguments[0])  # the test goes back
            continue
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, f"{command}: {done.output}"
        yield done.output


def executed_here(
    notebook: bytes, files: Iterable[tuple[str, bytes]], cell_seconds: float
) -> Iterator[CellError]:
    """As `execute_notebook`, in this process: a kernel of its own would import torch for each
    notebook.
    """
    names: dict[str, object] = {}
    companions = {
        path: content.decode() for path, content in files if path.endswith(".py")
    }
    finder = CompanionModules(companions)
    finder.restore()
    for number, cell in enumerate(json.loads(notebook)["cells"]):
        if cell["cell_type"] == "code":
            try:
                exec("".join(cell["source"]), names)
            except Exception as error:
                yield CellError(
                    number, type(error).__name__, str(error), traceback.format_exc()
                )
    sys.meta_path.remove(finder)


def test_the_ten_steps_lead_to_a_proven_assignment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(build_check, "execute_notebook", executed_here)
    assignment, question = (
        steps_of("Add an assignment, in ten steps"),
        steps_of("Add a question, in ten steps"),
    )
    assert (len(assignment), len(question)) == (10, 10)
    said = "".join(line for step in [*assignment, *question] for line in follow(step))

    assert "a10_my_topic: sound (1 question, 100 points)" in said
    assert "a10_my_topic: 4 files changed (2 questions, 100 points)" in said
    assert (
        said.count(
            "answer key 90 points, release 0, 1 mistakes caught, 2 alternates pass"
        )
        == 3
    )
    assert (
        "answer key 90 points, release 0, 2 mistakes caught, 4 alternates pass, 100.0% of"
        in said
    )
    result = json.loads(
        Path("results/a10_my_topic/solutions.json").read_text(encoding="utf-8")
    )
    assert (result["score"], result["max_score"]) == (90.0, 90.0)
    run_tests_of_the_kit(Path.cwd())


def run_tests_of_the_kit(course: Path) -> None:
    """Run the tests of the kit's own assignments on this course: an author's `make test` has to be
    green.
    """
    folder = course / "tests" / "autograder" / "content"
    folder.mkdir(parents=True)
    for name in OF_EVERY_ASSIGNMENT:
        shutil.copy(ROOT / "tests" / "autograder" / "content" / name, folder)
    # importlib: the same file may have been collected from the repository in this process
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    assert pytest.main([str(folder), *options]) == pytest.ExitCode.OK
