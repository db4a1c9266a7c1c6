"""Proves the packages of a release as an instructor gets them: installs both into an environment of
their own, makes a course with our assignments, builds it, and grades a demo class of one.

    make wheel
    python tests/long/installed_kit.py build/release
    python tests/long/installed_kit.py build/release --assignment a1_word_vectors --grading-alone

Libraries come from the lock files, so the versions are those that the kit is tested with. With
--grading-alone nothing of the extras is installed for the last step: the course is graded by what
`pip install attention-kit` brings.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "autograder" / "requirements"
LOCKED = (
    "install",
    "--quiet",
    "--no-compile",
    "--no-deps",
    "--require-hashes",
    "--requirement",
)


def run(
    *command: object, folder: Path | None = None, statuses: tuple[int, ...] = (0,)
) -> str:
    """Run a command and return its output; any other exit status ends this program."""
    print("$", *command, flush=True)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in statuses:
        sys.exit(f"{done.stdout}{done.stderr}\nended with {done.returncode}")
    return done.stdout


def make_environment(folder: Path, *locks: Path) -> Path:
    """A new environment with what lock files name; the path of its Python."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    for lock in locks:
        command = [str(python), "-m", "pip", *LOCKED, str(lock)]
        if lock.name == "torch.txt":
            # a build for the CPU in a folder of PIP_FIND_LINKS goes before PyPI's
            local = subprocess.run(
                [*command, "--no-index"], capture_output=True, check=False
            )
            if local.returncode == 0:
                continue
        run(*command)
    broken = subprocess.run(
        [python, "-m", "pip", "check"], capture_output=True, check=False
    )
    if broken.returncode:
        # PyPI's build of torch needs CUDA's libraries beside it
        run(python, "-m", "pip", *LOCKED, SHIPPED / "cuda.txt")
    return python


def install(python: Path, *wheels: Path) -> None:
    """Install wheels, whose requirements must be there."""
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", *wheels)
    print(run(python, "-m", "pip", "check").strip())


def check_scores(results: Path) -> int:
    """How many of the class were graded.

    Raises:
        AssertionError: nobody has full marks, or nobody has none, as in every demo class.
    """
    scores = [
        json.loads(path.read_text(encoding="utf-8"))["score"] / maximum
        for path in results.glob("*.json")
        if (maximum := json.loads(path.read_text(encoding="utf-8"))["max_score"])
    ]
    assert max(scores) == 1
    assert min(scores) == 0
    return len(scores)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("release", type=Path, help="folder with both wheels")
    parser.add_argument("--assignment", default="a2_attention")
    parser.add_argument(
        "--grading-alone", action="store_true", help="grade without extras"
    )
    arguments = parser.parse_args()
    (kit,) = arguments.release.resolve().glob("attention_kit-*.whl")
    (package,) = arguments.release.resolve().glob("attention_kit_course-*.whl")
    name = arguments.assignment
    with tempfile.TemporaryDirectory(prefix="installed-") as folder:
        python = make_environment(
            Path(folder, "all"),
            SHIPPED / "torch.txt",
            ROOT / "requirements" / "dev.txt",
        )
        install(python, kit, package)
        autograder, course = python.with_name("autograder"), Path(folder, "my_course")
        run(autograder, "init", course, "--with", "attention", folder=Path(folder))
        run(autograder, "build", folder=course)
        run(autograder, "demo", name, folder=course)
        if arguments.grading_alone:
            python = make_environment(
                Path(folder, "core"), SHIPPED / "torch.txt", SHIPPED / "kit.txt"
            )
            install(python, kit)
            autograder = python.with_name("autograder")
        # 1: a demo class has notebooks that nobody can read
        run(autograder, "grade", name, folder=course, statuses=(0, 1))
        run(autograder, "report", name, folder=course)
        count = check_scores(course / "results" / name)
    print(f"{name}: {count} submissions graded by the installed kit")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
