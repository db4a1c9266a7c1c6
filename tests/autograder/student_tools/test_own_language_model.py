"""A student trains and samples from a9's model with functions of their own from a1 to a8."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.student_tools import make_my_course

ROOT = Path(__file__).resolve().parents[3]
EARLIER = {
    "causal_mask",
    "embed",
    "filtered_probabilities",
    "KVCache",
    "layer_norm",
    "lm_loss",
    "masked_softmax",
    "merge_heads",
    "split_heads",
}
"""Those that the notebook names; a class counts where its `append` is called."""
WRITTEN_IN_A9 = {
    "adamw_step",
    "bpe_decode",
    "bpe_encode",
    "clip_gradients",
    "gelu",
    "language_model",
    "learning_rate",
    "perplexity",
    "sample",
    "sample_windows",
    "train_byte_bpe",
}
TRAIN_AND_SAMPLE = """
merges = train_byte_bpe(as_bytes("to be or not to be, that is to be"), 4)
ids = bpe_encode(as_bytes("to be or not to be, that is to be"), merges)
config = LMConfig(260, d_model=8, num_layers=2, num_heads=2, d_ff=16, context_length=12)
params, state, losses = random_params(config), None, []
for step in range(20):
    inputs, targets = sample_windows(ids, 4, 6, seed=step)
    leaves = [tensor.detach().requires_grad_() for tensor in list_tensors(params)]
    loss = next_token_loss(language_model(inputs, with_tensors(params, leaves), config), targets)
    gradients, _ = clip_gradients(list(torch.autograd.grad(loss, leaves)), max_norm=1.0)
    rate = learning_rate(step, warmup=2, total=20, peak=0.03)
    stepped, state = adamw_step([leaf.detach() for leaf in leaves], gradients, state, rate)
    params = with_tensors(params, stepped)
    losses.append(loss.item())
assert losses[-1] < losses[0] - 1, losses
assert 1 < perplexity(params, ids, config, 12) < 260
text = sample(params, ids[None, :3], 6, config, seed=1)
assert as_text(bpe_decode(text[0], merges)).startswith(as_text(bpe_decode(ids[:3], merges)))
"""
PROGRAM = """
import json, sys
cells, program, earlier = json.loads(sys.stdin.read())
names = {}
for number, cell in enumerate(cells):
    exec(compile(cell, f"<a9, cell {number}>", "exec"), names)
called = set()

def watch(frame, event, argument):
    code = frame.f_code
    if event == "call" and "/my_course/a" in code.co_filename and "_library" not in code.co_filename:
        called.add("KVCache" if code.co_name == "append" else code.co_name)
    if event == "call" and code.co_filename.startswith("<a9, cell"):
        called.add(code.co_name)

sys.setprofile(watch)
exec(compile(program, "<train and sample>", "exec"), names)
sys.setprofile(None)
print(json.dumps(sorted(called & set(earlier))))
"""


def test_twenty_functions_of_their_own_train_and_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # those up to a9
    solutions = sorted((ROOT / "solutions").glob("a[1-9]_*"))
    for folder in solutions:
        shutil.copytree(
            folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("data")
        )
    place = tmp_path / "a9_language_model"
    paths = [
        tmp_path / folder.name / f"{folder.name}.ipynb" for folder in solutions[:-1]
    ]
    assert len(paths) == 8
    assert (
        make_my_course.main([str(path) for path in paths], place / "make_my_course.py")
        == 0
    )
    lines = [
        line[4:]
        for line in capsys.readouterr().out.split("\n")
        if line.startswith("    ")
    ]
    assert [line.split(" import ")[0] for line in lines] == [
        "from my_course.a9_language_model_library"
    ]
    notebook = json.loads(
        (place / "a9_language_model.ipynb").read_text(encoding="utf-8")
    )
    cells: dict[str, list[str]] = {"given": [], "question": []}
    for cell in notebook["cells"]:
        role = cell["metadata"].get("attention_kit", {}).get("role")
        if role in cells:
            cells[role].append("".join(cell["source"]))
    parts = [*cells["given"], *lines, *cells["question"]]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=place,
        input=json.dumps([parts, TRAIN_AND_SAMPLE, sorted(EARLIER | WRITTEN_IN_A9)]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == EARLIER | WRITTEN_IN_A9


def test_the_notebook_names_the_functions_from_before() -> None:
    source = ROOT / "source" / "a9_language_model" / "a9_language_model.py"
    table = [
        line
        for line in source.read_text(encoding="utf-8").splitlines()
        if "| `" in line
    ]
    for name in EARLIER:
        assert any(f"`{name}`" in line for line in table), name
