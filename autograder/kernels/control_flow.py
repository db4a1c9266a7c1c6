"""Loops, branches, jumps and calls, for all programs at once.

Where programs part ways, each way runs under a mask of the programs that take it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autograder.kernels.faults import KernelFault, Unreadable
from autograder.kernels.frame import (
    Code,
    ProgramFrame,
    Step,
    Translation,
    Value,
    merge,
    spread,
)
from autograder.kernels.number_types import Array
from autograder.kernels.ttir_text import CodeBlock, Function, Operation, jump_targets

_MOST_IDLE_TURNS = 1000
"""Turns of a loop that change no memory and no value: it waits for another program."""


class WaitsForever(KernelFault):
    """A program waits for another one, which does not run before this one has ended."""


def find_control_step(operation: Operation, types: Translation) -> Step | None:
    """The step of a loop or a branch; None for any other operation."""
    finder = _CONTROL_FINDERS.get(operation.name)
    return None if finder is None else finder(operation, types)


def _only_block(operation: Operation, region: int) -> CodeBlock:
    if len(operation.regions) <= region or len(operation.regions[region]) != 1:
        raise Unreadable(f"{operation.name} with jumps inside")
    return operation.regions[region][0]


def _body(
    operation: Operation, region: int, types: Translation
) -> tuple[Code, list[str]]:
    """The code of a region, and the names of the values that it yields."""
    block = _only_block(operation, region)
    operations = block.operations
    if operations and operations[-1].name == "scf.yield":
        return types.code(operations[:-1]), operations[-1].operands
    return types.code(operations), []


# loops


def _for(operation: Operation, types: Translation) -> Step:
    low, high, by, *initial = operation.operands
    counter, *carried = operation.carried
    types.types[counter] = types.type_of(low)
    for name, start in zip(carried, initial, strict=True):
        types.types[name] = types.type_of(start)
    code, yielded = _body(operation, 0, types)
    results = operation.results
    unsigned = operation.text.startswith("unsigned")
    if unsigned:
        raise Unreadable("a loop over unsigned numbers has no meaning here")

    def loop(frame: ProgramFrame) -> None:
        values = frame.values
        bounds = [values[name] for name in (low, high, by)]
        state = [values[name] for name in initial]
        if all(_is_uniform(bound, frame.active) for bound in bounds):
            state = uniform(
                frame, [_first(bound, frame.active) for bound in bounds], state
            )
        else:
            state = diverging(frame, bounds, state)
        values.update(zip(results, state, strict=True))

    def uniform(
        frame: ProgramFrame, bounds: list[int], state: list[Value]
    ) -> list[Value]:
        values = frame.values
        kind = values[low].dtype
        start, stop, stride = bounds
        if stride <= 0:
            raise KernelFault(f"a loop with a step of {stride}")
        for number in range(start, stop, stride):
            values[counter] = np.array([number], kind)
            values.update(zip(carried, state, strict=True))
            code.run(frame)
            state = [values[name] for name in yielded]
        return state

    def diverging(
        frame: ProgramFrame, bounds: list[Array], state: list[Value]
    ) -> list[Value]:
        values, outer = frame.values, frame.active
        number, stop, stride = (frame.of_all(bound) for bound in bounds)
        try:
            while True:
                running = number < stop if outer is None else (number < stop) & outer
                if not running.any():
                    return state
                frame.active = None if running.all() else running
                values[counter] = number
                values.update(zip(carried, state, strict=True))
                code.run(frame)
                state = [
                    merge(running, values[name], old)
                    for name, old in zip(yielded, state, strict=True)
                ]
                number = np.where(running, number + stride, number)
        finally:
            frame.active = outer

    return loop


def _is_uniform(value: Array, active: Array | None) -> bool:
    if len(value) == 1:
        return True
    own = value if active is None else value[active]
    return bool((own == own[0]).all()) if len(own) else True


def _first(value: Array, active: Array | None) -> int:
    if len(value) == 1 or active is None:
        return int(value[0])
    return int(value[np.argmax(active)])


def _while(operation: Operation, types: Translation) -> Step:
    for name, start in zip(operation.carried, operation.operands, strict=True):
        types.types[name] = types.type_of(start)
    before = _only_block(operation, 0)
    after = _only_block(operation, 1)
    if not before.operations or before.operations[-1].name != "scf.condition":
        raise Unreadable("a loop without a condition")
    condition, *handed_over = before.operations[-1].operands
    test = types.code(before.operations[:-1])
    types.declare(after)
    code, yielded = _body(operation, 1, types)
    carried, initial, results = operation.carried, operation.operands, operation.results

    def loop(frame: ProgramFrame) -> None:
        values, outer = frame.values, frame.active
        running = np.ones(len(frame.programs), bool) if outer is None else outer.copy()
        state = [values[name] for name in initial]
        outputs: list[Value] | None = None
        idle = _IdleTurns(frame)
        try:
            while True:
                frame.active = None if running.all() else running
                values.update(zip(carried, state, strict=True))
                test.run(frame)
                goes_on = frame.of_all(values[condition])
                outputs = _merged(
                    running, [values[name] for name in handed_over], outputs
                )
                running = running & goes_on
                if not running.any():
                    break
                frame.active = None if running.all() else running
                values.update(zip(after.arguments, outputs, strict=True))
                code.run(frame)
                new = [values[name] for name in yielded]
                idle.note(state, new)
                state = _merged(running, new, state)
        finally:
            frame.active = outer
        values.update(zip(results, outputs, strict=True))

    return loop


def _merged(mask: Array, new: list[Value], old: list[Value] | None) -> list[Value]:
    if old is None or mask.all():
        return new
    return [merge(mask, a, b) for a, b in zip(new, old, strict=True)]


class _IdleTurns:
    """Notices a loop whose turns change nothing: it waits for another program."""

    def __init__(self, frame: ProgramFrame) -> None:
        self._memory, self._changes, self._turns = frame.memory, frame.memory.changes, 0

    def note(self, old: list[Value], new: list[Value]) -> None:
        is_same = self._memory.changes == self._changes and all(
            isinstance(a, np.ndarray) and np.array_equal(a, b)
            for a, b in zip(old, new, strict=True)
        )
        self._changes = self._memory.changes
        self._turns = self._turns + 1 if is_same else 0
        if self._turns > _MOST_IDLE_TURNS:
            raise WaitsForever(
                "a loop waits for another program, and nothing promises that both run at the "
                "same time"
            )


# branches


def _if(operation: Operation, types: Translation) -> Step:
    (condition,) = operation.operands
    branches = [
        _body(operation, region, types) for region in range(len(operation.regions))
    ]
    results = operation.results

    def branch(frame: ProgramFrame) -> None:
        values, outer = frame.values, frame.active
        chosen = values[condition]
        outputs: list[list[Value] | None] = []
        try:
            for takes, (code, yielded) in zip(
                (chosen, ~chosen), branches, strict=False
            ):
                if not takes.any():
                    outputs.append(None)
                    continue
                frame.active = outer
                if not takes.all():
                    frame.active = frame.only(frame.of_all(takes))
                    if frame.active is not None and not frame.active.any():
                        outputs.append(None)
                        continue
                code.run(frame)
                outputs.append([values[name] for name in yielded])
        finally:
            frame.active = outer
        if results:
            values.update(zip(results, _either(chosen, outputs), strict=True))

    return branch


def _either(chosen: Array, outputs: Sequence[list[Value] | None]) -> list[Value]:
    first, second = outputs
    if first is None or second is None:
        return first if first is not None else second or []
    return [merge(chosen, a, b) for a, b in zip(first, second, strict=True)]


def _select_value(operation: Operation, types: Translation) -> Step:
    (result,), (condition, first, second) = operation.results, operation.operands

    def step(frame: ProgramFrame) -> None:
        values = frame.values
        chosen, a, b = values[condition], values[first], values[second]
        if isinstance(a, np.ndarray):
            ndim = max(a.ndim, b.ndim)
            mask = chosen if chosen.ndim == ndim else spread(chosen, ndim)
            values[result] = np.where(mask, a, b)
        else:
            values[result] = merge(frame.of_all(chosen), a, b)

    return step


# functions


class FunctionCode:
    """A function: its blocks, and the way through them.

    Where programs jump to different blocks, the first of the blocks in the text runs first, with
    the programs that wait before it.
    """

    def __init__(self, function: Function, types: Translation) -> None:
        self.arguments = function.blocks[0].arguments
        self._numbers = {
            block.label: number for number, block in enumerate(function.blocks)
        }
        self._blocks: list[tuple[CodeBlock, Code, Operation]] = []
        for block in function.blocks:
            types.declare(block)
        for block in function.blocks:
            if not block.operations:
                raise Unreadable(f"a function {function.name[:40]} with an empty block")
            *body, last = block.operations
            self._blocks.append((block, types.code(body), last))

    def run(self, frame: ProgramFrame) -> None:
        """Run the function. The frame holds its arguments."""
        if len(self._blocks) == 1:
            _, code, last = self._blocks[0]
            code.run(frame)
            self._return(frame, last)
            return
        outer = frame.active
        waiting = np.full(len(frame.programs), -1)
        waiting[slice(None) if outer is None else outer] = 0
        try:
            while (waiting >= 0).any():
                number = int(waiting[waiting >= 0].min())
                here = waiting == number
                frame.active = None if here.all() else here
                self._run_block(frame, number, here, waiting)
        finally:
            frame.active = outer

    def _run_block(
        self, frame: ProgramFrame, number: int, here: Array, waiting: Array
    ) -> None:
        _, code, last = self._blocks[number]
        kept = {} if here.all() else dict(frame.values)
        code.run(frame)
        if (
            kept
        ):  # programs elsewhere keep the values that they have from an earlier turn
            for name, old in kept.items():
                new = frame.values[name]
                if new is not old and getattr(new, "ndim", 0) == getattr(
                    old, "ndim", 0
                ):
                    frame.values[name] = merge(here, new, old)
        if last.name == "tt.return":
            self._return(frame, last)
            waiting[here] = -1
            return
        targets = jump_targets(last)
        if last.name == "cf.br" and len(targets) == 1:
            self._jump(frame, targets[0], here, waiting)
        elif last.name == "cf.cond_br" and len(targets) == 2:
            condition = frame.of_all(frame.values[last.operands[0]])
            self._jump(frame, targets[0], here & condition, waiting)
            self._jump(frame, targets[1], here & ~condition, waiting)
        else:
            raise Unreadable(f"no jump: {last.name}")

    def _jump(
        self,
        frame: ProgramFrame,
        target: tuple[str, list[str]],
        goes: Array,
        waiting: Array,
    ) -> None:
        if not goes.any():
            return
        label, names = target
        number = self._numbers.get(label)
        if number is None:
            raise Unreadable(f"a jump to {label[:20]}, which is nowhere")
        arguments = self._blocks[number][0].arguments
        handed_over = [frame.values[name] for name in names]
        for name, new in zip(arguments, handed_over, strict=True):
            old = frame.values.get(name)
            everybody = old is None or goes.all()
            frame.values[name] = new if everybody else merge(goes, new, old)
        waiting[goes] = number

    def _return(self, frame: ProgramFrame, last: Operation) -> None:
        new = [frame.values[name] for name in last.operands]
        if frame.returned and frame.active is not None:
            new = [
                merge(frame.active, a, b)
                for a, b in zip(new, frame.returned, strict=True)
            ]
        frame.returned = new


def make_call(operation: Operation, functions: dict[str, FunctionCode]) -> Step:
    """The step of a call of a function that was not inlined."""
    symbol = operation.text.removeprefix("@").split("(")[0].strip('"')
    if operation.text.startswith('@"'):
        symbol = operation.text[2:].partition('"')[0]
    sources, results = operation.operands, operation.results

    def call(frame: ProgramFrame) -> None:
        function = functions.get(symbol)
        if function is None:
            raise Unreadable(f"a call of {symbol[:40]}, which is nowhere")
        arguments = [frame.values[name] for name in sources]
        inner = ProgramFrame(
            frame.programs,
            frame.memory,
            frame.counts,
            frame.budget,
            dict(zip(function.arguments, arguments, strict=True)),
            frame.active,
        )
        function.run(inner)
        frame.values.update(zip(results, inner.returned, strict=True))

    return call


_CONTROL_FINDERS = {
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "arith.select": _select_value,
}
