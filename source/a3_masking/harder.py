"""Harder inputs of assignment 3: what holds of every call that its docstrings allow."""

import math

import torch

from autograder.student_tools.harder_inputs import about, holds, refused
from autograder.student_tools.slow_definitions import dot_product, mixed_number, shares_of

WITHOUT = {}

about("simple_self_attention")
about("self_attention", refuses="w_q.0 w_q.1 w_k.0 w_k.1 w_v.0 x.-1")
about("cross_attention", refuses="x_q.-1 x_kv.-1 w_q.0 w_q.1 w_k.0 w_k.1 w_v.0")
about("causal_mask")
about("padding_mask")
about("combine_masks")
about("masked_softmax")
about("masked_attention", refuses="q.-1 k.-1 k.-2")
about("sinusoidal_positions")
about("is_permutation_equivariant", refuses="perm.0")
about("first_leak")
about("product_mask_evidence")


def _last(x):
    """The last of all leading axes: rows as lists."""
    return x.reshape(-1, *x.shape[-2:])[-1].tolist()


def _times(row, matrix):
    return [dot_product(row, column.tolist()) for column in matrix.T]


@holds("simple_self_attention", "One number of a token in the middle, by loops: it sees itself and those before.")
def one_causal_number(simple_self_attention, x):
    rows, place = _last(x), (x.shape[-2] - 1) // 2
    seen = rows[: place + 1]
    right = mixed_number(rows[place], seen, [row[-1] for row in seen], scale=1.0)
    return float(simple_self_attention(x).reshape(-1, *x.shape[-2:])[-1, place, -1]), right


@holds("simple_self_attention", "The first token stays as it is, and later tokens change nothing for it.")
def first_token_stays(simple_self_attention, x):
    return simple_self_attention(x)[..., 0, :], x[..., 0, :]


@holds("simple_self_attention", "The beginning alone gives the beginning of the answer.")
def beginning_alone(simple_self_attention, x):
    half = (x.shape[-2] + 1) // 2
    return simple_self_attention(x)[..., :half, :], simple_self_attention(x[..., :half, :])


@holds("self_attention", "One number of the answer, by loops over single numbers.")
def one_number(self_attention, x, w_q, w_k, w_v):
    rows = _last(x)
    keys = [_times(row, w_k) for row in rows]
    column = [dot_product(row, w_v[:, -1].tolist()) for row in rows]
    right = mixed_number(_times(rows[-1], w_q), keys, column)
    answer = self_attention(x, w_q, w_k, w_v)
    return float(answer.reshape(-1, x.shape[-2], w_v.shape[1])[-1, -1, -1]), right


@holds("self_attention", "Tokens in another order have the same answers in that order.")
def order_of_tokens(self_attention, x, w_q, w_k, w_v):
    answer = self_attention(x, w_q, w_k, w_v)
    return self_attention(x.flip(-2), w_q, w_k, w_v), answer.flip(-2)


@holds("cross_attention", "One number of the answer, by loops over single numbers.")
def one_crossed_number(cross_attention, x_q, x_kv, w_q, w_k, w_v):
    rows = _last(x_kv)
    keys = [_times(row, w_k) for row in rows]
    column = [dot_product(row, w_v[:, -1].tolist()) for row in rows]
    right = mixed_number(_times(_last(x_q)[0], w_q), keys, column)
    answer = cross_attention(x_q, x_kv, w_q, w_k, w_v)
    return float(answer.reshape(-1, x_q.shape[-2], w_v.shape[1])[-1, 0, -1]), right


@holds("cross_attention", "Shuffled keys change nothing; shuffled queries shuffle the answer.")
def who_asks_whom(cross_attention, x_q, x_kv, w_q, w_k, w_v):
    answer = cross_attention(x_q, x_kv, w_q, w_k, w_v)
    return cross_attention(x_q.flip(-2), x_kv.flip(-2), w_q, w_k, w_v), answer.flip(-2)


@holds("causal_mask", "The last query sees every key, and each query before it one fewer, but never less than none.")
def staircase(causal_mask, n_q, n_k=None):
    allowed = causal_mask(n_q, n_k)
    keys = n_q if n_k is None else n_k
    if allowed.shape != (n_q, keys) or allowed.dtype != torch.bool:
        return False
    counts = [sum(row) for row in allowed.tolist()]
    first = all(row[:count] == [True] * count for row, count in zip(allowed.tolist(), counts))
    return first and counts == [max(keys - above, 0) for above in reversed(range(n_q))]


@holds("causal_mask", "Negative sizes are refused.")
def negative_sizes(causal_mask, n_q, n_k=None):
    return refused(causal_mask, -1, n_k) and refused(causal_mask, n_q, -1)


@holds("padding_mask", "Each row has as many True as its length, and they come first.")
def lengths_are_counted(padding_mask, lengths, n):
    allowed = padding_mask(lengths, n)
    if allowed.shape != (len(lengths), 1, n) or allowed.dtype != torch.bool:
        return False
    return [row[0] for row in allowed.tolist()] == [
        [True] * length + [False] * (n - length) for length in lengths.tolist()
    ]


@holds("padding_mask", "A length below 0, or above n, is refused.")
def lengths_outside(padding_mask, lengths, n):
    return refused(padding_mask, lengths - n - 1, n) and refused(padding_mask, lengths + n + 1, n)


@holds("combine_masks", "Masks in another order, or one of them twice, give the same.")
def order_of_masks(combine_masks, *masks):
    return combine_masks(*masks[::-1], masks[0]), combine_masks(*masks)


@holds("combine_masks", "Where it allows, each mask allows, and where it does not, one of them does not.")
def what_all_allow(combine_masks, *masks):
    together = combine_masks(*masks)
    shape = torch.broadcast_shapes(*(mask.shape for mask in masks))
    if together.shape != shape or together.dtype != torch.bool:
        return False
    votes = torch.stack([mask.expand(shape) for mask in masks]).sum(dim=0)
    return together, votes == len(masks)


@holds("combine_masks", "No mask at all, and masks that do not fit, are refused.")
def masks_that_do_not_fit(combine_masks, *masks):
    wide = torch.ones(masks[0].shape[-1] + 7).bool()
    return refused(combine_masks) and (masks[0].shape[-1] == 1 or refused(combine_masks, masks[0], wide))


@holds("masked_softmax", "Allowed keys sum to 1, rows without a key to 0, and forbidden keys get exactly 0.")
def shares_of_the_allowed(masked_softmax, scores, mask):
    if (scores.isnan() & mask).any():
        return None
    weights = masked_softmax(scores, mask)
    allowed = mask.expand(scores.shape)
    is_zero = (weights[~allowed] == 0).all()
    return weights.sum(dim=-1) * is_zero, allowed.any(dim=-1).double()


@holds("masked_softmax", "One weight of the last row, by loops over single numbers.")
def one_share(masked_softmax, scores, mask):
    row = scores.reshape(-1, scores.shape[-1])[-1].tolist()
    allowed = mask.expand(scores.shape).reshape(-1, scores.shape[-1])[-1].tolist()
    left = [score for score, is_allowed in zip(row, allowed) if is_allowed]
    if not allowed[-1] or not all(map(math.isfinite, left)):
        return None
    return float(masked_softmax(scores, mask).reshape(-1)[-1]), shares_of(left)[-1]


@holds("masked_softmax", "What the forbidden scores are changes nothing.")
def forbidden_scores(masked_softmax, scores, mask):
    others = torch.where(mask, scores, torch.full_like(scores, 1e30))
    return masked_softmax(others, mask), masked_softmax(scores, mask)


@holds("masked_softmax", "Gradients are finite, in rows without a key too.")
def finite_gradients(masked_softmax, scores, mask):
    if not scores[mask.expand(scores.shape)].isfinite().all():
        return None
    scores = scores.clone().requires_grad_()
    weights = masked_softmax(scores, mask)
    if weights.requires_grad:
        weights.square().sum().backward()
    return scores.grad is None or bool(scores.grad.isfinite().all())


@holds("masked_softmax", "A mask that does not fit is refused.")
def a_mask_too_wide(masked_softmax, scores, mask):
    return refused(masked_softmax, scores, torch.ones(scores.shape[-1] + 2).bool())


@holds("masked_softmax", "NaN in an allowed score stays NaN in its row.")
def nan_is_seen(masked_softmax, scores, mask):
    broken = torch.full_like(scores, torch.nan)
    return bool(masked_softmax(broken, mask | True).isnan().all())


@holds("masked_attention", "One number of the last query, by loops: only allowed keys count.")
def one_masked_number(masked_attention, q, k, v, mask=None):
    answer = masked_attention(q, k, v, mask).reshape(-1, q.shape[-2], v.shape[-1])
    column = [row[-1] for row in _last(v)]
    allowed = []
    if mask is not None:
        allowed = _last(mask.expand(*q.shape[:-1], k.shape[-2]))[-1]
    return float(answer[-1, -1, -1]), mixed_number(_last(q)[-1], _last(k), column, allowed)


@holds("masked_attention", "Keys and values, and the mask's columns, in another order change nothing.")
def order_of_keys(masked_attention, q, k, v, mask=None):
    turned = None if mask is None else mask.flip(-1)
    answer = masked_attention(q, k, v, mask)
    return masked_attention(q, k.flip(-2), v.flip(-2), turned), answer


@holds("masked_attention", "Without an allowed key the answer is zeros, and gradients are finite.")
def nobody_is_heard(masked_attention, q, k, v, mask=None):
    nothing = torch.zeros(q.shape[-2], k.shape[-2]).bool()
    q = q.clone().requires_grad_()
    answer = masked_attention(q, k, v, nothing)
    if answer.requires_grad:
        answer.sum().backward()
    return not answer.any() and (q.grad is None or bool(q.grad.isfinite().all()))


@holds("masked_attention", "A mask that does not fit is refused.")
def masks_of_other_sizes(masked_attention, q, k, v, mask=None):
    return refused(masked_attention, q, k, v, torch.ones(q.shape[-2], k.shape[-2] + 2).bool())


@holds("sinusoidal_positions", "One number, by the docstring's formula, in float32.")
def one_wave(sinusoidal_positions, n, d):
    waves = sinusoidal_positions(n, d)
    if waves.shape != (n, d) or waves.dtype != torch.float32:
        return False
    if not n:
        return None
    angle = (n - 1) / 10000 ** (2 * ((d - 1) // 2) / d)
    right = math.sin(angle) if d % 2 else math.cos(angle)
    return abs(float(waves[-1, -1]) - right) < 1e-5


@holds("sinusoidal_positions", "Sine and cosine of a pair lie on a circle; row 0 is 0, 1, 0, 1, …")
def on_circles(sinusoidal_positions, n, d):
    waves = sinusoidal_positions(n, d).double()
    pairs = waves[:, : d // 2 * 2].reshape(n, d // 2, 2).square().sum(dim=-1)
    start = waves[:1].reshape(-1)
    right = (torch.arange(len(start)) % 2).double()
    return [pairs, start], [torch.ones_like(pairs), right]


@holds("sinusoidal_positions", "More positions begin like fewer, and turn on at the same speed.")
def same_beginning(sinusoidal_positions, n, d):
    long = sinusoidal_positions(n + 40, d)
    turned = 2 * long[1, 0::2][: d // 2] * long[1, 1::2]
    return [long[:n], long[2, 0::2][: d // 2]], [sinusoidal_positions(n, d), turned]


@holds("sinusoidal_positions", "Negative positions, and no features, are refused.")
def impossible_tables(sinusoidal_positions, n, d):
    return refused(sinusoidal_positions, -1, d) and refused(sinusoidal_positions, n, 0)


@holds("is_permutation_equivariant", "A Python bool; what works row by row commutes, what counts rows does not.")
def known_functions(is_permutation_equivariant, fn, x, perm):
    is_moved = not torch.equal(perm, torch.arange(len(perm)))
    alike = is_permutation_equivariant(lambda rows: 3 * rows - 1, x, perm)
    counts = is_permutation_equivariant(lambda rows: rows + 1e3 * torch.arange(len(rows))[:, None], x, perm)
    return alike is True and counts is (not is_moved)


@holds("is_permutation_equivariant", "The size of the outputs changes nothing.")
def size_of_outputs(is_permutation_equivariant, fn, x, perm):
    return all(
        is_permutation_equivariant(lambda rows, s=size: s * fn(rows), x, perm)
        is is_permutation_equivariant(fn, x, perm)
        for size in (1e-9, 1e9)
    )


@holds("is_permutation_equivariant", "It says what one look at fn(x[perm]) and fn(x)[perm] says, and asks for no other size.")
def one_look(is_permutation_equivariant, fn, x, perm):
    def watched(rows):
        assert rows.shape == x.shape
        return fn(rows)

    before, after = fn(x[perm]), fn(x)[perm]
    is_near = float((before - after).abs().max()) <= 1e-6 * float(fn(x).abs().max())
    return is_permutation_equivariant(watched, x, perm) is is_near


def _leaking_at(row, size):
    """A function whose row `row` alone takes something from the last token."""

    def leak(x):
        moved = size * x.clone()
        moved[row] = moved[row] + size * x[-1]
        return moved

    return leak


@holds("first_leak", "A function that leaks at one row only leaks there, whatever its size.")
def leak_at_a_row(first_leak, fn, x):
    for row in {0, len(x) // 2, len(x) - 1}:
        for size in (1e-6, 1.0, 1e6):
            if first_leak(_leaking_at(row, size), x) != (row if row < len(x) - 1 else None):
                return False
    return True


@holds("first_leak", "Causal functions leak nowhere; what looks at all rows leaks at the first.")
def known_leaks(first_leak, fn, x):
    everywhere = 0 if len(x) > 1 else None
    causal = (torch.cumsum, torch.cumprod)
    are_tight = all(first_leak(lambda rows, f=f: f(rows, 0), x) is None for f in causal)
    return are_tight and first_leak(lambda rows: rows - rows.mean(dim=0), x) == everywhere


@holds("first_leak", "Steps count as leaks too: fn need not be differentiable, and takes this size only.")
def steps_leak(first_leak, fn, x):
    if len(x) < 2:
        return None

    def ranks(rows):
        assert rows.shape == x.shape
        later = torch.cat([rows[1:], rows[:1] * 0])
        return torch.floor(1e3 * later)

    return first_leak(ranks, x) == 0


@holds("product_mask_evidence", "The three products are fine, infinite, and not a number.")
def three_products(product_mask_evidence, n):
    matrices = product_mask_evidence(n)
    causal = torch.ones(n, n).tril().bool()
    factor = torch.where(causal, 1.0, -torch.inf).double()
    if any(m.shape != (n, n) or not m.isfinite().all() for m in matrices):
        return False
    fine, one_way, other_way = (m.double() * factor for m in matrices)
    rows = [shares_of([s for s, seen in zip(row, see) if seen]) for row, see in zip(matrices[0].tolist(), causal.tolist())]
    meant = torch.tensor([row + [0.0] * (n - len(row)) for row in rows]).double()
    is_fine = torch.allclose(torch.softmax(fine, dim=-1), meant, atol=1e-5)
    has_infinity = bool((one_way == torch.inf).any()) and not one_way.isnan().any()
    return bool(is_fine and has_infinity and other_way.isnan().any()) and not (other_way == torch.inf).any()
