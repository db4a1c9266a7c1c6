"""torch's own dice, where the submission runs: whoever draws with a seed leaves them alone."""

from contextlib import contextmanager

from autograder.suite import assert_equal

PLANT = """
def plant():
    torch.manual_seed(5)
"""
PEEK = """
def peek():
    return torch.rand(1).item()
"""


@contextmanager
def dice_left_alone(student):
    """Assert that what happens in the block moves them not at all: the next number is the one
    without it.
    """
    plant, peek = student.define(PLANT, "plant"), student.define(PEEK, "peek")
    plant()
    untouched = peek()
    plant()
    yield
    assert_equal(peek(), untouched, what="the next number of torch's own dice")
