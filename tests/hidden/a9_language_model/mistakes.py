"""Wrong answers that people give about a language model, each with one wrong idea."""

from autograder.suite import (
    depends_on_later,
    has_dtype,
    ignores,
    is_what,
    lacks,
    mistake,
    part,
    right_once_transposed,
    same_along,
)

# ── train_byte_bpe
# ────────────────────────────────────────────────────────────────────────────────────────────────────


def _count_all_words_anew(text, num_merges, choose):
    if num_merges < 0:
        raise ValueError(f"num_merges = {num_merges} is negative")
    words = Counter(split_words(bytes(text.tolist())))
    pieces = {word: list(word) for word in words}
    merges = []
    while len(merges) < num_merges:
        counts = Counter()
        for word, ids in pieces.items():
            for pair in pairwise(ids):
                counts[pair] += words[word]
        if not counts:
            break
        best = choose(counts)
        pieces = {
            word: join_pair(ids, best, 256 + len(merges))
            for word, ids in pieces.items()
        }
        merges.append(best)
    return merges


@mistake(
    "train_byte_bpe",
    hint="A word that occurs 200 times has its pairs 200 times. You count each distinct word once.",
    replace=(
        "Counter(split_words(bytes(text.tolist())))",
        "dict.fromkeys(split_words(bytes(text.tolist())), 1)",
    ),
)
def counts_each_word_once(): ...


@mistake(
    "train_byte_bpe",
    hint="Among equally frequent pairs the smaller tuple of ids is joined. Yours is the larger.",
    replace=(
        "best = min(counts, key=lambda pair: (-counts[pair], pair))",
        "best = max(counts, key=lambda pair: (counts[pair], pair))",
    ),
    keeps=0.65,
)
def takes_the_larger_pair_of_equals(): ...


@mistake(
    "train_byte_bpe",
    hint=(
        "Which of several equally frequent pairs comes first in the text is chance: the smaller "
        "tuple is joined."
    ),
    replace=(
        (
            "best = min(counts, key=lambda pair: (-counts[pair], pair))",
            "best = max(counts, key=counts.get)",
        ),
        # a set has another order in each process
        ("defaultdict(set)", "defaultdict(dict)"),
        ("places[pair].add(word)", "places[pair][word] = True"),
    ),
    keeps=0.65,
)
def takes_the_first_found_of_equals(): ...


@mistake(
    "train_byte_bpe",
    hint=(
        "Which of several equally frequent pairs comes first in the text is chance: the smaller "
        "tuple is joined. And all words are counted anew for each merge, where a merge changes "
        "only the words that its pair stands in."
    ),
)
def counts_anew_and_takes_the_first_of_equals(text, num_merges):
    return _count_all_words_anew(
        text, num_merges, lambda counts: max(counts, key=counts.get)
    )


@mistake(
    "train_byte_bpe",
    hint="You join the least frequent pair. The sort goes the other way round.",
    replace=("(-counts[pair], pair)", "(counts[pair], pair)"),
)
def joins_the_rarest_pair(): ...


@mistake(
    "train_byte_bpe",
    hint="There are 256 bytes, 0 to 255: the first merge is id 256.",
    replace=("256 + len(merges)", "257 + len(merges)"),
)
def new_ids_begin_at_257(): ...


@mistake(
    "train_byte_bpe",
    hint="255 is a byte. The first merge is id 256.",
    replace=("256 + len(merges)", "255 + len(merges)"),
)
def new_ids_begin_at_255(): ...


@mistake(
    "train_byte_bpe",
    hint="Every merge needs an id of its own: 256 plus its place in the list.",
    replace=("256 + len(merges)", "256"),
)
def all_merges_get_one_id(): ...


@mistake(
    "train_byte_bpe",
    hint=(
        "Your pairs reach across words. The text is cut by split_words first, and pairs are "
        "counted inside words."
    ),
    replace=(
        "Counter(split_words(bytes(text.tolist())))",
        "Counter([bytes(text.tolist())])",
    ),
)
def joins_across_words(): ...


@mistake(
    "train_byte_bpe",
    hint="str.split throws the spaces away. split_words keeps them, in front of the word "
    "that follows.",
    replace=("split_words(bytes(text.tolist()))", "bytes(text.tolist()).split()"),
)
def splits_at_whitespace(): ...


@mistake(
    "train_byte_bpe",
    hint=(
        "The pairs are counted once, at the start. After each join the new token has new "
        "neighbours: count anew."
    ),
    replace=(
        """
        for word in places.pop(best):  # no other word changes
            count_pairs(word, -words[word])
            pieces[word] = join_pair(pieces[word], best, 256 + len(merges))
            count_pairs(word, words[word])
        counts = +counts  # without the pairs that stand nowhere any more
        """,
        "del counts[best]\n",
    ),
)
def counts_only_once(): ...


@mistake(
    "train_byte_bpe",
    hint="A pair that stands twice in a word counts twice: every position counts.",
    replace=("in pairwise(pieces[word])", "in set(pairwise(pieces[word]))"),
)
def counts_distinct_pairs_of_a_word(): ...


@mistake(
    "train_byte_bpe",
    hint="A pair that occurs once is joined too, as long as merges are asked for.",
    replace=("while counts and", "while counts and max(counts.values()) > 1 and"),
)
def leaves_pairs_that_occur_once(): ...


@mistake(
    "train_byte_bpe",
    hint="num_merges merges are asked for, and you stop one earlier.",
    replace=("len(merges) < num_merges:", "len(merges) < num_merges - 1:"),
    keeps=0.65,
)
def learns_one_merge_too_few(): ...


@mistake(
    "train_byte_bpe",
    hint=(
        "The ids of the beginning are bytes. Characters beyond 127 have two or more, and not all "
        "bytes are characters."
    ),
    replace=(
        "bytes(text.tolist())",
        'bytes(text.tolist()).decode("utf-8", errors="ignore").encode("latin-1", errors="replace")',
    ),
)
def reads_characters(): ...


@mistake(
    "train_byte_bpe",
    hint="A negative number of merges gets an answer. The docstring asks for a ValueError.",
    replace=("if num_merges < 0:", "if num_merges != num_merges:"),
)
def takes_a_negative_number(): ...


@mistake(
    "train_byte_bpe",
    hint="The error should say which number was refused.",
    replace=(
        'f"num_merges = {num_merges} is negative"',
        '"the number of merges is negative"',
    ),
)
def leaves_the_refused_number_out(): ...


@mistake(
    "train_byte_bpe",
    hint="Pairs are joined from left to right: three a in a row are a pair and an a.",
    replace=(
        "join_pair(pieces[word], best, 256 + len(merges))",
        "join_pair(pieces[word][::-1], best[::-1], 256 + len(merges))[::-1]",
    ),
)
def joins_words_from_the_right(): ...


@mistake(
    "train_byte_bpe",
    hint="Pairs with byte 0 are left out. It is a byte like all others, though Python takes 0 for "
    "false.",
    replace=(
        "for pair in pairwise(pieces[word]):",
        "for pair in filter(all, pairwise(pieces[word])):",
    ),
)
def takes_byte_0_for_nothing(): ...


@mistake(
    "train_byte_bpe",
    hint="An empty text has no words, and no longest word: nothing is learned from it.",
    replace=(
        "merges = []",
        """
        merges = []
        longest = max(map(len, words))
        """,
    ),
)
def fails_on_an_empty_text(): ...


@mistake(
    "train_byte_bpe",
    hint="No merges can be asked for: 0 is not negative.",
    replace=("if num_merges < 0:", "if num_merges <= 0:"),
)
def refuses_to_learn_nothing(): ...


@mistake(
    "train_byte_bpe",
    hint=(
        "All words are counted anew for each merge. A merge changes only the words that its pair "
        "stands in: keep the counts, and correct them for these."
    ),
)
def counts_all_words_anew(text, num_merges):
    return _count_all_words_anew(
        text,
        num_merges,
        lambda counts: min(counts, key=lambda pair: (-counts[pair], pair)),
    )


@mistake(
    "train_byte_bpe",
    hint=(
        "Each merge asks every word whether the pair stands in it. Note for each pair its words, "
        "and ask these."
    ),
    replace=(
        "for word in places.pop(best):",
        "for word in [word for word in words if best in pairwise(pieces[word])]:",
    ),
)
def asks_every_word_for_the_pair(): ...


@mistake(
    "train_byte_bpe",
    hint="The pairs that a word had before the join are still counted: take them off first.",
    replace=(
        """
            count_pairs(word, -words[word])
            pieces[word] = join_pair(pieces[word], best, 256 + len(merges))
        """,
        "pieces[word] = join_pair(pieces[word], best, 256 + len(merges))\n",
    ),
    keeps=0.65,
)
def leaves_the_old_pairs_in_the_counts(): ...


@mistake(
    "train_byte_bpe",
    hint="The pairs that a word has after the join are not counted: the new token is in some.",
    replace=(
        """
            pieces[word] = join_pair(pieces[word], best, 256 + len(merges))
            count_pairs(word, words[word])
        """,
        """
            pieces[word] = join_pair(pieces[word], best, 256 + len(merges))
        """,
    ),
)
def never_counts_the_new_pairs(): ...


@mistake(
    "train_byte_bpe",
    hint="The words of a pair of new tokens are not noted, so a merge of it changes no word.",
    replace=(
        "places[pair].add(word)",
        "places[pair].update([word] if max(pair) < 256 else [])",
    ),
)
def notes_no_words_of_new_pairs(): ...


@mistake(
    "train_byte_bpe",
    hint="The pairs that a word had before the join are still counted: take them off first.",
    replace=[
        (
            """
        for word in places.pop(best):  # no other word changes
            count_pairs(word, -words[word])
            """,
            """
        for word in places.pop(best):
            """,
        ),
        (
            "counts = +counts  # without the pairs that stand nowhere any more",
            "del counts[best]",
        ),
    ],
    keeps=0.65,
)
def takes_only_the_joined_pair_off(): ...


# ── bpe_encode
# ────────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "bpe_encode",
    hint="Tokens of a word are kept from call to call, and the merges are others by then. What is "
    "kept has to depend on the merges too, or to be thrown away.",
    replace=[
        ("def bpe_encode(text, merges):", "def bpe_encode(text, merges, ids_of={}):"),
        ("ids_of, tokens = {}, []", "tokens = []"),
    ],
)
def keeps_the_tokens_of_a_word_for_other_merges(): ...


@mistake(
    "bpe_encode",
    hint=(
        "A pair is joined that was learned later than another one in the word. The lowest rank "
        "comes first, neither the place nor the length decides."
    ),
    replace=("min(known, key=rank.get)", "known[0]"),
)
def joins_the_leftmost_pair(): ...


@mistake(
    "bpe_encode",
    hint=(
        "From the left, two neighbours that may join are joined at once. Encoding takes the pair "
        "that was learned first, wherever it stands, and joins it everywhere before it looks on."
    ),
    replace=(
        "ids = join_pair(ids, first, 256 + rank[first])",
        """
first = known[0]
place = list(pairwise(ids)).index(first)
ids = [*ids[:place], 256 + rank[first], *ids[place + 2 :]]
""",
    ),
)
def joins_the_first_two_that_fit(): ...


@mistake(
    "bpe_encode",
    hint="You join the pair that was learned last. The lowest rank comes first.",
    replace=("min(known, key=rank.get)", "max(known, key=rank.get)"),
)
def joins_the_last_learned_pair(): ...


@mistake(
    "bpe_encode",
    hint="One round is not enough: a join makes new neighbours, and those may be a pair "
    "of the list.",
    replace=(
        "while known := [pair for pair in pairwise(ids) if pair in rank]:",
        "if known := [pair for pair in pairwise(ids) if pair in rank]:",
    ),
)
def goes_once_through_the_list(): ...


@mistake(
    "bpe_encode",
    hint="The first merge is id 256.",
    replace=("256 + rank[first]", "257 + rank[first]"),
    keeps=0.65,
)
def numbers_merges_from_257(): ...


@mistake(
    "bpe_encode",
    hint="Ids 0 to 255 are bytes; a merge is 256 plus its place.",
    replace=("256 + rank[first]", "rank[first]"),
)
def numbers_merges_from_0(): ...


@mistake(
    "bpe_encode",
    hint="Tokens may not reach across words: cut the text by split_words first.",
    replace=("in split_words(bytes(text.tolist())):", "in [bytes(text.tolist())]:"),
)
def encodes_across_words(): ...


@mistake(
    "bpe_encode",
    hint="The text does not come back: str.split throws the white space away, split_words keeps it.",
    replace=(
        "in split_words(bytes(text.tolist())):",
        "in bytes(text.tolist()).split():",
    ),
)
def loses_the_spaces(): ...


@mistake(
    "bpe_encode",
    hint="A word that comes twice has its tokens twice. Yours are given only where the word is new.",
    replace=(
        "in split_words(bytes(text.tolist())):",
        "in dict.fromkeys(split_words(bytes(text.tolist()))):",
    ),
)
def encodes_each_word_once(): ...


@mistake(
    "bpe_encode",
    hint="Bytes are lost where the text is no UTF-8. Work on the bytes themselves, not on a str.",
    replace=(
        "bytes(text.tolist())",
        'bytes(text.tolist()).decode("utf-8", errors="ignore").encode()',
    ),
)
def goes_through_text_that_is_no_utf8(): ...


@mistake(
    "bpe_encode",
    hint="In a row of equal tokens the pairs are joined from left to right.",
    replace=(
        "ids = join_pair(ids, first, 256 + rank[first])",
        "ids = join_pair(ids[::-1], first[::-1], 256 + rank[first])[::-1]",
    ),
)
def joins_from_the_right(): ...


@mistake(
    "bpe_encode",
    hint="The model wants a tensor of ids, int64.",
    replace=("return torch.tensor(tokens, dtype=torch.int64)", "return tokens"),
    keeps=0.65,
)
def returns_a_list(): ...


@mistake(
    "bpe_encode",
    hint="Ids are int64 in this course, also when there are none.",
    shows=has_dtype("int32"),
    replace=("dtype=torch.int64", "dtype=torch.int32"),
)
def returns_int32(): ...


@mistake(
    "bpe_encode",
    hint="An empty list becomes a tensor of floats, unless the dtype is said.",
    replace=("torch.tensor(tokens, dtype=torch.int64)", "torch.tensor(tokens)"),
)
def returns_floats_for_nothing(): ...


@mistake(
    "bpe_encode",
    hint="These are the bytes. The merges are not applied.",
    replace=(
        "while known := [pair for pair in pairwise(ids) if pair in rank]:",
        "while known := [pair for pair in pairwise(ids) if False]:",
    ),
)
def ignores_the_merges(): ...


@mistake(
    "bpe_encode",
    hint="Yours takes the longest token that fits, from the left. Encoding joins the pair that was learned first, wherever it stands.",
    replace=(
        "            ids = list(word)\n            while known := [pair for pair in pairwise(ids) if pair in rank]:\n                first = min(known, key=rank.get)\n                ids = join_pair(ids, first, 256 + rank[first])\n",
        "            spelled = [bytes([byte]) for byte in range(256)]\n            for left, right in merges:\n                spelled.append(spelled[left] + spelled[right])\n            ids, rest = [], bytes(word)\n            while rest:\n                fitting = [i for i, token in enumerate(spelled) if rest.startswith(token)]\n                ids.append(max(fitting, key=lambda i: len(spelled[i])))\n                rest = rest[len(spelled[ids[-1]]) :]\n",
    ),
)
def takes_the_longest_token(): ...


# ── bpe_decode
# ────────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "bpe_decode",
    hint="A merge is (left, right): the bytes of the left part come first.",
    replace=("bytes_of[left] + bytes_of[right]", "bytes_of[right] + bytes_of[left]"),
    keeps=0.65,
)
def glues_right_before_left(): ...


@mistake(
    "bpe_decode",
    hint=(
        "The parts of a merge are ids, and an id can be a merge itself: its bytes are needed, "
        "not its number."
    ),
    replace=("bytes_of[left] + bytes_of[right]", "[left % 256, right % 256]"),
)
def takes_the_parts_as_bytes(): ...


@mistake(
    "bpe_decode",
    hint="Id 256 is the first merge.",
    replace=(
        "bytes_of = [[byte] for byte in range(256)]",
        "bytes_of = [[byte] for byte in range(256)] + [[]]",
    ),
    keeps=0.65,
)
def counts_merges_from_257(): ...


@mistake(
    "bpe_decode",
    hint=(
        "Id -1 is no token, and Python takes the last one of a list for it. The docstring asks "
        "for a ValueError."
    ),
    replace=(
        "check_ids(ids, 256 + len(merges))",
        "check_ids(ids.clamp(min=0), 256 + len(merges))",
    ),
)
def wraps_around_at_0(): ...


@mistake(
    "bpe_decode",
    hint="An id that no merge has made is a mistake of the caller: ValueError.",
    replace=(
        """
        check_ids(ids, 256 + len(merges))
        bytes_of = [[byte] for byte in range(256)]
        """,
        """
        ids = ids % (256 + len(merges))
        bytes_of = [[byte] for byte in range(256)]
        """,
    ),
)
def wraps_ids_into_the_vocabulary(): ...


@mistake(
    "bpe_decode",
    hint="With three merges the last id is 258.",
    replace=[
        ("check_ids(ids, 256 + len(merges))", "check_ids(ids, 257 + len(merges))"),
        ("byte in bytes_of[token]]", "byte in (bytes_of + [[0]])[token]]"),
    ],
)
def knows_one_id_too_many(): ...


@mistake(
    "bpe_decode",
    hint="Bytes are uint8 in this course.",
    replace=("dtype=torch.uint8", "dtype=torch.int64"),
)
def returns_int64_bytes(): ...


@mistake(
    "bpe_decode",
    hint="An empty list becomes a tensor of floats, unless the dtype is said.",
    replace=(
        (
            "return torch.tensor([byte for token in ids.tolist() for byte in bytes_of[token]], "
            "dtype=torch.uint8)"
        ),
        """
        data = [byte for token in ids.tolist() for byte in bytes_of[token]]
        return torch.tensor(data, dtype=torch.uint8) if data else torch.tensor(data)
        """,
    ),
)
def returns_floats_where_there_is_nothing(): ...


@mistake(
    "bpe_decode",
    hint="A token need not be text: half a character is bytes like any other. Do not go "
    "through str.",
    replace=(
        (
            "return torch.tensor([byte for token in ids.tolist() for byte in bytes_of[token]], "
            "dtype=torch.uint8)"
        ),
        """
        data = bytes(byte for token in ids.tolist() for byte in bytes_of[token]).decode("utf-8", errors="ignore")
        return torch.tensor(list(data.encode()), dtype=torch.uint8)
        """,
    ),
)
def drops_bytes_that_are_no_text(): ...


@mistake(
    "bpe_decode",
    hint="Nothing stands between tokens: spaces are bytes of the tokens themselves.",
    replace=("for byte in bytes_of[token]]", "for byte in (*bytes_of[token], 32)]"),
)
def puts_a_space_between_tokens(): ...


@mistake(
    "bpe_decode",
    hint="The last token is missing.",
    replace=("for token in ids.tolist()", "for token in ids.tolist()[:-1]"),
    keeps=0.65,
)
def forgets_the_last_token(): ...


@mistake(
    "bpe_decode",
    hint="A token that comes twice has its bytes twice.",
    replace=("for token in ids.tolist()", "for token in dict.fromkeys(ids.tolist())"),
)
def gives_each_token_once(): ...


@mistake(
    "bpe_decode",
    hint="A token need not be text: half a character is bytes like any other. Do not go "
    "through str.",
    replace=(
        (
            "return torch.tensor([byte for token in ids.tolist() for byte in bytes_of[token]], "
            "dtype=torch.uint8)"
        ),
        """
        data = bytes(byte for token in ids.tolist() for byte in bytes_of[token]).decode("utf-8", errors="replace")
        return torch.tensor(list(data.encode()), dtype=torch.uint8)
        """,
    ),
)
def replaces_bytes_that_are_no_text(): ...


@mistake(
    "bpe_decode",
    hint="A token need not be text: half a character is bytes like any other. Do not go "
    "through str.",
    replace=(
        (
            "return torch.tensor([byte for token in ids.tolist() for byte in bytes_of[token]], "
            "dtype=torch.uint8)"
        ),
        """
        data = bytes(byte for token in ids.tolist() for byte in bytes_of[token]).decode("utf-8")
        return torch.tensor(list(data.encode()), dtype=torch.uint8)
        """,
    ),
)
def fails_on_bytes_that_are_no_text(): ...


@mistake(
    "bpe_decode",
    hint="A token need not be text, and each byte is a number of its own. As latin-1, bytes from 128 on "
    "become characters of two bytes.",
    replace=(
        (
            "return torch.tensor([byte for token in ids.tolist() for byte in bytes_of[token]], "
            "dtype=torch.uint8)"
        ),
        """
        text = "".join(chr(byte) for token in ids.tolist() for byte in bytes_of[token])
        return torch.tensor(list(text.encode()), dtype=torch.uint8)
        """,
    ),
)
def takes_bytes_for_characters(): ...


# ── gelu ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "gelu",
    hint="This is the exact GELU, with the error function. GPT-2 was trained with the "
    "approximation by tanh.",
    replace=(
        "0.5 * wide * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))",
        "0.5 * wide * (1 + torch.erf(wide / math.sqrt(2)))",
    ),
)
def is_the_exact_gelu(): ...


@mistake(
    "gelu",
    hint="x times sigmoid(1.702 x) is another, coarser approximation.",
    replace=(
        "0.5 * wide * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))",
        "wide * torch.sigmoid(1.702 * wide)",
    ),
)
def is_the_sigmoid_approximation(): ...


@mistake(
    "gelu",
    hint="This is SiLU, x times sigmoid(x).",
    replace=(
        "0.5 * wide * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))",
        "wide * torch.sigmoid(wide)",
    ),
)
def is_a_silu(): ...


@mistake(
    "gelu",
    hint="This is the ReLU of assignment 6.",
    replace=(
        "0.5 * wide * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))",
        "torch.relu(wide)",
    ),
)
def is_a_relu(): ...


@mistake(
    "gelu",
    hint="The cube inside the tanh is missing.",
    replace=("(wide + 0.044715 * wide**3)", "wide"),
)
def forgets_the_cubic_term(): ...


@mistake(
    "gelu",
    hint="The term is a cube. x² has lost the sign, so negative numbers come out wrong.",
    replace=("wide**3", "wide**2"),
)
def squares_instead(): ...


@mistake(
    "gelu",
    hint="The factor in front is the root of 2/π.",
    replace=("math.sqrt(2 / math.pi)", "2 / math.pi"),
)
def takes_two_over_pi(): ...


@mistake(
    "gelu",
    hint="It is the root of 2/π, not of π/2.",
    replace=("math.sqrt(2 / math.pi)", "math.sqrt(math.pi / 2)"),
)
def turns_the_fraction_over(): ...


@mistake(
    "gelu",
    hint="The constant is 0.044715, with a 0 behind the point and another 0 behind that.",
    replace=("0.044715", "0.44715"),
    keeps=0.65,
)
def mistypes_the_constant(): ...


@mistake(
    "gelu",
    hint="At large x the result should be x. Yours is 2x: a factor of 1/2 is missing.",
    replace=("0.5 * wide *", "wide *"),
    keeps=0.65,
)
def forgets_the_half(): ...


@mistake(
    "gelu",
    hint="1 + tanh: without the 1, negative numbers come out positive.",
    replace=("(1 + torch.tanh(", "(0 + torch.tanh("),
)
def forgets_the_one(): ...


@mistake(
    "gelu",
    hint="The root multiplies the sum of both terms.",
    replace=(
        "math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)",
        "(math.sqrt(2 / math.pi) * wide + 0.044715 * wide**3)",
    ),
    keeps=0.65,
)
def multiplies_the_root_with_x_alone(): ...


@mistake(
    "gelu",
    hint="50³ is infinite in float16. Half precision is computed in float32.",
    replace=(
        "wide = x if x.dtype in (torch.float32, torch.float64) else x.float()",
        "wide = x",
    ),
)
def computes_in_half_precision(): ...


@mistake(
    "gelu",
    hint="bfloat16 is half precision as well: widen it to float32.",
    replace=(
        "in (torch.float32, torch.float64)",
        "in (torch.float32, torch.float64, torch.bfloat16)",
    ),
)
def computes_in_bfloat16(): ...


@mistake(
    "gelu",
    hint="What came in half precision should come out in half precision.",
    shows=has_dtype("float32"),
    replace=(".to(x.dtype)", ""),
)
def activates_into_float32(): ...


@mistake(
    "gelu",
    hint="No gradient comes back: is something detached, or made without grad?",
    replace=("(wide + 0.044715 * wide**3)", "(wide + 0.044715 * wide**3).detach()"),
)
def cuts_the_gradient(): ...


@mistake(
    "gelu",
    hint="The caller's x is another one after your call. Names with _ at the end, such as mul_, "
    "write in place, and float() of a float32 tensor is that tensor itself, no copy.",
    replace=(
        """
        wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
        return (0.5 * wide * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))).to(x.dtype)
        """,
        """
        wide = x.float()
        half = 0.5 * wide
        inner = wide.mul_(1 + 0.044715 * wide * wide).mul_(math.sqrt(2 / math.pi))
        return (half * inner.tanh_().add_(1)).to(x.dtype)
        """,
    ),
)
def activates_in_place(): ...


# ── language_model
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "language_model",
    hint="The bias of the queries is missing.",
    replace=(' + p["b_q"]', ""),
)
def forgets_b_q(): ...


@mistake(
    "language_model",
    hint="The bias of the values is missing.",
    replace=(' + p["b_v"]', ""),
)
def forgets_b_v(): ...


@mistake(
    "language_model",
    hint="The bias of the attention's output is missing.",
    replace=(' + p["b_o"]', ""),
)
def forgets_b_o(): ...


@mistake(
    "language_model",
    hint="The first bias of the MLP is missing.",
    replace=(' + p["b1"]', ""),
)
def forgets_b1(): ...


@mistake(
    "language_model",
    hint="The second bias of the MLP is missing.",
    replace=(' + p["b2"]', ""),
)
def forgets_b2(): ...


@mistake(
    "language_model",
    hint="The first bias of the MLP comes before the activation.",
    replace=('gelu(h @ p["w1"] + p["b1"])', '(gelu(h @ p["w1"]) + p["b1"])'),
)
def adds_b1_after_the_gelu(): ...


@mistake(
    "language_model",
    hint="The activation is your gelu; this is a ReLU.",
    replace=("gelu(", "torch.relu("),
)
def has_a_relu(): ...


@mistake(
    "language_model",
    hint="The activation is GPT-2's gelu, the one that you wrote, not torch's exact one.",
    replace=("gelu(", "torch.nn.functional.gelu("),
)
def has_the_exact_gelu(): ...


@mistake(
    "language_model",
    hint="lnf_gamma plays no part in your answer. In front of the head stands a norm, with lnf's "
    "parameters.",
    shows=ignores("params.lnf_gamma"),
    replace=('layer_norm(x, params["lnf_gamma"], params["lnf_beta"]) @', "x @"),
)
def forgets_the_last_norm(): ...


@mistake(
    "language_model",
    hint="The table of positions is not read. Without it the model cannot tell in which order the "
    "tokens came.",
    shows=ignores("params.positions"),
    replace=(' + params["positions"][start : start + n]', ""),
)
def forgets_the_positions(): ...


@mistake(
    "language_model",
    hint="Where the cache holds tokens, the positions of the new ones go on at cache.length. Yours "
    "begin at 0 again.",
    replace=('params["positions"][start : start + n]', 'params["positions"][:n]'),
)
def positions_begin_at_0_again(): ...


@mistake(
    "language_model",
    hint="Positions count places. You look them up by the token.",
    replace=(
        'params["positions"][start : start + n]',
        'params["positions"][ids.clamp(max=config.context_length - 1)]',
    ),
)
def looks_positions_up_by_token(): ...


@mistake(
    "language_model",
    hint="The norm stands in front of the attention, inside the addition; here it comes after "
    "(post-norm).",
    replace=(
        'h = layer_norm(x, p["ln1_gamma"], p["ln1_beta"])',
        'x = h = layer_norm(x, p["ln1_gamma"], p["ln1_beta"])',
    ),
)
def normalizes_after_the_addition(): ...


@mistake(
    "language_model",
    hint="The MLP has a norm of its own, ln2.",
    replace=(
        'layer_norm(x, p["ln2_gamma"], p["ln2_beta"])',
        'layer_norm(x, p["ln1_gamma"], p["ln1_beta"])',
    ),
)
def uses_the_first_norm_twice(): ...


@mistake(
    "language_model",
    hint="What the MLP computes is added to the stream; yours replaces it.",
    replace=("x = x + gelu(", "x = gelu("),
)
def forgets_the_residual_of_the_mlp(): ...


@mistake(
    "language_model",
    hint="What the attention computes is added to the stream; yours replaces it.",
    replace=("x = x + merge_heads(", "x = merge_heads("),
)
def forgets_the_residual_of_the_attention(): ...


@mistake(
    "language_model",
    hint="Only the first block is used.",
    replace=('enumerate(params["blocks"])', 'enumerate(params["blocks"][:1])'),
)
def runs_the_first_block_only(): ...


@mistake(
    "language_model",
    hint=(
        "After a step the cache's length is not the old length plus the new tokens: it has moved "
        "more than once. advance(n) belongs behind the last layer, once."
    ),
    replace=[
        (
            """
        if cache is not None:
            cache.advance(n)  # once, not once a layer
        """,
            """
        if cache is not None and not params["blocks"]:
            cache.advance(n)  # once, not once a layer
        """,
        ),
        (
            "k, v = cache.append(layer, k, v)  # [B, H, start + N, d]",
            """
        k, v = cache.append(layer, k, v)
        cache.advance(n)  # [B, H, start + N, d]
        """,
        ),
    ],
)
def advances_in_every_layer(): ...


@mistake(
    "language_model",
    hint="After the last layer the cache must advance; otherwise the next chunk is written "
    "over this one.",
    replace=(
        """
        if cache is not None:
            cache.advance(n)  # once, not once a layer
        """,
        """
        if cache is not None:
            cache.advance(0)  # once, not once a layer
        """,
    ),
)
def never_advances(): ...


@mistake(
    "language_model",
    hint="The cache advances by the number of new tokens, not by 1.",
    replace=("cache.advance(n)", "cache.advance(1)"),
)
def advances_by_one(): ...


@mistake(
    "language_model",
    hint="Every layer has keys and values of its own: append takes the layer's number.",
    replace=("cache.append(layer, k, v)", "cache.append(0, k, v)"),
)
def appends_to_layer_0(): ...


@mistake(
    "language_model",
    hint="append returns the past with the chunk. You attend to the chunk alone.",
    replace=("k, v = cache.append(layer, k, v)", "cache.append(layer, k, v)"),
)
def ignores_what_the_cache_returns(): ...


@mistake(
    "language_model",
    hint="append takes the keys and then the values.",
    replace=(
        "k, v = cache.append(layer, k, v)",
        "v, k = cache.append(layer, v, k)[::-1] if cache.length else cache.append(layer, v, k)",
    ),
)
def stores_values_as_keys(): ...


@mistake(
    "language_model",
    hint="These are probabilities. The function returns logits.",
    replace=[
        ('params["embed"].T', 'params["embed"].T * 1.0'),
        (
            'return layer_norm(x, params["lnf_gamma"], params["lnf_beta"]) @',
            (
                'return (lambda z: torch.softmax(z, dim=-1))(layer_norm(x, params["lnf_gamma"], '
                'params["lnf_beta"])) @'
            ),
        ),
    ],
)
def answers_with_probabilities(): ...


@mistake(
    "language_model",
    hint="A tied embedding learns from both ends. Yours is cut off at the output.",
    replace=('params["embed"].T', 'params["embed"].detach().T'),
)
def detaches_the_head(): ...


@mistake(
    "language_model",
    hint="The embedding is multiplied by the root of D. GPT-2 does not do that.",
    replace=(
        '+ params["positions"]',
        '* math.sqrt(config.d_model) + params["positions"]',
    ),
)
def scales_the_embedding(): ...


@mistake(
    "language_model",
    hint="Each position sees the whole text, the token that it should predict included.",
    shows=depends_on_later("ids", 1),
    replace=(
        "causal_attention(q, k, v)",
        "(torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) @ v)",
    ),
)
def sees_the_future(): ...


@mistake(
    "language_model",
    hint="Your triangle starts at the top left, as is_causal of torch's "
    "scaled_dot_product_attention does: behind a cache, one new query sees the oldest key only. "
    "The newest query belongs to the newest key.",
    replace=(
        "causal_attention(q, k, v)",
        "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)",
    ),
)
def triangle_at_the_top_left(): ...


@mistake(
    "language_model",
    hint="Behind a cache, a chunk of several tokens sees the oldest keys: is_causal of torch's "
    "scaled_dot_product_attention starts its triangle at the top left. The newest query belongs to "
    "the newest key.",
    replace=(
        "causal_attention(q, k, v)",
        "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=q.shape[-2] > 1)",
    ),
)
def triangle_at_the_top_left_of_a_chunk(): ...


@mistake(
    "language_model",
    hint="Scores are divided by the root of the head's width; causal_attention does that.",
    replace=(
        "causal_attention(q, k, v)",
        "causal_attention(q * math.sqrt(q.shape[-1]), k, v)",
    ),
)
def forgets_the_root_of_d(): ...


@mistake(
    "language_model",
    hint="The number of heads is the config's.",
    replace=[
        (
            'q = split_heads(h @ p["w_q"] + p["b_q"], config.num_heads)',
            'q = split_heads(h @ p["w_q"] + p["b_q"], 2)',
        ),
        (
            'k = split_heads(h @ p["w_k"] + p["b_k"], config.num_heads)',
            'k = split_heads(h @ p["w_k"] + p["b_k"], 2)',
        ),
        (
            'v = split_heads(h @ p["w_v"] + p["b_v"], config.num_heads)',
            'v = split_heads(h @ p["w_v"] + p["b_v"], 2)',
        ),
    ],
)
def splits_heads_by_two(): ...


@mistake(
    "language_model",
    hint="The tokens in the cache count too: seven in it and three new ones do not fit into a "
    "context of nine.",
    replace=("if start + n > config.context_length:", "if n > config.context_length:"),
)
def counts_the_chunk_alone(): ...


@mistake(
    "language_model",
    hint="An id outside the vocabulary should be a ValueError. -1 would be the last word, "
    "without a sound.",
    replace=(
        '(params["embed"], ids)',
        '(params["embed"], ids.clamp(0, config.vocab_size - 1))',
    ),
)
def takes_any_id(): ...


@mistake(
    "language_model",
    hint="An id outside the vocabulary gets through. Every row of the batch can have one: look at all "
    "of them.",
    replace=(
        'x = embed(params["embed"], ids)',
        """
        check_ids(ids[:1], config.vocab_size)
        x = params["embed"][ids]""",
    ),
)
def checks_the_first_row_of_ids(): ...


@mistake(
    "language_model",
    hint="Refuse before you begin: here a wrong id has been stored in the cache already.",
    replace=[
        (
            '(params["embed"], ids)',
            '(params["embed"], ids.clamp(0, config.vocab_size - 1))',
        ),
        (
            "return layer_norm(x, params",
            "check_ids(ids, config.vocab_size)\nreturn layer_norm(x, params",
        ),
    ],
)
def checks_ids_at_the_end(): ...


@mistake(
    "language_model",
    hint="append takes the keys and then the values, and returns them in this order. Yours are "
    "exchanged at both ends.",
    replace=("k, v = cache.append(layer, k, v)", "v, k = cache.append(layer, v, k)"),
)
def exchanges_keys_and_values_at_the_cache(): ...


@mistake(
    "language_model",
    hint="The dtype of the weights should come out.",
    shows=has_dtype("float32"),
    replace=(
        'return layer_norm(x, params["lnf_gamma"], params["lnf_beta"]) @ params["embed"].T',
        (
            'return layer_norm(x.float(), params["lnf_gamma"].float(), '
            'params["lnf_beta"].float()) @ '
            'params["embed"].float().T'
        ),
    ),
    keeps=0.65,
)
def gives_logits_in_float32(): ...


@mistake(
    "language_model",
    hint="The scale is the root of the width of one head, d = D / H. Yours is the root of D.",
    replace=(
        "causal_attention(q, k, v)",
        "causal_attention(q / math.sqrt(config.num_heads), k, v)",
    ),
)
def scales_by_the_width_of_the_model(): ...


# ── sample_windows
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "sample_windows",
    hint="The targets are two tokens further. The shift happens once.",
    replace=[
        ("torch.arange(length + 1)]", "torch.arange(length + 2)]"),
        (
            "torch.randint(len(ids) - length,",
            "torch.randint(max(len(ids) - length - 1, 1),",
        ),
        ("windows[:, :-1], windows[:, 1:]", "windows[:, :-2], windows[:, 2:]"),
    ],
)
def shifts_twice(): ...


@mistake(
    "sample_windows",
    hint="Inputs and targets are the same tokens: the model would learn to repeat.",
    replace=("windows[:, :-1], windows[:, 1:]", "windows[:, :-1], windows[:, :-1]"),
)
def gives_inputs_as_targets(): ...


@mistake(
    "sample_windows",
    hint="You exchanged inputs and targets: the targets come later in the text.",
    replace=("windows[:, :-1], windows[:, 1:]", "windows[:, 1:], windows[:, :-1]"),
)
def shifts_the_other_way(): ...


@mistake(
    "sample_windows",
    hint="Rolling a window gives its last token the first one as a target.",
    replace=(
        "windows[:, :-1], windows[:, 1:]",
        "windows[:, :-1], windows[:, :-1].roll(-1, dims=1)",
    ),
)
def rolls_the_target(): ...


@mistake(
    "sample_windows",
    hint="The last valid start is N - L - 1, and torch.randint leaves its upper end out.",
    shows=part(0, lacks("ids", -2)) & part(1, lacks("ids", -1)),
    replace=("len(ids) - length, (batch,)", "max(len(ids) - length - 1, 1), (batch,)"),
)
def never_takes_the_last_start(): ...


@mistake(
    "sample_windows",
    hint="The first token of the text may begin a window.",
    replace=(
        "torch.randint(len(ids) - length, (batch,), generator=dice)",
        "torch.randint(min(1, len(ids) - length - 1), len(ids) - length, (batch,), generator=dice)",
    ),
)
def never_takes_the_first_start(): ...


@mistake(
    "sample_windows",
    hint="Windows may begin anywhere, not only at multiples of L.",
    replace=(
        "torch.randint(len(ids) - length, (batch,), generator=dice)",
        "torch.randint((len(ids) - length - 1) // length + 1, (batch,), generator=dice) * length",
    ),
)
def starts_at_multiples_of_the_length(): ...


@mistake(
    "sample_windows",
    hint="All rows are the same window: each row needs a start of its own.",
    replace=("(batch,), generator=dice)", "(1,), generator=dice).expand(batch)"),
)
def gives_all_rows_one_start(): ...


@mistake(
    "sample_windows",
    hint="No start comes twice before all have come once. Rows are independent: what was drawn "
    "is put back.",
    replace=(
        "torch.randint(len(ids) - length, (batch,), generator=dice)",
        "torch.cat([torch.randperm(len(ids) - length, generator=dice) for _ in "
        "range(batch)])[:batch]",
    ),
)
def puts_no_start_back(): ...


@mistake(
    "sample_windows",
    hint="Rows lie one behind the other in the text. They are drawn independently.",
    replace=(
        "windows = ids[starts[:, None] + torch.arange(length + 1)]  # [B, L + 1]",
        """
        starts = (starts[:1] + torch.arange(batch)) % (len(ids) - length) if batch > 8 else starts
        windows = ids[starts[:, None] + torch.arange(length + 1)]  # [B, L + 1]
        """,
    ),
)
def goes_on_from_row_to_row(): ...


@mistake(
    "sample_windows",
    hint="The seed is not used: every batch is the same.",
    shows=ignores("seed"),
    replace=("manual_seed(seed)", "manual_seed(0)"),
)
def ignores_the_seed(): ...


@mistake(
    "sample_windows",
    hint="You seed and use torch's own random state. Whoever draws next gets other numbers: use a "
    "torch.Generator.",
    replace=(
        "dice = torch.Generator().manual_seed(seed)",
        "dice = torch.manual_seed(seed)",
    ),
)
def throws_torchs_own_dice(): ...


@mistake(
    "sample_windows",
    hint="Equal seeds should give equal windows.",
    replace=("manual_seed(seed)", "manual_seed(torch.randint(2**40, ()).item())"),
)
def draws_without_a_seed(): ...


@mistake(
    "sample_windows",
    hint="A text of L + 1 tokens has one window.",
    replace=("len(ids) < length + 1", "len(ids) < length + 2"),
)
def refuses_the_shortest_text(): ...


@mistake(
    "sample_windows",
    hint="A text that is too short gets windows all the same. It should be refused.",
    replace=(
        "if batch < 1 or length < 1 or len(ids) < length + 1:",
        """
        if len(ids) < length + 1:
            ids = ids.repeat(1 + length // max(len(ids), 1))
        if batch < 1 or length < 1:
        """,
    ),
)
def fills_short_texts_up(): ...


@mistake(
    "sample_windows",
    hint="A pair is asked for: inputs and targets.",
    replace=("return windows[:, :-1], windows[:, 1:]", "return windows"),
    keeps=0.65,
)
def returns_one_tensor(): ...


@mistake(
    "sample_windows",
    hint="Rows have L tokens, and L targets. Yours have one less.",
    replace=("torch.arange(length + 1)", "torch.arange(length)"),
    keeps=0.65,
)
def makes_windows_too_short(): ...


# ── learning_rate
# ─────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "learning_rate",
    hint="The warm-up is divided by W + 1, as in nanoGPT: it ends below the peak. Here step t has the "
    "share (t + 1) / W.",
    replace=("(step + 1) / warmup", "(step + 1) / (warmup + 1)"),
)
def divides_the_warm_up_by_one_more(): ...


@mistake(
    "learning_rate",
    hint="The first step has a rate of 0: a step that does nothing. It is (t + 1) / W.",
    replace=("peak * (step + 1) / warmup", "peak * step / warmup"),
)
def starts_at_0(): ...


@mistake(
    "learning_rate",
    hint="The warm-up begins at peak / W, whatever the floor is.",
    replace=(
        "return peak * (step + 1) / warmup",
        "return floor + (peak - floor) * (step + 1) / warmup",
    ),
)
def warms_up_from_the_floor(): ...


@mistake(
    "learning_rate",
    hint="The warm-up is missing: the first steps are as large as the peak.",
    replace=("return peak * (step + 1) / warmup", "return float(peak)"),
)
def has_no_warm_up(): ...


@mistake(
    "learning_rate",
    hint="This is a straight line. Half a cosine is flat at both ends.",
    replace=("(1 + math.cos(math.pi * progress)) / 2", "(1 - progress)"),
)
def falls_in_a_line(): ...


@mistake(
    "learning_rate",
    hint="A quarter of a cosine falls steepest at the end. Half a cosine: from cos 0 to cos π.",
    replace=(
        "(1 + math.cos(math.pi * progress)) / 2",
        "math.cos(math.pi * progress / 2)",
    ),
)
def falls_along_a_quarter(): ...


@mistake(
    "learning_rate",
    hint="cos(2πx) comes back to the peak at the end.",
    replace=("math.pi * progress", "2 * math.pi * progress"),
)
def runs_a_whole_cosine(): ...


@mistake(
    "learning_rate",
    hint="The cosine begins after the warm-up, at its top. Progress is (t - W) / (T - W).",
    replace=("(step - warmup) / (total - warmup)", "step / total"),
)
def counts_the_warm_up_in(): ...


@mistake(
    "learning_rate",
    hint="Between W and T lie T - W steps: yours does not reach the floor.",
    replace=("(step - warmup) / (total - warmup)", "(step - warmup) / total"),
)
def divides_by_the_total(): ...


@mistake(
    "learning_rate",
    hint="After step T the cosine climbs again. The floor is where it stays.",
    replace=("if step >= total:", "if step < 0:"),
)
def goes_up_again(): ...


@mistake(
    "learning_rate",
    hint="After the end the rate is the floor, not 0.",
    shows=ignores("floor"),
    replace=("return float(floor)", "return 0.0"),
)
def ends_at_0(): ...


@mistake(
    "learning_rate",
    hint="The cosine goes down to the floor, not to 0.",
    shows=ignores("floor"),
    replace=("return floor + (peak - floor) * (1", "return peak * (1"),
)
def forgets_the_floor(): ...


@mistake(
    "learning_rate",
    hint="Peak minus floor is what falls. Yours begins above the peak.",
    replace=("floor + (peak - floor) *", "floor + peak *"),
)
def adds_the_floor(): ...


@mistake(
    "learning_rate",
    hint="math.cos takes radians, and you give it degrees.",
    replace=("math.pi * progress", "180 * progress"),
)
def takes_degrees(): ...


@mistake(
    "learning_rate",
    hint="A warm-up of 0 steps is allowed, and the first step is at the peak.",
    replace=("if warmup < 0 or total <= warmup:", "if warmup <= 0 or total <= warmup:"),
)
def divides_by_a_warm_up_of_0(): ...


@mistake(
    "learning_rate",
    hint="A warm-up as long as the training leaves nothing for the cosine. The docstring asks for "
    "a ValueError.",
    replace=[
        ("if warmup < 0 or total <= warmup:", "if total < 0:"),
        ("(total - warmup)", "max(total - warmup, 1)"),
    ],
)
def takes_any_warm_up(): ...


# ── clip_gradients
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "clip_gradients",
    hint="Each tensor is bounded for itself. The norm is that of all gradients together, as one "
    "long vector.",
    replace=(
        "(g * factor).to(own.dtype) for g",
        "(g * min(1.0, max_norm / max(g.norm().item(), 1e-30))).to(own.dtype) for g",
    ),
)
def bounds_each_tensor(): ...


@mistake(
    "clip_gradients",
    hint="You cut every number at the bound: the direction changes. All numbers get the "
    "same factor.",
    replace=("(g * factor)", "g.clamp(-max_norm, max_norm)"),
)
def bounds_each_number(): ...


@mistake(
    "clip_gradients",
    hint="Small gradients are left alone: the factor is at most 1.",
    replace=("min(1.0, max_norm / norm)", "max_norm / norm"),
)
def scales_up(): ...


@mistake(
    "clip_gradients",
    hint="The norms of the tensors are added. The squares are, and then the root is taken.",
    replace=(
        "math.sqrt(sum(g.pow(2).sum().item() for g in wide))",
        "float(sum(g.norm().item() for g in wide))",
    ),
)
def adds_norms(): ...


@mistake(
    "clip_gradients",
    hint="This is the square of the norm.",
    replace=(
        "math.sqrt(sum(g.pow(2).sum().item() for g in wide))",
        "float(sum(g.pow(2).sum().item() for g in wide))",
    ),
    keeps=0.65,
)
def returns_the_squared_norm(): ...


@mistake(
    "clip_gradients",
    hint="The norm is the root of the sum of squares, not of their mean.",
    replace=(
        "math.sqrt(sum(g.pow(2).sum().item() for g in wide))",
        "math.sqrt(sum(g.pow(2).sum().item() for g in wide) / max(sum(g.numel() for g in wide), 1))",
    ),
)
def takes_the_mean(): ...


@mistake(
    "clip_gradients",
    hint="This is the largest absolute value. The norm is the root of the sum of squares.",
    replace=(
        "math.sqrt(sum(g.pow(2).sum().item() for g in wide))",
        "float(max(g.abs().max().item() for g in wide))",
    ),
)
def takes_the_largest_number(): ...


@mistake(
    "clip_gradients",
    hint="This is the sum of absolute values. The norm is the root of the sum of squares.",
    replace=(
        "math.sqrt(sum(g.pow(2).sum().item() for g in wide))",
        "float(sum(g.abs().sum().item() for g in wide))",
    ),
)
def sums_absolute_values(): ...


@mistake(
    "clip_gradients",
    hint="The norm that is returned is the one before the clipping: one wants to see the outliers.",
    replace=(
        "zip(wide, gradients, strict=True)], norm",
        "zip(wide, gradients, strict=True)], norm * factor",
    ),
)
def returns_the_norm_afterwards(): ...


@mistake(
    "clip_gradients",
    hint="The norm should be a Python float.",
    replace=(
        "zip(wide, gradients, strict=True)], norm",
        "zip(wide, gradients, strict=True)], torch.tensor(norm)",
    ),
)
def returns_a_tensor_for_the_norm(): ...


@mistake(
    "clip_gradients",
    hint="Gradients that are all 0 have a norm of 0, and 0 / 0 is not a number.",
    replace=(
        "factor = min(1.0, max_norm / norm) if norm > 0 else 1.0",
        "factor = max_norm / max(norm, max_norm) if norm > 0 else math.nan",
    ),
)
def divides_by_0(): ...


@mistake(
    "clip_gradients",
    hint="You scale the gradients that came in. New tensors are asked for.",
    replace=("(g * factor).to(own.dtype) for g", "own.mul_(factor) for g"),
)
def changes_the_gradients(): ...


@mistake(
    "clip_gradients",
    hint="300² is infinite in float16: square and sum in float32.",
    replace=(
        "g if g.dtype == torch.float64 else g.float() for g in gradients",
        "g for g in gradients",
    ),
)
def squares_in_half_precision(): ...


@mistake(
    "clip_gradients",
    hint="Squares of bfloat16 are summed as they are, with two or three digits: widen half "
    "precision to float32 first.",
    replace=(
        "g if g.dtype == torch.float64 else g.float()",
        "g if g.dtype in (torch.float64, torch.bfloat16) else g.float()",
    ),
)
def squares_in_bfloat16(): ...


@mistake(
    "clip_gradients",
    hint="Gradients that came in half precision should come out in half precision.",
    replace=("(g * factor).to(own.dtype)", "g * factor"),
)
def clips_into_float32(): ...


@mistake(
    "clip_gradients",
    hint="A norm that is NaN or infinite makes every gradient NaN, and then every weight. The "
    "docstring asks for a ValueError.",
    replace=("if not math.isfinite(norm):", "if norm < 0:"),
)
def lets_nan_through(): ...


@mistake(
    "clip_gradients",
    hint="A bound of 0 or below gets an answer. The docstring asks for a ValueError.",
    replace=("if not max_norm > 0:", "if max_norm is None:"),
)
def takes_any_bound(): ...


@mistake(
    "clip_gradients",
    hint="c / n, and nothing added to n: small gradients would come out below the bound.",
    replace=("max_norm / norm)", "max_norm / (norm + 1e-6))"),
)
def leaves_a_bit_of_slack(): ...


@mistake(
    "clip_gradients",
    hint="Gradients below the bound stay as they are: yours are divided by their norm.",
    replace=(
        "min(1.0, max_norm / norm) if norm > 0 else 1.0",
        "(max_norm if norm > max_norm else 1.0) / norm if norm > 0 else 1.0",
    ),
)
def normalizes_small_gradients(): ...


# ── adamw_step
# ────────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "adamw_step",
    hint=(
        "The decay goes through the averages and is divided by the root. That is Adam with L2; in "
        "AdamW it is decoupled."
    ),
    replace=[
        (
            "m = beta1 * m + (1 - beta1) * g",
            """
        g = g + (weight_decay if theta.dim() >= 2 else 0.0) * theta
        m = beta1 * m + (1 - beta1) * g
        """,
        ),
        ("lr * (update + decay * theta)", "lr * update"),
    ],
)
def puts_the_decay_into_the_gradient(): ...


@mistake(
    "adamw_step",
    hint="Only tensors with two or more axes decay; biases and the norms' scales do not.",
    replace=("weight_decay if theta.dim() >= 2 else 0.0", "weight_decay"),
)
def decays_everything(): ...


@mistake(
    "adamw_step",
    keeps=0.5,
    hint="The weight decay is missing.",
    replace=("weight_decay if theta.dim() >= 2 else 0.0", "0.0"),
)
def decays_nothing(): ...


@mistake(
    "adamw_step",
    hint="Tensors with two axes or more decay, also those with three.",
    replace=("theta.dim() >= 2", "theta.dim() == 2"),
)
def decays_matrices_only(): ...


@mistake(
    "adamw_step",
    hint="You have it the other way round: matrices decay, vectors do not.",
    replace=("theta.dim() >= 2", "theta.dim() < 2"),
    keeps=0.65,
)
def decays_vectors_only(): ...


@mistake(
    "adamw_step",
    hint="A weight shrinks by lr times lambda a step. Yours forgets the lr.",
    replace=(
        "theta - lr * (update + decay * theta)",
        "theta - lr * update - decay * theta",
    ),
)
def decays_without_the_rate(): ...


@mistake(
    "adamw_step",
    hint="The decay has the wrong sign: weights grow.",
    replace=("update + decay * theta", "update - decay * theta"),
)
def decays_upwards(): ...


@mistake(
    "adamw_step",
    hint="The decay is that of the weight before the step; yours shrinks what has just "
    "been stepped.",
    replace=(
        "theta - lr * (update + decay * theta)",
        "(theta - lr * update) * (1 - lr * decay)",
    ),
)
def decays_after_the_step(): ...


@mistake(
    "adamw_step",
    hint="The averages begin at 0 and are too small at first. Dividing by 1 - beta^t is missing.",
    replace=(
        "m / (1 - beta1**t) / (torch.sqrt(v / (1 - beta2**t)) + eps)",
        "m / (torch.sqrt(v) + eps)",
    ),
)
def corrects_no_bias(): ...


@mistake(
    "adamw_step",
    hint="v begins at 0 as well: both averages are corrected.",
    replace=("v / (1 - beta2**t)", "v"),
)
def corrects_m_only(): ...


@mistake(
    "adamw_step",
    hint="The step that is being made has number t = 1 at first. 1 - beta^0 is 0.",
    replace=[
        ('betas, state["step"] + 1', 'betas, max(state["step"], 1)'),
        ('{"step": t, "m": new_m', '{"step": state["step"] + 1, "m": new_m'),
    ],
)
def corrects_from_step_0(): ...


@mistake(
    "adamw_step",
    hint="t grows from step to step, and with it the correction goes away.",
    replace=[("(1 - beta1**t)", "(1 - beta1)"), ("(1 - beta2**t)", "(1 - beta2)")],
)
def corrects_always_as_in_step_1(): ...


@mistake(
    "adamw_step",
    hint="The state's step should be the number of steps made.",
    replace=('{"step": t,', '{"step": state["step"],'),
)
def forgets_to_count(): ...


@mistake(
    "adamw_step",
    hint="beta_1 belongs to the gradient, beta_2 to its square.",
    replace=("(beta1, beta2), t", "(beta2, beta1), t"),
)
def exchanges_the_betas(): ...


@mistake(
    "adamw_step",
    hint="m keeps beta_1 of the old average and takes 1 - beta_1 of the gradient.",
    replace=("m = beta1 * m + (1 - beta1) * g", "m = (1 - beta1) * m + beta1 * g"),
    keeps=0.65,
)
def averages_the_gradient_the_wrong_way(): ...


@mistake(
    "adamw_step",
    hint="The average of the squares is used without its root.",
    replace=("torch.sqrt(v / (1 - beta2**t))", "(v / (1 - beta2**t))"),
)
def divides_by_the_square(): ...


@mistake(
    "adamw_step",
    hint="eps stands outside the root.",
    replace=(
        "(torch.sqrt(v / (1 - beta2**t)) + eps)",
        "torch.sqrt(v / (1 - beta2**t) + eps)",
    ),
)
def puts_eps_inside_the_root(): ...


@mistake(
    "adamw_step",
    hint="v is the average of the gradient's squares.",
    replace=("(1 - beta2) * g.pow(2)", "(1 - beta2) * g.abs()"),
)
def averages_gradients_not_squares(): ...


@mistake(
    "adamw_step",
    hint="The step is made of the averaged gradient, m, not of the gradient.",
    replace=("update = m / (1 - beta1**t)", "update = g"),
)
def takes_the_gradient_itself(): ...


@mistake(
    "adamw_step",
    hint="The step goes with the gradient: uphill.",
    replace=("theta - lr * (update", "theta + lr * (update"),
)
def goes_uphill(): ...


@mistake(
    "adamw_step",
    hint="The averages of the old state are changed in place. The old state must stay usable.",
    replace=[
        ('"v": zeros}', '"v": [0 * tensor for tensor in tensors]}'),
        ("m = beta1 * m + (1 - beta1) * g", "m = m.mul_(beta1).add_((1 - beta1) * g)"),
    ],
)
def writes_into_the_state(): ...


@mistake(
    "adamw_step",
    hint="The parameters that came in are changed. New tensors are asked for.",
    replace=(
        "new_tensors.append(theta - lr * (update + decay * theta))",
        "new_tensors.append(theta.sub_(lr * (update + decay * theta)))",
    ),
)
def writes_into_the_parameters(): ...


@mistake(
    "adamw_step",
    hint="Every step begins with new averages: the state that came in is not used.",
    replace=("if state is None:", "if True:"),
)
def forgets_the_state(): ...


@mistake(
    "adamw_step",
    hint="Lists of different lengths get an answer: zip stops at the shorter one without a word. "
    "The docstring asks for a ValueError.",
    replace=[
        ("if len(tensors) != len(gradients):", "if False:"),
        ('state["v"], strict=True)', 'state["v"])'),
    ],
)
def takes_lists_of_different_lengths(): ...


@mistake(
    "adamw_step",
    hint="With nothing passed, betas are 0.9 and 0.95 and the decay is 0.1, as in the signature. "
    "Yours are the library's.",
    replace=[
        ("(beta1, beta2), t", "(beta1, beta2), weight_decay, t"),
        (
            'betas, state["step"] + 1',
            (
                "(betas if betas != (0.9, 0.95) else (0.9, 0.999)), weight_decay if weight_decay "
                "!= 0.1 else "
                '0.01, state["step"] + 1'
            ),
        ),
    ],
)
def has_other_defaults(): ...


# ── perplexity
# ────────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "perplexity",
    hint="This is the mean loss. The perplexity is its exponential.",
    shows=is_what("log"),
    replace=("return math.exp(loss / (len(ids) - 1))", "return loss / (len(ids) - 1)"),
    keeps=0.65,
)
def returns_the_loss(): ...


@mistake(
    "perplexity",
    hint="The loss is in nats: exp, not powers of 2.",
    replace=("math.exp(loss / (len(ids) - 1))", "2 ** (loss / (len(ids) - 1))"),
    keeps=0.65,
)
def takes_powers_of_2(): ...


@mistake(
    "perplexity",
    hint="You divide by N. There are N - 1 targets: nothing predicts the first token.",
    replace=("loss / (len(ids) - 1)", "loss / len(ids)"),
    keeps=0.65,
)
def divides_by_all_tokens(): ...


@mistake(
    "perplexity",
    hint="The mean is over tokens. A short last window may not weigh as much as the others.",
    replace=[
        (
            "loss -= log_p.gather(1, targets[:, None]).double().sum().item()",
            "loss -= log_p.gather(1, targets[:, None]).double().mean().item()",
        ),
        ("loss / (len(ids) - 1)", "loss / len(range(0, len(ids) - 1, window))"),
    ],
)
def averages_the_windows(): ...


@mistake(
    "perplexity",
    hint="This is the mean of the windows' perplexities. Average losses over tokens, then "
    "take exp once.",
    replace=[
        (
            "loss -= log_p.gather(1, targets[:, None]).double().sum().item()",
            "loss += len(targets) * math.exp(-log_p.gather(1, targets[:, "
            "None]).double().mean().item())",
        ),
        ("math.exp(loss / (len(ids) - 1))", "loss / (len(ids) - 1)"),
    ],
)
def averages_the_perplexities(): ...


@mistake(
    "perplexity",
    hint="The last window may be shorter, and its targets count like all others.",
    replace=[
        (
            "range(0, len(ids) - 1, window)",
            "range(0, max(len(ids) - window, 1), window)",
        ),
        (
            "loss / (len(ids) - 1)",
            "loss / max((len(ids) - 1) // window * window, min(window, len(ids) - 1))",
        ),
    ],
)
def drops_the_last_window(): ...


@mistake(
    "perplexity",
    hint="The last token of a window is the first input of the next. Yours is never a target.",
    replace=[
        ("range(0, len(ids) - 1, window)", "range(0, len(ids) - 1, window + 1)"),
        (
            "loss / (len(ids) - 1)",
            "loss / (len(ids) - 1 - (len(ids) - 2) // (window + 1))",
        ),
    ],
    keeps=0.65,
)
def loses_the_tokens_on_the_seams(): ...


@mistake(
    "perplexity",
    hint="Each token is a target once. Your windows overlap, and some count twice.",
    replace=[
        (
            "range(0, len(ids) - 1, window)",
            "range(0, len(ids) - 1, max(window - 1, 1))",
        ),
        (
            "loss / (len(ids) - 1)",
            "loss / sum(min(window, len(ids) - 1 - s) for s in range(0, len(ids) - 1, "
            "max(window - 1, 1)))",
        ),
    ],
)
def lets_windows_overlap(): ...


@mistake(
    "perplexity",
    hint="The logits at a place predict the next token; you ask for the one that was read.",
    replace=[
        (
            "inputs, targets = ids[start : start + window], ids[start + 1 : start + window + 1]",
            """
        inputs, targets = ids[start : start + window], ids[start + 1 : start + window + 1]
        own = inputs[: len(targets)]
        """,
        ),
        ("targets[:, None]", "own[:, None]"),
    ],
)
def asks_for_the_token_that_was_read(): ...


@mistake(
    "perplexity",
    hint="A window begins anew: what stands before it is not seen.",
    replace=(
        "language_model(inputs[None], params, config)[0]",
        (
            "language_model(ids[max(0, start + len(inputs) - config.context_length) : start + "
            "len(inputs)][None], params, config)[0, -len(inputs) :]"
        ),
    ),
)
def reads_the_whole_context(): ...


@mistake(
    "perplexity",
    hint="The window is not used: it decides how much the model sees.",
    shows=ignores("window"),
    replace=(
        "loss = 0.0",
        """
        window = config.context_length
        loss = 0.0
        """,
    ),
)
def ignores_the_window(): ...


@mistake(
    "perplexity",
    hint="A probability can be 0 in float32, and its logarithm is then minus infinity. Use "
    "log_softmax.",
    replace=(
        "torch.log_softmax(language_model(inputs[None], params, config)[0], dim=-1)",
        "torch.softmax(language_model(inputs[None], params, config)[0], dim=-1).log()",
    ),
)
def takes_the_logarithm_of_a_softmax(): ...


@mistake(
    "perplexity",
    hint="The mean of the logarithms is meant, not the logarithm of the mean.",
    replace=[
        (
            "loss -= log_p.gather(1, targets[:, None]).double().sum().item()",
            "loss += log_p.gather(1, targets[:, None]).double().exp().sum().item()",
        ),
        ("math.exp(loss / (len(ids) - 1))", "(len(ids) - 1) / loss"),
    ],
)
def takes_one_over_the_mean_probability(): ...


@mistake(
    "perplexity",
    hint="A Python float is asked for.",
    replace=(
        "return math.exp(loss / (len(ids) - 1))",
        "return torch.tensor(loss / (len(ids) - 1)).exp()",
    ),
)
def returns_a_tensor(): ...


@mistake(
    "perplexity",
    hint="Every position of a window is a prediction, not only the last.",
    replace=(
        "log_p.gather(1, targets[:, None]).double().sum().item()",
        "log_p.gather(1, targets[:, None]).double()[-1].item() * len(targets)",
    ),
)
def measures_the_last_token_only(): ...


@mistake(
    "perplexity",
    hint="A text of one token has no target, and 0 / 0 is no perplexity. The docstring asks for a "
    "ValueError.",
    replace=[
        ("len(ids) < 2 or not", "not"),
        ("loss / (len(ids) - 1)", "loss / max(len(ids) - 1, 1)"),
    ],
)
def takes_a_text_of_one_token(): ...


@mistake(
    "perplexity",
    hint="A window of 0, or one longer than the context, gets an answer. The docstring asks for a "
    "ValueError.",
    replace=[
        (" or not 1 <= window <= config.context_length:", ":"),
        (
            "loss = 0.0",
            """
        window = min(max(window, 1), config.context_length)
        loss = 0.0
        """,
        ),
    ],
)
def cuts_the_window_to_the_context(): ...


@mistake(
    "perplexity",
    hint="The mean is that of all tokens of all windows: the sum of the losses over N - 1.",
    replace=("/ (len(ids) - 1)", "/ (len(ids) - len(ids) % window)"),
    keeps=0.65,
)
def divides_by_whole_windows(): ...


# ── sample
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "sample",
    hint="The prompt comes first, then what was written.",
    replace=("return ids", "return ids[:, n:]"),
    keeps=0.65,
)
def returns_the_new_tokens_only(): ...


@mistake(
    "sample",
    hint="Each token is read once. You send the whole text through the model at every step.",
    replace=(
        "language_model(chunk, params, config, cache)[:, -1]",
        "language_model(ids, params, config)[:, -1]",
    ),
)
def reads_everything_again(): ...


@mistake(
    "sample",
    hint=(
        "Only the new token is sent: the rest is in the cache already. Yours puts the "
        "text into a new"
        " cache at each step."
    ),
    replace=(
        "language_model(chunk, params, config, cache)[:, -1]",
        "language_model(ids, params, config, empty_cache(params, config, len(ids)))[:, -1]",
    ),
)
def reads_everything_into_the_cache(): ...


@mistake(
    "sample",
    hint="Without the cache the new token knows nothing of the text before it.",
    replace=(
        "language_model(chunk, params, config, cache)[:, -1]",
        "language_model(chunk, params, config)[:, -1]",
    ),
)
def forgets_the_cache(): ...


@mistake(
    "sample",
    hint="The last new token need not be read: nothing follows it.",
    replace=(
        "return ids",
        """
        if num_new and n + num_new <= config.context_length:
            language_model(chunk, params, config, cache)
        return ids
        """,
    ),
)
def reads_the_last_token_too(): ...


@mistake(
    "sample",
    hint="The last position decides what comes next.",
    replace=("cache)[:, -1]", "cache)[:, 0]"),
)
def looks_at_the_first_row_of_logits(): ...


@mistake(
    "sample",
    hint="Your text is the likeliest one whatever the temperature. Above temperature 0 tokens are "
    "drawn at random.",
    shows=ignores("seed") & same_along(0),
    replace=(
        "torch.multinomial(p, 1, generator=dice)",
        "p.argmax(dim=-1, keepdim=True)",
    ),
)
def always_takes_the_likeliest(): ...


@mistake(
    "sample",
    hint="The temperature is not passed on.",
    shows=ignores("temperature") & ~same_along(0),
    replace=(
        "filtered_probabilities(logits, temperature, top_k)",
        "filtered_probabilities(logits, 1.0 if temperature > 0 else temperature, top_k)",
    ),
)
def ignores_the_temperature(): ...


@mistake(
    "sample",
    hint="Logits are divided by the temperature. Below 1 it should sharpen.",
    replace=(
        "filtered_probabilities(logits, temperature, top_k)",
        "filtered_probabilities(logits, 1 / temperature if temperature > 0 else temperature, top_k)",
    ),
)
def multiplies_by_the_temperature(): ...


@mistake(
    "sample",
    keeps=0.65,
    hint="At temperature 0 you divide by zero: the probabilities become NaN, and torch.multinomial "
    "says that they contain inf or nan. Temperature 0 means the likeliest token; "
    "filtered_probabilities knows that.",
    replace=(
        "filtered_probabilities(logits, temperature, top_k)",
        "filtered_probabilities(logits / temperature, 1.0 if temperature >= 0 else -1, top_k)",
    ),
)
def divides_by_a_temperature_of_zero(): ...


@mistake(
    "sample",
    hint="top_k is not passed on.",
    shows=ignores("top_k") & ~same_along(0),
    replace=(
        "filtered_probabilities(logits, temperature, top_k)",
        "filtered_probabilities(logits, temperature)",
    ),
)
def ignores_top_k(): ...


@mistake(
    "sample",
    hint="Another seed should give another text.",
    shows=ignores("seed"),
    replace=("manual_seed(seed)", "manual_seed(0)"),
)
def writes_one_text_whatever_the_seed(): ...


@mistake(
    "sample",
    hint="The generator is seeded anew for each token, so that every token gets the same random "
    "number. Seed once.",
    replace=(
        "torch.multinomial(p, 1, generator=dice)",
        "torch.multinomial(p, 1, generator=torch.Generator().manual_seed(seed))",
    ),
)
def seeds_every_step(): ...


@mistake(
    "sample",
    hint="You seed and use torch's own random state. Whoever draws next gets other numbers: use a "
    "torch.Generator.",
    replace=(
        "dice = torch.Generator().manual_seed(seed)",
        "dice = torch.manual_seed(seed)",
    ),
)
def writes_with_torchs_own_dice(): ...


@mistake(
    "sample",
    hint="Equal seeds should give equal texts.",
    replace=("manual_seed(seed)", "manual_seed(torch.randint(2**40, ()).item())"),
)
def writes_another_text_each_time(): ...


@mistake(
    "sample",
    hint="All rows get the same random number. Each row draws for itself.",
    replace=(
        "torch.multinomial(p, 1, generator=dice)",
        (
            "(p.cumsum(dim=-1) < torch.rand(1, generator=dice).to(p.dtype)).sum(dim=-1, "
            "keepdim=True).clamp(max=p.shape[-1] - 1)"
        ),
    ),
    shows=same_along(0),
)
def throws_once_for_all_rows(): ...


@mistake(
    "sample",
    hint="All rows go on as the first one does.",
    replace=(
        "ids = torch.cat([ids, chunk], dim=1)",
        """
        chunk = chunk[:1].expand_as(chunk)
        ids = torch.cat([ids, chunk], dim=1)
        """,
    ),
    shows=same_along(0),
)
def follows_the_first_row(): ...


@mistake(
    "sample",
    hint="num_new tokens are asked for.",
    replace=("range(num_new)", "range(num_new + 1)"),
    keeps=0.65,
)
def writes_one_token_too_many(): ...


@mistake(
    "sample",
    hint="num_new tokens are asked for.",
    replace=("range(num_new)", "range(num_new - 1)"),
    keeps=0.65,
)
def writes_one_token_too_few(): ...


@mistake(
    "sample",
    hint="The last token is written, and not read: it needs no place in the context.",
    replace=(
        "if n + num_new - 1 > config.context_length:",
        "if n + num_new > config.context_length:",
    ),
)
def wants_room_for_the_last_token(): ...


@mistake(
    "sample",
    hint="A text that does not fit gets an answer. It should be refused, not cut.",
    replace=(
        "if n + num_new - 1 > config.context_length:",
        """
        num_new = min(num_new, config.context_length - n + 1)
        if n > config.context_length:
        """,
    ),
)
def stops_where_the_context_ends(): ...


@mistake(
    "sample",
    hint="A negative number of new tokens gets an answer. The docstring asks for a ValueError.",
    replace=("if num_new < 0 or n < 1:", "if n < 1:"),
)
def writes_a_negative_number_of_tokens(): ...


@mistake(
    "sample",
    hint="An empty prompt gets an answer, and there is nothing to read. The docstring asks for a "
    "ValueError.",
    replace=[
        ("if num_new < 0 or n < 1:", "if num_new < 0:"),
        (
            "cache, ids, chunk = empty_cache(params, config, len(prompt)), prompt, prompt",
            """
        prompt = torch.zeros(len(prompt), 1, dtype=torch.int64) if n < 1 else prompt
        cache, ids, chunk = empty_cache(params, config, len(prompt)), prompt, prompt
        """,
        ),
    ],
)
def takes_an_empty_prompt(): ...


@mistake(
    "sample",
    hint="Each row has dice of its own that begin with the same seed, so all rows throw the same: one generator for the batch.",
    replace=[
        (
            "chunk = torch.multinomial(p, 1, generator=dice)  # [B, 1]: all that the next step reads",
            "chunk = torch.cat([torch.multinomial(row[None], 1, generator=own) for row, own in zip(p, dice)])",
        ),
        (
            "dice = torch.Generator().manual_seed(seed)",
            "dice = [torch.Generator().manual_seed(seed) for _ in prompt]",
        ),
    ],
    shows=same_along(0),
)
def seeds_every_row_alike(): ...


@mistake(
    "sample",
    hint="Without new tokens the prompt comes back as it was: your loop draws one all the same.",
    replace=("for _ in range(num_new):", "for _ in range(max(1, num_new)):"),
)
def always_writes_a_token(): ...


# ── induction_score
# ───────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "induction_score",
    hint="Key i - P is where the token stood before. The one after it is i - P + 1.",
    replace=("queries - period + 1", "queries - period"),
)
def looks_at_the_token_itself(): ...


@mistake(
    "induction_score",
    hint="The token after the earlier occurrence is at i - P + 1.",
    replace=("queries - period + 1", "(queries - period + 2).clamp(max=n_k - 1)"),
    keeps=0.65,
)
def looks_two_further(): ...


@mistake(
    "induction_score",
    hint="Query P - 1 lies on the diagonal and has not seen its token yet: it does not count.",
    replace=("torch.arange(period, n_q)", "torch.arange(period - 1, n_q)"),
    keeps=0.65,
)
def takes_the_whole_diagonal(): ...


@mistake(
    "induction_score",
    hint="Query P is the first that has seen its token.",
    replace=(
        "torch.arange(period, n_q)",
        "torch.arange(min(period + 1, n_q - 1), n_q)",
    ),
    keeps=0.65,
)
def counts_from_the_second_period_on(): ...


@mistake(
    "induction_score",
    hint="The last query is left out. It counts like the others.",
    replace=(
        "torch.arange(period, n_q)",
        "torch.arange(period, max(n_q - 1, period + 1))",
    ),
    keeps=0.65,
)
def drops_the_last_query(): ...


@mistake(
    "induction_score",
    hint="Rows are queries and columns keys. Above the diagonal there is nothing to see.",
    shows=right_once_transposed("weights"),
    replace=(
        "weights[..., queries, queries - period + 1]",
        "weights[..., queries - period + 1, queries]",
    ),
)
def exchanges_queries_and_keys(): ...


@mistake(
    "induction_score",
    hint="The score is a mean, so that texts of different lengths can be compared.",
    replace=(".mean(dim=-1)", ".sum(dim=-1)"),
    keeps=0.65,
)
def sums_instead_of_averaging(): ...


@mistake(
    "induction_score",
    hint="The mean is over the queries that have seen their token, N - P of them.",
    replace=(".mean(dim=-1)", ".sum(dim=-1) / n_q"),
    keeps=0.65,
)
def divides_by_all_queries(): ...


@mistake(
    "induction_score",
    hint="The score is a mean over queries, not the best of them.",
    replace=(".mean(dim=-1)", ".amax(dim=-1)"),
)
def takes_the_largest(): ...


@mistake(
    "induction_score",
    hint="Each layer and head has its own score.",
    replace=(
        "return weights[..., queries, queries - period + 1].mean(dim=-1)  # [..., N - P] -> [...]",
        """
        found = weights[..., queries, queries - period + 1].mean(dim=-1)
        return found.mean() if found.dim() else found  # [..., N - P] -> [...]
        """,
    ),
)
def averages_over_heads(): ...


@mistake(
    "induction_score",
    hint="The score is the mean weight, not how often the key has the largest one.",
    replace=(
        "weights[..., queries, queries - period + 1].mean(dim=-1)",
        "(weights[..., queries, :].argmax(dim=-1) == queries - period + "
        "1).to(weights.dtype).mean(dim=-1)",
    ),
)
def counts_hits(): ...


@mistake(
    "induction_score",
    hint="A period of 0 gets an answer. The docstring asks for a ValueError.",
    replace=[
        ("not 1 <= period < n_q", "not 0 <= period < n_q"),
        ("queries - period + 1", "(queries - period + 1).clamp(max=n_k - 1)"),
    ],
)
def takes_a_period_of_0(): ...


@mistake(
    "induction_score",
    hint="With a period of N no query has seen its token: ValueError, not NaN.",
    replace=("1 <= period < n_q", "1 <= period <= n_q"),
)
def takes_a_period_as_long_as_the_text(): ...


@mistake(
    "induction_score",
    hint="Attention weights on one sequence are square: ValueError with both sizes.",
    replace=("if n_q != n_k or not", "if not"),
)
def takes_weights_that_are_not_square(): ...


@mistake(
    "induction_score",
    hint="The dtype of the weights should come out.",
    shows=has_dtype("float64"),
    replace=(".mean(dim=-1)", ".double().mean(dim=-1)"),
)
def answers_in_float64(): ...


@mistake(
    "induction_score",
    hint="torch.diagonal takes the first two axes unless it is told others: layers and heads here, not queries and keys.",
    keeps=0.5,
    replace=(
        "return weights[..., queries, queries - period + 1].mean(dim=-1)",
        "return torch.diagonal(weights, offset=1 - period)[..., 1:].mean(dim=-1)",
    ),
)
def takes_the_diagonal_of_the_first_axes(): ...


@mistake(
    "induction_score",
    hint="Query i looks at key i - P + 1, the token behind the earlier one. Yours looks at the token before it.",
    replace=("queries - period + 1", "queries - period - 1"),
    keeps=0.65,
)
def looks_one_to_the_left(): ...


# ── from_gpt2
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "from_gpt2",
    hint="These are Conv1D's matrices, [in, out] already: nothing is transposed.",
    replace=[
        (
            'take(f"{h}.attn.c_proj.weight", d, d)',
            'take(f"{h}.attn.c_proj.weight", d, d).T',
        ),
        (
            'w_q, w_k, w_v = take(f"{h}.attn.c_attn.weight", d, 3 * d).split(d, dim=1)',
            'w_q, w_k, w_v = (w.T for w in take(f"{h}.attn.c_attn.weight", d, 3 * '
            "d).split(d, dim=1))",
        ),
        ('take(f"{h}.mlp.c_fc.weight", d, f)', 'take(f"{h}.mlp.c_fc.weight", d, f).T'),
        (
            'take(f"{h}.mlp.c_proj.weight", f, d)',
            'take(f"{h}.mlp.c_proj.weight", f, d).T',
        ),
    ],
)
def transposes_everything(): ...


@mistake(
    "from_gpt2",
    hint=(
        "The output matrix is square and looks right both ways. Conv1D stores [in, out]: it is "
        "not transposed."
    ),
    replace=(
        'take(f"{h}.attn.c_proj.weight", d, d)',
        'take(f"{h}.attn.c_proj.weight", d, d).T',
    ),
)
def transposes_the_output(): ...


@mistake(
    "from_gpt2",
    hint="Each part of the fused matrix is [in, out] already.",
    replace=(
        'w_q, w_k, w_v = take(f"{h}.attn.c_attn.weight", d, 3 * d).split(d, dim=1)',
        'w_q, w_k, w_v = (w.T for w in take(f"{h}.attn.c_attn.weight", d, 3 * d).split(d, dim=1))',
    ),
)
def transposes_queries_keys_values(): ...


@mistake(
    "from_gpt2",
    hint="The order in the fused matrix is queries, keys, values.",
    replace=[
        ("w_q, w_k, w_v = take", "w_k, w_q, w_v = take"),
        ("b_q, b_k, b_v = take", "b_k, b_q, b_v = take"),
    ],
)
def takes_keys_first(): ...


@mistake(
    "from_gpt2",
    hint="The order in the fused matrix is queries, keys, values.",
    replace=[
        ("w_q, w_k, w_v = take", "w_q, w_v, w_k = take"),
        ("b_q, b_k, b_v = take", "b_q, b_v, b_k = take"),
    ],
)
def takes_values_before_keys(): ...


@mistake(
    "from_gpt2",
    hint=(
        "The columns are those of all queries, then all keys, then all values. You take "
        "three parts "
        "of each head in turn."
    ),
    replace=(
        ".split(d, dim=1)",
        ".unflatten(1, (config.num_heads, 3, -1)).transpose(1, 2).flatten(2).unbind(1)",
    ),
)
def cuts_head_by_head(): ...


@mistake(
    "from_gpt2",
    hint="Queries, keys and values lie one behind the other, not in turns.",
    replace=(".split(d, dim=1)", ".unflatten(1, (d, 3)).unbind(2)"),
)
def takes_every_third_column(): ...


@mistake(
    "from_gpt2",
    hint="The biases of queries, keys and values are fused, too, in the same order.",
    replace=(
        'b_q, b_k, b_v = take(f"{h}.attn.c_attn.bias", 3 * d).split(d)',
        'b_q, b_k, b_v = (0 * b for b in take(f"{h}.attn.c_attn.bias", 3 * d).split(d))',
    ),
)
def forgets_the_fused_bias(): ...


@mistake(
    "from_gpt2",
    hint="The bias is cut like the columns: queries, keys, values.",
    replace=("b_q, b_k, b_v = take", "b_v, b_k, b_q = take"),
)
def cuts_the_bias_in_another_order(): ...


@mistake(
    "from_gpt2",
    hint="ln_1 stands in front of the attention, ln_2 in front of the MLP.",
    replace=[
        (
            '"ln1_gamma": take(f"{h}.ln_1.weight", d), "ln1_beta": take(f"{h}.ln_1.bias", d)',
            '"ln1_gamma": take(f"{h}.ln_2.weight", d), "ln1_beta": take(f"{h}.ln_2.bias", d)',
        ),
        (
            '"ln2_gamma": take(f"{h}.ln_2.weight", d), "ln2_beta": take(f"{h}.ln_2.bias", d)',
            '"ln2_gamma": take(f"{h}.ln_1.weight", d), "ln2_beta": take(f"{h}.ln_1.bias", d)',
        ),
    ],
)
def exchanges_the_norms(): ...


@mistake(
    "from_gpt2",
    hint="A norm's weight is gamma, its bias is beta.",
    replace=[
        ('"lnf_gamma": take("ln_f.weight", d)', '"lnf_gamma": take("ln_f.bias", d)'),
        ('"lnf_beta": take("ln_f.bias", d)', '"lnf_beta": take("ln_f.weight", d)'),
    ],
)
def exchanges_gamma_and_beta(): ...


@mistake(
    "from_gpt2",
    hint="wte is the table of tokens, wpe that of positions.",
    replace=(
        '"positions": take("wpe.weight", config.context_length, d)',
        '"positions": embed[: config.context_length]',
    ),
)
def exchanges_the_tables(): ...


@mistake(
    "from_gpt2",
    hint="Each block has weights of its own: the number in the name.",
    replace=('take_block(f"h.{layer}")', 'take_block("h.0")'),
)
def takes_block_0_everywhere(): ...


@mistake(
    "from_gpt2",
    hint="Block 0 comes first.",
    replace=(
        "for layer in range(config.num_layers)]",
        "for layer in reversed(range(config.num_layers))]",
    ),
    keeps=0.65,
)
def takes_the_blocks_backwards(): ...


@mistake(
    "from_gpt2",
    hint='Some files have "transformer." in front of the names.',
    replace=('"transformer." if "transformer.wte.weight" in state_dict else ""', '""'),
)
def knows_no_prefix(): ...


@mistake(
    "from_gpt2",
    hint='Some files have no "transformer." in front of the names.',
    replace=(
        '"transformer." if "transformer.wte.weight" in state_dict else ""',
        '"transformer."',
    ),
    keeps=0.65,
)
def always_wants_the_prefix(): ...


@mistake(
    "from_gpt2",
    hint="Names that are not in the table, such as old masks, are passed over.",
    replace=(
        "d, f = config.d_model, config.d_ff",
        """
        d, f = config.d_model, config.d_ff
        if any(name.endswith((".attn.bias", ".masked_bias")) for name in state_dict):
            raise ValueError("unknown entries")
        """,
    ),
)
def refuses_other_entries(): ...


@mistake(
    "from_gpt2",
    hint="A tensor of another shape than the config says should be refused, with its sizes.",
    replace=("if tensor is None or tensor.shape != shape:", "if tensor is None:"),
)
def takes_any_shape(): ...


@mistake(
    "from_gpt2",
    hint="The vectors of a file, gamma, beta and biases, have a size to be checked as well as "
    "the matrices.",
    replace=(
        "if tensor is None or tensor.shape != shape:",
        "if tensor is None or (len(shape) == 2 and tensor.shape != shape):",
    ),
)
def checks_the_shapes_of_matrices_only(): ...


@mistake(
    "from_gpt2",
    hint="Which tensor is missing? Its name should stand in the message.",
    replace=(
        'f"{prefix + name} {found}; it should be {list(shape)}"',
        'f"a tensor {found}; it should be {list(shape)}"',
    ),
)
def leaves_the_name_out(): ...


@mistake(
    "from_gpt2",
    hint="A file with fewer blocks than the config says should be refused: it is another model.",
    replace=(
        "for layer in range(config.num_layers)]",
        'for layer in range(config.num_layers) if f"{prefix}h.{layer}.ln_1.weight" in state_dict]',
    ),
)
def takes_a_file_with_fewer_blocks(): ...


@mistake(
    "from_gpt2",
    hint="h.10 comes before h.2 where names are sorted as text: the blocks go by their numbers.",
    replace=(
        "for layer in range(config.num_layers)]",
        "for layer in sorted(map(str, range(config.num_layers)))]",
    ),
)
def sorts_blocks_as_text(): ...


@mistake(
    "from_gpt2",
    hint="A file that goes on with a norm of another block is of another model, without its "
    "attention, too.",
    replace=(
        'if any(name.startswith(f"{prefix}h.{config.num_layers}.") for name in state_dict):',
        'if f"{prefix}h.{config.num_layers}.attn.c_attn.weight" in state_dict:',
    ),
)
def looks_for_the_attention_of_one_block_more(): ...


@mistake(
    "from_gpt2",
    hint="You look for a block too many by one name alone. Whatever tensor of it is there, the "
    "file is of another model.",
    replace=(
        'if any(name.startswith(f"{prefix}h.{config.num_layers}.") for name in state_dict):',
        'if f"{prefix}h.{config.num_layers}.ln_1.weight" in state_dict:',
    ),
)
def looks_for_one_name_of_one_block_more(): ...


@mistake(
    "from_gpt2",
    hint="A file with more positions than the config says is taken. It is of another model: ValueError.",
    replace=(
        "tensor = state_dict.get(prefix + name)",
        """
        tensor = state_dict.get(prefix + name)
        if tensor is not None and name == "wpe.weight":
            tensor = tensor[: shape[0]]
        """,
    ),
)
def cuts_the_positions(): ...


@mistake(
    "from_gpt2",
    hint="A head that is nearly the embedding is not the embedding, and one of another shape is "
    "a ValueError, too.",
    replace=("if not torch.equal(", "if not torch.allclose("),
)
def takes_a_head_that_is_close(): ...


@mistake(
    "from_gpt2",
    hint="A missing name should be a ValueError that names it, not Python's KeyError.",
    replace=(
        "tensor = state_dict.get(prefix + name)",
        "tensor = state_dict[prefix + name]",
    ),
)
def raises_a_key_error(): ...


@mistake(
    "from_gpt2",
    hint="A file in which something is missing should be refused. Zeros are another model.",
    replace=(
        "tensor = state_dict.get(prefix + name)",
        "tensor = state_dict.get(prefix + name, torch.zeros(*shape))",
    ),
)
def fills_missing_tensors_with_zeros(): ...


@mistake(
    "from_gpt2",
    hint="The file has more blocks than the config, and you take the first ones: another "
    "model. ValueError.",
    replace=(
        'if any(name.startswith(f"{prefix}h.{config.num_layers}.") for name in state_dict):',
        "if config.num_layers < 0:",
    ),
)
def leaves_blocks_behind(): ...


@mistake(
    "from_gpt2",
    hint=(
        "A head that is not the embedding should be refused: your model would use the embedding "
        "all the same."
    ),
    replace=(
        'if not torch.equal(state_dict.get("lm_head.weight", embed), embed):',
        "if embed is None:",
    ),
)
def ignores_the_head(): ...


@mistake(
    "from_gpt2",
    hint="A head that is equal to the embedding is what tied means.",
    replace=(
        'if not torch.equal(state_dict.get("lm_head.weight", embed), embed):',
        'if "lm_head.weight" in state_dict:',
    ),
)
def refuses_every_head(): ...


@mistake(
    "from_gpt2",
    hint="The dtypes of the file stay.",
    replace=("return tensor", "return tensor.float()"),
)
def changes_to_float32(): ...


# ── misleading_token
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "misleading_token",
    hint="The likeliest token must begin with another byte than the likeliest one. Yours "
    "begins with it.",
    replace=(
        "p[(first + 1) % 256] = 0.4  # the likeliest token, and its byte has nobody else",
        """
        p[merged] = 0.5
        p[(first + 1) % 256] = 0.2  # the likeliest token, and its byte has nobody else
        """,
    ),
)
def gives_the_token_its_byte(): ...


@mistake(
    "misleading_token",
    hint="All tokens are equally likely: no token is clearly the likeliest.",
    replace=(
        "p[merged] = p[first] = 0.3",
        """
        p += 1 / len(p)
        return p
        """,
    ),
)
def is_even(): ...


@mistake(
    "misleading_token",
    hint="The largest number must be at least 0.05 above the next.",
    replace=[
        ("p[merged] = p[first] = 0.3", "p[merged] = p[first] = 1 / 3"),
        ("= 0.4", "= 1 / 3"),
    ],
)
def is_a_tie(): ...


@mistake(
    "misleading_token",
    hint="The numbers do not add up to 1.",
    replace=("p[merged] = p[first] = 0.3", "p[merged] = p[first] = 0.35"),
)
def does_not_add_up(): ...


@mistake(
    "misleading_token",
    hint="Probabilities are asked for, not logits.",
    replace=("return p", "return torch.log(p + 1e-9)"),
)
def returns_logits(): ...


@mistake(
    "misleading_token",
    hint="There is a number for every token: 256 bytes and the merges.",
    replace=(
        "torch.zeros(256 + len(merges), dtype=torch.float64)",
        "torch.zeros(257, dtype=torch.float64)",
    ),
)
def returns_bytes_only(): ...


@mistake(
    "misleading_token",
    hint="float64 is asked for.",
    shows=has_dtype("float32"),
    replace=("dtype=torch.float64", "dtype=torch.float32"),
)
def returns_float32(): ...


@mistake(
    "misleading_token",
    hint="The two tokens with a common byte have together less than the third.",
    replace=[
        ("p[merged] = p[first] = 0.3", "p[merged] = p[first] = 0.2"),
        ("= 0.4", "= 0.6"),
    ],
)
def shares_too_little(): ...


@mistake(
    "misleading_token",
    hint="This is right for one vocabulary. Which tokens share a first byte depends on the merges.",
    replace=(
        "first = int(bpe_decode(torch.tensor([merged]), merges)[0])",
        "first = 108",
    ),
)
def knows_one_vocabulary(): ...


@mistake(
    "misleading_token",
    hint="The likeliest token is always the same byte in yours. What if the merges begin "
    "with that byte?",
    replace=("(first + 1) % 256", "122"),
)
def gives_the_rest_to_one_byte(): ...


@mistake(
    "misleading_token",
    hint="The likeliest token is always the same byte in yours. What if the merges begin "
    "with that byte?",
    replace=("p[(first + 1) % 256] = 0.4", "p[0] += 0.4"),
)
def gives_the_rest_to_byte_0(): ...


@mistake(
    "misleading_token",
    hint="What counts is the first byte of a token: you look at its last one.",
    replace=(
        "bpe_decode(torch.tensor([merged]), merges)[0]",
        "bpe_decode(torch.tensor([merged]), merges)[-1]",
    ),
)
def takes_the_last_byte(): ...


@mistake(
    "misleading_token",
    hint="The tokens must begin with the same byte. Yours share a byte in the middle.",
    replace=[
        ("p[merged] = p[first] = 0.3", "p[merged] = p[merges[0][1] % 256] = 0.3"),
        (
            "p[(first + 1) % 256] = 0.4  # the likeliest token, and its byte has nobody else",
            """
        free = next(b for b in range(256) if b not in (first, merges[0][1]))
        p[free] = 0.4  # the likeliest token, and its byte has nobody else
        """,
        ),
    ],
)
def shares_the_second_byte(): ...


@mistake(
    "misleading_token",
    hint="A probability is not below 0.",
    replace=(
        "p[merged] = p[first] = 0.3",
        """
        p[merged] = p[first] = 0.35
        p[(first + 2) % 256] = -0.1
        """,
    ),
)
def has_negative_probabilities(): ...


@mistake(
    "misleading_token",
    hint="Without merges every token is a byte, and there is no such distribution: ValueError.",
    replace=[
        ("if not merges:", "if merges is None:"),
        ("merged = 256", "merged = 256 if merges else 0"),
    ],
)
def finds_one_without_merges(): ...


@mistake(
    "misleading_token",
    hint="The error should name the 256 tokens.",
    replace=(
        '"256 tokens that are bytes: the likeliest token is the likeliest byte"',
        '"there is no such distribution"',
    ),
)
def leaves_the_number_out(): ...


@mistake(
    "misleading_token",
    hint="One token has everything, so that its first byte has everything, too.",
    replace=(
        "p[merged] = p[first] = 0.3",
        """
        p[merged] = 1.0
        return p
        """,
    ),
)
def gives_all_to_one_token(): ...
