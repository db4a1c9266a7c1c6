"""A release: one version, a page that can be read anywhere, and a source distribution that is the
repository.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from project_file import PROJECT, ROOT

import autograder
from autograder.cli.commands import main
from autograder.outputs.kit_wheel import kit_wheel

sys.path.insert(0, str(ROOT / "distribution"))

from prepare_release import absolute_links, prepare, release_notes

REPOSITORY = "https://host.example/owner/kit"
TAG = f"v{PROJECT['version']}"
RELATIVE = re.compile(r"\]\((?![a-z]+:|#)[^)]+\)")


def test_the_version_stands_in_one_place() -> None:
    version = PROJECT["version"]
    assert CliRunner().invoke(main, ["--version"]).output.split()[-1] == version
    assert autograder.__version__ == version
    package = Path(autograder.__file__).parent
    assert [
        path.name
        for path in package.rglob("*.py")
        if f'"{version}"' in path.read_text(encoding="utf-8")
    ] == []


def workflow(name: str) -> Any:
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def minor_number(version: str) -> int:
    """11 of "3.11"."""
    return int(version.removeprefix("3."))


def test_pythons_are_those_that_every_push_tries() -> None:
    """Pythons that the nightly run tries beyond them are newer ones, for which nothing is said."""
    prefix = "Programming Language :: Python :: 3."
    stated = [
        f"3.{line.removeprefix(prefix)}"
        for line in PROJECT["classifiers"]
        if line.startswith(prefix)
    ]
    assert workflow("ci")["jobs"]["check"]["strategy"]["matrix"]["python"] == stated
    assert PROJECT["requires-python"] == f">={stated[0]}"
    machines = workflow("nightly")["jobs"]["machines"]["strategy"]["matrix"]
    assert machines["python"][: len(stated)] == stated
    newest = max(map(minor_number, stated))
    newer = machines["python"][len(stated) :]
    assert all(minor_number(version) > newest for version in newer)
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert f"| Python | `>={stated[0]}` | {', '.join(stated)} |" in page


def test_the_changelog_begins_with_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (.+)$", changelog, re.MULTILINE)
    assert first is not None
    assert first[1] == PROJECT["version"]
    assert release_notes(changelog, PROJECT["version"]).strip()


def test_notes_are_of_one_version() -> None:
    changelog = "# Changelog\n\n## 0.2.0\n\n- New.\n\n## 0.1.0\n\n- Old.\n"
    assert release_notes(changelog, "0.2.0") == "- New.\n"
    assert release_notes(changelog, "0.1.0") == "- Old.\n"
    with pytest.raises(ValueError, match=r"no section 0\.3\.0"):
        release_notes(changelog, "0.3.0")


def test_links_and_pictures_are_absolute_on_the_page() -> None:
    page = "![a row](docs/a.svg) [a page](docs/b.md#part) [here](#here) [there](https://x.example)"
    assert absolute_links(page, REPOSITORY, "v1.0.0") == (
        "![a row](https://host.example/owner/kit/raw/v1.0.0/docs/a.svg) "
        "[a page](https://host.example/owner/kit/blob/v1.0.0/docs/b.md#part) "
        "[here](#here) [there](https://x.example)"
    )


def copy_release_files(folder: Path) -> Path:
    for name in ("README.md", "pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.skipif("urls" in PROJECT, reason="this is a release")
def test_a_checkout_becomes_a_release(tmp_path: Path) -> None:
    prepare(copy_release_files(tmp_path), REPOSITORY, TAG)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert RELATIVE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert RELATIVE.search(page) is None
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    assert project["urls"]["Repository"] == REPOSITORY
    assert project["scripts"] == PROJECT["scripts"]
    assert (tmp_path / "build/release/notes.md").is_file()


def test_a_tag_that_is_not_the_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"the tag is v9\.9\.9, and pyproject\.toml has version"
    ):
        prepare(copy_release_files(tmp_path), REPOSITORY, "v9.9.9")


def test_types_are_announced_in_the_wheel() -> None:
    _, content = kit_wheel()
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        assert "autograder/py.typed" in wheel.namelist()


def test_the_source_distribution_is_the_repository() -> None:
    """MANIFEST.in names every folder and every file of the first level; CI builds from it."""
    if not (ROOT / ".git").exists():
        pytest.skip("a source distribution is no repository")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    first_level = {path.partition("/")[0] for path in listed.stdout.splitlines()}
    lines = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    named = {
        word
        for line in lines
        for word in line.split()[1:]
        if line.startswith(("graft", "include"))
    }
    always = {"LICENSE", "README.md", "pyproject.toml"}
    assert first_level - always == named
