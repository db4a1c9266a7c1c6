"""Strict Triton and a7's answer key with other versions of Triton, each in a folder that
is thrown away.

    python tests/long/triton_versions.py                  those that are said to be known
    python tests/long/triton_versions.py 3.7.0 3.9.0

Each is installed by pip without what it asks for: torch and numpy are those of this environment.
What differs between versions (Triton 3.9 has no block pointers) is left out by the tests
themselves.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
TESTS = [
    f"tests/autograder/kernels/test_{name}.py"
    for name in (
        "right_kernels",
        "wrong_kernels",
        "strict_triton",
        "launch_replay",
        "ttir_operations",
        "without_triton",
        "resources",
    )
]


def tried(version: str, folder: Path) -> str:
    """Install one version and run the tests with it; the last line that pytest prints, or why there
    is none.
    """
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(folder),
    ]
    installed = subprocess.run(
        [*install, f"triton=={version}"], capture_output=True, text=True, check=False
    )
    if installed.returncode:
        return f"not to be had: {installed.stderr.strip().splitlines()[-1]}"
    environment = os.environ | {"PYTHONPATH": str(folder)}
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    finished = subprocess.run(
        call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    lines = [
        line
        for line in finished.stdout.splitlines()
        if re.match(r"FAILED|ERROR|\d+ (passed|failed|error)", line)
    ]
    return "\n  ".join(lines[-20:]) or finished.stdout[-2000:] + finished.stderr[-2000:]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "versions",
        nargs="*",
        default=VERSIONS,
        metavar="VERSION",
        help=", ".join(VERSIONS),
    )
    fine = True
    for version in parser.parse_args().versions:
        with tempfile.TemporaryDirectory(prefix=f"triton-{version}-") as folder:
            said = tried(version, Path(folder))
        print(f"{version}: {said}", flush=True)
        fine = fine and "passed" in said and "failed" not in said
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
