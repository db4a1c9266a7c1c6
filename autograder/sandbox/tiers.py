"""Which walls stand on this machine: tried from the strongest down, each proven by a probe before
it is trusted.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from autograder.basics.errors import HostFailed, IsolationUnavailable, StudentFault
from autograder.course import Course
from autograder.course.folders import GRADEBOOK, LEDGER_FILE
from autograder.sandbox.host_process import HostProcess
from autograder.sandbox.leftovers import hold, remove_abandoned
from autograder.sandbox.machine_limits import limit_problems, raise_open_files, temporary_problem
from autograder.sandbox.reach import every_path

TIERS = ("namespaces", "landlock", "uid", "no-open")
STRICT = ("namespaces", "landlock")
ISOLATIONS = ("auto", "strict", "none", *TIERS)
"""What may be asked for: the best there is, one of the strict tiers, no walls at all, or one tier
by name.
"""

_PROBE = Path(__file__).resolve().parents[1] / "worker" / "probe.py"
_PROBE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Wall:
    """One thing that a worker must not be able to do, and whether it could."""

    name: str
    stands: bool
    detail: str


def isolation_name(tier: str) -> str:
    """How a result names the tier: "strict" for both strict tiers, else the tier itself."""
    return "strict" if tier in STRICT else tier


def launch_host(
    course: Course,
    isolation: str,
    clients: int,
    extras: tuple[str, ...] = ("torch",),
    given: Mapping[str, str] | None = None,
) -> HostProcess:
    """Start the host of the first tier that `isolation` allows, and return at once: it loads its
    libraries meanwhile.

    It may not be used before `prove_host` has had its say.

    Raises:
        IsolationUnavailable: this platform is not Linux, or the limits of this process are too low
            to grade.
    """
    if problem := platform_problem():
        raise IsolationUnavailable(problem)
    raise_open_files()
    if problems := [*limit_problems(course.limits, clients), *filter(None, [temporary_problem()])]:
        raise IsolationUnavailable("\n  ".join(["nothing can be graded here:", *problems]))
    return HostProcess(course, _wanted(isolation)[0], clients, extras, given=given)


def prove_host(course: Course, isolation: str, host: HostProcess) -> HostProcess:
    """Wait for a launched host and prove its walls; where they do not stand, try the next tier.

    Raises:
        IsolationUnavailable: no tier of `isolation` stands; the message says why and what to do.
    """
    start = partial(
        HostProcess, course, clients=len(host.clients), extras=host.extras, given=host.given
    )
    refusals = []
    for tier in _wanted(isolation):
        if tier != host.tier:
            host = start(tier)
        refusal, died = _refusal(course, host)
        if died:  # which says nothing about the walls yet
            host = start(tier)
            refusal, _ = _refusal(course, host)
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
    """Why a host's walls are not good enough ("": they are), and whether it died, of whatever; it
    is closed then.
    """
    try:
        host.wait_until_ready()
        fallen = (
            [] if host.tier == "none" else [wall for wall in probe(course, host) if not wall.stands]
        )
        if not fallen:
            return "", False
        refusal, died = f"{fallen[0].name} ({fallen[0].detail})", False
    except (IsolationUnavailable, HostFailed) as error:
        refusal, died = str(error), isinstance(error, HostFailed)
    except BaseException:
        host.close()
        raise
    host.close()
    return refusal, died


def _wanted(isolation: str) -> tuple[str, ...]:
    return TIERS if isolation == "auto" else STRICT if isolation == "strict" else (isolation,)


def probe(course: Course, host: HostProcess) -> list[Wall]:
    """Fork a worker that tries what a hostile submission would try, and report each wall."""
    with _canary(course.suites):
        found = _ask(course, host, _targets(course))
    return [Wall(name, not got, detail) for name, got, detail in found]


@contextlib.contextmanager
def _canary(folder: Path) -> Iterator[None]:
    """Inside there is a file among the hidden ones that nobody can know of, where one can be
    written.
    """
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        yield
        return
    remove_abandoned(folder, ".canary-*")
    lock = -1
    while lock < 0:
        canary = folder / f".canary-{secrets.token_hex(8)}"
        canary.write_text(secrets.token_hex(16), encoding="utf-8")
        lock = hold(canary)
    try:
        yield
    finally:
        canary.unlink(missing_ok=True)
        os.close(lock)


def _targets(course: Course) -> dict[str, Any]:
    """What the probe goes for: the course's folders, by every path that leads to them, and a file
    of each kind.
    """
    folders = [folder for folder in course.hidden if folder.is_dir()]
    kinds = (
        course.suites.glob(".canary-*"),  # what it holds is new each time
        course.suites.glob("*/test_*.py"),
        course.solutions.glob("*/*.ipynb"),
        course.sources.glob("*/*"),
        course.root.glob(GRADEBOOK),
        course.root.glob(LEDGER_FILE),
    )
    return {
        "folders": [path for folder in folders for path in every_path(folder)],
        "files": [
            path
            for files in kinds
            for file in itertools.islice(files, 1)
            for path in every_path(file)
        ],
        "grader": os.getpid(),
    }


def _ask(
    course: Course,
    host: HostProcess,
    targets: dict[str, Any],
) -> list[tuple[str, bool, str]]:
    # numpy comes in with this: not before a host has been launched, which loads it at the same time
    from autograder.sandbox.student import run_program

    try:
        with run_program(_PROBE, host.clients[0], course.limits, _PROBE_SECONDS) as kit:
            rows = kit.attempts(json.dumps(targets))
        return [(str(name), bool(got), str(detail)) for name, got, detail in rows]
    except (StudentFault, AssertionError, TypeError, ValueError) as error:
        return [("the probe answers", True, repr(error))]


def survey(course: Course) -> Iterator[tuple[str, list[Wall], tuple[str, ...], str]]:
    """For `doctor`: every tier, its walls, what its workers can read of the machine's files, and
    why it does not stand ("" where it does).
    """
    for tier in TIERS:
        host = HostProcess(course, tier)
        try:
            host.wait_until_ready()
            walls = probe(course, host)
            fallen = [wall.name for wall in walls if not wall.stands]
            yield tier, walls, host.clients[0].readable, f"{fallen[0]} falls" if fallen else ""
        except (IsolationUnavailable, HostFailed) as error:
            yield tier, [], (), str(error)
        finally:
            host.close()


def platform_problem() -> str:
    """Why no tier can stand on this platform at all; "" where one may."""
    if not sys.platform.startswith("linux"):
        return (
            f"the walls are made of Linux: on {sys.platform} run the kit in a Linux machine "
            "or container"
        )
    return ""
