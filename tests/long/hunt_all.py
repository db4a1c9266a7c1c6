"""Hunts all assignments of this course: right known answers, and every mutant that nothing kills.

    python tests/long/hunt_all.py [--minutes 60] [--seed 1] [ASSIGNMENT ...]

The time is divided among the assignments. The suites are as good as another seed finds nothing that
is not listed with a reason.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from autograder.course import load_course
from autograder.proof.hunt import HuntRequest, describe_hunt, hunt
from autograder.proof.hunt_search import HuntLimits

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Hunt, print the finds, and return the exit status: 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("assignments", nargs="*")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    course = load_course(ROOT)
    names = arguments.assignments or [
        assignment.name for assignment in course.assignments()
    ]
    status = 0
    for name in names:
        request = HuntRequest(
            limits=HuntLimits(seed=arguments.seed),
            minutes=arguments.minutes / len(names),
            mutants=None,
        )
        hunted = hunt(course, course.assignment(name), request)
        print("\n".join(describe_hunt(hunted)), flush=True)
        if hunted.finds or hunted.problems:
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
