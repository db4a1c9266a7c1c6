"""A stand-in for Triton where it is not installed: cells that define kernels run, and a launch says
what to do.
"""

from typing import Any


class NoTriton:
    """Stands in for the modules of Triton: kernels can be defined, and not launched.

    Args:
        advice: the message of the error that a launch raises.
    """

    def __init__(self, advice: str) -> None:
        self.advice = advice

    def __getattr__(self, name: str) -> "NoTriton":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: Any, **keywords: Any) -> "NoTriton":
        return self

    def __getitem__(self, grid: Any) -> Any:
        raise RuntimeError(self.advice)


def kernels_run(triton: Any) -> bool:
    """Whether kernels run here; where they do not, this function prints what to do."""
    if isinstance(triton, NoTriton):
        print(f"Skipped: {triton.advice}")
        return False
    return True
