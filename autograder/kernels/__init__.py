"""Strict Triton: kernels on a CPU, as Triton's compiler makes them, with every access checked.

A package of its own, which imports nothing of the kit: `strict_triton` is its face.
"""

from __future__ import annotations

import re

CARRIES = re.compile(r'^CARRIES = "(autograder\.kernels\.\w+)"$', re.MULTILINE)
"""The last line of a file that carries the text of a module of this package, with all modules that
it imports: where the package is, it serves instead.
"""
