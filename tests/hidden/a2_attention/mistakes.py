"""Wrong answers people give to assignment 2: each has one wrong idea and is otherwise a good
answer.
"""

from autograder.suite import (
    axes_exchanged,
    has_dtype,
    ignores,
    is_what,
    mistake,
    mixes_the_batch,
    needs_softmax,
    needs_the_first_only,
    off_by_a_factor,
    one_axis_less,
    one_axis_more,
    one_hot,
    outside,
    part,
    parts_exchanged,
    right_once_exchanged,
    right_once_scaled,
    right_once_transposed,
    same_along,
    scores_off_by,
    shape_with_axes_exchanged,
    shifted_along,
    sums_to,
    sums_to_one,
    through_unit,
)

# ----------------------------------------------------------------------------------------------
# rnn_encode


@mistake(
    "rnn_encode",
    keeps=0.65,
    hint="Your states can leave the interval (−1, 1). What is applied to the sum at every step?",
    shows=part(1, outside(-1, 1)),
    replace=("torch.tanh(x[:, t] @ w_x + h @ w_h + b)", "x[:, t] @ w_x + h @ w_h + b"),
)
def rnn_without_tanh(): ...


@mistake(
    "rnn_encode",
    keeps=0.65,
    hint="Your first state ignores h0. The caller says where the network starts; zeros "
    "are one choice.",
    shows=ignores("h0"),
    replace=("h = h0", "h = torch.zeros_like(h0)"),
)
def starts_from_zeros(): ...


@mistake(
    "rnn_encode",
    hint="Every step of yours starts from h0 again. Which state should the second word find? "
    "Trace T = 2.",
    replace=("h @ w_h", "h0 @ w_h"),
)
def never_updates_the_state(): ...


@mistake(
    "rnn_encode",
    hint="A network whose next state does not use the last one remembers nothing: where is w_h?",
    shows=ignores("h0") & ignores("w_h"),
    replace=(" + h @ w_h", ""),
)
def forgets_the_recurrent_term(): ...


@mistake(
    "rnn_encode",
    hint="Set x and h0 to zero: the states should still know one argument. Which one is never used?",
    shows=ignores("b"),
    keeps=0.65,
    replace=("h @ w_h + b", "h @ w_h"),
)
def forgets_the_bias(): ...


@mistake(
    "rnn_encode",
    keeps=0.65,
    hint="Your states can leave the interval (−1, 1): tanh is the last step, and the bias is part "
    "of the sum that it sees.",
    shows=part(1, outside(-1, 1)),
    replace=("h @ w_h + b)", "h @ w_h) + b"),
)
def bias_outside_tanh(): ...


@mistake(
    "rnn_encode",
    hint="Weights are [in, out] here and multiply from the right. Nothing needs a transpose.",
    shows=right_once_transposed("w_h"),
    keeps=0.65,
    replace=("h @ w_h", "h @ w_h.T"),
)
def recurrent_weight_transposed(): ...


@mistake(
    "rnn_encode",
    hint="Row t of `states` is the state after reading word t. Is h0 in your list?",
    shows=part(0, shifted_along(1, 1)),
    keeps=0.65,
    replace=[
        ("h = torch.tanh(x[:, t] @ w_x + h @ w_h + b)", "states.append(h)"),
        ("states.append(h)", "h = torch.tanh(x[:, t] @ w_x + h @ w_h + b)"),
    ],
)
def states_before_reading(): ...


@mistake(
    "rnn_encode",
    keeps=0.65,
    hint="Change the last word: your first state changes. From which end does the encoder read?",
    replace=("x[:, t]", "x[:, length - 1 - t]"),
)
def reads_backwards(): ...


@mistake(
    "rnn_encode",
    hint="Your `last` is the state after the first word. Which position does the summary come from?",
    replace=("dim=1), h", "dim=1), states[0]"),
)
def returns_the_first_state_as_last(): ...


@mistake(
    "rnn_encode",
    hint="The states come back as [T, B, H]. On which axis did you stack the steps?",
    shows=part(0, shape_with_axes_exchanged(0, 1)),
    keeps=0.65,
    replace=("dim=1), h", "dim=0), h"),
)
def stacks_positions_first(): ...


@mistake(
    "rnn_encode",
    keeps=0.65,
    hint="x is [B, T, D]. Your loop treats axis 0 as time, so that sentences follow each other.",
    replace=[("range(length)", "range(batch)"), ("x[:, t]", "x[t]")],
)
def loops_over_the_sentences(): ...


@mistake(
    "rnn_encode",
    keeps=0.65,
    hint="x is [B, T, D]. Your loop takes sentence after sentence, all positions at once: the state "
    "goes from a sentence to the next one, and never from a word to the next word.",
    replace=[
        ("h = h0", "h = h0[:1]"),
        ("range(length)", "range(batch)"),
        ("x[:, t]", "x[t]"),
        (
            "return torch.stack(states, dim=1), h",
            "return torch.stack(states), torch.stack(states)[:, -1]",
        ),
    ],
)
def carries_the_state_from_sentence_to_sentence(): ...


@mistake(
    "rnn_encode",
    hint="Your states are float32, whatever the inputs are. (torch.zeros(...) without a dtype "
    "makes such a buffer.)",
    shows=part(0, has_dtype("float32")),
    replace=("dim=1), h", "dim=1).to(torch.float32), h"),
)
def buffer_in_the_default_dtype(): ...


@mistake(
    "rnn_encode",
    hint="The caller's h0 is another tensor after your call. copy_ and other names with _ "
    "write in place.",
    replace=(
        "return torch.stack(states, dim=1), h",
        """
        with torch.no_grad():
            h0.copy_(h)
        return torch.stack(states, dim=1), h""",
    ),
)
def overwrites_h0(): ...


@mistake(
    "rnn_encode",
    hint="Your state is detached between steps, so that the loss of the last word cannot "
    "teach the first.",
    replace=("h @ w_h", "h.detach() @ w_h"),
)
def detaches_between_steps(): ...


@mistake(
    "rnn_encode",
    hint="Sizes that cannot match should raise ValueError and name the sizes, before anything "
    "is computed.",
    replace=[
        (
            "if w_x.shape != (width, hidden) or w_h.shape != (hidden, hidden):",
            "if False:",
        ),
        ("if b.shape != (hidden,) or h0.shape != (batch, hidden):", "if False:"),
    ],
)
def rnn_without_checks(): ...


@mistake(
    "rnn_encode",
    hint="h0 is [B, H], and the number of its rows is not compared: where it is not B, torch "
    "complains in its own words. Compare both sizes.",
    replace=("h0.shape != (batch, hidden)", "h0.shape[-1:] != (hidden,)"),
)
def number_of_starts_is_unchecked(): ...


@mistake(
    "rnn_encode",
    keeps=0.65,
    hint="torch.stack puts the steps in front, and reshape keeps the order of the numbers: sentences "
    "and steps are mixed up. Exchange the axes, or stack along axis 1.",
    replace=(
        "torch.stack(states, dim=1)",
        "torch.stack(states).reshape(batch, length, hidden)",
    ),
)
def states_are_reshaped_and_not_transposed(): ...


# -----------------------------------------------------------------------------------------
# additive_scores


@mistake(
    "additive_scores",
    hint="Without the tanh the two layers are one linear layer, and the state moves all scores "
    "of a sentence alike.",
    replace=("torch.tanh(asked + offered)", "(asked + offered)"),
)
def additive_without_tanh(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="Your scores never leave (−1, 1). Which comes first, the tanh or the product with v?",
    replace=("torch.tanh(asked + offered) @ v", "torch.tanh((asked + offered) @ v)"),
)
def tanh_after_v(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="tanh(a) + tanh(b) is not tanh(a + b): yours adds a number that is the same for "
    "every position.",
    replace=(
        "torch.tanh(asked + offered)",
        "(torch.tanh(asked) + torch.tanh(offered))",
    ),
)
def tanh_of_each_part(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="Your scores sum to 1. They are asked for raw; the softmax is the next question.",
    shows=sums_to_one(1),
    replace=(
        "torch.tanh(asked + offered) @ v",
        "softmax(torch.tanh(asked + offered) @ v)",
    ),
)
def already_normalized(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="[B, A] + [B, T, A] aligns sentences with positions. The projected state needs an axis "
    "for the positions.",
    shows=mixes_the_batch("state"),
    replace=(".unsqueeze(1)", ""),
)
def adds_without_a_position_axis(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="Give v other values: your scores stay the same. Which features count, and how much?",
    shows=ignores("v"),
    replace=("torch.tanh(asked + offered) @ v", "torch.tanh(asked + offered).sum(-1)"),
)
def sums_instead_of_using_v(): ...


@mistake(
    "additive_scores",
    hint="Change the decoder state: your scores stay the same. Who is asking?",
    shows=ignores("state") & ignores("w_state"),
    replace=("asked + offered", "offered"),
)
def ignores_the_decoder_state(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="All sentences are scored against the decoder state of sentence 0. Try two different rows.",
    shows=needs_the_first_only("state", 0) & ~ignores("w_state"),
    replace=("state @ w_state)", "state[:1] @ w_state)"),
)
def asks_with_the_first_state_only(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="w_state belongs to the decoder state and w_states to the encoder states. Read the order.",
    shows=right_once_exchanged("w_state", "w_states"),
    replace=[
        ("state @ w_state)", "state @ w_states)"),
        ("states @ w_states", "states @ w_state"),
    ],
)
def exchanges_the_two_matrices(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="Your scores are too small by a factor that only depends on A. A root belongs to "
    "dot products.",
    shows=off_by_a_factor("v[0]**-0.5"),
    replace=(
        "torch.tanh(asked + offered) @ v",
        "torch.tanh(asked + offered) @ v / math.sqrt(hidden)",
    ),
)
def scales_by_the_root_of_the_width(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="The result is [B, T, 1]. One number per position needs no axis of length 1 at the end.",
    shows=one_axis_more(),
    replace=(
        "torch.tanh(asked + offered) @ v",
        "torch.tanh(asked + offered) @ v.unsqueeze(-1)",
    ),
)
def keeps_an_axis_of_length_one(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="The formula has a plus between the two projections: the score depends on a sum, not "
    "a difference.",
    replace=("asked + offered", "asked - offered"),
)
def subtracts_the_two_parts(): ...


@mistake(
    "additive_scores",
    hint="Right, but position by position. Project all states in one product and let "
    "broadcasting add.",
    replace=[
        (
            "offered = states @ w_states",
            "columns = [torch.tanh(asked[:, 0] + states[:, i] @ w_states) @ v for i in "
            "range(states.shape[1])]",
        ),
        ("torch.tanh(asked + offered) @ v", "torch.stack(columns, dim=1)"),
    ],
)
def loops_over_positions(): ...


@mistake(
    "additive_scores",
    hint="Sizes that cannot match should raise ValueError and name the sizes.",
    replace=[
        (
            "if w_state.shape != (state.shape[-1], hidden) or w_states.shape != "
            "(states.shape[-1], hidden):",
            "if False:",
        ),
        ("if state.shape[0] != states.shape[0]:", "if False:"),
    ],
)
def additive_without_checks(): ...


@mistake(
    "additive_scores",
    hint="The widths are compared and the batches are not: where these differ, torch complains in "
    "its own words.",
    replace=("if state.shape[0] != states.shape[0]:", "if False:"),
)
def batches_of_the_two_states_are_unchecked(): ...


# --------------------------------------------------------------------------------------------------
# attend


@mistake(
    "attend",
    keeps=0.65,
    hint="Your weights sum to 1 over the sentences. Positions of one sentence compete, "
    "sentences do not.",
    shows=part(1, sums_to_one(0)),
    replace=("dim=-1", "dim=0"),
)
def softmax_over_the_batch(): ...


@mistake(
    "attend",
    keeps=0.65,
    hint="Your weights sum to 1 over the whole batch. Each sentence has a weight of 1 to spend.",
    shows=part(1, sums_to_one(0, 1)),
    replace=("softmax(scores, dim=-1)", "softmax(scores.flatten()).view(scores.shape)"),
)
def softmax_over_everything(): ...


@mistake(
    "attend",
    hint="The context is a plain sum of the states. Where do the weights come in?",
    replace=("(weights.unsqueeze(1) @ states).squeeze(1)", "states.sum(dim=1)"),
)
def sums_the_states(): ...


@mistake(
    "attend",
    hint="Change the scores: your context stays. A mean is what you get when all weights are equal.",
    replace=("(weights.unsqueeze(1) @ states).squeeze(1)", "states.mean(dim=1)"),
)
def averages_the_states(): ...


@mistake(
    "attend",
    hint="Your context is the last state, the bottleneck that attention removes. Mix all states.",
    replace=("(weights.unsqueeze(1) @ states).squeeze(1)", "states[:, -1]"),
)
def context_is_the_last_state(): ...


@mistake(
    "attend",
    keeps=0.65,
    hint="The context is mixed with the raw scores, not with the weights.",
    replace=("weights.unsqueeze(1)", "scores.unsqueeze(1)"),
)
def mixes_with_the_scores(): ...


@mistake(
    "attend",
    hint="Your context is T times too small. The weights sum to 1 already: no mean on top.",
    shows=part(0, off_by_a_factor("scores[-1]**-1")),
    replace=(
        "(weights.unsqueeze(1) @ states).squeeze(1)",
        "(weights.unsqueeze(-1) * states).mean(dim=1)",
    ),
)
def divides_by_the_length_once_more(): ...


@mistake(
    "attend",
    hint="exp of a large score is infinite, of a very negative one 0. Subtract something from "
    "all scores first.",
    replace=(
        "weights = softmax(scores, dim=-1)",
        """
        e = torch.exp(scores.to(torch.promote_types(scores.dtype, torch.float32)))
        weights = (e / e.sum(dim=-1, keepdim=True)).to(scores.dtype)""",
    ),
)
def exponentials_without_a_maximum(): ...


@mistake(
    "attend",
    hint="exp makes the scores positive. What makes them sum to 1?",
    replace=(
        "softmax(scores, dim=-1)",
        "torch.exp(scores - scores.amax(dim=-1, keepdim=True))",
    ),
)
def exponentials_without_a_sum(): ...


@mistake(
    "attend",
    hint="Dividing scores by their sum gives negative or infinite weights when scores "
    "have both signs.",
    replace=("softmax(scores, dim=-1)", "scores / scores.sum(dim=-1, keepdim=True)"),
)
def divides_scores_by_their_sum(): ...


@mistake(
    "attend",
    hint="You take the best position. A choice has no gradient; mix all states with their weights.",
    replace=(
        "(weights.unsqueeze(1) @ states).squeeze(1)",
        "states[torch.arange(len(states)), scores.argmax(dim=-1)]",
    ),
)
def takes_the_best_position(): ...


@mistake(
    "attend",
    keeps=0.65,
    hint="The weights are computed once, for sentence 0, and used for all. Try two different "
    "rows of scores.",
    shows=part(1, same_along(0)),
    replace=("softmax(scores, dim=-1)", "softmax(scores[:1]).expand_as(scores)"),
)
def weights_of_the_first_sentence(): ...


@mistake(
    "attend",
    hint="Two results in the other order: the docstring says (context, weights).",
    shows=parts_exchanged(),
    keeps=0.65,
    replace=("return context, weights", "return weights, context"),
)
def returns_weights_first(): ...


@mistake(
    "attend",
    keeps=0.65,
    hint="The context has an axis of length 1 left over from the matrix product.",
    shows=part(0, one_axis_more()),
    replace=(".squeeze(1)", ""),
)
def context_keeps_an_axis(): ...


@mistake(
    "attend",
    hint="Your weights are cut off (detach, .data, no_grad): the scores can never learn.",
    replace=("weights.unsqueeze(1)", "weights.detach().unsqueeze(1)"),
)
def detaches_the_weights(): ...


@mistake(
    "attend",
    hint="Your context comes back as float32. Half precision in, half precision out: "
    "convert the result.",
    shows=part(0, has_dtype("float32")),
    replace=(
        "weights = softmax(scores, dim=-1)",
        """
        wide = torch.promote_types(scores.dtype, torch.float32)
        scores, states = scores.to(wide), states.to(wide)
        weights = softmax(scores, dim=-1)""",
    ),
)
def context_in_float32(): ...


@mistake(
    "attend",
    hint="Sizes that cannot match should raise ValueError; one score for six states "
    "broadcasts silently.",
    replace=("if scores.shape != states.shape[:-1]:", "if False:"),
)
def attend_without_checks(): ...


# ------------------------------------------------------------------------------------------
# seq2seq_decode


@mistake(
    "seq2seq_decode",
    hint="Your weights are the same at every step. Look in every step anew, with the state before it.",
    shows=part(1, same_along(1)),
    replace=("additive_scores(s, states", "additive_scores(s0, states"),
)
def same_context_at_every_step(): ...


@mistake(
    "seq2seq_decode",
    hint="The context is the last encoder state, whatever the weights say: the bottleneck again.",
    replace=("c @ params", "states[:, -1] @ params"),
)
def context_is_the_last_encoder_state(): ...


@mistake(
    "seq2seq_decode",
    hint="The context is the mean of the encoder states. The weights of the step should mix them.",
    replace=("c @ params", "states.mean(dim=1) @ params"),
)
def context_is_the_mean(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="The states that are scored and mixed come from the encoder. Yours take in what the "
    "decoder has made itself.",
    replace=(
        "hidden.append(s)",
        """
        own = torch.nn.functional.pad(s, (0, max(0, states.shape[2] - s.shape[1])))[:, : states.shape[2]]
        states = torch.cat([states[:, 1:], own.unsqueeze(1)], dim=1)
        hidden.append(s)""",
    ),
)
def attends_to_decoder_states_too(): ...


@mistake(
    "seq2seq_decode",
    hint="Row t of your weights is made with the state after step t. The decoder looks first, "
    "with the one before.",
    shows=part(1, shifted_along(1, -1)),
    replace=(
        "weights.append(a)",
        """
        scores = additive_scores(s, states, params["w_state"], params["w_states"], params["v"])
        weights.append(attend(scores, states)[1])""",
    ),
)
def scores_with_the_new_state(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="Step t reads the word y_t, which it should predict. Change one word and see which step "
    "notices first.",
    replace=("torch.tanh(y @", "torch.tanh(targets[:, t] @"),
)
def input_not_shifted(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="At the first step `targets[:, t - 1]` is `targets[:, -1]`, the last word of the sentence.",
    replace=("torch.zeros_like(targets[:, 0])", "targets[:, -1]"),
)
def first_step_reads_the_last_word(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="The first step reads y_1. There is no word before the first: it reads zeros.",
    replace=("torch.zeros_like(targets[:, 0])", "targets[:, 0]"),
)
def first_step_reads_the_first_word(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="The words are shifted the wrong way: step t reads y_{t+1}, a word from the future.",
    replace=(
        'scores = additive_scores(s, states, params["w_state"], params["w_states"], params["v"])',
        """
        y = targets[:, t + 1] if t + 1 < targets.shape[1] else torch.zeros_like(targets[:, 0])
        scores = additive_scores(s, states, params["w_state"], params["w_states"], params["v"])""",
    ),
)
def shifted_the_wrong_way(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="The words lag by two: step 2 should already read y_1.",
    replace=("y = targets[:, t]", "y = targets[:, t - 1] if t > 0 else y"),
)
def shifted_twice(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="After the first step yours reads what it made itself. Under teacher forcing it is fed "
    "the correct words.",
    shows=ignores("targets"),
    replace=("y = targets[:, t]", 'y = s @ params["w_y"].T'),
)
def feeds_its_own_predictions(): ...


@mistake(
    "seq2seq_decode",
    hint="Your hidden states do not change with the targets. Which word does a step read?",
    shows=ignores("targets"),
    replace=("y = targets[:, t]", "y = torch.zeros_like(targets[:, t])"),
)
def ignores_the_words(): ...


@mistake(
    "seq2seq_decode",
    hint="Other encoder states change nothing in your hidden states: the step has a term for "
    "the context, c_t w_c.",
    shows=part(0, ignores("states")),
    replace=(' + c @ params["w_c"]', ""),
)
def leaves_the_context_out(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="The step forgets the state before it: where is s_{t−1} w_s?",
    replace=(' + s @ params["w_s"]', ""),
)
def leaves_the_old_state_out(): ...


@mistake(
    "seq2seq_decode",
    hint="One argument of the step is never used: set everything else to zero to see which.",
    keeps=0.65,
    replace=(' + params["b"]', ""),
)
def leaves_the_bias_out(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="Rows of `hidden` leave (−1, 1). Each is what tanh makes of the sum of a step.",
    shows=part(0, outside(-1, 1)) & ~part(0, shifted_along(1, 1)),
    replace=("s = torch.tanh(", "s = ("),
)
def decodes_without_tanh(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="Every step of yours continues from s0. Which state should step 2 continue from?",
    replace=(' + s @ params["w_s"]', ' + s0 @ params["w_s"]'),
)
def every_step_continues_from_s0(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="Another s0 changes nothing in your answer. The caller says where the decoder "
    "starts; zeros are one choice.",
    shows=ignores("s0"),
    replace=("s = s0", "s = torch.zeros_like(s0)"),
)
def ignores_s0(): ...


@mistake(
    "seq2seq_decode",
    hint="`hidden` begins with s0 and lacks the last state. It holds s_1 … s_Ty.",
    shows=part(0, shifted_along(1, 1)),
    keeps=0.65,
    replace=[
        (
            'scores = additive_scores(s, states, params["w_state"], params["w_states"], '
            'params["v"])',
            """
        hidden.append(s)
        scores = additive_scores(s, states, params["w_state"], params["w_states"], params["v"])""",
        ),
        ("hidden.append(s)", "pass"),
    ],
)
def hidden_starts_with_s0(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="The steps are stacked in front: [Ty, B, …]. The batch stays first.",
    shows=part(0, shape_with_axes_exchanged(0, 1)),
    replace=(
        "return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)",
        "return torch.stack(hidden), torch.stack(weights)",
    ),
)
def stacks_steps_first(): ...


@mistake(
    "seq2seq_decode",
    hint="Weights should be [B, Ty, T]: a row per step, a column per source position.",
    shows=part(1, sums_to_one(1)),
    replace=("torch.stack(weights, dim=1)", "torch.stack(weights, dim=2)"),
)
def weights_transposed(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="w_s is [in, out] and multiplies from the right, without a transpose.",
    replace=('s @ params["w_s"]', 's @ params["w_s"].T'),
)
def state_weight_transposed(): ...


@mistake(
    "seq2seq_decode",
    hint="You keep the scores. The weights are what attend returns second; they sum to 1.",
    shows=part(1, needs_softmax(-1) & ~is_what("log")),
    replace=("weights.append(a)", "weights.append(scores)"),
)
def returns_scores_for_weights(): ...


@mistake(
    "seq2seq_decode",
    hint="Your state is detached at every step: later steps cannot teach earlier ones.",
    replace=[
        ("s = s0", "s = s0.detach()"),
        (' + s @ params["w_s"]', ' + s.detach() @ params["w_s"]'),
    ],
)
def detaches_the_state(): ...


@mistake(
    "seq2seq_decode",
    hint="Your results are float32, whatever the inputs are. (Zeros that start a loop need the "
    "dtype of the targets.)",
    shows=part(0, has_dtype("float32")),
    replace=(
        "return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)",
        "return torch.stack(hidden, dim=1).float(), torch.stack(weights, dim=1).float()",
    ),
)
def decodes_in_the_default_dtype(): ...


@mistake(
    "seq2seq_decode",
    hint="The caller's targets are changed after your call. Shift a copy instead of writing "
    "zeros into them.",
    replace=[
        ("y = targets[:, t]", "y = targets[:, t].clone()"),
        (
            "return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)",
            """
        with torch.no_grad():
            targets.copy_(torch.cat([torch.zeros_like(targets[:, :1]), targets[:, :-1]], dim=1))
        return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)""",
        ),
    ],
)
def shifts_the_targets_in_place(): ...


@mistake(
    "seq2seq_decode",
    hint="Sizes that cannot match should raise ValueError and name the sizes.",
    replace=[
        ('if params["w_y"].shape != (targets.shape[-1], s0.shape[-1]):', "if False:"),
        ("if not states.shape[0] == s0.shape[0] == targets.shape[0]:", "if False:"),
    ],
)
def decode_without_checks(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="torch.zeros(…) without a dtype is float32, which float64 weights refuse to multiply. The "
    "zeros before the first word need the dtype of the targets.",
    replace=(
        "torch.zeros_like(targets[:, 0])",
        "torch.zeros(targets.shape[0], targets.shape[2])",
    ),
)
def first_word_in_the_default_dtype(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="torch.stack puts the steps in front, and reshape keeps the order of the numbers: sentences "
    "and steps are mixed up. Exchange the axes, or stack along axis 1.",
    replace=(
        "return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)",
        """
        batch, steps = targets.shape[:2]
        hidden = torch.stack(hidden).reshape(batch, steps, -1)
        return hidden, torch.stack(weights).reshape(batch, steps, -1)""",
    ),
)
def steps_are_reshaped_and_not_transposed(): ...


# ----------------------------------------------------------------------------------
# single_query_attention


@mistake(
    "single_query_attention",
    hint="You divide by d / 2. In Python `d ** 1/2` is (d ** 1) / 2: write `d ** 0.5`, or math.sqrt.",
    keeps=0.65,
    replace=("/ math.sqrt(q.shape[0])", "/ (q.shape[0] ** 1/2)"),
)
def single_divides_by_half_the_width(): ...


@mistake(
    "single_query_attention",
    hint="For d = 64 the scores of random vectors are about 8 in size. What brings them back to 1?",
    shows=right_once_scaled("q", "q[0]**-0.5"),
    keeps=0.65,
    replace=(" / math.sqrt(q.shape[0])", ""),
)
def single_without_scale(): ...


@mistake(
    "single_query_attention",
    hint="Your scores become too small as d grows. Measure their spread: it is the root "
    "of d, not d.",
    shows=right_once_scaled("q", "q[0]**0.5"),
    keeps=0.65,
    replace=("math.sqrt(q.shape[0])", "q.shape[0]"),
)
def single_divides_by_d(): ...


@mistake(
    "single_query_attention",
    keeps=0.65,
    hint="Your scale depends on the width of the values. Which vectors meet in the dot product?",
    replace=("math.sqrt(q.shape[0])", "math.sqrt(v.shape[1])"),
)
def single_scales_by_the_values_width(): ...


@mistake(
    "single_query_attention",
    keeps=0.65,
    hint="Your scale depends on the number of keys. Copying a key must not change its score.",
    replace=("math.sqrt(q.shape[0])", "math.sqrt(k.shape[0])"),
)
def single_scales_by_the_number_of_keys(): ...


@mistake(
    "single_query_attention",
    keeps=0.65,
    hint="Your scores grow with the width: the scale should make them smaller, not larger.",
    shows=right_once_scaled("q", "q[0]**-1"),
    replace=("/ math.sqrt", "* math.sqrt"),
)
def single_multiplies_by_the_root(): ...


@mistake(
    "single_query_attention",
    keeps=0.65,
    hint="With equal values your result is smaller than they are: your weights no longer sum to 1.",
    replace=[
        (" / math.sqrt(q.shape[0])", ""),
        ("softmax(scores)", "softmax(scores) / math.sqrt(q.shape[0])"),
    ],
)
def single_scales_after_softmax(): ...


@mistake(
    "single_query_attention",
    keeps=0.65,
    hint="Which of the two decides the weights and which is mixed, keys or values?",
    shows=ignores("v"),
    replace=(
        "return (softmax(scores) @ v.to(wide)).to(v.dtype)",
        "return (softmax(scores) @ k.to(wide)).to(k.dtype)",
    ),
)
def single_mixes_the_keys(): ...


@mistake(
    "single_query_attention",
    keeps=0.65,
    hint="Keys decide how much, values decide what. Yours are exchanged wherever the "
    "sizes allow it.",
    shows=right_once_exchanged("k", "v"),
    replace=(
        "wide = torch.promote_types(v.dtype, torch.float32)",
        """
        k, v = v, k
        wide = torch.promote_types(v.dtype, torch.float32)""",
    ),
)
def single_exchanges_keys_and_values(): ...


@mistake(
    "single_query_attention",
    hint="Change one key: your result stays the same. It is a plain mean of the values.",
    shows=ignores("q") & ignores("k"),
    replace=(
        "return (softmax(scores) @ v.to(wide)).to(v.dtype)",
        "return v.mean(dim=0)",
    ),
)
def single_averages_the_values(): ...


@mistake(
    "single_query_attention",
    hint="You pick the value of the best key. Attention mixes; only very large scores pick one.",
    shows=through_unit("v", one_hot(-1)),
    replace=(
        "return (softmax(scores) @ v.to(wide)).to(v.dtype)",
        "return v[scores.argmax()] + 0 * (q.sum() + k.sum())",
    ),
)
def single_takes_the_best(): ...


@mistake(
    "single_query_attention",
    hint="exp of a large score is infinite, and inf / inf is NaN. Only differences of "
    "scores matter.",
    replace=("softmax(scores)", "torch.exp(scores) / torch.exp(scores).sum()"),
)
def single_without_a_maximum(): ...


@mistake(
    "single_query_attention",
    hint="The scores mix the values as they are. A softmax makes them weights with sum 1 first.",
    shows=through_unit("v", needs_softmax(-1) & ~is_what("log")),
    replace=("softmax(scores)", "scores"),
)
def single_without_softmax(): ...


@mistake(
    "single_query_attention",
    keeps=0.65,
    hint="You compare directions only. A dot product also knows lengths: a long key calls louder.",
    replace=(
        "scores = k.to(wide) @ q.to(wide) / math.sqrt(q.shape[0])",
        "scores = torch.nn.functional.cosine_similarity(k.to(wide), q.to(wide)[None], dim=-1)",
    ),
)
def single_compares_by_cosine(): ...


@mistake(
    "single_query_attention",
    keeps=0.65,
    hint="One query gives one vector, [d_v]. Yours has an axis of length 1 in front.",
    shows=one_axis_more(),
    replace=(".to(v.dtype)", ".to(v.dtype).unsqueeze(0)"),
)
def single_keeps_an_axis(): ...


@mistake(
    "single_query_attention",
    hint="The caller's query is another tensor after your call: `/=` writes into it. Call your "
    "function twice: is it the same answer?",
    replace=(
        "scores = k.to(wide) @ q.to(wide) / math.sqrt(q.shape[0])",
        """
        with torch.no_grad():
            q /= math.sqrt(q.shape[0])
        scores = k.to(wide) @ q.to(wide)""",
    ),
)
def single_scales_the_query_in_place(): ...


@mistake(
    "single_query_attention",
    hint="Half precision in, half precision out: cast back what you computed in float32.",
    shows=has_dtype("float32"),
    replace=(
        "return (softmax(scores) @ v.to(wide)).to(v.dtype)",
        "return softmax(scores) @ v.to(wide)",
    ),
)
def single_returns_float32(): ...


@mistake(
    "single_query_attention",
    hint="In float16 a score above 65504 is infinite, before any scale. Convert before "
    "you multiply.",
    replace=[("k.to(wide) @ q.to(wide)", "k @ q"), ("v.to(wide)", "v")],
)
def single_overflows_in_half(): ...


@mistake(
    "single_query_attention",
    hint="Sizes that cannot match should raise ValueError and name the sizes.",
    replace=[
        ("if q.shape[0] != k.shape[1]:", "if False:"),
        ("if k.shape[0] != v.shape[0]:", "if False:"),
    ],
)
def single_without_checks(): ...


# ---------------------------------------------------------------------------------------
# attention_weights


@mistake(
    "attention_weights",
    hint="For d = 64 the scores of random vectors are about 8 in size. What brings them back to 1?",
    shows=scores_off_by("q[-1]**0.5"),
    keeps=0.65,
    replace=(" / math.sqrt(d)", ""),
)
def weights_without_scale(): ...


@mistake(
    "attention_weights",
    hint="You divide by d: by d itself, or by its root twice, once in the queries and once in "
    "the scores. Measure the "
    "spread of q · k.",
    shows=scores_off_by("q[-1]**-0.5"),
    keeps=0.65,
    replace=("math.sqrt(d)", "d"),
)
def weights_divided_by_d(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="Your scale depends on the number of keys. It belongs to the width of the vectors.",
    shows=scores_off_by("q[-1]**0.5 * k[-2]**-0.5"),
    replace=("math.sqrt(d)", "math.sqrt(k.shape[-2])"),
)
def weights_scaled_by_the_number_of_keys(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="Do the rows of your weights still sum to 1? The scale belongs before the softmax.",
    shows=scores_off_by("q[-1]**0.5") & sums_to("q[-1]**-0.5"),
    replace=[
        (" / math.sqrt(d)", ""),
        ("softmax(scores, dim=-1)", "(softmax(scores, dim=-1) / math.sqrt(d))"),
    ],
)
def weights_scaled_after_softmax(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="Each query distributes over the keys: along which axis do your weights sum to 1?",
    shows=sums_to_one(-2) & ~axes_exchanged(),
    replace=("softmax(scores, dim=-1)", "softmax(scores, dim=-2)"),
)
def softmax_over_the_queries(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="`dim=1` is the axis of the keys in a single matrix only. With axes in front, "
    "axis 1 is another one.",
    shows=sums_to_one(1),
    replace=("softmax(scores, dim=-1)", "softmax(scores, dim=1)"),
)
def softmax_over_axis_one(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="All your weights together sum to 1. Every query has a weight of 1 to spend.",
    shows=sums_to_one(-1, -2),
    replace=(
        "softmax(scores, dim=-1)",
        "softmax(scores.flatten(-2)).view(scores.shape)",
    ),
)
def softmax_over_the_whole_matrix(): ...


@mistake(
    "attention_weights",
    hint="exp of a large score is infinite, and inf / inf is NaN. Only differences of "
    "scores matter.",
    replace=(
        "softmax(scores, dim=-1)",
        "(torch.exp(scores) / torch.exp(scores).sum(dim=-1, keepdim=True))",
    ),
)
def weights_without_a_maximum(): ...


@mistake(
    "attention_weights",
    hint="One maximum for the whole tensor: a row whose scores are all far below it becomes 0/0. "
    "One maximum per row.",
    replace=(
        "return softmax(scores, dim=-1).to(q.dtype)",
        """
        e = torch.exp(scores - scores.max())
        return (e / e.sum(dim=-1, keepdim=True)).to(q.dtype)""",
    ),
)
def weights_with_one_global_maximum(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="Exchange the last two axes of k and no others: the batch axis stays in front.",
    replace=("transpose(-2, -1)", "transpose(0, 1)"),
)
def transposes_the_first_two_axes(): ...


@mistake(
    "attention_weights",
    hint="You exchange axes 1 and 2. They are the last two only where exactly one axis stands in "
    "front.",
    replace=("transpose(-2, -1)", "transpose(1, 2)"),
)
def transposes_axes_one_and_two(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="Row i of the scores belongs to query i. Try different numbers of queries and keys.",
    shows=right_once_exchanged("q", "k"),
    replace=("q.to(wide) @ k.to(wide)", "k.to(wide) @ q.to(wide)"),
)
def scores_of_keys_over_queries(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="The rows are right, and then you transpose the result: rows are queries.",
    shows=axes_exchanged(),
    replace=("softmax(scores, dim=-1)", "softmax(scores, dim=-1).transpose(-2, -1)"),
)
def returns_the_transpose(): ...


@mistake(
    "attention_weights",
    hint="The softmax is missing: your rows do not sum to 1.",
    shows=needs_softmax(-1) & ~is_what("log"),
    replace=("softmax(scores, dim=-1)", "scores"),
)
def weights_without_softmax(): ...


@mistake(
    "attention_weights",
    hint="Change one key: your weights stay equal. They should follow the scores.",
    shows=ignores("q") & ignores("k"),
    replace=("softmax(scores, dim=-1)", "torch.full_like(scores, 1 / k.shape[-2])"),
)
def equal_weights(): ...


@mistake(
    "attention_weights",
    hint="All weight on the best key: soft attention mixes, and a choice has no gradient.",
    shows=one_hot(-1),
    replace=(
        "return softmax(scores, dim=-1).to(q.dtype)",
        """
        hard = torch.nn.functional.one_hot(scores.argmax(dim=-1), scores.shape[-1])
        return hard.to(q.dtype) + 0 * scores.to(q.dtype)""",
    ),
)
def all_weight_on_the_best_key(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="The first entry of the batch is used for all. Try B = 2 with different rows.",
    shows=same_along(0) & ~same_along(-1),
    replace=(
        "return softmax(scores, dim=-1).to(q.dtype)",
        """
        weights = softmax(scores, dim=-1).to(q.dtype)
        return weights if weights.ndim < 3 else weights[:1].expand_as(weights)""",
    ),
)
def weights_of_the_first_batch_entry(): ...


@mistake(
    "attention_weights",
    hint="The caller's queries are other numbers after your call: `/=` writes into them. Call your "
    "function twice: is it the same answer?",
    replace=(
        "scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(d)",
        """
        with torch.no_grad():
            q /= math.sqrt(d)
        scores = q.to(wide) @ k.to(wide).transpose(-2, -1)""",
    ),
)
def scales_the_queries_in_place(): ...


@mistake(
    "attention_weights",
    hint="Half precision in, half precision out: cast back what you computed in float32.",
    shows=has_dtype("float32"),
    replace=(".to(q.dtype)", ""),
)
def weights_in_float32_for_half_inputs(): ...


@mistake(
    "attention_weights",
    hint="In float16 a dot product above 65504 is infinite, before any scale. Convert before "
    "you multiply.",
    replace=("q.to(wide) @ k.to(wide)", "q @ k"),
)
def weights_overflow_in_half(): ...


@mistake(
    "attention_weights",
    hint="The right numbers, one query at a time. All queries fit into one matrix product.",
    replace=(
        "scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(d)",
        """
        rows = [q.to(wide)[..., i : i + 1, :] @ k.to(wide).transpose(-2, -1) for i in range(q.shape[-2])]
        scores = torch.cat(rows, dim=-2) / math.sqrt(d)""",
    ),
)
def loops_over_the_queries(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="You read the numbers of k as [d, N_k] in the order of memory, by `view` or `reshape`. "
    "That is no transpose: the numbers get mixed up.",
    replace=(
        "k.to(wide).transpose(-2, -1)",
        "k.to(wide).reshape(*k.shape[:-2], d, k.shape[-2])",
    ),
)
def views_instead_of_transposing(): ...


@mistake(
    "attention_weights",
    hint="`view` refuses a tensor that is a transposed view of another. `reshape` takes it.",
    replace=(
        "wide = torch.promote_types(q.dtype, torch.float32)",
        """
        q.view(-1, *q.shape[-2:])
        k.view(-1, *k.shape[-2:])
        wide = torch.promote_types(q.dtype, torch.float32)""",
    ),
)
def needs_contiguous_inputs(): ...


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="You compare directions only. A dot product also knows lengths.",
    replace=(
        "scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(d)",
        """
        unit_q, unit_k = (torch.nn.functional.normalize(x.to(wide), dim=-1) for x in (q, k))
        scores = unit_q @ unit_k.transpose(-2, -1)""",
    ),
)
def weights_by_cosine(): ...


@mistake(
    "attention_weights",
    hint="Sizes that cannot match should raise ValueError and name both widths.",
    replace=("if k.shape[-1] != d:", "if False:"),
)
def weights_without_checks(): ...


# ----------------------------------------------------------------------------
# scaled_dot_product_attention


@mistake(
    "scaled_dot_product_attention",
    hint="For d = 64 the scores of random vectors are about 8 in size. Where is the scale?",
    shows=through_unit("v", scores_off_by("q[-1]**0.5")),
    keeps=0.65,
    replace=(
        "attention_weights(q, k)",
        "attention_weights(q * math.sqrt(q.shape[-1]), k)",
    ),
)
def attention_without_scale(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="You divide by d: by d itself, or by its root a second time, since "
    "`attention_weights` scales already. Measure the spread of scores at d = 256.",
    shows=through_unit("v", scores_off_by("q[-1]**-0.5")),
    keeps=0.65,
    replace=(
        "attention_weights(q, k)",
        "attention_weights(q / math.sqrt(q.shape[-1]), k)",
    ),
)
def attention_divided_by_d(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="Your scale is the width of the values. Which vectors are in the dot product?",
    shows=through_unit("v", scores_off_by("q[-1]**0.5 * v[-1]**-0.5")),
    replace=(
        "attention_weights(q, k)",
        "attention_weights(q * math.sqrt(q.shape[-1] / v.shape[-1]), k)",
    ),
)
def attention_scaled_by_the_values_width(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="If all values are equal, the result must equal them. Yours is smaller: scale the scores.",
    shows=through_unit("v", scores_off_by("q[-1]**0.5"))
    & through_unit("v", sums_to("q[-1]**-0.5")),
    replace=(
        "attention_weights(q, k)",
        "attention_weights(q * math.sqrt(q.shape[-1]), k) / math.sqrt(q.shape[-1])",
    ),
)
def attention_scaled_after_softmax(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="The weights have been through a softmax already. A second one makes them nearly equal.",
    replace=("attention_weights(q, k)", "softmax(attention_weights(q, k))"),
)
def attention_with_two_softmaxes(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="Each query distributes over the keys: sum your weights over which axis to get 1?",
    shows=through_unit("v", sums_to_one(-2) & ~axes_exchanged()),
    replace=("attention_weights(q, k)", "attention_weights(k, q).transpose(-2, -1)"),
)
def attention_softmax_over_queries(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="`dim=1` is the axis of the keys in a single matrix only. Count axes from the end.",
    shows=through_unit("v", sums_to_one(-2) & ~axes_exchanged()),
    replace=(
        "return attention_weights(q, k) @ v",
        """
        attention_weights(q, k)  # refuses other widths
        wide = torch.promote_types(q.dtype, torch.float32)
        scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(q.shape[-1])
        return softmax(scores, dim=1).to(v.dtype) @ v""",
    ),
)
def attention_softmax_over_axis_one(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="exp of a large score is infinite, and inf / inf is NaN. Only differences matter.",
    replace=(
        "return attention_weights(q, k) @ v",
        """
        attention_weights(q, k)  # refuses other widths
        wide = torch.promote_types(q.dtype, torch.float32)
        e = torch.exp(q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(q.shape[-1]))
        return (e / e.sum(dim=-1, keepdim=True)).to(v.dtype) @ v""",
    ),
)
def attention_without_a_maximum(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="Another v changes nothing in your result. What the weights mix are the values.",
    shows=ignores("v"),
    replace=(
        "return attention_weights(q, k) @ v",
        "return attention_weights(q, k) @ k",
    ),
)
def attention_mixes_the_keys(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="Keys decide the weights and values are mixed: yours are exchanged. Test with "
    "three tensors.",
    shows=right_once_exchanged("k", "v"),
    replace=(
        "return attention_weights(q, k) @ v",
        "return attention_weights(q, v) @ k",
    ),
)
def attention_exchanges_keys_and_values(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="Queries and keys are exchanged: the rows of the result belong to the queries.",
    shows=right_once_exchanged("q", "k"),
    replace=("attention_weights(q, k)", "attention_weights(k, q)"),
)
def attention_exchanges_queries_and_keys(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="The weights are [N_q, N_k] and multiply the values as they are, without a transpose.",
    shows=through_unit("v", axes_exchanged()) & ~axes_exchanged(),
    replace=("attention_weights(q, k)", "attention_weights(q, k).transpose(-2, -1)"),
)
def attention_transposes_the_weights(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="Your result is [d_v, N_q], one column per query. In this course tokens are rows.",
    shows=axes_exchanged(),
    replace=(
        "return attention_weights(q, k) @ v",
        "return (attention_weights(q, k) @ v).transpose(-2, -1)",
    ),
)
def attention_with_columns_for_tokens(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="Change one key: does your result change? It is the plain mean of the values.",
    shows=ignores("q") & ignores("k"),
    replace=(
        "return attention_weights(q, k) @ v",
        """
        mean = v.mean(dim=-2, keepdim=True).expand(*q.shape[:-1], v.shape[-1])
        return mean + 0 * attention_weights(q, k).sum()""",
    ),
)
def attention_averages_the_values(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="You take the value of the best key. Soft attention mixes all of them.",
    shows=through_unit("v", one_hot(-1)),
    replace=(
        "return attention_weights(q, k) @ v",
        """
        best = attention_weights(q, k).argmax(dim=-1)
        return torch.nn.functional.one_hot(best, k.shape[-2]).to(v.dtype) @ v + 0 * (q.sum() + k.sum())""",
    ),
)
def attention_takes_the_best(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="The first entry of the batch is used for all. Try B = 2 with different rows.",
    shows=needs_the_first_only("q", 0) & ~ignores("q"),
    replace=(
        "return attention_weights(q, k) @ v",
        """
        weights = attention_weights(q, k)
        return (weights if weights.ndim < 3 else weights[:1]) @ v""",
    ),
)
def attention_of_the_first_batch_entry(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="Your product takes three axes and no others (as bmm does). `@` carries any number of "
    "leading axes along.",
    replace=(
        "return attention_weights(q, k) @ v",
        "return torch.bmm(attention_weights(q, k), v)",
    ),
)
def attention_for_three_axes_only(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="The caller's queries are other numbers after your call: `/=` writes into them. Call your "
    "function twice: is it the same answer?",
    replace=(
        "return attention_weights(q, k) @ v",
        """
        with torch.no_grad():
            q /= math.sqrt(q.shape[-1])
        return attention_weights(q * math.sqrt(q.shape[-1]), k) @ v""",
    ),
)
def attention_scales_in_place(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="Half precision in, half precision out: cast back what you computed in float32.",
    shows=has_dtype("float32"),
    replace=(
        "return attention_weights(q, k) @ v",
        """
        mixed = attention_weights(q, k) @ v
        return mixed.float() if mixed.dtype == torch.float16 else mixed""",
    ),
)
def attention_returns_float32(): ...


@mistake(
    "scaled_dot_product_attention",
    keeps=0.65,
    hint="The mixed values alone are asked for, not a pair with the weights.",
    shows=part(1, sums_to_one(-1)),
    replace=(
        "return attention_weights(q, k) @ v",
        """
        weights = attention_weights(q, k)
        return weights @ v, weights""",
    ),
)
def attention_returns_the_weights_too(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="The right numbers, one query at a time. One matrix product mixes for all queries.",
    replace=(
        "return attention_weights(q, k) @ v",
        """
        rows = [attention_weights(q[..., i : i + 1, :], k) @ v for i in range(q.shape[-2])]
        return torch.cat(rows, dim=-2)""",
    ),
)
def attention_loops_over_queries(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="Keys without a value should raise ValueError that names both counts.",
    replace=("if k.shape[-2] != v.shape[-2]:", "if False:"),
)
def attention_without_checks(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="attention_weights has divided by the root and has been through softmax already. Yours does "
    "both a second time, and the weights become nearly equal.",
    keeps=0.65,
    replace=(
        "return attention_weights(q, k) @ v",
        "return softmax(attention_weights(q, k) / math.sqrt(q.shape[-1])) @ v",
    ),
)
def goes_through_softmax_twice(): ...


# -----------------------------------------------------------------------------------------------
# score_std


@mistake(
    "score_std",
    hint="Other seeds give the very same number: you return the formula. Draw, multiply, measure.",
    shows=ignores("num_samples") & ignores("seed"),
    replace=("(q * k).sum(dim=-1).std().item()", "math.sqrt(d)"),
)
def returns_the_formula(): ...


@mistake(
    "score_std",
    hint="Your result is near d: that is the variance. The standard deviation is its root.",
    shows=is_what("square"),
    keeps=0.65,
    replace=(".std()", ".var()"),
)
def returns_the_variance(): ...


@mistake(
    "score_std",
    keeps=0.65,
    hint="Your result is near 1 at every width. The question is how large scores are "
    "before any scale.",
    replace=("(q * k).sum(dim=-1)", "((q * k).sum(dim=-1) / math.sqrt(d))"),
)
def scales_before_measuring(): ...


@mistake(
    "score_std",
    keeps=0.65,
    hint="The dot products have mean 0, and that is what you return. How far do they "
    "spread around it?",
    replace=(".std()", ".mean()"),
)
def returns_the_mean(): ...


@mistake(
    "score_std",
    hint="The mean of absolute values is about 0.8 of the standard deviation.",
    replace=(".std()", ".abs().mean()"),
)
def returns_the_mean_absolute_score(): ...


@mistake(
    "score_std",
    keeps=0.65,
    hint="rand is uniform in [0, 1): its mean is not 0, its variance not 1. The formula needs "
    "normal entries.",
    replace=[
        ("q = torch.randn(", "q = torch.rand("),
        ("k = torch.randn(", "k = torch.rand("),
    ],
)
def draws_uniform_numbers(): ...


@mistake(
    "score_std",
    hint="You multiply each vector with itself. Query and key are drawn independently.",
    replace=("q * k", "q * q"),
)
def keys_equal_queries(): ...


@mistake(
    "score_std",
    hint="One query serves all pairs, so that the result is the length of this query. Draw "
    "one per pair.",
    replace=("(q * k).sum(dim=-1)", "(k @ q[0])"),
)
def one_query_for_all_pairs(): ...


@mistake(
    "score_std",
    keeps=0.65,
    hint="You sum over the pairs. A dot product sums over the d features of one pair.",
    replace=(".sum(dim=-1).std()", ".sum(dim=0).std(correction=0)"),
)
def sums_over_the_pairs(): ...


@mistake(
    "score_std",
    hint="Your result does not depend on d. The products of one pair must be summed before "
    "you measure.",
    replace=(".sum(dim=-1)", ""),
)
def does_not_sum_over_features(): ...


@mistake(
    "score_std",
    hint="torch.manual_seed sets the state that everybody shares. Bring a generator of your own.",
    replace=("torch.Generator().manual_seed(seed)", "torch.manual_seed(seed)"),
)
def seeds_the_global_generator(): ...


@mistake(
    "score_std",
    hint="numpy.random.seed sets the state that everybody shares. numpy.random.default_rng(seed) "
    "is a generator of your own.",
    answer="""
import numpy as np


def score_std(d, num_samples, seed):
    if d < 1 or num_samples < 2:
        raise ValueError(f"width {d} and {num_samples} pairs have no spread")
    np.random.seed(seed)
    q = np.random.randn(num_samples, d)
    k = np.random.randn(num_samples, d)
    return float((q * k).sum(axis=1).std())
""",
)
def seeds_the_generator_of_numpy(): ...


@mistake(
    "score_std",
    hint="Your numbers come from a fixed seed: another seed must give another measurement.",
    shows=ignores("seed") & ~ignores("num_samples"),
    replace=("manual_seed(seed)", "manual_seed(0)"),
)
def ignores_the_seed(): ...


@mistake(
    "score_std",
    hint="You draw from the shared random state and never use the seed: two calls give two results.",
    replace=("torch.Generator().manual_seed(seed)", "torch.default_generator"),
)
def draws_without_a_seed(): ...


@mistake(
    "score_std",
    hint="A Python float is asked for; yours is a tensor with one element.",
    replace=(".item()", ""),
)
def returns_a_tensor(): ...


@mistake(
    "score_std",
    hint="A width of 0 or a single pair has no spread: raise ValueError with the numbers.",
    replace=("if d < 1 or num_samples < 2:", "if False:"),
)
def std_without_checks(): ...


# -----------------------------------------------------------------------------------
# softmax_gradient_norm


@mistake(
    "softmax_gradient_norm",
    keeps=0.65,
    hint="You count the diagonal only. Raising one score also lowers the other probabilities.",
    replace=("torch.diag(p) - torch.outer(p, p)", "p * (1 - p)"),
)
def only_the_diagonal(): ...


@mistake(
    "softmax_gradient_norm",
    keeps=0.65,
    hint="Your Jacobian lacks p pᵀ, so that a saturated softmax has norm 1 instead of 0.",
    replace=(" - torch.outer(p, p)", ""),
)
def without_the_outer_product(): ...


@mistake(
    "softmax_gradient_norm",
    keeps=0.65,
    hint="There is a minus between diag(p) and p pᵀ: the columns of J sum to 0.",
    replace=("- torch.outer", "+ torch.outer"),
)
def adds_the_outer_product(): ...


@mistake(
    "softmax_gradient_norm",
    hint="The root of the sum of squares is missing.",
    shows=is_what("square"),
    keeps=0.65,
    replace=(".sqrt()", ""),
)
def forgets_the_root(): ...


@mistake(
    "softmax_gradient_norm",
    hint="That is the largest singular value. The Frobenius norm takes all N × N entries.",
    replace=(
        "jacobian.pow(2).sum().sqrt()",
        "torch.linalg.matrix_norm(jacobian.double(), ord=2)",
    ),
)
def spectral_norm(): ...


@mistake(
    "softmax_gradient_norm",
    keeps=0.65,
    hint="You sum absolute values. Frobenius: square, sum, root.",
    replace=("pow(2).sum().sqrt()", "abs().sum()"),
)
def sums_absolute_values(): ...


@mistake(
    "softmax_gradient_norm",
    keeps=0.65,
    hint="A mean over the entries makes the norm smaller with every score. Sum them.",
    replace=("pow(2).sum()", "pow(2).mean()"),
)
def mean_of_the_squares(): ...


@mistake(
    "softmax_gradient_norm",
    keeps=0.65,
    hint="J is made of the probabilities. You put the scores themselves in.",
    replace=("p = softmax(z)", "p = z"),
)
def uses_scores_for_probabilities(): ...


@mistake(
    "softmax_gradient_norm",
    hint="The probabilities sum to 1 whatever z is, so the gradient of their sum is 0. "
    "Take each entry.",
    replace=(
        "return jacobian.pow(2).sum().sqrt().item()",
        """
        leaf = z.detach().clone().requires_grad_()
        torch.softmax(leaf, dim=-1).sum().backward()
        return leaf.grad.norm().item()""",
    ),
)
def gradient_of_the_sum(): ...


@mistake(
    "softmax_gradient_norm",
    keeps=0.65,
    hint="That is the Jacobian of log softmax, which does not vanish when the softmax saturates.",
    replace=(
        "torch.diag(p) - torch.outer(p, p)",
        "torch.eye(len(z), dtype=z.dtype) - p.expand(len(z), len(z))",
    ),
)
def jacobian_of_the_log(): ...


@mistake(
    "softmax_gradient_norm",
    hint="exp(1000) overflows and the norm becomes NaN: subtract the largest score first.",
    replace=("softmax(z)", "torch.exp(z) / torch.exp(z).sum()"),
)
def norm_without_a_maximum(): ...


@mistake(
    "softmax_gradient_norm",
    hint="A Python float is asked for; yours is a tensor with one element.",
    replace=(".item()", ""),
)
def norm_as_a_tensor(): ...


@mistake(
    "softmax_gradient_norm",
    hint="A matrix or nothing at all is not one row of scores: raise ValueError with its shape.",
    replace=[
        ("if z.ndim != 1 or z.shape[0] == 0:", "if False:"),
        ("p = softmax(z)", "p = softmax(z.flatten()) if z.numel() else z.flatten()"),
    ],
)
def norm_without_checks(): ...


@mistake(
    "softmax_gradient_norm",
    hint="Σp² − 2Σp³ + (Σp²)² is small near saturation, and its terms are close to 1: float32 keeps no "
    "digit of it, and the root may be NaN. The entries of J are small themselves: square those.",
    replace=(
        "return jacobian.pow(2).sum().sqrt().item()",
        "return (p.pow(2).sum() - 2 * p.pow(3).sum() + p.pow(2).sum() ** 2).sqrt().item()",
    ),
)
def cancels_near_saturation(): ...


@mistake(
    "softmax_gradient_norm",
    hint="A tensor without axes has no len(): TypeError comes out before you refuse it. Look at "
    "its number of axes first.",
    replace=("z.ndim != 1 or z.shape[0] == 0", "len(z) == 0 or z.ndim != 1"),
)
def asks_a_number_for_its_length(): ...


# ----------------------------------------------------------------------------------------------
# compare_layers


@mistake(
    "compare_layers",
    hint="A multiplication and an addition are two operations here.",
    replace=[
        ("n * 2 * 2 * d * d", "n * 2 * d * d"),
        ("n * k * 2 * d * d", "n * k * d * d"),
        ("2 * 2 * n * n * d", "2 * n * n * d"),
    ],
)
def a_multiply_add_is_one(): ...


@mistake(
    "compare_layers",
    hint="Your recurrence multiplies the word only. What else goes into a state?",
    replace=("n * 2 * 2 * d * d", "n * 2 * d * d"),
)
def a_recurrence_without_its_state(): ...


@mistake(
    "compare_layers",
    hint="Your convolution multiplies one token. How many does it read?",
    replace=("n * k * 2 * d * d", "n * 2 * d * d"),
)
def a_convolution_of_one_token(): ...


@mistake(
    "compare_layers",
    hint="At the beginning zeros stand in for missing tokens, and they are multiplied "
    "like the others.",
    replace=("n * k * 2 * d * d", "sum(min(i + 1, k) for i in range(n)) * 2 * d * d"),
)
def leaves_the_zeros_out(): ...


@mistake(
    "compare_layers",
    hint="You count the scores. A second product mixes the values.",
    replace=("2 * 2 * n * n * d", "2 * n * n * d"),
)
def attention_stops_at_the_scores(): ...


@mistake(
    "compare_layers",
    hint="Your attention grows like n. Every query meets every key.",
    replace=("2 * 2 * n * n * d", "2 * 2 * n * d * d"),
)
def attention_linear_in_n(): ...


@mistake(
    "compare_layers",
    hint="You count the visible pairs of query and key. The products are made in full, and "
    "masked afterwards.",
    replace=("2 * 2 * n * n * d", "2 * n * (n + 1) * d"),
)
def attention_to_the_visible_keys(): ...


@mistake(
    "compare_layers",
    hint="Queries, keys and values are given: their projections are not counted here.",
    replace=("2 * 2 * n * n * d", "2 * 2 * n * n * d + 3 * 2 * n * d * d"),
)
def attention_with_projections(): ...


@mistake(
    "compare_layers",
    hint="Operations are those of one layer; num_layers is for the receptive field.",
    replace=[
        ("n * 2 * 2 * d * d", "num_layers * n * 2 * 2 * d * d"),
        ("n * k * 2 * d * d", "num_layers * n * k * 2 * d * d"),
        ("2 * 2 * n * n * d", "num_layers * 2 * 2 * n * n * d"),
    ],
)
def operations_of_all_layers(): ...


@mistake(
    "compare_layers",
    hint="Can the states of a recurrence be computed at once? What does the second one need?",
    replace=('"sequential_steps": n,', '"sequential_steps": 1,'),
)
def a_recurrence_all_at_once(): ...


@mistake(
    "compare_layers",
    hint="Two layers of width 3 see five tokens, not six: they overlap.",
    replace=("1 + num_layers * (k - 1)", "num_layers * k"),
)
def layers_do_not_overlap(): ...


@mistake(
    "compare_layers",
    hint="Two layers of width 3 see five tokens, not nine: each adds as many as the one before.",
    replace=("1 + num_layers * (k - 1)", "k**num_layers"),
)
def a_field_that_multiplies(): ...


@mistake(
    "compare_layers",
    hint="The last output depends on its own token, too.",
    replace=("min(n, 1 + num_layers * (k - 1))", "min(n, num_layers * (k - 1))"),
)
def a_field_without_its_own_token(): ...


@mistake(
    "compare_layers",
    hint="The receptive field is that of num_layers layers. What does each one add?",
    replace=("1 + num_layers * (k - 1)", "k"),
)
def the_field_of_one_layer(): ...


@mistake(
    "compare_layers",
    hint="Your convolution looks ahead as well. Here a token reads itself and what came before.",
    replace=("1 + num_layers * (k - 1)", "1 + num_layers * 2 * (k - 1)"),
)
def a_field_of_both_sides(): ...


@mistake(
    "compare_layers",
    hint="There are n tokens: no output can depend on more.",
    replace=("min(n, 1 + num_layers * (k - 1))", "1 + num_layers * (k - 1)"),
)
def a_field_larger_than_the_text(): ...


@mistake(
    "compare_layers",
    hint="Your path ends before it reaches the first token: a part of a layer is a layer.",
    replace=("-(-(n - 1) // (k - 1))", "(n - 1) // (k - 1)"),
)
def a_path_rounded_down(): ...


@mistake(
    "compare_layers",
    hint="Where n - 1 divides by k - 1 you count one convolution too many.",
    replace=("-(-(n - 1) // (k - 1))", "((n - 1) // (k - 1) + 1)"),
)
def a_path_with_one_more(): ...


@mistake(
    "compare_layers",
    hint="A layer leads k - 1 tokens further, not k.",
    replace=("-(-(n - 1) // (k - 1))", "-(-n // k)"),
)
def a_path_by_whole_widths(): ...


@mistake(
    "compare_layers",
    hint="Convolutions whose width doubles from layer to layer reach that fast. Here each leads "
    "as far as the last.",
    replace=("-(-(n - 1) // (k - 1))", "math.ceil(math.log(n, k))"),
)
def a_path_of_logarithms(): ...


@mistake(
    "compare_layers",
    hint="With one token the output is still one layer away from it.",
    replace=("max(1, -(-(n - 1) // (k - 1)))", "-(-(n - 1) // (k - 1))"),
)
def a_path_of_no_steps(): ...


@mistake(
    "compare_layers",
    hint="The step from the first token into the first state counts, too.",
    replace=('"longest_path": n,', '"longest_path": n - 1,'),
)
def a_path_between_the_states(): ...


@mistake(
    "compare_layers",
    hint="The last query meets the first key directly: what lies between does not matter.",
    replace=('"longest_path": 1,', '"longest_path": n,'),
)
def attention_walks_from_token_to_token(): ...


@mistake(
    "compare_layers",
    hint="Counts are whole numbers: which division gives an int?",
    replace=("max(1, -(-(n - 1) // (k - 1)))", "float(max(1, -(-(n - 1) // (k - 1))))"),
)
def numbers_with_a_point(): ...


@mistake(
    "compare_layers",
    hint="A convolution of width 1 connects nothing, however many layers there are.",
    replace=("k < 2", "k < 1"),
)
def a_convolution_of_width_one(): ...


# -------------------------------------------------------------------------------------------
# linear_scores


@mistake(
    "linear_scores",
    hint="The pair is [state; states_i]: the first S weights belong to the state.",
    keeps=0.65,
    replace=[
        ("state @ w[:width]", "state @ w[states.shape[-1] :]"),
        ("states @ w[width:]", "states @ w[: states.shape[-1]]"),
    ],
)
def states_stand_first(): ...


@mistake(
    "linear_scores",
    hint="The decoder state is left out. A softmax cancels its part later, but here the "
    "scores themselves are asked for.",
    shows=ignores("state") & ~sums_to_one(1),
    replace=("asked + offered + b", "offered + b"),
)
def only_the_encoder_states(): ...


@mistake(
    "linear_scores",
    hint="The bias is missing. It would change no weight, but it changes the scores.",
    shows=ignores("b") & ~sums_to_one(1),
    keeps=0.65,
    replace=("asked + offered + b", "asked + offered"),
)
def linear_without_bias(): ...


@mistake(
    "linear_scores",
    keeps=0.65,
    hint="The lecture's score is linear, with nothing behind it. Your tanh mends the error that "
    "this question is about.",
    replace=("asked + offered + b", "torch.tanh(asked + offered + b)"),
)
def linear_with_tanh(): ...


@mistake(
    "linear_scores",
    keeps=0.65,
    hint="[B] + [B, T] lines sentences up with positions. The part of the state needs an axis "
    "for positions.",
    shows=mixes_the_batch("state"),
    replace=(".unsqueeze(-1)", ""),
)
def linear_without_a_position_axis(): ...


@mistake(
    "linear_scores",
    keeps=0.65,
    hint="The scores are asked for raw. The softmax comes in query_effect.",
    shows=sums_to_one(1),
    replace=("asked + offered + b", "softmax(asked + offered + b)"),
)
def linear_already_normalized(): ...


@mistake(
    "linear_scores",
    hint="A weight of the wrong length should raise ValueError that names its length and the one that is asked for.",
    replace=[
        ("if w.shape != (width + states.shape[-1],):", "if False:"),
        ("w[width:]", "w[width:][: states.shape[-1]]"),
    ],
)
def linear_without_checks(): ...


# --------------------------------------------------------------------------------------------
# query_effect


@mistake(
    "query_effect",
    keeps=0.65,
    hint="Both of your numbers compare scores. The proof is in what the softmax makes of them.",
    replace=("(weights_a - weights_b)", "(scores_a - scores_b)"),
)
def compares_scores_twice(): ...


@mistake(
    "query_effect",
    hint="Your number does not depend on the score that you were given: it is what one expects of "
    "a linear layer. Measure it.",
    replace=("(weights_a - weights_b).abs().max().item()", "0.0"),
)
def returns_what_the_notes_imply(): ...


@mistake(
    "query_effect",
    keeps=0.65,
    hint="Your weights sum to 1 over the sentences, so that a shared shift does not cancel.",
    replace=[
        (
            "_, weights_a = attend(scores_a, states)",
            "weights_a = softmax(scores_a, dim=0)",
        ),
        (
            "_, weights_b = attend(scores_b, states)",
            "weights_b = softmax(scores_b, dim=0)",
        ),
    ],
)
def effect_softmax_over_the_batch(): ...


@mistake(
    "query_effect",
    keeps=0.65,
    hint="The softmax of a difference is not the difference of two softmaxes.",
    replace=("(weights_a - weights_b)", "softmax(scores_a - scores_b)"),
)
def softmax_of_the_difference(): ...


@mistake(
    "query_effect",
    keeps=0.65,
    hint="You average the differences, which hides one large change among many small ones. Take "
    "the largest.",
    replace=[
        ("(scores_a - scores_b).abs().max()", "(scores_a - scores_b).abs().mean()"),
        ("(weights_a - weights_b).abs().max()", "(weights_a - weights_b).abs().mean()"),
    ],
)
def mean_difference(): ...


@mistake(
    "query_effect",
    hint="A change downwards counts as much as one upwards: take absolute values before "
    "the largest.",
    replace=[
        ("(scores_a - scores_b).abs()", "(scores_a - scores_b)"),
        ("(weights_a - weights_b).abs()", "(weights_a - weights_b)"),
    ],
)
def signed_difference(): ...


@mistake(
    "query_effect",
    keeps=0.65,
    hint="Only sentence 0 is looked at. The largest difference may be in another one.",
    replace=[
        ("(scores_a - scores_b)", "(scores_a - scores_b)[0]"),
        ("(weights_a - weights_b)", "(weights_a - weights_b)[0]"),
    ],
)
def first_sentence_only(): ...


@mistake(
    "query_effect",
    hint="The two numbers are in the other order: first the scores, then the weights.",
    shows=parts_exchanged(),
    keeps=0.65,
    replace=[
        ("(scores_a - scores_b)", "(weights_a - weights_b)"),
        ("(weights_a - weights_b)", "(scores_a - scores_b)"),
    ],
)
def effects_in_the_other_order(): ...


@mistake(
    "query_effect",
    hint="You compare the contexts, which also depend on how different the states are. Compare "
    "the weights.",
    replace=[
        ("_, weights_a =", "weights_a, _ ="),
        ("_, weights_b =", "weights_b, _ ="),
    ],
)
def compares_the_contexts(): ...


@mistake(
    "query_effect",
    hint="Both sets of scores come from state_a: state_b is never used.",
    replace=("score(state_b, states)", "score(state_a.clone(), states)"),
)
def asks_with_the_same_state_twice(): ...


@mistake(
    "query_effect",
    hint="Two Python floats are asked for; yours are tensors with one element.",
    replace=[
        (
            "(scores_a - scores_b).abs().max().item()",
            "(scores_a - scores_b).abs().max()",
        ),
        (
            "(weights_a - weights_b).abs().max().item()",
            "(weights_a - weights_b).abs().max()",
        ),
    ],
)
def effects_as_tensors(): ...


@mistake(
    "query_effect",
    hint="Two states of different shapes should raise ValueError; one row would broadcast silently.",
    replace=[
        ("if state_a.shape != state_b.shape:", "if False:"),
        ("score(state_b, states)", "score(state_b.expand_as(state_a), states)"),
    ],
)
def effect_without_checks(): ...


@mistake(
    "attend",
    hint="`squeeze()` takes out every axis of size 1. What is left of the context of one sentence?",
    replace=(".squeeze(1)", ".squeeze()"),
)
def context_of_one_sentence_loses_its_axis(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="A batch of one sentence is a batch: keep its axis.",
    shows=one_axis_less(),
    replace=("attention_weights(q, k) @ v", "(attention_weights(q, k) @ v).squeeze(0)"),
)
def attention_loses_a_batch_of_one(): ...


@mistake(
    "rnn_encode",
    keeps=0.65,
    hint="You keep h0 among the states: T words, and T + 1 states. Row t of `states` is the state "
    "after reading word t.",
    replace=("states = []", "states = [h0]"),
)
def keeps_the_start_among_the_states(): ...


@mistake(
    "rnn_encode",
    keeps=0.65,
    hint="Your states lie between 0 and 1: that is a sigmoid. This network has tanh.",
    replace=("torch.tanh(", "torch.sigmoid("),
)
def rnn_with_a_sigmoid(): ...


@mistake(
    "rnn_encode",
    keeps=0.65,
    hint="`last` is the mean of your states. It is the state after the last word.",
    replace=(
        "return torch.stack(states, dim=1), h",
        "return torch.stack(states, dim=1), torch.stack(states, dim=1).mean(dim=1)",
    ),
)
def returns_the_mean_as_last(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="That is a ReLU between the projections and v. The formula has tanh.",
    replace=("torch.tanh(", "torch.relu("),
)
def additive_with_relu(): ...


@mistake(
    "additive_scores",
    hint="`squeeze()` without an axis drops every axis of length 1: one sentence, one position. Name "
    "the axis that should go.",
    replace=(
        "return torch.tanh(asked + offered) @ v",
        "return (torch.tanh(asked + offered) @ v).squeeze()",
    ),
)
def squeezes_every_axis_of_one(): ...


@mistake(
    "additive_scores",
    keeps=0.65,
    hint="v weighs what comes out of the tanh. Yours weighs what goes in.",
    replace=(
        "return torch.tanh(asked + offered) @ v",
        "return torch.tanh((asked + offered) * v).sum(dim=-1)",
    ),
)
def weighs_inside_the_tanh(): ...


@mistake(
    "attend",
    keeps=0.65,
    hint="Weights and context are float32, whatever comes in. Compute half precision in float32, and "
    "return the dtype of the inputs.",
    shows=part(0, has_dtype("float32")) & part(1, has_dtype("float32")),
    replace=[
        ("softmax(scores, dim=-1)", "softmax(scores.float(), dim=-1)"),
        ("(weights.unsqueeze(1) @ states)", "(weights.unsqueeze(1) @ states.float())"),
    ],
)
def attends_in_float32_always(): ...


@mistake(
    "attend",
    keeps=0.65,
    hint="The context adds up the sentences of the batch. Each sentence adds up its own positions.",
    replace=(
        "(weights.unsqueeze(1) @ states).squeeze(1)",
        "(weights.unsqueeze(-1) * states).sum(dim=0)",
    ),
)
def sums_over_the_sentences(): ...


@mistake(
    "attend",
    hint="Your softmax is computed in half precision: the exponentials have three digits, and 70000 "
    "of them add up to more than float16 holds. Compute it in float32.",
    replace=(
        "softmax(scores, dim=-1)",
        """
        torch.exp(scores - scores.amax(dim=-1, keepdim=True))
        weights = weights / weights.sum(dim=-1, keepdim=True)""",
    ),
)
def softmax_in_half_precision(): ...


@mistake(
    "attend",
    hint="One maximum is subtracted for all sentences: a sentence with scores far below it gets 0/0. "
    "Each row has its own.",
    replace=(
        "weights = softmax(scores, dim=-1)",
        """
        wide = scores.float() if scores.dtype == torch.float16 else scores
        weights = torch.exp(wide - wide.max())
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(scores.dtype)""",
    ),
)
def one_maximum_for_all_sentences(): ...


@mistake(
    "attend",
    keeps=0.65,
    hint="The axis of length 1 that the product of matrices needs is still there, in the weights and "
    "in the context.",
    shows=part(0, one_axis_more()) & part(1, one_axis_more()),
    replace=[
        (
            "context = (weights.unsqueeze(1) @ states).squeeze(1)",
            """
        weights = weights.unsqueeze(1)
        context = weights @ states""",
        )
    ],
)
def both_keep_an_axis(): ...


@mistake(
    "seq2seq_decode",
    keeps=0.65,
    hint="You step first and look afterwards, so that step t is made with the context of the step "
    "before, and the first with none. Look with s_{t−1}, then make s_t with this context.",
)
def looks_after_the_step(states, s0, targets, params):
    if params["w_y"].shape != (targets.shape[-1], s0.shape[-1]):
        raise ValueError(
            f"{list(params['w_y'].shape)}, {targets.shape[-1]}, {s0.shape[-1]}"
        )
    if not states.shape[0] == s0.shape[0] == targets.shape[0]:
        raise ValueError(f"{states.shape[0]}, {s0.shape[0]}, {targets.shape[0]}")
    s, y, c = s0, torch.zeros_like(targets[:, 0]), torch.zeros_like(states[:, 0])
    hidden, weights = [], []
    for t in range(targets.shape[1]):
        s = torch.tanh(
            y @ params["w_y"] + c @ params["w_c"] + s @ params["w_s"] + params["b"]
        )
        scores = additive_scores(
            s, states, params["w_state"], params["w_states"], params["v"]
        )
        c, a = attend(scores, states)
        y = targets[:, t]
        hidden.append(s)
        weights.append(a)
    return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)


@mistake(
    "attention_weights",
    keeps=0.65,
    hint="`.T` turns all axes round, those of the batch as well. Only the last two change places.",
)
def turns_all_axes_round(q, k):
    d = q.shape[-1]
    if k.shape[-1] != d:
        raise ValueError(f"queries of width {d}, keys of width {k.shape[-1]}")
    wide = torch.promote_types(q.dtype, torch.float32)
    turned = k.to(wide).permute(*reversed(range(k.dim())))
    return softmax(q.to(wide) @ turned / math.sqrt(d), dim=-1).to(q.dtype)


@mistake(
    "attention_weights",
    hint="Axes 1 and 2 are those of the words only where there is one axis in front. Count the two from the end.",
    replace=(
        "k.to(wide).transpose(-2, -1)",
        "(k.to(wide).transpose(1, 2) if k.dim() > 2 else k.to(wide).T)",
    ),
)
def weights_transpose_axes_one_and_two(): ...


@mistake(
    "score_std",
    hint="One query serves all pairs, so that the result is the length of this query. Draw "
    "one per pair.",
    replace=[
        (
            "q = torch.randn(num_samples, d, generator=generator)",
            "q = torch.randn(d, generator=generator)",
        ),
        ("(q * k).sum(dim=-1)", "(k @ q)"),
    ],
)
def one_query_drawn_alone(): ...


@mistake(
    "softmax_gradient_norm",
    keeps=0.65,
    hint="You measure the gradient of a single probability, one row of the Jacobian. It has N rows.",
    replace=(
        "jacobian.pow(2).sum().sqrt().item()",
        "jacobian[0].pow(2).sum().sqrt().item()",
    ),
)
def one_row_of_the_jacobian(): ...


@mistake(
    "softmax_gradient_norm",
    keeps=0.65,
    hint="`p @ p` (and `p @ p.T`) of a row is one number. p pᵀ is a matrix [N, N], the outer product.",
    replace=("torch.outer(p, p)", "p @ p"),
)
def an_inner_product_for_the_outer(): ...


@mistake(
    "compare_layers",
    hint="These are the terms of the table of complexities, without their factors. Count the products: "
    "two matrices a token in a recurrence, two products in attention, and a multiply-add is 2.",
    replace=[
        ("n * 2 * 2 * d * d", "n * d * d"),
        ("n * k * 2 * d * d", "n * k * d * d"),
        ("2 * 2 * n * n * d", "n * n * d"),
    ],
)
def terms_without_their_factors(): ...


@mistake(
    "compare_layers",
    hint="A recurrence of one layer has read everything before: its state reaches back to the first "
    "token, however few layers there are.",
    replace=(
        """
        "receptive_field": n,
        "longest_path": n,  # through every state
        """,
        """
        "receptive_field": min(n, num_layers),
        "longest_path": n,  # through every state
        """,
    ),
)
def a_recurrence_that_looks_one_token_back(): ...


@mistake(
    "query_effect",
    keeps=0.65,
    hint="You take the norm of all differences together. The largest single one is asked for.",
)
def norms_of_the_differences(score, state_a, state_b, states):
    if state_a.shape != state_b.shape:
        raise ValueError(f"{list(state_a.shape)} and {list(state_b.shape)}")
    scores_a, scores_b = score(state_a, states), score(state_b, states)
    weights_a, weights_b = attend(scores_a, states)[1], attend(scores_b, states)[1]
    of_scores = (scores_a - scores_b).norm().item()
    return of_scores, (weights_a - weights_b).norm().item()


@mistake(
    "query_effect",
    keeps=0.65,
    hint="You compare the two largest entries. Subtract entry by entry first: the largest difference is "
    "asked for.",
)
def differences_of_the_largest(score, state_a, state_b, states):
    if state_a.shape != state_b.shape:
        raise ValueError(f"{list(state_a.shape)} and {list(state_b.shape)}")
    scores_a, scores_b = score(state_a, states), score(state_b, states)
    weights_a, weights_b = attend(scores_a, states)[1], attend(scores_b, states)[1]
    of_scores = abs((scores_a.max() - scores_b.max()).item())
    return of_scores, abs((weights_a.max() - weights_b.max()).item())


@mistake(
    "query_effect",
    keeps=0.65,
    hint="The largest difference of all is asked for. Yours is the mean of each sentence's largest.",
    replace=[
        (
            "(scores_a - scores_b).abs().max().item()",
            "(scores_a - scores_b).abs().amax(dim=1).mean().item()",
        ),
        (
            "(weights_a - weights_b).abs().max().item()",
            "(weights_a - weights_b).abs().amax(dim=1).mean().item()",
        ),
    ],
)
def averages_over_the_sentences(): ...
