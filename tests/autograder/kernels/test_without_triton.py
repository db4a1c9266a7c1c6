"""a7's notebook where there is no Triton, an old one, or a GPU: what needs only torch runs and is
checked.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
NAME = "a7_tiled_attention"
TORCH_ONLY = {
    "online_softmax_stats": 8,  # how many comparisons its check makes
    "merge_stats": 5,
    "tiled_attention": 10,
    "tiled_attention_backward": 6,
    "hbm_traffic": 3,
    "growth_of_costs": 3,
}
KERNELS = ("add_bias", "softmax_rows", "triton_attention")

RUN = """
import contextlib, io, json, linecache, os, sys, warnings
from unittest.mock import MagicMock
import torch
warnings.simplefilter("ignore")
drawing = MagicMock(subplots=lambda *a, **k: (MagicMock(), MagicMock()))
sys.modules["matplotlib.pyplot"] = sys.modules["matplotlib.patches"] = drawing
for notebook, prepare in json.loads(sys.argv[1]):
    if os.fork():
        os.wait()
        continue
    exec(prepare)
    sys.path.insert(0, os.path.dirname(notebook))  # where the companions lie
    cells, names = [], {"__name__": "__main__"}
    for cell in json.load(open(notebook))["cells"]:
        if cell["cell_type"] != "code":
            continue
        out, error = io.StringIO(), ""
        try:
            with contextlib.redirect_stdout(out):
                source, file = "".join(cell["source"]), cell["id"]
                linecache.cache[file] = (len(source), None, source.splitlines(True), file)  # as IPython does
                exec(compile(source, file, "exec"), names)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        cells.append([cell["id"], out.getvalue(), error])
    print(json.dumps(cells), flush=True)
    os._exit(0)
"""


WITHOUT = "sys.modules['triton'] = None"
MACHINES = {
    "mac": (
        "solutions",
        f"{WITHOUT}; import platform; platform.system = lambda: 'Darwin'; sys.platform = 'darwin'",
    ),
    "triton": (
        "solutions",
        "os.environ['TRITON_INTERPRET'] = '1'",
    ),  # as older notebooks said it
    "release without triton": ("assignments", WITHOUT),
    "old triton": (
        "solutions",
        "import triton; triton.__version__ = '3.4.0'",
    ),
    "gpu": (
        "solutions",
        "torch.cuda.is_available = lambda: True; os.environ.pop('TRITON_INTERPRET', 0)",
    ),
}
"""Which built notebook runs there, and Python that makes the machine what it should be."""

Cells = dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def cells_on() -> dict[str, Cells]:
    """Machine → every code cell by its id: what it printed, and what it raised. Each is a fork of
    one process that has loaded torch and nothing of Triton.
    """
    runs = [
        (str(REPOSITORY / folder / NAME / f"{NAME}.ipynb"), prepare)
        for folder, prepare in MACHINES.values()
    ]
    finished = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(runs)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines: list[list[Any]] = [
        json.loads(line)
        for line in finished.stdout.splitlines()
        if line.startswith("[[")
    ]
    return {
        machine: {name: (out, error) for name, out, error in cells}
        for machine, cells in zip(MACHINES, lines, strict=True)
    }


def comparisons(printed: str) -> int:
    """How many comparisons a passed check counts."""
    counted = re.search(r"as expected \((\d+) comparisons\)", printed)
    return int(counted[1]) if counted else printed.count("as expected")


def test_the_answer_key_runs_to_its_end_on_a_mac(cells_on: dict[str, Cells]) -> None:
    cells = cells_on["mac"]
    assert {name: error for name, (_, error) in cells.items() if error} == {}
    checked = {name: comparisons(cells[f"check-{name}"][0]) for name in TORCH_ONLY}
    assert checked == TORCH_ONLY
    for name in KERNELS:
        assert cells[f"check-{name}"][0].startswith(
            "Skipped: kernels need Triton, which is made for Linux. Open this"
        )


def test_the_answer_key_runs_to_its_end_with_triton(cells_on: dict[str, Cells]) -> None:
    cells = cells_on["triton"]
    assert {name: error for name, (_, error) in cells.items() if error} == {}
    assert [comparisons(cells[f"check-{name}"][0]) for name in KERNELS] == [2, 2, 10]
    assert "program (1, 1)" in cells["demo-trace_add_bias"][0]


def test_the_release_stops_at_what_is_not_written_and_at_nothing_else(
    cells_on: dict[str, Cells],
) -> None:
    cells = cells_on["release without triton"]
    raised = {name: error.split(":")[0] for name, (_, error) in cells.items() if error}
    assert raised.keys() >= {f"check-{name}" for name in TORCH_ONLY}
    assert set(raised.values()) == {"NotImplementedError"}
    assert not [name for name in raised if any(kernel in name for kernel in KERNELS)]


def test_a_version_that_the_interpreter_does_not_know_is_said_once_more_at_each_check(
    cells_on: dict[str, Cells],
) -> None:
    cells = cells_on["old triton"]
    assert {name: error for name, (_, error) in cells.items() if error} == {}
    said = (
        "Skipped: strict Triton knows Triton 3.6 to 3.9, and this is 3.4.0: pip install "
        "triton==3.7.1\n"
    )
    assert [cells[f"check-{name}"][0] for name in KERNELS] == [said] * 3


def test_with_a_gpu_nothing_is_put_before_it(cells_on: dict[str, Cells]) -> None:
    # no GPU here: what launches kernels raises, and what stands before it must not
    cells = cells_on["gpu"]
    assert {name for name, (_, error) in cells.items() if error} == {
        "demo-roofline",
        *(f"check-{name}" for name in KERNELS),
    }
    assert not cells["demo-trace_add_bias"][0]
