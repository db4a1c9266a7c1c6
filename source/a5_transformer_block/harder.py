"""Harder inputs of assignment 5: what holds of every call that its docstrings allow."""

import math

import torch

from autograder.student_tools.harder_inputs import about, holds, refused
from autograder.student_tools.slow_definitions import dot_product

WITHOUT = {}

about("layer_norm", refuses="gamma.0 beta.0")
about("layer_norm_backward", refuses="dy.-1 x.-1 gamma.0")
about("rms_norm", refuses="gamma.0")
about("batch_norm", refuses="gamma.0 beta.0 running_mean.0 running_var.0", except_for="dtype")
about("mlp", refuses="w1.0 w1.1 b1.0 w2.0 b2.0")
about("swiglu", refuses="w1.0 w1.1 w2.0 w2.1 w3.0")
about("swiglu_hidden")
about("rotary_positions", refuses="positions.-1 x.-1")
about("post_norm_block")
about("pre_norm_block")
about("moe_layer", refuses="x.2 w_gate.0 w_gate.1 w1.0 w1.1 w1.2 w2.0 w2.1 w2.2")


def _mean(numbers):
    return math.fsum(numbers) / len(numbers)


@holds("layer_norm", "One number of the last row, by loops over single numbers.", share=1e-4)
def one_normalized(layer_norm, x, gamma, beta, eps=1e-5):
    row = x.reshape(-1, x.shape[-1])[-1].tolist()
    middle = _mean(row)
    variance = _mean([(number - middle) ** 2 for number in row])
    right = (row[-1] - middle) / math.sqrt(variance + eps) * float(gamma[-1]) + float(beta[-1])
    return float(layer_norm(x, gamma, beta, eps=eps).reshape(-1)[-1]), right


@holds("layer_norm", "A number added to a whole row changes nothing.", share=1e-3)
def shifted_rows(layer_norm, x, gamma, beta, eps=1e-5):
    tame = x / max(float(x.abs().max()), 1.0)
    return layer_norm(tame + 3.0, gamma, beta, eps=eps), layer_norm(tame, gamma, beta, eps=eps)


@holds("layer_norm", "The default eps is 1e-5: rows as small as its root show it.")
def default_eps(layer_norm, x, gamma, beta, eps=1e-5):
    small = 3e-3 * x / max(float(x.abs().max()), 1.0)
    return layer_norm(small, gamma, beta), layer_norm(small, gamma, beta, eps=1e-5)


def _slopes(norm, dy, inputs):
    """Difference quotients of the sum of dy times the answer, for the first number of each input."""
    slopes = []
    for place in range(len(inputs)):
        totals = []
        for step in (1e-4, -1e-4):
            moved = [x.clone() for x in inputs]
            moved[place].reshape(-1)[0] += step
            totals.append(float((dy * norm(*moved)).sum()))
        slopes.append((totals[0] - totals[1]) / 2e-4)
    return slopes


@holds("layer_norm_backward", "dbeta sums dy over all tokens, and a row of dx sums to 0 and is perpendicular to x.", share=1e-3)
def laws_of_the_gradient(layer_norm_backward, dy, x, gamma, eps=1e-5):
    x = x / max(float(x.abs().max()), 1e-3)
    dx, _, dbeta = layer_norm_backward(dy, x, gamma, eps=1e-9)
    sums = [math.fsum(column) for column in dy.reshape(-1, x.shape[-1]).T.tolist()]
    largest = float(dx.abs().max()) + 1.0
    return [dbeta, dx.sum(dim=-1) / largest], [torch.tensor(sums).double(), torch.zeros(dx.shape[:-1]).double()]


@holds("layer_norm_backward", "One number of each gradient is the slope of the norm, measured by small steps.", share=1e-3)
def slopes_of_the_norm(layer_norm_backward, dy, x, gamma, eps=1e-5):
    x, dy = torch.tanh(x), torch.tanh(dy)
    if float(x.std(dim=-1, unbiased=False).min()) < 0.1 and eps < 1e-3:
        return None

    def normalized(x, gamma, beta):
        rows = []
        for row in x.reshape(-1, x.shape[-1]).tolist():
            middle = _mean(row)
            root = math.sqrt(_mean([(number - middle) ** 2 for number in row]) + eps)
            rows.append([(number - middle) / root for number in row])
        return torch.tensor(rows).double().reshape(x.shape) * gamma + beta

    answer = layer_norm_backward(dy, x, gamma, eps=eps)
    measured = _slopes(normalized, dy, [x.contiguous(), gamma.contiguous(), torch.zeros_like(gamma).contiguous()])
    return [float(part.reshape(-1)[0]) for part in answer], measured


@holds("layer_norm_backward", "dgamma and dbeta of all tokens are the sums over the tokens alone.", share=1e-4)
def tokens_add_up(layer_norm_backward, dy, x, gamma, eps=1e-5):
    rows = zip(dy.reshape(-1, x.shape[-1]), x.reshape(-1, x.shape[-1]))
    alone = [layer_norm_backward(d, row, gamma, eps=eps) for d, row in rows]
    answer = layer_norm_backward(dy, x, gamma, eps=eps)
    return list(answer[1:]), [torch.stack([part[i] for part in alone]).sum(dim=0) for i in (1, 2)]


@holds("rms_norm", "One number of the last row, by loops over single numbers.", share=1e-4)
def one_divided(rms_norm, x, gamma, eps=1e-6):
    row = x.reshape(-1, x.shape[-1])[-1].tolist()
    right = row[-1] / math.sqrt(_mean([number**2 for number in row]) + eps) * float(gamma[-1])
    return float(rms_norm(x, gamma, eps=eps).reshape(-1)[-1]), right


@holds("rms_norm", "The default eps is 1e-6: rows as small as its root show it.")
def default_eps_of_rms(rms_norm, x, gamma, eps=1e-6):
    small = 1e-3 * x / max(float(x.abs().max()), 1.0)
    return rms_norm(small, gamma), rms_norm(small, gamma, eps=1e-6)


@holds("batch_norm", "In evaluation one number, by loops; the running statistics come back as they were.", share=1e-4)
def evaluated(batch_norm, x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    y, mean, var = batch_norm(x, gamma, beta, running_mean, running_var, False, momentum=momentum, eps=eps)
    number = float(x.reshape(-1, x.shape[-1])[-1, -1]) - float(running_mean[-1])
    right = number / math.sqrt(float(running_var[-1]) + eps) * float(gamma[-1]) + float(beta[-1])
    return [float(y.reshape(-1)[-1]), mean, var], [right, running_mean, running_var]


@holds("batch_norm", "In training one number of each part, by loops.", share=1e-4)
def trained(batch_norm, x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    column = x.reshape(-1, x.shape[-1])[:, -1].tolist()
    if len(column) < 2:
        return refused(batch_norm, x, gamma, beta, running_mean, running_var, True)
    y, mean, var = batch_norm(x, gamma, beta, running_mean, running_var, True, momentum=momentum, eps=eps)
    middle = _mean(column)
    squares = math.fsum((number - middle) ** 2 for number in column)
    root = math.sqrt(squares / len(column) + eps)
    right = [
        (column[-1] - middle) / root * float(gamma[-1]) + float(beta[-1]),
        (1 - momentum) * float(running_mean[-1]) + momentum * middle,
        (1 - momentum) * float(running_var[-1]) + momentum * squares / (len(column) - 1),
    ]
    return [float(y.reshape(-1)[-1]), float(mean[-1]), float(var[-1])], right


@holds("batch_norm", "The new statistics are detached, and keep the dtype of the old ones; y has that of x.")
def statistics_are_apart(batch_norm, x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    x = x.float().requires_grad_()
    if x.numel() // x.shape[-1] < 2:
        return None
    y, mean, var = batch_norm(x, gamma.float(), beta.float(), running_mean, running_var, training)
    kept = mean.dtype == var.dtype == running_mean.dtype and y.dtype == x.dtype
    return kept and not mean.requires_grad and not var.requires_grad


@holds("batch_norm", "The default momentum is 0.1 and the default eps 1e-5.", share=1e-6)
def defaults_of_batch_norm(batch_norm, x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    if x.numel() // x.shape[-1] < 2:
        return None
    statistics = (gamma, beta, running_mean, running_var, True)
    small = 3e-3 * torch.tanh(x)
    return batch_norm(small, *statistics), batch_norm(small, *statistics, momentum=0.1, eps=1e-5)


@holds("mlp", "One number of the last token, by loops over single numbers.", share=1e-4)
def one_number_of_the_mlp(mlp, x, w1, b1, w2, b2, activation="relu"):
    row, number = x.reshape(-1, x.shape[-1])[-1].tolist(), float(b2[-1])
    for column in range(w1.shape[1]):
        z = dot_product(row, w1[:, column].tolist()) + float(b1[column])
        share = 0.5 * math.erfc(-z / math.sqrt(2)) if activation == "gelu" else float(z > 0)
        number += z * share * float(w2[column, -1])
    return float(mlp(x, w1, b1, w2, b2, activation=activation).reshape(-1)[-1]), number


@holds("mlp", "Without a word about it the activation is ReLU; another word is refused.")
def words_of_the_mlp(mlp, x, w1, b1, w2, b2, activation="relu"):
    if not refused(mlp, x, w1, b1, w2, b2, activation="tanh"):
        return False
    return mlp(x, w1, b1, w2, b2), mlp(x, w1, b1, w2, b2, activation="relu")


@holds("swiglu", "One number of the last token, by loops over single numbers.", share=1e-4)
def one_gated_number(swiglu, x, w1, w2, w3):
    row, number = x.reshape(-1, x.shape[-1])[-1].tolist(), 0.0
    for column in range(w1.shape[1]):
        z = dot_product(row, w1[:, column].tolist())
        gate = z / (1 + math.exp(-z)) if z > -700 else 0.0
        number += gate * dot_product(row, w2[:, column].tolist()) * float(w3[column, -1])
    return float(swiglu(x, w1, w2, w3).reshape(-1)[-1]), number


@holds("swiglu_hidden", "A Python int, a multiple, at least 8/3 of the width, and the one before is too small.")
def smallest_multiple(swiglu_hidden, d_model, multiple_of=1):
    width = swiglu_hidden(d_model, multiple_of=multiple_of)
    is_right = width % multiple_of == 0 and 3 * width >= 8 * d_model > 3 * (width - multiple_of)
    refuses = refused(swiglu_hidden, 0) and refused(swiglu_hidden, d_model, 0)
    return type(width) is int and is_right and refuses and swiglu_hidden(d_model) == swiglu_hidden(d_model, 1)


@holds("rotary_positions", "Every pair keeps its length.", share=1e-4)
def lengths_stay(rotary_positions, x, positions, theta=10000.0):
    def lengths(y):
        return y.reshape(*y.shape[:-1], -1, 2).square().sum(dim=-1)

    return lengths(rotary_positions(x, positions, theta=theta)), lengths(x)


@holds("rotary_positions", "The pair at the end of the last token is turned by its own angle.", share=3e-4)
def one_turn(rotary_positions, x, positions, theta=10000.0):
    a, b = x.reshape(-1, x.shape[-1])[-1, -2:].tolist()
    angle = int(positions.reshape(-1)[-1]) * theta ** (-(x.shape[-1] - 2) / x.shape[-1])
    right = [a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)]
    return rotary_positions(x, positions, theta=theta).reshape(-1, x.shape[-1])[-1, -2:].tolist(), right


@holds("rotary_positions", "Turned to a position and then by as much again is turned to twice the position.", share=3e-4)
def turned_twice(rotary_positions, x, positions, theta=10000.0):
    once = rotary_positions(x, positions, theta=theta)
    return rotary_positions(once, positions, theta=theta), rotary_positions(x, 2 * positions, theta=theta)


@holds("rotary_positions", "Without a word about it theta is 10000; position 0 turns nothing.", share=3e-4)
def default_base(rotary_positions, x, positions, theta=10000.0):
    answers = [rotary_positions(x, positions), rotary_positions(x, 0 * positions, theta=theta)]
    return answers, [rotary_positions(x, positions, theta=10000.0), x]


def _without(params, *names):
    """The same weights, with 0 in the named ones."""
    return {name: 0 * part if name in names else part for name, part in params.items()}


def _normalized(x, gamma, beta):
    rows = []
    for row in x.reshape(-1, x.shape[-1]).tolist():
        middle = _mean(row)
        root = math.sqrt(_mean([(number - middle) ** 2 for number in row]) + 1e-5)
        rows.append([(number - middle) / root for number in row])
    return torch.tensor(rows).double().reshape(x.shape) * gamma + beta


@holds("post_norm_block", "With both sublayers silent it is x, normalized twice.", share=1e-3)
def norms_alone(post_norm_block, x, params, num_heads, mask=None):
    silent = _without(params, "w_o", "w2", "b2")
    once = _normalized(x, params["ln1_gamma"], params["ln1_beta"])
    right = _normalized(once, params["ln2_gamma"], params["ln2_beta"])
    return post_norm_block(x, silent, num_heads, mask=mask), right


@holds("post_norm_block", "Without attention the MLP reads the first norm's answer, and is added to it.", share=1e-3)
def mlp_after_the_norm(post_norm_block, x, params, num_heads, mask=None):
    silent = _without(params, "w_o", "w2")
    once = _normalized(x, params["ln1_gamma"], params["ln1_beta"]) + params["b2"]
    right = _normalized(once, params["ln2_gamma"], params["ln2_beta"])
    return post_norm_block(x, silent, num_heads, mask=mask), right


@holds("pre_norm_block", "With both sublayers silent x comes out as it is, plus the bias.", share=1e-4)
def stream_alone(pre_norm_block, x, params, num_heads, mask=None):
    silent = _without(params, "w_o", "w2")
    return pre_norm_block(x, silent, num_heads, mask=mask), x + params["b2"]


@holds("pre_norm_block", "A number added to a whole token goes through: both sublayers look at what is normalized.", share=1e-3)
def shifted_tokens(pre_norm_block, x, params, num_heads, mask=None):
    x = torch.tanh(x)
    answer = pre_norm_block(x, params, num_heads, mask=mask)
    return pre_norm_block(x + 2.0, params, num_heads, mask=mask), answer + 2.0


def _one_mlp_number(row, params):
    """The last number of what the MLP adds to a normalized token."""
    number = float(params["b2"][-1])
    for column in range(params["w1"].shape[1]):
        z = dot_product(row, params["w1"][:, column].tolist()) + float(params["b1"][column])
        number += max(z, 0.0) * float(params["w2"][column, -1])
    return number


@holds("pre_norm_block", "Without attention, one number by loops: x, plus the MLP of the second norm.", share=1e-3)
def mlp_of_the_second_norm(pre_norm_block, x, params, num_heads, mask=None):
    row = _normalized(x, params["ln2_gamma"], params["ln2_beta"])[-1, -1].tolist()
    right = float(x[-1, -1, -1]) + _one_mlp_number(row, params)
    answer = pre_norm_block(x, _without(params, "w_o"), num_heads, mask=mask)
    return float(answer[-1, -1, -1]), right


def _mask_of_own(x):
    """Each token sees itself alone."""
    return torch.eye(x.shape[1]).bool()


def _own_values(row, params):
    """What attention adds to a token that sees itself alone: its own values through w_o."""
    values = [dot_product(row, column.tolist()) for column in params["w_v"].T]
    return [dot_product(values, column.tolist()) for column in params["w_o"].T]


@holds("pre_norm_block", "Where each token sees itself alone, attention adds its own values, of the first norm.", share=1e-3)
def own_values_first(pre_norm_block, x, params, num_heads, mask=None):
    row = _normalized(x, params["ln1_gamma"], params["ln1_beta"])[-1, -1].tolist()
    added = torch.tensor(_own_values(row, params)).double()
    answer = pre_norm_block(x, _without(params, "w2", "b2"), num_heads, mask=_mask_of_own(x))
    return answer[-1, -1], x[-1, -1] + added


@holds("post_norm_block", "Where each token sees itself alone, its values are added to x, and then normalized.", share=1e-3)
def own_values_then_norms(post_norm_block, x, params, num_heads, mask=None):
    added = torch.tensor(_own_values(x[-1, -1].tolist(), params)).double()
    once = _normalized(x[-1, -1] + added, params["ln1_gamma"], params["ln1_beta"])
    right = _normalized(once, params["ln2_gamma"], params["ln2_beta"])
    answer = post_norm_block(x, _without(params, "w2", "b2"), num_heads, mask=_mask_of_own(x))
    return answer[-1, -1], right


@holds("post_norm_block", "What a token may not see changes nothing for it.", share=1e-4)
def unseen_tokens(post_norm_block, x, params, num_heads, mask=None):
    other = x.clone()
    other[:, 1:] += 1
    own = _mask_of_own(x)
    answers = [post_norm_block(y, params, num_heads, mask=own)[:, 0] for y in (x, other)]
    return answers[0], answers[1]


@holds("pre_norm_block", "What a token may not see changes nothing for it.", share=1e-4)
def unseen_tokens_before(pre_norm_block, x, params, num_heads, mask=None):
    other = x.clone()
    other[:, 1:] += 1
    own = _mask_of_own(x)
    answers = [pre_norm_block(y, params, num_heads, mask=own)[:, 0] for y in (x, other)]
    return answers[0], answers[1]


@holds("moe_layer", "The loads are int64, sum to tokens times active experts, and are at most the tokens each.")
def loads_add_up(moe_layer, x, w_gate, w1, w2, num_active):
    load = moe_layer(x, w_gate, w1, w2, num_active)[1]
    tokens = x.shape[0] * x.shape[1]
    is_form = load.dtype == torch.int64 and load.shape == (w_gate.shape[1],)
    return is_form and int(load.sum()) == tokens * num_active and int(load.max()) <= tokens


@holds("moe_layer", "Experts that are all alike answer as one does, whatever the gate says.", share=1e-4)
def equal_experts(moe_layer, x, w_gate, w1, w2, num_active):
    alike = [w[:1].expand_as(w) for w in (w1, w2)]
    row, number = x[-1, -1].tolist(), 0.0
    for column in range(w1.shape[2]):
        number += max(dot_product(row, w1[0, :, column].tolist()), 0.0) * float(w2[0, column, -1])
    return float(moe_layer(x, w_gate, *alike, num_active)[0][-1, -1, -1]), number


@holds("moe_layer", "Experts in another order, with the gate's columns, change the loads' order alone.", share=1e-4)
def order_of_experts(moe_layer, x, w_gate, w1, w2, num_active):
    scores = (x @ w_gate).sort(dim=-1).values
    if scores.shape[-1] > 1 and float((scores[..., 1:] - scores[..., :-1]).min()) < 1e-6:
        return None
    y, load = moe_layer(x, w_gate, w1, w2, num_active)
    return moe_layer(x, w_gate.flip(1), w1.flip(0), w2.flip(0), num_active), (y, load.flip(0))


@holds("moe_layer", "With all experts active, a number added to all scores changes nothing, and weights sum to 1.", share=1e-4)
def all_experts(moe_layer, x, w_gate, w1, w2, num_active):
    many = w_gate.shape[1]
    shifted = w_gate + 0.5 * w_gate[:, :1]
    y = moe_layer(x, shifted, w1, w2, many)[0]
    return y, moe_layer(x, shifted - 0.5 * w_gate[:, :1], w1, w2, many)[0]


@holds("moe_layer", "With one active expert the answer is that expert's own.", share=1e-4)
def one_expert(moe_layer, x, w_gate, w1, w2, num_active):
    token = x[-1:, -1:]
    y, load = moe_layer(token, w_gate, w1, w2, 1)
    chosen = int(load.argmax())
    number = 0.0
    for column in range(w1.shape[2]):
        inside = dot_product(token[0, 0].tolist(), w1[chosen, :, column].tolist())
        number += max(inside, 0.0) * float(w2[chosen, column, -1])
    scores = [dot_product(token[0, 0].tolist(), column.tolist()) for column in w_gate.T]
    return [float(y[0, 0, -1]), scores[chosen]], [number, max(scores)]


@holds("moe_layer", "No active expert, and more than there are, are refused.")
def impossible_numbers(moe_layer, x, w_gate, w1, w2, num_active):
    return refused(moe_layer, x, w_gate, w1, w2, 0) and refused(moe_layer, x, w_gate, w1, w2, len(w1) + 1)


@holds("rounding_counterexample", "The token slips by as much as is asked for when sigma is rounded first.")
def slips(rounding_counterexample, decimals, units):
    token = rounding_counterexample(decimals, units)
    if token.dtype != torch.float64 or token.ndim != 1 or not 2 <= len(token) <= 100_000:
        return False
    centred = token - token.mean()
    sigma = math.sqrt(float(centred.square().mean()))
    early = (centred / round(sigma, decimals)).round(decimals=decimals)
    late = (centred / sigma).round(decimals=decimals)
    slip = round(float((early - late).abs().max()) * 10**decimals)
    return sigma >= 1 - 1e-9 and slip >= units


@holds("rounding_counterexample", "No decimals, and no units, are refused.")
def nothing_asked(rounding_counterexample, decimals, units):
    return refused(rounding_counterexample, 0, units) and refused(rounding_counterexample, decimals, 0)
