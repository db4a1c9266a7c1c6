"""distinct_ngrams: different runs of tokens among all runs."""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    call_twice,
    points,
    randint,
    tensor,
    zeros,
)


@points(1.25)
def test_runs_overlap(student):
    """abababab has 7 pairs, two of them different, and 6 runs of three, two different."""
    ids = torch.tensor([[5, 9, 5, 9, 5, 9, 5, 9]])
    assert_close(student.distinct_ngrams(ids, 2), tensor([2 / 7]))
    assert_close(student.distinct_ngrams(ids, 3), tensor([2 / 6]))


@points(1)
def test_each_row_counts_for_itself(student):
    """Three rows: one token, all different, and halves that repeat; their shares differ."""
    ids = torch.tensor([[3, 3, 3, 3], [0, 1, 2, 3], [7, 8, 7, 8]])
    assert_close(
        call_twice(student.distinct_ngrams, ids, 2), tensor([1 / 3, 1.0, 2 / 3])
    )
    assert_close(student.distinct_ngrams(ids, 1), tensor([0.25, 1.0, 0.5]))


@points(1)
def test_runs_of_every_length_are_counted(student, reference):
    """From one token to the whole row, which is different from nothing else; the order in a run
    counts, and so does each token of it.
    """
    ids = randint(0, 3, (4, 12))
    for n in (1, 2, 3, 5):
        assert_close(student.distinct_ngrams(ids, n), reference.distinct_ngrams(ids, n))
    for another in (randint(0, 2, (4, 12)), randint(0, 5, (12, 4)).T):
        assert_close(
            student.distinct_ngrams(another, 2), reference.distinct_ngrams(another, 2)
        )
    assert_close(student.distinct_ngrams(ids, 12), 1 + zeros(4))
    assert_close(
        student.distinct_ngrams(torch.tensor([[1, 2, 2, 1]]), 2), tensor([1.0])
    )
    long = torch.tensor([[1, 23, 12, 3, 10**12, 10**12 + 1]])
    assert_close(student.distinct_ngrams(long, 2), tensor([1.0]))
    assert_close(student.distinct_ngrams(long, 1), tensor([1.0]))
    # written as one number with such a base, the first and the last run would be equal
    bases = (10, 100, 256, 1000, 1024, 10_000, 50_257, 65_536, 100_000, 10**6)
    texts = torch.tensor([[0, base, 1, 0] for base in bases])
    assert_close(student.distinct_ngrams(texts, 2), 1 + zeros(len(bases)))


@points(0.75)
def test_runs_that_do_not_fit_are_refused(student):
    """Runs of 0 and of 5 in texts of 4 tokens."""
    ids = torch.tensor([[3, 3, 1, 3]])
    assert_close(student.distinct_ngrams(ids, 4), tensor([1.0]))
    assert_refused(student.distinct_ngrams, ids, 0, sizes=(0, 4))
    assert_refused(student.distinct_ngrams, ids, 5, sizes=(5, 4))
