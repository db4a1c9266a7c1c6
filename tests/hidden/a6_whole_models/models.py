"""Models as the tests of this suite want them: no parameter at a value that hides a fault."""

from autograder.suite import randn


def shaken(reference, params, by):
    """params in float64, each number moved by `by` times a normal one: trained norms, biases that are not 0.

    One draw serves all tensors: there are many small ones.
    """
    tensors = reference.list_tensors(params)
    moves = (by * randn(sum(t.numel() for t in tensors))).split([t.numel() for t in tensors])
    moved = [t.double() + move.view(t.shape) for t, move in zip(tensors, moves, strict=True)]
    return reference.with_tensors(params, moved)


def learned(reference, params):
    """params, all of whose tensors ask for a gradient."""
    for tensor in reference.list_tensors(params):
        tensor.requires_grad_()
    return params
