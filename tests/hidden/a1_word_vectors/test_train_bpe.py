"""train_bpe: the most frequent pair, again and again.

Expected merges are worked out by hand, one step a line, in the comments.
"""

from autograder.suite import assert_equal, assert_refused, call_twice, points


@points(2)
def test_the_most_frequent_pair_is_joined_first(student):
    """Without ties: count all neighbours, join the most frequent pair, count again."""
    # b·a 9, a·n 7, n·e 2          -> ba
    # ba·n 7, n·e 2                -> ban   (b·a is gone, a·n too)
    # ban·e 2                      -> bane
    words = {"ba": 2, "ban": 5, "bane": 2}
    assert_equal(student.train_bpe(words, 3), [("b", "a"), ("ba", "n"), ("ban", "e")])
    assert_equal(student.train_bpe(words, 1), [("b", "a")])


@points(1)
def test_a_word_counts_as_often_as_it_occurs(student):
    """One frequent word outweighs several rare ones."""
    # x·y 7 against p·q 3 (three different words)
    assert_equal(
        student.train_bpe({"pq": 1, "pqr": 1, "spq": 1, "xy": 7}, 1), [("x", "y")]
    )


@points(1)
def test_counts_are_made_anew_after_every_join(student):
    """The joined token has new neighbours, and the old pairs around it are gone."""
    # a·b 5, b·c 4, d·e 3          -> ab;  then ab·c 3 (word abc), b·c 1 (word bc), d·e 3: tie ->
    # ab·c
    words = {"abc": 3, "ab": 2, "bc": 1, "de": 3}
    assert_equal(student.train_bpe(words, 3), [("a", "b"), ("ab", "c"), ("d", "e")])


@points(1)
def test_ties_go_to_the_smaller_pair(student):
    """Equal counts: the smaller tuple wins, whatever the order of the words in the dict."""
    expected = [("a", "z"), ("m", "b"), ("m", "c"), ("y", "a")]
    assert_equal(student.train_bpe({"ya": 2, "mc": 2, "az": 2, "mb": 2}, 4), expected)
    assert_equal(student.train_bpe({"mb": 2, "az": 2, "ya": 2, "mc": 2}, 4), expected)


@points(1)
def test_pairs_are_compared_as_tuples(student):
    """("a", "z") is smaller than ("ab", "a"), although the glued text "az" is larger than "aba".
    Order the pairs, not the text.
    """
    # a·b 8 (4 + 4)                -> ab
    # a·z 4, ab·a 4, ab·c 4: a tie -> a·z first
    words = {"aba": 4, "abc": 4, "az": 4}
    assert_equal(student.train_bpe(words, 3), [("a", "b"), ("a", "z"), ("ab", "a")])


@points(0.5)
def test_every_position_of_a_word_counts(student):
    """A pair that stands twice in a word counts twice, even where it overlaps itself: zzz has z·z
    two times.
    """
    # a·n stands twice in "anan" (6), n·a once (3), x·y 5
    assert_equal(student.train_bpe({"anan": 3, "xy": 5}, 1), [("a", "n")])
    # z·z 2·2 = 4 against a·b 3
    assert_equal(student.train_bpe({"zzz": 2, "ab": 3}, 1), [("z", "z")])


@points(1)
def test_a_pair_is_joined_wherever_it_occurs(student):
    """All occurrences in a word are joined, from left to right: zzz becomes zz·z."""
    # a·n 6, n·a 3                 -> an·an;  then an·an 3, x·y 2
    assert_equal(student.train_bpe({"anan": 3, "xy": 2}, 2), [("a", "n"), ("an", "an")])
    # z·z 4 · 2 = 8                -> zz·zz·z;  then zz·z 2 and zz·zz 2: the smaller tuple is zz·z
    # -> zz·zzz
    assert_equal(
        student.train_bpe({"zzzzz": 2}, 3), [("z", "z"), ("zz", "z"), ("zz", "zzz")]
    )


@points(1)
def test_tokens_are_joined_not_text(student):
    """A token that only ends like the left one of the pair must not be joined: xa·b is not the pair
    a·b.
    """
    # x·a 7, a·b 6                 -> xa;  then a·b 4 (word ab), xa·b 2 -> ab;  then xa·b 2
    words = {"xa": 5, "xab": 2, "ab": 4}
    assert_equal(student.train_bpe(words, 3), [("x", "a"), ("a", "b"), ("xa", "b")])


@points(0.5)
def test_it_goes_on_until_no_pair_is_left(student):
    """A pair seen once is joined too; when every word is one token the list ends, however many were
    asked for.
    """
    assert_equal(student.train_bpe({"cat": 1}, 2), [("a", "t"), ("c", "at")])
    assert_equal(student.train_bpe({"cat": 1, "i": 5}, 50), [("a", "t"), ("c", "at")])
    assert_equal(student.train_bpe({"i": 3, "a": 2}, 5), [])
    assert_equal(student.train_bpe({"no": 3}, 0), [])


@points(0.5)
def test_the_counts_are_left_alone(student):
    """The caller's dict must be the same afterwards."""
    words = {"tea": 3, "eat": 2}
    assert_equal(call_twice(student.train_bpe, words, 2), [("e", "a"), ("t", "ea")])
    call_twice(student.train_bpe, {"tea": 3, "at": 2}, 2)


@points(0.5)
def test_a_negative_number_of_merges_is_refused(student):
    """−1 merges cannot be made: ValueError."""
    assert_refused(student.train_bpe, {"tea": 3}, -1, sizes=(-1,))
