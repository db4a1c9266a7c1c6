"""A course of one assignment in numpy and plain Python: three questions, of which the second uses
the first.
"""

from __future__ import annotations

from pathlib import Path

from courses import write_assignment

SOURCE = '''\
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% given="imports"
import numpy as np

# %% given="expect"
from autograder.student_tools.expect import expect

# %% question="centered"
def centered(x):
    """x: [n, d]; gives [n, d], the columns of which have mean 0."""
    ### BEGIN SOLUTION
    return x - x.mean(0)
    ### END SOLUTION

# %% check="centered"
expect(centered(np.array([[1.0], [3.0]])), np.array([[-1.0], [1.0]]), hint="What is the mean of the column?")

# %% question="spread"
def spread(x):
    """x: [n, d]; gives [d], the root of the mean square of each centered column."""
    ### BEGIN SOLUTION
    return np.sqrt((centered(x) ** 2).mean(0))
    ### END SOLUTION

# %% check="spread"
expect(spread(np.array([[1.0], [5.0]])), np.array([2.0]), hint="Is it the root?")

# %% question="counts"
def counts(words):
    """words: a list of texts; gives a dict that says how often each is in it."""
    ### BEGIN SOLUTION
    seen = {}
    for word in words:
        seen[word] = seen.get(word, 0) + 1
    return seen
    ### END SOLUTION

# %% check="counts"
expect(counts(["a", "b", "a"]), {"a": 2, "b": 1}, hint="Is each word counted?")
'''

SUITE = {
    "test_centered.py": """\
import numpy as np

from autograder.suite import assert_close, call_twice, points


@points(2)
def test_columns_have_mean_zero(student, reference):
    x = np.random.randn(4, 3)
    assert_close(call_twice(student.centered, x), reference.centered(x))


@points(1)
def test_keeps_single_precision(student):
    x = np.array([[1, 1], [3, 3]], dtype=np.float32)
    assert_close(student.centered(x), np.array([[-1, -1], [1, 1]], dtype=np.float32))
""",
    "test_spread.py": """\
import numpy as np

from autograder.suite import assert_close, assert_unchanged, points, uses

pytestmark = uses("centered")


@points(3)
def test_is_the_standard_deviation(student):
    x = np.random.randn(5, 2)
    assert_close(student.spread(x), x.std(0))
    assert_unchanged()
""",
    "test_counts.py": """\
from autograder.suite import assert_equal, forbid, points

pytestmark = forbid("collections.Counter")


@points(2)
def test_counts_each_word(student):
    assert_equal(student.counts(["to", "be", "or", "not", "to", "be"]), {"to": 2, "be": 2, "or": 1, "not": 1})


@points(1)
def test_counts_nothing_in_nothing(student):
    assert_equal(student.counts([]), {})
    assert_equal(student.counts(["one"]), {"one": 1})
""",
    "mistakes.py": """\
from autograder.suite import mistake


@mistake("centered", hint="The mean of which axis?", replace=("x.mean(0)", "x.mean()"))
def mean_of_all(): ...


@mistake(
    "spread", hint="Is that the root?", replace=("np.sqrt((centered(x) ** 2).mean(0))", "(centered(x) ** 2).mean(0)")
)
def variance(): ...


@mistake("counts", hint="How often does a word count?", replace=(" + 1", " + 2"))
def counts_double(): ...
""",
    "alternates.py": """\
import numpy as np

from autograder.suite import alternate


@alternate("centered")
def by_sums(x):
    return x - x.sum(axis=0, keepdims=True) / np.array(len(x), x.dtype)


@alternate("centered")
def by_columns(x):
    return np.stack([column - np.mean(column) for column in x.T], axis=1)


@alternate("spread")
def by_norms(x):
    return np.linalg.norm(centered(x), axis=0) / len(x) ** 0.5


@alternate("spread")
def by_loop(x):
    return np.array([np.mean(np.square(column)) ** 0.5 for column in centered(x).T])


@alternate("counts")
def by_set(words):
    return {word: words.count(word) for word in set(words)}


@alternate("counts")
def by_default(words):
    seen = dict.fromkeys(words, 0)
    for word in words:
        seen[word] += 1
    return seen
""",
}

RIGHT = {
    "centered": "def centered(x):\n    return x - np.mean(x, axis=0)\n",
    "spread": "def spread(x):\n    return np.mean(centered(x) ** 2, axis=0) ** 0.5\n",
    "counts": "def counts(words):\n    return {word: words.count(word) for word in words}\n",
}
"""Right answers: 3, 3 and 3 points."""


def write_course(root: Path) -> None:
    write_assignment(
        root,
        "columns",
        SOURCE,
        SUITE,
        "[limits]\ncall_seconds = 2.0\ncell_seconds = 2.0\n",
    )
