"""IPython syntax made plain Python, without IPython: a graded cell runs in an ordinary interpreter.

Works on lines, with a small scanner that knows strings, brackets and continued lines, so that a
cell that does not parse is handled too and text inside a string is never touched. Line numbers stay
the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

RUNS_BODY = frozenset({"time", "timeit", "capture", "prun", "memit", "debug"})
"""Cell magics whose body is Python of this notebook."""
OTHER_LANGUAGE = frozenset(
    {
        "!",
        "bash",
        "sh",
        "script",
        "system",
        "sx",
        "cmd",
        "perl",
        "ruby",
        "pypy",
        "python",
        "python2",
        "python3",
        "R",
    }
    | {
        "html",
        "javascript",
        "js",
        "svg",
        "latex",
        "markdown",
        "writefile",
        "file",
        "cython",
        "sql",
        "julia",
        "cuda",
    }
)
"""Cell magics whose body is no Python, or runs elsewhere: the whole cell is left out."""

_ANYTHING = re.compile(r"[%!?]|^[ \t]*>>> |^[ \t]+|get_ipython", re.MULTILINE)
_LIKELY = re.compile(r"^[ \t]*[%!?]|\?[ \t;]*$|=[ \t]*[%!]|get_ipython", re.MULTILINE)
"""Every magic has one of these, and text in a string may: where there is none, no line has to be
looked at.
"""
_MAGIC = re.compile(r"([ \t]*)(%%|%|!!|!|\?\??)[ \t]*([\w.]*)(.*)", re.DOTALL)
_HELP = re.compile(r"[ \t]*%{0,2}[A-Za-z_*][\w.*\[\]]*[ \t]*\?\??[ \t]*;?[ \t]*\Z")
_IPYTHON = re.compile(r"[ \t]*(?:(\w+)[ \t]*=[ \t]*)?get_ipython\(\)\.\w+\(")
_TOKEN = re.compile(
    r"""
    (?P<comment>\#)
  | (?P<triple>\'\'\'|\"\"\")
  | (?P<quote>['"])
  | (?P<open>[(\[{])
  | (?P<close>[)\]}])
  | (?P<assigned>(?<![=<>!:+\-*/%&|^@~])=[ \t]*(?=[%!]))
  | (?P<backslash>\\\Z)
    """,
    re.VERBOSE,
)
_STRING_END = {
    "'": re.compile(r"(?:[^'\\]|\\.)*'"),
    '"': re.compile(r'(?:[^"\\]|\\.)*"'),
    "'''": re.compile(r"(?:[^'\\]|\\.|'(?!''))*'''"),
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""'),
}


def strip_magics(source: str) -> tuple[str, str]:
    """The cell as plain Python with the same line numbers, and what was left out, "" where nothing
    was.

    Examples:
        >>> strip_magics("%matplotlib inline\\nx = 1")
        ('# %matplotlib inline\\nx = 1', 'left out when grading: %matplotlib (line 1)')
    """
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    if not _ANYTHING.search(source):
        return source, ""
    lines = _without_prompts(source.split("\n"))
    source = "\n".join(lines)
    if not _LIKELY.search(source):
        return source, ""
    first = next(
        (n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")),
        None,
    )
    if first is not None and (cell_magic := re.match(r"[ \t]*%%(!|\w+)", lines[first])):
        name = cell_magic[1]
        if name in OTHER_LANGUAGE:
            return "\n".join(
                f"# {line}" for line in lines
            ), f"not run when grading: a %%{name} cell is not Python"
    made, left_out = _Cleaner(lines).clean()
    note = "left out when grading: " + ", ".join(left_out) if left_out else ""
    return "\n".join(made), note if len(note) <= 300 else note[:299] + "…"


def _without_prompts(lines: list[str]) -> list[str]:
    """Take off what a pasted cell begins with, as Jupyter does: a common indentation, or `>>>`
    prompts.
    """
    first = next((line for line in lines if line.strip()), "")
    if re.match(r"[ \t]*>>> ", first):
        return [re.sub(r"^[ \t]*(?:>>>|\.\.\.)(?: |$)", "", line) for line in lines]
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    # A form feed begins the column anew: what stands before it is no indentation.
    is_indented = bool(indent) and not first.startswith(indent + "\f")
    return [line.removeprefix(indent) for line in lines] if is_indented else lines


@dataclass(slots=True)
class _State:
    """Where the scanner is between two lines."""

    string: str = ""  # the quotes that will end the string we are in
    depth: int = 0  # open brackets
    continued: bool = False  # the line before ended in a backslash

    @property
    def fresh(self) -> bool:
        """A statement begins here."""
        return not self.string and self.depth == 0 and not self.continued


class _Cleaner:
    """One pass over the lines of a cell."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.made: list[str] = []
        self.left_out: list[str] = []
        self.state = _State()

    def clean(self) -> tuple[list[str], list[str]]:
        while len(self.made) < len(self.lines):
            line = self.lines[len(self.made)]
            if not self.state.fresh or not self._magic(line):
                self._python(line)
        return self.made, self.left_out

    def _magic(self, line: str) -> bool:
        """Deal with a line that is a magic as a whole."""
        magic = _MAGIC.fullmatch(line)
        if magic and (magic[2] != "?" or magic[3]):
            indent, escape, name, rest = magic.groups()
            if escape == "%%":
                self._drop(line, indent, f"%%{name}", wanted=name in RUNS_BODY)
            elif (
                escape == "%"
                and name == "time"
                and rest.strip()
                and not rest.rstrip().endswith("?")
            ):
                self._python(indent + rest.strip().removeprefix("--no-raise-error").lstrip())
            else:
                self._drop(line, indent, escape + name if escape != "?" else f"?{name}")
            return True
        if _HELP.match(line):
            self._drop(line, line[: len(line) - len(line.lstrip())], line.strip())
            return True
        return bool(_IPYTHON.match(line)) and self._ipython_call(line)

    def _ipython_call(self, line: str) -> bool:
        """`get_ipython().system(...)`, which is what a notebook converted to a script has for its
        magics.
        """
        after, _ = _scan(line, _State())
        if not after.fresh:
            return False
        match = _IPYTHON.match(line)
        assert match is not None
        indent = line[: len(line) - len(line.lstrip())]
        self._drop(line, indent, "get_ipython()", value=f"{match[1]} = None" if match[1] else "")
        return True

    def _python(self, line: str) -> None:
        """Take over a line of Python; the value of `x = %magic` or `x = !command` becomes None."""
        after, assigned = _scan(line, self.state)
        if assigned is None:
            self.state = after
            self.made.append(line)
            return
        target, magic = line[:assigned], line[assigned:]
        timed = re.match(r"%[ \t]*time[ \t]+(?=\S)", magic)
        if timed:
            self.state, _ = _scan(target + magic[timed.end() :], self.state)
            self.made.append(target + magic[timed.end() :])
            return
        name = re.match(r"[%!]+[ \t]*[\w.]*", magic)
        self.state = _State()
        self._drop(magic, "", name[0] if name else magic[:1], value=target + "None")

    def _drop(
        self, line: str, indent: str, name: str, value: str = "", wanted: bool = False
    ) -> None:
        """Replace a magic by a comment, with the lines that its backslashes continue it on."""
        number = len(self.made) + 1
        body = line.lstrip(" \t")
        # In an indented block something must stand in its place; at the top a statement before
        # `from __future__` would be an error.
        start = f"{value}  # " if value else f"{indent}pass  # " if indent else "# "
        if value and not value.startswith((" ", "\t")) and indent:
            start = indent + start
        self.made.append(start + body)
        last = self.lines[number - 1]
        while last.endswith("\\") and len(self.made) < len(self.lines):
            last = self.lines[len(self.made)]
            self.made.append(f"# {last}")
        if not wanted:
            self.left_out.append(f"{name[:30]} (line {number})")


def _scan(line: str, state: _State) -> tuple[_State, int | None]:
    """The state after a line of Python, and where in it a magic is assigned."""
    string, depth, at = state.string, state.depth, 0
    while True:
        if string:
            end = _STRING_END[string].match(line, at)
            if end is None:
                continues = len(string) == 3 or _ends_in_backslash(line)
                return _State(string if continues else "", depth, False), None
            string, at = "", end.end()
        token = _TOKEN.search(line, at)
        if token is None or token.lastgroup == "comment":
            return _State("", depth, False), None
        at = token.end()
        match token.lastgroup:
            case "triple" | "quote":
                string = token[0]
            case "open":
                depth += 1
            case "close":
                depth = max(0, depth - 1)
            case "assigned" if depth == 0:
                return _State("", depth, False), at
            case "backslash":
                return _State("", depth, True), None


def _ends_in_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
