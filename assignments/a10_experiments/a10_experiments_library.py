"""Functions that the course gives you: library.

Made by `autograder build`; the notebook a10_experiments.ipynb imports it.
"""

import math
import torch


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
