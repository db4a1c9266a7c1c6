"""Denial: time, memory, processes, files, output, and harm to whoever keeps them."""

from __future__ import annotations

from attack import Attack, in_a_cell, in_total


def _quietly(name: str, code: str, **more: bool) -> Attack:
    """Every line is tried, and what it raises is swallowed."""
    tries = "".join(
        f"try:\n    {line}\nexcept BaseException:\n    pass\n"
        for line in code.split("\n")
    )
    return in_a_cell(
        name, "import os, signal, resource, fcntl, ctypes\n" + tries, **more
    )


_BY_A_TIMER = """\
import ctypes, signal, struct, time
libc, event, timer = ctypes.CDLL(None), ctypes.create_string_buffer(64), ctypes.c_void_p()
for number in (signal.SIGKILL, signal.SIGSTOP):
    for clock in (0, 1, 2, 3):
        struct.pack_into("<QiiI", event, 0, 0, number, 0, 0)
        libc.timer_create(clock, event, ctypes.byref(timer))
        libc.timer_settime(timer, 0, struct.pack("<qqqq", 0, 0, 0, 1000), None)
ends = time.process_time() + 0.05
while time.process_time() < ends:
    pass
return 0
"""
_IN_EVERY_OTHER_WAY = """\
import contextlib, ctypes, fcntl, os, resource, signal, socket, threading
libc, own, thread = ctypes.CDLL(None), os.getpid(), threading.get_native_id()
here, there = socket.socketpair()
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
    for attempt in (
        lambda: os.kill(own, number),
        lambda: os.kill(0, number),
        lambda: os.killpg(0, number),
        lambda: signal.raise_signal(number),
        lambda: signal.pthread_kill(threading.get_ident(), number),
        lambda: signal.pidfd_send_signal(os.pidfd_open(own), number),
        lambda: libc.sigqueue(own, number, None),
        lambda: libc.pthread_sigqueue(ctypes.c_ulong(threading.get_ident()), number, None),
        lambda: libc.syscall(200, thread, number),
        lambda: libc.syscall(234, own, thread, number),
        lambda: libc.prctl(1, number, 0, 0, 0),
        lambda: fcntl.fcntl(here, fcntl.F_SETOWN, own),
        lambda: fcntl.fcntl(here, 10, number),
        lambda: fcntl.fcntl(here, fcntl.F_SETFL, os.O_ASYNC),
        lambda: fcntl.fcntl(here, 1024, fcntl.F_WRLCK),
        lambda: there.send(b"x"),
        lambda: resource.setrlimit(resource.RLIMIT_CPU, (0, 0)),
        lambda: resource.setrlimit(resource.RLIMIT_RTTIME, (1, 1)),
    ):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            attempt()
return 0
"""

ATTACKS = [
    in_a_cell("endless_loop_in_a_cell", "while True:\n    pass", slow=True),
    in_a_cell(
        "endless_loop_in_c", "import itertools\nsum(itertools.count())", slow=True
    ),
    in_a_cell(
        "endless_regular_expression",
        "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
        slow=True,
    ),
    in_a_cell(
        "endless_import",
        "open('/tmp/own_module.py', 'w').write('while True: "
        "pass')\nimport sys\nsys.path.insert(0, '/tmp')\nimport own_module",
        slow=True,
    ),
    in_total(
        "sleep_that_swallows_all",
        "import time\nwhile True:\n    try:\n        "
        "time.sleep(9)\n    except BaseException:\n        pass",
        slow=True,
    ),
    in_total(
        "exception_whose_text_never_ends",
        "class E(Exception):\n    def __str__(self):\n   "
        "     while True:\n            pass\nraise E",
        slow=True,
    ),
    in_total(
        "pipe_that_nobody_reads",
        "import os\nr, w = os.pipe()\nwhile True:\n    os.write(w, b'x' * 65536)",
        slow=True,
    ),
    Attack(
        "slow_in_every_cell",
        extra=tuple(f"import time\nx{i} = time.sleep(0.9)\n" for i in range(12)),
        may_lose=True,
        slow=True,
    ),
    in_a_cell("one_huge_allocation", "x = torch.zeros(10**12)"),
    in_a_cell("one_huge_list", "x = [0] * 10**11"),
    in_a_cell(
        "slow_leak",
        "kept = []\nwhile True:\n    kept.append(bytearray(10**7))",
        slow=True,
    ),
    in_a_cell(
        "map_without_end",
        "import mmap\nkept = []\nwhile True:\n    kept.append(mmap.mmap(-1, 10**8))",
    ),
    in_a_cell(
        "integer_without_end", "x = 10\nfor _ in range(40):\n    x = x ** 10", slow=True
    ),
    in_a_cell(
        "shared_memory_file",
        "f = open('/dev/shm/@MARK@-filled', 'wb')\nwhile True:\n    f.write(b'x' * 10**6)",
    ),
    in_a_cell(
        "shared_memory_segment",
        "from multiprocessing import "
        "shared_memory\nshared_memory.SharedMemory('@MARK@-segment', create=True, size=10**6)",
    ),
    in_a_cell("fork_bomb", "import os\nwhile True:\n    os.fork()"),
    in_a_cell(
        "process_pool",
        "import multiprocessing\nmultiprocessing.get_context('fork').Process(target=print).start()",
    ),
    in_a_cell(
        "threads_without_end",
        "import threading, time\nwhile True:\n    "
        "threading.Thread(target=time.sleep, args=(60,), "
        "daemon=True).start()",
    ),
    in_a_cell(
        "one_huge_file",
        "with open('/tmp/@MARK@-huge', 'wb') as f:\n    while True:\n        f.write(b'x' * 10**6)",
    ),
    in_a_cell(
        "a_sparse_file",
        "with open('/tmp/@MARK@-sparse', 'wb') as f:\n    f.truncate(2**50)",
    ),
    in_a_cell(
        "millions_of_files",
        "i = 0\nwhile True:\n    open(f'/tmp/@MARK@-{i}', 'w').close()\n    i += 1",
    ),
    in_a_cell(
        "folders_without_end",
        "import os\nwhile True:\n    os.mkdir('@MARK@-d')\n    os.chdir('@MARK@-d')",
    ),
    in_a_cell(
        "gigabytes_to_stdout",
        "import os\nfor _ in range(2000):\n    os.write(1, b'x' * 10**6)",
    ),
    in_a_cell(
        "gigabytes_to_stderr",
        "import os\nfor _ in range(2000):\n    os.write(2, b'x' * 10**6)",
    ),
    in_a_cell("prints_without_end", "for i in range(10**5):\n    print('x' * 100)"),
    in_a_cell(
        "descriptors_without_end",
        "import os\nwhile True:\n    os.dup(0)",
        may_lose=True,
    ),
    in_a_cell(
        "recursion_without_end",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
        slow=True,
    ),
    in_a_cell("segmentation_fault", "import ctypes\nctypes.string_at(0)"),
    in_a_cell("parser_that_falls", "eval('(' * 10**5 + ')' * 10**5)"),
    _quietly(
        "kill_the_parent", "os.kill(os.getppid(), 9)\nos.kill(0, 9)\nos.killpg(0, 9)"
    ),
    _quietly(
        "kill_everybody",
        "os.kill(-1, 9)\nos.kill(@GRADER@, "
        "9)\nos.killpg(os.getpgid(@GRADER@), "
        "9)\nctypes.CDLL(None).syscall(234, @GRADER@, @GRADER@, "
        "9)\nctypes.CDLL(None).syscall(200, @GRADER@, 9)",
    ),
    _quietly(
        "kill_by_handle",
        "signal.pidfd_send_signal(os.pidfd_open(@GRADER@), "
        "9)\nctypes.CDLL(None).syscall(129, @GRADER@, 9, 0)",
    ),
    _quietly(
        "signal_by_owner_of_a_file",
        "r, w = os.pipe()\nfcntl.fcntl(r, 8, "
        "@GRADER@)\nfcntl.fcntl(r, 10, 9)\nfcntl.fcntl(r, "
        "fcntl.F_SETFL, os.O_ASYNC)\nos.write(w, b'x')",
    ),
    _quietly(
        "lower_the_graders_limits",
        "resource.prlimit(@GRADER@, resource.RLIMIT_CPU, (1, "
        "1))\nresource.prlimit(os.getppid(), "
        "resource.RLIMIT_AS, (1, 1))",
    ),
    _quietly(
        "slow_the_grader_down",
        "os.setpriority(os.PRIO_PROCESS, @GRADER@, "
        "19)\nos.sched_setaffinity(@GRADER@, "
        "{0})\nos.sched_setscheduler(0, os.SCHED_FIFO, "
        "os.sched_param(50))",
    ),
    _quietly(
        "raise_its_own_limits",
        "resource.setrlimit(resource.RLIMIT_AS, (-1, "
        "-1))\nresource.setrlimit(resource.RLIMIT_NPROC, (-1, "
        "-1))\nos.nice(-20)",
    ),
    _quietly(
        "remove_its_own_limits_by_number",
        "resource.prlimit(0, resource.RLIMIT_CPU, (-1, "
        "-1))\nresource.prlimit(os.getpid(), "
        "resource.RLIMIT_FSIZE, (-1, -1))",
    ),
    in_total(
        "stops_itself",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nreturn 0",
    ),
    in_total("kills_and_stops_itself_by_a_timer", _BY_A_TIMER),
    in_total("kills_and_stops_itself_in_every_other_way", _IN_EVERY_OTHER_WAY),
    in_total(
        "kills_itself",
        "import contextlib, os, resource, signal\nwith "
        "contextlib.suppress(OSError):\n    os.kill(os.getpid(), "
        "signal.SIGKILL)\nwith contextlib.suppress(OSError, ValueError):\n  "
        "  resource.setrlimit(resource.RLIMIT_CPU, (1, "
        "1))\nos.kill(os.getpid(), signal.SIGABRT)\nos.abort()",
    ),
    _quietly("kill_process_one", "os.kill(1, 15)\nos.kill(2, 9)\nos.kill(3, 9)"),
    in_a_cell(
        "lowers_its_own_limits",
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4, "
        "4))\nresource.setrlimit(resource.RLIMIT_STACK, (65536, 65536))",
        may_lose=True,
    ),
    in_a_cell(
        "alarms_itself",
        "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)",
        may_lose=True,
    ),
    in_a_cell(
        "becomes_dumpable",
        "import ctypes\nctypes.CDLL(None).prctl(4, 1, 0, 0, "
        "0)\nctypes.CDLL(None).prctl(1, 0, 0, 0, 0)",
    ),
    in_total("huge_message", "raise ValueError('x' * 10**8)"),
    in_total("huge_class_name", "raise type('E' * 10**7, (Exception,), {})('x')"),
    in_total(
        "message_that_cannot_be_shown",
        "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E",
        may_lose=True,
    ),
    in_total(
        "chain_of_a_thousand_exceptions",
        "e = None\nfor i in range(1000):\n    n = "
        "ValueError(i)\n    n.__cause__ = e\n    e "
        "= n\nraise e",
    ),
    Attack(
        "nine_hundred_cells", extra=tuple(f"v{i} = {i}" for i in range(900)), slow=True
    ),
    Attack(
        "leaves_files_in_the_scratch_folder",
        extra=(
            "open('/tmp/@MARK@-left', 'w').write('x')\nopen('@MARK@-left-too', 'w').write('x')",
        ),
    ),
]
