"""Wrong answers that people give about experiments, each with one wrong idea."""

from autograder.suite import (
    has_dtype,
    ignores,
    mistake,
)

# ── decoder
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "decoder",
    hint="With post-norm the norm comes after the addition: norm(x + f(x)). Yours is before f.",
    replace=(
        "x = norm(x + drop(sublayer(x, p)), gain)",
        "x = x + drop(sublayer(norm(x, gain), p))",
    ),
    keeps=0.65,
)
def post_norm_is_pre_norm(): ...


@mistake(
    "decoder",
    hint="norm(f(x)) + x is a third way. In post-norm the sum is normalized, and the old x with it.",
    replace=(
        "norm(x + drop(sublayer(x, p)), gain)",
        "x + drop(norm(sublayer(x, p), gain))",
    ),
    keeps=0.65,
)
def normalizes_what_is_added(): ...


@mistake(
    "decoder",
    hint="In a post-norm model no norm stands before the head: the last block ends with one.",
    replace=(
        """
        if setup["norm"] != "post":
            x = norm(x, params["norm_f"])
        """,
        """
        x = norm(x, params.get("norm_f", torch.ones_like(x[0, 0])))
        """,
    ),
    keeps=0.65,
)
def normalizes_twice_at_the_end(): ...


@mistake(
    "decoder",
    hint="Before the head stands one more norm, norm_f, in all models but those with post-norm.",
    replace=('x = norm(x, params["norm_f"])', "pass"),
    keeps=0.5,
)
def forgets_the_last_norm(): ...


@mistake(
    "decoder",
    hint='With "rms" every norm is an RMS norm, the last one included.',
    replace=('x = norm(x, params["norm_f"])', 'x = layer_norm(x, params["norm_f"])'),
    keeps=0.65,
)
def ends_with_a_layer_norm(): ...


@mistake(
    "decoder",
    hint='The setting "rms" asks for another norm, and your model has layer norms there.',
    replace=('rms_norm if setup["norm"] == "rms" else layer_norm', "layer_norm"),
    keeps=0.65,
)
def has_layer_norms_for_rms_norms(): ...


@mistake(
    "decoder",
    hint='With positions "none" or "rotary" no table is added. In yours tokens know where they stand.',
    replace=(
        """
        if setup["positions"] == "learned":
            x = x + params["positions"][:n]
        """,
        """
        if setup["positions"] != "learned":
            x = x + torch.arange(n)[:, None] * params["embed"][0]
        else:
            x = x + params["positions"][:n]
        """,
    ),
    keeps=0.65,
)
def gives_positions_to_a_model_without(): ...


@mistake(
    "decoder",
    hint="Learned positions are added to the embeddings. Does your model know which token is first?",
    replace=('x = x + params["positions"][:n]', "pass"),
    shows=ignores("params.positions"),
    keeps=0.5,
)
def forgets_the_learned_positions(): ...


@mistake(
    "decoder",
    hint="Rotary positions turn queries and keys. Only one of the two is turned in yours.",
    replace=(
        "q, k = rotary_positions(q), rotary_positions(k)",
        "q = rotary_positions(q)",
    ),
    keeps=0.7,
)
def turns_queries_alone(): ...


@mistake(
    "decoder",
    hint="Rotary positions turn queries and keys, not values: a value has no position.",
    replace=(
        "q, k = rotary_positions(q), rotary_positions(k)",
        "q, k, v = rotary_positions(q), rotary_positions(k), rotary_positions(v)",
    ),
    keeps=0.7,
)
def turns_values_too(): ...


@mistake(
    "decoder",
    hint="Rotary positions turn the features of each head, after the heads are split.",
    replace=(
        """
        q = split_heads(x @ p["w_q"], setup["num_heads"])  # [B, H, N, d]
        k = split_heads(x @ p["w_k"], setup["num_kv_heads"])  # [B, H_kv, N, d]
        v = split_heads(x @ p["w_v"], setup["num_kv_heads"])
        if setup["positions"] == "rotary":
            q, k = rotary_positions(q), rotary_positions(k)
        """,
        """
        q, k = x @ p["w_q"], x @ p["w_k"]
        v = split_heads(x @ p["w_v"], setup["num_kv_heads"])
        if setup["positions"] == "rotary":
            q, k = rotary_positions(q), rotary_positions(k)
        q, k = split_heads(q, setup["num_heads"]), split_heads(k, setup["num_kv_heads"])
        """,
    ),
    keeps=0.7,
)
def turns_before_the_heads_are_split(): ...


@mistake(
    "decoder",
    hint="With a SwiGLU, silu(x W1) is multiplied by x W2. The activation is on the other one in yours.",
    replace=(
        '(silu(x @ p["w1"]) * (x @ p["w2"])) @ p["w3"]',
        '((x @ p["w1"]) * silu(x @ p["w2"])) @ p["w3"]',
    ),
    keeps=0.7,
)
def activates_the_other_branch(): ...


@mistake(
    "decoder",
    hint="The gate of a SwiGLU is a SiLU, x times its sigmoid. A sigmoid alone is a GLU.",
    replace=('silu(x @ p["w1"])', 'torch.sigmoid(x @ p["w1"])'),
    keeps=0.7,
)
def has_a_glu(): ...


@mistake(
    "decoder",
    hint="This GELU is GPT-2's approximation by tanh. The setting asks for the exact one, with the error "
    "function, which is given above.",
    replace=(
        "else gelu",
        'else lambda h: torch.nn.functional.gelu(h, approximate="tanh")',
    ),
    keeps=0.65,
)
def approximates_the_gelu_by_tanh(): ...


@mistake(
    "decoder",
    hint="A misspelt setting goes through and tests nothing: what is none of CHOICES is refused.",
    replace=(
        """
        if setup[name] not in choices:
            raise ValueError(f"{name} is {setup[name]!r}, which is none of {choices}")
        """,
        """
        pass
        """,
    ),
    keeps=0.85,
)
def takes_a_misspelt_setting(): ...


@mistake(
    "decoder",
    hint="Dropout is applied to what a sublayer adds, not to the stream itself: what is lost there is "
    "lost for all later blocks.",
    replace=[
        (
            "x = norm(x + drop(sublayer(x, p)), gain)",
            "x = norm(drop(x + sublayer(x, p)), gain)",
        ),
        (
            "x = x + drop(sublayer(norm(x, gain), p))",
            "x = drop(x + sublayer(norm(x, gain), p))",
        ),
    ],
    keeps=0.75,
)
def drops_from_the_stream(): ...


@mistake(
    "decoder",
    hint="The embeddings pass through drop too, together with their positions.",
    replace=("x = drop(x)", "pass"),
    keeps=0.75,
)
def keeps_all_embeddings(): ...


@mistake(
    "decoder",
    hint="drop comes in as a function and is called. Your model is the same with it and without.",
    replace=("drop = drop if drop is not None else lambda x: x", "drop = lambda x: x"),
    keeps=0.75,
)
def never_drops(): ...


@mistake(
    "decoder",
    hint="With tied = False the head is unembed, not the embedding.",
    replace=(
        '(params["embed"].T if setup["tied"] else params["unembed"])',
        'params["embed"].T',
    ),
    keeps=0.75,
    shows=ignores("params.unembed"),
)
def is_always_tied(): ...


@mistake(
    "decoder",
    hint="A text longer than the table of positions is refused with both numbers; yours lets torch complain, or broadcasts a table of one row.",
    replace=(
        'if setup["positions"] == "learned" and n > len(params["positions"]):',
        "if False:",
    ),
)
def leaves_long_texts_to_torch(): ...


@mistake(
    "decoder",
    hint="drop is applied to the embeddings whatever the positions are; yours does so only where they are learned.",
    replace=(
        '        x = x + params["positions"][:n]\n    x = drop(x)',
        '        x = drop(x + params["positions"][:n])',
    ),
)
def drops_from_learned_positions_alone(): ...


# ── training_flops
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "training_flops",
    hint="The number of parts changes your answer. A part is a piece of the batch: all parts together cost "
    "what the batch costs.",
    replace=('3 * setup["batch"]', '3 * setup["parts"] * setup["batch"]'),
)
def counts_each_part_as_a_batch(): ...


@mistake(
    "training_flops",
    hint="A step is a forward and a backward pass, and a backward pass costs two forward passes.",
    replace=("return 3 * setup", "return setup"),
    keeps=0.5,
)
def counts_the_forward_pass_alone(): ...


@mistake(
    "training_flops",
    hint="The backward pass computes two products for each one of the forward pass.",
    replace=("return 3 * setup", "return 2 * setup"),
    keeps=0.5,
)
def counts_a_cheap_backward_pass(): ...


@mistake(
    "training_flops",
    hint="A multiply-add is two operations: your count is half of what it should be.",
    replace=(
        'return 3 * setup["batch"] * n * a_token',
        'return 3 * setup["batch"] * n * a_token // 2',
    ),
    keeps=0.5,
)
def counts_a_multiply_add_once(): ...


@mistake(
    "training_flops",
    hint="Scores and weighted sums have no parameters, and cost 4 N D a token and layer all the same.",
    replace=("attention = 2 * 2 * n * d", "attention = 0"),
    keeps=0.5,
)
def forgets_the_scores(): ...


@mistake(
    "training_flops",
    hint="Scores and weighted sums of the values cost 4 N D a token and layer, and you count half of it. Both "
    "are products with all N tokens: what a causal mask hides is computed nevertheless.",
    replace=("attention = 2 * 2 * n * d", "attention = 2 * n * d"),
    keeps=0.5,
)
def counts_half_of_scores_and_sums(): ...


@mistake(
    "training_flops",
    hint="The mask takes the future away after the product has computed it: scores and weighted sums cost "
    "4 N D a token and layer, and you count their causal part.",
    replace=("attention = 2 * 2 * n * d", "attention = 2 * (n + 1) * d"),
    keeps=0.5,
)
def counts_the_causal_triangle(): ...


@mistake(
    "training_flops",
    hint="The head is a product with [D, V], at every token.",
    replace=(" + head", ""),
    keeps=0.5,
)
def forgets_the_head(): ...


@mistake(
    "training_flops",
    hint="A head that is the embedding costs what any other head costs: it is multiplied all the same.",
    replace=(
        'head = 2 * setup["vocab_size"] * d',
        'head = 0 if setup["tied"] else 2 * setup["vocab_size"] * d',
    ),
    keeps=0.5,
)
def has_a_free_tied_head(): ...


@mistake(
    "training_flops",
    hint="Looking a row of the embedding up is no product.",
    replace=("+ head", "+ 2 * head"),
    keeps=0.5,
)
def pays_for_looking_up(): ...


@mistake(
    "training_flops",
    hint="A SwiGLU has three matrices, the other MLPs two.",
    replace=('(3 if setup["activation"] == "swiglu" else 2)', "2"),
    keeps=0.65,
)
def counts_two_matrices_of_a_swiglu(): ...


@mistake(
    "training_flops",
    hint="With fewer heads of keys, w_k and w_v are narrower.",
    replace=("d_kv = d // heads * kv_heads  # width of all keys", "d_kv = d"),
    keeps=0.65,
)
def counts_full_keys(): ...


@mistake(
    "training_flops",
    hint="Shared keys make projections narrower. Every head of queries still has scores with all keys.",
    replace=("attention = 2 * 2 * n * d", "attention = 2 * 2 * n * d_kv"),
    keeps=0.65,
)
def shares_the_scores(): ...


@mistake(
    "training_flops",
    hint="The batch is cut into parts to save memory. All of it is computed nevertheless.",
    replace=(
        'return 3 * setup["batch"] * n * a_token',
        'return 3 * setup["batch"] * n * a_token // setup["parts"]',
    ),
    keeps=0.65,
)
def divides_by_the_parts(): ...


@mistake(
    "training_flops",
    hint="Heads that do not divide the width have no width of their own: ValueError.",
    replace=("d % heads != 0 or heads % kv_heads != 0", "False"),
    keeps=0.85,
)
def takes_any_heads(): ...


@mistake(
    "training_flops",
    hint="A division made a float of the count. FLOPs are counted with int, exactly beyond 2⁵³.",
    replace=("d_kv = d // heads * kv_heads", "d_kv = d / heads * kv_heads"),
)
def divides_into_floats(): ...


@mistake(
    "training_flops",
    hint="Heads that are no multiple of the key heads are not refused.",
    replace=("if d % heads != 0 or heads % kv_heads != 0:", "if d % heads != 0:"),
)
def does_not_divide_the_heads(): ...


# ── one_change
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "one_change",
    hint="A SwiGLU with the same F has half as many parameters again: you would compare sizes.",
    replace=('setup["d_ff"] = base["d_ff"] * 2 // 3', "pass"),
    keeps=0.7,
)
def keeps_the_width_of_a_swiglu(): ...


@mistake(
    "one_change",
    hint="The other way round, from a SwiGLU to two matrices, the width becomes three halves.",
    replace=('setup["d_ff"] = base["d_ff"] * 3 // 2', "pass"),
    keeps=0.7,
)
def keeps_the_width_after_a_swiglu(): ...


@mistake(
    "one_change",
    hint="The width changes only where the activation does. Yours changes with other entries too.",
    replace=(
        'if field == "activation" and value == "swiglu"',
        'if setup["activation"] == "swiglu"',
    ),
    keeps=0.75,
)
def narrows_every_swiglu(): ...


@mistake(
    "one_change",
    hint="Rounded down: 10 · 2/3 is 6.",
    replace=('base["d_ff"] * 2 // 3', 'round(base["d_ff"] * 2 / 3)'),
    keeps=0.75,
)
def rounds_to_the_nearest(): ...


@mistake(
    "one_change",
    hint="Two thirds of the width, not a half: three narrow matrices for two wide ones.",
    replace=('base["d_ff"] * 2 // 3', 'base["d_ff"] // 2'),
    keeps=0.7,
)
def halves_the_width(): ...


@mistake(
    "one_change",
    hint="A name that no setup has changes nothing in the model: it should be refused.",
    replace=(
        """
        if field not in base:
            raise ValueError(f"a setup has no entry {field!r}")
        if value == base[field]:
        """,
        """
        if value == base.get(field):
        """,
    ),
    keeps=0.7,
)
def takes_an_unknown_entry(): ...


@mistake(
    "one_change",
    hint="A variant that is the base tests nothing: it should be refused.",
    replace=("if value == base[field]:", "if False:"),
    keeps=0.7,
)
def takes_what_is_there_already(): ...


@mistake(
    "one_change",
    hint="The base is changed: the next experiment begins from something else. Make a new dict.",
    replace=[
        (
            "setup = {**base, field: value}",
            "old, setup = base['activation'], base\nsetup[field] = value",
        ),
        ('base["activation"] == "swiglu":', 'old == "swiglu":'),
    ],
    keeps=0.7,
)
def changes_the_base(): ...


@mistake(
    "one_change",
    hint="False and 0 are values too. Is a value left out wherever Python counts it as false?",
    replace=(
        "setup = {**base, field: value}",
        "setup = {**base, field: value or base[field]}",
    ),
    keeps=0.65,
)
def leaves_false_values_out(): ...


@mistake(
    "one_change",
    hint="From one MLP of two matrices to another the width stays: it changes to and from a SwiGLU alone.",
    replace=(
        'elif field == "activation" and base["activation"] == "swiglu":',
        'elif field == "activation":',
    ),
)
def widens_for_every_activation(): ...


# ── smoothed_loss
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "smoothed_loss",
    hint="s is the weight of all tokens, 1 - s that of the right one. You have them exchanged.",
    replace=(
        "(1 - smoothing) * of_target + smoothing * of_all",
        "smoothing * of_target + (1 - smoothing) * of_all",
    ),
    keeps=0.5,
)
def exchanges_the_weights(): ...


@mistake(
    "smoothed_loss",
    hint="The loss does not change with smoothing.",
    replace=("((1 - smoothing) * of_target + smoothing * of_all)", "of_target"),
    keeps=0.5,
    shows=ignores("smoothing"),
)
def does_not_smooth(): ...


@mistake(
    "smoothed_loss",
    hint="All V tokens share s: each gets s / V. Yours get s each.",
    replace=("log_p.mean(dim=-1).sum()", "log_p.sum()"),
    keeps=0.6,
)
def gives_each_token_all_of_it(): ...


@mistake(
    "smoothed_loss",
    hint="s is shared by all V tokens alike, the right one included. You leave it out.",
    replace=(
        "of_all = log_p.mean(dim=-1).sum()",
        "of_all = (log_p.sum() - of_target) / (logits.shape[-1] - 1)",
    ),
    keeps=0.6,
)
def leaves_the_right_token_out(): ...


@mistake(
    "smoothed_loss",
    hint="The smoothing is added, and the right token keeps its full weight: together more than 1.",
    replace=("(1 - smoothing) * of_target", "of_target"),
    keeps=0.6,
)
def adds_the_smoothing(): ...


@mistake(
    "smoothed_loss",
    hint="The mean is over the targets that count, not over all places.",
    replace=("max(1, int(counts.sum()))", "targets.numel()"),
    keeps=0.7,
)
def divides_by_all_places(): ...


@mistake(
    "smoothed_loss",
    hint="A sum grows with the batch. The loss is the mean.",
    replace=(" / max(1, int(counts.sum()))", ""),
    keeps=0.5,
)
def sums_the_losses(): ...


@mistake(
    "smoothed_loss",
    hint="Which targets are ignored is an argument: not every text uses -100.",
    replace=("targets != ignore_index", "targets != -100"),
    keeps=0.7,
    shows=ignores("ignore_index"),
)
def ignores_minus_100_only(): ...


@mistake(
    "smoothed_loss",
    hint="Targets that are ignored still have a share in the smoothing part of yours.",
    replace=(
        "of_all = log_p.mean(dim=-1).sum()",
        "of_all = torch.log_softmax(logits, dim=-1).mean(dim=-1).sum()",
    ),
    keeps=0.7,
)
def smooths_over_ignored_targets(): ...


@mistake(
    "smoothed_loss",
    hint="Without a target that counts, you divide by zero: the loss should be 0.",
    replace=("max(1, int(counts.sum()))", "int(counts.sum())"),
    keeps=0.85,
)
def has_no_loss_without_targets(): ...


@mistake(
    "smoothed_loss",
    hint="The loss is positive: minus the logarithm.",
    replace=("return -((1", "return ((1"),
    keeps=0.5,
)
def forgets_the_minus(): ...


@mistake(
    "smoothed_loss",
    hint="The logarithm of a probability that is 0 in floating point is infinite: take log_softmax.",
    replace=(
        "torch.log_softmax(logits[counts], dim=-1)",
        "torch.softmax(logits[counts], dim=-1).log()",
    ),
    keeps=0.85,
)
def takes_the_logarithm_of_a_softmax(): ...


@mistake(
    "smoothed_loss",
    hint="A smoothing of 1 asks the model for nothing, and one below 0 for the wrong token: ValueError.",
    replace=("not 0 <= smoothing < 1", "False"),
    keeps=0.85,
)
def takes_any_smoothing(): ...


@mistake(
    "smoothed_loss",
    hint="Where no target counts a new zero comes back, and nothing connects it with the logits: backward fails. Sum what is left, which is 0.",
    replace=(
        "counts = targets != ignore_index  # [B, N]",
        "\n    counts = targets != ignore_index  # [B, N]\n    if not counts.any():\n        return torch.tensor(0.0, dtype=logits.dtype)\n",
    ),
)
def returns_a_new_zero(): ...


@mistake(
    "smoothed_loss",
    hint="s is the share of all V tokens, the mean over V: you divide their sum by V - 1.",
    replace=(
        "+ smoothing * of_all)",
        "+ smoothing * of_all * logits.shape[-1] / (logits.shape[-1] - 1))",
    ),
    keeps=0.65,
)
def shares_among_one_token_too_few(): ...


# ── accumulated_gradients
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "accumulated_gradients",
    hint="Each part's loss is a mean over its own targets. Added up as they are, they are too large by the "
    "number of parts.",
    replace=("share = int((y != -100).sum()) / total", "share = 1.0"),
    keeps=0.5,
)
def accumulates_without_dividing(): ...


@mistake(
    "accumulated_gradients",
    hint="The mean of the parts' means is that of the batch only where all parts have as many targets.",
    replace=("share = int((y != -100).sum()) / total", "share = 1 / parts"),
    keeps=0.6,
)
def takes_the_mean_of_means(): ...


@mistake(
    "accumulated_gradients",
    hint="A part's share is that of the targets that count, not that of its rows.",
    replace=("share = int((y != -100).sum()) / total", "share = len(x) / len(inputs)"),
    keeps=0.65,
)
def shares_by_rows(): ...


@mistake(
    "accumulated_gradients",
    hint="The gradients are those of the last part: they should add up.",
    replace=("sum_ += gradient", "sum_.copy_(gradient)"),
    keeps=0.5,
)
def keeps_the_last_part(): ...


@mistake(
    "accumulated_gradients",
    hint="The loss is that of the last part: losses add up like gradients.",
    replace=("loss += part.item()", "loss = part.item()"),
    keeps=0.5,
)
def returns_the_last_loss(): ...


@mistake(
    "accumulated_gradients",
    hint="The whole batch goes through the decoder at once: that is what the parts are there to avoid.",
    replace=("rows = -(-len(inputs) // parts)  # rounded up", "rows = len(inputs)"),
    keeps=0.75,
)
def computes_the_batch_at_once(): ...


@mistake(
    "accumulated_gradients",
    hint="The last rows are lost where the parts do not divide the batch.",
    replace=(
        """
        rows = -(-len(inputs) // parts)  # rounded up
        for x, y in zip(inputs.split(rows), targets.split(rows), strict=True):
        """,
        """
        rows = len(inputs) // parts
        for place in range(parts):
            x, y = (ids[place * rows : (place + 1) * rows] for ids in (inputs, targets))
        """,
    ),
    keeps=0.75,
)
def loses_the_last_rows(): ...


@mistake(
    "accumulated_gradients",
    hint="The setup has a smoothing: training uses it.",
    replace=(', y, setup["smoothing"])', ", y)"),
    keeps=0.65,
)
def trains_without_smoothing(): ...


@mistake(
    "accumulated_gradients",
    hint="drop is there for training: it belongs into the decoder's call.",
    replace=("decoder(x, weights, setup, drop)", "decoder(x, weights, setup)"),
    keeps=0.75,
)
def trains_without_dropout(): ...


@mistake(
    "accumulated_gradients",
    hint="Targets of -100 do not count in the number of targets either.",
    replace=("total = max(1, int((targets != -100).sum()))", "total = targets.numel()"),
    keeps=0.7,
)
def counts_ignored_targets(): ...


@mistake(
    "accumulated_gradients",
    hint="A batch of five rows cannot be cut into seven parts, or into none: ValueError.",
    replace=("if not 1 <= parts <= len(inputs):", "parts = max(1, parts)\nif False:"),
    keeps=0.85,
)
def takes_any_number_of_parts(): ...


@mistake(
    "accumulated_gradients",
    hint="The parameters that came in have moved. The step is the optimizer's, not yours.",
    replace=(
        "return loss, gradients",
        """
        for t, gradient in zip(list_tensors(params), gradients, strict=True):
            t -= 0.01 * gradient
        return loss, gradients
        """,
    ),
    keeps=0.75,
)
def makes_a_step_itself(): ...


@mistake(
    "accumulated_gradients",
    hint="More parts than rows leave parts without a row: ValueError.",
    replace=[
        ("if not 1 <= parts <= len(inputs):", "if parts < 1:"),
        (
            "zip(inputs.split(rows), targets.split(rows), strict=True)",
            "zip(inputs.split(rows), targets.split(rows))",
        ),
    ],
)
def takes_more_parts_than_rows(): ...


# ── training_curve
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "training_curve",
    hint="The curve is measured on the text that the model is trained on: whoever learns it by heart wins.",
    replace=(
        "held_out_loss(model, held_out_ids,",
        "held_out_loss(model, training_ids,",
    ),
    shows=ignores("held_out_ids"),
)
def measures_on_the_training_text(): ...


@mistake(
    "training_curve",
    hint="The model is trained on the held-out text. Nothing may be learned from that.",
    replace=("training_batch(training_ids,", "training_batch(held_out_ids,"),
    shows=ignores("training_ids"),
)
def trains_on_the_held_out_text(): ...


@mistake(
    "training_curve",
    hint="The first number of each point should be the FLOPs that were spent, and is the step.",
    replace=(
        "curve.append(((step + 1) * cost, measured(params)))",
        "curve.append((step + 1, measured(params)))",
    ),
    keeps=0.65,
)
def counts_steps(): ...


@mistake(
    "training_curve",
    hint="Dropout is at work while the loss is measured. A measurement uses the whole model.",
    replace=(
        "return decoder(ids, weights, setup)  # nothing is dropped",
        'return decoder(ids, weights, setup, dropout_at(setup["dropout"], seed, 0))',
    ),
    keeps=0.7,
)
def drops_while_measuring(): ...


@mistake(
    "training_curve",
    hint="The setup has a dropout, and training should use it: dropout_at the step.",
    replace=('drop = dropout_at(setup["dropout"], seed, step)', "drop = None"),
    keeps=0.7,
)
def never_uses_dropout(): ...


@mistake(
    "training_curve",
    hint="The same numbers are dropped in every step: the dice are those of the step.",
    replace=(
        'dropout_at(setup["dropout"], seed, step)',
        'dropout_at(setup["dropout"], seed, 0)',
    ),
    keeps=0.75,
)
def drops_the_same_numbers(): ...


@mistake(
    "training_curve",
    hint="Every step sees the same batch. Batches come from the seed and the step.",
    replace=(
        "training_batch(training_ids, setup, seed, step)",
        "training_batch(training_ids, setup, seed, 0)",
    ),
    keeps=0.5,
)
def trains_on_one_batch(): ...


@mistake(
    "training_curve",
    hint="The seed changes nothing: batches should come from it.",
    replace=(
        "training_batch(training_ids, setup, seed, step)",
        "training_batch(training_ids, setup, 0, step)",
    ),
    keeps=0.75,
)
def ignores_the_seed(): ...


@mistake(
    "training_curve",
    hint="Batch t belongs to step t, counted from 0. Yours are one ahead.",
    replace=(
        "training_batch(training_ids, setup, seed, step)",
        "training_batch(training_ids, setup, seed, step + 1)",
    ),
    keeps=0.5,
)
def begins_with_batch_1(): ...


@mistake(
    "training_curve",
    hint="The rate climbs and falls: rate_at the step, with the setup's rate as its peak.",
    replace=('rate_at(step, steps, setup["rate"])', 'setup["rate"]'),
    keeps=0.5,
)
def has_a_constant_rate(): ...


@mistake(
    "training_curve",
    hint="Steps count from 0 in rate_at: yours are one ahead.",
    replace=("rate_at(step, steps,", "rate_at(step + 1, steps,"),
    keeps=0.5,
)
def is_a_step_ahead_with_the_rate(): ...


@mistake(
    "training_curve",
    hint="The optimizer forgets its averages after every step: its state goes from step to step.",
    replace=(
        "stepped, state = adamw_step(list_tensors(params), gradients, state, rate)",
        "stepped, _ = adamw_step(list_tensors(params), gradients, None, rate)",
    ),
    keeps=0.5,
)
def forgets_the_optimizers_state(): ...


@mistake(
    "training_curve",
    hint="The curve begins with a point before the first step, at 0 FLOPs.",
    replace=("curve, state = [(0, measured(params))], None", "curve, state = [], None"),
    keeps=0.5,
)
def begins_after_the_first_step(): ...


@mistake(
    "training_curve",
    hint="The curve ends with a point after the last step, whatever `every` is.",
    replace=(
        "if (step + 1) % every == 0 or step + 1 == steps:",
        "if (step + 1) % every == 0:",
    ),
    keeps=0.7,
)
def leaves_the_last_point_out(): ...


@mistake(
    "training_curve",
    hint="A point comes after each `every` steps, not before.",
    replace=(
        "if (step + 1) % every == 0 or step + 1 == steps:",
        "if step % every == 0 or step + 1 == steps:",
    ),
    keeps=0.7,
)
def measures_a_step_too_early(): ...


@mistake(
    "training_curve",
    hint="A step that the budget does not pay for in full is not made: rounded down.",
    replace=("steps = budget // cost", "steps = -(-budget // cost)"),
    keeps=0.7,
)
def makes_a_step_that_is_not_paid_for(): ...


@mistake(
    "training_curve",
    hint="The budget is in FLOPs, not in steps.",
    replace=("steps = budget // cost", "steps = min(budget, 12)"),
)
def takes_the_budget_as_steps(): ...


@mistake(
    "training_curve",
    hint="What is returned are the parameters that came in.",
    replace=[
        (
            "curve, state = [(0, measured(params))], None",
            "curve, state, begin = [(0, measured(params))], None, params",
        ),
        ("return params, curve", "return begin, curve"),
    ],
    keeps=0.75,
)
def returns_the_old_parameters(): ...


@mistake(
    "training_curve",
    hint="A budget of less than one step trains nothing: ValueError.",
    replace=("if steps < 1 or every < 1:", "every = max(1, every)\nif False:"),
    keeps=0.85,
)
def takes_any_budget(): ...


@mistake(
    "training_curve",
    hint="The function that drops is made once and goes on throwing. Each step has dropout_at of its own number.",
    replace=[
        ('drop = dropout_at(setup["dropout"], seed, step)', "pass"),
        (
            "for step in range(steps):",
            """
            drop = dropout_at(setup["dropout"], seed, 0)
            for step in range(steps):
            """,
        ),
    ],
)
def makes_its_dice_for_dropout_once(): ...


@mistake(
    "training_curve",
    hint="Dropout is at work while the loss is measured. A measurement uses the whole model.",
    replace=[
        (
            "return decoder(ids, weights, setup)  # nothing is dropped",
            "return decoder(ids, weights, setup, drop)",
        ),
        (
            "curve, state = [(0, measured(params))], None",
            """
drop = None
curve, state = [(0, measured(params))], None
""",
        ),
    ],
    keeps=0.7,
)
def measures_with_the_dropout_of_the_step(): ...


@mistake(
    "training_curve",
    hint="The last point stands in the curve twice where `every` divides the number of steps.",
    replace=[
        (
            "if (step + 1) % every == 0 or step + 1 == steps:",
            "if (step + 1) % every == 0:",
        ),
        (
            "return params, curve",
            "return params, [*curve, (steps * cost, measured(params))]",
        ),
    ],
    keeps=0.65,
)
def has_the_last_point_twice(): ...


# ── compare
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "compare",
    hint="Every variant gets as many steps as the base. A step of a larger model costs more: the budget "
    "decides.",
    replace=("budget // cost))", "budget // training_flops(base)))"),
    keeps=0.5,
)
def gives_everybody_the_same_steps(): ...


@mistake(
    "compare",
    hint="Each value runs with other seeds: a difference may be the seeds'.",
    replace=(
        "run(setup, steps, seed) for seed in seeds",
        "run(setup, steps, seed + 100 * len(str(value))) for seed in seeds",
    ),
)
def gives_everybody_other_seeds(): ...


@mistake(
    "compare",
    hint="Only the first seed is used. One run says nothing about luck.",
    replace=("for seed in seeds]", "for seed in seeds[:1]]"),
    keeps=0.5,
)
def runs_one_seed(): ...


@mistake(
    "compare",
    hint="A variant should be one_change of the base, so that a SwiGLU gets its width.",
    replace=("one_change(base, field, value)", "{**base, field: value}"),
    keeps=0.75,
)
def changes_the_entry_by_hand(): ...


@mistake(
    "compare",
    hint="Each variant is a change of the variant before: after three rows, three things differ.",
    replace=(
        "setup = base if value == base[field] else one_change(base, field, value)",
        "setup = base = base if value == base[field] else one_change(base, field, value)",
    ),
    keeps=0.75,
)
def builds_each_variant_on_the_last(): ...


@mistake(
    "compare",
    hint="The base itself is among the values: one_change refuses it, and your table has no row to compare "
    "with.",
    replace=(
        "base if value == base[field] else one_change(base, field, value)",
        "one_change(base, field, value)",
    ),
    keeps=0.5,
)
def cannot_run_the_base(): ...


@mistake(
    "compare",
    hint="The table keeps the best seed. Who looks for the best of several runs finds luck.",
    replace=(
        "[run(setup, steps, seed) for seed in seeds])",
        "[min([run(setup, steps, seed) for seed in seeds], default=0)])",
    ),
    keeps=0.6,
)
def keeps_the_best_seed(): ...


@mistake(
    "compare",
    hint="The table should have each run's loss, and has the mean.",
    replace=(
        "[run(setup, steps, seed) for seed in seeds])",
        "sum(run(setup, steps, seed) for seed in seeds) / max(1, len(seeds)))",
    ),
    keeps=0.6,
)
def returns_the_mean(): ...


@mistake(
    "compare",
    hint="The rows should stand in the order of the values.",
    replace=("for value in values:", "for value in sorted(values):"),
    keeps=0.7,
)
def sorts_the_values(): ...


@mistake(
    "compare",
    hint="A seed that occurs twice is one run counted twice: refuse it.",
    replace=(
        "if len(set(entries)) < len(entries):",
        "if name == 'values' and len(set(entries)) < len(entries):",
    ),
    keeps=0.85,
)
def takes_a_seed_twice(): ...


@mistake(
    "compare",
    hint="A value that occurs twice makes two equal rows, or one: refuse it before anything runs.",
    replace=(
        "if len(set(entries)) < len(entries):",
        "if name == 'seeds' and len(set(entries)) < len(entries):",
    ),
    keeps=0.85,
)
def takes_a_value_twice(): ...


@mistake(
    "compare",
    hint="A budget that does not pay for a step of some value makes no comparison: refuse it.",
    replace=("if cost > budget:", "if False:"),
    keeps=0.85,
)
def takes_any_budget_for_the_table(): ...


@mistake(
    "compare",
    hint="The budget is looked at when a value's turn comes, and runs were made by then. Look at all values before the first run.",
    replace=[
        (
            "        plan.append((value, setup, budget // cost))\n",
            "        steps = budget // cost\n        plan.append((value, steps, [run(setup, steps, seed) for seed in seeds]))\n",
        ),
        (
            "    return [\n        (value, steps, [run(setup, steps, seed) for seed in seeds])\n        for value, setup, steps in plan\n    ]",
            "return plan",
        ),
    ],
)
def finds_out_while_running(): ...


@mistake(
    "compare",
    hint="Each variant runs until its own budget is used: the steps are budget // its own cost, and not one more.",
    replace=("budget // cost))", "-(-budget // cost)))"),
    keeps=0.65,
)
def rounds_the_steps_up(): ...


# ── paired_verdict
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "paired_verdict",
    hint="The losses are pairs, one for each seed. You take the spread of each variant for itself.",
    replace=(
        "error = math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (n * (n - 1)))",
        """
        spreads = [sum((x - sum(own) / n) ** 2 for x in own) for own in (first, second)]
        error = math.sqrt(sum(spreads) / (n * (n - 1)))
        """,
    ),
    keeps=0.5,
)
def does_not_pair(): ...


@mistake(
    "paired_verdict",
    hint="The deviation of the differences is not that of their mean: divide by the root of n once more.",
    replace=("/ (n * (n - 1)))", "/ (n - 1))"),
    keeps=0.5,
)
def takes_the_deviation_for_the_error(): ...


@mistake(
    "paired_verdict",
    hint="The mean was estimated from the same differences: n - 1 in the variance, not n.",
    replace=("/ (n * (n - 1)))", "/ (n * n))"),
    keeps=0.5,
)
def divides_the_variance_by_n(): ...


@mistake(
    "paired_verdict",
    hint="The root is missing: the error is in the unit of the losses.",
    replace=(
        "error = math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (n * (n - 1)))",
        "error = math.fsum((d - mean) ** 2 for d in differences) / (n * (n - 1))",
    ),
    keeps=0.5,
)
def forgets_the_root(): ...


@mistake(
    "paired_verdict",
    hint="A lower loss is better: the winner is the other one.",
    replace=('"first" if mean < 0 else "second"', '"second" if mean < 0 else "first"'),
    keeps=0.5,
)
def lets_the_higher_loss_win(): ...


@mistake(
    "paired_verdict",
    hint="The mean is that of first - second. Yours has the other sign.",
    replace=[
        ("[a - b for a, b", "[b - a for a, b"),
        ('"first" if mean < 0 else "second"', '"second" if mean < 0 else "first"'),
    ],
    keeps=0.6,
)
def subtracts_the_other_way(): ...


@mistake(
    "paired_verdict",
    hint="Whoever is lower on average wins, however small the difference is. Compare it with its error.",
    replace=("abs(mean) > factor * error", "mean != 0"),
    keeps=0.5,
)
def ignores_the_error(): ...


@mistake(
    "paired_verdict",
    hint="How clear it has to be is an argument, `factor`.",
    replace=("abs(mean) > factor * error", "abs(mean) > 2 * error"),
    keeps=0.75,
)
def knows_one_factor(): ...


@mistake(
    "paired_verdict",
    hint="The second variant can never win: a difference far above zero is as clear as one far below.",
    replace=("abs(mean) > factor * error", "-mean > factor * error"),
    keeps=0.6,
)
def sees_one_winner_only(): ...


@mistake(
    "paired_verdict",
    hint="A run that diverged is left out, as an outlier: then only the good runs of a variant count.",
    replace=(
        "converged = [all(math.isfinite(loss) for loss in losses) for losses in (first, second)]",
        """
        pairs = [p for p in zip(first, second, strict=True) if all(map(math.isfinite, p))]
        first, second, n = [a for a, _ in pairs], [b for _, b in pairs], max(2, len(pairs))
        converged = [True, True]
        """,
    ),
    keeps=0.85,
)
def drops_runs_that_diverged(): ...


@mistake(
    "paired_verdict",
    hint="NaN is no infinite number: a comparison with it is never true. math.isfinite knows both.",
    replace=("math.isfinite(loss)", "loss < math.inf or math.isnan(loss)"),
    keeps=0.85,
)
def takes_nan_for_a_number(): ...


@mistake(
    "paired_verdict",
    hint="A loss of infinity has diverged as well as one that is NaN. math.isfinite knows both.",
    replace=("math.isfinite(loss)", "not math.isnan(loss)"),
)
def takes_infinity_for_a_number(): ...


@mistake(
    "paired_verdict",
    hint="Lists of different lengths have no pairs, and one pair has no spread: ValueError.",
    replace=(
        """
        if n != len(second) or n < 2:
            raise ValueError(f"{n} losses and {len(second)}: two or more are needed, as many in both")
        """,
        """
        n = max(2, min(n, len(second)))
        first, second = first[:n], second[:n]
        first, second = first[: len(second)], second[: len(first)]
        """,
    ),
    keeps=0.85,
)
def takes_what_are_no_pairs(): ...


@mistake(
    "paired_verdict",
    hint="The difference has to exceed factor standard errors. In yours it may also be equal, so that two lists "
    "of the same losses have a winner.",
    replace=("abs(mean) > factor * error", "abs(mean) >= factor * error"),
)
def wins_at_the_border(): ...


@mistake(
    "paired_verdict",
    hint="The difference has to exceed factor standard errors. In yours it may also be equal, so that two lists "
    "of the same losses have a winner.",
    replace=[
        ("abs(mean) > factor * error", "abs(mean) >= factor * error"),
        ('"first" if mean < 0 else "second"', '"first" if mean <= 0 else "second"'),
    ],
)
def gives_a_draw_to_the_first(): ...


@mistake(
    "paired_verdict",
    hint="The mean has to be larger than factor times its error. Yours has to be larger than the error over the factor.",
    replace=("abs(mean) > factor * error", "abs(mean) > error / factor"),
)
def divides_by_the_factor(): ...


# ── power_law_forecast
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "power_law_forecast",
    hint="The exponent is positive where losses fall: it is minus the slope.",
    replace=("return alpha, forecast", "return -alpha, forecast"),
    keeps=0.5,
)
def returns_the_slope(): ...


@mistake(
    "power_law_forecast",
    hint="The forecast goes up where it should go down: the sign of the exponent.",
    replace=("mean_y - alpha * (", "mean_y + alpha * ("),
    keeps=0.5,
)
def forecasts_the_wrong_way(): ...


@mistake(
    "power_law_forecast",
    hint="A line through sizes and losses themselves is no power law: take the logarithm of both.",
    replace=[
        ("[math.log(size) for size in sizes]", "list(sizes)"),
        (
            "[math.log(loss - floor) for loss in losses]",
            "[loss - floor for loss in losses]",
        ),
        (
            "math.exp(mean_y - alpha * (math.log(new_size) - mean_x))",
            "mean_y - alpha * (new_size - mean_x)",
        ),
    ],
)
def fits_in_linear_space(): ...


@mistake(
    "power_law_forecast",
    hint="The logarithm of the loss alone makes an exponential. The sizes need one too.",
    replace=[
        ("[math.log(size) for size in sizes]", "list(sizes)"),
        ("(math.log(new_size) - mean_x)", "(new_size - mean_x)"),
    ],
)
def fits_an_exponential(): ...


@mistake(
    "power_law_forecast",
    hint="The line goes through the first and the last point. The points between count as well.",
    replace=(
        "alpha = -together / sum((u - mean_x) ** 2 for u in x)  # minus the slope",
        "alpha = -(y[-1] - y[0]) / (x[-1] - x[0] or 1.0) if together else 0.0",
    ),
    keeps=0.65,
)
def joins_the_ends(): ...


@mistake(
    "power_law_forecast",
    hint="The floor comes off before the logarithm, and is missing from the forecast: put it back.",
    replace=("forecast = floor + math.exp", "forecast = math.exp"),
    keeps=0.65,
)
def does_not_put_the_floor_back(): ...


@mistake(
    "power_law_forecast",
    hint="The line is that of log(loss - floor). Yours does not take the floor off.",
    replace=("math.log(loss - floor)", "math.log(loss)"),
    keeps=0.65,
)
def does_not_take_the_floor_off(): ...


@mistake(
    "power_law_forecast",
    hint="The floor changes nothing.",
    replace=[
        ("forecast = floor + math.exp", "forecast = math.exp"),
        ("math.log(loss - floor)", "math.log(loss)"),
    ],
    keeps=0.65,
)
def ignores_the_floor(): ...


@mistake(
    "power_law_forecast",
    hint="The line goes through the middle of the points, not through the first.",
    replace=(
        "math.exp(mean_y - alpha * (math.log(new_size) - mean_x))",
        "math.exp(y[0] - alpha * (math.log(new_size) - x[0]))",
    ),
    keeps=0.65,
)
def begins_at_the_first_point(): ...


@mistake(
    "power_law_forecast",
    hint="The forecast is in logarithms: take the exponential.",
    replace=(
        "floor + math.exp(mean_y - alpha * (math.log(new_size) - mean_x))",
        "floor + mean_y - alpha * (math.log(new_size) - mean_x)",
    ),
    keeps=0.5,
)
def returns_a_logarithm(): ...


@mistake(
    "power_law_forecast",
    hint="A natural logarithm is undone by exp, one to base 10 by 10**. Yours are mixed.",
    replace=[
        ("math.log(size)", "math.log10(size)"),
        ("math.log(loss - floor)", "math.log10(loss - floor)"),
        ("math.log(new_size)", "math.log10(new_size)"),
    ],
    keeps=0.5,
)
def mixes_two_bases(): ...


@mistake(
    "power_law_forecast",
    hint="Points through which no line goes are refused: as many sizes as losses, two different sizes.",
    replace=(
        """
        if len(sizes) != len(losses):
            raise ValueError(f"{len(sizes)} sizes and {len(losses)} losses")
        if len(set(sizes)) < 2:
            raise ValueError(f"no line goes through points at one size, {sizes}")
        """,
        """
        losses = (list(losses) + [floor + 1.0] * len(sizes))[: len(sizes)]
        """,
    ),
    keeps=0.85,
)
def takes_points_without_a_line(): ...


@mistake(
    "power_law_forecast",
    hint="A loss at the floor, or below, has no logarithm: numpy and torch give -inf or nan, and a ValueError is asked for.",
    replace=(
        "y = [math.log(loss - floor) for loss in losses]",
        "y = [math.log(loss - floor) if loss > floor else -math.inf for loss in losses]",
    ),
)
def takes_losses_at_the_floor(): ...


@mistake(
    "power_law_forecast",
    hint="Points at one size have no line through them: a ValueError, also where there are two of them.",
    replace=[
        ("if len(set(sizes)) < 2:", "if len(sizes) < 2:"),
        (
            "alpha = -together / sum((u - mean_x) ** 2 for u in x)",
            "alpha = -together / (sum((u - mean_x) ** 2 for u in x) or 1.0)",
        ),
    ],
)
def takes_one_size_twice(): ...


# ── lora_adapters
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "lora_adapters",
    hint="torch.manual_seed sets the dice that everybody shares. Bring a generator of your own.",
    replace=("torch.Generator().manual_seed(seed)", "torch.manual_seed(seed)"),
)
def sets_the_dice_that_all_share(): ...


@mistake(
    "lora_adapters",
    hint="Both matrices are zero: then both gradients are zero, and nothing ever moves.",
    replace=("/ math.sqrt(n)", "* 0.0"),
)
def begins_with_two_zeros(): ...


@mistake(
    "lora_adapters",
    hint="Both matrices are random: the model that was loaded is spoiled before the first step.",
    replace=(
        "torch.zeros(rank, m, dtype=a.dtype)",
        "torch.randn(rank, m, generator=dice, dtype=a.dtype) / math.sqrt(rank)",
    ),
)
def begins_with_two_random_matrices(): ...


@mistake(
    "lora_adapters",
    hint="a is random and b is zero. Yours are the other way round.",
    replace=(
        'return {"a": a, "b": torch.zeros(rank, m, dtype=a.dtype)}',
        'b = torch.randn(rank, m, generator=dice, dtype=a.dtype) / math.sqrt(rank)\nreturn {"a": torch.zeros_like(a), "b": b}',
    ),
    keeps=0.5,
)
def makes_a_zero(): ...


@mistake(
    "lora_adapters",
    hint="A deviation of 1/√n: n is the number of rows of the matrix, not the rank.",
    replace=("/ math.sqrt(n)", "/ math.sqrt(rank)"),
    keeps=0.75,
)
def divides_by_the_root_of_the_rank(): ...


@mistake(
    "lora_adapters",
    hint="A deviation of 1/√n, so that x a has the size of x.",
    replace=(" / math.sqrt(n)", ""),
    keeps=0.75,
)
def does_not_scale_a(): ...


@mistake(
    "lora_adapters",
    hint="The deviation is 1/√n. Yours is 1/n: the variance.",
    replace=("/ math.sqrt(n)", "/ n"),
    keeps=0.75,
)
def divides_by_n(): ...


@mistake(
    "lora_adapters",
    hint="a should be normal. Yours are spread evenly.",
    replace=(
        "torch.randn(n, rank, generator=dice, dtype=block[name].dtype)",
        "(torch.rand(n, rank, generator=dice, dtype=block[name].dtype) - 0.5) * math.sqrt(12)",
    ),
    keeps=0.75,
)
def is_uniform(): ...


@mistake(
    "lora_adapters",
    hint="Every block begins with the same numbers: the dice are thrown anew for each.",
    replace=(
        "n, m = block[name].shape",
        "n, m = block[name].shape\ndice = torch.Generator().manual_seed(seed)",
    ),
    keeps=0.75,
)
def throws_the_same_dice(): ...


@mistake(
    "lora_adapters",
    hint="Nothing depends on the seed.",
    replace=("manual_seed(seed)", "manual_seed(0)"),
    keeps=0.75,
    shows=ignores("seed"),
)
def ignores_the_seed_of_adapters(): ...


@mistake(
    "lora_adapters",
    hint="The matrix is [n, m]: a is [n, r] and b is [r, m]. Yours are exchanged, as nn.Linear has them.",
    replace=("n, m = block[name].shape", "m, n = block[name].shape"),
    keeps=0.5,
)
def has_the_layout_of_linear(): ...


@mistake(
    "lora_adapters",
    hint="Adapters should have the dtype of their matrix.",
    replace=(", dtype=block[name].dtype", ", dtype=torch.float64"),
    keeps=0.65,
)
def is_always_double(): ...


@mistake(
    "lora_adapters",
    hint="A rank above a side of the matrix saves nothing, and one of 0 learns nothing: ValueError.",
    replace=("if not 1 <= rank <= min(n, m):", "if False:"),
    keeps=0.85,
)
def takes_any_rank(): ...


@mistake(
    "lora_adapters",
    hint="The dice begin anew for each name, so matrices of one shape in a block get the same numbers.",
    replace=[
        (
            "a = torch.randn(",
            """
            dice = torch.Generator().manual_seed(seed * 1000 + place)
            a = torch.randn(
            """,
        ),
        ("def adapter(block, name):", "def adapter(place, block, name):"),
        (
            '[{name: adapter(block, name) for name in names} for block in params["blocks"]]',
            '[{name: adapter(i, block, name) for name in names} for i, block in enumerate(params["blocks"])]',
        ),
    ],
)
def throws_the_same_dice_for_each_name(): ...


@mistake(
    "lora_adapters",
    hint="An adapter has the dtype of its matrix. Yours is float32, whatever the matrix is.",
    replace=(
        "dtype=block[name].dtype) / math.sqrt(n)",
        "dtype=torch.float32) / math.sqrt(n)",
    ),
)
def makes_adapters_in_float32(): ...


# ── merge_lora
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "merge_lora",
    hint="The product is scaled by alpha / r. The scale is forgotten.",
    replace=("alpha / rank * adapter", "adapter"),
    keeps=0.5,
    shows=ignores("alpha"),
)
def forgets_the_scale(): ...


@mistake(
    "merge_lora",
    hint="alpha is divided by the rank.",
    replace=("alpha / rank *", "alpha *"),
    keeps=0.5,
)
def forgets_the_rank(): ...


@mistake(
    "merge_lora",
    hint="alpha is divided by the rank, not by its root. (That is another method, rsLoRA.)",
    replace=("alpha / rank *", "alpha / math.sqrt(rank) *"),
    keeps=0.5,
)
def divides_by_the_root(): ...


@mistake(
    "merge_lora",
    hint="The rank is the number of columns of a. Yours is the number of rows.",
    replace=('rank = adapter["a"].shape[1]', 'rank = adapter["a"].shape[0]'),
    keeps=0.5,
)
def takes_the_rows_for_the_rank(): ...


@mistake(
    "merge_lora",
    hint="The product is added to the matrix: what was loaded is lost in yours.",
    replace=("moved[name] = block[name] + alpha", "moved[name] = alpha"),
)
def replaces_the_matrix(): ...


@mistake(
    "merge_lora",
    hint="The product is subtracted: it is learned as a sum.",
    replace=("block[name] + alpha", "block[name] - alpha"),
    keeps=0.5,
)
def subtracts_the_product(): ...


@mistake(
    "merge_lora",
    hint="The parameters that came in are changed: the loaded model is lost, and merging twice adds twice.",
    replace=(
        "blocks.append({**block, **moved})",
        "block.update(moved)\nblocks.append(block)",
    ),
    keeps=0.75,
)
def changes_the_loaded_model(): ...


@mistake(
    "merge_lora",
    hint="No gradient reaches a and b: nothing can be trained through the merged matrix.",
    replace=('adapter["a"] @ adapter["b"]', '(adapter["a"] @ adapter["b"]).detach()'),
    keeps=0.75,
)
def stops_the_gradient(): ...


@mistake(
    "merge_lora",
    hint="Every block has adapters of its own. Yours all get those of the first.",
    replace=(
        "for name, adapter in own.items():",
        "for name, adapter in adapters[0].items():",
    ),
    keeps=0.5,
)
def adapts_all_blocks_alike(): ...


@mistake(
    "merge_lora",
    hint="What has no adapter stays in the model. Matrices and vectors are missing from your blocks.",
    replace=("{**block, **moved}", "moved"),
    keeps=0.5,
)
def loses_what_has_no_adapter(): ...


@mistake(
    "merge_lora",
    hint="Everything outside the blocks stays, the embedding for example.",
    replace=('return {**params, "blocks": blocks}', 'return {"blocks": blocks}'),
    keeps=0.65,
)
def returns_blocks_alone(): ...


@mistake(
    "merge_lora",
    hint="Adapters for three blocks do not belong to a model of two: ValueError.",
    replace=[
        ('if len(adapters) != len(params["blocks"]):', "if False:"),
        ("strict=True", "strict=False"),
    ],
    keeps=0.85,
)
def takes_adapters_of_another_model(): ...


@mistake(
    "merge_lora",
    hint="The matrix that the product is added to is cut off from its gradient. Whether it is frozen is for the "
    "caller to say: gradients reach params, too.",
    replace=(
        "moved[name] = block[name] + alpha",
        "moved[name] = block[name].detach() + alpha",
    ),
    keeps=0.75,
)
def detaches_the_matrix(): ...


@mistake(
    "merge_lora",
    hint="The scale is alpha / rank, once. Yours is alpha * rank.",
    replace=("alpha / rank", "alpha * rank"),
    keeps=0.65,
)
def multiplies_by_the_rank(): ...


@mistake(
    "merge_lora",
    hint="Each adapter has a rank of its own: alpha is divided by the number of columns of its a. You "
    "take the rank of the first one for all.",
    replace=(
        'rank = adapter["a"].shape[1]',
        'rank = next(one for all in adapters for one in all.values())["a"].shape[1]',
    ),
)
def takes_the_rank_of_the_first_adapter(): ...


# ── tuning_costs
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "tuning_costs",
    hint="Frozen weights have no averages: only what is trained does.",
    replace=('"optimizer": trained * 2 * 4', '"optimizer": (total + added) * 2 * 4'),
    keeps=0.5,
)
def counts_averages_of_frozen_weights(): ...


@mistake(
    "tuning_costs",
    hint="Frozen weights have no gradients either.",
    replace=('"gradients": trained * size', '"gradients": (total + added) * size'),
    keeps=0.5,
)
def counts_gradients_of_frozen_weights(): ...


@mistake(
    "tuning_costs",
    hint="AdamW keeps two averages, of the gradient and of its square.",
    replace=("trained * 2 * 4", "trained * 4"),
    keeps=0.5,
)
def counts_one_average(): ...


@mistake(
    "tuning_costs",
    hint="The averages are kept in float32, 4 bytes each, whatever the weights are.",
    replace=("trained * 2 * 4", "trained * 2 * size"),
    keeps=0.65,
)
def keeps_averages_in_the_weights_dtype(): ...


@mistake(
    "tuning_costs",
    hint="The dtype of the weights decides their bytes: not all numbers have 4.",
    replace=("size = list_tensors(params)[0].element_size()", "size = 4"),
    keeps=0.65,
)
def counts_four_bytes_always(): ...


@mistake(
    "tuning_costs",
    hint="Adapters stand beside the weights: they are in memory too.",
    replace=('"weights": (total + added) * size', '"weights": total * size'),
    keeps=0.65,
)
def forgets_the_adapters_weights(): ...


@mistake(
    "tuning_costs",
    hint="The frozen weights are in memory, although nothing trains them.",
    replace=(
        '"weights": (total + added) * size',
        '"weights": (added or trained) * size',
    ),
    keeps=0.5,
)
def counts_trained_weights_alone(): ...


@mistake(
    "tuning_costs",
    hint="An adapter of rank r has r (n + m) numbers, not r n m and not n m.",
    replace=("sum(p[name].shape) for", "p[name].numel() for"),
    keeps=0.65,
)
def counts_the_matrix_for_the_adapter(): ...


@mistake(
    "tuning_costs",
    hint="Every block has adapters.",
    replace=(
        'for p in params["blocks"] for name',
        'for p in params["blocks"][:1] for name',
    ),
    keeps=0.65,
)
def counts_the_adapters_of_one_block(): ...


@mistake(
    "tuning_costs",
    hint="The last block is at the end of the list.",
    replace=('params["blocks"][-1]', 'params["blocks"][0]'),
    keeps=0.65,
)
def trains_the_first_block(): ...


@mistake(
    "tuning_costs",
    hint="One tensor in several places, such as twelve blocks that are one dict, is counted once. "
    "Each place counts.",
    replace=(
        "total = sum(t.numel() for t in list_tensors(params))",
        "total = sum(t.numel() for t in {id(t): t for t in list_tensors(params)}.values())",
    ),
)
def counts_a_shared_tensor_once(): ...


@mistake(
    "tuning_costs",
    hint="A method that does not exist is refused, by its word.",
    replace=(
        'raise ValueError(f"there is no way to fine-tune called {method!r}")',
        "trained, added = total, 0",
    ),
    keeps=0.85,
)
def takes_any_method(): ...


@mistake(
    "tuning_costs",
    hint="An adapter has a [n, r] and b [r, m]: r (n + m) numbers, not those of one of the two.",
    replace=("rank * sum(sum(p[name].shape)", "rank * sum(p[name].shape[0]"),
    keeps=0.65,
)
def counts_one_half_of_the_adapter(): ...


# ── distinct_ngrams
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "distinct_ngrams",
    hint="Runs overlap: a text of 8 tokens has 7 pairs, not 4.",
    replace=("ids.unfold(1, n, 1)", "ids.unfold(1, n, n)"),
    keeps=0.5,
)
def cuts_the_text_into_pieces(): ...


@mistake(
    "distinct_ngrams",
    hint="A text of N tokens has N - n + 1 runs of n, not N.",
    replace=("/ len(row)", "/ length"),
    keeps=0.5,
)
def divides_by_the_tokens(): ...


@mistake(
    "distinct_ngrams",
    hint="That is a number of runs. The share is it divided by all runs.",
    replace=(
        "len(set(map(tuple, row))) / len(row)",
        "float(len(set(map(tuple, row))))",
    ),
)
def counts_without_dividing(): ...


@mistake(
    "distinct_ngrams",
    hint="One number for each text: rows are not thrown together.",
    replace=(
        "shares = [len(set(map(tuple, row))) / len(row) for row in runs]",
        "shares = [len({tuple(run) for row in runs for run in row}) / sum(map(len, runs))] * len(runs)",
    ),
    keeps=0.5,
)
def throws_rows_together(): ...


@mistake(
    "distinct_ngrams",
    hint="The order in a run counts: ab and ba are two.",
    replace=("set(map(tuple, row))", "set(map(frozenset, row))"),
    keeps=0.6,
)
def ignores_the_order(): ...


@mistake(
    "distinct_ngrams",
    hint="Runs are compared as text without gaps: 1, 23 and 12, 3 look alike there.",
    replace=("set(map(tuple, row))", 'set("".join(map(str, run)) for run in row)'),
    keeps=0.75,
)
def glues_ids_together(): ...


@mistake(
    "distinct_ngrams",
    hint="The share of different runs, not that of repeated ones: 1 where nothing occurs twice.",
    replace=(
        "len(set(map(tuple, row))) / len(row)",
        "1 - len(set(map(tuple, row))) / len(row)",
    ),
    keeps=0.5,
)
def returns_the_repetition(): ...


@mistake(
    "distinct_ngrams",
    hint="The last run begins at N - n: yours stops one too early.",
    replace=(
        "runs = ids.unfold(1, n, 1).tolist()  # [B, N - n + 1, n]",
        "runs = ids.unfold(1, n, 1)[:, : max(1, length - n)].tolist()",
    ),
    keeps=0.5,
)
def stops_one_too_early(): ...


@mistake(
    "distinct_ngrams",
    hint="Shares should come in float64.",
    replace=("torch.float64", "torch.float32"),
    keeps=0.5,
    shows=has_dtype("float32"),
)
def returns_single_precision(): ...


@mistake(
    "distinct_ngrams",
    hint="A text of 4 tokens has no runs of 5, and none of 0: ValueError.",
    replace=("if not 1 <= n <= length:", "n = min(max(n, 1), length)\nif False:"),
    keeps=0.8,
)
def takes_runs_that_do_not_fit(): ...


@mistake(
    "distinct_ngrams",
    hint="You count the runs that occur once. Different runs are asked for: one that occurs often counts as one.",
    replace=(
        "len(set(map(tuple, row))) / len(row)",
        "sum(row.count(run) == 1 for run in row) / len(row)",
    ),
    keeps=0.5,
)
def counts_runs_that_occur_once(): ...


@mistake(
    "distinct_ngrams",
    hint="Runs overlap: N tokens have N - n + 1 of them, not N // n.",
    replace=(
        "shares = [len(set(map(tuple, row))) / len(row) for row in runs]",
        "shares = [len(set(map(tuple, row))) / (length // n) for row in runs]",
    ),
    keeps=0.65,
)
def divides_by_pieces(): ...


@mistake(
    "distinct_ngrams",
    hint="A row of N tokens has N - n + 1 runs. You divide by N - n.",
    replace=(
        "shares = [len(set(map(tuple, row))) / len(row) for row in runs]",
        "shares = [len(set(map(tuple, row))) / max(1, length - n) for row in runs]",
    ),
    keeps=0.65,
)
def divides_by_one_run_too_few(): ...


# ── accuracy_by_length
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "accuracy_by_length",
    hint="What stands behind the end of a sentence counts in yours.",
    replace=(
        "predicted[chosen, :length] == targets[chosen, :length]",
        "predicted[chosen] == targets[chosen]",
    ),
    keeps=0.5,
)
def counts_what_stands_behind_the_end(): ...


@mistake(
    "accuracy_by_length",
    hint="The share is that of the words in the sentence, not that of all places.",
    replace=(
        "right.double().mean().item()",
        "right.double().sum().item() / (len(right) * t)",
    ),
    keeps=0.5,
)
def divides_by_all_places_of_a_row(): ...


@mistake(
    "accuracy_by_length",
    hint="A sentence with one wrong word counts as wrong in yours. The share is that of words.",
    replace=("right.double().mean()", "right.all(dim=1).double().mean()"),
    keeps=0.5,
)
def counts_whole_sentences(): ...


@mistake(
    "accuracy_by_length",
    hint="A number of right words grows with the length: the share is asked for.",
    replace=("right.double().mean()", "right.double().sum()"),
    keeps=0.5,
)
def counts_words(): ...


@mistake(
    "accuracy_by_length",
    hint="That is the share of wrong words.",
    replace=(":length] == targets", ":length] != targets"),
    keeps=0.5,
)
def returns_the_errors(): ...


@mistake(
    "accuracy_by_length",
    hint="All sentences of a length count, not the first alone.",
    replace=("right.double()", "right[0].double()"),
    keeps=0.5,
)
def takes_the_first_sentence(): ...


@mistake(
    "accuracy_by_length",
    hint="Shortest first.",
    replace=("return table", "return table[::-1]"),
    keeps=0.5,
)
def begins_with_the_longest(): ...


@mistake(
    "accuracy_by_length",
    hint="Sentences of at least this length are taken, cut to it: a longer sentence is another task.",
    replace=("chosen = lengths == length", "chosen = lengths >= length"),
    keeps=0.5,
)
def takes_longer_sentences_too(): ...


@mistake(
    "accuracy_by_length",
    hint="A table for words that do not fit together says nothing: ValueError.",
    replace=(
        """
        if predicted.shape != targets.shape or len(lengths) != rows:
            raise ValueError(f"words {list(predicted.shape)}, {list(targets.shape)}; {len(lengths)} lengths")
        """,
        """
        lengths = torch.cat([lengths, lengths])[:rows]
        predicted = torch.cat([predicted, predicted], dim=1)[:, :t]
        """,
    ),
    keeps=0.8,
)
def takes_words_that_do_not_fit(): ...


@mistake(
    "accuracy_by_length",
    hint="A sentence of 0 words has no share, and one of 5 words does not fit into 4 places: ValueError.",
    replace=("if not 1 <= length <= t:", "if False:"),
    keeps=0.8,
)
def takes_any_length(): ...


@mistake(
    "accuracy_by_length",
    hint="Shortest first: yours come in the order in which they occur.",
    replace=(
        "for length in lengths.unique().tolist():",
        "for length in dict.fromkeys(lengths.tolist()):",
    ),
    keeps=0.5,
)
def goes_in_the_order_of_appearance(): ...


@mistake(
    "accuracy_by_length",
    hint="A share of 0 is a share: a length whose words are all wrong stands in the table as well.",
    replace=("return table", "return [entry for entry in table if entry[1] > 0]"),
)
def leaves_lengths_without_a_right_word_out(): ...


# ── six_n_counterexample
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "six_n_counterexample",
    hint="Your setup has a long context for one factor. Which is needed for others?",
    replace=("math.ceil(7 * factor)", "100"),
    keeps=0.65,
    shows=ignores("factor"),
)
def knows_one_context(): ...


@mistake(
    "six_n_counterexample",
    hint="The vocabulary is in N, and in the cost of the head: it pays for itself. What has no parameters?",
    replace=[
        ("math.ceil(7 * factor)", "2"),
        ('"vocab_size": 2', '"vocab_size": math.ceil(1000 * factor)'),
    ],
)
def makes_the_vocabulary_large(): ...


@mistake(
    "six_n_counterexample",
    hint="Layers have parameters: cost and rule grow together. What grows without parameters?",
    replace=[
        ("math.ceil(7 * factor)", "2"),
        ('"num_layers": 1', '"num_layers": math.ceil(1000 * factor)'),
    ],
)
def makes_the_model_deep(): ...


@mistake(
    "six_n_counterexample",
    hint="With a large width the rule becomes better. Which number should be large against it?",
    replace=[
        ("math.ceil(7 * factor)", "2"),
        ("d = 2", "d = 2 * math.ceil(1000 * factor)"),
    ],
)
def makes_the_model_wide(): ...


@mistake(
    "six_n_counterexample",
    hint="A larger batch has more tokens, in the rule as well.",
    replace=[
        ("math.ceil(7 * factor)", "2"),
        ('"batch": 1', '"batch": math.ceil(1000 * factor)'),
    ],
)
def makes_the_batch_large(): ...


@mistake(
    "six_n_counterexample",
    hint="A table of learned positions has parameters, and with a long context many.",
    replace=('"positions": "none"', '"positions": "learned"'),
    keeps=0.75,
)
def has_learned_positions(): ...


@mistake(
    "six_n_counterexample",
    hint="Sizes are whole numbers.",
    replace=("math.ceil(7 * factor)", "7.0 * factor"),
    keeps=0.5,
)
def has_a_broken_size(): ...


@mistake(
    "six_n_counterexample",
    hint="The context grows with the factor, but too little: work out N and the cost of your model once more.",
    replace=("math.ceil(7 * factor)", "math.ceil(4 * factor)"),
    keeps=0.5,
)
def has_too_short_a_context(): ...


@mistake(
    "six_n_counterexample",
    hint="A setup has all entries, those too that do not matter here.",
    replace=(
        '"dropout": 0.0, "smoothing": 0.0, "rate": 0.01, "batch": 1',
        '"batch": 1',
    ),
    keeps=0.5,
)
def leaves_entries_out(): ...
