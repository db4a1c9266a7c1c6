"""Build the website: the documentation, and each assignment as students get it.

    make site

The pages are README.md, CONTRIBUTING.md, CHANGELOG.md, docs/ and the released notebooks, in the
places that they have in the repository, so that links between them hold. Nothing else is copied:
sources, answer keys and hidden suites stay out. A warning of Sphinx ends the build.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from autograder.basics.natural_order import natural_order

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = Path(__file__).with_name("conf.py")
FRONT = "index.md"
"""README.md is the front page, and servers look for it under this name."""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]*)(#[^)\s]*)?\)")
_CONTENTS = """

```{{toctree}}
:hidden:
:caption: {caption}

{pages}
```
"""


def pages_of_documentation() -> list[Path]:
    """The pages, relative to the repository."""
    pages = [Path("README.md"), Path("CONTRIBUTING.md"), Path("CHANGELOG.md")]
    return [
        *pages,
        *(page.relative_to(ROOT) for page in sorted(ROOT.glob("docs/*.md"))),
    ]


def notebooks() -> list[Path]:
    """The released notebooks, relative to the repository."""
    paths = [path.relative_to(ROOT) for path in ROOT.glob("assignments/*/*.ipynb")]
    return sorted(paths, key=lambda path: natural_order(str(path)))


def collect(folder: Path) -> None:
    """Put everything that the site shows into a folder."""
    documentation = pages_of_documentation()
    shown = {*documentation, *notebooks()}
    shutil.copy(SETTINGS, folder)
    shutil.copytree(ROOT / "docs/figures", folder / "docs/figures")
    for page in documentation:
        text = (ROOT / page).read_text(encoding="utf-8")
        place = folder / (FRONT if page.name == "README.md" else page)
        place.parent.mkdir(exist_ok=True)
        place.write_text(links_of_the_site(text, page.parent, shown), encoding="utf-8")
    for notebook in notebooks():
        place = folder / notebook
        place.parent.mkdir(parents=True)
        shutil.copy(ROOT / notebook, place)
        figures = ROOT / notebook.parent / "figures"
        if figures.is_dir():
            shutil.copytree(figures, place.parent / "figures")
    with (folder / FRONT).open("a", encoding="utf-8") as front:
        front.writelines(tables_of_contents(documentation))


def links_of_the_site(text: str, folder: Path, shown: set[Path]) -> str:
    """The page with links that lead to its neighbours; a link to what the site does not show
    becomes its text.
    """

    def of_the_site(link: re.Match[str]) -> str:
        picture, words, target, anchor = link.groups(default="")
        path = Path((ROOT / folder / target).resolve()).relative_to(ROOT)
        if picture or path in shown:
            front = target.replace("README.md", FRONT)
            return f"{picture}[{words}]({front}{anchor})"
        return words

    return _LINK.sub(of_the_site, text)


def tables_of_contents(documentation: list[Path]) -> Iterator[str]:
    """What the sidebar lists, in the order in which people need it."""
    tables = {
        "Assignments": notebooks(),
        "Documentation": [page for page in documentation if page.parent.name == "docs"],
        "The project": [page for page in documentation if page.name.startswith("C")],
    }
    for caption, pages in tables.items():
        listed = "\n".join(page.with_suffix("").as_posix() for page in pages)
        yield _CONTENTS.format(caption=caption, pages=listed)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--to", type=Path, required=True, help="folder of the site")
    target = parser.parse_args().to.resolve()
    with tempfile.TemporaryDirectory(prefix="website-") as folder:
        collect(Path(folder))
        build = [
            sys.executable,
            "-m",
            "sphinx",
            "--fail-on-warning",
            "--keep-going",
            "--nitpicky",
        ]
        build += ["--quiet", "--fresh-env", "--doctree-dir", f"{folder}/.doctrees"]
        status = subprocess.run([*build, folder, str(target)], check=False).returncode
    for bundle in target.glob("_static/mathjax/*.js"):
        if (
            bundle.name != "tex-chtml.js"
        ):  # the others are for pages with other formulas
            bundle.unlink()
    return status


if __name__ == "__main__":
    raise SystemExit(main())
