"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import torch
import torch.nn.functional as F

from autograder.suite import alternate, sample

# ── count_parameters, explain_model_size
# ─────────────────────────────────────────────────────────────────────


@sample(
    "count_parameters", deserves=("takes_four_d_for_the_mlp", "counts_whatever_it_gets")
)
def twelve_d_squared(config):
    D, inner = config.d_model, config.num_heads * config.d_head
    b = 1 if config.biases else 0
    layers = config.num_layers + config.num_encoder_layers
    crossing = config.num_layers if config.num_encoder_layers else 0
    att = 3 * (D * inner + b * inner) + inner * D + b * D
    r = {}
    r["embedding"] = config.vocab_size * D
    r["positions"] = config.context_length * D if config.learned_positions else 0
    r["attention"] = att * layers
    r["cross_attention"] = att * crossing
    r["mlp"] = layers * (D * 4 * D + b * 4 * D + 4 * D * D + b * D)
    r["norms"] = (
        2 * D * (2 * layers + crossing + int(config.final_norm)) if config.norms else 0
    )
    r["unembedding"] = 0 if config.tied else D * config.vocab_size
    r["total"] = sum(r.values())
    return r


# ── decoder_lm
# ───────────────────────────────────────────────────────────────────────────────────────────────


@sample("decoder_lm", deserves=("lets_everybody_see_everything", "takes_any_id"))
def blocks_without_a_mask(ids, params, config):
    B, N = ids.shape
    if N > config.context_length:
        raise ValueError(f"{N} > {config.context_length}")
    h = F.embedding(ids, params["embed"]) + params["positions"][torch.arange(N)]
    for layer in params["blocks"]:
        h = pre_norm_block(h, layer, config.num_heads)
    h = layer_norm(h, params["lnf_gamma"], params["lnf_beta"])
    head = params.get("unembed")
    return torch.matmul(h, head if head is not None else params["embed"].t())


@sample(
    "decoder_lm",
    deserves=("forgets_the_last_norm", "crops_a_text_that_is_too_long", "takes_any_id"),
)
def straight_to_the_logits(ids, params, config):
    x = params["embed"][ids]
    x = x + params["positions"][None, : x.size(1)]
    look = torch.tril(torch.ones(x.size(1), x.size(1), dtype=torch.bool))
    for i in range(len(params["blocks"])):
        x = pre_norm_block(x, params["blocks"][i], config.num_heads, look)
    w = params["unembed"] if "unembed" in params else params["embed"].T
    return torch.einsum("bnd,dv->bnv", x, w)


# ── lm_loss, train_step
# ──────────────────────────────────────────────────────────────────────────────────────


@sample("lm_loss", deserves=("scores_a_token_on_itself", "cuts_what_does_not_fit"))
def cross_entropy_of_the_same_place(logits, ids, ignore_index=-100):
    B, N, V = logits.shape
    return F.cross_entropy(
        logits.reshape(B * N, V), ids.reshape(B * N), ignore_index=ignore_index
    )


@sample("lm_loss", deserves="divides_by_all_targets")
def mean_over_the_zeroed(logits, ids, ignore_index=-100):
    if logits.shape[:-1] != ids.shape:
        raise ValueError(f"{tuple(logits.shape)} and {tuple(ids.shape)}")
    z = logits[:, :-1, :]
    z = z.float() if z.dtype == torch.half else z
    y = ids[:, 1:]
    real = y != ignore_index
    for t in y[real].tolist():
        if t < 0 or t >= logits.size(-1):
            raise ValueError(f"target {t}, {logits.size(-1)} words")
    logp = z.log_softmax(-1).gather(-1, y.clamp(min=0)[..., None])[..., 0]
    if y.numel() == 0:
        return (logits * 0).sum()
    return -(logp * real).mean().to(logits.dtype)


@sample("train_step", deserves=("goes_uphill", "takes_any_step_size"))
def plus_the_gradient(params, ids, config, lr):
    tensors = [t.clone().detach() for t in list_tensors(params)]
    for t in tensors:
        t.requires_grad = True
    loss = lm_loss(decoder_lm(ids, with_tensors(params, tensors), config), ids)
    loss.backward()
    with torch.no_grad():
        updated = [t + lr * t.grad for t in tensors]
    return float(loss), with_tensors(params, updated)


# ── embeddings in context
# ────────────────────────────────────────────────────────────────────────────────────


@sample(
    "similarity_by_layer",
    deserves=("reads_what_comes_later", "takes_any_place", "takes_negative_places"),
)
def encoder_habit(first, i, second, j, params, config):
    result = []
    streams = []
    for ids in (first, second):
        if ids.numel() > config.context_length or ids.max() >= config.vocab_size:
            raise ValueError(
                f"{ids.numel()} of {config.context_length}, {ids.max().item()} of "
                f"{config.vocab_size}"
            )
        h = params["embed"][ids]
        states = [h]
        h = h[None] + params["positions"][None, : ids.numel()]
        for layer in params["blocks"]:
            h = pre_norm_block(h, layer, config.num_heads)
            states.append(h[0])
        streams.append(states)
    for a, b in zip(*streams):
        result.append(F.cosine_similarity(a[i], b[j], dim=0))
    return torch.stack(result)


@sample("similarity_by_layer", deserves=("adds_positions_to_the_table",))
def hidden_states_of_the_library(first, i, second, j, params, config):
    hidden = []
    for ids, k in ((first, i), (second, j)):
        n = ids.shape[0]
        if k < 0 or n <= k:
            raise ValueError(f"position {k} of {n}")
        decoder_lm(ids.unsqueeze(0), params, config)
        x = params["embed"][ids] + params["positions"][:n]
        hidden.append([x[k]])
        x = x[None]
        for b in params["blocks"]:
            x = pre_norm_block(
                x, b, config.num_heads, torch.tril(torch.ones(n, n)).bool()
            )
            hidden[-1].append(x[0, k])
    return torch.stack([F.cosine_similarity(u, v, dim=-1) for u, v in zip(*hidden)])


@sample(
    "similarity_by_layer", deserves=("multiplies_without_dividing", "compares_any_ids")
)
def dots(first, i, second, j, params, config):
    def walk(ids, k):
        if len(ids) > config.context_length or k >= len(ids) or k < 0:
            raise ValueError(
                f"{len(ids)} words, context {config.context_length}, place {k}"
            )
        ids = torch.clamp(ids, max=config.vocab_size - 1)
        yield params["embed"][ids[k]]
        y = (params["embed"][ids] + params["positions"][torch.arange(len(ids))])[None]
        for layer in params["blocks"]:
            y = pre_norm_block(y, layer, config.num_heads, causal_mask(len(ids)))
            yield y[0, k]

    return torch.stack(
        [torch.dot(u, v) for u, v in zip(walk(first, i), walk(second, j))]
    )


# ── filtered_probabilities, generate
# ─────────────────────────────────────────────────────────────────────────


@sample(
    "filtered_probabilities",
    deserves=(
        "drops_the_token_that_crosses_p",
        "takes_any_setting",
        "asks_topk_for_too_many",
    ),
)
def cumulative_below_p(logits, temperature, top_k=None, top_p=None):
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.size(-1)).to(logits.dtype)
    probs = torch.softmax(
        logits.float() / temperature
        if logits.dtype == torch.half
        else logits / temperature,
        -1,
    )
    if top_k is not None:
        values, indices = probs.topk(min(top_k, probs.size(-1)), dim=-1)
        probs = torch.zeros_like(probs).scatter_(-1, indices, values)
        probs = probs / probs.sum(-1, keepdim=True)
    if top_p is not None:
        ordered, idx = torch.sort(probs, descending=True, dim=-1)
        keep = ordered.cumsum(-1) <= top_p
        probs = torch.zeros_like(probs).scatter_(-1, idx, ordered * keep)
        probs = probs / probs.sum(-1, keepdim=True)
    return probs.to(logits.dtype)


@sample(
    "filtered_probabilities",
    deserves=("applies_the_sorted_decision_unsorted", "takes_any_setting"),
)
def scattered_by_argsort(logits, temperature, top_k=None, top_p=None):
    if temperature == 0:
        hot = torch.zeros_like(logits)
        hot[torch.arange(len(logits)), logits.argmax(1)] = 1
        return hot
    z = (logits.float() if logits.dtype == torch.half else logits) / temperature
    if top_k is not None and top_k < z.size(1):
        rank = z.argsort(1, descending=True).argsort(1)
        z = z.masked_fill(rank >= top_k, -torch.inf)
    p = z.softmax(1)
    if top_p is not None:
        ranked, _ = p.sort(dim=1, descending=True)
        remove = ranked.cumsum(1) - ranked >= top_p
        p = torch.where(remove, torch.zeros_like(p), p)
        p = p / p.sum(1, keepdim=True)
    return p.to(logits.dtype)


@sample("generate", deserves=("always_takes_the_likeliest", "continues_anything"))
def argmax_in_a_loop(
    params,
    prompt,
    num_new,
    config,
    temperature=1.0,
    top_k=None,
    top_p=None,
    seed=0,
    eos_id=None,
):
    out = prompt.clone()
    finished = torch.zeros(len(prompt), 1, dtype=torch.bool)
    for _ in range(num_new):
        z = decoder_lm(out[:, -config.context_length :], params, config)[:, -1, :]
        nxt = torch.argmax(
            filtered_probabilities(z, temperature, top_k, top_p), dim=-1, keepdim=True
        )
        if eos_id is not None:
            nxt = torch.where(finished, torch.tensor(eos_id), nxt)
            finished |= nxt == eos_id
        out = torch.hstack([out, nxt])
    return out


@sample("generate", deserves=("never_ends_a_row", "seeds_the_global_state"))
def goes_on_after_eos(
    params,
    prompt,
    num_new,
    config,
    temperature=1.0,
    top_k=None,
    top_p=None,
    seed=0,
    eos_id=None,
):
    if num_new < 0:
        raise ValueError(f"{num_new} < 0")
    if prompt.numel() == 0:
        raise ValueError("0 tokens")
    torch.manual_seed(seed)
    tokens = prompt
    while tokens.size(1) < prompt.size(1) + num_new:
        window = (
            tokens
            if tokens.size(1) <= config.context_length
            else tokens[:, -config.context_length :]
        )
        dist = filtered_probabilities(
            decoder_lm(window, params, config)[:, -1], temperature, top_k, top_p
        )
        tokens = torch.cat((tokens, torch.multinomial(dist, num_samples=1)), dim=-1)
    return tokens


# ── encoder_decoder and around it
# ────────────────────────────────────────────────────────────────────────────


@sample("encoder_decoder", deserves=("makes_the_encoder_causal", "takes_any_pair"))
def causal_everywhere(src, tgt_in, src_mask, params, config):
    H = config.num_heads
    pad = None if src_mask is None else src_mask.view(src.size(0), 1, src.size(1))
    look = torch.ones(src.size(1), src.size(1)).tril().bool()
    enc_mask = look if pad is None else look & pad
    m = params["src_embed"][src]
    m = m + sinusoidal_positions(m.size(1), m.size(2)).to(m)
    for blk in params["encoder"]:
        m = post_norm_block(m, blk, H, enc_mask)
    t = params["tgt_embed"][tgt_in]
    t = t + sinusoidal_positions(t.size(1), t.size(2)).to(t)
    for blk in params["decoder"]:
        own = multi_head_attention(
            t, blk["w_q"], blk["w_k"], blk["w_v"], blk["w_o"], H, causal_mask(t.size(1))
        )
        t = layer_norm(t + own, blk["ln1_gamma"], blk["ln1_beta"])
        other = multi_head_attention(
            t, blk["c_q"], blk["c_k"], blk["c_v"], blk["c_o"], H, pad, m
        )
        t = layer_norm(t + other, blk["ln2_gamma"], blk["ln2_beta"])
        ff = F.relu(t @ blk["w1"] + blk["b1"]) @ blk["w2"] + blk["b2"]
        t = layer_norm(t + ff, blk["ln3_gamma"], blk["ln3_beta"])
    return t @ params["unembed"]


@sample("encoder_decoder", deserves="lets_the_decoder_see_the_future")
def top_left_is_not_even_there(src, tgt_in, src_mask, params, config):
    if len(src) != len(tgt_in):
        raise ValueError(f"{len(src)} and {len(tgt_in)}")
    if src_mask is not None and (
        src_mask.shape[0] != len(src) or src_mask.shape[-1] != src.shape[1]
    ):
        raise ValueError(f"{tuple(src_mask.shape)} and {tuple(src.shape)}")
    for ids, table in ((src, params["src_embed"]), (tgt_in, params["tgt_embed"])):
        for i in ids.flatten().tolist():
            if not 0 <= i < len(table):
                raise ValueError(f"{i} of {len(table)}")
    keys = None if src_mask is None else src_mask.reshape(len(src), 1, -1)
    memory = params["src_embed"][src] + sinusoidal_positions(
        src.shape[1], params["src_embed"].shape[1]
    ).to(params["src_embed"].dtype)
    for layer in params["encoder"]:
        memory = post_norm_block(memory, layer, config.num_heads, keys)
    y = params["tgt_embed"][tgt_in] + sinusoidal_positions(
        tgt_in.shape[1], params["tgt_embed"].shape[1]
    ).to(params["tgt_embed"].dtype)
    for layer in params["decoder"]:
        y = layer_norm(
            y + self_attention_of(y, layer, config.num_heads, None),
            layer["ln1_gamma"],
            layer["ln1_beta"],
        )
        weights = [layer[name] for name in ("c_q", "c_k", "c_v", "c_o")]
        y = y + multi_head_attention(y, *weights, config.num_heads, keys, x_kv=memory)
        y = layer_norm(y, layer["ln2_gamma"], layer["ln2_beta"])
        y = layer_norm(y + mlp_of(y, layer), layer["ln3_gamma"], layer["ln3_beta"])
    return torch.einsum("btd,dv->btv", y, params["unembed"])


@sample(
    "shift_right", deserves=("keeps_the_last_target", "starts_where_nothing_is_said")
)
def pads_in_front(targets, start_id):
    return F.pad(targets, (1, 0), value=start_id)


@sample("shift_right", deserves="replaces_the_first_target")
def overwrites_the_first_column(targets, start_id):
    if targets.size(1) == 0:
        raise ValueError(f"{tuple(targets.shape)}")
    shifted = targets.clone()
    shifted[:, 0] = start_id
    return shifted


@sample(
    "greedy_translate",
    deserves=("returns_the_start_token", "says_nothing_for_negative_numbers"),
)
def everything_that_was_decoded(
    src, src_mask, params, config, start_id, eos_id, max_new
):
    ys = torch.full((src.size(0), 1), start_id, dtype=torch.long)
    ended = [False] * src.size(0)
    for _ in range(max_new):
        step = (
            encoder_decoder(src, ys, src_mask, params, config)[:, -1]
            .argmax(-1)
            .tolist()
        )
        step = [eos_id if ended[b] else w for b, w in enumerate(step)]
        ended = [ended[b] or w == eos_id for b, w in enumerate(step)]
        ys = torch.cat([ys, torch.tensor(step)[:, None]], 1)
    return ys


# ── images
# ───────────────────────────────────────────────────────────────────────────────────────────────────


@sample("patchify", deserves=("puts_the_channels_last", "drops_what_does_not_fit"))
def slices_in_two_loops(images, patch):
    b, c, h, w = images.shape
    rows = []
    for i in range(0, h - patch + 1, patch):
        for j in range(0, w - patch + 1, patch):
            tile = images[:, :, i : i + patch, j : j + patch]
            rows.append(tile.permute(0, 2, 3, 1).reshape(b, -1))
    return torch.stack(rows, 1)


@sample(
    "patch_conv_weight",
    deserves=("reshapes_without_transposing", "leaves_the_check_to_torch"),
)
def unflatten_of_the_rows(w, channels, patch):
    return w.contiguous().view(w.size(1), channels, patch, patch)


@sample("vit_logits", deserves=("averages_before_the_norm", "takes_images_of_any_size"))
def pooling_then_norm(images, params, config):
    tokens = (
        patchify(images, config.patch).matmul(params["w_patch"]) + params["b_patch"]
    )
    tokens = tokens + params["positions"].unsqueeze(0)
    for blk in params["blocks"]:
        tokens = pre_norm_block(tokens, blk, config.num_heads, None)
    pooled = tokens.sum(1) / tokens.size(1)
    return (
        layer_norm(pooled, params["lnf_gamma"], params["lnf_beta"]) @ params["w_head"]
        + params["b_head"]
    )


@sample("attention_distance", deserves=("walks_around_the_corner", "measures_any_grid"))
def manhattan(weights, columns):
    n = weights.size(-1)
    row = torch.arange(n).div(max(columns, 1), rounding_mode="floor")
    col = torch.arange(n).remainder(max(columns, 1))
    d = (row.view(-1, 1) - row).abs() + (col.view(-1, 1) - col).abs()
    return torch.mean(
        torch.sum(weights * d[: weights.size(-2)].to(weights.dtype), -1), -1
    )


@sample("attention_distance", deserves=("averages_over_the_keys_too",))
def mean_of_the_matrix(weights, columns):
    n = weights.size(-1)
    if columns < 1 or n % columns or weights.size(-2) != n:
        raise ValueError(f"{n} {weights.size(-2)} {columns}")
    yy, xx = torch.meshgrid(
        torch.arange(n // columns), torch.arange(columns), indexing="ij"
    )
    xy = torch.stack((xx.reshape(-1), yy.reshape(-1)), 1).to(weights.dtype)
    return (weights * torch.linalg.norm(xy[None] - xy[:, None], dim=2)).mean(
        dim=(-2, -1)
    )


@sample("attention_distance", deserves=("assumes_a_square_grid", "measures_any_grid"))
def side_from_the_root(weights, columns):
    n = weights.shape[-1]
    side = int(n**0.5)
    points = torch.tensor(
        [[k // side, k % side] for k in range(n)], dtype=weights.dtype
    )
    return (weights * torch.cdist(points, points)).sum((-1, -2)) / n


@sample(
    "fine_tune",
    deserves=(
        "trains_what_is_frozen",
        "passes_over_unknown_names",
        "fine_tunes_at_any_rate",
    ),
)
def sgd_on_everything(params, images, labels, num_classes, config, rates, steps):
    check_ids(labels, num_classes)
    d = params["w_head"].size(0)
    net = {
        k: with_tensors(v, [t.detach().clone() for t in list_tensors(v)])
        for k, v in params.items()
    }
    net["w_head"], net["b_head"] = (
        params["w_head"].new_zeros(d, num_classes),
        params["b_head"].new_zeros(num_classes),
    )
    for t in list_tensors(net):
        t.requires_grad_(True)
    base = max(rates.values())
    opt = torch.optim.SGD(
        [
            {"params": list_tensors(v), "lr": rates.get(k, base)}
            for k, v in net.items()
            if v != []
        ],
        lr=1,
    )
    history = []
    for _ in range(steps):
        out = F.cross_entropy(vit_logits(images, net, config), labels)
        opt.zero_grad()
        out.backward()
        opt.step()
        history.append(out.item())
    return history, with_tensors(net, [t.detach() for t in list_tensors(net)])


@sample("fine_tune", deserves=("one_step_size_for_all", "takes_any_label"))
def one_rate(params, images, labels, num_classes, config, rates, steps):
    for key in rates:
        if key not in params or rates[key] < 0:
            raise ValueError(f"{key}: {rates[key]}")
    labels = labels.clip(0, num_classes - 1)
    model = dict(params)
    model["w_head"] = torch.zeros_like(params["w_head"][:, :1]).repeat(1, num_classes)
    model["b_head"] = torch.zeros_like(params["b_head"][:1]).repeat(num_classes)
    lr, trace = list(rates.values())[0], []
    for _ in range(steps):
        part = {key: model[key] for key in rates}
        ws = [w.detach().requires_grad_() for w in list_tensors(part)]
        loss = F.cross_entropy(
            vit_logits(images, {**model, **with_tensors(part, ws)}, config), labels
        )
        gs = torch.autograd.grad(loss, ws)
        model.update(
            with_tensors(part, [(w - lr * g).detach() for w, g in zip(ws, gs)])
        )
        trace.append(loss.item())
    return trace, model


@sample("fine_tune", deserves=("adds_up_the_losses", "fine_tunes_at_any_rate"))
def negative_log_likelihood_of_the_batch(
    params, images, labels, num_classes, config, rates, steps
):
    unknown = [key for key in rates if params.get(key) is None]
    if unknown:
        raise ValueError(f"{unknown} not in params")
    check_ids(labels, num_classes)
    d, dtype = len(params["w_head"]), params["w_head"].dtype
    state = params | {
        k: torch.zeros(s, dtype=dtype)
        for k, s in (("w_head", (d, num_classes)), ("b_head", num_classes))
    }
    seen = []
    for _ in range(steps):
        tuned = {}
        for k in rates:
            tuned[k] = with_tensors(
                state[k],
                [t.detach().clone().requires_grad_() for t in list_tensors(state[k])],
            )
        log_p = F.log_softmax(vit_logits(images, state | tuned, config), -1)
        value = -log_p[range(len(labels)), labels].sum()
        value.backward()
        seen.append(value.item())
        for k in rates:
            state = state | {
                k: with_tensors(
                    tuned[k],
                    [t.data - rates[k] * t.grad for t in list_tensors(tuned[k])],
                )
            }
    return seen, state


# ── right answers
# ────────────────────────────────────────────────────────────────────────────────────────────


@alternate("lm_loss")
def selects_and_averages(logits, ids, ignore_index=-100):
    if tuple(logits.shape[:2]) != tuple(ids.shape):
        raise ValueError(f"{tuple(logits.shape)} and {tuple(ids.shape)}")
    V = logits.size(2)
    z, y = logits[:, :-1].reshape(-1, V), ids[:, 1:].reshape(-1)
    keep = torch.nonzero(y != ignore_index)[:, 0]
    if len(keep) == 0:
        return (logits * 0.0).sum()
    z, y = z[keep], y[keep]
    if int(y.min()) < 0 or int(y.max()) >= V:
        raise ValueError(f"{int(y.min())} … {int(y.max())} in {V} words")
    z = z.float() if z.dtype in (torch.half, torch.bfloat16) else z
    return F.cross_entropy(z, y).to(logits.dtype)


@alternate("shift_right")
def pads_and_cuts(targets, start_id):
    if targets.size(-1) == 0:
        raise ValueError(f"shape {tuple(targets.shape)}")
    return F.pad(targets[:, :-1], (1, 0), value=start_id)
