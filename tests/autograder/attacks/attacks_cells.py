"""Hostile structure: cells, metadata and the notebook file itself."""

from __future__ import annotations

import json
from typing import Any

from attack import ANSWERS, Attack, code_cell, notebook, question_cell, whole

_ZEROS = "def softmax(z, dim=-1):\n    return torch.zeros_like(z)\n"
_RIGHT = notebook(ANSWERS)


def _with(*cells: Any, **changes: Any) -> dict[str, Any]:
    return {**_RIGHT, "cells": [*_RIGHT["cells"], *cells], **changes}


def _given(name: str, source: str) -> dict[str, Any]:
    meta = {
        "attention_kit": {"role": "given", "name": name},
        "nbgrader": {"grade_id": name, "locked": True, "solution": False},
    }
    return code_cell(source, meta)


def _check(name: str, source: str, points: float) -> dict[str, Any]:
    grading = {
        "grade_id": f"check_{name}",
        "grade": True,
        "points": points,
        "locked": False,
        "solution": False,
    }
    return code_cell(
        source, {"attention_kit": {"role": "check", "name": name}, "nbgrader": grading}
    )


def _format_3() -> dict[str, Any]:
    cells = [
        {
            "cell_type": "code",
            "input": cell["source"],
            "language": "python",
            "metadata": cell["metadata"],
            "outputs": [],
        }
        for cell in _RIGHT["cells"]
    ]
    return {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {},
        "worksheets": [{"cells": cells}],
    }


ATTACKS = [
    whole("every_cell_deleted", notebook({}), ungraded=True),
    whole("the_tests_gone", notebook({"softmax": _ZEROS}), loses=12.0),
    whole(
        "a_duplicated_question", _with(question_cell("softmax", _ZEROS)), may_lose=True
    ),
    whole(
        "the_question_ten_times",
        _with(*(question_cell("softmax", _ZEROS) for _ in range(10))),
        may_lose=True,
    ),
    whole("cells_in_reverse_order", {**_RIGHT, "cells": _RIGHT["cells"][::-1]}),
    whole(
        "all_in_one_cell",
        notebook({"softmax": "\n".join(ANSWERS.values())}),
        may_lose=True,
    ),
    whole(
        "names_exchanged",
        notebook(
            {
                "softmax": ANSWERS["total"],
                "total": ANSWERS["softmax"],
                "attention": ANSWERS["meter"],
                "meter": ANSWERS["attention"],
            }
        ),
        may_lose=True,
    ),
    whole(
        "no_metadata",
        {**_RIGHT, "cells": [code_cell(cell["source"]) for cell in _RIGHT["cells"]]},
        may_lose=True,
    ),
    whole(
        "points_raised",
        {
            **_RIGHT,
            "cells": [
                question_cell(name, source, points=1000, grade=True)
                for name, source in ANSWERS.items()
            ],
        },
    ),
    whole(
        "a_grade_cell_of_ones_own",
        _with(
            _check("softmax", "score = 1000", 1000.0), _check("bonus", "pass", 1000.0)
        ),
    ),
    whole(
        "a_question_of_ones_own",
        _with(question_cell("bonus", "def bonus():\n    return 1\n", points=100)),
    ),
    whole(
        "locked_cell_edited",
        {
            **_RIGHT,
            "cells": [
                _given("imports", "import math\ntorch = None\nraise SystemExit"),
                *_RIGHT["cells"],
            ],
        },
        may_lose=True,
    ),
    whole(
        "a_given_cell_of_ones_own",
        _with(_given("library", "softmax = None\n")),
        may_lose=True,
    ),
    whole(
        "another_assignments_notebook",
        {**_RIGHT, "cells": [question_cell("other", "def other():\n    pass\n")]},
        ungraded=True,
    ),
    whole("format_3", _format_3(), may_lose=True),
    whole(
        "format_4_5_with_equal_ids",
        {
            **_RIGHT,
            "nbformat_minor": 5,
            "cells": [{**cell, "id": "same"} for cell in _RIGHT["cells"]],
        },
    ),
    whole("format_of_the_future", {**_RIGHT, "nbformat": 99, "nbformat_minor": -1}),
    whole("format_that_is_text", {**_RIGHT, "nbformat": "4; rm -rf", "metadata": []}),
    whole(
        "sources_as_lists",
        {
            **_RIGHT,
            "cells": [
                question_cell(n, s.splitlines(keepends=True))
                for n, s in ANSWERS.items()
            ],
        },
    ),
    whole(
        "sources_that_are_no_text",
        {
            **_RIGHT,
            "cells": [
                question_cell(n, [1, None, {"a": s}]) for n, s in ANSWERS.items()
            ],
        },
        loses=12.0,
    ),
    whole(
        "cells_that_are_none",
        {**_RIGHT, "cells": [None, 1, "x", [], {}, *_RIGHT["cells"]]},
    ),
    whole(
        "metadata_of_every_kind",
        _with(
            {
                **code_cell("x = 1"),
                "metadata": {"nbgrader": [1], "attention_kit": "given"},
            },
            {**code_cell("y = 1"), "metadata": None},
        ),
    ),
    whole("lone_surrogates", json.dumps(_with(code_cell("x = '\udc80'"))).encode()),
    whole("null_bytes", _with(code_cell("x = 1\0\ny = 2"))),
    whole(
        "form_feeds_and_old_line_ends", _with(code_cell("x = 1\ry = 2\x0c\u2028z = 3"))
    ),
    whole("not_json", b"this is not JSON", ungraded=True),
    whole("empty_file", b"", ungraded=True),
    whole("json_of_another_kind", b"[1, 2, 3]", ungraded=True),
    whole("nested_a_million_deep", b"[" * 10**6, ungraded=True),
    whole(
        "a_million_objects", b'{"cells": [' + b"{}," * 600_000 + b"{}]}", ungraded=True
    ),
    whole(
        "outputs_over_the_limit",
        b'{"cells": [], "x": "' + b"x" * 3_000_000 + b'"}',
        ungraded=True,
    ),
    whole("ten_thousand_cells", notebook({}, ["x = 1"] * 10_000), ungraded=True),
    whole(
        "a_pickle",
        b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02ls\x94\x85\x94R\x94.",
        ungraded=True,
    ),
    whole("utf_16", b"\xff\xfe" + json.dumps(_RIGHT).encode("utf-16-le")),
    whole(
        "an_integer_of_a_million_digits",
        b'{"cells": [], "n": ' + b"9" * 1_000_000 + b"}",
        ungraded=True,
    ),
    Attack(
        "a_link_to_the_answer_key",
        link="@COURSE@/solutions/vault/vault.ipynb",
        ungraded=True,
    ),
    Attack("a_link_to_a_device", link="/dev/zero", ungraded=True),
    Attack("a_link_to_itself", link="a_link_to_itself.ipynb", ungraded=True),
    Attack("a_pipe", link="pipe:", ungraded=True),
]
