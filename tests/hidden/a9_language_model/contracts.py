"""What the docstrings of assignment 9 allow."""

import math
from types import SimpleNamespace

import torch

from autograder.suite.contracts import (
    HALF,
    calls,
    choice,
    computed,
    contract,
    list_of,
    maybe,
    tensor,
    tokens,
    whole,
)

LETTERS = b"aab  't1\n\xff"
"""Bytes of few kinds, so that pairs repeat: letters, spaces, a short form, a digit, no UTF-8."""
TAME = ("normal", "whole")
SMALL = {
    "B": (1, 3),
    "H": (1, 3),
    "d": (1, 3),
    "F": (1, 5),
    "V": (2, 7),
    "N": (1, 6),
}
"""Sizes of a model that answers in a moment."""


def _some_bytes(draw):
    letters = [
        LETTERS[draw.whole(0, len(LETTERS) - 1)] for _ in range(draw.whole(0, 24))
    ]
    return torch.tensor(letters, dtype=torch.uint8)


def _some_merges(draw):
    """Pairs of ids that exist by then, each pair once."""
    ids = list(dict.fromkeys(LETTERS))
    merges = []
    for _ in range(draw.whole(0, 6)):
        pair = (ids[draw.whole(0, len(ids) - 1)], ids[draw.whole(0, len(ids) - 1)])
        if pair not in merges:
            merges.append(pair)
            ids.append(255 + len(merges))
    return merges


def _are_merges(text, merges):
    """A pair joins bytes or ids of earlier pairs, and occurs once."""
    are_there = all(max(pair) < 256 + place for place, pair in enumerate(merges))
    return are_there and len(set(merges)) == len(merges)


contract("train_byte_bpe", calls(text=computed(_some_bytes), num_merges=whole(0, 8)))

contract(
    "bpe_encode",
    calls(text=computed(_some_bytes), merges=computed(_some_merges)),
    allowed_if=_are_merges,
)


def ids_of_tokens(draw, play, name):
    """Bytes and merged tokens in any order."""
    merges = _some_merges(draw)
    ids = [draw.whole(0, 255 + len(merges)) for _ in range(draw.whole(0, 6))]
    if merges and draw.happens(60):
        ids += [draw.whole(256, 255 + len(merges)) for _ in range(3)]
    play.call(name, torch.tensor(ids, dtype=torch.int64), merges)


contract("bpe_decode", ids_of_tokens, allowed_if=_are_merges)

contract("gelu", calls(x=tensor("...", "N")), dtypes=HALF, gradients=True)


def _model(draw, context=None):
    """Parameters and sizes of a model."""
    layers = draw.whole(1, 2)
    width = "H*d"
    shapes = dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (width, width))
    shapes |= {"w1": (width, "F"), "b1": ("F",), "w2": ("F", width), "b2": (width,)}
    rows = (
        "b_q",
        "b_k",
        "b_v",
        "b_o",
        "ln1_gamma",
        "ln1_beta",
        "ln2_gamma",
        "ln2_beta",
    )
    shapes |= dict.fromkeys(rows, (width,))
    blocks = [
        {key: draw(tensor(*axes, values=TAME), key) for key, axes in shapes.items()}
        for _ in range(layers)
    ]
    longest = context or 12
    params = {
        "embed": draw(tensor("V", width, values=TAME), "embed"),
        "positions": draw(tensor(longest, width, values=TAME), "positions"),
        "blocks": blocks,
        "lnf_gamma": draw(tensor(width, values=TAME), "lnf_gamma"),
        "lnf_beta": draw(tensor(width, values=TAME), "lnf_beta"),
    }
    config = SimpleNamespace(
        vocab_size=draw.size("V"),
        d_model=draw.size(width),
        num_layers=layers,
        num_heads=draw.size("H"),
        d_ff=draw.size("F"),
        context_length=longest,
    )
    return params, config


def texts_with_a_cache_or_without(draw, play, name):
    """A whole text, or one to three chunks into one cache."""
    params, config = _model(draw)
    if draw.choose("cache", ("left out", "there")) == "left out":
        play.call(name, draw(tokens("B", "N", below="V"), "ids"), params, config)
        return
    sizes = (config.num_layers, draw.size("B"), config.num_heads, draw.size("d"))
    cache = play.call("KVCache", *sizes, config.context_length, draw.dtype)
    for _ in range(draw.whole(1, 3)):
        draw.forget("N")
        ids = draw(tokens("B", "N", below="V"), "ids")
        play.call(name, ids, params, config, cache)
        play.read("length", on=cache)


contract(
    "language_model",
    texts_with_a_cache_or_without,
    sizes={**SMALL, "N": (1, 4)},
    tolerance={"float32": 1e-3},
)


def _are_windows(answer, right, arguments):
    """Each row is a piece of the text, and its targets are one place further."""
    ids, batch, length, _ = arguments
    if not (isinstance(answer, (list, tuple)) and len(answer) == 2):
        return False
    inputs, targets = answer
    if inputs.shape != (batch, length) or targets.shape != (batch, length):
        return False
    pieces = {
        tuple(ids[start : start + length + 1].tolist())
        for start in range(len(ids) - length)
    }
    rows = torch.cat([inputs, targets[:, -1:]], dim=1)
    is_shifted = torch.equal(inputs[:, 1:], targets[:, :-1])
    return is_shifted and all(tuple(row) in pieces for row in rows.tolist())


contract(
    "sample_windows",
    calls(
        ids=tokens("N", below=50),
        batch=whole(1, 9),
        length=whole(1, 6),
        seed=whole(0, 99),
    ),
    sizes={"N": (2, 30)},
    right_if=_are_windows,
)

contract(
    "learning_rate",
    calls(
        step=whole(0, 30),
        warmup=whole(0, 12),
        total=whole(1, 25),
        peak=choice(1.0, 3e-4, 0.5),
        floor=maybe(choice(0.0, 0.1, 1e-5)),
    ),
)

contract(
    "clip_gradients",
    calls(
        gradients=list_of(tensor("...", "N"), 1, 4, forget=("N",)),
        max_norm=choice(1.0, 0.25, 1e-6, 100.0),
    ),
    dtypes=HALF,
)


def steps_of_adamw(draw, play, name):
    """A first step, or one with a state; tensors of one, two and three axes."""
    shapes = [("N",), ("N", "D"), ("B", "N", "D"), ()]
    chosen = [shapes[draw.whole(0, 3)] for _ in range(draw.whole(1, 3))]
    parameters = [draw(tensor(*axes, values=TAME), "tensors") for axes in chosen]
    gradients = [draw(tensor(*axes), "gradients") for axes in chosen]
    state = None
    if draw.choose("state", ("None", "there")) == "there":
        state = {
            "step": draw.whole(1, 20),
            "m": [draw(tensor(*axes, values=TAME), "m") for axes in chosen],
            "v": [
                draw(tensor(*axes, values=("positive", "shares")), "v")
                for axes in chosen
            ],
        }
    settings = {}
    if draw.choose("betas are", ("left out", "there")) == "there":
        settings["betas"] = draw.choose(
            "betas", ((0.5, 0.75), (0.0, 0.0), (0.9, 0.999))
        )
    if draw.choose("eps is", ("left out", "there")) == "there":
        settings["eps"] = draw.choose("eps", (1e-3, 0.5))
    if draw.choose("weight_decay is", ("left out", "there")) == "there":
        settings["weight_decay"] = draw.choose("weight_decay", (0.0, 0.5))
    play.call(name, parameters, gradients, state, draw.number(0, 1), **settings)


def _is_a_state(parameters, gradients, state, lr, **settings):
    """The state of earlier steps has squares, and one tensor for each parameter."""
    betas = settings.get("betas", (0.9, 0.95))
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        return False
    if settings.get("eps", 1e-8) <= 0 or lr < 0:
        return False
    shapes = [part.shape for part in parameters]
    if [part.shape for part in gradients] != shapes:
        return False
    if state is None:
        return True
    moments = [[part.shape for part in state[key]] for key in ("m", "v")]
    are_squares = all(bool((part >= 0).all()) for part in state["v"])
    return moments == [shapes, shapes] and are_squares and state["step"] >= 1


contract(
    "adamw_step",
    steps_of_adamw,
    sizes={"N": (1, 4), "D": (1, 4), "B": (1, 3)},
    allowed_if=_is_a_state,
)


def texts_in_windows(draw, play, name):
    """Texts that are shorter and longer than the context."""
    params, config = _model(draw, context=draw.whole(1, 6))
    ids = draw(tokens("length", below="V"), "ids")
    play.call(name, params, ids, config, draw.whole(1, config.context_length))


contract(
    "perplexity",
    texts_in_windows,
    sizes={**SMALL, "length": (2, 14)},
    tolerance={"float32": 1e-3},
)


def greedy_texts(draw, play, name):
    """Temperature 0: no dice."""
    params, config = _model(draw)
    settings = {}
    if draw.choose("top_k", ("left out", "there")) == "there":
        settings["top_k"] = draw.whole(1, draw.size("V") + 1)
    prompt = draw(tokens("B", "N", below="V"), "prompt")
    num_new = draw.whole(0, 6)
    play.call(name, params, prompt, num_new, config, temperature=0.0, **settings)


contract("sample", greedy_texts, sizes=SMALL, dtypes=("float64",), equals="free")


def texts_by_dice(draw, play, name):
    """Any text is right that begins with the prompt and has tokens alone."""
    params, config = _model(draw)
    prompt = draw(tokens("B", "N", below="V"), "prompt")
    settings = {}
    for key, options in (
        ("temperature", (0.5, 2.0)),
        ("top_k", (1, 2, 20)),
        ("seed", (1, 7)),
    ):
        if draw.choose(f"{key} is", ("left out", "there")) == "there":
            settings[key] = draw.choose(key, options)
    play.call(name, params, prompt, draw.whole(0, 5), config, **settings)


def _continues(answer, right, arguments):
    _, prompt, num_new, config = arguments
    width = prompt.shape[1] + num_new
    if not isinstance(answer, torch.Tensor) or answer.shape != (len(prompt), width):
        return False
    are_ids = answer.dtype == torch.int64 and bool(
        ((answer >= 0) & (answer < config.vocab_size)).all()
    )
    return are_ids and torch.equal(answer[:, : prompt.shape[1]], prompt)


contract("sample", texts_by_dice, sizes=SMALL, right_if=_continues)

contract(
    "induction_score",
    calls(
        weights=tensor("...", "N", "N", values=("distributions",)),
        period=whole(1, "N - 1"),
    ),
    sizes={"N": (2, 9)},
    dtypes=HALF,
)


def files_of_gpt2(draw, play, name):
    """With or without a prefix, a head, and entries that mean nothing."""
    layers, prefix = draw.whole(1, 2), draw.choose("prefix", ("", "transformer."))
    shapes = {
        "wte.weight": ("V", "D"),
        "wpe.weight": ("N", "D"),
        "ln_f.weight": ("D",),
        "ln_f.bias": ("D",),
    }
    for layer in range(layers):
        block = {
            "ln_1.weight": ("D",),
            "ln_1.bias": ("D",),
            "attn.c_attn.weight": ("D", "3*D"),
            "attn.c_attn.bias": ("3*D",),
            "attn.c_proj.weight": ("D", "D"),
            "attn.c_proj.bias": ("D",),
            "ln_2.weight": ("D",),
            "ln_2.bias": ("D",),
            "mlp.c_fc.weight": ("D", "F"),
            "mlp.c_fc.bias": ("F",),
            "mlp.c_proj.weight": ("F", "D"),
            "mlp.c_proj.bias": ("D",),
        }
        shapes |= {f"h.{layer}.{key}": axes for key, axes in block.items()}
    state = {f"{prefix}{key}": draw(tensor(*axes), key) for key, axes in shapes.items()}
    if draw.choose("head", ("missing", "there")) == "there":
        state["lm_head.weight"] = state[f"{prefix}wte.weight"].clone()
    if draw.choose("an old mask", ("missing", "there")) == "there":
        state[f"{prefix}h.0.attn.bias"] = torch.ones(1, 1, 2, 2)
    config = SimpleNamespace(
        vocab_size=draw.size("V"),
        d_model=draw.size("D"),
        num_layers=layers,
        num_heads=1,
        d_ff=draw.size("F"),
        context_length=draw.size("N"),
    )
    play.call(name, state, config)


def _has_the_sizes_of_a_model(state_dict, config):
    """No size is 1."""
    sizes = (config.vocab_size, config.d_model, config.d_ff, config.context_length)
    return min(sizes) > 1


contract(
    "from_gpt2",
    files_of_gpt2,
    sizes={"V": (2, 5), "D": (2, 4), "F": (2, 5), "N": (2, 5)},
    dtypes=HALF,
    allowed_if=_has_the_sizes_of_a_model,
)


def _misleads(answer, right, arguments):
    """The likeliest token begins with a byte that is not the likeliest next byte."""
    (merges,) = arguments
    values = [float(value) for value in answer]
    if (
        len(values) != 256 + len(merges)
        or min(values) < 0
        or not math.isclose(sum(values), 1)
    ):
        return False
    first = list(range(256))
    for left, _ in merges:
        first.append(first[left])
    best = max(range(len(values)), key=values.__getitem__)
    is_clear = all(
        values[best] >= value + 0.05 for i, value in enumerate(values) if i != best
    )
    bytes_next = [0.0] * 256
    for token, value in enumerate(values):
        bytes_next[first[token]] += value
    return is_clear and max(bytes_next) >= bytes_next[first[best]] + 0.05


contract(
    "misleading_token",
    calls(merges=computed(_some_merges)),
    right_if=_misleads,
    allowed_if=lambda merges: _are_merges(None, merges),
)
