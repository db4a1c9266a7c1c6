"""Runs of known answers, kept on disk: the first wrong submission need not wait until all known
mistakes have run.

    <course>/.autograder/known/<assignment>/<fingerprint>/<hash of mistake and test>.safetensors

Diagnosis and `verify` write, diagnosis reads. The fingerprint covers whatever an answer can depend
on, so a stored run is never stale; a folder that cannot be written, or a file that cannot be read,
only costs the time to run the mistake.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, cast, get_args

from safetensors import SafetensorError, safe_open

from autograder.basics.errors import (
    StudentError,
    StudentFault,
    StudentForbidden,
    StudentMissing,
)
from autograder.basics.stored_json import decode_stored, encode_line
from autograder.basics.whole_files import write_whole
from autograder.course import Assignment, Course
from autograder.course.fingerprint import software
from autograder.diagnosis.suite_inputs import call_fingerprint
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Cause, Verdict
from autograder.suite.calls import Call, Cost, Launch
from autograder.wire.frames import WireError, pack, unpack
from autograder.wire.values import Decoder, Encoder

_StoredOutcome = Literal["passed", "failed", "error", "missing", "forbidden"]
"""A hang or a crash may be the machine's doing, and is not stored: such a test runs each time."""
_StoredFault = Literal["missing", "forbidden"]
_FAULTS: dict[str, type[StudentFault]] = {
    "missing": StudentMissing,
    "forbidden": StudentForbidden,
}
_UNREADABLE = (
    OSError,
    SafetensorError,
    WireError,
    ValueError,
    LookupError,
    TypeError,
    RuntimeError,  # RecursionError is one
)


@dataclass(frozen=True, slots=True)
class _StoredError:
    """An error of the mistake's own, with the frame in which it was raised."""

    type_name: str
    message: str
    innermost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _StoredCall:
    """One call of a run: an error of the mistake's own, another fault, or an answer as the wire
    encodes it.
    """

    name: str
    inputs: str
    changed: tuple[str, ...]
    error: _StoredError | None = None
    fault: _StoredFault | None = None
    result: Any = None
    gradients: Any = None
    cost: Cost | None = None
    lines: int | None = None
    launch: Launch | None = None


@dataclass(frozen=True, slots=True)
class _StoredRun:
    """One run in the metadata of a file."""

    outcome: _StoredOutcome
    cause: Cause
    refusing: tuple[str, ...]
    answering: tuple[str, ...]
    calls: tuple[_StoredCall, ...]


class KnownRuns:
    """The stored runs of one suite on this machine."""

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        inputs_sha256: str,
    ) -> None:
        self._suite_folder = course.kept / "known" / assignment.name
        self._inputs_sha256 = inputs_sha256

    @functools.cached_property
    def _folder(self) -> Path:
        parts = [self._inputs_sha256, *software().values()]
        return self._suite_folder / _short_hash(" ".join(parts))

    def load(
        self,
        mistake: str,
        test: str,
    ) -> TestRun | None:
        """The run of a test on a mistake; None where no readable run is stored."""
        try:
            path = self._path(mistake, test)
            with safe_open(path, framework="numpy") as file:
                stored = decode_stored(file.metadata()["run"], _StoredRun)
            return _restore_run(test, stored, path.read_bytes())
        except _UNREADABLE:
            return None

    def save(
        self,
        mistake: str,
        runs: Sequence[TestRun],
    ) -> None:
        """Store runs of a mistake, as far as they can be stored."""
        for run in runs:
            self._store(mistake, run)

    def save_and_reload(
        self,
        mistake: str,
        runs: Sequence[TestRun],
    ) -> list[TestRun]:
        """Store runs of a mistake; the runs as they would be loaded, so that diagnosis does not
        depend on which runs are stored. A run that cannot be stored is as it was.
        """
        reloaded = []
        for run in runs:
            stored = self._store(mistake, run)
            reloaded.append(_restore_run(run.name, *stored) if stored else run)
        return reloaded

    def _store(self, mistake: str, run: TestRun) -> tuple[_StoredRun, bytes] | None:
        """A run as it is stored, and the bytes of its file; None where it cannot be stored."""
        if run.verdict.outcome not in get_args(_StoredOutcome):
            return None
        try:
            stored, data = _pack_run(run)
        except WireError:
            return None
        with contextlib.suppress(OSError):
            self._write(self._path(mistake, run.name), data)
        return stored, data

    def _path(
        self,
        mistake: str,
        test: str,
    ) -> Path:
        name = _short_hash(f"{mistake}\0{test}")
        return self._folder / f"{name}.safetensors"

    def _write(
        self,
        path: Path,
        data: bytes,
    ) -> None:
        if not self._folder.is_dir():
            self._folder.mkdir(
                parents=True, mode=0o700, exist_ok=True
            )  # graders race for it
            self._remove_stale_folders()
        write_whole(path, data, to_disk=False)

    def _remove_stale_folders(self) -> None:
        """Remove the runs of the same suite as it was before."""
        for folder in self._suite_folder.iterdir():
            if folder != self._folder:
                shutil.rmtree(folder, ignore_errors=True)


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _pack_run(run: TestRun) -> tuple[_StoredRun, bytes]:
    """A run as it is stored, and the bytes of its file.

    Raises:
        WireError: an answer is of a kind that cannot be stored.
    """
    encoder = Encoder(attrgetter("reference"))  # of an object that stays in the worker
    stored = _StoredRun(
        outcome=cast("_StoredOutcome", run.verdict.outcome),
        cause=run.verdict.cause,
        refusing=tuple(sorted(run.refusing)),
        answering=tuple(sorted(run.answering)),
        calls=tuple([_store_call(call, encoder) for call in run.calls]),
    )
    return stored, pack(encoder.tensors, {"run": encode_line(stored).decode()})


def _restore_run(test: str, stored: _StoredRun, data: bytes) -> TestRun:
    decoder = Decoder(unpack(data), attrgetter("kind"))
    calls = [_restore_call(call, decoder) for call in stored.calls]
    return TestRun(
        test,
        Verdict(stored.outcome, cause=stored.cause),
        tuple(calls),
        refusing=frozenset(stored.refusing),
        answering=frozenset(stored.answering),
    )


def _store_call(call: Call, encoder: Encoder) -> _StoredCall:
    inputs = call_fingerprint(call)
    if isinstance(call.fault, StudentError):
        error = _StoredError(
            call.fault.type_name, call.fault.message, call.fault.frames[-1:]
        )
        return _StoredCall(call.name, inputs, call.changed, error=error)
    if call.fault is not None:
        fault = cast("_StoredFault", call.fault.outcome)
        return _StoredCall(call.name, inputs, call.changed, fault=fault)
    return _StoredCall(
        call.name,
        inputs,
        call.changed,
        result=encoder.encode(call.result),
        gradients=encoder.encode(call.gradients),
        cost=call.cost,
        lines=call.lines,
        launch=call.launch,
    )


def _restore_call(stored: _StoredCall, decoder: Decoder) -> Call:
    call = Call(stored.name, (), {}, changed=stored.changed, inputs=stored.inputs)
    if stored.error is not None:
        error = stored.error
        call.fault = StudentError(error.type_name, error.message, error.innermost)
    elif stored.fault is not None:
        call.fault = _FAULTS[stored.fault]()
    else:
        call.result = decoder.decode(stored.result)
        call.gradients = decoder.decode(stored.gradients)
        if not isinstance(call.gradients, list):
            raise ValueError("gradients are a list")
        call.cost = stored.cost
        call.lines = stored.lines
        call.launch = stored.launch
    return call
