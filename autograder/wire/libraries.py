"""torch, where this process has loaded it: an assignment in numpy is graded without torch, and
where torch is not installed.

Nothing here imports torch. As long as nothing else has imported torch, no value is a tensor.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from torch import Tensor


def loaded_torch() -> Any:
    """The library torch; None where nothing in this process has imported it."""
    return sys.modules.get("torch")


def is_tensor(value: Any) -> TypeGuard[Tensor]:
    """Whether the value is a tensor of torch's."""
    torch = loaded_torch()
    return torch is not None and isinstance(value, torch.Tensor)


def dtype_name(dtype: Any) -> str:
    """The name of a dtype of torch's or numpy's: "float64" rather than "torch.float64"."""
    return str(dtype).removeprefix("torch.")
