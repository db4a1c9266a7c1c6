"""busy_share: attention is parallel where there are programs enough."""

from autograder.suite import assert_close, assert_close_in_turn, points


@points(1)
def test_one_token_leaves_most_processors_idle(student):
    """Eight heads with one query each are eight programs: of ten processors two watch."""
    assert_close(student.busy_share(1, 8, 1, 128, 1, 10), 0.8)
    assert_close(student.busy_share(2, 3, 1, 16, 1, 132), 6 / 132)


@points(1)
def test_splits_are_programs_too(student):
    """Eight heads in five parts: forty programs."""
    assert_close(student.busy_share(1, 8, 1, 128, 5, 50), 0.8)


@points(1)
def test_query_tiles_are_programs(student):
    """33 queries in tiles of 8 are five programs a head, and so are 40."""
    for n_q in (33, 40):
        assert_close(student.busy_share(1, 2, n_q, 8, 1, 16), 10 / 16)


@points(1.5)
def test_the_last_wave_may_be_nearly_empty(student):
    """Ten programs on ten processors are one wave, eleven are two."""
    assert_close(student.busy_share(1, 10, 1, 8, 1, 10), 1.0)
    assert_close(student.busy_share(1, 11, 1, 8, 1, 10), 0.55)


@points(1)
def test_many_programs_fill_any_gpu(student):
    """A thousand programs on 132 processors are eight waves."""
    assert_close(student.busy_share(4, 10, 200, 8, 1, 132), 1000 / 1056)


@points(0.5)
def test_every_argument_counts(student, reference):
    """Each of the six in turn is another one; and a float comes back."""
    sizes = 3, 5, 100, 16, 2, 132
    assert_close_in_turn(
        student.busy_share, reference.busy_share, *sizes, others=(2, 4, 50, 32, 5, 8)
    )
    assert isinstance(student.busy_share(*sizes), float), "A share is a float."
