import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from autograder.authoring.build_commands import bundle_command
from autograder.basics.errors import KitError
from autograder.course import Assignment, Course, load_course
from autograder.intake.companion_files import companion_metadata
from autograder.outputs.kit_wheel import kit_wheel
from autograder.platforms.registry import bundles

ROOT = Path(__file__).resolve().parents[3]
SECRET = "return softmax(q @ k.T) @ v"


def bundle(course: Course, assignment: Assignment, target: str, to: Path) -> Path:
    return bundles()[target].write(course, assignment, to, {})


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course of two assignments, built."""
    root = tmp_path / "course"
    files = {
        "course.toml": "[late]\npolicy = 'zero'\n",
        "tests/hidden/pytest.ini": "[pytest]\n",
    }
    for name in ("attention", "masks"):
        files |= {
            f"source/{name}/{name}.py": f"# {SECRET}\n",
            f"assignments/{name}/{name}.ipynb": "{}",
            f"assignments/{name}/figures/heads.svg": "<svg/>",
            f"solutions/{name}/{name}.ipynb": f'{{"source": "{SECRET}"}}',
            f"tests/hidden/{name}/test_softmax.py": f"# {SECRET}\n",
            f"tests/hidden/{name}/__pycache__/test_softmax.pyc": "x",
        }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return load_course(root)


def test_gradescope_gets_what_it_needs_and_no_more(
    course: Course, tmp_path: Path
) -> None:
    path = bundle(
        course,
        course.assignment("attention"),
        "gradescope",
        tmp_path / "out" / "attention.zip",
    )
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        scripts = {
            name: archive.read(name).decode() for name in ("setup.sh", "run_autograder")
        }
        modes = {
            name: archive.getinfo(name).external_attr >> 16 & 0o777 for name in scripts
        }
    assert {name for name in names if name.startswith("course/")} == {
        "course/course.toml",
        "course/source/attention/attention.py",
        "course/assignments/attention/attention.ipynb",
        "course/assignments/attention/figures/heads.svg",
        "course/solutions/attention/attention.ipynb",
        "course/tests/hidden/pytest.ini",
        "course/tests/hidden/attention/test_softmax.py",
    }
    assert [name for name in names if not name.startswith("course/")] == [
        *scripts,
        f"kit/{kit_wheel()[0]}",
    ]
    assert not [name for name in names if "masks" in name or "__pycache__" in name]
    assert len(names) == len(set(names))
    assert modes == {"setup.sh": 0o755, "run_autograder": 0o755}
    assert (
        "autograder.platforms.gradescope attention /autograder/source/course"
        in scripts["run_autograder"]
    )
    assert not [script for script in scripts.values() if "http" in script]
    for script in scripts.values():
        assert (
            subprocess.run(
                ["bash", "-n"], input=script, text=True, check=False
            ).returncode
            == 0
        )


def test_the_bundle_has_the_settings_and_nobodys_name(
    course: Course, tmp_path: Path
) -> None:
    (course.root / "course.toml").write_text(
        '[course]\nname = "Kürs \U0001f600 \\"A\\""\n[limits]\nmemory_mb = 900\n'
        '[due]\nmasks = "2026-10-02 23:59 UTC"\n[extensions]\nmasks = { student-001 = 2 }\n',
        encoding="utf-8",
    )
    settings = load_course(course.root)
    with zipfile.ZipFile(
        bundle(settings, settings.assignment("masks"), "gradescope", tmp_path / "a.zip")
    ) as archive:
        text = archive.read("course/course.toml").decode()
    assert "student-001" not in text
    other = tmp_path / "other"
    other.mkdir()
    (other / "course.toml").write_text(text, encoding="utf-8")
    read = load_course(other)
    assert (read.about, read.limits, read.grading) == (
        settings.about,
        settings.limits,
        settings.grading,
    )


def test_the_same_course_gives_the_same_zip(course: Course, tmp_path: Path) -> None:
    paths = [
        bundle(course, course.assignment("masks"), "gradescope", tmp_path / name)
        for name in ("a.zip", "b.zip")
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert [p.name for p in tmp_path.glob("*part")] == []


def test_a_classroom_repository_has_the_files_beside_the_notebook(
    course: Course, tmp_path: Path
) -> None:
    text = "def softmax(z): ...\n"
    release = course.assignment("attention").release
    release.write_text(
        json.dumps({"metadata": companion_metadata({"attention_tools.py": text})})
    )
    release.with_name("attention_tools.py").write_text(text)
    folder = bundle(
        course, course.assignment("attention"), "github", tmp_path / "classroom"
    )
    assert (folder / "attention_tools.py").read_text() == text


def test_a_classroom_repository_holds_nothing_hidden(
    course: Course, tmp_path: Path
) -> None:
    import yaml

    folder = bundle(
        course, course.assignment("attention"), "github", tmp_path / "classroom"
    )
    files = {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert set(files) == {
        ".github/workflows/classroom.yml",
        "GRADING.md",
        "attention.ipynb",
        "figures/heads.svg",
    }
    assert not [name for name, text in files.items() if SECRET in text]
    workflow = yaml.safe_load(files[".github/workflows/classroom.yml"])
    assert workflow["permissions"] == {"contents": "read"}
    job = workflow["jobs"]["run-autograding-tests"]
    assert job["environment"] == "grading"
    checkouts = [
        step["with"]
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout")
    ]
    assert [with_["persist-credentials"] for with_ in checkouts] == [False, False]
    assert checkouts[1]["token"] == "${{ secrets.COURSE_TOKEN }}"
    grade = next(step["run"] for step in job["steps"] if step.get("name") == "Grade")
    assert "grade attention ../submission/attention.ipynb" in grade
    assert "--isolation strict" in grade
    assert (
        "ASSIGNMENT"
        not in files[".github/workflows/classroom.yml"] + files["GRADING.md"]
    )


def _course_workflow(course: Course, tmp_path: Path) -> Any:
    import yaml

    path = bundle(course, course.assignment("attention"), "github-course", tmp_path)
    assert path == tmp_path / ".github" / "workflows" / "grade-attention.yml"
    text = path.read_text(encoding="utf-8")
    assert SECRET not in text
    assert "ASSIGNMENT" not in text
    assert "PREFIX" not in text
    return yaml.safe_load(text)


def test_the_workflow_of_the_course_gives_its_token_to_no_submission(
    course: Course, tmp_path: Path
) -> None:
    workflow = _course_workflow(course, tmp_path)
    assert workflow[True] == "workflow_dispatch"  # YAML reads `on` as a truth value
    assert workflow["permissions"] == {"contents": "read"}
    steps = workflow["jobs"]["grade"]["steps"]
    assert [step["name"] for step in steps if "secrets." in str(step)] == [
        "The students' repositories"
    ]
    grade = next(step["run"] for step in steps if step.get("name") == "Grade")
    assert "grade attention --isolation strict" in grade
    for step in steps:
        if "run" in step:
            assert (
                subprocess.run(
                    ["bash", "-n"], input=step["run"], text=True, check=False
                ).returncode
                == 0
            )


FORKS = "uni/attention-ada\nfork/attention-ada\nuni/attention-ben\n"
"""Two repositories of one name, which has to be two students."""


@pytest.mark.parametrize(
    "list_",
    [
        None,
        FORKS,
        "# this term\r\nuni/attention-ada\r\n\nuni/attention-gone\n; rm -rf /\n",
    ],
)
def test_the_workflow_of_the_course_clones_who_is_asked_for(
    course: Course, tmp_path: Path, list_: str | None
) -> None:
    """With git itself, repositories on this disk, and a stand-in for GitHub's command line."""
    steps = _course_workflow(course, tmp_path)["jobs"]["grade"]["steps"]
    script = next(
        step["run"]
        for step in steps
        if step.get("name") == "The students' repositories"
    )
    work, hub, runner, tools = (
        tmp_path / name for name in ("work", "hub", "runner", "tools")
    )
    for folder in (work, runner, tools):
        folder.mkdir()
    for name in ("uni/attention-ada", "uni/attention-ben", "fork/attention-ada"):
        git = [
            "git",
            "-C",
            str(hub / name),
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.org",
        ]
        (hub / name).mkdir(parents=True)
        (hub / name / "attention.ipynb").write_text("{}", encoding="utf-8")
        (hub / name / "key.txt").symlink_to("/etc/passwd")
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "done"]):
            subprocess.run([*git, *command], check=True)
    listed = "uni/attention-ada\nuni/attention-ben\n"
    (tools / "gh").write_text(
        f"#!/bin/sh\ntest \"$1 $2 $3\" = 'repo list uni' && printf '{listed}'\n",
        encoding="utf-8",
    )
    (tools / "gh").chmod(0o755)
    if list_ is not None:
        (work / "repositories.txt").write_bytes(list_.encode())
    environment = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "RUNNER_TEMP": str(runner),
        "STUDENTS_OWNER": "uni",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{hub}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    clones = runner / "clones"
    cloned = sorted(
        path.parent.relative_to(clones).as_posix()
        for path in clones.glob("**/attention.ipynb")
    )
    warnings = [
        line for line in done.stdout.splitlines() if line.startswith("::warning::")
    ]
    if list_ is None:
        assert cloned == ["attention-ada", "attention-ben"]
        assert warnings == []
    elif list_ == FORKS:
        assert cloned == ["attention-ben", "fork/attention-ada", "uni/attention-ada"]
    else:
        assert cloned == ["attention-ada"]
        assert warnings == [
            "::warning::uni/attention-gone cannot be cloned; it is not graded",
            "::warning::repositories.txt: a line is not owner/name",
        ]
    assert not (clones / cloned[0] / "key.txt").is_symlink()


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_workflow_finds_repositories_with_underscores_in_their_names(
    course: Course, tmp_path: Path
) -> None:
    steps = _course_workflow(course, tmp_path)["jobs"]["grade"]["steps"]
    script = next(
        step["run"]
        for step in steps
        if step.get("name") == "The students' repositories"
    )
    query = script.split("--jq '")[1].split("'")[0].replace("attention-", "k1-means-")
    names = [
        "k1_means-jane_univ",
        "K1_Means-octocat",
        "k1-means-ann",
        "k2_means-bob",
        "k1_means",
    ]
    listed = json.dumps(
        [{"name": name, "nameWithOwner": f"uni/{name}"} for name in names]
    )
    done = subprocess.run(
        ["jq", "-r", query], input=listed, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [f"uni/{name}" for name in names[:3]]


def test_a_course_that_is_not_built_says_what_to_run(
    course: Course, tmp_path: Path
) -> None:
    assignment = course.assignment("attention")
    assignment.release.unlink()
    for target in ("gradescope", "github"):
        with pytest.raises(KitError, match="autograder build attention"):
            bundle(course, assignment, target, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_name_that_a_shell_would_read_is_refused(
    course: Course, tmp_path: Path
) -> None:
    (course.sources / "a; rm -r").mkdir()
    (course.sources / "a; rm -r" / "a; rm -r.py").write_text("", encoding="utf-8")
    with pytest.raises(KitError, match="letters"):
        bundle_command(course, "a; rm -r", "github", tmp_path / "out")
