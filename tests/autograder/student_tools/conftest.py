"""The course of tiny_course.py."""

from tiny_fixtures import course, questions, tiny

__all__ = ["course", "questions", "tiny"]
