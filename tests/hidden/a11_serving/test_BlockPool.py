"""BlockPool: lends, shares and takes back numbered blocks."""

from autograder.suite import assert_equal, assert_refused, points


@points(1)
def test_all_blocks_are_free_at_first(student):
    """Five blocks, nobody holds any; three are lent, and two stay free."""
    pool = student.BlockPool(5)
    assert_equal(pool.num_free, 5, what="the free blocks of a new pool of 5")
    assert_equal(pool.holders(3), 0, what="the holders of a block in a new pool")
    pool.allocate(3)
    assert_equal(pool.num_free, 2, what="the free blocks after allocate(3)")


@points(1)
def test_the_smallest_free_numbers_are_lent(student):
    """Blocks 0 to 4 are lent; 3 and then 1 come back; the next two are 1 and 3, and the next is
    5.
    """
    pool = student.BlockPool(7)
    assert_equal(pool.allocate(2), [0, 1], what="the first two blocks")
    assert_equal(pool.allocate(3), [2, 3, 4], what="the next three blocks")
    pool.release([3])
    pool.release([1])
    assert_equal(pool.allocate(2), [1, 3], what="two blocks after 3 and 1 came back")
    assert_equal(pool.allocate(1), [5], what="the next block")


@points(0.5)
def test_no_block_and_all_blocks(student):
    """allocate(0) lends none, from an exhausted pool too; exactly all blocks can be lent."""
    pool = student.BlockPool(3)
    assert_equal(pool.allocate(0), [], what="allocate(0)")
    assert_equal(pool.allocate(3), [0, 1, 2], what="allocate(3) of 3")
    assert_equal(pool.allocate(0), [], what="allocate(0) where nothing is free")
    assert_equal(pool.num_free, 0, what="the free blocks")


@points(1)
def test_holders_are_counted(student):
    """1 after allocate, 3 after two more share it, 2 after one of them releases it."""
    pool = student.BlockPool(4)
    blocks = pool.allocate(3)
    assert_equal(pool.holders(1), 1, what="the holders of a block that was just lent")
    pool.share([1, 2])
    pool.share([1])
    counts = [pool.holders(block) for block in (0, 1, 2, 3)]
    assert_equal(counts, [1, 3, 2, 0], what="the holders of the four blocks")
    pool.release(blocks)
    counts = [pool.holders(block) for block in (0, 1, 2, 3)]
    assert_equal(
        counts, [0, 2, 1, 0], what="the holders after one of each was released"
    )


@points(2)
def test_a_shared_block_is_free_after_its_last_holder(student):
    """Block 0 has two holders: after the first release it is not lent, after the second it is."""
    pool = student.BlockPool(2)
    pool.allocate(1)
    pool.share([0])
    pool.release([0])
    assert_equal(pool.num_free, 1, what="the free blocks while one holder is left")
    assert_equal(pool.allocate(1), [1], what="the block lent while 0 is held")
    pool.release([0])
    assert_equal(pool.num_free, 1, what="the free blocks after the last holder")
    assert_equal(pool.allocate(1), [0], what="the block lent after 0 came back")
    assert_equal(pool.holders(0), 1, what="the holders of a block that is lent again")


@points(1)
def test_more_than_are_free_is_refused_and_lends_nothing(student):
    """Four are wanted and three are free: ValueError with 4 and 3, and all three are still
    free.
    """
    pool = student.BlockPool(5)
    pool.allocate(2)
    assert_refused(pool.allocate, 4, sizes=(4, 3))
    assert_equal(pool.num_free, 3, what="the free blocks after a refused allocate")
    assert_equal(pool.allocate(3), [2, 3, 4], what="the blocks that are left")


@points(1)
def test_a_block_that_is_free_cannot_be_released(student):
    """Blocks 0 and 1 are lent, 2 is not: release([0, 2]) is a ValueError that names 2, and 0 keeps
    its holder. Nor can a block be released twice.
    """
    pool = student.BlockPool(3)
    pool.allocate(2)
    assert_refused(pool.release, [0, 2], sizes=(2,))
    assert_equal(
        pool.holders(0), 1, what="the holders of block 0 after a refused release"
    )
    pool.release([1])
    assert_refused(pool.release, [1], sizes=(1,))
    assert_equal(
        pool.holders(1), 0, what="the holders of a block that was released twice"
    )
    assert_equal(pool.num_free, 2, what="the free blocks")


@points(0.5)
def test_a_block_that_is_free_cannot_be_shared(student):
    """share([0, 2]) where 2 is free: ValueError that names 2, and 0 gets no holder more."""
    pool = student.BlockPool(3)
    pool.allocate(2)
    assert_refused(pool.share, [0, 2], sizes=(2,))
    assert_equal(
        pool.holders(0), 1, what="the holders of block 0 after a refused share"
    )
    pool.share([])
    pool.release([])
    assert_equal(
        pool.num_free, 1, what="the free blocks after nothing was shared or released"
    )


@points(0.5)
def test_two_pools_know_nothing_of_each_other(student):
    """Both are alive. Does the list of holders belong to the object?"""
    one, other = student.BlockPool(3), student.BlockPool(3)
    one.allocate(2)
    assert_equal(
        other.num_free, 3, what="the free blocks of a pool that nobody has used"
    )
    assert_equal(other.allocate(1), [0], what="its first block")
