"""Linux calls that Python's standard library lacks, by ctypes. Each raises OSError where the kernel
refuses.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import struct
from pathlib import Path
from typing import Any

MACHINE = platform.machine()
_TABLES: dict[str, dict[str, int]] = json.loads(
    Path(__file__).with_name("syscalls.json").read_text()
)
SYSCALLS = _TABLES.get(MACHINE, {})
"""Numbers of the system calls on this processor; empty where the kit does not know it."""

NEW_NS = 0x20000
NEW_UTS = 0x4000000
NEW_IPC = 0x8000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NET = 0x40000000
MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
_MS_NOATIME = 1024
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
_MS_RELATIME = 1 << 21
_MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, action: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")
    return result


def syscall(name: str, *arguments: Any) -> int:
    """Make a system call by name. Raises: OSError."""
    if name not in SYSCALLS:
        raise OSError(errno.ENOSYS, f"{name}: not known on {MACHINE}")
    words = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument
        for argument in arguments
    ]
    return _checked(_libc.syscall(ctypes.c_long(SYSCALLS[name]), *words), name)


def prctl(option: int, *arguments: int) -> int:
    """As prctl(2). Raises: OSError."""
    four = (*arguments, 0, 0, 0, 0)[:4]
    words = [ctypes.c_ulong(argument) for argument in four]
    return _checked(_libc.prctl(ctypes.c_int(option), *words), f"prctl({option})")


def no_new_privileges() -> None:
    """Let no program that this process executes gain rights: seccomp and Landlock require that."""
    prctl(38, 1)


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this process a signal when its parent ends. A change of credentials
    clears that setting: call this function after the change.
    """
    prctl(1, signal_number)


def set_dumpable(dumpable: bool) -> None:
    """Set whether processes of this user may trace this process and open its /proc files."""
    prctl(4, int(dumpable))


DAC_READ_SEARCH = 2


def keep_capabilities(keep: bool) -> None:
    """Set whether the permitted capabilities outlast the next change of user."""
    prctl(8, int(keep))


def drop_capabilities(exceptions: tuple[int, ...] = ()) -> None:
    """Give up every capability but the exceptions, for good: bounding and ambient set too."""
    for capability in range(64):
        try:
            prctl(24, capability)
        except OSError as error:
            # past the last one; or there is none to drop
            if error.errno in (errno.EINVAL, errno.EPERM):
                break
            raise
    try:
        prctl(47, 4)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    word = sum(1 << capability for capability in exceptions)
    header = struct.pack("Ii", 0x20080522, 0)
    sets = struct.pack("6I", word, word, 0, 0, 0, 0)
    syscall("capset", ctypes.c_char_p(header), ctypes.c_char_p(sets))


_HUGE_PAGE = 2 << 20
_COLLAPSE = 25


def use_huge_pages() -> None:
    """Gather the memory of this process into huge pages: a fork then copies a few hundred entries
    of the page table and not fifty thousand, and a worker's end drops as few. A kernel without huge
    pages changes nothing.
    """
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        bounds, rights, _, _, _, *name = line.split()
        if not rights.startswith("rw-p") or name not in ([], ["[heap]"]):
            continue
        start, end = (int(bound, 16) for bound in bounds.split("-"))
        first_page = -(-start // _HUGE_PAGE) * _HUGE_PAGE
        for page in range(first_page, end - _HUGE_PAGE + 1, _HUGE_PAGE):
            _libc.madvise(
                ctypes.c_void_p(page),
                ctypes.c_size_t(_HUGE_PAGE),
                ctypes.c_int(_COLLAPSE),
            )


def unshare(flags: int) -> None:
    """As unshare(2). Raises: OSError."""
    _checked(_libc.unshare(ctypes.c_int(flags)), f"unshare({flags:#x})")


def setns(descriptor: int, kind: int) -> None:
    """As setns(2). Raises: OSError."""
    _checked(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(kind)), "setns")


def mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str = ""
) -> None:
    """As mount(2). Raises: OSError."""
    result = _libc.mount(
        (source or "none").encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() if options else None,
    )
    _checked(result, f"mount {source} on {target}")


def detach(target: str) -> None:
    """Unmount a target as soon as no process uses it. Raises: OSError."""
    _checked(
        _libc.umount2(target.encode(), ctypes.c_int(_MNT_DETACH)), f"umount {target}"
    )


def pivot_root(new: str, old: str) -> None:
    """As pivot_root(2). Raises: OSError."""
    paths = [ctypes.c_char_p(path.encode()) for path in (new, old)]
    syscall("pivot_root", *paths)


def bind_read_only(source: str, target: str) -> None:
    """Mount `source` read-only at `target`. In a user namespace, the kernel refuses a mount that
    drops flags of the original.
    """
    if Path(source).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    mount(source, target, None, MS_BIND | MS_REC)
    flags = os.statvfs(target).f_flag
    pairs = (
        (os.ST_NOEXEC, MS_NOEXEC),
        (os.ST_NOATIME, _MS_NOATIME),
        (os.ST_RELATIME, _MS_RELATIME),
    )
    original = sum(mount_flag for stat_flag, mount_flag in pairs if flags & stat_flag)
    mount(
        None,
        target,
        None,
        MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | original,
    )


def map_own_user(uid: int, gid: int) -> None:
    """Become the root of a new user namespace; outside the namespace the user is still `uid`."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1\n")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1\n")


# Landlock: rights that a process gives up by itself, for good.

_READ = 1 | 4 | 8  # execute, read file, read folder
_ON_A_FILE = 1 | 2 | 4 | (1 << 14) | (1 << 15)


def landlock_version() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    try:
        return syscall("landlock_create_ruleset", 0, 0, 1)
    except OSError:
        return 0


def landlock_rules(readable: list[str], writable: list[str]) -> int:
    """Make a rule set (a file descriptor) that allows these paths and no others, no TCP, no signals
    to processes without the rules.
    """
    version = landlock_version()
    if version < 1:
        raise OSError(errno.ENOSYS, "this kernel has no Landlock")
    files = (1 << 13) - 1
    files |= (
        (1 << 13 if version >= 2 else 0)
        | (1 << 14 if version >= 3 else 0)
        | (1 << 15 if version >= 5 else 0)
    )
    network = 3 if version >= 4 else 0
    scopes = 3 if version >= 6 else 0
    attributes = struct.pack("QQQ", files, network, scopes)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = syscall("landlock_create_ruleset", ctypes.c_char_p(attributes), size, 0)
    try:
        for paths, rights in ((readable, _READ), (writable, files)):
            for path in paths:
                _allow(rules, path, rights & files)
    except BaseException:
        os.close(rules)
        raise
    return rules


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        allowed = rights if Path(path).is_dir() else rights & _ON_A_FILE
        syscall(
            "landlock_add_rule",
            rules,
            1,
            ctypes.c_char_p(struct.pack("=Qi", allowed, descriptor)),
            0,
        )
    finally:
        os.close(descriptor)


def enter_landlock(rules: int) -> None:
    """Put a ruleset in force, for good. Raises: OSError."""
    no_new_privileges()
    syscall("landlock_restrict_self", rules, 0)
