"""Models as the tests of this suite want them: all parameters away from where they begin."""

from autograder.suite import randn


def shaken(reference, params, by):
    """params in float64, each number moved by `by` times a normal one. One draw serves all: there are many of them."""
    tensors = reference.list_tensors(params)
    moves = (by * randn(sum(t.numel() for t in tensors))).split([t.numel() for t in tensors])
    moved = [t.double() + move.view(t.shape) for t, move in zip(tensors, moves, strict=True)]
    return reference.with_tensors(params, moved)
