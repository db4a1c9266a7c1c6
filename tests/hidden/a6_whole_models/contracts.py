"""What the docstrings of assignment 6 allow."""

from types import SimpleNamespace

import torch

from autograder.suite.contracts import (
    FLOATS,
    HALF,
    calls,
    choice,
    config_of,
    contract,
    flag,
    maybe,
    size,
    tensor,
    tokens,
    whole,
)

TAME = ("normal", "whole")
SMALL = {
    "B": (1, 3),
    "H": (1, 3),
    "d": (1, 3),
    "D": (2, 6),
    "F": (1, 5),
    "V": (2, 7),
    "V_s": (2, 7),
    "N": (1, 5),
    "M": (1, 5),
    "N_s": (1, 4),
    "N_t": (1, 4),
    "C": (1, 3),
    "P": (1, 3),
    "rows": (1, 3),
    "columns": (1, 3),
    "classes": (2, 4),
}
"""Sizes of a model that answers in a moment."""
LONGEST = 6
"""Places of a table of positions."""
DEEP = {"float32": 2e-3}
"""Rounding grows with the depth of a model."""

contract(
    "count_parameters",
    calls(
        config=config_of(
            vocab_size=whole(1, 50),
            d_model=whole(1, 20),
            num_layers=whole(0, 4),
            num_heads=whole(1, 5),
            d_head=whole(1, 9),
            d_ff=whole(1, 30),
            context_length=whole(1, 30),
            num_encoder_layers=whole(0, 3),
            tied=flag(),
            biases=flag(),
            norms=flag(),
            learned_positions=flag(),
            final_norm=flag(),
            patch=choice(0),
        )
    ),
)


def _block(draw, cross=False):
    """The weights of one block; with cross those of attention to another text too."""
    inner = draw.size("H*d")
    shapes = dict.fromkeys(("w_q", "w_k", "w_v"), ("D", inner)) | {"w_o": (inner, "D")}
    norms = ["ln1", "ln2"]
    if cross:
        shapes |= dict.fromkeys(("c_q", "c_k", "c_v"), ("D", inner)) | {
            "c_o": (inner, "D")
        }
        norms.append("ln3")
    shapes |= {"w1": ("D", "F"), "b1": ("F",), "w2": ("F", "D"), "b2": ("D",)}
    for norm in norms:
        shapes |= {f"{norm}_gamma": ("D",), f"{norm}_beta": ("D",)}
    return {key: draw(tensor(*axes, values=TAME), key) for key, axes in shapes.items()}


def _decoder(draw):
    """Parameters and sizes of a decoder-only model, tied or with an unembedding of its own."""
    layers = draw.whole(1, 2)
    params = {
        "embed": draw(tensor("V", "D", values=TAME), "embed"),
        "positions": draw(tensor(LONGEST, "D", values=TAME), "positions"),
        "blocks": [_block(draw) for _ in range(layers)],
        "lnf_gamma": draw(tensor("D", values=TAME), "lnf_gamma"),
        "lnf_beta": draw(tensor("D", values=TAME), "lnf_beta"),
    }
    if draw.choose("unembedding", ("tied", "its own")) == "its own":
        params["unembed"] = draw(tensor("D", "V", values=TAME), "unembed")
    config = SimpleNamespace(
        vocab_size=draw.size("V"),
        d_model=draw.size("D"),
        num_layers=layers,
        num_heads=draw.size("H"),
        d_head=draw.size("d"),
        d_ff=draw.size("F"),
        context_length=LONGEST,
        num_encoder_layers=0,
        tied="unembed" not in params,
    )
    return params, config


def texts_through_a_decoder(draw, play, name):
    """A batch of texts, up to the longest."""
    params, config = _decoder(draw)
    play.call(name, draw(tokens("B", "N", below="V"), "ids"), params, config)


contract(
    "decoder_lm",
    texts_through_a_decoder,
    sizes={**SMALL, "N": (1, LONGEST)},
    tolerance=DEEP,
)


def logits_and_texts(draw, play, name):
    """Some targets are ignored, by the usual number or by another one."""
    ids = draw(tokens("B", "N", below="V"), "ids")
    ignored = draw.choose("ignore_index", (None, -100, 0, -1))
    if ignored is not None or draw.happens(50):
        index = -100 if ignored is None else ignored
        places = torch.rand(ids.shape, generator=draw.generator()) < 0.4
        ids = ids.masked_fill(places, index)
    settings = {} if ignored is None else {"ignore_index": ignored}
    play.call(name, draw(tensor("B", "N", "V"), "logits"), ids, **settings)


contract(
    "lm_loss",
    logits_and_texts,
    sizes={"V": (1, 7), "N": (1, 6), "B": (1, 3)},
    dtypes=HALF,
    gradients=True,
)


def steps_on_texts(draw, play, name):
    """A step of 0 too."""
    params, config = _decoder(draw)
    ids = draw(tokens("B", "N", below="V"), "ids")
    play.call(name, params, ids, config, draw.choose("lr", (0.0, 0.125, 1.0)))


def _has_no_size_of_one(params, ids, config, lr):
    """No model has weights of size 1, or no blocks."""
    widths = (
        config.vocab_size,
        config.d_model,
        config.d_ff,
        config.num_heads * config.d_head,
    )
    return min(widths) > 1 and len(params["blocks"]) > 0


contract(
    "train_step",
    steps_on_texts,
    sizes={**SMALL, "N": (1, LONGEST), "d": (2, 3), "F": (2, 5)},
    dtypes=("float64",),
    allowed_if=_has_no_size_of_one,
)


def two_texts(draw, play, name):
    """A word of one text and a word of another, which may be longer."""
    params, config = _decoder(draw)
    first = draw(tokens("N", below="V"), "first")
    second = draw(tokens("M", below="V"), "second")
    i, j = draw.whole(0, len(first) - 1), draw.whole(0, len(second) - 1)
    play.call(name, first, i, second, j, params, config)


contract("similarity_by_layer", two_texts, sizes=SMALL, tolerance=DEEP)

contract(
    "filtered_probabilities",
    calls(
        logits=tensor(
            "B", "V", values=tuple(style for style in FLOATS if style != "zeros")
        ),
        temperature=choice(1.0, 0.0, 0.5, 2.0, 10.0),
        top_k=maybe(choice(None, 1, 2, 3, 50)),
        top_p=maybe(choice(None, 1.0, 0.9, 0.5, 0.1)),
    ),
    dtypes=HALF,
    equals="free",
)


def greedy_texts(draw, play, name):
    """Temperature 0: no dice. Prompts may be longer than the context."""
    params, config = _decoder(draw)
    prompt = draw(tokens("B", "N", below="V"), "prompt")
    settings = {"temperature": 0.0}
    if draw.choose("eos_id", ("left out", "there")) == "there":
        settings["eos_id"] = draw.whole(0, draw.size("V") - 1)
    if draw.choose("top_k", ("left out", "there")) == "there":
        settings["top_k"] = draw.whole(1, draw.size("V") + 1)
    play.call(name, params, prompt, draw.whole(0, 5), config, **settings)


contract(
    "generate",
    greedy_texts,
    sizes={**SMALL, "N": (1, LONGEST + 3)},
    dtypes=("float64",),
    equals="free",
)


def texts_by_dice(draw, play, name):
    """Any text is right that begins with the prompt and has tokens alone."""
    params, config = _decoder(draw)
    prompt = draw(tokens("B", "N", below="V"), "prompt")
    settings = {}
    options = {
        "temperature": (0.5, 2.0),
        "top_k": (1, 2, 20),
        "top_p": (0.3, 1.0),
        "seed": (1, 7),
    }
    for key, values in options.items():
        if draw.choose(f"{key} is", ("left out", "there")) == "there":
            settings[key] = draw.choose(key, values)
    play.call(name, params, prompt, draw.whole(0, 5), config, **settings)


def _continues(answer, right, arguments):
    _, prompt, num_new, config = arguments
    width = prompt.shape[1] + num_new
    if not isinstance(answer, torch.Tensor) or answer.shape != (len(prompt), width):
        return False
    are_ids = bool(((answer >= 0) & (answer < config.vocab_size)).all())
    begins = torch.equal(answer[:, : prompt.shape[1]], prompt)
    return answer.dtype == torch.int64 and are_ids and begins


contract(
    "generate",
    texts_by_dice,
    sizes={**SMALL, "N": (1, LONGEST + 3)},
    right_if=_continues,
)


def _translator(draw):
    """Parameters and sizes of an encoder–decoder."""
    encoders, decoders = draw.whole(1, 2), draw.whole(1, 2)
    params = {
        "src_embed": draw(tensor("V_s", "D", values=TAME), "src_embed"),
        "tgt_embed": draw(tensor("V", "D", values=TAME), "tgt_embed"),
        "encoder": [_block(draw) for _ in range(encoders)],
        "decoder": [_block(draw, cross=True) for _ in range(decoders)],
        "unembed": draw(tensor("D", "V", values=TAME), "unembed"),
    }
    config = SimpleNamespace(
        vocab_size=draw.size("V"),
        d_model=draw.size("D"),
        num_layers=decoders,
        num_heads=draw.size("H"),
        d_head=draw.size("d"),
        d_ff=draw.size("F"),
        context_length=LONGEST,
        num_encoder_layers=encoders,
    )
    return params, config


def _sources(draw):
    """Source texts and a mask of real tokens: none, of two axes or of three."""
    src = draw(tokens("B", "N_s", below="V_s"), "src")
    kind = draw.choose("src_mask", ("None", "two axes", "three axes"))
    if kind == "None":
        return src, None
    lengths = torch.tensor([[draw.whole(1, src.shape[1])] for _ in range(len(src))])
    real = torch.arange(src.shape[1]) < lengths
    return src, real if kind == "two axes" else real.unsqueeze(1)


def sources_and_targets(draw, play, name):
    """Rows of the source may be padded."""
    params, config = _translator(draw)
    src, real = _sources(draw)
    play.call(
        name, src, draw(tokens("B", "N_t", below="V"), "tgt_in"), real, params, config
    )


contract("encoder_decoder", sources_and_targets, sizes=SMALL, tolerance=DEEP)

contract(
    "shift_right",
    calls(targets=tokens("B", "N_t", below="V"), start_id=whole(0, 9)),
    sizes={"V": (1, 9)},
)


def greedy_translations(draw, play, name):
    """A row that has ended goes on with the end."""
    params, config = _translator(draw)
    src, real = _sources(draw)
    last = draw.size("V") - 1
    play.call(
        name,
        src,
        real,
        params,
        config,
        draw.whole(0, last),
        draw.whole(0, last),
        draw.whole(0, 4),
    )


contract(
    "greedy_translate",
    greedy_translations,
    sizes=SMALL,
    dtypes=("float64",),
    equals="free",
)

contract(
    "patchify",
    calls(images=tensor("B", "C", "P*rows", "P*columns"), patch=size("P")),
    sizes=SMALL,
    dtypes=HALF,
)

contract(
    "patch_conv_weight",
    calls(w=tensor("C*P*P", "D"), channels=size("C"), patch=size("P")),
    sizes=SMALL,
    dtypes=HALF,
    gradients=True,
)


def _vision_model(draw):
    """Parameters and sizes of a vision transformer."""
    layers = draw.whole(1, 2)
    params = {
        "w_patch": draw(tensor("C*P*P", "D", values=TAME), "w_patch"),
        "b_patch": draw(tensor("D", values=TAME), "b_patch"),
        "positions": draw(tensor("rows*columns", "D", values=TAME), "positions"),
        "blocks": [_block(draw) for _ in range(layers)],
        "lnf_gamma": draw(tensor("D", values=TAME), "lnf_gamma"),
        "lnf_beta": draw(tensor("D", values=TAME), "lnf_beta"),
        "w_head": draw(tensor("D", "classes", values=TAME), "w_head"),
        "b_head": draw(tensor("classes", values=TAME), "b_head"),
    }
    config = SimpleNamespace(
        d_model=draw.size("D"),
        num_layers=layers,
        num_heads=draw.size("H"),
        d_head=draw.size("d"),
        d_ff=draw.size("F"),
        patch=draw.size("P"),
    )
    return params, config


def images_through_a_model(draw, play, name):
    """Images that need not be square."""
    params, config = _vision_model(draw)
    images = draw(tensor("B", "C", "P*rows", "P*columns", values=TAME), "images")
    play.call(name, images, params, config)


contract("vit_logits", images_through_a_model, sizes=SMALL, tolerance=DEEP)

contract(
    "attention_distance",
    calls(
        weights=tensor(
            "...", "rows*columns", "rows*columns", values=("distributions",)
        ),
        columns=size("columns"),
    ),
    sizes=SMALL,
)


def trainings_of_some_groups(draw, play, name):
    """Any groups of parameters, at any rates; the others are frozen."""
    params, config = _vision_model(draw)
    images = draw(tensor("B", "C", "P*rows", "P*columns", values=TAME), "images")
    classes = draw.whole(1, 4)
    labels = torch.tensor([draw.whole(0, classes - 1) for _ in range(draw.size("B"))])
    rates = {
        key: draw.choose("rate", (0.125, 0.5, 0.0))
        for key in params
        if draw.happens(35)
    }
    rates = rates or {"w_head": 0.5}
    play.call(name, params, images, labels, classes, config, rates, draw.whole(0, 2))


contract("fine_tune", trainings_of_some_groups, sizes=SMALL, dtypes=("float64",))


def _total(encoders, decoders, d_model, vocab_size):
    """Parameters without biases, norms and learned positions, with a tied embedding."""
    attention = 4 * d_model * d_model
    mlp = 8 * d_model * d_model
    cross = attention if encoders else 0
    return (
        encoders * (attention + mlp)
        + decoders * (attention + cross + mlp)
        + vocab_size * d_model
    )


def _explains(answer, right, arguments):
    """Any model that gives the claim is right; None only where none does."""
    millions, num_blocks, d_model, least, most = arguments
    if answer is None or right is None:
        return answer is right
    encoders, decoders, vocab_size = answer
    is_allowed = encoders >= 0 and decoders >= 1 and encoders + decoders == num_blocks
    is_plausible = least <= vocab_size <= most
    total = _total(encoders, decoders, d_model, vocab_size)
    return is_allowed and is_plausible and round(total / 1e6) == millions


contract(
    "explain_model_size",
    calls(
        millions=whole(1, 400),
        num_blocks=whole(1, 24),
        d_model=choice(128, 512, 768, 1024),
        min_vocab=choice(1000, 30_000),
        max_vocab=choice(32_000, 60_000),
    ),
    right_if=_explains,
)
