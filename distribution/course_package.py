"""Build the wheel of `attention-kit-course`: this repository's assignments, for the command
`autograder init --with attention`.

    python distribution/course_package.py --to build/release

The wheel has no Python in it, but one archive as a data file. Equal files give an equal archive.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from string import Template

from autograder.course import Course
from autograder.outputs.bundle import archive_entry, files_below

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(__file__).with_name("course")


def course_archive() -> bytes:
    """The archive: sources and hidden suites of all assignments, and the page for students."""
    course = Course(ROOT)
    paths = [ROOT / "docs" / "students.md"]
    for assignment in course.assignments():
        paths += files_below(assignment.source.parent)
        paths += files_below(assignment.suite)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(paths):
            entry = archive_entry(path.relative_to(ROOT).as_posix(), 0o644)
            archive.writestr(entry, path.read_bytes())
    return packed.getvalue()


def write_project(folder: Path) -> None:
    """Write the distribution's project into an empty folder, for pip to build."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    settings = Template(
        (PACKAGE / "pyproject.toml.template").read_text(encoding="utf-8")
    )
    (folder / "pyproject.toml").write_text(
        settings.substitute(version=project["version"]), encoding="utf-8"
    )
    shutil.copy(PACKAGE / "README.md", folder)
    shutil.copy(ROOT / "LICENSE", folder)
    (folder / "attention.zip").write_bytes(course_archive())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--to", type=Path, required=True, help="folder for the wheel")
    target = parser.parse_args().to.resolve()
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder))
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        build += ["--no-build-isolation", "--wheel-dir", str(target), folder]
        subprocess.run(build, check=True)


if __name__ == "__main__":
    main()
