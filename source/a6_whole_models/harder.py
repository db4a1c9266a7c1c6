"""Harder inputs of assignment 6: what holds of every call that its docstrings allow."""

import copy
import math
from types import SimpleNamespace

import torch

from autograder.student_tools.harder_inputs import about, holds, refused
from autograder.student_tools.slow_definitions import dot_product, shares_of

WITHOUT = {}

about("count_parameters")
about("decoder_lm")
about("lm_loss", refuses="ids.0 ids.1")
about("train_step")
about("similarity_by_layer")
about("filtered_probabilities")
about("generate")
about("encoder_decoder", refuses="src.0 tgt_in.0", except_for="gradient")
about("shift_right")
about("greedy_translate")
about("patchify")
about("patch_conv_weight", refuses="w.0")
about("vit_logits")
about("attention_distance", refuses="weights.-1 weights.-2")
about("fine_tune")
about("explain_model_size")


def _changed(config, **values):
    return SimpleNamespace(**{**vars(config), **values})


@holds("count_parameters", "Eight Python ints, of which the last is the sum of the seven.")
def groups_and_total(count_parameters, config):
    numbers = count_parameters(config)
    groups = ["embedding", "positions", "attention", "cross_attention", "mlp", "norms", "unembedding"]
    is_form = set(numbers) == {*groups, "total"} and all(type(n) is int for n in numbers.values())
    return is_form and sum(numbers[group] for group in groups) == numbers["total"]


@holds("count_parameters", "Each block more adds the same, to the embedding nothing.")
def one_block_more(count_parameters, config):
    counts = [count_parameters(_changed(config, num_layers=config.num_layers + i)) for i in range(3)]
    same_steps = all(counts[2][key] - counts[1][key] == counts[1][key] - counts[0][key] for key in counts[0])
    return same_steps and counts[0]["embedding"] == counts[1]["embedding"]


@holds("count_parameters", "An encoder block costs as much attention and MLP as a decoder block, but no cross-attention.")
def encoder_blocks(count_parameters, config):
    base = _changed(config, num_layers=2, num_encoder_layers=1)
    more = count_parameters(_changed(base, num_encoder_layers=2))
    deeper, here = count_parameters(_changed(base, num_layers=3)), count_parameters(base)
    same = all(more[key] - here[key] == deeper[key] - here[key] for key in ("attention", "mlp"))
    return same and more["cross_attention"] == here["cross_attention"] < deeper["cross_attention"]


@holds("count_parameters", "One number more in the vocabulary is one row more, tied or not.")
def one_word_more(count_parameters, config):
    tied, free = (_changed(config, tied=flag) for flag in (True, False))
    rows = [
        count_parameters(_changed(one, vocab_size=one.vocab_size + 1))["total"] - count_parameters(one)["total"]
        for one in (tied, free)
    ]
    return rows[0] == config.d_model and rows[1] in (2 * config.d_model, 2 * config.d_model + config.biases)


@holds("count_parameters", "Without biases, norms and positions: four matrices of attention, two of the MLP.")
def bare_blocks(count_parameters, config):
    bare = _changed(config, biases=False, norms=False, learned_positions=False, final_norm=False, num_encoder_layers=0)
    numbers = count_parameters(bare)
    wide, inner = bare.d_model, bare.num_heads * bare.d_head
    return (
        numbers["attention"] == 4 * bare.num_layers * wide * inner
        and numbers["mlp"] == 2 * bare.num_layers * wide * bare.d_ff
        and not (numbers["norms"] or numbers["positions"] or numbers["cross_attention"])
    )


@holds("count_parameters", "A place more is a row more where positions are learned, and nothing elsewhere.")
def one_place_more(count_parameters, config):
    longer = _changed(config, context_length=config.context_length + 1)
    more = count_parameters(longer)["total"] - count_parameters(config)["total"]
    return more == (config.d_model if config.learned_positions else 0)


@holds("count_parameters", "Sizes below 1, and negative numbers of layers, are refused.")
def sizes_below_one(count_parameters, config):
    sizes = ("vocab_size", "d_model", "num_heads", "d_head", "d_ff", "context_length")
    layers = ("num_layers", "num_encoder_layers")
    return all(refused(count_parameters, _changed(config, **{name: 0})) for name in sizes) and all(
        refused(count_parameters, _changed(config, **{name: -1})) for name in layers
    )


@holds("decoder_lm", "Later tokens change nothing for earlier places.", share=1e-4)
def later_tokens(decoder_lm, ids, params, config):
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 1) % config.vocab_size
    return decoder_lm(other, params, config)[:, :-1], decoder_lm(ids, params, config)[:, :-1]


@holds("decoder_lm", "The beginning alone, and one text alone, have their part of the answer.", share=1e-4)
def parts_alone(decoder_lm, ids, params, config):
    half = (ids.shape[1] + 1) // 2
    answer = decoder_lm(ids, params, config)
    if answer.shape != (*ids.shape, config.vocab_size):
        return False
    return decoder_lm(ids[-1:, :half], params, config), answer[-1:, :half]


def _silent(params, *names):
    """The same model, whose blocks have 0 in these weights."""
    quiet = [{key: 0 * part if key in names else part for key, part in block.items()} for block in params["blocks"]]
    return {**params, "blocks": quiet}


def _normalized(row, gamma, beta):
    middle = math.fsum(row) / len(row)
    root = math.sqrt(math.fsum((number - middle) ** 2 for number in row) / len(row) + 1e-5)
    return [(number - middle) / root * g + b for number, g, b in zip(row, gamma.tolist(), beta.tolist())]


@holds("decoder_lm", "With silent blocks one logit is that of word plus place, after the final norm, by loops.", share=1e-3)
def one_logit(decoder_lm, ids, params, config):
    silent = _silent(params, "w_o", "w2", "b2")
    place = ids.shape[1] - 1
    stream = params["embed"][ids[-1, place]] + params["positions"][place]
    row = _normalized(stream.tolist(), params["lnf_gamma"], params["lnf_beta"])
    words = params["unembed"].T if "unembed" in params else params["embed"]
    return float(decoder_lm(ids, silent, config)[-1, -1, -1]), dot_product(row, words[-1].tolist())


@holds("decoder_lm", "Every block counts: without the last one's MLP the answer is another.", share=1e-4)
def blocks_in_turn(decoder_lm, ids, params, config):
    stacked = {**params, "blocks": [*params["blocks"], *_silent(params, "w_o", "w2", "b2")["blocks"]]}
    deeper = SimpleNamespace(**{**vars(config), "num_layers": 2 * config.num_layers})
    return decoder_lm(ids, stacked, deeper), decoder_lm(ids, params, config)


@holds("decoder_lm", "An id outside the vocabulary, and a text that is too long, are refused.")
def outside(decoder_lm, ids, params, config):
    long = torch.zeros(1, config.context_length + 1, dtype=torch.int64)
    return (
        refused(decoder_lm, ids * 0 - 1, params, config)
        and refused(decoder_lm, ids * 0 + config.vocab_size, params, config)
        and refused(decoder_lm, long, params, config)
    )


@holds("lm_loss", "A number added to all logits of a place changes nothing, nor does the last place.")
def shifts(lm_loss, logits, ids, ignore_index=-100):
    moved = logits + 3.0
    moved[:, -1] = 7.0
    return lm_loss(moved, ids, ignore_index=ignore_index), lm_loss(logits, ids, ignore_index=ignore_index)


@holds("lm_loss", "The loss by loops over single numbers, of one text and its first two tokens.")
def one_target(lm_loss, logits, ids, ignore_index=-100):
    if ids.shape[1] < 2:
        return float(lm_loss(logits, ids, ignore_index=ignore_index)), 0.0
    target = int(ids[-1, 1])
    loss = float(lm_loss(logits[-1:, :2], ids[-1:, :2], ignore_index=ignore_index))
    if target == ignore_index:
        return loss, 0.0
    row = logits[-1, 0].tolist()
    top = max(row)
    return loss, top + math.log(math.fsum(math.exp(z - top) for z in row)) - row[target]


@holds("lm_loss", "The mean is over all counted targets: texts with more of them weigh more.")
def texts_weigh(lm_loss, logits, ids, ignore_index=-100):
    counts = [int((row[1:] != ignore_index).sum()) for row in ids]
    alone = [
        float(lm_loss(logits[i : i + 1], ids[i : i + 1], ignore_index=ignore_index)) * count
        for i, count in enumerate(counts)
    ]
    right = math.fsum(alone) / max(sum(counts), 1)
    return float(lm_loss(logits, ids, ignore_index=ignore_index)), right


@holds("lm_loss", "Where no target counts the loss is 0, with zero gradients.")
def nothing_counts(lm_loss, logits, ids, ignore_index=-100):
    logits = logits.clone().requires_grad_()
    loss = lm_loss(logits, torch.full_like(ids, ignore_index), ignore_index=ignore_index)
    if loss.requires_grad:
        loss.backward()
    gradient = logits.grad if logits.grad is not None else torch.zeros_like(logits)
    return [float(loss.detach()), gradient], [0.0, torch.zeros_like(logits)]


@holds("lm_loss", "Ignored are targets of −100 where nothing else is said; another id outside is refused.")
def default_of_ignored(lm_loss, logits, ids, ignore_index=-100):
    if ids.shape[1] < 2:
        return None
    outside = torch.full_like(ids, logits.shape[-1])
    none = float(lm_loss(logits, torch.full_like(ids, -100)))
    return none == 0 and refused(lm_loss, logits, outside) and refused(lm_loss, logits, outside * 0 - 2)


def _tensors(value):
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in _tensors(part)]
    if isinstance(value, list):
        return [leaf for part in value for leaf in _tensors(part)]
    return [value]


@holds("train_step", "A step of 0 changes nothing; twice the step goes twice as far.", share=1e-4)
def steps_are_linear(train_step, params, ids, config, lr):
    still, once, twice = (_tensors(train_step(params, ids, config, rate)[1]) for rate in (0.0, 0.01, 0.02))
    old = _tensors(params)
    moves = [new - before for new, before in zip(twice, old)]
    return [still, moves], [old, [2 * (new - before) for new, before in zip(once, old)]]


@holds("train_step", "The step goes down the slope: half a step in its direction changes the loss as the gradient says.", share=2e-2)
def down_the_slope(train_step, params, ids, config, lr):
    loss, new = train_step(params, ids, config, 1.0)
    if ids.shape[1] < 2 or type(loss) is not float:
        return ids.shape[1] < 2
    gradients = [before - after for before, after in zip(_tensors(params), _tensors(new))]
    size = math.sqrt(sum(float(g.square().sum()) for g in gradients))
    if size < 1e-3:
        return None
    rate = 1e-4 / size
    up, down = (train_step(params, ids, config, sign)[1] for sign in (rate, 2 * rate))
    losses = [train_step(where, ids, config, 0.0)[0] for where in (params, up, down)]
    first, second = losses[0] - losses[1], losses[1] - losses[2]
    if abs(first - second) > 1e-3 * abs(first):
        return None
    return first / rate, size * size


@holds("train_step", "What comes back is detached, nested and named as what went in.")
def detached_parameters(train_step, params, ids, config, lr):
    new = train_step(copy.deepcopy(params), ids, config, lr)[1]
    if list(new) != list(params) or len(new["blocks"]) != len(params["blocks"]):
        return False
    shapes = [leaf.shape for leaf in _tensors(new)] == [leaf.shape for leaf in _tensors(params)]
    return shapes and not any(leaf.requires_grad or leaf.grad_fn for leaf in _tensors(new))


@holds("train_step", "A step below 0 is refused.")
def negative_step(train_step, params, ids, config, lr):
    return refused(train_step, params, ids, config, -0.1)


def _cosine(left, right):
    lengths = math.hypot(*left) * math.hypot(*right)
    return dot_product(left, right) / lengths if lengths else 0.0


@holds("similarity_by_layer", "Entry 0 is the cosine of the two rows of embed, and there is one entry more than blocks.")
def static_entry(similarity_by_layer, first, i, second, j, params, config):
    answer = similarity_by_layer(first, i, second, j, params, config)
    if answer.shape != (len(params["blocks"]) + 1,):
        return False
    rows = [params["embed"][text[place]].tolist() for text, place in ((first, i), (second, j))]
    return float(answer[0]), _cosine(*rows)


@holds("similarity_by_layer", "The two texts exchanged give the same; a word and itself give 1, or 0 for zeros.", share=1e-4)
def exchanged(similarity_by_layer, first, i, second, j, params, config):
    there = similarity_by_layer(first, i, second, j, params, config)
    same = similarity_by_layer(first, i, first, i, params, config)
    ones = torch.where(same.abs() < 0.5, 0.0, 1.0).double()
    return [there, same], [similarity_by_layer(second, j, first, i, params, config), ones]


@holds("similarity_by_layer", "With silent blocks every later entry is that of word plus place.", share=1e-4)
def silent_entries(similarity_by_layer, first, i, second, j, params, config):
    answer = similarity_by_layer(first, i, second, j, _silent(params, "w_o", "w2", "b2"), config)
    rows = [
        (params["embed"][text[place]] + params["positions"][place]).tolist()
        for text, place in ((first, i), (second, j))
    ]
    return answer[1:].tolist(), [_cosine(*rows)] * len(params["blocks"])


@holds("similarity_by_layer", "Tokens after the two words change nothing.", share=1e-4)
def what_follows(similarity_by_layer, first, i, second, j, params, config):
    cut = similarity_by_layer(first[: i + 1], i, second[: j + 1], j, params, config)
    return cut, similarity_by_layer(first, i, second, j, params, config)


@holds("similarity_by_layer", "A place that is not in its text is refused.")
def no_such_place(similarity_by_layer, first, i, second, j, params, config):
    return refused(similarity_by_layer, first, len(first), second, j, params, config) and refused(
        similarity_by_layer, first, i, second, -1, params, config
    )


@holds("filtered_probabilities", "Rows sum to 1, and a token with a smaller logit never gets more.")
def ordered_rows(filtered_probabilities, logits, temperature, top_k=None, top_p=None):
    rows = filtered_probabilities(logits, temperature, top_k=top_k, top_p=top_p)
    order = logits.argsort(dim=-1, descending=True)
    sorted_rows = rows.gather(-1, order)
    rises = (sorted_rows[:, 1:] > sorted_rows[:, :-1] + 1e-9).any()
    is_equal = (logits.gather(-1, order).diff(dim=-1) == 0).any()
    return rows.sum(dim=-1) * (not rises or bool(is_equal)), torch.ones(len(logits)).double()


@holds("filtered_probabilities", "So many tokens stay as top_k says; temperature 0 leaves one.")
def tokens_that_stay(filtered_probabilities, logits, temperature, top_k=None, top_p=None):
    mild = torch.tanh(logits) + 1e-3 * torch.arange(logits.shape[1]).double()
    size = logits.shape[1]
    for k in (1, 2, size, size + 3):
        kept = (filtered_probabilities(mild, 1.0, top_k=k) > 0).sum(dim=-1)
        if not bool((kept == min(k, size)).all()):
            return False
    alone = filtered_probabilities(mild, 0.0)
    return bool((alone.max(dim=-1).values == 1).all()) and bool((alone.argmax(-1) == mild.argmax(-1)).all())


@holds("filtered_probabilities", "top_p keeps the smallest set that reaches it: one token fewer falls short.")
def smallest_set(filtered_probabilities, logits, temperature, top_k=None, top_p=None):
    row = (torch.tanh(logits[0]) + 1e-3 * torch.arange(logits.shape[1]).double()).tolist()
    top_k = top_k or len(row)
    heat = temperature or 1.0
    kept_row = sorted(row, reverse=True)[:top_k]
    shares = shares_of([score / heat for score in kept_row])
    for share in (0.3, 0.61803, 0.97):
        count = next(n for n in range(1, len(shares) + 1) if math.fsum(shares[:n]) >= share - 1e-12)
        answer = filtered_probabilities(torch.tensor([row]).double(), heat, top_k=top_k, top_p=share)
        if int((answer > 0).sum()) != count:
            return False
    return True


@holds("filtered_probabilities", "Of the tokens that stay, logarithms differ by the logits' difference over the temperature.", share=1e-3)
def ratios_stay(filtered_probabilities, logits, temperature, top_k=None, top_p=None):
    if temperature == 0:
        return None
    tame = torch.tanh(logits)
    rows = filtered_probabilities(tame, temperature, top_k=top_k, top_p=top_p)
    best = rows.argmax(dim=-1, keepdim=True)
    kept = rows > 0
    logs = torch.where(kept, rows.clamp(min=1e-300).log() - rows.gather(-1, best).log(), 0.0)
    return logs, torch.where(kept, (tame - tame.gather(-1, best)) / temperature, 0.0)


@holds("filtered_probabilities", "Settings outside their range are refused.")
def strange_settings(filtered_probabilities, logits, temperature, top_k=None, top_p=None):
    return (
        refused(filtered_probabilities, logits, -1.0)
        and refused(filtered_probabilities, logits, 1.0, top_k=0)
        and refused(filtered_probabilities, logits, 1.0, top_p=0.0)
        and refused(filtered_probabilities, logits, 1.0, top_p=1.5)
    )


@holds("generate", "The prompt comes first, then num_new tokens of the vocabulary.")
def prompt_first(generate, params, prompt, num_new, config, **settings):
    text = generate(params, prompt, num_new, config, **settings)
    width = prompt.shape[1]
    if text.dtype != torch.int64 or text.shape != (len(prompt), width + num_new):
        return False
    return torch.equal(text[:, :width], prompt) and 0 <= int(text.min()) <= int(text.max()) < config.vocab_size


@holds("generate", "Greedily, what was written so far goes on as the whole did; each text goes on alone.")
def goes_on(generate, params, prompt, num_new, config, **settings):
    quiet = {"temperature": 0.0}
    text = generate(params, prompt, num_new, config, **quiet)
    half = num_new // 2
    middle = generate(params, prompt, half, config, **quiet)
    rest = generate(params, middle, num_new - half, config, **quiet)
    return [rest, generate(params, prompt[-1:], num_new, config, **quiet)], [text, text[-1:]]


@holds("generate", "Of a prompt only the last context_length tokens are seen.")
def window_of_the_prompt(generate, params, prompt, num_new, config, **settings):
    long = torch.cat([prompt[:, :1]] * config.context_length + [prompt], dim=1)
    seen = long[:, -config.context_length :]
    text = generate(params, long, 1, config, temperature=0.0)
    return text[:, -1:], generate(params, seen, 1, config, temperature=0.0)[:, -1:]


@holds("generate", "After eos_id a row goes on with it.")
def ended_rows(generate, params, prompt, num_new, config, **settings):
    for end in range(config.vocab_size):
        text = generate(params, prompt, num_new, config, temperature=0.0, eos_id=end)[:, prompt.shape[1] :]
        for row in text.tolist():
            if end in row and set(row[row.index(end) :]) != {end}:
                return False
    return True


@holds("generate", "Until a row ends, eos_id changes nothing, and one in the prompt does not count.")
def before_the_end(generate, params, prompt, num_new, config, **settings):
    end = int(prompt[0, 0])
    free = generate(params, prompt, num_new, config, temperature=0.0)[:, prompt.shape[1] :].tolist()
    ended = generate(params, prompt, num_new, config, temperature=0.0, eos_id=end)[:, prompt.shape[1] :].tolist()
    for row, other in zip(free, ended):
        stop = row.index(end) if end in row else len(row)
        if other[:stop] != row[:stop]:
            return False
    return True


@holds("generate", "The same seed gives the same text; torch's own dice stay as they were.")
def dice(generate, params, prompt, num_new, config, **settings):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first = generate(params, prompt, num_new, config, temperature=2.0, seed=1)
    is_left = torch.equal(torch.rand(1), expected)
    return is_left and torch.equal(first, generate(params, prompt, num_new, config, temperature=2.0, seed=1))


@holds("generate", "A negative number of tokens, and an empty prompt, are refused.")
def nothing_to_continue(generate, params, prompt, num_new, config, **settings):
    return refused(generate, params, prompt, -1, config) and refused(generate, params, prompt[:, :0], 1, config)


@holds("encoder_decoder", "Later target tokens change nothing for earlier rows.", share=1e-4)
def later_targets(encoder_decoder, src, tgt_in, src_mask, params, config):
    other = tgt_in.clone()
    other[:, -1] = (other[:, -1] + 1) % len(params["tgt_embed"])
    before = encoder_decoder(src, tgt_in, src_mask, params, config)
    return encoder_decoder(src, other, src_mask, params, config)[:, :-1], before[:, :-1]


@holds("encoder_decoder", "A text alone has its part; a mask of two axes is as good as one of three.", share=1e-4)
def text_alone(encoder_decoder, src, tgt_in, src_mask, params, config):
    real = torch.ones(src.shape).bool() if src_mask is None else src_mask.reshape(src.shape)
    answer = encoder_decoder(src, tgt_in, src_mask, params, config)
    alone = encoder_decoder(src[-1:], tgt_in[-1:], real[-1:], params, config)
    return [alone, encoder_decoder(src, tgt_in, real[:, None], params, config)], [answer[-1:], answer]


@holds("encoder_decoder", "What stands at masked places of the source changes nothing.", share=1e-4)
def masked_places(encoder_decoder, src, tgt_in, src_mask, params, config):
    if src.shape[1] < 2:
        return None
    real = torch.arange(src.shape[1]) < src.shape[1] - 1
    real = real.expand(src.shape)
    other = src.clone()
    other[:, -1] = (other[:, -1] + 1) % len(params["src_embed"])
    answers = [encoder_decoder(ids, tgt_in, real, params, config) for ids in (src, other, src[:, :-1])[:2]]
    return answers[0], answers[1]


@holds("encoder_decoder", "Without its cross-attention the decoder does not hear the source.", share=1e-4)
def deaf_decoder(encoder_decoder, src, tgt_in, src_mask, params, config):
    deaf = [{key: 0 * part if key == "c_o" else part for key, part in block.items()} for block in params["decoder"]]
    other = (src + 1) % len(params["src_embed"])
    answers = [encoder_decoder(ids, tgt_in, src_mask, {**params, "decoder": deaf}, config) for ids in (src, other)]
    return answers[0], answers[1]


@holds("encoder_decoder", "Ids outside their tables are refused.")
def ids_outside(encoder_decoder, src, tgt_in, src_mask, params, config):
    return (
        refused(encoder_decoder, src * 0 + len(params["src_embed"]), tgt_in, src_mask, params, config)
        and refused(encoder_decoder, src, tgt_in * 0 + len(params["tgt_embed"]), src_mask, params, config)
        and refused(encoder_decoder, src * 0 - 1, tgt_in, src_mask, params, config)
    )


@holds("shift_right", "A new tensor: the start first, then every target but the last.")
def start_first(shift_right, targets, start_id):
    moved = shift_right(targets, start_id)
    rows = [[start_id, *row[:-1]] for row in targets.tolist()]
    before = targets.clone()
    is_right = moved.dtype == torch.int64 and moved.tolist() == rows
    moved.fill_(-5)
    return is_right and torch.equal(targets, before) and refused(shift_right, targets[:, :0], start_id)


@holds("greedy_translate", "Fewer tokens are the beginning of more; a row alone has its part; the form is right.")
def beginnings(greedy_translate, src, src_mask, params, config, start_id, eos_id, max_new):
    settings = (params, config, start_id, eos_id)
    text = greedy_translate(src, src_mask, *settings, max_new)
    if text.shape != (len(src), max_new) or text.dtype != torch.int64:
        return False
    mask = None if src_mask is None else src_mask[-1:]
    alone = greedy_translate(src[-1:], mask, *settings, max_new)
    return [greedy_translate(src, src_mask, *settings, max_new // 2), alone], [text[:, : max_new // 2], text[-1:]]


@holds("greedy_translate", "A row that has produced eos_id goes on with it, and before it is as without an end.")
def ends(greedy_translate, src, src_mask, params, config, start_id, eos_id, max_new):
    free = greedy_translate(src, src_mask, params, config, start_id, -1, 4).tolist()
    for end in range(len(params["tgt_embed"])):
        ended = greedy_translate(src, src_mask, params, config, start_id, end, 4).tolist()
        for row, other in zip(ended, free):
            stop = other.index(end) if end in other else 4
            if row != other[:stop] + [end] * (4 - stop):
                return False
    return True


@holds("greedy_translate", "A negative number of tokens is refused.")
def negative_translation(greedy_translate, src, src_mask, params, config, start_id, eos_id, max_new):
    return refused(greedy_translate, src, src_mask, params, config, start_id, eos_id, -1)


@holds("patchify", "Each number of each patch is where (c, row, column) says.")
def numbers_of_patches(patchify, images, patch):
    rows = patchify(images, patch)
    batch, channels, height, width = images.shape
    across = width // patch
    if rows.shape != (batch, height // patch * across, channels * patch * patch):
        return False
    for place in range(rows.shape[1]):
        top, left = place // across * patch, place % across * patch
        for number in range(rows.shape[2]):
            channel, inside = divmod(number, patch * patch)
            row, column = divmod(inside, patch)
            if not torch.equal(rows[:, place, number], images[:, channel, top + row, left + column]):
                return False
    return True


@holds("patchify", "Patches that do not divide the image, and none, are refused.")
def patches_that_do_not_fit(patchify, images, patch):
    return refused(patchify, images, 0) and refused(patchify, images, max(images.shape[2:]) + 1)


@holds("patch_conv_weight", "Each number is where (c, row, column) says.")
def numbers_of_filters(patch_conv_weight, w, channels, patch):
    filters = patch_conv_weight(w, channels, patch)
    if filters.shape != (w.shape[1], channels, patch, patch):
        return False
    for number in range(len(w)):
        channel, inside = divmod(number, patch * patch)
        row, column = divmod(inside, patch)
        if not torch.equal(filters[:, channel, row, column], w[number]):
            return False
    return True


@holds("vit_logits", "With silent blocks and one patch a logit is that of the patch, by loops.", share=1e-3)
def one_class(vit_logits, images, params, config):
    channels, patch = images.shape[1], config.patch
    silent = _silent(params, "w_o", "w2", "b2")
    rows = []
    across = images.shape[3] // patch
    for place in range(len(params["positions"])):
        top, left = place // across * patch, place % across * patch
        piece = images[-1, :, top : top + patch, left : left + patch].contiguous()
        numbers = piece.reshape(channels * patch * patch).tolist()
        stream = [
            dot_product(numbers, column.tolist()) + float(bias) + float(shift)
            for column, bias, shift in zip(params["w_patch"].T, params["b_patch"], params["positions"][place])
        ]
        rows.append(_normalized(stream, params["lnf_gamma"], params["lnf_beta"]))
    mean = [math.fsum(column) / len(rows) for column in zip(*rows)]
    right = dot_product(mean, params["w_head"][:, -1].tolist()) + float(params["b_head"][-1])
    return float(vit_logits(images, silent, config)[-1, -1]), right


@holds("vit_logits", "Each image alone has its part; patches see each other whatever their order, with their positions.", share=1e-4)
def image_alone(vit_logits, images, params, config):
    logits = vit_logits(images, params, config)
    return vit_logits(images[-1:], params, config), logits[-1:]


@holds("vit_logits", "Patches and positions turned around alike change nothing.", share=1e-4)
def turned_around(vit_logits, images, params, config):
    patch = config.patch
    blocks = images.reshape(*images.shape[:2], images.shape[2] // patch, patch, images.shape[3] // patch, patch)
    turned = blocks.flip(2, 4).reshape(images.shape)
    other = {**params, "positions": params["positions"].flip(0)}
    return vit_logits(turned, other, config), vit_logits(images, params, config)


@holds("vit_logits", "More patches than positions are refused.")
def too_many_patches(vit_logits, images, params, config):
    return refused(vit_logits, torch.cat([images, images], dim=2), params, config)


@holds("attention_distance", "Heads that look at themselves alone look 0 far.")
def looks_at_itself(attention_distance, weights, columns):
    own = torch.eye(weights.shape[-1]).double().expand(weights.shape)
    return attention_distance(own, columns), torch.zeros(weights.shape[:-2]).double()


@holds("attention_distance", "One head's distance, by loops over rows and columns of the grid.")
def one_distance(attention_distance, weights, columns):
    rows = weights.reshape(-1, *weights.shape[-2:])[-1].tolist()
    total = 0.0
    for here, row in enumerate(rows):
        for there, share in enumerate(row):
            down, across = there // columns - here // columns, there % columns - here % columns
            total += share * math.hypot(down, across)
    return float(attention_distance(weights, columns).reshape(-1)[-1]), total / len(rows)


@holds("attention_distance", "Columns that do not divide the patches, and none, are refused.")
def strange_columns(attention_distance, weights, columns):
    return refused(attention_distance, weights, 0) and refused(attention_distance, weights, weights.shape[-1] + 1)


@holds("fine_tune", "The first loss is ln of the number of classes: the new head is zeros.")
def first_loss(fine_tune, params, images, labels, num_classes, config, rates, steps):
    losses, _ = fine_tune(params, images, labels, num_classes, config, rates, 1)
    return losses, [math.log(num_classes)]


@holds("fine_tune", "Frozen parts stay exactly as they were, and what comes back is detached.")
def frozen_parts(fine_tune, params, images, labels, num_classes, config, rates, steps):
    losses, new = fine_tune(params, images, labels, num_classes, config, rates, steps)
    if len(losses) != steps or any(type(loss) is not float for loss in losses) or set(new) != set(params):
        return False
    frozen = [key for key in params if key not in {*rates, "w_head", "b_head"}]
    is_frozen = all(
        torch.equal(a, b) for key in frozen for a, b in zip(_tensors(new[key]), _tensors(params[key]))
    )
    return is_frozen and not any(leaf.requires_grad for leaf in _tensors(new))


@holds("fine_tune", "Steps in two runs go as far as in one; without steps only the head is new.")
def without_steps(fine_tune, params, images, labels, num_classes, config, rates, steps):
    losses, new = fine_tune(params, images, labels, num_classes, config, rates, 0)
    shape = (params["w_head"].shape[0], num_classes)
    head = [new["w_head"], new["b_head"]]
    zeros = [torch.zeros(shape).double(), torch.zeros(num_classes).double()]
    return [losses, *head], [[], *zeros]


@holds("fine_tune", "The bias of the head goes by its rate times the share of each class less one over all.", share=1e-3)
def first_step_of_the_bias(fine_tune, params, images, labels, num_classes, config, rates, steps):
    new = fine_tune(params, images, labels, num_classes, config, {"b_head": 0.5}, 1)[1]
    counts = [int((labels == label).sum()) / len(labels) for label in range(num_classes)]
    return new["b_head"].tolist(), [0.5 * (share - 1 / num_classes) for share in counts]


@holds("fine_tune", "Unknown names, negative rates and unknown classes are refused.")
def strange_rates(fine_tune, params, images, labels, num_classes, config, rates, steps):
    return (
        refused(fine_tune, params, images, labels, num_classes, config, {"nobody": 0.1}, 1)
        and refused(fine_tune, params, images, labels, num_classes, config, {"w_head": -0.1}, 1)
        and refused(fine_tune, params, images, labels * 0 + num_classes, num_classes, config, rates, 1)
        and refused(fine_tune, params, images, labels * 0 - 1, num_classes, config, rates, 1)
    )


@holds("explain_model_size", "The model is of the allowed kind and rounds to the claim; None only where none does.")
def model_of_that_size(explain_model_size, millions, num_blocks, d_model, min_vocab, max_vocab):
    named = explain_model_size(millions, num_blocks, d_model, min_vocab, max_vocab)

    def weights_of(encoders):
        decoders = num_blocks - encoders
        crossing = decoders if encoders else 0
        return (12 * num_blocks + 4 * crossing) * d_model**2

    low, high = (millions - 0.5) * 1e6, (millions + 0.5) * 1e6
    if named is None:
        return not any(
            weights_of(e) + min_vocab * d_model < high - 1 and weights_of(e) + max_vocab * d_model > low + 1 + d_model
            for e in range(num_blocks)
            if max(min_vocab, (low - weights_of(e)) / d_model + 1) < min(max_vocab, (high - weights_of(e)) / d_model - 1)
        )
    encoders, decoders, vocabulary = named
    total = weights_of(encoders) + vocabulary * d_model
    is_allowed = encoders >= 0 and decoders >= 1 and encoders + decoders == num_blocks
    return is_allowed and min_vocab <= vocabulary <= max_vocab and round(total / 1e6) == millions
