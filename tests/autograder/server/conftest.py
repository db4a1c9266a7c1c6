"""A small course, built once, and copies of it that are served."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from courses import built_course
from served_course import SETTINGS, Served, serve
from tiny_course import SUITE, TINY, write_assignment


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served") / "course"
    root.mkdir()
    return built_course(
        root, lambda folder: write_assignment(folder, "tiny", TINY, SUITE)
    ).root


@pytest.fixture
def serve_with(built: Path, tmp_path: Path) -> Iterator[Callable[[str], Served]]:
    """Serves a course with further settings."""
    with contextlib.ExitStack() as stack:
        yield lambda settings: stack.enter_context(
            serve(built, tmp_path / "course", SETTINGS + settings)
        )


@pytest.fixture
def served(serve_with: Callable[[str], Served]) -> Served:
    return serve_with("")
