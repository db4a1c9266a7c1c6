"""Wrong answers that people give about norms, MLPs, rotary positions, blocks and experts, each with
one wrong idea.
"""

from autograder.suite import (
    depends_on_later,
    has_dtype,
    ignores,
    mistake,
    mixes_the_batch,
    part,
    right_once_exchanged,
    right_once_inverted,
)

# --- layer_norm


@mistake(
    "layer_norm",
    hint="Your variance divides by D − 1, as torch.var does unless told otherwise; the worked "
    "example would give ±1. Divide by D.",
    keeps=0.65,
    replace=(
        "centred.pow(2).mean(dim=-1, keepdim=True)",
        "wide.var(dim=-1, keepdim=True, correction=min(1, d - 1))",
    ),
)
def variance_divides_by_d_minus_one(): ...


@mistake(
    "layer_norm",
    hint="Your eps is added to the standard deviation. It belongs to the variance, inside "
    "the root.",
    keeps=0.65,
    replace=("torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps)"),
)
def eps_outside_the_root(): ...


@mistake(
    "layer_norm",
    hint="A token whose features are all equal gives 0/0 in your layer. What is eps for?",
    replace=("torch.sqrt(variance + eps)", "torch.sqrt(variance)"),
)
def without_eps(): ...


@mistake(
    "layer_norm",
    hint="Change one token: others change too. Mean and variance are taken over a token's "
    "features.",
    shows=mixes_the_batch("x"),
    replace=[
        ("wide.mean(dim=-1, keepdim=True)", "wide.mean(dim=0)"),
        ("centred.pow(2).mean(dim=-1, keepdim=True)", "centred.pow(2).mean(dim=0)"),
    ],
)
def normalizes_over_the_first_axis(): ...


@mistake(
    "layer_norm",
    hint="Several tokens share a mean and a variance in your answer. Every token has its own.",
    shows=mixes_the_batch("x"),
    replace=[
        ("wide.mean(dim=-1, keepdim=True)", "wide.mean()"),
        ("centred.pow(2).mean(dim=-1, keepdim=True)", "centred.pow(2).mean()"),
    ],
)
def normalizes_over_everything(): ...


@mistake(
    "layer_norm",
    hint="You divide by the variance. Twice as large a token should give the same result.",
    keeps=0.65,
    replace=("torch.sqrt(variance + eps)", "(variance + eps)"),
)
def divides_by_the_variance(): ...


@mistake(
    "layer_norm",
    hint="You divide by a power of the variance that is too high: squared, where a square root is "
    "asked for. Which power is a root?",
    replace=("torch.sqrt(variance + eps)", "(variance + eps) ** 2"),
)
def squares_instead_of_taking_the_root(): ...


@mistake(
    "layer_norm",
    hint="Set beta to 5: nothing changes. gamma and beta start as 1 and 0, which hides this.",
    shows=ignores("gamma") & ignores("beta"),
    replace=(" * gamma + beta", ""),
)
def gamma_and_beta_unused(): ...


@mistake(
    "layer_norm",
    hint="With beta = 0 your result is gamma everywhere: the two have changed places.",
    shows=right_once_exchanged("gamma", "beta"),
    keeps=0.65,
    replace=(" * gamma + beta", " * beta + gamma"),
)
def gamma_and_beta_swapped(): ...


@mistake(
    "layer_norm",
    hint="You shift before you scale, so that beta is scaled as well.",
    replace=(
        "centred / torch.sqrt(variance + eps) * gamma + beta",
        "(centred / torch.sqrt(variance + eps) + beta) * gamma",
    ),
)
def shift_before_scale(): ...


@mistake(
    "layer_norm",
    hint="A mean of shape [N] lines up with the features. Which argument of mean keeps its axis?",
    shows=mixes_the_batch("x"),
    keeps=0.65,
    replace=[
        ("wide.mean(dim=-1, keepdim=True)", "wide.mean(dim=-1)"),
        ("centred.pow(2).mean(dim=-1, keepdim=True)", "centred.pow(2).mean(dim=-1)"),
    ],
)
def keepdim_forgotten(): ...


@mistake(
    "layer_norm",
    hint="The caller's x is another tensor after your call: x -= … writes into it.",
    replace=(
        "wide = x if",
        """
            with torch.no_grad():
                x -= x.mean(dim=-1, keepdim=True)
            wide = x if""",
    ),
)
def subtracts_the_mean_in_place(): ...


@mistake(
    "layer_norm",
    hint="You use an eps of your own. The caller's is an argument, 1e-5 unless said otherwise.",
    replace=("variance + eps", "variance + 1e-6"),
)
def eps_of_its_own(): ...


@mistake(
    "layer_norm",
    hint="Another eps changes nothing in your layer: it is an argument, and 1e-5 is only its "
    "default.",
    replace=("variance + eps", "variance + 1e-5"),
)
def always_the_default_eps(): ...


@mistake(
    "layer_norm",
    hint="You round sigma inside the computation, as the notes do. `rounding_counterexample` "
    "shows what that costs.",
    replace=(
        "torch.sqrt(variance + eps)",
        "torch.sqrt(variance + eps).round(decimals=2)",
    ),
)
def sigma_rounded_to_two_decimals(): ...


@mistake(
    "layer_norm",
    hint="Your tokens keep their mean. What is subtracted before dividing?",
    replace=("wide - wide.mean(dim=-1, keepdim=True)", "wide"),
)
def never_subtracts_the_mean(): ...


@mistake(
    "layer_norm",
    hint="Your variance is around zero, not around the mean: subtract first, then square.",
    replace=("centred.pow(2)", "wide.pow(2)"),
)
def variance_around_zero(): ...


@mistake(
    "layer_norm",
    hint="You divide by the sum of the squares, so that the result shrinks with D. Take the mean.",
    keeps=0.65,
    replace=("centred.pow(2).mean(", "centred.pow(2).sum("),
)
def sum_instead_of_mean_of_squares(): ...


@mistake(
    "layer_norm",
    hint="The mean of absolute deviations is another measure of spread than the root mean square.",
    replace=[
        ("centred.pow(2)", "centred.abs()"),
        ("torch.sqrt(variance + eps)", "(variance + eps)"),
    ],
)
def mean_absolute_deviation(): ...


@mistake(
    "layer_norm",
    hint="The mean of the squares minus the square of the mean: two large numbers that agree "
    "in all digits of float32.",
    replace=(
        "variance = centred.pow(2).mean(dim=-1, keepdim=True)",
        """
            variance = wide.pow(2).mean(dim=-1, keepdim=True) - wide.mean(dim=-1, keepdim=True).pow(2)
            variance = variance.clamp(min=0)""",
    ),
)
def variance_as_a_difference(): ...


@mistake(
    "layer_norm",
    hint="float16 ends at 65504: the square of 300 is infinite. Half precision computes in "
    "float32.",
    replace=(
        "wide = x if x.dtype in (torch.float32, torch.float64) else x.float()",
        "wide = x",
    ),
)
def statistics_in_half_precision(): ...


@mistake(
    "layer_norm",
    hint="bfloat16 is half precision as well: widen it to float32.",
    replace=(
        "in (torch.float32, torch.float64)",
        "in (torch.float32, torch.float64, torch.bfloat16)",
    ),
)
def normalizes_bfloat16_as_it_is(): ...


@mistake(
    "layer_norm",
    hint="float16 goes in, float32 comes out. The result has the dtype of x.",
    shows=has_dtype("float32"),
    replace=(".to(x.dtype)", ""),
)
def returns_float32_for_half(): ...


@mistake(
    "layer_norm",
    hint="Mean and variance depend on x, and gradients flow through them too: what is detached?",
    replace=[
        ("wide.mean(dim=-1, keepdim=True)", "wide.detach().mean(dim=-1, keepdim=True)"),
        ("centred.pow(2)", "centred.detach().pow(2)"),
    ],
)
def statistics_without_gradient(): ...


@mistake(
    "layer_norm",
    hint="Your layer needs a batch: a single token [D] is a token too. Count axes from the end.",
    replace=[
        (
            "wide.mean(dim=-1, keepdim=True)",
            "wide.mean(dim=2 if x.dim() == 3 else 1, keepdim=True)",
        ),
        (
            "centred.pow(2).mean(dim=-1, keepdim=True)",
            "centred.pow(2).mean(dim=2 if x.dim() == 3 else 1, keepdim=True)",
        ),
    ],
)
def needs_a_batch_axis(): ...


@mistake(
    "layer_norm",
    hint="view wants memory in the order of the axes; callers pass transposed tensors as well.",
    replace=[
        (
            "else x.float()",
            """
            else x.float()
            wide = wide.view(-1, d)""",
        ),
        (".to(x.dtype)", ".to(x.dtype).view(x.shape)"),
    ],
)
def views_its_input(): ...


@mistake(
    "layer_norm",
    hint="A gamma or beta of another length should raise ValueError that names both sizes.",
    replace=("if gamma.shape != (d,) or beta.shape != (d,):", "if False:"),
)
def norm_without_checks(): ...


# --- layer_norm_backward


@mistake(
    "layer_norm_backward",
    hint="You hold mean and variance constant. Moving one feature moves both of them.",
    replace=(" - through_mean - through_variance", ""),
)
def statistics_as_constants(): ...


@mistake(
    "layer_norm_backward",
    hint="Your dx does not sum to 0: the effect through the mean is missing.",
    replace=(" - through_mean", ""),
)
def no_path_through_the_mean(): ...


@mistake(
    "layer_norm_backward",
    hint="Your dx is not orthogonal to the normalized x. The path through sigma is missing, or it "
    "is mean(g) · mean(x̂), which is 0: the product of two means is not the mean(g · x̂).",
    replace=(" - through_variance", ""),
)
def no_path_through_the_variance(): ...


@mistake(
    "layer_norm_backward",
    hint="gamma is missing from dx. It starts as 1, which hides this.",
    shows=part(0, ignores("gamma")),
    keeps=0.65,
    replace=("g = dy * gamma", "g = dy"),
)
def gamma_missing_in_dx(): ...


@mistake(
    "layer_norm_backward",
    hint="gamma belongs to dy before the means are taken, not to the result.",
    replace=[
        ("g = dy * gamma", "g = dy"),
        ("dx = s *", "dx = gamma * s *"),
    ],
)
def gamma_after_the_means(): ...


@mistake(
    "layer_norm_backward",
    hint="You take sums over the features where the formula has means: where is 1/D?",
    keeps=0.65,
    replace=[
        ("g.mean(dim=-1, keepdim=True)", "g.sum(dim=-1, keepdim=True)"),
        (
            "(g * xhat).mean(dim=-1, keepdim=True)",
            "(g * xhat).sum(dim=-1, keepdim=True)",
        ),
    ],
)
def sums_instead_of_means(): ...


@mistake(
    "layer_norm_backward",
    hint="Twice as large an x should halve dx. Where is the factor s?",
    keeps=0.65,
    replace=("dx = s * (", "dx = ("),
)
def forgets_the_factor_s(): ...


@mistake(
    "layer_norm_backward",
    hint="Both effects are subtracted from g. You add the one through the variance.",
    replace=("- through_variance", "+ through_variance"),
)
def adds_the_variance_term(): ...


@mistake(
    "layer_norm_backward",
    hint="Mean(g · x̂) is one number per token and multiplies x̂. You subtract it alone.",
    replace=("xhat * (g * xhat)", "(g * xhat)"),
)
def variance_term_without_xhat(): ...


@mistake(
    "layer_norm_backward",
    hint="Your dx is not orthogonal to the normalized x. The path through sigma is missing, or it "
    "is mean(g) · mean(x̂), which is 0: the product of two means is not the mean(g · x̂).",
    replace=(
        "(g * xhat).mean(dim=-1, keepdim=True)",
        "through_mean * xhat.mean(dim=-1, keepdim=True)",
    ),
)
def mean_of_g_times_mean_of_xhat(): ...


@mistake(
    "layer_norm_backward",
    hint="Your means run over all tokens. Each token is normalized by itself.",
    replace=[
        ("g.mean(dim=-1, keepdim=True)", "g.mean()"),
        ("(g * xhat).mean(dim=-1, keepdim=True)", "(g * xhat).mean()"),
    ],
)
def means_over_all_tokens(): ...


@mistake(
    "layer_norm_backward",
    hint="The forward pass divides the variance by D. Your backward pass uses D − 1.",
    keeps=0.65,
    replace=[
        (
            "centred.pow(2).mean(dim=-1, keepdim=True)",
            "centred.pow(2).sum(dim=-1, keepdim=True) / (d - 1)",
        ),
        (
            "(g * xhat).mean(dim=-1, keepdim=True)",
            "(g * xhat).sum(dim=-1, keepdim=True) / (d - 1)",
        ),
    ],
)
def backward_divides_by_d_minus_one(): ...


@mistake(
    "layer_norm_backward",
    hint="A constant token gives NaN: s has an eps, inside the root, as in the forward pass.",
    shows=part(0, ignores("eps")),
    replace=(" + eps", ""),
)
def backward_without_eps(): ...


@mistake(
    "layer_norm_backward",
    hint="The caller's eps is ignored: the backward pass needs the one of the forward pass.",
    shows=part(0, ignores("eps")),
    replace=("+ eps", "+ 1e-5"),
)
def backward_with_the_default_eps(): ...


@mistake(
    "layer_norm_backward",
    hint="dgamma comes from the normalized x, which gamma multiplied, not from x itself.",
    replace=("(dy * xhat)", "(dy * x)"),
)
def dgamma_from_the_raw_x(): ...


@mistake(
    "layer_norm_backward",
    hint="gamma does not appear in its own gradient, nor in that of beta.",
    replace=[
        ("(dy * xhat)", "(g * xhat)"),
        ("dbeta = dy", "dbeta = g"),
    ],
)
def gamma_in_its_own_gradient(): ...


@mistake(
    "layer_norm_backward",
    hint="The second of your results is the same whatever x is, as dbeta is. The order is dx, dgamma, "
    "dbeta, and dgamma is a sum of dy times the normalized x.",
    shows=part(1, ignores("x")),
    keeps=0.65,
    replace=("dgamma.to(dtype), dbeta.to(dtype)", "dbeta.to(dtype), dgamma.to(dtype)"),
)
def dbeta_before_dgamma(): ...


@mistake(
    "layer_norm_backward",
    hint="Your sums take the first axis only. Every leading axis counts tokens.",
    replace=[
        ("(dy * xhat).reshape(-1, d).sum(dim=0)", "(dy * xhat).sum(dim=0)"),
        ("dy.reshape(-1, d).sum(dim=0)", "dy.sum(dim=0)"),
    ],
)
def sums_over_the_first_axis_only(): ...


@mistake(
    "layer_norm_backward",
    hint="gamma is shared by all tokens, so its gradient is [D]: something is not summed.",
    replace=[
        ("(dy * xhat).reshape(-1, d).sum(dim=0)", "dy * xhat"),
        ("dy.reshape(-1, d).sum(dim=0)", "dy"),
    ],
)
def gradients_of_weights_not_summed(): ...


@mistake(
    "layer_norm_backward",
    hint="You average over the tokens. Every token adds its share: a sum.",
    replace=[
        (
            "(dy * xhat).reshape(-1, d).sum(dim=0)",
            "(dy * xhat).reshape(-1, d).mean(dim=0)",
        ),
        ("dy.reshape(-1, d).sum(dim=0)", "dy.reshape(-1, d).mean(dim=0)"),
    ],
)
def averages_over_the_tokens(): ...


@mistake(
    "layer_norm_backward",
    hint="Squares of 400 are infinite in float16: compute and sum in float32, cast at the end.",
    replace=("if dtype not in (torch.float32, torch.float64):", "if False:"),
)
def backward_in_half_precision(): ...


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
    shows=part(0, has_dtype("float32")),
    replace=("dx.to(dtype), dgamma.to(dtype), dbeta.to(dtype)", "dx, dgamma, dbeta"),
)
def backward_returns_float32(): ...


@mistake(
    "layer_norm_backward",
    hint="The caller's dy is another tensor after your call: dy *= … writes into it.",
    replace=(
        "return dx",
        """
            with torch.no_grad():
                dy *= 2.0
            return dx""",
    ),
)
def scales_dy_in_place(): ...


@mistake(
    "layer_norm_backward",
    hint="A dy or a gamma that only broadcasts should raise ValueError that names the sizes.",
    replace=("if dy.shape != x.shape or gamma.shape != (d,):", "if False:"),
)
def backward_without_checks(): ...


@mistake(
    "layer_norm_backward",
    hint="With a single token, [D], there is nothing to sum over; a sum over no axes is, in "
    "torch, a sum over all.",
    replace=[
        (
            "(dy * xhat).reshape(-1, d).sum(dim=0)",
            "(dy * xhat).sum(dim=tuple(range(x.dim() - 1)))",
        ),
        ("dy.reshape(-1, d).sum(dim=0)", "dy.sum(dim=tuple(range(x.dim() - 1)))"),
    ],
)
def sums_a_single_token_away(): ...


# --- rms_norm


@mistake(
    "rms_norm",
    hint="You subtract the mean. RMSNorm does not: (5, 5, 5) becomes (1, 1, 1).",
    replace=(
        "else x.float()",
        """
            else x.float()
            wide = wide - wide.mean(dim=-1, keepdim=True)""",
    ),
)
def rms_subtracts_the_mean(): ...


@mistake(
    "rms_norm",
    hint="The mean is not subtracted anywhere, not in the squares either.",
    replace=(
        "wide.pow(2).mean(dim=-1, keepdim=True)",
        "wide.var(dim=-1, keepdim=True, correction=0)",
    ),
)
def rms_divides_by_the_standard_deviation(): ...


@mistake(
    "rms_norm",
    hint="Your eps is added to the root. It belongs to the mean of the squares, inside the root.",
    keeps=0.65,
    replace=("torch.sqrt(mean_square + eps)", "(torch.sqrt(mean_square) + eps)"),
)
def rms_eps_outside_the_root(): ...


@mistake(
    "rms_norm",
    hint="The mean of the squares: with their sum the result shrinks with D.",
    keeps=0.65,
    replace=("wide.pow(2).mean(", "wide.pow(2).sum("),
)
def rms_of_the_sum(): ...


@mistake(
    "rms_norm",
    hint="gamma has no effect on your result. It starts as 1, which hides this.",
    shows=ignores("gamma"),
    keeps=0.65,
    replace=(" * gamma", ""),
)
def rms_without_gamma(): ...


@mistake(
    "rms_norm",
    hint="Some models multiply by 1 + gamma. In this course gamma is the factor itself.",
    keeps=0.65,
    replace=("* gamma", "* (1 + gamma)"),
)
def rms_with_one_plus_gamma(): ...


@mistake(
    "rms_norm",
    hint="Another eps changes nothing in your layer, and without it a token of zeros would be 0/0.",
    replace=("torch.sqrt(mean_square + eps)", "torch.sqrt(mean_square)"),
)
def rms_without_eps(): ...


@mistake(
    "rms_norm",
    hint="The default here is 1e-6, smaller than that of layer_norm, and the caller may give "
    "another.",
    replace=("eps=1e-6", "eps=1e-5"),
)
def rms_with_the_eps_of_layer_norm(): ...


@mistake(
    "rms_norm",
    hint="Another eps changes nothing in your layer: it is an argument.",
    replace=("mean_square + eps", "mean_square + 1e-6"),
)
def rms_ignores_eps(): ...


@mistake(
    "rms_norm",
    hint="You divide by the mean square. Twice as large a token should give the same result.",
    keeps=0.65,
    replace=("torch.sqrt(mean_square + eps)", "(mean_square + eps)"),
)
def rms_without_the_root(): ...


@mistake(
    "rms_norm",
    hint="That is the mean of absolute values: square, mean, root.",
    replace=[
        ("wide.pow(2)", "wide.abs()"),
        ("torch.sqrt(mean_square + eps)", "(mean_square + eps)"),
    ],
)
def rms_of_absolute_values(): ...


@mistake(
    "rms_norm",
    hint="Your mean of squares has lost its axis and lines up with the features.",
    shows=mixes_the_batch("x"),
    keeps=0.65,
    replace=("mean(dim=-1, keepdim=True)", "mean(dim=-1)"),
)
def rms_keepdim_forgotten(): ...


@mistake(
    "rms_norm",
    hint="Change one token: others change too. Each token has its own root mean square.",
    shows=mixes_the_batch("x"),
    replace=("mean(dim=-1, keepdim=True)", "mean()"),
)
def rms_of_the_whole_tensor(): ...


@mistake(
    "rms_norm",
    hint="float16 ends at 65504: the square of 300 is infinite. Half precision computes in "
    "float32.",
    replace=(
        "wide = x if x.dtype in (torch.float32, torch.float64) else x.float()",
        "wide = x",
    ),
)
def rms_in_half_precision(): ...


@mistake(
    "rms_norm",
    hint="float16 goes in, float32 comes out. The result has the dtype of x.",
    shows=has_dtype("float32"),
    replace=(".to(x.dtype)", ""),
)
def rms_returns_float32(): ...


@mistake(
    "rms_norm",
    hint="The root mean square depends on x, and gradients flow through it too: what is detached?",
    replace=("wide.pow(2)", "wide.detach().pow(2)"),
)
def rms_detached(): ...


@mistake(
    "rms_norm",
    hint="The caller's x is another tensor after your call: x /= … writes into it.",
    replace=(
        "return (wide / torch.sqrt(mean_square + eps) * gamma).to(x.dtype)",
        """
            y = (wide / torch.sqrt(mean_square + eps) * gamma).to(x.dtype)
            with torch.no_grad():
                x /= torch.sqrt(mean_square + eps).to(x.dtype)
            return y""",
    ),
)
def rms_in_place(): ...


@mistake(
    "rms_norm",
    hint="A gamma of another length should raise ValueError that names both sizes.",
    replace=("if gamma.shape != (x.shape[-1],):", "if False:"),
)
def rms_without_checks(): ...


@mistake(
    "rms_norm",
    hint="A batch of one loses its first axis. The shape of x stays.",
    replace=(
        "return (wide / torch.sqrt(mean_square + eps) * gamma).to(x.dtype)",
        "return (wide / torch.sqrt(mean_square + eps) * gamma).to(x.dtype).squeeze(0)",
    ),
)
def rms_squeezes_a_batch_of_one(): ...


# --- batch_norm


@mistake(
    "batch_norm",
    hint="Change one token of the batch: the others should move with it. Statistics are "
    "taken over the tokens.",
    replace=[
        ("mean = tokens.mean(dim=0)", "mean = wide.mean(dim=-1, keepdim=True)"),
        (
            "(tokens - mean).pow(2).mean(dim=0)",
            "(wide - mean).pow(2).mean(dim=-1, keepdim=True)",
        ),
        ("momentum * mean.detach()", "momentum * tokens.mean(dim=0).detach()"),
        ("momentum * estimate", "momentum * tokens.var(dim=0).detach()"),
    ],
)
def normalizes_each_token_alone(): ...


@mistake(
    "batch_norm",
    hint="Every sentence has statistics of its own in your layer. One pair a feature serves "
    "the whole batch.",
    replace=[
        ("mean = tokens.mean(dim=0)", "mean = wide.mean(dim=-2, keepdim=True)"),
        (
            "(tokens - mean).pow(2).mean(dim=0)",
            "(wide - mean).pow(2).mean(dim=-2, keepdim=True)",
        ),
        ("momentum * mean.detach()", "momentum * tokens.mean(dim=0).detach()"),
        ("momentum * estimate", "momentum * tokens.var(dim=0).detach()"),
    ],
)
def statistics_for_each_sentence(): ...


@mistake(
    "batch_norm",
    hint="Every place in the sentence has statistics of its own in your layer: they run over "
    "all leading axes.",
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
        (
            "(tokens - mean).pow(2).mean(dim=0)",
            "(tokens - mean).pow(2).mean().expand(d)",
        ),
    ],
)
def one_pair_for_all_features(): ...


@mistake(
    "batch_norm",
    hint="The variance that normalizes divides by T. T − 1 is for the one that is kept.",
    keeps=0.65,
    replace=[
        ("(tokens - mean).pow(2).mean(dim=0)", "tokens.var(dim=0)"),
        (" * t / (t - 1)", ""),
    ],
)
def normalizes_by_t_minus_one(): ...


@mistake(
    "batch_norm",
    hint="The variance that is kept estimates that of data to come: what does it divide by?",
    keeps=0.65,
    replace=(" * t / (t - 1)", ""),
)
def keeps_the_variance_by_t(): ...


@mistake(
    "batch_norm",
    hint="The momentum is the weight of this batch, not of what was there before.",
    keeps=0.65,
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
)
def momentum_weighs_the_past(): ...


@mistake(
    "batch_norm",
    hint="Another momentum changes nothing in your layer: it is an argument.",
    shows=part(1, ignores("momentum")) & ~part(1, ignores("running_mean")),
    keeps=0.65,
    replace=[
        (
            "(1 - momentum) * running_mean + momentum * mean",
            "0.9 * running_mean + 0.1 * mean",
        ),
        (
            "(1 - momentum) * running_var + momentum * estimate",
            "0.9 * running_var + 0.1 * estimate",
        ),
    ],
)
def momentum_of_its_own(): ...


@mistake(
    "batch_norm",
    hint="Other running statistics change nothing in the new ones. These should remember the earlier "
    "batches.",
    shows=part(1, ignores("running_mean")),
    keeps=0.65,
    replace=[
        ("(1 - momentum) * running_mean + momentum * mean", "mean"),
        ("(1 - momentum) * running_var + momentum * estimate", "estimate"),
    ],
)
def remembers_the_last_batch_only(): ...


@mistake(
    "batch_norm",
    hint="You keep a standard deviation. The running statistic is a variance.",
    keeps=0.65,
    replace=("momentum * estimate", "momentum * estimate.sqrt()"),
)
def keeps_a_standard_deviation(): ...


@mistake(
    "batch_norm",
    hint="In training the batch is normalized by its own statistics. Which ones does your "
    "layer use?",
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
    replace=(
        "mean, var = running_mean, running_var",
        """
            tokens = wide.reshape(-1, d)
            mean, var = tokens.mean(dim=0), tokens.var(dim=0, correction=0)""",
    ),
)
def always_in_training(): ...


@mistake(
    "batch_norm",
    hint="A batch in evaluation moves your running statistics. Evaluation learns nothing.",
    keeps=0.65,
    replace=(
        "mean, var = running_mean, running_var",
        """
            mean, var = running_mean, running_var
            tokens = wide.reshape(-1, d)
            running_mean = (1 - momentum) * running_mean + momentum * tokens.mean(dim=0).detach()
            if len(tokens) > 1:
                running_var = (1 - momentum) * running_var + momentum * tokens.var(dim=0).detach()""",
    ),
)
def learns_in_evaluation(): ...


@mistake(
    "batch_norm",
    hint="Your eps is added to the standard deviation. It belongs to the variance, inside "
    "the root.",
    keeps=0.65,
    replace=("torch.sqrt(var + eps)", "(torch.sqrt(var) + eps)"),
)
def batch_eps_outside_the_root(): ...


@mistake(
    "batch_norm",
    hint="A feature that is the same everywhere is 0/0 in your layer. What is eps for?",
    keeps=0.65,
    replace=("torch.sqrt(var + eps)", "torch.sqrt(var)"),
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
    shows=part(0, ignores("gamma")) & part(0, ignores("beta")),
    keeps=0.65,
    replace=(" * gamma + beta", ""),
)
def batch_norm_without_scale_and_shift(): ...


@mistake(
    "batch_norm",
    hint="You shift before you scale, so that beta is scaled as well.",
    keeps=0.65,
    replace=(
        "(wide - mean) / torch.sqrt(var + eps) * gamma + beta",
        "((wide - mean) / torch.sqrt(var + eps) + beta) * gamma",
    ),
)
def batch_shift_before_scale(): ...


@mistake(
    "batch_norm",
    hint="The caller's running statistics are other tensors after your call. New ones are "
    "returned, the old ones stay.",
    keeps=0.65,
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
)
def updates_the_statistics_in_place(): ...


@mistake(
    "batch_norm",
    hint="Moving one token moves the mean and the variance of the batch, and gradients flow "
    "through both.",
    keeps=0.65,
    replace=(
        "(wide - mean) / torch.sqrt(var + eps)",
        "(wide - mean.detach()) / torch.sqrt(var.detach() + eps)",
    ),
)
def detaches_the_batch_statistics(): ...


@mistake(
    "batch_norm",
    hint="The running statistics are a record: yours still know the batch, and keep its "
    "memory alive.",
    keeps=0.65,
    replace=[
        ("mean.detach()", "mean"),
        ("var.detach()", "var"),
    ],
)
def keeps_the_graph_in_the_statistics(): ...


@mistake(
    "batch_norm",
    hint="Moving one token moves the variance of the batch, too: gradients flow through it "
    "as through the mean.",
    keeps=0.65,
    replace=("torch.sqrt(var + eps)", "torch.sqrt(var.detach() + eps)"),
)
def detaches_the_variance_of_the_batch(): ...


@mistake(
    "batch_norm",
    hint="In evaluation your layer leaves eps out. A running variance may be tiny as well.",
    keeps=0.65,
    replace=("torch.sqrt(var + eps)", "torch.sqrt(var + (eps if training else 0.0))"),
)
def batch_norm_without_eps_in_evaluation(): ...


@mistake(
    "batch_norm",
    hint="Your running variance has eps in it. It belongs to what is divided by, not to the "
    "record.",
    keeps=0.65,
    replace=("momentum * estimate", "momentum * (estimate + eps)"),
)
def keeps_eps_in_the_variance(): ...


@mistake(
    "batch_norm",
    hint="The new statistics have another dtype than the old ones, after a batch in float64.",
    keeps=0.65,
    replace=[
        (".to(running_mean.dtype)", ""),
        (".to(running_var.dtype)", ""),
    ],
)
def statistics_in_the_dtype_of_the_batch(): ...


@mistake(
    "batch_norm",
    hint="float16 ends at 65504: the square of 300 is infinite. Half precision computes in "
    "float32.",
    keeps=0.65,
    replace=(
        "wide = x if x.dtype in (torch.float32, torch.float64) else x.float()",
        "wide = x",
    ),
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
    shows=part(0, has_dtype("float32")),
    keeps=0.65,
    replace=("y.to(x.dtype)", "y"),
)
def batch_norm_answers_in_float32(): ...


@mistake(
    "batch_norm",
    hint="Each of the four vectors has one number per feature; another length should raise "
    "ValueError with the sizes.",
    keeps=0.65,
    replace=("if vector.shape != (d,):", "if False:"),
)
def batch_norm_without_checks(): ...


@mistake(
    "batch_norm",
    hint="Only some of the four vectors are checked. Each has one number per feature.",
    keeps=0.65,
    replace=(
        "for vector in (gamma, beta, running_mean, running_var):",
        "for vector in (gamma, beta):",
    ),
)
def checks_the_weights_only(): ...


@mistake(
    "batch_norm",
    hint="One token in training: T − 1 is 0, and your running variance is NaN. That should "
    "be refused.",
    keeps=0.65,
    replace=("if t < 2:", "if t < 1:"),
)
def trains_on_one_token(): ...


# --- mlp


@mistake(
    "mlp",
    hint="Two linear maps in a row are one linear map. What stands between them?",
    replace=[
        ("hidden = torch.relu(hidden)", "pass"),
        ("hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))", "pass"),
    ],
)
def mlp_without_activation(): ...


@mistake(
    "mlp",
    hint="Your result has no negative entry: the activation stands behind the second matrix.",
    replace=[
        ("x @ w1 + b1", "(x @ w1 + b1) @ w2 + b2"),
        ("return hidden @ w2 + b2", "return hidden"),
    ],
)
def mlp_activates_at_the_end(): ...


@mistake(
    "mlp",
    hint="You activate twice. The second matrix is followed by nothing.",
    replace=(
        "return hidden @ w2 + b2",
        """
            y = hidden @ w2 + b2
            return torch.relu(y) if activation == "relu" else torch.nn.functional.gelu(y)""",
    ),
)
def mlp_activates_twice(): ...


@mistake(
    "mlp",
    hint="The activation goes over x before it was multiplied. It belongs between the matrices.",
    replace=[
        ("hidden = x @ w1 + b1", "hidden = x"),
        ("hidden @ w2 + b2", "(hidden @ w1 + b1) @ w2 + b2"),
    ],
)
def mlp_activates_the_input(): ...


@mistake(
    "mlp",
    hint="Yours is the GELU with tanh, an approximation that is off by up to 5e-4. The exact one "
    "has the error function.",
    replace=(
        "hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))",
        'torch.nn.functional.gelu(hidden, approximate="tanh")',
    ),
)
def mlp_gelu_by_tanh(): ...


@mistake(
    "mlp",
    hint="z · sigmoid(1.702 z) is a rough stand-in for GELU. The exact one needs the error "
    "function.",
    replace=(
        "hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))",
        "hidden * torch.sigmoid(1.702 * hidden)",
    ),
)
def mlp_gelu_by_sigmoid(): ...


@mistake(
    "mlp",
    hint="Φ(z) has z/√2 in the error function. GELU(2) should be 1.9545.",
    replace=("hidden / math.sqrt(2)", "hidden"),
)
def mlp_gelu_without_the_root_of_two(): ...


@mistake(
    "mlp",
    hint="You return Φ(z). GELU is z · Φ(z).",
    replace=("hidden * 0.5", "0.5"),
)
def mlp_gelu_without_z(): ...


@mistake(
    "mlp",
    hint='activation="gelu" changes nothing in your MLP: it is an argument.',
    replace=(
        "hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))",
        "torch.relu(hidden)",
    ),
)
def mlp_always_relu(): ...


@mistake(
    "mlp",
    hint="Who says nothing gets ReLU. Your default is GELU.",
    replace=('activation="relu"', 'activation="gelu"'),
)
def mlp_gelu_by_default(): ...


@mistake(
    "mlp",
    hint="Set x to zero: one of the biases should still decide what the activation sees.",
    shows=ignores("b1"),
    keeps=0.65,
    replace=("x @ w1 + b1", "x @ w1"),
)
def mlp_without_b1(): ...


@mistake(
    "mlp",
    hint="Set w2 to zero: the result should be one of the arguments. Which one is never used?",
    shows=ignores("b2"),
    keeps=0.65,
    replace=("hidden @ w2 + b2", "hidden @ w2"),
)
def mlp_without_b2(): ...


@mistake(
    "mlp",
    hint="b1 is part of what the activation sees. Yours is added behind it.",
    replace=[
        ("x @ w1 + b1", "x @ w1"),
        ("hidden @ w2", "(hidden + b1) @ w2"),
    ],
)
def mlp_b1_after_the_activation(): ...


@mistake(
    "mlp",
    hint="The residual connection belongs to the block. The MLP returns its own answer only.",
    keeps=0.65,
    replace=("return hidden", "return x + hidden"),
)
def mlp_with_a_residual(): ...


@mistake(
    "mlp",
    hint="Weights are [in, out] here and multiply from the right. Nothing needs a transpose.",
    replace=[
        ("x @ w1", "x @ (w1.T if d == f else w1)"),
        ("hidden @ w2", "hidden @ (w2.T if d == f else w2)"),
    ],
)
def mlp_transposed_where_square(): ...


@mistake(
    "mlp",
    hint="Change one token: the others change. The MLP sees every token alone.",
    shows=depends_on_later("x", -2),
    replace=(
        "hidden = x @ w1 + b1",
        """
            hidden = x @ w1 + b1
            if x.dim() > 1:
                hidden = hidden - hidden.mean(dim=-2, keepdim=True)""",
    ),
)
def mlp_mixes_tokens(): ...


@mistake(
    "mlp",
    hint="Negative hidden values should become 0, not small. Which ReLU is this?",
    replace=("torch.relu(hidden)", "torch.nn.functional.leaky_relu(hidden)"),
)
def mlp_leaky_relu(): ...


@mistake(
    "mlp",
    hint="The caller's x is another tensor after your call: relu_, and other names with a _ at "
    "their end, write into it.",
    replace=(
        "return hidden",
        """
            with torch.no_grad():
                x.relu_()
            return hidden""",
    ),
)
def mlp_writes_into_x(): ...


@mistake(
    "mlp",
    hint="The hidden values are detached: w1, b1 and x get no gradient.",
    replace=("return hidden", "return hidden.detach()"),
)
def mlp_detaches_the_hidden_layer(): ...


@mistake(
    "mlp",
    hint="float16 goes in, float32 comes out. The result has the dtype of x.",
    shows=has_dtype("float32"),
    replace=(
        "hidden = x @",
        """
            inputs = (x, w1, b1, w2, b2)
            x, w1, b1, w2, b2 = (t if t.dtype == torch.float64 else t.float() for t in inputs)
            hidden = x @""",
    ),
)
def mlp_returns_float32(): ...


@mistake(
    "mlp",
    hint="An unknown name gets an activation all the same. "
    'Only "relu" and "gelu" mean something: refuse the rest.',
    replace=('elif activation == "gelu":', "elif True:"),
)
def mlp_takes_any_activation(): ...


@mistake(
    "mlp",
    hint="Sizes that cannot match should raise ValueError that names them; torch's own is a "
    "RuntimeError.",
    replace=(
        "if x.shape[-1] != d or b1.shape != (f,) or w2.shape != (f, d) or b2.shape != (d,):",
        "if False:",
    ),
)
def mlp_without_checks(): ...


# --- swiglu


@mistake(
    "swiglu",
    hint="The product of both projections goes through SiLU. Only the gate does.",
    replace=[
        ("gate = x @ w1", "gate = (x @ w1) * (x @ w2)"),
        ("(gate * (x @ w2)) @ w3", "gate @ w3"),
    ],
)
def silu_of_the_product(): ...


@mistake(
    "swiglu",
    hint="That is a sigmoid gate, called GLU. SiLU(z) is z · sigmoid(z).",
    replace=("gate * torch.sigmoid(gate)", "torch.sigmoid(gate)"),
)
def sigmoid_gate(): ...


@mistake(
    "swiglu",
    hint="The gate is x @ w1. Yours is the other projection.",
    keeps=0.65,
    replace=[
        ("x @ w1", "x @ w2"),
        ("(x @ w2)", "(x @ w1)"),
    ],
)
def gate_and_gated_swapped(): ...


@mistake(
    "swiglu",
    hint="In other code w2 leads back to the model width. Here it is w3: [F, D].",
    shows=right_once_exchanged("w2", "w3"),
    replace=(
        "gate = x @ w1",
        """
            if d == f:
                w2, w3 = w3, w2
            gate = x @ w1""",
    ),
)
def other_order_of_the_matrices(): ...


@mistake(
    "swiglu",
    hint="Both projections go through SiLU. What is gated passes as it is.",
    replace=("(x @ w2)", "torch.nn.functional.silu(x @ w2)"),
)
def silu_on_both(): ...


@mistake(
    "swiglu",
    hint="A gate multiplies. Yours is added.",
    replace=("gate * (x @ w2)", "gate + x @ w2"),
)
def adds_the_gate(): ...


@mistake(
    "swiglu",
    hint="That is GEGLU: GELU looks like SiLU, and is another function.",
    replace=("gate * torch.sigmoid(gate)", "torch.nn.functional.gelu(gate)"),
)
def gelu_gate(): ...


@mistake(
    "swiglu",
    hint="That is ReGLU: a ReLU gate is shut for all negative values, SiLU is not.",
    replace=("gate * torch.sigmoid(gate)", "torch.relu(gate)"),
)
def relu_gate(): ...


@mistake(
    "swiglu",
    hint="The gate is open everywhere: where is the nonlinearity?",
    replace=("gate * torch.sigmoid(gate)", "gate"),
)
def gate_without_activation(): ...


@mistake(
    "swiglu",
    hint="Your activation stands behind w3. It belongs to the gate.",
    replace=[
        ("gate = x @ w1", "gate = ((x @ w1) * (x @ w2)) @ w3"),
        ("return (gate * (x @ w2)) @ w3", "return gate"),
    ],
)
def silu_at_the_end(): ...


@mistake(
    "swiglu",
    hint="exp(z) is infinite for z = 1000, and inf / inf is NaN in your formula. torch.sigmoid "
    "does not overflow.",
    replace=(
        "gate * torch.sigmoid(gate)",
        "gate * torch.exp(gate) / (1 + torch.exp(gate))",
    ),
)
def unstable_sigmoid(): ...


@mistake(
    "swiglu",
    hint="The gate is detached, so that w1 cannot learn.",
    replace=("gate * torch.sigmoid(gate)", "(gate * torch.sigmoid(gate)).detach()"),
)
def gate_detached(): ...


@mistake(
    "swiglu",
    hint="The residual connection belongs to the block. The layer returns its own answer only.",
    keeps=0.65,
    replace=("return (gate", "return x + (gate"),
)
def swiglu_with_a_residual(): ...


@mistake(
    "swiglu",
    hint="float16 goes in, float32 comes out. The result has the dtype of x.",
    shows=has_dtype("float32"),
    replace=(
        "gate = x @",
        """
            inputs = (x, w1, w2, w3)
            x, w1, w2, w3 = (t if t.dtype == torch.float64 else t.float() for t in inputs)
            gate = x @""",
    ),
)
def swiglu_returns_float32(): ...


@mistake(
    "swiglu",
    hint="A w2 of one column broadcasts silently. Sizes that cannot match should raise ValueError.",
    replace=(
        "if x.shape[-1] != d or w2.shape != (d, f) or w3.shape != (f, d):",
        "if False:",
    ),
)
def swiglu_without_checks(): ...


# --- swiglu_hidden


@mistake(
    "swiglu_hidden",
    hint="Whole-number division rounds down. The width must be at least 8D/3.",
    replace=("-(-8 * d_model // unit)", "max(1, 8 * d_model // unit)"),
)
def rounds_down(): ...


@mistake(
    "swiglu_hidden",
    hint="You round to the nearest multiple, which may be below 8D/3.",
    replace=("-(-8 * d_model // unit)", "max(1, round(8 * d_model / unit))"),
)
def rounds_to_the_nearest(): ...


@mistake(
    "swiglu_hidden",
    hint="4D is the width of the classic MLP. Three matrices of that width have 12D² weights.",
    replace=("-8 * d_model // unit", "-4 * d_model // multiple_of"),
)
def four_times_the_width(): ...


@mistake(
    "swiglu_hidden",
    hint="multiple_of has no effect on your width.",
    shows=ignores("multiple_of"),
    replace=("-(-8 * d_model // unit) * multiple_of", "-(-8 * d_model // 3)"),
)
def ignores_the_multiple(): ...


@mistake(
    "swiglu_hidden",
    hint="Where 8D/3 is a multiple already, yours is the next one: there was nothing to round.",
    replace=("-(-8 * d_model // unit)", "(8 * d_model // unit + 1)"),
)
def always_takes_the_next_multiple(): ...


@mistake(
    "swiglu_hidden",
    hint="You first cut off the fraction and round up to the multiple afterwards: 1024 shows it.",
    replace=(
        "-(-8 * d_model // unit)",
        "max(1, -(-(8 * d_model // 3) // multiple_of))",
    ),
)
def cuts_off_before_rounding_up(): ...


@mistake(
    "swiglu_hidden",
    hint="The width is a float. It becomes a size of a matrix: an int.",
    replace=(
        "-(-8 * d_model // unit) * multiple_of",
        "float(-(-8 * d_model // unit) * multiple_of)",
    ),
)
def width_as_a_float(): ...


@mistake(
    "swiglu_hidden",
    hint="2/3 of D, four times: you left out the factor 4.",
    replace=("-8 * d_model", "-2 * d_model"),
)
def two_thirds_of_the_width(): ...


@mistake(
    "swiglu_hidden",
    hint="You make the width a multiple of 3 as well. Only multiple_of has to divide it.",
    replace=(
        "return -(-8 * d_model // unit) * multiple_of",
        """
            width = -(-8 * d_model // unit) * multiple_of
            while width % 3:
                width += multiple_of
            return width""",
    ),
)
def multiple_of_three_as_well(): ...


@mistake(
    "swiglu_hidden",
    hint="You round to powers of two. Any multiple of multiple_of is allowed: the smallest "
    "that fits.",
    replace=(
        "return -(-8 * d_model // unit) * multiple_of",
        """
            width = multiple_of
            while 3 * width < 8 * d_model:
                width *= 2
            return width""",
    ),
)
def next_power_of_two(): ...


@mistake(
    "swiglu_hidden",
    hint="A width of 0 or below, or multiples of 0, should raise ValueError with the number.",
    replace=("if d_model < 1 or multiple_of < 1:", "if False:"),
)
def widths_without_checks(): ...


@mistake(
    "swiglu_hidden",
    hint="A model of width 1 has a layer of width 3: sizes from 1 on are allowed.",
    replace=("if d_model < 1", "if d_model <= 1"),
)
def refuses_a_width_of_one(): ...


# --- rotary_positions


@mistake(
    "rotary_positions",
    hint="You pair feature j with feature j + d/2. In this course neighbours turn together.",
    replace=[
        ("wide[..., 0::2], wide[..., 1::2]", "wide.chunk(2, dim=-1)"),
        ("torch.stack(", "torch.cat("),
        ("turned.flatten(-2)", "turned"),
    ],
)
def pairs_of_halves(): ...


@mistake(
    "rotary_positions",
    hint="Your pairs come out as two halves: interleave the turned features again.",
    replace=[
        ("torch.stack(", "torch.cat("),
        ("turned.flatten(-2)", "turned"),
    ],
)
def result_not_interleaved(): ...


@mistake(
    "rotary_positions",
    hint="With a cache the first new token is not position 0: use the positions you are given.",
    shows=ignores("positions"),
    replace=(
        "wide = x if",
        """
            positions = torch.arange(n).expand_as(positions)
            wide = x if""",
    ),
)
def counts_from_zero(): ...


@mistake(
    "rotary_positions",
    hint="Position 0 should change nothing. Yours turns by one step.",
    keeps=0.65,
    replace=("positions.to(wide.dtype)", "(positions + 1).to(wide.dtype)"),
)
def counts_from_one(): ...


@mistake(
    "rotary_positions",
    hint="You turn the other way: (1, 0) at position 1 should become (cos 1, sin 1).",
    keeps=0.65,
    replace=("angle.cos(), angle.sin()", "angle.cos(), -angle.sin()"),
)
def turns_clockwise(): ...


@mistake(
    "rotary_positions",
    hint="Your pairs change their length: which of the two new features needs a minus?",
    replace=("a * cos - b * sin", "a * cos + b * sin"),
)
def both_signs_positive(): ...


@mistake(
    "rotary_positions",
    hint="At position 0 cos is 1 and sin is 0, so that nothing moves. Yours swaps the features.",
    replace=("angle.cos(), angle.sin()", "angle.sin(), angle.cos()"),
)
def sine_and_cosine_swapped(): ...


@mistake(
    "rotary_positions",
    hint="The second new feature is made from the first new one. Both come from the old pair.",
    replace=(
        "turned = torch.stack([a * cos - b * sin,",
        """
            a = a * cos - b * sin
            turned = torch.stack([a,""",
    ),
)
def uses_the_turned_feature(): ...


@mistake(
    "rotary_positions",
    hint="i counts the pairs, and 2i is the even feature: your exponent has the 2 twice.",
    keeps=0.65,
    replace=(
        "-torch.arange(0, d, 2, dtype=wide.dtype) / d",
        "-2 * torch.arange(0, d, 2, dtype=wide.dtype) / d",
    ),
)
def exponent_doubled(): ...


@mistake(
    "rotary_positions",
    hint="The exponent is 2i/d for pair i. Yours is i/d, so that all pairs but the first "
    "turn too fast.",
    replace=(
        "-torch.arange(0, d, 2, dtype=wide.dtype) / d",
        "-torch.arange(0, d // 2, dtype=wide.dtype) / d",
    ),
)
def exponent_halved(): ...


@mistake(
    "rotary_positions",
    hint="The first pair turns by 1 radian per token: its i is 0. Do you count pairs from 1?",
    replace=("torch.arange(0, d, 2,", "torch.arange(2, d + 2, 2,"),
)
def pairs_counted_from_one(): ...


@mistake(
    "rotary_positions",
    hint="Your last pairs turn fastest. Frequencies fall with i: what sign has the exponent?",
    replace=("(-torch.arange", "(torch.arange"),
)
def frequencies_that_rise(): ...


@mistake(
    "rotary_positions",
    hint="Your frequencies end at 1/theta. The exponent divides by d, not by d − 2.",
    replace=(
        "-torch.arange(0, d, 2, dtype=wide.dtype) / d",
        "-torch.arange(0, d, 2, dtype=wide.dtype) / max(d - 2, 1)",
    ),
)
def exponent_divided_by_one_less(): ...


@mistake(
    "rotary_positions",
    hint="All your pairs turn equally fast. Each pair has its own frequency.",
    replace=(
        "theta ** (-torch.arange(0, d, 2, dtype=wide.dtype) / d)",
        "torch.ones(d // 2, dtype=wide.dtype)",
    ),
)
def one_frequency_for_all_pairs(): ...


@mistake(
    "rotary_positions",
    hint="Another theta changes nothing in your function: it is an argument.",
    replace=("theta ** (", "10000.0 ** ("),
)
def ignores_theta(): ...


@mistake(
    "rotary_positions",
    hint="You turn by the head or the sentence, not by the token: which axis is N?",
    replace=(
        "cos, sin = ",
        """
            angle = angle.unsqueeze(-2)
            cos, sin = """,
    ),
)
def positions_on_the_wrong_axis(): ...


@mistake(
    "rotary_positions",
    hint="positions [B, N] need an axis for the heads. Without it sentences line up with heads.",
    replace=("if per_sentence:", "if False:"),
)
def no_axis_for_the_heads(): ...


@mistake(
    "rotary_positions",
    hint="All sentences get the positions of the first one.",
    replace=("angle = angle.unsqueeze(1)", "angle = angle[0]"),
)
def positions_of_the_first_sentence(): ...


@mistake(
    "rotary_positions",
    hint="You add sines and cosines to x. Rotary positions turn the pairs instead.",
    replace=("[a * cos - b * sin, a * sin + b * cos]", "[a + sin, b + cos]"),
)
def adds_a_table(): ...


@mistake(
    "rotary_positions",
    hint="float16 has no number 3001: make angles in float32, whatever x is.",
    replace=(
        "positions.to(wide.dtype).unsqueeze(-1) * frequency",
        "positions.to(x.dtype).unsqueeze(-1) * frequency.to(x.dtype)",
    ),
)
def angles_in_half_precision(): ...


@mistake(
    "rotary_positions",
    hint="float16 goes in, float32 comes out. The result has the dtype of x.",
    shows=has_dtype("float32"),
    replace=(".to(x.dtype)", ""),
)
def rotary_returns_float32(): ...


@mistake(
    "rotary_positions",
    hint="The caller's x is another tensor after your call: x[..., 0::2] = … writes into it. Fill "
    "a new one.",
    replace=(
        "return turned.flatten(-2).to(x.dtype)",
        """
            y = turned.flatten(-2).to(x.dtype)
            with torch.no_grad():
                x.copy_(y)
            return y""",
    ),
)
def rotates_in_place(): ...


@mistake(
    "rotary_positions",
    hint="The result is cut off from x: queries and keys are trained through the rotation.",
    replace=("turned.flatten(-2)", "turned.detach().flatten(-2)"),
)
def rotation_without_gradient(): ...


@mistake(
    "rotary_positions",
    hint="Your loop over the tokens takes a torch operation for each. All can turn at once.",
    replace=(
        "wide = x if",
        """
            if n > 1:
                rows = zip(x.split(1, dim=-2), positions.split(1, dim=-1), strict=True)
                return torch.cat([rotary_positions(*row, theta) for row in rows], dim=-2)
            wide = x if""",
    ),
)
def token_by_token(): ...


@mistake(
    "rotary_positions",
    hint="view wants memory in the order of the axes; heads are usually made by a transpose.",
    replace=(
        "a, b = wide[..., 0::2], wide[..., 1::2]",
        """
            pairs = wide.view(-1, d // 2, 2).view(*x.shape[:-1], d // 2, 2)
            a, b = pairs.unbind(dim=-1)""",
    ),
)
def views_pairs(): ...


@mistake(
    "rotary_positions",
    hint="An odd d leaves one feature without a partner: raise ValueError with d.",
    replace=(
        'raise ValueError(f"features are rotated in pairs: d = {d} is odd")',
        "return torch.cat([rotary_positions(x[..., :-1], positions, theta), x[..., -1:]], dim=-1)",
    ),
)
def leaves_the_odd_feature(): ...


@mistake(
    "rotary_positions",
    hint="Too many positions, or one for all tokens, should raise ValueError with the sizes.",
    replace=(
        "if positions.shape[-1] != n or (per_sentence and (x.dim() != 4 or len(positions) != len(x))):",
        "if False:",
    ),
)
def positions_without_checks(): ...


# --- post_norm_block


@mistake(
    "post_norm_block",
    hint="That is the pre-norm block. Here the sum is normalized, after the addition.",
    replace=[
        (
            "multi_head_attention(x,",
            'multi_head_attention(layer_norm(x, p["ln1_gamma"], p["ln1_beta"]),',
        ),
        ('layer_norm(x + attended, p["ln1_gamma"], p["ln1_beta"])', "x + attended"),
        ("mlp(y,", 'mlp(layer_norm(y, p["ln2_gamma"], p["ln2_beta"]),'),
        ('layer_norm(y + computed, p["ln2_gamma"], p["ln2_beta"])', "y + computed"),
    ],
)
def pre_norm_instead(): ...


@mistake(
    "post_norm_block",
    hint="You normalize what the sublayer returns. The norm goes around the sum.",
    replace=[
        ("layer_norm(x + attended,", "x + layer_norm(attended,"),
        ("layer_norm(y + computed,", "y + layer_norm(computed,"),
    ],
)
def post_norms_the_sublayers(): ...


@mistake(
    "post_norm_block",
    hint="Silence the MLP: the tokens are lost. The second sublayer has a residual too.",
    replace=("y + computed", "computed"),
)
def post_without_the_second_residual(): ...


@mistake(
    "post_norm_block",
    hint="Silence the attention: the tokens are lost. The first sublayer has a residual too.",
    replace=("x + attended", "attended"),
)
def post_without_the_first_residual(): ...


@mistake(
    "post_norm_block",
    hint="Your second residual starts from x again. It starts from what the first half returned.",
    replace=("y + computed", "x + computed"),
)
def post_second_residual_from_x(): ...


@mistake(
    "post_norm_block",
    hint="The MLP reads x, not what the attention made of it.",
    replace=("mlp(y,", "mlp(x,"),
)
def post_mlp_reads_x(): ...


@mistake(
    "post_norm_block",
    hint="Both norms use ln1. There are two, with parameters of their own.",
    replace=('p["ln2_gamma"], p["ln2_beta"]', 'p["ln1_gamma"], p["ln1_beta"]'),
)
def post_same_norm_twice(): ...


@mistake(
    "post_norm_block",
    hint="ln1 belongs to the attention, ln2 to the MLP. Yours have changed places.",
    keeps=0.65,
    replace=[
        ('p["ln1_gamma"], p["ln1_beta"]', 'p["ln2_gamma"], p["ln2_beta"]'),
        ('p["ln2_gamma"], p["ln2_beta"]', 'p["ln1_gamma"], p["ln1_beta"]'),
    ],
)
def post_norms_swapped(): ...


@mistake(
    "post_norm_block",
    hint="ln2_gamma plays no part in your answer. Behind the MLP stands a norm, with ln2's "
    "parameters.",
    shows=ignores("params.ln2_gamma"),
    replace=('layer_norm(y + computed, p["ln2_gamma"], p["ln2_beta"])', "y + computed"),
)
def post_without_the_last_norm(): ...


@mistake(
    "post_norm_block",
    hint="ln1_gamma plays no part in your answer. Behind the attention stands a norm, with ln1's "
    "parameters: without it the MLP reads raw sums.",
    shows=ignores("params.ln1_gamma"),
    replace=('layer_norm(x + attended, p["ln1_gamma"], p["ln1_beta"])', "x + attended"),
)
def post_without_the_first_norm(): ...


@mistake(
    "post_norm_block",
    hint="The mask never reaches your attention.",
    replace=("num_heads, mask)", "num_heads)"),
)
def post_forgets_the_mask(): ...


@mistake(
    "post_norm_block",
    hint="Your block is causal although nobody asked for it: without a mask all is allowed.",
    replace=(
        "num_heads, mask)",
        "num_heads, causal_mask(x.shape[1]) if mask is None else mask)",
    ),
)
def post_always_causal(): ...


@mistake(
    "post_norm_block",
    hint="The MLP comes before the attention in your block.",
    replace=[
        (
            'multi_head_attention(x, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, mask)',
            'mlp(x, p["w1"], p["b1"], p["w2"], p["b2"])',
        ),
        (
            'mlp(y, p["w1"], p["b1"], p["w2"], p["b2"])',
            'multi_head_attention(y, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, mask)',
        ),
    ],
)
def post_mlp_first(): ...


@mistake(
    "post_norm_block",
    hint="Attention and MLP work side by side in your block. The MLP reads what attention made.",
    replace=[
        ("x + attended,", 'x + attended + mlp(x, p["w1"], p["b1"], p["w2"], p["b2"]),'),
        ('computed = mlp(y, p["w1"], p["b1"], p["w2"], p["b2"])', "computed = 0"),
    ],
)
def post_in_parallel(): ...


@mistake(
    "post_norm_block",
    hint="Your MLP uses GELU; this block uses ReLU.",
    replace=('p["b2"])', 'p["b2"], "gelu")'),
)
def post_with_gelu(): ...


@mistake(
    "post_norm_block",
    hint="Your block has an RMSNorm: its tokens keep their mean.",
    replace=[
        (
            'layer_norm(x + attended, p["ln1_gamma"], p["ln1_beta"])',
            'rms_norm(x + attended, p["ln1_gamma"]) + p["ln1_beta"]',
        ),
        (
            'layer_norm(y + computed, p["ln2_gamma"], p["ln2_beta"])',
            'rms_norm(y + computed, p["ln2_gamma"]) + p["ln2_beta"]',
        ),
    ],
)
def post_with_rms_norm(): ...


@mistake(
    "post_norm_block",
    hint="The caller's x is another tensor after your call: x += … writes into it. Write x = x + … "
    "instead.",
    replace=(
        "computed = ",
        """
            with torch.no_grad():
                x += attended
            computed = """,
    ),
)
def post_adds_in_place(): ...


@mistake(
    "post_norm_block",
    hint="The caller's params are changed after your call: pop, assignments and += all write "
    "into them.",
    replace=(
        "return layer_norm",
        """
            with torch.no_grad():
                p["b2"] += 1.0
            return layer_norm""",
    ),
)
def post_normalizes_its_params(): ...


@mistake(
    "post_norm_block",
    hint="The residual is detached, so that no gradient takes the short way.",
    replace=[
        ("x + attended", "x.detach() + attended"),
        ("y + computed", "y.detach() + computed"),
    ],
)
def post_residual_detached(): ...


@mistake(
    "post_norm_block",
    hint="float16 goes in, float32 comes out. The block keeps the dtype of x.",
    shows=has_dtype("float32"),
    replace=(
        'return layer_norm(y + computed, p["ln2_gamma"], p["ln2_beta"])',
        """
            y = layer_norm(y + computed, p["ln2_gamma"], p["ln2_beta"])
            return y if y.dtype == torch.float64 else y.float()""",
    ),
)
def post_returns_float32(): ...


@mistake(
    "post_norm_block",
    hint="The number of heads has no effect on your block.",
    replace=("num_heads, mask)", "1, mask)"),
)
def post_ignores_the_heads(): ...


@mistake(
    "post_norm_block",
    hint="The mask is turned round in your block: True says who may be seen.",
    shows=right_once_inverted("mask"),
    replace=(
        "num_heads, mask)  # [B, N, D]",
        "num_heads, None if mask is None else ~mask)",
    ),
)
def post_mask_upside_down(): ...


# --- pre_norm_block


@mistake(
    "pre_norm_block",
    hint="That is the post-norm block. Here nothing on the stream itself is normalized.",
    replace=[
        ('layer_norm(x, p["ln1_gamma"], p["ln1_beta"])', "x"),
        (
            'normed = layer_norm(y, p["ln2_gamma"], p["ln2_beta"])',
            'y = normed = layer_norm(y, p["ln1_gamma"], p["ln1_beta"])',
        ),
        (
            'return y + mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])',
            """
            y = y + mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])
            return layer_norm(y, p["ln2_gamma"], p["ln2_beta"])""",
        ),
    ],
)
def post_norm_instead(): ...


@mistake(
    "pre_norm_block",
    hint="You normalize what the sublayer returns. The norm stands in front of it.",
    replace=[
        ('layer_norm(x, p["ln1_gamma"], p["ln1_beta"])', "x"),
        (
            'y = x + multi_head_attention(normed, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, mask)',
            """
            attended = multi_head_attention(normed, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, mask)
            y = x + layer_norm(attended, p["ln1_gamma"], p["ln1_beta"])""",
        ),
        ('layer_norm(y, p["ln2_gamma"], p["ln2_beta"])', "y"),
        (
            'return y + mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])',
            """
            computed = mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])
            return y + layer_norm(computed, p["ln2_gamma"], p["ln2_beta"])""",
        ),
    ],
)
def pre_norms_the_sublayers(): ...


@mistake(
    "pre_norm_block",
    hint="Your residual is the normalized token. The raw stream is what passes by.",
    replace=[
        ("y = x + ", "y = normed + "),
        ("return y + ", "return normed + "),
    ],
)
def pre_residual_from_the_norm(): ...


@mistake(
    "pre_norm_block",
    hint="The residual around your attention carries the normalized tokens. The raw stream is what passes by.",
    replace=("y = x + ", "y = normed + "),
)
def pre_first_residual_from_the_norm(): ...


@mistake(
    "pre_norm_block",
    hint="Silence the MLP: the tokens are lost. The second sublayer has a residual too.",
    replace=("return y + ", "return "),
)
def pre_without_the_second_residual(): ...


@mistake(
    "pre_norm_block",
    hint="Silence the attention: the tokens are lost. The first sublayer has a residual too.",
    replace=("y = x + ", "y = "),
)
def pre_without_the_first_residual(): ...


@mistake(
    "pre_norm_block",
    hint="Your second residual starts from x again: what the attention added is lost.",
    replace=("return y + ", "return x + "),
)
def pre_second_residual_from_x(): ...


@mistake(
    "pre_norm_block",
    hint="The MLP reads the tokens from before the attention.",
    replace=("layer_norm(y,", "layer_norm(x,"),
)
def pre_mlp_reads_x(): ...


@mistake(
    "pre_norm_block",
    hint="Both norms use ln1. There are two, with parameters of their own.",
    shows=ignores("params.ln2_gamma"),
    replace=('p["ln2_gamma"], p["ln2_beta"]', 'p["ln1_gamma"], p["ln1_beta"]'),
)
def pre_same_norm_twice(): ...


@mistake(
    "pre_norm_block",
    hint="ln1 belongs to the attention, ln2 to the MLP. Yours have changed places.",
    keeps=0.65,
    replace=[
        ('p["ln1_gamma"], p["ln1_beta"]', 'p["ln2_gamma"], p["ln2_beta"]'),
        ('p["ln2_gamma"], p["ln2_beta"]', 'p["ln1_gamma"], p["ln1_beta"]'),
    ],
)
def pre_norms_swapped(): ...


@mistake(
    "pre_norm_block",
    hint="The norm in front of the MLP is missing: it reads the raw stream, whatever its size.",
    shows=ignores("params.ln2_gamma"),
    replace=('layer_norm(y, p["ln2_gamma"], p["ln2_beta"])', "y"),
)
def pre_without_the_second_norm(): ...


@mistake(
    "pre_norm_block",
    hint="ln1_gamma plays no part in your answer. In front of the attention stands a norm, with "
    "ln1's parameters.",
    shows=ignores("params.ln1_gamma"),
    replace=('layer_norm(x, p["ln1_gamma"], p["ln1_beta"])', "x"),
)
def pre_without_the_first_norm(): ...


@mistake(
    "pre_norm_block",
    hint="Your block normalizes once more at its end. The final norm belongs to the whole model.",
    replace=(
        'return y + mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])',
        """
            y = y + mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])
            return layer_norm(y, p["ln2_gamma"], p["ln2_beta"])""",
    ),
)
def pre_with_a_final_norm(): ...


@mistake(
    "pre_norm_block",
    hint="The mask never reaches your attention.",
    replace=("num_heads, mask)", "num_heads)"),
)
def pre_forgets_the_mask(): ...


@mistake(
    "pre_norm_block",
    hint="Your block is causal whatever mask it gets: without one all is allowed, and the caller's "
    "counts.",
    keeps=0.65,
    replace=("num_heads, mask)", "num_heads, causal_mask(x.shape[1]))"),
)
def pre_always_causal(): ...


@mistake(
    "pre_norm_block",
    hint="The MLP comes before the attention in your block.",
    replace=[
        (
            'multi_head_attention(normed, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, mask)',
            'mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])',
        ),
        (
            'mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])',
            'multi_head_attention(normed, p["w_q"], p["w_k"], p["w_v"], p["w_o"], num_heads, mask)',
        ),
    ],
)
def pre_mlp_first(): ...


@mistake(
    "pre_norm_block",
    hint="Attention and MLP work side by side in your block. The MLP reads what attention made.",
    shows=ignores("params.ln2_gamma"),
    replace=(
        'normed = layer_norm(y, p["ln2_gamma"], p["ln2_beta"])',
        "# the MLP reads the tokens that the attention reads",
    ),
)
def pre_in_parallel(): ...


@mistake(
    "pre_norm_block",
    hint="The caller's x is another tensor after your call: x += … writes into it. Write x = x + … "
    "instead.",
    replace=(
        "normed = layer_norm(y,",
        """
            with torch.no_grad():
                x += y
            normed = layer_norm(y,""",
    ),
)
def pre_adds_in_place(): ...


@mistake(
    "pre_norm_block",
    hint="The residual is detached, so that no gradient takes the short way.",
    replace=[
        ("y = x + ", "y = x.detach() + "),
        ("return y + ", "return y.detach() + "),
    ],
)
def pre_residual_detached(): ...


@mistake(
    "pre_norm_block",
    hint="float16 goes in, float32 comes out. The block keeps the dtype of x.",
    shows=has_dtype("float32"),
    replace=(
        'return y + mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])',
        """
            y = y + mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])
            return y if y.dtype == torch.float64 else y.float()""",
    ),
)
def pre_returns_float32(): ...


@mistake(
    "pre_norm_block",
    hint="The number of heads has no effect on your block.",
    replace=("num_heads, mask)", "1, mask)"),
)
def pre_ignores_the_heads(): ...


@mistake(
    "pre_norm_block",
    hint="Each sentence has its own mask, and all get the first one's.",
    replace=(
        "num_heads, mask)  # [B, N, D]",
        "num_heads, mask[0] if mask is not None and mask.dim() == 3 else mask)",
    ),
)
def pre_mask_of_the_first_sentence(): ...


# --- moe_layer


@mistake(
    "moe_layer",
    hint="Your weights sum to less than 1: the softmax still counts experts that were not chosen.",
    replace=[
        ("(tokens @ w_gate).topk", "(tokens @ w_gate).softmax(dim=-1).topk"),
        ("torch.softmax(wide, dim=-1)", "wide"),
    ],
)
def softmax_over_all_experts(): ...


@mistake(
    "moe_layer",
    hint="All chosen experts count the same in your sum. The gate weighs them.",
    replace=("torch.softmax(wide, dim=-1)", "(0 * wide + 1 / num_active)"),
)
def equal_weights(): ...


@mistake(
    "moe_layer",
    hint="The raw scores weigh your sum. A softmax over the chosen scores makes them weights.",
    replace=("torch.softmax(wide, dim=-1)", "wide"),
)
def raw_scores_as_weights(): ...


@mistake(
    "moe_layer",
    hint="Scores are divided by their sum in your layer: negative ones give nonsense. Use a "
    "softmax.",
    replace=("torch.softmax(wide, dim=-1)", "(wide / wide.sum(dim=-1, keepdim=True))"),
)
def scores_divided_by_their_sum(): ...


@mistake(
    "moe_layer",
    hint="Your weights sum to 1 over the tokens. The experts of one token share the weight 1.",
    replace=("torch.softmax(wide, dim=-1)", "torch.softmax(wide, dim=0)"),
)
def softmax_over_the_tokens(): ...


@mistake(
    "moe_layer",
    hint="exp of a score near 1000 overflows and gives NaN: use a stable softmax.",
    replace=(
        "torch.softmax(wide, dim=-1)",
        "(wide.exp() / wide.exp().sum(dim=-1, keepdim=True))",
    ),
)
def gate_without_a_maximum(): ...


@mistake(
    "moe_layer",
    hint="A sigmoid per expert does not make weights that sum to 1.",
    replace=("torch.softmax(wide, dim=-1)", "torch.sigmoid(wide)"),
)
def sigmoid_weights(): ...


@mistake(
    "moe_layer",
    hint="The best expert answers with a weight below 1, and the other chosen ones not at all.",
    replace=("torch.where(chosen == e)", "torch.where(chosen[:, :1] == e)"),
)
def only_the_best_expert(): ...


@mistake(
    "moe_layer",
    hint="All tokens of a sentence take the same experts. Every token is routed on its own.",
    replace=(
        "scores, chosen = (tokens @ w_gate).topk",
        """
            sentences = x.mean(dim=1, keepdim=True).expand_as(x).reshape(-1, d)
            scores, chosen = (sentences @ w_gate).topk""",
    ),
)
def one_route_a_sentence(): ...


@mistake(
    "moe_layer",
    hint="You take the experts with the smallest scores.",
    replace=("topk(num_active, dim=-1)", "topk(num_active, dim=-1, largest=False)"),
)
def takes_the_worst_experts(): ...


@mistake(
    "moe_layer",
    hint="The weights meet the wrong experts: a weight belongs to the expert at the same place of "
    "topk's result, whose order is that of the scores.",
    replace=(
        "torch.where(chosen == e)",
        "torch.where(chosen.sort(dim=-1).values == e)",
    ),
)
def weights_in_another_order(): ...


@mistake(
    "moe_layer",
    hint="Only one expert's answer is left for each token (y[row] = … keeps the last one). The "
    "answers add up.",
    replace=("y.index_add(", "y.index_copy("),
)
def overwrites_instead_of_adding(): ...


@mistake(
    "moe_layer",
    hint="Your experts are linear: the ReLU between their two matrices is missing.",
    replace=("torch.relu(tokens[row] @ w1[e])", "tokens[row] @ w1[e]"),
)
def experts_without_relu(): ...


@mistake(
    "moe_layer",
    hint="These experts use ReLU; yours use another activation.",
    replace=("torch.relu(", "torch.nn.functional.gelu("),
)
def experts_with_gelu(): ...


@mistake(
    "moe_layer",
    hint="Every token goes through every expert in your layer: right numbers, E/A times the work.",
    replace=[
        (
            "row, slot = torch.where(chosen == e)",
            "weight = (weights * (chosen == e)).sum(dim=-1, keepdim=True)",
        ),
        ("tokens[row]", "tokens"),
        (
            "y.index_add(0, row, weights[row, slot].unsqueeze(-1) * answer)",
            "y + weight * answer",
        ),
    ],
)
def all_experts_compute(): ...


@mistake(
    "moe_layer",
    hint="The weights are detached, so that the gate cannot learn.",
    replace=("torch.softmax(wide, dim=-1)", "torch.softmax(wide.detach(), dim=-1)"),
)
def gate_without_gradient(): ...


@mistake(
    "moe_layer",
    hint="Your load is a share between 0 and 1. It counts tokens.",
    replace=("(x.shape), load", "(x.shape), load / load.sum()"),
)
def load_as_a_share(): ...


@mistake(
    "moe_layer",
    hint="The load counts whole tokens. You add up their weights.",
    replace=(
        "torch.bincount(chosen.flatten(), minlength=num_experts)",
        "torch.bincount(chosen.flatten(), weights.detach().flatten(), num_experts).long()",
    ),
)
def load_of_weights(): ...


@mistake(
    "moe_layer",
    hint="Your load stops at the last expert that was used. Idle experts count 0.",
    replace=(
        "torch.bincount(chosen.flatten(), minlength=num_experts)",
        "torch.bincount(chosen.flatten())",
    ),
)
def load_without_idle_experts(): ...


@mistake(
    "moe_layer",
    hint="Where scores are equal, more than A experts count as chosen in your layer. A token goes "
    "through exactly A: what does topk give?",
    replace=(
        "load = torch.bincount(chosen.flatten(), minlength=num_experts)",
        "load = (tokens @ w_gate >= scores[:, -1:]).sum(dim=0)",
    ),
)
def equal_scores_activate_more(): ...


@mistake(
    "moe_layer",
    hint="Your load counts only the best expert of each token. All A are given the token.",
    replace=("chosen.flatten()", "chosen[:, 0]"),
)
def load_of_the_first_choice(): ...


@mistake(
    "moe_layer",
    hint="The load comes back as float. It counts tokens: int64.",
    replace=("(x.shape), load", "(x.shape), load.float()"),
)
def load_as_float(): ...


@mistake(
    "moe_layer",
    hint="view wants memory in the order of the axes; callers pass transposed tensors as well.",
    replace=("x.reshape(-1, d)", "x.view(-1, d)"),
)
def moe_views_its_input(): ...


@mistake(
    "moe_layer",
    hint="float16 goes in, float32 comes out. y has the dtype of x.",
    shows=part(0, has_dtype("float32")),
    replace=(
        "tokens = x",
        """
            inputs = (x, w_gate, w1, w2)
            x, w_gate, w1, w2 = (t if t.dtype == torch.float64 else t.float() for t in inputs)
            tokens = x""",
    ),
)
def moe_returns_float32(): ...


@mistake(
    "moe_layer",
    hint="The caller's x is another tensor after your call: y must start as a fresh tensor.",
    replace=(
        "return y.reshape(x.shape), load",
        """
            with torch.no_grad():
                x.copy_(y.reshape(x.shape))
            return y.reshape(x.shape), load""",
    ),
)
def moe_writes_into_x(): ...


@mistake(
    "moe_layer",
    hint="The block adds the residual. The layer returns the experts' answers only.",
    keeps=0.65,
    replace=("return y.reshape(x.shape)", "return x + y.reshape(x.shape)"),
)
def moe_with_a_residual(): ...


@mistake(
    "moe_layer",
    hint="A popular expert turns tokens away: it takes only so many, and the others get "
    "nothing from it. Here every token is answered by its own experts.",
    replace=(
        "row, slot = torch.where(chosen == e)",
        "row, slot = (t[: 2 * len(tokens) * num_active // num_experts + 1] for t in torch.where(chosen == e))",
    ),
)
def experts_with_a_capacity(): ...


@mistake(
    "moe_layer",
    hint="A = 0 or more experts than there are should raise ValueError with the numbers.",
    replace=(
        "if not 1 <= num_active <= num_experts:",
        """
            num_active = min(max(num_active, 1), num_experts)
            if False:""",
    ),
)
def clamps_the_active_experts(): ...


@mistake(
    "moe_layer",
    hint="A gate with fewer columns than experts works silently. Sizes should raise ValueError.",
    replace=(
        "if w_gate.shape != (d, num_experts) or w2.shape != (num_experts, f, d) or x.shape[-1] != d:",
        "if False:",
    ),
)
def experts_without_checks(): ...


# --- rounding_counterexample


@mistake(
    "rounding_counterexample",
    hint="The notes' token is one unit off at two decimals. Other questions were asked.",
    replace=("return x", "return torch.tensor([1.5, 3.0, 4.5], dtype=torch.float64)"),
)
def always_the_token_of_the_notes(): ...


@mistake(
    "rounding_counterexample",
    hint="Your token does not change with units. What multiplies the error of sigma?",
    replace=("1 + math.ceil(((units + 1) / 0.4) ** 2)", "30"),
)
def ignores_the_units(): ...


@mistake(
    "rounding_counterexample",
    hint="Your token is made for two decimals. With others, rounding sigma does no harm.",
    replace=("0.4 * 10**-decimals", "0.004"),
)
def ignores_the_decimals(): ...


@mistake(
    "rounding_counterexample",
    hint="Your sigma lies below 1. A tiny sigma would make it too easy.",
    replace=(
        "return x",
        """
            sigma = 0.6 * 10**-decimals * (units + 1)
            return torch.tensor([-sigma, sigma], dtype=torch.float64)""",
    ),
)
def takes_a_tiny_sigma(): ...


@mistake(
    "rounding_counterexample",
    hint="You return the normalized token. Its sigma is 1, and rounding 1 does nothing.",
    replace=("1 + 0.4 * 10**-decimals", "1.0"),
)
def returns_the_normalized_token(): ...


@mistake(
    "rounding_counterexample",
    hint="You divide by D − 1 in sigma. With D, your sigma rounds without harm.",
    keeps=0.65,
    replace=("sigma * d / math.sqrt(d - 1)", "sigma * math.sqrt(d)"),
)
def sigma_with_d_minus_one(): ...


@mistake(
    "rounding_counterexample",
    hint="Half of your features are up and half down: no normalized one is beyond 1.",
    replace=(
        "return x",
        """
            half = math.ceil((units + 1) / 0.4)
            return torch.tensor([-sigma, sigma], dtype=torch.float64).repeat(half)""",
    ),
)
def no_feature_sticks_out(): ...


@mistake(
    "rounding_counterexample",
    hint="The largest normalized feature is √(D − 1): your D grows with units, not units².",
    replace=(
        "1 + math.ceil(((units + 1) / 0.4) ** 2)",
        "10 + math.ceil((units + 1) / 0.4)",
    ),
)
def d_grows_with_units_only(): ...


@mistake(
    "rounding_counterexample",
    hint="float32 has about seven digits: at five decimals your sigma drifts. Use float64.",
    replace=[
        ("(units + 1) / 0.4", "(units + 2) / 0.3"),
        ("return x", "return x.float()"),
    ],
)
def token_in_float32(): ...


@mistake(
    "rounding_counterexample",
    hint="For 100 units your token has more than 100000 features. How much of a unit can the error of "
    "sigma be? The closer to half of one, the fewer features are needed.",
    replace=("((units + 1) / 0.4) ** 2", "(4 * units) ** 2"),
)
def token_longer_than_allowed(): ...


@mistake(
    "rounding_counterexample",
    hint="You return a number. The evidence is the token itself, a tensor [D].",
    replace=("return x", "return float(units)"),
)
def returns_a_number(): ...


@mistake(
    "rounding_counterexample",
    hint="decimals or units below 1 should raise ValueError with the number.",
    replace=("if decimals < 1 or units < 1:", "if False:"),
)
def counterexample_without_checks(): ...


# --- slips that strangers made


@mistake(
    "layer_norm",
    hint="Only gamma is compared with D. A beta of another length is left to torch, which raises "
    "an error of its own: the docstring asks for a ValueError.",
    replace=(" or beta.shape != (d,)", ""),
)
def compares_gamma_alone(): ...


@mistake(
    "mlp",
    hint="The biases are not compared. One of another length is left to torch, which raises an "
    "error of its own: the docstring asks for a ValueError.",
    replace=(
        "if x.shape[-1] != d or b1.shape != (f,) or w2.shape != (f, d) or b2.shape != (d,):",
        "if x.shape[-1] != d or w2.shape != (f, d):",
    ),
)
def mlp_leaves_the_biases_to_torch(): ...


@mistake(
    "mlp",
    hint="The activation is looked up by its name in torch, so silu and tanh are computed too. Only "
    '"relu" and "gelu" mean something here: refuse the rest.',
    replace=(
        """
        else:
            raise ValueError(f"activation must be 'relu' or 'gelu', got {activation!r}")
        """,
        """
        elif hasattr(torch.nn.functional, activation):
            hidden = getattr(torch.nn.functional, activation)(hidden)
        else:
            raise ValueError(f"{activation!r} is no activation")
        """,
    ),
)
def mlp_takes_what_torch_has(): ...


@mistake(
    "swiglu",
    hint="The width of x is not compared with the rows of w1. Torch then raises an error of its own: "
    "the docstring asks for a ValueError.",
    replace=("x.shape[-1] != d or ", ""),
)
def swiglu_leaves_x_to_torch(): ...


@mistake(
    "swiglu",
    hint="The columns of w3 are not compared with D, so tokens of another width come out.",
    replace=("w3.shape != (f, d)", "w3.shape[0] != f"),
)
def swiglu_answers_in_any_width(): ...


@mistake(
    "rotary_positions",
    hint="Positions of two axes are one row a sentence of x [B, H, N, d]. With fewer or more axes in "
    "x they are stretched to something: look at the axes of x, and refuse.",
    replace=("x.dim() != 4 or ", ""),
)
def positions_a_sentence_for_any_x(): ...


@mistake(
    "post_norm_block",
    hint="The shifts of the two norms have changed places: ln1_beta belongs to the norm after the "
    "attention, ln2_beta to the one after the MLP.",
    keeps=0.65,
    replace=[
        ('p["ln1_gamma"], p["ln1_beta"]', 'p["ln1_gamma"], p["ln2_beta"]'),
        ('p["ln2_gamma"], p["ln2_beta"]', 'p["ln2_gamma"], p["ln1_beta"]'),
    ],
)
def post_shifts_swapped(): ...


@mistake(
    "pre_norm_block",
    hint="The shifts of the two norms have changed places: ln1_beta belongs to the norm before the "
    "attention, ln2_beta to the one before the MLP.",
    keeps=0.65,
    replace=[
        ('p["ln1_gamma"], p["ln1_beta"]', 'p["ln1_gamma"], p["ln2_beta"]'),
        ('p["ln2_gamma"], p["ln2_beta"]', 'p["ln2_gamma"], p["ln1_beta"]'),
    ],
)
def pre_shifts_swapped(): ...


@mistake(
    "moe_layer",
    hint="You choose all experts whose score reaches the A-th largest. Where scores are equal, these "
    "are more than A, and all of them compute: a token goes through exactly A.",
    replace=[
        (
            "scores, chosen = (tokens @ w_gate).topk(num_active, dim=-1)",
            """
            scores = tokens @ w_gate
            border = scores.topk(num_active, dim=-1).values[:, -1:]
            active = scores >= border
            scores = scores.masked_fill(~active, float("-inf"))""",
        ),
        ("row, slot = torch.where(chosen == e)", "row = torch.where(active[:, e])[0]"),
        ("weights[row, slot]", "weights[row, e]"),
        (
            "torch.bincount(chosen.flatten(), minlength=num_experts)",
            "active.sum(dim=0)",
        ),
    ],
)
def takes_all_experts_at_the_border(): ...


@mistake(
    "layer_norm",
    keeps=0.65,
    hint="Your statistics are taken along axis 1: of [B, N, D] that is the tokens. Each token is "
    "normalized over its own features, the last axis.",
    replace=[
        ("wide.mean(dim=-1, keepdim=True)", "wide.mean(dim=1, keepdim=True)"),
        (
            "centred.pow(2).mean(dim=-1, keepdim=True)",
            "centred.pow(2).mean(dim=1, keepdim=True)",
        ),
    ],
)
def normalizes_along_axis_one(): ...


@mistake(
    "layer_norm",
    keeps=0.65,
    hint="The root is taken of a mean of absolute values. The variance is the mean of the squares.",
    replace=("centred.pow(2).mean(", "centred.abs().mean("),
)
def root_of_the_absolute_values(): ...


@mistake(
    "rms_norm",
    hint="eps is a lower bound of yours for the root. It is added to the mean of the squares, so that "
    "it counts for every token.",
    replace=(
        "torch.sqrt(mean_square + eps)",
        "torch.sqrt(mean_square).clamp(min=eps)",
    ),
)
def rms_with_a_lower_bound(): ...


@mistake(
    "swiglu_hidden",
    keeps=0.65,
    hint="8 // 3 is 2: the division of whole numbers comes too early. Multiply by D first, and round "
    "up at the end.",
    replace=(
        "return -(-8 * d_model // unit) * multiple_of",
        "return -(-(8 // 3) * d_model // multiple_of) * multiple_of",
    ),
)
def divides_eight_by_three_first(): ...


@mistake(
    "pre_norm_block",
    keeps=0.65,
    hint="Your MLP reads the normalized tokens of the first half once more. Its norm takes the stream "
    "after the attention.",
    replace=(
        'normed = layer_norm(y, p["ln2_gamma"], p["ln2_beta"])',
        'normed = layer_norm(normed, p["ln2_gamma"], p["ln2_beta"])',
    ),
)
def pre_mlp_reads_the_first_norm(): ...


@mistake(
    "pre_norm_block",
    hint="The MLP of this block has ReLU. Yours has GELU, as GPT-2 has.",
    replace=(
        'mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"])',
        'mlp(normed, p["w1"], p["b1"], p["w2"], p["b2"], "gelu")',
    ),
)
def pre_uses_gelu(): ...
