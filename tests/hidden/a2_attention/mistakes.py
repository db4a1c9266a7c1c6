"""Wrong answers people give to assignment 2: each has one wrong idea and is otherwise a good answer."""

from autograder.suite import mistake

# ---------------------------------------------------------------------------------------------- rnn_encode


def _check_rnn(x, w_x, w_h, b, h0):
    hidden = w_h.shape[0]
    if w_x.shape != (x.shape[2], hidden) or w_h.shape != (hidden, hidden):
        raise ValueError(f"w_x {list(w_x.shape)} and w_h {list(w_h.shape)} do not fit x {list(x.shape)}")
    if b.shape != (hidden,) or h0.shape != (x.shape[0], hidden):
        raise ValueError(f"b {list(b.shape)} and h0 {list(h0.shape)} do not fit x {list(x.shape)}")


def _run_rnn(x, w_x, w_h, b, h0, step):
    _check_rnn(x, w_x, w_h, b, h0)
    h, states = h0, []
    for t in range(x.shape[1]):
        h = step(x[:, t], h)
        states.append(h)
    return torch.stack(states, dim=1), h


@mistake(
    "rnn_encode",
    keeps=0.5,
    hint="Your states can leave the interval (−1, 1). What is applied to the sum at every step?",
)
def rnn_without_tanh(x, w_x, w_h, b, h0):
    return _run_rnn(x, w_x, w_h, b, h0, lambda y, h: y @ w_x + h @ w_h + b)


@mistake(
    "rnn_encode",
    keeps=0.5,
    hint="Your first state ignores h0. The caller says where the network starts; zeros are one choice.",
)
def starts_from_zeros(x, w_x, w_h, b, h0):
    return _run_rnn(x, w_x, w_h, b, torch.zeros_like(h0), lambda y, h: torch.tanh(y @ w_x + h @ w_h + b))


@mistake(
    "rnn_encode", hint="Every step of yours starts from h0 again. Which state should the second word find? Trace T = 2."
)
def never_updates_the_state(x, w_x, w_h, b, h0):
    return _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h0 @ w_h + b))


@mistake("rnn_encode", hint="A network whose next state does not use the last one remembers nothing: where is w_h?")
def forgets_the_recurrent_term(x, w_x, w_h, b, h0):
    return _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + b))


@mistake(
    "rnn_encode",
    hint="Set x and h0 to zero: the states should still know one argument. Which one is never used?",
    keeps=0.5,
)
def forgets_the_bias(x, w_x, w_h, b, h0):
    return _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h @ w_h))


@mistake(
    "rnn_encode", keeps=0.5, hint="The bias is part of the sum that tanh sees. Yours is added to the result of tanh."
)
def bias_outside_tanh(x, w_x, w_h, b, h0):
    return _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h @ w_h) + b)


@mistake(
    "rnn_encode", hint="Weights are [in, out] here and multiply from the right. Nothing needs a transpose.", keeps=0.5
)
def recurrent_weight_transposed(x, w_x, w_h, b, h0):
    return _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h @ w_h.T + b))


@mistake("rnn_encode", hint="Row t of `states` is the state after reading word t. Is h0 in your list?", keeps=0.5)
def states_before_reading(x, w_x, w_h, b, h0):
    states, last = _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h @ w_h + b))
    return torch.cat([h0.unsqueeze(1), states[:, :-1]], dim=1), last


@mistake(
    "rnn_encode",
    keeps=0.5,
    hint="Change the last word: your first state changes. From which end does the encoder read?",
)
def reads_backwards(x, w_x, w_h, b, h0):
    return _run_rnn(x.flip(1), w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h @ w_h + b))


@mistake("rnn_encode", hint="Your `last` is the state after the first word. Which position does the summary come from?")
def returns_the_first_state_as_last(x, w_x, w_h, b, h0):
    states, _ = _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h @ w_h + b))
    return states, states[:, 0]


@mistake("rnn_encode", hint="The states come back as [T, B, H]. On which axis did you stack the steps?", keeps=0.5)
def stacks_positions_first(x, w_x, w_h, b, h0):
    states, last = _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h @ w_h + b))
    return states.transpose(0, 1), last


@mistake(
    "rnn_encode",
    keeps=0.5,
    hint="x is [B, T, D]. Your loop treats axis 0 as time, so that sentences follow each other.",
)
def loops_over_the_sentences(x, w_x, w_h, b, h0):
    _check_rnn(x, w_x, w_h, b, h0)
    h, states = h0, []
    for y in x:
        h = torch.tanh(y @ w_x + h @ w_h + b)
        states.append(h)
    return torch.stack(states, dim=1), h


@mistake(
    "rnn_encode", hint="A buffer made with torch.zeros(...) is float32, whatever the inputs are: give it their dtype."
)
def buffer_in_the_default_dtype(x, w_x, w_h, b, h0):
    states, last = _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h @ w_h + b))
    return states.to(torch.float32), last


@mistake(
    "rnn_encode", hint="The caller's h0 is another tensor after your call. copy_ and other names with _ write in place."
)
def overwrites_h0(x, w_x, w_h, b, h0):
    states, last = _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h @ w_h + b))
    with torch.no_grad():
        h0.copy_(last)
    return states, last


@mistake(
    "rnn_encode", hint="Your state is detached between steps, so that the loss of the last word cannot teach the first."
)
def detaches_between_steps(x, w_x, w_h, b, h0):
    return _run_rnn(x, w_x, w_h, b, h0, lambda y, h: torch.tanh(y @ w_x + h.detach() @ w_h + b))


@mistake(
    "rnn_encode",
    hint="Sizes that cannot match should raise ValueError and name the sizes, before anything is computed.",
)
def rnn_without_checks(x, w_x, w_h, b, h0):
    h, states = h0, []
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] @ w_x + h @ w_h + b)
        states.append(h)
    return torch.stack(states, dim=1), h


# ----------------------------------------------------------------------------------------- additive_scores


def _check_additive(state, states, w_state, w_states, v):
    if w_state.shape != (state.shape[-1], v.shape[0]) or w_states.shape != (states.shape[-1], v.shape[0]):
        raise ValueError(
            f"w_state {list(w_state.shape)}, w_states {list(w_states.shape)}, v {list(v.shape)} do not fit "
            f"state {list(state.shape)} and states {list(states.shape)}"
        )
    if state.shape[0] != states.shape[0]:
        raise ValueError(f"{state.shape[0]} states for {states.shape[0]} sentences")


@mistake(
    "additive_scores",
    hint="Without the tanh the two layers are one linear layer, and the state moves all scores of a sentence alike.",
)
def additive_without_tanh(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return ((state @ w_state).unsqueeze(1) + states @ w_states) @ v


@mistake(
    "additive_scores",
    keeps=0.5,
    hint="Your scores never leave (−1, 1). Which comes first, the tanh or the product with v?",
)
def tanh_after_v(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return torch.tanh(((state @ w_state).unsqueeze(1) + states @ w_states) @ v)


@mistake(
    "additive_scores",
    keeps=0.5,
    hint="tanh(a) + tanh(b) is not tanh(a + b): yours adds a number that is the same for every position.",
)
def tanh_of_each_part(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return (torch.tanh(state @ w_state).unsqueeze(1) + torch.tanh(states @ w_states)) @ v


@mistake(
    "additive_scores", keeps=0.5, hint="Your scores sum to 1. They are asked for raw; the softmax is the next question."
)
def already_normalized(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return torch.softmax(torch.tanh((state @ w_state).unsqueeze(1) + states @ w_states) @ v, dim=-1)


@mistake(
    "additive_scores",
    keeps=0.5,
    hint="[B, A] + [B, T, A] aligns sentences with positions. The projected state needs an axis for the positions.",
)
def adds_without_a_position_axis(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return torch.tanh(state @ w_state + states @ w_states) @ v


@mistake(
    "additive_scores",
    keeps=0.5,
    hint="Give v other values: your scores stay the same. Which features count, and how much?",
)
def sums_instead_of_using_v(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return torch.tanh((state @ w_state).unsqueeze(1) + states @ w_states).sum(-1)


@mistake("additive_scores", hint="Change the decoder state: your scores stay the same. Who is asking?")
def ignores_the_decoder_state(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return torch.tanh(states @ w_states) @ v


@mistake(
    "additive_scores",
    keeps=0.5,
    hint="All sentences are scored against the decoder state of sentence 0. Try two different rows.",
)
def asks_with_the_first_state_only(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return torch.tanh(state[0] @ w_state + states @ w_states) @ v


@mistake(
    "additive_scores",
    keeps=0.5,
    hint="w_state belongs to the decoder state and w_states to the encoder states. Read the order.",
)
def exchanges_the_two_matrices(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return torch.tanh((state @ w_states).unsqueeze(1) + states @ w_state) @ v


@mistake(
    "additive_scores",
    keeps=0.5,
    hint="Your scores are too small by a factor that only depends on A. A root belongs to dot products.",
)
def scales_by_the_root_of_the_width(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return torch.tanh((state @ w_state).unsqueeze(1) + states @ w_states) @ v / math.sqrt(v.shape[0])


@mistake(
    "additive_scores",
    keeps=0.5,
    hint="The result is [B, T, 1]. One number per position needs no axis of length 1 at the end.",
)
def keeps_an_axis_of_length_one(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return torch.tanh((state @ w_state).unsqueeze(1) + states @ w_states) @ v.unsqueeze(-1)


@mistake(
    "additive_scores",
    keeps=0.5,
    hint="The formula has a plus between the two projections: the score depends on a sum, not a difference.",
)
def subtracts_the_two_parts(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    return torch.tanh((state @ w_state).unsqueeze(1) - states @ w_states) @ v


@mistake(
    "additive_scores",
    hint="Right, but position by position. Project all states in one product and let broadcasting add.",
)
def loops_over_positions(state, states, w_state, w_states, v):
    _check_additive(state, states, w_state, w_states, v)
    columns = [torch.tanh(state @ w_state + states[:, i] @ w_states) @ v for i in range(states.shape[1])]
    return torch.stack(columns, dim=1)


@mistake("additive_scores", hint="Sizes that cannot match should raise ValueError and name the sizes.")
def additive_without_checks(state, states, w_state, w_states, v):
    return torch.tanh((state @ w_state).unsqueeze(1) + states @ w_states) @ v


# -------------------------------------------------------------------------------------------------- attend


def _check_attend(scores, states):
    if scores.shape != states.shape[:-1]:
        raise ValueError(f"scores {list(scores.shape)} must have one number per state, states {list(states.shape)}")


def _mix(weights, states):
    return (weights.unsqueeze(-1) * states).sum(dim=1)


@mistake(
    "attend",
    keeps=0.5,
    hint="Your weights sum to 1 over the sentences. Positions of one sentence compete, sentences do not.",
)
def softmax_over_the_batch(scores, states):
    _check_attend(scores, states)
    weights = softmax(scores, dim=0)
    return _mix(weights, states), weights


@mistake(
    "attend", keeps=0.5, hint="Your weights sum to 1 over the whole batch. Each sentence has a weight of 1 to spend."
)
def softmax_over_everything(scores, states):
    _check_attend(scores, states)
    weights = softmax(scores.flatten()).view(scores.shape)
    return _mix(weights, states), weights


@mistake("attend", hint="The context is a plain sum of the states. Where do the weights come in?")
def sums_the_states(scores, states):
    _check_attend(scores, states)
    return states.sum(dim=1), softmax(scores)


@mistake("attend", hint="Change the scores: your context stays. A mean is what you get when all weights are equal.")
def averages_the_states(scores, states):
    _check_attend(scores, states)
    return states.mean(dim=1), softmax(scores)


@mistake("attend", hint="Your context is the last state, the bottleneck that attention removes. Mix all states.")
def context_is_the_last_state(scores, states):
    _check_attend(scores, states)
    return states[:, -1], softmax(scores)


@mistake("attend", keeps=0.5, hint="The weights are right, but the context is mixed with the raw scores.")
def mixes_with_the_scores(scores, states):
    _check_attend(scores, states)
    return _mix(scores, states), softmax(scores)


@mistake("attend", hint="Your context is T times too small. The weights sum to 1 already: no mean on top.")
def divides_by_the_length_once_more(scores, states):
    _check_attend(scores, states)
    weights = softmax(scores)
    return (weights.unsqueeze(-1) * states).mean(dim=1), weights


@mistake(
    "attend",
    hint="exp of a large score is infinite, of a very negative one 0. Subtract something from all scores first.",
)
def exponentials_without_a_maximum(scores, states):
    _check_attend(scores, states)
    e = torch.exp(scores.to(torch.promote_types(scores.dtype, torch.float32)))
    weights = (e / e.sum(dim=-1, keepdim=True)).to(scores.dtype)
    return _mix(weights, states), weights


@mistake("attend", hint="exp makes the scores positive. What makes them sum to 1?")
def exponentials_without_a_sum(scores, states):
    _check_attend(scores, states)
    weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return _mix(weights, states), weights


@mistake("attend", hint="Dividing scores by their sum gives negative or infinite weights when scores have both signs.")
def divides_scores_by_their_sum(scores, states):
    _check_attend(scores, states)
    weights = scores / scores.sum(dim=-1, keepdim=True)
    return _mix(weights, states), weights


@mistake("attend", hint="You take the best position. A choice has no gradient; mix all states with their weights.")
def takes_the_best_position(scores, states):
    _check_attend(scores, states)
    return states[torch.arange(len(states)), scores.argmax(dim=-1)], softmax(scores)


@mistake(
    "attend",
    keeps=0.5,
    hint="The weights are computed once, for sentence 0, and used for all. Try two different rows of scores.",
)
def weights_of_the_first_sentence(scores, states):
    _check_attend(scores, states)
    weights = softmax(scores[:1]).expand_as(scores)
    return _mix(weights, states), weights


@mistake("attend", hint="Two results in the other order: the contract says (context, weights).", keeps=0.5)
def returns_weights_first(scores, states):
    _check_attend(scores, states)
    weights = softmax(scores)
    return weights, _mix(weights, states)


@mistake("attend", keeps=0.5, hint="The context has an axis of length 1 left over from the matrix product.")
def context_keeps_an_axis(scores, states):
    _check_attend(scores, states)
    weights = softmax(scores)
    return weights.unsqueeze(1) @ states, weights


@mistake("attend", hint="Your weights are cut off (detach, .data, no_grad): the scores can never learn.")
def detaches_the_weights(scores, states):
    _check_attend(scores, states)
    weights = softmax(scores)
    return _mix(weights.detach(), states), weights


@mistake(
    "attend", hint="You compute in float32 inside, which is right, and forget the way back to the dtype of the inputs."
)
def context_in_float32(scores, states):
    _check_attend(scores, states)
    wide = torch.promote_types(scores.dtype, torch.float32)
    weights = softmax(scores.to(wide))
    return _mix(weights, states.to(wide)), weights


@mistake(
    "attend", hint="Sizes that cannot match should raise ValueError; one score for six states broadcasts silently."
)
def attend_without_checks(scores, states):
    weights = softmax(scores)
    return _mix(weights, states), weights


# ------------------------------------------------------------------------------------------ seq2seq_decode


def _check_decode(states, s0, targets, params):
    if params["w_y"].shape != (targets.shape[-1], s0.shape[-1]):
        raise ValueError(f"w_y {list(params['w_y'].shape)} does not fit targets {list(targets.shape)}")
    if not states.shape[0] == s0.shape[0] == targets.shape[0]:
        raise ValueError(f"batches differ: {states.shape[0]}, {s0.shape[0]}, {targets.shape[0]}")


def _look(s, states, p):
    c, a = attend(additive_scores(s, states, p["w_state"], p["w_states"], p["v"]), states)
    return c, a


def _next(y, c, s, p):
    return torch.tanh(y @ p["w_y"] + c @ p["w_c"] + s @ p["w_s"] + p["b"])


def _shifted(targets):
    return torch.cat([torch.zeros_like(targets[:, :1]), targets[:, :-1]], dim=1)


def _decode(states, s0, targets, p, words=None, look=_look, step=_next):
    """The right decoder, with one part exchanged."""
    _check_decode(states, s0, targets, p)
    words = _shifted(targets) if words is None else words
    s, hidden, weights = s0, [], []
    for t in range(targets.shape[1]):
        c, a = look(s, states, p)
        s = step(words[:, t], c, s, p)
        hidden.append(s)
        weights.append(a)
    return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)


@mistake(
    "seq2seq_decode",
    hint="Your weights are the same at every step: you look once, before the loop. Look in every step.",
)
def same_context_at_every_step(states, s0, targets, params):
    return _decode(states, s0, targets, params, look=lambda s, h, p: _look(s0, h, p))


@mistake(
    "seq2seq_decode", hint="The context is the last encoder state, whatever the weights say: the bottleneck again."
)
def context_is_the_last_encoder_state(states, s0, targets, params):
    return _decode(states, s0, targets, params, look=lambda s, h, p: (h[:, -1], _look(s, h, p)[1]))


@mistake(
    "seq2seq_decode", hint="The context is the mean of the encoder states. The weights of the step should mix them."
)
def context_is_the_mean(states, s0, targets, params):
    return _decode(states, s0, targets, params, look=lambda s, h, p: (h.mean(dim=1), _look(s, h, p)[1]))


@mistake(
    "seq2seq_decode",
    keeps=0.5,
    hint="The states that are scored and mixed come from the encoder. Yours take in what the decoder has made itself.",
)
def attends_to_decoder_states_too(states, s0, targets, params):
    _check_decode(states, s0, targets, params)
    s, hidden, weights, seen = s0, [], [], states
    for t in range(targets.shape[1]):
        c, a = _look(s, seen, params)
        s = _next(_shifted(targets)[:, t], c, s, params)
        own = torch.nn.functional.pad(s, (0, max(0, states.shape[2] - s.shape[1])))[:, : states.shape[2]]
        seen = torch.cat([seen[:, 1:], own.unsqueeze(1)], dim=1)
        hidden.append(s)
        weights.append(a)
    return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)


@mistake(
    "seq2seq_decode",
    hint="Row t of your weights is made with the state after step t. The decoder looks first, with the one before.",
)
def scores_with_the_new_state(states, s0, targets, params):
    hidden, _ = _decode(states, s0, targets, params)
    weights = [_look(hidden[:, t], states, params)[1] for t in range(hidden.shape[1])]
    return hidden, torch.stack(weights, dim=1)


@mistake(
    "seq2seq_decode",
    keeps=0.5,
    hint="Step t reads the word y_t, which it should predict. Change one word and see which step notices first.",
)
def input_not_shifted(states, s0, targets, params):
    return _decode(states, s0, targets, params, words=targets)


@mistake(
    "seq2seq_decode",
    keeps=0.5,
    hint="At the first step `targets[:, t - 1]` is `targets[:, -1]`, the last word of the sentence.",
)
def first_step_reads_the_last_word(states, s0, targets, params):
    return _decode(states, s0, targets, params, words=targets.roll(1, dims=1))


@mistake(
    "seq2seq_decode", keeps=0.5, hint="The first step reads y_1. There is no word before the first: it reads zeros."
)
def first_step_reads_the_first_word(states, s0, targets, params):
    return _decode(states, s0, targets, params, words=torch.cat([targets[:, :1], targets[:, :-1]], dim=1))


@mistake(
    "seq2seq_decode",
    keeps=0.5,
    hint="The words are shifted the wrong way: step t reads y_{t+1}, a word from the future.",
)
def shifted_the_wrong_way(states, s0, targets, params):
    words = torch.cat([targets[:, 1:], torch.zeros_like(targets[:, :1])], dim=1)
    return _decode(states, s0, targets, params, words=words)


@mistake("seq2seq_decode", keeps=0.5, hint="The words lag by two: step 2 should already read y_1.")
def shifted_twice(states, s0, targets, params):
    return _decode(states, s0, targets, params, words=_shifted(_shifted(targets)))


@mistake(
    "seq2seq_decode",
    keeps=0.5,
    hint="After the first step yours reads what it made itself. Under teacher forcing it is fed the correct words.",
)
def feeds_its_own_predictions(states, s0, targets, params):
    def step(y, c, s, p):
        fed = s @ p["w_y"].T if step.started else torch.zeros_like(y)
        step.started = True
        return _next(fed, c, s, p)

    step.started = False
    return _decode(states, s0, targets, params, step=step)


@mistake("seq2seq_decode", hint="Your hidden states do not change with the targets. Which word does a step read?")
def ignores_the_words(states, s0, targets, params):
    return _decode(states, s0, targets, params, words=torch.zeros_like(targets))


@mistake("seq2seq_decode", hint="You compute a context and never use it: the step has a term for it, c_t w_c.")
def leaves_the_context_out(states, s0, targets, params):
    return _decode(
        states, s0, targets, params, step=lambda y, c, s, p: torch.tanh(y @ p["w_y"] + s @ p["w_s"] + p["b"])
    )


@mistake("seq2seq_decode", keeps=0.5, hint="The step forgets the state before it: where is s_{t−1} w_s?")
def leaves_the_old_state_out(states, s0, targets, params):
    return _decode(
        states, s0, targets, params, step=lambda y, c, s, p: torch.tanh(y @ p["w_y"] + c @ p["w_c"] + p["b"])
    )


@mistake(
    "seq2seq_decode",
    hint="One argument of the step is never used: set everything else to zero to see which.",
    keeps=0.5,
)
def leaves_the_bias_out(states, s0, targets, params):
    return _decode(
        states, s0, targets, params, step=lambda y, c, s, p: torch.tanh(y @ p["w_y"] + c @ p["w_c"] + s @ p["w_s"])
    )


@mistake("seq2seq_decode", keeps=0.5, hint="Your states leave (−1, 1): what does the step apply to the sum?")
def decodes_without_tanh(states, s0, targets, params):
    return _decode(
        states, s0, targets, params, step=lambda y, c, s, p: y @ p["w_y"] + c @ p["w_c"] + s @ p["w_s"] + p["b"]
    )


@mistake(
    "seq2seq_decode", keeps=0.5, hint="Every step of yours continues from s0. Which state should step 2 continue from?"
)
def every_step_continues_from_s0(states, s0, targets, params):
    return _decode(states, s0, targets, params, step=lambda y, c, s, p: _next(y, c, s0, p))


@mistake("seq2seq_decode", keeps=0.5, hint="The caller's s0 is not used: your decoder starts from zeros.")
def ignores_s0(states, s0, targets, params):
    return _decode(states, torch.zeros_like(s0), targets, params)


@mistake("seq2seq_decode", hint="`hidden` begins with s0 and lacks the last state. It holds s_1 … s_Ty.", keeps=0.5)
def hidden_starts_with_s0(states, s0, targets, params):
    hidden, weights = _decode(states, s0, targets, params)
    return torch.cat([s0.unsqueeze(1), hidden[:, :-1]], dim=1), weights


@mistake("seq2seq_decode", keeps=0.5, hint="The steps are stacked in front: [Ty, B, …]. The batch stays first.")
def stacks_steps_first(states, s0, targets, params):
    hidden, weights = _decode(states, s0, targets, params)
    return hidden.transpose(0, 1), weights.transpose(0, 1)


@mistake("seq2seq_decode", hint="Weights should be [B, Ty, T]: a row per step, a column per source position.")
def weights_transposed(states, s0, targets, params):
    hidden, weights = _decode(states, s0, targets, params)
    return hidden, weights.transpose(1, 2)


@mistake("seq2seq_decode", keeps=0.5, hint="w_s is [in, out] and multiplies from the right, without a transpose.")
def state_weight_transposed(states, s0, targets, params):
    return _decode(states, s0, targets, {**params, "w_s": params["w_s"].T})


@mistake("seq2seq_decode", hint="You keep the scores. The weights are what attend returns second; they sum to 1.")
def returns_scores_for_weights(states, s0, targets, params):
    def look(s, h, p):
        return _look(s, h, p)[0], additive_scores(s, h, p["w_state"], p["w_states"], p["v"])

    return _decode(states, s0, targets, params, look=look)


@mistake("seq2seq_decode", hint="Your state is detached at every step: later steps cannot teach earlier ones.")
def detaches_the_state(states, s0, targets, params):
    return _decode(states, s0.detach(), targets, params, step=lambda y, c, s, p: _next(y, c, s.detach(), p))


@mistake("seq2seq_decode", hint="Zeros made with torch.zeros(...) are float32: make them like the targets.")
def decodes_in_the_default_dtype(states, s0, targets, params):
    hidden, weights = _decode(states, s0, targets, params)
    return hidden.float(), weights.float()


@mistake(
    "seq2seq_decode",
    hint="The caller's targets are changed after your call. Shift a copy instead of writing zeros into them.",
)
def shifts_the_targets_in_place(states, s0, targets, params):
    words = _shifted(targets)
    result = _decode(states, s0, targets, params, words=words)
    with torch.no_grad():
        targets.copy_(words)
    return result


@mistake("seq2seq_decode", hint="Sizes that cannot match should raise ValueError and name the sizes.")
def decode_without_checks(states, s0, targets, params):
    s, hidden, weights = s0, [], []
    for t in range(targets.shape[1]):
        scores = torch.tanh((s @ params["w_state"]).unsqueeze(1) + states @ params["w_states"]) @ params["v"]
        a = torch.softmax(scores, dim=-1)
        s = _next(_shifted(targets)[:, t], _mix(a, states), s, params)
        hidden.append(s)
        weights.append(a)
    return torch.stack(hidden, dim=1), torch.stack(weights, dim=1)


# ---------------------------------------------------------------------------------- single_query_attention


def _check_single(q, k, v):
    if q.shape[0] != k.shape[1]:
        raise ValueError(f"query of width {q.shape[0]}, keys of width {k.shape[1]}")
    if k.shape[0] != v.shape[0]:
        raise ValueError(f"{k.shape[0]} keys, {v.shape[0]} values")


def _single(q, k, v, scale):
    _check_single(q, k, v)
    wide = torch.promote_types(v.dtype, torch.float32)
    return (softmax(k.to(wide) @ q.to(wide) * scale) @ v.to(wide)).to(v.dtype)


@mistake(
    "single_query_attention",
    hint="For d = 64 the scores of random vectors are about 8 in size. What brings them back to 1?",
    keeps=0.5,
)
def single_without_scale(q, k, v):
    return _single(q, k, v, 1.0)


@mistake(
    "single_query_attention",
    hint="Your scores become too small as d grows. Measure their spread: it is the root of d, not d.",
    keeps=0.5,
)
def single_divides_by_d(q, k, v):
    return _single(q, k, v, 1 / q.shape[0])


@mistake(
    "single_query_attention",
    keeps=0.5,
    hint="Your scale depends on the width of the values. Which vectors meet in the dot product?",
)
def single_scales_by_the_values_width(q, k, v):
    return _single(q, k, v, v.shape[1] ** -0.5)


@mistake(
    "single_query_attention",
    keeps=0.5,
    hint="Your scale depends on the number of keys. Copying a key must not change its score.",
)
def single_scales_by_the_number_of_keys(q, k, v):
    return _single(q, k, v, k.shape[0] ** -0.5)


@mistake(
    "single_query_attention",
    keeps=0.5,
    hint="Your scores grow with the width: the scale should make them smaller, not larger.",
)
def single_multiplies_by_the_root(q, k, v):
    return _single(q, k, v, q.shape[0] ** 0.5)


@mistake(
    "single_query_attention",
    keeps=0.5,
    hint="With equal values your result is smaller than they are: your weights no longer sum to 1.",
)
def single_scales_after_softmax(q, k, v):
    return _single(q, k, v, 1.0) / math.sqrt(q.shape[0])


@mistake(
    "single_query_attention", keeps=0.5, hint="Which of the two decides the weights and which is mixed, keys or values?"
)
def single_mixes_the_keys(q, k, v):
    _check_single(q, k, v)
    return _single(q, k, k, q.shape[0] ** -0.5)


@mistake(
    "single_query_attention",
    keeps=0.5,
    hint="Keys decide how much, values decide what. Yours are exchanged wherever the sizes allow it.",
)
def single_exchanges_keys_and_values(q, k, v):
    _check_single(q, k, v)
    return _single(q, v, k, q.shape[0] ** -0.5)


@mistake("single_query_attention", hint="Change one key: your result stays the same. It is a plain mean of the values.")
def single_averages_the_values(q, k, v):
    _check_single(q, k, v)
    return v.mean(dim=0)


@mistake(
    "single_query_attention",
    hint="You pick the value of the best key. Attention mixes; only very large scores pick one.",
)
def single_takes_the_best(q, k, v):
    _check_single(q, k, v)
    return v[(k.float() @ q.float()).argmax()] + 0 * (q.sum() + k.sum())


@mistake(
    "single_query_attention",
    hint="exp of a large score is infinite, and inf / inf is NaN. Only differences of scores matter.",
)
def single_without_a_maximum(q, k, v):
    _check_single(q, k, v)
    wide = torch.promote_types(v.dtype, torch.float32)
    e = torch.exp(k.to(wide) @ q.to(wide) / math.sqrt(q.shape[0]))
    return (e / e.sum() @ v.to(wide)).to(v.dtype)


@mistake(
    "single_query_attention",
    hint="The scores mix the values as they are. A softmax makes them weights with sum 1 first.",
)
def single_without_softmax(q, k, v):
    _check_single(q, k, v)
    return k @ q / math.sqrt(q.shape[0]) @ v


@mistake(
    "single_query_attention",
    keeps=0.5,
    hint="You compare directions only. A dot product also knows lengths: a long key calls louder.",
)
def single_compares_by_cosine(q, k, v):
    _check_single(q, k, v)
    wide = torch.promote_types(v.dtype, torch.float32)
    cosine = torch.nn.functional.cosine_similarity(k.to(wide), q.to(wide)[None], dim=-1)
    return (softmax(cosine) @ v.to(wide)).to(v.dtype)


@mistake(
    "single_query_attention",
    keeps=0.5,
    hint="One query gives one vector, [d_v]. Yours has an axis of length 1 in front.",
)
def single_keeps_an_axis(q, k, v):
    return _single(q, k, v, q.shape[0] ** -0.5).unsqueeze(0)


@mistake(
    "single_query_attention", hint="You changed the caller's query. Call your function twice: is it the same answer?"
)
def single_scales_the_query_in_place(q, k, v):
    _check_single(q, k, v)
    with torch.no_grad():
        q /= math.sqrt(q.shape[0])
    return _single(q, k, v, 1.0)


@mistake(
    "single_query_attention", hint="Half precision in, half precision out: cast back what you computed in float32."
)
def single_returns_float32(q, k, v):
    out = _single(q, k, v, q.shape[0] ** -0.5)
    return out.float() if out.dtype == torch.float16 else out


@mistake(
    "single_query_attention",
    hint="In float16 a score above 65504 is infinite, before any scale. Convert before you multiply.",
)
def single_overflows_in_half(q, k, v):
    _check_single(q, k, v)
    return (softmax(k @ q / math.sqrt(q.shape[0])) @ v).to(v.dtype)


@mistake("single_query_attention", hint="Sizes that cannot match should raise ValueError and name the sizes.")
def single_without_checks(q, k, v):
    wide = torch.promote_types(v.dtype, torch.float32)
    return (softmax(k.to(wide) @ q.to(wide) / math.sqrt(q.shape[0])) @ v.to(wide)).to(v.dtype)


# --------------------------------------------------------------------------------------- attention_weights


def _check_widths(q, k):
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"queries of width {q.shape[-1]}, keys of width {k.shape[-1]}")


def _scores(q, k):
    _check_widths(q, k)
    wide = torch.promote_types(q.dtype, torch.float32)
    return q.to(wide) @ k.to(wide).transpose(-2, -1)


@mistake(
    "attention_weights",
    hint="For d = 64 the scores of random vectors are about 8 in size. What brings them back to 1?",
    keeps=0.5,
)
def weights_without_scale(q, k):
    return softmax(_scores(q, k)).to(q.dtype)


@mistake(
    "attention_weights",
    hint="You divide by d: by d itself, or by its root twice, once in the queries and once in the scores. Measure the "
    "spread of q · k.",
    keeps=0.5,
)
def weights_divided_by_d(q, k):
    return softmax(_scores(q, k) / q.shape[-1]).to(q.dtype)


@mistake(
    "attention_weights",
    keeps=0.5,
    hint="Your scale depends on the number of keys. It belongs to the width of the vectors.",
)
def weights_scaled_by_the_number_of_keys(q, k):
    return softmax(_scores(q, k) / math.sqrt(k.shape[-2])).to(q.dtype)


@mistake(
    "attention_weights",
    keeps=0.5,
    hint="Do the rows of your weights still sum to 1? The scale belongs before the softmax.",
)
def weights_scaled_after_softmax(q, k):
    return (softmax(_scores(q, k)) / math.sqrt(q.shape[-1])).to(q.dtype)


@mistake(
    "attention_weights",
    keeps=0.5,
    hint="Each query distributes over the keys: along which axis do your weights sum to 1?",
)
def softmax_over_the_queries(q, k):
    return softmax(_scores(q, k) / math.sqrt(q.shape[-1]), dim=-2).to(q.dtype)


@mistake(
    "attention_weights",
    keeps=0.5,
    hint="`dim=1` on the slide is for one matrix. With axes in front, axis 1 is another one.",
)
def softmax_over_axis_one(q, k):
    return softmax(_scores(q, k) / math.sqrt(q.shape[-1]), dim=1).to(q.dtype)


@mistake(
    "attention_weights", keeps=0.5, hint="All your weights together sum to 1. Every query has a weight of 1 to spend."
)
def softmax_over_the_whole_matrix(q, k):
    scores = _scores(q, k) / math.sqrt(q.shape[-1])
    return softmax(scores.flatten(-2)).view(scores.shape).to(q.dtype)


@mistake(
    "attention_weights",
    hint="exp of a large score is infinite, and inf / inf is NaN. Only differences of scores matter.",
)
def weights_without_a_maximum(q, k):
    e = torch.exp(_scores(q, k) / math.sqrt(q.shape[-1]))
    return (e / e.sum(dim=-1, keepdim=True)).to(q.dtype)


@mistake(
    "attention_weights",
    hint="One maximum for the whole tensor: a row whose scores are all far below it becomes 0/0. One maximum per row.",
)
def weights_with_one_global_maximum(q, k):
    scores = _scores(q, k) / math.sqrt(q.shape[-1])
    e = torch.exp(scores - scores.max())
    return (e / e.sum(dim=-1, keepdim=True)).to(q.dtype)


@mistake(
    "attention_weights", keeps=0.5, hint="Only the last two axes of k are exchanged; the batch axis must stay in front."
)
def transposes_the_first_two_axes(q, k):
    _check_widths(q, k)
    wide = torch.promote_types(q.dtype, torch.float32)
    return softmax(q.to(wide) @ k.to(wide).transpose(0, 1) / math.sqrt(q.shape[-1])).to(q.dtype)


@mistake(
    "attention_weights", hint="You exchange axes 1 and 2, which are the last two only with exactly one batch axis."
)
def transposes_axes_one_and_two(q, k):
    _check_widths(q, k)
    wide = torch.promote_types(q.dtype, torch.float32)
    return softmax(q.to(wide) @ k.to(wide).transpose(1, 2) / math.sqrt(q.shape[-1])).to(q.dtype)


@mistake(
    "attention_weights",
    keeps=0.5,
    hint="Row i of the scores belongs to query i. Try different numbers of queries and keys.",
)
def scores_of_keys_over_queries(q, k):
    return softmax(_scores(k, q) / math.sqrt(q.shape[-1])).to(q.dtype)


@mistake(
    "attention_weights", keeps=0.5, hint="The rows are right, and then you transpose the result: rows are queries."
)
def returns_the_transpose(q, k):
    return softmax(_scores(q, k) / math.sqrt(q.shape[-1])).transpose(-2, -1).to(q.dtype)


@mistake("attention_weights", hint="The softmax is missing: your rows do not sum to 1.")
def weights_without_softmax(q, k):
    return (_scores(q, k) / math.sqrt(q.shape[-1])).to(q.dtype)


@mistake("attention_weights", hint="Change one key: your weights stay equal. They should follow the scores.")
def equal_weights(q, k):
    return torch.full_like(_scores(q, k), 1 / k.shape[-2]).to(q.dtype)


@mistake("attention_weights", hint="All weight on the best key: soft attention mixes, and a choice has no gradient.")
def all_weight_on_the_best_key(q, k):
    scores = _scores(q, k)
    hard = torch.nn.functional.one_hot(scores.argmax(dim=-1), scores.shape[-1]).to(q.dtype)
    return hard + 0 * scores.to(q.dtype)


@mistake(
    "attention_weights", keeps=0.5, hint="The first entry of the batch is used for all. Try B = 2 with different rows."
)
def weights_of_the_first_batch_entry(q, k):
    weights = softmax(_scores(q, k) / math.sqrt(q.shape[-1])).to(q.dtype)
    return weights if weights.ndim < 3 else weights[:1].expand_as(weights)


@mistake("attention_weights", hint="You changed the caller's queries. Call your function twice: is it the same answer?")
def scales_the_queries_in_place(q, k):
    _check_widths(q, k)
    with torch.no_grad():
        q /= math.sqrt(q.shape[-1])
    return softmax(_scores(q, k)).to(q.dtype)


@mistake("attention_weights", hint="Half precision in, half precision out: cast back what you computed in float32.")
def weights_in_float32_for_half_inputs(q, k):
    return softmax(_scores(q, k) / math.sqrt(q.shape[-1]))


@mistake(
    "attention_weights",
    hint="In float16 a dot product above 65504 is infinite, before any scale. Convert before you multiply.",
)
def weights_overflow_in_half(q, k):
    _check_widths(q, k)
    return softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]))


@mistake("attention_weights", hint="The right numbers, one query at a time. All queries fit into one matrix product.")
def loops_over_the_queries(q, k):
    rows = [softmax(_scores(q[..., i : i + 1, :], k) / math.sqrt(q.shape[-1])) for i in range(q.shape[-2])]
    return torch.cat(rows, dim=-2).to(q.dtype)


@mistake(
    "attention_weights",
    keeps=0.5,
    hint="`view` needs contiguous tensors, and reading k as [d, N_k] with it mixes up the numbers.",
)
def views_instead_of_transposing(q, k):
    _check_widths(q, k)
    wide = torch.promote_types(q.dtype, torch.float32)
    turned = k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
    return softmax(q.to(wide) @ turned.to(wide) / math.sqrt(q.shape[-1])).to(q.dtype)


@mistake("attention_weights", hint="`view` refuses a tensor that is a transposed view of another. `reshape` takes it.")
def needs_contiguous_inputs(q, k):
    scores = _scores(q.view(-1, *q.shape[-2:]), k.view(-1, *k.shape[-2:]))
    return softmax(scores / math.sqrt(q.shape[-1])).view(*q.shape[:-1], k.shape[-2]).to(q.dtype)


@mistake("attention_weights", keeps=0.5, hint="You compare directions only. A dot product also knows lengths.")
def weights_by_cosine(q, k):
    _check_widths(q, k)
    wide = torch.promote_types(q.dtype, torch.float32)
    unit_q, unit_k = (torch.nn.functional.normalize(t.to(wide), dim=-1) for t in (q, k))
    return softmax(unit_q @ unit_k.transpose(-2, -1)).to(q.dtype)


@mistake("attention_weights", hint="Sizes that cannot match should raise ValueError and name both widths.")
def weights_without_checks(q, k):
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(q.shape[-1])
    return softmax(scores).to(q.dtype)


# ---------------------------------------------------------------------------- scaled_dot_product_attention


def _check_values(q, k, v):
    _check_widths(q, k)
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{k.shape[-2]} keys, {v.shape[-2]} values")


def _attention(q, k, v, scale, dim=-1):
    _check_values(q, k, v)
    return softmax(_scores(q, k) * scale, dim=dim).to(v.dtype) @ v


@mistake(
    "scaled_dot_product_attention",
    hint="For d = 64 the scores of random vectors are about 8 in size. Where is the scale?",
    keeps=0.5,
)
def attention_without_scale(q, k, v):
    return _attention(q, k, v, 1.0)


@mistake(
    "scaled_dot_product_attention",
    hint="You divide by d: by d itself, or by its root a second time, since the weights of question 6 are scaled "
    "already. Measure the spread of scores at d = 256.",
    keeps=0.5,
)
def attention_divided_by_d(q, k, v):
    return _attention(q, k, v, 1 / q.shape[-1])


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="Your scale is the width of the values. Which vectors are in the dot product?",
)
def attention_scaled_by_the_values_width(q, k, v):
    return _attention(q, k, v, v.shape[-1] ** -0.5)


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="If all values are equal, the result must equal them. Yours is smaller: scale the scores.",
)
def attention_scaled_after_softmax(q, k, v):
    return _attention(q, k, v, 1.0) / math.sqrt(q.shape[-1])


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="The weights have been through a softmax already. A second one makes them nearly equal.",
)
def attention_with_two_softmaxes(q, k, v):
    _check_values(q, k, v)
    return softmax(attention_weights(q, k)) @ v


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="Each query distributes over the keys: sum your weights over which axis to get 1?",
)
def attention_softmax_over_queries(q, k, v):
    return _attention(q, k, v, q.shape[-1] ** -0.5, dim=-2)


@mistake(
    "scaled_dot_product_attention", keeps=0.5, hint="`dim=1` on the slide is for one matrix. Count axes from the end."
)
def attention_softmax_over_axis_one(q, k, v):
    return _attention(q, k, v, q.shape[-1] ** -0.5, dim=1)


@mistake(
    "scaled_dot_product_attention",
    hint="exp of a large score is infinite, and inf / inf is NaN. Only differences matter.",
)
def attention_without_a_maximum(q, k, v):
    _check_values(q, k, v)
    e = torch.exp(_scores(q, k) / math.sqrt(q.shape[-1]))
    return (e / e.sum(dim=-1, keepdim=True)).to(v.dtype) @ v


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="It is the keys that you mix. The result has the width of the values and their content.",
)
def attention_mixes_the_keys(q, k, v):
    _check_values(q, k, v)
    return attention_weights(q, k) @ k


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="Keys decide the weights and values are mixed: yours are exchanged. Test with three tensors.",
)
def attention_exchanges_keys_and_values(q, k, v):
    _check_values(q, k, v)
    return attention_weights(q, v) @ k


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="Queries and keys are exchanged: the rows of the result belong to the queries.",
)
def attention_exchanges_queries_and_keys(q, k, v):
    _check_values(q, k, v)
    return attention_weights(k, q) @ v


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="The weights are [N_q, N_k] and multiply the values as they are, without a transpose.",
)
def attention_transposes_the_weights(q, k, v):
    _check_values(q, k, v)
    return attention_weights(q, k).transpose(-2, -1) @ v


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="Your result is [d_v, N_q], one column per query. In this course tokens are rows.",
)
def attention_with_columns_for_tokens(q, k, v):
    _check_values(q, k, v)
    return (attention_weights(q, k) @ v).transpose(-2, -1)


@mistake(
    "scaled_dot_product_attention", hint="Change one key: does your result change? It is the plain mean of the values."
)
def attention_averages_the_values(q, k, v):
    _check_values(q, k, v)
    return v.mean(dim=-2, keepdim=True).expand(*q.shape[:-1], v.shape[-1]) + 0 * (q.sum() + k.sum())


@mistake("scaled_dot_product_attention", hint="You take the value of the best key. Soft attention mixes all of them.")
def attention_takes_the_best(q, k, v):
    _check_values(q, k, v)
    best = attention_weights(q, k).argmax(dim=-1)
    return torch.nn.functional.one_hot(best, k.shape[-2]).to(v.dtype) @ v + 0 * (q.sum() + k.sum())


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="The first entry of the batch is used for all. Try B = 2 with different rows.",
)
def attention_of_the_first_batch_entry(q, k, v):
    _check_values(q, k, v)
    weights = attention_weights(q, k)
    return (weights if weights.ndim < 3 else weights[:1]) @ v


@mistake(
    "scaled_dot_product_attention", hint="bmm wants exactly three axes. `@` carries any number of leading axes along."
)
def attention_for_three_axes_only(q, k, v):
    _check_values(q, k, v)
    return torch.bmm(attention_weights(q, k), v)


@mistake(
    "scaled_dot_product_attention",
    hint="You changed the caller's queries. Call your function twice: is it the same answer?",
)
def attention_scales_in_place(q, k, v):
    _check_values(q, k, v)
    with torch.no_grad():
        q /= math.sqrt(q.shape[-1])
    return _attention(q, k, v, 1.0)


@mistake(
    "scaled_dot_product_attention",
    hint="Half precision in, half precision out: cast back what you computed in float32.",
)
def attention_returns_float32(q, k, v):
    _check_values(q, k, v)
    out = attention_weights(q, k) @ v
    return out.float() if out.dtype == torch.float16 else out


@mistake(
    "scaled_dot_product_attention",
    keeps=0.5,
    hint="The contract asks for the mixed values alone, not for a pair with the weights.",
)
def attention_returns_the_weights_too(q, k, v):
    _check_values(q, k, v)
    weights = attention_weights(q, k)
    return weights @ v, weights


@mistake(
    "scaled_dot_product_attention",
    hint="The right numbers, one query at a time. One matrix product mixes for all queries.",
)
def attention_loops_over_queries(q, k, v):
    _check_values(q, k, v)
    rows = [attention_weights(q[..., i : i + 1, :], k) @ v for i in range(q.shape[-2])]
    return torch.cat(rows, dim=-2)


@mistake("scaled_dot_product_attention", hint="Keys without a value should raise ValueError that names both counts.")
def attention_without_checks(q, k, v):
    return attention_weights(q, k) @ v


# ----------------------------------------------------------------------------------------------- score_std


def _check_samples(d, num_samples):
    if d < 1 or num_samples < 2:
        raise ValueError(f"need d >= 1 and num_samples >= 2, got {d} and {num_samples}")


def _draw_pairs(d, num_samples, seed):
    _check_samples(d, num_samples)
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_samples, d, generator=generator), torch.randn(num_samples, d, generator=generator)


@mistake("score_std", hint="Other seeds give the very same number: you return the formula. Draw, multiply, measure.")
def returns_the_formula(d, num_samples, seed):
    _check_samples(d, num_samples)
    return math.sqrt(d)


@mistake(
    "score_std", hint="Your result is near d: that is the variance. The standard deviation is its root.", keeps=0.5
)
def returns_the_variance(d, num_samples, seed):
    q, k = _draw_pairs(d, num_samples, seed)
    return (q * k).sum(-1).var().item()


@mistake(
    "score_std",
    keeps=0.5,
    hint="Your result is near 1 at every width. The question is how large scores are before any scale.",
)
def scales_before_measuring(d, num_samples, seed):
    q, k = _draw_pairs(d, num_samples, seed)
    return ((q * k).sum(-1) / math.sqrt(d)).std().item()


@mistake(
    "score_std",
    keeps=0.5,
    hint="The dot products have mean 0, and that is what you return. How far do they spread around it?",
)
def returns_the_mean(d, num_samples, seed):
    q, k = _draw_pairs(d, num_samples, seed)
    return (q * k).sum(-1).mean().item()


@mistake("score_std", hint="The mean of absolute values is about 0.8 of the standard deviation.")
def returns_the_mean_absolute_score(d, num_samples, seed):
    q, k = _draw_pairs(d, num_samples, seed)
    return (q * k).sum(-1).abs().mean().item()


@mistake(
    "score_std",
    keeps=0.5,
    hint="rand is uniform in [0, 1): its mean is not 0, its variance not 1. The formula needs normal entries.",
)
def draws_uniform_numbers(d, num_samples, seed):
    _check_samples(d, num_samples)
    g = torch.Generator().manual_seed(seed)
    return (torch.rand(num_samples, d, generator=g) * torch.rand(num_samples, d, generator=g)).sum(-1).std().item()


@mistake("score_std", hint="You multiply each vector with itself. Query and key are drawn independently.")
def keys_equal_queries(d, num_samples, seed):
    q, _ = _draw_pairs(d, num_samples, seed)
    return (q * q).sum(-1).std().item()


@mistake(
    "score_std", hint="One query serves all pairs, so that the result is the length of this query. Draw one per pair."
)
def one_query_for_all_pairs(d, num_samples, seed):
    q, k = _draw_pairs(d, num_samples, seed)
    return (k @ q[0]).std().item()


@mistake("score_std", keeps=0.5, hint="You sum over the pairs. A dot product sums over the d features of one pair.")
def sums_over_the_pairs(d, num_samples, seed):
    q, k = _draw_pairs(d, num_samples, seed)
    return (q * k).sum(0).std(correction=0).item()


@mistake(
    "score_std", hint="Your result does not depend on d. The products of one pair must be summed before you measure."
)
def does_not_sum_over_features(d, num_samples, seed):
    q, k = _draw_pairs(d, num_samples, seed)
    return (q * k).std().item()


@mistake("score_std", hint="torch.manual_seed sets the state that everybody shares. Bring a generator of your own.")
def seeds_the_global_generator(d, num_samples, seed):
    _check_samples(d, num_samples)
    torch.manual_seed(seed)
    return (torch.randn(num_samples, d) * torch.randn(num_samples, d)).sum(-1).std().item()


@mistake("score_std", hint="Your numbers come from a fixed seed: another seed must give another measurement.")
def ignores_the_seed(d, num_samples, seed):
    q, k = _draw_pairs(d, num_samples, 0)
    return (q * k).sum(-1).std().item()


@mistake("score_std", hint="You draw from the shared random state and never use the seed: two calls give two results.")
def draws_without_a_seed(d, num_samples, seed):
    _check_samples(d, num_samples)
    return (torch.randn(num_samples, d) * torch.randn(num_samples, d)).sum(-1).std().item()


@mistake("score_std", hint="The contract asks for a Python float; yours is a tensor with one element.")
def returns_a_tensor(d, num_samples, seed):
    q, k = _draw_pairs(d, num_samples, seed)
    return (q * k).sum(-1).std()


@mistake("score_std", hint="A width of 0 or a single pair has no spread: raise ValueError with the numbers.")
def std_without_checks(d, num_samples, seed):
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(num_samples, d, generator=generator)
    return (q * torch.randn(num_samples, d, generator=generator)).sum(-1).std().item()


# ----------------------------------------------------------------------------------- softmax_gradient_norm


def _check_row(z):
    if z.ndim != 1 or z.shape[0] == 0:
        raise ValueError(f"z must be [N], N at least 1, got {list(z.shape)}")


@mistake(
    "softmax_gradient_norm",
    keeps=0.5,
    hint="You count the diagonal only. Raising one score also lowers the other probabilities.",
)
def only_the_diagonal(z):
    _check_row(z)
    p = softmax(z)
    return (p * (1 - p)).norm().item()


@mistake(
    "softmax_gradient_norm",
    keeps=0.5,
    hint="Your Jacobian lacks p pᵀ, so that a saturated softmax has norm 1 instead of 0.",
)
def without_the_outer_product(z):
    _check_row(z)
    return torch.diag(softmax(z)).norm().item()


@mistake(
    "softmax_gradient_norm", keeps=0.5, hint="There is a minus between diag(p) and p pᵀ: the columns of J sum to 0."
)
def adds_the_outer_product(z):
    _check_row(z)
    p = softmax(z)
    return (torch.diag(p) + torch.outer(p, p)).norm().item()


@mistake("softmax_gradient_norm", hint="The root of the sum of squares is missing.", keeps=0.5)
def forgets_the_root(z):
    _check_row(z)
    p = softmax(z)
    return (torch.diag(p) - torch.outer(p, p)).pow(2).sum().item()


@mistake(
    "softmax_gradient_norm", hint="That is the largest singular value. The Frobenius norm takes all N × N entries."
)
def spectral_norm(z):
    _check_row(z)
    p = softmax(z)
    return torch.linalg.matrix_norm((torch.diag(p) - torch.outer(p, p)).double(), ord=2).item()


@mistake("softmax_gradient_norm", keeps=0.5, hint="You sum absolute values. Frobenius: square, sum, root.")
def sums_absolute_values(z):
    _check_row(z)
    p = softmax(z)
    return (torch.diag(p) - torch.outer(p, p)).abs().sum().item()


@mistake(
    "softmax_gradient_norm",
    keeps=0.5,
    hint="A mean over the entries makes the norm smaller with every score. Sum them.",
)
def mean_of_the_squares(z):
    _check_row(z)
    p = softmax(z)
    return (torch.diag(p) - torch.outer(p, p)).pow(2).mean().sqrt().item()


@mistake("softmax_gradient_norm", keeps=0.5, hint="J is made of the probabilities. You put the scores themselves in.")
def uses_scores_for_probabilities(z):
    _check_row(z)
    return (torch.diag(z) - torch.outer(z, z)).norm().item()


@mistake(
    "softmax_gradient_norm",
    hint="The probabilities sum to 1 whatever z is, so the gradient of their sum is 0. Take each entry.",
)
def gradient_of_the_sum(z):
    _check_row(z)
    leaf = z.detach().clone().requires_grad_()
    torch.softmax(leaf, dim=-1).sum().backward()
    return leaf.grad.norm().item()


@mistake(
    "softmax_gradient_norm",
    keeps=0.5,
    hint="That is the Jacobian of log softmax, which does not vanish when the softmax saturates.",
)
def jacobian_of_the_log(z):
    _check_row(z)
    return (torch.eye(len(z), dtype=z.dtype) - softmax(z).expand(len(z), len(z))).norm().item()


@mistake(
    "softmax_gradient_norm", hint="exp(1000) overflows and the norm becomes NaN: subtract the largest score first."
)
def norm_without_a_maximum(z):
    _check_row(z)
    p = torch.exp(z) / torch.exp(z).sum()
    return (torch.diag(p) - torch.outer(p, p)).norm().item()


@mistake("softmax_gradient_norm", hint="The contract asks for a Python float; yours is a tensor with one element.")
def norm_as_a_tensor(z):
    _check_row(z)
    p = softmax(z)
    return (torch.diag(p) - torch.outer(p, p)).norm()


@mistake(
    "softmax_gradient_norm",
    hint="A matrix or nothing at all is not one row of scores: raise ValueError with its shape.",
)
def norm_without_checks(z):
    p = softmax(z.flatten()) if z.numel() else z.flatten()
    return (torch.diag(p) - torch.outer(p, p)).norm().item()


# ---------------------------------------------------------------------------------------------- compare_layers


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
    hint="At the beginning zeros stand in for missing tokens, and they are multiplied like the others.",
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
    hint="You count the visible pairs of query and key. The products are made in full, and masked afterwards.",
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
    hint="Convolutions whose width doubles from layer to layer reach that fast. Here each leads as far as the last.",
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


# ------------------------------------------------------------------------------------------- linear_scores


def _check_linear(state, states, w):
    if w.shape != (state.shape[-1] + states.shape[-1],):
        raise ValueError(f"w {list(w.shape)} for a pair of widths {state.shape[-1]} and {states.shape[-1]}")


def _pairs(state, states):
    return torch.cat([state.unsqueeze(1).expand(-1, states.shape[1], -1), states], dim=-1)


@mistake("linear_scores", hint="The pair is [state; states_i]: the first S weights belong to the state.", keeps=0.5)
def states_stand_first(state, states, w, b):
    _check_linear(state, states, w)
    width = states.shape[-1]
    return states @ w[:width] + (state @ w[width:]).unsqueeze(-1) + b


@mistake(
    "linear_scores",
    hint="You left out the part that cancels later. Here the scores are asked for, and there it counts.",
)
def only_the_encoder_states(state, states, w, b):
    _check_linear(state, states, w)
    return states @ w[state.shape[-1] :] + b


@mistake("linear_scores", hint="The bias is missing. It would change no weight, but it changes the scores.", keeps=0.5)
def linear_without_bias(state, states, w, b):
    _check_linear(state, states, w)
    return _pairs(state, states) @ w


@mistake(
    "linear_scores",
    keeps=0.5,
    hint="The slide has a linear layer and nothing behind it. With a tanh you mend the error you should show.",
)
def linear_with_tanh(state, states, w, b):
    _check_linear(state, states, w)
    return torch.tanh(_pairs(state, states) @ w + b)


@mistake(
    "linear_scores",
    keeps=0.5,
    hint="[B] + [B, T] lines sentences up with positions. The part of the state needs an axis for positions.",
)
def linear_without_a_position_axis(state, states, w, b):
    _check_linear(state, states, w)
    return state @ w[: state.shape[-1]] + states @ w[state.shape[-1] :] + b


@mistake("linear_scores", keeps=0.5, hint="The scores are asked for raw. The softmax comes in query_effect.")
def linear_already_normalized(state, states, w, b):
    _check_linear(state, states, w)
    return softmax(_pairs(state, states) @ w + b)


@mistake("linear_scores", hint="A weight of the wrong length should raise ValueError that names the three sizes.")
def linear_without_checks(state, states, w, b):
    width = state.shape[-1]
    return (state @ w[:width]).unsqueeze(-1) + states @ w[width:][: states.shape[-1]] + b


# -------------------------------------------------------------------------------------------- query_effect


def _check_pair(state_a, state_b):
    if state_a.shape != state_b.shape:
        raise ValueError(f"states of shapes {list(state_a.shape)} and {list(state_b.shape)}")


def _both(score, state_a, state_b, states):
    _check_pair(state_a, state_b)
    return score(state_a, states), score(state_b, states)


def _largest(difference):
    return difference.abs().max().item()


@mistake(
    "query_effect",
    keeps=0.5,
    hint="Both of your numbers compare scores. The proof is in what the softmax makes of them.",
)
def compares_scores_twice(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_b, states)
    return _largest(a - b), _largest(a - b)


@mistake(
    "query_effect", hint="You return what you expect of a linear layer. Measure: another score gives other numbers."
)
def returns_what_the_notes_imply(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_b, states)
    return _largest(a - b), 0.0


@mistake(
    "query_effect", keeps=0.5, hint="Your weights sum to 1 over the sentences, so that a shared shift does not cancel."
)
def effect_softmax_over_the_batch(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_b, states)
    return _largest(a - b), _largest(softmax(a, dim=0) - softmax(b, dim=0))


@mistake("query_effect", keeps=0.5, hint="The softmax of a difference is not the difference of two softmaxes.")
def softmax_of_the_difference(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_b, states)
    return _largest(a - b), _largest(softmax(a - b))


@mistake(
    "query_effect",
    keeps=0.5,
    hint="You average the differences, which hides one large change among many small ones. Take the largest.",
)
def mean_difference(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_b, states)
    return (a - b).abs().mean().item(), (softmax(a) - softmax(b)).abs().mean().item()


@mistake(
    "query_effect", hint="A change downwards counts as much as one upwards: take absolute values before the largest."
)
def signed_difference(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_b, states)
    return (a - b).max().item(), (softmax(a) - softmax(b)).max().item()


@mistake("query_effect", keeps=0.5, hint="Only sentence 0 is looked at. The largest difference may be in another one.")
def first_sentence_only(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_b, states)
    return _largest((a - b)[0]), _largest((softmax(a) - softmax(b))[0])


@mistake("query_effect", hint="The two numbers are in the other order: first the scores, then the weights.", keeps=0.5)
def effects_in_the_other_order(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_b, states)
    return _largest(softmax(a) - softmax(b)), _largest(a - b)


@mistake(
    "query_effect",
    hint="You compare the contexts, which also depend on how different the states are. Compare the weights.",
)
def compares_the_contexts(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_b, states)
    return _largest(a - b), _largest(_mix(softmax(a), states) - _mix(softmax(b), states))


@mistake("query_effect", hint="Both sets of scores come from state_a: the second state is never asked.")
def asks_with_the_same_state_twice(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_a.clone(), states)
    _check_pair(state_a, state_b)
    return _largest(a - b), _largest(softmax(a) - softmax(b))


@mistake("query_effect", hint="The contract asks for Python floats; yours are tensors with one element.")
def effects_as_tensors(score, state_a, state_b, states):
    a, b = _both(score, state_a, state_b, states)
    return (a - b).abs().max(), (softmax(a) - softmax(b)).abs().max()


@mistake(
    "query_effect", hint="Two states of different shapes should raise ValueError; one row would broadcast silently."
)
def effect_without_checks(score, state_a, state_b, states):
    a, b = score(state_a, states), score(state_b.expand_as(state_a), states)
    return _largest(a - b), _largest(softmax(a) - softmax(b))


@mistake(
    "attend",
    hint="`squeeze()` takes out every axis of size 1. What is left of the context of one sentence?",
    replace=(".squeeze(1)", ".squeeze()"),
)
def context_of_one_sentence_loses_its_axis(): ...


@mistake(
    "scaled_dot_product_attention",
    hint="A batch of one sentence is a batch: keep its axis.",
    replace=("attention_weights(q, k) @ v", "(attention_weights(q, k) @ v).squeeze(0)"),
)
def attention_loses_a_batch_of_one(): ...
