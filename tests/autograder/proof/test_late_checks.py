"""Mutants whose checks come behind what is written."""

from __future__ import annotations

from autograder.proof.late_checks import late_checks

CACHE = '''
class Cache:
    """Of keys."""

    def __init__(self, room):
        if room < 1:
            raise ValueError(room)
        self.room = room

    def append(self, k, v):
        keys = self.keys[0]
        if k.shape != v.shape or len(k) > self.room:
            raise ValueError(len(k))
        end = len(k)
        keys[:end] = k
        self.values[:end] = v
        return keys
'''


def bodies(source: str) -> dict[str, list[str]]:
    """The mutants' cells by name, as lines without indentation."""
    return {
        variant.name: [line.strip() for line in variant.cell.splitlines()]
        for variant in late_checks("f", source)
    }


def test_each_condition_of_a_check_comes_behind_each_write() -> None:
    shape, room = "if k.shape != v.shape", "if len(k) > self.room"
    both = f"{shape} or len(k) > self.room"
    keys, values = "keys[:end] = k", "self.values[:end] = v"
    mutants = bodies(CACHE)
    assert set(mutants) == {
        f"append: {check} comes behind {write}"
        for check in (shape, room, both)
        for write in (keys, values)
    }
    late = mutants[f"append: {shape} comes behind {keys}"]
    order = [f"{room}:", "end = len(k)", keys, f"{shape}:", values, "return keys"]
    assert [line for line in late if line in order] == order


def test_only_what_outlives_the_call_is_written() -> None:
    source = """
def step(params, state):
    if not params:
        raise ValueError("0")
    rows = []
    rows.append(params)
    made = {}
    made["a"] = 1
    for p in params:
        if p < 0:
            raise ValueError(p)
    state["step"] += 1
    return rows
"""
    assert set(bodies(source)) == {
        "step: if not params comes behind state['step'] += 1",
        "step: for p in params comes behind state['step'] += 1",
    }


def test_methods_that_change_an_argument_write() -> None:
    source = """
def step(cache, k):
    if k < 0:
        raise ValueError(k)
    for layer in range(2):
        k = cache.append(layer, k)
    k.add_(1)
    return k
"""
    assert set(bodies(source)) == {
        "step: if k < 0 comes behind for layer in range(2)",
        "step: if k < 0 comes behind k.add_(1)",
    }
