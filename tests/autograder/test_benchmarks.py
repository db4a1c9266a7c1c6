"""Each program of benchmarks/ starts: it finds what it imports, and says what it takes."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
PROGRAMS = [name for name, text in TEXTS.items() if "__main__" in text]


def start(monkeypatch: pytest.MonkeyPatch, name: str, *arguments: str) -> int:
    """Run a program as `python benchmarks/NAME` would, in this process; its exit status."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    try:
        runpy.run_path(str(FOLDER / name), run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_says_what_it_takes(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert start(monkeypatch, name, "--help") == 0
    assert f"usage: {name}" in capsys.readouterr().out


def test_the_wire_is_fuzzed_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(monkeypatch, "fuzz_wire.py", "--inputs", "200", "--seed", "7") == 0


def test_what_is_no_program_is_imported_by_one() -> None:
    imported = {name for text in TEXTS.values() for name in re.findall(r"^ *(?:from|import) (\w+)", text, re.MULTILINE)}
    assert [name for name in TEXTS if name not in PROGRAMS and Path(name).stem not in imported] == []
