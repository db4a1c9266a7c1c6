"""lora_adapters: thin matrices, one random and one zero."""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    assert_varies,
    call_twice,
    points,
    randn,
)

PLANT = "import torch\n\ndef plant():\n    torch.manual_seed(7)\n"
PEEK = "import torch\n\ndef peek():\n    return torch.rand(3).tolist()\n"


def _params(n=5, m=8, blocks=2, dtype=torch.float64):
    """Blocks with matrices [n, m] and [m, n], and a vector."""
    return {
        "embed": randn(3, n),
        "blocks": [
            {"w": randn(n, m).to(dtype), "v": randn(m, n).to(dtype), "gain": randn(n)}
            for _ in range(blocks)
        ],
    }


@points(1)
def test_each_block_has_an_adapter_for_each_name(student):
    """Two matrices of three blocks, or one, of two sizes and ranks; a is [n, r] and b [r, m], in the dtype of the matrix."""
    for names, dtype, n, m, rank in (
        (["w", "v"], torch.float64, 5, 8, 2),
        (["v"], torch.float64, 5, 8, 2),
        (["v"], torch.float32, 5, 8, 2),
        (["v"], torch.float32, 6, 9, 2),
        (["v"], torch.float32, 6, 9, 1),
    ):
        params = _params(n, m, 3, dtype)
        params["blocks"][0]["v"] = params["blocks"][0]["v"].T.contiguous().T
        adapters = student.lora_adapters(params, names, rank, seed=1)
        assert_equal(
            [sorted(own) for own in adapters], [sorted(names)] * 3, what="the names"
        )
        for own in adapters:
            for name, adapter in own.items():
                rows, columns = (n, m) if name == "w" else (m, n)
                assert_equal(
                    sorted(adapter), ["a", "b"], what="the entries of an adapter"
                )
                shapes = [list(adapter["a"].shape), list(adapter["b"].shape)]
                assert_equal(
                    shapes,
                    [[rows, rank], [rank, columns]],
                    what="the shapes of a and b",
                )
                dtypes = [adapter["a"].dtype, adapter["b"].dtype]
                assert_equal(dtypes, [dtype] * 2, what="the dtypes of a and b")
                assert_varies(adapter["a"], above=1e-3)

    params = _params()
    for names, rank in ((["w"], 2), (["w"], 3), (["v"], 3)):
        adapter = student.lora_adapters(params, names, rank)[1][names[0]]
        expected = [len(params["blocks"][1][names[0]]), rank]
        assert_equal(list(adapter["a"].shape), expected, what="the shape of a")


@points(1)
def test_the_model_begins_as_it_was_and_can_move(student):
    """b is zero and a is not: with both zero, both gradients are zero."""
    for own in student.lora_adapters(_params(), ["w", "v"], 3):
        for adapter in own.values():
            assert_close(adapter["b"], torch.zeros_like(adapter["b"]), what="b")
            assert_varies(adapter["a"], above=1e-3)
            assert float(adapter["a"].abs().min()) > 0, (
                "a has zeros, and should be random."
            )


@points(1)
def test_a_is_normal_with_a_deviation_of_one_over_the_root_of_n(student):
    """1600 numbers for a matrix with 100 rows: mean 0, deviation 0.1, and a third outside of one
    deviation.
    """
    adapters = student.lora_adapters(_params(100, 40, 1), ["w"], 16, seed=3)
    scaled = 10 * adapters[0]["w"]["a"]
    mean, deviation = float(scaled.mean()), float(scaled.std())
    assert abs(mean) < 0.15, f"the mean of a is {mean / 10:.3f}, and should be 0."
    assert 0.9 < deviation < 1.1, (
        f"a deviates by {deviation / 10:.3f}, and should by 0.1."
    )
    outside = float((scaled.abs() > 1).double().mean())
    far = float((scaled.abs() > 2).double().mean())
    assert 0.25 < outside < 0.39, f"{outside:.2f} of a lie outside of one deviation."
    assert 0.02 < far < 0.08, f"{far:.3f} of a lie outside of two deviations."


@points(0.5)
def test_every_adapter_throws_dice_of_its_own(student):
    """Blocks, names and seeds differ; the same seed gives the same, and 0 is the default."""
    square = _params(6, 6)
    names = ["w", "v"]
    adapters = call_twice(student.lora_adapters, square, names, 2)
    others = student.lora_adapters(square, names, 2, seed=5)
    again = student.lora_adapters(square, names, 2, seed=0)
    drawn = [own[name]["a"] for own in (*adapters, *others) for name in names]
    for place, a in enumerate(drawn):
        assert_varies(a, above=1e-3)
        assert all(not torch.equal(a, other) for other in drawn[:place]), (
            "Two adapters have the same numbers."
        )
    assert_close(again[1]["v"]["a"], adapters[1]["v"]["a"], what="a with seed 0")

    plant, peek = student.define(PLANT, "plant"), student.define(PEEK, "peek")
    plant()
    undisturbed = peek()
    plant()
    student.lora_adapters(square, names, 2, seed=5)
    assert peek() == undisturbed, "After the call torch's own dice are others."


@points(0.5)
def test_what_has_no_adapter_is_refused(student):
    """Ranks of 0 and of 6 for a matrix [5, 8] and for one of [8, 5], and a name that no block
    has.
    """
    params = _params()
    for adapters in student.lora_adapters(params, ["w"], 5, seed=10**9):
        assert_varies(adapters["w"]["a"], above=1e-3)
        assert_close(adapters["w"]["b"], torch.zeros(5, 8, dtype=torch.float64))
    for name in ("w", "v"):
        assert_refused(student.lora_adapters, params, [name], 0, sizes=(0,))
        assert_refused(student.lora_adapters, params, [name], 6, sizes=(6, 5))
    assert_refused(student.lora_adapters, params, ["w", "w_q"], 2, naming="w_q")
