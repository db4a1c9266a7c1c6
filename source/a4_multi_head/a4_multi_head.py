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
# # Assignment 4: many heads, and what attention costs
#
# In the last assignment one attention function let every token look at every other token. It had one set of
# weights for each query, so each token could ask **one question** at a time. "Which word is my verb?" and
# "what came just before me?" have different answers, and one softmax has to spread its single unit of weight over
# both. Multi-head attention runs $H$ small attentions next to each other, each with its own queries, keys and values,
# and then mixes what they found.
#
# The mathematics is almost nothing new. What is new is **bookkeeping**: all heads are computed by the same few matrix
# products, and a head is just a block of columns. This is where many bugs in real transformer code live, because a
# wrong reshape has the right shape, trains, and is silently worse. So we go slowly through the reshapes, grade each one
# alone, and then build the layer that transformers have been built of since 2017. In the second half you count what it
# costs: operations, memory, and the length from which the famous $N^2$ really is the problem.
#
# ![A row of numbers cut into heads, the right way and the wrong way](figures/split_heads.svg)
#
# You write, in this order:
#
# | function | what it does | difficulty, estimated time |
# | --- | --- | --- |
# | `split_heads` | columns into heads | ★☆☆, 20 min |
# | `merge_heads` | heads back into columns | ★☆☆, 10 min |
# | `fused_qkv` | one projection instead of three | ★★☆, 20 min |
# | `multi_head_attention` | the whole layer, with masks and cross-attention | ★★★, 60 min |
# | `multi_head_sum` | the same layer written as a sum over heads | ★★☆, 25 min |
# | `grouped_query_attention` | several query heads share one key head | ★★☆, 25 min |
# | `attention_flops` | operations of the four products | ★★☆, 25 min |
# | `attention_matrix_bytes` | memory of the weights | ★☆☆, 5 min |
# | `crossover_length` | where $N^2$ overtakes the projections | ★☆☆, 10 min |
# | `explain_memory_figure` | find the error in the notes | ★★☆, 20 min |
#
# > **Conventions.** Weights are `[in, out]` and multiply from the right, `x @ w` (`nn.Linear` stores the transpose).
# > Masks are boolean and **True = may attend**. Heads come right after the batch: `[B, H, N, d]`. Head $h$ owns
# > the columns $h\,d,\dots,(h+1)\,d-1$. The head size $d$ comes from the weights: it is often $D/H$, but nothing
# > forces it to be. The dtype that comes in goes out, and inputs are never changed.
# >
# > $B$ batch, $N$ tokens ($N_q$ queries, $N_k$ keys), $D$ model width, $H$ heads, $d$ head size, $d_v$ value size.

# %% given="imports"
import math

import torch

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% [markdown]
# ## From the last assignment
#
# Masks, the softmax that knows them, and scaled dot-product attention are given. They work on the last two axes and
# treat everything in front as batch, so `masked_attention` on `[B, H, N, d]` is $B\cdot H$ attentions at once. Read
# them once: they know nothing of heads, and broadcast the mask plainly against scores `[..., N_q, N_k]`.
#
# Your own answers may take the place of what is given: `python make_my_course.py` with the names of your notebooks so
# far makes them a module, and prints the line that goes into a cell below.


# %% given="library" module="library"
def causal_mask(n_q, n_k=None):
    """bool [N_q, N_k]: query i may see key j when j <= i + N_k - N_q."""
    n_k = n_q if n_k is None else n_k
    return torch.arange(n_k) <= torch.arange(n_q)[:, None] + (n_k - n_q)


def padding_mask(lengths, n):
    """bool [B, 1, N]: key j of sentence b is a real token when j < lengths[b]."""
    return torch.arange(n) < lengths[:, None, None]


def widen(x):
    """Half precision as float32; everything else as it is."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def masked_softmax(scores, mask):
    """Softmax of scores [..., N_q, N_k] over the allowed keys; a query with no allowed
    key gets a row of zeros.
    """
    wide = widen(scores)
    empty = ~mask.any(dim=-1, keepdim=True)  # [..., N_q, 1]
    wide = wide.masked_fill(~mask, float("-inf")).masked_fill(empty, 0.0)
    return torch.softmax(wide, dim=-1).masked_fill(~mask, 0.0).to(scores.dtype)


def masked_attention(q, k, v, mask=None):
    """softmax(q kᵀ / √d) v with q [..., N_q, d], k [..., N_k, d], v [..., N_k, d_v] ->
    [..., N_q, d_v].

    Half precision is computed in float32. ValueError where q and k differ in width, or
    k and v in length.
    """
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"queries have {q.shape[-1]} features and keys {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"there are {k.shape[-2]} keys and {v.shape[-2]} values")
    # [..., N_q, N_k]
    scores = widen(q) @ widen(k).transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
    return (masked_softmax(scores, mask) @ widen(v)).to(q.dtype)


# %% [markdown]
# ## 1. Splitting columns into heads
#
# ★☆☆ · about 20 minutes
#
# The projections make one wide matrix for all heads: `x @ w_q` is `[B, N, H*d]`. The first $d$ columns are the queries
# of head 0, the next $d$ those of head 1, and so on. Attention wants the heads as a batch axis, in front of the tokens:
#
# $$\text{split}(x)_{b,h,n,j} = x_{b,\,n,\,h\,d + j}\qquad [B, N, H\,d] \to [B, H, N, d]$$
#
# Why in front? `q @ k.transpose(-2, -1)` multiplies the last two axes and treats the others as batch. With
# the heads in front, each head compares its own queries with its own keys; with the heads in third place, each *token*
# would compare its heads with each other.
#
# Two things go wrong here, and both leave the shape right:
#
# 1. Reshaping only re-reads the numbers in the order in which they lie in memory. It can cut an axis in two; it
#    cannot move one axis past another. In the picture above, the lower path asks for the final shape directly,
#    and a "head" gets whole tokens that belong to both.
# 2. When an axis of $H\,d$ columns is cut in two, one of the two new axes runs slowly and the other fast. Head $h$ owns
#    *neighbouring* columns: which of $H$ and $d$ is the slow one?
#
# **Predict first.** `torch.arange(24).view(1, 4, 6)` has four tokens of six columns; token 0 is $0,\dots,5$. With two
# heads, which twelve numbers belong to head 0? Write the $4\times3$ table down before you run the check.

# %% predict="split_heads"
predict(
    "The first number in the last row of head 0?",
    answer=18,
    because="Head 0 has columns 0, 1 and 2 of every token: 0 1 2, 6 7 8, 12 13 14, 18 "
    "19 20.",
)


# %% question="split_heads"
def split_heads(x, num_heads):
    """Cut the columns into heads and move the heads in front of the tokens (Vaswani et
    al., 2017, section 3.2.2).

    Args:
        x: [B, N, H*d], any strides (a transposed tensor is fine).
        num_heads: H.

    Returns:
        [B, H, N, d] in the dtype of x; head h holds columns h*d … (h+1)*d - 1. It may
        be a view of x.

    Raises:
        ValueError: the columns do not divide into num_heads, or num_heads is below 1;
            both numbers in the message.
    """
    ### BEGIN SOLUTION
    batch, n, width = x.shape
    if num_heads < 1 or width % num_heads:
        raise ValueError(f"{width} columns do not divide into {num_heads} heads")
    d_head = width // num_heads
    return x.reshape(batch, n, num_heads, d_head).transpose(1, 2)  # [B, N, H, d] -> [B, H, N, d]
    ### END SOLUTION


# %% check="split_heads"
x = torch.arange(24).view(1, 4, 6)
expect(
    split_heads(x, 2)[0, 0],
    torch.tensor([[0, 1, 2], [6, 7, 8], [12, 13, 14], [18, 19, 20]]),
    hint="Head 0 should hold the first three columns of all four tokens. 0…11 in order? Then the numbers were "
    "re-read, not moved. 0, 2, 4? Then neighbouring columns went to different heads.",
)
expect(
    split_heads(x, 3)[0, 2],
    torch.tensor([[4, 5], [10, 11], [16, 17], [22, 23]]),
    hint="The last of three heads holds the last two columns of every token.",
)

# %% [markdown]
# ## 2. Merging heads into columns
#
# ★☆☆ · about 10 minutes
#
# After attention each head has an answer of size $d$ for each token, `[B, H, N, d]`. Laid side by side, in the order of
# the heads, they are one row of $H\,d$ numbers a token:
#
# $$\text{merge}(y)_{b,\,n,\,h\,d+j} = y_{b,h,n,j}\qquad [B, H, N, d] \to [B, N, H\,d]$$
#
# It undoes `split_heads`, step by step in the opposite order. Two warnings:
#
# 1. "It undoes my split" is no proof. If both re-read memory in the wrong order, the round trip gives back $x$ exactly,
#    and attention in between works on scrambled heads. So test each against literal numbers, as the check does.
# 2. A tensor whose axes were swapped does not lie in memory in the order of its axes. `.view` refuses such a tensor,
#    with a message about strides; read what the message suggests and why.
#
# **Predict first.** Two heads, two tokens, three numbers each, numbered $0\dots11$ in memory order. What is the row of
# token 0?

# %% predict="merge_heads"
predict(
    "The fourth number in the row of token 0?",
    answer=6,
    because="Head 0 gives 0, 1, 2 and head 1 gives 6, 7, 8: the heads stand beside each"
    " other.",
)


# %% question="merge_heads"
def merge_heads(x):
    """Lay the heads of each token side by side: the inverse of split_heads.

    Args:
        x: [B, H, N, d], any strides.

    Returns:
        [B, N, H*d] in the dtype of x; columns h*d … (h+1)*d - 1 come from head h.
    """
    ### BEGIN SOLUTION
    batch, num_heads, n, d_head = x.shape
    return x.transpose(1, 2).reshape(batch, n, num_heads * d_head)  # [B, N, H, d] -> [B, N, H*d]
    ### END SOLUTION


# %% check="merge_heads"
# head 0: tokens (0, 1, 2), (3, 4, 5); head 1: (6, 7, 8), (9, 10, 11)
y = torch.arange(12).view(1, 2, 2, 3)
expect(
    merge_heads(y),
    torch.tensor([[[0, 1, 2, 6, 7, 8], [3, 4, 5, 9, 10, 11]]]),
    hint="Token 0 is (0, 1, 2) from head 0 and (6, 7, 8) from head 1. 0…5 in its row? Those are two tokens of "
    "one head.",
)

# %% [markdown]
# ## 3. One projection for queries, keys and values
#
# ★★☆ · about 20 minutes
#
# Three products $X W_Q$, $X W_K$, $X W_V$ read the same $X$ three times. A GPU is happier with one large product than
# with three small ones, so the lecture's first step glues the weights together, column by column, and multiplies once:
#
# $$X\,[\,W_Q\;W_K\;W_V\,] \;=\; [\,Q\;K\;V\,]\qquad [N, D]\,[D, 3Hd] \to [N, 3Hd]$$
#
# then cuts the result into three and each third into heads. The order of the cuts is a contract between whoever
# stored the weights and whoever reads them, and model files in the wild come in both orders:
#
# * **here**: all queries, then all keys, then all values; inside each, head after head (3 is outside, $H$ inside);
# * elsewhere: head after head, and inside each its query, key and value. Read with the wrong order, a model's weights
#   load without an error and produce nonsense.
#
# And $D$ says nothing about $d$: the number of columns of `w_qkv` does.
#
# **Predict first.** With one input feature, two heads of size 1 and `w_qkv = [[1, 2, 3, 4, 5, 6]]`, which two
# columns make the keys?

# %% predict="fused_qkv"
predict(
    "The first of the two columns of the keys? (Columns are counted from 0.)",
    answer=2,
    because="All queries, then all keys, then all values: columns 2 and 3, the numbers "
    "3 and 4.",
)


# %% question="fused_qkv"
def fused_qkv(x, w_qkv, num_heads):
    """Queries, keys and values of all heads from a single product (the lecture's step
    1).

    Args:
        x: [B, N, D].
        w_qkv: [D, 3*H*d], the columns of W_Q, then W_K, then W_V.
        num_heads: H.

    Returns:
        (q, k, v), each [B, H, N, d] in the dtype of x.

    Raises:
        ValueError: the columns of w_qkv do not divide by 3*num_heads, or num_heads is
            below 1; the number of columns and num_heads in the message.
    """
    ### BEGIN SOLUTION
    columns = w_qkv.shape[1]
    if num_heads < 1 or columns % (3 * num_heads):
        raise ValueError(f"w_qkv has {columns} columns: not three times a multiple of {num_heads} heads")
    q, k, v = (x @ w_qkv).chunk(3, dim=-1)  # three times [B, N, H*d]
    return split_heads(q, num_heads), split_heads(k, num_heads), split_heads(v, num_heads)
    ### END SOLUTION


# %% check="fused_qkv"
x = torch.tensor([[[1.0], [10.0]]])  # one sentence, two tokens, one feature
q, k, v = fused_qkv(x, torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]), num_heads=2)
expect(
    k,
    torch.tensor([[[[3.0], [30.0]], [[4.0], [40.0]]]]),
    hint="The keys are the middle third, columns 3 and 4. 2 and 5? Then heads were cut first and q, k, v inside each.",
)
expect(
    q,
    torch.tensor([[[[1.0], [10.0]], [[2.0], [20.0]]]]),
    hint="The queries are the first third.",
)
expect(
    v,
    torch.tensor([[[[5.0], [50.0]], [[6.0], [60.0]]]]),
    hint="The values are the last third.",
)

# %% [markdown]
# ## 4. Multi-head attention
#
# ★★★ · about 60 minutes
#
# Now the whole layer. Four products, each with its shape:
#
# ![The four products of multi-head attention and their shapes](figures/four_products.svg)
#
# $$Q = X W_Q,\quad K = X' W_K,\quad V = X' W_V \qquad\text{split into heads}$$
# $$Y_h = \operatorname{softmax}\!\Big(\frac{Q_h K_h^\top}{\sqrt{d}}\Big) V_h \qquad [N_q, d_v]\text{ for each head}$$
# $$O = [\,Y_0\;Y_1\cdots Y_{H-1}\,]\,W_O \qquad [N_q, H d_v]\,[H d_v, D] \to [N_q, D]$$
#
# $X'$ is $X$ itself, or `x_kv` where one sequence reads another (cross-attention). Until the last line the heads
# have not met: each worked on its own columns. $W_O$ is the only place where they are mixed.
#
# The points where people lose an evening:
#
# * **The scale.** A head's dot product has $d$ terms, and that is what the root is about, not $D$.
# * **Every head reads the whole token.** The split comes *after* the projection. Cutting $x$ itself into
#   $H$ pieces gives each head a fraction of the token to look at.
# * **The mask has no head axis, the scores do.** A mask of two axes is `[N_q, N_k]` and goes for all. A mask of three
#   is `[B, N_q, N_k]`, one a sentence (or `[B, 1, N_k]`, from `padding_mask`). Broadcasting lines axes up
#   *from the right*: write `[B, N_q, N_k]` under `[B, H, N_q, N_k]` and see which axis $B$ would meet. If $B = H$
#   nothing complains, and head 1 wears the mask of sentence 1. A mask of four axes is used as it is.
# * **No loop.** The number of operations must not grow with the number of heads or tokens: heads are a batch axis.
#
# On the slides that introduce heads, the last line of the computation reads $Y = AX\;[N\times D_{out}]$, next to
# $Y_i=\sum_j A_{ij}V_j$. Only one of the two can be meant. Which one has that shape, and what would the other
# leave $W_V$ to do? Another text defines $Q^i, K^i, V^i$ for each head $i$, and in the next line
# $\mathrm{head}_i = \mathrm{softmax}(Q^i K^\top/\sqrt{d_k})\,V$. If that were meant, what would all heads share?
#
# **Predict first.** The check has two tokens $(1,0)$ and $(0,1)$ and two heads of size 1. Head 0 has scores
# $\begin{pmatrix}\ln 3&0\\0&0\end{pmatrix}$ and values $(4, 0)$. What does head 0 answer for each token?

# %% predict="multi_head_attention"
predict(
    "What does head 0 answer for the first token?",
    answer=3,
    because="Its weights are 0.75 and 0.25, so 0.75 · 4 = 3. The second token gets 0.5 "
    "· 4 = 2.",
)


# %% question="multi_head_attention"
def multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    """Multi-head attention (Vaswani et al., 2017), self-attention or, with x_kv,
    cross-attention.

    Args:
        x: [B, N, D], where the queries come from.
        w_q: [D, H*d].
        w_k: [D_kv, H*d], where D_kv is the width of what the keys come from.
        w_v: [D_kv, H*d_v]; d_v may differ from d.
        w_o: [H*d_v, D].
        num_heads: H.
        mask: bool, True = may attend: [N, N_k] for all (or [1, N_k]), [B, N, N_k] (or
            broadcastable, [B, 1, N_k], [1, N, N_k]) one a sentence, or four axes,
            broadcastable to [B, H, N, N_k].
            None: everything is allowed.
        x_kv: [B, N_k, D_kv], where keys and values come from; None: from x.

    Returns:
        [B, N, D] in the dtype of x; half precision computes its scores and softmax in
        float32. A query with no key allowed gives a row of zeros. All heads, tokens and
        sentences at once: no Python loop over H, N or B.

    Raises:
        ValueError: the columns of w_q, w_k or w_v do not divide into num_heads; w_q and
            w_k differ in their columns; w_o has not as many rows as w_v has columns.
            The sizes in the message.
    """
    ### BEGIN SOLUTION
    if w_q.shape[1] != w_k.shape[1]:
        raise ValueError(f"w_q has {w_q.shape[1]} columns and w_k {w_k.shape[1]}: they must agree")
    if w_v.shape[1] != w_o.shape[0]:
        raise ValueError(f"w_v has {w_v.shape[1]} columns and w_o {w_o.shape[0]} rows: they must agree")
    source = x if x_kv is None else x_kv
    q = split_heads(x @ w_q, num_heads)  # [B, H, N, d]
    k = split_heads(source @ w_k, num_heads)  # [B, H, N_k, d]
    v = split_heads(source @ w_v, num_heads)  # [B, H, N_k, d_v]
    if mask is not None and mask.dim() == 3:
        mask = mask.unsqueeze(1)  # [B, 1, N, N_k]: the same for every head
    y = masked_attention(q, k, v, mask)  # [B, H, N, d_v]
    return merge_heads(y) @ w_o  # [B, N, H*d_v] [H*d_v, D]
    ### END SOLUTION


# %% check="multi_head_attention"
x = torch.eye(2).unsqueeze(0)  # tokens (1, 0) and (0, 1)
w_q = torch.diag(torch.tensor([math.log(3.0), math.log(7.0)]))
w_k = torch.eye(2)
w_v = torch.diag(torch.tensor([4.0, 8.0]))
w_o = torch.tensor([[1.0, 1.0], [0.0, 10.0]])
# Head 0: weights (3/4, 1/4) and (1/2, 1/2) of the values (4, 0). Head 1: (1/2, 1/2)
# and (1/8, 7/8) of (0, 8).
expect(
    multi_head_attention(x, w_q, w_k, w_v, torch.eye(2), num_heads=2),
    torch.tensor([[[3.0, 4.0], [2.0, 7.0]]]),
    atol=1e-5,
    hint="Each column is one head here. Numbers like 2.74 and 6.39 where 3 and 7 belong: how many terms does a "
    "head's dot "
    "product have? That number goes under the root.",
)
expect(
    multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads=2),
    torch.tensor([[[3.0, 43.0], [2.0, 72.0]]]),
    atol=1e-5,
    hint="The heads side by side, times w_o from the right: (3, 4) @ w_o = (3, 3 + 40).",
)
expect(
    multi_head_attention(
        x, w_q, w_k, w_v, torch.eye(2), num_heads=2, mask=causal_mask(2)
    ),
    torch.tensor([[[4.0, 0.0], [2.0, 7.0]]]),
    atol=1e-5,
    hint="With a causal mask, token 0 sees only itself, so its row is its own value (4, 0). Token 1 is as before.",
)

# %% [markdown]
# ### Watch heads divide the work
#
# The task: for every position report **two** tokens, the left neighbour and the mirror image (position $N-1-i$).
# We train one layer of *your* attention, once with one head and once with two, with the same number of weights.
#
# **Predict first.** One softmax can put half of its weight on each of the two places. Why is that not enough to tell
# *which* token was left and which was mirrored?

# %% predict="heads_divide_the_work"
predict(
    "Why is that not enough?",
    "a mean of two tokens does not say which is which",
    "half of a weight is too little to read",
    answer="a mean of two tokens does not say which is which",
    because="Both tokens arrive as one sum, and a sum has no order. Two heads keep them"
    " apart.",
)


# %% demo="heads_divide_the_work"
import os

import matplotlib.pyplot as plt

n, vocabulary, d_model = 11, 9, 32
# Whoever only wants to see whether all cells run sets this variable: the layers learn
# for a moment only.
num_steps = 20 if "ATTENTION_KIT_QUICK" in os.environ else 300


def sample_task(batch, generator):
    ids = torch.randint(vocabulary, (batch, n), generator=generator)
    # [B, N], [B, N, 2]: left, mirrored
    return ids, torch.stack([ids.roll(1, dims=1), ids.flip(1)], dim=2)


def train_layer(num_heads):
    generator = torch.Generator().manual_seed(1)
    shapes = {
        "tokens": (vocabulary, d_model),
        "positions": (n, d_model),
        "read": (d_model, 2 * vocabulary),
    }
    shapes |= dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (d_model, d_model))
    params = {
        k: (torch.randn(s, generator=generator) * d_model**-0.5).requires_grad_()
        for k, s in shapes.items()
    }
    optimizer = torch.optim.Adam(params.values(), lr=0.01)
    losses = []
    for _ in range(num_steps):
        ids, target = sample_task(64, generator)
        x = params["tokens"][ids] + params["positions"]  # [B, N, D]
        y = multi_head_attention(
            x, *(params[w] for w in ("w_q", "w_k", "w_v", "w_o")), num_heads
        )
        logits = (y @ params["read"]).view(-1, vocabulary)  # [B*N*2, vocabulary]
        loss = torch.nn.functional.cross_entropy(logits, target.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    ids, _ = sample_task(64, generator)
    x = (params["tokens"][ids] + params["positions"]).detach()
    q, k = (split_heads(x @ params[w].detach(), num_heads) for w in ("w_q", "w_k"))
    # [H, N, N]
    weights = torch.softmax(
        q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1
    ).mean(dim=0)
    return losses, weights


one_head, one_pattern = train_layer(1)
two_heads, two_patterns = train_layer(2)
figure, axes = plt.subplots(1, 4, figsize=(14, 3.4), layout="constrained")
axes[0].plot(one_head, label="1 head of size 32")
axes[0].plot(two_heads, label="2 heads of size 16")
axes[0].set(
    xlabel="training step", ylabel="cross-entropy", title="Same weights, other split"
)
axes[0].legend()
for axis, pattern, title in zip(
    axes[1:],
    [one_pattern[0], *two_patterns],
    ["the only head", "head 0 of 2", "head 1 of 2"],
    strict=True,
):
    axis.imshow(pattern, vmin=0, vmax=1, cmap="Blues")
    axis.set(xlabel="key position", ylabel="query position", title=title)
plt.show()

# %% [markdown]
# ## 5. The same layer as a sum over heads
#
# ★★☆ · about 25 minutes
#
# The notes do not concatenate. They give each head its own output matrix $W_h$ of shape $[d_v, D]$, lift each
# head's answer back to the model width, and **add**:
#
# $$O = \sum_{h=0}^{H-1} Y_h\,W_h \qquad Y_h\,[N, d_v],\quad W_h\,[d_v, D]$$
#
# and say that this equals concatenation followed by $W_O$. It does: a row times a matrix is a sum over the row's
# entries, and the row $[\,Y_0\;Y_1\cdots]$ only groups that sum by heads. Which rows of $W_O$ are $W_h$, then?
# This view is worth having: each head *writes* to the output on its own, and heads can be removed one at a time.
#
# Read the notes here with a pencil. They call the result a "weighted average" of the heads: the weights are
# matrices, and nothing makes them sum to one. And the formula there ends the attention of head $h$ with $Q^{(h)}$ in
# the third place. What belongs there?
#
# **Predict first.** What is the output if all heads are equal and all $W_h$ are equal: $Y W$, or something else?

# %% predict="multi_head_sum"
predict(
    "What is the output?",
    "Y W",
    "H times Y W",
    answer="H times Y W",
    because="Each head adds its own Y W to the stream, and there are H of them.",
)


# %% question="multi_head_sum"
def multi_head_sum(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    """Multi-head self-attention as a sum: every head has its own output matrix (the
    notes, section on heads).

    Args:
        x: [B, N, D].
        w_q, w_k: [D, H*d].
        w_v: [D, H*d_v].
        w_heads: [H, d_v, D], one output matrix a head.
        num_heads: H.
        mask: as in multi_head_attention.

    Returns:
        [B, N, D] in the dtype of x; equal to multi_head_attention with the matrices
        stacked into one w_o.

    Raises:
        ValueError: w_heads does not hold num_heads matrices; both numbers in the
            message.
    """
    ### BEGIN SOLUTION
    if w_heads.shape[0] != num_heads:
        raise ValueError(f"w_heads holds {w_heads.shape[0]} matrices for {num_heads} heads")
    q, k, v = (split_heads(x @ w, num_heads) for w in (w_q, w_k, w_v))  # [B, H, N, d]
    if mask is not None and mask.dim() == 3:
        mask = mask.unsqueeze(1)  # [B, 1, N, N]
    y = masked_attention(q, k, v, mask)  # [B, H, N, d_v]
    return (y @ w_heads).sum(dim=1)  # [B, H, N, D] -> [B, N, D]
    ### END SOLUTION


# %% check="multi_head_sum"
x = torch.eye(2).unsqueeze(0)
w_q = torch.diag(torch.tensor([math.log(3.0), math.log(7.0)]))
w_v = torch.diag(torch.tensor([4.0, 8.0]))
# the two rows of w_o above, one a head
w_heads = torch.tensor([[[1.0, 1.0]], [[0.0, 10.0]]])
expect(
    multi_head_sum(x, w_q, torch.eye(2), w_v, w_heads, num_heads=2),
    torch.tensor([[[3.0, 43.0], [2.0, 72.0]]]),
    atol=1e-5,
    hint="The same numbers as in the last check. Half of them? Then it was averaged: heads are added.",
)

# %% [markdown]
# ## 6. Grouped-query attention
#
# ★★☆ · about 25 minutes
#
# When a model writes text it keeps the keys and values of all tokens so far. With many heads and long texts this cache
# is larger than anything else that changes, and every step reads all of it. Grouped-query attention keeps all
# $H$ query heads and gives them only $H_{kv}$ key and value heads. **Neighbouring** query heads form a group and share
# one:
#
# $$\text{query head } h \text{ reads key head } \Big\lfloor \frac{h}{H/H_{kv}} \Big\rfloor$$
#
# With $H_{kv}=H$ it is what you have; with $H_{kv}=1$ it is called multi-query attention. With $H=64$ and $H_{kv}=8$
# the cache is eight times smaller. (Ainslie et al. report a quality close to that of all heads.)
#
# Two things to keep apart: torch can repeat a tensor in two orders, $a\,b\,a\,b$ and $a\,a\,b\,b$, and only one of
# them is "neighbours share". And the mask is `[N_q, N_k]`, `[B, N_q, N_k]` or four axes, exactly as in section 4.
#
# **Predict first.** Four query heads and two key heads: write down the key head that each of the four reads.

# %% predict="grouped_query_attention"
predict(
    "Which key head does query head 2 read? (Heads are counted from 0.)",
    answer=1,
    because="0, 0, 1, 1: neighbouring query heads share a key head.",
)


# %% question="grouped_query_attention"
def grouped_query_attention(q, k, v, mask=None):
    """Attention in which groups of query heads share a key and value head (Ainslie et
    al., 2023).

    Args:
        q: [B, H, N_q, d].
        k: [B, H_kv, N_k, d].
        v: [B, H_kv, N_k, d_v].
        mask: bool, True = may attend, as in multi_head_attention; four axes:
            broadcastable to [B, H, N_q, N_k].

    Returns:
        [B, H, N_q, d_v] in the dtype of q; query head h reads key and value head h //
        (H / H_kv). Half precision computes its scores and softmax in float32.

    Raises:
        ValueError: H is not a multiple of H_kv, or k and v differ in heads; both
            numbers in the message.
    """
    ### BEGIN SOLUTION
    num_heads, num_kv_heads = q.shape[1], k.shape[1]
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_heads} query heads cannot share {num_kv_heads} key heads evenly")
    if v.shape[1] != num_kv_heads:
        raise ValueError(f"{num_kv_heads} key heads but {v.shape[1]} value heads")
    group = num_heads // num_kv_heads
    k = k.repeat_interleave(group, dim=1)  # [B, H, N_k, d]: 0 0 1 1 …
    v = v.repeat_interleave(group, dim=1)  # [B, H, N_k, d_v]
    if mask is not None and mask.dim() == 3:
        mask = mask.unsqueeze(1)
    return masked_attention(q, k, v, mask)
    ### END SOLUTION


# %% check="grouped_query_attention"
q = torch.zeros(1, 4, 1, 2)  # zero queries: every key gets the same weight
k = torch.zeros(1, 2, 3, 2)
# [1, 2, 3, 1]: means 2 and 6
v = torch.tensor([[[[1.0], [1.0], [4.0]], [[3.0], [6.0], [9.0]]]])
expect(
    grouped_query_attention(q, k, v).flatten(),
    torch.tensor([2.0, 2.0, 6.0, 6.0]),
    atol=1e-5,
    hint="Heads 0 and 1 read value head 0, heads 2 and 3 read value head 1. 2, 6, 2, 6 means: repeated in the "
    "other order.",
)

# %% [markdown]
# ## 7. Counting operations
#
# ★★☆ · about 25 minutes
#
# "Attention is quadratic" is true and says little: quadratic parts can be small. So count. A product of an $[a, b]$ and
# a $[b, c]$ matrix makes $a\,c$ numbers, each a sum of $b$ products: $a\,b\,c$ multiplications and about as many
# additions. This course counts both, so **a multiply-add is 2** (a GPU's "FLOP/s" counts the same way, some papers do
# not):
#
# $$[a, b]\,[b, c]: \quad 2\,a\,b\,c \text{ operations}$$
#
# The layer has the four products of the picture in section 4: three projections in one, the scores in each head, the
# weighted values in each head, the output projection. The softmax and the mask are not counted: they are elementwise, a
# small share. Do not assume $H\,d = D$. For one sentence, with $H\,d=D$, the total should come out as
#
# $$8\,N D^2 + 4\,N^2 D$$
#
# **Predict first.** Cut the same $D$ columns into twice as many heads. Which of the four numbers change?

# %% predict="attention_flops"
predict(
    "How many of the four numbers change?",
    answer=0,
    because="Twice as many heads, each half as wide: H · d stays, and only H · d stands"
    " in the formulas.",
)


# %% question="attention_flops"
def attention_flops(b, n, d_model, num_heads, d_head):
    """Operations of multi-head self-attention in the forward pass; a multiply-add is 2.

    Args:
        b: sentences in the batch.
        n: tokens in each.
        d_model: D.
        num_heads: H.
        d_head: d, for queries, keys and values.

    Returns:
        dict of int: "qkv" (the three projections), "scores" (QKᵀ), "values" (AV),
        "output" (the output projection) and "total", the sum of the four. Softmax and
        masks are not counted.

    Raises:
        ValueError: a size is below 1; it stands in the message.
    """
    ### BEGIN SOLUTION
    if min(b, n, d_model, num_heads, d_head) < 1:
        raise ValueError(f"sizes must be at least 1, got {b}, {n}, {d_model}, {num_heads}, {d_head}")
    width = num_heads * d_head
    flops = {
        "qkv": 2 * (b * n) * d_model * (3 * width),  # [B*N, D] [D, 3*H*d]
        "scores": b * num_heads * 2 * n * d_head * n,  # B*H times [N, d] [d, N]
        "values": b * num_heads * 2 * n * n * d_head,  # B*H times [N, N] [N, d]
        "output": 2 * (b * n) * width * d_model,  # [B*N, H*d] [H*d, D]
    }
    return flops | {"total": sum(flops.values())}
    ### END SOLUTION


# %% check="attention_flops"
small = attention_flops(b=1, n=4, d_model=6, num_heads=2, d_head=3)
expect(
    small["qkv"],
    864,
    hint="[4, 6] times [6, 18]: 4·6·18 multiply-adds, each counts as 2.",
)
expect(small["scores"], 192, hint="Two heads, each [4, 3] times [3, 4].")
expect(small["total"], 1536, hint="8·4·36 + 4·16·6.")
# A layer of the largest GPT-2 on a full context: 25 heads of 64, D = 1600, N =
# 1024.
expect(
    attention_flops(1, 1024, 1600, 25, 64)["total"],
    27_682_406_400,
    hint="8 N D² + 4 N² D = 20 971 520 000 + 6 710 886 400.",
)

# %% [markdown]
# ## 8. Counting bytes
#
# ★☆☆ · about 5 minutes
#
# The scores, and the weights that the softmax makes of them, are one $N\times N$ matrix a head. Written out in memory,
# the weights take their number of elements times the bytes of one element: 4 for float32, 2 for half precision.
#
# Count one matrix a head, one sentence, one layer. Bytes, nothing else: which *unit* a number of bytes is told
# in is where the notes slip, at the end of this notebook.
#
# **Predict first.** Twice the length: how many times the memory? Twice the heads, with the head size halved?

# %% predict="attention_matrix_bytes"
predict(
    "Twice the heads, with the head size halved: how many times the memory?",
    answer=2,
    because="There is one N × N matrix a head, whatever its width. Twice the length "
    "takes four times as much.",
)


# %% question="attention_matrix_bytes"
def attention_matrix_bytes(n, num_heads, bytes_per_element):
    """Bytes of the attention weights of one layer and one sentence: one [N, N] matrix a
    head.

    Args:
        n: tokens.
        num_heads: H.
        bytes_per_element: 4 for float32, 2 for float16 and bfloat16.

    Returns:
        int, bytes.

    Raises:
        ValueError: a size is below 1; it stands in the message.
    """
    ### BEGIN SOLUTION
    if min(n, num_heads, bytes_per_element) < 1:
        raise ValueError(f"sizes must be at least 1, got {n}, {num_heads}, {bytes_per_element}")
    return num_heads * n * n * bytes_per_element
    ### END SOLUTION


# %% check="attention_matrix_bytes"
expect(
    attention_matrix_bytes(3, 2, 4),
    72,
    hint="Two matrices of nine elements, four bytes each.",
)
expect(
    attention_matrix_bytes(1024, 25, 2),
    52_428_800,
    hint="A GPT-2 layer in half precision: 50 · 1024² bytes.",
)

# %% [markdown]
# The lines are memories of graphics cards, from a gaming card to a large one in a data centre; everything above a line
# does not fit, with *nothing else* on the card. FlashAttention, in a later assignment, never writes this matrix at all.

# %% demo="memory_against_length"
import matplotlib.pyplot as plt

# 1 thousand to 1 million
lengths = [int(1000 * 10 ** (step / 8)) for step in range(25)]
figure, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
for num_heads in (12, 25, 64):
    axis.loglog(
        lengths,
        [attention_matrix_bytes(n, num_heads, 2) / 1e9 for n in lengths],
        label=f"H = {num_heads}",
    )
for gigabytes in (24, 80, 192):
    axis.axhline(gigabytes, color="grey", linestyle="--", linewidth=1)
    axis.text(
        lengths[0],
        gigabytes * 1.1,
        f"a card of {gigabytes} GB",
        color="dimgrey",
        fontsize=9,
    )
axis.set(
    xlabel="tokens N",
    ylabel="GB (10⁹ bytes)",
    title="Attention weights of one layer, half precision",
)
axis.legend(loc="lower right")
plt.show()

# %% [markdown]
# ## 9. When does $N^2$ matter?
#
# ★☆☆ · about 10 minutes
#
# The projections grow with $N$, the two products with the $N\times N$ matrix grow with $N^2$. For short texts the
# projections dominate, and making attention linear would save next to nothing. Set the two halves of your FLOP
# formula equal, with $H\,d = D$, and solve for $N$. The answer depends on the width alone.
#
# Careful with *what* is compared: here scores and values against **all four projections of the attention layer**
# (three in and one out). Against a whole transformer block, which has a large MLP besides, the length is three times
# that.
#
# **Predict first.** GPT-2's largest model has $D = 1600$ and reads 1024 tokens. Is it before or after the crossover?

# %% predict="crossover_length"
predict(
    "Before or after the crossover?",
    "before",
    "after",
    answer="before",
    because="The crossover is at N = 2 D = 3200 tokens.",
)


# %% question="crossover_length"
def crossover_length(d_model):
    """The N at which scores and values together cost as much as the four projections,
    when H*d = D.

    Args:
        d_model: D.

    Returns:
        int, tokens.

    Raises:
        ValueError: d_model is below 1; it stands in the message.
    """
    ### BEGIN SOLUTION
    if d_model < 1:
        raise ValueError(f"d_model must be at least 1, got {d_model}")
    return 2 * d_model  # 4 N² D = 8 N D²
    ### END SOLUTION


# %% check="crossover_length"
n = crossover_length(1600)
flops = attention_flops(1, n, 1600, 25, 64)
expect(
    flops["scores"] + flops["values"],
    flops["qkv"] + flops["output"],
    hint=f"At N = {n} the two sides should cost the same. Is every product in, on both sides?",
)

# %% demo="quadratic_share"
import matplotlib.pyplot as plt

lengths = [int(100 * 10 ** (step / 10)) for step in range(33)]
figure, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
for d_model, num_heads, colour in (
    (768, 12, "tab:blue"),
    (1600, 25, "tab:orange"),
    (12288, 96, "tab:green"),
):
    shares = []
    for n in lengths:
        flops = attention_flops(1, n, d_model, num_heads, d_model // num_heads)
        shares.append(100 * (flops["scores"] + flops["values"]) / flops["total"])
    axis.semilogx(lengths, shares, color=colour, label=f"D = {d_model}")
    axis.plot(crossover_length(d_model), 50, "o", color=colour)
axis.axhline(50, color="grey", linestyle="--", linewidth=1)
axis.set(
    xlabel="tokens N",
    ylabel="scores and values, % of the layer's FLOPs",
    title="The quadratic part, and where it takes over (dots)",
)
axis.legend()
plt.show()

# %% [markdown]
# ## 10. Find the error in the notes
#
# ★★☆ · about 20 minutes
#
# The lecture's last word on memory is: with $N = 100\,\mathrm{K}$ tokens and $H = 64$ heads, the attention weights take
# **1.192 TB**. The point stands, no card has that much. The number does not mean what it says.
#
# A number of bytes becomes a number of "terabytes" by four divisions. Divide by 1000 each time and the unit is the
# terabyte (TB, $10^{12}$ bytes). Divide by 1024 each time and it is the tebibyte (TiB, $2^{40}$ bytes). Somebody who
# divides by 1024 some of the times and by 1000 the others gets a number that is in no unit at all. The element size is
# not stated either. So take the figure apart: write a function that finds which element size, and how many divisions by
# 1024, give a figure that somebody wrote down. Then ask it about 1.192, and about the two figures that would have been
# right. We grade the function on other figures too.


# %% question="explain_memory_figure"
def explain_memory_figure(n, num_heads, claimed):
    """How a figure for the memory of the attention weights came about.

    Args:
        n: tokens.
        num_heads: H.
        claimed: the figure somebody wrote down as "terabytes", rounded to three
            decimals; at least 1.

    Returns:
        (bytes_per_element, binary_divisions): an element size out of 1, 2, 4 and 8 and
        a number from 0 to 4, such that the bytes of the weights, divided
        binary_divisions times by 1024 and 4 - binary_divisions times by 1000, are
        claimed when rounded to three decimals (an exact half as you like). (…, 0) is an
        honest TB, (…, 4) an honest TiB, all between is no unit. None where nothing
        gives the figure.
    """
    ### BEGIN SOLUTION
    for bytes_per_element in (1, 2, 4, 8):
        for binary_divisions in range(5):
            unit = 1024**binary_divisions * 1000 ** (4 - binary_divisions)
            if abs(attention_matrix_bytes(n, num_heads, bytes_per_element) / unit - claimed) <= 0.0005:
                return bytes_per_element, binary_divisions
    return None
    ### END SOLUTION


# %% check="explain_memory_figure"
# 32 heads, 200 000 tokens: 1.28e12 elements. In float32 that is 5.12e12 bytes,
# 5.120 TB, or 4.657 TiB.
expect(
    explain_memory_figure(200_000, 32, 5.120),
    (4, 0),
    hint="Four divisions by 1000, none by 1024.",
)
expect(
    explain_memory_figure(200_000, 32, 4.657),
    (4, 4),
    hint="Four divisions by 1024.",
)
expect(
    explain_memory_figure(200_000, 32, 3.000),
    None,
    hint="No element size gives 3.000, in whatever unit.",
)
print("the lecture's figure:", explain_memory_figure(100_000, 64, 1.192))

# %% [markdown] written="more_heads" points=5
# ## 11. In your own words
#
# A colleague has a layer with $D = 1024$ and $H = 16$ and proposes $H = 64$ with the same $D$: "more heads, more
# questions, and it costs nothing". What happens to (a) the operations, (b) the memory of the attention weights, and
# (c) what a single head can express? Five or six sentences; use your functions for the numbers.
#
# ### BEGIN SOLUTION
# (a) The projections have $H d = D$ columns as before, and the scores cost $2 N^2 d$ in each of $H$ heads, together
# $2 N^2 D$: `attention_flops` gives the same numbers for 16 heads of 64 and 64 heads of 16. (The softmax, which we do
# not count, does four times the work.) (b) There is one $N\times N$ matrix a head, so `attention_matrix_bytes`
# grows by four: "it costs nothing" is wrong where the matrix is written out. (c) A head's queries and keys have 16
# numbers instead of 64, so its score matrix has rank 16 at most, and it can tell fewer kinds of token apart; its answer
# lies in 16 dimensions too. More heads ask more questions, each a coarser one, and there is a best number between.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 1 point: (a) the operations of projections and scores stay the same, with a number from the functions.
# - 2 points: (b) one $N\times N$ matrix a head, so four times the memory; "it costs nothing" is wrong.
# - 2 points: (c) a head has 16 numbers instead of 64: the rank of its scores, or what it can tell apart, shrinks.
#   (1 point for "heads get weaker" without a reason.)
# ### END MARK SCHEME
