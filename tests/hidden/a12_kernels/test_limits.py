"""limits: the roofline of one kernel."""

from autograder.suite import assert_close, assert_close_in_turn, assert_equal, points


@points(2)
def test_the_slower_of_two_decides(student):
    """600 operations at 100 a second take 6 s; 50 numbers of 2 bytes at 20 bytes a second 5 s. At 10
    bytes a second they take 10 s.
    """
    products = student.limits(600, 50, 2, 100.0, 20.0)
    traffic = student.limits(600, 50, 2, 100.0, 10.0)
    assert_close(products["seconds"], 6.0, what="seconds")
    assert_close(traffic["seconds"], 10.0, what="seconds")


@points(1)
def test_both_go_on_at_the_same_time(student):
    """The times are not added up: 3 s of products and 3 s of traffic are 3 s."""
    assert_close(
        student.limits(300, 30, 1, 100.0, 10.0)["seconds"], 3.0, what="seconds"
    )


@points(1.5)
def test_intensity_is_operations_for_each_byte(student):
    """600 operations on 50 numbers of 4 bytes: 3. The GPU has no part in it."""
    for peak, bandwidth in ((100.0, 20.0), (7.0, 90.0)):
        assert_close(student.limits(600, 50, 4, peak, bandwidth)["intensity"], 3.0)


@points(1.5)
def test_what_the_chip_waits_for(student):
    """5 s of traffic beside 6 s of products, then 10 s. Where both take as long, products."""
    assert_equal(student.limits(600, 50, 2, 100.0, 20.0)["waits_for"], "products")
    assert_equal(student.limits(600, 50, 2, 100.0, 10.0)["waits_for"], "traffic")
    assert_equal(student.limits(300, 30, 1, 100.0, 10.0)["waits_for"], "products")


@points(0.5)
def test_every_argument_counts(student, reference):
    """Each of the five in turn is another one; and numbers come back, floats."""
    sizes = 600, 50, 2, 100.0, 20.0
    assert_close_in_turn(
        student.limits, reference.limits, *sizes, others=(500, 40, 4, 80.0, 10.0)
    )
    for name in ("intensity", "seconds", "flops_a_second"):
        number = student.limits(*sizes)[name]
        assert isinstance(number, float), f'"{name}" should be a float.'


@points(1.5)
def test_operations_in_a_second(student):
    """600 operations in 6 s, at the peak; and in 10 s, below it."""
    assert_close(student.limits(600, 50, 2, 100.0, 20.0)["flops_a_second"], 100.0)
    assert_close(student.limits(600, 50, 2, 100.0, 10.0)["flops_a_second"], 60.0)
