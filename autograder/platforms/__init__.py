"""Learning platforms: one module for each, with everything that the platform's own formats ask for.

A new platform is a module `<name>.py` with a `PLATFORM` (see `platform.py`), and a line in
`platform_names.py`. What platforms share is here once: `collect.py` takes a download in, `fill.py`
fills a platform's own file with marks, and `push.py` sends marks through a platform's interface.
"""
