"""similarity_by_layer: two words compared in the table, and in the stream after each block."""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    call_twice,
    ones,
    points,
    tensor,
)

from .models import shaken, small_config, with_heads, with_large_scores


def _model(reference, layers=1):
    settings = small_config(
        vocab_size=9, num_layers=layers, d_ff=11, context_length=8, tied=True
    )
    params = reference.random_lm(settings)
    return shaken(reference, params, 0.4), settings


def _assert_depths(answer, number):
    assert isinstance(answer, torch.Tensor), "The answer should be a tensor."
    assert list(answer.shape) == [number], (
        f"{number - 1} blocks have {number} depths; the shape is {list(answer.shape)}."
    )


@points(1.5)
def test_two_words_of_two_texts_at_every_depth(student, reference):
    """Two blocks, texts of five and three words, words at other places: the table first, then the
    blocks.
    """
    params, settings = _model(reference, layers=2)
    first, second = tensor([3, 1, 4, 1, 5]), tensor([2, 7, 8])
    expected = reference.similarity_by_layer(first, 3, second, 2, params, settings)
    assert_close(
        student.similarity_by_layer(first, 3, second, 2, params, settings), expected
    )
    expected = reference.similarity_by_layer(first, 4, second, 0, params, settings)
    assert_close(
        student.similarity_by_layer(first, 4, second, 0, params, settings), expected
    )
    for arguments in (
        (8 - first, 4, second, 0, params, settings),
        (first, 2, second, 0, params, settings),
        (first, 4, second, 0, params, with_heads(settings, 5)),
        (first, 4, second, 0, with_large_scores(params), settings),
    ):
        expected = reference.similarity_by_layer(*arguments)
        assert_close(student.similarity_by_layer(*arguments), expected)


@points(0.5)
def test_the_table_knows_no_places(student, reference):
    """Entry 0 is about rows of the table: 1 for one word at two places, the cosine of two rows for
    two words.
    """
    params, settings = _model(reference)
    first, second = tensor([3, 1, 4, 1, 5]), tensor([2, 1, 8])
    answer = student.similarity_by_layer(first, 3, second, 1, params, settings)
    _assert_depths(answer, 2)
    assert_close(answer[0], tensor(1.0), what="entry 0 for one and the same word")
    u, v = params["embed"][5], params["embed"][8]
    answer = student.similarity_by_layer(first, 4, second, 2, params, settings)
    assert_close(answer[0], (u @ v) / u.norm() / v.norm(), what="entry 0 for two words")


@points(1)
def test_a_causal_model_has_not_read_what_comes_later(student, reference):
    """The same words up to the place, others behind it, one text longer: 1 at every depth. Other
    words in front of it: not 1 any more after the first block.
    """
    params, settings = _model(reference)
    first, second = tensor([3, 1, 4, 1, 5, 0, 2]), tensor([3, 1, 4, 8])
    assert_close(
        student.similarity_by_layer(first, 2, second, 2, params, settings), ones(2)
    )
    other = student.similarity_by_layer(
        first, 2, tensor([5, 7, 4, 8]), 2, params, settings
    )
    _assert_depths(other, 2)
    assert bool((other[1:] < 0.9999).all()), (
        "Other words stand before the place, and a block does not see them."
    )


@points(0.5)
def test_one_word_twice_in_one_text(student, reference):
    """Two places of the same text: a word and its repetition, and a place with itself."""
    params, settings = _model(reference)
    text = tensor([[6, 0], [1, 0], [4, 0], [1, 0], [1, 0]])[:, 0]  # not contiguous
    expected = reference.similarity_by_layer(text, 1, text, 4, params, settings)
    assert_close(
        student.similarity_by_layer(text, 1, text, 4, params, settings), expected
    )
    assert_close(
        student.similarity_by_layer(text, 3, text, 3, params, settings), ones(2)
    )


@points(0.5)
def test_no_block_and_no_length(student, reference):
    """Without blocks only the table is compared, [1]. The cosine does not know how long vectors
    are, and is 0 with a vector of zeros.
    """
    params, settings = _model(reference, layers=0)
    params["embed"] = params["embed"] * tensor(
        [1e-3, 1.0, 1e3, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    ).unsqueeze(1)
    u, v = params["embed"][0], params["embed"][2]
    text = tensor([0, 2, 3])
    expected = ((u @ v) / u.norm() / v.norm()).unsqueeze(0)
    assert_close(
        call_twice(student.similarity_by_layer, text, 0, text, 1, params, settings),
        expected,
    )
    assert_close(
        student.similarity_by_layer(text, 0, text, 2, params, settings),
        tensor([0.0]),
        what="with zeros",
    )


@points(0.5)
def test_a_model_in_float32_answers_in_float32(student, reference):
    """And with the same numbers, to its precision. Texts as long as the context, and of one
    word.
    """
    params, settings = _model(reference)
    params = reference.with_tensors(
        params, [t.float() for t in reference.list_tensors(params)]
    )
    arguments = (tensor([3, 1, 4, 1, 5, 0, 2, 6]), 7, tensor([8]), 0, params, settings)
    expected = reference.similarity_by_layer(*arguments)
    assert_close(student.similarity_by_layer(*arguments), expected, atol=1e-4)


@points(0.5)
def test_places_and_texts_that_do_not_fit_are_refused(student, reference):
    """Place 3 of three words, place −1; nine words for a context of eight; id 9 of nine: in either
    text.
    """
    params, settings = _model(reference, layers=0)
    good, long, strange = (
        tensor([0, 1, 8]),
        torch.zeros(9, dtype=torch.int64),
        tensor([0, 9]),
    )
    for bad, place, sizes in (
        (good, 3, (3,)),
        (good, -1, (1, 3)),
        (long, 0, (9, 8)),
        (strange, 0, (9,)),
    ):
        assert_refused(
            student.similarity_by_layer,
            bad,
            place,
            good,
            0,
            params,
            settings,
            sizes=sizes,
        )
        assert_refused(
            student.similarity_by_layer,
            good,
            0,
            bad,
            place,
            params,
            settings,
            sizes=sizes,
        )
