"""Learning platforms: one module for each, with the platform's own formats.

A new platform is a module `<name>.py` with a `PLATFORM` (see `platform.py`), and an entry in
`course/platform_names.py`; with `takes_pushes` there it has a section in course.toml too.

The modules that all platforms share: `collect.py` takes a download in, with `download_people.py`
and `submission_folder.py`; `fill.py` fills a platform's own file with marks; `push.py` sends marks
through a platform's interface, whose clients share `api_client.py`.
"""
