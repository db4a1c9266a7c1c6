"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math
from collections import Counter

import torch

from autograder.suite import alternate, sample

# ── one_hot, cosine_similarity
# ───────────────────────────────────────────────────────────────────────────────


@sample(
    "one_hot",
    deserves=(
        "one_hot_of_whole_numbers",
        "unknown_ids_become_zeros",
        "counts_negative_ids_from_the_end",
        "indexes_with_the_id_v",
    ),
)
def scatter_of_integers(ids, vocab_size):
    out = torch.zeros(*ids.shape, vocab_size, dtype=torch.int64)
    return out.scatter(-1, ids.unsqueeze(-1), 1)


@sample("one_hot", deserves="counts_negative_ids_from_the_end")
def row_of_the_identity(ids, vocab_size):
    if ids.numel() and ids.max() >= vocab_size:
        raise ValueError(f"{ids.max().item()} >= {vocab_size}")
    return torch.eye(vocab_size)[ids, :]


@sample(
    "cosine_similarity", deserves=("zero_vector_gives_nan", "squares_in_half_precision")
)
def formula_from_the_slide(u, v):
    if u.size(-1) != v.size(-1):
        raise ValueError(f"{u.size(-1)} != {v.size(-1)}")
    return torch.einsum("...d,...d->...", u, v) / (
        torch.sqrt((u**2).sum(-1)) * torch.sqrt((v**2).sum(-1))
    )


@sample("cosine_similarity", deserves=("returns_a_distance", "zero_vector_gives_nan"))
def cosine_distance_of_scipy(u, v):
    if u.shape[-1] != v.shape[-1]:
        raise ValueError(f"u: {u.shape[-1]}, v: {v.shape[-1]}")
    a, b = u.double(), v.double()
    a = a / a.norm(dim=-1, keepdim=True)
    b = b / b.norm(dim=-1, keepdim=True)
    return (1 - (a * b).sum(-1)).to(u.dtype)


# ── nearest, analogy
# ─────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "nearest",
    deserves=(
        "ranks_by_dot_product",
        "returns_fewer_when_too_many_are_asked",
        "leaves_the_excluded_ids_unchecked",
    ),
)
def sorts_the_products(table, query, k, exclude=()):
    s = torch.mv(table, query).tolist()
    order = sorted(range(len(s)), key=lambda i: -s[i])
    return torch.tensor([i for i in order if i not in exclude][:k], dtype=torch.long)


@sample(
    "nearest",
    deserves=(
        "worst_words_first",
        "returns_fewer_when_too_many_are_asked",
        "leaves_the_excluded_ids_unchecked",
    ),
)
def argsort_ascending(table, query, k, exclude=()):
    sims = cosine_similarity(table, query.expand_as(table))
    ranked = torch.argsort(sims)
    keep = torch.tensor([int(i) not in list(exclude) for i in ranked])
    return ranked[keep][:k]


@sample("nearest", deserves="ignores_exclude")
def top_k_of_everything(table, query, k, exclude=()):
    n = table.size(0)
    for e in exclude:
        if e < 0 or e >= n:
            raise ValueError(f"no word {e}")
    if k < 1 or k > n - len(set(exclude)):
        raise ValueError(f"k={k}")
    values, indices = torch.sort(cosine_similarity(table, query), descending=True)
    return indices[:k]


@sample(
    "analogy",
    deserves=(
        "returns_a_word_asked_with",
        "negative_ids_count_from_the_end",
        "leaves_the_three_ids_to_torch",
    ),
)
def nearest_of_all_words(table, a, b, c):
    goal = table[c] + (table[b] - table[a])
    best, best_score = None, -math.inf
    for i, row in enumerate(table):
        score = float(cosine_similarity(row, goal))
        if score > best_score:
            best, best_score = i, score
    return best


# ── softmax, skip_gram
# ───────────────────────────────────────────────────────────────────────────────────────


@sample(
    "softmax",
    deserves=(
        "no_maximum_subtracted",
        "nan_where_all_scores_are_minus_infinity",
        "computes_in_half_precision",
    ),
)
def definition(z, dim=-1):
    return z.exp() / z.exp().sum(dim, keepdim=True)


@sample(
    "softmax",
    deserves=("one_maximum_for_all_rows", "nan_where_all_scores_are_minus_infinity"),
)
def maximum_of_the_tensor(z, dim=-1):
    zz = z.to(torch.float32) if z.dtype == torch.half else z
    e = (zz - torch.max(zz)).exp()
    return torch.div(e, torch.sum(e, dim, True)).to(z.dtype)


@sample("skip_gram_probabilities", deserves="divides_by_the_root_of_d")
def attention_habit(center, context_table):
    if center.numel() != context_table.size(1):
        raise ValueError(f"{center.numel()} and {context_table.size(1)}")
    logits = torch.einsum("vd,d->v", context_table, center)
    logits = logits / math.sqrt(center.numel())
    p = torch.exp(logits - torch.logsumexp(logits, 0))
    return p


@sample(
    "skip_gram_loss",
    deserves=(
        "logarithm_of_a_rounded_probability",
        "trains_on_negative_ids",
        "leaves_the_lengths_of_pairs_to_torch",
        "leaves_the_ids_of_pairs_to_torch",
        "loops_over_the_pairs",
    ),
)
def log_of_the_softmax(center_ids, context_ids, center_table, context_table):
    c = center_table[center_ids]
    s = torch.einsum("bd,vd->bv", c, context_table)
    p = torch.softmax(s, dim=1)
    losses = [-torch.log(p[n, context_ids[n]]) for n in range(len(context_ids))]
    return sum(losses) / len(losses)


@sample("skip_gram_loss", deserves="sums_over_the_pairs")
def total_of_the_batch(center_ids, context_ids, center_table, context_table):
    if len(center_ids) != len(context_ids):
        raise ValueError(f"{len(center_ids)} against {len(context_ids)}")
    if center_table.size(1) != context_table.size(1):
        raise ValueError(f"{center_table.size(1)} against {context_table.size(1)}")
    for ids, size in (
        (center_ids, center_table.size(0)),
        (context_ids, context_table.size(0)),
    ):
        for i in ids.tolist():
            if i < 0 or i >= size:
                raise ValueError(f"id {i}, {size} words")
    wide = torch.promote_types(center_table.dtype, torch.float32)
    s = (center_table[center_ids] @ context_table.mT).to(wide)
    rows = torch.arange(len(center_ids))
    return (s.logsumexp(-1) - s[rows, context_ids]).sum().to(center_table.dtype)


@sample(
    "skip_gram_pairs", deserves=("only_what_comes_after", "takes_a_window_of_nothing")
)
def neighbours_by_zip(sentences, window):
    if window < 0:
        raise ValueError(f"negative window {window}")
    a, b = [], []
    for s in sentences:
        ids = s.tolist()
        for i in range(len(ids)):
            for d in range(1, window + 1):
                if i + d < len(ids):
                    a.append(ids[i])
                    b.append(ids[i + d])
    return torch.tensor(a).long(), torch.tensor(b).long()


@sample("skip_gram_pairs", deserves=("reaches_across_sentences",))
def sliding_over_the_concatenation(sentences, window):
    if window < 1:
        raise ValueError(f"window must be >= 1, not {window}")
    corpus = [word for s in sentences for word in s.tolist()]
    out = [
        (corpus[c], corpus[o])
        for c in range(len(corpus))
        for o in range(c - window, c + window + 1)
        if o != c and 0 <= o < len(corpus)
    ]
    return torch.LongTensor([x for x, _ in out]), torch.LongTensor([y for _, y in out])


@sample(
    "skip_gram_pairs", deserves=("leaves_out_equal_words", "floats_where_nothing_is")
)
def compares_the_words(sentences, window):
    if window < 1:
        raise ValueError(f"bad window: {window}")
    first, second = [], []
    for s in sentences:
        for i, a in enumerate(s):
            for b in s[max(i - window, 0) : i + window + 1]:
                if a != b:
                    first.append(a.item())
                    second.append(b.item())
    return torch.tensor(first), torch.tensor(second)


# ── train_bpe, encode_bpe
# ────────────────────────────────────────────────────────────────────────────────────


@sample("train_bpe", deserves=("ties_go_to_the_first_seen", "negative_means_none"))
def most_common_of_the_counter(words, num_merges):
    corpus = [(list(w), n) for w, n in words.items()]
    learned = []
    for _ in range(num_merges):
        stats = Counter()
        for symbols, n in corpus:
            for i in range(len(symbols) - 1):
                stats[symbols[i], symbols[i + 1]] += n
        if not stats:
            break
        pair = stats.most_common(1)[0][0]
        learned.append(pair)
        for symbols, _n in corpus:
            i = 0
            while i < len(symbols) - 1:
                if (symbols[i], symbols[i + 1]) == pair:
                    symbols[i : i + 2] = ["".join(pair)]
                i += 1
    return learned


@sample("train_bpe", deserves="every_word_counts_once")
def forgets_the_frequencies(words, num_merges):
    if num_merges < 0:
        raise ValueError(f"{num_merges}")
    splits = {w: tuple(w) for w in words}
    result = []
    for _ in range(num_merges):
        freq = {}
        for toks in splits.values():
            for pair in zip(toks, toks[1:]):
                freq[pair] = freq.get(pair, 0) + 1
        if len(freq) == 0:
            return result
        best = sorted(freq.items(), key=lambda item: (-item[1], item[0]))[0][0]
        result.append(best)
        for w, toks in splits.items():
            new, i = [], 0
            while i < len(toks):
                if toks[i : i + 2] == best:
                    new.append(best[0] + best[1])
                    i += 2
                else:
                    new.append(toks[i])
                    i += 1
            splits[w] = tuple(new)
    return result


@sample("encode_bpe", deserves="one_pass_through_the_list")
def applies_the_merges_in_order(word, merges):
    pieces = [c for c in word]
    for left, right in merges:
        i = 0
        while i + 1 < len(pieces):
            if pieces[i] == left and pieces[i + 1] == right:
                pieces = pieces[:i] + [left + right] + pieces[i + 2 :]
            else:
                i += 1
    return pieces


@sample("encode_bpe", deserves="longest_piece_first")
def greedy_dictionary(word, merges):
    vocabulary = set("".join(m) for m in merges)
    i, out = 0, []
    while i < len(word):
        j = len(word)
        while j > i + 1 and word[i:j] not in vocabulary:
            j -= 1
        out.append(word[i:j])
        i = j
    return out


@sample("encode_bpe", deserves="leftmost_pair_first")
def first_pair_from_the_left(word, merges):
    tokens = list(word)
    again = True
    while again:
        again = False
        for i in range(len(tokens) - 1):
            if (tokens[i], tokens[i + 1]) in merges:
                tokens[i] += tokens.pop(i + 1)
                again = True
                break
    return tokens


# ── embed, break_the_equivalence
# ─────────────────────────────────────────────────────────────────────────────


@sample("embed", deserves=("ids_are_clamped_into_the_table", "multiplies_with_one_hot"))
def matrix_product_with_zeros_and_ones(table, ids):
    V = table.size(0)
    selector = (torch.arange(V) == ids.unsqueeze(-1)).type(table.dtype)
    return selector @ table


@sample("break_the_equivalence", deserves="loud_is_a_longer_copy")
def stretched_both_ways(table, word):
    v = table[word]
    if len(v) == 1 or v.norm() == 0:
        raise ValueError(f"word {word} of {len(v)} numbers")
    products = torch.mv(table, v)
    smallest = min(p for p in products.tolist() if p > 0)
    return v * 10 * products.max() / v.dot(v), v * smallest / v.dot(v) * 0.5


# ── right answers
# ────────────────────────────────────────────────────────────────────────────────────────────


@alternate("encode_bpe")
def rank_of_every_neighbour(word, merges):
    order = {m: i for i, m in enumerate(merges)}
    parts = list(word)
    while len(parts) > 1:
        ranks = [order.get((a, b), math.inf) for a, b in zip(parts, parts[1:])]
        low = min(ranks)
        if low == math.inf:
            break
        pair, new, i = merges[low], [], 0
        while i < len(parts):
            if tuple(parts[i : i + 2]) == pair:
                new.append(parts[i] + parts[i + 1])
                i += 2
            else:
                new.append(parts[i])
                i += 1
        parts = new
    return parts


@alternate("one_hot")
def scatter_of_ones(ids, vocab_size):
    if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= vocab_size):
        wrong = int(ids.min()) if int(ids.min()) < 0 else int(ids.max())
        raise ValueError(f"{wrong} is no id below {vocab_size}")
    return torch.zeros(*ids.shape, vocab_size).scatter(-1, ids.unsqueeze(-1), 1.0)
