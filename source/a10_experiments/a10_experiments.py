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
# # Assignment 10: asking a model questions
#
# A language model that runs is where the work begins. Is RMSNorm better than layer norm? Do positions matter? Is it
# worth to make the model twice as large? Every paper answers such questions with a table, and many of the tables do not
# say what they seem to say: one model was trained for longer, or with a better rate, or once.
#
# Here you build a small laboratory: one decoder with switches, a count of what a step costs, a training run that is the
# same whenever it is run, and a comparison that changes **one thing**. Then you use it.
#
# ![Two setups that differ in one entry, the same budget, seeds and text, and losses that are compared seed by seed](figures/fair.svg)
#
# | | function | what it gives | difficulty, estimated time |
# |---|---|---|---|
# | 1 | `decoder` | one model with switches | ★★★, 45 min |
# | 2 | `training_flops` | what a step costs, counted | ★★☆, 20 min |
# | 3 | `one_change` | a setup that differs in one thing | ★☆☆, 15 min |
# | 4 | `smoothed_loss` | the loss with label smoothing | ★★☆, 20 min |
# | 5 | `accumulated_gradients` | a big batch in small parts | ★★☆, 25 min |
# | 6 | `training_curve` | a run: loss against FLOPs | ★★★, 40 min |
# | 7 | `compare` | a fair table | ★★☆, 20 min |
# | 8 | `paired_verdict` | what the table says | ★★☆, 20 min |
# | 9 | `power_law_forecast` | the loss of a model that nobody has trained | ★★☆, 20 min |
# | 10 | `lora_adapters` | small matrices beside frozen ones | ★☆☆, 15 min |
# | 11 | `merge_lora` | and their sum | ★★☆, 15 min |
# | 12 | `tuning_costs` | what three ways to fine-tune cost | ★★☆, 20 min |
# | 13 | `distinct_ngrams` | how much a text repeats itself | ★☆☆, 10 min |
# | 14 | `accuracy_by_length` | what if T = 1000? | ★☆☆, 15 min |
# | 15 | `six_n_counterexample` | an error in a rule that everybody quotes | ★★☆, 15 min |
# | 16 | a written answer | an unfair comparison | 15 min |
#
# **Conventions of this course**
#
# - Every function is pure: weights come in as arguments (`params`, nested dicts and lists), inputs are never changed.
# - A weight matrix is `[in, out]` and multiplies from the right, `x @ w`. (`nn.Linear` stores `[out, in]`.)
# - `B` batch, `N` tokens, `D` model width, `V` vocabulary, `F` width inside an MLP, `H` query heads, `d = D / H` width of
#   a head. Token ids are an `int64` tensor.
# - Arguments that cannot be right raise `ValueError` with the sizes in the message.
#
# **A setup** is a dict: all that decides an experiment but the seed and the budget.
#
# | entry | what it is | | entry | what it is |
# |---|---|---|---|---|
# | `vocab_size`, `d_model`, `num_layers` | $V$, $D$, blocks | | `positions` | `"none"`, `"learned"`, `"rotary"` |
# | `num_heads`, `num_kv_heads` | $H$, and heads of keys and values | | `norm` | `"pre"`, `"post"`, `"rms"` |
# | `d_ff` | $F$ | | `activation` | `"relu"`, `"gelu"`, `"swiglu"` |
# | `context_length` | $N$ in training | | `tied` | `True`: the head is the embedding |
# | `batch`, `parts` | windows in a step, and in how many parts | | `dropout`, `smoothing`, `rate` | 0 to 1; the peak of the rate |

# %% given="imports"
import math
import os
from pathlib import Path

import torch

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% [markdown]
# ## From the earlier assignments
#
# Attention with grouped heads and rotary positions, both norms, AdamW: you have written all of it. What is new here is
# about *repeating* a run. `training_batch` and `dropout_at` throw their dice from a seed and the number of the step, so
# that a step is the same whoever makes it and whatever came before.


# %% given="library" module="library"
CHOICES = {
    "positions": ("none", "learned", "rotary"),
    "norm": ("pre", "post", "rms"),
    "activation": ("relu", "gelu", "swiglu"),
}
"""The switches of a setup, and what each can be."""

SMALL = {
    "vocab_size": 3, "d_model": 2, "num_layers": 1, "num_heads": 1,
    "num_kv_heads": 1, "d_ff": 2, "context_length": 4, "positions": "learned",
    "norm": "pre", "activation": "relu", "tied": True, "dropout": 0.0,
    "smoothing": 0.0, "rate": 0.01, "batch": 2, "parts": 1,
}  # fmt: skip
"""A setup that can be worked out by hand: that of the visible checks."""


def layer_norm(x, gain, eps=1e-5):
    """Each token to mean 0 and variance 1 over its features, times a gain [D]
    (assignment 5).
    """
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(centred.pow(2).mean(dim=-1, keepdim=True) + eps) * gain


def rms_norm(x, gain, eps=1e-5):
    """Each token divided by the root of its mean square, times a gain [D]
    (assignment 5).
    """
    return x / torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps) * gain


def gelu(x):
    """The exact GELU, x times the normal distribution function of x."""
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def silu(x):
    """x times its sigmoid: the activation in a SwiGLU."""
    return x * torch.sigmoid(x)


def split_heads(x, num_heads):
    """[B, N, H*d] -> [B, H, N, d] (assignment 4)."""
    return x.unflatten(2, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    """[B, H, N, d] -> [B, N, H*d] (assignment 4)."""
    return x.transpose(1, 2).flatten(2)


def rotary_positions(x, theta=10_000.0):
    """x [B, H, N, d] with features (0, 1), (2, 3), … turned by their position
    (assignment 5).
    """
    n, d = x.shape[-2:]
    rates = theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.arange(n, dtype=torch.float64)[:, None] * rates  # [N, d / 2]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = [even * cos - odd * sin, even * sin + odd * cos]
    return torch.stack(turned, dim=-1).flatten(-2)


def causal_attention(q, k, v):
    """q [B, H, N, d], k and v [B, H_kv, N, d] -> [B, H, N, d]: query head h reads the
    keys of head h // (H / H_kv) (assignment 4).
    """
    shared = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ v


def list_tensors(params):
    """All tensors of nested dicts and lists, in a fixed order (assignment 6)."""
    if isinstance(params, torch.Tensor):
        return [params]
    children = params.values() if isinstance(params, dict) else params
    return [tensor for child in children for tensor in list_tensors(child)]


def with_tensors(params, tensors):
    """The nesting of params with these tensors, in the order of list_tensors
    (assignment 9).
    """
    left = iter(tensors)

    def rebuild(node):
        if isinstance(node, torch.Tensor):
            return next(left)
        if isinstance(node, dict):
            return {name: rebuild(child) for name, child in node.items()}
        return [rebuild(child) for child in node]

    return rebuild(params)


def random_params(setup, seed=0):
    """Parameters as decoder wants them: normal, with a deviation of 0.1 in the tables
    and of 1/√n in a matrix [n, m]; what is added to the residual stream is smaller by
    the root of the number of additions.
    """
    dice = torch.Generator().manual_seed(seed)
    d, f, v = setup["d_model"], setup["d_ff"], setup["vocab_size"]
    d_kv = d // setup["num_heads"] * setup["num_kv_heads"]
    small = 1 / math.sqrt(2 * setup["num_layers"])

    def table(rows):
        return 0.1 * torch.randn(rows, d, generator=dice)

    def matrix(n, m, factor=1.0):
        return factor / math.sqrt(n) * torch.randn(n, m, generator=dice)

    def mlp():
        if setup["activation"] == "swiglu":
            return {"w1": matrix(d, f), "w2": matrix(d, f), "w3": matrix(f, d, small)}
        return {"w1": matrix(d, f), "w2": matrix(f, d, small)}

    def block():
        return {
            "norm1": torch.ones(d),
            "w_q": matrix(d, d), "w_k": matrix(d, d_kv), "w_v": matrix(d, d_kv),
            "w_o": matrix(d, d, small),
            "norm2": torch.ones(d),
            **mlp(),
        }  # fmt: skip

    params = {"embed": table(v)}
    if setup["positions"] == "learned":
        params["positions"] = table(setup["context_length"])
    params["blocks"] = [block() for _ in range(setup["num_layers"])]
    if setup["norm"] != "post":
        params["norm_f"] = torch.ones(d)
    if not setup["tied"]:
        params["unembed"] = matrix(d, v)
    return params


def training_batch(ids, setup, seed, step):
    """Inputs and targets [batch, context_length] of a step: windows of the text ids
    [N]. The same seed and step give the same windows, whatever the model is.
    """
    length = setup["context_length"]
    dice = torch.Generator().manual_seed(1_000_003 * seed + step)
    starts = torch.randint(len(ids) - length, (setup["batch"],), generator=dice)
    windows = ids[starts[:, None] + torch.arange(length + 1)]
    return windows[:, :-1], windows[:, 1:]


def dropout_at(rate, seed, step):
    """The function drop(x) of a step of training: each number is 0 with this
    probability, and the others grow by 1 / (1 - rate). With a rate of 0: None.
    """
    if rate == 0:
        return None
    dice = torch.Generator().manual_seed(1_000_003 * seed + step)

    def drop(x):
        kept = torch.rand(x.shape, generator=dice) >= rate
        return x * kept / (1 - rate)

    return drop


def rate_at(step, steps, peak):
    """The rate of a step: up to the peak within a tenth of the steps, then half a
    cosine down to a tenth of the peak (assignment 9).
    """
    warmup = max(1, steps // 10)
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return peak * (0.55 + 0.45 * math.cos(math.pi * progress))


def adamw_step(tensors, gradients, state, rate, betas=(0.9, 0.95), eps=1e-8, decay=0.1):
    """New tensors and a new state after a step of AdamW; state is None at first
    (assignment 9).
    """
    step = 1 if state is None else state["step"] + 1
    m = [torch.zeros_like(t) for t in tensors] if state is None else state["m"]
    v = [torch.zeros_like(t) for t in tensors] if state is None else state["v"]
    fast, slow = betas
    m = [fast * a + (1 - fast) * g for a, g in zip(m, gradients, strict=True)]
    v = [slow * a + (1 - slow) * g**2 for a, g in zip(v, gradients, strict=True)]
    stepped = []
    for t, mean, square in zip(tensors, m, v, strict=True):
        root = torch.sqrt(square / (1 - slow**step)) + eps
        shrunk = t * (1 - rate * decay) if t.dim() >= 2 else t
        stepped.append(shrunk - rate * mean / (1 - fast**step) / root)
    return stepped, {"step": step, "m": m, "v": v}


def held_out_loss(model, ids, length):
    """Mean cross-entropy in nats a token of model(inputs [B, N]) -> logits [B, N, V] on
    the text ids [N], in windows of at most this length: each token but the first is a
    target once.
    """
    total, pieces = 0.0, []
    whole = (len(ids) - 1) // length * length
    if whole:
        targets = ids[1 : whole + 1].view(-1, length)
        pieces.append((ids[:whole].view(-1, length), targets))
    if whole < len(ids) - 1:
        pieces.append((ids[whole:-1][None], ids[whole + 1 :][None]))
    with torch.no_grad():
        for inputs, targets in pieces:
            log_p = torch.log_softmax(model(inputs), dim=-1)
            total -= log_p.gather(-1, targets[..., None]).sum().item()
    return total / (len(ids) - 1)


class Translator(torch.nn.Module):
    """The encoder and decoder of assignment 2, with a GRU each. Without attention the
    decoder reads one context, the encoder's last state, at every step.
    """

    def __init__(self, words, width, attention):
        super().__init__()
        self.attention = attention
        self.read = torch.nn.Embedding(words, width)
        self.written = torch.nn.Embedding(words, width)
        self.encoder = torch.nn.GRU(width, width, batch_first=True)
        self.decoder = torch.nn.GRUCell(2 * width, width)
        self.keys = torch.nn.Linear(width, width, bias=False)
        self.head = torch.nn.Linear(2 * width, words)

    def forward(self, source, target):
        """Logits [B, T, words] under teacher forcing, and weights [B, T, T_source]."""
        states, last = self.encoder(self.read(source))
        state = context = last[0]
        keys = self.keys(states)
        before = torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], dim=1)
        logits, weights = [], []
        for word in self.written(before).unbind(dim=1):
            scores = (keys @ state[:, :, None])[:, :, 0] / math.sqrt(state.shape[1])
            weights.append(torch.softmax(scores, dim=-1))
            if self.attention:
                context = (weights[-1][:, None] @ states)[:, 0]
            state = self.decoder(torch.cat([word, context], dim=-1), state)
            logits.append(self.head(torch.cat([state, context], dim=-1)))
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1)


def toy_sentences(number, length, words, dice):
    """Sentences of a toy language and their translations: the same words from back to
    front. Word 0 is what the decoder reads before the first.
    """
    source = torch.randint(1, words, (number, length), generator=dice)
    return source, source.flip(1)


# %% [markdown]
# ## 1. One model with switches
#
# ★★★ · about 45 minutes
#
# An experiment needs a model in which one thing can be changed and *nothing else moves*. Two models in two files drift
# apart; so this is one function, and the setup says how it goes.
#
# $$\begin{aligned}
# X &= \mathrm{drop}(E[\text{ids}]\ [{} + P]) &&\text{positions only if they are learned}\\
# X &\leftarrow X + \mathrm{drop}(f(\mathrm{norm}(X))) &&\text{pre, and rms with another norm}\\
# X &\leftarrow \mathrm{norm}(X + \mathrm{drop}(f(X))) &&\text{post}\\
# \text{logits} &= \mathrm{norm}_f(X)\,E^\top &&\text{without the norm if post; } W_U \text{ in place of } E^\top \text{ if not tied}
# \end{aligned}$$
#
# In each block $f$ is first the attention, with the gain `norm1`, then the MLP, with `norm2`. The MLP is
# $\mathrm{act}(X W_1)\,W_2$, and with SwiGLU $(\mathrm{silu}(X W_1) * X W_2)\,W_3$. Rotary positions turn queries and
# keys. There are no biases.
#
# Dropout is a function that comes in, `drop`. In training it throws dice; in a measurement it is `None`, and nothing is
# dropped. So a model cannot be measured with dropout by mistake, only by a line that one can see.
#
# A misspelt setting is the worst error of all: the run goes through, and the table has a row that tests nothing. So
# anything that is not a choice is refused.
#
# **Predict first.** In a model without positions, all tokens before the last one change places. What happens to the
# logits of the last token, in a model with one block?

# %% predict="decoder"
predict(
    "Do the logits of the last token change?",
    "yes",
    "no",
    answer="no",
    because="The last token attends to a set: equal keys and values in another order "
    "give the same sum. With two blocks they do change: what the first block writes "
    "into a token depends on which tokens stand before it, and so the mask gives "
    "positions away.",
)


# %% question="decoder"
def decoder(ids, params, setup, drop=None):
    """Logits of the next token at every position.

    Args:
        ids: int64 [B, N].
        params: dict with embed [V, D], positions [context_length, D] if they are
            learned, blocks (a list of dicts with norm1 [D], w_q [D, D], w_k, w_v
            [D, H_kv*d], w_o [D, D], norm2 [D], w1 [D, F], w2 [F, D]; with SwiGLU w1, w2
            [D, F], w3 [F, D]), norm_f [D] unless norm is "post", unembed [D, V] unless
            tied.
        setup: num_heads, num_kv_heads, positions, norm, activation and tied are used;
            "gelu" is the exact one, given above.
        drop: None, or a function of a tensor: applied to the sum of embeddings and
            positions, and to what each sublayer adds, in this order.

    Returns:
        logits [B, N, V].

    Raises:
        ValueError: positions, norm or activation is none of its CHOICES (the word in
            the message); or positions are learned, and N is above their number (both in
            the message).
    """
    ### BEGIN SOLUTION
    for name, choices in CHOICES.items():
        if setup[name] not in choices:
            raise ValueError(f"{name} is {setup[name]!r}, which is none of {choices}")
    n = ids.shape[1]
    if setup["positions"] == "learned" and n > len(params["positions"]):
        raise ValueError(f"{n} tokens, and positions for {len(params['positions'])}")
    norm = rms_norm if setup["norm"] == "rms" else layer_norm
    drop = drop if drop is not None else lambda x: x

    def attention(x, p):
        q = split_heads(x @ p["w_q"], setup["num_heads"])  # [B, H, N, d]
        k = split_heads(x @ p["w_k"], setup["num_kv_heads"])  # [B, H_kv, N, d]
        v = split_heads(x @ p["w_v"], setup["num_kv_heads"])
        if setup["positions"] == "rotary":
            q, k = rotary_positions(q), rotary_positions(k)
        return merge_heads(causal_attention(q, k, v)) @ p["w_o"]

    def mlp(x, p):
        if setup["activation"] == "swiglu":
            return (silu(x @ p["w1"]) * (x @ p["w2"])) @ p["w3"]
        act = torch.relu if setup["activation"] == "relu" else gelu
        return act(x @ p["w1"]) @ p["w2"]

    x = params["embed"][ids]  # [B, N, D]
    if setup["positions"] == "learned":
        x = x + params["positions"][:n]
    x = drop(x)
    for p in params["blocks"]:
        for sublayer, gain in ((attention, p["norm1"]), (mlp, p["norm2"])):
            if setup["norm"] == "post":
                x = norm(x + drop(sublayer(x, p)), gain)
            else:
                x = x + drop(sublayer(norm(x, gain), p))
    if setup["norm"] != "post":
        x = norm(x, params["norm_f"])
    return x @ (params["embed"].T if setup["tied"] else params["unembed"])  # [B, N, V]
    ### END SOLUTION


# %% check="decoder"
# Two features, one block that adds nothing: with zeros in w_o and w2.
plain = with_tensors(
    random_params(SMALL),
    [torch.zeros_like(t) for t in list_tensors(random_params(SMALL))],
)
plain |= {
    "embed": torch.tensor([[3.0, 1.0], [1.0, 3.0], [0.0, 2.0]]),
    "norm_f": torch.ones(2),
}
ids = torch.tensor([[0, 1]])
expect(
    decoder(ids, plain, SMALL),
    torch.tensor([[[2.0, -2.0, -2.0], [-2.0, 2.0, 2.0]]]),
    atol=1e-4,
    hint="(3, 1) is normalized to (1, -1), and the head is the embedding. The blocks add nothing here.",
)
expect(
    decoder(ids, plain, SMALL | {"norm": "rms"}),
    torch.tensor([[[10.0, 6.0, 2.0], [6.0, 10.0, 6.0]]]) / 5**0.5,
    atol=1e-4,
    hint="An RMS norm does not subtract the mean: (3, 1) is divided by the root of 5.",
)
moved = plain | {
    "positions": torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
}
expect(
    decoder(ids, moved, SMALL)[0, 1],
    torch.tensor([2.0, -2.0, -2.0]),
    atol=1e-4,
    hint="Position 1 adds (4, 0) to (1, 3).",
)
expect(
    decoder(ids, moved, SMALL | {"positions": "none"}),
    decoder(ids, plain, SMALL),
    hint='With "none" the table of positions is not read.',
)
asked = []
decoder(ids, plain, SMALL, drop=lambda x: asked.append(list(x.shape)) or x)
expect(
    asked,
    [[1, 2, 2]] * 3,
    hint="drop sees the embeddings, what the attention adds, and what the MLP adds.",
)
for name, word in (("norm", "layer"), ("positions", "sin"), ("activation", "silu")):
    try:
        decoder(ids, plain, SMALL | {name: word})
        refused = False
    except ValueError:
        refused = True
    expect(refused, True, hint=f"{name} = {word} is no choice: ValueError.")

# %% [markdown]
# ## 2. What a step costs
#
# ★★☆ · about 20 minutes
#
# Seconds depend on the machine and on who else uses it. Steps are worse: a step of a model that is twice as large is
# twice as dear, and *of course* it learns more from it. What can be compared is the arithmetic, in FLOPs.
#
# Count matrix products only, a multiply-add as 2 (assignment 4). A product with a matrix of weights $[a, b]$ costs
# $2ab$ a token. Scores and weighted sums cost $2 \cdot 2ND$ a token and layer: the masked half is computed as well.
# The head costs $2VD$ a token, whether or not it is the embedding. Looking rows up, norms, and additions are free.
#
# The backward pass computes two products for each one of the forward pass (the gradient of the input and that of the
# weights), so a step costs **three** forward passes over `batch` windows of `context_length` tokens. In how many parts
# the batch is cut makes no difference.
#
# **Predict first.** ReLU and SwiGLU with the same $F$: by which factor does the MLP cost more?

# %% predict="training_flops"
predict(
    "By which factor does the MLP cost more?",
    answer=1.5,
    because="Three matrices in place of two.",
)


# %% question="training_flops"
def training_flops(setup):
    """Floating point operations of the matrix products in one step of training.

    Args:
        setup: a setup; all its sizes, activation and batch are used.

    Returns:
        int: forward and backward pass, three times the forward pass.

    Raises:
        ValueError: d_model is no multiple of num_heads, or num_heads no multiple of
            num_kv_heads; both numbers in the message.
    """
    ### BEGIN SOLUTION
    d, f, n = setup["d_model"], setup["d_ff"], setup["context_length"]
    heads, kv_heads = setup["num_heads"], setup["num_kv_heads"]
    if d % heads != 0 or heads % kv_heads != 0:
        raise ValueError(f"d_model {d}, {heads} heads and {kv_heads} of keys do not divide")
    d_kv = d // heads * kv_heads  # width of all keys
    projections = 2 * (2 * d * d + 2 * d * d_kv)  # w_q and w_o, w_k and w_v
    attention = 2 * 2 * n * d  # scores, weighted sums
    mlp = 2 * (3 if setup["activation"] == "swiglu" else 2) * d * f
    head = 2 * setup["vocab_size"] * d
    a_token = setup["num_layers"] * (projections + attention + mlp) + head
    return 3 * setup["batch"] * n * a_token
    ### END SOLUTION


# %% check="training_flops"
# D = 2, F = 2, N = 4, V = 3: projections 32, attention 32, MLP 16, head 12: 92.
expect(
    training_flops(SMALL),
    3 * 2 * 4 * 92,
    hint="92 a token, 8 tokens, and the backward pass costs two forward passes.",
)
expect(
    training_flops(SMALL | {"activation": "swiglu"}),
    3 * 2 * 4 * 100,
    hint="A SwiGLU has three matrices.",
)
expect(
    training_flops(SMALL | {"num_heads": 2}),
    3 * 2 * 4 * 84,
    hint="One head of keys for two of queries: w_k and w_v are [2, 1].",
)

# %% [markdown]
# ## 3. One change
#
# ★☆☆ · about 15 minutes
#
# The setup of a variant is the base with **one** entry changed. Two things can go wrong. A name that no setup has
# (`"activations"`) would change nothing. And a change can bring another one along: a SwiGLU has three matrices, and with
# the same $F$ it gets half as many parameters again. Whoever compares that with a ReLU compares sizes. So $F$ becomes
# two thirds when `activation` becomes `"swiglu"`, and three halves the other way, rounded down. (1001 becomes 667, and
# 667 becomes 1000.)
#
# **Predict first.** From ReLU to GELU: what becomes of $F$?

# %% predict="one_change"
predict(
    "From ReLU with F = 12 to GELU: what is F?",
    answer=12,
    because="Both have two matrices: nothing else changes.",
)


# %% question="one_change"
def one_change(base, field, value):
    """The base with one entry changed, and an MLP of as many parameters.

    Args:
        base: a setup.
        field: the name of the entry.
        value: its new value.

    Returns:
        a new setup. Where activation changes to or from "swiglu", d_ff is 2/3 or 3/2 of
        what it was, rounded down.

    Raises:
        ValueError: base has no such entry (its name in the message), or the value is
            what base has already (field and value in the message).
    """
    ### BEGIN SOLUTION
    if field not in base:
        raise ValueError(f"a setup has no entry {field!r}")
    if value == base[field]:
        raise ValueError(f"{field} is {value!r} already: nothing changes")
    setup = {**base, field: value}
    if field == "activation" and value == "swiglu":
        setup["d_ff"] = base["d_ff"] * 2 // 3
    elif field == "activation" and base["activation"] == "swiglu":
        setup["d_ff"] = base["d_ff"] * 3 // 2
    return setup
    ### END SOLUTION


# %% check="one_change"
expect(
    one_change(SMALL, "norm", "post"),
    SMALL | {"norm": "post"},
    hint="All other entries stay.",
)
wide = SMALL | {"d_ff": 12}
expect(
    one_change(wide, "activation", "swiglu"),
    wide | {"activation": "swiglu", "d_ff": 8},
    hint="3 · 8 = 2 · 12: as many parameters as before.",
)
for field, value in (("norms", "post"), ("norm", "pre")):
    try:
        one_change(SMALL, field, value)
        refused = False
    except ValueError:
        refused = True
    expect(refused, True, hint=f"{field} = {value} changes nothing: ValueError.")

# %% [markdown]
# ## 4. Label smoothing
#
# ★★☆ · about 20 minutes
#
# The text says that the next token is "the". The loss asks the model for a probability of 1, and pays it for every
# further nat of confidence. **Label smoothing** asks for less: the target is a mixture of the right token, with
# $1 - s$, and of *all* $V$ tokens alike, with $s$ (Szegedy et al., 2016; the transformer's first paper used $s = 0.1$).
#
# $$\ell = (1 - s)\,\bigl(-\log p_\text{target}\bigr) + s\,\frac1V\sum_{v}\bigl(-\log p_v\bigr)$$
#
# A loss with smoothing cannot be compared with one without: it is larger even for a perfect model. So models are
# trained with it and **measured without it**.
#
# Targets of $-100$ do not count, as in assignment 6, and the mean is over those that do.
#
# **Predict first.** $V = 2$, $s = 0.5$. Which probability of the right token has the smallest loss?

# %% predict="smoothed_loss"
predict(
    "Which probability has the smallest loss?",
    answer=0.75,
    because="The target is the distribution (0.75, 0.25), and a cross-entropy is "
    "smallest where the model says what the target is.",
)


# %% question="smoothed_loss"
def smoothed_loss(logits, targets, smoothing=0.0, ignore_index=-100):
    """Mean cross-entropy against smoothed targets (Szegedy et al., 2016).

    Args:
        logits: [B, N, V].
        targets: int64 [B, N], the right token at each place, or ignore_index.
        smoothing: s, at least 0 and below 1.
        ignore_index: a target that does not count.

    Returns:
        [], the mean over the targets that count; 0 where none does, still with a
        gradient.

    Raises:
        ValueError: smoothing is outside [0, 1); it stands in the message.
    """
    ### BEGIN SOLUTION
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing is {smoothing}, and should be at least 0 and below 1")
    counts = targets != ignore_index  # [B, N]
    log_p = torch.log_softmax(logits[counts], dim=-1)  # [M, V]: where a target counts
    of_target = log_p.gather(-1, targets[counts][:, None]).sum()
    of_all = log_p.mean(dim=-1).sum()
    return -((1 - smoothing) * of_target + smoothing * of_all) / max(1, int(counts.sum()))
    ### END SOLUTION


# %% check="smoothed_loss"
logits = torch.tensor([[[0.0, math.log(3.0)], [5.0, 5.0], [0.0, 1.0]]])
ln = math.log
expect(
    smoothed_loss(logits[:, :2], torch.tensor([[1, 0]])),
    torch.tensor((ln(4 / 3) + ln(2)) / 2),
    hint="Without smoothing: the mean of -log 3/4 and -log 1/2.",
)
expect(
    smoothed_loss(logits[:, :1], torch.tensor([[1]]), smoothing=0.5),
    torch.tensor(0.75 * ln(4 / 3) + 0.25 * ln(4)),
    hint="Half of the weight is shared by both tokens, the right one included.",
)
expect(
    smoothed_loss(logits, torch.tensor([[1, 0, -100]])),
    smoothed_loss(logits[:, :2], torch.tensor([[1, 0]])),
    hint="A target of -100 counts neither in the sum nor in the number.",
)

# %% [markdown]
# ## 5. A big batch in small parts
#
# ★★☆ · about 25 minutes
#
# A batch that does not fit into memory is cut into parts. Each part goes forward and backward alone, and the gradients
# are **added up** before the one step of the optimizer. Nothing that a part has computed is needed afterwards, so the
# memory is that of one part.
#
# It is meant to be *the same* as the big batch, and often is not. The loss of the batch is a mean over its $M$ targets.
# If each part's loss is the mean over its own targets, the sum is too large by the number of parts; and the mean of the
# means is wrong too as soon as parts have different numbers of targets. (In 2024 this was found in several libraries that
# people train with.) With $M_i$ targets in part $i$:
#
# $$\ell = \sum_i \frac{M_i}{M}\,\ell_i$$
#
# **Predict first.** Two parts with one and three targets; all losses of the first are 4, all of the second 0. What is
# the loss of the batch, and what is the mean of the means?

# %% predict="accumulated_gradients"
predict(
    "What is the loss of the batch?",
    answer=1,
    because="Four targets with the losses 4, 0, 0, 0. The mean of the means is 2.",
)


# %% question="accumulated_gradients"
def accumulated_gradients(params, setup, inputs, targets, drop=None):
    """Loss and gradients of a batch, worked out in parts.

    Args:
        params, setup: as in decoder; besides, setup has parts and smoothing.
        inputs, targets: int64 [B, N]; targets of -100 do not count.
        drop: as in decoder; the parts come in the order of their rows.

    Returns:
        (loss, gradients): a Python float, the smoothed_loss of the whole batch, and a
        list of its gradients in the order of list_tensors(params): 0.0 and zeros where
        no target counts. The rows may be cut in any way by which no more than
        ⌈B / parts⌉ of them go through the decoder at once; with parts = 1 all of them
        do.

    Raises:
        ValueError: parts is below 1 or above B; both in the message.
    """
    ### BEGIN SOLUTION
    parts = setup["parts"]
    if not 1 <= parts <= len(inputs):
        raise ValueError(f"{len(inputs)} rows cannot be cut into {parts} parts")
    leaves = [t.detach().requires_grad_() for t in list_tensors(params)]
    weights = with_tensors(params, leaves)
    total = max(1, int((targets != -100).sum()))
    loss, gradients = 0.0, [torch.zeros_like(leaf) for leaf in leaves]
    rows = -(-len(inputs) // parts)  # rounded up
    for x, y in zip(inputs.split(rows), targets.split(rows), strict=True):
        share = int((y != -100).sum()) / total
        part = share * smoothed_loss(decoder(x, weights, setup, drop), y, setup["smoothing"])
        loss += part.item()
        for sum_, gradient in zip(gradients, torch.autograd.grad(part, leaves), strict=True):
            sum_ += gradient
    return loss, gradients
    ### END SOLUTION


# %% check="accumulated_gradients"
params = random_params(SMALL, seed=1)
inputs = torch.tensor([[0, 1, 2], [2, 2, 1], [1, 0, 0]])
targets = torch.tensor([[1, 2, 2], [-100, -100, 1], [0, 0, -100]])
whole_loss, whole = accumulated_gradients(params, SMALL, inputs, targets)
expect(
    whole_loss,
    smoothed_loss(decoder(inputs, params, SMALL), targets).item(),
    hint="The loss of the batch, as a Python float.",
)
for parts in (2, 3):
    loss, gradients = accumulated_gradients(
        params, SMALL | {"parts": parts}, inputs, targets
    )
    expect(
        loss,
        whole_loss,
        hint=f"In {parts} parts the loss should be that of the batch. How many targets has each part?",
    )
    expect(
        gradients[0],
        whole[0],
        hint="Gradients add up, with the share that each part has of the targets.",
    )

# %% [markdown]
# ## 6. A run
#
# ★★★ · about 40 minutes
#
# Now train, and measure while you train. What comes out is a **curve**: the loss on held-out text against the FLOPs
# that were spent. The budget is in FLOPs too, and the number of steps follows from it.
#
# A run is *the same* whenever it is run, as its batches and its dropout come from the seed and the step. Three
# things must not happen, and each of them happens often:
#
# - the loss is measured on text that the model is trained on: a model that learns it by heart looks best;
# - dropout, or smoothing, is at work while the loss is measured;
# - two runs see different batches, and the difference is luck.
#
# **Predict first.** The vocabulary has 62 characters. Where does the curve begin?

# %% predict="training_curve"
predict(
    "The loss before the first step, in nats?",
    answer=4.13,
    atol=0.1,
    because="log 62 = 4.127, and a little more: the model begins with nearly equal "
    "probabilities.",
)


# %% question="training_curve"
def training_curve(params, setup, training_ids, held_out_ids, budget, every, seed):
    """Train under a budget, and measure on the way.

    Args:
        params: parameters to begin with, as in decoder.
        setup: a setup.
        training_ids, held_out_ids: int64 [M], int64 [K]: two texts.
        budget: FLOPs that may be spent, as training_flops counts them.
        every: after how many steps a point is added to the curve.
        seed: int, for training_batch and dropout_at.

    Returns:
        (new_params, curve): the curve is a list of pairs, FLOPs spent so far (int) and
        held_out_loss in windows of context_length (float): before the first step, after
        each `every` steps, and after the last one. Step t = 0, 1, … makes an adamw_step
        with the accumulated_gradients of training_batch t, dropout_at t, at rate_at t.
        No step is begun that the budget does not pay for in full.

    Raises:
        ValueError: the budget does not pay for one step (both numbers in the message),
            or every is below 1.
    """
    ### BEGIN SOLUTION
    cost = training_flops(setup)
    steps = budget // cost
    if steps < 1 or every < 1:
        raise ValueError(f"a step costs {cost} of a budget of {budget}; a point every {every} steps")

    def measured(weights):
        def model(ids):
            return decoder(ids, weights, setup)  # nothing is dropped

        return held_out_loss(model, held_out_ids, setup["context_length"])

    curve, state = [(0, measured(params))], None
    for step in range(steps):
        inputs, targets = training_batch(training_ids, setup, seed, step)
        drop = dropout_at(setup["dropout"], seed, step)
        _, gradients = accumulated_gradients(params, setup, inputs, targets, drop)
        rate = rate_at(step, steps, setup["rate"])
        stepped, state = adamw_step(list_tensors(params), gradients, state, rate)
        params = with_tensors(params, stepped)
        if (step + 1) % every == 0 or step + 1 == steps:
            curve.append(((step + 1) * cost, measured(params)))
    return params, curve
    ### END SOLUTION


# %% check="training_curve"
song = torch.tensor([0, 1, 2, 1] * 8)
cost = training_flops(SMALL)
begin = random_params(SMALL, seed=2)
after, curve = training_curve(begin, SMALL, song, song[:9], 7 * cost + 5, 3, seed=0)
expect(
    [flops // cost for flops, _ in curve],
    [0, 3, 6, 7],
    hint="Before the first step, every three, and after the seventh: the rest of the budget is too small for another.",
)
expect(
    curve[0][1],
    held_out_loss(lambda ids: decoder(ids, begin, SMALL), song[:9], 4),
    hint="The first point is the loss of the parameters that came in.",
)
expect(
    curve[-1][1],
    held_out_loss(lambda ids: decoder(ids, after, SMALL), song[:9], 4),
    hint="The last point is the loss of the parameters that go out.",
)
expect(
    training_curve(begin, SMALL, song, song[:9], 7 * cost, 3, seed=0)[1],
    curve,
    hint="The same seed gives the same run.",
)

# %% [markdown]
# ## 7. A fair table
#
# ★★☆ · about 20 minutes
#
# Now the experiment. For each value of one entry of the setup, and each of several seeds, there is a run. Fair means:
# one change, **the same budget in FLOPs** for all, and **the same seeds** for all.
#
# `compare` gets the function that makes a run, and decides what it is asked: a setup, a number of steps, a seed. So it
# works for a decoder and for anything else that has setups.
#
# **Predict first.** A budget of 1000 FLOPs. A step of the base costs 100, one of the variant 150. How many steps does
# the variant get?

# %% predict="compare"
predict(
    "How many steps does the variant get?",
    answer=6,
    because="The budget pays for 6.67 steps, and a step is made or it is not.",
)


# %% question="compare"
def compare(base, field, values, budget, seeds, run):
    """A table of runs that differ in one entry of the setup.

    Args:
        base: a setup.
        field: the entry that changes, one that the base has.
        values: list of its values, in the order of the table; base[field] may be one.
        budget: FLOPs of each run, as training_flops counts them.
        seeds: list of int.
        run: a function of (setup, steps, seed) that gives a loss, a float. The setup is
            that of one_change, or the base itself for the value that the base has.

    Returns:
        list of rows (value, steps, losses): one loss for each seed, in their order.
        Every run gets all steps that the budget pays for.

    Raises:
        ValueError: a seed or a value occurs twice, or the budget does not pay for a
            step of some value (budget and cost in the message); nothing is run then.
    """
    ### BEGIN SOLUTION
    for name, entries in (("seeds", seeds), ("values", values)):
        if len(set(entries)) < len(entries):
            raise ValueError(f"among the {name} {entries} one occurs twice")
    plan = []
    for value in values:
        setup = base if value == base[field] else one_change(base, field, value)
        cost = training_flops(setup)
        if cost > budget:
            raise ValueError(f"a step with {field} = {value!r} costs {cost}, the budget is {budget}")
        plan.append((value, setup, budget // cost))
    return [
        (value, steps, [run(setup, steps, seed) for seed in seeds])
        for value, setup, steps in plan
    ]
    ### END SOLUTION


# %% check="compare"
asked = []


def pretend(setup, steps, seed):
    """A run that is not made: its loss follows from what was asked."""
    asked.append((setup["num_layers"], steps, seed))
    return steps + seed / 10


# A step costs 1920 + 288 = 2208 with one block, and 4128 with two.
expect(
    compare(SMALL, "num_layers", [1, 2], 10_000, [3, 5], pretend),
    [(1, 4, [4.3, 4.5]), (2, 2, [2.3, 2.5])],
    hint="10 000 FLOPs are 4 steps of 2208, or 2 of 4128. Each value runs with each seed.",
)
expect(
    sorted(asked),
    [(1, 4, 3), (1, 4, 5), (2, 2, 3), (2, 2, 5)],
    hint="run is called once for each row and seed.",
)

# %% [markdown]
# ## 8. What the table says
#
# ★★☆ · about 20 minutes
#
# Variant A has the losses 2.31, 2.35 and 2.27, variant B 2.29, 2.34 and 2.24. Is B better? The losses of A alone spread
# by 0.08, and B's mean is only 0.02 lower. But the runs are **pairs**: a seed that brings good batches brings them to
# both. So look at the differences, 0.02, 0.01 and 0.03. They spread far less.
#
# $$\bar d = \frac1n\sum_i (a_i - b_i) \qquad \mathrm{SE} = \sqrt{\frac{1}{n(n-1)}\sum_i \left(a_i - b_i - \bar d\right)^2}$$
#
# We call a winner where $|\bar d|$ is above `factor` standard errors, and say "undecided" otherwise. (With three seeds a
# factor of 2 is no strong claim. A $t$ test with 2 degrees of freedom asks for 4.3 for the usual 95 %.)
#
# A run can also **diverge**, and its loss is then infinite or no number at all. It is no outlier that may be dropped: who
# drops it compares the good runs of A with all of B. If only one variant has such runs, the other one wins.
#
# **Predict first.** What does the rule with `factor=2` say about A and B?

# %% predict="paired_verdict"
predict(
    "What does the rule say?",
    "A",
    "B",
    "undecided",
    answer="B",
    because="The mean is 0.02, and the standard error 0.01 / √3 = 0.0058.",
)


# %% question="paired_verdict"
def paired_verdict(first, second, factor=2.0):
    """Which of two variants has the lower loss, seed by seed.

    Args:
        first, second: lists of n losses, n at least 2, of the same seeds in the same
            order.
        factor: how many standard errors the mean difference has to exceed.

    Returns:
        (winner, mean, error): "first", "second" or "undecided"; the mean of
        first - second and its standard error, Python floats. Where a loss is infinite
        or NaN, mean and error are None, and the winner is the variant whose losses are
        all finite, or "undecided" if there is none.

    Raises:
        ValueError: the lists have different lengths (both in the message), or fewer
            than two losses (the number in the message).
    """
    ### BEGIN SOLUTION
    n = len(first)
    if n != len(second) or n < 2:
        raise ValueError(f"{n} losses and {len(second)}: two or more are needed, as many in both")
    converged = [all(math.isfinite(loss) for loss in losses) for losses in (first, second)]
    if converged == [True, False]:
        return "first", None, None
    if converged == [False, True]:
        return "second", None, None
    if converged == [False, False]:
        return "undecided", None, None
    differences = [a - b for a, b in zip(first, second, strict=True)]
    mean = math.fsum(differences) / n
    error = math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (n * (n - 1)))
    winner = "undecided"
    if abs(mean) > factor * error:
        winner = "first" if mean < 0 else "second"
    return winner, mean, error
    ### END SOLUTION


# %% check="paired_verdict"
winner, mean, error = paired_verdict([2.0, 4.0, 3.0], [1.0, 1.0, 1.0])
expect(winner, "second", hint="The losses of the second are lower with each seed.")
expect(mean, 2.0, hint="The differences are 1, 3 and 2.")
expect(
    error,
    1 / 3**0.5,
    hint="The deviation of 1, 3 and 2 is 1 (with n - 1), and that of their mean 1 / √3.",
)
expect(
    paired_verdict([2.0, 4.0, 3.0], [1.0, 1.0, 1.0], factor=4.0)[0],
    "undecided",
    hint="Four standard errors are 2.3, more than the difference.",
)
expect(
    paired_verdict([2.0, float("nan")], [9.0, 9.0]),
    ("second", None, None),
    hint="A run of the first variant diverged.",
)

# %% [markdown]
# ### The laboratory at work
#
# Tokens are characters here, 62 of them, and a byte each: a loss in nats a token divided by $\log 2$ is in bits a byte.
# The cell below asks seven questions. Every run has the same budget, 6 · 10⁹ FLOPs, 150 steps of the base. It is a
# small one, so that the cell takes half a minute of one core; it is a start for arguing, not a result. `LONG = True`
# gives every run ten times as much (6 · 10¹⁰), and a seed more: eight minutes of one core here, and five for the cells
# below, by the time that their steps take.
#
# Before you run it, write down your guesses. What to expect: with the answers of the course's staff, rotary positions
# are clearly better than learned ones at this budget, and a model without positions is too: 32 rows of a table have to
# be learned first. A batch of 2 with 600 steps beats one of 32 with 37. Pre-norm and RMSNorm, shared keys and a
# head of its own are undecided. GELU is ahead of SwiGLU here, which is not what larger experiments say: a verdict holds
# for its budget. And two seeds are few: run it with others.

# %% demo="experiments"
# Whoever only wants to see whether all cells run sets this variable.
QUICK = "ATTENTION_KIT_QUICK" in os.environ
LONG = False
SEEDS = [0, 1, 2] if LONG else [0, 1]

TEXT = Path("data/shakespeare_part.txt").read_bytes()
alphabet = sorted(set(TEXT))
text_ids = torch.tensor([alphabet.index(byte) for byte in TEXT])
cut = len(text_ids) * 9 // 10
# the last tenth is never trained on
training_ids, held_out_ids = text_ids[:cut], text_ids[cut : cut + 2_001]

BASE = {
    "vocab_size": len(alphabet), "d_model": 32, "num_layers": 2, "num_heads": 4,
    "num_kv_heads": 4, "d_ff": 96, "context_length": 32, "positions": "learned",
    "norm": "pre", "activation": "gelu", "tied": True, "dropout": 0.0,
    "smoothing": 0.0, "rate": 0.01, "batch": 8, "parts": 1,
}  # fmt: skip
STEP = training_flops(BASE)
BUDGET = STEP * (5 if QUICK else 1500 if LONG else 150)  # what every run may spend


def trained_curve(setup, budget, seed, text=training_ids):
    """A run from random parameters: its parameters and its curve."""
    every = max(1, budget // training_flops(setup) // 6)
    return training_curve(
        random_params(setup, seed), setup, text, held_out_ids, budget, every, seed
    )


def final_loss(setup, steps, seed):
    """The held-out loss at the end of a run of so many steps."""
    return trained_curve(setup, steps * training_flops(setup), seed)[1][-1][1]


def show_table(field, values, base=BASE):
    """Run compare; print rows in bits a byte, with the verdict against the first."""
    table = compare(base, field, values, BUDGET, SEEDS, final_loss)
    for value, steps, losses in table:
        bits = sum(losses) / len(losses) / math.log(2)
        verdict = ""
        if value != table[0][0]:
            winner, _, _ = paired_verdict(table[0][2], losses)
            verdict = {"first": "worse", "second": "better"}.get(winner, winner)
        row = f"{field:>13} {value!s:>8}: {steps:5} steps, {bits:.3f} bits a byte"
        print(row, "", verdict)
    return table


tables = {
    field: show_table(field, values)
    for field, values in {
        "positions": ["learned", "none", "rotary"],
        "norm": ["pre", "post", "rms"],
        "activation": ["gelu", "relu", "swiglu"],
        "num_kv_heads": [4, 1],
        "tied": [True, False],
        "smoothing": [0.0, 0.1],
        "batch": [8, 2, 32],
    }.items()
}

# %% [markdown]
# ### The cliff of the learning rate
#
# One number matters more than most of the others. The loss falls as the rate grows, for a long way, and then there is
# an edge: a little more and the run is lost. A comparison at *one* rate can be decided by where the edge of each variant
# lies. The cell below runs the same sweep with pre-norm and with post-norm. And on the right: a model that sees the same
# 2 000 characters again and again learns them by heart. What does dropout do about it?

# %% demo="cliff"
import matplotlib.pyplot as plt

rates = [0.01, 1.0] if QUICK else [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for norm in ("pre", "post"):
    sweep = compare(
        BASE | {"norm": norm}, "rate", rates, BUDGET, SEEDS[:1], final_loss
    )
    bits = [losses[0] / math.log(2) for _, _, losses in sweep]
    left.plot(rates, bits, "o-", label=f"{norm}-norm")
left.set(
    xscale="log", xlabel="peak of the rate", ylabel="bits a byte, held out",
    title="The cliff",
)  # fmt: skip
left.legend()
for dropout in (0.0, 0.2):
    setup = BASE | {"dropout": dropout}
    _, curve = trained_curve(setup, 3 * BUDGET, 0, text=training_ids[:2_000])
    right.plot(*zip(*curve, strict=True), "o-", label=f"dropout {dropout}")
right.set(
    xlabel="FLOPs", ylabel="nats a byte, held out",
    title="2 000 characters, again and again",
)  # fmt: skip
right.legend()
plt.show()

big = BASE | {"batch": 12}
batch = training_batch(training_ids, big, 0, 0)
weights = random_params(big)
once = accumulated_gradients(weights, big, *batch)[1]
in_parts = accumulated_gradients(weights, big | {"parts": 5}, *batch)[1]
largest = max(
    float((a - b).abs().max()) for a, b in zip(once, in_parts, strict=True)
)
print(f"one batch of 12, and the same in 5 parts: gradients differ by {largest:.1e}")

# %% [markdown]
# ## 9. The loss of a model that nobody has trained
#
# ★★☆ · about 20 minutes
#
# Over many orders of magnitude the loss falls with the size of a model like a power (Kaplan et al., 2020):
#
# $$L(N) = L_\infty + a\,N^{-\alpha}$$
#
# People train four small models, fit the line, and decide about one that costs a thousand times as much. In logarithms
# it *is* a line, $\log(L - L_\infty) = \log a - \alpha \log N$, and least squares gives slope and height at once. The
# fit is made in logarithms because errors of a loss are relative ones; least squares on $L$ itself would look at the
# smallest models alone.
#
# What about the **irreducible loss** $L_\infty$, which no size gets rid of? Text is not certain, so there is one. But
# four points do not tell three numbers: $L_\infty = 0$ and $L_\infty = 1$ fit four points almost equally well, and differ
# far away. We decide: it is an argument, `floor`, and 0 if you do not give one. Whoever gives one has to say where it is
# from.
#
# **Predict first.** Sizes 1 and 100 have the losses 4 and 2, with a floor of 0. What is forecast for 10 000?

# %% predict="power_law_forecast"
predict(
    "Which loss is forecast?",
    answer=1,
    because="A hundred times the size is half of the loss.",
)


# %% question="power_law_forecast"
def power_law_forecast(sizes, losses, new_size, floor=0.0):
    """Fit floor + a · N^(-alpha) by least squares in logarithms (Kaplan et al., 2020).

    Args:
        sizes: list of numbers above 0, at least two different ones.
        losses: list of as many numbers.
        new_size: a number above 0.
        floor: the irreducible loss, below all losses.

    Returns:
        (alpha, forecast): Python floats; alpha is positive where losses fall with the
        size, and the forecast is for new_size.

    Raises:
        ValueError: as many sizes as losses are needed (both in the message), two
            different sizes, each of the sizes and new_size above 0, and losses above
            the floor.
    """
    ### BEGIN SOLUTION
    if len(sizes) != len(losses):
        raise ValueError(f"{len(sizes)} sizes and {len(losses)} losses")
    if len(set(sizes)) < 2:
        raise ValueError(f"no line goes through points at one size, {sizes}")
    x = [math.log(size) for size in sizes]  # a ValueError where there is no logarithm
    y = [math.log(loss - floor) for loss in losses]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    together = sum((u - mean_x) * (v - mean_y) for u, v in zip(x, y, strict=True))
    alpha = -together / sum((u - mean_x) ** 2 for u in x)  # minus the slope
    forecast = floor + math.exp(mean_y - alpha * (math.log(new_size) - mean_x))
    return alpha, forecast
    ### END SOLUTION


# %% check="power_law_forecast"
alpha, forecast = power_law_forecast([1, 100], [4.0, 2.0], 10_000)
expect(
    alpha,
    math.log10(2) / 2,
    hint="The exponent is log 2 / log 100, and positive: the loss falls.",
)
expect(forecast, 1.0, hint="A hundred times the size is half of the loss.")
expect(
    power_law_forecast([1, 100], [4.0, 2.5], 10_000, floor=1.0)[1],
    1.75,
    hint="Above the floor the losses are 3 and 1.5. The forecast is 0.75 above it.",
)

# %% [markdown]
# ### Predict the fifth before it is trained
#
# Four sizes are trained, each with steps in proportion to its size: twenty tokens a parameter would be the compute-optimal
# rule of Hoffmann et al. (2022); here it is a fraction of that. Then your function says what the fifth will reach, and only
# then is it trained. Your score is the distance in per cent. Beside it stands the score of somebody who says: "the same
# as the largest so far". (The staff's forecast was 0.3 % off, with a floor of half the best loss 2.3 %, and
# "the same as the largest" 12 %.)

# %% demo="scaling"
def sized(width):
    """A model of this width, without its embedding 24 · width² parameters."""
    return BASE | {"d_model": width, "d_ff": 4 * width, "rate": 0.01}


def parameters_of(setup):
    return sum(t.numel() for t in list_tensors(random_params(setup)))


widths = [8, 12, 16, 24, 40]
share = 8000 if QUICK else 10 if LONG else 100
steps_of = {width: max(2, parameters_of(sized(width)) // share) for width in widths}
sizes = [parameters_of(sized(width)) for width in widths]
losses = [final_loss(sized(width), steps_of[width], 0) for width in widths[:4]]
alpha, forecast = power_law_forecast(sizes[:4], losses, sizes[4])
_, with_floor = power_law_forecast(sizes[:4], losses, sizes[4], floor=min(losses) / 2)
print(f"alpha = {alpha:.3f}; {sizes[4]} parameters should reach {forecast:.3f} nats")
reached = final_loss(sized(widths[4]), steps_of[widths[4]], 0)
print(f"it reaches {reached:.3f}")
for name, guess in (
    ("without a floor", forecast),
    ("with a floor of half the best loss", with_floor),
    ("the same as the largest so far", losses[-1]),
):
    print(f"{abs(math.log(guess / reached)):7.1%} off: {name}")
_, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
axis.loglog(sizes[:4], losses, "o", label="trained")
axis.loglog(
    sizes, [power_law_forecast(sizes[:4], losses, size)[1] for size in sizes],
    "--", label="the fit",
)  # fmt: skip
axis.loglog(sizes[4:], [reached], "s", color="#c1666b", label="the fifth")
axis.set(xlabel="parameters", ylabel="nats a byte, held out", title="A power law")
axis.legend()
plt.show()

# %% [markdown]
# ## 10. Small matrices beside frozen ones
#
# ★☆☆ · about 15 minutes
#
# Fine-tuning moves weights a little. **LoRA** (Hu et al., 2022) guesses that the move has a low rank: a frozen matrix
# $W$ $[n, m]$ gets a companion of two thin ones,
#
# $$W' = W + \frac{\alpha}{r}\,A B \qquad A\ [n, r],\quad B\ [r, m]$$
#
# and only $A$ and $B$ are trained. At the start the model must be the one that was loaded, so that $AB = 0$. But not both
# may be zero: then both gradients are zero too, and nothing ever moves. So $A$ is random and $B$ is zero. A deviation of
# $1/\sqrt n$ gives $xA$ the size of $x$.
#
# The rank stands in the denominator so that $\alpha$ needs no new search when the rank changes.
#
# **Predict first.** In the first step, which of the two moves?

# %% predict="lora_adapters"
predict(
    "Which of the two has a gradient at the start?",
    "A",
    "B",
    "both",
    answer="B",
    because="The gradient of A contains B, which is 0, and that of B contains A.",
)


# %% question="lora_adapters"
def lora_adapters(params, names, rank, seed=0):
    """New adapters for some matrices of every block (Hu et al., 2022).

    Args:
        params: parameters whose entry blocks is a list of dicts, as in decoder.
        names: which matrices get an adapter, for example ["w_q", "w_v"].
        rank: r.
        seed: int. Equal seeds give equal adapters; torch's own dice stay as they were.

    Returns:
        list with a dict for each block: name -> {"a": [n, r], "b": [r, m]} for a matrix
        [n, m], in its dtype. Numbers of a are normal with mean 0 and deviation 1/√n,
        independent of each other; b is zero.

    Raises:
        ValueError: rank is below 1 or above n or m (rank and size in the message), or a
            block has no such matrix (the name in the message).
    """
    ### BEGIN SOLUTION
    dice = torch.Generator().manual_seed(seed)

    def adapter(block, name):
        if name not in block:
            raise ValueError(f"a block has no matrix {name!r}")
        n, m = block[name].shape
        if not 1 <= rank <= min(n, m):
            raise ValueError(f"a matrix [{n}, {m}] has no adapter of rank {rank}")
        a = torch.randn(n, rank, generator=dice, dtype=block[name].dtype) / math.sqrt(n)
        return {"a": a, "b": torch.zeros(rank, m, dtype=a.dtype)}

    return [{name: adapter(block, name) for name in names} for block in params["blocks"]]
    ### END SOLUTION


# %% check="lora_adapters"
two_layers = SMALL | {"d_model": 8, "d_ff": 12, "num_layers": 2}
model = random_params(two_layers)
adapters = lora_adapters(model, ["w_q", "w1"], rank=3)
expect(
    [len(adapters), sorted(adapters[0])],
    [2, ["w1", "w_q"]],
    hint="A dict for each of two blocks, with the names that were asked for.",
)
expect(
    [list(adapters[1]["w1"]["a"].shape), list(adapters[1]["w1"]["b"].shape)],
    [[8, 3], [3, 12]],
    hint="w1 is [8, 12].",
)
expect(
    float(adapters[0]["w_q"]["b"].abs().max()),
    0.0,
    hint="b begins as zero, so that the model begins as it was.",
)
expect(
    bool((adapters[0]["w_q"]["a"] == adapters[1]["w_q"]["a"]).any()),
    False,
    hint="Each block throws its own dice.",
)

# %% [markdown]
# ## 11. And their sum
#
# ★★☆ · about 15 minutes
#
# Put the adapters into the matrices: $W + \frac{\alpha}{r} AB$. It serves twice. In training, the decoder runs on the
# merged parameters, and gradients flow through the sum into $A$ and $B$ (a decoder that keeps $xW$ and $xAB$ apart saves
# memory and gives the same numbers). Afterwards, the merged model is as fast as the one that was loaded: nothing is left
# of the adapters.
#
# The rank need not be given. Where does it stand?
#
# **Predict first.** $r = 4$, $\alpha = 8$, and somebody merges $W + AB$. By which factor is the change too small?

# %% predict="merge_lora"
predict(
    "By which factor is the change too small?",
    answer=2,
    because="alpha / r = 2 was forgotten.",
)


# %% question="merge_lora"
def merge_lora(params, adapters, alpha):
    """Parameters with adapters added to their matrices (Hu et al., 2022).

    Args:
        params: as in lora_adapters; they stay as they were.
        adapters: as from lora_adapters, for matrices that the block has; blocks may
            have different names and ranks.
        alpha: α.

    Returns:
        new parameters: w + (α / r) · a @ b for each matrix w that has an adapter, all
        others as in params. Gradients reach a, b and params.

    Raises:
        ValueError: there are not as many dicts as blocks; both numbers in the message.
    """
    ### BEGIN SOLUTION
    if len(adapters) != len(params["blocks"]):
        raise ValueError(f"{len(adapters)} adapters for {len(params['blocks'])} blocks")
    blocks = []
    for block, own in zip(params["blocks"], adapters, strict=True):
        moved = {}
        for name, adapter in own.items():
            rank = adapter["a"].shape[1]
            moved[name] = block[name] + alpha / rank * adapter["a"] @ adapter["b"]
        blocks.append({**block, **moved})
    return {**params, "blocks": blocks}
    ### END SOLUTION


# %% check="merge_lora"
one_block = {
    "embed": torch.ones(2),
    "blocks": [{"w": torch.eye(2), "v": torch.ones(1)}],
}
thin = {
    "a": torch.tensor([[1.0, 0.0], [2.0, 0.0]]),
    "b": torch.tensor([[3.0, 0.0], [5.0, 7.0]]),
}
expect(
    merge_lora(one_block, [{"w": thin}], alpha=1.0)["blocks"][0]["w"],
    torch.tensor([[2.5, 0.0], [3.0, 1.0]]),
    hint="a @ b is [[3, 0], [6, 0]], and alpha / r is 1 / 2.",
)
expect(
    one_block["blocks"][0]["w"],
    torch.eye(2),
    hint="The parameters that came in should stay as they were.",
)

# %% [markdown]
# ## 12. What three ways to fine-tune cost
#
# ★★☆ · about 20 minutes
#
# Why all this? Not for the weights: they are there in any case. Whoever trains a number also keeps its gradient, in the
# dtype of the weight, and AdamW's two averages of it, in float32: 8 bytes a number that is trained. **What is frozen
# needs neither.**
#
# - `"full"`: everything is trained.
# - `"last"`: the last block is trained.
# - `"lora"`: the adapters are trained, $r\,(n + m)$ numbers for a matrix $[n, m]$. They exist besides the weights.
#
# **Predict first.** GPT-2's small model has 124 million numbers, in float32. How many gigabytes are its weights,
# gradients and averages?

# %% predict="tuning_costs"
predict(
    "How many gigabytes are they together?",
    answer=1.99,
    atol=0.02,
    because="16 bytes a number: 4 + 4 + 8, times 124 439 808.",
)


# %% question="tuning_costs"
def tuning_costs(params, method, names=(), rank=0):
    """Numbers and bytes of fine-tuning.

    Args:
        params: as in lora_adapters, tensors of one dtype. A tensor that stands in
            several places counts in each of them.
        method: "full", "last" or "lora".
        names, rank: of the adapters, as in lora_adapters, for "lora": every block has
            these matrices, and the rank is at least 1.

    Returns:
        dict of int: trained, how many numbers are trained; weights, bytes of all
        weights, adapters included; gradients, bytes of the gradients of what is
        trained, in the dtype of params; optimizer, bytes of AdamW's two float32
        averages of it.

    Raises:
        ValueError: the method is another; it stands in the message.
    """
    ### BEGIN SOLUTION
    total = sum(t.numel() for t in list_tensors(params))
    size = list_tensors(params)[0].element_size()
    if method == "full":
        trained, added = total, 0
    elif method == "last":
        trained, added = sum(t.numel() for t in list_tensors(params["blocks"][-1])), 0
    elif method == "lora":
        trained = added = rank * sum(sum(p[name].shape) for p in params["blocks"] for name in names)
    else:
        raise ValueError(f"there is no way to fine-tune called {method!r}")
    return {
        "trained": trained,
        "weights": (total + added) * size,
        "gradients": trained * size,
        "optimizer": trained * 2 * 4,
    }
    ### END SOLUTION


# %% check="tuning_costs"
two_blocks = {
    "embed": torch.ones(5, 2).half(),
    "blocks": [{"w": torch.ones(2, 3).half()}, {"w": torch.ones(2, 3).half()}],
}
expect(
    tuning_costs(two_blocks, "full"),
    {"trained": 22, "weights": 44, "gradients": 44, "optimizer": 176},
    hint="10 + 6 + 6 numbers of 2 bytes; the averages are in float32.",
)
expect(
    tuning_costs(two_blocks, "last"),
    {"trained": 6, "weights": 44, "gradients": 12, "optimizer": 48},
    hint="Only the last block is trained: what is frozen has no averages.",
)
expect(
    tuning_costs(two_blocks, "lora", names=["w"], rank=1),
    {"trained": 10, "weights": 64, "gradients": 20, "optimizer": 80},
    hint="2 + 3 numbers in each block. The frozen weights are still in memory.",
)

# %% [markdown]
# ### Fine-tuning
#
# First the costs, for GPT-2's small model: your function reads shapes alone, so the weights need not be there
# (`device="meta"`). Then a small model that has learned Shakespeare is to learn another style: the same plays, written
# in CAPITALS with the lines run together. Each way gets the same number of steps. Watch the columns beside the loss:
# what is it worth to you?
#
# To do it with the real GPT-2, load it in assignment 9. `from_gpt2` gives parameters with `blocks` of the same kind, and
# `lora_adapters`, `merge_lora` and `tuning_costs` take them as they are.
#
# What to expect: all three learn the new style, full training most of it in so few steps. And look at the old text: what
# moves little also forgets little.

# %% given="gpt2"
def empty(*shape):
    return torch.empty(*shape, device="meta")


GPT2_BLOCK = {
    "ln1_gamma": empty(768), "ln1_beta": empty(768), "w_q": empty(768, 768),
    "b_q": empty(768), "w_k": empty(768, 768), "b_k": empty(768),
    "w_v": empty(768, 768), "b_v": empty(768), "w_o": empty(768, 768),
    "b_o": empty(768), "ln2_gamma": empty(768), "ln2_beta": empty(768),
    "w1": empty(768, 3072), "b1": empty(3072), "w2": empty(3072, 768), "b2": empty(768),
}  # fmt: skip
GPT2 = {
    "embed": empty(50_257, 768), "positions": empty(1024, 768),
    "blocks": [GPT2_BLOCK] * 12, "lnf_gamma": empty(768), "lnf_beta": empty(768),
}  # fmt: skip
ADAPTED = ["w_q", "w_v"]


def gpt2_costs(method):
    """What you say of GPT-2's small model. Its twelve blocks are one dict here, and
    each place counts.
    """
    return tuning_costs(GPT2, method, ADAPTED, rank=8)


# %% demo="fine_tuning"
for method in ("full", "last", "lora"):
    costs = gpt2_costs(method)
    trained = costs.pop("trained")
    megabytes = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in costs.items())
    print(f"GPT-2, {method:>4}: {trained:>9} numbers are trained; {megabytes}")

shouted = TEXT.upper().replace(b"\n", b" ")
shouted_ids = torch.tensor([alphabet.index(b) for b in shouted if b in alphabet])
new_text, new_held_out = shouted_ids[:cut], shouted_ids[cut : cut + 2_001]
loaded, _ = trained_curve(BASE, 3 * BUDGET, seed=0)


def fine_tuned(method, steps, rank=4, alpha=8.0, rate=0.005):
    """The model after some steps on the new text, in one of three ways."""
    adapters = lora_adapters(loaded, ADAPTED, rank)
    chosen = {"full": loaded, "last": loaded["blocks"][-1], "lora": adapters}[method]
    trained, state = list_tensors(chosen), None

    def model_with(tensors):
        """The model in which what is trained is replaced."""
        part = with_tensors(chosen, tensors)
        if method == "full":
            return part
        if method == "last":
            return loaded | {"blocks": [*loaded["blocks"][:-1], part]}
        return merge_lora(loaded, part, alpha)

    for step in range(steps):
        inputs, targets = training_batch(new_text, BASE, 1, step)
        leaves = [t.detach().requires_grad_() for t in trained]
        loss = smoothed_loss(decoder(inputs, model_with(leaves), BASE), targets)
        gradients = torch.autograd.grad(loss, leaves)
        trained, state = adamw_step(trained, gradients, state, rate)
    return model_with(trained)


def bits_on(ids, weights):
    """Bits a byte of a model on a text."""
    return held_out_loss(lambda x: decoder(x, weights, BASE), ids, 32) / math.log(2)


steps = 2 if QUICK else 600 if LONG else 60
new, old = bits_on(new_held_out, loaded), bits_on(held_out_ids, loaded)
print(f"before: new text {new:.2f} bits a byte, old text {old:.2f}")
for method in ("full", "last", "lora"):
    tuned = fine_tuned(method, steps)
    new, old = bits_on(new_held_out, tuned), bits_on(held_out_ids, tuned)
    costs = tuning_costs(loaded, method, ADAPTED, rank=4)
    print(
        f"{method:>6}: new text {new:.2f} bits a byte, old text {old:.2f}; "
        f"{costs['trained']} numbers trained, {costs['optimizer']} bytes of averages"
    )

# %% [markdown]
# ## 13. How much a text repeats itself
#
# ★☆☆ · about 10 minutes
#
# Bits a byte say how well a model *predicts*. They do not say what it *writes*: the same model, at a low temperature,
# may write "and the and the and the". A simple measure is the share of different ones among all runs of $n$ tokens
# (Li et al., 2016, call it distinct-$n$): 1 where no run occurs twice. A text of $N$ tokens has $N - n + 1$ runs, and they
# overlap. Compare only texts of the same length: a long one repeats itself more.
#
# **Predict first.** The text is "abababab". What is its distinct-2?

# %% predict="distinct_ngrams"
predict(
    "What is the distinct-2 of abababab?",
    answer=0.2857,
    atol=0.001,
    because="Two different ones, ab and ba, among seven.",
)


# %% question="distinct_ngrams"
def distinct_ngrams(ids, n):
    """The share of different n-grams in each text (Li et al., 2016).

    Args:
        ids: int64 [B, N].
        n: how many tokens a run has, from 1 to N.

    Returns:
        float64 [B]: different runs of n tokens divided by all N - n + 1 of the row.

    Raises:
        ValueError: n is below 1 or above N; both in the message.
    """
    ### BEGIN SOLUTION
    length = ids.shape[1]
    if not 1 <= n <= length:
        raise ValueError(f"texts of {length} tokens have no runs of {n}")
    runs = ids.unfold(1, n, 1).tolist()  # [B, N - n + 1, n]
    shares = [len(set(map(tuple, row))) / len(row) for row in runs]
    return torch.tensor(shares, dtype=torch.float64)
    ### END SOLUTION


# %% check="distinct_ngrams"
texts = torch.tensor([[0, 1, 0, 1, 0, 1, 0, 1], [0, 1, 2, 3, 4, 5, 6, 7]])
expect(
    distinct_ngrams(texts, 2),
    torch.tensor([2 / 7, 1.0], dtype=torch.float64),
    hint="Runs overlap: 8 tokens have 7 pairs. Each row counts for itself.",
)
expect(
    distinct_ngrams(texts, 1),
    torch.tensor([0.25, 1.0], dtype=torch.float64),
    hint="Two different tokens among eight.",
)


# %% demo="writing"
def written(weights, num_new, temperature, rows=8):
    """Characters that a model writes after a line break, [rows, num_new]."""
    dice = torch.Generator().manual_seed(0)
    ids = torch.full((rows, 1), alphabet.index(ord("\n")))
    with torch.no_grad():
        for _ in range(num_new):
            window = ids[:, -BASE["context_length"] :]
            logits = decoder(window, weights, BASE)[:, -1]
            p = torch.softmax(logits / temperature, dim=-1)
            ids = torch.cat([ids, torch.multinomial(p, 1, generator=dice)], dim=1)
    return ids[:, 1:]


count = 20 if QUICK else 120
for temperature in (0.1, 0.5, 1.0):
    ids = written(loaded, count, temperature)
    shares = [float(distinct_ngrams(ids, n).mean()) for n in (1, 2, 4)]
    text = bytes(alphabet[i] for i in ids[0].tolist()).decode()
    print(f"temperature {temperature}: distinct-1, -2, -4 = {shares}\n{text!r}")
ids = held_out_ids[: 8 * count].view(8, count)
print("Shakespeare:", [float(distinct_ngrams(ids, n).mean()) for n in (1, 2, 4)])

# %% [markdown]
# ## 14. What if T = 1000?
#
# ★☆☆ · about 15 minutes
#
# The lectures begin with a decoder that gets one vector, of a fixed size, for a whole sentence, and ask: *what if
# T = 1000?* Then attention comes, and the question is left. Here is the answer, measured. The toy language below has
# sentences of random words, and a translation is the same words from back to front. Two models are trained on short
# sentences: one with a fixed context, one with attention. Then they translate longer ones.
#
# What is to be measured is the share of right words **at each length**. A batch has sentences of many lengths, filled
# up; what stands behind the end of a sentence does not count.
#
# **Predict first.** Nineteen words are equally likely at each place, independently of each other. Which share is right
# if somebody guesses? That is the bottom of the picture below.

# %% predict="accuracy_by_length"
predict(
    "Which share of the words is right by guessing?",
    answer=0.0526,
    atol=0.003,
    because="1/19. A model whose context has lost the beginning of the sentence does "
    "not do better at the words that come from there.",
)


# %% question="accuracy_by_length"
def accuracy_by_length(predicted, targets, lengths):
    """The share of right words, for each length of a sentence.

    Args:
        predicted, targets: int64 [B, T], words; what stands at places from lengths[b]
            on does not count.
        lengths: int64 [B], from 1 to T.

    Returns:
        list of (length, share), an int and a Python float, one for each length that
        occurs, shortest first.

    Raises:
        ValueError: the shapes of predicted and targets differ, there are not B lengths,
            or a length is outside 1 … T; the sizes in the message.
    """
    ### BEGIN SOLUTION
    rows, t = targets.shape
    if predicted.shape != targets.shape or len(lengths) != rows:
        raise ValueError(f"words {list(predicted.shape)}, {list(targets.shape)}; {len(lengths)} lengths")
    table = []
    for length in lengths.unique().tolist():  # sorted
        if not 1 <= length <= t:
            raise ValueError(f"a sentence of {length} words, in {t} places")
        chosen = lengths == length
        right = predicted[chosen, :length] == targets[chosen, :length]
        table.append((length, right.double().mean().item()))
    return table
    ### END SOLUTION


# %% check="accuracy_by_length"
targets = torch.tensor([[1, 2, 0], [1, 2, 3], [3, 1, 0]])
predicted = torch.tensor([[1, 1, 0], [1, 2, 3], [3, 1, 2]])
expect(
    accuracy_by_length(predicted, targets, torch.tensor([2, 3, 2])),
    [(2, 0.75), (3, 1.0)],
    hint="Three of four words of the two short sentences, and all of the long one.",
)


# %% demo="fixed_context"
WORDS, LONGEST = 20, 8


def trained_translator(attention, steps):
    """A translator after training on sentences of 1 to 8 words."""
    torch.manual_seed(0)
    model = Translator(WORDS, 48, attention)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    dice = torch.Generator().manual_seed(1)
    for step in range(steps):
        source, target = toy_sentences(64, 1 + step % LONGEST, WORDS, dice)
        loss = smoothed_loss(model(source, target)[0], target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


def words_of(model, source):
    """The translation of source: each word is read before the next is written."""
    target = torch.zeros_like(source)
    for place in range(source.shape[1]):
        target[:, place] = model(source, target)[0][:, place].argmax(dim=-1)
    return target


lengths = [2, 4, 8] if QUICK else [2, 4, 6, 8, 10, 12, 16]
_, (curves, heat) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for attention in (False, True):
    model = trained_translator(attention, 8 if QUICK else 4000 if LONG else 400)
    dice = torch.Generator().manual_seed(2)
    predicted, targets = [], []
    with torch.no_grad():
        for length in lengths:
            source, target = toy_sentences(60, length, WORDS, dice)
            fill = (0, lengths[-1] - length)
            predicted.append(torch.nn.functional.pad(words_of(model, source), fill))
            targets.append(torch.nn.functional.pad(target, fill))
    each_length = torch.tensor(lengths).repeat_interleave(60)
    table = accuracy_by_length(torch.cat(predicted), torch.cat(targets), each_length)
    name = "attention" if attention else "one fixed context"
    print(f"{name:>17}: {[(length, round(share, 2)) for length, share in table]}")
    curves.plot(*zip(*table, strict=True), "o-", label=name)
curves.axvline(LONGEST, color="grey", linestyle=":")
curves.set(
    xlabel="words in the sentence (trained up to the dotted line)",
    ylabel="share of right words", ylim=(0, 1.05), title="What if T = 1000?",
)  # fmt: skip
curves.legend()
with torch.no_grad():
    source, target = toy_sentences(1, LONGEST, WORDS, dice)
    picture = model(source, target)[1][0]
heat.imshow(picture, vmin=0, cmap="viridis")
heat.set_xticks(range(LONGEST), source[0].tolist())
heat.set_yticks(range(LONGEST), target[0].tolist())
heat.set(xlabel="read", ylabel="written", title="Where each written word looked")
plt.show()

# %% [markdown]
# ## 15. Find the error in a rule that everybody quotes
#
# ★★☆ · about 15 minutes
#
# "Training costs $6$ FLOPs a parameter a token": with $N$ parameters and $T$ tokens, $C = 6NT$. It is quoted in papers,
# in posts and in applications for computing time. Two thirds are the backward pass, one third the forward pass, and a
# parameter is one multiply-add.
#
# One kind of product has no parameters. Scores and weighted sums multiply tokens with tokens, and the rule leaves them
# out. The paper that the rule is from says so, and says when it may be: as long as the context is short against twelve
# times the width. Those who quote it seldom do. The lectures call attention's cost $O(N^2)$, so it can be arbitrarily
# wrong.
#
# Prove it by numbers: give a setup whose step costs at least `factor` times what the rule says. The parameters are all
# of them: every matrix of the blocks and the tied embedding, which is the head. Norms have no products and are left out
# of $N$, and there are no learned positions.
#
# **Predict first.** $D = 768$, $F = 4D$, and many layers. At which context does a step cost twice what the rule says?

# %% predict="six_n_counterexample"
predict(
    "At about which number of tokens?",
    answer=4608,
    atol=100,
    because="A block has 12D² parameters, 24D² FLOPs a token, and attention adds 4ND: "
    "as much at N = 6D. (The paper counts the masked half as free, hence twelve.)",
)


# %% question="six_n_counterexample"
def six_n_counterexample(factor):
    """A setup for which "6 FLOPs a parameter a token" is too low.

    Args:
        factor: a number from 1 to 10⁶.

    Returns:
        a setup with all its entries; tied is True, positions is "none" or "rotary", and
        training_flops(setup) is at least factor · 6 · N · T. N counts the numbers of
        embed and of all matrices of the blocks, and T is batch · context_length. All
        sizes are at least 1 and at most 10¹².
    """
    ### BEGIN SOLUTION
    d = 2  # with V = 2: N = 4 + 4 · 4 + 2 · 4 = 28, and attention costs 3 · 4 · n · 2
    return {
        "vocab_size": 2, "d_model": d, "num_layers": 1, "num_heads": 1, "num_kv_heads": 1, "d_ff": d,
        "context_length": math.ceil(7 * factor),  # 6 · 28 + 24 n is at least factor · 6 · 28
        "positions": "none", "norm": "pre", "activation": "relu", "tied": True,
        "dropout": 0.0, "smoothing": 0.0, "rate": 0.01, "batch": 1, "parts": 1,
    }  # fmt: skip
    ### END SOLUTION


# %% check="six_n_counterexample"
for factor in (1.5, 10):
    setup = six_n_counterexample(factor)
    tensors = list_tensors(random_params(setup))
    N = sum(t.numel() for t in tensors if t.dim() == 2)
    rule = 6 * N * setup["batch"] * setup["context_length"]
    expect(
        training_flops(setup) >= factor * rule,
        True,
        hint=f"This setup costs {training_flops(setup) / rule:.2f} times what the rule says; {factor} times was asked. "
        "Which part of the cost has no parameters, and what makes it grow?",
    )

# %% [markdown] written="unfair_comparison" points=5
# ## 16. In your own words
#
# A friend writes: *"I replaced the ReLU of our model by a SwiGLU, with the same F. After 1000 steps each, it reaches
# 1.512 bits a byte, and the ReLU 1.538. For the SwiGLU I tried five rates and took the best; the ReLU had the rate that
# we always use. The loss is that of the last batches of training. SwiGLU is better."* (a) Name four things that make the
# comparison unfair or the numbers doubtful, and for each say what to do instead. (b) Done right with four seeds, the
# differences (ReLU minus SwiGLU) are 0.02, −0.01, 0.03 and 0.00. What do you conclude, with numbers? Six to eight
# sentences.
#
# ### BEGIN SOLUTION
# (a) With the same F the SwiGLU has half as many parameters again in its MLPs, so F should be two thirds. Equal steps are
# not equal costs: both should get the same budget in FLOPs. One was tuned and the other was not: both need the same sweep
# of rates. The loss is measured on training batches: held-out text, the same for both, is needed. And there is one run
# each: several seeds, the same for both, show how much is luck. (b) The mean difference is 0.01. The deviation of the
# differences is 0.0183, and the standard error of their mean 0.0091. The mean is 1.1 standard errors: undecided. It may
# well be that SwiGLU is a little better; these four pairs do not show it.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 3 points: (a) four of: equal parameters, equal FLOPs, the same search for both, held-out text, several paired seeds,
#   each with its remedy (1 point for two of them, 2 for three).
# - 2 points: (b) mean 0.01 and standard error about 0.009 (1 point), and the conclusion that it is undecided (1 point).
# ### END MARK SCHEME
