"""sink_attention: the first tokens and the newest, with positions inside the cache."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    points,
    randn,
)


def _draw(n, batch=2, heads=3, num_kv_heads=1, d=4, dtype=torch.float64):
    """q of the newest token, and k and v of n tokens."""
    q = 1.5 * randn(batch, heads, 1, d, dtype=dtype)
    return q, *(randn(batch, num_kv_heads, n, d, dtype=dtype) for _ in "kv")


def _whole(reference, q, k, v, theta=100.0):
    """Attention over all of these tokens, at 0, 1, 2, …"""
    places = torch.arange(k.shape[2])
    q = reference.rotary_positions(q, places[-1:], theta)
    k = reference.rotary_positions(k, places, theta)
    return reference.grouped_attention(q, k, v, reference.causal_mask(1, len(places)))


@points(1)
def test_a_short_text_stays_whole(student, reference):
    """Three sinks and a window of 4: texts of 1, 2, 5 and 7 tokens."""
    for n in (7, 5, 2, 1):
        q, k, v = _draw(n)
        answer = call_twice(student.sink_attention, q, k, v, 3, 4, 100.0)
        assert_close(answer, _whole(reference, q, k, v), what=f"a text of {n} tokens")


@points(1)
def test_what_lies_between_is_dropped(student):
    """Twelve tokens, two sinks, a window of 3: tokens 2 to 8 may be anything, and each of the five
    others matters.
    """
    q, k, v = _draw(12)
    answer = student.sink_attention(q, k, v, 2, 3, 100.0)
    other_k, other_v = k.clone(), v.clone()
    other_k[:, :, 2:9], other_v[:, :, 2:9] = 50.0, float("nan")
    again = student.sink_attention(q, other_k, other_v, 2, 3, 100.0)
    assert_close(again, answer, what="the output with other tokens in between")
    for kept in (0, 1, 9, 10, 11):
        changed = v.clone()
        changed[:, :, kept] += 100
        moved = student.sink_attention(q, k, changed, 2, 3, 100.0) - answer
        assert moved.abs().max() > 1e-6, f"token {kept} does not matter"


@points(1.5)
def test_positions_are_counted_inside_the_cache(student, reference):
    """Of twelve tokens five are kept: the output is that of a text of these five, for the sinks and for
    the window.
    """
    q, k, v = _draw(12)
    kept = [0, 1, 9, 10, 11]
    expected = _whole(reference, q, k[:, :, kept], v[:, :, kept])
    assert_close(student.sink_attention(q, k, v, 2, 3, 100.0), expected)
    q, k, v = _draw(40, batch=1, num_kv_heads=3)
    kept = [0, *range(33, 40)]
    expected = _whole(reference, q, k[:, :, kept], v[:, :, kept], theta=10.0)
    assert_close(student.sink_attention(q, k, v, 1, 7, 10.0), expected)


@points(0.5)
def test_no_sink_and_the_shortest_window(student, reference):
    """No sink is a plain window; a window of 1 with no sink gives the newest value. One token more
    than fits drops one.
    """
    q, k, v = _draw(9)
    assert_close(
        student.sink_attention(q, k, v, 0, 4, 100.0),
        _whole(reference, q, k[:, :, 5:], v[:, :, 5:]),
        what="a window of 4 without sinks",
    )
    answer = student.sink_attention(q, k, v, 0, 1, 100.0)
    assert_close(answer, v[:, :, -1:].expand(2, 3, 1, 4), what="a window of 1")
    kept = [0, 1, 2, 3, *range(5, 9)]
    assert_close(
        student.sink_attention(q, k, v, 4, 4, 100.0),
        _whole(reference, q, k[:, :, kept], v[:, :, kept]),
        what="one token more than fits",
    )


@points(0.5)
def test_scores_of_any_size_and_layout(student, reference):
    """Scores of several hundreds, in float64 and float32; one key only, with a score of 1000 for one
    head and of -1000 for another; heads and tokens that are no contiguous tensors.
    """
    kept = [0, 1, 6, 7, 8]
    for dtype, tolerance in ((torch.float64, 2e-6), (torch.float32, 2e-2)):
        q, k, v = _draw(9, dtype=dtype)
        q = 300 * q
        expected = _whole(reference, q, k[:, :, kept], v[:, :, kept])
        answer = student.sink_attention(q, k, v, 2, 3, 100.0)
        assert_close(answer, expected, atol=tolerance, rtol=tolerance)
        signs = torch.tensor([1.0, -1.0, 1.0], dtype=dtype).view(1, 3, 1, 1)
        q, k = signs * 1000 * (1 + q.abs() / 300), torch.ones_like(k)
        answer = student.sink_attention(q, k, v, 0, 1, 100.0)
        assert_close(answer, v[:, :, -1:].expand(2, 3, 1, 4), atol=1e-5)
    q, k, v = (randn(2, n, h, 4).transpose(1, 2) for n, h in ((1, 6), (9, 2), (9, 2)))
    expected = _whole(reference, q, k[:, :, kept], v[:, :, kept])
    assert_close(student.sink_attention(q, k, v, 2, 3, 100.0), expected)


@points(0.5)
def test_what_cannot_be_kept_is_refused(student, reference):
    """-1 sinks, a window of 0: ValueError with both. Another argument in turn gives another
    answer.
    """
    q, k, v = _draw(9)
    assert_refused(student.sink_attention, q, k, v, -1, 4, 100.0, sizes=(-1, 4))
    assert_refused(student.sink_attention, q, k, v, 2, 0, 100.0, sizes=(2, 0))
    assert_close_in_turn(
        student.sink_attention,
        reference.sink_attention,
        q,
        k,
        v,
        2,
        3,
        100.0,
        others=(None, None, None, 1, 4, 50.0),
    )
