"""Proves hidden suites: known answers, mutants of the answer key, and what they say of a suite."""

import autograder.grading  # noqa: F401  # it says that torch has one thread: before anything here loads torch
