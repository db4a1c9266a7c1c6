"""Python values as JSON and blocks of numbers, and back.

    None, bool, str, int below 2^63      themselves
    {"i": "…"}  {"f": hex}  {"c": [re, im]}       large int, float, complex
    {"t": key, "g": bool, "s": strides}  {"n": key}  {"y": name}      tensor, array, dtype
    {"l": […]}  {"u": […]}  {"e": […]}            list, tuple, set
    {"d": [[k, v], …]}  {"o": [[name, v], …]}     dict, plain object
    {"h": number, "k": class name}       handle: an object that stays in the worker

Depth and number of values are bounded, on both ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.wire.frames import MAX_TENSORS, Block, WireError
from autograder.wire.libraries import is_tensor, loaded_torch

if TYPE_CHECKING:
    from torch import Tensor

MAX_DEPTH = 24
MAX_VALUES = 100_000
MAX_TEXT = 1 << 20
MAX_DIGITS = 2000
MAX_KEYS = 4096
"""Keys of dicts and elements of sets that are not text, in one frame. Their hashes can be chosen to
collide, and a dict of n that all do takes n² steps to build; those of text cannot.
"""
MAX_EMPTY = 1 << 24
"""What the dimensions of a tensor without elements may multiply to: a sum over [0, 2^40] would ask
for terabytes.
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
"""Dtypes whose numbers may cross, and what safetensors calls them. bfloat16 is torch's alone."""
_NAMES = {code: name for name, code in CODES.items()}
_COMPLEX = frozenset({"complex64", "complex128"})
"""Dtypes that may be named, and whose numbers cannot cross."""


@dataclass(frozen=True, slots=True)
class HandleReference:
    """Names an object that stays in the worker."""

    number: int
    kind: str = ""


@dataclass(slots=True)
class Encoder:
    """Encodes values of one frame. `handle_for` names an object that is no data (None: it may not
    cross).
    """

    handle_for: Callable[[Any], HandleReference | None]
    tensors: dict[str, Block] = field(default_factory=dict)
    grad_tensors: list[Tensor] = field(default_factory=list)
    keep_strides: bool = False
    _count: int = 0

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Raises: WireError where the value is too deep, too large, or of a kind that cannot
        cross.
        """
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_VALUES:
            raise WireError("a value nested too deeply, or of too many parts, to cross")
        if value is None or isinstance(value, bool):
            return value
        if is_tensor(value):
            return self._tensor(value)
        if isinstance(value, str):
            return _bounded(str(value))
        if isinstance(value, (int, np.integer)):
            return int(value) if -(2**63) <= value < 2**63 else {"i": _digits(int(value))}
        if isinstance(value, (float, np.floating)):
            return {"f": float(value).hex()}
        if isinstance(value, complex):
            return {"c": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, np.ndarray):
            return {"n": self._put(_block_of_array(value))}
        if (torch := loaded_torch()) is not None and isinstance(value, torch.dtype):
            return {"y": dtype_name(value)}
        return self._container(value, depth + 1)

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, list):
            return {"l": [self.encode(v, depth) for v in value]}
        if isinstance(value, tuple):
            return {"u": [self.encode(v, depth) for v in value]}
        if isinstance(value, (set, frozenset)):
            return {"e": [self.encode(v, depth) for v in value]}
        if isinstance(value, dict):
            return {"d": [[self.encode(k, depth), self.encode(v, depth)] for k, v in value.items()]}
        if type(value) is SimpleNamespace:
            return {"o": [[_bounded(k), self.encode(v, depth)] for k, v in vars(value).items()]}
        reference = value if isinstance(value, HandleReference) else self.handle_for(value)
        if reference is None:
            raise WireError(f"a value of type {type(value).__name__} cannot cross")
        return {"h": reference.number, "k": _bounded(reference.kind)[:200]}

    def _tensor(self, value: Tensor) -> dict[str, Any]:
        encoded: dict[str, Any] = {"t": self._put(_block_of_tensor(value))}
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


def dtype_name(dtype: Any) -> str:
    """The name of a dtype of torch's or numpy's: "float64" rather than "torch.float64"."""
    return str(dtype).removeprefix("torch.")


def _block_of_array(value: np.ndarray[Any, Any]) -> Block:
    name = str(value.dtype)
    if name not in CODES:
        raise WireError(f"an array of dtype {name} cannot cross")
    return Block(CODES[name], value.shape, np.asarray(value).tobytes())


def _block_of_tensor(value: Tensor) -> Block:
    torch, name = loaded_torch(), dtype_name(value.dtype)
    if name in _COMPLEX and value.layout == torch.strided:
        raise WireError("a complex tensor cannot cross")
    if value.layout != torch.strided or value.device.type == "meta" or name not in CODES:
        raise WireError(
            f"a tensor of layout {value.layout}, dtype {value.dtype} on {value.device} cannot cross"
        )
    # a subclass of Tensor becomes a plain one: nothing but numbers crosses
    numbers = value if type(value) is torch.Tensor else value.detach().as_subclass(torch.Tensor)
    if name == "bfloat16":
        numbers = numbers.detach().resolve_neg().view(torch.int16)
    return Block(CODES[name], tuple(value.shape), numbers.numpy(force=True).tobytes())


@dataclass(slots=True)
class Decoder:
    """Decodes values of one frame. `resolve` gives what a handle stands for (None: handles may not
    come).
    """

    tensors: Mapping[str, Block]
    resolve: Callable[[HandleReference], Any] | None = None
    grad_tensors: list[Tensor] = field(default_factory=list)
    keep_strides: bool = False
    """Whether a layout is taken over. The trusted side takes none: a small tensor could be laid out
    over gigabytes.
    """
    device: str = "cpu"
    """Where tensors are put; arrays stay in main memory."""
    _count: int = 0
    _keys: int = 0

    def decode(self, raw: Any, depth: int = 0) -> Any:
        """Raises: WireError where it is no encoded value."""
        try:
            return self._decode(raw, depth)
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
        (tag, content), depth = next(iter(raw.items())), depth + 1
        match tag:
            case "f":
                return float.fromhex(content)
            case "l":
                return [self._decode(part, depth) for part in _listed(content)]
            case "u":
                return tuple(self._decode(part, depth) for part in _listed(content))
            case "t":
                return self._tensor(raw, content)
            case "n":
                return self._array(content)
            case "d":
                return {
                    self._key(key, depth): self._decode(part, depth)
                    for key, part in _listed(content)
                }
            case "e":
                return {self._key(part, depth) for part in _listed(content)}
            case "o":
                return SimpleNamespace(
                    **{str(name): self._decode(part, depth) for name, part in _listed(content)}
                )
            case "i" if len(content) <= MAX_DIGITS:
                return int(content)
            case "c":
                return complex(float.fromhex(content[0]), float.fromhex(content[1]))
            case "y" if content in CODES or content in _COMPLEX:
                return getattr(loaded_torch(), content)
            case "h" if self.resolve is not None and type(content) is int:
                return self.resolve(HandleReference(content, str(raw.get("k", ""))[:200]))
        raise WireError("a value that cannot be read")

    def _tensor(self, raw: dict[str, Any], key: Any) -> Tensor:
        torch = loaded_torch()
        if torch is None:
            raise WireError("a tensor, and this assignment does not use torch")
        block = self._taken(key)
        dtype = getattr(torch, _NAMES[block.dtype])
        # torch makes no tensor of an empty buffer
        value = (
            torch.frombuffer(block.data, dtype=dtype) if block.data else torch.empty(0, dtype=dtype)
        )
        value = value.reshape(block.shape)
        # one that is neither 0 nor 1 is undefined behaviour in every operation on it
        if dtype == torch.bool:
            value = value.view(torch.uint8) != 0
        value = value.to(self.device)
        if "s" in raw and self.keep_strides:
            value = with_strides(value, raw["s"])
        if raw.get("g") is True and value.is_floating_point():
            value = value.detach().requires_grad_(True)
            self.grad_tensors.append(value)
        return value  # type: ignore[no-any-return]

    def _array(self, key: Any) -> Any:
        block = self._taken(key)
        if _NAMES[block.dtype] == "bool":  # as of a tensor
            return (np.frombuffer(block.data, "uint8") != 0).reshape(block.shape)
        return np.frombuffer(block.data, _NAMES[block.dtype]).reshape(block.shape)

    def _taken(self, key: Any) -> Block:
        block = self.tensors[key]
        if block.dtype not in _NAMES:
            raise WireError("a tensor of a dtype that may not cross")
        if not block.data and math.prod(max(size, 1) for size in block.shape) > MAX_EMPTY:
            raise WireError("an empty tensor of a shape too large")
        return block

    def _key(self, raw: Any, depth: int) -> Any:
        key = self._decode(raw, depth)
        self._keys += type(key) is not str
        if self._keys > MAX_KEYS:
            raise WireError(f"more than {MAX_KEYS} keys that are not text")
        return key


def with_strides(value: Tensor, strides: list[int]) -> Tensor:
    """The same numbers laid out with other strides, so that a non-contiguous argument arrives as
    one.
    """
    if len(strides) != value.ndim or not all(type(s) is int and 0 <= s <= 1 << 40 for s in strides):
        raise WireError("strides that do not fit")
    repeated = tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)
    once = value[repeated] if value.ndim else value
    span = (
        1 + sum((n - 1) * s for n, s in zip(once.shape, strides, strict=True))
        if once.numel()
        else 0
    )
    if span > 64 * max(once.numel(), 16):
        return value  # a thin slice of something huge: its layout is not worth the memory
    laid = once.new_empty_strided(once.shape, strides)
    laid.copy_(once)
    return laid.expand(value.shape)


def _listed(values: Any) -> list[Any]:
    if type(values) is not list:
        raise WireError("a list that is none")
    return values


def _bounded(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise WireError(f"a text of {len(text)} characters; at most {MAX_TEXT} can cross")
    return text.encode("utf-8", "replace").decode()


def _digits(value: int) -> str:
    if value.bit_length() > MAX_DIGITS * math.log2(10):
        raise WireError("an integer of too many digits")
    return str(value)
