"""Wrong answers that people give about whole models, each with one wrong idea."""

from autograder.suite import (
    axes_exchanged,
    depends_on_later,
    has_dtype,
    ignores,
    is_what,
    mistake,
    one_axis_less,
    right_once_inverted,
    shape_with_axes_exchanged,
    sums_to_one,
)

# --- count_parameters


@mistake(
    "count_parameters",
    hint="Cross-attention is missing. A decoder block that reads an encoder has a second "
    "attention: 16 D² instead of 12 D².",
    replace=('"cross_attention": cross_blocks * attention', '"cross_attention": 0'),
)
def forgets_cross_attention(): ...


@mistake(
    "count_parameters",
    hint="Cross-attention sits in decoder blocks only; you count it in encoder blocks, too.",
    replace=(
        '"cross_attention": cross_blocks * attention',
        '"cross_attention": blocks * attention if c.num_encoder_layers else 0',
    ),
)
def gives_every_block_cross_attention(): ...


@mistake(
    "count_parameters",
    hint="Cross-attention needs an encoder to read. A decoder-only model has none.",
    replace=(
        '"cross_attention": cross_blocks * attention',
        '"cross_attention": c.num_layers * attention',
    ),
)
def gives_decoder_only_models_cross_attention(): ...


@mistake(
    "count_parameters",
    hint="You count D² for the attention matrices. They are [D, H·d], and H·d need not be D.",
    replace=(
        "4 * d * inner + (3 * inner + d if c.biases else 0)",
        "4 * d * d + (4 * d if c.biases else 0)",
    ),
)
def takes_d_squared_for_every_matrix(): ...


@mistake(
    "count_parameters",
    hint="The attention has a fourth matrix, the output projection; it is not in your count.",
    replace=(
        "4 * d * inner + (3 * inner + d if c.biases else 0)",
        "3 * d * inner + (3 * inner if c.biases else 0)",
    ),
)
def forgets_the_output_projection(): ...


@mistake(
    "count_parameters",
    hint="The width of the MLP is d_ff. It is often 4·D, and need not be.",
    replace=(
        "2 * d * f + (f + d if c.biases else 0)",
        "8 * d * d + (5 * d if c.biases else 0)",
    ),
)
def takes_four_d_for_the_mlp(): ...


@mistake(
    "count_parameters",
    hint="Biases are not counted. One is as wide as the output of its matrix: H·d three times, "
    "then D; F, then D.",
    replace=[
        ("4 * d * inner + (3 * inner + d if c.biases else 0)", "4 * d * inner"),
        ("2 * d * f + (f + d if c.biases else 0)", "2 * d * f"),
    ],
)
def forgets_the_biases(): ...


@mistake(
    "count_parameters",
    hint="The encoder's blocks are missing: they have attention, MLP and norms as well.",
    replace=("blocks = c.num_layers + c.num_encoder_layers", "blocks = c.num_layers"),
)
def counts_the_decoder_only(): ...


@mistake(
    "count_parameters",
    hint="A norm has two vectors, gamma and beta.",
    replace=("norms * 2 * d", "norms * d"),
)
def counts_gamma_only(): ...


@mistake(
    "count_parameters",
    hint="The norm after the last block is missing.",
    replace=(" + (1 if c.final_norm else 0)", ""),
)
def forgets_the_final_norm(): ...


@mistake(
    "count_parameters",
    hint="A decoder block with cross-attention has a third norm.",
    replace=("2 * blocks + cross_blocks", "2 * blocks"),
)
def gives_every_block_two_norms(): ...


@mistake(
    "count_parameters",
    hint="A tied unembedding is the embedding once more: no new numbers. Where it is not "
    "tied, it counts.",
    replace=("0 if c.tied else d * c.vocab_size", "d * c.vocab_size"),
)
def counts_the_unembedding_always(): ...


@mistake(
    "count_parameters",
    hint="Where the two ends are not tied, the unembedding is a matrix of its own.",
    replace=("0 if c.tied else d * c.vocab_size", "0"),
)
def ties_every_model(): ...


@mistake(
    "count_parameters",
    hint="Sinusoidal positions are computed, not learned: they are no parameters.",
    replace=(" if c.learned_positions else 0", ""),
)
def counts_sinusoidal_positions(): ...


@mistake(
    "count_parameters",
    hint="The switch `norms` is off, and norms are counted all the same.",
    replace=(" if c.norms else 0", ""),
)
def counts_norms_that_are_switched_off(): ...


@mistake(
    "count_parameters",
    hint="The switch `norms` is off, and the final norm is counted all the same. It is a norm, too.",
    replace=(
        "norms * 2 * d if c.norms else 0",
        "norms * 2 * d if c.norms else (2 * d if c.final_norm else 0)",
    ),
)
def counts_a_final_norm_that_is_switched_off(): ...


@mistake(
    "count_parameters",
    hint="The total does not add all seven groups.",
    replace=("sum(counts.values())", 'sum(counts.values()) - counts["norms"]'),
)
def leaves_the_norms_out_of_the_total(): ...


@mistake(
    "count_parameters",
    hint="Parameters are counted in whole numbers: int, not float.",
    replace=(
        "return counts",
        """
            counts = {name: float(count) for name, count in counts.items()}
            return counts""",
    ),
)
def counts_in_floats(): ...


@mistake(
    "count_parameters",
    hint="There is one final norm, after the last block of the model; you count one for each "
    "stack.",
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
    replace=(
        "if min(sizes) < 1 or min(c.num_layers, c.num_encoder_layers) < 0:",
        "if False:",
    ),
)
def counts_whatever_it_gets(): ...


# --- decoder_lm


@mistake(
    "decoder_lm",
    hint="You ask config whether the model is tied. params decide: without an unembed it is.",
    replace=('if "unembed" in params:', "if not config.tied:"),
)
def asks_the_config_whether_it_is_tied(): ...


@mistake(
    "decoder_lm",
    hint="A position sees later tokens, which it should predict: change the last token, and "
    "earlier logits change. Is there a mask, and which way round is it?",
    shows=depends_on_later("ids", 1),
    replace=(", causal_mask(n))", ")"),
)
def lets_everybody_see_everything(): ...


@mistake(
    "decoder_lm",
    hint="Your mask shows the future and hides the past: rows are queries, columns are keys.",
    shows=depends_on_later("ids", 1),
    replace=("causal_mask(n)", "causal_mask(n).T"),
)
def shows_the_future_only(): ...


@mistake(
    "decoder_lm",
    hint="Each position sees one token too far: exactly the one that it should predict.",
    shows=depends_on_later("ids", 1),
    keeps=0.65,
    replace=("causal_mask(n)", "torch.ones(n, n).tril(1).bool()"),
)
def sees_one_token_too_far(): ...


@mistake(
    "decoder_lm",
    hint="A token may look at itself: the diagonal of the causal mask is True.",
    keeps=0.65,
    replace=("causal_mask(n)", "torch.ones(n, n).tril(-1).bool()"),
)
def hides_a_token_from_itself(): ...


@mistake(
    "decoder_lm",
    hint="The norm after the last block is missing. Pre-norm blocks never normalize the "
    "stream itself, it only grows.",
    shows=ignores("params.lnf_gamma"),
    keeps=0.65,
    replace=('layer_norm(x, params["lnf_gamma"], params["lnf_beta"])', "x"),
)
def forgets_the_last_norm(): ...


@mistake(
    "decoder_lm",
    hint="The last norm has parameters of its own, lnf_gamma and lnf_beta; after training "
    "they matter.",
    shows=ignores("params.lnf_gamma"),
    replace=(
        'layer_norm(x, params["lnf_gamma"], params["lnf_beta"])',
        "layer_norm(x, 1.0, 0.0)",
    ),
)
def normalizes_without_gamma_and_beta(): ...


@mistake(
    "decoder_lm",
    hint="Your positions depend on which token it is. They should depend on where it stands.",
    replace=(
        'params["positions"][:n]',
        'params["positions"][ids.clamp(max=config.context_length - 1)]',
    ),
)
def looks_positions_up_by_token(): ...


@mistake(
    "decoder_lm",
    hint="The table of positions is not read: whatever stands in it, your logits stay the same. (Sines "
    "and cosines belong to the other model of this notebook.)",
    shows=ignores("params.positions"),
    replace=(' + params["positions"][:n]', ""),
)
def forgets_the_positions(): ...


@mistake(
    "decoder_lm",
    hint="Positions are added once, at the input. You add them again in front of every block.",
    replace=(
        'for block in params["blocks"]:',
        """
            for number, block in enumerate(params["blocks"]):
                if number > 0:
                    x = x + params["positions"][:n]""",
    ),
)
def adds_positions_in_every_block(): ...


@mistake(
    "decoder_lm",
    hint="Positions are taken from the end of the table: the first token of any text has "
    "position 0.",
    replace=(
        'params["positions"][:n]',
        'params["positions"][config.context_length - n :]',
    ),
)
def counts_positions_from_the_end(): ...


@mistake(
    "decoder_lm",
    hint="These are post-norm blocks. The language model here has pre-norm blocks.",
    replace=("pre_norm_block(", "post_norm_block("),
)
def uses_post_norm_blocks(): ...


@mistake(
    "decoder_lm",
    hint="Only the first block is used. Does your loop keep what the block returns, and go on?",
    replace=('params["blocks"]', 'params["blocks"][:1]'),
)
def runs_the_first_block_only(): ...


@mistake(
    "decoder_lm",
    hint="Every block gets the same input: what one block made should go into the next.",
    replace=[
        ('x = params["embed"][ids]', 'start = x = params["embed"][ids]'),
        ("pre_norm_block(x,", "pre_norm_block(start,"),
    ],
)
def starts_every_block_anew(): ...


@mistake(
    "decoder_lm",
    hint="A tied unembedding is the embedding transposed, [D, V]. A reshape has that shape "
    "too, with the numbers in other places.",
    replace=('params["embed"].T', 'params["embed"].reshape(x.shape[-1], -1)'),
)
def reshapes_the_embedding(): ...


@mistake(
    "decoder_lm",
    hint="The embedding is [V, D], and logits are dot products with its rows: which axis is "
    "summed?",
    replace=('params["embed"].T', 'params["embed"]'),
)
def ties_without_transposing(): ...


@mistake(
    "decoder_lm",
    hint="Where params have an `unembed`, the model is not tied: use it.",
    shows=ignores("params.unembed"),
    replace=('if "unembed" in params:', "if False:"),
)
def ties_every_language_model(): ...


@mistake(
    "decoder_lm",
    hint="A tied embedding learns from both ends. Yours is cut off at the output (detach, .data).",
    replace=('params["embed"].T', 'params["embed"].detach().T'),
)
def detaches_the_tied_embedding(): ...


@mistake(
    "decoder_lm",
    hint="These are probabilities. The function returns logits; loss and sampling do the softmax.",
    shows=sums_to_one(-1),
    replace=[
        (
            'return x @ params["unembed"]',
            'return torch.softmax(x @ params["unembed"], dim=-1)',
        ),
        (
            'return x @ params["embed"].T',
            'return torch.softmax(x @ params["embed"].T, dim=-1)',
        ),
    ],
)
def returns_probabilities(): ...


@mistake(
    "decoder_lm",
    hint="The embedding is multiplied by the root of D. Some models do; this course does not.",
    replace=(
        'params["embed"][ids]',
        'params["embed"][ids] * math.sqrt(params["embed"].shape[1])',
    ),
)
def scales_the_embedding(): ...


@mistake(
    "decoder_lm",
    hint="Half precision comes back as float32: the dtype of the weights should come out.",
    shows=has_dtype("float32"),
    replace=[
        (
            'return x @ params["unembed"]',
            """
            logits = x @ params["unembed"]
            return logits.float() if logits.dtype == torch.float16 else logits""",
        ),
        (
            'return x @ params["embed"].T',
            """
            logits = x @ params["embed"].T
            return logits.float() if logits.dtype == torch.float16 else logits""",
        ),
    ],
)
def answers_in_float32(): ...


@mistake(
    "decoder_lm",
    hint="A batch of one sentence keeps its axis, [1, N, V]: squeeze() takes it away.",
    shows=one_axis_less(),
    replace=[
        ('return x @ params["unembed"]', 'return (x @ params["unembed"]).squeeze()'),
        ('return x @ params["embed"].T', 'return (x @ params["embed"].T).squeeze()'),
    ],
)
def squeezes_a_batch_of_one_sentence(): ...


@mistake(
    "decoder_lm",
    hint="Your sentences are one long text here: later sentences see the earlier ones. Keep "
    "the batch axis.",
    shows=depends_on_later("ids", 1),
    replace=[
        (
            'for block in params["blocks"]:',
            """
            x = x.reshape(1, ids.numel(), -1)
            for block in params["blocks"]:""",
        ),
        ("causal_mask(n)", "causal_mask(ids.numel())"),
        (
            "x = layer_norm(x,",
            """
            x = x.reshape(*ids.shape, -1)
            x = layer_norm(x,""",
        ),
    ],
)
def reads_the_batch_as_one_text(): ...


@mistake(
    "decoder_lm",
    hint="One pass a position: the causal mask lets all positions be computed in one call.",
    replace=(
        """
            x = params["embed"][ids] + params["positions"][:n]  # [B, N, D]
            for block in params["blocks"]:
                x = pre_norm_block(x, block, config.num_heads, causal_mask(n))""",
        """
            rows = []
            for end in range(1, n + 1):
                x = params["embed"][ids[:, :end]] + params["positions"][:end]
                for block in params["blocks"]:
                    x = pre_norm_block(x, block, config.num_heads, causal_mask(end))
                rows.append(x[:, -1])
            x = torch.stack(rows, dim=1)""",
    ),
)
def computes_one_position_after_the_other(): ...


@mistake(
    "decoder_lm",
    hint="A text that is too long gets an answer. Here it is a ValueError; "
    "cropping is the business of generate.",
    replace=(
        "n = ids.shape[1]",
        """
            ids = ids[:, -config.context_length :]
            n = ids.shape[1]""",
    ),
)
def crops_a_text_that_is_too_long(): ...


@mistake(
    "decoder_lm",
    hint="A text of exactly context_length tokens is refused, and it fits: the table has a row for "
    "each of them.",
    replace=("if n > config.context_length:", "if n >= config.context_length:"),
)
def refuses_a_text_that_fills_the_context(): ...


@mistake(
    "decoder_lm",
    hint="An id of -1 silently fetches the last row of the table. Ids outside are a ValueError.",
    replace=("check_ids(ids, config.vocab_size)", "ids = ids % config.vocab_size"),
)
def takes_any_id(): ...


# --- lm_loss


@mistake(
    "lm_loss",
    hint="Nothing is shifted: position t is scored on token t, which it has just read. A "
    "model that copies its input would have no loss.",
    replace=("logits[:, :-1], ids[:, 1:]", "logits, ids"),
)
def scores_a_token_on_itself(): ...


@mistake(
    "lm_loss",
    hint="Shifted the wrong way: position t should be scored on token t + 1, and yours on t - 1.",
    replace=("logits[:, :-1], ids[:, 1:]", "logits[:, 1:], ids[:, :-1]"),
)
def shifts_the_other_way(): ...


@mistake(
    "lm_loss",
    hint="Shifted twice: position t is scored on token t + 2. The logits lose one place, the "
    "ids one.",
    replace=("logits[:, :-1], ids[:, 1:]", "logits[:, :-2], ids[:, 2:]"),
)
def shifts_twice(): ...


@mistake(
    "lm_loss",
    hint="The ids are rolled, so the last position is scored on the *first* token. It has no "
    "target.",
    keeps=0.65,
    replace=("logits[:, :-1], ids[:, 1:]", "logits, ids.roll(-1, dims=1)"),
)
def rolls_the_targets(): ...


@mistake(
    "lm_loss",
    hint="The softmax is taken twice. cross_entropy and log_softmax want logits.",
    replace=(
        "torch.log_softmax(wide, dim=-1)",
        "torch.log_softmax(torch.softmax(wide, dim=-1), dim=-1)",
    ),
)
def takes_the_softmax_twice(): ...


@mistake(
    "lm_loss",
    hint="Ignored targets left the sum, and still count in the number you divide by.",
    replace=("max(len(targets), 1)", "max(counted.numel(), 1)"),
)
def divides_by_all_targets(): ...


@mistake(
    "lm_loss",
    hint="A place is left out where the token that it has *read* is ignore_index. It should be "
    "left out where its target is: the next id.",
    keeps=0.65,
    replace=[
        ("counted = targets != ignore_index", "counted = ids[:, :-1] != ignore_index"),
        (
            "check_ids(targets, logits.shape[-1])",
            """
            check_ids(targets[targets != ignore_index], logits.shape[-1])
            targets = targets.clamp(0, logits.shape[-1] - 1)""",
        ),
    ],
)
def leaves_out_by_the_token_that_was_read(): ...


@mistake(
    "lm_loss",
    hint="This is the sum. The loss is the mean over the targets that count.",
    keeps=0.65,
    replace=(" / max(len(targets), 1)", ""),
)
def sums_the_losses(): ...


@mistake(
    "lm_loss",
    hint="A mean of each sentence's mean: short sentences weigh more. Average over all "
    "targets of the batch at once.",
    replace=(
        "predictions, targets = logits[:, :-1], ids[:, 1:]",
        """
            if len(ids) > 1:
                pairs = zip(logits.split(1), ids.split(1), strict=True)
                return torch.stack([lm_loss(*pair, ignore_index) for pair in pairs]).mean()
            predictions, targets = logits[:, :-1], ids[:, 1:]""",
    ),
)
def averages_sentence_by_sentence(): ...


@mistake(
    "lm_loss",
    hint="A tiny probability rounds to 0, and log(0) is -inf. Take the log-softmax of the logits.",
    replace=("torch.log_softmax(wide, dim=-1)", "torch.softmax(wide, dim=-1).log()"),
)
def takes_the_log_of_the_softmax(): ...


@mistake(
    "lm_loss",
    hint="Where every target is ignored, the mean is 0/0 = NaN. Here it is 0, with a "
    "gradient of 0.",
    replace=("max(len(targets), 1)", "len(targets)"),
)
def averages_nothing(): ...


@mistake(
    "lm_loss",
    hint="The 0 of a batch without targets is a new tensor: backward from it fails. Keep it "
    "connected.",
    replace=(
        "check_ids(",
        """
            if len(targets) == 0:
                return torch.tensor(0.0, dtype=logits.dtype)
            check_ids(""",
    ),
)
def returns_a_loose_zero(): ...


@mistake(
    "lm_loss",
    hint="Logits and targets are flattened in different orders: predictions meet other rows' "
    "targets.",
    replace=(
        "predictions[counted]",
        "predictions.transpose(0, 1).flatten(0, 1)[counted.flatten()]",
    ),
)
def flattens_in_another_order(): ...


@mistake(
    "lm_loss",
    hint="Only -100 is ignored. Which value is ignored is an argument.",
    replace=("targets != ignore_index", "targets != -100"),
)
def ignores_minus_hundred_only(): ...


@mistake(
    "lm_loss",
    hint="Ignored targets became word 0 and count. They should not count at all.",
    replace=(
        "counted = targets != ignore_index",
        """
            targets = targets.where(targets != ignore_index, 0)
            counted = torch.ones_like(targets, dtype=torch.bool)""",
    ),
)
def turns_ignored_targets_into_word_zero(): ...


@mistake(
    "lm_loss",
    hint="The loss is a Python float: nothing can be trained with it. Return the tensor.",
    replace=("-log_probabilities.sum()", "-log_probabilities.detach().sum()"),
)
def returns_a_number_without_a_graph(): ...


@mistake(
    "lm_loss",
    hint="This is the perplexity, exp(loss). The loss itself is asked for.",
    shows=is_what("exp"),
    keeps=0.65,
    replace=(
        "(-log_probabilities.sum() / max(len(targets), 1))",
        "torch.exp(-log_probabilities.sum() / max(len(targets), 1))",
    ),
)
def returns_the_perplexity(): ...


@mistake(
    "lm_loss",
    hint="Half precision comes back as float32: compute in it, and return the dtype of the logits.",
    shows=has_dtype("float32"),
    replace=(".to(logits.dtype)", ""),
)
def answers_half_precision_in_float32(): ...


@mistake(
    "lm_loss",
    hint="Logits and ids that do not belong together get a loss. The docstring asks for a ValueError.",
    replace=(
        "if logits.shape[:2] != ids.shape:",
        """
            n = min(logits.shape[1], ids.shape[1])
            logits, ids = logits[:, :n], ids[:, :n]
            if False:""",
    ),
)
def cuts_what_does_not_fit(): ...


# --- train_step


@mistake(
    "train_step",
    hint="The loss goes up: the gradient points uphill, and the step should go against it.",
    keeps=0.65,
    replace=("leaf.detach() - lr", "leaf.detach() + lr"),
)
def goes_uphill(): ...


@mistake(
    "train_step",
    hint="The loss is that of the new parameters. Return the one before the step.",
    replace=(
        "return loss.item(), with_tensors(params, stepped)",
        """
            new = with_tensors(params, stepped)
            return lm_loss(decoder_lm(ids, new, config), ids).item(), new""",
    ),
)
def returns_the_loss_after_the_step(): ...


@mistake(
    "train_step",
    hint="The caller's parameters were changed in place. A step returns new ones.",
    replace=[
        (
            "stepped = [leaf.detach() - lr * gradient for leaf, gradient in zip(leaves, gradients, strict=True)]",
            """
            for tensor, gradient in zip(list_tensors(params), gradients, strict=True):
                tensor -= lr * gradient""",
        ),
        ("with_tensors(params, stepped)", "params"),
    ],
)
def edits_the_parameters_in_place(): ...


@mistake(
    "train_step",
    hint="The loss is a tensor. A Python float is asked for, so that nothing keeps the graph.",
    replace=("loss.item()", "loss.detach()"),
)
def returns_the_loss_as_a_tensor(): ...


@mistake(
    "train_step",
    hint="The blocks did not learn: they are dicts in a list inside params, and need their "
    "step, too.",
    replace=(
        "with_tensors(params, stepped)",
        'with_tensors(params, stepped) | {"blocks": params["blocks"]}',
    ),
)
def leaves_the_blocks_untrained(): ...


@mistake(
    "train_step",
    hint="The norms did not learn: gamma and beta are parameters like all others.",
    replace=("lr * gradient for", "lr * (gradient.dim() == 2) * gradient for"),
)
def leaves_the_norms_untrained(): ...


@mistake(
    "train_step",
    hint="The new parameters are still part of the graph of the step. In a loop they fill "
    "the memory.",
    replace=("leaf.detach() - lr", "leaf - lr"),
)
def keeps_the_graph(): ...


@mistake(
    "train_step",
    hint="The step does not depend on lr as it should: it is lr times the gradient.",
    replace=("- lr * gradient", "- (0.1 if lr else 0.0) * gradient"),
)
def takes_a_step_of_its_own(): ...


@mistake(
    "train_step",
    hint="The gradient is divided by the size of the batch once more: the loss is a mean already.",
    replace=("- lr * gradient", "- lr / len(ids) * gradient"),
)
def divides_by_the_batch_again(): ...


@mistake(
    "train_step",
    hint="Only the sign of the gradient is used. Plain gradient descent uses its size as well.",
    replace=("- lr * gradient", "- lr * gradient.sign()"),
)
def follows_the_sign_only(): ...


@mistake(
    "train_step",
    hint="The gradient is clipped to length 1. Useful sometimes, and not asked for here.",
    replace=(
        "stepped = [",
        """
            length = torch.sqrt(sum(g.pow(2).sum() for g in gradients))
            gradients = [g / length.clamp(min=1) for g in gradients]
            stepped = [""",
    ),
)
def clips_the_gradient(): ...


@mistake(
    "train_step",
    hint="The ids are shifted before they get to the loss, and the loss shifts again. Who "
    "shifts, here?",
    replace=(
        "decoder_lm(ids, with_tensors(params, leaves), config), ids)",
        "decoder_lm(ids[:, :-1], with_tensors(params, leaves), config), ids[:, 1:])",
    ),
)
def shifts_before_the_loss_as_well(): ...


@mistake(
    "train_step",
    hint="A negative step size goes uphill; the docstring asks for a ValueError.",
    replace=("if lr < 0:", "if False:"),
)
def takes_any_step_size(): ...


# --- similarity_by_layer


@mistake(
    "similarity_by_layer",
    hint="Entry 0 is about the table. One word at two places has one row there: no position yet.",
    keeps=0.65,
    replace=(
        "depths = [rows[place]]",
        'depths = [rows[place] + params["positions"][place]]',
    ),
)
def adds_positions_to_the_table(): ...


@mistake(
    "similarity_by_layer",
    hint="The stream that enters the first block has positions: a word at another place is "
    "not the same there.",
    shows=ignores("params.positions"),
    replace=('(rows + params["positions"][:n]).unsqueeze(0)', "rows.unsqueeze(0)"),
)
def compares_without_positions(): ...


@mistake(
    "similarity_by_layer",
    hint="Words behind the place change your answer. Which words may a block of this model "
    "look at?",
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
    keeps=0.65,
    replace=(
        "return torch.stack(depths)",
        """

            if len(depths) > 1:
                depths[-1] = layer_norm(depths[-1], params["lnf_gamma"], params["lnf_beta"])
            return torch.stack(depths)
""",
    ),
)
def normalizes_the_last_depth(): ...


@mistake(
    "similarity_by_layer",
    hint="Your numbers grow with the vectors: a dot product. A cosine divides by both lengths.",
    replace=(
        "torch.nn.functional.cosine_similarity(at_each_depth(first, i), at_each_depth(second, j), dim=-1)",
        "(at_each_depth(first, i) * at_each_depth(second, j)).sum(dim=-1)",
    ),
)
def multiplies_without_dividing(): ...


@mistake(
    "similarity_by_layer",
    hint="A vector of zeros has length 0, and 0/0 is NaN. Its cosine is 0 here.",
    keeps=0.65,
    replace=(
        "return torch.nn.functional.cosine_similarity(at_each_depth(first, i), at_each_depth(second, j), dim=-1)",
        """

            u, v = at_each_depth(first, i), at_each_depth(second, j)
            return (u * v).sum(dim=-1) / (u.norm(dim=-1) * v.norm(dim=-1))
""",
    ),
)
def divides_zero_by_zero(): ...


@mistake(
    "similarity_by_layer",
    hint="A distance is small where two words are alike. A similarity is asked for: 1 for "
    "equal vectors.",
    shows=is_what("one minus"),
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
    replace=[
        ("rows[place]", "rows[-1]"),
        ("x[0, place]", "x[0, -1]"),
    ],
)
def compares_the_last_words(): ...


@mistake(
    "similarity_by_layer",
    hint="Your vectors are means over the whole text. The vector at the word's place is meant.",
    replace=[
        ("rows[place]", "rows.mean(dim=0)"),
        ("x[0, place]", "x[0].mean(dim=0)"),
    ],
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
    keeps=0.65,
    replace=(
        "at_each_depth(second, j), dim=-1)",
        "at_each_depth(second, j), dim=-1)[min(1, len(params['blocks'])) :]",
    ),
)
def leaves_the_table_out(): ...


@mistake(
    "similarity_by_layer",
    hint="Only the two ends are there. The stream is compared after every block.",
    keeps=0.65,
    replace=(
        "return torch.stack(depths)",
        "return torch.stack([depths[0], depths[-1]] if len(depths) > 1 else depths)",
    ),
)
def returns_both_ends_only(): ...


@mistake(
    "similarity_by_layer",
    hint="A place that the text does not have should be a ValueError. −1 fetches the last word.",
    keeps=0.65,
    replace=(
        "if not 0 <= place < n:",
        """

            place = max(-n, min(place, n - 1))
            if False:
""",
    ),
)
def takes_any_place(): ...


@mistake(
    "similarity_by_layer",
    hint="Places are checked at one end only. They begin at 0 and end at N − 1.",
    keeps=0.65,
    replace=("if not 0 <= place < n:", "if place > n - 1:"),
)
def takes_negative_places(): ...


@mistake(
    "similarity_by_layer",
    hint="A text above the context length should be a ValueError that names both lengths.",
    keeps=0.65,
    replace=("if n > config.context_length:", "if False:"),
)
def compares_texts_of_any_length(): ...


@mistake(
    "similarity_by_layer",
    hint="An id outside the vocabulary should be a ValueError with the id.",
    keeps=0.65,
    replace=(
        "check_ids(ids, config.vocab_size)",
        'ids = ids.clamp(0, len(params["embed"]) - 1)',
    ),
)
def compares_any_ids(): ...


# --- filtered_probabilities


@mistake(
    "filtered_probabilities",
    hint="A low temperature should sharpen, and yours flattens: it multiplies the logits.",
    replace=("wide / temperature", "wide * temperature"),
)
def multiplies_by_the_temperature(): ...


@mistake(
    "filtered_probabilities",
    hint="The temperature divides probabilities. It divides the logits, before the softmax.",
    replace=(
        "sorted_logits, order =",
        """
            if temperature != 1:
                wide = torch.softmax(wide, dim=-1)
            sorted_logits, order =""",
    ),
)
def divides_the_probabilities(): ...


@mistake(
    "filtered_probabilities",
    hint="At temperature 0 you divide by zero, and the probabilities become NaN. Temperature 0 "
    "means all probability on the likeliest token.",
    replace=("if temperature == 0:", "if False:"),
)
def divides_by_zero(): ...


@mistake(
    "filtered_probabilities",
    hint="At temperature 0 equally likely tokens share the probability. Put it all on one.",
    replace=[
        (
            "logits.argmax(dim=-1, keepdim=True)",
            "(logits == logits.amax(dim=-1, keepdim=True)).to(logits.dtype)",
        ),
        (
            "torch.zeros_like(logits).scatter(-1, likeliest, 1.0)",
            "likeliest / likeliest.sum(dim=-1, keepdim=True)",
        ),
    ],
)
def shares_between_equals_at_zero(): ...


@mistake(
    "filtered_probabilities",
    hint="Temperature has no effect at all.",
    shows=ignores("temperature"),
    replace=("wide / temperature", "wide"),
)
def ignores_the_temperature(): ...


@mistake(
    "filtered_probabilities",
    hint="top_k has no effect. (masked_fill returns a new tensor: is the result used?)",
    replace=(
        "sorted_logits = sorted_logits.masked_fill(",
        "sorted_logits.masked_fill(",
    ),
)
def never_applies_top_k(): ...


@mistake(
    "filtered_probabilities",
    hint="top_p has no effect. (masked_fill returns a new tensor: is the result used?)",
    replace=("p = p.masked_fill(", "p.masked_fill("),
)
def never_applies_top_p(): ...


@mistake(
    "filtered_probabilities",
    hint="topk refuses to give more tokens than there are. A top_k above V means all of them.",
    replace=(
        'sorted_logits = sorted_logits.masked_fill(places >= top_k, float("-inf"))',
        """
            best = sorted_logits.topk(top_k, dim=-1).values
            sorted_logits = sorted_logits.masked_fill(places >= best.shape[-1], float("-inf"))""",
    ),
)
def asks_topk_for_too_many(): ...


@mistake(
    "filtered_probabilities",
    hint="Everything as likely as the k-th token stays, so ties make more than k. Exactly k "
    "should stay.",
    replace=(
        "places >= top_k",
        "sorted_logits < sorted_logits[:, min(top_k, wide.shape[-1]) - 1, None]",
    ),
)
def keeps_all_that_tie_with_the_kth(): ...


@mistake(
    "filtered_probabilities",
    hint="What is left after top-k does not sum to 1. Filter, then renormalize.",
    replace=[
        (
            """
            if top_k is not None:
                places = torch.arange(wide.shape[-1])
                sorted_logits = sorted_logits.masked_fill(places >= top_k, float("-inf"))
            p = torch.softmax(sorted_logits, dim=-1)""",
            """
            p = torch.softmax(sorted_logits, dim=-1)
            if top_k is not None:
                places = torch.arange(wide.shape[-1])
                p = p.masked_fill(places >= top_k, 0.0)""",
        ),
        (
            "p.cumsum(dim=-1) - p",
            "(p.cumsum(dim=-1) - p) / p.sum(dim=-1, keepdim=True)",
        ),
    ],
)
def leaves_top_k_unnormalized(): ...


@mistake(
    "filtered_probabilities",
    hint="What is left after top-p does not sum to 1. Filter, then renormalize.",
    replace=("p = p / p.sum(dim=-1, keepdim=True)", "pass"),
)
def leaves_top_p_unnormalized(): ...


@mistake(
    "filtered_probabilities",
    hint="You keep the k *least* likely tokens. Which way is it sorted?",
    replace=("places >= top_k", "places < wide.shape[-1] - top_k"),
)
def keeps_the_least_likely(): ...


@mistake(
    "filtered_probabilities",
    hint="The token with which the sum crosses p is dropped, and sometimes nothing is left. "
    "It belongs to the set.",
    keeps=0.65,
    replace=("before >= top_p", "before + p > top_p + 1e-12"),
)
def drops_the_token_that_crosses_p(): ...


@mistake(
    "filtered_probabilities",
    hint="One token too many stays: the sum has reached p already without the last one.",
    keeps=0.65,
    replace=("before >= top_p", "before - p.roll(1, dims=-1) >= top_p"),
)
def keeps_one_token_beyond_p(): ...


@mistake(
    "filtered_probabilities",
    hint="The sum runs over tokens as they stand. Top-p adds from the likeliest down.",
    replace=(
        "if top_p is not None:",
        """
            p = torch.zeros_like(p).scatter(-1, order, p)
            order = torch.arange(p.shape[-1]).expand_as(order)
            if top_p is not None:""",
    ),
)
def adds_up_unsorted(): ...


@mistake(
    "filtered_probabilities",
    hint="Which places of the *sorted* list stay is applied to the unsorted one. The "
    "decision has to travel back.",
    replace=(
        "p = p.masked_fill(",
        """
            p = torch.zeros_like(p).scatter(-1, order, p)
            order = torch.arange(p.shape[-1]).expand_as(order)
            p = p.masked_fill(""",
    ),
)
def applies_the_sorted_decision_unsorted(): ...


@mistake(
    "filtered_probabilities",
    hint="The result is in sorted order. Each probability belongs where its token stands.",
    replace=(
        "return torch.zeros_like(p)",
        """
            if top_k is not None or top_p is not None:
                return p.to(logits.dtype)
            return torch.zeros_like(p)""",
    ),
)
def returns_sorted_probabilities(): ...


@mistake(
    "filtered_probabilities",
    hint="Top-p adds up probabilities from before top-k. Here it is temperature, top-k, top-p: what "
    "top-k leaves is renormalized first.",
    replace=[
        (
            """
            if top_k is not None:
                places = torch.arange(wide.shape[-1])
                sorted_logits = sorted_logits.masked_fill(places >= top_k, float("-inf"))""",
            """
            places = torch.arange(wide.shape[-1])
""",
        ),
        (
            "return torch.zeros_like(p)",
            """
            if top_k is not None:
                p = p.masked_fill(places >= top_k, 0.0)
                p = p / p.sum(dim=-1, keepdim=True)
            return torch.zeros_like(p)""",
        ),
    ],
)
def applies_top_p_before_top_k(): ...


@mistake(
    "filtered_probabilities",
    hint="The temperature comes last. Applied before top-p it changes which tokens stay.",
    replace=[
        ("(wide / temperature).sort", "wide.sort"),
        (
            "return torch.zeros_like(p)",
            """
            p = torch.softmax(p.log() / temperature, dim=-1)
            return torch.zeros_like(p)""",
        ),
    ],
)
def applies_the_temperature_last(): ...


@mistake(
    "filtered_probabilities",
    hint="The tokens that the first row keeps are kept in all rows. Each row has its own.",
    replace=(
        "return torch.zeros_like(p).scatter(-1, order, p).to(logits.dtype)",
        """
            first_row = torch.zeros_like(p).scatter(-1, order, p)[:1]
            p = torch.zeros_like(p).scatter(-1, order, torch.softmax(sorted_logits, dim=-1))
            p = p.masked_fill(first_row == 0, 0.0)
            return (p / p.sum(dim=-1, keepdim=True)).to(logits.dtype)""",
    ),
)
def filters_all_rows_like_the_first(): ...


@mistake(
    "filtered_probabilities",
    hint="exp of a large logit overflows. Use a softmax that subtracts the maximum.",
    replace=(
        "torch.softmax(sorted_logits, dim=-1)",
        "sorted_logits.exp() / sorted_logits.exp().sum(dim=-1, keepdim=True)",
    ),
)
def exponentiates_without_a_maximum(): ...


@mistake(
    "filtered_probabilities",
    hint="The caller's logits are divided in place. Make a new tensor instead.",
    replace=("(wide / temperature).sort", "wide.div_(temperature).sort"),
)
def divides_the_logits_in_place(): ...


@mistake(
    "filtered_probabilities",
    hint="Half precision comes back as float32: compute in it, and return the dtype of the logits.",
    shows=has_dtype("float32"),
    replace=(".to(logits.dtype)", ""),
)
def answers_probabilities_in_float32(): ...


@mistake(
    "filtered_probabilities",
    hint="A top_k of 0 or a top_p of 3 mean nothing. The docstring asks for a ValueError.",
    replace=[
        ("if temperature < 0:", "if False:"),
        ("if top_k is not None and top_k < 1:", "if False:"),
        ("if top_p is not None and not 0 < top_p <= 1:", "if False:"),
    ],
)
def takes_any_setting(): ...


# --- generate


@mistake(
    "generate",
    hint="The logits of the *first* position are used. The next token follows from the last one.",
    replace=("config)[:, -1]", "config)[:, 0]"),
)
def listens_to_the_first_position(): ...


@mistake(
    "generate",
    hint="All rows get the same token. Each row has its own logits, and its own throw of the dice.",
    replace=(
        "torch.multinomial(p, 1, generator=generator).squeeze(1)",
        "torch.multinomial(p[:1], 1, generator=generator).squeeze(1).expand(len(p))",
    ),
)
def throws_once_for_all_rows(): ...


@mistake(
    "generate",
    hint="A row that has said eos goes on talking. It should go on with eos.",
    replace=("if eos_id is not None:", "if False:"),
)
def never_ends_a_row(): ...


@mistake(
    "generate",
    hint="One row's eos ends all rows. Keep a flag for each row.",
    replace=("masked_fill(done, eos_id)", "masked_fill(done.any(), eos_id)"),
)
def ends_all_rows_with_the_first(): ...


@mistake(
    "generate",
    hint="Token 0 may end a text, too: ask whether eos_id is None, not whether it is true.",
    replace=("if eos_id is not None", "if eos_id"),
)
def takes_token_zero_for_no_end(): ...


@mistake(
    "generate",
    hint="When all rows are done, your text is shorter. It always has num_new new tokens.",
    replace=(
        "ids = torch.cat([ids, chosen[:, None]], dim=1)",
        """
            ids = torch.cat([ids, chosen[:, None]], dim=1)
            if done.all():
                break""",
    ),
)
def stops_early(): ...


@mistake(
    "generate",
    hint="A row with eos in its *prompt* counts as ended. Only what was produced counts.",
    replace=(
        "for _ in range(num_new):",
        """
            if eos_id is not None:
                done = (prompt == eos_id).any(dim=1)
            for _ in range(num_new):""",
    ),
)
def counts_an_eos_of_the_prompt(): ...


@mistake(
    "generate",
    hint="A row that has ended is filled with 0. It goes on with eos_id.",
    replace=("masked_fill(done, eos_id)", "masked_fill(done, 0)"),
)
def fills_ended_rows_with_zeros(): ...


@mistake(
    "generate",
    hint="The text outgrows the context and the model refuses it. It should read the last "
    "tokens only.",
    replace=("ids[:, -config.context_length :]", "ids"),
)
def feeds_the_whole_text(): ...


@mistake(
    "generate",
    hint="The model reads the *first* tokens of a long text, and its end never. Which end matters?",
    replace=("ids[:, -config.context_length :]", "ids[:, : config.context_length]"),
)
def reads_the_beginning_of_a_long_text(): ...


@mistake(
    "generate",
    hint="The context is one token too short: the last context_length tokens fit.",
    replace=("ids[:, -config.context_length :]", "ids[:, 1 - config.context_length :]"),
)
def crops_one_token_too_many(): ...


@mistake(
    "generate",
    hint="The model reads the newest token only, as if there were a cache. It needs the text "
    "so far.",
    replace=("ids[:, -config.context_length :]", "ids[:, -1:]"),
)
def feeds_the_newest_token_only(): ...


@mistake(
    "generate",
    hint="What was cropped for the model is missing in the result: return the whole text.",
    replace=(
        "return ids",
        "return ids[:, -config.context_length :] if num_new else ids",
    ),
)
def returns_the_cropped_text(): ...


@mistake(
    "generate",
    hint="The prompt is missing: return prompt and new tokens.",
    keeps=0.65,
    replace=("return ids", "return ids[:, prompt.shape[1] :]"),
)
def returns_new_tokens_only(): ...


@mistake(
    "generate",
    hint="One token is missing: count the turns of your loop.",
    keeps=0.65,
    replace=("range(num_new)", "range(num_new - 1)"),
)
def adds_one_token_too_few(): ...


@mistake(
    "generate",
    hint="The generator is seeded anew for each token, and throws the same number every "
    "time. Seed once.",
    replace=(
        "chosen = torch.multinomial",
        """
            generator.manual_seed(seed)
            chosen = torch.multinomial""",
    ),
)
def seeds_anew_for_every_token(): ...


@mistake(
    "generate",
    hint="torch.manual_seed changes everybody's random numbers. Use a generator of your own.",
    replace=[
        ("generator = torch.Generator().manual_seed(seed)", "torch.manual_seed(seed)"),
        (", generator=generator", ""),
    ],
)
def seeds_the_global_state(): ...


@mistake(
    "generate",
    hint="The seed has no effect: every call throws other dice.",
    replace=(
        "torch.Generator().manual_seed(seed)",
        """
            torch.Generator()
            generator.seed()""",
    ),
)
def ignores_the_seed(): ...


@mistake(
    "generate",
    hint="Always the likeliest token. At temperatures above 0 tokens are drawn at random.",
    replace=("(logits, temperature, top_k, top_p)", "(logits, 0.0, top_k, top_p)"),
)
def always_takes_the_likeliest(): ...


@mistake(
    "generate",
    hint="top_k and top_p are not passed on to filtered_probabilities.",
    replace=("(logits, temperature, top_k, top_p)", "(logits, temperature)"),
)
def forgets_the_filters(): ...


@mistake(
    "generate",
    hint="The temperature is not passed on to filtered_probabilities.",
    replace=(
        "(logits, temperature, top_k, top_p)",
        "(logits, 1.0 if temperature else 0.0, top_k, top_p)",
    ),
)
def forgets_the_temperature(): ...


@mistake(
    "generate",
    hint="A negative number of tokens and an empty prompt cannot be continued: ValueError.",
    replace=(
        'raise ValueError(f"cannot add {num_new} tokens to a prompt of {prompt.shape[1]}")',
        "return prompt",
    ),
)
def continues_anything(): ...


# --- encoder_decoder


@mistake(
    "encoder_decoder",
    hint="The source mask is missing in the encoder: real words look at padding there.",
    replace=("block, heads, src_mask)", "block, heads)"),
)
def masks_the_cross_attention_only(): ...


@mistake(
    "encoder_decoder",
    hint="The source mask is missing in cross-attention: the decoder reads the padding.",
    replace=("heads, src_mask, x_kv", "heads, None, x_kv"),
)
def masks_the_encoder_only(): ...


@mistake(
    "encoder_decoder",
    hint="The source mask has no effect. It is needed in the encoder and in cross-attention.",
    shows=ignores("src_mask"),
    replace=(
        "src_mask = src_mask.reshape(src.shape[0], 1, src.shape[1])",
        "src_mask = None",
    ),
)
def ignores_the_source_mask(): ...


@mistake(
    "encoder_decoder",
    hint="The mask is upside down. True means a real token.",
    shows=right_once_inverted("src_mask"),
    replace=("= src_mask.reshape(", "= ~src_mask.reshape("),
)
def inverts_the_source_mask(): ...


@mistake(
    "encoder_decoder",
    hint="A mask of two axes is [N_q, N_k] for the attention. Yours is [B, N_s]: give it an "
    "axis for the queries.",
    replace=("src_mask = src_mask.reshape(src.shape[0], 1, src.shape[1])", "pass"),
)
def hands_the_mask_on_as_it_is(): ...


@mistake(
    "encoder_decoder",
    hint="Target words see later target words: the decoder's self-attention is causal.",
    shows=depends_on_later("tgt_in", 1),
    replace=(", causal_mask(y.shape[1]))", ")"),
)
def lets_the_decoder_see_the_future(): ...


@mistake(
    "encoder_decoder",
    hint="The encoder is causal. The source is complete: its words may look both ways.",
    replace=[
        (
            'for block in params["encoder"]:',
            """
            seen = causal_mask(src.shape[1])
            if src_mask is not None:
                seen = seen & src_mask
            for block in params["encoder"]:""",
        ),
        ("block, heads, src_mask)", "block, heads, seen)"),
    ],
)
def makes_the_encoder_causal(): ...


@mistake(
    "encoder_decoder",
    hint="Cross-attention got a causal mask. A target word may read all of the source.",
    replace=[
        (
            "read = multi",
            """
            seen = causal_mask(y.shape[1], src.shape[1])
            if src_mask is not None:
                seen = seen & src_mask
            read = multi""",
        ),
        ("heads, src_mask, x_kv", "heads, seen, x_kv"),
    ],
)
def makes_the_cross_attention_causal(): ...


@mistake(
    "encoder_decoder",
    hint="Queries and keys of the cross-attention are exchanged: the decoder asks, with c_q.",
    replace=('p["c_q"], p["c_k"]', 'p["c_k"], p["c_q"]'),
)
def exchanges_queries_and_keys(): ...


@mistake(
    "encoder_decoder",
    hint="Another source changes nothing in your answer: keys and values of the cross- "
    "attention come from the memory.",
    shows=ignores("src") & ignores("src_mask"),
    replace=("heads, src_mask, x_kv=memory", "heads, causal_mask(y.shape[1])"),
)
def reads_the_decoder_instead_of_the_source(): ...


@mistake(
    "encoder_decoder",
    hint="Cross-attention has weights of its own, c_q, c_k, c_v, c_o.",
    replace=(
        'p["c_q"], p["c_k"], p["c_v"], p["c_o"]',
        'p["w_q"], p["w_k"], p["w_v"], p["w_o"]',
    ),
)
def uses_the_self_attention_weights_again(): ...


@mistake(
    "encoder_decoder",
    hint="The residual around the cross-attention is missing: what was read is added.",
    replace=("y + read", "read"),
)
def replaces_the_stream_by_what_it_read(): ...


@mistake(
    "encoder_decoder",
    hint="Norms 2 and 3 are exchanged: 2 follows the cross-attention, 3 the MLP.",
    keeps=0.65,
    replace=[
        ('p["ln2_gamma"], p["ln2_beta"]', 'p["ln3_gamma"], p["ln3_beta"]'),
        ('p["ln3_gamma"], p["ln3_beta"]', 'p["ln2_gamma"], p["ln2_beta"]'),
    ],
)
def exchanges_norms_two_and_three(): ...


@mistake(
    "encoder_decoder",
    hint="One norm's parameters are used three times. Each sublayer has its own.",
    replace=[
        ('p["ln2_gamma"], p["ln2_beta"]', 'p["ln1_gamma"], p["ln1_beta"]'),
        ('p["ln3_gamma"], p["ln3_beta"]', 'p["ln1_gamma"], p["ln1_beta"]'),
    ],
)
def uses_one_norm_three_times(): ...


@mistake(
    "encoder_decoder",
    hint="These are pre-norm blocks. In the model of 2017 a norm follows each addition.",
    replace=(
        """
            attended = self_attention_of(y, p, heads, causal_mask(y.shape[1]))
            y = layer_norm(y + attended, p["ln1_gamma"], p["ln1_beta"])
            read = multi_head_attention(y, p["c_q"], p["c_k"], p["c_v"], p["c_o"], heads, src_mask, x_kv=memory)
            y = layer_norm(y + read, p["ln2_gamma"], p["ln2_beta"])
            y = layer_norm(y + mlp_of(y, p), p["ln3_gamma"], p["ln3_beta"])""",
        """
            normed = layer_norm(y, p["ln1_gamma"], p["ln1_beta"])
            y = y + self_attention_of(normed, p, heads, causal_mask(y.shape[1]))
            normed = layer_norm(y, p["ln2_gamma"], p["ln2_beta"])
            weights = (p["c_q"], p["c_k"], p["c_v"], p["c_o"])
            y = y + multi_head_attention(normed, *weights, heads, src_mask, x_kv=memory)
            y = y + mlp_of(layer_norm(y, p["ln3_gamma"], p["ln3_beta"]), p)""",
    ),
)
def writes_a_pre_norm_decoder(): ...


@mistake(
    "encoder_decoder",
    hint="The MLP stands before the cross-attention. First look, then read, then compute.",
    replace=[
        (
            "read = multi",
            """
            y = layer_norm(y + mlp_of(y, p), p["ln3_gamma"], p["ln3_beta"])
            read = multi""",
        ),
        (
            """
            y = layer_norm(y + read, p["ln2_gamma"], p["ln2_beta"])
            y = layer_norm(y + mlp_of(y, p), p["ln3_gamma"], p["ln3_beta"])""",
            """
            y = layer_norm(y + read, p["ln2_gamma"], p["ln2_beta"])
""",
        ),
    ],
)
def computes_before_it_reads(): ...


@mistake(
    "encoder_decoder",
    hint="The source has no positions: its words are a bag.",
    replace=(" + sinusoidal_positions(*memory.shape[1:]).to(memory.dtype)", ""),
)
def forgets_the_positions_of_the_source(): ...


@mistake(
    "encoder_decoder",
    hint="The target has no positions.",
    replace=(" + sinusoidal_positions(*y.shape[1:]).to(y.dtype)", ""),
)
def forgets_the_positions_of_the_target(): ...


@mistake(
    "encoder_decoder",
    hint="The embeddings are multiplied by the root of D, as in the paper. Here they are not.",
    replace=[
        (
            'params["src_embed"][src]',
            'params["src_embed"][src] * math.sqrt(params["src_embed"].shape[1])',
        ),
        (
            'params["tgt_embed"][tgt_in]',
            'params["tgt_embed"][tgt_in] * math.sqrt(params["tgt_embed"].shape[1])',
        ),
    ],
)
def scales_both_embeddings(): ...


@mistake(
    "encoder_decoder",
    hint="Decoder block l reads what encoder block l made. All decoder blocks read the "
    "finished memory.",
    replace=[
        (
            """
            for block in params["encoder"]:
                memory = post_norm_block(memory, block, heads, src_mask)""",
            """
            memories = [memory]
            for block in params["encoder"]:
                memories.append(post_norm_block(memories[-1], block, heads, src_mask))""",
        ),
        (
            'for p in params["decoder"]:',
            """
            for number, p in enumerate(params["decoder"], start=1):
                memory = memories[min(number, len(memories) - 1)]""",
        ),
    ],
)
def reads_the_encoder_layer_by_layer(): ...


@mistake(
    "encoder_decoder",
    hint="These are probabilities. The function returns logits.",
    shows=sums_to_one(-1),
    replace=(
        'return y @ params["unembed"]',
        'return torch.softmax(y @ params["unembed"], dim=-1)',
    ),
)
def ends_with_a_softmax(): ...


@mistake(
    "encoder_decoder",
    hint="Half-precision weights meet float32 positions, and float32 comes out. Match the dtype.",
    replace=(
        'return y @ params["unembed"]',
        """
            logits = y @ params["unembed"]
            return logits.float() if logits.dtype == torch.float16 else logits""",
    ),
)
def adds_positions_in_float32(): ...


@mistake(
    "encoder_decoder",
    hint="A batch of one keeps its axis, [1, N_t, V]: squeeze() takes it away.",
    replace=(
        'return y @ params["unembed"]',
        'return (y @ params["unembed"]).squeeze()',
    ),
)
def squeezes_a_pair_away(): ...


@mistake(
    "encoder_decoder",
    hint="Every target reads all sources of the batch, and sentences meet. The batch axis "
    "stays where it is.",
    replace=(
        'y = params["tgt_embed"][tgt_in]',
        """
            memory = memory.flatten(0, 1).expand(len(src), -1, -1)
            if src_mask is not None:
                src_mask = src_mask.flatten().expand(len(src), 1, -1)
            y = params["tgt_embed"][tgt_in]""",
    ),
)
def reads_the_sources_of_all_sentences(): ...


@mistake(
    "encoder_decoder",
    hint="Sources and targets that do not belong together should be a ValueError.",
    replace=[
        ("if src.shape[0] != tgt_in.shape[0]:", "if False:"),
        (
            "if src_mask.numel() != src.numel() or src_mask.shape[-1] != src.shape[1]:",
            "if False:",
        ),
    ],
)
def takes_any_pair(): ...


@mistake(
    "encoder_decoder",
    hint="An id outside its table gets through: -1 takes the last row, and a large one ends in torch's "
    "own error. The docstring asks for a ValueError.",
    replace=[
        ('check_ids(src, len(params["src_embed"]))', ""),
        ('check_ids(tgt_in, len(params["tgt_embed"]))', ""),
    ],
)
def embeds_any_id(): ...


# --- shift_right


@mistake(
    "shift_right",
    hint="Shifted to the left: at place t the decoder reads what it should say *after* the answer.",
    replace=("[start, targets[:, :-1]]", "[targets[:, 1:], start]"),
)
def shifts_left(): ...


@mistake(
    "shift_right",
    hint="The last target came around to the front. The front belongs to the start token.",
    shows=ignores("start_id"),
    replace=("torch.cat([start, targets[:, :-1]], dim=1)", "targets.roll(1, dims=1)"),
)
def rolls_around(): ...


@mistake(
    "shift_right",
    hint="The first target is replaced and nothing is shifted: place t still holds target t.",
    replace=("targets[:, :-1]", "targets[:, 1:]"),
)
def replaces_the_first_target(): ...


@mistake(
    "shift_right",
    hint="One column too many: the last target is nobody's input.",
    keeps=0.65,
    replace=("targets[:, :-1]", "targets"),
)
def keeps_the_last_target(): ...


@mistake(
    "shift_right",
    hint="The caller's targets are overwritten, and the loss needs them. Make a new tensor.",
    replace=(
        "return torch.cat([start, targets[:, :-1]], dim=1)",
        """
            targets[:, 1:] = targets[:, :-1].clone()
            targets[:, :1] = start
            return targets""",
    ),
)
def shifts_in_place(): ...


@mistake(
    "shift_right",
    hint="The ids come back as floats: the column of start tokens is made of floats. Ids are whole "
    "numbers.",
    shows=has_dtype("float32"),
    replace=(
        "torch.full_like(targets[:, :1], start_id)",
        "torch.ones(len(targets), 1) * start_id",
    ),
)
def starts_with_a_float(): ...


@mistake(
    "shift_right",
    hint="The start token is always 0. Which one it is, is an argument.",
    shows=ignores("start_id"),
    keeps=0.65,
    replace=(
        "torch.full_like(targets[:, :1], start_id)",
        "torch.zeros_like(targets[:, :1])",
    ),
)
def starts_with_zero(): ...


@mistake(
    "shift_right",
    hint="Shifted along the batch: each sentence got its neighbour's words. Time is the "
    "second axis.",
    replace=[
        ("targets[:, :1]", "targets[:1]"),
        ("targets[:, :-1]], dim=1", "targets[:-1]], dim=0"),
    ],
)
def shifts_the_sentences(): ...


@mistake(
    "shift_right",
    hint="Targets without a column have nothing to shift. The docstring asks for a ValueError.",
    replace=("if targets.shape[1] < 1:", "if False:"),
)
def shifts_nothing(): ...


# --- greedy_translate


@mistake(
    "greedy_translate",
    hint="The start token is in the result. It is read and not part of the translation.",
    keeps=0.65,
    replace=("said[:, 1:]", "said"),
)
def returns_the_start_token(): ...


@mistake(
    "greedy_translate",
    hint="The decoder reads the newest word only. It needs all it has said so far.",
    replace=("(src, said,", "(src, said[:, -1:],"),
)
def reads_the_newest_word_only(): ...


@mistake(
    "greedy_translate",
    hint="The logits of the first position are used every time. The newest word has the last.",
    replace=("config)[:, -1]", "config)[:, 0]"),
)
def listens_to_the_first_word(): ...


@mistake(
    "greedy_translate",
    hint="All sentences get the words of the first one. Take the likeliest word of each row.",
    replace=("logits.argmax(dim=-1)", "logits[:1].argmax(dim=-1).expand(len(logits))"),
)
def says_one_thing_to_all(): ...


@mistake(
    "greedy_translate",
    hint="One row's eos ends all rows. Keep a flag for each row.",
    replace=("masked_fill(done, eos_id)", "masked_fill(done.any(), eos_id)"),
)
def ends_with_the_first_row(): ...


@mistake(
    "greedy_translate",
    hint="A sentence goes on after its eos. It should go on with eos.",
    replace=(".masked_fill(done, eos_id)", ""),
)
def never_ends(): ...


@mistake(
    "greedy_translate",
    hint="When all rows are done, columns are missing. There are always max_new of them.",
    replace=(
        "said = torch.cat([said, word[:, None]], dim=1)",
        """
            said = torch.cat([said, word[:, None]], dim=1)
            if done.all():
                break""",
    ),
)
def returns_fewer_columns(): ...


@mistake(
    "greedy_translate",
    hint="Words after the end are filled with 0. They are eos_id.",
    replace=("masked_fill(done, eos_id)", "masked_fill(done, 0)"),
)
def fills_with_zeros(): ...


@mistake(
    "greedy_translate",
    hint="The source mask is not passed on: the model reads the padding.",
    replace=("said, src_mask,", "said, None,"),
)
def forgets_the_source_mask(): ...


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
    "greedy_translate",
    hint="The decoder always begins with 0. The start token is an argument.",
    replace=("start_id)  #", "0)  #"),
)
def begins_with_zero(): ...


@mistake(
    "greedy_translate",
    hint="The decoder begins with a word of the source. It begins with the start token.",
    replace=("torch.full((src.shape[0], 1), start_id)", "src[:, :1]"),
)
def begins_with_the_source(): ...


@mistake(
    "greedy_translate",
    hint="One word is missing: max_new words, the start token not counted.",
    keeps=0.65,
    replace=("range(max_new)", "range(max_new - 1)"),
)
def counts_the_start_token(): ...


@mistake(
    "greedy_translate",
    hint="A negative number of words cannot be right. The docstring asks for a ValueError.",
    replace=("if max_new < 0:", "if False:"),
)
def says_nothing_for_negative_numbers(): ...


# --- patchify


@mistake(
    "patchify",
    hint="A reshape reads memory in order: you have strips of pixel rows, not squares. Which "
    "axes must move?",
    replace=("cut.permute(0, 2, 4, 1, 3, 5)", "cut"),
)
def reshapes_into_strips(): ...


@mistake(
    "patchify",
    hint="Inside a patch your channels come last. The order is (c, row, column).",
    replace=("permute(0, 2, 4, 1, 3, 5)", "permute(0, 2, 4, 3, 5, 1)"),
)
def puts_the_channels_last(): ...


@mistake(
    "patchify",
    hint="Your patches run down first. They run to the right first, like words on a page.",
    replace=("permute(0, 2, 4, 1, 3, 5)", "permute(0, 4, 2, 1, 3, 5)"),
)
def runs_down_first(): ...


@mistake(
    "patchify",
    hint="Inside a patch you go down the columns. Rows come before columns.",
    keeps=0.65,
    replace=("permute(0, 2, 4, 1, 3, 5)", "permute(0, 2, 4, 1, 5, 3)"),
)
def transposes_each_patch(): ...


@mistake(
    "patchify",
    hint="Height and width are exchanged: this is right for square images only.",
    replace=("rows, patch, columns, patch)", "columns, patch, rows, patch)"),
)
def exchanges_height_and_width(): ...


@mistake(
    "patchify",
    hint="The patches of each channel are separate tokens. One patch holds all its channels.",
    replace=[
        ("permute(0, 2, 4, 1, 3, 5)", "permute(0, 1, 2, 4, 3, 5)"),
        (
            "rows * columns, channels * patch * patch",
            "channels * rows * columns, patch * patch",
        ),
    ],
)
def makes_a_token_of_every_channel(): ...


@mistake(
    "patchify",
    hint="Only the first channel is there.",
    replace=(
        "batch, channels, height, width = images.shape",
        """
            images = images[:, :1]
            batch, channels, height, width = images.shape""",
    ),
)
def takes_the_first_channel(): ...


@mistake(
    "patchify",
    hint="Axes are cut at the wrong place: the side of a patch is P, the number of patches H / P.",
    replace=[
        ("rows, patch, columns, patch)", "patch, rows, patch, columns)"),
        ("permute(0, 2, 4, 1, 3, 5)", "permute(0, 3, 5, 1, 2, 4)"),
    ],
)
def takes_every_pth_pixel(): ...


@mistake(
    "patchify",
    hint="`view` refuses an image whose memory has another order. `reshape` takes it.",
    replace=("images.reshape(", "images.view(batch, -1).view("),
)
def views_the_memory(): ...


@mistake(
    "patchify",
    hint="Pixels became float32. Cutting computes nothing: no dtype should change.",
    shows=has_dtype("float32"),
    replace=(
        "return cut",
        """
            cut = cut if cut.dtype == torch.float64 else cut.float()
            return cut""",
    ),
)
def turns_pixels_into_floats(): ...


@mistake(
    "patchify",
    hint="What does not fit into patches passes silently. The docstring asks for a ValueError.",
    replace=(
        "batch, channels, height, width = images.shape",
        """
            patch = max(patch, 1)
            height, width = (size // patch * patch for size in images.shape[2:])
            images = images[:, :, :height, :width]
            batch, channels = images.shape[:2]""",
    ),
)
def drops_what_does_not_fit(): ...


# --- patch_conv_weight


@mistake(
    "patch_conv_weight",
    hint="w is [in, out] and a convolution stores [out, in, …]. A reshape alone mixes outputs.",
    replace=("w.T.reshape(-1,", "w.reshape(w.shape[1],"),
)
def reshapes_without_transposing(): ...


@mistake(
    "patch_conv_weight",
    hint="The rows of w run (c, row, column). Yours are read with the channels last.",
    replace=(
        "w.T.reshape(-1, channels, patch, patch)",
        "w.T.reshape(-1, patch, patch, channels).permute(0, 3, 1, 2)",
    ),
)
def reads_the_channels_last(): ...


@mistake(
    "patch_conv_weight",
    hint="Each kernel is transposed: rows before columns.",
    shows=axes_exchanged(-2, -1),
    keeps=0.65,
    replace=(
        "w.T.reshape(-1, channels, patch, patch)",
        "w.T.reshape(-1, channels, patch, patch).transpose(2, 3)",
    ),
)
def transposes_the_kernels(): ...


@mistake(
    "patch_conv_weight",
    hint="The kernels are flipped. Torch's conv2d does not flip: it is a correlation.",
    replace=(
        "w.T.reshape(-1, channels, patch, patch)",
        "w.T.reshape(-1, channels, patch, patch).flip(2, 3)",
    ),
)
def flips_the_kernels(): ...


@mistake(
    "patch_conv_weight",
    hint="Input and output channels are exchanged: [out, in, height, width].",
    shows=shape_with_axes_exchanged(0, 1),
    replace=(
        "w.T.reshape(-1, channels, patch, patch)",
        "w.T.reshape(-1, channels, patch, patch).transpose(0, 1)",
    ),
)
def puts_the_inputs_first(): ...


@mistake(
    "patch_conv_weight",
    hint="The kernels are averaged over the patch. The weights are moved, nothing is computed.",
    replace=(
        "w.T.reshape(-1, channels, patch, patch)",
        "w.T.reshape(-1, channels, patch, patch) / patch**2",
    ),
)
def averages_over_the_patch(): ...


@mistake(
    "patch_conv_weight",
    hint="No gradient comes back to w: the numbers were copied out of the graph.",
    replace=("w.T", "w.detach().T"),
)
def copies_the_weights(): ...


@mistake(
    "patch_conv_weight",
    hint="Half precision comes back as float32. Moving computes nothing: keep the dtype.",
    shows=has_dtype("float32"),
    replace=("w.T", "(w if w.dtype == torch.float64 else w.float()).T"),
)
def moves_into_float32(): ...


@mistake(
    "patch_conv_weight",
    hint="A w for another patch is refused by a RuntimeError of torch, or not at all. Check first.",
    replace=("if w.shape[0] != channels * patch * patch:", "if False:"),
)
def leaves_the_check_to_torch(): ...


# --- vit_logits


@mistake(
    "vit_logits",
    hint="The mean runs over features. Average over patches, so that D numbers are left.",
    replace=("x.mean(dim=1)", "x.mean(dim=-1)"),
)
def averages_over_features(): ...


@mistake(
    "vit_logits",
    hint="The mean is taken before the norm. Each patch is normalized first, then they are "
    "averaged.",
    keeps=0.65,
    replace=[
        ("layer_norm(x,", "layer_norm(x.mean(dim=1),"),
        ("return x.mean(dim=1)", "return x"),
    ],
)
def averages_before_the_norm(): ...


@mistake(
    "vit_logits",
    hint="lnf_gamma plays no part in your answer. After the last block stands a norm, with lnf's "
    "parameters.",
    shows=ignores("params.lnf_gamma"),
    keeps=0.65,
    replace=('layer_norm(x, params["lnf_gamma"], params["lnf_beta"])', "x"),
)
def forgets_the_norm_at_the_end(): ...


@mistake(
    "vit_logits",
    hint="The table of positions is not read. Without it the model sees a bag of patches.",
    shows=ignores("params.positions"),
    replace=(' + params["positions"]', ""),
)
def sees_a_bag_of_patches(): ...


@mistake(
    "vit_logits",
    hint="The blocks got a causal mask. An image has no future: every patch sees every other.",
    replace=("config.num_heads)", "config.num_heads, causal_mask(x.shape[1]))"),
)
def masks_the_image_causally(): ...


@mistake(
    "vit_logits",
    hint="These are post-norm blocks. A vision transformer has pre-norm blocks here.",
    replace=("pre_norm_block(", "post_norm_block("),
)
def sees_with_post_norm_blocks(): ...


@mistake(
    "vit_logits",
    hint="Only the first patch decides, as if it were a class token. Here the mean over all does.",
    replace=("x.mean(dim=1)", "x[:, 0]"),
)
def takes_the_first_patch(): ...


@mistake(
    "vit_logits",
    hint="This is the sum over patches. The mean is asked for.",
    keeps=0.65,
    replace=("x.mean(dim=1)", "x.sum(dim=1)"),
)
def sums_over_the_patches(): ...


@mistake(
    "vit_logits",
    hint="The largest value over the patches is taken. The mean is asked for.",
    replace=("x.mean(dim=1)", "x.amax(dim=1)"),
)
def takes_the_maximum(): ...


@mistake(
    "vit_logits",
    hint="The bias of the patch embedding, b_patch, is missing.",
    shows=ignores("params.b_patch"),
    keeps=0.65,
    replace=(' + params["b_patch"]', ""),
)
def forgets_the_bias_of_the_patches(): ...


@mistake(
    "vit_logits",
    hint="The bias of the head, b_head, is missing.",
    shows=ignores("params.b_head"),
    keeps=0.65,
    replace=(' + params["b_head"]', ""),
)
def forgets_the_bias_of_the_head(): ...


@mistake(
    "vit_logits",
    hint="Only the first block is used.",
    replace=('params["blocks"]', 'params["blocks"][:1]'),
)
def looks_through_one_block(): ...


@mistake(
    "vit_logits",
    hint="These are probabilities. The function returns logits.",
    shows=sums_to_one(-1),
    keeps=0.65,
    replace=(
        'return x.mean(dim=1) @ params["w_head"] + params["b_head"]',
        'return torch.softmax(x.mean(dim=1) @ params["w_head"] + params["b_head"], dim=-1)',
    ),
)
def returns_class_probabilities(): ...


@mistake(
    "vit_logits",
    hint="Half precision comes back as float32: the dtype of the images should come out.",
    shows=has_dtype("float32"),
    replace=(
        'return x.mean(dim=1) @ params["w_head"] + params["b_head"]',
        """
            logits = x.mean(dim=1) @ params["w_head"] + params["b_head"]
            return logits.float() if logits.dtype == torch.float16 else logits""",
    ),
)
def answers_classes_in_float32(): ...


@mistake(
    "vit_logits",
    hint="Images of another size should be a ValueError that names both numbers.",
    replace=[
        ('if patches.shape[1] != len(params["positions"]):', "if False:"),
        ('if patches.shape[2] != len(params["w_patch"]):', "if False:"),
    ],
)
def takes_images_of_any_size(): ...


# --- attention_distance


@mistake(
    "attention_distance",
    hint="Your distance counts steps along rows and columns. The straight way across a "
    "square is √2 long.",
    keeps=0.65,
    replace=(".pow(2).sum(dim=-1).sqrt()", ".abs().sum(dim=-1)"),
)
def walks_around_the_corner(): ...


@mistake(
    "attention_distance",
    hint="The larger of the two differences is not the distance: across a square it is √2, not 1.",
    keeps=0.65,
    replace=(".pow(2).sum(dim=-1).sqrt()", ".abs().amax(dim=-1)"),
)
def takes_the_larger_difference(): ...


@mistake(
    "attention_distance",
    hint="The root is missing: a patch that is 3 away counts as 9.",
    keeps=0.65,
    replace=(".sqrt()", ""),
)
def averages_squared_distances(): ...


@mistake(
    "attention_distance",
    hint="The root stands outside the average. Distances are averaged, not their squares.",
    keeps=0.65,
    replace=[
        (".sqrt()", ""),
        (".sum(dim=-1).mean(dim=-1)", ".sum(dim=-1).mean(dim=-1).sqrt()"),
    ],
)
def takes_the_root_at_the_end(): ...


@mistake(
    "attention_distance",
    hint="That is the distance in the row of tokens. The patch below is one patch away in "
    "the image.",
    replace=(
        "torch.stack([patch // columns, patch % columns], dim=-1)",
        "patch[:, None]",
    ),
)
def measures_along_the_tokens(): ...


@mistake(
    "attention_distance",
    hint="columns is how many patches stand beside each other. Your grid has that many rows.",
    keeps=0.65,
    replace=(
        "torch.stack([patch // columns, patch % columns], dim=-1)",
        "torch.stack([patch // (n_k // columns), patch % (n_k // columns)], dim=-1)",
    ),
)
def takes_columns_for_rows(): ...


@mistake(
    "attention_distance",
    hint="Your grid is square whatever columns says.",
    keeps=0.65,
    replace=(
        "torch.stack([patch // columns, patch % columns], dim=-1)",
        "torch.stack([patch // math.isqrt(n_k), patch % math.isqrt(n_k)], dim=-1)",
    ),
)
def assumes_a_square_grid(): ...


@mistake(
    "attention_distance",
    hint="Only the column counts in your distance. Rows are as far apart.",
    keeps=0.65,
    replace=(
        "torch.stack([patch // columns, patch % columns], dim=-1)",
        "torch.stack([patch % columns], dim=-1)",
    ),
)
def forgets_the_rows(): ...


@mistake(
    "attention_distance",
    hint="The distances of all patches that look are added up. Their mean is asked for.",
    keeps=0.65,
    replace=(".sum(dim=-1).mean(dim=-1)", ".sum(dim=-1).sum(dim=-1)"),
)
def adds_up_all_queries(): ...


@mistake(
    "attention_distance",
    hint="The weights of a row sum to 1 already: over the patches that are looked at, add; "
    "do not average.",
    keeps=0.65,
    replace=(".sum(dim=-1).mean(dim=-1)", ".mean(dim=-1).mean(dim=-1)"),
)
def averages_over_the_keys_too(): ...


@mistake(
    "attention_distance",
    hint="One number for all heads. Each head has a distance of its own.",
    keeps=0.65,
    replace=(
        "(weights * distances).sum(dim=-1).mean(dim=-1)",
        "(weights * distances).sum(dim=-1).mean().expand(weights.shape[:-2])",
    ),
)
def averages_over_the_heads(): ...


@mistake(
    "attention_distance",
    hint="Your distance is one a patch. The mean over the patches that look is missing.",
    keeps=0.65,
    replace=(".sum(dim=-1).mean(dim=-1)", ".sum(dim=-1)"),
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
    replace=(
        "(weights * distances)",
        "(weights.mean(dim=-1, keepdim=True) * distances)",
    ),
)
def distance_without_the_weights(): ...


@mistake(
    "attention_distance",
    hint="The weight on the patch itself counts too, at distance 0. Yours is left out, and "
    "the rest renormalized.",
    keeps=0.65,
    replace=(
        "return (weights * distances).sum(dim=-1).mean(dim=-1)",
        """

            away = weights * (1 - torch.eye(n_k, dtype=weights.dtype))
            weights = away / away.sum(dim=-1, keepdim=True).clamp(min=1e-12)
            return (weights * distances).sum(dim=-1).mean(dim=-1)
""",
    ),
)
def leaves_out_the_patch_itself(): ...


@mistake(
    "attention_distance",
    hint="The distance is divided by the size of the grid. It is asked for in patches.",
    replace=(
        "(weights * distances)",
        "(weights * distances / distances.amax().clamp(min=1))",
    ),
)
def measures_in_shares_of_the_image(): ...


@mistake(
    "attention_distance",
    hint="float32 weights give a float64 distance: the dtype of weights should come out.",
    shows=has_dtype("float64"),
    keeps=0.65,
    replace=(".to(weights.dtype)", ".double()"),
)
def measures_in_float64(): ...


@mistake(
    "attention_distance",
    hint="Weights that do not belong to such a grid should be a ValueError with the sizes.",
    keeps=0.65,
    replace=(
        "if n_q != n_k or columns < 1 or n_k % columns:",
        """

            columns, weights = max(columns, 1), weights[..., : min(n_q, n_k), : min(n_q, n_k)]
            n_k = weights.shape[-1]
            if False:
""",
    ),
)
def measures_any_grid(): ...


# --- fine_tune


@mistake(
    "fine_tune",
    hint="The old head is still there: with the old classes, and what it said about them. "
    "The new one begins as zeros.",
    replace=(
        'params = params | {"w_head": zeros(len(params["w_head"]), num_classes), "b_head": zeros(num_classes)}',
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
    hint="An old head with as many classes as the new task stays in yours. Its classes were others: the new "
    "head begins as zeros whatever the old one was.",
    replace=(
        'params = params | {"w_head": zeros(len(params["w_head"]), num_classes), "b_head": zeros(num_classes)}',
        """
        if params["w_head"].shape[1] != num_classes:
            params = params | {"w_head": zeros(len(params["w_head"]), num_classes), "b_head": zeros(num_classes)}
        """,
    ),
)
def keeps_a_head_of_the_same_size(): ...


@mistake(
    "fine_tune",
    hint="The new head is made of random numbers. It begins as zeros, so that the first loss "
    "is log C.",
    replace=(
        'zeros(len(params["w_head"]), num_classes)',
        '(zeros(len(params["w_head"]), num_classes) + torch.linspace(-1, 1, num_classes))',
    ),
)
def begins_with_another_head(): ...


@mistake(
    "fine_tune",
    hint="b_head still has what it learned for the old classes.",
    keeps=0.65,
    replace=(
        '"b_head": zeros(num_classes)}',
        '"b_head": torch.cat([params["b_head"], zeros(num_classes)])[:num_classes]}',
    ),
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
    hint="rates plays no part in which parameters move: only the head is trained, whatever "
    "it says.",
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
    keeps=0.65,
    replace=("- rate * w.grad", "- next(iter(rates.values())) * w.grad"),
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
    keeps=0.65,
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
)
def adds_up_the_gradients(): ...


@mistake(
    "fine_tune",
    hint="The loss is the sum over the images. Their mean is asked for.",
    keeps=0.65,
    replace=("config), labels)", 'config), labels, reduction="sum")'),
)
def adds_up_the_losses(): ...


@mistake(
    "fine_tune",
    hint="The images are taken one by one. A step is made on the mean loss of all of them.",
    replace=(
        "loss = torch.nn.functional.cross_entropy(vit_logits(images, params | trained, config), labels)",
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
    keeps=0.65,
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
)
def starts_again_at_each_step(): ...


@mistake(
    "fine_tune",
    hint="Your list has the losses after the steps. The one before each step is asked for.",
    keeps=0.65,
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
)
def lists_the_losses_after_the_steps(): ...


@mistake(
    "fine_tune",
    hint="Only the last loss comes back. A list with one for each step is asked for.",
    keeps=0.65,
    replace=("return losses, params", "return losses[-1:], params"),
)
def lists_the_last_loss_only(): ...


@mistake(
    "fine_tune",
    hint="The losses are tensors. Python floats are asked for, so that nothing keeps the graph.",
    keeps=0.65,
    replace=("losses.append(loss.item())", "losses.append(loss.detach())"),
)
def lists_losses_as_tensors(): ...


@mistake(
    "fine_tune",
    hint="The caller's parameters were changed in place: the pre-trained model is lost.",
    keeps=0.65,
    replace=(
        "stepped = [w.detach() - rate * w.grad for w in leaves[name]]",
        """

            olds = list_tensors(params[name])
            stepped = [old.sub_(rate * w.grad) for old, w in zip(olds, leaves[name], strict=True)]
""",
    ),
)
def spoils_the_pre_trained_model(): ...


@mistake(
    "fine_tune",
    hint="The parameters that come back still ask for gradients. They should be plain tensors.",
    keeps=0.65,
    replace=(
        "return losses, params",
        """

            asking = {name: [w.clone().requires_grad_() for w in list_tensors(params[name])] for name in rates}
            return losses, params | {name: with_tensors(params[name], asking[name]) for name in rates}
""",
    ),
)
def returns_leaves_that_ask_for_gradients(): ...


@mistake(
    "fine_tune",
    hint="Frozen parameters get gradients as well, which are then thrown away. That costs as "
    "much as training them.",
    keeps=0.65,
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
)
def computes_gradients_for_the_frozen(): ...


@mistake(
    "fine_tune",
    hint="A name that params does not have is passed over. It is a slip of the caller's, and "
    "should be a ValueError.",
    keeps=0.65,
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
)
def passes_over_unknown_names(): ...


@mistake(
    "fine_tune",
    hint="A negative step size goes uphill; the docstring asks for a ValueError.",
    keeps=0.65,
    replace=("if rate < 0:", "if False:"),
)
def fine_tunes_at_any_rate(): ...


@mistake(
    "fine_tune",
    hint="A label that is no class should be a ValueError with the label and the number of "
    "classes.",
    keeps=0.65,
    replace=(
        "check_ids(labels, num_classes)",
        "labels = labels.clamp(0, num_classes - 1)",
    ),
)
def takes_any_label(): ...


@mistake(
    "fine_tune",
    hint="The error should say which name is not among the parameters.",
    replace=(
        'f"there are no parameters called {name!r}"',
        '"there are no such parameters"',
    ),
)
def leaves_the_unknown_name_out(): ...


# --- explain_model_size


@mistake(
    "explain_model_size",
    hint="All your blocks have 12 D². A decoder block that reads an encoder has 16 D²: that "
    "is the point of the 213M.",
    replace=[
        ("d_model, num_layers, 1", "d_model, num_blocks, 1"),
        ("num_encoder_layers=num_encoder_layers", "num_encoder_layers=0"),
    ],
)
def counts_identical_blocks(): ...


@mistake(
    "explain_model_size",
    hint="The claim is without the norms: seven decoder and four encoder blocks of D = 1024 have "
    "59 thousand numbers in theirs, enough to round to another million.",
    replace=("biases=False, norms=False", "biases=False, norms=True"),
)
def counts_the_norms(): ...


@mistake(
    "explain_model_size",
    hint="Encoder and decoder need not have the same depth. Try every division.",
    replace=("range(num_blocks)", "(0, num_blocks // 2)"),
)
def tries_equal_halves_only(): ...


@mistake(
    "explain_model_size",
    hint="There may be no encoder at all: 0 encoder blocks is a division, too.",
    replace=("range(num_blocks)", "range(1, num_blocks)"),
)
def always_wants_an_encoder(): ...


@mistake(
    "explain_model_size",
    hint="Without an encoder there is no cross-attention: those blocks have 12 D².",
    replace=(
        'matrices = counts["total"] - counts["embedding"]',
        """
            matrices = counts["total"] - counts["embedding"]
            if num_encoder_layers == 0:
                matrices += 4 * num_layers * d_model**2""",
    ),
)
def gives_all_decoders_cross_attention(): ...


@mistake(
    "explain_model_size",
    hint="The vocabulary is not in the range that was called plausible.",
    replace=("min(max(wanted, min_vocab), max_vocab)", "max(wanted, 1)"),
)
def takes_any_vocabulary(): ...


@mistake(
    "explain_model_size",
    hint="The whole range counts, not only its smallest vocabulary.",
    replace=("min(max(wanted, min_vocab), max_vocab)", "min_vocab"),
)
def tries_the_smallest_vocabulary(): ...


@mistake(
    "explain_model_size",
    hint="This is the answer for the lecture's numbers, whatever was asked.",
    replace=(
        "for num_encoder_layers in",
        """
            return 6, 6, 36_000
            for num_encoder_layers in""",
    ),
)
def answers_the_lecture(): ...


@mistake(
    "explain_model_size",
    hint="The embedding counts twice. It is tied here: V·D once.",
    replace=[
        ("/ d_model)", "/ (2 * d_model))"),
        ("matrices + vocab_size * d_model", "matrices + 2 * vocab_size * d_model"),
    ],
)
def counts_the_embedding_twice(): ...


@mistake(
    "explain_model_size",
    hint="All blocks are decoder blocks or all are encoder blocks in your evidence: "
    "num_layers is 0.",
    replace=("range(num_blocks)", "(num_blocks, *range(num_blocks))"),
)
def leaves_the_decoder_empty(): ...


# --- slips that strangers made


@mistake(
    "decoder_lm",
    hint="config.tied decides in your model. Params do: one that has unembed is not tied.",
    replace=('if "unembed" in params:', 'if "unembed" in params and not config.tied:'),
)
def believes_the_config_about_tying(): ...


@mistake(
    "generate",
    hint="A prompt without a token is left to the model, which fails with an error of torch: the "
    "docstring asks for a ValueError.",
    replace=(" or prompt.shape[1] < 1", ""),
)
def leaves_an_empty_prompt_to_the_model(): ...


@mistake(
    "encoder_decoder",
    hint="The sinusoids are float32. Added to half-precision words they make the whole stream float32, "
    "and its first product with a weight fails. Bring them to the dtype of the words.",
    replace=[(".to(memory.dtype)", ""), (".to(y.dtype)", "")],
)
def leaves_the_sinusoids_in_float32(): ...


@mistake(
    "shift_right",
    hint="Targets without a column get an answer, and there is nothing to shift. "
    "The docstring asks for a ValueError.",
    replace=[
        ("if targets.shape[1] < 1:", "if False:"),
        (
            "torch.full_like(targets[:, :1], start_id)",
            "targets.new_full((len(targets), 1), start_id)",
        ),
    ],
)
def starts_where_nothing_is_said(): ...


@mistake(
    "patchify",
    hint="You look at the area: 5 x 9 pixels divide by 3 x 3, and 5 rows do not divide by 3. Look at "
    "H and at W.",
    replace=(
        "height % patch or width % patch",
        "height * width % (patch * patch)",
    ),
)
def looks_at_the_area(): ...


@mistake(
    "attention_distance",
    hint="Half-precision weights give a float32 distance: the grid's dtype decides in your answer. The "
    "dtype of weights should come out.",
    replace=(
        ".to(weights.dtype)",
        ".to(torch.promote_types(weights.dtype, torch.float32))",
    ),
)
def measures_half_precision_in_float32(): ...


@mistake(
    "fine_tune",
    hint="The new head stands only where it has a step size. A frozen head is new as well: it has as "
    "many columns as there are classes, and zeros.",
    replace=(
        'params = params | {"w_head": zeros(len(params["w_head"]), num_classes), "b_head": zeros(num_classes)}',
        """
        new = {"w_head": zeros(len(params["w_head"]), num_classes), "b_head": zeros(num_classes)}
        params = params | {name: head for name, head in new.items() if name in rates}""",
    ),
)
def makes_a_new_head_only_where_it_learns(): ...


@mistake(
    "explain_model_size",
    hint="Only the smallest and the largest vocabulary are tried. Between them are others, which may be "
    "the only ones that give the claim.",
    replace=(
        """
        wanted = round((millions * 1_000_000 - matrices) / d_model)  # the vocabulary that hits the claim exactly
        vocab_size = min(max(wanted, min_vocab), max_vocab)  # the nearest plausible one
        if round((matrices + vocab_size * d_model) / 1_000_000) == millions:
            return num_encoder_layers, num_layers, vocab_size
        """,
        """
        for vocab_size in (min_vocab, max_vocab):
            if round((matrices + vocab_size * d_model) / 1_000_000) == millions:
                return num_encoder_layers, num_layers, vocab_size
        """,
    ),
)
def tries_the_ends_of_the_range(): ...


@mistake(
    "explain_model_size",
    keeps=0.65,
    hint="213.6 million are 214 million: the claim is rounded. Yours cuts the rest off.",
    replace=(
        "round((matrices + vocab_size * d_model) / 1_000_000)",
        "(matrices + vocab_size * d_model) // 1_000_000",
    ),
)
def cuts_off_the_millions(): ...


@mistake(
    "train_step",
    hint="You ask the caller's own tensors for gradients, and they go on asking afterwards. Make leaves "
    "of your own: detached copies.",
    replace=("tensor.detach().clone().requires_grad_()", "tensor.requires_grad_()"),
)
def asks_the_callers_tensors_for_gradients(): ...


@mistake(
    "filtered_probabilities",
    hint="The token with which the sum crosses p is dropped. It belongs to the set: without it the sum "
    "does not reach p.",
    keeps=0.65,
    replace=("before >= top_p", "(before > 0) & (before + p > top_p + 1e-12)"),
)
def stays_below_p_with_one_token_at_least(): ...


@mistake(
    "filtered_probabilities",
    hint="Where the sum is p exactly, your set has one token more. The smallest set that reaches p ends "
    "there: compare what stands before a token with >=.",
    replace=("before >= top_p", "before > top_p"),
)
def goes_on_where_p_is_reached_exactly(): ...


@mistake(
    "filtered_probabilities",
    keeps=0.65,
    hint="You keep tokens that are likely beside the likeliest one (min-p). Top-p keeps the smallest set "
    "whose sum reaches p.",
    replace=("before >= top_p", "p < top_p * p.amax(dim=-1, keepdim=True)"),
)
def compares_with_the_likeliest(): ...


@mistake(
    "count_parameters",
    hint="You give the unembedding a bias. Embedding and unembedding have none, whatever config.biases "
    "says.",
    replace=(
        "0 if c.tied else d * c.vocab_size",
        "0 if c.tied else (d + (1 if c.biases else 0)) * c.vocab_size",
    ),
)
def gives_the_unembedding_a_bias(): ...


@mistake(
    "count_parameters",
    hint="A bias has one number for each output. The second matrix of the MLP leads back to D.",
    replace=("(f + d if c.biases", "(2 * f if c.biases"),
)
def takes_two_wide_biases_in_the_mlp(): ...


@mistake(
    "count_parameters",
    hint="A bias has one number for each output. That of the output projection leads back to D, not "
    "to H·d.",
    replace=("(3 * inner + d if c.biases", "(4 * inner if c.biases"),
)
def takes_four_equal_biases_in_attention(): ...


@mistake(
    "decoder_lm",
    keeps=0.65,
    hint="The table of positions is not read: whatever stands in it, your logits stay the same. (Sines "
    "and cosines belong to the other model of this notebook.)",
    shows=ignores("params.positions"),
    replace=(
        'params["positions"][:n]',
        'sinusoidal_positions(n, params["embed"].shape[1]).to(params["embed"].dtype)',
    ),
)
def takes_sinusoidal_positions(): ...


@mistake(
    "shift_right",
    keeps=0.65,
    hint="You roll along the batch: each sentence gets its neighbour's words. Time is the second axis.",
    replace=(
        "return torch.cat([start, targets[:, :-1]], dim=1)",
        "return torch.cat([start, targets.roll(1, dims=0)[:, 1:]], dim=1)",
    ),
)
def rolls_the_sentences(): ...


@mistake(
    "patchify",
    hint="A patch of 0 pixels is not looked at: a remainder by 0 is an error of Python's own. The "
    "docstring asks for a ValueError.",
    replace=("patch < 1 or height % patch", "height % patch"),
)
def divides_by_a_patch_of_nothing(): ...


@mistake(
    "fine_tune",
    keeps=0.65,
    hint="torch.zeros(…) without a dtype makes a float32 head, whatever the model is. The new head has "
    "the dtype of the old one.",
    replace=('zeros = params["w_head"].new_zeros', "zeros = torch.zeros"),
)
def head_in_the_default_dtype(): ...
