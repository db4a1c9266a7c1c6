"""Submissions and results, and the files that hold results."""
