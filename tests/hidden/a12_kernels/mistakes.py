"""What goes wrong where programs share a GPU, each with the hint that leads to its cause."""

from autograder.suite import mistake

# --- matmul


@mistake(
    "matmul",
    hint="Your programs go row by row whatever `group` is. Take `group` rows of tiles together, and "
    "go down each column of them.",
    replace=[
        ("row = first + place % height", "row = p // columns"),
        ("column = place // height", "column = p % columns"),
    ],
)
def ignores_the_group(): ...


@mistake(
    "matmul",
    hint="Inside a group your programs go along the rows. They should go down a column first: what "
    "divides the place in the group, and what is the remainder?",
    replace=[
        ("row = first + place % height", "row = first + place // columns"),
        ("column = place // height", "column = place % columns"),
    ],
)
def goes_along_the_rows_of_a_group(): ...


@mistake(
    "matmul",
    hint="The last group has only the rows that are left. How many has *this* group?",
    replace=("tl.minimum(rows - first, group)", "group + 0 * rows"),
)
def every_group_has_all_its_rows(): ...


@mistake(
    "matmul",
    hint="order[row, column] holds the number of the program. Yours lies in order[column, row].",
    replace=("order_ptr + row * columns + column", "order_ptr + column * rows + row"),
)
def order_is_turned(): ...


@mistake(
    "matmul",
    hint="The sum is kept in half precision, which counts no further than 2048. Keep the accumulator "
    "in float32, and round once, at the store.",
    replace=(
        'acc += tl.dot(a, b, input_precision="ieee")',
        'acc = (acc + tl.dot(a, b, input_precision="ieee")).to(a.dtype).to(tl.float32)',
    ),
)
def product_is_summed_in_half_precision(): ...


@mistake(
    "matmul",
    hint='tl.dot rounds float32 to 10 bits of mantissa unless it is told not to: input_precision="ieee".',
    replace=('tl.dot(a, b, input_precision="ieee")', "tl.dot(a, b)"),
)
def product_is_rounded_to_tf32(): ...


@mistake(
    "matmul",
    hint="Element (i, k) of a lies i * a.stride(0) + k * a.stride(1) further on. You took a for "
    "contiguous.",
    replace=("*a.stride(), *b.stride()", "k, 1, *b.stride()"),
)
def a_is_taken_for_contiguous(): ...


@mistake(
    "matmul",
    hint="Element (k, j) of b lies k * b.stride(0) + j * b.stride(1) further on. You took b for "
    "contiguous.",
    replace=("*a.stride(), *b.stride()", "*a.stride(), n, 1"),
)
def second_matrix_is_taken_for_contiguous(): ...


@mistake(
    "matmul",
    hint="The last step along K is ragged: which lanes of a are there?",
    replace=(
        "a_inside = (i[:, None] < M) & (k[None, :] < K)",
        "a_inside = (i[:, None] < M) & (k[None, :] >= 0)",
    ),
)
def a_is_loaded_beyond_the_last_column(): ...


@mistake(
    "matmul",
    hint="The last tile of columns sticks out of b: mask the load of b.",
    replace=(
        "b_inside = (k[:, None] < K) & (j[None, :] < N)",
        "b_inside = (k[:, None] < K) & (j[None, :] >= 0)",
    ),
)
def b_is_loaded_beyond_the_last_column(): ...


@mistake(
    "matmul",
    hint="Lanes of a that are masked out hold anything unless other= says what, and they take part in "
    "the product.",
    replace=("mask=a_inside, other=0.0", "mask=a_inside"),
)
def masked_lanes_of_a_hold_anything(): ...


@mistake(
    "matmul",
    hint="The last tiles of c are ragged: mask the store, or it writes into the next row or past the end.",
    replace=(
        "c_inside = (i[:, None] < M) & (j[None, :] < N)",
        "c_inside = (i[:, None] >= 0) & (j[None, :] >= 0)",
    ),
)
def product_is_stored_without_mask(): ...


@mistake(
    "matmul",
    hint="40 columns of a in steps of 32 are two steps: the last, ragged one is missing.",
    replace=("range(0, K, BLOCK)", "range(0, K // BLOCK * BLOCK, BLOCK)"),
)
def last_step_along_k_is_left_out(): ...


@mistake(
    "matmul",
    hint="45 rows in tiles of 32 are two tiles: round up (triton.cdiv), for the grid and for order.",
    replace=(
        "rows, columns = triton.cdiv(m, 32), triton.cdiv(n, 32)",
        "rows, columns = max(m // 32, 1), max(n // 32, 1)",
    ),
)
def tiles_are_rounded_down(): ...


@mistake(
    "matmul",
    hint="c has the dtype of a.",
    replace=(
        "torch.empty(m, n, dtype=a.dtype",
        "torch.empty(m, n, dtype=torch.float32",
    ),
)
def product_comes_out_as_float32(): ...


@mistake(
    "matmul",
    hint="Each step loads its tile of a twice. It is on the chip already.",
    replace=(
        'acc += tl.dot(a, b, input_precision="ieee")',
        """
        a += 0 * tl.load(a_ptr + i[:, None] * stride_am + k[None, :] * stride_ak, mask=a_inside, other=1.0)
        acc += tl.dot(a, b, input_precision="ieee")
        """,
    ),
)
def a_is_loaded_twice(): ...


@mistake(
    "matmul",
    hint="torch has multiplied, not your kernel.",
    replace=(
        "matmul_kernel[(rows * columns,)](a, b, c, order, m, n, k, *a.stride(), *b.stride(), group, BLOCK=32)",
        """
        c = (a.unsqueeze(2) * b.unsqueeze(0)).sum(dim=1)
        order = torch.arange(rows * columns, dtype=torch.int32).view(rows, columns)
        """,
    ),
)
def torch_multiplies(): ...


@mistake(
    "matmul",
    hint="a and b that do not fit together: ValueError with both sizes of K, before anything is launched.",
    replace=("if b.shape[0] != k:", "if b.dim() != 2:"),
)
def sizes_of_matrices_are_not_checked(): ...


@mistake(
    "matmul",
    hint="A group of -1 rows is none either: ValueError, with the number.",
    replace=("if group < 1:", "if group == 0:"),
)
def only_a_group_of_zero_is_refused(): ...


@mistake(
    "matmul",
    hint="order is int32, as the docstring says.",
    replace=("dtype=torch.int32", "dtype=torch.int64"),
)
def order_is_int64(): ...


@mistake(
    "matmul",
    hint="A group of no row, or of less, is refused with its number.",
    replace=[
        ("if group < 1:", "if False:"),
        (
            "rows, columns = triton.cdiv(m, 32)",
            "group = max(group, 1)\nrows, columns = triton.cdiv(m, 32)",
        ),
    ],
)
def takes_any_group(): ...


# --- tiles_asked_for


@mistake(
    "matmul",
    hint="Your groups are columns of tiles, gone through row by row. `group` counts rows of tiles, and inside them programs "
    "go down each column.",
    replace=[
        (
            "first = p // (group * columns) * group  # the first row of this program's group",
            "first = p // (group * rows) * group",
        ),
        (
            "height = tl.minimum(rows - first, group)",
            "width = tl.minimum(columns - first, group)",
        ),
        ("place = p % (group * columns)  # in the group", "place = p % (group * rows)"),
        ("row = first + place % height", "row = place // width"),
        ("column = place // height", "column = first + place % width"),
    ],
)
def groups_are_columns_of_tiles(): ...


@mistake(
    "tiles_asked_for",
    hint="What two programs ask for is fetched once. You counted it for each of them.",
    replace=(
        "return (rows + columns) * depth",
        "return 2 * int(running.sum()) * depth",
    ),
)
def counts_for_every_program(): ...


@mistake(
    "tiles_asked_for",
    hint="A program needs a row of tiles of a and a column of tiles of b. You counted one of the two.",
    replace=("(rows + columns) * depth", "rows * depth"),
)
def counts_tiles_of_a_alone(): ...


@mistake(
    "tiles_asked_for",
    hint="Rows and columns are fetched beside each other: their numbers are added, not multiplied.",
    replace=("(rows + columns) * depth", "rows * columns * depth"),
)
def multiplies_rows_and_columns(): ...


@mistake(
    "tiles_asked_for",
    hint="Each row of a and each column of b is `depth` tiles long.",
    replace=("(rows + columns) * depth", "rows + columns"),
    keeps=0.65,
)
def forgets_the_depth(): ...


@mistake(
    "tiles_asked_for",
    hint="The first n programs are those with numbers below n: they are counted from 0.",
    replace=("order < programs", "order <= programs"),
    keeps=0.65,
)
def counts_one_program_more(): ...


@mistake(
    "tiles_asked_for",
    hint="Which program computes which tile stands in `order`. You took them to go row by row.",
    replace=(
        "running = order < programs",
        "running = torch.arange(order.numel()).view(order.shape) < programs",
    ),
)
def takes_programs_to_go_row_by_row(): ...


@mistake(
    "tiles_asked_for",
    hint="A count is an int, and yours is a tensor: int(…) of the sum.",
    replace=[
        ("rows = int(running.any(dim=1).sum())", "rows = running.any(dim=1).sum()"),
        (
            "columns = int(running.any(dim=0).sum())",
            "columns = running.any(dim=0).sum()",
        ),
    ],
    keeps=0.65,
)
def count_is_a_tensor(): ...


@mistake(
    "tiles_asked_for",
    hint="A depth below 1 gets an answer: it is refused with its number, as no program is.",
    replace=("if min(depth, programs) < 1:", "if programs < 1:"),
)
def depth_is_not_checked(): ...


@mistake(
    "tiles_asked_for",
    hint="More programs than tiles are refused. Those that have no tile ask for nothing, and the others need "
    "what they always need.",
    replace=(
        "min(depth, programs) < 1",
        "min(depth, programs) < 1 or programs > order.numel()",
    ),
)
def idle_programs_are_refused(): ...


@mistake(
    "tiles_asked_for",
    hint="A row of a is asked for once, whoever needs it: you count the tiles of c that are computed.",
    replace=("(rows + columns) * depth", "int(running.sum()) * depth"),
    keeps=0.65,
)
def counts_the_tiles_of_the_result(): ...


# --- causal_attention


@mistake(
    "causal_attention",
    hint="Tiles are visited of which no query of the program sees a key. The loop can end where the "
    "last query of the program sees no further.",
    replace=("tl.minimum(N_k, (tl.program_id(0) + 1) * BLOCK + N_k - N_q)", "N_k"),
)
def visits_every_tile(): ...


@mistake(
    "causal_attention",
    hint="Your loop ends with the tile in which the first query of the program sees its last key. The "
    "last query sees up to 31 keys more, and a part of a tile is a tile.",
    replace=(
        "(tl.program_id(0) + 1) * BLOCK + N_k - N_q",
        "tl.program_id(0) * BLOCK + 1 + N_k - N_q",
    ),
)
def loop_ends_at_the_first_query(): ...


@mistake(
    "causal_attention",
    hint="With more keys than queries every query sees further: N_k - N_q belongs into the end of the "
    "loop, too.",
    replace=(
        "(tl.program_id(0) + 1) * BLOCK + N_k - N_q",
        "(tl.program_id(0) + 1) * BLOCK",
    ),
)
def loop_ends_without_the_offset(): ...


@mistake(
    "causal_attention",
    hint="Your loop visits whole tiles only: of the last one some keys are seen, and it is missing.",
    replace=("range(0, end, BLOCK)", "range(0, end // BLOCK * BLOCK, BLOCK)"),
)
def last_seen_tile_is_left_out(): ...


@mistake(
    "causal_attention",
    hint="A tile on the diagonal has keys that some of its queries do not see: mask its scores.",
    replace=(
        'tl.where(seen, s, float("-inf"))',
        'tl.where(columns[None, :] < N_k, s, float("-inf"))',
    ),
)
def diagonal_is_not_masked(): ...


@mistake(
    "causal_attention",
    hint="Which tiles need no mask? Yours are counted with a division that rounds up: where N_k - N_q "
    "is no multiple of 32, a tile on the diagonal is among them.",
    replace=[
        (
            "for start in range(0, end, BLOCK):",
            """
            full = tl.cdiv(tl.maximum(tl.program_id(0) * BLOCK + N_k - N_q, 0), BLOCK) * BLOCK
            for start in range(0, end, BLOCK):""",
        ),
        ("tl.where(seen, s,", "tl.where(seen | (start < full), s,"),
    ],
)
def tiles_without_a_mask_are_rounded_up(): ...


@mistake(
    "causal_attention",
    hint="Your triangle starts at the top left. The last query sees the last key: add N_k - N_q to the row.",
    replace=("rows[:, None] + N_k - N_q", "rows[:, None]"),
)
def triangle_starts_at_the_top_left(): ...


@mistake(
    "causal_attention",
    hint="A token may look at itself: the condition is ≤, not <.",
    replace=("columns[None, :] <= rows", "columns[None, :] < rows"),
    keeps=0.65,
)
def tokens_do_not_see_themselves(): ...


@mistake(
    "causal_attention",
    hint="A finite number for a hidden score, such as -10000, is a score like any other: of a row "
    "that sees nothing it is the largest one. What has weight 0 beside every score?",
    replace=('tl.where(seen, s, float("-inf"))', "tl.where(seen, s, -1.0e4)"),
)
def hidden_scores_are_finite(): ...


@mistake(
    "causal_attention",
    hint="Every pointer needs the place of its head: k and v of all heads are those of the first one.",
    replace=("(head * N_k + columns)[:, None] * D", "columns[:, None] * D"),
    keeps=0.65,
)
def keys_are_those_of_the_first_head(): ...


@mistake(
    "causal_attention",
    hint="Every pointer needs the place of its head: the queries of all heads are those of the first one.",
    replace=("q_ptr + (head * N_q + rows)[:, None] * D", "q_ptr + rows[:, None] * D"),
    keeps=0.65,
)
def queries_are_those_of_the_first_head(): ...


@mistake(
    "causal_attention",
    hint="The last query tile is ragged: mask the load of q, or it reads the next head, or past the end.",
    replace=("dims[None, :], mask=inside, other=0.0)", "dims[None, :])"),
)
def queries_are_loaded_without_mask(): ...


@mistake(
    "causal_attention",
    hint="The last tile of keys sticks out of k: mask the load of its rows.",
    replace=(
        "k_ptr + k_places, mask=columns[:, None] < N_k, other=0.0",
        "k_ptr + k_places",
    ),
)
def keys_are_loaded_without_mask(): ...


@mistake(
    "causal_attention",
    hint="Masked lanes of v hold anything without other=. A weight of 0 does not help: 0 · nan is nan.",
    replace=(
        "v_ptr + k_places, mask=columns[:, None] < N_k, other=0.0",
        "v_ptr + k_places, mask=columns[:, None] < N_k",
    ),
)
def masked_values_hold_anything(): ...


@mistake(
    "causal_attention",
    hint="The last query tile is ragged: mask the store of o, or it writes into the next head, or past "
    "the end.",
    replace=(
        "o.to(o_ptr.dtype.element_ty), mask=inside)",
        "o.to(o_ptr.dtype.element_ty))",
    ),
)
def outputs_are_stored_without_mask(): ...


@mistake(
    "causal_attention",
    hint="The scores are not scaled: divide them by √d.",
    replace=("1 / math.sqrt(d)", "1.0"),
    keeps=0.65,
)
def scores_are_not_scaled(): ...


@mistake(
    "causal_attention",
    hint="The scores are divided by √d; yours are divided by d.",
    replace=("1 / math.sqrt(d)", "1 / d"),
    keeps=0.65,
)
def scores_are_divided_by_d(): ...


@mistake(
    "causal_attention",
    hint="After the last tile, divide the accumulator by l.",
    replace=("acc / tl.where(l == 0.0, 1.0, l)[:, None]", "acc"),
    keeps=0.65,
)
def sums_are_never_divided(): ...


@mistake(
    "causal_attention",
    hint="A row that sees no key has l = 0, and 0 / 0 is nan. Its answer is 0.",
    replace=("tl.where(l == 0.0, 1.0, l)[:, None]", "l[:, None]"),
)
def empty_rows_are_divided_by_zero(): ...


@mistake(
    "causal_attention",
    hint="log(l) is relative to the maximum: the log-sum-exp is m + log(l).",
    replace=("m + tl.log(l)", "tl.log(l)"),
    keeps=0.65,
)
def maximum_is_missing_in_lse(): ...


@mistake(
    "causal_attention",
    hint="The log-sum-exp is m + ln l: tl.log, not tl.log2.",
    replace=("m + tl.log(l)", "m + tl.log2(l)"),
    keeps=0.65,
)
def lse_is_in_base_2(): ...


@mistake(
    "causal_attention",
    hint='tl.dot rounds float32 to 10 bits of mantissa unless it is told not to: input_precision="ieee".',
    replace=(
        'tl.dot(q, tl.trans(k), input_precision="ieee")',
        "tl.dot(q, tl.trans(k))",
    ),
)
def scores_are_rounded_to_tf32(): ...


@mistake(
    "causal_attention",
    hint="The queries of a program do not change in its loop: load them once, before it.",
    replace=(
        "seen = columns[None, :] <= rows[:, None] + N_k - N_q  # no row sees beyond the last key",
        """
        seen = columns[None, :] <= rows[:, None] + N_k - N_q
        q = tl.load(q_ptr + (head * N_q + rows)[:, None] * D + dims[None, :], mask=inside, other=0.0)
        """,
    ),
)
def queries_are_loaded_in_every_step(): ...


@mistake(
    "causal_attention",
    hint="torch computes attention here, and not your kernel.",
    replace=(
        "return o, lse",
        """
        s = (q.float().unsqueeze(3) * k.float().unsqueeze(2)).sum(dim=-1) / math.sqrt(d)
        s = s.masked_fill(torch.ones_like(s).tril(k.shape[2] - n_q) == 0, float("-inf"))
        o = (torch.softmax(s, dim=-1).unsqueeze(-1) * v.float().unsqueeze(2)).sum(dim=3)
        return o.to(q.dtype), torch.logsumexp(s, dim=-1)
        """,
    ),
)
def torch_attends(): ...


@mistake(
    "causal_attention",
    hint="Where the last key that is seen ends a tile, you visit the next tile too, of which no query of the program sees a key: round up, do not add one.",
    replace=(
        "for start in range(0, end, BLOCK):",
        """
        end = tl.minimum(N_k, tl.maximum(end, 0) // BLOCK * BLOCK + BLOCK)
        for start in range(0, end, BLOCK):
        """,
    ),
)
def visits_one_tile_too_many(): ...


@mistake(
    "causal_attention",
    hint="The log-sum-exp is float32 whatever the dtype of q is: the backward pass needs its digits.",
    replace=[
        (
            "tl.store(lse_ptr + head * N_q + rows, m + tl.log(l), mask=rows < N_q)",
            "tl.store(lse_ptr + head * N_q + rows, (m + tl.log(l)).to(lse_ptr.dtype.element_ty), mask=rows < N_q)",
        ),
        (
            "lse = torch.empty(batch, heads, n_q, dtype=torch.float32, device=q.device)",
            "lse = torch.empty(batch, heads, n_q, dtype=q.dtype, device=q.device)",
        ),
    ],
)
def lse_has_the_dtype_of_q(): ...


@mistake(
    "causal_attention",
    hint="o has the dtype of q. Yours is float32, whatever q is.",
    replace=("o = torch.empty_like(q)", "o = torch.empty_like(q, dtype=torch.float32)"),
)
def causal_answer_in_float32(): ...


@mistake(
    "causal_attention",
    hint="A row that sees no key has the log-sum-exp -inf, and yours is a finite number.",
    replace=(
        "m + tl.log(l), mask=rows",
        "tl.where(l == 0.0, 0.0, m + tl.log(l)), mask=rows",
    ),
    keeps=0.65,
)
def empty_rows_have_a_finite_lse(): ...


# --- causal_attention_backward


@mistake(
    "causal_attention_backward",
    hint="dV is Pᵀ dO, a sum over queries: turn the tile of weights.",
    replace=("dv += tl.dot(tl.trans(p), do", "dv += tl.dot(p, do"),
    keeps=0.65,
)
def weights_are_not_turned_for_dv(): ...


@mistake(
    "causal_attention_backward",
    hint="dK is dSᵀ Q, a sum over queries: turn the tile of dS.",
    replace=("tl.dot(tl.trans(ds), q", "tl.dot(ds, q"),
    keeps=0.65,
)
def scores_are_not_turned_for_dk(): ...


@mistake(
    "causal_attention_backward",
    hint="The score was divided by √d, so its gradient with respect to a key is, too.",
    replace=(
        'tl.dot(tl.trans(ds), q, input_precision="ieee") * scale',
        'tl.dot(tl.trans(ds), q, input_precision="ieee")',
    ),
    keeps=0.65,
)
def dk_is_not_scaled(): ...


@mistake(
    "causal_attention_backward",
    hint="The score was divided by √d, so its gradient with respect to a query is, too.",
    replace=(
        'tl.dot(ds, k, input_precision="ieee") * scale',
        'tl.dot(ds, k, input_precision="ieee")',
    ),
    keeps=0.65,
)
def dq_is_not_scaled(): ...


@mistake(
    "causal_attention_backward",
    hint="dS = P ∘ (dP - D): a softmax's outputs depend on each other, and D is what they share.",
    replace=("p * (dp - delta[:, None])", "p * dp"),
)
def shared_part_is_left_out(): ...


@mistake(
    "causal_attention_backward",
    hint="D is one number a *query*, so it goes along the rows of the tile: [:, None].",
    replace=("p * (dp - delta[:, None])", "p * (dp - delta[None, :])"),
    keeps=0.65,
)
def shared_part_goes_along_the_keys(): ...


@mistake(
    "causal_attention_backward",
    hint="P = exp(S - lse): without the log-sum-exp it is no weight.",
    replace=("tl.exp(s - lse[:, None])", "tl.exp(s)"),
)
def weights_are_not_normalized(): ...


@mistake(
    "causal_attention_backward",
    hint="Keys that a query does not see have weight 0 in the backward pass, too.",
    replace=(
        "seen = columns[None, :] <= rows[:, None] + offset",
        "seen = columns[None, :] >= 0 * rows[:, None]",
    ),
    keeps=0.65,
)
def backward_ignores_the_mask(): ...


@mistake(
    "causal_attention_backward",
    hint="Your triangle starts at the top left. The last query sees the last key: add N_k - N_q to the row.",
    replace=("rows[:, None] + offset", "rows[:, None]"),
)
def backward_starts_at_the_top_left(): ...


@mistake(
    "causal_attention_backward",
    hint="A token may look at itself: the condition is ≤, not <.",
    replace=("columns[None, :] <= rows", "columns[None, :] < rows"),
    keeps=0.65,
)
def backward_leaves_tokens_out(): ...


@mistake(
    "causal_attention_backward",
    hint="Rows that see nothing have lse = -inf: exp(s - lse) is infinite or nan there, and so it stays "
    "if the scores are masked, or the weights times 0. Choose the weights with tl.where.",
    replace=(
        "p = tl.where(seen, tl.exp(s - lse[:, None]), 0.0)  # lse is -inf where nothing is seen",
        'p = tl.exp(tl.where(seen, s, float("-inf")) - lse[:, None])',
    ),
)
def empty_rows_become_nan(): ...


@mistake(
    "causal_attention_backward",
    hint="The scores are divided by √d in the backward pass as in the forward pass.",
    replace=(
        's = tl.dot(q, tl.trans(k), input_precision="ieee") * scale',
        's = tl.dot(q, tl.trans(k), input_precision="ieee")',
    ),
    keeps=0.65,
)
def backward_does_not_scale_the_scores(): ...


@mistake(
    "causal_attention_backward",
    hint="dq is added to with tl.atomic_add. In a kernel with a program for each tile of queries it "
    "belongs to one program, which sums it up and stores it once.",
    replace=[
        (
            "tl.store(dq_ptr + q_places, dq, mask=q_inside)",
            "tl.atomic_add(dq_ptr + q_places, dq, mask=q_inside)",
        ),
        ("dq, dk, dv = torch.empty_like(q)", "dq, dk, dv = torch.zeros_like(q)"),
    ],
)
def dq_is_added_by_atomics(): ...


@mistake(
    "causal_attention_backward",
    hint="A single kernel computes all three gradients. Two are asked for: a program that owns a tile of keys needs "
    "no atomics for dk and dv, and one that owns a tile of queries none for dq.",
    replace=[
        (
            "q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, do_ptr, dq_ptr, N_q, N_k, scale,",
            "q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, do_ptr, dq_ptr, dk_ptr, dv_ptr, N_q, N_k, scale,",
        ),
        ("_, ds = weights_and_their_gradient", "p, ds = weights_and_their_gradient"),
        (
            'dq += tl.dot(ds, k, input_precision="ieee") * scale',
            """
            dq += tl.dot(ds, k, input_precision="ieee") * scale
            dk = tl.dot(tl.trans(ds), q, input_precision="ieee") * scale
            dv = tl.dot(tl.trans(p), do, input_precision="ieee")
            tl.atomic_add(dk_ptr + k_places, dk, mask=columns[:, None] < N_k)
            tl.atomic_add(dv_ptr + k_places, dv, mask=columns[:, None] < N_k)
            """,
        ),
        (
            "torch.empty_like(k), torch.empty_like(v)",
            "torch.zeros_like(k), torch.zeros_like(v)",
        ),
        (
            """
            keys_and_values_kernel[(triton.cdiv(n_k, 32), batch * heads)](
                q, k, v, o, lse, do, dk, dv, n_q, n_k, scale, D=d, BLOCK=32, num_warps=8
            )
            """,
            "",
        ),
        ("q, k, v, o, lse, do, dq, n_q,", "q, k, v, o, lse, do, dq, dk, dv, n_q,"),
    ],
)
def one_kernel_computes_all_gradients(): ...


@mistake(
    "causal_attention_backward",
    hint="A last tile is ragged, of keys or of queries: mask each store of dk and of dq, or it writes "
    "into the next head, or past the end.",
    replace=(
        "tl.store(dk_ptr + k_places, dk, mask=k_inside)",
        "tl.store(dk_ptr + k_places, dk)",
    ),
)
def dk_is_stored_without_mask(): ...


@mistake(
    "causal_attention_backward",
    hint="A last tile is ragged, of keys or of queries: mask each store of dk and of dq, or it writes "
    "into the next head, or past the end.",
    replace=(
        "tl.store(dq_ptr + q_places, dq, mask=q_inside)",
        "tl.store(dq_ptr + q_places, dq)",
    ),
)
def dq_is_stored_without_mask(): ...


@mistake(
    "causal_attention_backward",
    hint='tl.dot rounds float32 to 10 bits of mantissa unless it is told not to: input_precision="ieee", '
    "in every product.",
    replace=(
        'tl.dot(do, tl.trans(v), input_precision="ieee")',
        "tl.dot(do, tl.trans(v))",
    ),
)
def gradients_of_weights_are_rounded_to_tf32(): ...


@mistake(
    "causal_attention_backward",
    hint="3 tiles of keys are 3 programs a head, also where the last one is ragged: round up (triton.cdiv).",
    replace=(
        "keys_and_values_kernel[(triton.cdiv(n_k, 32), batch * heads)]",
        "keys_and_values_kernel[(max(n_k // 32, 1), batch * heads)]",
    ),
)
def programs_of_keys_are_rounded_down(): ...


@mistake(
    "causal_attention_backward",
    hint="The second kernel has a program for each tile of *queries*.",
    replace=(
        "queries_kernel[(triton.cdiv(n_q, 32), batch * heads)]",
        "queries_kernel[(triton.cdiv(n_k, 32), batch * heads)]",
    ),
)
def programs_of_queries_are_counted_by_keys(): ...


@mistake(
    "causal_attention_backward",
    hint="Batch and head both count: there are B · H heads to be computed, each with its own gradients.",
    replace=[
        (
            "keys_and_values_kernel[(triton.cdiv(n_k, 32), batch * heads)]",
            "keys_and_values_kernel[(triton.cdiv(n_k, 32), heads)]",
        ),
        (
            "queries_kernel[(triton.cdiv(n_q, 32), batch * heads)]",
            "queries_kernel[(triton.cdiv(n_q, 32), heads)]",
        ),
    ],
)
def only_the_first_sentence_is_computed(): ...


@mistake(
    "causal_attention_backward",
    hint="torch computes D here. It is a sum over products, and belongs in a kernel.",
    replace=(
        "n_k, scale = k.shape[2], 1 / math.sqrt(d)",
        "n_k, scale, delta = k.shape[2], 1 / math.sqrt(d), (do * o).sum(dim=-1)",
    ),
    keeps=0.65,
)
def wrapper_computes_the_shared_part(): ...


@mistake(
    "causal_attention_backward",
    hint="Hidden weights are multiplied by 0, and infinity times 0 is nan: where nothing is seen lse is -inf and exp(s - lse) infinite. Choose with tl.where.",
    replace=(
        "p = tl.where(seen, tl.exp(s - lse[:, None]), 0.0)  # lse is -inf where nothing is seen",
        "p = tl.exp(s - lse[:, None]) * seen.to(tl.float32)",
    ),
)
def hidden_weights_times_zero(): ...


@mistake(
    "causal_attention_backward",
    hint="O = P V has no 1/√d in it, and dV = Pᵀ dO has none. Yours is multiplied by it.",
    replace=(
        'dv += tl.dot(tl.trans(p), do, input_precision="ieee")',
        'dv += tl.dot(tl.trans(p), do, input_precision="ieee") * scale',
    ),
    keeps=0.65,
)
def dv_is_scaled(): ...


# --- split_decode


@mistake(
    "split_decode",
    hint="What a part leaves is kept in half precision. Its sum of values is not divided yet, and "
    "float16 ends at 65504: keep it in float32 until the merge.",
    replace=(
        "torch.empty(batch, heads, splits, d, dtype=torch.float32",
        "torch.empty(batch, heads, splits, d, dtype=q.dtype",
    ),
)
def parts_are_kept_in_half_precision(): ...


@mistake(
    "split_decode",
    hint="A part leaves sums, which are divided once, after the merge. Yours are divided in every part.",
    replace=(
        "tl.store(part_ptr + place * D + dims, o)",
        "tl.store(part_ptr + place * D + dims, o / l)",
    ),
)
def parts_are_divided(): ...


@mistake(
    "split_decode",
    hint="Each part's o was made with its own maximum: bring it to the common one before the sum.",
    replace=("o = tl.sum(o_s * shrink[:, None], 0) / l", "o = tl.sum(o_s, 0) / l"),
)
def merged_o_is_not_rescaled(): ...


@mistake(
    "split_decode",
    hint="Each part's l was made with its own maximum: bring it to the common one before the sum.",
    replace=("l = tl.sum(l_s * shrink, 0)", "l = tl.sum(l_s, 0)"),
)
def merged_l_is_not_rescaled(): ...


@mistake(
    "split_decode",
    hint="After the merge the sum of values is divided by the sum of weights, l.",
    replace=(
        "o = tl.sum(o_s * shrink[:, None], 0) / l",
        "o = tl.sum(o_s * shrink[:, None], 0)",
    ),
    keeps=0.65,
)
def merged_o_is_not_divided(): ...


@mistake(
    "split_decode",
    hint="10 keys in 4 parts are 3 a part: round up, or the last keys belong to nobody.",
    replace=("triton.cdiv(n, splits)", "max(n // splits, 1)"),
)
def last_keys_belong_to_nobody(): ...


@mistake(
    "split_decode",
    hint="A part ends where the next one begins. Yours goes on to the end of its tile, and those keys "
    "count twice.",
    replace=("end = tl.minimum((split + 1) * per_split, N)", "end = N + 0 * per_split"),
    keeps=0.65,
)
def parts_overlap(): ...


@mistake(
    "split_decode",
    hint="A key beyond the end of the part has score 0, and that is a weight. Its score is -inf.",
    replace=(
        'tl.where(inside, tl.sum(q[None, :] * k, 1) * scale, float("-inf"))',
        "tl.sum(q[None, :] * k, 1) * scale",
    ),
)
def keys_beyond_the_part_count(): ...


@mistake(
    "split_decode",
    hint="The last part may have fewer keys, and the rows behind it are not there: mask the load of k.",
    replace=(
        "tl.load(k_ptr + places, mask=inside[:, None], other=0.0)",
        "tl.load(k_ptr + places)",
    ),
)
def keys_of_parts_are_loaded_without_mask(): ...


@mistake(
    "split_decode",
    hint="Masked lanes of v hold anything without other=. A weight of 0 does not help: 0 · nan is nan.",
    replace=(
        "tl.load(v_ptr + places, mask=inside[:, None], other=0.0)",
        "tl.load(v_ptr + places, mask=inside[:, None])",
    ),
)
def values_of_parts_hold_anything(): ...


@mistake(
    "split_decode",
    hint="Three parts are loaded into four lanes. Which maximum has a part that is not there?",
    replace=('mask=inside, other=float("-inf"))', "mask=inside, other=0.0)"),
)
def lanes_beyond_the_parts_have_maximum_zero(): ...


@mistake(
    "split_decode",
    hint="The running maximum starts at -inf: all scores may be far below 0, and a part may be empty.",
    replace=(
        'm = tl.full([1], float("-inf"), tl.float32)',
        "m = tl.zeros([1], tl.float32)",
    ),
)
def part_starts_at_maximum_zero(): ...


@mistake(
    "split_decode",
    hint="exp(1000) is infinite. Keep the running maximum, and subtract it.",
    replace=(
        "m_new = tl.maximum(m, tl.max(s, 0))",
        "m_new = tl.zeros([1], tl.float32)",
    ),
)
def parts_keep_no_maximum(): ...


@mistake(
    "split_decode",
    hint="Inside a part, too, what was summed with an older maximum is brought to the new one: o.",
    replace=(
        "o = o * shrink + tl.sum(p[:, None] * v, 0)",
        "o = o + tl.sum(p[:, None] * v, 0)",
    ),
)
def o_is_not_rescaled_inside_a_part(): ...


@mistake(
    "split_decode",
    hint="Every head has keys of its own: add the head to their place.",
    replace=(
        "places = (head * N + keys)[:, None] * D + dims[None, :]",
        "places = keys[:, None] * D + dims[None, :]",
    ),
    keeps=0.65,
)
def all_heads_use_the_keys_of_one(): ...


@mistake(
    "split_decode",
    hint="Which axis of your grid counts the parts, and which one the heads? Kernel and launch disagree.",
    replace=(
        "part_kernel[(splits, batch * heads)]",
        "part_kernel[(batch * heads, splits)]",
    ),
    keeps=0.65,
)
def axes_of_the_grid_are_exchanged(): ...


@mistake(
    "split_decode",
    hint="Each head has `splits` places for its parts: part s of head h is number h * splits + s. Two "
    "programs of yours write to the same place.",
    replace=("place = head * SPLITS + split", "place = head + split"),
    keeps=0.65,
)
def parts_share_their_places(): ...


@mistake(
    "split_decode",
    hint="The scores are not scaled: divide them by √d.",
    replace=("1 / math.sqrt(d)", "1.0"),
    keeps=0.65,
)
def decoded_scores_are_not_scaled(): ...


@mistake(
    "split_decode",
    hint="log(l) is relative to the maximum: the log-sum-exp is m + log(l).",
    replace=(
        "tl.store(lse_ptr + head, m + tl.log(l))",
        "tl.store(lse_ptr + head, tl.log(l))",
    ),
    keeps=0.65,
)
def merged_lse_lacks_the_maximum(): ...


@mistake(
    "split_decode",
    hint="Your first part takes all keys, and the others find none left: a part has ceil(N / splits).",
    replace=("triton.cdiv(n, splits)", "n"),
)
def first_part_takes_all_keys(): ...


@mistake(
    "split_decode",
    hint="One program a head takes all keys, whatever `splits` is: the GPU watches.",
    replace=[
        ("part_kernel[(splits, batch * heads)]", "part_kernel[(1, batch * heads)]"),
        (
            "n, triton.cdiv(n, splits), 1 / math.sqrt(d), splits, D=d",
            "n, n, 1 / math.sqrt(d), 1, D=d",
        ),
        (
            "m, l, parts, o, lse, splits, D=d, PADDED=triton.next_power_of_2(splits)",
            "m, l, parts, o, lse, 1, D=d, PADDED=1",
        ),
    ],
)
def keys_are_not_shared_out(): ...


@mistake(
    "split_decode",
    hint="No part at all is refused with a ValueError, and so is a number below 0.",
    replace=("if splits < 1:", "if splits == 0:"),
)
def only_zero_parts_are_refused(): ...


@mistake(
    "split_decode",
    hint="o has the dtype of q.",
    replace=("o = torch.empty_like(q)", "o = torch.empty_like(q, dtype=torch.float32)"),
)
def decoded_o_is_float32(): ...


@mistake(
    "split_decode",
    hint="A part has ⌈N / splits⌉ keys as long as there are any. Yours have ⌊N / splits⌋, and the last one takes the rest.",
    replace=[
        (
            "end = tl.minimum((split + 1) * per_split, N)",
            "end = tl.where(split == SPLITS - 1, N, (split + 1) * per_split)",
        ),
        ("n, triton.cdiv(n, splits),", "n, n // splits,"),
    ],
)
def last_part_takes_the_rest(): ...


@mistake(
    "split_decode",
    hint="splits below 1 is refused with its number. Yours divides by it.",
    replace=(
        '    if splits < 1:\n        raise ValueError(f"at least 1 split, got {splits}")\n',
        "",
    ),
)
def number_of_parts_is_not_checked(): ...


@mistake(
    "split_decode",
    hint="Products of query and key are rounded to float16 before they are summed: turn q and k into float32 first.",
    replace=[
        (
            "q = tl.load(q_ptr + head * D + dims).to(tl.float32)",
            "q = tl.load(q_ptr + head * D + dims)",
        ),
        (
            "k = tl.load(k_ptr + places, mask=inside[:, None], other=0.0).to(tl.float32)",
            "k = tl.load(k_ptr + places, mask=inside[:, None], other=0.0)",
        ),
        (
            "tl.sum(q[None, :] * k, 1) * scale",
            "tl.sum((q[None, :] * k).to(tl.float32), 1) * scale",
        ),
    ],
)
def products_in_half_precision(): ...


# --- limits


@mistake(
    "limits",
    hint="Products and traffic go on at the same time: the slower one decides, and their times are not "
    "added.",
    replace=("max(for_products, for_traffic)", "for_products + for_traffic"),
)
def times_are_added(): ...


@mistake(
    "limits",
    hint="The chip has to wait for the slower of the two.",
    replace=("max(for_products, for_traffic)", "min(for_products, for_traffic)"),
)
def faster_one_decides(): ...


@mistake(
    "limits",
    hint="Intensity is operations for each byte: yours is bytes for each operation.",
    replace=('"intensity": flops / moved', '"intensity": moved / flops'),
)
def intensity_is_upside_down(): ...


@mistake(
    "limits",
    hint="The traffic is in bytes: a number of float16 has 2 of them.",
    replace=("moved = elements * bytes_per_element", "moved = elements"),
    keeps=0.65,
)
def traffic_is_counted_in_elements(): ...


@mistake(
    "limits",
    hint="A kernel that waits for traffic does not reach the peak: operations over the time that it takes.",
    replace=('"flops_a_second": flops / seconds', '"flops_a_second": peak'),
)
def peak_is_always_reached(): ...


@mistake(
    "limits",
    hint="Where both take as long, the products decide: traffic has to take longer.",
    replace=("for_traffic > for_products", "for_traffic >= for_products"),
    keeps=0.65,
)
def waits_for_traffic_where_both_are_equal(): ...


@mistake(
    "limits",
    hint="If moving the bytes takes longer, the chip waits for traffic. Yours is the other way round.",
    replace=(
        '"traffic" if for_traffic > for_products else "products"',
        '"products" if for_traffic > for_products else "traffic"',
    ),
)
def waits_for_the_faster_one(): ...


# --- busy_share


@mistake(
    "limits",
    hint="Bandwidth is bytes in a second: the time of the traffic is that of the bytes, and yours is that of the numbers.",
    replace=("moved / bandwidth", "elements / bandwidth"),
    keeps=0.65,
)
def time_of_traffic_is_that_of_numbers(): ...


@mistake(
    "limits",
    hint="Products and traffic go on at the same time: the slower one decides, and their times are not added.",
    replace=[
        (
            "seconds = max(for_products, for_traffic)",
            "seconds = for_products + for_traffic",
        ),
        ("flops / seconds", "flops / max(for_products, for_traffic)"),
    ],
)
def times_are_added_in_seconds_alone(): ...


@mistake(
    "limits",
    hint="Intensity is operations for each byte: yours is operations for each number that is moved.",
    replace=('"intensity": flops / moved', '"intensity": flops / elements'),
)
def intensity_for_each_number(): ...


@mistake(
    "limits",
    hint="Your intensity is rounded down to a whole number, as // does. Operations for each byte are a "
    "fraction.",
    replace=('"intensity": flops / moved', '"intensity": float(flops // moved)'),
)
def intensity_is_rounded_down(): ...


@mistake(
    "limits",
    hint="Intensity is operations for each byte that is moved: yours is where the roof bends, which says nothing of the kernel.",
    replace=('"intensity": flops / moved', '"intensity": peak / bandwidth'),
)
def intensity_is_that_of_the_ridge(): ...


@mistake(
    "limits",
    hint="What the kernel reaches is its operations over its time. Yours divides by the time of the traffic alone.",
    replace=(
        '"flops_a_second": flops / seconds',
        '"flops_a_second": flops / for_traffic',
    ),
)
def speed_of_the_traffic_alone(): ...


@mistake(
    "busy_share",
    hint="33 queries in tiles of 8 are five tiles: the last one is a program, too.",
    replace=("-(-n_q // block_q)", "max(n_q // block_q, 1)"),
)
def ragged_query_tile_is_left_out(): ...


@mistake(
    "busy_share",
    hint="Each part of the keys is a program of its own.",
    replace=("-(-n_q // block_q) * splits", "-(-n_q // block_q)"),
)
def parts_are_no_programs(): ...


@mistake(
    "busy_share",
    hint="A query tile is one program, however many queries it has.",
    replace=("-(-n_q // block_q)", "n_q"),
)
def every_query_is_a_program(): ...


@mistake(
    "busy_share",
    hint="Sentences have heads of their own: batch times heads.",
    replace=("batch * heads * -(", "heads * -("),
)
def sentences_do_not_count(): ...


@mistake(
    "busy_share",
    hint="Eleven programs on ten processors take two waves, and nine of ten watch the second one.",
    replace=(
        "return programs / (waves * processors)",
        "return min(1.0, programs / processors)",
    ),
)
def last_wave_is_taken_for_full(): ...


@mistake(
    "busy_share",
    hint="Ten programs fill ten processors in one wave: waves are rounded up, and no more.",
    replace=(
        "waves = -(-programs // processors)",
        "waves = programs // processors + 1",
    ),
)
def full_waves_get_another_one(): ...


@mistake(
    "busy_share",
    hint="The sentence of the slide is believed. Count the programs of one token, and look at how many "
    "processors are left.",
    replace=("return programs / (waves * processors)", "return 1.0"),
)
def believes_that_attention_is_parallel(): ...


@mistake(
    "busy_share",
    hint="A wave that is not full is a wave: round up. Yours goes to the nearest number, and shares above 1 come out.",
    replace=(
        "waves = -(-programs // processors)",
        "waves = max(1, round(programs / processors))",
    ),
)
def waves_are_rounded_to_the_nearest(): ...


@mistake(
    "busy_share",
    hint="A tile of queries belongs to one head of one sentence. Yours goes on into the next head: round up for each, and multiply then.",
    replace=(
        "programs = batch * heads * -(-n_q // block_q) * splits",
        "programs = -(-batch * heads * n_q // block_q) * splits",
    ),
    keeps=0.5,
)
def tiles_reach_across_heads(): ...


@mistake(
    "busy_share",
    hint="Your share is that of the last wave alone. The full waves before it count too: all programs, over what all "
    "waves could run.",
    replace=(
        "return programs / (waves * processors)",
        "return (programs - (waves - 1) * processors) / processors",
    ),
)
def last_wave_stands_for_all(): ...
