"""Render self-contained HTML pages: no script, nothing loaded, every value escaped."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.basics.points import format_points
from autograder.basics.safe_text import clean, describe_test, one_line, shorten
from autograder.outputs.outcome_words import LONGEST_MESSAGE

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
_CODE = re.compile(r"`([^`\n]+)`")


def render(template: str, **values: Any) -> str:
    """Render a page. The policy in its head allows the page's style sheet and nothing else."""
    return "".join(render_pieces(template, **values))


def render_pieces(template: str, **values: Any) -> Iterator[str]:
    """Render a page piece by piece: the page of a large class is never in memory."""
    css = (TEMPLATES / "page.css").read_text(encoding="utf-8").strip()
    digest = hashlib.sha256(css.encode()).digest()
    source = f"sha256-{base64.b64encode(digest).decode()}"
    policy = (
        f"default-src 'none'; style-src '{source}'; base-uri 'none'; form-action 'none'"
    )
    page = _environment().get_template(template)
    return page.generate(css=css, policy=policy, **values)


@functools.cache
def _environment() -> Environment:
    return make_environment(TEMPLATES)


def make_environment(*folders: Path) -> Environment:
    """An environment for the templates in these folders, in which every value is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        prose=prose, points=format_points, claim=describe_test, one_line=one_line
    )
    return environment


def _finalize(value: Any) -> Any:
    # Runs on every value before escaping, so that no template can forget it. Markup is clean.
    return clean(value) if type(value) is str else value


def prose(text: str) -> Markup:
    """A message as HTML: escape the text, then turn text in backticks into code."""
    from markupsafe import Markup, escape

    message = shorten(clean(text).strip(), LONGEST_MESSAGE)
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(message))))
