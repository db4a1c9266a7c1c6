"""Gradients of what a worker answered are asked of the worker, which the test plays: its function
is x → 3 · x.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from autograder.basics.errors import StudentCrashed
from autograder.course import Limits
from autograder.sandbox.stand_in_answers import StandIns, WorkerObject
from autograder.sandbox.student import Student
from autograder.suite.calls import start_log
from autograder.wire.frames import Block, Frame, WireError
from autograder.wire.values import Decoder, Encoder


def writable(tensors: dict[str, Block]) -> dict[str, Block]:
    """Blocks as a socket brings them."""
    return {
        key: block._replace(data=bytearray(block.data))
        for key, block in tensors.items()
    }


class Tripling:
    """A worker's side. `backward` has the gradients that it answers, or else the right one."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.names: list[str] = []
        self.backward: list[torch.Tensor] | None = None
        self.alive = True
        self.stand_ins = StandIns({}, Limits())

    def __call__(self, header: dict[str, Any], tensors: dict[str, Block]) -> Frame:
        self.requests.append(header)
        sent = Decoder(writable(tensors), lambda reference: reference).decode(
            header["value"]
        )
        if header["op"] == "call":
            answer: Any = 3 * sent[0][0]
        elif self.backward is None:
            answer = [3 * gradient for gradient in sent]
        else:
            answer = self.backward
        encoder = Encoder(lambda _: None)
        reply = {"ok": True, "id": len(self.requests), "value": encoder.encode(answer)}
        return Frame(reply, writable(encoder.tensors))

    def request(
        self, header: dict[str, Any], tensors: Any, seconds: float, name: str
    ) -> Frame:
        assert seconds == 5.0
        self.names.append(name)
        return self(header, tensors)

    def kill(self) -> None:
        self.alive = False


@pytest.fixture
def worker() -> Tripling:
    return Tripling()


def leaf() -> torch.Tensor:
    return torch.tensor([1.0, 2.0], requires_grad=True)


def test_a_calls_gradients_come_from_the_worker_that_answered(worker: Any) -> None:
    """Of the sum of (3 · x)², 18 · x."""
    log = start_log({"triple": lambda x: 3 * x})
    student = Student.in_worker(worker, 5.0)
    x = leaf()
    result = student.triple(x)
    assert result.tolist() == [3.0, 6.0]
    (gradient,) = torch.autograd.grad((result * result).sum(), x)
    assert gradient.tolist() == [18.0, 36.0]
    call, backward = worker.requests
    assert (call["op"], backward["op"], backward["call"]) == ("call", "backward", 1)
    assert worker.names == ["triple", "the backward pass of triple"]
    (noted,) = log.calls
    assert [[g.tolist() for g in gradients] for gradients in noted.gradients] == [
        [[18.0, 36.0]]
    ]


def test_without_gradients_nothing_is_asked(worker: Any) -> None:
    start_log({"triple": lambda x: 3 * x})
    result = Student.in_worker(worker, 5.0).triple(torch.ones(2))
    assert (result.tolist(), result.requires_grad) == ([3.0, 3.0], False)
    assert WorkerObject(4, worker)(torch.ones(1)).tolist() == [3.0]
    assert [request["op"] for request in worker.requests] == ["call", "call"]


NOTHING = "an answer that cannot be taken"
SHAPE = "a gradient of another shape than its input"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([], NOTHING),
        ([torch.ones(2), torch.ones(2)], NOTHING),
        ([torch.ones(3)], SHAPE),
        ([torch.ones(2, 1)], SHAPE),
    ],
)
def test_gradients_have_the_shapes_of_the_inputs(
    worker: Any, wrong: list[torch.Tensor], words: str
) -> None:
    start_log({"triple": lambda x: 3 * x})
    x = leaf()
    result = Student.in_worker(worker, 5.0).triple(x)
    worker.backward = wrong
    message = rf"^the backward pass of triple gave {words}\.$"
    with pytest.raises(StudentCrashed, match=message):
        torch.autograd.grad(result.sum(), x)
    own = WorkerObject(4, worker)(x)
    with pytest.raises(WireError, match=rf"^{words}$"):
        torch.autograd.grad(own.sum(), x)


def test_an_objects_gradients_come_from_the_worker_that_has_it(worker: Any) -> None:
    x = leaf()
    (gradient,) = torch.autograd.grad((2 * WorkerObject(4, worker)(x)).sum(), x)
    assert gradient.tolist() == [6.0, 6.0]
    call, backward = worker.requests
    assert (call["handle"], backward["op"], backward["call"]) == (4, "backward", 1)
