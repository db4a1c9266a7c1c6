"""Weights beside a notebook, through nbgrader's own exchange: `submit` here, `collect` there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeFactory
from nbgrader_course import TinyCourse
from traitlets.config import Config, PyFileConfigLoader

from autograder.course import load_course
from autograder.intake.find import find_submissions
from autograder.intake.handed_in_weights import weights_path

WEIGHTS = bytes(1_200_000)


def test_weights_come_through_the_exchange(
    tiny: TinyCourse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = PyFileConfigLoader("nbgrader_config.py", path=str(tiny.root)).load_config()
    config.merge(
        Config(
            {
                "Exchange": {"cache": str(tmp_path / "cache")},
                "CourseDirectory": {"assignment_id": "tiny"},
            }
        )
    )
    factory = ExchangeFactory(config=config)
    coursedir = CourseDirectory(config=config)
    authenticator = Authenticator(config=config)
    (tiny.root / "exchange").mkdir()
    factory.ReleaseAssignment(
        coursedir=coursedir, authenticator=authenticator, config=config
    ).start()
    work = tmp_path / "home" / "tiny"
    work.mkdir(parents=True)
    shutil.copy(tiny.hand_in("draft"), work / "tiny.ipynb")
    shutil.rmtree(tiny.root / "submitted")
    (work / "tiny.safetensors").write_bytes(WEIGHTS)
    monkeypatch.chdir(work.parent)
    monkeypatch.setattr("nbgrader.exchange.default.submit.get_username", lambda: "ada")
    for step in (factory.Submit, factory.Collect):
        step(coursedir=coursedir, authenticator=authenticator, config=config).start()
    course = load_course(tiny.root)
    (submission,) = find_submissions(course, course.assignment("tiny"), ())
    assert submission.student == "ada"
    assert weights_path(submission.path, "tiny").read_bytes() == WEIGHTS
