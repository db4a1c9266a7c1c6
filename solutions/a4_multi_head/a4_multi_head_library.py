"""Functions that the course gives you: library.

Made by `autograder build`; the notebook a4_multi_head.ipynb imports it.
"""

import math
import torch


def causal_mask(n_q, n_k=None):
    """bool [N_q, N_k]: query i may see key j when j <= i + N_k - N_q."""
    n_k = n_q if n_k is None else n_k
    return torch.arange(n_k) <= torch.arange(n_q)[:, None] + (n_k - n_q)


def padding_mask(lengths, n):
    """bool [B, 1, N]: key j of sentence b is a real token when j < lengths[b]."""
    return torch.arange(n) < lengths[:, None, None]


def widen(x):
    """Half precision as float32; everything else as it is."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def masked_softmax(scores, mask):
    """Softmax of scores [..., N_q, N_k] over the allowed keys; a query with no allowed
    key gets a row of zeros.
    """
    wide = widen(scores)
    empty = ~mask.any(dim=-1, keepdim=True)  # [..., N_q, 1]
    wide = wide.masked_fill(~mask, float("-inf")).masked_fill(empty, 0.0)
    return torch.softmax(wide, dim=-1).masked_fill(~mask, 0.0).to(scores.dtype)


def masked_attention(q, k, v, mask=None):
    """softmax(q kᵀ / √d) v with q [..., N_q, d], k [..., N_k, d], v [..., N_k, d_v] ->
    [..., N_q, d_v].

    Half precision is computed in float32. ValueError where q and k differ in width, or
    k and v in length.
    """
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"queries have {q.shape[-1]} features and keys {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"there are {k.shape[-2]} keys and {v.shape[-2]} values")
    # [..., N_q, N_k]
    scores = widen(q) @ widen(k).transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
    return (masked_softmax(scores, mask) @ widen(v)).to(q.dtype)
