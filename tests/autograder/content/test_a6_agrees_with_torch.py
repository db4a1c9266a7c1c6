"""The answer key of a6 agrees with independent code of PyTorch, in float64 to 1e-10."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from answer_keys import answer_key, same
from torch import Tensor, nn
from torch.nn import functional as F

B, N, D, H, D_HEAD, D_FF, V, V_SRC = 3, 5, 6, 3, 2, 11, 13, 9


@pytest.fixture(scope="module")
def key() -> SimpleNamespace:
    return answer_key("a6_whole_models")


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    """The sinusoidal positions come in the default dtype; here that has to be as wide as everything
    else.
    """
    torch.manual_seed(6)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def config(**changes: Any) -> SimpleNamespace:
    sizes = {
        "vocab_size": V,
        "d_model": D,
        "num_layers": 2,
        "num_heads": H,
        "d_head": D_HEAD,
        "d_ff": D_FF,
        "context_length": 9,
        "num_encoder_layers": 0,
        "tied": False,
        "biases": True,
        "norms": True,
        "learned_positions": True,
        "final_norm": True,
        "patch": 2,
    }
    return SimpleNamespace(**{**sizes, **changes})


def block(*, cross: bool = False) -> dict[str, Tensor]:
    p = {name: torch.randn(D, H * D_HEAD) for name in ("w_q", "w_k", "w_v")}
    p |= {
        "w_o": torch.randn(H * D_HEAD, D),
        "w1": torch.randn(D, D_FF),
        "b1": torch.randn(D_FF),
    }
    p |= {"w2": torch.randn(D_FF, D), "b2": torch.randn(D)}
    if cross:
        p |= {name: torch.randn(D, H * D_HEAD) for name in ("c_q", "c_k", "c_v")} | {
            "c_o": torch.randn(H * D_HEAD, D)
        }
    for norm in ("ln1", "ln2", "ln3") if cross else ("ln1", "ln2"):
        p |= {f"{norm}_gamma": torch.randn(D), f"{norm}_beta": torch.randn(D)}
    return p


def attention_state(
    name: str, q: Tensor, k: Tensor, v: Tensor, o: Tensor
) -> dict[str, Tensor]:
    """PyTorch's matrices are [out, in], ours [in, out]."""
    return {
        f"{name}.in_proj_weight": torch.cat([q.T, k.T, v.T]),
        f"{name}.in_proj_bias": torch.zeros(3 * D),
        f"{name}.out_proj.weight": o.T,
        f"{name}.out_proj.bias": torch.zeros(D),
    }


def torch_layer(p: dict[str, Tensor], *, norm_first: bool) -> nn.Module:
    """PyTorch's encoder layer, or its decoder layer where the block has cross-attention, with the
    same weights.
    """
    cross = "c_q" in p
    kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
    layer = kind(
        D,
        H,
        D_FF,
        dropout=0.0,
        activation="relu",
        batch_first=True,
        norm_first=norm_first,
    )
    state = attention_state("self_attn", p["w_q"], p["w_k"], p["w_v"], p["w_o"])
    if cross:
        state |= attention_state(
            "multihead_attn", p["c_q"], p["c_k"], p["c_v"], p["c_o"]
        )
    state |= {
        "linear1.weight": p["w1"].T,
        "linear1.bias": p["b1"],
        "linear2.weight": p["w2"].T,
        "linear2.bias": p["b2"],
    }
    for number in (1, 2, 3) if cross else (1, 2):
        state |= {
            f"norm{number}.weight": p[f"ln{number}_gamma"],
            f"norm{number}.bias": p[f"ln{number}_beta"],
        }
    layer.load_state_dict(state)
    return layer.train()  # without dropout; the fast path of evaluation is another code


def final_norm(x: Tensor, p: dict[str, Any]) -> Tensor:
    return F.layer_norm(x, (D,), p["lnf_gamma"], p["lnf_beta"], eps=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_decoder_lm_is_a_stack_of_pre_norm_layers(
    key: SimpleNamespace, tied: bool
) -> None:
    p: dict[str, Any] = {
        "embed": torch.randn(V, D),
        "positions": torch.randn(9, D),
        "blocks": [block(), block()],
    }
    p |= {"lnf_gamma": torch.randn(D), "lnf_beta": torch.randn(D)}
    if not tied:
        p["unembed"] = torch.randn(D, V)
    ids = torch.randint(0, V, (B, N))
    x = F.embedding(ids, p["embed"]) + p["positions"][torch.arange(N)]
    forbidden = nn.Transformer.generate_square_subsequent_mask(N)
    for weights in p["blocks"]:
        x = torch_layer(weights, norm_first=True)(x, src_mask=forbidden)
    expected = final_norm(x, p) @ (p["embed"].T if tied else p["unembed"])
    same(key.decoder_lm(ids, p, config(tied=tied)), expected)


def test_encoder_decoder_is_torchs_post_norm_layers(key: SimpleNamespace) -> None:
    p: dict[str, Any] = {
        "src_embed": torch.randn(V_SRC, D),
        "tgt_embed": torch.randn(V, D),
    }
    p |= {
        "encoder": [block(), block()],
        "decoder": [block(cross=True) for _ in range(3)],
        "unembed": torch.randn(D, V),
    }
    src, tgt = torch.randint(0, V_SRC, (B, 7)), torch.randint(0, V, (B, N))
    real = torch.arange(7) < torch.tensor([7, 2, 4])[:, None]

    def sinusoids(n: int) -> Tensor:
        rows = [
            [float(i) / 10000 ** ((j - j % 2) / D) for j in range(D)] for i in range(n)
        ]
        angles = torch.tensor(rows)
        return torch.where(torch.arange(D) % 2 == 0, angles.sin(), angles.cos())

    memory = p["src_embed"][src] + sinusoids(7)
    for weights in p["encoder"]:
        memory = torch_layer(weights, norm_first=False)(
            memory, src_key_padding_mask=~real
        )
    y = p["tgt_embed"][tgt] + sinusoids(N)
    forbidden = torch.ones(N, N, dtype=torch.bool).triu(1)
    for weights in p["decoder"]:
        layer = torch_layer(weights, norm_first=False)
        y = layer(y, memory, tgt_mask=forbidden, memory_key_padding_mask=~real)
    settings = config(num_layers=3, num_encoder_layers=2)
    for mask in (real, real.unsqueeze(1)):
        same(key.encoder_decoder(src, tgt, mask, p, settings), y @ p["unembed"])


def test_lm_loss_is_the_cross_entropy_of_shifted_targets(key: SimpleNamespace) -> None:
    logits, ids = 3 * torch.randn(B, N, V), torch.randint(0, V, (B, N))
    same(
        key.lm_loss(logits, ids),
        F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()),
    )
    ids[1, 3:], ids[2, 1:] = -7, -7
    expected = F.cross_entropy(
        logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=-7
    )
    same(key.lm_loss(logits, ids, ignore_index=-7), expected)


def test_train_step_is_torchs_gradient_descent(key: SimpleNamespace) -> None:
    settings = config(tied=True)
    params = key.random_lm(settings)
    ids = torch.randint(0, V, (B, N))
    leaves = [t.clone().requires_grad_() for t in key.list_tensors(params)]
    logits = key.decoder_lm(ids, key.with_tensors(params, leaves), settings)
    expected = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    expected.backward()
    torch.optim.SGD(leaves, lr=0.3).step()
    loss, stepped = key.train_step(params, ids, settings, 0.3)
    assert loss == pytest.approx(expected.item(), abs=1e-10)
    for mine, theirs in zip(key.list_tensors(stepped), leaves, strict=True):
        same(mine, theirs.detach())


def test_patches_are_a_convolution_and_unfold(key: SimpleNamespace) -> None:
    images, w = torch.randn(B, 3, 6, 9), torch.randn(27, D)
    patches = key.patchify(images, 3)
    same(patches, F.unfold(images, 3, stride=3).transpose(1, 2))
    convolved = F.conv2d(images, key.patch_conv_weight(w, 3, 3), stride=3)
    same(convolved.flatten(2).transpose(1, 2), patches @ w)


def test_vit_logits_are_a_convolution_and_pre_norm_layers(key: SimpleNamespace) -> None:
    p: dict[str, Any] = {
        "w_patch": torch.randn(12, D),
        "b_patch": torch.randn(D),
        "positions": torch.randn(6, D),
    }
    p |= {
        "blocks": [block(), block()],
        "lnf_gamma": torch.randn(D),
        "lnf_beta": torch.randn(D),
    }
    p |= {"w_head": torch.randn(D, 4), "b_head": torch.randn(4)}
    images = torch.randn(B, 3, 4, 6)
    kernel = p["w_patch"].T.reshape(D, 3, 2, 2)
    x = (
        F.conv2d(images, kernel, p["b_patch"], stride=2).flatten(2).transpose(1, 2)
        + p["positions"]
    )
    for weights in p["blocks"]:
        x = torch_layer(weights, norm_first=True)(x)
    same(
        key.vit_logits(images, p, config(patch=2)),
        F.linear(final_norm(x, p).mean(dim=1), p["w_head"].T, p["b_head"]),
    )


def test_counts_are_those_of_torchs_modules(key: SimpleNamespace) -> None:
    """H·d = D, as PyTorch's layers have it; an encoder–decoder, and a decoder-only stack of encoder
    layers.
    """

    def numbers(module: nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    encoder = [
        nn.TransformerEncoderLayer(D, H, D_FF, batch_first=True) for _ in range(2)
    ]
    decoder = [
        nn.TransformerDecoderLayer(D, H, D_FF, batch_first=True) for _ in range(3)
    ]
    counts = key.count_parameters(config(num_encoder_layers=2, num_layers=3))
    inside = sum(
        counts[name] for name in ("attention", "cross_attention", "mlp", "norms")
    )
    assert inside == numbers(nn.ModuleList([*encoder, *decoder, nn.LayerNorm(D)]))
    ends = nn.ModuleList(
        [
            nn.Embedding(V, D),
            nn.Embedding(9, D),
            nn.LayerNorm(D),
            nn.Linear(D, V, bias=False),
        ]
    )
    assert key.count_parameters(config())["total"] == numbers(
        nn.ModuleList(encoder)
    ) + numbers(ends)


def test_filtered_probabilities_without_filters_are_a_softmax(
    key: SimpleNamespace,
) -> None:
    logits = torch.randn(B, V)
    same(key.filtered_probabilities(logits, 0.7), F.softmax(logits / 0.7, dim=-1))
    kept = logits.topk(4, dim=-1)
    expected = torch.zeros(B, V).scatter(
        1, kept.indices, F.softmax(kept.values, dim=-1)
    )
    same(key.filtered_probabilities(logits, 1.0, top_k=4), expected)
