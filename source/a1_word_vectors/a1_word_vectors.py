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
# # Assignment 1: words as vectors
#
# A transformer computes with numbers, and a sentence has none. This assignment builds the road from text to numbers:
# text is cut into **tokens**, each token has a whole number, its **id**, and each id picks one row of a table, its
# **embedding**. Everything that attention does from assignment 2 on happens between such rows.
#
# ![The road from text to vectors: tokens, ids, rows of the embedding table](figures/road.svg)
#
# You will also write the two tools by which attention compares and mixes vectors: a **similarity** between two vectors,
# and the **softmax** that turns a row of similarities into a distribution. At the end you train word vectors yourself,
# in a few seconds, and look at what they learned.
#
# | you write | what it does | difficulty, estimated time |
# | --- | --- | --- |
# | `one_hot` | the vectors that know nothing | ★☆☆, 10 min |
# | `cosine_similarity` | how alike two vectors are, whatever their lengths | ★★☆, 25 min |
# | `nearest` | the words closest to a vector | ★★☆, 25 min |
# | `analogy` | king − man + woman | ★☆☆, 15 min |
# | `softmax` | scores become a distribution | ★★★, 40 min |
# | `skip_gram_probabilities` | which words stand near this one? | ★☆☆, 10 min |
# | `skip_gram_pairs` | what a text says of neighbours | ★★☆, 20 min |
# | `skip_gram_loss` | how surprised the vectors are by a text | ★★☆, 35 min |
# | `train_bpe` | learns the tokens from word counts | ★★★, 45 min |
# | `encode_bpe` | cuts a word into learned tokens | ★★☆, 20 min |
# | `embed` | ids become rows | ★☆☆, 10 min |
# | `break_the_equivalence` | the error in the notes | ★★☆, 30 min |
#
# **Conventions of the whole course**
#
# > * A function gets everything it needs as arguments, returns a new value, and **never changes its inputs**.
# > * The dtype that comes in goes out. Half precision (`float16`, `bfloat16`) computes its norms and its softmax in
# >   `float32` inside and converts the result back.
# > * Shapes are written `[V, d]`; `...` stands for any number of leading dimensions, none too. `V` is the size of the
# >   vocabulary, `d` or `D` the length of a vector, `N` a number of tokens, `B` a batch.
# > * Vectors are **rows**. Weights are `[in, out]` and multiply from the right, `x @ w` (`nn.Linear` stores the
# >   transpose).
# > * Masks, from assignment 3 on, are boolean, and True means *may attend*.
# > * Arguments that cannot be right raise `ValueError`, with the sizes that do not fit in the message.
#
# Below each function stands a visible check. It is small on purpose: passing it says that you understood the example,
# not that the function is right. Invent inputs that could break it. The hidden tests did.

# %% given="library"
import math
from collections import Counter
from itertools import pairwise

import torch

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% [markdown]
# ## 1. One-hot vectors
#
# ★☆☆ · about 10 minutes
#
# The least that one can do with a word: give it a coordinate of its own. With the vocabulary *table, bed, couch, chair*
# the word number $i$ becomes a vector of four numbers that are 0 except for a 1 at place $i$:
#
# $$\mathrm{onehot}(i)_j = \begin{cases} 1 & j = i \\ 0 & \text{otherwise} \end{cases} \qquad\qquad
#   \texttt{ids}\;[\dots] \;\longrightarrow\; [\dots, V]$$
#
# This is honest and useless: the couch is as far from the bed as from anything else. It is still worth writing. It
# shows what is missing, and in section 11 it explains what an embedding table really is.
#
# Two things go wrong easily. The result must be *floating point*, since it will be multiplied with weights. And an
# id that is not in the vocabulary must be refused. Python is happy to read −1 as "the last one", which
# hides a bug until much later.
#
# **Predict first.** What is the dot product of two different one-hot vectors? And how long is the line between their
# tips? Does any pair of words differ from any other?

# %% predict="one_hot"
predict(
    "How long is the line between the tips of two different one-hot vectors?",
    answer=1.4142,
    atol=0.01,
    because="√2 for every pair, and every dot product is 0: no two words are closer "
    "than any others.",
)


# %% question="one_hot"
def one_hot(ids, vocab_size):
    """Give every word a coordinate of its own.

    Args:
        ids: [...], whole numbers (int64) in 0 … vocab_size − 1, any number of
            dimensions.
        vocab_size: V, the number of words.

    Returns:
        [..., V], float32: 1 at the id's place, 0 elsewhere.

    Raises:
        ValueError: an id is negative or not below vocab_size. The message names the id
            and vocab_size.

    Source: the lecture, "One-hot encoding isn't enough".
    """
    ### BEGIN SOLUTION
    outside = ids[(ids < 0) | (ids >= vocab_size)]
    if len(outside) > 0:
        raise ValueError(f"id {int(outside[0])} is not in a vocabulary of {vocab_size} words")
    words = torch.arange(vocab_size)  # [V]
    return (ids[..., None] == words).float()  # [..., 1] against [V]: [..., V]
    ### END SOLUTION


# %% check="one_hot"
# chair, table, couch, bed
furniture = one_hot(torch.tensor([3, 0, 2, 1]), vocab_size=4)
expect(
    furniture,
    torch.tensor([[0.0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]]),
    hint="Row n belongs to the n-th id: its 1 stands in the column that the id names, counted from 0.",
)
expect(
    furniture.dtype,
    torch.float32,
    hint="Weights are floats, and a whole-number matrix cannot be multiplied with them.",
)
expect(
    (furniture[0] @ furniture[2]).item(),
    0.0,
    hint="Two different words share no coordinate.",
)
expect(
    torch.dist(furniture[0], furniture[1]).item(),
    math.sqrt(2),
    hint="Two coordinates differ, each by 1.",
)

# %% [markdown]
# ## 2. Cosine similarity
#
# ★★☆ · about 25 minutes
#
# Now let each word $w$ have a vector $v_w$ of $d$ real numbers, with $d$ much smaller than $V$. Words that mean nearly
# the same should have nearly the same vector. So we need a number that says how alike two vectors are, and the angle
# $\alpha$ between them gives one that does not care how long they are:
#
# $$S_C(u, v) = \frac{u\cdot v}{\lVert u\rVert\,\lVert v\rVert} = \cos\alpha
#   \qquad\qquad u\cdot v = \sum_{j=1}^{d} u_j v_j \qquad \lVert u\rVert = \sqrt{\sum_{j=1}^d u_j^2}$$
#
# It is +1 where the directions agree, −1 where they are opposite, 0 where they are perpendicular.
#
# Two things people get wrong:
#
# * **The axis.** In a table `[V, d]` each *row* is a word, and each row has one length. Whatever you sum, you sum over
#   the features. Write the function for `[..., d]` and it works for one pair, for a batch, and for a table against one
#   vector, by broadcasting.
# * **The zero vector** has no direction. The formula says 0/0, and a single NaN in a table of words spoils every
#   ranking that comes after. The course defines the similarity with a zero vector as 0. Adding a small number to the
#   denominator is not the way: it is wrong for vectors that are merely short.
#
# **Predict first.** $u=(3,4)$, $v=(4,3)$. Compute $S_C(u,v)$ by hand. What becomes of it when $u$ is replaced by
# $-10u$?

# %% predict="cosine_similarity"
predict(
    "What is the cosine of u = (3, 4) and v = (4, 3)?",
    answer=0.96,
    because="(12 + 12) / (5 · 5) = 0.96. With −10u it is −0.96: the length does not "
    "count, the direction does.",
)


# %% question="cosine_similarity"
def cosine_similarity(u, v):
    """The cosine of the angle between vectors.

    Args:
        u: [..., d], floating point.
        v: [..., d], of the same dtype; the leading dimensions broadcast against those
            of u.

    Returns:
        [...] in the dtype of u, between −1 and 1 up to rounding; 0 where u or v is the
        zero vector (the gradient is finite there too). Short and long vectors are no
        special case, as long as the squares of their lengths are neither too large nor
        too small for the dtype. Half precision is computed in float32.

    Raises:
        ValueError: u and v have different lengths d. The message names both.

    Source: the lecture, "Vector similarity: dot products".
    """
    ### BEGIN SOLUTION
    if u.shape[-1] != v.shape[-1]:
        raise ValueError(f"u has {u.shape[-1]} features and v has {v.shape[-1]}")
    dtype = u.dtype
    if dtype in (torch.float16, torch.bfloat16):
        u, v = u.float(), v.float()
    dot = (u * v).sum(dim=-1)  # [...]
    lengths = torch.linalg.vector_norm(u, dim=-1) * torch.linalg.vector_norm(v, dim=-1)  # [...]
    lengths = torch.where(lengths == 0, torch.ones_like(lengths), lengths)  # then dot is 0: 0/1
    return (dot / lengths).to(dtype)
    ### END SOLUTION


# %% check="cosine_similarity"
u, v = torch.tensor([3.0, 4.0]), torch.tensor([4.0, 3.0])
expect(
    cosine_similarity(u, v),
    torch.tensor(0.96),
    hint="(3·4 + 4·3) / (5·5). Did you divide by both lengths?",
)
expect(
    cosine_similarity(-10 * u, v),
    torch.tensor(-0.96),
    hint="A length must cancel, a sign must stay.",
)
pairs = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
expect(
    cosine_similarity(pairs, torch.tensor([5.0, 0.0])),
    torch.tensor([1.0, 0.0, 0.0]),
    hint="One number for each row. The last row is the zero vector: nan there means 0/0.",
)

# %% [markdown]
# With one-hot vectors every similarity between two words is 0. Vectors can do better, even ones made by hand. Here each
# food gets three numbers: how sweet, how salty, how liquid.

# %% demo="equally_different"
import matplotlib.pyplot as plt

foods = ["sugar", "honey", "cake", "salt", "soy sauce", "lemonade"]
tastes = torch.tensor(
    [
        [1.0, 0.0, 0.0],
        [0.9, 0.0, 0.5],
        [0.8, 0.1, 0.0],
        [0.0, 1.0, 0.0],
        [0.1, 0.9, 0.8],
        [0.7, 0.0, 1.0],
    ]
)
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for axis, table, title in (
    (axes[0], one_hot(torch.arange(6), 6), "one-hot: equally different"),
    (axes[1], tastes, "three features: sweet, salty, liquid"),
):
    # [V, 1, d] against [1, V, d]: [V, V]
    similarity = cosine_similarity(table[:, None, :], table[None, :, :])
    image = axis.imshow(similarity, vmin=-1, vmax=1, cmap="RdBu_r")
    axis.set(
        title=title,
        xticks=range(6),
        yticks=range(6),
        yticklabels=foods,
        xlabel="word",
        ylabel="word",
    )
    axis.set_xticklabels(foods, rotation=45, ha="right")
fig.colorbar(image, ax=axes, label="cosine similarity")
plt.show()

# %% [markdown]
# ## 3. The nearest words
#
# ★★☆ · about 25 minutes
#
# The question that one asks a table of word vectors most often: which words are closest to this vector? Compute the
# similarity of the query with every row, and take the $k$ best, best first.
#
# $$\texttt{nearest}(T, q, k) = \text{the } k \text{ ids } i \text{ with the largest } S_C(T_i, q)
#   \qquad T\;[V, d] \quad q\;[d] \quad\longrightarrow\quad [k]$$
#
# By cosine nothing is nearer to a vector than the word it belongs to, so the function takes ids to leave out. Two
# things people get wrong there. The ids in the answer are rows of the *whole* table; if you delete rows first, all
# later ids move. And a word that is left out needs a score below every other score. Cosines go down to −1, so neither 0
# nor a small number of your choice will do.
#
# Loops over the vocabulary are slow for 50,000 words: one call of `cosine_similarity` compares all rows.
#
# **Predict first.** Rows $(1,0)$, $(10,1)$, $(0,1)$, $(-1,-1)$ and the query $(2,0)$: in which order do they come?
# Would the plain dot product give the same order?

# %% predict="nearest"
predict(
    "By the plain dot product, which row comes first? (Rows are counted from 0.)",
    answer=1,
    because="By cosine the order is 0, 1, 2, 3. The dot product puts row 1 first, 20 "
    "against 2: it rewards length.",
)


# %% question="nearest"
def nearest(table, query, k, exclude=()):
    """The k words whose vectors point most nearly in the direction of the query.

    Args:
        table: [V, d], one row a word.
        query: [d].
        k: how many ids to return, at least 1.
        exclude: ids that must not be returned (a tuple or list; an id may occur twice).

    Returns:
        [k], int64: ids of rows of the table, by falling cosine similarity (best first).
        All words are compared at once: no Python loop over V.

    Raises:
        ValueError: k is below 1 or above the number of words that are left (the message
            names k), an excluded id is not in the table (the message names it), or the
            query does not have d features.
    """
    ### BEGIN SOLUTION
    vocab_size = table.shape[0]
    excluded = sorted(set(exclude))
    for i in excluded:
        if not 0 <= i < vocab_size:
            raise ValueError(f"id {i} is not in a table of {vocab_size} words")
    left = vocab_size - len(excluded)
    if not 1 <= k <= left:
        raise ValueError(f"k = {k} words are asked for, and {left} are left")
    scores = cosine_similarity(table, query)  # [V, d] against [d]: [V]
    if excluded:
        scores = scores.index_fill(0, torch.tensor(excluded), -math.inf)
    return scores.topk(k).indices  # [k]
    ### END SOLUTION


# %% check="nearest"
table = torch.tensor([[1.0, 0.0], [10.0, 1.0], [0.0, 1.0], [-1.0, -1.0]])
query = torch.tensor([2.0, 0.0])
expect(
    nearest(table, query, k=4),
    torch.tensor([0, 1, 2, 3]),
    hint="Row 1 has the larger dot product. Is its angle smaller?",
)
expect(
    nearest(table, query, k=2, exclude=(0, 2)),
    torch.tensor([1, 3]),
    hint="Row 3 is left, although its similarity is negative. And it is still row 3 of the table.",
)

# %% [markdown]
# ## 4. Adding words together
#
# ★☆☆ · about 15 minutes
#
# If directions in the space have a meaning, one can compute with it. The famous example: take the vector of *king*,
# go the way that leads from *man* to *woman*, and you should land near *queen*.
#
# $$v_{\text{king}} - v_{\text{man}} + v_{\text{woman}} \approx v_{\text{queen}} \qquad\qquad
#   v_{\text{paris}} - v_{\text{france}} + v_{\text{italy}} \approx v_{\text{rome}}$$
#
# ![The step from man to king, taken from woman, leads to queen](figures/parallelogram.svg)
#
# In general: *a is to b as c is to …* means the word nearest (by cosine) to $v_b - v_a + v_c$. With a = man, b = king,
# c = woman this is the line above.
#
# One detail decides whether it works at all. The differences are often small, so that the nearest word to the target is
# often one of the three words one started from. Mikolov et al. (2013) leave those three out, and so do we. Take care of
# the signs, too: only one of the three has a minus.
#
# **Predict first.** In the picture man = (1, 1), king = (4, 1), woman = (1, 3). Where does the target lie? What answer
# does a = king, b = man, c = queen ask for?

# %% predict="analogy"
predict(
    "What does a = king, b = man, c = queen ask for?",
    "woman",
    "man",
    "king",
    answer="woman",
    because="king − man + woman = (4, 3) is where queen lies. Backwards, man − king + "
    "queen = (1, 3), which is woman.",
)


# %% question="analogy"
def analogy(table, a, b, c):
    """a is to b as c is to …: the word nearest to b − a + c.

    Args:
        table: [V, d], one row a word. The vectors are used as they are, without
            normalizing them first.
        a, b, c: ids of rows (ints; they need not differ).

    Returns:
        The id (a Python int) of the word nearest by cosine similarity to table[b] −
        table[a] + table[c], other than a, b and c.

    Raises:
        ValueError: an id is not in the table (negative ids neither; the message names
            the id), or no word is left.

    Source: the lecture, "Adding words together"; Mikolov et al., 2013.
    """
    ### BEGIN SOLUTION
    for i in (a, b, c):
        if not 0 <= i < table.shape[0]:
            raise ValueError(f"id {i} is not in a table of {table.shape[0]} words")
    target = table[b] - table[a] + table[c]  # [d]
    return int(nearest(table, target, k=1, exclude=(a, b, c))[0])
    ### END SOLUTION


# %% check="analogy"
words = ["man", "woman", "king", "queen", "apple", "bread"]
drawn = torch.tensor(
    [[1.0, 1.0], [1.0, 3.0], [4.0, 1.0], [3.6, 3.0], [-2.0, 2.0], [-3.0, 1.0]]
)
man, woman, king, queen = 0, 1, 2, 3
expect(
    analogy(drawn, man, king, woman),
    queen,
    hint="The target is (4, 3): b − a + c, then the nearest of the other words.",
)
expect(
    analogy(drawn, woman, queen, man),
    king,
    hint="woman is to queen as man is to …: the same parallelogram, upside down.",
)
close = torch.tensor([[1.0, 0.0], [5.0, 1.0], [1.0, 1.0], [2.0, 1.6], [-1.0, 2.0]])
expect(
    analogy(close, 0, 1, 2),
    3,
    hint="Row 1 is nearest to the target, and it is one of the words we asked with.",
)

# %% demo="parallelogram"
import matplotlib.pyplot as plt

target = drawn[king] - drawn[man] + drawn[woman]
found = analogy(drawn, man, king, woman)
fig, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
axis.scatter(drawn[:, 0], drawn[:, 1], color="#335c81", zorder=3)
for word, (x, y) in zip(words, drawn.tolist(), strict=True):
    axis.annotate(word, (x, y), xytext=(-6, 6), textcoords="offset points")
for start, end, style in (
    (drawn[man], drawn[king], "-"),
    (drawn[woman], target, "-"),
    (drawn[man], drawn[woman], ":"),
    (drawn[king], target, ":"),
):
    axis.plot(*zip(start.tolist(), end.tolist(), strict=True), style, color="#c1666b")
axis.scatter(*target.tolist(), marker="x", color="#c1666b", zorder=4)
axis.annotate(
    "king − man\n+ woman",
    target.tolist(),
    xytext=(8, -24),
    textcoords="offset points",
    color="#c1666b",
)
axis.set(
    title=f"the analogy's answer: {words[found]}",
    xlabel="first feature",
    ylabel="second feature",
    xlim=(-4, 6.5),
    ylim=(0.5, 3.5),
)
plt.show()

# %% [markdown]
# ## 5. Softmax
#
# ★★★ · about 40 minutes
#
# A "similarity of 37": is that much? A number says something only next to the others. Softmax puts the scores of all
# candidates side by side and turns them into shares of 1, a distribution:
#
# $$p_k = \frac{e^{z_k}}{\sum_i e^{z_i}}$$
#
# The exponential makes everything positive, the sum makes everything comparable. You will meet this function in every
# assignment of the course; attention is a softmax and two matrix products. So it is worth doing well.
#
# **Stability.** $e^{89}$ is more than `float32` can hold and $e^{710}$ more than `float64` can. inf/inf is NaN. But
# softmax only depends on differences, $\mathrm{softmax}(z) = \mathrm{softmax}(z - c)$ for any number $c$ (multiply
# numerator and denominator by $e^{-c}$). There is one choice of $c$ for which no exponent is positive and at
# least one is 0, so that nothing overflows and the sum is at least 1. Each row needs its own $c$: one that suits a row
# near +1000 leaves a row near −1000 with nothing but zeros.
#
# **Minus infinity** is a legal score: it means "impossible", gets probability 0, and is how masks will work in
# assignment 3. If *all* scores are −∞ there is nothing to distribute, and the course defines the result as zeros.
# Decide that case where it arises. Repairing every NaN at the end would also hide the NaN of a real bug.
#
# **Predict first.** What are the softmaxes of $(0, \ln 2, \ln 5)$, of $(1000, 1000)$, and of $(7, -\infty)$?

# %% predict="softmax"
predict(
    "The last number of the softmax of (0, ln 2, ln 5)?",
    answer=0.625,
    atol=0.001,
    because="The exponentials are 1, 2 and 5, of 8 in all. Of (1000, 1000) both are "
    "0.5, and of (7, −∞) they are 1 and 0.",
)


# %% question="softmax"
def softmax(z, dim=-1):
    """Turn scores into shares of 1 along one dimension.

    Args:
        z: scores of any shape without a size of 0, floating point; −inf is allowed.
        dim: the dimension along which the result sums to 1.

    Returns:
        The shape and dtype of z. Large scores do not overflow. A score of −inf gets
        exactly 0; where all scores along dim are −inf, all are 0, and the gradient is
        finite. A NaN in z stays visible. Half precision is computed in float32.

    Source: the lecture, "Probability".
    """
    ### BEGIN SOLUTION
    wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z
    top = wide.amax(dim=dim, keepdim=True)  # size 1 along dim
    top = torch.where(top == -math.inf, torch.zeros_like(top), top)  # −inf − (−inf) would be NaN
    powers = torch.exp(wide - top)  # at most 1
    total = powers.sum(dim=dim, keepdim=True)  # at least 1, or 0 where all scores are −inf
    return (powers / torch.where(total == 0, torch.ones_like(total), total)).to(z.dtype)
    ### END SOLUTION


# %% check="softmax"
expect(
    softmax(torch.tensor([0.0, math.log(2), math.log(5)])),
    torch.tensor([1 / 8, 2 / 8, 5 / 8]),
    hint="The exponentials are 1, 2 and 5. Divide each by their sum.",
)
expect(
    softmax(
        torch.tensor([[1000.0, 1000.0], [7.0, -math.inf], [-math.inf, -math.inf]])
    ),
    torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]]),
    atol=1e-4,
    hint="nan in row 0: which number can be taken away from a row without changing its softmax? "
    "nan in row 2: follow −inf − (−inf) and 0/0.",
)
expect(
    softmax(torch.tensor([[0.0, 0.0, 0.0], [math.log(3), 0.0, 0.0]]), dim=0),
    torch.tensor([[0.25, 0.5, 0.5], [0.75, 0.5, 0.5]]),
    hint="With dim=0 each column sums to 1.",
)

# %% [markdown]
# Softmax only sees differences, so the *size* of the scores decides how sharp the distribution is. The same five
# scores, multiplied by 0.2, 1 and 5:

# %% demo="sharpness"
import matplotlib.pyplot as plt

scores = torch.tensor([0.3, -0.8, 1.0, 0.6, -0.2])
fig, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
for axis, scale in zip(axes, (0.2, 1.0, 5.0), strict=True):
    axis.bar(range(5), softmax(scale * scores), color="#335c81")
    axis.set(title=f"softmax of {scale:g} · scores", xlabel="candidate", ylim=(0, 1))
axes[0].set_ylabel("probability")
plt.show()

# %% [markdown]
# ## 6. Skip-gram: which words stand near this one?
#
# ★☆☆ · about 10 minutes
#
# Where do good vectors come from? From one idea: words that occur in the same surroundings mean similar things. The
# skip-gram model makes a prediction of it. Given a word $a$ (the *center*), how probable is each word $b$ as its
# neighbour in the text (the *context*)? The score is the dot product, and softmax does the rest:
#
# $$P\{b \mid a\} = \frac{\exp(v_a\cdot c_b)}{\sum_{i=1}^{V}\exp(v_a\cdot c_i)}
#   \qquad\qquad v_a\;[d] \quad C\;[V, d] \quad\longrightarrow\quad [V]$$
#
# The lecture writes $v$ for both roles. Like the original word2vec, we keep two tables: $v$ for a word as center, $c$
# for a word as context. With one table the score of a word as its own neighbour would be $v\cdot v$, the square of its
# length. It is never negative, and it grows whenever the vector does, though few words stand beside themselves.
#
# Two things people get wrong: the sum in the denominator runs over the *whole vocabulary*, not over the words that
# happened to occur; and the score is the dot product as it stands, not the cosine (section 13 comes back to that).
#
# **Predict first.** $v_a = (\ln 2, 0)$ and $C$ has the rows $(0, 5)$, $(1, 7)$, $(2, -3)$. What is $P\{\cdot\mid a\}$?

# %% predict="skip_gram_probabilities"
predict(
    "How probable is word 2?",
    answer=0.5714,
    atol=0.001,
    because="The scores are 0, ln 2 and 2 ln 2, the exponentials 1, 2 and 4: 4/7. What "
    "stands in the second column does not count.",
)


# %% question="skip_gram_probabilities"
def skip_gram_probabilities(center, context_table):
    """How probable each word is as a neighbour of the center word.

    Args:
        center: [d], the vector of the center word.
        context_table: [V, d], one row a word.

    Returns:
        [V] in the dtype of center: the softmax of the dot products over the whole
        vocabulary. Large scores do not overflow. Half precision computes the softmax
        in float32.

    Raises:
        ValueError: the rows of the table are not as long as center. The message names
            both lengths.

    Source: the lecture, "Probability"; Mikolov et al., 2013.
    """
    ### BEGIN SOLUTION
    if context_table.shape[-1] != center.shape[-1]:
        raise ValueError(f"center has {center.shape[-1]} features and the table {context_table.shape[-1]}")
    scores = context_table @ center  # [V, d] @ [d]: [V]
    return softmax(scores)
    ### END SOLUTION


# %% check="skip_gram_probabilities"
contexts = torch.tensor([[0.0, 5.0], [1.0, 7.0], [2.0, -3.0]])
expect(
    skip_gram_probabilities(torch.tensor([math.log(2), 0.0]), contexts),
    torch.tensor([1 / 7, 2 / 7, 4 / 7]),
    hint="The dot products are 0, ln 2 and 2 ln 2, so the exponentials are 1, 2 and 4.",
)

# %% [markdown]
# ## 7. From text to pairs
#
# ★★☆ · about 20 minutes
#
# Which words stand *near* a word? Those in its **context window**: at most $w$ places away, before or after. A sentence
# with the words $t_0, \dots, t_{N-1}$ gives the pairs
#
# $$(t_i,\, t_j) \qquad\text{for all places } i \ne j \text{ with } |i - j| \le w$$
#
# of a center and a context. In *the cat sat on the mat*, with $w = 2$, the center *sat* has four contexts: *the, cat,
# on, the*. The first *the* has only two, *cat* and *sat*: at the ends the window is cut off.
#
# Three things people get wrong:
#
# * **Both sides.** The window reaches $w$ places back *and* $w$ places forward. (Beware of a slice that begins below 0:
#   Python counts such a place from the end.)
# * **Places, not words.** No place is its own context. But a word that stands twice in a window is its own neighbour,
#   and a pair that occurs five times is there five times: how often is all that the model learns from.
# * **Sentences.** A window does not reach into the next sentence.
#
# **Predict first.** How many pairs does *the cat sat on the mat* give with $w = 2$? And a sentence of one word?

# %% predict="skip_gram_pairs"
predict(
    "How many pairs does *the cat sat on the mat* give with w = 2?",
    answer=18,
    because="The six words have 2, 3, 4, 4, 3 and 2 neighbours. A sentence of one word "
    "gives none.",
)


# %% question="skip_gram_pairs"
def skip_gram_pairs(sentences, window):
    """The pairs of center and context words of a text, as skip_gram_loss wants them.

    Args:
        sentences: list of int64 tensors [N], the ids of the words of each sentence. A
            sentence may have no word, and the list no sentence.
        window: w, how many places the window reaches to each side, at least 1.

    Returns:
        (center_ids, context_ids), two int64 tensors [P] with one entry a pair: the
        context stands in the sentence of the center, at another place, at most w places
        away. Sorted by sentence, then by the place of the center, then by the place of
        the context.

    Raises:
        ValueError: window is below 1. The message names it.

    Source: the lecture, "Word2vec"; Mikolov et al., 2013.
    """
    ### BEGIN SOLUTION
    if window < 1:
        raise ValueError(f"a window of {window} places reaches no other word")
    centers, contexts = [], []
    for sentence in sentences:
        words = sentence.tolist()
        for i, center in enumerate(words):
            around = words[max(0, i - window) : i] + words[i + 1 : i + 1 + window]  # before, then behind
            centers += [center] * len(around)
            contexts += around
    return torch.tensor(centers, dtype=torch.int64), torch.tensor(contexts, dtype=torch.int64)
    ### END SOLUTION


# %% check="skip_gram_pairs"
the_cat = torch.tensor([0, 1, 2, 3, 0, 4])  # the cat sat on the mat
center_ids, context_ids = skip_gram_pairs([the_cat[:4]], window=1)
expect(
    center_ids,
    torch.tensor([0, 1, 1, 2, 2, 3]),
    hint="Center words, each as often as its window has other words.",
)
expect(
    context_ids,
    torch.tensor([1, 0, 2, 1, 3, 2]),
    hint="the: cat. cat: the, sat. sat: cat, on. on: sat.",
)
center_ids, context_ids = skip_gram_pairs([the_cat], window=2)
expect(
    context_ids[center_ids == 2],
    torch.tensor([0, 1, 3, 0]),
    hint="sat has two words before it and two behind it.",
)
center_ids, context_ids = skip_gram_pairs(
    [torch.tensor([5, 6]), torch.tensor([7]), torch.tensor([8, 8])], window=3
)
expect(
    center_ids,
    torch.tensor([5, 6, 8, 8]),
    hint="A window ends with its sentence: 7 is alone. 8 is beside 8.",
)
expect(
    context_ids,
    torch.tensor([6, 5, 8, 8]),
    hint="Each word is the context of the other one in its sentence.",
)

# %% [markdown]
# ## 8. Learning from text
#
# ★★☆ · about 35 minutes
#
# Your pairs $(a_n, b_n)$ say that word $b_n$ stood near word $a_n$. Good vectors find the pairs of the text probable,
# so we minimize the mean surprise:
#
# $$L = -\frac1B\sum_{n=1}^{B} \log P\{b_n \mid a_n\} \qquad
#   \log P\{b \mid a\} = v_a\cdot c_b - \log\sum_{i=1}^V \exp(v_a\cdot c_i)$$
#
# The second formula is the point of this exercise. Computing the probability first and then its logarithm works until
# the probability is too small for a float. Then it is 0, its logarithm is −∞, and the training is over. A probability
# of $e^{-2000}$ cannot be stored, its logarithm −2000 can. `torch.logsumexp` computes the last term stably and is
# allowed; `cross_entropy` and `log_softmax` are what you are writing.
#
# All $B$ pairs go at once: one matrix of scores `[B, V]`, no loop. Note which table each kind of id belongs to, and
# that the candidates are all $V$ words, not the $B$ words of the batch.
#
# **Predict first.** Two pairs with the center word and the table of section 6: in one pair the context is word 2, in
# the other word 0. What is the loss? (It is the logarithm of a simple number.)

# %% predict="skip_gram_loss"
predict(
    "What is the loss?",
    answer=1.2528,
    atol=0.001,
    because="P is 4/7 and 1/7, so the mean of ln 7/4 and ln 7 is ln 3.5 = 1.2528.",
)


# %% question="skip_gram_loss"
def skip_gram_loss(center_ids, context_ids, center_table, context_table):
    """The mean negative log-probability of the context words, given their center words.

    Args:
        center_ids: [B], int64, rows of center_table.
        context_ids: [B], int64, rows of context_table: context_ids[n] stood near
            center_ids[n].
        center_table: [V, d].
        context_table: [V, d].

    Returns:
        [] (a tensor without dimensions), in the dtype of the tables, differentiable in
        both. It is finite even where a probability is too small for a float. Half
        precision is computed in float32. All pairs at once: no Python loop over B.

    Raises:
        ValueError: center_ids and context_ids are not equally long, or the rows of the
            tables are not (the message names both lengths), or an id is not in its
            table (negative ids neither; the message names the id).
    """
    ### BEGIN SOLUTION
    if center_ids.shape != context_ids.shape:
        raise ValueError(f"{len(center_ids)} center words and {len(context_ids)} context words make no pairs")
    if center_table.shape[-1] != context_table.shape[-1]:
        raise ValueError(f"center vectors have {center_table.shape[-1]} features, contexts {context_table.shape[-1]}")
    for ids, table in ((center_ids, center_table), (context_ids, context_table)):
        outside = ids[(ids < 0) | (ids >= table.shape[0])]
        if len(outside) > 0:
            raise ValueError(f"id {int(outside[0])} is not in a table of {table.shape[0]} words")
    scores = center_table[center_ids] @ context_table.T  # [B, d] @ [d, V]: [B, V]
    if scores.dtype in (torch.float16, torch.bfloat16):
        scores = scores.float()
    of_context = scores.gather(1, context_ids[:, None])[:, 0]  # [B], the score of the word that was there
    return (torch.logsumexp(scores, dim=1) - of_context).mean().to(center_table.dtype)
    ### END SOLUTION


# %% check="skip_gram_loss"
centers = torch.tensor([[9.0, 9.0], [math.log(2), 0.0], [9.0, -9.0]])
expect(
    skip_gram_loss(torch.tensor([1, 1]), torch.tensor([2, 0]), centers, contexts),
    torch.tensor(math.log(3.5)),
    hint="P is 4/7 and 1/7, so the loss is ½ (ln 7/4 + ln 7) = ln 3.5. Twice as much? That is the sum.",
)
expect(
    skip_gram_loss(torch.tensor([0]), torch.tensor([0]), 100 * centers, contexts),
    torch.tensor(2700.0),
    atol=1e-2,
    hint="The scores are 4500, 7200 and −900. inf means that the probability was rounded to 0 before its logarithm.",
)

# %% [markdown]
# Now train. There is no text at hand, so we make one. Eight people differ in three ways: man or woman, royal or not,
# grown-up or child. The little text generator lets each person occur with words that fit: the king with *his* and
# *crown*, the girl with *her* and *school*. It never says that a queen is a royal woman. The vectors have to find that
# out from the company the words keep.

# %% demo="train_skip_gram"
import matplotlib.pyplot as plt

rng = torch.Generator().manual_seed(5)
# person = 4·royal + 2·child + woman
people = ["man", "woman", "boy", "girl", "king", "queen", "prince", "princess"]
company = {
    "woman": (["he", "his", "him", "beard"], ["she", "her", "hers", "gown"]),
    "child": (["job", "coffee", "grey"], ["school", "toy", "young"]),
    "royal": (["market", "bus", "village"], ["crown", "throne", "palace"]),
}
vocabulary = people + [
    word for lists in company.values() for words_of in lists for word in words_of
]
number = {word: i for i, word in enumerate(vocabulary)}


def pick(items):
    return items[int(torch.randint(len(items), (1,), generator=rng))]


text = []
for _ in range(2500):
    person = int(torch.randint(8, (1,), generator=rng))
    bits = {"woman": person % 2, "child": person // 2 % 2, "royal": person // 4}
    sentence = [people[person]] + [
        pick(company[trait][bit]) for trait, bit in bits.items()
    ]
    text.append(torch.tensor([number[word] for word in sentence]))
# 3 places reach through a sentence of four words
center_words, context_words = skip_gram_pairs(text, window=3)

d = 8
center_vectors = (0.3 * torch.randn(len(vocabulary), d, generator=rng)).requires_grad_()
context_vectors = (
    0.3 * torch.randn(len(vocabulary), d, generator=rng)
).requires_grad_()
optimizer = torch.optim.Adam([center_vectors, context_vectors], lr=0.05)
losses = []
for _ in range(250):
    batch = torch.randint(len(center_words), (2000,), generator=rng)
    loss = skip_gram_loss(
        center_words[batch], context_words[batch], center_vectors, context_vectors
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
learned = center_vectors.detach()

# The two directions in which the learned vectors of the people differ most: the
# principal components.
crowd = learned[: len(people)]
middle = crowd.mean(dim=0)
# rows: directions, most important first
_, _, directions = torch.linalg.svd(crowd - middle, full_matrices=False)
flat = (crowd - middle) @ directions[:2].T  # [8, d] @ [d, 2]: [8, 2]

fig, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
axes[0].plot(losses, color="#335c81")
axes[0].axhline(math.log(len(vocabulary)), color="#c1666b", linestyle=":")
axes[0].annotate(
    "guessing: ln V", (130, math.log(len(vocabulary)) - 0.08), color="#c1666b"
)
axes[0].set(title="skip-gram loss", xlabel="step", ylabel="mean −log P")
for person, (word, (x, y)) in enumerate(zip(people, flat.tolist(), strict=True)):
    axes[1].plot(x, y, "o", color="#335c81")
    # a child's name below its dot: parent and child lie close together
    below = -14 if person // 2 % 2 else 5
    axes[1].annotate(word, (x, y), xytext=(5, below), textcoords="offset points")
axes[1].margins(0.15)
axes[1].set(
    title="learned vectors, seen from their widest side",
    xlabel="first component",
    ylabel="second component",
)
plt.show()

for a, b, c in (
    ("man", "king", "woman"),
    ("boy", "prince", "girl"),
    ("king", "prince", "queen"),
):
    answer = vocabulary[analogy(learned, number[a], number[b], number[c])]
    print(f"{a} is to {b} as {c} is to {answer}")
close_to_queen = nearest(
    learned, learned[number["queen"]], k=3, exclude=(number["queen"],)
)
print("nearest to queen:", [vocabulary[i] for i in close_to_queen])

# %% [markdown]
# Look at the loss curve's lower end: it does not approach 0. **Predict:** what is the least that any model could reach
# here, and why? (Given *king*, how many different neighbours are equally right?)

# %% predict="least_loss"
predict(
    "What is the least that any model could reach?",
    "0",
    "the entropy of the true neighbours",
    "the logarithm of the vocabulary's size",
    answer="the entropy of the true neighbours",
    because="Several neighbours are equally right, and no model can know which one "
    "comes. It can only give each its share.",
)

# %% [markdown]
# ## 9. Tokens: learning them
#
# ★★★ · about 45 minutes
#
# A table with a row for every word has no row for a word it has not seen, and spends two unrelated rows on *eat* and
# *eating*. A table with a row for every letter has neither problem, and makes sequences very long. Tokens lie between:
# *eating* = *eat* + *ing*. **Byte-pair encoding** (BPE) finds such pieces by counting, and nothing else:
#
# 1. Cut every word into its characters.
# 2. Count all pairs of neighbouring tokens. A word that occurs 6 times counts 6 times.
# 3. Join the most frequent pair everywhere it occurs, and write it down. This pair is now a token.
# 4. Repeat from 2.
#
# The list of joined pairs, in order, is the whole result. By hand, for eat × 6, eating × 3, going × 4:
#
# | step | counts at the top | joined | words now |
# | --- | --- | --- | --- |
# | 1 | a·t 9, e·a 9, i·n 7, n·g 7 | **a·t** (a tie) | e·at, e·at·i·n·g, g·o·i·n·g |
# | 2 | e·at 9, i·n 7, n·g 7 | **e·at** | eat, eat·i·n·g, g·o·i·n·g |
# | 3 | i·n 7, n·g 7, g·o 4, o·i 4 | **i·n** (a tie) | eat, eat·in·g, g·o·in·g |
# | 4 | in·g 7, g·o 4, o·in 4 | **in·g** | eat, eat·ing, g·o·ing |
#
# The rules have to be exact, or two right programs give different tokens:
#
# * **Ties** go to the smaller pair in the order of Python's tuples: `("a", "t") < ("e", "a")`.
# * **Every position counts**: *aaa* has the pair a·a twice, although only one of them can be joined. Joining goes from
#   left to right: *aaa* becomes aa·a.
# * A pair that occurs only once is joined, too. When no pair is left the list ends, however many were asked for.
# * There is no end-of-word mark, and pairs never reach across words.
#
# Two things people get wrong: the counts have to be made anew after every join (the new token has new neighbours), and
# tokens have to be compared as tokens. Gluing a word's tokens together with spaces and replacing text in that string
# goes wrong as soon as one token ends like another: `"xa b"` contains `"a b"`.
#
# **Predict first.** Which pair would step 5 join?

# %% predict="train_bpe"
predict(
    "Which pair would step 5 join?",
    "g·o",
    "o·ing",
    "eat·ing",
    answer="g·o",
    because="g·o and o·ing both occur 4 times, and the tie goes to the smaller pair.",
)


# %% question="train_bpe"
def train_bpe(words, num_merges):
    """Learn which pairs of tokens to join, most frequent first.

    Args:
        words: dict from word (str) to how often it occurs (int, at least 1). Words are
            sequences of characters.
        num_merges: how many pairs to join at most, 0 or more.

    Returns:
        A list of (left, right) tuples of str, in the order in which they were joined;
        shorter than num_merges where no pair was left. Among equally frequent pairs the
        smallest tuple comes first.

    Raises:
        ValueError: num_merges is negative. The message names it.

    Source: the lecture, "Tokenization"; Sennrich et al., 2016.
    """
    ### BEGIN SOLUTION
    if num_merges < 0:
        raise ValueError(f"num_merges = {num_merges} is negative")
    tokens_of = {word: list(word) for word in words}
    merges = []
    while len(merges) < num_merges:
        counts = Counter()
        for word, tokens in tokens_of.items():
            for pair in pairwise(tokens):  # neighbours; every position counts
                counts[pair] += words[word]
        if not counts:
            break  # every word is one token
        most = max(counts.values())
        best = min(pair for pair, count in counts.items() if count == most)
        merges.append(best)
        for word, tokens in tokens_of.items():
            joined = []
            for token in tokens:  # left to right
                if joined and (joined[-1], token) == best:
                    joined[-1] += token
                else:
                    joined.append(token)
            tokens_of[word] = joined
    return merges
    ### END SOLUTION


# %% check="train_bpe"
counted = {"eat": 6, "eating": 3, "going": 4}
expect(
    train_bpe(counted, num_merges=4),
    [("a", "t"), ("e", "at"), ("i", "n"), ("in", "g")],
    hint="Follow the table above. Step 1 and step 3 are ties; step 2 already uses the new token.",
)
expect(
    train_bpe({"on": 1}, num_merges=7),
    [("o", "n")],
    hint="One pair to join, then nothing is left: stop there.",
)
expect(
    counted,
    {"eat": 6, "eating": 3, "going": 4},
    hint="The caller's counts must stay as they were.",
)

# %% [markdown]
# ## 10. Tokens: using them
#
# ★★☆ · about 20 minutes
#
# A new word is cut by the same list. Start from its characters. Among the pairs of neighbours that are in the list,
# join the one that was **learned first** (the lowest rank), everywhere in the word, left to right. Repeat until no pair
# of neighbours is in the list.
#
# It is not a search for the longest piece from the left. The order of learning decides, so that the word comes out as
# it would have in training. Characters that never occurred simply stay single tokens; nothing may get lost. Whatever
# the merges, gluing the tokens together gives the word back.
#
# **Predict first.** With the four merges above: *eating*, *eats*, *singing*, *tea*?

# %% predict="encode_bpe"
predict(
    "How many tokens does *singing* become?",
    answer=3,
    because="s·ing·ing. The others are eat·ing, eat·s and t·e·a: no merge fits *tea*.",
)


# %% question="encode_bpe"
def encode_bpe(word, merges):
    """Cut a word into learned tokens.

    Args:
        word: str; may be empty and may have characters that no merge knows.
        merges: list of different (left, right) tuples, lowest rank first; any list, not
            only one that train_bpe makes.

    Returns:
        A list of str that glued together give the word; [] for the empty word. As long
        as any two neighbours are a pair of the list, the pair of the lowest rank is
        joined, everywhere or one place at a time, from left to right.

    Source: the lecture, "Tokenization"; Sennrich et al., 2016.
    """
    ### BEGIN SOLUTION
    rank = {pair: place for place, pair in enumerate(merges)}
    tokens = list(word)
    while True:
        known = [pair for pair in pairwise(tokens) if pair in rank]
        if not known:
            return tokens
        best = min(known, key=rank.get)
        joined = []
        for token in tokens:
            if joined and (joined[-1], token) == best:
                joined[-1] += token
            else:
                joined.append(token)
        tokens = joined
    ### END SOLUTION


# %% check="encode_bpe"
merges = [("a", "t"), ("e", "at"), ("i", "n"), ("in", "g")]
expect(
    encode_bpe("eating", merges),
    ["eat", "ing"],
    hint="a·t, then e·at, then i·n, then in·g.",
)
expect(
    encode_bpe("singing", merges),
    ["s", "ing", "ing"],
    hint="A pair is joined wherever it occurs; s stays alone.",
)
expect(
    encode_bpe("tea", merges),
    ["t", "e", "a"],
    hint="(t, e) and (e, a) are no pairs of the list: the order matters.",
)

# %% demo="merges"
import matplotlib.pyplot as plt

corpus = {
    "eat": 9, "eats": 4, "eating": 7, "eaten": 3, "beat": 2, "beating": 2,
    "sing": 5, "singing": 4, "singer": 3,
    "ring": 3, "ringing": 2, "going": 6, "goes": 3, "teach": 4, "teaching": 4,
    "teacher": 5, "reading": 6, "reader": 4,
}  # fmt: skip
all_merges = train_bpe(corpus, num_merges=40)
print("first merges:", " ".join(f"{left}·{right}" for left, right in all_merges[:12]))
for word in ("eating", "teaching", "cheating", "linger"):
    print(f"{word:>9}:", "·".join(encode_bpe(word, all_merges[:20])))

lengths, sizes = [], []
for count in range(len(all_merges) + 1):
    learned_so_far = all_merges[:count]
    lengths.append(
        sum(n * len(encode_bpe(word, learned_so_far)) for word, n in corpus.items())
    )
    sizes.append(len(set("".join(corpus))) + count)
fig, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
axis.plot(sizes, lengths, "o-", color="#335c81", markersize=3)
axis.set(
    title="a larger vocabulary makes shorter texts",
    xlabel="tokens in the vocabulary",
    ylabel="tokens in the text",
)
axis.set_ylim(0, None)
plt.show()

# %% [markdown]
# ## 11. The embedding table
#
# ★☆☆ · about 10 minutes
#
# The last step of the road: tokens have ids, and an id picks a row.
#
# $$\texttt{embed}(T, \texttt{ids})_{\dots,n,:} = T_{\texttt{ids}_{\dots,n},:}
#   \qquad\qquad T\;[V, D] \quad \texttt{ids}\;[\dots, N] \quad\longrightarrow\quad [\dots, N, D]$$
#
# Compare with section 1: $\mathrm{onehot}(\texttt{ids})\,T$ is the same thing. An embedding is a linear layer on
# one-hot vectors, and that is how gradients reach the table: each occurrence of a token adds its gradient to the
# token's row. As a program, though, the product would be a waste: a matrix `[N, V]` full of zeros, to read $N$ rows.
# Pick the rows.
#
# Two things people get wrong: the row is chosen by the token's *id*, not by its place in the sentence; and −1, a common
# mark for "no token", must not silently become the last word of the vocabulary.
#
# **Predict first.** A sentence uses token 2 three times. How many rows of the table get a gradient, and how large is
# the one of row 2 if each output element has gradient 1?

# %% predict="embed"
predict(
    "How large is each number of the gradient of row 2?",
    answer=3,
    because="Three outputs are copies of row 2, and each adds its gradient of 1. Rows "
    "that the sentence does not use get 0.",
)


# %% question="embed"
def embed(table, ids):
    """Look up the vectors of a sequence of tokens.

    Args:
        table: [V, D], one row a token.
        ids: [..., N], int64, in 0 … V − 1.

    Returns:
        [..., N, D] in the dtype of the table, differentiable in the table. No matrix
        with V columns is built, and there is no Python loop over the ids.

    Raises:
        ValueError: an id is negative or not below V. The message names the id and V.
    """
    ### BEGIN SOLUTION
    outside = ids[(ids < 0) | (ids >= table.shape[0])]
    if len(outside) > 0:
        raise ValueError(f"id {int(outside[0])} is not in a table of {table.shape[0]} tokens")
    return table[ids]  # [..., N, D]
    ### END SOLUTION


# %% check="embed"
rows = torch.tensor([[0.5, -1.0], [2.0, 3.0], [7.0, 8.0]])
expect(
    embed(rows, torch.tensor([[2, 0, 2, 2]])),
    torch.tensor([[[7.0, 8.0], [0.5, -1.0], [7.0, 8.0], [7.0, 8.0]]]),
    hint="One row of the table for each id, in the order of the ids, repeated where an id repeats.",
)

# %% [markdown]
# The whole road in one cell: a sentence, its tokens, their ids, their vectors. From here on a sentence is a matrix
# `[N, D]`, and assignment 2 starts with one.

# %% demo="the_whole_road"
import matplotlib.pyplot as plt

sentence = "eating singing reading teacher eats"
pieces = [
    token for word in sentence.split() for token in encode_bpe(word, all_merges[:8])
]
token_id = {token: i for i, token in enumerate(dict.fromkeys(pieces))}
ids = torch.tensor([token_id[token] for token in pieces])
token_table = torch.randn(len(token_id), 12, generator=torch.Generator().manual_seed(2))
x = embed(token_table, ids)
print(
    f"{len(pieces)} tokens: {'·'.join(pieces)}\nids {ids.tolist()}\nx {list(x.shape)}"
)
print(
    "equal to one_hot(ids) @ table:",
    torch.allclose(x, one_hot(ids, len(token_id)) @ token_table),
)
fig, axis = plt.subplots(figsize=(8, 4.2), layout="constrained")
image = axis.imshow(x, cmap="RdBu_r", vmin=-2.5, vmax=2.5, aspect="auto")
axis.set(
    title="the sentence as a matrix: equal tokens, equal rows",
    xlabel="feature",
    ylabel="token",
)
axis.set_yticks(range(len(pieces)), pieces)
fig.colorbar(image, ax=axis, label="value")
plt.show()

# %% [markdown]
# ## 12. Find the error in the notes
#
# ★★☆ · about 30 minutes
#
# The notes introduce the cosine similarity, then drop the lengths "for simplicity" and keep the dot product. Their
# argument for what follows is an equivalence: the dot product $v_a\cdot v_b$ is large **if and only if** $a$ and $b$
# are similar. For vectors of one common length that is true, since then the dot product is the cosine times a constant.
# For word vectors as they come out of training it is false, in both directions, and you will prove it with numbers.
#
# Given a table and one of its words, with vector $v \ne 0$, find two vectors that somebody might add to the table as
# new words:
#
# * **loud**: its dot product with $v$ is larger than that of *every* row of the table, $v$ itself included; yet it is
#   nearly perpendicular to $v$: $S_C(\text{loud}, v) \le 0.1$. So a large dot product does not make it similar.
# * **quiet**: it is as similar to $v$ as can be, $S_C(\text{quiet}, v) \ge 0.999$; yet its dot product with $v$, though
#   positive, is smaller than *every positive* dot product of a row of the table with $v$. So being similar
#   does not make the dot product large.
#
# Any vectors with these properties are right; the tests check the properties, on tables you have not seen. A way to
# start: what does multiplying a vector by a number do to its cosine, and what to its dot product? For *loud* you also
# need a direction at right angles to $v$: take any vector that is not parallel to $v$ and remove its part along $v$.
# (Make sure that it isn't parallel, whatever $v$ is.)


# %% question="break_the_equivalence"
def break_the_equivalence(table, word):
    """Two vectors that show that a large dot product and a small angle are not the same
    thing.

    Args:
        table: [V, d], float64, with d at least 2.
        word: id of a row v of the table that is not zero.

    Returns:
        (loud, quiet), both [d] in the dtype of the table, where loud · v > table[i] · v
        for every i, and the cosine of loud and v is at most 0.1; 0 < quiet · v < every
        positive table[i] · v, and the cosine of quiet and v is at least 0.999.

    Raises:
        ValueError: d is 1 (no two directions are nearly perpendicular), or the word's
            vector is zero.
    """
    ### BEGIN SOLUTION
    v = table[word]  # [d]
    if v.shape[0] < 2 or not v.any():
        raise ValueError(f"a vector of {v.shape[0]} features {v.tolist()} has no neighbours at right angles")
    dots = table @ v  # [V], v · v among them
    along = v / v.norm()
    across = torch.zeros_like(v)
    across[v.abs().argmin()] = 1.0  # the axis that v leans on least is not parallel to v
    across = across - (across @ along) * along
    across = across / across.norm()
    # 0.05 along and 1 across: the cosine is 0.05 whatever the length, so the length is free to make the product large.
    loud = 2 * dots.max() / (0.05 * v.norm()) * (0.05 * along + across)
    quiet = v * dots[dots > 0].min() / (2 * (v @ v))  # half the smallest positive dot product
    return loud, quiet
    ### END SOLUTION


# %% check="break_the_equivalence"
rows = torch.tensor(
    [[3.0, 4.0], [30.0, 40.0], [4.0, -2.5], [-5.0, 0.0]], dtype=torch.float64
)
loud, quiet = break_the_equivalence(rows, word=0)
# 25, 250, 2 and −15: already here a word is "more similar" to another word than to
# itself
products = rows @ rows[0]
expect(
    bool(loud @ rows[0] > products.max()),
    True,
    hint="Is loud long enough? Row 1 has the dot product 250.",
)
expect(
    bool(loud @ rows[0] <= 0.1 * loud.norm() * rows[0].norm()),
    True,
    hint="Making a vector longer never changes its cosine. Change the direction first, then the length.",
)
expect(
    bool(0 < quiet @ rows[0] < 2),
    True,
    hint="The smallest positive dot product of the table is 2, with row 2.",
)
expect(
    bool(quiet @ rows[0] >= 0.999 * quiet.norm() * rows[0].norm()),
    True,
    hint="Which vectors have cosine 1 with v?",
)

# %% [markdown] written="why_not_cosine" points=5
# ## 13. In your own words
#
# Suppose somebody repairs the notes the other way round: skip-gram with the *cosine* as its score,
# $P\{b\mid a\}\propto\exp(S_C(v_a, c_b))$. How large can the probability of one word be at most, in a vocabulary of
# $V = 10\,000$ words? Say what this means for training, and what the length of a vector is good for in skip-gram.
# (Four or five sentences and one number.)
#
# ### BEGIN SOLUTION
# Cosines lie between −1 and 1, so the best case for one word is a score of 1 for it and −1 for all others: $P =
# e^{1}/(e^{1} + 9999\,e^{-1}) \approx 0.00074$. However long it trains, the model can never be more than 0.07 % sure
# of a word, so it cannot fit a text in which some pairs are nearly certain; the loss stays above $-\ln 0.00074 \approx
# 7.2$, hardly below the $\ln 10\,000 \approx 9.2$ of guessing. The dot product is the cosine times both lengths, and
# the lengths make the range of the scores as wide as needed: a long center vector makes a sharp distribution (a word
# with few, certain neighbours), a short one makes a flat distribution, and a long context vector can mark a word that
# is frequent everywhere. (A fixed factor in front of the cosine, a temperature, would be another way out.)
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 2 points: the best case is a cosine of 1 for one word and −1 for all others; the probability is about 0.0007.
#   (1 point for the right form with a slip in the arithmetic.)
# - 1 point: so the model can never be sure of a word, and the loss stays far above that of a fitted model.
# - 2 points: the length of a vector sets how wide the scores spread: sharp or flat distributions, frequent words.
#   (1 point for "the length carries frequency" alone.)
# ### END MARK SCHEME
