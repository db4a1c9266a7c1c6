"""fine_tune: a new head of zeros, a step size for each group, and everything else frozen."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    assert_unchanged,
    assert_varies,
    points,
    randint,
    randn,
    tensor,
    uses,
)

from .models import shaken, small_config, with_heads, with_large_scores

pytestmark = [uses("vit_logits")]

HEAD = {"w_head": 0.5, "b_head": 0.25}


def _task(reference, layers=1, patch=2):
    """A pre-trained model of five classes, and a task of three with four images (of other strides):
    what comes before rates and steps.
    """
    settings = small_config(
        vocab_size=1,
        d_model=5,
        num_layers=layers,
        d_head=3,
        context_length=4,
        patch=patch,
    )
    params = reference.random_vit(settings, 1, 4, 5)
    params = shaken(reference, params, 0.4)
    images = randn(4, 1, 2 * patch, 2 * patch).transpose(2, 3)
    return params, images, randint(0, 3, (4,)), 3, settings


def _tuned(student, reference, *arguments):
    """(losses, new_params) of the student's."""
    return _parts(student.fine_tune(*arguments), arguments[0], arguments[3])


def _parts(answer, params, classes):
    """(losses, new_params), once the second has the names and shapes that it should have."""
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    assert pair, "fine_tune should return a pair, (losses, new_params)."
    losses, tuned = answer
    shapes = _nesting(params) | {"w_head": (5, classes), "b_head": (classes,)}
    assert _nesting(tuned) == shapes, (
        "new_params should have the names, lists and shapes of params, but for the head."
    )
    return losses, tuned


def _nesting(node):
    if isinstance(node, dict):
        return {name: _nesting(child) for name, child in sorted(node.items())}
    if isinstance(node, (list, tuple)):
        return [_nesting(child) for child in node]
    return tuple(node.shape) if isinstance(node, torch.Tensor) else type(node).__name__


def _assert_same_group(name, mine, theirs):
    """The tensors under one name, whatever the order of the student's dicts."""
    if isinstance(theirs, torch.Tensor):
        assert_close(mine, theirs, what=name)
    else:
        for key in theirs if isinstance(theirs, dict) else range(len(theirs)):
            _assert_same_group(f"{name}.{key}", mine[key], theirs[key])


@points(0.75)
def test_the_head_alone_learns(student, reference):
    """Three steps of w_head and b_head, each with a step size of its own, on the mean over all
    images. No blocks.
    """
    arguments = (*_task(reference, layers=0), HEAD, 3)
    _, tuned = _tuned(student, reference, *arguments)
    _, expected = reference.fine_tune(*arguments)
    for name in HEAD:
        assert_close(tuned[name], expected[name], what=name)


@points(0.75)
def test_what_has_no_step_size_is_frozen(student, reference):
    """Not a digit changes in the parameters that rates does not name; those it names do. A patch is
    one pixel.
    """
    params, images, labels, classes, settings = _task(reference, patch=1)
    rates = HEAD | {"positions": 0.5}
    _, tuned = _tuned(
        student, reference, params, images, labels, classes, settings, rates, 2
    )
    for name in params.keys() - rates.keys():
        pairs = zip(
            reference.list_tensors(tuned[name]),
            reference.list_tensors(params[name]),
            strict=True,
        )
        assert all(torch.equal(mine.detach(), before) for mine, before in pairs), (
            f"{name} should be frozen, and it changed."
        )
    moved = (tuned["positions"].detach() - params["positions"]).abs().max()
    assert 1e-5 < float(moved) < 1e3, (
        "positions has a step size, and should move a little."
    )


@points(0.75)
def test_every_group_goes_at_its_own_pace(student, reference):
    """All groups are trained, each with another step size; two steps, since a head of zeros sends
    no gradient down.
    """
    params, images, labels, classes, settings = _task(reference)
    rates = {name: 0.1 + 0.15 * place for place, name in enumerate(params)}
    _, tuned = _tuned(
        student, reference, params, images, labels, classes, settings, rates, 2
    )
    _, expected = reference.fine_tune(
        params, images, labels, classes, settings, rates, 2
    )
    for name in params:
        _assert_same_group(name, tuned[name], expected[name])


@points(0.5)
def test_the_new_head_knows_nothing(student, reference):
    """The loss begins at log C, whatever the old head said and however many classes it had: more,
    fewer, or as many.
    """
    params, images, *_, settings = _task(reference, layers=0)
    for classes in (2, 5, 7):
        labels = randint(0, classes, (4,))
        losses, tuned = _tuned(
            student, reference, params, images, labels, classes, settings, HEAD, 1
        )
        assert_close(
            losses[0], math.log(classes), what=f"the first loss with {classes} classes"
        )
        shares = torch.bincount(labels, minlength=classes).double() / 4
        assert_close(
            tuned["b_head"], HEAD["b_head"] * (shares - 1 / classes), what="b_head"
        )


@points(0.75)
def test_the_losses_are_those_before_each_step(student, reference):
    """Three steps, three Python floats in a list. No blocks; then two, whose scores may be of any
    size.
    """
    arguments = (*_task(reference, layers=0), HEAD, 3)
    losses, _ = _tuned(student, reference, *arguments)
    assert isinstance(losses, (list, tuple)), "losses should be a list."
    assert all(isinstance(loss, float) for loss in losses), (
        "losses should be Python floats."
    )
    assert_close(
        tensor(list(losses)),
        tensor(reference.fine_tune(*arguments)[0]),
        what="the losses",
    )
    params, images, labels, classes, settings = _task(reference, layers=2)
    large = with_large_scores(params)
    for arguments in (
        (params, images, labels, classes, settings, HEAD, 2),
        (large, images, labels, classes, settings, HEAD, 2),
        (params, 2 * images, labels, classes, settings, HEAD, 2),
        (params, images, 0 * labels, classes, settings, HEAD, 2),
        (params, images, labels, 4, settings, HEAD, 2),
        (params, images, labels, classes, with_heads(settings, 3), HEAD, 2),
        (params, images, labels, classes, settings, {"w_head": 0.25}, 2),
        (params, images, labels, classes, settings, HEAD, 3),
    ):
        losses, _ = _parts(student.fine_tune(*arguments), arguments[0], arguments[3])
        expected = reference.fine_tune(*arguments)[0]
        assert_close(tensor(list(losses)), tensor(expected), what="the losses")


@points(0.5)
def test_no_step_puts_the_new_head_on(student, reference):
    """steps = 0: no loss, and a head of zeros on the parameters as they were. So it stays where
    only others train. All in float32 here.
    """
    params, images, labels, classes, settings = _task(reference)
    params, images = (
        reference.with_tensors(
            params, [w.float() for w in reference.list_tensors(params)]
        ),
        images.float(),
    )
    losses, tuned = _tuned(
        student, reference, params, images, labels, classes, settings, HEAD, 0
    )
    assert_equal(len(losses), 0, what="the number of losses")
    _assert_same_group("blocks", tuned["blocks"], params["blocks"])
    assert_close(tuned["w_head"], torch.zeros(5, 3), what="w_head")
    _, tuned = _tuned(
        student,
        reference,
        params,
        images,
        labels,
        classes,
        settings,
        {"positions": 0.1},
        1,
    )
    assert_close(tuned["w_head"], torch.zeros(5, 3), what="w_head")


@points(0.75)
def test_the_pre_trained_parameters_stay(student, reference):
    """Your function is called twice with the same parameters: the same answer, and what came in is
    as it was. No blocks.
    """
    arguments = (*_task(reference, layers=0), HEAD | {"positions": 0.1}, 2)
    _, first = _tuned(student, reference, *arguments)
    assert_unchanged()
    _, second = _tuned(student, reference, *arguments)
    assert_varies(first["w_head"], above=1e-3, what="w_head after two steps")
    assert_close(second["positions"], first["positions"].detach(), what="positions")
    for name, group in first.items():
        for w in reference.list_tensors(group):
            assert not w.requires_grad, f"new_params {name} still asks for gradients."


@points(0.75)
def test_frozen_parameters_cost_no_gradient(student, reference):
    """Multiplications of one step of the head alone, against looking once: a pass down through the
    block would cost twice as much again.
    """
    params, images, labels, classes, settings = _task(reference)
    looking = student.cost("vit_logits", images, params, settings).flops
    answer, cost = student.counted(
        "fine_tune", params, images, labels, classes, settings, HEAD, 1
    )
    _, tuned = _parts(answer, params, classes)
    assert_varies(tuned["w_head"], above=1e-3, what="w_head after a step")
    share = cost.flops / looking
    assert share < 1.5, (
        f"A step costs as much as looking at the images {share:.1f} times."
    )


@points(0.5)
def test_names_steps_and_labels_that_cannot_be_are_refused(student, reference):
    """ "head" is no name in params; −1 is uphill; labels 3 and −1 of three classes. ValueError each
    time.
    """
    params, images, labels, classes, settings = _task(reference, layers=0)
    unknown, uphill, still = (
        HEAD | rates for rates in ({"head": 0.1}, {"positions": -1}, {"positions": 0})
    )
    assert_refused(
        student.fine_tune,
        params,
        images,
        labels,
        classes,
        settings,
        unknown,
        1,
        naming="head",
    )
    assert_refused(
        student.fine_tune,
        params,
        images,
        labels,
        classes,
        settings,
        uphill,
        1,
        sizes=(-1,),
    )
    for wrong in (3, -1):
        strange = tensor([0, 1, 2, wrong])
        assert_refused(
            student.fine_tune,
            params,
            images,
            strange,
            classes,
            settings,
            HEAD,
            1,
            sizes=(wrong, 3),
        )
    tuned = student.fine_tune(params, images, labels, classes, settings, still, 1)[1]
    assert_close(tuned["positions"], params["positions"], what="positions")
