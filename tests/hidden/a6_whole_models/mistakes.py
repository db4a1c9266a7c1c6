"""Wrong answers that people give about whole models, each with one wrong idea."""

import math

import torch

from autograder.suite import mistake

# ── count_parameters
# ─────────────────────────────────────────────────────────────────────────────────────────


def _groups(c):
    sizes = (c.vocab_size, c.d_model, c.num_heads, c.d_head, c.d_ff, c.context_length)
    if min(sizes) < 1 or min(c.num_layers, c.num_encoder_layers) < 0:
        raise ValueError(f"sizes {sizes}, layers {c.num_layers}, {c.num_encoder_layers}")
    d, inner = c.d_model, c.num_heads * c.d_head
    blocks, cross = c.num_layers + c.num_encoder_layers, c.num_layers * (c.num_encoder_layers > 0)
    attention = 4 * d * inner + (3 * inner + d) * bool(c.biases)
    norms = 2 * blocks + cross + bool(c.final_norm)
    return {
        "embedding": c.vocab_size * d,
        "positions": c.context_length * d * bool(c.learned_positions),
        "attention": blocks * attention,
        "cross_attention": cross * attention,
        "mlp": blocks * (2 * d * c.d_ff + (c.d_ff + d) * bool(c.biases)),
        "norms": norms * 2 * d * bool(c.norms),
        "unembedding": d * c.vocab_size * (not c.tied),
    }


def _counted(config, **changed):
    counts = _groups(config) | changed
    return counts | {"total": sum(counts.values())}


@mistake(
    "count_parameters",
    hint="Cross-attention is missing. A decoder block that reads an encoder has a second "
    "attention: 16 D² instead of "
    "12 D².",
)
def forgets_cross_attention(config):
    return _counted(config, cross_attention=0)


@mistake(
    "count_parameters",
    hint="Cross-attention sits in decoder blocks only; you count it in encoder blocks, too.",
)
def gives_every_block_cross_attention(config):
    counts = _groups(config)
    return _counted(config, cross_attention=counts["attention"] if config.num_encoder_layers else 0)


@mistake(
    "count_parameters",
    hint="Cross-attention needs an encoder to read. A decoder-only model has none.",
)
def gives_decoder_only_models_cross_attention(config):
    attention = _groups(config)["attention"]
    return _counted(
        config,
        cross_attention=attention
        * config.num_layers
        // max(config.num_layers + config.num_encoder_layers, 1),
    )


@mistake(
    "count_parameters",
    hint="You count D² for the attention matrices. They are [D, H·d], and H·d need not be D.",
)
def takes_d_squared_for_every_matrix(config):
    c, d = config, config.d_model
    counts = _groups(c)
    one = 4 * d * d + 4 * d * bool(c.biases)
    cross = c.num_layers * (c.num_encoder_layers > 0)
    changed = {
        "attention": (c.num_layers + c.num_encoder_layers) * one,
        "cross_attention": cross * one,
    }
    return _counted(c, **(changed if counts else {}))


@mistake("count_parameters", hint="The attention has a fourth matrix, the output projection.")
def forgets_the_output_projection(config):
    c, d, inner = config, config.d_model, config.num_heads * config.d_head
    _groups(c)
    one = 3 * d * inner + 3 * inner * bool(c.biases)
    cross = c.num_layers * (c.num_encoder_layers > 0)
    return _counted(
        c, attention=(c.num_layers + c.num_encoder_layers) * one, cross_attention=cross * one
    )


@mistake("count_parameters", hint="The width of the MLP is d_ff. It is often 4·D, and need not be.")
def takes_four_d_for_the_mlp(config):
    c, d = config, config.d_model
    return _counted(
        c,
        mlp=(c.num_layers + c.num_encoder_layers) * (8 * d * d + 5 * d * bool(c.biases))
        if _groups(c)
        else 0,
    )


@mistake(
    "count_parameters",
    hint="A bias is as wide as the output of its matrix: H·d three times, then D; F, then D.",
)
def forgets_the_biases(config):
    c, d, inner = config, config.d_model, config.num_heads * config.d_head
    _groups(c)
    blocks, cross = c.num_layers + c.num_encoder_layers, c.num_layers * (c.num_encoder_layers > 0)
    return _counted(
        c,
        attention=blocks * 4 * d * inner,
        cross_attention=cross * 4 * d * inner,
        mlp=blocks * 2 * d * c.d_ff,
    )


@mistake(
    "count_parameters",
    hint="The encoder's blocks are missing: they have attention, MLP and norms as well.",
)
def counts_the_decoder_only(config):
    c = config
    counts, blocks = _groups(c), max(c.num_layers + c.num_encoder_layers, 1)
    norms = (
        (2 * c.num_layers + c.num_layers * (c.num_encoder_layers > 0) + bool(c.final_norm))
        * 2
        * c.d_model
    )
    return _counted(
        c,
        attention=counts["attention"] * c.num_layers // blocks,
        mlp=counts["mlp"] * c.num_layers // blocks,
        norms=norms * bool(c.norms),
    )


@mistake("count_parameters", hint="A norm has two vectors, gamma and beta.")
def counts_gamma_only(config):
    return _counted(config, norms=_groups(config)["norms"] // 2)


@mistake("count_parameters", hint="The norm after the last block is missing.")
def forgets_the_final_norm(config):
    c = config
    return _counted(
        c, norms=_groups(c)["norms"] - 2 * c.d_model * (bool(c.final_norm) and bool(c.norms))
    )


@mistake("count_parameters", hint="A decoder block with cross-attention has a third norm.")
def gives_every_block_two_norms(config):
    c = config
    third = c.num_layers * (c.num_encoder_layers > 0) * 2 * c.d_model * bool(c.norms)
    return _counted(c, norms=_groups(c)["norms"] - third)


@mistake(
    "count_parameters",
    hint="A tied unembedding is the embedding once more: no new numbers. Where it is not "
    "tied, it counts.",
)
def counts_the_unembedding_always(config):
    return _counted(
        config, unembedding=config.d_model * config.vocab_size if _groups(config) else 0
    )


@mistake(
    "count_parameters",
    hint="Where the two ends are not tied, the unembedding is a matrix of its own.",
)
def ties_every_model(config):
    return _counted(config, unembedding=0 if _groups(config) else 0)


@mistake(
    "count_parameters",
    hint="Sinusoidal positions are computed, not learned: they are no parameters.",
)
def counts_sinusoidal_positions(config):
    return _counted(
        config, positions=config.context_length * config.d_model if _groups(config) else 0
    )


@mistake("count_parameters", hint="The switch `norms` is off, and norms are counted all the same.")
def counts_norms_that_are_switched_off(config):
    c = config
    blocks, cross = c.num_layers + c.num_encoder_layers, c.num_layers * (c.num_encoder_layers > 0)
    return _counted(
        c, norms=(2 * blocks + cross + bool(c.final_norm)) * 2 * c.d_model if _groups(c) else 0
    )


@mistake("count_parameters", hint="The total does not add all seven groups.")
def leaves_the_norms_out_of_the_total(config):
    counts = _groups(config)
    return counts | {"total": sum(counts.values()) - counts["norms"]}


@mistake("count_parameters", hint="Parameters are counted in whole numbers: int, not float.")
def counts_in_floats(config):
    return {key: float(value) for key, value in _counted(config).items()}


@mistake(
    "count_parameters",
    hint="There is one final norm, after the last block of the model; you count one for each stack.",
    replace=(
        "(1 if c.final_norm else 0)",
        "((2 if c.num_encoder_layers else 1) if c.final_norm else 0)",
    ),
)
def ends_both_stacks_with_a_norm(): ...


@mistake(
    "count_parameters",
    hint="There is one table of positions, also where a model has an encoder.",
    replace=(
        "c.context_length * d if c.learned_positions else 0",
        "c.context_length * d * (2 if cross_blocks else 1) if c.learned_positions else 0",
    ),
)
def gives_both_sides_a_table_of_positions(): ...


@mistake(
    "count_parameters",
    hint="Sizes of 0 and below cannot be right. The docstring asks for a ValueError.",
)
def counts_whatever_it_gets(config):
    c, d, inner = config, config.d_model, config.num_heads * config.d_head
    blocks, cross = c.num_layers + c.num_encoder_layers, c.num_layers * (c.num_encoder_layers > 0)
    attention = 4 * d * inner + (3 * inner + d) * bool(c.biases)
    counts = {
        "embedding": c.vocab_size * d,
        "positions": c.context_length * d * bool(c.learned_positions),
        "attention": blocks * attention,
        "cross_attention": cross * attention,
        "mlp": blocks * (2 * d * c.d_ff + (c.d_ff + d) * bool(c.biases)),
        "norms": (2 * blocks + cross + bool(c.final_norm)) * 2 * d * bool(c.norms),
        "unembedding": d * c.vocab_size * (not c.tied),
    }
    return counts | {"total": sum(counts.values())}


# ── decoder_lm
# ───────────────────────────────────────────────────────────────────────────────────────────────


def _check_text(ids, config):
    if ids.shape[1] > config.context_length:
        raise ValueError(f"{ids.shape[1]} tokens, a context of {config.context_length}")
    check_ids(ids, config.vocab_size)


def _lm_input(ids, params, config):
    _check_text(ids, config)
    return params["embed"][ids] + params["positions"][: ids.shape[1]]


def _lm_blocks(x, params, config, mask, block=pre_norm_block):
    for weights in params["blocks"]:
        x = block(x, weights, config.num_heads, mask)
    return x


def _lm_output(x, params):
    x = layer_norm(x, params["lnf_gamma"], params["lnf_beta"])
    return x @ (params["unembed"] if "unembed" in params else params["embed"].T)


def _lm(ids, params, config, mask=None):
    mask = causal_mask(ids.shape[1]) if mask is None else mask
    return _lm_output(_lm_blocks(_lm_input(ids, params, config), params, config, mask), params)


@mistake(
    "decoder_lm",
    hint="Every position sees the whole text, also what it should predict. Change the last "
    "token: do earlier logits "
    "change?",
)
def lets_everybody_see_everything(ids, params, config):
    return _lm(ids, params, config, torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool))


@mistake(
    "decoder_lm",
    hint="Your mask shows the future and hides the past: rows are queries, columns are keys.",
)
def shows_the_future_only(ids, params, config):
    return _lm(ids, params, config, causal_mask(ids.shape[1]).T)


@mistake(
    "decoder_lm",
    hint="Each position sees one token too far: exactly the one that it should predict.",
    keeps=0.5,
)
def sees_one_token_too_far(ids, params, config):
    n = ids.shape[1]
    return _lm(ids, params, config, torch.ones(n, n).tril(1).bool())


@mistake(
    "decoder_lm",
    hint="A token may look at itself: the diagonal of the causal mask is True.",
    keeps=0.5,
)
def hides_a_token_from_itself(ids, params, config):
    n = ids.shape[1]
    return _lm(ids, params, config, torch.ones(n, n).tril(-1).bool())


@mistake(
    "decoder_lm",
    hint="The norm after the last block is missing. Pre-norm blocks never normalize the stream "
    "itself, it only grows.",
    keeps=0.5,
)
def forgets_the_last_norm(ids, params, config):
    x = _lm_blocks(_lm_input(ids, params, config), params, config, causal_mask(ids.shape[1]))
    return x @ (params["unembed"] if "unembed" in params else params["embed"].T)


@mistake(
    "decoder_lm",
    hint="The last norm has parameters of its own, lnf_gamma and lnf_beta; after training "
    "they matter.",
)
def normalizes_without_gamma_and_beta(ids, params, config):
    plain = {
        "lnf_gamma": torch.ones_like(params["lnf_gamma"]),
        "lnf_beta": torch.zeros_like(params["lnf_beta"]),
    }
    return _lm(ids, {**params, **plain}, config)


@mistake(
    "decoder_lm",
    hint="Your positions depend on which token it is. They should depend on where it stands.",
)
def looks_positions_up_by_token(ids, params, config):
    _check_text(ids, config)
    x = params["embed"][ids] + params["positions"][ids.clamp(max=config.context_length - 1)]
    return _lm_output(_lm_blocks(x, params, config, causal_mask(ids.shape[1])), params)


@mistake(
    "decoder_lm", hint="Positions are missing: the model cannot tell in which order the words came."
)
def forgets_the_positions(ids, params, config):
    return _lm(ids, {**params, "positions": 0 * params["positions"]}, config)


@mistake(
    "decoder_lm",
    hint="Positions are added once, at the input. You add them again in front of every block.",
)
def adds_positions_in_every_block(ids, params, config):
    x = _lm_input(ids, params, config)
    for number, weights in enumerate(params["blocks"]):
        x = x + params["positions"][: ids.shape[1]] if number else x
        x = pre_norm_block(x, weights, config.num_heads, causal_mask(ids.shape[1]))
    return _lm_output(x, params)


@mistake(
    "decoder_lm",
    hint="Positions are taken from the end of the table: the first token of any text "
    "has position 0.",
)
def counts_positions_from_the_end(ids, params, config):
    _check_text(ids, config)
    x = params["embed"][ids] + params["positions"][config.context_length - ids.shape[1] :]
    return _lm_output(_lm_blocks(x, params, config, causal_mask(ids.shape[1])), params)


@mistake(
    "decoder_lm", hint="These are post-norm blocks. The language model here has pre-norm blocks."
)
def uses_post_norm_blocks(ids, params, config):
    x = _lm_blocks(
        _lm_input(ids, params, config), params, config, causal_mask(ids.shape[1]), post_norm_block
    )
    return _lm_output(x, params)


@mistake(
    "decoder_lm",
    hint="Only the first block is used. Does your loop keep what the block returns, and go on?",
)
def runs_the_first_block_only(ids, params, config):
    return _lm(ids, {**params, "blocks": params["blocks"][:1]}, config)


@mistake(
    "decoder_lm",
    hint="Every block gets the same input: what one block made should go into the next.",
)
def starts_every_block_anew(ids, params, config):
    x = start = _lm_input(ids, params, config)
    for weights in params["blocks"]:
        x = pre_norm_block(start, weights, config.num_heads, causal_mask(ids.shape[1]))
    return _lm_output(x, params)


@mistake(
    "decoder_lm",
    hint="A tied unembedding is the embedding transposed, [D, V]. A reshape has that shape too, "
    "with the numbers in "
    "other places.",
)
def reshapes_the_embedding(ids, params, config):
    unembed = (
        params["unembed"] if "unembed" in params else params["embed"].reshape(config.d_model, -1)
    )
    return _lm(ids, {**params, "unembed": unembed}, config)


@mistake(
    "decoder_lm",
    hint="The embedding is [V, D], and logits are dot products with its rows: which axis is summed?",
)
def ties_without_transposing(ids, params, config):
    unembed = params["unembed"] if "unembed" in params else params["embed"]
    return _lm(ids, {**params, "unembed": unembed}, config)


@mistake("decoder_lm", hint="Where params have an `unembed`, the model is not tied: use it.")
def ties_every_language_model(ids, params, config):
    return _lm(ids, {**params, "unembed": params["embed"].T}, config)


@mistake(
    "decoder_lm",
    hint="A tied embedding learns from both ends. Yours is cut off at the output (detach, .data).",
)
def detaches_the_tied_embedding(ids, params, config):
    unembed = params["unembed"] if "unembed" in params else params["embed"].detach().T
    return _lm(ids, {**params, "unembed": unembed}, config)


@mistake(
    "decoder_lm",
    hint="These are probabilities. The function returns logits; loss and sampling do the softmax.",
)
def returns_probabilities(ids, params, config):
    return torch.softmax(_lm(ids, params, config), dim=-1)


@mistake(
    "decoder_lm",
    hint="The embedding is multiplied by the root of D. Some models do; this course does not.",
)
def scales_the_embedding(ids, params, config):
    _check_text(ids, config)
    x = (
        params["embed"][ids] * math.sqrt(params["embed"].shape[1])
        + params["positions"][: ids.shape[1]]
    )
    return _lm_output(_lm_blocks(x, params, config, causal_mask(ids.shape[1])), params)


@mistake(
    "decoder_lm",
    hint="Half precision comes back as float32: the dtype of the weights should come out.",
)
def answers_in_float32(ids, params, config):
    logits = _lm(ids, params, config)
    return logits.float() if logits.dtype == torch.float16 else logits


@mistake(
    "decoder_lm", hint="A batch of one sentence keeps its axis, [1, N, V]: squeeze() takes it away."
)
def squeezes_a_batch_of_one_sentence(ids, params, config):
    return _lm(ids, params, config).squeeze()


@mistake(
    "decoder_lm",
    hint="Your sentences are one long text here: later sentences see the earlier ones. Keep "
    "the batch axis.",
)
def reads_the_batch_as_one_text(ids, params, config):
    x = _lm_input(ids, params, config)
    length = ids.numel()
    x = _lm_blocks(x.reshape(1, length, -1), params, config, causal_mask(length))
    return _lm_output(x, params).reshape(*ids.shape, -1)


@mistake(
    "decoder_lm",
    hint="One pass a position: the causal mask lets all positions be computed in one call.",
)
def computes_one_position_after_the_other(ids, params, config):
    return torch.stack(
        [_lm(ids[:, : n + 1], params, config)[:, -1] for n in range(ids.shape[1])], dim=1
    )


@mistake(
    "decoder_lm",
    hint="A text that is too long is cut silently. Here it is a ValueError; cropping is the "
    "business of generate.",
)
def crops_a_text_that_is_too_long(ids, params, config):
    return _lm(ids[:, -config.context_length :], params, config)


@mistake(
    "decoder_lm",
    hint="An id of -1 silently fetches the last row of the table. Ids outside are a ValueError.",
)
def takes_any_id(ids, params, config):
    n = ids.shape[1]
    if n > config.context_length:
        raise ValueError(f"{n} tokens, a context of {config.context_length}")
    x = params["embed"][ids % config.vocab_size] + params["positions"][:n]
    return _lm_output(_lm_blocks(x, params, config, causal_mask(n)), params)


# ── lm_loss
# ──────────────────────────────────────────────────────────────────────────────────────────────────


def _check_pair(logits, ids, ignore_index):
    if logits.shape[:2] != ids.shape:
        raise ValueError(f"logits {list(logits.shape)} and ids {list(ids.shape)}")
    targets = ids[:, 1:]
    check_ids(targets[targets != ignore_index], logits.shape[-1])


def _cross_entropy(predictions, targets, ignore_index, dtype):
    """The mean over the targets that count; 0 where none does."""
    kept = targets != ignore_index
    predictions, targets = predictions[kept], targets[kept]
    wide = (
        predictions if predictions.dtype in (torch.float32, torch.float64) else predictions.float()
    )
    picked = torch.log_softmax(wide, dim=-1).gather(1, targets[:, None])
    return (-picked.sum() / max(len(targets), 1)).to(dtype)


@mistake(
    "lm_loss",
    hint="Nothing is shifted: position t is scored on token t, which it has just read. A model "
    "that copies its input "
    "would have no loss.",
)
def scores_a_token_on_itself(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    usable = ids.where((ids >= 0) & (ids < logits.shape[-1]), ignore_index)
    if ids.shape[1] == 1:
        return (0 * logits).sum()
    return _cross_entropy(logits, usable, ignore_index, logits.dtype)


@mistake(
    "lm_loss",
    hint="Shifted the wrong way: position t should be scored on token t + 1, and yours on t - 1.",
)
def shifts_the_other_way(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    return _cross_entropy(logits[:, 1:], ids[:, :-1], ignore_index, logits.dtype)


@mistake(
    "lm_loss",
    hint="Shifted twice: position t is scored on token t + 2. The logits lose one place, "
    "the ids one.",
)
def shifts_twice(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    return _cross_entropy(logits[:, :-2], ids[:, 2:], ignore_index, logits.dtype)


@mistake(
    "lm_loss",
    hint="The ids are rolled, so the last position is scored on the *first* token. It "
    "has no target.",
    keeps=0.5,
)
def rolls_the_targets(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    if ids.shape[1] == 1:
        return (0 * logits).sum()
    return _cross_entropy(logits, ids.roll(-1, dims=1), ignore_index, logits.dtype)


@mistake("lm_loss", hint="The softmax is taken twice. cross_entropy and log_softmax want logits.")
def takes_the_softmax_twice(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    return _cross_entropy(
        torch.softmax(logits, dim=-1)[:, :-1], ids[:, 1:], ignore_index, logits.dtype
    )


@mistake(
    "lm_loss", hint="Ignored targets left the sum, and still count in the number you divide by."
)
def divides_by_all_targets(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    kept = (ids[:, 1:] != ignore_index).sum()
    mean = _cross_entropy(logits[:, :-1], ids[:, 1:], ignore_index, logits.dtype)
    return (mean * kept / max(ids[:, 1:].numel(), 1)).to(logits.dtype)


@mistake(
    "lm_loss", hint="This is the sum. The loss is the mean over the targets that count.", keeps=0.5
)
def sums_the_losses(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    mean = _cross_entropy(logits[:, :-1], ids[:, 1:], ignore_index, logits.dtype)
    return mean * (ids[:, 1:] != ignore_index).sum().clamp(min=1)


@mistake(
    "lm_loss",
    hint="A mean of each sentence's mean: short sentences weigh more. Average over all targets "
    "of the batch at once.",
)
def averages_sentence_by_sentence(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    rows = [
        _cross_entropy(logits[b : b + 1, :-1], ids[b : b + 1, 1:], ignore_index, logits.dtype)
        for b in range(len(ids))
    ]
    return torch.stack(rows).mean()


@mistake(
    "lm_loss",
    hint="A tiny probability rounds to 0, and log(0) is -inf. Take the log-softmax of the logits.",
)
def takes_the_log_of_the_softmax(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    kept = ids[:, 1:] != ignore_index
    wide = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
    p = torch.softmax(wide[:, :-1], dim=-1)[kept].gather(1, ids[:, 1:][kept][:, None])
    return (-torch.log(p).sum() / max(len(p), 1)).to(logits.dtype)


@mistake(
    "lm_loss",
    hint="Where every target is ignored, the mean is 0/0 = NaN. Here it is 0, with a gradient of 0.",
)
def averages_nothing(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    wide = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
    predictions, targets = wide[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
    return torch.nn.functional.cross_entropy(predictions, targets, ignore_index=ignore_index).to(
        logits.dtype
    )


@mistake(
    "lm_loss",
    hint="The 0 of a batch without targets is a new tensor: backward from it fails. Keep "
    "it connected.",
)
def returns_a_loose_zero(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    if not (ids[:, 1:] != ignore_index).any():
        return torch.tensor(0.0, dtype=logits.dtype)
    return _cross_entropy(logits[:, :-1], ids[:, 1:], ignore_index, logits.dtype)


@mistake(
    "lm_loss",
    hint="Logits and targets are flattened in different orders: predictions meet other "
    "rows' targets.",
)
def flattens_in_another_order(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    predictions = logits[:, :-1].transpose(0, 1).flatten(0, 1)
    return _cross_entropy(predictions, ids[:, 1:].flatten(), ignore_index, logits.dtype)


@mistake("lm_loss", hint="Only -100 is ignored. Which value is ignored is an argument.")
def ignores_minus_hundred_only(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    targets = ids[:, 1:].where(ids[:, 1:] >= 0, -100)
    return _cross_entropy(logits[:, :-1], targets, -100, logits.dtype)


@mistake("lm_loss", hint="Ignored targets became word 0 and count. They should not count at all.")
def turns_ignored_targets_into_word_zero(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    targets = ids[:, 1:].where(ids[:, 1:] != ignore_index, 0)
    return _cross_entropy(logits[:, :-1], targets, -12345, logits.dtype)


@mistake(
    "lm_loss", hint="The loss is a Python float: nothing can be trained with it. Return the tensor."
)
def returns_a_number_without_a_graph(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    return _cross_entropy(logits[:, :-1], ids[:, 1:], ignore_index, logits.dtype).detach()


@mistake(
    "lm_loss", hint="This is the perplexity, exp(loss). The loss itself is asked for.", keeps=0.5
)
def returns_the_perplexity(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    return torch.exp(_cross_entropy(logits[:, :-1], ids[:, 1:], ignore_index, logits.dtype))


@mistake(
    "lm_loss",
    hint="Half precision comes back as float32: compute in it, and return the dtype of the logits.",
)
def answers_half_precision_in_float32(logits, ids, ignore_index=-100):
    _check_pair(logits, ids, ignore_index)
    wide = logits.float() if logits.dtype == torch.float16 else logits
    return _cross_entropy(wide[:, :-1], ids[:, 1:], ignore_index, wide.dtype)


@mistake(
    "lm_loss",
    hint="Logits and ids that do not belong together are cut to fit. The docstring asks for "
    "a ValueError.",
)
def cuts_what_does_not_fit(logits, ids, ignore_index=-100):
    n = min(logits.shape[1], ids.shape[1])
    logits, ids = logits[:, :n], ids[:, :n]
    ids = ids.where((ids == ignore_index) | ((ids >= 0) & (ids < logits.shape[-1])), ignore_index)
    return _cross_entropy(logits[:, :-1], ids[:, 1:], ignore_index, logits.dtype)


# ── train_step
# ───────────────────────────────────────────────────────────────────────────────────────────────


def _gradients(params, ids, config, lr):
    if lr < 0:
        raise ValueError(f"a step size of {lr}")
    leaves = [tensor.detach().clone().requires_grad_() for tensor in list_tensors(params)]
    loss = lm_loss(decoder_lm(ids, with_tensors(params, leaves), config), ids)
    return loss, leaves, torch.autograd.grad(loss, leaves)


def _stepped(params, leaves, gradients, lr):
    new = [leaf.detach() - lr * gradient for leaf, gradient in zip(leaves, gradients, strict=True)]
    return with_tensors(params, new)


@mistake(
    "train_step",
    hint="The loss goes up: the gradient points uphill, and the step should go against it.",
    keeps=0.5,
)
def goes_uphill(params, ids, config, lr):
    loss, leaves, gradients = _gradients(params, ids, config, lr)
    return loss.item(), _stepped(params, leaves, gradients, -lr)


@mistake(
    "train_step", hint="The loss is that of the new parameters. Return the one before the step."
)
def returns_the_loss_after_the_step(params, ids, config, lr):
    _, leaves, gradients = _gradients(params, ids, config, lr)
    new = _stepped(params, leaves, gradients, lr)
    return lm_loss(decoder_lm(ids, new, config), ids).item(), new


@mistake(
    "train_step", hint="The caller's parameters were changed in place. A step returns new ones."
)
def edits_the_parameters_in_place(params, ids, config, lr):
    loss, _, gradients = _gradients(params, ids, config, lr)
    for tensor, gradient in zip(list_tensors(params), gradients, strict=True):
        tensor -= lr * gradient
    return loss.item(), params


@mistake(
    "train_step",
    hint="The loss is a tensor. A Python float is asked for, so that nothing keeps the graph.",
)
def returns_the_loss_as_a_tensor(params, ids, config, lr):
    loss, leaves, gradients = _gradients(params, ids, config, lr)
    return loss.detach(), _stepped(params, leaves, gradients, lr)


@mistake(
    "train_step",
    hint="The blocks did not learn: they are dicts in a list inside params, and need "
    "their step, too.",
)
def leaves_the_blocks_untrained(params, ids, config, lr):
    loss, leaves, gradients = _gradients(params, ids, config, lr)
    return loss.item(), {**_stepped(params, leaves, gradients, lr), "blocks": params["blocks"]}


@mistake(
    "train_step", hint="The norms did not learn: gamma and beta are parameters like all others."
)
def leaves_the_norms_untrained(params, ids, config, lr):
    loss, leaves, gradients = _gradients(params, ids, config, lr)
    gradients = [g if g.dim() == 2 else 0 * g for g in gradients]
    return loss.item(), _stepped(params, leaves, gradients, lr)


@mistake(
    "train_step",
    hint="The new parameters are still part of the graph of the step. In a loop they "
    "fill the memory.",
)
def keeps_the_graph(params, ids, config, lr):
    loss, leaves, gradients = _gradients(params, ids, config, lr)
    return loss.item(), with_tensors(
        params, [a - lr * g for a, g in zip(leaves, gradients, strict=True)]
    )


@mistake(
    "train_step", hint="The step does not depend on lr as it should: it is lr times the gradient."
)
def takes_a_step_of_its_own(params, ids, config, lr):
    loss, leaves, gradients = _gradients(params, ids, config, lr)
    return loss.item(), _stepped(params, leaves, gradients, 0.1 if lr else 0.0)


@mistake(
    "train_step",
    hint="The gradient is divided by the size of the batch once more: the loss is a mean already.",
)
def divides_by_the_batch_again(params, ids, config, lr):
    loss, leaves, gradients = _gradients(params, ids, config, lr)
    return loss.item(), _stepped(params, leaves, gradients, lr / len(ids))


@mistake(
    "train_step",
    hint="Only the sign of the gradient is used. Plain gradient descent uses its size as well.",
)
def follows_the_sign_only(params, ids, config, lr):
    loss, leaves, gradients = _gradients(params, ids, config, lr)
    return loss.item(), _stepped(params, leaves, [g.sign() for g in gradients], lr)


@mistake(
    "train_step",
    hint="The gradient is clipped to length 1. Useful sometimes, and not asked for here.",
)
def clips_the_gradient(params, ids, config, lr):
    loss, leaves, gradients = _gradients(params, ids, config, lr)
    length = torch.sqrt(sum(g.pow(2).sum() for g in gradients))
    return loss.item(), _stepped(params, leaves, [g / length.clamp(min=1) for g in gradients], lr)


@mistake(
    "train_step",
    hint="The ids are shifted before they get to the loss, and the loss shifts again. Who "
    "shifts, here?",
)
def shifts_before_the_loss_as_well(params, ids, config, lr):
    if lr < 0:
        raise ValueError(f"a step size of {lr}")
    leaves = [tensor.detach().clone().requires_grad_() for tensor in list_tensors(params)]
    loss = lm_loss(decoder_lm(ids[:, :-1], with_tensors(params, leaves), config), ids[:, 1:])
    return loss.item(), _stepped(params, leaves, torch.autograd.grad(loss, leaves), lr)


@mistake(
    "train_step", hint="A negative step size goes uphill; the docstring asks for a ValueError."
)
def takes_any_step_size(params, ids, config, lr):
    loss, leaves, gradients = _gradients(params, ids, config, 1)
    return loss.item(), _stepped(params, leaves, gradients, lr)


# ── similarity_by_layer
# ──────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "similarity_by_layer",
    hint="Entry 0 is about the table. One word at two places has one row there: no position yet.",
    replace=("depths = [rows[place]]", 'depths = [rows[place] + params["positions"][place]]'),
    keeps=0.5,
)
def adds_positions_to_the_table(): ...


@mistake(
    "similarity_by_layer",
    hint="The stream that enters the first block has positions: a word at another place is not "
    "the same there.",
    replace=('(rows + params["positions"][:n]).unsqueeze(0)', "rows.unsqueeze(0)"),
)
def compares_without_positions(): ...


@mistake(
    "similarity_by_layer",
    hint="Words behind the place change your answer. Which words may a block of this model look at?",
    replace=(
        "pre_norm_block(x, block, config.num_heads, causal_mask(n))",
        "pre_norm_block(x, block, config.num_heads)",
    ),
)
def reads_what_comes_later(): ...


@mistake(
    "similarity_by_layer",
    hint="The blocks of this model are pre-norm: yours normalize the stream itself.",
    replace=("pre_norm_block(", "post_norm_block("),
)
def follows_post_norm_blocks(): ...


@mistake(
    "similarity_by_layer",
    hint="The stream is compared as it leaves a block. Yours has gone through the final norm.",
    replace=(
        "depths.append(x[0, place])",
        'depths.append(layer_norm(x, params["lnf_gamma"], params["lnf_beta"])[0, place])',
    ),
)
def normalizes_before_comparing(): ...


@mistake(
    "similarity_by_layer",
    hint="The last entry is about the stream after the last block, before the final norm.",
    replace=(
        "return torch.stack(depths)",
        """
if len(depths) > 1:
    depths[-1] = layer_norm(depths[-1], params["lnf_gamma"], params["lnf_beta"])
return torch.stack(depths)
""",
    ),
    keeps=0.5,
)
def normalizes_the_last_depth(): ...


@mistake(
    "similarity_by_layer",
    hint="Your numbers grow with the vectors: a dot product. A cosine divides by both lengths.",
    replace=(
        "torch.nn.functional.cosine_similarity(at_each_depth(first, i), "
        "at_each_depth(second, j), dim=-1)",
        "(at_each_depth(first, i) * at_each_depth(second, j)).sum(dim=-1)",
    ),
)
def multiplies_without_dividing(): ...


@mistake(
    "similarity_by_layer",
    hint="A vector of zeros has length 0, and 0/0 is NaN. Its cosine is 0 here.",
    replace=(
        "return torch.nn.functional.cosine_similarity(at_each_depth(first, i), "
        "at_each_depth(second, j), dim=-1)",
        """
u, v = at_each_depth(first, i), at_each_depth(second, j)
return (u * v).sum(dim=-1) / (u.norm(dim=-1) * v.norm(dim=-1))
""",
    ),
    keeps=0.5,
)
def divides_zero_by_zero(): ...


@mistake(
    "similarity_by_layer",
    hint="A distance is small where two words are alike. A similarity is asked for: 1 for "
    "equal vectors.",
    replace=("return torch.nn.functional", "return 1 - torch.nn.functional"),
)
def returns_a_distance_of_words(): ...


@mistake(
    "similarity_by_layer",
    hint="Both words are taken at the same place. The second stands at j in its own text.",
    replace=(
        "at_each_depth(second, j)",
        "at_each_depth(second, i if 0 <= i < len(second) and 0 <= j < len(second) else j)",
    ),
)
def looks_at_one_place_in_both(): ...


@mistake(
    "similarity_by_layer",
    hint="The last word of each text is compared, wherever i and j point.",
    replace=[("rows[place]", "rows[-1]"), ("x[0, place]", "x[0, -1]")],
)
def compares_the_last_words(): ...


@mistake(
    "similarity_by_layer",
    hint="Your vectors are means over the whole text. The vector at the word's place is meant.",
    replace=[("rows[place]", "rows.mean(dim=0)"), ("x[0, place]", "x[0].mean(dim=0)")],
)
def compares_whole_texts(): ...


@mistake(
    "similarity_by_layer",
    hint="Your entries are what goes into each block. Entry l is what comes out of block l.",
    replace=[
        ("depths.append(x[0, place])", "pass"),
        (
            "x = pre_norm_block(x, block, config.num_heads, causal_mask(n))",
            """
depths.append(x[0, place])
x = pre_norm_block(x, block, config.num_heads, causal_mask(n))
""",
        ),
    ],
)
def looks_in_front_of_each_block(): ...


@mistake(
    "similarity_by_layer",
    hint="The static entry is missing: L blocks have L + 1 depths, and the table is the first.",
    replace=(
        "at_each_depth(second, j), dim=-1)",
        "at_each_depth(second, j), dim=-1)[min(1, len(params['blocks'])) :]",
    ),
    keeps=0.5,
)
def leaves_the_table_out(): ...


@mistake(
    "similarity_by_layer",
    hint="Only the two ends are there. The stream is compared after every block.",
    replace=(
        "return torch.stack(depths)",
        "return torch.stack([depths[0], depths[-1]] if len(depths) > 1 else depths)",
    ),
    keeps=0.5,
)
def returns_both_ends_only(): ...


@mistake(
    "similarity_by_layer",
    hint="A place that the text does not have should be a ValueError. −1 fetches the last word.",
    replace=(
        "if not 0 <= place < n:",
        """
place = max(-n, min(place, n - 1))
if False:
""",
    ),
    keeps=0.5,
)
def takes_any_place(): ...


@mistake(
    "similarity_by_layer",
    hint="Places are checked at one end only. They begin at 0 and end at N − 1.",
    replace=("if not 0 <= place < n:", "if place > n - 1:"),
    keeps=0.5,
)
def takes_negative_places(): ...


@mistake(
    "similarity_by_layer",
    hint="A text above the context length should be a ValueError that names both lengths.",
    replace=("if n > config.context_length:", "if False:"),
    keeps=0.5,
)
def compares_texts_of_any_length(): ...


@mistake(
    "similarity_by_layer",
    hint="An id outside the vocabulary should be a ValueError with the id.",
    replace=("check_ids(ids, config.vocab_size)", 'ids = ids.clamp(0, len(params["embed"]) - 1)'),
    keeps=0.5,
)
def compares_any_ids(): ...


# ── filtered_probabilities
# ───────────────────────────────────────────────────────────────────────────────────


def _check_settings(temperature, top_k, top_p):
    if temperature < 0:
        raise ValueError(f"temperature {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p {top_p}")


def _one_hot_of_the_likeliest(logits):
    return torch.zeros_like(logits).scatter(-1, logits.argmax(dim=-1, keepdim=True), 1.0)


def _wide(logits):
    return logits if logits.dtype in (torch.float32, torch.float64) else logits.float()


def _keep_k(z, top_k):
    """Exactly the k largest of each row; the others are -inf."""
    if top_k is None:
        return z
    best = z.topk(min(top_k, z.shape[-1]), dim=-1).indices
    return torch.full_like(z, float("-inf")).scatter(-1, best, z.gather(-1, best))


def _keep_p(p, top_p):
    """The smallest set that reaches top_p, renormalized."""
    if top_p is None:
        return p
    ranked, order = p.sort(dim=-1, descending=True)
    kept = (ranked.cumsum(dim=-1) - ranked < top_p).double().to(p.dtype)
    kept = torch.zeros_like(p).scatter(-1, order, kept)
    return p * kept / (p * kept).sum(dim=-1, keepdim=True)


def _filter(logits, temperature, top_k, top_p, keep_k=_keep_k, keep_p=_keep_p):
    _check_settings(temperature, top_k, top_p)
    if temperature == 0:
        return _one_hot_of_the_likeliest(logits)
    p = torch.softmax(keep_k(_wide(logits) / temperature, top_k), dim=-1)
    return keep_p(p, top_p).to(logits.dtype)


@mistake(
    "filtered_probabilities",
    hint="A low temperature should sharpen, and yours flattens: it multiplies the logits.",
)
def multiplies_by_the_temperature(logits, temperature, top_k=None, top_p=None):
    _check_settings(temperature, top_k, top_p)
    if temperature == 0:
        return _one_hot_of_the_likeliest(logits)
    return _filter(_wide(logits) * temperature, 1.0, top_k, top_p).to(logits.dtype)


@mistake(
    "filtered_probabilities",
    hint="The temperature divides probabilities. It divides the logits, before the softmax.",
)
def divides_the_probabilities(logits, temperature, top_k=None, top_p=None):
    _check_settings(temperature, top_k, top_p)
    if temperature == 0:
        return _one_hot_of_the_likeliest(logits)
    if temperature == 1:
        return _filter(logits, 1.0, top_k, top_p)
    return _filter(torch.softmax(_wide(logits), dim=-1) / temperature, 1.0, top_k, top_p).to(
        logits.dtype
    )


@mistake(
    "filtered_probabilities",
    hint="Temperature 0 divides by zero. It is defined as the likeliest token.",
)
def divides_by_zero(logits, temperature, top_k=None, top_p=None):
    _check_settings(temperature, top_k, top_p)
    return _keep_p(torch.softmax(_keep_k(_wide(logits) / temperature, top_k), dim=-1), top_p).to(
        logits.dtype
    )


@mistake(
    "filtered_probabilities",
    hint="At temperature 0 equally likely tokens share the probability. Put it all on one.",
)
def shares_between_equals_at_zero(logits, temperature, top_k=None, top_p=None):
    _check_settings(temperature, top_k, top_p)
    if temperature == 0:
        best = (logits == logits.amax(dim=-1, keepdim=True)).to(logits.dtype)
        return best / best.sum(dim=-1, keepdim=True)
    return _filter(logits, temperature, top_k, top_p)


@mistake("filtered_probabilities", hint="Temperature has no effect at all.")
def ignores_the_temperature(logits, temperature, top_k=None, top_p=None):
    _check_settings(temperature, top_k, top_p)
    return _filter(logits, 1.0 if temperature else 0.0, top_k, top_p)


@mistake(
    "filtered_probabilities",
    hint="top_k has no effect. (masked_fill returns a new tensor: is the result used?)",
)
def never_applies_top_k(logits, temperature, top_k=None, top_p=None):
    return _filter(logits, temperature, top_k, top_p, keep_k=lambda z, k: z)


@mistake(
    "filtered_probabilities",
    hint="top_p has no effect. (masked_fill returns a new tensor: is the result used?)",
)
def never_applies_top_p(logits, temperature, top_k=None, top_p=None):
    return _filter(logits, temperature, top_k, top_p, keep_p=lambda p, top_p: p)


@mistake(
    "filtered_probabilities",
    hint="More tokens are asked for than there are, and topk refuses. More than V means all.",
)
def asks_topk_for_too_many(logits, temperature, top_k=None, top_p=None):
    def keep(z, k):
        return (
            z if k is None else z.masked_fill(z < z.topk(k, dim=-1).values[..., -1:], float("-inf"))
        )

    def exact(z, k):
        return keep(z, k) if k is not None and k > z.shape[-1] else _keep_k(z, k)

    return _filter(logits, temperature, top_k, top_p, keep_k=exact)


@mistake(
    "filtered_probabilities",
    hint="Everything as likely as the k-th token stays, so ties make more than k. Exactly k "
    "should stay.",
)
def keeps_all_that_tie_with_the_kth(logits, temperature, top_k=None, top_p=None):
    def keep(z, k):
        if k is None:
            return z
        return z.masked_fill(
            z < z.topk(min(k, z.shape[-1]), dim=-1).values[..., -1:], float("-inf")
        )

    return _filter(logits, temperature, top_k, top_p, keep_k=keep)


@mistake(
    "filtered_probabilities",
    hint="What is left after top-k does not sum to 1. Filter, then renormalize.",
)
def leaves_top_k_unnormalized(logits, temperature, top_k=None, top_p=None):
    _check_settings(temperature, top_k, top_p)
    if temperature == 0:
        return _one_hot_of_the_likeliest(logits)
    z = _wide(logits) / temperature
    p = torch.softmax(z, dim=-1).masked_fill(_keep_k(z, top_k).isneginf(), 0.0)
    return (p if top_p is None else _keep_p(p / p.sum(dim=-1, keepdim=True), top_p)).to(
        logits.dtype
    )


@mistake(
    "filtered_probabilities",
    hint="What is left after top-p does not sum to 1. Filter, then renormalize.",
)
def leaves_top_p_unnormalized(logits, temperature, top_k=None, top_p=None):
    return _filter(
        logits, temperature, top_k, top_p,
        keep_p=lambda p, top_p: p if top_p is None else p.masked_fill(_keep_p(p, top_p) == 0, 0.0),
    )  # fmt: skip


@mistake(
    "filtered_probabilities", hint="You keep the k *least* likely tokens. Which way is it sorted?"
)
def keeps_the_least_likely(logits, temperature, top_k=None, top_p=None):
    def keep(z, k):
        if k is None:
            return z
        worst = z.topk(min(k, z.shape[-1]), dim=-1, largest=False).indices
        return torch.full_like(z, float("-inf")).scatter(-1, worst, z.gather(-1, worst))

    return _filter(logits, temperature, top_k, top_p, keep_k=keep)


@mistake(
    "filtered_probabilities",
    hint="The token with which the sum crosses p is dropped, and sometimes nothing is left. It "
    "belongs to the set.",
    keeps=0.5,
)
def drops_the_token_that_crosses_p(logits, temperature, top_k=None, top_p=None):
    def keep(p, top_p):
        if top_p is None:
            return p
        ranked, order = p.sort(dim=-1, descending=True)
        kept = torch.zeros_like(p).scatter(
            -1, order, (ranked.cumsum(dim=-1) <= top_p + 1e-12).to(p.dtype)
        )
        return p * kept / (p * kept).sum(dim=-1, keepdim=True)

    return _filter(logits, temperature, top_k, top_p, keep_p=keep)


@mistake(
    "filtered_probabilities",
    hint="One token too many stays: the sum has reached p already without the last one.",
    keeps=0.5,
)
def keeps_one_token_beyond_p(logits, temperature, top_k=None, top_p=None):
    def keep(p, top_p):
        if top_p is None:
            return p
        ranked, order = p.sort(dim=-1, descending=True)
        before = (ranked.cumsum(dim=-1) - ranked - ranked.roll(1, dims=-1)).masked_fill(
            torch.arange(p.shape[-1]) == 0, 0.0
        )
        kept = torch.zeros_like(p).scatter(-1, order, (before < top_p).to(p.dtype))
        return p * kept / (p * kept).sum(dim=-1, keepdim=True)

    return _filter(logits, temperature, top_k, top_p, keep_p=keep)


@mistake(
    "filtered_probabilities",
    hint="The sum runs over tokens as they stand. Top-p adds from the likeliest down.",
)
def adds_up_unsorted(logits, temperature, top_k=None, top_p=None):
    def keep(p, top_p):
        if top_p is None:
            return p
        p = p.masked_fill(p.cumsum(dim=-1) - p >= top_p, 0.0)
        return p / p.sum(dim=-1, keepdim=True)

    return _filter(logits, temperature, top_k, top_p, keep_p=keep)


@mistake(
    "filtered_probabilities",
    hint="Which places of the *sorted* list stay is applied to the unsorted one. The decision "
    "has to travel back.",
)
def applies_the_sorted_decision_unsorted(logits, temperature, top_k=None, top_p=None):
    def keep(p, top_p):
        if top_p is None:
            return p
        ranked = p.sort(dim=-1, descending=True).values
        p = p.masked_fill(ranked.cumsum(dim=-1) - ranked >= top_p, 0.0)
        return p / p.sum(dim=-1, keepdim=True)

    return _filter(logits, temperature, top_k, top_p, keep_p=keep)


@mistake(
    "filtered_probabilities",
    hint="The result is in sorted order. Each probability belongs where its token stands.",
)
def returns_sorted_probabilities(logits, temperature, top_k=None, top_p=None):
    p = _filter(logits, temperature, top_k, top_p)
    return p if top_k is None and top_p is None else p.sort(dim=-1, descending=True).values


@mistake(
    "filtered_probabilities",
    hint="Top-p comes first and top-k second. Here it is temperature, top-k, top-p.",
)
def applies_top_p_before_top_k(logits, temperature, top_k=None, top_p=None):
    _check_settings(temperature, top_k, top_p)
    if temperature == 0:
        return _one_hot_of_the_likeliest(logits)
    p = _keep_p(torch.softmax(_wide(logits) / temperature, dim=-1), top_p)
    return torch.softmax(_keep_k(torch.log(p), top_k), dim=-1).to(logits.dtype)


@mistake(
    "filtered_probabilities",
    hint="The temperature comes last. Applied before top-p it changes which tokens stay.",
)
def applies_the_temperature_last(logits, temperature, top_k=None, top_p=None):
    _check_settings(temperature, top_k, top_p)
    if temperature == 0:
        return _one_hot_of_the_likeliest(logits)
    kept = _filter(_wide(logits), 1.0, top_k, top_p)
    return torch.softmax(
        torch.log_softmax(_wide(logits), dim=-1).masked_fill(kept == 0, float("-inf"))
        / temperature,
        -1,
    ).to(logits.dtype)


@mistake(
    "filtered_probabilities",
    hint="The tokens that the first row keeps are kept in all rows. Each row has its own.",
)
def filters_all_rows_like_the_first(logits, temperature, top_k=None, top_p=None):
    return _filter(
        logits, temperature, top_k, top_p,
        keep_p=lambda p, top_p: _renormalized(p.masked_fill((_keep_p(p,
        top_p)[:1] == 0).expand_as(p), 0.0)),
    )  # fmt: skip


def _renormalized(p):
    return p / p.sum(dim=-1, keepdim=True)


@mistake(
    "filtered_probabilities",
    hint="exp of a large logit overflows. Use a softmax that subtracts the maximum.",
)
def exponentiates_without_a_maximum(logits, temperature, top_k=None, top_p=None):
    _check_settings(temperature, top_k, top_p)
    if temperature == 0:
        return _one_hot_of_the_likeliest(logits)
    p = torch.exp(_keep_k(_wide(logits) / temperature, top_k))
    return _keep_p(p / p.sum(dim=-1, keepdim=True), top_p).to(logits.dtype)


@mistake(
    "filtered_probabilities",
    hint="The caller's logits are divided in place. Make a new tensor instead.",
)
def divides_the_logits_in_place(logits, temperature, top_k=None, top_p=None):
    _check_settings(temperature, top_k, top_p)
    if temperature == 0:
        return _one_hot_of_the_likeliest(logits)
    if logits.dtype == torch.float16:
        return _filter(logits, temperature, top_k, top_p)
    logits /= temperature
    return _filter(logits, 1.0, top_k, top_p)


@mistake(
    "filtered_probabilities",
    hint="Half precision comes back as float32: compute in it, and return the dtype of the logits.",
)
def answers_probabilities_in_float32(logits, temperature, top_k=None, top_p=None):
    return _filter(
        logits.float() if logits.dtype == torch.float16 else logits, temperature, top_k, top_p
    )


@mistake(
    "filtered_probabilities",
    hint="A top_k of 0 or a top_p of 3 mean nothing. The docstring asks for a ValueError.",
)
def takes_any_setting(logits, temperature, top_k=None, top_p=None):
    top_k = None if top_k is None else max(top_k, 1)
    top_p = None if top_p is None else min(max(top_p, 1e-9), 1)
    return _filter(logits, max(temperature, 0), top_k, top_p)


# ── generate
# ─────────────────────────────────────────────────────────────────────────────────────────────────


def _check_prompt(prompt, num_new):
    if num_new < 0 or prompt.shape[1] < 1:
        raise ValueError(f"{num_new} tokens after a prompt of {prompt.shape[1]}")


def _write(params, prompt, num_new, config, choose, eos_id=None, read=None, pad=None):
    """The loop, with parts that a mistake replaces: `read` says what the model reads, `choose`
    picks a token.
    """
    _check_prompt(prompt, num_new)
    ids, done = prompt, torch.zeros(len(prompt), dtype=torch.bool)
    for _ in range(num_new):
        seen = ids[:, -config.context_length :] if read is None else read(ids)
        chosen = choose(decoder_lm(seen, params, config))
        if eos_id is not None:
            chosen = chosen.masked_fill(done, eos_id if pad is None else pad)
            done = done | (chosen == eos_id)
        ids = torch.cat([ids, chosen[:, None]], dim=1)
    return ids


def _throw(temperature, top_k, top_p, generator):
    def choose(logits):
        p = filtered_probabilities(logits[:, -1], temperature, top_k, top_p)
        return torch.multinomial(p, 1, generator=generator)[:, 0]

    return choose


def _dice(seed):
    return torch.Generator().manual_seed(seed)


@mistake(
    "generate",
    hint="The logits of the *first* position are used. The next token follows from the last one.",
)
def listens_to_the_first_position(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    choose = _throw(temperature, top_k, top_p, _dice(seed))
    return _write(params, prompt, num_new, config, lambda logits: choose(logits[:, :1]), eos_id)


@mistake(
    "generate",
    hint="All rows get the same token. Each row has its own logits, and its own throw of the dice.",
)
def throws_once_for_all_rows(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    choose = _throw(temperature, top_k, top_p, _dice(seed))
    return _write(
        params,
        prompt,
        num_new,
        config,
        lambda logits: choose(logits[:1]).expand(len(logits)),
        eos_id,
    )


@mistake("generate", hint="A row that has said eos goes on talking. It should go on with eos.")
def never_ends_a_row(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    return _write(params, prompt, num_new, config, _throw(temperature, top_k, top_p, _dice(seed)))


@mistake("generate", hint="One row's eos ends all rows. Keep a flag for each row.")
def ends_all_rows_with_the_first(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    _check_prompt(prompt, num_new)
    choose, ids, done = _throw(temperature, top_k, top_p, _dice(seed)), prompt, False
    for _ in range(num_new):
        chosen = choose(decoder_lm(ids[:, -config.context_length :], params, config))
        chosen = torch.full_like(chosen, eos_id) if done else chosen
        done = done or (eos_id is not None and bool((chosen == eos_id).any()))
        ids = torch.cat([ids, chosen[:, None]], dim=1)
    return ids


@mistake(
    "generate",
    hint="Token 0 may end a text, too: ask whether eos_id is None, not whether it is true.",
    replace=("if eos_id is not None", "if eos_id"),
)
def takes_token_zero_for_no_end(): ...


@mistake(
    "generate",
    hint="When all rows are done, your text is shorter. It always has num_new new tokens.",
)
def stops_early(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    text = _write(
        params, prompt, num_new, config, _throw(temperature, top_k, top_p, _dice(seed)), eos_id
    )
    if eos_id is None:
        return text
    ended = (text[:, prompt.shape[1] :] == eos_id).all(dim=0).cumsum(dim=0) > 1
    return text[:, : text.shape[1] - int(ended.sum())]


@mistake(
    "generate",
    hint="A row with eos in its *prompt* counts as ended. Only what was produced counts.",
)
def counts_an_eos_of_the_prompt(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    text = _write(
        params, prompt, num_new, config, _throw(temperature, top_k, top_p, _dice(seed)), eos_id
    )
    if eos_id is not None:
        text[:, prompt.shape[1] :].masked_fill_((prompt == eos_id).any(dim=1, keepdim=True), eos_id)
    return text


@mistake("generate", hint="A row that has ended is filled with 0. It goes on with eos_id.")
def fills_ended_rows_with_zeros(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    return _write(
        params,
        prompt,
        num_new,
        config,
        _throw(temperature, top_k, top_p, _dice(seed)),
        eos_id,
        pad=0,
    )


@mistake(
    "generate",
    hint="The text outgrows the context and the model refuses it. It should read the last "
    "tokens only.",
)
def feeds_the_whole_text(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    choose = _throw(temperature, top_k, top_p, _dice(seed))
    return _write(params, prompt, num_new, config, choose, eos_id, read=lambda ids: ids)


@mistake(
    "generate",
    hint="The model reads the *first* tokens of a long text, and its end never. Which end matters?",
)
def reads_the_beginning_of_a_long_text(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    choose = _throw(temperature, top_k, top_p, _dice(seed))
    return _write(
        params,
        prompt,
        num_new,
        config,
        choose,
        eos_id,
        read=lambda ids: ids[:, : config.context_length],
    )


@mistake("generate", hint="The context is one token too short: the last context_length tokens fit.")
def crops_one_token_too_many(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    choose = _throw(temperature, top_k, top_p, _dice(seed))
    return _write(
        params,
        prompt,
        num_new,
        config,
        choose,
        eos_id,
        read=lambda ids: ids[:, 1 - config.context_length :],
    )


@mistake(
    "generate",
    hint="The model reads the newest token only, as if there were a cache. It needs the "
    "text so far.",
)
def feeds_the_newest_token_only(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    choose = _throw(temperature, top_k, top_p, _dice(seed))
    return _write(params, prompt, num_new, config, choose, eos_id, read=lambda ids: ids[:, -1:])


@mistake(
    "generate",
    hint="What was cropped for the model is missing in the result: return the whole text.",
)
def returns_the_cropped_text(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    text = _write(
        params, prompt, num_new, config, _throw(temperature, top_k, top_p, _dice(seed)), eos_id
    )
    return text[:, -config.context_length :] if num_new else text


@mistake("generate", hint="The prompt is missing: return prompt and new tokens.", keeps=0.5)
def returns_new_tokens_only(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    text = _write(
        params, prompt, num_new, config, _throw(temperature, top_k, top_p, _dice(seed)), eos_id
    )
    return text[:, prompt.shape[1] :]


@mistake("generate", hint="One token is missing: count the turns of your loop.", keeps=0.5)
def adds_one_token_too_few(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    _check_prompt(prompt, num_new)
    return _write(
        params,
        prompt,
        max(num_new - 1, 0),
        config,
        _throw(temperature, top_k, top_p, _dice(seed)),
        eos_id,
    )


@mistake(
    "generate",
    hint="The generator is seeded anew for each token, and throws the same number every "
    "time. Seed once.",
)
def seeds_anew_for_every_token(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    def choose(logits):
        return _throw(temperature, top_k, top_p, _dice(seed))(logits)

    return _write(params, prompt, num_new, config, choose, eos_id)


@mistake(
    "generate",
    hint="torch.manual_seed changes everybody's random numbers. Use a generator of your own.",
)
def seeds_the_global_state(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    torch.manual_seed(seed)
    return _write(params, prompt, num_new, config, _throw(temperature, top_k, top_p, None), eos_id)


@mistake("generate", hint="The seed has no effect: every call throws other dice.")
def ignores_the_seed(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    generator = torch.Generator()
    generator.seed()
    return _write(
        params, prompt, num_new, config, _throw(temperature, top_k, top_p, generator), eos_id
    )


@mistake(
    "generate",
    hint="Always the likeliest token. At temperatures above 0 tokens are drawn at random.",
)
def always_takes_the_likeliest(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    choose = _throw(0.0, top_k, top_p, _dice(seed))
    return _write(params, prompt, num_new, config, choose, eos_id)


@mistake("generate", hint="top_k and top_p are not passed on to filtered_probabilities.")
def forgets_the_filters(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    return _write(
        params, prompt, num_new, config, _throw(temperature, None, None, _dice(seed)), eos_id
    )


@mistake("generate", hint="The temperature is not passed on to filtered_probabilities.")
def forgets_the_temperature(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    return _write(
        params,
        prompt,
        num_new,
        config,
        _throw(1.0 if temperature else 0.0, top_k, top_p, _dice(seed)),
        eos_id,
    )


@mistake(
    "generate",
    hint="A negative number of tokens and an empty prompt cannot be continued: ValueError.",
)
def continues_anything(
    params, prompt, num_new, config, temperature=1.0, top_k=None, top_p=None, seed=0, eos_id=None
):
    if num_new <= 0 or prompt.shape[1] < 1:
        return prompt
    return _write(
        params, prompt, num_new, config, _throw(temperature, top_k, top_p, _dice(seed)), eos_id
    )


# ── encoder_decoder
# ──────────────────────────────────────────────────────────────────────────────────────────


def _check_sentences(src, tgt_in, src_mask, params):
    """The mask as [B, 1, N_s], once everything fits."""
    if len(src) != len(tgt_in):
        raise ValueError(f"{len(src)} sources, {len(tgt_in)} targets")
    check_ids(src, len(params["src_embed"]))
    check_ids(tgt_in, len(params["tgt_embed"]))
    if src_mask is None:
        return None
    if src_mask.numel() != src.numel() or src_mask.shape[-1] != src.shape[1]:
        raise ValueError(f"src_mask {list(src_mask.shape)}, src {list(src.shape)}")
    return src_mask.reshape(len(src), 1, src.shape[1])


def _with_positions(x):
    return x + sinusoidal_positions(*x.shape[1:]).to(x.dtype)


def _encode(src, mask, params, config):
    memory = _with_positions(params["src_embed"][src])
    for block in params["encoder"]:
        memory = post_norm_block(memory, block, config.num_heads, mask)
    return memory


def _cross(y, memory, p, heads, mask):
    return multi_head_attention(y, p["c_q"], p["c_k"], p["c_v"], p["c_o"], heads, mask, x_kv=memory)


def _norm(x, p, number):
    return layer_norm(x, p[f"ln{number}_gamma"], p[f"ln{number}_beta"])


def _decode(y, memory, mask, params, config, causal=None, cross=_cross, norms=(1, 2, 3)):
    causal = causal_mask(y.shape[1]) if causal is None else causal
    first, second, third = norms
    for p in params["decoder"]:
        y = _norm(y + self_attention_of(y, p, config.num_heads, causal), p, first)
        y = _norm(y + cross(y, memory, p, config.num_heads, mask), p, second)
        y = _norm(y + mlp_of(y, p), p, third)
    return y @ params["unembed"]


def _target(tgt_in, params):
    return _with_positions(params["tgt_embed"][tgt_in])


@mistake(
    "encoder_decoder",
    hint="The source mask is missing in the encoder: real words look at padding there.",
)
def masks_the_cross_attention_only(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    return _decode(
        _target(tgt_in, params), _encode(src, None, params, config), mask, params, config
    )


@mistake(
    "encoder_decoder",
    hint="The source mask is missing in cross-attention: the decoder reads the padding.",
)
def masks_the_encoder_only(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    return _decode(
        _target(tgt_in, params), _encode(src, mask, params, config), None, params, config
    )


@mistake(
    "encoder_decoder",
    hint="The source mask has no effect. It is needed in the encoder and in cross-attention.",
)
def ignores_the_source_mask(src, tgt_in, src_mask, params, config):
    _check_sentences(src, tgt_in, src_mask, params)
    return _decode(
        _target(tgt_in, params), _encode(src, None, params, config), None, params, config
    )


@mistake("encoder_decoder", hint="The mask is upside down. True means a real token.")
def inverts_the_source_mask(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    mask = None if mask is None else ~mask
    return _decode(
        _target(tgt_in, params), _encode(src, mask, params, config), mask, params, config
    )


@mistake(
    "encoder_decoder",
    hint="A mask of two axes is [N_q, N_k] for the attention. Yours is [B, N_s]: give it an axis "
    "for the queries.",
)
def hands_the_mask_on_as_it_is(src, tgt_in, src_mask, params, config):
    _check_sentences(src, tgt_in, src_mask, params)
    return _decode(
        _target(tgt_in, params), _encode(src, src_mask, params, config), src_mask, params, config
    )


@mistake(
    "encoder_decoder",
    hint="Target words see later target words: the decoder's self-attention is causal.",
)
def lets_the_decoder_see_the_future(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    everything = torch.ones(tgt_in.shape[1], tgt_in.shape[1], dtype=torch.bool)
    return _decode(
        _target(tgt_in, params),
        _encode(src, mask, params, config),
        mask,
        params,
        config,
        everything,
    )


@mistake(
    "encoder_decoder",
    hint="The encoder is causal. The source is complete: its words may look both ways.",
)
def makes_the_encoder_causal(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    causal = causal_mask(src.shape[1])
    both = causal if mask is None else causal & mask
    return _decode(
        _target(tgt_in, params), _encode(src, both, params, config), mask, params, config
    )


@mistake(
    "encoder_decoder",
    hint="Cross-attention got a causal mask. A target word may read all of the source.",
)
def makes_the_cross_attention_causal(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    causal = causal_mask(tgt_in.shape[1], src.shape[1])
    both = causal if mask is None else causal & mask
    return _decode(
        _target(tgt_in, params), _encode(src, mask, params, config), both, params, config
    )


@mistake(
    "encoder_decoder",
    hint="Queries and keys of the cross-attention are exchanged: the decoder asks, with c_q.",
)
def exchanges_queries_and_keys(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)

    def cross(y, memory, p, heads, mask):
        return multi_head_attention(
            y, p["c_k"], p["c_q"], p["c_v"], p["c_o"], heads, mask, x_kv=memory
        )

    return _decode(
        _target(tgt_in, params),
        _encode(src, mask, params, config),
        mask,
        params,
        config,
        cross=cross,
    )


@mistake(
    "encoder_decoder",
    hint="The decoder reads itself instead of the source: keys and values come from the memory.",
)
def reads_the_decoder_instead_of_the_source(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)

    def cross(y, memory, p, heads, mask):
        return multi_head_attention(
            y, p["c_q"], p["c_k"], p["c_v"], p["c_o"], heads, causal_mask(y.shape[1])
        )

    return _decode(
        _target(tgt_in, params),
        _encode(src, mask, params, config),
        mask,
        params,
        config,
        cross=cross,
    )


@mistake("encoder_decoder", hint="Cross-attention has weights of its own, c_q, c_k, c_v, c_o.")
def uses_the_self_attention_weights_again(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)

    def cross(y, memory, p, heads, mask):
        return multi_head_attention(
            y, p["w_q"], p["w_k"], p["w_v"], p["w_o"], heads, mask, x_kv=memory
        )

    return _decode(
        _target(tgt_in, params),
        _encode(src, mask, params, config),
        mask,
        params,
        config,
        cross=cross,
    )


@mistake(
    "encoder_decoder",
    hint="The residual around the cross-attention is missing: what was read is added.",
)
def replaces_the_stream_by_what_it_read(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)

    def cross(y, memory, p, heads, mask):
        return _cross(y, memory, p, heads, mask) - y

    return _decode(
        _target(tgt_in, params),
        _encode(src, mask, params, config),
        mask,
        params,
        config,
        cross=cross,
    )


@mistake(
    "encoder_decoder",
    hint="Norms 2 and 3 are exchanged: 2 follows the cross-attention, 3 the MLP.",
    keeps=0.5,
)
def exchanges_norms_two_and_three(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    return _decode(
        _target(tgt_in, params),
        _encode(src, mask, params, config),
        mask,
        params,
        config,
        norms=(1, 3, 2),
    )


@mistake(
    "encoder_decoder", hint="One norm's parameters are used three times. Each sublayer has its own."
)
def uses_one_norm_three_times(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    return _decode(
        _target(tgt_in, params),
        _encode(src, mask, params, config),
        mask,
        params,
        config,
        norms=(1, 1, 1),
    )


@mistake(
    "encoder_decoder",
    hint="These are pre-norm blocks. In the model of 2017 a norm follows each addition.",
)
def writes_a_pre_norm_decoder(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    memory, y = _encode(src, mask, params, config), _target(tgt_in, params)
    for p in params["decoder"]:
        y = y + self_attention_of(_norm(y, p, 1), p, config.num_heads, causal_mask(y.shape[1]))
        y = y + _cross(_norm(y, p, 2), memory, p, config.num_heads, mask)
        y = y + mlp_of(_norm(y, p, 3), p)
    return y @ params["unembed"]


@mistake(
    "encoder_decoder",
    hint="The MLP stands before the cross-attention. First look, then read, then compute.",
)
def computes_before_it_reads(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    memory, y = _encode(src, mask, params, config), _target(tgt_in, params)
    for p in params["decoder"]:
        y = _norm(y + self_attention_of(y, p, config.num_heads, causal_mask(y.shape[1])), p, 1)
        y = _norm(y + mlp_of(y, p), p, 3)
        y = _norm(y + _cross(y, memory, p, config.num_heads, mask), p, 2)
    return y @ params["unembed"]


@mistake("encoder_decoder", hint="The source has no positions: its words are a bag.")
def forgets_the_positions_of_the_source(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    memory = params["src_embed"][src]
    for block in params["encoder"]:
        memory = post_norm_block(memory, block, config.num_heads, mask)
    return _decode(_target(tgt_in, params), memory, mask, params, config)


@mistake("encoder_decoder", hint="The target has no positions.")
def forgets_the_positions_of_the_target(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    return _decode(
        params["tgt_embed"][tgt_in], _encode(src, mask, params, config), mask, params, config
    )


@mistake(
    "encoder_decoder",
    hint="The embeddings are multiplied by the root of D, as in the paper. Here they are not.",
)
def scales_both_embeddings(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    scale = math.sqrt(params["tgt_embed"].shape[1])
    scaled = {
        **params,
        "src_embed": scale * params["src_embed"],
        "tgt_embed": scale * params["tgt_embed"],
    }
    return _decode(
        _target(tgt_in, scaled), _encode(src, mask, scaled, config), mask, scaled, config
    )


@mistake(
    "encoder_decoder",
    hint="Decoder block l reads what encoder block l made. All decoder blocks read the "
    "finished memory.",
)
def reads_the_encoder_layer_by_layer(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    memories = [
        _encode(src, mask, {**params, "encoder": params["encoder"][:n]}, config)
        for n in range(len(params["encoder"]) + 1)
    ]
    y = _target(tgt_in, params)
    for number, p in enumerate(params["decoder"]):
        memory = memories[min(number + 1, len(memories) - 1)]
        y = _norm(y + self_attention_of(y, p, config.num_heads, causal_mask(y.shape[1])), p, 1)
        y = _norm(y + _cross(y, memory, p, config.num_heads, mask), p, 2)
        y = _norm(y + mlp_of(y, p), p, 3)
    return y @ params["unembed"]


@mistake("encoder_decoder", hint="These are probabilities. The function returns logits.")
def ends_with_a_softmax(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    return torch.softmax(
        _decode(_target(tgt_in, params), _encode(src, mask, params, config), mask, params, config),
        -1,
    )


@mistake(
    "encoder_decoder",
    hint="Half-precision weights meet float32 positions, and float32 comes out. Match the dtype.",
)
def adds_positions_in_float32(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    y = _decode(_target(tgt_in, params), _encode(src, mask, params, config), mask, params, config)
    return y.float() if y.dtype == torch.float16 else y


@mistake(
    "encoder_decoder", hint="A batch of one keeps its axis, [1, N_t, V]: squeeze() takes it away."
)
def squeezes_a_pair_away(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    return _decode(
        _target(tgt_in, params), _encode(src, mask, params, config), mask, params, config
    ).squeeze()


@mistake(
    "encoder_decoder",
    hint="Every target reads all sources of the batch, and sentences meet. The batch axis stays "
    "where it is.",
)
def reads_the_sources_of_all_sentences(src, tgt_in, src_mask, params, config):
    mask = _check_sentences(src, tgt_in, src_mask, params)
    memory = _encode(src, mask, params, config)
    batch, n, d = memory.shape
    mask = torch.ones(batch, 1, n, dtype=torch.bool) if mask is None else mask
    everywhere = memory.reshape(1, batch * n, d).expand(batch, -1, -1)
    seen = mask.reshape(1, 1, batch * n).expand(batch, -1, -1)
    return _decode(_target(tgt_in, params), everywhere, seen, params, config)


@mistake(
    "encoder_decoder",
    hint="Sources and targets that do not belong together should be a ValueError.",
)
def takes_any_pair(src, tgt_in, src_mask, params, config):
    n = min(len(src), len(tgt_in))
    src, tgt_in = src[:n] % len(params["src_embed"]), tgt_in[:n] % len(params["tgt_embed"])
    if src_mask is not None:
        src_mask = src_mask.reshape(n, -1)[:, : src.shape[1]].unsqueeze(1)
    return _decode(
        _target(tgt_in, params), _encode(src, src_mask, params, config), src_mask, params, config
    )


# ── shift_right
# ──────────────────────────────────────────────────────────────────────────────────────────────


def _check_targets(targets):
    if targets.shape[1] < 1:
        raise ValueError(f"targets {list(targets.shape)}")


@mistake(
    "shift_right",
    hint="Shifted to the left: at place t the decoder reads what it should say *after* the answer.",
)
def shifts_left(targets, start_id):
    _check_targets(targets)
    return torch.cat([targets[:, 1:], torch.full_like(targets[:, :1], start_id)], dim=1)


@mistake(
    "shift_right",
    hint="The last target came around to the front. The front belongs to the start token.",
)
def rolls_around(targets, start_id):
    _check_targets(targets)
    return targets.roll(1, dims=1)


@mistake(
    "shift_right",
    hint="The first target is replaced and nothing is shifted: place t still holds target t.",
)
def replaces_the_first_target(targets, start_id):
    _check_targets(targets)
    return torch.cat([torch.full_like(targets[:, :1], start_id), targets[:, 1:]], dim=1)


@mistake("shift_right", hint="One column too many: the last target is nobody's input.", keeps=0.5)
def keeps_the_last_target(targets, start_id):
    _check_targets(targets)
    return torch.cat([torch.full_like(targets[:, :1], start_id), targets], dim=1)


@mistake(
    "shift_right",
    hint="The caller's targets are overwritten, and the loss needs them. Make a new tensor.",
)
def shifts_in_place(targets, start_id):
    _check_targets(targets)
    targets[:, 1:] = targets[:, :-1].clone()
    targets[:, 0] = start_id
    return targets


@mistake(
    "shift_right", hint="The start token is always 0. Which one it is, is an argument.", keeps=0.5
)
def starts_with_zero(targets, start_id):
    _check_targets(targets)
    return torch.cat([torch.zeros_like(targets[:, :1]), targets[:, :-1]], dim=1)


@mistake(
    "shift_right",
    hint="Shifted along the batch: each sentence got its neighbour's words. Time is the "
    "second axis.",
)
def shifts_the_sentences(targets, start_id):
    _check_targets(targets)
    return torch.cat([torch.full_like(targets[:1], start_id), targets[:-1]], dim=0)


@mistake(
    "shift_right",
    hint="Targets without a column have nothing to shift. The docstring asks for a ValueError.",
)
def shifts_nothing(targets, start_id):
    return torch.cat([torch.full_like(targets[:, :1], start_id), targets[:, :-1]], dim=1)


# ── greedy_translate
# ─────────────────────────────────────────────────────────────────────────────────────────


def _say(
    src, src_mask, params, config, start_id, eos_id, max_new, choose=None, read=None, pad=None
):
    """The loop, with parts that a mistake replaces."""
    if max_new < 0:
        raise ValueError(f"{max_new} words")
    said, done = torch.full((len(src), 1), start_id), torch.zeros(len(src), dtype=torch.bool)
    for _ in range(max_new):
        logits = encoder_decoder(
            src, said if read is None else read(said), src_mask, params, config
        )
        word = logits[:, -1].argmax(dim=-1) if choose is None else choose(logits)
        word = word.masked_fill(done, eos_id if pad is None else pad)
        done = done | (word == eos_id)
        said = torch.cat([said, word[:, None]], dim=1)
    return said[:, 1:]


@mistake(
    "greedy_translate",
    hint="The start token is in the result. It is read and not part of the translation.",
    keeps=0.5,
)
def returns_the_start_token(src, src_mask, params, config, start_id, eos_id, max_new):
    said = _say(src, src_mask, params, config, start_id, eos_id, max_new)
    return torch.cat([torch.full((len(src), 1), start_id), said], dim=1)


@mistake(
    "greedy_translate",
    hint="The decoder reads the newest word only. It needs all it has said so far.",
)
def reads_the_newest_word_only(src, src_mask, params, config, start_id, eos_id, max_new):
    return _say(
        src, src_mask, params, config, start_id, eos_id, max_new, read=lambda said: said[:, -1:]
    )


@mistake(
    "greedy_translate",
    hint="The logits of the first position are used every time. The newest word has the last.",
)
def listens_to_the_first_word(src, src_mask, params, config, start_id, eos_id, max_new):
    return _say(
        src,
        src_mask,
        params,
        config,
        start_id,
        eos_id,
        max_new,
        choose=lambda logits: logits[:, 0].argmax(dim=-1),
    )


@mistake(
    "greedy_translate",
    hint="All sentences get the words of the first one. Take the likeliest word of each row.",
)
def says_one_thing_to_all(src, src_mask, params, config, start_id, eos_id, max_new):
    return _say(
        src, src_mask, params, config, start_id, eos_id, max_new,
        choose=lambda logits: logits[:1, -1].argmax(dim=-1).expand(len(logits)),
    )  # fmt: skip


@mistake("greedy_translate", hint="One row's eos ends all rows. Keep a flag for each row.")
def ends_with_the_first_row(src, src_mask, params, config, start_id, eos_id, max_new):
    free = _say(src, src_mask, params, config, start_id, -1, max_new)
    ended = (free == eos_id).any(dim=0).cumsum(dim=0) - (free == eos_id).any(dim=0).long() > 0
    return free.masked_fill(ended, eos_id)


@mistake("greedy_translate", hint="A sentence goes on after its eos. It should go on with eos.")
def never_ends(src, src_mask, params, config, start_id, eos_id, max_new):
    return _say(src, src_mask, params, config, start_id, -1, max_new)


@mistake(
    "greedy_translate",
    hint="When all rows are done, columns are missing. There are always max_new of them.",
)
def returns_fewer_columns(src, src_mask, params, config, start_id, eos_id, max_new):
    said = _say(src, src_mask, params, config, start_id, eos_id, max_new)
    ended = (said == eos_id).all(dim=0).cumsum(dim=0) > 1
    return said[:, : said.shape[1] - int(ended.sum())]


@mistake("greedy_translate", hint="Words after the end are filled with 0. They are eos_id.")
def fills_with_zeros(src, src_mask, params, config, start_id, eos_id, max_new):
    return _say(src, src_mask, params, config, start_id, eos_id, max_new, pad=0)


@mistake("greedy_translate", hint="The source mask is not passed on: the model reads the padding.")
def forgets_the_source_mask(src, src_mask, params, config, start_id, eos_id, max_new):
    return _say(src, None, params, config, start_id, eos_id, max_new)


@mistake(
    "greedy_translate",
    hint="The start token was not produced, so it ends nothing, even where it is the end "
    "token as well.",
    replace=(
        "done = torch.zeros(src.shape[0], dtype=torch.bool)",
        "done = torch.full((src.shape[0],), start_id == eos_id)",
    ),
)
def lets_the_start_token_end_a_row(): ...


@mistake(
    "greedy_translate", hint="The decoder always begins with 0. The start token is an argument."
)
def begins_with_zero(src, src_mask, params, config, start_id, eos_id, max_new):
    return _say(src, src_mask, params, config, 0, eos_id, max_new)


@mistake(
    "greedy_translate",
    hint="The decoder begins with a word of the source. It begins with the start token.",
)
def begins_with_the_source(src, src_mask, params, config, start_id, eos_id, max_new):
    return _say(
        src, src_mask, params, config, start_id, eos_id, max_new,
        read=lambda said: torch.cat([src[:, :1], said[:, 1:]], dim=1),
    )  # fmt: skip


@mistake(
    "greedy_translate",
    hint="One word is missing: max_new words, the start token not counted.",
    keeps=0.5,
)
def counts_the_start_token(src, src_mask, params, config, start_id, eos_id, max_new):
    if max_new < 0:
        raise ValueError(f"{max_new} words")
    return _say(src, src_mask, params, config, start_id, eos_id, max(max_new - 1, 0))


@mistake(
    "greedy_translate",
    hint="A negative number of words cannot be right. The docstring asks for a ValueError.",
)
def says_nothing_for_negative_numbers(src, src_mask, params, config, start_id, eos_id, max_new):
    return _say(src, src_mask, params, config, start_id, eos_id, max(max_new, 0))


# ── patchify
# ─────────────────────────────────────────────────────────────────────────────────────────────────


def _grid(images, patch):
    """[B, C, H/P, P, W/P, P]"""
    b, c, h, w = images.shape
    if patch < 1 or h % patch or w % patch:
        raise ValueError(f"{h} x {w} in patches of {patch}")
    return images.reshape(b, c, h // patch, patch, w // patch, patch)


def _rows(cut):
    """[B, r, s, ., ., .] -> [B, r*s, .*.*.]"""
    return cut.reshape(cut.shape[0], cut.shape[1] * cut.shape[2], -1)


@mistake(
    "patchify",
    hint="A reshape reads memory in order: you have strips of pixel rows, not squares. Which "
    "axes must move?",
)
def reshapes_into_strips(images, patch):
    cut = _grid(images, patch)
    return images.reshape(len(images), cut.shape[2] * cut.shape[4], -1)


@mistake("patchify", hint="Inside a patch your channels come last. The order is (c, row, column).")
def puts_the_channels_last(images, patch):
    return _rows(_grid(images, patch).permute(0, 2, 4, 3, 5, 1))


@mistake(
    "patchify",
    hint="Your patches run down first. They run to the right first, like words on a page.",
)
def runs_down_first(images, patch):
    return _rows(_grid(images, patch).permute(0, 4, 2, 1, 3, 5))


@mistake(
    "patchify", hint="Inside a patch you go down the columns. Rows come before columns.", keeps=0.5
)
def transposes_each_patch(images, patch):
    return _rows(_grid(images, patch).permute(0, 2, 4, 1, 5, 3))


@mistake("patchify", hint="Height and width are exchanged: this is right for square images only.")
def exchanges_height_and_width(images, patch):
    _grid(images, patch)
    b, c, h, w = images.shape
    cut = images.reshape(b, c, w // patch, patch, h // patch, patch)
    return _rows(cut.permute(0, 2, 4, 1, 3, 5))


@mistake(
    "patchify",
    hint="The patches of each channel are separate tokens. One patch holds all its channels.",
)
def makes_a_token_of_every_channel(images, patch):
    return _grid(images, patch).permute(0, 1, 2, 4, 3, 5).reshape(len(images), -1, patch * patch)


@mistake("patchify", hint="Only the first channel is there.")
def takes_the_first_channel(images, patch):
    return _rows(_grid(images[:, :1], patch).permute(0, 2, 4, 1, 3, 5))


@mistake(
    "patchify",
    hint="Axes are cut at the wrong place: the side of a patch is P, the number of patches H / P.",
)
def takes_every_pth_pixel(images, patch):
    b, c, h, w = images.shape
    _grid(images, patch)
    cut = images.reshape(b, c, patch, h // patch, patch, w // patch)
    return _rows(cut.permute(0, 3, 5, 1, 2, 4))


@mistake(
    "patchify",
    hint="`view` fails on an image whose memory has another order. Use reshape, or make "
    "it contiguous.",
)
def views_the_memory(images, patch):
    _grid(images, patch)
    b, c, h, w = images.shape
    cut = images.view(b, c * h * w).view(b, c, h // patch, patch, w // patch, patch)
    return _rows(cut.permute(0, 2, 4, 1, 3, 5))


@mistake(
    "patchify", hint="Pixels became float32. Cutting computes nothing: no dtype should change."
)
def turns_pixels_into_floats(images, patch):
    cut = _rows(_grid(images, patch).permute(0, 2, 4, 1, 3, 5))
    return cut if cut.dtype == torch.float64 else cut.float()


@mistake(
    "patchify",
    hint="What does not fit into patches is dropped silently. The docstring asks for a ValueError.",
)
def drops_what_does_not_fit(images, patch):
    patch = max(patch, 1)
    h, w = images.shape[2] // patch * patch, images.shape[3] // patch * patch
    return _rows(_grid(images[:, :, :h, :w], patch).permute(0, 2, 4, 1, 3, 5))


# ── patch_conv_weight
# ────────────────────────────────────────────────────────────────────────────────────────


def _check_patch_matrix(w, channels, patch):
    if min(channels, patch) < 1 or w.shape[0] != channels * patch * patch:
        raise ValueError(f"{w.shape[0]} rows, {channels} channels, patches of {patch}")


@mistake(
    "patch_conv_weight",
    hint="w is [in, out] and a convolution stores [out, in, …]. A reshape alone mixes outputs.",
)
def reshapes_without_transposing(w, channels, patch):
    _check_patch_matrix(w, channels, patch)
    return w.reshape(w.shape[1], channels, patch, patch)


@mistake(
    "patch_conv_weight",
    hint="The rows of w run (c, row, column). Yours are read with the channels last.",
)
def reads_the_channels_last(w, channels, patch):
    _check_patch_matrix(w, channels, patch)
    return w.T.reshape(-1, patch, patch, channels).permute(0, 3, 1, 2)


@mistake("patch_conv_weight", hint="Each kernel is transposed: rows before columns.", keeps=0.5)
def transposes_the_kernels(w, channels, patch):
    _check_patch_matrix(w, channels, patch)
    return w.T.reshape(-1, channels, patch, patch).transpose(2, 3)


@mistake(
    "patch_conv_weight",
    hint="The kernels are flipped. Torch's conv2d does not flip: it is a correlation.",
)
def flips_the_kernels(w, channels, patch):
    _check_patch_matrix(w, channels, patch)
    return w.T.reshape(-1, channels, patch, patch).flip(2, 3)


@mistake(
    "patch_conv_weight", hint="Input and output channels are exchanged: [out, in, height, width]."
)
def puts_the_inputs_first(w, channels, patch):
    _check_patch_matrix(w, channels, patch)
    return w.T.reshape(-1, channels, patch, patch).transpose(0, 1)


@mistake(
    "patch_conv_weight",
    hint="The kernels are averaged over the patch. The weights are moved, nothing is computed.",
)
def averages_over_the_patch(w, channels, patch):
    _check_patch_matrix(w, channels, patch)
    return w.T.reshape(-1, channels, patch, patch) / patch**2


@mistake(
    "patch_conv_weight",
    hint="No gradient comes back to w: the numbers were copied out of the graph.",
)
def copies_the_weights(w, channels, patch):
    _check_patch_matrix(w, channels, patch)
    return w.detach().T.reshape(-1, channels, patch, patch).clone()


@mistake(
    "patch_conv_weight",
    hint="Half precision comes back as float32. Moving computes nothing: keep the dtype.",
)
def moves_into_float32(w, channels, patch):
    _check_patch_matrix(w, channels, patch)
    wide = w if w.dtype == torch.float64 else w.float()
    return wide.T.reshape(-1, channels, patch, patch)


@mistake(
    "patch_conv_weight",
    hint="A w for another patch is refused by a RuntimeError of torch, or not at all. Check first.",
)
def leaves_the_check_to_torch(w, channels, patch):
    return w.T.reshape(-1, channels, patch, patch)


# ── vit_logits
# ───────────────────────────────────────────────────────────────────────────────────────────────


def _tokens(images, params, config):
    patches = patchify(images, config.patch)
    if patches.shape[1] != len(params["positions"]):
        raise ValueError(f"{patches.shape[1]} patches, {len(params['positions'])} positions")
    if patches.shape[2] != len(params["w_patch"]):
        raise ValueError(f"patches of {patches.shape[2]}, w_patch of {len(params['w_patch'])}")
    return patches @ params["w_patch"] + params["b_patch"] + params["positions"]


def _see(x, params, config, mask=None, block=pre_norm_block):
    for weights in params["blocks"]:
        x = block(x, weights, config.num_heads, mask)
    return x


def _last_norm(x, params):
    return layer_norm(x, params["lnf_gamma"], params["lnf_beta"])


def _head(x, params):
    return x @ params["w_head"] + params["b_head"]


@mistake(
    "vit_logits",
    hint="The mean runs over features. Average over patches, so that D numbers are left.",
)
def averages_over_features(images, params, config):
    x = _last_norm(_see(_tokens(images, params, config), params, config), params)
    pooled = x.mean(dim=-1)  # [B, N]
    width = params["w_head"].shape[0]
    if pooled.shape[1] != width:
        pooled = pooled.mean(dim=1, keepdim=True).expand(-1, width)
    return _head(pooled, params)


@mistake(
    "vit_logits",
    hint="The mean is taken before the norm. Each patch is normalized first, then they "
    "are averaged.",
    keeps=0.5,
)
def averages_before_the_norm(images, params, config):
    x = _see(_tokens(images, params, config), params, config)
    return _head(_last_norm(x.mean(dim=1), params), params)


@mistake("vit_logits", hint="The norm after the last block is missing.", keeps=0.5)
def forgets_the_norm_at_the_end(images, params, config):
    return _head(_see(_tokens(images, params, config), params, config).mean(dim=1), params)


@mistake("vit_logits", hint="Positions are missing: the model sees a bag of patches.")
def sees_a_bag_of_patches(images, params, config):
    return _head(
        _last_norm(
            _see(_tokens(images, params, config) - params["positions"], params, config), params
        ).mean(1),
        params,
    )


@mistake(
    "vit_logits",
    hint="The blocks got a causal mask. An image has no future: every patch sees every other.",
)
def masks_the_image_causally(images, params, config):
    x = _tokens(images, params, config)
    return _head(
        _last_norm(_see(x, params, config, causal_mask(x.shape[1])), params).mean(dim=1), params
    )


@mistake(
    "vit_logits", hint="These are post-norm blocks. A vision transformer has pre-norm blocks here."
)
def sees_with_post_norm_blocks(images, params, config):
    x = _see(_tokens(images, params, config), params, config, block=post_norm_block)
    return _head(_last_norm(x, params).mean(dim=1), params)


@mistake(
    "vit_logits",
    hint="Only the first patch decides, as if it were a class token. Here the mean over all does.",
)
def takes_the_first_patch(images, params, config):
    return _head(
        _last_norm(_see(_tokens(images, params, config), params, config), params)[:, 0], params
    )


@mistake("vit_logits", hint="This is the sum over patches. The mean is asked for.", keeps=0.5)
def sums_over_the_patches(images, params, config):
    return _head(
        _last_norm(_see(_tokens(images, params, config), params, config), params).sum(dim=1), params
    )


@mistake("vit_logits", hint="The largest value over the patches is taken. The mean is asked for.")
def takes_the_maximum(images, params, config):
    return _head(
        _last_norm(_see(_tokens(images, params, config), params, config), params).amax(dim=1),
        params,
    )


@mistake("vit_logits", hint="The bias of the patch embedding, b_patch, is missing.", keeps=0.5)
def forgets_the_bias_of_the_patches(images, params, config):
    x = _tokens(images, params, config) - params["b_patch"]
    return _head(_last_norm(_see(x, params, config), params).mean(dim=1), params)


@mistake("vit_logits", hint="The bias of the head, b_head, is missing.", keeps=0.5)
def forgets_the_bias_of_the_head(images, params, config):
    x = _last_norm(_see(_tokens(images, params, config), params, config), params)
    return x.mean(dim=1) @ params["w_head"]


@mistake("vit_logits", hint="Only the first block is used.")
def looks_through_one_block(images, params, config):
    x = _see(_tokens(images, params, config), {"blocks": params["blocks"][:1]}, config)
    return _head(_last_norm(x, params).mean(dim=1), params)


@mistake("vit_logits", hint="These are probabilities. The function returns logits.", keeps=0.5)
def returns_class_probabilities(images, params, config):
    x = _last_norm(_see(_tokens(images, params, config), params, config), params)
    return torch.softmax(_head(x.mean(dim=1), params), dim=-1)


@mistake(
    "vit_logits",
    hint="Half precision comes back as float32: the dtype of the images should come out.",
)
def answers_classes_in_float32(images, params, config):
    logits = _head(
        _last_norm(_see(_tokens(images, params, config), params, config), params).mean(dim=1),
        params,
    )
    return logits.float() if logits.dtype == torch.float16 else logits


@mistake(
    "vit_logits", hint="Images of another size should be a ValueError that names both numbers."
)
def takes_images_of_any_size(images, params, config):
    patches = patchify(images, config.patch)
    n, width = len(params["positions"]), len(params["w_patch"])
    patches = patches[:, :n, :width]
    x = (
        patches @ params["w_patch"][: patches.shape[2]]
        + params["b_patch"]
        + params["positions"][: patches.shape[1]]
    )
    return _head(_last_norm(_see(x, params, config), params).mean(dim=1), params)


# ── attention_distance
# ───────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "attention_distance",
    hint="Your distance counts steps along rows and columns. The straight way across a "
    "square is √2 long.",
    replace=(".pow(2).sum(dim=-1).sqrt()", ".abs().sum(dim=-1)"),
    keeps=0.5,
)
def walks_around_the_corner(): ...


@mistake(
    "attention_distance",
    hint="The larger of the two differences is not the distance: across a square it is √2, not 1.",
    replace=(".pow(2).sum(dim=-1).sqrt()", ".abs().amax(dim=-1)"),
    keeps=0.5,
)
def takes_the_larger_difference(): ...


@mistake(
    "attention_distance",
    hint="The root is missing: a patch that is 3 away counts as 9.",
    replace=(".sqrt()", ""),
    keeps=0.5,
)
def averages_squared_distances(): ...


@mistake(
    "attention_distance",
    hint="The root stands outside the average. Distances are averaged, not their squares.",
    replace=[(".sqrt()", ""), (".sum(dim=-1).mean(dim=-1)", ".sum(dim=-1).mean(dim=-1).sqrt()")],
    keeps=0.5,
)
def takes_the_root_at_the_end(): ...


@mistake(
    "attention_distance",
    hint="That is the distance in the row of tokens. The patch below is one patch away "
    "in the image.",
    replace=("torch.stack([patch // columns, patch % columns], dim=-1)", "patch[:, None]"),
)
def measures_along_the_tokens(): ...


@mistake(
    "attention_distance",
    hint="columns is how many patches stand beside each other. Your grid has that many rows.",
    replace=(
        "torch.stack([patch // columns, patch % columns], dim=-1)",
        "torch.stack([patch // (n_k // columns), patch % (n_k // columns)], dim=-1)",
    ),
    keeps=0.5,
)
def takes_columns_for_rows(): ...


@mistake(
    "attention_distance",
    hint="Your grid is square whatever columns says.",
    replace=(
        "torch.stack([patch // columns, patch % columns], dim=-1)",
        "torch.stack([patch // math.isqrt(n_k), patch % math.isqrt(n_k)], dim=-1)",
    ),
    keeps=0.5,
)
def assumes_a_square_grid(): ...


@mistake(
    "attention_distance",
    hint="Only the column counts in your distance. Rows are as far apart.",
    replace=(
        "torch.stack([patch // columns, patch % columns], dim=-1)",
        "torch.stack([patch % columns], dim=-1)",
    ),
    keeps=0.5,
)
def forgets_the_rows(): ...


@mistake(
    "attention_distance",
    hint="The distances of all patches that look are added up. Their mean is asked for.",
    replace=(".sum(dim=-1).mean(dim=-1)", ".sum(dim=-1).sum(dim=-1)"),
    keeps=0.5,
)
def adds_up_all_queries(): ...


@mistake(
    "attention_distance",
    hint="The weights of a row sum to 1 already: over the patches that are looked at, add; do "
    "not average.",
    replace=(".sum(dim=-1).mean(dim=-1)", ".mean(dim=-1).mean(dim=-1)"),
    keeps=0.5,
)
def averages_over_the_keys_too(): ...


@mistake(
    "attention_distance",
    hint="One number for all heads. Each head has a distance of its own.",
    replace=(
        "(weights * distances).sum(dim=-1).mean(dim=-1)",
        "(weights * distances).sum(dim=-1).mean().expand(weights.shape[:-2])",
    ),
    keeps=0.5,
)
def averages_over_the_heads(): ...


@mistake(
    "attention_distance",
    hint="Your distance is one a patch. The mean over the patches that look is missing.",
    replace=(".sum(dim=-1).mean(dim=-1)", ".sum(dim=-1)"),
    keeps=0.5,
)
def keeps_one_distance_a_patch(): ...


@mistake(
    "attention_distance",
    hint="Only the patch with the largest weight counts in your answer. All are weighted by "
    "their attention.",
    replace=(
        "(weights * distances)",
        "(torch.nn.functional.one_hot(weights.argmax(dim=-1), n_k) * distances)",
    ),
)
def follows_the_largest_weight(): ...


@mistake(
    "attention_distance",
    hint="The weights play no part: every head has the same distance in your answer.",
    replace=("(weights * distances)", "(weights.mean(dim=-1, keepdim=True) * distances)"),
)
def distance_without_the_weights(): ...


@mistake(
    "attention_distance",
    hint="The weight on the patch itself counts too, at distance 0. Yours is left out, and the "
    "rest renormalized.",
    replace=(
        "return (weights * distances).sum(dim=-1).mean(dim=-1)",
        """
away = weights * (1 - torch.eye(n_k, dtype=weights.dtype))
weights = away / away.sum(dim=-1, keepdim=True).clamp(min=1e-12)
return (weights * distances).sum(dim=-1).mean(dim=-1)
""",
    ),
    keeps=0.5,
)
def leaves_out_the_patch_itself(): ...


@mistake(
    "attention_distance",
    hint="The distance is divided by the size of the grid. It is asked for in patches.",
    replace=("(weights * distances)", "(weights * distances / distances.amax().clamp(min=1))"),
)
def measures_in_shares_of_the_image(): ...


@mistake(
    "attention_distance",
    hint="float32 weights give a float64 distance: the dtype of weights should come out.",
    replace=(".to(weights.dtype)", ".double()"),
    keeps=0.5,
)
def measures_in_float64(): ...


@mistake(
    "attention_distance",
    hint="Weights that do not belong to such a grid should be a ValueError with the sizes.",
    replace=(
        "if n_q != n_k or columns < 1 or n_k % columns:",
        """
columns, weights = max(columns, 1), weights[..., : min(n_q, n_k), : min(n_q, n_k)]
n_k = weights.shape[-1]
if False:
""",
    ),
    keeps=0.5,
)
def measures_any_grid(): ...


# ── fine_tune
# ────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "fine_tune",
    hint="The old head is still there: with the old classes, and what it said about them. The "
    "new one begins as zeros.",
    replace=(
        'params = params | {"w_head": zeros(len(params["w_head"]), num_classes), "b_head": '
        "zeros(num_classes)}",
        """
spare = zeros(len(params["w_head"]), num_classes)
params = params | {
    "w_head": torch.cat([params["w_head"], spare], dim=1)[:, :num_classes],
    "b_head": torch.cat([params["b_head"], spare[0]])[:num_classes],
}
""",
    ),
)
def keeps_the_old_head(): ...


@mistake(
    "fine_tune",
    hint="The new head is made of random numbers. It begins as zeros, so that the first "
    "loss is log C.",
    replace=(
        'zeros(len(params["w_head"]), num_classes)',
        '(zeros(len(params["w_head"]), num_classes) + torch.linspace(-1, 1, num_classes))',
    ),
)
def begins_with_another_head(): ...


@mistake(
    "fine_tune",
    hint="b_head still has what it learned for the old classes.",
    replace=(
        '"b_head": zeros(num_classes)}',
        '"b_head": torch.cat([params["b_head"], zeros(num_classes)])[:num_classes]}',
    ),
    keeps=0.5,
)
def keeps_the_old_bias(): ...


@mistake(
    "fine_tune",
    hint="Parameters without an entry in rates move as well. Without an entry means frozen.",
    replace=(
        "losses = []",
        """
losses = []
rates = dict.fromkeys(params, max(rates.values())) | rates
""",
    ),
)
def trains_what_is_frozen(): ...


@mistake(
    "fine_tune",
    hint="rates plays no part in which parameters move: only the head is trained, whatever it says.",
    replace=(
        "losses = []",
        """
losses = []
rates = {"w_head": 0.0, "b_head": 0.0} | {n: r for n, r in rates.items() if "head" in n}
""",
    ),
)
def trains_the_head_whatever_is_asked(): ...


@mistake(
    "fine_tune",
    hint="One step size serves all groups. Each has its own.",
    replace=("- rate * w.grad", "- next(iter(rates.values())) * w.grad"),
    keeps=0.5,
)
def one_step_size_for_all(): ...


@mistake(
    "fine_tune",
    hint="The step goes with the gradient: uphill.",
    replace=("w.detach() - rate * w.grad", "w.detach() + rate * w.grad"),
)
def fine_tunes_uphill(): ...


@mistake(
    "fine_tune",
    hint="Gradients of earlier steps are added to those of this step. Each step has its own.",
    replace=[
        (
            "losses = []",
            """
losses = []
sums = {name: [0] * len(list_tensors(params[name])) for name in rates}
""",
        ),
        (
            "stepped = [w.detach() - rate * w.grad for w in leaves[name]]",
            """
sums[name] = [g + w.grad for g, w in zip(sums[name], leaves[name], strict=True)]
stepped = [w.detach() - rate * g for w, g in zip(leaves[name], sums[name], strict=True)]
""",
        ),
    ],
    keeps=0.5,
)
def adds_up_the_gradients(): ...


@mistake(
    "fine_tune",
    hint="The loss is the sum over the images. Their mean is asked for.",
    replace=("config), labels)", 'config), labels, reduction="sum")'),
    keeps=0.5,
)
def adds_up_the_losses(): ...


@mistake(
    "fine_tune",
    hint="The images are taken one by one. A step is made on the mean loss of all of them.",
    replace=(
        "loss = torch.nn.functional.cross_entropy(vit_logits(images, params | trained, "
        "config), labels)",
        """
one = len(losses) % len(labels)
logits = vit_logits(images[one : one + 1], params | trained, config)
loss = torch.nn.functional.cross_entropy(logits, labels[one : one + 1])
""",
    ),
)
def learns_from_one_image_at_a_time(): ...


@mistake(
    "fine_tune",
    hint="All your steps start from the same parameters. Each goes on from what the last one left.",
    replace=[
        ("losses = []", "losses, start = [], params"),
        (
            "w.clone().requires_grad_() for w in list_tensors(params[name])",
            "w.clone().requires_grad_() for w in list_tensors(start[name])",
        ),
        (
            "vit_logits(images, params | trained, config)",
            "vit_logits(images, start | trained, config)",
        ),
    ],
    keeps=0.5,
)
def starts_again_at_each_step(): ...


@mistake(
    "fine_tune",
    hint="Your list has the losses after the steps. The one before each step is asked for.",
    replace=[
        ("losses.append(loss.item())", "pass"),
        (
            "params = params | {name: with_tensors(params[name], stepped)}",
            """
params = params | {name: with_tensors(params[name], stepped)}
if name == list(rates)[-1]:
    losses.append(torch.nn.functional.cross_entropy(vit_logits(images, params, config), labels).item())
""",
        ),
    ],
    keeps=0.5,
)
def lists_the_losses_after_the_steps(): ...


@mistake(
    "fine_tune",
    hint="Only the last loss comes back. A list with one for each step is asked for.",
    replace=("return losses, params", "return losses[-1:], params"),
    keeps=0.5,
)
def lists_the_last_loss_only(): ...


@mistake(
    "fine_tune",
    hint="The losses are tensors. Python floats are asked for, so that nothing keeps the graph.",
    replace=("losses.append(loss.item())", "losses.append(loss.detach())"),
    keeps=0.5,
)
def lists_losses_as_tensors(): ...


@mistake(
    "fine_tune",
    hint="The caller's parameters were changed in place: the pre-trained model is lost.",
    replace=(
        "stepped = [w.detach() - rate * w.grad for w in leaves[name]]",
        """
olds = list_tensors(params[name])
stepped = [old.sub_(rate * w.grad) for old, w in zip(olds, leaves[name], strict=True)]
""",
    ),
    keeps=0.5,
)
def spoils_the_pre_trained_model(): ...


@mistake(
    "fine_tune",
    hint="The parameters that come back still ask for gradients. They should be plain tensors.",
    replace=(
        "return losses, params",
        """
asking = {name: [w.clone().requires_grad_() for w in list_tensors(params[name])] for name in rates}
return losses, params | {name: with_tensors(params[name], asking[name]) for name in rates}
""",
    ),
    keeps=0.5,
)
def returns_leaves_that_ask_for_gradients(): ...


@mistake(
    "fine_tune",
    hint="Frozen parameters get gradients as well, which are then thrown away. That costs as "
    "much as training them.",
    replace=(
        """
leaves = {name: [w.clone().requires_grad_() for w in list_tensors(params[name])] for name in rates}
trained = {name: with_tensors(params[name], leaves[name]) for name in rates}
""",
        """
leaves = {name: [w.clone().requires_grad_() for w in list_tensors(params[name])] for name in params}
trained = {name: with_tensors(params[name], leaves[name]) for name in params}
""",
    ),
    keeps=0.5,
)
def computes_gradients_for_the_frozen(): ...


@mistake(
    "fine_tune",
    hint="A name that params does not have is passed over. It is a slip of the caller's, and "
    "should be a ValueError.",
    replace=(
        """
for name, rate in rates.items():
    if name not in params:
""",
        """
rates = {name: rate for name, rate in rates.items() if name in params}
for name, rate in rates.items():
    if False:
""",
    ),
    keeps=0.5,
)
def passes_over_unknown_names(): ...


@mistake(
    "fine_tune",
    hint="A negative step size goes uphill; the docstring asks for a ValueError.",
    replace=("if rate < 0:", "if False:"),
    keeps=0.5,
)
def fine_tunes_at_any_rate(): ...


@mistake(
    "fine_tune",
    hint="A label that is no class should be a ValueError with the label and the number of classes.",
    replace=("check_ids(labels, num_classes)", "labels = labels.clamp(0, num_classes - 1)"),
    keeps=0.5,
)
def takes_any_label(): ...


@mistake(
    "fine_tune",
    hint="The error should say which name is not among the parameters.",
    replace=('f"there are no parameters called {name!r}"', '"there are no such parameters"'),
)
def leaves_the_unknown_name_out(): ...


# ── explain_model_size
# ───────────────────────────────────────────────────────────────────────────────────────


def _matrices(num_encoder_layers, num_layers, d_model):
    """The matrices of all blocks, by way of count_parameters."""
    model = ModelConfig(
        1, d_model, num_layers, 1, d_model, 4 * d_model, 1, num_encoder_layers=num_encoder_layers,
        tied=True,
        biases=False, norms=False, learned_positions=False, final_norm=False,
    )  # fmt: skip
    counts = count_parameters(model)
    return counts["total"] - counts["embedding"]


def _explain(millions, d_model, low, high, splits, matrices=_matrices):
    for num_encoder_layers, num_layers in splits:
        fixed = matrices(num_encoder_layers, num_layers, d_model)
        vocab_size = min(max(round((millions * 1_000_000 - fixed) / d_model), low), high)
        if round((fixed + vocab_size * d_model) / 1_000_000) == millions:
            return num_encoder_layers, num_layers, vocab_size
    return None


def _splits(num_blocks):
    return [(encoder, num_blocks - encoder) for encoder in range(num_blocks)]


@mistake(
    "explain_model_size",
    hint="All your blocks have 12 D². A decoder block that reads an encoder has 16 D²: that is "
    "the point of the 213M.",
)
def counts_identical_blocks(millions, num_blocks, d_model, min_vocab, max_vocab):
    def matrices(num_encoder_layers, num_layers, d_model):
        return _matrices(0, num_encoder_layers + num_layers, d_model)

    return _explain(millions, d_model, min_vocab, max_vocab, _splits(num_blocks), matrices)


@mistake(
    "explain_model_size",
    hint="Encoder and decoder need not have the same depth. Try every division.",
)
def tries_equal_halves_only(millions, num_blocks, d_model, min_vocab, max_vocab):
    splits = [(0, num_blocks), (num_blocks // 2, num_blocks - num_blocks // 2)]
    return _explain(millions, d_model, min_vocab, max_vocab, splits)


@mistake(
    "explain_model_size",
    hint="There may be no encoder at all: 0 encoder blocks is a division, too.",
)
def always_wants_an_encoder(millions, num_blocks, d_model, min_vocab, max_vocab):
    return _explain(millions, d_model, min_vocab, max_vocab, _splits(num_blocks)[1:])


@mistake(
    "explain_model_size",
    hint="Without an encoder there is no cross-attention: those blocks have 12 D².",
)
def gives_all_decoders_cross_attention(millions, num_blocks, d_model, min_vocab, max_vocab):
    def matrices(num_encoder_layers, num_layers, d_model):
        return _matrices(num_encoder_layers, num_layers, d_model) + (
            0 if num_encoder_layers else 4 * num_layers * d_model**2
        )

    return _explain(millions, d_model, min_vocab, max_vocab, _splits(num_blocks), matrices)


@mistake("explain_model_size", hint="The vocabulary is not in the range that was called plausible.")
def takes_any_vocabulary(millions, num_blocks, d_model, min_vocab, max_vocab):
    return _explain(millions, d_model, 1, 10**9, _splits(num_blocks))


@mistake("explain_model_size", hint="The whole range counts, not only its smallest vocabulary.")
def tries_the_smallest_vocabulary(millions, num_blocks, d_model, min_vocab, max_vocab):
    return _explain(millions, d_model, min_vocab, min_vocab, _splits(num_blocks))


@mistake(
    "explain_model_size", hint="This is the answer for the lecture's numbers, whatever was asked."
)
def answers_the_lecture(millions, num_blocks, d_model, min_vocab, max_vocab):
    return 6, 6, 36_000


@mistake("explain_model_size", hint="The embedding counts twice. It is tied here: V·D once.")
def counts_the_embedding_twice(millions, num_blocks, d_model, min_vocab, max_vocab):
    found = _explain(
        millions,
        2 * d_model,
        min_vocab,
        max_vocab,
        _splits(num_blocks),
        lambda e, n, d: _matrices(e, n, d // 2),
    )
    return found


@mistake(
    "explain_model_size",
    hint="All blocks are decoder blocks or all are encoder blocks in your evidence: "
    "num_layers is 0.",
)
def leaves_the_decoder_empty(millions, num_blocks, d_model, min_vocab, max_vocab):
    return _explain(
        millions, d_model, min_vocab, max_vocab, [(num_blocks, 0), *_splits(num_blocks)]
    )
