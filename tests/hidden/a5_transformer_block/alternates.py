"""Right answers to assignment 5 that are really written differently from the answer key."""

from autograder.suite import alternate


def _refuse_unless(fits, *values):
    if not fits:
        shown = ", ".join(
            str(tuple(v.shape)) if isinstance(v, torch.Tensor) else str(v)
            for v in values
        )
        raise ValueError(f"sizes do not match: {shown}")


# ----------------------------------------------------------------------------------------------
# layer_norm


def _norm_fits(x, *weights):
    return all(w.shape == x.shape[-1:] for w in weights)


@alternate("layer_norm")
def one_pass_with_var_mean(x, gamma, beta, eps=1e-5):
    _refuse_unless(_norm_fits(x, gamma, beta), x, gamma, beta)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    variance, mean = torch.var_mean(wide, dim=-1, correction=0, keepdim=True)
    y = torch.addcmul(
        beta.to(wide.dtype),
        (wide - mean) * torch.rsqrt(variance + eps),
        gamma.to(wide.dtype),
    )
    return y.to(x.dtype)


@alternate("layer_norm")
def norm_token_by_token(x, gamma, beta, eps=1e-5):
    _refuse_unless(_norm_fits(x, gamma, beta), x, gamma, beta)
    d = x.shape[-1]
    rows = []
    for token in x.reshape(-1, d):
        token = (
            token.float() if token.dtype in (torch.float16, torch.bfloat16) else token
        )
        mean = token.sum() / d
        deviation = token - mean
        rows.append(
            (deviation * ((deviation @ deviation) / d + eps) ** -0.5 * gamma + beta).to(
                x.dtype
            )
        )
    return torch.stack(rows).reshape(x.shape)


@alternate("layer_norm")
def norm_by_a_centring_matrix(x, gamma, beta, eps=1e-5):
    _refuse_unless(_norm_fits(x, gamma, beta), x, gamma, beta)
    d = x.shape[-1]
    wide = x.double()
    centring = torch.eye(d, dtype=torch.float64) - 1 / d
    centred = torch.einsum("...i,ij->...j", wide, centring)
    variance = torch.einsum("...i,...i->...", centred, centred) / d
    return (centred / (variance + eps).sqrt()[..., None] * gamma + beta).to(x.dtype)


@alternate("layer_norm")
def norm_in_float32(x, gamma, beta, eps=1e-5):
    _refuse_unless(_norm_fits(x, gamma, beta), x, gamma, beta)
    t = x.float()
    t = t - t.mean(-1, keepdim=True)
    t = t - t.mean(-1, keepdim=True)
    return (
        t / (t.square().mean(-1, keepdim=True) + eps).sqrt() * gamma.float()
        + beta.float()
    ).to(x.dtype)


# -------------------------------------------------------------------------------------
# layer_norm_backward


def _backward_fits(dy, x, gamma):
    return dy.shape == x.shape and gamma.shape == x.shape[-1:]


@alternate("layer_norm_backward")
def backward_step_by_step(dy, x, gamma, eps=1e-5):
    _refuse_unless(_backward_fits(dy, x, gamma), dy, x, gamma)
    wide = torch.promote_types(x.dtype, torch.float32)
    u, t, c = dy.to(wide), x.to(wide), gamma.to(wide)
    d = x.shape[-1]
    centred = t - t.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    std = (variance + eps).sqrt()
    dxhat = u * c
    dvariance = (dxhat * centred).sum(-1, keepdim=True) * -0.5 * std**-3
    dmean = -(dxhat / std).sum(-1, keepdim=True) + dvariance * -2 * centred.mean(
        -1, keepdim=True
    )
    dx = dxhat / std + dvariance * 2 * centred / d + dmean / d
    axes = tuple(range(x.dim() - 1))
    dgamma, dbeta = u * centred / std, u
    if axes:
        dgamma, dbeta = dgamma.sum(axes), dbeta.sum(axes)
    return dx.to(x.dtype), dgamma.to(x.dtype), dbeta.to(x.dtype)


@alternate("layer_norm_backward")
def backward_by_the_jacobian(dy, x, gamma, eps=1e-5):
    _refuse_unless(_backward_fits(dy, x, gamma), dy, x, gamma)
    d = x.shape[-1]
    rows, dgamma, dbeta = [], torch.zeros(d).double(), torch.zeros(d).double()
    for u, t in zip(dy.reshape(-1, d).double(), x.reshape(-1, d).double()):
        centred = t - t.mean()
        s = (centred.dot(centred) / d + eps) ** -0.5
        xhat = centred * s
        jacobian = s * (torch.eye(d) - 1 / d - torch.outer(xhat, xhat) / d)
        rows.append((u * gamma) @ jacobian)
        dgamma = dgamma + u * xhat
        dbeta = dbeta + u
    return (
        torch.stack(rows).reshape(x.shape).to(x.dtype),
        dgamma.to(x.dtype),
        dbeta.to(x.dtype),
    )


@alternate("layer_norm_backward")
def backward_by_einsum(dy, x, gamma, eps=1e-5):
    _refuse_unless(_backward_fits(dy, x, gamma), dy, x, gamma)
    wide, d = torch.promote_types(x.dtype, torch.float32), x.shape[-1]
    u, t = dy.to(wide), x.to(wide)
    variance, mean = torch.var_mean(t, dim=-1, correction=0, keepdim=True)
    s = torch.rsqrt(variance + eps)
    xhat = (t - mean) * s
    g = torch.einsum("...d,d->...d", u, gamma.to(wide))
    dx = (
        s
        / d
        * (
            d * g
            - g.sum(-1, keepdim=True)
            - xhat * torch.einsum("...d,...d->...", g, xhat)[..., None]
        )
    )
    return (
        dx.to(x.dtype),
        torch.einsum("...d,...d->d", u, xhat).to(x.dtype),
        u.flatten(0, -2).sum(0).to(x.dtype) if (u.dim() > 1) else u.to(x.dtype),
    )


@alternate("layer_norm_backward")
def backward_by_two_projections(dy, x, gamma, eps=1e-5):
    _refuse_unless(_backward_fits(dy, x, gamma), dy, x, gamma)
    t, g = x.double(), dy.double() * gamma.double()
    t = t - t.mean(-1, keepdim=True)
    std = (t.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    g = g - g.mean(-1, keepdim=True)  # orthogonal to (1, …, 1), as t is
    dx = (g - t * (g * t).mean(-1, keepdim=True) / std**2) / std
    tokens = (dy.double() * t / std).reshape(-1, x.shape[-1])
    return (
        dx.to(x.dtype),
        tokens.sum(0).to(x.dtype),
        dy.double().reshape(-1, x.shape[-1]).sum(0).to(x.dtype),
    )


# ------------------------------------------------------------------------------------------------
# rms_norm


@alternate("rms_norm")
def rms_by_rsqrt(x, gamma, eps=1e-6):
    _refuse_unless(_norm_fits(x, gamma), x, gamma)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (
        wide
        * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
        * gamma.to(wide.dtype)
    ).to(x.dtype)


@alternate("rms_norm")
def rms_by_the_vector_norm(x, gamma, eps=1e-6):
    _refuse_unless(_norm_fits(x, gamma), x, gamma)
    wide = x.double()
    length = torch.cat(
        [wide, wide.new_full((*x.shape[:-1], 1), math.sqrt(eps * x.shape[-1]))], -1
    )
    rms = torch.linalg.vector_norm(length, dim=-1, keepdim=True) / math.sqrt(
        x.shape[-1]
    )
    return (wide / rms * gamma).to(x.dtype)


@alternate("rms_norm")
def rms_by_einsum_in_float32(x, gamma, eps=1e-6):
    _refuse_unless(_norm_fits(x, gamma), x, gamma)
    t = x.float()
    mean_square = torch.einsum("...d,...d->...", t, t) / t.shape[-1]
    return (t * gamma.float() / (mean_square + eps).pow(0.5).unsqueeze(-1)).to(x.dtype)


# ----------------------------------------------------------------------------------------------
# batch_norm


@alternate("batch_norm")
def batch_norm_over_named_axes(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5
):
    _refuse_unless(
        _norm_fits(x, gamma, beta, running_mean, running_var),
        x,
        gamma,
        beta,
        running_mean,
        running_var,
    )
    if not training:
        scale = gamma * torch.rsqrt(running_var + eps)
        return (
            (x * scale + (beta - running_mean * scale)).to(x.dtype),
            running_mean.clone(),
            running_var.clone(),
        )
    _refuse_unless(x.numel() // x.shape[-1] > 1, f"{x.numel() // x.shape[-1]} token")
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    var, mean = torch.var_mean(wide, dim=tuple(range(x.dim() - 1)), correction=0)
    y = torch.addcmul(
        beta.to(wide.dtype),
        (wide - mean) * torch.rsqrt(var + eps),
        gamma.to(wide.dtype),
    )
    with torch.no_grad():
        estimate = torch.var(wide, dim=tuple(range(x.dim() - 1)))
        new_mean = running_mean.lerp(mean.to(running_mean.dtype), momentum)
        new_var = running_var.lerp(estimate.to(running_var.dtype), momentum)
    return y.to(x.dtype), new_mean, new_var


@alternate("batch_norm")
def batch_norm_feature_by_feature(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5
):
    _refuse_unless(
        _norm_fits(x, gamma, beta, running_mean, running_var),
        x,
        gamma,
        beta,
        running_mean,
        running_var,
    )
    columns, means, variances = [], [], []
    for j in range(x.shape[-1]):
        column = x[..., j].flatten().to(running_mean.dtype)
        t, mean, var = column.numel(), running_mean[j], running_var[j]
        _refuse_unless(t > 1 or not training, f"{t} token")
        means.append(mean)
        variances.append(var)
        if training:
            mean = column.sum() / t
            squares = ((column - mean) ** 2).sum()
            var = squares / t
            means[-1] = means[-1] - momentum * (means[-1] - mean.detach())
            variances[-1] = variances[-1] - momentum * (
                variances[-1] - squares.detach() / (t - 1)
            )
        columns.append((column - mean) / (var + eps) ** 0.5 * gamma[j] + beta[j])
    return (
        torch.stack(columns, dim=-1).reshape(x.shape).to(x.dtype),
        torch.stack(means),
        torch.stack(variances),
    )


@alternate("batch_norm")
def batch_norm_by_products(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5
):
    _refuse_unless(
        _norm_fits(x, gamma, beta, running_mean, running_var),
        x,
        gamma,
        beta,
        running_mean,
        running_var,
    )
    rows = x.double().reshape(-1, x.shape[-1])
    mean, var, kept = (
        running_mean.double(),
        running_var.double(),
        (running_mean, running_var),
    )
    if training:
        t = rows.shape[0]
        if t <= 1:
            raise ValueError(f"T = {t}")
        average = torch.full((1, t), 1 / t, dtype=torch.float64)
        mean = (average @ rows).squeeze(0)
        deviation = rows - mean
        var = (average @ deviation.square()).squeeze(0)
        seen = (mean.detach(), deviation.detach().square().sum(0) / (t - 1))
        kept = tuple(
            ((1 - momentum) * old + momentum * new).to(old.dtype)
            for old, new in zip(kept, seen)
        )
    y = (rows - mean) @ torch.diag(gamma.double() * (var + eps).pow(-0.5)) + beta
    return y.reshape(x.shape).to(x.dtype), *kept


# ----------------------------------------------------------------------------------------------------- mlp


def _mlp_fits(x, w1, b1, w2, b2):
    return x.shape[-1] == w1.shape[0] == w2.shape[1] == len(b2) and w1.shape[
        1
    ] == w2.shape[0] == len(b1)


def _refuse_activation(activation):
    if activation not in {"relu", "gelu"}:
        raise ValueError(f"unknown activation {activation}")


@alternate("mlp")
def mlp_by_linear(x, w1, b1, w2, b2, activation="relu"):
    _refuse_unless(_mlp_fits(x, w1, b1, w2, b2), x, w1, b1, w2, b2)
    _refuse_activation(activation)
    h = torch.nn.functional.linear(x, w1.T, b1)
    h = {"relu": torch.nn.functional.relu, "gelu": torch.nn.functional.gelu}[
        activation
    ](h)
    return torch.nn.functional.linear(h, w2.T, b2)


@alternate("mlp")
def mlp_by_einsum(x, w1, b1, w2, b2, activation="relu"):
    _refuse_activation(activation)
    _refuse_unless(_mlp_fits(x, w1, b1, w2, b2), x, w1, b1, w2, b2)
    h = torch.einsum("...d,df->...f", x, w1) + b1
    h = (
        h.clamp(min=0)
        if activation == "relu"
        else h * torch.distributions.Normal(0.0, 1.0).cdf(h)
    )
    return (torch.einsum("...f,fd->...d", h, w2) + b2).to(x.dtype)


@alternate("mlp")
def mlp_on_flat_tokens(x, w1, b1, w2, b2, activation="relu"):
    _refuse_unless(_mlp_fits(x, w1, b1, w2, b2), x, w1, b1, w2, b2)
    _refuse_activation(activation)
    tokens = x.reshape(-1, x.shape[-1])
    h = torch.addmm(b1, tokens, w1)
    h = (
        torch.where(h > 0, h, 0 * h)
        if activation == "relu"
        else h * torch.special.ndtr(h.float()).to(h.dtype)
    )
    return torch.addmm(b2, h, w2).reshape(x.shape)


@alternate("mlp")
def mlp_as_a_sum_over_hidden_units(x, w1, b1, w2, b2, activation="relu"):
    _refuse_unless(_mlp_fits(x, w1, b1, w2, b2), x, w1, b1, w2, b2)
    _refuse_activation(activation)
    y = torch.zeros_like(x) + b2
    for f in range(w1.shape[1]):
        z = (x * w1[:, f]).sum(-1, keepdim=True) + b1[f]
        z = z * (z > 0) if activation == "relu" else 0.5 * z * torch.erfc(-z / 2**0.5)
        y = y + z * w2[f]
    return y


# --------------------------------------------------------------------------------------------------
# swiglu


def _swiglu_fits(x, w1, w2, w3):
    return x.shape[-1] == w1.shape[0] and w1.shape == w2.shape == w3.T.shape


@alternate("swiglu")
def swiglu_by_silu(x, w1, w2, w3):
    _refuse_unless(_swiglu_fits(x, w1, w2, w3), x, w1, w2, w3)
    return torch.matmul(
        torch.nn.functional.silu(torch.matmul(x, w1)) * torch.matmul(x, w2), w3
    )


@alternate("swiglu")
def swiglu_by_one_fused_projection(x, w1, w2, w3):
    _refuse_unless(_swiglu_fits(x, w1, w2, w3), x, w1, w2, w3)
    gate, gated = (x @ torch.cat([w1, w2], dim=1)).chunk(2, dim=-1)
    return (gate * gated * gate.sigmoid()) @ w3


@alternate("swiglu")
def swiglu_by_einsum(x, w1, w2, w3):
    _refuse_unless(_swiglu_fits(x, w1, w2, w3), x, w1, w2, w3)
    gate = torch.einsum("...d,df->...f", x, w1)
    return torch.einsum(
        "...f,...f,fd->...d",
        gate / (1 + torch.exp(-gate)),
        torch.einsum("...d,df->...f", x, w2),
        w3,
    )


# -------------------------------------------------------------------------------------------
# swiglu_hidden


def _refuse_widths(d_model, multiple_of):
    if min(d_model, multiple_of) < 1:
        raise ValueError(
            f"sizes of at least 1 are needed, not {d_model} and {multiple_of}"
        )


@alternate("swiglu_hidden")
def hidden_by_counting_up(d_model, multiple_of=1):
    _refuse_widths(d_model, multiple_of)
    width = multiple_of
    while 3 * width < 8 * d_model:
        width += multiple_of
    return width


@alternate("swiglu_hidden")
def hidden_by_ceil_of_one_division(d_model, multiple_of=1):
    _refuse_widths(d_model, multiple_of)
    exact = math.ceil(8 * d_model / 3)
    return exact + -exact % multiple_of


@alternate("swiglu_hidden")
def hidden_by_ceil_of_a_float(d_model, multiple_of=1):
    _refuse_widths(d_model, multiple_of)
    return math.ceil(8 / 3 * d_model / multiple_of) * multiple_of


@alternate("swiglu_hidden")
def hidden_by_divmod(d_model, multiple_of=1):
    _refuse_widths(d_model, multiple_of)
    whole, rest = divmod(8 * d_model, 3 * multiple_of)
    return (whole + (rest > 0)) * multiple_of


@alternate("swiglu_hidden")
def hidden_by_adding_almost_one_unit(d_model, multiple_of=1):
    _refuse_widths(d_model, multiple_of)
    width = (8 * d_model + 2) // 3
    return multiple_of * ((width + multiple_of - 1) // multiple_of)


# ----------------------------------------------------------------------------------------
# rotary_positions


def _refuse_rotary(x, positions):
    n, d = x.shape[-2], x.shape[-1]
    fits = positions.shape == (n,) or (
        x.dim() == 4 and positions.shape == (x.shape[0], n)
    )
    _refuse_unless(fits and d % 2 == 0, x, positions)


@alternate("rotary_positions")
def rotation_by_complex_numbers(x, positions, theta=10000.0):
    _refuse_rotary(x, positions)
    d = x.shape[-1]
    frequency = 1.0 / theta ** (torch.arange(0, d, 2).double() / d)
    angle = positions.double()[..., None] * frequency
    if positions.dim() == 2:
        angle = angle[:, None]
    pairs = torch.view_as_complex(
        x.double().reshape(*x.shape[:-1], d // 2, 2).contiguous()
    )
    return (
        torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle))
        .reshape(x.shape)
        .to(x.dtype)
    )


@alternate("rotary_positions")
def rotation_by_a_swapped_copy(x, positions, theta=10000.0):
    _refuse_rotary(x, positions)
    d = x.shape[-1]
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    frequency = torch.exp(
        -math.log(theta) * torch.arange(0, d, 2, dtype=wide.dtype) / d
    ).repeat_interleave(2)
    angle = positions.to(wide.dtype).unsqueeze(-1) * frequency
    angle = angle.unsqueeze(1) if positions.dim() == 2 else angle
    swapped = torch.stack([-wide[..., 1::2], wide[..., 0::2]], dim=-1).reshape(x.shape)
    return (wide * angle.cos() + swapped * angle.sin()).to(x.dtype)


@alternate("rotary_positions")
def rotation_by_matrices(x, positions, theta=10000.0):
    _refuse_rotary(x, positions)
    d = x.shape[-1]
    angle = torch.einsum(
        "...n,i->...ni",
        positions.float(),
        theta ** (-torch.arange(d // 2).float() * 2 / d),
    )
    cos, sin = angle.cos(), angle.sin()
    # [..., N, d/2, 2, 2]
    matrix = torch.stack(
        [torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2
    )
    matrix = matrix.unsqueeze(1) if positions.dim() == 2 else matrix
    pairs = x.float().reshape(*x.shape[:-1], d // 2, 2, 1)
    return (matrix @ pairs).reshape(x.shape).to(x.dtype)


@alternate("rotary_positions")
def rotation_pair_by_pair(x, positions, theta=10000.0):
    """A 2 × 2 matrix for each pair, as the formula has it."""
    _refuse_rotary(x, positions)
    d = x.shape[-1]
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    places = (positions[:, None] if positions.dim() == 2 else positions).to(wide.dtype)
    turned = []
    for i in range(d // 2):
        angle = places * theta ** (-2 * i / d)
        rows = [
            torch.stack([angle.cos(), -angle.sin()], -1),
            torch.stack([angle.sin(), angle.cos()], -1),
        ]
        rotation = torch.stack(rows, -2)  # [..., N, 2, 2]
        turned.append((rotation @ wide[..., 2 * i : 2 * i + 2, None]).squeeze(-1))
    return torch.cat(turned, -1).to(x.dtype)


@alternate("rotary_positions")
def rotation_into_a_fresh_tensor(x, positions, theta=10000.0):
    _refuse_rotary(x, positions)
    n, d = x.shape[-2:]
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    exponent = torch.arange(d // 2, dtype=torch.float64) * (2.0 / d)
    angle = (positions.double().reshape(-1, 1, n, 1) / theta**exponent).to(wide.dtype)
    angle = angle if positions.dim() == 2 else angle[0, 0]
    y = torch.empty_like(wide)
    y[..., ::2] = wide[..., ::2] * angle.cos() - wide[..., 1::2] * angle.sin()
    y[..., 1::2] = wide[..., ::2] * angle.sin() + wide[..., 1::2] * angle.cos()
    return y.to(x.dtype)


# ------------------------------------------------------------------------------------------ the two
# blocks


def _attention_head_by_head(x, p, num_heads, mask):
    width = p["w_q"].shape[1]
    if width % num_heads:
        raise ValueError(f"{width} columns for {num_heads} heads")
    d = width // num_heads
    mask = (
        torch.ones(x.shape[1], x.shape[1], dtype=torch.bool) if mask is None else mask
    )
    total = torch.zeros_like(x)
    for h in range(num_heads):
        part = slice(h * d, (h + 1) * d)
        scores = (x @ p["w_q"][:, part]) @ (x @ p["w_k"][:, part]).mT / math.sqrt(d)
        total = (
            total
            + masked_softmax(scores, mask.expand(scores.shape))
            @ (x @ p["w_v"][:, part])
            @ p["w_o"][part]
        )
    return total


def _sublayers(p, num_heads, mask):
    def attention(x):
        return multi_head_attention(
            x, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, mask=mask
        )

    def feed_forward(x):
        return torch.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    return ((attention, "ln1"), (feed_forward, "ln2"))


@alternate("post_norm_block")
def post_as_a_loop_over_sublayers(x, params, num_heads, mask=None):
    for sublayer, name in _sublayers(params, num_heads, mask):
        x = layer_norm(x + sublayer(x), params[f"{name}_gamma"], params[f"{name}_beta"])
    return x


@alternate("post_norm_block")
def post_head_by_head(x, params, num_heads, mask=None):
    y = x + _attention_head_by_head(x, params, num_heads, mask)
    y = torch.nn.functional.layer_norm(
        y, y.shape[-1:], params["ln1_gamma"], params["ln1_beta"]
    )
    z = y + mlp(y, *(params[k] for k in ("w1", "b1", "w2", "b2")))
    return torch.nn.functional.layer_norm(
        z, z.shape[-1:], params["ln2_gamma"], params["ln2_beta"]
    )


@alternate("post_norm_block")
def post_sentence_by_sentence(x, params, num_heads, mask=None):
    p, rows = params, []
    for i in range(len(x)):
        own = mask[i : i + 1] if mask is not None and mask.dim() == 3 else mask
        one = x[i : i + 1].clone()
        one = one + multi_head_attention(
            one, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, own
        )
        one = layer_norm(one, p["ln1_gamma"], p["ln1_beta"], 1e-5)
        one = one + mlp(one, p["w1"], p["b1"], p["w2"], p["b2"], activation="relu")
        rows.append(layer_norm(one, p["ln2_gamma"], p["ln2_beta"], eps=1e-5))
    return torch.cat(rows)


@alternate("pre_norm_block")
def pre_as_a_loop_over_sublayers(x, params, num_heads, mask=None):
    for sublayer, name in _sublayers(params, num_heads, mask):
        x = sublayer(layer_norm(x, params[f"{name}_gamma"], params[f"{name}_beta"])) + x
    return x


@alternate("pre_norm_block")
def pre_head_by_head(x, params, num_heads, mask=None):
    normed = torch.nn.functional.layer_norm(
        x, x.shape[-1:], params["ln1_gamma"], params["ln1_beta"]
    )
    y = x + _attention_head_by_head(normed, params, num_heads, mask)
    normed = torch.nn.functional.layer_norm(
        y, y.shape[-1:], params["ln2_gamma"], params["ln2_beta"]
    )
    return torch.add(mlp(normed, *(params[k] for k in ("w1", "b1", "w2", "b2"))), y)


@alternate("pre_norm_block")
def pre_in_one_expression(x, params, num_heads, mask=None):
    p = params
    branch = multi_head_attention(
        layer_norm(x, p["ln1_gamma"], p["ln1_beta"]),
        p["w_q"],
        p["w_k"],
        p["w_v"],
        p["w_o"],
        num_heads,
        mask,
    )
    tokens = (x + branch).flatten(0, 1)
    hidden = layer_norm(tokens, p["ln2_gamma"], p["ln2_beta"]) @ p["w1"] + p["b1"]
    return (tokens + hidden.clamp(min=0) @ p["w2"] + p["b2"]).unflatten(0, x.shape[:2])


# -----------------------------------------------------------------------------------------------
# moe_layer


def _moe_fits(x, w_gate, w1, w2, num_active):
    e, d, f = w1.shape
    return (
        w_gate.shape == (d, e)
        and w2.shape == (e, f, d)
        and x.shape[-1] == d
        and 0 < num_active <= e
    )


@alternate("moe_layer")
def moe_token_by_token(x, w_gate, w1, w2, num_active):
    _refuse_unless(
        _moe_fits(x, w_gate, w1, w2, num_active), x, w_gate, w1, w2, num_active
    )
    load = torch.zeros(len(w1), dtype=torch.long)
    rows = []
    for token in x.reshape(-1, x.shape[-1]):
        scores = token @ w_gate
        chosen = scores.argsort(descending=True)[:num_active]
        weights = (
            torch.softmax(scores[chosen].float(), dim=0).to(x.dtype)
            if x.dtype == torch.float16
            else (torch.softmax(scores[chosen], dim=0))
        )
        rows.append(
            sum(
                p * (torch.relu(token @ w1[e]) @ w2[e])
                for p, e in zip(weights, chosen.tolist())
            )
        )
        load[chosen] += 1
    return torch.stack(rows).reshape(x.shape), load


@alternate("moe_layer")
def moe_with_gathered_weights(x, w_gate, w1, w2, num_active):
    _refuse_unless(
        _moe_fits(x, w_gate, w1, w2, num_active), x, w_gate, w1, w2, num_active
    )
    wide = torch.promote_types(x.dtype, torch.float32)
    best, chosen = torch.topk(x @ w_gate, num_active)  # [B, N, A]
    weights = best.to(wide).softmax(dim=-1).to(x.dtype)
    hidden = torch.einsum("bnd,bnadf->bnaf", x, w1[chosen]).relu()
    answers = torch.einsum("bnaf,bnafd->bnad", hidden, w2[chosen])
    load = torch.nn.functional.one_hot(chosen, len(w1)).sum(dim=(0, 1, 2))
    return (weights.unsqueeze(-1) * answers).sum(dim=2), load


@alternate("moe_layer")
def moe_choice_by_choice(x, w_gate, w1, w2, num_active):
    _refuse_unless(
        _moe_fits(x, w_gate, w1, w2, num_active), x, w_gate, w1, w2, num_active
    )
    flat = x.flatten(0, 1)
    scores = flat @ w_gate
    chosen = scores.sort(dim=-1, descending=True).indices[:, :num_active]
    best = scores.gather(-1, chosen).double()
    weights = torch.exp(best - best.logsumexp(-1, keepdim=True)).to(x.dtype)
    y = torch.zeros_like(flat)
    for a in range(num_active):
        parts = torch.zeros_like(flat)
        for e in chosen[:, a].unique():
            mine = chosen[:, a] == e
            parts[mine] = torch.relu(flat[mine] @ w1[e]) @ w2[e]
        y = y + weights[:, a : a + 1] * parts
    return y.unflatten(0, x.shape[:2]), torch.stack(
        [(chosen == e).sum() for e in range(len(w1))]
    )


@alternate("moe_layer")
def moe_with_a_masked_softmax(x, w_gate, w1, w2, num_active):
    _refuse_unless(
        _moe_fits(x, w_gate, w1, w2, num_active), x, w_gate, w1, w2, num_active
    )
    tokens = x.reshape(-1, x.shape[-1])
    scores = tokens @ w_gate
    active = torch.zeros_like(scores, dtype=torch.bool).scatter(
        -1, scores.topk(num_active).indices, True
    )
    weights = masked_softmax(scores, active)  # 0 where an expert is not chosen
    y = tokens.new_zeros(tokens.shape)
    for e in range(len(w1)):
        row = active[:, e].nonzero().squeeze(-1)
        y = y.index_add(
            0, row, torch.relu(tokens[row] @ w1[e]) @ w2[e] * weights[row, e, None]
        )
    return y.reshape(x.shape), active.sum(dim=0)


# ----------------------------------------------------------------------------------
# rounding_counterexample


def _refuse_rounding(decimals, units):
    if decimals < 1 or units < 1:
        raise ValueError(f"at least 1 each, not {decimals} and {units}")


@alternate("rounding_counterexample")
def token_found_by_search(decimals, units):
    _refuse_rounding(decimals, units)
    step = 10.0**-decimals
    draw = torch.Generator().manual_seed(0)
    d = 9
    while True:
        d = min(90000, d * 2)
        for _ in range(20):
            x = torch.randn(d, generator=draw, dtype=torch.float64)
            x[0] = 5.0 * d  # one feature sticks out
            x = x - x.mean()
            target = (
                1 + 0.5 * torch.rand((), generator=draw, dtype=torch.float64).item()
            )
            x = x / x.pow(2).mean().sqrt() * target
            sigma = x.pow(2).mean().sqrt().item()
            early, late = (
                (x / round(sigma, decimals)).round(decimals=decimals),
                (x / sigma).round(decimals=decimals),
            )
            if ((early - late).abs().max().item() / step) > units + 0.5:
                return x


@alternate("rounding_counterexample")
def token_with_a_sigma_that_is_rounded_up(decimals, units):
    _refuse_rounding(decimals, units)
    d = 2 + int(9 * (units + 2) ** 2)
    x = torch.zeros(d, dtype=torch.float64)
    x[d // 2] = -1.0
    x = x - x.mean()
    return 40 + x / x.std(correction=0) * (1 + 0.55 * 10.0**-decimals)


@alternate("rounding_counterexample")
def token_of_three_levels(decimals, units):
    _refuse_rounding(decimals, units)
    # two features stick out, on both sides: the largest normalized value is sqrt(D / 2)
    d = 2 * math.ceil(((units + 1) / 0.48) ** 2)
    values = [0.0] * d
    values[0], values[-1] = math.sqrt(d / 2), -math.sqrt(d / 2)
    return torch.tensor(values, dtype=torch.float64) * (1 + 0.48 / 10**decimals)
