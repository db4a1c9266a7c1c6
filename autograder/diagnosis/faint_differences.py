"""Says what differs between two calls that give the same: a cost, or what an exception names."""

from __future__ import annotations

import re
from dataclasses import asdict

from autograder.basics.errors import StudentError
from autograder.basics.safe_text import clean, one_line
from autograder.suite.calls import Call

COSTS = {
    "operations": "it takes more torch operations than it needs",
    "flops": "it multiplies more than it needs",
    "largest": "it makes a larger tensor than it needs",
    "peak": "it holds more numbers at once than it needs",
    "moved": "it writes more numbers than it needs",
    "lines": "it takes more steps of Python than it needs",
    "torch": "it computes outside of the kernel",
    "unfilled": "it loads masked lanes without `other`",
    "dots": "it does not use `tl.dot`",
    "loads": "it does not load as many numbers as it needs",
    "stores": "it does not store as many numbers as it needs",
}
"""What is said of a call that costs more than the answer key's, by the figure."""
_HIGHER = 1.05
"""How many times the answer key's a cost is that is told."""
_NAME = re.compile(r"-?\d+(?:\.\d+)?|[A-Za-z_]\w*(?:\.\w+)+")
"""A number, or a name with dots, in the text of an exception."""
_MOST_NAMES = 3


def describe_cost(call: Call, key_call: Call) -> str:
    """What is said of the cost that is most above the answer key's; "" where none is higher."""
    if call.cost is None or key_call.cost is None:
        return ""
    key_figures = asdict(key_call.cost)
    shares = {
        name: figure / max(1, key_figures[name])
        for name, figure in asdict(call.cost).items()
        if name in COSTS
    }
    highest = max(shares, key=lambda name: shares[name], default="")
    if not highest or shares[highest] < _HIGHER:
        return ""
    return f"has the right value; {COSTS[highest]}."


def describe_missing_names(call: Call, key_call: Call) -> str:
    """Which numbers and names of the answer key's exception one of the same type lacks; "" where it
    lacks none.
    """
    fault, key_fault = call.fault, key_call.fault
    if not isinstance(fault, StudentError) or not isinstance(key_fault, StudentError):
        return ""
    if fault.type_name != key_fault.type_name:
        return ""
    named = set(_NAME.findall(fault.message))
    key_names = dict.fromkeys(_NAME.findall(key_fault.message))
    missing = [name for name in key_names if name not in named][:_MOST_NAMES]
    if not missing:
        return ""
    names = clean(one_line(", ".join(missing)), 120)
    return f"raises {key_fault.type_name}, as it must; the message lacks {names}."
