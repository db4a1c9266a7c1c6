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
# # Assignment 6: whole models
#
# You have every part: attention, masks, heads, norms, blocks. A *model* is what stands around the blocks: something
# that turns the outside world into rows of numbers, something that turns the rows back, a loss, and a loop. These are
# few lines, and many of the mistakes that cost people weeks sit in them, because a model with a wrong shift, a missing
# mask or a scrambled patch still trains. It is just quietly worse, or suspiciously good.
#
# ![A decoder alone, an encoder with a decoder, and blocks over patches](figures/three_models.svg)
#
# The three models of the picture are the three that the lecture shows. You build each of them whole, and each learns
# something before your eyes in less than a minute: the language model a little grammar, the encoder–decoder to
# translate a language that reads backwards, the vision transformer to tell patterns apart. Besides, you look into them:
# what a word's vector means in its context, how far a head looks in an image, what a trained model is worth for another
# task.
#
# | | function | what it gives | difficulty, estimated time |
# |---|---|---|---|
# | 1 | `count_parameters` | where 1.5 or 175 billion numbers sit | ★★☆, 35 min |
# | 2 | `decoder_lm` | token ids to logits | ★★☆, 30 min |
# | 3 | `lm_loss` | how surprised the model is by the next token | ★★☆, 25 min |
# | 4 | `train_step` | one step of gradient descent | ★★☆, 25 min |
# | 5 | `similarity_by_layer` | what a word means here, and in the table | ★★☆, 25 min |
# | 6 | `filtered_probabilities` | temperature, top-k, top-p | ★★★, 35 min |
# | 7 | `generate` | the model writes | ★★☆, 30 min |
# | 8 | `encoder_decoder` | the model of 2017 | ★★★, 40 min |
# | 9 | `shift_right` | what the decoder reads in training | ★☆☆, 10 min |
# | 10 | `greedy_translate` | the model translates | ★★☆, 25 min |
# | 11 | `patchify` | an image as a row of patches | ★★☆, 20 min |
# | 12 | `patch_conv_weight` | the same thing as a convolution | ★☆☆, 15 min |
# | 13 | `vit_logits` | the model looks | ★☆☆, 20 min |
# | 14 | `attention_distance` | how far a head looks | ★★☆, 20 min |
# | 15 | `fine_tune` | a trained model learns another task | ★★☆, 30 min |
# | 16 | `explain_model_size` | the error in the notes | ★★☆, 25 min |
# | 17 | a written answer | which stack of blocks for which task | 15 min |
#
# **Conventions of this course**
#
# - Every function is pure: weights come in as arguments (`params`, nested dicts and lists), inputs are never changed.
# - A weight matrix is `[in, out]` and multiplies from the right, `x @ w`. (`nn.Linear` stores `[out, in]`.)
# - Tokens are rows. `B` batch, `N` tokens, `D` model width, `V` vocabulary, `F` width inside an MLP, `H` heads, `d`
#   width of a head; images are `[B, C, H, W]` (channels, height, width), patches have side `P`.
# - Masks are boolean, **True = may attend**.
# - The result has the dtype of the weights, which images have too. Half precision computes norms and softmaxes in float32.
# - Arguments that cannot be right raise `ValueError` with the sizes in the message.
# - `config` is a plain object whose attributes are sizes and switches. You find them in the library cell below.

# %% given="imports"
import math
from dataclasses import dataclass

import torch

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% [markdown]
# ## From the earlier assignments
#
# Attention and both blocks are given, with the names of their parameters. Read two things once: how
# `multi_head_attention` treats masks of two and of three axes, and what `x_kv` does. `ModelConfig` lists everything
# that a `config` can say. `check_ids` refuses ids outside a table. `list_tensors` and `with_tensors` walk through
# nested parameters, for training.
#
# Your own answers may take the place of what is given: `python make_my_course.py` with the names of your notebooks so
# far makes them a module, and prints the line that goes into a cell below.


# %% given="library" module="library"
@dataclass(frozen=True)
class ModelConfig:
    """Sizes and switches of a model."""

    vocab_size: int  # V
    d_model: int  # D
    num_layers: int  # blocks of the decoder (or of the only stack there is)
    num_heads: int  # H
    d_head: int  # d
    d_ff: int  # F
    context_length: int  # the longest sequence
    num_encoder_layers: int = 0  # 0: there is no encoder, and no cross-attention
    tied: bool = True  # the unembedding is the embedding, transposed
    # every matrix of a block has a bias (only count_parameters asks)
    biases: bool = True
    norms: bool = True  # norms have gamma and beta, and count
    # one vector a position; False: sinusoidal, nothing to learn
    learned_positions: bool = True
    final_norm: bool = True  # a norm after the last block
    patch: int = 0  # P, for images


def causal_mask(n_q, n_k=None):
    """bool [N_q, N_k]: query i may see key j when j <= i + N_k - N_q (assignment 3)."""
    n_k = n_q if n_k is None else n_k
    return torch.arange(n_k) <= torch.arange(n_q)[:, None] + (n_k - n_q)


def sinusoidal_positions(n, d):
    """[N, D] in the default dtype: sines in the even columns, cosines in the odd ones
    (assignment 3).
    """
    # [N, ceil(D/2)]
    angles = torch.arange(n).double()[:, None] * 10000.0 ** (
        -torch.arange(0, d, 2).double() / d
    )
    table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d]
    return table.to(torch.get_default_dtype())


def masked_softmax(scores, mask):
    """Softmax of scores [..., N_q, N_k] over the allowed keys; a query with no key gets
    zeros (assignment 3).
    """
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    empty = ~mask.any(dim=-1, keepdim=True)  # [..., N_q, 1]
    wide = wide.masked_fill(~mask, float("-inf")).masked_fill(empty, 0.0)
    return torch.softmax(wide, dim=-1).masked_fill(~mask, 0.0).to(scores.dtype)


def multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    """Attention with H heads: x [B, N_q, D] asks, x_kv [B, N_k, D] (x itself where
    None) is read (assignment 4).

    w_q, w_k, w_v are [D, H*d], w_o is [H*d, D]. A mask has the axes [N_q, N_k], or
    [B, N_q, N_k] (also [B, 1, N_k]), or four, and is then used as it is. Returns
    [B, N_q, D].
    """
    source = x if x_kv is None else x_kv
    width = w_q.shape[1]
    if num_heads < 1 or width % num_heads != 0:
        raise ValueError(f"{width} columns do not divide into {num_heads} heads")

    def split(y):  # [B, N, H*d] -> [B, H, N, d]
        return y.reshape(y.shape[0], y.shape[1], num_heads, -1).transpose(1, 2)

    q, k, v = split(x @ w_q), split(source @ w_k), split(source @ w_v)
    # float16 has no score above 65504
    wide = torch.promote_types(x.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1)  # [B, H, N_q, N_k]
    scores = scores / math.sqrt(q.shape[-1])
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
    if mask.dim() == 3:
        mask = mask.unsqueeze(1)  # [B, 1, N_q, N_k]: the same for every head
    y = (masked_softmax(scores, mask) @ v.to(wide)).to(x.dtype)  # [B, H, N_q, d]
    return y.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1) @ w_o  # [B, N_q, D]


def layer_norm(x, gamma, beta, eps=1e-5):
    """Each token to mean 0 and variance 1 over its features, then times gamma plus beta
    (assignment 5).
    """
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    centred = wide - wide.mean(dim=-1, keepdim=True)
    variance = centred.pow(2).mean(dim=-1, keepdim=True)
    return (centred / torch.sqrt(variance + eps) * gamma + beta).to(x.dtype)


def mlp(x, w1, b1, w2, b2):
    """Two layers with a ReLU between, on each token alone (assignment 5)."""
    return torch.relu(x @ w1 + b1) @ w2 + b2


def self_attention_of(x, block, num_heads, mask=None):
    """Multi-head self-attention with a block's own w_q, w_k, w_v, w_o."""
    return multi_head_attention(
        x, block["w_q"], block["w_k"], block["w_v"], block["w_o"], num_heads, mask
    )


def mlp_of(x, block):
    """The MLP with a block's own w1, b1, w2, b2."""
    return mlp(x, block["w1"], block["b1"], block["w2"], block["b2"])


def pre_norm_block(x, block, num_heads, mask=None):
    """x [B, N, D] -> [B, N, D]: norm 1, attention, add; norm 2, MLP, add (assignment
    5).
    """
    x = x + self_attention_of(
        layer_norm(x, block["ln1_gamma"], block["ln1_beta"]), block, num_heads, mask
    )
    return x + mlp_of(layer_norm(x, block["ln2_gamma"], block["ln2_beta"]), block)


def post_norm_block(x, block, num_heads, mask=None):
    """x [B, N, D] -> [B, N, D]: attention, add, norm 1; MLP, add, norm 2 (assignment
    5).
    """
    x = layer_norm(
        x + self_attention_of(x, block, num_heads, mask),
        block["ln1_gamma"],
        block["ln1_beta"],
    )
    return layer_norm(x + mlp_of(x, block), block["ln2_gamma"], block["ln2_beta"])


def check_ids(ids, size):
    """ValueError where an id is outside 0 … size - 1."""
    outside = (ids < 0) | (ids >= size)
    if outside.any():
        raise ValueError(f"id {ids[outside][0].item()} is outside a table of {size}")


def list_tensors(params):
    """All tensors of nested dicts and lists, in a fixed order."""
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


def random_block(config, generator, cross=False):
    """Weights of one block; with cross, a decoder block that also has c_q, c_k, c_v,
    c_o and a third norm.
    """
    d, inner, f = config.d_model, config.num_heads * config.d_head, config.d_ff
    shapes = {
        "w_q": (d, inner),
        "w_k": (d, inner),
        "w_v": (d, inner),
        "w_o": (inner, d),
        "w1": (d, f),
        "w2": (f, d),
    }
    if cross:
        shapes |= {
            "c_q": (d, inner),
            "c_k": (d, inner),
            "c_v": (d, inner),
            "c_o": (inner, d),
        }
    block = {
        name: torch.randn(s, generator=generator) / math.sqrt(s[0])
        for name, s in shapes.items()
    }
    for norm in ("ln1", "ln2", "ln3") if cross else ("ln1", "ln2"):
        block |= {f"{norm}_gamma": torch.ones(d), f"{norm}_beta": torch.zeros(d)}
    return block | {"b1": torch.zeros(f), "b2": torch.zeros(d)}


def random_lm(config, seed=0):
    """Parameters of a decoder language model, as decoder_lm wants them."""
    g = torch.Generator().manual_seed(seed)
    d = config.d_model
    params = {
        # [V, D]
        "embed": torch.randn(config.vocab_size, d, generator=g) / math.sqrt(d),
        "positions": torch.randn(config.context_length, d, generator=g) / math.sqrt(d),
        "blocks": [random_block(config, g) for _ in range(config.num_layers)],
        "lnf_gamma": torch.ones(d),
        "lnf_beta": torch.zeros(d),
    }
    if not config.tied:
        # [D, V]
        params["unembed"] = torch.randn(d, config.vocab_size, generator=g) / math.sqrt(
            d
        )
    return params


def random_encoder_decoder(config, source_vocab_size, seed=0):
    """Parameters of an encoder–decoder, as encoder_decoder wants them."""
    g = torch.Generator().manual_seed(seed)
    d = config.d_model
    return {
        "src_embed": torch.randn(source_vocab_size, d, generator=g),  # [V_s, D]
        "tgt_embed": torch.randn(config.vocab_size, d, generator=g),  # [V, D]
        "encoder": [random_block(config, g) for _ in range(config.num_encoder_layers)],
        "decoder": [
            random_block(config, g, cross=True) for _ in range(config.num_layers)
        ],
        # [D, V]
        "unembed": torch.randn(d, config.vocab_size, generator=g) / math.sqrt(d),
    }


def random_vit(config, channels, num_patches, num_classes, seed=0):
    """Parameters of a vision transformer, as vit_logits wants them."""
    g = torch.Generator().manual_seed(seed)
    d, pixels = config.d_model, channels * config.patch**2
    return {
        # [C*P*P, D]
        "w_patch": torch.randn(pixels, d, generator=g) / math.sqrt(pixels),
        "b_patch": torch.zeros(d),
        "positions": torch.randn(num_patches, d, generator=g) / math.sqrt(d),  # [N, D]
        "blocks": [random_block(config, g) for _ in range(config.num_layers)],
        "lnf_gamma": torch.ones(d),
        "lnf_beta": torch.zeros(d),
        "w_head": torch.zeros(d, num_classes),
        "b_head": torch.zeros(num_classes),
    }


# %% [markdown]
# ## 1. Where the parameters are
#
# ★★☆ · about 35 minutes
#
# The lecture names three sizes: 213 million, 1.5 billion, 175 billion. Such a number is a sum that you can write down
# from the config, and writing it down teaches more about the architecture than the number does. Count by groups:
#
# | key | what is counted |
# |---|---|
# | `embedding` | one row of $D$ for each token: $V\,D$ (an encoder–decoder shares one table between both languages) |
# | `positions` | `context_length` rows of $D$, where they are learned; sinusoids have no parameters |
# | `attention` | self-attention of *every* block, encoder and decoder: three matrices $[D, H d]$ and one $[H d, D]$ |
# | `cross_attention` | the same four once more, in each *decoder* block of an encoder–decoder |
# | `mlp` | $[D, F]$ and $[F, D]$, in every block |
# | `norms` | $\gamma$ and $\beta$, $2D$ a norm: two in a block, three with cross-attention; plus a final one |
# | `unembedding` | $[D, V]$ where it is a matrix of its own, nothing where it is tied to the embedding |
#
# With `biases`, each of these matrices in a block has a bias as wide as its *output*: $3 H d + D$ for an attention,
# $F + D$ for an MLP. Embedding and unembedding have none. Without `norms`, no norm counts, the final one included.
#
# With $H d = D$ and $F = 4D$, the matrices of a block hold $4D^2 + 8D^2 = 12 D^2$ numbers, and those of a block
# **with cross-attention** $16 D^2$. These two are worth knowing by heart. Two ways to go wrong: writing $12 D^2$ for a
# block that reads an encoder, and writing $D^2$ where the config says $D\cdot H d$.
#
# **Predict first.** In GPT-3 ($D = 12288$, 96 blocks, 50 257 tokens), what share of the parameters is in the
# embedding? And in the smallest GPT-2 ($D = 768$, 12 blocks, the same tokens)?

# %% predict="count_parameters"
predict(
    "In the smallest GPT-2, how many per cent of the parameters are in the embedding?",
    answer=31,
    atol=4,
    because="38.6 of 124 million. In GPT-3 it is 0.6 of 175 billion, a third of one per"
    " cent.",
)


# %% question="count_parameters"
def count_parameters(config):
    """Numbers that a model learns, by group.

    Args:
        config: an object with the attributes of ModelConfig. num_layers counts the
            decoder blocks (of a decoder-only model: all blocks), num_encoder_layers the
            encoder blocks; 0 means decoder only, without cross-attention.

    Returns:
        dict of int: "embedding", "positions", "attention", "cross_attention", "mlp",
        "norms", "unembedding", and "total", the sum of the seven. A group that the
        model does not have is 0. With an encoder there are still one table of positions
        and one final norm.

    Raises:
        ValueError: vocab_size, d_model, num_heads, d_head, d_ff or context_length is
            below 1, or a number of layers below 0; the size in the message.
    """
    ### BEGIN SOLUTION
    c = config
    sizes = (c.vocab_size, c.d_model, c.num_heads, c.d_head, c.d_ff, c.context_length)
    if min(sizes) < 1 or min(c.num_layers, c.num_encoder_layers) < 0:
        raise ValueError(f"sizes must be at least 1: {sizes}; layers: {c.num_layers}, {c.num_encoder_layers}")
    d, inner, f = c.d_model, c.num_heads * c.d_head, c.d_ff
    blocks = c.num_layers + c.num_encoder_layers
    cross_blocks = c.num_layers if c.num_encoder_layers > 0 else 0
    attention = 4 * d * inner + (3 * inner + d if c.biases else 0)  # one attention
    mlp = 2 * d * f + (f + d if c.biases else 0)
    norms = 2 * blocks + cross_blocks + (1 if c.final_norm else 0)  # how many norms
    counts = {
        "embedding": c.vocab_size * d,
        "positions": c.context_length * d if c.learned_positions else 0,
        "attention": blocks * attention,
        "cross_attention": cross_blocks * attention,
        "mlp": blocks * mlp,
        "norms": norms * 2 * d if c.norms else 0,
        "unembedding": 0 if c.tied else d * c.vocab_size,
    }
    return counts | {"total": sum(counts.values())}
    ### END SOLUTION


# %% check="count_parameters"
tiny = ModelConfig(
    vocab_size=5,
    d_model=4,
    num_layers=1,
    num_heads=2,
    d_head=3,
    d_ff=7,
    context_length=6,
    biases=False,
    norms=False,
)
expect(
    count_parameters(tiny)["attention"],
    96,
    hint="Three matrices [4, 6] and one [6, 4]: H*d is 6, not D.",
)
expect(
    count_parameters(tiny)["total"],
    196,
    hint="5·4 + 6·4 + 96 + 2·4·7. Is something counted that is off?",
)
# The lecture's GPT-2: 48 blocks, D = 1600, 25 heads, 1024 positions. "1.5B" assumes
# a vocabulary of 50 257, an
# unembedding that is tied, biases and a final norm.
gpt2 = ModelConfig(50_257, 1600, 48, 25, 64, 6400, 1024)
expect(
    count_parameters(gpt2),
    {
        "embedding": 80_411_200,
        "positions": 1_638_400,
        "attention": 491_827_200,
        "cross_attention": 0,
        "mlp": 983_424_000,
        "norms": 310_400,
        "unembedding": 0,
        "total": 1_557_611_200,
    },
    hint="A number that is off by 48 times something small is a bias or a norm of each block; one that is off by "
    "1600 or 3200 is the final norm.",
)
# The lecture's GPT-3: 96 blocks, D = 12288, 96 heads, 2048 positions; the same
# assumptions.
gpt3 = ModelConfig(50_257, 12_288, 96, 96, 128, 49_152, 2048)
expect(
    count_parameters(gpt3)["total"],
    174_604_259_328,
    hint="The formula of GPT-2, with other sizes.",
)
# The lecture's "12 blocks" and "213M params" of 2017, read as 6 encoder and 6
# decoder blocks: 6·12 D² + 6·16 D² in
# matrices.
first = ModelConfig(
    37_000,
    1024,
    6,
    16,
    64,
    4096,
    512,
    num_encoder_layers=6,
    learned_positions=False,
    final_norm=False,
    biases=False,
)
counts = count_parameters(first)
expect(
    counts["attention"] + counts["cross_attention"] + counts["mlp"],
    176_160_768,
    hint="Six blocks of 12 D² and six of 16 D²: only the decoder blocks have cross-attention.",
)
expect(
    counts["norms"],
    61_440,
    hint="Six blocks with two norms, six with three; each norm has gamma and beta.",
)

# %% [markdown]
# Shares of the lecture's three models. The larger the model, the less of it is embedding. Of the blocks the MLPs hold
# the most: two thirds where there is no cross-attention.

# %% demo="shares"
import matplotlib.pyplot as plt

models = {
    "2017, 6 + 6 blocks": first,
    "GPT-2, 48 blocks": gpt2,
    "GPT-3, 96 blocks": gpt3,
}
figure, axis = plt.subplots(figsize=(8, 2.8), layout="constrained")
bottom = [0.0] * len(models)
for group in ("embedding", "positions", "attention", "cross_attention", "mlp", "norms"):
    shares = [
        100 * count_parameters(c)[group] / count_parameters(c)["total"]
        for c in models.values()
    ]
    axis.barh(list(models), shares, left=bottom, label=group.replace("_", " "))
    bottom = [b + s for b, s in zip(bottom, shares, strict=True)]
axis.set(xlabel="% of the parameters", title="Where the parameters are")
axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %% [markdown]
# ## 2. A language model
#
# ★★☆ · about 30 minutes
#
# A language model reads token ids and says, at every position, what it expects next:
#
# $$X = E[\text{ids}] + P_{0\dots N-1} \qquad X \leftarrow \text{block}_\ell(X)\ \text{(causal)} \qquad
#   \text{logits} = \mathrm{LN}_f(X)\,U$$
#
# with the embedding $E$ `[V, D]`, one learned vector a position, $P$ `[context_length, D]`, and the unembedding $U$
# `[D, V]`. Where params have no `unembed` the model is **tied**: the same table is used on both ends,
# $U = E^\top$. The score of a word is then the dot product of what the model is thinking with that word's embedding.
#
# The blocks are pre-norm. In such a block nothing ever normalizes the stream itself, it only grows; so one last norm
# stands between the last block and the unembedding. It has parameters of its own.
#
# What goes wrong here goes wrong silently:
#
# 1. The causal mask. Without it each position can look at the very token that it should predict. The training loss
#    becomes wonderful, and the model is useless.
# 2. What the positions are indexed by, and where they are added. Token 7 at place 0 gets position 0; and once, at
#    the input, is enough: the residual stream carries it through.
#
# And an id outside the vocabulary should be an error that says so. Indexing with −1 would quietly fetch the last word.
#
# **Predict first.** An untrained tied model with *no* blocks at all: which word does it think comes next?

# %% predict="decoder_lm"
predict(
    "Which word comes next, by this model?",
    "the same word again",
    "every word alike",
    "the first of the vocabulary",
    answer="the same word again",
    because="The output compares the word's own vector with all vectors of the table, "
    "and it fits itself best.",
)


# %% question="decoder_lm"
def decoder_lm(ids, params, config):
    """Logits of the next token at every position, by a stack of causal pre-norm blocks,
    then a final norm.

    The norms stand where GPT-2 has them. Unlike GPT-2, the MLP has ReLU, and the
    products of the attention no biases.

    Args:
        ids: int64 [B, N], N at least 1.
        params: dict with embed [V, D], positions [context_length, D], blocks (list of
            dicts for pre_norm_block), lnf_gamma, lnf_beta [D] (the final norm), and
            unembed [D, V]; without unembed the model is tied, and with it not, whatever
            config.tied says.
        config: num_heads, vocab_size (V, the rows of embed) and context_length are
            used.

    Returns:
        logits [B, N, V] in the dtype of the weights; row i depends on ids 0 … i only.
        All positions at once: no Python loop over N.

    Raises:
        ValueError: N is above context_length (both in the message), or an id is outside
            0 … V - 1 (the id and V).
    """
    ### BEGIN SOLUTION
    n = ids.shape[1]
    if n > config.context_length:
        raise ValueError(f"{n} tokens do not fit into a context of {config.context_length}")
    check_ids(ids, config.vocab_size)
    x = params["embed"][ids] + params["positions"][:n]  # [B, N, D]
    for block in params["blocks"]:
        x = pre_norm_block(x, block, config.num_heads, causal_mask(n))
    x = layer_norm(x, params["lnf_gamma"], params["lnf_beta"])
    if "unembed" in params:
        return x @ params["unembed"]  # [B, N, D] [D, V]
    return x @ params["embed"].T  # tied: [B, N, D] [D, V]
    ### END SOLUTION


# %% check="decoder_lm"
no_blocks = ModelConfig(
    vocab_size=3,
    d_model=2,
    num_layers=0,
    num_heads=1,
    d_head=2,
    d_ff=4,
    context_length=4,
)
params = {
    "embed": torch.tensor([[3.0, 1.0], [1.0, 3.0], [0.0, 2.0]]),
    "positions": torch.tensor([[0.0, 0.0], [0.0, 4.0], [9.0, 0.0], [0.0, 0.0]]),
    "blocks": [],
    "lnf_gamma": torch.ones(2),
    "lnf_beta": torch.zeros(2),
}
# Token 0 is (3, 1) at place 0 and (3, 5) at place 1; normalized these are (1, -1)
# and (-1, 1).
expect(
    decoder_lm(torch.tensor([[0, 0]]), params, no_blocks),
    torch.tensor([[[2.0, -2.0, -2.0], [-2.0, 2.0, 2.0]]]),
    atol=1e-4,
    hint="Positions count places, not tokens: both tokens are 0, and the second gets position 1. Sizes like 8 and 4 "
    "mean that the final norm is missing.",
)
expect(
    decoder_lm(
        torch.tensor([[0, 0]]),
        {**params, "unembed": torch.tensor([[1.0, 0.0, 5.0], [0.0, 1.0, 5.0]])},
        no_blocks,
    ),
    torch.tensor([[[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]]]),
    atol=1e-4,
    hint="With an unembed of its own the model is not tied.",
)
small = ModelConfig(
    vocab_size=11,
    d_model=6,
    num_layers=2,
    num_heads=2,
    d_head=3,
    d_ff=10,
    context_length=9,
)
params = random_lm(small)
ids = torch.tensor([[3, 1, 4, 1, 5]])
changed = torch.tensor([[3, 1, 4, 1, 9]])
expect(
    decoder_lm(changed, params, small)[:, :4],
    decoder_lm(ids, params, small)[:, :4],
    hint="Only the last token differs, and earlier positions changed: they can see the future.",
)

# %% [markdown]
# ## 3. The loss, and the shift inside it
#
# ★★☆ · about 25 minutes
#
# At position $t$ the model has read tokens $0\dots t$ and says what it expects at $t+1$. So the target of position
# $t$ is the *next* id. The last position has no target, and the first token is nobody's target:
#
# $$\text{loss} = -\frac{1}{|K|}\sum_{(b,t)\in K} \log \mathrm{softmax}(\text{logits}_{b,t})_{\text{ids}_{b,t+1}}
#   \qquad K = \{(b,t) : t < N-1,\ \text{ids}_{b,t+1} \ne \text{ignore\_index}\}$$
#
# Sentences of a batch are padded to one length, and nobody should be trained to predict padding: targets equal to
# `ignore_index` (−100 by custom) do not count, in the sum *and* in the number you divide by.
#
# The shift happens **in here**, once. Whether the data loader shifts or the loss is a famous source of trouble: when
# both do, the model learns to predict the token after the next. When neither does, it learns to repeat its input,
# with a loss near zero.
#
# Two more points. A probability of $10^{-60}$ is 0 in float32 and its logarithm is $-\infty$, so work with
# log-softmax, or with `torch.nn.functional.cross_entropy`, which is allowed here and wants *logits*. And a batch may
# have no target at all: the mean of nothing is NaN, and one NaN step ruins the weights for good. Such a loss is 0,
# and `backward` must still work and give zero gradients.
#
# **Predict first.** A model that knows nothing gives equal logits to all $V$ words. What is its loss?

# %% predict="lm_loss"
predict(
    "What is its loss?",
    "1 / V",
    "ln V",
    "V",
    answer="ln V",
    because="Each word has probability 1 / V, and −ln(1 / V) = ln V.",
)


# %% question="lm_loss"
def lm_loss(logits, ids, ignore_index=-100):
    """Mean cross-entropy of the next token; the shift happens inside.

    Args:
        logits: [B, N, V], the output of decoder_lm for ids; position t is the
            prediction for ids[:, t + 1].
        ids: int64 [B, N], not shifted.
        ignore_index: targets with this value do not count.

    Returns:
        scalar in the dtype of logits (half precision is computed in float32): the mean
        over all counted targets of the batch. 0, with zero gradients, where no target
        counts, for example with N = 1.

    Raises:
        ValueError: logits and ids differ in B or N (both shapes' sizes in the message),
            or a target that counts is outside 0 … V - 1 (the target and V).
    """
    ### BEGIN SOLUTION
    if logits.shape[:2] != ids.shape:
        raise ValueError(f"logits {list(logits.shape)} do not belong to ids {list(ids.shape)}")
    predictions, targets = logits[:, :-1], ids[:, 1:]  # [B, N-1, V], [B, N-1]
    counted = targets != ignore_index
    predictions, targets = predictions[counted], targets[counted]  # [K, V], [K]
    check_ids(targets, logits.shape[-1])
    wide = predictions if predictions.dtype in (torch.float32, torch.float64) else predictions.float()
    log_probabilities = torch.log_softmax(wide, dim=-1).gather(1, targets[:, None])  # [K, 1]
    return (-log_probabilities.sum() / max(len(targets), 1)).to(logits.dtype)
    ### END SOLUTION


# %% check="lm_loss"
# (1/4, 3/4), (4/5, 1/5), …
logits = torch.tensor(
    [[[0.0, math.log(3.0)], [math.log(4.0), 0.0], [100.0, -100.0]]]
)
expect(
    lm_loss(logits, torch.tensor([[0, 1, 0]])),
    torch.tensor(-(math.log(3 / 4) + math.log(4 / 5)) / 2),
    hint="Position 0 should say 1 and does with 3/4; position 1 should say 0 and does with 4/5; position 2 has no "
    "target. 0.69 or above? Then look at which logits meet which ids.",
)
expect(
    lm_loss(logits, torch.tensor([[0, 1, -100]])),
    torch.tensor(-math.log(3 / 4)),
    hint="One target is left, so the mean is over one. Half of it? Then the ignored one was divided by, too.",
)
expect(
    lm_loss(logits, torch.tensor([[0, -100, -100]])),
    torch.tensor(0.0),
    hint="Nothing to predict: 0, not NaN.",
)
expect(
    lm_loss(torch.zeros(2, 3, 7), torch.tensor([[1, 2, 3], [4, 5, 6]])),
    torch.tensor(math.log(7.0)),
    hint="Equal logits over seven words: log 7.",
)

# %% [markdown]
# ## 4. One step of training
#
# ★★☆ · about 25 minutes
#
# Plain gradient descent: run the model, take the loss, ask for the gradient of every parameter, and take a step
# against it.
#
# $$\theta' = \theta - \text{lr}\cdot\frac{\partial\,\text{loss}}{\partial\theta}$$
#
# In this course a step is a *function*: it gets parameters and returns new ones, and the old ones stay as they were.
# That is unusual (an optimizer of `torch.optim` edits the weights in place) and makes a step something that can be
# tested, repeated and taken back. Three things to think of:
#
# 1. The parameters that come in are plain tensors and ask for no gradient. Tensors of your own that share their values
#    can; `list_tensors` and `with_tensors` take the nest apart and put it together again.
# 2. The step itself must not become part of the graph. New parameters that still know how they were made keep every
#    earlier step alive, until memory is full.
# 3. The loss you return is the one *before* the step, a Python float.
#
# A tied embedding is used twice, at the input and at the output; autograd adds both gradients by itself, if both uses
# are the same tensor.
#
# **Predict first.** Which rows of `positions` change when a batch of sentences of 5 tokens is trained on, with a
# context length of 9? Careful with the last one.

# %% predict="train_step"
predict(
    "How many rows of `positions` change?",
    answer=4,
    because="Rows 0 to 3. Nobody is asked what follows the fifth token, and no other "
    "place reads it.",
)


# %% question="train_step"
def train_step(params, ids, config, lr):
    """One step of plain gradient descent on the next-token loss.

    Args:
        params: parameters of decoder_lm; plain tensors. They, the dicts and the lists
            stay as they were.
        ids: int64 [B, N].
        config: as in decoder_lm.
        lr: the step size.

    Returns:
        (loss, new_params): the loss before the step, a Python float, and parameters of
        the same nesting, names, shapes and dtypes, detached from any graph.

    Raises:
        ValueError: lr is below 0 (it stands in the message); and whatever decoder_lm
            refuses.
    """
    ### BEGIN SOLUTION
    if lr < 0:
        raise ValueError(f"the step size must not be negative, got {lr}")
    leaves = [tensor.detach().clone().requires_grad_() for tensor in list_tensors(params)]
    loss = lm_loss(decoder_lm(ids, with_tensors(params, leaves), config), ids)
    gradients = torch.autograd.grad(loss, leaves)
    stepped = [leaf.detach() - lr * gradient for leaf, gradient in zip(leaves, gradients, strict=True)]
    return loss.item(), with_tensors(params, stepped)
    ### END SOLUTION


# %% check="train_step"
flat = {
    "embed": torch.zeros(2, 2),
    "positions": torch.tensor([[1.0, -1.0], [0.0, 0.0]]),
    "blocks": [],
    "lnf_gamma": torch.ones(2),
    "lnf_beta": torch.zeros(2),
    "unembed": torch.zeros(2, 2),
}
two_words = ModelConfig(2, 2, 0, 1, 2, 4, context_length=2, tied=False)
loss, stepped = train_step(flat, torch.tensor([[0, 1]]), two_words, lr=1.0)
expect(
    loss,
    math.log(2.0),
    hint="Two words, equal logits: log 2, as a Python float, before the step.",
)
# Position 0 is normalized to (1, -1), says (1/2, 1/2) and should say word 1: d loss
# / d logits is (1/2, -1/2).
expect(
    stepped["unembed"],
    torch.tensor([[-0.5, 0.5], [0.5, -0.5]]),
    atol=1e-4,
    hint="The gradient is the product of (1, -1) and (1/2, -1/2); the step goes against it. The signs are the other "
    "way round? Then it goes uphill.",
)
expect(
    flat["unembed"],
    torch.zeros(2, 2),
    hint="The old parameters were changed in place.",
)

# %% [markdown]
# ### It learns
#
# The text that this model learns from is made by a small grammar: `the cat near the dogs sleeps .` A verb agrees with
# its *subject* (cat, sleeps), and another noun may stand between. After some hundred of your own `train_step`s you
# should see the loss fall well below that of a guess, and towards what the grammar's own dice make unavoidable.

# %% demo="train_a_grammar"
import os
import random

import matplotlib.pyplot as plt

WORDS = [
    ".",
    "the",
    "cat",
    "dog",
    "bird",
    "cats",
    "dogs",
    "birds",
    "near",
    "sleeps",
    "sings",
    "sleep",
    "sing",
    "small",
]
dice = random.Random(0)


def sentence():
    """the [small] NOUN [near the NOUN] VERB . where the verb agrees with the first
    noun.
    """
    many = dice.random() < 0.5
    nouns = {False: ["cat", "dog", "bird"], True: ["cats", "dogs", "birds"]}
    words = [
        "the",
        *(["small"] if dice.random() < 0.3 else []),
        dice.choice(nouns[many]),
    ]
    if dice.random() < 0.5:
        words += ["near", "the", dice.choice(nouns[dice.random() < 0.5])]
    return [
        *words,
        dice.choice(["sleep", "sing"] if many else ["sleeps", "sings"]),
        ".",
    ]


def text(num_rows, length):
    """int64 [B, N]: rows of running text that begin at the start of a sentence."""
    rows = []
    for _ in range(num_rows):
        row = ["."]
        while len(row) < length:
            row += sentence()
        rows.append([WORDS.index(word) for word in row[:length]])
    return torch.tensor(rows)


grammar_config = ModelConfig(len(WORDS), 24, 2, 2, 12, 48, context_length=16)
grammar_params, losses = random_lm(grammar_config), []
# Whoever only wants to see whether all cells run sets this variable: the model learns
# for a moment only.
for _ in range(20 if "ATTENTION_KIT_QUICK" in os.environ else 500):
    loss, grammar_params = train_step(
        grammar_params, text(24, 14), grammar_config, lr=0.3
    )
    losses.append(loss)
print(f"loss {losses[0]:.2f} at the start, {sum(losses[-20:]) / 20:.2f} at the end")
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.plot(losses)
axis.axhline(math.log(len(WORDS)), color="grey", linestyle="--", linewidth=1)
axis.text(250, math.log(len(WORDS)) + 0.05, "a guess: log V", color="dimgrey")
axis.set(
    xlabel="step",
    ylabel="loss (nats a token)",
    title="A language model learns a small grammar",
)
plt.show()

# %% [markdown]
# ## 5. What a word means here
#
# ★★☆ · about 25 minutes
#
# A row of the table $E$ is a *static* embedding: "bank" has one vector, whether the text is about money or about a
# river. The lecture's remedy is what the blocks do. After each block the vector at a word's place has collected
# something from the words that it may look at: it is a *contextual* embedding, and the same word in two texts has two.
#
# So measure it. Take one word of one text and one word of another, and follow both through the model: first their rows
# of the table, then the stream at their places after block 1, after block 2, and so on. At each depth, the cosine says
# how alike the two are:
#
# $$\cos(u, v) = \frac{u\cdot v}{\lVert u\rVert\,\lVert v\rVert}$$
#
# Two things to mind. The first number is about the *table*: no position has been added yet, so one and the same word
# gives 1, up to rounding (and 0 where its row is zeros). Positions join at the input of block 1, as always. And the last number is about the stream after the
# last block, without the final norm.
#
# **Predict first.** Two texts for a causal model, "the bank of the river" and "the bank of the town". At which depth do
# the vectors of the two "bank" begin to differ?

# %% predict="similarity_by_layer"
predict(
    "At which depth do they begin to differ?",
    "in the embedding",
    "after the first block",
    "nowhere",
    answer="nowhere",
    because="The model is causal: both vectors know \"the bank\" and nothing of what "
    "comes later.",
)


# %% question="similarity_by_layer"
def similarity_by_layer(first, i, second, j, params, config):
    """How alike a word of one text and a word of another are at each depth of a
    language model.

    Args:
        first, second: int64 [N] and [M], two texts; they may differ in length.
        i, j: the places of the two words, from 0: word i of first, word j of second.
        params, config: a decoder as in decoder_lm, with L blocks.

    Returns:
        [L + 1] in the dtype of the weights, cosines. Entry 0 compares the words' rows
        of embed (static, without positions); entry l compares the stream at the two
        places after block l (causal, pre-norm, no final norm). The cosine with a vector
        of zeros is 0.

    Raises:
        ValueError: i or j is not a place in its text (the place and the length in the
            message); and what decoder_lm refuses: a text above context_length, an id
            outside 0 … V - 1.
    """
    ### BEGIN SOLUTION
    def at_each_depth(ids, place):  # [L + 1, D]
        n = len(ids)
        if not 0 <= place < n:
            raise ValueError(f"there is no place {place} in a text of {n}")
        if n > config.context_length:
            raise ValueError(f"{n} tokens do not fit into a context of {config.context_length}")
        check_ids(ids, config.vocab_size)
        rows = params["embed"][ids]  # [N, D], static
        depths = [rows[place]]
        x = (rows + params["positions"][:n]).unsqueeze(0)  # [1, N, D]
        for block in params["blocks"]:
            x = pre_norm_block(x, block, config.num_heads, causal_mask(n))
            depths.append(x[0, place])
        return torch.stack(depths)

    return torch.nn.functional.cosine_similarity(at_each_depth(first, i), at_each_depth(second, j), dim=-1)
    ### END SOLUTION


# %% check="similarity_by_layer"
narrow = ModelConfig(
    vocab_size=2,
    d_model=2,
    num_layers=1,
    num_heads=1,
    d_head=2,
    d_ff=2,
    context_length=3,
)
still = random_lm(narrow)
# a block that adds nothing
still["blocks"][0] |= {"w_o": torch.zeros(2, 2), "w2": torch.zeros(2, 2)}
still |= {
    "embed": torch.tensor([[3.0, 0.0], [4.0, 3.0]]),
    "positions": torch.tensor([[0.0, 4.0], [4.0, 0.0], [0.0, 0.0]]),
}
# Word 0 at place 0 is (3, 4) in the stream, at place 1 it is (7, 0).
expect(
    similarity_by_layer(
        torch.tensor([0]), 0, torch.tensor([1, 0]), 1, still, narrow
    ),
    torch.tensor([1.0, 0.6]),
    hint="The same word: 1 in the table. In the stream each has its position: 21 / (5 · 7).",
)
expect(
    similarity_by_layer(
        torch.tensor([0, 1]), 1, torch.tensor([0, 1]), 0, still, narrow
    )[0],
    torch.tensor(0.8),
    hint="Word 1 and word 0 in the table: (4, 3) and (3, 0), 12 / (5 · 3). 12 is a dot product, not a cosine.",
)
small = ModelConfig(
    vocab_size=11,
    d_model=6,
    num_layers=2,
    num_heads=2,
    d_head=3,
    d_ff=10,
    context_length=9,
)
params = random_lm(small)
expect(
    similarity_by_layer(
        torch.tensor([3, 1, 4]), 1, torch.tensor([3, 1, 5, 9]), 1, params, small
    ),
    torch.ones(3),
    hint="Only later words differ, and a causal model has not read them yet: nothing may change.",
)
moved = similarity_by_layer(
    torch.tensor([3, 1]), 1, torch.tensor([7, 1]), 1, params, small
)
expect(
    bool((moved[1:] < 0.999).all()),
    True,
    hint="Another word comes before: after a block the two should differ.",
)

# %% [markdown]
# In the little grammar "the" has two jobs. At the start of a sentence it announces the subject, which decides the verb;
# after "near" it announces a noun that decides nothing. One word, one row of the table. Does your trained model keep
# the two apart?

# %% demo="two_jobs_of_one_word"
texts = text(40, 14)
the, near, dot = (WORDS.index(word) for word in ("the", "near", "."))
jobs = {"subject": [], "after near": []}
for row in texts:
    for place in range(4, 14):
        if row[place] == the:
            jobs["subject" if row[place - 1] == dot else "after near"].append(
                (row, place)
            )


def mean_similarity(left, right):
    """[L + 1], the mean over pairs of occurrences that stand in different texts."""
    pairs = [(a, b) for a in left[:12] for b in right[:12] if a[0] is not b[0]]
    return torch.stack(
        [similarity_by_layer(*a, *b, grammar_params, grammar_config) for a, b in pairs]
    ).mean(dim=0)


figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
for name, (left, right) in {
    "the subject's, twice": ("subject", "subject"),
    "after “near”, twice": ("after near", "after near"),
    "one of each": ("subject", "after near"),
}.items():
    axis.plot(mean_similarity(jobs[left], jobs[right]), "o-", label=name)
axis.set(
    xlabel="blocks",
    ylabel="cosine",
    xticks=range(3),
    title="“the” and “the”, by their place in the sentence",
)
axis.legend()
plt.show()

# %% [markdown]
# ## 6. From logits to a choice
#
# ★★★ · about 35 minutes
#
# A trained model gives a distribution over the next token, and somebody has to throw the dice. Text that always takes
# the likeliest word often goes in circles; sampling from the whole distribution means that, a thousand words on, some
# word of probability 0.001 has probably come up and derailed the text. Three filters are in use, and this course
# applies them **in this order**:
#
# 1. **Temperature** $T$: $\text{softmax}(z / T)$. Below 1 it sharpens, above 1 it flattens, and $T = 0$ is the limit:
#    the likeliest token gets probability 1.
# 2. **Top-k**: only the $k$ likeliest tokens stay. Exactly $k$, even where several are equally likely.
# 3. **Top-p** (nucleus): of the probabilities *renormalized over what top-k left*, sorted from large to small,
#    the smallest set whose sum reaches $p$ stays. The token with which the sum crosses $p$ belongs to the set, so
#    at least one token always stays.
#
# What is left is renormalized. Since nothing random happens in here, every bit of it can be tested; the dice come in
# the next question.
#
# The two classic bugs are in step 3. One drops the token that crosses $p$, and with a confident model nothing is left
# at all. The other works out which *places of the sorted list* stay, and applies that to the unsorted one: the
# decision has to travel back to where each token came from.
#
# **Predict first.** Probabilities $(0.5, 0.3, 0.15, 0.05)$. What is left for top-p = 0.51? And for top-k = 3 followed
# by top-p = 0.51? They differ.

# %% predict="filtered_probabilities"
predict(
    "What is left for top-k = 3 followed by top-p = 0.51: how many words?",
    answer=1,
    because="top-k makes 0.5 of 0.95 into 0.526, which is enough. Without it 0.5 is "
    "not, and two words stay.",
)


# %% question="filtered_probabilities"
def filtered_probabilities(logits, temperature, top_k=None, top_p=None):
    """The distribution to draw from: temperature, then top-k, then top-p (Holtzman et
    al., 2020), then renormalized.

    Args:
        logits: [B, V].
        temperature: 0, which puts all probability on one likeliest token, or at least
            10⁻⁶.
        top_k: keep exactly this many tokens, at least 1; more than V means all. None:
            no filter.
        top_p: keep the smallest set of tokens whose probability, renormalized after
            top-k, reaches this; in (0, 1]. None: no filter. A sum that misses it by
            rounding alone may count as reaching it. Which of several equally likely
            tokens stay is up to you.

    Returns:
        [B, V] in the dtype of logits (half precision is computed in float32); rows sum
        to 1, filtered tokens are 0.

    Raises:
        ValueError: temperature below 0, top_k below 1, top_p not in (0, 1]; the value
            in the message.
    """
    ### BEGIN SOLUTION
    if temperature < 0:
        raise ValueError(f"temperature must be at least 0, got {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be in (0, 1], got {top_p}")
    if temperature == 0:
        likeliest = logits.argmax(dim=-1, keepdim=True)
        return torch.zeros_like(logits).scatter(-1, likeliest, 1.0)
    wide = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
    sorted_logits, order = (wide / temperature).sort(dim=-1, descending=True)  # places of the sorted list
    if top_k is not None:
        places = torch.arange(wide.shape[-1])
        sorted_logits = sorted_logits.masked_fill(places >= top_k, float("-inf"))
    p = torch.softmax(sorted_logits, dim=-1)
    if top_p is not None:
        before = p.cumsum(dim=-1) - p  # the sum of everything likelier
        p = p.masked_fill(before >= top_p, 0.0)
        p = p / p.sum(dim=-1, keepdim=True)
    return torch.zeros_like(p).scatter(-1, order, p).to(logits.dtype)  # back to where each token came from
    ### END SOLUTION


# %% check="filtered_probabilities"
logits = torch.log(torch.tensor([[0.15, 0.5, 0.05, 0.3]]))
expect(
    filtered_probabilities(logits, 1.0),
    torch.tensor([[0.15, 0.5, 0.05, 0.3]]),
    hint="No filter, T = 1: softmax.",
)
expect(
    filtered_probabilities(logits, 0.5),
    torch.tensor([[0.0225, 0.25, 0.0025, 0.09]]) / 0.365,
    hint="Dividing logits by 1/2 squares the probabilities: the likeliest gains. Is yours flatter than before?",
)
expect(
    filtered_probabilities(logits, 1.0, top_k=2),
    torch.tensor([[0.0, 0.625, 0.0, 0.375]]),
    hint="The two likeliest stay, where they stood, and share the whole: 5/8 and 3/8.",
)
expect(
    filtered_probabilities(logits, 1.0, top_p=0.51),
    torch.tensor([[0.0, 0.625, 0.0, 0.375]]),
    hint="0.5 does not reach 0.51, and 0.5 + 0.3 does: the token that crosses belongs to the set.",
)
expect(
    filtered_probabilities(logits, 1.0, top_k=3, top_p=0.51),
    torch.tensor([[0.0, 1.0, 0.0, 0.0]]),
    hint="After top-k the likeliest of three has 0.5 / 0.95 = 0.526, and that alone reaches 0.51.",
)

# %% demo="filters"
import matplotlib.pyplot as plt

z = torch.tensor([[2.2, 1.9, 1.1, 0.4, 0.1, -0.6, -1.3, -2.0]])
settings = {
    "T = 1": (1.0, None, None),
    "T = 0.4": (0.4, None, None),
    "T = 3": (3.0, None, None),
    "top-k = 3": (1.0, 3, None),
    "top-p = 0.8": (1.0, None, 0.8),
}
figure, axes = plt.subplots(1, 5, figsize=(11, 2.6), sharey=True, layout="constrained")
for axis, (name, (temperature, top_k, top_p)) in zip(
    axes, settings.items(), strict=True
):
    axis.bar(range(8), filtered_probabilities(z, temperature, top_k, top_p)[0].tolist())
    axis.set(title=name, xlabel="token")
axes[0].set_ylabel("probability")
plt.show()

# %% [markdown]
# ## 7. The model writes
#
# ★★☆ · about 30 minutes
#
# Writing is a loop: run the model on everything so far, take the logits of the **last** position, choose a token,
# append it. At training time one pass scored all positions at once, because the whole text was known. Here each token
# must exist before the next can be computed.
#
# The details:
#
# * The context is finite. When the text outgrows it, the model gets its **last** `context_length` tokens. What you
#   return is still the whole text.
# * Rows of a batch end at different times. A row that has *produced* `eos_id` goes on with `eos_id`, whatever the model
#   says, and the others are not disturbed by it. An `eos_id` that stood in the prompt does not count: many prompts
#   begin with one.
# * The result has always `num_new` new tokens, also when all rows are done early. (You may stop calling the model
#   then.)
# * The dice: a `torch.Generator` of your own, seeded **once**, before the loop. Somebody else's random numbers must not
#   change because your function ran, and a generator that is seeded anew for each token throws the same number each
#   time.
#
# **Predict first.** Five tokens of context, a prompt of three, four new ones. How many tokens does the model read in
# each of the four passes?

# %% predict="generate"
predict(
    "How many tokens does the model read in the fourth pass?",
    answer=5,
    because="3, 4, 5 and 5: the context has no more room, so the oldest token drops "
    "out.",
)


# %% question="generate"
def generate(
    params,
    prompt,
    num_new,
    config,
    temperature=1.0,
    top_k=None,
    top_p=None,
    seed=0,
    eos_id=None,
):
    """Continue each row of the prompt by sampling from decoder_lm, one token at a time.

    Args:
        params, config: of decoder_lm.
        prompt: int64 [B, N], N at least 1; it may be longer than context_length.
        num_new: how many tokens to add, at least 0.
        temperature, top_k, top_p: as in filtered_probabilities; temperature 0 is
            greedy.
        seed: of a private generator. The same seed gives the same text; the global
            random state is left alone.
        eos_id: a row that has produced this token goes on with it, and the other rows
            draw as they would without it. One in the prompt does not count. None: no
            stop.

    Returns:
        int64 [B, N + num_new], the prompt and what follows it.

    Raises:
        ValueError: num_new is below 0 (it stands in the message) or the prompt is
            empty; and, where a token is added, whatever decoder_lm and
            filtered_probabilities refuse.
    """
    ### BEGIN SOLUTION
    if num_new < 0 or prompt.shape[1] < 1:
        raise ValueError(f"cannot add {num_new} tokens to a prompt of {prompt.shape[1]}")
    generator = torch.Generator().manual_seed(seed)
    ids = prompt
    done = torch.zeros(prompt.shape[0], dtype=torch.bool)  # [B]
    for _ in range(num_new):
        logits = decoder_lm(ids[:, -config.context_length :], params, config)[:, -1]  # [B, V]
        p = filtered_probabilities(logits, temperature, top_k, top_p)
        chosen = torch.multinomial(p, 1, generator=generator).squeeze(1)  # [B]
        if eos_id is not None:
            chosen = chosen.masked_fill(done, eos_id)
            done = done | (chosen == eos_id)
        ids = torch.cat([ids, chosen[:, None]], dim=1)
    return ids
    ### END SOLUTION


# %% check="generate"
# A model without blocks that says, for each token, its successor in the circle 0 →
# 2 → 4 → 1 → 3 → 0.
circle = ModelConfig(5, 5, 0, 1, 5, 4, context_length=3, tied=False)
successor = {
    "embed": 10 * torch.eye(5),
    "positions": torch.zeros(3, 5),
    "blocks": [],
    "lnf_gamma": torch.ones(5),
    "lnf_beta": torch.zeros(5),
    "unembed": 10 * torch.eye(5).roll(2, dims=1),
}
expect(
    generate(successor, torch.tensor([[0, 1], [2, 2]]), 4, circle, temperature=0.0),
    torch.tensor([[0, 1, 3, 0, 2, 4], [2, 2, 4, 1, 3, 0]]),
    hint="Each new token follows from the one before it, in its own row: 1 → 3 → 0 → 2 → 4.",
)
expect(
    generate(
        successor,
        torch.tensor([[0, 1], [2, 2], [4, 0]]),
        4,
        circle,
        temperature=0.0,
        eos_id=0,
    ),
    torch.tensor([[0, 1, 3, 0, 0, 0], [2, 2, 4, 1, 3, 0], [4, 0, 2, 4, 1, 3]]),
    hint="Row 0 produces 0 and stays there, row 1 goes on undisturbed, and the 0 in the prompts of rows 0 and 2 does "
    "not count.",
)

# %% [markdown]
# Now let the grammar model from above write. At temperature 0 it repeats its favourite; at 3 it stammers.

# %% demo="write"
for temperature in (0.0, 0.8, 3.0):
    print(f"temperature {temperature}")
    start = torch.zeros(3, 1, dtype=torch.long)  # "."
    for row in generate(
        grammar_params, start, 13, grammar_config, temperature=temperature, seed=1
    ).tolist():
        print("   ", " ".join(WORDS[token] for token in row[1:]))

# %% [markdown]
# ## 8. The encoder–decoder
#
# ★★★ · about 40 minutes
#
# Translation has two texts, and they are treated differently. The source is complete before we begin, so its tokens
# may look at each other in both directions: an **encoder**, without causal mask. The target is written from left to
# right: a **decoder**, causal. Between them stands **cross-attention**: each target position asks (queries from the
# decoder) and the source answers (keys and values from the encoder's output, the *memory*).
#
# $$\begin{aligned}
# M &= \text{encoder blocks}\,(E_s[\text{src}] + P) &&[B, N_s, D]\\
# Y &\leftarrow \mathrm{LN}_1\bigl(Y + \mathrm{SelfAttention}(Y;\ \text{causal})\bigr) &&[B, N_t, D]\\
# Y &\leftarrow \mathrm{LN}_2\bigl(Y + \mathrm{CrossAttention}(Y, M;\ \text{source mask})\bigr)\\
# Y &\leftarrow \mathrm{LN}_3\bigl(Y + \mathrm{MLP}(Y)\bigr)
# \end{aligned}$$
#
# and logits $= Y U$ at the end. This is the model of 2017: post-norm, sinusoidal positions on both sides (the embedding
# is *not* multiplied by $\sqrt D$ here), no final norm. All decoder blocks read the same memory, the finished one.
#
# Sources have different lengths and are padded. The **source mask** says which tokens are real, and it is needed in two
# places: where source tokens look at each other, and where the decoder looks at the source. In both, padding is on the
# *key* side, so `[B, N_s]` has to be lined up with `[B, N_q, N_k]`. Mind what happens when $B$ happens to equal $N$.
#
# **Predict first.** You change the last source token. Which rows of the logits may change? You change the last token
# of `tgt_in`. Which rows may change now?

# %% predict="encoder_decoder"
predict(
    "You change the last token of `tgt_in`. How many rows of the logits may change?",
    answer=1,
    because="The last one alone, since the decoder is causal. A source token may change"
    " all of them: the encoder has no such mask.",
)


# %% question="encoder_decoder"
def encoder_decoder(src, tgt_in, src_mask, params, config):
    """Logits for every target position, given the source and the target tokens up to it
    (Vaswani et al., 2017).

    Args:
        src: int64 [B, N_s].
        tgt_in: int64 [B, N_t], what the decoder reads; row t of the logits depends on
            tokens 0 … t.
        src_mask: bool [B, N_s] or [B, 1, N_s], True = a real token; None: all are real.
        params: dict with src_embed [V_s, D], tgt_embed [V, D], encoder (list of dicts
            for post_norm_block), decoder (list of dicts with c_q, c_k, c_v, c_o and
            ln3_gamma, ln3_beta besides: norm 1 follows the self-attention, norm 2 the
            cross-attention, norm 3 the MLP), unembed [D, V].
        config: num_heads is used.

    Returns:
        logits [B, N_t, V] in the dtype of the weights.

    Raises:
        ValueError: src and tgt_in differ in B; src_mask does not have the B and N_s of
            src; an id is outside its table. The sizes (or the id and the table's size)
            in the message.
    """
    ### BEGIN SOLUTION
    if src.shape[0] != tgt_in.shape[0]:
        raise ValueError(f"{src.shape[0]} sources but {tgt_in.shape[0]} targets")
    if src_mask is not None:
        if src_mask.numel() != src.numel() or src_mask.shape[-1] != src.shape[1]:
            raise ValueError(f"src_mask {list(src_mask.shape)} does not belong to src {list(src.shape)}")
        src_mask = src_mask.reshape(src.shape[0], 1, src.shape[1])  # [B, 1, N_s]: the same keys for every query
    check_ids(src, len(params["src_embed"]))
    check_ids(tgt_in, len(params["tgt_embed"]))
    heads = config.num_heads

    memory = params["src_embed"][src]  # [B, N_s, D]
    memory = memory + sinusoidal_positions(*memory.shape[1:]).to(memory.dtype)
    for block in params["encoder"]:
        memory = post_norm_block(memory, block, heads, src_mask)

    y = params["tgt_embed"][tgt_in]  # [B, N_t, D]
    y = y + sinusoidal_positions(*y.shape[1:]).to(y.dtype)
    for p in params["decoder"]:
        attended = self_attention_of(y, p, heads, causal_mask(y.shape[1]))
        y = layer_norm(y + attended, p["ln1_gamma"], p["ln1_beta"])
        read = multi_head_attention(y, p["c_q"], p["c_k"], p["c_v"], p["c_o"], heads, src_mask, x_kv=memory)
        y = layer_norm(y + read, p["ln2_gamma"], p["ln2_beta"])
        y = layer_norm(y + mlp_of(y, p), p["ln3_gamma"], p["ln3_beta"])
    return y @ params["unembed"]  # [B, N_t, V]
    ### END SOLUTION


# %% check="encoder_decoder"
pair = ModelConfig(
    7, 6, 2, 2, 3, 10, context_length=9, num_encoder_layers=2, tied=False
)
params = random_encoder_decoder(pair, source_vocab_size=5)
src, tgt_in = (
    torch.tensor([[1, 2, 3, 4], [4, 3, 0, 0]]),
    torch.tensor([[0, 5, 6], [0, 2, 1]]),
)
mask = torch.tensor([[True, True, True, True], [True, True, False, False]])
logits = encoder_decoder(src, tgt_in, mask, params, pair)
expect(
    list(logits.shape),
    [2, 3, 7],
    hint="One row of V logits for each target position.",
)
expect(
    encoder_decoder(src[1:, :2], tgt_in[1:], None, params, pair),
    logits[1:],
    atol=1e-5,
    hint="Row 1 has two real tokens and two of padding. Without the padding the answer must be the same: the mask is "
    "needed in the encoder and in the cross-attention.",
)
expect(
    encoder_decoder(src, torch.tensor([[0, 5, 1], [0, 2, 4]]), mask, params, pair)[
        :, :2
    ],
    logits[:, :2],
    atol=1e-6,
    hint="Only the last target token was changed. The first two rows may not know about it.",
)
moved = encoder_decoder(
    torch.tensor([[1, 2, 3, 0], [4, 3, 0, 0]]), tgt_in, mask, params, pair
)
expect(
    bool((moved[0, 0] - logits[0, 0]).abs().max() > 1e-3),
    True,
    hint="The last source token of row 0 was changed, and the first target position did not notice: it should read all "
    "of the source.",
)

# %% [markdown]
# ## 9. What the decoder reads in training
#
# ★☆☆ · about 10 minutes
#
# In training, the decoder does not read its own guesses. It reads the *right* translation, shifted by one place, with a
# start token in front: **teacher forcing**. To predict target $t$ it has the start token and the true targets
# $0\dots t-1$. All positions are computed in one pass, and the loss compares row $t$ of the logits with target $t$.
#
# $$(y_0, y_1, \dots, y_{N-1}) \;\to\; (\text{start}, y_0, \dots, y_{N-2})$$
#
# Note the difference to `lm_loss`: there one sequence was both input and target, and the loss shifted. Here the
# *input* is shifted, so the loss must not shift again. And the direction is easy to get backwards. Shifted the other
# way, or not at all, the decoder reads at position $t$ what it should say there.
#
# **Predict first.** `shift_right` of `I'm not hungry yet` in the lecture's translation, `Todavía no tengo hambre`: what
# does the decoder read when it should say `tengo`?

# %% predict="shift_right"
predict(
    "Which is the last word that the decoder reads when it should say *tengo*?",
    "Todavía",
    "no",
    "tengo",
    answer="no",
    because="The start token, Todavía, no: everything before the word, and not the "
    "word.",
)


# %% question="shift_right"
def shift_right(targets, start_id):
    """What the decoder reads when it should say targets: a start token, then all
    targets but the last.

    Args:
        targets: int64 [B, N_t], N_t at least 1.
        start_id: the start token.

    Returns:
        int64 [B, N_t], a new tensor.

    Raises:
        ValueError: targets have no column; their sizes in the message.
    """
    ### BEGIN SOLUTION
    if targets.shape[1] < 1:
        raise ValueError(f"nothing to shift in targets {list(targets.shape)}")
    start = torch.full_like(targets[:, :1], start_id)  # [B, 1]
    return torch.cat([start, targets[:, :-1]], dim=1)
    ### END SOLUTION


# %% check="shift_right"
expect(
    shift_right(torch.tensor([[4, 5, 6], [7, 8, 9]]), start_id=1),
    torch.tensor([[1, 4, 5], [1, 7, 8]]),
    hint="The same length; the start token in front, and the last target has gone. Did 6 and 9 wrap around?",
)

# %% [markdown]
# ## 10. The model translates
#
# ★★☆ · about 25 minutes
#
# Without a teacher the decoder reads its own words. Begin with the start token alone; take the likeliest word at the
# last position; append it; repeat. A row that has said `eos_id` goes on with `eos_id`, and the result has `max_new`
# columns whatever happens. The start token is not part of the translation.
#
# The two usual mistakes: one row's end stops the whole batch; and the decoder is given only the *newest* token instead
# of all it has said so far.
#
# **Predict first.** What does a row look like that ends with its first word, for `max_new = 3`?

# %% predict="greedy_translate"
predict(
    "What does that row look like?",
    "eos_id three times",
    "eos_id and two zeros",
    "eos_id alone",
    answer="eos_id three times",
    because="A row that has ended goes on with eos_id, and the result has max_new "
    "columns whatever happens.",
)


# %% question="greedy_translate"
def greedy_translate(src, src_mask, params, config, start_id, eos_id, max_new):
    """Translate by taking the likeliest word at each step.

    Args:
        src, src_mask, params, config: as in encoder_decoder.
        start_id: what the decoder reads first.
        eos_id: a row that has produced it goes on with it.
        max_new: how many tokens to produce, at least 0.

    Returns:
        int64 [B, max_new], without the start token.

    Raises:
        ValueError: max_new is below 0 (it stands in the message); and whatever
            encoder_decoder refuses, where a token is asked for.
    """
    ### BEGIN SOLUTION
    if max_new < 0:
        raise ValueError(f"cannot produce {max_new} tokens")
    said = torch.full((src.shape[0], 1), start_id)  # [B, 1 + t]
    done = torch.zeros(src.shape[0], dtype=torch.bool)  # [B]
    for _ in range(max_new):
        logits = encoder_decoder(src, said, src_mask, params, config)[:, -1]  # [B, V]
        word = logits.argmax(dim=-1).masked_fill(done, eos_id)  # [B]
        done = done | (word == eos_id)
        said = torch.cat([said, word[:, None]], dim=1)
    return said[:, 1:]
    ### END SOLUTION


# %% check="greedy_translate"
# A decoder without blocks: each word alone decides the next one, in the circle 0 →
# 2 → 4 → 1 → 3 → 0.
chain = {
    "src_embed": torch.zeros(5, 5),
    "tgt_embed": 20 * torch.eye(5),
    "encoder": [],
    "decoder": [],
    "unembed": torch.eye(5).roll(2, dims=1),
}
nothing = ModelConfig(5, 5, 0, 1, 5, 4, context_length=9, tied=False)
src = torch.tensor([[1, 2, 3], [3, 2, 1]])
expect(
    greedy_translate(src, None, chain, nothing, start_id=0, eos_id=1, max_new=5),
    torch.tensor([[2, 4, 1, 1, 1], [2, 4, 1, 1, 1]]),
    hint="From 0 the words are 2, 4 and 1, which is the end; the row then stays at 1. The start token is left out.",
)

# %% [markdown]
# ### It learns
#
# A language to translate into: every word has one translation, and the sentence is said **backwards**. The network
# has to find both out by itself. Training uses your `encoder_decoder` and `shift_right`, with an optimizer of torch.
# The picture is a measurement: change source word $j$ and see how far the logits of target word $t$ move. A model
# that has understood reads the source from its end.

# %% demo="translate"
import os

import matplotlib.pyplot as plt

PAD, START, END, NUM_WORDS = 0, 1, 2, 9
g = torch.Generator().manual_seed(3)
# source word -> target word
dictionary = torch.cat([torch.arange(3), 3 + torch.randperm(NUM_WORDS, generator=g)])


def pairs(num_rows, longest=6):
    """src [B, 6], its mask, and the targets [B, 7]: each word translated, in reverse,
    then END and padding.
    """
    src = torch.zeros(num_rows, longest, dtype=torch.long)
    targets = torch.full((num_rows, longest + 1), END)
    for row in range(num_rows):
        n = int(torch.randint(2, longest + 1, (1,), generator=g))
        src[row, :n] = torch.randint(3, 3 + NUM_WORDS, (n,), generator=g)
        targets[row, :n] = dictionary[src[row, :n]].flip(0)
    return src, src != PAD, targets


translator = ModelConfig(
    3 + NUM_WORDS, 32, 2, 4, 8, 64, context_length=9, num_encoder_layers=2, tied=False
)
learned = random_encoder_decoder(translator, 3 + NUM_WORDS)
leaves = [tensor.requires_grad_() for tensor in list_tensors(learned)]
optimizer = torch.optim.Adam(leaves, lr=3e-3)
losses = []
# Whoever only wants to see whether all cells run sets this variable: the network learns
# for a moment only.
num_steps = 20 if "ATTENTION_KIT_QUICK" in os.environ else 400
for step in range(num_steps):
    for group in optimizer.param_groups:
        group["lr"] = 3e-3 * min(1, (step + 1) / 50) * (1 - step / num_steps)
    src, mask, targets = pairs(32)
    logits = encoder_decoder(
        src, shift_right(targets, START), mask, learned, translator
    )
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses += [loss.item()]
learned = with_tensors(learned, [leaf.detach() for leaf in leaves])
src, mask, targets = pairs(200)
said = greedy_translate(src, mask, learned, translator, START, END, max_new=7)
print(
    f"{(said == targets).all(dim=1).float().mean():.0%} of 200 new sentences are right,"
    " to the last word"
)

sentence_ids = torch.tensor([[3, 5, 7, 9, 4, 6]])
gold = torch.cat([dictionary[sentence_ids].flip(1), torch.tensor([[END]])], dim=1)
base = encoder_decoder(
    sentence_ids, shift_right(gold, START), None, learned, translator
)
influence = torch.zeros(7, 6)
for j in range(6):
    other = sentence_ids.clone()
    other[0, j] = 8
    influence[:, j] = (
        encoder_decoder(other, shift_right(gold, START), None, learned, translator)
        - base
    )[0].norm(dim=-1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(losses)
left.set(xlabel="step", ylabel="loss (nats a word)", title="Learning to translate")
shown = right.imshow(influence, cmap="viridis")
right.set(
    xlabel="source word that is changed",
    ylabel="target word",
    title="How far the logits move",
)
figure.colorbar(shown)
plt.show()

# %% [markdown]
# ## 11. An image as a row of patches
#
# ★★☆ · about 20 minutes
#
# A transformer wants rows of numbers and does not care where they come from. A vision transformer cuts an image into
# squares of $P\times P$ pixels and calls each one a token. The lecture's image of $224\times224$ pixels in three
# colours, cut with $P = 16$, gives $14\cdot14 = 196$ tokens of $3\cdot16\cdot16 = 768$ numbers.
#
# The order is a contract again, on two levels:
#
# * **patches** run left to right, then down, like words on a page;
# * **inside a patch** the numbers are ordered (c, row, column): all of channel 0 first, row by row, then channel 1. The
#   slides write "16x16x3", which suggests the channels last; weights of a convolution have them first, so we do too.
#
# $$\text{patches}_{b,\; r\cdot W/P + s,\; (c P + i) P + j} = \text{images}_{b,\,c,\,rP+i,\,sP+j}$$
#
# Memory holds an image row by row, so a plain reshape to `[B, N, C*P*P]` would give strips of pixel rows, not
# squares. You know the remedy from splitting heads: cut axes in two, move them, join them. (Library functions that
# cut patches, such as `unfold`, `conv2d` and `pixel_unshuffle`, are not allowed in this question.)
#
# **Predict first.** One image of one channel, $4\times6$ pixels numbered $0\dots23$ along the rows, $P = 2$. How many
# patches are there, and which numbers are in the second?

# %% predict="patchify"
predict(
    "How many patches are there?",
    answer=6,
    because="2 rows of 3. The second has 2, 3, 8 and 9.",
)


# %% question="patchify"
def patchify(images, patch):
    """Cut images into square patches, one row of numbers each (Dosovitskiy et al.,
    2020).

    Args:
        images: [B, C, H, W], any strides.
        patch: P, the side of a patch.

    Returns:
        [B, N, C*P*P] in the dtype of images, N = (H / P)·(W / P): patches left to
        right, then down; inside a patch the order is (c, row, column).

    Raises:
        ValueError: patch is below 1, or H or W is not a multiple of it; H, W and patch
            in the message.
    """
    ### BEGIN SOLUTION
    batch, channels, height, width = images.shape
    if patch < 1 or height % patch or width % patch:
        raise ValueError(f"an image of {height} x {width} does not divide into patches of {patch}")
    rows, columns = height // patch, width // patch
    cut = images.reshape(batch, channels, rows, patch, columns, patch)  # [B, C, H/P, P, W/P, P]
    cut = cut.permute(0, 2, 4, 1, 3, 5)  # [B, H/P, W/P, C, P, P]
    return cut.reshape(batch, rows * columns, channels * patch * patch)
    ### END SOLUTION


# %% check="patchify"
images = torch.arange(24).view(1, 1, 4, 6)
expect(
    patchify(images, 2)[0],
    torch.tensor(
        [
            [0, 1, 6, 7],
            [2, 3, 8, 9],
            [4, 5, 10, 11],
            [12, 13, 18, 19],
            [14, 15, 20, 21],
            [16, 17, 22, 23],
        ]
    ),
    hint="A patch is a square: 0, 1 and below them 6, 7. 0, 1, 2, 3 is a strip of a row. The second patch lies to "
    "the right of the first, not below.",
)
expect(
    patchify(torch.arange(8).view(1, 2, 2, 2), 2)[0],
    torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7]]),
    hint="Two channels: all of channel 0, then all of channel 1. 0, 4, 1, 5, …? Then the channels came last.",
)
expect(
    list(patchify(torch.zeros(1, 3, 224, 224), 16).shape),
    [1, 196, 768],
    hint="The lecture's 196 patches of 768.",
)

# %% [markdown]
# ## 12. The same thing as a convolution
#
# ★☆☆ · about 15 minutes
#
# "Cut into patches, flatten, multiply by a matrix" is a convolution whose kernel is as large as its stride: it
# touches every pixel once, and each output channel is one column of the matrix. Libraries load patch embeddings as
# convolutions, so the weights have to be rearranged, and it can be checked to the last digit:
#
# `conv2d(images, patch_conv_weight(w, C, P), stride=P)` holds the numbers of `patchify(images, P) @ w`.
#
# Torch stores a convolution's weights as `[out, in, height, width]`, here `[D, C, P, P]`. Our matrix is `[C*P*P, D]`.
# Two questions decide it: which axis is the output, and in which order do the rows of `w` run? The second answer is
# your own `patchify`.
#
# **Predict first.** How many numbers does the bias of this convolution have, and do they depend on the position?

# %% predict="patch_conv_weight"
predict(
    "How many numbers does the bias have?",
    "one for each output feature",
    "one for each place",
    "one for each feature and place",
    answer="one for each output feature",
    because="D numbers, the same at every place: a convolution does the same "
    "everywhere.",
)


# %% question="patch_conv_weight"
def patch_conv_weight(w, channels, patch):
    """The weights of the convolution (kernel and stride P) that does what patchify
    followed by `@ w` does.

    Args:
        w: [C*P*P, D], rows in the order (c, row, column).
        channels: C.
        patch: P.

    Returns:
        [D, C, P, P] in the dtype of w; it may be a view of w.

    Raises:
        ValueError: w does not have C*P*P rows; its rows, channels and patch in the
            message.
    """
    ### BEGIN SOLUTION
    if w.shape[0] != channels * patch * patch:
        raise ValueError(f"w has {w.shape[0]} rows, not {channels} channels times {patch} x {patch} pixels")
    return w.T.reshape(-1, channels, patch, patch)  # [D, C*P*P] -> [D, C, P, P]
    ### END SOLUTION


# %% check="patch_conv_weight"
# one channel, 2 x 2 pixels, D = 2
w = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
expect(
    patch_conv_weight(w, 1, 2),
    torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]], [[[10.0, 20.0], [30.0, 40.0]]]]),
    hint="Each column of w is one kernel. A kernel that holds 1 and 10 mixes two outputs.",
)
g = torch.Generator().manual_seed(0)
images, w = torch.randn(2, 3, 4, 6, generator=g), torch.randn(12, 5, generator=g)
# [B, D, H/P, W/P]
as_conv = torch.nn.functional.conv2d(images, patch_conv_weight(w, 3, 2), stride=2)
expect(
    as_conv.flatten(2).transpose(1, 2),
    patchify(images, 2) @ w,
    atol=1e-5,
    hint="Both give one row of D numbers a patch, and the rows must agree.",
)

# %% [markdown]
# ## 13. The model looks
#
# ★☆☆ · about 20 minutes
#
# From here on a vision transformer is what you have built already:
#
# $$X = \text{patches}\,W + b + P \qquad X \leftarrow \text{block}_\ell(X) \qquad
#   \text{logits} = \operatorname{mean}_n\bigl(\mathrm{LN}_f(X)\bigr)\,W_h + b_h$$
#
# with pre-norm blocks and **no mask**: an image has no future. One learned vector a patch tells the model where the
# patch was; without it, attention would see a bag of patches. At the end a class wants *one* vector: the mean over
# the patches, after the final norm. (Some models put a class token in front instead. Here there is none.)
#
# Mind *what* is averaged: over tokens, so that `[B, N, D]` becomes `[B, D]`.
#
# **Predict first.** With all `positions` zero, you shuffle the patches of an image. Do the logits change?

# %% predict="vit_logits"
predict(
    "Do the logits change?",
    "yes",
    "no",
    answer="no",
    because="Without positions attention sees a bag of patches, and the mean at the end"
    " does not care about their order either.",
)


# %% question="vit_logits"
def vit_logits(images, params, config):
    """Class logits of images by a transformer over their patches, without a class
    token.

    Args:
        images: [B, C, H, W].
        params: dict with w_patch [C*P*P, D], b_patch [D], positions [N, D], blocks
            (list of dicts for pre_norm_block), lnf_gamma, lnf_beta [D], w_head
            [D, classes], b_head [classes].
        config: patch and num_heads are used.

    Returns:
        [B, classes] in the dtype of images: final norm, then the mean over patches,
        then the head.

    Raises:
        ValueError: the images do not have as many patches as positions has rows, or
            patches not as many numbers as w_patch has rows (both numbers in the
            message); and whatever patchify refuses.
    """
    ### BEGIN SOLUTION
    patches = patchify(images, config.patch)  # [B, N, C*P*P]
    if patches.shape[1] != len(params["positions"]):
        raise ValueError(f"{patches.shape[1]} patches but {len(params['positions'])} positions")
    if patches.shape[2] != len(params["w_patch"]):
        raise ValueError(f"patches of {patches.shape[2]} numbers, but w_patch has {len(params['w_patch'])} rows")
    x = patches @ params["w_patch"] + params["b_patch"] + params["positions"]  # [B, N, D]
    for block in params["blocks"]:
        x = pre_norm_block(x, block, config.num_heads)
    x = layer_norm(x, params["lnf_gamma"], params["lnf_beta"])
    return x.mean(dim=1) @ params["w_head"] + params["b_head"]  # [B, D] [D, classes]
    ### END SOLUTION


# %% check="vit_logits"
plain = ModelConfig(1, 2, 0, 1, 2, 4, context_length=2, patch=1)
params = {
    "w_patch": torch.tensor([[1.0, 0.0]]),
    "b_patch": torch.zeros(2),
    "positions": torch.tensor([[0.0, 0.0], [0.0, 9.0]]),
    "blocks": [],
    "lnf_gamma": torch.tensor([1.0, 3.0]),
    "lnf_beta": torch.zeros(2),
    "w_head": torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]),
    "b_head": torch.tensor([0.0, 0.0, 5.0]),
}
# Two pixels, 4 and 1, are the tokens (4, 0) and (1, 9): normalized (1, -1) and
# (-1, 1), times gamma (1, -3) and (-1, 3). Their mean is (0, 0).
expect(
    vit_logits(torch.tensor([[[[4.0, 1.0]]]]), params, plain),
    torch.tensor([[0.0, 0.0, 5.0]]),
    atol=1e-4,
    hint="The norm comes before the mean, and the mean is over the two tokens. (-1, 3, 7)? "
    "Then the mean comes first.",
)
expect(
    vit_logits(torch.tensor([[[[4.0, 15.0]]]]), params, plain),
    torch.tensor([[1.0, -3.0, 3.0]]),
    atol=1e-4,
    hint="Now both tokens are normalized to (1, -1), times gamma (1, -3).",
)

# %% [markdown]
# ### It learns
#
# Three kinds of pattern, with random phase, contrast and noise: horizontal stripes, vertical stripes, checks. No single
# pixel tells them apart.

# %% demo="look"
import matplotlib.pyplot as plt

KINDS = ("horizontal", "vertical", "checks")
g = torch.Generator().manual_seed(5)


def patterns(num_images):
    """images [B, 1, 12, 12] and their kinds [B]."""
    kind = torch.randint(0, 3, (num_images,), generator=g)
    phase = torch.randint(0, 4, (num_images, 2), generator=g)
    # stripes two pixels wide
    rows = ((torch.arange(12) + phase[:, :1]) // 2 % 2)[:, :, None].expand(-1, 12, 12)
    columns = ((torch.arange(12) + phase[:, 1:]) // 2 % 2)[:, None, :].expand(
        -1, 12, 12
    )
    clean = torch.where(
        (kind == 0)[:, None, None],
        rows,
        torch.where((kind == 1)[:, None, None], columns, rows ^ columns),
    )
    noise = 0.7 * torch.randn(num_images, 12, 12, generator=g)
    return (2.0 * clean - 1 + noise)[:, None], kind


eyes = ModelConfig(1, 24, 2, 3, 8, 48, context_length=9, patch=4)
seeing = random_vit(eyes, channels=1, num_patches=9, num_classes=3)
leaves = [tensor.requires_grad_() for tensor in list_tensors(seeing)]
optimizer = torch.optim.Adam(leaves, lr=3e-3)
losses = []
for _ in range(250):
    images, kind = patterns(64)
    loss = torch.nn.functional.cross_entropy(vit_logits(images, seeing, eyes), kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses += [loss.item()]
seeing = with_tensors(seeing, [leaf.detach() for leaf in leaves])
images, kind = patterns(500)
seen = vit_logits(images, seeing, eyes).argmax(dim=-1)
print(f"{(seen == kind).float().mean():.0%} of 500 new images are recognized")
figure, axes = plt.subplots(1, 6, figsize=(11, 2.3), layout="constrained")
axes[0].plot(losses)
axes[0].set(xlabel="step", ylabel="loss", title="Learning to see")
for axis, image, name in zip(axes[1:], images, seen.tolist(), strict=False):
    axis.imshow(image[0], cmap="gray")
    axis.set(title=KINDS[name], xticks=[], yticks=[])
plt.show()

# %% [markdown]
# ## 14. How far a head looks
#
# ★★☆ · about 20 minutes
#
# A convolution knows what is near: its kernel touches neighbours and nothing else. A transformer has no such idea. To
# it patch 0 and patch 1 are as far apart as patch 0 and patch 195, and in the row of tokens the patch *below* stands a
# whole grid row later. All it has is one learned vector a position. Whether heads look near or far, and whether the
# positions come to know that the image has two dimensions, is for training to decide.
#
# The paper of the vision transformer measures that, head by head: the **mean attention distance**. With $a_{nm}$ the
# weight that patch $n$ gives to patch $m$, and $(r, s)$ a patch's row and column in the grid,
#
# $$\text{distance} = \frac1N\sum_n\sum_m a_{nm}\,\sqrt{(r_n-r_m)^2 + (s_n-s_m)^2}$$
#
# in patches (the paper multiplies by $P$ and has pixels). The patches are in the order of `patchify`: left to right,
# then down, so patch $n$ of a grid with `columns` columns has a row and a column that you can work out from $n$.
#
# **Predict first.** A head that always looks at the patch itself: which distance? And on a grid of $2\times2$, one that
# looks everywhere evenly?

# %% predict="attention_distance"
predict(
    "On a grid of 2 × 2, the distance of a head that looks everywhere alike?",
    answer=0.8536,
    atol=0.01,
    because="(0 + 1 + 1 + √2) / 4. A head that looks at the patch itself has 0.",
)


# %% question="attention_distance"
def attention_distance(weights, columns):
    """The mean distance, in patches, from which heads of a vision transformer collect
    (Dosovitskiy et al., 2020).

    Args:
        weights: [..., N, N], attention weights, each row sums to 1; patches left to
            right, then down.
        columns: how many patches stand beside each other in the grid; N is a multiple
            of it.

    Returns:
        [...] in the dtype of weights: the Euclidean distance in the grid between the
        patch that looks and the patch that is looked at, weighted by the attention, and
        averaged over the N patches that look.

    Raises:
        ValueError: the last two axes differ, or columns is below 1 or does not divide
            N; the sizes in the message.
    """
    ### BEGIN SOLUTION
    n_q, n_k = weights.shape[-2:]
    if n_q != n_k or columns < 1 or n_k % columns:
        raise ValueError(f"weights of {n_q} x {n_k} patches do not belong to a grid with {columns} columns")
    patch = torch.arange(n_k)
    places = torch.stack([patch // columns, patch % columns], dim=-1).to(weights.dtype)  # [N, 2]: row, column
    distances = (places[:, None] - places).pow(2).sum(dim=-1).sqrt()  # [N, N]
    return (weights * distances).sum(dim=-1).mean(dim=-1)
    ### END SOLUTION


# %% check="attention_distance"
at_the_first = torch.zeros(4, 4)
at_the_first[:, 0] = 1.0  # every patch looks at patch 0
expect(
    attention_distance(at_the_first, 2),
    torch.tensor((0 + 1 + 1 + math.sqrt(2)) / 4),
    hint="The grid is 2 x 2: its corners are 0, 1, 1 and √2 away from patch 0. Four patches look.",
)
expect(
    attention_distance(at_the_first, 4),
    torch.tensor((0 + 1 + 2 + 3) / 4),
    hint="The same weights on a grid of one row.",
)
expect(
    attention_distance(torch.eye(6).expand(2, 3, 6, 6), 3),
    torch.zeros(2, 3),
    hint="Nobody looks away: 0 a head.",
)
expect(
    attention_distance(torch.full((4, 4), 0.25), 2),
    torch.tensor((0 + 1 + 1 + math.sqrt(2)) / 4),
    hint="Each patch sees the distances 0, 1, 1 and √2, a quarter of each.",
)

# %% [markdown]
# ### Positions discover the grid
#
# Can vectors that begin as random numbers find out that there are rows and columns? Here is an attention that sees
# positions only: its weights are made of 49 learned vectors, one for each pixel of a $7\times7$ image. Its task is to
# clean noisy images of soft spots, by a weighted mean of pixels. Nothing tells it which pixels are neighbours. On the
# right, each little picture belongs to one place and shows how similar its position is to all others.

# %% demo="positions_find_the_grid"
import matplotlib.pyplot as plt

g, side = torch.Generator().manual_seed(4), 7


def spots(num_images):
    """Clean and noisy images, [B, 49] each."""
    coarse = torch.randn(num_images, 1, 4, 4, generator=g)
    clean = torch.nn.functional.interpolate(
        coarse, size=(side, side), mode="bilinear", align_corners=True
    ).flatten(1)
    return clean, clean + 0.5 * torch.randn(clean.shape, generator=g)


places = 0.1 * torch.randn(side * side, 16, generator=g)  # [N, D]
ask, offer = torch.randn(16, 16, generator=g) / 4, torch.randn(16, 16, generator=g) / 4
learned_grid = [tensor.requires_grad_() for tensor in (places, ask, offer)]
optimizer, distances = torch.optim.Adam(learned_grid, lr=1e-2), []
for _ in range(300):
    clean, noisy = spots(64)
    weights = torch.softmax((places @ ask) @ (places @ offer).T / 4, dim=-1)  # [N, N]
    loss = (noisy @ weights.T - clean).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    distances.append(attention_distance(weights.detach(), side).item())
print(
    f"mean distance {distances[0]:.2f} patches at the start, as if it looked evenly; "
    f"{distances[-1]:.2f} at the end"
)
direction = places.detach() / places.detach().norm(dim=-1, keepdim=True)
alike = (direction @ direction.T).view(side, side, side, side)
figure = plt.figure(figsize=(10, 4.2), layout="constrained")
left, right = figure.subfigures(1, 2)
axis = left.subplots()
axis.plot(distances)
axis.set(
    xlabel="step",
    ylabel="mean distance (patches)",
    title="It learns to look near",
    ylim=(0, None),
)
for row, axes in enumerate(right.subplots(4, 4)):
    for column, axis in enumerate(axes):
        axis.imshow(alike[2 * row, 2 * column], cmap="viridis", vmin=-1, vmax=1)
        axis.set(xticks=[], yticks=[])
right.suptitle("Which positions are similar?")
plt.show()

# %% [markdown]
# ## 15. A trained model learns another task
#
# ★★☆ · about 30 minutes
#
# **Pre-training** teaches a model something general on much data. **Fine-tuning** starts from those parameters, not
# from random ones, and goes on with little data of the task that one cares about. For a classifier that takes three
# decisions:
#
# 1. *What is new.* The old head answers another question, and has another number of classes. It is thrown away, and a
#    head of zeros takes its place: `w_head` $[D, \text{classes}]$ and `b_head`. All else is carried over.
# 2. *What is frozen.* Training the head alone is cheap (no gradient has to go down through the blocks) and cannot
#    spoil what was learned. Frozen parameters come out exactly as they went in.
# 3. *How far each part may move.* Where the body is trained too, it is good already and wants small steps, while the
#    head begins at nothing. So each group of parameters has a step size of its own: a *learning rate group*.
#
# `rates` says 2 and 3 in one: a dict from names in `params` to step sizes, `{"w_head": 0.5, "b_head": 0.5}` for the
# head alone. A name that is not there is frozen. A step is plain gradient descent on the mean cross-entropy of all the
# images, as in question 4.
#
# **Predict first.** All groups are trained, and the head is zero. Which parameters does the *first* step change?

# %% predict="fine_tune"
predict(
    "Which parameters does the first step change?",
    "the head alone",
    "all of them",
    "all but the head",
    answer="the head alone",
    because="The gradient of everything below passes through the head's matrix, and "
    "that is zero.",
)


# %% question="fine_tune"
def fine_tune(params, images, labels, num_classes, config, rates, steps):
    """Train a pre-trained vision transformer on another task, with a new head and a
    step size for each group.

    Args:
        params: pre-trained parameters of vit_logits, plain tensors. They, the dicts and
            the lists stay as they were.
        images: [B, C, H, W].
        labels: int64 [B], classes of the new task.
        num_classes: how many classes it has.
        config: as in vit_logits.
        rates: dict from names in params ("positions", "blocks", "w_head", …), at least
            one, to the step size of all tensors under that name. What has no entry is
            frozen: no gradient is computed for it, and its values stay exactly as they
            were.
        steps: how many steps of gradient descent on the mean cross-entropy of all
            images; 0 only puts the new head on.

    Returns:
        (losses, new_params): a list with the loss before each step, Python floats; and
        parameters with the names and the nesting of params, detached, whose w_head
        [D, num_classes] and b_head [num_classes] began as zeros (also where they are
        frozen).

    Raises:
        ValueError: rates has a name that params has not (the name in the message) or a
            step size below 0 (the size); a label is outside 0 … num_classes - 1 (the
            label and num_classes).
    """
    ### BEGIN SOLUTION
    for name, rate in rates.items():
        if name not in params:
            raise ValueError(f"there are no parameters called {name!r}")
        if rate < 0:
            raise ValueError(f"the step size of {name} must not be negative, got {rate}")
    check_ids(labels, num_classes)
    zeros = params["w_head"].new_zeros  # in the dtype of the old head
    params = params | {"w_head": zeros(len(params["w_head"]), num_classes), "b_head": zeros(num_classes)}
    losses = []
    for _ in range(steps):
        leaves = {name: [w.clone().requires_grad_() for w in list_tensors(params[name])] for name in rates}
        trained = {name: with_tensors(params[name], leaves[name]) for name in rates}
        loss = torch.nn.functional.cross_entropy(vit_logits(images, params | trained, config), labels)
        loss.backward()  # reaches the leaves, and nothing that is frozen
        losses.append(loss.item())
        for name, rate in rates.items():
            stepped = [w.detach() - rate * w.grad for w in leaves[name]]
            params = params | {name: with_tensors(params[name], stepped)}
    return losses, params
    ### END SOLUTION


# %% check="fine_tune"
plain = ModelConfig(1, 2, 0, 1, 2, 4, context_length=2, patch=1)
trained_before = {
    "w_patch": torch.tensor([[1.0, 0.0]]),
    "b_patch": torch.zeros(2),
    "positions": torch.tensor([[0.0, 0.0], [0.0, 9.0]]),
    "blocks": [],
    "lnf_gamma": torch.tensor([1.0, 3.0]),
    "lnf_beta": torch.zeros(2),
    "w_head": torch.ones(2, 3),
    "b_head": torch.ones(3),
}
# The image becomes (1, -3), as in question 13. A head of zeros says (1/2, 1/2); the
# label is 0, so the gradient at
# the logits is (-1/2, 1/2).
one_image, one_label = torch.tensor([[[[4.0, 15.0]]]]), torch.tensor([0])
losses, tuned = fine_tune(
    trained_before,
    one_image,
    one_label,
    2,
    plain,
    {"w_head": 1.0, "b_head": 0.5},
    steps=1,
)
expect(len(losses), 1, hint="One step: a list with one loss.")
expect(
    losses[0],
    math.log(2.0),
    hint="A head of zeros does not know anything: log 2, before the step.",
)
expect(
    tuned["w_head"],
    torch.tensor([[0.5, -0.5], [-1.5, 1.5]]),
    atol=1e-4,
    hint="(1, −3) times (1/2, −1/2). 1.5 in the first place? Then the old head is still there.",
)
expect(
    tuned["b_head"],
    torch.tensor([0.25, -0.25]),
    hint="b_head has a step size of its own.",
)
expect(
    tuned["lnf_gamma"],
    torch.tensor([1.0, 3.0]),
    hint="It has no entry in rates: frozen.",
)
expect(
    trained_before["w_head"],
    torch.ones(2, 3),
    hint="The parameters that came in were changed.",
)

# %% [markdown]
# Your model of question 13 knows stripes and checks. The new task has two classes: horizontal stripes above vertical
# ones, and vertical above horizontal. And there are **24** images to learn it from. Four ways, tested on 500 new
# images. Compare what each has learned about the 24 with what it is worth.

# %% demo="fine_tuning"
g = torch.Generator().manual_seed(9)


def halves(num_images):
    """images [B, 1, 12, 12] whose upper third has other stripes than the rest, and
    their kinds [B].
    """
    kind = torch.randint(0, 2, (num_images,), generator=g)
    phase = torch.randint(0, 4, (num_images, 2), generator=g)
    rows = ((torch.arange(12) + phase[:, :1]) // 2 % 2)[:, :, None].expand(-1, 12, 12)
    columns = ((torch.arange(12) + phase[:, 1:]) // 2 % 2)[:, None, :].expand(
        -1, 12, 12
    )
    # [B, 12, 1]
    horizontal = (torch.arange(12) < 4)[:, None] ^ (kind == 1)[:, None, None]
    noise = 0.7 * torch.randn(num_images, 12, 12, generator=g)
    return (2.0 * torch.where(horizontal, rows, columns) - 1 + noise)[:, None], kind


few_images, few_kinds = halves(24)
new_images, new_kinds = halves(500)
head = {"w_head": 0.5, "b_head": 0.5}
ways = {
    "from random numbers": (
        random_vit(eyes, 1, 9, 3, seed=1),
        dict.fromkeys(seeing, 0.1),
    ),
    "the head alone": (seeing, head),
    "all of it, the body in small steps": (seeing, dict.fromkeys(seeing, 0.03) | head),
    "all of it in large steps": (seeing, dict.fromkeys(seeing, 0.5)),
}
print(f"{'':36}{'numbers trained':>16}{'loss on the 24':>16}{'right of 500':>14}")
for name, (start, rates) in ways.items():
    losses, tuned = fine_tune(start, few_images, few_kinds, 2, eyes, rates, steps=80)
    right = (
        (vit_logits(new_images, tuned, eyes).argmax(dim=-1) == new_kinds).float().mean()
    )
    trained = sum(
        tensor.numel() for group in rates for tensor in list_tensors(tuned[group])
    )
    print(f"{name:36}{trained:16}{losses[-1]:16.3f}{right:14.0%}")

# %% [markdown]
# ## 16. Find the error in the notes
#
# ★★☆ · about 25 minutes
#
# "A Transformer is just a stack of identical Transformer blocks!" says the lecture, and gives for the original: **12
# blocks, $D = 1024$, 213M parameters**. Take it at its word. Twelve identical blocks of $12 D^2$ are 151.0 million;
# with a vocabulary of 37 000 (the paper has about that many tokens in its first task) $V D$ adds 37.9 million, and
# 188.9 million are not 213.
#
# So the sentence and the number cannot both be right as they stand. Find out what does give a number. Count matrices
# and one tied embedding only (no biases, no norms, no learned positions; $H d = D$, $F = 4 D$). Somebody claims a
# number of millions for a number of blocks; which division into encoder and decoder blocks, with which vocabulary
# from a plausible range, explains it? A decoder block of an encoder–decoder has cross-attention, one of a
# decoder-only model has not.
#
# Then ask your function about 213, about 214 and about 189. We grade it on other claims too.


# %% question="explain_model_size"
def explain_model_size(millions, num_blocks, d_model, min_vocab, max_vocab):
    """A model whose parameters, in whole millions, are what somebody claimed.

    Args:
        millions: the claim, for example 213.
        num_blocks: blocks in all, encoder and decoder together.
        d_model: D. Heads make H*d = D, the MLP has F = 4*D.
        min_vocab, max_vocab: vocabularies that are plausible, both included.

    Returns:
        (num_encoder_layers, num_layers, vocab_size): encoder blocks (0: a decoder-only
        model, without cross-attention) and decoder blocks (at least 1) that add up to
        num_blocks, and a vocabulary in the range, such that the total, without biases,
        norms and learned positions and with a tied embedding, rounds to this many
        millions (an exact half either way). Where several do, any of them. None where
        none does.
    """
    ### BEGIN SOLUTION
    for num_encoder_layers in range(num_blocks):
        num_layers = num_blocks - num_encoder_layers
        model = ModelConfig(
            min_vocab, d_model, num_layers, 1, d_model, 4 * d_model, 1, num_encoder_layers=num_encoder_layers,
            tied=True, biases=False, norms=False, learned_positions=False, final_norm=False,
        )  # fmt: skip
        counts = count_parameters(model)
        matrices = counts["total"] - counts["embedding"]
        wanted = round((millions * 1_000_000 - matrices) / d_model)  # the vocabulary that hits the claim exactly
        vocab_size = min(max(wanted, min_vocab), max_vocab)  # the nearest plausible one
        if round((matrices + vocab_size * d_model) / 1_000_000) == millions:
            return num_encoder_layers, num_layers, vocab_size
    return None
    ### END SOLUTION


# %% check="explain_model_size"
# Ten identical blocks of 12 · 500² are 30.0M; 20 000 words of 500 numbers are 10.0M
# more.
expect(
    explain_model_size(40, 10, 500, 20_000, 20_000),
    (0, 10, 20_000),
    hint="No encoder is needed here. With one, the decoder blocks would have 16 D² each.",
)
# Seven encoder blocks of 12 · 500² are 21.0M, three decoder blocks of 16 · 500² are
# 12.0M: 33.0M and 10.0M.
expect(
    explain_model_size(43, 10, 500, 20_000, 20_000),
    (7, 3, 20_000),
    hint="Three blocks have cross-attention.",
)
expect(
    explain_model_size(39, 10, 500, 20_000, 20_000),
    None,
    hint="Fewer than 40 million are impossible here.",
)
for claim in (213, 214, 189):
    print(
        f"{claim}M with 12 blocks:",
        explain_model_size(claim, 12, 1024, 35_500, 37_500),
    )

# %% [markdown] written="which_stack" points=5
# ## 17. In your own words
#
# Three people come to you. (a) One wants a program that continues a text. (b) One wants English sentences in Spanish.
# (c) One has 2000 reviews, each with one of ten topics, and wants to know the topic of others. Which model of this
# notebook do you advise to each: a decoder alone, an encoder and a decoder, or blocks without a mask with a head on
# their mean, as in `vit_logits`? Say for each **which positions may see which, and at which positions there is a
# loss**. The third has a `decoder_lm`, trained on a large amount of text, and would like to use it with its causal
# mask: what does a position in the middle of a review not know, and how can the model be of use all the same? Seven or
# eight sentences.
#
# ### BEGIN SOLUTION
# (a) A decoder alone. Position $t$ sees tokens $0\dots t$, and each position has a loss, that of the next token, so
# that a text of $N$ tokens trains $N - 1$ predictions at once. (b) An encoder and a decoder. The source is complete, so
# its words see each other in both directions (but no padding); a target word sees the target up to itself, and all of
# the source through cross-attention. The loss is at the target positions alone: nobody predicts the source. (c) Blocks
# without a mask: a review is complete as well, so every word may see every other, and there is one loss a review, at
# the head on the mean. With the causal mask a position in the middle knows nothing of what follows: after "not" it has
# not read what is denied, and a mean mixes such positions in. The last position has seen everything, so a head on that
# one works. And the blocks have learned the language from much more text than 2000 reviews, so only the head, or the
# last blocks with a small step size, have to be trained, as in `fine_tune`.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 1 point: (a) causal, with a loss at every position.
# - 2 points: (b) the source sees both ways, the target is causal and reads all of the source (1 point); the loss is at
#   the target positions alone (1 point).
# - 2 points: (c) no mask, and one loss a review (1 point); a position in the middle does not know what follows, and the
#   last position, or fine-tuning what was trained on much text, helps (1 point).
# ### END MARK SCHEME
