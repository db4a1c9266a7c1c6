"""The calls with which CUDA starts, for a worker of a device host.

A test sends this file's text as a cell, so the file imports nothing of the kit. `start_of_cuda`
plays, without a GPU, what cuInit of drivers 535 to 580 asks of the kernel in public traces
(NVIDIA/cuda-checkpoint 10; NVIDIA/OpenShell 710, 1486, 1696; nolabs-ai/nono 651, 673, 924; the
CUDA rules of snapd). `what_stays_refused` asks for more.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_NUMBERS = {
    "x86_64": {
        "get_mempolicy": 239,
        "execveat": 322,
        "sched_getaffinity": 204,
        "accept4": 288,
    },
    "aarch64": {
        "get_mempolicy": 236,
        "execveat": 281,
        "sched_getaffinity": 123,
        "accept4": 242,
    },
}[os.uname().machine]
_NO_EXECUTION, _HUGE_PAGES = 0x8, 0x4
_ADD_SEALS, _SEAL_SHRINKING = 1033, 2
_RESERVED = 256 << 30
_READ = (
    "/proc/self/status",
    "/proc/self/maps",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/modules",
    "/proc/devices",
    "/proc/driver/nvidia/params",
    "/proc/driver/nvidia-uvm/counters",
    "/proc/sys/vm/mmap_min_addr",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/memory/block_size_bytes",
    "/sys/devices/system/node/node0/cpumap",
)
_IOCTLS = {
    "version of the driver": 0xC04846D2,
    "list of GPUs": 0xCA0046C8,
    "allocate in the resource manager": 0xC030462B,
    "control of the resource manager": 0xC020462A,
    "start of unified memory": 0x30000001,
    "end of unified memory": 0x30000002,
    "unified memory of this process": 0x4B,
    "register a GPU": 0x25,
}


def outcome(action: Callable[[], object]) -> str:
    """Allowed, or the name of the error with which the kernel refuses."""
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "allowed"


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def _call(name: str, *arguments: object) -> int:
    return _checked(_libc.syscall(_NUMBERS[name], *arguments))


def _read(path: str) -> None:
    with contextlib.suppress(
        FileNotFoundError
    ):  # a machine without it; no wall hides it
        Path(path).read_bytes()


def _open(path: str, flags: int = os.O_RDWR | os.O_CLOEXEC) -> None:
    os.close(os.open(path, flags))


def _socket_name() -> bytes:
    """The abstract name of cuInit's socket: the process namespace and the process in it."""
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return b"\0cuda-uvmfd-%d-%d" % (namespace, os.getpid())


def _listening_socket() -> socket.socket:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    opened.bind(_socket_name())
    opened.listen(16)
    return opened


def _ask_for_several_processes() -> None:
    """Ask whether an MPS server runs here, which the kernel must deny."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            asking.connect("/tmp/nvidia-mps/control")
        except FileNotFoundError:
            return
    raise OSError(errno.EISCONN, "a server answers")


def _memory_file(flags: int) -> int:
    return _checked(_libc.memfd_create(b"cuda", flags | os.MFD_CLOEXEC))


def _shared_memory() -> None:
    descriptor = _memory_file(_NO_EXECUTION)
    os.ftruncate(descriptor, 1 << 20)
    with mmap.mmap(descriptor, 1 << 20) as pages:
        pages[:4] = b"cuda"
    fcntl.fcntl(descriptor, _ADD_SEALS, _SEAL_SHRINKING)
    os.close(descriptor)


def _name_a_thread() -> None:
    """A name for a thread that runs, by the thread's number; the kernel must have taken it."""
    begun, ended = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        ended.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    begun.wait()
    try:
        name = Path(f"/proc/self/task/{thread.native_id}/comm")
        name.write_text("cuda-EvtHandlr", encoding="ascii")
        if name.read_text(encoding="ascii") != "cuda-EvtHandlr\n":
            raise OSError(errno.EIO, "another thread has the name")
    finally:
        ended.set()
        thread.join()


def _reserve_addresses() -> None:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    with mmap.mmap(-1, _RESERVED, flags=flags, prot=0) as addresses:
        addresses.madvise(mmap.MADV_DONTFORK)


def _make_pipe() -> None:
    for end in os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC):
        os.close(end)


def _ask_driver(number: int) -> None:
    """A command to no driver at all: what answers EBADF is the kernel, past the filter."""
    _checked(_libc.ioctl(-1, ctypes.c_ulong(number)))


def start_of_cuda(nodes: list[str]) -> dict[str, str]:
    """Each call of cuInit, and whether the worker may make it.

    Args:
        nodes: device files, in place of a GPU's.
    """
    calls: dict[str, Callable[[], object]] = {
        f"read {path}": partial(_read, path) for path in _READ
    }
    calls |= {f"open {node}": partial(_open, node) for node in nodes}
    policy = ctypes.create_string_buffer(1024)
    processors = ctypes.create_string_buffer(1024)
    calls |= {
        "where memory lies": lambda: _call("get_mempolicy", policy, None, 0, None, 0),
        "processors": lambda: _call("sched_getaffinity", 0, 1024, processors),
        "nodes of memory": lambda: list(Path("/sys/devices/system").iterdir()),
        "own program": lambda: Path("/proc/self/exe").readlink(),
        "is there an MPS server": _ask_for_several_processes,
        "file in memory": _shared_memory,
        "thread's name": _name_a_thread,
        "own name": lambda: Path("/proc/self/comm").write_text(
            "cuda", encoding="ascii"
        ),
        "event": lambda: os.close(os.eventfd(0)),
        "pipe": _make_pipe,
        "socket for unified memory": lambda: _listening_socket().close(),
        "addresses of a GPU": _reserve_addresses,
        "locked memory": lambda: _checked(_libc.mlock(policy, 10)),
        "file of shared memory": lambda: Path("/dev/shm/cuda.shm").write_bytes(b"0"),
    }
    outcomes = {name: outcome(action) for name, action in calls.items()}
    for name, number in _IOCTLS.items():
        error = outcome(partial(_ask_driver, number))
        outcomes[name] = "allowed" if error == "EBADF" else error
    return outcomes


def what_stays_refused() -> dict[str, str]:
    """Each action beyond cuInit's, and what the kernel says to it."""
    listening = _listening_socket()
    program = _memory_file(0)
    os.write(program, b"#!/bin/true\n")

    def socket_of(family: int, kind: int) -> Callable[[], object]:
        return lambda: socket.socket(family, kind).close()

    def connect() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.connect(_socket_name())

    def send() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.sendto(b"hello", _socket_name())

    def write(path: str) -> Callable[[], object]:
        return lambda: _open(path, os.O_WRONLY)

    actions: dict[str, Callable[[], object]] = {
        "accept": listening.accept,
        "accept by another call": lambda: _call(
            "accept4", listening.fileno(), None, None, 0
        ),
        "connect": connect,
        "send": send,
        "another option": lambda: listening.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        ),
        "stream": socket_of(socket.AF_UNIX, socket.SOCK_STREAM),
        "datagrams": socket_of(socket.AF_UNIX, socket.SOCK_DGRAM),
        "pair of datagrams": lambda: socket.socketpair(
            socket.AF_UNIX, socket.SOCK_DGRAM
        ),
        "internet": socket_of(socket.AF_INET, socket.SOCK_STREAM),
        "sequenced internet": socket_of(socket.AF_INET, socket.SOCK_SEQPACKET),
        "internet 6": socket_of(socket.AF_INET6, socket.SOCK_DGRAM),
        "kernel's own sockets": socket_of(socket.AF_NETLINK, socket.SOCK_RAW),
        "huge pages": lambda: _memory_file(_HUGE_PAGES),
        "run a file in memory": lambda: _call(
            "execveat", program, b"", None, None, 0x1000
        ),
        "exec": lambda: os.execv("/bin/true", ["true"]),
        "fork": os.fork,
        "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
        "kill": lambda: os.kill(2, signal.SIGKILL),
        "mount": lambda: _checked(_libc.mount(b"none", b"/scratch", b"tmpfs", 0, None)),
        "uncover /proc": lambda: _checked(_libc.umount2(b"/proc", 2)),
        "trace": lambda: _checked(_libc.ptrace(16, 1, 0, 0)),
        "whoever takes a file's signals": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, 1),
        "write to the root": lambda: Path("/file").write_text("", encoding="ascii"),
        "write own place in the queue to be killed": write("/proc/self/oom_score_adj"),
        "write own users": write("/proc/self/uid_map"),
        "write name of the host": write("/proc/sys/kernel/hostname"),
        "write the program for crashes": write("/proc/sys/kernel/core_pattern"),
        "write settings of the network": write("/proc/sys/net/ipv4/ip_forward"),
        "write to the machine's switch": write("/proc/sysrq-trigger"),
        "type for a terminal": partial(_ask_driver, 0x5412),
        "command of a disk": partial(_ask_driver, 0x1261),
    }
    outcomes = {name: outcome(action) for name, action in actions.items()}
    listening.close()
    return outcomes


def own_processes() -> list[str]:
    """Processes that the worker's /proc shows."""
    return sorted(path.name for path in Path("/proc").iterdir() if path.name.isdigit())


def writable_below_proc() -> list[str]:
    """Files in /proc, of any process and of the machine, that can be opened to be written to."""
    writable = []
    for folder, _, names in os.walk("/proc"):
        if "/fd" in folder or "/map_files" in folder:
            continue  # what they lead to lies elsewhere
        for name in names:
            path = f"{folder}/{name}"
            if outcome(partial(_open, path, os.O_WRONLY | os.O_NONBLOCK)) == "allowed":
                writable.append(
                    path.replace(f"/{threading.get_native_id()}/", "/THREAD/")
                )
    return sorted(writable)
