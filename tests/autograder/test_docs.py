"""The documentation holds: links lead somewhere, commands exist as written, every setting and
assignment is named.
"""

from __future__ import annotations

import itertools
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from autograder.cli.commands import main
from autograder.course import load_course

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
SHOWN = [page.relative_to(ROOT).as_posix() for page in PAGES]

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^[ \t]*```\w*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_COMMAND = re.compile(r"(?:\.venv/bin/)?autograder[ ]")


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def fenced_commands(page: Path) -> Iterator[str]:
    for block in _FENCE.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            if _COMMAND.match(line.strip()):
                yield line.strip().split("  #")[0]


def inline_commands(page: Path) -> Iterator[str]:
    """Commands in running text; one that ends in an option stands for the option alone."""
    for code in _CODE.findall(prose(page)):
        if _COMMAND.match(code) and "…" not in code and code == code.lower():
            yield code


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def parse(command: str) -> None:
    """Let click parse a command line, without running anything.

    Raises:
        click.ClickException: there is no such command or option, or an argument is missing.
    """
    words = shlex.split(command)[1:]
    with click.Context(main, info_name="autograder") as context:
        name, found, rest = main.resolve_command(context, words)
        assert found is not None
        for parameter in found.params:
            if isinstance(parameter.type, click.Path):
                parameter.type = click.STRING  # the file of an example is not here
        found.make_context(name, rest, parent=context)


@pytest.fixture(autouse=True)
def _paths_are_checked_again() -> Iterator[None]:
    types = {
        id(p): (p, p.type) for command in main.commands.values() for p in command.params
    }
    yield
    for parameter, kind in types.values():
        parameter.type = kind


@pytest.mark.parametrize("page", PAGES, ids=SHOWN)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    lost = []
    for target in _LINK.findall(_CODE.sub("", prose(page))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if (
            not path.is_file()
            or ROOT not in path.parents
            or (anchor and anchor not in anchors(path))
        ):
            lost.append(target)
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=SHOWN)
def test_commands_in_fenced_blocks_parse(page: Path) -> None:
    for command in fenced_commands(page):
        try:
            parse(command)
        except click.ClickException as error:
            pytest.fail(f"{command}: {error.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=SHOWN)
def test_commands_in_running_text_exist(page: Path) -> None:
    for code in inline_commands(page):
        words = shlex.split(code)[1:]
        assert words[0] in main.commands or words[0].startswith("-"), code
        known = set(
            itertools.chain(
                *(
                    p.opts
                    for c in [main, main.commands.get(words[0], main)]
                    for p in c.params
                )
            )
        )
        unknown = (
            {word for word in words if word.startswith("--")}
            - known
            - {"--help", "--version"}
        )
        assert unknown == set(), code


def test_some_commands_were_found() -> None:
    shown = {
        shlex.split(command)[1] for page in PAGES for command in fenced_commands(page)
    }
    assert {
        "build",
        "verify",
        "release",
        "collect",
        "grade",
        "report",
        "export",
        "bundle",
    } <= shown


@pytest.mark.parametrize(
    "wrong",
    [
        "autograder grde a2_attention",
        "autograder grade a2 --fast",
        "autograder release a2",
    ],
)
def test_a_wrong_command_is_seen(wrong: str) -> None:
    with pytest.raises(click.ClickException):
        parse(wrong)


def test_every_command_stands_in_the_documentation() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in main.commands if f"autograder {name}" not in text] == []


def test_every_setting_is_explained_to_instructors() -> None:
    settings = tomllib.loads((ROOT / "course.toml").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    explained = set(_CODE.findall("\n".join(row.split("|")[1] for row in rows)))
    assert {f"[{section}]" for section in settings} - explained == set()
    assert {key for values in settings.values() for key in values} - explained == set()


def test_the_readme_names_the_assignments_that_there_are() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = [assignment.name for assignment in load_course(ROOT).assignments()]
    assert [name for name in names if f"| `{name}` |" not in readme] == [], (
        "add a row to the README's table"
    )
    rows = re.findall(r"^\| `(a\d\w*)` \|", readme, re.MULTILINE)
    assert set(rows) <= set(names)


@pytest.mark.parametrize("page", PAGES, ids=SHOWN)
def test_make_verbs_exist(page: Path) -> None:
    verbs = set(
        re.findall(
            r"^([a-z-]+):",
            (ROOT / "Makefile").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"`make ([a-z-]+)[^`\n]*`", text) + re.findall(
        r"^make ([a-z-]+)", text, re.MULTILINE
    )
    assert set(shown) - verbs == set()
