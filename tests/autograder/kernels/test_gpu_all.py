"""benchmarks/gpu_all.py without a GPU: a step that fails costs no other, and the file says which
failed and why.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
sys.path.append(str(BENCHMARKS))
import gpu_all  # noqa: E402
import gpu_attention  # noqa: E402
import gpu_grade  # noqa: E402
from fast_attention import Config  # noqa: E402

WRITES = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text('{\"n\": 1}')"


def step(
    name: str, code: str, seconds: float = 60.0, missing: str = ""
) -> gpu_all.Step:
    return gpu_all.Step(name, seconds, (sys.executable, "-c", code), missing)


@pytest.fixture
def no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_all, "machine", lambda: {"gpu": "", "torch": "2.13.0"})


def test_each_step_stands_in_the_file_and_none_costs_another(
    tmp_path: Path, no_machine: None, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [
        step("fails", WRITES + "; print('a last word'); sys.exit(3)"),
        step(
            "hangs",
            "import time; print('begun', flush=True); time.sleep(600)",
            seconds=1.5,
        ),
        step("silent", "pass"),
        step("elsewhere", "pass", missing="transformers is not installed"),
        step("fine", WRITES),
    ]
    assert not gpu_all.measure(chosen, tmp_path / "gpu.json")
    report = json.loads((tmp_path / "gpu.json").read_text())
    assert report["machine"] == {"gpu": "", "torch": "2.13.0"}
    rows = report["steps"]
    assert {name: row["why"] for name, row in rows.items()} == {
        "fails": "ended with 3",
        "hangs": "took more than 2 s",
        "silent": "wrote no result",
        "elsewhere": "transformers is not installed",
        "fine": "",
    }
    assert [name for name, row in rows.items() if row["ok"]] == ["fine"]
    assert (rows["fails"]["result"], rows["fails"]["said"]) == (
        {"n": 1},
        ["a last word"],
    )
    assert rows["fine"]["result"] == {"n": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["gpu.json"]
    assert "transformers is not installed" in capsys.readouterr().out


def test_when_the_time_is_over_no_step_begins(tmp_path: Path, no_machine: None) -> None:
    assert not gpu_all.measure(
        [step("late", WRITES)], tmp_path / "gpu.json", seconds=0.5
    )
    assert json.loads((tmp_path / "gpu.json").read_text())["steps"] == {
        "late": {"ok": False, "why": "no time was left"}
    }


def test_what_cannot_run_here_is_no_failure(tmp_path: Path, no_machine: None) -> None:
    assert gpu_all.measure(
        [step("elsewhere", "pass", missing="only on a GPU")], tmp_path / "gpu.json"
    )


def test_all_steps_together_take_less_than_9_minutes() -> None:
    """60 + 80 + 150 + 130 + 35 + 30 + 35: with 20 s to ask for versions, 540 at most."""
    limits = [step.seconds for step in gpu_all.steps(dry_run=False)]
    assert sum(limits) == gpu_all.SECONDS == 520


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "nvidia-smi names no GPU here; --dry-run does what a CPU can"),
        (
            ["--dry-run", "--only", "sped"],
            "no step sped; there are starts, right, memory, grade, decode, transformers, speed",
        ),
        (
            ["--dry-run", "--json", "/no/such/folder/gpu.json"],
            "/no/such/folder is no folder",
        ),
    ],
)
def test_wrong_use_is_told(
    no_machine: None, capsys: pytest.CaptureFixture[str], given: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        gpu_all.main(given)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_the_script_runs_a_step(tmp_path: Path) -> None:
    call = [
        str(BENCHMARKS / "gpu_all.sh"),
        "--dry-run",
        "--only",
        "memory",
        "--json",
        str(tmp_path / "dry.json"),
    ]
    finished = subprocess.run(
        call,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHON": sys.executable},
    )
    assert finished.returncode == 0, finished.stderr
    assert json.loads((tmp_path / "dry.json").read_text())["steps"] == {
        "memory": {"ok": False, "why": "only on a GPU"}
    }


# the step that measures speed


def test_configurations_are_compared_before_they_are_timed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The third is the fastest, and its gradient is off by 3 % of the largest element."""
    configs = [Config(16, 16, warps, 1) for warps in (1, 2, 4, 8)]
    results = {
        1: torch.tensor([1.0, 100.0]),
        2: torch.tensor([1.0, 101.0]),
        4: torch.tensor([4.0, 100.0]),
    }
    seconds = iter((0.3, 0.2))

    def run(config: Config) -> tuple[torch.Tensor, ...]:
        if config.warps == 8:
            raise RuntimeError("no such instruction")
        return (results[config.warps],)

    def measure(call: Callable[[], object]) -> float:
        call()
        return next(seconds)

    assert gpu_attention.fastest(configs, run, math.inf, measure) == configs[1]
    left_out = capsys.readouterr().out.splitlines()
    assert ["warps=4" in left_out[0], "warps=8" in left_out[1]] == [True, True]
    assert "another result than the first configuration" in left_out[0]
    assert "no such instruction" in left_out[1]
    assert gpu_attention.fastest(configs[3:], run, math.inf, measure) is None


# the step that grades


def test_each_mistake_is_one_exchange_in_the_answer_key(tmp_path: Path) -> None:
    gpu_grade.submissions(tmp_path)
    key = json.loads((tmp_path / "answer_key.ipynb").read_text())["cells"]
    for student, (_, new) in gpu_grade.MISTAKES.items():
        cells = json.loads((tmp_path / f"{student}.ipynb").read_text())["cells"]
        (changed,) = [
            mine for mine, other in zip(cells, key, strict=True) if mine != other
        ]
        assert changed["id"] == "question-triton_attention"
        assert new in changed["source"]


def row(lost: dict[str, float], isolation: str = "strict+cuda") -> dict[str, Any]:
    return {"lost": lost, "isolation": isolation}


def test_what_is_not_as_it_should_be_is_named() -> None:
    lost = {"triton_attention": 2.0}
    good = {
        "answer_key": row({}),
        **{student: row(lost) for student in gpu_grade.MISTAKES},
    }
    assert gpu_grade.problems(good, "cuda") == []
    bad = {
        "answer_key": row({"add_bias": 1.0}),
        "products_in_tf32": row({}),
        "keys_beyond_the_end": row({"add_bias": 1.0, **lost}, "strict"),
    }
    assert gpu_grade.problems(bad, "cuda") == [
        "top_left_causal: not graded",
        "answer_key: lost {'add_bias': 1.0}",
        "products_in_tf32: lost {}, and should lose points of triton_attention alone",
        "keys_beyond_the_end: lost {'add_bias': 1.0, 'triton_attention': 2.0}, and should "
        "lose points of "
        "triton_attention alone",
        "keys_beyond_the_end: graded behind strict, not on the device",
    ]
    dry = {
        student: row(
            {} if student in ("answer_key", "products_in_tf32") else lost, "strict"
        )
        for student in good
    }
    assert gpu_grade.problems(dry, "cpu") == []
