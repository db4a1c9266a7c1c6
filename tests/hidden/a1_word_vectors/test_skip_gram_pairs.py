"""skip_gram_pairs: every center with every context in its window, in its own sentence."""

import torch

from autograder.suite import assert_equal, assert_refused, call_twice, points, tensor


def pairs_of(answer):
    """(center, context) of each pair, in the order of the answer."""
    assert isinstance(answer, (tuple, list)), (
        "return two tensors, (center_ids, context_ids)"
    )
    assert len(answer) == 2, "return two tensors, (center_ids, context_ids)"
    for name, ids in zip(("center_ids", "context_ids"), answer, strict=True):
        assert isinstance(ids, torch.Tensor), f"{name} should be a tensor"
        assert ids.dim() == 1, (
            f"{name} has shape {list(ids.shape)}; it should have one axis"
        )
        assert ids.dtype == torch.int64, f"{name} has dtype {ids.dtype}; ids are int64"
    centers, contexts = (ids.tolist() for ids in answer)
    assert len(centers) == len(contexts), (
        f"there are {len(centers)} centers for {len(contexts)} contexts"
    )
    return list(zip(centers, contexts, strict=True))


def contexts_of(student, sentence, window, center):
    """What stands around one word, in any order."""
    pairs = pairs_of(student.skip_gram_pairs([sentence], window))
    return sorted(context for word, context in pairs if word == center)


@points(1)
def test_the_window_reaches_as_far_to_both_sides(student):
    """Around the word in the middle of eleven, with windows of 4, 2 and 1 places."""
    sentence = tensor([20, 8, 15, 3, 11, 7, 30, 2, 19, 6, 1])  # 7 is in the middle
    # the widest first: one place too few behind the center is not the same as none
    expected = [2, 3, 6, 8, 11, 15, 19, 30]
    assert_equal(
        contexts_of(student, sentence, 4, 7),
        expected,
        what="the contexts of the middle word, window 4,",
    )
    assert_equal(
        contexts_of(student, sentence, 2, 7),
        [2, 3, 11, 30],
        what="the contexts of the middle word, window 2,",
    )
    assert_equal(
        contexts_of(student, sentence, 1, 7),
        [11, 30],
        what="the contexts of the middle word, window 1,",
    )


@points(1)
def test_windows_are_cut_off_at_the_ends(student):
    """The first words have fewer before them, the last fewer behind them; a window may be longer
    than the sentence.
    """
    sentence = tensor([4, 9, 5, 2, 8])
    assert_equal(
        contexts_of(student, sentence, 2, 4),
        [5, 9],
        what="the contexts of the first of five words, window 2,",
    )
    assert_equal(
        contexts_of(student, sentence, 2, 9),
        [2, 4, 5],
        what="the contexts of the second word, window 2,",
    )
    assert_equal(
        contexts_of(student, sentence, 2, 8),
        [2, 5],
        what="the contexts of the last word, window 2,",
    )
    assert_equal(
        contexts_of(student, sentence, 3, 9),
        [2, 4, 5, 8],
        what="the contexts of the second word, window 3,",
    )
    assert_equal(
        contexts_of(student, sentence, 9, 2),
        [4, 5, 8, 9],
        what="the contexts of a word, window 9,",
    )


@points(1)
def test_no_window_reaches_into_another_sentence(student):
    """Three sentences: words that stand on both sides of a full stop are no neighbours."""
    sentences = [tensor([1, 2, 3]), tensor([4]), tensor([5, 6])]
    pairs = pairs_of(student.skip_gram_pairs(sentences, 2))
    first = [pair for pair in pairs if min(pair) <= 3]
    assert all(max(pair) <= 3 for pair in first), (
        "a word of the first sentence is paired with one of another sentence."
    )
    rest = [pair for pair in pairs if min(pair) > 3]
    assert all(4 not in pair for pair in rest), (
        "the only word of its sentence has no neighbour."
    )
    assert len(first) >= 1, (
        "the words of the first sentence are each other's neighbours."
    )
    assert len(rest) >= 1, "the words of the last sentence are each other's neighbours."


@points(1)
def test_a_word_that_occurs_twice_counts_twice(student):
    """A word may be its own neighbour, at another place; and a pair is there as often as it
    occurs.
    """
    assert_equal(
        contexts_of(student, tensor([6, 6, 6]), 1, 6),
        [6, 6, 6, 6],
        what="the contexts of 6 in 6 6 6",
    )
    assert_equal(
        contexts_of(student, tensor([3, 5, 3]), 1, 5),
        [3, 3],
        what="the contexts of 5 in 3 5 3",
    )
    assert_equal(
        contexts_of(student, tensor([3, 5, 3]), 2, 3),
        [3, 3, 5, 5],
        what="the contexts of 3 in 3 5 3",
    )


@points(0.75)
def test_pairs_stand_in_the_order_of_the_text(student, reference):
    """By sentence, then by the place of the center, then by that of the context. The sentences stay
    as they are.
    """
    sentences = [tensor([7, 3, 9, 3]), tensor([2, 8])]
    expected = [
        (7, 3),
        (7, 9),
        (3, 7),
        (3, 9),
        (3, 3),
        (9, 7),
        (9, 3),
        (9, 3),
        (3, 3),
        (3, 9),
        (2, 8),
        (8, 2),
    ]
    assert_equal(pairs_of(call_twice(student.skip_gram_pairs, sentences, 2)), expected)


@points(0.75)
def test_a_text_may_have_no_pairs(student):
    """No sentence, an empty one, sentences of one word: two int64 tensors without an entry."""
    empty = torch.zeros(0, dtype=torch.int64)
    for sentences in ([], [empty], [tensor([4]), empty, tensor([4])]):
        assert_equal(pairs_of(student.skip_gram_pairs(sentences, 2)), [])
    assert_equal(
        pairs_of(student.skip_gram_pairs([empty, tensor([1, 0])], 1)), [(1, 0), (0, 1)]
    )


@points(0.5)
def test_a_window_that_reaches_nothing_is_refused(student):
    """Windows of 0 or fewer places: ValueError with the number."""
    assert_refused(student.skip_gram_pairs, [tensor([1, 2])], 0, sizes=(0,))
    assert_refused(student.skip_gram_pairs, [tensor([1, 2])], -3, sizes=(3,))
