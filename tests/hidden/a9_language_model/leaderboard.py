"""Bits a byte of a text that students never get, by weights that they trained.

`held_out.txt` holds sonnets of William Shakespeare (1609, in the public domain), in ASCII. No line
of it stands in the text that students train on. Take another text each year.
"""

import math
from pathlib import Path

import torch

from autograder.leaderboard import NotRanked, measure

TEXT = Path(__file__).with_name("held_out.txt").read_bytes()
MOST_FLOPS = 4_000_000
"""Operations that the model may take for a byte of the text. The notebook's own model takes less
than a fifth of them.
"""
LONGEST_TOKEN = 256
LONGEST_WINDOW = 256
ROWS = 8
"""Windows that one call predicts."""
PLACES = 3
"""Places in each call's windows at which a second worker predicts too. Which they are follows from
a hash of the suite, so nobody can look ahead at the others alone.
"""
SAME = 1e-3
"""How far logarithms of probabilities of two calls may be apart by rounding."""


@measure(
    "bits a byte of a text that nobody has seen",
    unit="bits a byte",
    needs=("bpe_encode", "language_model"),
    weights=True,
    decimals=3,
)
def held_out_bits(entrant):
    """How well the student's model, with the student's weights, predicts the text."""
    params, merges, sizes = read_model(entrant.weights)
    ids = encode(entrant, merges)
    lengths = token_lengths(merges)
    window = min(sizes.context_length, LONGEST_WINDOW)
    nats, flops = 0.0, 0
    again = entrant.start_again()
    for number, rows in enumerate(windows(ids, window)):
        read, targets = rows[:, :-1], rows[:, 1:]
        logits, cost = entrant.student.counted("language_model", read, params, sizes)
        flops += cost.flops
        predicted = log_probabilities(logits, read, len(lengths))
        check_causal(again, read, params, sizes, predicted, entrant.seed + number)
        nats -= float(predicted.gather(-1, targets[..., None]).sum())
    num_bytes = sum(lengths[token] for token in ids[1:].tolist())
    if flops > MOST_FLOPS * num_bytes:
        raise NotRanked(
            f"{flops / num_bytes:,.0f} operations a byte; {MOST_FLOPS:,} are allowed"
        )
    return nats / math.log(2) / num_bytes


def read_model(weights):
    """Parameters, merges and sizes, as the notebook saves them."""
    params, merges = weights.tensors.get("params"), weights.tensors.get("merges")
    if not isinstance(params, dict) or not isinstance(merges, torch.Tensor):
        raise NotRanked("the weights have no `params` and `merges`")
    if merges.ndim != 2 or merges.shape[1] != 2 or merges.is_floating_point():
        raise NotRanked(
            f"`merges` is no list of pairs of ids: its shape is {list(merges.shape)}"
        )
    context = getattr(weights.settings, "context_length", None)
    if type(context) is not int or context < 1:
        raise NotRanked("the settings have no context_length")
    return params, [tuple(pair) for pair in merges.tolist()], weights.settings


def token_lengths(merges):
    """How many bytes each id stands for."""
    lengths = [1] * 256
    for left, right in merges:
        if not (0 <= left < len(lengths) and 0 <= right < len(lengths)):
            raise NotRanked(
                f"a merge joins ids that are not there yet: {left} and {right}"
            )
        lengths.append(lengths[left] + lengths[right])
        if lengths[-1] > LONGEST_TOKEN:
            raise NotRanked(f"a token stands for more than {LONGEST_TOKEN} bytes")
    return lengths


def encode(entrant, merges):
    """The text as the student's ids, which must stand for the text and nothing else."""
    ids = entrant.student.bpe_encode(
        torch.tensor(list(TEXT), dtype=torch.uint8), merges
    )
    if not isinstance(ids, torch.Tensor) or ids.dtype != torch.int64 or ids.ndim != 1:
        raise NotRanked("`bpe_encode` gives no int64 ids of one axis")
    if len(ids) < 2 or len(ids) > len(TEXT):
        raise NotRanked(f"`bpe_encode` gives {len(ids)} ids for {len(TEXT)} bytes")
    if not 0 <= int(ids.min()) <= int(ids.max()) < 256 + len(merges):
        raise NotRanked("`bpe_encode` gives ids that are none of the vocabulary's")
    parts = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        parts.append(parts[left] + parts[right])
    if b"".join(parts[token] for token in ids.tolist()) != TEXT:
        raise NotRanked("what `bpe_encode` gives does not stand for the text")
    return ids


def windows(ids, window):
    """Rows [R, window + 1] that overlap by one token, so that each token but the first is predicted
    once; the last row is shorter.
    """
    starts = range(0, len(ids) - 1, window)
    rows = [ids[start : start + window + 1] for start in starts]
    whole = [row for row in rows if len(row) == window + 1]
    for at in range(0, len(whole), ROWS):
        yield torch.stack(whole[at : at + ROWS])
    if len(rows) > len(whole):
        yield rows[-1][None]


def log_probabilities(logits, read, size):
    """Logarithms of probabilities [R, N, V] in float64."""
    if not isinstance(logits, torch.Tensor) or logits.shape != (*read.shape, size):
        raise NotRanked(
            f"`language_model` gives no logits of shape {[*read.shape, size]}"
        )
    return torch.log_softmax(logits.detach().double(), dim=-1)


def check_causal(student, read, params, sizes, predicted, seed):
    """A second worker, which never sees the tokens after a place, predicts the same there."""
    generator = torch.Generator().manual_seed(seed)
    for place in torch.randint(read.shape[1], (PLACES,), generator=generator).tolist():
        seen = read[:, : place + 1]
        logits = student.language_model(seen, params, sizes)
        expected = log_probabilities(logits, seen, predicted.shape[-1])[:, place]
        if not bool(((expected - predicted[:, place]).abs() <= SAME).all()):
            raise NotRanked(
                "what the model predicts depends on later tokens, or is not the same in two calls"
            )
