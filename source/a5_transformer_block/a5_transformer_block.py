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
# # Assignment 5: the transformer block
#
# Attention lets tokens exchange information. Alone it makes a poor network: its output is a weighted average of
# values, stacking averages of averages blurs everything, and nothing keeps the numbers at a size that the next layer
# can use. A transformer *block* puts attention into good company. An **MLP** computes with what each token has
# collected, a **residual connection** carries every token past both unchanged, and a **norm** keeps the sizes in
# check. Blocks of the same shape are then stacked, twelve or ninety-six of them. That is the whole architecture.
#
# ![Post-norm: the norms stand on the residual path. Pre-norm: on the branches.](figures/blocks.svg)
#
# You build every part: two norms (one of them with its backward pass, by hand), and a third to see why transformers
# do not use it, two MLPs, the rotary positions that many of today's models use, the block in both orders of norm and
# residual, and the mixture of experts. In the end you train twelve layers of each kind of block and look at the
# gradients.
#
# | | function | what it gives | difficulty, estimated time |
# |---|---|---|---|
# | 1 | `layer_norm` | every token back to mean 0 and variance 1 | ★☆☆, 20 min |
# | 2 | `layer_norm_backward` | its gradients, by hand | ★★★, 50 min |
# | 3 | `rms_norm` | the same without the mean | ★☆☆, 10 min |
# | 4 | `batch_norm` | the norm that looks at the others | ★★☆, 25 min |
# | 5 | `mlp` | the computation between two attentions | ★☆☆, 20 min |
# | 6 | `swiglu` | an MLP with a gate | ★☆☆, 15 min |
# | 7 | `swiglu_hidden` | how wide the gated MLP may be | ★☆☆, 10 min |
# | 8 | `rotary_positions` | positions as rotations | ★★☆, 40 min |
# | 9 | `post_norm_block` | the block of 2017 | ★★☆, 30 min |
# | 10 | `pre_norm_block` | the block of today | ★☆☆, 15 min |
# | 11 | `moe_layer` | many MLPs, few of them per token | ★★★, 50 min |
# | 12 | `rounding_counterexample` | the error in the notes | ★★☆, 30 min |
# | 13 | a written answer | what the place of the norm decides | 15 min |
#
# **Conventions of this course**
#
# - Every function is pure: weights come in as arguments, inputs are never changed in place.
# - A weight matrix is `[in, out]` and multiplies from the right, `x @ w`. (`nn.Linear` stores `[out, in]`. Here
#   nothing needs to be transposed.)
# - Tokens are rows. `B` is the batch, `N` the number of tokens, `D` the model width, `F` the width inside an MLP,
#   `H` the number of heads, `d` the width of a head, `E` the number of experts. `...` stands for any leading axes,
#   also none.
# - Masks are boolean, **True = may attend**.
# - The result has the dtype of the inputs. Half precision computes its norms and softmaxes in float32 inside.
# - Arguments whose sizes cannot match raise `ValueError` with the sizes in the message.

# %% given="imports"
import math

import torch

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% [markdown]
# From the earlier assignments you have masked multi-head attention. `random_block` makes the weights of one block; look
# at its names and shapes, they are the `params` of questions 9 and 10.
#
# Your own answers may take the place of what is given: `python make_my_course.py` with the names of your notebooks so
# far makes them a module, and prints the line that goes into a cell below.


# %% given="library" module="library"
def causal_mask(n_q, n_k=None):
    """bool [N_q, N_k]: query i may see key j when j <= i + N_k - N_q (assignment 3)."""
    n_k = n_q if n_k is None else n_k
    return torch.arange(n_k) <= torch.arange(n_q)[:, None] + (n_k - n_q)


def masked_softmax(scores, mask):
    """Softmax of scores [..., N_q, N_k] over the allowed keys; zeros where no key is
    allowed (assignment 3).
    """
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    empty = ~mask.any(dim=-1, keepdim=True)  # [..., N_q, 1]
    wide = wide.masked_fill(~mask, float("-inf")).masked_fill(empty, 0.0)
    return torch.softmax(wide, dim=-1).masked_fill(~mask, 0.0).to(scores.dtype)


def multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    """Self-attention with H heads: x [B, N, D] -> [B, N, D] (assignment 4).

    w_q, w_k, w_v are [D, H*d], w_o is [H*d, D]. The mask is None, [N, N], [B, N, N] or
    [B, 1, N], or has four axes. ValueError where the columns do not divide into the
    heads.
    """
    batch, length, _ = x.shape
    width = w_q.shape[1]
    if num_heads < 1 or width % num_heads != 0:
        raise ValueError(f"{width} columns do not divide into {num_heads} heads")
    q, k, v = (
        # [B, H, N, d]
        (x @ w).reshape(batch, length, num_heads, width // num_heads).transpose(1, 2)
        for w in (w_q, w_k, w_v)
    )
    # float16 has no score above 65504
    wide = torch.promote_types(x.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1)  # [B, H, N, N]
    scores = scores / math.sqrt(width // num_heads)
    if mask is None:
        mask = torch.ones(length, length, dtype=torch.bool)
    if mask.dim() == 3:
        mask = mask.unsqueeze(1)  # [B, 1, N, N]: the same for every head
    y = (masked_softmax(scores, mask) @ v.to(wide)).to(x.dtype)  # [B, H, N, d]
    return y.transpose(1, 2).reshape(batch, length, width) @ w_o  # [B, N, D]


def random_block(d_model, num_heads, d_head, d_ff, generator):
    """Weights of one block: random matrices of size 1/sqrt(in), norms that start at
    gamma = 1 and beta = 0.
    """

    def matrix(rows, columns):
        return torch.randn(rows, columns, generator=generator) / math.sqrt(rows)

    inner = num_heads * d_head
    return {
        "w_q": matrix(d_model, inner),
        "w_k": matrix(d_model, inner),
        "w_v": matrix(d_model, inner),
        "w_o": matrix(inner, d_model),
        "ln1_gamma": torch.ones(d_model),
        "ln1_beta": torch.zeros(d_model),
        "ln2_gamma": torch.ones(d_model),
        "ln2_beta": torch.zeros(d_model),
        "w1": matrix(d_model, d_ff),
        "b1": torch.zeros(d_ff),
        "w2": matrix(d_ff, d_model),
        "b2": torch.zeros(d_model),
    }


# %% [markdown]
# ## 1. Layer normalization
#
# ★☆☆ · about 20 minutes
#
# Every block adds to the residual stream, so its size drifts from layer to layer. Layer normalization brings each token
# back to mean 0 and variance 1 **over its own features**, and then lets the model pick a scale and a shift for each
# feature:
#
# $$\mu = \frac1D\sum_j x_j \qquad \sigma^2 = \frac1D\sum_j (x_j-\mu)^2 \qquad
#   y_j = \gamma_j\,\frac{x_j-\mu}{\sqrt{\sigma^2+\varepsilon}} + \beta_j$$
#
# ![Layer norm takes statistics along each row, batch norm along each column.](figures/which_axis.svg)
#
# Two details decide whether your layer agrees with everyone else's weights. The variance divides by $D$, not by $D-1$.
# And $\varepsilon$ stands *inside* the root: a token whose features are all equal becomes $\beta$. The notes
# leave $\varepsilon$ out, and the same token is $0/0$ there.
#
# A third detail is about numbers, not about formulas. $\frac1D\sum x_j^2 - \mu^2$ is the same variance on paper. In
# float32, with features around 1000, it is the difference of two numbers near a million that agree in all the digits
# that float32 has. Subtract the mean first, then square.
#
# **Predict first.** Three tokens: $(1.5, 3, 4.5)$, $(6, 7.5, 9)$, $(10.5, 12, 13.5)$. What will they look like after
# normalization, and why the same? Write it down, then run the check.

# %% predict="layer_norm"
predict(
    "The last number of each token after normalization?",
    answer=1.2247,
    atol=0.01,
    because="(−1.2247, 0, 1.2247) three times: the tokens differ in their mean and in "
    "nothing else.",
)


# %% question="layer_norm"
def layer_norm(x, gamma, beta, eps=1e-5):
    """Normalize each token over its features, then scale and shift (Ba et al., 2016).

    Args:
        x: [..., D], floating point.
        gamma: [D], scale.
        beta: [D], shift.
        eps: added to the variance, inside the root.

    Returns:
        [..., D] in the dtype of x; half precision is normalized in float32.

    Raises:
        ValueError: gamma or beta is not of shape [D].
    """
    ### BEGIN SOLUTION
    d = x.shape[-1]
    if gamma.shape != (d,) or beta.shape != (d,):
        raise ValueError(f"gamma and beta must be [{d}], got {list(gamma.shape)} and {list(beta.shape)}")
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    centred = wide - wide.mean(dim=-1, keepdim=True)  # [..., D]
    variance = centred.pow(2).mean(dim=-1, keepdim=True)  # [..., 1], divides by D
    return (centred / torch.sqrt(variance + eps) * gamma + beta).to(x.dtype)
    ### END SOLUTION


# %% check="layer_norm"
tokens = torch.tensor([[1.5, 3.0, 4.5], [6.0, 7.5, 9.0], [10.5, 12.0, 13.5]])
expect(
    layer_norm(tokens, gamma=torch.ones(3), beta=torch.zeros(3)),
    torch.tensor([-1.2247408, 0.0, 1.2247408]).expand(3, 3),
    hint="Rows that differ by a shift must come out equal: do the means line up with the rows? "
    "±1 instead of ±1.2247? Look at what the variance divides by. ±1.2247449? Then eps is missing.",
)
expect(
    layer_norm(
        tokens[:1],
        gamma=torch.tensor([1.0, 2.0, 3.0]),
        beta=torch.tensor([10.0, 20.0, 30.0]),
    ),
    torch.tensor([[8.7752592, 20.0, 33.6742224]]),
    atol=1e-5,
    hint="First the scale, then the shift: 3 · 1.2247 + 30 for the last feature.",
)
expect(
    layer_norm(
        torch.full((1, 3), 7.0), torch.ones(3), torch.tensor([1.0, 2.0, 3.0])
    ),
    torch.tensor([[1.0, 2.0, 3.0]]),
    hint="All features equal: the variance is 0. What keeps the root away from 0?",
)

# %% [markdown]
# ## 2. Its backward pass
#
# ★★★ · about 50 minutes
#
# Autograd would do this for you. Do it once by hand: you will see why a norm changes how a network learns, and a kernel
# for a GPU needs exactly these formulas.
#
# Write $s = 1/\sqrt{\sigma^2+\varepsilon}$, $\hat x = (x-\mu)\,s$ and $y = \gamma\odot\hat x + \beta$. A gradient
# $dy$ comes in from above. Two of the three answers are short. $\gamma$ and $\beta$ are shared by all tokens, so
# the contributions of all tokens add up:
#
# $$d\gamma = \sum_{\text{tokens}} dy \odot \hat x \qquad d\beta = \sum_{\text{tokens}} dy$$
#
# For $dx$, start with $g = dy\odot\gamma$, the gradient at $\hat x$. If $\mu$ and $s$ were constants, $dx$ would be
# $s\,g$. They are not: moving one $x_j$ moves the mean and the variance, and with them *all* features of the token.
# Working out both effects subtracts two things:
#
# $$dx = s\,\Bigl(g - \underbrace{\operatorname{mean}(g)}_{\text{from }\mu}
#   - \hat x\,\underbrace{\operatorname{mean}(g\odot\hat x)}_{\text{from }\sigma}\Bigr)$$
#
# with means over the $D$ features of the token. Derive it on paper before you type it: $\partial\mu/\partial x_j = 1/D$
# and $\partial\sigma^2/\partial x_j = 2(x_j-\mu)/D$ are all you need.
#
# The formula has a meaning. Adding the same number to all features of $x$ does not change $y$, and (with a tiny
# $\varepsilon$) neither does multiplying $x - \mu$ by a positive number. So $dx$ has no part in these two directions: it
# sums to zero, and it is orthogonal to $\hat x$. That is the first test to run on your own code.
#
# What goes wrong: $\gamma$ is applied to $dy$ *before* the means, not after; and the sums of $d\gamma$ run over
# **all** leading axes, however many there are.
#
# **Predict first.** With $D = 2$ and $\varepsilon = 0$, $\hat x$ is always $(-1, 1)$ or $(1, -1)$. What must $dx$ be?

# %% predict="layer_norm_backward"
predict(
    "What must dx be?",
    answer=0,
    because="x̂ takes two values only, so a small step of x changes nothing.",
)


# %% question="layer_norm_backward"
def layer_norm_backward(dy, x, gamma, eps=1e-5):
    """Gradients of layer normalization, written out by hand (no autograd).

    Args:
        dy: [..., D], the gradient at the output of layer_norm(x, gamma, beta, eps).
        x: [..., D], its input.
        gamma: [D], its scale.
        eps: as in the forward pass.

    Returns:
        (dx, dgamma, dbeta): [..., D], [D], [D], in the dtype of x; the last two are
        summed over all leading axes. Half precision is computed and summed in float32.

    Raises:
        ValueError: dy and x have different shapes, or gamma is not [D].
    """
    ### BEGIN SOLUTION
    d = x.shape[-1]
    if dy.shape != x.shape or gamma.shape != (d,):
        raise ValueError(f"dy {list(dy.shape)}, x {list(x.shape)} and gamma {list(gamma.shape)} do not fit together")
    dtype = x.dtype
    if dtype not in (torch.float32, torch.float64):
        dy, x, gamma = dy.float(), x.float(), gamma.float()
    centred = x - x.mean(dim=-1, keepdim=True)
    s = 1 / torch.sqrt(centred.pow(2).mean(dim=-1, keepdim=True) + eps)  # [..., 1]
    xhat = centred * s  # [..., D]
    g = dy * gamma  # [..., D], the gradient at xhat
    through_mean = g.mean(dim=-1, keepdim=True)  # [..., 1]
    through_variance = xhat * (g * xhat).mean(dim=-1, keepdim=True)  # [..., D]
    dx = s * (g - through_mean - through_variance)
    dgamma = (dy * xhat).reshape(-1, d).sum(dim=0)  # [D], over all tokens
    dbeta = dy.reshape(-1, d).sum(dim=0)  # [D]
    return dx.to(dtype), dgamma.to(dtype), dbeta.to(dtype)
    ### END SOLUTION


# %% check="layer_norm_backward"
x = torch.tensor([[-1.0, -1.0, 2.0]])  # mean 0, variance 2
dy = torch.tensor([[6.0, 0.0, 0.0]])
dx, dgamma, dbeta = layer_norm_backward(
    dy, x, gamma=torch.tensor([2.0, 1.0, 1.0]), eps=0.0
)
expect(
    dx,
    torch.tensor([[4.2426407, -4.2426407, 0.0]]),
    atol=1e-5,
    hint="g = (12, 0, 0), its mean is 4, and mean(g · xhat) = −2√2. dx is zero in the direction of xhat: "
    "dx · (−1, −1, 2) = 0.",
)
expect(
    dgamma,
    torch.tensor([-4.2426407, 0.0, 0.0]),
    atol=1e-5,
    hint="dy times the normalized x, not x itself.",
)
expect(
    dbeta,
    torch.tensor([6.0, 0.0, 0.0]),
    hint="One token, so the sum over the tokens is dy itself, as [D].",
)

dx, dgamma, dbeta = layer_norm_backward(
    dy.expand(2, 5, 3), x.expand(2, 5, 3), torch.ones(3), eps=0.0
)
expect(
    dbeta,
    torch.tensor([60.0, 0.0, 0.0]),
    hint="Ten tokens on two leading axes: the sum runs over both axes.",
)

# %% [markdown]
# ## 3. RMS normalization
#
# ★☆☆ · about 10 minutes
#
# Does the mean matter? Little, found Zhang and Sennrich (2019). Their RMSNorm leaves it out, and the shift $\beta$ too,
# and keeps what controls the size:
#
# $$\mathrm{RMS}(x) = \sqrt{\varepsilon + \frac1D\sum_j x_j^2} \qquad y_j = \gamma_j\,\frac{x_j}{\mathrm{RMS}(x)}$$
#
# One statistic instead of two, and one pass over the numbers. Watch the same details as before: a *mean* of squares,
# not a sum, and $\varepsilon$ inside the root. And mind half precision: float16 ends at 65504, so a feature of 300
# has a square that is infinite.
#
# **Predict first.** What do `layer_norm` and `rms_norm` make of the token $(5, 5, 5)$?

# %% predict="rms_norm"
predict(
    "What does `rms_norm` make of (5, 5, 5): the first number?",
    answer=1,
    because="rms_norm gives (1, 1, 1). layer_norm subtracts the mean first and gives "
    "(0, 0, 0).",
)


# %% question="rms_norm"
def rms_norm(x, gamma, eps=1e-6):
    """Divide each token by the root mean square of its features, then scale (Zhang and
    Sennrich, 2019).

    Args:
        x: [..., D], floating point.
        gamma: [D], scale (the factor itself, not 1 + gamma).
        eps: added to the mean of the squares, inside the root.

    Returns:
        [..., D] in the dtype of x; half precision is normalized in float32.

    Raises:
        ValueError: gamma is not of shape [D].
    """
    ### BEGIN SOLUTION
    if gamma.shape != (x.shape[-1],):
        raise ValueError(f"gamma must be [{x.shape[-1]}], got {list(gamma.shape)}")
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    mean_square = wide.pow(2).mean(dim=-1, keepdim=True)  # [..., 1]
    return (wide / torch.sqrt(mean_square + eps) * gamma).to(x.dtype)
    ### END SOLUTION


# %% check="rms_norm"
expect(
    rms_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 10.0])),
    torch.tensor([[0.8485281, 11.3137085]]),
    atol=1e-5,
    hint="The mean of 9 and 16 is 12.5. 0.6 and 8? That is the sum of the squares under the root.",
)
expect(
    rms_norm(torch.full((2, 3), 5.0), torch.ones(3)),
    torch.ones(2, 3),
    hint="Nothing is subtracted: equal features stay equal to each other and become 1.",
)

# %% [markdown]
# ## 4. Batch normalization, and why not
#
# ★★☆ · about 25 minutes
#
# The older layer of this kind takes its statistics the other way, as on the right of the picture in question 1: **each
# feature over all tokens of the batch**. With $T$ tokens on all leading axes together:
#
# $$\mu_j = \frac1T\sum_t x_{tj} \qquad \sigma_j^2 = \frac1T\sum_t (x_{tj}-\mu_j)^2 \qquad
#   y_{tj} = \gamma_j\,\frac{x_{tj}-\mu_j}{\sqrt{\sigma_j^2+\varepsilon}} + \beta_j$$
#
# So every output depends on every token of the batch: on the other sentences, and on how many zeros somebody padded
# them with. A sentence that is alone is normalized by itself. Nobody wants that when the model is used, so the layer
# has two modes. In **training** it normalizes as above, and besides keeps *running* statistics, a slow average over
# batches, with the momentum $\alpha$ ($0.1$ by custom):
#
# $$\bar\mu \leftarrow (1-\alpha)\,\bar\mu + \alpha\,\mu \qquad
#   \bar\sigma^2 \leftarrow (1-\alpha)\,\bar\sigma^2 + \alpha\,\frac{T}{T-1}\,\sigma^2$$
#
# In **evaluation** it normalizes with $\bar\mu$ and $\bar\sigma^2$ and looks at nobody. Here every token is treated
# alone, and a batch of one is as good as any other.
#
# Read the formulas for what is easily lost. The variance that *normalizes* divides by $T$; the one that is *kept*
# divides by $T-1$, the estimate for data to come. (PyTorch's layer does the same.) In training the fresh statistics
# normalize, not the running ones. They depend on $x$, and gradients flow through them; the running statistics are a
# record, and nothing flows through that.
#
# Your function is pure, as all in this course: it returns the new statistics and leaves the old ones as they are.
#
# **Predict first.** You change one word of the last sentence in a batch. Which outputs change with layer norm, which
# with batch norm in training, which with batch norm in evaluation?

# %% predict="batch_norm"
predict(
    "With batch norm in training, which outputs change?",
    "those of the word",
    "those of the sentence",
    "all of the batch",
    answer="all of the batch",
    because="Mean and variance are taken over the whole batch. With layer norm, and "
    "with batch norm in evaluation, only the word's own output changes.",
)


# %% question="batch_norm"
def batch_norm(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5
):
    """Normalize each feature over all tokens of the batch, then scale and shift (Ioffe
    and Szegedy, 2015).

    Args:
        x: [..., D], floating point; T tokens on all leading axes together.
        gamma: [D], scale.
        beta: [D], shift.
        running_mean: [D], the mean that earlier batches left; float32 or float64.
        running_var: [D], their variance, likewise.
        training: True: normalize with this batch's mean and variance (which divides by
            T), and update the running statistics. False: normalize with the running
            statistics.
        momentum: the weight of this batch in the new running statistics.
        eps: added to the variance, inside the root.

    Returns:
        (y, new_mean, new_var): y [..., D] in the dtype of x (half precision is
        normalized in float32), with gradients through the batch's mean and variance in
        training; new_mean and new_var [D] in the dtype of the running
        statistics and detached. In training they are (1 - momentum) * running +
        momentum * batch, where the batch's variance divides by T - 1; in evaluation
        they have the values that came in. Nothing that came in is changed.

    Raises:
        ValueError: gamma, beta, running_mean or running_var is not of shape [D];
            training with fewer than two tokens (T in the message).
    """
    ### BEGIN SOLUTION
    d = x.shape[-1]
    for vector in (gamma, beta, running_mean, running_var):
        if vector.shape != (d,):
            raise ValueError(f"gamma, beta and the running statistics must be [{d}], got {list(vector.shape)}")
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    if training:
        tokens = wide.reshape(-1, d)  # [T, D]
        t = len(tokens)
        if t < 2:
            raise ValueError(f"the variance of a batch needs two tokens, got {t}")
        mean = tokens.mean(dim=0)  # [D]
        var = (tokens - mean).pow(2).mean(dim=0)  # [D], divides by T
        running_mean = (1 - momentum) * running_mean + momentum * mean.detach().to(running_mean.dtype)
        estimate = var.detach().to(running_var.dtype) * t / (t - 1)
        running_var = (1 - momentum) * running_var + momentum * estimate
    else:
        mean, var = running_mean, running_var
    y = (wide - mean) / torch.sqrt(var + eps) * gamma + beta  # [..., D]
    return y.to(x.dtype), running_mean, running_var
    ### END SOLUTION


# %% check="batch_norm"
# two sentences of two tokens
x = torch.tensor([[[1.0, 0.0], [3.0, 10.0]], [[5.0, 20.0], [7.0, 30.0]]])
y, mean, var = batch_norm(
    x,
    torch.ones(2),
    torch.zeros(2),
    torch.zeros(2),
    torch.ones(2),
    training=True,
    eps=0.0,
)
expect(
    y[..., 0],
    torch.tensor([[-1.3416408, -0.4472136], [0.4472136, 1.3416408]]),
    atol=1e-5,
    hint="The first feature is 1, 3, 5, 7: mean 4, variance 5, over both sentences. ±1? Then each sentence has "
    "statistics of its own.",
)
expect(
    mean,
    torch.tensor([0.4, 1.5]),
    atol=1e-5,
    hint="0.9 of the old mean, 0, and 0.1 of the batch's, (4, 15).",
)
expect(
    var,
    torch.tensor([0.9 + 20 / 30, 0.9 + 500 / 30]),
    atol=1e-4,
    hint="0.9 of the old variance, 1, and 0.1 of the batch's, (20/3, 500/3): what is kept divides by T − 1.",
)
y, mean, var = batch_norm(
    torch.tensor([[5.0, 7.0]]),
    gamma=torch.tensor([1.0, 10.0]),
    beta=torch.tensor([0.0, 1.0]),
    running_mean=torch.tensor([3.0, 7.0]),
    running_var=torch.tensor([4.0, 9.0]),
    training=False,
    eps=0.0,
)
expect(
    y,
    torch.tensor([[1.0, 1.0]]),
    hint="Evaluation: (5 − 3) / 2, and (7 − 7) / 3 · 10 + 1. One token is enough.",
)
expect(
    mean,
    torch.tensor([3.0, 7.0]),
    hint="Evaluation learns nothing: the statistics stay as they came.",
)

# %% [markdown]
# Now the experiment of your prediction. We ask for the first sentence's outputs four times: in the batch as it is; with
# another sentence beside it; with six tokens of padding behind every sentence; and alone. By how much do they move?

# %% demo="who_changes"
draw = torch.Generator().manual_seed(2)
batch = torch.randn(3, 6, 8, generator=draw)  # three sentences of six tokens
other = torch.cat([batch[:2], 3 * torch.randn(1, 6, 8, generator=draw)])
padded = torch.cat([batch, torch.zeros(3, 6, 8)], dim=1)
weights = (torch.ones(8), torch.zeros(8))
layers = {
    "layer norm": lambda x: layer_norm(x, *weights),
    "batch norm, training": lambda x: batch_norm(
        x, *weights, torch.zeros(8), torch.ones(8), True
    )[0],
    "batch norm, evaluation": lambda x: batch_norm(
        x, *weights, torch.zeros(8), torch.ones(8), False
    )[0],
}
print(
    f"{'largest change in sentence 0':30}{'another sentence':>18}"
    f"{'padding':>10}{'alone':>10}"
)
for name, layer in layers.items():
    changes = [
        (layer(x)[0, :6] - layer(batch)[0]).abs().max().item()
        for x in (other, padded, batch[:1])
    ]
    print(f"{name:30}{changes[0]:18.3f}{changes[1]:10.3f}{changes[2]:10.3f}")

# %% [markdown]
# Texts come in all lengths, decoding goes token by token, and a large batch is spread over many machines. A layer that
# looks at the others fits none of this; a token that is normalized by itself is the same everywhere. Images of one size
# in large batches are another matter: there batch norm is at home.

# %% [markdown]
# ## 5. The MLP
#
# ★☆☆ · about 20 minutes
#
# Attention mixes tokens *linearly*: given the weights, the output is a sum of values. The nonlinear computation happens
# between two attentions, in an MLP (also called FFN) that every token goes through **alone**:
#
# $$y = \phi(x\,w_1 + b_1)\,w_2 + b_2 \qquad D \to F \to D, \quad \text{usually } F = 4D$$
#
# Two thirds of a block's parameters are in here. Without $\phi$ it would all be in vain: two linear maps in a row are
# one linear map. The lecture uses $\mathrm{ReLU}(z) = \max(z, 0)$; many models use $\mathrm{GELU}(z) = z\,\Phi(z)$,
# where $\Phi$ is the distribution function of the standard normal, $\Phi(z) = \tfrac12\bigl(1 +
# \mathrm{erf}(z/\sqrt2)\bigr)$.
#
# There are *two* functions called GELU. The other is an approximation by a tanh; the two differ by up to
# $5\cdot10^{-4}$. Ours is the exact one.
#
# **Predict first.** Is $\mathrm{GELU}(-2)$ zero, slightly negative or slightly positive? Which activation is asked for
# when the caller says nothing?

# %% predict="mlp"
predict(
    "GELU(−2) is …",
    "zero",
    "slightly negative",
    "slightly positive",
    answer="slightly negative",
    because="−2 · Φ(−2) = −0.0455.",
)


# %% question="mlp"
def mlp(x, w1, b1, w2, b2, activation="relu"):
    """The position-wise MLP of a transformer block, activation(x @ w1 + b1) @ w2 + b2
    (Vaswani et al., 2017).

    Args:
        x: [..., D].
        w1: [D, F].
        b1: [F].
        w2: [F, D].
        b2: [D].
        activation: "relu", or "gelu" for the exact GELU, z * Phi(z) (Hendrycks and
            Gimpel, 2016).

    Returns:
        [..., D] in the dtype of x; each token by itself.

    Raises:
        ValueError: another activation (named in the message), or sizes that do not
            match.
    """
    ### BEGIN SOLUTION
    d, f = w1.shape
    if x.shape[-1] != d or b1.shape != (f,) or w2.shape != (f, d) or b2.shape != (d,):
        raise ValueError(
            f"x {list(x.shape)}, w1 {list(w1.shape)}, b1 {list(b1.shape)}, w2 {list(w2.shape)} and "
            f"b2 {list(b2.shape)} do not fit together"
        )
    hidden = x @ w1 + b1  # [..., F]
    if activation == "relu":
        hidden = torch.relu(hidden)
    elif activation == "gelu":
        hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
    else:
        raise ValueError(f"activation must be 'relu' or 'gelu', got {activation!r}")
    return hidden @ w2 + b2  # [..., D]
    ### END SOLUTION


# %% check="mlp"
x = torch.tensor([[1.0, 2.0]])
# hidden: (3, -2)
w1, b1 = torch.tensor([[1.0, -1.0], [1.0, -1.0]]), torch.tensor([0.0, 1.0])
w2, b2 = torch.tensor([[1.0, 2.0], [10.0, 10.0]]), torch.tensor([0.5, 0.0])
expect(
    mlp(x, w1, b1, w2, b2),
    torch.tensor([[3.5, 6.0]]),
    hint="Hidden values (3, −2). ReLU lets only the 3 through: 3 · (1, 2) + (0.5, 0).",
)
expect(
    mlp(x, w1, b1, w2, b2, activation="gelu"),
    torch.tensor([[3.0409477, 5.5368980]]),
    atol=1e-5,
    hint="GELU(3) = 2.99595 and GELU(−2) = −0.04550. Off in the fourth digit? There are two GELUs: take the exact one.",
)

# %% [markdown]
# ## 6. SwiGLU: an MLP with a gate
#
# ★☆☆ · about 15 minutes
#
# Instead of one projection and a fixed nonlinearity, take two projections and let one *gate* the other, feature by
# feature:
#
# $$y = \bigl(\mathrm{SiLU}(x\,w_1)\odot x\,w_2\bigr)\,w_3 \qquad \mathrm{SiLU}(z) = z\,\mathrm{sigmoid}(z)$$
#
# The slide writes $\sigma$ for the nonlinearity of the gate, as it did for the MLP: it means "the activation" there.
# With the sigmoid that $\sigma$ usually stands for, the layer is called GLU and is another one. There are no biases.
#
# Only the *gate*, $x\,w_1$, goes through SiLU. And mind the names: here $w_3$ leads back to width $D$. Other code bases
# number the same three matrices in another order, and because all of them are made of the same sizes a wrong order can
# go unnoticed.
#
# **Predict first.** Multiply $w_2$ by $-1$: what happens to $y$? And what if you multiply $w_1$ by $-1$?

# %% predict="swiglu"
predict(
    "You multiply w_2 by −1. What happens to y?",
    "it changes its sign",
    "it stays",
    "something else",
    answer="it changes its sign",
    because="w_2 enters as a factor. With w_1 it is something else: SiLU(−z) is not "
    "−SiLU(z).",
)


# %% question="swiglu"
def swiglu(x, w1, w2, w3):
    """A gated MLP without biases, (SiLU(x @ w1) * (x @ w2)) @ w3 (Shazeer, 2020).

    Args:
        x: [..., D].
        w1: [D, F], the gate.
        w2: [D, F], what is gated.
        w3: [F, D], back to the model width.

    Returns:
        [..., D] in the dtype of x.

    Raises:
        ValueError: sizes that do not match.
    """
    ### BEGIN SOLUTION
    d, f = w1.shape
    if x.shape[-1] != d or w2.shape != (d, f) or w3.shape != (f, d):
        raise ValueError(
            f"x {list(x.shape)}, w1 {list(w1.shape)}, w2 {list(w2.shape)} and w3 {list(w3.shape)} do not fit together"
        )
    gate = x @ w1  # [..., F]
    gate = gate * torch.sigmoid(gate)  # SiLU
    return (gate * (x @ w2)) @ w3  # [..., D]
    ### END SOLUTION


# %% check="swiglu"
# F = 2: the gates are SiLU(2) = 1.7615942 and SiLU(0) = 0, the gated values 6 and
# 10
expect(
    swiglu(
        torch.tensor([[2.0]]),
        torch.tensor([[1.0, 0.0]]),
        torch.tensor([[3.0, 5.0]]),
        torch.tensor([[1.0], [1.0]]),
    ),
    torch.tensor([[10.5695651]]),
    atol=1e-5,
    hint="2 · sigmoid(2) · 6. 5.28 comes from sigmoid alone, 12 from a SiLU around the product.",
)

# %% [markdown]
# ## 7. How wide?
#
# ★☆☆ · about 10 minutes
#
# The classic MLP with $F = 4D$ has $8D^2$ weights. SwiGLU has three matrices, so $3DF$ weights, and to keep the
# number of parameters the notes set $F = \tfrac83 D$. For $D = 1024$ that is $2730.67$. Nobody has two thirds of a
# feature, and GPUs like widths that are multiples of something like 64 or 256. The rule of this course: the
# **smallest multiple of `multiple_of` that is at least** $8D/3$.
#
# Two traps. Whole-number division rounds *down*, to a layer that is a little too narrow. And a width that fits already
# must stay: $D = 768$ needs no rounding, whatever rule you use. The result goes into a shape, so it is an `int`.
#
# **Predict first.** The widths for $D = 768$ and for $D = 1024$, with multiples of 1.

# %% predict="swiglu_hidden"
predict(
    "The width for D = 768?",
    answer=2048,
    because="8/3 · 768 = 2048. For D = 1024 it is 2730.67, which has to be rounded.",
)


# %% question="swiglu_hidden"
def swiglu_hidden(d_model, multiple_of=1):
    """The width F of a SwiGLU layer that has about as many weights as an MLP of width 4
    * d_model.

    Args:
        d_model: D, at least 1.
        multiple_of: F is a multiple of this; at least 1.

    Returns:
        int, the smallest multiple of multiple_of that is at least 8 * d_model / 3.

    Raises:
        ValueError: d_model or multiple_of is below 1.
    """
    ### BEGIN SOLUTION
    if d_model < 1 or multiple_of < 1:
        raise ValueError(f"d_model and multiple_of must be at least 1, got {d_model} and {multiple_of}")
    unit = 3 * multiple_of  # F >= 8D/3 is the same as 3F >= 8D
    return -(-8 * d_model // unit) * multiple_of  # -(-a // b) rounds a / b up
    ### END SOLUTION


# %% check="swiglu_hidden"
expect(
    swiglu_hidden(768),
    2048,
    hint="8 · 768 / 3 is a whole number: nothing to round.",
)
expect(swiglu_hidden(1024), 2731, hint="2730.67 rounded up, as an int.")
expect(
    swiglu_hidden(4096, multiple_of=256),
    11008,
    hint="10922.67 lies between 42 · 256 = 10752 and 43 · 256 = 11008.",
)

# %% [markdown]
# ## 8. Rotary positions
#
# ★★☆ · about 40 minutes
#
# Attention does not know where a token stands. Assignment 3 *added* a vector of sines and cosines to each embedding,
# once, at the input. Rotary positions do it where it counts, in each attention, by *rotating* queries and keys. Take
# the $d$ features of a head in pairs, $(0,1), (2,3), \dots$ and see each pair as a point in the plane. The token at
# position $p$ has its pair $i$ turned by the angle $p\,\theta^{-2i/d}$:
#
# $$(a,\, b) \;\mapsto\; (a\cos\alpha - b\sin\alpha,\;\; a\sin\alpha + b\cos\alpha), \qquad
#   \alpha_{p,i} = p\;\theta^{-2i/d}, \quad i = 0, 1, \dots, \tfrac d2 - 1$$
#
# Why does this help? A rotation keeps lengths, and the dot product of two rotated vectors depends only on the
# *difference* of their angles. So a score $q_m \cdot k_n$ knows $m - n$ and nothing else about the positions: "three
# tokens back" looks the same everywhere in the text. The first pair turns by 1 radian per token and sees small
# distances; the last pairs turn so slowly that they tell the beginning of a long text from its end.
#
# Three things to watch. The pairs are *neighbours*; other code bases pair feature $j$ with $j + d/2$, which is as good,
# and not the same. The **positions are an argument**: with the cache of assignment 8 the first row of `x` may stand at
# position 117. And with positions `[B, N]` every sentence has its own, while `x` also has a head axis between the two.
#
# Angles belong in float32 or better, whatever the dtype of `x`: float16 has no number 2049, and position 2049 would get
# the angles of 2048.
#
# **Predict first.** What does position 0 do? With $d = 4$ and $\theta = 10000$: by which angles does position 100 turn
# the two pairs?

# %% predict="rotary_positions"
predict(
    "By which angle does position 100 turn the second pair?",
    answer=1,
    because="The speeds are 1 and 10000^(−1/2) = 0.01: angles of 100 and of 1. Position"
    " 0 turns nothing.",
)


# %% question="rotary_positions"
def rotary_positions(x, positions, theta=10000.0):
    """Rotate the feature pairs (0, 1), (2, 3), … of each token by its position (RoPE,
    Su et al., 2021).

    Args:
        x: [..., N, d], queries or keys; d even.
        positions: [N], or [B, N] where x is [B, H, N, d], and beside no other x; whole
            numbers, not necessarily 0, 1, 2, …
        theta: the base; pair i turns by the angle position * theta ** (-2i / d).

    Returns:
        The shape and dtype of x: each pair (a, b) becomes (a cos - b sin, a sin + b
        cos). The angles are made in float32 or better; half precision is rotated in
        float32. All tokens at once: no Python loop over N.

    Raises:
        ValueError: d is odd, or the positions do not fit the N tokens (or the B
            sentences) of x.
    """
    ### BEGIN SOLUTION
    n, d = x.shape[-2:]
    if d % 2 != 0:
        raise ValueError(f"features are rotated in pairs: d = {d} is odd")
    per_sentence = positions.dim() == 2
    if positions.shape[-1] != n or (per_sentence and (x.dim() != 4 or len(positions) != len(x))):
        raise ValueError(f"positions {list(positions.shape)} do not fit x {list(x.shape)}")
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    frequency = theta ** (-torch.arange(0, d, 2, dtype=wide.dtype) / d)  # [d/2], falls from 1
    angle = positions.to(wide.dtype).unsqueeze(-1) * frequency  # [N, d/2] or [B, N, d/2]
    if per_sentence:
        angle = angle.unsqueeze(1)  # [B, 1, N, d/2]: the same for every head
    cos, sin = angle.cos(), angle.sin()
    a, b = wide[..., 0::2], wide[..., 1::2]  # [..., N, d/2] each
    turned = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)  # [..., N, d/2, 2]
    return turned.flatten(-2).to(x.dtype)  # pairs next to each other again
    ### END SOLUTION


# %% check="rotary_positions"
x = torch.tensor([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]])
expect(
    rotary_positions(x, torch.tensor([0, 1])),
    torch.tensor(
        [[1.0, 0.0, 1.0, 0.0], [0.5403023, 0.8414710, 0.9999500, 0.0099998]]
    ),
    hint="Position 0 turns nothing. At position 1 the first pair turns by 1, the second by 10000^(−1/2) = 0.01.",
)
expect(
    rotary_positions(torch.tensor([[0.0, 1.0]]), torch.tensor([1])),
    torch.tensor([[-0.8414710, 0.5403023]]),
    hint="(0, 1) turned to the left by 1 radian points to the upper left. Which of the two terms has the minus?",
)
expect(
    rotary_positions(
        torch.tensor([[0.0, 0.0, 2.0, 0.0]]), torch.tensor([2]), theta=4.0
    ),
    torch.tensor([[0.0, 0.0, 1.0806046, 1.6829420]]),
    hint="The second pair turns by 2 · 4^(−1/2) = 1. Are you using the positions and the theta you were given?",
)

# %% [markdown]
# Look at the angles, and at the promise that only distances count: the same query and key, moved together along the
# text.

# %% demo="rotary_angles"
import matplotlib.pyplot as plt

width = 32
ones_and_zeros = torch.tensor([1.0, 0.0]).repeat(width // 2).expand(64, width)
turned = rotary_positions(ones_and_zeros, torch.arange(64))
draw = torch.Generator().manual_seed(3)
q, k = torch.randn(1, width, generator=draw), torch.randn(1, width, generator=draw)
distances = torch.arange(0, 60)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
image = left.imshow(turned[:, 0::2], cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
left.set(
    xlabel="pair i",
    ylabel="position p",
    title=r"cos of the angle $p\,\theta^{-2i/d}$, d = 32",
)
figure.colorbar(image, ax=left)
for start, style in ((100, "-"), (2000, "--")):
    scores = [
        (
            rotary_positions(q, torch.tensor([start]))
            * rotary_positions(k, torch.tensor([start - int(m)]))
        )
        .sum()
        .item()
        for m in distances
    ]
    right.plot(distances, scores, style, label=f"query at position {start}")
right.set(
    xlabel="distance m − n",
    ylabel="score q · k",
    title="One query, one key: only the distance counts",
)
right.legend()
plt.show()

# %% [markdown]
# ## 9. The post-norm block
#
# ★★☆ · about 30 minutes
#
# Now put the parts together, as in the paper of 2017 and on the lecture's picture. A sublayer computes something from
# the stream, its result is **added** to the stream, and the sum is normalized:
#
# $$y = \mathrm{LN}_1\bigl(x + \mathrm{MHA}(x)\bigr) \qquad z = \mathrm{LN}_2\bigl(y + \mathrm{MLP}(y)\bigr)$$
#
# The addition is the residual connection. In the notes' example the input $X$ has rows $(1,2,3), (4,5,6), (7,8,9)$
# and the attention's answer $M$ is half of it; the sum is the matrix that you normalized in question 1.
#
# Read the formula for what is easily lost: *two* residuals; the second starts from $y$, not from $x$; *two* norms
# with parameters of their own, which you only notice when they have been trained, since all of them start as 1 and 0;
# and the norm stands around the **sum**, not around the sublayer. And write `x = x + …` rather than `x += …`: the
# second edits the caller's tensor.
#
# Attention is the only place where tokens meet. Norms and MLP treat each token alone.
#
# **Predict first.** Let both sublayers return zeros. What does the block compute then? Is it the identity?

# %% predict="post_norm_block"
predict(
    "Is it the identity?",
    "yes",
    "no",
    answer="no",
    because="The norms stand on the stream itself: the block normalizes its input, "
    "twice.",
)


# %% question="post_norm_block"
def post_norm_block(x, params, num_heads, mask=None):
    """A transformer block that normalizes after each residual addition (Vaswani et al.,
    2017).

    Args:
        x: [B, N, D].
        params: dict with w_q, w_k, w_v [D, H*d], w_o [H*d, D]; ln1_gamma, ln1_beta (the
            norm after the attention), ln2_gamma, ln2_beta (the norm after the MLP),
            each [D]; w1 [D, F], b1 [F], w2 [F, D], b2 [D].
        num_heads: H.
        mask: None or bool, True = may attend, [N, N], [B, N, N] or [B, 1, N]; goes to
            multi_head_attention as it is.

    Returns:
        [B, N, D] in the dtype of x. The MLP uses ReLU, the norms eps 1e-5. Neither x
        nor params change.

    Raises:
        ValueError: whatever layer_norm, mlp and multi_head_attention refuse.
    """
    ### BEGIN SOLUTION
    p = params
    attended = multi_head_attention(x, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, mask)  # [B, N, D]
    y = layer_norm(x + attended, p["ln1_gamma"], p["ln1_beta"])
    computed = mlp(y, p["w1"], p["b1"], p["w2"], p["b2"])  # [B, N, D]
    return layer_norm(y + computed, p["ln2_gamma"], p["ln2_beta"])
    ### END SOLUTION


# %% check="post_norm_block"
params = random_block(
    d_model=3,
    num_heads=1,
    d_head=3,
    d_ff=5,
    generator=torch.Generator().manual_seed(0),
)
# both sublayers return zeros
silent = {**params, "w_o": torch.zeros(3, 3), "w2": torch.zeros(5, 3)}
x = torch.tensor([[[1.5, 3.0, 4.5], [6.0, 7.5, 9.0]]])
expect(
    post_norm_block(x, silent, num_heads=1),
    torch.tensor([-1.2247388, 0.0, 1.2247388]).expand(1, 2, 3),
    hint="With silent sublayers LN(LN(x)) is left: not the identity. Got x back? Where do your norms stand?",
)
# attention that answers -2x on a single token (x - 2x = -x), and an MLP that always
# answers (4, 0, -4)
turning = {
    **silent,
    "w_v": torch.eye(3),
    "w_o": -2 * torch.eye(3),
    "b2": torch.tensor([4.0, 0.0, -4.0]),
}
expect(
    post_norm_block(x[:, :1], turning, num_heads=1),
    torch.tensor([[[1.2247444, 0.0, -1.2247444]]]),
    atol=1e-5,
    hint="LN(x − 2x) = (1.22, 0, −1.22); add (4, 0, −4); normalize again.",
)

# %% [markdown]
# ## 10. The pre-norm block
#
# ★☆☆ · about 15 minutes
#
# Your prediction was right if it said: no. A post-norm block cannot be the identity, whatever its weights, because its
# norms stand on the stream itself. A slide calls that "Kind of weird", and a deep network should be able to do nothing
# in a layer that it does not need. The repair moves each norm off the stream into the branch, in front of the sublayer:
#
# $$y = x + \mathrm{MHA}\bigl(\mathrm{LN}_1(x)\bigr) \qquad z = y + \mathrm{MLP}\bigl(\mathrm{LN}_2(y)\bigr)$$
#
# From the first embedding to the last layer there is now a path of additions only. A gradient comes down this path
# unchanged through any number of blocks. The sublayer still sees normalized tokens; the *residual* is the raw stream.
#
# **Predict first.** Silent sublayers again: what does the block compute? And what happens to the size of the stream
# over many blocks, when nothing on it is ever normalized?

# %% predict="pre_norm_block"
predict(
    "Is the block the identity now?",
    "yes",
    "no",
    answer="yes",
    because="Nothing is added, so x stays as it is. The price: over many blocks the "
    "stream grows, since nothing on it is ever normalized.",
)


# %% question="pre_norm_block"
def pre_norm_block(x, params, num_heads, mask=None):
    """A transformer block that normalizes in front of each sublayer, inside the
    residual (Baevski and Auli, 2018).

    Args:
        x: [B, N, D].
        params: dict as in post_norm_block; ln1 stands before the attention, ln2 before
            the MLP.
        num_heads: H.
        mask: None or bool, True = may attend, [N, N], [B, N, N] or [B, 1, N]; goes to
            multi_head_attention as it is.

    Returns:
        [B, N, D] in the dtype of x, not normalized. The MLP uses ReLU, the norms eps
        1e-5. Neither x nor params change.

    Raises:
        ValueError: whatever layer_norm, mlp and multi_head_attention refuse.
    """
    ### BEGIN SOLUTION
    p = params
    normed = layer_norm(x, p["ln1_gamma"], p["ln1_beta"])
    y = x + multi_head_attention(normed, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, mask)  # [B, N, D]
    normed = layer_norm(y, p["ln2_gamma"], p["ln2_beta"])
    return y + mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])  # [B, N, D]
    ### END SOLUTION


# %% check="pre_norm_block"
expect(
    pre_norm_block(x, silent, num_heads=1),
    x,
    hint="With silent sublayers nothing may touch the stream: x comes out as it went in.",
)
expect(
    pre_norm_block(x[:, :1], turning, num_heads=1),
    torch.tensor([[[1.5 + 2.4494816 + 4.0, 3.0, 4.5 - 2.4494816 - 4.0]]]),
    atol=1e-5,
    hint="The attention answers −2 · LN(x) = (2.449, 0, −2.449), the MLP (4, 0, −4). Both are added to the raw x.",
)

# %% [markdown]
# ### Twelve layers of each
#
# Now the experiment. The task: in a sequence of random symbols, say at each position which symbol stood two places
# before. Both networks start from the same weights and see the same data at the same learning rate. On the left, before
# any training: how large is the gradient that arrives at each layer's weights? On the right: the loss over the steps.
# (The pre-norm network gets one norm behind its last block, for the reason that you thought about a minute ago.)
#
# Afterwards, play: other seeds, fewer layers, a learning rate of `3e-3 * min(1, (step + 1) / 50)`. From how few
# layers on does the post-norm network learn as well? It can be trained, as the paper of 2017 showed, with a slow
# start.

# %% demo="twelve_layers"
import os

import matplotlib.pyplot as plt

vocabulary, length, d_model, layers = 8, 8, 32, 12
# Whoever only wants to see whether all cells run sets this variable: the networks learn
# for a moment only.
steps = 3 if "ATTENTION_KIT_QUICK" in os.environ else 50


def forward(block, weights, ids):
    x = weights["embed"][ids] + weights["positions"]  # [B, N, D]
    for params in weights["blocks"]:
        x = block(x, params, num_heads=4, mask=causal_mask(length))
    if block is pre_norm_block:
        x = layer_norm(x, torch.ones(d_model), torch.zeros(d_model))
    return x @ weights["unembed"]  # [B, N, V]


def train(block):
    draw = torch.Generator().manual_seed(1)
    weights = {
        "embed": torch.randn(vocabulary, d_model, generator=draw),
        "positions": torch.randn(length, d_model, generator=draw),
        "blocks": [
            random_block(d_model, 4, 8, 2 * d_model, draw) for _ in range(layers)
        ],
        "unembed": torch.randn(d_model, vocabulary, generator=draw)
        / math.sqrt(d_model),
    }
    flat = [weights["embed"], weights["positions"], weights["unembed"]]
    flat += [w for params in weights["blocks"] for w in params.values()]
    for w in flat:
        w.requires_grad_()
    optimizer = torch.optim.Adam(flat, lr=3e-3)
    losses, gradients = [], []
    for step in range(steps):
        ids = torch.randint(vocabulary, (16, length), generator=draw)
        # position i answers with the symbol at i - 2
        logits = forward(block, weights, ids)[:, 2:]
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), ids[:, :-2].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            gradients = [
                math.sqrt(sum(w.grad.pow(2).sum().item() for w in p.values()))
                for p in weights["blocks"]
            ]
        optimizer.step()
        losses.append(loss.item())
    return gradients, losses


figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
for block, name, colour in (
    (post_norm_block, "post-norm", "#c2570c"),
    (pre_norm_block, "pre-norm", "#3b6ea8"),
):
    gradients, losses = train(block)
    left.semilogy(range(1, layers + 1), gradients, "o-", color=colour, label=name)
    right.plot(losses, color=colour, label=name)
left.set(
    xlabel="layer",
    ylabel="gradient norm",
    title="Gradients that arrive at each layer, before training",
)
right.axhline(math.log(vocabulary), color="grey", linestyle=":", label="guessing, ln 8")
right.set(xlabel="step", ylabel="loss", title="Training, same data and learning rate")
left.legend()
right.legend()
plt.show()

# %% [markdown]
# ## 11. Mixture of experts
#
# ★★★ · about 50 minutes
#
# A bigger MLP knows more and costs more, for every token. A mixture of experts separates the two: a block gets $E$
# different MLPs, the *experts*, and each token is sent through only $A < E$ of them. The parameters grow by $E$, the
# computation only by $A$.
#
# A small linear layer, the gate, decides. It gives each token $E$ scores; the $A$ best experts are chosen, a softmax
# over **their** scores makes the weights, and the token gets the weighted sum of their answers:
#
# $$s = x\,w_{\text{gate}} \qquad \mathcal A = \text{the } A \text{ largest of } s_1 \dots s_E \qquad
#   p = \mathrm{softmax}\bigl(s_e : e\in\mathcal A\bigr) \qquad
#   y = \sum_{e\in\mathcal A} p_e\;\mathrm{ReLU}(x\,w_1^{(e)})\,w_2^{(e)}$$
#
# What goes wrong: the softmax is taken over *all* experts and then cut, so that the weights sum to less than 1; one
# route is chosen for the whole sentence, though every token has its own; or all experts run on all tokens and the
# unneeded answers are thrown away, which gives the right numbers and gives up the point. We count your
# multiplications.
#
# The choice itself has no gradient (a hair more of a score changes nothing, until it changes everything). The gate
# learns through the weights $p$. With $A = 1$ the only weight is always 1, and the gate learns nothing: predict this,
# then look at the formula.
#
# The function also returns the *load*: how many tokens each expert was given. A gate left to itself likes to send
# everything to few experts, so this number is watched in training.
#
# A way that reads well: loop over the **experts**, pick the tokens that chose each (a boolean mask), run them, and add
# the results where they belong (`index_add`, or assignment through a mask into a fresh tensor).


# %% question="moe_layer"
def moe_layer(x, w_gate, w1, w2, num_active):
    """A mixture of experts: each token goes through num_active of E MLPs (Shazeer et
    al., 2017).

    Args:
        x: [B, N, D].
        w_gate: [D, E], the gate, without bias.
        w1: [E, D, F], the first matrices of the experts (ReLU after it, no biases).
        w2: [E, F, D], the second matrices.
        num_active: A, between 1 and E.

    Returns:
        (y, load): y [B, N, D] in the dtype of x, for each token the sum of its experts'
        answers, weighted by a softmax over the scores of the chosen experts (half
        precision: softmax in float32); load [E], int64, how many tokens each expert was
        given, so that it sums to B * N * A. Only the chosen experts compute: the
        multiplications grow with A, not with E. Which of several experts with equal
        scores is chosen is free.

    Raises:
        ValueError: num_active outside 1 … E, or sizes of w_gate, w1, w2 and x that do
            not match.
    """
    ### BEGIN SOLUTION
    num_experts, d, f = w1.shape
    if w_gate.shape != (d, num_experts) or w2.shape != (num_experts, f, d) or x.shape[-1] != d:
        raise ValueError(
            f"x {list(x.shape)}, w_gate {list(w_gate.shape)}, w1 {list(w1.shape)} and w2 {list(w2.shape)} do not fit"
        )
    if not 1 <= num_active <= num_experts:
        raise ValueError(f"num_active must be between 1 and {num_experts}, got {num_active}")
    tokens = x.reshape(-1, d)  # [T, D]
    scores, chosen = (tokens @ w_gate).topk(num_active, dim=-1)  # [T, A] each
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    weights = torch.softmax(wide, dim=-1).to(x.dtype)  # [T, A], over the chosen experts
    y = torch.zeros_like(tokens)
    for e in range(num_experts):
        row, slot = torch.where(chosen == e)  # the tokens that chose expert e, and as their which choice
        answer = torch.relu(tokens[row] @ w1[e]) @ w2[e]  # [T_e, D]
        y = y.index_add(0, row, weights[row, slot].unsqueeze(-1) * answer)
    load = torch.bincount(chosen.flatten(), minlength=num_experts)  # [E]
    return y.reshape(x.shape), load
    ### END SOLUTION


# %% check="moe_layer"
x = torch.eye(2).unsqueeze(0)  # two tokens, (1, 0) and (0, 1)
# three experts
w_gate = torch.tensor([[math.log(3.0), 0.0, -5.0], [-5.0, 0.0, math.log(4.0)]])
w1 = torch.ones(3, 2, 1)
# expert e answers with row e, whatever it is asked
w2 = torch.tensor([[[4.0, 0.0]], [[0.0, 20.0]], [[100.0, 0.0]]])
y, load = moe_layer(x, w_gate, w1, w2, num_active=2)
expect(
    y,
    torch.tensor([[[3.0, 5.0], [80.0, 4.0]]]),
    atol=1e-4,
    hint="Token 0 takes experts 0 and 1 with weights 3/4 and 1/4, token 1 takes 1 and 2 with 1/5 and 4/5. "
    "Slightly less than that? Then your softmax still counts the expert that was not chosen.",
)
expect(load, torch.tensor([1, 2, 1]), hint="Expert 1 serves both tokens.")

# %% [markdown]
# How even is the load? Tokens that resemble each other choose alike. Here the tokens are random numbers with a common
# offset; the larger the offset, the more they agree, and some experts run idle. (Many models add a term to the loss
# that punishes this.)

# %% demo="expert_load"
import matplotlib.pyplot as plt

draw = torch.Generator().manual_seed(5)
experts, active = 8, 2
w_gate = torch.randn(16, experts, generator=draw) / 4
w1, w2 = (
    torch.randn(experts, 16, 32, generator=draw) / 4,
    torch.randn(experts, 32, 16, generator=draw) / 6,
)
noise, offset = torch.randn(8, 64, 16, generator=draw), torch.randn(16, generator=draw)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharey=True)
for axis, size in zip(axes, (0.0, 1.0, 3.0), strict=True):
    _, load = moe_layer(noise + size * offset, w_gate, w1, w2, active)
    axis.bar(range(experts), load, color="#3b6ea8")
    axis.axhline(
        8 * 64 * active / experts, color="#c2570c", linestyle="--", label="even load"
    )
    axis.set(xlabel="expert", title=f"common offset × {size:g}")
axes[0].set(ylabel="tokens")
axes[0].legend()
plt.show()

# %% [markdown]
# ## 12. Find the error in the notes
#
# ★★☆ · about 30 minutes
#
# The notes work through question 1 by hand. For $(1.5, 3, 4.5)$ they get $\sigma = 1.22$ and then
# $\hat h = (-1.23,\, 0,\, 1.23)$. You know the right number, $1.2247449$, which is $1.22$ to two decimals, not $1.23$.
# (They call all three tokens $\hat h_1$; two of them are $\hat h_2$ and $\hat h_3$.) Nobody miscalculated. The
# $\sigma = 1.2247449$ was *rounded first*, to $1.22$, and $1.5 / 1.22 = 1.2295$ was then rounded once more. A number
# that is rounded, used, and rounded again can be wrong in its last digit, though both roundings were correct.
#
# One unit in the last place: who cares? So ask how far this carries. Say "units" for steps of $10^{-\text{decimals}}$:
# the notes are off by one unit at two decimals. **Can it be five units? Fifty?** The question is not about a tiny
# $\sigma$ that two decimals cannot hold; let $\sigma$ be 1 or more. Find a token that proves it, for up to 9 decimals
# and up to 100 units.
#
# Think before you search. The error of $\sigma$ is at most half a unit. What multiplies it on its way to $\hat h$? And
# how large can the largest $\hat h_j$ of a token be, when its mean is 0 and its variance 1? (You know tokens with
# one feature that sticks out: trained transformers have them.)
#
# This is the definition that we grade with; it follows the notes, so there is no $\varepsilon$. The cell below has it
# as a function, which your answer may call:
#
# $$\text{early} = \mathrm{round}\Bigl(\frac{x-\mu}{\mathrm{round}(\sigma)}\Bigr) \qquad
#   \text{late} = \mathrm{round}\Bigl(\frac{x-\mu}{\sigma}\Bigr) \qquad
#   \text{slip} = \max_j |\text{early}_j - \text{late}_j|\;/\;10^{-\text{decimals}}$$


# %% given="slip"
def slip(x, decimals):
    """How many units of 10 ** -decimals the normalized token moves when sigma is
    rounded first.
    """
    centred = x.double() - x.double().mean()
    sigma = centred.pow(2).mean().sqrt().item()
    early = (centred / round(sigma, decimals)).round(decimals=decimals)
    late = (centred / sigma).round(decimals=decimals)
    return round((early - late).abs().max().item() * 10**decimals)


# %% question="rounding_counterexample"
def rounding_counterexample(decimals, units):
    """A token that shows what rounding sigma before its use can do.

    Args:
        decimals: how many decimals sigma and the normalized token are rounded to, 1 to
            9.
        units: how far off, in units of 10 ** -decimals, 1 to 100.

    Returns:
        x: [D], float64, with D between 2 and 100000 of your choice and a standard
        deviation sigma (dividing by D) of 1 or more. Some entry of (x - mean) / sigma,
        rounded to `decimals`, must change by at least `units` units when sigma is
        rounded to `decimals` first.

    Raises:
        ValueError: decimals or units is below 1.
    """
    ### BEGIN SOLUTION
    if decimals < 1 or units < 1:
        raise ValueError(f"decimals and units must be at least 1, got {decimals} and {units}")
    # One feature that sticks out, (a, 0, …, 0): its normalized value is sqrt(D - 1) for every a > 0.
    # With sigma = 1 + 0.4 units, rounding makes sigma 1, and that value grows by 0.4 sqrt(D - 1) units.
    # One unit is kept in reserve for the last rounding.
    d = 1 + math.ceil(((units + 1) / 0.4) ** 2)
    sigma = 1 + 0.4 * 10**-decimals
    x = torch.zeros(d, dtype=torch.float64)
    x[0] = sigma * d / math.sqrt(d - 1)  # (a, 0, …, 0) has the standard deviation a sqrt(D - 1) / D
    return x
    ### END SOLUTION


# %% check="rounding_counterexample"
expect(
    slip(torch.tensor([1.5, 3.0, 4.5]), 2),
    1,
    hint="The notes' own token: 1.23 instead of 1.22.",
)
for decimals, units in ((2, 1), (2, 5), (3, 7)):
    evidence = rounding_counterexample(decimals, units)
    sigma = evidence.std(correction=0).item()
    expect(
        sigma >= 1 - 1e-12, True, hint=f"sigma is {sigma}: it must be 1 or more."
    )
    off = slip(evidence, decimals)
    expect(
        off >= units,
        True,
        hint=f"At {decimals} decimals your token is off by {off} units, asked for: {units}.",
    )
    print(
        f"  {decimals} decimals: a token of {len(evidence)} features "
        f"is off by {off} units"
    )

# %% [markdown] written="norm_placement" points=5
# ## 13. In your own words
#
# Moving two lines of code, from `layer_norm(x + f(x))` to `x + f(layer_norm(x))`, can decide whether a deep network
# trains. **Explain with what you computed: what each block does when its sublayers are silent, what this means for a
# gradient on its way down through many blocks (look at the left plot of "Twelve layers of each"), and what the pre-norm
# network pays for it, so that it needs one more norm at its end.** Six to eight sentences.
#
# ### BEGIN SOLUTION
# With silent sublayers the pre-norm block is the identity and the post-norm block is LN(LN(x)): one leaves the stream
# alone, the other rewrites it in every layer. The derivative of a pre-norm block is therefore the identity plus the
# derivatives of its branches. A gradient on its way down always contains one part that nothing has multiplied,
# whatever the weights are, and in the plot the gradients change little and smoothly from layer to layer. In the
# post-norm network every gradient goes through the backward pass of all norms above it, two a block. Each removes the
# parts along the mean and along the normalized token and divides by the standard deviation of $x + f(x)$; twenty-four
# such factors multiply, and they depend on the weights. In the plot the gradients are several times as large and
# jump, so that a step of the same size moves the loss much further: at the learning rate at which pre-norm learns,
# post-norm ends at guessing, and it needs a warm-up. The price of pre-norm: nothing on the stream is normalized, each
# branch adds to it, and its size grows with the depth. Late branches change a large stream relatively little, and the
# output layer would read features whose size depends on the depth, so one norm follows the last block.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 1 point: with silent sublayers pre-norm is the identity and post-norm is not.
# - 2 points: the gradient has a path that nothing multiplies in pre-norm, and goes through every norm in post-norm;
#   the plot is used. (1 point without the plot.)
# - 2 points: the price: nothing on the stream is normalized, its size grows with the depth, so that one norm follows
#   the last block. (1 point for "it grows" alone.)
# ### END MARK SCHEME
