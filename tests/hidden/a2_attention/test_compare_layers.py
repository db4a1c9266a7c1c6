"""compare_layers: operations, waiting, and reach of the three ways to connect tokens, as counts."""

from autograder.suite import assert_refused, points

KINDS = ("recurrence", "convolution", "attention")


def _counts(student, key, *sizes):
    """The counts under one key, for each kind, once the answer is a dict of dicts."""
    answer = student.compare_layers(*sizes)
    assert isinstance(answer, dict), "compare_layers should return a dict."
    counts = []
    for kind in KINDS:
        assert isinstance(answer.get(kind), dict), (
            f"The answer of compare_layers has no dict under {kind!r}."
        )
        assert key in answer[kind], f"The dict under {kind!r} has no key {key!r}."
        count = answer[kind][key]
        assert type(count) is int, (
            f"{key} of {kind} should be an int, and is {type(count).__name__}."
        )
        counts.append(count)
    return counts


def _assert_operations(student, kind, sizes, expected):
    count = _counts(student, "operations", *sizes)[KINDS.index(kind)]
    assert count == expected, (
        f"The operations of {kind} are {count / expected:.4g} times as many as they should be."
    )


@points(0.5)
def test_a_recurrence_multiplies_word_and_state(student):
    """For each token a product with w_x and one with w_h; a multiply-add is 2."""
    _assert_operations(student, "recurrence", (5, 3, 2, 1), 180)  # 5 · 2 · (2 · 3 · 3)
    _assert_operations(
        student, "recurrence", (11, 7, 5, 4), 2156
    )  # one layer, whatever num_layers


@points(0.75)
def test_a_convolution_multiplies_every_token_it_reads(student):
    """For each token one product with each of k matrices; a multiply-add is 2."""
    _assert_operations(student, "convolution", (5, 3, 2, 1), 180)
    _assert_operations(
        student, "convolution", (11, 7, 5, 4), 5390
    )  # 11 · 5 · (2 · 7 · 7)
    _assert_operations(
        student, "convolution", (11, 7, 6, 4), 6468
    )  # another width alone
    # the zeros before the first token count, too
    _assert_operations(student, "convolution", (2, 3, 5, 1), 180)
    # 2 · 7 · 5 · 20000003², more digits than a float has
    _assert_operations(
        student, "convolution", (7, 20_000_003, 5, 1), 28_000_008_400_000_630
    )


@points(0.75)
def test_attention_multiplies_twice(student):
    """[n, d] [d, n] for the scores, [n, n] [n, d] for the mixtures; a multiply-add is 2."""
    # d = n - 1: with d = 3 for 5 tokens, half of the table would be as much as a product that grows
    # like n
    _assert_operations(student, "attention", (5, 4, 2, 1), 400)  # 2 · (2 · 5 · 5 · 4)
    _assert_operations(student, "attention", (11, 7, 5, 4), 3388)


@points(0.75)
def test_only_a_recurrence_waits_for_every_token(student):
    """In one layer: a state needs the one before it; the other two compute all their outputs at
    once.
    """
    for n, d, k, num_layers in ((1, 3, 2, 1), (6, 3, 2, 1), (13, 4, 5, 3)):
        steps = _counts(student, "sequential_steps", n, d, k, num_layers)
        for kind, count, expected in zip(KINDS, steps, (n, 1, 1), strict=True):
            assert count == expected, (
                f"sequential_steps of {kind} is {count} for {n} tokens."
            )


@points(0.75)
def test_each_convolution_looks_a_little_further_back(student):
    """A layer adds k - 1 tokens to what the last output can depend on: layers overlap."""
    for k, num_layers, expected in (
        (3, 1, 3),
        (3, 2, 5),
        (2, 4, 5),
        (5, 3, 13),
        (4, 6, 19),
    ):
        field = _counts(student, "receptive_field", 50, 3, k, num_layers)[1]
        assert field == expected, (
            f"{num_layers} convolutions of width {k} see {field} tokens in your answer."
        )


@points(0.75)
def test_no_receptive_field_is_larger_than_the_text(student):
    """A recurrence and attention reach every token with one layer; nothing reaches more than there
    are.
    """
    for n, k, num_layers in ((9, 2, 1), (4, 3, 5), (1, 7, 2)):
        fields = _counts(student, "receptive_field", n, 3, k, num_layers)
        for kind, field, expected in zip(
            KINDS, fields, (n, min(n, 1 + num_layers * (k - 1)), n), strict=True
        ):
            assert field == expected, (
                f"receptive_field of {kind} is {field} for {n} tokens."
            )


@points(0.75)
def test_convolutions_are_stacked_until_they_reach(student):
    """n - 1 tokens back, k - 1 a layer, rounded up. What num_layers says does not matter here."""
    for n, k, num_layers, expected in (
        (7, 3, 1, 3),
        (6, 2, 4, 5),
        (8, 3, 1, 4),
        (14, 5, 1, 4),
        (13, 5, 2, 3),
        (3, 8, 1, 1),
    ):
        path = _counts(student, "longest_path", n, 3, k, num_layers)[1]
        assert path == expected, (
            f"From the first of {n} tokens to the last you count {path} convolutions of width {k}."
        )


@points(0.5)
def test_attention_is_one_step_away_from_every_token(student):
    """A recurrence goes through every state; attention meets every token directly. One token is one
    step away.
    """
    for n in (1, 2, 17):
        paths = _counts(student, "longest_path", n, 3, 4, 2)
        for kind, path, expected in zip(KINDS[::2], paths[::2], (n, 1), strict=True):
            assert path == expected, f"longest_path of {kind} is {path} for {n} tokens."
    assert _counts(student, "longest_path", 1, 3, 4, 2)[1] == 1, (
        "A single token is one convolution away from its output."
    )


@points(0.5)
def test_sizes_that_connect_nothing_are_refused(student):
    """No token, no width, no layer, a convolution of width 1: ValueError with the size. Two
    negative sizes too.
    """
    assert_refused(student.compare_layers, 0, 3, 2, 1, sizes=(0,))
    assert_refused(student.compare_layers, 5, 0, 2, 1, sizes=(0,))
    assert_refused(student.compare_layers, 5, 3, 2, 0, sizes=(0,))
    assert_refused(student.compare_layers, 5, 3, 1, 2, sizes=(1,))
    assert_refused(student.compare_layers, -5, -3, 2, 1, sizes=(-5,))
