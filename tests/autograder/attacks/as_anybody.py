"""Grades some attacks in one tier and prints what came of each: run by test_ordinary_user.py as another user.

Arguments: a tier, and an empty folder that belongs to that user.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pages import outputs
from vault_course import CANARY, write_vault
from yard import OF_WEAK_TIERS, Yard

from autograder.authoring.commands import build_command
from autograder.course import load_course
from autograder.errors import IsolationUnavailable


def main(tier: str, folder: Path) -> None:
    root = folder / "vault"
    write_vault(root, Path(__file__).resolve().parents[2] / "hidden" / "pytest.ini")
    course = load_course(root)
    build_command(course, [], check=False)
    yard = Yard(course, folder / "handed-in")
    try:
        attacks = OF_WEAK_TIERS
        batch = yard.grade(attacks, tier)
    except IsolationUnavailable as error:
        print(f"unavailable: {error}")
        return
    finally:
        bad = [*yard.changed(), *yard.left_behind(), *yard.heard()]
        yard.close()
    for attack in attacks:
        graded = batch.graded[attack.name]
        if graded.result is None or graded.result.score > attack.deserves:
            bad.append(f"{attack.name}: {graded}")
        bad += [f"{attack.name}: {name}" for name, text in outputs(graded).items() if CANARY in text]
    print(f"user {os.getuid()}: {len(attacks)} attacks, bad: {bad}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
