"""Students who hand in together: one attempt is everybody's, and so is its mark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from served_course import NOTEBOOK, Served

from autograder.basics.errors import KitError
from autograder.platforms.lti import platform_identity
from autograder.reporting.stored_marks import StoredMarks
from autograder.server.filing import file_attempts
from autograder.server.lti_desk import LtiDesk

CLASS = "id,group\nada,Team 1\nbob,team 1\ncyd,Team 2\ndan,\nprof,\n"


@pytest.fixture
def served(serve_with: Callable[[str], Served]) -> Served:
    """Ada and bob are one team; cyd is another; dan has none."""
    served = serve_with('[submit]\ntries = 3\ngroups = "tiny"\n')
    (served.root / "students.csv").write_text(CLASS, encoding="utf-8")
    return served


def file(served: Served) -> None:
    assert file_attempts(served.office.course, served.office.attempts).problems == ()


def marks(served: Served) -> dict[str, float]:
    """The points of everybody who has any."""
    course = served.office.course
    stored = StoredMarks(
        course, course.assignment("tiny"), course.results, lambda line: None
    )
    by_student = {mark.student: mark.final(provisional=True) for mark in stored.marks()}
    return {
        student: points for student, points in by_student.items() if points is not None
    }


def test_one_of_a_group_hands_in_and_all_see_it(served: Served) -> None:
    served.browser("ada").hand_in()
    served.grade(2.0)
    bob = served.browser("bob")
    assert "Handed in" in bob.get("/attempts/1").text
    assert "by <bdi>ada</bdi>" in bob.get("/attempts/1").text
    assert bob.get("/attempts/1/page").status_code == 200
    page = bob.get("/assignments/tiny").text
    assert "You hand in together: <bdi>ada</bdi>, <bdi>bob</bdi>." in page
    assert "2 of 3 attempts left" in page
    for outsider in ("cyd", "dan"):
        browser = served.browser(outsider)
        for path in ("/attempts/1", "/attempts/1/page", "/attempts/1/notebook"):
            assert browser.get(path).status_code == 404, (outsider, path)
        assert "You hand in together" not in browser.get("/assignments/tiny").text


def test_the_mark_goes_to_all_of_a_group(served: Served) -> None:
    """The best of the team's two attempts; whoever handed in."""
    for student, score in (("ada", 1.0), ("bob", 2.0), ("dan", 0.5)):
        served.browser(student).hand_in(NOTEBOOK + b" " * int(score * 10))
        served.grade(score)
    file(served)
    assert marks(served) == {"ada": 2.0, "bob": 2.0, "dan": 0.5}
    text = served.browser("prof").get("/class/tiny").text
    assert "1 without an attempt" in text, "cyd"
    again = served.browser("ada").get("/assignments/tiny").text
    assert "1 of 3 attempts left" in again, "after the team's folder is there"


def test_who_has_handed_in_alone_stays_alone(served: Served) -> None:
    """Bob's own notebook lies in his folder from before: for him that counts."""
    folder = served.root / "submitted" / "bob" / "tiny"
    folder.mkdir(parents=True)
    (folder / "tiny.ipynb").write_bytes(NOTEBOOK)
    served.browser("ada").hand_in()
    served.grade(2.0)
    file(served)
    assert served.browser("bob").get("/attempts/1").status_code == 404
    assert marks(served) == {"ada": 2.0}


def test_without_the_setting_everybody_hands_in_alone(
    serve_with: Callable[[str], Served],
) -> None:
    served = serve_with("")
    (served.root / "students.csv").write_text(CLASS, encoding="utf-8")
    served.browser("ada").hand_in()
    assert served.browser("bob").get("/attempts/1").status_code == 404
    assert served.browser("ada").get("/attempts/1").status_code == 200


def test_a_group_that_a_download_named_hands_in_together(
    serve_with: Callable[[str], Served],
) -> None:
    served = serve_with("")
    ledger = served.office.ledger()
    ledger.set_group("tiny", "Group 7", ("ada", "bob"), "a test")
    ledger.save()
    served.browser("ada").hand_in()
    served.grade(1.5)
    file(served)
    assert "by <bdi>ada</bdi>" in served.browser("bob").get("/attempts/1").text
    assert marks(served) == {"ada": 1.5, "bob": 1.5}


def test_nobody_signs_in_under_the_name_of_a_group(served: Served) -> None:
    """As a user of a Hub, or of a platform, might be called."""
    served.browser("ada").hand_in()
    served.grade(2.0)
    file(served)
    assert not served.office.may_enter("Team 1")
    assert not served.office.may_enter("team 1")
    identity = platform_identity(
        "https://school.example", "u-9", "Team 1@school.example", ""
    )
    with pytest.raises(KitError, match="is a group's name here"):
        LtiDesk(served.office).link(identity)


def test_a_members_request_has_the_members_name(served: Served) -> None:
    served.browser("ada").hand_in()
    served.grade(1.0)
    bob = served.browser("bob")
    bob.send(
        "/attempts/1", "/attempts/1/ask", text="double(7) is 14", question="double"
    )
    assert "<bdi>bob</bdi>" in served.browser("prof").get("/class/tiny").text
    assert "double(7) is 14" in served.browser("ada").get("/attempts/1").text


@pytest.mark.parametrize("name", ["Team / 1", "<b>Ä</b>", "=1+1", "dan"])
def test_any_name_of_a_group_works(served: Served, name: str) -> None:
    """The last one is a student's id: such a group hands in as its members."""
    text = CLASS.replace("Team 1", name).replace("team 1", name)
    (served.root / "students.csv").write_text(text, encoding="utf-8")
    served.browser("ada").hand_in()
    served.grade(2.0)
    file(served)
    expected = {"ada": 2.0} if name == "dan" else {"ada": 2.0, "bob": 2.0}
    assert marks(served) == expected
    page = served.browser("bob").get("/assignments/tiny").text
    assert "<b>Ä</b>" not in page


def test_a_student_whose_id_is_no_folders_name_has_the_mark(
    serve_with: Callable[[str], Served],
) -> None:
    served = serve_with("")
    (served.root / "students.csv").write_text("id\nada/b\n", encoding="utf-8")
    served.browser("ada/b").hand_in()
    served.grade(2.0)
    file(served)
    assert marks(served) == {"ada/b": 2.0}
