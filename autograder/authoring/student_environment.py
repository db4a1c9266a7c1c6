"""The files `requirements.txt` and `environment.yml` of a release: the libraries of a notebook, in
the versions that the grader has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import metadata

_JUPYTER = "jupyterlab"
_EXACT = ("torch", "triton")
"""Libraries whose results differ from version to version: students get the grader's own."""
_CPU = """\
# No GPU is needed. On Linux pip takes the build of torch for GPUs, which is gigabytes larger:
# for the CPU build of the same version first run the command of PyTorch's installation page.
"""


def environment_files(libraries: Sequence[str]) -> dict[str, bytes]:
    """The two files of a notebook that imports these libraries, by name."""
    requirements = list(_requirements(libraries))
    note = _CPU if "torch" in libraries else ""
    listed = "".join(f"      - {requirement}\n" for requirement in requirements)
    environment = (
        f"{note}name: notebooks\nchannels:\n  - conda-forge\ndependencies:\n  - python>=3.11\n"
        f"  - pip\n  - pip:\n{listed}"
    )
    return {
        "environment.yml": environment.encode(),
        "requirements.txt": (note + "\n".join([*requirements, ""])).encode(),
    }


def _requirements(libraries: Sequence[str]) -> Iterator[str]:
    for library in libraries:
        try:
            version = metadata.version(library).partition("+")[
                0
            ]  # 2.13.0+cpu is 2.13.0
        except metadata.PackageNotFoundError:  # its package has another name
            yield library
            continue
        is_exact = library in _EXACT
        yield f"{library}=={version}" if is_exact else f"{library}>={_minor(version)}"
    yield _JUPYTER


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
