"""Harming the reader: what comes from a student and ends on a page, in a terminal, in a table."""

from __future__ import annotations

from attack import Attack, in_a_cell, in_total

_SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)><a href='javascript:alert(1)'>x</a><!--"

ATTACKS = [
    in_total("html_in_a_message", f'raise ValueError("""{_SCRIPT}""")'),
    in_total(
        "html_in_a_class_name", f'raise type("""{_SCRIPT}""", (Exception,), {{}})("x")'
    ),
    in_total(
        "html_in_a_source_line",
        "raise ValueError  # <script>alert(1)</script><img src=x onerror=alert(1)>",
    ),
    in_total("html_in_an_answer", f'return """{_SCRIPT}"""'),
    in_total(
        "html_in_the_kind_of_a_handle", f'return type("""{_SCRIPT}""", (), {{}})()'
    ),
    in_total(
        "html_in_a_function_name",
        "f = {}\nexec(compile('def g(): 1/0', '<cell <b>x</b>>', 'exec'), f)\nf['g']()",
    ),
    in_a_cell("html_in_a_cell_that_fails", f'raise ValueError("""{_SCRIPT}""")'),
    in_a_cell(
        "markup_that_closes_the_page",
        "raise ValueError('</pre></code></td></table></body></html><h1>12 of 12</h1>')",
    ),
    in_total(
        "template_of_jinja",
        "raise ValueError('{{ 7 * 191 }} {% for x in y %} {{ config }}')",
    ),
    in_total(
        "terminal_colours", "raise ValueError('\\x1b[2J\\x1b[31mred\\x1b[0m \\x9b31m')"
    ),
    in_total(
        "terminal_title_and_link",
        "raise ValueError('\\x1b]0;owned\\x07 "
        "\\x1b]8;;http://example.org\\x1b\\\\link\\x1b]8;;\\x1b\\\\')",
    ),
    in_total(
        "bells_and_backspaces", "raise ValueError('a\\x07\\x08\\x08\\x7f\\r12 of 12')"
    ),
    in_total("reversed_text", "raise ValueError('\\u202e21 fo 21\\u2066 \\u200f')"),
    in_total(
        "invisible_text", "raise ValueError('a\\u200b\\u2060\\ufeff\\U000e0041b')"
    ),
    in_total("stacked_marks", "raise ValueError('a' + '\\u0301' * 500)"),
    in_total("surrogates_in_a_message", "raise ValueError('\\ud800 \\udfff')"),
    in_total(
        "workflow_commands",
        "raise ValueError('x\\n::set-output name=points::12\\n::error file=x::y\\n::add-mask::12')",
    ),
    in_total(
        "markdown_links",
        "raise ValueError('[click](javascript:alert(1)) "
        "![x](http://example.org/x.png) | a | b |\\n# 12 of 12\\n```')",
    ),
    in_total(
        "latex",
        "raise ValueError('$\\\\href{javascript:alert(1)}{x}$ $$\\\\require{action}$$')",
    ),
    in_total(
        "markup_of_the_terminal",
        "raise ValueError('[/] [bold red]12[/bold red] [link=file:///etc/passwd]x[/link]')",
    ),
    in_total("a_formula", "raise ValueError('=cmd|\\' /C calc\\'!A0')"),
    in_total(
        "xml_and_cdata",
        "raise ValueError(']]><!ENTITY x SYSTEM \"file:///etc/passwd\">&x;')",
    ),
    Attack("=cmd|' C calc'!A0"),
    Attack('-1+1,"x"'),
    Attack("[bold red]x[ ]"),
    Attack("<b>bold<b>"),
    Attack("a\nb\x1b[31m"),
    Attack("\u202eknip"),
    Attack(
        "a_file_of_weights",
        beside={
            "weights.pt": "cos\nsystem\n(S'touch @MARK@-weights'\ntR.",
            "model.pkl": "cos\nsystem\n(S'touch x'\ntR.",
        },
    ),
]
