"""Makes all calls of a script in one request to the worker.

The search for an example plays scripts by the dozen, with many small calls each: the way to the
worker and back would cost more than the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.basics.errors import StudentCrashed, StudentFault
from autograder.sandbox.reply_parts import read_texts
from autograder.sandbox.student import Student, argument_encoder
from autograder.sandbox.worker_process import Worker
from autograder.suite.calls import Call
from autograder.suite.scripts import Script, ScriptStep, map_leaves
from autograder.wire.bundles import bundle, unbundle
from autograder.wire.frames import Frame, WireError
from autograder.wire.libraries import is_tensor


def call_in_one_request(student: Student, script: Script) -> list[Call]:
    """The calls of a script's steps, up to the first that ends in a fault, without gradients. An
    object among the answers is a handle.

    Raises:
        StudentFault: there is no worker, or it gives no answer to the script as a whole.
    """
    worker = student._get_worker()
    requests = [_request(student, worker, script, step) for step in script.steps]
    headers, tensors = bundle(requests)
    names = ", ".join(dict.fromkeys(step.name for step in script.steps))
    reply = worker.request(
        {"op": "script", "requests": headers}, tensors, student._call_seconds, names
    )
    try:
        answers = unbundle(reply.header.get("replies"), reply.tensors)
    except WireError as error:
        worker.kill()
        raise StudentCrashed(
            f"{names} gave an answer that cannot be taken: {error}."
        ) from None
    calls: list[Call] = []
    for step, answer in zip(script.steps, answers, strict=False):
        call = Call(_name(step, calls), step.arguments, dict(step.keywords))
        calls.append(call)
        call.changed = read_texts(answer.header.get("changed"), 80)
        try:
            call.result = student._read_value(answer, call, worker)
        except StudentFault as fault:
            call.fault = fault
            break
    return calls


def _request(
    student: Student, worker: Worker, script: Script, step: ScriptStep
) -> Frame:
    """The request for one step, as it would be made alone."""
    target = _target(student, script, step)
    if step.kind == "read":
        return Frame({"op": "get", **target}, {})
    encoder = argument_encoder(worker)
    arguments = [_detached(part) for part in step.arguments]
    keywords = {name: _detached(part) for name, part in step.keywords.items()}
    value = encoder.encode([arguments, keywords])
    return Frame({"op": "call", **target, "value": value}, encoder.tensors)


def _target(student: Student, script: Script, step: ScriptStep) -> Mapping[str, Any]:
    """The part of a request that says what is called."""
    if step.on is not None:
        return {"answer": step.on.step, "attribute": step.name}
    if step.kind == "helper":
        helper = student.define(script.helpers, step.name, sees_notebook=True)
        return {"handle": helper.reference.number}
    return {"name": step.name}


def _detached(value: Any) -> Any:
    return map_leaves(lambda leaf: leaf.detach() if is_tensor(leaf) else leaf, value)


def _name(step: ScriptStep, calls: list[Call]) -> str:
    """The name of a step's call in messages."""
    if step.on is None:
        return step.name
    owner = calls[step.on.step].result
    return f"{getattr(owner, 'name', 'the answer')}.{step.name}"
