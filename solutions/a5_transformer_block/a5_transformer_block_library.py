"""Functions that the course gives you: library.

Made by `autograder build`; the notebook a5_transformer_block.ipynb imports it.
"""

import math
import torch


def causal_mask(n_q, n_k=None):
    """bool [N_q, N_k]: query i may see key j when j <= i + N_k - N_q (assignment 3)."""
    n_k = n_q if n_k is None else n_k
    return torch.arange(n_k) <= torch.arange(n_q)[:, None] + (n_k - n_q)


def masked_softmax(scores, mask):
    """Softmax of scores [..., N_q, N_k] over the allowed keys; zeros where no key is
    allowed (assignment 3).
    """
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    empty = ~mask.any(dim=-1, keepdim=True)  # [..., N_q, 1]
    wide = wide.masked_fill(~mask, float("-inf")).masked_fill(empty, 0.0)
    return torch.softmax(wide, dim=-1).masked_fill(~mask, 0.0).to(scores.dtype)


def multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    """Self-attention with H heads: x [B, N, D] -> [B, N, D] (assignment 4).

    w_q, w_k, w_v are [D, H*d], w_o is [H*d, D]. The mask is None, [N, N], [B, N, N] or
    [B, 1, N], or has four axes. ValueError where the columns do not divide into the
    heads.
    """
    batch, length, _ = x.shape
    width = w_q.shape[1]
    if num_heads < 1 or width % num_heads != 0:
        raise ValueError(f"{width} columns do not divide into {num_heads} heads")
    q, k, v = (
        # [B, H, N, d]
        (x @ w).reshape(batch, length, num_heads, width // num_heads).transpose(1, 2)
        for w in (w_q, w_k, w_v)
    )
    # float16 has no score above 65504
    wide = torch.promote_types(x.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1)  # [B, H, N, N]
    scores = scores / math.sqrt(width // num_heads)
    if mask is None:
        mask = torch.ones(length, length, dtype=torch.bool)
    if mask.dim() == 3:
        mask = mask.unsqueeze(1)  # [B, 1, N, N]: the same for every head
    y = (masked_softmax(scores, mask) @ v.to(wide)).to(x.dtype)  # [B, H, N, d]
    return y.transpose(1, 2).reshape(batch, length, width) @ w_o  # [B, N, D]


def random_block(d_model, num_heads, d_head, d_ff, generator):
    """Weights of one block: random matrices of size 1/sqrt(in), norms that start at
    gamma = 1 and beta = 0.
    """

    def matrix(rows, columns):
        return torch.randn(rows, columns, generator=generator) / math.sqrt(rows)

    inner = num_heads * d_head
    return {
        "w_q": matrix(d_model, inner),
        "w_k": matrix(d_model, inner),
        "w_v": matrix(d_model, inner),
        "w_o": matrix(inner, d_model),
        "ln1_gamma": torch.ones(d_model),
        "ln1_beta": torch.zeros(d_model),
        "ln2_gamma": torch.ones(d_model),
        "ln2_beta": torch.zeros(d_model),
        "w1": matrix(d_model, d_ff),
        "b1": torch.zeros(d_ff),
        "w2": matrix(d_ff, d_model),
        "b2": torch.zeros(d_model),
    }
