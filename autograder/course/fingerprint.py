"""The fingerprint of a hidden suite, cheap enough to ask for before anything heavy is loaded."""

from __future__ import annotations

import functools
import hashlib
import platform
import sys
from importlib import metadata
from pathlib import Path

_KIT = Path(__file__).resolve().parents[1]
_LIBRARIES = ("torch", "numpy", "triton", "safetensors")
_PROOF = "samples.py"
"""What measures diagnosis and gives no points."""


def suite_sha256(folder: Path) -> str:
    """Hash of every Python file of the suite: a result made with another suite is stale. Samples do
    not count.
    """
    return files_sha256(folder, "**/*.py", without=_PROOF)


def files_sha256(folder: Path, *patterns: str, without: str = "") -> str:
    """Hash of the names and contents of the files that a pattern finds, but for those of one
    name.
    """
    digest = hashlib.sha256()
    found = {
        path
        for pattern in patterns
        for path in folder.glob(pattern)
        if path.name != without and path.is_file()
    }
    for path in sorted(found):
        digest.update(
            path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"
        )
    return digest.hexdigest()


@functools.cache
def software() -> dict[str, str]:
    """What besides a course and a notebook a result may depend on, by name: the kit's own code,
    libraries, Python, and the kind of processor.
    """
    own = {"the kit's code": files_sha256(_KIT, "**/*.py", "**/*.json")[:32]}
    libraries = {name: _version(name) for name in _LIBRARIES}
    return own | libraries | {"Python": sys.version, "the processor": platform.machine()}


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "none"
