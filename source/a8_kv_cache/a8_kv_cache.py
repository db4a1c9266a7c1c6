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
# # Assignment 8: decoding with a KV cache
#
# Training a transformer is parallel: the whole text is known, so all positions go through the layers together.
# Generating is not. Token $t+1$ can be chosen only after token $t$ is there, and the plain way to get it is to run the
# model on **everything so far** and to look at the last row of the logits. The next step runs the same model on the
# same tokens and one more. Nearly all of that work was done a moment ago.
#
# Which part can be kept? A causal model never lets a token see what comes after it, so whatever the layers computed
# for token $j$ is the same in every later step. And of all that, a later token asks for two things only: in each layer
# it compares its query with the **keys** of the tokens before it and mixes their **values**. Queries, residual stream,
# MLP activations of old tokens are never read again. So we store the keys and values, of every layer, and send only the
# new token through the model. That store is the KV cache. It turns a step that costs as much as reading the whole text
# into one that costs as much as reading one token.
#
# ![Without a cache every step recomputes all tokens; with a cache only the new one](figures/wavefront.svg)
#
# The idea takes five lines to tell; the bugs come from **state**. A cache lives between calls. It can be one position
# off, be moved once a layer instead of once a step, be left full by the last user, or hand out memory that it later
# writes over. None of that raises an error, and the text that comes out still looks like text. So most of this
# assignment is about a class and its contract, and it is graded by using your cache in every order a caller might.
#
# | question | what it does | difficulty, estimated time |
# | --- | --- | --- |
# | `KVCache` | keys and values of all layers, with a length | ★★☆, 45 min |
# | `ragged_positions` | positions in a batch of left-padded prompts | ★☆☆, 10 min |
# | `decode_step` | any number of new tokens through the model, past from the cache | ★★★, 60 min |
# | `prefill` | the prompt, in one step | ★☆☆, 5 min |
# | `generate_cached` | greedy generation within a budget of operations | ★★☆, 25 min |
# | `kv_cache_bytes` | what the cache weighs | ★☆☆, 10 min |
# | `SlidingWindowCache` | a cache that forgets | ★★☆, 35 min |
# | `speculative_accept` | several tokens a step, without changing the distribution | ★★☆, 25 min |
# | `unheard_query` | find the error in the notes | ★★☆, 25 min |
#
# > **Conventions.** Weights are `[in, out]` and multiply from the right, `x @ w` (`nn.Linear` stores the transpose).
# > Masks are boolean and **True = may attend**. Heads come right after the batch: `[B, H, N, d]`. Causal is aligned at
# > the bottom right: with $N_q$ queries and $N_k$ keys, query $i$ may see key $j$ when $j \le i + N_k - N_q$. Inputs
# > are never changed. Nothing here is trained: gradients do not matter.
# >
# > $B$ batch, $c$ new tokens in a step (the chunk), $n$ tokens so far with the chunk, $D$ model width, $H$ query heads,
# > $H_{kv}$ key and value heads, $d$ head size, $V$ vocabulary.

# %% given="imports"
import math
import time
from types import SimpleNamespace

import torch
from torch.utils.flop_counter import FlopCounterMode

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% [markdown]
# ## The model, without a cache
#
# This is the decoder of the earlier assignments: pre-norm blocks, a final norm, and two variations that many
# of today's models have. Keys and values may have fewer heads than queries: query head $h$ reads key head
# $\lfloor h / (H/H_{kv}) \rfloor$. And positions come either from a learned table, added to the embeddings, or, where
# `params` has no `"positions"`, from rotary embeddings, which turn queries and keys in every layer.
#
# Read `decoder_lm` line by line: `decode_step` is the same model, and you decide which lines change. Two things in
# the library are worth a second look. `causal_mask` takes $N_q$ and $N_k$, because with a cache there are fewer
# queries than keys. And `grouped_attention` does not copy the keys out to all query heads: it lays the query
# heads of a group under each other, as if they were more queries of the same key head.
#
# Your own answers may take the place of what is given: `python make_my_course.py` with the names of your notebooks so
# far makes them a module, and prints the line that goes into a cell below.


# %% given="library" module="library"
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


# %% [markdown]
# ## 1. A cache and its contract
#
# ★★☆ · about 45 minutes
#
# For each layer the cache holds keys and values, `[B, H_kv, n, d]`, and it knows one number for all layers: `length`,
# how many tokens are finished. A step of the model looks like this, with $c$ new tokens:
#
# * in layer 0: `append(0, k, v)` with the chunk's keys and values `[B, H_kv, c, d]`. It answers with everything up to
#   and including the chunk, `[B, H_kv, length + c, d]`, which is what this layer's queries attend to;
# * in layer 1, 2, …: the same. **`length` must not move in between**: all layers of one step start at the same place;
# * after the last layer: `advance(c)`, once. Now the chunk counts as past.
#
# `append` writes the chunk behind the first `length` tokens, whatever may lie there. So a second `append` to a
# layer before `advance` replaces the first, and `advance` with less than the chunk keeps its beginning only.
# Both sound odd and both are used: section 8 guesses several tokens, appends them all, and keeps those that were right.
#
# Where should the keys lie? Two honest ways, and the suite takes either:
#
# * **Concatenate**: make a new tensor, old ones and new ones. Simple, and nothing is ever written over; each step
#   copies the whole cache once.
# * **Preallocate**: room for `capacity` tokens from the start; a step writes $c$ slots and copies nothing.
#   This is what fast decoders do. The answer of `append` is then a *view* of the slots in use.
#
# ![A layer's slots: finished tokens, the chunk being appended, free slots](figures/slots.svg)
#
# People get two things wrong. First, **aliasing**: whoever holds a view sees every later write to its slots. What
# `append` returned must not change later, whatever happens to the cache. Writing *behind* a view is harmless. Which two
# events write into slots that somebody may already hold a view of? (The same question the other way round: does your
# cache hold a tensor of the caller's, which the caller may change?) Second, **state that is shared**: by all caches
# of the class, by two layers, or by today's generation and yesterday's.
#
# **Predict first.** A cache of capacity 4 gets `append(0, …)` with two tokens, `append(0, …)` with three, `advance(1)`,
# `append(0, …)` with two. How many tokens does the last one return, and from which of the calls do they come?

# %% predict="KVCache"
predict(
    "How many tokens does the last append return?",
    answer=3,
    because="One token counts, of the second call, since nothing advanced after the "
    "first. The two new ones follow it.",
)


# %% question="KVCache"
class KVCache:
    """Keys and values of the tokens so far, for every layer.

    A step copies what is kept at most once, and has no loop over tokens.

    Args:
        num_layers: layers, numbered from 0.
        batch: B.
        num_kv_heads: H_kv.
        d_head: d.
        capacity: the most tokens that fit.
        dtype: in which keys and values are stored and returned.
    """

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        ### BEGIN SOLUTION
        room = (batch, num_kv_heads, capacity, d_head)
        self._keys = [torch.zeros(room, dtype=dtype) for _ in range(num_layers)]
        self._values = [torch.zeros(room, dtype=dtype) for _ in range(num_layers)]
        self._shown = [0] * num_layers  # how many slots of each layer somebody may hold a view of
        self._capacity = capacity
        self._length = 0
        ### END SOLUTION

    @property
    def length(self):
        """int: how many tokens are finished. Moved by advance and reset only."""
        ### BEGIN SOLUTION
        return self._length
        ### END SOLUTION

    def append(self, layer, k, v):
        """Write a chunk behind the first `length` tokens of a layer.

        Args:
            layer: which layer.
            k, v: [B, H_kv, c, d], c >= 1, in any floating dtype.

        Returns:
            (k_all, v_all), each [B, H_kv, length + c, d] in the cache's dtype. `length`
            stays. They do not change later, whatever is done with the cache; and the
            cache does not change when the caller's k does.

        Raises:
            ValueError: k or v is not [B, H_kv, c, d], or length + c is more than the
                capacity (both in the message). The cache is then as it was.
        """
        ### BEGIN SOLUTION
        keys, values = self._keys[layer], self._values[layer]
        start, end = self._length, self._length + k.shape[2]
        if k.shape != v.shape or k.shape[:2] + k.shape[3:] != keys.shape[:2] + keys.shape[3:]:
            raise ValueError(f"a chunk of k {list(k.shape)} and v {list(v.shape)} for a cache {list(keys.shape)}")
        if end > self._capacity:
            raise ValueError(f"{end} tokens do not fit: the capacity is {self._capacity}")
        if self._shown[layer] > start:  # these slots were shown to somebody: they keep the old buffer
            keys = self._keys[layer] = keys.clone()
            values = self._values[layer] = values.clone()
        keys[:, :, start:end] = k
        values[:, :, start:end] = v
        self._shown[layer] = end
        return keys[:, :, :end], values[:, :, :end]  # views: nothing is copied
        ### END SOLUTION

    def advance(self, c):
        """Count the first c tokens of the chunks just appended as finished; once a
        step, after the last layer. There are c of them at least.

        Raises:
            ValueError: length + c is more than the capacity; both in the message.
        """
        ### BEGIN SOLUTION
        if self._length + c > self._capacity:
            raise ValueError(f"{self._length + c} tokens do not fit: the capacity is {self._capacity}")
        self._length += c
        ### END SOLUTION

    def reset(self):
        """Forget everything: the next append starts at the beginning."""
        ### BEGIN SOLUTION
        self._length = 0
        ### END SOLUTION


# %% check="KVCache"
def tokens(*numbers):
    """A chunk with one batch row, one head and head size 1, so that it can be
    read.
    """
    return torch.tensor(numbers, dtype=torch.float32).view(1, 1, -1, 1)


cache = KVCache(
    num_layers=2, batch=1, num_kv_heads=1, d_head=1, capacity=4, dtype=torch.float32
)
cache.append(0, tokens(1, 2), tokens(10, 20))
expect(
    cache.length,
    0,
    hint="append writes; it does not count. Layer 1 of the same step must start at 0 too.",
)
k_all, v_all = cache.append(1, tokens(5, 6), tokens(50, 60))
expect(
    k_all.flatten(), torch.tensor([5.0, 6.0]), hint="Layer 1 has keys of its own."
)
cache.advance(2)
expect(cache.length, 2, hint="advance(2), once a step, makes the two tokens count.")
k_all, v_all = cache.append(0, tokens(3), tokens(30))
expect(
    k_all.flatten(),
    torch.tensor([1.0, 2.0, 3.0]),
    hint="The two finished tokens of layer 0, then the chunk.",
)
expect(
    v_all.flatten(),
    torch.tensor([10.0, 20.0, 30.0]),
    hint="Values are stored beside the keys, not instead.",
)
k_again, _ = cache.append(0, tokens(7, 8), tokens(70, 80))
expect(
    k_again.flatten(),
    torch.tensor([1.0, 2.0, 7.0, 8.0]),
    hint="No advance in between: the 3 is replaced.",
)
expect(
    k_all.flatten(),
    torch.tensor([1.0, 2.0, 3.0]),
    hint="What the earlier append returned has changed under us.",
)
cache.reset()
expect(cache.length, 0, hint="After reset nothing counts.")

# %% [markdown]
# ## 2. Positions in a ragged batch
#
# ★☆☆ · about 10 minutes
#
# Prompts in a batch have different lengths. Generation appends on the right, so the shorter prompts are padded on
# the **left**: then every row's newest token stands in the last column, and one step serves all rows. But now column
# and position are two things. A row with two pads in front has its first real token in column 2, and to the model that
# token is at position 0. A row that is shifted by its padding would get other position embeddings than the same
# prompt alone, and so another answer.
#
# The mask says which columns are real tokens, True, and each real token's position is the number of real tokens
# before it. Padding gets position 0: it is never looked at, but 0 is safe to look up in a table; −1 is not.
#
# **Predict first.** The mask of a row is `F F T T T`. Its positions?

# %% predict="ragged_positions"
predict(
    "The position of the last token?",
    answer=2,
    because="0, 0, 0, 1, 2: padding does not count.",
)


# %% question="ragged_positions"
def ragged_positions(mask):
    """The position of every token in a padded batch.

    Args:
        mask: bool [B, N], True = a real token.

    Returns:
        int64 [B, N]: how many real tokens stand before it in its row; 0 at padding,
        wherever that is.

    Raises:
        ValueError: mask does not have two axes; its shape in the message.
    """
    ### BEGIN SOLUTION
    if mask.dim() != 2:
        raise ValueError(f"mask must be [B, N], got {list(mask.shape)}")
    return (mask.long().cumsum(dim=1) - 1).masked_fill(~mask, 0)
    ### END SOLUTION


# %% check="ragged_positions"
expect(
    ragged_positions(
        torch.tensor(
            [[False, False, True, True, True], [True, True, True, True, True]]
        )
    ),
    torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]),
    hint="The first real token of a row is at position 0. Off by one? Count the tokens before it, not with it.",
)

# %% [markdown]
# ## 3. One step, of any length
#
# ★★★ · about 60 minutes
#
# `decode_step` sends $c$ new tokens through the model. Where `decoder_lm` attends to the keys of its own input, it
# attends to what the cache returns. With $c = N$ on an empty cache it *is* `decoder_lm`; with $c=1$ it is one step of
# generation; and everything in between must agree with both, for every way to cut a sequence into chunks:
#
# $$\text{logits}(x_{1:N}) = [\,\text{step}(x_{1:a})\;\;\text{step}(x_{a+1:b})\;\;\cdots\,]$$
#
# In float64 the two sides agree to $10^{-10}$. This equation is the best test a cache can have; when it fails, the
# first chunk that differs tells you where to look.
#
# `decoder_lm` in the library is made of four parts, `embed`, `project`, `finish_block` and `to_logits`. They know no
# past, and they are yours to use here: what is left to write is what a cache changes. Things to think through first:
#
# * **Positions.** The chunk's tokens are not at $0, 1, \dots$; the cache knows how many came before. With a learned
#   table, a wrong start looks up wrong rows. With rotary embeddings it is subtler: only *differences* of positions
#   matter there, so a start that is wrong by the same amount for all changes nothing, and one that restarts at 0 in
#   each step ruins everything.
# * **Rotate once.** `project` turns a key by the position it is given, and that position never changes. What goes into
#   the cache, turned or unturned keys? (Values are never turned.)
# * **The mask.** There are $c$ queries and `length + c` keys. A triangle aligned at the *top left* lets the first new
#   token see the first old key and nothing else. In a step of one token no mask seems to be needed at all; in a chunk
#   it is.
# * **Advance once.** After the last layer, by the tokens of the chunk.
# * **Append, then attend**: a token attends to itself too.
#
# Use the cache through `length`, `append` and `advance` only: our tests bring caches of their own. Some of them have an
# attribute `window` besides (section 7 builds one): then a query sees itself and the `window - 1` tokens before it,
# and `append` may return fewer than `length + c` keys: the newest. `causal_mask` knows windows;
# `getattr(cache, "window", None)` reads an attribute that may not be there.
#
# For left-padded prompts there is `mask`, `[B, length + c]`: True where the column is a real token, for the past and
# the chunk. Padded keys are hidden from all queries (of every head), and positions come from `ragged_positions`.
# If the cache returned only the newest $n_k$ keys, which columns of the mask belong to them?
#
# At last, logits are expensive: $2 D V$ operations a token, in the smallest GPT-2 as much as five of its twelve
# layers. Who generates needs them for one position. `last_only=True` computes just that one.
#
# **Predict first.** A prompt of 1000 tokens, then 24 steps of one token. How many query–key pairs are scored in a head,
# against running the model on everything each time?

# %% predict="decode_step"
predict(
    "By about which factor are there fewer pairs with the cache?",
    answer=24.4,
    atol=1,
    because="524 800 with the cache; 25 passes of about 512 600 without.",
)


# %% question="decode_step"
def decode_step(params, ids, cache, config, mask=None, last_only=False):
    """Send new tokens through the model; the past comes from the cache, and the new
    keys and values go into it.

    Args:
        params: embed [V, D], blocks (a list of dicts), lnf_gamma, lnf_beta [D], unembed
            [D, V] (absent: tied), positions [context_length, D] (absent: rotary with
            config.theta), as in decoder_lm.
        ids: int64 [B, c], the new tokens, c >= 1.
        cache: has length, append(layer, k, v), which is called once a layer, and
            advance(c), which is called once, at the end. Keys go into it rotated. A
            cache with an attribute `window` lets a query see only itself and the window
            - 1 tokens before it, and returns the newest keys only.
        config: num_heads, num_kv_heads, theta and the other sizes.
        mask: bool [B, length + c], True = a real token, for left-padded prompts. None:
            all are real.
        last_only: logits of the chunk's last position only.

    Returns:
        logits [B, c, V], or [B, 1, V] with last_only, in the dtype of the params. The
        rows at padding may be anything. Afterwards the cache is c tokens longer. The
        chunk goes through at once: no Python loop over tokens. Keys and values are not
        copied for the query heads that share them.

    Raises:
        ValueError: an id outside the vocabulary (the id and V in the message); a
            position beyond a learned table (the number of positions needed and that of
            the table); a mask that is not [B, length + c] (its own sizes in the
            message). The cache is then as it was.
    """
    ### BEGIN SOLUTION
    (batch, c), start = ids.shape, cache.length
    vocab_size = params["embed"].shape[0]
    if ids.min() < 0 or ids.max() >= vocab_size:
        raise ValueError(f"ids from {int(ids.min())} to {int(ids.max())} in a vocabulary of {vocab_size}")
    if mask is None:
        positions = torch.arange(start, start + c)  # [c]
    elif mask.shape != (batch, start + c):
        raise ValueError(f"mask must be {[batch, start + c]}, got {list(mask.shape)}")
    else:
        positions = ragged_positions(mask)[:, start:]  # [B, c]
    if "positions" in params and positions.max() >= len(params["positions"]):
        raise ValueError(f"{int(positions.max()) + 1} positions, and a table of {len(params['positions'])}")

    x = embed(ids, positions, params)  # [B, c, D]
    for layer, block in enumerate(params["blocks"]):
        q, k, v = project(x, positions, block, params, config)  # [B, H, c, d], twice [B, H_kv, c, d]
        k, v = cache.append(layer, k, v)  # [B, H_kv, n_k, d]: the past and the chunk
        n_k = k.shape[2]
        may_attend = causal_mask(c, n_k, getattr(cache, "window", None))  # [c, n_k]
        if mask is not None:
            may_attend = may_attend & mask[:, None, None, -n_k:]  # [B, 1, c, n_k]
        x = finish_block(x, grouped_attention(q, k, v, may_attend), block)
    cache.advance(c)  # once a step, not once a layer
    return to_logits(x[:, -1:] if last_only else x, params)
    ### END SOLUTION


# %% check="decode_step"
config = make_config()
ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2], [2, 7, 1, 8, 2, 8, 1]])


def in_chunks(params, *sizes):
    """Logits of ids, cut into chunks of these sizes."""
    cache = KVCache(
        config.num_layers,
        2,
        config.num_kv_heads,
        config.d_head,
        capacity=7,
        dtype=torch.float64,
    )
    return torch.cat(
        [
            decode_step(params, chunk, cache, config)
            for chunk in ids.split(sizes, dim=1)
        ],
        dim=1,
    )


for learned in (True, False):
    params = random_params(config, learned=learned)
    whole = decoder_lm(ids, params, config)
    kind = "learned" if learned else "rotary"
    expect(
        in_chunks(params, 7),
        whole,
        atol=1e-10,
        hint="All tokens in one step on an empty cache: decoder_lm itself.",
    )
    expect(
        in_chunks(params, 4, 1, 1, 1),
        whole,
        atol=1e-10,
        hint=f"{kind} positions. Rows 0-3 right and row 4 wrong? Then the past is not what it was: look at the "
        "positions of the new token first, then at what was stored.",
    )
    expect(
        in_chunks(params, 2, 3, 2),
        whole,
        atol=1e-10,
        hint="Single tokens work and chunks do not? Then it is the mask: c queries, length + c keys.",
    )

# %% [markdown]
# ## 4. The prompt in one step
#
# ★☆☆ · about 5 minutes
#
# Reading the prompt is called prefill. It is one `decode_step` of $N$ tokens on an **empty** cache, so there is
# nothing to compute here, only something to refuse: a cache that still holds the last user's conversation. Without
# the check the new prompt continues the old text, and the answer is fluent, plausible and about something else.
#
# Prefill and the steps after it are two different loads for a machine. Prefill multiplies large matrices and is
# limited by arithmetic; a step of one token reads all weights and the whole cache to do two operations with each number
# it reads, and is limited by memory. Some serving systems run the two on different machines for that reason.


# %% question="prefill"
def prefill(params, prompt, cache, config, mask=None):
    """Read a prompt into an empty cache.

    Args:
        params, config: as in decode_step.
        prompt: int64 [B, N].
        cache: an empty cache.
        mask: bool [B, N], True = a real token, for left-padded prompts.

    Returns:
        logits [B, N, V], of all positions.

    Raises:
        ValueError: the cache is not empty; its length in the message.
    """
    ### BEGIN SOLUTION
    if cache.length != 0:
        raise ValueError(f"the cache already holds {cache.length} tokens: reset it, or use a new one")
    return decode_step(params, prompt, cache, config, mask)
    ### END SOLUTION


# %% check="prefill"
cache = KVCache(
    config.num_layers,
    2,
    config.num_kv_heads,
    config.d_head,
    capacity=9,
    dtype=torch.float64,
)
expect(
    prefill(params, ids, cache, config),
    decoder_lm(ids, params, config),
    atol=1e-10,
    hint="One step of all tokens.",
)
expect(cache.length, 7, hint="Afterwards the prompt is in the cache.")
try:
    prefill(params, ids, cache, config)
    refused = False
except ValueError:
    refused = True
expect(
    refused,
    True,
    hint="This cache still holds the first prompt: raise a ValueError.",
)

# %% [markdown]
# ## 5. Generating within a budget
#
# ★★☆ · about 25 minutes
#
# Greedy generation: read the prompt, take the most likely token, feed it back, and so on. With a cache each token goes
# through the layers **once**. Count what is needed, no more:
#
# * $N$ prompt tokens and all new tokens but the last go through the layers. (Who reads the last one?)
# * Logits are needed for one position a new token: the last of the prompt, then each fed one.
# * A token at position $p$ scores $p+1$ keys: the tokens that are there, not the cache's capacity.
#
# The suite counts floating point operations against this budget, to the percent; it does not use a stopwatch. It also
# generates twice in a row, with other sizes, and expects that the second generation knows nothing of the first. A cache
# that is made once, when Python reads your `def` line, is one of the oldest traps of the language.
#
# **Predict first.** A model of $P$ parameters spends about $2P$ operations a token. For a prompt of 100 and 100
# new tokens, how many tokens go through the layers with a cache, and how many without?

# %% predict="generate_cached"
predict(
    "With a cache, how many tokens go through the layers?",
    answer=199,
    because="100 of the prompt, and all new ones but the last. Without it 100 + 101 + …"
    " + 199 = 14 950.",
)


# %% question="generate_cached"
def generate_cached(params, prompt, num_new, config):
    """Greedy generation with a KV cache.

    Args:
        params, config: as in decode_step.
        prompt: int64 [B, N], N >= 1.
        num_new: how many tokens to add to each row, 0 or more.

    Returns:
        int64 [B, N + num_new]: the prompt and what follows. Each call starts with an
        empty cache of its own, and keeps to the budget of operations above.

    Raises:
        ValueError: num_new is negative (it stands in the message) or the prompt has no
            token.
    """
    ### BEGIN SOLUTION
    batch, n = prompt.shape
    if num_new < 0 or n < 1:
        raise ValueError(f"{num_new} new tokens after a prompt of {n}")
    capacity, dtype = n + num_new, params["embed"].dtype
    cache = KVCache(config.num_layers, batch, config.num_kv_heads, config.d_head, capacity, dtype)
    ids, chunk = prompt, prompt
    for _ in range(num_new):
        logits = decode_step(params, chunk, cache, config, last_only=True)  # [B, 1, V]
        chunk = logits[:, -1].argmax(dim=-1, keepdim=True)  # [B, 1]: all that the next step has to read
        ids = torch.cat([ids, chunk], dim=1)
    return ids
    ### END SOLUTION


# %% check="generate_cached"
prompt = torch.tensor([[3, 1, 4], [2, 7, 1]])
expect(
    generate_cached(params, prompt, 9, config),
    generate_uncached(params, prompt, 9, config),
    hint="The same tokens as the slow way. The first new one right and the second wrong? Look at what is fed.",
)
with FlopCounterMode(display=False) as counter:
    generate_cached(params, prompt, 9, config)
# A token: projections 2·10·(24+8+8) + 2·24·10, MLP 4·10·14, in 2 layers: 3680. Two
# rows of 3 + 8 tokens: 80 960.
# Scores and values: 2·2·6·4 = 96 a pair, in 2 layers; pairs 3·3 + (4+5+…+11) = 69 a
# row: 26 496.
# Logits: 2·10·13 a position, 9 positions a row: 4680. Together 112 136.
expect(
    counter.get_total_flops() <= 1.01 * 112_136,
    True,
    hint=f"The budget is 112 136 operations; yours took {counter.get_total_flops()}. Several times as many: the past "
    "is recomputed. A few per cent: logits that nobody reads, or a last token that nobody needs.",
)

# %% [markdown]
# ### See what is recomputed
#
# A row is a step, a column a token; dark where the token goes through the layers in that step. Without a cache the
# dark area is a triangle: quadratic work for linear output. With a cache it is the prompt and then a diagonal, the
# wavefront.

# %% demo="wavefront"
import matplotlib.pyplot as plt


class RecordingCache(KVCache):
    """A KVCache that takes note of every step."""

    def advance(self, c):
        steps.append((self.length, self.length + c))
        super().advance(c)


steps = []
cache = RecordingCache(
    config.num_layers,
    1,
    config.num_kv_heads,
    config.d_head,
    capacity=18,
    dtype=torch.float64,
)
chunk = torch.tensor([[3, 1, 4, 1, 5, 9]])
for _ in range(12):
    chunk = decode_step(params, chunk, cache, config, last_only=True)[:, -1:].argmax(
        dim=-1
    )

with_cache, without = torch.zeros(12, 18), torch.zeros(12, 18)
for step, (start, end) in enumerate(steps):
    with_cache[step, start:end] = 1
    without[step, :end] = 1
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for axis, work, name in zip(
    axes, (without, with_cache), ("without a cache", "with a cache"), strict=True
):
    axis.imshow(work, cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
    axis.set(
        xlabel="token",
        ylabel="step",
        title=f"{name}: {int(work.sum())} tokens through the layers",
    )
plt.show()

# %% [markdown]
# ### Count, then measure
#
# Operations are exact and the same on every machine. Seconds are what a user feels. Both, for a slightly larger
# model, as the number of new tokens grows. Each time is the better of two, after a run that is not timed: the first one
# also pays for what is set up once. The dashed line is what operations alone would promise. Why does the measured gain
# stay below it?

# %% demo="tokens_a_second"
import os

import matplotlib.pyplot as plt

medium = make_config(
    vocab_size=97,
    d_model=256,
    num_layers=3,
    num_heads=8,
    num_kv_heads=4,
    d_head=32,
    d_ff=1024,
    context_length=200,
)
medium_params = random_params(medium, dtype=torch.float32)
start = torch.tensor([[1, 2, 3, 4, 5]])
# Whoever only wants to see whether all cells run sets this variable: two short texts
# are enough then.
lengths = [8, 16] if "ATTENTION_KIT_QUICK" in os.environ else [8, 16, 32, 64]
flops, speed = {}, {}
for name, generate in (
    ("without a cache", generate_uncached),
    ("with a cache", generate_cached),
):
    flops[name], speed[name] = [], []
    for num_new in lengths:
        with FlopCounterMode(display=False) as counter:  # the run that is not timed
            generate(medium_params, start, num_new, medium)
        seconds = []
        for _ in range(2):
            begin = time.perf_counter()
            generate(medium_params, start, num_new, medium)
            seconds.append(time.perf_counter() - begin)
        flops[name].append(counter.get_total_flops())
        speed[name].append(num_new / min(seconds))
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for name in flops:
    axes[0].loglog(lengths, [count / 1e6 for count in flops[name]], "o-", label=name)
    axes[1].loglog(lengths, speed[name], "o-", label=name)
promised = [
    slow * more / less
    for slow, more, less in zip(
        speed["without a cache"],
        flops["without a cache"],
        flops["with a cache"],
        strict=True,
    )
]
axes[1].loglog(
    lengths, promised, "--", color="grey", label="without, times the saved operations"
)
axes[0].set(
    xlabel="new tokens",
    ylabel="million operations",
    title="Operations of a whole generation",
)
axes[1].set(
    xlabel="new tokens", ylabel="tokens a second", title="Speed on this machine"
)
for axis in axes:
    axis.set_xticks(lengths, lengths)
    axis.minorticks_off()
    axis.legend()
plt.show()

# %% [markdown]
# ## 6. What the cache weighs
#
# ★☆☆ · about 10 minutes
#
# The cache trades operations for memory, and at long contexts it can outweigh the model. Count it: keys **and** values,
# in every layer, for every token of every row, $H_{kv}\,d$ numbers each. It is the number of *key* heads that counts.
# This is why models share keys among query heads, though the number of operations hardly changes.
#
# **Predict first.** GPT-2's largest model (48 layers, 25 heads of 64) holds 1024 tokens in half precision: megabytes or
# gigabytes? And GPT-3 (96 layers, 96 heads of 128) with 2048?

# %% predict="kv_cache_bytes"
predict(
    "How many GiB does GPT-3 hold?",
    answer=9,
    because="2 · 96 · 96 · 128 · 2048 numbers of 2 bytes. GPT-2 holds 300 MiB.",
)


# %% question="kv_cache_bytes"
def kv_cache_bytes(config, n, batch, bytes_per_element):
    """Bytes of the keys and values of n tokens.

    Args:
        config: num_layers, num_kv_heads, d_head.
        n: tokens in each row.
        batch: rows.
        bytes_per_element: 4 for float32, 2 for float16 and bfloat16.

    Returns:
        int, bytes.

    Raises:
        ValueError: n, batch or bytes_per_element is below 1; it stands in the message.
    """
    ### BEGIN SOLUTION
    if min(n, batch, bytes_per_element) < 1:
        raise ValueError(f"sizes must be at least 1, got {n}, {batch}, {bytes_per_element}")
    one_token = 2 * config.num_layers * config.num_kv_heads * config.d_head  # 2: a key and a value
    return one_token * n * batch * bytes_per_element
    ### END SOLUTION


# %% check="kv_cache_bytes"
gpt2_xl = SimpleNamespace(num_layers=48, num_heads=25, num_kv_heads=25, d_head=64)
gpt3 = SimpleNamespace(num_layers=96, num_heads=96, num_kv_heads=96, d_head=128)
expect(
    kv_cache_bytes(gpt2_xl, 1024, 1, 2),
    300 * 2**20,
    hint="300 MiB. Half of it? A token leaves a key and a value.",
)
expect(kv_cache_bytes(gpt3, 2048, 1, 2), 9 * 2**30, hint="9 GiB, for one user.")

# %% demo="cache_memory"
import matplotlib.pyplot as plt

lengths = [2**step for step in range(8, 18)]
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for num_kv_heads, style in ((64, "-"), (8, "--"), (1, ":")):
    shared = SimpleNamespace(num_layers=80, num_kv_heads=num_kv_heads, d_head=128)
    sizes = [kv_cache_bytes(shared, n, 1, 2) / 2**30 for n in lengths]
    axis.loglog(
        lengths, sizes, style, color="tab:blue", label=f"{num_kv_heads} key heads"
    )
axis.axhline(140e9 / 2**30, color="grey", linewidth=1)
axis.text(
    lengths[0],
    140e9 / 2**30 * 1.15,
    "70 billion weights in half precision",
    color="dimgrey",
    fontsize=9,
)
axis.set(
    xlabel="tokens",
    ylabel="GiB",
    title="Cache of one user: 80 layers, 64 query heads of 128, half precision",
)
axis.legend(loc="lower right")
plt.show()

# %% [markdown]
# ## 7. A cache that forgets
#
# ★★☆ · about 35 minutes
#
# Some models let every token see only a **window**: itself and the $W-1$ tokens before it. (Information still travels
# further, one window a layer, like a stack of convolutions.) For such a model old keys are useless, and the cache need
# not grow: between two steps it holds at most $W-1$ tokens, however long the text gets.
#
# The methods and their meaning are those of `KVCache`, so that your `decode_step` works with either. What is new:
#
# * `append` returns at most $W-1$ earlier tokens, the newest ones in order, and then **all** of the chunk. A chunk
#   longer than the window is fine: its later tokens do not see its earlier ones, but those are still needed, by the
#   tokens between. Hiding them is the mask's work.
# * `length` counts all tokens seen, not those held: positions need it.
# * Forgetting happens in `advance`. `append` may be called again before it, and must then find the same past.
# * $W=1$ is allowed: a token sees itself only, and nothing is kept. Beware of slices like `[-0:]`.
#
# A list of the newest keys, cut in `advance`, does it. Fast decoders use a ring buffer: $W - 1$ slots, token $p$ in
# slot $p \bmod (W-1)$, the newest written over the oldest. Then the order in memory is not the order in time, and what
# `append` returns must be put in order and must not be a view (why?).
#
# `capacity` is a limit on `length`, as before. It is no size of memory: a window of 5 with a capacity of a million
# allocates next to nothing.
#
# **Predict first.** $W = 3$, chunks of 2, 4 and 1 tokens. How many tokens does `append` return each time?

# %% predict="SlidingWindowCache"
predict(
    "How many tokens does `append` return the third time?",
    answer=3,
    because="2, then 2 + 4 = 6, then the newest 2 and the new one.",
)


# %% question="SlidingWindowCache"
class SlidingWindowCache:
    """A KVCache for models in which a token sees itself and the window - 1 tokens
    before it.

    Its memory and the cost of a step do not grow with text or capacity, and what is
    forgotten is not kept alive.

    Args:
        num_layers, batch, num_kv_heads, d_head, capacity, dtype: as in KVCache;
            capacity limits length.
        window: W, how many tokens a query sees, itself included; at least 1. Also an
            attribute of the cache. ValueError below 1, with the number in the message.
    """

    def __init__(
        self, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window
    ):
        ### BEGIN SOLUTION
        if window < 1:
            raise ValueError(f"a window of {window} tokens: a token sees at least itself")
        self.window = window
        self._nothing = torch.zeros(batch, num_kv_heads, 0, d_head, dtype=dtype)
        self._num_layers = num_layers
        self._capacity = capacity
        self.reset()
        ### END SOLUTION

    @property
    def length(self):
        """int: how many tokens were seen and finished, the forgotten ones too."""
        ### BEGIN SOLUTION
        return self._length
        ### END SOLUTION

    def append(self, layer, k, v):
        """Put a chunk behind the newest min(length, window - 1) tokens of a layer.

        Args:
            layer: which layer.
            k, v: [B, H_kv, c, d], in any floating dtype.

        Returns:
            (k_all, v_all), each [B, H_kv, min(length, window - 1) + c, d] in the
            cache's dtype, in the order of time. They do not change later. A second
            append to a layer before advance replaces the first.

        Raises:
            ValueError: k or v is not [B, H_kv, c, d], or length + c is more than the
                capacity (both in the message). The cache is then as it was.
        """
        ### BEGIN SOLUTION
        batch, num_kv_heads, _, d_head = self._nothing.shape
        c = k.shape[2]
        if k.shape != v.shape or k.shape != (batch, num_kv_heads, c, d_head):
            raise ValueError(f"k {list(k.shape)} and v {list(v.shape)}, not {[batch, num_kv_heads, c, d_head]}")
        if self._length + c > self._capacity:
            raise ValueError(f"{self._length + c} tokens do not fit: the capacity is {self._capacity}")
        old_k, old_v = self._past[layer]
        dtype = old_k.dtype
        self._appended[layer] = torch.cat([old_k, k.to(dtype)], dim=2), torch.cat([old_v, v.to(dtype)], dim=2)
        return self._appended[layer]
        ### END SOLUTION

    def advance(self, c):
        """Count the first c tokens of the chunks just appended as finished, and forget
        what no later token sees.

        Called once a step, after every layer had its chunk.

        Raises:
            ValueError: length + c is more than the capacity; both in the message.
        """
        ### BEGIN SOLUTION
        if self._length + c > self._capacity:
            raise ValueError(f"{self._length + c} tokens do not fit: the capacity is {self._capacity}")
        held = min(self._length, self.window - 1)
        end = held + c
        first = max(0, end - (self.window - 1))
        for layer, (k, v) in enumerate(self._appended):
            # clones: a slice would keep the memory of the whole chunk alive
            self._past[layer] = k[:, :, first:end].clone(), v[:, :, first:end].clone()
        self._length += c
        ### END SOLUTION

    def reset(self):
        """Forget everything."""
        ### BEGIN SOLUTION
        self._length = 0
        self._past = [(self._nothing, self._nothing)] * self._num_layers
        self._appended = list(self._past)
        ### END SOLUTION


# %% check="SlidingWindowCache"
cache = SlidingWindowCache(
    1, batch=1, num_kv_heads=1, d_head=1, capacity=99, dtype=torch.float32, window=3
)
seen = []
for chunk in (tokens(1, 2), tokens(3, 4, 5, 6), tokens(7)):
    seen.append(feed(cache, [(chunk, -chunk)])[0][0].flatten().tolist())
expect(seen[0], [1.0, 2.0], hint="Nothing came before.")
expect(
    seen[1],
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    hint="Two earlier tokens, and all of the chunk.",
)
expect(seen[2], [5.0, 6.0, 7.0], hint="The newest two, in order, and the chunk.")
expect(cache.length, 7, hint="All seven were seen, though not all are kept.")

cache = SlidingWindowCache(
    config.num_layers,
    2,
    config.num_kv_heads,
    config.d_head,
    7,
    torch.float64,
    window=3,
)
expect(
    torch.cat(
        [
            decode_step(params, chunk, cache, config)
            for chunk in ids.split((4, 1, 2), dim=1)
        ],
        dim=1,
    ),
    decoder_lm(ids, params, config, window=3),
    atol=1e-10,
    hint="decode_step with this cache is the model with a window of 3. The first chunk wrong? Then decode_step does "
    "not read cache.window yet.",
)

# %% [markdown]
# ## 8. Several tokens a step
#
# ★★☆ · about 25 minutes
#
# On a GPU a step of one token is limited by reading the weights, so a step of five costs hardly more time. If only we
# knew five tokens in advance! A small **draft** model can guess them. The large **target** model then reads all guesses
# in one step (your `decode_step` with $c = K$), which gives its own distribution at each place, and we keep the guesses
# as long as they hold. `advance` by as many as were kept: the rest is written over by the next step.
#
# When does a guess hold? "When it is what the target would have said" works for greedy decoding. For sampling there is
# a rule that leaves the distribution of the text **exactly** the target's (Leviathan et al., 2023). The draft sampled
# token $x$ from its distribution $q$; the target has $p$; draw $u$ uniform in $[0, 1)$:
#
# $$\text{accept } x \iff u \cdot q(x) \le p(x)$$
#
# A token that the draft likes too much, $q(x) > p(x)$, is kept with probability $p(x)/q(x)$ only. What is lost
# there must come back where the draft was too shy. So after a rejection the token is sampled anew, not from $p$
# but from what is missing:
#
# $$r(x) = \frac{\max(p(x) - q(x), 0)}{\sum_y \max(p(y) - q(y), 0)}$$
#
# Guesses are checked in order and the first rejection ends it: what was drafted after a wrong token was drafted for
# another text. A guess behind it does not count, even if it would pass.
#
# **Predict first.** $p = q$ everywhere. How many guesses are accepted? And if $p(x) = 0$ for a drafted $x$ and $u>0$?

# %% predict="speculative_accept"
predict(
    "A drafted x with p(x) = 0, and u > 0: what becomes of it?",
    "accepted",
    "rejected",
    answer="rejected",
    because="u · q(x) ≤ 0 never holds. Where p = q, everything is accepted.",
)


# %% question="speculative_accept"
def speculative_accept(p, q, drafted, u):
    """Which drafted tokens to keep, and what to sample from after the first rejection
    (Leviathan et al., 2023).

    Args:
        p: [K, V], the target's distribution at each of K places.
        q: [K, V], the draft's; drafted[i] was sampled from q[i], so q[i, drafted[i]] >
            0.
        drafted: int64 [K].
        u: [K], uniform numbers in [0, 1).

    Returns:
        (num_accepted, residual): an int, how many tokens were accepted before the first
        rejection; and [V] in the dtype of p, max(p - q, 0) at the first rejected place,
        normalized to sum 1. Zeros where all were accepted.

    Raises:
        ValueError: p and q differ in shape, or drafted and u are not [K]; the sizes in
            the message.
    """
    ### BEGIN SOLUTION
    if p.shape != q.shape or drafted.shape != p.shape[:1] or u.shape != p.shape[:1]:
        shapes = [list(t.shape) for t in (p, q, drafted, u)]
        raise ValueError(f"p, q, drafted and u have shapes {shapes}: expected [K, V], [K, V], [K], [K]")
    places = torch.arange(len(drafted))
    accepted = u * q[places, drafted] <= p[places, drafted]  # [K]
    num_accepted = int(accepted.long().cumprod(dim=0).sum())  # a 0 stays 0 from there on
    if num_accepted == len(drafted):
        return num_accepted, torch.zeros_like(p[0])
    missing = (p[num_accepted] - q[num_accepted]).clamp(min=0)  # [V]
    return num_accepted, missing / missing.sum()
    ### END SOLUTION


# %% check="speculative_accept"
p = torch.tensor([[0.5, 0.5, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
q = torch.tensor([[0.8, 0.1, 0.1], [0.6, 0.4, 0.0], [0.2, 0.2, 0.6]])
num_accepted, residual = speculative_accept(
    p, q, torch.tensor([0, 0, 2]), torch.tensor([0.6, 0.3, 0.9])
)
expect(
    num_accepted,
    1,
    hint="0.6·0.8 <= 0.5: kept. 0.3·0.6 > 0.1: rejected. The third comes too late.",
)
expect(
    residual,
    torch.tensor([0.0, 0.4, 0.6]),
    hint="p - q at the second place: (-0.5, 0.2, 0.3); cut, then to sum 1.",
)

# %% [markdown]
# ### Does it really leave the distribution alone?
#
# Four thousand times: draft a token from $q$, accept or resample. The histogram should be $p$, whatever $q$ was.
# The third bar of each group shows the tempting wrong way, resampling from $p$ itself.

# %% demo="same_distribution"
import matplotlib.pyplot as plt

generator = torch.Generator().manual_seed(0)
target, draft = torch.tensor([0.05, 0.5, 0.15, 0.3]), torch.tensor([0.4, 0.1, 0.4, 0.1])
counts = {
    "accept, or sample what is missing": torch.zeros(4),
    "accept, or sample p": torch.zeros(4),
}
trials = 4_000
guesses = torch.multinomial(draft, trials, replacement=True, generator=generator)
uniform = torch.rand(trials, generator=generator)
for guess, u in zip(guesses.split(1), uniform.split(1), strict=True):
    kept, residual = speculative_accept(target[None], draft[None], guess, u)
    for name, again in zip(counts, (residual, target), strict=True):
        token = guess if kept else torch.multinomial(again, 1, generator=generator)
        counts[name][token] += 1
figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
places = torch.arange(4)
axis.bar(places - 0.25, target, 0.25, label="the target's p", color="tab:grey")
for offset, (name, count) in zip((0.0, 0.25), counts.items(), strict=True):
    axis.bar(places + offset, count / trials, 0.25, label=name)
axis.set(
    xlabel="token",
    ylabel="share",
    title="What speculative sampling says",
    xticks=places,
)
axis.legend()
plt.show()

# %% [markdown]
# ## 9. The fast path
#
# Your cached decoder does the least arithmetic, and on a small model it is still slow: a step is a few hundred small
# operations, and for each of them Python and PyTorch take microseconds to find out what to do, often longer than the
# machine needs to do it. Fast decoders remove that, by making every step **the same program on the same memory**:
#
# * *Static cache.* The buffers have their full capacity from the start, and a step attends to **all** slots; a mask
#   hides those not yet written. The shapes of a step never change. (That breaks the budget of section 5 on purpose:
#   more arithmetic, less time.)
# * *The position is a tensor.* The slot to write, the mask and the row of the position table are computed from it.
#   If it were a Python number, it would be frozen into the program.
# * *No Python in the step.* With fixed shapes and fixed memory a step can be recorded once, as a CUDA graph on a GPU or
#   compiled to one function, and replayed. The next token is chosen inside, too, and nothing asks the GPU for a number
#   until the text is finished: each such question makes the one wait for the other.
# * *Fewer, larger operations.* One matrix for queries, keys and values; weights in the layout that the product reads
#   fastest.
#
# The cell below is the first two points, for your parameters: compare it with your `decode_step` line by line.
# `benchmarks/decode.py` of the course's kit takes all four, against a well-known library's decoder.

# %% demo="static_step"
slots = 24  # the capacity: every step attends to all of them
static = [
    torch.zeros(2, 1, config.num_kv_heads, slots, config.d_head, dtype=torch.float64)
    for _ in params["blocks"]
]


def static_step(ids, position):
    """One token a row; position is a tensor [1]. No shape and no Python number depends
    on it.
    """
    visible = torch.arange(slots) <= position  # [slots]: what the mask lets through
    x = embed(ids, position, params)
    for buffers, block in zip(static, params["blocks"], strict=True):
        q, *new = project(x, position, block, params, config)
        for buffer, value in zip(buffers, new, strict=True):
            buffer.index_copy_(2, position, value)
        x = finish_block(x, grouped_attention(q, *buffers, visible[None, :]), block)
    return to_logits(x, params)


cache = KVCache(
    config.num_layers, 1, config.num_kv_heads, config.d_head, slots, torch.float64
)
position, worst = torch.zeros(1, dtype=torch.int64), 0.0
for token in (3, 1, 4, 1, 5, 9, 2, 6):
    one = torch.tensor([[token]])
    worst = max(
        worst,
        (static_step(one, position) - decode_step(params, one, cache, config))
        .abs()
        .max()
        .item(),
    )
    # in place: a recorded program would read the new number from the same memory
    position += 1
print(f"the static step and yours differ by {worst:.1e} at most")

# %% [markdown]
# ## 10. Find the error in the notes
#
# ★★☆ · about 25 minutes
#
# The handwritten notes introduce generation with the words "Students opened": at the second token they write the
# attention as
#
# $$\operatorname{softmax}(q_1 k_1,\; q_2 k_2)$$
#
# multiply by the value vectors, and go on to the KV cache: "storing prev. computed keys/values so you don't have to
# recompute every time step". Put the two side by side and something does not fit. If each weight came from a token's
# own query and its own key, one *number* a token, $q_j k_j$, would be all there is to store, and keys would never be
# needed again. What should stand there?
#
# Prove it, by numbers, as a function. Attention is a question that the newest token asks of all tokens. By the
# notes' formula most of that question is never heard: the newest query is compared with its own key only. So there must
# be other questions that the formula cannot tell from this one, although they ask for something different. Given
# queries and keys, find one: another query for the last token, such that
#
# * the weights by the notes' formula, $\operatorname{softmax}_j(q_j\cdot k_j/\sqrt d)$, stay the same (to $10^{-9}$);
# * some weight of attention, $\operatorname{softmax}_j(q_N\cdot k_j/\sqrt d)$, moves by at least 0.1.
#
# A picture helps more than algebra: draw $k_N$, and think of the directions in which you can move the tip of $q_N$
# without changing $q_N\cdot k_N$. Which of them does some other key notice? How far must you go?


# %% question="unheard_query"
def unheard_query(q, k):
    """A query for the last token that asks for something else, and that the notes'
    formula cannot tell apart.

    Args:
        q: [N, d], float64, queries of N < 10 tokens.
        k: [N, d], float64, their keys; the last one is not 0.

    Returns:
        [d]: in the place of q[-1] it leaves softmax over j of q[j]·k[j]/√d as it is,
        within 1e-9, and moves at least one weight of softmax over j of q[-1]·k[j]/√d by
        0.1 or more.

    Raises:
        ValueError: there is no such query: a single token, or all keys on one line
            through 0.
    """
    ### BEGIN SOLUTION
    d, last = q.shape[1], k[-1]
    # What each earlier key has across the last one: moving q along it leaves q·last alone.
    across = k[:-1] - (k[:-1] @ last / (last @ last))[:, None] * last  # [N - 1, d]
    if len(q) < 2 or across.norm(dim=1).max() < 1e-9 * k.norm(dim=1).max():
        raise ValueError(f"no such query for {len(q)} tokens of size {d}: all keys lie on one line")
    direction = across[across.norm(dim=1).argmax()]
    push = direction * (1000 * math.sqrt(d) / (direction @ direction))  # moves that key's score by 1000
    before = torch.softmax(k @ q[-1] / math.sqrt(d), dim=0)

    def change(query):
        return (torch.softmax(k @ query / math.sqrt(d), dim=0) - before).abs().max()

    return max(q[-1] + push, q[-1] - push, key=change)  # towards that key, or away from it if it had all the weight
    ### END SOLUTION


# %% check="unheard_query"
q = torch.tensor([[1.0, 0.0], [0.5, 2.0]], dtype=torch.float64)
k = torch.tensor([[3.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
other = unheard_query(q, k)
expect(
    (other @ k[1]).item(),
    2.0,
    atol=1e-8,
    hint="q_2·k_2 was 2 and must stay 2. What did your step add to it?",
)
# The weight on token 1 was 1 / (1 + exp((2 - 1.5)/√2)) = 0.4125.
weight = torch.softmax(k @ other / math.sqrt(2), dim=0)[0].item()
expect(
    abs(weight - 0.4125) >= 0.1,
    True,
    hint=f"The weight on token 1 was 0.4125 and is {weight:.4f}: too near.",
)

# %% [markdown] written="who_needs_the_cache" points=5
# ## 11. In your own words
#
# A colleague wants to serve a model to 100 users at once, each with 4000 tokens of context, and says: "The weights are
# 14 GB and the card has 80 GB, so there is plenty of room." The model has 32 layers, 32 heads of 128, no shared key
# heads, half precision. Is there? Name two changes to the *model* that would help, with their factor, and say why
# training the model does not need a KV cache at all. Six sentences; use your functions for the numbers.
#
# ### BEGIN SOLUTION
# No: `kv_cache_bytes` gives 2·32·32·128·2 bytes = 512 KiB a token, so 2.1 GB a user and about 210 GB for a hundred,
# fifteen times the weights; the 66 GB that are left hold some thirty users. Grouped key heads help: 8 key heads for 32
# query heads make the cache four times smaller, and a hundred users fit in 52 GB. A sliding window of 1000 tokens
# makes it four times smaller as well, whatever the length, at the price that a layer looks no further back (storing
# keys and values in 8 bits instead of 16 would give a factor of 2). In training the whole text is known, all
# positions go through the layers in one parallel pass with a causal mask, and every key is computed once and used at
# once. A cache saves *re*computation between steps, and training has no steps in which one token waits for the
# other.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 2 points: the cache takes about 2.1 GB a user and 210 GB for a hundred, so there is no room. (1 point with a slip.)
# - 2 points: two changes to the model with their factors: fewer key heads, a window, fewer bits. (1 point each.)
# - 1 point: training computes all positions at once from known tokens and has no steps to save work between.
# ### END MARK SCHEME
