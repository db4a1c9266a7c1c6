"""Wrong answers that people give, each with one wrong idea, and what to tell them."""

import torch

from autograder.suite import (
    back_to_front,
    has_dtype,
    ignores,
    is_what,
    mistake,
    needs_softmax,
    parts_exchanged,
    right_once_exchanged,
    scores_off_by,
    sums_to_one,
)

# --- helpers: the checks of the answer key, and pieces that several mistakes share


def _check_features(u, v):
    if u.shape[-1] != v.shape[-1]:
        raise ValueError(f"u has {u.shape[-1]} features and v has {v.shape[-1]}")


def _divide(numerator, denominator):
    """0 where the denominator is 0."""
    return numerator / torch.where(
        denominator == 0, torch.ones_like(denominator), denominator
    )


def _join(tokens, pair):
    joined = []
    for token in tokens:
        if joined and (joined[-1], token) == pair:
            joined[-1] += token
        else:
            joined.append(token)
    return joined


# --- one_hot


@mistake(
    "one_hot",
    hint="Ask for the dtype of your result: 0 and 1 as whole numbers cannot be multiplied "
    "with weights.",
    shows=has_dtype("int64"),
    replace=("== words).float()", "== words).long()"),
)
def one_hot_of_whole_numbers(): ...


@mistake(
    "one_hot",
    hint="float64 is not what torch makes its weights of: which dtype does torch.zeros give "
    "you unasked?",
    shows=has_dtype("float64"),
    replace=("== words).float()", "== words).double()"),
)
def one_hot_in_double(): ...


@mistake(
    "one_hot",
    hint="The width is vocab_size, whichever words happen to occur. Try ids that never use "
    "the last word.",
    replace=("torch.arange(vocab_size)", "torch.arange(int(ids.max()) + 1)"),
)
def vocabulary_ends_at_the_largest_id(): ...


@mistake(
    "one_hot",
    hint="Ids count from 0: word 0 has the first column.",
    keeps=0.65,
    replace=("torch.arange(vocab_size)", "torch.arange(1, vocab_size + 1)"),
)
def columns_count_from_one(): ...


@mistake(
    "one_hot",
    hint="Each id becomes a row, so the vocabulary is the last dimension of the result.",
    shows=sums_to_one(0),
    replace=("(ids[..., None] == words)", "(words.view(-1, *[1] * ids.dim()) == ids)"),
)
def vocabulary_comes_first(): ...


@mistake(
    "one_hot",
    hint="A batch of sentences has ids [B, N]. What happens to the dimensions in front?",
    replace=("ids[..., None]", "ids.reshape(-1, 1)"),
)
def flattens_the_ids(): ...


@mistake(
    "one_hot",
    hint="The id −1 is no word, although an index of −1 takes the last row: refuse it.",
    replace=[
        ("ids[(ids < 0) | (ids >= vocab_size)]", "ids[ids >= vocab_size]"),
        ("ids[..., None]", "ids[..., None] % vocab_size"),
    ],
)
def counts_negative_ids_from_the_end(): ...


@mistake(
    "one_hot",
    hint="With V words the ids end at V − 1. Is the id V itself refused?",
    replace=("ids >= vocab_size", "ids > vocab_size"),
)
def lets_the_id_v_through(): ...


@mistake(
    "one_hot",
    hint="With V words the ids end at V − 1: the id V goes through your checks, and torch complains "
    "in its own words.",
    replace=[
        ("ids >= vocab_size", "ids > vocab_size"),
        ("(ids[..., None] == words)", "torch.eye(vocab_size)[ids]"),
    ],
)
def indexes_with_the_id_v(): ...


@mistake(
    "one_hot",
    hint="An unknown id gets a row in your answer. Should that pass unnoticed?",
    replace=("if len(outside) > 0:", "if False:"),
)
def unknown_ids_become_zeros(): ...


# --- cosine_similarity


@mistake(
    "cosine_similarity",
    hint="Multiply u by 3: your result triples. What has to be divided out?",
    replace=("(dot / lengths).to(dtype)", "dot.to(dtype)"),
)
def plain_dot_product(): ...


@mistake(
    "cosine_similarity",
    keeps=0.65,
    hint="Stretch v and see: your result changes. Both vectors have a length.",
    replace=(
        "torch.linalg.vector_norm(u, dim=-1) * torch.linalg.vector_norm(v, dim=-1)",
        "torch.linalg.vector_norm(u, dim=-1)",
    ),
)
def divides_by_one_length_only(): ...


@mistake(
    "cosine_similarity",
    keeps=0.65,
    hint="A length is the root of the sum of squares. Is the root missing?",
    replace=(
        "torch.linalg.vector_norm(u, dim=-1) * torch.linalg.vector_norm(v, dim=-1)",
        "(u * u).sum(dim=-1) * (v * v).sum(dim=-1)",
    ),
)
def divides_by_squared_lengths(): ...


@mistake(
    "cosine_similarity",
    keeps=0.65,
    hint="Each word, each row of the table, has one length. Which dimension do you sum "
    "over to get it?",
    replace=[
        (
            "dot = (u * v).sum(dim=-1)",
            """
        columns = []
        for x in (u, v):
            length = torch.linalg.vector_norm(x, dim=0, keepdim=True)
            columns.append(x / torch.where(length == 0, 1, length) if x.dim() > 1 else x)
        dot = (columns[0] * columns[1]).sum(dim=-1)""",
        ),
        ("(dot / lengths).to(dtype)", "dot.to(dtype)"),
    ],
)
def normalizes_along_the_vocabulary(): ...


@mistake(
    "cosine_similarity",
    hint="Give it a zero vector: 0/0 is NaN, and the course wants 0 there.",
    replace=(
        "lengths = torch.where(lengths == 0, torch.ones_like(lengths), lengths)",
        "pass",
    ),
)
def zero_vector_gives_nan(): ...


@mistake(
    "cosine_similarity",
    hint="Replacing NaN in the result repairs the value and not the gradient. Keep 0/0 from "
    "being computed.",
    replace=[
        (
            "lengths = torch.where(lengths == 0, torch.ones_like(lengths), lengths)",
            "pass",
        ),
        ("(dot / lengths)", "torch.nan_to_num(dot / lengths, nan=0.0)"),
    ],
)
def repairs_nan_afterwards(): ...


@mistake(
    "cosine_similarity",
    hint="The small number that you add outweighs the lengths of short vectors. Try vectors of "
    "size 1e-5.",
    replace=(
        "lengths = torch.where(lengths == 0, torch.ones_like(lengths), lengths)",
        "lengths = lengths + 1e-8",
    ),
)
def adds_a_small_number_to_the_lengths(): ...


@mistake(
    "cosine_similarity",
    hint="A lower bound for the lengths changes every vector that is shorter. Only the zero "
    "vector is special.",
    replace=(
        "lengths = torch.where(lengths == 0, torch.ones_like(lengths), lengths)",
        "lengths = lengths.clamp(min=1e-8)",
    ),
)
def lengths_have_a_lower_bound(): ...


@mistake(
    "cosine_similarity",
    keeps=0.65,
    hint="Opposite vectors should give −1. Where does your sign go?",
    replace=("(dot / lengths)", "(dot / lengths).abs()"),
)
def sign_is_lost(): ...


@mistake(
    "cosine_similarity",
    keeps=0.65,
    hint="A larger angle must give a smaller number, +1 for equal directions: this is the "
    "distance, 1 − cos.",
    shows=is_what("one minus"),
    replace=("(dot / lengths)", "(1 - dot / lengths)"),
)
def returns_a_distance(): ...


@mistake(
    "cosine_similarity",
    hint="float16 ends at 65504, which a square reaches at 256. Where should the squares "
    "be computed?",
)
def squares_in_half_precision(u, v):
    _check_features(u, v)
    lengths = (u * u).sum(dim=-1).sqrt() * (v * v).sum(dim=-1).sqrt()
    if not (u.requires_grad or v.requires_grad):
        return _divide((u * v).sum(dim=-1), lengths)
    lengths = torch.linalg.vector_norm(u, dim=-1) * torch.linalg.vector_norm(v, dim=-1)
    return _divide((u * v).sum(dim=-1), lengths)


@mistake(
    "cosine_similarity",
    hint="float16 came in. What dtype goes out?",
    shows=has_dtype("float32"),
    replace=("(dot / lengths).to(dtype)", "dot / lengths"),
)
def cosine_stays_wide(): ...


@mistake(
    "cosine_similarity",
    hint="After your call the caller's vectors have length 1: `/=`, and functions with a _ at the "
    "end, write into them.",
    replace=(
        "dot = (u * v).sum(dim=-1)",
        """
        if not (u.requires_grad or v.requires_grad):
            u /= torch.where(u.any(dim=-1, keepdim=True), torch.linalg.vector_norm(u, dim=-1, keepdim=True), 1)
            v /= torch.where(v.any(dim=-1, keepdim=True), torch.linalg.vector_norm(v, dim=-1, keepdim=True), 1)
        dot = (u * v).sum(dim=-1)""",
    ),
)
def normalizes_in_place(): ...


@mistake(
    "cosine_similarity",
    keeps=0.65,
    hint="`@` on two matrices compares every row with every row. Here each vector meets "
    "its partner.",
    replace=[
        (
            "dot = (u * v).sum(dim=-1)",
            """
        a = u / torch.where(u.any(dim=-1, keepdim=True), torch.linalg.vector_norm(u, dim=-1, keepdim=True), 1)
        b = v / torch.where(v.any(dim=-1, keepdim=True), torch.linalg.vector_norm(v, dim=-1, keepdim=True), 1)
        dot = a @ (b.transpose(-1, -2) if b.dim() > 1 else b)""",
        ),
        (
            "lengths = torch.linalg.vector_norm(u, dim=-1) * torch.linalg.vector_norm(v, dim=-1)",
            "lengths = torch.ones(())",
        ),
    ],
)
def compares_all_rows_with_all_rows(): ...


@mistake(
    "cosine_similarity",
    hint="Detached values carry no gradient: nothing would ever learn through this similarity.",
    replace=[
        (
            "dot = (u * v).sum(dim=-1)",
            """
        nothing = 0 * (u.sum() + v.sum())
        u, v = u.detach(), v.detach()
        dot = (u * v).sum(dim=-1)""",
        ),
        ("(dot / lengths)", "(dot / lengths + nothing)"),
    ],
)
def cosine_without_gradient(): ...


# --- nearest


@mistake(
    "nearest",
    hint="A long row has a large dot product in nearly every direction. What should be compared?",
    replace=(
        "cosine_similarity(table, query)",
        "table @ query + 0 * cosine_similarity(table, query)",
    ),
)
def ranks_by_dot_product(): ...


@mistake(
    "nearest",
    hint="The distance between the tips punishes long and short vectors. The angle does not: use "
    "your cosine.",
    replace=("cosine_similarity(table, query)", "-(table - query).norm(dim=1)"),
)
def ranks_by_distance(): ...


@mistake(
    "nearest",
    keeps=0.65,
    hint="The word at the front of your answer is the one that points away most. Which end "
    "is the best?",
    replace=("cosine_similarity(table, query)", "-cosine_similarity(table, query)"),
)
def worst_words_first(): ...


@mistake(
    "nearest",
    hint="The right words, from the worst to the best. The nearest should come first.",
    shows=back_to_front(0),
    keeps=0.65,
    replace=(".indices", ".indices.flip(0)"),
)
def best_word_last(): ...


@mistake(
    "nearest",
    keeps=0.65,
    hint="The right words, but sorted by their ids. The nearest should come first.",
    replace=(".indices", ".indices.sort().values"),
)
def sorted_by_id(): ...


@mistake(
    "nearest",
    hint="The words to leave out are still in your answer: is `exclude` used at all?",
    replace=("if excluded:", "if False:"),
)
def ignores_exclude(): ...


@mistake(
    "nearest",
    hint="After rows are deleted all later rows have moved up. Your ids belong to the "
    "shorter table.",
    replace=[
        ("if excluded:", "if False:"),
        (
            "return scores.topk(k).indices",
            """
        kept = [i for i in range(vocab_size) if i not in excluded]
        return scores[kept].topk(k).indices""",
        ),
    ],
)
def ids_of_the_shortened_table(): ...


@mistake(
    "nearest",
    hint="A score of 0 for excluded words beats every word with a negative similarity.",
    replace=("-math.inf", "0.0"),
)
def excluded_words_get_zero(): ...


@mistake(
    "nearest",
    hint="First the best k, then the exclusion: now fewer than k are left.",
    replace=[
        ("if excluded:", "if False:"),
        (
            "return scores.topk(k).indices",
            """
        best = scores.topk(k).indices.tolist()
        return torch.tensor([i for i in best if i not in excluded], dtype=torch.int64)""",
        ),
    ],
)
def excludes_after_taking_the_best(): ...


@mistake(
    "nearest",
    hint="These are the similarities. The question asks for the ids of the words.",
    replace=(".indices", ".values"),
)
def returns_the_similarities(): ...


@mistake(
    "nearest",
    hint="int32 ids: torch's own indices are int64, and so should these be.",
    shows=has_dtype("int32"),
    replace=(".indices", ".indices.int()"),
)
def ids_in_int32(): ...


@mistake(
    "nearest",
    hint="Rows of the caller's table are other numbers after your call. The next call needs them: "
    "change the scores, not the table.",
    replace=(
        "return scores.topk(k).indices",
        """
        table[excluded] = 0.0
        return scores.topk(k).indices""",
    ),
)
def erases_the_excluded_rows(): ...


@mistake(
    "nearest",
    hint="One call for each word: cosine_similarity takes the whole table at once.",
    replace=(
        "cosine_similarity(table, query)",
        "torch.stack([cosine_similarity(row, query) for row in table])",
    ),
)
def loops_over_the_vocabulary(): ...


@mistake(
    "nearest",
    hint="How many words are left after the excluded ones? Compare k with that number, not with V.",
    replace=("if not 1 <= k <= left:", "if not 1 <= k <= vocab_size:"),
)
def forgets_the_excluded_when_counting(): ...


@mistake(
    "nearest",
    hint="When fewer than k words are left you answer all the same, and nobody is told. "
    "The docstring asks for a ValueError.",
    replace=(
        "if not 1 <= k <= left:",
        """
        k = min(k, left)
        if not 1 <= k <= left:""",
    ),
)
def returns_fewer_when_too_many_are_asked(): ...


@mistake(
    "nearest",
    hint="An id may occur twice in exclude. Then it leaves one word less, not two.",
    replace=("vocab_size - len(excluded)", "vocab_size - len(exclude)"),
)
def counts_a_repeated_exclusion_twice(): ...


@mistake(
    "nearest",
    hint="You return as many words as in the example. It is k that says how many.",
    replace=("topk(k)", "topk(min(4, left))"),
)
def always_returns_four(): ...


@mistake(
    "nearest",
    hint="exclude=(−1,) removes the last word in your answer. Is −1 an id of the table?",
    replace=("set(exclude)", "{i % vocab_size if i < 0 else i for i in exclude}"),
)
def excludes_from_the_end(): ...


@mistake(
    "nearest",
    keeps=0.65,
    hint="The word in the opposite direction comes out near: a square has lost the sign of the "
    "cosine.",
    replace=("cosine_similarity(table, query)", "cosine_similarity(table, query) ** 2"),
)
def ranks_by_the_squared_cosine(): ...


# --- analogy


@mistake(
    "analogy",
    hint="Check the target by hand with a = (1, 0), b = (5, 1), c = (1, 1): which word "
    "has the minus?",
    keeps=0.65,
    replace=("table[b] - table[a]", "table[a] - table[b]"),
)
def exchanges_a_and_b(): ...


@mistake(
    "analogy",
    keeps=0.65,
    hint="king − man + woman: the step from a to b is added to c, not c taken away from it.",
    replace=("table[b] - table[a] + table[c]", "table[b] + table[a] - table[c]"),
)
def subtracts_c(): ...


@mistake(
    "analogy",
    hint="All three words have a plus in your target. A step is a difference.",
    replace=("table[b] - table[a]", "table[b] + table[a]"),
)
def adds_all_three(): ...


@mistake(
    "analogy",
    hint="The nearest word to the target is one of those you asked with, so you got your own "
    "question back.",
    replace=(
        "return int(nearest(table, target, k=1, exclude=(a, b, c))[0])",
        """
        if len({a, b, c}) >= table.shape[0]:
            raise ValueError("no word is left")
        return int(nearest(table, target, k=1)[0])""",
    ),
)
def returns_a_word_asked_with(): ...


@mistake(
    "analogy",
    hint="Two of the three words are left out. Can the third be the answer?",
    replace=(
        "return int(nearest(table, target, k=1, exclude=(a, b, c))[0])",
        """
        if len({a, b, c}) >= table.shape[0]:
            raise ValueError("no word is left")
        return int(nearest(table, target, k=1, exclude=(b, c))[0])""",
    ),
)
def leaves_out_only_b_and_c(): ...


@mistake(
    "analogy",
    hint="Only c is left out. Where the step is large, the target lies near b.",
    replace=(
        "return int(nearest(table, target, k=1, exclude=(a, b, c))[0])",
        """
        if len({a, b, c}) >= table.shape[0]:
            raise ValueError("no word is left")
        return int(nearest(table, target, k=1, exclude=(c,))[0])""",
    ),
)
def leaves_out_only_c(): ...


@mistake(
    "analogy",
    hint="Nearest by cosine: you measure the distance to the target instead.",
    replace=(
        "return int(nearest(table, target, k=1, exclude=(a, b, c))[0])",
        """
        nearest(table, target, k=1, exclude=(a, b, c))  # refuses where no word is left
        scores = -(table - target).norm(dim=1)
        scores[[a, b, c]] = -math.inf
        return int(scores.argmax())""",
    ),
)
def analogy_by_distance(): ...


@mistake(
    "analogy",
    hint="With the dot product the longest word wins many analogies. Nearest means by cosine.",
    replace=(
        "return int(nearest(table, target, k=1, exclude=(a, b, c))[0])",
        """
        nearest(table, target, k=1, exclude=(a, b, c))  # refuses where no word is left
        scores = table @ target
        scores[[a, b, c]] = -math.inf
        return int(scores.argmax())""",
    ),
)
def analogy_by_dot_product(): ...


@mistake(
    "analogy",
    hint="You made all rows equally long before the arithmetic. The contract works on the rows "
    "as they are.",
    replace=(
        "target = table[b] - table[a] + table[c]",
        """
        lengths = table.norm(dim=1, keepdim=True)
        unit = table / torch.where(lengths == 0, 1, lengths)
        target = unit[b] - unit[a] + unit[c]""",
    ),
)
def normalizes_the_rows_first(): ...


@mistake(
    "analogy",
    keeps=0.65,
    hint="The answer is an id, a Python int. You return a tensor.",
    replace=(
        "return int(nearest(table, target, k=1, exclude=(a, b, c))[0])",
        "return nearest(table, target, k=1, exclude=(a, b, c))[0]",
    ),
)
def returns_a_tensor(): ...


@mistake(
    "analogy",
    hint="`+=` on a row of the table writes into the table. Call it twice: is the answer the same?",
    replace=(
        "target = table[b] - table[a] + table[c]",
        """
        target = table[b]
        target += table[c] - table[a]""",
    ),
)
def moves_the_word_itself(): ...


@mistake(
    "analogy",
    hint="table[−1] is the last row, and no error. Check the three ids before you use them.",
    replace=(
        "for i in (a, b, c):",
        """
        a, b, c = (i + table.shape[0] if i < 0 else i for i in (a, b, c))
        for i in (a, b, c):""",
    ),
)
def negative_ids_count_from_the_end(): ...


# --- softmax


@mistake(
    "softmax",
    hint="Try scores of 1000: exp gives inf, and inf/inf is NaN. What may be subtracted "
    "from all scores "
    "without any change?",
    replace=[
        ("wide - top", "wide"),
        (
            "(powers / torch.where(total == 0, torch.ones_like(total), total))",
            "(powers / total)",
        ),
    ],
)
def no_maximum_subtracted(): ...


@mistake(
    "softmax",
    hint="One maximum for everything: of a row far below it only zeros are left, or 0/0. Each row "
    "needs its own.",
    replace=[
        ("wide - top", "wide - wide.max()"),
        (
            "(powers / torch.where(total == 0, torch.ones_like(total), total))",
            "(powers / total)",
        ),
    ],
)
def one_maximum_for_all_rows(): ...


@mistake(
    "softmax",
    hint="Scores of 1000 no longer overflow, but rows around −5000 do not share 1. Clipping "
    "changes scores, "
    "a shift does not.",
    replace=("wide - top", "wide.clamp(max=80.0)"),
)
def clips_the_scores(): ...


@mistake(
    "softmax",
    hint="The argument dim is not used: look at the sums along each dimension of a [3, 5, 7].",
    shows=sums_to_one(-1),
    replace=(
        "wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z",
        """
        dim = -1
        wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z""",
    ),
)
def always_the_last_dimension(): ...


@mistake(
    "softmax",
    keeps=0.65,
    hint="Without an argument the last dimension should sum to 1. In yours the first does.",
    shows=sums_to_one(0),
    replace=(
        "wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z",
        """
        dim = 0
        wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z""",
    ),
)
def always_the_first_dimension(): ...


@mistake(
    "softmax",
    hint="The slides write dim=1, which is the last dimension of a matrix. Of three dimensions "
    "it is the middle one.",
    replace=[
        ("dim=-1):", "dim=1):"),
        (
            "wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z",
            """
        dim = dim if z.dim() > 1 else 0
        wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z""",
        ),
    ],
)
def dim_one_unless_told_otherwise(): ...


@mistake(
    "softmax",
    hint="Everything together sums to 1 in your answer. Each row should.",
    shows=sums_to_one(0, 1),
    replace=("powers.sum(dim=dim, keepdim=True)", "powers.sum()"),
)
def one_distribution_for_everything(): ...


@mistake(
    "softmax",
    keeps=0.65,
    hint="Without keepdim the sums of the rows line up with the columns. On a square matrix "
    "nothing warns you.",
    replace=("powers.sum(dim=dim, keepdim=True)", "powers.sum(dim=dim)"),
)
def sums_line_up_with_the_wrong_dimension(): ...


@mistake(
    "softmax",
    hint="The exponentials are right, and nothing divides them by their sum.",
    replace=(
        "(powers / torch.where(total == 0, torch.ones_like(total), total))",
        "powers",
    ),
)
def forgets_to_divide(): ...


@mistake(
    "softmax",
    hint="Shares of the scores instead of their exponentials: what becomes of negative scores?",
    replace=(
        "(powers / torch.where(total == 0, torch.ones_like(total), total))",
        "(wide / wide.sum(dim=dim, keepdim=True))",
    ),
)
def divides_the_scores_themselves(): ...


@mistake(
    "softmax",
    hint="Your base is 2. The formula says e.",
    shows=scores_off_by(),
    keeps=0.65,
    replace=("torch.exp(", "torch.exp2("),
)
def base_two(): ...


@mistake(
    "softmax",
    hint="A row of −inf: its maximum is −inf, and −inf − (−inf) is NaN. The course wants "
    "zeros there.",
    replace=[
        ("top = torch.where(top == -math.inf, torch.zeros_like(top), top)", "pass"),
        (
            "(powers / torch.where(total == 0, torch.ones_like(total), total))",
            "(powers / total)",
        ),
    ],
)
def nan_where_all_scores_are_minus_infinity(): ...


@mistake(
    "softmax",
    hint="nan_to_num hides the NaN of a real bug along with yours. Decide the row of −inf "
    "where it arises.",
    replace=(
        "(powers / torch.where(total == 0, torch.ones_like(total), total))",
        "torch.nan_to_num(powers / torch.where(total == 0, torch.ones_like(total), total), nan=0.0)",
    ),
)
def hides_every_nan(): ...


@mistake(
    "softmax",
    hint="The values are right, the gradient past a row of −inf is NaN: torch.where on the "
    "result is too late.",
    replace=[
        (
            "top = torch.where(top == -math.inf, torch.zeros_like(top), top)",
            "empty = top == -math.inf",
        ),
        (
            "(powers / torch.where(total == 0, torch.ones_like(total), total))",
            "torch.where(empty, torch.zeros_like(powers), powers / total)",
        ),
    ],
)
def chooses_zero_too_late(): ...


@mistake(
    "softmax",
    hint="−inf was replaced by a number in your answer. Other scores can be lower than that, "
    "and then the "
    "impossible word wins.",
    replace=[
        (
            "top = wide.amax(dim=dim, keepdim=True)",
            """
        empty = (z == -math.inf).all(dim=dim, keepdim=True)
        wide = wide.masked_fill(wide == -math.inf, -2.0)
        top = wide.amax(dim=dim, keepdim=True)""",
        ),
        (
            "(powers / torch.where(total == 0, torch.ones_like(total), total))",
            "torch.where(empty, 0.0, powers / total)",
        ),
    ],
)
def minus_infinity_is_a_large_number(): ...


@mistake(
    "softmax",
    hint="A row of −inf has nothing to share. In your answer it shares equally.",
    replace=(
        "top = wide.amax(dim=dim, keepdim=True)",
        """
        empty = (wide == -math.inf).all(dim=dim, keepdim=True)
        wide = torch.where(empty, torch.zeros_like(wide), wide)
        top = wide.amax(dim=dim, keepdim=True)""",
    ),
)
def a_row_of_minus_infinity_is_uniform(): ...


@mistake(
    "softmax",
    hint="float16 came in. What dtype goes out?",
    shows=has_dtype("float32"),
    replace=(".to(z.dtype)", ""),
)
def softmax_stays_wide(): ...


@mistake(
    "softmax",
    hint="In half precision the exponentials have three digits and long sums lose their "
    "small terms. "
    "Compute in float32.",
    replace=(
        "wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z",
        "wide = z",
    ),
)
def computes_in_half_precision(): ...


@mistake(
    "softmax",
    hint="The caller's scores are other numbers after your call: `-=`, and functions with a _ at "
    "the end, write into them.",
    replace=(
        "wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z",
        """
        if not z.requires_grad:
            top = z.amax(dim=dim, keepdim=True)
            z -= torch.where(top == -math.inf, torch.zeros_like(top), top)
        wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z""",
    ),
)
def shifts_the_scores_in_place(): ...


@mistake(
    "softmax",
    hint="The result has no gradient: something was detached on the way.",
    replace=[
        (
            "wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z",
            """
        nothing = 0 * torch.where(z == -math.inf, torch.zeros_like(z), z)
        z = z.detach()
        wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z""",
        ),
        (".to(z.dtype)", ".to(z.dtype) + nothing"),
    ],
)
def softmax_without_gradient(): ...


# --- skip_gram_probabilities


@mistake(
    "skip_gram_probabilities",
    hint="Vectors of length 30 have scores near 900. Your softmax of section 5 knows what to "
    "do with them.",
    replace=("softmax(scores)", "torch.exp(scores) / torch.exp(scores).sum()"),
)
def skip_gram_overflows(): ...


@mistake(
    "skip_gram_probabilities",
    keeps=0.65,
    hint="The score is the dot product as it stands. With cosines every word stays nearly "
    "equally probable.",
    replace=("context_table @ center", "cosine_similarity(context_table, center)"),
)
def scores_are_cosines(): ...


@mistake(
    "skip_gram_probabilities",
    hint="The scaled dot product belongs to attention. Skip-gram takes the dot product as it is.",
    keeps=0.65,
    replace=(
        "context_table @ center",
        "context_table @ center / center.shape[-1] ** 0.5",
    ),
)
def divides_by_the_root_of_d(): ...


@mistake(
    "skip_gram_probabilities",
    hint="These are the scores. What turns scores into probabilities?",
    shows=needs_softmax(-1),
    replace=("softmax(scores)", "scores"),
)
def returns_the_scores(): ...


@mistake(
    "skip_gram_probabilities",
    hint="A sigmoid looks at each word alone; the probabilities of all words should share 1.",
    replace=("softmax(scores)", "torch.sigmoid(scores)"),
)
def a_sigmoid_for_each_word(): ...


@mistake(
    "skip_gram_probabilities",
    hint="Your distribution runs over the features. Take a table with V ≠ d and look at the shape.",
    replace=("context_table @ center", "(context_table * center).sum(dim=0)"),
)
def shares_over_the_features(): ...


@mistake(
    "skip_gram_probabilities",
    keeps=0.65,
    hint="Your scores measure distances between vectors. The formula has dot products.",
    replace=("context_table @ center", "-(context_table - center).norm(dim=1)"),
)
def scores_are_distances(): ...


@mistake(
    "skip_gram_probabilities",
    hint="Logarithms of probabilities come out. Here the probabilities themselves are "
    "asked for; the "
    "logarithm is section 7.",
    shows=is_what("log") & needs_softmax(-1),
    keeps=0.65,
    replace=("softmax(scores)", "torch.log(softmax(scores))"),
)
def returns_log_probabilities(): ...


@mistake(
    "skip_gram_probabilities",
    hint="The gradient stops at the table. Both tables have to learn.",
    replace=(
        "context_table @ center",
        "context_table.detach() @ center + 0 * context_table.sum()",
    ),
)
def the_table_does_not_learn(): ...


# --- skip_gram_pairs


@mistake(
    "skip_gram_pairs",
    hint="Only the words behind a center are its contexts in your answer. The window reaches "
    "to both sides.",
    replace=("words[max(0, i - window) : i] + words[", "words["),
)
def only_what_comes_after(): ...


@mistake(
    "skip_gram_pairs",
    hint="Only the words before a center are its contexts in your answer. The window reaches "
    "to both sides.",
    replace=(" + words[i + 1 : i + 1 + window]", ""),
)
def only_what_came_before(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.65,
    hint="Each place is paired with itself. It is the center: which places are left?",
    replace=("words[i + 1 : i + 1 + window]", "words[i : i + 1 + window]"),
)
def a_place_is_its_own_context(): ...


@mistake(
    "skip_gram_pairs",
    hint="You leave out words that equal the center. It is the place that may not be paired with "
    "itself, not the word.",
    replace=(
        "words[max(0, i - window) : i] + words[i + 1 : i + 1 + window]",
        "[w for w in words[max(0, i - window) : i] + words[i + 1 : i + 1 + window] if w != center]",
    ),
)
def leaves_out_equal_words(): ...


@mistake(
    "skip_gram_pairs",
    hint="The last word of a sentence has the first one of the next sentence as its context in "
    "your answer.",
    replace=(
        "for sentence in sentences:",
        "for sentence in [torch.cat(sentences)] if sentences else []:",
    ),
)
def reaches_across_sentences(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.65,
    hint="You share the window out over the two sides. It reaches w places to each of them.",
    replace=[
        ("i - window", "i - window // 2"),
        ("i + 1 + window", "i + 1 + window // 2"),
    ],
)
def half_the_window_to_each_side(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.65,
    hint="To the right your window ends one place early. A slice stops before its end.",
    replace=("i + 1 + window", "i + window"),
)
def stops_one_place_early(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.65,
    hint="Your window reaches one place too far to the right. How far is the last context "
    "from the center?",
    replace=("i + 1 + window", "i + 2 + window"),
)
def reaches_one_place_too_far(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.65,
    hint="Words near an end of the sentence are no centers in your answer. Their window is cut "
    "off, not left out.",
    replace=(
        "in enumerate(words)",
        "in list(enumerate(words))[window : len(words) - window]",
    ),
)
def only_centers_with_a_full_window(): ...


@mistake(
    "skip_gram_pairs",
    hint="A slice that begins below 0 begins near the end. What do the first words of a sentence "
    "have before them?",
    replace=("max(0, i - window)", "i - window"),
)
def slices_from_below_zero(): ...


@mistake(
    "skip_gram_pairs",
    hint="Each pair is there once in your answer. A pair that occurs five times in the text "
    "counts five times.",
    replace=(
        "return torch.tensor(centers, dtype=torch.int64), torch.tensor(contexts, dtype=torch.int64)",
        "return tuple(torch.tensor([p[s] for p in dict.fromkeys(zip(centers, contexts))]).long() "
        "for s in (0, 1))",
    ),
)
def distinct_pairs_only(): ...


@mistake(
    "skip_gram_pairs",
    hint="Only words that are exactly w places away are contexts in your answer. What of the "
    "nearer ones?",
    replace=(
        "words[max(0, i - window) : i] + words[i + 1 : i + 1 + window]",
        "[word for j, word in enumerate(words) if abs(i - j) == window]",
    ),
)
def only_the_edge_of_the_window(): ...


@mistake(
    "skip_gram_pairs",
    hint="You compare ids: words whose numbers are near. The window is about places in "
    "the sentence.",
    replace=(
        "words[max(0, i - window) : i] + words[i + 1 : i + 1 + window]",
        "[word for j, word in enumerate(words) if j != i and abs(word - center) <= window]",
    ),
)
def near_by_number(): ...


@mistake(
    "skip_gram_pairs",
    hint="Every other word of the sentence is a context in your answer. How far does the "
    "window reach?",
    replace=[("max(0, i - window)", "0"), ("i + 1 + window", "len(words)")],
)
def the_whole_sentence(): ...


@mistake(
    "skip_gram_pairs",
    hint="Your first tensor holds the contexts. In which order does skip_gram_loss take the two?",
    replace=[
        ("torch.tensor(centers", "torch.tensor(contexts"),
        ("torch.tensor(contexts", "torch.tensor(centers"),
    ],
)
def contexts_come_first(): ...


@mistake(
    "skip_gram_pairs",
    hint="Your pairs are sorted by their distance: all neighbours to the left first, say. They come "
    "center by center, in the order of the text.",
    replace=(
        """
        for i, center in enumerate(words):
            around = words[max(0, i - window) : i] + words[i + 1 : i + 1 + window]  # before, then behind
            centers += [center] * len(around)
            contexts += around
        """,
        """
        for offset in range(-window, window + 1):
            for i, center in enumerate(words):
                if offset and 0 <= i + offset < len(words):
                    centers.append(center)
                    contexts.append(words[i + offset])
        """,
    ),
)
def sorted_by_the_distance(): ...


@mistake(
    "skip_gram_pairs",
    hint="Your contexts go outwards from the center, one to the left and one to the right. They "
    "are sorted by their place in the sentence.",
    replace=(
        "words[max(0, i - window) : i] + words[i + 1 : i + 1 + window]",
        "[words[j] for step in range(1, window + 1) for j in (i - step, i + step) "
        "if 0 <= j < len(words)]",
    ),
)
def contexts_in_rings(): ...


@mistake(
    "skip_gram_pairs",
    hint="The contexts before a center come out backwards, the nearest first. They are sorted by "
    "their place.",
    replace=(
        "words[max(0, i - window) : i] +",
        "words[max(0, i - window) : i][::-1] +",
    ),
)
def the_nearest_context_first(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.65,
    hint="Two tensors are asked for, centers and contexts; yours is one with two columns.",
    replace=(
        "return torch.tensor(centers, dtype=torch.int64), torch.tensor(contexts, dtype=torch.int64)",
        "return torch.tensor([centers, contexts], dtype=torch.int64).T",
    ),
)
def one_tensor_of_pairs(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.65,
    hint="You return lists. Ids that pick rows of a table are an int64 tensor.",
    replace=(
        "return torch.tensor(centers, dtype=torch.int64), torch.tensor(contexts, dtype=torch.int64)",
        "return centers, contexts",
    ),
)
def lists_of_ids(): ...


@mistake(
    "skip_gram_pairs",
    hint="A tensor made of an empty list is float32. Which dtype have ids, even where "
    "there are none?",
    replace=[
        ("centers, dtype=torch.int64", "centers"),
        ("contexts, dtype=torch.int64", "contexts"),
    ],
)
def floats_where_nothing_is(): ...


@mistake(
    "skip_gram_pairs",
    hint="A text without sentences makes your function fail. It has no pairs, and that "
    "is an answer.",
    replace=(
        "centers, contexts = [], []",
        "centers, contexts, longest = [], [], max(map(len, sentences))",
    ),
)
def wants_a_sentence(): ...


@mistake(
    "skip_gram_pairs",
    hint="A window of 0 places reaches no word. Which windows should be refused?",
    replace=("window < 1", "window < 0"),
)
def takes_a_window_of_nothing(): ...


# --- skip_gram_loss


@mistake(
    "skip_gram_loss",
    hint="Pass the same batch three times: your loss triples. Sum or mean?",
    keeps=0.65,
    replace=(".mean()", ".sum()"),
)
def sums_over_the_pairs(): ...


@mistake(
    "skip_gram_loss",
    keeps=0.65,
    hint="The candidates are all V words. Yours are the words of the batch only.",
    replace=[
        ("context_table.T", "context_table[context_ids].T"),
        ("context_ids[:, None]", "torch.arange(len(center_ids))[:, None]"),
    ],
)
def only_words_of_the_batch_compete(): ...


@mistake(
    "skip_gram_loss",
    keeps=0.65,
    hint="Each pair's scores are a row. Which dimension is the vocabulary, and which the pairs?",
    replace=(
        "torch.logsumexp(scores, dim=1)",
        "torch.logsumexp(scores, dim=0)[context_ids]",
    ),
)
def pairs_compete_for_a_word(): ...


@mistake(
    "skip_gram_loss",
    hint="A probability of e^−2000 is 0 as a float and its logarithm −inf. Simplify "
    "log(exp(s)/Σ) on paper first.",
    replace=(
        "(torch.logsumexp(scores, dim=1) - of_context)",
        "-torch.log(softmax(scores).gather(1, context_ids[:, None]))",
    ),
)
def logarithm_of_a_rounded_probability(): ...


@mistake(
    "skip_gram_loss",
    hint="A small number inside the logarithm puts a ceiling on the surprise: no pair can cost "
    "more than −log of it.",
    replace=(
        "(torch.logsumexp(scores, dim=1) - of_context)",
        "-torch.log(softmax(scores).gather(1, context_ids[:, None]) + 1e-12)",
    ),
)
def logarithm_with_a_floor(): ...


@mistake(
    "skip_gram_loss",
    hint="The exponentials overflow before the logarithm brings them back. Is there a stable "
    "way to the log "
    "of a sum of exponentials?",
    replace=("torch.logsumexp(scores, dim=1)", "scores.exp().sum(dim=1).log()"),
)
def logarithm_of_an_overflowing_sum(): ...


@mistake(
    "skip_gram_loss",
    hint="Your loss is negative: minimizing it makes the pairs of the text less probable.",
    shows=is_what("minus"),
    keeps=0.65,
    replace=(
        "(torch.logsumexp(scores, dim=1) - of_context)",
        "(of_context - torch.logsumexp(scores, dim=1))",
    ),
)
def the_sign_is_lost(): ...


@mistake(
    "skip_gram_loss",
    keeps=0.65,
    hint="Center ids pick rows of the center table, context ids of the context table. Yours "
    "are exchanged.",
    shows=right_once_exchanged("center_table", "context_table"),
    replace=(
        "if center_ids.shape != context_ids.shape:",
        """
        center_table, context_table = context_table, center_table
        if center_ids.shape != context_ids.shape:""",
    ),
)
def the_tables_are_exchanged(): ...


@mistake(
    "skip_gram_loss",
    keeps=0.65,
    hint="P{b|a} is not P{a|b}: who is given, and who is predicted?",
    replace=(
        "if center_ids.shape != context_ids.shape:",
        """
        center_ids, context_ids = context_ids, center_ids
        center_table, context_table = context_table, center_table
        if center_ids.shape != context_ids.shape:""",
    ),
)
def predicts_the_center(): ...


@mistake(
    "skip_gram_loss",
    keeps=0.65,
    hint="The context table plays no part in your loss. With one table for both roles each word "
    "predicts itself: use the context table for the candidates.",
    shows=ignores("context_table"),
    replace=(
        "if center_ids.shape != context_ids.shape:",
        """
        context_table = center_table + 0 * context_table.sum()
        if center_ids.shape != context_ids.shape:""",
    ),
)
def one_table_for_both_roles(): ...


@mistake(
    "skip_gram_loss",
    keeps=0.65,
    hint="The logarithm of the mean is not the mean of the logarithms.",
    replace=(
        "(torch.logsumexp(scores, dim=1) - of_context).mean()",
        "(math.log(len(scores)) - torch.logsumexp(of_context - torch.logsumexp(scores, "
        "dim=1), dim=0))",
    ),
)
def logarithm_of_the_mean(): ...


@mistake(
    "skip_gram_loss",
    hint="Only the score of the right word is rewarded. Without the competition of all others "
    "the vectors just grow.",
    replace=("(torch.logsumexp(scores, dim=1) - of_context)", "(-of_context)"),
)
def no_competition(): ...


@mistake(
    "skip_gram_loss",
    hint="A Python number has no gradient. Return the tensor.",
    replace=(".mean().to(center_table.dtype)", ".mean().to(center_table.dtype).item()"),
)
def returns_a_number(): ...


@mistake(
    "skip_gram_loss",
    keeps=0.65,
    hint="One loss for the batch is asked for: the mean of what you return.",
    replace=(".mean()", ""),
)
def returns_one_loss_a_pair(): ...


@mistake(
    "skip_gram_loss",
    hint="The gradient of the context table is missing: both tables have to learn.",
    replace=("context_table.T", "context_table.detach().T + 0 * context_table.sum()"),
)
def contexts_do_not_learn(): ...


@mistake(
    "skip_gram_loss",
    hint="One pair after the other is slow. One matrix product gives the scores of all pairs.",
    replace=(
        "center_table[center_ids] @ context_table.T",
        "torch.cat([center_table[i : i + 1] @ context_table.T for i in center_ids.tolist()])",
    ),
)
def loops_over_the_pairs(): ...


@mistake(
    "skip_gram_loss",
    hint="float16 tables give a float16 loss: what dtype goes out?",
    shows=has_dtype("float32"),
    replace=(".mean().to(center_table.dtype)", ".mean()"),
)
def loss_stays_wide(): ...


@mistake(
    "skip_gram_loss",
    hint="Logarithms to base 2 measure bits. The course uses the natural logarithm.",
    keeps=0.65,
    replace=(
        ".mean().to(center_table.dtype)",
        ".mean().to(center_table.dtype) / math.log(2)",
    ),
)
def measured_in_bits(): ...


@mistake(
    "skip_gram_loss",
    hint="−1 as an id takes the last row of a table, and the loss looks fine. Check the ids first.",
    replace=(
        "if center_ids.shape != context_ids.shape:",
        """
        center_ids = torch.where(center_ids < 0, center_ids + center_table.shape[0], center_ids)
        context_ids = torch.where(context_ids < 0, context_ids + context_table.shape[0], context_ids)
        if center_ids.shape != context_ids.shape:""",
    ),
)
def trains_on_negative_ids(): ...


# --- train_bpe


@mistake(
    "train_bpe",
    hint="Between equally frequent pairs yours is the one seen first, so the order of the dict "
    "decides. State "
    "the tie rule in code.",
    replace=(
        "min(pair for pair, count in counts.items() if count == most)",
        "max(counts, key=counts.get)",
    ),
)
def ties_go_to_the_first_seen(): ...


@mistake(
    "train_bpe",
    hint="Ties go to the smaller tuple; yours go to the larger one.",
    replace=("min(pair for", "max(pair for"),
)
def ties_go_to_the_larger_pair(): ...


@mistake(
    "train_bpe",
    hint='You compare the glued texts. The pairs themselves are compared: ("a", "z") < ("ab", "a").',
    replace=(
        "min(pair for pair, count in counts.items() if count == most)",
        "min(counts, key=lambda pair: (-counts[pair], pair[0] + pair[1]))",
    ),
)
def ties_compare_glued_text(): ...


@mistake(
    "train_bpe",
    hint="How often does a word occur? That number is in the dict, and it weighs the word's pairs.",
    replace=("+= words[word]", "+= 1"),
)
def every_word_counts_once(): ...


@mistake(
    "train_bpe",
    hint="A pair that stands twice in a word counts twice for it.",
    replace=("in pairwise(tokens)", "in set(pairwise(tokens))"),
)
def every_pair_counts_once_a_word(): ...


@mistake(
    "train_bpe",
    hint="zzz has the pair z·z at two positions. You skip the one that overlaps the first.",
    replace=(
        "for pair in pairwise(tokens):",
        """
        last = None
        for i, pair in enumerate(pairwise(tokens)):
            if last == (i - 1, pair):
                last = None
                continue
            last = (i, pair)""",
    ),
)
def overlapping_pairs_count_once(): ...


@mistake(
    "train_bpe",
    hint="The counts are those of the characters. After a join there are new neighbours: "
    "count again.",
    replace=(
        "most = max(counts.values())",
        """
        return sorted(counts, key=lambda pair: (-counts[pair], pair))[:num_merges]
        most = max(counts.values())""",
    ),
)
def counts_only_once(): ...


@mistake(
    "train_bpe",
    hint="Only the first occurrence in each word is joined. The pair is joined everywhere.",
    replace=[
        ("joined = []", "joined, is_done = [], False"),
        (
            "if joined and (joined[-1], token) == best:",
            """
        if joined and not is_done and (joined[-1], token) == best:
            is_done = True""",
        ),
    ],
)
def joins_only_the_first_occurrence(): ...


@mistake(
    "train_bpe",
    hint='Text replacement does not see where a token begins: "xa b" contains "a b".',
    replace=(
        "tokens_of[word] = joined",
        'tokens_of[word] = " ".join(tokens).replace(" ".join(best), "".join(best)).split(" ")',
    ),
)
def replaces_text(): ...


@mistake(
    "train_bpe",
    hint="zzzzz becomes zz·zz·z: you join from the right.",
    replace=[
        ("for token in tokens:", "for token in reversed(tokens):"),
        ("(joined[-1], token)", "(token, joined[0])"),
        ("joined[-1] += token", "joined[0] = token + joined[0]"),
        ("joined.append(token)", "joined.insert(0, token)"),
    ],
)
def joins_from_the_right(): ...


@mistake(
    "train_bpe",
    hint="A pair that occurs once is joined too, in this course.",
    replace=("if not counts:", "if not counts or max(counts.values()) < 2:"),
)
def stops_at_pairs_seen_once(): ...


@mistake(
    "train_bpe",
    hint="Ask for more merges than there are pairs: the list ends early, and nothing crashes.",
    replace=("if not counts:", "if False:"),
)
def crashes_when_no_pair_is_left(): ...


@mistake(
    "train_bpe",
    keeps=0.65,
    hint="There is no end-of-word mark in this course: your merges contain something that "
    "no word has.",
    replace=("list(word) for", '[*word, "</w>"] for'),
)
def adds_an_end_mark(): ...


@mistake(
    "train_bpe",
    hint="The pairs are asked for, (left, right), not the tokens that they make.",
    replace=("return merges", "return [left + right for left, right in merges]"),
)
def returns_the_tokens(): ...


@mistake(
    "train_bpe",
    keeps=0.65,
    hint="Pairs never reach across words. Yours join the end of one with the beginning of the next.",
    replace=(
        "tokens_of = {word",
        """
        words = {"".join(word * count for word, count in words.items()): 1}
        tokens_of = {word""",
    ),
)
def pairs_reach_across_words(): ...


@mistake(
    "train_bpe",
    hint="The caller's dict is different after your call. Work on your own copy of the counts.",
    replace=(
        "return merges",
        """
        for word in [word for word in words if len(word) < 3]:
            del words[word]
        return merges""",
    ),
)
def uses_up_the_counts(): ...


@mistake(
    "train_bpe",
    hint="One merge too many: how long is the list when num_merges is 1?",
    keeps=0.65,
    replace=("len(merges) < num_merges", "len(merges) <= num_merges"),
)
def one_merge_too_many(): ...


@mistake(
    "train_bpe",
    hint="A negative number of merges cannot be made: it should raise ValueError.",
    replace=("if num_merges < 0:", "if False:"),
)
def negative_means_none(): ...


# --- encode_bpe


@mistake(
    "encode_bpe",
    hint="You look for the longest known piece from the left. The order of learning decides, "
    "not the length.",
)
def longest_piece_first(word, merges):
    pieces = {left + right for left, right in merges}
    tokens = []
    while word:
        size = max([1] + [len(piece) for piece in pieces if word.startswith(piece)])
        tokens.append(word[:size])
        word = word[size:]
    return tokens


@mistake(
    "encode_bpe",
    keeps=0.65,
    hint="You stop at the shortest known piece. eat is one token, not e·at.",
)
def shortest_piece_first(word, merges):
    pieces = {left + right for left, right in merges}
    tokens = []
    while word:
        size = min([len(piece) for piece in pieces if word.startswith(piece)] or [1])
        tokens.append(word[:size])
        word = word[size:]
    return tokens


@mistake(
    "encode_bpe",
    keeps=0.65,
    hint="Characters that no merge knows have vanished. Glue your tokens together: is it the word?",
    replace=(
        "return tokens",
        """
        characters = {character for left, right in merges for character in left + right}
        return [token for token in tokens if len(token) > 1 or token in characters]""",
    ),
)
def drops_unknown_characters(): ...


@mistake(
    "encode_bpe",
    keeps=0.65,
    hint="The pair learned last is joined first in your answer. Which end of the list has the "
    "lowest rank?",
    replace=("min(known", "max(known"),
)
def learned_last_joined_first(): ...


@mistake(
    "encode_bpe",
    hint="A pair is joined that was learned later than one that overlaps it. The rank decides, "
    "neither the place in the word nor the length.",
)
def leftmost_pair_first(word, merges):
    tokens, pairs = list(word), set(merges)
    while places := [i for i, pair in enumerate(pairwise(tokens)) if pair in pairs]:
        i = places[0]
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
    return tokens


@mistake(
    "encode_bpe",
    hint="Your answer stops too early: a later merge can make a token that an earlier merge was "
    "waiting for, so one pass through the list is not enough.",
)
def one_pass_through_the_list(word, merges):
    tokens = list(word)
    for pair in merges:
        tokens = _join(tokens, pair)
    return tokens


@mistake(
    "encode_bpe",
    keeps=0.65,
    hint="Two neighbours in your answer are still a pair of the list. Go on, lowest rank first, "
    "until there are none.",
    replace=("tokens = joined", "return joined"),
)
def joins_once(): ...


@mistake(
    "encode_bpe",
    hint='Text replacement does not see where a token begins: "xa b" contains "a b".',
)
def encodes_by_replacing_text(word, merges):
    mark = "\0"
    text = mark.join(word)
    while True:
        tokens = text.split(mark) if text else []
        known = [pair for pair in merges if pair in list(pairwise(tokens))]
        if not known:
            return tokens
        text = text.replace(mark.join(known[0]), "".join(known[0]))


@mistake(
    "encode_bpe",
    hint="A full stop in a pattern stands for any character: re.escape makes a text a pattern. Or "
    "compare tokens, without patterns.",
)
def joins_by_an_unescaped_pattern(word, merges):
    import re

    rank = {pair: place for place, pair in enumerate(merges)}
    tokens = list(word)
    while known := [pair for pair in pairwise(tokens) if pair in rank]:
        left, right = min(known, key=rank.get)
        pattern = "(?<=\x00)" + left + "\x00" + right + "(?=\x00)"
        text = re.sub(pattern, left + right, "\x00".join(["", *tokens, ""]))
        if text[1:-1].split("\x00") == tokens:
            break
        tokens = text[1:-1].split("\x00")
    return tokens


@mistake(
    "encode_bpe",
    keeps=0.65,
    hint="There is no end-of-word mark in this course.",
    replace=("return tokens", 'return [*tokens, "</w>"]'),
)
def encodes_an_end_mark(): ...


@mistake(
    "encode_bpe",
    hint="The empty word has no tokens: an empty list, not a list with an empty string.",
    replace=("return tokens", 'return tokens or [""]'),
)
def the_empty_word_is_a_token(): ...


@mistake(
    "encode_bpe",
    hint="Your list of merges is empty after the first word. The next word needs it again.",
    replace=(
        "return tokens",
        """
        merges.clear()
        return tokens""",
    ),
)
def uses_up_the_merges(): ...


@mistake(
    "encode_bpe",
    hint="Your tokens are not made of *this* word and *these* merges: the answer holds for the "
    "example only.",
)
def knows_the_example_by_heart(word, merges):
    return {"eating": ["eat", "ing"], "singing": ["s", "ing", "ing"]}.get(
        word, list(word)
    )


@mistake(
    "encode_bpe",
    hint="You join from the end of the word to its beginning: zzz becomes z·zz. From left to "
    "right it is zz·z.",
    replace=(
        """
        for token in tokens:
            if joined and (joined[-1], token) == best:
                joined[-1] += token
            else:
                joined.append(token)
        """,
        """
        for token in reversed(tokens):
            if joined and (token, joined[0]) == best:
                joined[0] = token + joined[0]
            else:
                joined.insert(0, token)
        """,
    ),
)
def joins_from_the_end(): ...


# --- embed


@mistake(
    "embed",
    hint="Your rows are the same whatever the tokens are. The id picks the row, not the position.",
    shows=ignores("ids"),
    replace=(
        "table[ids]",
        "table[(torch.arange(ids.shape[-1]) % table.shape[0]).expand(ids.shape)]",
    ),
)
def picks_rows_by_position(): ...


@mistake(
    "embed",
    hint="−1 takes the last row of the table. Check the ids before you use them.",
    replace=("ids[(ids < 0) | (ids >= table.shape[0])]", "ids[ids >= table.shape[0]]"),
)
def negative_ids_pick_the_last_rows(): ...


@mistake(
    "embed",
    hint="An id above the table gets a vector in your answer, and nobody is told.",
    replace=[
        ("if len(outside) > 0:", "if False:"),
        ("table[ids]", "table[ids.clamp(0, table.shape[0] - 1)]"),
    ],
)
def ids_are_clamped_into_the_table(): ...


@mistake(
    "embed",
    hint="A matrix [N, V] of zeros and ones, to pick N rows: the result is right, the "
    "memory is not.",
    replace=("table[ids]", "one_hot(ids, table.shape[0]).to(table.dtype) @ table"),
)
def multiplies_with_one_hot(): ...


@mistake(
    "embed",
    hint="One token after the other is slow: a table can be indexed with a whole tensor of ids.",
    replace=(
        "table[ids]",
        "torch.stack([table[i] for i in ids.reshape(-1).tolist()]).reshape(*ids.shape, "
        "table.shape[1])",
    ),
)
def loops_over_the_tokens(): ...


@mistake(
    "embed",
    keeps=0.65,
    hint="Columns of the table came out. Each token is a row.",
    replace=("table[ids]", "table.T[ids % table.shape[1]]"),
)
def picks_columns(): ...


@mistake(
    "embed",
    keeps=0.65,
    hint="The features stand in the wrong place: the result is [..., N, D], with D last.",
    replace=("table[ids]", "table[ids].transpose(-1, -2)"),
)
def features_before_tokens(): ...


@mistake(
    "embed",
    hint="A batch [B, N] came in. Where is its first dimension?",
    replace=("table[ids]", "table[ids.reshape(-1)]"),
)
def flattens_the_batch(): ...


@mistake(
    "embed",
    hint="Only the first sentence of the batch was looked up.",
    replace=("table[ids]", "table[ids[0].expand(ids.shape) if ids.dim() > 1 else ids]"),
)
def embeds_only_the_first_sentence(): ...


@mistake(
    "embed",
    hint="Some models multiply embeddings by √D. Here a row comes out as it is.",
    keeps=0.65,
    replace=("table[ids]", "table[ids] * table.shape[1] ** 0.5"),
)
def scales_by_the_root_of_d(): ...


@mistake(
    "embed",
    hint="A copy without gradient: the table would never learn.",
    replace=("table[ids]", "table.detach()[ids] + 0 * table.sum()"),
)
def the_table_gets_no_gradient(): ...


@mistake(
    "embed",
    hint="No gradient comes back from your rows: numpy, detach() and torch.tensor(…) cut them off "
    "from the table, which would never learn.",
    replace=("table[ids]", "table.detach()[ids]"),
)
def rows_are_cut_off_from_the_table(): ...


@mistake(
    "embed",
    hint="assert raises AssertionError. The course asks for a ValueError, which names the id and V.",
    replace=("raise ValueError(", "raise AssertionError("),
)
def asserts_that_ids_are_there(): ...


@mistake(
    "embed",
    hint="A token that occurs three times gets three gradients, added up. Yours gets one.",
    replace=(
        "return table[ids]",
        """
        flat = ids.reshape(-1)
        earlier = (flat[:, None] == flat).tril(diagonal=-1).any(dim=1).reshape(ids.shape)
        return torch.where(earlier[..., None], table[ids].detach(), table[ids])""",
    ),
)
def repeated_tokens_learn_once(): ...


# --- break_the_equivalence


@mistake(
    "break_the_equivalence",
    hint="Your loud is long and points along v. Its dot product is large, but so is its "
    "cosine: change the "
    "direction, too.",
    replace=(
        "2 * dots.max() / (0.05 * v.norm()) * (0.05 * along + across)",
        "v * (2 * dots.max() / (v @ v))",
    ),
)
def loud_is_a_longer_copy(): ...


@mistake(
    "break_the_equivalence",
    hint="Exactly perpendicular means a dot product of exactly 0. Lean a little towards v.",
    replace=(
        "2 * dots.max() / (0.05 * v.norm()) * (0.05 * along + across)",
        "1000 * dots.max() * across",
    ),
)
def loud_is_perpendicular(): ...


@mistake(
    "break_the_equivalence",
    hint="The direction of loud is right. Is it long enough for every table, whose rows may be "
    "long themselves?",
    replace=(
        "2 * dots.max() / (0.05 * v.norm()) * (0.05 * along + across)",
        "1000 * (0.05 * along + across)",
    ),
)
def loud_has_a_fixed_length(): ...


@mistake(
    "break_the_equivalence",
    hint="You beat the dot product of v with itself. Another row may have a larger one.",
    replace=("dots.max()", "(v @ v)"),
)
def loud_beats_only_the_word_itself(): ...


@mistake(
    "break_the_equivalence",
    hint="You beat the dot product of v with itself. Another row may have a larger one.",
    replace=(
        "2 * dots.max() / (0.05 * v.norm()) * (0.05 * along + across)",
        "2 * v + 100 * v.norm() * across",
    ),
)
def loud_is_twice_the_word_and_far_across(): ...


@mistake(
    "break_the_equivalence",
    hint="Your second direction is always the first axis. What remains of it when v lies "
    "on that axis?",
    replace=("across[v.abs().argmin()]", "across[0]"),
)
def across_is_always_the_first_axis(): ...


@mistake(
    "break_the_equivalence",
    hint="A shorter copy of v by a fixed factor: some row may have a smaller positive dot "
    "product still.",
    replace=("v * dots[dots > 0].min() / (2 * (v @ v))", "v / 10"),
)
def quiet_is_a_tenth_of_the_word(): ...


@mistake(
    "break_the_equivalence",
    keeps=0.65,
    hint="A dot product of 0, or a negative one, is not what is asked: quiet points the way v does.",
    replace=(
        "v * dots[dots > 0].min() / (2 * (v @ v))",
        "-v * dots[dots > 0].min() / (2 * (v @ v))",
    ),
)
def quiet_points_away(): ...


@mistake(
    "break_the_equivalence",
    keeps=0.65,
    hint="Your quiet has a small dot product because it is nearly perpendicular. It should have "
    "the direction of v.",
    replace=(
        "v * dots[dots > 0].min() / (2 * (v @ v))",
        "dots[dots > 0].min() / (2 * v.norm()) * (along + 3 * across)",
    ),
)
def quiet_is_nearly_perpendicular(): ...


@mistake(
    "break_the_equivalence",
    hint="The order is (loud, quiet).",
    shows=parts_exchanged(),
    keeps=0.65,
    replace=("return loud, quiet", "return quiet, loud"),
)
def quiet_comes_first(): ...


@mistake(
    "break_the_equivalence",
    hint="Does your answer use the table? It holds for the example only.",
    replace=(
        "return loud, quiet",
        """
        loud, quiet = torch.zeros_like(v), torch.zeros_like(v)
        loud[:2] = torch.tensor([-385.0, 302.0])
        quiet[:2] = torch.tensor([0.03, 0.04])
        return loud, quiet""",
    ),
)
def holds_for_the_example_only(): ...


@mistake(
    "break_the_equivalence",
    hint="What should happen for the zero vector, and for vectors of a single number?",
    replace=(
        'raise ValueError(f"a vector of {v.shape[0]} features {v.tolist()} has no neighbours at '
        'right angles")',
        "return v.clone(), v.clone()",
    ),
)
def answers_where_there_is_no_answer(): ...


@mistake(
    "break_the_equivalence",
    hint="The row of the table itself was stretched. Make new vectors.",
    replace=(
        "return loud, quiet",
        """
        v *= 1.5
        return loud, quiet""",
    ),
)
def stretches_the_row_itself(): ...


@mistake(
    "break_the_equivalence",
    hint="However short a fixed part of the word is: another row may have a smaller "
    "product with it.",
    replace=("v * dots[dots > 0].min() / (2 * (v @ v))", "v * 1e-3"),
)
def quiet_is_a_thousandth_of_the_word(): ...


@mistake(
    "break_the_equivalence",
    hint="Your direction across is made of two fixed features, and vanishes for a word that has "
    "zeros there. Choose the axis by the word.",
    replace=[
        ("across[v.abs().argmin()] = 1.0", "across[0], across[1] = -v[1], v[0]"),
        ("across / across.norm()", "across / across.norm().clamp(min=1e-30)"),
    ],
)
def turns_two_fixed_features(): ...


@mistake(
    "cosine_similarity",
    hint="Each length has a lower bound, as if short vectors were longer. Only the zero "
    "vector is special.",
    replace=(
        "torch.linalg.vector_norm(u, dim=-1) * torch.linalg.vector_norm(v, dim=-1)",
        "u.norm(dim=-1).clamp_min(1e-8) * v.norm(dim=-1).clamp_min(1e-8)",
    ),
)
def each_length_has_a_lower_bound(): ...


@mistake(
    "cosine_similarity",
    hint="Vectors of 3 and of 5 features have no angle. Compare the two numbers before you "
    "multiply, and name both.",
    replace=("if u.shape[-1] != v.shape[-1]:", "if u.shape[-1] < 1:"),
)
def cosine_without_checks(): ...


@mistake(
    "softmax",
    hint="One maximum for everything: of a row far below it only zeros are left, or 0/0. Each row "
    "needs its own.",
    replace=(
        "wide - top",
        "wide - torch.where(wide.max() == -math.inf, 0.0, wide.max())",
    ),
)
def one_maximum_and_no_division_by_zero(): ...


@mistake(
    "softmax",
    hint="You subtract the mean. Scores far above it still overflow, and a single −inf makes it −inf. "
    "After which shift is no score above 0?",
    replace=[
        ("wide - top", "wide - wide.mean(dim=dim, keepdim=True)"),
        (
            "(powers / torch.where(total == 0, torch.ones_like(total), total))",
            "(powers / total)",
        ),
    ],
)
def subtracts_the_mean(): ...


@mistake(
    "softmax",
    hint="A single row of −inf, and all rows of the tensor become 0. Each row is decided by itself.",
    replace=(
        "top = torch.where(top == -math.inf, torch.zeros_like(top), top)",
        """
        if (top == -math.inf).any():
            return torch.zeros_like(z)""",
    ),
)
def one_empty_row_empties_all(): ...


@mistake(
    "softmax",
    hint="You wash NaN away at the end: the NaN of a real bug goes with it, and the gradient past a "
    "row of −inf stays NaN. Decide the row of −inf where it arises.",
    replace=[
        ("top = torch.where(top == -math.inf, torch.zeros_like(top), top)", "pass"),
        (
            "(powers / torch.where(total == 0, torch.ones_like(total), total))",
            "torch.nan_to_num(powers / total, nan=0.0)",
        ),
    ],
)
def washes_nan_away_at_the_end(): ...


@mistake(
    "cosine_similarity",
    keeps=0.65,
    hint="You divide by the length of the whole table: all its rows together. Each vector has a "
    "length of its own, along the last dimension.",
    replace=(
        "torch.linalg.vector_norm(u, dim=-1) * torch.linalg.vector_norm(v, dim=-1)",
        "u.norm() * v.norm()",
    ),
)
def one_length_for_the_whole_table(): ...


@mistake(
    "cosine_similarity",
    hint="u and v need equally many features, not equal shapes: their leading dimensions broadcast.",
    replace=("if u.shape[-1] != v.shape[-1]:", "if u.shape != v.shape:"),
)
def refuses_shapes_that_broadcast(): ...


@mistake(
    "cosine_similarity",
    hint="A single zero vector, and the cosines of all the others become 0 as well. Each pair is "
    "decided by itself.",
    replace=(
        "lengths = torch.where(lengths == 0, torch.ones_like(lengths), lengths)",
        """
        if (lengths == 0).any():
            return torch.zeros_like(dot).to(dtype)""",
    ),
)
def one_zero_vector_for_all(): ...


@mistake(
    "cosine_similarity",
    keeps=0.65,
    hint="You add up absolute values to get a length. The Euclidean length is the root of the sum of "
    "squares.",
    replace=(
        "torch.linalg.vector_norm(u, dim=-1) * torch.linalg.vector_norm(v, dim=-1)",
        "u.abs().sum(dim=-1) * v.abs().sum(dim=-1)",
    ),
)
def lengths_without_squares(): ...


@mistake(
    "nearest",
    keeps=0.65,
    hint="You return a list. Ids that pick rows of a table are an int64 tensor.",
    replace=(".indices", ".indices.tolist()"),
)
def a_list_of_ids(): ...


@mistake(
    "nearest",
    hint="A score of −1 for excluded words is what a word that points away has too. Nothing may tie "
    "with them.",
    replace=("-math.inf", "-1.0"),
)
def excluded_words_get_minus_one(): ...


@mistake(
    "nearest",
    hint="An id in exclude that the table does not have gets past your checks. It should raise "
    "ValueError.",
    replace=("if not 0 <= i < vocab_size:", "if False:"),
)
def leaves_the_excluded_ids_unchecked(): ...


@mistake(
    "analogy",
    hint="An id gets past your checks that the table does not have. Look at all three before you use "
    "them: torch raises an IndexError of its own, and −1 is its last row.",
    replace=("if not 0 <= i < table.shape[0]:", "if False:"),
)
def leaves_the_three_ids_to_torch(): ...


@mistake(
    "analogy",
    hint="You ask for four words and take the first that may be the answer. A table of three has an "
    "answer, too, where two of the ids are the same.",
    replace=(
        "return int(nearest(table, target, k=1, exclude=(a, b, c))[0])",
        """
        if table.shape[0] < 4:
            raise ValueError(f"{table.shape[0]} words are fewer than 4")
        return next(i for i in nearest(table, target, k=4).tolist() if i not in (a, b, c))""",
    ),
)
def takes_one_of_the_four_nearest(): ...


@mistake(
    "skip_gram_probabilities",
    keeps=0.65,
    hint="You subtract the maximum above the fraction and not below it. What is subtracted cancels "
    "only where both sides have it.",
    replace=(
        "softmax(scores)",
        "torch.exp(scores - scores.max()) / torch.exp(scores).sum()",
    ),
)
def shifts_the_numerator_only(): ...


@mistake(
    "skip_gram_probabilities",
    hint="The two lengths are not compared. Torch then raises an error of its own, or stretches "
    "a size of 1; the docstring asks for a ValueError that names both.",
    replace=("if context_table.shape[-1] != center.shape[-1]:", "if False:"),
)
def leaves_the_lengths_to_torch(): ...


@mistake(
    "skip_gram_pairs",
    hint="Your outer loop goes over distances or offsets, so that near pairs of all words come first. "
    "Sort by the center's place, then by the context's.",
)
def all_near_pairs_first(sentences, window):
    if window < 1:
        raise ValueError(f"a window of {window} places")
    pairs = [
        (words[i], words[j])
        for words in (sentence.tolist() for sentence in sentences)
        for step in range(1, window + 1)
        for i in range(len(words))
        for j in (i - step, i + step)
        if 0 <= j < len(words)
    ]
    table = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


@mistake(
    "skip_gram_pairs",
    keeps=0.65,
    hint="Places below 0 are not left out: an index of −1 is the last word of the sentence.",
    replace=(
        "words[max(0, i - window) : i] + words[i + 1 : i + 1 + window]",
        "[words[j] for j in range(i - window, i + window + 1) if j != i and j < len(words)]",
    ),
)
def places_below_zero_wrap_around(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.65,
    hint="To the right you stop too early, at i + w and at the last word: a range ends before its "
    "end, and so does a slice.",
    replace=(
        "words[i + 1 : i + 1 + window]",
        "words[i + 1 : min(i + window, len(words) - 1)]",
    ),
)
def the_right_end_is_left_out_twice(): ...


@mistake(
    "skip_gram_pairs",
    hint="torch.stack and torch.cat want at least one tensor. A text without pairs is no error: two "
    "empty int64 tensors.",
    replace=(
        "return torch.tensor(centers, dtype=torch.int64), torch.tensor(contexts, dtype=torch.int64)",
        "return tuple(torch.stack([torch.tensor(i) for i in ids]) for ids in (centers, contexts))",
    ),
)
def stacks_what_may_be_nothing(): ...


@mistake(
    "skip_gram_loss",
    hint="A small number inside the logarithm puts a ceiling on the surprise: no pair can cost "
    "more than −log of it.",
    replace=(
        "(torch.logsumexp(scores, dim=1) - of_context)",
        "-torch.log(softmax(scores).gather(1, context_ids[:, None]) + 1e-9)",
    ),
)
def logarithm_with_a_higher_floor(): ...


@mistake(
    "skip_gram_loss",
    hint="A small number inside the logarithm puts a ceiling on the surprise: no pair can cost "
    "more than −log of it.",
    replace=(
        "(torch.logsumexp(scores, dim=1) - of_context)",
        "-torch.log(softmax(scores).gather(1, context_ids[:, None]) + 1e-8)",
    ),
)
def logarithm_with_a_high_floor(): ...


@mistake(
    "skip_gram_loss",
    hint="You look at each pair alone, with a sigmoid. Here all words of the vocabulary compete: the "
    "score of the context is divided by a sum over all of them.",
    replace=(
        "(torch.logsumexp(scores, dim=1) - of_context)",
        "-torch.nn.functional.logsigmoid(of_context)",
    ),
)
def a_sigmoid_for_each_pair(): ...


@mistake(
    "skip_gram_loss",
    hint="Ids that a table does not have end in an error of torch's. The docstring asks for a "
    "ValueError that names the id.",
    replace=("if len(outside) > 0:", "if False:"),
)
def leaves_the_ids_of_pairs_to_torch(): ...


@mistake(
    "skip_gram_loss",
    hint="As many center words as context words: compare the two lengths yourself. Torch has an "
    "error of its own for them, or stretches a single word.",
    replace=("if center_ids.shape != context_ids.shape:", "if False:"),
)
def leaves_the_lengths_of_pairs_to_torch(): ...


@mistake(
    "skip_gram_loss",
    hint="A small number added before the logarithm is a floor under every probability: a pair less likely than it costs too little. The log-softmax needs none.",
    replace=(
        "(torch.logsumexp(scores, dim=1) - of_context).mean()",
        "-(torch.exp(of_context - torch.logsumexp(scores, dim=1)) + 1e-10).log().mean()",
    ),
)
def adds_a_little_before_the_logarithm(): ...


@mistake(
    "encode_bpe",
    hint="You go through the list to its end and then begin again. After each join the lowest rank "
    "decides anew: what was just joined may be the left half of an earlier pair.",
)
def passes_until_nothing_changes(word, merges):
    tokens, before = list(word), None
    while tokens != before:
        before = tokens
        for pair in merges:
            tokens = _join(tokens, pair)
    return tokens


@mistake(
    "embed",
    hint="An id gets past your checks that the table does not have: above it torch raises an "
    "IndexError of its own, and −1 is its last row. The docstring asks for a ValueError.",
    replace=("if len(outside) > 0:", "if False:"),
)
def leaves_the_ids_to_torch(): ...
