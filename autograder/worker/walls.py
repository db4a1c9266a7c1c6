"""The walls around a worker, tier by tier, each in one place with the attack that it stops.

    namespaces   a new root that holds the Python environment and nothing else; own processes, network, IPC
    landlock     an allow-list of readable paths
    uid          a user that may read nothing of the course
    no-open      no file can be opened any more
    none         nothing: development only

seccomp, resource limits, no capabilities and death with the host stand in every tier but `none`.
"""

from __future__ import annotations

import os
import resource
import signal
import site
import sys
from dataclasses import dataclass
from pathlib import Path

from autograder.worker import kernel
from autograder.worker.kernel import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
)
from autograder.worker.seccomp import Filter

NOBODY = 65534
SCRATCH = "/scratch"
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_SYSTEM = (
    "/usr/lib", "/lib", "/lib64", "/usr/lib64", "/usr/local/lib", "/usr/bin", "/bin", "/etc/ld.so.cache",
    "/etc/localtime", "/usr/share/zoneinfo",
)  # fmt: skip


class WallRefused(Exception):
    """A wall cannot stand here; the message says which and why."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What one worker may use (course.toml, [limits])."""

    cpu_seconds: int
    memory_mb: int
    processes: int
    file_mb: int
    scratch_mb: int


def python_paths(kit: Path) -> list[str]:
    """What a worker must be able to read: Python, its packages, the system's libraries; never the kit's own folder."""
    wanted = {sys.prefix, sys.base_prefix, *_SYSTEM, *site.getsitepackages()}
    wanted |= {str(Path(entry).resolve()) for entry in sys.path if entry and Path(entry).is_dir()}
    present = sorted(os.path.normpath(path) for path in wanted if Path(path).exists() and Path(path) != kit)
    return [p for p in present if not any(p != q and p.startswith(q + "/") for q in present)]


def refuse_overlap(readable: list[str], hidden: list[str], tier: str) -> None:
    """Refuse where a readable path would show a hidden one.

    Raises:
        WallRefused: names both paths.
    """
    for secret in hidden:
        for path in readable:
            if path == secret or path.startswith(secret + "/"):
                raise WallRefused(f"the Python environment {path} lies inside {secret}, which workers must not see")
            if secret.startswith(path + "/") and tier != "namespaces":
                raise WallRefused(f"{secret} lies inside {path}, which workers must be able to read: move the course")


def build_root(readable: list[str], hidden: list[str]) -> None:
    """Namespaces: leave the machine's files for a new root. Stops every read and write outside it, by any path."""
    kernel.mount(None, "/", None, MS_REC | MS_PRIVATE)
    kernel.mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,nr_inodes=4k,mode=755")
    os.chdir("/tmp")
    Path("new").mkdir()
    Path("old").mkdir()
    kernel.pivot_root(".", "old")
    os.chdir("/")
    kernel.mount("tmpfs", "/new", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=4k,mode=755")
    for path in readable:
        old, new = Path("/old" + path), Path("/new" + path)
        if old.is_symlink():
            new.parent.mkdir(parents=True, exist_ok=True)
            new.symlink_to(old.readlink())
        else:
            kernel.bind_read_only(str(old), str(new))
    for secret in hidden:
        if Path("/new" + secret).is_dir():
            kernel.mount("tmpfs", "/new" + secret, "tmpfs", MS_RDONLY, "size=4k,mode=000")
    for device in DEVICES:
        new = Path("/new" + device)
        new.parent.mkdir(exist_ok=True)
        new.touch()
        kernel.mount("/old" + device, str(new), None, MS_BIND)
    for folder in (SCRATCH, "/proc"):
        Path("/new" + folder).mkdir(exist_ok=True)
    if not os.path.lexists("/new/tmp"):
        Path("/new/tmp").symlink_to("scratch")
    kernel.mount(None, "/new", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    os.chdir("/new")
    kernel.pivot_root(".", ".")
    kernel.detach(".")
    os.chdir("/")


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known before the walls go up and cannot be seen after.

    Attributes:
        is_root: whether the user is the machine's root, and not only of a user namespace.
        address_space: bytes that the libraries take in every worker.
        landlock: a rule set to enter, or None.
    """

    is_root: bool
    address_space: int
    landlock: int | None = None


def survey() -> Ground:
    """Look at the ground: before any namespace, and after the libraries are loaded."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 1 << 20
    return Ground(os.getuid() == 0, pages * resource.getpagesize())


def enter(tier: str, limits: WorkerLimits, ground: Ground) -> None:
    """Put up every wall of a tier around this process, which was just forked and has run nothing of a student.

    Raises:
        OSError: a wall does not stand; the worker must end.
    """
    if tier == "none":
        return
    if tier == "namespaces":
        _own_scratch(limits)
    _limit_resources(limits, ground.address_space)
    if ground.is_root:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    kernel.drop_capabilities()
    kernel.die_with_parent(signal.SIGKILL)
    if ground.landlock is not None:
        kernel.enter_landlock(ground.landlock)
        os.close(ground.landlock)
    kernel.set_dumpable(False)
    Filter(os.getpid(), may_write=tier == "namespaces", may_open=tier != "no-open").load()


def _own_scratch(limits: WorkerLimits) -> None:
    """A private folder, bounded in bytes and in files. Stops filling the disk and leaving things behind."""
    kernel.unshare(kernel.NEW_NS | kernel.NEW_IPC)
    options = f"size={limits.scratch_mb}m,nr_inodes=2k,mode=1777"
    kernel.mount("tmpfs", SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options)
    os.chdir(SCRATCH)


def _limit_resources(limits: WorkerLimits, in_use: int) -> None:
    """Memory beyond what the libraries take, CPU time, threads, files. Stops one submission from starving the rest."""
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, in_use + (limits.memory_mb << 20)),
        (resource.RLIMIT_DATA, in_use + (limits.memory_mb << 20)),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_FSIZE, limits.file_mb << 20),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 16),
    ):
        resource.setrlimit(what, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 1))
