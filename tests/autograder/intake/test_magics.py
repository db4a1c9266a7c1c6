"""IPython syntax becomes plain Python on the same lines."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from autograder.intake.magics import strip_magics


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("%matplotlib inline\nx = 1", "# %matplotlib inline\nx = 1"),
        ("!pip install einops", "# !pip install einops"),
        ("!!ls", "# !!ls"),
        ("%cd /tmp", "# %cd /tmp"),
        (
            "%load_ext autoreload\n%autoreload 2",
            "# %load_ext autoreload\n# %autoreload 2",
        ),
        ("%timeit f(x)", "# %timeit f(x)"),
        ("?name", "# ?name"),
        ("name?", "# name?"),
        ("torch.nn.Linear??", "# torch.nn.Linear??"),
        ("%timeit?", "# %timeit?"),
        (
            "for i in x:\n    %timeit f(i)\n    g(i)",
            "for i in x:\n    pass  # %timeit f(i)\n    g(i)",
        ),
        ("if ok:\n\t!ls", "if ok:\n\tpass  # !ls"),
        ("x = %timeit -o f(x)", "x = None  # %timeit -o f(x)"),
        ("files = !ls *.py", "files = None  # !ls *.py"),
        ("if ok:\n    files = !ls", "if ok:\n    files = None  # !ls"),
        ("!ls \\\n  -l\nx = 1", "# !ls \\\n#   -l\nx = 1"),
        ("files = !ls \\\n  -l\nx = 1", "files = None  # !ls \\\n#   -l\nx = 1"),
        ("get_ipython().system('ls')\nx = 1", "# get_ipython().system('ls')\nx = 1"),
        (
            "a = get_ipython().getoutput('ls')",
            "a = None  # a = get_ipython().getoutput('ls')",
        ),
        ("%%unknown option\nx = 1", "# %%unknown option\nx = 1"),
    ],
)
def test_magics_become_comments(source: str, made: str) -> None:
    plain, note = strip_magics(source)
    assert plain == made
    assert note.startswith("left out when grading: ")


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("%time f(3)", "f(3)"),
        ("y = %time f(3)", "y = f(3)"),
        ("%time y = f(\n    3)\nz = 1", "y = f(\n    3)\nz = 1"),
        ("for i in x:\n    %time f(i)", "for i in x:\n    f(i)"),
        ("%%time\ndef f():\n    return 1", "# %%time\ndef f():\n    return 1"),
        ("# mine\n%%timeit -n 1\nf()", "# mine\n# %%timeit -n 1\nf()"),
        ("\n%%capture out\nf()", "\n# %%capture out\nf()"),
    ],
)
def test_timed_code_runs(source: str, made: str) -> None:
    assert strip_magics(source) == (made, "")


@pytest.mark.parametrize(
    "name", ["bash", "html", "javascript", "writefile x.py", "latex", "sh", "!"]
)
def test_cells_of_other_languages_are_left_out_whole(name: str) -> None:
    plain, note = strip_magics(f"%%{name}\nrm -rf x\n\necho 'it''s'")
    assert all(line.startswith("#") for line in plain.split("\n"))
    assert len(plain.split("\n")) == 4
    assert note == f"not run when grading: a %%{name.split()[0]} cell is not Python"


@pytest.mark.parametrize(
    "source",
    [
        "x = 7 % 3",
        "x = (7\n% 3)",
        "x = 7 \\\n% 3",
        "f(\n    a,\n!b\n)",
        "text = '''\n%matplotlib inline\n!ls\nname?\n%%bash\n'''",
        'text = """a\n% b\n"""  # fine',
        "def f():\n    '''Is it so?\n\n    %timeit f()\n    '''\n    return 1",
        "x = 'it\\\n%s' % 3",
        "x = 'why = !ls'",
        "x = 1  # = %d, or !ls?",
        "# really?",
        "x != 3",
        "a = b if c else '?'",
        "x %= 3",
        "await f()",
        "async with g() as x:\n    pass",
        "def broken(:\n    return",
        'print("%d" % 3)',
        "print(f'{x!r}')",
        "s = r'\\'\nt = 1",
        "  # a comment, indented\ndef f():\n    return 1",
    ],
)
def test_python_is_left_alone(source: str) -> None:
    assert strip_magics(source) == (source, "")


def test_a_quote_in_a_command_does_not_open_a_string() -> None:
    assert (
        strip_magics("!echo \"it's '''\n%cd x\ny = 1")[0]
        == "# !echo \"it's '''\n# %cd x\ny = 1"
    )


def test_a_pasted_cell_loses_prompts_and_common_indentation() -> None:
    assert strip_magics("  x = 1\n  y = 2")[0] == "x = 1\ny = 2"
    assert (
        strip_magics(">>> def f():\n...     return 1\n>>> f()")[0]
        == "def f():\n    return 1\nf()"
    )


def test_the_note_names_lines() -> None:
    note = strip_magics("x = 1\n!pip install a\n\n%cd b")[1]
    assert note == "left out when grading: !pip (line 2), %cd (line 4)"


def test_the_note_is_short_however_many_magics() -> None:
    assert len(strip_magics("!ls\n" * 1000)[1]) <= 300


def test_a_magic_may_stand_before_a_future_import() -> None:
    source = strip_magics("%matplotlib inline\nfrom __future__ import annotations")[0]
    compile(source, "cell", "exec")


BITS = st.sampled_from(
    [
        "%",
        "%%",
        "!",
        "?",
        "\n",
        "\r",
        "\r\n",
        " ",
        "    ",
        "\\",
        "'",
        '"',
        "'''",
        '"""',
        "#",
        "(",
        ")",
        "=",
        "x",
        "time ",
        "timeit ",
        "bash",
        ">>> ",
        "get_ipython().run(",
        "def f():",
        "\t",
        "\x0c",
        "\u2028",
        "é",
        "\0",
    ]
)


def count_lines(source: str) -> int:
    """Lines as Python counts them: a carriage return ends one too."""
    return source.replace("\r\n", "\n").replace("\r", "\n").count("\n")


@settings(max_examples=500, deadline=None)
@given(st.lists(BITS, max_size=40).map("".join) | st.text())
@example("!ls\rimport os")
@example("x = %time \\\n\\")
def test_any_text_keeps_its_lines(source: str) -> None:
    made, note = strip_magics(source)
    assert made.count("\n") == count_lines(source)
    assert "\r" not in made
    assert "\n" not in note


@settings(max_examples=300, deadline=None)
@given(st.lists(BITS, max_size=40).map("".join))
@example(" \x0cx")
def test_what_is_valid_python_stays_as_it_is(source: str) -> None:
    """All but calls of IPython's own, which are what a notebook converted to a script has for its
    magics.
    """
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    assume("get_ipython" not in source)
    try:
        compile(source, "cell", "exec")
    except (SyntaxError, ValueError):
        return
    assert strip_magics(source) == (source, "")
