"""Wrong answers that people give. Each has one wrong idea and is otherwise a good answer."""

from autograder.suite import mistake


@mistake(
    "centered",
    hint="Over which dimension is the mean taken? Two rows far apart should both end up around 0.",
    replace=("x.mean(dim=-1, keepdim=True)", "x.mean()"),
)
def one_mean_for_all_rows(): ...
