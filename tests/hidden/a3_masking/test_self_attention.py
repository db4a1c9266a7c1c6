"""self_attention: three projections of the same tokens, everybody sees everybody."""

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    forbid,
    points,
    randn,
    randperm,
)

from .ready_made import ATTENTION, WITH_PROJECTIONS

pytestmark = forbid(*ATTENTION, *WITH_PROJECTIONS)


def inputs(*batch, n=5, d=6, d_k=3, d_v=7, grad=False):
    return (
        randn(*batch, n, d, grad=grad),
        *(randn(d, width, grad=grad) for width in (d_k, d_k, d_v)),
    )


@points(2)
def test_queries_keys_and_values_are_three_views_of_x(student, reference):
    """d_k = 3, d_v = 7 and D = 6 all differ: which of them is the length of the vectors in the dot
    product?
    """
    arguments = inputs(2, n=5)
    assert_close_in_turn(student.self_attention, reference.self_attention, *arguments)


@points(1)
def test_square_weights_are_not_transposed(student, reference):
    """Here N, D, d_k and d_v are all 5, and nothing crashes: x @ w, and row i of the scores belongs
    to query i.
    """
    arguments = inputs(3, n=5, d=5, d_k=5, d_v=5)
    assert_close(
        student.self_attention(*arguments), reference.self_attention(*arguments)
    )


@points(1)
def test_shuffled_tokens_give_shuffled_outputs(student, reference):
    """Nothing in the layer knows where a token stands, so a shuffle goes straight through it."""
    x, *weights = inputs(n=7)
    perm = randperm(7)
    assert_close(
        student.self_attention(x[perm], *weights),
        reference.self_attention(x, *weights)[perm],
    )


@points(0.5)
def test_the_first_token_sees_the_last(student, reference):
    """There is no mask in this layer: row 0 listens to the whole sequence."""
    arguments = inputs(n=6)
    assert_close(
        student.self_attention(*arguments)[0],
        reference.self_attention(*arguments)[0],
        what="row 0",
    )


@points(1)
def test_gradients_reach_x_and_all_three_weights(student, reference):
    """Use the weights that you are given, undetached, each in its own role."""
    assert_same_gradients(
        student.self_attention, reference.self_attention, *inputs(2, n=5, grad=True)
    )


@points(1)
def test_half_precision_survives_large_scores(student, reference):
    """float16 ends at 65504. A dot product gets there before it is scaled, so scores are made in
    float32.
    """
    x, w_q, w_k, w_v = (value.half() for value in inputs(n=5, d_k=7, d_v=3))
    x, w_q, w_k = 4 * x, 64 * w_q, 64 * w_k
    expected = reference.self_attention(x, w_q, w_k, w_v)
    assert_close(
        student.self_attention(x, w_q, w_k, w_v), expected, atol=4e-2, rtol=4e-2
    )


@points(0.5)
def test_one_token_any_batch_any_strides(student, reference):
    """A sequence of one token, two batch dimensions, a transposed input: the same answer twice,
    inputs untouched.
    """
    x, *weights = inputs(1, n=1)
    assert_close(student.self_attention(x, *weights), x @ weights[2])
    x, *weights = inputs(3, 2, n=5)
    strided = x.transpose(-1, -2).contiguous().transpose(-1, -2)
    assert_close(
        call_twice(student.self_attention, strided, *weights),
        reference.self_attention(x, *weights),
    )


@points(1)
def test_sizes_that_cannot_match_are_refused(student):
    """A weight has as many rows as x has features; queries and keys are compared, so they are
    equally wide.
    """
    x, w_q, w_k, w_v = inputs(n=5)
    assert_refused(student.self_attention, x, randn(11, 3), w_k, w_v, sizes=(6, 11))
    assert_refused(student.self_attention, x, randn(4, 3), w_k, w_v, sizes=(6, 4))
    assert_refused(student.self_attention, x, w_q, w_k, randn(11, 7), sizes=(6, 11))
    assert_refused(student.self_attention, x, w_q, randn(6, 13), w_v, sizes=(3, 13))
    assert_refused(student.self_attention, x, w_q, randn(6, 2), w_v, sizes=(3, 2))
