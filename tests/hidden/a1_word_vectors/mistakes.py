"""Wrong answers that people give, each with one wrong idea, and what to tell them."""

import torch

from autograder.suite import mistake

# --- helpers: the checks of the answer key, and pieces that several mistakes share


def _check_ids(ids, size):
    outside = ids[(ids < 0) | (ids >= size)]
    if len(outside) > 0:
        raise ValueError(f"id {int(outside[0])} is not one of {size}")


def _check_features(u, v):
    if u.shape[-1] != v.shape[-1]:
        raise ValueError(f"u has {u.shape[-1]} features and v has {v.shape[-1]}")


def _wide(x):
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _divide(numerator, denominator):
    """0 where the denominator is 0."""
    return numerator / torch.where(denominator == 0, torch.ones_like(denominator), denominator)


def _right_cosine(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    lengths = torch.linalg.vector_norm(a, dim=-1) * torch.linalg.vector_norm(b, dim=-1)
    return _divide((a * b).sum(dim=-1), lengths).to(u.dtype)


def _check_nearest(table, query, k, exclude):
    _check_features(table, query)
    for i in exclude:
        if not 0 <= i < table.shape[0]:
            raise ValueError(f"id {i} is not in a table of {table.shape[0]} words")
    left = table.shape[0] - len(set(exclude))
    if not 1 <= k <= left:
        raise ValueError(f"k = {k} words are asked for, and {left} are left")


def _best(scores, k, exclude, worst=-math.inf):
    scores = scores.clone()
    scores[list(exclude)] = worst
    return scores.topk(k).indices


def _check_analogy(table, a, b, c):
    for i in (a, b, c):
        if not 0 <= i < table.shape[0]:
            raise ValueError(f"id {i} is not in a table of {table.shape[0]} words")
    if len({a, b, c}) >= table.shape[0]:
        raise ValueError("no word is left")


def _check_pairs(center_ids, context_ids, center_table, context_table):
    if center_ids.shape != context_ids.shape:
        raise ValueError(f"{len(center_ids)} and {len(context_ids)} words make no pairs")
    _check_features(center_table, context_table)
    _check_ids(center_ids, center_table.shape[0])
    _check_ids(context_ids, context_table.shape[0])


def _surprise(scores, right):
    """[B], −log of the softmax of scores [B, W] at the columns right [B]."""
    return torch.logsumexp(scores, dim=1) - scores.gather(1, right[:, None])[:, 0]


def _join(tokens, pair):
    joined = []
    for token in tokens:
        if joined and (joined[-1], token) == pair:
            joined[-1] += token
        else:
            joined.append(token)
    return joined


def _join_text(tokens, pair):
    """The classic slip: glue the tokens with spaces and replace text."""
    return " ".join(tokens).replace(" ".join(pair), "".join(pair)).split(" ")


def _count(tokens_of, words):
    counts = Counter()
    for word, tokens in tokens_of.items():
        for pair in pairwise(tokens):
            counts[pair] += words[word]
    return counts


def _smallest_of_the_most_frequent(counts):
    most = max(counts.values())
    return min(pair for pair, count in counts.items() if count == most)


def _train(words, num_merges, count=_count, choose=_smallest_of_the_most_frequent, join=_join, cut=list, least=1):
    if num_merges < 0:
        raise ValueError(f"num_merges = {num_merges} is negative")
    tokens_of = {word: cut(word) for word in words}
    merges = []
    while len(merges) < num_merges:
        counts = count(tokens_of, words)
        if not counts or max(counts.values()) < least:
            break
        pair = choose(counts)
        merges.append(pair)
        tokens_of = {word: join(tokens, pair) for word, tokens in tokens_of.items()}
    return merges


def _encode(word, merges, choose=min, join=_join):
    rank = {pair: place for place, pair in enumerate(merges)}
    tokens = list(word)
    while known := [pair for pair in pairwise(tokens) if pair in rank]:
        tokens = join(tokens, choose(known, key=rank.get))
    return tokens


def _evidence(table, word):
    """A right answer in pieces: v, its direction, a direction across, and the dot products."""
    v = table[word]
    if v.shape[0] < 2 or not v.any():
        raise ValueError("no direction is perpendicular to this word")
    along = v / v.norm()
    across = torch.zeros_like(v)
    across[v.abs().argmin()] = 1.0
    across = across - (across @ along) * along
    return v, along, across / across.norm(), table @ v


def _loud(v, along, across, dots):
    return 2 * dots.max() / (0.05 * v.norm()) * (0.05 * along + across)


def _quiet(v, dots):
    return v * dots[dots > 0].min() / (2 * (v @ v))


# --- one_hot


@mistake(
    "one_hot", hint="Ask for the dtype of your result: 0 and 1 as whole numbers cannot be multiplied with weights."
)
def one_hot_of_whole_numbers(ids, vocab_size):
    _check_ids(ids, vocab_size)
    return (ids[..., None] == torch.arange(vocab_size)).long()


@mistake(
    "one_hot", hint="float64 is not what torch makes its weights of: which dtype does torch.zeros give you unasked?"
)
def one_hot_in_double(ids, vocab_size):
    _check_ids(ids, vocab_size)
    return (ids[..., None] == torch.arange(vocab_size)).double()


@mistake(
    "one_hot", hint="The width is vocab_size, whichever words happen to occur. Try ids that never use the last word."
)
def vocabulary_ends_at_the_largest_id(ids, vocab_size):
    _check_ids(ids, vocab_size)
    return (ids[..., None] == torch.arange(int(ids.max()) + 1)).float()


@mistake("one_hot", hint="Ids count from 0: word 0 has the first column.", keeps=0.5)
def columns_count_from_one(ids, vocab_size):
    _check_ids(ids, vocab_size)
    return (ids[..., None] == torch.arange(1, vocab_size + 1)).float()


@mistake("one_hot", hint="Each id becomes a row, so the vocabulary is the last dimension of the result.")
def vocabulary_comes_first(ids, vocab_size):
    _check_ids(ids, vocab_size)
    return (torch.arange(vocab_size).view(-1, *[1] * ids.dim()) == ids).float()


@mistake("one_hot", hint="A batch of sentences has ids [B, N]. What happens to the dimensions in front?")
def flattens_the_ids(ids, vocab_size):
    _check_ids(ids, vocab_size)
    return (ids.reshape(-1, 1) == torch.arange(vocab_size)).float()


@mistake("one_hot", hint="Indexing an identity matrix with −1 gives its last row: a wrong id becomes the last word.")
def counts_negative_ids_from_the_end(ids, vocab_size):
    if len(ids[ids >= vocab_size]) > 0:
        raise ValueError(f"id {int(ids.max())} is not in a vocabulary of {vocab_size} words")
    return torch.eye(vocab_size)[ids]


@mistake("one_hot", hint="With V words the ids end at V − 1. Is the id V itself refused?")
def lets_the_id_v_through(ids, vocab_size):
    outside = ids[(ids < 0) | (ids > vocab_size)]
    if len(outside) > 0:
        raise ValueError(f"id {int(outside[0])} is not in a vocabulary of {vocab_size} words")
    return (ids[..., None] == torch.arange(vocab_size)).float()


@mistake("one_hot", hint="The row of an unknown id is all zeros in your answer. Should that pass unnoticed?")
def unknown_ids_become_zeros(ids, vocab_size):
    return (ids[..., None] == torch.arange(vocab_size)).float()


# --- cosine_similarity


@mistake("cosine_similarity", hint="Multiply u by 3: your result triples. What has to be divided out?")
def plain_dot_product(u, v):
    _check_features(u, v)
    return (_wide(u) * _wide(v)).sum(dim=-1).to(u.dtype)


@mistake("cosine_similarity", keeps=0.5, hint="Stretch v and see: your result changes. Both vectors have a length.")
def divides_by_one_length_only(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    length = torch.linalg.vector_norm(a, dim=-1)
    return (_divide((a * b).sum(dim=-1), length) * (b * b).sum(dim=-1).ne(0)).to(u.dtype)


@mistake("cosine_similarity", keeps=0.5, hint="A length is the root of the sum of squares. Is the root missing?")
def divides_by_squared_lengths(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    return _divide((a * b).sum(dim=-1), (a * a).sum(dim=-1) * (b * b).sum(dim=-1)).to(u.dtype)


@mistake(
    "cosine_similarity",
    keeps=0.5,
    hint="Each word, each row of the table, has one length. Which dimension do you sum over to get it?",
)
def normalizes_along_the_vocabulary(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    a = _divide(a, torch.linalg.vector_norm(a, dim=0, keepdim=True)) if a.dim() > 1 else a
    b = _divide(b, torch.linalg.vector_norm(b, dim=0, keepdim=True)) if b.dim() > 1 else b
    return (a * b).sum(dim=-1).to(u.dtype)


@mistake("cosine_similarity", hint="Give it a zero vector: 0/0 is NaN, and the course wants 0 there.")
def zero_vector_gives_nan(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    lengths = torch.linalg.vector_norm(a, dim=-1) * torch.linalg.vector_norm(b, dim=-1)
    return ((a * b).sum(dim=-1) / lengths).to(u.dtype)


@mistake(
    "cosine_similarity",
    hint="Replacing NaN in the result repairs the value and not the gradient. Keep 0/0 from being computed.",
)
def repairs_nan_afterwards(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    lengths = torch.linalg.vector_norm(a, dim=-1) * torch.linalg.vector_norm(b, dim=-1)
    return torch.nan_to_num((a * b).sum(dim=-1) / lengths, nan=0.0).to(u.dtype)


@mistake(
    "cosine_similarity",
    hint="The small number in your denominator outweighs the lengths of short vectors. Try vectors of size 1e-5.",
)
def adds_a_small_number_to_the_lengths(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    lengths = torch.linalg.vector_norm(a, dim=-1) * torch.linalg.vector_norm(b, dim=-1)
    return ((a * b).sum(dim=-1) / (lengths + 1e-8)).to(u.dtype)


@mistake(
    "cosine_similarity",
    hint="A lower bound for the lengths changes every vector that is shorter. Only the zero vector is special.",
)
def lengths_have_a_lower_bound(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    lengths = torch.linalg.vector_norm(a, dim=-1) * torch.linalg.vector_norm(b, dim=-1)
    return ((a * b).sum(dim=-1) / lengths.clamp(min=1e-8)).to(u.dtype)


@mistake("cosine_similarity", keeps=0.5, hint="Opposite vectors should give −1. Where does your sign go?")
def sign_is_lost(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    lengths = torch.linalg.vector_norm(a, dim=-1) * torch.linalg.vector_norm(b, dim=-1)
    return _divide((a * b).sum(dim=-1), lengths).abs().to(u.dtype)


@mistake(
    "cosine_similarity",
    keeps=0.5,
    hint="A larger angle must give a smaller number, +1 for equal directions: this is the distance, 1 − cos.",
)
def returns_a_distance(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    lengths = torch.linalg.vector_norm(a, dim=-1) * torch.linalg.vector_norm(b, dim=-1)
    return (1 - _divide((a * b).sum(dim=-1), lengths)).to(u.dtype)


@mistake(
    "cosine_similarity",
    hint="float16 ends at 65504, which a square reaches at 256. Where should the squares be computed?",
)
def squares_in_half_precision(u, v):
    _check_features(u, v)
    lengths = (u * u).sum(dim=-1).sqrt() * (v * v).sum(dim=-1).sqrt()
    if not (u.requires_grad or v.requires_grad):
        return _divide((u * v).sum(dim=-1), lengths)
    lengths = torch.linalg.vector_norm(u, dim=-1) * torch.linalg.vector_norm(v, dim=-1)
    return _divide((u * v).sum(dim=-1), lengths)


@mistake("cosine_similarity", hint="float16 came in. What dtype goes out?")
def cosine_stays_wide(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    lengths = torch.linalg.vector_norm(a, dim=-1) * torch.linalg.vector_norm(b, dim=-1)
    return _divide((a * b).sum(dim=-1), lengths)


@mistake("cosine_similarity", hint="After your call the caller's vectors have length 1: `/=` writes into them.")
def normalizes_in_place(u, v):
    _check_features(u, v)
    if u.requires_grad or v.requires_grad:
        return _right_cosine(u, v)
    dtype = u.dtype
    if dtype == torch.float16:
        u, v = u.float(), v.float()
    u /= torch.where(u.any(dim=-1, keepdim=True), torch.linalg.vector_norm(u, dim=-1, keepdim=True), 1)
    v /= torch.where(v.any(dim=-1, keepdim=True), torch.linalg.vector_norm(v, dim=-1, keepdim=True), 1)
    return (u * v).sum(dim=-1).to(dtype)


@mistake(
    "cosine_similarity",
    keeps=0.5,
    hint="`@` on two matrices compares every row with every row. Here each vector meets its partner.",
)
def compares_all_rows_with_all_rows(u, v):
    _check_features(u, v)
    a, b = _wide(u), _wide(v)
    a = _divide(a, torch.linalg.vector_norm(a, dim=-1, keepdim=True))
    b = _divide(b, torch.linalg.vector_norm(b, dim=-1, keepdim=True))
    return (a @ (b.transpose(-1, -2) if b.dim() > 1 else b)).to(u.dtype)


@mistake(
    "cosine_similarity", hint="Detached values carry no gradient: nothing would ever learn through this similarity."
)
def cosine_without_gradient(u, v):
    return _right_cosine(u.detach(), v.detach()) + 0 * (u.sum() + v.sum())


# --- nearest


@mistake("nearest", hint="A long row has a large dot product in nearly every direction. What should be compared?")
def ranks_by_dot_product(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    return _best(table @ query, k, exclude)


@mistake(
    "nearest",
    hint="The distance between the tips punishes long and short vectors. The angle does not: use your cosine.",
)
def ranks_by_distance(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    return _best(-(table - query).norm(dim=1), k, exclude)


@mistake(
    "nearest",
    keeps=0.5,
    hint="The word at the front of your answer is the one that points away most. Which end is the best?",
)
def worst_words_first(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    return _best(-cosine_similarity(table, query), k, exclude)


@mistake("nearest", hint="The right words, from the worst to the best. The nearest should come first.", keeps=0.5)
def best_word_last(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    return _best(cosine_similarity(table, query), k, exclude).flip(0)


@mistake("nearest", keeps=0.5, hint="The right words, but sorted by their ids. The nearest should come first.")
def sorted_by_id(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    return _best(cosine_similarity(table, query), k, exclude).sort().values


@mistake("nearest", hint="The words to leave out are still in your answer: is `exclude` used at all?")
def ignores_exclude(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    return cosine_similarity(table, query).topk(k).indices


@mistake("nearest", hint="After rows are deleted all later rows have moved up. Your ids belong to the shorter table.")
def ids_of_the_shortened_table(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    keep = [i for i in range(table.shape[0]) if i not in set(exclude)]
    return cosine_similarity(table[keep], query).topk(k).indices


@mistake("nearest", hint="A score of 0 for excluded words beats every word with a negative similarity.")
def excluded_words_get_zero(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    return _best(cosine_similarity(table, query), k, exclude, worst=0.0)


@mistake("nearest", hint="First the best k, then the exclusion: now fewer than k are left.")
def excludes_after_taking_the_best(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    best = cosine_similarity(table, query).topk(k).indices
    return torch.tensor([i for i in best.tolist() if i not in set(exclude)], dtype=torch.int64)


@mistake("nearest", hint="These are the similarities. The question asks for the ids of the words.")
def returns_the_similarities(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    scores = cosine_similarity(table, query)
    return scores[_best(scores, k, exclude)]


@mistake("nearest", hint="int32 ids: torch's own indices are int64, and so should these be.")
def ids_in_int32(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    return _best(cosine_similarity(table, query), k, exclude).int()


@mistake("nearest", hint="You zeroed rows of the caller's table to leave them out. They are gone for the next call.")
def erases_the_excluded_rows(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    scores = cosine_similarity(table, query)
    table[list(exclude)] = 0.0
    return _best(scores, k, exclude)


@mistake("nearest", hint="One call for each word: cosine_similarity takes the whole table at once.")
def loops_over_the_vocabulary(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    return _best(torch.stack([cosine_similarity(row, query) for row in table]), k, exclude)


@mistake("nearest", hint="How many words are left after the excluded ones? Compare k with that number, not with V.")
def forgets_the_excluded_when_counting(table, query, k, exclude=()):
    _check_nearest(table, query, min(k, table.shape[0] - len(set(exclude))) if k <= table.shape[0] else k, exclude)
    return _best(cosine_similarity(table, query), k, exclude)


@mistake(
    "nearest", hint="When fewer than k words are left you return fewer without a word. The contract says ValueError."
)
def returns_fewer_when_too_many_are_asked(table, query, k, exclude=()):
    k = min(k, table.shape[0] - len(set(exclude)))
    _check_nearest(table, query, k, exclude)
    return _best(cosine_similarity(table, query), k, exclude)


@mistake("nearest", hint="An id may occur twice in exclude. Then it leaves one word less, not two.")
def counts_a_repeated_exclusion_twice(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    scores = cosine_similarity(table, query)
    keep = (-scores).argsort().tolist()
    for i in exclude:
        keep.remove(i) if i in keep else keep.pop(0)
    return torch.tensor(keep[:k])


@mistake("nearest", hint="The best k are asked for: also when k is not what it is in the example.")
def always_returns_four(table, query, k, exclude=()):
    _check_nearest(table, query, k, exclude)
    return _best(cosine_similarity(table, query), min(4, table.shape[0] - len(set(exclude))), exclude)


@mistake("nearest", hint="exclude=(−1,) removes the last word in your answer. Is −1 an id of the table?")
def excludes_from_the_end(table, query, k, exclude=()):
    _check_nearest(table, query, k, tuple(i % table.shape[0] if i < 0 else i for i in exclude))
    return _best(cosine_similarity(table, query), k, exclude)


# --- analogy


@mistake(
    "analogy",
    hint="Check the target by hand with a = (1, 0), b = (5, 1), c = (1, 1): which word has the minus?",
    keeps=0.5,
)
def exchanges_a_and_b(table, a, b, c):
    _check_analogy(table, a, b, c)
    return int(nearest(table, table[a] - table[b] + table[c], 1, exclude=(a, b, c))[0])


@mistake("analogy", keeps=0.5, hint="king − man + woman: the step from a to b is added to c, not c taken away from it.")
def subtracts_c(table, a, b, c):
    _check_analogy(table, a, b, c)
    return int(nearest(table, table[b] + table[a] - table[c], 1, exclude=(a, b, c))[0])


@mistake("analogy", hint="All three words have a plus in your target. A step is a difference.")
def adds_all_three(table, a, b, c):
    _check_analogy(table, a, b, c)
    return int(nearest(table, table[b] + table[a] + table[c], 1, exclude=(a, b, c))[0])


@mistake(
    "analogy", hint="The nearest word to the target is one of those you asked with, so you got your own question back."
)
def returns_a_word_asked_with(table, a, b, c):
    _check_analogy(table, a, b, c)
    return int(nearest(table, table[b] - table[a] + table[c], 1)[0])


@mistake("analogy", hint="Two of the three words are left out. Can the third be the answer?")
def leaves_out_only_b_and_c(table, a, b, c):
    _check_analogy(table, a, b, c)
    return int(nearest(table, table[b] - table[a] + table[c], 1, exclude=(b, c))[0])


@mistake("analogy", hint="Only c is left out. Where the step is large, the target lies near b.")
def leaves_out_only_c(table, a, b, c):
    _check_analogy(table, a, b, c)
    return int(nearest(table, table[b] - table[a] + table[c], 1, exclude=(c,))[0])


@mistake("analogy", hint="Nearest by cosine: you measure the distance to the target instead.")
def analogy_by_distance(table, a, b, c):
    _check_analogy(table, a, b, c)
    return int(_best(-(table - (table[b] - table[a] + table[c])).norm(dim=1), 1, (a, b, c))[0])


@mistake("analogy", hint="With the dot product the longest word wins many analogies. Nearest means by cosine.")
def analogy_by_dot_product(table, a, b, c):
    _check_analogy(table, a, b, c)
    return int(_best(table @ (table[b] - table[a] + table[c]), 1, (a, b, c))[0])


@mistake(
    "analogy", hint="You made all rows equally long before the arithmetic. The contract works on the rows as they are."
)
def normalizes_the_rows_first(table, a, b, c):
    _check_analogy(table, a, b, c)
    unit = _divide(table, table.norm(dim=1, keepdim=True))
    return int(nearest(table, unit[b] - unit[a] + unit[c], 1, exclude=(a, b, c))[0])


@mistake("analogy", keeps=0.5, hint="The answer is an id, a Python int. You return a tensor.")
def returns_a_tensor(table, a, b, c):
    _check_analogy(table, a, b, c)
    return nearest(table, table[b] - table[a] + table[c], 1, exclude=(a, b, c))[0]


@mistake("analogy", hint="`+=` on a row of the table writes into the table. Call it twice: is the answer the same?")
def moves_the_word_itself(table, a, b, c):
    _check_analogy(table, a, b, c)
    target = table[b]
    target += table[c] - table[a]
    return int(nearest(table, target, 1, exclude=(a, b, c))[0])


@mistake("analogy", hint="table[−1] is the last row, and no error. Check the three ids before you use them.")
def negative_ids_count_from_the_end(table, a, b, c):
    a, b, c = (i + table.shape[0] if i < 0 else i for i in (a, b, c))
    _check_analogy(table, a, b, c)
    return int(nearest(table, table[b] - table[a] + table[c], 1, exclude=(a, b, c))[0])


# --- softmax


def _shares(powers, dim):
    return _divide(powers, powers.sum(dim=dim, keepdim=True))


def _safe_top(wide, dim):
    top = wide.amax(dim=dim, keepdim=True)
    return torch.where(top == -math.inf, torch.zeros_like(top), top)


def _right_softmax(z, dim):
    wide = _wide(z)
    return _shares(torch.exp(wide - _safe_top(wide, dim)), dim).to(z.dtype)


@mistake(
    "softmax",
    hint="Try scores of 1000: exp gives inf, and inf/inf is NaN. What may be subtracted from all scores "
    "without any change?",
)
def no_maximum_subtracted(z, dim=-1):
    powers = torch.exp(_wide(z))
    return (powers / powers.sum(dim=dim, keepdim=True)).to(z.dtype)


@mistake("softmax", hint="One maximum for everything: a row far below it underflows to 0/0. Each row needs its own.")
def one_maximum_for_all_rows(z, dim=-1):
    wide = _wide(z)
    powers = torch.exp(wide - wide.max())
    return (powers / powers.sum(dim=dim, keepdim=True)).to(z.dtype)


@mistake(
    "softmax",
    hint="Scores of 1000 no longer overflow, but rows around −5000 do not share 1. Clipping changes scores, "
    "a shift does not.",
)
def clips_the_scores(z, dim=-1):
    wide = _wide(z)
    return _shares(torch.exp(wide.clamp(max=80.0)), dim).to(z.dtype)


@mistake("softmax", hint="The argument dim is not used: look at the sums along each dimension of a [3, 5, 7].")
def always_the_last_dimension(z, dim=-1):
    wide = _wide(z)
    return _shares(torch.exp(wide - _safe_top(wide, -1)), -1).to(z.dtype)


@mistake("softmax", keeps=0.5, hint="Without an argument the last dimension should sum to 1. In yours the first does.")
def always_the_first_dimension(z, dim=-1):
    wide = _wide(z)
    return _shares(torch.exp(wide - _safe_top(wide, 0)), 0).to(z.dtype)


@mistake(
    "softmax",
    hint="The slides write dim=1, which is the last dimension of a matrix. Of three dimensions it is the middle one.",
)
def dim_one_unless_told_otherwise(z, dim=1):
    dim = dim if z.dim() > 1 else 0
    wide = _wide(z)
    return _shares(torch.exp(wide - _safe_top(wide, dim)), dim).to(z.dtype)


@mistake("softmax", hint="Everything together sums to 1 in your answer. Each row should.")
def one_distribution_for_everything(z, dim=-1):
    wide = _wide(z)
    powers = torch.exp(wide - _safe_top(wide, dim))
    return _divide(powers, powers.sum()).to(z.dtype)


@mistake(
    "softmax",
    keeps=0.5,
    hint="Without keepdim the sums of the rows line up with the columns. On a square matrix nothing warns you.",
)
def sums_line_up_with_the_wrong_dimension(z, dim=-1):
    wide = _wide(z)
    powers = torch.exp(wide - _safe_top(wide, dim))
    return _divide(powers, powers.sum(dim=dim)).to(z.dtype)


@mistake("softmax", hint="The exponentials are right, and nothing divides them by their sum.")
def forgets_to_divide(z, dim=-1):
    wide = _wide(z)
    return torch.exp(wide - _safe_top(wide, dim)).to(z.dtype)


@mistake("softmax", hint="Shares of the scores instead of their exponentials: what becomes of negative scores?")
def divides_the_scores_themselves(z, dim=-1):
    wide = _wide(z)
    return (wide / wide.sum(dim=dim, keepdim=True)).to(z.dtype)


@mistake("softmax", hint="Your base is 2. The formula says e.", keeps=0.5)
def base_two(z, dim=-1):
    wide = _wide(z)
    return _shares(torch.exp2(wide - _safe_top(wide, dim)), dim).to(z.dtype)


@mistake("softmax", hint="A row of −inf: its maximum is −inf, and −inf − (−inf) is NaN. The course wants zeros there.")
def nan_where_all_scores_are_minus_infinity(z, dim=-1):
    wide = _wide(z)
    powers = torch.exp(wide - wide.amax(dim=dim, keepdim=True))
    return (powers / powers.sum(dim=dim, keepdim=True)).to(z.dtype)


@mistake(
    "softmax", hint="nan_to_num hides the NaN of a real bug along with yours. Decide the row of −inf where it arises."
)
def hides_every_nan(z, dim=-1):
    return torch.nan_to_num(_right_softmax(z, dim), nan=0.0)


@mistake(
    "softmax",
    hint="The values are right, the gradient past a row of −inf is NaN: torch.where on the result is too late.",
)
def chooses_zero_too_late(z, dim=-1):
    wide = _wide(z)
    top = wide.amax(dim=dim, keepdim=True)
    powers = torch.exp(wide - top)
    weights = powers / powers.sum(dim=dim, keepdim=True)
    return torch.where(top == -math.inf, torch.zeros_like(weights), weights).to(z.dtype)


@mistake(
    "softmax",
    hint="−inf was replaced by a number in your answer. Other scores can be lower than that, and then the "
    "impossible word wins.",
)
def minus_infinity_is_a_large_number(z, dim=-1):
    empty = (z == -math.inf).all(dim=dim, keepdim=True)
    wide = _wide(z).masked_fill(_wide(z) == -math.inf, -2.0)
    return torch.where(empty, 0.0, _shares(torch.exp(wide - _safe_top(wide, dim)), dim)).to(z.dtype)


@mistake("softmax", hint="A row of −inf has nothing to share. In your answer it shares equally.")
def a_row_of_minus_infinity_is_uniform(z, dim=-1):
    wide = _wide(z)
    empty = (wide == -math.inf).all(dim=dim, keepdim=True)
    wide = torch.where(empty, torch.zeros_like(wide), wide)
    return _shares(torch.exp(wide - _safe_top(wide, dim)), dim).to(z.dtype)


@mistake("softmax", hint="float16 came in. What dtype goes out?")
def softmax_stays_wide(z, dim=-1):
    wide = _wide(z)
    return _shares(torch.exp(wide - _safe_top(wide, dim)), dim)


@mistake(
    "softmax",
    hint="In half precision the exponentials have three digits and long sums lose their small terms. "
    "Compute in float32.",
)
def computes_in_half_precision(z, dim=-1):
    return _shares(torch.exp(z - _safe_top(z, dim)), dim)


@mistake("softmax", hint="`z -= …` writes into the caller's scores.")
def shifts_the_scores_in_place(z, dim=-1):
    if z.requires_grad:
        return _right_softmax(z, dim)
    z -= _safe_top(z, dim)
    return _right_softmax(z, dim)


@mistake("softmax", hint="The result has no gradient: something was detached on the way.")
def softmax_without_gradient(z, dim=-1):
    return _right_softmax(z.detach(), dim) + 0 * torch.where(z == -math.inf, torch.zeros_like(z), z)


# --- skip_gram_probabilities


def _check_center(center, table):
    if table.shape[-1] != center.shape[-1]:
        raise ValueError(f"center has {center.shape[-1]} features and the table {table.shape[-1]}")


@mistake(
    "skip_gram_probabilities",
    hint="Vectors of length 30 have scores near 900. Your softmax of section 5 knows what to do with them.",
)
def skip_gram_overflows(center, context_table):
    _check_center(center, context_table)
    powers = torch.exp(context_table @ center)
    return powers / powers.sum()


@mistake(
    "skip_gram_probabilities",
    keeps=0.5,
    hint="The score is the dot product as it stands. With cosines every word stays nearly equally probable.",
)
def scores_are_cosines(center, context_table):
    _check_center(center, context_table)
    return softmax(cosine_similarity(context_table, center))


@mistake(
    "skip_gram_probabilities",
    hint="The scaled dot product belongs to attention. Skip-gram takes the dot product as it is.",
    keeps=0.5,
)
def divides_by_the_root_of_d(center, context_table):
    _check_center(center, context_table)
    return softmax(context_table @ center / center.shape[-1] ** 0.5)


@mistake("skip_gram_probabilities", hint="These are the scores. What turns scores into probabilities?")
def returns_the_scores(center, context_table):
    _check_center(center, context_table)
    return context_table @ center


@mistake(
    "skip_gram_probabilities", hint="A sigmoid looks at each word alone; the probabilities of all words should share 1."
)
def a_sigmoid_for_each_word(center, context_table):
    _check_center(center, context_table)
    return torch.sigmoid(context_table @ center)


@mistake(
    "skip_gram_probabilities",
    hint="Your distribution runs over the features. Take a table with V ≠ d and look at the shape.",
)
def shares_over_the_features(center, context_table):
    _check_center(center, context_table)
    return softmax((context_table * center).sum(dim=0))


@mistake(
    "skip_gram_probabilities",
    keeps=0.5,
    hint="Your scores measure distances between vectors. The formula has dot products.",
)
def scores_are_distances(center, context_table):
    _check_center(center, context_table)
    return softmax(-(context_table - center).norm(dim=1))


@mistake(
    "skip_gram_probabilities",
    hint="Logarithms of probabilities come out. Here the probabilities themselves are asked for; the "
    "logarithm is section 7.",
    keeps=0.5,
)
def returns_log_probabilities(center, context_table):
    _check_center(center, context_table)
    return torch.log(softmax(context_table @ center))


@mistake("skip_gram_probabilities", hint="The gradient stops at the table. Both tables have to learn.")
def the_table_does_not_learn(center, context_table):
    _check_center(center, context_table)
    return softmax(context_table.detach() @ center) + 0 * context_table.sum()


# --- skip_gram_pairs


@mistake(
    "skip_gram_pairs",
    hint="Only the words behind a center are its contexts in your answer. The window reaches to both sides.",
    replace=("words[max(0, i - window) : i] + words[", "words["),
)
def only_what_comes_after(): ...


@mistake(
    "skip_gram_pairs",
    hint="Only the words before a center are its contexts in your answer. The window reaches to both sides.",
    replace=(" + words[i + 1 : i + 1 + window]", ""),
)
def only_what_came_before(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.5,
    hint="Each place is paired with itself. It is the center: which places are left?",
    replace=("words[i + 1 : i + 1 + window]", "words[i : i + 1 + window]"),
)
def a_place_is_its_own_context(): ...


@mistake(
    "skip_gram_pairs",
    hint="You leave out words that equal the center. It is the place that may not be paired with itself, not the word.",
    replace=(
        "words[max(0, i - window) : i] + words[i + 1 : i + 1 + window]",
        "[w for w in words[max(0, i - window) : i] + words[i + 1 : i + 1 + window] if w != center]",
    ),
)
def leaves_out_equal_words(): ...


@mistake(
    "skip_gram_pairs",
    hint="The last word of a sentence has the first one of the next sentence as its context in your answer.",
    replace=("for sentence in sentences:", "for sentence in [torch.cat(sentences)] if sentences else []:"),
)
def reaches_across_sentences(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.5,
    hint="You share the window out over the two sides. It reaches w places to each of them.",
    replace=[("i - window", "i - window // 2"), ("i + 1 + window", "i + 1 + window // 2")],
)
def half_the_window_to_each_side(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.5,
    hint="To the right your window ends one place early. A slice stops before its end.",
    replace=("i + 1 + window", "i + window"),
)
def stops_one_place_early(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.5,
    hint="Your window reaches one place too far to the right. How far is the last context from the center?",
    replace=("i + 1 + window", "i + 2 + window"),
)
def reaches_one_place_too_far(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.5,
    hint="Words near an end of the sentence are no centers in your answer. Their window is cut off, not left out.",
    replace=("in enumerate(words)", "in list(enumerate(words))[window : len(words) - window]"),
)
def only_centers_with_a_full_window(): ...


@mistake(
    "skip_gram_pairs",
    hint="A slice that begins below 0 begins near the end. What do the first words of a sentence have before them?",
    replace=("max(0, i - window)", "i - window"),
)
def slices_from_below_zero(): ...


@mistake(
    "skip_gram_pairs",
    hint="Each pair is there once in your answer. A pair that occurs five times in the text counts five times.",
    replace=(
        "return torch.tensor(centers, dtype=torch.int64), torch.tensor(contexts, dtype=torch.int64)",
        "return tuple(torch.tensor([p[s] for p in dict.fromkeys(zip(centers, contexts))]).long() for s in (0, 1))",
    ),
)
def distinct_pairs_only(): ...


@mistake(
    "skip_gram_pairs",
    hint="Only words that are exactly w places away are contexts in your answer. What of the nearer ones?",
    replace=(
        "words[max(0, i - window) : i] + words[i + 1 : i + 1 + window]",
        "[word for j, word in enumerate(words) if abs(i - j) == window]",
    ),
)
def only_the_edge_of_the_window(): ...


@mistake(
    "skip_gram_pairs",
    hint="You compare ids: words whose numbers are near. The window is about places in the sentence.",
    replace=(
        "words[max(0, i - window) : i] + words[i + 1 : i + 1 + window]",
        "[word for j, word in enumerate(words) if j != i and abs(word - center) <= window]",
    ),
)
def near_by_number(): ...


@mistake(
    "skip_gram_pairs",
    hint="Every other word of the sentence is a context in your answer. How far does the window reach?",
    replace=[("max(0, i - window)", "0"), ("i + 1 + window", "len(words)")],
)
def the_whole_sentence(): ...


@mistake(
    "skip_gram_pairs",
    hint="Your first tensor holds the contexts. In which order does skip_gram_loss take the two?",
    replace=[("torch.tensor(centers", "torch.tensor(contexts"), ("torch.tensor(contexts", "torch.tensor(centers")],
)
def contexts_come_first(): ...


@mistake(
    "skip_gram_pairs",
    hint="The contexts before a center come out backwards, the nearest first. They are sorted by their place.",
    replace=("words[max(0, i - window) : i] +", "words[max(0, i - window) : i][::-1] +"),
)
def the_nearest_context_first(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.5,
    hint="Two tensors are asked for, centers and contexts; yours is one with two columns.",
    replace=(
        "return torch.tensor(centers, dtype=torch.int64), torch.tensor(contexts, dtype=torch.int64)",
        "return torch.tensor([centers, contexts], dtype=torch.int64).T",
    ),
)
def one_tensor_of_pairs(): ...


@mistake(
    "skip_gram_pairs",
    keeps=0.5,
    hint="You return lists. Ids that pick rows of a table are an int64 tensor.",
    replace=(
        "return torch.tensor(centers, dtype=torch.int64), torch.tensor(contexts, dtype=torch.int64)",
        "return centers, contexts",
    ),
)
def lists_of_ids(): ...


@mistake(
    "skip_gram_pairs",
    hint="A tensor made of an empty list is float32. Which dtype have ids, even where there are none?",
    replace=[("centers, dtype=torch.int64", "centers"), ("contexts, dtype=torch.int64", "contexts")],
)
def floats_where_nothing_is(): ...


@mistake(
    "skip_gram_pairs",
    hint="A text without sentences makes your function fail. It has no pairs, and that is an answer.",
    replace=("centers, contexts = [], []", "centers, contexts, longest = [], [], max(map(len, sentences))"),
)
def wants_a_sentence(): ...


@mistake(
    "skip_gram_pairs",
    hint="A window of 0 places reaches no word. Which windows should be refused?",
    replace=("window < 1", "window < 0"),
)
def takes_a_window_of_nothing(): ...


# --- skip_gram_loss


def _right_loss(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    return _surprise(_wide(center_table[center_ids] @ context_table.T), context_ids).mean().to(center_table.dtype)


@mistake("skip_gram_loss", hint="Pass the same batch three times: your loss triples. Sum or mean?", keeps=0.5)
def sums_over_the_pairs(center_ids, context_ids, center_table, context_table):
    return _right_loss(center_ids, context_ids, center_table, context_table) * len(center_ids)


@mistake("skip_gram_loss", keeps=0.5, hint="The candidates are all V words. Yours are the words of the batch only.")
def only_words_of_the_batch_compete(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    scores = _wide(center_table[center_ids] @ context_table[context_ids].T)  # [B, B]
    return _surprise(scores, torch.arange(len(center_ids))).mean().to(center_table.dtype)


@mistake(
    "skip_gram_loss",
    keeps=0.5,
    hint="Each pair's scores are a row. Which dimension is the vocabulary, and which the pairs?",
)
def pairs_compete_for_a_word(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    scores = _wide(center_table[center_ids] @ context_table.T)  # [B, V]
    right = scores.gather(1, context_ids[:, None])[:, 0]
    return (torch.logsumexp(scores, dim=0)[context_ids] - right).mean().to(center_table.dtype)


@mistake(
    "skip_gram_loss",
    hint="A probability of e^−2000 is 0 as a float and its logarithm −inf. Simplify log(exp(s)/Σ) on paper first.",
)
def logarithm_of_a_rounded_probability(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    p = softmax(_wide(center_table[center_ids] @ context_table.T))
    return -torch.log(p.gather(1, context_ids[:, None])).mean().to(center_table.dtype)


@mistake(
    "skip_gram_loss",
    hint="A small number inside the logarithm puts a ceiling on the surprise: no pair can cost more than −log of it.",
)
def logarithm_with_a_floor(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    p = softmax(_wide(center_table[center_ids] @ context_table.T))
    return -torch.log(p.gather(1, context_ids[:, None]) + 1e-12).mean().to(center_table.dtype)


@mistake(
    "skip_gram_loss",
    hint="The exponentials overflow before the logarithm brings them back. Is there a stable way to the log "
    "of a sum of exponentials?",
)
def logarithm_of_an_overflowing_sum(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    scores = _wide(center_table[center_ids] @ context_table.T)
    right = scores.gather(1, context_ids[:, None])[:, 0]
    return (scores.exp().sum(dim=1).log() - right).mean().to(center_table.dtype)


@mistake(
    "skip_gram_loss", hint="Your loss is negative: minimizing it makes the pairs of the text less probable.", keeps=0.5
)
def the_sign_is_lost(center_ids, context_ids, center_table, context_table):
    return -_right_loss(center_ids, context_ids, center_table, context_table)


@mistake(
    "skip_gram_loss",
    keeps=0.5,
    hint="Center ids pick rows of the center table, context ids of the context table. Yours are exchanged.",
)
def the_tables_are_exchanged(center_ids, context_ids, center_table, context_table):
    return _right_loss(center_ids, context_ids, context_table, center_table)


@mistake("skip_gram_loss", keeps=0.5, hint="P{b|a} is not P{a|b}: who is given, and who is predicted?")
def predicts_the_center(center_ids, context_ids, center_table, context_table):
    return _right_loss(context_ids, center_ids, context_table, center_table)


@mistake(
    "skip_gram_loss",
    keeps=0.5,
    hint="One table for both roles: then each word predicts itself. Use the context table for the candidates.",
)
def one_table_for_both_roles(center_ids, context_ids, center_table, context_table):
    return _right_loss(center_ids, context_ids, center_table, center_table) + 0 * context_table.sum()


@mistake("skip_gram_loss", keeps=0.5, hint="The logarithm of the mean is not the mean of the logarithms.")
def logarithm_of_the_mean(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    surprises = _surprise(_wide(center_table[center_ids] @ context_table.T), context_ids)
    return (math.log(len(surprises)) - torch.logsumexp(-surprises, dim=0)).to(center_table.dtype)


@mistake(
    "skip_gram_loss",
    hint="Only the score of the right word is rewarded. Without the competition of all others the vectors just grow.",
)
def no_competition(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    return -(center_table[center_ids] * context_table[context_ids]).sum(dim=1).mean()


@mistake("skip_gram_loss", hint="A Python number has no gradient. Return the tensor.")
def returns_a_number(center_ids, context_ids, center_table, context_table):
    return _right_loss(center_ids, context_ids, center_table, context_table).item()


@mistake("skip_gram_loss", keeps=0.5, hint="One loss for the batch is asked for: the mean of what you return.")
def returns_one_loss_a_pair(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    return _surprise(_wide(center_table[center_ids] @ context_table.T), context_ids).to(center_table.dtype)


@mistake("skip_gram_loss", hint="The gradient of the context table is missing: both tables have to learn.")
def contexts_do_not_learn(center_ids, context_ids, center_table, context_table):
    return _right_loss(center_ids, context_ids, center_table, context_table.detach()) + 0 * context_table.sum()


@mistake("skip_gram_loss", hint="One pair after the other is slow. One matrix product gives the scores of all pairs.")
def loops_over_the_pairs(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    losses = [
        _right_loss(center_ids[n : n + 1], context_ids[n : n + 1], center_table, context_table)
        for n in range(len(center_ids))
    ]
    return torch.stack(losses).mean()


@mistake("skip_gram_loss", hint="float16 tables give a float16 loss: what dtype goes out?")
def loss_stays_wide(center_ids, context_ids, center_table, context_table):
    _check_pairs(center_ids, context_ids, center_table, context_table)
    return _surprise(_wide(center_table[center_ids] @ context_table.T), context_ids).mean()


@mistake("skip_gram_loss", hint="Logarithms to base 2 measure bits. The course uses the natural logarithm.", keeps=0.5)
def measured_in_bits(center_ids, context_ids, center_table, context_table):
    return _right_loss(center_ids, context_ids, center_table, context_table) / math.log(2)


@mistake(
    "skip_gram_loss", hint="−1 as an id takes the last row of a table, and the loss looks fine. Check the ids first."
)
def trains_on_negative_ids(center_ids, context_ids, center_table, context_table):
    return _right_loss(
        torch.where(center_ids < 0, center_ids + center_table.shape[0], center_ids),
        torch.where(context_ids < 0, context_ids + context_table.shape[0], context_ids),
        center_table,
        context_table,
    )


# --- train_bpe


@mistake(
    "train_bpe",
    hint="Between equally frequent pairs yours is the one seen first, so the order of the dict decides. State "
    "the tie rule in code.",
)
def ties_go_to_the_first_seen(words, num_merges):
    return _train(words, num_merges, choose=lambda counts: max(counts, key=counts.get))


@mistake("train_bpe", hint="Ties go to the smaller tuple; yours go to the larger one.")
def ties_go_to_the_larger_pair(words, num_merges):
    return _train(words, num_merges, choose=lambda counts: max(counts, key=lambda pair: (counts[pair], pair)))


@mistake("train_bpe", hint='You compare the glued texts. The pairs themselves are compared: ("a", "z") < ("ab", "a").')
def ties_compare_glued_text(words, num_merges):
    return _train(words, num_merges, choose=lambda counts: min(counts, key=lambda p: (-counts[p], p[0] + p[1])))


@mistake("train_bpe", hint="How often does a word occur? That number is in the dict, and it weighs the word's pairs.")
def every_word_counts_once(words, num_merges):
    return _train(words, num_merges, count=lambda tokens_of, words: _count(tokens_of, dict.fromkeys(words, 1)))


@mistake("train_bpe", hint="A pair that stands twice in a word counts twice for it.")
def every_pair_counts_once_a_word(words, num_merges):
    def count(tokens_of, words):
        counts = Counter()
        for word, tokens in tokens_of.items():
            for pair in set(pairwise(tokens)):
                counts[pair] += words[word]
        return counts

    return _train(words, num_merges, count=count)


@mistake("train_bpe", hint="zzz has the pair z·z at two positions. You skip the one that overlaps the first.")
def overlapping_pairs_count_once(words, num_merges):
    def count(tokens_of, words):
        counts = Counter()
        for word, tokens in tokens_of.items():
            last = None
            for i, pair in enumerate(pairwise(tokens)):
                if last == (i - 1, pair):
                    last = None
                    continue
                counts[pair] += words[word]
                last = (i, pair)
        return counts

    return _train(words, num_merges, count=count)


@mistake(
    "train_bpe", hint="The counts are those of the characters. After a join there are new neighbours: count again."
)
def counts_only_once(words, num_merges):
    if num_merges < 0:
        raise ValueError(f"num_merges = {num_merges} is negative")
    counts = _count({word: list(word) for word in words}, words)
    return sorted(counts, key=lambda pair: (-counts[pair], pair))[:num_merges]


@mistake("train_bpe", hint="Only the first occurrence in each word is joined. The pair is joined everywhere.")
def joins_only_the_first_occurrence(words, num_merges):
    def join(tokens, pair):
        for i, found in enumerate(pairwise(tokens)):
            if found == pair:
                return [*tokens[:i], pair[0] + pair[1], *tokens[i + 2 :]]
        return tokens

    return _train(words, num_merges, join=join)


@mistake("train_bpe", hint='Text replacement does not see where a token begins: "xa b" contains "a b".')
def replaces_text(words, num_merges):
    return _train(words, num_merges, join=_join_text)


@mistake("train_bpe", hint="zzzzz becomes zz·zz·z: you join from the right.")
def joins_from_the_right(words, num_merges):
    def join(tokens, pair):
        joined = []
        for token in reversed(tokens):
            if joined and (token, joined[0]) == pair:
                joined[0] = token + joined[0]
            else:
                joined.insert(0, token)
        return joined

    return _train(words, num_merges, join=join)


@mistake("train_bpe", hint="A pair that occurs once is joined too, in this course.")
def stops_at_pairs_seen_once(words, num_merges):
    return _train(words, num_merges, least=2)


@mistake("train_bpe", hint="Ask for more merges than there are pairs: the list ends early, and nothing crashes.")
def crashes_when_no_pair_is_left(words, num_merges):
    return _train(words, num_merges, count=lambda tokens_of, words: _count(tokens_of, words) or {None: 1})


@mistake(
    "train_bpe",
    keeps=0.5,
    hint="There is no end-of-word mark in this course: your merges contain something that no word has.",
)
def adds_an_end_mark(words, num_merges):
    return _train(words, num_merges, cut=lambda word: [*word, "</w>"])


@mistake("train_bpe", hint="The pairs are asked for, (left, right), not the tokens that they make.")
def returns_the_tokens(words, num_merges):
    return [left + right for left, right in _train(words, num_merges)]


@mistake(
    "train_bpe",
    keeps=0.5,
    hint="Pairs never reach across words. Yours join the end of one with the beginning of the next.",
)
def pairs_reach_across_words(words, num_merges):
    if num_merges < 0:
        raise ValueError(f"num_merges = {num_merges} is negative")
    text = "".join(word * count for word, count in words.items())
    return _train({text: 1}, num_merges)


@mistake("train_bpe", hint="The caller's dict is different after your call. Work on your own copy of the counts.")
def uses_up_the_counts(words, num_merges):
    merges = _train(words, num_merges)
    for word in [word for word in words if len(word) < 3]:
        del words[word]
    return merges


@mistake("train_bpe", hint="One merge too many: how long is the list when num_merges is 1?", keeps=0.5)
def one_merge_too_many(words, num_merges):
    return _train(words, num_merges + 1 if num_merges >= 0 else num_merges)


@mistake("train_bpe", hint="A negative number of merges cannot be made: it should raise ValueError.")
def negative_means_none(words, num_merges):
    return _train(words, max(num_merges, 0))


# --- encode_bpe


@mistake(
    "encode_bpe",
    hint="You look for the longest known piece from the left. The order of learning decides, not the length.",
)
def longest_piece_first(word, merges):
    pieces = {left + right for left, right in merges}
    tokens = []
    while word:
        size = max([1] + [len(piece) for piece in pieces if word.startswith(piece)])
        tokens.append(word[:size])
        word = word[size:]
    return tokens


@mistake("encode_bpe", keeps=0.5, hint="You stop at the shortest known piece. eat is one token, not e·at.")
def shortest_piece_first(word, merges):
    pieces = {left + right for left, right in merges}
    tokens = []
    while word:
        size = min([len(piece) for piece in pieces if word.startswith(piece)] or [1])
        tokens.append(word[:size])
        word = word[size:]
    return tokens


@mistake("encode_bpe", hint="Characters that no merge knows have vanished. Glue your tokens together: is it the word?")
def drops_unknown_characters(word, merges):
    known = {character for pair in merges for character in pair[0] + pair[1]}
    return [token for token in _encode(word, merges) if len(token) > 1 or token in known]


@mistake(
    "encode_bpe",
    hint="The pair learned last is joined first in your answer. Which end of the list has the lowest rank?",
)
def learned_last_joined_first(word, merges):
    return _encode(word, merges, choose=max)


@mistake("encode_bpe", hint="You join the leftmost known pair. Where two overlap, the one learned first comes first.")
def leftmost_pair_first(word, merges):
    tokens, pairs = list(word), set(merges)
    while places := [i for i, pair in enumerate(pairwise(tokens)) if pair in pairs]:
        i = places[0]
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
    return tokens


@mistake(
    "encode_bpe",
    hint="Each merge is tried once, in order. A later one can make a token that an earlier one was waiting for.",
)
def one_pass_through_the_list(word, merges):
    tokens = list(word)
    for pair in merges:
        tokens = _join(tokens, pair)
    return tokens


@mistake("encode_bpe", keeps=0.5, hint="Only one join is made. Go on until no two neighbours are a pair of the list.")
def joins_once(word, merges):
    rank = {pair: place for place, pair in enumerate(merges)}
    tokens = list(word)
    known = [pair for pair in pairwise(tokens) if pair in rank]
    return _join(tokens, min(known, key=rank.get)) if known else tokens


@mistake("encode_bpe", hint='Text replacement does not see where a token begins: "xa b" contains "a b".')
def encodes_by_replacing_text(word, merges):
    mark = "\0"
    text = mark.join(word)
    while True:
        tokens = text.split(mark) if text else []
        known = [pair for pair in merges if pair in list(pairwise(tokens))]
        if not known:
            return tokens
        text = text.replace(mark.join(known[0]), "".join(known[0]))


@mistake("encode_bpe", keeps=0.5, hint="There is no end-of-word mark in this course.")
def encodes_an_end_mark(word, merges):
    return [*_encode(word, merges), "</w>"]


@mistake("encode_bpe", hint="The empty word has no tokens: an empty list, not a list with an empty string.")
def the_empty_word_is_a_token(word, merges):
    return _encode(word, merges) or [""]


@mistake("encode_bpe", hint="Your list of merges is empty after the first word. The next word needs it again.")
def uses_up_the_merges(word, merges):
    tokens = _encode(word, merges)
    merges.clear()
    return tokens


@mistake(
    "encode_bpe",
    hint="Does your answer give the tokens of *this* word, with *these* merges? It knows the example by heart.",
)
def knows_the_example_by_heart(word, merges):
    return {"eating": ["eat", "ing"], "singing": ["s", "ing", "ing"]}.get(word, list(word))


# --- embed


@mistake("embed", hint="You take the rows 0, 1, 2, … whatever the tokens are. The id picks the row, not the position.")
def picks_rows_by_position(table, ids):
    _check_ids(ids, table.shape[0])
    return table[(torch.arange(ids.shape[-1]) % table.shape[0]).expand(ids.shape)]


@mistake("embed", hint="−1 takes the last row of the table. Check the ids before you use them.")
def negative_ids_pick_the_last_rows(table, ids):
    if len(ids) and int(ids.max()) >= table.shape[0]:
        raise ValueError(f"id {int(ids.max())} is not in a table of {table.shape[0]} tokens")
    return table[ids]


@mistake("embed", hint="An id above the table becomes the last token in your answer, and nobody is told.")
def ids_are_clamped_into_the_table(table, ids):
    return table[ids.clamp(0, table.shape[0] - 1)]


@mistake("embed", hint="A matrix [N, V] of zeros and ones, to pick N rows: the result is right, the memory is not.")
def multiplies_with_one_hot(table, ids):
    _check_ids(ids, table.shape[0])
    return one_hot(ids, table.shape[0]).to(table.dtype) @ table


@mistake("embed", hint="One token after the other is slow: a table can be indexed with a whole tensor of ids.")
def loops_over_the_tokens(table, ids):
    _check_ids(ids, table.shape[0])
    return torch.stack([table[i] for i in ids.reshape(-1).tolist()]).reshape(*ids.shape, table.shape[1])


@mistake("embed", keeps=0.5, hint="Columns of the table came out. Each token is a row.")
def picks_columns(table, ids):
    _check_ids(ids, table.shape[0])
    return table.T[ids % table.shape[1]]


@mistake("embed", keeps=0.5, hint="The features stand in the wrong place: the result is [..., N, D], with D last.")
def features_before_tokens(table, ids):
    _check_ids(ids, table.shape[0])
    return table[ids].transpose(-1, -2)


@mistake("embed", hint="A batch [B, N] came in. Where is its first dimension?")
def flattens_the_batch(table, ids):
    _check_ids(ids, table.shape[0])
    return table[ids.reshape(-1)]


@mistake("embed", hint="Only the first sentence of the batch was looked up.")
def embeds_only_the_first_sentence(table, ids):
    _check_ids(ids, table.shape[0])
    return table[ids[0].expand(ids.shape) if ids.dim() > 1 else ids]


@mistake("embed", hint="Some models multiply embeddings by √D. Here a row comes out as it is.", keeps=0.5)
def scales_by_the_root_of_d(table, ids):
    _check_ids(ids, table.shape[0])
    return table[ids] * table.shape[1] ** 0.5


@mistake("embed", hint="A copy without gradient: the table would never learn.")
def the_table_gets_no_gradient(table, ids):
    _check_ids(ids, table.shape[0])
    return table.detach()[ids] + 0 * table.sum()


@mistake("embed", hint="A token that occurs three times gets three gradients, added up. Yours gets one.")
def repeated_tokens_learn_once(table, ids):
    _check_ids(ids, table.shape[0])
    rows = table[ids]
    flat = ids.reshape(-1)
    earlier = (flat[:, None] == flat).tril(diagonal=-1).any(dim=1).reshape(ids.shape)
    return torch.where(earlier[..., None], rows.detach(), rows)


# --- break_the_equivalence


@mistake(
    "break_the_equivalence",
    hint="Your loud is long and points along v. Its dot product is large, but so is its cosine: change the "
    "direction, too.",
)
def loud_is_a_longer_copy(table, word):
    v, _, _, dots = _evidence(table, word)
    return v * (2 * dots.max() / (v @ v)), _quiet(v, dots)


@mistake(
    "break_the_equivalence", hint="Exactly perpendicular means a dot product of exactly 0. Lean a little towards v."
)
def loud_is_perpendicular(table, word):
    v, _, across, dots = _evidence(table, word)
    return 1000 * dots.max() * across, _quiet(v, dots)


@mistake(
    "break_the_equivalence",
    hint="The direction of loud is right. Is it long enough for every table, whose rows may be long themselves?",
)
def loud_has_a_fixed_length(table, word):
    v, along, across, dots = _evidence(table, word)
    return 1000 * (0.05 * along + across), _quiet(v, dots)


@mistake("break_the_equivalence", hint="You beat the dot product of v with itself. Another row may have a larger one.")
def loud_beats_only_the_word_itself(table, word):
    v, along, across, dots = _evidence(table, word)
    return 2 * (v @ v) / (0.05 * v.norm()) * (0.05 * along + across), _quiet(v, dots)


@mistake(
    "break_the_equivalence",
    hint="Your second direction is always the first axis. What remains of it when v lies on that axis?",
)
def across_is_always_the_first_axis(table, word):
    v, along, _, dots = _evidence(table, word)
    across = torch.zeros_like(v)
    across[0] = 1.0
    across = across - (across @ along) * along
    return _loud(v, along, across / across.norm(), dots), _quiet(v, dots)


@mistake(
    "break_the_equivalence",
    hint="A shorter copy of v by a fixed factor: some row may have a smaller positive dot product still.",
)
def quiet_is_a_tenth_of_the_word(table, word):
    v, along, across, dots = _evidence(table, word)
    return _loud(v, along, across, dots), v / 10


@mistake(
    "break_the_equivalence",
    keeps=0.5,
    hint="A dot product of 0, or a negative one, is not what is asked: quiet points the way v does.",
)
def quiet_points_away(table, word):
    v, along, across, dots = _evidence(table, word)
    return _loud(v, along, across, dots), -_quiet(v, dots)


@mistake(
    "break_the_equivalence",
    keeps=0.5,
    hint="Your quiet has a small dot product because it is nearly perpendicular. It should have the direction of v.",
)
def quiet_is_nearly_perpendicular(table, word):
    v, along, across, dots = _evidence(table, word)
    return _loud(v, along, across, dots), dots[dots > 0].min() / (2 * v.norm()) * (along + 3 * across)


@mistake("break_the_equivalence", hint="The order is (loud, quiet).", keeps=0.5)
def quiet_comes_first(table, word):
    v, along, across, dots = _evidence(table, word)
    return _quiet(v, dots), _loud(v, along, across, dots)


@mistake("break_the_equivalence", hint="Does your answer use the table? It holds for the example only.")
def holds_for_the_example_only(table, word):
    v, _, _, _ = _evidence(table, word)
    loud, quiet = torch.zeros_like(v), torch.zeros_like(v)
    loud[:2] = torch.tensor([-385.0, 302.0])
    quiet[:2] = torch.tensor([0.03, 0.04])
    return loud, quiet


@mistake("break_the_equivalence", hint="What should happen for the zero vector, and for vectors of a single number?")
def answers_where_there_is_no_answer(table, word):
    if table.shape[1] < 2 or not table[word].any():
        return table[word].clone(), table[word].clone()
    v, along, across, dots = _evidence(table, word)
    return _loud(v, along, across, dots), _quiet(v, dots)


@mistake("break_the_equivalence", hint="The row of the table itself was stretched. Make new vectors.")
def stretches_the_row_itself(table, word):
    v, along, across, dots = _evidence(table, word)
    loud, factor = _loud(v, along, across, dots), dots[dots > 0].min() / (2 * (v @ v))
    quiet = v * factor
    v *= 1.5
    return loud, quiet


@mistake(
    "break_the_equivalence",
    hint="However short a fixed part of the word is: another row may have a smaller product with it.",
    replace=("v * dots[dots > 0].min() / (2 * (v @ v))", "v * 1e-3"),
)
def quiet_is_a_thousandth_of_the_word(): ...


@mistake(
    "cosine_similarity",
    hint="Each length has a lower bound, as if short vectors were longer. Only the zero vector is special.",
    replace=(
        "torch.linalg.vector_norm(u, dim=-1) * torch.linalg.vector_norm(v, dim=-1)",
        "u.norm(dim=-1).clamp_min(1e-8) * v.norm(dim=-1).clamp_min(1e-8)",
    ),
)
def each_length_has_a_lower_bound(): ...


@mistake(
    "cosine_similarity",
    hint="Vectors of 3 and of 5 features have no angle. Compare the two numbers before you multiply, and name both.",
    replace=("if u.shape[-1] != v.shape[-1]:", "if u.shape[-1] < 1:"),
)
def cosine_without_checks(): ...
