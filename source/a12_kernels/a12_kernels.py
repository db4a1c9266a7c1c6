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
# # Assignment 12: kernels that share a GPU
#
# Assignment 7 ended with one kernel that is right. This one asks what comes after: **which program does which part of
# the work, in which order, and what the chip has to fetch for it.** A kernel is a few lines of arithmetic; whether it
# is fast is decided around them.
#
# * A matrix product, where only the *order* of the programs changes, and with it how much is fetched.
# * Attention that does not visit what the causal mask throws away.
# * The backward pass as two kernels, so that no two programs add to the same number.
# * Decoding, where one query leaves a whole GPU idle, unless the *keys* are shared out.
# * The roofline: do your kernels wait for traffic, or for products? By counts, without a GPU.
#
# ![Row by row, or in groups: the tiles that nine programs ask for](figures/order.svg)
#
# You write, in this order:
#
# | function | what it does | difficulty, estimated time |
# | --- | --- | --- |
# | `matmul` | a product in tiles, its programs in grouped order | ★★★, 60 min |
# | `tiles_asked_for` | what the programs that run together fetch | ★☆☆, 15 min |
# | `causal_attention` | attention without the tiles above the diagonal | ★★☆, 40 min |
# | `causal_attention_backward` | its gradients, by two kernels | ★★★, 80 min |
# | `split_decode` | one query, its keys shared out over programs | ★★★, 60 min |
# | `limits` | the roofline: what a kernel waits for | ★☆☆, 20 min |
# | `busy_share` | find the error in the notes | ★★☆, 20 min |
#
# Kernels need Triton, which is made for Linux: use a Linux machine, WSL on Windows, or a free hosted notebook (Google
# Colab, Kaggle). Where there is no Triton their checks are skipped and say so. No GPU is needed: kernels run strictly
# on the CPU, as in assignment 7, and a fault says which program touched which element.
#
# > **Conventions.** All products in kernels are `tl.dot(…, input_precision="ieee")`, and what is summed up is float32.
# > Attention: $B$ sentences of $H$ heads, $N_q$ queries, $N_k$ keys, head size $d$ = 16, 32, 64 or 128, so that no lane
# > of $d$ is padded. Causal is **bottom-right aligned**: query $i$ may see key $j$ when $j \le i + N_k - N_q$. Tensors
# > come contiguous, but for those of `matmul`. Inputs are never changed. A wrapper allocates and rearranges; all
# > arithmetic is the kernels'.

# %% given="no_triton"
from autograder.student_tools.no_triton import NoTriton, kernels_run

# %% given="imports"
import math
import os

import torch

# Without a GPU, or with TRITON_INTERPRET=1, kernels run on the CPU: not in Triton's own
# interpreter, but strictly (below).
interpret = os.environ.pop("TRITON_INTERPRET", "") == "1"
device = "cpu" if interpret or not torch.cuda.is_available() else "cuda"

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = NoTriton(
        "kernels need Triton, which is made for Linux. Open this notebook on Linux, in "
        "WSL on Windows, or in a free hosted notebook (Google Colab, Kaggle). The "
        "three questions without a kernel need only torch, and run here."
    )

# %% given="expect"
from autograder.student_tools.expect import expect
from autograder.student_tools.predictions import predict

# %% given="strict"
def trace(function, *arguments, **keywords):
    """Without a GPU there is another one, further down."""
    raise RuntimeError(
        'only kernels on a CPU are traced: put os.environ["TRITON_INTERPRET"] = "1" at '
        "the top of the first cell with imports, and restart"
    )


if device == "cpu" and kernels_run(triton):
    try:
        from autograder.kernels.strict_triton import trace
    except ImportError as error:  # an old version of Triton
        triton = tl = NoTriton(str(error))
        kernels_run(triton)

# %% [markdown]
# ## 1. A matrix product, and the order of its programs
#
# ★★★ · about 60 minutes
#
# $C = AB$ with $A$ of $M\times K$ and $B$ of $K\times N$. Cut $C$ into tiles of $32\times32$; each program computes one
# tile. It walks along $K$ in steps of 32, loads a tile of $A$ and a tile of $B$, multiplies them with `tl.dot`, and
# adds to an accumulator in float32 that never leaves the chip. After the last step it stores the tile once.
#
# Nothing says which program computes which tile. The grid has one axis, the program's number $p$. Row by row would be
# $(p \div \text{columns},\ p \bmod \text{columns})$. But programs with neighbouring numbers run at the same time, and
# what several of them ask for is fetched from main memory once. Nine programs in a row need one row of tiles of $A$ and
# *nine columns* of $B$. Nine programs in a square need three of each.
#
# So take `group` rows of tiles together. Inside a group go **down** each column first, then to the next column; after
# the last column begins the next group. With 3 rows, 2 columns of tiles and `group=2` the programs are
#
# $$\begin{matrix}0&2\\1&3\\4&5\end{matrix}$$
#
# The last group has only the rows that are left: here one, and its programs go along that row.
#
# Where evenings are lost:
#
# * **The ragged last group.** How many rows has *this* group? `tl.minimum`.
# * **All three sizes are ragged.** A lane of $K$ beyond the end takes part in the product: what should it hold, in $A$
#   and in $B$?
# * **Four strides.** `a.stride(0), a.stride(1), b.stride(0), b.stride(1)`: a transposed matrix is a matrix.
# * **Half precision** comes in and goes out, and is not what sums are kept in.
#
# The kernel also writes its number into `order`, one number a tile, so that you can see what it does.
#
# **Predict first.** 9 × 9 tiles, also along $K$. How many tiles do the programs 0 to 8 fetch row by row, each tile
# counted once?

# %% predict="matmul"
predict(
    "How many tiles do nine programs of one row fetch?",
    answer=90,
    because="One row of A is 9 tiles, and nine columns of B are 81. In groups of three "
    "it is 27 and 27.",
)


# %% question="matmul"
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, order_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, group,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """One program computes one tile of c, and writes its number to order; both are
    contiguous. The signature is yours to change.
    """
    ### BEGIN SOLUTION
    p = tl.program_id(0)
    rows = tl.cdiv(M, BLOCK)  # of tiles
    columns = tl.cdiv(N, BLOCK)
    first = p // (group * columns) * group  # the first row of this program's group
    height = tl.minimum(rows - first, group)
    place = p % (group * columns)  # in the group
    row = first + place % height
    column = place // height

    i = row * BLOCK + tl.arange(0, BLOCK)  # [BLOCK], rows of c
    j = column * BLOCK + tl.arange(0, BLOCK)  # [BLOCK], columns of c
    acc = tl.zeros([BLOCK, BLOCK], tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        a_inside = (i[:, None] < M) & (k[None, :] < K)
        b_inside = (k[:, None] < K) & (j[None, :] < N)
        a = tl.load(a_ptr + i[:, None] * stride_am + k[None, :] * stride_ak, mask=a_inside, other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_bk + j[None, :] * stride_bn, mask=b_inside, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    c_inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc.to(c_ptr.dtype.element_ty), mask=c_inside)
    tl.store(order_ptr + row * columns + column, p)
    ### END SOLUTION


def matmul(a, b, group):
    """The product of two matrices by a kernel whose programs go in groups of rows.

    Args:
        a: [M, K], float32 or float16, any strides.
        b: [K, N], in the dtype of a, any strides.
        group: rows of tiles that are taken together.

    Returns:
        (c, order): c [M, N] = a b in the dtype of a, summed in float32. order [rows,
        columns], int32: exactly the number of the program that computed each tile of 32
        × 32. Programs go through `group` rows of tiles at a time, inside them down each
        column, then to the next column; the last group has the rows that are left. Each
        program loads a row of tiles of a and a column of tiles of b once, in tiles of
        at most 1024 elements.

    Raises:
        ValueError: a and b do not fit together, with both sizes of K in the message;
            group is below 1, with the number.
    """
    ### BEGIN SOLUTION
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k:
        raise ValueError(f"a has {k} columns and b {b.shape[0]} rows")
    if group < 1:
        raise ValueError(f"a group has at least 1 row, got {group}")
    rows, columns = triton.cdiv(m, 32), triton.cdiv(n, 32)
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    order = torch.empty(rows, columns, dtype=torch.int32, device=a.device)
    matmul_kernel[(rows * columns,)](a, b, c, order, m, n, k, *a.stride(), *b.stride(), group, BLOCK=32)
    return c, order
    ### END SOLUTION


# %% check="matmul"
if kernels_run(triton):
    a = torch.arange(12.0, device=device).view(3, 4)
    c, order = matmul(a, torch.eye(4, device=device), 1)
    expect(
        c.cpu(),
        a.cpu(),
        hint="A times the unit matrix is A. nan? A lane that was loaded without other=.",
    )
    expect(order.cpu(), torch.tensor([[0]], dtype=torch.int32), hint="One tile.")
    ones = torch.ones(96, 40, device=device)
    c, order = matmul(ones, ones[:64].T, 2)
    expect(
        c.cpu(),
        torch.full((96, 64), 40.0),
        hint="40 ones a sum. 64? Lanes of K beyond the end count. Use the strides of b.",
    )
    expect(
        order.cpu(),
        torch.tensor([[0, 2], [1, 3], [4, 5]], dtype=torch.int32),
        hint="Two rows together, down each column. The last group has one row.",
    )

# %% [markdown]
# ## 2. What runs together, fetches together
#
# ★☆☆ · about 15 minutes
#
# How much does the order save? Suppose the first $n$ programs run at the same time, and what two of them ask for is
# fetched once (the cache of the chip does that). A program at row $r$ and column $c$ needs row $r$ of the tiles of $A$
# and column $c$ of the tiles of $B$: *depth* tiles each, where depth is the number of steps along $K$. So count the
# rows and the columns that the programs touch, each once.
#
# **Predict first.** 16 programs at once, 64 × 64 tiles. Which group fetches least?

# %% predict="tiles_asked_for"
predict(
    "Which group fetches least, for 16 programs at once?",
    "1",
    "4",
    "16",
    answer="4",
    because="4 rows and 4 columns: 8 strips of tiles. Groups of 1 and of 16 have 17.",
)


# %% question="tiles_asked_for"
def tiles_asked_for(order, depth, programs):
    """How many tiles of a and b the first programs of a product fetch, each once.

    Args:
        order: [rows, columns], the number of the program that computes each tile of c.
        depth: tiles along K, of any number: 10**16 are not gone through one by one.
        programs: the programs 0, 1, … below this number run at the same time. It may be
            above the number of tiles.

    Returns:
        int, tiles of a and tiles of b together.

    Raises:
        ValueError: depth or programs is below 1; it stands in the message.
    """
    ### BEGIN SOLUTION
    if min(depth, programs) < 1:
        raise ValueError(f"at least one tile and one program, got {depth} and {programs}")
    running = order < programs  # [rows, columns]
    rows = int(running.any(dim=1).sum())
    columns = int(running.any(dim=0).sum())
    return (rows + columns) * depth
    ### END SOLUTION


# %% check="tiles_asked_for"
in_rows = torch.arange(81).view(9, 9)
expect(
    tiles_asked_for(in_rows, 9, 9),
    90,
    hint="One row of A, nine columns of B, nine tiles each.",
)
expect(
    tiles_asked_for(in_rows, 9, 10),
    99,
    hint="Program 9 begins the second row, and its column is there already.",
)

# %% demo="order_and_traffic"
import matplotlib.pyplot as plt

if device == "cpu" and kernels_run(triton):
    figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
    square = torch.ones(256, 256)
    orders = {group: matmul(square, square, group)[1] for group in (1, 2, 4)}
    for axis, (group, order) in zip(axes, orders.items(), strict=False):
        axis.imshow(order < 16, cmap="Greens", vmin=0, vmax=2)
        for row in range(8):
            for column in range(8):
                axis.text(
                    column,
                    row,
                    int(order[row, column]),
                    ha="center",
                    va="center",
                    size=7,
                )
        axis.set(title=f"group = {group}", xticks=[], yticks=[])
    for group, order in orders.items():
        axes[3].plot(
            range(1, 65),
            [tiles_asked_for(order, 8, n) / n for n in range(1, 65)],
            label=f"group {group}",
        )
    axes[3].set(xlabel="programs at once", ylabel="tiles fetched by each")
    axes[3].legend()
    plt.show()

# %% [markdown]
# ## 3. Attention without what the mask throws away
#
# ★★☆ · about 40 minutes
#
# With a causal mask, half of all scores are never used. A kernel that computes them and then masks them away does twice
# the work. The queries of one program are the rows $r_0 \dots r_0+31$; the last of them sees furthest, to the key
# $r_0 + 31 + N_k - N_q$. Every tile of keys that begins behind it is hidden from all queries of the program. So the loop
# over the keys ends earlier, and the bound is different in each program.
#
# Tiles on the diagonal still need the mask. The step of the online softmax is the one
# of assignment 7, and given: `take_in` takes a tile of scores into $m$, $l$ and the accumulator. What is hidden has the
# score $-\infty$.
#
# **Predict first.** $N_q = N_k = 128$, in tiles of 32 by 32. How many of the 16 tiles are visited?

# %% predict="causal_attention"
predict(
    "How many tiles are visited?",
    answer=10,
    because="1 + 2 + 3 + 4: the diagonal ones count whole.",
)

# %% given="take_in"
@triton.jit
def take_in(m, l, acc, s, v):
    """Take scores s [B_q, B_k] and their values v [B_k, d] into what a query tile
    remembers: m, l [B_q] and acc [B_q, d]. A score of -inf has no weight.
    """
    m_new = tl.maximum(m, tl.max(s, 1))
    # rows that have seen nothing yet
    safe = tl.where(m_new == float("-inf"), 0.0, m_new)
    p = tl.exp(s - safe[:, None])
    shrink = tl.exp(m - safe)
    l = l * shrink + tl.sum(p, 1)
    acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
    return m_new, l, acc


# %% question="causal_attention"
@triton.jit
def causal_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    N_q, N_k, scale, D: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """One program: 32 queries of one head, and the key tiles that they see. All tensors
    are contiguous. The signature is yours to change.
    """
    ### BEGIN SOLUTION
    head = tl.program_id(1)  # of all B * H
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK]
    dims = tl.arange(0, D)
    inside = rows[:, None] < N_q
    q = tl.load(q_ptr + (head * N_q + rows)[:, None] * D + dims[None, :], mask=inside, other=0.0)
    m = tl.full([BLOCK], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, D], tl.float32)
    end = tl.minimum(N_k, (tl.program_id(0) + 1) * BLOCK + N_k - N_q)  # one behind the last key that is seen
    for start in range(0, end, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        k_places = (head * N_k + columns)[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + k_places, mask=columns[:, None] < N_k, other=0.0)
        v = tl.load(v_ptr + k_places, mask=columns[:, None] < N_k, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = columns[None, :] <= rows[:, None] + N_k - N_q  # no row sees beyond the last key
        m, l, acc = take_in(m, l, acc, tl.where(seen, s, float("-inf")), v)
    o = acc / tl.where(l == 0.0, 1.0, l)[:, None]
    places = (head * N_q + rows)[:, None] * D + dims[None, :]
    tl.store(o_ptr + places, o.to(o_ptr.dtype.element_ty), mask=inside)
    tl.store(lse_ptr + head * N_q + rows, m + tl.log(l), mask=rows < N_q)
    ### END SOLUTION


def causal_attention(q, k, v):
    """Causal attention by a kernel that visits no tile above the diagonal.

    Args:
        q: [B, H, N_q, d], float32 or float16, contiguous, as k and v.
        k: [B, H, N_k, d].
        v: [B, H, N_k, d].

    Returns:
        (o, lse): o [B, H, N_q, d] in the dtype of q; lse [B, H, N_q], float32: the
        logarithm of the sum of exp(score). Query i sees key j when j <= i + N_k - N_q.
        A row that sees no key has o = 0 and lse = -inf. Tiles are 32 queries by 32
        keys: the kernel loads each query once, and a tile of keys for those query
        tiles of which some query sees a key in it.
    """
    ### BEGIN SOLUTION
    batch, heads, n_q, d = q.shape
    o = torch.empty_like(q)
    lse = torch.empty(batch, heads, n_q, dtype=torch.float32, device=q.device)
    causal_attention_kernel[(triton.cdiv(n_q, 32), batch * heads)](
        q, k, v, o, lse, n_q, k.shape[2], 1 / math.sqrt(d), D=d, BLOCK=32, num_warps=8
    )
    return o, lse
    ### END SOLUTION


# %% check="causal_attention"
if kernels_run(triton):
    q = torch.zeros(1, 1, 64, 16, device=device)
    k = torch.zeros(1, 1, 64, 16, device=device)
    q[..., 0] = 4.0
    k[0, 0, 0, 0] = math.log(2)  # key 0 has the score ln 2, all others 0
    v = torch.arange(64.0, device=device).view(1, 1, 64, 1).expand(1, 1, 64, 16)
    o, lse = causal_attention(q, k, v.contiguous())
    i = torch.arange(64.0)
    expect(
        o[0, 0, :, 0].cpu(),
        i * (i + 1) / 2 / (i + 2),
        atol=1e-3,
        hint="Values 0 to i; key 0 counts twice. 31.02 everywhere? No mask.",
    )
    values = v[:, :, :40].contiguous()
    o, lse = causal_attention(q[:, :, :8], k[:, :, :40], values)
    expect(
        lse[0, 0].cpu(),
        torch.arange(34.0, 42.0).log(),
        atol=1e-4,
        hint="8 queries, 40 keys: the first sees 33, and key 0 counts twice.",
    )
    if device == "cpu":
        empty = torch.zeros(1, 1, 128, 16)
        _, seen = trace(causal_attention, empty, empty.clone(), empty.clone())
        expect(
            seen.loads["k"],
            10 * 32 * 16,
            hint="10 tiles of 32 keys, 16 numbers each. 16 tiles? The loop has one end for all.",
        )

# %% [markdown]
# ## 4. The backward pass, by two kernels
#
# ★★★ · about 80 minutes
#
# With $P_{ij} = e^{S_{ij}-\mathrm{lse}_i}$ from the log-sum-exp that the forward pass has kept, and
# $D_i = \sum_c dO_{ic}\,O_{ic}$:
#
# $$dV = P^\top dO \qquad dP = dO\,V^\top \qquad dS = P\circ(dP - D) \qquad dQ = \frac{dS\,K}{\sqrt d}\qquad
#   dK=\frac{dS^\top Q}{\sqrt d}$$
#
# $dV$ and $dK$ are sums over *queries*, $dQ$ is a sum over *keys*. A program that owns a query tile and walks over the
# keys can keep its $dQ$ on the chip. But it has a share of every row of $dK$, and so has every other program: they would
# add to the same numbers at the same time. Load, add, store: what another program has stored in between is lost. That
# is a **race**. The next cell shows one.

# %% demo="a_race"
if kernels_run(triton):

    @triton.jit
    def add_rows_kernel(x_ptr, sum_ptr, N: tl.constexpr, ATOMIC: tl.constexpr):
        """Each program adds its row of x to one sum."""
        columns = tl.arange(0, N)
        x = tl.load(x_ptr + tl.program_id(0) * N + columns)
        if ATOMIC:
            tl.atomic_add(sum_ptr + columns, x)
        else:
            tl.store(sum_ptr + columns, tl.load(sum_ptr + columns) + x)

    def add_rows(x, atomic):
        """The sum of the rows of x, by one program a row."""
        total = torch.zeros(x.shape[1], device=x.device)
        add_rows_kernel[(x.shape[0],)](x, total, N=x.shape[1], ATOMIC=atomic)
        return total

    if device == "cpu":
        try:
            add_rows(torch.ones(8, 16), atomic=False)
        except Exception as fault:
            print("load, add, store:", fault)
    print("atomic_add:", add_rows(torch.ones(8, 16, device=device), atomic=True))

# %% [markdown]
# `tl.atomic_add` mends the race: the memory adds, one program after the other. It has two prices. Each share travels to
# memory and back, once for each query tile, and the order in which they arrive is another one each time: floating point
# sums are then a little different from run to run.
#
# So do it without: **two kernels**, each with programs that own what they write.
#
# 1. A program for each *key tile* walks over the queries, and keeps $dK$ and $dV$ of its tile.
# 2. A program for each *query tile* walks over the keys, and keeps $dQ$.
#
# The scores are computed in both. That is the same bargain as in assignment 7: arithmetic instead of traffic.
#
# Where evenings are lost:
#
# * Rows that see nothing have lse $= -\infty$. Where $S$ is $-\infty$ too, $S - \mathrm{lse}$ is no number: mask $P$,
#   not $S$.
# * A query beyond $N_q$ takes part in the sums of $dK$ and $dV$. What must its $dO$ be, so that it adds nothing?
# * `tl.trans(p)` turns a tile.
#
# **Predict first.** $N_q = N_k = 1024$ in tiles of 32, $d = 64$: with atomics, how often would one row of $dK$ be read
# and written in memory (without the causal mask)?

# %% predict="causal_attention_backward"
predict(
    "How often would one row of dK be read and written?",
    answer=32,
    because="Once for each of the 32 query tiles. Two kernels write it once.",
)


# %% question="causal_attention_backward"
@triton.jit
def weights_and_their_gradient(q, k, v, do, lse, delta, rows, columns, offset, scale):
    """(p, ds), [B_q, B_k] each, of a tile: weights, and the gradient of scores without
    the scale. Helper of both kernels; change it as you like.
    """
    ### BEGIN SOLUTION
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    seen = columns[None, :] <= rows[:, None] + offset
    p = tl.where(seen, tl.exp(s - lse[:, None]), 0.0)  # lse is -inf where nothing is seen
    dp = tl.dot(do, tl.trans(v), input_precision="ieee")
    return p, p * (dp - delta[:, None])
    ### END SOLUTION


@triton.jit
def keys_and_values_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, do_ptr, dk_ptr, dv_ptr, N_q, N_k, scale,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program: dk and dv of one key tile of one head."""
    ### BEGIN SOLUTION
    head = tl.program_id(1)
    dims = tl.arange(0, D)
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK], keys
    k_places = (head * N_k + columns)[:, None] * D + dims[None, :]
    k_inside = columns[:, None] < N_k
    k = tl.load(k_ptr + k_places, mask=k_inside, other=0.0)
    v = tl.load(v_ptr + k_places, mask=k_inside, other=0.0)
    dk = tl.zeros([BLOCK, D], tl.float32)
    dv = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, N_q, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        q_places = (head * N_q + rows)[:, None] * D + dims[None, :]
        q_inside = rows[:, None] < N_q
        q = tl.load(q_ptr + q_places, mask=q_inside, other=0.0)
        do = tl.load(do_ptr + q_places, mask=q_inside, other=0.0)
        o = tl.load(o_ptr + q_places, mask=q_inside, other=0.0)
        lse = tl.load(lse_ptr + head * N_q + rows, mask=rows < N_q, other=0.0)
        delta = tl.sum(do * o, 1)
        p, ds = weights_and_their_gradient(q, k, v, do, lse, delta, rows, columns, N_k - N_q, scale)
        dv += tl.dot(tl.trans(p), do, input_precision="ieee")
        dk += tl.dot(tl.trans(ds), q, input_precision="ieee") * scale
    tl.store(dk_ptr + k_places, dk, mask=k_inside)
    tl.store(dv_ptr + k_places, dv, mask=k_inside)
    ### END SOLUTION


@triton.jit
def queries_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, do_ptr, dq_ptr, N_q, N_k, scale,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program: dq of one query tile of one head."""
    ### BEGIN SOLUTION
    head = tl.program_id(1)
    dims = tl.arange(0, D)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK], queries
    q_places = (head * N_q + rows)[:, None] * D + dims[None, :]
    q_inside = rows[:, None] < N_q
    q = tl.load(q_ptr + q_places, mask=q_inside, other=0.0)
    do = tl.load(do_ptr + q_places, mask=q_inside, other=0.0)
    o = tl.load(o_ptr + q_places, mask=q_inside, other=0.0)
    lse = tl.load(lse_ptr + head * N_q + rows, mask=rows < N_q, other=0.0)
    delta = tl.sum(do * o, 1)
    dq = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, N_k, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        k_places = (head * N_k + columns)[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + k_places, mask=columns[:, None] < N_k, other=0.0)
        v = tl.load(v_ptr + k_places, mask=columns[:, None] < N_k, other=0.0)
        _, ds = weights_and_their_gradient(q, k, v, do, lse, delta, rows, columns, N_k - N_q, scale)
        dq += tl.dot(ds, k, input_precision="ieee") * scale
    tl.store(dq_ptr + q_places, dq, mask=q_inside)
    ### END SOLUTION


def causal_attention_backward(q, k, v, o, lse, do):
    """Gradients of causal attention by two kernels without atomics.

    Args:
        q: [B, H, N_q, d], float32, contiguous, as all that follow.
        k: [B, H, N_k, d].
        v: [B, H, N_k, d].
        o: [B, H, N_q, d], what causal_attention returned.
        lse: [B, H, N_q], what causal_attention returned.
        do: [B, H, N_q, d], the gradient of o.

    Returns:
        (dq, dk, dv) in the shapes of q, k and v, float32. A row that sees no key has dq
        = 0, and adds nothing to dk and dv. One kernel computes dk and dv, with a
        program for each tile of 32 keys of a head; another one dq, with one for each
        tile of 32 queries. Each gradient is stored once and never loaded, without
        atomics; hidden tiles may be visited. The wrapper computes nothing itself.
    """
    ### BEGIN SOLUTION
    batch, heads, n_q, d = q.shape
    n_k, scale = k.shape[2], 1 / math.sqrt(d)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    keys_and_values_kernel[(triton.cdiv(n_k, 32), batch * heads)](
        q, k, v, o, lse, do, dk, dv, n_q, n_k, scale, D=d, BLOCK=32, num_warps=8
    )
    queries_kernel[(triton.cdiv(n_q, 32), batch * heads)](
        q, k, v, o, lse, do, dq, n_q, n_k, scale, D=d, BLOCK=32, num_warps=8
    )
    return dq, dk, dv
    ### END SOLUTION


# %% check="causal_attention_backward"
def try_backward(n_q, n_k, hint):
    torch.manual_seed(n_k)
    q, k, v, do = (
        torch.randn(1, 2, n, 16, device=device) for n in (n_q, n_k, n_k, n_q)
    )
    inputs = [t.double().requires_grad_() for t in (q, k, v)]
    s = inputs[0] @ inputs[1].mT / 4
    hidden = torch.ones(n_q, n_k, device=device).tril(n_k - n_q) == 0
    s = s.masked_fill(hidden, float("-inf"))
    o, lse = torch.softmax(s, dim=-1) @ inputs[2], torch.logsumexp(s, dim=-1)
    expected = torch.autograd.grad(o, inputs, do.double())
    gradients = causal_attention_backward(
        q, k, v, o.detach().float(), lse.detach().float(), do
    )
    names = ("dq", "dk", "dv")
    for gradient, right, name in zip(gradients, expected, names, strict=True):
        expect(gradient.cpu(), right.float().cpu(), atol=1e-4, hint=f"{name}: {hint}")


if kernels_run(triton):
    try_backward(32, 32, hint="one tile, two heads. Is head in the place of every tensor?")
    try_backward(64, 96, hint="several tiles, nothing ragged.")
    try_backward(20, 50, hint="ragged tiles: what weight has a query that is not there?")

# %% [markdown]
# ## 5. Decoding: share out the keys
#
# ★★★ · about 60 minutes
#
# While a model writes, there is one new query a head, and thousands of keys in the cache. Your kernel of section 3 would
# start one program a head. An H100 has 132 multiprocessors. With 8 heads 124 of them watch.
#
# But two partial answers can be merged (`merge_stats` in assignment 7), in any grouping. So share out the *keys*: each
# head gets `splits` programs, each takes its part of the keys and leaves $(m, l, o)$, with $o$ **not** divided by $l$.
# A second kernel merges them, one program a head:
#
# $$m=\max_s m_s\qquad l=\sum_s l_s\,e^{m_s-m}\qquad o=\frac{1}{l}\sum_s o_s\,e^{m_s-m}\qquad \mathrm{lse}=m+\ln l$$
#
# Why two kernels? The merge must wait until all parts are there, and programs of one launch cannot wait for each other.
# Between two launches everything is written.
#
# There is one query, and no `tl.dot` (its sides are at least 16): scores of a tile are `tl.sum(q[None, :] * k, 1)`, and
# $o$ is `tl.sum(p[:, None] * v, 0)`.
#
# With 10 keys in 4 parts each part has $\lceil 10/4\rceil = 3$ keys, and the last one 1. With 9 keys in 6 parts it is 2,
# and the last part has none: $(-\infty, 0, 0)$. The log-sum-exp of each part goes out as well, so that you see who did
# what.
#
# **Predict first.** 8 heads, 4096 keys, $d = 64$, 16 splits. How many numbers do the first programs leave for the second
# kernel (`part_lse`, which goes out, aside), and is that much beside the keys?

# %% predict="split_decode"
predict(
    "How many numbers do the first programs leave?",
    answer=8448,
    because="8 · 16 parts of 64 + 2 numbers (m, l and o). The keys alone are 2 097 152.",
)


# %% question="split_decode"
@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, l_ptr,
    part_ptr, part_lse_ptr, N, per_split, scale, SPLITS,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program: one part of the keys of one head. Its signature may change."""
    ### BEGIN SOLUTION
    split = tl.program_id(0)
    head = tl.program_id(1)  # of all B * H
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + head * D + dims).to(tl.float32)
    m = tl.full([1], float("-inf"), tl.float32)
    l = tl.zeros([1], tl.float32)
    o = tl.zeros([D], tl.float32)
    end = tl.minimum((split + 1) * per_split, N)
    for start in range(split * per_split, end, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        inside = keys < end
        places = (head * N + keys)[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + places, mask=inside[:, None], other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=inside[:, None], other=0.0).to(tl.float32)
        s = tl.where(inside, tl.sum(q[None, :] * k, 1) * scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 0))
        p = tl.exp(s - m_new)
        shrink = tl.exp(m - m_new)
        l = l * shrink + tl.sum(p, 0)
        o = o * shrink + tl.sum(p[:, None] * v, 0)
        m = m_new
    place = head * SPLITS + split
    tl.store(m_ptr + place + tl.arange(0, 1), m)
    tl.store(l_ptr + place + tl.arange(0, 1), l)
    tl.store(part_lse_ptr + place + tl.arange(0, 1), m + tl.log(l))
    tl.store(part_ptr + place * D + dims, o)
    ### END SOLUTION


@triton.jit
def merge_kernel(
    m_ptr, l_ptr, part_ptr, o_ptr,
    lse_ptr, SPLITS, D: tl.constexpr, PADDED: tl.constexpr
):
    """One program: all parts of one head into one answer."""
    ### BEGIN SOLUTION
    head = tl.program_id(0)
    dims = tl.arange(0, D)
    splits = tl.arange(0, PADDED)  # of which SPLITS are there
    inside = splits < SPLITS
    m_s = tl.load(m_ptr + head * SPLITS + splits, mask=inside, other=float("-inf"))
    l_s = tl.load(l_ptr + head * SPLITS + splits, mask=inside, other=0.0)
    places = (head * SPLITS + splits)[:, None] * D + dims[None, :]
    o_s = tl.load(part_ptr + places, mask=inside[:, None], other=0.0)
    m = tl.max(m_s, 0)
    shrink = tl.exp(m_s - m)  # [PADDED]
    l = tl.sum(l_s * shrink, 0)
    o = tl.sum(o_s * shrink[:, None], 0) / l
    tl.store(o_ptr + head * D + dims, o.to(o_ptr.dtype.element_ty))
    tl.store(lse_ptr + head, m + tl.log(l))
    ### END SOLUTION


def split_decode(q, k, v, splits):
    """Attention of one new query a head, by two kernels: parts of keys, their merge.

    Args:
        q: [B, H, d], float32 or float16, contiguous, as k and v.
        k: [B, H, N, d], N at least 1.
        v: [B, H, N, d].
        splits: parts of the keys of each head, up to 64; each has ceil(N / splits)
            keys while there are so many; the next has the rest, the others none.

    Returns:
        (o, lse, part_lse): o [B, H, d] in the dtype of q; lse [B, H], float32; part_lse
        [B, H, splits], float32, the log-sum-exp of each part's keys, -inf where it has
        none. Computed in float32. The first kernel has splits programs a head, the
        second one program a head. Keys and values are loaded once; each part leaves d +
        3 numbers in float32 at most.

    Raises:
        ValueError: splits is below 1; it stands in the message.
    """
    ### BEGIN SOLUTION
    if splits < 1:
        raise ValueError(f"at least 1 split, got {splits}")
    batch, heads, n, d = k.shape
    m = torch.empty(batch, heads, splits, dtype=torch.float32, device=q.device)
    l, part_lse = torch.empty_like(m), torch.empty_like(m)
    parts = torch.empty(batch, heads, splits, d, dtype=torch.float32, device=q.device)
    o = torch.empty_like(q)
    lse = torch.empty(batch, heads, dtype=torch.float32, device=q.device)
    part_kernel[(splits, batch * heads)](
        q, k, v, m, l, parts, part_lse, n, triton.cdiv(n, splits), 1 / math.sqrt(d), splits, D=d, BLOCK=32
    )
    merge_kernel[(batch * heads,)](
        m, l, parts, o, lse, splits, D=d, PADDED=triton.next_power_of_2(splits)
    )
    return o, lse, part_lse
    ### END SOLUTION


# %% check="split_decode"
if kernels_run(triton):
    q = torch.zeros(1, 1, 16, device=device)
    k = torch.zeros(1, 1, 10, 16, device=device)
    q[0, 0, 0] = 4.0
    k[0, 0, 9, 0] = math.log(9)  # the last key has the score ln 9, all others 0
    v = torch.arange(10.0, device=device).view(1, 1, 10, 1).expand(1, 1, 10, 16)
    for splits in (1, 4, 6):
        o, lse, part_lse = split_decode(q, k, v.contiguous(), splits)
        expect(
            o[0, 0].cpu(),
            torch.full((16,), 6.5),
            atol=1e-5,
            hint=f"Weights of 1/18, and 9/18 for the last key, in {splits} parts. nan? A part without keys.",
        )
        expect(
            lse.cpu(),
            torch.full((1, 1), math.log(18)),
            atol=1e-5,
            hint="Nine keys of 1 and one of 9: ln 18. The merged l counts them all, relative to one maximum.",
        )
    expect(
        part_lse[0, 0].cpu(),
        torch.tensor([2.0, 2.0, 2.0, 2.0, 10.0, 0.0]).log(),
        atol=1e-5,
        hint="Six parts of ten keys: 2, 2, 2, 2, 2 and none; the last key counts as 9.",
    )

# %% [markdown]
# ## 6. The roofline, from counts
#
# ★☆☆ · about 20 minutes
#
# A kernel that does $F$ operations and moves $b$ bytes needs at least $F / \text{peak}$ seconds for the products and at
# least $b / \text{bandwidth}$ for the traffic. Both go on at the same time, so the larger of the two is the least time.
# Operations for each byte, $F/b$, are called the *intensity*; where it is below peak / bandwidth, the chip waits for
# traffic.
#
# The counts come from the trace of your own kernels; the figures of the GPUs are those of the data sheets.
#
# **Predict first.** A product of two matrices of $n\times n$ in tiles of 32, in half precision: how many operations for
# each byte that a program loads, about?

# %% predict="limits"
predict(
    "How many operations for each byte?",
    answer=16,
    atol=1,
    because="A step loads two tiles of 32 · 32 · 2 bytes, and does 2 · 32³ operations.",
)


# %% question="limits"
def limits(flops, elements, bytes_per_element, peak, bandwidth):
    """What a kernel waits for on a GPU, by its counts.

    Args:
        flops: operations.
        elements: numbers that are loaded and stored, at least one.
        bytes_per_element: of each of them.
        peak: operations in a second, at most.
        bandwidth: bytes in a second, at most.

    Returns:
        dict: "intensity", operations for each byte; "seconds", the least time;
        "flops_a_second", the operations in a second at that time; "waits_for":
        "traffic" where moving the bytes takes longer than the operations, else
        "products".
    """
    ### BEGIN SOLUTION
    moved = elements * bytes_per_element
    for_products, for_traffic = flops / peak, moved / bandwidth
    seconds = max(for_products, for_traffic)
    return {
        "intensity": flops / moved,
        "seconds": seconds,
        "flops_a_second": flops / seconds,
        "waits_for": "traffic" if for_traffic > for_products else "products",
    }
    ### END SOLUTION


# %% check="limits"
both = limits(
    flops=600, elements=50, bytes_per_element=2, peak=100.0, bandwidth=20.0
)
expect(both["intensity"], 6.0, hint="600 operations on 100 bytes.")
expect(both["seconds"], 6.0, hint="6 s of products, 5 s of traffic, at the same time.")
expect(both["waits_for"], "products", hint="Traffic is done after 5 s.")

# %% given="gpu_figures"
if device == "cpu" and kernels_run(triton):
    from autograder.kernels.roofline import H100, H200, resources

# %% demo="the_roofline"
import matplotlib.pyplot as plt

if device == "cpu" and kernels_run(triton):
    half = {n: torch.ones(n, 64).half() for n in (128, 512)}
    heads = [torch.ones(1, 1, 256, 64).half() for _ in range(3)]
    calls = {
        "matmul": (matmul, half[512], half[128].T.contiguous(), 4),
        "causal_attention": (causal_attention, *heads),
        "split_decode": (split_decode, heads[0][:, :, 0].contiguous(), *heads[1:], 4),
    }
    figure, axis = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
    for gpu, color in ((H100, "tab:green"), (H200, "tab:blue")):
        ridge = gpu.half_flops / gpu.bytes_a_second
        ends = (0.2, ridge, 4000)
        roof = [min(gpu.half_flops, i * gpu.bytes_a_second) / 1e12 for i in ends]
        axis.loglog(ends, roof, color=color, label=f"{gpu.name}, half precision")
    for name, (function, *arguments) in calls.items():
        _, seen = trace(function, *arguments)
        # split_decode has no tl.dot: two products of one query, 2 operations each
        flops = seen.flops or 4 * heads[1].numel()
        moved = sum(seen.loads.values()) + sum(seen.stores.values())
        work = limits(flops, moved, 2, H100.half_flops, H100.bytes_a_second)
        axis.plot(work["intensity"], work["flops_a_second"] / 1e12, "o", label=name)
        print(
            f"{name:18} {work['intensity']:6.1f} operations a byte: an H100 waits for "
            f"{work['waits_for']}"
        )
        for needs in resources(function, *arguments):
            print("   ", needs)
    axis.set(xlabel="operations for each byte", ylabel="TFLOP/s", title="Roofline")
    axis.legend()
    plt.show()

# %% [markdown]
# Tiles of 32 are small: the picture shows what they cost. Each byte that a program loads serves 32 rows, and the ridge
# lies near 300. Real kernels take tiles of 128 × 256, and the cache takes the rest: the order of section 1. And for
# `split_decode` no tile helps: each key is used once. A GPU that decodes for one user does nothing but fetch.

# %% [markdown]
# ## 7. Find the error in the notes
#
# ★★☆ · about 20 minutes
#
# "(+) Highly parallel, it's just 4 matmuls", says the lecture's table of three ways to process a sequence about
# attention, and counts it as the great advantage over the recurrent network. For training that is right. Then the same
# model writes a text, and the slide's sentence is used for it too.
#
# Take it apart with numbers. A GPU has $s$ multiprocessors (132 on an H100). Programs run in *waves*: $s$ at a time, if
# each has one for itself, and a wave ends when its programs do. With $p$ programs there are $w = \lceil p / s\rceil$
# waves, and the share of the processors' time in which they work is $p / (w\,s)$. For attention
# $p = B\cdot H\cdot\lceil N_q / B_q\rceil\cdot\text{splits}$.
#
# **Predict first.** One sentence, 8 heads. The prompt has 4096 tokens, in query tiles of 128. Then one token after the
# other. Which share of an H100 works, for the prompt and for a token?

# %% predict="busy_share"
predict(
    "Which share of an H100 works on one new token, in percent?",
    answer=6,
    atol=0.5,
    because="8 programs on 132 processors: 6 %. For the prompt 256 programs are two "
    "waves of 132: 97 %.",
)


# %% question="busy_share"
def busy_share(batch, heads, n_q, block_q, splits, processors):
    """The share of a GPU's multiprocessors that attention keeps at work.

    Args:
        batch: sentences.
        heads: of each sentence.
        n_q: queries of each head.
        block_q: queries of a tile; each tile of a head is a program for each split.
        splits: parts of the keys of each head.
        processors: of the GPU; each runs one program at a time.

    Returns:
        float: programs / (waves * processors), with as few waves as possible.
    """
    ### BEGIN SOLUTION
    programs = batch * heads * -(-n_q // block_q) * splits
    waves = -(-programs // processors)
    return programs / (waves * processors)
    ### END SOLUTION


# %% check="busy_share"
expect(
    busy_share(1, 8, 1, 128, 1, 132),
    8 / 132,
    hint="One query is one tile: 8 programs, one wave.",
)
expect(
    busy_share(1, 8, 4096, 128, 1, 132),
    256 / 264,
    hint="8 heads of 32 tiles: two waves of 132.",
)
for splits in (1, 4, 16, 17):
    print(splits, f"splits: {busy_share(1, 8, 1, 128, splits, 132):.0%} of an H100")

# %% [markdown] written="atomics_or_two_kernels" points=5
# ## 8. In your own words
#
# The backward pass can be one kernel that adds its shares of $dK$ and $dV$ with `tl.atomic_add`, or two kernels that
# compute every score twice. Explain what each costs, with numbers for $N_q = N_k = 4096$, $d = 64$, tiles of 128: how
# often is a row of $dK$ written, and how many products does a pair of query tile and key tile take, in either way? Why
# may two runs of the first give different gradients? Five or six sentences.
#
# ### BEGIN SOLUTION
# With atomics there is one kernel. A pair of tiles takes five products: the scores, dP, and one for each of dQ, dK and
# dV. But each of the 32 query tiles adds to all rows of dK and dV, so a row is read and written 32 times in memory; in
# float32 that is 32 · 4096 · 64 · 4 bytes = 34 MB of additions for dK alone, and programs that meet wait for each other.
# Two kernels write each row once. Their pairs take seven products: four for dK and dV (scores, dP, dK, dV) and three for
# dQ (scores, dP, dQ), 40 % more arithmetic, which the chip can do while it waits for traffic anyway. Floating point sums
# depend on their order, and atomics come in the order in which programs happen to arrive, so the last digits differ from
# run to run; with two kernels each sum has one order.
# ### END SOLUTION
#
# ### BEGIN MARK SCHEME
# - 2 points: a row of dK is written 32 times with atomics and once with two kernels. (1 point for either.)
# - 2 points: five products a pair of tiles against seven. (1 point for saying that scores and dP are computed twice.)
# - 1 point: atomics arrive in another order each time, and floating point sums depend on their order.
# ### END MARK SCHEME
