"""For notebooks with kernels, where there is no Triton: the cells run, the kernels do not, and what
to do is said.
"""

from typing import Any


class NoTriton:
    """Stands where Triton should. Kernels can be written with it, and not launched.

    Args:
        why: what is said in place of a launch.
    """

    def __init__(self, why: str) -> None:
        self.why = why

    def __getattr__(self, name: str) -> "NoTriton":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: Any, **keywords: Any) -> "NoTriton":
        return self

    def __getitem__(self, grid: Any) -> Any:
        raise RuntimeError(self.why)


def kernels_run(triton: Any) -> bool:
    """Whether kernels run here; says what to do where they do not."""
    if isinstance(triton, NoTriton):
        print(f"Skipped: {triton.why}")
    return not isinstance(triton, NoTriton)
