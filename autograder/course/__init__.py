"""A course: its folders, assignments and settings."""

from autograder.course.course import (
    ASSIGNMENT_NAME,
    COURSE_FILE,
    About,
    Assignment,
    Course,
    Grading,
    Late,
    Limits,
    LtiRegistration,
    PlatformAddress,
    Submit,
    find_course,
    load_course,
    settings_without_people,
)

__all__ = [
    "ASSIGNMENT_NAME",
    "COURSE_FILE",
    "About",
    "Assignment",
    "Course",
    "Grading",
    "Late",
    "Limits",
    "LtiRegistration",
    "PlatformAddress",
    "Submit",
    "find_course",
    "load_course",
    "settings_without_people",
]
