"""Other right answers, really written differently from the answer key."""

import math

import torch

from autograder.suite import alternate

# ── count_parameters
# ─────────────────────────────────────────────────────────────────────────────────────────


@alternate("count_parameters")
def adds_up_block_by_block(config):
    for name in (
        "vocab_size",
        "d_model",
        "num_heads",
        "d_head",
        "d_ff",
        "context_length",
    ):
        if getattr(config, name) < 1:
            raise ValueError(f"{name} = {getattr(config, name)}")
    for name in ("num_layers", "num_encoder_layers"):
        if getattr(config, name) < 0:
            raise ValueError(f"{name} = {getattr(config, name)}")
    d, hd, f = config.d_model, config.num_heads * config.d_head, config.d_ff
    total = dict.fromkeys(
        (
            "embedding",
            "positions",
            "attention",
            "cross_attention",
            "mlp",
            "norms",
            "unembedding",
            "total",
        ),
        0,
    )

    def add(key, *shapes):
        for shape in shapes:
            total[key] += math.prod(shape)
            total["total"] += math.prod(shape)

    add("embedding", (config.vocab_size, d))
    if config.learned_positions:
        add("positions", (config.context_length, d))
    kinds = ["encoder"] * config.num_encoder_layers + ["decoder"] * config.num_layers
    for kind in kinds:
        crosses = kind == "decoder" and config.num_encoder_layers > 0
        for key in ("attention", "cross_attention")[: 2 if crosses else 1]:
            add(key, (d, hd), (d, hd), (d, hd), (hd, d))
            if config.biases:
                add(key, (hd,), (hd,), (hd,), (d,))
        add("mlp", (d, f), (f, d))
        if config.biases:
            add("mlp", (f,), (d,))
        if config.norms:
            add("norms", (2, d), (2, d), *([(2, d)] if crosses else []))
    if config.norms and config.final_norm:
        add("norms", (2, d))
    if not config.tied:
        add("unembedding", (d, config.vocab_size))
    return total


@alternate("count_parameters")
def counts_encoder_and_decoder_apart(config):
    c = config
    bad = [
        s
        for s in (
            c.vocab_size,
            c.d_model,
            c.num_heads,
            c.d_head,
            c.d_ff,
            c.context_length,
        )
        if s <= 0
    ]
    bad += [n for n in (c.num_layers, c.num_encoder_layers) if n < 0]
    if bad:
        raise ValueError(f"cannot be: {bad}")
    d, w, f, b = c.d_model, c.num_heads * c.d_head, c.d_ff, int(c.biases)
    one = 3 * (d + b) * w + (w + b) * d
    two = (d + b) * f + (f + b) * d
    with_encoder = c.num_encoder_layers != 0
    per_decoder_norms = 3 if with_encoder else 2
    out = {}
    out["unembedding"] = 0 if c.tied else c.vocab_size * d
    out["norms"] = 0
    if c.norms:
        out["norms"] = (
            2
            * d
            * (
                2 * c.num_encoder_layers
                + per_decoder_norms * c.num_layers
                + int(c.final_norm)
            )
        )
    out["mlp"] = two * c.num_encoder_layers + two * c.num_layers
    out["cross_attention"] = one * c.num_layers if with_encoder else 0
    out["attention"] = one * c.num_encoder_layers + one * c.num_layers
    out["positions"] = c.context_length * d if c.learned_positions else 0
    out["embedding"] = c.vocab_size * d
    out["total"] = sum(list(out.values()))
    return out


@alternate("count_parameters")
def measures_made_up_tensors(config):
    c = config
    if (
        min(c.vocab_size, c.d_model, c.num_heads, c.d_head, c.d_ff, c.context_length)
        < 1
    ):
        raise ValueError(
            f"{c.vocab_size}, {c.d_model}, {c.num_heads}, {c.d_head}, {c.d_ff}, {c.context_length}"
        )
    if c.num_layers < 0 or c.num_encoder_layers < 0:
        raise ValueError(f"{c.num_layers}, {c.num_encoder_layers} layers")

    def numbers(*shape):
        return torch.empty(*shape, device="meta").numel()

    d, w = c.d_model, c.num_heads * c.d_head
    attention = 3 * numbers(d, w) + numbers(w, d)
    mlp = numbers(d, c.d_ff) + numbers(c.d_ff, d)
    if c.biases:
        attention, mlp = (
            attention + numbers(3, w) + numbers(d),
            mlp + numbers(c.d_ff) + numbers(d),
        )
    encoder, decoder = c.num_encoder_layers, c.num_layers
    crossing = decoder if encoder else 0
    counts = {
        "embedding": numbers(c.vocab_size, d),
        "positions": numbers(c.context_length, d) if c.learned_positions else 0,
        "attention": (encoder + decoder) * attention,
        "cross_attention": crossing * attention,
        "mlp": (encoder + decoder) * mlp,
        "norms": numbers(
            2 * (encoder + decoder) + crossing + (1 if c.final_norm else 0), 2, d
        )
        if c.norms
        else 0,
        "unembedding": 0 if c.tied else numbers(d, c.vocab_size),
    }
    counts["total"] = sum(counts.values())
    return counts


# ── decoder_lm
# ───────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_texts(ids, config):
    if ids.size(1) > config.context_length:
        raise ValueError(f"N = {ids.size(1)} > {config.context_length}")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= config.vocab_size:
        raise ValueError(f"ids from {low} to {high}, vocabulary {config.vocab_size}")


@alternate("decoder_lm")
def multiplies_one_hot_rows(ids, params, config):
    _refuse_texts(ids, config)
    table = params["embed"]
    hot = torch.nn.functional.one_hot(ids, table.shape[0]).to(table.dtype)
    x = hot @ table + params["positions"].narrow(0, 0, ids.size(1))
    mask = torch.ones(ids.size(1), ids.size(1)).tril().bool()
    for number in range(len(params["blocks"])):
        x = pre_norm_block(x, params["blocks"][number], config.num_heads, mask)
    x = layer_norm(x, gamma=params["lnf_gamma"], beta=params["lnf_beta"])
    unembed = params.get("unembed")
    return (
        torch.einsum("bnd,vd->bnv", x, table)
        if unembed is None
        else torch.einsum("bnd,dv->bnv", x, unembed)
    )


@alternate("decoder_lm")
def uses_the_functions_of_torch(ids, params, config):
    _refuse_texts(ids, config)
    n = ids.shape[1]
    x = torch.nn.functional.embedding(ids, params["embed"])
    x = x + params["positions"].index_select(0, torch.arange(n))
    mask = (torch.arange(n)[None, :] <= torch.arange(n)[:, None])[None]  # [1, N, N]
    for block in params["blocks"]:
        x = pre_norm_block(x, block, config.num_heads, mask)
    half = x.dtype == torch.float16
    y = x.float() if half else x
    y = torch.nn.functional.layer_norm(
        y, y.shape[-1:], params["lnf_gamma"].to(y.dtype), params["lnf_beta"].to(y.dtype)
    )
    weight = params["unembed"].T if "unembed" in params else params["embed"]
    return torch.nn.functional.linear(y.to(x.dtype), weight)


@alternate("decoder_lm")
def writes_the_blocks_out(ids, params, config):
    _refuse_texts(ids, config)
    positions = torch.arange(ids.shape[1]).expand(ids.shape)
    stream = params["embed"][ids] + params["positions"][positions]
    for p in params["blocks"]:
        normed = layer_norm(stream, p["ln1_gamma"], p["ln1_beta"])
        mask = causal_mask(ids.shape[1]).expand(ids.shape[0], -1, -1)
        stream = stream + multi_head_attention(
            normed, p["w_q"], p["w_k"], p["w_v"], p["w_o"], config.num_heads, mask
        )
        normed = layer_norm(stream, p["ln2_gamma"], p["ln2_beta"])
        stream = (
            stream + torch.clamp(normed @ p["w1"] + p["b1"], min=0) @ p["w2"] + p["b2"]
        )
    stream = layer_norm(stream, params["lnf_gamma"], params["lnf_beta"])
    if "unembed" not in params:
        return (params["embed"] @ stream.transpose(1, 2)).transpose(1, 2)
    return stream.matmul(params["unembed"])


@alternate("decoder_lm")
def reads_sentence_after_sentence(ids, params, config):
    _refuse_texts(ids, config)
    logits = []
    for sentence in ids:
        x = (params["embed"][sentence] + params["positions"][: len(sentence)])[
            None
        ]  # [1, N, D]
        for block in params["blocks"]:
            x = pre_norm_block(x, block, config.num_heads, causal_mask(len(sentence)))
        x = layer_norm(x, params["lnf_gamma"], params["lnf_beta"])
        logits.append(
            x[0] @ (params["unembed"] if "unembed" in params else params["embed"].mT)
        )
    return torch.stack(logits)


# ── lm_loss
# ──────────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_pairs(logits, ids, ignore_index):
    if logits.shape[0] != ids.shape[0] or logits.shape[1] != ids.shape[1]:
        raise ValueError(f"{tuple(logits.shape)} against {tuple(ids.shape)}")
    bad = ids[:, 1:][
        (ids[:, 1:] != ignore_index)
        & ((ids[:, 1:] < 0) | (ids[:, 1:] >= logits.shape[2]))
    ]
    if bad.numel():
        raise ValueError(f"targets {bad.tolist()} in a vocabulary of {logits.shape[2]}")


@alternate("lm_loss")
def lets_cross_entropy_do_it(logits, ids, ignore_index=-100):
    _refuse_pairs(logits, ids, ignore_index)
    targets = ids[:, 1:].reshape(-1)
    scores = logits[:, :-1].reshape(-1, logits.shape[-1])
    scores = scores.float() if scores.dtype == torch.float16 else scores
    total = torch.nn.functional.cross_entropy(
        scores, targets, ignore_index=ignore_index, reduction="sum"
    )
    return (total / targets.ne(ignore_index).sum().clamp(min=1)).to(logits.dtype)


@alternate("lm_loss")
def subtracts_from_the_logsumexp(logits, ids, ignore_index=-100):
    _refuse_pairs(logits, ids, ignore_index)
    wide = logits.double()[:, :-1]
    targets = ids[:, 1:]
    counted = targets != ignore_index
    own = wide.gather(2, targets.masked_fill(~counted, 0).unsqueeze(2)).squeeze(2)
    losses = (torch.logsumexp(wide, dim=2) - own).masked_fill(~counted, 0.0)
    return (losses.sum() / max(int(counted.sum()), 1)).to(logits.dtype)


@alternate("lm_loss")
def goes_row_by_row(logits, ids, ignore_index=-100):
    _refuse_pairs(logits, ids, ignore_index)
    total, count = (
        0.0 * logits.float().sum()
        if logits.dtype == torch.float16
        else 0.0 * logits.sum(),
        0,
    )
    for row, words in zip(logits, ids, strict=True):
        for place in range(len(words) - 1):
            if words[place + 1] != ignore_index:
                wide = row[place].float() if row.dtype == torch.float16 else row[place]
                total = (
                    total
                    - torch.nn.functional.log_softmax(wide, dim=0)[words[place + 1]]
                )
                count += 1
    return (total / count if count else total).to(logits.dtype)


@alternate("lm_loss")
def returns_zero_in_a_branch_of_its_own(logits, ids, ignore_index=-100):
    _refuse_pairs(logits, ids, ignore_index)
    targets = ids[:, 1:].flatten()
    if (targets == ignore_index).all():
        return logits.sum() * 0
    scores = logits[:, :-1].flatten(0, 1)
    scores = scores if scores.dtype != torch.float16 else scores.to(torch.float64)
    return torch.nn.functional.cross_entropy(
        scores, targets, ignore_index=ignore_index
    ).to(logits.dtype)


# ── train_step
# ───────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_steps(lr):
    if lr < 0:
        raise ValueError(f"lr = {lr}")


@alternate("train_step")
def calls_backward(params, ids, config, lr):
    _refuse_steps(lr)
    mine = with_tensors(
        params, [t.detach().clone().requires_grad_(True) for t in list_tensors(params)]
    )
    loss = lm_loss(decoder_lm(ids, mine, config), ids)
    loss.backward()
    with torch.no_grad():
        stepped = [
            t - lr * t.grad if t.grad is not None else t.clone()
            for t in list_tensors(mine)
        ]
    return float(loss), with_tensors(params, stepped)


@alternate("train_step")
def lets_an_optimizer_step(params, ids, config, lr):
    _refuse_steps(lr)
    leaves = [t.detach().clone().requires_grad_() for t in list_tensors(params)]
    optimizer = torch.optim.SGD(leaves, lr=lr)
    loss = lm_loss(decoder_lm(ids, with_tensors(params, leaves), config), ids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item(), with_tensors(params, [t.detach() for t in leaves])


@alternate("train_step")
def walks_through_the_nest_itself(params, ids, config, lr):
    _refuse_steps(lr)

    def leaf(tensor):
        return tensor.detach().requires_grad_()

    top = {name: leaf(t) for name, t in params.items() if name != "blocks"}
    blocks = [
        {name: leaf(t) for name, t in block.items()} for block in params["blocks"]
    ]
    loss = lm_loss(decoder_lm(ids, {**top, "blocks": blocks}, config), ids)
    loss.backward()

    def down(tensor):
        return (tensor.data - lr * tensor.grad).clone()

    new = {
        name: [{k: down(t) for k, t in b.items()} for b in blocks]
        if name == "blocks"
        else down(top[name])
        for name in params
    }
    return loss.item(), new


# ── similarity_by_layer
# ──────────────────────────────────────────────────────────────────────────────────────


def _stream(ids, place, params, config):
    """The rows [L + 1, D] of one word, from a text that ends with it: a causal model reads no
    further.
    """
    if place < 0 or place >= ids.shape[0]:
        raise ValueError(f"place {place}, {ids.shape[0]} words")
    if ids.shape[0] > config.context_length:
        raise ValueError(f"{ids.shape[0]} > {config.context_length}")
    check_ids(ids, config.vocab_size)
    read = ids[: place + 1]
    x = params["embed"][read]
    seen = [x[-1]]
    x = (x + params["positions"][: place + 1])[None]
    for block in params["blocks"]:
        x = pre_norm_block(
            x,
            block,
            config.num_heads,
            torch.ones(place + 1, place + 1, dtype=torch.bool).tril(),
        )
        seen.append(x[0, -1])
    return seen


@alternate("similarity_by_layer")
def reads_no_further_than_the_word(first, i, second, j, params, config):
    answer = []
    for u, v in zip(
        _stream(first, i, params, config),
        _stream(second, j, params, config),
        strict=True,
    ):
        length = torch.sqrt(u @ u) * torch.sqrt(v @ v)
        answer.append(
            torch.dot(u, v) / length if length > 0 else torch.zeros_like(length)
        )
    return torch.stack(answer)


@alternate("similarity_by_layer")
def pads_both_texts_into_one_batch(first, i, second, j, params, config):
    longest = max(len(first), len(second))
    for ids, place in ((first, i), (second, j)):
        if place not in range(len(ids)):
            raise ValueError(f"no place {place} among {len(ids)}")
        check_ids(ids, config.vocab_size)
    if longest > config.context_length:
        raise ValueError(f"{longest} words, context {config.context_length}")
    batch = torch.zeros(2, longest, dtype=torch.int64)
    batch[0, : len(first)], batch[1, : len(second)] = first, second
    here = (torch.arange(2), torch.tensor([i, j]))
    x = torch.nn.functional.embedding(batch, params["embed"])
    pairs = [x[here]]
    x = x + params["positions"][torch.arange(longest)]
    for block in params["blocks"]:
        x = pre_norm_block(x, block, config.num_heads, causal_mask(longest))
        pairs.append(x[here])
    pairs = torch.nn.functional.normalize(torch.stack(pairs), dim=-1)
    return (pairs[:, 0] * pairs[:, 1]).sum(-1)


@alternate("similarity_by_layer")
def cuts_the_model_after_each_block(first, i, second, j, params, config):
    def vector(ids, place, depth):
        decoder_lm(
            ids[None], {**params, "blocks": []}, config
        )  # refuses what does not fit
        if not -1 < place < len(ids):
            raise ValueError(f"{place} in {len(ids)}")
        if depth == 0:
            return params["embed"][ids[place]]
        x = (params["embed"][ids] + params["positions"][: len(ids)]).unsqueeze(0)
        for block in params["blocks"][:depth]:
            normed = layer_norm(x, block["ln1_gamma"], block["ln1_beta"])
            x = x + self_attention_of(
                normed, block, config.num_heads, causal_mask(len(ids))
            )
            x = x + mlp_of(layer_norm(x, block["ln2_gamma"], block["ln2_beta"]), block)
        return x[0][place]

    rows = []
    for depth in range(len(params["blocks"]) + 1):
        u, v = vector(first, i, depth), vector(second, j, depth)
        rows.append(
            (u * v).sum()
            / torch.clamp(torch.linalg.norm(u) * torch.linalg.norm(v), min=1e-30)
        )
    return torch.stack(rows)


# ── filtered_probabilities
# ───────────────────────────────────────────────────────────────────────────────────


def _refuse_settings(temperature, top_k, top_p):
    if temperature < 0.0:
        raise ValueError(f"temperature = {temperature}")
    if top_k is not None and top_k <= 0:
        raise ValueError(f"top_k = {top_k}")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError(f"top_p = {top_p}")


@alternate("filtered_probabilities")
def filters_row_by_row(logits, temperature, top_k=None, top_p=None):
    _refuse_settings(temperature, top_k, top_p)
    out = torch.zeros_like(logits)
    for b in range(logits.shape[0]):
        row = logits[b].double()
        order = row.argsort(descending=True).tolist()
        if temperature == 0:
            out[b, order[0]] = 1
            continue
        p = torch.softmax((row - row.max()) / temperature, dim=0)
        kept = order[: top_k or len(order)]
        if top_p is not None:
            whole, so_far, nucleus = float(p[kept].sum()), 0.0, []
            for token in kept:
                nucleus.append(token)
                so_far += float(p[token])
                if so_far >= top_p * whole:
                    break
            kept = nucleus
        out[b, kept] = (p[kept] / p[kept].sum()).to(out.dtype)
    return out


@alternate("filtered_probabilities")
def masks_logits_with_minus_infinity(logits, temperature, top_k=None, top_p=None):
    _refuse_settings(temperature, top_k, top_p)
    z = logits.double()
    if temperature == 0:
        temperature, top_k, top_p = 1.0, 1, None
    z = z / temperature
    if top_k is not None:
        best = torch.topk(z, min(top_k, z.size(-1)), dim=-1).indices
        keep = torch.zeros_like(z, dtype=torch.bool).scatter(-1, best, True)
        z = z.masked_fill(~keep, -math.inf)
    if top_p is not None:
        ranked, order = torch.sort(z, dim=-1, descending=True)
        reached = torch.cumsum(torch.softmax(ranked, dim=-1), dim=-1) >= top_p
        remove = torch.cat(
            [torch.zeros_like(reached[:, :1]), reached[:, :-1]], dim=-1
        )  # shifted: the crossing one stays
        z = z.masked_fill(
            torch.zeros_like(remove).scatter(-1, order, remove), -math.inf
        )
    return torch.softmax(z, dim=-1).to(logits.dtype)


@alternate("filtered_probabilities")
def ranks_the_tokens(logits, temperature, top_k=None, top_p=None):
    _refuse_settings(temperature, top_k, top_p)
    z = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
    order = z.argsort(dim=-1, descending=True)
    rank = order.argsort(dim=-1)  # the place of each token in the sorted row
    if temperature == 0:
        return (rank == 0).to(logits.dtype)
    p = torch.softmax((z - z.amax(dim=-1, keepdim=True)) / temperature, dim=-1)
    if top_k is not None:
        p = p * (rank < top_k)
        p = p / p.sum(dim=-1, keepdim=True)
    if top_p is not None:
        # [B, V]: all likelier ones
        before = (p.unsqueeze(1) * (rank.unsqueeze(1) < rank.unsqueeze(2))).sum(dim=-1)
        p = p * (before < top_p)
        p = p / p.sum(dim=-1, keepdim=True)
    return p.to(logits.dtype)


# ── generate
# ─────────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_prompts(prompt, num_new):
    if num_new < 0:
        raise ValueError(f"num_new = {num_new}")
    if prompt.size(1) == 0:
        raise ValueError("the prompt is empty")


@alternate("generate")
def fills_a_tensor_made_in_advance(
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
    _refuse_prompts(prompt, num_new)
    b, n = prompt.shape
    text = torch.zeros(b, n + num_new, dtype=prompt.dtype)
    text[:, :n] = prompt
    dice = torch.Generator()
    dice.manual_seed(seed)
    alive = torch.ones(b, dtype=torch.bool)
    for t in range(n, n + num_new):
        logits = decoder_lm(
            text[:, max(0, t - config.context_length) : t], params, config
        )
        p = filtered_probabilities(
            logits[:, -1, :], temperature, top_k=top_k, top_p=top_p
        )
        text[:, t] = torch.multinomial(p, num_samples=1, generator=dice).flatten()
        if eos_id is not None:
            text[~alive, t] = eos_id
            alive &= text[:, t] != eos_id
    return text


@alternate("generate")
def inverts_the_cumulative_sum(
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
    _refuse_prompts(prompt, num_new)
    dice, text = torch.Generator().manual_seed(seed), prompt.clone()
    for _ in range(num_new):
        p = filtered_probabilities(
            decoder_lm(text[:, -config.context_length :], params, config)[:, -1],
            temperature,
            top_k,
            top_p,
        )
        u = torch.rand(len(p), 1, generator=dice, dtype=torch.float64)
        edges = p.double().cumsum(dim=-1)
        word = (edges <= u * edges[:, -1:]).sum(dim=-1)
        if eos_id is not None:
            ended = (text[:, prompt.shape[1] :] == eos_id).any(dim=1)
            word = torch.where(ended, torch.full_like(word, eos_id), word)
        text = torch.cat((text, word.unsqueeze(1)), dim=1)
    return text


@alternate("generate")
def adds_gumbel_noise_and_stops_when_all_are_done(
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
    _refuse_prompts(prompt, num_new)
    dice = torch.Generator().manual_seed(seed)
    columns, done = (
        list(prompt.unbind(dim=1)),
        torch.zeros(len(prompt), dtype=torch.bool),
    )
    while len(columns) < prompt.shape[1] + num_new:
        if eos_id is not None and done.all():
            columns.append(torch.full_like(columns[0], eos_id))
            continue
        window = torch.stack(columns[-config.context_length :], dim=1)
        p = filtered_probabilities(
            decoder_lm(window, params, config)[:, -1], temperature, top_k, top_p
        )
        noise = -torch.log(
            -torch.log(torch.rand(p.shape, generator=dice, dtype=torch.float64))
        )
        word = (torch.log(p.double()) + noise).argmax(dim=-1)
        if eos_id is not None:
            word[done] = eos_id
            done = done.logical_or(word == eos_id)
        columns.append(word)
    return torch.stack(columns, dim=1)


# ── encoder_decoder
# ──────────────────────────────────────────────────────────────────────────────────────────


def _refuse_sentences(src, tgt_in, src_mask, params):
    if src.size(0) != tgt_in.size(0):
        raise ValueError(f"batches of {src.size(0)} and {tgt_in.size(0)}")
    if src_mask is not None and tuple(src_mask.shape) not in (
        (*src.shape,),
        (src.shape[0], 1, src.shape[1]),
    ):
        raise ValueError(f"mask {tuple(src_mask.shape)} for {tuple(src.shape)}")
    for ids, table in ((src, params["src_embed"]), (tgt_in, params["tgt_embed"])):
        if int(ids.min()) < 0 or int(ids.max()) >= table.size(0):
            raise ValueError(
                f"ids {int(ids.min())} to {int(ids.max())}, {table.size(0)} rows"
            )


@alternate("encoder_decoder")
def gives_masks_four_axes(src, tgt_in, src_mask, params, config):
    _refuse_sentences(src, tgt_in, src_mask, params)
    mask = torch.ones_like(src, dtype=torch.bool) if src_mask is None else src_mask
    mask = mask.reshape(src.shape[0], 1, 1, src.shape[1])  # [B, 1, 1, N_s]
    h, dtype = config.num_heads, params["src_embed"].dtype
    m = torch.nn.functional.embedding(src, params["src_embed"])
    m = m + sinusoidal_positions(src.shape[1], m.shape[2]).to(dtype)
    for e in params["encoder"]:
        m = post_norm_block(m, e, h, mask)
    x = torch.nn.functional.embedding(tgt_in, params["tgt_embed"])
    x = x + sinusoidal_positions(tgt_in.shape[1], x.shape[2]).to(dtype)
    for e in params["decoder"]:
        a = multi_head_attention(
            x, e["w_q"], e["w_k"], e["w_v"], e["w_o"], h, causal_mask(x.shape[1])[None]
        )
        x = layer_norm(a + x, e["ln1_gamma"], e["ln1_beta"])
        a = multi_head_attention(x, e["c_q"], e["c_k"], e["c_v"], e["c_o"], h, mask, m)
        x = layer_norm(a + x, e["ln2_gamma"], e["ln2_beta"])
        x = layer_norm(
            mlp(x, e["w1"], e["b1"], e["w2"], e["b2"]) + x,
            e["ln3_gamma"],
            e["ln3_beta"],
        )
    return torch.einsum("btd,dv->btv", x, params["unembed"])


@alternate("encoder_decoder")
def borrows_the_post_norm_block_for_the_rest(src, tgt_in, src_mask, params, config):
    _refuse_sentences(src, tgt_in, src_mask, params)
    keys = None if src_mask is None else src_mask.view(len(src), -1)[:, None, :]

    def enter(table, ids):
        x = table[ids]
        return x + sinusoidal_positions(x.size(1), x.size(2)).to(dtype=x.dtype)[None]

    def add_norm(x, y, p, name):
        return layer_norm(x + y, p[name + "_gamma"], p[name + "_beta"])

    memory = enter(params["src_embed"], src)
    for block in params["encoder"]:
        memory = add_norm(
            memory,
            self_attention_of(memory, block, config.num_heads, keys),
            block,
            "ln1",
        )
        memory = add_norm(memory, mlp_of(memory, block), block, "ln2")
    y = enter(params["tgt_embed"], tgt_in)
    look_back = torch.ones(y.size(1), y.size(1), dtype=torch.bool).tril()
    for block in params["decoder"]:
        cross = {"w_" + name: block["c_" + name] for name in "qkvo"}
        y = add_norm(
            y, self_attention_of(y, block, config.num_heads, look_back), block, "ln1"
        )
        y = add_norm(
            y,
            multi_head_attention(
                y, **cross, num_heads=config.num_heads, mask=keys, x_kv=memory
            ),
            block,
            "ln2",
        )
        y = add_norm(y, mlp_of(y, block), block, "ln3")
    return y.matmul(params["unembed"])


@alternate("encoder_decoder")
def translates_sentence_by_sentence_without_padding(
    src, tgt_in, src_mask, params, config
):
    _refuse_sentences(src, tgt_in, src_mask, params)
    lines = []
    for b in range(src.shape[0]):
        keys = (
            None
            if src_mask is None
            else src_mask.reshape(src.shape)[b][None, :].expand(src.shape[1], -1)
        )
        m = params["src_embed"][src[b]][None]
        m = m + sinusoidal_positions(m.shape[1], m.shape[2]).to(m.dtype)
        for block in params["encoder"]:
            m = post_norm_block(m, block, config.num_heads, keys)
        y = params["tgt_embed"][tgt_in[b]][None]
        y = y + sinusoidal_positions(y.shape[1], y.shape[2]).to(y.dtype)
        for p in params["decoder"]:
            look = self_attention_of(
                y, p, config.num_heads, causal_mask(y.shape[1], y.shape[1])
            )
            y = layer_norm(y + look, p["ln1_gamma"], p["ln1_beta"])
            seen = (
                None if keys is None else keys[:1].expand(y.shape[1], -1)
            )  # [N_t, N_s]
            read = multi_head_attention(
                y, p["c_q"], p["c_k"], p["c_v"], p["c_o"], config.num_heads, seen, m
            )
            y = layer_norm(y + read, p["ln2_gamma"], p["ln2_beta"])
            y = layer_norm(y + mlp_of(y, p), p["ln3_gamma"], p["ln3_beta"])
        lines.append(y[0] @ params["unembed"])
    return torch.stack(lines)


# ── shift_right
# ──────────────────────────────────────────────────────────────────────────────────────────────


@alternate("shift_right")
def rolls_and_overwrites_the_front(targets, start_id):
    if targets.size(1) == 0:
        raise ValueError(f"targets of shape {tuple(targets.shape)}")
    shifted = torch.roll(targets, 1, dims=1)
    shifted[:, 0] = start_id
    return shifted


@alternate("shift_right")
def pads_on_the_left(targets, start_id):
    if not targets.shape[1]:
        raise ValueError(f"{list(targets.shape)} has no column")
    return torch.nn.functional.pad(targets[:, :-1], (1, 0), value=start_id)


@alternate("shift_right")
def copies_into_a_filled_tensor(targets, start_id):
    if targets.shape[-1] < 1:
        raise ValueError(f"no targets in {list(targets.shape)}")
    shifted = targets.new_full(targets.shape, start_id)
    shifted[:, 1:] = targets[:, :-1]
    return shifted


# ── greedy_translate
# ─────────────────────────────────────────────────────────────────────────────────────────


def _refuse_lengths(max_new):
    if max_new < 0:
        raise ValueError(f"max_new = {max_new}")


@alternate("greedy_translate")
def translates_row_by_row(src, src_mask, params, config, start_id, eos_id, max_new):
    _refuse_lengths(max_new)
    result = torch.full((src.shape[0], max_new), eos_id)
    for b in range(src.shape[0]):
        words = [start_id]
        while len(words) <= max_new:
            mask = None if src_mask is None else src_mask[b : b + 1]
            logits = encoder_decoder(
                src[b : b + 1], torch.tensor([words]), mask, params, config
            )
            words.append(int(logits[0, -1].argmax()))
            if words[-1] == eos_id:
                break
        result[b, : len(words) - 1] = torch.tensor(words[1:], dtype=torch.long)
    return result


@alternate("greedy_translate")
def writes_into_a_full_tensor_and_stops_early(
    src, src_mask, params, config, start_id, eos_id, max_new
):
    _refuse_lengths(max_new)
    text = torch.full((src.size(0), max_new + 1), eos_id, dtype=torch.int64)
    text[:, 0] = start_id
    open_rows = torch.ones(src.size(0), dtype=torch.bool)
    for t in range(max_new):
        if not open_rows.any():
            break
        best = (
            encoder_decoder(src, text[:, : t + 1], src_mask, params, config)[:, t]
            .max(dim=1)
            .indices
        )
        text[open_rows, t + 1] = best[open_rows]
        open_rows = open_rows & (best != eos_id)
    return text[:, 1:]


@alternate("greedy_translate")
def translates_freely_and_cuts_afterwards(
    src, src_mask, params, config, start_id, eos_id, max_new
):
    _refuse_lengths(max_new)
    said = torch.full((len(src), max_new + 1), start_id)
    for t in range(max_new):
        said[:, t + 1] = encoder_decoder(src, said, src_mask, params, config)[
            :, t
        ].argmax(dim=-1)
    said = said[:, 1:]
    ends = (said == eos_id).long().cumsum(dim=1)
    return said.masked_fill(ends > 0, eos_id)


# ── patchify
# ─────────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_images(images, patch):
    h, w = images.shape[-2:]
    if patch <= 0 or h % patch != 0 or w % patch != 0:
        raise ValueError(f"{h} by {w} pixels, patches of {patch}")


@alternate("patchify")
def cuts_patch_by_patch(images, patch):
    _refuse_images(images, patch)
    strips = images.split(patch, dim=2)
    squares = [square for strip in strips for square in strip.split(patch, dim=3)]
    return torch.stack([square.flatten(start_dim=1) for square in squares], dim=1)


@alternate("patchify")
def picks_pixels_by_index(images, patch):
    _refuse_images(images, patch)
    b, c, h, w = images.shape
    rows, columns = h // patch, w // patch
    n, k = (
        torch.arange(rows * columns)[:, None],
        torch.arange(c * patch * patch)[None, :],
    )
    channel = k // patch**2 + 0 * n
    row = n // columns * patch + k // patch % patch
    column = n % columns * patch + k % patch
    return images[:, channel, row, column]


@alternate("patchify")
def names_the_axes(images, patch):
    _refuse_images(images, patch)
    cut = images.unflatten(3, (-1, patch)).unflatten(
        2, (-1, patch)
    )  # [B, C, r, P, s, P]
    return torch.einsum("bcrisj->brscij", cut).flatten(3).flatten(1, 2)


# ── patch_conv_weight
# ────────────────────────────────────────────────────────────────────────────────────────


def _refuse_matrices(w, channels, patch):
    if channels * patch**2 != w.size(0) or patch < 1:
        raise ValueError(f"{w.size(0)} is not {channels} * {patch} * {patch}")


@alternate("patch_conv_weight")
def cuts_the_rows_and_moves_the_outputs(w, channels, patch):
    _refuse_matrices(w, channels, patch)
    return w.unflatten(0, (channels, patch, patch)).permute(3, 0, 1, 2)


@alternate("patch_conv_weight")
def stacks_the_columns(w, channels, patch):
    _refuse_matrices(w, channels, patch)
    return torch.stack(
        [column.reshape(channels, patch, patch) for column in w.unbind(dim=1)]
    )


@alternate("patch_conv_weight")
def picks_rows_by_index(w, channels, patch):
    _refuse_matrices(w, channels, patch)
    rows = torch.arange(w.shape[0]).reshape(channels, patch, patch)
    return w[rows].movedim(-1, 0).contiguous()


# ── vit_logits
# ───────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_patches(patches, params):
    if patches.size(1) != params["positions"].size(0) or patches.size(2) != params[
        "w_patch"
    ].size(0):
        raise ValueError(
            f"patches {tuple(patches.shape)}, positions {tuple(params['positions'].shape)}, "
            f"w_patch {tuple(params['w_patch'].shape)}"
        )


@alternate("vit_logits")
def averages_with_a_row_of_weights(images, params, config):
    patches = patchify(images, config.patch)
    _refuse_patches(patches, params)
    n = patches.shape[1]
    x = torch.einsum("bnp,pd->bnd", patches, params["w_patch"]) + (
        params["b_patch"] + params["positions"]
    )
    for block in params["blocks"]:
        x = pre_norm_block(
            x, block, config.num_heads, torch.ones(n, n, dtype=torch.bool)
        )
    x = layer_norm(x, params["lnf_gamma"], params["lnf_beta"])
    pooled = (torch.full((1, n), 1 / n, dtype=x.dtype) @ x)[:, 0]
    return torch.addmm(params["b_head"], pooled, params["w_head"])


@alternate("vit_logits")
def classifies_patches_and_averages(images, params, config):
    x = patchify(images, config.patch)
    _refuse_patches(x, params)
    x = x.matmul(params["w_patch"]) + params["b_patch"]
    x = x + params["positions"][torch.arange(x.shape[1])]
    for p in params["blocks"]:
        x = x + self_attention_of(
            layer_norm(x, p["ln1_gamma"], p["ln1_beta"]), p, config.num_heads
        )
        x = x + mlp_of(layer_norm(x, p["ln2_gamma"], p["ln2_beta"]), p)
    votes = (
        layer_norm(x, params["lnf_gamma"], params["lnf_beta"]) @ params["w_head"]
        + params["b_head"]
    )
    return votes.mean(
        dim=1
    )  # the head is linear, so the order of head and mean does not matter


@alternate("vit_logits")
def embeds_with_a_convolution(images, params, config):
    patches = patchify(images, config.patch)
    _refuse_patches(patches, params)
    kernel = patch_conv_weight(params["w_patch"], images.shape[1], config.patch)
    # [B, D, H/P, W/P]
    x = torch.nn.functional.conv2d(
        images, kernel, params["b_patch"], stride=config.patch
    )
    x = x.flatten(2).transpose(1, 2) + params["positions"].unsqueeze(0)
    for block in params["blocks"]:
        x = pre_norm_block(x, block, config.num_heads)
    x = layer_norm(x, params["lnf_gamma"], params["lnf_beta"])
    return torch.nn.functional.linear(
        x.sum(dim=1) / x.shape[1], params["w_head"].T, params["b_head"]
    )


# ── attention_distance
# ───────────────────────────────────────────────────────────────────────────────────────


@alternate("attention_distance")
def adds_pair_by_pair(weights, columns):
    n, keys = weights.size(-2), weights.size(-1)
    if n != keys or columns <= 0 or n % columns != 0:
        raise ValueError(f"{n}, {keys}, {columns}")
    total = torch.zeros_like(weights[..., 0, 0])
    for a in range(n):
        for b in range(n):
            far = math.hypot(a // columns - b // columns, a % columns - b % columns)
            total = total + far * weights[..., a, b]
    return total / n


@alternate("attention_distance")
def distances_by_cdist(weights, columns):
    n = weights.shape[-1]
    if columns < 1 or weights.shape[-2] != n or n % columns:
        raise ValueError(f"{tuple(weights.shape)} on {columns} columns")
    grid = torch.cartesian_prod(torch.arange(n // columns), torch.arange(columns))
    far = torch.cdist(grid.double(), grid.double()).to(weights.dtype)
    return torch.einsum("...nm,nm->...", weights, far) / n


@alternate("attention_distance")
def distances_as_complex_numbers(weights, columns):
    *_, n, m = weights.shape
    if n != m or columns < 1 or m % columns > 0:
        raise ValueError(f"a grid with {columns} columns, and {n} x {m} weights")
    down, right = torch.meshgrid(
        torch.arange(m // columns), torch.arange(columns), indexing="ij"
    )
    point = torch.complex(right.flatten().double(), down.flatten().double())
    far = (point.unsqueeze(1) - point.unsqueeze(0)).abs().to(weights.dtype)
    return (weights * far).flatten(-2).sum(-1) / m


# ── fine_tune
# ────────────────────────────────────────────────────────────────────────────────────────────────


def _start(params, labels, num_classes, rates):
    """The parameters with a new head, once the arguments are looked through."""
    strange = sorted(set(rates) - set(params))
    if strange:
        raise ValueError(f"unknown: {strange}")
    if min(rates.values()) < 0:
        raise ValueError(f"step sizes: {sorted(rates.values())}")
    if labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(
            f"labels {labels.min().item()} … {labels.max().item()} for {num_classes} classes"
        )
    new = dict(params)
    new["w_head"] = torch.zeros(
        params["w_head"].shape[0], num_classes, dtype=params["w_head"].dtype
    )
    new["b_head"] = torch.zeros(num_classes, dtype=params["w_head"].dtype)
    return new


@alternate("fine_tune")
def asks_for_the_gradients_it_needs(
    params, images, labels, num_classes, config, rates, steps
):
    new, losses = _start(params, labels, num_classes, rates), []
    rate_of = [rates[name] for name in rates for _ in list_tensors(new[name])]
    for _ in range(steps):
        group = {name: new[name] for name in rates}
        leaves = [w.detach().clone().requires_grad_(True) for w in list_tensors(group)]
        logits = vit_logits(images, {**new, **with_tensors(group, leaves)}, config)
        loss = -torch.log_softmax(logits, dim=-1)[
            torch.arange(len(labels)), labels
        ].mean()
        gradients = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            stepped = [
                w - r * g for w, r, g in zip(leaves, rate_of, gradients, strict=True)
            ]
        new = {**new, **with_tensors(group, stepped)}
        losses.append(float(loss))
    return losses, {
        name: with_tensors(node, [w.detach() for w in list_tensors(node)])
        for name, node in new.items()
    }


@alternate("fine_tune")
def lets_an_optimizer_keep_the_groups(
    params, images, labels, num_classes, config, rates, steps
):
    new, losses = _start(params, labels, num_classes, rates), []
    copies = {
        name: with_tensors(node, [w.detach().clone() for w in list_tensors(node)])
        for name, node in new.items()
    }
    groups = []
    for name, rate in rates.items():
        tensors = list_tensors(copies[name])
        for w in tensors:
            w.requires_grad_()
        groups.append({"params": tensors, "lr": float(rate)})
    optimizer = torch.optim.SGD([group for group in groups if group["params"]], lr=0.0)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            vit_logits(images, copies, config), labels
        )
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    for node in copies.values():
        for w in list_tensors(node):
            w.requires_grad_(False)
    return losses, copies


@alternate("fine_tune")
def steps_in_a_loop_of_its_own(
    params, images, labels, num_classes, config, rates, steps
):
    new, losses = _start(params, labels, num_classes, rates), []
    while len(losses) < steps:
        asked = {name: rates.get(name, 0) for name in new}
        leaves = {name: list_tensors(new[name]) for name in new}
        for name in rates:
            leaves[name] = [w.clone().detach().requires_grad_() for w in leaves[name]]
        full = {name: with_tensors(new[name], leaves[name]) for name in new}
        logits = vit_logits(images, full, config)
        loss = (logits.logsumexp(-1) - logits.gather(1, labels[:, None])[:, 0]).mean()
        loss.backward()
        losses.append(loss.detach().item())
        for name in rates:
            new[name] = with_tensors(
                new[name], [w.detach() - asked[name] * w.grad for w in leaves[name]]
            )
    return losses, new


# ── explain_model_size
# ───────────────────────────────────────────────────────────────────────────────────────


@alternate("explain_model_size")
def solves_for_the_vocabulary(millions, num_blocks, d_model, min_vocab, max_vocab):
    for decoder in range(1, num_blocks + 1):
        encoder = num_blocks - decoder
        fixed = (12 * num_blocks + (4 * decoder if encoder else 0)) * d_model**2
        lowest = math.floor((millions * 10**6 - 500_000 - fixed) / d_model) + 1
        highest = math.ceil((millions * 10**6 + 500_000 - fixed) / d_model) - 1
        if max(lowest, min_vocab) <= min(highest, max_vocab):
            return encoder, decoder, max(lowest, min_vocab)
    return None


@alternate("explain_model_size")
def tries_every_vocabulary_in_steps(
    millions, num_blocks, d_model, min_vocab, max_vocab
):
    for encoder in reversed(range(num_blocks)):
        model = ModelConfig(
            min_vocab,
            d_model,
            num_blocks - encoder,
            1,
            d_model,
            4 * d_model,
            1,
            encoder,
            True,
            False,
            False,
            False,
            False,
        )
        least = count_parameters(model)["total"]
        for more in range(max_vocab - min_vocab + 1):
            if round((least + more * d_model) / 1e6) == millions:
                return encoder, num_blocks - encoder, min_vocab + more
    return None


@alternate("explain_model_size")
def collects_all_and_takes_the_last(
    millions, num_blocks, d_model, min_vocab, max_vocab
):
    found = []
    for encoder in range(num_blocks):
        squares = 12 * num_blocks + (4 * (num_blocks - encoder) if encoder > 0 else 0)
        middle = (millions * 1_000_000 - squares * d_model * d_model) // d_model
        vocab = sorted((min_vocab, middle, max_vocab))[1]
        if (
            abs(squares * d_model * d_model + vocab * d_model - millions * 1_000_000)
            < 500_000
        ):
            found.append([encoder, num_blocks - encoder, vocab])
    return found[-1] if found else None
