"""Functions that the course gives you: library.

Made by `autograder build`; the notebook a6_whole_models.ipynb imports it.
"""

import math
from dataclasses import dataclass
import torch


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and switches of a model."""

    vocab_size: int  # V
    d_model: int  # D
    num_layers: int  # blocks of the decoder (or of the only stack there is)
    num_heads: int  # H
    d_head: int  # d
    d_ff: int  # F
    context_length: int  # the longest sequence
    num_encoder_layers: int = 0  # 0: there is no encoder, and no cross-attention
    tied: bool = True  # the unembedding is the embedding, transposed
    # every matrix of a block has a bias (only count_parameters asks)
    biases: bool = True
    norms: bool = True  # norms have gamma and beta, and count
    # one vector a position; False: sinusoidal, nothing to learn
    learned_positions: bool = True
    final_norm: bool = True  # a norm after the last block
    patch: int = 0  # P, for images


def causal_mask(n_q, n_k=None):
    """bool [N_q, N_k]: query i may see key j when j <= i + N_k - N_q (assignment 3)."""
    n_k = n_q if n_k is None else n_k
    return torch.arange(n_k) <= torch.arange(n_q)[:, None] + (n_k - n_q)


def sinusoidal_positions(n, d):
    """[N, D] in the default dtype: sines in the even columns, cosines in the odd ones
    (assignment 3).
    """
    # [N, ceil(D/2)]
    angles = torch.arange(n).double()[:, None] * 10000.0 ** (
        -torch.arange(0, d, 2).double() / d
    )
    table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d]
    return table.to(torch.get_default_dtype())


def masked_softmax(scores, mask):
    """Softmax of scores [..., N_q, N_k] over the allowed keys; a query with no key gets
    zeros (assignment 3).
    """
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    empty = ~mask.any(dim=-1, keepdim=True)  # [..., N_q, 1]
    wide = wide.masked_fill(~mask, float("-inf")).masked_fill(empty, 0.0)
    return torch.softmax(wide, dim=-1).masked_fill(~mask, 0.0).to(scores.dtype)


def multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    """Attention with H heads: x [B, N_q, D] asks, x_kv [B, N_k, D] (x itself where
    None) is read (assignment 4).

    w_q, w_k, w_v are [D, H*d], w_o is [H*d, D]. A mask has the axes [N_q, N_k], or
    [B, N_q, N_k] (also [B, 1, N_k]), or four, and is then used as it is. Returns
    [B, N_q, D].
    """
    source = x if x_kv is None else x_kv
    width = w_q.shape[1]
    if num_heads < 1 or width % num_heads != 0:
        raise ValueError(f"{width} columns do not divide into {num_heads} heads")

    def split(y):  # [B, N, H*d] -> [B, H, N, d]
        return y.reshape(y.shape[0], y.shape[1], num_heads, -1).transpose(1, 2)

    q, k, v = split(x @ w_q), split(source @ w_k), split(source @ w_v)
    # float16 has no score above 65504
    wide = torch.promote_types(x.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1)  # [B, H, N_q, N_k]
    scores = scores / math.sqrt(q.shape[-1])
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
    if mask.dim() == 3:
        mask = mask.unsqueeze(1)  # [B, 1, N_q, N_k]: the same for every head
    y = (masked_softmax(scores, mask) @ v.to(wide)).to(x.dtype)  # [B, H, N_q, d]
    return y.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1) @ w_o  # [B, N_q, D]


def layer_norm(x, gamma, beta, eps=1e-5):
    """Each token to mean 0 and variance 1 over its features, then times gamma plus beta
    (assignment 5).
    """
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    centred = wide - wide.mean(dim=-1, keepdim=True)
    variance = centred.pow(2).mean(dim=-1, keepdim=True)
    return (centred / torch.sqrt(variance + eps) * gamma + beta).to(x.dtype)


def mlp(x, w1, b1, w2, b2):
    """Two layers with a ReLU between, on each token alone (assignment 5)."""
    return torch.relu(x @ w1 + b1) @ w2 + b2


def self_attention_of(x, block, num_heads, mask=None):
    """Multi-head self-attention with a block's own w_q, w_k, w_v, w_o."""
    return multi_head_attention(
        x, block["w_q"], block["w_k"], block["w_v"], block["w_o"], num_heads, mask
    )


def mlp_of(x, block):
    """The MLP with a block's own w1, b1, w2, b2."""
    return mlp(x, block["w1"], block["b1"], block["w2"], block["b2"])


def pre_norm_block(x, block, num_heads, mask=None):
    """x [B, N, D] -> [B, N, D]: norm 1, attention, add; norm 2, MLP, add (assignment
    5).
    """
    x = x + self_attention_of(
        layer_norm(x, block["ln1_gamma"], block["ln1_beta"]), block, num_heads, mask
    )
    return x + mlp_of(layer_norm(x, block["ln2_gamma"], block["ln2_beta"]), block)


def post_norm_block(x, block, num_heads, mask=None):
    """x [B, N, D] -> [B, N, D]: attention, add, norm 1; MLP, add, norm 2 (assignment
    5).
    """
    x = layer_norm(
        x + self_attention_of(x, block, num_heads, mask),
        block["ln1_gamma"],
        block["ln1_beta"],
    )
    return layer_norm(x + mlp_of(x, block), block["ln2_gamma"], block["ln2_beta"])


def check_ids(ids, size):
    """ValueError where an id is outside 0 … size - 1."""
    outside = (ids < 0) | (ids >= size)
    if outside.any():
        raise ValueError(f"id {ids[outside][0].item()} is outside a table of {size}")


def list_tensors(params):
    """All tensors of nested dicts and lists, in a fixed order."""
    if isinstance(params, torch.Tensor):
        return [params]
    children = params.values() if isinstance(params, dict) else params
    return [tensor for child in children for tensor in list_tensors(child)]


def with_tensors(params, tensors):
    """The same nesting as params, with these tensors (in the order of list_tensors) in
    place of its own.
    """
    left = iter(tensors)

    def rebuild(node):
        if isinstance(node, torch.Tensor):
            return next(left)
        if isinstance(node, dict):
            return {name: rebuild(child) for name, child in node.items()}
        return [rebuild(child) for child in node]

    return rebuild(params)


def random_block(config, generator, cross=False):
    """Weights of one block; with cross, a decoder block that also has c_q, c_k, c_v,
    c_o and a third norm.
    """
    d, inner, f = config.d_model, config.num_heads * config.d_head, config.d_ff
    shapes = {
        "w_q": (d, inner),
        "w_k": (d, inner),
        "w_v": (d, inner),
        "w_o": (inner, d),
        "w1": (d, f),
        "w2": (f, d),
    }
    if cross:
        shapes |= {
            "c_q": (d, inner),
            "c_k": (d, inner),
            "c_v": (d, inner),
            "c_o": (inner, d),
        }
    block = {
        name: torch.randn(s, generator=generator) / math.sqrt(s[0])
        for name, s in shapes.items()
    }
    for norm in ("ln1", "ln2", "ln3") if cross else ("ln1", "ln2"):
        block |= {f"{norm}_gamma": torch.ones(d), f"{norm}_beta": torch.zeros(d)}
    return block | {"b1": torch.zeros(f), "b2": torch.zeros(d)}


def random_lm(config, seed=0):
    """Parameters of a decoder language model, as decoder_lm wants them."""
    g = torch.Generator().manual_seed(seed)
    d = config.d_model
    params = {
        # [V, D]
        "embed": torch.randn(config.vocab_size, d, generator=g) / math.sqrt(d),
        "positions": torch.randn(config.context_length, d, generator=g) / math.sqrt(d),
        "blocks": [random_block(config, g) for _ in range(config.num_layers)],
        "lnf_gamma": torch.ones(d),
        "lnf_beta": torch.zeros(d),
    }
    if not config.tied:
        # [D, V]
        params["unembed"] = torch.randn(d, config.vocab_size, generator=g) / math.sqrt(
            d
        )
    return params


def random_encoder_decoder(config, source_vocab_size, seed=0):
    """Parameters of an encoder–decoder, as encoder_decoder wants them."""
    g = torch.Generator().manual_seed(seed)
    d = config.d_model
    return {
        "src_embed": torch.randn(source_vocab_size, d, generator=g),  # [V_s, D]
        "tgt_embed": torch.randn(config.vocab_size, d, generator=g),  # [V, D]
        "encoder": [random_block(config, g) for _ in range(config.num_encoder_layers)],
        "decoder": [
            random_block(config, g, cross=True) for _ in range(config.num_layers)
        ],
        # [D, V]
        "unembed": torch.randn(d, config.vocab_size, generator=g) / math.sqrt(d),
    }


def random_vit(config, channels, num_patches, num_classes, seed=0):
    """Parameters of a vision transformer, as vit_logits wants them."""
    g = torch.Generator().manual_seed(seed)
    d, pixels = config.d_model, channels * config.patch**2
    return {
        # [C*P*P, D]
        "w_patch": torch.randn(pixels, d, generator=g) / math.sqrt(pixels),
        "b_patch": torch.zeros(d),
        "positions": torch.randn(num_patches, d, generator=g) / math.sqrt(d),  # [N, D]
        "blocks": [random_block(config, g) for _ in range(config.num_layers)],
        "lnf_gamma": torch.ones(d),
        "lnf_beta": torch.zeros(d),
        "w_head": torch.zeros(d, num_classes),
        "b_head": torch.zeros(num_classes),
    }
