"""Fingerprints of suites and software, taken before anything heavy is loaded."""

from __future__ import annotations

import functools
import hashlib
import platform
import sys
from importlib import metadata
from pathlib import Path

_KIT = Path(__file__).resolve().parents[1]
_LIBRARIES = ("torch", "numpy", "triton", "safetensors")
_SAMPLES = "samples.py"
"""The file that measures diagnosis and gives no points."""


def suite_sha256(folder: Path) -> str:
    """The hash of every Python file of a suite but the samples: a result with another hash is
    stale.
    """
    return files_sha256(folder, "**/*.py", without=_SAMPLES)


def files_sha256(folder: Path, *patterns: str, without: str = "") -> str:
    """The hash of the names and contents of files that fit a pattern, without those of one name."""
    digest = hashlib.sha256()
    paths = {path for pattern in patterns for path in folder.glob(pattern)}
    for path in sorted(paths):
        if path.name != without and path.is_file():
            name = path.relative_to(folder).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.cache
def software() -> dict[str, str]:
    """The versions of all software that a result may depend on: the kit's own code, libraries,
    Python, and the kind of processor.
    """
    return {
        "the kit's code": files_sha256(_KIT, "**/*.py", "**/*.json")[:32],
        **{library: _version(library) for library in _LIBRARIES},
        "Python": sys.version,
        "the processor": platform.machine(),
    }


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "none"
