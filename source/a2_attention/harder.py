"""Harder inputs of assignment 2: what holds of every call that its docstrings allow."""

import math

import torch

from autograder.student_tools.harder_inputs import about, holds, refused
from autograder.student_tools.slow_definitions import dot_product, mixed_number, shares_of

WITHOUT = {}

about("rnn_encode", refuses="x.0 x.2 w_x.0 w_x.1 w_h.0 w_h.1 b.0 h0.0 h0.1")
about("additive_scores", refuses="state.0 state.1 states.0 states.2 w_state.0 w_state.1 w_states.0 w_states.1 v.0")
about("attend", refuses="scores.0 scores.1 states.0 states.1")
about("seq2seq_decode", refuses="states.0 s0.0 targets.0 targets.2 params.w_y.0")
about("single_query_attention", refuses="q.0 k.0 k.1 v.0")
about("attention_weights", refuses="q.-1 k.-1")
about("scaled_dot_product_attention", refuses="q.-1 k.-1 k.-2")
about("score_std")
about("softmax_gradient_norm")
about("compare_layers")
about("linear_scores", refuses="state.1 states.2 w.0")
about("query_effect", refuses="state_a.0 state_a.1 state_b.0 state_b.1")


@holds("rnn_encode", "The last state is the last row of the states.")
def last_is_the_last_row(rnn_encode, x, w_x, w_h, b, h0):
    states, last = rnn_encode(x, w_x, w_h, b, h0)
    return last, states[:, -1]


@holds("rnn_encode", "Read in two pieces, the second from where the first ended, a text gives the same states.")
def in_two_pieces(rnn_encode, x, w_x, w_h, b, h0):
    if x.shape[1] < 2:
        return None
    first, middle = rnn_encode(x[:, :1], w_x, w_h, b, h0)
    rest, _ = rnn_encode(x[:, 1:], w_x, w_h, b, middle)
    return rnn_encode(x, w_x, w_h, b, h0)[0], torch.cat([first, rest], dim=1)


@holds("rnn_encode", "The first state's inverse tanh is linear in x, h0 and b: one number of it by loops.")
def one_state(rnn_encode, x, w_x, w_h, b, h0):
    inside = dot_product(x[-1, 0].tolist(), w_x[:, -1].tolist())
    inside += dot_product(h0[-1].tolist(), w_h[:, -1].tolist()) + float(b[-1])
    return float(rnn_encode(x, w_x, w_h, b, h0)[0][-1, 0, -1]), math.tanh(inside)


@holds("additive_scores", "One score, by loops over single numbers.")
def one_score(additive_scores, state, states, w_state, w_states, v):
    score = 0.0
    for column, factor in enumerate(v.tolist()):
        inside = dot_product(state[-1].tolist(), w_state[:, column].tolist())
        inside += dot_product(states[-1, 0].tolist(), w_states[:, column].tolist())
        score += factor * math.tanh(inside)
    return float(additive_scores(state, states, w_state, w_states, v)[-1, 0]), score


@holds("additive_scores", "Encoder states in another order have the same scores in that order.")
def scores_move_along(additive_scores, state, states, w_state, w_states, v):
    scores = additive_scores(state, states, w_state, w_states, v)
    return additive_scores(state, states.flip(1), w_state, w_states, v), scores.flip(1)


@holds("attend", "Each row of weights is positive and sums to 1.")
def rows_are_distributions(attend, scores, states):
    weights = attend(scores, states)[1]
    return weights.sum(dim=-1) * (weights >= 0).all(), torch.ones(len(scores)).double()


@holds("attend", "The weights' logarithms differ by what the scores differ.", share=1e-3)
def weights_follow_the_scores(attend, scores, states):
    mild = scores / (1 + scores.abs() / 20)
    weights = attend(mild, states)[1]
    return weights.log() - weights[:, :1].log(), mild - mild[:, :1]


@holds("attend", "States that are all alike come out as they are.")
def equal_states_stay(attend, scores, states):
    alike = states[:, :1].expand_as(states)
    return attend(scores, alike)[0], states[:, 0]


@holds("attend", "The context is the mix of the states: one number of it by loops.")
def one_context(attend, scores, states):
    weights = shares_of(scores[-1].tolist())
    return float(attend(scores, states)[0][-1, -1]), dot_product(weights, states[-1, :, -1].tolist())


@holds("seq2seq_decode", "Each row of weights sums to 1.")
def weights_of_steps(seq2seq_decode, states, s0, targets, params):
    weights = seq2seq_decode(states, s0, targets, params)[1]
    return weights.sum(dim=-1), torch.ones(targets.shape[:2]).double()


@holds("seq2seq_decode", "The last target changes nothing: nobody reads it.")
def last_target_is_not_read(seq2seq_decode, states, s0, targets, params):
    other = targets.clone()
    other[:, -1] += 1
    return seq2seq_decode(states, s0, other, params), seq2seq_decode(states, s0, targets, params)


@holds("seq2seq_decode", "Encoder states in another order: the weights move along, the hidden states stay.")
def order_of_the_source(seq2seq_decode, states, s0, targets, params):
    hidden, weights = seq2seq_decode(states, s0, targets, params)
    return seq2seq_decode(states.flip(1), s0, targets, params), (hidden, weights.flip(2))


@holds("seq2seq_decode", "With equal encoder states and one target the first state is tanh(c w_c + s0 w_s + b).")
def one_hidden_state(seq2seq_decode, states, s0, targets, params):
    alike = states[:, :1].expand_as(states)
    inside = dot_product(alike[-1, 0].tolist(), params["w_c"][:, -1].tolist())
    inside += dot_product(s0[-1].tolist(), params["w_s"][:, -1].tolist()) + float(params["b"][-1])
    hidden = seq2seq_decode(alike, s0, targets, params)[0]
    return float(hidden[-1, 0, -1]), math.tanh(inside)


@holds("seq2seq_decode", "The second state reads the first target, and looks with the first state.")
def one_second_state(seq2seq_decode, states, s0, targets, params):
    if targets.shape[1] < 2:
        return None
    hidden, weights = seq2seq_decode(states, s0, targets, params)
    context = [dot_product(weights[-1, 1].tolist(), c.tolist()) for c in states[-1].T]
    inside = dot_product(targets[-1, 0].tolist(), params["w_y"][:, -1].tolist())
    inside += dot_product(context, params["w_c"][:, -1].tolist())
    inside += dot_product(hidden[-1, 0].tolist(), params["w_s"][:, -1].tolist())
    return float(hidden[-1, 1, -1]), math.tanh(inside + float(params["b"][-1]))


@holds("seq2seq_decode", "The second row of weights is the first row where the first state takes the place of s0.")
def weights_look_with_the_state_before(seq2seq_decode, states, s0, targets, params):
    if targets.shape[1] < 2:
        return None
    hidden, weights = seq2seq_decode(states, s0, targets, params)
    return weights[:, 1], seq2seq_decode(states, hidden[:, 0], targets, params)[1][:, 0]


@holds("seq2seq_decode", "Each first weight is that of an additive score, by loops.")
def one_weight(seq2seq_decode, states, s0, targets, params):
    scores = []
    for state in states[-1].tolist():
        score = 0.0
        for column, factor in enumerate(params["v"].tolist()):
            inside = dot_product(s0[-1].tolist(), params["w_state"][:, column].tolist())
            inside += dot_product(state, params["w_states"][:, column].tolist())
            score += factor * math.tanh(inside)
        scores.append(score)
    return float(seq2seq_decode(states, s0, targets, params)[1][-1, 0, -1]), shares_of(scores)[-1]


@holds("single_query_attention", "One number of the mix, by loops over single numbers.")
def one_number(single_query_attention, q, k, v):
    right = mixed_number(q.tolist(), k.tolist(), v[:, -1].tolist())
    return float(single_query_attention(q, k, v)[-1]), right


@holds("single_query_attention", "Keys and values shuffled alike change nothing.")
def shuffled_alike(single_query_attention, q, k, v):
    return single_query_attention(q, k.flip(0), v.flip(0)), single_query_attention(q, k, v)


@holds("attention_weights", "Each query's weights sum to 1.")
def weights_sum_to_one(attention_weights, q, k):
    weights = attention_weights(q, k)
    return weights.sum(dim=-1), torch.ones(q.shape[:-1]).double()


@holds("attention_weights", "Two weights' logarithms differ by what the products differ, divided by √d.", share=1e-3)
def logarithms_of_weights(attention_weights, q, k):
    size = max(float(q.abs().max()), 1.0), max(float(k.abs().max()), 1.0)
    q, k = q / size[0], k / size[1]
    logs = attention_weights(q, k).log()
    scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(dim=-1) / math.sqrt(q.shape[-1])
    return logs - logs[..., :1], scores - scores[..., :1]


@holds("scaled_dot_product_attention", "Keys and values shuffled alike change nothing.")
def shuffling_changes_nothing(scaled_dot_product_attention, q, k, v):
    mixed = scaled_dot_product_attention(q, k, v)
    return scaled_dot_product_attention(q, k.flip(-2), v.flip(-2)), mixed


@holds("scaled_dot_product_attention", "One number of the answer, by loops over single numbers.")
def one_mixed_number(scaled_dot_product_attention, q, k, v):
    rows = [x.reshape(-1, *x.shape[-2:])[-1].tolist() for x in (q, k)]
    column = v.reshape(-1, *v.shape[-2:])[-1][:, -1].tolist()
    answer = scaled_dot_product_attention(q, k, v).reshape(-1, q.shape[-2], v.shape[-1])
    return float(answer[-1, -1, -1]), mixed_number(rows[0][-1], rows[1], column)


@holds("score_std", "It is a float near √d, and nearer with more pairs.")
def near_the_root(score_std, d, num_samples, seed):
    spread = score_std(d, num_samples, seed)
    error = math.sqrt((1 + 3 / d) / num_samples)
    return type(spread) is float and abs(spread / math.sqrt(d) - 1) <= 6 * error + 0.02


@holds("score_std", "The global random state stays untouched, and another seed gives another number.")
def dice_stay(score_std, d, num_samples, seed):
    torch.manual_seed(1)
    right = torch.rand(1)
    torch.manual_seed(1)
    spreads = {score_std(d, num_samples, seed), score_std(d, num_samples, seed + 1)}
    return torch.equal(torch.rand(1), right) and len(spreads) == 2


@holds("score_std", "A width below 1, and fewer than two pairs, are refused.")
def too_few(score_std, d, num_samples, seed):
    return refused(score_std, 0, num_samples, seed) and refused(score_std, d, 1, seed)


@holds("softmax_gradient_norm", "The same number added to all of z, or another order, changes nothing.")
def shifts_and_orders(softmax_gradient_norm, z):
    return softmax_gradient_norm((z + 7.0).flip(0)), softmax_gradient_norm(z)


@holds("softmax_gradient_norm", "It is a float; of n equal numbers it is √(n − 1) / n.")
def equal_numbers(softmax_gradient_norm, z):
    norm = softmax_gradient_norm(torch.zeros_like(z) + z[0])
    return norm, float(math.sqrt(len(z) - 1) / len(z))


@holds("softmax_gradient_norm", "Along one direction the shares move at most so fast, and along some as fast.")
def moves_no_faster(softmax_gradient_norm, z):
    mild = z / (1 + z.abs() / 5)
    moved, step = 0.0, 1e-5
    for place in range(len(z)):
        way = [step if i == place else 0.0 for i in range(len(z))]
        up = shares_of([a + b for a, b in zip(mild.tolist(), way)])
        down = shares_of([a - b for a, b in zip(mild.tolist(), way)])
        moved += sum(((a - b) / (2 * step)) ** 2 for a, b in zip(up, down))
    return abs(softmax_gradient_norm(mild) - math.sqrt(moved)) <= 1e-6


@holds("softmax_gradient_norm", "A tensor of two axes, a number alone and an empty one are refused.")
def other_shapes(softmax_gradient_norm, z):
    return all(refused(softmax_gradient_norm, x) for x in (z[None], z[0], z[:0]))


@holds("compare_layers", "Numbers are Python's ints, with four words for each of three kinds.")
def words_of_the_dict(compare_layers, n, d, k, num_layers):
    costs = compare_layers(n, d, k, num_layers)
    words = {"operations", "sequential_steps", "receptive_field", "longest_path"}
    kinds = {"recurrence", "convolution", "attention"}
    numbers = [number for kind in costs.values() for number in kind.values()]
    shapes = set(costs) == kinds and all(set(kind) == words for kind in costs.values())
    return shapes and all(type(number) is int for number in numbers)


@holds("compare_layers", "Twice the width: four times the operations, but for attention twice.")
def twice_the_width(compare_layers, n, d, k, num_layers):
    narrow, wide = (compare_layers(n, size, k, num_layers) for size in (d, 2 * d))
    factors = {"recurrence": 4, "convolution": 4, "attention": 2}
    return {kind: wide[kind]["operations"] for kind in factors} == {
        kind: factor * narrow[kind]["operations"] for kind, factor in factors.items()
    }


@holds("compare_layers", "Twice the tokens: twice the operations, but for attention four times.")
def twice_the_tokens(compare_layers, n, d, k, num_layers):
    short, long = (compare_layers(size, d, k, num_layers) for size in (n, 2 * n))
    factors = {"recurrence": 2, "convolution": 2, "attention": 4}
    is_right = all(
        long[kind]["operations"] == factor * short[kind]["operations"]
        for kind, factor in factors.items()
    )
    return is_right and long["recurrence"]["sequential_steps"] == 2 * n


@holds("compare_layers", "One layer more reaches k − 1 tokens further, until all n are reached.")
def one_layer_more(compare_layers, n, d, k, num_layers):
    near, far = (compare_layers(n, d, k, layers) for layers in (num_layers, num_layers + 1))
    reached = near["convolution"]["receptive_field"]
    grown = far["convolution"]["receptive_field"]
    everything = [near[kind]["receptive_field"] for kind in ("recurrence", "attention")]
    return grown == min(n, reached + k - 1) and everything == [n, n]


@holds("compare_layers", "So many convolutions as the longest path says reach all tokens, and one fewer do not.")
def path_is_shortest(compare_layers, n, d, k, num_layers):
    layers = compare_layers(n, d, k, num_layers)["convolution"]["longest_path"]
    if layers < 2:
        return layers >= 0 and (n == 1 or compare_layers(n, d, k, 1)["convolution"]["receptive_field"] == n)
    enough = compare_layers(n, d, k, layers)["convolution"]["receptive_field"]
    few = compare_layers(n, d, k, layers - 1)["convolution"]["receptive_field"]
    return enough == n and few < n


@holds("compare_layers", "Sizes below 1, and a convolution narrower than 2, are refused.")
def sizes_below(compare_layers, n, d, k, num_layers):
    return (
        refused(compare_layers, 0, d, k, num_layers)
        and refused(compare_layers, n, 0, k, num_layers)
        and refused(compare_layers, n, d, 1, num_layers)
        and refused(compare_layers, n, d, k, 0)
    )


@holds("linear_scores", "One score, by loops over single numbers.")
def one_linear_score(linear_scores, state, states, w, b):
    pair = [*state[-1].tolist(), *states[-1, 0].tolist()]
    return float(linear_scores(state, states, w, b)[-1, 0]), dot_product(pair, w.tolist()) + float(b)


@holds("query_effect", "Two Python floats, not negative; the two states exchanged give the same.")
def both_ways(query_effect, score, state_a, state_b, states):
    effect = query_effect(score, state_a, state_b, states)
    if not all(type(number) is float and number >= 0 for number in effect):
        return False
    return query_effect(score, state_b, state_a, states), effect


@holds("query_effect", "No score moves further than the first number, and some weight as far as the second.")
def largest_moves(query_effect, score, state_a, state_b, states):
    before, after = (score(state, states).tolist() for state in (state_a, state_b))
    furthest = max(abs(a - b) for rows in zip(before, after) for a, b in zip(*rows))
    shares = [
        abs(a - b)
        for one, two in zip(before, after)
        for a, b in zip(shares_of(one), shares_of(two))
    ]
    return list(query_effect(score, state_a, state_b, states)), [furthest, max(shares)]
