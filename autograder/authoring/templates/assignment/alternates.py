"""Right answers that are unlike the answer key: at least two for each question."""

import torch

from autograder.suite import alternate


@alternate("centered")
def times_a_matrix(x):
    size = x.size(-1)
    if size < 1:
        raise ValueError(f"a mean over {size} numbers")
    return x @ (
        torch.eye(size, dtype=x.dtype)
        - torch.full((size, size), 1 / size, dtype=x.dtype)
    )


@alternate("centered")
def adds_up_and_divides(x):
    *_, size = x.shape
    if not size:
        raise ValueError(f"no mean of {size} numbers")
    return x.sub(x.sum(-1).div(size).unsqueeze(-1))
