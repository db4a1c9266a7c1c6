"""What is installed, here and by bundles: one version of every package, known to the byte; actions
at a commit.
"""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from project_file import ROOT, core_requirements, extra_requirements

from autograder.outputs.bundle import render_script

TEMPLATES = ROOT / "autograder" / "platforms" / "templates"
SETUP, CLASSROOM, COURSE = (
    render_script(TEMPLATES / name, assignment="a1", prefix="a1-")
    for name in ("gradescope/setup.sh", "github/classroom.yml", "github/course.yml")
)
SHIPPED = ROOT / "autograder" / "requirements"
LOCKS = [
    *sorted(SHIPPED.glob("*.txt")),
    ROOT / "requirements" / "dev.txt",
    ROOT / "requirements" / "tools.txt",
    ROOT / "requirements" / "site.txt",
]
WORKFLOWS = {
    **{
        path.name: path.read_text(encoding="utf-8")
        for path in sorted((ROOT / ".github" / "workflows").iterdir())
    },
    "of the classroom": CLASSROOM,
    "of the course": COURSE,
}


def locked(*paths: Path) -> dict[NormalizedName, str]:
    """Package → version."""
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    return {
        canonicalize_name(name): version
        for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M)
    }


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_line_of_a_lock_file_is_a_version_or_a_hash(path: Path) -> None:
    blocks = re.split(r"\n(?=\S)", path.read_text(encoding="utf-8").strip())[1:]
    assert blocks
    for block in blocks:
        first, *hashes = block.split(" \\\n")
        assert re.fullmatch(r"[a-z0-9][\w.-]*==[\w.+!-]+(?: ; .+)?", first)
        assert hashes
        assert all(
            re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", line) for line in hashes
        )


@pytest.mark.parametrize(
    ("requirements", "files"),
    [
        (core_requirements(), (SHIPPED / "kit.txt", SHIPPED / "torch.txt")),
        (extra_requirements("dev"), (ROOT / "requirements/dev.txt",)),
    ],
    ids=["grading", "all extras"],
)
def test_the_lock_files_are_those_of_the_project(
    requirements: set[Requirement], files: tuple[Path, ...]
) -> None:
    versions = locked(*files)
    for requirement in requirements:
        version = versions[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, requirement


def test_what_grading_needs_is_small() -> None:
    """An autograder's container, a CI job and a machine of a cluster install it each time."""
    versions = locked(SHIPPED / "kit.txt", SHIPPED / "torch.txt")
    assert len(versions) <= 40
    assert not {"nbgrader", "jupyterlab", "sqlalchemy", "notebook"} & versions.keys()


def test_constraints_are_the_versions_of_the_locks() -> None:
    everything = locked(*SHIPPED.glob("*.txt"), ROOT / "requirements/dev.txt")
    assert locked(ROOT / "requirements/constraints.txt") == everything


def test_what_is_tested_is_what_bundles_install() -> None:
    assert (
        locked(SHIPPED / "kit.txt").items()
        <= locked(ROOT / "requirements/dev.txt").items()
    )
    found = [
        canonicalize_name(distribution.name)
        for distribution in metadata.distributions()
    ]
    # setuptools brings some of its own, later on the path
    installed = {name: metadata.version(name) for name in found}
    wanted = locked(ROOT / "requirements/dev.txt", SHIPPED / "torch.txt")
    here = {
        name: installed[name].partition("+")[0]
        for name in wanted.keys() & installed.keys()
    }
    assert here == {name: wanted[name] for name in here}
    assert len(here) > 150


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_stand_at_a_commit_and_keep_no_token(name: str) -> None:
    text = WORKFLOWS[name]
    uses = re.findall(r"uses: (\S+)", text)
    assert uses
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", use) for use in uses)
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    assert re.search(r"^permissions:\n  contents: read$", text, re.M)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_words_of_a_pull_request_reach_a_shell(name: str) -> None:
    """Names of branches, titles and the like are put into a script before it runs; `env:` is the
    way for them.
    """
    text = WORKFLOWS[name]
    assert "pull_request_target" not in text
    assert "workflow_run" not in text
    scripts = re.findall(r"run: (?:\|\n((?: {10}.*\n| *\n)+)|(.*))", text)
    assert scripts
    for found in scripts:
        assert "${{ github" not in "".join(found)


@pytest.mark.parametrize(
    "text", [SETUP, CLASSROOM, COURSE], ids=["setup", "classroom", "course"]
)
def test_bundles_install_the_locked_set_before_the_kit(text: str) -> None:
    places = [text.index(f"locked {name}\n") for name in ("torch", "kit")]
    check = text.index("pip check")
    assert places == sorted(places)
    assert places[-1] < check < text.rindex("pip install")
    assert "--no-deps --require-hashes" in text


DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_images_install_the_locked_set_and_run_as_an_ordinary_user() -> None:
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]
    names = {stage.splitlines()[0].split(" AS ")[1]: stage for stage in stages}
    assert list(names) == ["build", "base", "ci", "grader"]
    places = [
        names["build"].index(f"locks/{name}.txt") for name in ("torch", "kit", "cuda")
    ]
    assert places == sorted(places)
    assert names["build"].count("--require-hashes") == 3
    for image in ("ci", "grader"):
        assert re.search(r"^USER 1000$", names[image], re.MULTILINE)
    assert 'ENTRYPOINT ["autograder"]' in names["grader"]


def test_an_image_holds_no_suite_and_no_answer() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule for rule in rules if rule.startswith("!")} == {
        "!autograder",
        "!LICENSE",
        "!pyproject.toml",
        "!README.md",
    }
