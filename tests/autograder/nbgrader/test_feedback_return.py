"""`nbgrader release_feedback`, for a class of which some did not hand in through the exchange."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError, ExchangeFactory
from nbgrader.utils import notebook_hash
from nbgrader_course import TinyCourse
from traitlets.config import PyFileConfigLoader

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # nbgrader leaves timestamp.txt for the garbage collector to close
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
    ),
]

AT = "2026-03-01 10:00:00 UTC"


def _release(tiny: TinyCourse, student: str = "*") -> None:
    """As the command does it, with the course's own configuration."""
    config = PyFileConfigLoader("nbgrader_config.py", path=str(tiny.root)).load_config()
    coursedir = CourseDirectory(config=config)
    (tiny.root / "exchange").mkdir()
    coursedir.assignment_id, coursedir.student_id = "tiny", student
    factory = ExchangeFactory(config=config)
    factory.ReleaseFeedback(
        coursedir=coursedir, authenticator=Authenticator(config=config), config=config
    ).start()


def _released(tiny: TinyCourse) -> list[str]:
    return sorted(path.name for path in (tiny.root / "exchange").rglob("*.html"))


@pytest.fixture
def pages(tiny: TinyCourse, graded: dict[str, Any]) -> TinyCourse:
    """ada handed in through the exchange, ben on paper, so to speak; both have a page."""
    path = tiny.hand_in("ada", at=AT)
    (path.parent / "submission_secret.txt").write_text("xyz", encoding="utf-8")
    tiny.hand_in("ben")
    tiny.autograde()
    tiny.feedback("ada")
    return tiny


HASH = notebook_hash(secret="xyz", notebook_id="tiny") + ".html"


def test_of_a_class_those_who_can_be_reached_get_their_page(
    pages: TinyCourse, caplog: pytest.LogCaptureFixture
) -> None:
    _release(pages)
    assert _released(pages) == [HASH]
    said = [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.ERROR
    ]
    assert [line.split(", since")[0] for line in said] == ["ben: not released"]


def test_one_student(pages: TinyCourse) -> None:
    _release(pages, "ada")
    assert _released(pages) == [HASH]


@pytest.mark.parametrize(
    ("student", "said"), [("ben", "no feedback was released"), ("cay", "no page at ")]
)
def test_one_who_cannot_be_reached(pages: TinyCourse, student: str, said: str) -> None:
    with pytest.raises(ExchangeError, match=said):
        _release(pages, student)
    assert _released(pages) == []


def test_after_the_export_of_stored_results_too(tiny: TinyCourse) -> None:
    """`autograded/` keeps what the exchange wrote beside the notebook."""
    path: Path = tiny.hand_in("ada", at=AT)
    (path.parent / "submission_secret.txt").write_text("xyz", encoding="utf-8")
    tiny.store_result("ada", path)
    assert tiny.export_gradebook()
    tiny.feedback("ada")
    _release(tiny, "ada")
    assert _released(tiny) == [HASH]
