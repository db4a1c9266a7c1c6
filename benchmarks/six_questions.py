"""What every tool of the benchmark grades: six questions on attention, 36 checks, ten submissions
that differ.

The checks are written once. `{f}` is where the function comes from: `student.` in a hidden suite,
nothing in a notebook that tests itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

IMPORTS = "import math\n\nimport torch\n"

ANSWERS = {
    "softmax": (
        "def softmax(z):\n    e = torch.exp(z - z.amax(-1, keepdim=True))\n    return e / "
        "e.sum(-1, keepdim=True)\n"
    ),
    "scores": "def scores(q, k):\n    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])\n",
    "causal_mask": "def causal_mask(n):\n    return torch.ones(n, n, dtype=torch.bool).tril()\n",
    "attention": (
        "def attention(q, k, v, mask=None):\n    s = scores(q, k)\n    if mask is not None:\n"
        "        s = s.masked_fill(~mask, float('-inf'))\n    return softmax(s) @ v\n"
    ),
    "split_heads": (
        "def split_heads(x, h):\n    b, n, d = x.shape\n    return x.view(b, n, h, d // "
        "h).transpose(1, 2)\n"
    ),
    "layer_norm": (
        "def layer_norm(x, eps=1e-5):\n    c = x - x.mean(-1, keepdim=True)\n"
        "    return c / torch.sqrt((c * c).mean(-1, keepdim=True) + eps)\n"
    ),
}
"""The answer key, a question each."""

MISTAKES = {
    "softmax": ANSWERS["softmax"].replace("-1", "0"),
    "scores": "def scores(q, k):\n    return q @ k.transpose(-2, -1)\n",
    "causal_mask": ANSWERS["causal_mask"].replace("tril", "triu"),
    "attention": ANSWERS["attention"].replace("~mask", "mask"),
    "split_heads": "def split_heads(x, h):\n    b, n, d = x.shape\n    return x.reshape(b, h, "
    "n, d // h)\n",
    "layer_norm": ANSWERS["layer_norm"].replace(
        ".mean(-1, keepdim=True) + eps", ".sum(-1, keepdim=True) + eps"
    ),
}
"""One wrong answer to each question: six of the ten submissions, and the known mistakes of the
hidden suite.
"""

_X = "x = torch.randn({shape}, dtype=torch.float64)\n"
_QKV = "q, k, v = (torch.randn({n}, {d}, dtype=torch.float64) for _ in range(3))\n"
_SDPA = "torch.nn.functional.scaled_dot_product_attention"

CHECKS: dict[str, list[str]] = {
    "softmax": [
        _X.format(shape=shape)
        + "assert torch.allclose({f}softmax(x), torch.softmax(x, -1))"
        for shape in ("4, 7", "1, 9", "2, 3, 5", "16, 16")
    ]
    + [
        "x = torch.randn(4, 7, dtype=torch.float64) + 1e4\nassert "
        "bool({f}softmax(x).isfinite().all())",
        _X.format(shape="5, 6")
        + "assert torch.allclose({f}softmax(x).sum(-1), torch.ones(5, "
        "dtype=torch.float64))",
    ],
    "scores": [
        _QKV.format(n=n, d=d)
        + "assert torch.allclose({f}scores(q, k), q @ k.T / "
        + str(d)
        + "**0.5)"
        for n, d in ((3, 4), (1, 8), (7, 2), (16, 32), (5, 5), (2, 64))
    ],
    "causal_mask": [
        "n = " + str(n) + "\nassert torch.equal({f}causal_mask(n), torch.ones(n, n, "
        "dtype=torch.bool).tril())"
        for n in (2, 3, 4, 8, 16, 33)
    ],
    "attention": [
        _QKV.format(n=n, d=d)
        + "assert torch.allclose({f}attention(q, k, v), "
        + _SDPA
        + "(q, k, v))"
        for n, d in ((3, 4), (6, 8), (16, 32))
    ]
    + [
        _QKV.format(n=n, d=d)
        + "mask = torch.ones(len(q), len(q), dtype=torch.bool).tril()\n"
        + "assert torch.allclose({f}attention(q, k, v, mask), "
        + _SDPA
        + "(q, k, v, "
        "is_causal=True))"
        for n, d in ((3, 4), (6, 8), (16, 32))
    ],
    "split_heads": [
        _X.format(shape=f"{b}, {n}, {d}")
        + f"want = x.view({b}, {n}, {h}, {d // h}).transpose(1, 2)\n"
        + "assert torch.equal({f}split_heads(x, "
        + str(h)
        + "), want)"
        for b, n, d, h in (
            (1, 3, 4, 2),
            (2, 3, 8, 2),
            (2, 5, 8, 4),
            (3, 4, 12, 3),
            (1, 7, 16, 8),
            (2, 2, 6, 3),
        )
    ],
    "layer_norm": [
        _X.format(shape=shape)
        + "assert torch.allclose({f}layer_norm(x), torch.nn.functional.layer_norm(x, x.shape[-1:]))"
        for shape in ("4, 7", "1, 9", "2, 3, 5", "16, 16", "8, 2", "3, 64")
    ],
}


def submissions(*, right: bool = False) -> list[dict[str, str]]:
    """Ten: the key, the six mistakes, another right answer, one that raises, and one that left a
    question out; of these the two `right` ones alone, where asked.
    """
    other = {"softmax": "def softmax(z):\n    return torch.softmax(z, -1)\n"}
    raises = {
        "attention": "def attention(q, k, v, mask=None):\n    return scores(q, k) @ w\n"
    }
    stub = {
        "layer_norm": "def layer_norm(x, eps=1e-5):\n    raise NotImplementedError\n"
    }
    wrong = [{name: text} for name, text in MISTAKES.items()]
    return [
        {**ANSWERS, **change}
        for change in (({}, other) if right else ({}, *wrong, other, raises, stub))
    ]


def checks_of(question: str, where: str, *, seeded: bool = True) -> list[str]:
    """The checks of a question as statements; `where` is put before the function's name.

    `seeded`: each draws its own numbers. A hidden suite is seeded by the kit.
    """
    checks = (text.replace("{f}", where) for text in CHECKS[question])
    return [
        f"torch.manual_seed({n})\n{check}" if seeded else check
        for n, check in enumerate(checks)
    ]


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


# the kit


def write_kit_course(root: Path) -> None:
    """The source notebook and the hidden suite; `autograder build questions` makes the rest."""
    cells = [
        "# ---\n# jupyter:\n#   jupytext:\n#     text_representation:\n#       format_name: "
        "percent\n# ---\n"
    ]
    cells.append(f'# %% given="imports"\n{IMPORTS}')
    for name, answer in ANSWERS.items():
        head, _, body = answer.partition("\n")
        cells.append(
            f'# %% question="{name}"\n{head}\n    """{name}."""\n    ### BEGIN SOLUTION\n{body}  '
            "  ### END SOLUTION\n"
        )
        cells.append(f'# %% check="{name}"\nassert callable({name})\n')
    source, suite = (
        root / "source" / "questions",
        root / "tests" / "hidden" / "questions",
    )
    for folder in (source, suite):
        folder.mkdir(parents=True)
    (root / "course.toml").write_text(
        '[course]\nname = "Six questions"\n[totals]\nassignment_points = 0\n'
    )
    marks = (
        "points(worth): worth\n    uses(*questions): builds on\n"
        "    forbid(*names): may not call"
    )
    (suite.parent / "pytest.ini").write_text(f"[pytest]\nmarkers =\n    {marks}\n")
    (source / "questions.py").write_text("\n".join(cells))
    for name in ANSWERS:
        tests = [
            f"@points(1)\ndef test_{n}(student):\n{indented(check)}"
            for n, check in enumerate(checks_of(name, "student.", seeded=False))
        ]
        used = (
            'pytestmark = [uses("softmax", "scores")]\n' if name == "attention" else ""
        )
        head = (
            f'"""{name}."""\n\nimport torch\n\n'
            f"from autograder.suite import points, uses\n\n{used}"
        )
        (suite / f"test_{name}.py").write_text(head + "\n\n" + "\n\n".join(tests))
    known = [
        f'@mistake("{n}", hint="Look again.")\n{t.replace(f"def {n}", f"def wrong_{n}")}'
        for n, t in MISTAKES.items()
    ]
    (suite / "mistakes.py").write_text(
        '"""Known mistakes."""\n\nimport torch\n\nfrom autograder.suite import mistake\n\n\n'
        + "\n\n".join(known)
    )


def kit_submissions(solution: Path, handed_in: Sequence[dict[str, str]]) -> list[str]:
    """The notebooks of these submissions, made from the built answer key."""
    texts = []
    for answers in handed_in:
        notebook = json.loads(solution.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            tag = cell["metadata"].get("attention_kit", {})
            if tag.get("role") == "question":
                name = next(
                    n for n in ANSWERS if f"def {n}(" in "".join(cell["source"])
                )
                cell["source"] = answers[name]
        texts.append(json.dumps(notebook))
    return texts


# the peers


def plain_notebook(answers: dict[str, str], *, grades: bool) -> dict[str, Any]:
    """A notebook without the kit's tags: for nbgrader with a grade cell for each question, all its
    checks in it.
    """
    cells = [_code("imports", IMPORTS, None)]
    for name, answer in answers.items():
        cells.append(
            _code(name, answer, {"grade": False, "solution": True, "locked": False})
        )
        if grades:
            checks = "\n".join(checks_of(name, ""))
            mark = {
                "grade": True,
                "solution": False,
                "locked": True,
                "points": len(CHECKS[name]),
            }
            cells.append(_code(f"check-{name}", checks, mark))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _code(name: str, source: str, mark: dict[str, Any] | None) -> dict[str, Any]:
    meta = (
        {"nbgrader": {"grade_id": name, "schema_version": 3, "task": False, **mark}}
        if mark
        else {}
    )
    return {
        "cell_type": "code",
        "id": name.replace("_", "-"),
        "metadata": meta,
        "source": source,
        "execution_count": None,
        "outputs": [],
    }


def otter_test(question: str) -> str:
    """A test file in otter-grader's exception format."""
    cases = [
        f"@test_case(points=1)\ndef test_{n}(env):\n    {question} = "
        f"env['{question}']\n{indented(check)}"
        for n, check in enumerate(checks_of(question, ""))
    ]
    head = "import torch\nfrom otter.test_files import test_case\n\nOK_FORMAT = False\n"
    return f'{head}name = "{question}"\npoints = None\n\n' + "\n\n".join(cases)
