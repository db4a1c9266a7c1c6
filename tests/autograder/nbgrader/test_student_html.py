"""A student's Markdown on nbgrader's pages: no address runs anything, and honest text stays to be
read.
"""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import strip_files_prefix
from traitlets.config import Config

from autograder.nbgrader import settings, student_html
from autograder.nbgrader.student_html import clean_html, render

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


class _Parts(HTMLParser):
    """The addresses of a page, the names of its elements and attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [
            value or ""
            for name, value in attrs
            if name in ("href", "src", "xlink:href", "action")
        ]

    def handle_data(self, data: str) -> None:
        self.text += data


LIVE = [
    "[one](files/javascript:alert(1))",
    "[one](/files/javascript:alert(1))",
    "[one](files/files/javascript:alert(1))",
    "[one](files//files/javascript:alert(1))",
    "[one](FILES/javascript:alert(1))",
    "[one](javascript:alert(1))",
    "[one](JaVaScRiPt:alert(1))",
    "[one](java&#115;cript:alert(1))",
    "[one](javascript&colon;alert(1))",
    "[one](%6aavascript:alert(1))",
    "[one](vbscript:x)",
    "[one](data:text/html,<script>alert(1)</script>)",
    "[one](files/data:text/html;base64,PHNjcmlwdD4=)",
    "[one](blob:https://example.org/x)",
    "[one](file:///etc/passwd)",
    "[one](view-source:https://example.org)",
    "[one](../../../files/submitted/eve/page.html)",
    "[one](/api/contents)",
    "[one](//example.org/x)",
    "[one](https:example.org)",
    "[one](https://user:word@example.org)",
    "[one](mailto:javascript:alert)",
    "[one][r]\n\n[r]: files/javascript:alert(1) 'a title'",
    "[r]\n\n[r]: <files/javascript:alert(1)>",
    "<javascript:alert(1)>",
    "<files/javascript:alert(1)>",
    "<a href='files/javascript:alert(1)'>one</a>",
    '<a href="/files/javascript:alert(1)">one</a>',
    "<a href=files/javascript:alert(1)>one</a>",
    "<a href='&#x6a;avascript:alert(1)'>one</a>",
    "<a href='java\nscript:alert(1)'>one</a>",
    "<a href='java&Tab;script:alert(1)'>one</a>",
    "<a href='\x01javascript:alert(1)'>one</a>",
    "<a href=' \u00a0javascript:alert(1)'>one</a>",
    "<a href='https:\\\\example.org'>one</a>",
    "<a title='[x](files/javascript:alert(1))' href='[x](files/javascript:alert(1))'>one</a>",
    "<a ping='https://example.org' href='x:y' target=_top>one</a>",
    "<svg><a xlink:href='files/javascript:alert(1)'><text>one</text></a></svg>",
    "<svg><use href='data:image/svg+xml,x'></use><image href='javascript:alert(1)'/></svg>",
    "<math><maction actiontype='statusline' xlink:href='javascript:alert(1)'>one</maction></math>",
    "<math href='javascript:alert(1)'><mi>one</mi></math>",
    "<area href='javascript:alert(1)'>",
    "<base href='javascript:alert(1)//'>",
    "<form action='javascript:alert(1)'><button "
    "formaction='javascript:alert(1)'>one</button></form>",
    "<iframe src='javascript:alert(1)' srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data='javascript:alert(1)'></object><embed src='javascript:alert(1)'>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<img src='javascript:alert(1)' onerror='alert(1)'>",
    "<img src=x onerror=alert(1)>",
    "![p](files/javascript:alert(1))",
    "![p](data:text/html;base64,PHNjcmlwdD4=)",
    "![p](data:image/svg+xml,<svg onload=alert(1)>)",
    "![p](../../api/shutdown.png)",
    "![p](..%2f..%2fapi.png)",
    "![p](%2e%2e/api.png)",
    "![p](/user/eve/x.png)",
    "![p](attachment:none.png)",
    "![p](attachment:page.html)",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<svg></p><style><a id='</style><img src=x onerror=alert(1)>'>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x "
    "onerror=alert(1)&gt;'>",
    "```mermaid\n</pre><script>alert(1)</script>\n```",
    "<script>alert(1)</script>",
]


@pytest.mark.parametrize("text", LIVE)
def test_no_address_and_no_element_is_live(text: str) -> None:
    attachments = {"page.html": {"text/html": "PHNjcmlwdD4="}}
    for html in (
        render(text, attachments),
        clean_html(text),
        strip_files_prefix(render(text, attachments)),
    ):
        parts = _Parts(html)
        assert parts.addresses == []
        assert not parts.elements & {
            "script",
            "iframe",
            "svg",
            "math",
            "form",
            "button",
            "base",
            "object",
            "embed",
            "meta",
            "style",
            "noscript",
            "area",
            "input",
        }
        assert parts.attributes <= {"rel", "title", "alt", "class", "id"}


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        (
            "[a](https://example.org/a%20b?c=d&e=f#g)",
            ["https://example.org/a%20b?c=d&e=f#g"],
        ),
        ("[a](HTTP://EXAMPLE.org:8080)", ["http://example.org:8080"]),
        ("[a](mailto:ada@example.org)", ["mailto:ada@example.org"]),
        ("[a](#Because)", ["#answer-Because"]),
        ("see https://example.org/x", ["https://example.org/x"]),
        ("<https://example.org/x>", ["https://example.org/x"]),
        (
            "[a](https://en.wikipedia.org/wiki/Attention_(machine_learning))",
            ["https://en.wikipedia.org/wiki/Attention_(machine_learning)"],
        ),
        ("![a](https://example.org/a.png)", ["https://example.org/a.png"]),
        ("![a](figures/split_heads.svg)", ["figures/split_heads.svg"]),
        ("![a](files/figures/split_heads.svg)", ["figures/split_heads.svg"]),
        ("![a](my%20plot.png)", ["my%20plot.png"]),
        (f"![a](data:image/png;base64,{PIXEL})", [f"data:image/png;base64,{PIXEL}"]),
    ],
)
def test_honest_links_and_pictures_stay(text: str, addresses: list[str]) -> None:
    assert _Parts(render(text, {})).addresses == addresses


@pytest.mark.parametrize(
    "text",
    [
        "![p](attachment:my%20plot.png)",
        "<img src='attachment:my plot.png' width='200'>",
        "![p](attachment:q)",
    ],
)
def test_attached_pictures_are_shown(text: str) -> None:
    attachments = {
        "my plot.png": {"image/png": f"{PIXEL[:60]}\n{PIXEL[60:]}"},
        "q": {"image/png": PIXEL},
    }
    assert _Parts(render(text, attachments)).addresses == [
        f"data:image/png;base64,{PIXEL}"
    ]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            "the <pad> token, <eos key>, a<b and `x<y`",
            "the <pad> token, <eos key>, a<b and x<y",
        ),
        (r"$a<b$ and $$\frac{a}{b}$$", r"$a<b$ and $$\frac{a}{b}$$"),
        (r"\begin{align}a&=b\end{align}", r"\begin{align}a&=b\end{align}"),
        ("```python\nif a < b: return 'c'\n```", "if a < b: return 'c'\n"),
        ("- [x] done", "[x] done"),
        ("a **b** _c_ ~~d~~ <u>e</u> <font color=red>f</font>", "a b c d e f"),
    ],
)
def test_honest_text_stays_letter_by_letter(text: str, read: str) -> None:
    assert _Parts(render(text, {})).text.strip() == read.strip()


def test_tables_and_code_keep_their_looks() -> None:
    assert '<td style="text-align:right">2</td>' in render("| a |\n|--:|\n| 2 |", {})
    assert '<span class="k">return</span>' in render("```python\nreturn\n```", {})


def test_a_students_id_is_none_of_the_pages_own() -> None:
    html = render(
        "# written_why\n\n<b id='statusmessage' class='btn full-credit navbar-fixed-top'>x</b>",
        {},
    )
    assert 'id="answer-written_why"' in html
    assert '<b id="answer-statusmessage">x</b>' in html


def test_a_text_that_would_take_minutes_is_shown_letter_by_letter() -> None:
    assert render("<div>" * 100_000, {}) == f"<pre>{'&lt;div&gt;' * 100_000}</pre>"


def test_more_brackets_than_the_most_are_shown_letter_by_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(student_html, "_MOST_TAGS", 2)
    assert clean_html("<b>x</b>") == "<b>x</b>"
    assert clean_html(b"<b>x</b><") == "<pre>&lt;b&gt;x&lt;/b&gt;&lt;</pre>"
    assert render("<b>x</b>", {}).strip() == "<p><b>x</b></p>"
    assert render("<b>x</b><", {}) == "<pre>&lt;b&gt;x&lt;/b&gt;&lt;</pre>"


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert clean_html(b"a\xff") == "a\ufffd"


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("width", 20, "20"),
        ("height", "12.5px", "12.5px"),
        ("width", "100%", "100%"),
        ("width", "1 onload=x", None),
        ("height", "123456", None),
        ("alt", "1 onload=x", "1 onload=x"),
    ],
)
def test_the_size_of_an_output_is_a_number(
    key: str, value: object, shown: object
) -> None:
    output = nbformat.v4.new_output(
        "display_data", {"image/png": PIXEL}, metadata={"image/png": {key: value}}
    )
    assert student_html.metadata_of_output(output, key, "image/png") == shown


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("#", None),
        ("#a b", "#answer-a%20b"),
        ("mailto:ada@x.edu", "mailto:ada@x.edu"),
        ("mailto:ada", None),
        ("https://x.edu:80/a?b=1#c", "https://x.edu:80/a?b=1#c"),
        ("https://x.edu", "https://x.edu"),
        ("https://ada@x.edu", None),
        ("https://x.edu:none/", None),
        ("ftp://x.edu", None),
        ("https:///a", None),
        ("https://x.edu/\u200ba", None),
    ],
)
def test_a_link_is_rebuilt_from_its_parts(address: str, link: str | None) -> None:
    assert student_html._link(address) == link


def test_outputs_of_notebooks_without_a_suite_run_nothing() -> None:
    """nbgrader's templates write sizes without quotes, and HTML, scripts and widgets as they
    are.
    """
    config = Config()
    settings._steps(config)
    metadata = {"image/png": {"width": "1 onerror=alert(1)", "height": 20}}
    outputs = [
        nbformat.v4.new_output("display_data", {"image/png": PIXEL}, metadata=metadata),
        nbformat.v4.new_output(
            "display_data",
            {"text/html": "<b onclick=x>bold</b><script>alert(1)</script>"},
        ),
        nbformat.v4.new_output("display_data", {"application/javascript": "alert(2)"}),
        nbformat.v4.new_output(
            "display_data", {"text/markdown": "[m](files/javascript:alert(3))"}
        ),
    ]
    cells = [
        nbformat.v4.new_code_cell("1", outputs=outputs),
        nbformat.v4.new_raw_cell("<img src=x onerror=alert(4)>"),
    ]
    html, _ = HTMLExporter(config=config, template_name="classic").from_notebook_node(
        nbformat.v4.new_notebook(cells=cells)
    )
    body = html[html.index("<body") :]
    assert "alert(" not in body
    assert "onclick" not in body
    assert "<b>bold</b>" in body
    assert 'height="20"' in body


@pytest.mark.parametrize(("length", "is_kept"), [(20_000, True), (20_001, False)])
def test_a_long_cell_is_rendered_and_not_kept(length: int, is_kept: bool) -> None:
    student_html._without_attachments.cache_clear()
    context: Any = {"cell": {}}
    text = "a" * length
    for _ in range(2):
        html = student_html.markdown_to_html(context, text)
        assert html.strip() == f"<p>{text}</p>"
    kept = student_html._without_attachments.cache_info()
    assert (kept.currsize, kept.hits) == ((1, 1) if is_kept else (0, 0))


def test_a_text_may_have_twenty_thousand_brackets() -> None:
    assert clean_html("< " * 20_000).startswith("&lt;")
    assert clean_html("< " * 20_001).startswith("<pre>")
