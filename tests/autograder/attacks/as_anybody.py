"""Grades some attacks in some tiers, prints a line for each: run by test_ordinary_user.py as
another user.

Arguments: an empty folder that belongs to that user, and the tiers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pages import outputs
from vault_course import CANARY, write_vault
from yard import OF_WEAK_TIERS, Yard

from autograder.authoring.build_commands import build_command
from autograder.basics.errors import IsolationUnavailable
from autograder.course import load_course


def main(folder: Path, tiers: list[str]) -> None:
    root = folder / "vault"
    write_vault(root, Path(__file__).resolve().parents[2] / "hidden" / "pytest.ini")
    course = load_course(root)
    build_command(course, [], check=False)
    yard = Yard(course, folder / "handed-in")
    try:
        for tier in tiers:
            print(f"{tier}: {attacked(yard, tier)}")
    finally:
        yard.close()


def attacked(yard: Yard, tier: str) -> str:
    """What came of the attacks in a tier, in a line."""
    try:
        batch = yard.grade(OF_WEAK_TIERS, tier)
    except IsolationUnavailable as error:
        return f"unavailable: {' '.join(str(error).split())}"
    bad = [*yard.changed(), *yard.left_behind(), *yard.heard()]
    for attack in OF_WEAK_TIERS:
        graded = batch.graded[attack.name]
        if graded.result is None or graded.result.score > attack.deserves:
            bad.append(f"{attack.name}: {graded}")
        bad += [
            f"{attack.name}: {name}"
            for name, text in outputs(graded).items()
            if CANARY in text
        ]
    return f"user {os.getuid()}: {len(batch.graded)} attacks, bad: {bad}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
