"""a7's answer key and three known mistakes, graded with --device: what they score, behind which
walls, how fast.

    python benchmarks/gpu_grade.py --device cuda

The answer key must lose nothing, and each mistake must lose points of `triton_attention` and of
nothing else. One of the three is right in the interpreter and wrong on a GPU only: products in
TF32. Where no walls for a GPU stand, all four are graded without walls: they are our own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAME = "a7_tiled_attention"
QUESTION = "triton_attention"
ON_A_GPU_ONLY = "products_in_tf32"
MISTAKES = {  # by student: what is exchanged in the answer key
    ON_A_GPU_ONLY: ('input_precision="ieee"', 'input_precision="tf32"'),
    "keys_beyond_the_end": (
        "seen = columns[None, :] < N_k",
        "seen = columns[None, :] >= 0",
    ),
    "top_left_causal": ("rows[:, None] + (N_k - N_q)", "rows[:, None]"),
}


def submissions(folder: Path) -> None:
    """One notebook a student."""
    text = (ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    (folder / "answer_key.ipynb").write_text(text, encoding="utf-8")
    for student, (old, new) in MISTAKES.items():
        notebook = json.loads(text)
        cell = next(
            cell for cell in notebook["cells"] if cell["id"] == f"question-{QUESTION}"
        )
        source = "".join(cell["source"])
        if old not in source:
            raise SystemExit(f"{student}: the answer key has no `{old}` any more")
        cell["source"] = source.replace(old, new)
        (folder / f"{student}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


def graded(device: str, folder: Path, isolation: str) -> dict[str, Any]:
    """What each student got: points, lost by question, walls, the first message, speeds; empty
    where these walls do not stand.
    """
    out = folder / "results"
    call = [
        sys.executable,
        "-c",
        "from autograder.cli.commands import main; main()",
        "grade",
        NAME,
        str(folder / "submitted"),
        "--device",
        device,
        "--out",
        str(out),
        "--workers",
        "1",
        "--isolation",
        isolation,
    ]
    finished = subprocess.run(call, cwd=ROOT, check=False)
    if finished.returncode not in (0, 1):
        return {}
    timing = json.loads((out / f"{NAME}.timing.json").read_text(encoding="utf-8"))[
        "submissions"
    ]
    times = {entry["student"]: entry for entry in timing}
    rows = {}
    for path in sorted((out / NAME).glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        lost = {
            q["name"]: q["max_score"] - q["score"]
            for q in result["questions"]
            if q["score"] < q["max_score"]
        }
        messages = [
            test["message"]
            for q in result["questions"]
            for test in q["tests"]
            if test["outcome"] != "passed"
        ]
        rows[path.stem] = {
            "score": result["score"],
            "max_score": result["max_score"],
            "lost": lost,
            "isolation": result["isolation"],
            "message": messages[0][:300] if messages else "",
            "timing": times.get(path.stem),
        }
    return rows


def problems(rows: dict[str, Any], device: str) -> list[str]:
    """What is not as it should be."""
    found = [
        f"{student}: not graded"
        for student in ("answer_key", *MISTAKES)
        if student not in rows
    ]
    for student, row in rows.items():
        right = student == "answer_key" or (
            student == ON_A_GPU_ONLY and device == "cpu"
        )
        if right and row["lost"]:
            found.append(f"{student}: lost {row['lost']}")
        if not right and row["lost"].keys() != {QUESTION}:
            found.append(
                f"{student}: lost {row['lost']}, and should lose points of {QUESTION} alone"
            )
        if device != "cpu" and not row["isolation"].endswith(f"+{device}"):
            found.append(
                f"{student}: graded behind {row['isolation']}, not on the device"
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpu-grade-") as scratch:
        (folder := Path(scratch) / "submitted").mkdir()
        submissions(folder)
        for isolation in ("auto", "none"):
            if rows := graded(asked.device, Path(scratch), isolation):
                break
    found = problems(rows, asked.device)
    for student, row in rows.items():
        print(
            f"{student}: {row['score']} of {row['max_score']}, {row['isolation']}, lost "
            f"{row['lost']}"
        )
    print("\n".join(found) or "as it should be")
    if asked.json:
        asked.json.write_text(
            json.dumps({"submissions": rows, "problems": found}, indent=1),
            encoding="utf-8",
        )
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
