"""Throws broken and hostile answers at the trusted side's reader:
`python tests/long/fuzz_wire.py --inputs 1000000`.

Each input is what a worker might write on its socket. It goes the whole way of an answer: frame,
header, tensors, values, a test's comparison, the words for the student. A StudentFault or an
AssertionError is the right end of a bad answer; any other exception, a slow input or memory that
grows is a finding. Ends with status 1 where there is one.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import struct
import sys
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from autograder.basics.errors import StudentCrashed, StudentFault
from autograder.sandbox.student import Student
from autograder.sitting.verdict import judge
from autograder.suite.calls import current_log, start_log
from autograder.suite.collection import SuiteTest
from autograder.suite.compare import are_equal, assert_close, assert_equal
from autograder.wire.frames import (
    Block,
    Frame,
    WireClosed,
    WireError,
    pack,
    receive_frame,
)
from autograder.wire.values import Encoder, HandleReference

MAX_BODY = 1 << 20
SLOW_SECONDS = 2.0
_PREFIX = struct.Struct("<IQ")
_TEST = SuiteTest("test_fuzzed", 1.0, "a hint")


class Bytes:
    """Stands for a socket that gives these bytes and then ends."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def recv(self, length: int) -> bytes:
        piece = self._data[self._at : self._at + length]
        self._at += len(piece)
        return piece


class Answering:
    """Stands for a worker whose every answer is the same bytes; turns wire errors into faults like
    the real one.
    """

    alive = True

    def __init__(self, data: bytes) -> None:
        self._data = data

    def request(
        self, header: dict[str, Any], tensors: Any, seconds: float, what: str
    ) -> Frame:
        try:
            frame = receive_frame(Bytes(self._data), MAX_BODY)  # type: ignore[arg-type]
        except (WireError, WireClosed) as error:
            raise StudentCrashed(str(error)) from None
        return Frame({**frame.header, "id": 1}, frame.tensors)

    def kill(self) -> None:
        pass


def take(data: bytes) -> str:
    """Take one input as the answer to a call; how it ended, in a word."""
    worker = Answering(data)
    student = Student.in_worker(worker, 1.0)  # type: ignore[arg-type]
    start_log({})
    raised: BaseException | None = None
    try:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        answer = student.f(x)
        are_equal(answer, answer)
        if (
            isinstance(answer, torch.Tensor)
            and answer.requires_grad
            and answer.is_floating_point()
        ):
            answer.sum().backward()
        try:
            assert_equal(answer, [1, "text", {"key": 2.0}])
        except AssertionError as error:
            str(error)
        assert_close(answer, torch.ones(2, 3, dtype=torch.float64))
    except (StudentFault, AssertionError) as fault:
        raised = fault
    verdict = judge(raised, current_log(), _TEST)
    verdict.message.encode()
    return verdict.outcome


def seeds() -> list[bytes]:
    """Right answers of every kind, as bytes."""
    values: list[Any] = [
        None,
        True,
        3,
        -(2**62),
        2**80,
        1.5,
        float("nan"),
        "text",
        1 + 2j,
        torch.float32,
        (1, [2, {"a": (None,)}]),
        {1, 2},
        {"a": 1, 2: "b"},
        SimpleNamespace(width=3, name="x"),
        torch.ones(2, 3),
        torch.ones(2, 3, requires_grad=True),
        [torch.zeros(0, 4), torch.tensor(True), torch.ones(3, dtype=torch.bfloat16)],
        np.arange(6.0).reshape(2, 3),
        np.float32(2),
        HandleReference(3, "Cache"),
        [[[[[[[]]]]]]],
        list(range(50)),
    ]
    made = []
    for value in values:
        encoder = Encoder(lambda _: None)
        made.append(
            frame(
                {"id": 1, "ok": True, "value": encoder.encode(value), "changed": ["x"]},
                encoder.tensors,
            )
        )
    error = {
        "type": "ValueError",
        "message": "no \x1b[31m",
        "frames": ["cell f, line 1"],
        "kinds": ["ValueError"],
    }
    made.append(frame({"id": 1, "ok": False, "error": error}))
    made += [
        frame({"id": 1, "ok": True, "value": None, "cost": [1, 2, 3, 4, 5]}),
        frame({"id": 1, "missing": True}),
    ]
    made += [
        frame({"id": 1, "forbidden": "torch.softmax"}),
        frame({"id": 1, "ok": True, "method": True, "launch": {}}),
    ]
    return made


def frame(header: dict[str, Any], tensors: dict[str, Block] | None = None) -> bytes:
    text, body = json.dumps(header).encode(), pack(tensors) if tensors else b""
    return _PREFIX.pack(len(text), len(body)) + text + body


_TOKENS = [
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"NaN",
    b"9" * 30,
    b"9" * 5000,
    b'""',
    b'"\\ud800"',
    b'"\\u202e\\u001b[2J"',
    b"[]",
    b"{}",
    b'{"t":"0"}',
    b'{"t":"0","g":true}',
    b'{"t":"0","s":[1,1]}',
    b'{"n":"0"}',
    b'{"i":"' + b"7" * 3000 + b'"}',
    b'{"f":"0x1p9999"}',
    b'{"c":["nan","inf"]}',
    b'{"y":"float32"}',
    b'{"h":-5}',
    b'{"e":[{"l":[]}]}',
    b'{"d":[[1,2],[1,3]]}',
    b'{"o":[["a b",1]]}',
    b"[" * 60 + b"]" * 60,
    b"[" * 2000,
    b'{"l":' * 30,
    b"4611686018427387904",
    b'"BOOL"',
    b'"F8_E4M3"',
    b'"I64"',
    b'"shape"',
]


class Mutator:
    """Makes an input of a seed: bytes changed, pieces moved, JSON words exchanged, lengths made to
    fit or to lie.
    """

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)
        self._seeds = seeds()

    def __call__(self) -> bytes:
        chance = self._random
        data = chance.choice(self._seeds)
        header_length, _ = _PREFIX.unpack(data[: _PREFIX.size])
        header, body = (
            data[_PREFIX.size :][:header_length],
            data[_PREFIX.size + header_length :],
        )
        for _ in range(chance.randint(1, 4)):
            if body and chance.random() < 0.4:
                body = self._changed(body)
            else:
                header = (
                    self._changed(header)
                    if chance.random() < 0.15
                    else self._reworded(header)
                )
        prefix = _PREFIX.pack(len(header), len(body))
        if chance.random() < 0.1:
            prefix = self._changed(prefix)
        return prefix + header + body

    def _changed(self, data: bytes) -> bytes:
        chance, made = self._random, bytearray(data)
        at, end = sorted((chance.randint(0, len(made)), chance.randint(0, len(made))))
        match chance.randint(0, 4):
            case 0 if made:
                made[min(at, len(made) - 1)] = chance.choice(
                    (0, 1, 127, 255, chance.randint(0, 255))
                )
            case 1:
                del made[at : at + chance.randint(1, 8)]
            case 2:
                made[at:at] = made[at:end][:64]
            case 3:
                made[at:at] = chance.randbytes(chance.randint(1, 8))
            case _:
                made[at : at + 8] = chance.choice(
                    (
                        b"\xff" * 8,
                        b"\0" * 8,
                        struct.pack("<Q", chance.randint(0, 1 << 40)),
                    )
                )
        return bytes(made)

    def _reworded(self, header: bytes) -> bytes:
        """Another value somewhere in the JSON: after a colon, a comma or a bracket."""
        chance = self._random
        places = [i + 1 for i, byte in enumerate(header) if byte in b":,["]
        if not places:
            return header
        at = chance.choice(places)
        ends = [i for i in range(at, len(header)) if header[i] in b",]}"] or [
            len(header)
        ]
        return (
            header[:at]
            + chance.choice(_TOKENS)
            + header[ends[min(chance.randint(0, 2), len(ends) - 1)] :]
        )


def run(inputs: int, number: int) -> int:
    mutate, endings = Mutator(number), Counter[str]()
    for data in mutate._seeds:
        take(data)
    findings, slowest, before, started = 0, 0.0, _memory(), time.monotonic()
    for count in range(inputs):
        data = mutate()
        began = time.process_time()
        try:
            endings[take(data)] += 1
        except BaseException as error:
            findings += 1
            if isinstance(error, KeyboardInterrupt) or findings > 20:
                raise
            print(f"finding: {error!r} on {data[:300]!r}", flush=True)
        slowest = max(slowest, time.process_time() - began)
        if count == inputs // 10:
            before = _memory()
    grown = _memory() - before
    findings += slowest > SLOW_SECONDS
    findings += grown > 100
    print(
        f"{inputs} inputs in {time.monotonic() - started:.0f} s, seed {number}: {dict(endings)}"
    )
    print(
        f"slowest input {slowest * 1000:.0f} ms; memory grew by {grown:.0f} MB after the first "
        f"tenth; {findings} findings"
    )
    return min(findings, 1)


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    sys.exit(run(asked.inputs, asked.seed))
