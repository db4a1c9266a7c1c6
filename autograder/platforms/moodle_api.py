"""Moodle's web services: an assignment's marks read and written.

The functions, which the token's service must have, are those of moodle,
`mod/assign/externallib.php`: `mod_assign_get_assignments`, `mod_assign_list_participants`,
`mod_assign_get_grades`, `mod_assign_save_grades`; where there are comments as feedback
`mod_assign_get_submission_status`, and with a marking workflow `mod_assign_get_user_flags`.

`save_grades` takes a feedback comment that is not sent for one that was emptied
(`mod/assign/feedback/comments/locallib.php`), so existing comments are read and sent back
unchanged. Nor does Moodle report a mark that was not taken: `push.py` reads all marks again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import httpx

from autograder.basics.errors import PlatformUnavailable
from autograder.basics.safe_text import one_line
from autograder.ledger import Identity
from autograder.platforms.api_client import find_titled, identity_from
from autograder.platforms.platform import Standing, Standings

_SECONDS = 60  # of one request
_AT_ONCE = 50  # marks in one request
_HTML = 1  # Moodle's number for the format of a text

Parameters = dict[str, str | int | float]


class MoodleInterface:
    """One assignment of a course on Moodle."""

    def __init__(
        self,
        url: str,
        course: str,
        title: str,
        token: str,
    ) -> None:
        self._address = f"{url.rstrip('/')}/webservice/rest/server.php"
        self._course = course
        self._title = title
        self._token = token
        self._http = httpx.Client(timeout=_SECONDS, follow_redirects=False)

    def read(self) -> Standings:
        """The assignment, its participants, and their grades."""
        assignment = self._assignment()
        grades = {
            user: grade
            for user, grade in self._grades(assignment).items()
            if grade >= 0
        }
        query = {
            "assignid": assignment["id"],
            "groupid": 0,
            "filter": "",
            "includeenrolments": 0,
        }
        people = []
        for person in _list(self._call("mod_assign_list_participants", query)):
            user = int(person["id"])
            people.append(Standing(str(user), _identity(person), grades.get(user)))
        notes: tuple[str, ...] = ()
        if assignment.get("markingworkflow"):
            notes = (
                "with Moodle's marking workflow students see a mark when its state is Released",
            )
        return Standings(
            str(assignment["name"]),
            float(assignment["grade"]),
            tuple(people),
            notes=notes,
        )

    def send(self, marks: Mapping[str, float]) -> None:
        """Write the marks, with the comments and workflow states that people have."""
        assignment = self._assignment()
        graded = self._grades(assignment).keys()
        states = self._workflow_states(assignment)
        has_comments = _has_comments(assignment)
        ids = list(marks)
        for start in range(0, len(ids), _AT_ONCE):
            parameters: Parameters = {
                "assignmentid": assignment["id"],
                "applytoall": 0,
            }
            for number, user in enumerate(ids[start : start + _AT_ONCE]):
                grade = f"grades[{number}]"
                parameters[f"{grade}[userid]"] = user
                parameters[f"{grade}[grade]"] = marks[user]
                parameters[f"{grade}[attemptnumber]"] = -1
                parameters[f"{grade}[addattempt]"] = 0
                parameters[f"{grade}[workflowstate]"] = states.get(int(user), "")
                if has_comments:
                    comment = ""
                    if int(user) in graded:
                        comment = self._comment(assignment, user)
                    editor = f"{grade}[plugindata][assignfeedbackcomments_editor]"
                    parameters[f"{editor}[text]"] = comment
                    parameters[f"{editor}[format]"] = _HTML
            self._call("mod_assign_save_grades", parameters)

    def _assignment(self) -> dict[str, Any]:
        answer = self._call(
            "mod_assign_get_assignments", {"courseids[0]": self._course}
        )
        courses = _list(_field(answer, "courses"))
        entries = (
            (assignment["name"], assignment["cmid"], assignment)
            for course in courses
            for assignment in _list(course.get("assignments"))
        )
        assignment = find_titled("Moodle", "assignment", self._title, entries)
        if float(assignment["grade"]) <= 0:
            raise PlatformUnavailable(
                f"{self._title!r} takes no points in Moodle: choose points as the grade type"
            )
        return assignment

    def _grades(self, assignment: Mapping[str, Any]) -> dict[int, float]:
        """User → grade; below 0 where there is a record and no grade."""
        rows = self._rows("mod_assign_get_grades", "grades", assignment)
        return {int(row["userid"]): float(row["grade"] or -1) for row in rows}

    def _workflow_states(self, assignment: Mapping[str, Any]) -> dict[int, str]:
        if not assignment.get("markingworkflow"):
            return {}
        rows = self._rows("mod_assign_get_user_flags", "userflags", assignment)
        return {int(row["userid"]): str(row["workflowstate"]) for row in rows}

    def _rows(
        self, function: str, field: str, assignment: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """The records of all users in the answer to a function about the assignment."""
        answer = self._call(function, {"assignmentids[0]": assignment["id"]})
        entries = _list(_field(answer, "assignments"))
        return [row for entry in entries for row in _list(entry.get(field))]

    def _comment(self, assignment: Mapping[str, Any], user: str) -> str:
        """The comment that somebody wrote as feedback for the user."""
        query = {"assignid": assignment["id"], "userid": user}
        status = self._call("mod_assign_get_submission_status", query)
        for plugin in _list(_field(_field(status, "feedback"), "plugins")):
            if plugin.get("type") != "comments":
                continue
            for field in _list(plugin.get("editorfields")):
                return str(field.get("text", ""))
        return ""

    def _call(self, function: str, parameters: Parameters) -> Any:
        """One function's answer. The token travels in the body, where no log of addresses has
        it.
        """
        data = {name: str(value) for name, value in parameters.items()}
        data["wstoken"] = self._token
        data["wsfunction"] = function
        data["moodlewsrestformat"] = "json"
        try:
            response = self._http.post(self._address, data=data)
            response.raise_for_status()
            answer = response.json() if response.content.strip() else None
        except (httpx.HTTPError, ValueError) as error:
            raise PlatformUnavailable(
                f"Moodle does not answer to {function} ({type(error).__name__})"
            ) from error
        if isinstance(answer, dict) and "exception" in answer:
            message = one_line(str(answer.get("message", "")))[:300]
            code = one_line(str(answer.get("errorcode", "")))
            raise PlatformUnavailable(f"Moodle refuses {function}: {message} ({code})")
        return answer


def _identity(person: Mapping[str, Any]) -> Identity:
    """Who a participant is. Where names are hidden Moodle calls people by their numbers in the
    assignment.
    """
    name = str(person.get("fullname", ""))
    hidden = re.fullmatch(r"\D*?(\d+)", name) if not person.get("email") else None
    if hidden:
        return Identity((("moodle", hidden[1]),))
    return identity_from((), person, ("email", "username", "idnumber"), name)


def _has_comments(assignment: Mapping[str, Any]) -> bool:
    for config in _list(assignment.get("configs")):
        setting = (config.get("plugin"), config.get("subtype"), config.get("name"))
        if setting == ("comments", "assignfeedback", "enabled"):
            return str(config.get("value")) == "1"
    return False


def _field(record: object, name: str) -> object:
    """A field of an answer; None where the answer is no record, or has no such field."""
    return record.get(name) if isinstance(record, dict) else None


def _list(value: object) -> list[dict[str, Any]]:
    """The records in a list of an answer; no records where the value is no list."""
    if not isinstance(value, list):
        return []
    return [record for record in value if isinstance(record, dict)]
