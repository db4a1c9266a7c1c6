"""What the docstrings of assignment 3 allow."""

import torch

from autograder.suite.contracts import (
    HALF,
    calls,
    choice,
    computed,
    contract,
    mask,
    maybe,
    permutation,
    size,
    tensor,
    whole,
)

WEIGHTS = ("normal", "whole", "small", "zeros")
"""Numbers of a weight matrix."""
SCORES = ("...", "N_q", "N_k")

contract(
    "simple_self_attention",
    calls(x=tensor("...", "N", "d")),
    dtypes=HALF,
    gradients=True,
    # scores of some thousands, whose logarithm of a sum has three digits behind the point
    tolerance={"float32": 1e-3},
)

contract(
    "self_attention",
    calls(
        x=tensor("...", "N", "D"),
        w_q=tensor("D", "d_k", values=WEIGHTS),
        w_k=tensor("D", "d_k", values=WEIGHTS),
        w_v=tensor("D", "d_v", values=WEIGHTS),
    ),
    dtypes=HALF,
    gradients=True,
)

contract(
    "cross_attention",
    calls(
        x_q=tensor("...", "N_q", "D"),
        x_kv=tensor("...", "N_k", "D_kv"),
        w_q=tensor("D", "d_k", values=WEIGHTS),
        w_k=tensor("D_kv", "d_k", values=WEIGHTS),
        w_v=tensor("D_kv", "d_v", values=WEIGHTS),
    ),
    dtypes=HALF,
    gradients=True,
)

contract("causal_mask", calls(n_q=whole(0, 9), n_k=maybe(choice(None, *range(10)))))


def _some_lengths(draw):
    """Lengths from 0 to the padded length."""
    longest = draw.size("N")
    return torch.tensor([draw.whole(0, longest) for _ in range(draw.size("B"))])


contract("padding_mask", calls(lengths=computed(_some_lengths), n=size("N")))


def masks_that_broadcast(draw, play, name):
    """One to four masks; any axis may have size 1, and leading axes may be missing."""
    full = [draw.size(axis) for axis in ("A", "B", "N_q", "N_k")]
    masks = []
    for number in range(draw.whole(1, 4)):
        axes = full[draw.whole(0, 3) :]
        shape = [length if draw.happens(70) else 1 for length in axes]
        masks.append(draw(mask(*shape), f"mask {number}"))
    play.call(name, *masks)


contract("combine_masks", masks_that_broadcast)

contract(
    "masked_softmax",
    calls(scores=tensor(*SCORES), mask=mask(*SCORES, broadcasts=True)),
    dtypes=HALF,
    gradients=True,
)


def softmax_with_strange_forbidden_scores(draw, play, name):
    """Forbidden scores may be infinite or NaN."""
    scores = draw(tensor(*SCORES), "scores")
    allowed = draw(mask(*SCORES), "mask")
    strange = float(draw.choose("forbidden scores", ("nan", "inf", "-inf")))
    play.call(name, scores.masked_fill(~allowed, strange), allowed)


contract(
    "masked_softmax", softmax_with_strange_forbidden_scores, dtypes=HALF, gradients=True
)

contract(
    "masked_attention",
    calls(
        q=tensor("...", "N_q", "d"),
        k=tensor("...", "N_k", "d"),
        v=tensor("...", "N_k", "d_v"),
        mask=maybe(mask(*SCORES, broadcasts=True)),
    ),
    dtypes=HALF,
    gradients=True,
)

contract("sinusoidal_positions", calls(n=whole(0, 40), d=whole(1, 33)))


def _sorts(x):
    return x.sort(dim=0).values


def _subtracts_the_mean(x):
    return x - x.mean(dim=0)


def _adds_the_row_number(x):
    return x + torch.arange(len(x), dtype=x.dtype)[:, None]


def _shifts_down(x):
    return torch.cat([x[:1], x[:-1]])


def _sums_up(x):
    return x.cumsum(dim=0)


def _looks_one_ahead(x):
    return x + torch.cat([x[1:], x[:1] * 0])


def _adds_the_last_row_to_the_middle(x):
    moved = x.clone()
    moved[len(x) // 2] = moved[len(x) // 2] + x[-1]
    return moved


def _scales_tiny(x):
    return 1e-8 * x


def _leaks_a_little_into_the_first(x):
    """A leak of some thousandths of a large row."""
    moved = 1e6 + 1e5 * x
    moved[0] = moved[0] + 2e4 * x[-1]
    return moved


def _shuffles_a_little_wrongly(x):
    """Row 0 differs by a hundredth of the largest output."""
    moved = 1e5 * x
    moved[0] = moved[0] + 1e3 * x.abs().max()
    return moved


contract(
    "is_permutation_equivariant",
    calls(
        fn=choice(
            _sorts,
            _subtracts_the_mean,
            _adds_the_row_number,
            _shifts_down,
            _scales_tiny,
            _shuffles_a_little_wrongly,
        ),
        x=tensor("N", "D", values=("normal",)),
        perm=permutation("N"),
    ),
    dtypes=("float64",),
)

contract(
    "first_leak",
    calls(
        fn=choice(
            _sums_up,
            _subtracts_the_mean,
            _looks_one_ahead,
            _adds_the_last_row_to_the_middle,
            _leaks_a_little_into_the_first,
            _shifts_down,
            _scales_tiny,
        ),
        x=tensor("N", "D", values=("normal", "zeros", "large")),
    ),
    dtypes=("float64",),
    # the numbers that replace tokens are the answer's choice, and many choose this seed
    allowed_if=lambda fn, x: not _is_drawn_with_seed_zero(x),
)


def _is_drawn_with_seed_zero(x):
    generator = torch.Generator().manual_seed(0)
    return torch.equal(x, torch.randn(x.shape, generator=generator, dtype=x.dtype))


def _is_evidence(answer, right, arguments):
    """Three matrices whose product with the mask is fine, infinite and not a number."""
    (n,) = arguments
    if not (isinstance(answer, (list, tuple)) and len(answer) == 3):
        return False
    if any(matrix.shape != (n, n) or not matrix.isfinite().all() for matrix in answer):
        return False
    matrices = [matrix.double() for matrix in answer]
    causal = torch.ones(n, n).tril().bool()
    factor = torch.where(causal, 1.0, -torch.inf).double()
    fine, one_way, other_way = (matrix * factor for matrix in matrices)
    meant = torch.softmax(matrices[0].masked_fill(~causal, -torch.inf), dim=-1)
    is_fine = torch.allclose(torch.softmax(fine, dim=-1), meant, atol=1e-5)
    is_one = bool((one_way == torch.inf).any()) and not one_way.isnan().any()
    is_other = bool(other_way.isnan().any()) and not (other_way == torch.inf).any()
    return is_fine and is_one and is_other


contract(
    "product_mask_evidence",
    calls(n=whole(2, 12)),
    right_if=_is_evidence,
    allowed_if=lambda n: n >= 2,
)
