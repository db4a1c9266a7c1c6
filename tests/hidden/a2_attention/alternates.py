"""Right answers to assignment 2 that are really written differently from the answer key."""

from autograder.suite import alternate

# ----------------------------------------------------------------------------------------------
# rnn_encode


def _refuse_unless(fits, *tensors):
    if not fits:
        raise ValueError(
            "sizes do not match: " + ", ".join(str(tuple(t.shape)) for t in tensors)
        )


def _rnn_fits(x, w_x, w_h, b, h0):
    h = w_h.shape[1]
    return (
        w_x.shape == (x.shape[2], h)
        and w_h.shape == (h, h)
        and b.shape == (h,)
        and h0.shape == (x.shape[0], h)
    )


@alternate("rnn_encode")
def projects_all_words_before_the_loop(x, w_x, w_h, b, h0):
    _refuse_unless(_rnn_fits(x, w_x, w_h, b, h0), x, w_x, w_h, b, h0)
    projected = x @ w_x + b
    rows = [h0]
    for step in projected.unbind(dim=1):
        rows.append((step + rows[-1] @ w_h).tanh())
    return torch.stack(rows[1:], dim=1), rows[-1]


@alternate("rnn_encode")
def one_matrix_for_word_and_state(x, w_x, w_h, b, h0):
    _refuse_unless(_rnn_fits(x, w_x, w_h, b, h0), x, w_x, w_h, b, h0)
    both = torch.cat([w_x, w_h], dim=0)
    h, columns = h0, []
    for t in range(x.size(1)):
        h = torch.tanh(torch.addmm(b, torch.cat([x[:, t, :], h], dim=1), both))
        columns.append(h.unsqueeze(1))
    return torch.cat(columns, dim=1), h


@alternate("rnn_encode")
def sentence_by_sentence(x, w_x, w_h, b, h0):
    _refuse_unless(_rnn_fits(x, w_x, w_h, b, h0), x, w_x, w_h, b, h0)
    sentences = []
    for words, h in zip(x, h0):
        rows = []
        for word in words:
            h = torch.tanh(w_x.T @ word + w_h.T @ h + b)
            rows.append(h)
        sentences.append(torch.stack(rows))
    states = torch.stack(sentences)
    return states, states[:, -1]


@alternate("rnn_encode")
def writes_into_a_buffer(x, w_x, w_h, b, h0):
    _refuse_unless(_rnn_fits(x, w_x, w_h, b, h0), x, w_x, w_h, b, h0)
    states = x.new_zeros(x.shape[0], x.shape[1], w_h.shape[0])
    h = h0
    for t in range(x.shape[1]):
        h = torch.tanh(
            torch.einsum("bd,dh->bh", x[:, t], w_x)
            + torch.einsum("bg,gh->bh", h, w_h)
            + b
        )
        states[:, t] = h
    return states, h


# -----------------------------------------------------------------------------------------
# additive_scores


def _additive_fits(state, states, w_state, w_states, v):
    return (
        w_state.shape == (state.shape[-1], len(v))
        and w_states.shape == (states.shape[-1], len(v))
        and len(state) == len(states)
    )


@alternate("additive_scores")
def scores_by_einsum(state, states, w_state, w_states, v):
    _refuse_unless(
        _additive_fits(state, states, w_state, w_states, v),
        state,
        states,
        w_state,
        w_states,
        v,
    )
    asked = torch.einsum("bs,sa->ba", state, w_state)
    offered = torch.einsum("bth,ha->bta", states, w_states)
    return torch.einsum("bta,a->bt", (asked[:, None, :] + offered).tanh(), v)


@alternate("additive_scores")
def scores_by_one_concatenated_matrix(state, states, w_state, w_states, v):
    _refuse_unless(
        _additive_fits(state, states, w_state, w_states, v),
        state,
        states,
        w_state,
        w_states,
        v,
    )
    pairs = torch.cat([state[:, None].expand(-1, states.shape[1], -1), states], dim=-1)
    return (torch.tanh(pairs @ torch.cat([w_state, w_states])) * v).sum(dim=-1)


@alternate("additive_scores")
def scores_sentence_by_sentence(state, states, w_state, w_states, v):
    _refuse_unless(
        _additive_fits(state, states, w_state, w_states, v),
        state,
        states,
        w_state,
        w_states,
        v,
    )
    return torch.stack(
        [torch.tanh(s @ w_state + h @ w_states) @ v for s, h in zip(state, states)]
    )


@alternate("additive_scores")
def scores_with_positions_in_front(state, states, w_state, w_states, v):
    _refuse_unless(
        _additive_fits(state, states, w_state, w_states, v),
        state,
        states,
        w_state,
        w_states,
        v,
    )
    by_position = states.transpose(0, 1) @ w_states
    return (
        torch.matmul(torch.tanh(by_position + state @ w_state), v.unsqueeze(-1))
        .squeeze(-1)
        .T
    )


# --------------------------------------------------------------------------------------------------
# attend


@alternate("attend")
def weights_by_torch_softmax(scores, states):
    _refuse_unless(scores.shape == states.shape[:2], scores, states)
    weights = torch.softmax(scores, dim=1)
    return torch.bmm(weights[:, None], states)[:, 0], weights


@alternate("attend")
def weights_by_logsumexp(scores, states):
    _refuse_unless(scores.shape == states.shape[:2], scores, states)
    wide = scores.float() if scores.dtype == torch.float16 else scores
    weights = torch.exp(wide - torch.logsumexp(wide, dim=-1, keepdim=True)).to(
        scores.dtype
    )
    return torch.einsum("bt,bth->bh", weights, states), weights


@alternate("attend")
def attends_sentence_by_sentence(scores, states):
    _refuse_unless(scores.shape == states.shape[:2], scores, states)
    weights = torch.stack([softmax(row) for row in scores])
    return torch.stack([h.T @ a for a, h in zip(weights, states)]), weights


@alternate("attend")
def attends_in_float32(scores, states):
    _refuse_unless(scores.shape == states.shape[:2], scores, states)
    weights = scores.float().softmax(-1)
    context = (weights.unsqueeze(-1) * states.float()).sum(dim=-2)
    return context.to(states.dtype), weights.to(scores.dtype)


# ------------------------------------------------------------------------------------------
# seq2seq_decode


def _decode_fits(states, s0, targets, p):
    return p["w_y"].shape == (targets.shape[-1], s0.shape[-1]) and len(states) == len(
        s0
    ) == len(targets)


@alternate("seq2seq_decode")
def shifts_all_words_first(states, s0, targets, params):
    _refuse_unless(
        _decode_fits(states, s0, targets, params), states, s0, targets, params["w_y"]
    )
    words = (
        torch.cat(
            [targets.new_zeros(targets.shape[0], 1, targets.shape[2]), targets], dim=1
        )[:, :-1]
        @ params["w_y"]
    )
    s, outputs = s0, []
    for word in words.unbind(1):
        context, weights = attend(
            additive_scores(
                s, states, params["w_state"], params["w_states"], params["v"]
            ),
            states,
        )
        s = (word + context @ params["w_c"] + s @ params["w_s"] + params["b"]).tanh()
        outputs.append((s, weights))
    return torch.stack([o[0] for o in outputs], 1), torch.stack(
        [o[1] for o in outputs], 1
    )


@alternate("seq2seq_decode")
def projects_the_source_once(states, s0, targets, params):
    _refuse_unless(
        _decode_fits(states, s0, targets, params), states, s0, targets, params["w_y"]
    )
    w_state, w_states, v, w_y, w_c, w_s, b = (
        params[name] for name in ("w_state", "w_states", "v", "w_y", "w_c", "w_s", "b")
    )
    offered, mixed = states @ w_states, states @ w_c
    hidden, weights, s = [], [], s0
    for t in range(targets.shape[1]):
        a = torch.softmax(torch.tanh((s @ w_state)[:, None] + offered) @ v, dim=-1)
        z = torch.einsum("bt,bts->bs", a, mixed) + s @ w_s + b
        if t > 0:
            z = z + targets[:, t - 1] @ w_y
        s = torch.tanh(z)
        hidden.append(s)
        weights.append(a)
    return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)


@alternate("seq2seq_decode")
def decodes_sentence_by_sentence(states, s0, targets, params):
    _refuse_unless(
        _decode_fits(states, s0, targets, params), states, s0, targets, params["w_y"]
    )
    all_hidden, all_weights = [], []
    for h, s, words in zip(states, s0, targets):
        y = torch.zeros_like(words[0])
        hidden, weights = [], []
        for word in words:
            e = torch.tanh(s @ params["w_state"] + h @ params["w_states"]) @ params["v"]
            a = softmax(e)
            s = torch.tanh(
                y @ params["w_y"]
                + a @ h @ params["w_c"]
                + s @ params["w_s"]
                + params["b"]
            )
            y = word
            hidden.append(s)
            weights.append(a)
        all_hidden.append(torch.stack(hidden))
        all_weights.append(torch.stack(weights))
    return torch.stack(all_hidden), torch.stack(all_weights)


# ----------------------------------------------------------------------------------
# single_query_attention


def _single_fits(q, k, v):
    return len(q) == k.shape[1] and len(k) == len(v)


@alternate("single_query_attention")
def single_by_einsum(q, k, v):
    _refuse_unless(_single_fits(q, k, v), q, k, v)
    q, k, wide_v = (t.float() if t.dtype == torch.float16 else t for t in (q, k, v))
    a = torch.einsum("d,nd->n", q * len(q) ** -0.5, k).softmax(0)
    return torch.einsum("n,nv->v", a, wide_v).to(v.dtype)


@alternate("single_query_attention")
def single_key_by_key(q, k, v):
    _refuse_unless(_single_fits(q, k, v), q, k, v)
    wide = torch.promote_types(v.dtype, torch.float32)
    e = torch.stack(
        [torch.dot(q.to(wide), key.to(wide)) / math.sqrt(len(q)) for key in k]
    )
    shares = torch.exp(e - e.max())
    shares = shares / shares.sum()
    return sum(shares[i] * v[i].to(wide) for i in range(len(v))).to(v.dtype)


@alternate("single_query_attention")
def single_as_one_row_of_many(q, k, v):
    _refuse_unless(_single_fits(q, k, v), q, k, v)
    scores = (q[None].float() / q.shape[0] ** 0.25) @ (k.float() / q.shape[0] ** 0.25).T
    return (torch.exp(torch.log_softmax(scores, dim=1)) @ v.float())[0].to(v.dtype)


# ---------------------------------------------------------------------------------------
# attention_weights


@alternate("attention_weights")
def weights_by_einsum(q, k):
    _refuse_unless(q.shape[-1] == k.shape[-1], q, k)
    wide = torch.promote_types(q.dtype, torch.float32)
    e = torch.einsum("...qd,...kd->...qk", q.to(wide), k.to(wide)) * q.shape[-1] ** -0.5
    return torch.exp(e - torch.logsumexp(e, dim=-1, keepdim=True)).to(q.dtype)


@alternate("attention_weights")
def weights_by_flattened_bmm(q, k):
    _refuse_unless(q.shape[-1] == k.shape[-1], q, k)
    n_q, n_k, d = q.shape[-2], k.shape[-2], q.shape[-1]
    wide = torch.promote_types(q.dtype, torch.float32)
    scaled = (q.to(wide) / d**0.5).reshape(-1, n_q, d)
    e = torch.bmm(scaled, k.to(wide).reshape(-1, n_k, d).mT)
    return e.softmax(dim=2).reshape(*q.shape[:-2], n_q, n_k).to(q.dtype)


@alternate("attention_weights")
def weights_by_broadcast_products(q, k):
    _refuse_unless(q.shape[-1] == k.shape[-1], q, k)
    wide = torch.promote_types(q.dtype, torch.float32)
    e = (q.to(wide).unsqueeze(-2) * k.to(wide).unsqueeze(-3)).sum(-1) / math.sqrt(
        q.shape[-1]
    )
    e = torch.exp(e - e.max(dim=-1, keepdim=True).values)
    return e.div(e.sum(-1, keepdim=True)).to(q.dtype)


@alternate("attention_weights")
def weights_by_keys_first(q, k):
    _refuse_unless(q.shape[-1] == k.shape[-1], q, k)
    e = k.float() @ q.float().mT / math.sqrt(k.shape[-1])
    return torch.softmax(e, dim=-2).mT.to(q.dtype)


# ----------------------------------------------------------------------------
# scaled_dot_product_attention


def _attention_fits(q, k, v):
    return q.shape[-1] == k.shape[-1] and k.shape[-2] == v.shape[-2]


@alternate("scaled_dot_product_attention")
def attention_by_einsum(q, k, v):
    _refuse_unless(_attention_fits(q, k, v), q, k, v)
    return torch.einsum("...qk,...kv->...qv", attention_weights(q, k), v)


@alternate("scaled_dot_product_attention")
def attention_without_earlier_functions(q, k, v):
    _refuse_unless(_attention_fits(q, k, v), q, k, v)
    wide = torch.promote_types(q.dtype, torch.float32)
    e = torch.matmul(q.to(wide), k.to(wide).mT).div(q.shape[-1] ** 0.5)
    return torch.matmul(torch.softmax(e, dim=-1), v.to(wide)).to(v.dtype)


@alternate("scaled_dot_product_attention")
def attention_normalized_at_the_end(q, k, v):
    _refuse_unless(_attention_fits(q, k, v), q, k, v)
    wide = torch.promote_types(q.dtype, torch.float32)
    e = (q.to(wide) * q.shape[-1] ** -0.5) @ k.to(wide).mT
    p = torch.exp(e - e.amax(dim=-1, keepdim=True))
    return ((p @ v.to(wide)) / p.sum(dim=-1, keepdim=True)).to(v.dtype)


@alternate("scaled_dot_product_attention")
def attention_transposed_throughout(q, k, v):
    _refuse_unless(_attention_fits(q, k, v), q, k, v)
    return (v.mT @ attention_weights(q, k).mT).mT


# -----------------------------------------------------------------------------------------------
# score_std


def _refuse_sizes(d, num_samples):
    if d < 1:
        raise ValueError(f"d must be at least 1, not {d}")
    if num_samples < 2:
        raise ValueError(f"num_samples must be at least 2, not {num_samples}")


@alternate("score_std")
def std_by_numpy(d, num_samples, seed):
    import numpy as np

    _refuse_sizes(d, num_samples)
    draw = np.random.default_rng(seed)
    return float(
        np.std(
            np.einsum(
                "nd,nd->n",
                draw.normal(size=(num_samples, d)),
                draw.normal(size=(num_samples, d)),
            )
        )
    )


@alternate("score_std")
def std_as_root_of_the_mean_square(d, num_samples, seed):
    _refuse_sizes(d, num_samples)
    generator = torch.Generator()
    generator.manual_seed(seed)
    pairs = torch.randn(2, num_samples, d, generator=generator, dtype=torch.float64)
    return math.sqrt(pairs.prod(dim=0).sum(dim=-1).pow(2).mean().item())


@alternate("score_std")
def std_in_a_fork_of_the_global_state(d, num_samples, seed):
    _refuse_sizes(d, num_samples)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        dots = torch.stack(
            [torch.randn(d) @ torch.randn(d) for _ in range(num_samples)]
        )
    return float(dots.double().std())


# -----------------------------------------------------------------------------------
# softmax_gradient_norm


def _refuse_row(z):
    if z.dim() != 1 or z.numel() < 1:
        raise ValueError(f"one row of scores is needed, not {tuple(z.shape)}")


@alternate("softmax_gradient_norm")
def norm_by_autograd(z):
    _refuse_row(z)
    jacobian = torch.autograd.functional.jacobian(
        lambda s: torch.softmax(s, dim=-1), z.detach()
    )
    return float(torch.linalg.norm(jacobian))


@alternate("softmax_gradient_norm")
def norm_by_powers_of_p(z):
    _refuse_row(z)
    p = torch.softmax(z.double(), dim=0)
    squares = p.pow(2).sum()
    return math.sqrt(max(0.0, (squares - 2 * p.pow(3).sum() + squares**2).item()))


@alternate("softmax_gradient_norm")
def norm_entry_by_entry(z):
    _refuse_row(z)
    p = softmax(z).tolist()
    total = 0.0
    for i, p_i in enumerate(p):
        for j, p_j in enumerate(p):
            total += (p_i * ((i == j) - p_j)) ** 2
    return total**0.5


@alternate("softmax_gradient_norm")
def norm_of_a_row_told_by_its_axes(z):
    if z.ndim != 1:
        raise ValueError(f"z has {z.ndim} axes, and should have one")
    if len(z) == 0:
        raise ValueError("z is empty")
    p = torch.softmax(z, dim=0)
    return (p.diag() - p[:, None] * p[None, :]).norm().item()


# ----------------------------------------------------------------------------------------------
# compare_layers


def _refuse_layers(n, d, k, num_layers):
    if n < 1 or d < 1 or num_layers < 1 or k < 2:
        raise ValueError(
            f"nothing to compare: {n} tokens, width {d}, kernel {k}, {num_layers} layers"
        )


@alternate("compare_layers")
def walks_back_from_the_last_token(n, d, k, num_layers):
    """The convolutions are walked, one layer after the other."""
    _refuse_layers(n, d, k, num_layers)
    seen = {n - 1}
    for _ in range(num_layers):
        seen = {i - j for i in seen for j in range(k) if i - j >= 0}
    first, layers = max(0, n - k), 1  # the earliest token that one layer reaches
    while first > 0:
        first, layers = max(0, first - (k - 1)), layers + 1
    product = 2 * d * d
    return {
        "attention": {
            "operations": n * n * d * 4, "sequential_steps": 1, "receptive_field": n,
            "longest_path": 1,
        },
        "convolution": {
            "operations": sum(k * product for _ in range(n)),
            "sequential_steps": 1,
            "receptive_field": len(seen),
            "longest_path": layers,
        },
        "recurrence": {
            "operations": n * (product + product), "sequential_steps": n, "receptive_field": n,
            "longest_path": n,
        },
    }  # fmt: skip


@alternate("compare_layers")
def tables_of_who_depends_on_whom(n, d, k, num_layers):
    """Boolean tables [n, n], multiplied layer by layer."""
    _refuse_layers(n, d, k, num_layers)
    back = torch.arange(n)[:, None] - torch.arange(n)
    layer = ((back >= 0) & (back < k)).double()
    reach, path, deep = layer, None, layer
    for _ in range(num_layers - 1):
        reach = (reach @ layer).clamp(max=1)
    for depth in range(1, n + 1):
        if deep[-1, 0] > 0:
            path = depth
            break
        deep = (deep @ layer).clamp(max=1)
    rows = {
        "recurrence": (4 * n * d**2, n, n, n),
        "convolution": (2 * k * n * d**2, 1, int((reach[-1] > 0).sum()), path),
        "attention": (4 * n**2 * d, 1, n, 1),
    }
    keys = ("operations", "sequential_steps", "receptive_field", "longest_path")
    return {kind: dict(zip(keys, row, strict=True)) for kind, row in rows.items()}


@alternate("compare_layers")
def one_key_after_the_other(n, d, k, num_layers):
    _refuse_layers(n, d, k, num_layers)
    table = {
        kind: {"sequential_steps": 1, "receptive_field": n, "longest_path": 1}
        for kind in ("convolution", "attention")
    }
    table["recurrence"] = dict.fromkeys(
        ("sequential_steps", "receptive_field", "longest_path"), n
    )
    if num_layers < (n - 1) / (k - 1):
        table["convolution"]["receptive_field"] = num_layers * k - (num_layers - 1)
    if n > k:
        table["convolution"]["longest_path"] = math.ceil((n - 1) / (k - 1))
    for kind, multiply_adds in (
        ("recurrence", 2 * n * d * d),
        ("convolution", k * n * d * d),
        ("attention", 2 * n * n * d),
    ):
        table[kind]["operations"] = 2 * multiply_adds
    return table


# -------------------------------------------------------------------------------------------
# linear_scores


def _linear_fits(state, states, w):
    return w.shape == (state.shape[1] + states.shape[2],)


def _refuse_linear(state, states, w):
    if not _linear_fits(state, states, w):
        raise ValueError(
            f"w has {len(w)} entries for {state.shape[1]} + {states.shape[2]} features"
        )


@alternate("linear_scores")
def scores_of_concatenated_pairs(state, states, w, b):
    _refuse_linear(state, states, w)
    return (
        torch.cat([state[:, None].repeat(1, states.shape[1], 1), states], dim=-1) @ w
        + b
    )


@alternate("linear_scores")
def scores_by_linear_layer(state, states, w, b):
    _refuse_linear(state, states, w)
    pairs = torch.cat(
        [state.unsqueeze(1).expand(-1, states.shape[1], -1), states], dim=2
    )
    return torch.nn.functional.linear(pairs, w.unsqueeze(0), b.reshape(1)).squeeze(-1)


@alternate("linear_scores")
def scores_pair_by_pair(state, states, w, b):
    _refuse_linear(state, states, w)
    rows = [
        torch.stack([torch.dot(torch.cat([s, h_i]), w) + b for h_i in h])
        for s, h in zip(state, states)
    ]
    return torch.stack(rows)


# --------------------------------------------------------------------------------------------
# query_effect


def _refuse_pair(a, b):
    if a.shape != b.shape:
        raise ValueError(f"{tuple(a.shape)} and {tuple(b.shape)} cannot be compared")


@alternate("query_effect")
def effect_by_torch_softmax(score, state_a, state_b, states):
    _refuse_pair(state_a, state_b)
    pair = torch.stack([score(state_a, states), score(state_b, states)])
    weights = torch.softmax(pair, dim=-1)
    return float((pair[0] - pair[1]).abs().amax()), float(
        (weights[0] - weights[1]).abs().amax()
    )


@alternate("query_effect")
def effect_in_one_batch(score, state_a, state_b, states):
    _refuse_pair(state_a, state_b)
    both = score(torch.cat([state_a, state_b]), torch.cat([states, states]))
    changes = [
        first - second for first, second in (both.chunk(2), softmax(both).chunk(2))
    ]
    return tuple(
        torch.linalg.vector_norm(change, ord=math.inf).item() for change in changes
    )


@alternate("query_effect")
def effect_by_plain_lists(score, state_a, state_b, states):
    _refuse_pair(state_a, state_b)
    before, after = score(state_a, states), score(state_b, states)

    def largest(x, y):
        return max(
            abs(i - j) for i, j in zip(x.flatten().tolist(), y.flatten().tolist())
        )

    return largest(before, after), largest(
        attend(before, states)[1], attend(after, states)[1]
    )


@alternate("score_std")
def draws_number_by_number(d, num_samples, seed):
    import random

    if d < 1 or num_samples < 2:
        raise ValueError(f"{d} features, {num_samples} pairs")
    r = random.Random(seed)
    xs = [
        sum(r.gauss(0, 1) * r.gauss(0, 1) for _ in range(d)) for _ in range(num_samples)
    ]
    m = sum(xs) / len(xs)
    return math.sqrt(sum((x - m) ** 2 for x in xs) / (len(xs) - 1))


@alternate("softmax_gradient_norm")
def asks_autograd_for_the_jacobian(z):
    if z.dim() != 1 or z.numel() < 1:
        raise ValueError(f"z has shape {tuple(z.shape)}")
    return float(torch.autograd.functional.jacobian(lambda t: softmax(t), z).norm())


@alternate("additive_scores")
def one_layer_on_both_side_by_side(state, states, w_state, w_states, v):
    fits = w_state.shape == (state.shape[1], v.shape[0]) and w_states.shape == (
        states.shape[2],
        v.shape[0],
    )
    if not fits or len(state) != len(states):
        shapes = [list(t.shape) for t in (state, states, w_state, w_states, v)]
        raise ValueError(f"shapes {shapes}")
    both = torch.cat(
        [state.unsqueeze(1).expand(-1, states.size(1), -1), states], dim=-1
    )
    return (
        torch.tanh(both @ torch.cat([w_state, w_states]))
        .matmul(v.unsqueeze(-1))
        .squeeze(-1)
    )
