"""A model for tests of loops: its logits follow from the tokens that lie in the cache, and from
nothing else.
"""

import inspect

import torch


def logits_of(text, vocab_size, scale=2.0):
    """Logits [V] of the token behind a text, a float64 tensor [n]: any token changes them."""
    places = torch.arange(1, len(text) + 1, dtype=torch.float64)
    mixed = ((text + 1) * torch.sin(1.3 * places * (text + 2))).sum() + 0.37 * len(text)
    ids = torch.arange(1, vocab_size + 1, dtype=torch.float64)
    return scale * torch.sin(ids * (mixed + 0.1 * ids))


class make_step:  # noqa: N801 - a class that is called like a function
    """A step of the toy model: keys are token ids. `fed` is None, or has what each step was given."""

    def __init__(self, cache, vocab_size, scale, fed=None):
        self.cache, self.vocab_size, self.scale, self.fed = (
            cache,
            vocab_size,
            scale,
            fed,
        )

    def __call__(self, chunks):
        if self.fed is not None:
            self.fed.append([[int(token) for token in new] for _, new in chunks])
        rows = []
        for name, new in chunks:
            ids = torch.tensor([int(token) for token in new], dtype=torch.float64).view(
                1, -1, 1
            )
            self.cache.append(name, 0, ids, ids)
            self.cache.advance(name, ids.shape[1])
            text = self.cache.gather(name, 0)[0].flatten()
            rows.append(logits_of(text, self.vocab_size, self.scale))
        return torch.stack(rows)


STEP = inspect.getsource(logits_of) + "\n\n" + inspect.getsource(make_step)
"""Runs beside the student's code, on the cache that the loop was given."""


def setting(student, num_blocks, vocab_size=7, scale=2.0, fed=None):
    """(cache, step) in the worker."""
    cache = student.PagedCache(1, num_blocks, 2, 1, 1, torch.float64)
    return cache, student.define(STEP, "make_step")(cache, vocab_size, scale, fed)


def alone(prompt, max_new, eos_id=None, vocab_size=7):
    """The new tokens of a greedy text that nobody shares a batch with."""
    text = list(prompt)
    for _ in range(max_new):
        row = logits_of(torch.tensor(text, dtype=torch.float64), vocab_size)
        text.append(int(row.argmax()))
        if text[-1] == eos_id:
            break
    return text[len(prompt) :]
