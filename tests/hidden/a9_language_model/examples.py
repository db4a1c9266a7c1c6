"""Small scripts for students, where a call of a hidden test of assignment 9 cannot be pasted."""

from types import SimpleNamespace

import torch

from autograder.suite.contracts import contract

MODEL = """
def larger_params(config, seed):
    \"\"\"Random parameters, so large that attention shows.\"\"\"
    params = random_params(config, seed)
    return with_tensors(params, [30 * tensor for tensor in list_tensors(params)])
"""
AFTER = (
    MODEL
    + """

def after_a_refusal(params, config, cache):
    \"\"\"Whether an id is refused, and how long the cache is then.\"\"\"
    try:
        language_model(torch.tensor([[0, 9]]), params, config, cache)
    except ValueError:
        return True, cache.length
    return False, cache.length
"""
)


def _model(draw, play, layers=None):
    config = SimpleNamespace(
        vocab_size=5,
        d_model=4,
        num_layers=layers or draw.choose("layers", (1, 2)),
        num_heads=2,
        d_ff=3,
        context_length=8,
    )
    return config, play.helper("larger_params", config, draw.whole(1, 9))


def _ids(draw, batch, length):
    """Tokens that all differ, as far as there are so many."""
    count = batch * length
    return ((torch.arange(count) * 2 + draw.whole(0, 4)) % 5).view(batch, length)


def chunks_into_a_cache(draw, play, name):
    """A text in one chunk or two; then a chunk of zeros shows what the cache holds."""
    play.helpers = MODEL
    config, params = _model(draw, play)
    sizes = (config.num_layers, 1, 2, 2, 8, torch.float32)
    cache = play.call("KVCache", *sizes)
    for length in draw.choose("chunks", ((2, 2), (3, 1), (1, 2), (2, 1))):
        play.call(name, _ids(draw, 1, length), params, config, cache)
        play.read("length", on=cache)
    zeros = torch.zeros(1, 2, 1, 2)
    play.call("append", draw.whole(0, config.num_layers - 1), zeros, zeros, on=cache)


def whole_texts(draw, play, name):
    """A text without a cache."""
    play.helpers = MODEL
    config, params = _model(draw, play)
    play.call(name, _ids(draw, draw.whole(1, 2), draw.whole(1, 3)), params, config)


def ids_outside(draw, play, name):
    """An id that the model does not have, behind a chunk."""
    play.helpers = AFTER
    config, params = _model(draw, play, layers=1)
    cache = play.call("KVCache", 1, 1, 2, 2, 8, torch.float32)
    play.call(name, torch.tensor([[1, 2]]), params, config, cache)
    play.helper("after_a_refusal", params, config, cache)


contract("language_model", chunks_into_a_cache, dtypes=("float32",))
contract("language_model", chunks_into_a_cache, dtypes=("float32",))
contract("language_model", whole_texts, dtypes=("float32",))
contract("language_model", ids_outside, dtypes=("float32",))

WINDOWS = """
def facts_of_windows():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        dice = torch.get_rng_state()
        inputs, targets = sample_windows(torch.arange(6), 300, 2, seed=7)
        dice_stay = torch.equal(torch.get_rng_state(), dice)
        again = sample_windows(torch.arange(6), 300, 2, seed=7)[0]
        other = sample_windows(torch.arange(6), 300, 2, seed=8)[0]
    starts = inputs[:, 0].tolist()
    return {
        "starts": sorted(set(starts)),
        "pairs of a start and the next one": len(set(zip(starts, starts[1:]))),
        "a start comes twice in four rows": any(
            len(set(starts[row : row + 4])) < 4 for row in range(0, 300, 4)
        ),
        "targets follow": torch.equal(targets, inputs + 1),
        "the same seed gives the same": torch.equal(inputs, again),
        "another seed gives others": not torch.equal(inputs, other),
        "torch's own dice stay": dice_stay,
    }
"""


def facts_about_windows(draw, play, name):
    """What holds of three hundred windows, whatever the dice are."""
    play.helpers = WINDOWS
    play.helper("facts_of_windows")


contract("sample_windows", facts_about_windows)

DICE = (
    MODEL
    + """

def facts_of_samples(config):
    params, prompt = larger_params(config, 1), torch.tensor([[1, 2]])
    with torch.random.fork_rng():
        torch.manual_seed(1)
        dice = torch.get_rng_state()
        text = sample(params, prompt, 5, config, seed=7)
        dice_stay = torch.equal(torch.get_rng_state(), dice)
        again = sample(params, prompt, 5, config, seed=7)
    return {
        "the same seed gives the same": torch.equal(text, again),
        "torch's own dice stay": dice_stay,
    }
"""
)


def facts_about_samples(draw, play, name):
    """What holds of sampled texts, whatever the dice are."""
    play.helpers = DICE
    sizes = {"vocab_size": 5, "d_model": 4, "num_layers": 1, "num_heads": 2}
    play.helper("facts_of_samples", SimpleNamespace(**sizes, d_ff=3, context_length=8))


contract("sample", facts_about_samples)


def one_text_and_two_lists_of_merges(draw, play, name):
    """The same text, with other merges the second time."""
    text = torch.tensor(list(b"aab"), dtype=torch.uint8)
    play.call(name, text, [(97, 97)])
    play.call(name, text, [(97, 98)])


contract("bpe_encode", one_text_and_two_lists_of_merges)
