"""decoder: one model, in which each switch changes what it names and nothing else."""

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    assert_same_gradients,
    call_twice,
    points,
)

from .setups import SETUP, halved, in_single_precision, shaken, sharpened, tokens


def _compare(student, reference, change, n=5):
    setup = SETUP | change
    params = shaken(reference, setup)
    ids = tokens(2, n)
    expected = reference.decoder(ids, params, setup)
    assert_close(call_twice(student.decoder, ids, params, setup), expected)


@points(1.5)
def test_the_base_is_gpt2s_block(student, reference):
    """Learned positions, pre-norm, GELU, a tied head; texts of one token, of five, and as long as
    the table of positions; other texts and other parameters.
    """
    params = shaken(reference, SETUP)
    for rows, n in ((1, 1), (3, 6)):
        ids = tokens(n, rows).T
        expected = reference.decoder(ids, params, SETUP)
        assert_close(student.decoder(ids, params, SETUP), expected)
    assert_close_in_turn(
        student.decoder,
        reference.decoder,
        tokens(2, 5),
        params,
        SETUP,
        others=(tokens(2, 5),),
    )


@points(0.5)
def test_scores_may_be_in_the_hundred_thousands(student, reference):
    """Of both signs, in float64 and in float32, whose logits are in float32 too."""
    params = shaken(reference, SETUP)
    ids = tokens(2, 6)
    large = sharpened(params)
    assert_close(
        student.decoder(ids, large, SETUP), reference.decoder(ids, large, SETUP)
    )
    single = in_single_precision(reference, large)
    logits = student.decoder(ids, single, SETUP)
    assert_close(logits, reference.decoder(ids, single, SETUP), atol=1e-2, rtol=1e-2)


@points(1.5)
def test_positions_are_those_of_the_setup(student, reference):
    """None, and rotary ones: on queries and keys."""
    _compare(student, reference, {"positions": "none"})
    _compare(student, reference, {"positions": "rotary"}, n=6)


@points(0.5)
def test_only_a_table_of_positions_has_an_end(student, reference):
    """Nine tokens with a context of six, in a model with rotary positions or with none."""
    _compare(student, reference, {"positions": "rotary"}, n=9)
    _compare(student, reference, {"positions": "none"}, n=9)


@points(1.5)
def test_post_norm_stands_after_the_addition(student, reference):
    """And no norm stands before the head."""
    _compare(student, reference, {"norm": "post"})


@points(1)
def test_rms_norm_stands_where_pre_norm_does(student, reference):
    """Both norms of a block and the last one are RMS norms."""
    _compare(student, reference, {"norm": "rms"})


@points(1.5)
def test_activations_are_those_of_the_setup(student, reference):
    """A ReLU, and a SwiGLU with its three matrices."""
    _compare(student, reference, {"activation": "relu"})
    _compare(student, reference, {"activation": "swiglu"})


@points(1)
def test_heads_of_keys_may_be_fewer(student, reference):
    """Three heads of queries read one head of keys; four read two."""
    _compare(student, reference, {"num_kv_heads": 1})
    _compare(student, reference, {"num_heads": 4, "num_kv_heads": 2})


@points(0.75)
def test_a_head_of_its_own_is_used(student, reference):
    """With tied = False the logits come from unembed."""
    _compare(student, reference, {"tied": False})


@points(1.25)
def test_drop_is_applied_where_something_enters_the_stream(student, reference):
    """A drop that halves: the embeddings with their positions, and what each sublayer adds, with
    pre-norm and with post-norm, which has rotary positions. Five calls in a model of two blocks.
    """
    for change in ({}, {"norm": "post", "positions": "rotary"}):
        setup = SETUP | change
        params = shaken(reference, setup)
        ids = tokens(2, 4)
        seen = []

        def drop(x, seen=seen):
            seen.append(list(x.shape))
            return halved(x)

        expected = reference.decoder(ids, params, setup, halved)
        assert_close(student.decoder(ids, params, setup, drop), expected)
        plain = reference.decoder(ids, params, setup)
        assert_close(student.decoder(ids, params, setup), plain)
        assert_equal(seen, [[2, 4, 12]] * 5, what="the shapes that drop is asked about")


@points(0.5)
def test_gradients_flow_to_every_parameter(student, reference):
    """Those of all tensors of a SwiGLU model with shared heads, and of a GELU model."""
    ids = tokens(2, 4)
    changes = ({"activation": "swiglu", "num_kv_heads": 1, "tied": False}, {})
    for setup in (SETUP | change for change in changes):
        params = shaken(reference, setup)
        leaves = [t.detach().requires_grad_() for t in reference.list_tensors(params)]
        weights = reference.with_tensors(params, leaves)
        assert_same_gradients(student.decoder, reference.decoder, ids, weights, setup)


@points(0.5)
def test_what_is_no_choice_is_refused(student, reference):
    """A misspelt setting, by its word, and seven tokens for six learned positions."""
    params = shaken(reference, SETUP)
    ids = tokens(1, 3)
    assert_close(
        student.decoder(ids, params, SETUP), reference.decoder(ids, params, SETUP)
    )
    for name, word in (
        ("norm", "layer"),
        ("positions", "sinusoidal"),
        ("activation", "silu"),
    ):
        assert_refused(student.decoder, ids, params, SETUP | {name: word}, naming=word)
    assert_refused(student.decoder, tokens(1, 7), params, SETUP, sizes=(7, 6))
