"""Models as the tests of this suite want them: no parameter at a value that hides a fault."""

from autograder.suite import moved


def shaken(reference, params, by):
    """params, `moved`: trained norms, biases that are not 0."""
    return reference.with_tensors(params, moved(reference.list_tensors(params), by))


def learned(reference, params):
    """params, all of whose tensors ask for a gradient."""
    for tensor in reference.list_tensors(params):
        tensor.requires_grad_()
    return params
