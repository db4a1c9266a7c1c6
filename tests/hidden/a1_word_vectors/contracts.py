"""What the docstrings of assignment 1 allow."""

import torch

from autograder.suite.contracts import (
    FLOATS,
    HALF,
    calls,
    computed,
    contract,
    counted_words,
    list_of,
    maybe,
    size,
    tensor,
    text,
    tokens,
    whole,
)

VECTORS = ("normal", "whole", "large", "small", "equal rows", "offset")
"""Vectors of words; vectors of 0 alone would say nothing about the others."""
SHORT = (*FLOATS, "tiny")
LETTERS = "abb.*é"
"""Few letters, so that pairs repeat; two of them mean something to regular expressions."""

contract(
    "one_hot",
    calls(ids=tokens("...", below="V"), vocab_size=size("V")),
    sizes={"V": (1, 9)},
)

contract(
    "cosine_similarity",
    calls(u=tensor("...", "d", values=SHORT), v=tensor("...", "d", values=SHORT)),
    dtypes=HALF,
    gradients=True,
)


def cosines_that_broadcast(draw, play, name):
    """Rows against one vector, one against rows, all pairs of rows."""
    shapes = [("A", "d"), ("d",), ("A", 1, "d"), ("B", "d"), (1, "d")]
    u = draw.choose("axes of u", shapes)
    v = draw.choose("axes of v", shapes)
    if "A" in u and "B" in v and 1 not in u:
        v = ("A", "d")
    if "A" in v and "B" in u and 1 not in v:
        u = ("A", "d")
    play.call(name, draw(tensor(*u), "u"), draw(tensor(*v), "v"))


contract("cosine_similarity", cosines_that_broadcast, dtypes=HALF)


def nearest_words(draw, play, name):
    """Words are left out by a list or a tuple; one may occur twice."""
    table = draw(tensor("V", "d", values=VECTORS), "table")
    query = draw(tensor("d", values=VECTORS), "query")
    words = draw.sizes["V"]
    exclude = [draw.whole(0, words - 1) for _ in range(draw.whole(0, words - 1))]
    k = draw.whole(1, words - len(set(exclude)))
    if not exclude:
        play.call(name, table, query, k)
    elif draw.choose("exclude", ("list", "tuple")) == "list":
        play.call(name, table, query, k, exclude)
    else:
        play.call(name, table, query, k, tuple(exclude))


def _has_angles(table, *others):
    """On a line every cosine is 1 or −1: which of equals comes first is free."""
    return table.shape[1] > 1


contract(
    "nearest",
    nearest_words,
    sizes={"V": (1, 9), "d": (2, 6)},
    equals="free",
    allowed_if=_has_angles,
)

contract(
    "analogy",
    calls(
        table=tensor("V", "d", values=VECTORS),
        a=whole(0, "V - 1"),
        b=whole(0, "V - 1"),
        c=whole(0, "V - 1"),
    ),
    sizes={"V": (2, 9), "d": (2, 6)},
    equals="free",
    allowed_if=_has_angles,
)


def _some_axis(draw):
    axes = draw.arguments["z"].ndim
    return draw.whole(-axes, axes - 1)


contract(
    "softmax",
    calls(
        z=tensor("...", "N", may_have=("-inf", "nan")), dim=maybe(computed(_some_axis))
    ),
    dtypes=HALF,
    gradients=True,
)

contract(
    "skip_gram_probabilities",
    calls(center=tensor("d"), context_table=tensor("V", "d")),
    gradients=True,
)

contract(
    "skip_gram_pairs",
    calls(sentences=list_of(tokens("N", below=9), forget=("N",)), window=whole(1, 6)),
    sizes={"N": (0, 7)},
)


def _scores_have_digits_left(center_ids, context_ids, center_table, context_table):
    """Whether the difference of two scores, which the loss is, keeps four digits in float32."""
    scores = center_table.float() @ context_table.float().T
    return bool(scores.numel() == 0 or scores.abs().max() < 1000)


contract(
    "skip_gram_loss",
    calls(
        center_ids=tokens("B", below="V"),
        context_ids=tokens("B", below="V"),
        center_table=tensor("V", "d"),
        context_table=tensor("V", "d"),
    ),
    dtypes=HALF,
    gradients=True,
    allowed_if=_scores_have_digits_left,
)

contract("train_bpe", calls(words=counted_words(LETTERS), num_merges=whole(0, 12)))


def _some_merges(draw):
    """Pairs of pieces that exist by then, each pair once."""
    pieces = list(dict.fromkeys(LETTERS))
    merges = []
    for _ in range(draw.whole(0, 8)):
        left, right = (pieces[draw.whole(0, len(pieces) - 1)] for _ in range(2))
        if (left, right) not in merges:
            merges.append((left, right))
            pieces.append(left + right)
    return merges


contract("encode_bpe", calls(word=text(LETTERS, 0, 12), merges=computed(_some_merges)))

contract(
    "embed",
    calls(table=tensor("V", "D"), ids=tokens("...", "N", below="V")),
    dtypes=HALF,
    gradients=True,
)


def _breaks_the_equivalence(answer, right, arguments):
    """Both vectors are what the docstring asks for; any such pair will do."""
    table, word = arguments
    if not (isinstance(answer, (list, tuple)) and len(answer) == 2):
        return False
    loud, quiet = answer
    row = table[word]
    if loud.shape != row.shape or quiet.shape != row.shape:
        return False
    products = table @ row
    is_loud = bool((loud @ row > products).all())
    is_apart = torch.cosine_similarity(loud, row, dim=0) <= 0.1 + 1e-9
    is_quiet = bool(quiet @ row > 0) and bool(
        (quiet @ row < products[products > 0]).all()
    )
    is_near = torch.cosine_similarity(quiet, row, dim=0) >= 0.999 - 1e-9
    return bool(is_loud and is_apart and is_quiet and is_near)


contract(
    "break_the_equivalence",
    calls(table=tensor("V", "d", values=VECTORS), word=whole(0, "V - 1")),
    sizes={"d": (2, 6), "V": (1, 8)},
    dtypes=("float64",),
    right_if=_breaks_the_equivalence,
)
