"""The course of tiny_course.py."""

from tiny_fixtures import asked, course, tiny

__all__ = ["asked", "course", "tiny"]
