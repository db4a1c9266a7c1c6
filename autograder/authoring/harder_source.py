"""Makes the companion with a notebook's harder inputs: the kit's part, the calls that the suite's
contracts allow, and what the author's `harder.py` says of each question.

Of `contracts.py` only the forms of calls go out, with what these need: neither what judges answers
(`right_if`) nor definitions. A question that `harder.py` does not name has no harder inputs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.definitions import bound_names, used_globals
from autograder.basics.errors import BadSource
from autograder.course import Assignment
from autograder.course.fingerprint import CONTRACTS_FILE

HARDER_FILE = "harder.py"
MACHINERY = (
    "autograder.student_tools.harder_inputs",
    "autograder.student_tools.slow_definitions",
)
"""The modules of the kit that go out with harder inputs."""
_SHIPPED_SETTINGS = ("function", "sizes", "dtypes", "gradients", "equals", "allowed_if")
"""Keywords of a contract that go out."""


@dataclass(frozen=True, slots=True)
class HarderSource:
    """What an author wrote about the harder inputs of an assignment.

    Attributes:
        questions: those with harder inputs, in the order of the notebook.
        without: questions without, and the reason.
        text: the Python that goes out, below the kit's machinery.
    """

    questions: tuple[str, ...]
    without: Mapping[str, str]
    text: str


def read_harder(
    assignment: Assignment, questions: Sequence[str]
) -> HarderSource | None:
    """Read `harder.py` beside a source notebook; None where there is none.

    Raises:
        BadSource: a question is named that there is not, or none of the file's ways has it.
    """
    path = assignment.source.parent / HARDER_FILE
    if not path.is_file():
        return None
    place = path.relative_to(assignment.root).as_posix()
    own = _Module(path, place)
    without = dict(own.reasons())
    named = {name for _, name in own.registrations() if name not in without}
    if unknown := sorted({*named, *without} - set(questions)):
        raise BadSource(f"{place}: {', '.join(unknown)}: no question of the notebook")
    if missing := [name for name in questions if name not in {*named, *without}]:
        raise BadSource(
            f"{place}: nothing is said of {', '.join(missing)}: write about(…) or @holds(…), or "
            'WITHOUT = {"name": "the reason"}'
        )
    own_forms = {name for word, name in own.registrations() if word == "contract"}
    suite = assignment.suite / CONTRACTS_FILE
    shipped, with_forms = "", set(own_forms)
    if suite.is_file():
        contracts = _Module(suite, suite.relative_to(assignment.root).as_posix())
        shipped = contracts.shipped_contracts(named - own_forms)
        with_forms |= {
            name for word, name in contracts.registrations() if word == "contract"
        }
    if formless := named - with_forms:
        raise BadSource(
            f"{place}: {', '.join(sorted(formless))}: contracts.py has no calls"
        )
    text = "\n\n\n".join(part for part in (shipped, own.body()) if part)
    return HarderSource(
        tuple(name for name in questions if name in named),
        without,
        text,
    )


class _Module:
    """The text of a Python file, statement by statement."""

    def __init__(
        self,
        path: Path,
        place: str,
    ) -> None:
        self._text = path.read_text(encoding="utf-8")
        try:
            self._body = ast.parse(self._text).body
        except SyntaxError as error:
            raise BadSource(
                f"{place}:{error.lineno}: is not valid Python: {error.msg}"
            ) from error

    def registrations(self) -> Iterator[tuple[str, str]]:
        """(word, question) of each `contract(…)`, `about(…)` and `@holds(…)`."""
        for node in self._body:
            calls = [node.value] if isinstance(node, ast.Expr) else []
            calls += node.decorator_list if isinstance(node, ast.FunctionDef) else []
            for call in calls:
                match call:
                    case ast.Call(
                        func=ast.Name(word), args=[ast.Constant(str(question)), *_]
                    ):
                        yield word, question

    def reasons(self) -> Iterator[tuple[str, str]]:
        """The entries of the dict WITHOUT: question and reason."""
        for node in self._body:
            if isinstance(node, ast.Assign) and bound_names(node) == {"WITHOUT"}:
                yield from ast.literal_eval(node.value).items()

    def body(self) -> str:
        """The text without docstring, imports of the kit, and WITHOUT."""
        kept = [node for node in self._body[1:] if not self._is_of_kit(node)]
        return "\n\n\n".join(self._source(node) for node in kept)

    def shipped_contracts(self, questions: set[str]) -> str:
        """The contracts of some questions, with the definitions that their calls need."""
        definitions = [
            node
            for node in self._body[1:]
            if not self._is_of_kit(node) and not self._is_contract(node)
        ]
        contracts = [
            _without_judgement(node)
            for node in self._body
            if self._is_contract(node) and _question_of(node) in questions
        ]
        needed = frozenset[str]().union(*(used_globals(text) for text in contracts))
        parts = [self._source(node) for node in self._with_uses(definitions, needed)]
        return "\n\n\n".join([*parts, *contracts])

    def _with_uses(
        self,
        definitions: Sequence[ast.stmt],
        needed: frozenset[str],
    ) -> list[ast.stmt]:
        """The definitions of some names, and of the names that these use."""
        while True:
            kept = [node for node in definitions if bound_names(node) & needed]
            more = needed.union(*(used_globals(self._source(node)) for node in kept))
            if more == needed:
                return kept
            needed = more

    def _is_of_kit(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.ImportFrom):
            return (node.module or "").startswith(("autograder.", "__future__"))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return True
        return isinstance(node, ast.Assign) and bound_names(node) == {"WITHOUT"}

    def _is_contract(self, node: ast.stmt) -> bool:
        match node:
            case ast.Expr(ast.Call(func=ast.Name("contract"))):
                return True
        return False

    def _source(self, node: ast.stmt) -> str:
        first = min(
            [
                node.lineno,
                *(
                    part.lineno
                    for part in getattr(
                        node,
                        "decorator_list",
                        [],
                    )
                ),
            ]
        )
        return "\n".join(self._text.split("\n")[first - 1 : node.end_lineno])


def _question_of(node: ast.stmt) -> str:
    match node:
        case ast.Expr(ast.Call(args=[ast.Constant(str(question)), *_])):
            return question
    return ""


def _without_judgement(node: ast.stmt) -> str:
    """The text of a contract without what judges answers."""
    assert isinstance(node, ast.Expr)
    call = node.value
    assert isinstance(call, ast.Call)
    settings = [
        keyword for keyword in call.keywords if keyword.arg in _SHIPPED_SETTINGS
    ]
    arguments = [ast.unparse(part) for part in call.args]
    arguments[0] = f'"{_question_of(node)}"'
    arguments += [f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in settings]
    return "contract(\n" + "".join(f"    {text},\n" for text in arguments) + ")"
