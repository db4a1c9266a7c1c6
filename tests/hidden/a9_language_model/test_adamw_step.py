"""adamw_step: Adam's averages, corrected, and a decay that does not pass through them."""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    assert_unchanged,
    call_twice,
    forbid,
    points,
    randn,
    tensor,
    zeros,
)

pytestmark = [
    forbid(
        "torch.optim.AdamW",
        "torch.optim.Adam",
        "torch._fused_adamw_",
        "torch._fused_adam_",
    )
]


def _step(student, tensors, gradients, state, *arguments, **settings):
    answer = student.adamw_step(tensors, gradients, state, *arguments, **settings)
    pair = (
        isinstance(answer, (tuple, list))
        and len(answer) == 2
        and isinstance(answer[0], (tuple, list))
    )
    assert pair, "adamw_step should return a pair, (new_tensors, new_state)."
    assert len(answer[0]) == len(tensors), (
        f"there are {len(answer[0])} new tensors for {len(tensors)} parameters."
    )
    assert isinstance(answer[1], dict), "new_state should be a dict with step, m and v."
    return answer


def _torchs(tensors, history, **settings):
    """The same steps by torch, matrices with decay and vectors without."""
    decay = settings.pop("weight_decay")
    own = [t.clone().requires_grad_() for t in tensors]
    groups = [
        {"params": [t], "weight_decay": decay if t.dim() >= 2 else 0.0} for t in own
    ]
    optimizer = torch.optim.AdamW(groups, **settings)
    for gradients in history:
        for t, g in zip(own, gradients, strict=True):
            t.grad = g.clone()
        optimizer.step()
    return [t.detach() for t in own]


@points(1)
def test_the_first_step_has_the_size_of_the_rate(student):
    """Gradients of 1000, -0.001 and 2: each parameter moves by 0.1 against the sign of its
    gradient.
    """
    settings = {"eps": 0.0, "weight_decay": 0.0}
    stepped, _ = _step(
        student,
        [tensor([1.0, 2.0, 3.0])],
        [tensor([1e3, -1e-3, 2.0])],
        None,
        0.1,
        **settings,
    )
    assert_close(stepped[0], tensor([0.9, 2.1, 2.9]))


@points(1.25)
def test_five_steps_are_those_of_torch(student):
    """A transposed matrix, a vector and three axes, with gradients of all sizes, against torch's
    own AdamW.
    """
    tensors = [randn(4, 3).T, randn(4), randn(2, 1, 2)]
    history = [[10 ** (n - 2) * randn(*t.shape) for t in tensors] for n in range(5)]
    settings = {"lr": 0.03, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.4}
    mine, state = tensors, None
    for gradients in history:
        mine, state = _step(student, mine, gradients, state, **settings)
    for own, theirs in zip(mine, _torchs(tensors, history, **settings), strict=True):
        assert_close(
            own,
            theirs,
            what=f"the parameter of shape {list(theirs.shape)} after five steps",
        )


@points(1)
def test_the_decay_is_decoupled(student):
    """With gradients of 0, and of 1000: a matrix shrinks by the factor 1 - 0.1·0.5 besides the step
    that it makes without a decay.
    """
    weights = tensor([[2.0, -4.0]])
    stepped, _ = _step(student, [weights], [zeros(1, 2)], None, 0.1, weight_decay=0.5)
    assert_close(stepped[0], 0.95 * weights)
    with_decay, without = (
        _step(
            student, [weights], [tensor([[1e3, 1e3]])], None, 0.1, weight_decay=decay
        )[0][0]
        for decay in (0.5, 0.0)
    )
    assert_close(with_decay, without.detach() - 0.05 * weights)


@points(1)
def test_only_tensors_with_two_axes_or_more_decay(student):
    """A vector and a number keep their values with gradients of 0; a matrix and [2, 1, 2]
    shrink.
    """
    tensors = [tensor([3.0, 4.0]), tensor(5.0), tensor([[6.0]]), 1.0 + zeros(2, 1, 2)]
    gradients = [0 * t for t in tensors]
    stepped, _ = _step(student, tensors, gradients, None, 0.5, weight_decay=0.2)
    for own, old, factor in zip(stepped, tensors, (1.0, 1.0, 0.9, 0.9), strict=True):
        assert_close(
            own, factor * old, what=f"the parameter of shape {list(old.shape)}"
        )


@points(1)
def test_the_state_holds_the_step_and_both_averages(student):
    """After one step m is 0.1 g and v is 0.05 g², after another without gradient 0.09 g and 0.0475
    g².
    """
    g = randn(2, 3)
    tensors = [randn(2, 3)]
    stepped, state = _step(student, tensors, [g], None, 0.1)
    assert_equal(sorted(state), ["m", "step", "v"], what="the keys of the state")
    assert_equal(state["step"], 1, what="the number of steps")
    assert_close(state["m"][0], 0.1 * g, what="m")
    assert_close(state["v"][0], 0.05 * g**2, what="v")
    _, state = _step(student, [stepped[0].detach()], [0 * g], state, 0.1)
    assert_equal(state["step"], 2, what="the number of steps")
    assert_close(state["m"][0], 0.09 * g, what="m")
    assert_close(state["v"][0], 0.0475 * g**2, what="v")


@points(0.5)
def test_epsilon_stands_outside_the_root(student):
    """With eps = 1 and a gradient of 1 the first step is half the rate, not the rate over the root
    of two; in float64 and in float32.
    """
    for dtype in (torch.float64, torch.float32):
        one = torch.ones(1, dtype=dtype)
        stepped, _ = _step(student, [one], [one], None, 0.1, eps=1.0, weight_decay=0.0)
        assert_close(stepped[0], torch.full((1,), 0.95, dtype=dtype))


@points(0.5)
def test_the_defaults_are_those_of_the_signature(student):
    """Two steps without any settings: betas 0.9 and 0.95, eps 1e-8, a decay of 0.1. A gradient as
    small as eps moves a parameter by half of the rate.
    """
    stepped, _ = _step(student, [tensor([1.0])], [tensor([1e-8])], None, 0.1)
    assert_close(stepped[0], tensor([0.95]))
    tensors, history = (
        [randn(2, 2), randn(3)],
        [[randn(2, 2), randn(3)] for _ in range(2)],
    )
    mine, state = tensors, None
    for gradients in history:
        mine, state = _step(student, mine, gradients, state, 0.05)
    theirs = _torchs(
        tensors, history, lr=0.05, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1
    )
    for own, other in zip(mine, theirs, strict=True):
        assert_close(own, other)


@points(1)
def test_nothing_that_came_in_is_changed(student):
    """The second step is made twice from the same state: the same parameters come out; and other
    ones where any argument is another.
    """
    tensors, gradients = [randn(2, 2), randn(3)], [randn(2, 2), randn(3)]
    stepped, state = _step(student, tensors, gradients, None, 0.1)
    assert_unchanged()
    stepped = [t.detach() for t in stepped]
    first, _ = call_twice(student.adamw_step, stepped, gradients, state, 0.1)
    for new, old in zip(first, stepped, strict=True):
        moved = float((new - old).abs().max())
        assert 1e-3 < moved < 1.0, (
            f"A parameter moves by {moved:.3g} in the second step."
        )
    other = [2 * t for t in stepped]
    later = {**state, "m": [2 * m for m in state["m"]]}
    calls = [
        ((stepped, gradients, state, 0.1), {}),
        ((other, gradients, state, 0.1), {}),
        ((stepped, other, state, 0.1), {}),
        ((stepped, gradients, later, 0.1), {}),
        ((stepped, gradients, state, 0.2), {}),
        ((stepped, gradients, state, 0.1), {"betas": (0.5, 0.6)}),
        ((stepped, gradients, state, 0.1), {"eps": 0.5}),
        ((stepped, gradients, state, 0.1), {"weight_decay": 0.5}),
        ((stepped, gradients, state, 0.1), {}),
    ]
    answers = [
        str(_step(student, *given, **settings)[0][0].tolist())
        for given, settings in calls
    ]
    assert answers[-1] == answers[0], "The first call, made again, has another answer."
    assert len(set(answers)) == len(calls) - 1, (
        "Two calls that differ in one argument have the same answer."
    )


@points(0.75)
def test_lists_of_different_lengths_are_refused(student):
    """Five tensors and seven gradients, or seven and five: ValueError with both numbers."""
    stepped, _ = _step(
        student, [tensor([1.0])], [tensor([0.0])], None, 0.1, weight_decay=0.0
    )
    assert_close(stepped[0], tensor([1.0]))
    for tensors, gradients in ((5, 7), (7, 5)):
        given = [zeros(2)] * tensors, [zeros(2)] * gradients
        assert_refused(
            student.adamw_step, *given, None, 0.1, sizes=(tensors, gradients)
        )
