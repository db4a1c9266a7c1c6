"""The answer key of a5 agrees with independent code of PyTorch, in float64 to 1e-10."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from answer_keys import answer_key, randn, same
from torch import Tensor, nn
from torch.nn import functional as F

B, N, D, H, D_HEAD, D_FF = 2, 5, 6, 3, 2, 11


@pytest.fixture(scope="module")
def key() -> SimpleNamespace:
    return answer_key("a5_transformer_block")


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(5)


def block_params() -> dict[str, Tensor]:
    return {
        "w_q": randn(D, H * D_HEAD),
        "w_k": randn(D, H * D_HEAD),
        "w_v": randn(D, H * D_HEAD),
        "w_o": randn(H * D_HEAD, D),
        "ln1_gamma": randn(D),
        "ln1_beta": randn(D),
        "ln2_gamma": randn(D),
        "ln2_beta": randn(D),
        "w1": randn(D, D_FF),
        "b1": randn(D_FF),
        "w2": randn(D_FF, D),
        "b2": randn(D),
    }


def torch_layer(
    p: dict[str, Tensor], *, norm_first: bool
) -> nn.TransformerEncoderLayer:
    """PyTorch's layer with the same weights: its matrices are [out, in], ours [in, out]."""
    layer = nn.TransformerEncoderLayer(
        D,
        H,
        D_FF,
        dropout=0.0,
        activation="relu",
        batch_first=True,
        norm_first=norm_first,
        dtype=torch.float64,
    )
    state = {
        "self_attn.in_proj_weight": torch.cat([p["w_q"].T, p["w_k"].T, p["w_v"].T]),
        "self_attn.in_proj_bias": torch.zeros(3 * D, dtype=torch.float64),
        "self_attn.out_proj.weight": p["w_o"].T,
        "self_attn.out_proj.bias": torch.zeros(D, dtype=torch.float64),
        "linear1.weight": p["w1"].T,
        "linear1.bias": p["b1"],
        "linear2.weight": p["w2"].T,
        "linear2.bias": p["b2"],
        "norm1.weight": p["ln1_gamma"],
        "norm1.bias": p["ln1_beta"],
        "norm2.weight": p["ln2_gamma"],
        "norm2.bias": p["ln2_beta"],
    }
    layer.load_state_dict(state)
    return layer.train()


def test_layer_norm(key: SimpleNamespace) -> None:
    x, gamma, beta = randn(4, 3, D) * 10, randn(D), randn(D)
    same(key.layer_norm(x, gamma, beta), F.layer_norm(x, (D,), gamma, beta, eps=1e-5))
    same(
        key.layer_norm(x, gamma, beta, eps=0.1),
        F.layer_norm(x, (D,), gamma, beta, eps=0.1),
    )


def test_layer_norm_backward(key: SimpleNamespace) -> None:
    x, gamma, beta = (
        randn(4, 3, D).requires_grad_(),
        randn(D).requires_grad_(),
        randn(D).requires_grad_(),
    )
    dy = randn(4, 3, D)
    wanted = torch.autograd.grad(
        F.layer_norm(x, (D,), gamma, beta), (x, gamma, beta), dy
    )
    for mine, theirs in zip(
        key.layer_norm_backward(dy, x.detach(), gamma.detach()), wanted, strict=True
    ):
        same(mine, theirs)


def test_rms_norm(key: SimpleNamespace) -> None:
    x, gamma = randn(4, 3, D) * 10, randn(D)
    same(key.rms_norm(x, gamma), F.rms_norm(x, (D,), gamma, eps=1e-6))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(key: SimpleNamespace, training: bool) -> None:
    x, gamma, beta, mean, var = (
        randn(B, N, D) * 10,
        randn(D),
        randn(D),
        randn(D),
        randn(D) ** 2,
    )
    layer = nn.BatchNorm1d(D, eps=0.1, momentum=0.3, dtype=torch.float64).train(
        training
    )
    state = {"weight": gamma, "bias": beta, "running_mean": mean, "running_var": var}
    layer.load_state_dict({**state, "num_batches_tracked": torch.tensor(0)})
    y, new_mean, new_var = key.batch_norm(
        x, gamma, beta, mean, var, training, momentum=0.3, eps=0.1
    )
    same(y, layer(x.flatten(0, 1)).unflatten(0, (B, N)))
    assert layer.running_mean is not None
    assert layer.running_var is not None
    same(new_mean, layer.running_mean)
    same(new_var, layer.running_var)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_mlp(key: SimpleNamespace, activation: str) -> None:
    x, w1, b1, w2, b2 = (
        randn(N, D),
        randn(D, D_FF),
        randn(D_FF),
        randn(D_FF, D),
        randn(D),
    )
    wanted = F.linear(getattr(F, activation)(F.linear(x, w1.T, b1)), w2.T, b2)
    same(key.mlp(x, w1, b1, w2, b2, activation=activation), wanted)


def test_swiglu(key: SimpleNamespace) -> None:
    x, w1, w2, w3 = randn(N, D), randn(D, D_FF), randn(D, D_FF), randn(D_FF, D)
    same(key.swiglu(x, w1, w2, w3), (F.silu(x @ w1) * (x @ w2)) @ w3)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_blocks(key: SimpleNamespace, norm_first: bool, causal: bool) -> None:
    x, params = randn(B, N, D), block_params()
    block = key.pre_norm_block if norm_first else key.post_norm_block
    allowed = torch.ones(N, N, dtype=torch.bool).tril() if causal else None
    forbidden = None if allowed is None else ~allowed
    same(
        block(x, params, H, mask=allowed),
        torch_layer(params, norm_first=norm_first)(x, src_mask=forbidden),
    )
