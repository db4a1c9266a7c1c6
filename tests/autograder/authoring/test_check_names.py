"""Names that only a check or a demo defines, where grading would miss them: the build refuses
them.
"""

from __future__ import annotations

import pytest
from tiny_course import TINY, suite_question

from autograder.authoring.build import build_assignment
from autograder.authoring.check_names import find_misplaced_names
from autograder.authoring.source_notebook import read_source
from autograder.basics.definitions import top_level_names, used_globals
from autograder.basics.errors import BadSource
from autograder.course import Assignment, Course

CHECK = "assert double(3) == 6"
DEMO = "shown = half(double(5))"
TEXT = "# # Doubling"
RETURN = "    return doubled_by_addition"


def problems(tiny: Assignment, *changes: tuple[str, str]) -> list[str]:
    """What is said of the tiny source with these texts replaced."""
    source = TINY
    for old, new in changes:
        assert source.count(old) == 1
        source = source.replace(old, new)
    tiny.source.write_text(source, encoding="utf-8")
    return list(find_misplaced_names(read_source(tiny)))


def helper(name: str) -> str:
    return f"def {name}(x):\n    return x"


@pytest.mark.parametrize(
    "words",
    [
        "Your answer may call `twice`.",
        "Call `twice(x)` to see it.",
        "Look at twice(3).",
        r"$$\text{twice} = 2x$$",
        r"$\operatorname{twice}(x)$",
    ],
)
@pytest.mark.parametrize("where", [CHECK, DEMO])
def test_a_text_that_names_a_function_of_a_check_or_demo_is_refused(
    tiny: Assignment, where: str, words: str
) -> None:
    (problem,) = problems(
        tiny, (where, f"{helper('twice')}\n{where}"), (TEXT, f"{TEXT}\n#\n# {words}")
    )
    kind = "check double" if where == CHECK else "demo both"
    assert (
        f"the {kind} defines twice, which the text cell at source/tiny/tiny.py:8 names; "
        "grading runs no" in problem
    )


@pytest.mark.parametrize(
    "words",
    ["Twice as much.", "twice", "`x` becomes `twice_x`.", "It is `math.twice(x)`."],
)
def test_a_word_is_no_name(tiny: Assignment, words: str) -> None:
    assert (
        problems(
            tiny,
            (CHECK, f"{helper('twice')}\n{CHECK}"),
            (TEXT, f"{TEXT}\n#\n# {words}"),
        )
        == []
    )


def test_an_answer_that_calls_a_function_of_its_check_is_refused(
    tiny: Assignment,
) -> None:
    (problem,) = problems(
        tiny,
        (CHECK, f"{helper('twice')}\n{CHECK}"),
        (RETURN, "    return twice(x) + x"),
    )
    assert "the check double defines twice, which the question cell at" in problem
    assert " uses; " in problem


def test_a_variable_and_an_import_count_where_code_needs_them(tiny: Assignment) -> None:
    (problem,) = problems(
        tiny, (CHECK, f"import os\n{CHECK}"), (RETURN, "    return os.sep and x")
    )
    assert "defines os, which the question cell" in problem
    (problem,) = problems(
        tiny, (DEMO, f"factor = 2\n{DEMO}"), (RETURN, "    return factor * x")
    )
    assert "the demo both defines factor, which the question cell" in problem


def test_a_docstring_and_a_comment_may_not_name_it_either(tiny: Assignment) -> None:
    for old, new in (
        ('"""Twice x."""', '"""Twice x, as `twice` says."""'),
        (RETURN, f"{RETURN}  # as twice(x)"),
    ):
        (problem,) = problems(tiny, (CHECK, f"{helper('twice')}\n{CHECK}"), (old, new))
        assert "the check double defines twice, which the question cell at" in problem
        assert " names; " in problem


def test_what_a_given_cell_defines_may_be_named_and_called(tiny: Assignment) -> None:
    changes = (
        ("import math", f"import math\n{helper('twice')}"),
        (CHECK, f"{helper('twice')}\n{CHECK}"),
        (TEXT, f"{TEXT}\n#\n# Call `twice`."),
        (RETURN, "    return twice(x)"),
    )
    assert problems(tiny, *changes) == []


def test_variables_of_checks_may_share_the_names_of_arguments(tiny: Assignment) -> None:
    assert (
        problems(
            tiny, (CHECK, f"x = 3\n{CHECK}"), (TEXT, f"{TEXT}\n#\n# `x` is a number.")
        )
        == []
    )


def test_the_build_refuses_it(course: Course, tiny: Assignment) -> None:
    problems(
        tiny,
        (CHECK, f"{helper('twice')}\n{CHECK}"),
        (TEXT, f"{TEXT}\n#\n# Call `twice`."),
    )
    with pytest.raises(BadSource, match="the check double defines twice"):
        build_assignment(
            course, tiny, {"double": suite_question(50.0), "half": suite_question(45.0)}
        )


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("a = 1\nb = a + c", {"c"}),
        ("def f(x):\n    y = x\n    return g(y)", {"g"}),
        ("def f(x):\n    return [h(i) for i in x if i > k]", {"h", "k"}),
        (
            "class A:\n    n = 3\n    m = n + o\n    def f(self):\n        return p",
            {"o", "p"},
        ),
        ("import torch\ndef f():\n    return torch.ones(q)", {"q"}),
        ("f = lambda x: x + r", {"r"}),
        ("s = await t", {"t"}),
    ],
)
def test_the_globals_that_a_cell_needs(source: str, used: set[str]) -> None:
    builtins = {"__name__", "__module__", "__qualname__"}
    assert used_globals(source) - builtins == used


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (
            "def f(x):\n    y = x\nclass A:\n    b = 1\nasync def g(): pass",
            {"f", "A", "g"},
        ),
        ("f = g\nh: int = 1\ni += 1\n(j, *k), m[0] = 1, 2", {"f", "h", "i", "j", "k"}),
        (
            "import a.b, c as d\nfrom e import f as g\nfrom h import *",
            {"a", "d", "g", "*"},
        ),
        (
            "squares = [x for x in y]\nfor z in (lambda w: w): pass\nif (v := 1): pass",
            {"squares", "z", "v"},
        ),
        (
            "match p:\n    case [q, *r]: pass\n    case A(b=s) as t: pass",
            {"q", "r", "s", "t"},
        ),
    ],
)
def test_the_names_that_a_cell_defines(source: str, names: set[str]) -> None:
    assert top_level_names(source) == names
