"""What the docstrings of assignment 4 allow."""

from autograder.suite.contracts import (
    HALF,
    calls,
    choice,
    contract,
    mask,
    size,
    tensor,
    whole,
)

WEIGHTS = ("normal", "whole", "small", "zeros")
"""Numbers of a weight matrix."""
HEADS = {"H": (1, 4), "d": (1, 4), "d_v": (1, 4), "N": (1, 6)}

contract(
    "split_heads",
    calls(x=tensor("B", "N", "H*d"), num_heads=size("H")),
    dtypes=HALF,
    gradients=True,
)

contract(
    "merge_heads", calls(x=tensor("B", "H", "N", "d")), dtypes=HALF, gradients=True
)

contract(
    "fused_qkv",
    calls(
        x=tensor("B", "N", "D"),
        w_qkv=tensor("D", "3*H*d", values=WEIGHTS),
        num_heads=size("H"),
    ),
    sizes=HEADS,
    gradients=True,
)


def attention_with_masks(draw, play, name):
    """Self- or cross-attention; a mask for all, for each sentence, or for each head."""
    x = draw(tensor("B", "N", "D"), "x")
    is_cross = draw.choose("x_kv", ("left out", "there")) == "there"
    keys, width = ("N_k", "D_kv") if is_cross else ("N", "D")
    weights = [
        draw(tensor("D", "H*d", values=WEIGHTS), "w_q"),
        draw(tensor(width, "H*d", values=WEIGHTS), "w_k"),
        draw(tensor(width, "H*d_v", values=WEIGHTS), "w_v"),
        draw(tensor("H*d_v", "D", values=WEIGHTS), "w_o"),
    ]
    settings = {"x_kv": draw(tensor("B", keys, width), "x_kv")} if is_cross else {}
    axes = draw.choose("axes of the mask", MASK_AXES)
    if axes:
        settings["mask"] = draw(
            mask(*[keys if axis == "K" else axis for axis in axes]), "mask"
        )
    play.call(name, x, *weights, draw.size("H"), **settings)


MASK_AXES = (
    (),
    ("N", "K"),
    ("B", "N", "K"),
    ("B", 1, "K"),
    (1, "N", "K"),
    ("B", "H", "N", "K"),
    (1, "H", "N", "K"),
    ("B", 1, 1, "K"),
    (1, 1, "N", "K"),
)
"""Axes of a mask; K stands for the keys."""

contract(
    "multi_head_attention",
    attention_with_masks,
    sizes=HEADS,
    dtypes=HALF,
    gradients=True,
)


def sum_over_heads(draw, play, name):
    """Every head has its own output matrix; masks as in multi_head_attention."""
    x = draw(tensor("B", "N", "D"), "x")
    weights = [
        draw(tensor("D", "H*d", values=WEIGHTS), "w_q"),
        draw(tensor("D", "H*d", values=WEIGHTS), "w_k"),
        draw(tensor("D", "H*d_v", values=WEIGHTS), "w_v"),
        draw(tensor("H", "d_v", "D", values=WEIGHTS), "w_heads"),
    ]
    axes = draw.choose("axes of the mask", MASK_AXES)
    masks = (
        [draw(mask(*["N" if axis == "K" else axis for axis in axes]), "mask")]
        if axes
        else []
    )
    play.call(name, x, *weights, draw.size("H"), *masks)


contract("multi_head_sum", sum_over_heads, sizes=HEADS, gradients=True)


def attention_in_groups(draw, play, name):
    """H is a multiple of H_kv; masks as in multi_head_attention."""
    q = draw(tensor("B", "H_kv*G", "N", "d"), "q")
    k = draw(tensor("B", "H_kv", "N_k", "d"), "k")
    v = draw(tensor("B", "H_kv", "N_k", "d_v"), "v")
    axes = draw.choose("axes of the mask", MASK_AXES)
    names = {"K": "N_k", "H": "H_kv*G"}
    masks = (
        [draw(mask(*[names.get(axis, axis) for axis in axes]), "mask")] if axes else []
    )
    play.call(name, q, k, v, *masks)


contract(
    "grouped_query_attention",
    attention_in_groups,
    sizes={"H_kv": (1, 3), "G": (1, 3)},
    dtypes=HALF,
    gradients=True,
)

contract(
    "attention_flops",
    calls(
        b=whole(1, 9),
        n=whole(1, 40),
        d_model=whole(1, 40),
        num_heads=whole(1, 9),
        d_head=whole(1, 9),
    ),
)

contract(
    "attention_matrix_bytes",
    calls(n=whole(1, 100_000), num_heads=whole(1, 64), bytes_per_element=choice(2, 4)),
)

contract("crossover_length", calls(d_model=whole(1, 20_000)))


def _explains(answer, right, arguments):
    """Any pair that gives the figure is right; None only where none does."""
    n, num_heads, claimed = arguments
    if answer is None or right is None:
        return answer is right
    if not (isinstance(answer, (list, tuple)) and len(answer) == 2):
        return False
    size_of_one, divisions = answer
    figure = (
        n * n * num_heads * size_of_one / (1024**divisions * 1000 ** (4 - divisions))
    )
    is_allowed = size_of_one in (1, 2, 4, 8) and divisions in range(5)
    return is_allowed and round(figure, 3) == claimed


def _is_rounded_either_way(n, num_heads, claimed):
    """Whether a figure lies half a thousandth from what is claimed: ties go up or down."""
    for size_of_one in (1, 2, 4, 8):
        for divisions in range(5):
            unit = 1024**divisions * 1000 ** (4 - divisions)
            figure = n * n * num_heads * size_of_one / unit
            if 0.00049 < abs(figure - claimed) < 0.00061:
                return True
    return False


def figures_of_memory(draw, play, name):
    """Half of the claims are figures that some unit gives."""
    n = draw.whole(1, 300_000)
    num_heads = draw.whole(1, 128)
    if draw.happens(50):
        divisions = draw.whole(0, 4)
        size_of_one = (1, 2, 4, 8)[draw.whole(0, 3)]
        units = 1024**divisions * 1000 ** (4 - divisions)
        claimed = round(n * n * num_heads * size_of_one / units, 3)
    else:
        claimed = draw.whole(0, 5000) / 1000
    play.call(name, n, num_heads, claimed)


contract(
    "explain_memory_figure",
    figures_of_memory,
    right_if=_explains,
    allowed_if=lambda n, num_heads, claimed: (
        claimed >= 1  # three decimals say enough
        and not _is_rounded_either_way(n, num_heads, claimed)
    ),
)
