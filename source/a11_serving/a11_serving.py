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
# # Assignment 11: one model, many people
#
# A KV cache makes one text cheap to write. A server has a harder task: hundreds of people ask at once, nobody knows how
# long an answer will be, and the memory of the GPU decides how many of them can be served together. In this assignment
# you build the parts that made serving an engineering subject of its own between 2022 and 2024, each small enough to
# count what it does:
#
# * a **paged cache** (Kwon et al., 2023): keys and values in blocks of fixed size, lent and taken back like the pages
#   of an operating system, shared between texts and copied only when somebody writes;
# * **attention over a block table**, which reads the blocks where they lie;
# * **continuous batching** (Yu et al., 2022): texts join and leave between any two steps, and one step serves all;
# * **shared prefixes**, **beam search** on the same blocks, **attention sinks** (Xiao et al., 2024), and a model of what
#   all this is worth on a real GPU.
#
# ![Block tables of two texts point into one pool of blocks; the first block is shared](figures/tables.svg)
#
# | | question | what it does | difficulty, estimated time |
# |---|---|---|---|
# | 1 | `BlockPool` | lends blocks, and counts who holds them | ★★☆, 25 min |
# | 2 | `PagedCache` | keys and values of many texts, in blocks | ★★★, 60 min |
# | 3 | `reserved_bytes` | what is reserved, and what is used | ★☆☆, 10 min |
# | 4 | `paged_attention` | attention that reads block after block | ★★★, 40 min |
# | 5 | `batched_step` | one step for texts of all lengths | ★★☆, 30 min |
# | 6 | `serve` | who takes part in a step | ★★★, 60 min |
# | 7 | `PrefixIndex` | blocks of prompts that begin alike | ★★☆, 30 min |
# | 8 | `beam_search` | the best texts, with forks for beams | ★★★, 45 min |
# | 9 | `sink_mass` | how much attention is parked | ★☆☆, 10 min |
# | 10 | `sink_attention` | a window that keeps the first tokens | ★★☆, 25 min |
# | 11 | `decode_costs` | operations and bytes of a step | ★★☆, 25 min |
# | 12 | `idle_and_decisive` | find the error in the notes | ★★☆, 25 min |
# | 13 | a written answer | when memory runs out | 15 min |
#
# > **Conventions.** Weights are `[in, out]` and multiply from the right, `x @ w`. Masks are boolean and True = may
# > attend. Heads come before tokens: `[B, H, N, d]`. Inputs are never changed. Nothing here is trained: gradients do
# > not matter.
# >
# > $S$ tokens of a block, $n$ tokens of a text, $c$ new tokens (the chunk), $D$ model width, $H$ query heads, $H_{kv}$ key
# > and value heads, $d$ head size, $V$ vocabulary. Texts are lists of token ids, and each has a name: any number or
# > string that tells it from the others.

# %% given="imports"
import itertools
import math
from types import SimpleNamespace

import torch

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% [markdown]
# ## The model
#
# The decoder of assignment 8, as a library: pre-norm blocks, grouped heads (query head $h$ reads key head
# $\lfloor h / (H/H_{kv}) \rfloor$), rotary positions. `decoder_lm` runs whole texts and remembers nothing; it says what
# is right. `embed`, `project`, `finish_block` and `to_logits` are its parts, and `batched_step` will put them together
# in another way. `generate_alone` is what each person would get if nobody else were there.


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


# %% [markdown]
# ## 1. Blocks are lent, and counted
#
# ★★☆ · about 25 minutes
#
# The cache of assignment 8 reserves room for `capacity` tokens when a text begins. Most texts end long before, and
# nobody can use what they left. Kwon et al. (2023) measured serving systems of that kind: only 20 to 38 % of the memory
# reserved for keys and values held any. Their remedy is as old as virtual memory. Cut the room into **blocks** of $S$
# tokens, lend a text one block at a time, and take all of its blocks back when it ends.
#
# First the bookkeeping, without any keys: a pool of numbered blocks. It knows which are free, and for each of the
# others **how many hold it**. The count is what makes sharing possible: two texts with the same beginning may hold the
# same block, and it is free again only when the second of them has given it back.
#
# * `allocate(n)` lends n free blocks, the smallest numbers first, each with one holder. All or none: where fewer are
#   free, it is a `ValueError`, and nothing is lent.
# * `share(blocks)` adds a holder to each.
# * `release(blocks)` takes a holder from each; at none the block is free. A block that is free already cannot be
#   released: a program that gives back the same block twice has lost its count, and soon two texts will write into the
#   same memory. So this is a `ValueError` as well, and nothing changes.
#
# **Predict first.** A pool of four lends three blocks; the second is shared and then released.

# %% predict="BlockPool"
predict(
    "How many blocks are free now?",
    answer=1,
    because="The second block had two holders and has one left: only block 3 is free.",
)


# %% question="BlockPool"
class BlockPool:
    """Numbered blocks that are lent, shared and given back.

    Args:
        num_blocks: how many there are, numbered from 0. All are free at first.
    """

    def __init__(self, num_blocks):
        ### BEGIN SOLUTION
        self._holders = [0] * num_blocks
        ### END SOLUTION

    @property
    def num_free(self):
        """int: how many blocks nobody holds."""
        ### BEGIN SOLUTION
        return self._holders.count(0)
        ### END SOLUTION

    def holders(self, block):
        """int: how many hold this block; 0 if it is free."""
        ### BEGIN SOLUTION
        return self._holders[block]
        ### END SOLUTION

    def allocate(self, n):
        """Lend n free blocks, each to one holder.

        Returns:
            a list of n block numbers, ascending: the smallest that are free.

        Raises:
            ValueError: fewer than n are free; n and the number of free blocks in the
                message. Nothing is lent then.
        """
        ### BEGIN SOLUTION
        free = [block for block, holders in enumerate(self._holders) if holders == 0]
        if n > len(free):
            raise ValueError(f"{n} blocks are wanted, and {len(free)} are free")
        for block in free[:n]:
            self._holders[block] = 1
        return free[:n]
        ### END SOLUTION

    def share(self, blocks):
        """Add a holder to each of these blocks.

        Args:
            blocks: a list of different block numbers.

        Raises:
            ValueError: one of them is free; its number in the message. Nothing changes
                then.
        """
        ### BEGIN SOLUTION
        for block in blocks:
            if self._holders[block] == 0:
                raise ValueError(f"block {block} is free: nobody can share it")
        for block in blocks:
            self._holders[block] += 1
        ### END SOLUTION

    def release(self, blocks):
        """Take one holder from each of these blocks; a block without any is free.

        Args:
            blocks: a list of different block numbers.

        Raises:
            ValueError: one of them is free already; its number in the message. Nothing
                changes then.
        """
        ### BEGIN SOLUTION
        for block in blocks:
            if self._holders[block] == 0:
                raise ValueError(f"block {block} is free already")
        for block in blocks:
            self._holders[block] -= 1
        ### END SOLUTION


# %% check="BlockPool"
pool = BlockPool(4)
expect(pool.allocate(3), [0, 1, 2], hint="The smallest free numbers, in a list.")
pool.share([1])
pool.release([0, 1])
expect(
    (pool.num_free, pool.holders(1)),
    (2, 1),
    hint="Blocks 0 and 3 are free. Block 1 had two holders and keeps one.",
)
expect(
    pool.allocate(2),
    [0, 3],
    hint="Block 0 came back and is lent again. Block 1 is still held by somebody.",
)
try:
    pool.allocate(1)
    refused = False
except ValueError:
    refused = True
expect(refused, True, hint="Nothing is free: allocate raises a ValueError.")

# %% [markdown]
# ## 2. A cache in blocks
#
# ★★★ · about 60 minutes
#
# Now the keys and values. In every layer there is room for all blocks, `[num_blocks, H_kv, S, d]`, and each text has a
# **block table**: the list of its blocks, in the order of the text. Token $p$ of a text lies in
#
# $$\text{block } \mathrm{table}\left[\lfloor p / S \rfloor\right], \quad \text{slot } p \bmod S.$$
#
# One table serves all layers: block 7 means slot range 7 in each of them. As in assignment 8, a step appends a chunk in
# each layer and advances once, and `append` writes behind the first `length` tokens, whatever may lie there. New
# are the names, since one cache holds many texts, and four things to think through:
#
# * **When does a text get a block?** When `append` needs one, not before. The first layer of a step takes the blocks,
#   and the other layers find them there. If the pool has too few, `append` is refused, and the cache stays as it was.
# * **Forks.** `fork(name, new)` makes a second text that has read the same tokens. It copies *nothing* but the table:
#   both hold the same blocks, and the pool counts it. Only blocks with finished tokens are shared; what the first text
#   has beyond them stays its own.
# * **Copy on write.** A full block is never written again, so sharing it is safe for ever. But the last block of a fork may
#   be half full, and the next append of *either* text goes into it. Whoever writes first into a block that others hold
#   gets a copy of the block (of all layers!) and writes there. Whoever writes last finds itself the only holder and
#   needs no copy.
# * **A text may begin with blocks**: `start(name, blocks)` takes full blocks that somebody else has filled. Section 7
#   uses it for prompts that begin alike.
#
# ![Text a of seven tokens is forked; the fork b writes into a copy of the half full block; then a writes into the block itself](figures/copy_on_write.svg)
#
# Writing a chunk needs no loop over its tokens: from positions $p$ come two index tensors, blocks and slots, and
# `keys[blocks, :, slots]` addresses them all at once. Mind the order of axes that such an index gives.
#
# **Predict first.** $S = 4$. A text of 6 tokens is forked twice, and then each of the three texts appends one token.

# %% predict="PagedCache"
predict(
    "How many blocks are in use now?",
    answer=4,
    because="The full block is shared by all. The first two that write copy the half "
    "full one; the third is its only holder by then.",
)


# %% question="PagedCache"
class PagedCache:
    """Keys and values of many texts, in blocks of a common pool.

    A step has no loop over tokens, and copies a block only where it is shared and
    written.

    Args:
        num_layers: layers, numbered from 0.
        num_blocks: blocks that all texts share.
        block_size: S, tokens of a block; an attribute of the cache.
        num_kv_heads, d_head: H_kv and d.
        dtype: in which keys and values are stored.
    """

    def __init__(
        self, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype
    ):
        ### BEGIN SOLUTION
        self.block_size = block_size
        self._pool = BlockPool(num_blocks)
        # all layers in one tensor, keys before values: a block is copied in one line
        self._stored = torch.zeros(num_layers, 2, num_blocks, num_kv_heads, block_size, d_head, dtype=dtype)
        self._tables = {}  # name: its blocks, in the order of the text
        self._lengths = {}
        ### END SOLUTION

    @property
    def pool(self):
        """The BlockPool whose blocks this cache uses."""
        ### BEGIN SOLUTION
        return self._pool
        ### END SOLUTION

    @property
    def num_free(self):
        """int: how many blocks are free."""
        ### BEGIN SOLUTION
        return self._pool.num_free
        ### END SOLUTION

    def start(self, name, blocks=()):
        """Begin a text, empty or with full blocks that others hold too.

        Args:
            name: no text of the cache has it.
            blocks: numbers of blocks that others hold (no caller gives free ones);
                their S tokens each are the text's first ones.

        Raises:
            ValueError: a text has this name; it stands in the message.
        """
        ### BEGIN SOLUTION
        if name in self._tables:
            raise ValueError(f"there is a text {name!r} already")
        self._pool.share(blocks)
        self._tables[name] = list(blocks)
        self._lengths[name] = len(blocks) * self.block_size
        ### END SOLUTION

    def length(self, name):
        """int: how many tokens of the text are finished. Moved by advance only."""
        ### BEGIN SOLUTION
        return self._lengths[name]
        ### END SOLUTION

    def table(self, name):
        """list of int: the text's blocks, in the order of the text. It does not change
        later.
        """
        ### BEGIN SOLUTION
        return list(self._tables[name])
        ### END SOLUTION

    def blocks(self, layer):
        """(keys, values) of a layer, each [num_blocks, H_kv, S, d]: all blocks, not
        copied.
        """
        ### BEGIN SOLUTION
        keys, values = self._stored[layer]
        return keys, values
        ### END SOLUTION

    def missing(self, name, c):
        """int: how many free blocks an append of c >= 1 tokens would take, copies of
        shared blocks included.
        """
        ### BEGIN SOLUTION
        table, length = self._tables[name], self._lengths[name]
        new = -(-(length + c) // self.block_size) - len(table)
        place = length // self.block_size  # where the next token goes
        copies = place < len(table) and self._pool.holders(table[place]) > 1
        return max(0, new) + copies
        ### END SOLUTION

    def append(self, name, layer, k, v):
        """Write a chunk behind the first `length` tokens of a text, in one layer.

        Takes the blocks that are missing, the copy of a shared one first; the other
        layers of the step find them there.

        Args:
            name: which text.
            layer: which layer.
            k, v: [H_kv, c, d], both with one c >= 1, in any floating dtype.

        Raises:
            ValueError: k or v is not [H_kv, c, d] (its shape in the message), or more
                blocks are missing than are free (both numbers in the message). The
                cache is then as it was.
        """
        ### BEGIN SOLUTION
        _, _, _, num_kv_heads, _, d_head = self._stored.shape
        c = k.shape[1]
        if k.shape != v.shape or k.shape != (num_kv_heads, c, d_head):
            raise ValueError(f"k {list(k.shape)} and v {list(v.shape)}, not {[num_kv_heads, c, d_head]}")
        table, start = self._tables[name], self._lengths[name]
        fresh = self._pool.allocate(self.missing(name, c))  # all or none
        place = start // self.block_size
        if place < len(table) and self._pool.holders(table[place]) > 1:  # copy on write
            copy = fresh.pop(0)
            self._stored[:, :, copy] = self._stored[:, :, table[place]]
            self._pool.release([table[place]])
            table[place] = copy
        table += fresh

        positions = torch.arange(start, start + c)  # [c]
        into, slots = torch.tensor(table)[positions // self.block_size], positions % self.block_size
        keys, values = self._stored[layer]
        keys[into, :, slots] = k.transpose(0, 1).to(keys.dtype)  # [c, H_kv, d]
        values[into, :, slots] = v.transpose(0, 1).to(keys.dtype)
        ### END SOLUTION

    def advance(self, name, c):
        """Count the first c tokens of the chunk just appended as finished; once a step,
        after the last layer.
        """
        ### BEGIN SOLUTION
        self._lengths[name] += c
        ### END SOLUTION

    def gather(self, name, layer):
        """(k, v), each [H_kv, length, d] in the cache's dtype: a layer's finished
        tokens, copied out of the blocks. They do not change later.
        """
        ### BEGIN SOLUTION
        positions = torch.arange(self._lengths[name])
        table = torch.tensor(self._tables[name], dtype=torch.int64)
        blocks, slots = table[positions // self.block_size], positions % self.block_size
        keys, values = self._stored[layer]
        return keys[blocks, :, slots].transpose(0, 1), values[blocks, :, slots].transpose(0, 1)
        ### END SOLUTION

    def fork(self, name, new):
        """Begin a text that has the finished tokens of another.

        The two share the blocks that these tokens stand in, and no others. No key is
        copied.

        Raises:
            ValueError: a text is called `new` already; the name in the message.
        """
        ### BEGIN SOLUTION
        length = self._lengths[name]
        self.start(new, self._tables[name][: -(-length // self.block_size)])
        self._lengths[new] = length
        ### END SOLUTION

    def free(self, name):
        """End a text: give its blocks back and forget its name."""
        ### BEGIN SOLUTION
        self._pool.release(self._tables.pop(name))
        del self._lengths[name]
        ### END SOLUTION


# %% check="PagedCache"
def tokens(*numbers):
    """A chunk with one head of size 1, so that it can be read: [1, c, 1]."""
    return torch.tensor(numbers, dtype=torch.float32).view(1, -1, 1)


cache = PagedCache(
    1, num_blocks=4, block_size=2, num_kv_heads=1, d_head=1, dtype=torch.float32
)
cache.start("a")
expect(cache.num_free, 4, hint="An empty text holds no block.")
cache.append("a", 0, tokens(1, 2, 3), tokens(10, 20, 30))
expect(cache.length("a"), 0, hint="append writes; only advance counts.")
cache.advance("a", 3)
expect(cache.table("a"), [0, 1], hint="Three tokens in blocks of two: two blocks.")
k, v = cache.gather("a", 0)
expect(
    (k.flatten(), v.flatten()),
    (torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 20.0, 30.0])),
    hint="Token p lies in block table[p // 2], slot p % 2.",
)
cache.fork("a", "b")
expect(cache.table("b"), [0, 1], hint="A fork copies the table, and no block.")
cache.append("b", 0, tokens(7), tokens(70))
cache.advance("b", 1)
expect(
    (cache.table("a"), cache.table("b")),
    ([0, 1], [0, 2]),
    hint="b writes into the half full block 1, which a holds too: it gets a copy.",
)
cache.append("a", 0, tokens(4), tokens(40))
cache.advance("a", 1)
expect(
    (cache.gather("a", 0)[0].flatten(), cache.gather("b", 0)[0].flatten()),
    (torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1.0, 2.0, 3.0, 7.0])),
    hint="Each text goes on in its own way. Does one see what the other wrote?",
)
expect(cache.num_free, 1, hint="a is the only holder of block 1 by now: no copy.")
cache.free("a")
expect(cache.num_free, 2, hint="Block 0 is still held by b.")
deep = PagedCache(
    2, num_blocks=3, block_size=2, num_kv_heads=1, d_head=1, dtype=torch.float32
)
deep.start("a")
deep.append("a", 0, tokens(5), tokens(50))
deep.append("a", 1, tokens(6), tokens(60))
deep.advance("a", 1)
deep.fork("a", "b")
deep.append("b", 0, tokens(7), tokens(70))
deep.append("b", 1, tokens(8), tokens(80))
deep.advance("b", 1)
expect(
    deep.gather("b", 1)[0].flatten(),
    torch.tensor([6.0, 8.0]),
    hint="b gets a copy of its block when layer 0 appends. The block has slots in layer 1, too.",
)

# %% [markdown]
# ### See the blocks
#
# A pool of 24 blocks over time: each column is a step, each row a block, a colour for each text. Texts of different
# lengths come and go. What one gives back, another takes, wherever it lies; holes close by themselves, since no text
# needs neighbours. White is free.

# %% demo="blocks_map"
import matplotlib.pyplot as plt

cache = PagedCache(1, 24, block_size=4, num_kv_heads=1, d_head=1, dtype=torch.float32)
generator = torch.Generator().manual_seed(3)
steps, wanted = 60, {}
owners = torch.full((24, steps), float("nan"))
for step in range(steps):
    if step % 4 == 0 and cache.num_free > 8:
        name = step // 4
        wanted[name] = int(torch.randint(6, 40, (1,), generator=generator))
        cache.start(name)
    for name in list(wanted):
        cache.append(name, 0, torch.zeros(1, 1, 1), torch.zeros(1, 1, 1))
        cache.advance(name, 1)
        if cache.length(name) == wanted[name]:
            cache.free(name)
            del wanted[name]
            continue
        owners[cache.table(name), step] = name % 10
figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
axis.imshow(
    owners, cmap="tab10", aspect="auto", interpolation="nearest", vmin=0, vmax=9
)
axis.set(xlabel="step", ylabel="block", title="Who holds which block")
plt.show()

# %% [markdown]
# ## 3. What is reserved, and what is used
#
# ★☆☆ · about 10 minutes
#
# Count the gain. Several texts are in memory, of which each could grow to `capacity` tokens. Three numbers, in bytes:
#
# * **needed**: keys and values of the tokens that are there;
# * **contiguous**: what the cache of assignment 8 reserves, the full capacity for each text;
# * **paged**: whole blocks. A text wastes less than one block, whatever its capacity.
#
# `kv_bytes_a_token` in the library is one token in all layers, keys and values.
#
# **Predict first.** Blocks of 16 tokens, capacity 2048, texts that are 100 tokens long.

# %% predict="reserved_bytes"
predict(
    "What share of the contiguous reservation is used, in per cent?",
    answer=4.9,
    atol=0.2,
    because="100 / 2048. In blocks it is 100 / 112, 89 %.",
)


# %% question="reserved_bytes"
def reserved_bytes(lengths, config, block_size, capacity, bytes_per_element):
    """Bytes of keys and values that texts need, and that two kinds of cache reserve.

    Args:
        lengths: list of int, tokens of each text, each from 1 to capacity.
        config: num_layers, num_kv_heads, d_head.
        block_size: S, tokens of a block.
        capacity: the longest text that is allowed.
        bytes_per_element: 2 for float16 and bfloat16.

    Returns:
        dict of int, in bytes: "needed" by the tokens, reserved "contiguous" for the
        full capacity of each text, reserved "paged" in whole blocks.

    Raises:
        ValueError: a length is below 1 or above the capacity; both in the message.
    """
    ### BEGIN SOLUTION
    for length in lengths:
        if not 1 <= length <= capacity:
            raise ValueError(f"a text of {length} tokens where 1 to {capacity} are possible")
    token = kv_bytes_a_token(config, bytes_per_element)
    blocks = sum(-(-length // block_size) for length in lengths)  # rounded up, for each text
    return {
        "needed": sum(lengths) * token,
        "contiguous": len(lengths) * capacity * token,
        "paged": blocks * block_size * token,
    }
    ### END SOLUTION


# %% check="reserved_bytes"
small = SimpleNamespace(num_layers=1, num_kv_heads=1, d_head=1)
expect(
    reserved_bytes([3, 4, 5], small, 4, capacity=10, bytes_per_element=2),
    {"needed": 48, "contiguous": 120, "paged": 64},
    hint="A token takes 4 bytes here: a key and a value of 2 bytes. 12 tokens; 3 times "
    "10 slots; 1 + 1 + 2 blocks of 4.",
)

# %% [markdown]
# ## 4. Attention that reads blocks where they lie
#
# ★★★ · about 40 minutes
#
# `gather` copies all keys of a text into one tensor, in every layer of every step: it moves the whole cache to use it
# once. The kernel that gave PagedAttention its name reads the blocks in place, one after the other. You know how that
# works from assignment 7: a running softmax. For each block, with scores $s$ and values $v$,
#
# $$m' = \max(m, \max s), \qquad \ell' = e^{m - m'}\ell + \sum_j e^{s_j - m'}, \qquad
#   o' = e^{m - m'} o + \sum_j e^{s_j - m'} v_j$$
#
# and after the last block the answer is $o / \ell$. No tensor ever holds the keys of more than one block.
#
# The function takes the $c$ newest tokens' queries; the text has `length` tokens with them. So query $i$ is the token
# at position `length - c + i`, and sees keys up to its own. Watch three places: the last block is only partly filled,
# and what lies behind may be anything, NaN included. Token $p$ is in block `table[p // S]`, not in block `p // S`. And
# the table may have more blocks than the text needs.
#
# Half precision keeps its running sums in float32.


# %% question="paged_attention"
def paged_attention(q, keys, values, table, length):
    """Attention of a text's newest tokens over keys that lie in blocks (Kwon et al.,
    2023).

    No tensor grows with the length of the text: one block is read at a time.

    Args:
        q: [H, c, d], queries of the last c of the text's tokens.
        keys, values: [num_blocks, H_kv, S, d], all blocks of a layer; slots that do not
            belong to the text may hold anything. Query head h reads key head
            h // (H / H_kv).
        table: list of int, the text's blocks in the order of the text; there may be
            more than it needs.
        length: tokens of the text, those of q included.

    Returns:
        [H, c, d] in the dtype of q: softmax(q·k/√d) times v, over the keys up to the
        query's own.
    """
    ### BEGIN SOLUTION
    num_heads, c, d = q.shape
    num_kv_heads, block_size = keys.shape[1:3]
    wide = torch.promote_types(q.dtype, torch.float32)
    # [H_kv, H/H_kv*c, d]: the queries of a group under each other
    rows = q.to(wide).reshape(num_kv_heads, -1, d) / math.sqrt(d)
    own = torch.arange(length - c, length).repeat(num_heads // num_kv_heads)[:, None]  # each row's position
    m = torch.full((*rows.shape[:2], 1), float("-inf"), dtype=wide)
    total, mixed = torch.zeros_like(m), torch.zeros_like(rows)
    for first in range(0, length, block_size):
        block = table[first // block_size]
        filled = min(block_size, length - first)
        k, v = keys[block, :, :filled].to(wide), values[block, :, :filled].to(wide)  # [H_kv, filled, d]
        later = torch.arange(first, first + filled) > own  # [H/H_kv*c, filled]
        scores = (rows @ k.transpose(-2, -1)).masked_fill(later, float("-inf"))
        new_m = torch.maximum(m, scores.amax(dim=-1, keepdim=True))
        weights, shrink = torch.exp(scores - new_m), torch.exp(m - new_m)
        total = shrink * total + weights.sum(dim=-1, keepdim=True)
        mixed = shrink * mixed + weights @ v
        m = new_m
    return (mixed / total).reshape(q.shape).to(q.dtype)
    ### END SOLUTION


# %% check="paged_attention"
torch.manual_seed(0)
k, v = torch.randn(2, 2, 5, 3, dtype=torch.float64)  # two key heads, five tokens
# four query heads, of the last two tokens
q = torch.randn(4, 2, 3, dtype=torch.float64)
keys = torch.full((6, 2, 2, 3), float("nan"), dtype=torch.float64)  # blocks of two
values = keys.clone()
for block, first in ((4, 0), (1, 2), (3, 4)):
    part = slice(first, min(first + 2, 5))
    keys[block, :, : part.stop - first] = k[:, part]
    values[block, :, : part.stop - first] = v[:, part]
whole = grouped_attention(q[None], k[None], v[None], causal_mask(2, 5))[0]
expect(
    paged_attention(q, keys, values, [4, 1, 3], 5),
    whole,
    atol=1e-10,
    hint="The same as attention over keys that lie one behind the other. NaN? Then you "
    "read a slot that is not the text's. Only the first token wrong? Look at the mask: "
    "the queries are at positions 3 and 4.",
)

# %% [markdown]
# ## 5. One step for texts of all lengths
#
# ★★☆ · about 30 minutes
#
# Assignment 8 needed padding to run several texts in a batch, since a tensor has one length. Look at what a layer does:
# norms, projections and the MLP treat each token alone, whichever text it is from. **Only attention** asks which tokens
# belong together. So lay the new tokens of all texts behind each other, one long row $[1, T]$, and run everything on it
# at once; only for attention cut the row into the texts' chunks. Yu et al. (2022) call this *selective batching*. No
# token is padding, and a chunk may have any length: one new token of a text that is being written and the 500 of a
# prompt that has just arrived go through the weights together.
#
# It also gives **chunked prefill** for nothing: a long prompt may be fed in parts, so that the others do not wait for
# it.
#
# **Predict first.** Eight texts have one new token each, of lengths 10 to 1000.

# %% predict="batched_step"
predict(
    "How often is each weight matrix read in this step?",
    "once",
    "eight times",
    answer="once",
    because="The eight tokens are eight rows of one product. Assignment 8 would also "
    "read it once, and would pad seven texts to 1000 tokens for it.",
)


# %% question="batched_step"
def batched_step(params, chunks, cache, config):
    """Send new tokens of several texts through the model together (Yu et al., 2022).

    Everything but the attention runs once for all tokens.

    Args:
        params: embed [V, D], blocks (a list of dicts), lnf_gamma, lnf_beta [D], unembed
            [D, V], as in decoder_lm.
        chunks: list of (name, ids): a text of the cache and its new tokens, a list of
            int with at least one. No name occurs twice.
        cache: a PagedCache. Of a text with n finished tokens the new ones are at
            positions n, n + 1, …; afterwards they count as finished.
        config: num_heads, num_kv_heads, theta and the other sizes.

    Returns:
        logits [len(chunks), V]: of the last token of each chunk, in the dtype of the
        params.

    Raises:
        ValueError: an id is outside the vocabulary; the id and V in the message. The
            cache is then as it was.
    """
    ### BEGIN SOLUTION
    sizes = [len(ids) for _, ids in chunks]
    starts = [cache.length(name) for name, _ in chunks]
    ids = torch.tensor([token for _, part in chunks for token in part])  # [T]
    vocab_size = len(params["embed"])
    for token in ids.tolist():
        if not 0 <= token < vocab_size:
            raise ValueError(f"id {token} in a vocabulary of {vocab_size}")
    positions = torch.cat([torch.arange(start, start + size) for start, size in zip(starts, sizes, strict=True)])

    x = embed(ids[None], params)  # [1, T, D]
    for layer, block in enumerate(params["blocks"]):
        q, k, v = project(x, positions, block, config)  # [1, H, T, d], twice [1, H_kv, T, d]
        parts = zip(*(t[0].split(sizes, dim=1) for t in (q, k, v)), strict=True)
        mixed = []
        for (name, new), start, (own_q, own_k, own_v) in zip(chunks, starts, parts, strict=True):
            cache.append(name, layer, own_k, own_v)
            keys, values = cache.blocks(layer)
            mixed.append(paged_attention(own_q, keys, values, cache.table(name), start + len(new)))
        x = finish_block(x, torch.cat(mixed, dim=1)[None], block)
    for (name, _), size in zip(chunks, sizes, strict=True):
        cache.advance(name, size)
    last = torch.tensor(sizes).cumsum(dim=0) - 1  # where each chunk ends
    return to_logits(x[:, last], params)[0]
    ### END SOLUTION


# %% check="batched_step"
config = make_config()
params = random_params(config)


def new_cache(num_blocks=12, block_size=4):
    """An empty PagedCache for this model."""
    return PagedCache(
        config.num_layers,
        num_blocks,
        block_size,
        config.num_kv_heads,
        config.d_head,
        torch.float64,
    )


def alone(*ids):
    """The logits of the last token of a text, by the whole model."""
    return decoder_lm(torch.tensor([ids]), params, config)[0, -1]


cache = new_cache()
cache.start("a")
cache.start("b")
expect(
    batched_step(params, [("a", [3, 1, 4, 1, 5])], cache, config),
    alone(3, 1, 4, 1, 5)[None],
    atol=1e-10,
    hint="A prompt alone: the last row of decoder_lm.",
)
expect(
    batched_step(params, [("b", [2, 7]), ("a", [9])], cache, config),
    torch.stack([alone(2, 7), alone(3, 1, 4, 1, 5, 9)]),
    atol=1e-10,
    hint="b reads its prompt while a goes on. Positions are counted in each text; "
    "each text sees its own keys; a row of logits for the last token of each chunk.",
)
expect(
    batched_step(params, [("b", [1, 8, 2])], cache, config),
    alone(2, 7, 1, 8, 2)[None],
    atol=1e-10,
    hint="A prompt in two parts gives the same: chunked prefill.",
)

# %% [markdown]
# ## 6. Continuous batching
#
# ★★★ · about 60 minutes
#
# The old way is **static**: take as many requests as fit, run them until the *last* one is done, take the next ones. A
# request that ends early leaves its place empty, and one that has just arrived waits for strangers. Orca's idea is to
# decide anew **before every step** who takes part. The model does not mind: that is what `batched_step` is for.
#
# ![Six requests on three places: static batches take 11 steps, continuous batching 7](figures/batching.svg)
#
# You write the loop. All requests wait in a queue, in the order of the list. `running` are those that take part, in the
# same order. One round:
#
# 1. **Make room.** Each running text needs room for its next token. While the blocks that all of them together are
#    missing are more than are free, the one that comes last in `running` is **preempted**: its blocks are freed, and it
#    goes back to the *front* of the queue. What it has written so far is not lost: when it is admitted again, its whole
#    text, prompt and new tokens, is read again like a prompt (*recompute*).
# 2. **Admit.** While there is somebody in the queue and fewer than `max_running` are running: the first in the queue is
#    admitted if the blocks for its whole text so far are free, **those not counted that running texts are about to
#    take in this step**, texts that were admitted in this round among them. If it does not fit, nobody behind it may
#    overtake: admission ends for this round.
# 3. If nobody is running now, the first in the queue does not fit into the empty cache: `ValueError`.
# 4. **Step.** Every running text feeds what the cache does not have yet: `text[cache.length(name):]`. That is one token
#    for most, and everything for those just admitted. Each takes its likeliest next token.
# 5. **Leave.** Who has `max_new` tokens, or has written `eos_id`, leaves at once, and its blocks are free for the next
#    round.
#
# The caller brings a function `step(chunks)`, which gives logits `[len(chunks), V]`, as `batched_step` does, so your
# loop knows no model. Names in the cache are the requests' numbers in the list. Beside the texts you return the
# history: for each step, who took part with how many tokens.
#
# **Predict first.** Two places; four requests want 9, 1, 1 and 7 new tokens; there are blocks enough.

# %% predict="serve"
predict(
    "How many steps does continuous batching take? (Static: 9 + 7 = 16.)",
    answer=9,
    because="The second place serves the others in turn: 1 + 1 + 7 = 9 steps, while the "
    "first writes its 9.",
)


# %% question="serve"
def serve(requests, cache, step, max_running, eos_id=None):
    """Greedy texts for many requests, by continuous batching (Yu et al., 2022).

    Who is admitted in a step, and who gives way where blocks are short, is said by
    the five rules of a round above.

    Args:
        requests: list of (prompt, max_new): a list of ids with at least one, and how
            many new tokens are wanted, at least one.
        cache: an empty PagedCache. It has no text at the end.
        step: step(chunks) -> logits [len(chunks), V], for chunks as in batched_step;
            appends the tokens to the cache and advances.
        max_running: how many texts take part in a step at most.
        eos_id: the token that ends a text, and belongs to it. None: no token does.

    Returns:
        (texts, history). texts: for each request the list of its new tokens. history:
        for each step a list of (number of the request, tokens fed), in the order of
        running.

    Raises:
        ValueError: max_running or a max_new is below 1 (it stands in the message), or
            a prompt has 0 tokens; or a text does not fit although nothing else is in
            the cache (the blocks that it needs and those there are in the message).
    """
    ### BEGIN SOLUTION
    if max_running < 1:
        raise ValueError(f"max_running must be at least 1, got {max_running}")
    for prompt, max_new in requests:
        if not prompt or max_new < 1:
            raise ValueError(f"{max_new} new tokens after a prompt of {len(prompt)}")
    texts = [list(prompt) for prompt, _ in requests]
    waiting, running, history = list(range(len(requests))), [], []
    while waiting or running:
        promised = sum(cache.missing(name, 1) for name in running)
        while promised > cache.num_free:  # the last one gives way
            name = running.pop()
            promised -= cache.missing(name, 1)
            cache.free(name)
            waiting.insert(0, name)

        while waiting and len(running) < max_running:
            needed = -(-len(texts[waiting[0]]) // cache.block_size)
            if promised + needed > cache.num_free:
                break  # nobody overtakes the first
            promised += needed
            running.append(waiting.pop(0))
            cache.start(running[-1])
        if not running:
            raise ValueError(f"request {waiting[0]} needs {needed} blocks, and there are {cache.num_free}")

        chunks = [(name, texts[name][cache.length(name) :]) for name in running]
        choices = step(chunks).argmax(dim=-1).tolist()
        history.append([(name, len(new)) for name, new in chunks])
        for (name, _), token in zip(chunks, choices, strict=True):
            texts[name].append(token)
            prompt, max_new = requests[name]
            if token == eos_id or len(texts[name]) == len(prompt) + max_new:
                running.remove(name)
                cache.free(name)
    return [text[len(prompt) :] for text, (prompt, _) in zip(texts, requests, strict=True)], history
    ### END SOLUTION


# %% check="serve"
cache = new_cache(num_blocks=5)
requests = [([3, 1, 4], 9), ([2, 7], 1), ([5, 5, 5, 5, 1], 6), ([8], 7)]
texts, history = serve(
    requests, cache, lambda chunks: batched_step(params, chunks, cache, config), 2
)
expect(
    texts,
    [generate_alone(params, prompt, new, config) for prompt, new in requests],
    hint="Each text is what it would be alone. Does a text that comes back read its own "
    "new tokens too?",
)
expect(
    history[:3],
    [[(0, 3), (1, 2)], [(0, 1), (2, 5)], [(0, 1), (2, 1)]],
    hint="Request 1 leaves after its only token, and 2 takes its place in the next step.",
)
expect(cache.num_free, 5, hint="At the end no text holds a block.")

# %% [markdown]
# ### See who takes part
#
# Thirty requests, eight places. Each row is a place; a colour is a request at work, white is a place that does
# nothing. Above the static way: a batch ends with its longest text. Below, your `serve`. The last picture starves it of
# blocks: texts give way, come back later, and read all that they had again. How many more tokens does too little memory
# cost?

# %% demo="utilisation"
import matplotlib.pyplot as plt

generator = torch.Generator().manual_seed(1)
many = [
    (
        torch.randint(0, 13, (int(n),), generator=generator).tolist(),
        int(2 + 40 * torch.rand(1, generator=generator) ** 3),
    )
    for n in torch.randint(2, 9, (30,), generator=generator)
]
places = 8


def any_token(chunks):
    """A step without a model: it only keeps the cache's books."""
    for name, new in chunks:
        for layer in range(config.num_layers):
            nothing = torch.zeros(config.num_kv_heads, len(new), config.d_head)
            cache.append(name, layer, nothing, nothing)
        cache.advance(name, len(new))
    return torch.zeros(len(chunks), 13)


static = []
for first in range(0, len(many), places):
    batch = range(first, min(first + places, len(many)))
    for step in range(max(many[i][1] for i in batch)):
        fed = {i: len(many[i][0]) if step == 0 else 1 for i in batch}
        static.append([(i, fed[i]) for i in batch if step < many[i][1]])
runs = {"static batches": static}
for num_blocks in (100, 24):
    cache = new_cache(num_blocks)
    runs[f"continuous, {num_blocks} blocks"] = serve(many, cache, any_token, places)[1]
figure, axes = plt.subplots(3, 1, figsize=(9, 6), layout="constrained", sharex=True)
for axis, (name, history) in zip(axes, runs.items(), strict=True):
    picture, holder = torch.full((places, len(history)), float("nan")), {}
    for step, members in enumerate(history):
        ids = [i for i, _ in members]
        holder = {i: place for i, place in holder.items() if i in ids}
        for i in ids:
            if i not in holder:
                holder[i] = min(set(range(places)) - set(holder.values()))
            picture[holder[i], step] = i % 20
    work = sum(len(members) for members in history)
    fed = sum(count for members in history for _, count in members)
    axis.imshow(picture, cmap="tab20", aspect="auto", interpolation="nearest")
    axis.set(
        ylabel="place",
        title=f"{name}: {len(history)} steps, {fed} tokens fed, "
        f"{work / places / len(history):.0%} of the places used",
    )
axes[-1].set(xlabel="step")
plt.show()

# %% [markdown]
# ## 7. Prompts that begin alike
#
# ★★☆ · about 30 minutes
#
# A service puts the same thousand words of instructions in front of every question. Their keys and values are the same
# every time: they depend on the tokens up to there and on nothing else. So keep them. An **index** remembers full
# blocks by the tokens that led to them, and a new prompt starts with the blocks of its longest known beginning.
#
# What is a block's key in the index? Not its own $S$ tokens: in the second layer a token's key depends on **all**
# tokens before it, so the same four tokens behind another beginning are other numbers. The key is everything from the
# start of the text to the end of the block. (Systems store a hash that is chained from block to block. A tuple of
# tokens is its honest, slower form; Python's dictionaries hash it for you.)
#
# ![A tree of known blocks: equal words behind another beginning are another block; a new prompt follows the tree as far as it can](figures/prefix_tree.svg)
#
# Two details decide whether it works:
#
# * **One token must remain.** Somebody who asks a question that is known to its last token still needs logits, and they
#   come from feeding a token. So `match` covers at most `len(tokens) - 1` tokens.
# * **The index holds what it knows.** A text that ends gives its blocks back; the index must be a holder itself, or
#   the pool will lend them to others. And when memory is short, `evict` gives back what no text is using.
#
# **Predict first.** $S = 4$; known are the full blocks of a text of 10 tokens. Somebody asks with exactly its first 8.

# %% predict="PrefixIndex"
predict(
    "How many blocks does match give?",
    answer=1,
    because="Two blocks would cover all 8 tokens, and one token must remain to be fed.",
)


# %% question="PrefixIndex"
class PrefixIndex:
    """Full blocks, found again by the tokens that led to them.

    Args:
        pool: the BlockPool of a cache. The index is one holder of each block it knows.
        block_size: S, tokens of a block.
    """

    def __init__(self, pool, block_size):
        ### BEGIN SOLUTION
        self._pool = pool
        self._block_size = block_size
        self._known = {}  # all tokens up to the end of a block: the block
        ### END SOLUTION

    def match(self, tokens):
        """The blocks of the longest known beginning of a text.

        Args:
            tokens: list of int, the whole text.

        Returns:
            list of int, blocks in the order of the text. They cover at most
            len(tokens) - 1 tokens: one must remain to be fed. No holder is added.
        """
        ### BEGIN SOLUTION
        blocks = []
        for end in range(self._block_size, len(tokens), self._block_size):
            block = self._known.get(tuple(tokens[:end]))
            if block is None:
                break
            blocks.append(block)
        return blocks
        ### END SOLUTION

    def insert(self, tokens, blocks):
        """Remember the full blocks of a text, and hold those that are new.

        Args:
            tokens: list of int, the text's finished tokens.
            blocks: its block table. A last block that is not full is not remembered.
                Where the index knows a block for the same tokens already, it keeps that
                one.
        """
        ### BEGIN SOLUTION
        for place in range(len(tokens) // self._block_size):
            key = tuple(tokens[: (place + 1) * self._block_size])
            if key not in self._known:
                self._pool.share([blocks[place]])
                self._known[key] = blocks[place]
        ### END SOLUTION

    def evict(self):
        """Give back all blocks that only the index holds, and forget them. What the
        index knows behind such a block it may keep or forget.

        Returns:
            int, how many.
        """
        ### BEGIN SOLUTION
        unused = [key for key, block in self._known.items() if self._pool.holders(block) == 1]
        for key in unused:
            self._pool.release([self._known.pop(key)])
        return len(unused)
        ### END SOLUTION


# %% check="PrefixIndex"
pool = BlockPool(6)
index = PrefixIndex(pool, block_size=2)
first = pool.allocate(3)  # a text of five tokens: two full blocks
index.insert([7, 7, 8, 8, 9], first)
expect(index.match([7, 7, 8, 8, 1, 2]), [0, 1], hint="Both blocks begin this text.")
expect(index.match([7, 7, 1, 1, 8]), [0], hint="Only the first block begins this text.")
expect(index.match([8, 8, 5]), [], hint="8, 8 is known behind 7, 7 only.")
expect(index.match([7, 7, 8, 8]), [0], hint="One token must remain to be fed.")
pool.release(first)
expect(pool.num_free, 4, hint="The text is over; the index still holds two blocks.")
expect((index.evict(), pool.num_free), (2, 6), hint="Nobody else holds them.")

# %% [markdown]
# ### Count what is saved
#
# Eight questions behind the same 40 tokens of instructions, through the model, with your index and without. The texts
# are the same; the tokens fed are not.

# %% demo="prefix_savings"
generator = torch.Generator().manual_seed(5)


def some(n):
    return torch.randint(0, 13, (n,), generator=generator).tolist()


instructions, fed, answers = some(40), {}, {}
questions = [instructions + some(3 + i % 4) for i in range(8)]
for name in ("without", "with the index"):
    cache = new_cache(num_blocks=40)
    index = PrefixIndex(cache.pool, cache.block_size)
    fed[name], answers[name] = 0, []
    for number, question in enumerate(questions):
        known = index.match(question) if name == "with the index" else []
        cache.start(number, known)
        new = question[cache.length(number) :]
        fed[name] += len(new)
        logits = batched_step(params, [(number, new)], cache, config)
        answers[name].append(int(logits.argmax()))
        index.insert(question, cache.table(number))
        cache.free(number)
        if name == "without":
            index.evict()
print("tokens fed:", fed)
print("the same answers:", answers["without"] == answers["with the index"])

# %% [markdown]
# ## 8. Beam search, with blocks for beams
#
# ★★★ · about 45 minutes
#
# Greedy decoding takes the likeliest token and never looks back; the *text* that comes out need not be the likeliest.
# Beam search keeps the $K$ best beginnings. In each step every beginning is continued by every token, and of all these
# continuations, over all beginnings together, the $K$ with the largest $\log P$ are kept.
#
# A text that writes the end token is finished: it leaves the beam and waits. At the end texts of different lengths are
# compared, and here $\log P$ alone is unfair: each token makes it smaller, so short texts win. Wu et al. (2016) divide
# it by a **length penalty**:
#
# $$\text{score}(Y) = \frac{\log P(Y)}{lp(Y)}, \qquad lp(Y) = \frac{(5 + |Y|)^\alpha}{(5 + 1)^\alpha}$$
#
# where $|Y|$ counts the new tokens, the end token included. With $\alpha = 0$ nothing changes; they used about 0.6.
# Remember that $\log P$ is negative before you decide in which direction this pushes.
#
# And the cache? A beginning may have two good continuations, and another none. Its keys are wanted twice, or not at
# all. With contiguous caches the rows are copied to and fro in every step (forget it, and each beam goes on with the
# keys of a stranger). With blocks it is what `fork` is made for: each continuation is a fork of its beginning, the
# beginnings are freed, and copy on write copies at most the last block.
#
# **The procedure, exactly.** Feed the prompt. Then in each step take the `num_beams` best continuations of the
# unfinished beams (all, if there are fewer). Those that end with `eos_id` are finished; the others are the beams of the
# next step. Stop when no beam is left or after `max_new` tokens; the beams that are left then count as they are. Sort
# all texts by score and return the best `num_beams`.
#
# **Predict first.** $\alpha$ grows from 0 to 1. Do longer or shorter texts gain?

# %% predict="beam_search"
predict(
    "Which texts gain by a larger α?",
    "longer ones",
    "shorter ones",
    answer="longer ones",
    because="log P is negative, and what is divided by more is nearer to 0.",
)


# %% question="beam_search"
def beam_search(prompt, cache, step, num_beams, max_new, alpha, eos_id):
    """The best texts that a beam of beginnings finds (length penalty: Wu et al., 2016).

    Args:
        prompt: list of int, at least one token.
        cache: an empty PagedCache. It has no text at the end.
        step: step(chunks) -> logits [len(chunks), V], for chunks as in batched_step;
            appends the tokens to the cache and advances. Called at most max_new times;
            after the prompt each beam feeds one token a step. Logits are finite; of
            continuations with equal sums any may come first.
        num_beams: K, how many continuations are kept in each step, at least 1. One
            that ends with eos_id is among them, and goes on no more.
        max_new: how many tokens a text gets at most, at least 1.
        alpha: of the length penalty.
        eos_id: the token that ends a text, and belongs to it.

    Returns:
        list of (new tokens, score), best first, at most num_beams of them: a list of
        int, and the log probability of all new tokens divided by the length penalty.

    Raises:
        ValueError: the prompt is empty, or num_beams or max_new is below 1; the number
            (0 for the prompt) in the message.
    """
    ### BEGIN SOLUTION
    if not prompt or num_beams < 1 or max_new < 1:
        raise ValueError(f"{num_beams} beams of {max_new} tokens after a prompt of {len(prompt)}")
    names = itertools.count()
    beams, finished = [(next(names), [], 0.0)], []  # name in the cache, new tokens, log P
    cache.start(beams[0][0])
    chunks = [(beams[0][0], list(prompt))]
    for _ in range(max_new):
        log_p = torch.log_softmax(step(chunks), dim=-1)  # [beams, V]
        so_far = log_p.new_tensor([total for _, _, total in beams])
        totals = so_far[:, None] + log_p  # [beams, V]
        best = totals.flatten().topk(min(num_beams, totals.numel()))
        going_on = []
        for total, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            parent, token = divmod(place, log_p.shape[1])
            name, tokens, _ = beams[parent]
            if token == eos_id:
                finished.append(([*tokens, token], total))
            else:
                going_on.append((next(names), [*tokens, token], total))
                cache.fork(name, going_on[-1][0])
        for name, _, _ in beams:
            cache.free(name)
        beams = going_on
        if not beams:
            break
        chunks = [(name, tokens[-1:]) for name, tokens, _ in beams]
    for name, tokens, total in beams:
        cache.free(name)
        finished.append((tokens, total))
    scored = [(tokens, total / ((5 + len(tokens)) / 6) ** alpha) for tokens, total in finished]
    return sorted(scored, key=lambda text: text[1], reverse=True)[:num_beams]
    ### END SOLUTION


# %% check="beam_search"
# A model that knows only the last token: after 0 comes 1 with 0.6 or 2 with 0.4, …
table = torch.tensor([[0.0, 0.6, 0.4], [0.3, 0.3, 0.4], [0.95, 0.05, 0.0]])
table = table.clamp(min=1e-9).log()  # logits are finite


def last_token_only(chunks):
    """A step that stores nothing but the count."""
    for name, new in chunks:
        cache.append(name, 0, tokens(*new), tokens(*new))
        cache.advance(name, len(new))
    return torch.stack([table[new[-1]] for _, new in chunks])


cache = PagedCache(1, 12, 2, 1, 1, torch.float32)
best = beam_search([0], cache, last_token_only, 1, 2, 0.0, eos_id=9)
expect(best[0][0], [1, 2], hint="One beam is greedy: 0.6 · 0.4 = 0.24.")
best = beam_search([0], cache, last_token_only, 2, 2, 0.0, eos_id=9)
expect(best[0][0], [2, 0], hint="Two beams find 0.4 · 0.95 = 0.38, which greedy misses.")
expect(best[0][1], math.log(0.38), atol=1e-5, hint="log P, with a penalty of 1.")
expect(cache.num_free, 12, hint="At the end no beam holds a block.")
best = beam_search([0], cache, last_token_only, 2, 2, 1.0, eos_id=0)
expect(
    best[0][1],
    math.log(0.38) / (7 / 6),
    atol=1e-5,
    hint="Two tokens, the end token counted: (5 + 2) / (5 + 1) to the power of 1.",
)

cache = new_cache(num_blocks=30)
best_text, best_score = beam_search(
    [3, 1],
    cache,
    lambda chunks: batched_step(params, chunks, cache, config),
    num_beams=3,
    max_new=4,
    alpha=0.0,
    eos_id=-1,
)[0]
whole_rows = decoder_lm(torch.tensor([[3, 1, *best_text]]), params, config)[0]
whole_log_p = whole_rows.log_softmax(dim=-1)
expect(
    best_score,
    sum(float(whole_log_p[1 + i, token]) for i, token in enumerate(best_text)),
    atol=1e-6,
    hint="What the search says of its text is not what the whole model says of it: does "
    "each beam go on with the keys of its own beginning?",
)

# %% [markdown]
# ### Greedy, beams, samples
#
# For eight prompts, $\log P$ of the text of four tokens that each way finds, as the model itself sees it.

# %% demo="beams"
import os

import matplotlib.pyplot as plt


def model_step(chunks):
    """One step of the model on the cache that is in use."""
    return batched_step(params, chunks, cache, config)


generator = torch.Generator().manual_seed(2)


def log_p_of(prompt, new):
    """log P of new tokens behind a prompt, by the whole model."""
    rows = decoder_lm(torch.tensor([prompt + new]), params, config)[0].log_softmax(-1)
    return sum(float(rows[len(prompt) - 1 + i, t]) for i, t in enumerate(new))


results = {"sampling": [], "greedy": [], "2 beams": [], "5 beams": []}
for _ in range(3 if "ATTENTION_KIT_QUICK" in os.environ else 8):
    prompt = torch.randint(0, 13, (3,), generator=generator).tolist()
    greedy = generate_alone(params, prompt, 4, config)
    results["greedy"].append(log_p_of(prompt, greedy))
    drawn = []
    for _ in range(4):
        row = decoder_lm(torch.tensor([prompt + drawn]), params, config)[0, -1]
        drawn.append(int(torch.multinomial(row.softmax(-1), 1, generator=generator)))
    results["sampling"].append(log_p_of(prompt, drawn))
    for num_beams in (2, 5):
        cache = new_cache(num_blocks=40)
        texts = beam_search(prompt, cache, model_step, num_beams, 4, 0.0, eos_id=-1)
        results[f"{num_beams} beams"].append(texts[0][1])
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
axis.boxplot(list(results.values()))
axis.set_xticks(range(1, 5), list(results))
axis.set(ylabel="log P of the text", title="What each way finds, eight prompts")
plt.show()

# %% [markdown]
# ## 9. Where does the attention go?
#
# ★☆☆ · about 10 minutes
#
# Softmax weights sum to 1. A head that looks for something which is not there has to put its weight *somewhere*. Xiao
# et al. (2024) looked at trained models and saw where: on the **first tokens** of the text, whatever these are, above
# the lowest layers often more than half of the weight. The first tokens are the only ones that every query can see, so
# training makes them the place where attention is parked. They call them **attention sinks**.
#
# Measure it: for each head, the share of the weight that lies on the first $s$ tokens, averaged over rows of the batch
# and over queries. Queries $0 \dots s-1$ can look nowhere else, so they do not count.
#
# **Predict first.** A causal head with no preference at all (equal scores); $N = 5$, $s = 1$.

# %% predict="sink_mass"
predict(
    "Which mass does the first token get, on average over queries 1 to 4?",
    answer=0.32,
    atol=0.02,
    because="(1/2 + 1/3 + 1/4 + 1/5) / 4 = 0.32: a number to compare with.",
)


# %% question="sink_mass"
def sink_mass(weights, num_first):
    """Which share of a head's attention lies on the first tokens.

    Args:
        weights: [B, H, N, N], causal attention weights; rows sum to 1.
        num_first: s, how many tokens count as the first, from 1 to N - 1.

    Returns:
        [H]: the weight on keys 0 … s-1, the mean over the batch and queries s … N-1.

    Raises:
        ValueError: num_first is not from 1 to N - 1; both numbers in the message.
    """
    ### BEGIN SOLUTION
    n = weights.shape[-1]
    if not 1 <= num_first < n:
        raise ValueError(f"the first {num_first} of {n} tokens")
    return weights[:, :, num_first:, :num_first].sum(dim=-1).mean(dim=(0, 2))
    ### END SOLUTION


# %% check="sink_mass"
weights = torch.tensor([[1.0, 0.0, 0.0], [0.8, 0.2, 0.0], [0.1, 0.3, 0.6]])
expect(
    sink_mass(weights[None, None], 1),
    torch.tensor([0.45]),
    hint="Queries 1 and 2 put 0.8 and 0.1 on the first token. Query 0 does not count.",
)

# %% [markdown]
# ## 10. A window with sinks
#
# ★★☆ · about 25 minutes
#
# A text without end needs a cache with an end. Assignment 8 had a window: keep the newest $W$ tokens. Do that to a
# model that was *not* trained with a window, and all is well until the text is longer than $W$: then the first tokens
# are dropped, with them the place where attention was parked, and the weight falls on whatever is left. The text breaks
# down at that very token.
#
# The remedy of Xiao et al. is to keep the first few tokens, four are enough, **and** the newest $W$. Everything between
# is dropped. One question remains, and it is where people go wrong: which positions do the kept tokens have? With sinks
# at 0 to 3 and the newest at a million, rotary embeddings would turn them by a distance that no training has seen. So
# positions are counted **inside the cache**: 0, 1, 2, … for the tokens that are kept, in order, and the query has the
# last of these. That means keys must be cached *unturned*, and turned anew in every step.
#
# `rotary_positions` and `grouped_attention` are in the library. The function takes all $n$ keys and chooses itself; a
# real cache would have dropped the others.
#
# **Predict first.** $n = 100$, four sinks, a window of 8. The newest token's position inside the cache?

# %% predict="sink_attention"
predict(
    "The newest token's position?",
    answer=11,
    because="4 + 8 = 12 tokens are kept, numbered from 0; the newest is the last.",
)


# %% question="sink_attention"
def sink_attention(q, k, v, num_sinks, window, theta):
    """Attention of the newest token over the first tokens and the newest ones, with
    positions counted inside the cache (Xiao et al., 2024).

    Args:
        q: [B, H, 1, d], the newest token's query, not turned.
        k, v: [B, H_kv, n, d], keys and values of all n tokens, the newest included; k
            is not turned.
        num_sinks: how many of the first tokens stay, at least 0.
        window: W, how many of the newest stay, the newest token included; at least 1.
            A text of num_sinks + window tokens or less stays whole.
        theta: of the rotary embeddings.

    Returns:
        [B, H, 1, d] in the dtype of q. Kept tokens have the positions 0, 1, 2, … in
        order.

    Raises:
        ValueError: num_sinks is below 0 or window below 1; both in the message.
    """
    ### BEGIN SOLUTION
    if num_sinks < 0 or window < 1:
        raise ValueError(f"{num_sinks} sinks and a window of {window} tokens")
    n = k.shape[2]
    first_of_window = max(num_sinks, n - window)
    if n > num_sinks:
        k, v = (torch.cat([t[:, :, :num_sinks], t[:, :, first_of_window:]], dim=2) for t in (k, v))
    places = torch.arange(k.shape[2])  # [kept]
    q = rotary_positions(q, places[-1:], theta)
    k = rotary_positions(k, places, theta)
    return grouped_attention(q, k, v, causal_mask(1, len(places)))
    ### END SOLUTION


# %% check="sink_attention"
torch.manual_seed(1)
q = torch.randn(1, 2, 1, 4, dtype=torch.float64)
k, v = torch.randn(2, 1, 1, 9, 4, dtype=torch.float64)
kept = [0, 1, 6, 7, 8]
short = sink_attention(q, k[:, :, kept], v[:, :, kept], 2, 3, 100.0)
expect(
    sink_attention(q, k, v, 2, 3, 100.0),
    short,
    atol=1e-10,
    hint="Nine tokens, of which 0, 1, 6, 7, 8 stay: as if the others had never been "
    "there, with positions 0 to 4.",
)
turned_q = rotary_positions(q, torch.tensor([4]), 100.0)
turned_k = rotary_positions(k[:, :, kept], torch.arange(5), 100.0)
expect(
    short,
    grouped_attention(turned_q, turned_k, v[:, :, kept], causal_mask(1, 5)),
    atol=1e-10,
    hint="A short text stays whole. Keys at 0 to 4, the query at 4.",
)

# %% [markdown]
# ### A head that needs its sink
#
# A head made by hand, so that you can see why. It looks for an earlier token like the current one. Where there is one,
# it copies its value; where there is none, its weight goes to the first token, whose value is zero: "nothing found".
# Left: all keys, and the mass on the first token (your `sink_mass`). Right: how far its output is from the right one as
# the text grows, with a plain window and with one sink. Nothing happens to the window until the first token falls out
# of it.

# %% demo="sinks"
import matplotlib.pyplot as plt

generator = torch.Generator().manual_seed(4)
length, width = 60, 64
words = torch.randn(length, width, generator=generator, dtype=torch.float64)
words = words / words.norm(dim=1, keepdim=True)
text = torch.arange(length)
text[12::6] = text[8 : length - 4 : 6]  # every sixth token was there four tokens before
v = words[text].clone()
v[0] = 0.0  # the sink tells nothing
scores = 30 * (words[text] @ words[text].T)
scores = scores - 1e9 * torch.eye(length, dtype=torch.float64)  # earlier tokens only
scores[:, 0] = 18.0  # more than chance likeness, less than equality
later = torch.ones(length, length, dtype=torch.bool).triu(1)
full = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
errors = {}
for label, sinks, window in (("window of 16", 0, 16), ("15 and one sink", 1, 15)):
    errors[label] = []
    for i in range(2, length):
        kept = [j for j in range(i + 1) if j < sinks or j > i - window]
        row = scores[i, kept].softmax(dim=-1)
        errors[label].append(float((row @ v[kept] - full[i] @ v).norm()))
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
axes[0].imshow(full, cmap="Blues", vmin=0, vmax=1)
axes[0].set(
    xlabel="key",
    ylabel="query",
    title=f"{float(sink_mass(full[None, None], 1)):.0%} of the weight is on token 0",
)
for name, line in errors.items():
    axes[1].plot(range(2, length), line, label=name)
axes[1].set(xlabel="tokens so far", ylabel="error of the output")
axes[1].legend()
plt.show()

# %% [markdown]
# ## 11. What a step costs
#
# ★★☆ · about 25 minutes
#
# A GPU has two speeds: operations a second, and bytes a second from its memory. Their quotient is its **ridge**: with
# fewer operations for each byte it waits for memory, with more it waits for arithmetic. An H100 does $989\cdot10^{12}$
# half precision operations and reads $3.35\cdot10^{12}$ bytes a second (NVIDIA's data sheet for the SXM module, without
# sparsity): its ridge is 295 operations a byte.
#
# Count one decoding step: one new token for each of $B$ texts that are $n$ tokens long, the new one included.
#
# * **weight bytes**: each matrix once, however many texts there are: $W_q, W_o$ of $D\cdot Hd$, $W_k, W_v$ of
#   $D\cdot H_{kv}d$ and the MLP's two of $D\cdot F$ in each layer, and the unembedding of $D\cdot V$. (Norms, biases and
#   single rows of the embedding are small; leave them out.)
# * **cache bytes**: keys and values of all $n$ tokens of each text, read once.
# * **flops**: 2 for each weight and text; and $4\,H d\,n$ in each layer for each text, scores and mixing of values.
#
# A batch spreads the weights over many texts: the intensity of that part is about $B$ (2 operations for 2 bytes, and
# $B$ times). The cache is no such thing: every text brings its own.

# %% question="decode_costs"
def decode_costs(config, batch, n, bytes_per_element):
    """Operations and bytes of one decoding step: a new token for each of `batch` texts.

    Args:
        config: num_layers, d_model, num_heads, num_kv_heads, d_head, d_ff, vocab_size.
        batch: B, texts in the step.
        n: tokens of each text, the new one included.
        bytes_per_element: of weights, keys and values.

    Returns:
        dict: "weight_bytes", "cache_bytes" and "flops", ints; "intensity", a float,
        operations for each byte of both kinds.

    Raises:
        ValueError: batch, n or bytes_per_element is below 1; it stands in the message.
    """
    ### BEGIN SOLUTION
    if min(batch, n, bytes_per_element) < 1:
        raise ValueError(f"sizes must be at least 1, got {batch}, {n}, {bytes_per_element}")
    wide, narrow = config.num_heads * config.d_head, config.num_kv_heads * config.d_head
    layer = 2 * config.d_model * (wide + narrow + config.d_ff)
    weights = config.num_layers * layer + config.d_model * config.vocab_size
    weight_bytes = weights * bytes_per_element
    cache_bytes = batch * n * kv_bytes_a_token(config, bytes_per_element)
    flops = batch * (2 * weights + 4 * config.num_layers * wide * n)
    return {
        "weight_bytes": weight_bytes,
        "cache_bytes": cache_bytes,
        "flops": flops,
        "intensity": flops / (weight_bytes + cache_bytes),
    }
    ### END SOLUTION


# %% check="decode_costs"
tiny = SimpleNamespace(
    num_layers=1,
    d_model=3,
    num_heads=2,
    num_kv_heads=1,
    d_head=2,
    d_ff=5,
    vocab_size=7,
)
costs = decode_costs(tiny, batch=2, n=10, bytes_per_element=2)
expect(
    costs["weight_bytes"],
    174,
    hint="12 + 6 + 6 + 12 for the projections, 30 for the MLP, 21 to unembed: 87 numbers.",
)
expect(costs["cache_bytes"], 160, hint="2 texts · 10 tokens · (2 + 2) numbers · 2 bytes.")
expect(costs["flops"], 668, hint="2 texts · (2 · 87 + 4 · 4 · 10).")
expect(costs["intensity"], 2.0, hint="668 / (174 + 160).")

# %% [markdown]
# ### Where the roof is
#
# A model of 8 billion parameters (32 layers, 32 heads of 128 with 8 key heads) on an H100, at three lengths. A step
# takes at least the larger of its two times. Left: the intensity against the batch; the dashed line is the ridge.
# "Decoding is limited by memory, and a larger batch cures it" is half the truth: with long texts the curves flatten
# **below** the ridge, and no batch ever reaches it. Which term is to blame? Right: what a user feels, tokens a second
# for one text, against what the owner earns, tokens a second in all. A curve ends where the texts no longer fit into 80
# GB.

# %% demo="roofline"
import matplotlib.pyplot as plt

H100_FLOPS, H100_BYTES, H100_MEMORY = 989e12, 3.35e12, 80e9
eight = SimpleNamespace(
    num_layers=32,
    d_model=4096,
    num_heads=32,
    num_kv_heads=8,
    d_head=128,
    d_ff=21504,  # three matrices of 14 336 in the real model, two here
    vocab_size=128256,
)
batches = [2**i for i in range(13)]
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for n in (512, 4096, 32768):
    costs = [decode_costs(eight, b, n, 2) for b in batches]
    axes[0].loglog(batches, [c["intensity"] for c in costs], "o-", label=f"{n} tokens")
    fits = [
        (b, c)
        for b, c in zip(batches, costs, strict=True)
        if c["weight_bytes"] + c["cache_bytes"] <= H100_MEMORY
    ]
    seconds = [
        max(
            c["flops"] / H100_FLOPS,
            (c["weight_bytes"] + c["cache_bytes"]) / H100_BYTES,
        )
        for _, c in fits
    ]
    axes[1].loglog(
        [1 / s for s in seconds],
        [b / s for (b, _), s in zip(fits, seconds, strict=True)],
        "o-",
        label=f"{n} tokens",
    )
axes[0].axhline(H100_FLOPS / H100_BYTES, color="grey", linestyle="--")
axes[0].set(xlabel="texts in a step", ylabel="operations a byte", title="Intensity")
axes[1].set(
    xlabel="tokens a second for one text",
    ylabel="tokens a second in all",
    title="The user and the owner",
)
for axis in axes:
    axis.legend()
plt.show()

# %% [markdown]
# ## 12. Find the error in the notes
#
# ★★☆ · about 25 minutes
#
# The lecture notes build attention as a search. The weights become, in their words, a "'probability' of being
# relevant": each value is weighted by "how likely it is to be relevant", and an attention weight says how important a
# key is for the query. Attention sinks are a strange sight for a reader of this: more than half of the weight on a
# token that tells nothing.
#
# The weight is half of the story. What a token *does* to the output depends on its value too. Prove with numbers that
# the two can be as far apart as you like. For a query with keys and values, invent two tokens that somebody might add:
#
# * **idle**: it gets at least 0.9 of the weight, and yet the output with it is the output without it, to $10^{-9}$;
# * **decisive**: it gets at most 0.01 of the weight, and yet adding it moves the output by at least 10 (Euclidean
#   length).
#
# Each is added alone to the tokens that are there. Think of the idle one first: a weighted mean of two points, one of
# them with weight 0.9. When does the mean stay at the other point?


# %% question="idle_and_decisive"
def idle_and_decisive(q, k, v):
    """Two tokens whose attention weights say nothing about what they do.

    Args:
        q: [d], float64, a query; it is not 0.
        k: [N, d], float64, keys of the tokens that are there.
        v: [N, d_v], float64, their values.

    Returns:
        (idle_key, idle_value, decisive_key, decisive_value): keys [d], values [d_v].
        Attention is softmax(q·k/√d) times v. With the idle token added it gets a weight
        of at least 0.9, and the output stays, within 1e-9. With the decisive one added
        instead it gets at most 0.01, and the output moves by 10 or more.

    Raises:
        ValueError: q is 0: every key gets the same weight. Its size d in the message.
    """
    ### BEGIN SOLUTION
    d = len(q)
    if not q.any():
        raise ValueError(f"a query of {d} zeros likes all keys equally")
    scores = k @ q / math.sqrt(d)  # [N]
    output = torch.softmax(scores, dim=0) @ v  # [d_v]
    level = torch.logsumexp(scores, dim=0)  # a key with this score gets half of the weight
    unit = q * (math.sqrt(d) / (q @ q))  # a key whose score is 1
    weight = 0.005
    far = torch.zeros_like(output)
    far[0] = 20 / weight
    return unit * (level + math.log(99)), output, unit * (level + math.log(weight / (1 - weight))), output + far
    ### END SOLUTION


# %% check="idle_and_decisive"
q = torch.tensor([1.0, 2.0], dtype=torch.float64)
k = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
v = torch.tensor([[1.0], [5.0], [-2.0]], dtype=torch.float64)


def with_token(key, value):
    """(weight of the added token, by how much it moves the output)."""
    before = torch.softmax(k @ q / math.sqrt(2), dim=0) @ v
    weights = torch.softmax(torch.cat([k, key[None]]) @ q / math.sqrt(2), dim=0)
    moved = weights @ torch.cat([v, value[None]]) - before
    return weights[-1].item(), moved.norm().item()


idle_key, idle_value, decisive_key, decisive_value = idle_and_decisive(q, k, v)
weight, moved = with_token(idle_key, idle_value)
expect(
    (weight >= 0.9, moved <= 1e-9),
    (True, True),
    hint=f"The idle token has a weight of {weight:.3f} and moves the output by {moved:.1e}.",
)
weight, moved = with_token(decisive_key, decisive_value)
expect(
    (weight <= 0.01, moved >= 10),
    (True, True),
    hint=f"The decisive token has a weight of {weight:.4f} and moves the output by {moved:.1f}.",
)

# %% [markdown] written="when_memory_runs_out" points=5
# ## 13. In your own words
#
# Your server has 1000 blocks of 16 tokens. Requests have prompts of 200 tokens and want up to 800 new ones; most stop
# after 100. A colleague proposes to admit a request only if blocks for all of its 1000 tokens are free, "so that we
# never have to preempt". How many requests run together in the colleague's way, and how many could typically in yours?
# What does yours risk, what does that cost, and who pays? Name one case in which the colleague is right. Five
# sentences.
#
# ### BEGIN SOLUTION
# 1000 tokens are 63 blocks, so the colleague runs 15 requests at a time. A typical request ends at 300 tokens, 19 blocks,
# so about 52 fit even if all are at their end, and more on average: three times as many texts share each reading of the
# weights. The risk is that many grow long together and blocks run out: then the newest is preempted, and its whole text
# is read again, one prefill of up to a thousand tokens; that request waits, the others hardly notice. It is a cost
# of work, never of correctness, since the recomputed text is the same. The colleague is right where nearly all texts
# use their whole allowance: then admitting more only causes preemptions, and tokens are computed twice for nothing.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 2 points: 15 (63 blocks each) against about 50 (19 blocks each). (1 point with a slip.)
# - 2 points: preemption: the text is read again; the preempted request pays in time, and the answer stays the same. (1
#   point each.)
# - 1 point: a case in which most texts use their whole allowance, or one in which delays must be predictable.
# ### END MARK SCHEME
