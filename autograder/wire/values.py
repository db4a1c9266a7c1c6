"""Encodes Python values as JSON and blocks of numbers, and decodes them.

    None, bool, str, int below 2^63      themselves
    {"i": "…"}  {"f": hex}  {"c": [re, im]}       large int, float, complex
    {"t": key, "g": bool, "s": strides}  {"n": key}  {"y": name}      tensor, array, dtype
    {"l": […]}  {"u": […]}  {"e": […]}            list, tuple, set
    {"d": [[k, v], …]}  {"o": [[name, v], …]}     dict, plain object
    {"h": number, "k": class name}       handle: an object that stays in the worker

Depth and number of values are bounded in both directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.wire.frames import MAX_TENSORS, Block, WireError
from autograder.wire.libraries import dtype_name, is_tensor, loaded_torch

if TYPE_CHECKING:
    from torch import Tensor

MAX_DEPTH = 24
MAX_VALUES = 100_000
MAX_TEXT = 1 << 20
MAX_DIGITS = 2000
MAX_KEYS = 4096
"""Keys of dicts and elements of sets that are not text, in one frame. A sender can choose keys
whose hashes collide, and a dict of n such keys takes n² steps to build. Hashes of text are salted.
"""
MAX_EMPTY = 1 << 24
"""Product of the sizes above 0 of a tensor without elements: a sum over [0, 2^40] would ask for
terabytes.
"""

CODES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
"""Dtypes whose numbers may cross, with their names in safetensors. numpy has no bfloat16."""
_NAMES = {code: name for name, code in CODES.items()}
_COMPLEX = frozenset({"complex64", "complex128"})
"""Dtypes that may be named, and whose numbers cannot cross."""
_SEQUENCES = {list: "l", tuple: "u", set: "e", frozenset: "e"}
"""Types of sequences, and the tags of their encodings."""


@dataclass(frozen=True, slots=True)
class HandleReference:
    """Names an object that stays in the worker."""

    number: int
    kind: str = ""


@dataclass(slots=True)
class Encoder:
    """Encodes the values of one frame.

    Attributes:
        handle_for: the handle of an object that is no data; None where the object may not cross.
        tensors: the blocks of the encoded tensors and arrays.
        grad_tensors: the encoded tensors that require a gradient.
        keep_strides: whether the layout of a tensor crosses too.
    """

    handle_for: Callable[[Any], HandleReference | None]
    tensors: dict[str, Block] = field(default_factory=dict)
    grad_tensors: list[Tensor] = field(default_factory=list)
    keep_strides: bool = False
    _count: int = 0

    def encode(self, value: Any, depth: int = 0) -> Any:
        """The value as JSON.

        Raises:
            WireError: the value is nested too deeply, too large, or of a type that cannot cross.
        """
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_VALUES:
            raise WireError("a value nested too deeply, or of too many parts")
        if value is None or isinstance(value, bool):
            return value
        if is_tensor(value):
            return self._tensor(value)
        if isinstance(value, str):
            return _bounded(str(value))
        if isinstance(value, (int, np.integer)):
            number = int(value)
            if -(2**63) <= number < 2**63:
                return number
            return {"i": _digits(number)}
        if isinstance(value, (float, np.floating)):
            return {"f": float(value).hex()}
        if isinstance(value, complex):
            return {"c": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, np.ndarray):
            return {"n": self._put(_block_of_array(value))}
        torch = loaded_torch()
        if torch is not None and isinstance(value, torch.dtype):
            return {"y": dtype_name(value)}
        return self._container(value, depth + 1)

    def _container(self, value: Any, depth: int) -> Any:
        for kind, tag in _SEQUENCES.items():
            if isinstance(value, kind):
                return {tag: [self.encode(part, depth) for part in value]}
        if isinstance(value, dict):
            pairs = []
            for key, part in value.items():
                pair = [self.encode(key, depth), self.encode(part, depth)]
                pairs.append(pair)
            return {"d": pairs}
        if type(value) is SimpleNamespace:
            attributes = []
            for name, part in vars(value).items():
                attributes.append([_bounded(name), self.encode(part, depth)])
            return {"o": attributes}
        reference = value
        if not isinstance(value, HandleReference):
            reference = self.handle_for(value)
        if reference is None:
            raise WireError(
                f"a value of type {type(value).__name__} cannot be sent to the checks"
            )
        return {"h": reference.number, "k": _bounded(reference.kind)[:200]}

    def _tensor(self, value: Tensor) -> dict[str, Any]:
        block = _block_of_tensor(value)
        encoded: dict[str, Any] = {"t": self._put(block)}
        if value.requires_grad:
            encoded["g"] = True
            self.grad_tensors.append(value)
        if self.keep_strides and not value.is_contiguous():
            encoded["s"] = list(value.stride())
        return encoded

    def _put(self, block: Block) -> str:
        if len(self.tensors) >= MAX_TENSORS:
            raise WireError(f"more than {MAX_TENSORS} tensors in one answer")
        key = str(len(self.tensors))
        self.tensors[key] = block
        return key


def _block_of_array(value: np.ndarray[Any, Any]) -> Block:
    name = str(value.dtype)
    if name not in CODES:
        raise WireError(f"an array of dtype {name} cannot be sent to the checks")
    data = np.asarray(value).tobytes()
    return Block(CODES[name], value.shape, data)


def _block_of_tensor(value: Tensor) -> Block:
    torch = loaded_torch()
    name = dtype_name(value.dtype)
    is_strided = value.layout == torch.strided
    if name in _COMPLEX and is_strided:
        raise WireError("a complex tensor cannot be sent to the checks")
    if not is_strided or value.device.type == "meta" or name not in CODES:
        raise WireError(
            f"a tensor of layout {value.layout}, dtype {value.dtype} on {value.device} cannot be "
            "sent to the checks"
        )
    numbers = value
    if type(value) is not torch.Tensor:  # a subclass could answer for itself
        numbers = value.detach().as_subclass(torch.Tensor)
    if name == "bfloat16":
        numbers = numbers.detach().resolve_neg().view(torch.int16)
    data = numbers.numpy(force=True).tobytes()
    return Block(CODES[name], tuple(value.shape), data)


@dataclass(slots=True)
class Decoder:
    """Decodes the values of one frame.

    Attributes:
        tensors: the blocks of the frame.
        resolve: the object of a handle; None where handles are not allowed.
        grad_tensors: the decoded tensors that require a gradient.
        keep_strides: whether to restore the layout of a tensor. The trusted side does not: a small
            tensor could be laid out over gigabytes.
        device: the device of decoded tensors; arrays stay in main memory.
    """

    tensors: Mapping[str, Block]
    resolve: Callable[[HandleReference], Any] | None = None
    grad_tensors: list[Tensor] = field(default_factory=list)
    keep_strides: bool = False
    device: str = "cpu"
    _count: int = 0
    _keys: int = 0

    def decode(self, raw: Any) -> Any:
        """The value of its JSON.

        Raises:
            WireError: this is no encoded value.
        """
        try:
            return self._decode(raw, 0)
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            RuntimeError,
        ) as error:
            raise WireError("a value that cannot be read") from error

    def _decode(self, raw: Any, depth: int) -> Any:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_VALUES:
            raise WireError("a value nested too deeply, or of too many parts")
        if raw is None or type(raw) in (bool, str, int):
            return raw
        if type(raw) is not dict or not raw:
            raise WireError("a value that cannot be read")
        tag, content = next(iter(raw.items()))
        depth += 1
        match tag:
            case "f":
                return float.fromhex(content)
            case "l" | "u":
                parts = [self._decode(part, depth) for part in _listed(content)]
                return parts if tag == "l" else tuple(parts)
            case "t":
                return self._tensor(raw, content)
            case "n":
                return self._array(content)
            case "d":
                pairs = _listed(content)
                return {
                    self._key(key, depth): self._decode(part, depth)
                    for key, part in pairs
                }
            case "e":
                return {self._key(part, depth) for part in _listed(content)}
            case "o":
                pairs = _listed(content)
                attributes = {
                    str(name): self._decode(part, depth) for name, part in pairs
                }
                return SimpleNamespace(**attributes)
            case "i" if len(content) <= MAX_DIGITS:
                return int(content)
            case "c":
                real, imaginary = map(float.fromhex, content)
                return complex(real, imaginary)
            case "y" if content in CODES or content in _COMPLEX:
                return getattr(loaded_torch(), content)
            case "h" if self.resolve is not None and type(content) is int:
                kind = str(raw.get("k", ""))
                return self.resolve(HandleReference(content, kind[:200]))
        raise WireError("a value that cannot be read")

    def _tensor(
        self,
        raw: dict[str, Any],
        key: Any,
    ) -> Tensor:
        torch = loaded_torch()
        if torch is None:
            raise WireError("a tensor, and this assignment does not use torch")
        block = self._block(key)
        dtype = getattr(torch, _NAMES[block.dtype])
        if block.data:
            value = torch.frombuffer(block.data, dtype=dtype)
        else:  # torch makes no tensor of an empty buffer
            value = torch.empty(0, dtype=dtype)
        value = value.reshape(block.shape)
        # a bool whose byte is neither 0 nor 1 is undefined behaviour in every operation
        if dtype == torch.bool:
            value = value.view(torch.uint8) != 0
        value = value.to(self.device)
        if "s" in raw and self.keep_strides:
            value = _with_strides(value, raw["s"])
        if raw.get("g") is True and value.is_floating_point():
            value = value.detach().requires_grad_(True)
            self.grad_tensors.append(value)
        return value  # type: ignore[no-any-return]

    def _array(self, key: Any) -> Any:
        block = self._block(key)
        dtype = _NAMES[block.dtype]
        if dtype == "bool":  # normalized as in a tensor
            values = np.frombuffer(block.data, "uint8") != 0
        else:
            values = np.frombuffer(block.data, dtype)
        return values.reshape(block.shape)

    def _block(self, key: Any) -> Block:
        """The block of that key, checked.

        Raises:
            WireError: its dtype may not cross, or its shape is too large.
        """
        block = self.tensors[key]
        if block.dtype not in _NAMES:
            raise WireError("a tensor of a dtype that may not cross")
        if not block.data:
            sizes = [max(size, 1) for size in block.shape]
            if math.prod(sizes) > MAX_EMPTY:
                raise WireError("an empty tensor of a shape too large")
        return block

    def _key(self, raw: Any, depth: int) -> Any:
        key = self._decode(raw, depth)
        self._keys += type(key) is not str
        if self._keys > MAX_KEYS:
            raise WireError(f"more than {MAX_KEYS} keys that are not text")
        return key


def _with_strides(value: Tensor, strides: list[int]) -> Tensor:
    """The same numbers with other strides, so that a non-contiguous argument arrives as one."""
    if len(strides) != value.ndim:
        raise WireError("strides that do not fit")
    core = value
    for axis, stride in enumerate(strides):
        if type(stride) is not int or not 0 <= stride <= 1 << 40:
            raise WireError("strides that do not fit")
        if (
            stride == 0 and value.shape[axis]
        ):  # an expanded axis repeats its first element
            core = core.narrow(axis, 0, 1)
    span = 1
    for size, stride in zip(core.shape, strides, strict=True):
        span += (size - 1) * stride
    if core.numel() and span > 64 * max(core.numel(), 16):
        return (
            value  # a thin slice of something huge: its layout is not worth the memory
        )
    strided = core.new_empty_strided(core.shape, strides)
    strided.copy_(core)
    return strided.expand(value.shape)


def _listed(values: Any) -> list[Any]:
    if type(values) is not list:
        raise WireError("no list where one should be")
    return values


def _bounded(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise WireError(
            f"a text of {len(text)} characters; at most {MAX_TEXT} can be sent to the checks"
        )
    return text.encode("utf-8", "replace").decode()


def _digits(value: int) -> str:
    if value.bit_length() > MAX_DIGITS * math.log2(10):
        raise WireError("an integer of too many digits")
    return str(value)
