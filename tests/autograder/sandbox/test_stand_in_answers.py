"""The trusted side of stand-ins, with a worker that the test plays: what it may ask, and what it is
told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from autograder.basics.errors import HostFailed
from autograder.course import Limits
from autograder.sandbox import stand_in_answers
from autograder.sandbox.stand_in_answers import (
    StandIns,
    WorkerObject,
    _worker_reference,
)
from autograder.suite.calls import size_in_bytes
from autograder.wire.frames import Block, Frame
from autograder.wire.values import Decoder, Encoder, HandleReference


class Cache:
    """A class of the answer key's, with state."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._rows = 0

    def append(self, rows: int) -> int:
        self._rows += rows
        return self._rows

    def __len__(self) -> int:
        return self._rows

    def _forget(self) -> None:
        self._rows = 0


def refuse_size(x: torch.Tensor) -> torch.Tensor:
    raise ValueError(f"the secret is {len(x)}")


def spin() -> None:
    while True:
        pass


def fail(x: torch.Tensor) -> torch.Tensor:
    raise KeyError("secret 7")


NAMES: dict[str, Any] = {
    "square": lambda x: x * x,
    "Cache": Cache,
    "refuse_size": refuse_size,
    "fail": fail,
}


def no_worker(header: dict[str, Any], tensors: object) -> Frame:
    raise AssertionError(f"nothing is asked back, and not {header}")


def writable(tensors: dict[str, Block]) -> dict[str, Block]:
    """Blocks as they arrive: a socket's bytes can be written to, unlike an encoder's."""
    return {
        key: block._replace(data=bytearray(block.data))
        for key, block in tensors.items()
    }


def ask(
    answers: StandIns,
    question: dict[str, Any],
    *arguments: Any,
    worker: Callable[..., Frame] = no_worker,
) -> dict[str, Any]:
    """The header of the reply to one question, with its decoded value."""
    encoder = Encoder(
        lambda value: value if isinstance(value, HandleReference) else None
    )
    value = encoder.encode([list(arguments), {}])
    header = {"id": 5, "stand_in": question, "value": value}
    reply = answers.answer(Frame(header, writable(encoder.tensors)), worker)
    assert reply.header["id"] == 5
    if "value" in reply.header:
        decoder = Decoder(writable(reply.tensors), lambda reference: reference)
        return {**reply.header, "value": decoder.decode(reply.header["value"])}
    return reply.header


@pytest.fixture
def answers() -> StandIns:
    return StandIns(NAMES, Limits())


def test_a_worker_is_told_functions_and_methods_of_classes(answers: StandIns) -> None:
    request = answers.request()
    assert request["op"] == "stand_in"
    assert sorted(request["functions"]) == ["fail", "refuse_size", "square"]
    assert request["classes"] == {"Cache": ["__len__", "append"]}


def test_questions_are_numbered_and_an_answer_has_a_value(answers: StandIns) -> None:
    assert not answers.has_answered
    first, second = (ask(answers, {"name": "square"}, number) for number in (3, 4))
    assert (first["value"], first["number"]) == (9, 0)
    assert (second["value"], second["number"]) == (16, 1)
    assert answers.has_answered
    assert "cost" not in first


def test_an_answer_has_its_cost_where_costs_are_counted(answers: StandIns) -> None:
    reply = ask(answers, {"name": "square", "cost": True}, torch.ones(2, 3))
    assert reply["cost"][0] == 1  # one operation
    assert reply["cost"][2] == 6  # of six numbers


def test_a_gradient_is_that_of_the_question_which_it_names(answers: StandIns) -> None:
    """Of x², at 3 and at 5: 6 and 10, times 1 and 2."""
    for number in (3.0, 5.0):
        ask(answers, {"name": "square"}, torch.tensor([number], requires_grad=True))
    encoder = Encoder(lambda _: None)
    for question, sent, expected in ((0, 1.0, [6.0]), (1, 2.0, [20.0])):
        value = encoder.encode([torch.tensor([sent])])
        header = {"id": 5, "stand_in": {"backward": question}, "value": value}
        reply = answers.answer(Frame(header, writable(encoder.tensors)), no_worker)
        (gradient,) = Decoder(writable(reply.tensors), lambda _: None).decode(
            reply.header["value"]
        )
        assert gradient.tolist() == expected


def test_an_object_stays_here_and_its_methods_are_called(answers: StandIns) -> None:
    reference = ask(answers, {"name": "Cache"}, 7)["value"]
    assert (reference.number, reference.kind) == (0, "Cache")
    assert ask(answers, {"object": 0, "method": "append"}, 2)["value"] == 2
    assert ask(answers, {"object": 0, "method": "append"}, 3)["value"] == 5
    assert ask(answers, {"object": 0, "method": "__len__"})["value"] == 5
    assert ask(answers, {"object": 0, "attribute": "size"})["value"] == 7
    assert ask(answers, {"name": "Cache"}, 1)["value"].number == 1


def test_an_object_that_comes_back_as_an_argument_is_the_same_one() -> None:
    seen: list[Cache] = []

    def size_of(cache: Cache) -> Cache:
        seen.append(cache)
        return cache

    answers = StandIns({**NAMES, "size_of": size_of}, Limits())
    ask(answers, {"name": "Cache"}, 7)
    ask(answers, {"name": "Cache"}, 8)
    returned = ask(answers, {"name": "size_of"}, HandleReference(1, "Cache"))["value"]
    assert [cache.size for cache in seen] == [8]
    assert (returned.number, returned.kind) == (1, "Cache")
    ask(answers, {"name": "size_of"}, HandleReference(0, "Cache"))
    assert [cache.size for cache in seen] == [8, 7]


def test_an_object_is_known_by_its_own_class_alone() -> None:
    class Pool:
        pass

    answers = StandIns({**NAMES, "Pool": Pool, "stranger": object}, Limits())
    del answers._classes["stranger"]
    reference = ask(answers, {"name": "Pool"})["value"]
    assert (reference.number, reference.kind) == (0, "Pool")
    assert "refused" in ask(answers, {"name": "stranger"})


@pytest.mark.parametrize(
    "question",
    [
        {"name": "missing"},
        {"object": 3, "method": "append"},
        {"object": 0, "method": "_forget"},
        {"object": 0, "method": "__init__"},
        {"object": 0, "attribute": "_rows"},
        {"object": 0, "attribute": "__class__"},
        {"function": -1},
        {"backward": 9},
        {},
    ],
)
def test_what_was_not_lent_is_refused(
    answers: StandIns, question: dict[str, Any]
) -> None:
    ask(answers, {"name": "Cache"}, 7)
    reply = ask(answers, question)
    assert "value" not in reply
    assert "refused" in reply or "raised" in reply


def test_a_refusal_says_the_sizes_of_a_value_error_and_no_word(
    answers: StandIns,
) -> None:
    assert ask(answers, {"name": "refuse_size"}, torch.ones(5))["refused"] == (
        "these arguments cannot be right (5)"
    )
    assert (
        ask(answers, {"name": "fail"}, 1)["refused"]
        == "these arguments cannot be right"
    )


def test_a_refusal_says_twelve_sizes_at_most() -> None:
    def refuse() -> None:
        raise ValueError("not " + " ".join(map(str, range(20))))

    (refusal,) = {
        ask(StandIns({"refuse": refuse}, Limits()), {"name": "refuse"})["refused"]
    }
    numbers = ", ".join(map(str, range(12)))
    assert refusal == f"these arguments cannot be right ({numbers})"


def test_a_function_of_the_tests_own_is_lent_once_and_its_error_is_told(
    answers: StandIns,
) -> None:
    numbers = [answers.lend(function) for function in (len, fail, len)]
    assert numbers == [-1, -2, -1]
    assert ask(answers, {"function": -1}, [1, 2])["value"] == 2
    assert ask(answers, {"function": -2}, 1)["raised"] == "KeyError: 'secret 7'"
    answers.lend(refuse_long := lambda: exec("raise ValueError('x' * 400)"))
    assert len(ask(answers, {"function": answers.lend(refuse_long)})["raised"]) == 300


def test_a_lent_function_without_gradients_is_no_link(answers: StandIns) -> None:
    answers.lend(lambda x: x)
    assert ask(answers, {"function": -1}, 1)["number"] == -1
    x = torch.ones(1, requires_grad=True)
    assert ask(answers, {"function": -1}, x)["number"] == 0
    assert ask(answers, {"function": -1}, 1)["number"] == 0


def test_questions_and_their_size_are_bounded(
    answers: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    ten = torch.ones(10, dtype=torch.float64)
    monkeypatch.setattr(
        stand_in_answers, "LARGEST_QUESTION", size_in_bytes([[ten], {}])
    )
    assert ask(answers, {"name": "square"}, ten)["number"] == 0
    assert "refused" in ask(
        answers, {"name": "square"}, torch.ones(11, dtype=torch.float64)
    )
    monkeypatch.setattr(stand_in_answers, "MOST_QUESTIONS", 2)
    assert ask(answers, {"name": "square"}, 1)["number"] == 1
    assert "refused" in ask(answers, {"name": "square"}, 1)
    answers.lend(len)
    assert ask(answers, {"function": -1}, [1])["raised"] == (
        "WireError: too many questions to stand-ins, or too large a one"
    )


@pytest.mark.parametrize(("asked", "is_answered"), [(9_999, True), (10_000, False)])
def test_a_worker_may_ask_ten_thousand_questions(
    answers: StandIns, asked: int, is_answered: bool
) -> None:
    answers._links = [([], [])] * asked
    assert ("value" in ask(answers, {"name": "square"}, 3)) is is_answered


@pytest.mark.parametrize(("megabytes", "is_answered"), [(15, True), (17, False)])
def test_a_question_may_have_16_megabytes(megabytes: int, is_answered: bool) -> None:
    answers = StandIns({"length": len}, Limits())
    numbers = torch.zeros(megabytes << 20, dtype=torch.uint8)
    assert ("value" in ask(answers, {"name": "length"}, numbers)) is is_answered


def test_answers_share_the_time_of_four_calls() -> None:
    assert StandIns({}, Limits(call_seconds=2.0))._seconds == 8.0
    answers = StandIns({"spin": spin}, Limits(call_seconds=0.025))
    assert "refused" in ask(answers, {"name": "spin"})
    assert answers._seconds < 0.1 - 0.05


def test_a_fault_of_the_machine_is_no_refusal(answers: StandIns) -> None:
    def broken(header: dict[str, Any], tensors: object) -> Frame:
        raise HostFailed("the host is gone")

    own = HandleReference(-1, "Layer")
    names = {**NAMES, "width": lambda layer: layer.width}
    with pytest.raises(HostFailed):
        ask(StandIns(names, Limits()), {"name": "width"}, own, worker=broken)


# an object of the worker's among the arguments


class PlayedWorker:
    """Answers requests about its objects as the test says, and keeps them."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.replies = iter(replies)
        self.requests: list[dict[str, Any]] = []

    def __call__(self, header: dict[str, Any], tensors: object) -> Frame:
        self.requests.append(header)
        return Frame(next(self.replies), {})


def encoded(value: Any) -> Any:
    return Encoder(
        lambda part: part if isinstance(part, HandleReference) else None
    ).encode(value)


def test_an_attribute_of_the_workers_object_is_asked_for() -> None:
    worker = PlayedWorker({"ok": True, "value": encoded(3)})
    assert WorkerObject(4, worker).width == 3
    assert worker.requests == [{"op": "get", "handle": 4, "attribute": "width"}]


def test_a_method_of_the_workers_object_is_called_there() -> None:
    worker = PlayedWorker(
        {"ok": True, "method": True}, {"ok": True, "value": encoded(9)}
    )
    assert WorkerObject(4, worker).grow(2, by=3) == 9
    call = worker.requests[1]
    assert (call["op"], call["handle"], call["attribute"]) == ("call", 4, "grow")
    assert Decoder({}, lambda _: None).decode(call["value"]) == [[2], {"by": 3}]


def test_the_workers_object_itself_is_called_and_crosses_back() -> None:
    inner = HandleReference(6, "Layer")
    worker = PlayedWorker(
        {"ok": True, "value": encoded(inner)}, {"ok": True, "value": encoded(1)}
    )
    layer = WorkerObject(4, worker)
    returned = layer(layer)
    assert returned() == 1
    assert [request["handle"] for request in worker.requests] == [4, 6]
    sent = Decoder({}, lambda reference: reference.number).decode(
        worker.requests[0]["value"]
    )
    assert sent == [[4], {}]


def test_what_the_workers_object_has_not_or_refuses_is_an_error() -> None:
    worker = PlayedWorker(
        {"ok": False}, {"ok": 1}, {"error": {"message": "no"}}, {"error": "no"}
    )
    layer = WorkerObject(4, worker)
    assert not hasattr(layer, "width")
    assert not hasattr(layer, "width")
    assert not hasattr(layer, "_width")
    assert len(worker.requests) == 2
    with pytest.raises(ValueError, match=r"^no$"):
        layer()
    with pytest.raises(ValueError, match=r"^$"):
        layer()


def test_a_number_below_0_is_an_object_of_the_workers() -> None:
    """The third one's, which has number 2 there."""
    worker = PlayedWorker({"ok": True, "value": encoded(3)})
    names = {**NAMES, "width": lambda layer: layer.width}
    reply = ask(
        StandIns(names, Limits()),
        {"name": "width"},
        HandleReference(-3, "Layer"),
        worker=worker,
    )
    assert reply["value"] == 3
    assert [request["handle"] for request in worker.requests] == [2]


def test_only_objects_in_the_worker_are_told_by_their_number() -> None:
    def ask(header: object, tensors: object) -> Frame:
        raise AssertionError

    assert _worker_reference(WorkerObject(7, ask)) == HandleReference(7)
    for value in (7, None, Cache(1)):
        assert _worker_reference(value) is None
