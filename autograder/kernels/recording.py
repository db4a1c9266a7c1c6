"""A recording of the kernels of one call: counts, and the story of each program."""

from __future__ import annotations

from collections import Counter

import numpy as np

from autograder.kernels.faults import program_in_words
from autograder.kernels.launch import LaunchData, LaunchOutcome
from autograder.kernels.number_types import Array
from autograder.kernels.program_lanes import Lanes
from autograder.kernels.tensor_regions import Region

TraceStep = tuple[tuple[int, ...], str, str, list[range]]
"""A program, a verb, a tensor, and the box of its elements."""


class Recording:
    """The accesses of the kernels of one call.

    Attributes:
        kernels, programs: launches, and their programs.
        dots, flops: calls of `tl.dot`, and their floating point operations.
        largest: elements of the largest tile that was loaded, stored or the result of a dot.
        loads, stores: elements moved, by tensor.
        unfilled: tensors with masked lanes loaded without `other`.
        reads, writes: how often each element was touched, in the tensor's shape.
        steps: the accesses, program by program.

    The last three are filled where `keep_steps` is set.

    Args:
        names: names of tensors, by the address of their storage.
    """

    def __init__(self, names: dict[int, str], keep_steps: bool) -> None:
        self.names, self.keep_steps = names, keep_steps
        self.kernels = self.programs = self.dots = self.flops = self.largest = 0
        self.loads: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self.unfilled: list[str] = []
        self.reads: dict[str, Array] = {}
        self.writes: dict[str, Array] = {}
        self.steps: list[TraceStep] = []

    def __str__(self) -> str:
        lines: dict[tuple[int, ...], list[str]] = {}
        for program, verb, name, box in self.steps:
            spans = ", ".join(
                str(r.start) if len(r) == 1 else f"{r.start}…{r.stop - 1}" for r in box
            )
            lines.setdefault(program, []).append(f"    {verb} {name}[{spans}]")
        text = [
            f"program {program_in_words(program)}\n" + "\n".join(lines[program])
            for program in sorted(lines)
        ]
        moved = ", ".join(
            f"{name} {count}"
            for name, count in [*self.loads.items(), *self.stores.items()]
        )
        return "\n".join(
            [
                *text,
                f"{self.programs} programs, {self.dots} dots; elements moved: {moved}",
            ]
        )

    def add(self, launch: LaunchData, outcome: LaunchOutcome) -> None:
        """Add the work of one launch."""
        self.kernels += 1
        self.programs += launch.programs
        self.dots += outcome.counts.dots
        self.flops += outcome.counts.flops
        self.loads.update(outcome.loads)
        self.stores.update(outcome.stores)
        self.add_notes(outcome)

    def add_notes(self, outcome: LaunchOutcome) -> None:
        """Add what counts of every launch, of those too that autotune makes besides."""
        self.largest = max(self.largest, outcome.counts.largest)
        self.unfilled += [
            name for name in outcome.counts.unfilled if name not in self.unfilled
        ]


class StepWatcher:
    """Notes each access of a launch: its story, and how often each element is touched."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._steps: list[tuple[int, TraceStep]] = []

    def __call__(self, verb: str, region: Region, offsets: Array, lanes: Lanes) -> None:
        """Note the accesses of all programs, by one operation."""
        verbs = {
            "reads": ("reads",),
            "writes": ("writes",),
            "adds to": ("reads", "writes"),
        }[verb]
        for name in verbs:
            totals: dict[str, Array] = getattr(self._recording, name)
            counts = np.bincount(offsets, minlength=region.extent)
            shaped = region.in_shape(counts)
            earlier = totals.get(region.name)
            same = earlier is not None and earlier.shape == shaped.shape
            totals[region.name] = shaped + earlier if same else shaped.copy()
        programs = lanes.programs
        for number in np.unique(programs).tolist():
            touched = np.zeros(region.extent, bool)
            touched[offsets[programs == number]] = True
            axes = np.nonzero(region.in_shape(touched))
            box = []
            for axis in axes:
                box.append(range(int(axis.min()), int(axis.max()) + 1))
            step = (lanes.among.words(number), verb, region.name, box)
            self._steps.append((number, step))

    def finish(self) -> None:
        """Hand the story over, program by program."""
        self._recording.steps += [
            step for _, step in sorted(self._steps, key=lambda s: s[0])
        ]
