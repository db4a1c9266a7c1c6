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
# # Assignment 7: attention in tiles, and a kernel for the GPU
#
# Attention compares every query with every key, so it *computes* $N_q\cdot N_k$ scores. It does not follow that it must
# *store* them. The lecture ends its slides on cost with FlashAttention, which never writes the score matrix down, and
# for that reason runs faster and fits lengths that did not fit before. In this assignment you build it:
# first in torch, where every step can be looked at, then as a kernel that runs on a GPU.
#
# One idea carries all of it. A softmax seems to need the whole row before it can start, because of its maximum and its
# sum. But both can be kept up to date while the row passes by in pieces, **if what was computed with an older maximum
# is corrected when a larger one turns up**. That is the online softmax. The rest is bookkeeping about who loads which
# tile, and this bookkeeping is where kernels go wrong: at the last, ragged tile, at rows that see nothing, at
# a stride that was taken for granted. So your kernels run under strict eyes, which tell you which program touched
# which element, and you need no GPU for any of it.
#
# Six of the nine functions need only torch, wherever you work. The three kernels (`add_bias`, `softmax_rows`,
# `triton_attention`) need Triton, which is made for Linux: use a Linux machine, WSL on Windows, or a free hosted
# notebook such as Google Colab or Kaggle. Where there is no Triton, their checks are skipped and say so.
#
# ![One query tile walks over the key and value tiles](figures/tiles.svg)
#
# You write, in this order:
#
# | function | what it does | difficulty, estimated time |
# | --- | --- | --- |
# | `online_softmax_stats` | maximum and sum of a row that passes by in blocks | ★★☆, 25 min |
# | `merge_stats` | two partial answers into one | ★★☆, 25 min |
# | `tiled_attention` | attention without the score matrix, with log-sum-exp | ★★★, 60 min |
# | `tiled_attention_backward` | its gradients, without the score matrix | ★★★, 50 min |
# | `hbm_traffic` | bytes moved, naive against tiled | ★☆☆, 15 min |
# | `add_bias` | a first kernel: programs, pointers, masks | ★★☆, 30 min |
# | `softmax_rows` | a second one: a reduction in a kernel | ★★☆, 25 min |
# | `triton_attention` | tiled attention as a kernel | ★★★, 90 min |
# | `growth_of_costs` | find the error in the notes | ★★☆, 20 min |
#
# > **Conventions.** Shapes are `[..., N, d]`; heads come right after the batch, `[B, H, N, d]`. Causal is
# > **bottom-right aligned**: query $i$ may see key $j$ when $j \le i + N_k - N_q$. A row that sees no key has output 0
# > and log-sum-exp $-\infty$. Half precision computes in float32: the statistics $m$, $l$ and the log-sum-exp are then
# > float32, and the output goes back to half. Inputs are never changed.
# >
# > $N_q$ queries, $N_k$ keys, $d$ head size, $d_v$ value size, $B_q$ and $B_k$ rows of a query tile and of a key tile.

# %% given="no_triton"
from autograder.student_tools.no_triton import NoTriton, kernels_run

# %% given="imports"
import math
import os

import torch

# Without a GPU, or with TRITON_INTERPRET=1, kernels run on the CPU: not in Triton's own
# interpreter, but strictly (below).
interpret = os.environ.pop("TRITON_INTERPRET", "") == "1"
device = "cpu" if interpret or not torch.cuda.is_available() else "cuda"

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = NoTriton(
        "kernels need Triton, which is made for Linux. Open this notebook on Linux, in "
        "WSL on Windows, or in a free hosted notebook (Google Colab, Kaggle). The six "
        "questions without a kernel need only torch, and run here."
    )

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% [markdown]
# ## Why the score matrix is slow, not only large
#
# A GPU has two kinds of memory. On the chip, next to the arithmetic, there are a few hundred kilobytes a processor.
# Beside the chip there are many gigabytes, and everything that passes between the two passes through a pipe:
#
# ![The memory of a GPU](figures/memory.svg)
#
# So the chip must do about 295 operations with every byte it fetches, or it waits. Naive attention is three passes:
# $S = QK^\top/\sqrt d$, then $P=\operatorname{softmax}(S)$, then $O = PV$, and each writes its result to main memory
# for the next one to read. For one head with $N = 4096$, $d = 64$, in half precision:
#
# * operations: $4N^2d = 4.3\cdot10^{9}$, at 990 TFLOP/s that is **4.3 µs**;
# * bytes: $S$ is written and read, $P$ is written and read, $4N^2\cdot2 = 134\cdot10^6$, at 3.35 TB/s that is **40
#   µs**.
#
# By this estimate nothing is computed for nine tenths of the time. Scores that live and die on the chip would cost no
# traffic at all. What stands in the way is the softmax in the middle, so that is where we begin.

# %% [markdown]
# ## 1. A softmax that sees its row in blocks
#
# ★★☆ · about 25 minutes
#
# The stable softmax of a row $x$ needs two numbers, the maximum $m$ and the sum $l$ over the whole row:
#
# $$m = \max_j x_j \qquad l = \sum_j e^{x_j - m} \qquad \operatorname{softmax}(x)_j = \frac{e^{x_j-m}}{l}$$
#
# Suppose the row comes in blocks, and we hold the two numbers of what has passed, $(m, l)$. A new block arrives, with
# its own maximum. Let $m'$ be the larger of the two. Every term of the old sum was $e^{x_j-m}$ and should be
# $e^{x_j-m'}$. Both differ by a factor that is *the same for all of them*:
#
# $$e^{x_j-m'} = e^{x_j-m}\,e^{m-m'} \qquad\Longrightarrow\qquad
#   l' = l\,e^{m-m'} + \sum_{j\,\in\,\text{block}} e^{x_j-m'}$$
#
# So the old sum is repaired by one multiplication, without a look at the old elements. Two places to be careful:
#
# 1. **Where to start.** Before anything has passed, the maximum of nothing is $-\infty$ and the sum is 0. Any finite
#    start is a claim about the data: think of a row whose scores are all below $-1000$.
# 2. **Infinity minus infinity.** A block may be $-\infty$ throughout (masked keys). Then $m' = -\infty$ and
#    $x_j-m'$ is not a number. Such a block has to leave $(m, l)$ as they were. A finite stand-in for $m'$
#    is fine *inside the exponent*; it must not get into the $m$ that you keep.
#
# **Predict first.** The row $(\ln 1, \ln 2, \ln 4)$ in blocks of one: write down $(m, l)$ after each block.

# %% predict="online_softmax_stats"
predict(
    "l after the last block?",
    answer=1.75,
    because="(0, 1), (ln 2, 1.5), (ln 4, 1.75): the old sum shrinks by a half each "
    "time, and 1 is added.",
)


# %% question="online_softmax_stats"
def online_softmax_stats(x, block):
    """Maximum and sum of exponentials of each row, in one pass over blocks (Milakov and
    Gimelshein, 2018).

    Args:
        x: [..., N], floating point, N >= 1; -inf is allowed.
        block: elements of a row that are looked at together; the last block may be
            smaller.

    Returns:
        (m, l), each [...]: m the maximum of the row, l the sum of exp(x - m). A row
        that is all -inf has m = -inf and l = 0. float32 for half precision, else the
        dtype of x. All that is alive at any time, x left out, is a few blocks, however
        long the row.

    Raises:
        ValueError: block is below 1; it stands in the message.
    """
    ### BEGIN SOLUTION
    if block < 1:
        raise ValueError(f"a block has at least 1 element, got {block}")
    dtype = x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32
    m = torch.full(x.shape[:-1], float("-inf"), dtype=dtype)  # [...]
    l = torch.zeros(x.shape[:-1], dtype=dtype)  # [...]
    for start in range(0, x.shape[-1], block):
        tile = x[..., start : start + block].to(dtype)  # [..., block]
        m_new = torch.maximum(m, tile.amax(dim=-1))
        safe = m_new.masked_fill(m_new == float("-inf"), 0.0)  # nothing seen yet: avoid -inf - -inf
        l = l * torch.exp(m - safe) + torch.exp(tile - safe.unsqueeze(-1)).sum(dim=-1)
        m = m_new
    return m, l
    ### END SOLUTION


# %% check="online_softmax_stats"
row = torch.tensor([1.0, 2.0, 4.0]).log()
for block in (1, 2, 3):
    m, l = online_softmax_stats(row, block)
    expect(
        m,
        torch.tensor(math.log(4.0)),
        hint="m is the largest element, ln 4 = 1.386.",
    )
    expect(
        l,
        torch.tensor(1.75),
        hint=f"(1 + 2 + 4) / 4, also with blocks of {block}. 3? The old sum was not corrected when the maximum grew.",
    )
m, l = online_softmax_stats(torch.tensor([-1200.0, -1200.0]), 1)
expect(
    l,
    torch.tensor(2.0),
    atol=1e-3,
    hint="Two equal elements: each is exp(0). 0? Where does your maximum start?",
)
m, l = online_softmax_stats(torch.tensor([float("-inf"), float("-inf"), 5.0]), 2)
expect(
    l,
    torch.tensor(1.0),
    hint="The first block holds nothing but -inf. nan? You have computed -inf minus -inf.",
)

# %% [markdown]
# What a row looks like while it passes by: the maximum only climbs, and each step up shrinks the sum collected so far.

# %% demo="watch_the_row_pass"
import matplotlib.pyplot as plt

row = torch.randn(120, generator=torch.Generator().manual_seed(3)).mul(
    2
) + torch.linspace(-3, 3, 120)
seen = [online_softmax_stats(row[: n + 1], 1) for n in range(120)]
figure, axes = plt.subplots(2, 1, figsize=(7.5, 4.6), sharex=True, layout="constrained")
axes[0].plot(row, ".", color="lightgrey", label="elements")
axes[0].plot([m for m, _ in seen], color="tab:blue", label="m so far")
axes[0].set(ylabel="value", title="The online softmax on one row")
axes[0].legend()
axes[1].plot([l for _, l in seen], color="tab:orange", label="l so far")
axes[1].plot(
    [m + l.log() for m, l in seen], color="tab:green", label="m + ln l: never falls"
)
axes[1].set(xlabel="elements that have passed", ylabel="value")
axes[1].legend()
plt.show()

# %% [markdown]
# ## 2. Two partial answers into one
#
# ★★☆ · about 25 minutes
#
# Attention wants more than the weights: it wants the weighted sum of values. Keep that in the same way, and do **not**
# divide yet. For any set of keys, let
#
# $$m=\max_j s_j\qquad l=\sum_j e^{s_j-m}\qquad o=\sum_j e^{s_j-m}\,v_j \quad(\text{a vector of } d_v \text{ numbers})$$
#
# Two disjoint sets of keys, $A$ and $B$, give $(m_A,l_A,o_A)$ and $(m_B,l_B,o_B)$. From the same argument as before,
# with $m=\max(m_A,m_B)$:
#
# $$l = l_A\,e^{m_A-m} + l_B\,e^{m_B-m}\qquad o = o_A\,e^{m_A-m} + o_B\,e^{m_B-m}$$
#
# and the answer of both together is $o/l$. Because $o$ is not divided, the rule does not care in which order or
# grouping sets are merged: it is associative and commutative, like a sum. That is worth a lot. Tiles can go one after
# the other (this assignment), or be shared out over processors and merged at the end, or over machines.
#
# The empty set is $(-\infty, 0, 0)$, and merging with it must change nothing, whichever side it is on.
#
# **Predict first.** Set $A$ is one key with score 0 and value 2, set $B$ one key with score $\ln 3$ and value 4. What
# are $m$, $l$, $o$ and $o/l$ of both?

# %% predict="merge_stats"
predict(
    "o / l of both together?",
    answer=3.5,
    because="m = ln 3, l = 1/3 + 1 and o = 2/3 + 4, so o / l = (14/3) / (4/3).",
)


# %% question="merge_stats"
def merge_stats(a, b):
    """Merge the partial softmax sums of two disjoint sets of keys.

    Args:
        a: (m, l, o): m [...] the maximum score, l [...] the sum of exp(s - m), o
            [..., d_v] the sum of exp(s - m) v, not divided by l. A set without keys is
            (-inf, 0, 0).
        b: the same of another set of keys, in the same shapes and dtypes.

    Returns:
        (m, l, o) of both sets together, in the same shapes and dtypes. Associative: the
        grouping does not matter.
    """
    ### BEGIN SOLUTION
    m_a, l_a, o_a = a
    m_b, l_b, o_b = b
    m = torch.maximum(m_a, m_b)  # [...]
    safe = m.masked_fill(m == float("-inf"), 0.0)  # both empty: avoid -inf - -inf
    shrink_a, shrink_b = torch.exp(m_a - safe), torch.exp(m_b - safe)  # [...], one of them is 1
    l = l_a * shrink_a + l_b * shrink_b
    o = o_a * shrink_a.unsqueeze(-1) + o_b * shrink_b.unsqueeze(-1)  # [..., d_v]
    return m, l, o
    ### END SOLUTION


# %% check="merge_stats"
# one key: score 0, value 2
a = (torch.tensor(0.0), torch.tensor(1.0), torch.tensor([2.0]))
# one key: score ln 3, value 4
b = (torch.tensor(math.log(3.0)), torch.tensor(1.0), torch.tensor([4.0]))
m, l, o = merge_stats(a, b)
expect(m, torch.tensor(math.log(3.0)), hint="The larger of the two maxima.")
expect(
    l,
    torch.tensor(4 / 3),
    hint="A shrinks by exp(0 - ln 3) = 1/3, B stays. 2? Then A was not corrected.",
)
expect(
    o,
    torch.tensor([14 / 3]),
    hint="2/3 + 4. 3.5? That is o / l: do not divide here, or the next merge is wrong.",
)
nothing = (torch.tensor(float("-inf")), torch.tensor(0.0), torch.tensor([0.0]))
expect(
    merge_stats(nothing, a)[2],
    a[2],
    hint="Nothing, merged with A, is A. nan? Look for -inf minus -inf.",
)
expect(
    merge_stats(nothing, nothing)[1],
    torch.tensor(0.0),
    hint="Nothing and nothing is nothing: l = 0, m = -inf.",
)

# %% [markdown]
# ## 3. Attention, tile by tile
#
# ★★★ · about 60 minutes
#
# Now put the pieces together, as in the picture at the top. For each tile of $B_q$ queries, walk over the keys in tiles
# of $B_k$. Each step makes a score tile of $B_q\times B_k$ numbers, turns it into its $(m,l,o)$, merges that into what
# the query tile remembers, and forgets the scores:
#
# $$S = \frac{Q_i K_j^\top}{\sqrt d}\quad [B_q, B_k]$$
# $$m=\max S\qquad P=e^{S-m}\qquad l=\textstyle\sum P\qquad o=P\,V_j\quad [B_q, d_v]$$
#
# After the last key tile, divide **once**, and hand out the log-sum-exp beside the output:
#
# $$O_i = \frac{o}{l}\qquad \mathrm{lse}_i = m+\ln l = \ln\sum_j e^{s_{ij}}$$
#
# The log-sum-exp is one number a row, and with it every weight can be computed again from its score alone,
# $P_{ij}=e^{S_{ij}-\mathrm{lse}_i}$. The backward pass lives on that.
#
# Where evenings are lost:
#
# * **Ragged tiles, in both directions.** 13 queries in tiles of 4 are *four* tiles. (A padded key has score 0, and a
#   score of 0 has weight: where you pad, the padding has to become $-\infty$.)
# * **Which row is this?** Row $r$ of query tile $i$ is query $i B_q+r$ of the whole. A causal mask that is built from
#   the positions inside the tile is right on the first tile only.
# * **Bottom-right.** The *last* query sees the last key. With $N_q<N_k$ (new tokens, long past) the first query sees
#   $N_k-N_q+1$ keys; with $N_q>N_k$ the first rows see nothing at all.
# * **A list is memory too.** Collecting all the score tiles, or all the partial $o$ of all tiles, to deal with them at
#   the end is the matrix again, in pieces.
#
# **Predict first.** $d=1$, query 1, keys $(\ln 1,\ln 3,\ln 4)$, values $(8, 0, 4)$. What is the output, and the
# log-sum-exp?

# %% predict="tiled_attention"
predict(
    "What is the output?",
    answer=3,
    because="Weights 1/8, 3/8 and 4/8 on 8, 0 and 4. The log-sum-exp is ln 8.",
)


# %% question="tiled_attention"
def tiled_attention(q, k, v, block_q, block_k, causal=False):
    """Scaled dot-product attention without the score matrix (Dao et al., 2022).

    Args:
        q: [..., N_q, d].
        k: [..., N_k, d].
        v: [..., N_k, d_v].
        block_q: queries of a tile.
        block_k: keys of a tile.
        causal: query i sees key j only when j <= i + N_k - N_q.

    Returns:
        (o, lse): o [..., N_q, d_v] in the dtype of q; lse [..., N_q], the logarithm of
        the sum of exp(score), float32 for half precision, else the dtype of q. A row
        that sees no key has o = 0 and lse = -inf. All that is alive at
        any time, inputs left out, is the answer and a few tiles: far less than N_q *
        N_k numbers, and no more with more keys. So half precision becomes float32
        tile by tile.

    Raises:
        ValueError: a block below 1; q and k of different d; k and v of different N_k.
            The sizes in the message.
    """
    ### BEGIN SOLUTION
    n_q, n_k, d = q.shape[-2], k.shape[-2], q.shape[-1]
    if min(block_q, block_k) < 1:
        raise ValueError(f"tiles have at least 1 row, got {block_q} and {block_k}")
    if k.shape[-1] != d or v.shape[-2] != n_k:
        raise ValueError(f"q {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)} do not fit together")
    dtype = q.dtype if q.dtype in (torch.float32, torch.float64) else torch.float32
    o = torch.empty(*q.shape[:-1], v.shape[-1], dtype=q.dtype)  # [..., N_q, d_v]
    lse = torch.empty(q.shape[:-1], dtype=dtype)  # [..., N_q]
    for i in range(0, n_q, block_q):
        q_tile = q[..., i : i + block_q, :].to(dtype) / math.sqrt(d)  # [..., B_q, d]
        rows = torch.arange(i, min(i + block_q, n_q)).unsqueeze(1)  # [B_q, 1], positions in the whole
        shape = q_tile.shape[:-1]
        stats = (
            torch.full(shape, float("-inf"), dtype=dtype),
            torch.zeros(shape, dtype=dtype),
            torch.zeros(*shape, v.shape[-1], dtype=dtype),
        )
        for j in range(0, n_k, block_k):
            s = q_tile @ k[..., j : j + block_k, :].to(dtype).transpose(-2, -1)  # [..., B_q, B_k]
            if causal:
                columns = torch.arange(j, min(j + block_k, n_k))
                s = s.masked_fill(columns > rows + (n_k - n_q), float("-inf"))
            m = s.amax(dim=-1)
            p = torch.exp(s - m.masked_fill(m == float("-inf"), 0.0).unsqueeze(-1))
            stats = merge_stats(stats, (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype)))
        m, l, acc = stats
        o[..., i : i + block_q, :] = (acc / l.masked_fill(l == 0, 1.0).unsqueeze(-1)).to(q.dtype)
        lse[..., i : i + block_q] = m + torch.log(l)
    return o, lse
    ### END SOLUTION


# %% check="tiled_attention"
q = torch.tensor([[1.0], [1.0]])
k = torch.tensor([[1.0], [3.0], [4.0]]).log()
v = torch.tensor([[8.0], [0.0], [4.0]])
for blocks in ((1, 1), (2, 2), (5, 5)):
    o, lse = tiled_attention(q, k, v, *blocks)
    expect(
        o,
        torch.tensor([[3.0], [3.0]]),
        hint=f"Weights 1/8, 3/8, 4/8 on the values 8, 0, 4; tiles of {blocks}.",
    )
    expect(
        lse,
        torch.tensor([8.0, 8.0]).log(),
        hint="ln(1 + 3 + 4). The maximum belongs in it: m + ln l.",
    )
    o, lse = tiled_attention(q, k, v, *blocks, causal=True)
    expect(
        o,
        torch.tensor([[2.0], [3.0]]),
        hint="Two queries, three keys: the last query sees all, the first sees two (weights 1/4 and 3/4).",
    )
torch.manual_seed(0)
q, k, v = torch.randn(2, 13, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 3)
full = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(5), dim=-1) @ v
expect(
    tiled_attention(q, k, v, 4, 3)[0],
    full,
    atol=1e-5,
    hint="13 and 11 are no multiples of 4 and 3.",
)

# %% [markdown]
# ## 4. The way back
#
# ★★★ · about 50 minutes
#
# For gradients, autograd would keep every score tile of the forward pass, which is the matrix again. The way out looks
# wasteful and is the fast one: **compute the scores a second time**. With $\mathrm{lse}$ saved, a tile of weights needs
# no other tile: $P = e^{S-\mathrm{lse}}$, already divided. Given $dO$, the gradients follow from $O=PV$ and
# $S = QK^\top/\sqrt d$:
#
# $$dV = P^\top dO\qquad dP = dO\,V^\top\qquad dS = P\circ(dP - D)\qquad
#   dQ = \frac{dS\,K}{\sqrt d}\qquad dK=\frac{dS^\top Q}{\sqrt d}$$
#
# The line for $dS$ is the Jacobian of the softmax. Row by row it says
# $dS_{ij}=P_{ij}\,(dP_{ij}-\sum_k P_{ik}\,dP_{ik})$, and that sum runs over *all* keys, which a tile does not see. But
# it has a short form:
#
# $$D_i=\sum_k P_{ik}\,dP_{ik} = \sum_k P_{ik}\,(dO_i\cdot V_k) = dO_i\cdot\Big(\sum_k P_{ik}V_k\Big)= dO_i\cdot O_i$$
#
# One number a row, from what is already there. So a tile contributes to $dQ$ of its queries and to $dK$ and $dV$ of its
# keys, and all three are sums over tiles. Do not lose $1/\sqrt d$ on the way (who has it?), and mind
# rows that see nothing: their $\mathrm{lse}$ is $-\infty$, and their gradients are 0, not NaN.
#
# **Predict first.** In the small example above, $dO=1$: $P=(1/8,3/8,4/8)$, values $(8,0,4)$, $O=3$. What is $dS$, and
# what must its sum be?

# %% predict="tiled_attention_backward"
predict(
    "The second number of dS?",
    answer=-1.125,
    because="P (dP − 3) = (0.625, −1.125, 0.5). The sum must be 0: a softmax does not "
    "notice a common shift.",
)


# %% question="tiled_attention_backward"
def tiled_attention_backward(q, k, v, o, lse, do, block_q, block_k, causal=False):
    """Gradients of tiled attention; the score tiles are computed again (Dao et al.,
    2022; Dao, 2023).

    Args:
        q, k, v, causal: as in tiled_attention.
        o, lse: what tiled_attention returned for them.
        do: [..., N_q, d_v], the gradient of o.
        block_q, block_k: rows of the tiles; they need not be those of the forward pass.

    Returns:
        (dq, dk, dv) in the shapes and dtypes of q, k, v; half precision computes in
        float32. Rows that see nothing contribute nothing. All that is alive at any
        time, inputs left out, is the gradients and a few tiles: far less than N_q * N_k
        numbers. So half precision becomes float32 tile by tile.
    """
    ### BEGIN SOLUTION
    n_q, n_k, scale = q.shape[-2], k.shape[-2], 1 / math.sqrt(q.shape[-1])
    dtype = lse.dtype
    dq, dk, dv = (torch.zeros(x.shape, dtype=dtype) for x in (q, k, v))
    for i in range(0, n_q, block_q):
        q_tile, do_tile = q[..., i : i + block_q, :].to(dtype), do[..., i : i + block_q, :].to(dtype)
        delta = (do_tile * o[..., i : i + block_q, :].to(dtype)).sum(dim=-1, keepdim=True)  # D, [..., B_q, 1]
        lse_tile = lse[..., i : i + block_q].unsqueeze(-1)
        lse_tile = lse_tile.masked_fill(lse_tile == float("-inf"), 0.0)  # sees nothing: every score is -inf anyway
        rows = torch.arange(i, min(i + block_q, n_q)).unsqueeze(1)
        for j in range(0, n_k, block_k):
            k_tile, v_tile = k[..., j : j + block_k, :].to(dtype), v[..., j : j + block_k, :].to(dtype)
            s = scale * q_tile @ k_tile.transpose(-2, -1)  # [..., B_q, B_k]
            if causal:
                columns = torch.arange(j, min(j + block_k, n_k))
                s = s.masked_fill(columns > rows + (n_k - n_q), float("-inf"))
            p = torch.exp(s - lse_tile)  # the weights, already divided
            ds = p * (do_tile @ v_tile.transpose(-2, -1) - delta)
            dv[..., j : j + block_k, :] += p.transpose(-2, -1) @ do_tile
            dq[..., i : i + block_q, :] += scale * ds @ k_tile
            dk[..., j : j + block_k, :] += scale * ds.transpose(-2, -1) @ q_tile
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)
    ### END SOLUTION


# %% check="tiled_attention_backward"
q = torch.tensor([[1.0]])
k = torch.tensor([[1.0], [3.0], [4.0]]).log()
v = torch.tensor([[8.0], [0.0], [4.0]])
o, lse = torch.tensor([[3.0]]), torch.tensor([8.0]).log()
dq, dk, dv = tiled_attention_backward(q, k, v, o, lse, torch.ones(1, 1), 1, 2)
expect(
    dv,
    torch.tensor([[0.125], [0.375], [0.5]]),
    hint="dV = Pᵀ dO: the weights themselves.",
)
expect(
    dk,
    torch.tensor([[0.625], [-1.125], [0.5]]),
    hint="P ∘ (dP - 3). 1, 0 and 2? Then D is missing. The three must sum to 0: a shift of all keys changes nothing.",
)
expect(
    dq,
    torch.tensor([[-1.125 * math.log(3) + 0.5 * math.log(4)]]),
    hint="dS K, summed over all key tiles.",
)

torch.manual_seed(1)
q, k, v = (torch.randn(7, 6, requires_grad=True) for _ in range(3))
full = torch.softmax(q @ k.T / math.sqrt(6), dim=-1) @ v
do = torch.randn(7, 6)
full.backward(do)
lse = torch.logsumexp(q @ k.T / math.sqrt(6), dim=-1)
grads = tiled_attention_backward(
    q.detach(), k.detach(), v.detach(), full.detach(), lse.detach(), do, 4, 3
)
for grad, x, name in zip(grads, (q, k, v), ("dQ", "dK", "dV"), strict=True):
    expect(
        grad,
        x.grad,
        atol=1e-5,
        hint=f"{name} against autograd, d = 6. Off by a factor? Follow the scale.",
    )

# %% [markdown]
# ## 5. Counting bytes
#
# ★☆☆ · about 15 minutes
#
# How much does all this save? Count the elements that pass between main memory and chip, for one head of $N$ tokens,
# not causal.
#
# **Naive**, three passes: read $Q$ and $K$, write $S$; read $S$, write $P$; read $P$ and $V$, write $O$.
#
# **Tiled**: a query tile is loaded once and its output written once, over all tiles that is $Q$ and $O$ once. But
# *every query tile* walks over all of $K$ and $V$. (The log-sum-exp, one number a row, is left out.)
#
# Then multiply by the bytes of an element. Which of the two block sizes matters? Find out before you write code; the
# other one decides only what fits on the chip.
#
# **Predict first.** $N=4096$, $d=64$, $B_q=128$: by which factor is the tiled traffic smaller?

# %% predict="hbm_traffic"
predict(
    "By which factor is the tiled traffic smaller?",
    answer=3.94,
    atol=0.15,
    because="4 N (d + N) against 2 N d (1 + N / 128): 16640 / 4224.",
)


# %% question="hbm_traffic"
def hbm_traffic(n, d, block_q, block_k, bytes_per_element):
    """Bytes between main memory and chip in one head of attention, not causal, naive
    and tiled.

    Args:
        n: tokens, as queries and as keys.
        d: head size, of values too.
        block_q: queries of a tile; the last tile may be smaller.
        block_k: keys of a tile.
        bytes_per_element: 2 for half precision, 4 for float32.

    Returns:
        dict of int: "naive" (read Q and K, write S; read S, write P; read P and V,
        write O) and "tiled" (Q and O once, K and V once for each query tile).

    Raises:
        ValueError: one of the five numbers is below 1; it stands in the message.
    """
    ### BEGIN SOLUTION
    sizes = (n, d, block_q, block_k, bytes_per_element)
    if min(sizes) < 1:
        raise ValueError(f"sizes must be at least 1, got {sizes}")
    query_tiles = -(-n // block_q)  # rounded up
    return {
        "naive": (4 * n * d + 4 * n * n) * bytes_per_element,
        "tiled": (2 * n * d + query_tiles * 2 * n * d) * bytes_per_element,
    }
    ### END SOLUTION


# %% check="hbm_traffic"
small = hbm_traffic(4, 2, 2, 2, bytes_per_element=4)
expect(
    small["naive"],
    384,
    hint="Q, K, V, O are 8 elements each, S and P move 16 four times: 96 elements of 4 bytes.",
)
expect(
    small["tiled"],
    192,
    hint="Q and O: 16. K and V, 16 together, for each of two query tiles: 32.",
)
expect(
    hbm_traffic(5, 2, 2, 2, 4)["tiled"],
    320,
    hint="Five queries in tiles of two are three tiles: 20 + 3 · 20.",
)

# %% demo="traffic_against_length"
import matplotlib.pyplot as plt

lengths = [2**e for e in range(6, 18)]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
naive = [hbm_traffic(n, 64, 128, 64, 2)["naive"] / 1e6 for n in lengths]
axes[0].loglog(lengths, naive, color="tab:red", linestyle="--", zorder=3, label="naive")
for block_q in (32, 128, 512):
    megabytes = [hbm_traffic(n, 64, block_q, 64, 2)["tiled"] / 1e6 for n in lengths]
    axes[0].loglog(lengths, megabytes, label=f"tiled, B_q = {block_q}")
axes[0].set(
    xlabel="tokens N",
    ylabel="MB moved",
    title="Traffic of one head, d = 64, half precision",
)
axes[0].legend()
for d in (32, 64, 128):
    ratio = [hbm_traffic(n, d, 128, 64, 2) for n in lengths]
    axes[1].semilogx(
        lengths, [r["naive"] / r["tiled"] for r in ratio], label=f"d = {d}"
    )
axes[1].set(
    xlabel="tokens N", ylabel="naive / tiled", title="How many times less, B_q = 128"
)
axes[1].legend()
plt.show()

# %% [markdown]
# ## Kernels: programs, pointers, masks
#
# The torch version saves memory, but each torch operation in it still goes to main memory and back. To keep a tile on
# the chip *between* operations, they must be one program: a **kernel**. Triton lets us write one in Python.
#
# * A kernel is launched on a **grid** of programs, `kernel[(4, 6)](…)` starts 24. All run the same code, in any
#   order, many at once. A program asks who it is, `tl.program_id(0)`, and from that decides which tile is its own.
# * A tensor arrives as the **pointer** to its first element. Element $(i, j)$ lies `i * stride_0 + j * stride_1`
#   elements further on, and the strides have to be passed in: a transposed tensor has other strides than the one it
#   came from.
# * `tl.arange(0, 32)` makes a block of 32 offsets at once; its length must be a **power of two**. `pointer + offsets`
#   is a block of pointers, `tl.load` fetches them all, `tl.store` writes them all. `offsets[:, None]` and
#   `offsets[None, :]` combine to a tile.
# * Data is not a power of two, so the last tile sticks out. `mask=` says which lanes are real, and **`other=` says what
#   the rest hold**. Leave it out, and they hold *anything*. And a store needs its mask too: it writes to
#   whoever owns the memory behind your tensor.
# * Values marked `tl.constexpr` are fixed when the kernel is compiled: block sizes, flags.
#
# Everything else reads like torch: `tl.exp`, `tl.sum(x, axis)`, `tl.max(x, axis)`, `tl.where`, `tl.dot`, `tl.zeros`,
# `x.to(tl.float32)`.
#
# ### Strict kernels on a CPU
#
# On a GPU, a wrong address reads whatever lies there, and your test passes, until the day it does not. Triton's own
# interpreter has the same habit. The next cell imports something stricter: your kernel goes through Triton's compiler
# as it would for a GPU, and what the compiler makes of it runs here, all programs at once. Every access is checked
# against the tensors that were passed, masked lanes without `other` are NaN, two programs may not depend on which of
# them is first, and everything is counted. When a kernel does what it may not, it says so, with your line: *program
# (2, 0) reads k[40, 0], and k has 40 rows*. And `trace(function, …)` calls a function and gives back its result and
# what its programs touched.

# %% given="strict"
def trace(function, *arguments, **keywords):
    """Without a GPU there is another one, further down."""
    raise RuntimeError(
        'only kernels on a CPU are traced: put os.environ["TRITON_INTERPRET"] = "1" at '
        "the top of the first cell with imports, and restart"
    )


if device == "cpu" and kernels_run(triton):
    try:
        from autograder.kernels.strict_triton import trace
    except ImportError as error:  # an old version of Triton
        triton = tl = NoTriton(str(error))
        kernels_run(triton)

# %% [markdown]
# ## 6. A first kernel: add a bias
#
# ★★☆ · about 30 minutes
#
# $y_{ij}=x_{ij}+b_j$, for $x$ of $M\times N$. Cut the matrix into tiles, give each program one, on a grid of two axes.
# A program needs: the rows of its tile, the columns of its tile, the mask of those that exist, a load of $x$, a load of
# $b$ (it depends on the column only), a store.
#
# The **wrapper** is an ordinary function: it makes the output, computes the grid and launches. How many programs do
# 7 rows need in tiles of 4? `triton.cdiv` rounds up. The wrapper may allocate and rearrange, it does not compute: all
# arithmetic belongs in the kernel, and the grader looks.
#
# **Predict first.** $x$ is $7\times11$, tiles are $4\times8$. How many programs are there, and how often is each
# element of $b$ read?

# %% predict="add_bias"
predict(
    "How many programs are there?",
    answer=4,
    because="2 rows of tiles and 2 columns. Each element of b is read by 2 programs.",
)


# %% question="add_bias"
@triton.jit
def add_bias_kernel(
    x_ptr, b_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_b,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One program adds the bias to one tile [BLOCK_M, BLOCK_N]; y is contiguous. The
    signature is yours to change.
    """
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)  # [BLOCK_M]
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)  # [BLOCK_N]
    inside = (rows[:, None] < M) & (columns[None, :] < N)  # [BLOCK_M, BLOCK_N]
    x = tl.load(x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn, mask=inside, other=0.0)
    b = tl.load(b_ptr + columns * stride_b, mask=columns < N, other=0.0)
    tl.store(y_ptr + rows[:, None] * N + columns[None, :], x + b[None, :], mask=inside)
    ### END SOLUTION


def add_bias(x, b):
    """x + b, added by a kernel.

    Args:
        x: [M, N], float32 or float16, any strides.
        b: [N], any stride, in the dtype of x.

    Returns:
        [M, N], x[i, j] + b[j], in the dtype of x: a new tensor. The kernel loads each
        element of x once and stores each sum once, in tiles of at most 64 × 64 = 4096
        elements, one a program. The wrapper allocates and rearranges (a contiguous copy
        too), and computes nothing itself.

    Raises:
        ValueError: b is not [N]; both lengths in the message.
    """
    ### BEGIN SOLUTION
    m, n = x.shape
    if b.shape != (n,):
        raise ValueError(f"x has {n} columns, b has shape {list(b.shape)}")
    y = torch.empty(m, n, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    add_bias_kernel[grid](x, b, y, m, n, x.stride(0), x.stride(1), b.stride(0), BLOCK_M=32, BLOCK_N=32)
    return y
    ### END SOLUTION


# %% check="add_bias"
if kernels_run(triton):
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=device)
    b = torch.tensor([10.0, 20.0, 30.0], device=device)
    expect(
        add_bias(x, b).cpu(),
        torch.tensor([[11.0, 22.0, 33.0], [14.0, 25.0, 36.0]]),
        hint="nan? An element that no program has written, or a lane that was loaded without other=.",
    )
    wide = torch.arange(70.0, device=device).expand(50, 70)
    expect(
        add_bias(wide.T, wide[0, :50]).cpu(),
        (wide.T + wide[0, :50]).cpu(),
        hint="x is transposed here: use the strides that it has.",
    )

# %% [markdown]
# What your kernel did. Each line is one load or store of one program.

# %% demo="trace_add_bias"
if device == "cpu" and kernels_run(triton):
    _, seen = trace(add_bias, torch.zeros(40, 50), torch.zeros(50))
    print(seen)

# %% [markdown]
# ## 7. A second kernel: softmax of rows
#
# ★★☆ · about 25 minutes
#
# One program takes one row (or a few) and has all of it on the chip at once: load, subtract the maximum, exponentiate,
# divide by the sum, store. Five torch operations (maximum, difference, exponential, sum, quotient) would move the row
# eight times, reading and writing; the kernel moves it twice.
#
# The block must be a power of two that is at least $N$ (`triton.next_power_of_2`). The lanes beyond $N$ take part in
# the maximum and in the sum, so choose what they hold. Zero looks harmless. What would a zero do to a row whose
# elements are all $-50$? And which value takes part in neither a maximum nor a sum of exponentials?
#
# Half precision: turn the row into float32 right after the load, and let the store turn it back.
#
# **Predict first.** A row of five equal elements, loaded into eight lanes whose last three hold 0. What comes out
# when the elements are 0? When they are $-50$?

# %% predict="softmax_rows"
predict(
    "What comes out when the elements are 0?",
    answer=0.125,
    because="Eight lanes share the 1 in place of five. With −50 nearly nothing is left:"
    " the three lanes of 0 take it all.",
)


# %% question="softmax_rows"
@triton.jit
def softmax_rows_kernel(x_ptr, y_ptr, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    """One program computes the softmax of one row; y is contiguous. The signature is
    yours to change.
    """
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)  # [BLOCK]
    x = tl.load(x_ptr + row * stride_xm + columns * stride_xn, mask=columns < N, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))  # exp(-inf) = 0: lanes beyond N count nowhere
    y = e / tl.sum(e, 0)
    tl.store(y_ptr + row * N + columns, y.to(y_ptr.dtype.element_ty), mask=columns < N)
    ### END SOLUTION


def softmax_rows(x):
    """Softmax of each row, by a kernel.

    Args:
        x: [M, N], float32 or float16, any strides; finite.

    Returns:
        [M, N], rows that sum to 1, in the dtype of x: a new tensor; float16 is computed
        in float32, the difference to the maximum too, and rounded once, to the nearest
        number that float16 has (a weight below 0.00048 comes out within 1e-7 of it).
        The kernel loads each element of x once and stores each weight once. The wrapper
        allocates and rearranges, and computes nothing itself.
    """
    ### BEGIN SOLUTION
    m, n = x.shape
    y = torch.empty(m, n, dtype=x.dtype, device=x.device)
    softmax_rows_kernel[(m,)](x, y, n, x.stride(0), x.stride(1), BLOCK=triton.next_power_of_2(n))
    return y
    ### END SOLUTION


# %% check="softmax_rows"
if kernels_run(triton):
    x = torch.tensor([[1.0, 3.0, 4.0], [5.0, 5.0, 10.0]], device=device).log()
    expect(
        softmax_rows(x).cpu(),
        torch.tensor([[0.125, 0.375, 0.5], [0.25, 0.25, 0.5]]),
        hint="1, 3, 4 out of 8. Rows that sum to less than 1? Look at what the fourth lane holds.",
    )
    expect(
        softmax_rows(torch.full((2, 5), -50.0, device=device)).cpu(),
        torch.full((2, 5), 0.2),
        hint="Five equal elements. 0? Three lanes beyond the row had a say in the maximum.",
    )

# %% [markdown]
# ## 8. Attention as a kernel
#
# ★★★ · about 90 minutes
#
# Everything is in place. A program owns one query tile of one head: axis 0 of the grid counts query tiles, axis 1
# counts the $B\cdot H$ heads. It loads its queries once, walks over the keys in a `for` loop, and keeps $m$, $l$ and
# the accumulator in registers: sections 1 to 3, in one program. The steps in the loop:
#
# 1. load a tile of $K$, score it: `tl.dot(q, k_transposed, input_precision="ieee") * scale`. (On a GPU the default
#    would round float32 to 10 bits of mantissa.)
# 2. mask: keys beyond $N_k$, and for causal those beyond the diagonal, get the score $-\infty$;
# 3. new maximum; $p=e^{s-m'}$; rescale $l$ **and** the accumulator by $e^{m-m'}$; add;
# 4. `tl.dot(p, v)`: in half precision $p$ has to become half as well, `p.to(v.dtype)`; the accumulator stays float32.
#
# After the loop divide, store the output, store the log-sum-exp. A checklist for when it does not work:
#
# * Are $B$, $H$ and all strides of **each** tensor in its pointer? `tl.program_id(1) // H` is the batch.
# * $d=24$: `tl.arange(0, 24)` is refused, 32 lanes with a mask it is. For `tl.dot` all sides are at least 16.
# * A lane of $d$ beyond 24 takes part in the dot product. What should it hold, in $Q$, $K$ and $V$? And a row of $V$
#   beyond $N_k$: its weight is 0, and 0 · NaN is?
# * Rows that see nothing: $m'=-\infty$ as in section 1, and $l=0$ at the end.
# * Is everything float32 that has to be?
#
# At most 128 queries and 64 keys a tile, please: so that the small sizes that a CPU can bear have several
# tiles, and because a GPU has no room for more. 32 is a good size here. Start with one head, no causal, $N=32$, and
# print the trace.


# %% question="triton_attention"
@triton.jit
def attention_forward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    stride_qb, stride_qh, stride_qn, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    H, N_q, N_k, scale,
    D: tl.constexpr, D_PAD: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """One program: one query tile of one head. o and lse are contiguous. The signature
    is yours to change.
    """
    ### BEGIN SOLUTION
    batch = tl.program_id(1) // H
    head = tl.program_id(1) % H
    rows = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)  # [BLOCK_Q], positions in the whole
    dims = tl.arange(0, D_PAD)  # [D_PAD], of which D are real
    q_ptr += batch * stride_qb + head * stride_qh
    k_ptr += batch * stride_kb + head * stride_kh
    v_ptr += batch * stride_vb + head * stride_vh

    q_inside = (rows[:, None] < N_q) & (dims[None, :] < D)  # [BLOCK_Q, D_PAD]
    q = tl.load(q_ptr + rows[:, None] * stride_qn + dims[None, :] * stride_qd, mask=q_inside, other=0.0)
    m = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_Q], tl.float32)
    acc = tl.zeros([BLOCK_Q, D_PAD], tl.float32)
    for start in range(0, N_k, BLOCK_K):
        columns = start + tl.arange(0, BLOCK_K)  # [BLOCK_K]
        inside = (columns[:, None] < N_k) & (dims[None, :] < D)  # [BLOCK_K, D_PAD]
        k = tl.load(k_ptr + columns[:, None] * stride_kn + dims[None, :] * stride_kd, mask=inside, other=0.0)
        v = tl.load(v_ptr + columns[:, None] * stride_vn + dims[None, :] * stride_vd, mask=inside, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale  # [BLOCK_Q, BLOCK_K]
        seen = columns[None, :] < N_k
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None] + (N_k - N_q))
        s = tl.where(seen, s, float("-inf"))

        m_new = tl.maximum(m, tl.max(s, 1))
        safe = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp(s - safe[:, None])  # [BLOCK_Q, BLOCK_K]
        shrink = tl.exp(m - safe)  # [BLOCK_Q]
        l = l * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new

    o = acc / tl.where(l == 0.0, 1.0, l)[:, None]
    place = tl.program_id(1) * N_q + rows  # o [B, H, N_q, D] and lse [B, H, N_q] lie row after row
    tl.store(o_ptr + place[:, None] * D + dims[None, :], o.to(o_ptr.dtype.element_ty), mask=q_inside)
    tl.store(lse_ptr + place, m + tl.log(l), mask=rows < N_q)
    ### END SOLUTION


def triton_attention(q, k, v, causal=False):
    """Scaled dot-product attention by a kernel that never writes the scores (Dao et
    al., 2022).

    Args:
        q: [B, H, N_q, d], float32 or float16; d need not be a power of two.
        k: [B, H, N_k, d], any strides, as q and v.
        v: [B, H, N_k, d].
        causal: query i sees key j only when j <= i + N_k - N_q.

    Returns:
        (o, lse): o [B, H, N_q, d] in the dtype of q; lse [B, H, N_q], float32. A row
        that sees no key has o = 0 and lse = -inf. The kernel loads each query once, and
        all keys and values once for each query tile (not causal: it may end earlier
        then); both products are `tl.dot`. Tiles have 16 to 64 keys and at most 128
        queries. The accumulator is float32. The wrapper allocates and rearranges, and
        computes nothing itself.

    Raises:
        ValueError: k or v does not fit q (d, or N_k of k and v; B and H are equal in
            each call); the sizes in the message.
    """
    ### BEGIN SOLUTION
    batch, heads, n_q, d = q.shape
    n_k = k.shape[2]
    if k.shape[3] != d or v.shape != k.shape:
        raise ValueError(f"q {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)} do not fit together")
    o = torch.empty(batch, heads, n_q, d, dtype=q.dtype, device=q.device)
    lse = torch.empty(batch, heads, n_q, dtype=torch.float32, device=q.device)
    block_q, block_k = 64, 32
    attention_forward_kernel[(triton.cdiv(n_q, block_q), batch * heads)](
        q, k, v, o, lse, *q.stride(), *k.stride(), *v.stride(), heads, n_q, n_k, 1 / math.sqrt(d),
        D=d, D_PAD=triton.next_power_of_2(max(d, 16)), BLOCK_Q=block_q, BLOCK_K=block_k, CAUSAL=causal,
        num_warps=8,  # with 4, float32 does not fit into the registers of a thread
    )  # fmt: skip
    return o, lse
    ### END SOLUTION


# %% check="triton_attention"
def dense_attention(q, k, v, causal=False):
    """What it should be, with the whole matrix."""
    s = q.double() @ k.double().transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        n_q, n_k = s.shape[-2:]
        s = s.masked_fill(
            torch.ones(n_q, n_k, device=s.device).tril(n_k - n_q) == 0,
            float("-inf"),
        )
    return (torch.softmax(s, dim=-1) @ v.double()).float(), torch.logsumexp(
        s, dim=-1
    ).float()


def try_attention(b, h, n_q, n_k, d, causal, hint):
    torch.manual_seed(n_q)
    q, k, v = (torch.randn(b, h, n, d, device=device) for n in (n_q, n_k, n_k))
    (o, lse), (o_full, lse_full) = (
        triton_attention(q, k, v, causal),
        dense_attention(q, k, v, causal),
    )
    expect(o.cpu(), o_full.cpu(), atol=1e-4, hint=hint)
    expect(
        lse.cpu(),
        lse_full.cpu(),
        atol=1e-4,
        hint="The log-sum-exp is m + ln l, float32.",
    )


if kernels_run(triton):
    try_attention(
        1,
        1,
        32,
        32,
        16,
        False,
        hint="One head, one or two tiles, nothing ragged: the plain algorithm.",
    )
    try_attention(
        2,
        3,
        32,
        64,
        16,
        False,
        hint="Several heads: are batch and head in the pointer of every tensor?",
    )
    try_attention(
        1,
        2,
        40,
        40,
        16,
        False,
        hint="40 is no multiple of a tile: keys beyond the end must weigh nothing.",
    )
    try_attention(
        1,
        1,
        32,
        32,
        24,
        False,
        hint="d = 24: lanes beyond d must hold 0 in every load.",
    )
    try_attention(
        1,
        2,
        40,
        72,
        16,
        True,
        hint="Causal, bottom-right: add N_k - N_q to the row.",
    )

# %% [markdown]
# ### The picture of tiles
#
# Every rectangle is one visit of a key tile by a program, drawn from the trace of **your** kernel. The right
# picture counts how often each row of $K$ was read: that is the traffic which `hbm_traffic` counts. (With `causal=True`
# the tiles right of the diagonal need not be visited at all. If yours are, the loop could end earlier: half of the work
# is gone. Optional, and fast kernels do it.)

# %% demo="picture_of_tiles"
import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

if device == "cpu" and kernels_run(triton):
    n, d = 150, 16
    q, k, v = (torch.randn(1, 1, n, d) for _ in range(3))
    _, seen = trace(triton_attention, q, k, v, causal=True)
    figure, axes = plt.subplots(
        1, 2, figsize=(10.5, 4.4), layout="constrained", width_ratios=(1.2, 1)
    )
    own_rows = {
        program: box[2]
        for program, verb, name, box in seen.steps
        if name == "q" and verb == "reads"
    }
    for program, _, name, box in seen.steps:
        if name == "k" and program in own_rows:
            rows, columns = own_rows[program], box[2]
            where, size = (columns.start, rows.start), (len(columns), len(rows))
            axes[0].add_patch(
                Rectangle(
                    where, *size, facecolor="tab:green", alpha=0.35, edgecolor="black"
                )
            )
    axes[0].plot([0, n], [0, n], color="tab:red", linestyle="--", label="diagonal")
    axes[0].set(
        xlim=(0, n),
        ylim=(n, 0),
        xlabel="key",
        ylabel="query",
        title="Tiles that were visited",
    )
    axes[0].legend()
    axes[1].step(
        range(n), seen.reads["k"][0, 0, :, 0], where="mid", label="reads of each key"
    )
    axes[1].step(
        range(n), seen.reads["q"][0, 0, :, 0], where="mid", label="reads of each query"
    )
    axes[1].set(
        xlabel="row", ylabel="times read", ylim=(0, None), title="Traffic, row by row"
    )
    axes[1].legend()
    plt.show()
    counted = (seen.loads["q"] + seen.loads["k"] + seen.loads["v"] + n * d) * 4
    print(
        f"bytes counted: {counted}; by hbm_traffic, not causal, 64 queries a tile: "
        f"{hbm_traffic(n, d, 64, 32, 4)}"
    )

# %% [markdown]
# ### What a GPU would say
#
# Triton's compiler needs no GPU, and brings NVIDIA's assembler. So you can see what **your** kernel would take of an
# H200 for sizes that no CPU could run; the tensors below have sizes and no memory.
#
# * **Shared memory** holds the tiles that `tl.dot` reads, and those that are fetched in advance. A program gets 227 KB
#   at most. One that asks for more is not launched: `OutOfResources`.
# * **Registers** hold $m$, $l$, the accumulator, the scores. A thread has at most 255 of 4 bytes. What does not fit is
#   *spilled*: it goes to memory and back each time, and nothing tells you so, but the time.
# * **Occupancy**: while one program waits for its tiles, the same multiprocessor computes for another, if it can keep
#   another.
#
# `BLOCK_Q`, `BLOCK_K` and `num_warps=` (how many groups of 32 threads share one program; 4 if you do not say) decide
# all three. Try 128 queries, 64 keys, 4 and 8 warps. float32 takes longest to compile: its exact products do without
# the tensor cores.

# %% given="gpu_figures"
if device == "cpu" and kernels_run(triton):
    from autograder.kernels.roofline import H100, H200, resources, roofline

# %% demo="what_a_gpu_would_say"
if device == "cpu" and kernels_run(triton):
    for dtype, d in ((torch.float16, 64), (torch.float16, 128), (torch.float32, 64)):
        q, k, v = (
            torch.empty(1, 16, 4096, d, dtype=dtype, device="meta") for _ in range(3)
        )
        for needs in resources(triton_attention, q, k, v, causal=True):
            print(needs)

# %% [markdown]
# ### The roofline
#
# How fast could it be? At most as fast as the chip computes, and at most as fast as its bytes arrive. Divide the
# operations by the bytes, and both limits are lines in one picture: below the ridge a kernel waits for traffic, beyond
# it for products. `roofline(seen, function, …)` takes both from your kernel's trace. The figures of the two GPUs are
# those of NVIDIA's data sheets; an H200 is an H100 with a faster memory.
#
# **Predict first.** Your kernel reads a key tile once and uses it for $B_q$ queries. How many operations is that for
# each byte, in half precision? Where is it on the picture with $B_q = 32$, $64$ and $128$?
#
# Two things are not in the count. Several programs ask for the same keys at about the same time, and the cache of the
# chip answers all but the first: a GPU can be faster than the slope says. And a kernel that spills, or whose tiles are
# too small for the tensor cores, never reaches the roof. On a GPU the cell measures, instead of counting.

# %% predict="roofline"
predict(
    "How many operations for each byte, with B_q = 64?",
    answer=64,
    because="A key and its value are 4 d bytes, and each query of the tile does 4 d "
    "operations with them: B_q in all. The picture shows how far that is from the "
    "ridge.",
)

# %% demo="roofline"
import matplotlib.pyplot as plt

if device == "cpu" and kernels_run(triton):
    figure, axes = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
    for gpu, color in ((H100, "tab:green"), (H200, "tab:blue")):
        # the ridge in the middle
        intensities = (4, gpu.half_flops / gpu.bytes_a_second, 2000)
        roof = [min(gpu.half_flops, i * gpu.bytes_a_second) / 1e12 for i in intensities]
        axes.loglog(intensities, roof, color=color, label=f"{gpu.name}, half precision")
    axes.axhline(
        H200.float32_flops / 1e12,
        color="grey",
        linestyle="--",
        label="both, float32 without tensor cores",
    )
    for dtype, marker in ((torch.float16, "o"), (torch.float32, "s")):
        q, k, v = (torch.randn(1, 1, 256, 64).to(dtype) for _ in range(3))
        _, seen = trace(triton_attention, q, k, v)
        work = roofline(seen, triton_attention, q, k, v)
        height = work.flops_a_second(H200) / 1e12
        axes.plot(
            work.intensity,
            height,
            marker,
            color="tab:red",
            label=f"your kernel, {work.precision}",
        )
        print(
            f"{work.precision}: {work.intensity:.0f} operations a byte; "
            f"an H200 waits for {work.bound_by(H200)}"
        )
    axes.set(
        xlabel="operations for each byte",
        ylabel="TFLOP/s",
        title="Roofline of triton_attention, d = 64",
    )
    axes.legend()
    plt.show()
elif device == "cuda":
    print("N        ms   TFLOP/s   GB/s by hbm_traffic, B_q = 64")
    for n in (1024, 4096, 16384):
        q, k, v = (torch.randn(1, 16, n, 64, device=device).half() for _ in range(3))
        milliseconds = triton.testing.do_bench(
            lambda q=q, k=k, v=v: triton_attention(q, k, v)
        )
        flops, traffic = (
            16 * 4 * n * n * 64,
            16 * hbm_traffic(n, 64, 64, 32, 2)["tiled"],
        )
        print(
            f"{n:<6} {milliseconds:6.3f} {flops / milliseconds / 1e9:9.1f} "
            f"{traffic / milliseconds / 1e6:6.0f}"
        )

# %% [markdown]
# ## 9. Find the error in the notes
#
# ★★☆ · about 20 minutes
#
# "How much memory does this take as the number of vectors N increases?" asks the lecture, and answers first $O(N^2)$,
# then, with FlashAttention, **$O(N)$**, which "Makes large N" possible. Soon after, attention as a whole is entered
# in a table with "O(N) memory". Read quickly, that says that FlashAttention has made attention linear.
#
# The slides count one thing, how much must be *stored*: the weights, $H\times N\times N$ of them. But "memory" has a
# second meaning, and it is the one that decides the time: how much is *moved*. Take the three costs of tiled attention
# apart, for one head of $N$ tokens:
#
# * **storage**: bytes that must be kept beside the inputs: $O$, and the log-sum-exp in float32 (4 bytes each);
# * **traffic**: the bytes of `hbm_traffic`, tiled;
# * **flops**: $4N^2d$, for the two products.
#
# A cost that grows like $N^p$ becomes $2^p$ times as large when $N$ doubles. So measure $p$: the logarithm to base 2 of
# the ratio between $2N$ and $N$. Only one of the three exponents is 1, however large the tiles, as soon as there is
# more than one.
#
# **Predict first.** $N = B_q$, so one query tile at $N$ and two at $2N$. By which factor does the traffic grow?

# %% predict="growth_of_costs"
predict(
    "By which factor does the traffic grow?",
    answer=3,
    because="4 N d before. Then 4 N d for Q and O, and twice 4 N d for K and V.",
)


# %% question="growth_of_costs"
def growth_of_costs(n, d, block_q, bytes_per_element):
    """How the costs of tiled attention grow between n and 2n tokens.

    Args:
        n: tokens; 2n is compared with it.
        d: head size, of values too.
        block_q: queries of a tile.
        bytes_per_element: of Q, K, V and O.

    Returns:
        dict of float: "storage", "traffic" and "flops", the exponent p of each:
        cost(2n) = 2**p * cost(n). Storage is O and a float32 log-sum-exp a row; traffic
        is that of hbm_traffic, tiled.
    """

    ### BEGIN SOLUTION
    def costs(tokens):
        return {
            "storage": tokens * d * bytes_per_element + tokens * 4,
            "traffic": hbm_traffic(tokens, d, block_q, 1, bytes_per_element)["tiled"],  # whatever block_k
            "flops": 4 * tokens * tokens * d,
        }

    before, after = costs(n), costs(2 * n)
    return {name: math.log2(after[name] / before[name]) for name in before}
    ### END SOLUTION


# %% check="growth_of_costs"
growth = growth_of_costs(n=32, d=8, block_q=32, bytes_per_element=2)
expect(
    growth["storage"],
    1.0,
    hint="Twice the tokens, twice the rows: the slide is right about storage.",
)
expect(growth["flops"], 2.0, hint="Every query still meets every key.")
expect(
    growth["traffic"],
    math.log2(3),
    hint="4nd before; then 4nd for Q and O, twice 4nd for K and V: three times.",
)
for n in (1024, 16384, 131072):
    print(
        n, {name: round(p, 3) for name, p in growth_of_costs(n, 64, 128, 2).items()}
    )

# %% [markdown] written="twice_is_faster" points=5
# ## 10. In your own words
#
# The backward pass computes every score a second time, which the naive way would have kept, and it is faster all the
# same. Explain why, with numbers from this notebook: what does keeping a score cost, what does computing it again cost
# ($d=64$, half precision, the GPU of the picture)? And which part of the saving is left when $N$ is so small that all
# scores fit on the chip? Five or six sentences.
#
# ### BEGIN SOLUTION
# To keep a score, or its weight, means to write it and to read it later: at least 4 bytes of traffic in half precision,
# at 3.35 TB/s about $1.2\cdot10^{-12}$ s. To compute it again is a dot product of 64 terms, 128 operations, which at
# 990 TFLOP/s take about $0.13\cdot10^{-12}$ s: nine times less. The keys and queries it needs are on the chip anyway,
# because the tile loads them for the other products of the backward pass. So the second computation adds operations
# where the chip was idle and removes traffic where it was waiting. It also removes the storage of $N^2$ numbers between
# the two passes, which is what limits $N$. When everything fits on the chip there is no traffic to save, and computing
# twice is then just twice the work for the scores; what remains is that one kernel is launched instead of several.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 2 points: what keeping a score costs and what computing it again costs, both as numbers; about nine times less.
#   (1 point for the right comparison with a slip in one number.)
# - 1 point: traffic is what the chip waits for, while its arithmetic is idle.
# - 2 points: with everything on the chip no traffic is saved; what remains is fewer launches. (1 point for either.)
# ### END MARK SCHEME
