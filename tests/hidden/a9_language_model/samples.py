"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from autograder.suite import alternate, sample

# ── from bytes to tokens and back
# ────────────────────────────────────────────────────────────────────────────


def _count(ids, into=None, times=1):
    stats = {} if into is None else into
    for pair in zip(ids, ids[1:]):
        stats[pair] = stats.get(pair, 0) + times
    return stats


def _merge(ids, pair, idx):
    out, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and ids[i] == pair[0] and ids[i + 1] == pair[1]:
            out.append(idx)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


@sample("train_byte_bpe", deserves=("joins_across_words", "takes_a_negative_number"))
def one_long_list_of_bytes(text, num_merges):
    ids = text.tolist()
    merges = []
    for i in range(num_merges):
        stats = _count(ids)
        if len(stats) == 0:
            break
        best = sorted(stats.items(), key=lambda item: (-item[1], item[0]))[0][0]
        ids = _merge(ids, best, 256 + i)
        merges.append(best)
    return merges


@sample(
    "train_byte_bpe",
    deserves=(
        "counts_anew_and_takes_the_first_of_equals",
        "takes_the_first_found_of_equals",
        "counts_all_words_anew",
    ),
)
def strictly_more_frequent(text, num_merges):
    if num_merges < 0:
        raise ValueError(f"cannot learn {num_merges} merges")
    freq = {}
    for w in split_words(bytes(text.tolist())):
        freq[w] = freq.get(w, 0) + 1
    splits = {w: [b for b in w] for w in freq}
    learned = []
    for _ in range(num_merges):
        stats = {}
        for w, f in freq.items():
            _count(splits[w], stats, f)
        best_pair, max_freq = None, 0
        for pair, f in stats.items():
            if f > max_freq:
                best_pair, max_freq = pair, f
        if best_pair is None:
            return learned
        for w in splits:
            splits[w] = _merge(splits[w], best_pair, 256 + len(learned))
        learned.append(best_pair)
    return learned


@sample("train_byte_bpe", deserves="counts_all_words_anew")
def sorts_all_pairs(text, num_merges):
    if num_merges < 0:
        raise ValueError(f"cannot learn {num_merges} merges")
    words = [list(word) for word in split_words(bytes(text.tolist()))]
    merges = []
    for new_id in range(256, 256 + num_merges):
        pairs = Counter(pair for ids in words for pair in zip(ids, ids[1:]))
        ranked = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
        if not ranked:
            return merges
        merges.append(ranked[0][0])
        words = [join_pair(ids, ranked[0][0], new_id) for ids in words]
    return merges


@sample("train_byte_bpe", deserves="counts_all_words_anew")
def joins_by_hand(text, num_merges):
    if num_merges < 0:
        raise ValueError(f"num_merges must be 0 or more, not {num_merges}")
    vocabulary = Counter(tuple(word) for word in split_words(text.numpy().tobytes()))
    merges = []
    while len(merges) < num_merges:
        pairs = Counter()
        for ids, count in vocabulary.items():
            for i in range(len(ids) - 1):
                pairs[ids[i], ids[i + 1]] += count
        if not pairs:
            break
        best = min(sorted(pairs), key=lambda pair: -pairs[pair])
        new_id, joined = 256 + len(merges), Counter()
        for ids, count in vocabulary.items():
            out = []
            for token in ids:
                if out and (out[-1], token) == best:
                    out[-1] = new_id
                else:
                    out.append(token)
            joined[tuple(out)] += count
        vocabulary = joined
        merges.append(best)
    return merges


@sample(
    "bpe_encode",
    deserves=(
        "joins_the_first_two_that_fit",
        "joins_the_leftmost_pair",
        "returns_floats_for_nothing",
    ),
)
def scans_for_any_known_pair(text, merges):
    vocab = {}
    for i, (a, b) in enumerate(merges):
        vocab[a, b] = 256 + i
    out = []
    for word in split_words(bytes(text.tolist())):
        toks = list(word)
        i = 0
        while i < len(toks) - 1:
            if (toks[i], toks[i + 1]) in vocab:
                toks[i : i + 2] = [vocab[toks[i], toks[i + 1]]]
                i = 0
            else:
                i += 1
        out.extend(toks)
    return torch.tensor(out)


@sample("bpe_decode", deserves="glues_right_before_left")
def unrolls_with_a_stack(ids, merges):
    size = 256 + len(merges)
    raw = []
    for t in ids.tolist():
        if t < 0 or t >= size:
            raise ValueError(f"token {t} of {size}")
        stack = [t]
        while stack:
            top = stack.pop()
            if top >= 256:
                stack.extend(merges[top - 256])
            else:
                raw.append(top)
    return torch.tensor(raw, dtype=torch.uint8)


@alternate("bpe_encode")
def merge_after_merge(text, merges):
    out = []
    for word in split_words(bytes(text.tolist())):
        toks = list(word)
        for i, pair in enumerate(merges):
            if len(toks) == 1:
                break
            toks = _merge(toks, pair, 256 + i)
        out += toks
    return torch.as_tensor(out, dtype=torch.long)


# ── the model
# ────────────────────────────────────────────────────────────────────────────────────────────────


@sample("gelu", deserves="is_the_exact_gelu")
def by_the_error_function(x):
    y = x.to(torch.float32) if x.dtype not in (torch.float32, torch.float64) else x
    return (y * 0.5 * torch.special.erfc(-y / 2**0.5)).type_as(x)


@sample("gelu", deserves=("forgets_the_half", "computes_in_half_precision"))
def numbers_instead_of_formulas(x):
    inner = 0.7978845608028654 * x * (1.0 + 0.044715 * x * x)
    return x * (torch.tanh(inner) + 1.0)


def _block(x, p, heads, layer, cache, scale):
    B, T, C = x.shape
    h = F.layer_norm(x, (C,), p["ln1_gamma"], p["ln1_beta"])
    q, k, v = (
        torch.addmm(p["b_" + n], h.reshape(B * T, C), p["w_" + n])
        .reshape(B, T, heads, C // heads)
        .permute(0, 2, 1, 3)
        for n in "qkv"
    )
    if cache is not None:
        k, v = cache.append(layer, k, v)
    att = torch.einsum("bhid,bhjd->bhij", q, k) * scale(C // heads)
    S = k.size(2)
    att = att.masked_fill(
        torch.ones(T, S, dtype=torch.bool).triu(S - T + 1), -torch.inf
    )
    y = torch.einsum("bhij,bhjd->bihd", att.softmax(-1), v).reshape(B, T, C)
    x = x + F.linear(y, p["w_o"].T, p["b_o"])
    h = F.layer_norm(x, (C,), p["ln2_gamma"], p["ln2_beta"])
    return x + F.linear(gelu(F.linear(h, p["w1"].T, p["b1"])), p["w2"].T, p["b2"])


def _check(ids, past, config):
    if past + ids.size(1) > config.context_length:
        raise ValueError(
            f"context of {config.context_length}, got {past + ids.size(1)}"
        )
    for bad in ids.flatten().tolist():
        if not 0 <= bad < config.vocab_size:
            raise ValueError(f"no token {bad} in a vocabulary of {config.vocab_size}")


@sample("language_model", deserves="positions_begin_at_0_again")
def arange_of_the_chunk(ids, params, config, cache=None):
    _check(ids, cache.length if cache is not None else 0, config)
    T = ids.size(1)
    pos = torch.arange(0, T, dtype=torch.long)
    x = F.embedding(ids, params["embed"]) + F.embedding(pos, params["positions"])
    for i, block in enumerate(params["blocks"]):
        x = _block(x, block, config.num_heads, i, cache, lambda d: d**-0.5)
    if cache is not None:
        cache.advance(T)
    x = F.layer_norm(x, x.shape[-1:], params["lnf_gamma"], params["lnf_beta"])
    return F.linear(x, params["embed"])


@sample(
    "language_model",
    deserves=("forgets_the_root_of_d", "takes_any_id", "checks_the_first_row_of_ids"),
)
def scores_as_they_are(ids, params, config, cache=None):
    past = 0 if cache is None else cache.length
    T = ids.size(1)
    if past + T > config.context_length:
        raise ValueError(
            f"{past} + {T} = {past + T} is more than {config.context_length}"
        )
    x = params["embed"][ids] + params["positions"].narrow(0, past, T)
    for i, block in enumerate(params["blocks"]):
        x = _block(x, block, config.num_heads, i, cache, lambda d: 1.0)
    if cache is not None:
        cache.advance(T)
    x = F.layer_norm(x, x.shape[-1:], params["lnf_gamma"], params["lnf_beta"])
    return torch.einsum("btd,vd->btv", x, params["embed"])


# ── training
# ─────────────────────────────────────────────────────────────────────────────────────────────────


@sample("sample_windows", deserves="never_takes_the_last_start")
def numpy_picks_the_starts(ids, batch, length, seed):
    if min(batch, length) < 1 or len(ids) <= length:
        raise ValueError(f"batch {batch}, length {length}, tokens {len(ids)}")
    rng = np.random.RandomState(seed)
    ix = rng.randint(0, max(1, len(ids) - length - 1), size=batch)
    x = torch.stack([ids[i : i + length] for i in ix])
    y = torch.stack([ids[i + 1 : i + 1 + length] for i in ix])
    return x, y


@sample("learning_rate", deserves=("starts_at_0", "takes_any_warm_up"))
def schedule_of_a_tutorial(step, warmup, total, peak, floor=0.0):
    if step < warmup:
        return peak * step / warmup
    if step > total:
        return floor
    ratio = (step - warmup) / (total - warmup)
    coeff = 0.5 * (1.0 + math.cos(math.pi * ratio))
    return floor + coeff * (peak - floor)


@sample(
    "clip_gradients",
    deserves=(
        "leaves_a_bit_of_slack",
        "returns_a_tensor_for_the_norm",
        "lets_nan_through",
        "squares_in_half_precision",
        "squares_in_bfloat16",
    ),
)
def like_the_function_of_torch(gradients, max_norm):
    if max_norm <= 0:
        raise ValueError(f"max_norm {max_norm}")
    total = torch.linalg.vector_norm(
        torch.stack([torch.linalg.vector_norm(g) for g in gradients])
    )
    coef = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    return [g * coef.to(g.dtype) for g in gradients], total


@sample(
    "adamw_step", deserves=("puts_the_decay_into_the_gradient", "writes_into_the_state")
)
def adam_with_l2(
    tensors, gradients, state, lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1
):
    if len(tensors) != len(gradients):
        raise ValueError(f"{len(tensors)} parameters, {len(gradients)} gradients")
    if state is None:
        state = {
            "step": 0,
            "m": [p * 0 for p in tensors],
            "v": [p * 0 for p in tensors],
        }
    state["step"] += 1
    n, new = state["step"], []
    for i, (p, g) in enumerate(zip(tensors, gradients, strict=True)):
        if p.ndim > 1:
            g = g + weight_decay * p
        state["m"][i] = torch.lerp(state["m"][i], g, 1 - betas[0])
        state["v"][i] = betas[1] * state["v"][i] + (1 - betas[1]) * g * g
        mhat, vhat = (
            state["m"][i] / (1 - betas[0] ** n),
            state["v"][i] / (1 - betas[1] ** n),
        )
        new.append(p - lr * mhat / (vhat**0.5 + eps))
    return new, state


# ── measuring and writing
# ────────────────────────────────────────────────────────────────────────────────────


@sample("perplexity", deserves="averages_the_windows")
def mean_of_the_losses(params, ids, config, window):
    if ids.numel() < 2 or window < 1 or window > config.context_length:
        raise ValueError(
            f"{ids.numel()} ids, window {window}, context {config.context_length}"
        )
    nlls = []
    x, y = ids[:-1], ids[1:]
    for xs, ys in zip(x.split(window), y.split(window), strict=True):
        with torch.inference_mode():
            logits = language_model(xs.unsqueeze(0), params, config)
        nlls.append(F.cross_entropy(logits.squeeze(0), ys).item())
    return float(np.exp(np.mean(nlls)))


@sample("sample", deserves=("reads_everything_again", "writes_with_torchs_own_dice"))
def the_whole_text_each_time(
    params, prompt, num_new, config, temperature=1.0, top_k=None, seed=0
):
    if num_new < 0 or prompt.size(1) == 0:
        raise ValueError(f"num_new {num_new}, prompt of {prompt.size(1)}")
    if prompt.size(1) + num_new - 1 > config.context_length:
        raise ValueError(f"{prompt.size(1) + num_new - 1} of {config.context_length}")
    torch.manual_seed(seed)
    idx = prompt.clone()
    for _ in range(num_new):
        logits = language_model(idx, params, config)[:, -1, :]
        probs = filtered_probabilities(logits, temperature, top_k)
        idx = torch.cat((idx, torch.multinomial(probs, num_samples=1)), dim=1)
    return idx


@sample(
    "induction_score",
    deserves=("takes_the_whole_diagonal", "takes_weights_that_are_not_square"),
)
def the_diagonal_of_a_tutorial(weights, period):
    if period < 1 or period >= weights.shape[-1]:
        raise ValueError(f"period {period} of {weights.shape[-1]}")
    return weights.diagonal(offset=1 - period, dim1=-2, dim2=-1).mean(-1)


@alternate("induction_score")
def query_by_query(weights, period):
    *_, rows, columns = weights.shape
    if rows != columns or period < 1 or period > rows - 1:
        raise ValueError(f"[{rows}, {columns}] weights, period {period}")
    total = sum(weights[..., i, i - period + 1] for i in range(period, rows))
    return total / (rows - period)


# ── published weights
# ────────────────────────────────────────────────────────────────────────────────────────


@sample("from_gpt2", deserves=("transposes_everything", "raises_a_key_error"))
def as_if_they_were_linear_layers(state_dict, config):
    sd = {key.replace("transformer.", "", 1): t for key, t in state_dict.items()}
    d, f = config.d_model, config.d_ff
    if f"h.{config.num_layers}.ln_1.weight" in sd or any(
        k.startswith(f"h.{config.num_layers}.") for k in sd
    ):
        raise ValueError(f"there is a block {config.num_layers}")
    want = {
        "wte.weight": (config.vocab_size, d),
        "wpe.weight": (config.context_length, d),
    }
    want |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    for n in range(config.num_layers):
        want |= {
            f"h.{n}.{norm}.{part}": (d,)
            for norm in ("ln_1", "ln_2")
            for part in ("weight", "bias")
        }
        want |= {
            f"h.{n}.attn.c_attn.weight": (d, 3 * d),
            f"h.{n}.attn.c_attn.bias": (3 * d,),
        }
        want |= {f"h.{n}.attn.c_proj.weight": (d, d), f"h.{n}.attn.c_proj.bias": (d,)}
        want |= {f"h.{n}.mlp.c_fc.weight": (d, f), f"h.{n}.mlp.c_fc.bias": (f,)}
        want |= {f"h.{n}.mlp.c_proj.weight": (f, d), f"h.{n}.mlp.c_proj.bias": (d,)}
    for key, shape in want.items():
        if tuple(sd[key].shape) != shape:
            raise ValueError(f"{key} is {tuple(sd[key].shape)}, not {shape}")
    if "lm_head.weight" in sd and not bool(
        (sd["lm_head.weight"] == sd["wte.weight"]).all()
    ):
        raise ValueError("the head is not tied")
    blocks = []
    for n in range(config.num_layers):
        one = {}
        for mine, its in (("ln1", "ln_1"), ("ln2", "ln_2")):
            one[mine + "_gamma"], one[mine + "_beta"] = (
                sd[f"h.{n}.{its}.weight"],
                sd[f"h.{n}.{its}.bias"],
            )
        w, b = sd[f"h.{n}.attn.c_attn.weight"].t(), sd[f"h.{n}.attn.c_attn.bias"]
        for j, letter in enumerate("qkv"):
            one[f"w_{letter}"], one[f"b_{letter}"] = (
                w[j * d : (j + 1) * d],
                b[j * d : (j + 1) * d],
            )
        one["w_o"], one["b_o"] = (
            sd[f"h.{n}.attn.c_proj.weight"].t(),
            sd[f"h.{n}.attn.c_proj.bias"],
        )
        one["w1"], one["b1"] = (
            sd[f"h.{n}.mlp.c_fc.weight"].t(),
            sd[f"h.{n}.mlp.c_fc.bias"],
        )
        one["w2"], one["b2"] = (
            sd[f"h.{n}.mlp.c_proj.weight"].t(),
            sd[f"h.{n}.mlp.c_proj.bias"],
        )
        blocks.append(one)
    return {
        "embed": sd["wte.weight"],
        "positions": sd["wpe.weight"],
        "blocks": blocks,
        "lnf_gamma": sd["ln_f.weight"],
        "lnf_beta": sd["ln_f.bias"],
    }


@sample(
    "misleading_token", deserves=("gives_all_to_one_token", "finds_one_without_merges")
)
def certain_of_the_first_merge(merges):
    scores = np.full(256 + len(merges), -np.inf)
    scores[256 % len(scores)] = 0.0
    p = np.exp(scores)
    return torch.from_numpy(p / p.sum())
