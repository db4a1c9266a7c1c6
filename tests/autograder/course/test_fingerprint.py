"""Which files the fingerprints of a suite and of the kit cover."""

from __future__ import annotations

from pathlib import Path

import autograder
from autograder.course.fingerprint import files_sha256, software


def test_the_kits_code_is_that_of_every_room() -> None:
    package = Path(autograder.__file__).parent
    expected = files_sha256(package, "**/*.py", "**/*.json")[:32]
    assert software()["the kit's code"] == expected
