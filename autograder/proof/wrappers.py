"""Variants that wrap the answer key's functions: property mutants, which compute the right result
from changed arguments, with a changed torch or out of a memory, or hand it over wrongly; and
trivial answers, which compute nothing.

The arguments and results of a function's calls in the suite decide which property mutants make
sense for the function (`properties.py`). The wrappers themselves stand in `wrapper_functions.py`
and `torch_changes.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import Signature
from pathlib import Path

from autograder.proof.code_mutants import Variant
from autograder.proof.mutation_tables import MODULES
from autograder.proof.properties import (
    FILL,
    Property,
    ReachedNames,
    list_properties,
    over_last_axis,
)
from autograder.suite.calls import Call
from autograder.wire.libraries import loaded_torch

_TEXTS = ("wrapper_functions.py", "torch_changes.py")
_OF_MODULE = "a module's "
"""Before a word that is an attribute of a module: `torch.tensor` does not lead to a helper of the
notebook that is called `tensor`.
"""
_END_OF_CELL = """

import types

_wrappers = types.ModuleType("wrappers")
exec({text!r}, vars(_wrappers))
"""
"""The first lines below a wrapped cell: all wrappers, under a single name of the notebook."""


@dataclass(frozen=True, slots=True)
class ObservedFunction:
    """A function of the answer key that a suite calls, with its property mutants.

    Attributes:
        function: "softmax", or "KVCache.append"; a class that has such methods too.
        properties: of each property mutant the name, and the expression of its wrapper.
        is_class: whether it is a class.
    """

    function: str
    properties: tuple[Property, ...]
    is_class: bool = False


def observe(
    calls: Iterable[Call],
    signature: Callable[[str], Signature | None],
    reachable: Callable[[str], ReachedNames],
) -> list[ObservedFunction]:
    """The functions of the calls that ended without an error, then their classes.

    Args:
        signature: gives a function's signature, without `self`.
        reachable: gives the names that a function reaches.
    """
    by_function: dict[str, list[Call]] = {}
    for call in calls:
        if call.fault is None and not call.of_suite and not call.is_attribute:
            by_function.setdefault(call.name, []).append(call)
    observed = []
    classes = {}
    for name, calls_of_function in by_function.items():
        properties = list_properties(
            calls_of_function, signature(name), reachable(name)
        )
        observed.append(ObservedFunction(name, tuple(properties)))
        if "." in name:
            owner = name.split(".")[0]
            classes[owner] = ObservedFunction(owner, _OF_CLASSES, is_class=True)
    return [*observed, *classes.values()]


_OF_CLASSES = (("objects share their attributes", "sharing_state(function)"),)


def reachable_names(
    answers: Iterable[str],
    given: Iterable[str],
) -> Callable[[str], ReachedNames]:
    """A function that gives the names that a function of the notebook reaches.

    Args:
        answers: the answer key's cells of questions.
        given: the other cells.
    """
    of_answers = _definitions(answers)
    of_given = _definitions(given)
    everything = of_given | of_answers

    def reachable(function: str) -> ReachedNames:
        own_parts = _reach(function, of_answers)
        own = _words_of(own_parts) - of_answers.keys()
        helpers = [
            of_given[name]
            for part in own_parts
            for name in sorted(part.helpers & of_given.keys())
        ]
        near = own | _words_of(helpers)
        everywhere = _words_of(_reach(function, everything))
        return ReachedNames(
            everywhere - everything.keys(),
            near - everything.keys(),
            own,
        )

    return reachable


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function or class that a cell defines.

    Attributes:
        words: the names, attributes and texts in it.
        variables: the names that it assigns or takes as parameters.
    """

    words: frozenset[str]
    variables: frozenset[str]

    @property
    def helpers(self) -> frozenset[str]:
        """The words that may be other definitions: a variable `dice` is no helper `dice`."""
        return self.words - self.variables


def _definitions(sources: Iterable[str]) -> dict[str, _Definition]:
    """The functions and classes that the cells define."""
    definitions = {}
    for source in sources:
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                definitions[node.name] = _Definition(_words(node), _variables(node))
    return definitions


def _reach(
    function: str,
    definitions: Mapping[str, _Definition],
) -> list[_Definition]:
    """A definition and all definitions that it reaches."""
    queue = [function.split(".")[0]]
    reached: dict[str, _Definition] = {}
    while queue:
        name = queue.pop()
        if name in reached or name not in definitions:
            continue
        reached[name] = definitions[name]
        queue += sorted(definitions[name].helpers & definitions.keys())
    return list(reached.values())


def _words_of(parts: Iterable[_Definition]) -> frozenset[str]:
    """All words of definitions. Callers take out the names of definitions: what is called `softmax`
    may be the notebook's own.
    """
    words = [part.words for part in parts]
    return _without_modules(frozenset().union(*words))


def _variables(definition: ast.AST) -> frozenset[str]:
    """The names that a definition assigns, and its parameters."""
    nodes = list(ast.walk(definition))
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    assigned = {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return frozenset(parameters | assigned)


def _without_modules(words: Iterable[str]) -> frozenset[str]:
    """The words, with "tensor" for "torch.tensor"."""
    return frozenset(word.removeprefix(_OF_MODULE) for word in words)


def _words(definition: ast.AST) -> frozenset[str]:
    words = set()
    for node in ast.walk(definition):
        if isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            root = node.value.id if isinstance(node.value, ast.Name) else ""
            words.add(_OF_MODULE + node.attr if root in MODULES else node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.add(node.value)
        elif isinstance(node, ast.MatMult | ast.Sub):
            words.add("matmul" if isinstance(node, ast.MatMult) else "sub")
        elif isinstance(node, ast.Call):
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(map(_is_infinite, arguments)):
                words.add(FILL)
            if "-1" in map(ast.unparse, arguments):
                words.add(over_last_axis(ast.unparse(node.func).rpartition(".")[2]))
    return frozenset(words)


def _is_infinite(node: ast.expr) -> bool:
    return ast.unparse(node) in (
        "-math.inf",
        "-torch.inf",
        "float('-inf')",
        "-float('inf')",
    )


def property_mutants(
    question: str, source: str, observed: Iterable[ObservedFunction]
) -> list[Variant]:
    """The property mutants of a question's cell, for each of its functions that the suite calls."""
    defined = _callables(source)
    return [
        Variant(
            question,
            f"{called.function}: {name}",
            _wrap(source, {called.function: wrapper}),
        )
        for called in observed
        if called.function in defined
        for name, wrapper in called.properties
    ]


TRIVIAL = {
    "zeros": "handing_over(function, filled(0))",
    "ones": "handing_over(function, filled(1))",
    "NaN": "handing_over(function, filled(float('nan')))",
    "its first argument": "first_of",
    "always ValueError": "refusing",
}
"""Answers without an idea, and their wrappers."""


def trivial_answers(
    question: str, source: str, observed: Iterable[ObservedFunction]
) -> list[Variant]:
    """Variants in which each function of a question, methods too, answers without an idea.

    `handing_over` calls the answer key's function for the form of its result. A method would
    change its object then, which is more than nothing, so classes go without these answers.
    """
    observed = list(observed)
    # a class is observed as a function too
    classes = {called.function for called in observed if called.is_class}
    defined = _callables(source) - classes
    functions = [called.function for called in observed if called.function in defined]
    if not functions:
        return []
    has_methods = any("." in function for function in functions)
    return [
        Variant(question, name, _wrap(source, dict.fromkeys(functions, wrapper)))
        for name, wrapper in TRIVIAL.items()
        if not (has_methods and "handing_over" in wrapper)
    ]


def _callables(source: str) -> set[str]:
    """Functions of a cell, its classes, and their methods without a decorator."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and not part.decorator_list:
                    names.add(f"{node.name}.{part.name}")
    return names


def _wrap(source: str, wrappers: Mapping[str, str]) -> str:
    """The cell with wrappers around some of its functions.

    Args:
        wrappers: by the function's name, an expression for what takes the place of `function`.
    """
    texts = _TEXTS if loaded_torch() is not None else _TEXTS[:1]
    folder = Path(__file__).parent
    text = "\n".join((folder / name).read_text(encoding="utf-8") for name in texts)
    text = text.replace("from __future__ import annotations\n", "")
    lines = [
        f"{function} = eval({wrapper!r}, vars(_wrappers), {{'function': {function}}})"
        for function, wrapper in wrappers.items()
    ]
    return (
        source.rstrip("\n") + _END_OF_CELL.format(text=text) + "\n".join(lines) + "\n"
    )
