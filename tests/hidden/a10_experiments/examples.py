"""Small scripts for students, where a call of a hidden test of assignment 10 cannot be pasted."""

import torch

from autograder.suite.contracts import contract

PLAIN = {
    "vocab_size": 3,
    "d_model": 4,
    "num_layers": 1,
    "num_heads": 2,
    "num_kv_heads": 1,
    "d_ff": 3,
    "context_length": 3,
    "positions": "none",
    "norm": "pre",
    "activation": "relu",
    "tied": True,
    "dropout": 0.0,
    "smoothing": 0.0,
    "rate": 0.1,
    "batch": 2,
    "parts": 1,
}
"""A setup that is worked out in a moment."""
VARIANTS = (
    {},
    {"positions": "learned"},
    {"norm": "post", "num_layers": 2},
    {"activation": "swiglu", "tied": False},
    {"positions": "rotary", "norm": "rms", "activation": "gelu"},
)
WHOLE = ("float32",)


def half(x):
    return x / 2


def _setup(draw, **changes):
    return PLAIN | draw.choose("variant", VARIANTS) | changes


def texts_through_a_random_model(draw, play, name):
    """One text, with everything halved in place of dropped, or not."""
    setup = _setup(draw)
    params = play.call("random_params", setup, draw.whole(1, 9))
    ids = torch.tensor([[0, 2, 1][: draw.whole(1, 3)]])
    drop = [half] if draw.choose("drop", ("left out", "half")) == "half" else []
    play.call(name, ids, params, setup, *drop)


contract("decoder", texts_through_a_random_model, dtypes=WHOLE)


def batches_of_a_random_model(draw, play, name):
    """Three rows in up to three parts, of which one token does not count."""
    setup = _setup(draw, parts=draw.whole(1, 3), smoothing=draw.choose("s", (0.0, 0.5)))
    params = play.call("random_params", setup, draw.whole(1, 9))
    inputs = torch.tensor([[0, 1], [2, 0], [1, 1]])
    targets = torch.tensor([[1, 2], [0, -100], [1, 0]])
    drop = [half] if draw.choose("drop", ("left out", "half")) == "half" else []
    play.call(name, params, setup, inputs, targets, *drop)


contract(
    "accumulated_gradients",
    batches_of_a_random_model,
    dtypes=WHOLE,
    tolerance={"float32": 1e-2},
)


def flops_of_a_step(setup):
    """What training_flops says of a setup."""
    d, f, n = (setup[name] for name in ("d_model", "d_ff", "context_length"))
    d_kv = d // setup["num_heads"] * setup["num_kv_heads"]
    matrices = 3 if setup["activation"] == "swiglu" else 2
    block = 4 * d * d + 4 * d * d_kv + 4 * n * d + 2 * matrices * d * f
    a_token = setup["num_layers"] * block + 2 * setup["vocab_size"] * d
    return 3 * setup["batch"] * n * a_token


RUN = """
def short_run(changes, steps, every, seed):
    setup = SMALL | {"d_model": 4, "rate": 0.1, "context_length": 3} | changes
    text, held_out = torch.tensor([0, 1, 2, 2, 0, 1, 1]), torch.tensor([2, 1, 0, 0, 2])
    budget = steps * training_flops(setup) + 1
    params, curve = training_curve(
        random_params(setup, 1), setup, text, held_out, budget, every, seed
    )
    return curve, params["embed"]
"""


def runs_of_few_steps(draw, play, name):
    """One to four steps; a point every step, every second or every third."""
    play.helpers = RUN
    changes = draw.choose("changes", ({}, {"dropout": 0.5}, {"num_heads": 2}))
    steps, every, seed = draw.whole(1, 4), draw.whole(1, 3), draw.whole(1, 3)
    play.helper("short_run", changes, steps, every, seed)


contract(
    "training_curve",
    runs_of_few_steps,
    tolerance={"float64": 1e-2, "float32": 1e-2},
)


def a_run(setup, steps, seed):
    return 1000.0 * setup["d_ff"] + 10 * steps + seed


def tables_of_one_field(draw, play, name):
    """Fields whose values change what a step costs, or the width of the MLP."""
    setup = PLAIN | {"d_ff": draw.choose("d_ff", (6, 7, 8)), "batch": 2}
    fields = {
        "activation": ["swiglu", "relu", "gelu"],
        "batch": [4, 2, 1],
        "norm": ["post", "pre"],
    }
    field = draw.choose("field", tuple(fields))
    budget = draw.whole(2, 5) * 2 * flops_of_a_step(setup)
    play.call(name, setup, field, fields[field], budget, [1, 2], a_run)


contract(
    "compare",
    tables_of_one_field,
    allowed_if=lambda base, field, values, budget, seeds, run: (
        bool(values) and base["d_ff"] > 5
    ),
)

FACTS = """
def facts_of_adapters():
    block = {"w_q": torch.zeros(100, 90), "w_v": torch.zeros(100, 90)}
    params, names = {"blocks": [block, block]}, ["w_q", "w_v"]
    with torch.random.fork_rng():
        torch.manual_seed(1)
        dice = torch.get_rng_state()
        first, second = lora_adapters(params, names, 50, seed=7)
        dice_stay = torch.equal(torch.get_rng_state(), dice)
    again = lora_adapters(params, names, 50, seed=7)[0]["w_q"]["a"]
    other = lora_adapters(params, names, 50, seed=8)[0]["w_q"]["a"]
    a, b = first["w_q"]["a"], first["w_q"]["b"]
    return {
        "deviation times the root of n": round(10 * float(a.double().std()), 1),
        "numbers beyond two deviations": bool((10 * a.abs() > 2).any()),
        "dtype": str(a.dtype),
        "b is zero": not bool(b.any()),
        "w_v has other numbers": not torch.equal(a, first["w_v"]["a"]),
        "the next block has other numbers": not torch.equal(a, second["w_q"]["a"]),
        "the same seed gives the same": torch.equal(a, again),
        "another seed gives others": not torch.equal(a, other),
        "torch's own dice stay": dice_stay,
    }
"""


def facts_about_adapters(draw, play, name):
    """What holds of adapters, whatever their numbers are."""
    play.helpers = FACTS
    play.helper("facts_of_adapters")


contract("lora_adapters", facts_about_adapters)


def costs_of_small_models(draw, play, name):
    """Two blocks of a matrix and a vector."""
    dtype = getattr(torch, draw.choose("weights", ("float32", "float64", "float16")))
    blocks = [{"w": torch.zeros(2, 3, dtype=dtype)} for _ in range(2)]
    params = {"embed": torch.zeros(4, 2, dtype=dtype), "blocks": blocks}
    method = draw.choose("method", ("full", "last", "lora"))
    adapted = [["w"], draw.whole(1, 2)] if method == "lora" else []
    play.call(name, params, method, *adapted)


TWICE = """
def costs_of_a_shared_block():
    block = {"w": torch.zeros(2, 3)}
    params = {"embed": torch.zeros(4, 2), "blocks": [block, block]}
    return tuning_costs(params, "full")
"""


def costs_of_a_shared_block(draw, play, name):
    """One tensor in two places."""
    play.helpers = TWICE
    play.helper("costs_of_a_shared_block")


def _has_these_costs(answer, right, arguments):
    """Whole numbers: bytes depend on the dtype, and are no matter of rounding."""
    return answer == right


contract(
    "tuning_costs",
    costs_of_small_models,
    dtypes=("float64", "float32", "float16"),
    right_if=_has_these_costs,
)
contract("tuning_costs", costs_of_a_shared_block)
