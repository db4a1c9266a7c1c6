"""power_law_forecast: a line through logarithms."""

import math

from autograder.suite import assert_close, assert_refused, points


def _fit(student, *arguments, **settings):
    answer = student.power_law_forecast(*arguments, **settings)
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    assert pair, "power_law_forecast should return (alpha, forecast)."
    return answer


@points(1.5)
def test_a_true_power_law_is_found(student):
    """Losses 5 / √N at 4, 16 and 100 are 2.5, 1.25 and 0.5: an exponent of 1/2, and 0.05 at 10⁴."""
    alpha, forecast = _fit(student, [4, 16, 100], [2.5, 1.25, 0.5], 10_000)
    assert_close(alpha, 0.5, what="the exponent")
    assert_close(forecast, 0.05, what="the forecast")
    alpha, forecast = _fit(student, [10, 1000], [3.0, 3.0], 7)
    assert_close(alpha, 0.0, what="the exponent")
    assert_close(forecast, 3.0, what="the forecast")


@points(1)
def test_the_exponent_is_positive_where_losses_fall(student):
    """And negative where they grow: 1 and 8 at sizes 1 and 4."""
    alpha, _ = _fit(student, [1, 100], [4.0, 2.0], 5)
    assert_close(alpha, math.log10(2) / 2, what="the exponent")
    alpha, _ = _fit(student, [4, 1], [8.0, 1.0], 5)
    assert_close(alpha, -1.5, what="the exponent")


@points(1.5)
def test_the_line_has_the_least_squares_in_logarithms(student):
    """Sizes 1, 10, 100 with losses 16, 2, 4, in logarithms to base 2 4, 1, 2: slope -1 a decade,
    and a middle of 7/3; sizes 1, 1, 2, of which one occurs twice.
    """
    alpha, forecast = _fit(student, [1, 10, 100], [16.0, 2.0, 4.0], 1000)
    assert_close(alpha, math.log10(2), what="the exponent")
    assert_close(forecast, 2 ** (1 / 3), what="the forecast")
    alpha, forecast = _fit(student, [1, 1, 2], [8.0, 2.0, 2.0], 4)
    assert_close(alpha, 1.0, what="the exponent")
    assert_close(forecast, 1.0, what="the forecast")


@points(1.5)
def test_the_floor_is_taken_off_and_put_back(student):
    """Losses 1 + 5 / √N over 1; and 3 and 1 over a floor of -1."""
    alpha, forecast = _fit(student, [4, 16, 100], [3.5, 2.25, 1.5], 10_000, floor=1.0)
    assert_close(alpha, 0.5, what="the exponent")
    assert_close(forecast, 1.05, what="the forecast")
    alpha, forecast = _fit(student, [1, 100], [3.0, 1.0], 10_000, floor=-1.0)
    assert_close(alpha, math.log10(2) / 2, what="the exponent")
    assert_close(forecast, 0.0, what="the forecast")


@points(0.75)
def test_sizes_may_be_those_of_real_models(student):
    """10⁷ to 10¹¹ parameters: N^-0.07 · 10 at 10¹³; the numbers are Python floats."""
    sizes = [10**7, 10**8, 10**9, 10**11]
    alpha, forecast = _fit(student, sizes, [10 * n**-0.07 for n in sizes], 10**13)
    assert isinstance(alpha, float), (
        f"The exponent is {type(alpha).__name__}, not float."
    )
    assert isinstance(forecast, float), (
        f"The forecast is {type(forecast).__name__}, not float."
    )
    assert_close(alpha, 0.07, what="the exponent")
    assert_close(forecast, 10 * 10 ** (-0.91), what="the forecast")


@points(0.75)
def test_what_has_no_line_is_refused(student):
    """Five sizes and four losses; one size; a size of 0; a loss at the floor, and one below 0."""
    _fit(student, [1, 2], [3.0, 2.0], 4)
    refused = student.power_law_forecast
    assert_refused(refused, [1, 2, 5, 6, 7], [3.0, 2.0, 2.0, 1.0], 4, sizes=(5, 4))
    assert_refused(refused, [1, 2, 5, 6], [3.0, 2.0, 2.0, 1.0, 1.0], 4, sizes=(4, 5))
    assert_refused(refused, [2, 2], [3.0, 2.0], 4)
    assert_refused(refused, [0, 2], [3.0, 2.0], 4)
    assert_refused(refused, [1, 2], [3.0, 2.0], 0)
    assert_refused(refused, [1, 2], [3.0, 2.0], 4, floor=2.0)
    assert_refused(refused, [1, 2], [3.0, -1.0], 4)
