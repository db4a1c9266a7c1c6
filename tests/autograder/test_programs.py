"""Each program of benchmarks/ and tests/long/ starts: it finds what it imports, and says what it
takes.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONG = ROOT / "tests" / "long"
TEXTS = {
    path: path.read_text(encoding="utf-8")
    for folder in (ROOT / "benchmarks", LONG)
    for path in sorted(folder.glob("*.py"))
}
PROGRAMS = [path for path, text in TEXTS.items() if '__name__ == "__main__"' in text]


def start(monkeypatch: pytest.MonkeyPatch, program: Path, *arguments: str) -> int:
    """Run a program as `python FOLDER/NAME` would, in this process; its exit status."""
    monkeypatch.setattr(sys, "path", [str(program.parent), *sys.path])
    monkeypatch.setattr(sys, "argv", [program.name, *arguments])
    try:
        runpy.run_path(str(program), run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_it_says_what_it_takes(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(monkeypatch, program, "--help") == 0
    assert f"usage: {program.name}" in capsys.readouterr().out


def test_the_wire_is_fuzzed_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        start(monkeypatch, LONG / "fuzz_wire.py", "--inputs", "200", "--seed", "7") == 0
    )


def test_what_is_no_program_is_imported_or_started_by_one() -> None:
    imported = {
        name
        for text in TEXTS.values()
        for name in re.findall(r"^ *(?:from|import) (\w+)", text, re.MULTILINE)
    }
    started = set(re.findall(r'"(\w+\.py)"', "\n".join(TEXTS.values())))
    helpers = [path for path in TEXTS if path not in PROGRAMS]
    unused = [
        path
        for path in helpers
        if path.stem not in imported and path.name not in started
    ]
    assert unused == []


def test_the_page_of_long_proofs_names_each_of_them() -> None:
    page = (LONG / "README.md").read_text(encoding="utf-8")
    assert [
        path.name
        for path in PROGRAMS
        if path.parent == LONG and f"tests/long/{path.name}" not in page
    ] == []


NIGHTLY = (ROOT / ".github/workflows/nightly.yml").read_text(encoding="utf-8")
NIGHTLY_COMMANDS = re.findall(r"tests/long/(\w+\.py)([^\n]*)", NIGHTLY)


def test_the_nightly_workflow_runs_every_long_proof_that_needs_nothing_more() -> None:
    """security_peers.py needs two other graders in an environment of their own."""
    nightly = {name for name, _ in NIGHTLY_COMMANDS}
    programs = {path.name for path in PROGRAMS if path.parent == LONG}
    assert programs - nightly == {"security_peers.py"}
    assert nightly <= programs


@pytest.mark.parametrize(("name", "options"), NIGHTLY_COMMANDS)
def test_the_nightly_workflow_knows_the_options_of_a_long_proof(
    name: str,
    options: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    start(monkeypatch, LONG / name, "--help")
    usage = capsys.readouterr().out
    for option in re.findall(r"--[\w-]+", options):
        assert f"{option} " in usage


def test_what_a_run_left_out_is_listed_by_reason() -> None:
    """Three tests for two reasons, in two files."""
    text = (
        "no jq\ttests/autograder/platforms/test_bundle.py::test_a\n"
        "no GPU\ttests/autograder/kernels/test_gpu.py::test_b[1]\n"
        "no GPU\ttests/autograder/kernels/test_gpu.py::test_b[2]\n"
    )
    assert runpy.run_path(str(ROOT / "tests/left_out.py"))["list_left_out"](text) == [
        "Tests left out: 3",
        "  2 x no GPU (tests/autograder/kernels/test_gpu.py)",
        "  1 x no jq (tests/autograder/platforms/test_bundle.py)",
    ]
