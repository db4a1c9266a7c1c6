"""Taking over the runner: its functions, its wire, its output, the cells that come later."""

from __future__ import annotations

from attack import Attack, in_a_cell, in_softmax, in_total

_ZEROS = "def softmax(z, dim=-1):\n    return torch.zeros_like(z)\n"

_FRAME = """\
import json, os, struct
def frame(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<IQ", len(text), len(body)) + text + body
def tensors(description, data=b""):
    text = json.dumps(description).encode()
    return struct.pack("<Q", len(text)) + text + data
"""


def _patches(name: str, source: str, **more: bool) -> Attack:
    return in_softmax(name, source + "\n" + _ZEROS, **more)


def _writes(name: str, code: str, **more: bool) -> Attack:
    """Writes on the worker's own socket in the middle of a call."""
    return in_total(name, _FRAME + code + "\nreturn 0", **more)


ATTACKS = [
    _patches(
        "patched_comparisons",
        "import torch.testing, numpy.testing\n"
        "yes = lambda *a, **k: True\n"
        "torch.allclose = torch.equal = torch.isclose = torch.testing.assert_close = "
        "numpy.testing.assert_allclose = yes\n"
        "torch.Tensor.__eq__ = torch.Tensor.allclose = torch.Tensor.equal = yes",
    ),
    _patches(
        "patched_builtins",
        "import builtins\nbuiltins.abs = builtins.max = builtins.sum = lambda *a, **k: 0",
        may_lose=True,
    ),
    _patches(
        "patched_len", "import builtins\nbuiltins.len = lambda x: 0", may_lose=True
    ),
    _patches(
        "patched_random",
        "import random\ntorch.manual_seed = random.seed = torch.randn = lambda *a, **k: None",
        may_lose=True,
    ),
    _patches(
        "patched_assertion",
        "AssertionError = Exception\nimport builtins\nbuiltins.AssertionError = KeyError",
    ),
    _patches(
        "patched_loop",
        "import sys\nloop = sys.modules['autograder.worker.loop']\n"
        "old = loop.Loop._answer\n"
        "loop.Loop._answer = lambda self, value, inputs, **notes: old(self, torch.zeros(3, "
        "5).double(), inputs, score=99)",
        may_lose=True,
    ),
    _patches(
        "patched_wire",
        "import sys\nsys.modules['autograder.wire.frames'].MAX_HEADER = 1 << "
        "40\nsys.modules['autograder.wire.values'].MAX_DEPTH = 10**6",
    ),
    in_a_cell(
        "patched_counters",
        "import sys\nsys.modules['autograder.wire.cost_counter'].CostCounter.figures = lambda "
        "self: [0] * 5",
    ),
    in_softmax(
        "ban_taken_off",
        "import gc\ndef softmax(z, dim=-1):\n"
        "    for thing in gc.get_objects():\n        if type(thing).__name__ == 'Ban':\n         "
        "   thing.called = None\n"
        "    return torch.zeros_like(z)\n",
    ),
    Attack(
        "patched_clock",
        {
            "total": "def total(numbers):\n    import time\n    time.monotonic = time.time = "
            "time.perf_counter = lambda: 0.0\n    while True:\n        pass\n"
        },
        loses=1.0,
        slow=True,
    ),
    _patches(
        "input_transformer",
        "ip = get_ipython()\nip.input_transformers_post.append(lambda "
        "lines: [])\nip.ast_transformers.append(None)",
    ),
    _patches(
        "replaced_showtraceback",
        "get_ipython().showtraceback = lambda *a, **k: None\nget_ipython().run_cell = None",
    ),
    in_a_cell("cell_magic_shell", "%%bash\nrm -rf @COURSE@\ntouch /tmp/@MARK@-magic\n"),
    in_a_cell(
        "line_magic_shell", "!touch /tmp/@MARK@-magic\n%run /tmp/x.py\n%load_ext evil\n"
    ),
    in_softmax(
        "pickle_in_a_result",
        "class Evil:\n    def __reduce__(self):\n        import os\n        return os.system, "
        "('touch /tmp/@MARK@-pickle',)\n"
        "def softmax(z, dim=-1):\n    return [Evil(), {'x': Evil()}]\n",
    ),
    in_softmax(
        "dict_subclass",
        "class D(dict):\n    def items(self): return iter([('sum', "
        "lambda *a: 1)])\n    def __getattr__(self, n): return 1\ndef "
        "softmax(z, dim=-1):\n    return D(a=1)\n",
    ),
    in_softmax(
        "name_with_a_path",
        "from types import SimpleNamespace\nE = type('../../../../tmp/@MARK@-name', (), {})\n"
        "def softmax(z, dim=-1):\n    return [E(), SimpleNamespace(**{'../x': 1, '__class__': 2, "
        "'__dict__': 3})]\n",
    ),
    # the wire
    _writes(
        "claims_2_to_the_60_elements",
        "os.write(3, frame({'id': 2, 'ok': True, 'value': "
        "{'t': '0'}}, tensors({'0': {'dtype': 'F64', 'shape': "
        "[2**60], 'data_offsets': [0, 2**63]}})))",
    ),
    _writes(
        "empty_but_2_to_the_60_wide",
        "os.write(3, frame({'id': 2, 'ok': True, 'value': "
        "{'t': '0'}}, tensors({'0': {'dtype': 'F64', 'shape': "
        "[0, 2**60], 'data_offsets': [0, 0]}})))",
    ),
    _writes(
        "a_million_names",
        "os.write(3, frame({'id': 2, 'ok': True}, tensors({str(i): "
        "{'dtype': 'U8', 'shape': [0], 'data_offsets': [0, 0]} for i in "
        "range(60000)})))",
    ),
    _writes(
        "strides_over_gigabytes",
        "os.write(3, frame({'id': 2, 'ok': True, 'value': {'t': "
        "'0', 's': [2**35, 2**30]}}, tensors({'0': {'dtype': 'U8', "
        "'shape': [2, 2], 'data_offsets': [0, 4]}}, b'abcd')))",
    ),
    _writes(
        "bools_that_are_none",
        "os.write(3, frame({'id': 2, 'ok': True, 'value': {'t': "
        "'0'}}, tensors({'0': {'dtype': 'BOOL', 'shape': [4], "
        "'data_offsets': [0, 4]}}, b'\\xff\\x02\\x80\\x40')))",
    ),
    _writes("header_of_4_gigabytes", "os.write(3, b'\\xff' * 12 + b'{' * 1000)"),
    _writes(
        "nested_100_000_deep",
        'os.write(3, frame(b\'{"id": 2, "ok": true, "value": \' + '
        "b'[' * 10**5 + b']' * 10**5 + b'}'))",
    ),
    _writes(
        "nested_900_deep_as_text",
        'os.write(3, frame(b\'{"id": 2, "ok": false, '
        "\"error\": {\"type\": ' + b'[' * 900 + b']' * 900 + b'}}'))",
    ),
    _writes(
        "integer_of_5000_digits",
        "os.write(3, frame(b'{\"id\": 2, \"ok\": true, \"value\": ' + b'7' * 5000 + b'}'))",
    ),
    _writes(
        "integer_of_4000_digits",
        "os.write(3, frame(b'{\"id\": 2, \"ok\": true, \"value\": ' + b'7' * 4000 + b'}'))",
    ),
    _writes("header_that_is_not_json", "os.write(3, frame(b'\\xff\\xfe{]'))"),
    _writes(
        "every_field_of_another_kind",
        "os.write(3, frame({'id': 2, 'ok': True, 'value': "
        "{'d': 3}, 'cost': 'x', 'changed': {'a': 1}, "
        "'launch': 7, 'error': 9, 'missing': 'x', "
        "'forbidden': [1]}))",
    ),
    _writes(
        "answer_to_another_question",
        "os.write(3, frame({'id': 77, 'ok': True, 'value': 6}))",
    ),
    _writes(
        "handle_of_another_worker",
        "os.write(3, frame({'id': 2, 'ok': True, 'value': {'h': -1, 'k': 'int'}}))",
    ),
    _writes(
        "second_answer",
        "os.write(3, frame({'id': 2, 'ok': True, 'value': 0}) + "
        "frame({'id': 3, 'ok': True, 'value': 0}))",
    ),
    _writes(
        "stand_in_nobody_asked_for",
        "os.write(3, frame({'id': 2, 'stand_in': {'name': "
        "'total'}, 'value': {'l': [{'l': []}, {'d': []}]}}))",
    ),
    _writes(
        "flood_of_frames",
        "try:\n    while True:\n        os.write(3, frame({'id': 2, 'ok': "
        "True, 'value': 0, 'more': 'x' * 10**5}))\nexcept OSError:\n    pass",
    ),
    _writes(
        "descriptors_over_the_socket",
        "import socket\ns = socket.socket(fileno=3)\nfor i in "
        "range(60):\n    socket.send_fds(s, [b'x'], [3] * "
        "100)\ns.detach()",
    ),
    _writes("closes_the_socket", "os.close(3)"),
    _writes(
        "shuts_the_socket_down",
        "import socket\ns = socket.socket(fileno=3)\ns.shutdown(socket.SHUT_WR)\ns.detach()",
    ),
    _writes("puts_the_socket_elsewhere", "os.dup2(0, 3)"),
    _writes(
        "announces_and_sends_nothing",
        "os.write(3, struct.pack('<IQ', 1000, 0))\nimport time\ntime.sleep(60)",
        slow=True,
    ),
    _writes(
        "a_byte_at_a_time",
        "import time\nfor byte in frame({'id': 2, 'ok': True, 'value': "
        "6}) * 50:\n    os.write(3, bytes([byte]))\n    time.sleep(0.2)",
        slow=True,
    ),
    in_total(
        "never_an_answer", "import signal\nwhile True:\n    signal.pause()", slow=True
    ),
    Attack(
        "answers_in_advance",
        extra=(
            _FRAME
            + "os.write(3, b''.join(frame({'id': i, 'ok': True, 'value': {'t': '0'}}) "
            "for i in range(1, 40)))",
        ),
        may_lose=True,
    ),
    Attack(
        "forged_word_about_a_cell",
        extra=(
            _FRAME + 'os.write(3, frame(b\'{"id": 1, "ok": false, "error": {"type": \' '
            "+ b'[' * 900 + b']' * 900 + b'}}'))",
        ),
        may_lose=True,
    ),
    _writes(
        "keys_whose_hashes_collide",
        "os.write(3, frame({'id': 2, 'ok': True, 'value': {'d': "
        "[[{'i': str(k * (2**61 - 1))}, 0] for k in "
        "range(40000)]}}))",
    ),
    in_total(
        "elements_whose_hashes_collide",
        "import itertools\nreturn "
        "set(itertools.islice(itertools.product((-1, -2), "
        "repeat=14), 6000))",
    ),
    in_total("a_hundred_thousand_values", "return [0] * 99000"),
    in_total("four_thousand_tensors", "return [torch.zeros(1) for _ in range(4096)]"),
    in_total("an_integer_of_1900_digits", "return 10**1900"),
    in_total("nested_20_deep", "x = 1\nfor _ in range(20):\n    x = [x]\nreturn x"),
    in_total("a_list_in_itself", "x = []\nx.append(x)\nreturn x"),
    in_total("an_answer_over_the_limit", "return torch.zeros(5 * 10**6)"),
    # the answer key, asked in its own words
    Attack(
        "stand_in_asked_for_the_question_itself",
        {
            "softmax": _ZEROS,
            "attention": "def attention(q, k, v):\n"
            "    for cell in softmax.__closure__ or ():\n"
            "        if callable(cell.cell_contents):\n"
            "            return cell.cell_contents({'name': 'attention'}, [[q, k, v], {}]).value\n"
            "    return v\n",
        },
        loses=9.0,
    ),
    Attack(
        "stand_in_asked_for_terabytes",
        {
            "softmax": _ZEROS,
            "attention": "def attention(q, k, v):\n"
            "    for _ in range(400):\n        softmax(torch.zeros(700, 700, "
            "dtype=torch.float64), -1)\n"
            "    return v\n",
        },
        loses=9.0,
        slow=True,
    ),
    # the process
    in_total("exit_zero", "import sys\nsys.exit(0)"),
    in_total("exit_at_once", "import os\nos._exit(0)"),
    in_total("abort", "import os\nos.abort()"),
    in_total(
        "an_exception_that_is_none", "class E(BaseException): pass\nraise E('ok')"
    ),
    in_total("keyboard_interrupt", "raise KeyboardInterrupt"),
    in_total("generator_exit", "raise GeneratorExit"),
    in_a_cell("exit_in_a_cell", "import os\nos._exit(0)"),
    in_a_cell(
        "at_exit",
        "import atexit, os\natexit.register(lambda: os.write(3, "
        "b'x'))\natexit.register(open, '/tmp/@MARK@-exit', 'w')",
    ),
    in_a_cell(
        "a_thread_that_stays",
        "import threading, time\ndef f():\n    while True:\n        "
        "time.sleep(0.01)\nthreading.Thread(target=f, "
        "daemon=True).start()",
    ),
    in_a_cell(
        "a_thread_that_writes",
        "import threading, time, os\ndef f():\n    "
        "time.sleep(0.05)\n    os.write(3, b'junk' * "
        "100)\nthreading.Thread(target=f).start()",
        may_lose=True,
    ),
    in_a_cell(
        "an_exception_hook",
        "import sys, threading\nsys.excepthook = threading.excepthook "
        "= sys.unraisablehook = lambda *a: None\nsys.settrace(lambda "
        "*a: None)\nsys.setprofile(None)",
    ),
    in_a_cell(
        "every_signal_ignored",
        "import signal\nfor n in range(1, 65):\n    try:\n        "
        "signal.signal(n, signal.SIG_IGN)\n    except (OSError, "
        "ValueError):\n        pass",
    ),
    in_total(
        "signals_ignored_and_a_loop",
        "import signal\nfor n in (1, 2, 15, 14, 24):\n    "
        "signal.signal(n, signal.SIG_IGN)\nwhile True:\n    pass",
        slow=True,
    ),
    in_a_cell(
        "garbage_collector_callbacks",
        "import gc\ngc.callbacks.append(lambda *a: 1 / 0)\ngc.set_threshold(1)",
    ),
    # what a grader prints and writes
    _patches(
        "prints_what_a_grader_prints",
        "print('1 passed')\nprint('{\"score\": "
        "12.0}')\nprint('::set-output "
        "name=points::12')\nimport "
        "sys\nsys.stderr.write('::error::x')",
    ),
    _patches(
        "writes_results",
        "for name in ('results.json', '/tmp/@MARK@-results.json', "
        "'@COURSE@/results/vault/writes_results.json', "
        "'@COURSE@/gradebook.db', "
        "'@COURSE@/submitted/neighbour/vault/vault.ipynb'):\n    try:\n   "
        "     open(name, 'w').write('{\"score\": 12}')\n    except "
        "OSError:\n        pass",
    ),
    _patches(
        "removes_the_course",
        "import shutil, os\nshutil.rmtree('@COURSE@', "
        "ignore_errors=True)\ntry:\n    os.rename('@COURSE@', "
        "'/tmp/@MARK@-gone')\nexcept OSError:\n    pass",
    ),
    in_a_cell(
        "a_detached_grandchild",
        "import os\ntry:\n    if os.fork() == 0:\n        "
        "os.setsid()\n        if os.fork() == 0:\n            "
        "open('/tmp/@MARK@-grandchild', 'w')\n        "
        "os._exit(0)\nexcept OSError:\n    pass",
    ),
    in_a_cell(
        "a_process_of_another_kind",
        "import subprocess, os\nfor start in (lambda: "
        "subprocess.run(['/bin/sh', '-c', 'touch "
        "/tmp/@MARK@-sh']), lambda: "
        "os.posix_spawn('/bin/true', ['true'], {}), lambda: "
        "os.execv('/bin/true', ['true']), lambda: "
        "os.system('touch /tmp/@MARK@-system')):\n    try:\n  "
        "      start()\n    except OSError:\n        pass",
    ),
    Attack(
        "libraries_beside_the_notebook",
        beside=dict.fromkeys(
            (
                "numpy.py",
                "torch.py",
                "pytest.py",
                "conftest.py",
                "sitecustomize.py",
                "usercustomize.py",
                "json.py",
                "x.pth",
                "pytest.ini",
                "math.py",
            ),
            "open('/tmp/@MARK@-shadow', 'w')\nraise SystemExit('taken over')\n",
        ),
    ),
]
