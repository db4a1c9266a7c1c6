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
# # Assignment 3: self-attention and masks
#
# In the last assignment a decoder looked back at an encoder: queries came from one sequence, keys and values from
# another. Here a sequence looks **at itself**. Every token asks a question, every token offers an answer, and all of
# it is three matrix products. No state is handed from one position to the next, so all positions are computed at once.
#
# That freedom has a price. Attention lets everybody see everybody, so somebody has to say who may *not* look at whom:
# a language model must not read the word it is about to predict, and nobody should listen to padding. And attention
# has no idea of order, so somebody has to tell it where each token stands. This assignment builds the two remedies,
# **masks** and **positions**, and then two small instruments that tell whether a model got them right.
#
# ![From tokens to masked self-attention in five steps](figures/masked_attention.svg)
#
# **Conventions, here and in all assignments**
#
# | thing | shape and meaning |
# | --- | --- |
# | tokens `x` | `[..., N, D]`: one token a row, any number of batch dimensions before |
# | weights `w_q`, `w_k`, `w_v` | `[in, out]`, used as `x @ w`. `torch.nn.Linear` stores the transpose |
# | scores, weights | `[..., N_q, N_k]`: row $i$ belongs to query $i$, column $j$ to key $j$ |
# | masks | boolean, **True = may attend**, broadcast to `[..., N_q, N_k]` |
# | a query that may attend to nothing | its row of weights is zero, and so is its output |
# | numbers | the dtype that comes in goes out; float16 and bfloat16 compute their softmax in float32 |
# | inputs | are never changed |
# | arguments that cannot be right | raise `ValueError`, with the sizes in the message |
#
# **What you will write**
#
# | | function | difficulty, estimated time |
# | --- | --- | --- |
# | 1 | `simple_self_attention` | ★☆☆, 15 min |
# | 2 | `self_attention` | ★☆☆, 15 min |
# | 3 | `cross_attention` | ★☆☆, 10 min |
# | 4 | `causal_mask` | ★★☆, 20 min |
# | 5 | `padding_mask` | ★☆☆, 15 min |
# | 6 | `combine_masks` | ★☆☆, 10 min |
# | 7 | `masked_softmax` | ★★★, 40 min |
# | 8 | `masked_attention` | ★☆☆, 20 min |
# | 9 | `sinusoidal_positions` | ★★☆, 30 min |
# | 10 | `is_permutation_equivariant` | ★★☆, 20 min |
# | 11 | `first_leak` | ★★★, 40 min |
# | 12 | `product_mask_evidence`: the error in the notes | ★★☆, 20 min |
# | 13 | a written answer | 15 min |
#
# Under each function stands a visible check with numbers that you can follow on paper. The graded tests use other
# numbers, other shapes and nastier cases; the docstring says everything that they rely on.
#
# Your own answers may take the place of what is given: `python make_my_course.py` with the names of your notebooks so
# far makes them a module, and prints the line that goes into a cell below.

# %% given="imports"
import math

import torch

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict


# %% given="library" module="library"
def widen(x):
    """Half precision as float32, everything else as it is: what softmax and scores are
    computed in.
    """
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def softmax(z, dim=-1):
    """Exponentials that sum to 1 along `dim` (assignment 1). A row that is all -inf
    becomes a row of zeros.
    """
    wide = widen(z)
    peak = wide.amax(dim=dim, keepdim=True)
    e = torch.exp(wide - peak.masked_fill(peak == -math.inf, 0.0))
    total = e.sum(dim=dim, keepdim=True)
    return (e / total.masked_fill(total == 0, 1.0)).to(z.dtype)


def scaled_dot_product_attention(q, k, v):
    """Attention without a mask (assignment 2).

    q [..., N_q, d], k [..., N_k, d], v [..., N_k, d_v] -> [..., N_q, d_v].
    """
    # [..., N_q, N_k]
    scores = widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(q.shape[-1])
    return (softmax(scores) @ widen(v)).to(q.dtype)


# %% [markdown]
# ## 1. Self-attention in its simplest form
#
# ★☆☆ · about 15 minutes
#
# The word "it" means one thing in "the chicken crossed the road because it was hungry" and another in "… because it
# was wide". A table of word vectors has one vector for both. Self-attention makes a vector **for this occurrence**: a
# mixture of the tokens around it, weighted by how similar they are.
#
# The simplest form in the lecture has no parameters at all. Token $i$ compares itself with every token up to and
# including itself, turns the similarities into weights, and takes the weighted sum:
#
# $$\mathrm{score}_{ij} = x_i\cdot x_j \quad (j \le i) \qquad
#   \alpha_{ij} = \frac{e^{\mathrm{score}_{ij}}}{\sum_{m\le i} e^{\mathrm{score}_{im}}} \qquad
#   a_i = \sum_{j\le i}\alpha_{ij}\,x_j$$
#
# Two things go wrong here. The sum in the denominator runs over $m \le i$ only: a later token must not even
# take part in the normalization. And this first form does **not** divide by $\sqrt d$; that comes with the
# projections, in the next section.
#
# All scores at once are one matrix product $XX^\top$, `[..., N, N]`. A loop over $i$ comes to mind first; the graded
# tests ask for a number of operations that does not grow with $N$. What number has to stand in the upper
# triangle so that the softmax gives it exactly no weight?
#
# **Predict first.** The tokens are $(1,0)$, $(0,1)$, $(1,1)$. What is $a_1$, whatever the later tokens are? Which
# token gets the largest weight in $a_3$?

# %% predict="simple_self_attention"
predict(
    "Which token gets the largest weight in a_3? (1, 2 or 3)",
    answer=3,
    because="Its scores are 1, 1 and 2: the token itself. And a_1 is always the first "
    "token, (1, 0).",
)


# %% question="simple_self_attention"
def simple_self_attention(x):
    """Each token becomes a mixture of itself and the tokens before it (the lecture's
    first form).

    No projections and no scaling: the score of i and j is the plain dot product.

    Args:
        x: [..., N, d], floating point.

    Returns:
        [..., N, d] in the dtype of x; half precision computes its scores and softmax in
        float32. All tokens at once: no Python loop over N.
    """
    ### BEGIN SOLUTION
    n = x.shape[-2]
    wide = widen(x)
    scores = wide @ wide.transpose(-1, -2)  # [..., N, N]
    future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(diagonal=1)  # key j > query i
    weights = softmax(scores.masked_fill(future, -math.inf))  # [..., N, N], rows sum to 1
    return (weights @ wide).to(x.dtype)  # [..., N, d]
    ### END SOLUTION


# %% check="simple_self_attention"
tokens = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
mixed = simple_self_attention(tokens)
expect(
    mixed[0],
    tokens[0],
    hint="The first token sees only itself, so it stays what it is. Which keys take part in its softmax?",
)
expect(
    mixed,
    torch.tensor([[1.0, 0.0], [0.2689414, 0.7310586], [0.7880584, 0.7880584]]),
    hint="Row 3 mixes with weights e/(2e + e^2), e/(2e + e^2), e^2/(2e + e^2). Do you scale? Which axis sums to 1?",
)

# %% [markdown]
# ## 2. Self-attention with three roles
#
# ★☆☆ · about 15 minutes
#
# In the simple form $i$ likes $j$ exactly as much as $j$ likes $i$, since $x_i\cdot x_j = x_j\cdot x_i$. And a token's
# score with itself, $x_i\cdot x_i$, is the square of its length, whatever it means. Language isn't like that: a verb
# looks for its subject, and a subject does not look for the verb in the same way. So every token gets three views of
# itself, each by its own matrix: a **query** (what am I looking for?), a **key** (what do I offer to a search?) and a
# **value** (what do I hand over when I am found?):
#
# $$Q = XW_Q \quad K = XW_K \quad V = XW_V \qquad
#   Y = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# with $X$ `[..., N, D]`, $W_Q$ and $W_K$ `[D, d_k]`, $W_V$ `[D, d_v]`, so $Y$ is `[..., N, d_v]`. There is no mask in
# this one: every token sees every token.
#
# Two things to watch. The scale belongs to the vectors inside the dot product: neither $D$ nor $d_v$ is their
# length. And $QK^\top$ is not $KQ^\top$: row $i$ belongs to query $i$. With square matrices nothing
# crashes when you mix these up, so the numbers have to tell you.
#
# **Predict first.** In the check below, token 1 prefers token 2 three to one, and token 2 cannot decide. Token 1 has
# the value $(4, 0, 8)$ and token 2 has $(0, 4, 0)$. What comes out?

# %% predict="self_attention"
predict(
    "The last number of the first row?",
    answer=2,
    because="0.25 · (4, 0, 8) + 0.75 · (0, 4, 0) = (1, 3, 2), and the second row is (2,"
    " 2, 4).",
)


# %% question="self_attention"
def self_attention(x, w_q, w_k, w_v):
    """Queries, keys and values all come from x; every token attends to every token
    (Vaswani et al., 2017).

    Args:
        x: [..., N, D], floating point.
        w_q: [D, d_k], multiplied from the right: x @ w_q.
        w_k: [D, d_k].
        w_v: [D, d_v]; d_v may differ from d_k.

    Returns:
        [..., N, d_v] in the dtype of x; half precision computes its scores and softmax
        in float32.

    Raises:
        ValueError: a weight does not have D rows, or w_q and w_k differ in width.
    """
    ### BEGIN SOLUTION
    d = x.shape[-1]
    for name, w in (("w_q", w_q), ("w_k", w_k), ("w_v", w_v)):
        if w.shape[0] != d:
            raise ValueError(f"x has {d} features and {name} takes {w.shape[0]}")
    if w_q.shape[1] != w_k.shape[1]:
        raise ValueError(f"queries have {w_q.shape[1]} features and keys {w_k.shape[1]}")
    q = x @ w_q  # [..., N, d_k]
    k = x @ w_k  # [..., N, d_k]
    v = x @ w_v  # [..., N, d_v]
    return scaled_dot_product_attention(q, k, v)  # [..., N, d_v]
    ### END SOLUTION


# %% check="self_attention"
x = torch.eye(2)
w_q = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
w_k = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
w_v = torch.tensor([[4.0, 0.0, 8.0], [0.0, 4.0, 0.0]])
expect(
    self_attention(x, w_q, w_k, w_v),
    torch.tensor([[1.0, 3.0, 2.0], [2.0, 2.0, 4.0]]),
    atol=1e-5,
    hint="Token 1 has the scores (0, 2 ln 3) before scaling and (0, ln 3) after. 0.4 instead of 1: no scaling. "
    "(2, 2, 4) for token 1: the keys have taken the queries' part.",
)

# %% [markdown]
# ## 3. Cross-attention
#
# ★☆☆ · about 10 minutes
#
# The same machine with two inputs: the queries come from the sequence that *wants* something (a translation in
# progress), the keys and values from the sequence that *has* it (the source sentence). The two sequences differ in
# length, and may differ in width:
#
# $$Q = X_qW_Q \qquad K = X_{kv}W_K \qquad V = X_{kv}W_V$$
#
# with $Q$ `[..., N_q, d_k]`, $K$ `[..., N_k, d_k]` and $V$ `[..., N_k, d_v]`.
#
# There is one output for each **query**. If yours comes out with the length of the source, you know which of the two
# you swapped; if the two lengths happen to be equal, you don't, and nothing will tell you. That is why the tests
# never let them be equal.


# %% question="cross_attention"
def cross_attention(x_q, x_kv, w_q, w_k, w_v):
    """Tokens of one sequence attend to the tokens of another.

    Args:
        x_q: [..., N_q, D], the tokens that ask.
        x_kv: [..., N_k, D_kv], the tokens that are asked.
        w_q: [D, d_k].
        w_k: [D_kv, d_k].
        w_v: [D_kv, d_v].

    Returns:
        [..., N_q, d_v] in the dtype of x_q; half precision computes its scores and
        softmax in float32.

    Raises:
        ValueError: a weight does not have as many rows as its input has features, or
            w_q and w_k differ in width.
    """
    ### BEGIN SOLUTION
    for name, x, w in (("w_q", x_q, w_q), ("w_k", x_kv, w_k), ("w_v", x_kv, w_v)):
        if w.shape[0] != x.shape[-1]:
            raise ValueError(f"{name} takes {w.shape[0]} features, its input has {x.shape[-1]}")
    if w_q.shape[1] != w_k.shape[1]:
        raise ValueError(f"queries have {w_q.shape[1]} features and keys {w_k.shape[1]}")
    q = x_q @ w_q  # [..., N_q, d_k]
    k, v = x_kv @ w_k, x_kv @ w_v  # [..., N_k, d_k] and [..., N_k, d_v]
    return scaled_dot_product_attention(q, k, v)  # [..., N_q, d_v]
    ### END SOLUTION


# %% check="cross_attention"
x_q = torch.tensor([[1.0]])
x_kv = torch.tensor([[0.0, 8.0], [math.log(2), 0.0], [math.log(5), 16.0]])
w_q = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
w_k = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
w_v = torch.tensor([[0.0, 0.0], [1.0, 0.5]])
expect(
    cross_attention(x_q, x_kv, w_q, w_k, w_v),
    torch.tensor([[11.0, 5.5]]),
    atol=1e-5,
    hint="One query, three keys: weights 1/8, 2/8, 5/8 over the values 8, 0, 16. Which input do the keys come from?",
)

# %% [markdown]
# ## 4. The causal mask
#
# ★★☆ · about 20 minutes
#
# A language model is trained on all positions of a text at once: position 1 predicts token 2, position 2 predicts
# token 3, and so on. If position 1 could see token 2, it would learn to copy it, reach a loss near zero and be useless
# when there is no token 2 yet. So position $i$ may look at itself and at what came before, and at nothing after:
# that is a lower triangle.
#
# Later, when a model generates, the keys of the past are kept, and only the **last** few positions send queries: two
# queries, five keys. Then the first of the two queries is not at position 0 but at position 3, and the triangle
# has to be lined up with the **bottom-right** corner, so that the last query sees every key:
#
# $$\text{query } i \text{ may see key } j \quad\Longleftrightarrow\quad j \;\le\; i + N_k - N_q$$
#
# ![A triangle aligned to the bottom-right corner, for five and for two queries](figures/causal_alignment.svg)
#
# Two things go wrong. The triangle that `torch` gives for a rectangle is aligned to the *top left* unless told
# otherwise; and a diagonal moved by one either lets each token see its successor or forbids it to see itself, and then
# row 0 is empty.
#
# **Predict first.** Write down the mask of five queries and two keys, $5\times2$. Which of its rows have no True? (This
# happens where a long question meets a short past.)

# %% predict="causal_mask"
predict(
    "How many of the five rows have no True?",
    answer=3,
    because="Query i may see key j when j ≤ i − 3: queries 0, 1 and 2 see nothing.",
)


# %% question="causal_mask"
def causal_mask(n_q, n_k=None):
    """Which query may see which key when nobody may look ahead, aligned to the bottom
    right.

    Args:
        n_q: number of queries, the last n_q positions of the sequence.
        n_k: number of keys; n_q where it is None. It may be smaller than n_q (the first
            queries then see nothing) and either may be 0.

    Returns:
        boolean [n_q, n_k]; True where j <= i + n_k - n_q.

    Raises:
        ValueError: a negative size (the message names it).
    """
    ### BEGIN SOLUTION
    if n_k is None:
        n_k = n_q
    if n_q < 0 or n_k < 0:
        raise ValueError(f"a mask cannot have {n_q} queries and {n_k} keys")
    i = torch.arange(n_q).unsqueeze(1)  # [n_q, 1]
    j = torch.arange(n_k)  # [n_k]
    return j <= i + n_k - n_q  # [n_q, n_k]
    ### END SOLUTION


# %% check="causal_mask"
lower = [
    [1, 0, 0, 0, 0],
    [1, 1, 0, 0, 0],
    [1, 1, 1, 0, 0],
    [1, 1, 1, 1, 0],
    [1, 1, 1, 1, 1],
]
expect(
    causal_mask(5),
    torch.tensor(lower).bool(),
    hint="Rows are queries, columns are keys; each token sees itself.",
)
expect(
    causal_mask(2, 5),
    torch.tensor(lower[3:]).bool(),
    hint="Two queries and five keys: the queries are positions 3 and 4. The last one sees every key.",
)

# %% [markdown]
# ## 5. The padding mask
#
# ★☆☆ · about 15 minutes
#
# Sentences in a batch differ in length, tensors don't. Short sentences are filled up at the end with padding, which
# no query should listen to. What matters is whether the **key** is real:
#
# $$\mathrm{mask}_{b,0,j} = (j < \mathrm{length}_b)$$
#
# The shape is `[B, 1, N]`, and the 1 in the middle is the point: the mask broadcasts over the *queries* of
# `[B, N_q, N_k]`. Without that axis, `[B, N]` is read as `[N_q, N_k]`: an error if you are lucky, a silently wrong
# answer if B happens to equal N. With the axis on the other side, `[B, N, 1]`, you forbid the padded *queries* to look
# and let everybody listen to padded keys.
#
# Length 0 is allowed (an empty sentence: no key may be seen). A length above $N$ is a bug in the caller, and cutting it
# off silently would hide it.


# %% question="padding_mask"
def padding_mask(lengths, n):
    """Which keys of each sequence are real tokens; padding stands at the end.

    Args:
        lengths: [B], integers from 0 to n.
        n: the padded length N.

    Returns:
        boolean [B, 1, N]; True where the key is real.

    Raises:
        ValueError: a length is negative or above n.
    """
    ### BEGIN SOLUTION
    for length in lengths.tolist():
        if not 0 <= length <= n:
            raise ValueError(f"a sequence of length {length} does not fit into {n} places")
    j = torch.arange(n, device=lengths.device)  # [N]
    return j < lengths[:, None, None]  # [B, 1, N]
    ### END SOLUTION


# %% check="padding_mask"
expect(
    padding_mask(torch.tensor([3, 1]), 4),
    torch.tensor([[[True, True, True, False]], [[True, False, False, False]]]),
    hint="True = a real token, in the shape [B, 1, N]. A sequence of length 3 has the real keys 0, 1 and 2.",
)

# %% [markdown]
# ## 6. Several masks at once
#
# ★☆☆ · about 10 minutes
#
# The decoder of a translator needs both: no key from the future **and** no padding. A key may be seen where *every*
# mask allows it. The masks have different shapes, `[N_q, N_k]` and `[B, 1, N_k]`, and broadcasting brings them together
# as `[B, N_q, N_k]`.
#
# If you ever find yourself adding masks, ask what True + True is. If you combine them with "or", ask what a padded key
# in the past gets.


# %% question="combine_masks"
def combine_masks(*masks):
    """Allowed is what every mask allows.

    Args:
        masks: one or more boolean masks whose shapes broadcast together.

    Returns:
        a boolean mask of the broadcast shape. The masks themselves stay as they are.

    Raises:
        ValueError: no mask at all, or shapes that do not broadcast together (the
            message names the last sizes).
    """
    ### BEGIN SOLUTION
    if not masks:
        raise ValueError("0 masks cannot be combined: give at least one")
    try:
        torch.broadcast_shapes(*(mask.shape for mask in masks))
    except RuntimeError:
        raise ValueError(f"masks of shapes {[list(mask.shape) for mask in masks]} do not broadcast") from None
    allowed = masks[0]
    for mask in masks[1:]:
        allowed = allowed & mask
    return allowed
    ### END SOLUTION


# %% check="combine_masks"
both = combine_masks(causal_mask(3), padding_mask(torch.tensor([3, 2]), 3))
expect(
    both,
    torch.tensor(
        [[[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1, 0, 0], [1, 1, 0], [1, 1, 0]]]
    ).bool(),
    hint="A key is seen only where every mask says True. In the second sequence, key 2 is padding for every query.",
)

# %% [markdown]
# **See your masks.** Yellow is "may attend". How many rows of the right-hand picture would be empty if the length of
# the sequence were 0?

# %% demo="masks"
import matplotlib.pyplot as plt

names = [
    "causal",
    "two new queries, six keys",
    "padding (length 4 of 6)",
    "causal and padding",
]
six = padding_mask(torch.tensor([4]), 6)[0].expand(6, 6)
pictures = [causal_mask(6), causal_mask(2, 6), six, combine_masks(causal_mask(6), six)]
figure, axes = plt.subplots(1, 4, figsize=(13, 3.4))
for axis, name, picture in zip(axes, names, pictures, strict=True):
    axis.imshow(picture.float(), cmap="viridis", vmin=0, vmax=1)
    axis.set(
        title=name,
        xlabel="key j",
        ylabel="query i",
        xticks=range(6),
        yticks=range(picture.shape[0]),
    )
figure.tight_layout()
plt.show()

# %% [markdown]
# ## 7. Softmax under a mask
#
# ★★★ · about 40 minutes. The heart of this assignment.
#
# A forbidden key should get weight exactly 0, and the allowed ones should share the 1 as if the forbidden key did not
# exist:
#
# $$\alpha_{ij} = \frac{e^{s_{ij}}}{\sum_{m\ \mathrm{allowed}} e^{s_{im}}} \quad\text{if } j \text{ is allowed},
#   \qquad \alpha_{ij} = 0 \quad\text{otherwise}$$
#
# "Override similarities with -inf", says the lecture, since $e^{-\infty}=0$. Almost everything else that people
# try works on friendly numbers and breaks on others. Try each in your head before you go on:
#
# - *Multiply the scores by the mask.* A forbidden score becomes 0. Is $e^0$ nothing?
# - *Take the softmax first, then zero the forbidden weights and divide by what is left.* In exact arithmetic that is
#   the same. Now let one forbidden score be 100000. What is left to divide by?
# - *Fill in a large negative number, −10000.* What if the scores that are allowed are near −100000?
#
# And then there is the row where **nothing** is allowed: an empty sentence, or a query that stands before all keys.
# $-\infty$ minus the row's maximum $-\infty$ is not a number, and one NaN in the weights is NaN in every gradient
# after it. This course says: such a row is **zero**, and its gradients are finite (zero, too).
#
# Two warnings about that row. Decide it from the *mask*, before anything has gone wrong. If you let NaN happen and
# replace it afterwards, the forward pass looks right, and the **backward** pass may still be NaN, since
# $0\cdot\mathrm{NaN}=\mathrm{NaN}$: whether it is depends on how the $-\infty$ got there, so look at your gradients.
# And if you wash away every NaN you find (`nan_to_num`), you also hide the one that comes from a real bug in an allowed
# score; that one should stay visible.
#
# **Predict first.** Four scores $(2, 1, 0, 3)$, the last forbidden. Does the row of weights change if the last score is
# 3 or 300000?

# %% predict="masked_softmax"
predict(
    "Does the row of weights change?",
    "yes",
    "no",
    answer="no",
    because="A forbidden score takes no part, whatever it is. It must not even decide "
    "the maximum that is subtracted.",
)


# %% question="masked_softmax"
def masked_softmax(scores, mask):
    """Softmax over the allowed keys; forbidden keys get exactly 0.

    Args:
        scores: [..., N_q, N_k] with N_k of 1 or more, floating point, of any size and
            sign; those of forbidden keys may be infinite or NaN.
        mask: boolean, True = may attend, broadcastable to the shape of scores.

    Returns:
        weights of the shape and dtype of scores (half precision is computed in
        float32). Each row sums to 1 over its allowed keys, whose largest score is
        finite; a row with no allowed key is 0, with finite gradients. NaN in an allowed
        score stays NaN.

    Raises:
        ValueError: the mask does not broadcast to the shape of scores; the message
            names both last sizes.
    """
    ### BEGIN SOLUTION
    try:
        mask = mask.expand(scores.shape)
    except RuntimeError:
        raise ValueError(f"a mask {list(mask.shape)} does not broadcast to scores {list(scores.shape)}") from None
    empty = ~mask.any(dim=-1, keepdim=True)  # [..., N_q, 1], known before any arithmetic
    visible = widen(scores).masked_fill(~mask, -math.inf)  # [..., N_q, N_k]
    peak = visible.amax(dim=-1, keepdim=True).masked_fill(empty, 0.0)  # [..., N_q, 1]
    e = torch.exp(visible - peak)  # forbidden keys: exp(-inf) = 0
    total = e.sum(dim=-1, keepdim=True).masked_fill(empty, 1.0)
    return (e / total).to(scores.dtype)
    ### END SOLUTION


# %% [markdown]
# The check uses the notes' own weights: the third position of "Students opened their" mixes its values with 0.3, 0.5
# and 0.2, the second with 0.7 and 0.3. Scores that give these weights are their logarithms, up to a constant for
# each row; the scores of the future can be anything.

# %% check="masked_softmax"
log = math.log
scores = torch.tensor(
    [
        [4.0, 9.0, -2.0],
        [5 + log(0.7), 5 + log(0.3), 60.0],
        [-1 + log(0.3), -1 + log(0.5), -1 + log(0.2)],
    ]
)
expect(
    masked_softmax(scores, torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]]).bool()),
    torch.tensor([[1.0, 0.0, 0.0], [0.7, 0.3, 0.0], [0.3, 0.5, 0.2]]),
    atol=1e-5,
    hint="Print your second row: it should be 0.7, 0.3, 0. Does the forbidden score of 60 take part in the sum?",
)
nobody = masked_softmax(torch.tensor([[3.0, -1.0]]), torch.tensor([[False, False]]))
expect(
    nobody,
    torch.zeros(1, 2),
    hint="No key is allowed, so there is nothing to share. Which row is this, says the mask?",
)

# %% [markdown]
# ## 8. Masked attention
#
# ★☆☆ · about 20 minutes
#
# Scores, scale, mask, softmax, weighted sum. The mask goes between the scale and the softmax, and nothing else changes.
# Here it is broadcast plainly to `[..., N_q, N_k]` (heads are for the next assignment).
#
# With no mask, it must be the attention that you know. And a test worth remembering: whatever finite numbers you put
# into the keys and values that a query may not see, its output must not move.
#
# Half precision needs one thought. float16 ends at 65504, and a dot product of ordinary vectors gets there before it
# is divided by $\sqrt d$; an infinite score is too late to repair. Widen before the product.


# %% question="masked_attention"
def masked_attention(q, k, v, mask=None):
    """Scaled dot-product attention in which the mask says which keys a query may see.

    Args:
        q: [..., N_q, d].
        k: [..., N_k, d], N_k at least 1.
        v: [..., N_k, d_v].
        mask: boolean, True = may attend, broadcastable to [..., N_q, N_k]; None allows
            everything.

    Returns:
        [..., N_q, d_v] in the dtype of q; half precision computes its scores and
        softmax in float32. A query without an allowed key gets zeros.

    Raises:
        ValueError: q and k differ in width, k and v differ in length, or the mask does
            not fit.
    """
    ### BEGIN SOLUTION
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"queries have {q.shape[-1]} features and keys {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"there are {k.shape[-2]} keys and {v.shape[-2]} values")
    scores = widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(q.shape[-1])  # [..., N_q, N_k]
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
    weights = masked_softmax(scores, mask)  # [..., N_q, N_k]
    return (weights @ widen(v)).to(q.dtype)  # [..., N_q, d_v]
    ### END SOLUTION


# %% check="masked_attention"
# One number a key: log 0.3, log 0.5, log 0.2. With these queries row 3 mixes 0.3,
# 0.5, 0.2 and row 2 mixes 0.7, 0.3.
q = torch.tensor([[7.0], [log(7 / 3) / log(3 / 5)], [1.0]])
k = torch.tensor([[log(0.3)], [log(0.5)], [log(0.2)]])
v = torch.tensor([[10.0, 0.0], [0.0, 10.0], [100.0, 100.0]])
expect(
    masked_attention(
        q, k, v, torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]]).bool()
    ),
    torch.tensor([[10.0, 0.0], [7.0, 3.0], [23.0, 25.0]]),
    atol=1e-4,
    hint="The value (100, 100) belongs to the last position: does it reach the first two rows?",
)
expect(
    masked_attention(q, k, v),
    scaled_dot_product_attention(q, k, v),
    atol=1e-4,
    hint="Without a mask this is the attention of the last assignment.",
)

# %% [markdown]
# **See the weights.** If every value is a unit vector, the output of attention *is* the matrix of weights. Here are
# eight random tokens, without a mask, with the causal one, and with padding from key 5 on. Before you run it: what
# is the sum of each row of each picture? And of each column?

# %% demo="masked_weights"
import matplotlib.pyplot as plt

random = torch.Generator().manual_seed(3)
q, k = torch.randn(2, 8, 6, generator=random)
masks = {
    "no mask": None,
    "causal": causal_mask(8),
    "causal, keys 5 to 7 are padding": combine_masks(
        causal_mask(8), padding_mask(torch.tensor([5]), 8)[0]
    ),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 4))
for axis, (name, mask) in zip(axes, masks.items(), strict=True):
    image = axis.imshow(
        masked_attention(q, k, torch.eye(8), mask), cmap="magma", vmin=0, vmax=1
    )
    axis.set(title=name, xlabel="key j", ylabel="query i")
figure.colorbar(image, ax=axes, label="attention weight")
plt.show()

# %% [markdown]
# ## 9. Where am I? Sinusoidal positions
#
# ★★☆ · about 30 minutes
#
# Shuffle the tokens of a sentence, and unmasked self-attention gives the same outputs, shuffled: "dog bites man" and
# "man bites dog" are the same set of vectors. The remedy in the lecture: add to each token a vector that is a fixed
# function of its index. The usual one (Vaswani et al., 2017) is a bank of clocks, each pair of columns one hand that
# turns at its own speed:
#
# $$P_{p,\,2i} = \sin\!\left(\frac{p}{10000^{2i/D}}\right) \qquad
#   P_{p,\,2i+1} = \cos\!\left(\frac{p}{10000^{2i/D}}\right)$$
#
# The first hand turns by one radian a position, the later ones ever more slowly. Since each pair is a point on a
# circle, moving by $k$ positions is a rotation, the same one wherever you start. So for even $D$ the dot product of two
# position vectors depends on their *distance* only, which is what a query and a key can use.
#
# Two things go wrong. $i$ counts **pairs**: the number in the exponent is the even column itself, $2i$, over $D$, and
# the sine and cosine of a pair share it. And the pairs are interleaved, (sin, cos, sin, cos, …), not all sines
# first. For odd $D$ there is one sine more than there are cosines, and the exponent still has the $D$ that was asked
# for.
#
# **Predict first.** What is row 0? With $D=4$, what are the two speeds?

# %% predict="sinusoidal_positions"
predict(
    "The second, slower speed?",
    answer=0.01,
    because="1 and 10000^(−2/4) = 0.01. Row 0 is (0, 1, 0, 1).",
)


# %% question="sinusoidal_positions"
def sinusoidal_positions(n, d):
    """Position vectors of sines and cosines, interleaved (Vaswani et al., 2017, section
    3.5).

    Args:
        n: number of positions, 0 … n-1; may be 0.
        d: features D, at least 1, even or odd.

    Returns:
        [n, d], float32: sin(p / 10000^(2i/D)) in column 2i, cos of the same angle in
        column 2i+1.

    Raises:
        ValueError: n is negative or d is below 1.
    """
    ### BEGIN SOLUTION
    if n < 0 or d < 1:
        raise ValueError(f"no position vectors for n = {n} positions and d = {d} features")
    p = torch.arange(n, dtype=torch.float64).unsqueeze(1)  # [n, 1]
    even = torch.arange(0, d, 2, dtype=torch.float64)  # [ceil(D/2)]: 2i
    angles = p / 10000.0 ** (even / d)  # [n, ceil(D/2)]
    positions = torch.empty(n, d)
    positions[:, 0::2] = torch.sin(angles).to(positions.dtype)
    positions[:, 1::2] = torch.cos(angles[:, : d // 2]).to(positions.dtype)  # odd D: one cosine fewer
    return positions
    ### END SOLUTION


# %% check="sinusoidal_positions"
expect(
    sinusoidal_positions(3, 4),
    torch.tensor(
        [
            [0.0, 1.0, 0.0, 1.0],
            [0.841471, 0.540302, 0.0099998, 0.99995],
            [0.909297, -0.416147, 0.0199987, 0.9998],
        ]
    ),
    atol=1e-5,
    hint="With D = 4 the two speeds are 1 and 1/100. Row 1 is sin 1, cos 1, sin 0.01, cos 0.01.",
)

# %% [markdown]
# **See the clocks.** Left: positions down, features across; the first columns flicker, the last hardly move. Right: the
# dot product of two position vectors. Why is it constant along the diagonals?

# %% demo="position_heat_map"
import matplotlib.pyplot as plt

positions = sinusoidal_positions(60, 48)
figure, axes = plt.subplots(1, 2, figsize=(12, 4.5))
image = axes[0].imshow(positions, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
axes[0].set(title="sinusoidal positions", xlabel="feature", ylabel="position")
figure.colorbar(image, ax=axes[0])
image = axes[1].imshow(positions @ positions.T, cmap="viridis")
axes[1].set(
    title="dot products of position vectors", xlabel="position", ylabel="position"
)
figure.colorbar(image, ax=axes[1])
figure.tight_layout()
plt.show()

# %% [markdown]
# ## 10. An instrument for order
#
# ★★☆ · about 20 minutes
#
# From here on you write the tests yourself, as functions that take a function. Below, `fn` maps `[N, D]` to `[N, D]`,
# and you know nothing about its inside.
#
# The lecture calls self-attention **permutation equivariant**: shuffling the tokens and then applying $F$ is the same
# as applying $F$ and then shuffling the results,
#
# $$F(\sigma(X)) = \sigma(F(X))$$
#
# Equivariant isn't *invariant*: $F(\sigma(X)) = F(X)$ says that the output ignores the order altogether, which is true
# of a sum and false of attention.
#
# Two things go wrong. Undoing the shuffle needs the *inverse* permutation; you see the difference only with one
# that is not its own inverse (swapping two tokens is; a cycle of three is not). And the shuffled tokens are summed in
# another order, so that right answers differ in the last digits: compare with a tolerance, and measure it by the size
# of the outputs, which may be large or tiny.


# %% question="is_permutation_equivariant"
def is_permutation_equivariant(fn, x, perm):
    """Whether fn commutes with this one shuffle of these tokens: fn(x[perm]) is
    fn(x)[perm].

    Args:
        fn: a deterministic function from [N, D] to [N, D]. It takes this N and D only,
            and leaves its argument alone.
        x: [N, D], float64.
        perm: [N], int64, a permutation: row i of the shuffled tokens is row perm[i] of
            x.

    Returns:
        a Python bool, about this x and this perm. Where fn does not commute, the two
        sides differ by at least 1e-3 of the largest output; rounding alone makes them
        differ by less than 1e-9 of it. Outputs may be of any size.

    Raises:
        ValueError: perm does not have N entries.
    """
    ### BEGIN SOLUTION
    if perm.shape != (x.shape[0],):
        raise ValueError(f"{x.shape[0]} tokens cannot be shuffled by a permutation of shape {list(perm.shape)}")
    shuffled_first = fn(x[perm])  # F(sigma(X))
    shuffled_last = fn(x)[perm]  # sigma(F(X))
    size = shuffled_last.abs().max()
    return bool((shuffled_first - shuffled_last).abs().max() <= 1e-6 * size)
    ### END SOLUTION


# %% check="is_permutation_equivariant"
three = torch.tensor([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]], dtype=torch.float64)
cycle = torch.tensor([1, 2, 0])
expect(
    is_permutation_equivariant(lambda t: 2 * t, three, cycle),
    True,
    hint="Doubling does not care about order.",
)
expect(
    is_permutation_equivariant(lambda t: t.cumsum(dim=0), three, cycle),
    False,
    hint="A running sum depends on who came first.",
)

# %% [markdown]
# **Equivariance, shown and broken.** The same attention three times. In the first picture the outputs of the shuffled
# tokens are the shuffled outputs; in the second, positions were added before; in the third there is a causal mask
# and no position. Predict the three answers first. Does the third surprise you?

# %% predict="equivariance"
predict(
    "With a causal mask and no positions, are the shuffled tokens' outputs the shuffled"
    " outputs?",
    "yes",
    "no",
    answer="no",
    because="The mask says who stands before whom: that is knowledge of the order too.",
)

# %% demo="equivariance"
import matplotlib.pyplot as plt

random = torch.Generator().manual_seed(5)
x = torch.randn(7, 6, generator=random, dtype=torch.float64)
w_q, w_k, w_v = torch.randn(3, 6, 6, generator=random, dtype=torch.float64) / 6**0.5
perm = torch.tensor([2, 0, 5, 6, 1, 3, 4])
subjects = {
    "self-attention": lambda t: self_attention(t, w_q, w_k, w_v),
    "with positions": lambda t: self_attention(
        t + sinusoidal_positions(7, 6), w_q, w_k, w_v
    ),
    "with a causal mask": lambda t: masked_attention(
        t @ w_q, t @ w_k, t @ w_v, causal_mask(7)
    ),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6))
for axis, (name, fn) in zip(axes, subjects.items(), strict=True):
    gap = (fn(x[perm]) - fn(x)[perm]).abs()
    image = axis.imshow(gap, cmap="magma", vmin=0, vmax=1)
    axis.set(
        title=f"{name}: {is_permutation_equivariant(fn, x, perm)}",
        xlabel="feature",
        ylabel="token",
    )
figure.colorbar(image, ax=axes, label="|F(shuffled X) − shuffled F(X)|")
plt.show()

# %% [markdown]
# ## 11. An instrument for leaks
#
# ★★★ · about 40 minutes
#
# A leak is a bug that is found late. The loss goes down beautifully, and the model is useless. Many
# leaks have nothing to do with a mask: a mean over the sequence, a convolution centred on its token, a
# normalization that looks at all positions.
#
# Your instrument treats the model as a black box. **Output row $i$ may depend on tokens $0 … i$ only.** So change
# tokens after $i$ and look whether row $i$ moves. `first_leak` returns the first output row that depends on a later
# token, or None.
#
# Think like somebody who wants to fool your instrument:
#
# - Which tokens do you change? A row may leak from its neighbour only, from the last token only, or from one in
#   between.
# - How do you change them? If you only add a constant, a leak through $x_j - \mathrm{mean}(x_j)$ does not notice. If
#   you only flip signs, $x_j^2$ doesn't notice. If you set them to zero, tokens that are zero already don't notice. A
#   tiny step is invisible to a leak through rounding. And gradients see nothing where a function is flat.
# - What counts as moved? A function that doesn't leak may still differ in the last digit, and a real leak may be small
#   beside the output, and the output itself may be tiny or huge.
# - What do you report? The row of the *output* that moved, the smallest such row, and 0 is a row.


# %% question="first_leak"
def first_leak(fn, x):
    """The first output row that depends on a later token.

    Args:
        fn: a deterministic function from [N, D] to [N, D]. It takes this N and D only,
            leaves its argument alone, and need not be differentiable.
        x: [N, D], float64, N >= 1.

    Returns:
        the smallest i for which row i of fn(x) changes when tokens after i change, as a
        Python int; None where no row does. A leak moves its row by at least 1e-3 of the
        row's largest entry, before or after, when the later tokens are replaced by
        independent random numbers of size 1; rounding alone moves a row by less than
        1e-9 of it. Rows may be of any size.
    """
    ### BEGIN SOLUTION
    # a seed of its own: with 0 the noise may be x itself, and replaces nothing
    generator = torch.Generator().manual_seed(20170612)
    noise = torch.randn(x.shape, generator=generator, dtype=x.dtype)  # [N, D]
    before = fn(x)
    for i in range(x.shape[0] - 1):
        changed = torch.cat([x[: i + 1], noise[i + 1 :]])  # tokens 0 … i stay
        after = fn(changed)
        moved = (after[i] - before[i]).abs().max()
        size = torch.maximum(after[i].abs().max(), before[i].abs().max())
        if moved > 1e-6 * size:
            return i
    return None
    ### END SOLUTION


# %% check="first_leak"
five = torch.tensor(
    [[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25], [2.0, 1.0], [-0.75, 4.0]],
    dtype=torch.float64,
)
expect(
    first_leak(lambda t: t.cumsum(dim=0), five),
    None,
    hint="A running sum never looks ahead.",
)
expect(
    first_leak(lambda t: t - t.mean(dim=0), five),
    0,
    hint="The mean over all tokens tells even row 0 about the future. (And 0 is a row, not a 'no'.)",
)


def row_two_peeks(t):
    out = t.clone()
    out[2] += t[4]
    return out


expect(
    first_leak(row_two_peeks, five),
    2,
    hint="Output row 2 looks at token 4. Report the row of the output.",
)

# %% [markdown]
# **Point it at attention.** The same attention, without and with a mask.

# %% demo="leaks"
random = torch.Generator().manual_seed(7)
x = torch.randn(6, 5, generator=random, dtype=torch.float64)
w_q, w_k, w_v = torch.randn(3, 5, 5, generator=random, dtype=torch.float64)
attempts = {
    "no mask": None,
    "causal": causal_mask(6),
    "one step too generous": causal_mask(7)[1:, :-1],
    "two queries at the top, causal below": torch.cat(
        [torch.ones(2, 6).bool(), causal_mask(4, 6)]
    ),
}
for name, mask in attempts.items():
    row = first_leak(
        lambda t, mask=mask: masked_attention(t @ w_q, t @ w_k, t @ w_v, mask), x
    )
    print(f"{name:36} first leak: {row}")

# %% [markdown]
# ## 12. Find the error in the notes
#
# ★★☆ · about 20 minutes
#
# The handwritten notes on masking put it like this, with an element-wise product between scores and mask:
#
# $$\mathrm{softmax}\left(QK^\top \odot
#   \begin{bmatrix}1 & -\infty & -\infty\\ 1 & 1 & -\infty\\ 1 & 1 & 1\end{bmatrix}\right)$$
#
# On some scores this is exactly right, which is how it survives. Show with numbers when it is right and the
# **two different ways** in which it is wrong. Your function makes three score matrices of a given size. The grader
# multiplies each by the notes' mask (1 on and below the diagonal, $-\infty$ above) and looks at the product, and at
# its softmax.


# %% question="product_mask_evidence"
def product_mask_evidence(n):
    """Three finite score matrices that show when the notes' product mask works and the
    two ways in which it fails.

    Args:
        n: number of tokens, at least 2.

    Returns:
        (fine, one_way, other_way), three different floating point matrices [n, n] with
        finite entries:
        fine: the softmax of the product is the causal attention that was meant;
        one_way: the product contains +inf, and no NaN;
        other_way: the product contains NaN, and no +inf.
    """
    ### BEGIN SOLUTION
    fine = torch.ones(n, n)  # a positive score times -inf is -inf
    one_way = -torch.ones(n, n)  # a negative score times -inf is +inf: the future wins
    other_way = torch.zeros(n, n)  # 0 times -inf is not a number
    return fine, one_way, other_way
    ### END SOLUTION


# %% check="product_mask_evidence"
notes_mask = torch.ones(3, 3).masked_fill(~causal_mask(3), -math.inf)
fine, one_way, other_way = (
    matrix * notes_mask for matrix in product_mask_evidence(3)
)
expect(
    bool((fine[~causal_mask(3)] == -math.inf).all()),
    True,
    hint="What does every entry above the diagonal have to be?",
)
expect(
    bool((one_way == math.inf).any()),
    True,
    hint="Which score turns -inf into +inf?",
)
expect(
    bool(other_way.isnan().any()),
    True,
    hint="Which number times infinity has no value?",
)

# %% [markdown]
# How bad is it on real scores? Predict, then run: of $N$ rows with random scores, how many keep finite weights, and
# does a longer sequence save a larger part of them?

# %% predict="product_mask_damage"
predict(
    "Of 64 rows, about how many keep finite weights?",
    answer=2,
    atol=0.5,
    because="A row survives when all its forbidden scores are positive: with k of them,"
    " once in 2^k. 1 + 1/2 + 1/4 + … is 2, however long the sequence is.",
)

# %% demo="product_mask_damage"
random = torch.Generator().manual_seed(11)
for n in (4, 16, 64):
    notes_mask = torch.ones(n, n).masked_fill(~causal_mask(n), -math.inf)
    weights = torch.softmax(
        torch.randn(500, n, n, generator=random) * notes_mask, dim=-1
    )
    survivors = weights.isfinite().all(dim=-1).float().sum(dim=-1).mean()
    print(f"N = {n:2}: {survivors:.2f} rows of {n} have weights at all")

# %% [markdown]
# ## 13. In words
#
# A language model with causal self-attention is **trained on all positions of a text at once**, and yet it
# **generates one token after the other**. Explain in about six sentences why both are so: what does the mask guarantee
# about output row $i$ that makes the parallel training right, and what is missing at generation time?

# %% [markdown] written="parallel_and_sequential" points=5
# ### BEGIN SOLUTION
# With the causal mask, output row $i$ is a function of tokens $0 … i$ only: the weights on later keys are exactly 0,
# and everything else in the layer works on each position alone. So row $i$, computed as part of the whole text, is the
# same as if the text had ended after token $i$. In training the whole text is known, so each row can predict its next
# token from the *true* tokens before it, and all $N$ predictions are one pass of matrix products that do not wait for
# each other. Without the mask row $i$ would see the token that it has to predict, and the loss would reward copying.
# When the model generates, the input of step $i+1$ is the token sampled at step $i$, which does not exist before that
# step is done. The dependence is in the data and not in the layer, so the steps have to be taken one after the other.
# (The same property says that earlier rows do not change when a token is added, so that their keys and values can be
# kept.)
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 2 points: row $i$ depends on tokens up to $i$ only, and equals what a shorter text would give.
# - 2 points: the true tokens are known in training, the sampled ones are not known at generation.
# - 1 point: what goes wrong without the mask.
# ### END MARK SCHEME
