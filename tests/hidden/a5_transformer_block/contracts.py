"""What the docstrings of assignment 5 allow."""

import torch

from autograder.suite.contracts import (
    EDGES,
    FLOATS,
    HALF,
    calls,
    choice,
    contract,
    mask,
    maybe,
    tensor,
    tokens,
    whole,
)

WEIGHTS = ("normal", "whole", "small", "zeros")
"""Numbers of a weight matrix."""
EPS = maybe(choice(1e-5, 1e-2, 0.5))

contract(
    "layer_norm",
    calls(
        x=tensor("...", "D", values=EDGES), gamma=tensor("D"), beta=tensor("D"), eps=EPS
    ),
    dtypes=HALF,
    gradients=True,
)

contract(
    "layer_norm_backward",
    calls(
        # dx is a small difference of terms of the size of dy, so dy is not in the thousands
        dy=tensor(
            "...", "D", values=("normal", "equal rows", "small", "zeros", "offset")
        ),
        x=tensor("...", "D"),
        gamma=tensor("D"),
        eps=EPS,
    ),
    dtypes=HALF,
)

contract(
    "rms_norm",
    calls(
        x=tensor("...", "D", values=EDGES),
        gamma=tensor("D"),
        eps=maybe(choice(1e-6, 1e-2, 0.5)),
    ),
    dtypes=HALF,
    gradients=True,
)


def norms_of_batches(draw, play, name):
    """In training the statistics are those of the batch; they are kept in float32 or float64."""
    dtype = draw.choose("dtype of the statistics", ("float32", "float64"))
    play.call(
        name,
        draw(tensor("...", "N", "D"), "x"),
        draw(tensor("D"), "gamma"),
        draw(tensor("D"), "beta"),
        draw(
            tensor("D", dtype=dtype, values=("normal", "whole", "offset")),
            "running_mean",
        ),
        draw(tensor("D", dtype=dtype, values=("positive", "shares")), "running_var"),
        draw.choose("training", (False, True)),
        **_settings(draw),
    )


def _settings(draw):
    """Each keyword is left out or there."""
    settings = {}
    if draw.choose("momentum is", ("left out", "there")) == "there":
        settings["momentum"] = draw.choose("momentum", (0.0, 0.25, 1.0))
    if draw.choose("eps is", ("left out", "there")) == "there":
        settings["eps"] = draw.choose("eps", (1e-5, 1e-2, 0.5))
    return settings


contract("batch_norm", norms_of_batches, dtypes=HALF)

contract(
    "mlp",
    calls(
        x=tensor("...", "D"),
        w1=tensor("D", "F", values=WEIGHTS),
        b1=tensor("F"),
        w2=tensor("F", "D", values=WEIGHTS),
        b2=tensor("D"),
        activation=maybe(choice("relu", "gelu")),
    ),
    gradients=True,
)

contract(
    "swiglu",
    calls(
        x=tensor("...", "D"),
        w1=tensor("D", "F", values=WEIGHTS),
        w2=tensor("D", "F", values=WEIGHTS),
        w3=tensor("F", "D", values=WEIGHTS),
    ),
    gradients=True,
)

contract(
    "swiglu_hidden",
    calls(d_model=whole(1, 20_000), multiple_of=maybe(choice(1, 2, 3, 7, 64, 256))),
)

ROTATED = ("normal", "whole", "large", "small", "equal rows")
ANGLES = {"float64": 2e-4}
"""Angles that are made in float32 are exact to six digits, at positions below a thousand."""

contract(
    "rotary_positions",
    calls(
        x=tensor("...", "N", "2*pairs", values=ROTATED),
        positions=tokens("N", below=1000),
        theta=maybe(choice(10000.0, 100.0, 2.0)),
    ),
    dtypes=HALF,
    tolerance=ANGLES,
)

contract(  # each sentence of the batch has its own positions
    "rotary_positions",
    calls(
        x=tensor("B", "H", "N", "2*pairs", values=ROTATED),
        positions=tokens("B", "N", below=1000),
        theta=maybe(choice(10000.0, 100.0, 2.0)),
    ),
    dtypes=HALF,
    tolerance=ANGLES,
)


def blocks_with_masks(draw, play, name):
    """A mask for all sentences, one for each, or of keys alone."""
    inner = draw.size("H*d")
    params = {
        "w_q": draw(tensor("D", inner, values=WEIGHTS), "w_q"),
        "w_k": draw(tensor("D", inner, values=WEIGHTS), "w_k"),
        "w_v": draw(tensor("D", inner, values=WEIGHTS), "w_v"),
        "w_o": draw(tensor(inner, "D", values=WEIGHTS), "w_o"),
        "w1": draw(tensor("D", "F", values=WEIGHTS), "w1"),
        "b1": draw(tensor("F", values=WEIGHTS), "b1"),
        "w2": draw(tensor("F", "D", values=WEIGHTS), "w2"),
        "b2": draw(tensor("D", values=WEIGHTS), "b2"),
    }
    for norm in ("ln1", "ln2"):
        params[f"{norm}_gamma"] = draw(tensor("D", values=WEIGHTS), f"{norm}_gamma")
        params[f"{norm}_beta"] = draw(tensor("D", values=WEIGHTS), f"{norm}_beta")
    x = draw(tensor("B", "N", "D"), "x")
    axes = draw.choose(
        "axes of the mask", ((), ("N", "N"), ("B", "N", "N"), ("B", 1, "N"))
    )
    if axes:
        play.call(name, x, params, draw.size("H"), mask=draw(mask(*axes), "mask"))
    else:
        play.call(name, x, params, draw.size("H"))


HEADS = {"H": (1, 3), "d": (1, 3), "N": (1, 5), "D": (1, 6), "F": (1, 6)}
contract("post_norm_block", blocks_with_masks, sizes=HEADS)
contract("pre_norm_block", blocks_with_masks, sizes=HEADS)

contract(
    "moe_layer",
    calls(
        x=tensor(
            "B", "N", "D", values=tuple(style for style in FLOATS if style != "zeros")
        ),
        w_gate=tensor("D", "E", values=("normal", "large")),
        w1=tensor("E", "D", "F", values=WEIGHTS),
        w2=tensor("E", "F", "D", values=WEIGHTS),
        num_active=whole(1, "E"),
    ),
    sizes={"E": (1, 6), "D": (2, 6)},
    equals="free",
)


def _slips(answer, right, arguments):
    """The token does what is asked for: any such token is right."""
    decimals, units = arguments
    is_token = isinstance(answer, torch.Tensor) and answer.dtype == torch.float64
    if not is_token or answer.ndim != 1 or not 2 <= len(answer) <= 100_000:
        return False
    centred = answer - answer.mean()
    sigma = float(centred.square().mean().sqrt())
    early = (centred / round(sigma, decimals)).round(decimals=decimals)
    late = (centred / sigma).round(decimals=decimals)
    slip = round(float((early - late).abs().max()) * 10**decimals)
    return sigma >= 1 - 1e-9 and slip >= units


contract(
    "rounding_counterexample",
    calls(decimals=whole(1, 5), units=whole(1, 25)),
    right_if=_slips,
)
