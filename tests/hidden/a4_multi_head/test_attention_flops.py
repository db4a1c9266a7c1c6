"""attention_flops: the four products, each counted, and equal to what a counter counts."""

from torch.overrides import TorchFunctionMode

from autograder.suite import assert_equal, assert_refused, points, randn


class _Counter(TorchFunctionMode):
    """Counts the operations of every matrix product that runs under it.

    Not torch's FlopCounterMode: entering that imports torch's compiler, which takes seconds.
    """

    flops = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func.__name__ in ("matmul", "__matmul__"):
            # each element is a sum over the inner axis
            self.flops += 2 * out.numel() * args[0].shape[-1]
        return out


def _flops(student, *sizes, keys=("qkv", "scores", "values", "output", "total")):
    """The answer, once it is a dict with these keys."""
    answer = student.attention_flops(*sizes)
    assert isinstance(answer, dict), "attention_flops should return a dict."
    for key in keys:
        assert key in answer, f"The answer of attention_flops has no key {key!r}."
    return answer


def _assert_count(answer, key, expected):
    """The count, or how many times too large it is."""
    count = answer[key]
    assert isinstance(count, (int, float)), (
        f"{key!r} should be a number, and is {type(count).__name__}."
    )
    share = f"{count / expected:.4g}"
    assert count == expected or share != "1", (
        f"{key!r} is right in its first digits, and wrong in the last ones."
    )
    assert count == expected, f"{key!r} is {share} times as large as it should be."


@points(2)
def test_the_projections(student):
    """[B·N, D] times [D, 3·H·d] in, [B·N, H·d] times [H·d, D] out; a multiply-add is 2. H·d is not
    D here.
    """
    answer = _flops(student, 3, 5, 7, 2, 11, keys=("qkv", "output"))
    _assert_count(answer, "qkv", 13_860)  # 2 · 15 · 7 · 66
    _assert_count(answer, "output", 4_620)  # 2 · 15 · 22 · 7
    # for vectors twice as long, with twice as many heads, then with heads of twice the size
    _assert_count(_flops(student, 3, 5, 14, 2, 11, keys=("output",)), "output", 9_240)
    _assert_count(_flops(student, 3, 5, 7, 4, 11, keys=("output",)), "output", 9_240)
    _assert_count(_flops(student, 3, 5, 7, 4, 22, keys=("output",)), "output", 18_480)


@points(2)
def test_scores_and_values(student):
    """In each head [N, d] times [d, N], then [N, N] times [N, d]. H·d is not D here."""
    # three heads: a multiply-add that is one operation is no head that is missing
    answer = _flops(student, 3, 5, 7, 3, 11, keys=("scores", "values"))
    _assert_count(answer, "scores", 4_950)  # 3 · 3 · (2 · 5 · 11 · 5)
    _assert_count(answer, "values", 4_950)


@points(2)
def test_the_total_is_what_a_counter_counts(student, reference):
    """A counter watched every matrix product of a whole multi-head attention: your total should be
    its number.
    """
    for b, n, d_model, num_heads, d_head in (
        (1, 7, 6, 2, 3),
        (3, 11, 10, 5, 7),
        (2, 1, 3, 1, 5),
    ):
        width = num_heads * d_head
        weights = [randn(d_model, width) for _ in range(3)] + [randn(width, d_model)]
        with _Counter() as counter:
            reference.multi_head_attention(randn(b, n, d_model), *weights, num_heads)
        answer = _flops(student, b, n, d_model, num_heads, d_head, keys=("total",))
        _assert_count(answer, "total", counter.flops)


@points(1)
def test_twice_the_length_is_twice_the_projections_and_four_times_the_scores(student):
    """Only two of the four products grow with the square of N; all of them grow with the batch."""
    small, long, wide = (
        _flops(student, 1, 5, 6, 3, 7),
        _flops(student, 1, 10, 6, 3, 7),
        _flops(student, 11, 5, 6, 3, 7),
    )
    assert min(small.values()) > 0, (
        "One of your counts is not above 0, and every product has operations."
    )
    for key, growth in (("qkv", 2), ("scores", 4), ("values", 4), ("output", 2)):
        assert long[key] == growth * small[key], (
            f"{key} grows by {long[key] / small[key]:g} when N doubles."
        )
        assert wide[key] == 11 * small[key], (
            f"{key} grows by {wide[key] / small[key]:g} when the batch grows by 11."
        )


@points(1)
def test_the_answer_is_whole_numbers_under_five_names(student):
    """Five keys, each an int, exact even where a float would round. The numbers are exact, however
    large: floats end at 2⁵³.
    """
    answer = _flops(student, 3, 100_003, 12_289, 97, 127)
    for key, value in answer.items():
        assert type(value) is int, f"{key!r} is {type(value).__name__}, not int."
    assert_equal(
        sorted(answer), ["output", "qkv", "scores", "total", "values"], what="the names"
    )
    assert answer["total"] == sum(answer.values()) - answer["total"] > 0, (
        "total is not the sum of the other four."
    )
    # 2 · 3 · 7 · 100000005², more digits than a float has
    answer = _flops(student, 3, 7, 100_000_005, 3, 33_333_335, keys=("output",))
    _assert_count(answer, "output", 420_000_042_000_001_050)


@points(1)
def test_sizes_below_one_are_refused(student):
    """No tokens, or a negative width: ValueError, with the size in its message. Each size is looked
    at, and not their product.
    """
    assert_refused(student.attention_flops, 3, 0, 7, 2, 5, sizes=(0,))
    assert_refused(student.attention_flops, 3, 5, -7, 2, 11, sizes=(-7,))
    for sizes in ((0, 5, 7, 2, 3), (3, 5, 7, 0, 3), (3, 5, 7, 2, 0)):
        assert_refused(student.attention_flops, *sizes, sizes=(0,))
    assert_refused(student.attention_flops, -2, -5, 7, 2, 3)
