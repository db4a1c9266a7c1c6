"""The system calls that a worker may make: an allow-list, as a BPF program for the kernel's seccomp
filter.

This wall always stands. With it there is no second process (no fork, no exec), no socket but the
worker's own, no signal to anyone else, no tracing, no namespace, no mount, no key ring, no
io_uring, no perf, no bpf.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import resource
import signal
import struct
from collections.abc import Sequence

from autograder.worker.system_calls import MACHINE, SYSCALLS, no_new_privileges, syscall

Instruction = tuple[int, int, int, int]

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_ANY_BIT = 0x45
_AND = 0x54
_RETURN = 0x06
_KILL: Instruction = (_RETURN, 0, 0, 0x80000000)
_ALLOW: Instruction = (_RETURN, 0, 0, 0x7FFF0000)
_INSTRUCTION_BYTES = 8


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_PLAIN = _words(
    """
    read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close close_range dup
    dup2 dup3 pipe pipe2 lseek fstat newfstatat stat lstat statx statfs fstatfs access faccessat
    faccessat2 readlink readlinkat getcwd getdents getdents64 chdir fchdir flock mmap munmap
    mprotect mremap madvise brk mincore msync fadvise64 readahead rt_sigaction rt_sigprocmask
    rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack restart_syscall pause
    futex futex_waitv set_robust_list get_robust_list rseq membarrier sched_yield
    sched_getaffinity sched_getparam sched_getscheduler sched_getattr sched_get_priority_max
    sched_get_priority_min getcpu clock_gettime clock_getres clock_nanosleep nanosleep
    gettimeofday time times getitimer setitimer alarm
    timerfd_create timerfd_settime timerfd_gettime
    getpid getppid gettid getuid geteuid getgid getegid getgroups getresuid getresgid getpgrp
    getpgid getsid getrusage getrlimit sysinfo uname getrandom umask getpriority exit exit_group
    wait4 waitid poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait
    epoll_pwait eventfd eventfd2 recvfrom recvmsg sendto sendmsg getsockopt getsockname
    getpeername shutdown set_tid_address arch_prctl capget
    """
)

_WRITING = _words(
    """
    mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 ftruncate truncate fallocate
    fsync fdatasync link linkat symlink symlinkat chmod fchmod fchmodat utimensat creat
    """
)

_FOR_DEVICE = _words(
    "mlock mlock2 munlock mbind get_mempolicy set_mempolicy bind listen"
)
"""Calls of NVIDIA's driver. Those on memory keep the process's own pages in place, or near a
processor. `bind` and `listen` are for the socket that cuInit makes (`_device_sockets`): without
them CUDA does not start. Nobody can be connected to it.
"""

# No process can handle these signals, and they look like the machine's doing. A timer of
# timer_create could send one, by a number in memory, out of the filter's sight: so no such timer
# can be made.
_RESERVED = (
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
)
_CLONE_THREAD = 0x10000
_CLONE_OTHER = 0x7E020000 | 0x80  # any new namespace
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# get-dumpable, thread name, seccomp and capability queries, naming memory
_PRCTL_ALLOWED = (3, 15, 16, 21, 23, 39, 0x53564D41)
# duplicate, flags, locks, size of a pipe; never who gets a signal when a file is ready: it could be
# any process
_FCNTL_ALLOWED = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)
# connected streams, blocking or not, closed on exec or not: a datagram socket sends to any path
# that exists
_SOCKETPAIR_ALLOWED = (1, 1 | 0x800, 1 | 0x80000, 1 | 0x80800)
# is it a terminal, its size, bytes waiting, blocking, close-on-exec
_IOCTL_ALLOWED = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
_SEALS = (1033, 1034)
"""fcntl's commands that seal a file of memfd_create."""
_HUGE_PAGES = 0x4
"""memfd_create's flag for pages that the machine keeps for others."""
_UNIX, _SEQUENCED = 1, 5
_SOCKET_TYPE = 0xF
"""A socket's type without SOCK_CLOEXEC and SOCK_NONBLOCK."""
_SOCKET_LEVEL, _PASS_CREDENTIALS = 1, 16
# NVIDIA's drivers: those of type 'F' for the GPU, and for unified memory plain numbers and these
# two
_NVIDIA_TYPE = 0x4600
_UNIFIED_PLAIN = 0x100
_UNIFIED_MEMORY = (0x30000001, 0x30000002)


def _refuse(number: int) -> Instruction:
    """Refuse the call with this errno."""
    return (_RETURN, 0, 0, 0x00050000 | number)


def _load(argument: int) -> Instruction:
    """Load the low word of the call's argument of this number."""
    return (_LOAD, 0, 0, 16 + 8 * argument)


def _jump_if_any(values: Sequence[int], further: int = 0) -> list[Instruction]:
    """Where the loaded word equals one of the values, skip the instruction that follows these, and
    so many further ones.
    """
    last = len(values) + further
    return [(_EQUAL, last - i, 0, value & 0xFFFFFFFF) for i, value in enumerate(values)]


class Filter:
    """Builds the program: a chain of "is it this call? then decide"."""

    def __init__(
        self,
        own_pid: int,
        *,
        may_write: bool,
        may_open: bool,
        for_device: bool = False,
    ) -> None:
        self.program: list[Instruction] = []
        self._start()
        self._allow_plain(_PLAIN)
        if may_write:
            self._allow_plain(_WRITING)
        if for_device:
            self._allow_plain(_FOR_DEVICE)
        if may_open:
            self._opening(may_write)
        # threads of this process, never a process: the student's code stays one process
        refused = _refuse(errno.EPERM)
        is_thread = (_ANY_BIT, 1, 0, _CLONE_THREAD)
        is_other = (_ANY_BIT, 0, 1, _CLONE_OTHER)
        self._rule(
            "clone",
            [
                _load(0),
                is_thread,
                refused,
                is_other,
                refused,
                _ALLOW,
            ],
        )
        # the flags of clone3 lie in memory, out of the filter's sight: libc falls back to clone
        self._rule("clone3", [_refuse(errno.ENOSYS)])
        self._rule("openat2", [_refuse(errno.ENOSYS)])
        # signals to this process only, and none that looks as if the machine had killed or stopped
        # the process
        for name, number in (("kill", 1), ("tgkill", 2)):
            self._rule(
                name,
                [
                    _load(0),
                    (_EQUAL, 0, len(_RESERVED) + 2, own_pid),
                    _load(number),
                    *_jump_if_any(_RESERVED),
                    _ALLOW,
                    refused,
                ],
            )
        # lowering another process's limits could have it killed; so could this one's CPU limit
        self._rule(
            "prlimit64",
            [
                _load(0),
                (_EQUAL, 1, 0, 0),
                (_EQUAL, 0, 2, own_pid),
                _load(1),
                (_EQUAL, 0, 1, resource.RLIMIT_CPU),
                refused,
                _ALLOW,
            ],
        )
        self._only("sched_setaffinity", 0, (0,))
        self._only(
            "socketpair", 1, _SOCKETPAIR_ALLOWED
        )  # asyncio wants a pair of its own
        commands = (*_FCNTL_ALLOWED, *_SEALS) if for_device else _FCNTL_ALLOWED
        self._only("fcntl", 1, commands, errno.EINVAL)
        self._only("prctl", 0, _PRCTL_ALLOWED)
        if for_device:
            self._device_ioctl()
            self._device_sockets()
            self._device_memory()
        else:
            self._only("ioctl", 1, _IOCTL_ALLOWED, errno.ENOTTY)
        self.program += [
            (_AT_LEAST, 0, 1, max(SYSCALLS.values()) + 1),
            _refuse(errno.ENOSYS),
            _refuse(errno.EPERM),
        ]

    def _start(self) -> None:
        self.program += [
            (_LOAD, 0, 0, 4),
            (_EQUAL, 1, 0, _AUDIT_ARCH[MACHINE]),
            _KILL,
            (_LOAD, 0, 0, 0),
        ]
        if MACHINE == "x86_64":  # the x32 numbers reach the same calls by other numbers
            self.program += [(_AT_LEAST, 0, 1, 0x40000000), _KILL]

    def _allow_plain(self, names: tuple[str, ...]) -> None:
        for name in names:
            if name in SYSCALLS:
                self.program += [(_EQUAL, 0, 1, SYSCALLS[name]), _ALLOW]

    def _opening(self, may_write: bool) -> None:
        for name, argument in (("open", 1), ("openat", 2)):
            if may_write:
                self._rule(name, [_ALLOW])
            else:
                self._rule(
                    name,
                    [
                        _load(argument),
                        (_ANY_BIT, 0, 1, _WRITE_FLAGS),
                        _refuse(errno.EACCES),
                        _ALLOW,
                    ],
                )

    def _rule(self, name: str, body: list[Instruction]) -> None:
        if name in SYSCALLS:
            self.program += [(_EQUAL, 0, len(body), SYSCALLS[name]), *body]

    def _only(
        self,
        name: str,
        argument: int,
        values: tuple[int, ...],
        otherwise: int = errno.EPERM,
    ) -> None:
        """Allow the call where its argument is one of `values`."""
        comparisons = _jump_if_any(values)
        self._rule(name, [_load(argument), *comparisons, _refuse(otherwise), _ALLOW])

    def _device_ioctl(self) -> None:
        """Allow the usual ioctl commands, and every command with an NVIDIA driver's numbers; a
        filter cannot see the descriptor's file.
        """
        commands = [*_IOCTL_ALLOWED, *_UNIFIED_MEMORY]
        body = [
            _load(1),
            *_jump_if_any(commands, further=3),
            (_AT_LEAST, 0, 3, _UNIFIED_PLAIN),
            (_AND, 0, 0, 0xFF00),
            (_EQUAL, 1, 0, _NVIDIA_TYPE),
            _refuse(errno.ENOTTY),
            _ALLOW,
        ]
        self._rule("ioctl", body)

    def _device_sockets(self) -> None:
        """Allow an unconnected Unix socket of kind SEQPACKET, which can send to nobody, and that it
        asks for credentials.

        cuInit asks a server for several processes (MPS) before it binds its own socket; `connect`
        is refused as if none ran.
        """
        refused = _refuse(errno.EPERM)
        self._rule(
            "socket",
            [
                _load(0),
                (_EQUAL, 0, 3, _UNIX),
                _load(1),
                (_AND, 0, 0, _SOCKET_TYPE),
                (_EQUAL, 1, 0, _SEQUENCED),
                refused,
                _ALLOW,
            ],
        )
        self._rule(
            "setsockopt",
            [
                _load(1),
                (_EQUAL, 0, 2, _SOCKET_LEVEL),
                _load(2),
                (_EQUAL, 1, 0, _PASS_CREDENTIALS),
                refused,
                _ALLOW,
            ],
        )
        self._rule("connect", [_refuse(errno.ENOENT)])

    def _device_memory(self) -> None:
        """Allow files that lie in memory. No program runs from one, since execve is refused."""
        self._rule(
            "memfd_create",
            [
                _load(1),
                (_ANY_BIT, 0, 1, _HUGE_PAGES),
                _refuse(errno.EPERM),
                _ALLOW,
            ],
        )

    def packed(self) -> bytes:
        """The program as the kernel takes it."""
        return b"".join(
            struct.pack("HBBI", *instruction) for instruction in self.program
        )


@functools.lru_cache(maxsize=4)
def program_for(
    own_pid: int, *, may_write: bool, may_open: bool, for_device: bool = False
) -> bytes:
    """The filter's program for a process of this number. Where every worker has a process namespace
    and is number 1, the host has the program ready before it forks.
    """
    return Filter(
        own_pid, may_write=may_write, may_open=may_open, for_device=for_device
    ).packed()


def enforce(program: bytes) -> None:
    """Put a filter in force, for good."""
    buffer = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack(
        "HxxxxxxQ", len(program) // _INSTRUCTION_BYTES, ctypes.addressof(buffer)
    )
    holder = ctypes.create_string_buffer(pointer, len(pointer))
    no_new_privileges()
    syscall("seccomp", 1, 0, ctypes.c_void_p(ctypes.addressof(holder)))
