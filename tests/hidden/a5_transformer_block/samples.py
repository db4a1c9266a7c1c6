"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math

import torch
import torch.nn.functional as F

from autograder.suite import alternate, sample

# ── norms ────────────────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "layer_norm",
    deserves=(
        "eps_outside_the_root",
        "statistics_in_half_precision",
        "normalizes_bfloat16_as_it_is",
        "norm_without_checks",
    ),
)
def std_plus_eps(x, gamma, beta, eps=1e-5):
    mu = x.mean(-1, keepdim=True)
    sigma = x.std(-1, unbiased=False, keepdim=True)
    return gamma * (x - mu) / (sigma + eps) + beta


@sample(
    "layer_norm",
    deserves=(
        "variance_divides_by_d_minus_one",
        "eps_outside_the_root",
        "statistics_in_half_precision",
        "norm_without_checks",
    ),
)
def annotated_transformer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True)
    return gamma * (x - mean) / (std + eps) + beta


@sample("layer_norm", deserves=("normalizes_over_everything", "norm_without_checks"))
def one_mean_for_the_tensor(x, gamma, beta, eps=1e-5):
    xf = x.to(torch.float32) if x.dtype == torch.float16 else x
    var, mu = torch.var_mean(xf, correction=0)
    return ((xf - mu) * torch.rsqrt(var + eps) * gamma + beta).to(x.dtype)


@sample(
    "layer_norm_backward",
    deserves=(
        "no_path_through_the_mean",
        "backward_in_bfloat16",
        "backward_without_checks",
    ),
)
def forgot_the_mean(dy, x, gamma, eps=1e-5):
    D = x.size(-1)
    kind = x.dtype
    if kind == torch.float16:
        dy, x, gamma = dy.float(), x.float(), gamma.float()
    mu = x.mean(-1, keepdim=True)
    var = ((x - mu) ** 2).sum(-1, keepdim=True) / D
    inv = (var + eps) ** -0.5
    n = (x - mu) * inv
    dn = dy * gamma
    dx = inv * (dn - n * (dn * n).sum(-1, keepdim=True) / D)
    axes = tuple(range(x.dim() - 1))
    dg = (dy * n).sum(axes) if axes else dy * n
    db = dy.sum(axes) if axes else dy
    return dx.to(kind), dg.to(kind), db.to(kind)


@sample(
    "layer_norm_backward",
    deserves=(
        "sums_instead_of_means",
        "backward_without_checks",
        "backward_in_half_precision",
    ),
)
def formula_without_the_one_over_d(dy, x, gamma, eps=1e-5):
    xc = x - x.mean(dim=-1, keepdim=True)
    rstd = torch.rsqrt(torch.mean(xc * xc, dim=-1, keepdim=True) + eps)
    xh = xc * rstd
    dxh = torch.einsum("...d,d->...d", dy, gamma)
    dx = rstd * (
        dxh
        - torch.sum(dxh, -1, keepdim=True)
        - xh * torch.sum(dxh * xh, -1, keepdim=True)
    )
    flat = dy.reshape(-1, dy.size(-1))
    return dx, (flat * xh.reshape(-1, dy.size(-1))).sum(0), flat.sum(0)


@sample(
    "rms_norm",
    deserves=("rms_subtracts_the_mean", "rms_without_checks", "rms_in_half_precision"),
)
def layer_norm_from_habit(x, gamma, eps=1e-6):
    x = x - x.mean(dim=-1, keepdim=True)
    return x * torch.rsqrt((x**2).mean(-1, True) + eps) * gamma


@sample("rms_norm", deserves=("rms_of_the_sum", "rms_without_checks"))
def divides_by_the_length(x, gamma, eps=1e-6):
    z = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    length = (torch.einsum("...d,...d->...", z, z) + eps).sqrt()
    return ((z / length[..., None]) * gamma).to(x.dtype)


@sample(
    "batch_norm",
    deserves=(
        "statistics_over_the_first_axis",
        "batch_norm_without_checks",
        "trains_on_one_token",
        "statistics_in_the_dtype_of_the_batch",
    ),
)
def batch_axis_only(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5
):
    if training:
        h = x.float() if x.dtype == torch.float16 else x
        mu, sigma2 = h.mean(0), h.var(0, unbiased=False)
        out = gamma * (h - mu) / torch.sqrt(sigma2 + eps) + beta
        with torch.no_grad():
            flat = h.flatten(0, -2) if h.dim() > 1 else h[None]
            running_mean = running_mean + momentum * (flat.mean(0) - running_mean)
            running_var = running_var + momentum * (
                flat.var(0, unbiased=True) - running_var
            )
        return out.to(x.dtype), running_mean, running_var
    return (
        (gamma * (x - running_mean) / torch.sqrt(running_var + eps) + beta).to(x.dtype),
        running_mean,
        running_var,
    )


@sample(
    "batch_norm",
    deserves=(
        "momentum_weighs_the_past",
        "batch_norm_without_checks",
        "trains_on_one_token",
    ),
)
def momentum_as_in_other_libraries(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5
):
    shape, kind = x.shape, x.dtype
    x = x.reshape(-1, shape[-1])
    x = x.float() if kind == torch.float16 else x
    if training:
        m = torch.sum(x, 0) / x.size(0)
        v = torch.sum((x - m) ** 2, 0) / x.size(0)
        unbiased = (
            v.detach() * (x.size(0) / (x.size(0) - 1)) if x.size(0) > 1 else v.detach()
        )
        running_mean = momentum * running_mean + (1 - momentum) * m.detach()
        running_var = momentum * running_var + (1 - momentum) * unbiased
    else:
        m, v = running_mean, running_var
    return (
        (gamma * ((x - m) * torch.rsqrt(v + eps)) + beta).reshape(shape).to(kind),
        running_mean,
        running_var,
    )


@sample(
    "batch_norm",
    deserves=(
        "keeps_the_variance_by_t",
        "batch_norm_without_checks",
        "trains_on_one_token",
    ),
)
def one_variance_for_both(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5
):
    data = x.to(running_mean.dtype)
    dims = list(range(data.ndim - 1))
    if training:
        v, m = (
            torch.var_mean(data, dims, unbiased=False)
            if dims
            else (torch.zeros_like(data), data)
        )
        kept = [
            torch.lerp(old, new.detach(), momentum)
            for old, new in ((running_mean, m), (running_var, v))
        ]
    else:
        m, v, kept = running_mean, running_var, [running_mean, running_var]
    out = (data - m).div((v + eps).sqrt()).mul(gamma).add(beta)
    return out.type(x.dtype), kept[0], kept[1]


# ── mlp, swiglu
# ──────────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "mlp",
    deserves=("mlp_gelu_by_tanh", "mlp_without_checks", "mlp_takes_any_activation"),
)
def gpt_two_gelu(x, w1, b1, w2, b2, activation="relu"):
    h = torch.addmm(b1, x.reshape(-1, x.size(-1)), w1)
    if activation == "gelu":
        h = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
    else:
        h = h.clamp(min=0)
    return (h @ w2 + b2).reshape(*x.shape[:-1], -1)


@sample("swiglu", deserves=("gate_and_gated_swapped", "swiglu_without_checks"))
def silu_on_the_second(x, w1, w2, w3):
    up, gate = x.matmul(w1), x.matmul(w2)
    return torch.einsum("...f,fd->...d", F.silu(gate) * up, w3)


@sample("swiglu", deserves="sigmoid_gate")
def plain_glu(x, w1, w2, w3):
    if x.size(-1) != w1.size(0) or w1.shape != w2.shape or w3.shape != w1.T.shape:
        raise ValueError(
            f"{tuple(x.shape)} {tuple(w1.shape)} {tuple(w2.shape)} {tuple(w3.shape)}"
        )
    both = torch.cat([x @ w2, x @ w1], dim=-1)
    return F.glu(both, dim=-1) @ w3


@sample("swiglu_hidden", deserves="rounds_down")
def floor_then_multiple(d_model, multiple_of=1):
    if d_model <= 0 or multiple_of <= 0:
        raise ValueError(f"{d_model}, {multiple_of}")
    f = math.floor(8 * d_model / 3)
    return f - f % multiple_of if f >= multiple_of else multiple_of


# ── rotary_positions
# ─────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "rotary_positions",
    deserves=("pairs_of_halves", "leaves_the_odd_feature", "positions_without_checks"),
)
def rotate_half_in_float32(x, positions, theta=10000.0):
    d = x.shape[-1]
    inv_freq = 1.0 / theta ** (torch.arange(0, d, 2).float() / d)
    emb = positions[..., None].float() * inv_freq
    emb = torch.cat((emb, emb), dim=-1)
    if emb.dim() == 3:
        emb = emb[:, None]
    xf = x.float()
    rotated = torch.cat((-xf[..., d // 2 :], xf[..., : d // 2]), dim=-1)
    return (xf * emb.cos() + rotated * emb.sin()).to(x.dtype)


@sample(
    "rotary_positions",
    deserves=(
        "result_not_interleaved",
        "leaves_the_odd_feature",
        "positions_without_checks",
    ),
)
def neighbours_put_back_as_halves(x, positions, theta=10000.0):
    half = x.size(-1) // 2
    freqs = torch.pow(theta, -torch.arange(half, dtype=torch.float64) * 2 / x.size(-1))
    ang = positions.unsqueeze(-1).double() * freqs
    ang = ang.unsqueeze(1) if ang.dim() == 3 else ang
    even, odd = x[..., ::2].double(), x[..., 1::2].double()
    first = even * torch.cos(ang) - odd * torch.sin(ang)
    second = even * torch.sin(ang) + odd * torch.cos(ang)
    return torch.cat([first, second], dim=-1).to(x.dtype)


@sample("rotary_positions", deserves="turns_clockwise")
def complex_conjugate(x, positions, theta=10000.0):
    n, d = x.shape[-2:]
    if d % 2:
        raise ValueError(f"odd width {d}")
    if positions.size(-1) != n or (
        positions.ndim == 2 and (x.ndim != 4 or positions.size(0) != x.size(0))
    ):
        raise ValueError(f"{tuple(positions.shape)} for {tuple(x.shape)}")
    work = x if x.dtype == torch.float64 else x.float()
    z = torch.view_as_complex(work.reshape(*x.shape[:-1], d // 2, 2).contiguous())
    f = theta ** (-torch.arange(0, d, 2, dtype=work.dtype) / d)
    a = positions.to(work.dtype)[..., None] * f
    a = a[:, None] if positions.ndim == 2 else a
    turned = z * torch.polar(torch.ones_like(a), -a)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


# ── blocks
# ───────────────────────────────────────────────────────────────────────────────────────────────────


@sample("pre_norm_block", deserves="pre_residual_from_the_norm")
def reuses_the_name_x(x, params, num_heads, mask=None):
    x = layer_norm(x, params["ln1_gamma"], params["ln1_beta"])
    attn = multi_head_attention(
        x, params["w_q"], params["w_k"], params["w_v"], params["w_o"], num_heads, mask
    )
    x = x + attn
    x = layer_norm(x, params["ln2_gamma"], params["ln2_beta"])
    return x + mlp(x, params["w1"], params["b1"], params["w2"], params["b2"])


@sample("pre_norm_block", deserves="pre_without_the_second_norm")
def norm_in_front_of_attention_only(x, params, num_heads, mask=None):
    weights = [params[key] for key in ("w_q", "w_k", "w_v", "w_o")]
    h = x + multi_head_attention(
        layer_norm(x, params["ln1_gamma"], params["ln1_beta"]),
        *weights,
        num_heads,
        mask=mask,
    )
    ff = F.relu(h @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    return h + ff


@sample("post_norm_block", deserves="post_norms_the_sublayers")
def add_after_the_norm(x, params, num_heads, mask=None):
    names = "w_q", "w_k", "w_v", "w_o"
    sub = multi_head_attention(x, *(params[n] for n in names), num_heads, mask)
    x = x + layer_norm(sub, params["ln1_gamma"], params["ln1_beta"])
    sub = mlp(x, *(params[n] for n in ("w1", "b1", "w2", "b2")))
    return x + layer_norm(sub, params["ln2_gamma"], params["ln2_beta"])


@sample("post_norm_block", deserves=("post_with_gelu", "post_forgets_the_mask"))
def gelu_and_no_mask(x, params, num_heads, mask=None):
    p = params
    a = multi_head_attention(x, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads)
    h = layer_norm(x + a, p["ln1_gamma"], p["ln1_beta"])
    m = F.gelu(h @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
    return layer_norm(h + m, p["ln2_gamma"], p["ln2_beta"])


# ── moe_layer
# ────────────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "moe_layer",
    deserves=(
        "softmax_over_all_experts",
        "clamps_the_active_experts",
        "experts_without_checks",
    ),
)
def softmax_then_topk(x, w_gate, w1, w2, num_active):
    flat = x.reshape(-1, x.size(-1))
    probs = F.softmax(flat @ w_gate, dim=-1)
    top, idx = torch.topk(probs, num_active, dim=-1)
    out = torch.zeros_like(flat)
    counts = []
    for e in range(w1.size(0)):
        rows, slot = torch.where(idx == e)
        out[rows] += top[rows, slot, None] * (F.relu(flat[rows] @ w1[e]) @ w2[e])
        counts.append(len(rows))
    return out.reshape(x.shape), torch.tensor(counts)


# ── right answers
# ────────────────────────────────────────────────────────────────────────────────────────────


@alternate("rms_norm")
def through_the_vector_norm(x, gamma, eps=1e-6):
    if tuple(gamma.shape) != (x.size(-1),):
        raise ValueError(f"{tuple(gamma.shape)} for {x.size(-1)} features")
    h = x if x.dtype == torch.float64 else x.float()
    ms = torch.linalg.vecdot(h, h).unsqueeze(-1) / h.size(-1)
    return (h * torch.rsqrt(ms + eps) * gamma).to(x.dtype)


@alternate("swiglu_hidden")
def counts_upwards(d_model, multiple_of=1):
    if min(d_model, multiple_of) < 1:
        raise ValueError(f"{d_model} {multiple_of}")
    f = multiple_of * ((8 * d_model) // (3 * multiple_of))
    return f if 3 * f >= 8 * d_model else f + multiple_of
