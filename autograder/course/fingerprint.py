"""Fingerprints of suites and software, taken before anything heavy is loaded."""

from __future__ import annotations

import functools
import hashlib
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

_KIT = Path(__file__).resolve().parents[1]
_KITS_CODE = "the kit's code"
_LIBRARIES = ("torch", "numpy", "triton", "safetensors")
CONTRACTS_FILE = "contracts.py"
EXAMPLES_FILE = "examples.py"
_GIVE_NO_POINTS = ("samples.py", CONTRACTS_FILE, EXAMPLES_FILE)
"""Files that measure diagnosis, and that say where `autograder hunt` and examples look."""


def suite_sha256(folder: Path) -> str:
    """The hash of every Python file of a suite but samples, contracts and examples: a result
    with another hash is stale.
    """
    return files_sha256(folder, "**/*.py", without=_GIVE_NO_POINTS)


def files_sha256(folder: Path, *patterns: str, without: Sequence[str] = ()) -> str:
    """The hash of the names and contents of files that fit a pattern, without those of some
    names.
    """
    digest = hashlib.sha256()
    paths = {path for pattern in patterns for path in folder.glob(pattern)}
    for path in sorted(paths):
        if path.name not in without and path.is_file():
            name = path.relative_to(folder).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.cache
def software() -> dict[str, str]:
    """The versions of all software that a result may depend on: the kit's own code, libraries,
    Python, and the kind of processor.
    """
    return {
        _KITS_CODE: files_sha256(_KIT, "**/*.py", "**/*.json")[:32],
        **{library: _version(library) for library in _LIBRARIES},
        "Python": sys.version,
        "the processor": platform.machine(),
    }


def deciding_software() -> dict[str, str]:
    """Versions of what can change a result on a machine: not the build of torch (`+cpu`, `+cu126`),
    nor the last number of numpy, safetensors and Python, which mends faults alone.
    """
    versions = {name: version.partition("+")[0] for name, version in software().items()}
    return versions | {
        name: ".".join(versions[name].split(".")[:2])
        for name in ("numpy", "safetensors", "Python")
    }


@functools.cache
def result_software() -> dict[str, str]:
    """What a result says of the software that made it: of the kit its version and the beginning of
    a hash of its code.
    """
    versions = deciding_software()
    return {
        "kit": f"{_version('attention-kit')} {versions[_KITS_CODE][:12]}",
        "python": versions["Python"],
        **{library: versions[library] for library in ("torch", "triton", "numpy")},
    }


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "none"
