"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from autograder.suite import alternate, sample

# ── model and cost
# ────────────────────────────────────────────────────────────────────────────


def _model(ids, params, setup, drop, last_norm=True, values_turn=False, post=True):
    """The decoder in small steps, with room for faults."""
    for k in CHOICES:
        if setup[k] not in CHOICES[k]:
            raise ValueError(f"{k} cannot be {setup[k]}")
    n = ids.shape[-1]
    x = params["embed"][ids]
    if setup["positions"] == "learned":
        if n > params["positions"].shape[0]:
            raise ValueError(f"{n} > {params['positions'].shape[0]}")
        x = x + params["positions"][torch.arange(n)]
    if drop is not None:
        x = drop(x)
    for block in params["blocks"]:
        for part in (1, 2):
            g = block[f"norm{part}"]
            kind = setup["norm"]
            normed = rms_norm(x, g) if kind == "rms" else layer_norm(x, g)
            h = x if kind == "post" and post else normed
            if part == 1:
                q = split_heads(h @ block["w_q"], setup["num_heads"])
                k = split_heads(h @ block["w_k"], setup["num_kv_heads"])
                v = split_heads(h @ block["w_v"], setup["num_kv_heads"])
                if setup["positions"] == "rotary":
                    q, k = rotary_positions(q), rotary_positions(k)
                    v = rotary_positions(v) if values_turn else v
                y = merge_heads(causal_attention(q, k, v)) @ block["w_o"]
            elif setup["activation"] == "swiglu":
                y = (F.silu(h @ block["w1"]) * (h @ block["w2"])) @ block["w3"]
            elif setup["activation"] == "relu":
                y = F.relu(h @ block["w1"]) @ block["w2"]
            else:
                y = F.gelu(h @ block["w1"]) @ block["w2"]
            y = y if drop is None else drop(y)
            x = x + y
            if kind == "post" and post:
                x = layer_norm(x, g)
    if last_norm and setup["norm"] != "post":
        x = (
            rms_norm(x, params["norm_f"])
            if setup["norm"] == "rms"
            else layer_norm(x, params["norm_f"])
        )
    return x @ params["embed"].T if setup["tied"] else x @ params["unembed"]


@alternate("decoder")
def in_small_steps(ids, params, setup, drop=None):
    return _model(ids, params, setup, drop)


@sample("decoder", deserves="forgets_the_last_norm")
def straight_to_the_head(ids, params, setup, drop=None):
    return _model(ids, params, setup, drop, last_norm=False)


@sample("decoder", deserves="turns_values_too")
def rotates_everything(ids, params, setup, drop=None):
    return _model(ids, params, setup, drop, values_turn=True)


@sample("decoder", deserves="post_norm_is_pre_norm")
def one_way_to_normalize(ids, params, setup, drop=None):
    return _model(ids, params, setup, drop, post=False)


@sample("training_flops", deserves=("forgets_the_scores", "takes_any_heads"))
def six_times_the_parameters(setup):
    d, h, g = setup["d_model"], setup["num_heads"], setup["num_kv_heads"]
    mats = 3 if setup["activation"] == "swiglu" else 2
    per_layer = 2 * d * d + 2 * d * (d // h) * g + mats * d * setup["d_ff"]
    n_params = setup["vocab_size"] * d + setup["num_layers"] * per_layer
    return 6 * n_params * setup["batch"] * setup["context_length"]


@sample(
    "training_flops", deserves=("counts_two_matrices_of_a_swiglu", "takes_any_heads")
)
def every_mlp_alike(setup):
    D, H, G = setup["d_model"], setup["num_heads"], setup["num_kv_heads"]
    N = setup["context_length"]
    kv = D * G // H
    layer = 4 * D * D + 4 * D * kv + 4 * N * D + 4 * D * setup["d_ff"]
    fwd = (
        setup["batch"] * N * (setup["num_layers"] * layer + 2 * D * setup["vocab_size"])
    )
    return fwd * 3


@sample(
    "one_change",
    deserves=("keeps_the_width_of_a_swiglu", "takes_what_is_there_already"),
)
def just_replaces(base, field, value):
    if field not in base:
        raise ValueError(f"no {field}")
    new = base.copy()
    new[field] = value
    if base["activation"] == "swiglu" and field == "activation":
        new["d_ff"] = int(base["d_ff"] // 2 * 3 + base["d_ff"] % 2)
    return new


# ── loss and training
# ────────────────────────────────────────────────────────────────────────────


@sample("smoothed_loss", deserves=("leaves_the_right_token_out", "takes_any_smoothing"))
def shares_among_the_others(logits, targets, smoothing=0.0, ignore_index=-100):
    V = logits.size(-1)
    lp = logits.log_softmax(-1)
    mask = targets != ignore_index
    t = targets.clamp(min=0)
    q = torch.full_like(lp, smoothing / (V - 1))
    q.scatter_(-1, t[..., None], 1 - smoothing)
    loss = -(q * lp).sum(-1)
    return (loss * mask).sum() / mask.sum().clamp(min=1)


@sample("smoothed_loss", deserves=("divides_by_all_places", "takes_any_smoothing"))
def mean_at_the_end(logits, targets, smoothing=0.0, ignore_index=-100):
    logp = torch.log_softmax(logits, dim=2)
    ok = (targets != ignore_index).double()
    idx = torch.where(targets == ignore_index, torch.zeros_like(targets), targets)
    right = -logp.gather(2, idx.unsqueeze(2)).squeeze(2)
    rest = -logp.mean(dim=2)
    return (((1 - smoothing) * right + smoothing * rest) * ok).mean()


@sample("accumulated_gradients", deserves="takes_the_mean_of_means")
def divides_each_loss_by_the_parts(params, setup, inputs, targets, drop=None):
    steps = setup["parts"]
    if not 1 <= steps <= inputs.shape[0]:
        raise ValueError(f"{steps} {inputs.shape[0]}")
    ts = [p.detach().clone().requires_grad_() for p in list_tensors(params)]
    tree, running = with_tensors(params, ts), 0.0
    for xb, yb in zip(torch.chunk(inputs, steps), torch.chunk(targets, steps)):
        loss = (
            smoothed_loss(decoder(xb, tree, setup, drop), yb, setup["smoothing"])
            / steps
        )
        loss.backward()
        running += loss.item()
    return running, [p.grad for p in ts]


@sample("accumulated_gradients", deserves="accumulates_without_dividing")
def only_backward_many_times(params, setup, inputs, targets, drop=None):
    k = setup["parts"]
    if k < 1 or k > len(inputs):
        raise ValueError(f"cannot split {len(inputs)} rows into {k}")
    leaves = [p.detach().clone().requires_grad_() for p in list_tensors(params)]
    model, total = with_tensors(params, leaves), 0.0
    for xb, yb in zip(inputs.tensor_split(k), targets.tensor_split(k)):
        loss = smoothed_loss(decoder(xb, model, setup, drop), yb, setup["smoothing"])
        loss.backward()
        total += loss.item()
    return total, [p.grad for p in leaves]


@sample("training_curve", deserves="measures_on_the_training_text")
def watches_the_training_text(
    params, setup, training_ids, held_out_ids, budget, every, seed
):
    c = training_flops(setup)
    n = budget // c
    if n == 0 or every < 1:
        raise ValueError(f"{budget} {c} {every}")

    def loss_now():
        return held_out_loss(
            lambda i: decoder(i, params, setup), training_ids, setup["context_length"]
        )

    out, st = [(0, loss_now())], None
    for i in range(1, n + 1):
        x, y = training_batch(training_ids, setup, seed, i - 1)
        g = accumulated_gradients(
            params, setup, x, y, dropout_at(setup["dropout"], seed, i - 1)
        )[1]
        lr = rate_at(i - 1, n, setup["rate"])
        new, st = adamw_step(list_tensors(params), g, st, lr)
        params = with_tensors(params, new)
        if i % every == 0 or i == n:
            out.append((i * c, loss_now()))
    return params, out


@sample("compare", deserves="gives_everybody_the_same_steps")
def steps_of_the_base(base, field, values, budget, seeds, run):
    if len(set(seeds)) != len(seeds) or len(set(values)) != len(values):
        raise ValueError("twice")
    n = budget // training_flops(base)
    todo = []
    for v in values:
        s = base if v == base[field] else one_change(base, field, v)
        if training_flops(s) > budget:
            raise ValueError(f"{training_flops(s)} > {budget}")
        todo.append((v, s))
    rows = []
    for v, s in todo:
        rows.append((v, n, [run(s, n, k) for k in seeds]))
    return rows


# ── what numbers say
# ────────────────────────────────────────────────────────────────────────────


@sample("paired_verdict", deserves="takes_the_deviation_for_the_error")
def standard_deviation_of_differences(first, second, factor=2.0):
    if len(first) != len(second) or len(first) < 2:
        raise ValueError(f"{len(first)}, {len(second)}")
    ok1 = all(np.isfinite(first))
    ok2 = all(np.isfinite(second))
    if not ok1 or not ok2:
        return ("first" if ok1 else "second" if ok2 else "undecided"), None, None
    d = np.array(first) - np.array(second)
    m, s = float(d.mean()), float(d.std(ddof=1))
    if abs(m) <= factor * s:
        return "undecided", m, s
    return ("first" if m < 0 else "second"), m, s


@sample("paired_verdict", deserves="divides_the_variance_by_n")
def with_numpys_default(first, second, factor=2.0):
    n = len(first)
    if n != len(second) or n < 2:
        raise ValueError(f"{n} and {len(second)}")
    good = [np.isfinite(np.array(x)).all() for x in (first, second)]
    if not all(good):
        if good[0]:
            return "first", None, None
        return ("second" if good[1] else "undecided"), None, None
    diff = np.subtract(first, second)
    m = float(np.mean(diff))
    se = float(np.std(diff) / np.sqrt(n))
    if m < -factor * se:
        return "first", m, se
    if m > factor * se:
        return "second", m, se
    return "undecided", m, se


@sample("power_law_forecast", deserves="returns_the_slope")
def polyfit_as_it_comes(sizes, losses, new_size, floor=0.0):
    if len(sizes) != len(losses):
        raise ValueError(f"{len(sizes)} {len(losses)}")
    if len(set(sizes)) < 2 or min(sizes) <= 0 or new_size <= 0 or min(losses) <= floor:
        raise ValueError("no fit")
    b, a = np.polyfit(
        np.log(np.array(sizes, float)), np.log(np.array(losses) - floor), 1
    )
    return float(b), float(np.exp(a + b * np.log(float(new_size))) + floor)


@sample("power_law_forecast", deserves="does_not_put_the_floor_back")
def line_of_the_rest(sizes, losses, new_size, floor=0.0):
    if len(sizes) != len(losses):
        raise ValueError(f"{len(sizes)} {len(losses)}")
    if len(set(sizes)) < 2 or min([*sizes, new_size]) <= 0 or min(losses) <= floor:
        raise ValueError("no fit")
    xs = np.log([float(s) for s in sizes])
    ys = np.log([l - floor for l in losses])
    slope = float(
        ((xs - xs.mean()) * (ys - ys.mean())).sum() / ((xs - xs.mean()) ** 2).sum()
    )
    icpt = float(ys.mean() - slope * xs.mean())
    return -slope, math.exp(icpt + slope * math.log(new_size))


# ── fine-tuning
# ────────────────────────────────────────────────────────────────────────────


@sample("lora_adapters", deserves=("does_not_scale_a", "takes_any_rank"))
def plain_randn(params, names, rank, seed=0):
    g = torch.Generator().manual_seed(seed)
    out = []
    for blk in params["blocks"]:
        d = {}
        for nm in names:
            if nm not in blk:
                raise ValueError(f"no {nm}")
            w = blk[nm]
            d[nm] = {
                "a": torch.randn(w.shape[0], rank, generator=g).to(w.dtype),
                "b": torch.zeros(rank, w.shape[1], dtype=w.dtype),
            }
        out.append(d)
    return out


@sample("merge_lora", deserves=("forgets_the_rank", "takes_adapters_of_another_model"))
def alpha_as_the_scale(params, adapters, alpha):
    new = dict(params)
    new["blocks"] = [dict(b) for b in params["blocks"]]
    for b, ad in zip(new["blocks"], adapters):
        for k in ad:
            b[k] = b[k] + alpha * (ad[k]["a"] @ ad[k]["b"])
    return new


@sample(
    "tuning_costs", deserves=("counts_averages_of_frozen_weights", "takes_any_method")
)
def adam_for_everything(params, method, names=(), rank=0):
    all_ = sum(t.numel() for t in list_tensors(params))
    es = params["embed"].element_size()
    extra = 0
    if method == "last":
        tr = sum(t.numel() for t in params["blocks"][-1].values())
    elif method == "lora":
        extra = tr = sum(
            rank * (b[n].shape[0] + b[n].shape[1])
            for b in params["blocks"]
            for n in names
        )
    else:
        tr = all_
    return {
        "trained": tr,
        "weights": (all_ + extra) * es,
        "gradients": tr * es,
        "optimizer": 8 * (all_ + extra),
    }


@sample("distinct_ngrams", deserves="cuts_the_text_into_pieces")
def every_n_tokens(ids, n):
    if n < 1 or n > ids.shape[1]:
        raise ValueError(f"{n} of {ids.shape[1]}")
    out = []
    for row in ids.tolist():
        grams = [tuple(row[i : i + n]) for i in range(0, len(row) - n + 1, n)]
        out.append(len(set(grams)) / len(grams))
    return torch.tensor(out, dtype=torch.float64)


@sample(
    "accuracy_by_length",
    deserves=("counts_what_stands_behind_the_end", "takes_any_length"),
)
def whole_rows(predicted, targets, lengths):
    if predicted.shape != targets.shape or len(lengths) != len(targets):
        raise ValueError(f"{predicted.shape} {targets.shape} {len(lengths)}")
    res = {}
    for l in sorted(set(lengths.tolist())):
        sel = lengths == l
        res[l] = (predicted[sel] == targets[sel]).float().mean().item()
    return list(res.items())


@sample("six_n_counterexample", deserves="makes_the_model_deep")
def very_many_layers(factor):
    s = dict(
        vocab_size=10, d_model=8, num_layers=int(100 * factor), num_heads=2, num_kv_heads=2, d_ff=32,
        context_length=4, positions="none", norm="pre", activation="relu", tied=True, dropout=0.0,
        smoothing=0.0, rate=0.01, batch=1, parts=1,
    )  # fmt: skip
    return s
