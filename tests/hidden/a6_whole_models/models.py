"""Models as the tests of this suite want them: no parameter at a value that hides a fault."""

from autograder.suite import config, moved

SIZES = {
    "vocab_size": 7,
    "d_model": 6,
    "num_layers": 0,
    "num_heads": 2,
    "d_head": 5,
    "d_ff": 7,
    "context_length": 20,
    "num_encoder_layers": 0,
    "tied": False,
    "biases": False,
    "norms": True,
    "learned_positions": True,
    "final_norm": True,
    "patch": 0,
}


def small_config(**changes):
    """The config of a small model without blocks, with changes."""
    return config(**SIZES | changes)


def shaken(reference, params, by):
    """params, `moved`: trained norms, biases that are not 0."""
    return reference.with_tensors(params, moved(reference.list_tensors(params), by))


def with_large_scores(params):
    """params with scores in the ten thousands: allowed ones lie far below any finite fill, and rows
    far apart.
    """
    large = {}
    for side in params.keys() & {"blocks", "encoder", "decoder"}:
        large[side] = [
            {
                name: 300 * weight if name in ("w_q", "w_k", "c_q", "c_k") else weight
                for name, weight in block.items()
            }
            for block in params[side]
        ]
    return params | large


def with_heads(settings, num_heads):
    """The config with another number of heads, of as many columns in all."""
    columns = settings.num_heads * settings.d_head
    changes = {"num_heads": num_heads, "d_head": columns // num_heads}
    return config(**vars(settings) | changes)


def learned(reference, params):
    """params, all of whose tensors ask for a gradient."""
    for tensor in reference.list_tensors(params):
        tensor.requires_grad_()
    return params


def cast(reference, params, dtype):
    """params, all of whose tensors have another dtype."""
    tensors = [tensor.to(dtype) for tensor in reference.list_tensors(params)]
    return reference.with_tensors(params, tensors)
