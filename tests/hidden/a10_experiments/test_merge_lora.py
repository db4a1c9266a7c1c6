"""merge_lora: matrices with what was learned beside them."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    assert_same_gradients,
    call_twice,
    points,
    randn,
    tensor,
)


def _params():
    """Two blocks with matrices of different shapes."""
    blocks = [{"w": randn(4, 6), "v": randn(6, 4), "gain": randn(4)} for _ in range(2)]
    return {"embed": randn(3, 4), "blocks": blocks, "norm_f": randn(4)}


def _adapter(n, rank, m):
    return {"a": randn(n, rank), "b": randn(rank, m)}


@points(2)
def test_the_product_is_added_to_the_matrix(student, reference):
    """a @ b with a rank of 2 and alpha = 2: w + a b. By hand, [[3, 0], [6, 0]] to a unit matrix."""
    block = {"w": torch.eye(2, dtype=torch.float64)}
    thin = {"a": tensor([[1.0], [2.0]]), "b": tensor([[3.0, 0.0]])}
    merged = student.merge_lora({"blocks": [block]}, [{"w": thin}], 1.0)
    assert_close(merged["blocks"][0]["w"], tensor([[4.0, 0.0], [6.0, 1.0]]))
    params, adapters = _params(), [{"w": _adapter(4, 2, 6)}, {"w": _adapter(4, 2, 6)}]
    merged = student.merge_lora(params, adapters, 2.0)
    for own, block, adapter in zip(
        merged["blocks"], params["blocks"], adapters, strict=True
    ):
        assert_close(own["w"], block["w"] + adapter["w"]["a"] @ adapter["w"]["b"])
    assert_close_in_turn(
        student.merge_lora,
        reference.merge_lora,
        params,
        adapters,
        2.0,
        others=(None, None, 3.0),
    )


@points(1.25)
def test_alpha_is_divided_by_the_rank(student):
    """Ranks of 3 and 1 with alpha = 6: factors of 2 and 6. An alpha of 0 changes nothing."""
    params, adapters = _params(), [{"w": _adapter(4, 3, 6)}, {"v": _adapter(6, 1, 4)}]
    first, second = params["blocks"]
    merged = student.merge_lora(params, adapters, 6)
    a, b = adapters[0]["w"].values()
    assert_close(merged["blocks"][0]["w"], first["w"] + 2 * a @ b)
    a, b = adapters[1]["v"].values()
    assert_close(merged["blocks"][1]["v"], second["v"] + 6 * a @ b)
    merged = student.merge_lora(params, adapters, 0.0)
    assert_close(merged["blocks"][0]["w"], first["w"])
    flat = {"w": randn(1, 6).float()}
    a, b = torch.ones(1, 1), torch.arange(6.0)[None]
    merged = student.merge_lora({"blocks": [flat]}, [{"w": {"a": a, "b": b}}], 0.5)
    assert_close(merged["blocks"][0]["w"], flat["w"] + 0.5 * b)
    tall = {"w": randn(6, 4).T}
    adapter = {"a": randn(2, 4).T, "b": randn(2, 6)}
    merged = student.merge_lora({"blocks": [tall]}, [{"w": adapter}], 2.0)
    assert_close(merged["blocks"][0]["w"], tall["w"] + adapter["a"] @ adapter["b"])


@points(0.75)
def test_everything_else_stays(student):
    """Matrices without adapter, vectors, the embedding; a block without adapters; the order of the
    names.
    """
    params, adapters = _params(), [{"v": _adapter(6, 2, 4)}, {}]
    merged = call_twice(student.merge_lora, params, adapters, 1.0)
    assert_equal(list(merged), list(params), what="the names of the parameters")
    for own, block in zip(merged["blocks"], params["blocks"], strict=True):
        assert_equal(list(own), list(block), what="the names in a block")
        assert_close(own["w"], block["w"], what="a matrix without adapter")
        assert_close(own["gain"], block["gain"], what="a vector")
    assert_close(
        merged["blocks"][1]["v"], params["blocks"][1]["v"], what="the second block's v"
    )
    a, b = adapters[0]["v"].values()
    assert_close(
        merged["blocks"][0]["v"], params["blocks"][0]["v"] + 0.5 * a @ b, what="v"
    )
    assert_close(merged["embed"], params["embed"], what="embed")
    assert_close(merged["norm_f"], params["norm_f"], what="norm_f")


@points(0.75)
def test_gradients_reach_both_thin_matrices(student, reference):
    """And the matrix that they are added to."""
    block = {"w": randn(4, 6, grad=True), "gain": randn(4)}
    adapter = {"a": randn(4, 2, grad=True), "b": randn(2, 6, grad=True)}

    def merged(function):
        return lambda params, adapters: function(params, adapters, 3.0)["blocks"][0][
            "w"
        ]

    assert_same_gradients(
        merged(student.merge_lora),
        merged(reference.merge_lora),
        {"blocks": [block]},
        [{"w": adapter}],
    )


@points(0.25)
def test_adapters_of_another_model_are_refused(student):
    """Adapters for seven blocks and for four, in a model of five."""
    block = {"w": randn(3, 3)}
    params = {"blocks": [block] * 5}
    thin = {"w": {"a": randn(3, 1), "b": randn(1, 3)}}
    merged = student.merge_lora(params, [thin] * 5, 1.0)
    assert_close(merged["blocks"][4]["w"], block["w"] + thin["w"]["a"] @ thin["w"]["b"])
    for number in (7, 4):
        assert_refused(
            student.merge_lora, params, [{}] * number, 1.0, sizes=(number, 5)
        )
