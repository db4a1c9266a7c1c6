"""A student's hour with one question, in a kernel and in a browser: a wrong answer, hints opened
one by one, a harder input failed, its call pasted and run, the answer mended, progress seen.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import needs_chromium
from devtools import Tab, open_tab
from jupyter_client.manager import start_new_kernel

pytestmark = needs_chromium

RELEASE = Path(__file__).resolve().parents[3] / "assignments" / "a2_attention"
HEAD = (
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    '<meta name="color-scheme" content="light dark">'
)
WRONG = "def attend(scores, states):\n    return states.mean(dim=1), torch.softmax(scores, dim=0)"
UNCHECKED = """\
def attend(scores, states):
    dtype = scores.dtype
    weights = torch.softmax(scores.double(), dim=-1)
    context = (weights[:, :, None] * states.double()).sum(dim=1)
    return context.to(dtype), weights.to(dtype)"""
MENDED = UNCHECKED.replace(
    "    dtype",
    '    if scores.shape != states.shape[:2]:\n        raise ValueError("sizes")\n    dtype',
    1,
)
WIDER = "document.documentElement.scrollWidth > innerWidth"


class Notebook:
    """A kernel in a folder with the released files.

    Attributes:
        outputs: HTML of the last cell.
        error: the name of the exception that ended the last cell, or "".
    """

    def __init__(self, folder: Path) -> None:
        self._manager, self._client = start_new_kernel(cwd=str(folder))
        self.outputs: list[str] = []
        self.error = ""

    def run(self, source: str) -> str:
        """Run a cell; its HTML outputs."""
        self.outputs, self.error = [], ""
        self._client.execute_interactive(source, output_hook=self._note, timeout=240)
        return "\n".join(self.outputs)

    def _note(self, message: dict[str, Any]) -> None:
        content = message["content"]
        self.outputs.append(content.get("data", {}).get("text/html", ""))
        self.error = content.get("ename", self.error)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    for file in RELEASE.glob("*.py"):
        shutil.copy(file, tmp_path)
    notebook = Notebook(tmp_path)
    yield notebook
    notebook.close()


def released_cells() -> dict[tuple[str, str], str]:
    """The code of the release, by role and name."""
    cells = json.loads((RELEASE / "a2_attention.ipynb").read_text(encoding="utf-8"))[
        "cells"
    ]
    kits = [
        (cell["metadata"]["attention_kit"], "".join(cell["source"])) for cell in cells
    ]
    return {(kit["role"], kit["name"]): text for kit, text in kits if kit["name"]}


def show(tab: Tab, page: Path, html: str) -> None:
    """Show outputs at both widths, light and dark: nothing is wider than the screen."""
    page.write_text(
        f"<!doctype html><html><head>{HEAD}</head><body>{html}</body></html>", "utf-8"
    )
    for width, dark in ((1280, False), (1280, True), (390, True), (390, False)):
        tab.resize(width, 800, dark=dark)
        tab.go(page.as_uri())
        tab.wait_for("document.body.innerText.length > 20")
        assert tab.look(WIDER) is False
        colour = tab.look("getComputedStyle(document.querySelector('div')).color")
        assert colour == ("rgb(255, 255, 255)" if dark else "rgb(0, 0, 0)")


def test_from_a_wrong_answer_to_progress(notebook: Notebook, tmp_path: Path) -> None:
    cells, page = released_cells(), tmp_path / "outputs.html"
    for name in ("imports", "expect", "library"):
        notebook.run(cells["given", name])
    with open_tab() as tab:
        notebook.run(WRONG)
        show(tab, page, notebook.run(cells["check", "attend"]))
        assert notebook.error == "NotYet"
        assert tab.look("document.querySelectorAll('details[open]').length") == 0
        tab.click("details > summary")
        tab.wait_for("document.querySelector('details').open")

        notebook.run(UNCHECKED)
        show(tab, page, notebook.run(cells["check", "attend"]))
        assert "harder(attend)" in tab.look("document.body.innerText")

        show(tab, page, notebook.run("harder(attend, seed=1, seconds=60)"))
        text = tab.look("document.body.innerText")
        assert "Sizes that do not fit are refused with ValueError." in text
        call = tab.look("document.querySelector('pre code').textContent")
        notebook.run(call)
        assert notebook.error == ""

        notebook.run(MENDED)
        show(tab, page, notebook.run("harder(attend, seed=1, seconds=60)"))
        assert "all is well" in tab.look("document.body.innerText")

        show(tab, page, notebook.run(cells["demo", "how_far"]))
        row = tab.look("document.querySelector('tbody tr').innerText").split("\t")
    assert row[0] == "a2_attention"
    assert row[2] == "1 of 12"  # of the checks
    assert row[3] == "1 of 12"  # of the harder inputs
