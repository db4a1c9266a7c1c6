"""serve: who takes part in which step, worked out by hand; every text as if it were alone.

Blocks hold two tokens. The model's logits follow from what lies in the cache.
"""

from autograder.suite import assert_equal, assert_refused, points, uses

from .toy import STEP, alone, make_step, setting

pytestmark = uses("PagedCache")


def _run(student, requests, num_blocks, max_running, eos_id=None):
    """(texts, history), with lists for tuples; the cache must be empty at the end."""
    cache, step = setting(student, num_blocks)
    answer = student.serve(requests, cache, step, max_running, eos_id=eos_id)
    is_pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    assert is_pair, "serve should return the pair (texts, history)."
    assert_equal(cache.num_free, num_blocks, what="the free blocks at the end")
    texts, history = answer
    return texts, [[tuple(member) for member in members] for members in history]


def _alone(requests, eos_id=None):
    return [alone(prompt, max_new, eos_id) for prompt, max_new in requests]


@points(2)
def test_each_text_is_what_it_is_alone(student):
    """Five requests, three places, blocks enough: each gets the text that it would get alone."""
    requests = [
        ([1, 2], 3),
        ([3], 4),
        ([0, 5, 6, 1, 1], 2),
        ([4, 4], 1),
        ([2, 6, 3], 5),
    ]
    texts, _ = _run(student, requests, 30, 3)
    assert_equal(texts, _alone(requests), what="the texts")


@points(2)
def test_a_place_is_taken_in_the_next_step(student):
    """Two places, four requests of 4, 1, 1 and 2 tokens: four steps, in which the second place serves
    three requests. A static batch would take six.
    """
    requests = [([1, 2], 4), ([3, 3, 3], 1), ([5], 1), ([6, 6], 2)]
    _, history = _run(student, requests, 30, 2)
    expected = [[(0, 2), (1, 3)], [(0, 1), (2, 1)], [(0, 1), (3, 2)], [(0, 1), (3, 1)]]
    assert_equal(history, expected, what="the history")


@points(1)
def test_the_end_token_ends_a_text_at_once(student):
    """A text that writes eos leaves with it, and another takes part in the next step."""
    free = alone([3, 1], 12)
    eos_id = free[2]
    requests = [([3, 1], 12), ([2, 5], 3), ([1], 2)]
    texts, history = _run(student, requests, 30, 1, eos_id=eos_id)
    assert_equal(texts, _alone(requests, eos_id), what="the texts")
    length = len(texts[0])
    assert_equal(
        history[length][0], (1, 2), what="who takes part once the first text has ended"
    )


@points(2)
def test_who_does_not_fit_waits_and_nobody_overtakes(student):
    """Four blocks. Request 0 takes one, and its next token another; request 1 needs three and
    waits. Request 2 would fit, and does not overtake.
    """
    requests = [([1, 2], 3), ([3, 3, 3, 3, 3, 3], 1), ([5], 1)]
    texts, history = _run(student, requests, 4, 3)
    # 0 has 2 tokens in step 1, then 3 and 4 in two blocks. 1 block + 3 blocks = 4: request 1 joins
    # in step 1. It leaves, and request 2 joins.
    assert_equal(history[0], [(0, 2), (1, 6)], what="the first step")
    assert_equal(history[1], [(0, 1), (2, 1)], what="the second step")
    assert_equal(texts, _alone(requests), what="the texts")
    requests = [([1, 2, 3], 3), ([3, 3, 3, 3, 3, 3], 1), ([5], 1)]
    texts, history = _run(student, requests, 4, 3)
    expected = [[(0, 3)], [(0, 1)], [(0, 1)], [(1, 6), (2, 1)]]
    assert_equal(history, expected, what="the history where request 1 has to wait")
    assert_equal(texts, _alone(requests), what="the texts")


@points(1.5)
def test_blocks_that_running_texts_are_about_to_take_are_not_free(student):
    """Three blocks; request 0 has filled one and takes another in this step. Request 1 needs two, one
    is left: it waits.
    """
    requests = [([1, 2], 2), ([3, 3, 3], 2), ([1], 1)]
    _, history = _run(student, requests, 3, 3)
    expected = [[(0, 2), (1, 3)], [(0, 1)], [(1, 4), (2, 1)]]
    assert_equal(
        history, expected, what="the history: request 1 gives way and comes back"
    )
    requests = [([1, 2], 2), ([4], 1), ([3, 3, 3], 1)]
    _, history = _run(student, requests, 3, 2)
    expected = [[(0, 2), (1, 1)], [(0, 1)], [(2, 3)]]
    assert_equal(history, expected, what="the history: request 2 waits for both blocks")


@points(2)
def test_the_last_one_gives_way_and_reads_its_text_again(student):
    """Four blocks for three texts that grow: the last of them is preempted, waits in front of the
    queue, and comes back with its prompt and all that it has written.
    """
    requests = [([1, 2], 5), ([3], 3), ([5, 1], 4), ([6], 1)]
    texts, history = _run(student, requests, 4, 3)
    expected = [
        [(0, 2), (1, 1), (2, 2)],  # one block each
        [(0, 1), (1, 1)],  # 0 and 2 need another, and one is free: 2 gives way
        [(0, 1), (1, 1)],  # 1 takes the last block, and leaves
        [
            (0, 1)
        ],  # 0 takes a third one; 2 needs two for its three tokens, and one is left
        [(0, 1)],
        [(2, 3), (3, 1)],
        [(2, 1)],
        [(2, 1)],
    ]
    assert_equal(history, expected, what="the history")
    assert_equal(texts, _alone(requests), what="the texts")


@points(0.5)
def test_no_more_give_way_than_must(student):
    """Two blocks, which two texts have filled; both need another. One gives way, and that is enough."""
    requests = [([1, 2], 2), ([3, 4], 2)]
    texts, history = _run(student, requests, 2, 2)
    assert_equal(history, [[(0, 2), (1, 2)], [(0, 1)], [(1, 3)]], what="the history")
    assert_equal(texts, _alone(requests), what="the texts")


@points(0.5)
def test_one_call_does_not_see_another(student):
    """The same cache and step serve twice, and then with other requests, another number of places, an
    end token, and with none again.
    """
    cache, step = setting(student, 30)
    eos_id = alone([3, 1], 12)[2]
    few, many = [([3, 1], 5), ([2, 5], 3)], [([3, 1], 5), ([2, 5], 3), ([6], 2)]
    usual = (few, 2, {})
    for changed in ((few, 1, {}), (many, 2, {}), (few, 2, {"eos_id": eos_id})):
        for requests, places, end in (usual, usual, changed, usual):
            texts, history = student.serve(requests, cache, step, places, **end)
            assert_equal(texts, _alone(requests, **end), what="the texts")
            assert_equal(
                len(history[0]), places, what="how many take part in the first step"
            )
    other = student.define(STEP, "make_step")(cache, 5, 2.0)
    for model, vocab_size in ((step, 7), (step, 7), (other, 5)):
        texts, _ = student.serve(few, cache, model, 2)
        expected = [
            alone(prompt, max_new, vocab_size=vocab_size) for prompt, max_new in few
        ]
        assert_equal(texts, expected, what="the texts of two models in turn")


@points(1)
def test_many_requests_in_little_memory(student, reference):
    """Nine requests, four places, five blocks: the whole history, and each text as if alone."""
    requests = [
        ([(3 * i + j) % 7 for j in range(1 + i % 4)], 1 + (5 * i) % 6) for i in range(9)
    ]
    texts, history = _run(student, requests, 5, 4)
    assert_equal(texts, _alone(requests), what="the texts")
    expected = _run(reference_in(reference), requests, 5, 4)[1]
    assert_equal(history, expected, what="the history")


def reference_in(reference):
    """The answer key with a `define` like a student's."""

    class Reference:
        PagedCache = staticmethod(reference.PagedCache)
        serve = staticmethod(reference.serve)

        @staticmethod
        def define(source, name):
            return make_step

    return Reference


@points(0.5)
def test_what_cannot_be_served_is_refused(student):
    """No place; an empty prompt; no new token; a text that needs three blocks where there are two, at
    once or after it has grown.
    """
    for requests, places, sizes in (
        ([([1], 1)], 0, (0,)),
        ([([1], 1), ([], 3)], 2, (0,)),
        ([([1], 1), ([1], 0)], 2, (0,)),
        ([([1], -4)], 2, (-4,)),
        ([([1], 1), ([1, 2, 3, 4, 5], 1)], 2, (3, 2)),
        ([([1, 2, 3], 4)], 2, (3, 2)),
    ):
        cache, step = setting(student, 2)
        assert_refused(student.serve, requests, cache, step, places, sizes=sizes)
    texts, _ = _run(student, [([1, 2, 3], 2)], 2, 1)
    assert_equal(texts, _alone([([1, 2, 3], 2)]), what="a text that just fits")
    assert_equal(_run(student, [], 2, 1), ([], []), what="no request")
