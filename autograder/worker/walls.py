"""The walls around a worker, tier by tier, each in one place with the attack that it stops.

    namespaces   a new root that holds the Python environment and nothing else; own processes,
                 network, IPC
    landlock     an allow-list of readable paths
    uid          a user that may read nothing of the course
    no-open      no file can be opened any more
    none         nothing: development only

seccomp, resource limits, no capabilities and death with the host stand in every tier but `none`.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import site
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from autograder.worker import system_calls
from autograder.worker.seccomp import enforce, program_for
from autograder.worker.system_calls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
)

FIRST_USER, USERS = 61184, 4096
"""Users that no account has (systemd keeps them for services made on the fly). Each worker of a
root host becomes a different user, so that the kernel counts the worker's threads by themselves,
and no worker can touch what belongs to another.
"""
SCRATCH = "/scratch"
_DRIVER_MEMORY = 4 << 30
"""Bytes of main memory for a CUDA context and the libraries that it loads."""
_CPU_TIMES = 10
"""The kernel's limit on a worker's CPU time, in multiples of `cpu_seconds`. The kernel counts whole
ticks, so a worker could be charged for the ticks of others; and it kills with SIGKILL, which cannot
be told from the machine's running out of memory.
"""
_READ_BY_DRIVER = ("/proc", "/sys/devices/system")
"""Folders that a GPU's driver reads. Each worker covers this /proc, the host's, with its own."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_SYSTEM = (
    "/usr/lib",
    "/lib",
    "/lib64",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/bin",
    "/bin",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
)


class WallRefused(Exception):
    """A wall cannot stand here; the message says which and why."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """The most that one worker may use (course.toml, [limits])."""

    cpu_seconds: int
    memory_mb: int
    processes: int
    file_mb: int
    scratch_mb: int


def python_paths(kit: Path) -> list[str]:
    """Paths that a worker must be able to read: the libraries of Python, installed packages, the
    system's libraries, and packages that this process has loaded from elsewhere; never the kit's
    own folder.

    A folder that merely stands in sys.path, where a `.pth` file has put it, is not among them: it
    may be a course.
    """
    libraries = [
        f"{prefix}/{name}"
        for prefix in (sys.prefix, sys.base_prefix)
        for name in ("lib", "lib64")
    ]
    libraries += [*site.getsitepackages(), sysconfig.get_path("stdlib")]
    candidates = {*_SYSTEM, *libraries, *map(os.path.realpath, libraries)}
    present = sorted(
        os.path.normpath(path) for path in candidates if Path(path).exists()
    )
    outermost = [
        path
        for path in present
        if not any(path.startswith(folder + "/") for folder in present)
    ]
    packages = [path for path in _loaded_packages() if Path(path).parent != kit]
    return with_folders(outermost, packages)


def _loaded_packages() -> list[str]:
    """Paths of the loaded packages, and of loaded modules that lie in no package."""
    paths: set[str] = set()
    for name, module in list(sys.modules.items()):
        if "." in name:
            continue
        spec = getattr(module, "__spec__", None)
        if spec is not None and spec.has_location:
            paths.update(spec.submodule_search_locations or [spec.origin])
    return sorted(str(Path(path).resolve()) for path in paths if Path(path).exists())


def with_folders(paths: list[str], folders: list[str]) -> list[str]:
    """The paths, and the folders that do not lie in one of the paths."""
    real_paths = tuple(str(Path(path).resolve()) + "/" for path in paths)
    outside = []
    for folder in folders:
        real_folder = str(Path(folder).resolve()) + "/"
        if not real_folder.startswith(real_paths):
            outside.append(folder)
    return sorted([*paths, *outside])


def open_to_all(path: str, tier: str) -> bool:
    """Whether a user without rights of its own can read what lies at `path` behind the walls of a
    tier.
    """
    real = Path(path).resolve()
    # behind namespaces a path is mounted under folders of the new root
    above = () if tier == "namespaces" else real.parents
    needed = 0o005 if real.is_dir() else 0o004
    return real.stat().st_mode & needed == needed and all(
        folder.stat().st_mode & 0o001 for folder in above
    )


def refuse_overlap(readable: list[str], hidden: list[str], tier: str) -> None:
    """Refuse where a readable path would show a hidden one.

    Raises:
        WallRefused: names both paths.
    """
    for secret in map(os.path.realpath, hidden):
        for path in map(os.path.realpath, readable):
            if path == secret or path.startswith(secret + "/"):
                raise WallRefused(
                    f"the Python environment {path} lies inside {secret}, which workers "
                    "must not see"
                )
            if secret.startswith(path + "/") and tier != "namespaces":
                raise WallRefused(
                    f"{secret} lies inside {path}, which workers must be able to read: "
                    "move the course"
                )


def make_hidden(readable: list[str], hidden: list[str]) -> None:
    """Make hidden folders that lie inside a readable path and do not exist yet: an existing folder
    can be covered, and one made later would be seen. Not .git, which would be no repository.

    Raises:
        OSError: a folder cannot be made.
    """
    for secret in hidden:
        seen = any(secret.startswith(path + "/") for path in readable)
        if seen and not os.path.lexists(secret) and Path(secret).name != ".git":
            Path(secret).mkdir(parents=True, mode=0o700)


def build_root(
    readable: list[str], hidden: list[str], nodes: list[str] | None = None
) -> None:
    """Namespaces: leave the machine's files for a new root. Stops every read and write outside the
    new root, by any path.

    Args:
        nodes: the device files of a GPU, mounted together with what its driver reads; None where
            workers have no GPU.
    """
    system_calls.mount(None, "/", None, MS_REC | MS_PRIVATE)
    system_calls.mount(
        "tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,nr_inodes=4k,mode=755"
    )
    os.chdir("/tmp")
    Path("new").mkdir()
    Path("old").mkdir()
    system_calls.pivot_root(".", "old")
    os.chdir("/")
    system_calls.mount(
        "tmpfs", "/new", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=4k,mode=755"
    )
    for path in readable:
        old = Path("/old" + path)
        new = Path("/new" + path)
        if old.is_symlink():
            new.parent.mkdir(parents=True, exist_ok=True)
            new.symlink_to(old.readlink())
        else:
            system_calls.bind_read_only(str(old), str(new))
    for secret in hidden:
        if Path("/new" + secret).is_dir():
            system_calls.mount(
                "tmpfs", "/new" + secret, "tmpfs", MS_RDONLY, "size=4k,mode=000"
            )
    for device in (*DEVICES, *(nodes or ())):
        new = Path("/new" + device)
        new.parent.mkdir(exist_ok=True)
        new.touch()
        system_calls.mount("/old" + device, str(new), None, MS_BIND)
    for folder in (SCRATCH, "/proc"):
        Path("/new" + folder).mkdir(exist_ok=True)
    if nodes is not None:
        for path in _READ_BY_DRIVER:
            if Path("/old" + path).is_dir():
                system_calls.bind_read_only("/old" + path, "/new" + path)
        Path("/new/dev/shm").symlink_to(SCRATCH)  # where a driver would share memory
    if not os.path.lexists("/new/tmp"):
        Path("/new/tmp").symlink_to("scratch")
    system_calls.mount(
        None, "/new", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV
    )
    os.chdir("/new")
    system_calls.pivot_root(".", ".")
    system_calls.detach(".")
    os.chdir("/")


@dataclass(frozen=True, slots=True)
class Ground:
    """Facts about the machine and the process, gathered before the walls go up, which hide them.

    Attributes:
        is_root: whether the user is the machine's root (or a container's, with users to give away),
            and not only of a user namespace that holds nobody else.
        address_space: bytes that the libraries take in every worker.
        tasks: threads that the user runs beside the workers, which the kernel counts with them.
        sealed: whether Python lies in a folder that only root may enter, such as root's home.
        landlock: descriptor of a rule set to enter, or None.
        for_device: whether workers speak to a GPU's driver.
        user: the user that a worker of a root host becomes.
    """

    is_root: bool
    address_space: int
    tasks: int = 0
    sealed: bool = False
    landlock: int | None = None
    for_device: bool = False
    user: int = FIRST_USER


def survey(tier: str, readable: list[str]) -> Ground:
    """Gather the facts, before any namespace is entered and after the libraries are loaded.

    Raises:
        WallRefused: the tier `uid` would leave workers without Python.
    """
    statm = Path("/proc/self/statm")
    pages = 1 << 20
    if statm.exists():
        pages = int(statm.read_text().split()[0])
    is_root = os.getuid() == 0 and _has_users()
    locked = (
        [path for path in readable if not open_to_all(path, tier)] if is_root else []
    )
    if locked and tier == "uid":
        raise WallRefused(
            f"a worker that is not root cannot read {locked[0]}: install Python where everybody may"
        )
    tasks = 0 if is_root or tier == "namespaces" else _own_tasks()
    return Ground(is_root, pages * resource.getpagesize(), tasks, bool(locked))


def _has_users() -> bool:
    """Whether this user namespace has the workers' users; one made by `unshare -r` has root
    alone.
    """
    rows = [
        [int(word) for word in line.split()]
        for line in Path("/proc/self/uid_map").read_text().splitlines()
    ]
    return any(
        first <= FIRST_USER and first + count >= FIRST_USER + USERS
        for first, _, count in rows
    )


def _own_tasks() -> int:
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid():
                count += len(list((folder / "task").iterdir()))
    return count


def enter(tier: str, limits: WorkerLimits, ground: Ground) -> None:
    """Put up every wall of a tier around this process, which has just been forked and has run
    nothing of a student's.

    Raises:
        OSError: a wall does not stand; the worker must end.
    """
    if tier == "none":
        return
    if tier == "namespaces":
        _own_scratch(limits)
        if ground.for_device:
            _own_proc()
    _limit_resources(limits, ground)
    if ground.is_root:
        os.setgroups([])
        os.setresgid(ground.user, ground.user, ground.user)
        system_calls.keep_capabilities(ground.sealed)
        os.setresuid(ground.user, ground.user, ground.user)
    # Where Python lies in root's home, a worker keeps the right to read past file modes: without it
    # no import would work any more. The new root, or Landlock, decides alone then what can be read;
    # uid is refused on such a machine.
    reads_past_modes = (
        ground.is_root and ground.sealed and tier in ("namespaces", "landlock")
    )
    system_calls.drop_capabilities(
        (system_calls.DAC_READ_SEARCH,) if reads_past_modes else ()
    )
    system_calls.die_with_parent(signal.SIGKILL)
    if ground.landlock is not None:
        system_calls.enter_landlock(ground.landlock)
        os.close(ground.landlock)
    # Files in /proc of a process that is not dumpable belong to root, and a driver must write to
    # some of them (`_own_proc`). No other worker traces a dumpable one, since the filter refuses
    # to; processes of the same user outside may, and from them nothing here is a secret.
    system_calls.set_dumpable(ground.for_device)
    enforce(filter_program(tier, os.getpid(), ground.for_device))


def filter_program(tier: str, own_pid: int, for_device: bool = False) -> bytes:
    """The tier's seccomp filter."""
    return program_for(
        own_pid,
        may_write=tier == "namespaces",
        may_open=tier != "no-open",
        for_device=for_device,
    )


def _own_scratch(limits: WorkerLimits) -> None:
    """A private folder, bounded in bytes and in files. Stops filling the disk and leaving things
    behind.
    """
    system_calls.unshare(system_calls.NEW_NS | system_calls.NEW_IPC)
    options = f"size={limits.scratch_mb}m,nr_inodes=2k,mode=1777"
    system_calls.mount(
        "tmpfs", SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options
    )
    os.chdir(SCRATCH)


def _own_proc() -> None:
    """The /proc of this worker's process namespace, where a GPU's driver writes a name for its
    process and for each of its threads, and fails where it cannot. All else below /proc stays
    read-only.

    The host's /proc, which this one covers, has other numbers for the threads.
    """
    system_calls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for path in (f"/proc/{os.getpid()}/comm", f"/proc/{os.getpid()}/task"):
        system_calls.mount(path, path, None, MS_BIND)
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY
    system_calls.mount(None, "/proc", None, MS_REMOUNT | MS_BIND | flags)


def _limit_resources(limits: WorkerLimits, ground: Ground) -> None:
    """Memory beyond what the libraries take, CPU time, threads, files. Stops one submission from
    starving the rest.
    """
    memory = ground.address_space + (limits.memory_mb << 20)
    # a GPU's driver reserves hundreds of gigabytes of addresses without using them, and opens a
    # file for each channel
    spaces = (
        ((resource.RLIMIT_DATA, memory + _DRIVER_MEMORY),)
        if ground.for_device
        else ((resource.RLIMIT_AS, memory), (resource.RLIMIT_DATA, memory))
    )
    for resource_number, most in (
        *spaces,
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, limits.processes + ground.tasks),
        (resource.RLIMIT_FSIZE, limits.file_mb << 20),
        (resource.RLIMIT_NOFILE, 512 if ground.for_device else 64),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 16),
    ):
        resource.setrlimit(resource_number, (most, most))
    # the trusted side ends a worker that has used up its CPU time; this limit ends a worker whose
    # grader does not look
    most = _CPU_TIMES * limits.cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
