"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math

import torch
import torch.nn.functional as F

from autograder.suite import alternate, sample

# ── rnn_encode
# ───────────────────────────────────────────────────────────────────────────────────────────────


@sample("rnn_encode", deserves=("forgets_the_bias", "rnn_without_checks"))
def cell_function_that_drops_b(x, w_x, w_h, b, h0):
    def cell(inp, hidden):
        return torch.tanh(torch.matmul(inp, w_x) + torch.matmul(hidden, w_h))

    hidden = h0
    outputs = torch.zeros(x.size(0), x.size(1), w_h.size(0), dtype=x.dtype)
    for step in range(x.size(1)):
        hidden = cell(x[:, step, :], hidden)
        outputs[:, step, :] = hidden
    return outputs, hidden


@sample("rnn_encode", deserves=("recurrent_weight_transposed", "rnn_without_checks"))
def einsum_with_the_recurrent_axes_exchanged(x, w_x, w_h, b, h0):
    projected = torch.einsum("btd,dh->bth", x, w_x) + b
    state = h0
    history = []
    for step in projected.unbind(1):
        state = (step + torch.einsum("bh,gh->bg", state, w_h)).tanh()
        history += [state]
    return torch.stack(history, 1), state


@sample("rnn_encode", deserves=("states_before_reading", "rnn_without_checks"))
def appends_before_it_steps(x, w_x, w_h, b, h0):
    all_h = []
    h = h0
    for t in range(x.shape[1]):
        all_h.append(h.unsqueeze(1))
        h = torch.tanh(F.linear(x[:, t], w_x.t()) + F.linear(h, w_h.t()) + b)
    return torch.cat(all_h, dim=1), h


# ── additive_scores
# ──────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "additive_scores", deserves=("additive_without_tanh", "additive_without_checks")
)
def einsum_without_the_nonlinearity(state, states, w_state, w_states, v):
    a = torch.einsum("bs,sa->ba", state, w_state)
    c = torch.einsum("bth,ha->bta", states, w_states)
    return torch.einsum("bta,a->bt", a[:, None, :] + c, v)


@sample(
    "additive_scores",
    deserves=("already_normalized", "loops_over_positions", "additive_without_checks"),
)
def one_position_at_a_time_and_normalized(state, states, w_state, w_states, v):
    e = []
    for i in range(states.size(1)):
        hidden = torch.tanh(state.mm(w_state) + states[:, i, :].mm(w_states))
        e.append((hidden * v).sum(-1))
    return F.softmax(torch.stack(e, dim=-1), dim=-1)


# ── attend
# ───────────────────────────────────────────────────────────────────────────────────────────────────


@sample("attend", deserves=("softmax_over_the_batch", "attend_without_checks"))
def default_axis_of_the_first_slide(scores, states):
    alpha = F.softmax(scores, 0)
    ctx = torch.einsum("bt,bth->bh", alpha, states)
    return ctx, alpha


@sample("attend", deserves=("exponentials_without_a_maximum", "attend_without_checks"))
def softmax_from_the_definition(scores, states):
    top = scores.exp()
    bottom = top.sum(1).unsqueeze(1)
    a = top / bottom
    context = (a[..., None] * states).sum(dim=1)
    return context, a


@sample("attend", deserves=("returns_weights_first", "attend_without_checks"))
def order_of_the_sentence_in_the_question(scores, states):
    p = F.softmax(scores.float(), dim=1).to(scores.dtype)
    return p, torch.bmm(p[:, None], states)[:, 0]


# ── seq2seq_decode
# ───────────────────────────────────────────────────────────────────────────────────────────


@sample("seq2seq_decode", deserves=("input_not_shifted", "decode_without_checks"))
def reads_the_word_of_its_own_step(states, s0, targets, params):
    prev = s0
    outs, alphas = [], []
    for step in range(targets.size(1)):
        e = additive_scores(
            prev, states, params["w_state"], params["w_states"], params["v"]
        )
        ctx, alpha = attend(e, states)
        pre = (
            targets[:, step] @ params["w_y"]
            + ctx @ params["w_c"]
            + prev @ params["w_s"]
            + params["b"]
        )
        prev = pre.tanh()
        outs.append(prev)
        alphas.append(alpha)
    return torch.stack(outs, 1), torch.stack(alphas, 1)


@sample(
    "seq2seq_decode", deserves=("same_context_at_every_step", "decode_without_checks")
)
def attention_before_the_loop(states, s0, targets, params):
    ctx, alpha = attend(
        additive_scores(s0, states, params["w_state"], params["w_states"], params["v"]),
        states,
    )
    inputs = F.pad(targets, (0, 0, 1, 0))[:, :-1]
    hid = s0
    collected = []
    for y in inputs.transpose(0, 1):
        hid = torch.tanh(
            y @ params["w_y"] + ctx @ params["w_c"] + hid @ params["w_s"] + params["b"]
        )
        collected.append(hid)
    return torch.stack(collected, 1), alpha[:, None, :].repeat(1, targets.size(1), 1)


# ── single_query_attention
# ───────────────────────────────────────────────────────────────────────────────────


@sample(
    "single_query_attention",
    deserves=(
        "single_without_scale",
        "single_overflows_in_half",
        "single_without_checks",
    ),
)
def sums_a_loop_without_the_root(q, k, v):
    s = torch.stack([torch.dot(q, row) for row in k])
    w = torch.exp(s - s.max())
    w = w / w.sum()
    result = torch.zeros(v.shape[1], dtype=v.dtype)
    for weight, value in zip(w, v):
        result = result + weight * value
    return result


@sample("single_query_attention", deserves="single_divides_by_d")
def divides_the_query_by_its_length(q, k, v):
    if k.size(1) != q.size(0):
        raise ValueError(f"{tuple(q.shape)} against {tuple(k.shape)}")
    if k.size(0) != v.size(0):
        raise ValueError(f"{k.size(0)} keys, {v.size(0)} values")
    q, k, v32 = (
        q.float() if q.dtype == torch.half else q,
        k.float() if k.dtype == torch.half else k,
        v,
    )
    if v.dtype == torch.half:
        v32 = v.float()
    att = ((q / len(q)) * k).sum(1).softmax(0)
    return (att[:, None] * v32).sum(0).to(v.dtype)


# ── attention_weights
# ────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "attention_weights",
    deserves=(
        "softmax_over_the_queries",
        "weights_overflow_in_half",
        "weights_without_checks",
    ),
)
def einsum_with_the_wrong_axis(q, k):
    sim = torch.einsum("...id,...jd->...ij", q, k) / q.size(-1) ** 0.5
    return sim.softmax(dim=-2)


@sample(
    "attention_weights",
    deserves=(
        "weights_without_scale",
        "weights_overflow_in_half",
        "weights_without_checks",
    ),
)
def plain_matmul_and_softmax(q, k):
    return F.softmax(torch.matmul(q, k.mT), dim=-1)


@sample(
    "attention_weights", deserves=("loops_over_the_queries", "weights_without_checks")
)
def rows_one_after_the_other(q, k):
    out = torch.empty(*q.shape[:-1], k.shape[-2], dtype=q.dtype)
    for i in range(q.shape[-2]):
        row = (q[..., i, None, :].double() * k.double()).sum(-1) / math.sqrt(
            k.shape[-1]
        )
        out[..., i, :] = F.softmax(row, -1)
    return out


@sample("attention_weights", deserves=())
def logarithm_of_the_weights(q, k):
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"{q.shape[-1]} != {k.shape[-1]}")
    z = q.float() @ k.float().mT / math.sqrt(q.shape[-1])
    return torch.log_softmax(z, -1).to(q.dtype)


# ── scaled_dot_product_attention
# ─────────────────────────────────────────────────────────────────────────────


@sample(
    "scaled_dot_product_attention",
    deserves=("attention_divided_by_d", "attention_without_checks"),
)
def scales_before_it_asks_for_weights(q, k, v):
    dk = k.size(-1)
    q = q * dk**-0.5
    weights = attention_weights(q, k)
    return torch.einsum("...qk,...kd->...qd", weights, v)


@sample(
    "scaled_dot_product_attention",
    deserves=("attention_with_two_softmaxes", "attention_without_checks"),
)
def softmax_to_be_sure(q, k, v):
    A = attention_weights(q, k)
    A = A.exp() / A.exp().sum(-1, keepdim=True)
    return torch.matmul(A, v)


@sample("scaled_dot_product_attention", deserves=())
def dropout_left_on(q, k, v):
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{k.shape[-2]} keys, {v.shape[-2]} values")
    return F.dropout(attention_weights(q, k), 0.2) @ v


# ── score_std, softmax_gradient_norm
# ─────────────────────────────────────────────────────────────────────────


@sample("score_std", deserves=("returns_the_variance", "std_without_checks"))
def squares_around_the_mean(d, num_samples, seed):
    gen = torch.Generator()
    gen.manual_seed(seed)
    a = torch.normal(0.0, 1.0, (num_samples, d), generator=gen)
    b = torch.normal(0.0, 1.0, (num_samples, d), generator=gen)
    dots = torch.einsum("nd,nd->n", a, b)
    centred = dots - dots.mean()
    return float((centred**2).sum() / (num_samples - 1))


@sample(
    "softmax_gradient_norm",
    deserves=(
        "forgets_the_root",
        "norm_without_checks",
        "asks_a_number_for_its_length",
    ),
)
def sum_of_squares_of_the_entries(z):
    p = F.softmax(z, dim=0)
    total = 0.0
    for i in range(len(p)):
        for j in range(len(p)):
            entry = p[i] * (1 - p[i]) if i == j else -p[i] * p[j]
            total += float(entry) ** 2
    return total


# ── compare_layers
# ───────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "compare_layers", deserves=("layers_do_not_overlap", "a_convolution_of_width_one")
)
def counts_whole_windows(n, d, k, num_layers):
    if n < 1 or d < 1 or num_layers < 1 or k < 1:
        raise ValueError(f"{n=} {d=} {k=} {num_layers=}")
    conv_path = math.ceil((n - 1) / (k - 1)) or 1
    return {
        "recurrence": dict(
            operations=4 * n * d * d,
            sequential_steps=n,
            receptive_field=n,
            longest_path=n,
        ),
        "convolution": dict(
            operations=2 * n * k * d * d,
            sequential_steps=1,
            receptive_field=n if num_layers * k > n else num_layers * k,
            longest_path=conv_path,
        ),
        "attention": dict(
            operations=4 * n * n * d,
            sequential_steps=1,
            receptive_field=n,
            longest_path=1,
        ),
    }


@sample("compare_layers", deserves=("a_multiply_add_is_one",))
def big_o_with_the_constants_of_multiplications(n, d, k, num_layers):
    for name, size, least in (
        ("n", n, 1),
        ("d", d, 1),
        ("k", k, 2),
        ("num_layers", num_layers, 1),
    ):
        if size < least:
            raise ValueError(f"{name} = {size} is below {least}")
    result = {"recurrence": {}, "convolution": {}, "attention": {}}
    result["recurrence"]["operations"] = n * d**2 + n * d**2
    result["convolution"]["operations"] = k * n * d**2
    result["attention"]["operations"] = n**2 * d + n**2 * d
    for kind in result:
        result[kind]["sequential_steps"] = n if kind == "recurrence" else 1
        result[kind]["receptive_field"] = n
        result[kind]["longest_path"] = n if kind == "recurrence" else 1
    reach = 1
    for _ in range(num_layers):
        reach += k - 1
    result["convolution"]["receptive_field"] = min(reach, n)
    layers, reach = 1, k
    while reach < n:
        layers, reach = layers + 1, reach + k - 1
    result["convolution"]["longest_path"] = layers
    return result


@sample("compare_layers", deserves=("a_path_of_no_steps", "a_path_between_the_states"))
def distance_between_first_and_last(n, d, k, num_layers):
    if min(n, d, num_layers, k - 1) < 1:
        raise ValueError(f"sizes {n}, {d}, {k}, {num_layers}")
    gap = n - 1
    rnn = {
        "operations": 2 * (2 * n * d * d),
        "sequential_steps": n,
        "receptive_field": n,
        "longest_path": gap,
    }
    cnn = {
        "operations": 2 * (k * n * d * d),
        "sequential_steps": 1,
        "receptive_field": min(n, num_layers * (k - 1) + 1),
    }
    cnn["longest_path"] = (gap + k - 2) // (k - 1)
    att = {
        "operations": 2 * (n * n * d * 2),
        "sequential_steps": 1,
        "receptive_field": n,
        "longest_path": 1,
    }
    return {"recurrence": rnn, "convolution": cnn, "attention": att}


# ── linear_scores, query_effect
# ──────────────────────────────────────────────────────────────────────────────


@sample("linear_scores", deserves=("states_stand_first", "linear_without_checks"))
def concatenates_the_other_way(state, states, w, b):
    repeated = state.unsqueeze(1).expand(-1, states.size(1), -1)
    both = torch.cat((states, repeated), dim=2)
    return both.matmul(w) + b


@sample("query_effect", deserves=("mean_difference", "effect_without_checks"))
def averages_over_positions(score, state_a, state_b, states):
    s1 = score(state_a, states)
    s2 = score(state_b, states)
    w1 = F.softmax(s1, -1)
    w2 = F.softmax(s2, -1)
    return float(torch.mean(torch.abs(s1 - s2))), float(torch.mean(torch.abs(w1 - w2)))


# ── right answers
# ────────────────────────────────────────────────────────────────────────────────────────────


@alternate("attend")
def sums_weighted_states(scores, states):
    B, T = scores.shape if scores.dim() == 2 else (-1, -1)
    if (B, T) != tuple(states.shape[:2]):
        raise ValueError(f"scores {tuple(scores.shape)}, states {tuple(states.shape)}")
    w = F.softmax(
        scores, dim=1, dtype=torch.promote_types(scores.dtype, torch.float32)
    ).to(scores.dtype)
    return torch.einsum("bt,bth->bh", w, states), w


@alternate("attention_weights")
def scales_both_sides_by_the_fourth_root(q, k):
    if q.size(-1) != k.size(-1):
        raise ValueError(f"q: {q.size(-1)}, k: {k.size(-1)}")
    kind = q.dtype
    if kind in (torch.float16, torch.bfloat16):
        q, k = q.float(), k.float()
    root = q.size(-1) ** 0.25
    return F.softmax((q / root) @ (k / root).transpose(-1, -2), dim=-1).to(kind)


# ── two faults in one answer
# ─────────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "attention_weights",
    deserves=(
        "softmax_over_the_queries",
        "weights_without_scale",
        "weights_without_checks",
        "weights_overflow_in_half",
    ),
)
def einsum_over_the_queries_without_a_scale(q, k):
    att = torch.einsum("...id,...jd->...ij", q, k)
    return F.softmax(att, dim=-2)


@sample(
    "scaled_dot_product_attention",
    deserves=(
        "attention_softmax_over_queries",
        "attention_without_checks",
        "attention_without_scale",
    ),
)
def in_one_go_over_the_queries_without_a_scale(q, k, v):
    w = torch.softmax(q @ k.transpose(-1, -2), dim=-2)
    return w @ v


@sample(
    "rnn_encode",
    deserves=("rnn_without_tanh", "forgets_the_bias", "rnn_without_checks"),
)
def relu_cell_without_a_bias(x, w_x, w_h, b, h0):
    h = h0
    out = []
    for i in range(x.shape[1]):
        h = torch.relu(x[:, i] @ w_x + h @ w_h)
        out.append(h)
    return torch.stack(out, 1), h


@sample(
    "scaled_dot_product_attention",
    deserves=("attention_mixes_the_keys", "attention_without_checks"),
)
def mixes_keys_and_scales_twice(q, k, v):
    d = q.size(-1)
    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(d))
    att = F.softmax(att, dim=-1)
    y = att @ k
    return y * (1.0 / math.sqrt(d))
