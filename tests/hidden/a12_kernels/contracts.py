"""What the docstrings of assignment 12 allow.

Kernels run in the worker alone, which is slow: their contracts have small sizes, and definitions in
torch in the place of the answer key.
"""

import torch

from autograder.suite.contracts import calls, choice, computed, contract, tensor, whole

DTYPES = ("float32", "float16")
TAME = ("normal", "whole", "equal rows", "small")


def _product_and_order(a, b, group):
    if a.shape[1] != b.shape[0] or group < 1:
        raise ValueError("a and b do not fit together, or the group is below 1")
    rows, columns = -(-a.shape[0] // 32), -(-b.shape[1] // 32)
    order, number = torch.zeros(rows, columns, dtype=torch.int32), 0
    for first in range(0, rows, group):
        for column in range(columns):
            for row in range(first, min(first + group, rows)):
                order[row, column] = number
                number += 1
    wide = torch.promote_types(a.dtype, torch.float32)
    return (a.to(wide) @ b.to(wide)).to(a.dtype), order


contract(
    "matmul",
    calls(
        a=tensor("M", "K", values=TAME),
        b=tensor("K", "N", values=TAME),
        group=whole(1, 4),
    ),
    definition=_product_and_order,
    sizes={"M": (1, 100), "K": (1, 40), "N": (1, 70)},
    dtypes=DTYPES,
)


def _some_order(draw):
    """The numbers of the programs in any order."""
    rows, columns = draw.whole(1, 5), draw.whole(1, 5)
    numbers = torch.randperm(
        rows * columns, generator=torch.Generator().manual_seed(rows)
    )
    return numbers.view(rows, columns).int()


contract(
    "tiles_asked_for",
    calls(order=computed(_some_order), depth=whole(1, 9), programs=whole(1, 30)),
)


def _attention(q, k, v):
    wide = torch.promote_types(q.dtype, torch.float32)
    n_q, n_k = q.shape[2], k.shape[2]
    scores = q.to(wide) @ k.to(wide).mT / q.shape[-1] ** 0.5
    sees = torch.ones(n_q, n_k).bool().tril(n_k - n_q)
    scores = scores.masked_fill(~sees, -torch.inf)
    o = torch.softmax(scores, dim=-1).nan_to_num(nan=0.0) @ v.to(wide)
    return o.to(q.dtype), scores.logsumexp(dim=-1).to(wide)


SIZES = {"B": (1, 2), "H": (1, 2), "N_q": (1, 40), "N_k": (1, 40), "d": (16, 16)}

contract(
    "causal_attention",
    calls(
        q=tensor("B", "H", "N_q", "d", values=TAME),
        k=tensor("B", "H", "N_k", "d", values=TAME),
        v=tensor("B", "H", "N_k", "d", values=TAME),
    ),
    definition=_attention,
    allowed_if=lambda q, k, v: all(t.is_contiguous() for t in (q, k, v)),
    sizes=SIZES,
    dtypes=DTYPES,
)


def _backward_inputs(draw, play, name):
    """The answer of the forward pass, and any gradient of it."""
    q = draw(tensor("B", "H", "N_q", "d", values=TAME), "q")
    k = draw(tensor("B", "H", "N_k", "d", values=TAME), "k")
    v = draw(tensor("B", "H", "N_k", "d", values=TAME), "v")
    o, lse = _attention(q, k, v)
    do = draw(tensor("B", "H", "N_q", "d", values=TAME), "do")
    play.call(name, q, k, v, o, lse, do)


def _gradients(q, k, v, o, lse, do):
    wide = torch.float64
    inputs = [t.to(wide).requires_grad_() for t in (q, k, v)]
    scores = inputs[0] @ inputs[1].mT / q.shape[-1] ** 0.5
    sees = torch.ones(scores.shape[-2:]).bool().tril(k.shape[2] - q.shape[2])
    hidden = ~sees.any(dim=-1, keepdim=True)
    # a row that sees nothing has equal weights for a moment, and then none
    scores = scores.masked_fill(~sees & ~hidden, -torch.inf)
    weights = torch.softmax(scores, dim=-1) * ~hidden
    gradients = torch.autograd.grad(weights @ inputs[2], inputs, do.to(wide))
    return tuple(gradient.to(q.dtype) for gradient in gradients)


contract(
    "causal_attention_backward",
    _backward_inputs,
    definition=_gradients,
    allowed_if=lambda *tensors: all(t.is_contiguous() for t in tensors),
    sizes=SIZES,
    dtypes=("float32",),
)


def _decoded(q, k, v, splits):
    if splits < 1:
        raise ValueError("no splits")
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = (k.to(wide) @ q.to(wide).unsqueeze(-1)).squeeze(-1) / q.shape[-1] ** 0.5
    o = (torch.softmax(scores, dim=-1).unsqueeze(-2) @ v.to(wide)).squeeze(-2)
    pieces = scores.split(-(-k.shape[2] // splits), dim=-1)
    counted = [piece.logsumexp(dim=-1) for piece in pieces]
    counted += [torch.full_like(counted[0], -torch.inf)] * (splits - len(pieces))
    return o.to(q.dtype), scores.logsumexp(dim=-1), torch.stack(counted, dim=-1)


contract(
    "split_decode",
    calls(
        q=tensor("B", "H", "d", values=TAME),
        k=tensor("B", "H", "N", "d", values=TAME),
        v=tensor("B", "H", "N", "d", values=TAME),
        splits=whole(1, 9),
    ),
    definition=_decoded,
    allowed_if=lambda q, k, v, splits: all(t.is_contiguous() for t in (q, k, v)),
    sizes={"B": (1, 2), "H": (1, 2), "N": (1, 70), "d": (16, 16)},
    dtypes=DTYPES,
)

contract(
    "limits",
    calls(
        flops=whole(1, 5000),
        elements=whole(1, 900),
        bytes_per_element=choice(1, 2, 4),
        peak=choice(100.0, 37.0, 1e15),
        bandwidth=choice(20.0, 11.0, 3e12),
    ),
)

contract(
    "busy_share",
    calls(
        batch=whole(1, 4),
        heads=whole(1, 20),
        n_q=whole(1, 300),
        block_q=choice(1, 16, 64, 128),
        splits=whole(1, 9),
        processors=choice(1, 8, 132),
    ),
)
