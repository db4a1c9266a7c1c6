"""Functions that the course gives you: library.

Made by `autograder build`; the notebook a9_language_model.ipynb imports it.
"""

import math
import re
from dataclasses import dataclass
import torch


@dataclass(frozen=True)
class LMConfig:
    """Sizes of a language model with GPT-2's architecture. A head is D / H wide."""

    vocab_size: int  # V
    d_model: int  # D
    num_layers: int
    num_heads: int  # H
    d_ff: int  # F
    context_length: int  # the longest sequence


WORD = re.compile(rb"'(?:ll|ve|re|[sdmt])| ?[A-Za-z\x80-\xff]+| ?[0-9]+| ?[^\sA-Za-z0-9\x80-\xff]+|\s+(?!\S)|\s+")


def split_words(data):
    """Cut bytes into words, which glued together are the bytes again. A space belongs to the word that follows it."""
    return WORD.findall(data)


def join_pair(ids, pair, new_id):
    """The list ids with new_id in the place of each occurrence of the pair, from left to right (assignment 1)."""
    joined, place = [], 0
    while place < len(ids):
        if tuple(ids[place : place + 2]) == pair:
            joined.append(new_id)
            place += 2
        else:
            joined.append(ids[place])
            place += 1
    return joined


def layer_norm(x, gamma, beta, eps=1e-5):
    """Each token to mean 0 and variance 1 over its features, then times gamma plus beta (assignment 5)."""
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    centred = wide - wide.mean(dim=-1, keepdim=True)
    variance = centred.pow(2).mean(dim=-1, keepdim=True)
    return (centred / torch.sqrt(variance + eps) * gamma + beta).to(x.dtype)


def split_heads(x, num_heads):
    """[B, N, H*d] -> [B, H, N, d] (assignment 4)."""
    return x.unflatten(2, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    """[B, H, N, d] -> [B, N, H*d] (assignment 4)."""
    return x.transpose(1, 2).flatten(2)


def attention_pattern(q, k):
    """Causal attention weights [B, H, N_q, N_k]; query i may see key j when j <= i + N_k - N_q (assignment 3)."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    allowed = torch.arange(n_k) <= torch.arange(n_q)[:, None] + (n_k - n_q)
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    return torch.softmax(wide.masked_fill(~allowed, float("-inf")), dim=-1).to(q.dtype)


def causal_attention(q, k, v):
    """q [B, H, N_q, d], k and v [B, H, N_k, d] -> [B, H, N_q, d] (assignment 4)."""
    return attention_pattern(q, k) @ v


class KVCache:
    """Keys and values of the tokens so far, for every layer (assignment 8).

    append(layer, k, v) takes a chunk's keys and values, [B, H, c, d], and returns all up to and including it,
    [B, H, length + c, d]. advance(c), once after the last layer, makes the chunk count.
    """

    def __init__(self, num_layers):
        self.length = 0
        self._stored = [None] * num_layers

    def append(self, layer, k, v):
        if self.length > 0:
            old_k, old_v = self._stored[layer]
            k = torch.cat([old_k[:, :, : self.length], k], dim=2)
            v = torch.cat([old_v[:, :, : self.length], v], dim=2)
        self._stored[layer] = k, v
        return k, v

    def advance(self, c):
        self.length += c


def check_ids(ids, size):
    """ValueError where an id is outside 0 … size - 1."""
    outside = (ids < 0) | (ids >= size)
    if outside.any():
        raise ValueError(f"id {ids[outside][0].item()} is outside a table of {size}")


def next_token_loss(logits, targets):
    """Mean cross-entropy of logits [B, N, V] and targets [B, N], the next token at each place (assignment 6)."""
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def filtered_probabilities(logits, temperature, top_k=None):
    """The distribution to draw from, [B, V]: temperature (0: the likeliest token), then top-k (assignment 6)."""
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError(f"temperature {temperature} must be at least 0, and top_k {top_k} at least 1")
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(dim=-1, keepdim=True), 1.0)
    if top_k is not None and top_k < logits.shape[-1]:
        kept = logits.topk(top_k, dim=-1)
        logits = torch.full_like(logits, float("-inf")).scatter(-1, kept.indices, kept.values)
    return torch.softmax(logits / temperature, dim=-1)


def list_tensors(params):
    """All tensors of nested dicts and lists, in a fixed order (assignment 6)."""
    if isinstance(params, torch.Tensor):
        return [params]
    children = params.values() if isinstance(params, dict) else params
    return [tensor for child in children for tensor in list_tensors(child)]


def with_tensors(params, tensors):
    """The same nesting as params, with these tensors (in the order of list_tensors) in place of its own."""
    left = iter(tensors)

    def rebuild(node):
        if isinstance(node, torch.Tensor):
            return next(left)
        if isinstance(node, dict):
            return {name: rebuild(child) for name, child in node.items()}
        return [rebuild(child) for child in node]

    return rebuild(params)


def random_params(config, seed=0):
    """Parameters as language_model wants them, with GPT-2's way to begin: normal with a deviation of 0.02.

    What is added to the residual stream begins smaller, by the root of the number of additions.
    """
    g = torch.Generator().manual_seed(seed)
    d, f = config.d_model, config.d_ff

    def normal(*shape, deviation=0.02):
        return deviation * torch.randn(*shape, generator=g)

    def block():
        small = 0.02 / math.sqrt(2 * config.num_layers)
        return {
            "ln1_gamma": torch.ones(d), "ln1_beta": torch.zeros(d),
            "w_q": normal(d, d), "b_q": torch.zeros(d),
            "w_k": normal(d, d), "b_k": torch.zeros(d),
            "w_v": normal(d, d), "b_v": torch.zeros(d),
            "w_o": normal(d, d, deviation=small), "b_o": torch.zeros(d),
            "ln2_gamma": torch.ones(d), "ln2_beta": torch.zeros(d),
            "w1": normal(d, f), "b1": torch.zeros(f),
            "w2": normal(f, d, deviation=small), "b2": torch.zeros(d),
        }  # fmt: skip

    return {
        "embed": normal(config.vocab_size, d),  # [V, D], at both ends
        "positions": normal(config.context_length, d),
        "blocks": [block() for _ in range(config.num_layers)],
        "lnf_gamma": torch.ones(d),
        "lnf_beta": torch.zeros(d),
    }


def as_bytes(text):
    """A str as a uint8 tensor [N] of its UTF-8 bytes."""
    return torch.tensor(list(text.encode("utf-8")), dtype=torch.uint8)


def as_text(data):
    """A uint8 tensor [N] as a str; bytes that are no UTF-8 become �."""
    return bytes(data.tolist()).decode("utf-8", errors="replace")
