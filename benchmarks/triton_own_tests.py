"""Runs Triton's own tests of its language on strict Triton, and prints which share passes.

    python benchmarks/triton_own_tests.py CHECKOUT [FILE …] [--cases 8] [--show 20]

CHECKOUT is a checkout of Triton's repository, of about the version that is installed here. Only
tests with the mark `interpreter` run: Triton's authors say of these that they need no GPU. FILE is
a name in `python/test/unit/language`. What Triton's tests skip on a CPU is skipped here.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FILES = (
    "test_core.py",
    "test_standard.py",
    "test_conversions.py",
    "test_random.py",
    "test_block_pointer.py",
    "test_tensor_descriptor.py",
    "test_tuple.py",
    "test_libdevice.py",
    "test_annotations.py",
)
_MOST_CASES = "TRITON_OWN_TESTS_CASES"
_TESTS = Path("python/test/unit/language")
_OUTCOME = re.compile(
    r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S+\.py)(.*)$", re.MULTILINE
)


class CpuDriver:
    """What Triton's tests ask of the active driver, for a machine without a GPU."""

    def get_current_target(self) -> Any:
        """The GPU that kernels are compiled for."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self) -> Any:
        """Where tensors are."""
        import torch

        return torch.device("cpu")

    def __getattr__(self, name: str) -> Any:
        if name in ("get_current_device", "get_current_stream"):
            return lambda *_: 0
        raise AttributeError(name)


def pytest_configure(config: pytest.Config) -> None:
    """Have kernels run strictly: this module is a plugin of the pytest that it starts."""
    import triton

    from autograder.kernels import compiler
    from autograder.kernels.strict_triton import install

    install()
    compiler._describe = _raise_as_triton
    triton.runtime.driver.set_active(CpuDriver())
    # Triton's tests look here before they ask for what only a compiled kernel has
    os.environ["TRITON_INTERPRET"] = "1"


def _raise_as_triton(kernel: Any, error: Exception) -> Any:
    """Raise what the compiler raised: Triton's tests look for its own errors."""
    raise error


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests change a kernel's text as they do for a GPU; keep some cases of each test."""
    most = int(os.environ[_MOST_CASES])
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    items[:] = [
        item
        for group in cases.values()
        for item in group[:: max(1, -(-len(group) // most))]
    ]
    for module in list(sys.modules.values()):
        if module is not None and "patch_kernel" in vars(module):
            module.patch_kernel = _patch_kernel  # type: ignore[attr-defined]


def _patch_kernel(template: Any, replacements: dict[str, str]) -> Any:
    import triton

    kernel = triton.JITFunction(template.fn)
    source = kernel.src
    for name, text in replacements.items():
        source = source.replace(name, text)
    kernel._unsafe_update_src(source)
    return kernel


def run_file(checkout: Path, name: str, cases: int) -> tuple[Counter[str], list[str]]:
    """Run one file of tests; returns how many had each outcome, and the names of those that
    fail.
    """
    folder = Path(__file__).resolve().parent
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder), str(folder.parent)]),
        "OMP_NUM_THREADS": "1",
        _MOST_CASES: str(cases),
    }
    environment.pop("TRITON_INTERPRET", None)
    call = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        Path(__file__).stem,
        "--device",
        "cpu",
    ]
    call += [
        "-m",
        "interpreter",
        "-p",
        "no:cacheprovider",
        "-rA",
        "--tb=line",
        "-W",
        "ignore",
    ]
    call += ["-o", "addopts=", str(_TESTS / name)]
    finished = subprocess.run(
        call, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    outcomes: Counter[str] = Counter()
    failures = []
    for outcome, _, rest in _OUTCOME.findall(finished.stdout):
        outcomes[outcome] += 1
        if outcome in ("FAILED", "ERROR"):
            failures.append(f"{name}{rest}"[:300])
    skipped = re.search(r"(\d+) skipped", finished.stdout)
    outcomes["SKIPPED"] = int(skipped[1]) if skipped else 0
    if not sum(outcomes.values()):
        failures.append(finished.stdout[-500:] + finished.stderr[-500:])
    return outcomes, failures


def main() -> None:
    """Run the files and print a table for docs/performance.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("files", nargs="*", default=FILES, metavar="FILE")
    parser.add_argument("--cases", type=int, default=8, help="of each test, at most")
    parser.add_argument(
        "--show", type=int, default=0, help="failures of each file to print"
    )
    options = parser.parse_args()
    print(
        "| tests of Triton's | pass | fail | share | skipped |\n| --- | --- | --- | --- | --- |"
    )
    total: Counter[str] = Counter()
    for name in options.files:
        outcomes, failures = run_file(options.checkout, name, options.cases)
        total += outcomes
        print(_row(name, outcomes), flush=True)
        for line in failures[: options.show]:
            print(f"    {line}")
    print(_row("all", total))


def _row(name: str, outcomes: Counter[str]) -> str:
    passed = outcomes["PASSED"] + outcomes["XPASS"]
    failed = outcomes["FAILED"] + outcomes["ERROR"]
    share = f"{passed / (passed + failed):.1%}" if passed + failed else "–"
    return f"| `{name}` | {passed} | {failed} | {share} | {outcomes['SKIPPED']} |"


if __name__ == "__main__":
    main()
