"""The command line."""

from autograder.cli.commands import main

__all__ = ["main"]
