"""Other right answers, really written differently from the answer key."""

import math
import statistics
from collections import Counter, defaultdict

import numpy as np
import torch
import torch.nn.functional as F

from autograder.suite import alternate

# ── decoder
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("decoder")
def in_nanogpts_words(ids, params, setup, drop=None):
    for key in ("positions", "norm", "activation"):
        if setup[key] not in CHOICES[key]:
            raise ValueError(f"unknown {key}: {setup[key]}")
    B, T = ids.size()
    H, H_kv = setup["num_heads"], setup["num_kv_heads"]
    C = params["embed"].size(1)

    def maybe_drop(t):
        return t if drop is None else drop(t)

    def ln(t, weight):
        if setup["norm"] == "rms":
            return t * torch.rsqrt((t * t).mean(-1, keepdim=True) + 1e-5) * weight
        return F.layer_norm(t, (C,), weight, None, 1e-5)

    def attn(t, p):
        q = (t @ p["w_q"]).view(B, T, H, C // H).transpose(1, 2)
        k = (t @ p["w_k"]).view(B, T, H_kv, C // H).transpose(1, 2)
        v = (t @ p["w_v"]).view(B, T, H_kv, C // H).transpose(1, 2)
        if setup["positions"] == "rotary":
            q, k = rotary_positions(q), rotary_positions(k)
        k, v = k.repeat_interleave(H // H_kv, 1), v.repeat_interleave(H // H_kv, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).contiguous().view(B, T, C) @ p["w_o"]

    def mlp(t, p):
        if setup["activation"] == "swiglu":
            return (F.silu(t @ p["w1"]) * (t @ p["w2"])) @ p["w3"]
        return (F.relu if setup["activation"] == "relu" else F.gelu)(t @ p["w1"]) @ p[
            "w2"
        ]

    x = F.embedding(ids, params["embed"])
    if setup["positions"] == "learned":
        block_size = params["positions"].size(0)
        if block_size < T:
            raise ValueError(f"sequence of length {T}, block size is only {block_size}")
        x = x + F.embedding(torch.arange(T), params["positions"])
    x = maybe_drop(x)
    for p in params["blocks"]:
        if setup["norm"] == "post":
            x = ln(x + maybe_drop(attn(x, p)), p["norm1"])
            x = ln(x + maybe_drop(mlp(x, p)), p["norm2"])
        else:
            x = x + maybe_drop(attn(ln(x, p["norm1"]), p))
            x = x + maybe_drop(mlp(ln(x, p["norm2"]), p))
    if setup["norm"] != "post":
        x = ln(x, params["norm_f"])
    if setup["tied"]:
        return F.linear(x, params["embed"])
    return x @ params["unembed"]


@alternate("decoder")
def with_einsum_and_a_table_of_functions(ids, params, setup, drop=None):
    norms = {"pre": layer_norm, "post": layer_norm, "rms": rms_norm}
    acts = {"relu": torch.relu, "gelu": gelu, "swiglu": silu}
    if setup["norm"] not in norms or setup["activation"] not in acts:
        raise ValueError(f"norm {setup['norm']} or activation {setup['activation']}")
    if setup["positions"] not in {"none", "learned", "rotary"}:
        raise ValueError("positions: " + str(setup["positions"]))
    norm, act = norms[setup["norm"]], acts[setup["activation"]]
    drop = drop or torch.clone
    n = ids.size(1)
    d = params["embed"].shape[1] // setup["num_heads"]
    group = setup["num_heads"] // setup["num_kv_heads"]
    above = torch.full((n, n), -math.inf, dtype=params["embed"].dtype).triu(1)

    def attend(h, p):
        q, k, v = (
            torch.einsum("bnd,dhe->bhne", h, p[w].reshape(p[w].shape[0], -1, d))
            for w in ("w_q", "w_k", "w_v")
        )
        if setup["positions"] == "rotary":
            q, k = map(rotary_positions, (q, k))
        q = q.reshape(q.shape[0], -1, group, n, d)
        scores = torch.einsum("bgsqd,bgkd->bgsqk", q, k) * d**-0.5 + above
        out = torch.einsum("bgsqk,bgkd->bgsqd", scores.softmax(-1), v)
        return merge_heads(out.flatten(1, 2)) @ p["w_o"]

    def feed(h, p):
        if "w3" in p:
            return act(h @ p["w1"]).mul(h @ p["w2"]) @ p["w3"]
        return act(h @ p["w1"]) @ p["w2"]

    x = params["embed"][ids]
    if setup["positions"] == "learned":
        table = params["positions"]
        if n > table.shape[0]:
            raise ValueError(f"no room for {n} tokens among {table.shape[0]} positions")
        x = x + table[None, :n]
    x = drop(x)
    for p in params["blocks"]:
        for layer, gain in zip((attend, feed), (p["norm1"], p["norm2"])):
            if setup["norm"] == "post":
                x = norm(x + drop(layer(x, p)), gain)
            else:
                x = x + drop(layer(norm(x, gain), p))
    x = norm(x, params["norm_f"]) if setup["norm"] in ("pre", "rms") else x
    head = params["embed"].transpose(0, 1) if setup["tied"] else params["unembed"]
    return torch.einsum("bnd,dv->bnv", x, head)


# ── training_flops
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("training_flops")
def product_by_product(setup):
    D, H, G = setup["d_model"], setup["num_heads"], setup["num_kv_heads"]
    if D % H or H % G:
        raise ValueError(f"{D} / {H} / {G}")
    d, N, B, F_ = D // H, setup["context_length"], setup["batch"], setup["d_ff"]
    products = [(N, D, setup["vocab_size"])]
    for _ in range(setup["num_layers"]):
        products += [(N, D, H * d), (N, D, G * d), (N, D, G * d), (N, H * d, D)]
        products += [(N, d, N), (N, N, d)] * H
        products += [(N, D, F_), (N, F_, D)]
        if setup["activation"] == "swiglu":
            products.append((N, D, F_))
    forward = B * sum(2 * a * b * c for a, b, c in products)
    return forward + 2 * forward


@alternate("training_flops")
def six_for_each_parameter(setup):
    if setup["d_model"] % setup["num_heads"] != 0:
        raise ValueError(f"{setup['d_model']} features for {setup['num_heads']} heads")
    if setup["num_heads"] % setup["num_kv_heads"] != 0:
        raise ValueError(f"{setup['num_heads']} heads share {setup['num_kv_heads']}")
    width, layers = setup["d_model"], setup["num_layers"]
    keys = setup["num_kv_heads"] * (width // setup["num_heads"])
    mlp = (
        width * setup["d_ff"] * {"relu": 2, "gelu": 2, "swiglu": 3}[setup["activation"]]
    )
    weights = (
        layers * (2 * width**2 + 2 * width * keys + mlp) + width * setup["vocab_size"]
    )
    tokens = setup["batch"] * setup["context_length"]
    return 6 * weights * tokens + 12 * layers * width * setup["context_length"] * tokens


# ── one_change
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("one_change")
def copies_and_updates(base, field, value):
    if field not in base.keys():
        raise ValueError("unknown field: " + field)
    if base[field] == value:
        raise ValueError(f"base already has {field}={value}")
    new = dict(base)
    new.update({field: value})
    if field == "activation":
        matrices = {
            name: 3 if name == "swiglu" else 2 for name in (value, base["activation"])
        }
        new["d_ff"] = base["d_ff"] * matrices[base["activation"]] // matrices[value]
    return new


@alternate("one_change")
def by_the_union_of_dicts(base, field, value):
    try:
        before = base[field]
    except KeyError:
        raise ValueError(f"{field} is no entry of {sorted(base)}") from None
    if before == value:
        raise ValueError(f"{field} stays {value}")
    width = base["d_ff"]
    change = {field: value}
    if "swiglu" in (before, value) and field == "activation":
        wider = before == "swiglu"
        change["d_ff"] = width + width // 2 if wider else int(width * 2 / 3)
    return base | change


# ── smoothed_loss
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("smoothed_loss")
def against_a_distribution(logits, targets, smoothing=0.0, ignore_index=-100):
    if smoothing < 0 or smoothing >= 1:
        raise ValueError(f"bad smoothing {smoothing}")
    V = logits.shape[-1]
    valid = (targets != ignore_index).to(logits.dtype)
    safe = targets.masked_fill(targets == ignore_index, 0)
    wanted = F.one_hot(safe, V).to(logits.dtype) * (1 - smoothing) + smoothing / V
    losses = -(wanted * F.log_softmax(logits, -1)).sum(-1)
    return (losses * valid).sum() / valid.sum().clamp(min=1)


@alternate("smoothed_loss")
def with_logsumexp(logits, targets, smoothing=0.0, ignore_index=-100):
    if not (0.0 <= smoothing < 1.0):
        raise ValueError(f"smoothing {smoothing} not in [0, 1)")
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    keep = torch.nonzero(targets != ignore_index)[:, 0]
    if len(keep) == 0:
        return (logits * 0.0).sum()
    rows, right = logits[keep], targets[keep]
    expected = (1 - smoothing) * rows[
        torch.arange(len(keep)), right
    ] + smoothing * rows.mean(1)
    return (torch.logsumexp(rows, dim=1) - expected).mean()


@alternate("smoothed_loss")
def token_by_token(logits, targets, smoothing=0.0, ignore_index=-100):
    if smoothing < 0 or 1 <= smoothing:
        raise ValueError(f"smoothing = {smoothing}")
    total, count = 0.0 * logits.sum(), 0
    for b in range(targets.shape[0]):
        for i in range(targets.shape[1]):
            t = int(targets[b, i])
            if t == ignore_index:
                continue
            nll = -torch.log_softmax(logits[b, i], 0)
            total = total + (1 - smoothing) * nll[t] + smoothing * nll.sum() / len(nll)
            count += 1
    return total / count if count else total


# ── accumulated_gradients
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("accumulated_gradients")
def backward_adds_up(params, setup, inputs, targets, drop=None):
    rows, parts = inputs.shape[0], setup["parts"]
    if parts < 1 or parts > rows:
        raise ValueError(f"parts={parts}, batch={rows}")
    leaves = [t.detach().clone().requires_grad_(True) for t in list_tensors(params)]
    model = with_tensors(params, leaves)
    counted = (targets != -100).sum().clamp(min=1)
    total = 0.0
    for x, y in zip(inputs.tensor_split(parts), targets.tensor_split(parts)):
        mean = smoothed_loss(
            decoder(x, model, setup, drop), y, smoothing=setup["smoothing"]
        )
        loss = mean * (y != -100).sum() / counted
        loss.backward()
        total += loss.item()
    return total, [torch.zeros_like(t) if t.grad is None else t.grad for t in leaves]


@alternate("accumulated_gradients")
def a_slice_at_a_time(params, setup, inputs, targets, drop=None):
    if not 0 < setup["parts"] <= len(inputs):
        raise ValueError(f"{setup['parts']} parts of {len(inputs)} rows")
    tensors = [t.detach().requires_grad_() for t in list_tensors(params)]
    m = int(torch.count_nonzero(targets != -100)) or 1
    sums, losses, start = None, [], 0
    rows = math.ceil(len(inputs) / setup["parts"])
    while start < len(inputs):
        x, y = inputs[start : start + rows], targets[start : start + rows]
        start += rows
        logits = decoder(x, with_tensors(params, tensors), setup, drop)
        loss = smoothed_loss(logits, y, setup["smoothing"]) * int((y != -100).sum()) / m
        new = torch.autograd.grad(loss, tensors, allow_unused=True)
        new = [torch.zeros_like(t) if g is None else g for g, t in zip(new, tensors)]
        sums = new if sums is None else [s + g for s, g in zip(sums, new)]
        losses.append(loss.item())
    return math.fsum(losses), sums


# ── training_curve
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("training_curve")
def counts_what_is_left(params, setup, training_ids, held_out_ids, budget, every, seed):
    step_cost = training_flops(setup)
    if every < 1:
        raise ValueError(f"every = {every}")
    if budget < step_cost:
        raise ValueError(f"budget {budget} is below the cost {step_cost} of a step")
    num_steps, spent, t, opt = int(budget // step_cost), 0, 0, None

    def point():
        loss = held_out_loss(
            lambda ids: decoder(ids, params, setup),
            held_out_ids,
            setup["context_length"],
        )
        return (spent, loss)

    curve = [point()]
    while spent + step_cost <= budget:
        x, y = training_batch(training_ids, setup, seed, t)
        drop = dropout_at(setup["dropout"], seed, t)
        grads = accumulated_gradients(params, setup, x, y, drop)[1]
        new, opt = adamw_step(
            list_tensors(params), grads, opt, rate_at(t, num_steps, setup["rate"])
        )
        params = with_tensors(params, new)
        t, spent = t + 1, spent + step_cost
        if t % every == 0 or t == num_steps:
            curve.append(point())
    return params, curve


@alternate("training_curve")
def measures_afterwards(params, setup, training_ids, held_out_ids, budget, every, seed):
    cost = training_flops(setup)
    total = budget // cost
    if total == 0 or every < 1:
        raise ValueError(f"{budget} FLOPs at {cost} a step, every {every}")
    kept, state, tensors = {0: params}, None, list_tensors(params)
    for step in range(total):
        batch = training_batch(training_ids, setup, seed, step)
        current = with_tensors(params, tensors)
        drop = dropout_at(setup["dropout"], seed, step)
        _, gradients = accumulated_gradients(current, setup, *batch, drop=drop)
        tensors, state = adamw_step(
            tensors, gradients, state, rate_at(step, total, setup["rate"])
        )
        kept[step + 1] = with_tensors(params, tensors)
    marks = sorted({*range(0, total + 1, every), total})
    curve = []
    for mark in marks:

        def model(x, weights=kept[mark]):
            return decoder(x, weights, setup, None)

        curve.append(
            (mark * cost, held_out_loss(model, held_out_ids, setup["context_length"]))
        )
    return kept[total], curve


# ── compare
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("compare")
def seed_by_seed(base, field, values, budget, seeds, run):
    if len(seeds) != len(set(seeds)):
        raise ValueError(f"duplicate seeds in {seeds}")
    if len(values) != len(set(values)):
        raise ValueError(f"duplicate values in {values}")
    setups, steps = [], []
    for v in values:
        setups.append(dict(base) if base[field] == v else one_change(base, field, v))
        flops = training_flops(setups[-1])
        if budget < flops:
            raise ValueError(f"{v}: {flops} FLOPs a step, and a budget of {budget}")
        steps.append(budget // flops)
    losses = [[] for _ in values]
    for seed in seeds:
        for i, setup in enumerate(setups):
            losses[i].append(run(setup, steps[i], seed))
    return list(zip(values, steps, losses))


@alternate("compare")
def with_two_comprehensions(base, field, values, budget, seeds, run):
    if any(
        Counter(part).most_common(1)[0][1] > 1 for part in (seeds, values) if len(part)
    ):
        raise ValueError("something occurs twice")
    setups = {
        v: one_change(base, field, v) if v != base[field] else base for v in values
    }
    costs = {v: training_flops(setup) for v, setup in setups.items()}
    for v, cost in costs.items():
        if cost > budget:
            raise ValueError(f"one step of {v} costs {cost} > {budget}")
    return [
        (v, budget // costs[v], [run(setups[v], budget // costs[v], s) for s in seeds])
        for v in values
    ]


# ── paired_verdict
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("paired_verdict")
def with_the_statistics_module(first, second, factor=2.0):
    if len(first) != len(second):
        raise ValueError(f"{len(first)} against {len(second)} losses")
    if len(first) < 2:
        raise ValueError(f"only {len(first)} pair")
    bad_first = any(math.isinf(x) or math.isnan(x) for x in first)
    bad_second = any(math.isinf(x) or math.isnan(x) for x in second)
    if bad_first or bad_second:
        if bad_first and bad_second:
            return "undecided", None, None
        return ("second" if bad_first else "first"), None, None
    d = [x - y for x, y in zip(first, second)]
    mean = statistics.fmean(d)
    error = statistics.stdev(d) / math.sqrt(len(d))
    if mean < -factor * error:
        return "first", mean, error
    if mean > factor * error:
        return "second", mean, error
    return "undecided", mean, error


@alternate("paired_verdict")
def with_numpy(first, second, factor=2.0):
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape or a.size < 2:
        raise ValueError(f"cannot pair {a.size} with {b.size}")
    fine = bool(np.isfinite(a).all()), bool(np.isfinite(b).all())
    if fine != (True, True):
        return (
            {(True, False): "first", (False, True): "second"}.get(fine, "undecided"),
            None,
            None,
        )
    d = a - b
    mean, error = float(d.mean()), float(d.std(ddof=1) / np.sqrt(d.size))
    names = ["undecided", "first", "second"]
    clear = abs(mean) > factor * error
    return names[clear * (1 if mean < 0 else 2)], mean, error


# ── power_law_forecast
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("power_law_forecast")
def with_polyfit(sizes, losses, new_size, floor=0.0):
    if len(sizes) != len(losses):
        raise ValueError(f"{len(sizes)} != {len(losses)}")
    if (
        min(sizes) <= 0
        or new_size <= 0
        or min(losses) <= floor
        or min(sizes) == max(sizes)
    ):
        raise ValueError("cannot fit")
    x, y = np.log10(np.array(sizes, float)), np.log10(np.array(losses, float) - floor)
    slope, height = np.polyfit(x, y, 1)
    return float(-slope), float(
        floor + 10 ** (height + slope * np.log10(float(new_size)))
    )


@alternate("power_law_forecast")
def with_least_squares_of_torch(sizes, losses, new_size, floor=0.0):
    if len(sizes) != len(losses):
        raise ValueError(f"got {len(sizes)} sizes, {len(losses)} losses")
    if any(s <= 0 for s in [*sizes, new_size]) or any(
        loss - floor <= 0 for loss in losses
    ):
        raise ValueError("no logarithm")
    if len({float(s) for s in sizes}) == 1:
        raise ValueError("a single size")
    x = torch.tensor([float(s) for s in sizes], dtype=torch.float64).log()
    A = torch.stack([torch.ones_like(x), x], dim=1)
    y = (torch.tensor(losses, dtype=torch.float64) - floor).log()
    a, b = torch.linalg.lstsq(A, y[:, None]).solution[:, 0].tolist()
    return -b, floor + math.exp(a) * new_size**b


# ── lora_adapters
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("lora_adapters")
def one_block_at_a_time(params, names, rank, seed=0):
    g = torch.Generator()
    g.manual_seed(seed)
    adapters = []
    for block in params["blocks"]:
        own = {}
        for name in names:
            w = block.get(name)
            if w is None:
                raise ValueError(f"no {name} in {list(block)}")
            rows, columns = w.shape
            if rank < 1 or rank > rows or rank > columns:
                raise ValueError(f"rank {rank} of {rows} x {columns}")
            a = w.new_empty(rows, rank).normal_(0, rows**-0.5, generator=g)
            own[name] = dict(a=a, b=w.new_zeros(rank, columns))
        adapters.append(own)
    return adapters


@alternate("lora_adapters")
def a_seed_for_each_matrix(params, names, rank, seed=0):
    adapters = [{} for _ in params["blocks"]]
    for i, block in enumerate(params["blocks"]):
        for j, name in enumerate(names):
            if name not in block.keys():
                raise ValueError(f"missing: {name}")
            n, m = block[name].size()
            if not 0 < rank <= n or rank > m:
                raise ValueError(f"r = {rank}, but the matrix is {n} by {m}")
            dice = np.random.default_rng([seed, i, j])
            a = torch.from_numpy(dice.standard_normal((n, rank))).to(block[name].dtype)
            adapters[i][name] = {
                "a": a * n**-0.5,
                "b": torch.zeros_like(block[name][:1]).repeat(rank, 1),
            }
    return adapters


# ── merge_lora
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("merge_lora")
def with_einsum(params, adapters, alpha):
    if len(params["blocks"]) != len(adapters):
        raise ValueError(f"{len(params['blocks'])} blocks, {len(adapters)} adapters")

    def merged(block, own):
        return {
            name: w
            if name not in own
            else w
            + torch.einsum("nr,rm->nm", own[name]["a"], own[name]["b"])
            * (alpha / own[name]["b"].size(0))
            for name, w in block.items()
        }

    return params | {
        "blocks": [merged(*pair) for pair in zip(params["blocks"], adapters)]
    }


@alternate("merge_lora")
def rank_one_at_a_time(params, adapters, alpha):
    blocks, own = params["blocks"], adapters
    if len(blocks) != len(own):
        raise ValueError(f"cannot merge {len(own)} into {len(blocks)}")
    new = dict(params)
    new["blocks"] = []
    for block, thin in zip(blocks, own):
        block = dict(block)
        for name in thin:
            a, b = thin[name]["a"], thin[name]["b"]
            for i in range(a.shape[-1]):
                block[name] = block[name] + (alpha / len(b)) * torch.outer(
                    a[:, i], b[i]
                )
        new["blocks"].append(block)
    return new


# ── tuning_costs
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("tuning_costs")
def adds_tensor_by_tensor(params, method, names=(), rank=0):
    if method not in ("full", "last", "lora"):
        raise ValueError(f"method: {method}")
    tensors = list_tensors(params)
    weights = sum(t.nbytes for t in tensors)
    bytes_each = tensors[0].nbytes // max(1, tensors[0].numel())
    trained = 0
    if method == "full":
        for t in tensors:
            trained += t.numel()
    elif method == "last":
        for t in params["blocks"][-1].values():
            trained += t.numel()
    else:
        for block in params["blocks"]:
            for name in names:
                n, m = block[name].shape
                trained += n * rank + rank * m
        weights += trained * bytes_each
    return dict(
        trained=trained,
        weights=weights,
        gradients=bytes_each * trained,
        optimizer=8 * trained,
    )


@alternate("tuning_costs")
def from_new_adapters(params, method, names=(), rank=0):
    if method == "lora":
        own = list(_thin(params, names, rank))
        everything, chosen = [*list_tensors(params), *own], own
    elif method in {"full", "last"}:
        everything = list_tensors(params)
        chosen = everything if method == "full" else list_tensors(params["blocks"][-1])
    else:
        raise ValueError(f"unknown method {method}")
    return {
        "optimizer": sum(2 * 4 * math.prod(t.shape) for t in chosen),
        "gradients": sum(t.element_size() * math.prod(t.shape) for t in chosen),
        "weights": sum(t.element_size() * math.prod(t.shape) for t in everything),
        "trained": sum(math.prod(t.shape) for t in chosen),
    }


def _thin(params, names, rank):
    for block in params["blocks"]:
        for name in names:
            w = block[name]
            yield w.new_zeros(w.shape[0], rank)
            yield w.new_zeros(rank, w.shape[1])


# ── distinct_ngrams
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("distinct_ngrams")
def with_slices(ids, n):
    B, N = ids.shape
    if n < 1 or n > N:
        raise ValueError(f"{n}-grams of {N} tokens")
    shares = torch.zeros(B, dtype=torch.double)
    for b in range(B):
        row = ids[b].tolist()
        grams = [tuple(row[i : i + n]) for i in range(N - n + 1)]
        shares[b] = len(Counter(grams)) / len(grams)
    return shares


@alternate("distinct_ngrams")
def with_unique(ids, n):
    if n <= 0 or n > ids.size(1):
        raise ValueError(f"n = {n} and {ids.size(1)} tokens")
    runs = ids.unfold(1, n, 1)
    return torch.stack(
        [
            torch.tensor(len(r.unique(dim=0)) / r.shape[0], dtype=torch.float64)
            for r in runs
        ]
    )


# ── accuracy_by_length
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("accuracy_by_length")
def sentence_by_sentence(predicted, targets, lengths):
    if predicted.shape != targets.shape or lengths.shape[0] != targets.shape[0]:
        raise ValueError(
            f"{tuple(predicted.shape)} vs {tuple(targets.shape)}, lengths {tuple(lengths.shape)}"
        )
    right, all_words = defaultdict(int), defaultdict(int)
    for p, t, n in zip(predicted.tolist(), targets.tolist(), lengths.tolist()):
        if n < 1 or n > len(t):
            raise ValueError(f"length {n} in rows of {len(t)}")
        right[n] += sum(a == b for a, b in zip(p[:n], t[:n]))
        all_words[n] += n
    return [(n, right[n] / all_words[n]) for n in sorted(right)]


@alternate("accuracy_by_length")
def with_a_mask(predicted, targets, lengths):
    B, T = targets.shape
    if tuple(predicted.shape) != (B, T) or len(lengths) != B:
        raise ValueError(f"{list(predicted.shape)}, {B} x {T}, {len(lengths)} lengths")
    if lengths.min() < 1 or lengths.max() > T:
        raise ValueError(
            f"lengths from {lengths.min()} to {lengths.max()} in {T} places"
        )
    counts = torch.arange(T) < lengths[:, None]
    hits = ((predicted == targets) & counts).sum(1)
    table = []
    for n in sorted(set(lengths.tolist())):
        rows = (lengths == n).nonzero().flatten()
        table.append((n, float(hits[rows].sum()) / (n * len(rows))))
    return table


# ── six_n_counterexample
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("six_n_counterexample")
def a_large_model_with_a_long_context(factor):
    d = 768
    return dict(
        vocab_size=50_000, d_model=d, num_layers=12, num_heads=12, num_kv_heads=4, d_ff=2048,
        context_length=int(100_000 * factor), positions="rotary", norm="rms", activation="swiglu",
        tied=True, dropout=0.1, smoothing=0.1, rate=3e-4, batch=64, parts=8,
    )  # fmt: skip


@alternate("six_n_counterexample")
def doubles_the_context(factor):
    setup = {
        "vocab_size": 5, "d_model": 4, "num_layers": 2, "num_heads": 2, "num_kv_heads": 2,
        "d_ff": 16, "context_length": 1, "positions": "none", "norm": "post", "activation": "gelu",
        "tied": True, "dropout": 0.0, "smoothing": 0.0, "rate": 0.1, "batch": 3, "parts": 1,
    }  # fmt: skip
    numbers = 5 * 4 + 2 * (4 * 16 + 2 * 4 * 16)
    while (
        training_flops(setup)
        < factor * 6 * numbers * setup["batch"] * setup["context_length"]
    ):
        setup["context_length"] *= 2
    return setup
