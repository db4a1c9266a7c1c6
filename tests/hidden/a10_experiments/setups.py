"""Setups and parameters as the tests of this suite want them: small, and no two sizes equal."""

import torch

from autograder.suite import moved, randint

SETUP = {
    "vocab_size": 7, "d_model": 12, "num_layers": 2, "num_heads": 3, "num_kv_heads": 3, "d_ff": 10,
    "context_length": 6, "positions": "learned", "norm": "pre", "activation": "gelu", "tied": True,
    "dropout": 0.0, "smoothing": 0.0, "rate": 0.02, "batch": 5, "parts": 1,
}  # fmt: skip


def shaken(reference, setup, seed=0, by=0.4):
    """Parameters in float64, all of them away from where they begin."""
    params = reference.random_params(setup, seed)
    tensors = [t.double() for t in reference.list_tensors(params)]
    return reference.with_tensors(params, moved(tensors, by))


def tokens(*shape, below=7):
    """Random token ids."""
    return randint(0, below, shape)


def halved(x):
    """A drop that everybody can follow: half of each number."""
    return x * 0.5


def texts(number_of_training_ids=40, held_out=14):
    """A text to train on and one to measure with, in which other tokens are frequent."""
    training = tokens(number_of_training_ids, below=4)
    return training, torch.cat(
        [tokens(held_out - 4, below=7), torch.tensor([6, 5, 6, 4])]
    )


def in_single_precision(reference, params):
    """The same parameters in float32."""
    return reference.with_tensors(
        params, [t.float() for t in reference.list_tensors(params)]
    )


def sharpened(params):
    """Parameters whose attention has scores in the hundreds of thousands, of both signs."""
    blocks = [
        p | {"w_q": 300 * p["w_q"], "w_k": 300 * p["w_k"]} for p in params["blocks"]
    ]
    return params | {"blocks": blocks}
