"""sample_windows: runs of the text and what follows them, from every start."""

import torch

from autograder.suite import assert_close, assert_refused, call_twice, points, randperm

from .dice import dice_left_alone


def _windows(student, ids, batch, length, seed=0):
    answer = student.sample_windows(ids, batch, length, seed)
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    tensors = pair and all(isinstance(part, torch.Tensor) for part in answer)
    assert tensors, "sample_windows should return a pair of tensors, (inputs, targets)."
    for name, part in zip(("inputs", "targets"), answer, strict=True):
        shaped = part.dtype == torch.int64 and list(part.shape) == [batch, length]
        assert shaped, (
            f"{name} should be int64 {[batch, length]}, and is {part.dtype} {list(part.shape)}."
        )
    return answer


@points(1.5)
def test_windows_are_runs_of_the_text_and_targets_follow(student):
    """A text in which each id occurs once, so that every window can be found in it."""
    ids = 100 + randperm(30)
    inputs, targets = _windows(student, ids, 50, 6)
    place = torch.full((130,), -1)
    place[ids] = torch.arange(30)
    inside = bool(((inputs >= 100) & (inputs < 130)).all())
    assert inside, "there are ids in the inputs that are not in the text."
    starts = place[inputs[:, :1]]
    assert bool((starts <= 23).all()), (
        "a window begins where there is no target for its last token any more."
    )
    assert_close(
        inputs,
        ids[starts + torch.arange(6)],
        what="each row, read on from its first token in the text,",
    )
    assert_close(targets, ids[starts + torch.arange(1, 7)], what="targets")


@points(1.5)
def test_every_start_is_equally_likely(student):
    """A text of ten tokens, windows of three: starts 0 to 6, each about 1000 times in 7000 rows."""
    starts = torch.cat(
        [
            _windows(student, torch.arange(10), 1400, 3, seed)[0][:, 0]
            for seed in range(5)
        ]
    )
    counts = torch.bincount(starts.clamp(0, 9), minlength=10).tolist()
    assert counts[7:] == [0, 0, 0], (
        "a window begins at the end of the text, without a target for its last token."
    )
    least, most = min(counts[:7]), max(counts[:7])
    assert 850 < least <= most < 1150, (
        f"one start comes {least} times and another {most} times in 7000."
    )


@points(1)
def test_the_same_seed_gives_the_same_windows(student):
    """And another seed gives others. Rows of a batch are different, too."""
    ids = torch.arange(1000)
    inputs, _ = _windows(student, ids, 8, 5, seed=3)
    again, _ = call_twice(student.sample_windows, ids, 8, 5, 3)
    assert_close(again, inputs.detach(), what="inputs")
    other, _ = _windows(student, ids, 8, 5, seed=4)
    assert bool((other != inputs).any()), "seeds 3 and 4 give the same windows."
    for batch, length in ((9, 5), (8, 6)):
        _windows(student, ids, batch, length, seed=3)
    later, _ = _windows(student, 1000 + ids, 8, 5, seed=3)
    assert int(later.min()) >= 1000, "another text gives the windows of the first."
    starts = _windows(student, ids, 400, 5)[0][:, 0]
    steps = (starts[1:] - starts[:-1]).unique(return_counts=True)[1]
    assert int(steps.max()) < 100, (
        "each row should draw a start of its own: where one begins tells where the next does."
    )
    assert len(starts.unique()) < 400, (
        "no two of 400 rows begin at the same of 995 places: draw each start from all places."
    )


@points(0.5)
def test_nobody_elses_dice_are_moved(student):
    """torch's own dice fall the same way whether windows were drawn in between or not."""
    with dice_left_alone(student):
        inputs, targets = _windows(student, torch.arange(50), 4, 5)
        assert_close(targets, inputs.detach() + 1, what="targets")


@points(0.5)
def test_texts_that_are_too_short_are_refused(student):
    """Six tokens are enough for one window of five and its targets; five are not. One window of one
    token is one.
    """
    _windows(student, torch.arange(6), 1, 1)
    inputs, targets = _windows(student, torch.arange(6), 3, 5)
    assert_close(
        torch.stack([inputs, targets]),
        torch.stack([torch.arange(5).expand(3, 5), torch.arange(1, 6).expand(3, 5)]),
    )
    assert_refused(student.sample_windows, torch.arange(5), 3, 5, 0, sizes=(5,))
    assert_refused(student.sample_windows, torch.arange(9), 0, 5, 0, sizes=(0,))
    assert_refused(student.sample_windows, torch.arange(9), 3, 0, 0, sizes=(0,))
