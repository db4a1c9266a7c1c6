"""Harder inputs of assignment 1: what holds of every call that its docstrings allow."""

import math
from collections import Counter

import torch

from autograder.student_tools.harder_inputs import about, holds, refused
from autograder.student_tools.slow_definitions import dot_product, shares_of

WITHOUT = {}

about("one_hot")
about("cosine_similarity", refuses="u.-1 v.-1")
about("nearest", refuses="table.1 query.0")
about("analogy", except_for="answers")  # with few words none may be left
about("softmax", except_for="batch")  # along the first axis, elements of the batch share
about("skip_gram_probabilities", refuses="center.0 context_table.1")
about("skip_gram_pairs")
about("skip_gram_loss", refuses="center_ids.0 context_ids.0 center_table.1 context_table.1")
about("train_bpe")
about("encode_bpe")
about("embed")
about("break_the_equivalence", except_for="answers")  # the word may be a vector of zeros


@holds("one_hot", "Each row has a single 1, at the id's place, and zeros, in float32.")
def one_place_has_a_one(one_hot, ids, vocab_size):
    rows = one_hot(ids, vocab_size)
    if rows.shape != (*ids.shape, vocab_size) or rows.dtype != torch.float32:
        return False
    return rows.max(dim=-1).indices.equal(ids) and bool((rows.sum(dim=-1) == 1).all())


@holds("one_hot", "An id that is negative, or not below vocab_size, is refused with ValueError.")
def ids_outside_are_refused(one_hot, ids, vocab_size):
    return refused(one_hot, ids - vocab_size, vocab_size) and refused(
        one_hot, ids + vocab_size, vocab_size
    )


@holds("cosine_similarity", "Vectors of length 1 at the angle φ are √(2 − 2 cos φ) apart.")
def cosine_tells_the_distance(cosine_similarity, u, v):
    if u.shape != v.shape or not (u.any(dim=-1).all() and v.any(dim=-1).all()):
        return None
    u, v = (x / x.abs().amax(dim=-1, keepdim=True) for x in (u, v))
    apart = u / u.norm(dim=-1, keepdim=True) - v / v.norm(dim=-1, keepdim=True)
    return 2 - 2 * cosine_similarity(u, v), apart.square().sum(dim=-1)


@holds("cosine_similarity", "With a vector of zeros it is 0.")
def zeros_have_no_angle(cosine_similarity, u, v):
    return cosine_similarity(u, torch.zeros_like(v)), cosine_similarity(u, v) * 0


@holds("cosine_similarity", "However long or short the vectors are, the cosine is the same.")
def length_is_nothing(cosine_similarity, u, v):
    return cosine_similarity(1e-4 * u, 1e3 * v), cosine_similarity(u, v)


@holds("cosine_similarity", "A vector of zeros sends a finite gradient back.")
def zeros_have_a_gradient(cosine_similarity, u, v):
    zeros = torch.zeros_like(u).requires_grad_()
    cosine = cosine_similarity(zeros, v)
    if cosine.requires_grad:
        cosine.sum().backward()
    return zeros.grad is None or bool(zeros.grad.isfinite().all())


def _cosine(left, right):
    lengths = math.hypot(*left) * math.hypot(*right)
    return dot_product(left, right) / lengths if lengths else 0.0


@holds("nearest", "k different ids come back, none of them excluded, the best first.")
def best_words_first(nearest, table, query, k, exclude=()):
    ids = nearest(table, query, k, exclude)
    if ids.dtype != torch.int64 or ids.shape != (k,) or len(set(ids.tolist())) != k:
        return False
    cosines = [_cosine(row, query.tolist()) for row in table.tolist()]
    picked = [cosines[word] for word in ids.tolist()]
    left = [c for word, c in enumerate(cosines) if word not in {*exclude, *ids.tolist()}]
    falls = all(a >= b - 1e-6 for a, b in zip(picked, picked[1:]))
    return (
        falls
        and min(picked) >= max(left, default=-2) - 1e-6
        and not set(ids.tolist()) & set(exclude)
    )


@holds("nearest", "k below 1, k above the words that are left, and an unknown id are refused.")
def impossible_requests_are_refused(nearest, table, query, k, exclude=()):
    left = len(table) - len(set(exclude))
    return (
        refused(nearest, table, query, 0, exclude)
        and refused(nearest, table, query, left + 1, exclude)
        and refused(nearest, table, query, 1, [len(table)])
        and refused(nearest, table, query, 1, [-1])
    )


@holds("analogy", "No other word that may be named is nearer to b − a + c, and it is a Python int.")
def no_word_is_nearer(analogy, table, a, b, c):
    if len({a, b, c}) == len(table):
        return refused(analogy, table, a, b, c)
    word = analogy(table, a, b, c)
    meant = (table[b] - table[a] + table[c]).tolist()
    if type(word) is not int or word in (a, b, c):
        return False
    others = [_cosine(row, meant) for i, row in enumerate(table.tolist()) if i not in (a, b, c)]
    return _cosine(table[word].tolist(), meant) >= max(others) - 1e-6


@holds("analogy", "An id that is not in the table is refused, a negative one too.")
def unknown_ids_are_refused(analogy, table, a, b, c):
    return refused(analogy, table, a, b, len(table)) and refused(analogy, table, -1, b, c)


@holds("softmax", "Shares along dim sum to 1, where any score is above −inf, and to 0 elsewhere.")
def shares_sum_to_one(softmax, z, dim=-1):
    if z.isnan().any():
        return None
    return softmax(z, dim=dim).sum(dim=dim), (z > -torch.inf).any(dim=dim).double()


@holds("softmax", "A score that is ln 3 higher gets three times the share.")
def ratios_of_shares(softmax, z, dim=-1):
    z = z.nan_to_num(neginf=0.0).clamp(-50, 50).movedim(dim, -1)
    other = softmax(torch.stack([z, z + math.log(3)], dim=-1))
    return other[..., 1], 3 * other[..., 0]


@holds("softmax", "The same number added to all scores changes nothing.")
def shifts_change_nothing(softmax, z, dim=-1):
    return softmax(z + 64.0, dim=dim), softmax(z, dim=dim)


@holds("softmax", "NaN among the scores stays visible.")
def nan_stays(softmax, z, dim=-1):
    return bool(softmax(z, dim=dim).isnan().any()) == bool(z.isnan().any())


@holds("softmax", "Where all scores are −inf, shares and gradients are 0.")
def nothing_allowed(softmax, z, dim=-1):
    empty = torch.full_like(z, -torch.inf).requires_grad_()
    shares = softmax(empty, dim=dim)
    if shares.requires_grad:
        shares.sum().backward()
    gradient = torch.zeros_like(z) if empty.grad is None else empty.grad
    return torch.stack([shares, gradient]), torch.zeros(2, *z.shape, dtype=z.dtype)


@holds("skip_gram_probabilities", "The probability of one word, by loops over single numbers.")
def one_probability(skip_gram_probabilities, center, context_table):
    scores = [dot_product(center.tolist(), row) for row in context_table.tolist()]
    return float(skip_gram_probabilities(center, context_table)[-1]), shares_of(scores)[-1]


@holds(
    "skip_gram_pairs",
    "All neighbours within the window, and nobody else, as often as they stand there.",
)
def neighbours_in_the_window(skip_gram_pairs, sentences, window):
    centers, contexts = skip_gram_pairs(sentences, window)
    if centers.dtype != torch.int64 or contexts.dtype != torch.int64:
        return False
    wanted = Counter()
    for sentence in sentences:
        for apart in range(1, min(window, len(sentence)) + 1):
            wanted.update(
                zip(sentence[apart:].tolist(), sentence[: len(sentence) - apart].tolist())
            )
    both_ways = wanted + Counter({(b, a): n for (a, b), n in wanted.items()})
    for pair in wanted:
        both_ways[pair] = wanted[pair] + wanted[pair[::-1]]
    return Counter(zip(centers.tolist(), contexts.tolist())) == +both_ways


@holds("skip_gram_pairs", "Each sentence alone gives its part, in the order of the sentences.")
def sentences_are_apart(skip_gram_pairs, sentences, window):
    centers, contexts = skip_gram_pairs(sentences, window)
    alone = [skip_gram_pairs([sentence], window) for sentence in sentences]
    empty = torch.zeros(0, dtype=torch.int64)
    return (centers, contexts), tuple(
        torch.cat([empty, *part]) for part in list(zip(*alone)) or ((), ())
    )


@holds("skip_gram_pairs", "The first word's neighbours come first, from left to right.")
def first_center_first(skip_gram_pairs, sentences, window):
    for sentence in sentences[:1]:
        ids = torch.arange(len(sentence))
        centers, contexts = skip_gram_pairs([ids], window)
        order = list(zip(centers.tolist(), contexts.tolist()))
        return order == sorted(order)
    return None


@holds("skip_gram_pairs", "A window below 1 is refused.")
def no_window(skip_gram_pairs, sentences, window):
    return refused(skip_gram_pairs, sentences, 0)


@holds("skip_gram_loss", "The loss is the mean of the losses of single pairs.")
def mean_of_pairs(skip_gram_loss, center_ids, context_ids, center_table, context_table):
    alone = [
        skip_gram_loss(center_ids[i : i + 1], context_ids[i : i + 1], center_table, context_table)
        for i in range(len(center_ids))
    ]
    return skip_gram_loss(center_ids, context_ids, center_table, context_table), torch.stack(
        alone
    ).mean()


@holds("skip_gram_loss", "For one pair, the probabilities e^−loss of all context words sum to 1.")
def all_contexts_together(skip_gram_loss, center_ids, context_ids, center_table, context_table):
    losses = [
        skip_gram_loss(center_ids[:1], torch.tensor([word]), center_table, context_table)
        for word in range(len(context_table))
    ]
    return torch.exp(-torch.stack(losses)).sum(), torch.tensor(1.0).double()


@holds("skip_gram_loss", "Two contexts' losses differ by the difference of their dot products.")
def losses_differ_by_scores(skip_gram_loss, center_ids, context_ids, center_table, context_table):
    first, last = (
        skip_gram_loss(center_ids[:1], torch.tensor([word]), center_table, context_table)
        for word in (0, len(context_table) - 1)
    )
    center = center_table[center_ids[0]]
    return first - last, (context_table[-1] - context_table[0]) @ center


@holds("skip_gram_loss", "An id that is not in its table is refused, a negative one too.")
def strange_ids_are_refused(skip_gram_loss, center_ids, context_ids, center_table, context_table):
    far = torch.full_like(center_ids, len(center_table))
    far_context = torch.full_like(context_ids, len(context_table))
    return all(
        refused(skip_gram_loss, centers, contexts, center_table, context_table)
        for centers, contexts in (
            (far, context_ids),
            (center_ids, far_context),
            (far * 0 - 1, context_ids),
            (center_ids, far * 0 - 1),
        )
    )


def _pairs_of(pieces):
    return Counter((left, right) for left, right in zip(pieces, pieces[1:]))


@holds("train_bpe", "The first pair is a most frequent one, and of those the smallest.")
def first_pair(train_bpe, words, num_merges):
    merges = train_bpe(words, num_merges)
    counts = Counter()
    for word, times in words.items():
        counts.update({pair: times * n for pair, n in _pairs_of(list(word)).items()})
    if not counts or not num_merges:
        return merges == []
    most = max(counts.values())
    return merges[:1] == [min(pair for pair, n in counts.items() if n == most)]


@holds("train_bpe", "Fewer merges are the beginning of more; words stand in any order.")
def merges_come_in_turn(train_bpe, words, num_merges):
    merges = train_bpe(words, num_merges)
    other_order = dict(reversed(list(words.items())))
    return (
        len(merges) <= num_merges
        and len(set(merges)) == len(merges)
        and train_bpe(words, num_merges // 2) == merges[: num_merges // 2]
        and train_bpe(other_order, num_merges) == merges
    )


@holds(
    "train_bpe", "Words that occur twice as often are words that stand there twice; all get joined."
)
def counts_count(train_bpe, words, num_merges):
    longest = sum(max(len(word) - 1, 0) for word in words)
    merges = train_bpe(words, longest)
    joined = {left + right for left, right in merges}
    whole_words = all(len(word) < 2 or word in joined for word in words)
    return whole_words and train_bpe({w: 2 * n for w, n in words.items()}, longest) == merges


@holds("train_bpe", "A pair joins in a word before it can be counted again: aaaa becomes aa aa.")
def equal_letters(train_bpe, words, num_merges):
    merges = train_bpe({"aaaa": 1}, 2)
    return merges == [("a", "a"), ("aa", "aa")] and train_bpe({"aaa": 2}, 3) == [
        ("a", "a"),
        ("aa", "a"),
    ]


@holds("train_bpe", "Of equally frequent pairs the smallest tuple comes first, not the smallest text.")
def tuples_decide(train_bpe, words, num_merges):
    merges = train_bpe({"ab": 5, "abd": 5, "cd": 4, "ce": 4, "aab": 0 + 1}, 1)
    return merges == [("a", "b")] and train_bpe({"ba": 1, "ab": 1}, 2) == [("a", "b"), ("b", "a")]


@holds("train_bpe", "A negative number of merges is refused.")
def negative_merges(train_bpe, words, num_merges):
    return refused(train_bpe, words, -1)


@holds("encode_bpe", "Glued together the tokens give the word, and each is a letter or was joined.")
def tokens_give_the_word(encode_bpe, word, merges):
    tokens = encode_bpe(word, merges)
    known = {left + right for left, right in merges}
    return "".join(tokens) == word and all(len(t) == 1 or t in known for t in tokens)


@holds("encode_bpe", "No two neighbours are a pair of the list.")
def nothing_is_left_to_join(encode_bpe, word, merges):
    return not set(_pairs_of(encode_bpe(word, merges))) & set(merges)


@holds("encode_bpe", "With the first pair alone, it is joined from left to right, everywhere.")
def first_pair_alone(encode_bpe, word, merges):
    for left, right in merges[:1]:
        if len(left + right) != 2:
            return None
        tokens = encode_bpe(word, merges[:1])
        return tokens.count(left + right) == word.count(left + right)
    return encode_bpe(word, []) == list(word)


@holds(
    "encode_bpe",
    "A pair further down waits for those above it: of x y z with (y, z) first, x is left.",
)
def ranks_decide(encode_bpe, word, merges):
    return encode_bpe("abc", [("b", "c"), ("a", "b")]) == ["a", "bc"]


@holds("encode_bpe", "A pair that becomes possible later is joined then, whatever its place in the list.")
def later_pairs_come_back(encode_bpe, word, merges):
    return encode_bpe("abcabc", [("abc", "abc"), ("b", "c"), ("a", "bc")]) == ["abcabc"]


@holds("encode_bpe", "The list of merges stays as it is, and letters nobody knows come through.")
def strange_letters(encode_bpe, word, merges):
    return encode_bpe("".join(chr(9000 + i) for i in range(len(word))), merges) == [
        chr(9000 + i) for i in range(len(word))
    ]


@holds("embed", "Each place has the row of its id.")
def rows_of_the_table(embed, table, ids):
    rows = embed(table, ids)
    if rows.shape != (*ids.shape, table.shape[1]):
        return False
    flat = zip(rows.reshape(-1, table.shape[1]), ids.reshape(-1).tolist())
    return all(torch.equal(row, table[word]) for row, word in flat)


@holds("embed", "An id that is negative or not below V is refused.")
def ids_outside_the_table(embed, table, ids):
    return refused(embed, table, ids - len(table)) and refused(embed, table, ids + len(table))


@holds("break_the_equivalence", "Products and cosines are those of the docstring.")
def product_without_angle(break_the_equivalence, table, word):
    row = table[word].tolist()
    if not any(row):
        return refused(break_the_equivalence, table, word)
    loud, quiet = (part.tolist() for part in break_the_equivalence(table, word))
    products = [dot_product(other, row) for other in table.tolist()]
    is_loud = dot_product(loud, row) > max(products) and _cosine(loud, row) <= 0.1 + 1e-9
    positive = [product for product in products if product > 0]
    is_quiet = 0 < dot_product(quiet, row) < min(positive)
    return is_loud and is_quiet and _cosine(quiet, row) >= 0.999 - 1e-9


@holds("break_the_equivalence", "Vectors of one number, and a word of zeros, are refused.")
def on_a_line(break_the_equivalence, table, word):
    return refused(break_the_equivalence, table[:, :1], word) and refused(
        break_the_equivalence, table * 0, word
    )
