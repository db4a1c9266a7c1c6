"""What the docstrings of assignment 2 allow."""

from autograder.suite.contracts import (
    HALF,
    calls,
    choice,
    contract,
    dict_of,
    tensor,
    whole,
)

WEIGHTS = ("normal", "whole", "large", "small", "zeros")
"""Numbers of a weight matrix: rows far apart would saturate every tanh."""

contract(
    "rnn_encode",
    calls(
        x=tensor("B", "T", "D"),
        w_x=tensor("D", "H", values=WEIGHTS),
        w_h=tensor("H", "H", values=WEIGHTS),
        b=tensor("H"),
        h0=tensor("B", "H"),
    ),
    gradients=True,
)

contract(
    "additive_scores",
    calls(
        state=tensor("B", "S"),
        states=tensor("B", "T", "H"),
        w_state=tensor("S", "A", values=WEIGHTS),
        w_states=tensor("H", "A", values=WEIGHTS),
        v=tensor("A"),
    ),
    gradients=True,
)

contract(
    "attend",
    calls(scores=tensor("B", "T"), states=tensor("B", "T", "H")),
    dtypes=HALF,
    gradients=True,
    # exp(score - logsumexp) rounds the difference of two numbers in the thousands
    tolerance={"float32": 1e-3},
)

contract(
    "seq2seq_decode",
    calls(
        states=tensor("B", "T", "H"),
        s0=tensor("B", "S"),
        targets=tensor("B", "Ty", "D"),
        params=dict_of(
            w_state=tensor("S", "A", values=WEIGHTS),
            w_states=tensor("H", "A", values=WEIGHTS),
            v=tensor("A"),
            w_y=tensor("D", "S", values=WEIGHTS),
            w_c=tensor("H", "S", values=WEIGHTS),
            w_s=tensor("S", "S", values=WEIGHTS),
            b=tensor("S"),
        ),
    ),
    gradients=True,
)

contract(
    "single_query_attention",
    calls(q=tensor("d"), k=tensor("N", "d"), v=tensor("N", "d_v")),
    dtypes=HALF,
    gradients=True,
)

contract(
    "attention_weights",
    calls(q=tensor("...", "N_q", "d"), k=tensor("...", "N_k", "d")),
    dtypes=HALF,
    gradients=True,
)

contract(
    "scaled_dot_product_attention",
    calls(
        q=tensor("...", "N_q", "d"),
        k=tensor("...", "N_k", "d"),
        v=tensor("...", "N_k", "d_v"),
    ),
    dtypes=HALF,
    gradients=True,
)


def _is_near(answer, right, arguments):
    """Whether a measured spread is near the root of the width: six standard errors and a bit."""
    d, num_samples, _ = arguments
    error = (1 + 3 / d) ** 0.5 / num_samples**0.5
    return isinstance(answer, float) and abs(answer / d**0.5 - 1) <= 6 * error + 0.02


contract(
    "score_std",
    calls(d=whole(1, 40), num_samples=choice(500, 2000, 5000), seed=whole(0, 1000)),
    right_if=_is_near,
)

contract("softmax_gradient_norm", calls(z=tensor("N")))

contract(
    "compare_layers",
    calls(n=whole(1, 40), d=whole(1, 20), k=whole(2, 9), num_layers=whole(1, 6)),
)

contract(
    "linear_scores",
    calls(
        state=tensor("B", "S"),
        states=tensor("B", "T", "H"),
        w=tensor("S + H"),
        b=tensor(),
    ),
    gradients=True,
)


def _dot_product(state, states):
    return (states @ state.unsqueeze(-1)).squeeze(-1)


def _near_or_far(state, states):
    return -(states - state.unsqueeze(1)).abs().sum(dim=-1)


contract(
    "query_effect",
    calls(
        score=choice(_dot_product, _near_or_far),
        state_a=tensor("B", "H"),
        state_b=tensor("B", "H"),
        states=tensor("B", "T", "H"),
    ),
)
