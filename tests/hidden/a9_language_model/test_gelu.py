"""gelu: the approximation with tanh, in wide arithmetic."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_same_gradients,
    call_twice,
    forbid,
    points,
    randn,
    tensor,
)

pytestmark = [forbid("torch.nn.functional.gelu", "torch.nn.GELU")]


def _expected(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@points(1.5)
def test_it_is_the_approximation_of_gpt2(student):
    """Places where the exact GELU differs in the fourth digit."""
    assert_close(
        student.gelu(tensor([2.0, -2.0, 1.0])),
        tensor([1.95459769, -0.04540231, 0.84119199]),
    )


@points(1)
def test_every_element_is_for_itself(student):
    """[3, 1, 4] numbers between -6 and 6, transposed; shape and dtype stay."""
    x = 2.5 * randn(4, 1, 3).transpose(0, 2)
    assert_close(call_twice(student.gelu, x), _expected(x))
    assert_close_in_turn(student.gelu, _expected, x)
    assert_close(student.gelu(x.float()), _expected(x).float(), atol=1e-5)


@points(1)
def test_gradients_flow(student):
    """The derivative at numbers on both sides of 0, against that of the formula."""
    assert_same_gradients(
        lambda x: student.gelu(x).sum(),
        lambda x: _expected(x).sum(),
        randn(9, grad=True),
    )


@points(1.5)
def test_half_precision_is_computed_wide(student):
    """In float16 the cube of 50 is infinite already. gelu(300) is 300, gelu(-300) is 0, and between
    -3 and 3 an answer is off by one unit in float16's last place at most. In bfloat16 1 + tanh rounds to 0 at -3, and gelu(-3) is not 0.
    """
    x = torch.tensor([300.0, -300.0, 50.0, -45.0], dtype=torch.float16)
    assert_close(
        student.gelu(x), torch.tensor([300.0, 0.0, 50.0, 0.0], dtype=torch.float16)
    )
    x = torch.linspace(-3, 3, 101, dtype=torch.float16)
    assert_close(student.gelu(x), _expected(x.float()).half(), rtol=1e-3)
    assert_close(
        student.gelu(x.bfloat16()),
        _expected(x.bfloat16().double()).bfloat16(),
        atol=1e-4,
        rtol=0.01,
    )
