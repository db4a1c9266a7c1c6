"""bpe_encode: inside each word the pair that was learned first, everywhere, until none is left."""

import torch

from autograder.suite import assert_close, call_twice, points, randint

LOW = [(108, 111), (256, 119), (32, 257)]  # lo, low, space low
VERSE = (
    "And makes us rather bear those ills we have\nThan fly to others that we know not of?\n'Tis "
    "2 be, or not 2 be.\n"
)


def _bytes(text):
    return torch.tensor([*text.encode()], dtype=torch.uint8)


def _assert_ids(actual, *expected):
    """The ids, whatever kind of whole number they are: one test asks for int64."""
    assert_close(actual, torch.tensor(expected), same_dtype=False)


@points(1)
def test_merges_are_applied_to_merges(student):
    """lo is 256, low is 257 and low with a space in front 258. Other merges make other tokens."""
    ids = student.bpe_encode(_bytes("low\nlower low lowloo"), LOW)
    _assert_ids(ids, 257, 10, 257, 101, 114, 258, 258, 256, 111)
    ids = student.bpe_encode(
        _bytes("low\nlower low"), LOW[:1]
    )  # the same words, other merges
    _assert_ids(ids, 256, 119, 10, 256, 119, 101, 114, 32, 256, 119)


@points(1.5)
def test_the_pair_that_was_learned_first_is_joined_first(student):
    """With b·c before a·b, "abc" is a·bc, whatever comes first from the left. And "abcd" is ab·cd,
    not a·bc·d.
    """
    _assert_ids(student.bpe_encode(_bytes("abc"), [(98, 99), (97, 98)]), 97, 256)
    _assert_ids(student.bpe_encode(_bytes("abc"), [(97, 98), (98, 99)]), 256, 99)
    _assert_ids(
        student.bpe_encode(_bytes("abcd"), [(97, 98), (99, 100), (98, 99)]), 256, 257
    )


@points(1)
def test_a_pair_is_joined_everywhere_from_left_to_right(student):
    """ "aaaaa" with a·a and 256·a is 256·257: first all a·a, then what is left at the end."""
    _assert_ids(student.bpe_encode(_bytes("aaaaa"), [(97, 97), (256, 97)]), 256, 257)
    _assert_ids(
        student.bpe_encode(_bytes("aabaa"), [(97, 97), (256, 97)]), 256, 98, 256
    )
    _assert_ids(student.bpe_encode(_bytes("xyzxy"), [(120, 121)]), 256, 122, 256)


@points(1)
def test_tokens_do_not_reach_across_words(student):
    """a·1 and a·space are pairs of the list, and in "a1" and "a a" they are parts of two words."""
    _assert_ids(
        student.bpe_encode(_bytes("a1 a a"), [(97, 49), (97, 32), (32, 97)]),
        97,
        49,
        258,
        258,
    )


@points(0.75)
def test_a_verse_is_cut_like_the_training_text(student, reference):
    """Three lines with sixty merges learned from them."""
    merges = reference.train_byte_bpe(_bytes(VERSE), 60)
    _assert_ids(
        student.bpe_encode(_bytes(VERSE), merges),
        *reference.bpe_encode(_bytes(VERSE), merges).tolist(),
    )


@points(1)
def test_any_bytes_come_back(student, reference):
    """All 256 bytes, and 400 at random, encoded by you and decoded by the answer key."""
    merges = [(195, 169), (0, 255), (255, 0), (65, 66)]
    for data in (
        torch.arange(256, dtype=torch.uint8).flip(0),
        randint(0, 256, (400,)).to(torch.uint8),
    ):
        ids = call_twice(student.bpe_encode, data, merges)
        assert isinstance(ids, torch.Tensor), (
            "bpe_encode should return a tensor of ids."
        )
        inside = ids.dim() == 1 and bool(((ids >= 0) & (ids < 260)).all())
        assert inside, "bpe_encode should return [M] ids in 0 … 259."
        assert_close(
            reference.bpe_decode(ids.long(), merges),
            data,
            what="what the tokens decode to,",
        )


@points(0.75)
def test_an_empty_text_has_no_tokens(student):
    """int64 [0], and for "a" without merges int64 [1]."""
    assert_close(student.bpe_encode(_bytes("a"), []), torch.tensor([97]))
    assert_close(student.bpe_encode(_bytes(""), LOW), torch.zeros(0, dtype=torch.int64))
