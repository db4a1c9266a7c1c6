"""What the docstrings of assignment 10 allow."""

import math

import torch

from autograder.suite.contracts import (
    calls,
    choice,
    computed,
    contract,
    list_of,
    maybe,
    number,
    tensor,
    tokens,
    whole,
)

TAME = ("normal", "whole")
CHOICES = {
    "positions": ("none", "learned", "rotary"),
    "norm": ("pre", "post", "rms"),
    "activation": ("relu", "gelu", "swiglu"),
    "tied": (True, False),
}
SMALL = {"B": (1, 3), "N": (1, 5), "V": (2, 6), "F": (1, 5)}
"""Sizes of a model that answers in a moment."""


def _setup(draw, context=6):
    """A setup of any kind; a head has an even width, which rotary positions need."""
    kv_heads, group = draw.whole(1, 2), draw.whole(1, 2)
    setup = {name: draw.choose(name, options) for name, options in CHOICES.items()}
    return setup | {
        "vocab_size": draw.size("V"),
        "d_model": kv_heads * group * 2 * draw.whole(1, 2),
        "num_layers": draw.whole(1, 2),
        "num_heads": kv_heads * group,
        "num_kv_heads": kv_heads,
        "d_ff": draw.size("F"),
        "context_length": context,
        "dropout": 0.0,
        "smoothing": draw.choose("smoothing", (0.0, 0.25)),
        "rate": draw.choose("rate", (0.01, 0.1)),
        "batch": draw.whole(1, 4),
        "parts": 1,
    }


def _params(draw, setup):
    """Parameters for a setup."""
    d, f, v = (setup[name] for name in ("d_model", "d_ff", "vocab_size"))
    d_kv = d // setup["num_heads"] * setup["num_kv_heads"]

    def normal(*shape):
        return draw(tensor(*shape, values=TAME))

    def block():
        weights = {"norm1": normal(d), "norm2": normal(d), "w_q": normal(d, d)}
        weights |= {"w_k": normal(d, d_kv), "w_v": normal(d, d_kv), "w_o": normal(d, d)}
        if setup["activation"] == "swiglu":
            return weights | {
                "w1": normal(d, f),
                "w2": normal(d, f),
                "w3": normal(f, d),
            }
        return weights | {"w1": normal(d, f), "w2": normal(f, d)}

    params = {"embed": normal(v, d)}
    if setup["positions"] == "learned":
        params["positions"] = normal(setup["context_length"], d)
    params["blocks"] = [block() for _ in range(setup["num_layers"])]
    if setup["norm"] != "post":
        params["norm_f"] = normal(d)
    if not setup["tied"]:
        params["unembed"] = normal(d, v)
    return params


def texts_through_a_model(draw, play, name):
    """Any setup, with its parameters."""
    setup = _setup(draw)
    play.call(
        name, draw(tokens("B", "N", below="V"), "ids"), _params(draw, setup), setup
    )


contract("decoder", texts_through_a_model, sizes=SMALL, tolerance={"float32": 1e-3})

contract("training_flops", calls(setup=computed(_setup)))


def changes_of_a_setup(draw, play, name):
    """One entry with another value."""
    setup = _setup(draw)
    options = {
        **CHOICES,
        "batch": (1, 5, 64),
        "dropout": (0.1, 0.5),
        "rate": (0.01, 1.0),
    }
    field = draw.choose("field", tuple(options))
    left = [value for value in options[field] if value != setup[field]]
    play.call(name, setup, field, draw.choose(f"value of {field}", tuple(left)))


contract(
    "one_change",
    changes_of_a_setup,
    allowed_if=lambda base, field, value: field in base and base[field] != value,
)


def _targets(draw):
    """Targets of which some do not count."""
    targets = draw(tokens("B", "N", below="V"), "targets").clone()
    for place in range(targets.numel()):
        if draw.happens(25):
            targets.view(-1)[place] = -100
    return targets


def losses_of_tokens(draw, play, name):
    """With smoothing and without."""
    settings = {}
    if draw.choose("smoothing is", ("left out", "there")) == "there":
        settings["smoothing"] = draw.choose("smoothing", (0.0, 0.1, 0.75))
    play.call(name, draw(tensor("B", "N", "V"), "logits"), _targets(draw), **settings)


contract("smoothed_loss", losses_of_tokens, sizes={"V": (2, 6)}, gradients=True)


def batches_in_parts(draw, play, name):
    """Batches that are cut into some parts."""
    setup = _setup(draw)
    inputs = draw(tokens("B", "N", below="V"), "inputs")
    setup["parts"] = draw.whole(1, len(inputs))
    play.call(name, _params(draw, setup), setup, inputs, _targets(draw))


def _can_be_cut(params, setup, inputs, targets):
    return 1 <= setup["parts"] <= len(inputs) and inputs.shape == targets.shape


contract(
    "accumulated_gradients",
    batches_in_parts,
    sizes=SMALL,
    dtypes=("float64",),
    allowed_if=_can_be_cut,
)


def short_runs(draw, play, name):
    """Some tens of steps. What AdamW makes of a gradient that is nothing but rounding is chance, so
    the measured points are those before any step and the FLOPs.
    """
    setup = _setup(draw, context=3) | {"batch": 2}
    params = _params(draw, setup)
    texts = [
        draw(tokens("N_text", below="V"), part) for part in ("training", "held_out")
    ]
    budget = draw.whole(1, 3) * 10**5
    play.call(name, params, setup, *texts, budget, draw.whole(1, 3), draw.whole(0, 5))


def _same_points(answer, right, arguments):
    """The FLOPs of all points, and the loss of the first."""
    flops = [point[0] for point in answer[1]] == [point[0] for point in right[1]]
    return flops and math.isclose(
        answer[1][0][1], right[1][0][1], rel_tol=1e-6, abs_tol=1e-9
    )


def _pays_for_few_steps(params, setup, training_ids, held_out_ids, budget, every, seed):
    d, f, n = setup["d_model"], setup["d_ff"], setup["context_length"]
    is_small = params["blocks"] and 2 <= d * f < 200
    return bool(is_small) and len(training_ids) > n and budget <= 3 * 10**5


contract(
    "training_curve",
    short_runs,
    sizes={**SMALL, "N_text": (5, 9)},
    dtypes=("float64",),
    right_if=_same_points,
    allowed_if=_pays_for_few_steps,
)


def tables_of_runs(draw, play, name):
    """A field with two or three of its values; a run whose loss tells how it was asked."""
    setup = _setup(draw)
    field = draw.choose("field", ("norm", "activation", "positions"))
    values = list(CHOICES[field][: draw.whole(1, 3)])
    seeds = list(range(draw.whole(0, 4), 5))
    play.call(
        name, setup, field, values, draw.whole(1, 9) * 10**6, seeds, _pretended_loss
    )


def _pretended_loss(setup, steps, seed):
    return 100.0 * seed + steps + setup["d_ff"] / 64


contract(
    "compare",
    tables_of_runs,
    allowed_if=lambda base, field, values, budget, seeds, run: (
        bool(values) and len(set(seeds)) == len(seeds) and base["d_ff"] > 1
    ),
)


def pairs_of_losses(draw, play, name):
    """Quarters, so that nothing is a matter of rounding; now and then a run diverges."""
    n = draw.whole(2, 5)
    first, second = ([draw.whole(0, 12) / 4 for _ in range(n)] for _ in range(2))
    for losses in (first, second):
        if draw.happens(15):
            losses[draw.whole(0, n - 1)] = math.inf
    settings = {}
    if draw.choose("factor is", ("left out", "there")) == "there":
        settings["factor"] = draw.choose("factor", (0.5, 3.3))
    play.call(name, first, second, **settings)


def _is_clear(first, second, factor=2.0):
    """The mean is not at the limit itself."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    if not all(map(math.isfinite, differences)):
        return True
    n, mean = len(differences), sum(differences) / len(differences)
    error = math.sqrt(sum((d - mean) ** 2 for d in differences) / (n * (n - 1)))
    return abs(abs(mean) - factor * error) > 1e-6 or mean == error == 0


contract(
    "paired_verdict",
    pairs_of_losses,
    allowed_if=lambda first, second, factor=2.0: (
        len(first) == len(second) >= 2 and _is_clear(first, second, factor)
    ),
)


def _fits(sizes, losses, new_size, floor=0.0):
    """Not a level line, whose slope is rounding, nor one so steep that a forecast overflows."""
    is_line = len(sizes) == len(losses) and max(sizes) >= 1.5 * min(sizes)
    return is_line and len(set(losses)) > 1 and min(losses) > floor + 1e-3


def _as_many_losses(call):
    """Losses from 0.5 to 8.5, one for each size."""
    return [0.5 + (37 * size % 64) / 8 for size in call.arguments["sizes"]]


contract(
    "power_law_forecast",
    calls(
        sizes=list_of(whole(1, 200), 2, 5),
        losses=computed(_as_many_losses),
        new_size=whole(1, 2000),
        floor=maybe(choice(0.0, 0.25, -1.0)),
    ),
    allowed_if=_fits,
)


def _blocks(draw):
    """Blocks with two matrices and a vector."""
    shapes = {"w": ("n", "m"), "v": ("m", "n"), "gain": ("n",)}
    blocks = [
        {name: draw(tensor(*axes, values=TAME), name) for name, axes in shapes.items()}
        for _ in range(draw.whole(1, 3))
    ]
    return {"embed": draw(tensor("V", "n", values=TAME), "embed"), "blocks": blocks}


def new_adapters(draw, play, name):
    """Adapters of one matrix or two."""
    params = _blocks(draw)
    names = list(draw.choose("names", (("w",), ("v",), ("w", "v"))))
    rank = draw.whole(1, min(params["blocks"][0]["w"].shape))
    play.call(
        name,
        params,
        names,
        rank,
        **({"seed": draw.whole(0, 9)} if draw.happens(50) else {}),
    )


def _have_the_shapes(answer, right, arguments):
    """Any random a is right; b is zero."""
    for own, other in zip(answer, right, strict=True):
        for name, adapter in own.items():
            shapes = adapter["a"].shape == other[name]["a"].shape
            if not shapes or not torch.equal(adapter["b"], other[name]["b"]):
                return False
    return len(answer) == len(right) and [*answer[0]] == [*right[0]]


contract("lora_adapters", new_adapters, right_if=_have_the_shapes)


def merged_blocks(draw, play, name):
    """Adapters of different names and ranks."""
    params = _blocks(draw)
    adapters = []
    for block in params["blocks"]:
        own = {}
        for key in ("w", "v"):
            if draw.happens(60):
                draw.forget("r")
                n, m = block[key].shape
                a, b = (
                    draw(tensor(n, "r", values=TAME)),
                    draw(tensor("r", m, values=TAME)),
                )
                own[key] = {"a": a, "b": b}
        adapters.append(own)
    play.call(name, params, adapters, draw.choose("alpha", (0.5, 1.0, 8.0)))


contract(
    "merge_lora",
    merged_blocks,
    sizes={"r": (1, 3)},
    allowed_if=lambda params, adapters, alpha: len(adapters) == len(params["blocks"]),
)


def costs_of_tuning(draw, play, name):
    """The three ways."""
    params, method = _blocks(draw), draw.choose("method", ("full", "last", "lora"))
    if method == "lora":
        names = list(draw.choose("names", (("w",), ("v",), ("w", "v"))))
        play.call(name, params, method, names, draw.whole(1, 4))
    else:
        play.call(name, params, method)


contract("tuning_costs", costs_of_tuning)

contract(
    "distinct_ngrams",
    calls(ids=tokens("B", "N", below=3), n=whole(1, "N")),
    sizes={"N": (1, 9)},
    allowed_if=lambda ids, n: 1 <= n <= ids.shape[1],
)


def _lengths(call):
    rows, t = call.arguments["targets"].shape
    return torch.tensor([1 + (7 * row + t) % t for row in range(rows)])


contract(
    "accuracy_by_length",
    calls(
        predicted=tokens("B", "T", below=3),
        targets=tokens("B", "T", below=3),
        lengths=computed(_lengths),
    ),
    sizes={"B": (1, 6), "T": (1, 6)},
    allowed_if=lambda predicted, targets, lengths: (
        predicted.shape == targets.shape
        and len(lengths) == len(targets)
        and int(lengths.max()) <= targets.shape[1]
    ),
)


def _costs_more(answer, right, arguments):
    """The ratio of the cost to the rule, for heads that divide."""
    (factor,) = arguments
    d, f, v, n = (
        answer[name] for name in ("d_model", "d_ff", "vocab_size", "context_length")
    )
    d_kv = d // answer["num_heads"] * answer["num_kv_heads"]
    block = (
        2 * d * d
        + 2 * d * d_kv
        + (3 if answer["activation"] == "swiglu" else 2) * d * f
    )
    layers = answer["num_layers"]
    return 1 + layers * 4 * n * d / (2 * (v * d + layers * block)) >= factor


contract("six_n_counterexample", calls(factor=number(1, 50)), right_if=_costs_more)
