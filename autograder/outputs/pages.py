"""Self-contained HTML pages: no script, nothing loaded from anywhere, every value escaped."""

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

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_MESSAGE = 2000

_CODE = re.compile(r"`([^`\n]+)`")


def render(template: str, **values: Any) -> str:
    """The page `template` with these values. The policy in its head allows its own style sheet and
    nothing else.
    """
    return "".join(render_pieces(template, **values))


def render_pieces(template: str, **values: Any) -> Iterator[str]:
    """As `render`, piece by piece: the page of a large class is never in memory."""
    css = (TEMPLATES / "page.css").read_text(encoding="utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return _environment().get_template(template).generate(css=css, policy=policy, **values)


@functools.cache
def _environment() -> Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
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
    # Runs on every value before it is escaped, so that no template can forget it. Markup is ready
    # already.
    return clean(value) if type(value) is str else value


def prose(text: str) -> Markup:
    """A message as HTML: escaped first, then what stands in backticks becomes code."""
    from markupsafe import Markup, escape

    escaped = str(escape(shorten(clean(text).strip(), LONGEST_MESSAGE)))
    return Markup(_CODE.sub(r"<code>\1</code>", escaped))
