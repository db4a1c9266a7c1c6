"""batched_step: one step for texts of all lengths, equal to each text alone."""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    points,
    uses,
)

pytestmark = uses("PagedCache", "paged_attention")

A, B, C = [3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2], [12, 0, 6, 11, 4, 4, 10]
"""Three texts."""


def _model(reference, **changes):
    sizes = reference.make_config(**changes)
    return reference.random_params(sizes), sizes


def _cache(student, sizes, num_blocks=12, block_size=3, dtype=torch.float64):
    return student.PagedCache(
        sizes.num_layers,
        num_blocks,
        block_size,
        sizes.num_kv_heads,
        sizes.d_head,
        dtype,
    )


def _last_logits(reference, params, sizes, *texts):
    """Logits of the last token of each text, by the model without a cache."""
    rows = [
        reference.decoder_lm(torch.tensor([text]), params, sizes)[0, -1]
        for text in texts
    ]
    return torch.stack(rows)


@points(1)
def test_a_prompt_and_then_token_after_token(student, reference):
    """One text: a prompt of five, then three single tokens, each equal to the whole model."""
    params, sizes = _model(reference)
    cache = _cache(student, sizes)
    cache.start("a")
    fed = 0
    for size in (5, 1, 1, 1):
        chunk = A[fed : fed + size]
        fed += size
        answer = student.batched_step(params, [("a", chunk)], cache, sizes)
        assert_close(
            answer,
            _last_logits(reference, params, sizes, A[:fed]),
            what=f"logits after {fed} tokens",
        )
        assert_equal(cache.length("a"), fed, what="the length of the text")


@points(2)
def test_each_text_gets_what_it_gets_alone(student, reference):
    """Three texts of different lengths take one step together, in an order of their own: a row of
    logits for each chunk.
    """
    params, sizes = _model(reference)
    cache = _cache(student, sizes)
    for name in ("a", "b", "c"):
        cache.start(name)
    student.batched_step(params, [("a", A[:6])], cache, sizes)
    student.batched_step(params, [("c", C[:2])], cache, sizes)
    chunks = [("b", B[:1]), ("c", C[2:3]), ("a", A[6:7])]
    expected = _last_logits(reference, params, sizes, B[:1], C[:3], A[:7])
    assert_close(student.batched_step(params, chunks, cache, sizes), expected)
    lengths = [cache.length(name) for name in ("a", "b", "c")]
    assert_equal(lengths, [7, 1, 3], what="the lengths")


@points(1)
def test_chunks_of_all_sizes_go_together(student, reference):
    """A prompt of five beside a single token and a chunk of three: the last token of each chunk has the
    logits. Then another step.
    """
    params, sizes = _model(reference)
    cache = _cache(student, sizes)
    for name in (1, 2, 3):
        cache.start(name)
    student.batched_step(params, [(1, A[:3]), (3, C[:2])], cache, sizes)
    steps = [
        ([(1, A[3:4]), (2, B), (3, C[2:5])], (A[:4], B, C[:5])),
        ([(3, C[5:]), (1, A[4:])], (C, A)),
    ]
    for chunks, texts in steps:
        answer = student.batched_step(params, chunks, cache, sizes)
        assert_close(answer, _last_logits(reference, params, sizes, *texts))


@points(1)
def test_forks_go_on_by_themselves(student, reference):
    """A text is forked in the middle of a block; both go on in the same step with other tokens."""
    params, sizes = _model(reference)
    cache = _cache(student, sizes)
    cache.start("a")
    student.batched_step(params, [("a", A[:4])], cache, sizes)
    cache.fork("a", "b")
    for i in (4, 5):
        answer = student.batched_step(
            params, [("a", [A[i]]), ("b", [C[i]])], cache, sizes
        )
    expected = _last_logits(reference, params, sizes, A[:6], A[:4] + C[4:6])
    assert_close(answer, expected)


@points(1)
def test_the_weights_are_used_once_for_all_texts(student, reference):
    """Operations of a step for six texts, against six steps of one: far fewer. And the FLOPs are
    those of six tokens, with logits for six.
    """
    params, sizes = _model(
        reference, num_layers=1, num_heads=2, num_kv_heads=1, vocab_size=43
    )
    texts = [[(7 * i + 3 * j) % 43 for j in range(2)] for i in range(6)]
    costs = []
    for groups in ([range(6)], [[i] for i in range(6)]):
        cache = _cache(student, sizes)
        for i in range(6):
            cache.start(i)
        total = [0, 0]
        for group in groups:
            chunks = [(i, texts[i]) for i in group]
            answer, cost = student.counted("batched_step", params, chunks, cache, sizes)
            expected = _last_logits(
                reference, params, sizes, *(texts[i] for i in group)
            )
            assert_close(answer, expected)
            total = [total[0] + cost.operations, total[1] + cost.flops]
        costs.append(total)
    assert costs[0][0] <= 0.8 * costs[1][0], (
        f"a step for six texts takes {costs[0][0]} operations, six steps for one text "
        f"{costs[1][0]}: is anything but the attention done text by text?"
    )
    # A token: projections 2·10·(8+4+4) + 2·8·10, MLP 4·10·14: 1040. Twelve: 12 480. Logits:
    # 6·2·10·43 = 5160. Scores and values: 2 queries, 2 keys, 2 heads of 4: 64 a text, 384.
    assert costs[0][1] <= 1.05 * (12_480 + 5160 + 384), (
        f"a step for six texts of two tokens took {costs[0][1]} FLOPs: are there logits that "
        "nobody reads?"
    )


@points(0.5)
def test_other_models_and_single_precision(student, reference):
    """Three layers, as many key heads as query heads; and a model in float32, whose logits are
    float32.
    """
    params, sizes = _model(reference, num_layers=3, num_kv_heads=6)
    cache = _cache(student, sizes, block_size=1)
    cache.start("a")
    answer = student.batched_step(params, [("a", B)], cache, sizes)
    assert_close(answer, _last_logits(reference, params, sizes, B))
    sizes = reference.make_config(theta=30.0)
    params = reference.random_params(sizes, seed=3, dtype=torch.float32)
    cache = _cache(student, sizes, dtype=torch.float32)
    cache.start("a")
    answer = student.batched_step(params, [("a", B)], cache, sizes)
    expected = _last_logits(reference, params, sizes, B)
    assert_close(answer, expected, atol=1e-3, rtol=1e-3)


@points(0.5)
def test_scores_of_any_size(student, reference):
    """Weights of queries and keys that are 300 times as large, in float64 and float32; matrices that
    are no contiguous tensors.
    """
    for dtype, tolerance in ((torch.float64, 2e-6), (torch.float32, 2e-2)):
        sizes = reference.make_config(num_layers=1)
        params = reference.random_params(sizes, dtype=dtype)
        block = params["blocks"][0]
        for name, factor in (("w_q", 300), ("w_k", 300), ("w_v", 1)):
            block[name] = (factor * block[name]).T.contiguous().T
        cache = _cache(student, sizes, dtype=dtype)
        for name in ("a", "b"):
            cache.start(name)
        student.batched_step(params, [("a", A[:5])], cache, sizes)
        answer = student.batched_step(params, [("b", B), ("a", A[5:])], cache, sizes)
        expected = _last_logits(reference, params, sizes, B, A)
        assert_close(answer, expected, atol=tolerance, rtol=tolerance)


@points(0.5)
def test_one_step_does_not_see_another(student, reference):
    """A text is read twice, and then with other params, with another config, and in another cache, in
    which it has a past.
    """
    params, sizes = _model(reference, num_layers=1)
    other_params = reference.random_params(sizes, seed=5)
    other_sizes = reference.make_config(num_layers=1, theta=9.0)
    caches = [_cache(student, sizes) for _ in "ab"]
    caches[1].start("a")
    student.batched_step(params, [("a", C)], caches[1], sizes)
    usual = (params, sizes)
    for changed in ((other_params, sizes), (params, other_sizes)):
        for weights, config in (usual, usual, changed):
            caches[0].start("a")
            answer = student.batched_step(weights, [("a", B)], caches[0], config)
            assert_close(answer, _last_logits(reference, weights, config, B))
            caches[0].free("a")
    answer = student.batched_step(params, [("a", B)], caches[1], sizes)
    assert_close(
        answer, _last_logits(reference, params, sizes, C + B), what="the other cache"
    )


@points(0.5)
def test_an_id_outside_the_vocabulary_is_refused(student, reference):
    """13 and -1 in a vocabulary of 13, in the second text: ValueError with the id and 13; nothing was
    appended. 0 and 12 are fine.
    """
    params, sizes = _model(reference)
    cache = _cache(student, sizes)
    cache.start("a")
    cache.start("b")
    for token in (13, -1):
        chunks = [("b", [4, 1]), ("a", [3, token, 2])]
        assert_refused(
            student.batched_step, params, chunks, cache, sizes, sizes=(token, 13)
        )
        assert_equal(cache.num_free, 12, what="the free blocks after a refused step")
    answer = student.batched_step(params, [("a", [0, 12])], cache, sizes)
    assert_close(answer, _last_logits(reference, params, sizes, [0, 12]))
