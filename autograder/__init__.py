"""Attention Kit's autograder: from source notebooks to a gradebook, with student code behind walls.

The package is imported by the sandbox host too, so this file imports nothing.
"""

__version__ = "0.1.0"
