"""Functions that the course gives you: library.

Made by `autograder build`; the notebook a9_language_model.ipynb imports it.
"""

import hashlib
import math
import re
from dataclasses import dataclass
from types import CodeType, FunctionType
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


WORD = re.compile(
    rb"'(?:ll|ve|re|[sdmt])| ?[A-Za-z\x80-\xff]+| ?[0-9]+"
    rb"| ?[^\sA-Za-z0-9\x80-\xff]+|\s+(?!\S)|\s+"
)


def split_words(data):
    """Cut bytes into words, which glued together are the bytes again. A space belongs
    to the word that follows it.
    """
    return WORD.findall(data)


def join_pair(ids, pair, new_id):
    """The list ids with new_id in the place of each occurrence of the pair, from left
    to right (assignment 1).
    """
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
    """Each token to mean 0 and variance 1 over its features, then times gamma plus beta
    (assignment 5).
    """
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


def causal_mask(n_q, n_k=None):
    """bool [N_q, N_k]: query i may see key j when j <= i + N_k - N_q (assignment 3)."""
    n_k = n_q if n_k is None else n_k
    return torch.arange(n_k) <= torch.arange(n_q)[:, None] + (n_k - n_q)


def masked_softmax(scores, mask):
    """Softmax of scores [..., N_q, N_k] over the allowed keys; a query with no key gets
    zeros (assignment 3).
    """
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    empty = ~mask.any(dim=-1, keepdim=True)  # [..., N_q, 1]
    wide = wide.masked_fill(~mask, float("-inf")).masked_fill(empty, 0.0)
    return torch.softmax(wide, dim=-1).masked_fill(~mask, 0.0).to(scores.dtype)


def attention_pattern(q, k):
    """Causal attention weights [B, H, N_q, N_k], by causal_mask and masked_softmax."""
    mask = causal_mask(q.shape[-2], k.shape[-2]).to(q.device)
    return masked_softmax((q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1), mask)


def causal_attention(q, k, v):
    """q [B, H, N_q, d], k and v [B, H, N_k, d] -> [B, H, N_q, d] (assignment 4)."""
    return attention_pattern(q, k) @ v


class KVCache:
    """Keys and values of the tokens so far, for every layer (assignment 8).

    append(layer, k, v) takes a chunk's keys and values, [B, H, c, d], and returns all
    up to and including it, [B, H, length + c, d]. advance(c), once after the last
    layer, makes the chunk count.
    """

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.length = 0
        # grows: this cache makes room as it needs it
        empty = torch.zeros(batch, num_kv_heads, 0, d_head, dtype=dtype)
        self._stored = [(empty, empty)] * num_layers

    def append(self, layer, k, v):
        old_k, old_v = self._stored[layer]
        k = torch.cat([old_k[:, :, : self.length], k], dim=2)
        v = torch.cat([old_v[:, :, : self.length], v], dim=2)
        self._stored[layer] = k, v
        return k, v

    def advance(self, c):
        self.length += c


def empty_cache(params, config, batch):
    """A KVCache for texts of this model, as long as its context."""
    d_head = config.d_model // config.num_heads
    dtype = params["embed"].dtype
    return KVCache(
        len(params["blocks"]),
        batch,
        config.num_heads,
        d_head,
        config.context_length,
        dtype,
    )


def check_ids(ids, size):
    """ValueError where an id is outside 0 … size - 1."""
    outside = (ids < 0) | (ids >= size)
    if outside.any():
        raise ValueError(f"id {ids[outside][0].item()} is outside a table of {size}")


def embed(table, ids):
    """Rows of the table [V, D] for ids [...]: [..., D]; ValueError where an id is
    outside (assignment 1).
    """
    check_ids(ids, len(table))
    return table[ids]


def lm_loss(logits, ids, ignore_index=-100):
    """Mean cross-entropy of the next token; the shift happens inside (assignment 6)."""
    predictions, targets = logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
    return torch.nn.functional.cross_entropy(
        predictions, targets, ignore_index=ignore_index
    )


def next_token_loss(logits, targets):
    """Mean cross-entropy of logits [B, N, V] and targets [B, N], the next token at each
    place, by lm_loss.

    lm_loss shifts, and here everything is shifted already: so one place more, which
        lm_loss takes away again.
    """
    return lm_loss(
        torch.cat([logits, logits[:, -1:]], dim=1),
        torch.cat([targets[:, :1], targets], dim=1),
    )


def filtered_probabilities(logits, temperature, top_k=None):
    """The distribution to draw from, [B, V]: temperature (0: the likeliest token), then
    top-k (assignment 6).
    """
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError(
            f"temperature {temperature} must be at least 0, and top_k {top_k} at "
            "least 1"
        )
    if temperature == 0:
        return torch.zeros_like(logits).scatter(
            -1, logits.argmax(dim=-1, keepdim=True), 1.0
        )
    if top_k is not None and top_k < logits.shape[-1]:
        kept = logits.topk(top_k, dim=-1)
        logits = torch.full_like(logits, float("-inf")).scatter(
            -1, kept.indices, kept.values
        )
    return torch.softmax(logits / temperature, dim=-1)


def list_tensors(params):
    """All tensors of nested dicts and lists, in a fixed order (assignment 6)."""
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


def random_params(config, seed=0):
    """Parameters as language_model wants them, with GPT-2's way to begin: normal with a
    deviation of 0.02.

    What is added to the residual stream begins smaller, by the root of the number of
    additions.
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


def fingerprint(*parts):
    """Twelve letters that differ where one of the parts does: numbers, texts, lists,
    tensors, functions.

    Of a function its compiled code counts, and that of the functions that it calls;
    comments and local names do not.
    """
    seen = set()

    def describe(part):
        if isinstance(part, torch.Tensor):
            digest = hashlib.sha256(part.numpy().tobytes()).hexdigest()
            return f"{list(part.shape)} {digest}"
        if isinstance(part, FunctionType) and part not in seen:
            seen.add(part)
            called = [
                part.__globals__.get(name) for name in global_names(part.__code__)
            ]
            return " ".join(
                map(
                    describe,
                    [
                        part.__code__,
                        *(f for f in called if isinstance(f, FunctionType)),
                    ],
                )
            )
        if isinstance(part, FunctionType):
            return "described already"
        if isinstance(part, CodeType):
            constants = list(map(describe, part.co_consts))
            return f"{part.co_code.hex()} {part.co_names} {constants}"
        if isinstance(part, frozenset):
            # its own order is another one in each session
            return str(sorted(map(repr, part)))
        return repr(part)

    def global_names(code):
        inner = [
            constant for constant in code.co_consts if isinstance(constant, CodeType)
        ]
        return [
            *code.co_names,
            *(name for nested in inner for name in global_names(nested)),
        ]

    return hashlib.sha256("\n".join(map(describe, parts)).encode()).hexdigest()[:12]


def save_whole(values, path):
    """torch.save, so that the file is the old one or the new one, and never a half: it
    is renamed when it is complete.
    """
    unfinished = path.with_suffix(".part")
    torch.save(values, unfinished)
    unfinished.replace(path)


def as_bytes(text):
    """A str as a uint8 tensor [N] of its UTF-8 bytes."""
    return torch.tensor(list(text.encode("utf-8")), dtype=torch.uint8)


def as_text(data):
    """A uint8 tensor [N] as a str; bytes that are no UTF-8 become �."""
    return bytes(data.tolist()).decode("utf-8", errors="replace")
