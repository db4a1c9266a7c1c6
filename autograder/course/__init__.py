"""A course: its folders, assignments and settings."""

from autograder.course.course import (
    COURSE_FILE,
    NAME_OF_AN_ASSIGNMENT,
    About,
    Assignment,
    Course,
    Grading,
    Late,
    Limits,
    PlatformAddress,
    find_course,
    load_course,
    settings_of_nobody,
)

__all__ = [
    "COURSE_FILE",
    "NAME_OF_AN_ASSIGNMENT",
    "About",
    "Assignment",
    "Course",
    "Grading",
    "Late",
    "Limits",
    "PlatformAddress",
    "find_course",
    "load_course",
    "settings_of_nobody",
]
