"""misleading_token: a distribution in which the likeliest token does not begin with the likeliest
byte.
"""

import numpy as np
import torch

from autograder.suite import assert_refused, points, uses

pytestmark = [uses("bpe_decode")]

LOW = [(108, 111), (256, 119), (32, 257)]  # lo, low, space low
MERGES_OF_MERGES = [(97, 97), (256, 256), (257, 98)], [(98, 97), (97, 98), (256, 257)]
VOCABULARIES = (
    [(255, 0)],
    [(0, 1)],
    [(1, 0)],
    *MERGES_OF_MERGES,
    *([(byte, 33)] for byte in b" 019AZabceotxyz~"),
)


def _distribution(student, merges):
    """The answer, a tensor or an array, in float64: one test asks for that, the others for what is
    in it.
    """
    p = _as_tensor(student.misleading_token(merges))
    shaped = (
        isinstance(p, torch.Tensor)
        and p.is_floating_point()
        and list(p.shape) == [256 + len(merges)]
    )
    assert shaped, (
        f"misleading_token should return a float64 tensor [{256 + len(merges)}]."
    )
    p = p.double()
    assert bool((p >= 0).all()), "a probability is negative, or not a number."
    assert abs(float(p.sum()) - 1) < 2e-6, (
        f"the probabilities add up to {float(p.sum()):.3g}."
    )
    return p


def _as_tensor(p):
    return torch.from_numpy(p) if isinstance(p, np.ndarray) else p


def _bytes(p, merges):
    """The distribution of the next byte, and the first byte of the likeliest token."""
    first = [*range(256)]
    for left, _ in merges:
        first.append(first[left])
    next_byte = torch.zeros(256, dtype=torch.float64).index_add(
        0, torch.tensor(first), p
    )
    return next_byte, first[int(p.argmax())]


@points(1.5)
def test_one_token_is_clearly_the_likeliest(student):
    """A distribution whose largest number is at least 0.05 above the next."""
    first, second = _distribution(student, LOW).topk(2).values.tolist()
    assert first - second >= 0.05 - 1e-9, (
        f"the two likeliest tokens are {first - second:.3g} apart."
    )


@points(1.75)
def test_another_byte_is_clearly_likelier(student):
    """Over all tokens that begin with it, some byte has at least 0.05 more than the likeliest
    token's first byte.
    """
    p = _distribution(student, LOW)
    first, second = p.topk(2).values.tolist()
    assert first - second >= 0.05 - 1e-9, (
        f"the two likeliest tokens are {first - second:.3g} apart."
    )
    next_byte, its_byte = _bytes(p, LOW)
    lead = float(next_byte.max() - next_byte[its_byte])
    assert lead >= 0.05 - 1e-9, (
        f"no byte is clearly likelier than the first byte of the likeliest token ({lead:.3g})."
    )


@points(2)
def test_it_works_for_every_vocabulary(student):
    """One merge of bytes 255 and 0, 0 and 1, or 1 and 0; merges of merges; merges that begin with
    different bytes, and one merge that begins with any of those that one would think of.
    """
    for merges in VOCABULARIES:
        p = _distribution(student, merges)
        first, second = p.topk(2).values.tolist()
        next_byte, its_byte = _bytes(p, merges)
        lead = float(next_byte.max() - next_byte[its_byte])
        assert min(first - second, lead) >= 0.05 - 1e-9, (
            f"with the merges {merges}, the likeliest token leads by {first - second:.3g} and the "
            f"likeliest byte by {lead:.3g}; both should lead by 0.05."
        )


@points(0.75)
def test_without_merges_there_is_none(student):
    """Every token is a byte: the likeliest token is the likeliest byte. With merges the answer is
    in float64.
    """
    _distribution(student, LOW)
    p = _as_tensor(student.misleading_token(LOW))
    assert p.dtype == torch.float64, (
        f"misleading_token should return float64, and returns {p.dtype}."
    )
    assert_refused(student.misleading_token, [], sizes=(256,))
