"""The answer keys of a2, a3 and a4 agree with PyTorch's own attention, in float64 to 1e-10."""

from __future__ import annotations

import pytest
import torch
from answer_keys import answer_key, randn, same
from torch import nn
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(11)


def test_scaled_dot_product_attention() -> None:
    q, k, v = randn(2, 3, 5, 7), randn(2, 3, 6, 7), randn(2, 3, 6, 4)
    same(
        answer_key("a2_attention").scaled_dot_product_attention(q, k, v),
        F.scaled_dot_product_attention(q, k, v),
    )


def test_masked_attention() -> None:
    a3 = answer_key("a3_masking")
    q, k, v = randn(2, 5, 7), randn(2, 5, 7), randn(2, 5, 4)
    same(
        a3.masked_attention(q, k, v, a3.causal_mask(5)),
        F.scaled_dot_product_attention(q, k, v, is_causal=True),
    )
    # [B, 1, N]: two real keys in the first sentence, five in the second
    mask = a3.padding_mask(torch.tensor([2, 5]), 5)
    same(
        a3.masked_attention(q, k, v, mask),
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
    )


def test_multi_head_attention() -> None:
    d_model, heads = 6, 3
    w_q, w_k, w_v, w_o = (randn(d_model, d_model) for _ in range(4))
    theirs = nn.MultiheadAttention(
        d_model, heads, bias=False, batch_first=True, dtype=torch.float64
    )
    theirs.load_state_dict(
        {"in_proj_weight": torch.cat([w_q.T, w_k.T, w_v.T]), "out_proj.weight": w_o.T}
    )
    x, other = randn(2, 5, d_model), randn(2, 7, d_model)
    allowed = torch.ones(5, 5, dtype=torch.bool).tril()
    a4 = answer_key("a4_multi_head")
    same(
        a4.multi_head_attention(x, w_q, w_k, w_v, w_o, heads, mask=allowed),
        theirs(x, x, x, attn_mask=~allowed, need_weights=False)[0],
    )
    same(
        a4.multi_head_attention(x, w_q, w_k, w_v, w_o, heads, x_kv=other),
        theirs(x, other, other, need_weights=False)[0],
    )


def test_grouped_query_attention() -> None:
    q, k, v = randn(2, 6, 5, 7), randn(2, 3, 4, 7), randn(2, 3, 4, 2)
    wanted = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    same(answer_key("a4_multi_head").grouped_query_attention(q, k, v), wanted)
