"""tuning_costs: what is trained has gradients and averages, what is frozen has not."""

import torch

from autograder.suite import assert_equal, assert_refused, call_twice, points, randn

# 21 numbers outside the blocks; a block has 4 * 6 + 6 * 4 + 4 = 52, the last one 9 more.


def _params(dtype=torch.float32):
    blocks = [{"w": randn(4, 6), "v": randn(6, 4), "gain": randn(4)} for _ in range(3)]
    blocks[-1]["own"] = randn(9)
    params = {"embed": randn(4, 4), "blocks": blocks, "norm_f": randn(5)}
    blocks = [{name: t.to(dtype) for name, t in block.items()} for block in blocks]
    return {
        "embed": params["embed"].to(dtype),
        "blocks": blocks,
        "norm_f": params["norm_f"].to(dtype),
    }


def _numbers(weights, trained, size=4):
    """The right answer for so many numbers, of which so many are trained."""
    return {
        "trained": trained, "weights": weights * size, "gradients": trained * size,
        "optimizer": trained * 8,
    }  # fmt: skip


def _assert_costs(answer, expected):
    """Entry by entry, so that each is told by its name."""
    assert isinstance(answer, dict), (
        f"the costs should be a dict, and are {type(answer).__name__}."
    )
    assert_equal(sorted(answer), sorted(expected), what="the names of the costs")
    for name, value in expected.items():
        assert_equal(answer[name], value, what=name)
        assert isinstance(answer[name], int), f"{name} should be a whole number."


@points(1)
def test_full_training_trains_all_numbers(student):
    """186 of them: 744 bytes of weights and of gradients, and 1488 of averages."""
    _assert_costs(
        call_twice(student.tuning_costs, _params(), "full"), _numbers(186, 186)
    )


@points(0.5)
def test_gpt2_has_124_million_numbers(student):
    """The notebook's GPT-2, whose twelve blocks are one and the same dict: each place counts.
    A block has 7 087 872 numbers, and adapters of rank 8 for two of its matrices 24 576.
    """
    numbers, adapters = 124_439_808, 12 * 24_576
    _assert_costs(student.gpt2_costs("full"), _numbers(numbers, numbers))
    _assert_costs(student.gpt2_costs("last"), _numbers(numbers, 7_087_872))
    _assert_costs(student.gpt2_costs("lora"), _numbers(numbers + adapters, adapters))


@points(0.75)
def test_the_last_block_alone_is_trained(student):
    """61 numbers; the weights are all there."""
    _assert_costs(student.tuning_costs(_params(), "last"), _numbers(186, 61))


@points(1.25)
def test_adapters_are_trained_and_stored_beside_the_weights(student):
    """A rank of 2 for w and v: 2 · (10 + 10) numbers in each of three blocks; ranks of 3 and
    1 for w alone; and each method after another one.
    """
    params = _params()
    params["blocks"][0]["w"] = randn(6, 4).T.float()
    for names, rank, trained in (
        (["w", "v"], 2, 120),
        (["w"], 3, 90),
        (["w"], 1, 30),
        ([], 1, 0),
    ):
        answer = student.tuning_costs(params, "lora", names=names, rank=rank)
        _assert_costs(answer, _numbers(186 + trained, trained))
    _assert_costs(student.tuning_costs(params, "full", ["w"], 1), _numbers(186, 186))
    _assert_costs(student.tuning_costs(params, "last"), _numbers(186, 61))
    _assert_costs(
        student.tuning_costs(params, "lora", ["w"], 1), _numbers(186 + 30, 30)
    )
    shorter = params | {"blocks": params["blocks"][1:]}
    _assert_costs(
        student.tuning_costs(shorter, "lora", ["w"], 1), _numbers(134 + 20, 20)
    )


@points(1)
def test_averages_are_in_float32_whatever_the_weights_are(student):
    """Half precision: 2 bytes of weight and gradient for each number, and 8 of averages; float64: 8
    and 8.
    """
    for dtype, size in ((torch.bfloat16, 2), (torch.float16, 2), (torch.float64, 8)):
        answer = student.tuning_costs(_params(dtype), "last")
        _assert_costs(answer, _numbers(186, 61, size))
        answer = student.tuning_costs(_params(dtype), "lora", ["w"], 1)
        _assert_costs(answer, _numbers(186 + 30, 30, size))


@points(0.5)
def test_another_method_is_refused(student):
    """By its word."""
    _assert_costs(student.tuning_costs(_params(), "lora", [], 4), _numbers(186, 0))
    assert_refused(student.tuning_costs, _params(), "prefix", naming="prefix")
