"""`autograder release --for colab`: one notebook that carries all files of a release.

Pictures become data in the text. The first given cell, folded, writes the other files beside the
notebook when it runs, and then does what it does in the release: so a notebook that was handed in
is matched and graded like any other.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import re
import zlib
from collections.abc import Mapping
from typing import Any

from autograder.intake.companion_files import CARRIED_END, CARRIED_TITLE

_PICTURE = re.compile(r"(\]\()(figures/[^)\s]+)|(src=[\"'])(figures/[^\"']+)")
_FOLDED = {
    "cellView": "form",  # Colab
    "_kg_hide-input": True,  # Kaggle
    "jupyter": {"source_hidden": True},
}
_UNPACK = f"""\
{CARRIED_TITLE}: run this cell first {{{{ display-mode: "form" }}}}
import base64, pathlib, zlib

for _name, _content in {{{{
{{files}}
}}}}.items():
    _path = pathlib.Path(_name)
    _path.parent.mkdir(parents=True, exist_ok=True)
    {CARRIED_END}"""
HOSTS = {
    "colab": {"colab": {"provenance": []}},
    "kaggle": {"kaggle": {"accelerator": "none", "isInternetEnabled": True}},
    "plain": {},
}
"""Where a single file is opened → metadata of a notebook there."""


def make_single_file(release: bytes, files: Mapping[str, bytes], host: str) -> bytes:
    """The notebook of a release with all its files inside.

    Args:
        files: path beside the notebook → content.
        host: one of `HOSTS`.
    """
    notebook: dict[str, Any] = json.loads(release)
    carried = {
        path: content for path, content in files.items() if path[:8] != "figures/"
    }
    is_unpacked = False
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            text = put_pictures_inside(text, files)
        elif cell["metadata"]["attention_kit"]["role"] == "given" and not is_unpacked:
            is_unpacked = True
            text = f"{_unpack(carried)}{text}"
            cell["metadata"] |= _FOLDED
        cell["source"] = text.splitlines(keepends=True)
    notebook["metadata"] |= HOSTS[host]
    return (
        json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    ).encode()


def put_pictures_inside(text: str, files: Mapping[str, bytes]) -> str:
    """A text whose links to figures have the figures themselves as their targets."""
    return _PICTURE.sub(lambda link: _as_data(link, files), text)


def _as_data(link: re.Match[str], files: Mapping[str, bytes]) -> str:
    """A link to a picture, with the picture itself as its target."""
    if link[1]:
        before, path = link[1], link[2]
    else:
        before, path = link[3], link[4]
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    content = base64.b64encode(files[path]).decode()
    return f"{before}data:{kind};base64,{content}"


def _unpack(files: Mapping[str, bytes]) -> str:
    """The text that writes these files."""
    lines = []
    for path, content in sorted(files.items()):
        packed = base64.b64encode(zlib.compress(content, 9)).decode()
        lines.append(f'    "{path}": "{packed}",')
    return _UNPACK.format(files="\n".join(lines))


def colab_badge(repository: str, path: str) -> str:
    """The line of a README at GitHub that opens a notebook of the repository in Colab.

    Args:
        repository: owner/name.
        path: the notebook's path in it, on the branch main.
    """
    host = "https://colab.research.google.com"
    return (
        f"[![Open in Colab]({host}/assets/colab-badge.svg)]"
        f"({host}/github/{repository}/blob/main/{path})"
    )
