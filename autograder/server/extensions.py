"""Extensions that instructors give on a page: they are written into course.toml, where all commands
look, with the file's comments and order kept.
"""

from __future__ import annotations

import tomlkit
import tomlkit.items

from autograder.basics.errors import KitError
from autograder.basics.whole_files import write_whole
from autograder.course import COURSE_FILE, Course, load_course


def grant_extension(course: Course, assignment: str, student: str, days: str) -> str:
    """Give a student more days for an assignment; "0" takes the extension back.

    Returns:
        A line for the log.

    Raises:
        KitError: this is no number of days, or course.toml would have a mistake; nothing changes.
    """
    try:
        number = float(days)
    except ValueError as error:
        raise KitError(f"{days!r} is no number of days") from error
    if not student:
        raise KitError("name a student")
    path = course.root / COURSE_FILE
    before = path.read_bytes()
    document = tomlkit.parse(before.decode())
    table = document.setdefault("extensions", tomlkit.table())
    by_student = table.setdefault(assignment, tomlkit.inline_table())
    if number:
        by_student[student] = int(number) if number.is_integer() else number
    else:
        by_student.pop(student, None)
    write_whole(path, tomlkit.dumps(document).encode())
    try:
        load_course(course.root)
    except KitError:
        write_whole(path, before)
        raise
    return f"{assignment}: {number:g} days for {student}"
