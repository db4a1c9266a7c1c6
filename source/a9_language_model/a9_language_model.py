# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Assignment 9: a language model of your own
#
# In eight assignments you have built every part. Here they become one thing that works on real text: you turn bytes
# into tokens, write the decoder of GPT-2, train it with the optimizer and the schedule that people use, measure how
# good it is on text that it has never seen, and let it write through a KV cache. At the end the same code of yours
# reads the weights that OpenAI published for GPT-2, and writes with those.
#
# ![From bytes to tokens to logits to text, and where weights come from](figures/road.svg)
#
# The text is a megabyte of Shakespeare (`data/shakespeare.txt`, public domain; `data/README.md` names the source). It
# is small: a model trained on it knows no facts and little sense. But it learns, from nothing, to spell, to put
# speakers in front of speeches, and to write in verse. Training takes about ten minutes of processor time.
#
# | | function | what it gives | difficulty, estimated time |
# |---|---|---|---|
# | 1 | `train_byte_bpe` | a vocabulary, learned from bytes | ★★☆, 30 min |
# | 2 | `bpe_encode` | text to tokens | ★★☆, 20 min |
# | 3 | `bpe_decode` | tokens to text | ★☆☆, 10 min |
# | 4 | `gelu` | GPT-2's activation | ★☆☆, 10 min |
# | 5 | `language_model` | GPT-2's decoder, with or without a cache | ★★★, 45 min |
# | 6 | `sample_windows` | batches from a long text | ★☆☆, 15 min |
# | 7 | `learning_rate` | warm-up, then a cosine | ★☆☆, 15 min |
# | 8 | `clip_gradients` | one bound for all gradients together | ★☆☆, 15 min |
# | 9 | `adamw_step` | Adam with decoupled weight decay | ★★☆, 30 min |
# | 10 | `perplexity` | how good the model is on unseen text | ★★☆, 20 min |
# | 11 | `sample` | text, through the cache | ★★☆, 30 min |
# | 12 | `induction_score` | heads that look up what came next last time | ★★☆, 15 min |
# | 13 | `from_gpt2` | published weights in your model | ★★★, 35 min |
# | 14 | `misleading_token` | the error in the notes | ★★☆, 20 min |
# | 15 | a written answer | what a perplexity says | 15 min |
#
# **Conventions of this course**
#
# - Every function is pure: weights come in as arguments (`params`, nested dicts and lists), inputs are never changed.
# - A weight matrix is `[in, out]` and multiplies from the right, `x @ w`. (`nn.Linear` stores `[out, in]`.)
# - Tokens are rows. `B` batch, `N` tokens, `D` model width, `V` vocabulary, `F` width inside an MLP, `H` heads, `d`
#   width of a head.
# - Text is bytes: a `uint8` tensor `[N]`. Token ids are an `int64` tensor.
# - Arguments that cannot be right raise `ValueError` with the sizes in the message.

# %% given="imports"
import hashlib
import math
import os
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType

import torch

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% [markdown]
# ## From the earlier assignments
#
# Read three of these closely. `split_words` cuts text into the pieces inside which tokens are made. `causal_attention`
# takes any number of queries and keys, so that it works with a cache. And `KVCache` is the contract of assignment 8:
# `append` once for each layer, then `advance` once. `empty_cache` makes one of the right size.
#
# Your own answers may take the place of what is given: `python make_my_course.py` with the names of your notebooks so
# far makes them a module, and prints the line that goes into a cell below. Nine of the functions that this notebook
# trains and writes with can be yours from before:
#
# | assignment | yours | where it works |
# |---|---|---|
# | 1 | `embed` | at the model's input |
# | 3 | `causal_mask`, `masked_softmax` | in the attention |
# | 4 | `split_heads`, `merge_heads` | around the attention |
# | 5 | `layer_norm` | in every block, and at the end |
# | 6 | `lm_loss` | in training, called by `next_token_loss` |
# | 6 | `filtered_probabilities` | in `sample` |
# | 8 | `KVCache` | in `sample`, made by `empty_cache` |
#
# With the eleven that you write here for training and writing (questions 1 to 11) that is a language model of twenty
# functions, all of them your own.


# %% given="library" module="library"
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


# %% [markdown]
# ## 1. A vocabulary from bytes
#
# ★★☆ · about 30 minutes
#
# In assignment 1 byte-pair encoding began with the characters of some words. Any text, in any language and with any
# emoji, would need a beginning with 150 000 characters. GPT-2 begins with **bytes** instead. There are 256, so nothing
# is ever unknown, not even a file that is no text at all. The vocabulary is then
#
# * ids 0 … 255: the bytes;
# * id $256 + i$: what merge $i$ joined. A merge is a pair of *ids*, so merges can be made of merges.
#
# Text is cut into words first (`split_words`), and pairs never reach across words. Otherwise "of the" would soon be one
# token, and "the." another one than "the,". The space goes with the word behind it: `" the"` is a word of four bytes.
#
# The rules are those of assignment 1. Count all pairs of neighbours in all words, a word that occurs 6 times counting
# 6 times. Join the most frequent; among equals, the smaller pair of ids. Count anew. When no pair is left, stop. (Who
# compares with another course: in Stanford's CS336 the *greater* pair wins, and pairs are compared as byte strings. Both
# rules are as good; vocabularies learned by different rules differ.)
#
# Count by *distinct* words. Our megabyte of text has 298 000 words in this sense, and 15 000 different ones.
#
# And count all of them **once**. A merge changes the words that its pair stands in, and no others: `" th"` + `"e"` says
# nothing about `" dog"`. So keep two tables beside the words: how often each pair stands in the text, and in which words.
# For a merge, look up the words of its pair. For each of them take its old pairs off the counts, join, and add its new
# pairs. Then a merge costs what the words that it changes cost. For the vocabulary below that is one second in place of
# ten. A test counts the lines of your Python that run, with few and with many words that no merge changes.
#
# **Predict first.** `"aaaa"` is one word. Which merges are learned from it, and in how many tokens does it end?

# %% predict="train_byte_bpe"
predict(
    "In how many tokens does it end?",
    answer=1,
    because="(97, 97) gives 256 256, and (256, 256) gives 257.",
)


# %% question="train_byte_bpe"
def train_byte_bpe(text, num_merges):
    """Learn which pairs of ids to join, most frequent first (Sennrich et al., 2016; on
    bytes: Radford et al., 2019).

    Args:
        text: uint8 [N], any bytes; may be empty.
        num_merges: how many pairs to join at most, 0 or more.

    Returns:
        list of (left, right) tuples of int, in the order in which they were joined; the
        pair at place i becomes id 256 + i. Pairs are counted inside the words of
        split_words, each occurrence of a word. Among equally frequent pairs the
        smallest tuple is joined. Shorter than num_merges where no pair was left.

    Cost:
        every word is counted once; a merge costs what the words that it changes cost,
        and a search for the largest among the pairs' counts.

    Raises:
        ValueError: num_merges is negative; it stands in the message.
    """
    ### BEGIN SOLUTION
    if num_merges < 0:
        raise ValueError(f"num_merges = {num_merges} is negative")
    words = Counter(split_words(bytes(text.tolist())))
    pieces = {word: list(word) for word in words}  # the bytes of a word are its first ids
    counts = Counter()  # how often each pair stands in the text
    places = defaultdict(set)  # in which words each pair stands

    def count_pairs(word, times):
        for pair in pairwise(pieces[word]):
            counts[pair] += times
            places[pair].add(word)

    for word in words:
        count_pairs(word, words[word])
    merges = []
    while counts and len(merges) < num_merges:
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        for word in places.pop(best):  # no other word changes
            count_pairs(word, -words[word])
            pieces[word] = join_pair(pieces[word], best, 256 + len(merges))
            count_pairs(word, words[word])
        counts = +counts  # without the pairs that stand nowhere any more
        merges.append(best)
    return merges
    ### END SOLUTION


# %% check="train_byte_bpe"
# "low" twice and " low" once: l·o 3 times, o·w 3 times. l is 108, o is 111, w is
# 119, a space is 32.
expect(
    train_byte_bpe(as_bytes("low\nlow low"), 9),
    [(108, 111), (256, 119), (32, 257)],
    hint="l·o and o·w are equally frequent: the smaller pair wins. Then 256·w, then space·257; then nothing is left.",
)
expect(
    train_byte_bpe(as_bytes("aaaa"), 1),
    [(97, 97)],
    hint="One word of four bytes: a·a.",
)
expect(
    train_byte_bpe(as_bytes("é"), 5),
    [(195, 169)],
    hint="One character, two bytes in UTF-8: 195 and 169.",
)

# %% [markdown]
# ## 2. Text to tokens
#
# ★★☆ · about 20 minutes
#
# New text is cut by the same words and the same merges. Inside a word, as long as two neighbours are a pair of the
# list, the pair that was **learned first** is joined, everywhere in the word. It is the same algorithm as in
# assignment 1, except that tokens are ids and that joining pair $i$ gives $256 + i$.
#
# A long text repeats its words: work out each distinct word once. (It saves you time; nobody counts it.)
#
# **Predict first.** With `[(97, 97), (256, 97)]`, what are the ids of `"aaaaa"`? (97 is `a`.)

# %% predict="bpe_encode"
predict(
    "The last id?",
    answer=257,
    because="a a a a a becomes 256 256 a, and then 256 257.",
)


# %% question="bpe_encode"
def bpe_encode(text, merges):
    """Cut bytes into tokens.

    Args:
        text: uint8 [N], any bytes; may be empty.
        merges: list of pairs of ids as from train_byte_bpe, first learned first.

    Returns:
        int64 [M]: ids in 0 … 255 + len(merges). No token reaches across the words of
        split_words.
    """
    ### BEGIN SOLUTION
    rank = {tuple(pair): place for place, pair in enumerate(merges)}
    ids_of, tokens = {}, []
    for word in split_words(bytes(text.tolist())):
        if word not in ids_of:
            ids = list(word)
            while known := [pair for pair in pairwise(ids) if pair in rank]:
                first = min(known, key=rank.get)
                ids = join_pair(ids, first, 256 + rank[first])
            ids_of[word] = ids
        tokens += ids_of[word]
    return torch.tensor(tokens, dtype=torch.int64)
    ### END SOLUTION


# %% check="bpe_encode"
merges = [(108, 111), (256, 119), (32, 257)]  # lo, low, space low
expect(
    bpe_encode(as_bytes("low lower slow"), merges),
    torch.tensor([257, 258, 101, 114, 32, 115, 257]),
    hint='low, then space·low, e, r, then space, s, low: in " slow" the space does not stand beside low.',
)
expect(
    bpe_encode(as_bytes("aaaaa"), [(97, 97), (256, 97)]),
    torch.tensor([256, 257]),
    hint="First all a·a from left to right: 256 256 a. Then 256·a is a pair of the list, too.",
)
expect(
    bpe_encode(as_bytes("höh"), []),
    torch.tensor([104, 195, 182, 104]),
    hint="Without merges: the bytes.",
)

# %% [markdown]
# ## 3. Tokens to text
#
# ★☆☆ · about 10 minutes
#
# Each id stands for some bytes: a byte for itself, a merge for the bytes of its left part and then of its right part.
# Glue them together. Two tokens of a model can split one character between them, so that a single token need not be
# valid text; that is why the answer is bytes and not a `str`.
#
# For any bytes whatever, decoding what you encoded gives them back. Not the other way round: a model may well write
# tokens that encoding the same text would not have chosen.
#
# **Predict first.** Why is that? Find two lists of ids with the same bytes under `[(97, 97)]`.

# %% predict="bpe_decode"
predict(
    "Which list has the same bytes as [256]?",
    "[97, 97]",
    "[97]",
    "[256, 256]",
    answer="[97, 97]",
    because="256 stands for two bytes 97. Many lists have the same bytes, and only one "
    "of them comes from the encoder.",
)


# %% question="bpe_decode"
def bpe_decode(ids, merges):
    """The bytes that tokens stand for.

    Args:
        ids: int64 [M]; may be empty.
        merges: list of pairs of ids, as in bpe_encode.

    Returns:
        uint8 [N].

    Raises:
        ValueError: an id is outside 0 … 255 + len(merges); the id and the number of
            ids, 256 + len(merges), in the message.
    """
    ### BEGIN SOLUTION
    check_ids(ids, 256 + len(merges))
    bytes_of = [[byte] for byte in range(256)]
    for left, right in merges:
        bytes_of.append(bytes_of[left] + bytes_of[right])
    return torch.tensor([byte for token in ids.tolist() for byte in bytes_of[token]], dtype=torch.uint8)
    ### END SOLUTION


# %% check="bpe_decode"
merges = [(108, 111), (256, 119), (32, 257)]
expect(
    bpe_decode(torch.tensor([257, 258, 101, 114]), merges),
    as_bytes("low lower"),
    hint="257 is 256·w, and 256 is l·o.",
)
anything = torch.arange(256, dtype=torch.uint8).flip(0)
expect(
    bpe_decode(bpe_encode(anything, merges), merges),
    anything,
    hint="All 256 bytes, most of them no text: back again.",
)

# %% demo="read_the_text"
TEXT = Path("data/shakespeare.txt")
if not TEXT.exists():
    raise FileNotFoundError(
        "data/shakespeare.txt is missing: it comes with this notebook, in the folder "
        "data/"
    )
# Whoever only wants to see whether all cells run sets this variable: everything is
# learned for a moment only.
QUICK = "ATTENTION_KIT_QUICK" in os.environ

whole = torch.tensor(list(TEXT.read_bytes()), dtype=torch.uint8)
cut = len(whole) * 9 // 10
# the last tenth is never trained on
training_bytes, held_out_bytes = whole[:cut], whole[cut:]
if QUICK:
    training_bytes, held_out_bytes = training_bytes[:40_000], held_out_bytes[:4_000]

# A quarter of the text is enough to learn a vocabulary from. It takes a
# second or two.
vocabulary = train_byte_bpe(training_bytes[: cut // 4], 16 if QUICK else 512)
training_ids, held_out_ids = (
    bpe_encode(training_bytes, vocabulary),
    bpe_encode(held_out_bytes, vocabulary),
)
print(f"{len(training_ids)} tokens to train on, {len(held_out_ids)} held out,")
print(
    f"{len(held_out_bytes) / len(held_out_ids):.2f} bytes in a token of the held-out "
    "text"
)
for n in range(0, len(vocabulary), max(1, len(vocabulary) // 12)):
    print(f"merge {n}: {as_text(bpe_decode(torch.tensor([256 + n]), vocabulary))!r}")
print([as_text(bpe_decode(token[None], vocabulary)) for token in held_out_ids[:40]])

# %% [markdown]
# ## 4. GPT-2's activation
#
# ★☆☆ · about 10 minutes
#
# The MLP of assignment 6 has a ReLU. GPT-2 has a **GELU**: $x\,\Phi(x)$, where $\Phi$ is the distribution function of
# the standard normal. It looks like a ReLU with a rounded corner, and lets a little of small negative numbers through.
# GPT-2 computes it by an approximation, and its weights were trained with that one:
#
# $$\operatorname{gelu}(x) = \tfrac12\,x\Bigl(1 + \tanh\bigl(\sqrt{2/\pi}\,(x + 0.044715\,x^3)\bigr)\Bigr)$$
#
# The two differ by less than 0.0005. But they do so at every one of thousands of activations in every layer, so
# published weights want the one that they were trained with.
#
# **Predict first.** What are gelu(0), gelu(100) and gelu(−100)? And what is left of gelu(−3) in bfloat16, whose numbers
# just below 1 are 1/256 apart? There $\tanh$ is −0.9976, and its sum with 1 is all that the result has.

# %% predict="gelu"
predict(
    "What is gelu(−100)?",
    answer=0,
    because="gelu(0) = 0 and gelu(100) = 100. In bfloat16 −0.9976 becomes −0.9961, and "
    "the small rest that gelu(−3) is made of is wrong by more than a half.",
)


# %% question="gelu"
def gelu(x):
    """GELU in the tanh approximation that GPT-2 uses (Hendrycks and Gimpel, 2016).

    Args:
        x: [...], floating point.

    Returns:
        [...] in the dtype of x; half precision is computed in float32.
    """
    ### BEGIN SOLUTION
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    return (0.5 * wide * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))).to(x.dtype)
    ### END SOLUTION


# %% check="gelu"
expect(
    gelu(torch.tensor([0.0, 1.0, -1.0, 3.0], dtype=torch.float64)),
    torch.tensor([0.0, 0.84119199, -0.15880801, 2.99636261], dtype=torch.float64),
    hint="0.84134475 at 1? That is the exact GELU. GPT-2 uses the approximation with tanh.",
)
expect(
    gelu(torch.tensor([100.0, -100.0]).half()),
    torch.tensor([100.0, 0.0]).half(),
    hint="A ReLU has the same values.",
)
expect(
    gelu(torch.tensor([-3.0]).bfloat16()),
    torch.tensor([-0.00363739]).bfloat16(),
    hint="-0.0059? 1 + tanh was rounded to 1/256. Compute in float32 and return x's dtype.",
)

# %% [markdown]
# ## 5. The model
#
# ★★★ · about 45 minutes
#
# This is GPT-2, of any size:
#
# $$\begin{aligned}
# X &= E[\text{ids}] + P[\text{their positions}]\\
# X &\leftarrow X + \mathrm{Attention}\bigl(\mathrm{LN}_1(X)\bigr)\\
# X &\leftarrow X + \mathrm{gelu}\bigl(\mathrm{LN}_2(X)\,W_1 + b_1\bigr)\,W_2 + b_2\\
# \text{logits} &= \mathrm{LN}_f(X)\,E^\top
# \end{aligned}$$
#
# What is new since assignment 6: every product of a block has a **bias**, queries, keys, values and the output of the
# attention included, and the MLP has your `gelu`. The head is always tied to the embedding, and has no bias.
#
# And one function serves training and writing. Without a `cache` it reads whole texts. With one it reads the chunk
# that comes after the tokens in the cache, as `decode_step` did in assignment 8: positions go on at `cache.length`;
# each layer appends its keys and values once and attends to what it gets back; after the last layer the cache
# advances, once. For every way to cut a text into chunks the logits are the same.
#
# Use the cache through `length`, `append` and `advance` only: our tests bring their own.
#
# **Predict first.** Which of the biases $b_q$, $b_k$, $b_v$ can be left out without any change to the output of the
# attention? (Adding the same number to all scores of a row changes nothing.)

# %% predict="language_model"
predict(
    "Which of the biases can be left out?",
    "b_q",
    "b_k",
    "b_v",
    answer="b_k",
    because="It adds q · b_k to all scores of a row: the same number, which a softmax "
    "does not notice.",
)


# %% question="language_model"
def language_model(ids, params, config, cache=None):
    """Logits of the next token at every position, by GPT-2's architecture (Radford et
    al., 2019), without dropout.

    Args:
        ids: int64 [B, N], N at least 1; with a cache, the tokens that come after those
            in it.
        params: dict with embed [V, D], positions [context_length, D], lnf_gamma,
            lnf_beta [D], and blocks, a list of dicts with ln1_gamma, ln1_beta, w_q,
            b_q, w_k, b_k, w_v, b_v, w_o, b_o, ln2_gamma, ln2_beta, w1 [D, F], b1 [F],
            w2 [F, D], b2.
        config: num_heads, vocab_size and context_length are used.
        cache: None, or an object with length, append(layer, k, v) and advance(c). It is
            N tokens longer afterwards, and nothing but these N tokens is computed.

    Returns:
        logits [B, N, V] in the dtype of the weights.

    Raises:
        ValueError: the tokens in the cache and the new ones are more than
            context_length (both numbers in the message), or an id is outside 0 … V - 1
            (the id and V). The cache is not touched then.
    """
    ### BEGIN SOLUTION
    n = ids.shape[1]
    start = 0 if cache is None else cache.length
    if start + n > config.context_length:
        raise ValueError(f"{start + n} tokens do not fit into a context of {config.context_length}")
    x = embed(params["embed"], ids) + params["positions"][start : start + n]  # [B, N, D]
    for layer, p in enumerate(params["blocks"]):
        h = layer_norm(x, p["ln1_gamma"], p["ln1_beta"])
        q = split_heads(h @ p["w_q"] + p["b_q"], config.num_heads)  # [B, H, N, d]
        k = split_heads(h @ p["w_k"] + p["b_k"], config.num_heads)
        v = split_heads(h @ p["w_v"] + p["b_v"], config.num_heads)
        if cache is not None:
            k, v = cache.append(layer, k, v)  # [B, H, start + N, d]
        x = x + merge_heads(causal_attention(q, k, v)) @ p["w_o"] + p["b_o"]
        h = layer_norm(x, p["ln2_gamma"], p["ln2_beta"])
        x = x + gelu(h @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
    if cache is not None:
        cache.advance(n)  # once, not once a layer
    return layer_norm(x, params["lnf_gamma"], params["lnf_beta"]) @ params["embed"].T  # [B, N, V]
    ### END SOLUTION


# %% check="language_model"
# One block whose attention sees the first token only as itself: with w_v = 0 the
# values are b_v, whoever is looked at.
plain = LMConfig(
    vocab_size=3, d_model=2, num_layers=1, num_heads=1, d_ff=2, context_length=4
)
params = with_tensors(
    random_params(plain),
    [torch.zeros_like(t) for t in list_tensors(random_params(plain))],
)
params |= {
    "embed": torch.tensor([[3.0, 1.0], [1.0, 3.0], [0.0, 2.0]]),
    "lnf_gamma": torch.ones(2),
}
params["blocks"][0] |= {
    "b_v": torch.tensor([0.0, 2.0]),
    "w_o": torch.eye(2),
    "b_o": torch.tensor([0.0, 4.0]),
}
# Token 0 is (3, 1); the attention adds (0, 2) and (0, 4): (3, 7), which is
# normalized to (-1, 1).
expect(
    language_model(torch.tensor([[0]]), params, plain),
    torch.tensor([[[-2.0, 2.0, 2.0]]]),
    atol=1e-4,
    hint="(2, -2, -2)? Then a bias of the attention is missing, that of the values or that of the output.",
)
params["blocks"][0] |= {
    "b1": torch.tensor([1.0, -1.0]),
    "w2": torch.tensor([[10.0, 0.0], [0.0, 0.0]]),
}
# The MLP adds 10 gelu(1) = 8.4 to the first feature: (11.4, 7), normalized to (1,
# -1).
expect(
    language_model(torch.tensor([[0]]), params, plain),
    torch.tensor([[[2.0, -2.0, -2.0]]]),
    atol=1e-4,
    hint="The MLP's first bias comes before the gelu.",
)
g = torch.Generator().manual_seed(0)
small = LMConfig(
    vocab_size=11, d_model=6, num_layers=2, num_heads=2, d_ff=10, context_length=9
)
params = with_tensors(
    random_params(small),
    [
        t + 0.5 * torch.randn(t.shape, generator=g)
        for t in list_tensors(random_params(small))
    ],
)
ids = torch.tensor([[3, 1, 4, 1, 5, 9]])
cache = empty_cache(params, small, batch=1)
expect(
    torch.cat(
        [
            language_model(chunk, params, small, cache)
            for chunk in ids.split((3, 1, 2), dim=1)
        ],
        dim=1,
    ),
    language_model(ids, params, small),
    atol=1e-4,
    hint="In chunks of 3, 1 and 2 tokens through a cache, the logits should be those of the whole text. Only the first "
    "chunk right? Look at the positions, then at when the cache advances.",
)

# %% [markdown]
# ## 6. Batches from a long text
#
# ★☆☆ · about 15 minutes
#
# The text is one long row of ids. A batch is $B$ windows of $L$ tokens, begun at random places; the targets are the
# same windows, one token further. Windows may overlap and repeat: with half a million places, it does not matter.
#
# Off-by-one errors here are silent. A window needs $L+1$ tokens, so that the last valid start is $N - L - 1$, and
# every start up to that one must be possible. And the shift happens here, **once**: `next_token_loss` does not shift.
#
# The dice are a function of the `seed`: the same seed, the same batch, and nobody else's dice are moved.
#
# **Predict first.** How many different windows has a text of 5 tokens for $L = 4$?

# %% predict="sample_windows"
predict(
    "How many different windows are there?",
    answer=1,
    because="Four inputs and their four targets take five tokens.",
)


# %% question="sample_windows"
def sample_windows(ids, batch, length, seed):
    """Random windows of a text and their targets.

    Args:
        ids: int64 [N], the text.
        batch: B.
        length: L.
        seed: int. Equal seeds give equal windows; torch's own dice stay as they were.

    Returns:
        (inputs, targets), both int64 [B, L]; targets[b, i] follows inputs[b, i] in the
        text. Every start from 0 to N - L - 1 is equally likely, and rows are drawn
        independently.

    Raises:
        ValueError: the text has fewer than L + 1 tokens (N and L in the message), or
            batch or length is below 1.
    """
    ### BEGIN SOLUTION
    if batch < 1 or length < 1 or len(ids) < length + 1:
        raise ValueError(f"{batch} windows of {length} tokens and their targets, from a text of {len(ids)} tokens")
    dice = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(ids) - length, (batch,), generator=dice)  # 0 … N - L - 1
    windows = ids[starts[:, None] + torch.arange(length + 1)]  # [B, L + 1]
    return windows[:, :-1], windows[:, 1:]
    ### END SOLUTION


# %% check="sample_windows"
inputs, targets = sample_windows(torch.arange(100, 110), batch=64, length=3, seed=0)
expect(list(inputs.shape), [64, 3], hint="A row for each window.")
expect(
    targets,
    inputs + 1,
    hint="This text counts upwards, so what follows a token is one more.",
)
expect(
    sorted(set(inputs[:, 0].tolist())),
    list(range(100, 107)),
    hint="Starts 0 to 6: the last window is 106 107 108.",
)

# %% [markdown]
# ## 7. How large a step, and when
#
# ★☆☆ · about 15 minutes
#
# At the start the weights are random, and the optimizer's averages know nothing: large steps do harm. So the step size
# climbs for a while, linearly (**warm-up**). At the end small steps are needed to settle. In between it falls along
# half a **cosine**. With steps counted from 0:
#
# $$\eta(t) = \begin{cases}
#   \eta_\text{peak}\,\dfrac{t+1}{W} & t < W\\[1ex]
#   \eta_\text{floor} + \tfrac12\left(\eta_\text{peak} - \eta_\text{floor}\right)
#     \left(1 + \cos\left(\pi\,\dfrac{t-W}{T-W}\right)\right) & W \le t < T\\[1ex]
#   \eta_\text{floor} & t \ge T
# \end{cases}$$
#
# Step 0 already moves (hence $t + 1$), and step $W$ is at the peak. Training may go on after $T$: without the third
# line the cosine would climb again.
#
# **Predict first.** $W = 10$, $T = 110$, peak 1, floor 0. At which step is the rate 1/2 for the second time?

# %% predict="learning_rate"
predict(
    "At which step is the rate 1/2 for the second time?",
    answer=60,
    because="Half of the way from step 10 to step 110. The first time is in the "
    "warm-up, at step 4.",
)


# %% question="learning_rate"
def learning_rate(step, warmup, total, peak, floor=0.0):
    """Linear warm-up, then half a cosine down to a floor (Loshchilov and Hutter, 2017).

    Args:
        step: t, from 0.
        warmup: W, steps of warm-up, 0 or more.
        total: T, the step from which on the rate is the floor; more than warmup.
        peak: the highest rate.
        floor: the last rate.

    Returns:
        float.

    Raises:
        ValueError: warmup is negative, or total is not more than warmup (both in the
            message).
    """
    ### BEGIN SOLUTION
    if warmup < 0 or total <= warmup:
        raise ValueError(f"a warm-up of {warmup} steps does not fit into {total} steps")
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= total:
        return float(floor)
    progress = (step - warmup) / (total - warmup)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2
    ### END SOLUTION


# %% check="learning_rate"
expect(
    learning_rate(0, 10, 110, 1.0),
    0.1,
    hint="The first step of ten is a tenth, not nothing.",
)
expect(learning_rate(10, 10, 110, 1.0), 1.0, hint="After the warm-up: the peak.")
expect(
    learning_rate(60, 10, 110, 1.0, floor=0.2),
    0.6,
    hint="Half way down: the middle of peak and floor.",
)
expect(
    learning_rate(500, 10, 110, 1.0, floor=0.2),
    0.2,
    hint="Long after the end: the floor.",
)

# %% [markdown]
# ## 8. One bound for all gradients
#
# ★☆☆ · about 15 minutes
#
# Now and then a batch has a gradient ten times as large as usual, and one such step can undo an hour. The remedy is to
# bound the length of the gradient, where **the gradient** is that of all parameters together, as one long vector:
#
# $$n = \sqrt{\sum_{\text{tensors } g}\ \sum_i g_i^2} \qquad g \leftarrow g\cdot\min\left(1, \frac{c}{n}\right)$$
#
# All tensors get the same factor, so the direction stays. Bounding each tensor for itself would turn it. And a small
# gradient is left alone: this is a bound, not a normalization.
#
# If one number is NaN or infinite, so is $n$, and every gradient would become NaN. Better to stop: `ValueError`.
#
# **Predict first.** Gradients $(3, 0)$ and $(4)$, $c = 1$. What comes out? What would the wrong way give?

# %% predict="clip_gradients"
predict(
    "What comes out of the gradient (4)?",
    answer=0.8,
    because="The norm of all three numbers is 5, so everything is divided by 5: (0.6, "
    "0) and (0.8). Each by itself would give (1, 0) and (1).",
)


# %% question="clip_gradients"
def clip_gradients(gradients, max_norm):
    """Scale gradients down to a global norm (Pascanu et al., 2013).

    Args:
        gradients: list of tensors of any shapes, at least one.
        max_norm: c, above 0.

    Returns:
        (clipped, norm): new tensors in the shapes and dtypes of the gradients, all
        times min(1, c / norm); and the norm before, a Python float. Squares of half
        precision are summed in float32. Nothing is added to the norm: gradients of a
        millionth are bounded too.

    Raises:
        ValueError: max_norm is not above 0, or the norm is not finite.
    """
    ### BEGIN SOLUTION
    if not max_norm > 0:
        raise ValueError(f"max_norm must be above 0, got {max_norm}")
    wide = [g if g.dtype == torch.float64 else g.float() for g in gradients]
    norm = math.sqrt(sum(g.pow(2).sum().item() for g in wide))
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradients is {norm}")
    factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
    return [(g * factor).to(own.dtype) for g, own in zip(wide, gradients, strict=True)], norm
    ### END SOLUTION


# %% check="clip_gradients"
clipped, norm = clip_gradients([torch.tensor([3.0, 0.0]), torch.tensor([4.0])], 1.0)
expect(norm, 5.0, hint="9 + 16 = 25: one norm for all tensors.")
expect(
    clipped[0],
    torch.tensor([0.6, 0.0]),
    hint="(1, 0)? Then each tensor was bounded for itself.",
)
expect(clipped[1], torch.tensor([0.8]), hint="The same factor for all, 1/5.")
clipped, norm = clip_gradients([torch.tensor([0.3]), torch.tensor([[0.4]])], 1.0)
expect(
    clipped[0],
    torch.tensor([0.3]),
    hint="The norm is 0.5, below the bound: nothing is scaled, least of all up.",
)

# %% [markdown]
# ## 9. AdamW
#
# ★★☆ · about 30 minutes
#
# Adam keeps two running averages for every parameter, of its gradient and of its gradient squared, and divides the one
# by the root of the other. So each parameter moves by about $\eta$ a step, however large its gradients are. With
# $t = 1, 2, \dots$ the step that is being made:
#
# $$\begin{aligned}
# m &\leftarrow \beta_1 m + (1-\beta_1)\,g & \hat m &= m / (1-\beta_1^t)\\
# v &\leftarrow \beta_2 v + (1-\beta_2)\,g^2 & \hat v &= v / (1-\beta_2^t)\\
# \theta &\leftarrow \theta - \eta\left(\frac{\hat m}{\sqrt{\hat v}+\varepsilon} + \lambda\,\theta\right)
# \end{aligned}$$
#
# The averages begin at 0 and are too small for a while; dividing by $1-\beta^t$ corrects exactly that. The first step
# is then $\eta$ times the sign of the gradient.
#
# $\lambda\theta$ is **weight decay**, and where it stands is what the W is about. Added to the *gradient*, as older
# code does, it goes through $m$ and $v$ and is divided by $\sqrt{\hat v}$: weights with large gradients hardly decay.
# Here it is *decoupled*: every weight shrinks by the factor $1-\eta\lambda$. Biases and the norms' $\gamma$ and
# $\beta$ do not decay (why should a scale of 1 be pulled to 0?). By custom one tells them by their shape: only tensors
# with two or more axes decay.
#
# **Predict first.** $\theta = 1$, $g = 0.001$, first step, $\eta = 0.1$, $\lambda = 0$. Where does $\theta$ go? And
# with $g = 1000$?

# %% predict="adamw_step"
predict(
    "Where does θ go?",
    answer=0.9,
    atol=0.0001,
    because="The first step divides the gradient by its own size: 0.1, and with g = "
    "1000 too.",
)


# %% question="adamw_step"
def adamw_step(
    tensors, gradients, state, lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1
):
    """One step of AdamW (Loshchilov and Hutter, 2019).

    Args:
        tensors: list of parameters.
        gradients: list of their gradients, in the same order.
        state: None before the first step, later what the last step returned: a dict
            with step (int, how many steps were made), m and v (lists of tensors like
            the parameters).
        lr: eta.
        betas: beta_1 and beta_2.
        eps: epsilon, outside the root.
        weight_decay: lambda, for tensors with two or more axes; the others do not
            decay.

    Returns:
        (new_tensors, new_state). Nothing that came in is changed.

    Raises:
        ValueError: tensors and gradients differ in number (both in the message).
    """
    ### BEGIN SOLUTION
    if len(tensors) != len(gradients):
        raise ValueError(f"{len(tensors)} tensors but {len(gradients)} gradients")
    if state is None:
        zeros = [torch.zeros_like(tensor) for tensor in tensors]
        state = {"step": 0, "m": zeros, "v": zeros}
    (beta1, beta2), t = betas, state["step"] + 1
    new_tensors, new_m, new_v = [], [], []
    for theta, g, m, v in zip(tensors, gradients, state["m"], state["v"], strict=True):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g.pow(2)
        update = m / (1 - beta1**t) / (torch.sqrt(v / (1 - beta2**t)) + eps)
        decay = weight_decay if theta.dim() >= 2 else 0.0
        new_tensors.append(theta - lr * (update + decay * theta))
        new_m.append(m)
        new_v.append(v)
    return new_tensors, {"step": t, "m": new_m, "v": new_v}
    ### END SOLUTION


# %% check="adamw_step"
weights, gradients = (
    [torch.tensor([[1.0, 1.0]]), torch.tensor([1.0])],
    [torch.tensor([[0.5, -8.0]]), torch.tensor([2.0])],
)
stepped, state = adamw_step(weights, gradients, None, lr=0.1, weight_decay=0.0)
expect(
    stepped[0],
    torch.tensor([[0.9, 1.1]]),
    atol=1e-5,
    hint="The first step is lr times the sign of the gradient.",
)
stepped, state = adamw_step(weights, gradients, None, lr=0.1, weight_decay=0.5)
expect(
    stepped[0],
    torch.tensor([[0.85, 1.05]]),
    atol=1e-5,
    hint="The decay takes 0.1 · 0.5 · 1 besides. (0.9, 1.1) as before? Then it went through the averages.",
)
expect(
    stepped[1],
    torch.tensor([0.9]),
    atol=1e-5,
    hint="A tensor of one axis does not decay.",
)
stepped, state = adamw_step(
    weights, [torch.zeros(1, 2), torch.zeros(1)], state, lr=0.1, weight_decay=0.0
)
# m = 0.9 · 0.1 g = 0.09 g, corrected by 0.19; v = 0.95 · 0.05 g² = 0.0475 g²,
# corrected by 0.0975.
expect(
    stepped[1],
    torch.tensor([1 - 0.1 * (0.09 / 0.19) / math.sqrt(0.0475 / 0.0975)]),
    atol=1e-5,
    hint="In the second step the averages remember the first gradient; t is 2 now.",
)

# %% [markdown]
# ## 10. How good is it?
#
# ★★☆ · about 20 minutes
#
# The loss on text that the model was trained on says little: it may have learned it by heart. So the last tenth of the
# text was **held out**. The perplexity is the exponential of the mean loss a token,
#
# $$\mathrm{PPL} = \exp\left(-\frac{1}{N-1}\sum_{t=1}^{N-1}\log p(x_t \mid \text{before})\right)$$
#
# as if at each place the model chose between that many equally likely tokens. A model that knows nothing has $V$.
#
# The text is longer than the context, so it is cut into windows of $w$ targets, one after another; each window is read
# by itself. **Every token except the very first is a target, exactly once**, also those on the seams: the last token of
# one window is the first input of the next. The last window may be shorter. And the mean is over tokens: the mean of
# the windows' perplexities is something else, and so is the mean of their losses when the last one is shorter.
#
# **Predict first.** A text of 10 tokens in windows of 4 targets: how many windows, and how long is each?

# %% predict="perplexity"
predict(
    "How many windows are there?",
    answer=3,
    because="Nine targets: 4, 4 and 1.",
)


# %% question="perplexity"
def perplexity(params, ids, config, window):
    """Perplexity a token of a text that is longer than the context.

    Args:
        params, config: as in language_model.
        ids: int64 [N], N at least 2.
        window: w, targets in a window, from 1 to context_length. A window begins anew:
            what stands before it is not seen.

    Returns:
        float: exp of the mean loss over the N - 1 targets.

    Raises:
        ValueError: fewer than 2 ids, or window outside 1 … context_length (the numbers
            in the message).
    """
    ### BEGIN SOLUTION
    if len(ids) < 2 or not 1 <= window <= config.context_length:
        raise ValueError(f"{len(ids)} ids in windows of {window}, with a context of {config.context_length}")
    loss = 0.0
    with torch.no_grad():
        for start in range(0, len(ids) - 1, window):
            inputs, targets = ids[start : start + window], ids[start + 1 : start + window + 1]
            inputs = inputs[: len(targets)]  # the last token of the text is no input
            log_p = torch.log_softmax(language_model(inputs[None], params, config)[0], dim=-1)  # [n, V]
            loss -= log_p.gather(1, targets[:, None]).double().sum().item()
    return math.exp(loss / (len(ids) - 1))
    ### END SOLUTION


# %% check="perplexity"
small = LMConfig(
    vocab_size=11, d_model=6, num_layers=2, num_heads=2, d_ff=10, context_length=9
)
zeros = with_tensors(
    random_params(small),
    [torch.zeros_like(t) for t in list_tensors(random_params(small))],
)
expect(
    perplexity(zeros, torch.arange(11), small, 4),
    11.0,
    atol=1e-4,
    hint="All eleven tokens equally likely: 11.",
)
biased = with_tensors(zeros, list_tensors(zeros)) | {"lnf_beta": torch.eye(6)[0]}
biased["embed"] = torch.zeros(11, 6)
# token 7 has the weight 10, the ten others 1: a half against a twentieth each
biased["embed"][7, 0] = math.log(10.0)
# Targets are 7 7 7 | 3: (1/2)^3 · (1/20), so the perplexity is (8 · 20)^(1/4).
expect(
    perplexity(biased, torch.tensor([3, 7, 7, 7, 3]), small, 3),
    160 ** (1 / 4),
    atol=1e-4,
    hint="6.3 or above? The mean is over the four tokens, not over the two windows.",
)

# %% [markdown]
# ### It learns
#
# Here everything you wrote comes together. A model of 0.9 million parameters sees 1200 batches of 12 windows. **This
# takes about ten minutes of processor time**, less on the clock where there are two cores, and on a GPU, where it
# computes in bfloat16, less still.
#
# Once a minute everything is kept in a file, and also when you press *Interrupt*: run the cell again, and training goes
# on from there. The file's name, `shakespeare_….pt`, has a fingerprint of all that the weights depend on: sizes, steps,
# text, vocabulary, and the code of your functions and of what they call. So a change of any of them trains anew, and
# weights of another configuration are never loaded. Files that you do not need any more you may delete.
#
# What to expect: with the answers of the course's staff it took 460 seconds on one core of a small server. The
# perplexity of the first 5000 held-out tokens was 57 after 200 steps, 39 after 600 and 24 at the end; of all of them it
# was 30. Tokens of this vocabulary are 2.06 bytes long on the average, so that is 2.39 bits a byte.
#
# **Predict first.** What is the loss before the first step? Write it down, as a number.

# %% predict="train"
predict(
    "What is the loss before the first step?",
    answer=6.64,
    atol=0.15,
    because="A model that knows nothing has ln V, and the vocabulary has 256 bytes and "
    "512 merges: ln 768 = 6.64.",
)

# %% demo="train"
import time

import matplotlib.pyplot as plt
from tqdm import tqdm

config = LMConfig(
    256 + len(vocabulary),
    d_model=128,
    num_layers=4,
    num_heads=4,
    d_ff=512,
    context_length=128,
)
STEPS, BATCH, LENGTH = (3, 2, 32) if QUICK else (1200, 12, 128)
SCHEDULE = {"warmup": STEPS // 12, "total": STEPS, "peak": 3e-3, "floor": 3e-4}
YOURS = (
    language_model,
    next_token_loss,
    sample_windows,
    learning_rate,
    clip_gradients,
    adamw_step,
)
TRAINED_ON = (config, STEPS, BATCH, LENGTH, SCHEDULE, vocabulary, training_ids)
MODEL = Path(f"shakespeare_{fingerprint(*TRAINED_ON, *YOURS)}.pt")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def on_device(params, device):
    return with_tensors(params, [tensor.to(device) for tensor in list_tensors(params)])


def one_step(params, state, step):
    """The loss of a batch, and parameters and the optimizer's state after a step on
    it.
    """
    inputs, targets = (
        ids.to(device) for ids in sample_windows(training_ids, BATCH, LENGTH, seed=step)
    )
    leaves = [tensor.detach().requires_grad_() for tensor in list_tensors(params)]
    with torch.autocast(
        device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"
    ):
        loss = next_token_loss(
            language_model(inputs, with_tensors(params, leaves), config), targets
        )
    gradients, _ = clip_gradients(list(torch.autograd.grad(loss, leaves)), max_norm=1.0)
    rate = learning_rate(step, **SCHEDULE)
    stepped, state = adamw_step(
        [leaf.detach() for leaf in leaves], gradients, state, rate
    )
    return loss.item(), with_tensors(params, stepped), state


# All that training knows, in one dict that each step replaces: whenever you interrupt,
# it is whole.
run = {
    "step": 0,
    "params": random_params(config),
    "state": None,
    "losses": [],
    "held_out": [],
}
if MODEL.exists():
    run = torch.load(MODEL, weights_only=True, map_location="cpu")
    print(f"{MODEL}: {run['step']} of {STEPS} steps are made")
run["params"] = on_device(run["params"], device)
if run["state"]:
    run["state"] |= {
        name: [tensor.to(device) for tensor in run["state"][name]]
        for name in ("m", "v")
    }
kept = time.monotonic()
bar = tqdm(total=STEPS, initial=run["step"], desc="training", unit="step")
try:
    while run["step"] < STEPS:
        step = run["step"]
        loss, params, state = one_step(run["params"], run["state"], step)
        held_out = run["held_out"]
        if step % 200 == 0 or step == STEPS - 1:
            held_out = [
                *held_out,
                (
                    step,
                    math.log(
                        perplexity(
                            params, held_out_ids[:5_000].to(device), config, LENGTH
                        )
                    ),
                ),
            ]
            bar.write(f"step {step}: loss {loss:.2f}, held out {held_out[-1][1]:.2f}")
        run = {
            "step": step + 1,
            "params": params,
            "state": state,
            "losses": [*run["losses"], loss],
            "held_out": held_out,
        }
        bar.update()
        if run["step"] == STEPS or time.monotonic() - kept > 60:
            save_whole(run, MODEL)
            kept = time.monotonic()
except KeyboardInterrupt:
    save_whole(run, MODEL)
    bar.write(
        f"interrupted after {run['step']} of {STEPS} steps: run this cell again to "
        "go on"
    )
finally:
    bar.close()

trained = on_device(run["params"], "cpu")  # what follows is small, and draws on the CPU
if run["losses"]:
    figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
    axis.plot(run["losses"], linewidth=0.7, label="batches of the training text")
    axis.plot(
        *zip(*run["held_out"], strict=True),
        "o-",
        color="#c1666b",
        label="held-out text",
    )
    axis.set(
        xlabel="step",
        ylabel="loss (nats a token)",
        title="A language model learns Shakespeare",
    )
    axis.legend()
    plt.show()

reached = perplexity(trained, held_out_ids, config, config.context_length)
bits = math.log2(reached) * len(held_out_ids) / len(held_out_bytes)
print(f"held-out perplexity {reached:.1f} a token, {bits:.2f} bits a byte")

# %% [markdown]
# ## 11. It writes
#
# ★★☆ · about 30 minutes
#
# Read the prompt into an empty cache, draw the next token from the last row's distribution, feed it, and so on. Each
# token goes through the model **once**. The suite counts operations: $N$ prompt tokens and all new ones but the last.
# (Who reads the last one?)
#
# Rows of a batch are different texts, and each throws its own dice. The dice are a function of the `seed`.
#
# With learned positions there is an end: GPT-2 has 1024 rows in its table, your model 128. Whoever wants a longer text
# has to begin anew with a part of it as prompt, as the cell below does.
#
# **Predict first.** A prompt of 5 and 4 new tokens in a context of 8: does it fit?

# %% predict="sample"
predict(
    "Does it fit?",
    "yes",
    "no",
    answer="yes",
    because="The last new token is never read: 5 + 3 = 8.",
)


# %% question="sample"
def sample(params, prompt, num_new, config, temperature=1.0, top_k=None, seed=0):
    """Continue texts, through a KV cache.

    Args:
        params, config: as in language_model.
        prompt: int64 [B, N], N at least 1.
        num_new: how many tokens to add to each row, 0 or more.
        temperature, top_k: as in filtered_probabilities; temperature 0 is greedy.
        seed: int. Equal seeds give equal texts; torch's own dice stay as they were.

    Returns:
        int64 [B, N + num_new]. Each token is read once; the last one is not read.

    Raises:
        ValueError: num_new is negative or the prompt is empty (the number in the
            message), or N + num_new - 1 is more than context_length, which stands in
            the message; and whatever filtered_probabilities
            refuses.
    """
    ### BEGIN SOLUTION
    n = prompt.shape[1]
    if num_new < 0 or n < 1:
        raise ValueError(f"{num_new} new tokens after a prompt of {n}")
    if n + num_new - 1 > config.context_length:
        raise ValueError(f"{n + num_new - 1} tokens to read in a context of {config.context_length}")
    dice = torch.Generator().manual_seed(seed)
    cache, ids, chunk = empty_cache(params, config, len(prompt)), prompt, prompt
    with torch.no_grad():
        for _ in range(num_new):
            logits = language_model(chunk, params, config, cache)[:, -1]  # [B, V]
            p = filtered_probabilities(logits, temperature, top_k)
            chunk = torch.multinomial(p, 1, generator=dice)  # [B, 1]: all that the next step reads
            ids = torch.cat([ids, chunk], dim=1)
    return ids
    ### END SOLUTION


# %% check="sample"
# A model in which token i is followed by i + 1, modulo 6: its attention adds
# nothing, and its MLP turns i into i + 1.
ring = LMConfig(
    vocab_size=6, d_model=6, num_layers=1, num_heads=1, d_ff=6, context_length=8
)
blank = with_tensors(
    random_params(ring),
    [torch.zeros_like(t) for t in list_tensors(random_params(ring))],
)
chain = blank | {"embed": 10 * torch.eye(6), "lnf_gamma": torch.ones(6)}
mlp_of_chain = {
    "ln2_gamma": torch.ones(6),
    "w1": 5 * torch.eye(6),
    "w2": 10 * torch.eye(6).roll(1, dims=1),
}
chain["blocks"] = [blank["blocks"][0] | mlp_of_chain]
expect(
    sample(chain, torch.tensor([[2], [5]]), 4, ring, temperature=0.0),
    torch.tensor([[2, 3, 4, 5, 0], [5, 0, 1, 2, 3]]),
    hint="The prompt first, then what follows. Each row goes on from its own last token.",
)
expect(
    list(sample(chain, torch.tensor([[1, 2, 3, 4, 5]]), 4, ring).shape),
    [1, 9],
    hint="8 tokens are read: it fits.",
)
start = torch.zeros(20, 1, dtype=torch.int64)
# all six tokens are equally likely here
texts = sample(blank, start, 7, ring, seed=3)
expect(
    sample(blank, start, 7, ring, seed=3),
    texts,
    hint="The same seed gives the same texts.",
)
expect(
    bool((texts[1:] != texts[:1]).any()),
    True,
    hint="All rows have the same text: each row throws its own dice.",
)


# %% demo="write"
def write(prompt, num_new, params, config, vocabulary, **settings):
    """Text that continues the prompt, up to a token that ends it; a full context goes
    on from its second half.
    """
    ids, seed = bpe_encode(as_bytes(prompt), vocabulary)[None], 0
    # GPT-2 has one token after all merges, <|endoftext|>, which has no bytes
    special = 256 + len(vocabulary)
    while num_new > 0 and not (ids >= special).any():
        read = ids[:, -(config.context_length // 2) :]
        fit = min(num_new, config.context_length - read.shape[1] + 1)
        ids = torch.cat(
            [
                ids,
                sample(params, read, fit, config, seed=seed, **settings)[
                    :, read.shape[1] :
                ],
            ],
            dim=1,
        )
        num_new, seed = num_new - fit, seed + 1
    ends = (ids[0] >= special).nonzero()
    return as_text(
        bpe_decode(ids[0, : ends[0, 0]] if len(ends) else ids[0], vocabulary)
    )


print(
    write(
        "ROMEO:\n",
        20 if QUICK else 400,
        trained,
        config,
        vocabulary,
        temperature=0.8,
        top_k=50,
    )
)

# %% [markdown]
# **For the leaderboard**, if your course has one. The cell below writes your weights and your vocabulary to a file; hand
# it in beside the notebook. What counts is how many bits your `language_model` needs for each byte of a text that you have
# not seen, cut by your `bpe_encode`. Everything that is yours may differ from this notebook's: sizes, steps, optimizer,
# schedule, merges. The file may have 16 MB, and the model 4 million operations a byte, unless your course says otherwise.

# %% demo="weights"
import json
from dataclasses import asdict

from safetensors.torch import save_file


def by_name(value, name):
    """The tensors in nested dicts and lists, by names like params.blocks.0.w_q."""
    if isinstance(value, torch.Tensor):
        return {name: value.contiguous()}
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    tensors = {}
    for key, part in parts:
        tensors |= by_name(part, f"{name}.{key}")
    return tensors


save_file(
    by_name(trained, "params") | {"merges": torch.tensor(vocabulary)},
    "a9_language_model.safetensors",
    metadata={"settings": json.dumps(asdict(config))},
)

# %% [markdown]
# ## 12. Heads that look up what came next last time
#
# ★★☆ · about 15 minutes
#
# Give a model a row of *random* tokens, and then the same row again. Nothing in the language helps to predict the
# second half, and yet transformers that were trained for long predict it, because some of their heads have learned a
# trick: look for the place where the present token stood before, and attend to the token **after** it. Olsson et al.
# (2022) call them induction heads.
#
# How much does a head do that? With a period of $P$ tokens, token $i \ge P$ stood at $i - P$ before, and $i - P + 1$
# came next. So average the weight on that key over all queries that have one:
#
# $$\text{score} = \frac{1}{N - P}\sum_{i=P}^{N-1} A_{i,\,i-P+1}$$
#
# The numbers lie on a diagonal of $A$, but the diagonal is one longer than the sum. Which of its elements does not
# belong?
#
# **Predict first.** A head that gives equal weight to all tokens up to its own, $N = 6$ and $P = 3$: its score?

# %% predict="induction_score"
predict(
    "What is its score?",
    answer=0.2056,
    atol=0.001,
    because="(1/4 + 1/5 + 1/6) / 3.",
)


# %% question="induction_score"
def induction_score(weights, period):
    """How much heads attend to the token after the last occurrence of the present one
    (Olsson et al., 2022).

    Args:
        weights: [..., N, N], attention weights on a sequence that repeats itself with
            this period.
        period: P, from 1 to N - 1.

    Returns:
        [...] in the dtype of weights: the mean over queries i = P … N - 1 of the weight
        on key i - P + 1.

    Raises:
        ValueError: weights are not square, or period is outside 1 … N - 1 (the sizes in
            the message).
    """
    ### BEGIN SOLUTION
    n_q, n_k = weights.shape[-2:]
    if n_q != n_k or not 1 <= period < n_q:
        raise ValueError(f"weights of {n_q} x {n_k} tokens, and a period of {period}")
    queries = torch.arange(period, n_q)
    return weights[..., queries, queries - period + 1].mean(dim=-1)  # [..., N - P] -> [...]
    ### END SOLUTION


# %% check="induction_score"
# row i: 1 / (i + 1) up to the diagonal
even = torch.ones(6, 6).tril() / torch.arange(1, 7)[:, None]
expect(
    induction_score(even[None], 3),
    torch.tensor([(1 / 4 + 1 / 5 + 1 / 6) / 3]),
    hint="Queries 3, 4 and 5 have seen their token before. With query 2 it would be a mean over four.",
)
expect(
    induction_score(torch.eye(4).roll(-2, dims=1), 3),
    torch.tensor(1.0),
    hint="Query 3 looks at key 1: all of it.",
)

# %% [markdown]
# ### What your model looks at
#
# The cell below reads a repeated row of random tokens, once with the model as it was at the start and once as it is
# now. To see the weights it puts a function of its own in the place of `attention_pattern` for a moment. Then it draws
# the head with the highest score, and the heads of the first layer on a real sentence.
#
# What to expect: a head that gives equal weight to all tokens has 0.014 here. With the answers of the course's staff
# the highest score after 1200 steps was 0.017, so no head has learned the trick. Eight minutes are not enough for it.
# Train for longer, or measure GPT-2 once you have its weights at the end of this notebook.

# %% demo="attention_maps"
import matplotlib.pyplot as plt

attention_pattern_as_given = attention_pattern


def patterns(ids, params):
    """The attention weights of every layer, [L, H, N, N], while the model reads ids
    [N]; None where it cannot see them.
    """
    # where the library looks the function up, and where you do
    places = (causal_attention.__globals__, globals())
    seen = []

    def watched(q, k):
        seen.append(attention_pattern_as_given(q, k))
        return seen[-1]

    for place in places:
        place["attention_pattern"] = watched
    try:
        with torch.no_grad():
            language_model(ids[None], params, config)
    finally:
        for place in places:
            place["attention_pattern"] = attention_pattern_as_given
    return torch.cat(seen) if seen else None


def draw_induction(period):
    """The scores of all heads on a repeated row of random tokens, and the head with the
    highest one.
    """
    g = torch.Generator().manual_seed(0)
    repeated = torch.randint(config.vocab_size, (period,), generator=g).repeat(3)[
        : config.context_length - 8
    ]
    now = patterns(repeated, trained)
    scores = {
        "at the start": induction_score(
            patterns(repeated, random_params(config)), period
        )
    }
    scores["trained"] = induction_score(now, period)
    highest = max(float(score.max()) for score in scores.values())
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for axis, (name, score) in zip(axes, scores.items(), strict=False):
        image = axis.imshow(score, vmin=0, vmax=highest, cmap="viridis")
        axis.set(title=f"induction scores, {name}", xlabel="head", ylabel="layer")
        axis.set_xticks(range(config.num_heads))
        axis.set_yticks(range(config.num_layers))
    figure.colorbar(image, ax=axes[:2])
    layer, head = divmod(int(scores["trained"].argmax()), config.num_heads)
    axes[2].imshow(now[layer, head], cmap="magma")
    axes[2].set(
        title=f"layer {layer}, head {head}, on {period} tokens repeated",
        xlabel="key",
        ylabel="query",
    )
    plt.show()


def draw_first_layer(text):
    """What every head of the first layer looks at in a text."""
    sentence = bpe_encode(as_bytes(text), vocabulary)
    pieces = [
        as_text(bpe_decode(token[None], vocabulary)).replace(" ", "·")
        for token in sentence
    ]
    _, axes = plt.subplots(1, config.num_heads, figsize=(14, 4.2), layout="constrained")
    for head, (axis, weights) in enumerate(
        zip(axes, patterns(sentence, trained)[0], strict=True)
    ):
        axis.imshow(weights, cmap="magma")
        axis.set_xticks(range(len(pieces)), pieces, rotation=90, fontsize=7)
        axis.set_yticks(range(len(pieces)), pieces, fontsize=7)
        axis.set_title(f"layer 0, head {head}")
    plt.show()


if patterns(torch.arange(4), trained) is None:
    print(
        "your model computes its attention without attention_pattern, so this cell "
        "cannot see the weights"
    )
else:
    draw_induction(period=40)
    draw_first_layer("But soft, what light through yonder window breaks?")

# %% [markdown]
# ## 13. Published weights
#
# ★★★ · about 35 minutes
#
# Your model has GPT-2's architecture, so it can have GPT-2's weights. They are published as a *state dict*, names and
# tensors. What is in it:
#
# | name | shape | what it is |
# |---|---|---|
# | `wte.weight`, `wpe.weight` | $[V, D]$, $[\text{context}, D]$ | embedding and positions |
# | `h.0.ln_1.weight`, `.bias` | $[D]$ | $\gamma$ and $\beta$ of the first norm of block 0 |
# | `h.0.attn.c_attn.weight`, `.bias` | $[D, 3D]$, $[3D]$ | queries, keys, values, fused in this order |
# | `h.0.attn.c_proj.weight`, `.bias` | $[D, D]$, $[D]$ | the attention's output |
# | `h.0.ln_2.…`, `h.0.mlp.c_fc.…`, `h.0.mlp.c_proj.…` | | second norm; the MLP, $[D, F]$ and $[F, D]$ |
# | `ln_f.weight`, `.bias` | $[D]$ | the last norm |
# | `lm_head.weight` | $[V, D]$ | the head: it may be missing, since it is the embedding |
#
# ![c_attn's columns: queries of all heads, then keys of all heads, then values](figures/fused.svg)
#
# Some files have `transformer.` in front of every name but the head's. Other entries (`attn.bias` is an old causal
# mask) mean nothing to you. And one trap that has cost many an afternoon: GPT-2's matrices were written with a class
# called `Conv1D`, which stores `[in, out]`, as this course does; everybody who expects `nn.Linear` transposes. A square
# matrix does not complain.
#
# A file that does not fit should be refused by name, not loaded in part: a block too many as much as one too few. And
# a head that is not the embedding, because your model would quietly use the wrong one.
#
# **Predict first.** With $H = 12$ and $d = 64$, in which columns of `c_attn` are the values of head 3?

# %% predict="from_gpt2"
predict(
    "The first of these columns?",
    answer=1728,
    because="Values begin at 2 · 768 = 1536, and head 3 at 3 · 64 = 192 from there.",
)


# %% question="from_gpt2"
def from_gpt2(state_dict, config):
    """Parameters of language_model from GPT-2's published layout.

    Args:
        state_dict: dict from name to tensor, as above. All names but lm_head.weight may
            begin with "transformer.". Names that are not in the table are passed over.
        config: vocab_size, d_model, num_layers, d_ff and context_length are those of
            the file.

    Returns:
        params as language_model wants them, in the dtypes of the file; tensors may
        share the file's memory.

    Raises:
        ValueError: a tensor of the table is missing (its name in the message) or has
            another shape than the config says (the sizes it has); there is a tensor
            of a block num_layers, whichever it is (the number in the message); or
            lm_head.weight is not equal to wte.weight.
    """
    ### BEGIN SOLUTION
    prefix = "transformer." if "transformer.wte.weight" in state_dict else ""
    d, f = config.d_model, config.d_ff

    def take(name, *shape):
        tensor = state_dict.get(prefix + name)
        if tensor is None or tensor.shape != shape:
            found = "is missing" if tensor is None else f"has the shape {list(tensor.shape)}"
            raise ValueError(f"{prefix + name} {found}; it should be {list(shape)}")
        return tensor

    def take_block(h):
        w_q, w_k, w_v = take(f"{h}.attn.c_attn.weight", d, 3 * d).split(d, dim=1)  # Conv1D: [in, out] already
        b_q, b_k, b_v = take(f"{h}.attn.c_attn.bias", 3 * d).split(d)
        return {
            "ln1_gamma": take(f"{h}.ln_1.weight", d), "ln1_beta": take(f"{h}.ln_1.bias", d),
            "w_q": w_q, "b_q": b_q, "w_k": w_k, "b_k": b_k, "w_v": w_v, "b_v": b_v,
            "w_o": take(f"{h}.attn.c_proj.weight", d, d), "b_o": take(f"{h}.attn.c_proj.bias", d),
            "ln2_gamma": take(f"{h}.ln_2.weight", d), "ln2_beta": take(f"{h}.ln_2.bias", d),
            "w1": take(f"{h}.mlp.c_fc.weight", d, f), "b1": take(f"{h}.mlp.c_fc.bias", f),
            "w2": take(f"{h}.mlp.c_proj.weight", f, d), "b2": take(f"{h}.mlp.c_proj.bias", d),
        }  # fmt: skip

    if any(name.startswith(f"{prefix}h.{config.num_layers}.") for name in state_dict):
        raise ValueError(f"there is a block h.{config.num_layers}, in a model of {config.num_layers} blocks")
    embed = take("wte.weight", config.vocab_size, d)
    if not torch.equal(state_dict.get("lm_head.weight", embed), embed):
        raise ValueError("lm_head.weight is not wte.weight: this head is not tied")
    return {
        "embed": embed,
        "positions": take("wpe.weight", config.context_length, d),
        "blocks": [take_block(f"h.{layer}") for layer in range(config.num_layers)],
        "lnf_gamma": take("ln_f.weight", d),
        "lnf_beta": take("ln_f.bias", d),
    }
    ### END SOLUTION


# %% check="from_gpt2"
g = torch.Generator().manual_seed(0)
tiny = LMConfig(
    vocab_size=5, d_model=4, num_layers=1, num_heads=2, d_ff=6, context_length=3
)
SHAPES = {
    "ln_1.weight": [4], "ln_1.bias": [4],
    "attn.c_attn.weight": [4, 12], "attn.c_attn.bias": [12],
    "attn.c_proj.weight": [4, 4], "attn.c_proj.bias": [4],
    "ln_2.weight": [4], "ln_2.bias": [4],
    "mlp.c_fc.weight": [4, 6], "mlp.c_fc.bias": [6],
    "mlp.c_proj.weight": [6, 4], "mlp.c_proj.bias": [4],
}  # fmt: skip
published = {
    f"h.0.{name}": torch.randn(shape, generator=g) for name, shape in SHAPES.items()
}
published |= {
    "wte.weight": torch.randn(5, 4, generator=g),
    "wpe.weight": torch.randn(3, 4, generator=g),
}
published |= {
    "ln_f.weight": torch.ones(4),
    "ln_f.bias": torch.zeros(4),
    "h.0.attn.bias": torch.ones(1, 1, 3, 3),
}
params = from_gpt2(published, tiny)
expect(
    params["embed"],
    published["wte.weight"],
    hint="wte is the table of token embeddings, wpe that of positions.",
)
block = params["blocks"][0]
expect(
    block["w_k"],
    published["h.0.attn.c_attn.weight"][:, 4:8],
    hint="Columns 4 to 7 of 12: keys come second.",
)
expect(
    block["b_v"],
    published["h.0.attn.c_attn.bias"][8:],
    hint="The bias is cut like the columns.",
)
expect(
    block["w_o"],
    published["h.0.attn.c_proj.weight"],
    hint="Conv1D stores [in, out], as we do: no transpose.",
)
expect(
    list(language_model(torch.tensor([[0, 4, 2]]), params, tiny).shape),
    [1, 3, 5],
    hint="The model runs with it.",
)
prefixed = {f"transformer.{name}": tensor for name, tensor in published.items()}
prefixed["lm_head.weight"] = published["wte.weight"]
expect(
    from_gpt2(prefixed, tiny)["positions"],
    published["wpe.weight"],
    hint='With "transformer." before the names.',
)
for reason, broken in (
    (
        "a missing tensor",
        {
            name: tensor
            for name, tensor in published.items()
            if name != "h.0.ln_2.bias"
        },
    ),
    ("a block too many", published | {"h.1.ln_1.weight": torch.ones(4)}),
    ("a head of its own", published | {"lm_head.weight": torch.zeros(5, 4)}),
):
    try:
        from_gpt2(broken, tiny)
        refused = False
    except ValueError:
        refused = True
    expect(
        refused,
        True,
        hint=f"A file with {reason} should be refused with a ValueError.",
    )

# %% [markdown]
# ## 14. Find the error in the notes
#
# ★★☆ · about 20 minutes
#
# The notes list what an encoder–decoder does, and end the list with: *Predict the next character based on this data.*
# Some pages before, they had said that we study and predict **tokens**. Does it matter what one calls it?
#
# It does as soon as somebody acts on it. Suppose that you want the likeliest next *character*, say for a keyboard
# that lights up one key. By the notes the model has predicted it: take the likeliest token, and light up its first
# byte. But the probability of a byte is shared among **all tokens that begin with it**:
#
# $$P(\text{next byte} = b) = \sum_{\text{tokens that begin with } b} p(\text{token})$$
#
# Prove by numbers that the two disagree. Given a vocabulary, find a distribution over its tokens in which one token is
# clearly the likeliest, and yet the next byte is clearly more likely to be another than the first byte of that token.
# Any such distribution is right. For which vocabularies is there none?
#
# (It is also the reason why perplexities a character, a byte and a token cannot be compared before they are
# converted.)


# %% question="misleading_token"
def misleading_token(merges):
    """A next-token distribution whose likeliest token does not begin with the likeliest
    next byte.

    Args:
        merges: list of pairs of ids, as in bpe_decode.

    Returns:
        float64 [256 + len(merges)], a tensor or a numpy array, not negative, with sum
        1: one token has at least 0.05 more than every other token, and some byte is at
        least 0.05 likelier as the next byte than the first byte of that token.

    Raises:
        ValueError: there is no such distribution: without merges, every token is a
            byte. 256 in the message.
    """
    ### BEGIN SOLUTION
    if not merges:
        raise ValueError("256 tokens that are bytes: the likeliest token is the likeliest byte")
    merged = 256  # begins with the same byte as the token of that byte
    first = int(bpe_decode(torch.tensor([merged]), merges)[0])
    p = torch.zeros(256 + len(merges), dtype=torch.float64)
    p[merged] = p[first] = 0.3
    p[(first + 1) % 256] = 0.4  # the likeliest token, and its byte has nobody else
    return p
    ### END SOLUTION


# %% check="misleading_token"
merges = [(108, 111), (256, 119), (32, 257)]  # lo, low, space low
p = torch.as_tensor(misleading_token(merges))
expect(
    [str(p.dtype), list(p.shape)],
    ["torch.float64", [259]],
    hint="A number for each of 256 bytes and three merges.",
)
expect(p.sum().item(), 1.0, hint="It is a distribution.")
first, second = p.topk(2).values.tolist()
expect(
    first - second >= 0.05, True, hint="One token must be clearly the likeliest."
)
next_byte = torch.zeros(256, dtype=torch.float64)
for token in range(259):
    next_byte[int(bpe_decode(torch.tensor([token]), merges)[0])] += p[token]
its_byte = int(bpe_decode(p.argmax()[None], merges)[0])
expect(
    bool(next_byte.max() - next_byte[its_byte] >= 0.05),
    True,
    hint=f"The likeliest token begins with {chr(its_byte)!r}, and no byte is likelier. Which tokens share one?",
)

# %% [markdown]
# ### The real thing
#
# With a network, this cell loads the 124 million weights of the smallest GPT-2, half a gigabyte, once, and your
# functions write with them: your `from_gpt2`, your `language_model`, your cache, your `sample`, and your `bpe_encode`
# with GPT-2's own merges. Its file of merges writes each byte as a printable character; the cell turns that into
# pairs of ids. (It cuts words almost as `split_words` does. The two agree on English text in ASCII.)
#
# GPT-2's vocabulary has one token more than bytes and merges: id 50256, `<|endoftext|>`, a **special token**. It stood
# between two documents when GPT-2 was trained, so the model writes it where a document would end. No bytes belong to
# it, and no text is encoded to it. So the text ends there.

# %% demo="gpt2"
import urllib.request

ADDRESS = "https://huggingface.co/openai-community/gpt2/resolve/main/"
GPT2 = LMConfig(
    vocab_size=50_257,
    d_model=768,
    num_layers=12,
    num_heads=12,
    d_ff=3072,
    context_length=1024,
)


def read_merges(lines):
    """GPT-2's merges as pairs of our ids, and for each of our ids the row of the
    published table.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    # row i is byte order[i]
    order = printable + [byte for byte in range(256) if byte not in printable]
    letters = [chr(byte) for byte in printable] + [
        chr(256 + n) for n in range(256 - len(printable))
    ]
    id_of = dict(zip(letters, order, strict=True))
    merges = []
    for line in lines:
        left, right = line.split(" ")
        merges.append((id_of[left], id_of[right]))
        id_of[left + right] = 255 + len(merges)
    rows = torch.arange(GPT2.vocab_size)
    rows[torch.tensor(order)] = torch.arange(256)
    return merges, rows


if QUICK:
    print("not loaded: only a quick look is wanted")
else:
    try:
        with urllib.request.urlopen(ADDRESS + "merges.txt", timeout=20) as answer:
            lines = answer.read().decode("utf-8").splitlines()[1:]
        file = torch.hub.load_state_dict_from_url(
            ADDRESS + "pytorch_model.bin", map_location="cpu", weights_only=True
        )
    except OSError as error:
        print(
            f"GPT-2's weights could not be loaded ({error}). With a network this cell "
            "writes with them."
        )
    else:
        gpt2_merges, rows = read_merges([line for line in lines if line])
        published = from_gpt2(file, GPT2)
        # our order of the bytes, at both ends
        published["embed"] = published["embed"][rows]
        opening = (
            "In a shocking discovery, students of a course on attention found that"
        )
        print(
            write(opening, 60, published, GPT2, gpt2_merges, temperature=0.8, top_k=50)
        )

# %% [markdown] written="what_perplexity_says" points=5
# ## 15. In your own words
#
# Your model has a held-out perplexity $p$ a token, with tokens of about two bytes. (a) A friend trains on single
# bytes, on the same text, and proudly reports a perplexity of 5 a byte. How do you find out whose model is better? Do
# it for your number. (b) The friend trains ten times as long: the loss on the training text keeps falling, that on
# the held-out text falls and then climbs. What has happened, and name two things that help. (c) Somebody suggests to
# begin with GPT-2's weights and to train those on your text. What are the two stages called, and why may a megabyte be
# enough for the second? Seven or eight sentences.
#
# ### BEGIN SOLUTION
# (a) Both have to be brought to the same unit, the loss of the whole text: bits a byte. The friend's model needs
# $\log_2 5 = 2.32$ bits a byte. Mine needs $\log_2 p$ bits a token, divided by the bytes in a token; with $p = 30$ and
# 2.06 bytes that is $4.91 / 2.06 = 2.38$ bits a byte. The friend's model is a little better, though 30 looks six times
# as bad as 5.
# (b) It has begun to learn the training text by heart instead of the language: it is overfitting. Stopping where the
# held-out loss is lowest helps, and so do more text, a smaller model, dropout or more weight decay. (c) The first stage
# is pre-training and the second fine-tuning. Spelling, grammar and much knowledge are in the weights already, learned
# from gigabytes of unlabelled text; the second stage has to move them only a little, towards one author's style, so
# far less text and fewer steps are needed.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 2 points: (a) the unit must be the same, for example bits a byte; the conversion is done with numbers. (1 point for
#   the idea without a right conversion.)
# - 2 points: (b) overfitting, learned by heart (1 point), and two remedies (1 point).
# - 1 point: (c) pre-training and fine-tuning; the weights already know the language, so little has to change.
# ### END MARK SCHEME
