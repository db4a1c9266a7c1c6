"""`autograder serve --demo`: the server with a course of its own and a class that hands in by
itself, in a folder that is removed at the end.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from pathlib import Path

from autograder.authoring.demo_class import write_demo_class
from autograder.basics.errors import KitError
from autograder.cluster.messages import pack_course, unpack_course
from autograder.course import COURSE_FILE, Course, load_course
from autograder.course.roster import ROSTER_FILE
from autograder.records.results import Tell
from autograder.sandbox.leftovers import ScratchFolder
from autograder.server.office import Office
from autograder.server.serve_command import ServeRequest, serve_command

INSTRUCTOR = "instructor"
STUDENT = "student-001"
_SETTINGS = f"""
[course]
name = "A course that hands in by itself"

[submit]
tries = 5

[server]
instructors = "{INSTRUCTOR}"
"""
_PAUSE_SECONDS = 2.0
"""Between two hand-ins, so that a person can watch."""


def serve_demo(course: Course, host: str, port: int, graders: int, tell: Tell) -> None:
    """Serve a copy of the course's first assignment, and let a demo class hand in.

    Raises:
        KitError: the course has no assignment that is built.
    """
    built = [
        assignment for assignment in course.assignments() if assignment.release.exists()
    ]
    if not built:
        raise KitError("nothing is built here: run `autograder build` first")
    name = built[0].name
    with contextlib.ExitStack() as stack:
        scratch = ScratchFolder()
        stack.callback(scratch.remove)
        root = scratch.path / "course"
        unpack_course(pack_course(course, built[0]), root)
        (root / COURSE_FILE).write_text(_SETTINGS.lstrip(), encoding="utf-8")
        demo_course = load_course(root)
        notebooks = scratch.path / "class"
        students = write_demo_class(
            demo_course, demo_course.assignment(name), notebooks
        )
        people = [INSTRUCTOR, *[student.student for student in students]]
        (root / ROSTER_FILE).write_text(
            "id\n" + "\n".join(people) + "\n", encoding="utf-8"
        )
        tell(
            f"{len(students)} students hand in {name}; what they do is gone when you end this"
        )
        request = ServeRequest(
            load_course(root), host, port, graders, link=(INSTRUCTOR, STUDENT)
        )
        hand_ins = {student.student: student.path for student in students}

        def begin(office: Office) -> None:
            arguments = (office, name, hand_ins)
            threading.Thread(target=_hand_in_all, args=arguments, daemon=True).start()

        serve_command(request, tell, begin)


def _hand_in_all(office: Office, assignment: str, hand_ins: dict[str, Path]) -> None:
    """Hand in everybody's notebook, in an order that is the same each time."""
    order = sorted(hand_ins)
    random.Random(0).shuffle(order)
    for student in order:
        if student == STUDENT:
            continue  # this one is for whoever watches
        path = hand_ins[student]
        data = path.read_bytes() if path.is_file() else b""
        # somebody of the class hands in what is no notebook, and is told so
        with contextlib.suppress(KitError):
            office.hand_in(student, office.course.assignment(assignment), data)
        time.sleep(_PAUSE_SECONDS)
