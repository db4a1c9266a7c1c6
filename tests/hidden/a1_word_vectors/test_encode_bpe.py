"""encode_bpe: a word is cut as training would have cut it."""

from autograder.suite import assert_equal, call_twice, points


@points(2)
def test_learned_pairs_are_joined(student):
    """Pairs build on pairs: e·a, then ea·t. A token comes about by its pairs alone: once o·n is joined, no n is left for n·e, and "one" is not a token."""
    merges = [("e", "a"), ("ea", "t"), ("i", "n"), ("in", "g"), ("eat", "ing")]
    assert_equal(student.encode_bpe("beating", merges), ["b", "eating"])
    assert_equal(student.encode_bpe("eats", merges), ["eat", "s"])
    assert_equal(student.encode_bpe("gin", merges), ["g", "in"])
    merges = [("o", "n"), ("n", "e"), ("o", "ne")]
    assert_equal(student.encode_bpe("one", merges), ["on", "e"])


@points(1)
def test_the_pair_learned_first_is_joined_first(student):
    """Where pairs overlap, the lower place in the list decides, not the position in the word and
    not the length.
    """
    merges = [("a", "b"), ("b", "c"), ("a", "bc")]
    # not abc, although it is a known token
    assert_equal(student.encode_bpe("abc", merges), ["ab", "c"])
    merges = [("c", "d"), ("a", "b"), ("b", "c"), ("bc", "e")]
    # not a·bce, although bce is a longer token
    assert_equal(student.encode_bpe("abce", merges), ["ab", "c", "e"])
    merges = [("b", "c"), ("a", "b"), ("c", "d"), ("ab", "cd")]
    # b·c has rank 0: a·b and c·d are gone
    assert_equal(student.encode_bpe("abcd", merges), ["a", "bc", "d"])


@points(1)
def test_a_pair_is_joined_wherever_it_occurs(student):
    """All occurrences are joined, from left to right: zzz is zz·z."""
    assert_equal(student.encode_bpe("nanan", [("a", "n")]), ["n", "an", "an"])
    assert_equal(student.encode_bpe("zzzzz", [("z", "z")]), ["zz", "zz", "z"])


@points(1)
def test_nothing_gets_lost(student):
    """Characters that no merge knows stay in the word as single tokens; the empty word has no
    tokens.
    """
    merges = [("e", "a"), ("ea", "t")]
    assert_equal(student.encode_bpe("ñeat é!", merges), ["ñ", "eat", " ", "é", "!"])
    assert_equal(student.encode_bpe("", merges), [])
    assert_equal(student.encode_bpe("tea", []), ["t", "e", "a"])


@points(1)
def test_tokens_are_joined_not_text(student):
    """A token that only ends like the left one of the pair is another token: xa·b is not the pair
    a·b. A full stop is a character like any other.
    """
    merges = [("x", "a"), ("a", "b")]
    assert_equal(student.encode_bpe("xab", merges), ["xa", "b"])
    assert_equal(student.encode_bpe("abxab", merges), ["ab", "xa", "b"])
    assert_equal(student.encode_bpe("xb.b", [(".", "b")]), ["x", "b", ".b"])


@points(1)
def test_it_starts_again_after_every_join(student):
    """A token can come about in two ways. After each join look at the whole list again, from its
    beginning.
    """
    merges = [
        ("a", "b"),
        ("ab", "c"),
        ("abc", "d"),
        ("b", "x"),
        ("b", "c"),
        ("a", "bc"),
    ]
    merges = [merges[4], merges[3], merges[2], merges[5]]  # b·c, b·x, abc·d, a·bc
    # b·c, then a·bc (rank 3), then abc·d (rank 2)
    assert_equal(student.encode_bpe("abcd", merges), ["abcd"])
    # a·b makes ab·c possible, of a lower rank than c·d, which was there before
    merges = [("ab", "c"), ("a", "b"), ("c", "d")]
    assert_equal(student.encode_bpe("abcd", merges), ["abc", "d"])


@points(0.5)
def test_the_merges_are_left_alone(student):
    """The caller's list of merges is used again for the next word."""
    merges = [("e", "a"), ("t", "ea")]
    assert_equal(call_twice(student.encode_bpe, "teapea", merges), ["tea", "p", "ea"])
