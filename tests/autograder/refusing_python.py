"""A Python of this environment in which some packages cannot be imported, as where they are not
installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

_SCRIPT = """\
#!/bin/sh
exec {python} -I -c '
import os, runpy, sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {refused}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Refusing())
sys.executable = "{itself}"
arguments = [argument for argument in sys.argv[1:] if argument != "-I"]
if arguments[0] == "-c":
    sys.argv = arguments[1:]
    exec(arguments[1])
elif arguments[0] == "-m":
    sys.argv = arguments[1:]
    runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
else:
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
' "$@"
"""


def refusing_python(folder: Path, packages: Iterable[str]) -> Path:
    """Write the program into a folder. It starts itself where it starts another Python."""
    itself = folder / "python"
    refused = "(" + "".join(f'"{package}", ' for package in sorted(packages)) + ")"
    script = _SCRIPT.format(python=sys.executable, itself=itself, refused=refused)
    itself.write_text(script, encoding="utf-8")
    itself.chmod(0o755)
    return itself
