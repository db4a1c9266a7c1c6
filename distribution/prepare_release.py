"""Make a checkout ready to be released under a tag: absolute links on the page of the package, and
the addresses of the repository in its metadata.

    python distribution/prepare_release.py https://HOST/OWNER/NAME vX.Y.Z

Only the release's own checkout is changed: README.md, pyproject.toml, and build/release/notes.md,
which is the version's section of CHANGELOG.md. A tag that is not the version of pyproject.toml is
refused.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)")
_URLS = """\
[project.urls]
Repository = "{repository}"
Documentation = "{repository}/blob/{tag}/README.md#documentation"
Changelog = "{repository}/blob/{tag}/CHANGELOG.md"
Issues = "{repository}/issues"

[project.scripts]
"""


def absolute_links(page: str, repository: str, tag: str) -> str:
    """The page with its relative links and pictures as addresses of the repository at a tag."""

    def absolute(link: re.Match[str]) -> str:
        picture, text, target = link.groups()
        kind = "raw" if picture else "blob"
        return f"{picture}{text}({repository}/{kind}/{tag}/{target})"

    return _LINK.sub(absolute, page)


def release_notes(changelog: str, version: str) -> str:
    """The section of a version.

    Raises:
        ValueError: the version has no section.
    """
    section = re.search(
        rf"^## {re.escape(version)}\n(.*?)(?=^## |\Z)", changelog, re.M | re.S
    )
    if section is None:
        raise ValueError(f"CHANGELOG.md has no section {version}")
    return section[1].strip() + "\n"


def prepare(root: Path, repository: str, tag: str) -> None:
    """Change the checkout.

    Raises:
        ValueError: the tag is not the version's, or nothing is said of the version.
    """
    settings = root / "pyproject.toml"
    text = settings.read_text(encoding="utf-8")
    version = tomllib.loads(text)["project"]["version"]
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, and pyproject.toml has version {version}")
    notes = release_notes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    (root / "build/release").mkdir(parents=True, exist_ok=True)
    (root / "build/release/notes.md").write_text(notes, encoding="utf-8")
    urls = _URLS.format(repository=repository, tag=tag)
    settings.write_text(text.replace("[project.scripts]\n", urls), encoding="utf-8")
    readme = root / "README.md"
    page = absolute_links(readme.read_text(encoding="utf-8"), repository, tag)
    readme.write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repository", help="address of the repository")
    parser.add_argument("tag", help="like v1.2.3")
    arguments = parser.parse_args()
    try:
        prepare(
            Path(__file__).resolve().parents[1], arguments.repository, arguments.tag
        )
    except ValueError as error:
        sys.exit(f"not to be released: {error}")


if __name__ == "__main__":
    main()
