"""What the docstrings of assignment 7 allow.

Kernels run in the worker's interpreter alone, which is slow: their contracts have small sizes, and
definitions in torch in the place of the answer key.
"""

import torch

from autograder.suite.contracts import (
    FLOATS,
    HALF,
    calls,
    choice,
    computed,
    contract,
    maybe,
    tensor,
    whole,
)

BLOCK = whole(1, 9)
"""Elements of a tile: the last one is often smaller, and often one tile is all."""

contract(
    "online_softmax_stats",
    calls(x=tensor("...", "N", may_have=("-inf",)), block=BLOCK),
    dtypes=HALF,
)


def partial_sums(draw, play, name):
    """Stats of two sets of keys, each of which may be empty for some rows."""
    sets = []
    for number in range(2):
        scores = draw(tensor("...", "K", may_have=("-inf",)), f"scores {number}")
        values = draw(
            tensor("...", "K", "d_v", values=("normal", "whole")), f"values {number}"
        )
        if draw.happens(15):
            scores = torch.full_like(scores, -torch.inf)
        draw.forget("K")
        peak = scores.amax(dim=-1)
        powers = torch.exp(scores - peak.nan_to_num(neginf=0.0).unsqueeze(-1))
        mixed = (powers.unsqueeze(-1) * values).sum(dim=-2)
        sets.append((peak, powers.sum(dim=-1), mixed))
    play.call(name, *sets)


def _are_sums(a, b):
    """A set without keys is (-inf, 0, 0), and the others have sums above 0."""
    for m, total, o in (a, b):
        is_empty = m == -torch.inf
        if (
            not torch.equal(is_empty, total == 0)
            or bool((total < 0).any())
            or m.shape != total.shape
        ):
            return False
        if o.shape[:-1] != m.shape or bool(o[is_empty].any()):
            return False
    return True


contract("merge_stats", partial_sums, allowed_if=_are_sums)

contract(
    "tiled_attention",
    calls(
        q=tensor("...", "N_q", "d"),
        k=tensor("...", "N_k", "d"),
        v=tensor("...", "N_k", "d_v"),
        block_q=BLOCK,
        block_k=BLOCK,
        causal=maybe(choice(False, True)),
    ),
    dtypes=HALF,
)


def attention_and_its_gradient(draw, play, name):
    """The answer of the forward pass, and any gradient of it."""
    q = draw(tensor("...", "N_q", "d", values=TAME), "q")
    k = draw(tensor("...", "N_k", "d", values=TAME), "k")
    v = draw(tensor("...", "N_k", "d_v", values=TAME), "v")
    causal = draw.choose("causal", (False, True))
    scores = q.double() @ k.double().mT / q.shape[-1] ** 0.5
    if causal:
        sees = torch.ones(scores.shape[-2:]).bool().tril(k.shape[-2] - q.shape[-2])
        scores = scores.masked_fill(~sees, -torch.inf)
    lse = scores.logsumexp(dim=-1)
    o = torch.softmax(scores, dim=-1).nan_to_num(nan=0.0) @ v.double()
    wide = torch.promote_types(q.dtype, torch.float32)
    play.call(
        name,
        *(q, k, v, o.to(q.dtype), lse.to(wide)),
        draw(tensor("...", "N_q", "d_v", values=TAME), "do"),
        draw.whole(1, 9),
        draw.whole(1, 9),
        **({"causal": True} if causal else {}),
    )


TAME = ("normal", "whole", "equal rows", "small")


def _fits_the_forward_pass(q, k, v, o, lse, do, block_q, block_k, causal=False):
    """o and lse are what tiled_attention returns for q, k and v."""
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        return False
    scores = q.double() @ k.double().mT / q.shape[-1] ** 0.5
    if causal:
        sees = torch.ones(scores.shape[-2:]).bool().tril(k.shape[-2] - q.shape[-2])
        scores = scores.masked_fill(~sees, -torch.inf)
    right = torch.softmax(scores, dim=-1).nan_to_num(nan=0.0) @ v.double()
    if (
        o.shape != right.shape
        or lse.shape != right.shape[:-1]
        or do.shape != right.shape
    ):
        return False
    digits = 1e-2 if q.dtype == torch.float16 else 1e-4
    is_near = torch.allclose(o.double(), right, atol=digits, rtol=digits)
    return is_near and torch.allclose(
        lse.double(), scores.logsumexp(dim=-1), atol=digits, rtol=digits
    )


contract(
    "tiled_attention_backward",
    attention_and_its_gradient,
    dtypes=HALF,
    allowed_if=_fits_the_forward_pass,
)

contract(
    "hbm_traffic",
    calls(
        n=whole(1, 3000),
        d=whole(1, 256),
        block_q=whole(1, 200),
        block_k=whole(1, 200),
        bytes_per_element=choice(2, 4),
    ),
)

KERNEL_SIZES = {"M": (1, 9), "N": (1, 70)}
KERNEL_DTYPES = ("float32", "float16")


def _sum_of_both(x, b):
    if b.shape != x.shape[1:]:
        raise ValueError("b is not [N]")
    return x + b


def _softmax_in_float32(x):
    return torch.softmax(x.float(), dim=1).to(x.dtype)


def _attention_with_all_scores(q, k, v, causal=False):
    if q.shape[-1] != k.shape[-1] or k.shape != v.shape or q.shape[:2] != k.shape[:2]:
        raise ValueError("k or v does not fit q")
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).mT / q.shape[-1] ** 0.5
    if causal:
        sees = torch.ones(scores.shape[-2:]).bool().tril(k.shape[-2] - q.shape[-2])
        scores = scores.masked_fill(~sees, -torch.inf)
    o = torch.softmax(scores, dim=-1).nan_to_num(nan=0.0) @ v.to(wide)
    return o.to(q.dtype), scores.logsumexp(dim=-1).to(wide)


contract(
    "add_bias",
    calls(x=tensor("M", "N"), b=tensor("N")),
    definition=_sum_of_both,
    sizes=KERNEL_SIZES,
    dtypes=KERNEL_DTYPES,
)

contract(
    "softmax_rows",
    calls(
        x=tensor("M", "N", values=tuple(style for style in FLOATS if style != "large"))
    ),
    definition=_softmax_in_float32,
    sizes=KERNEL_SIZES,
    dtypes=KERNEL_DTYPES,
)

contract(
    "triton_attention",
    calls(
        q=tensor("B", "H", "N_q", "d", values=TAME),
        k=tensor("B", "H", "N_k", "d", values=TAME),
        v=tensor("B", "H", "N_k", "d", values=TAME),
        causal=maybe(choice(False, True)),
    ),
    definition=_attention_with_all_scores,
    sizes={"B": (1, 2), "H": (1, 2), "N_q": (1, 20), "N_k": (1, 40), "d": (1, 20)},
    dtypes=KERNEL_DTYPES,
)


def _at_least_once(draw):
    return draw.whole(1, draw.arguments["n"])


contract(
    "growth_of_costs",
    calls(
        n=whole(1, 3000),
        d=whole(1, 128),
        block_q=computed(_at_least_once),
        bytes_per_element=choice(2, 4),
    ),
)
