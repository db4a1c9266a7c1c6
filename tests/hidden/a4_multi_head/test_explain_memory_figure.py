"""explain_memory_figure: the element size and the mixture of units behind a figure for the
attention weights.

Answers are not compared with stored ones: the student's evidence is put back into the arithmetic.
"""

from autograder.suite import points, uses

pytestmark = [uses("attention_matrix_bytes")]


def _check(student, n, num_heads, claimed):
    """The evidence for a figure: valid, and it gives the figure."""
    evidence = student.explain_memory_figure(n, num_heads, claimed)
    is_pair = isinstance(evidence, (tuple, list)) and len(evidence) == 2
    assert is_pair, (
        f"For N = {n}, H = {num_heads} and {claimed:.3f} the answer should be a pair, and is "
        f"{evidence!r}."
    )
    element, binary = evidence
    assert element in (1, 2, 4, 8), (
        f"Elements of {element} bytes? The choices are 1, 2, 4 and 8."
    )
    assert binary in (0, 1, 2, 3, 4), (
        f"{binary} divisions by 1024? There are four divisions in all."
    )
    figure = num_heads * n * n * element / (1024**binary * 1000 ** (4 - binary))
    assert abs(figure - claimed) <= 0.0006, (
        f"Elements of {element} bytes, {binary} divisions by 1024 and {4 - binary} by 1000 give "
        f"{figure:.3f}, "
        f"and the figure was {claimed:.3f}."
    )
    return binary


@points(2)
def test_the_figure_of_the_lecture(student):
    """N = 100 000, H = 64, "1.192 TB": your evidence should give 1.192 again, and be no honest
    unit.
    """
    binary = _check(student, 100_000, 64, 1.192)
    assert 0 < binary < 4, "1.192 is neither TB nor TiB."


@points(2)
def test_other_figures_that_mix_units(student):
    """Other lengths, heads, element sizes and mixtures."""
    for n, num_heads, element, binary in (
        (
            32_000,
            320,
            4,
            1,
        ),  # 1.28 to the last bit: exact comparisons and wide elements find it
        (120_000, 48, 4, 2),
        (70_000, 96, 8, 1),
        (310_000, 12, 1, 3),
    ):
        bytes_ = num_heads * n * n * element
        _check(
            student,
            n,
            num_heads,
            round(bytes_ / (1024**binary * 1000 ** (4 - binary)), 3),
        )


@points(1)
def test_honest_terabytes_and_tebibytes(student):
    """No division by 1024 at all, or nothing but divisions by 1024."""
    # float64, 2.592e12 bytes; it comes first, since wide elements alone explain it
    assert _check(student, 90_000, 40, 2.357) == 4, "2.357 is an honest TiB."
    assert _check(student, 100_000, 64, 1.28) == 0, "1.280 is an honest TB."


@points(1)
def test_a_figure_that_nothing_explains(student):
    """1.5 is the figure of no element size in no unit, and neither is 1.281, beside 1.280; five
    divisions by 1024 and one product with 1000 would give 1.137. 1.192 is explained.
    """
    for claimed in (1.281, 1.137):
        answer = student.explain_memory_figure(100_000, 64, claimed)
        assert answer is None, f"Nothing gives {claimed}: the answer should be None."
    assert student.explain_memory_figure(100_000, 64, 1.5) is None, (
        "Nothing gives 1.500: the answer should be None."
    )
    assert student.explain_memory_figure(100_000, 64, 1.192) is not None, (
        "An element size and four divisions give 1.192: the answer should not be None."
    )
    for n, num_heads in ((90_000, 64), (100_000, 60)):
        assert student.explain_memory_figure(n, num_heads, 1.192) is None, (
            f"Nothing gives 1.192 for N = {n} and H = {num_heads}: the answer should be None."
        )
