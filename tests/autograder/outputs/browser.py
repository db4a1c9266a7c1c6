"""A page as a browser sees it: what ran in it, and what elements it ended with.

Every payload that runs leaves a mark on the root element, so a page that was not taken over has
none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
_LACK = "no chromium, chromium-browser or google-chrome on PATH"
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and "REQUIRE_CHROMIUM" not in os.environ, reason=_LACK
)
"""Skips where there is no browser; with REQUIRE_CHROMIUM in the environment, a test fails there
instead.
"""

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
"""What every browser of the tests is started with."""
_DUMP = ("--virtual-time-budget=1000", "--dump-dom")
_NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND"


def _mark(name: str, document: str = "document") -> str:
    return f"{document}.documentElement.dataset.{name}=1"


PAYLOADS = {
    "script": f"<script>{_mark('script')}</script>",
    "closing": f"</title></style></textarea></pre></code></p></td></table><script>{_mark('closing')}</script>",
    "image": f"<img src=x onerror='{_mark('image')}'>",
    "quoted": f"'\"><img src=x onerror='{_mark('quoted')}'>",
    "drawing": f"<svg onload='{_mark('drawing')}'></svg>",
    "animation": f"<svg><animate onbegin='{_mark('animation')}' attributeName=x dur=1s></svg>",
    "details": f"<details open ontoggle='{_mark('details')}'>a</details>",
    "source": f"<video><source onerror='{_mark('source')}'></video>",
    "frame": f'<iframe src="javascript:{_mark("frame", "parent.document")}"></iframe>',
    "inner": f'<iframe srcdoc="<script>{_mark("inner", "parent.document")}</script>"></iframe>',
    "styled": f"<style>@keyframes k{{}} .k{{animation:k}}</style><b class=k "
    f"onanimationstart='{_mark('styled')}'>x</b>",
    "maths": f"<math><mtext></p><img src=x onerror='{_mark('maths')}'></math>",
}
"""What runs by itself where it stands in a page's text, by the mark that it leaves."""

IN_AN_ATTRIBUTE = f"\" tabindex=0 autofocus onfocus='{_mark('attribute')}' x=\""
"""What runs by itself where it stands in a quoted attribute; its mark is `attribute`."""

QUIET = {
    "link": f'<a href="javascript:{_mark("link")}">x</a>',
    "refresh": "<meta http-equiv=refresh content='0;url=elsewhere.html'>",
    "base": "<base href='http://elsewhere.example/'>",
    "sheet": "<link rel=stylesheet href=x.css><style>*{display:none}</style>",
    "form": "<form action=x><input name=y><button>z</button></form>",
    "template": "{{ 7 * 191 }}{% if x %}${7*191}<%= 7*191 %>",
    "comment": "--><!-- ",
    "cdata": "]]><![CDATA[",
    "plain": "<plaintext><xmp><noscript><template>",
    "entities": "&lt;script&gt;&#60;img&#62;",
    "terminal": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J",
    "reversed": "abc\u202edcba\u2066\u200f",
    "markdown": "[x](javascript:alert(1)) ![y](http://elsewhere.example/z.png)",
}
"""What does its harm in another way, or would take the rest of the page with it."""

HOSTILE = {**PAYLOADS, "attribute": IN_AN_ATTRIBUTE, **QUIET}
STEERING = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\u200f")


class Page(HTMLParser):
    """The elements of a page in order, with the names of their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.text = ""
        self.ran: set[str] = set()
        self.feed(html)
        self.close()

    def handle_starttag(
        self, tag: str, attributes: list[tuple[str, str | None]]
    ) -> None:
        names = [name for name, _ in attributes]
        if tag == "html":
            self.ran = {
                name.removeprefix("data-") for name in names if name.startswith("data-")
            }
            names = [name for name in names if not name.startswith("data-")]
        self.elements.append((tag, tuple(sorted(names))))
        self.links += [
            value or ""
            for name, value in attributes
            if name in ("href", "src", "action", "srcdoc")
        ]

    def handle_data(self, data: str) -> None:
        self.text += data


def in_a_browser(html: str, folder: Path) -> Page:
    """Load the page from a file, let it run, and read what became of it."""
    assert CHROMIUM is not None, _LACK
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    (folder / "elsewhere.html").write_text(
        "<!DOCTYPE html><html data-elsewhere=1><title>x</title>", encoding="utf-8"
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            CHROMIUM,
            *OPTIONS,
            *_DUMP,
            _NO_NETWORK,
            f"--user-data-dir={profile}",
            path.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    dumped = done.stdout.decode("utf-8")
    assert "<html" in dumped
    return Page(dumped)
