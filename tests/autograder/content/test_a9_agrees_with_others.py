"""The answer key of a9 agrees with independent code: with PyTorch, and with `transformers` where
that is installed.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from answer_keys import answer_key, same
from torch import Tensor, nn
from torch.nn import functional as F

SIZES = {
    "vocab_size": 67,
    "d_model": 24,
    "num_layers": 3,
    "num_heads": 4,
    "d_ff": 96,
    "context_length": 32,
}


@pytest.fixture(scope="module")
def key() -> SimpleNamespace:
    torch.manual_seed(9)
    return answer_key("a9_language_model")


def shaken(key: SimpleNamespace, config: SimpleNamespace) -> Any:
    """Random parameters in float64, none of them where it begins."""
    params = key.random_params(config)
    return key.with_tensors(
        params,
        [
            t.double() + 0.3 * torch.randn(t.shape).double()
            for t in key.list_tensors(params)
        ],
    )


def torch_layer(p: dict[str, Tensor]) -> nn.Module:
    """PyTorch's pre-norm layer with the same weights; its matrices are [out, in], ours [in,
    out].
    """
    d, f = p["w1"].shape
    layer = nn.TransformerEncoderLayer(
        d,
        SIZES["num_heads"],
        f,
        dropout=0.0,
        activation=lambda x: F.gelu(x, approximate="tanh"),
        batch_first=True,
        norm_first=True,
        dtype=torch.float64,
    )
    layer.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([p["w_q"].T, p["w_k"].T, p["w_v"].T]),
            "self_attn.in_proj_bias": torch.cat([p["b_q"], p["b_k"], p["b_v"]]),
            "self_attn.out_proj.weight": p["w_o"].T,
            "self_attn.out_proj.bias": p["b_o"],
            "linear1.weight": p["w1"].T,
            "linear1.bias": p["b1"],
            "linear2.weight": p["w2"].T,
            "linear2.bias": p["b2"],
            "norm1.weight": p["ln1_gamma"],
            "norm1.bias": p["ln1_beta"],
            "norm2.weight": p["ln2_gamma"],
            "norm2.bias": p["ln2_beta"],
        }
    )
    return layer.train()  # without dropout; the fast path of evaluation is another code


def test_the_model_is_a_stack_of_torchs_layers(key: SimpleNamespace) -> None:
    config = SimpleNamespace(**SIZES)
    params, ids = shaken(key, config), torch.randint(0, 67, (2, 11))
    x = F.embedding(ids, params["embed"]) + params["positions"][:11]
    future = nn.Transformer.generate_square_subsequent_mask(11, dtype=torch.float64)
    for block in params["blocks"]:
        x = torch_layer(block)(x, src_mask=future)
    expected = (
        F.layer_norm(x, (24,), params["lnf_gamma"], params["lnf_beta"])
        @ params["embed"].T
    )
    same(key.language_model(ids, params, config), expected)


def test_clipping_is_torchs(key: SimpleNamespace) -> None:
    tensors = [
        torch.randn(3, 4, requires_grad=True),
        torch.randn(5, requires_grad=True),
    ]
    for tensor in tensors:
        tensor.grad = 3 * torch.randn(tensor.shape)
    clipped, norm = key.clip_gradients([tensor.grad for tensor in tensors], 0.7)
    assert norm == pytest.approx(
        nn.utils.clip_grad_norm_(tensors, 0.7).item(), rel=1e-6
    )
    for mine, tensor in zip(clipped, tensors, strict=True):
        torch.testing.assert_close(mine, tensor.grad, rtol=1e-5, atol=1e-6)


def test_logits_are_those_of_gpt2_in_transformers(key: SimpleNamespace) -> None:
    transformers = pytest.importorskip("transformers")
    library = transformers.GPT2Config(
        vocab_size=67,
        n_positions=32,
        n_embd=24,
        n_layer=3,
        n_head=4,
        initializer_range=0.3,
        attn_implementation="eager",
    )
    model = transformers.GPT2LMHeadModel(library).eval()
    for name, tensor in model.named_parameters():  # no bias at 0, no scale at 1
        if tensor.dim() == 1:
            tensor.data += 0.3 * torch.randn(tensor.shape)
        assert tensor.std() > 0, name
    config, ids = SimpleNamespace(**SIZES), torch.randint(0, 67, (2, 32))
    with torch.no_grad():
        expected = model(ids).logits
    file = model.state_dict()
    bare = {
        name.removeprefix("transformer."): tensor
        for name, tensor in file.items()
        if name != "lm_head.weight"
    }
    for published in (file, bare):
        params = key.from_gpt2(published, config)
        torch.testing.assert_close(
            key.language_model(ids, params, config), expected, rtol=0, atol=1e-4
        )
        cache = key.empty_cache(params, config, 2)
        chunks = [
            key.language_model(chunk, params, config, cache)
            for chunk in ids.split((20, 1, 11), dim=1)
        ]
        torch.testing.assert_close(
            torch.cat(chunks, dim=1), expected, rtol=0, atol=1e-4
        )
