"""Pages, tables and files for people and for other systems, made from stored results.

Names, messages and cell sources come from students and are hostile. Every module passes such text
through `basics/safe_text.py` and through the escaping of the output's format; no browser, terminal,
spreadsheet or workflow runner may act on it. jinja2 and rich are imported where they are used, so
that the command line starts fast.
"""
