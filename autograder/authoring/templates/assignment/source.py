# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # ASSIGNMENT
#
# Say here what students build and learn. One question stands below, so that everything can be
# tried at once: exchange it for yours.
#
# | you write | what it does |
# | --- | --- |
# | `centered` | moves every row to mean 0 |

# %% given="library"
import torch

# %% given="expect"
from autograder.student_tools.expect import expect

# %% [markdown]
# ## 1. Rows around zero
#
# ★☆☆ · about 5 minutes
#
# $$y_j = x_j - \frac{1}{D} \sum_{i=1}^{D} x_i$$


# %% question="centered"
def centered(x):
    """Move every row to mean 0.

    Args:
        x: [..., D], floats, any number of leading dimensions.

    Returns:
        [..., D], each row minus its own mean.

    Raises:
        ValueError: rows of 0 numbers, which have no mean. The message names the length.
    """
    ### BEGIN SOLUTION
    if x.shape[-1] == 0:
        raise ValueError(f"rows of {x.shape[-1]} numbers have no mean")
    return x - x.mean(dim=-1, keepdim=True)  # [..., D] minus [..., 1]
    ### END SOLUTION


# %% check="centered"
expect(
    centered(torch.tensor([[1.0, 2.0, 6.0], [0.0, 4.0, 2.0]])),
    torch.tensor([[-2.0, -1.0, 3.0], [-2.0, 2.0, 0.0]]),
    hint="The first row has the mean 3, the second 2: each row loses its own.",
)

# %% [markdown] written="why_centered" points=10
# ## 2. In your own words
#
# Two rows differ by a constant in every place. What is left of the difference
# once both are centered, and why?
#
# ### BEGIN SOLUTION
# Nothing: the constant adds itself to the mean, which is then taken off again.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 5 points: nothing is left.
# - 5 points: the mean grows by the same constant.
# ### END MARK SCHEME
