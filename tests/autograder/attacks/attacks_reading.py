"""Reading what is hidden: files, processes, memory, the network. What was seen is told in the error
message.
"""

from __future__ import annotations

from attack import Attack, in_a_cell, reading

_SUITE = "@COURSE@/tests/hidden/vault"


def _opens(name: str, path: str) -> Attack:
    return reading(name, f"attempt(lambda: open('{path}').read())", steals=True)


def _sends(name: str, code: str) -> Attack:
    """Tries to say something to a listener outside; whether it arrived is asked there."""
    return in_a_cell(
        name,
        "import socket\ntry:\n"
        + "".join(f"    {line}\n" for line in code.split("\n"))
        + "except OSError:\n    pass\n",
    )


def _calls(name: str, *calls: str) -> Attack:
    """System calls by number, past Python. What they give is no text, so that nobody may be hurt is
    all that is asked.
    """
    lines = ["import ctypes", "libc = ctypes.CDLL(None, use_errno=True)"]
    return reading(
        name, "\n".join([*lines, *(f"attempt(lambda: {call})" for call in calls)])
    )


ATTACKS = [
    _opens("open_the_suite", f"{_SUITE}/test_softmax.py"),
    _opens("open_the_mistakes", f"{_SUITE}/mistakes.py"),
    _opens("open_the_answer_key", "@COURSE@/solutions/vault/vault.ipynb"),
    _opens("open_the_source", "@COURSE@/source/vault/vault.py"),
    _opens("open_the_gradebook", "@COURSE@/gradebook.db"),
    _opens("open_what_mistakes_answered", "@COURSE@/.autograder/known/vault/canary"),
    _opens(
        "open_anothers_submission", "@COURSE@/submitted/neighbour/vault/vault.ipynb"
    ),
    _opens("open_anothers_result", "@COURSE@/results/vault/neighbour.json"),
    _opens("open_shared_memory", "/dev/shm/@MARK@-canary"),
    _opens("through_proc_self_root", f"/proc/self/root{_SUITE}/test_softmax.py"),
    _opens(
        "through_proc_self_cwd",
        f"/proc/self/cwd/../../../../../../../..{_SUITE}/test_softmax.py",
    ),
    _opens("through_the_graders_root", f"/proc/@GRADER@/root{_SUITE}/test_softmax.py"),
    _opens(
        "through_the_hosts_root",
        f"/proc/' + str(__import__('os').getppid()) + '/root{_SUITE}/test_softmax.py",
    ),
    _opens(
        "by_a_relative_path", f"../../../../../../../../../..{_SUITE}/test_softmax.py"
    ),
    reading(
        "list_the_suite",
        "import os\nattempt(lambda: [open(e.path).read() for e in "
        f"os.scandir('{_SUITE}') if e.is_file()])",
        steals=True,
    ),
    reading(
        "through_a_link_of_ones_own",
        f"import os\nattempt(lambda: os.symlink('{_SUITE}/test_softmax.py', '/tmp/@MARK@-link'))\n"
        "attempt(lambda: open('/tmp/@MARK@-link').read())\nattempt(lambda: "
        "os.unlink('/tmp/@MARK@-link'))",
        steals=True,
    ),
    reading(
        "through_a_hard_link",
        f"import os\nattempt(lambda: os.link('{_SUITE}/mistakes.py', "
        "'copy'))\nattempt(lambda: open('copy').read())",
    ),
    Attack(
        "through_a_link_beside_the_notebook",
        {
            "softmax": "def softmax(z, dim=-1):\n    raise ValueError(open('key.py').read())\n"
        },
        loses=4.0,
        beside={"key.py": f"-> {_SUITE}/test_softmax.py"},
    ),
    reading(
        "import_the_suite",
        "import sys, inspect\nsys.path.insert(0, "
        f"'{_SUITE}')\nattempt(lambda: "
        "inspect.getsource(__import__('mistakes')))\nsys.path.pop(0)",
        steals=True,
    ),
    reading(
        "numpy_reads_it",
        "import numpy\nattempt(lambda: "
        f"numpy.fromfile('{_SUITE}/test_softmax.py', dtype='u1').tobytes())",
        steals=True,
    ),
    reading(
        "torch_maps_it",
        f"attempt(lambda: torch.from_file('{_SUITE}/test_softmax.py', "
        "size=64, dtype=torch.uint8).numpy().tobytes())",
        steals=True,
    ),
    reading(
        "libc_opens_it",
        "import ctypes, os\nattempt(lambda: "
        f"os.read(ctypes.CDLL(None).open(b'{_SUITE}/test_softmax.py', 0), 9999))",
        steals=True,
    ),
    reading(
        "walk_the_machine",
        "import os\nfor top in ('/tmp', '/home', '/root', '/srv'):\n    "
        "for here, _, names in "
        "__import__('itertools').islice(os.walk(top), 200):\n        for "
        "name in names:\n            if '@MARK@' in here and "
        "name.startswith('test_'):\n                attempt(lambda: "
        "open(os.path.join(here, name)).read())",
    ),
    reading(
        "walk_the_frames",
        "import sys\nframe = sys._getframe()\nwhile frame:\n    "
        "look(frame.f_locals)\n    look(frame.f_globals.keys())\n    "
        "frame = frame.f_back",
    ),
    reading(
        "walk_all_objects",
        "import gc\nfor found in gc.get_objects():\n"
        "    if type(found) is dict and len(found) < 1000:\n"
        "        for value in list(found.values()):\n"
        "            if type(value) is str and len(value) < 10**5:\n                look(value)",
    ),
    reading(
        "walk_the_line_cache",
        "import linecache\nlook(list(linecache.cache))\nfor entry in "
        "list(linecache.cache.values()):\n    if len(entry) > 2:\n    "
        "    look(entry[2][:200])",
    ),
    reading(
        "walk_the_modules",
        "import sys, inspect\nlook(list(sys.modules))\nfor name in "
        "('__main__', 'reference', 'student', 'conftest', "
        "'test_softmax'):\n    attempt(lambda: vars(sys.modules[name]))",
    ),
    reading(
        "ask_for_the_stack",
        "import inspect, traceback\nattempt(lambda: [f.code_context for "
        "f in inspect.stack()])\nattempt(lambda: traceback.format_stack())",
    ),
    reading(
        "the_environment",
        "import os, ctypes\nlook(dict(os.environ))\nattempt(lambda: "
        "ctypes.CDLL(None).getenv(b'@MARK@_TOKEN'))",
    ),
    reading(
        "the_graders_environment",
        "attempt(lambda: open('/proc/@GRADER@/environ', 'rb').read())",
    ),
    reading(
        "every_environment",
        "import glob\nfor name in glob.glob('/proc/[0-9]*/environ'):\n  "
        "  attempt(lambda: open(name, 'rb').read())",
    ),
    reading(
        "the_hosts_command_line",
        "import os, sys\nlook(sys.orig_argv)\nfor name in ('self', "
        "os.getppid()):\n    attempt(lambda: "
        "open(f'/proc/{name}/cmdline').read())",
    ),
    reading(
        "the_graders_memory",
        "def heap():\n    for line in open('/proc/@GRADER@/maps'):\n        if '[heap]' in line:\n"
        "            begin, end = (int(x, 16) for x in line.split()[0].split('-'))\n"
        "            with open('/proc/@GRADER@/mem', 'rb', 0) as memory:\n"
        "                memory.seek(begin)\n                return memory.read(min(end - begin, "
        "1 << 26))\nattempt(heap)",
    ),
    reading(
        "its_own_memory",
        "def own():\n    for line in open('/proc/self/maps'):\n        "
        "look(line)\nattempt(own)\nattempt(lambda: torch.empty(10**7, "
        "dtype=torch.uint8).numpy().tobytes())",
    ),
    reading(
        "open_descriptors",
        "import os\nfor number in range(300):\n    if number != 3:\n     "
        "   attempt(lambda: os.pread(number, 10**5, 0))\n        "
        "attempt(lambda: os.readlink(f'/proc/self/fd/{number}'))",
    ),
    reading(
        "the_graders_descriptors",
        "import os\nfor number in range(64):\n    attempt(lambda: "
        "open(f'/proc/@GRADER@/fd/{number}', 'rb').read(9999))",
    ),
    reading(
        "where_the_course_lies",
        "import gc, sys, os\nfound = [os.getcwd(), *sys.argv, *sys.orig_argv, *sys.path]\n"
        "for thing in gc.get_objects():\n"
        "    if type(thing) in (list, dict, tuple) and len(thing) < 100:\n"
        "        found += [x for x in (thing.values() if type(thing) is dict else thing) if "
        "type(x) is str]\n"
        "frame = sys._getframe()\nwhile frame:\n    found += [str(v) for v in "
        "frame.f_locals.values() if type(v) in (str, list, dict)]\n    frame = frame.f_back\n"
        "place = [x for x in found if 'solutions' in x or 'hid' + 'den' in x]\n"
        "raise ValueError(str(place[:3]))",
    ),
    _calls(
        "trace_the_grader",
        "libc.ptrace(16, @GRADER@, 0, 0)",
        "libc.ptrace(16, 1, 0, 0)",
    ),
    _calls("read_by_process_vm", "libc.syscall(310, @GRADER@, 0, 0, 0, 0, 0)"),
    _calls(
        "open_by_handle",
        "libc.syscall(303, -100, b'/', 0, 0, 0)",
        "libc.syscall(304, 3, 0, 0)",
    ),
    _calls(
        "mount_and_chroot",
        "libc.mount(b'/', b'/tmp', 0, 4096, 0)",
        "libc.chroot(b'..')",
        "libc.umount2(b'/', 2)",
    ),
    _calls(
        "new_namespaces",
        "libc.unshare(0x10000000)",
        "libc.unshare(0x20000)",
        "libc.setns(3, 0)",
    ),
    _calls(
        "become_root",
        "libc.setuid(0)",
        "libc.setresuid(0, 0, 0)",
        "libc.syscall(126, 0, 0)",
    ),
    _calls(
        "rings_and_rare_calls",
        "libc.syscall(425, 8, 0)",
        "libc.syscall(323, 0)",
        "libc.syscall(321, 0, 0, 0)",
        "libc.syscall(250, 0, 0)",
    ),
    _calls(
        "shared_memory_by_key",
        "libc.shmget(0x5EED, 4096, 0o1666)",
        "libc.semget(1, 1, 0o1666)",
        "libc.msgget(1, 0o1666)",
    ),
    in_a_cell(
        "calls_by_the_other_numbers",
        "import ctypes\nctypes.CDLL(None).syscall(0x40000000 + 257, -100, b'/', 0)",
    ),
    _sends(
        "speak_tcp",
        "socket.create_connection(('127.0.0.1', @TCP@), 0.5).send(b'@MARK@')",
    ),
    _sends(
        "speak_udp",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'@MARK@', ('127.0.0.1', @UDP@))",
    ),
    _sends("ask_a_name_server", "socket.getaddrinfo('@MARK@.example', 80)"),
    _sends(
        "speak_to_a_unix_socket",
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.sendto(b'@MARK@', '@UNIX@')",
    ),
    _sends(
        "speak_to_an_abstract_socket",
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.sendto(b'@MARK@', '\\0@MARK@')",
    ),
    _sends(
        "datagrams_from_a_pair",
        "a, b = socket.socketpair(socket.AF_UNIX, "
        "socket.SOCK_DGRAM)\na.sendto(b'@MARK@', '@UNIX@')",
    ),
    _sends(
        "abstract_datagrams_from_a_pair",
        "a, b = socket.socketpair(socket.AF_UNIX, "
        "socket.SOCK_DGRAM)\na.sendto(b'@MARK@', '\\0@MARK@')",
    ),
    _sends(
        "datagrams_from_the_workers_own_socket",
        "s = socket.socket(fileno=3)\ntry:\n    s.sendto(b'', '@UNIX@')\nfinally:\n    s.detach()",
    ),
    _sends(
        "kernel_messages",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9).send(b'@MARK@')",
    ),
]
