"""Chooses the tier of walls: tiers are tried from the strongest down, and a probe proves the walls
before they are trusted.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from autograder.basics.errors import HostFailed, IsolationUnavailable, StudentFault
from autograder.course import Course
from autograder.course.folders import GRADEBOOK, LEDGER_FILE
from autograder.sandbox.host_process import HostProcess, ReleasedCode
from autograder.sandbox.leftovers import lock_path, remove_abandoned
from autograder.sandbox.machine_limits import machine_problems, raise_open_files
from autograder.sandbox.reach import every_path

TIERS = ("namespaces", "landlock", "uid", "no-open")
STRICT = ("namespaces", "landlock")
ISOLATIONS = ("auto", "strict", "none", *TIERS)
"""Choices of isolation: the best tier that stands, one of the strict tiers, no walls, or one tier
by name.
"""

_PROGRAM = Path(__file__).resolve().parents[1] / "worker" / "probe.py"
_PROBE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Wall:
    """An action that a worker must not be able to do, and whether the wall against it stands."""

    name: str
    stands: bool
    detail: str


def isolation_name(tier: str) -> str:
    """The tier's name in results: "strict" for both strict tiers, else the tier's own."""
    return "strict" if tier in STRICT else tier


MOST_DEATHS = 3
"""So often a host that died while its walls were proven is started again, before a weaker tier is
tried.
"""


def launch_host(
    course: Course,
    isolation: str,
    clients: int,
    extras: tuple[str, ...] = ("torch",),
    released_code: ReleasedCode | None = None,
) -> HostProcess:
    """Start the host of the first tier that `isolation` allows, and return while the host loads its
    libraries.

    The host must not be used before `prove_host` has proven it.

    Raises:
        IsolationUnavailable: this platform is not Linux, or the limits of this process are too low
            to grade.
    """
    if problem := platform_problem():
        raise IsolationUnavailable(problem)
    raise_open_files()
    if problems := list(machine_problems(course.limits, clients)):
        raise IsolationUnavailable(
            "\n  ".join(["nothing can be graded here:", *problems])
        )
    tier = _allowed_tiers(isolation)[0]
    return HostProcess(course, tier, clients, extras, released_code=released_code)


def prove_host(course: Course, isolation: str, host: HostProcess) -> HostProcess:
    """Wait for a launched host and prove its walls; where they do not stand, try the next tier.

    Raises:
        IsolationUnavailable: no tier of `isolation` stands; the message says why and what to do.
    """
    start = partial(
        HostProcess,
        course,
        clients=len(host.clients),
        extras=host.extras,
        released_code=host.released_code,
    )
    refusals = []
    for tier in _allowed_tiers(isolation):
        if tier != host.tier:
            host = start(tier)
        refusal, died = _refusal(course, host)
        for _ in range(MOST_DEATHS):
            if not died:  # a death says nothing about the walls
                break
            host = start(tier)
            refusal, died = _refusal(course, host)
        if not refusal:
            return host
        refusals.append(f"{tier}: {refusal}")
    raise IsolationUnavailable(
        f"no walls of isolation {isolation!r} stand on this machine, so no student code is run.\n  "
        + "\n  ".join(refusals)
        + "\n`autograder doctor` says what to do; `--isolation none` grades without walls, on "
        "code that you trust."
    )


def _refusal(course: Course, host: HostProcess) -> tuple[str, bool]:
    """Why a host is refused, and whether the host died. A refused host is closed; "" for a host
    whose walls stand.
    """
    try:
        host.wait_until_ready()
        fallen = find_fallen_wall(course, host)
        if fallen is None:
            return "", False
        refusal, died = f"{fallen.name} ({fallen.detail})", False
    except (IsolationUnavailable, HostFailed) as error:
        refusal, died = str(error), isinstance(error, HostFailed)
    except BaseException:
        host.close()
        raise
    host.close()
    return refusal, died


def _allowed_tiers(isolation: str) -> tuple[str, ...]:
    """The tiers that a choice of `ISOLATIONS` allows, the strongest first."""
    return {"auto": TIERS, "strict": STRICT}.get(isolation, (isolation,))


def find_fallen_wall(course: Course, host: HostProcess) -> Wall | None:
    """The first wall of a host that a probe gets through; None where all stand, or none should."""
    if host.tier == "none":
        return None
    return next((wall for wall in probe(course, host) if not wall.stands), None)


def probe(course: Course, host: HostProcess) -> list[Wall]:
    """Fork a worker that tries a hostile submission's actions, and report each wall."""
    with _canary(course.suites):
        targets = json.dumps(_targets(course))
        # imports numpy, so only now, while the launched host imports it too
        from autograder.sandbox.kit_program import run_program

        try:
            with run_program(
                _PROGRAM, host.clients[0], course.limits, _PROBE_SECONDS
            ) as program:
                attempts = program.attempts(targets)
            return [
                Wall(str(name), not got, str(detail)) for name, got, detail in attempts
            ]
        except (StudentFault, AssertionError, TypeError, ValueError) as error:
            return [Wall("the probe answers", False, repr(error))]


@contextlib.contextmanager
def _canary(folder: Path) -> Iterator[None]:
    """Put a file with a secret name among the hidden ones, if the folder can be written to."""
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        yield
        return
    remove_abandoned(folder, ".canary-*")
    lock = -1
    while lock < 0:
        canary = folder / f".canary-{secrets.token_hex(8)}"
        canary.write_text(secrets.token_hex(16), encoding="utf-8")
        lock = lock_path(canary)
    try:
        yield
    finally:
        canary.unlink(missing_ok=True)
        os.close(lock)


def _targets(course: Course) -> dict[str, Any]:
    """The targets of the probe: the course's folders, by every path that leads there, and a file of
    each kind.
    """
    folders = [folder for folder in course.hidden if folder.is_dir()]
    kinds = (
        course.suites.glob(".canary-*"),  # whose text is new each time
        course.suites.glob("*/test_*.py"),
        course.solutions.glob("*/*.ipynb"),
        course.sources.glob("*/*"),
        course.root.glob(GRADEBOOK),
        course.root.glob(LEDGER_FILE),
    )
    files = [file for paths in kinds for file in itertools.islice(paths, 1)]
    return {
        "folders": [path for folder in folders for path in every_path(folder)],
        "files": [path for file in files for path in every_path(file)],
        "grader": os.getpid(),
    }


def survey(course: Course) -> Iterator[tuple[str, list[Wall], tuple[str, ...], str]]:
    """For `doctor`: every tier, its walls, the machine's files that its workers can read, and why
    the tier does not stand ("" where it does).
    """
    for tier in TIERS:
        host = HostProcess(course, tier)
        try:
            host.wait_until_ready()
            walls = probe(course, host)
            fallen = [wall.name for wall in walls if not wall.stands]
            yield (
                tier,
                walls,
                host.clients[0].readable,
                f"{fallen[0]} falls" if fallen else "",
            )
        except (IsolationUnavailable, HostFailed) as error:
            yield tier, [], (), str(error)
        finally:
            host.close()


def platform_problem() -> str:
    """Why no tier can stand on this platform; "" where one may."""
    if not sys.platform.startswith("linux"):
        return (
            f"the walls are made of Linux: on {sys.platform} run the kit in a Linux machine "
            "or container"
        )
    return ""
