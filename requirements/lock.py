"""Write the lock files: one version of every package that the kit installs, with the hashes of its
files.

    make lock [UPGRADE=--upgrade]

`autograder/requirements/` travels with the kit into every bundle: `torch.txt`, `kit.txt` with all
else that grading needs, and `cuda.txt` with the libraries that PyPI's build of torch needs on Linux
and a CPU-only build does not. `requirements/dev.txt` is `kit.txt`, what the extras bring and what
the tests need; `requirements/tools.txt` looks for known vulnerabilities, lists what is shipped, and
locks and publishes; `requirements/site.txt` builds the website.
`requirements/constraints.txt` has the same versions without hashes, for `pip install -c`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "autograder" / "requirements"
OWN = ROOT / "requirements"
TOOLS = (
    "pip-audit~=2.9\ncyclonedx-bom~=7.1\nhadolint-bin~=2.15\ntwine~=7.0\nuv~=0.13.9\n"
)
SITE = "furo~=2025.12\nmyst-nb~=1.4\nsphinx~=9.0\nsphinx-mathjax-offline~=0.0.2\n"

MORE_HASHES = {
    # PyTorch's own index has CPU-only builds, some gigabytes smaller: version 2.13.0+cpu, which
    # `torch==2.13.0` admits. The build for Python 3.11 on x86-64.
    "torch==2.13.0": (
        "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
    ),
}
"""Files of another index than PyPI, by requirement."""

_HEAD = "# Made by requirements/lock.py; do not edit.\n"


def compiled(what: Path, *options: str) -> list[str]:
    """Every requirement with its hashes, as uv resolves it for all systems and every Python that
    the kit runs on.

    Versions that a lock file has already stay, unless uv is told to upgrade.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "lock.txt")
        locked = [
            *sorted(SHIPPED.glob("*.txt")),
            *([OWN / "dev.txt"] if (OWN / "dev.txt").exists() else []),
        ]
        made.write_text(
            "".join(path.read_text(encoding="utf-8") for path in locked),
            encoding="utf-8",
        )
        command = [
            "uv",
            "pip",
            "compile",
            "--quiet",
            "--universal",
            "--python-version",
            "3.11.5",
            "--generate-hashes",
            "--no-annotate",
            "--no-header",
            str(what),
            "--output-file",
            str(made),
            *options,
        ]
        subprocess.run(command, check=True, cwd=ROOT)
        return [
            _with_more_hashes(block)
            for block in _blocks(made.read_text(encoding="utf-8"))
        ]


def main() -> None:
    upgrade = sys.argv[1:]
    project = ROOT / "pyproject.toml"
    everything = compiled(project, "--all-extras", *upgrade)
    apart = {
        "cuda.txt": re.compile(r"(?:nvidia|cuda)-"),
        "torch.txt": re.compile(r"torch=="),
    }
    for name, packages in apart.items():
        _write(SHIPPED / name, [block for block in everything if packages.match(block)])
    for path, blocks in (
        (OWN / "dev.txt", everything),
        (SHIPPED / "kit.txt", compiled(project)),
    ):
        _write(
            path,
            [
                block
                for block in blocks
                if not any(packages.match(block) for packages in apart.values())
            ],
        )
    versions = [block.split(" \\\n")[0] for block in everything]
    _write(OWN / "constraints.txt", versions)
    for path, requirements in ((OWN / "tools.txt", TOOLS), (OWN / "site.txt", SITE)):
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder, "wanted.in")
            wanted.write_text(requirements, encoding="utf-8")
            _write(path, compiled(wanted, *upgrade))


def _blocks(text: str) -> list[str]:
    """A requirement and the lines of its hashes."""
    return [
        block
        for block in re.split(r"\n(?=\S)", text.strip())
        if not block.startswith("#")
    ]


def _with_more_hashes(block: str) -> str:
    extra = MORE_HASHES.get(block.split()[0], ())
    known = {digest for digest in extra if digest in block}
    return block + "".join(
        f" \\\n    --hash=sha256:{digest}" for digest in extra if digest not in known
    )


def _write(path: Path, blocks: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(_HEAD + "\n".join(blocks) + "\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {len(blocks)} packages")


if __name__ == "__main__":
    main()
