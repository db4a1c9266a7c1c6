"""From results to what people read: files, pages, tables, and other systems' formats.

Names, messages and cell sources come from students and are hostile. Every module here passes them
through `text` and through the escaping of its own format; nothing is written that a browser, a
terminal, a spreadsheet or a workflow runner would act on. jinja2 and rich are imported where they
are used, so that the command line starts fast.
"""
