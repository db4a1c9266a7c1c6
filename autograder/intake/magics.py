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
    [
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
    ]
)
"""Cell magics whose body is no Python, or runs in another process: the whole cell is left out."""

_LIKELY = re.compile(r"^[ \t]*[%!?]|\?[ \t;]*$|=[ \t]*[%!]|get_ipython", re.MULTILINE)
"""Every magic matches this, and so may text in a string; a cell without a match has no magic."""
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
    """The cell as plain Python with the same line numbers, and a note of the magics that were left
    out, "" for none.

    Examples:
        >>> strip_magics("%matplotlib inline\\nx = 1")
        ('# %matplotlib inline\\nx = 1', 'left out when grading: %matplotlib (line 1)')
    """
    lines = _without_prompts(
        source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    )
    source = "\n".join(lines)
    if not _LIKELY.search(source):
        return source, ""
    cell_magic = re.match(r"[ \t]*%%(!|\w+)", _first_code_line(lines))
    if cell_magic and cell_magic[1] in OTHER_LANGUAGE:
        comments = "\n".join(f"# {line}" for line in lines)
        return comments, f"not run when grading: a %%{cell_magic[1]} cell is not Python"
    cleaner = _Cleaner(lines)
    cleaner.clean()
    note = ""
    if cleaner.left_out:
        note = f"left out when grading: {', '.join(cleaner.left_out)}"
    return "\n".join(cleaner.output), note if len(note) <= 300 else note[:299] + "…"


def _first_code_line(lines: list[str]) -> str:
    code = (
        line for line in lines if line.strip() and not line.lstrip().startswith("#")
    )
    return next(code, "")


def _without_prompts(lines: list[str]) -> list[str]:
    """Remove prompts from a pasted cell, as Jupyter does: a common indentation, or `>>>`."""
    first = next((line for line in lines if line.strip()), "")
    if re.match(r"[ \t]*>>> ", first):
        return [re.sub(r"^[ \t]*(?:>>>|\.\.\.)(?: |$)", "", line) for line in lines]
    first = _first_code_line(lines)
    indent = _indentation(first)
    # A form feed begins the column anew: spaces before it are no indentation.
    if not indent or first.startswith(indent + "\f"):
        return lines
    return [line.removeprefix(indent) for line in lines]


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


@dataclass(slots=True)
class _State:
    """The scanner's state between two lines.

    Attributes:
        string: the quotes that will end the open string, "" outside a string.
        depth: how many brackets are open.
        continued: whether the line before ended in a backslash.
    """

    string: str = ""
    depth: int = 0
    continued: bool = False

    @property
    def starts_statement(self) -> bool:
        """Whether a statement begins here."""
        return not self.string and self.depth == 0 and not self.continued


class _Cleaner:
    """One pass over the lines of a cell."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.output: list[str] = []
        self.left_out: list[str] = []
        self.state = _State()

    def clean(self) -> None:
        while len(self.output) < len(self.lines):
            line = self.lines[len(self.output)]
            if not (self.state.starts_statement and self._replace_magic(line)):
                self._copy_python(line)

    def _replace_magic(self, line: str) -> bool:
        """Replace a line that is a magic as a whole; False for any other line."""
        magic = _MAGIC.fullmatch(line)
        if magic and (magic[2] != "?" or magic[3]):
            indent, escape, name, arguments = magic.groups()
            statement = arguments.strip()
            if (
                escape == "%"
                and name == "time"
                and statement
                and not statement.endswith("?")
            ):
                statement = statement.removeprefix("--no-raise-error").lstrip()
                self._copy_python(indent + statement)
                return True
            runs_body = escape == "%%" and name in RUNS_BODY
            self._comment_out(
                line,
                f"{escape}{name}",
                is_noted=not runs_body,
            )
        elif _HELP.match(line):
            self._comment_out(line, line.strip())
        else:
            return self._replace_ipython_call(line)
        return True

    def _replace_ipython_call(self, line: str) -> bool:
        """Replace `get_ipython().system(...)`, the form of a magic in a notebook that was converted
        to a script.
        """
        call = _IPYTHON.match(line)
        if call is None:
            return False
        state, _ = _scan(line, _State())
        if not state.starts_statement:
            return False
        value = f"{_indentation(line)}{call[1]} = None" if call[1] else ""
        self._comment_out(line, "get_ipython()", value)
        return True

    def _copy_python(self, line: str) -> None:
        """Copy a line of Python; the value of `x = %magic` or `x = !command` becomes None."""
        state, assigned = _scan(line, self.state)
        if assigned is None:
            self.state = state
            self.output.append(line)
            return
        target = line[:assigned]
        magic = line[assigned:]
        if timed := re.match(r"%[ \t]*time[ \t]+(?=\S)", magic):
            statement = target + magic[timed.end() :]
            self.state, _ = _scan(statement, self.state)
            self.output.append(statement)
            return
        name = re.match(r"[%!]+[ \t]*[\w.]*", magic)
        self.state = _State()
        self._comment_out(
            magic,
            name[0] if name else magic[:1],
            f"{target}None",
        )

    def _comment_out(
        self,
        line: str,
        name: str,
        value: str = "",
        *,
        is_noted: bool = True,
    ) -> None:
        """Replace a magic by a comment, and the lines on which backslashes continue it.

        Args:
            value: the statement that stands for an assigned magic.
        """
        if is_noted:
            self.left_out.append(f"{name[:30]} (line {len(self.output) + 1})")
        continued = self.lines[len(self.output)]
        indent = _indentation(line)
        # An indented block needs a statement; at the top a statement before `from __future__` would
        # be an error.
        if value:
            comment = f"{value}  # "
        else:
            comment = f"{indent}pass  # " if indent else "# "
        self.output.append(comment + line.lstrip(" \t"))
        while continued.endswith("\\") and len(self.output) < len(self.lines):
            continued = self.lines[len(self.output)]
            self.output.append(f"# {continued}")


def _scan(line: str, state: _State) -> tuple[_State, int | None]:
    """The state after a line of Python, and the column at which a magic is assigned, or None."""
    string = state.string
    depth = state.depth
    column = 0
    while True:
        if string:
            end = _STRING_END[string].match(line, column)
            if end is None:
                continues = len(string) == 3 or _ends_in_backslash(line)
                return _State(string if continues else "", depth), None
            string = ""
            column = end.end()
        token = _TOKEN.search(line, column)
        if token is None or token.lastgroup == "comment":
            return _State("", depth), None
        column = token.end()
        match token.lastgroup:
            case "triple" | "quote":
                string = token[0]
            case "open":
                depth += 1
            case "close":
                depth = max(0, depth - 1)
            case "assigned" if depth == 0:
                return _State(), column
            case "backslash":
                return _State("", depth, continued=True), None


def _ends_in_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
