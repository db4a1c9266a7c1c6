"""The course of multiples.py, and downloads of it."""

from multiples_fixtures import (
    assignment,
    course,
    download,
    read,
    release,
)

__all__ = [
    "assignment",
    "course",
    "download",
    "read",
    "release",
]
