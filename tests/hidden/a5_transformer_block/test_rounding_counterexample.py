"""rounding_counterexample: evidence that sigma must not be rounded before it is used.

Answers are not compared with a stored one: the student's token is put back into the arithmetic.
"""

import torch

from autograder.suite import assert_refused, points


def _evidence(student, decimals, units):
    """The token, checked for everything but the slip; and how many units it slips."""
    x = student.rounding_counterexample(decimals, units)
    asked = f"For {decimals} decimals and {units} units"
    is_token = isinstance(x, torch.Tensor) and x.ndim == 1
    assert is_token, f"{asked} the answer should be one token, a tensor [D]."
    assert 2 <= len(x) <= 100000, (
        f"{asked} your token has {len(x)} features; 2 to 100000 are allowed."
    )
    x = x.double()
    assert bool(x.isfinite().all()), (
        f"{asked} your token has features that are not finite numbers."
    )
    shifted = x - x.mean()
    sigma = float(shifted.square().mean() ** 0.5)
    assert sigma >= 1 - 1e-9, (
        f"{asked} the sigma of your token is {sigma:.6g}; it must be 1 or more."
    )
    early, late = (
        (shifted / s).round(decimals=decimals) for s in (round(sigma, decimals), sigma)
    )
    slip = round((early - late).abs().max().item() * 10**decimals)
    assert slip >= units, (
        f"{asked}: sigma is {sigma:.9f}, its rounding is {round(sigma, decimals)}, and no "
        "normalized feature of your "
        f"token moves by more than {slip} units."
    )
    return x


@points(1)
def test_one_unit_at_two_decimals(student):
    """As in the notes: 1.22 becomes 1.23, or any other token off by one unit at two decimals."""
    _evidence(student, 2, 1)


@points(1)
def test_one_unit_at_any_number_of_decimals(student):
    """The slip does not go away with more decimals: 1, 3, 4 and 5 of them."""
    for decimals in (1, 3, 4, 5):
        _evidence(student, decimals, 1)


@points(1.5)
def test_many_units(student):
    """3 to 100 units at 1 to 5 decimals: what multiplies the error of sigma on its way into the
    normalized feature? For 100 units 100000 features are enough.
    """
    for decimals, units in ((2, 3), (3, 6), (2, 25), (1, 17), (5, 7), (4, 100)):
        _evidence(student, decimals, units)


@points(0.5)
def test_the_token_is_float64(student):
    """At five decimals float32 no longer holds a sigma exactly enough to argue about. (3 units are
    asked for.)
    """
    x = _evidence(student, 5, 3)
    answer = student.rounding_counterexample(5, 3)
    assert answer.dtype == torch.float64, (
        f"The token should be float64, and is {str(answer.dtype)[6:]}."
    )
    assert x.abs().max() > 1, (
        "All features of your token are small: a normalized one above 1 is needed."
    )


@points(0.5)
def test_zero_decimals_or_units_are_refused(student):
    """Nothing is rounded at decimals = 0 in this exercise, and 0 units prove nothing: a ValueError
    with the number. Two negative ones too.
    """
    assert_refused(student.rounding_counterexample, 0, 4, sizes=(0,))
    assert_refused(student.rounding_counterexample, 3, 0, sizes=(0,))
    assert_refused(student.rounding_counterexample, -2, -3)
