"""Functions that the course gives you: library.

Made by `autograder build`; the notebook a11_serving.ipynb imports it.
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
    """Turn the feature pairs of x [B, H, N, d] by the angles of positions [N]."""
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    # [d/2]
    frequency = theta ** (
        -torch.arange(0, x.shape[-1], 2, dtype=wide.dtype) / x.shape[-1]
    )
    angle = positions.to(wide.dtype).unsqueeze(-1) * frequency  # [N, d/2]
    a, b = wide[..., 0::2], wide[..., 1::2]
    turned = torch.stack(
        [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1
    )
    return turned.flatten(-2).to(x.dtype)


def causal_mask(n_q, n_k):
    """bool [N_q, N_k]: query i may see key j when j <= i + N_k - N_q."""
    return torch.arange(n_k) <= torch.arange(n_q)[:, None] + (n_k - n_q)


def grouped_attention(q, k, v, mask):
    """q [B, H, N_q, d], k and v [B, H_kv, N_k, d], mask broadcastable to
    [B, 1, N_q, N_k] -> [B, H, N_q, d].
    """
    batch, num_heads, n_q, d = q.shape
    num_kv_heads, n_k = k.shape[1], k.shape[2]
    # [B, H_kv, H/H_kv*N_q, d]: a group's queries under each other
    rows = q.reshape(batch, num_kv_heads, -1, d)
    scores = (rows / math.sqrt(d)) @ k.transpose(-2, -1)  # [B, H_kv, H/H_kv*N_q, N_k]
    scores = scores.view(batch, num_heads, n_q, n_k)
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    weights = torch.softmax(wide.masked_fill(~mask, float("-inf")), dim=-1).to(q.dtype)
    return (weights.view(batch, num_kv_heads, -1, n_k) @ v).view(
        batch, num_heads, n_q, d
    )


def mlp(x, block):
    """D -> F -> D with ReLU."""
    return torch.relu(x @ block["w1"] + block["b1"]) @ block["w2"] + block["b2"]


def embed(ids, params):
    """Into the model: ids [B, N] -> x [B, N, D]. Positions come later, as rotations."""
    return params["embed"][ids]


def project(x, positions, block, config):
    """The first half of a block: x [B, N, D] and positions [N] -> q [B, H, N, d], k and
    v [B, H_kv, N, d], q and k turned.
    """
    h = layer_norm(x, block["ln1_gamma"], block["ln1_beta"])
    q = split_heads(h @ block["w_q"], config.num_heads)
    k = split_heads(h @ block["w_k"], config.num_kv_heads)
    v = split_heads(h @ block["w_v"], config.num_kv_heads)
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
    return layer_norm(x, params["lnf_gamma"], params["lnf_beta"]) @ params["unembed"]


def decoder_lm(ids, params, config):
    """The whole model on whole texts: ids [B, N] -> logits [B, N, V]."""
    positions = torch.arange(ids.shape[1])  # [N]
    x = embed(ids, params)  # [B, N, D]
    mask = causal_mask(ids.shape[1], ids.shape[1])
    for block in params["blocks"]:
        q, k, v = project(x, positions, block, config)
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
        "theta": 100.0,
    }
    return SimpleNamespace(**{**sizes, **changes})


def random_params(config, seed=7, dtype=torch.float64):
    """Random parameters, large enough for texts that do not repeat themselves."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape, scale=1.0):
        numbers = torch.randn(*shape, generator=generator, dtype=torch.float64)
        return (scale * numbers).to(dtype)

    def around_one(n):
        return 1 + draw(n, scale=0.3)

    d, f = config.d_model, config.d_ff
    wide, narrow = config.num_heads * config.d_head, config.num_kv_heads * config.d_head
    params = {"embed": draw(config.vocab_size, d), "blocks": []}
    for _ in range(config.num_layers):
        block = {
            "w_q": draw(d, wide, scale=2.5 * d**-0.5),
            "w_k": draw(d, narrow, scale=2.5 * d**-0.5),
            "w_v": draw(d, narrow, scale=3 * d**-0.5),
            "w_o": draw(wide, d, scale=3 * wide**-0.5),
        }
        block |= {"ln1_gamma": around_one(d), "ln1_beta": draw(d, scale=0.3)}
        block |= {"ln2_gamma": around_one(d), "ln2_beta": draw(d, scale=0.3)}
        block |= {"w1": draw(d, f, scale=1.5 * d**-0.5), "b1": draw(f, scale=0.3)}
        block |= {"w2": draw(f, d, scale=1.5 * f**-0.5), "b2": draw(d, scale=0.3)}
        params["blocks"].append(block)
    params |= {"lnf_gamma": around_one(d), "lnf_beta": draw(d, scale=0.1)}
    return params | {"unembed": draw(d, config.vocab_size)}


def generate_alone(params, prompt, max_new, config, eos_id=None):
    """Greedy generation of one text, a list of ids, that runs the whole model for each
    token. Returns the new tokens.
    """
    text = list(prompt)
    for _ in range(max_new):
        logits = decoder_lm(torch.tensor([text]), params, config)
        text.append(int(logits[0, -1].argmax()))
        if text[-1] == eos_id:
            break
    return text[len(prompt) :]


def kv_bytes_a_token(config, bytes_per_element):
    """Bytes of one token's keys and values, in all layers (assignment 8)."""
    numbers = 2 * config.num_layers * config.num_kv_heads * config.d_head
    return numbers * bytes_per_element


def feed(cache, name, chunks):
    """One step of a caller for one text: a chunk (k, v), each [H_kv, c, d], for every
    layer, then one advance.
    """
    for layer, (k, v) in enumerate(chunks):
        cache.append(name, layer, k, v)
    cache.advance(name, chunks[0][0].shape[1])
