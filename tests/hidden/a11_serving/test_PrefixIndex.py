"""PrefixIndex: full blocks, found again by the tokens that led to them.

Blocks hold three tokens, unless a test is about something else.
"""

from autograder.suite import assert_equal, points, uses

pytestmark = uses("BlockPool")

TEXT = [5, 5, 5, 1, 2, 3, 8, 8, 8, 4]
"""Three full blocks and a token."""


def _setting(student, block_size=3, taken=0, num_blocks=12):
    """(pool, index); the first blocks of the pool are taken, so that numbers tell nothing."""
    pool = student.BlockPool(num_blocks)
    pool.allocate(taken)
    return pool, student.PrefixIndex(pool, block_size)


def _holders(pool, blocks):
    return [pool.holders(block) for block in blocks]


@points(1.5)
def test_the_longest_known_beginning_is_matched(student):
    """A text of three full blocks is known. Texts that share all of them, two, one, or none; and one
    with a block in the middle that is not known.
    """
    pool, index = _setting(student, taken=2)
    index.insert(TEXT, pool.allocate(4))
    for tokens, expected in (
        ([*TEXT, 7], [2, 3, 4]),
        ([*TEXT[:9], 9, 9, 9, 9], [2, 3, 4]),
        ([*TEXT[:8], 9, 4], [2, 3]),
        ([*TEXT[:5], 9, 8, 8, 8, 4], [2]),
        ([5, 5, 9, 1, 2, 3, 8, 8, 8, 4], []),
        ([9], []),
    ):
        assert_equal(index.match(tokens), expected, what=f"the match of {tokens}")


@points(1.5)
def test_the_same_tokens_behind_another_beginning_are_other_keys(student):
    """Two texts whose second blocks have equal tokens: each is matched behind its own beginning."""
    pool, index = _setting(student)
    index.insert([1, 1, 1, 7, 7, 7], pool.allocate(2))
    index.insert([2, 2, 2, 7, 7, 7], pool.allocate(2))
    assert_equal(index.match([2, 2, 2, 7, 7, 7, 0]), [2, 3], what="behind 2, 2, 2")
    assert_equal(index.match([1, 1, 1, 7, 7, 7, 0]), [0, 1], what="behind 1, 1, 1")
    assert_equal(index.match([3, 3, 3, 7, 7, 7, 0]), [], what="behind 3, 3, 3")
    assert_equal(index.match([7, 7, 7, 7, 7, 7, 0]), [], what="at the beginning")


@points(1.5)
def test_one_token_remains_to_be_fed(student):
    """A text that is known to its last token gets a block less; with one token more, all. A text of
    one block, or less, gets none.
    """
    pool, index = _setting(student)
    index.insert(TEXT, pool.allocate(4))
    for length, expected in (
        (9, [0, 1]),
        (10, [0, 1, 2]),
        (6, [0]),
        (7, [0, 1]),
        (3, []),
        (0, []),
    ):
        assert_equal(
            index.match(TEXT[:length]), expected, what=f"the first {length} tokens"
        )
    pool, index = _setting(student, block_size=1)
    index.insert([4, 2, 4], pool.allocate(3))
    assert_equal(
        index.match([4, 2, 4]), [0, 1], what="the match in blocks of one token"
    )


@points(0.5)
def test_a_block_that_is_not_full_is_not_remembered(student):
    """Five tokens in blocks of three: one block is known, and the half full one is not held."""
    pool, index = _setting(student)
    index.insert(TEXT[:5], pool.allocate(2))
    assert_equal(index.match(TEXT), [0], what="the match")
    assert_equal(_holders(pool, [0, 1]), [2, 1], what="the holders")
    index.insert([9, 9], pool.allocate(1))
    assert_equal(_holders(pool, [2]), [1], what="the holders of a short text's block")


@points(1)
def test_the_index_holds_what_it_knows(student):
    """The text ends: its full blocks stay, and match adds no holder."""
    pool, index = _setting(student)
    blocks = pool.allocate(4)
    index.insert(TEXT, blocks)
    assert_equal(_holders(pool, blocks), [2, 2, 2, 1], what="the holders after insert")
    pool.release(blocks)
    assert_equal(pool.num_free, 9, what="the free blocks when the text has ended")
    index.match([*TEXT, 7])
    assert_equal(_holders(pool, blocks), [1, 1, 1, 0], what="the holders after match")


@points(0.5)
def test_the_block_that_was_first_is_kept(student):
    """A second text has the same first two blocks, computed again: the index keeps the first ones and
    holds only what is new. Once the first ones are given back, the rest begins no text any more.
    """
    pool, index = _setting(student)
    index.insert(TEXT, pool.allocate(4))
    index.insert([*TEXT[:6], 0, 0, 0], pool.allocate(3))
    assert_equal(index.match([*TEXT[:6], 0, 0, 0, 1]), [0, 1, 6], what="the match")
    assert_equal(_holders(pool, range(7)), [2, 2, 2, 1, 1, 1, 2], what="the holders")
    pool.release([0, 1, 2, 3])
    assert_equal(index.evict(), 3, what="evict when the first text has ended")
    answer = index.match([*TEXT[:6], 0, 0, 0, 1])
    assert_equal(answer, [], what="a match whose first block was given back")


@points(1)
def test_evict_gives_back_what_no_text_uses(student):
    """Two texts; the first has ended, the second holds its blocks. evict gives back the first's, says
    how many, and forgets them. Once more, where blocks in use were known before those.
    """
    pool, index = _setting(student)
    first, second = pool.allocate(4), pool.allocate(3)
    index.insert(TEXT, first)
    index.insert([6, 6, 6, 6, 6, 6, 1], second)
    assert_equal(index.evict(), 0, what="evict while both texts are there")
    pool.release(first)
    assert_equal(index.evict(), 3, what="evict when the first text has ended")
    assert_equal(pool.num_free, 9, what="the free blocks")
    assert_equal(index.match([*TEXT, 7]), [], what="the match of a forgotten text")
    assert_equal(
        index.match([6, 6, 6, 6, 6, 6, 1]), [4, 5], what="the match of the other"
    )
    assert_equal(index.evict(), 0, what="evict once more")
    again = pool.allocate(4)
    index.insert(TEXT, again)
    assert_equal(
        index.match([*TEXT, 7]), [0, 1, 2], what="the match of a text that came back"
    )
    pool.release(again)
    assert_equal(index.evict(), 3, what="evict behind blocks in use")


@points(0.5)
def test_two_indexes_know_nothing_of_each_other(student):
    """Both are alive, with pools of their own."""
    pool, index = _setting(student)
    _, other = _setting(student)
    index.insert(TEXT, pool.allocate(4))
    assert_equal(other.match(TEXT), [], what="the match of an index that knows nothing")
