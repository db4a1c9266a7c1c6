"""Proves hidden suites with known answers, with mutants and with whole submissions."""

import autograder.grading  # noqa: F401  # limits torch to one thread; must come before torch loads
