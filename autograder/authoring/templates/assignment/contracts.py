"""What the docstrings allow: `autograder hunt` looks there for answers that no test finds wrong."""

from autograder.suite.contracts import calls, contract, tensor

contract("centered", calls(x=tensor("...", "D")), gradients=True)
