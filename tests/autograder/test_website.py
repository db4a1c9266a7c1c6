"""The website shows the documentation and what students get, and no answer and no hidden test.

With SITE=FOLDER the same is asked of a site that Sphinx has built there; the workflow `site` does.
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
from pathlib import Path

import pytest
from project_file import ROOT

sys.path.insert(0, str(ROOT / "website"))

from build_site import collect, links_of_the_site, notebooks

ASSIGNMENTS = sorted(path.parent.name for path in ROOT.glob("assignments/*/*.ipynb"))
_LONG_ENOUGH = 20
"""Letters of a line that says something: `return x` stands in many texts."""
BUILT = os.environ.get("SITE", "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages that Sphinx gets, or the site that it has built."""
    if BUILT:
        return ROOT / BUILT
    folder = tmp_path_factory.mktemp("site")
    collect(folder)
    return folder


def letters(text: str) -> str:
    """The letters and digits of a text: what is left of it however it is set."""
    return re.sub(r"\W+", "", text)


def cells_of(path: Path) -> list[str]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"]]


def shown(path: Path) -> str:
    if path.suffix == ".ipynb":
        return "\n".join(cells_of(path))
    text = path.read_text(encoding="utf-8")
    return (
        html.unescape(re.sub(r"<[^>]*>", "", text)) if path.suffix == ".html" else text
    )


@pytest.fixture(scope="module")
def texts(site: Path) -> dict[str, str]:
    """Every text of the site but programs and styles of the theme, by path."""
    return {
        path.relative_to(site).as_posix(): shown(path)
        for path in site.rglob("*")
        if path.suffix in (".md", ".ipynb", ".html", ".txt", ".py", ".json")
        and "_static" not in path.parts
    }


def secret_lines(name: str) -> set[str]:
    """Lines of an answer key that the release does not have, in letters: answers in code and in
    words.
    """
    release = letters("\n".join(cells_of(ROOT / f"assignments/{name}/{name}.ipynb")))
    lines = "\n".join(cells_of(ROOT / f"solutions/{name}/{name}.ipynb")).splitlines()
    return {
        letters(line)
        for line in lines
        if len(letters(line)) >= _LONG_ENOUGH and letters(line) not in release
    }


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_no_answer_stands_in_an_assignment_s_page(
    name: str, texts: dict[str, str]
) -> None:
    secrets = secret_lines(name)
    assert len(secrets) > 10
    (page,) = [letters(text) for path, text in texts.items() if Path(path).stem == name]
    assert [line for line in sorted(secrets) if line in page] == []


def test_no_hidden_test_stands_anywhere(texts: dict[str, str]) -> None:
    names = {
        name
        for path in ROOT.glob("tests/hidden/*/test_*.py")
        for name in re.findall(
            r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M
        )
    }
    assert len(names) > 500
    mentioned = {
        name for text in texts.values() for name in re.findall(r"\btest_\w+", text)
    }
    assert names & mentioned == set()


def test_nothing_else_of_the_repository_is_on_the_site(site: Path) -> None:
    folders = {
        path.relative_to(site).parts[0] for path in site.rglob("*") if path.is_file()
    }
    assert not folders & {"source", "solutions", "tests", "autograder", "course.toml"}
    programs = [path for path in site.rglob("*.py") if path.name != "conf.py"]
    assert programs == []


def test_every_assignment_has_a_page(texts: dict[str, str]) -> None:
    pages = {Path(path).stem for path in texts}
    assert {notebook.stem for notebook in notebooks()} == set(ASSIGNMENTS)
    assert set(ASSIGNMENTS) <= pages
    assert "index" in pages


def test_links_stay_on_the_site() -> None:
    page = (
        "[docs](../README.md#part) [here](#part) [suite](../tests/hidden/a1/test_x.py) "
        "![picture](figures/flow.svg) [there](https://x.example/y)"
    )
    assert links_of_the_site(page, Path("docs"), {Path("README.md")}) == (
        "[docs](../index.md#part) [here](#part) suite "
        "![picture](figures/flow.svg) [there](https://x.example/y)"
    )
