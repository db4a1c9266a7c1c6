"""Renders a student's Markdown and HTML for nbgrader's pages, and cleans it last of all.

The formgrader runs with the instructor's rights, so one live link is code as the instructor.
nbconvert's and nbgrader's templates pass text through filters. `settings.py` puts the functions of
this module in the place of each filter that could let a student's HTML through, or that would
change HTML after it is clean: `strip_files_prefix` made `javascript:…` of `files/javascript:…`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import nh3
from jinja2 import pass_context
from jinja2.runtime import Context
from mistune import HTMLRenderer
from mistune.plugins import import_plugin
from nbconvert.filters import get_metadata
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.token import STANDARD_TYPES

LONGEST_KEPT = 20_000
"""Characters. The HTML of longer cells is not cached: no student may fill the memory."""

_MOST_TAGS = 20_000
"""Opening brackets. A text with more is shown as plain text: 100 000 nested elements take half a
minute to render.
"""

Attachments = Mapping[str, Mapping[str, str]]

_TEXT_ELEMENTS = """
    a abbr b blockquote br caption code dd del details div dl dt em figcaption figure h1
    h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre s small span strong sub summary sup
    table tbody td tfoot th thead tr u ul
"""
_OTHER_ELEMENTS = """
    address applet area article aside audio base basefont bdi bdo bgsound big body button
    canvas center cite col colgroup command data datalist dfn dialog dir embed fieldset
    font footer form frame frameset head header hgroup html iframe image input isindex
    label legend link listing main map marquee math menu meta meter nav nobr noembed
    noframes noscript object optgroup option output param picture plaintext portal
    progress q rp rt ruby samp script search section select slot source strike style svg
    template textarea time title track tt var video wbr xmp
"""
_TAGS = set(_TEXT_ELEMENTS.split())
"""Elements that stay. All others lose their tags."""
_KNOWN_TAGS = _TAGS | set(_OTHER_ELEMENTS.split())
"""Elements that browsers know. Any other name in angle brackets is a word, such as <pad>, and is
shown as text.
"""
_ATTRIBUTES = {
    "*": {"id", "title"},
    "a": {"href"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start"},
    "td": {"align", "colspan", "rowspan", "style"},
    "th": {"align", "colspan", "rowspan", "style"},
}
_CLASSES = {
    "span": {name for name in STANDARD_TYPES.values() if name},  # the colours of code
    "div": {"highlight"},
    "a": {"anchor-link"},
}
_PREFIX = "answer-"
"""Prefix of ids in a student's text and of links to them, since buttons and scores of the page
have ids too.
"""

_TAG = re.compile(r"<(?=/?([A-Za-z][^\s/>]*)([^<>]*))")
_UNSEEN = re.compile(
    r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\\]"
)
_MAILBOX = re.compile(r"[\w.+-]+@[\w.-]+")
_HOST = re.compile(r"[\w.-]+")
_PICTURE_FILE = re.compile(r".+\.(png|jpe?g|gif|webp|svg)", re.IGNORECASE)
_PICTURE_KINDS = ("image/svg+xml", "image/png", "image/jpeg", "image/gif", "image/webp")
_DATA_PICTURE = re.compile(
    r"data:(image/(?:svg\+xml|png|jpeg|gif|webp));base64,([A-Za-z0-9+/=\s]+)"
)
_NUMBER = re.compile(r"\d{1,5}(?:\.\d{1,5})?(?:px|%)?")
_SAFE = "!$&'()*+,;=:@/?~%"
"""Characters besides letters and digits that are not escaped in the parts of an address."""


@pass_context
def markdown_to_html(context: Context, source: str) -> str:
    """Render a cell's Markdown as clean HTML, with the pictures attached to the cell."""
    attachments = context.get("cell", {}).get("attachments")
    if attachments or len(source) > LONGEST_KEPT:
        return render(source, attachments or {})
    return _without_attachments(source)


def render(source: str, attachments: Attachments) -> str:
    """Render Markdown as clean HTML, or as plain text where it cannot be rendered."""
    if source.count("<") > _MOST_TAGS:
        return _as_plain_text(source)
    plugins = [
        import_plugin(name) for name in ("strikethrough", "table", "url", "def_list")
    ]
    markdown = MarkdownWithMath(renderer=_Renderer(escape=False), plugins=plugins)
    try:
        rendered = markdown.render(source)
    except (
        Exception
    ):  # of a library at one student's text: the page must open all the same
        return _as_plain_text(source)
    return _clean(rendered, attachments)


def clean_html(text: str | bytes) -> str:
    """Clean the HTML of an output or of a raw cell."""
    markup = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    if markup.count("<") > _MOST_TAGS:
        return _as_plain_text(markup)
    return _clean(markup, {})


def leave_as_it_is(text: str) -> str:
    """Stand in for a filter that would change HTML after the cleaning."""
    return text


def metadata_of_output(output: Any, key: str, mimetype: str | None = None) -> Any:
    """A value of an output's metadata. Sizes must be numbers: the template does not quote them."""
    value = get_metadata(output, key, mimetype)
    if key in ("width", "height"):
        return str(value) if _NUMBER.fullmatch(str(value)) else None
    return value


@lru_cache(maxsize=1024)
def _without_attachments(source: str) -> str:
    return render(source, {})


class _Renderer(IPythonRenderer):  # type: ignore[misc]
    """Renders words in angle brackets as text, and leaves attached pictures to the cleaning."""

    def inline_html(self, html: str) -> str:
        return str(super().inline_html(_words_as_text(html)))

    def block_html(self, html: str) -> str:
        return str(super().block_html(_words_as_text(html)))

    def image(self, text: str, url: str, title: str | None = None) -> str:
        # nbconvert's raises where an attachment is missing
        return str(HTMLRenderer.image(self, text, url, title))


def _as_plain_text(text: str) -> str:
    return f"<pre>{html.escape(text)}</pre>"


def _words_as_text(markup: str) -> str:
    """Escape the brackets of words that are no elements and have no attributes."""

    def escape_word(tag: re.Match[str]) -> str:
        is_element = tag[1].lower() in _KNOWN_TAGS or "=" in tag[2]
        return tag[0] if is_element else "&lt;"

    return _TAG.sub(escape_word, markup)


def _clean(markup: str, attachments: Attachments) -> str:
    return nh3.clean(
        markup,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        filter_style_properties={"text-align"},
        # the last two for pictures, see _attribute_filter
        url_schemes={"http", "https", "mailto", "data", "attachment"},
        attribute_filter=_attribute_filter(attachments),
        id_prefix=_PREFIX,
    )


def _attribute_filter(
    attachments: Attachments,
) -> Callable[[str, str, str], str | None]:
    def filter_value(tag: str, attribute: str, value: str) -> str | None:
        if attribute == "href":
            return _link(value)
        if attribute == "src":
            return _picture(value, attachments)
        if attribute in ("width", "height", "colspan", "rowspan", "start"):
            return value if _NUMBER.fullmatch(value) else None
        return value

    return filter_value


def _link(address: str) -> str | None:
    """Rebuild the address of a link from its parts: a web address, a mailbox, a place on the page.

    None for everything else: a path would lead into the instructor's own Jupyter.
    """
    if address.startswith("#") and len(address) > 1:
        return f"#{_PREFIX}{quote(unquote(address[1:]))}"
    if _UNSEEN.search(address):
        return None
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.scheme == "mailto":
        mailbox = unquote(parts.path)
        return (
            f"mailto:{quote(mailbox, safe='@+')}"
            if _MAILBOX.fullmatch(mailbox)
            else None
        )
    if (
        parts.scheme not in ("http", "https")
        or "@" in parts.netloc
        or not _HOST.fullmatch(host)
    ):
        return None
    place = host if port is None else f"{host}:{port}"
    query = f"?{quote(parts.query, safe=_SAFE)}" if parts.query else ""
    fragment = f"#{quote(parts.fragment, safe=_SAFE)}" if parts.fragment else ""
    return f"{parts.scheme}://{place}{quote(parts.path, safe=_SAFE)}{query}{fragment}"


def _picture(address: str, attachments: Attachments) -> str | None:
    """Rebuild the address of a picture: attached to the cell, in a `data:` address, on the web, or
    a file beside the page.
    """
    if address.startswith("attachment:"):
        name = address.removeprefix("attachment:")
        kinds = attachments.get(name) or attachments.get(unquote(name)) or {}
        kind = next((kind for kind in _PICTURE_KINDS if kind in kinds), None)
        address = f"data:{kind};base64,{kinds[kind]}" if kind else ""
    if data := _DATA_PICTURE.fullmatch(address):
        return f"data:{data[1]};base64,{''.join(data[2].split())}"
    if address.startswith(("http:", "https:")):
        return _link(address)
    path = unquote(address).removeprefix("/files/").removeprefix("files/")
    leads_out = {"", ".", ".."} & set(path.split("/"))
    if leads_out or ":" in path or _UNSEEN.search(path.replace(" ", "_")):
        return None
    return quote(path) if _PICTURE_FILE.fullmatch(path) else None
