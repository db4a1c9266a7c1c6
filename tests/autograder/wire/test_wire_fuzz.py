"""The wire against anything: what was sent comes back, and what was not sent properly is a
WireError and no more.
"""

from __future__ import annotations

import contextlib
import json
import math
import socket
import struct
import threading
import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from safetensors.torch import save

from autograder.suite.compare import are_equal
from autograder.wire.frames import (
    MAX_BODY_HEADER,
    MAX_HEADER,
    Frame,
    WireClosed,
    WireError,
    pack,
    receive_frame,
    send_frame,
    unpack,
)
from autograder.wire.values import (
    CODES,
    MAX_DEPTH,
    MAX_KEYS,
    Decoder,
    Encoder,
    HandleReference,
)

LIMIT = 1 << 16
PREFIX = struct.Struct("<IQ")
few = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

REAL = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
WHOLE = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]


@some.composite
def tensors(draw: Any) -> torch.Tensor:
    shape = draw(some.lists(some.integers(0, 4), max_size=4))
    dtype = draw(some.sampled_from(REAL + WHOLE))
    numbers = draw(
        some.lists(some.floats(-100, 100) | some.just(math.nan), min_size=1, max_size=6)
    )
    numbers = [n if dtype in REAL or n == n else 0.0 for n in numbers]
    values = torch.tensor(
        [numbers[i % len(numbers)] for i in range(math.prod(shape))],
        dtype=torch.float64,
    )
    return (
        values.abs().to(dtype).reshape(shape)
        if dtype == torch.uint8
        else values.to(dtype).reshape(shape)
    )


keys = (
    some.text(max_size=8)
    | some.integers(-(2**70), 2**70)
    | some.booleans()
    | some.none()
)
leaves = (
    keys
    | some.floats()
    | some.complex_numbers(allow_nan=False)
    | some.sampled_from([torch.float32, torch.int64, torch.bool])
    | tensors()
)
values = some.recursive(
    leaves,
    lambda inner: (
        some.lists(inner, max_size=4)
        | some.lists(inner, max_size=4).map(tuple)
        | some.dictionaries(keys, inner, max_size=4)
        | some.sets(keys, max_size=4)
    ),
    max_leaves=12,
)


class Bytes:
    """A socket that gives these bytes and ends."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def recv(self, length: int) -> bytes:
        piece = self._data[self._at : self._at + length]
        self._at += len(piece)
        return piece


def receive(data: bytes, limit: int = LIMIT) -> Frame:
    return receive_frame(Bytes(data), limit)  # type: ignore[arg-type]


def raw(header: Any, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return PREFIX.pack(len(text), len(body)) + text + body


def there_and_back(value: Any) -> Any:
    encoder = Encoder(lambda _: None)
    encoded = encoder.encode(value)
    here, there = socket.socketpair()
    with here, there:
        sender = threading.Thread(
            target=send_frame, args=(here, Frame({"value": encoded}, encoder.tensors))
        )
        sender.start()
        frame = receive_frame(there, 1 << 20)
        sender.join()
    return Decoder(frame.tensors).decode(frame.header["value"])


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, (list, tuple)):
        return (
            type(left) is type(right)
            and len(left) == len(right)
            and all(map(equal, left, right))
        )
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(equal(left[k], right[k]) for k in left)
        )
    return type(left) is type(right) and are_equal(left, right)


@few
@given(values)
def test_every_value_comes_back_as_it_went(value: Any) -> None:
    assert equal(there_and_back(value), value)


@pytest.mark.parametrize("dtype", [getattr(torch, name) for name in CODES])
def test_every_dtype_comes_back(dtype: torch.dtype) -> None:
    sent = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).to(dtype)
    came = there_and_back(sent)
    assert came.dtype == dtype
    assert came.tolist() == sent.tolist()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3, 1), (0, 4)])
def test_tensors_of_any_strides_come_back(shape: tuple[int, ...]) -> None:
    """Expanded from one number, as the gradient of a sum is: stride 0 in every direction; and a
    slice of another.
    """
    for value in (
        torch.tensor(2.5).expand(shape),
        torch.arange(64.0)[7:].as_strided(shape, (2,) * len(shape)),
    ):
        assert there_and_back(value).tolist() == value.tolist()


def test_tensors_that_are_views_of_others_come_back() -> None:
    """Transposed, without a dtype of numpy's; the imaginary part of a conjugate, whose sign torch
    keeps in a bit.
    """
    turned = torch.arange(6.0).reshape(2, 3).T.to(torch.bfloat16).T.contiguous().T
    assert there_and_back(turned).tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert there_and_back(torch.tensor([1 + 2j, 3 - 4j]).conj().imag).tolist() == [
        -2.0,
        4.0,
    ]
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        negated = torch._neg_view(torch.tensor([2.0, -4.0], dtype=dtype))
        assert there_and_back(negated).tolist() == [-2.0, 4.0]


def test_arrays_objects_and_handles_come_back() -> None:
    array = there_and_back(np.arange(6.0).reshape(2, 3))
    assert isinstance(array, np.ndarray)
    assert array.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert vars(there_and_back(SimpleNamespace(width=3, rate=0.5))) == {
        "width": 3,
        "rate": 0.5,
    }
    encoded = Encoder(lambda _: HandleReference(7, "Cache")).encode(object())
    assert Decoder({}, lambda reference: reference).decode(encoded) == HandleReference(
        7, "Cache"
    )


@pytest.mark.parametrize("dtype", [name for name in CODES if name != "bfloat16"])
def test_arrays_of_any_dtype_and_layout_come_back(dtype: str) -> None:
    turned = np.array([[0, 1, 0], [1, 0, 1]]).astype(dtype).T
    for sent in (turned, turned[:0], turned[0, 0:1].reshape(())):
        came = there_and_back(sent)
        assert (came.dtype, came.shape, came.tolist()) == (
            sent.dtype,
            sent.shape,
            sent.tolist(),
        )


@pytest.mark.parametrize(
    "numbers",
    [np.array([1j]), np.zeros(2, np.uint16), np.zeros(2, ">f8"), np.array(["a"])],
)
def test_other_arrays_cannot_cross(numbers: np.ndarray[Any, Any]) -> None:
    with pytest.raises(
        WireError, match=f"an array of dtype {numbers.dtype} cannot be sent"
    ):
        Encoder(lambda _: None).encode(numbers)


@few
@given(some.binary(max_size=200))
def test_any_bytes_are_a_wire_error_or_a_frame(data: bytes) -> None:
    with pytest.raises((WireError, WireClosed)):
        receive(data)


@few
@given(some.binary(max_size=100), some.binary(max_size=200), some.booleans())
def test_any_header_and_any_body_are_a_wire_error_or_a_frame(
    header: bytes, body: bytes, good: bool
) -> None:
    try:
        frame = receive(raw({"id": 1} if good else header, body))
    except (WireError, WireClosed):
        return
    assert isinstance(frame.header, dict)


words = some.sampled_from(["0", "1", "0x1p3", "float32", "nan"])
tags = some.sampled_from([*"tnifcyluedohgsk", "x"])
anything = some.recursive(
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats()
    | some.text(max_size=5)
    | words,
    lambda inner: (
        some.lists(inner, max_size=3) | some.dictionaries(tags, inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(few, max_examples=600)
@given(anything)
def test_any_json_is_a_wire_error_or_a_value(encoded: Any) -> None:
    encoder = Encoder(lambda _: None)
    encoder.encode([torch.ones(2, 2), torch.tensor([True])])
    sent_over = unpack(pack(encoder.tensors))
    for strides in (False, True):
        with contextlib.suppress(WireError):
            Decoder(
                sent_over, lambda reference: reference, keep_strides=strides
            ).decode(encoded)


@few
@given(
    some.dictionaries(
        some.text(max_size=3),
        some.fixed_dictionaries(
            {
                "dtype": some.sampled_from(
                    ["F64", "BOOL", "I8", "BF16", "F8_E4M3", "X"]
                ),
                "shape": some.lists(
                    some.integers(-1, 2**62) | some.integers(0, 3), max_size=4
                ),
                "data_offsets": some.lists(
                    some.integers(-1, 2**62) | some.integers(0, 16),
                    min_size=1,
                    max_size=3,
                ),
            }
        ),
        max_size=3,
    ),
    some.binary(max_size=32),
)
def test_any_description_of_tensors_is_a_wire_error_or_tensors(
    described: Any, data: bytes
) -> None:
    text = json.dumps(described).encode()
    try:
        frame = receive(raw({"id": 1}, struct.pack("<Q", len(text)) + text + data))
        for name in frame.tensors:
            Decoder(frame.tensors).decode({"t": name})
    except (WireError, WireClosed):
        pass


# bounds, each by its own example


def test_lengths_are_refused_before_a_byte_of_them_is_read() -> None:
    with pytest.raises(WireError, match="a header of"):
        receive(PREFIX.pack(MAX_HEADER + 1, 0))
    with pytest.raises(WireError, match="an answer of"):
        receive(PREFIX.pack(2, LIMIT + 1) + b"{}")


def test_an_announced_length_takes_no_memory() -> None:
    tracemalloc.start()
    with pytest.raises(WireClosed):
        receive(PREFIX.pack(2, 1 << 40) + b"{}" + b"x" * 100, limit=1 << 41)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_deep_headers_are_refused() -> None:
    for depth in (200, 900, 100_000):
        with pytest.raises(WireError):
            receive(raw(b'{"x":' + b"[" * depth + b"]" * depth + b"}"))


def test_the_deepest_value_that_may_be_sent_arrives() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = {1: value}
    assert there_and_back(value) == value


def test_a_long_list_of_names_is_refused() -> None:
    body = struct.pack("<Q", MAX_BODY_HEADER + 1) + b" " * (MAX_BODY_HEADER + 1)
    with pytest.raises(WireError, match="list of names"):
        receive(raw({"id": 1}, body), limit=1 << 22)


def test_keys_that_collide_are_refused_and_text_is_not() -> None:
    colliding = {"d": [[{"i": str(n * (2**61 - 1))}, 0] for n in range(MAX_KEYS + 1)]}
    with pytest.raises(WireError, match="keys"):
        Decoder({}).decode(colliding)
    assert (
        len(Decoder({}).decode({"d": [[str(n), 0] for n in range(MAX_KEYS + 1)]}))
        == MAX_KEYS + 1
    )


def test_the_trusted_side_takes_no_layout() -> None:
    sent = {"t": "0", "s": [1 << 20, 1 << 10]}
    encoder = Encoder(lambda _: None)
    encoder.encode(torch.ones(4, 4))
    assert Decoder(unpack(pack(encoder.tensors))).decode(sent).stride() == (4, 1)


def test_an_empty_tensor_may_not_be_wide() -> None:
    frame = receive(raw({"id": 1}, save({"0": torch.empty(0, 1 << 40)})))
    with pytest.raises(WireError, match="empty tensor"):
        Decoder(frame.tensors).decode({"t": "0"})


def test_a_bool_is_zero_or_one() -> None:
    body = save({"0": torch.zeros(4, dtype=torch.bool)})[:-4] + b"\x00\x01\x02\xff"
    came = Decoder(receive(raw({"id": 1}, body)).tensors).decode({"t": "0"})
    assert came.view(torch.uint8).tolist() == [0, 1, 1, 1]


class OutOfPatience(Exception):
    """What ends the waiting in these tests."""


class NoPatience:
    """Waits for nobody."""

    def wait(self, *, write: bool) -> None:
        raise OutOfPatience("to write" if write else "to read")

    def look(self) -> None:
        raise OutOfPatience("looked at")


def test_half_a_frame_is_waited_for() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.setblocking(False)
        here.send(PREFIX.pack(100, 0) + b"{")
        with pytest.raises(OutOfPatience, match="to read"):
            receive_frame(there, LIMIT, NoPatience())


def test_somebody_who_does_not_read_is_waited_for() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        with pytest.raises(OutOfPatience, match="to write"):
            send_frame(here, Frame({"x": "y" * 1_000_000}, {}), NoPatience())


def test_a_frame_that_comes_in_single_bytes_is_looked_at_though_nobody_waits_for_it() -> (
    None
):
    class OneByteAtOnce(Bytes):
        def recv(self, most: int) -> bytes:
            return super().recv(1)

    sock: Any = OneByteAtOnce(PREFIX.pack(100, 0) + b"{" * 100)
    with pytest.raises(OutOfPatience, match="looked at"):
        receive_frame(sock, LIMIT, NoPatience())


def test_descriptors_that_come_along_are_dropped() -> None:
    here, there = socket.socketpair()
    with here, there:
        socket.send_fds(here, [raw({"id": 1})], [0, 1, 2])
        before = _open()
        assert receive_frame(there, LIMIT).header == {"id": 1}
        assert _open() == before


def _open() -> int:
    from pathlib import Path

    return len(list(Path("/proc/self/fd").iterdir()))
