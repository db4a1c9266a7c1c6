"""Functions that the course gives you: library.

Made by `autograder build`; the notebook a8_kv_cache.ipynb imports it.
"""

import math
from types import SimpleNamespace
import torch


def layer_norm(x, gamma, beta, eps=1e-5):
    """Normalize each token of x [..., D], then scale and shift; half precision in
    float32.
    """
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    centred = wide - wide.mean(dim=-1, keepdim=True)
    return (
        centred / torch.sqrt(centred.pow(2).mean(dim=-1, keepdim=True) + eps) * gamma
        + beta
    ).to(x.dtype)


def split_heads(x, num_heads):
    """[B, N, H*d] -> [B, H, N, d]."""
    return x.unflatten(2, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    """[B, H, N, d] -> [B, N, H*d]."""
    return x.transpose(1, 2).flatten(2)


def rotary_positions(x, positions, theta):
    """Turn the feature pairs of x [B, H, N, d] by the angles of positions, [N] or
    [B, N].
    """
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    # [d/2]
    frequency = theta ** (
        -torch.arange(0, x.shape[-1], 2, dtype=wide.dtype) / x.shape[-1]
    )
    # [N, d/2] or [B, N, d/2]
    angle = positions.to(wide.dtype).unsqueeze(-1) * frequency
    angle = angle.unsqueeze(-3)  # the same for every head
    a, b = wide[..., 0::2], wide[..., 1::2]
    turned = torch.stack(
        [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1
    )
    return turned.flatten(-2).to(x.dtype)


def causal_mask(n_q, n_k=None, window=None):
    """bool [N_q, N_k]: query i may see key j when j <= i + N_k - N_q; with a window
    only the last `window` of those.
    """
    n_k = n_q if n_k is None else n_k
    # [N_q, 1]: the key that belongs to query i
    own = torch.arange(n_q)[:, None] + (n_k - n_q)
    keys = torch.arange(n_k)
    return (keys <= own) if window is None else (keys <= own) & (keys > own - window)


def grouped_attention(q, k, v, mask):
    """q [B, H, N_q, d], k and v [B, H_kv, N_k, d], mask broadcastable to
    [B, 1, N_q, N_k] -> [B, H, N_q, d].

    Computes in the dtype of q. A query with no key allowed gives zeros.
    """
    batch, num_heads, n_q, d = q.shape
    num_kv_heads, n_k = k.shape[1], k.shape[2]
    k, v = k.to(q.dtype), v.to(q.dtype)  # copies nothing where the dtypes agree
    # [B, H_kv, H/H_kv*N_q, d]: a group's queries under each other
    rows = q.reshape(batch, num_kv_heads, -1, d)
    scores = (rows / math.sqrt(d)) @ k.transpose(-2, -1)  # [B, H_kv, H/H_kv*N_q, N_k]
    scores = scores.view(batch, num_heads, n_q, n_k)
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    empty = ~mask.any(dim=-1, keepdim=True)
    wide = wide.masked_fill(~mask, float("-inf")).masked_fill(empty, 0.0)
    weights = torch.softmax(wide, dim=-1).masked_fill(empty, 0.0).to(q.dtype)
    return (weights.view(batch, num_kv_heads, -1, n_k) @ v).view(
        batch, num_heads, n_q, d
    )


def mlp(x, block):
    """D -> F -> D with ReLU."""
    return torch.relu(x @ block["w1"] + block["b1"]) @ block["w2"] + block["b2"]


def unembedding(params):
    """[D, V]: a matrix of its own, or the embedding's transpose."""
    return params["unembed"] if "unembed" in params else params["embed"].T


def embed(ids, positions, params):
    """Into the model: ids and their positions, [B, N] or [N] -> x [B, N, D]. Learned
    positions are added here.
    """
    x = params["embed"][ids]
    return x + params["positions"][positions] if "positions" in params else x


def project(x, positions, block, params, config):
    """The first half of a block: x [B, N, D] -> q [B, H, N, d], k and v
    [B, H_kv, N, d], q and k turned if rotary.
    """
    h = layer_norm(x, block["ln1_gamma"], block["ln1_beta"])
    q = split_heads(h @ block["w_q"], config.num_heads)
    k = split_heads(h @ block["w_k"], config.num_kv_heads)
    v = split_heads(h @ block["w_v"], config.num_kv_heads)
    if "positions" not in params:
        q, k = (rotary_positions(t, positions, config.theta) for t in (q, k))
    return q, k, v


def finish_block(x, mixed, block):
    """The second half: what attention mixed, [B, H, N, d], joins the stream x
    [B, N, D], then the MLP.
    """
    x = x + merge_heads(mixed) @ block["w_o"]
    return x + mlp(layer_norm(x, block["ln2_gamma"], block["ln2_beta"]), block)


def to_logits(x, params):
    """Out of the model: x [B, N, D] -> logits [B, N, V], through the final norm."""
    return layer_norm(x, params["lnf_gamma"], params["lnf_beta"]) @ unembedding(params)


def decoder_lm(ids, params, config, window=None):
    """The whole model on whole sequences: ids [B, N] -> logits [B, N, V]. It remembers
    nothing.
    """
    positions = torch.arange(ids.shape[1])  # [N]
    x = embed(ids, positions, params)  # [B, N, D]
    mask = causal_mask(ids.shape[1], window=window)  # [N, N]
    for block in params["blocks"]:
        q, k, v = project(x, positions, block, params, config)
        x = finish_block(x, grouped_attention(q, k, v, mask), block)
    return to_logits(x, params)


def make_config(**changes):
    """A small model; any size can be changed."""
    sizes = {
        "vocab_size": 13,
        "d_model": 10,
        "num_layers": 2,
        "num_heads": 6,
        "num_kv_heads": 2,
        "d_head": 4,
        "d_ff": 14,
    }
    return SimpleNamespace(**{**sizes, "context_length": 24, "theta": 100.0, **changes})


def random_params(config, seed=7, learned=False, tied=False, dtype=torch.float64):
    """Random parameters: rotary unless `learned`; an unembedding of its own unless
    `tied`.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape, scale=1.0):
        return (
            scale * torch.randn(*shape, generator=generator, dtype=torch.float64)
        ).to(dtype)

    def around_one(n):
        return 1 + draw(n, scale=0.3)

    d, f = config.d_model, config.d_ff
    wide, narrow = config.num_heads * config.d_head, config.num_kv_heads * config.d_head
    params = {"embed": draw(config.vocab_size, d), "blocks": []}
    if learned:
        params["positions"] = draw(config.context_length, d)
    for _ in range(config.num_layers):
        block = {
            "w_q": draw(d, wide, scale=2.5 * d**-0.5),
            "w_k": draw(d, narrow, scale=2.5 * d**-0.5),
        }
        block |= {
            "w_v": draw(d, narrow, scale=3 * d**-0.5),
            "w_o": draw(wide, d, scale=3 * wide**-0.5),
        }
        block |= {"ln1_gamma": around_one(d), "ln1_beta": draw(d, scale=0.3)}
        block |= {"ln2_gamma": around_one(d), "ln2_beta": draw(d, scale=0.3)}
        block |= {"w1": draw(d, f, scale=1.5 * d**-0.5), "b1": draw(f, scale=0.3)}
        block |= {"w2": draw(f, d, scale=1.5 * f**-0.5), "b2": draw(d, scale=0.3)}
        params["blocks"].append(block)
    params |= {"lnf_gamma": around_one(d), "lnf_beta": draw(d, scale=0.1)}
    if not tied:
        params["unembed"] = draw(d, config.vocab_size)
    return params


def generate_uncached(params, prompt, num_new, config):
    """Greedy generation that runs the whole model on everything so far, for every
    token.
    """
    ids = prompt
    for _ in range(num_new):
        ids = torch.cat(
            [ids, decoder_lm(ids, params, config)[:, -1].argmax(dim=-1, keepdim=True)],
            dim=1,
        )
    return ids


def feed(cache, chunks):
    """One step of a caller: a chunk (k, v) for every layer, then one advance. Returns
    what each append returned.
    """
    returned = [cache.append(layer, *chunk) for layer, chunk in enumerate(chunks)]
    cache.advance(chunks[0][0].shape[2])
    return returned
