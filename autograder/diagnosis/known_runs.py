"""What the known mistakes answered, kept on disk: the first wrong submission need not wait until
they have all run.

    <course>/.autograder/known/<assignment>/<fingerprint>/<hash of mistake and test>.safetensors

Diagnosis and `verify` write, diagnosis reads. The fingerprint covers whatever an answer can depend
on, so a record is never stale; a folder that cannot be written, or a file that cannot be read, only
costs the time to run the mistake.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from safetensors import SafetensorError, safe_open

from autograder.basics.errors import StudentError, StudentFault, StudentForbidden, StudentMissing
from autograder.basics.stored_json import decode_stored, encode_line
from autograder.basics.whole_files import write_whole
from autograder.course import Assignment, Course
from autograder.course.fingerprint import software
from autograder.sandbox.student import Handle
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Cause, Verdict
from autograder.suite.calls import Call, Cost, Launch
from autograder.wire.frames import WireError, pack, unpack
from autograder.wire.trees import mapped
from autograder.wire.values import Decoder, Encoder

_KeptOutcome = Literal["passed", "failed", "error", "missing", "forbidden"]
"""A hang or a crash may be the machine's doing: it is seen anew each time."""
_KeptFault = Literal["missing", "forbidden"]
_FAULTS: dict[str, type[StudentFault]] = {"missing": StudentMissing, "forbidden": StudentForbidden}


@dataclass(frozen=True, slots=True)
class _StoredCall:
    """One call of a record: an error of the mistake's own, another fault, or an answer as the wire
    has it.
    """

    name: str
    changed: tuple[str, ...]
    error: tuple[str, str] | None = None
    fault: _KeptFault | None = None
    result: Any = None
    gradients: Any = None
    cost: Cost | None = None
    launch: Launch | None = None


@dataclass(frozen=True, slots=True)
class _StoredRun:
    """One record."""

    outcome: _KeptOutcome
    cause: Cause
    refusing: tuple[str, ...]
    answering: tuple[str, ...]
    calls: tuple[_StoredCall, ...]


class KnownRuns:
    """The records of one suite on this machine."""

    def __init__(self, course: Course, assignment: Assignment, inputs_sha256: str) -> None:
        self._suite_folder = course.kept / "known" / assignment.name
        self._inputs_sha256 = inputs_sha256

    @functools.cached_property
    def _folder(self) -> Path:
        return self._suite_folder / _fingerprint(self._inputs_sha256)

    def load(self, mistake: str, test: str) -> TestRun | None:
        """What the mistake answered to the test, or None where no record is readable."""
        try:
            path = self._path(mistake, test)
            with safe_open(path, framework="numpy") as file:
                record = decode_stored(file.metadata()["run"], _StoredRun)
            decoder = Decoder(unpack(path.read_bytes()))
            calls = tuple(_call_from(call, decoder) for call in record.calls)
            return TestRun(
                test,
                Verdict(record.outcome, cause=record.cause),
                calls,
                refusing=frozenset(record.refusing),
                answering=frozenset(record.answering),
            )
        except (
            OSError,
            SafetensorError,
            WireError,
            ValueError,
            LookupError,
            TypeError,
            RuntimeError,
        ):
            return None  # RecursionError is a RuntimeError

    def save(self, mistake: str, runs: Sequence[TestRun]) -> None:
        """Keep runs of a mistake."""
        for run in runs:
            if run.verdict.outcome in get_args(_KeptOutcome):
                with contextlib.suppress(OSError, WireError):
                    self._write(self._path(mistake, run.name), _packed(run))

    def _path(self, mistake: str, test: str) -> Path:
        name = hashlib.sha256(f"{mistake}\0{test}".encode()).hexdigest()[:32]
        return self._folder / f"{name}.safetensors"

    def _write(self, path: Path, data: bytes) -> None:
        if not self._folder.is_dir():
            self._folder.mkdir(parents=True, mode=0o700)
            self._forget_others()
        write_whole(path, data, to_disk=False)

    def _forget_others(self) -> None:
        """Records of the same suite as it was before."""
        for other in self._suite_folder.iterdir():
            if other != self._folder:
                shutil.rmtree(other, ignore_errors=True)


def _fingerprint(inputs_sha256: str) -> str:
    parts = [inputs_sha256, *software().values()]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:32]


def _packed(run: TestRun) -> bytes:
    """Raises: WireError where an answer is of a kind that cannot be kept."""
    encoder = Encoder(lambda _: None)
    calls = tuple(_call_to(call, encoder) for call in run.calls)
    verdict, refusing, answering = (
        run.verdict,
        tuple(sorted(run.refusing)),
        tuple(sorted(run.answering)),
    )
    record = _StoredRun(
        cast("_KeptOutcome", verdict.outcome), verdict.cause, refusing, answering, calls
    )
    return pack(encoder.tensors, {"run": encode_line(record).decode()})


def _call_to(call: Call, encoder: Encoder) -> _StoredCall:
    if isinstance(call.fault, StudentError):
        return _StoredCall(
            call.name, call.changed, error=(call.fault.type_name, call.fault.message)
        )
    if call.fault is not None:
        return _StoredCall(call.name, call.changed, fault=cast("_KeptFault", call.fault.outcome))
    return _StoredCall(
        call.name,
        call.changed,
        result=encoder.encode(as_data(call.result)),
        gradients=encoder.encode(call.gradients),
        cost=call.cost,
        launch=call.launch,
    )


def _call_from(stored: _StoredCall, decoder: Decoder) -> Call:
    call = Call(stored.name, (), {}, changed=stored.changed)
    if stored.error is not None:
        call.fault = StudentError(*stored.error)
    elif stored.fault is not None:
        call.fault = _FAULTS[stored.fault]()
    else:
        call.result = decoder.decode(stored.result)
        call.gradients = decoder.decode(stored.gradients)
        if not isinstance(call.gradients, list):
            raise ValueError("gradients are a list")
        call.cost, call.launch = stored.cost, stored.launch
    return call


def as_data(result: Any) -> Any:
    """An answer without its objects: those stay in the worker, and are known by their class."""
    return mapped(lambda leaf: leaf.name if isinstance(leaf, Handle) else leaf, result)
