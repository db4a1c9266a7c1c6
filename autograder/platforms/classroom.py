"""Google Classroom's REST API: the marks of a course work read and written.

The resources are documented under "courses.courseWork", "courses.courseWork.studentSubmissions" and
"courses.students" of Google Classroom's reference. Google lets only the project that made a course
work write its marks: what somebody made in Classroom itself can be read, and is refused here with
that reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from autograder.basics.errors import PlatformUnavailable
from autograder.basics.safe_text import one_line
from autograder.platforms.api_client import find_titled, identity_from
from autograder.platforms.platform import InterfaceFormat, Platform, Standing, Standings

_SECONDS = 60  # of one request
_MOST_PAGES = 1000


class ClassroomInterface:
    """One course work of a course in Google Classroom."""

    def __init__(
        self,
        url: str,
        course: str,
        title: str,
        token: str,
    ) -> None:
        import httpx  # which only `--push` needs

        self._course = f"{url.rstrip('/')}/v1/courses/{quote(course, safe='')}"
        self._title = title
        self._http = httpx.Client(
            timeout=_SECONDS,
            follow_redirects=False,
            headers={"Authorization": f"Bearer {token}"},
        )

    def read(self) -> Standings:
        """The course work, everybody in the course, and their marks."""
        work = self._work()
        people = {
            str(person["userId"]): person
            for person in self._pages("students", "students")
        }
        standings = tuple(
            _standing(row, people[str(row["userId"])])
            for row in self._submissions(work)
            if str(row["userId"]) in people
        )
        maximum = work.get("maxPoints")
        return Standings(
            str(work["title"]),
            float(maximum) if maximum is not None else None,
            standings,
        )

    def send(self, marks: Mapping[str, float]) -> None:
        """Write one student's mark after another. Students see a mark when the work is returned to
        them.
        """
        work = self._work()
        submissions = {
            str(row["userId"]): str(row["id"]) for row in self._submissions(work)
        }
        for user, points in marks.items():
            submission = quote(submissions[user], safe="")
            path = (
                f"courseWork/{quote(str(work['id']))}/studentSubmissions/{submission}"
            )
            body = {"assignedGrade": points, "draftGrade": points}
            self._call("PATCH", path, {"updateMask": "assignedGrade,draftGrade"}, body)

    def _work(self) -> dict[str, Any]:
        works = self._pages("courseWork", "courseWork")
        entries = ((str(work.get("title")), work.get("id"), work) for work in works)
        work = find_titled("Classroom", "course work", self._title, entries)
        if not work.get("associatedWithDeveloper"):
            raise PlatformUnavailable(
                f"Google lets only the project that made {self._title!r} write its marks, and "
                "the token is of another: "
                "make the course work through the API, or enter the marks by hand"
            )
        if not work.get("maxPoints"):
            raise PlatformUnavailable(
                f"{self._title!r} is not graded in Classroom: give it points there"
            )
        return work

    def _submissions(self, work: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        return self._pages(
            f"courseWork/{quote(str(work['id']))}/studentSubmissions",
            "studentSubmissions",
        )

    def _pages(self, path: str, key: str) -> Iterator[dict[str, Any]]:
        """The records of a list, over all its pages."""
        page = ""
        for _ in range(_MOST_PAGES):
            answer = self._call(
                "GET",
                path,
                {"pageSize": "100", **({"pageToken": page} if page else {})},
            )
            yield from (
                record for record in answer.get(key, ()) if isinstance(record, dict)
            )
            page = str(answer.get("nextPageToken", ""))
            if not page:
                return

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, float] | None = None,
    ) -> dict[str, Any]:
        import httpx

        try:
            response = self._http.request(
                method, f"{self._course}/{path}", params=dict(query), json=body
            )
            answer = response.json() if response.content.strip() else {}
        except (httpx.HTTPError, ValueError) as error:
            raise PlatformUnavailable(
                f"Google Classroom does not answer ({type(error).__name__})"
            ) from error
        if not isinstance(answer, dict):
            raise PlatformUnavailable(
                "Google Classroom does not answer as its reference says"
            )
        if response.is_error:
            error_record = answer.get("error", {})
            message = (
                error_record.get("message", "")
                if isinstance(error_record, dict)
                else ""
            )
            raise PlatformUnavailable(
                f"Google Classroom says {response.status_code}: {one_line(str(message))[:300]}"
            )
        return answer


def _standing(row: Mapping[str, Any], person: Mapping[str, Any]) -> Standing:
    profile = person.get("profile", {})
    name = str(profile.get("name", {}).get("fullName", ""))
    user = str(row["userId"])
    grade = row.get("assignedGrade")
    identity = identity_from((("classroom", user),), profile, ["emailAddress"], name)
    return Standing(user, identity, None if grade is None else float(grade))


PLATFORM = Platform(
    interface=InterfaceFormat(
        connect=ClassroomInterface, address="https://classroom.googleapis.com"
    )
)
