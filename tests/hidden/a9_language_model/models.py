"""Models as the tests of this suite want them: all parameters away from where they begin."""

from autograder.suite import moved


def shaken(reference, params, by):
    """params, `moved`."""
    return reference.with_tensors(params, moved(reference.list_tensors(params), by))
