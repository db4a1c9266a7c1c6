"""The roofline of a function's kernels: how fast their products and their traffic let them be on a
GPU, by the counts of a trace. Notebooks import GPUs' figures and `resources` from here too.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from autograder.kernels.gpu_figures import H100, H200, Gpu
from autograder.kernels.launch_capture import KernelLaunch, capture_launches
from autograder.kernels.resources import GpuCompilation, resources

__all__ = ["H100", "H200", "Roofline", "resources", "roofline"]

_DOT = re.compile(r"tt\.dot [^:]*?(inputPrecision = tf32)?\s*: tensor<[\dx]+x(\w+)[,>]")
_WHOLE, _ROUNDED, _HALF = "float32", "tf32", "half"


@dataclass(frozen=True)
class Roofline:
    """The work of a function's kernels.

    Attributes:
        flops: operations of `tl.dot`; a product and its sum are two.
        bytes_moved: bytes that programs load and store. Some come from the chip's cache: a GPU can
            be faster than this traffic says.
        precision: of the slowest product: "float32", "tf32" or "half"; "half" where there is none.
    """

    flops: int
    bytes_moved: int
    precision: str

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.bytes_moved

    def flops_a_second(self, gpu: Gpu) -> float:
        """The most that the GPU can do of these operations in a second."""
        return min(self.peak(gpu), self.intensity * gpu.bytes_a_second)

    def peak(self, gpu: Gpu) -> float:
        """The GPU's speed for products of this precision, if no byte had to be moved."""
        peaks = {
            _WHOLE: gpu.float32_flops,
            _ROUNDED: gpu.tf32_flops,
            _HALF: gpu.half_flops,
        }
        return peaks[self.precision]

    def seconds(self, gpu: Gpu) -> float:
        """The least time on this GPU."""
        return max(self.flops / self.peak(gpu), self.bytes_moved / gpu.bytes_a_second)

    def bound_by(self, gpu: Gpu) -> str:
        """What the GPU waits for: "traffic" or "products"."""
        waits = self.intensity * gpu.bytes_a_second < self.peak(gpu)
        return "traffic" if waits else "products"


def roofline(
    recording: Any, function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> Roofline:
    """The work of the kernels that a function launches.

    Args:
        recording: the trace of the same call, `trace(function, …)[1]`.
    """
    launches = capture_launches(function, *arguments, **keywords)
    sizes = _element_sizes(function, arguments, keywords, launches)
    moved = sum(
        count * sizes[name]
        for counts in (recording.loads, recording.stores)
        for name, count in counts.items()
    )
    return Roofline(recording.flops, moved, _slowest_precision(launches))


def _element_sizes(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    launches: list[KernelLaunch],
) -> dict[str, int]:
    """Bytes of an element of each tensor, by the names of a recording."""
    tensors: dict[str, Any] = {}
    for launch in launches:
        parameters = launch.kernel.arg_names
        by_parameter = {
            **dict(zip(parameters, launch.arguments, strict=False)),
            **launch.keywords,
        }
        for name, value in by_parameter.items():
            tensors[name.removesuffix("_ptr")] = value
    tensors |= inspect.signature(function).bind(*arguments, **keywords).arguments
    return {
        name: value.element_size()
        for name, value in tensors.items()
        if isinstance(value, torch.Tensor)
    }


def _slowest_precision(launches: list[KernelLaunch]) -> str:
    precisions = set()
    for text in {GpuCompilation(launch, H200).text for launch in launches}:
        for rounded, element in _DOT.findall(text):
            if element != "f32":
                precisions.add(_HALF)
            else:
                precisions.add(_ROUNDED if rounded else _WHOLE)
    slowest_first = (_WHOLE, _ROUNDED, _HALF)
    return next((kind for kind in slowest_first if kind in precisions), _HALF)
