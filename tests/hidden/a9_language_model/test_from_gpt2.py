"""from_gpt2: names, fused columns and nothing transposed; what does not fit is refused."""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    call_twice,
    config,
    points,
    randn,
)

D, F, V, CONTEXT = 4, 6, 7, 5


def _sizes(layers=2, **changes):
    sizes = {
        "vocab_size": V,
        "d_model": D,
        "num_layers": layers,
        "num_heads": 2,
        "d_ff": F,
        "context_length": CONTEXT,
    }
    return config(**{**sizes, **changes})


def _file(layers=2, prefix=""):
    """A state dict in the published layout, all numbers different."""
    shapes = {
        "wte.weight": (V, D),
        "wpe.weight": (CONTEXT, D),
        "ln_f.weight": (D,),
        "ln_f.bias": (D,),
    }
    for n in range(layers):
        shapes |= {
            f"h.{n}.{norm}.{part}": (D,)
            for norm in ("ln_1", "ln_2")
            for part in ("weight", "bias")
        }
        for name, rows, columns in (
            ("attn.c_attn", D, 3 * D), ("attn.c_proj", D, D), ("mlp.c_fc", D, F), ("mlp.c_proj", F,
            D),
        ):  # fmt: skip
            shapes |= {
                f"h.{n}.{name}.weight": (rows, columns),
                f"h.{n}.{name}.bias": (columns,),
            }
    return {prefix + name: randn(*shape) for name, shape in shapes.items()}


def _params(student, file, sizes):
    params = student.from_gpt2(file, sizes)
    assert isinstance(params, dict), (
        f"from_gpt2 should return a dict, and returns {type(params).__name__}."
    )
    absent = {"embed", "positions", "blocks", "lnf_gamma", "lnf_beta"} - params.keys()
    assert not absent, f"params have no {min(absent)}."
    assert_equal(len(params["blocks"]), sizes.num_layers, what="the number of blocks")
    return params


def _block(params, n, *names):
    block = params["blocks"][n]
    absent = [name for name in names if name not in block]
    assert not absent, f"block {n} has no {absent[0]}."
    return [block[name] for name in names]


@points(0.75)
def test_the_ends_of_the_model(student):
    """wte is the embedding, wpe the positions, ln_f the last norm. There is no head besides."""
    file, sizes = _file(1), _sizes(1)
    params = call_twice(lambda *given: _params(student, *given), file, sizes)
    for mine, name in (
        ("embed", "wte.weight"),
        ("positions", "wpe.weight"),
        ("lnf_gamma", "ln_f.weight"),
        ("lnf_beta", "ln_f.bias"),
    ):
        assert_close(params[mine], file[name], what=mine)


@points(1.25)
def test_the_fused_columns_are_queries_then_keys_then_values(student):
    """Columns 0 to 3, 4 to 7 and 8 to 11 of twelve, in every block."""
    file, sizes = _file(), _sizes()
    params = _params(student, file, sizes)
    for n in range(2):
        fused = file[f"h.{n}.attn.c_attn.weight"]
        for place, (name, w) in enumerate(
            zip("qkv", _block(params, n, "w_q", "w_k", "w_v"), strict=True)
        ):
            assert_close(
                w,
                fused[:, place * D : (place + 1) * D],
                same_dtype=False,
                what=f"w_{name} of block {n}",
            )


@points(0.75)
def test_the_fused_biases_are_cut_like_the_columns(student):
    """Numbers 0 to 3, 4 to 7 and 8 to 11 of twelve."""
    file, sizes = _file(), _sizes()
    params = _params(student, file, sizes)
    for n in range(2):
        fused = file[f"h.{n}.attn.c_attn.bias"]
        for place, (name, b) in enumerate(
            zip("qkv", _block(params, n, "b_q", "b_k", "b_v"), strict=True)
        ):
            assert_close(
                b,
                fused[place * D : (place + 1) * D],
                same_dtype=False,
                what=f"b_{name} of block {n}",
            )


@points(0.75)
def test_blocks_are_in_the_order_of_their_numbers(student):
    """Eleven blocks: block 10 comes after block 9, and not after block 1."""
    file, sizes = _file(11), _sizes(11)
    params = _params(student, file, sizes)
    for n in range(11):
        b = _block(params, n, "b2")[0]
        assert_close(
            b, file[f"h.{n}.mlp.c_proj.bias"], same_dtype=False, what=f"b2 of block {n}"
        )


@points(1)
def test_square_matrices_are_not_transposed(student):
    """Conv1D stores [in, out]. The output of the attention is [D, D], and looks right both ways."""
    file, sizes = _file(), _sizes()
    params = _params(student, file, sizes)
    for n in range(2):
        w, b = _block(params, n, "w_o", "b_o")
        assert_close(
            w,
            file[f"h.{n}.attn.c_proj.weight"],
            same_dtype=False,
            what=f"w_o of block {n}",
        )
        assert_close(
            b,
            file[f"h.{n}.attn.c_proj.bias"],
            same_dtype=False,
            what=f"b_o of block {n}",
        )


@points(1)
def test_the_norms_and_the_mlp_of_each_block(student):
    """ln_1 and ln_2, c_fc and the c_proj of the MLP; block 1 has its own. The matrices lie column
    by column in memory, which changes no number of them.
    """
    file, sizes = _file(), _sizes()
    file = {
        name: t.mT.contiguous().mT if t.dim() == 2 else t for name, t in file.items()
    }
    params = _params(student, file, sizes)
    names = {
        "ln1_gamma": "ln_1.weight", "ln1_beta": "ln_1.bias", "ln2_gamma": "ln_2.weight",
        "ln2_beta": "ln_2.bias",
        "w1": "mlp.c_fc.weight", "b1": "mlp.c_fc.bias", "w2": "mlp.c_proj.weight",
        "b2": "mlp.c_proj.bias",
    }  # fmt: skip
    for n in range(2):
        for mine, theirs in names.items():
            its = _block(params, n, mine)[0]
            assert_close(
                its,
                file[f"h.{n}.{theirs}"],
                same_dtype=False,
                what=f"{mine} of block {n}",
            )


@points(0.75)
def test_names_may_begin_with_transformer(student, reference):
    """The same file with "transformer." in front of all names but that of the head."""
    file, sizes = _file(1, prefix="transformer."), _sizes(1)
    file["lm_head.weight"] = file["transformer.wte.weight"].clone()
    params, expected = _params(student, file, sizes), reference.from_gpt2(file, sizes)
    assert_close(params["embed"], expected["embed"], same_dtype=False, what="embed")
    assert_close(
        _block(params, 0, "w_v")[0],
        expected["blocks"][0]["w_v"],
        same_dtype=False,
        what="w_v of block 0",
    )


@points(0.75)
def test_the_model_computes_the_same_with_what_came_out(student, reference):
    """float32, two blocks, in the answer key's language_model. Masks in the file, and other
    entries, mean nothing.
    """
    file, sizes = {name: tensor.float() for name, tensor in _file().items()}, _sizes()
    expected = reference.language_model(
        torch.tensor([[1, 6, 0, 3]]), reference.from_gpt2(file, sizes), sizes
    )
    file |= {
        f"h.{n}.attn.bias": torch.ones(1, 1, CONTEXT, CONTEXT).tril() for n in range(2)
    }
    file |= {f"h.{n}.attn.masked_bias": torch.tensor(-1e4) for n in range(2)}
    params = student.from_gpt2(file, sizes)
    names = list(reference.from_gpt2(file, sizes)["blocks"][0])
    assert isinstance(params, dict), (
        f"from_gpt2 should return a dict, and returns {type(params).__name__}."
    )
    assert_equal(len(params.get("blocks", ())), 2, what="the number of blocks")
    for n in range(2):
        _block(params, n, *names)
    logits = reference.language_model(torch.tensor([[1, 6, 0, 3]]), params, sizes)
    assert_close(
        logits, expected, atol=1e-4, rtol=1e-4, what="the logits with the params"
    )


@points(0.5)
def test_no_tensor_is_cut(student):
    """Each tensor of the table in turn is longer by one, along each of its axes."""
    file = _file(1)
    _params(student, file, _sizes(1))
    for name, tensor in file.items():
        for axis, size in enumerate(tensor.shape):
            longer = torch.cat([tensor, tensor.narrow(axis, 0, 1)], dim=axis)
            other = file | {name: longer}
            assert_refused(student.from_gpt2, other, _sizes(1), sizes=(size + 1,))


@points(0.75)
def test_a_missing_tensor_and_a_wrong_shape_are_refused(student):
    """Without the bias of the last norm, or a block; with a vocabulary of 8 for a table of 7, a
    square matrix 4 by 6, and a bias of 8 instead of 6.
    """
    file = _file(1)
    _params(student, file, _sizes(1))
    for gone in ("ln_f.bias", "h.0.attn.c_proj.bias", "wpe.weight"):
        assert_refused(
            student.from_gpt2,
            {name: t for name, t in file.items() if name != gone},
            _sizes(1),
            naming=gone,
        )
    assert_refused(student.from_gpt2, file, _sizes(2))
    for name, size in (("ln_f.weight", 5), ("h.0.mlp.c_fc.bias", 8)):
        assert_refused(
            student.from_gpt2, file | {name: randn(size)}, _sizes(1), sizes=(size,)
        )
    assert_refused(student.from_gpt2, file, _sizes(1, vocab_size=8), sizes=(7, 4))
    assert_refused(
        student.from_gpt2,
        file | {"h.0.attn.c_proj.weight": randn(D, F)},
        _sizes(1),
        sizes=(4, 6),
    )
    assert_refused(
        student.from_gpt2,
        file | {"h.0.attn.c_attn.weight": randn(3 * D, D)},
        _sizes(1),
        sizes=(12, 4),
    )


@points(0.75)
def test_a_file_with_more_blocks_is_refused(student):
    """Two blocks for a config of one: the first alone would be another model. And of block 1 each
    tensor alone.
    """
    file = _file(2)
    _params(student, file, _sizes(2))
    for name, tensor in file.items():
        if name.startswith("h.1."):
            other = {name: tensor} | _file(1)
            assert_refused(student.from_gpt2, other, _sizes(1), sizes=(1,))
    assert_refused(student.from_gpt2, _file(2), _sizes(1), sizes=(1,))
    assert_refused(student.from_gpt2, _file(2, "transformer."), _sizes(1), sizes=(1,))


@points(1)
def test_a_head_of_its_own_is_refused(student):
    """lm_head.weight that is not wte.weight: in one number, by very little, in the order of its
    rows, or in its shape; with and without the prefix. One that is equal is fine.
    """
    for prefix in ("", "transformer."):
        file = _file(1, prefix)
        head = file[f"{prefix}wte.weight"].clone()
        _params(student, file | {"lm_head.weight": head}, _sizes(1))
        other = head.clone()
        other[3, 1] += 1.0
        for own in (
            other,
            head * (1 + 1e-6),
            head.flip(0),
            torch.cat([head, head[:1]]),
        ):
            assert_refused(student.from_gpt2, file | {"lm_head.weight": own}, _sizes(1))
