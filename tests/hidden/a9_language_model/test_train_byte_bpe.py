"""train_byte_bpe: the most frequent pair of ids inside words, again and again."""

from itertools import product

import torch

from autograder.suite import assert_equal, assert_refused, call_twice, points, randint

VERSE = (
    "To be, or not to be: that is the question:\nWhether 'tis nobler in the mind to suffer\nThe "
    "slings and arrows of "
    "outrageous fortune,\nOr to take arms against a sea of troubles,\nAnd by opposing end them? "
    "To die: to sleep;\n"
)


def _bytes(text):
    return torch.tensor([*text.encode()], dtype=torch.uint8)


@points(1)
def test_a_word_counts_as_often_as_it_occurs(student):
    """x·y is in one word that occurs five times, a·b in three words that occur once each: x·y is
    joined first.
    """
    text = _bytes("\n".join(["xy"] * 5 + ["abc", "abd", "abe"]))
    assert_equal(student.train_byte_bpe(text, 2), [(120, 121), (97, 98)])


@points(1)
def test_among_equals_the_smaller_pair_of_ids_wins(student):
    """Three pairs are equally frequent: the order is that of the ids, not that of the text."""
    assert_equal(
        student.train_byte_bpe(_bytes("zy\nbz\nby"), 3),
        [(98, 121), (98, 122), (122, 121)],
    )


@points(0.5)
def test_merges_are_made_of_merges(student):
    """One word, "abababab": a·b becomes 256, then 256·256 becomes 257, then 257·257."""
    assert_equal(
        student.train_byte_bpe(_bytes("abababab"), 3),
        [(97, 98), (256, 256), (257, 257)],
    )


@points(0.75)
def test_pairs_do_not_reach_across_words(student):
    """In "a1a1a1" every byte is a word; in "b a b a" the space goes with the letter behind it."""
    assert_equal(student.train_byte_bpe(_bytes("a1a1a1"), 4), [])
    assert_equal(student.train_byte_bpe(_bytes("b a b a b"), 1), [(32, 97)])


@points(0.5)
def test_every_position_counts(student):
    """In "aaa" stands a·a twice, and x·y stands in two words: equally often, and 97 is the smaller
    id. Joined from the left, each "aaab" has an a·b then, like "ab", and no a·256.
    """
    assert_equal(student.train_byte_bpe(_bytes("xy\naaa\nxy"), 1), [(97, 97)])
    assert_equal(
        student.train_byte_bpe(_bytes("aaab\naaab\nab"), 2), [(97, 97), (97, 98)]
    )


@points(0.75)
def test_pairs_are_counted_anew_after_every_join(student, reference):
    """Forty merges of five lines of verse. The first ones right and a later one wrong? Its pair has
    new neighbours.
    """
    assert_equal(
        student.train_byte_bpe(_bytes(VERSE), 40),
        reference.train_byte_bpe(_bytes(VERSE), 40),
    )


@points(0.5)
def test_it_ends_when_no_pair_is_left(student):
    """Two merges make "on" and " on" tokens; nine were asked for. And none where none is asked for,
    or in an empty text."""
    assert_equal(student.train_byte_bpe(_bytes("on on on"), 9), [(111, 110), (32, 256)])
    assert_equal(student.train_byte_bpe(_bytes("on on on"), 1), [(111, 110)])
    assert_equal(student.train_byte_bpe(_bytes("on on on"), 0), [])
    assert_equal(student.train_byte_bpe(_bytes(""), 3), [])


@points(0.5)
def test_any_bytes_are_a_text(student, reference):
    """Bytes at random, 0 and 255 among them: no text in any encoding."""
    data = randint(0, 4, (300,)) * 85
    data = data.to(torch.uint8)
    expected = reference.train_byte_bpe(data, 12)
    assert len(expected) == 12
    assert_equal(call_twice(student.train_byte_bpe, data, 12), expected)


@points(0.5)
def test_a_negative_number_of_merges_is_refused(student):
    """num_merges = -1: ValueError with the number in it."""
    assert_equal(student.train_byte_bpe(_bytes("on"), 3), [(111, 110)])
    assert_refused(student.train_byte_bpe, _bytes("on"), -1, sizes=(-1,))


def _with_idle_words(count):
    """Four words of two letters, 60 to 90 times, and others once each: none of their 49 pairs is
    frequent enough to be joined, and all of them stand in few words as well.
    """
    busy = ["ab"] * 60 + ["cd"] * 70 + ["ef"] * 80 + ["gh"] * 90
    idle = ["".join(letters) for letters in product("tuvwxyz", repeat=6)]
    return _bytes("\n".join(busy + [idle[n * 7919 % len(idle)] for n in range(count)]))


@points(1)
def test_a_merge_costs_what_the_words_with_its_pair_cost(student, reference):
    """Twenty or three hundred words that no merge changes: the third and the fourth merge run as
    many lines of Python.
    """
    later_lines = []
    for count in (20, 300):
        text = _with_idle_words(count)
        merges, lines = student.counted_lines("train_byte_bpe", text, 4)
        assert_equal(merges, reference.train_byte_bpe(text, 4))
        _, first_lines = student.counted_lines("train_byte_bpe", text, 2)
        later_lines.append(lines - first_lines)
    few, many = later_lines
    assert many < 2 * few, (
        f"Merges 3 and 4 run {few} lines of your Python where 20 other words stand in the text, and "
        f"{many} where 300 do. A merge changes the words of its pair: count and ask no others."
    )
