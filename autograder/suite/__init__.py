"""What a hidden suite imports: marks, inputs of the right kind, comparisons, and the registers of known answers.

A suite is plain pytest. `student` is a proxy to a worker behind walls, `reference` is the answer key;
docs/authoring.md shows both.
"""

from autograder.suite.compare import (
    assert_close,
    assert_equal,
    assert_refused,
    assert_same_gradients,
    assert_unchanged,
    assert_varies,
    call_twice,
)
from autograder.suite.marks import forbid, points, uses
from autograder.suite.register import alternate, mistake, sample
from autograder.suite.values import (
    arange,
    config,
    eye,
    full,
    moved,
    ones,
    rand,
    randint,
    randn,
    randperm,
    tensor,
    zeros,
)

__all__ = [
    "alternate",
    "arange",
    "assert_close",
    "assert_equal",
    "assert_refused",
    "assert_same_gradients",
    "assert_unchanged",
    "assert_varies",
    "call_twice",
    "config",
    "eye",
    "forbid",
    "full",
    "mistake",
    "moved",
    "ones",
    "points",
    "rand",
    "randint",
    "randn",
    "randperm",
    "sample",
    "tensor",
    "uses",
    "zeros",
]
