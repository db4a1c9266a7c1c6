"""Harder inputs of assignment 10: what holds of every call that its docstrings allow."""

import math

import torch

from autograder.student_tools.harder_inputs import about, contract, holds, refused
from autograder.student_tools.slow_definitions import shares_of

WITHOUT = {}

about("decoder")
about("training_flops")
about("one_change")
about("smoothed_loss", except_for="batch")  # its mean is over the whole batch
about("accumulated_gradients")
about("training_curve")
about("compare")
about("paired_verdict")
about("power_law_forecast")
about("lora_adapters", except_for="precision")  # each dtype has random numbers of its own
about("merge_lora")
about("tuning_costs")
about("distinct_ngrams")
about("accuracy_by_length", except_for="batch")  # its shares are over the whole batch
about("six_n_counterexample")


# calls that stand in place of the suite's, whose conditions would show an answer


def runs_of_some_steps(draw, play, name):
    """A small model, whose steps a budget of 30 000 FLOPs always pays for."""
    setup = _setup(draw, context=3) | {"batch": 2}
    setup["d_model"] = 2 * setup["num_heads"]
    setup["dropout"] = draw.choose("dropout", (0.0, 0.25))
    texts = [draw(tokens("N_text", below="V"), part) for part in ("training", "held_out")]
    budget = 1000 * draw.whole(30, 40)
    play.call(name, _params(draw, setup), setup, *texts, budget, draw.whole(1, 3), draw.whole(0, 5))


def losses_of_seeds(draw, play, name):
    """Losses in quarters, of two to six seeds."""
    n = draw.whole(2, 6)
    first, second = ([draw.whole(0, 12) / 4 for _ in range(n)] for _ in range(2))
    settings = {"factor": draw.choose("factor", (0.5, 3.3))} if draw.happens(50) else {}
    play.call(name, first, second, **settings)


def losses_of_sizes(draw, play, name):
    """Sizes that are at least a factor of two apart: others make exponents without bounds."""
    sizes = [draw.whole(1, 9)]
    for _ in range(draw.whole(1, 4)):
        sizes.append(sizes[-1] * draw.whole(2, 6))
    losses = [draw.whole(2, 34) / 4 for _ in sizes]
    settings = {"floor": draw.choose("floor", (0.0, 0.25, -1.0))} if draw.happens(50) else {}
    play.call(name, sizes, losses, draw.whole(1, 2000), **settings)


contract("training_curve", runs_of_some_steps, sizes={**SMALL, "N_text": (5, 9)}, dtypes=("float64",))
contract("paired_verdict", losses_of_seeds)
contract("power_law_forecast", losses_of_sizes)


# decoder


@holds("decoder", "A later token changes nothing in the logits before it.")
def no_look_ahead(decoder, ids, params, setup):
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % len(params["embed"])
    return decoder(changed, params, setup)[:, :-1], decoder(ids, params, setup)[:, :-1]


@holds("decoder", "A text alone has the logits that it has in a batch.")
def texts_alone(decoder, ids, params, setup):
    return decoder(ids[-1:], params, setup), decoder(ids, params, setup)[-1:]


@holds("decoder", "drop gets [B, N, D]: once the embeddings, and once what each sublayer adds.")
def drop_is_asked(decoder, ids, params, setup):
    shapes = []

    def drop(x):
        shapes.append(list(x.shape))
        return x

    answer = decoder(ids, params, setup, drop)
    shape = [*ids.shape, params["embed"].shape[1]]
    is_asked = shapes == [shape] * (1 + 2 * len(params["blocks"]))
    return [answer, is_asked], [decoder(ids, params, setup), True]


@holds("decoder", "Where drop leaves nothing, all logits are 0.")
def all_is_dropped(decoder, ids, params, setup):
    answer = decoder(ids, params, setup, lambda x: 0 * x)
    return answer, torch.zeros_like(answer)


def _with_blocks(params, **changes):
    """The parameters with changed matrices: the name of each, and a function of it."""
    blocks = [
        block | {name: change(block[name]) for name, change in changes.items()}
        for block in params["blocks"]
    ]
    return params | {"blocks": blocks}


@holds("decoder", "Sublayers whose last matrix is zero add nothing, and drop sees that.")
def nothing_to_add(decoder, ids, params, setup):
    last = "w3" if setup["activation"] == "swiglu" else "w2"
    silent = _with_blocks(params, **dict.fromkeys(("w_o", last), torch.zeros_like))
    sizes = []

    def drop(x):
        sizes.append(float(x.abs().max()))
        return x

    decoder(ids, silent, setup, drop)
    return sum(sizes[1:]) == 0


@holds(
    "decoder",
    "Before the head the features of a token have mean 0 (not with rms) and mean square 1, times a gain.",
    share=1e-3,
)
def normalized_before_the_head(decoder, ids, params, setup):
    width = params["embed"].shape[1]
    if width < 4:
        return None  # two features are nearly equal too often
    dice = torch.Generator().manual_seed(0)
    shown = _with_blocks(params, norm1=torch.ones_like, norm2=torch.ones_like)
    shown["embed"] = 10 * torch.randn(params["embed"].shape, generator=dice).double()
    shown["unembed"] = torch.eye(width).double()
    gain = torch.arange(1, width + 1).double()
    if setup["norm"] == "post":
        shown["blocks"][-1]["norm2"] = gain
    else:
        shown["norm_f"] = gain
    features = decoder(ids, shown, setup | {"tied": False}) / gain
    square = features.pow(2).mean(dim=-1)
    if setup["norm"] == "rms":
        return square, torch.ones_like(square)
    return [features.mean(dim=-1), square], [torch.zeros_like(square), torch.ones_like(square)]


@holds("decoder", "Without a table of positions a word that is repeated has the same logits each time.")
def repeated_word(decoder, ids, params, setup):
    if setup["positions"] == "learned":
        return None
    answer = decoder(ids[:, :1].repeat(1, 4), params, setup)
    return answer, answer[:, :1].repeat(1, 4, 1)


@holds("decoder", "Heads may change places, if their parts of all matrices do.")
def heads_change_places(decoder, ids, params, setup):
    groups = setup["num_kv_heads"]

    def flip(columns):
        return columns.unflatten(1, (groups, -1)).flip(1).flatten(1)

    flipped = _with_blocks(params, w_q=flip, w_k=flip, w_v=flip, w_o=lambda rows: flip(rows.T).T)
    return decoder(ids, flipped, setup), decoder(ids, params, setup)


@holds("decoder", "With rotary positions it matters how far back a word stands.")
def distance_matters(decoder, ids, params, setup, notebook):
    if setup["positions"] != "rotary":
        return None
    sizes = {"d_model": 4, "num_heads": 1, "num_kv_heads": 1, "num_layers": 1, "vocab_size": 2}
    own = setup | sizes | {"tied": True}
    shown = notebook["random_params"](own, seed=3)
    # two words with the same queries and keys, and other values
    shown["embed"] = torch.tensor([[1.0, 1.0, 1.0, -1.0], [1.0, 1.0, -1.0, 1.0]])
    seen = torch.tensor([[3.0], [3.0], [0.0], [0.0]])
    shown = _with_blocks(shown, w_q=lambda w: w * seen, w_k=lambda w: w * seen)
    answer = decoder(torch.tensor([[1, 0, 0], [0, 1, 0]]), shown, own)[:, -1]
    return float((answer[0] - answer[1]).abs().max()) > 1e-4


@holds("decoder", "Of the matrices around an activation some may be twice and half as large.")
def twice_and_half(decoder, ids, params, setup):
    if setup["activation"] == "gelu":
        return None
    first, second = {"relu": ("w1", "w2"), "swiglu": ("w2", "w3")}[setup["activation"]]
    other = _with_blocks(params, **{first: lambda w: 2 * w, second: lambda w: w / 2})
    return decoder(ids, other, setup), decoder(ids, params, setup)


@holds("decoder", "An MLP whose w1 is zero adds nothing.")
def silent_activation(decoder, ids, params, setup):
    last = "w3" if setup["activation"] == "swiglu" else "w2"
    answers = [
        decoder(ids, _with_blocks(params, **{name: torch.zeros_like}), setup) for name in ("w1", last)
    ]
    return answers[0], answers[1]


@holds("decoder", "A head of its own is used: a column of zeros gives a logit of 0, the others stay.")
def own_head(decoder, ids, params, setup):
    if setup["tied"]:
        return None
    head = params["unembed"].clone()
    head[:, -1] = 0
    expected = decoder(ids, params, setup).clone()
    expected[..., -1] = 0
    return decoder(ids, params | {"unembed": head}, setup), expected


@holds("decoder", "A misspelt setting, and more tokens than a table has positions, are refused.")
def strange_setups(decoder, ids, params, setup):
    words = ("positions", "norm", "activation")
    is_refused = all(refused(decoder, ids, params, setup | {word: "linear"}) for word in words)
    if setup["positions"] != "learned":
        return is_refused
    long = ids[:, :1].repeat(1, len(params["positions"]) + 1)
    return is_refused and refused(decoder, long, params, setup)


# training_flops


@holds("training_flops", "A Python int, as many times as large as the batch; parts and ties do not matter.")
def batches_and_parts(training_flops, setup):
    cost = training_flops(setup)
    others = ({"batch": 3 * setup["batch"]}, {"parts": 2}, {"tied": not setup["tied"]})
    costs = [training_flops(setup | change) for change in others]
    return type(cost) is int and costs == [3 * cost, cost, cost]


@holds("training_flops", "One more layer, word or unit of the MLP costs as much as any other.")
def each_costs_as_much(training_flops, setup):
    for name in ("num_layers", "vocab_size", "d_ff"):
        costs = [training_flops(setup | {name: setup[name] + more}) for more in range(3)]
        if not 0 < costs[1] - costs[0] == costs[2] - costs[1]:
            return False
    return True


@holds("training_flops", "A SwiGLU costs as much as two matrices that are half as wide again.")
def three_matrices(training_flops, setup):
    gated = training_flops(setup | {"activation": "swiglu", "d_ff": 2 * setup["d_ff"]})
    return gated == training_flops(setup | {"activation": "relu", "d_ff": 3 * setup["d_ff"]})


@holds("training_flops", "With shared keys a token costs less, and each further token of context as much.")
def shared_keys(training_flops, setup):
    def per_token(kv_heads, context):
        sizes = {"d_model": 8, "num_heads": 4, "num_kv_heads": kv_heads}
        cost = training_flops(setup | sizes | {"context_length": context})
        return cost / (setup["batch"] * context)

    one, two, all_heads = (per_token(kv_heads, 8) for kv_heads in (1, 2, 4))
    growth = [per_token(kv_heads, 16) - per_token(kv_heads, 8) for kv_heads in (1, 4)]
    return 0 < 2 * (two - one) == all_heads - two and 0 < growth[0] == growth[1]


@holds("training_flops", "Heads that do not divide are refused.")
def heads_that_do_not_divide(training_flops, setup):
    sizes = ({"d_model": 8, "num_heads": 3}, {"d_model": 12, "num_heads": 4, "num_kv_heads": 3})
    return all(refused(training_flops, setup | size) for size in sizes)


# one_change


@holds("one_change", "The entry has the new value; no other changes but the width of an MLP.")
def one_entry_changes(one_change, base, field, value):
    setup = one_change(base, field, value)
    changed = {name for name in base if setup[name] != base[name]}
    may_change = {field, "d_ff"} if field == "activation" else {field}
    return setup.keys() == base.keys() and setup[field] == value and changed <= may_change


@holds("one_change", "To or from a SwiGLU the MLP keeps its parameters, up to less than a unit.")
def as_many_parameters(one_change, base, field, value):
    wide = base | {"activation": "relu", "d_ff": 10 + base["d_ff"]}
    gated = one_change(wide, "activation", "swiglu")
    lost = 2 * wide["d_ff"] - 3 * gated["d_ff"]
    back = one_change(gated, "activation", "gelu")
    lost_again = 3 * gated["d_ff"] - 2 * back["d_ff"]
    same = one_change(wide, "activation", "gelu")
    return 0 <= lost < 3 and 0 <= lost_again < 2 and same["d_ff"] == wide["d_ff"]


@holds("one_change", "A SwiGLU keeps its width where something else changes; False and 0 are values.")
def other_entries(one_change, base, field, value):
    gated = base | {"activation": "swiglu", "tied": True, "dropout": 0.5, "norm": "pre"}
    changes = {"norm": "post", "tied": False, "dropout": 0.0}
    return all(one_change(gated, name, new) == gated | {name: new} for name, new in changes.items())


@holds("one_change", "An entry that there is not, and the value that there is, are refused.")
def changes_of_nothing(one_change, base, field, value):
    return refused(one_change, base, f"{field}s", value) and refused(one_change, base, field, base[field])


# smoothed_loss


def _mild(logits):
    """Logits of at most 20, so that no share is a matter of rounding."""
    return logits / (1 + logits.abs() / 20)


@holds("smoothed_loss", "The same number added to all logits of a token changes nothing.")
def shifts_do_not_matter(smoothed_loss, logits, targets, smoothing=0.0):
    mild = _mild(logits)
    return smoothed_loss(mild + 3, targets, smoothing), smoothed_loss(mild, targets, smoothing)


@holds("smoothed_loss", "A smoothing of 1/4 lies half way between none and one of 1/2.")
def smoothing_mixes(smoothed_loss, logits, targets, smoothing=0.0):
    mild = _mild(logits)
    none, half = smoothed_loss(mild, targets, 0.0), smoothed_loss(mild, targets, 0.5)
    return smoothed_loss(mild, targets, 0.25), (none + half) / 2


@holds("smoothed_loss", "Equal logits have a loss of log V, however much is smoothed.")
def equal_logits(smoothed_loss, logits, targets, smoothing=0.0):
    if not bool((targets != -100).any()):
        return None
    expected = math.log(logits.shape[-1])
    return float(smoothed_loss(torch.zeros_like(logits), targets, smoothing)), expected


@holds("smoothed_loss", "A smoothing of s leaves 1 − s of what one target is better than another.")
def targets_compared(smoothed_loss, logits, targets, smoothing=0.0):
    mild = _mild(logits[:1, :1])

    def advantage(s):
        losses = [smoothed_loss(mild, torch.tensor([[token]]), s) for token in (0, 1)]
        return losses[0] - losses[1]

    return advantage(0.4), 0.6 * advantage(0.0)


@holds("smoothed_loss", "Without smoothing, the loss of one token is that of its share.")
def loss_of_a_share(smoothed_loss, logits, targets, smoothing=0.0):
    mild = _mild(logits[-1:, -1:])
    share = shares_of(mild.flatten().tolist())[-1]
    answer = smoothed_loss(mild, torch.tensor([[logits.shape[-1] - 1]]), 0.0)
    return math.exp(-float(answer)), share


@holds("smoothed_loss", "Places that do not count may have any logits, and -100 may be another number.")
def places_that_do_not_count(smoothed_loss, logits, targets, smoothing=0.0):
    mild, ignored = _mild(logits), targets == -100
    other = mild.masked_fill(ignored[..., None], 7.0)
    other[..., 0] += ignored
    renamed = targets.masked_fill(ignored, -7)
    expected = smoothed_loss(mild, targets, smoothing)
    answers = [
        smoothed_loss(other, targets, smoothing),
        smoothed_loss(mild, renamed, smoothing, ignore_index=-7),
    ]
    return answers, [expected, expected]


@holds("smoothed_loss", "The loss is the mean of the rows' losses, each as often as it has targets.")
def rows_alone(smoothed_loss, logits, targets, smoothing=0.0):
    mild = _mild(logits)
    counts = (targets != -100).sum(dim=1).tolist()
    rows = range(len(counts))
    losses = [smoothed_loss(mild[i : i + 1], targets[i : i + 1], smoothing) for i in rows]
    total = sum(count * float(loss) for count, loss in zip(counts, losses))
    return float(smoothed_loss(mild, targets, smoothing)), total / max(1, sum(counts))


@holds("smoothed_loss", "Without a target that counts the loss is 0, and has a gradient.")
def no_targets(smoothed_loss, logits, targets, smoothing=0.0):
    leaf = logits.clone().requires_grad_()
    answer = smoothed_loss(leaf, torch.full_like(targets, -100), smoothing)
    return bool(answer == 0) and answer.requires_grad


@holds("smoothed_loss", "A smoothing below 0, and one of 1, are refused.")
def strange_smoothing(smoothed_loss, logits, targets, smoothing=0.0):
    return all(refused(smoothed_loss, logits, targets, s) for s in (-0.1, 1.0))


# accumulated_gradients


@holds("accumulated_gradients", "In one part, and in a part for each row, loss and gradients are the same.")
def parts_add_up(accumulated_gradients, params, setup, inputs, targets):
    whole, rows = (
        accumulated_gradients(params, setup | {"parts": parts}, inputs, targets)
        for parts in (1, len(inputs))
    )
    return [rows[0], *rows[1]], [whole[0], *whole[1]]


@holds("accumulated_gradients", "The loss is a Python float: the smoothed loss of what the decoder says.")
def loss_of_the_batch(accumulated_gradients, params, setup, inputs, targets, notebook):
    loss = accumulated_gradients(params, setup, inputs, targets)[0]
    logits = notebook["decoder"](inputs, params, setup)
    expected = float(notebook["smoothed_loss"](logits, targets, setup["smoothing"]))
    return [loss, type(loss) is float], [expected, True]


@holds("accumulated_gradients", "Every row goes through the decoder once, no more at once than a part has.")
def rows_at_once(accumulated_gradients, params, setup, inputs, targets):
    for parts in {1, setup["parts"], len(inputs)}:
        rows = []

        def drop(x, rows=rows):
            rows.append(len(x))
            return x

        cut = {**setup, "parts": parts}
        accumulated_gradients(params, cut, inputs, targets, drop=drop)
        most = math.ceil(len(inputs) / parts)
        if sum(rows) != len(inputs) * (1 + 2 * setup["num_layers"]) or max(rows) > most:
            return False
    return True


@holds("accumulated_gradients", "Gradients tell how the loss changes where the parameters do.", share=1e-3)
def slopes(accumulated_gradients, params, setup, inputs, targets, notebook):
    smooth = setup | {"activation": "gelu"}  # a ReLU has edges
    nesting = notebook["random_params"](smooth)
    dice = torch.Generator().manual_seed(2)
    shapes = [t.shape for t in notebook["list_tensors"](nesting)] * 2
    draws = [torch.randn(shape, generator=dice).double() for shape in shapes]
    tensors, ways = draws[: len(draws) // 2], draws[len(draws) // 2 :]

    def batch(step):
        moved = [t + step * way for t, way in zip(tensors, ways)]
        weights = notebook["with_tensors"](nesting, moved)
        return accumulated_gradients(weights, smooth, inputs, targets)

    quotients = [(batch(s)[0] - batch(-s)[0]) / (2 * s) for s in (2e-5, 1e-5)]
    if abs(quotients[0] - quotients[1]) > 1e-4 * max(1.0, abs(quotients[1])):
        return None  # too curved here
    slope = sum(float((g * way).sum()) for g, way in zip(batch(0.0)[1], ways))
    return slope, quotients[1]


@holds("accumulated_gradients", "No part, and more parts than rows, are refused.")
def strange_parts(accumulated_gradients, params, setup, inputs, targets):
    numbers = (0, len(inputs) + 1)
    setups = [setup | {"parts": parts} for parts in numbers]
    return all(refused(accumulated_gradients, params, own, inputs, targets) for own in setups)


# training_curve


def _spent(notebook, setup, steps):
    return steps * notebook["training_flops"](setup)


def _same_tensors(notebook, left, right):
    pairs = zip(notebook["list_tensors"](left), notebook["list_tensors"](right))
    return all(torch.equal(a, b) for a, b in pairs)


def _small_run(setup, notebook, **changes):
    """A setup of 4 steps with new parameters, and a text of its own for training."""
    own = setup | {"d_model": 4, "num_heads": 2, "num_kv_heads": 1, "vocab_size": 5}
    own |= {"d_ff": 3, "num_layers": 1, "dropout": 0.0, **changes}
    dice = torch.Generator().manual_seed(4)
    text = torch.randint(0, own["vocab_size"], (40,), generator=dice)
    return own, notebook["random_params"](own), text


@holds("training_curve", "Points come before the first step, after each `every`, and after the last that is paid for.")
def places_of_points(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    cost = notebook["training_flops"](setup)
    _, curve = training_curve(params, setup, training, held_out, budget, every, seed)
    steps = [flops / cost for flops, _ in curve]
    gaps = [after - before for before, after in zip(steps, steps[1:])]
    is_even = all(gap == every for gap in gaps[:-1]) and 1 <= gaps[-1] <= every
    is_spent = curve[-1][0] <= budget < curve[-1][0] + cost
    return steps[0] == 0 and steps[-1] % 1 == 0 and is_even and is_spent


@holds("training_curve", "Points are pairs of an int and a float; a point after every step changes none of them.")
def points_in_between(training_curve, params, setup, training, held_out, budget, every, seed):
    arguments = (params, setup, training, held_out, budget)
    few, all_points = (training_curve(*arguments, n, seed)[1] for n in (every, 1))
    kinds = {(type(flops), type(loss)) for flops, loss in few}
    losses = dict(all_points)
    expected = [losses[flops] for flops, _ in few]
    return [[loss for _, loss in few], kinds == {(int, float)}], [expected, True]


@holds("training_curve", "The last point is the loss of the parameters that come back, without dropout.")
def ends_of_the_curve(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    own = setup | {"dropout": 0.25}
    after, curve = training_curve(params, own, training, held_out, budget, every, seed)

    def measured(weights):
        def model(ids):
            return notebook["decoder"](ids, weights, own)

        return notebook["held_out_loss"](model, held_out, own["context_length"])

    return [curve[0][1], curve[-1][1]], [measured(params), measured(after)]


@holds("training_curve", "The held-out text changes no parameter, and dropout does.")
def what_changes_parameters(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    own, start, text = _small_run(setup, notebook)
    spent = _spent(notebook, own, 4)
    after, dropped = (
        training_curve(start, own | {"dropout": rate}, text, held_out % 5, spent, 2, seed)[0]
        for rate in (0.0, 0.5)
    )
    other = training_curve(start, own, text, (held_out + 1) % 5, spent, 2, seed)[0]
    return _same_tensors(notebook, after, other) and not _same_tensors(notebook, after, dropped)


@holds("training_curve", "Tokens in the batches of the steps matter, each of them, and no others do.")
def batches_of_the_steps(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    own, start, text = _small_run(setup, notebook)
    places = torch.arange(len(text))
    batches = [notebook["training_batch"](places, own, seed, step) for step in range(4)]
    seen = [set(torch.cat([part.flatten() for part in batch]).tolist()) for batch in batches]

    def run(changed):
        other = text.clone()
        for place in changed:
            other[place] = (other[place] + 1) % 5
        spent = _spent(notebook, own, 4)
        return training_curve(start, own, other, held_out % 5, spent, 4, seed)[0]

    after = run(())
    unseen = set(range(len(text))).difference(*seen)
    if not _same_tensors(notebook, after, run(unseen)):
        return False
    for step, members in enumerate(seen):
        alone = members.difference(*seen[:step], *seen[step + 1 :])
        if alone and _same_tensors(notebook, after, run(alone)):
            return False
    return True


@holds("training_curve", "With a single word nothing is to be learned: matrices decay as the rates of the steps say.")
def decay_of_a_single_word(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    own, start, _ = _small_run(setup, notebook, vocab_size=1)
    steps, words = 12, torch.zeros(9, dtype=torch.int64)
    after, _ = training_curve(start, own, words, words, _spent(notebook, own, steps), steps, seed)
    left = 1.0
    for step in range(steps):
        left *= 1 - 0.1 * notebook["rate_at"](step, steps, own["rate"])
    return after["embed"], left * start["embed"]


@holds("training_curve", "Two steps are not twice a first step: the optimizer remembers.")
def optimizer_remembers(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    own, start, text = _small_run(setup, notebook, rate=0.1)
    window = text[: own["context_length"] + 1]  # the only batch, in every step
    one, two = (_spent(notebook, own, steps) for steps in (1, 2))
    together = training_curve(start, own, window, window, two, 1, seed)[0]
    first = training_curve(start, own, window, window, one, 1, seed)[0]
    apart = training_curve(first, own, window, window, one, 1, seed)[0]
    return not _same_tensors(notebook, together, apart)


@holds("training_curve", "A budget below one step, and no point at all, are refused.")
def strange_budgets(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    small = _spent(notebook, setup, 1) - 1
    arguments = (params, setup, training, held_out)
    return refused(training_curve, *arguments, small, every, seed) and refused(
        training_curve, *arguments, budget, 0, seed
    )


# compare


def _recorder(asked):
    """A run that is not made: it notes what was asked for, and its loss tells seed and steps."""

    def run(setup, steps, seed):
        asked.append((dict(setup), steps, seed))
        return seed + steps / 8

    return run


@holds("compare", "A row for each value in their order, with a loss for each seed in theirs, each run once.")
def rows_and_seeds(compare, base, field, values, budget, seeds, run):
    asked = []
    table = compare(base, field, values, budget, seeds, _recorder(asked))
    names = [value for value, _, _ in table]
    losses = [list(own) for _, _, own in table]
    expected = [[seed + steps / 8 for seed in seeds] for _, steps, _ in table]
    return names == list(values) and losses == expected and len(asked) == len(values) * len(seeds)


@holds("compare", "The setups are those of one_change, and the base itself for the value that it has.")
def setups_asked_for(compare, base, field, values, budget, seeds, run, notebook):
    asked = []
    compare(base, field, values, budget, seeds, _recorder(asked))
    for setup, _, _ in asked:
        value = setup[field]
        is_base = value == base[field]
        if setup != (base if is_base else notebook["one_change"](base, field, value)):
            return False
    return {setup[field] for setup, _, _ in asked} == set(values)


@holds("compare", "Each run gets all steps that the budget pays for.")
def steps_paid_for(compare, base, field, values, budget, seeds, run, notebook):
    asked = []
    table = compare(base, field, values, budget, seeds, _recorder(asked))
    for setup, steps, _ in asked:
        cost = notebook["training_flops"](setup)
        if not steps * cost <= budget < (steps + 1) * cost:
            return False
    return all(type(steps) is int for _, steps, _ in table)


@holds("compare", "A row is the same whatever rows come before it.")
def other_rows(compare, base, field, values, budget, seeds, run):
    def rows(own):
        table = compare(base, field, own, budget, seeds, _recorder([]))
        return [(value, steps, list(losses)) for value, steps, losses in table]

    return rows(values[::-1]) == rows(values)[::-1]


@holds("compare", "A seed or value twice, and a budget below a step, are refused before anything is run.")
def unfair_tables(compare, base, field, values, budget, seeds, run):
    asked = []
    own = _recorder(asked)
    is_refused = (
        refused(compare, base, field, values, budget, [*seeds, seeds[0]], own)
        and refused(compare, base, field, [*values, values[0]], budget, seeds, own)
        and refused(compare, base, field, values, 1, seeds, own)
    )
    return is_refused and not asked


# paired_verdict


@holds("paired_verdict", "In exchanged places the other one wins, and the mean has the other sign.")
def exchanged(paired_verdict, first, second, factor=2.0):
    winner, mean, error = paired_verdict(first, second, factor)
    other = {"first": "second", "second": "first"}.get(winner, winner)
    return list(paired_verdict(second, first, factor)), [other, -mean, error]


@holds("paired_verdict", "What a seed brings to both does not matter, nor does the order of the seeds.")
def luck_of_the_seeds(paired_verdict, first, second, factor=2.0):
    luck = range(len(first))
    lucky = paired_verdict(
        [a + i for a, i in zip(first, luck)], [b + i for b, i in zip(second, luck)], factor
    )
    verdict = list(paired_verdict(first, second, factor))
    return [*lucky, *paired_verdict(first[::-1], second[::-1], factor)], [*verdict, *verdict]


@holds("paired_verdict", "Losses four times as large have four times the mean and the error; one more in all of one moves the mean by one.")
def other_units(paired_verdict, first, second, factor=2.0):
    _, mean, error = paired_verdict(first, second, factor)
    large = paired_verdict([4 * a for a in first], [4 * b for b in second], factor)[1:]
    moved = paired_verdict([a + 1 for a in first], second, factor)[1:]
    return [*large, *moved], [4 * mean, 4 * error, mean + 1, error]


@holds("paired_verdict", "Of two pairs the error is half of how far their differences are apart.")
def two_pairs(paired_verdict, first, second, factor=2.0):
    differences = [a - b for a, b in zip(first[:2], second[:2])]
    _, mean, error = paired_verdict(first[:2], second[:2], factor)
    apart = abs(differences[0] - differences[1]) / 2
    return [mean, error], [sum(differences) / 2, apart]


@holds("paired_verdict", "Every pair twice: the mean stays, and the error shrinks with the number of pairs.")
def twice_as_many(paired_verdict, first, second, factor=2.0):
    n = len(first)
    _, mean, error = paired_verdict(first, second, factor)
    shrunk = error * math.sqrt((n - 1) / (2 * n - 1))
    return list(paired_verdict(first * 2, second * 2, factor)[1:]), [mean, shrunk]


@holds("paired_verdict", "A factor that asks for half of the mean finds the lower one, one for twice the mean nobody.")
def factors(paired_verdict, first, second, factor=2.0):
    _, mean, error = paired_verdict(first, second, factor)
    if mean == 0 or error == 0:
        return None
    ratio = abs(mean) / error
    lower = "first" if sum(first) < sum(second) else "second"
    winners = [paired_verdict(first, second, share * ratio)[0] for share in (0.5, 2.0)]
    return winners == [lower, "undecided"]


@holds("paired_verdict", "Who has a run without a finite loss loses to who has none; mean and error are None.")
def diverged(paired_verdict, first, second, factor=2.0):
    for bad in (math.inf, math.nan):
        lost = [*first[:-1], bad]
        verdicts = [
            paired_verdict(lost, second, factor),
            paired_verdict(first, [bad, *second[1:]], factor),
            paired_verdict(lost, [bad, *second[1:]], factor),
        ]
        if list(map(tuple, verdicts)) != [(w, None, None) for w in ("second", "first", "undecided")]:
            return False
    return True


@holds("paired_verdict", "Lists of different lengths, and single losses, are refused.")
def no_pairs(paired_verdict, first, second, factor=2.0):
    return refused(paired_verdict, first, second[1:]) and refused(paired_verdict, first[:1], second[:1])


# power_law_forecast


@holds("power_law_forecast", "In another unit of size the exponent and the forecast are the same.")
def units_do_not_matter(power_law_forecast, sizes, losses, new_size, floor=0.0):
    thousands = power_law_forecast([1000 * n for n in sizes], losses, 1000 * new_size, floor)
    return list(thousands), list(power_law_forecast(sizes, losses, new_size, floor))


@holds("power_law_forecast", "The order of the points does not matter, nor that each of them is there twice.")
def order_of_points(power_law_forecast, sizes, losses, new_size, floor=0.0):
    turned = power_law_forecast(sizes[1:] + sizes[:1], losses[1:] + losses[:1], new_size, floor)
    twice = power_law_forecast(sizes * 2, losses * 2, new_size, floor)
    expected = list(power_law_forecast(sizes, losses, new_size, floor))
    return [*turned, *twice], [*expected, *expected]


@holds("power_law_forecast", "Two more in all losses and the floor are two more in the forecast.")
def higher_floor(power_law_forecast, sizes, losses, new_size, floor=0.0):
    alpha, forecast = power_law_forecast(sizes, losses, new_size, floor)
    raised = power_law_forecast(sizes, [loss + 2 for loss in losses], new_size, floor + 2)
    return list(raised), [alpha, forecast + 2]


@holds("power_law_forecast", "Losses three times as far above the floor have a forecast three times as far.")
def farther_above(power_law_forecast, sizes, losses, new_size, floor=0.0):
    alpha, forecast = power_law_forecast(sizes, losses, new_size, floor)
    above = [floor + 3 * (loss - floor) for loss in losses]
    expected = [alpha, floor + 3 * (forecast - floor)]
    return list(power_law_forecast(sizes, above, new_size, floor)), expected


@holds("power_law_forecast", "Points on the fitted line have that line.")
def line_of_its_own(power_law_forecast, sizes, losses, new_size, floor=0.0):
    on_line = [power_law_forecast(sizes, losses, size, floor)[1] for size in sizes]
    if min(on_line) - floor < 1e-6:
        return None
    expected = list(power_law_forecast(sizes, losses, new_size, floor))
    return list(power_law_forecast(sizes, on_line, new_size, floor)), expected


@holds("power_law_forecast", "Losses that are a power of the size have that power, and go on as it does.")
def true_power(power_law_forecast, sizes, losses, new_size, floor=0.0):
    exact = [floor + 3 / math.sqrt(size) for size in sizes]
    answer = power_law_forecast(sizes, exact, new_size, floor)
    return list(answer), [0.5, floor + 3 / math.sqrt(new_size)]


@holds("power_law_forecast", "Lists that do not fit, one size, a size of 0 and a loss at the floor are refused.")
def no_line(power_law_forecast, sizes, losses, new_size, floor=0.0):
    same, zero = [sizes[0]] * len(sizes), [0, *sizes[1:]]
    return (
        refused(power_law_forecast, sizes, losses[1:], new_size, floor)
        and refused(power_law_forecast, same, losses, new_size, floor)
        and refused(power_law_forecast, zero, losses, new_size, floor)
        and refused(power_law_forecast, sizes, [floor, *losses[1:]], new_size, floor)
    )


# lora_adapters


@holds("lora_adapters", "For each block and name a of [n, r] with numbers, and b of [r, m] that is zero.")
def shapes_of_adapters(lora_adapters, params, names, rank, seed=0):
    adapters = lora_adapters(params, names, rank, seed)
    if len(adapters) != len(params["blocks"]):
        return False
    for block, own in zip(params["blocks"], adapters):
        for name in names:
            n, m = block[name].shape
            a, b = own[name]["a"], own[name]["b"]
            if a.shape != (n, rank) or b.shape != (rank, m) or not a.any() or b.any():
                return False
    return all(set(own) == set(names) for own in adapters)


@holds("lora_adapters", "Numbers come from the seed: other seeds give others, and torch's own dice stay.")
def seeds_of_adapters(lora_adapters, params, names, rank, seed=0):
    states, answers = [torch.get_rng_state()], []
    for own_seed in (seed, seed + 1, seed):
        answers.append(lora_adapters(params, names, rank, own_seed)[0][names[0]]["a"])
        states.append(torch.get_rng_state())
    is_same = torch.equal(answers[0], answers[2]) and not torch.equal(answers[0], answers[1])
    return is_same and all(torch.equal(states[0], state) for state in states)


@holds("lora_adapters", "Numbers of a are normal with a deviation of 1/√n, and no two matrices share them.")
def normal_numbers(lora_adapters, params, names, rank, seed=0):
    large = {"w": torch.zeros(400, 60).double(), "v": torch.zeros(400, 30).double()}
    adapters = lora_adapters({"blocks": [large, large]}, ["w", "v"], 20, seed)
    parts = [own[name]["a"] * 20.0 for own in adapters for name in ("w", "v")]
    numbers = torch.stack(parts).flatten(1)  # four times 8 000, of deviation 1
    moments = [float(numbers.mean()), float(numbers.pow(2).mean()), float(numbers.pow(4).mean())]
    is_normal = abs(moments[0]) < 0.05 and abs(moments[1] - 1) < 0.05 and abs(moments[2] - 3) < 0.4
    alike = numbers @ numbers.T / numbers.shape[1] - torch.eye(4).double()
    return is_normal and float(alike.abs().max()) < 0.15


@holds("lora_adapters", "A rank of 0, one above a side, and a name that no block has, are refused.")
def strange_ranks(lora_adapters, params, names, rank, seed=0):
    largest = min(params["blocks"][0][names[0]].shape)
    calls = ((names, 0), (names, largest + 1), (["no such matrix"], 1))
    return all(refused(lora_adapters, params, own, number) for own, number in calls)


# merge_lora


@holds("merge_lora", "Everything without an adapter stays, and all of it with an alpha of 0.")
def what_stays(merge_lora, params, adapters, alpha):
    merged, nothing = (merge_lora(params, adapters, a) for a in (alpha, 0.0))
    got, expected = [merged["embed"], nothing["embed"]], [params["embed"]] * 2
    for place, (block, own) in enumerate(zip(params["blocks"], adapters)):
        for name, matrix in block.items():
            got.append(nothing["blocks"][place][name])
            expected.append(matrix)
            if name not in own:
                got.append(merged["blocks"][place][name])
                expected.append(matrix)
    return got, expected


@holds("merge_lora", "An adapter whose columns and rows are there twice, of twice the rank, adds as much.")
def rank_divides(merge_lora, params, adapters, alpha):
    twice = [
        {
            name: {"a": torch.cat([part["a"]] * 2, dim=1), "b": torch.cat([part["b"]] * 2)}
            for name, part in own.items()
        }
        for own in adapters
    ]
    merged, wide = (merge_lora(params, own, alpha)["blocks"] for own in (adapters, twice))
    return [list(block.values()) for block in wide], [[block[k] for k in wide[0]] for block in merged]


@holds("merge_lora", "With a single number in a, one row moves: by alpha / r times it and a row of b.")
def one_row(merge_lora, params, adapters, alpha):
    matrix = params["blocks"][-1]["w"]
    a = torch.zeros(len(matrix), 2).double()
    a[-1, 1] = 3.0
    b = torch.arange(2 * matrix.shape[1]).double().view(2, -1)
    own = [{} for _ in params["blocks"][:-1]] + [{"w": {"a": a, "b": b}}]
    moved = merge_lora(params, own, 4.0)["blocks"][-1]["w"] - matrix
    expected = torch.zeros_like(matrix)
    expected[-1] = 6 * b[1]
    return moved, expected


@holds("merge_lora", "A gradient reaches every a and b, and the parameters.")
def gradients_reach(merge_lora, params, adapters, alpha):
    leaves = []

    def leaf(tensor):
        leaves.append(tensor.clone().requires_grad_())
        return leaves[-1]

    blocks = [block | {"w": leaf(block["w"])} for block in params["blocks"]]
    own = [
        {"w": {"a": leaf(torch.ones(len(block["w"]), 1).double()), "b": leaf(block["w"][:1] * 0 + 1)}}
        for block in params["blocks"]
    ]
    merged = merge_lora(params | {"blocks": blocks}, own, 1.0)
    sum(block["w"].sum() for block in merged["blocks"]).backward()
    return all(tensor.grad is not None and bool(tensor.grad.any()) for tensor in leaves)


@holds("merge_lora", "Adapters of another number of blocks are refused.")
def other_blocks(merge_lora, params, adapters, alpha):
    return refused(merge_lora, params, [*adapters, {}], alpha) and refused(merge_lora, params, [], alpha)


# tuning_costs


@holds("tuning_costs", "Python ints; all numbers are trained with full, those of one block with last.")
def trained_numbers(tuning_costs, params, method, names=(), rank=0):
    larger = params["blocks"][-1] | {"one more": params["embed"]}
    params = params | {"blocks": [*params["blocks"], larger]}
    blocks = [sum(t.numel() for t in block.values()) for block in params["blocks"]]
    full, last = (tuning_costs(params, way) for way in ("full", "last"))
    is_all = full["trained"] == params["embed"].numel() + sum(blocks)
    is_last = last["trained"] == blocks[-1]
    kinds = {type(number) for number in [*full.values(), *last.values()]}
    return is_all and is_last and kinds == {int}


@holds("tuning_costs", "Weights and gradients have the dtype of the weights, the averages eight bytes a number.")
def bytes_of_numbers(tuning_costs, params, method, names=(), rank=0):
    half = params | {
        "embed": params["embed"].half(),
        "blocks": [{key: t.half() for key, t in block.items()} for block in params["blocks"]],
    }
    wide, narrow = (tuning_costs(own, method, names, rank) for own in (params, half))
    return wide["optimizer"] == narrow["optimizer"] == 8 * wide["trained"] and all(
        wide[name] == 4 * narrow[name] for name in ("weights", "gradients")
    )


@holds("tuning_costs", "Only adapters come to the weights; gradients are of what is trained.")
def weights_and_gradients(tuning_costs, params, method, names=(), rank=0):
    full, last = tuning_costs(params, "full"), tuning_costs(params, "last")
    lora = tuning_costs(params, "lora", ["w"], 3)
    return (
        full["gradients"] == full["weights"] == last["weights"]
        and last["gradients"] * full["trained"] == full["gradients"] * last["trained"]
        and lora["weights"] - full["weights"] == lora["gradients"]
        and lora["gradients"] * full["trained"] == full["gradients"] * lora["trained"]
    )


@holds("tuning_costs", "Adapters grow with the rank, and by the rank for each row or column more.")
def numbers_of_adapters(tuning_costs, params, method, names=(), rank=0):
    def trained(rows, columns, own_rank):
        block = {"w": torch.zeros(rows, columns), "v": torch.zeros(2, 2)}
        small = {"embed": torch.zeros(3, 2), "blocks": [block] * len(params["blocks"])}
        return tuning_costs(small, "lora", ["w"], own_rank)["trained"]

    blocks = len(params["blocks"])
    one, more = trained(4, 5, 1), [trained(5, 5, 3), trained(4, 6, 3)]
    return trained(4, 5, 3) == 3 * one and more == [3 * one + 3 * blocks] * 2


@holds("tuning_costs", "Adapters of two matrices are those of each.")
def names_add_up(tuning_costs, params, method, names=(), rank=0):
    numbers = [tuning_costs(params, "lora", own, 2)["trained"] for own in (["w", "v"], ["w"], ["v"])]
    return numbers[0] == numbers[1] + numbers[2]


@holds("tuning_costs", "Another method is refused.")
def strange_methods(tuning_costs, params, method, names=(), rank=0):
    return refused(tuning_costs, params, "first") and refused(tuning_costs, params, "", names, rank)


# distinct_ngrams


@holds("distinct_ngrams", "Other names for the tokens change nothing, nor does the other direction.")
def names_do_not_matter(distinct_ngrams, ids, n):
    expected = distinct_ngrams(ids, n)
    names = torch.tensor([111, 1, 11])  # one behind the other they look alike
    return [distinct_ngrams(names[ids], n), distinct_ngrams(ids.flip(1), n)], [expected, expected]


@holds("distinct_ngrams", "Where all tokens differ the share is 1, and so it is for runs as long as the text.")
def nothing_repeats(distinct_ngrams, ids, n):
    rows, length = ids.shape
    counting = torch.arange(rows * length).view(rows, length)
    ones = torch.ones(rows).double()
    return [distinct_ngrams(counting, n), distinct_ngrams(ids, length)], [ones, ones]


@holds("distinct_ngrams", "A text of p words in turn has p different runs among all.")
def words_in_turn(distinct_ngrams, ids, n):
    answers = [float(distinct_ngrams((torch.arange(20) % p)[None], n)[0]) for p in (1, 2, 3)]
    return answers, [p / (21 - n) for p in (1, 2, 3)]


@holds("distinct_ngrams", "Runs of no token, and of more than the text has, are refused.")
def strange_runs(distinct_ngrams, ids, n):
    return all(refused(distinct_ngrams, ids, number) for number in (0, ids.shape[1] + 1))


# accuracy_by_length


@holds("accuracy_by_length", "Lengths that occur, shortest first: ints, with floats of 1 for the targets themselves.")
def targets_are_right(accuracy_by_length, predicted, targets, lengths):
    table = accuracy_by_length(targets, targets, lengths)
    kinds = {(type(length), type(share)) for length, share in table}
    is_right = all(share == 1 for _, share in table)
    return kinds == {(int, float)} and is_right and [n for n, _ in table] == sorted(set(lengths.tolist()))


@holds("accuracy_by_length", "What stands behind the end of a sentence does not count.")
def behind_the_end(accuracy_by_length, predicted, targets, lengths):
    behind = torch.arange(targets.shape[1]) >= lengths[:, None]
    expected = accuracy_by_length(predicted, targets, lengths)
    answers = [
        accuracy_by_length(predicted.masked_fill(behind, 9), targets, lengths),
        accuracy_by_length(predicted.masked_fill(behind, 9), targets.masked_fill(behind, 9), lengths),
    ]
    return [list(map(list, table)) for table in answers], [list(map(list, expected))] * 2


@holds("accuracy_by_length", "The order of the sentences does not matter, nor that each is there twice.")
def other_order(accuracy_by_length, predicted, targets, lengths):
    expected = [list(row) for row in accuracy_by_length(predicted, targets, lengths)]
    answers = []
    for rows in (torch.arange(len(lengths)).flip(0), torch.arange(len(lengths)).repeat(2)):
        table = accuracy_by_length(predicted[rows], targets[rows], lengths[rows])
        answers.append([list(row) for row in table])
    return answers, [expected, expected]


@holds("accuracy_by_length", "One wrong word costs its part of all words of that length.")
def one_wrong_word(accuracy_by_length, predicted, targets, lengths):
    wrong = targets.clone()
    wrong[-1, 0] += 1
    length = int(lengths[-1])
    words = length * int((lengths == length).sum())
    table = dict(accuracy_by_length(wrong, targets, lengths))
    expected = {n: 1 - 1 / words if n == length else 1.0 for n in table}
    return [table[n] for n in table], [expected[n] for n in table]


@holds("accuracy_by_length", "Other shapes, missing lengths, and lengths of 0 or above T, are refused.")
def strange_lengths(accuracy_by_length, predicted, targets, lengths):
    wide = torch.cat([predicted, predicted[:, :1]], dim=1)
    short, long = lengths.clone(), lengths.clone()
    short[0], long[-1] = 0, targets.shape[1] + 1
    calls = (
        (wide, targets, lengths),
        (predicted, targets, lengths[1:]),
        (predicted, targets, short),
        (predicted, targets, long),
    )
    return all(refused(accuracy_by_length, *arguments) for arguments in calls)


# six_n_counterexample


@holds("six_n_counterexample", "A whole setup: tied, no learned positions, sizes from 1 to 10¹².")
def whole_setup(six_n_counterexample, factor, notebook):
    setup = six_n_counterexample(factor)
    sizes = ("vocab_size", "d_model", "num_layers", "num_heads", "num_kv_heads", "d_ff")
    numbers = [setup[name] for name in (*sizes, "context_length", "batch")]
    are_sizes = all(type(n) is int and 1 <= n <= 10**12 for n in numbers)
    is_allowed = setup["tied"] is True and setup["positions"] in ("none", "rotary")
    return are_sizes and is_allowed and set(setup) == set(notebook["SMALL"])


@holds("six_n_counterexample", "A step costs at least factor times what the rule says, for larger factors too.")
def costs_enough(six_n_counterexample, factor, notebook):
    for asked in (factor, 10 * factor):
        setup = six_n_counterexample(asked)
        d, d_ff = setup["d_model"], setup["d_ff"]
        narrow = d // setup["num_heads"] * setup["num_kv_heads"]
        matrices = [(d, d), (d, narrow), (d, narrow), (d, d), (d, d_ff), (d_ff, d)]
        if setup["activation"] == "swiglu":
            matrices.append((d, d_ff))
        numbers = setup["num_layers"] * sum(n * m for n, m in matrices)
        tokens_a_step = setup["batch"] * setup["context_length"]
        rule = 6 * (numbers + setup["vocab_size"] * d) * tokens_a_step
        if notebook["training_flops"](setup) < asked * rule:
            return False
    return True
