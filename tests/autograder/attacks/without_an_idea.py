"""Answers without an idea: they compute nothing and agree with everything, or refuse everything,
whatever is asked.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from attack import ANSWERS, FULL, Attack

_DUCK = """\
class Duck:
    shape = (3, 5)
    def __getattr__(self, name):
        return Duck()
    def __call__(self, *arguments, **keywords):
        return Duck()
    def __eq__(self, other):
        return True
    def __iter__(self):
        return iter([Duck(), Duck()])
    def __len__(self):
        return 2
    def __getitem__(self, key):
        return Duck()
    def __float__(self):
        return 0.0
    __hash__ = None

"""
_LIAR = """\
import torch

class Liar(torch.Tensor):
    def equal(self, other):
        return True
    def __eq__(self, other):
        return True
    allclose = isclose = all = any = equal
    __hash__ = torch.Tensor.__hash__

"""

KINDS: Mapping[str, tuple[str, str]] = {
    "duck": (_DUCK, "Duck()"),
    "list_of_ducks": (_DUCK, "[Duck() for _ in range(4)]"),
    "lying_tensor": (
        _LIAR,
        "next((x for x in arguments if isinstance(x, torch.Tensor)), torch.zeros(3, "
        "5)).mul(0).as_subclass(Liar)",
    ),
    "refuses_every_number": (
        "",
        "exec('raise ValueError(\" \".join(map(str, range(160))))')",
    ),
}
"""By name: what stands above, and what every function and method answers."""

_FUNCTION = """\
def {name}(*arguments, **keywords):
    return {answer}

"""
_CLASS = """\
class {name}:
    def __init__(self, *arguments, **keywords):
        pass
    def __call__(self, *arguments, **keywords):
        return {answer}
    def __getattr__(self, name):
        return self.__call__

"""


def without_an_idea(kind: str, cell: str) -> str:
    """A cell with the functions and classes of this one, none of which has an idea."""
    above, answer = KINDS[kind]
    forms = {ast.FunctionDef: _FUNCTION, ast.ClassDef: _CLASS}
    return above + "".join(
        forms[type(node)].format(name=node.name, answer=answer)
        for node in ast.parse(cell).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    )


ATTACKS = [
    Attack(
        f"{kind}_everywhere",
        {name: without_an_idea(kind, cell) for name, cell in ANSWERS.items()},
        loses=FULL,
    )
    for kind in KINDS
]
