"""train_step: the loss before the step, new parameters downhill, the old ones as they were."""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    assert_unchanged,
    assert_varies,
    points,
    randint,
    uses,
)

from .models import cast, shaken, small_config, with_heads, with_large_scores

pytestmark = [uses("decoder_lm", "lm_loss")]

ASKING = """
def asking(params, ids, settings, lr):
    train_step(params, ids, settings, lr)
    return [tensor.requires_grad for tensor in list_tensors(params)]
"""
"""Takes a step in the worker, and says which tensors of the caller's ask for gradients then."""


def _model(reference, layers=0, tied=True):
    """Without blocks, where the claim is about the step and not about what learns."""
    settings = small_config(num_layers=layers, d_ff=9, context_length=6, tied=tied)
    params = reference.random_lm(settings)
    return shaken(reference, params, 0.3), settings


def _step(student, params, ids, settings, lr):
    answer = student.train_step(params, ids, settings, lr)
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    assert pair, "train_step should return a pair, (loss, new_params)."
    return answer


def _assert_moved(stepped, params):
    """The embedding is another one, and still an embedding."""
    embed = stepped["embed"].detach()
    assert float((embed - params["embed"]).abs().max()) > 1e-4, (
        "The embedding did not move."
    )
    assert_varies(embed, above=1e-3, what="the new embedding")


def _tensors(reference, params, like):
    """The student's tensors by name, once the nesting is that of the parameters."""
    assert _nesting(params) == _nesting(like), (
        "new_params should have the names, lists and shapes of params."
    )
    return list(zip(_paths(like), reference.list_tensors(params), strict=True))


def _nesting(node):
    if isinstance(node, dict):
        return {name: _nesting(child) for name, child in sorted(node.items())}
    if isinstance(node, (list, tuple)):
        return [_nesting(child) for child in node]
    return tuple(node.shape) if isinstance(node, torch.Tensor) else type(node).__name__


def _paths(node, path=""):
    if isinstance(node, torch.Tensor):
        return [path]
    children = node.items() if isinstance(node, dict) else enumerate(node)
    return [
        p
        for name, child in children
        for p in _paths(child, f"{path}.{name}" if path else str(name))
    ]


@points(0.5)
def test_the_loss_is_the_one_before_the_step(student, reference):
    """A Python float: what the model that came in loses on this batch, whatever the size of its
    scores and logits.
    """
    params, settings = _model(reference)
    ids = randint(0, 7, (3, 5))
    loss, _ = _step(student, params, ids, settings, 2.0)
    assert isinstance(loss, float), (
        f"The loss should be a Python float, and is {type(loss).__name__}."
    )
    assert_close(
        loss, float(reference.lm_loss(reference.decoder_lm(ids, params, settings), ids))
    )
    params, settings = _model(reference, layers=2, tied=False)
    params |= {"unembed": 1000 * params["unembed"]}
    large = with_large_scores(params)
    for weights, tokens, setup, dtype in (
        (params, ids, settings, torch.float64),
        (params, ids, with_heads(settings, 5), torch.float64),
        (params, 6 - ids, settings, torch.float64),
        (large, ids, settings, torch.float64),
        (large, ids, settings, torch.float32),
    ):
        given = cast(reference, weights, dtype)
        loss, _ = _step(student, given, tokens, setup, 2.0)
        expected = reference.lm_loss(reference.decoder_lm(tokens, given, setup), tokens)
        assert_close(loss, float(expected), rtol=1e-4)


@points(2)
def test_every_parameter_goes_downhill(student, reference):
    """All parameters of a tied model without blocks and of an untied one with two: both ends,
    blocks and norms.
    """
    for tied in (True, False):
        params, settings = _model(reference, layers=0 if tied else 2, tied=tied)
        ids = randint(0, 7, (3, 5))
        _, stepped = _step(student, params, ids, settings, 0.7)
        expected = reference.list_tensors(
            reference.train_step(params, ids, settings, 0.7)[1]
        )
        named = _tensors(reference, _ordered(stepped, params), params)
        for (name, mine), theirs in zip(named, expected, strict=True):
            assert_close(mine, theirs, what=f"new_params {name}")


def _ordered(node, like):
    """The student's dicts in the order of ours, where the names agree."""
    if isinstance(node, dict) and isinstance(like, dict) and node.keys() == like.keys():
        return {name: _ordered(node[name], like[name]) for name in like}
    if (
        isinstance(node, (list, tuple))
        and isinstance(like, list)
        and len(node) == len(like)
    ):
        return [_ordered(a, b) for a, b in zip(node, like, strict=True)]
    return node


@points(0.5)
def test_twice_the_step_size_goes_twice_as_far(student, reference):
    """From the same parameters, on the same batch. (The ids are a view.)"""
    params, settings = _model(reference)
    ids = randint(0, 7, (4, 2)).T
    near, far = (
        _step(student, params, ids, settings, lr)[1]["embed"].detach() - params["embed"]
        for lr in (0.25, 0.5)
    )
    assert float(near.abs().max()) > 1e-4, "The embedding did not move."
    assert_close(far, 2 * near, what="the step at lr = 0.5")


@points(1)
def test_the_old_parameters_stay_as_they_were(student, reference):
    """Your step is taken twice from the same parameters: same loss, and nothing of what came in is
    changed. Plain tensors stay plain: afterwards none of them asks for gradients.
    """
    params, settings = _model(reference)
    ids = randint(0, 7, (2, 4))
    first, stepped = _step(student, params, ids, settings, 0.5)
    assert_unchanged()
    second, _ = _step(student, params, ids, settings, 0.5)
    assert first == second, "The second step from the same parameters has another loss."
    _assert_moved(stepped, params)
    asking = student.define(ASKING, "asking", sees_notebook=True)
    assert not any(asking(params, ids, settings, 0.5)), (
        "After your step the caller's own tensors ask for gradients."
    )


@points(0.5)
def test_new_parameters_know_nothing_of_the_step(student, reference):
    """They should be plain tensors, detached: parameters that keep the graph keep all earlier steps
    in memory.
    """
    params, settings = _model(reference, layers=1)
    _, stepped = _step(student, params, randint(0, 7, (2, 4)), settings, 0.5)
    _assert_moved(stepped, params)
    for name, tensor in _tensors(reference, stepped, params):
        assert not tensor.requires_grad, f"new_params {name} still asks for gradients."


@points(0.5)
def test_steps_in_a_row_learn_a_sentence(student, reference):
    """Three of your steps on one small batch in float32, each from the last parameters: the loss
    falls by a seventh.
    """
    params, settings = _model(reference)
    params = reference.with_tensors(
        params, [t.float() for t in reference.list_tensors(params)]
    )
    ids = randint(0, 7, (2, 5))
    losses = []
    for _ in range(3):
        loss, params = _step(student, params, ids, settings, 0.5)
        losses.append(float(loss))
    assert params["embed"].dtype == torch.float32, (
        "Parameters in float32 should stay in float32."
    )
    assert losses[-1] < 0.85 * losses[0], (
        f"The loss was {losses[0]:.3g} before the first step, {losses[-1]:.3g} later."
    )


@points(0.5)
def test_a_negative_step_is_refused(student, reference):
    """lr = -1 would go uphill: ValueError. lr = 0 stays where it is."""
    params, settings = _model(reference)
    ids = randint(0, 7, (2, 4))
    assert_close(
        _step(student, params, ids, settings, 0)[1]["embed"].detach(), params["embed"]
    )
    assert_refused(student.train_step, params, ids, settings, -1, sizes=(-1,))
