"""Wrong answers people give to assignment 5: each has one wrong idea and is otherwise a good
answer.
"""

from autograder.suite import mistake


def _wide(x):
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


# ----------------------------------------------------------------------------------------------
# layer_norm


def _check_norm(x, *weights):
    for w in weights:
        if w.shape != (x.shape[-1],):
            raise ValueError(f"weights of shape {list(w.shape)} for {x.shape[-1]} features")


def _centre(x):
    return x - x.mean(dim=-1, keepdim=True)


def _variance(x):
    return _centre(x).pow(2).mean(dim=-1, keepdim=True)


def _normed(x, gamma, beta, normalize):
    _check_norm(x, gamma, beta)
    return (normalize(_wide(x)) * gamma + beta).to(x.dtype)


@mistake(
    "layer_norm",
    hint="torch.var divides by D − 1 unless told otherwise; the worked example would give ±1.",
    keeps=0.5,
)
def variance_divides_by_d_minus_one(x, gamma, beta, eps=1e-5):
    if x.shape[-1] == 1:
        return _normed(x, gamma, beta, lambda t: t * 0)
    return _normed(
        x, gamma, beta, lambda t: _centre(t) / torch.sqrt(t.var(dim=-1, keepdim=True) + eps)
    )


@mistake(
    "layer_norm",
    hint="Your eps is added to the standard deviation. It belongs to the variance, inside the root.",
    keeps=0.5,
)
def eps_outside_the_root(x, gamma, beta, eps=1e-5):
    return _normed(x, gamma, beta, lambda t: _centre(t) / (torch.sqrt(_variance(t)) + eps))


@mistake(
    "layer_norm",
    hint="A token whose features are all equal gives 0/0 in your layer. What is eps for?",
)
def without_eps(x, gamma, beta, eps=1e-5):
    return _normed(x, gamma, beta, lambda t: _centre(t) / torch.sqrt(_variance(t)))


@mistake(
    "layer_norm",
    hint="Change one token: others change too. Mean and variance are taken over a token's features.",
)
def normalizes_over_the_first_axis(x, gamma, beta, eps=1e-5):
    def normalize(t):
        return (t - t.mean(dim=0)) / torch.sqrt(t.var(dim=0, correction=0) + eps)

    return _normed(x, gamma, beta, normalize)


@mistake(
    "layer_norm", hint="One mean and one variance serve your whole tensor. Every token has its own."
)
def normalizes_over_everything(x, gamma, beta, eps=1e-5):
    return _normed(
        x, gamma, beta, lambda t: (t - t.mean()) / torch.sqrt((t - t.mean()).pow(2).mean() + eps)
    )


@mistake(
    "layer_norm",
    hint="You divide by the variance. Twice as large a token should give the same result.",
    keeps=0.5,
)
def divides_by_the_variance(x, gamma, beta, eps=1e-5):
    return _normed(x, gamma, beta, lambda t: _centre(t) / (_variance(t) + eps))


@mistake("layer_norm", hint="A power of 2 squares. Which power is a square root?")
def squares_instead_of_taking_the_root(x, gamma, beta, eps=1e-5):
    return _normed(x, gamma, beta, lambda t: _centre(t) / (_variance(t) + eps) ** 2)


@mistake(
    "layer_norm",
    hint="Set beta to 5: nothing changes. gamma and beta start as 1 and 0, which hides this.",
)
def gamma_and_beta_unused(x, gamma, beta, eps=1e-5):
    return _normed(
        x,
        torch.ones_like(gamma),
        torch.zeros_like(beta),
        lambda t: _centre(t) / (_variance(t) + eps).sqrt(),
    )


@mistake(
    "layer_norm",
    hint="With beta = 0 your result is gamma everywhere: the two have changed places.",
    keeps=0.5,
)
def gamma_and_beta_swapped(x, gamma, beta, eps=1e-5):
    return _normed(x, beta, gamma, lambda t: _centre(t) / torch.sqrt(_variance(t) + eps))


@mistake("layer_norm", hint="You shift before you scale, so that beta is scaled as well.")
def shift_before_scale(x, gamma, beta, eps=1e-5):
    _check_norm(x, gamma, beta)
    return ((_centre(_wide(x)) / torch.sqrt(_variance(_wide(x)) + eps) + beta) * gamma).to(x.dtype)


@mistake(
    "layer_norm",
    hint="A mean of shape [N] lines up with the features. Which argument of mean keeps its axis?",
    keeps=0.5,
)
def keepdim_forgotten(x, gamma, beta, eps=1e-5):
    def normalize(t):
        centred = t - t.mean(dim=-1)
        return centred / torch.sqrt(centred.pow(2).mean(dim=-1) + eps)

    return _normed(x, gamma, beta, normalize)


@mistake(
    "layer_norm", hint="The caller's x is another tensor after your call: x -= … writes into it."
)
def subtracts_the_mean_in_place(x, gamma, beta, eps=1e-5):
    _check_norm(x, gamma, beta)
    with torch.no_grad():
        x -= x.mean(dim=-1, keepdim=True)
    return _normed(x, gamma, beta, lambda t: _centre(t) / torch.sqrt(_variance(t) + eps))


@mistake(
    "layer_norm",
    hint="You use an eps of your own. The caller's is an argument, 1e-5 unless said otherwise.",
)
def eps_of_its_own(x, gamma, beta, eps=1e-5):
    return _normed(x, gamma, beta, lambda t: _centre(t) / torch.sqrt(_variance(t) + 1e-6))


@mistake(
    "layer_norm", hint="Your default is right, but another eps changes nothing: it is an argument."
)
def always_the_default_eps(x, gamma, beta, eps=1e-5):
    return _normed(x, gamma, beta, lambda t: _centre(t) / torch.sqrt(_variance(t) + 1e-5))


@mistake(
    "layer_norm", hint="You round sigma inside the computation, as the notes do. See question 11."
)
def sigma_rounded_to_two_decimals(x, gamma, beta, eps=1e-5):
    return _normed(
        x, gamma, beta, lambda t: _centre(t) / torch.sqrt(_variance(t) + eps).round(decimals=2)
    )


@mistake("layer_norm", hint="Your tokens keep their mean. What is subtracted before dividing?")
def never_subtracts_the_mean(x, gamma, beta, eps=1e-5):
    return _normed(
        x, gamma, beta, lambda t: t / torch.sqrt(t.pow(2).mean(dim=-1, keepdim=True) + eps)
    )


@mistake(
    "layer_norm",
    hint="Your variance is around zero, not around the mean: subtract first, then square.",
)
def variance_around_zero(x, gamma, beta, eps=1e-5):
    return _normed(
        x, gamma, beta, lambda t: _centre(t) / torch.sqrt(t.pow(2).mean(dim=-1, keepdim=True) + eps)
    )


@mistake(
    "layer_norm",
    hint="You divide by the sum of the squares, so that the result shrinks with D. Take the mean.",
    keeps=0.5,
)
def sum_instead_of_mean_of_squares(x, gamma, beta, eps=1e-5):
    return _normed(
        x,
        gamma,
        beta,
        lambda t: _centre(t) / (_centre(t).pow(2).sum(dim=-1, keepdim=True) + eps).sqrt(),
    )


@mistake(
    "layer_norm",
    hint="The mean of absolute deviations is another measure of spread than the root mean square.",
)
def mean_absolute_deviation(x, gamma, beta, eps=1e-5):
    return _normed(
        x, gamma, beta, lambda t: _centre(t) / (_centre(t).abs().mean(dim=-1, keepdim=True) + eps)
    )


@mistake(
    "layer_norm",
    hint="The mean of the squares minus the square of the mean: two large numbers that agree in "
    "all digits of float32.",
)
def variance_as_a_difference(x, gamma, beta, eps=1e-5):
    def normalize(t):
        variance = t.pow(2).mean(dim=-1, keepdim=True) - t.mean(dim=-1, keepdim=True).pow(2)
        return _centre(t) / torch.sqrt(variance.clamp(min=0) + eps)

    return _normed(x, gamma, beta, normalize)


@mistake(
    "layer_norm",
    hint="float16 ends at 65504: the square of 300 is infinite. Half precision computes in float32.",
)
def statistics_in_half_precision(x, gamma, beta, eps=1e-5):
    _check_norm(x, gamma, beta)
    return _centre(x) / torch.sqrt(_variance(x) + eps) * gamma + beta


@mistake(
    "layer_norm",
    hint="bfloat16 is half precision as well: widen it to float32.",
    replace=(
        "in (torch.float32, torch.float64)",
        "in (torch.float32, torch.float64, torch.bfloat16)",
    ),
)
def normalizes_bfloat16_as_it_is(): ...


@mistake("layer_norm", hint="float16 goes in, float32 comes out. The result has the dtype of x.")
def returns_float32_for_half(x, gamma, beta, eps=1e-5):
    _check_norm(x, gamma, beta)
    return _centre(_wide(x)) / torch.sqrt(_variance(_wide(x)) + eps) * gamma + beta


@mistake(
    "layer_norm",
    hint="Mean and variance depend on x, and gradients flow through them too: what is detached?",
)
def statistics_without_gradient(x, gamma, beta, eps=1e-5):
    def normalize(t):
        fixed = t.detach()
        return (t - fixed.mean(dim=-1, keepdim=True)) / torch.sqrt(_variance(fixed) + eps)

    return _normed(x, gamma, beta, normalize)


@mistake(
    "layer_norm",
    hint="Your layer needs a batch: a single token [D] is a token too. Count axes from the end.",
)
def needs_a_batch_axis(x, gamma, beta, eps=1e-5):
    _check_norm(x, gamma, beta)
    t = _wide(x)
    centred = t - t.mean(dim=2 if t.dim() == 3 else 1, keepdim=True)
    y = centred / torch.sqrt(centred.pow(2).mean(dim=2 if t.dim() == 3 else 1, keepdim=True) + eps)
    return (y * gamma + beta).to(x.dtype)


@mistake(
    "layer_norm",
    hint="view wants memory in the order of the axes; callers pass transposed tensors as well.",
)
def views_its_input(x, gamma, beta, eps=1e-5):
    return _normed(
        x.view(-1, x.shape[-1]), gamma, beta, lambda t: _centre(t) / (_variance(t) + eps).sqrt()
    ).view(x.shape)


@mistake(
    "layer_norm",
    hint="A gamma or beta of another length should raise ValueError that names both sizes.",
)
def norm_without_checks(x, gamma, beta, eps=1e-5):
    d = x.shape[-1]
    y = _centre(_wide(x)) / torch.sqrt(_variance(_wide(x)) + eps)
    return (
        y * gamma[:1].expand(d) + beta[:1].expand(d)
        if len(gamma) != d or len(beta) != d
        else y * gamma + beta
    ).to(x.dtype)


# -------------------------------------------------------------------------------------
# layer_norm_backward


def _gradients(dy, x, gamma, eps, make):
    """Checks and preparations as they should be; `make` gets (dy, xhat, s, gamma) and returns the
    three gradients.
    """
    if dy.shape != x.shape or gamma.shape != (x.shape[-1],):
        raise ValueError(f"dy {list(dy.shape)}, x {list(x.shape)}, gamma {list(gamma.shape)}")
    dy, wide, wide_gamma = _wide(dy), _wide(x), _wide(gamma)
    s = 1 / torch.sqrt(_variance(wide) + eps)
    return tuple(t.to(x.dtype) for t in make(dy, _centre(wide) * s, s, wide_gamma))


def _over_tokens(t):
    return t.reshape(-1, t.shape[-1]).sum(dim=0)


def _mean(t):
    return t.mean(dim=-1, keepdim=True)


def _dx(dy, xhat, s, gamma):
    g = dy * gamma
    return s * (g - _mean(g) - xhat * _mean(g * xhat))


def _with_dx(dy, x, gamma, eps, dx):
    """A wrong dx beside the right dgamma and dbeta."""
    return _gradients(
        dy, x, gamma, eps, lambda u, h, s, c: (dx(u, h, s, c), _over_tokens(u * h), _over_tokens(u))
    )


@mistake(
    "layer_norm_backward",
    hint="You hold mean and variance constant. Moving one feature moves both of them.",
)
def statistics_as_constants(dy, x, gamma, eps=1e-5):
    return _with_dx(dy, x, gamma, eps, lambda u, h, s, c: s * u * c)


@mistake(
    "layer_norm_backward", hint="Your dx does not sum to 0: the effect through the mean is missing."
)
def no_path_through_the_mean(dy, x, gamma, eps=1e-5):
    return _with_dx(dy, x, gamma, eps, lambda u, h, s, c: s * (u * c - h * _mean(u * c * h)))


@mistake(
    "layer_norm_backward",
    hint="Your dx is not orthogonal to the normalized x: the path through sigma is missing.",
)
def no_path_through_the_variance(dy, x, gamma, eps=1e-5):
    return _with_dx(dy, x, gamma, eps, lambda u, h, s, c: s * (u * c - _mean(u * c)))


@mistake(
    "layer_norm_backward",
    hint="gamma is missing from dx. It starts as 1, which hides this.",
    keeps=0.5,
)
def gamma_missing_in_dx(dy, x, gamma, eps=1e-5):
    return _with_dx(dy, x, gamma, eps, lambda u, h, s, c: _dx(u, h, s, torch.ones_like(c)))


@mistake(
    "layer_norm_backward", hint="gamma belongs to dy before the means are taken, not to the result."
)
def gamma_after_the_means(dy, x, gamma, eps=1e-5):
    return _with_dx(dy, x, gamma, eps, lambda u, h, s, c: c * _dx(u, h, s, torch.ones_like(c)))


@mistake(
    "layer_norm_backward",
    hint="You take sums over the features where the formula has means: where is 1/D?",
    keeps=0.5,
)
def sums_instead_of_means(dy, x, gamma, eps=1e-5):
    def dx(u, h, s, c):
        g = u * c
        return s * (g - g.sum(dim=-1, keepdim=True) - h * (g * h).sum(dim=-1, keepdim=True))

    return _with_dx(dy, x, gamma, eps, dx)


@mistake(
    "layer_norm_backward",
    hint="Twice as large an x should halve dx. Where is the factor s?",
    keeps=0.5,
)
def forgets_the_factor_s(dy, x, gamma, eps=1e-5):
    return _with_dx(dy, x, gamma, eps, lambda u, h, s, c: _dx(u, h, 1.0, c))


@mistake(
    "layer_norm_backward",
    hint="Both effects are subtracted from g. You add the one through the variance.",
)
def adds_the_variance_term(dy, x, gamma, eps=1e-5):
    return _with_dx(
        dy, x, gamma, eps, lambda u, h, s, c: s * (u * c - _mean(u * c) + h * _mean(u * c * h))
    )


@mistake(
    "layer_norm_backward",
    hint="Mean(g · x̂) is one number per token and multiplies x̂. You subtract it alone.",
)
def variance_term_without_xhat(dy, x, gamma, eps=1e-5):
    return _with_dx(
        dy, x, gamma, eps, lambda u, h, s, c: s * (u * c - _mean(u * c) - _mean(u * c * h))
    )


@mistake(
    "layer_norm_backward",
    hint="The product of two means is not the mean of a product: mean(g · x̂).",
)
def mean_of_g_times_mean_of_xhat(dy, x, gamma, eps=1e-5):
    return _with_dx(
        dy,
        x,
        gamma,
        eps,
        lambda u, h, s, c: s * (u * c - _mean(u * c) - h * _mean(u * c) * _mean(h)),
    )


@mistake(
    "layer_norm_backward",
    hint="Your means run over all tokens. Each token is normalized by itself.",
)
def means_over_all_tokens(dy, x, gamma, eps=1e-5):
    return _with_dx(
        dy, x, gamma, eps, lambda u, h, s, c: s * (u * c - (u * c).mean() - h * (u * c * h).mean())
    )


@mistake(
    "layer_norm_backward",
    hint="The forward pass divides the variance by D. Your backward pass uses D − 1.",
    keeps=0.5,
)
def backward_divides_by_d_minus_one(dy, x, gamma, eps=1e-5):
    d = x.shape[-1]

    def make(u, h, s, c):
        s = 1 / torch.sqrt((1 / s**2 - eps) * d / (d - 1) + eps)
        h = _centre(_wide(x)) * s
        g = u * c
        dx = s * (g - _mean(g) - h * (g * h).sum(dim=-1, keepdim=True) / (d - 1))
        return dx, _over_tokens(u * h), _over_tokens(u)

    return _gradients(dy, x, gamma, eps, make)


@mistake(
    "layer_norm_backward",
    hint="A constant token gives NaN: s has an eps, inside the root, as in the forward pass.",
)
def backward_without_eps(dy, x, gamma, eps=1e-5):
    return _gradients(
        dy,
        x,
        gamma,
        0.0,
        lambda u, h, s, c: (_dx(u, h, s, c), _over_tokens(u * h), _over_tokens(u)),
    )


@mistake(
    "layer_norm_backward",
    hint="The caller's eps is ignored: the backward pass needs the one of the forward pass.",
)
def backward_with_the_default_eps(dy, x, gamma, eps=1e-5):
    return _gradients(
        dy,
        x,
        gamma,
        1e-5,
        lambda u, h, s, c: (_dx(u, h, s, c), _over_tokens(u * h), _over_tokens(u)),
    )


@mistake(
    "layer_norm_backward",
    hint="dgamma comes from the normalized x, which gamma multiplied, not from x itself.",
)
def dgamma_from_the_raw_x(dy, x, gamma, eps=1e-5):
    return _gradients(
        dy,
        x,
        gamma,
        eps,
        lambda u, h, s, c: (_dx(u, h, s, c), _over_tokens(u * _wide(x)), _over_tokens(u)),
    )


@mistake(
    "layer_norm_backward", hint="gamma does not appear in its own gradient, nor in that of beta."
)
def gamma_in_its_own_gradient(dy, x, gamma, eps=1e-5):
    return _gradients(
        dy,
        x,
        gamma,
        eps,
        lambda u, h, s, c: (_dx(u, h, s, c), _over_tokens(u * c * h), _over_tokens(u * c)),
    )


@mistake(
    "layer_norm_backward",
    hint="The last two come in the other order: dgamma, then dbeta.",
    keeps=0.5,
)
def dbeta_before_dgamma(dy, x, gamma, eps=1e-5):
    return _gradients(
        dy,
        x,
        gamma,
        eps,
        lambda u, h, s, c: (_dx(u, h, s, c), _over_tokens(u), _over_tokens(u * h)),
    )


@mistake(
    "layer_norm_backward",
    hint="Your sums take the first axis only. Every leading axis counts tokens.",
)
def sums_over_the_first_axis_only(dy, x, gamma, eps=1e-5):
    return _gradients(
        dy, x, gamma, eps, lambda u, h, s, c: (_dx(u, h, s, c), (u * h).sum(0), u.sum(0))
    )


@mistake(
    "layer_norm_backward",
    hint="gamma is shared by all tokens, so its gradient is [D]: something is not summed.",
)
def gradients_of_weights_not_summed(dy, x, gamma, eps=1e-5):
    return _gradients(dy, x, gamma, eps, lambda u, h, s, c: (_dx(u, h, s, c), u * h, u))


@mistake(
    "layer_norm_backward", hint="You average over the tokens. Every token adds its share: a sum."
)
def averages_over_the_tokens(dy, x, gamma, eps=1e-5):
    n = max(1, x.numel() // x.shape[-1])
    return _gradients(
        dy,
        x,
        gamma,
        eps,
        lambda u, h, s, c: (_dx(u, h, s, c), _over_tokens(u * h) / n, _over_tokens(u) / n),
    )


@mistake(
    "layer_norm_backward",
    hint="Squares of 400 are infinite in float16: compute and sum in float32, cast at the end.",
)
def backward_in_half_precision(dy, x, gamma, eps=1e-5):
    if dy.shape != x.shape or gamma.shape != (x.shape[-1],):
        raise ValueError(f"dy {list(dy.shape)}, x {list(x.shape)}, gamma {list(gamma.shape)}")
    s = 1 / torch.sqrt(_variance(x) + eps)
    xhat = _centre(x) * s
    return _dx(dy, xhat, s, gamma), _over_tokens(dy * xhat), _over_tokens(dy)


@mistake(
    "layer_norm_backward",
    hint="bfloat16 is half precision as well: widen it to float32.",
    replace=(
        "in (torch.float32, torch.float64)",
        "in (torch.float32, torch.float64, torch.bfloat16)",
    ),
)
def backward_in_bfloat16(): ...


@mistake(
    "layer_norm_backward",
    hint="float16 goes in, float32 comes out: the gradients have the dtype of x.",
)
def backward_returns_float32(dy, x, gamma, eps=1e-5):
    answer = _with_dx(_wide(dy), _wide(x), _wide(gamma), eps, _dx)
    return answer


@mistake(
    "layer_norm_backward",
    hint="The caller's dy is another tensor after your call: dy *= … writes into it.",
)
def scales_dy_in_place(dy, x, gamma, eps=1e-5):
    answer = _with_dx(dy, x, gamma, eps, _dx)
    with torch.no_grad():
        dy *= 2.0
    return answer


@mistake(
    "layer_norm_backward",
    hint="A dy or a gamma that only broadcasts should raise ValueError that names the sizes.",
)
def backward_without_checks(dy, x, gamma, eps=1e-5):
    shape = torch.broadcast_shapes(dy.shape, x.shape)
    return _with_dx(dy.expand(shape), x.expand(shape), gamma.expand(shape[-1]), eps, _dx)


# ------------------------------------------------------------------------------------------------
# rms_norm


def _rms(x, gamma, normalize):
    _check_norm(x, gamma)
    return (normalize(_wide(x)) * gamma).to(x.dtype)


def _mean_square(t):
    return t.pow(2).mean(dim=-1, keepdim=True)


@mistake("rms_norm", hint="You subtract the mean. RMSNorm does not: (5, 5, 5) becomes (1, 1, 1).")
def rms_subtracts_the_mean(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: _centre(t) / torch.sqrt(_variance(t) + eps))


@mistake("rms_norm", hint="The mean is not subtracted anywhere, not in the squares either.")
def rms_divides_by_the_standard_deviation(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: t / torch.sqrt(_variance(t) + eps))


@mistake(
    "rms_norm",
    hint="Your eps is added to the root. It belongs to the mean of the squares, inside the root.",
    keeps=0.5,
)
def rms_eps_outside_the_root(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: t / (torch.sqrt(_mean_square(t)) + eps))


@mistake(
    "rms_norm", hint="The mean of the squares: with their sum the result shrinks with D.", keeps=0.5
)
def rms_of_the_sum(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: t / torch.sqrt(t.pow(2).sum(dim=-1, keepdim=True) + eps))


@mistake("rms_norm", hint="gamma has no effect on your result. It starts as 1, which hides this.")
def rms_without_gamma(x, gamma, eps=1e-6):
    return _rms(x, torch.ones_like(gamma), lambda t: t / torch.sqrt(_mean_square(t) + eps))


@mistake(
    "rms_norm",
    hint="Some models multiply by 1 + gamma. In this course gamma is the factor itself.",
    keeps=0.5,
)
def rms_with_one_plus_gamma(x, gamma, eps=1e-6):
    return _rms(x, 1 + gamma, lambda t: t / torch.sqrt(_mean_square(t) + eps))


@mistake("rms_norm", hint="A token of zeros is 0/0 in your layer. What is eps for?")
def rms_without_eps(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: t / torch.sqrt(_mean_square(t)))


@mistake(
    "rms_norm",
    hint="The default here is 1e-6, smaller than that of layer_norm, and the caller may "
    "give another.",
)
def rms_with_the_eps_of_layer_norm(x, gamma, eps=1e-5):
    return _rms(x, gamma, lambda t: t / torch.sqrt(_mean_square(t) + eps))


@mistake("rms_norm", hint="Another eps changes nothing in your layer: it is an argument.")
def rms_ignores_eps(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: t / torch.sqrt(_mean_square(t) + 1e-6))


@mistake(
    "rms_norm",
    hint="You divide by the mean square. Twice as large a token should give the same result.",
    keeps=0.5,
)
def rms_without_the_root(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: t / (_mean_square(t) + eps))


@mistake("rms_norm", hint="That is the mean of absolute values: square, mean, root.")
def rms_of_absolute_values(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: t / (t.abs().mean(dim=-1, keepdim=True) + eps))


@mistake(
    "rms_norm",
    hint="Your mean of squares has lost its axis and lines up with the features.",
    keeps=0.5,
)
def rms_keepdim_forgotten(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: t / torch.sqrt(t.pow(2).mean(dim=-1) + eps))


@mistake(
    "rms_norm", hint="Change one token: others change too. Each token has its own root mean square."
)
def rms_of_the_whole_tensor(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: t / torch.sqrt(t.pow(2).mean() + eps))


@mistake(
    "rms_norm",
    hint="float16 ends at 65504: the square of 300 is infinite. Half precision computes in float32.",
)
def rms_in_half_precision(x, gamma, eps=1e-6):
    _check_norm(x, gamma)
    return x / torch.sqrt(_mean_square(x) + eps) * gamma


@mistake("rms_norm", hint="float16 goes in, float32 comes out. The result has the dtype of x.")
def rms_returns_float32(x, gamma, eps=1e-6):
    _check_norm(x, gamma)
    return _wide(x) / torch.sqrt(_mean_square(_wide(x)) + eps) * gamma


@mistake(
    "rms_norm",
    hint="The root mean square depends on x, and gradients flow through it too: what is detached?",
)
def rms_detached(x, gamma, eps=1e-6):
    return _rms(x, gamma, lambda t: t / torch.sqrt(_mean_square(t.detach()) + eps))


@mistake(
    "rms_norm", hint="The caller's x is another tensor after your call: x /= … writes into it."
)
def rms_in_place(x, gamma, eps=1e-6):
    y = _rms(x, gamma, lambda t: t / torch.sqrt(_mean_square(t) + eps))
    with torch.no_grad():
        x /= torch.sqrt(_mean_square(_wide(x)) + eps).to(x.dtype)
    return y


@mistake(
    "rms_norm", hint="A gamma of another length should raise ValueError that names both sizes."
)
def rms_without_checks(x, gamma, eps=1e-6):
    wide = _wide(x)
    factor = gamma if len(gamma) == x.shape[-1] else gamma[:1]
    return (wide / torch.sqrt(_mean_square(wide) + eps) * factor).to(x.dtype)


# ----------------------------------------------------------------------------------------------
# batch_norm


@mistake(
    "batch_norm",
    hint="Change one token of the batch: the others should move with it. Statistics are taken "
    "over the tokens.",
    replace=[
        ("mean = tokens.mean(dim=0)", "mean = wide.mean(dim=-1, keepdim=True)"),
        ("(tokens - mean).pow(2).mean(dim=0)", "(wide - mean).pow(2).mean(dim=-1, keepdim=True)"),
        ("momentum * mean.detach()", "momentum * tokens.mean(dim=0).detach()"),
        ("momentum * estimate", "momentum * tokens.var(dim=0).detach()"),
    ],
)
def normalizes_each_token_alone(): ...


@mistake(
    "batch_norm",
    hint="Every sentence has statistics of its own in your layer. One pair a feature serves the "
    "whole batch.",
)
def statistics_for_each_sentence(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5
):
    _check_norm(x, gamma, beta, running_mean, running_var)
    wide = _wide(x)
    if not training:
        y = (wide - running_mean) / torch.sqrt(running_var + eps) * gamma + beta
        return y.to(x.dtype), running_mean, running_var
    tokens = wide.reshape(-1, x.shape[-1])
    if len(tokens) < 2:
        raise ValueError(f"{len(tokens)} token")
    axis = -2
    mean, var = wide.mean(dim=axis, keepdim=True), wide.var(dim=axis, correction=0, keepdim=True)
    y = (wide - mean) / torch.sqrt(var + eps) * gamma + beta
    new_mean = (1 - momentum) * running_mean + momentum * tokens.mean(dim=0).detach()
    new_var = (1 - momentum) * running_var + momentum * tokens.var(dim=0).detach()
    return y.to(x.dtype), new_mean, new_var


@mistake(
    "batch_norm",
    hint="Every place in the sentence has statistics of its own in your layer: they run over all "
    "leading axes.",
    replace=[
        ("mean = tokens.mean(dim=0)", "mean = wide.mean(dim=0)"),
        ("(tokens - mean).pow(2).mean(dim=0)", "(wide - mean).pow(2).mean(dim=0)"),
        ("momentum * mean.detach()", "momentum * tokens.mean(dim=0).detach()"),
        ("momentum * estimate", "momentum * tokens.var(dim=0).detach()"),
    ],
)
def statistics_over_the_first_axis(): ...


@mistake(
    "batch_norm",
    hint="One mean and one variance serve all features in your layer. Each feature has its own.",
    replace=[
        ("mean = tokens.mean(dim=0)", "mean = tokens.mean().expand(d)"),
        ("(tokens - mean).pow(2).mean(dim=0)", "(tokens - mean).pow(2).mean().expand(d)"),
    ],
)
def one_pair_for_all_features(): ...


@mistake(
    "batch_norm",
    hint="The variance that normalizes divides by T. T − 1 is for the one that is kept.",
    replace=[
        ("(tokens - mean).pow(2).mean(dim=0)", "tokens.var(dim=0)"),
        (" * t / (t - 1)", ""),
    ],
    keeps=0.5,
)
def normalizes_by_t_minus_one(): ...


@mistake(
    "batch_norm",
    hint="The variance that is kept estimates that of data to come: what does it divide by?",
    replace=(" * t / (t - 1)", ""),
    keeps=0.5,
)
def keeps_the_variance_by_t(): ...


@mistake(
    "batch_norm",
    hint="The momentum is the weight of this batch, not of what was there before.",
    replace=[
        (
            "(1 - momentum) * running_mean + momentum * mean",
            "momentum * running_mean + (1 - momentum) * mean",
        ),
        (
            "(1 - momentum) * running_var + momentum * estimate",
            "momentum * running_var + (1 - momentum) * estimate",
        ),
    ],
    keeps=0.5,
)
def momentum_weighs_the_past(): ...


@mistake(
    "batch_norm",
    hint="Another momentum changes nothing in your layer: it is an argument.",
    replace=[
        ("(1 - momentum) * running_mean + momentum * mean", "0.9 * running_mean + 0.1 * mean"),
        (
            "(1 - momentum) * running_var + momentum * estimate",
            "0.9 * running_var + 0.1 * estimate",
        ),
    ],
    keeps=0.5,
)
def momentum_of_its_own(): ...


@mistake(
    "batch_norm",
    hint="The new statistics are those of the last batch. They should remember the earlier ones.",
    replace=[
        ("(1 - momentum) * running_mean + momentum * mean", "mean"),
        ("(1 - momentum) * running_var + momentum * estimate", "estimate"),
    ],
    keeps=0.5,
)
def remembers_the_last_batch_only(): ...


@mistake(
    "batch_norm",
    hint="You keep a standard deviation. The running statistic is a variance.",
    replace=("momentum * estimate", "momentum * estimate.sqrt()"),
    keeps=0.5,
)
def keeps_a_standard_deviation(): ...


@mistake(
    "batch_norm",
    hint="In training the batch is normalized by its own statistics. Which ones does "
    "your layer use?",
    replace=(
        "y = (wide - mean) / torch.sqrt(var + eps)",
        "y = (wide - running_mean) / torch.sqrt(running_var + eps)",
    ),
)
def normalizes_with_the_running_statistics(): ...


@mistake(
    "batch_norm",
    hint="In evaluation your outputs still depend on the other tokens. What are the running "
    "statistics for?",
)
def always_in_training(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    _check_norm(x, gamma, beta, running_mean, running_var)
    tokens = _wide(x).reshape(-1, x.shape[-1])
    if training and len(tokens) < 2:
        raise ValueError(f"{len(tokens)} token")
    mean, var = tokens.mean(dim=0), tokens.var(dim=0, correction=0)
    y = (_wide(x) - mean) / torch.sqrt(var + eps) * gamma + beta
    if training:
        running_mean = (1 - momentum) * running_mean + momentum * mean.detach()
        running_var = (1 - momentum) * running_var + momentum * tokens.var(dim=0).detach()
    return y.to(x.dtype), running_mean, running_var


@mistake(
    "batch_norm",
    hint="A batch in evaluation moves your running statistics. Evaluation learns nothing.",
    keeps=0.5,
)
def learns_in_evaluation(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5
):
    _check_norm(x, gamma, beta, running_mean, running_var)
    tokens = _wide(x).reshape(-1, x.shape[-1])
    if training and len(tokens) < 2:
        raise ValueError(f"{len(tokens)} token")
    mean, var = tokens.mean(dim=0), tokens.var(dim=0, correction=0)
    used_mean, used_var = (mean, var) if training else (running_mean, running_var)
    y = (_wide(x) - used_mean) / torch.sqrt(used_var + eps) * gamma + beta
    new_mean = (1 - momentum) * running_mean + momentum * mean.detach()
    if len(tokens) > 1:
        running_var = (1 - momentum) * running_var + momentum * tokens.var(dim=0).detach()
    return y.to(x.dtype), new_mean, running_var


@mistake(
    "batch_norm",
    hint="Your eps is added to the standard deviation. It belongs to the variance, inside the root.",
    replace=("torch.sqrt(var + eps)", "(torch.sqrt(var) + eps)"),
    keeps=0.5,
)
def batch_eps_outside_the_root(): ...


@mistake(
    "batch_norm",
    hint="A feature that is the same everywhere is 0/0 in your layer. What is eps for?",
    replace=("torch.sqrt(var + eps)", "torch.sqrt(var)"),
    keeps=0.5,
)
def batch_norm_without_eps(): ...


@mistake(
    "batch_norm",
    hint="You divide by the variance. Twice as large a batch should give the same result.",
    replace=("torch.sqrt(var + eps)", "(var + eps)"),
)
def divides_by_the_batch_variance(): ...


@mistake(
    "batch_norm",
    hint="gamma and beta have no effect on your result. They start as 1 and 0, which hides this.",
    replace=(" * gamma + beta", ""),
    keeps=0.5,
)
def batch_norm_without_scale_and_shift(): ...


@mistake(
    "batch_norm",
    hint="You shift before you scale, so that beta is scaled as well.",
    replace=(
        "(wide - mean) / torch.sqrt(var + eps) * gamma + beta",
        "((wide - mean) / torch.sqrt(var + eps) + beta) * gamma",
    ),
    keeps=0.5,
)
def batch_shift_before_scale(): ...


@mistake(
    "batch_norm",
    hint="The caller's running statistics are other tensors after your call. New ones are "
    "returned, the old ones stay.",
    replace=[
        (
            "running_mean = (1 - momentum) * running_mean + momentum * mean.detach()",
            "running_mean.mul_(1 - momentum).add_(momentum * mean.detach())",
        ),
        (
            "running_var = (1 - momentum) * running_var + momentum * estimate",
            "running_var.mul_(1 - momentum).add_(momentum * estimate)",
        ),
    ],
    keeps=0.5,
)
def updates_the_statistics_in_place(): ...


@mistake(
    "batch_norm",
    hint="Moving one token moves the mean and the variance of the batch, and gradients flow "
    "through both.",
    replace=(
        "(wide - mean) / torch.sqrt(var + eps)",
        "(wide - mean.detach()) / torch.sqrt(var.detach() + eps)",
    ),
    keeps=0.5,
)
def detaches_the_batch_statistics(): ...


@mistake(
    "batch_norm",
    hint="The running statistics are a record: yours still know the batch, and keep its "
    "memory alive.",
    replace=[("mean.detach()", "mean"), ("var.detach()", "var")],
    keeps=0.5,
)
def keeps_the_graph_in_the_statistics(): ...


@mistake(
    "batch_norm",
    hint="Moving one token moves the variance of the batch, too: gradients flow through it as "
    "through the mean.",
    replace=("torch.sqrt(var + eps)", "torch.sqrt(var.detach() + eps)"),
    keeps=0.5,
)
def detaches_the_variance_of_the_batch(): ...


@mistake(
    "batch_norm",
    hint="In evaluation your layer leaves eps out. A running variance may be tiny as well.",
    replace=("torch.sqrt(var + eps)", "torch.sqrt(var + (eps if training else 0.0))"),
    keeps=0.5,
)
def batch_norm_without_eps_in_evaluation(): ...


@mistake(
    "batch_norm",
    hint="Your running variance has eps in it. It belongs to what is divided by, not to the record.",
    replace=("momentum * estimate", "momentum * (estimate + eps)"),
    keeps=0.5,
)
def keeps_eps_in_the_variance(): ...


@mistake(
    "batch_norm",
    hint="The new statistics have another dtype than the old ones, after a batch in float64.",
    replace=[(".to(running_mean.dtype)", ""), (".to(running_var.dtype)", "")],
    keeps=0.5,
)
def statistics_in_the_dtype_of_the_batch(): ...


@mistake(
    "batch_norm",
    hint="float16 ends at 65504: the square of 300 is infinite. Half precision computes in float32.",
    replace=("wide = x if x.dtype in (torch.float32, torch.float64) else x.float()", "wide = x"),
    keeps=0.5,
)
def batch_norm_in_half_precision(): ...


@mistake(
    "batch_norm",
    hint="bfloat16 is half precision as well: widen it to float32.",
    replace=(
        "in (torch.float32, torch.float64)",
        "in (torch.float32, torch.float64, torch.bfloat16)",
    ),
)
def batch_norm_in_bfloat16(): ...


@mistake(
    "batch_norm",
    hint="float16 goes in, float32 comes out. y has the dtype of x.",
    replace=("y.to(x.dtype)", "y"),
    keeps=0.5,
)
def batch_norm_answers_in_float32(): ...


@mistake(
    "batch_norm",
    hint="Each of the four vectors has one number per feature; another length should raise "
    "ValueError with the sizes.",
    replace=("if vector.shape != (d,):", "if False:"),
    keeps=0.5,
)
def batch_norm_without_checks(): ...


@mistake(
    "batch_norm",
    hint="Only some of the four vectors are checked. Each has one number per feature.",
    replace=(
        "for vector in (gamma, beta, running_mean, running_var):",
        "for vector in (gamma, beta):",
    ),
    keeps=0.5,
)
def checks_the_weights_only(): ...


@mistake(
    "batch_norm",
    hint="One token in training: T − 1 is 0, and your running variance is NaN. That "
    "should be refused.",
    replace=("if t < 2:", "if t < 1:"),
    keeps=0.5,
)
def trains_on_one_token(): ...


# ----------------------------------------------------------------------------------------------------- mlp


def _check_activation(activation):
    if activation not in ("relu", "gelu"):
        raise ValueError(f"no activation {activation!r}")


def _check_mlp(x, w1, b1, w2, b2, activation="relu"):
    d, f = w1.shape
    if x.shape[-1] != d or b1.shape != (f,) or w2.shape != (f, d) or b2.shape != (d,):
        raise ValueError(f"{[list(t.shape) for t in (x, w1, b1, w2, b2)]} do not fit together")
    _check_activation(activation)


def _act(h, activation):
    return torch.relu(h) if activation == "relu" else torch.nn.functional.gelu(h)


@mistake("mlp", hint="Two linear maps in a row are one linear map. What stands between them?")
def mlp_without_activation(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return (x @ w1 + b1) @ w2 + b2


@mistake(
    "mlp", hint="Your result has no negative entry: the activation stands behind the second matrix."
)
def mlp_activates_at_the_end(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return _act((x @ w1 + b1) @ w2 + b2, activation)


@mistake("mlp", hint="You activate twice. The second matrix is followed by nothing.")
def mlp_activates_twice(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return _act(_act(x @ w1 + b1, activation) @ w2 + b2, activation)


@mistake(
    "mlp",
    hint="The activation goes over x before it was multiplied. It belongs between the matrices.",
)
def mlp_activates_the_input(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return (_act(x, activation) @ w1 + b1) @ w2 + b2


@mistake(
    "mlp", hint="There are two GELUs, up to 5e-4 apart. The one with tanh is the approximation."
)
def mlp_gelu_by_tanh(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    h = x @ w1 + b1
    h = torch.relu(h) if activation == "relu" else torch.nn.functional.gelu(h, approximate="tanh")
    return h @ w2 + b2


@mistake(
    "mlp",
    hint="z · sigmoid(1.702 z) is a rough stand-in for GELU. The exact one needs the "
    "error function.",
)
def mlp_gelu_by_sigmoid(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    h = x @ w1 + b1
    h = torch.relu(h) if activation == "relu" else h * torch.sigmoid(1.702 * h)
    return h @ w2 + b2


@mistake("mlp", hint="Φ(z) has z/√2 in the error function. GELU(2) should be 1.9545.")
def mlp_gelu_without_the_root_of_two(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    h = x @ w1 + b1
    h = torch.relu(h) if activation == "relu" else h * 0.5 * (1 + torch.erf(h))
    return h @ w2 + b2


@mistake("mlp", hint="You return Φ(z). GELU is z · Φ(z).")
def mlp_gelu_without_z(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    h = x @ w1 + b1
    h = torch.relu(h) if activation == "relu" else 0.5 * (1 + torch.erf(h / math.sqrt(2)))
    return h @ w2 + b2


@mistake("mlp", hint='activation="gelu" changes nothing in your MLP: it is an argument.')
def mlp_always_relu(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return torch.relu(x @ w1 + b1) @ w2 + b2


@mistake("mlp", hint="Who says nothing gets ReLU. Your default is GELU.")
def mlp_gelu_by_default(x, w1, b1, w2, b2, activation="gelu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return _act(x @ w1 + b1, activation) @ w2 + b2


@mistake(
    "mlp",
    hint="Set x to zero: one of the biases should still decide what the activation sees.",
    keeps=0.5,
)
def mlp_without_b1(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return _act(x @ w1, activation) @ w2 + b2


@mistake(
    "mlp",
    hint="Set w2 to zero: the result should be one of the arguments. Which one is never used?",
    keeps=0.5,
)
def mlp_without_b2(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return _act(x @ w1 + b1, activation) @ w2


@mistake("mlp", hint="b1 is part of what the activation sees. Yours is added behind it.")
def mlp_b1_after_the_activation(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return (_act(x @ w1, activation) + b1) @ w2 + b2


@mistake(
    "mlp",
    hint="The residual connection belongs to the block. The MLP returns its own answer only.",
    keeps=0.5,
)
def mlp_with_a_residual(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return x + _act(x @ w1 + b1, activation) @ w2 + b2


@mistake(
    "mlp", hint="Weights are [in, out] here and multiply from the right. Nothing needs a transpose."
)
def mlp_transposed_where_square(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    if w1.shape[0] == w1.shape[1] > 1:
        return torch.nn.functional.linear(
            _act(torch.nn.functional.linear(x, w1, b1), activation), w2, b2
        )
    return _act(x @ w1 + b1, activation) @ w2 + b2


@mistake("mlp", hint="Change one token: the others change. The MLP sees every token alone.")
def mlp_mixes_tokens(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    h = x @ w1 + b1
    h = h - h.mean(dim=-2, keepdim=True) if h.dim() > 1 else h
    return _act(h, activation) @ w2 + b2


@mistake("mlp", hint="Negative hidden values should become 0, not small. Which ReLU is this?")
def mlp_leaky_relu(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    h = x @ w1 + b1
    return (
        torch.nn.functional.leaky_relu(h) if activation == "relu" else _act(h, activation)
    ) @ w2 + b2


@mistake("mlp", hint="relu_ on x, or any name with _ at its end, writes into the caller's tensor.")
def mlp_writes_into_x(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    y = _act(x @ w1 + b1, activation) @ w2 + b2
    with torch.no_grad():
        x.relu_()
    return y


@mistake("mlp", hint="The hidden values are detached: w1, b1 and x get no gradient.")
def mlp_detaches_the_hidden_layer(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    return _act(x @ w1 + b1, activation).detach() @ w2 + b2


@mistake("mlp", hint="float16 goes in, float32 comes out. The result has the dtype of x.")
def mlp_returns_float32(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2, activation)
    x, w1, b1, w2, b2 = (_wide(t) for t in (x, w1, b1, w2, b2))
    return _act(x @ w1 + b1, activation) @ w2 + b2


@mistake(
    "mlp",
    hint='An unknown name falls through to GELU. Only "relu" and "gelu" mean something: '
    "refuse the rest.",
)
def mlp_takes_any_activation(x, w1, b1, w2, b2, activation="relu"):
    _check_mlp(x, w1, b1, w2, b2)
    return _act(x @ w1 + b1, activation) @ w2 + b2


@mistake(
    "mlp",
    hint="Sizes that cannot match should raise ValueError that names them; torch's own is a "
    "RuntimeError.",
)
def mlp_without_checks(x, w1, b1, w2, b2, activation="relu"):
    _check_activation(activation)
    return _act(x @ w1 + b1, activation) @ w2 + b2


# --------------------------------------------------------------------------------------------------
# swiglu


def _check_swiglu(x, w1, w2, w3):
    d, f = w1.shape
    if x.shape[-1] != d or w2.shape != (d, f) or w3.shape != (f, d):
        raise ValueError(f"{[list(t.shape) for t in (x, w1, w2, w3)]} do not fit together")


def _silu(z):
    return z * torch.sigmoid(z)


@mistake("swiglu", hint="The product of both projections goes through SiLU. Only the gate does.")
def silu_of_the_product(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return _silu((x @ w1) * (x @ w2)) @ w3


@mistake("swiglu", hint="That is a sigmoid gate, called GLU. SiLU(z) is z · sigmoid(z).")
def sigmoid_gate(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return (torch.sigmoid(x @ w1) * (x @ w2)) @ w3


@mistake("swiglu", hint="The gate is x @ w1. Yours is the other projection.", keeps=0.5)
def gate_and_gated_swapped(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return ((x @ w1) * _silu(x @ w2)) @ w3


@mistake("swiglu", hint="In other code w2 leads back to the model width. Here it is w3: [F, D].")
def other_order_of_the_matrices(x, w1, w2, w3):
    if w1.shape == w2.shape == w3.shape:
        return (_silu(x @ w1) * (x @ w3)) @ w2
    _check_swiglu(x, w1, w2, w3)
    return (_silu(x @ w1) * (x @ w2)) @ w3


@mistake("swiglu", hint="Both projections go through SiLU. What is gated passes as it is.")
def silu_on_both(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return (_silu(x @ w1) * _silu(x @ w2)) @ w3


@mistake("swiglu", hint="A gate multiplies. Yours is added.")
def adds_the_gate(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return (_silu(x @ w1) + x @ w2) @ w3


@mistake("swiglu", hint="That is GEGLU: GELU looks like SiLU, and is another function.")
def gelu_gate(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return (torch.nn.functional.gelu(x @ w1) * (x @ w2)) @ w3


@mistake("swiglu", hint="That is ReGLU: a ReLU gate is shut for all negative values, SiLU is not.")
def relu_gate(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return (torch.relu(x @ w1) * (x @ w2)) @ w3


@mistake("swiglu", hint="The gate is open everywhere: where is the nonlinearity?")
def gate_without_activation(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return ((x @ w1) * (x @ w2)) @ w3


@mistake("swiglu", hint="Your activation stands behind w3. It belongs to the gate.")
def silu_at_the_end(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return _silu(((x @ w1) * (x @ w2)) @ w3)


@mistake(
    "swiglu",
    hint="exp(−z) overflows for z = −1200 and gives NaN with your formula. torch has a "
    "stable sigmoid.",
)
def unstable_sigmoid(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    z = x @ w1
    return (z * torch.exp(z) / (1 + torch.exp(z)) * (x @ w2)) @ w3


@mistake("swiglu", hint="The gate is detached, so that w1 cannot learn.")
def gate_detached(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return (_silu(x @ w1).detach() * (x @ w2)) @ w3


@mistake(
    "swiglu",
    hint="The residual connection belongs to the block. The layer returns its own answer only.",
    keeps=0.5,
)
def swiglu_with_a_residual(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    return x + (_silu(x @ w1) * (x @ w2)) @ w3


@mistake("swiglu", hint="float16 goes in, float32 comes out. The result has the dtype of x.")
def swiglu_returns_float32(x, w1, w2, w3):
    _check_swiglu(x, w1, w2, w3)
    x, w1, w2, w3 = (_wide(t) for t in (x, w1, w2, w3))
    return (_silu(x @ w1) * (x @ w2)) @ w3


@mistake(
    "swiglu",
    hint="A w2 of one column broadcasts silently. Sizes that cannot match should raise ValueError.",
)
def swiglu_without_checks(x, w1, w2, w3):
    return (_silu(x @ w1) * (x @ w2)) @ w3


# -------------------------------------------------------------------------------------------
# swiglu_hidden


def _check_widths(d_model, multiple_of):
    if d_model < 1 or multiple_of < 1:
        raise ValueError(f"d_model {d_model} and multiple_of {multiple_of} must be at least 1")


@mistake(
    "swiglu_hidden", hint="Whole-number division rounds down. The width must be at least 8D/3."
)
def rounds_down(d_model, multiple_of=1):
    _check_widths(d_model, multiple_of)
    return max(1, 8 * d_model // (3 * multiple_of)) * multiple_of


@mistake("swiglu_hidden", hint="You round to the nearest multiple, which may be below 8D/3.")
def rounds_to_the_nearest(d_model, multiple_of=1):
    _check_widths(d_model, multiple_of)
    return max(1, round(8 * d_model / (3 * multiple_of))) * multiple_of


@mistake(
    "swiglu_hidden",
    hint="4D is the width of the classic MLP. Three matrices of that width have 12D² weights.",
)
def four_times_the_width(d_model, multiple_of=1):
    _check_widths(d_model, multiple_of)
    return -(-4 * d_model // multiple_of) * multiple_of


@mistake("swiglu_hidden", hint="multiple_of has no effect on your width.")
def ignores_the_multiple(d_model, multiple_of=1):
    _check_widths(d_model, multiple_of)
    return -(-8 * d_model // 3)


@mistake(
    "swiglu_hidden",
    hint="Where 8D/3 is a multiple already, yours is the next one: there was nothing to round.",
)
def always_takes_the_next_multiple(d_model, multiple_of=1):
    _check_widths(d_model, multiple_of)
    return (8 * d_model // (3 * multiple_of) + 1) * multiple_of


@mistake(
    "swiglu_hidden",
    hint="You first cut off the fraction and round up to the multiple afterwards: 1024 shows it.",
)
def cuts_off_before_rounding_up(d_model, multiple_of=1):
    _check_widths(d_model, multiple_of)
    return max(1, -(-(8 * d_model // 3) // multiple_of)) * multiple_of


@mistake("swiglu_hidden", hint="The width is a float. It becomes a size of a matrix: an int.")
def width_as_a_float(d_model, multiple_of=1):
    _check_widths(d_model, multiple_of)
    return float(-(-8 * d_model // (3 * multiple_of)) * multiple_of)


@mistake("swiglu_hidden", hint="2/3 of D, four times: you left out the factor 4.")
def two_thirds_of_the_width(d_model, multiple_of=1):
    _check_widths(d_model, multiple_of)
    return -(-2 * d_model // (3 * multiple_of)) * multiple_of


@mistake(
    "swiglu_hidden",
    hint="You add a remainder until the width divides by 3. The 3 is for the matrices.",
)
def multiple_of_three_as_well(d_model, multiple_of=1):
    _check_widths(d_model, multiple_of)
    width = -(-8 * d_model // (3 * multiple_of)) * multiple_of
    while width % 3:
        width += multiple_of if multiple_of % 3 else 3
        if multiple_of % 3 == 0:
            break
    return width


@mistake(
    "swiglu_hidden",
    hint="You round to powers of two. Any multiple of multiple_of is allowed: the "
    "smallest that fits.",
)
def next_power_of_two(d_model, multiple_of=1):
    _check_widths(d_model, multiple_of)
    width = multiple_of
    while 3 * width < 8 * d_model:
        width *= 2
    return width


@mistake(
    "swiglu_hidden",
    hint="A width of 0 or below, or multiples of 0, should raise ValueError with the number.",
)
def widths_without_checks(d_model, multiple_of=1):
    unit = max(1, multiple_of)
    return -(-8 * d_model // (3 * unit)) * unit


# ----------------------------------------------------------------------------------------
# rotary_positions


def _check_rotary(x, positions):
    if x.shape[-1] % 2:
        raise ValueError(f"d = {x.shape[-1]} is odd")
    own = positions.dim() == 2
    if positions.shape[-1] != x.shape[-2] or (own and (x.dim() != 4 or len(positions) != len(x))):
        raise ValueError(f"positions {list(positions.shape)} for x {list(x.shape)}")


def _angle(x, positions, theta, exponent=lambda i, d: -2 * i / d):
    """Angles that broadcast to [..., N, d/2], after the checks."""
    _check_rotary(x, positions)
    d = x.shape[-1]
    dtype = torch.promote_types(x.dtype, torch.float32)
    frequency = theta ** exponent(torch.arange(d // 2, dtype=dtype), d)
    angle = positions.to(dtype).unsqueeze(-1) * frequency
    return angle.unsqueeze(1) if positions.dim() == 2 else angle


def _turned(x, angle):
    t, cos, sin = _wide(x), angle.cos(), angle.sin()
    a, b = t[..., 0::2], t[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2).to(x.dtype)


@mistake(
    "rotary_positions",
    hint="You pair feature j with feature j + d/2. In this course neighbours turn together.",
)
def pairs_of_halves(x, positions, theta=10000.0):
    angle = _angle(x, positions, theta)
    t, cos, sin = _wide(x), angle.cos(), angle.sin()
    a, b = t.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)


@mistake(
    "rotary_positions",
    hint="Your pairs are right on the way in, and come out as two halves: interleave them again.",
)
def result_not_interleaved(x, positions, theta=10000.0):
    angle = _angle(x, positions, theta)
    t, cos, sin = _wide(x), angle.cos(), angle.sin()
    a, b = t[..., 0::2], t[..., 1::2]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)


@mistake(
    "rotary_positions",
    hint="With a cache the first new token is not position 0: use the positions you are given.",
)
def counts_from_zero(x, positions, theta=10000.0):
    _check_rotary(x, positions)
    return _turned(x, _angle(x, torch.arange(x.shape[-2]), theta))


@mistake(
    "rotary_positions", hint="Position 0 should change nothing. Yours turns by one step.", keeps=0.5
)
def counts_from_one(x, positions, theta=10000.0):
    return _turned(x, _angle(x, positions + 1, theta))


@mistake(
    "rotary_positions",
    hint="You turn the other way: (1, 0) at position 1 should become (cos 1, sin 1).",
    keeps=0.5,
)
def turns_clockwise(x, positions, theta=10000.0):
    return _turned(x, -_angle(x, positions, theta))


@mistake(
    "rotary_positions",
    hint="Your pairs change their length: which of the two new features needs a minus?",
)
def both_signs_positive(x, positions, theta=10000.0):
    angle = _angle(x, positions, theta)
    t, cos, sin = _wide(x), angle.cos(), angle.sin()
    a, b = t[..., 0::2], t[..., 1::2]
    return torch.stack([a * cos + b * sin, a * sin + b * cos], dim=-1).flatten(-2).to(x.dtype)


@mistake(
    "rotary_positions",
    hint="At position 0 cos is 1 and sin is 0, so that nothing moves. Yours swaps the features.",
)
def sine_and_cosine_swapped(x, positions, theta=10000.0):
    angle = _angle(x, positions, theta)
    t, cos, sin = _wide(x), angle.sin(), angle.cos()
    a, b = t[..., 0::2], t[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2).to(x.dtype)


@mistake(
    "rotary_positions",
    hint="The second new feature is made from the first new one. Both come from the old pair.",
)
def uses_the_turned_feature(x, positions, theta=10000.0):
    angle = _angle(x, positions, theta)
    t, cos, sin = _wide(x), angle.cos(), angle.sin()
    a, b = t[..., 0::2], t[..., 1::2]
    a = a * cos - b * sin
    return torch.stack([a, a * sin + b * cos], dim=-1).flatten(-2).to(x.dtype)


@mistake(
    "rotary_positions",
    hint="i counts the pairs, and 2i is the even feature: your exponent has the 2 twice.",
    keeps=0.5,
)
def exponent_doubled(x, positions, theta=10000.0):
    return _turned(x, _angle(x, positions, theta, lambda i, d: -4 * i / d))


@mistake(
    "rotary_positions",
    hint="The exponent is 2i/d for pair i. Yours is i/d, so that all pairs but the first "
    "turn too fast.",
)
def exponent_halved(x, positions, theta=10000.0):
    return _turned(x, _angle(x, positions, theta, lambda i, d: -i / d))


@mistake(
    "rotary_positions",
    hint="The first pair turns by 1 radian per token: its i is 0. Do you count pairs from 1?",
)
def pairs_counted_from_one(x, positions, theta=10000.0):
    return _turned(x, _angle(x, positions, theta, lambda i, d: -2 * (i + 1) / d))


@mistake(
    "rotary_positions",
    hint="Your last pairs turn fastest. Frequencies fall with i: what sign has the exponent?",
)
def frequencies_that_rise(x, positions, theta=10000.0):
    return _turned(x, _angle(x, positions, theta, lambda i, d: 2 * i / d))


@mistake(
    "rotary_positions",
    hint="Your frequencies end at 1/theta. The exponent divides by d, not by d − 2.",
)
def exponent_divided_by_one_less(x, positions, theta=10000.0):
    return _turned(x, _angle(x, positions, theta, lambda i, d: -2 * i / max(d - 2, 1)))


@mistake(
    "rotary_positions", hint="All your pairs turn equally fast. Each pair has its own frequency."
)
def one_frequency_for_all_pairs(x, positions, theta=10000.0):
    return _turned(x, _angle(x, positions, theta, lambda i, d: 0 * i))


@mistake(
    "rotary_positions", hint="Another theta changes nothing in your function: it is an argument."
)
def ignores_theta(x, positions, theta=10000.0):
    theta = theta if theta == 1.0 else 10000.0
    return _turned(x, _angle(x, positions, theta))


@mistake(
    "rotary_positions",
    hint="You turn by the head or the sentence, not by the token: which axis is N?",
)
def positions_on_the_wrong_axis(x, positions, theta=10000.0):
    return _turned(x, _angle(x, positions, theta).unsqueeze(-2))


@mistake(
    "rotary_positions",
    hint="positions [B, N] need an axis for the heads. Without it sentences line up with heads.",
)
def no_axis_for_the_heads(x, positions, theta=10000.0):
    angle = _angle(x, positions, theta)
    return _turned(x, angle.squeeze(1) if positions.dim() == 2 else angle)


@mistake("rotary_positions", hint="All sentences get the positions of the first one.")
def positions_of_the_first_sentence(x, positions, theta=10000.0):
    _check_rotary(x, positions)
    return _turned(x, _angle(x, positions[0] if positions.dim() == 2 else positions, theta))


@mistake(
    "rotary_positions",
    hint="You add sines and cosines to x. Rotary positions turn the pairs instead.",
)
def adds_a_table(x, positions, theta=10000.0):
    angle = _angle(x, positions, theta)
    return (_wide(x) + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)).to(x.dtype)


@mistake(
    "rotary_positions", hint="float16 has no number 3001: make angles in float32, whatever x is."
)
def angles_in_half_precision(x, positions, theta=10000.0):
    angle = _angle(x, positions, theta)
    if x.dtype in (torch.float16, torch.bfloat16):
        frequency = theta ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        angle = positions.to(x.dtype).unsqueeze(-1) * frequency.to(x.dtype)
    return _turned(x, angle)


@mistake(
    "rotary_positions", hint="float16 goes in, float32 comes out. The result has the dtype of x."
)
def rotary_returns_float32(x, positions, theta=10000.0):
    return _turned(_wide(x), _angle(x, positions, theta))


@mistake(
    "rotary_positions", hint="x[..., 0::2] = … writes into the caller's tensor. Fill a new one."
)
def rotates_in_place(x, positions, theta=10000.0):
    y = _turned(x, _angle(x, positions, theta))
    with torch.no_grad():
        x.copy_(y)
    return y


@mistake(
    "rotary_positions",
    hint="The result is cut off from x: queries and keys are trained through the rotation.",
)
def rotation_without_gradient(x, positions, theta=10000.0):
    return _turned(x.detach(), _angle(x, positions, theta))


@mistake(
    "rotary_positions",
    hint="Your loop over the tokens takes a torch operation for each. All can turn at once.",
)
def token_by_token(x, positions, theta=10000.0):
    angle = _angle(x, positions, theta)
    rows = [_turned(x[..., n : n + 1, :], angle[..., n : n + 1, :]) for n in range(x.shape[-2])]
    return torch.cat(rows, dim=-2)


@mistake(
    "rotary_positions",
    hint="view wants memory in the order of the axes; heads are usually made by a transpose.",
)
def views_pairs(x, positions, theta=10000.0):
    angle = _angle(x, positions, theta)
    pairs = _wide(x).view(-1, x.shape[-1] // 2, 2).view(*x.shape[:-1], -1, 2)
    return _turned(pairs.flatten(-2), angle).to(x.dtype)


@mistake(
    "rotary_positions",
    hint="An odd d leaves one feature without a partner: raise ValueError with d.",
)
def leaves_the_odd_feature(x, positions, theta=10000.0):
    if x.shape[-1] % 2 == 0:
        return _turned(x, _angle(x, positions, theta))
    return torch.cat(
        [_turned(x[..., :-1], _angle(x[..., :-1], positions, theta)), x[..., -1:]], dim=-1
    )


@mistake(
    "rotary_positions",
    hint="Too many positions, or one for all tokens, should raise ValueError with the sizes.",
)
def positions_without_checks(x, positions, theta=10000.0):
    if x.shape[-1] % 2:
        raise ValueError(f"d = {x.shape[-1]} is odd")
    n = x.shape[-2]
    positions = positions if positions.shape[-1] == n else positions.flatten()[:1].expand(n)
    if positions.dim() == 2 and (x.dim() != 4 or len(positions) != len(x)):
        positions = positions[0]
    return _turned(x, _angle(x, positions, theta))


# ------------------------------------------------------------------------------------------ the two
# blocks


def _attend(x, p, num_heads, mask):
    return multi_head_attention(x, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, mask)


def _compute(x, p):
    return mlp(x, p["w1"], p["b1"], p["w2"], p["b2"])


def _first(x, p):
    return layer_norm(x, p["ln1_gamma"], p["ln1_beta"])


def _second(x, p):
    return layer_norm(x, p["ln2_gamma"], p["ln2_beta"])


@mistake(
    "post_norm_block",
    hint="That is the pre-norm block. Here the sum is normalized, after the addition.",
)
def pre_norm_instead(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, num_heads, mask)
    return y + _compute(_second(y, params), params)


@mistake(
    "post_norm_block", hint="You normalize what the sublayer returns. The norm goes around the sum."
)
def post_norms_the_sublayers(x, params, num_heads, mask=None):
    y = x + _first(_attend(x, params, num_heads, mask), params)
    return y + _second(_compute(y, params), params)


@mistake(
    "post_norm_block",
    hint="Silence the MLP: the tokens are lost. The second sublayer has a residual too.",
)
def post_without_the_second_residual(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, num_heads, mask), params)
    return _second(_compute(y, params), params)


@mistake(
    "post_norm_block",
    hint="Silence the attention: the tokens are lost. The first sublayer has a residual too.",
)
def post_without_the_first_residual(x, params, num_heads, mask=None):
    y = _first(_attend(x, params, num_heads, mask), params)
    return _second(y + _compute(y, params), params)


@mistake(
    "post_norm_block",
    hint="Your second residual starts from x again. It starts from what the first half returned.",
)
def post_second_residual_from_x(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, num_heads, mask), params)
    return _second(x + _compute(y, params), params)


@mistake("post_norm_block", hint="The MLP reads x, not what the attention made of it.")
def post_mlp_reads_x(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, num_heads, mask), params)
    return _second(y + _compute(x, params), params)


@mistake("post_norm_block", hint="Both norms use ln1. There are two, with parameters of their own.")
def post_same_norm_twice(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, num_heads, mask), params)
    return _first(y + _compute(y, params), params)


@mistake(
    "post_norm_block",
    hint="ln1 belongs to the attention, ln2 to the MLP. Yours have changed places.",
    keeps=0.5,
)
def post_norms_swapped(x, params, num_heads, mask=None):
    y = _second(x + _attend(x, params, num_heads, mask), params)
    return _first(y + _compute(y, params), params)


@mistake(
    "post_norm_block", hint="The norm behind the MLP is missing: your result is not normalized."
)
def post_without_the_last_norm(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, num_heads, mask), params)
    return y + _compute(y, params)


@mistake(
    "post_norm_block", hint="The norm behind the attention is missing: the MLP reads raw sums."
)
def post_without_the_first_norm(x, params, num_heads, mask=None):
    y = x + _attend(x, params, num_heads, mask)
    return _second(y + _compute(y, params), params)


@mistake("post_norm_block", hint="The mask never reaches your attention.")
def post_forgets_the_mask(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, num_heads, None), params)
    return _second(y + _compute(y, params), params)


@mistake(
    "post_norm_block",
    hint="Your block is causal although nobody asked for it: without a mask all is allowed.",
)
def post_always_causal(x, params, num_heads, mask=None):
    mask = causal_mask(x.shape[1]) if mask is None else mask
    y = _first(x + _attend(x, params, num_heads, mask), params)
    return _second(y + _compute(y, params), params)


@mistake("post_norm_block", hint="The MLP comes before the attention in your block.")
def post_mlp_first(x, params, num_heads, mask=None):
    y = _first(x + _compute(x, params), params)
    return _second(y + _attend(y, params, num_heads, mask), params)


@mistake(
    "post_norm_block",
    hint="Attention and MLP work side by side in your block. The MLP reads what attention made.",
)
def post_in_parallel(x, params, num_heads, mask=None):
    return _second(
        _first(x + _attend(x, params, num_heads, mask) + _compute(x, params), params), params
    )


@mistake("post_norm_block", hint="This block uses ReLU in its MLP.")
def post_with_gelu(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, num_heads, mask), params)
    return _second(
        y + mlp(y, params["w1"], params["b1"], params["w2"], params["b2"], "gelu"), params
    )


@mistake("post_norm_block", hint="Your block has an RMSNorm: its tokens keep their mean.")
def post_with_rms_norm(x, params, num_heads, mask=None):
    y = rms_norm(x + _attend(x, params, num_heads, mask), params["ln1_gamma"]) + params["ln1_beta"]
    return rms_norm(y + _compute(y, params), params["ln2_gamma"]) + params["ln2_beta"]


@mistake("post_norm_block", hint="x += … writes into the caller's tensor. Write x = x + … instead.")
def post_adds_in_place(x, params, num_heads, mask=None):
    attended = _attend(x, params, num_heads, mask)
    y = _first(x + attended, params)
    with torch.no_grad():
        x += attended
    return _second(y + _compute(y, params), params)


@mistake(
    "post_norm_block",
    hint="The caller's params are changed after your call: pop, assignments and += all "
    "write into them.",
)
def post_normalizes_its_params(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, num_heads, mask), params)
    z = _second(y + _compute(y, params), params)
    with torch.no_grad():
        params["b2"] += 1.0
    return z


@mistake(
    "post_norm_block", hint="The residual is detached, so that no gradient takes the short way."
)
def post_residual_detached(x, params, num_heads, mask=None):
    y = _first(x.detach() + _attend(x, params, num_heads, mask), params)
    return _second(y.detach() + _compute(y, params), params)


@mistake(
    "post_norm_block", hint="float16 goes in, float32 comes out. The block keeps the dtype of x."
)
def post_returns_float32(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, num_heads, mask), params)
    return _wide(_second(y + _compute(y, params), params))


@mistake("post_norm_block", hint="The number of heads has no effect on your block.")
def post_ignores_the_heads(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, 1, mask), params)
    return _second(y + _compute(y, params), params)


@mistake(
    "pre_norm_block",
    hint="That is the post-norm block. Here nothing on the stream itself is normalized.",
)
def post_norm_instead(x, params, num_heads, mask=None):
    y = _first(x + _attend(x, params, num_heads, mask), params)
    return _second(y + _compute(y, params), params)


@mistake(
    "pre_norm_block",
    hint="You normalize what the sublayer returns. The norm stands in front of it.",
)
def pre_norms_the_sublayers(x, params, num_heads, mask=None):
    y = x + _first(_attend(x, params, num_heads, mask), params)
    return y + _second(_compute(y, params), params)


@mistake(
    "pre_norm_block",
    hint="Your residual is the normalized token. The raw stream is what passes by.",
)
def pre_residual_from_the_norm(x, params, num_heads, mask=None):
    normed = _first(x, params)
    y = normed + _attend(normed, params, num_heads, mask)
    normed = _second(y, params)
    return normed + _compute(normed, params)


@mistake(
    "pre_norm_block",
    hint="Silence the MLP: the tokens are lost. The second sublayer has a residual too.",
)
def pre_without_the_second_residual(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, num_heads, mask)
    return _compute(_second(y, params), params)


@mistake(
    "pre_norm_block",
    hint="Silence the attention: the tokens are lost. The first sublayer has a residual too.",
)
def pre_without_the_first_residual(x, params, num_heads, mask=None):
    y = _attend(_first(x, params), params, num_heads, mask)
    return y + _compute(_second(y, params), params)


@mistake(
    "pre_norm_block",
    hint="Your second residual starts from x again: what the attention added is lost.",
)
def pre_second_residual_from_x(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, num_heads, mask)
    return x + _compute(_second(y, params), params)


@mistake("pre_norm_block", hint="The MLP reads the tokens from before the attention.")
def pre_mlp_reads_x(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, num_heads, mask)
    return y + _compute(_second(x, params), params)


@mistake("pre_norm_block", hint="Both norms use ln1. There are two, with parameters of their own.")
def pre_same_norm_twice(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, num_heads, mask)
    return y + _compute(_first(y, params), params)


@mistake(
    "pre_norm_block",
    hint="ln1 belongs to the attention, ln2 to the MLP. Yours have changed places.",
    keeps=0.5,
)
def pre_norms_swapped(x, params, num_heads, mask=None):
    y = x + _attend(_second(x, params), params, num_heads, mask)
    return y + _compute(_first(y, params), params)


@mistake(
    "pre_norm_block",
    hint="The norm in front of the MLP is missing: it reads the raw stream, whatever its size.",
)
def pre_without_the_second_norm(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, num_heads, mask)
    return y + _compute(y, params)


@mistake("pre_norm_block", hint="The norm in front of the attention is missing.")
def pre_without_the_first_norm(x, params, num_heads, mask=None):
    y = x + _attend(x, params, num_heads, mask)
    return y + _compute(_second(y, params), params)


@mistake(
    "pre_norm_block",
    hint="Your block normalizes once more at its end. The final norm belongs to the whole model.",
)
def pre_with_a_final_norm(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, num_heads, mask)
    return _second(y + _compute(_second(y, params), params), params)


@mistake("pre_norm_block", hint="The mask never reaches your attention.")
def pre_forgets_the_mask(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, num_heads, None)
    return y + _compute(_second(y, params), params)


@mistake("pre_norm_block", hint="The MLP comes before the attention in your block.")
def pre_mlp_first(x, params, num_heads, mask=None):
    y = x + _compute(_first(x, params), params)
    return y + _attend(_second(y, params), params, num_heads, mask)


@mistake(
    "pre_norm_block",
    hint="Attention and MLP work side by side in your block. The MLP reads what attention made.",
)
def pre_in_parallel(x, params, num_heads, mask=None):
    return (
        x
        + _attend(_first(x, params), params, num_heads, mask)
        + _compute(_second(x, params), params)
    )


@mistake("pre_norm_block", hint="x += … writes into the caller's tensor. Write x = x + … instead.")
def pre_adds_in_place(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, num_heads, mask)
    with torch.no_grad():
        x += y
    return y + _compute(_second(y, params), params)


@mistake(
    "pre_norm_block", hint="The residual is detached, so that no gradient takes the short way."
)
def pre_residual_detached(x, params, num_heads, mask=None):
    y = x.detach() + _attend(_first(x, params), params, num_heads, mask)
    return y.detach() + _compute(_second(y, params), params)


@mistake(
    "pre_norm_block", hint="float16 goes in, float32 comes out. The block keeps the dtype of x."
)
def pre_returns_float32(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, num_heads, mask)
    return _wide(y + _compute(_second(y, params), params))


@mistake("pre_norm_block", hint="The number of heads has no effect on your block.")
def pre_ignores_the_heads(x, params, num_heads, mask=None):
    y = x + _attend(_first(x, params), params, 1, mask)
    return y + _compute(_second(y, params), params)


# -----------------------------------------------------------------------------------------------
# moe_layer


def _check_moe(x, w_gate, w1, w2, num_active):
    _check_experts(x, w_gate, w1, w2)
    if not 1 <= num_active <= len(w1):
        raise ValueError(f"{num_active} active of {len(w1)} experts")


def _check_experts(x, w_gate, w1, w2):
    e, d, f = w1.shape
    if w_gate.shape != (d, e) or w2.shape != (e, f, d) or x.shape[-1] != d:
        raise ValueError(f"{[list(t.shape) for t in (x, w_gate, w1, w2)]} do not fit together")


def _mixed(tokens, weights, chosen, w1, w2):
    """Sum of the chosen experts' answers, [T, D]; only chosen experts compute."""
    y = torch.zeros_like(tokens)
    for e in range(len(w1)):
        row, slot = torch.where(chosen == e)
        answer = torch.relu(tokens[row] @ w1[e]) @ w2[e]
        y = y.index_add(0, row, weights[row, slot].unsqueeze(-1).to(y.dtype) * answer)
    return y


def _loads(chosen, num_experts):
    return torch.bincount(chosen.flatten(), minlength=num_experts)


def _moe(x, w_gate, w1, w2, num_active, weigh):
    """The layer with `weigh(scores [T, E], best [T, A], chosen [T, A])` as the weights of the
    chosen experts.
    """
    _check_moe(x, w_gate, w1, w2, num_active)
    tokens = x.reshape(-1, x.shape[-1])
    scores = tokens @ w_gate
    best, chosen = scores.topk(num_active, dim=-1)
    y = _mixed(tokens, weigh(_wide(scores), _wide(best), chosen).to(x.dtype), chosen, w1, w2)
    return y.reshape(x.shape), _loads(chosen, len(w1))


@mistake(
    "moe_layer",
    hint="Your weights sum to less than 1: the softmax still counts experts that were not chosen.",
)
def softmax_over_all_experts(x, w_gate, w1, w2, num_active):
    return _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: s.softmax(-1).gather(-1, c))


@mistake("moe_layer", hint="All chosen experts count the same in your sum. The gate weighs them.")
def equal_weights(x, w_gate, w1, w2, num_active):
    return _moe(
        x, w_gate, w1, w2, num_active, lambda s, b, c: torch.full_like(b, 1 / num_active) + 0 * b
    )


@mistake(
    "moe_layer",
    hint="The raw scores weigh your sum. A softmax over the chosen scores makes them weights.",
)
def raw_scores_as_weights(x, w_gate, w1, w2, num_active):
    return _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b)


@mistake(
    "moe_layer",
    hint="Scores are divided by their sum in your layer: negative ones give nonsense. "
    "Use a softmax.",
)
def scores_divided_by_their_sum(x, w_gate, w1, w2, num_active):
    return _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b / b.sum(-1, keepdim=True))


@mistake(
    "moe_layer",
    hint="Your weights sum to 1 over the tokens. The experts of one token share the weight 1.",
)
def softmax_over_the_tokens(x, w_gate, w1, w2, num_active):
    return _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b.softmax(0))


@mistake(
    "moe_layer", hint="exp of a score near 1000 overflows and gives NaN: use a stable softmax."
)
def gate_without_a_maximum(x, w_gate, w1, w2, num_active):
    return _moe(
        x, w_gate, w1, w2, num_active, lambda s, b, c: b.exp() / b.exp().sum(-1, keepdim=True)
    )


@mistake("moe_layer", hint="A sigmoid per expert does not make weights that sum to 1.")
def sigmoid_weights(x, w_gate, w1, w2, num_active):
    return _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: torch.sigmoid(b))


@mistake(
    "moe_layer",
    hint="The best expert answers with a weight below 1, and the other chosen ones not at all.",
)
def only_the_best_expert(x, w_gate, w1, w2, num_active):
    _check_moe(x, w_gate, w1, w2, num_active)
    tokens = x.reshape(-1, x.shape[-1])
    best, chosen = (tokens @ w_gate).topk(num_active, dim=-1)
    weights = _wide(best).softmax(-1).to(x.dtype)
    return _mixed(tokens, weights[:, :1], chosen[:, :1], w1, w2).reshape(x.shape), _loads(
        chosen, len(w1)
    )


@mistake(
    "moe_layer",
    hint="All tokens of a sentence take the same experts. Every token is routed on its own.",
)
def one_route_a_sentence(x, w_gate, w1, w2, num_active):
    _check_moe(x, w_gate, w1, w2, num_active)
    scores = (x.mean(dim=1, keepdim=True) @ w_gate).expand(-1, x.shape[1], -1).reshape(-1, len(w1))
    tokens = x.reshape(-1, x.shape[-1])
    best, chosen = scores.topk(num_active, dim=-1)
    weights = _wide(best).softmax(-1).to(x.dtype)
    return _mixed(tokens, weights, chosen, w1, w2).reshape(x.shape), _loads(chosen, len(w1))


@mistake("moe_layer", hint="You take the experts with the smallest scores.")
def takes_the_worst_experts(x, w_gate, w1, w2, num_active):
    _check_moe(x, w_gate, w1, w2, num_active)
    tokens = x.reshape(-1, x.shape[-1])
    best, chosen = (tokens @ w_gate).topk(num_active, dim=-1, largest=False)
    y = _mixed(tokens, _wide(best).softmax(-1).to(x.dtype), chosen, w1, w2)
    return y.reshape(x.shape), _loads(chosen, len(w1))


@mistake(
    "moe_layer",
    hint="The weights meet the wrong experts: topk sorts by score, your loop goes by number.",
)
def weights_in_another_order(x, w_gate, w1, w2, num_active):
    _check_moe(x, w_gate, w1, w2, num_active)
    tokens = x.reshape(-1, x.shape[-1])
    best, chosen = (tokens @ w_gate).topk(num_active, dim=-1)
    weights = _wide(best).softmax(-1).to(x.dtype)
    y = _mixed(tokens, weights, chosen.sort(dim=-1).values, w1, w2)
    return y.reshape(x.shape), _loads(chosen, len(w1))


@mistake(
    "moe_layer", hint="y[row] = … keeps only the last expert of each token. Their answers add up."
)
def overwrites_instead_of_adding(x, w_gate, w1, w2, num_active):
    _check_moe(x, w_gate, w1, w2, num_active)
    tokens = x.reshape(-1, x.shape[-1])
    best, chosen = (tokens @ w_gate).topk(num_active, dim=-1)
    weights = _wide(best).softmax(-1).to(x.dtype)
    y = torch.zeros_like(tokens)
    for e in range(len(w1)):
        row, slot = torch.where(chosen == e)
        y = y.index_copy(
            0, row, weights[row, slot].unsqueeze(-1) * (torch.relu(tokens[row] @ w1[e]) @ w2[e])
        )
    return y.reshape(x.shape), _loads(chosen, len(w1))


@mistake(
    "moe_layer", hint="Your experts are linear: the ReLU between their two matrices is missing."
)
def experts_without_relu(x, w_gate, w1, w2, num_active):
    _check_moe(x, w_gate, w1, w2, num_active)
    tokens = x.reshape(-1, x.shape[-1])
    best, chosen = (tokens @ w_gate).topk(num_active, dim=-1)
    weights = _wide(best).softmax(-1).to(x.dtype)
    y = torch.zeros_like(tokens)
    for e in range(len(w1)):
        row, slot = torch.where(chosen == e)
        y = y.index_add(0, row, weights[row, slot].unsqueeze(-1) * (tokens[row] @ w1[e] @ w2[e]))
    return y.reshape(x.shape), _loads(chosen, len(w1))


@mistake("moe_layer", hint="These experts use ReLU; yours use another activation.")
def experts_with_gelu(x, w_gate, w1, w2, num_active):
    _check_moe(x, w_gate, w1, w2, num_active)
    tokens = x.reshape(-1, x.shape[-1])
    best, chosen = (tokens @ w_gate).topk(num_active, dim=-1)
    weights = _wide(best).softmax(-1).to(x.dtype)
    y = torch.zeros_like(tokens)
    for e in range(len(w1)):
        row, slot = torch.where(chosen == e)
        answer = torch.nn.functional.gelu(tokens[row] @ w1[e]) @ w2[e]
        y = y.index_add(0, row, weights[row, slot].unsqueeze(-1) * answer)
    return y.reshape(x.shape), _loads(chosen, len(w1))


@mistake(
    "moe_layer",
    hint="Every token goes through every expert in your layer: right numbers, E/A times the work.",
)
def all_experts_compute(x, w_gate, w1, w2, num_active):
    _check_moe(x, w_gate, w1, w2, num_active)
    scores = x @ w_gate
    best, chosen = scores.topk(num_active, dim=-1)
    weights = torch.zeros_like(scores).scatter(-1, chosen, _wide(best).softmax(-1).to(x.dtype))
    answers = torch.stack([torch.relu(x @ w1[e]) @ w2[e] for e in range(len(w1))], dim=-1)
    return (answers * weights.unsqueeze(-2)).sum(-1), _loads(chosen, len(w1))


@mistake("moe_layer", hint="The weights are detached, so that the gate cannot learn.")
def gate_without_gradient(x, w_gate, w1, w2, num_active):
    return _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b.detach().softmax(-1))


@mistake("moe_layer", hint="Your load is a share between 0 and 1. It counts tokens.")
def load_as_a_share(x, w_gate, w1, w2, num_active):
    y, load = _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b.softmax(-1))
    return y, load / load.sum()


@mistake("moe_layer", hint="The load counts whole tokens. You add up their weights.")
def load_of_weights(x, w_gate, w1, w2, num_active):
    y, load = _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b.softmax(-1))
    best, chosen = (x.reshape(-1, x.shape[-1]) @ w_gate).topk(num_active, dim=-1)
    summed = torch.zeros(len(w1)).index_add(
        0, chosen.flatten(), best.detach().float().softmax(-1).flatten()
    )
    return y, summed.long()


@mistake(
    "moe_layer", hint="Your load stops at the last expert that was used. Idle experts count 0."
)
def load_without_idle_experts(x, w_gate, w1, w2, num_active):
    y, load = _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b.softmax(-1))
    return y, load[: int(load.nonzero().max()) + 1]


@mistake(
    "moe_layer",
    hint="Your load counts only the best expert of each token. All A are given the token.",
)
def load_of_the_first_choice(x, w_gate, w1, w2, num_active):
    y, _ = _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b.softmax(-1))
    return y, _loads((x.reshape(-1, x.shape[-1]) @ w_gate).argmax(-1), len(w1))


@mistake("moe_layer", hint="The load comes back as float. It counts tokens: int64.")
def load_as_float(x, w_gate, w1, w2, num_active):
    y, load = _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b.softmax(-1))
    return y, load.float()


@mistake(
    "moe_layer",
    hint="view wants memory in the order of the axes; callers pass transposed tensors as well.",
)
def moe_views_its_input(x, w_gate, w1, w2, num_active):
    _check_moe(x, w_gate, w1, w2, num_active)
    return _moe(
        x.view(1, -1, x.shape[-1]).view(x.shape),
        w_gate,
        w1,
        w2,
        num_active,
        lambda s, b, c: b.softmax(-1),
    )


@mistake("moe_layer", hint="float16 goes in, float32 comes out. y has the dtype of x.")
def moe_returns_float32(x, w_gate, w1, w2, num_active):
    return _moe(
        _wide(x), _wide(w_gate), _wide(w1), _wide(w2), num_active, lambda s, b, c: b.softmax(-1)
    )


@mistake(
    "moe_layer",
    hint="The caller's x is another tensor after your call: y must start as a fresh tensor.",
)
def moe_writes_into_x(x, w_gate, w1, w2, num_active):
    y, load = _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b.softmax(-1))
    with torch.no_grad():
        x.copy_(y)
    return y, load


@mistake(
    "moe_layer",
    hint="The block adds the residual. The layer returns the experts' answers only.",
    keeps=0.5,
)
def moe_with_a_residual(x, w_gate, w1, w2, num_active):
    y, load = _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b.softmax(-1))
    return x + y, load


@mistake(
    "moe_layer",
    hint="A popular expert turns tokens away: it takes only so many, and the others get nothing "
    "from it. Here every "
    "token is answered by its own experts.",
    replace=(
        "row, slot = torch.where(chosen == e)",
        "row, slot = (t[: 2 * len(tokens) * num_active // num_experts + 1] for t in "
        "torch.where(chosen == e))",
    ),
)
def experts_with_a_capacity(): ...


@mistake(
    "layer_norm_backward",
    hint="With a single token, [D], there is nothing to sum over; a sum over no axes is, in "
    "torch, a sum over all.",
    replace=[
        ("(dy * xhat).reshape(-1, d).sum(dim=0)", "(dy * xhat).sum(dim=tuple(range(x.dim() - 1)))"),
        ("dy.reshape(-1, d).sum(dim=0)", "dy.sum(dim=tuple(range(x.dim() - 1)))"),
    ],
)
def sums_a_single_token_away(): ...


@mistake(
    "rms_norm",
    hint="A batch of one loses its first axis. The shape of x stays.",
    replace=(
        "return (wide / torch.sqrt(mean_square + eps) * gamma).to(x.dtype)",
        "return (wide / torch.sqrt(mean_square + eps) * gamma).to(x.dtype).squeeze(0)",
    ),
)
def rms_squeezes_a_batch_of_one(): ...


@mistake(
    "swiglu_hidden",
    hint="A model of width 1 has a layer of width 3: sizes from 1 on are allowed.",
    replace=("if d_model < 1", "if d_model <= 1"),
)
def refuses_a_width_of_one(): ...


@mistake(
    "pre_norm_block",
    hint="Each sentence has its own mask, and all get the first one's.",
    replace=(
        "num_heads, mask)  # [B, N, D]",
        "num_heads, mask[0] if mask is not None and mask.dim() == 3 else mask)",
    ),
)
def pre_mask_of_the_first_sentence(): ...


@mistake(
    "post_norm_block",
    hint="The mask says who may be seen, True. It is turned round.",
    replace=("num_heads, mask)  # [B, N, D]", "num_heads, None if mask is None else ~mask)"),
)
def post_mask_upside_down(): ...


@mistake(
    "moe_layer",
    hint="A = 0 or more experts than there are should raise ValueError with the numbers.",
)
def clamps_the_active_experts(x, w_gate, w1, w2, num_active):
    num_active = min(max(num_active, 1), len(w1))
    return _moe(x, w_gate, w1, w2, num_active, lambda s, b, c: b.softmax(-1))


@mistake(
    "moe_layer",
    hint="A gate with fewer columns than experts works silently. Sizes should raise ValueError.",
)
def experts_without_checks(x, w_gate, w1, w2, num_active):
    if not 1 <= num_active <= len(w1):
        raise ValueError(f"{num_active} active of {len(w1)} experts")
    tokens = x.reshape(-1, x.shape[-1])
    best, chosen = (tokens @ w_gate).topk(num_active, dim=-1)
    weights = _wide(best).softmax(-1).to(x.dtype)
    return _mixed(tokens, weights, chosen, w1, w2).reshape(x.shape), _loads(chosen, len(w1))


# ----------------------------------------------------------------------------------
# rounding_counterexample


def _check_rounding(decimals, units):
    if decimals < 1 or units < 1:
        raise ValueError(f"decimals {decimals} and units {units} must be at least 1")


def _sticking_out(d, sigma):
    x = torch.zeros(d, dtype=torch.float64)
    x[0] = sigma * d / math.sqrt(d - 1)
    return x


@mistake(
    "rounding_counterexample",
    hint="The notes' token is one unit off at two decimals. Other questions were asked.",
)
def always_the_token_of_the_notes(decimals, units):
    _check_rounding(decimals, units)
    return torch.tensor([1.5, 3.0, 4.5], dtype=torch.float64)


@mistake(
    "rounding_counterexample",
    hint="Your token does not change with units. What multiplies the error of sigma?",
)
def ignores_the_units(decimals, units):
    _check_rounding(decimals, units)
    return _sticking_out(30, 1 + 0.4 * 10**-decimals)


@mistake(
    "rounding_counterexample",
    hint="Your token is made for two decimals. With others, rounding sigma does no harm.",
)
def ignores_the_decimals(decimals, units):
    _check_rounding(decimals, units)
    return _sticking_out(1 + math.ceil(((units + 1) / 0.4) ** 2), 1.004)


@mistake(
    "rounding_counterexample", hint="Your sigma lies below 1. A tiny sigma would make it too easy."
)
def takes_a_tiny_sigma(decimals, units):
    _check_rounding(decimals, units)
    sigma = 0.6 * 10**-decimals
    return torch.tensor([-1.0, 1.0], dtype=torch.float64) * sigma * (units + 1)


@mistake(
    "rounding_counterexample",
    hint="You return the normalized token. Its sigma is 1, and rounding 1 does nothing.",
)
def returns_the_normalized_token(decimals, units):
    _check_rounding(decimals, units)
    return _sticking_out(1 + math.ceil(((units + 1) / 0.4) ** 2), 1.0)


@mistake(
    "rounding_counterexample",
    hint="You divide by D − 1 in sigma. With D, your sigma rounds without harm.",
    keeps=0.5,
)
def sigma_with_d_minus_one(decimals, units):
    _check_rounding(decimals, units)
    d = 1 + math.ceil(((units + 1) / 0.4) ** 2)
    x = torch.zeros(d, dtype=torch.float64)
    x[0] = (1 + 0.4 * 10**-decimals) * math.sqrt(d)
    return x


@mistake(
    "rounding_counterexample",
    hint="Half of your features are up and half down: no normalized one is beyond 1.",
)
def no_feature_sticks_out(decimals, units):
    _check_rounding(decimals, units)
    d = 2 * math.ceil((units + 1) / 0.4)
    return torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(d // 2) * (1 + 0.4 * 10**-decimals)


@mistake(
    "rounding_counterexample",
    hint="The largest normalized feature is √(D − 1): your D grows with units, not units².",
)
def d_grows_with_units_only(decimals, units):
    _check_rounding(decimals, units)
    return _sticking_out(10 + math.ceil((units + 1) / 0.4), 1 + 0.4 * 10**-decimals)


@mistake(
    "rounding_counterexample",
    hint="float32 has about seven digits: at five decimals your sigma drifts. Use float64.",
)
def token_in_float32(decimals, units):
    _check_rounding(decimals, units)
    return _sticking_out(1 + math.ceil(((units + 2) / 0.3) ** 2), 1 + 0.4 * 10**-decimals).float()


@mistake(
    "rounding_counterexample",
    hint="You return the slip, or a pair. The evidence is the token itself, a tensor [D].",
)
def returns_a_number(decimals, units):
    _check_rounding(decimals, units)
    return float(units)


@mistake(
    "rounding_counterexample",
    hint="decimals or units below 1 should raise ValueError with the number.",
)
def counterexample_without_checks(decimals, units):
    return _sticking_out(2 + math.ceil(((units + 1) / 0.4) ** 2), 1 + 0.4 * 10**-decimals)
