"""Models as the tests of this suite want them: no parameter at a value that hides a fault."""

from autograder.suite import randn


def shaken(reference, params, by):
    """params in float64, each number moved by `by` times a normal one: trained norms, biases that are not 0."""
    moved = [t.double() + by * randn(*t.shape) for t in reference.list_tensors(params)]
    return reference.with_tensors(params, moved)


def learned(reference, params):
    """params, all of whose tensors ask for a gradient."""
    for tensor in reference.list_tensors(params):
        tensor.requires_grad_()
    return params
