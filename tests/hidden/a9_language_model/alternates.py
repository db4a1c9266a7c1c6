"""Other right answers, really written differently from the answer key."""

import heapq
import math
from collections import Counter, defaultdict
from itertools import pairwise

import torch

from autograder.suite import alternate

# ── train_byte_bpe
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("train_byte_bpe")
def keeps_the_counts_up_to_date(text, num_merges):
    if num_merges < 0:
        raise ValueError(f"{num_merges} merges")
    words = [
        (list(word), count)
        for word, count in Counter(split_words(bytes(text.tolist()))).items()
    ]
    counts, places = Counter(), defaultdict(set)
    for n, (ids, count) in enumerate(words):
        for pair in pairwise(ids):
            counts[pair] += count
            places[pair].add(n)
    merges = []
    while len(merges) < num_merges and counts:
        top = max(counts.values())
        best = min(pair for pair, count in counts.items() if count == top)
        for n in places.pop(best):
            ids, count = words[n]
            for pair in pairwise(ids):
                counts[pair] -= count
            ids = join_pair(ids, best, 256 + len(merges))
            for pair in pairwise(ids):
                counts[pair] += count
                places[pair].add(n)
            words[n] = ids, count
        counts = Counter({pair: count for pair, count in counts.items() if count > 0})
        merges.append(best)
    return merges


@alternate("train_byte_bpe")
def takes_pairs_from_a_heap(text, num_merges):
    if num_merges < 0:
        raise ValueError(f"num_merges must be 0 or more, not {num_merges}")
    tally = Counter(split_words(text.numpy().tobytes()))
    words, times = [list(word) for word in tally], list(tally.values())
    counts, where = defaultdict(int), defaultdict(set)
    for n, ids in enumerate(words):
        for pair in zip(ids, ids[1:]):
            counts[pair] += times[n]
            where[pair].add(n)
    heap = [(-count, pair) for pair, count in counts.items()]
    heapq.heapify(heap)
    merges = []
    while heap and len(merges) < num_merges:
        count, (left, right) = heapq.heappop(heap)
        if counts[left, right] != -count:
            continue  # counted before another merge
        new_id, changed = 256 + len(merges), set()
        for n in where.pop((left, right)):
            ids, out = words[n], []
            for pair in zip(ids, ids[1:]):
                counts[pair] -= times[n]
                changed.add(pair)
            for token in ids:
                if out and out[-1] == left and token == right:
                    out[-1] = new_id
                else:
                    out.append(token)
            words[n] = out
            for pair in zip(out, out[1:]):
                counts[pair] += times[n]
                where[pair].add(n)
                changed.add(pair)
        for pair in changed:
            if counts[pair] > 0:
                heapq.heappush(heap, (-counts[pair], pair))
        merges.append((left, right))
    return merges


# ── bpe_encode
# ───────────────────────────────────────────────────────────────────────────────────────────────


@alternate("bpe_encode")
def applies_the_merges_in_their_order(text, merges):
    tokens = []
    for word in split_words(bytes(text.tolist())):
        ids = list(word)
        for place, pair in enumerate(merges):
            ids = join_pair(ids, tuple(pair), 256 + place)
        tokens.extend(ids)
    return torch.tensor(tokens, dtype=torch.long)


@alternate("bpe_encode")
def joins_one_pair_at_a_time(text, merges):
    rank = dict(zip(map(tuple, merges), range(len(merges))))

    def encode(word):
        ids = list(word)
        while len(ids) > 1:
            found = min(
                range(len(ids) - 1),
                key=lambda i: rank.get((ids[i], ids[i + 1]), math.inf),
            )
            if (ids[found], ids[found + 1]) not in rank:
                break
            ids[found : found + 2] = [256 + rank[ids[found], ids[found + 1]]]
        return ids

    tokens = [
        token for word in split_words(text.numpy().tobytes()) for token in encode(word)
    ]
    return torch.LongTensor(tokens)


@alternate("bpe_encode")
def encodes_recursively(text, merges):
    ids_of_pair = {tuple(pair): 256 + place for place, pair in enumerate(merges)}

    def shorten(ids):
        candidates = sorted(
            ids_of_pair[pair] for pair in set(pairwise(ids)) & ids_of_pair.keys()
        )
        if not candidates:
            return ids
        return shorten(
            join_pair(ids, tuple(merges[candidates[0] - 256]), candidates[0])
        )

    pieces = [
        torch.tensor(shorten(list(word))) for word in split_words(bytes(text.tolist()))
    ]
    return torch.cat([torch.zeros(0, dtype=torch.int64), *pieces])


# ── bpe_decode
# ───────────────────────────────────────────────────────────────────────────────────────────────


@alternate("bpe_decode")
def unfolds_each_id(ids, merges):
    size = 256 + len(merges)
    data, waiting = [], ids.tolist()[::-1]
    for token in waiting:
        if not 0 <= token < size:
            raise ValueError(f"{token} is none of {size} ids")
    while waiting:
        token = waiting.pop()
        if token < 256:
            data.append(token)
        else:
            left, right = merges[token - 256]
            waiting += [right, left]
    return torch.tensor(data, dtype=torch.uint8)


@alternate("bpe_decode")
def glues_byte_strings(ids, merges):
    table = [bytes([n]) for n in range(256)]
    for pair in merges:
        table.append(b"".join(table[part] for part in pair))
    for token in ids.tolist():
        if token < 0 or token >= len(table):
            raise ValueError(f"id {token}, vocabulary of {len(table)}")
    return torch.tensor(
        list(b"".join(table[token] for token in ids.tolist())), dtype=torch.uint8
    )


@alternate("bpe_decode")
def concatenates_tensors(ids, merges):
    count = len(merges) + 256
    wrong = ids[(ids < 0) | (ids > count - 1)]
    if len(wrong):
        raise ValueError(f"no token {wrong[0].item()} among {count}")
    parts = list(torch.arange(256, dtype=torch.uint8).split(1))
    for left, right in merges:
        parts.append(torch.cat([parts[left], parts[right]]))
    return torch.cat(
        [torch.zeros(0, dtype=torch.uint8), *(parts[token] for token in ids)]
    )


# ── gelu ─────────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("gelu")
def by_a_sigmoid(x):
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    inner = math.sqrt(8 / math.pi) * wide * (1 + 0.044715 * wide * wide)
    return (wide * torch.sigmoid(inner)).to(x.dtype)


@alternate("gelu")
def by_powers(x):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    inner = (2 / math.pi) ** 0.5 * (wide + 0.044715 * torch.pow(wide, 3))
    return (wide / 2 + wide / 2 * inner.tanh()).type(x.dtype)


@alternate("gelu")
def with_ten_digits_of_the_root(x):
    """As many codes have it, with the root of 2/π to ten digits: some 1e-11 off in float64."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return (
        0.5
        * wide
        * (1.0 + torch.tanh(wide * 0.7978845608 * (1.0 + 0.044715 * wide * wide)))
    ).to(x.dtype)


@alternate("gelu")
def in_float64(x):
    wide = x.double()
    c = math.sqrt(2.0 / math.pi)
    return (wide * (1.0 + torch.tanh(c * wide + c * 0.044715 * wide.pow(3))) * 0.5).to(
        x.dtype
    )


# ── language_model
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("language_model")
def by_functions_of_torch(ids, params, config, cache=None):
    past = cache.length if cache is not None else 0
    batch, n = ids.shape
    if past + n > config.context_length:
        raise ValueError(f"{past + n} > {config.context_length}")
    if ids.min() < 0 or ids.max() >= config.vocab_size:
        raise ValueError(
            f"ids {ids.min().item()} … {ids.max().item()}, vocabulary {config.vocab_size}"
        )
    d = params["embed"].shape[1]

    def norm(x, name):
        return torch.nn.functional.layer_norm(
            x, (d,), params_of[f"{name}_gamma"], params_of[f"{name}_beta"]
        )

    x = (
        torch.nn.functional.embedding(ids, params["embed"])
        + params["positions"][torch.arange(past, past + n)]
    )
    for layer, params_of in enumerate(params["blocks"]):
        b, h = params_of, norm(x, "ln1")
        q, k, v = (
            torch.nn.functional.linear(h, b[f"w_{s}"].T, b[f"b_{s}"])
            .view(batch, n, config.num_heads, -1)
            .permute(0, 2, 1, 3)
            for s in "qkv"
        )
        if cache is not None:
            k, v = cache.append(layer, k, v)
        mixed = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=torch.ones(n, past + n, dtype=torch.bool).tril(past)
        )
        x = x + (mixed.permute(0, 2, 1, 3).reshape(batch, n, -1) @ b["w_o"] + b["b_o"])
        h = norm(x, "ln2")
        x = x + (gelu(h @ b["w1"] + b["b1"]) @ b["w2"] + b["b2"])
    if cache is not None:
        cache.advance(n)
    params_of = params
    return torch.einsum("bnd,vd->bnv", norm(x, "lnf"), params["embed"])


@alternate("language_model")
def looks_up_by_a_product(ids, params, config, cache=None):
    past = getattr(cache, "length", 0)
    batch, n = ids.shape
    if past + n > config.context_length:
        raise ValueError(f"{past} + {n} tokens in a context of {config.context_length}")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= config.vocab_size:
        raise ValueError(
            f"id {low if low < 0 else high} in a vocabulary of {config.vocab_size}"
        )
    embed, heads = params["embed"], config.num_heads
    tokens = torch.nn.functional.one_hot(ids, config.vocab_size).to(embed.dtype)
    x = torch.einsum("bnv,vd->bnd", tokens, embed) + params["positions"][past:][:n]
    for layer, p in enumerate(params["blocks"]):
        h = layer_norm(x, p["ln1_gamma"], p["ln1_beta"])
        q, k, v = (
            (torch.einsum("bnd,de->bne", h, p[f"w_{c}"]) + p[f"b_{c}"])
            .reshape(batch, n, heads, -1)
            .permute(0, 2, 1, 3)
            for c in "qkv"
        )
        if cache is not None:
            k, v = cache.append(layer, k, v)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        later = (
            torch.arange(k.shape[2])[None, :] > torch.arange(past, past + n)[:, None]
        )
        weights = torch.softmax(
            scores.masked_fill(later, float("-inf")).double(), dim=-1
        ).to(v.dtype)
        mixed = torch.einsum("bhqk,bhkd->bqhd", weights, v).reshape(batch, n, -1)
        x = x + mixed @ p["w_o"] + p["b_o"]
        x = (
            x
            + gelu(layer_norm(x, p["ln2_gamma"], p["ln2_beta"]) @ p["w1"] + p["b1"])
            @ p["w2"]
            + p["b2"]
        )
    if cache is not None:
        cache.advance(n)
    return torch.einsum(
        "bnd,vd->bnv", layer_norm(x, params["lnf_gamma"], params["lnf_beta"]), embed
    )


@alternate("language_model")
def with_fused_projections(ids, params, config, cache=None):
    begin = getattr(cache, "length", 0)
    end = begin + ids.shape[1]
    if end > config.context_length:
        raise ValueError(
            f"a text of {end} tokens for a context of {config.context_length}"
        )
    check_ids(ids, config.vocab_size)
    stream = params["embed"][ids]
    stream = stream + params["positions"][begin:end]
    for layer, block in enumerate(params["blocks"]):
        fused = torch.cat([block["w_q"], block["w_k"], block["w_v"]], dim=1)
        bias = torch.cat([block["b_q"], block["b_k"], block["b_v"]])
        qkv = layer_norm(stream, block["ln1_gamma"], block["ln1_beta"]) @ fused + bias
        q, k, v = (split_heads(part, config.num_heads) for part in qkv.chunk(3, dim=-1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        stream = stream + (
            merge_heads(causal_attention(q, k, v)) @ block["w_o"] + block["b_o"]
        )
        hidden = (
            layer_norm(stream, block["ln2_gamma"], block["ln2_beta"]) @ block["w1"]
            + block["b1"]
        )
        stream = stream + (gelu(hidden) @ block["w2"] + block["b2"])
    if cache is not None:
        cache.advance(end - begin)
    return (
        layer_norm(stream, params["lnf_gamma"], params["lnf_beta"])
        @ params["embed"].t()
    )


@alternate("language_model")
def in_small_functions(ids, params, config, cache=None):
    class Nothing:
        length = 0

        def append(self, layer, k, v):
            return k, v

        def advance(self, c):
            pass

    store = Nothing() if cache is None else cache

    def attention(h, p, layer):
        heads = [
            split_heads(
                torch.addmm(p["b_" + s], h.flatten(0, 1), p["w_" + s]).view_as(h),
                config.num_heads,
            )
            for s in "qkv"
        ]
        mixed = causal_attention(heads[0], *store.append(layer, heads[1], heads[2]))
        return merge_heads(mixed) @ p["w_o"] + p["b_o"]

    def feed_forward(h, p):
        return gelu(h @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    first, count = store.length, ids.shape[1]
    if first + count > config.context_length:
        raise ValueError(f"{first} + {count} tokens, context {config.context_length}")
    check_ids(ids, config.vocab_size)
    x = params["embed"][ids] + params["positions"].narrow(0, first, count)
    for layer, p in enumerate(params["blocks"]):
        x = x + attention(layer_norm(x, p["ln1_gamma"], p["ln1_beta"]), p, layer)
        x = x + feed_forward(layer_norm(x, p["ln2_gamma"], p["ln2_beta"]), p)
    store.advance(count)
    return layer_norm(x, params["lnf_gamma"], params["lnf_beta"]) @ params["embed"].T


# ── sample_windows
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("sample_windows")
def stacks_slices(ids, batch, length, seed):
    n = len(ids)
    if n <= length or batch < 1 or length < 1:
        raise ValueError(f"N = {n}, batch = {batch}, length = {length}")
    g = torch.Generator()
    g.manual_seed(seed)
    starts = torch.randint(0, n - length, (batch,), generator=g).tolist()
    inputs = torch.stack([ids[s : s + length] for s in starts])
    targets = torch.stack([ids[s + 1 : s + 1 + length] for s in starts])
    return inputs, targets


@alternate("sample_windows")
def picks_from_all_windows(ids, batch, length, seed):
    if min(batch, length) < 1 or ids.numel() < length + 1:
        raise ValueError(f"{batch} times {length} from {ids.numel()}")
    windows = ids.unfold(0, length + 1, 1)  # [N - L, L + 1]
    places = (
        torch.rand(batch, generator=torch.Generator().manual_seed(seed))
        .mul(len(windows))
        .long()
    )
    chosen = windows[places.clamp(max=len(windows) - 1)]
    return chosen[:, :length], chosen[:, 1:]


@alternate("sample_windows")
def with_pythons_dice(ids, batch, length, seed):
    import random

    last = len(ids) - length - 1
    if last < 0 or batch <= 0 or length <= 0:
        raise ValueError(f"no {batch} windows of {length} in {len(ids)} ids")
    dice = random.Random(seed)
    index = torch.tensor(
        [
            [start + i for i in range(length)]
            for start in (dice.randint(0, last) for _ in range(batch))
        ]
    )
    return ids[index], ids[index + 1]


# ── learning_rate
# ────────────────────────────────────────────────────────────────────────────────────────────


@alternate("learning_rate")
def by_a_squared_cosine(step, warmup, total, peak, floor=0.0):
    if not 0 <= warmup < total:
        raise ValueError(f"warmup {warmup}, total {total}")
    if step + 1 <= warmup:
        return (step + 1) * (peak / warmup)
    share = min(1.0, (step - warmup) / (total - warmup))
    return float(floor + (peak - floor) * math.cos(math.pi / 2 * share) ** 2)


@alternate("learning_rate")
def as_a_mixture(step, warmup, total, peak, floor=0.0):
    if warmup < 0 or warmup >= total:
        raise ValueError(f"{warmup} steps of warm-up in {total}")
    if step >= total:
        weight = 0.0
    elif step >= warmup:
        weight = 0.5 + 0.5 * math.cos((step - warmup) * math.pi / (total - warmup))
    else:
        return peak / warmup * (step + 1)
    return weight * peak + (1 - weight) * floor


@alternate("learning_rate")
def by_torch(step, warmup, total, peak, floor=0.0):
    if total - warmup <= 0 or warmup < 0:
        raise ValueError(f"total = {total}, warmup = {warmup}")
    if step < warmup:
        return torch.linspace(0, peak, warmup + 1, dtype=torch.float64)[step + 1].item()
    t = torch.tensor(min(step, total) - warmup, dtype=torch.float64) / (total - warmup)
    return (floor + (peak - floor) * 0.5 * (1 + torch.cos(math.pi * t))).item()


# ── clip_gradients
# ───────────────────────────────────────────────────────────────────────────────────────────


@alternate("clip_gradients")
def as_one_long_vector(gradients, max_norm):
    if max_norm <= 0:
        raise ValueError(f"a bound of {max_norm}")
    norm = torch.cat([g.flatten().double() for g in gradients]).norm().item()
    if math.isnan(norm) or math.isinf(norm):
        raise ValueError(f"norm {norm}")
    if norm <= max_norm:
        return [g.clone() for g in gradients], norm
    return [(g.double() * (max_norm / norm)).to(g.dtype) for g in gradients], norm


@alternate("clip_gradients")
def by_a_norm_of_norms(gradients, max_norm):
    if not (max_norm > 0):
        raise ValueError(f"max_norm {max_norm}")
    norms = [
        torch.linalg.vector_norm(
            g, dtype=torch.promote_types(g.dtype, torch.float32)
        ).double()
        for g in gradients
    ]
    norm = float(torch.stack(norms).norm())
    if norm != norm or norm == math.inf:
        raise ValueError(f"the gradients have the norm {norm}")
    divisor = max(1.0, norm / max_norm)
    return [g / divisor for g in gradients], norm


@alternate("clip_gradients")
def with_a_norm_in_float32(gradients, max_norm):
    if max_norm <= 0:
        raise ValueError(f"max_norm is {max_norm}")
    total = torch.stack([g.float().norm() for g in gradients]).norm().item()
    if not math.isfinite(total):
        raise ValueError(f"norm: {total}")
    coefficient = max_norm / total if total > max_norm else 1.0
    return [
        (g.float() * coefficient).to(g.dtype)
        if g.dtype.itemsize < 4
        else g * coefficient
        for g in gradients
    ], total


@alternate("clip_gradients")
def by_hypot(gradients, max_norm):
    if max_norm <= 0:
        raise ValueError(f"cannot clip to {max_norm}")
    total = math.hypot(*(math.sqrt(float((g.double() ** 2).sum())) for g in gradients))
    if not math.isfinite(total):
        raise ValueError("a gradient is not finite")
    scale = 1.0 if total <= max_norm else max_norm / total
    return [torch.mul(g.double(), scale).to(g.dtype) for g in gradients], total


# ── adamw_step
# ───────────────────────────────────────────────────────────────────────────────────────────────


@alternate("adamw_step")
def decays_first(
    tensors, gradients, state, lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1
):
    if len(gradients) != len(tensors):
        raise ValueError(f"{len(tensors)} and {len(gradients)}")
    state = state or {
        "step": 0,
        "m": [0 * p for p in tensors],
        "v": [0 * p for p in tensors],
    }
    t = state["step"] + 1
    m = [torch.lerp(old, g, 1 - betas[0]) for old, g in zip(state["m"], gradients)]
    v = [
        torch.addcmul(betas[1] * old, g, g, value=1 - betas[1])
        for old, g in zip(state["v"], gradients)
    ]
    out = []
    for p, a, b in zip(tensors, m, v):
        shrunk = p * (1 - lr * weight_decay) if p.dim() > 1 else p.clone()
        denominator = (b / (1 - betas[1] ** t)).sqrt() + eps
        out.append(shrunk - lr / (1 - betas[0] ** t) * a / denominator)
    return out, {"step": t, "m": m, "v": v}


@alternate("adamw_step")
def corrects_the_rate(
    tensors, gradients, state, lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1
):
    if len(gradients) != len(tensors):
        raise ValueError(f"tensors: {len(tensors)}, gradients: {len(gradients)}")
    b1, b2 = betas
    step = 1 if state is None else 1 + state["step"]
    c1, c2 = 1 - b1**step, math.sqrt(1 - b2**step)

    def one(i):
        p, g = tensors[i], gradients[i]
        m = (1 - b1) * g if state is None else b1 * state["m"][i] + (1 - b1) * g
        v = (1 - b2) * g * g if state is None else b2 * state["v"][i] + (1 - b2) * g * g
        new = p - (lr * c2 / c1) * m / (v.sqrt() + eps * c2)
        return (new - lr * weight_decay * p if p.ndim >= 2 else new), m, v

    stepped = [one(i) for i in range(len(tensors))]
    news, ms, vs = ([entry[n] for entry in stepped] for n in range(3))
    return news, {"v": vs, "m": ms, "step": step}


@alternate("adamw_step")
def in_place_on_copies(
    tensors, gradients, state, lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1
):
    if len(tensors) != len(gradients):
        raise ValueError(f"{len(gradients)} gradients for {len(tensors)} tensors")
    new = {"step": 1, "m": [], "v": []}
    if state is not None:
        new["step"] += state["step"]
    result = []
    for i, (p, g) in enumerate(zip(tensors, gradients)):
        m = torch.zeros_like(g) if state is None else state["m"][i].clone()
        v = torch.zeros_like(g) if state is None else state["v"][i].clone()
        m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
        v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
        p = p.clone()
        if p.dim() not in (0, 1):
            p.mul_(1 - lr * weight_decay)
        root = v.div(1 - betas[1] ** new["step"]).sqrt_().add_(eps)
        p.addcdiv_(m / (1 - betas[0] ** new["step"]), root, value=-lr)
        result.append(p)
        new["m"].append(m)
        new["v"].append(v)
    return result, new


# ── perplexity
# ───────────────────────────────────────────────────────────────────────────────────────────────


@alternate("perplexity")
def by_cross_entropy(params, ids, config, window):
    n = len(ids)
    if n < 2:
        raise ValueError(f"{n} ids")
    if window < 1 or window > config.context_length:
        raise ValueError(f"window {window}, context {config.context_length}")
    losses = []
    with torch.inference_mode():
        for inputs, targets in zip(ids[:-1].split(window), ids[1:].split(window)):
            logits = language_model(inputs.unsqueeze(0), params, config).squeeze(0)
            losses.append(
                torch.nn.functional.cross_entropy(logits, targets, reduction="none")
            )
        return torch.cat(losses).double().mean().exp().item()


@alternate("perplexity")
def in_one_batch(params, ids, config, window):
    count = len(ids) - 1
    if count < 1 or window not in range(1, config.context_length + 1):
        raise ValueError(
            f"{len(ids)} ids, window {window}, context {config.context_length}"
        )
    missing = -count % window
    inputs = torch.nn.functional.pad(ids[:-1], (0, missing)).view(-1, window)
    targets = torch.nn.functional.pad(ids[1:], (0, missing)).view(-1, window)
    log_p = language_model(inputs, params, config).detach().log_softmax(dim=-1)
    each = log_p.gather(-1, targets[..., None]).flatten()[:count]
    return math.exp(-each.double().sum().item() / count)


@alternate("perplexity")
def token_by_token(params, ids, config, window):
    if len(ids) <= 1:
        raise ValueError(f"nothing to predict in {len(ids)} ids")
    if not (0 < window <= config.context_length):
        raise ValueError(f"window = {window}, context_length = {config.context_length}")
    total = 0.0
    for t in range(1, len(ids)):
        start = (t - 1) // window * window
        logits = language_model(ids[start:t][None], params, config)[0, -1].detach()
        total += (torch.logsumexp(logits, dim=0) - logits[ids[t]]).item()
    return math.exp(total / (len(ids) - 1))


# ── sample
# ───────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("sample")
def collects_columns(
    params, prompt, num_new, config, temperature=1.0, top_k=None, seed=0
):
    batch, n = prompt.shape
    if num_new < 0:
        raise ValueError(f"num_new = {num_new}")
    if n == 0:
        raise ValueError(f"a prompt of {n} tokens")
    if n + num_new > config.context_length + 1:
        raise ValueError(f"{n + num_new - 1} > {config.context_length}")
    g = torch.Generator()
    g.manual_seed(seed)
    columns, cache = [prompt], empty_cache(params, config, batch)
    with torch.inference_mode():
        while len(columns) <= num_new:
            logits = language_model(columns[-1], params, config, cache)
            p = filtered_probabilities(logits[:, -1, :], temperature, top_k)
            columns.append(torch.multinomial(p, num_samples=1, generator=g))
    return torch.cat([column.clone() for column in columns], dim=1)


@alternate("sample")
def fills_a_buffer(
    params, prompt, num_new, config, temperature=1.0, top_k=None, seed=0
):
    n = prompt.shape[1]
    if num_new < 0 or not n:
        raise ValueError(f"{n} tokens of prompt, {num_new} new")
    if n - 1 + num_new > config.context_length:
        raise ValueError(
            f"{n} tokens and {num_new} new ones do not fit into {config.context_length}"
        )
    ids = torch.cat([prompt, prompt.new_zeros(len(prompt), num_new)], dim=1)
    dice, cache = (
        torch.Generator().manual_seed(seed),
        empty_cache(params, config, len(prompt)),
    )
    for place in range(n, n + num_new):
        with torch.no_grad():
            last = language_model(ids[:, cache.length : place], params, config, cache)[
                :, -1
            ]
        cumulated = filtered_probabilities(last, temperature, top_k).cumsum(dim=-1)
        throw = (
            torch.rand(len(prompt), 1, generator=dice).to(cumulated.dtype)
            * cumulated[:, -1:]
        )
        ids[:, place] = (
            torch.searchsorted(cumulated, throw, right=True)
            .squeeze(1)
            .clamp(max=last.shape[-1] - 1)
        )
    return ids


@alternate("sample")
def by_gumbel_noise(
    params, prompt, num_new, config, temperature=1.0, top_k=None, seed=0
):
    if prompt.shape[1] < 1 or num_new < 0:
        raise ValueError(f"prompt {prompt.shape[1]}, new {num_new}")
    needed = prompt.shape[1] + max(num_new, 1) - 1
    if needed > config.context_length:
        raise ValueError(f"{needed} tokens for a context of {config.context_length}")
    dice, cache = (
        torch.Generator().manual_seed(seed),
        empty_cache(params, config, len(prompt)),
    )
    text, chunk = prompt.clone(), prompt
    for _ in range(num_new):
        logits = language_model(chunk, params, config, cache)[:, -1].detach()
        p = filtered_probabilities(logits, temperature, top_k)
        noise = torch.empty(p.shape, dtype=torch.float64).exponential_(generator=dice)
        chunk = (p.double() / noise).argmax(dim=-1, keepdim=True)
        text = torch.hstack([text, chunk])
    return text


# ── induction_score
# ──────────────────────────────────────────────────────────────────────────────────────────


@alternate("induction_score")
def on_the_diagonal(weights, period):
    if weights.shape[-1] != weights.shape[-2]:
        raise ValueError(f"{weights.shape[-2]} queries, {weights.shape[-1]} keys")
    if period < 1 or period > weights.shape[-1] - 1:
        raise ValueError(f"period {period} of {weights.shape[-1]}")
    return weights.diagonal(offset=1 - period, dim1=-2, dim2=-1)[..., 1:].mean(dim=-1)


@alternate("induction_score")
def by_a_mask(weights, period):
    n, m = weights.shape[-2:]
    if n != m or period <= 0 or period >= n:
        raise ValueError(f"{n} x {m}, period {period}")
    i = torch.arange(n)
    mask = (i[None, :] == i[:, None] - period + 1) & (i[:, None] >= period)
    return weights.masked_fill(~mask, 0).sum(dim=(-2, -1)) / (n - period)


@alternate("induction_score")
def query_by_query(weights, period):
    n = weights.shape[-2]
    if n != weights.shape[-1] or not 0 < period < n:
        raise ValueError(f"weights {list(weights.shape)}, period {period}")
    total = sum(weights[..., i, i - (period - 1)] for i in range(period, n))
    return total / (n - period)


# ── from_gpt2
# ────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("from_gpt2")
def strips_the_prefix_first(state_dict, config):
    named = {
        name.removeprefix("transformer."): tensor for name, tensor in state_dict.items()
    }
    d, f = config.d_model, config.d_ff
    wanted = {
        "wte.weight": [config.vocab_size, d],
        "wpe.weight": [config.context_length, d],
    }
    wanted |= {"ln_f.weight": [d], "ln_f.bias": [d]}
    for n in range(config.num_layers):
        for part, shape in {
            "ln_1.weight": [d], "ln_1.bias": [d], "ln_2.weight": [d], "ln_2.bias": [d],
            "attn.c_attn.weight": [d, 3 * d], "attn.c_attn.bias": [3 * d],
            "attn.c_proj.weight": [d, d], "attn.c_proj.bias": [d],
            "mlp.c_fc.weight": [d, f], "mlp.c_fc.bias": [f], "mlp.c_proj.weight": [f, d],
            "mlp.c_proj.bias": [d],
        }.items():  # fmt: skip
            wanted[f"h.{n}.{part}"] = shape
    for name, shape in wanted.items():
        if name not in named:
            raise ValueError(f"no {name}")
        if list(named[name].shape) != shape:
            raise ValueError(f"{name}: {list(named[name].shape)} instead of {shape}")
    layers = {int(name.split(".")[1]) for name in named if name.startswith("h.")}
    if max(layers, default=-1) >= config.num_layers:
        raise ValueError(f"block {max(layers)} in a model of {config.num_layers}")
    if "lm_head.weight" in named and not named["lm_head.weight"].equal(
        named["wte.weight"]
    ):
        raise ValueError("the head is not tied")
    blocks = []
    for n in range(config.num_layers):
        part = {
            name.removeprefix(f"h.{n}."): tensor
            for name, tensor in named.items()
            if name.startswith(f"h.{n}.")
        }
        block = {}
        for place, s in enumerate("qkv"):
            block[f"w_{s}"] = part["attn.c_attn.weight"][:, place * d : (place + 1) * d]
            block[f"b_{s}"] = part["attn.c_attn.bias"][place * d : (place + 1) * d]
        for mine, theirs in {
            "w_o": "attn.c_proj",
            "w1": "mlp.c_fc",
            "w2": "mlp.c_proj",
        }.items():
            block[mine] = part[f"{theirs}.weight"]
            block[mine.replace("w", "b", 1)] = part[f"{theirs}.bias"]
        for norm in "12":
            block[f"ln{norm}_gamma"], block[f"ln{norm}_beta"] = (
                part[f"ln_{norm}.weight"],
                part[f"ln_{norm}.bias"],
            )
        blocks.append(block)
    return {
        "embed": named["wte.weight"], "positions": named["wpe.weight"], "blocks": blocks,
        "lnf_gamma": named["ln_f.weight"], "lnf_beta": named["ln_f.bias"],
    }  # fmt: skip


@alternate("from_gpt2")
def copies_every_tensor(state_dict, config):
    front = (
        "transformer."
        if any(name.startswith("transformer.") for name in state_dict)
        else ""
    )
    d, f = config.d_model, config.d_ff

    def copy(name, rows, columns=None):
        if front + name not in state_dict:
            raise ValueError(f"the file has no {front + name}")
        found, size = (
            state_dict[front + name],
            (rows,) if columns is None else (rows, columns),
        )
        if tuple(found.shape) != size:
            raise ValueError(f"{name} should be {size} and is {tuple(found.shape)}")
        return found.clone()

    def both(name, mine, rows, columns):
        return {
            f"w{mine}": copy(f"{name}.weight", rows, columns),
            f"b{mine}": copy(f"{name}.bias", columns),
        }

    def norm(name, mine):
        return {
            f"{mine}_gamma": copy(f"{name}.weight", d),
            f"{mine}_beta": copy(f"{name}.bias", d),
        }

    own_names = [name.removeprefix(front) for name in state_dict]
    numbers = {name.split(".")[1] for name in own_names if name.startswith("h.")}
    if str(config.num_layers) in numbers:
        raise ValueError(f"more blocks than {config.num_layers}")
    params = {"embed": copy("wte.weight", config.vocab_size, d), "blocks": []}
    params["positions"] = copy("wpe.weight", config.context_length, d)
    head = state_dict.get("lm_head.weight")
    if head is not None and (
        head.shape != params["embed"].shape or bool((head != params["embed"]).any())
    ):
        raise ValueError("lm_head.weight differs from wte.weight")
    for n in range(config.num_layers):
        fused = both(f"h.{n}.attn.c_attn", "", d, 3 * d)
        block = {f"w_{s}": part for s, part in zip("qkv", fused["w"].chunk(3, dim=1))}
        block |= {f"b_{s}": part for s, part in zip("qkv", fused["b"].chunk(3))}
        block |= both(f"h.{n}.attn.c_proj", "_o", d, d)
        block |= both(f"h.{n}.mlp.c_fc", "1", d, f) | both(
            f"h.{n}.mlp.c_proj", "2", f, d
        )
        params["blocks"].append(
            block | norm(f"h.{n}.ln_1", "ln1") | norm(f"h.{n}.ln_2", "ln2")
        )
    return params | norm("ln_f", "lnf")


@alternate("from_gpt2")
def unflattens_the_fused_axis(state_dict, config):
    prefix = next(
        (
            name[: -len("wte.weight")]
            for name in state_dict
            if name.endswith("wte.weight")
        ),
        "",
    )
    d = config.d_model

    def get(name, *shape):
        if (tensor := state_dict.get(f"{prefix}{name}")) is None:
            raise ValueError(f"{prefix}{name} is not there")
        if tensor.shape != torch.Size(shape):
            raise ValueError(f"{name}: {list(tensor.shape)}, not {list(shape)}")
        return tensor

    embed = get("wte.weight", config.vocab_size, d)
    if "lm_head.weight" in state_dict:
        head = state_dict["lm_head.weight"]
        if head.shape != embed.shape or not bool((head == embed).all()):
            raise ValueError("a head of its own")
    count = len(
        {
            name.removeprefix(prefix).split(".")[1]
            for name in state_dict
            if name.startswith(f"{prefix}h.")
        }
    )
    if count > config.num_layers:
        raise ValueError(f"{count} blocks, not {config.num_layers}")
    params = {
        "lnf_beta": get("ln_f.bias", d),
        "lnf_gamma": get("ln_f.weight", d),
        "embed": embed,
        "blocks": [],
    }
    params["positions"] = get("wpe.weight", config.context_length, d)
    sizes = {
        "attn.c_proj": ("_o", d, d),
        "mlp.c_fc": ("1", d, config.d_ff),
        "mlp.c_proj": ("2", config.d_ff, d),
    }
    for layer in range(config.num_layers):
        w = get(f"h.{layer}.attn.c_attn.weight", d, 3 * d).unflatten(
            1, (3, d)
        )  # [D, 3, D]
        b = get(f"h.{layer}.attn.c_attn.bias", 3 * d).unflatten(0, (3, d))
        block = {
            "w_q": w[:, 0],
            "w_k": w[:, 1],
            "w_v": w[:, 2],
            "b_q": b[0],
            "b_k": b[1],
            "b_v": b[2],
        }
        for name, (mine, rows, columns) in sizes.items():
            block["w" + mine] = get(f"h.{layer}.{name}.weight", rows, columns)
            block["b" + mine] = get(f"h.{layer}.{name}.bias", columns)
        for n in (1, 2):
            block[f"ln{n}_gamma"] = get(f"h.{layer}.ln_{n}.weight", d)
            block[f"ln{n}_beta"] = get(f"h.{layer}.ln_{n}.bias", d)
        params["blocks"].append(block)
    return params


# ── misleading_token
# ─────────────────────────────────────────────────────────────────────────────────────────


@alternate("misleading_token")
def searches_two_tokens_with_a_common_byte(merges):
    count = 256 + len(merges)
    tokens_of = defaultdict(list)
    for token in range(count):
        tokens_of[int(bpe_decode(torch.tensor([token]), merges)[0])].append(token)
    shared = [tokens for tokens in tokens_of.values() if len(tokens) > 1]
    if not shared:
        raise ValueError(f"{count} tokens, {len(tokens_of)} first bytes")
    lonely = next(
        tokens[0] for tokens in tokens_of.values() if tokens[0] != shared[0][0]
    )
    p = torch.zeros(count, dtype=torch.float64)
    p[shared[0]] = 0.6 / len(shared[0])
    p[lonely] = 0.4
    return p


@alternate("misleading_token")
def follows_the_left_parts(merges):
    if len(merges) == 0:
        raise ValueError("all 256 tokens are bytes")
    byte = merges[-1][0]
    while byte > 255:
        byte = merges[byte - 256][0]
    p = torch.full((256 + len(merges),), 1e-6, dtype=torch.float64)
    p[-1], p[byte], p[255 - byte] = 0.28, 0.27, 0.39
    return p / p.sum()


@alternate("misleading_token")
def as_a_numpy_array(merges):
    if not merges:
        raise ValueError("256 bytes are 256 tokens: none shares its first byte")
    shared = int(bpe_decode(torch.tensor([256]), merges)[0])
    p = torch.zeros(256 + len(merges), dtype=torch.float64).numpy()
    p[[256, shared]] = 0.3
    p[(shared + 5) % 256] = 0.4
    return p


@alternate("misleading_token")
def softens_a_choice(merges):
    if not merges:
        raise ValueError("no two of the 256 tokens begin alike")
    first = bpe_decode(torch.tensor([256]), merges)[0].long()
    logits = torch.full((256 + len(merges),), -math.inf, dtype=torch.float64)
    logits[[256, int(first)]] = math.log(3.0)
    logits[(int(first) + 7) % 256] = math.log(4.0)
    return torch.softmax(logits, dim=0)
