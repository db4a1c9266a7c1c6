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
# # Assignment 2: from the RNN's bottleneck to attention
#
# A recurrent network reads a sentence word by word and hands its *last* state to a second network, which writes
# the translation. Everything that the second network will ever know about the sentence stands in that one vector,
# whether the sentence has four words or a thousand. Attention was invented to remove this bottleneck: the writer
# may look back at all states, and decides anew at every step where to look.
#
# ![Left: one context vector. Right: all encoder states mixed anew at every step.](figures/bottleneck.svg)
#
# You first build this in its original home, between two RNNs. Then you take the RNNs away and keep the operation:
# queries, keys, values, one matrix product, one softmax, one more matrix product. Finally you measure why a
# $\sqrt d$ belongs into it. All later assignments stand on the seventh function of this one.
#
# | | function | what it gives | difficulty, estimated time |
# |---|---|---|---|
# | 1 | `rnn_encode` | one state per source position | ★☆☆, 20 min |
# | 2 | `additive_scores` | how well each state fits the decoder | ★★☆, 20 min |
# | 3 | `attend` | weights and their context vector | ★☆☆, 15 min |
# | 4 | `seq2seq_decode` | the decoder that looks back | ★★★, 45 min |
# | 5 | `single_query_attention` | the same, without the RNNs | ★☆☆, 15 min |
# | 6 | `attention_weights` | many queries at once | ★★☆, 25 min |
# | 7 | `scaled_dot_product_attention` | the whole operation | ★☆☆, 10 min |
# | 8 | `score_std` | how large scores get | ★☆☆, 15 min |
# | 9 | `softmax_gradient_norm` | what large scores do to learning | ★★☆, 20 min |
# | 10 | `compare_layers` | recurrence, convolution and attention in numbers | ★★☆, 25 min |
# | 11 | `linear_scores`, `query_effect` | the error in the notes | ★★☆, 35 min |
# | 12 | a written answer | why $\sqrt d$ and not $d$ | 10 min |
#
# **Conventions of this course**
#
# - Every function is pure: weights come in as arguments, inputs are never changed in place.
# - A weight matrix is `[in, out]` and multiplies from the right, `x @ w`. (`nn.Linear` stores `[out, in]`. Here
#   nothing needs to be transposed.)
# - Tokens are rows. `B` is the batch, `T` the source length, `Ty` the target length, `D` the width of an input,
#   `H` the width of an encoder state, `S` of a decoder state. In the second half `N_q` queries meet `N_k` keys of
#   width `d` and values of width `d_v`; `...` stands for any leading batch axes, also none.
# - The result has the dtype of the inputs. Half precision computes its softmax in float32 inside.
# - Arguments whose sizes cannot match raise `ValueError` with the sizes in the message. Write
#   `raise ValueError(f"... {a.shape[-1]} ... {b.shape[0]}")`: you will be glad of it in assignment 6.

# %% given="imports"
import math

import torch

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% [markdown]
# The softmax of assignment 1 is yours to use here: it subtracts the largest entry first, so that large scores
# neither overflow nor become NaN, and it keeps the dtype.
#
# Your own answers may take the place of what is given: `python make_my_course.py` with the names of your notebooks so
# far makes them a module, and prints the line that goes into a cell below.


# %% given="library" module="library"
def softmax(z, dim=-1):
    """Stable softmax along `dim` (assignment 1). Entries may be -inf; a row of nothing
    else becomes 0.
    """
    # half precision computes in float32
    wide = z.to(torch.promote_types(z.dtype, torch.float32))
    peak = wide.detach().amax(dim=dim, keepdim=True)
    peak = peak.masked_fill(peak == -math.inf, 0.0)
    e = torch.exp(wide - peak)
    total = e.sum(dim=dim, keepdim=True)
    return (e / total.masked_fill(total == 0, 1.0)).to(z.dtype)


# %% [markdown]
# ## 1. The encoder
#
# ★☆☆ · about 20 minutes
#
# An RNN keeps one vector, its state, and rewrites it at every position from the word it reads and from what it
# knew before:
#
# $$h_t = \tanh(x_t\, w_x + h_{t-1}\, w_h + b), \qquad t = 1, \dots, T$$
#
# with $x_t$ `[B, D]`, $h_t$ `[B, H]`, and $h_0$ given. The last state, $h_T$, is the classical summary of the
# sentence. The attention of the next questions needs **all** of them, so this function returns both.
#
# Two things go wrong here. The loop runs over *positions*; if you write `for step in x` you loop over the
# sentences of the batch instead. And row `t` of the result is the state *after* reading $x_t$: $h_0$ is not in it.
#
# This loop cannot be parallelized: step $t$ needs the result of step $t-1$. Remember that when you reach
# questions 6 and 10.
#
# **Predict first.** One sentence, $x = (1, 0)$, with $w_x = 0.5$, $w_h = 2$, $b = 0$, $h_0 = 0$. The second word
# is zero. Is the second state zero?

# %% predict="rnn_encode"
predict(
    "Is the second state zero?",
    "yes",
    "no",
    answer="no",
    because="It is tanh(2 · 0.4621) = 0.7279: the word is zero, the memory is not.",
)


# %% question="rnn_encode"
def rnn_encode(x, w_x, w_h, b, h0):
    """Run a tanh RNN over a batch of sequences (the lecture's encoder, h_t =
    f_W(x_t, h_{t-1})).

    Args:
        x: [B, T, D], T at least 1.
        w_x: [D, H], from the input to the state.
        w_h: [H, H], from the state to the next state.
        b: [H].
        h0: [B, H], the state before the first position.

    Returns:
        (states, last): states [B, T, H], row t after reading x_t, and last [B, H], the
        state after the whole sequence. Both in the dtype of x.

    Raises:
        ValueError: w_x is not [D, H], w_h not [H, H], b not [H], or h0 not [B, H].
    """
    ### BEGIN SOLUTION
    batch, length, width = x.shape
    hidden = w_h.shape[0]
    if w_x.shape != (width, hidden) or w_h.shape != (hidden, hidden):
        raise ValueError(f"w_x {list(w_x.shape)} and w_h {list(w_h.shape)} do not fit inputs of width {width}")
    if b.shape != (hidden,) or h0.shape != (batch, hidden):
        raise ValueError(f"b {list(b.shape)} and h0 {list(h0.shape)} must be [{hidden}] and [{batch}, {hidden}]")
    h = h0
    states = []
    for t in range(length):
        h = torch.tanh(x[:, t] @ w_x + h @ w_h + b)  # [B, H]
        states.append(h)
    return torch.stack(states, dim=1), h  # [B, T, H], [B, H]
    ### END SOLUTION


# %% check="rnn_encode"
x = torch.tensor([[[1.0], [0.0]]])  # [B=1, T=2, D=1]
states, last = rnn_encode(
    x,
    torch.tensor([[0.5]]),
    torch.tensor([[2.0]]),
    torch.zeros(1),
    torch.zeros(1, 1),
)
expect(
    states,
    torch.tensor([[[0.4621172], [0.7278944]]]),
    hint="The first state is tanh(0.5). The second is tanh(2 · 0.4621): the word is zero, the memory is not.",
)
expect(
    last,
    torch.tensor([[0.7278944]]),
    hint="`last` is the state after the last position, for every sentence.",
)

# two sentences, three words
x = torch.tensor([[[1.0], [0.0], [0.0]], [[0.0], [0.0], [1.0]]])
states, last = rnn_encode(
    x, torch.ones(1, 2), torch.zeros(2, 2), torch.zeros(2), torch.zeros(2, 2)
)
expect(
    last[:, 0],
    torch.tensor([0.0, 0.7615942]),
    hint="With w_h = 0 only the last word counts. Got 0.76 first? Then you loop over sentences or run backwards.",
)

# %% [markdown]
# ## 2. Alignment scores
#
# ★★☆ · about 20 minutes
#
# The decoder, in state $s$, asks of every source position: how much do I want you now? The answer is one number
# per position, the alignment score. A small network computes it from the pair $(s, h_i)$:
#
# $$e_i = v \cdot \tanh(s\, w_{\text{state}} + h_i\, w_{\text{states}}), \qquad i = 1, \dots, T$$
#
# with $w_{\text{state}}$ `[S, A]`, $w_{\text{states}}$ `[H, A]`, $v$ `[A]`. Decoder and encoder states may have
# different widths: each has its own matrix into a common space of width $A$. This is *additive* attention. Do not
# leave out the $\tanh$, however small it looks: question 11 shows what happens without it.
#
# All positions can be scored at once. The trap is broadcasting: $s\,w_{\text{state}}$ is `[B, A]`, one row per
# *sentence*, and $h\,w_{\text{states}}$ is `[B, T, A]`. Adding them as they are lines the sentences up with the
# positions: an error when you are lucky, and no error at all when $B = T$. The other trap is the order:
# first the tanh of the sum, then $v$.
#
# **Predict first.** All widths 1, all weights 1, $v = 2$, $s = 0.5$. Which of the states $h = 0.5$ and
# $h = -0.5$ scores higher, and how high can a score get at most?

# %% predict="additive_scores"
predict(
    "How high can a score get at most?",
    answer=2,
    because="h = 0.5 scores higher, 2 · tanh(1) = 1.52 against 0. A tanh stays below 1,"
    " so no score reaches v = 2.",
)


# %% question="additive_scores"
def additive_scores(state, states, w_state, w_states, v):
    """Score every encoder state against one decoder state (additive attention, Bahdanau
    et al., 2015).

    Args:
        state: [B, S], the decoder state that asks.
        states: [B, T, H], the encoder states.
        w_state: [S, A].
        w_states: [H, A].
        v: [A].

    Returns:
        [B, T], scores e_i = v · tanh(state @ w_state + states_i @ w_states); any sign,
        not normalized.
        All positions at once: no Python loop over T.

    Raises:
        ValueError: w_state is not [S, A], w_states not [H, A], or the batches of state
            and states differ.
    """
    ### BEGIN SOLUTION
    hidden = v.shape[0]
    if w_state.shape != (state.shape[-1], hidden) or w_states.shape != (states.shape[-1], hidden):
        raise ValueError(
            f"w_state {list(w_state.shape)} and w_states {list(w_states.shape)} do not fit "
            f"states of width {state.shape[-1]} and {states.shape[-1]} and v [{hidden}]"
        )
    if state.shape[0] != states.shape[0]:
        raise ValueError(f"{state.shape[0]} decoder states cannot ask {states.shape[0]} encoded sentences")
    asked = (state @ w_state).unsqueeze(1)  # [B, 1, A]
    offered = states @ w_states  # [B, T, A]
    return torch.tanh(asked + offered) @ v  # [B, T]
    ### END SOLUTION


# %% check="additive_scores"
one = torch.ones(1, 1)
scores = additive_scores(
    torch.tensor([[0.5]]),
    torch.tensor([[[0.5], [-0.5]]]),
    one,
    one,
    torch.tensor([2.0]),
)
expect(
    scores,
    torch.tensor([[1.5231883, 0.0]]),
    hint="2 · tanh(0.5 + 0.5) and 2 · tanh(0.5 − 0.5). Got 0.964 first? That is tanh(2 · 1): v comes last.",
)

# two sentences, two positions: the decoder states are +2 and -2, the encoder states
# all 0
scores = additive_scores(
    torch.tensor([[2.0], [-2.0]]), torch.zeros(2, 2, 1), one, one, torch.ones(1)
)
expect(
    scores,
    torch.tensor([[0.9640276, 0.9640276], [-0.9640276, -0.9640276]]),
    hint="Sentence 0 asks with +2, sentence 1 with −2. If the sign changes *within* a row, a decoder state met the "
    "wrong axis: which axis of `states` is missing from `state`?",
)

# %% [markdown]
# ## 3. From scores to a context vector
#
# ★☆☆ · about 15 minutes
#
# Scores become weights by a softmax over the source positions, and the weights mix the states:
#
# $$a = \mathrm{softmax}(e), \qquad 0 \le a_i \le 1, \quad \sum_i a_i = 1, \qquad c = \sum_i a_i\, h_i$$
#
# The context $c$ is a *weighted average*: it lies among the states, however many there are. Why not simply take the
# best position? Because a choice has no gradient; a mixture has one with respect to every score.
#
# The notes write such mixtures out by hand, $h_3 = 0.3\,v_1 + 0.5\,v_2 + 0.2\,v_3$. Backwards: which scores give
# these weights? $\ln 0.3, \ln 0.5, \ln 0.2$ do, and so do $\ln 3, \ln 5, \ln 2$: a softmax does not notice when
# all scores move by the same amount. Keep this in mind for question 11.
#
# Two things to watch: *which axis* sums to one (positions of one sentence compete with each other, sentences do
# not), and that it is the weights, not the scores, that mix.
#
# **Predict first.** Scores $(\ln 3, \ln 5, \ln 2)$ and states $(10, 0)$, $(0, 10)$, $(-10, 10)$: what is $c$?

# %% predict="attend"
predict(
    "The second number of c?",
    answer=7,
    because="0.3 · (10, 0) + 0.5 · (0, 10) + 0.2 · (−10, 10) = (1, 7).",
)


# %% question="attend"
def attend(scores, states):
    """Turn scores into attention weights and mix the states with them (the lecture's
    c_t = sum_i a_ti h_i).

    Args:
        scores: [B, T], any size and sign.
        states: [B, T, H].

    Returns:
        (context, weights): context [B, H] and weights [B, T], in the dtype of the
        inputs. Each row of weights sums to 1; none is negative (0 where the exponential
        is too small for the dtype). Half precision computes the softmax in float32.

    Raises:
        ValueError: scores is not [B, T] for states [B, T, H].
    """
    ### BEGIN SOLUTION
    if scores.shape != states.shape[:-1]:
        raise ValueError(f"scores {list(scores.shape)} must have one number per state, states {list(states.shape)}")
    weights = softmax(scores, dim=-1)  # [B, T]
    context = (weights.unsqueeze(1) @ states).squeeze(1)  # [B, 1, T] @ [B, T, H] -> [B, H]
    return context, weights
    ### END SOLUTION


# %% check="attend"
states = torch.tensor([[[10.0, 0.0], [0.0, 10.0], [-10.0, 10.0]]])
context, weights = attend(torch.log(torch.tensor([[3.0, 5.0, 2.0]])), states)
expect(
    weights,
    torch.tensor([[0.3, 0.5, 0.2]]),
    hint="The positions of one sentence share the weight 1.",
)
expect(
    context,
    torch.tensor([[1.0, 7.0]]),
    atol=1e-5,
    hint="0.3 · (10, 0) + 0.5 · (0, 10) + 0.2 · (−10, 10). Is it the weights that mix, or still the scores?",
)

# two sentences whose positions prefer different states, with large scores
context, weights = attend(
    torch.tensor([[1000.0, 0.0], [0.0, 1000.0]]),
    torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]]]),
)
expect(
    context,
    torch.tensor([[1.0], [4.0]]),
    hint="NaN? exp(1000) overflows: only differences of scores matter.",
)

# %% [markdown]
# ## 4. The decoder that looks back
#
# ★★★ · about 45 minutes
#
# Now the writer. At step $t$ it has the state $s_{t-1}$ and the word it wrote last, $y_{t-1}$. It looks at the
# source, then moves on:
#
# $$e_t = \text{scores}(s_{t-1}, h_1 \dots h_T) \qquad a_t, c_t = \text{attend}(e_t, h) \qquad
#   s_t = \tanh(y_{t-1} w_y + c_t w_c + s_{t-1} w_s + b)$$
#
# Read the indices slowly; all the mistakes live there.
#
# - The scores use $s_{t-1}$. The state $s_t$ does not exist yet when the decoder decides where to look: it is
#   *made* from what it sees.
# - The weights are made anew at **every** step. One context for all steps is the bottleneck again.
# - The keys are the *encoder's* states. The decoder's own past is not among them (that comes in assignment 3).
# - The input of step $t$ is the word **before** it. In training we do not wait for the network's own words: we feed
#   it the correct ones, moved one place to the right. This is *teacher forcing*. The first step has no word before
#   it and gets zeros. (Beware of `targets[:, t - 1]` at `t = 0`: Python has an opinion on index −1.)
#
# If $s_t$ could see $y_t$, the network would learn to copy its input and know nothing at test time. That is the
# sharpest test of this function: **changing $y_t$ must not change step $t$**, and must change the steps after it.
#
# **Predict first.** Source states $1$ and $3$ (width 1), $v = 0$. What are the weights, what is $c$, at every step?

# %% predict="seq2seq_decode"
predict(
    "What is c, at every step?",
    answer=2,
    because="With v = 0 all scores are equal: both weights are 0.5, and c is the mean "
    "of 1 and 3.",
)


# %% question="seq2seq_decode"
def seq2seq_decode(states, s0, targets, params):
    """Run an RNN decoder with additive attention under teacher forcing (Bahdanau et
    al., 2015; the lecture's g_U).

    Args:
        states: [B, T, H], the encoder states, the same at every step.
        s0: [B, S], the decoder state before the first step.
        targets: [B, Ty, D], the correct outputs y_1 … y_Ty as vectors, Ty at least 1.
        params: dict with the weights of the scores, w_state [S, A], w_states [H, A], v
            [A], and of the step, w_y [D, S], w_c [H, S], w_s [S, S], b [S].

    Returns:
        (hidden, weights): hidden [B, Ty, S] with the states s_1 … s_Ty, and weights
        [B, Ty, T], row t the attention weights that made c_t. Step t reads y_{t-1}
        (zeros at the first step), looks with s_{t-1}, and s_t = tanh(y_{t-1} w_y + c_t
        w_c + s_{t-1} w_s + b).

    Raises:
        ValueError: w_y is not [D, S], or states, s0 and targets have different batch
            sizes.
    """
    ### BEGIN SOLUTION
    if params["w_y"].shape != (targets.shape[-1], s0.shape[-1]):
        raise ValueError(
            f"w_y {list(params['w_y'].shape)} does not take targets of width {targets.shape[-1]} "
            f"to states of width {s0.shape[-1]}"
        )
    if not states.shape[0] == s0.shape[0] == targets.shape[0]:
        raise ValueError(f"batches differ: states {states.shape[0]}, s0 {s0.shape[0]}, targets {targets.shape[0]}")
    s = s0
    y = torch.zeros_like(targets[:, 0])  # no word before the first
    hidden, weights = [], []
    for t in range(targets.shape[1]):
        scores = additive_scores(s, states, params["w_state"], params["w_states"], params["v"])  # [B, T]
        c, a = attend(scores, states)  # [B, H], [B, T]
        s = torch.tanh(y @ params["w_y"] + c @ params["w_c"] + s @ params["w_s"] + params["b"])  # [B, S]
        y = targets[:, t]  # teacher forcing: the next step reads the correct word
        hidden.append(s)
        weights.append(a)
    return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)  # [B, Ty, S], [B, Ty, T]
    ### END SOLUTION


# %% check="seq2seq_decode"
params = {
    "w_state": one,
    "w_states": one,
    "v": torch.zeros(1),
    "w_y": one,
    "w_c": 0.25 * one,
    "w_s": one,
    "b": torch.zeros(1),
}
source = torch.tensor([[[1.0], [3.0]]])  # [B=1, T=2, H=1]
hidden, weights = seq2seq_decode(
    source, torch.zeros(1, 1), torch.tensor([[[0.5], [9.0]]]), params
)
expect(
    weights,
    torch.full((1, 2, 2), 0.5),
    hint="With v = 0 all scores are equal, so both positions get half.",
)
expect(
    hidden,
    torch.tensor([[[0.4621172], [0.8980630]]]),
    hint="c is 2 at both steps. Step 1: tanh(0 + 0.25 · 2 + 0). Step 2: tanh(0.5 + 0.25 · 2 + 0.4621). The word 9 "
    "belongs to no step here: it would be read by the third. Everything near 1? Then a step saw it.",
)

# %% [markdown]
# ### What the decoder looks at
#
# The weights `[B, Ty, T]` can be looked at: one row a step, one column a source position. The next cell trains **your**
# encoder and decoder for ten seconds or so on a small translation task whose right alignment we know: copy a
# sequence of nine letters in reverse order.
#
# **Predict first.** Sketch the picture before you run it. Where should row 1 be dark? What would the picture
# look like for copying without reversal, and what for a pair of languages that swap adjective and noun?

# %% predict="alignment"
predict(
    "Row 1 is the first step. Where is it dark?",
    "at the first position",
    "at the last position",
    "everywhere alike",
    answer="at the last position",
    because="Written in reverse, the last letter comes first: the dark cells lie on the"
    " diagonal from the top right to the bottom left. Copying gives the other "
    "diagonal, and two languages that swap adjective and noun a diagonal with "
    "swapped pairs.",
)

# %% demo="alignment"
import matplotlib.pyplot as plt

letters, length, width, batch = 12, 9, 24, 48
draw = torch.Generator().manual_seed(0)


def weight(*shape, scale=None):
    return (
        torch.randn(*shape, generator=draw) * (scale or shape[0] ** -0.5)
    ).requires_grad_()


decoder = {
    "w_state": weight(width, width),
    "w_states": weight(width, width),
    "v": weight(width),
    "w_y": weight(letters, width),
    "w_c": weight(width, width),
    "w_s": weight(width, width),
    "b": weight(width, scale=0.01),
}
w_x, w_h, b, w_out = (
    weight(letters, width, scale=1.0),
    weight(width, width),
    weight(width, scale=0.01),
    weight(width, letters),
)
optimizer = torch.optim.Adam([*decoder.values(), w_x, w_h, b, w_out], lr=1e-2)
losses = []
for _ in range(400):
    ids = torch.randint(letters, (batch, length), generator=draw)
    answer = ids.flip(1)  # the same letters, backwards
    states, last = rnn_encode(
        torch.eye(letters)[ids], w_x, w_h, b, torch.zeros(batch, width)
    )
    hidden, weights = seq2seq_decode(states, last, torch.eye(letters)[answer], decoder)
    loss = torch.nn.functional.cross_entropy(
        (hidden @ w_out).flatten(0, 1), answer.flatten()
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(losses)
left.axhline(math.log(letters), color="grey", linestyle=":", label="guessing: ln 12")
left.set(xlabel="training step", ylabel="loss", title="Learning to write backwards")
left.legend()
names = [chr(ord("a") + i) for i in range(letters)]
image = right.imshow(weights[0].detach(), cmap="Blues", vmin=0, vmax=1)
right.set_xticks(range(length), [names[i] for i in ids[0]])
right.set_yticks(range(length), [names[i] for i in answer[0]])
right.set(
    xlabel="source position i",
    ylabel="decoder step t",
    title="Attention weights $a_{t,i}$ of one sequence",
)
figure.colorbar(image, ax=right)
plt.show()

# %% [markdown]
# Nobody told the network where to look; the anti-diagonal is what the loss asked for. The lecture shows the same
# picture for an English sentence and its French translation: a diagonal, except where *European Economic Area*
# becomes *zone économique européenne* and three words run backwards.

# %% [markdown]
# ## 5. One query
#
# ★☆☆ · about 15 minutes
#
# Look at what `additive_scores` and `attend` did together, and forget the RNNs. There was one vector that asks, the
# **query**; vectors that are compared with it, the **keys**; and vectors that are mixed, the **values** (until now
# keys and values were the same, the states). Nothing in the operation needs a recurrence.
#
# And the comparison can be simpler: a dot product. With one scale factor, whose reason is question 8:
#
# $$e_i = \frac{q \cdot k_i}{\sqrt d}, \qquad a = \mathrm{softmax}(e), \qquad y = \sum_i a_i\, v_i$$
#
# An example in numbers. We want to know what "Mexican food" is like, and have a menu. Each dish has a key, here with
# the four features (corn, chilli, rice, sugar), and a value (price in €, kilocalories, grams of salt):
#
# | dish | key | value | $q\cdot k / \sqrt 4$ | weight |
# |---|---|---|---|---|
# | burrito | (1, 2, 0, 0) | (9, 700, 2.0) | 3 | 0.696 |
# | taco | (1, 1, 0, 0) | (4, 250, 1.0) | 2 | 0.256 |
# | sushi | (0, 0, 3, 0) | (14, 350, 1.5) | 0 | 0.035 |
# | apple | (0, 0, 0, 1) | (1, 80, 0.0) | −1 | 0.013 |
#
# The query (2, 2, 0, −2) likes corn and chilli, does not care about rice and dislikes sugar. Keys decide *how much*,
# values decide *what*: the two may have different widths, and nothing of the key ends up in the result.
#
# Watch the scale: its $d$ is the width of the vectors in the dot product. It stands *inside* the softmax.
#
# **Predict first.** Will the average dish have more or fewer than 600 kilocalories?

# %% predict="single_query_attention"
predict(
    "More or fewer than 600 kilocalories?",
    "more",
    "fewer",
    answer="fewer",
    because="About 565: the dish with 700 weighs most, and the others pull the mean "
    "down.",
)


# %% question="single_query_attention"
def single_query_attention(q, k, v):
    """Attend with one query: a weighted average of the values (the lecture's scaled
    dot-product form).

    Args:
        q: [d].
        k: [N, d], N at least 1.
        v: [N, d_v].

    Returns:
        [d_v] in the dtype of v: sum_i softmax(q · k_i / sqrt(d)) v_i. Half precision is
        computed in float32 inside.

    Raises:
        ValueError: q and k have different widths, or k and v different lengths.
    """
    ### BEGIN SOLUTION
    if q.shape[0] != k.shape[1]:
        raise ValueError(f"a query of width {q.shape[0]} has no dot product with keys of width {k.shape[1]}")
    if k.shape[0] != v.shape[0]:
        raise ValueError(f"{k.shape[0]} keys need as many values, not {v.shape[0]}")
    wide = torch.promote_types(v.dtype, torch.float32)  # half precision computes in float32
    scores = k.to(wide) @ q.to(wide) / math.sqrt(q.shape[0])  # [N, d] @ [d] -> [N]
    return (softmax(scores) @ v.to(wide)).to(v.dtype)  # [N] @ [N, d_v] -> [d_v]
    ### END SOLUTION


# %% check="single_query_attention"
mexican = torch.tensor([2.0, 2.0, 0.0, -2.0])
dishes = torch.tensor(
    [
        [1.0, 2.0, 0.0, 0.0],
        [1.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 3.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ]
)
facts = torch.tensor(
    [[9.0, 700.0, 2.0], [4.0, 250.0, 1.0], [14.0, 350.0, 1.5], [1.0, 80.0, 0.0]]
)
expect(
    single_query_attention(mexican, dishes, facts),
    torch.tensor([7.790384, 564.673165, 1.700968]),
    atol=1e-3,
    hint="The table above has the scores and the weights. 646 kilocalories? Then the scores are twice as large as "
    "they should be. 479? Then they are half as large. 345? Then every dish counts the same.",
)
same = torch.ones(3, 4)  # three equal keys
expect(
    single_query_attention(mexican, same, torch.tensor([[3.0], [6.0], [0.0]])),
    torch.tensor([3.0]),
    hint="Equal keys get equal weights: 1/3 each. The result is a mean, not a sum.",
)
first = torch.tensor([1.0, 0.0, 0.0, 0.0])
two_keys = 2 * math.log(3) * torch.stack([first, torch.zeros(4)])
expect(
    single_query_attention(first, two_keys, torch.tensor([[4.0], [0.0]])),
    torch.tensor([3.0]),
    atol=1e-5,
    hint="The scores are (2 ln 3, 0), and d is 4: (ln 3, 0) after scaling, weights 3/4 and 1/4. 3.3? Then the scale "
    "knows the two keys, and not the four features.",
)

# %% [markdown]
# ## 6. Many queries
#
# ★★☆ · about 25 minutes
#
# One query a call would be a loop again. But the queries do not depend on each other: stack them as rows, and all
# dot products are one matrix product.
#
# $$E = \frac{Q K^\top}{\sqrt d} \;\; [N_q, N_k], \qquad A = \mathrm{softmax}(E) \text{ along each row}$$
#
# ![Scores, weights and results have one row per query; each row of weights sums to 1.](figures/attention_shapes.svg)
#
# Row $i$ belongs to query $i$ and says how it spreads its attention over the keys: **each row sums to 1**. The columns
# do not: a key may be popular with many queries or with none. (One slide says "Softmax normalizes each column" right
# beside code that normalizes rows. The picture there draws queries as columns; the code is right. And the chapter of
# notes has a row as $\mathrm{softmax}(q_i^\top K)$, where its own $K$ is $[N_k, d]$: no such product exists. Write the
# shapes below it, and see what is missing.)
#
# Two things people get wrong. The slides are written for a single sequence, so they say `dim=1` and transpose two
# axes of a matrix that has only two; with a batch in front axis 1 is something else. Count axes from the end.
# And with $N_q = N_k$ a matrix that is transposed by mistake has the right shape: test with different numbers.
#
# **Predict first.** What does a query of zeros attend to?

# %% predict="attention_weights"
predict(
    "What does a query of zeros attend to?",
    "nothing",
    "all keys alike",
    "the first key",
    answer="all keys alike",
    because="All its scores are 0, so all weights are equal.",
)


# %% question="attention_weights"
def attention_weights(q, k):
    """The attention weights of every query over every key (scaled dot product; Vaswani
    et al., 2017).

    Args:
        q: [..., N_q, d].
        k: [..., N_k, d], the same leading axes (any number, also none), N_k at least 1.

    Returns:
        [..., N_q, N_k] in the dtype of q: row i is softmax(q_i · k_j / sqrt(d)) over j.
        Half precision is computed in float32 inside. All queries at once: no Python
        loop over N_q or N_k.

    Raises:
        ValueError: q and k have different widths.
    """
    ### BEGIN SOLUTION
    d = q.shape[-1]
    if k.shape[-1] != d:
        raise ValueError(f"queries of width {d} have no dot product with keys of width {k.shape[-1]}")
    wide = torch.promote_types(q.dtype, torch.float32)  # half precision computes in float32
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(d)  # [..., N_q, N_k]
    return softmax(scores, dim=-1).to(q.dtype)
    ### END SOLUTION


# %% check="attention_weights"
# the second query asks for nothing
q = torch.tensor([[2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
k = torch.zeros(3, 4)
k[:, 0] = torch.log(torch.tensor([3.0, 5.0, 2.0]))
expect(
    attention_weights(q, k),
    torch.tensor([[0.3, 0.5, 0.2], [1 / 3, 1 / 3, 1 / 3]]),
    hint="Two queries, three keys: two rows, each with sum 1. The first is the 0.3, 0.5, 0.2 of question 3.",
)
batch = attention_weights(torch.randn(2, 5, 7), torch.randn(2, 6, 7))
expect(
    batch.sum(dim=-1),
    torch.ones(2, 5),
    hint="With a batch in front, the keys are still on the last axis.",
)

# %% [markdown]
# ## 7. The whole operation
#
# ★☆☆ · about 10 minutes
#
# The weights mix the values, each query its own mixture:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt d}\right) V = A\,V \quad [N_q, d_v]$$
#
# The result has one row per *query* and the width of the *values*; $N_k$ and $d$ have been summed over. You have done
# the hard part; this is about not undoing it. The scale and the softmax are already in $A$, and it is $V$ that is
# mixed. (Some slides write $AX$ and one chapter says that the result is $d_k \times N$ with one *column* a word.
# Check the shapes: $[N_q, N_k]\,[N_k, d_v]$.)
#
# **Predict first.** If you shuffle the keys and the values in the same way, what happens to the result?

# %% predict="scaled_dot_product_attention"
predict(
    "You shuffle keys and values in the same way. What happens to the result?",
    "it stays",
    "its rows are shuffled",
    answer="it stays",
    because="Each query still finds the same pairs of key and value; a sum does not "
    "care about their order.",
)


# %% question="scaled_dot_product_attention"
def scaled_dot_product_attention(q, k, v):
    """Mix the values of all keys for every query (Vaswani et al., 2017, equation 1).

    Args:
        q: [..., N_q, d].
        k: [..., N_k, d].
        v: [..., N_k, d_v], the same leading axes as q and k.

    Returns:
        [..., N_q, d_v] in the dtype of v. No Python loop over queries or keys.

    Raises:
        ValueError: q and k have different widths, or k and v different lengths.
    """
    ### BEGIN SOLUTION
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{k.shape[-2]} keys need as many values, not {v.shape[-2]}")
    return attention_weights(q, k) @ v  # [..., N_q, N_k] @ [..., N_k, d_v]
    ### END SOLUTION


# %% check="scaled_dot_product_attention"
v = torch.tensor([[10.0, 0.0], [0.0, 10.0], [-10.0, 10.0]])
expect(
    scaled_dot_product_attention(q, k, v),
    torch.tensor([[1.0, 7.0], [0.0, 20 / 3]]),
    atol=1e-5,
    hint="Row 0 is 0.3 v_1 + 0.5 v_2 + 0.2 v_3, row 1 the plain mean of the three values.",
)
shuffled = [2, 0, 1]
expect(
    scaled_dot_product_attention(q, k[shuffled], v[shuffled]),
    torch.tensor([[1.0, 7.0], [0.0, 20 / 3]]),
    atol=1e-5,
    hint="Keys and values moved together, so each query finds the same values: the result must not move.",
)

# %% [markdown]
# Three questions to the menu at once: one row a query, and each row is a way to read the same menu.

# %% demo="menu"
import matplotlib.pyplot as plt

questions = torch.tensor(
    [[2.0, 2.0, 0.0, -2.0], [0.0, -1.0, 2.0, 0.0], [-2.0, -2.0, -2.0, 3.0]]
)
asked = ["Mexican", "Japanese", "fruit"]
answers = scaled_dot_product_attention(questions, dishes, facts)
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
rows = attention_weights(questions, dishes)
image = axis.imshow(rows, cmap="Blues", vmin=0, vmax=1)
for i in range(3):
    for j in range(4):
        axis.text(
            j,
            i,
            f"{rows[i, j]:.2f}",
            ha="center",
            va="center",
            color="white" if rows[i, j] > 0.5 else "black",
        )
axis.set_xticks(range(4), ["burrito", "taco", "sushi", "apple"])
axis.set_yticks(
    range(3),
    [
        f"{name}: {answer[1]:.0f} kcal"
        for name, answer in zip(asked, answers, strict=True)
    ],
)
axis.set(xlabel="key", ylabel="query", title="Each row sums to 1; columns need not")
figure.colorbar(image, ax=axis)
plt.show()

# %% [markdown]
# ## 8. How large do scores get?
#
# ★☆☆ · about 15 minutes
#
# A dot product of two vectors of width $d$ is a sum of $d$ products. If the entries are independent with mean 0 and
# variance 1, each product has mean 0 and variance 1, and the variances add up: the sum has variance $d$ and standard
# deviation $\sqrt d$. Do not believe it: measure it. Draw pairs $(q, k)$ of standard normal vectors, take $q\cdot k$
# of each pair, and report the standard deviation over the pairs.
#
# Two habits to practise here. Every pair has its *own* query and its own key. And a function that needs random numbers
# brings its own generator (`torch.Generator`), so that equal seeds give equal results and nobody else's random numbers
# change because you drew some.
#
# **Predict first.** Doubling $d$ from 512 to 1024: what does it do to the spread?

# %% predict="score_std"
predict(
    "By which factor does the spread grow?",
    answer=1.4142,
    atol=0.02,
    because="By √2: the variances of the d products add up, and the spread is the root "
    "of the sum.",
)


# %% question="score_std"
def score_std(d, num_samples, seed):
    """Measure the standard deviation of q · k over random pairs of standard normal
    vectors.

    Args:
        d: width of the vectors, at least 1.
        num_samples: number of pairs, at least 2.
        seed: whole number; the same seed gives the same result, and the global random
            state stays untouched.

    Returns:
        A Python float, near sqrt(d): a measurement, so that it varies a little with the
        seed.

    Raises:
        ValueError: d below 1 or num_samples below 2.
    """
    ### BEGIN SOLUTION
    if d < 1 or num_samples < 2:
        raise ValueError(f"need d >= 1 and num_samples >= 2, got {d} and {num_samples}")
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(num_samples, d, generator=generator)
    k = torch.randn(num_samples, d, generator=generator)
    return (q * k).sum(dim=-1).std().item()  # one dot product per pair
    ### END SOLUTION


# %% check="score_std"
hint = "About sqrt(d). Near d: did you return the variance, or compare a vector with itself?"
expect(score_std(16, 20000, seed=0), 4.0, atol=0.2, hint=hint)
expect(score_std(1024, 5000, seed=1), 32.0, atol=1.6, hint=hint)
expect(
    score_std(16, 100, seed=5) == score_std(16, 100, seed=5),
    True,
    hint="Equal seeds, equal results.",
)

# %% [markdown]
# What your function measures at five widths, with the line $\sqrt d$:

# %% demo="score_spread"
import matplotlib.pyplot as plt

widths = [4, 16, 64, 256, 1024]
measured = [score_std(d, 5000, seed=d) for d in widths]
figure, axis = plt.subplots(figsize=(6, 4))
axis.loglog(widths, measured, "o", label="measured")
axis.loglog(widths, [math.sqrt(d) for d in widths], "-", label=r"$\sqrt{d}$")
axis.loglog(
    widths,
    [s / math.sqrt(d) for s, d in zip(measured, widths, strict=True)],
    "s",
    label=r"measured, divided by $\sqrt{d}$",
)
axis.set(
    xlabel="width d",
    ylabel="standard deviation of q · k",
    title="Scores grow with the root of the width",
)
axis.legend()
print(
    ", ".join(
        f"d = {d}: {spread:.2f}" for d, spread in zip(widths, measured, strict=True)
    )
)
plt.show()

# %% [markdown]
# ## 9. What large scores do to learning
#
# ★★☆ · about 20 minutes
#
# Scores that differ by 32 make a softmax that puts everything on one key. Is that bad? Look at the derivative. With
# $p = \mathrm{softmax}(z)$ the Jacobian, entry $(i, j)$ saying how $p_i$ moves with $z_j$, is
#
# $$J = \mathrm{diag}(p) - p\,p^\top \quad [N, N]$$
#
# When one $p_i$ is 1 and the others are 0, every entry is 0: whatever gradient arrives from above, nothing passes on
# to the scores, and the network cannot learn to look elsewhere. The softmax is *saturated*. We measure it by the
# Frobenius norm, $\lVert J\rVert_F = \sqrt{\sum_{ij} J_{ij}^2}$.
#
# Both terms matter: $p\,p^\top$ is there because raising one probability lowers the others.
#
# **Predict first.** For which $z$ is the norm larger, $(0, 0)$ or $(5, 0)$? And is there a $z$ for which it is 0?

# %% predict="softmax_gradient_norm"
predict(
    "For which z is the norm larger?",
    "(0, 0)",
    "(5, 0)",
    answer="(0, 0)",
    because="0.5 against 0.013: a softmax that has decided hardly moves. With a single "
    "entry it cannot move at all.",
)


# %% question="softmax_gradient_norm"
def softmax_gradient_norm(z):
    """How much gradient a softmax lets through: the Frobenius norm of its Jacobian
    diag(p) - p pᵀ at z.

    Args:
        z: [N], N at least 1, finite, of any size.

    Returns:
        A Python float: 0 where the softmax is saturated.

    Raises:
        ValueError: z does not have exactly one axis, or is empty.
    """
    ### BEGIN SOLUTION
    if z.ndim != 1 or z.shape[0] == 0:
        raise ValueError(f"z must be one row of scores, [N] with N >= 1, got {list(z.shape)}")
    p = softmax(z)  # [N]
    jacobian = torch.diag(p) - torch.outer(p, p)  # [N, N]
    return jacobian.pow(2).sum().sqrt().item()
    ### END SOLUTION


# %% check="softmax_gradient_norm"
expect(
    softmax_gradient_norm(torch.tensor([math.log(3.0), 0.0])),
    0.375,
    hint="p = (3/4, 1/4): all four entries of J are ±3/16. 0.265? Then the off-diagonal entries are missing.",
)
expect(
    softmax_gradient_norm(torch.zeros(5)),
    0.4,
    hint="p = 1/5 each: J has 4/25 on the diagonal and −1/25 elsewhere.",
)
expect(
    softmax_gradient_norm(torch.tensor([1000.0, 0.0, 0.0])),
    0.0,
    hint="Saturated, not NaN.",
)

# %% [markdown]
# Now put questions 8 and 9 together: draw scores as they come out of $q\cdot k$ without the scale, and with it.

# %% demo="saturation"
import matplotlib.pyplot as plt

draw = torch.Generator().manual_seed(0)
widths = [1, 4, 16, 64, 256, 1024]
unscaled, scaled = [], []
for d in widths:
    trials = []
    for _ in range(100):
        # one query, ten keys
        dots = torch.randn(10, d, generator=draw) @ torch.randn(d, generator=draw)
        trials.append(
            (softmax_gradient_norm(dots), softmax_gradient_norm(dots / math.sqrt(d)))
        )
    unscaled.append(sum(a for a, _ in trials) / len(trials))
    scaled.append(sum(b for _, b in trials) / len(trials))
factors = torch.linspace(0, 60, 60)
one_draw = torch.randn(10, generator=draw)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.plot(factors, [softmax_gradient_norm(factor * one_draw) for factor in factors])
left.set(
    xlabel="factor on the scores",
    ylabel=r"$\|J\|_F$",
    title="One row of ten scores, made larger and larger",
    ylim=(0, None),
)
right.semilogx(widths, unscaled, "o-", label=r"$q \cdot k$")
right.semilogx(widths, scaled, "s-", label=r"$q \cdot k / \sqrt{d}$")
right.set(
    xlabel="width d",
    ylabel=r"mean $\|J\|_F$",
    title="The scale keeps the gradient alive",
    ylim=(0, None),
)
right.legend()
plt.show()

# %% [markdown]
# ## 10. Three ways to connect tokens
#
# ★★☆ · about 25 minutes
#
# Now you can fill in with numbers what the lecture compares in words: a recurrence is "Not parallelizable",
# convolutions "need to stack many layers to build up large receptive fields", self-attention is "Great for long
# sequences" and "Expensive". Three layers, each from $n$ tokens of width $d$ to $n$ tokens of width $d$, none of which
# looks ahead. The *last* output is the one that should know all $n$ tokens.
#
# * **recurrence**: question 1 with $D = H = d$. Each token is multiplied by $w_x$, each state by $w_h$.
# * **convolution** of width $k$: each token and the $k - 1$ tokens before it are multiplied by a matrix `[d, d]` each,
#   and added up. (Before the first token stand zeros, and they are multiplied like the others.)
# * **attention**: question 7 with $n$ queries, keys and values of width $d$, which are given. (A mask hides what comes
#   later; the products are made in full all the same.)
#
# Count for each:
#
# * `operations`: multiplications and additions in the matrix products of one layer. A product $[a, b]\,[b, c]$ has
#   $2abc$.
# * `sequential_steps`: steps of one layer that have to wait for each other, however many machines there are. A state is
#   one step; what can be done for all tokens at once is one step, too.
# * `receptive_field`: how many of the $n$ tokens the last output can depend on, itself included, after `num_layers`
#   layers.
# * `longest_path`: how many of these steps lead from the first token to the last output, in as few layers as it takes.
#
# Two places to be careful. Layers of a convolution overlap: two of width 3 see five tokens, not six and not nine. And
# with $n = 1$ the last output is the first, and it is still one step away from the token.
#
# **Predict first.** From which $n$ on does attention take more operations than a recurrence? How many layers of width 3
# lead from the first of 1000 tokens to the last?

# %% predict="compare_layers"
predict(
    "How many layers of width 3 lead from the first of 1000 tokens to the last?",
    answer=500,
    because="Each layer looks two tokens further back, and 999 / 2 is rounded up. "
    "Attention takes more operations from n = d on.",
)


# %% question="compare_layers"
def compare_layers(n, d, k, num_layers):
    """What it costs to connect n tokens, by recurrence, by convolution and by
    attention.

    Args:
        n: tokens.
        d: width of every token.
        k: width of the convolution, at least 2; a token reads itself and the k - 1
            tokens before it.
        num_layers: depth, for the receptive field.

    Returns:
        dict with the keys "recurrence", "convolution" and "attention", each with a dict
        of int: "operations" and "sequential_steps" of one layer, "receptive_field" of
        num_layers layers, and "longest_path" of as many layers as are needed; counted
        as in the list above.

    Raises:
        ValueError: n, d or num_layers is below 1, or k below 2; it stands in the
            message.

    Source: the lecture, its three ways of processing sequences; Vaswani et al., 2017,
        table 1.
    """
    ### BEGIN SOLUTION
    if min(n, d, num_layers) < 1 or k < 2:
        raise ValueError(f"n = {n}, d = {d} and num_layers = {num_layers} must be at least 1, and k = {k} at least 2")
    recurrence = {
        "operations": n * 2 * 2 * d * d,  # two products [1, d] [d, d] a token
        "sequential_steps": n,
        "receptive_field": n,
        "longest_path": n,  # through every state
    }
    convolution = {
        "operations": n * k * 2 * d * d,  # k products [1, d] [d, d] a token
        "sequential_steps": 1,
        "receptive_field": min(n, 1 + num_layers * (k - 1)),  # each layer looks k - 1 tokens further back
        "longest_path": max(1, -(-(n - 1) // (k - 1))),  # n - 1 tokens back, rounded up
    }
    attention = {
        "operations": 2 * 2 * n * n * d,  # [n, d] [d, n], then [n, n] [n, d]
        "sequential_steps": 1,
        "receptive_field": n,
        "longest_path": 1,
    }
    return {"recurrence": recurrence, "convolution": convolution, "attention": attention}
    ### END SOLUTION


# %% check="compare_layers"
seven = compare_layers(n=7, d=4, k=3, num_layers=2)
expect(
    [
        seven[kind]["operations"]
        for kind in ("recurrence", "convolution", "attention")
    ],
    [448, 672, 784],
    hint="[1, 4] [4, 4] takes 32, twice for each of 7 tokens; then three times; then [7, 4] [4, 7] and [7, 7] [7, 4].",
)
expect(
    seven["recurrence"]["sequential_steps"],
    7,
    hint="The seventh state needs the sixth, and so on.",
)
expect(
    seven["convolution"]["receptive_field"],
    5,
    hint="Layer 2 reads three outputs of layer 1.",
)
expect(
    seven["convolution"]["longest_path"], 3, hint="Six places back, two a layer."
)
expect(
    seven["attention"]["longest_path"],
    1,
    hint="The last query meets the first key directly.",
)

# %% [markdown]
# What an output *can* depend on is one thing, how much it *does* another. Left: how far the last output of each layer
# moves with each token (the length of its gradient; less than $10^{-9}$ is drawn as $10^{-9}$), for random weights and
# your own functions. Right: operations, with the length at which attention overtakes a recurrence. **Predict:** what
# becomes of the first token in a recurrence?

# %% predict="three_ways"
predict(
    "What becomes of the first token in a recurrence?",
    "it is nearly forgotten",
    "it counts as much as the last",
    answer="it is nearly forgotten",
    because="Each step multiplies its influence by a matrix and a slope below 1, and 39"
    " steps leave next to nothing.",
)

# %% demo="three_ways"
import matplotlib.pyplot as plt

n, d, k = 40, 32, 3
draw = torch.Generator().manual_seed(4)
tokens = torch.randn(1, n, d, generator=draw)
w_x, w_h = (torch.randn(d, d, generator=draw) * 0.6 / math.sqrt(d) for _ in range(2))
taps = torch.randn(k, d, d, generator=draw) / math.sqrt(k * d)


def convolve(x):
    """[B, n, d] -> [B, n, d]: each token and the k - 1 before it, each by its own
    matrix.
    """
    padded = torch.cat([torch.zeros(1, k - 1, d), x], dim=1)
    return sum(padded[:, j : j + n] @ taps[j] for j in range(k))


ways = {
    "recurrence": lambda x: rnn_encode(x, w_x, w_h, torch.zeros(d), torch.zeros(1, d))[
        1
    ][0],
    "four convolutions of width 3": lambda x: convolve(convolve(convolve(convolve(x))))[
        0, -1
    ],
    "attention": lambda x: scaled_dot_product_attention(x[:, -1:], x, x)[0, 0],
}
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for name, way in ways.items():
    x = tokens.clone().requires_grad_()
    # [d, n, d]
    moved = torch.stack(
        [torch.autograd.grad(y, x, retain_graph=True)[0][0] for y in way(x)]
    )
    left.semilogy(
        range(1, n + 1),
        moved.pow(2).sum(dim=(0, 2)).sqrt().clamp(min=1e-9),
        "o-",
        markersize=3,
        label=name,
    )
left.set(
    xlabel="token",
    ylabel="how far the last output moves",
    title="Who reaches the last output",
    ylim=(1e-10, 1e4),
)
left.legend(loc="upper left")
lengths = [2**e for e in range(4, 14)]
for kind in ("recurrence", "convolution", "attention"):
    right.loglog(
        lengths,
        [compare_layers(m, 512, 3, 1)[kind]["operations"] for m in lengths],
        label=kind,
    )
right.axvline(512, color="grey", linestyle=":", label="n = d = 512")
right.set(xlabel="tokens n", ylabel="operations", title="One layer, d = 512, k = 3")
right.legend()
plt.show()

# %% [markdown]
# ## 11. Find the error in the notes
#
# ★★☆ · about 35 minutes
#
# The slide with the first attention picture computes $e_{t,i} = f_{\text{att}}(s_{t-1}, h_i)$ and adds, in brackets,
# "$f_{\text{att}}$ is a Linear Layer". Take this at its word. A linear layer with one output, applied to the pair of
# vectors put one behind the other, has $S + H$ weights and a bias:
#
# $$e_i = [\,s\,;\,h_i\,]\cdot w + b$$
#
# The scores do depend on $s$. Everything seems fine, and yet a decoder with these scores cannot do what the slide's
# own heat map shows. You are going to prove it with numbers, in two functions: the layer as the slide has it, and a
# measurement that works for any scoring function.
#
# ### 11a. The layer of the slide


# %% question="linear_scores"
def linear_scores(state, states, w, b):
    """Score every encoder state by one linear layer on the pair [state; states_i], as
    the slide says.

    Args:
        state: [B, S].
        states: [B, T, H].
        w: [S + H], the first S entries for the state, the last H for the encoder state.
        b: [], the bias.

    Returns:
        [B, T], scores e_i = [state; states_i] · w + b.

    Raises:
        ValueError: w does not have S + H entries. The batches of state and states are
            taken to be equal.
    """
    ### BEGIN SOLUTION
    width = state.shape[-1]
    if w.shape != (width + states.shape[-1],):
        raise ValueError(f"w {list(w.shape)} must have one entry for each of {width} + {states.shape[-1]} features")
    asked = (state @ w[:width]).unsqueeze(-1)  # [B, 1]
    offered = states @ w[width:]  # [B, T]
    return asked + offered + b
    ### END SOLUTION


# %% check="linear_scores"
scores = linear_scores(
    torch.tensor([[10.0, 20.0]]),
    torch.tensor([[[1.0], [2.0], [3.0]]]),
    torch.tensor([1.0, 0.5, 100.0]),
    torch.tensor(4.0),
)
expect(
    scores,
    torch.tensor([[124.0, 224.0, 324.0]]),
    hint="10 · 1 + 20 · 0.5 from the state, 100 · h_i from the encoder state, 4 from the bias.",
)

# %% [markdown]
# ### 11b. Does the query matter?
#
# `score` is some scoring function, called as `score(state, states)`. Ask it with two different decoder states about
# the same source, and measure two things: how far the scores move, and how far the *attention weights* move. If the
# second number is zero whatever the two states are, the decoder looks at the same places at every step of every
# sentence, and no training can change that.
#
# **Predict first.** For `linear_scores` one of the two numbers is zero. Which one, and why does the other not save it?
# (You met the reason in question 3.) For `additive_scores`, what does the tanh change?

# %% predict="query_effect"
predict(
    "Which of the two numbers is zero for `linear_scores`?",
    "the change of the scores",
    "the change of the weights",
    answer="the change of the weights",
    because="The decoder's part is one number, added to all scores of a row, and a "
    "softmax does not notice. The tanh makes the two parts interact.",
)


# %% question="query_effect"
def query_effect(score, state_a, state_b, states):
    """Measure how far scores and attention weights move when another decoder state
    asks.

    Args:
        score: a function, score(state [B, S], states [B, T, H]) -> scores [B, T].
        state_a, state_b: [B, S], two decoder states for each sentence.
        states: [B, T, H]; what does not fit the states is up to score.

    Returns:
        (score_change, weight_change): two Python floats, the largest absolute
        difference over all sentences and positions, first between the two sets of
        scores, then between the two sets of attention weights.

    Raises:
        ValueError: state_a and state_b have different shapes.
    """
    ### BEGIN SOLUTION
    if state_a.shape != state_b.shape:
        raise ValueError(f"states to compare have shapes {list(state_a.shape)} and {list(state_b.shape)}")
    scores_a, scores_b = score(state_a, states), score(state_b, states)  # [B, T] each
    _, weights_a = attend(scores_a, states)
    _, weights_b = attend(scores_b, states)
    return (scores_a - scores_b).abs().max().item(), (weights_a - weights_b).abs().max().item()
    ### END SOLUTION


# %% check="query_effect"
# v·h plus a term that knows only the state: the scores move by 4, the weights stay
# (0.75, 0.25)
two = torch.tensor([[[math.log(3.0)], [0.0]]])
effect = query_effect(
    lambda s, h: h[..., 0] + s, torch.tensor([[5.0]]), torch.tensor([[1.0]]), two
)
expect(
    torch.tensor(effect),
    torch.tensor([4.0, 0.0]),
    hint="Compare the weights after the softmax, not the scores.",
)
# a dot product: with s = 0 both weights are 0.5, with s = 1 they are 0.75 and 0.25
effect = query_effect(
    lambda s, h: h[..., 0] * s, torch.tensor([[0.0]]), torch.tensor([[1.0]]), two
)
expect(
    torch.tensor(effect),
    torch.tensor([1.0986123, 0.25]),
    hint="The largest difference, as an absolute value.",
)

# %% [markdown]
# And the proof, with weights drawn at random. The bar of no height is the error in the notes (the
# $10^{-7}$ or so that remain are rounding).

# %% demo="query_matters"
import matplotlib.pyplot as plt

draw = torch.Generator().manual_seed(8)
state_a, state_b = torch.randn(3, 5, generator=draw), torch.randn(3, 5, generator=draw)
states = torch.randn(3, 7, 6, generator=draw)
w, b = torch.randn(11, generator=draw), torch.randn((), generator=draw)
w_state, w_states, v = (
    torch.randn(5, 4, generator=draw),
    torch.randn(6, 4, generator=draw),
    torch.randn(4, generator=draw),
)
linear = query_effect(lambda s, h: linear_scores(s, h, w, b), state_a, state_b, states)
additive = query_effect(
    lambda s, h: additive_scores(s, h, w_state, w_states, v), state_a, state_b, states
)
figure, axes = plt.subplots(1, 2, figsize=(8, 3))
for axis, title, values in zip(
    axes,
    ["scores move by", "weights move by"],
    zip(linear, additive, strict=True),
    strict=True,
):
    bars = axis.bar(["linear layer", "with tanh"], values, color=["#c2570c", "#3b6ea8"])
    axis.bar_label(bars, fmt="%.2g")
    axis.set(ylabel="largest difference", title=title)
    axis.margins(y=0.15)  # room for the numbers above the bars
figure.tight_layout()
plt.show()

# %% [markdown] written="why_root_d" points=5
# ## 12. In your own words
#
# A slide explains the scale like this: take two vectors of width $D$ whose entries are all equal to a constant $a$.
# Their length is $a\sqrt D$, so their dot product grows with $D$, the softmax saturates, and that is why we divide by
# $\sqrt D$.
#
# The conclusion is right, the argument is not. **By what would this argument have us divide, which assumption about
# the entries makes $\sqrt d$ the right scale, and what would you see in the plots of questions 8 and 9 if you divided
# by $d$ instead?** Five to eight sentences.
#
# ### BEGIN SOLUTION
# For constant vectors $a\cdot a$ summed $D$ times gives $D a^2$: the dot product grows like $D$ itself, so that this
# argument would have us divide by $D$. All terms have the same sign and add up without cancelling. Entries of
# queries and keys at the start of training are rather independent with mean 0 and variance 1. Then each product
# $q_j k_j$ has mean 0 and variance 1, the variances add to $d$, and the dot product has standard deviation
# $\sqrt d$: signs differ and most of the sum cancels. Dividing by $\sqrt d$ brings the scores to standard deviation
# 1 at every width. Dividing by $d$ leaves a standard deviation of $1/\sqrt d$: in the plot of question 8 the points
# would fall instead of lying flat, and at $d = 1024$ nearly all scores would be within a tenth of 0. The softmax
# would be nearly uniform; its gradient would not vanish (in the plot of question 9 the curve stays near the value of
# equal weights), but every query would average over all keys until the weights have grown to undo the scale.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 1 point: the slide's argument gives a dot product that grows like $D$, and would divide by $D$.
# - 2 points: independent entries with mean 0 and variance 1; variances add to $d$, so the standard deviation is
#   $\sqrt d$. (1 point where the independence or the mean of 0 is not named.)
# - 2 points: dividing by $d$ makes the scores shrink with the width; the weights become nearly uniform while the
#   gradient does not vanish. (1 point for the plot of question 8 alone.)
# ### END MARK SCHEME
