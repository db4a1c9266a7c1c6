"""One small course with a kernel, built, for all tests of this folder. Nothing changes it."""

from __future__ import annotations

import pytest
from courses import built_course
from kernel_course import write_course

from autograder.course import Course


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return built_course(tmp_path_factory.mktemp("kernels"), write_course)
