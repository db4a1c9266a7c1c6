"""The yard around the attacked course: listeners that nobody may reach, traps, and what was there
before and after.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from attack import ANSWERS, Attack, notebook, whole
from attacks_cells import ATTACKS as CELLS
from attacks_comparison import ATTACKS as COMPARISON
from attacks_denial import ATTACKS as DENIAL
from attacks_reader import ATTACKS as READER
from attacks_reading import ATTACKS as READING
from attacks_runner import ATTACKS as RUNNER
from without_an_idea import ATTACKS as WITHOUT_AN_IDEA

from autograder.course import Course
from autograder.grading.batch import read_finished_job
from autograder.grading.bench import Bench
from autograder.grading.pool import FinishedJob, Pool
from autograder.ledger.folder_names import safe_folder
from autograder.records.model import Graded, Result
from autograder.records.submission import FoundSubmission

ALL = [*COMPARISON, *WITHOUT_AN_IDEA, *RUNNER, *READING, *DENIAL, *CELLS, *READER]
OF_LANDLOCK = [attack for attack in (*READING, *DENIAL, *RUNNER) if not attack.slow]
"""Those that walls have to do with: the other themes end in the same code in every tier."""
OF_WEAK_TIERS = [attack for attack in (*READING, *DENIAL) if not attack.slow]
OF_TIER = {
    "namespaces": ALL,
    "landlock": OF_LANDLOCK,
    "uid": OF_WEAK_TIERS,
    "no-open": OF_WEAK_TIERS,
}
NEIGHBOUR_EVERY = 12
LONGEST_BATCH = 900.0
"""Seconds after which what is still at work is ended and named, many times what a batch takes: one
that hangs for ever must not hold up all tests.
"""
_HALF = {**ANSWERS, "softmax": "def softmax(z, dim=-1):\n    return z.exp()\n"}
_NEIGHBOURS = {
    "right": whole("right", notebook(ANSWERS)),
    "half-right": whole("half-right", notebook(_HALF)),
}


@dataclasses.dataclass
class Batch:
    """What came of one batch: every attack's result, and whether its neighbours' stayed the
    same.
    """

    graded: dict[str, Graded]
    alone: dict[str, Result]
    beside: list[tuple[str, Result | None]]


class Yard:
    """Everything that an attack may try to reach, and whether it did.

    Attributes:
        grader: the process that attacks try to harm.
    """

    def __init__(self, course: Course, folder: Path) -> None:
        self.course, self.folder = course, folder
        self.grader = os.getpid()
        self.mark = f"mark{os.getpid()}"
        self._trap = Path("/dev/shm") / f"{self.mark}-canary"
        if self._trap.parent.is_dir():
            self._trap.write_text("CANARY-SHARED", encoding="utf-8")
            self._trap.chmod(
                0o600
            )  # as libraries make it; the tier uid goes by who may read what
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self._unix = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._unix_path = Path(tempfile.mkdtemp(prefix="yard-")) / "s"
        self._unix_path.parent.chmod(0o755)
        self._unix.bind(str(self._unix_path))
        self._unix_path.chmod(0o777)
        self._abstract = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._abstract.bind(f"\0{self.mark}")
        self._listeners = (self._tcp, self._udp, self._unix, self._abstract)
        for listener in self._listeners:
            listener.setblocking(False)
        os.environ[f"{self.mark}_TOKEN"] = "CANARY-TOKEN"
        self._hashes = self._hash()

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._unix_path.unlink()
        self._unix_path.parent.rmdir()
        self._trap.unlink(missing_ok=True)
        del os.environ[f"{self.mark}_TOKEN"]

    # before

    def grade(self, attacks: Sequence[Attack], tier: str) -> Batch:
        """Grade the attacks and their neighbours in one batch on two processes, as
        `autograder grade` does.
        """
        folder = self.folder / tier
        jobs: list[FoundSubmission] = []
        copies = 0
        for number, attack in enumerate(attacks):
            jobs.append(self._hand_in(attack, folder))
            if number % NEIGHBOUR_EVERY == 0:
                kind = list(_NEIGHBOURS)[copies % 2]
                jobs.append(
                    dataclasses.replace(
                        self._hand_in(_NEIGHBOURS[kind], folder),
                        student=f"{kind}-{copies}",
                    )
                )
                copies += 1
        with Bench(
            self.course, self.course.assignment("vault"), tier, clients=2
        ) as bench:
            alone = {}
            until = time.monotonic() + LONGEST_BATCH
            for kind, neighbour in _NEIGHBOURS.items():
                result = bench.grader.grade(
                    bench.clients[0], self._hand_in(neighbour, folder)
                ).result
                assert result is not None
                alone[kind] = result
            done = {
                ended.job.student: _unpacked(ended, bench)
                for ended in Pool(bench, jobs, bench.grader.grade_to_bytes, until).run()
            }
        names = {safe_folder(attack.name): attack.name for attack in attacks}
        beside = [
            (kind, done[s].result)
            for s in done
            if (kind := s.rpartition("-")[0]) in _NEIGHBOURS and s not in names
        ]
        return Batch(
            {names[s]: graded for s, graded in done.items() if s in names},
            alone,
            beside,
        )

    def _hand_in(self, attack: Attack, folder: Path) -> FoundSubmission:
        student = safe_folder(attack.name)
        path = folder / student / "vault" / "vault.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        for name, text in attack.beside.items():
            target = text.removeprefix("-> ")
            if target != text:
                (path.parent / name).symlink_to(self._filled(target))
            else:
                (path.parent / name).write_text(self._filled(text), encoding="utf-8")
        if attack.link == "pipe:":
            os.mkfifo(path)
        elif attack.link:
            path.symlink_to(self._filled(attack.link))
        else:
            path.write_bytes(self.notebook(attack))
        return FoundSubmission(student, path)

    def notebook(self, attack: Attack) -> bytes:
        """The file that the attack hands in."""
        if attack.whole is not None:
            return attack.whole
        made = (
            whole("", notebook({**ANSWERS, **attack.cells}, attack.extra)).whole or b""
        )
        return self._filled(made.decode()).encode()

    def _filled(self, text: str) -> str:
        words = {
            "@COURSE@": str(self.course.root),
            "@MARK@": self.mark,
            "@GRADER@": str(self.grader),
            "@TCP@": str(self._tcp.getsockname()[1]),
            "@UDP@": str(self._udp.getsockname()[1]),
            "@UNIX@": str(self._unix_path),
        }
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    # after

    def heard(self) -> list[str]:
        """The listeners that something came to."""
        names = []
        for name, listener in zip(
            ("tcp", "udp", "unix", "abstract"), self._listeners, strict=True
        ):
            with contextlib.suppress(BlockingIOError):
                listener.accept() if name == "tcp" else listener.recv(100)
                names.append(name)
        return names

    def changed(self) -> list[str]:
        """Files of the course that are not what they were."""
        now = self._hash()
        return sorted(
            name
            for name in self._hashes.keys() | now.keys()
            if self._hashes.get(name) != now.get(name)
        )

    def left_behind(self) -> list[str]:
        """Files outside that carry the mark."""
        places = [
            Path("/tmp"),
            Path("/dev/shm"),
            Path("/var/tmp"),
            Path("/"),
            Path.home(),
            Path.cwd(),
            *self._submissions(),
        ]
        found = [
            str(path)
            for place in places
            if place.is_dir()
            for path in place.iterdir()
            if self.mark in path.name
        ]
        return [path for path in found if path != str(self._trap)]

    def _submissions(self) -> Iterator[Path]:
        yield from self.folder.glob("*/*/vault")

    def _hash(self) -> dict[str, str]:
        made = {}
        for path in sorted(self.course.root.rglob("*")):
            mode = path.lstat().st_mode
            content = (
                hashlib.sha256(path.read_bytes()).hexdigest()
                if stat.S_ISREG(mode)
                else ""
            )
            if "__pycache__" not in path.parts and not self._is_kept_by_graders(path):
                made[str(path)] = f"{mode} {content}"
        return made

    def _is_kept_by_graders(self, path: Path) -> bool:
        """Where diagnosis keeps what known mistakes answered."""
        kept = self.course.root / ".autograder" / "known"
        return path == kept or (
            kept in path.parents and (path.is_dir() or path.suffix == ".safetensors")
        )


def orphans() -> set[str]:
    """Hosts and workers that nobody waits for any more."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if "worker/host.py" in (folder / "cmdline").read_text(errors="replace"):
                parent = (
                    (folder / "stat")
                    .read_text(errors="replace")
                    .rpartition(")")[2]
                    .split()[1]
                )
                if parent == "1":
                    found.add(folder.name)
    return found


def stay_behind(before: set[str]) -> set[str]:
    """New ones that do not end. A test beside this one may have killed a grader, whose host ends
    within seconds.
    """
    until = time.monotonic() + 15
    while (left := orphans() - before) and time.monotonic() < until:
        time.sleep(0.2)
    return left


def _unpacked(ended: FinishedJob[FoundSubmission], bench: Bench) -> Graded:
    graded, content = read_finished_job(ended, bench.course.limits)
    return dataclasses.replace(
        graded, result=Result.from_json(content.decode()) if content else None
    )
