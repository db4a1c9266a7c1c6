"""Harder inputs of assignment 9: what holds of every call that its docstrings allow."""

import math
from collections import Counter
from types import SimpleNamespace

import torch

from autograder.student_tools.harder_inputs import about, holds, refused
from autograder.student_tools.slow_definitions import dot_product, shares_of

WITHOUT = {}

about("train_byte_bpe")
about("bpe_encode")
about("bpe_decode")
about("gelu")
about("language_model", except_for="layout precision")
about("sample_windows", except_for="answers")  # a text may be too short
about("learning_rate", except_for="answers")  # a warm-up may be too long
about("clip_gradients")
about("adamw_step")
about("perplexity")
about("sample", except_for="answers")  # more tokens than the context are refused
about("induction_score", refuses="weights.-1 weights.-2")
about("from_gpt2", except_for="precision")
about("misleading_token", except_for="answers")  # without merges there is none


def _bytes(text):
    return torch.tensor(list(text), dtype=torch.uint8)


@holds("train_byte_bpe", "Fewer merges are the beginning of more; each pair joins ids that exist by then, once.")
def merges_in_turn(train_byte_bpe, text, num_merges):
    merges = train_byte_bpe(text, num_merges)
    exist = all(max(pair) < 256 + place for place, pair in enumerate(merges))
    once = len(set(merges)) == len(merges) <= num_merges
    form = all(type(pair) is tuple and all(type(i) is int for i in pair) for pair in merges)
    return exist and once and form and train_byte_bpe(text, num_merges // 2) == merges[: num_merges // 2]


@holds("train_byte_bpe", "In a text of one word the first pair is a most frequent one, and of those the smallest.")
def first_pair(train_byte_bpe, text, num_merges):
    word = [number for number in text.tolist() if 97 <= number <= 122] + [97, 98]
    counts = Counter(zip(word, word[1:]))
    most = max(counts.values())
    return train_byte_bpe(_bytes(word), 1) == [min(pair for pair, n in counts.items() if n == most)]


@holds("train_byte_bpe", "No pair reaches over the border of two words, and a negative number is refused.")
def borders_of_words(train_byte_bpe, text, num_merges):
    joined = train_byte_bpe(_bytes(b"ab ab ab"), 9)
    return (98, 32) not in joined and joined[0] == (97, 98) and refused(train_byte_bpe, text, -1)


@holds("train_byte_bpe", "aaaa joins from the left, and a pair that overlaps itself is counted as it stands.")
def equal_bytes(train_byte_bpe, text, num_merges):
    return train_byte_bpe(_bytes(b"aaaa"), 2) == [(97, 97), (256, 256)]


@holds("bpe_encode", "Decoded again the tokens give the bytes, and no two neighbours are a pair.")
def there_and_back(bpe_encode, text, merges):
    ids = bpe_encode(text, merges)
    pieces = [bytes([i]) for i in range(256)]
    for left, right in merges:
        pieces.append(pieces[left] + pieces[right])
    if ids.dtype != torch.int64 or (len(ids) and int(ids.max()) >= len(pieces)):
        return False
    return b"".join(pieces[i] for i in ids.tolist()) == bytes(text.tolist())


@holds("bpe_encode", "The pair learned first joins first, and a pair possible later is joined then.")
def ranks(bpe_encode, text, merges):
    first = bpe_encode(_bytes(b"abc"), [(98, 99), (97, 98)]).tolist() == [97, 256]
    later = bpe_encode(_bytes(b"abcd"), [(99, 100), (97, 98), (257, 256)]).tolist() == [258]
    return first and later and bpe_encode(_bytes(b"aaaaa"), [(97, 97)]).tolist() == [256, 256, 97]


@holds("bpe_encode", "No token reaches over the border of two words.")
def words_apart(bpe_encode, text, merges):
    return bpe_encode(_bytes(b"a b"), [(97, 32), (32, 98)]).tolist() == [97, 257]


@holds("bpe_decode", "Ids alone give their pieces, which glued together are the bytes of all.")
def pieces_together(bpe_decode, ids, merges):
    answer = bpe_decode(ids, merges)
    alone = [number for i in ids for number in bpe_decode(i[None], merges).tolist()]
    return answer.dtype == torch.uint8 and answer.tolist() == alone


@holds("bpe_decode", "A merged token is its two parts, one after the other.")
def two_parts(bpe_decode, ids, merges):
    for place, pair in enumerate(merges):
        whole = bpe_decode(torch.tensor([256 + place]), merges).tolist()
        if whole != bpe_decode(torch.tensor(list(pair)), merges).tolist():
            return False
    return bpe_decode(torch.arange(256), merges).tolist() == list(range(256))


@holds("bpe_decode", "Ids below 0, and above the last one, are refused.")
def ids_outside(bpe_decode, ids, merges):
    return refused(bpe_decode, torch.tensor([256 + len(merges)]), merges) and refused(
        bpe_decode, torch.tensor([-1]), merges
    )


@holds("gelu", "One number, by the formula of the docstring.")
def one_gelu(gelu, x):
    z = float(x.reshape(-1)[-1])
    inside = math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)
    return float(gelu(x).reshape(-1)[-1]), 0.5 * z * (1 + math.tanh(inside))


@holds("gelu", "gelu(x) − gelu(−x) is x.")
def two_sides(gelu, x):
    return gelu(x) - gelu(-x), x


def _cache(notebook, params, config, batch):
    width = config.d_model // config.num_heads
    sizes = (len(params["blocks"]), batch, config.num_heads, width, config.context_length)
    return notebook["KVCache"](*sizes, params["embed"].dtype)


@holds("language_model", "Later tokens change nothing for earlier places; a text alone has its part.", share=1e-4)
def later_tokens(language_model, ids, params, config, cache=None):
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 1) % config.vocab_size
    whole = language_model(ids, params, config)
    if whole.shape != (*ids.shape, config.vocab_size):
        return False
    changed = language_model(other, params, config)[:, :-1]
    return [changed, language_model(ids[-1:], params, config)], [whole[:, :-1], whole[-1:]]


@holds("language_model", "Token by token through a cache the logits are those of the whole text.", share=1e-4)
def through_a_cache(language_model, ids, params, config, cache=None, *, notebook):
    own = _cache(notebook, params, config, len(ids))
    steps = [language_model(ids[:, i : i + 1], params, config, own) for i in range(ids.shape[1])]
    return [torch.cat(steps, dim=1), own.length], [language_model(ids, params, config), ids.shape[1]]


def _silent(params, *names):
    quiet = [{key: 0 * part if key in names else part for key, part in block.items()} for block in params["blocks"]]
    return {**params, "blocks": quiet}


def _normalized(row, gamma, beta):
    middle = math.fsum(row) / len(row)
    root = math.sqrt(math.fsum((number - middle) ** 2 for number in row) / len(row) + 1e-5)
    return [(number - middle) / root * g + b for number, g, b in zip(row, gamma.tolist(), beta.tolist())]


@holds("language_model", "With silent blocks one logit is that of word, place and biases, by loops.", share=1e-3)
def one_logit(language_model, ids, params, config, cache=None):
    place = ids.shape[1] - 1
    stream = params["embed"][ids[-1, place]] + params["positions"][place]
    for block in params["blocks"]:
        stream = stream + block["b_o"] + block["b2"]
    row = _normalized(stream.tolist(), params["lnf_gamma"], params["lnf_beta"])
    answer = language_model(ids, _silent(params, "w_o", "w2"), config)
    return float(answer[-1, -1, -1]), dot_product(row, params["embed"][-1].tolist())


@holds("language_model", "Silent blocks more change nothing; a block more that speaks counts.", share=1e-4)
def blocks_count(language_model, ids, params, config, cache=None):
    silent = _silent(params, "w_o", "b_o", "w2", "b2")["blocks"]
    deeper = SimpleNamespace(**{**vars(config), "num_layers": 2 * config.num_layers})
    stacked = {**params, "blocks": [*params["blocks"], *silent]}
    return language_model(ids, stacked, deeper), language_model(ids, params, config)


@holds("language_model", "Ids outside the vocabulary, and more tokens than the context, are refused.")
def strange_ids(language_model, ids, params, config, cache=None):
    long = torch.zeros(1, config.context_length + 1, dtype=torch.int64)
    return (
        refused(language_model, ids * 0 + config.vocab_size, params, config)
        and refused(language_model, ids * 0 - 1, params, config)
        and refused(language_model, long, params, config)
    )


@holds("sample_windows", "Rows are pieces of the text, and targets are one place further.")
def pieces_of_the_text(sample_windows, ids, batch, length, seed):
    inputs, targets = sample_windows(ids, batch, length, seed)
    pieces = {tuple(ids[i : i + length + 1].tolist()) for i in range(len(ids) - length)}
    rows = torch.cat([inputs, targets[:, -1:]], dim=1).tolist()
    is_form = inputs.shape == targets.shape == (batch, length) and inputs.dtype == torch.int64
    return is_form and torch.equal(inputs[:, 1:], targets[:, :-1]) and all(tuple(r) in pieces for r in rows)


@holds("sample_windows", "Every start comes: the first, and the last that leaves a target.")
def every_start(sample_windows, ids, batch, length, seed):
    text = torch.arange(length + 3)
    starts = Counter(sample_windows(text, 400, length, seed)[0][:, 0].tolist())
    return sorted(starts) == [0, 1, 2] and min(starts.values()) > 80


@holds("sample_windows", "Equal seeds give equal windows, others others; torch's own dice stay.")
def seeds(sample_windows, ids, batch, length, seed):
    text = torch.arange(1000)
    torch.manual_seed(4)
    expected = torch.rand(1)
    torch.manual_seed(4)
    first = sample_windows(text, 9, length, seed)[0]
    stays = torch.equal(torch.rand(1), expected)
    again, other = (sample_windows(text, 9, length, s)[0] for s in (seed, seed + 1))
    return stays and torch.equal(first, again) and not torch.equal(first, other)


@holds("sample_windows", "A text that is too short, no rows, and no tokens, are refused.")
def too_short(sample_windows, ids, batch, length, seed):
    return (
        refused(sample_windows, torch.arange(length), batch, length, seed)
        and refused(sample_windows, ids, 0, 1, seed)
        and refused(sample_windows, ids, batch, 0, seed)
    )


@holds("learning_rate", "It rises by equal steps to the peak at the end of the warm-up, and is the floor from total on.")
def ends_of_the_schedule(learning_rate, step, warmup, total, peak, floor=0.0):
    rates = [learning_rate(t, warmup, total, peak, floor=floor) for t in (warmup, total, total + 7)]
    rising = [learning_rate(t, warmup, total, peak, floor=floor) for t in range(warmup)]
    steps = [b - a for a, b in zip([0.0, *rising], rising)]
    even = all(abs(step - peak / warmup) < 1e-9 for step in steps)
    return [float(even), *rates], [1.0, peak, floor, floor]


@holds("learning_rate", "Between warm-up and total, rates the same way from both ends add up to peak and floor.")
def half_a_cosine(learning_rate, step, warmup, total, peak, floor=0.0):
    t = warmup + step % (total - warmup)
    here, there = (learning_rate(x, warmup, total, peak, floor=floor) for x in (t, total - (t - warmup)))
    share = (here - floor) - (peak - floor) * (1 + math.cos(math.pi * (t - warmup) / (total - warmup))) / 2
    return type(here) is float and abs(here + there - peak - floor) < 1e-9 and abs(share) < 1e-9


@holds("learning_rate", "The floor is 0 where nothing is said; impossible schedules are refused.")
def impossible_schedules(learning_rate, step, warmup, total, peak, floor=0.0):
    is_floor = abs(learning_rate(total, warmup, total, peak)) < 1e-9
    return is_floor and refused(learning_rate, 0, -1, total, peak) and refused(learning_rate, 0, total, total, peak)


@holds("clip_gradients", "The norm is that of all numbers together, and all shrink by the same factor.", share=1e-4)
def norm_of_all(clip_gradients, gradients, max_norm):
    tame = [torch.tanh(part) for part in gradients]
    clipped, norm = clip_gradients(tame, max_norm)
    right = math.sqrt(math.fsum(number**2 for part in tame for number in part.reshape(-1).tolist()))
    factor = min(1.0, max_norm / right) if right else 1.0
    return [norm, list(clipped)], [right, [factor * part for part in tame]]


@holds("clip_gradients", "Gradients of a millionth are bounded too, and the norm is a Python float.")
def tiny_gradients(clip_gradients, gradients, max_norm):
    tiny = [1e-6 * torch.ones_like(part) for part in gradients]
    count = sum(part.numel() for part in tiny)
    clipped, norm = clip_gradients(tiny, 1e-7)
    total = math.sqrt(sum(float(part.double().square().sum()) for part in clipped))
    return type(norm) is float and abs(norm / (1e-6 * math.sqrt(count)) - 1) < 1e-4 and abs(total / 1e-7 - 1) < 1e-4


@holds("clip_gradients", "A bound that is not above 0, and a norm that is not finite, are refused.")
def strange_norms(clip_gradients, gradients, max_norm):
    broken = [part * torch.nan for part in gradients]
    return refused(clip_gradients, gradients, 0.0) and refused(clip_gradients, broken, max_norm)


@holds("clip_gradients", "What comes back are new tensors, also where nothing is clipped.")
def new_tensors(clip_gradients, gradients, max_norm):
    before = [part.clone() for part in gradients]
    for part in clip_gradients(gradients, 1e30)[0]:
        part.add_(1.0)
    return list(gradients), before


@holds("adamw_step", "One number of the first tensor, by loops: decay, and the step of both moments.", share=1e-4)
def one_updated(adamw_step, tensors, gradients, state, lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1):
    new, new_state = adamw_step(tensors, gradients, state, lr, betas=betas, eps=eps, weight_decay=weight_decay)
    if state is None:
        count, m, v = 0, 0.0, 0.0
    else:
        count, m, v = state["step"], float(state["m"][0].reshape(-1)[-1]), float(state["v"][0].reshape(-1)[-1])
    g, old = float(gradients[0].reshape(-1)[-1]), float(tensors[0].reshape(-1)[-1])
    m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
    step = (m / (1 - betas[0] ** (count + 1))) / (math.sqrt(v / (1 - betas[1] ** (count + 1))) + eps)
    decay = weight_decay if tensors[0].ndim > 1 else 0.0
    got = [float(part[0].reshape(-1)[-1]) for part in (new, new_state["m"], new_state["v"])]
    return [*got, float(new_state["step"])], [old - lr * step - lr * decay * old, m, v, float(count + 1)]


@holds("adamw_step", "Settings that nobody gives are those of the docstring.", share=1e-6)
def defaults(adamw_step, tensors, gradients, state, lr, **settings):
    said = adamw_step(tensors, gradients, state, lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    return list(adamw_step(tensors, gradients, state, lr)), list(said)


@holds("adamw_step", "Each tensor by itself is updated as among the others; one tensor too many is refused.", share=1e-5)
def tensors_apart(adamw_step, tensors, gradients, state, lr, **settings):
    whole = adamw_step(tensors, gradients, None, lr, **settings)[0]
    alone = [adamw_step([t], [g], None, lr, **settings)[0][0] for t, g in zip(tensors, gradients)]
    return refused(adamw_step, tensors, gradients[1:], None, lr) and all(
        torch.allclose(a, b) for a, b in zip(whole, alone)
    )


@holds("perplexity", "A window by itself has a perplexity of its own; logarithms add up over windows.", share=1e-4)
def windows_add_up(perplexity, params, ids, config, window):
    targets = len(ids) - 1
    total = 0.0
    for start in range(0, targets, window):
        piece = ids[start : start + window + 1]
        total += math.log(perplexity(params, piece, config, window)) * (len(piece) - 1)
    return perplexity(params, ids, config, window), math.exp(total / targets)


@holds("perplexity", "A model whose words are all alike has as many choices as words.", share=1e-4)
def all_words_alike(perplexity, params, ids, config, window):
    alike = {**params, "embed": params["embed"][:1].expand_as(params["embed"])}
    answer = perplexity(alike, ids, config, window)
    return answer, float(config.vocab_size)


@holds("perplexity", "A single window is e to the mean loss, by the model of your notebook.", share=1e-4)
def one_window(perplexity, params, ids, config, window, notebook):
    piece = ids[: window + 1]
    logits = notebook["language_model"](piece[None, :-1], params, config)[0]
    losses = [-math.log(max(shares_of(row)[word], 1e-300)) for row, word in zip(logits.tolist(), piece[1:].tolist())]
    return perplexity(params, piece, config, window), math.exp(math.fsum(losses) / len(losses))


@holds("perplexity", "Texts of one id, and windows outside the context, are refused.")
def strange_windows(perplexity, params, ids, config, window):
    return (
        refused(perplexity, params, ids[:1], config, window)
        and refused(perplexity, params, ids, config, 0)
        and refused(perplexity, params, ids, config, config.context_length + 1)
    )


@holds("sample", "The prompt comes first; greedily, what is written so far goes on as the whole did.")
def goes_on(sample, params, prompt, num_new, config, **settings):
    text = sample(params, prompt, num_new, config, temperature=0.0)
    if text.dtype != torch.int64 or text.shape != (len(prompt), prompt.shape[1] + num_new):
        return False
    half = sample(params, prompt, num_new // 2, config, temperature=0.0)
    rest = sample(params, half, num_new - num_new // 2, config, temperature=0.0)
    alone = sample(params, prompt[-1:], num_new, config, temperature=0.0)
    return [rest, alone, text[:, : prompt.shape[1]]], [text, text[-1:], prompt]


@holds("sample", "Equal seeds give equal texts; torch's own dice stay; some seeds give other texts.")
def dice(sample, params, prompt, num_new, config, **settings):
    prompt = prompt[:1, :1].expand(40, 1)
    torch.manual_seed(6)
    expected = torch.rand(1)
    torch.manual_seed(6)
    calm = {**params, "lnf_gamma": 0 * params["lnf_gamma"], "lnf_beta": 0 * params["lnf_beta"]}
    texts = [sample(calm, prompt, 1, config, seed=seed) for seed in (1, 1, 2)]
    stays = torch.equal(torch.rand(1), expected)
    return stays and torch.equal(texts[0], texts[1]) and not torch.equal(texts[0], texts[2])


@holds("sample", "With equal logits top_k keeps so many words, and without it all come.")
def words_that_come(sample, params, prompt, num_new, config, **settings):
    prompt = prompt[:1, :1].expand(300, 1)
    calm = {**params, "lnf_gamma": 0 * params["lnf_gamma"], "lnf_beta": 0 * params["lnf_beta"]}
    few = sample(calm, prompt, 1, config, top_k=1, seed=1)[:, 1].unique()
    return len(few) == 1 and len(sample(calm, prompt, 1, config, seed=1)[:, 1].unique()) == config.vocab_size


@holds("sample", "Negative numbers, an empty prompt, and more tokens than the context, are refused.")
def impossible_texts(sample, params, prompt, num_new, config, **settings):
    return (
        refused(sample, params, prompt, -1, config)
        and refused(sample, params, prompt[:, :0], 1, config)
        and refused(sample, params, prompt, config.context_length + 2, config)
    )


@holds("induction_score", "One head's score, by a loop over its rows.")
def one_score(induction_score, weights, period):
    rows = weights.reshape(-1, *weights.shape[-2:])[-1].tolist()
    picked = [row[place - period + 1] for place, row in enumerate(rows) if place >= period]
    return float(induction_score(weights, period).reshape(-1)[-1]), math.fsum(picked) / len(picked)


@holds("induction_score", "A period of 0, and one as long as the text, are refused.")
def strange_periods(induction_score, weights, period):
    return refused(induction_score, weights, 0) and refused(induction_score, weights, weights.shape[-1])


@holds("from_gpt2", "Queries, keys and values are the thirds of the columns; other weights are as they were.")
def thirds(from_gpt2, state_dict, config):
    params = from_gpt2(state_dict, config)
    prefix = "" if "wte.weight" in state_dict else "transformer."
    columns = state_dict[f"{prefix}h.0.attn.c_attn.weight"].chunk(3, dim=1)
    rows = state_dict[f"{prefix}h.0.attn.c_attn.bias"].chunk(3)
    block = params["blocks"][0]
    if len(params["blocks"]) != config.num_layers:
        return False
    got = [block[key] for key in ("w_q", "w_k", "w_v", "b_q", "b_k", "b_v")]
    return [*got, params["embed"]], [*columns, *rows, state_dict[f"{prefix}wte.weight"]]


@holds("from_gpt2", "With a prefix, or without, the parameters are the same.")
def prefixes(from_gpt2, state_dict, config):
    plain = {key.removeprefix("transformer."): part for key, part in state_dict.items()}
    longer = {key if key == "lm_head.weight" else f"transformer.{key}": part for key, part in plain.items()}
    one, other = from_gpt2(plain, config), from_gpt2(longer, config)
    return list(one["blocks"][-1].values()), [other["blocks"][-1][key] for key in one["blocks"][-1]]


@holds("from_gpt2", "A tensor that is missing, of another shape, or one block too many, is refused, and a head of its own.")
def broken_files(from_gpt2, state_dict, config):
    outcomes = []
    for key in [name for name in state_dict if not name.endswith(("attn.bias", "lm_head.weight"))]:
        if state_dict[key].shape == (1, 1, 2, 2):
            continue
        outcomes.append(refused(from_gpt2, {k: v for k, v in state_dict.items() if k != key}, config))
        outcomes.append(refused(from_gpt2, {**state_dict, key: torch.cat([state_dict[key]] * 2)}, config))
    fewer = SimpleNamespace(**{**vars(config), "num_layers": config.num_layers - 1})
    embed = next(part for key, part in state_dict.items() if key.endswith("wte.weight"))
    outcomes.append(refused(from_gpt2, {**state_dict, "lm_head.weight": embed + 1}, config))
    return all(outcomes) and (config.num_layers == 1 or refused(from_gpt2, state_dict, fewer))


@holds("misleading_token", "The likeliest token is clear, and does not begin with the likeliest byte.")
def misleads(misleading_token, merges):
    answer = misleading_token(merges)
    values = [float(value) for value in answer]
    if len(values) != 256 + len(merges) or min(values) < 0 or abs(math.fsum(values) - 1) > 1e-9:
        return False
    first = list(range(256))
    for left, _ in merges:
        first.append(first[left])
    best = max(range(len(values)), key=values.__getitem__)
    clear = all(values[best] >= value + 0.05 for i, value in enumerate(values) if i != best)
    following = [0.0] * 256
    for token, value in enumerate(values):
        following[first[token]] += value
    return clear and max(following) >= following[first[best]] + 0.05


@holds("misleading_token", "Without merges there is none.")
def bytes_alone(misleading_token, merges):
    return refused(misleading_token, [])
