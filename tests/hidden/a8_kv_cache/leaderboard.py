"""What writing with a cache costs, in counts."""

import torch

from autograder.leaderboard import NotRanked, measure

NEW = 96


def write(entrant):
    """The cost of two texts of 96 tokens, which must be those of the answer key."""
    reference = entrant.reference
    sizes = reference.make_config(context_length=128)
    params = reference.random_params(sizes)
    prompt = (torch.arange(2 * 9).view(2, 9) * 7) % sizes.vocab_size
    answer, cost = entrant.student.counted(
        "generate_cached", params, prompt, NEW, sizes
    )
    if not torch.equal(answer, reference.generate_uncached(params, prompt, NEW, sizes)):
        raise NotRanked(f"the {NEW} tokens are not those of the model without a cache")
    return cost


@measure(
    f"multiplications and additions of two texts of {NEW} tokens",
    unit="MFLOP",
    needs=("KVCache", "decode_step", "generate_cached"),
    decimals=2,
)
def operations(entrant):
    """Floating point operations, a multiply-add is two."""
    return write(entrant).flops / 1e6


@measure(
    f"numbers that torch writes for two texts of {NEW} tokens",
    unit="thousand numbers",
    needs=("KVCache", "decode_step", "generate_cached"),
)
def numbers_written(entrant):
    """Elements written by all operations; a view writes none."""
    return write(entrant).moved / 1000
