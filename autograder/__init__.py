"""Attention Kit's autograder: from source notebooks to a gradebook, with student code behind walls.

Other programs may use three things, whose names stay:

- the command line, `autograder` (or `python -m autograder`), and the files that it writes;
- `autograder.suite`, what hidden suites import, and `autograder.student_tools.expect`, what a
  notebook may import;
- the names in `__all__` below: a course, its settings and its results, read from disk.

All other names are the kit's own and may change without notice.
"""

from importlib import import_module
from typing import Any

_ROOMS = {
    "Assignment": "autograder.course",
    "Course": "autograder.course",
    "KitError": "autograder.basics.errors",
    "Result": "autograder.records.model",
    "load_course": "autograder.course",
    "read_results": "autograder.records.results",
}

__all__ = [
    "Assignment",
    "Course",
    "KitError",
    "Result",
    "__version__",
    "load_course",
    "read_results",
]


def __getattr__(name: str) -> Any:
    """A name of `__all__`, imported when it is asked for: a sandbox host imports this package too,
    and must know nothing of courses. The version is that of pyproject.toml, as pip noted it.
    """
    if name == "__version__":
        from importlib import metadata

        return metadata.version("attention-kit")
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)
