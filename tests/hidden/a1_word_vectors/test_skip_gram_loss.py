"""skip_gram_loss: the mean surprise of the pairs."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    forbid,
    points,
    randint,
    randn,
    tensor,
)

pytestmark = [
    forbid(
        "torch.nn.functional.cross_entropy",
        "torch.nn.CrossEntropyLoss",
        "torch.nn.NLLLoss",
        "torch.nn.functional.nll_loss",
        "torch.log_softmax",
        "torch.Tensor.log_softmax",
        "torch.special.log_softmax",
        "torch.nn.functional.log_softmax",
        "torch.nn.LogSoftmax",
    )
]


@points(2)
def test_the_loss_of_one_pair_is_its_surprise(student, reference):
    """With a single pair (B = 1) the loss is −log P{context | center}, however small P is."""
    tables = randn(7, 5), randn(7, 5)
    for a, b in ((0, 3), (6, 6), (2, 0)):
        expected = -reference.skip_gram_probabilities(tables[0][a], tables[1])[b].log()
        assert_close(
            student.skip_gram_loss(tensor([a]), tensor([b]), *tables), expected
        )
    tables = 40 * tables[0], 40 * tables[1]
    least = (tables[0][:1] @ tables[1].T).argmin(dim=1)
    expected = reference.skip_gram_loss(tensor([0]), least, *tables)
    assert_close(student.skip_gram_loss(tensor([0]), least, *tables), expected)


@points(1.5)
def test_the_loss_is_the_mean_over_the_pairs(student, reference):
    """Several pairs, with repetitions. The value must not depend on how many copies of the same
    batch you pass.
    """
    tables = randn(6, 3), randn(6, 3)
    a, b = tensor([0, 5, 5, 2, 1]), tensor([3, 5, 0, 2, 2])
    expected = reference.skip_gram_loss(a, b, *tables)
    assert_close(student.skip_gram_loss(a.repeat(3), b.repeat(3), *tables), expected)
    assert_close_in_turn(
        student.skip_gram_loss,
        reference.skip_gram_loss,
        *(a, b, 40 * tables[0], 40 * tables[1]),
        others=(a.flip(0), b.flip(0)),
    )


@points(1)
def test_every_word_of_the_vocabulary_competes(student):
    """A word that is no context in the batch still takes its share: let its score grow, and the
    loss grows.
    """
    centers, contexts = randn(5, 3), randn(5, 3)
    a, b = tensor([1, 3]), tensor([0, 2])
    before = student.skip_gram_loss(a, b, centers, contexts)
    rival = contexts.clone()
    rival[4] = 5 * centers[1]  # word 4 is in neither pair
    after = student.skip_gram_loss(a, b, centers, rival)
    assert after.item() > before.item() + 0.1, (
        "a strong rival outside the batch should make the loss larger"
    )


@points(0.5)
def test_as_many_pairs_as_words(student, reference):
    """A coincidence on purpose: B = V = d, so that a sum over the wrong axis has the right
    shape.
    """
    a, b = tensor([4, 0, 0, 3, 1]), tensor([1, 1, 2, 4, 0])
    tables = randn(5, 5), randn(5, 5)
    assert_close(
        student.skip_gram_loss(a, b, *tables), reference.skip_gram_loss(a, b, *tables)
    )


@points(1)
def test_a_probability_too_small_for_a_float_has_a_finite_loss(student):
    """P of about exp(−2000) is 0 as a float, and log 0 is −inf. The logarithm itself is a harmless
    number.
    """
    centers = tensor([[40.0, 0.0], [0.0, 30.0]])
    contexts = tensor([[-25.0, 3.0], [25.0, -1.0]])
    pairs = tensor([0, 1]), tensor([0, 1])
    for dtype, atol in ((torch.float64, 2e-6), (torch.float32, 1e-3)):
        loss = student.skip_gram_loss(*pairs, centers.to(dtype), contexts.to(dtype))
        assert_close(loss, tensor(1060.0).to(dtype), atol=atol)  # ½ (2000 + 120)


@points(1.5)
def test_gradients_reach_both_tables(student, reference):
    """Both tables learn: the rows of the center words, and all context rows. Repeated words add
    up.
    """
    a, b = tensor([1, 1, 4, 0]), tensor([2, 2, 0, 5])
    tables = randn(6, 3, grad=True), randn(6, 3, grad=True)
    assert_same_gradients(
        student.skip_gram_loss, reference.skip_gram_loss, a, b, *tables
    )


@points(1)
def test_no_loop_over_the_pairs(student):
    """The number of torch operations must not grow with the number of pairs."""
    tables = randn(6, 3), randn(6, 3)
    losses = [
        student.skip_gram_loss(tensor([2]), tensor([word]), *tables).item()
        for word in (0, 1)
    ]
    assert abs(losses[0] - losses[1]) > 1e-9, "two different pairs have one loss"
    few = student.cost(
        "skip_gram_loss", randint(0, 6, (3,)), randint(0, 6, (3,)), *tables
    ).operations
    many = student.cost(
        "skip_gram_loss", randint(0, 6, (37,)), randint(0, 6, (37,)), *tables
    ).operations
    assert many <= few + 5, (
        f"{few} operations for 3 pairs and {many} for 37: is there a loop over the pairs?"
    )


@points(0.5)
def test_dtype_in_is_dtype_out(student, reference):
    """float32 tables give a float32 loss, float16 tables a float16 loss. The logarithm of exp(900) + exp(900) is 900 + ln 2, and float16 has no such number: compute in float32."""
    for dtype in (torch.float16, torch.bfloat16):
        twins = tensor([[30.0, 0.0], [30.0, 0.0]]).to(dtype)
        loss = student.skip_gram_loss(tensor([0]), tensor([1]), twins, twins)
        assert_close(loss, tensor(math.log(2)).to(dtype), atol=4e-3)
    centers = tensor([[40.0, 0.0], [0.0, 30.0]]).half()
    contexts = tensor([[-25.0, 3.0], [25.0, -1.0], [0.0, -1.0], [0.0, -1.0]]).half()
    loss = student.skip_gram_loss(tensor([0, 1]), tensor([0, 1]), centers, contexts)
    assert_close(loss, tensor(1060.0).half(), atol=1)
    a, b = tensor([1, 4, 0]), tensor([2, 0, 5])
    for dtype, atol in ((torch.float32, 1e-5), (torch.float16, 1e-2)):
        tables = randn(6, 3, dtype=dtype), randn(6, 3, dtype=dtype)
        assert_close(
            student.skip_gram_loss(a, b, *tables),
            reference.skip_gram_loss(a, b, *tables),
            atol=atol,
        )


@points(0.5)
def test_the_tables_are_left_alone(student, reference):
    """Called twice, the same answer; tables may be transposed views."""
    a, b = tensor([1, 4, 0]), tensor([2, 0, 5])
    tables = randn(3, 6).T, randn(3, 6).T
    assert_close(
        call_twice(student.skip_gram_loss, a, b, *tables),
        reference.skip_gram_loss(a, b, *tables),
    )


@points(0.5)
def test_pairs_need_two_words_and_rows_one_length(student):
    """Three center words and five context words make no pairs; rows of 3 and of 5 features have no
    dot product.
    """
    table = randn(7, 3)
    assert_refused(
        student.skip_gram_loss,
        randint(0, 7, (3,)),
        randint(0, 7, (5,)),
        table,
        table,
        sizes=(3, 5),
    )
    ids = tensor([0, 1])
    assert_refused(student.skip_gram_loss, ids, ids, table, randn(7, 5), sizes=(3, 5))
    assert_refused(student.skip_gram_loss, ids, ids, randn(7, 5), table, sizes=(3, 5))
    assert_refused(
        student.skip_gram_loss,
        randint(0, 7, (5,)),
        randint(0, 7, (3,)),
        table,
        table,
        sizes=(3, 5),
    )


@points(0.5)
def test_ids_outside_the_tables_are_refused(student):
    """Each id must be a row of its table; −1 is none."""
    table = randn(7, 3)
    assert_refused(
        student.skip_gram_loss,
        tensor([0, 19]),
        tensor([0, 1]),
        table,
        table,
        sizes=(19,),
    )
    assert_refused(
        student.skip_gram_loss, tensor([0, 1]), tensor([0, 7]), table, table, sizes=(7,)
    )
    assert_refused(
        student.skip_gram_loss, tensor([0, -1]), tensor([0, 1]), table, table
    )
    assert_refused(
        student.skip_gram_loss, tensor([0, 1]), tensor([-2, 1]), table, table
    )
