"""Right answers that are written differently from the answer key."""

import torch

from autograder.suite import alternate


def _refuse_ids(ids, size):
    for i in ids.reshape(-1).tolist():
        if i < 0 or i >= size:
            raise ValueError(f"no word {i} among {size}")


# --- one_hot


@alternate("one_hot")
def rows_of_the_identity(ids, vocab_size):
    _refuse_ids(ids, vocab_size)
    return torch.eye(vocab_size)[ids]


@alternate("one_hot")
def scatters_ones(ids, vocab_size):
    _refuse_ids(ids, vocab_size)
    return torch.zeros(*ids.shape, vocab_size).scatter_(-1, ids.unsqueeze(-1), 1.0)


@alternate("one_hot")
def one_row_after_the_other(ids, vocab_size):
    if ids.numel() and (ids.min() < 0 or ids.max() >= vocab_size):
        raise ValueError(
            f"ids from {ids.min().item()} to {ids.max().item()}, vocabulary of {vocab_size}"
        )
    rows = torch.zeros(ids.numel(), vocab_size)
    for row, i in enumerate(ids.flatten()):
        rows[row, i] = 1
    return rows.reshape(tuple(ids.shape) + (vocab_size,))


# --- cosine_similarity


@alternate("cosine_similarity")
def normalizes_both_first(u, v):
    if u.size(-1) != v.size(-1):
        raise ValueError(f"{u.size(-1)} != {v.size(-1)}")
    wide = torch.promote_types(u.dtype, torch.float32)
    unit = []
    for x in (u.to(wide), v.to(wide)):
        empty = (x == 0).all(dim=-1, keepdim=True)
        length = (
            torch.where(empty, torch.ones_like(x), x)
            .square()
            .sum(dim=-1, keepdim=True)
            .sqrt()
        )
        unit.append(x / length)
    return torch.mul(*unit).sum(-1).to(u.dtype)


@alternate("cosine_similarity")
def everything_in_double(u, v):
    if u.shape[-1] != v.shape[-1]:
        raise ValueError(f"features: {u.shape[-1]} and {v.shape[-1]}")
    a, b = u.double(), v.double()
    lengths = (a.norm(dim=-1) * b.norm(dim=-1)).masked_fill(
        ~(a.any(-1) & b.any(-1)), 1.0
    )
    return (torch.einsum("...d,...d->...", a, b) / lengths).to(u.dtype)


@alternate("cosine_similarity")
def with_matrix_products(u, v):
    if u.shape[-1] != v.shape[-1]:
        raise ValueError(f"features: {u.shape[-1]} and {v.shape[-1]}")
    a, b = torch.broadcast_tensors(u, v)
    if u.dtype == torch.float16 or u.dtype == torch.bfloat16:
        a, b = a.float(), b.float()
    dot = (a.unsqueeze(-2) @ b.unsqueeze(-1))[..., 0, 0]
    zero = (a == 0).all(-1) | (b == 0).all(-1)
    squares = [(x * x).sum(-1).masked_fill(zero, 1.0) for x in (a, b)]
    return (dot * squares[0].rsqrt() * squares[1].rsqrt()).to(u.dtype)


@alternate("cosine_similarity")
def in_single_precision(u, v):
    if u.shape[-1] != v.shape[-1]:
        raise ValueError(f"features: {u.shape[-1]} and {v.shape[-1]}")
    a = torch.nn.functional.normalize(u.float(), dim=-1, eps=1e-30)
    b = torch.nn.functional.normalize(v.float(), dim=-1, eps=1e-30)
    return (a * b).sum(dim=-1).to(u.dtype)


# --- nearest


def _refuse_nearest(table, query, k, exclude):
    if query.shape[-1] != table.shape[1]:
        raise ValueError(
            f"{query.shape[-1]} features in the query, {table.shape[1]} in the table"
        )
    wrong = [i for i in exclude if i < 0 or i >= len(table)]
    if wrong:
        raise ValueError(f"unknown ids {wrong}")
    if k < 1 or k > len(table) - len(set(exclude)):
        raise ValueError(
            f"k={k} does not fit {len(table)} words without {len(set(exclude))}"
        )


@alternate("nearest")
def sorts_everything(table, query, k, exclude=()):
    _refuse_nearest(table, query, k, exclude)
    order = cosine_similarity(table, query).sort(descending=True).indices.tolist()
    return torch.tensor([i for i in order if i not in exclude][:k])


@alternate("nearest")
def maps_back_from_the_kept_rows(table, query, k, exclude=()):
    _refuse_nearest(table, query, k, exclude)
    keep = torch.ones(len(table), dtype=torch.bool)
    keep[list(set(exclude))] = False
    kept = keep.nonzero()[:, 0]
    return kept[cosine_similarity(table[kept], query).argsort(descending=True)[:k]]


@alternate("nearest")
def does_not_need_the_length_of_the_query(table, query, k, exclude=()):
    _refuse_nearest(table, query, k, exclude)
    lengths = table.norm(dim=1)
    scores = torch.where(
        lengths > 0, (table @ query) / lengths, torch.zeros_like(lengths)
    )
    mask = torch.zeros_like(scores)
    for i in exclude:
        mask[i] = torch.inf
    return (mask - scores).topk(k, largest=False).indices


@alternate("nearest")
def sorts_in_python(table, query, k, exclude=()):
    _refuse_nearest(table, query, k, exclude)
    scores = cosine_similarity(table, query[None]).tolist()
    left = [i for i in range(len(scores)) if i not in set(exclude)]
    return torch.as_tensor(sorted(left, key=lambda i: -scores[i])[:k], dtype=torch.long)


# --- analogy


@alternate("analogy")
def asks_for_four_and_picks(table, a, b, c):
    if min(a, b, c) < 0 or max(a, b, c) >= len(table):
        raise ValueError(f"ids {a}, {b}, {c} in a table of {len(table)}")
    order = nearest(table, table[c] + (table[b] - table[a]), min(4, len(table)))
    left = [i for i in order.tolist() if i not in (a, b, c)]
    if not left:
        raise ValueError(f"a table of {len(table)} words leaves none")
    return left[0]


@alternate("analogy")
def with_a_row_of_signs(table, a, b, c):
    size = table.shape[0]
    if any(i not in range(size) for i in (a, b, c)):
        raise ValueError(f"not all of {(a, b, c)} are below {size}")
    signs = torch.zeros(size, dtype=table.dtype)
    for i, sign in ((a, -1), (b, 1), (c, 1)):
        signs[i] += sign
    return nearest(table, signs @ table, 1, [a, b, c]).item()


@alternate("analogy")
def with_its_own_ranking(table, a, b, c):
    size = table.shape[0]
    if any(i < 0 or i >= size for i in (a, b, c)) or len({a, b, c}) == size:
        raise ValueError(f"not all of {(a, b, c)} are below {size}, or nothing is left")
    scores = cosine_similarity(table, (table[b] - table[a] + table[c]).expand_as(table))
    scores[[a, b, c]] = -2.0
    return int(scores.argmax())


# --- softmax


@alternate("softmax")
def through_logsumexp(z, dim=-1):
    wide = z.to(torch.promote_types(z.dtype, torch.float32))
    empty = (wide == -torch.inf).all(dim, keepdim=True)
    total = torch.logsumexp(wide.masked_fill(empty, 0.0), dim, keepdim=True)
    return torch.exp(wide - total).to(z.dtype)


@alternate("softmax")
def dim_moved_to_the_end(z, dim=-1):
    wide = z.double().movedim(dim, -1)
    empty = torch.isneginf(wide).all(-1, keepdim=True)
    wide = wide.masked_fill(empty, 0.0)
    powers = (wide - wide.max(-1, keepdim=True).values.detach()).exp()
    weights = (powers / powers.sum(-1, keepdim=True)).masked_fill(empty, 0.0)
    return weights.movedim(-1, dim).to(z.dtype)


@alternate("softmax")
def one_row_at_a_time(z, dim=-1):
    rows = z.movedim(dim, -1)
    shape = rows.shape
    done = []
    for row in rows.reshape(-1, shape[-1]):
        row = row.float() if z.dtype in (torch.float16, torch.bfloat16) else row
        if bool((row == -math.inf).all()):
            done.append(torch.where(row == -math.inf, torch.zeros_like(row), row))
            continue
        powers = torch.exp(row - row.max())
        done.append(powers / powers.sum())
    return torch.stack(done).reshape(shape).movedim(-1, dim).to(z.dtype)


@alternate("softmax")
def everything_in_single_precision(z, dim=-1):
    wide = z.float()
    top = wide.detach().amax(dim, keepdim=True).nan_to_num(nan=math.nan, neginf=0.0)
    powers = (wide - top).exp()
    total = powers.sum(dim, keepdim=True)
    return (powers / (total + (total == 0))).to(z.dtype)


# --- skip_gram_probabilities


@alternate("skip_gram_probabilities")
def with_einsum(center, context_table):
    if center.shape[0] != context_table.shape[1]:
        raise ValueError(f"{center.shape[0]} and {context_table.shape[1]} features")
    return softmax(torch.einsum("vd,d->v", context_table, center), dim=0)


@alternate("skip_gram_probabilities")
def as_a_row_times_the_transpose(center, context_table):
    if center.shape[0] != context_table.shape[1]:
        raise ValueError(f"{center.shape[0]} and {context_table.shape[1]} features")
    return softmax(center[None] @ context_table.T)[0]


@alternate("skip_gram_probabilities")
def written_out(center, context_table):
    if center.shape[0] != context_table.shape[1]:
        raise ValueError(f"{center.shape[0]} and {context_table.shape[1]} features")
    scores = (context_table.double() * center.double()).sum(dim=1)
    powers = torch.exp(scores - scores.max())
    return (powers / powers.sum()).to(center.dtype)


@alternate("skip_gram_probabilities")
def probabilities_in_single_precision(center, context_table):
    if center.shape[0] != context_table.shape[1]:
        raise ValueError(f"{center.shape[0]} and {context_table.shape[1]} features")
    return softmax(context_table.float() @ center.float()).to(center.dtype)


# --- skip_gram_pairs


def _refuse_window(window):
    if window <= 0:
        raise ValueError(f"the window is {window}")


@alternate("skip_gram_pairs")
def distances_of_all_places(sentences, window):
    """Row i, column j: may j be a context of i? nonzero goes through the rows."""
    _refuse_window(window)
    centers, contexts = [torch.zeros(0).long()], [torch.zeros(0).long()]
    for words in sentences:
        place = torch.arange(len(words))
        distance = (place[:, None] - place).abs()
        i, j = torch.nonzero((distance > 0) & (distance <= window), as_tuple=True)
        centers.append(words[i])
        contexts.append(words[j])
    return torch.cat(centers), torch.cat(contexts)


@alternate("skip_gram_pairs")
def one_pair_after_the_other(sentences, window):
    _refuse_window(window)
    pairs = []
    for words in sentences:
        n = words.shape[0]
        for i in range(n):
            for j in range(max(i - window, 0), min(i + window, n - 1) + 1):
                if j != i:
                    pairs.append([words[i].item(), words[j].item()])
    table = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
    return table[:, 0], table[:, 1]


@alternate("skip_gram_pairs")
def the_text_as_one_row_with_sentence_numbers(sentences, window):
    _refuse_window(window)
    text = torch.cat([torch.empty(0, dtype=torch.int64), *sentences])
    sentence = torch.tensor([s for s, words in enumerate(sentences) for _ in words])
    place = torch.arange(len(text))
    centers, contexts = [], []
    for i in place.tolist():
        near = (sentence == sentence[i]) & ((place - i).abs() <= window) & (place != i)
        contexts += text[near].tolist()
        centers += [int(text[i])] * int(near.sum())
    return torch.LongTensor(centers), torch.LongTensor(contexts)


@alternate("skip_gram_pairs")
def offsets_sorted_afterwards(sentences, window):
    """All pairs of one offset at once, then into the order of the text."""
    _refuse_window(window)
    found = []
    for s, words in enumerate(sentences):
        ids = words.tolist()
        for offset in range(1, window + 1):
            for i in range(len(ids) - offset):
                found.append((s, i, i + offset, ids[i], ids[i + offset]))
                found.append((s, i + offset, i, ids[i + offset], ids[i]))
    found.sort()
    return torch.tensor([f[3] for f in found]).long(), torch.tensor(
        [f[4] for f in found]
    ).long()


# --- skip_gram_loss


def _refuse_pairs(center_ids, context_ids, center_table, context_table):
    if len(center_ids) != len(context_ids):
        raise ValueError(f"{len(center_ids)} against {len(context_ids)} ids")
    if center_table.shape[1] != context_table.shape[1]:
        raise ValueError(
            f"{center_table.shape[1]} against {context_table.shape[1]} features"
        )
    _refuse_ids(center_ids, len(center_table))
    _refuse_ids(context_ids, len(context_table))


@alternate("skip_gram_loss")
def the_right_score_is_a_dot_product(
    center_ids, context_ids, center_table, context_table
):
    _refuse_pairs(center_ids, context_ids, center_table, context_table)
    wide = torch.promote_types(center_table.dtype, torch.float32)
    centers = center_table[center_ids].to(wide)
    right = (centers * context_table[context_ids].to(wide)).sum(-1)
    total = torch.einsum("bd,vd->bv", centers, context_table.to(wide)).logsumexp(-1)
    return torch.mean(total - right).to(center_table.dtype)


@alternate("skip_gram_loss")
def picks_with_one_hot(center_ids, context_ids, center_table, context_table):
    _refuse_pairs(center_ids, context_ids, center_table, context_table)
    scores = (center_table[center_ids] @ context_table.T).double()
    shifted = scores - scores.max(dim=1, keepdim=True).values
    logs = shifted - shifted.exp().sum(dim=1, keepdim=True).log()
    return (
        -(one_hot(context_ids, len(context_table)) * logs)
        .sum()
        .div(len(context_ids))
        .to(center_table.dtype)
    )


@alternate("skip_gram_loss")
def scores_of_all_words_first(center_ids, context_ids, center_table, context_table):
    _refuse_pairs(center_ids, context_ids, center_table, context_table)
    scores = center_table.double() @ context_table.double().transpose(0, 1)  # [V, V]
    logs = scores - scores.logsumexp(dim=1, keepdim=True)
    return -logs[center_ids, context_ids].mean().to(center_table.dtype)


# --- train_bpe


@alternate("train_bpe")
def with_loops_and_an_index(words, num_merges):
    if num_merges < 0:
        raise ValueError(f"{num_merges} merges?")
    pieces = [(tuple(word), count) for word, count in words.items()]
    merges = []
    for _ in range(num_merges):
        counts = {}
        for tokens, count in pieces:
            for i in range(len(tokens) - 1):
                pair = tokens[i], tokens[i + 1]
                counts[pair] = counts.get(pair, 0) + count
        if not counts:
            return merges
        best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[0][0]
        merges.append(best)
        renewed = []
        for tokens, count in pieces:
            new, i = [], 0
            while i < len(tokens):
                if tokens[i : i + 2] == best:
                    new.append("".join(best))
                    i += 2
                else:
                    new.append(tokens[i])
                    i += 1
            renewed.append((tuple(new), count))
        pieces = renewed
    return merges


@alternate("train_bpe")
def encodes_all_words_again(words, num_merges):
    if num_merges < 0:
        raise ValueError(f"num_merges={num_merges}")
    merges = []
    while len(merges) < num_merges:
        counts = Counter()
        for word, count in words.items():
            tokens = encode_bpe(word, merges)
            for left, right in zip(tokens[:-1], tokens[1:], strict=True):
                counts[left, right] += count
        if len(counts) == 0:
            break
        merges.append(min(counts.items(), key=lambda item: (-item[1], item[0]))[0])
    return merges


@alternate("train_bpe")
def recursive(words, num_merges):
    if num_merges < 0:
        raise ValueError(f"num_merges={num_merges}")

    def learn(split, merges):
        counts = Counter()
        for tokens, count in split:
            for pair in pairwise(tokens):
                counts.update({pair: count})
        if len(merges) == num_merges or not counts:
            return merges
        left, right = min(counts, key=lambda pair: (-counts[pair], *pair))
        renewed = []
        for tokens, count in split:
            tokens, i = list(tokens), 0
            while i + 1 < len(tokens):
                if tokens[i] == left and tokens[i + 1] == right:
                    tokens[i : i + 2] = [left + right]
                i += 1
            renewed.append((tokens, count))
        return learn(renewed, [*merges, (left, right)])

    return learn([(list(word), count) for word, count in words.items()], [])


# --- encode_bpe


@alternate("encode_bpe")
def one_join_at_a_time(word, merges):
    tokens = [*word]
    while True:
        places = [
            (merges.index(pair), i)
            for i, pair in enumerate(pairwise(tokens))
            if pair in merges
        ]
        if not places:
            return tokens
        _, i = min(places)
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]


@alternate("encode_bpe")
def searches_the_list_of_merges(word, merges):
    tokens = list(word)
    found = True
    while found:
        found = False
        for left, right in merges:
            i = 0
            while i < len(tokens) - 1:
                if tokens[i] == left and tokens[i + 1] == right:
                    tokens[i] += tokens.pop(i + 1)
                    found = True
                i += 1
            if found:
                break
    return tokens


@alternate("encode_bpe")
def calls_itself(word, merges):
    def join(tokens):
        pairs = set(pairwise(tokens))
        best = next((pair for pair in merges if pair in pairs), None)
        if best is None:
            return tokens
        new = []
        for token in tokens:
            if new and new[-1] == best[0] and token == best[1]:
                new[-1] = best[0] + best[1]
            else:
                new.append(token)
        return join(tuple(new))

    return list(join(tuple(word)))


# --- embed


@alternate("embed")
def with_index_select(table, ids):
    _refuse_ids(ids, table.shape[0])
    return table.index_select(0, ids.flatten()).view(*ids.shape, -1)


@alternate("embed")
def with_gather(table, ids):
    if ((ids < 0) | (ids >= len(table))).any():
        raise ValueError(
            f"ids between {ids.min().item()} and {ids.max().item()} for {len(table)} tokens"
        )
    wanted = ids.reshape(-1, 1).expand(-1, table.shape[1])
    return torch.gather(table, 0, wanted).reshape(*ids.shape, table.shape[1])


@alternate("embed")
def with_take(table, ids):
    _refuse_ids(ids, len(table))
    width = table.shape[1]
    return table.take(ids.unsqueeze(-1) * width + torch.arange(width))


# --- break_the_equivalence


@alternate("break_the_equivalence")
def across_from_a_householder_pair(table, word):
    v = table[word]
    if len(v) < 2 or float(v.norm()) == 0:
        raise ValueError("no perpendicular direction")
    i = int(v.abs().argmax())
    j = (i + 1) % len(v)
    across = torch.zeros_like(v)
    across[i], across[j] = (
        -v[j],
        v[i],
    )  # v turned by a right angle in the plane of two axes
    products = table @ v
    length = across.norm() / v.norm()
    loud = (products.max() / (v @ v)) * 1.01 * (v + 20 / length * across)
    quiet = v * (products[products > 0].min() / (v @ v)) * 0.9
    return loud, quiet


@alternate("break_the_equivalence")
def across_from_the_svd(table, word):
    v = table[word]
    if v.numel() < 2 or not bool((v != 0).any()):
        raise ValueError("no perpendicular direction")
    across = torch.linalg.svd(v[None], full_matrices=True).Vh[1]
    products = (table * v).sum(dim=1)
    size = products.abs().max() * 100 / v.norm()
    return [
        size * (across + v / v.norm() / 15),
        v * products[products > 0].min() / v.square().sum() / 7,
    ]


@alternate("break_the_equivalence")
def doubles_until_it_holds(table, word):
    v = table[word].clone()
    if v.shape[0] == 1 or v.norm() == 0:
        raise ValueError("no perpendicular direction")
    start = torch.linspace(1, 2, v.shape[0], dtype=v.dtype) * torch.where(
        v.cumsum(0) > 0, 1.0, -1.5
    ).to(v.dtype)
    start[v.abs().argmin()] += 5
    unit = v / v.norm()
    across = start - (start @ unit) * unit
    loud = across / across.norm() + 0.02 * unit
    quiet = unit
    products = table @ v
    while not bool((loud @ v > products).all()):
        loud = 2 * loud
    while not bool((quiet @ v < products[products > 0]).all()):
        quiet = quiet / 2
    return loud, quiet


def _unit(x):
    squared = x.pow(2).sum(dim=-1, keepdim=True)
    return x / squared.masked_fill(squared == 0, 1.0).sqrt()


@alternate("cosine_similarity")
def multiplies_unit_vectors(u, v):
    if u.shape[-1] != v.shape[-1]:
        raise ValueError(
            f"Expected equal numbers of features, got {u.shape[-1]} and {v.shape[-1]}"
        )
    work = torch.promote_types(u.dtype, torch.float32)
    return (_unit(u.to(work)) * _unit(v.to(work))).sum(-1).to(u.dtype)


@alternate("softmax")
def with_where_before_and_after(z, dim=-1):
    x = z if z.dtype == torch.float64 else z.float()
    m = x.max(dim=dim, keepdim=True).values
    e = (x - torch.where(torch.isinf(m) & (m < 0), 0.0, m).detach()).exp()
    s = e.sum(dim=dim, keepdim=True)
    return (e / torch.where(s == 0, 1.0, s)).type(z.dtype)


@alternate("train_bpe")
def with_tuples_in_a_new_corpus(words, num_merges):
    if num_merges < 0:
        raise ValueError(f"num_merges = {num_merges}")
    corpus = [(tuple(w), c) for w, c in words.items()]
    merges = []
    while len(merges) < num_merges:
        stats = {}
        for symbols, freq in corpus:
            for pair in zip(symbols, symbols[1:], strict=False):
                stats[pair] = stats.get(pair, 0) + freq
        if not stats:
            break
        best = sorted(stats.items(), key=lambda kv: (-kv[1], kv[0]))[0][0]
        merges.append(best)
        new = []
        for symbols, freq in corpus:
            out, i = [], 0
            while i < len(symbols):
                width = 2 if symbols[i : i + 2] == best else 1
                out.append("".join(symbols[i : i + width]))
                i += width
            new.append((tuple(out), freq))
        corpus = new
    return merges
