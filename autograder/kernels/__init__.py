"""Strict Triton: kernels on a CPU, as Triton's compiler makes them, with every access checked.

A package of its own, which imports nothing of the kit: `strict_triton` is its face.
"""

from __future__ import annotations

import re

CARRIES = re.compile(r'^CARRIES = "((?:autograder\.kernels\.\w+ ?)+)"$', re.MULTILINE)
"""The last line of a file that carries the text of modules of this package, with all modules that
they import. Where the package is, its modules serve instead.
"""
