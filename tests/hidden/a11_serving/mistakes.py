"""Wrong answers that people give about serving, each with one wrong idea."""

import torch

from autograder.suite import (
    ignores,
    is_no_average,
    mistake,
    nothing_where_something_is_right,
    off_by_a_factor,
    part,
    right_once_scaled,
    right_once_transposed,
    same_along,
)

# ── BlockPool
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "BlockPool",
    hint="A block whose count of holders went up by share has to come down one by one: release "
    "takes one holder, not all of them.",
    replace=("self._holders[block] -= 1", "self._holders[block] = 0"),
)
def release_frees_shared_blocks(): ...


@mistake(
    "BlockPool",
    hint="share lends nothing new: it adds a holder to blocks that are held. Does your count go up?",
    replace=("self._holders[block] += 1", "self._holders[block] = 1"),
)
def share_does_not_count(): ...


@mistake(
    "BlockPool",
    hint="What came back is not lent again: once a block has no holder, it is free.",
    replace=(
        "self._holders[block] -= 1",
        "self._holders[block] -= 1 if self._holders[block] > 1 else 0",
    ),
    keeps=0.6,
)
def the_last_holder_stays(): ...


@mistake(
    "BlockPool",
    hint="A block that is free already was released again without a word. Whoever does that has lost "
    "count: raise a ValueError.",
    replace=('raise ValueError(f"block {block} is free already")', "return"),
)
def takes_a_block_back_twice(): ...


@mistake(
    "BlockPool",
    hint="A free block was shared. It belongs to nobody, and the next allocate lends it to a stranger: "
    "raise a ValueError.",
    replace=(
        'raise ValueError(f"block {block} is free: nobody can share it")',
        "return",
    ),
)
def shares_a_free_block(): ...


@mistake(
    "BlockPool",
    hint="More blocks were wanted than are free, and some were lent all the same. All or none.",
    replace=(
        'raise ValueError(f"{n} blocks are wanted, and {len(free)} are free")',
        "pass",
    ),
)
def lends_what_is_left(): ...


@mistake(
    "BlockPool",
    hint="The refused release changed something. Look at all blocks first, then change their counts.",
    replace=(
        """
        for block in blocks:
            if self._holders[block] == 0:
                raise ValueError(f"block {block} is free already")
        for block in blocks:
            self._holders[block] -= 1
        """,
        """
        for block in blocks:
            if self._holders[block] == 0:
                raise ValueError(f"block {block} is free already")
            self._holders[block] -= 1
        """,
    ),
)
def a_refused_release_leaves_traces(): ...


@mistake(
    "BlockPool",
    hint="The refused share changed something. Look at all blocks first, then change their counts.",
    replace=(
        """
        for block in blocks:
            if self._holders[block] == 0:
                raise ValueError(f"block {block} is free: nobody can share it")
        for block in blocks:
            self._holders[block] += 1
        """,
        """
        for block in blocks:
            if self._holders[block] == 0:
                raise ValueError(f"block {block} is free: nobody can share it")
            self._holders[block] += 1
        """,
    ),
)
def a_refused_share_leaves_traces(): ...


@mistake(
    "BlockPool",
    hint="Which of the free blocks are lent? The smallest numbers, also after some came back.",
    replace=[
        ("for block in free[:n]:", "for block in free[len(free) - n :]:"),
        ("return free[:n]", "return free[len(free) - n :]"),
    ],
    keeps=0.58,
)
def lends_the_largest_numbers(): ...


@mistake(
    "BlockPool",
    hint="The last free block is never lent: exactly all that are free may be wanted.",
    replace=("if n > len(free):", "if n >= len(free):"),
)
def one_block_too_few(): ...


class _Queue:
    """A good pool with a queue of free blocks; the mistake changes their order."""

    def __init__(self, num_blocks):
        self.free, self.counts = list(range(num_blocks)), [0] * num_blocks

    @property
    def num_free(self):
        return len(self.free)

    def holders(self, block):
        return self.counts[block]

    def allocate(self, n):
        if n > len(self.free):
            raise ValueError(f"{n} wanted, {len(self.free)} free")
        lent, self.free = self.free[:n], self.free[n:]
        for block in lent:
            self.counts[block] = 1
        return lent

    def share(self, blocks):
        for block in blocks:
            if not self.counts[block]:
                raise ValueError(f"{block} is free")
        for block in blocks:
            self.counts[block] += 1

    def release(self, blocks):
        for block in blocks:
            if not self.counts[block]:
                raise ValueError(f"{block} is free")
        for block in blocks:
            self.counts[block] -= 1
            if not self.counts[block]:
                self.free.append(block)


@mistake(
    "BlockPool",
    keeps=0.65,
    hint="num_free grows while blocks are lent: it counts those that somebody holds.",
    replace=(
        "return self._holders.count(0)",
        "return len(self._holders) - self._holders.count(0)",
    ),
)
def counts_the_blocks_that_are_held(): ...


@mistake(
    "BlockPool",
    hint="Blocks that came back wait behind those that were never used. The docstring asks for the "
    "smallest numbers first.",
)
class LendsInTheOrderOfReturn(_Queue): ...


@mistake(
    "BlockPool",
    hint="Two pools share their counts. (A list of the class is made once, for all objects.)",
)
class CountsForTheWholeClass(_Queue):
    shared = {}

    def __init__(self, num_blocks):
        super().__init__(num_blocks)
        state = (self.free, self.counts)
        self.free, self.counts = self.shared.setdefault(num_blocks, state)

    def allocate(self, n):
        lent = super().allocate(n)
        self.shared.update({len(self.counts): (self.free, self.counts)})
        return lent

    @property
    def num_free(self):
        self.free = self.shared[len(self.counts)][0]
        return len(self.free)


# ── PagedCache
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "PagedCache",
    hint="Token p lies in block table[p // S]. Where do you divide the position by the size of a "
    "block?",
    replace=[
        (
            "into, slots = torch.tensor(table)[positions // self.block_size], positions % self.block_size",
            "into, slots = torch.tensor(table)[positions % len(table)], positions % self.block_size",
        ),
        (
            "blocks, slots = table[positions // self.block_size], positions % self.block_size",
            "blocks, slots = table[positions % max(1, len(table))], positions % self.block_size",
        ),
    ],
)
def table_is_indexed_by_position(): ...


@mistake(
    "PagedCache",
    hint="The table is left out: token p lies in block table[p // S], not in block p // S, which may "
    "belong to another text.",
    replace=[
        (
            "into, slots = torch.tensor(table)[positions // self.block_size], positions % self.block_size",
            "into, slots = positions // self.block_size, positions % self.block_size",
        ),
        (
            "blocks, slots = table[positions // self.block_size], positions % self.block_size",
            "blocks, slots = positions // self.block_size, positions % self.block_size",
        ),
    ],
)
def no_table(): ...


@mistake(
    "PagedCache",
    hint="Each chunk begins in slot 0 of a block. A token's slot follows from its position in the "
    "text: p modulo S.",
    replace=(
        "into, slots = torch.tensor(table)[positions // self.block_size], positions % self.block_size",
        "into, slots = torch.tensor(table)[positions // self.block_size], (positions - start) % self.block_size",
    ),
    keeps=0.6,
)
def slots_begin_with_the_chunk(): ...


@mistake(
    "PagedCache",
    hint="After a fork both texts write into the same half full block, and each sees the other's token. "
    "Who writes into a block that others hold needs a copy.",
    replace=[
        (
            "copies = place < len(table) and self._pool.holders(table[place]) > 1",
            "copies = False",
        ),
        (
            "if place < len(table) and self._pool.holders(table[place]) > 1:",
            "if False:",
        ),
    ],
)
def shared_blocks_are_written(): ...


@mistake(
    "PagedCache",
    hint="The copy of a shared block lacks what was in it: copy it before you write.",
    replace=("self._stored[:, :, copy] = self._stored[:, :, table[place]]", "pass"),
)
def takes_a_block_and_copies_nothing(): ...


@mistake(
    "PagedCache",
    hint="A copied block is right in the layer that appended first, and empty in the others: a block "
    "number stands for slots in every layer.",
    replace=(
        "self._stored[:, :, copy] = self._stored[:, :, table[place]]",
        "self._stored[layer, :, copy] = self._stored[layer, :, table[place]]",
    ),
)
def copies_one_layer(): ...


@mistake(
    "PagedCache",
    hint="The text that got a copy still counts as a holder of the old block, which is never free "
    "again: release it.",
    replace=("self._pool.release([table[place]])", "pass"),
)
def keeps_holding_what_it_copied(): ...


@mistake(
    "PagedCache",
    hint="fork copies the blocks. It should copy the table alone: the two texts hold the same blocks "
    "until one of them writes.",
    replace=(
        "self.start(new, self._tables[name][: -(-length // self.block_size)])",
        "self.start(new)\n"
        "for layer in range(len(self._stored)):\n"
        "    self.append(new, layer, *self.gather(name, layer))",
    ),
)
def forks_by_copying(): ...


@mistake(
    "PagedCache",
    hint="A fork got blocks in which the first text has no finished token yet. Those stay with the "
    "first text: share the blocks up to its length.",
    replace=(
        "self.start(new, self._tables[name][: -(-length // self.block_size)])",
        "self.start(new, self._tables[name])",
    ),
)
def forks_empty_blocks_too(): ...


@mistake(
    "PagedCache",
    hint="The fork lacks the last, half full block: how many blocks hold `length` tokens? Round up.",
    replace=(
        "self.start(new, self._tables[name][: -(-length // self.block_size)])",
        "self.start(new, self._tables[name][: length // self.block_size])",
    ),
)
def forks_full_blocks_alone(): ...


@mistake(
    "PagedCache",
    hint="A fork is no holder of its blocks: the pool does not know it, and lends them to others when "
    "the first text ends.",
    replace=("self._pool.share(blocks)", "pass"),
)
def shares_without_counting(): ...


@mistake(
    "PagedCache",
    hint="A text that has ended keeps its blocks. free gives them back to the pool.",
    replace=("self._pool.release(self._tables.pop(name))", "del self._tables[name]"),
)
def never_gives_blocks_back(): ...


@mistake(
    "PagedCache",
    hint="Values and keys are the same numbers: which of the two do you write where?",
    replace=(
        "values[into, :, slots] = v.transpose(0, 1).to(keys.dtype)",
        "values[into, :, slots] = k.transpose(0, 1).to(keys.dtype)",
    ),
    keeps=0.6,
)
def stores_keys_as_values(): ...


@mistake(
    "PagedCache",
    hint="All layers write into the same slots of the same layer. Each has keys of its own.",
    replace=(
        "keys[into, :, slots] = k.transpose(0, 1).to(keys.dtype)  # [c, H_kv, d]",
        "keys, values = self._stored[0]; keys[into, :, slots] = k.transpose(0, 1).to(keys.dtype)",
    ),
    keeps=0.6,
)
def one_layer_for_all(): ...


@mistake(
    "PagedCache",
    hint="Every layer takes blocks of its own in each step. One table serves all layers: the first "
    "takes the blocks, the others find them there.",
    replace=(
        "new = -(-(length + c) // self.block_size) - len(table)",
        "new = -(-c // self.block_size)",
    ),
    keeps=0.6,
)
def takes_blocks_in_every_layer(): ...


@mistake(
    "PagedCache",
    hint="A text takes a block before it needs one: exactly S tokens fit into a block.",
    replace=(
        "new = -(-(length + c) // self.block_size) - len(table)",
        "new = (length + c) // self.block_size + 1 - len(table)",
    ),
)
def takes_a_block_too_early(): ...


@mistake(
    "PagedCache",
    hint="missing leaves out the copy: the next append into a shared, half full block takes a free "
    "block too.",
    replace=[
        ("return max(0, new) + copies", "return max(0, new)"),
        (
            "fresh = self._pool.allocate(self.missing(name, c))  # all or none",
            "p = start // self.block_size; extra = p < len(table) and self._pool.holders(table[p]) > 1; "
            "fresh = self._pool.allocate(self.missing(name, c) + extra)",
        ),
    ],
)
def missing_forgets_the_copy(): ...


@mistake(
    "PagedCache",
    hint="advance counts steps. It should count tokens: a chunk of seven moves length by seven.",
    replace=("self._lengths[name] += c", "self._lengths[name] += 1"),
    keeps=0.6,
)
def counts_steps(): ...


@mistake(
    "PagedCache",
    hint="A text that begins with blocks has their tokens already: its length is not 0.",
    replace=(
        "self._lengths[name] = len(blocks) * self.block_size",
        "self._lengths[name] = 0",
    ),
)
def begins_at_length_zero(): ...


@mistake(
    "PagedCache",
    hint="A chunk with another number of heads or features, or a v of another length, is taken without a "
    "word: compare the shapes first.",
    replace=(
        "if k.shape != v.shape or k.shape != (num_kv_heads, c, d_head):",
        "if False:",
    ),
)
def takes_any_shape(): ...


@mistake(
    "PagedCache",
    hint="A name was given twice, and the first text is lost with its blocks: raise a ValueError.",
    replace=("if name in self._tables:", "if False:"),
)
def loses_a_text_of_the_same_name(): ...


@mistake(
    "PagedCache",
    hint="table hands out the cache's own list: whoever changes it, or looks at it later, sees or "
    "changes what is going on.",
    replace=("return list(self._tables[name])", "return self._tables[name]"),
)
def hands_out_its_own_table(): ...


@mistake(
    "PagedCache",
    hint="Every append copies the memory of the whole cache. Write the new slots, and copy a block only "
    "where it is shared.",
    replace=(
        "keys[into, :, slots] = k.transpose(0, 1).to(keys.dtype)  # [c, H_kv, d]",
        "self._stored = self._stored.clone(); keys, values = self._stored[layer]; "
        "keys[into, :, slots] = k.transpose(0, 1).to(keys.dtype)",
    ),
)
def copies_everything_in_every_step(): ...


@mistake(
    "PagedCache",
    hint="A full block is not written any more, so nobody needs a copy: only the block that the next token goes into counts.",
    replace=[
        (
            "place = length // self.block_size  # where the next token goes",
            "place = max(0, len(table) - 1)",
        ),
        ("place = start // self.block_size", "place = max(0, len(table) - 1)"),
    ],
)
def copies_a_full_block_that_is_shared(): ...


@mistake(
    "PagedCache",
    hint="A text that begins with blocks is no holder of them in yours: they are free, and lent to others, as "
    "soon as the one before gives them back.",
    replace=[
        ("self._pool.share(blocks)", "pass"),
        (
            "self.start(new, self._tables[name][: -(-length // self.block_size)])",
            "held = self._tables[name][: -(-length // self.block_size)]\n"
            "self.start(new, held)\n"
            "self._pool.share(held)",
        ),
    ],
)
def starts_without_holding(): ...


# ── reserved_bytes
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "reserved_bytes",
    hint="bytes_per_element plays no part in your numbers. Bytes are asked for: what does one token "
    "take?",
    replace=("token = kv_bytes_a_token(config, bytes_per_element)", "token = 1"),
    shows=part("needed", ignores("bytes_per_element")),
)
def counts_tokens(): ...


@mistake(
    "reserved_bytes",
    hint="The lengths are added up before they are rounded to blocks. No two texts share a block: round "
    "each of them up.",
    replace=(
        "blocks = sum(-(-length // block_size) for length in lengths)  # rounded up, for each text",
        "blocks = -(-sum(lengths) // block_size)",
    ),
)
def rounds_the_sum(): ...


@mistake(
    "reserved_bytes",
    hint="A text of 17 tokens in blocks of 8 needs three blocks: round up.",
    replace=(
        "blocks = sum(-(-length // block_size) for length in lengths)  # rounded up, for each text",
        "blocks = sum(length // block_size for length in lengths)",
    ),
)
def rounds_down(): ...


@mistake(
    "reserved_bytes",
    hint="A text that fills its last block exactly needs no other one.",
    replace=(
        "blocks = sum(-(-length // block_size) for length in lengths)  # rounded up, for each text",
        "blocks = sum(length // block_size + 1 for length in lengths)",
    ),
)
def one_block_more(): ...


@mistake(
    "reserved_bytes",
    hint="The contiguous cache reserves the full capacity, however long a text is by now.",
    replace=(
        '"contiguous": len(lengths) * capacity * token,',
        '"contiguous": len(lengths) * max(lengths, default=0) * token,',
    ),
    shows=part("contiguous", ignores("capacity")),
)
def reserves_the_longest_text(): ...


@mistake(
    "reserved_bytes",
    hint="A length of 0, or above the capacity, cannot be: raise a ValueError.",
    replace=("if not 1 <= length <= capacity:", "if False:"),
)
def takes_any_length(): ...


@mistake(
    "reserved_bytes",
    hint="A length above the capacity is not refused: there is no room for such a text.",
    replace=("if not 1 <= length <= capacity:", "if length < 1:"),
)
def takes_lengths_above_the_capacity(): ...


@mistake(
    "reserved_bytes",
    hint="A contiguous cache has no blocks: it reserves the capacity as it is, and yours rounds it up to whole blocks.",
    replace=(
        "len(lengths) * capacity * token",
        "len(lengths) * -(-capacity // block_size) * block_size * token",
    ),
)
def rounds_the_capacity_to_blocks(): ...


@mistake(
    "reserved_bytes",
    hint="A token leaves a key and a value in every layer: your bytes are half of them.",
    replace=(
        "token = kv_bytes_a_token(config, bytes_per_element)",
        "token = kv_bytes_a_token(config, bytes_per_element) // 2",
    ),
    keeps=0.5,
)
def counts_keys_without_values(): ...


@mistake(
    "reserved_bytes",
    hint="A contiguous cache has room for the capacity, for each text.",
    replace=("len(lengths) * capacity * token", "capacity * token"),
)
def reserves_for_one_text(): ...


# ── paged_attention
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "paged_attention",
    hint="Block number i of the text lies at table[i]; you read block i of the pool, which may be anybody's.",
    replace=("block = table[first // block_size]", "block = first // block_size"),
)
def reads_without_the_table(): ...


@mistake(
    "paged_attention",
    hint="The last block is not full, and what lies behind the text's end counts as keys. How many of "
    "its slots belong to the text?",
    replace=[
        ("filled = min(block_size, length - first)", "filled = block_size"),
        (
            "later = torch.arange(first, first + filled) > own",
            "places = torch.arange(first, first + filled); later = (places > own) & (places < length)",
        ),
    ],
    keeps=0.6,
)
def reads_the_whole_last_block(): ...


@mistake(
    "paged_attention",
    hint="Scores of slots behind the end are hidden, and their values still count: 0 times NaN is NaN. "
    "Do not read them at all.",
    replace=("filled = min(block_size, length - first)", "filled = block_size"),
)
def multiplies_zero_by_rubbish(): ...


@mistake(
    "paged_attention",
    hint="A token of the chunk sees those that come after it in the chunk: query i stands at position "
    "length - c + i.",
    replace=(
        "later = torch.arange(first, first + filled) > own",
        "later = torch.arange(first, first + filled) >= length + 0 * own",
    ),
)
def no_mask_inside_the_chunk(): ...


@mistake(
    "paged_attention",
    hint="The mask is aligned at the top left: query i is the token at position length - c + i, and not i.",
    replace=("own = torch.arange(length - c, length)", "own = torch.arange(c)"),
    keeps=0.6,
)
def queries_stand_at_the_beginning(): ...


@mistake(
    "paged_attention",
    hint="When a later block has a larger score, what was added up so far must shrink by the same factor: the "
    "values, too.",
    replace=("mixed = shrink * mixed + weights @ v", "mixed = mixed + weights @ v"),
    keeps=0.6,
)
def values_do_not_shrink(): ...


@mistake(
    "paged_attention",
    hint="The sum of weights is not rescaled when a larger score arrives.",
    replace=(
        "total = shrink * total + weights.sum(dim=-1, keepdim=True)",
        "total = total + weights.sum(dim=-1, keepdim=True)",
    ),
    keeps=0.6,
)
def the_sum_does_not_shrink(): ...


@mistake(
    "paged_attention",
    hint="Each block is a softmax of its own, and the blocks are averaged. The weights of all blocks must sum "
    "to 1 together.",
    replace=[
        (
            "mixed = shrink * mixed + weights @ v",
            "mixed = mixed + (weights / weights.sum(dim=-1, keepdim=True)) @ v",
        ),
        (
            "total = shrink * total + weights.sum(dim=-1, keepdim=True)",
            "total = total + 1",
        ),
        (
            "weights, shrink = torch.exp(scores - new_m), torch.exp(m - new_m)",
            "weights = torch.softmax(scores, dim=-1).nan_to_num(); new_m = m",
        ),
    ],
)
def averages_the_blocks(): ...


@mistake(
    "paged_attention",
    hint="Scores are not divided by √d.",
    replace=(
        "rows = q.to(wide).reshape(num_kv_heads, -1, d) / math.sqrt(d)",
        "rows = q.to(wide).reshape(num_kv_heads, -1, d)",
    ),
    keeps=0.6,
    shows=right_once_scaled("q", "q[-1]**-0.5"),
)
def unscaled(): ...


@mistake(
    "paged_attention",
    hint="exp overflows, or all weights become 0: subtract the largest score so far.",
    replace=(
        "new_m = torch.maximum(m, scores.amax(dim=-1, keepdim=True))",
        "new_m = torch.zeros_like(m)",
    ),
)
def no_maximum(): ...


@mistake(
    "paged_attention",
    hint="Key heads are dealt out in turn; heads h of a group are neighbours: query head h reads key "
    "head h // (H / H_kv).",
    replace=[
        (
            "rows = q.to(wide).reshape(num_kv_heads, -1, d) / math.sqrt(d)",
            "rows = q.to(wide).reshape(-1, num_kv_heads, c, d).transpose(0, 1).reshape(num_kv_heads, -1, d) / math.sqrt(d)",
        ),
        (
            "return (mixed / total).reshape(q.shape).to(q.dtype)",
            "return (mixed / total).reshape(num_kv_heads, -1, c, d).transpose(0, 1).reshape(q.shape).to(q.dtype)",
        ),
    ],
)
def deals_key_heads_out_in_turn(): ...


@mistake(
    "paged_attention",
    hint="All keys are copied together before they are used: that is gather, which moves the whole "
    "cache in each step. Use one block after the other.",
)
def gathers_everything(q, keys, values, table, length):
    block_size = keys.shape[2]
    used = table[: -(-length // block_size)]
    k = torch.cat([keys[block] for block in used], dim=1)[:, :length]
    v = torch.cat([values[block] for block in used], dim=1)[:, :length]
    if q.dtype == torch.float16:
        mask = causal_mask(q.shape[1], length)
        return grouped_attention(
            q.float()[None], k.float()[None], v.float()[None], mask
        )[0].half()
    return grouped_attention(
        q[None], k[None], v[None], causal_mask(q.shape[1], length)
    )[0]


@mistake(
    "paged_attention",
    hint="Half precision adds up in half precision: long sums stop growing. Sum in float32.",
    replace=("wide = torch.promote_types(q.dtype, torch.float32)", "wide = q.dtype"),
)
def sums_in_half_precision(): ...


@mistake(
    "paged_attention",
    hint="-10000 is a number like any other, and all scores may lie below it. The maximum of nothing is minus infinity.",
    replace=(
        'torch.full((*rows.shape[:2], 1), float("-inf"), dtype=wide)',
        "torch.full((*rows.shape[:2], 1), -1e4, dtype=wide)",
    ),
)
def maximum_starts_at_minus_ten_thousand(): ...


@mistake(
    "paged_attention",
    hint="What came in half precision comes out in half precision.",
    shows=has_dtype("float32"),
    replace=(".reshape(q.shape).to(q.dtype)", ".reshape(q.shape)"),
)
def comes_out_as_float32(): ...


@mistake(
    "paged_attention",
    hint="The running maximum starts at 0, as if there were a score of 0: where all scores are far below, every "
    "exponential is 0. The maximum of nothing is minus infinity.",
    replace=('float("-inf"), dtype=wide)', "0.0, dtype=wide)"),
)
def maximum_starts_at_zero(): ...


@mistake(
    "paged_attention",
    hint="The scores are divided by √d; yours are divided by d.",
    replace=("/ math.sqrt(d)", "/ d"),
    keeps=0.65,
)
def scaled_by_d(): ...


# ── batched_step
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "batched_step",
    hint="Positions start at 0 in each step. A text's new tokens come after those that the cache holds.",
    replace=(
        "torch.arange(start, start + size) for start, size",
        "torch.arange(size) for start, size",
    ),
)
def positions_start_at_zero(): ...


@mistake(
    "batched_step",
    hint="Positions run on from one text to the next. Each text counts its own tokens.",
    replace=(
        "positions = torch.cat([torch.arange(start, start + size) for start, size in zip(starts, sizes, strict=True)])",
        "positions = torch.arange(starts[0], starts[0] + len(ids))",
    ),
    keeps=0.6,
)
def positions_run_through_all_texts(): ...


@mistake(
    "batched_step",
    hint="advance is called in every layer. The layers of a step all start at the same place: advance "
    "once, after the last layer.",
    replace=[
        (
            "cache.append(name, layer, own_k, own_v)",
            "cache.append(name, layer, own_k, own_v); cache.advance(name, len(new))",
        ),
        ("cache.advance(name, size)", "pass"),
    ],
)
def advances_in_every_layer(): ...


@mistake(
    "batched_step",
    hint="After the step the cache does not count the new tokens: advance each text.",
    replace=("cache.advance(name, size)", "pass"),
)
def never_advances(): ...


@mistake(
    "batched_step",
    hint="The text's length is counted without its chunk, or with one token: attention runs over all "
    "tokens, the new ones included.",
    replace=("cache.table(name), start + len(new))", "cache.table(name), start + 1)"),
    keeps=0.6,
)
def counts_one_new_token(): ...


@mistake(
    "batched_step",
    hint="You return logits of the first token of each chunk. What comes next depends on the last one.",
    replace=(
        "last = torch.tensor(sizes).cumsum(dim=0) - 1  # where each chunk ends",
        "last = torch.tensor(sizes).cumsum(dim=0) - torch.tensor(sizes)",
    ),
)
def logits_of_first_tokens(): ...


@mistake(
    "batched_step",
    hint="The rows are one place off: a chunk ends at the sum of the sizes so far, less one.",
    replace=(
        "last = torch.tensor(sizes).cumsum(dim=0) - 1  # where each chunk ends",
        "last = torch.tensor(sizes).cumsum(dim=0) % len(ids)",
    ),
    keeps=0.6,
)
def logits_one_place_off(): ...


@mistake(
    "batched_step",
    hint="Each text goes through the model by itself, and each reads all the weights. Everything but the "
    "attention runs once, on all tokens.",
    function="batched_step",
)
def one_text_after_the_other(params, chunks, cache, config):
    for _, new in chunks:
        for token in new:
            if not 0 <= token < len(params["embed"]):
                raise ValueError(
                    f"id {token} in a vocabulary of {len(params['embed'])}"
                )
    rows = []
    for name, new in chunks:
        start = cache.length(name)
        x = embed(torch.tensor([new]), params)
        positions = torch.arange(start, start + len(new))
        for layer, block in enumerate(params["blocks"]):
            q, k, v = project(x, positions, block, config)
            cache.append(name, layer, k[0], v[0])
            keys, values = cache.blocks(layer)
            table = cache.table(name)
            mixed = paged_attention(q[0], keys, values, table, start + len(new))
            x = finish_block(x, mixed[None], block)
        cache.advance(name, len(new))
        rows.append(to_logits(x[:, -1:], params)[0, 0])
    return torch.stack(rows)


@mistake(
    "batched_step",
    hint="Logits are computed for every token, and most of them are thrown away: pick the last tokens "
    "first.",
    replace=(
        "return to_logits(x[:, last], params)[0]",
        "return to_logits(x, params)[0, last]",
    ),
)
def logits_of_all_tokens(): ...


@mistake(
    "batched_step",
    hint="An id outside the vocabulary goes through: negative ids count from the end of the table. Raise a "
    "ValueError before anything is appended.",
    replace=("if not 0 <= token < vocab_size:", "if not token < vocab_size:"),
)
def takes_negative_ids(): ...


@mistake(
    "batched_step",
    hint="Ids are looked at when their text's turn comes, and the texts before the wrong one are in the cache by "
    "then. Look at all of them before anything is appended.",
    replace=[
        (
            """
            for token in ids.tolist():
                if not 0 <= token < vocab_size:
                    raise ValueError(f"id {token} in a vocabulary of {vocab_size}")
            """,
            """
            pass
            """,
        ),
        (
            "embed(ids[None], params)",
            "embed(ids[None].clamp(0, vocab_size - 1), params)",
        ),
        (
            "cache.append(name, layer, own_k, own_v)",
            "for token in new:\n"
            "    if not 0 <= token < vocab_size:\n"
            "        raise ValueError(f'id {token} in a vocabulary of {vocab_size}')\n"
            "cache.append(name, layer, own_k, own_v)",
        ),
    ],
)
def looks_at_ids_text_by_text(): ...


# ── serve
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "serve",
    hint="A batch runs until its last text is done before anybody else comes in. Decide before every step "
    "who takes part.",
    replace=(
        "while waiting and len(running) < max_running:",
        "while waiting and len(running) < (max_running if not any(cache.length(name) for name in running) else 0):",
    ),
)
def static_batches(): ...


@mistake(
    "serve",
    hint="A text that has all its tokens takes part in the next step too. Look at it after the step, and let it "
    "leave at once.",
    replace=(
        "len(texts[name]) == len(prompt) + max_new:",
        "len(texts[name]) == len(prompt) + max_new + 1:",
    ),
    keeps=0.6,
)
def one_token_too_many(): ...


@mistake(
    "serve",
    hint="The end token does not end a text.",
    replace=("if token == eos_id or len(", "if len("),
)
def goes_on_behind_the_end(): ...


@mistake(
    "serve",
    hint="A request was admitted with blocks that running texts need in this very step: count those as "
    "taken.",
    replace=("if promised + needed > cache.num_free:", "if needed > cache.num_free:"),
    keeps=0.6,
)
def admits_past_the_free_blocks(): ...


@mistake(
    "serve",
    hint="Where the first in the queue does not fit, another overtakes it. Large requests would wait for "
    "ever: admission ends at the first that does not fit.",
    replace=(
        "break  # nobody overtakes the first",
        "others = [n for n in waiting if promised - (-len(texts[n]) // cache.block_size) <= cache.num_free]\n"
        "if not others:\n"
        "    break\n"
        "waiting.remove(others[0])\n"
        "waiting.insert(0, others[0])\n"
        "needed = -(-len(texts[waiting[0]]) // cache.block_size)",
    ),
    keeps=0.6,
)
def lets_small_ones_overtake(): ...


@mistake(
    "serve",
    hint="The first of the running texts gives way, so the one that has waited longest is punished. The "
    "one that came last goes.",
    replace=("name = running.pop()", "name = running.pop(0)"),
)
def the_oldest_gives_way(): ...


@mistake(
    "serve",
    hint="A preempted text goes to the end of the queue, behind those that came after it. It belongs in "
    "front.",
    replace=("waiting.insert(0, name)", "waiting.append(name)"),
)
def goes_to_the_end_of_the_queue(): ...


@mistake(
    "serve",
    hint="A preempted text begins anew: what it had written is lost. Its prompt and its new tokens are read "
    "again together.",
    replace=(
        "waiting.insert(0, name)",
        "waiting.insert(0, name)\ntexts[name] = list(requests[name][0])",
    ),
)
def forgets_what_was_written(): ...


@mistake(
    "serve",
    hint="Each text feeds its whole text in each step. The cache has the past: feed what it does not have.",
    replace=(
        "chunks = [(name, texts[name][cache.length(name) :]) for name in running]",
        "for name in running:\n"
        "    cache.free(name)\n"
        "    cache.start(name)\n"
        "chunks = [(name, list(texts[name])) for name in running]",
    ),
)
def feeds_everything_again(): ...


@mistake(
    "serve",
    hint="A text that has left keeps its blocks: free them.",
    replace=(
        """
                running.remove(name)
                cache.free(name)
        """,
        """
                running.remove(name)
        """,
    ),
    keeps=0.6,
)
def blocks_of_finished_texts_stay(): ...


@mistake(
    "serve",
    hint="Prompts stand in front of the texts. The new tokens alone are asked for.",
    replace=("return [text[len(prompt) :] for text", "return [text for text"),
    keeps=0.6,
)
def returns_the_prompt_too(): ...


@mistake(
    "serve",
    hint="One place stays empty: max_running texts may take part.",
    replace=("len(running) < max_running:", "len(running) < max(1, max_running - 1):"),
)
def one_place_too_few(): ...


@mistake(
    "serve",
    hint="An empty prompt, no new token or no place cannot be served: raise a ValueError.",
    replace=[
        ("if max_running < 1:", "if False:"),
        ("if not prompt or max_new < 1:", "if False:"),
        (
            "while waiting or running:",
            "while (waiting or running) and max_running > 0:",
        ),
    ],
)
def takes_any_request(): ...


@mistake(
    "serve",
    hint="The token that ends a text is its last one: yours leaves it out.",
    replace=(
        "return [text[len(prompt) :] for text, (prompt, _) in zip(texts, requests, strict=True)], history",
        "\n    texts = [text[len(prompt) :] for text, (prompt, _) in zip(texts, requests, strict=True)]\n    return [text[:-1] if text[-1] == eos_id else text for text in texts], history\n",
    ),
)
def leaves_the_end_token_out(): ...


@mistake(
    "serve",
    hint="A request for no new token is served all the same: max_new below 1 is refused.",
    replace=[
        ("if not prompt or max_new < 1:", "if not prompt:"),
        (
            "len(texts[name]) == len(prompt) + max_new",
            "len(texts[name]) >= len(prompt) + max_new",
        ),
    ],
)
def takes_no_new_token(): ...


# ── PrefixIndex
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "PrefixIndex",
    hint="Your key is the block's own tokens. The same tokens behind another beginning have other keys and "
    "values: the beginning belongs to the key.",
    replace=[
        (
            "block = self._known.get(tuple(tokens[:end]))",
            "block = self._known.get(tuple(tokens[end - self._block_size : end]))",
        ),
        (
            "key = tuple(tokens[: (place + 1) * self._block_size])",
            "key = tuple(tokens[place * self._block_size : (place + 1) * self._block_size])",
        ),
    ],
)
def a_key_without_its_beginning(): ...


@mistake(
    "PrefixIndex",
    hint="A text that is known to its last token is matched completely, and there is nothing left to feed: "
    "where would its logits come from?",
    replace=(
        "for end in range(self._block_size, len(tokens), self._block_size):",
        "for end in range(self._block_size, len(tokens) + 1, self._block_size):",
    ),
)
def nothing_remains(): ...


@mistake(
    "PrefixIndex",
    hint="The last block of a text is remembered before it is full. What comes into it later belongs to "
    "another text.",
    replace=(
        "for place in range(len(tokens) // self._block_size):",
        "for place in range(-(-len(tokens) // self._block_size)):",
    ),
)
def remembers_half_full_blocks(): ...


@mistake(
    "PrefixIndex",
    hint="The index is no holder: when the text ends, the pool lends its blocks to others, and the index "
    "points at strangers' keys.",
    replace=[
        ("self._pool.share([blocks[place]])", "pass"),
        ("self._pool.release([self._known.pop(key)])", "self._known.pop(key)"),
        ("if self._pool.holders(block) == 1]", "if self._pool.holders(block) == 0]"),
    ],
)
def holds_nothing(): ...


@mistake(
    "PrefixIndex",
    hint="A block that is known already is held once more, or exchanged: the old one would never be given "
    "back. Keep the first.",
    replace=("if key not in self._known:", "if True:"),
)
def takes_known_blocks_again(): ...


@mistake(
    "PrefixIndex",
    hint="evict gives back blocks that texts are using, and forgets them. Only those that nobody else "
    "holds.",
    replace=(
        "if self._pool.holders(block) == 1]",
        "if self._pool.holders(block) >= 1]",
    ),
)
def forgets_blocks_in_use(): ...


@mistake(
    "PrefixIndex",
    hint="evict forgets blocks and does not give them back: they are lost to the pool.",
    replace=("self._pool.release([self._known.pop(key)])", "self._known.pop(key)"),
)
def evicts_without_releasing(): ...


@mistake(
    "PrefixIndex",
    hint="evict gives blocks back and still knows them: the next match hands out blocks of strangers.",
    replace=(
        "self._pool.release([self._known.pop(key)])",
        "self._pool.release([self._known[key]])",
    ),
)
def remembers_what_it_gave_back(): ...


@mistake(
    "PrefixIndex",
    hint="Two indexes share what they know, and each hands out blocks of the other's pool. (A dictionary of "
    "the class is made once, for all objects.)",
    replace=(
        "self._known = {}  # all tokens up to the end of a block: the block",
        "self._known = vars(type(self)).get('_all', {}); type(self)._all = self._known",
    ),
    keeps=0.6,
)
def knows_for_the_whole_class(): ...


@mistake(
    "PrefixIndex",
    hint="match adds holders. Whoever starts a text with these blocks is counted there.",
    replace=("blocks.append(block)", "blocks.append(block); self._pool.share([block])"),
)
def match_holds_too(): ...


@mistake(
    "PrefixIndex",
    hint="Behind a block that is not known, later ones were matched too: a gap ends the beginning.",
    replace=("                break", "                continue"),
)
def goes_on_behind_a_gap(): ...


@mistake(
    "PrefixIndex",
    keeps=0.65,
    hint="A text that leaves a known one after a few blocks gets none of them. The known beginning "
    "ends there, and the blocks before it still count.",
    replace=("                break", "                return []"),
)
def matches_all_or_nothing(): ...


@mistake(
    "PrefixIndex",
    hint="insert becomes a holder of blocks that it holds already, and never gives the second hold back: only what is new is held.",
    replace=(
        "            if key not in self._known:\n                self._pool.share([blocks[place]])\n                self._known[key] = blocks[place]\n",
        "            block = self._known.setdefault(key, blocks[place])\n            self._pool.share([block])\n",
    ),
)
def holds_known_blocks_again(): ...


@mistake(
    "PrefixIndex",
    hint="evict stops at the first block that a text is using. Blocks behind it may be the index's alone: look at all.",
    replace=(
        "unused = [key for key, block in self._known.items() if self._pool.holders(block) == 1]",
        "alone = {key: self._pool.holders(block) == 1 for key, block in self._known.items()}\n"
        "unused = list(itertools.takewhile(alone.get, alone))",
    ),
)
def evict_stops_at_a_block_in_use(): ...


# ── beam_search
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "beam_search",
    hint="log P is multiplied by the length penalty. It is divided by it: log P is negative, and long texts should "
    "gain.",
    replace=(
        "total / ((5 + len(tokens)) / 6) ** alpha",
        "total * ((5 + len(tokens)) / 6) ** alpha",
    ),
)
def multiplies_by_the_penalty(): ...


@mistake(
    "beam_search",
    hint="The penalty is (5 + length) / (5 + 1) to the power of alpha; yours is the length itself.",
    replace=(
        "total / ((5 + len(tokens)) / 6) ** alpha",
        "total / len(tokens) ** alpha",
    ),
)
def divides_by_the_length(): ...


@mistake(
    "beam_search",
    hint="The end token counts in the length of a text.",
    replace=(
        "total / ((5 + len(tokens)) / 6) ** alpha)",
        "total / ((5 + len(tokens) - (tokens[-1] == eos_id)) / 6) ** alpha)",
    ),
)
def does_not_count_the_end(): ...


@mistake(
    "beam_search",
    hint="A text that ends takes one of the num_beams places of its step. In yours another moves up "
    "into its place, since more continuations than num_beams are looked at.",
    replace=[
        ("topk(min(num_beams,", "topk(min(2 * num_beams,"),
        ("else:", "elif len(going_on) < num_beams:"),
    ],
)
def ended_texts_take_no_place(): ...


@mistake(
    "beam_search",
    hint="The prompt counts in the length of a text. Only new tokens do.",
    replace=(
        "((5 + len(tokens)) / 6) ** alpha",
        "((5 + len(prompt) + len(tokens)) / 6) ** alpha",
    ),
)
def counts_the_prompt(): ...


@mistake(
    "beam_search",
    hint="A text goes on behind its end token. It is finished: it leaves the beam.",
    replace=("if token == eos_id:", "if False:"),
)
def extends_finished_beams(): ...


@mistake(
    "beam_search",
    hint="Texts that have not ended when max_new is reached are lost. They count as they are.",
    replace=(
        "finished.append((tokens, total))",
        "if not finished or tokens[-1] == eos_id: finished.append((tokens, total))",
    ),
    keeps=0.6,
)
def drops_unfinished_texts(): ...


@mistake(
    "beam_search",
    hint="Beams go on with the keys of other beams: a continuation belongs to its beginning, and must fork "
    "that one.",
    replace=(
        "cache.fork(name, going_on[-1][0])",
        "cache.fork(beams[min(len(going_on), len(beams)) - 1][0], going_on[-1][0])",
    ),
)
def no_reordering_of_the_cache(): ...


@mistake(
    "beam_search",
    hint="Each beam keeps its own best continuation. All continuations of all beams compete: a beginning may "
    "have several, and another none.",
    replace=(
        "best = totals.flatten().topk(min(num_beams, totals.numel()))",
        "kept = totals if len(beams) == 1 else totals.where(totals == totals.amax(1, keepdim=True), totals - 1e6)\n"
        "best = kept.flatten().topk(min(num_beams, totals.numel()))",
    ),
)
def one_continuation_for_each_beam(): ...


@mistake(
    "beam_search",
    hint="Only the last step's log probability counts. A text's log P is the sum over all its new tokens.",
    replace=(
        "totals = so_far[:, None] + log_p",
        "totals = log_p + 0 * so_far[:, None]",
    ),
)
def forgets_the_sum(): ...


@mistake(
    "beam_search",
    hint="Logits are added up as they are. A score of a text is a sum of log probabilities.",
    replace=(
        "log_p = torch.log_softmax(step(chunks), dim=-1)  # [beams, V]",
        "log_p = step(chunks)",
    ),
    keeps=0.6,
)
def adds_logits(): ...


@mistake(
    "beam_search",
    hint="The beams that were given up still hold blocks: free every beginning once its continuations are "
    "forked.",
    replace=(
        """
        for name, _, _ in beams:
            cache.free(name)
        """,
        """
        pass
        """,
    ),
    keeps=0.6,
)
def given_up_beams_hold_blocks(): ...


@mistake(
    "beam_search",
    hint="Every beam is read again from the start in each step. Its keys are in the cache: feed the last "
    "token.",
    replace=[
        ("cache.fork(name, going_on[-1][0])", "cache.start(going_on[-1][0])"),
        (
            "chunks = [(name, tokens[-1:]) for name, tokens, _ in beams]",
            "chunks = [(name, [*prompt, *tokens]) for name, tokens, _ in beams]",
        ),
    ],
)
def reads_everything_again(): ...


@mistake(
    "beam_search",
    hint="The texts are not sorted by their scores, or the worst comes first.",
    replace=("key=lambda text: text[1], reverse=True)", "key=lambda text: text[1])"),
    keeps=0.6,
)
def worst_first(): ...


@mistake(
    "beam_search",
    hint="More texts come back than there are beams: return the best num_beams.",
    replace=("reverse=True)[:num_beams]", "reverse=True)"),
)
def returns_all_texts(): ...


@mistake(
    "beam_search",
    hint="No prompt, no beam or no new token: raise a ValueError.",
    replace=("if not prompt or num_beams < 1 or max_new < 1:", "if not prompt:"),
)
def takes_any_sizes(): ...


@mistake(
    "beam_search",
    hint="A text that has ended keeps its place in yours, and fewer go on after it. In each step num_beams "
    "continuations go on, however many texts have ended before.",
    replace=(
        "topk(min(num_beams, totals.numel()))",
        "topk(min(max(0, num_beams - len(finished)), totals.numel()))",
    ),
)
def finished_texts_keep_their_places(): ...


@mistake(
    "beam_search",
    hint="The search ends when num_beams texts are finished, and a better one may still be going on: it ends when no "
    "beam is left, or after max_new tokens.",
    replace=("if not beams:", "if not beams or len(finished) >= num_beams:"),
)
def stops_with_enough_finished_texts(): ...


@mistake(
    "beam_search",
    hint="The search ends with the first text that is finished, and a better one may still be going on.",
    replace=("if not beams:", "if not beams or finished:"),
    keeps=0.65,
)
def stops_with_the_first_finished_text(): ...


# ── sink_mass
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "sink_mass",
    hint="The first queries see nothing but the first tokens. They do not count: begin with query s.",
    replace=("weights[:, :, num_first:, :num_first]", "weights[:, :, :, :num_first]"),
    keeps=0.6,
)
def counts_all_queries(): ...


@mistake(
    "sink_mass",
    hint="The weights on the first tokens are averaged. Their sum is the share that lies on them.",
    replace=(".sum(dim=-1).mean(dim=(0, 2))", ".mean(dim=-1).mean(dim=(0, 2))"),
    keeps=0.6,
    shows=off_by_a_factor("num_first**-1"),
)
def averages_over_keys(): ...


@mistake(
    "sink_mass",
    hint="Queries and keys are exchanged: rows are queries, and the last axis counts keys.",
    replace=(
        "weights[:, :, num_first:, :num_first]",
        "weights.mT[:, :, num_first:, :num_first]",
    ),
    shows=right_once_transposed("weights"),
)
def takes_columns_for_rows(): ...


@mistake(
    "sink_mass",
    hint="One number for all heads. Each head has its own habits: keep their axis.",
    replace=(".mean(dim=(0, 2))", ".mean(dim=(0, 2)).mean().expand(weights.shape[1])"),
    shows=same_along(0) & ~nothing_where_something_is_right(),
)
def averages_the_heads(): ...


@mistake(
    "sink_mass",
    hint="num_first must leave a query, and be at least 1: raise a ValueError.",
    replace=("if not 1 <= num_first < n:", "if False:"),
)
def takes_any_number(): ...


@mistake(
    "sink_mass",
    hint="With as many first tokens as there are tokens no query is left, and a mean of nothing is nan: refuse it.",
    replace=("if not 1 <= num_first < n:", "if not 1 <= num_first <= n:"),
)
def leaves_no_query(): ...


@mistake(
    "sink_mass",
    hint="squeeze takes the axis of heads away where there is one head: [H] has one number then.",
    replace=(".mean(dim=(0, 2))", ".mean(dim=(0, 2)).squeeze()"),
)
def loses_a_single_head(): ...


@mistake(
    "sink_mass",
    hint="The mean is over the batch as well: one number for each head, and yours has one for each head of each text.",
    replace=("mean(dim=(0, 2))", "mean(dim=2)"),
    keeps=0.5,
)
def keeps_the_batch(): ...


@mistake(
    "sink_mass",
    hint="The mean over the queries is asked for. You take the query with the largest share.",
    replace=("mean(dim=(0, 2))", "amax(dim=2).mean(dim=0)"),
    keeps=0.5,
)
def takes_the_largest_share(): ...


@mistake(
    "sink_mass",
    hint="The mean is over sentences and queries, and the heads stay: you divide by the number of all queries, "
    "also those that are left out.",
    replace=(
        "weights[:, :, num_first:, :num_first].sum(dim=-1).mean(dim=(0, 2))",
        "weights[:, :, num_first:, :num_first].sum(dim=(0, 2, 3)) / (len(weights) * n)",
    ),
    keeps=0.65,
)
def divides_by_all_queries(): ...


# ── sink_attention
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "sink_attention",
    hint="The kept keys have their positions in the text. Positions are counted inside the cache: 0, 1, 2, … "
    "for what is kept.",
    replace=(
        "places = torch.arange(k.shape[2])  # [kept]",
        "places = torch.cat([torch.arange(n)[:num_sinks], torch.arange(n)[first_of_window:]])",
    ),
)
def positions_in_the_text(): ...


@mistake(
    "sink_attention",
    hint="The query has its position in the text, and the keys theirs in the cache: the newest token has the "
    "last place inside the cache.",
    replace=(
        "rotary_positions(q, places[-1:], theta)",
        "rotary_positions(q, torch.tensor([n - 1]), theta)",
    ),
    keeps=0.6,
)
def the_query_keeps_its_position(): ...


@mistake(
    "sink_attention",
    hint="The first tokens are dropped like all others: where are the sinks?",
    replace=(
        "torch.cat([t[:, :, :num_sinks], t[:, :, first_of_window:]], dim=2)",
        "t[:, :, max(0, n - window - num_sinks) :]",
    ),
)
def no_sinks(): ...


@mistake(
    "sink_attention",
    hint="In a short text tokens count twice, as sinks and in the window: the window begins behind the "
    "sinks.",
    replace=(
        "first_of_window = max(num_sinks, n - window)",
        "first_of_window = max(0, n - window)",
    ),
)
def counts_tokens_twice(): ...


@mistake(
    "sink_attention",
    hint="The window is the newest W tokens beside the sinks; yours is shorter by their number.",
    replace=(
        "first_of_window = max(num_sinks, n - window)",
        "first_of_window = max(num_sinks, n - max(1, window - num_sinks))",
    ),
    keeps=0.6,
)
def sinks_are_part_of_the_window(): ...


@mistake(
    "sink_attention",
    hint="The window leaves out a token at its older end: it has W tokens, the newest included.",
    replace=("max(num_sinks, n - window)", "max(num_sinks, n - max(1, window - 1))"),
    keeps=0.6,
)
def window_one_too_short(): ...


@mistake(
    "sink_attention",
    hint="Keys and query are not turned: attention knows no order.",
    replace=("k = rotary_positions(k, places, theta)", "k = k"),
    keeps=0.6,
)
def keys_are_not_turned(): ...


@mistake(
    "sink_attention",
    hint="Values are turned too. Positions belong to queries and keys alone.",
    replace=(
        "return grouped_attention(q, k, v, causal_mask(1, len(places)))",
        "return grouped_attention(q, k, rotary_positions(v, places, theta), causal_mask(1, len(places)))",
    ),
    keeps=0.6,
    shows=is_no_average("v"),
)
def turns_values(): ...


@mistake(
    "sink_attention",
    hint="A negative number of sinks, or a window of nothing: raise a ValueError.",
    replace=("if num_sinks < 0 or window < 1:", "if False:"),
)
def takes_any_window(): ...


# ── decode_costs
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "decode_costs",
    hint="The weights are counted once for each text. They are read once a step: that is what a batch is "
    "for.",
    replace=(
        "weight_bytes = weights * bytes_per_element",
        "weight_bytes = batch * weights * bytes_per_element",
    ),
)
def reads_weights_for_each_text(): ...


@mistake(
    "decode_costs",
    hint="The cache is counted once. Every text brings its own.",
    replace=(
        "cache_bytes = batch * n * kv_bytes_a_token",
        "cache_bytes = n * kv_bytes_a_token",
    ),
    shows=part("cache_bytes", ignores("batch")),
)
def one_cache_for_all(): ...


@mistake(
    "decode_costs",
    hint="A multiply and an add are two operations for each weight.",
    replace=("flops = batch * (2 * weights +", "flops = batch * (weights +"),
)
def one_operation_for_a_weight(): ...


@mistake(
    "decode_costs",
    hint="Attention has two products, scores and mixing of values: 4 operations for each key and "
    "feature.",
    replace=("4 * config.num_layers * wide * n", "2 * config.num_layers * wide * n"),
)
def leaves_a_product_out(): ...


@mistake(
    "decode_costs",
    hint="Scores are computed for every query head; key heads save bytes, not operations.",
    replace=("4 * config.num_layers * wide * n", "4 * config.num_layers * narrow * n"),
)
def operations_of_key_heads(): ...


@mistake(
    "decode_costs",
    hint="Every layer has scores and weighted sums of its own: yours are those of one layer.",
    replace=("4 * config.num_layers * wide * n", "4 * wide * n"),
)
def scores_of_one_layer(): ...


@mistake(
    "decode_costs",
    hint="A step has one query a text: n scores, not n².",
    replace=(
        "4 * config.num_layers * wide * n",
        "4 * config.num_layers * wide * n * n",
    ),
)
def counts_all_pairs(): ...


@mistake(
    "decode_costs",
    hint="The unembedding is a matrix too, and one of the largest.",
    replace=(
        "weights = config.num_layers * layer + config.d_model * config.vocab_size",
        "weights = config.num_layers * layer",
    ),
    keeps=0.6,
    shows=part("weight_bytes", ignores("config.vocab_size")),
)
def forgets_the_unembedding(): ...


@mistake(
    "decode_costs",
    hint="W_k and W_v have H_kv heads, not H.",
    replace=("(wide + narrow + config.d_ff)", "(wide + wide + config.d_ff)"),
    keeps=0.6,
    shows=part("weight_bytes", ignores("config.num_kv_heads")),
)
def wide_key_projections(): ...


@mistake(
    "decode_costs",
    hint="The intensity leaves the cache out: divide by all bytes that are read.",
    replace=("flops / (weight_bytes + cache_bytes)", "flops / weight_bytes"),
)
def intensity_without_the_cache(): ...


@mistake(
    "decode_costs",
    hint="Sizes below 1 mean nothing: raise a ValueError.",
    replace=("if min(batch, n, bytes_per_element) < 1:", "if False:"),
)
def takes_any_sizes_of_a_step(): ...


@mistake(
    "decode_costs",
    hint="An element of no bytes is none: bytes_per_element below 1 is refused as well, before anything is divided.",
    replace=("min(batch, n, bytes_per_element) < 1:", "min(batch, n) < 1:"),
)
def takes_elements_of_no_bytes(): ...


@mistake(
    "decode_costs",
    hint="The table of embeddings is looked up, a row for each token, and not multiplied: it is no part of the weights here.",
    replace=(
        "+ config.d_model * config.vocab_size",
        "+ 2 * config.d_model * config.vocab_size",
    ),
    keeps=0.6,
)
def counts_the_table_of_embeddings(): ...


@mistake(
    "decode_costs",
    hint="Every layer has a cache of its own: cache_bytes are those of all layers.",
    replace=(
        "cache_bytes = batch * n * kv_bytes_a_token(config, bytes_per_element)",
        "cache_bytes = batch * n * 2 * narrow * bytes_per_element",
    ),
    shows=part("cache_bytes", ignores("config.num_layers")),
    keeps=0.65,
)
def cache_of_one_layer(): ...


@mistake(
    "decode_costs",
    hint="The unembedding is there once, behind the last layer, and not in every layer.",
    replace=[
        (
            "(wide + narrow + config.d_ff)",
            "(wide + narrow + config.d_ff) + config.d_model * config.vocab_size",
        ),
        (
            "weights = config.num_layers * layer + config.d_model * config.vocab_size",
            "weights = config.num_layers * layer",
        ),
    ],
    keeps=0.6,
)
def unembeds_in_every_layer(): ...


@mistake(
    "decode_costs",
    hint="Keys and values are both kept: 2 numbers for each feature of a key head. Yours counts one.",
    replace=(
        "batch * n * kv_bytes_a_token(config, bytes_per_element)",
        "batch * n * kv_bytes_a_token(config, bytes_per_element) // 2",
    ),
    keeps=0.65,
)
def caches_keys_alone(): ...


@mistake(
    "decode_costs",
    hint="Each step reads the new token through the weights: the operations of the weights are those of batch "
    "tokens, not of batch * n.",
    replace=("flops = batch * (2 * weights +", "flops = batch * (2 * n * weights +"),
    keeps=0.65,
)
def runs_all_tokens_through_the_weights(): ...


# ── idle_and_decisive
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "idle_and_decisive",
    hint="The idle token's value is 0, so the output shrinks by its weight. Which value leaves the mean where it "
    "is?",
    replace=(
        "return unit * (level + math.log(99)), output,",
        "return unit * (level + math.log(99)), torch.zeros_like(output),",
    ),
    shows=part(1, nothing_where_something_is_right()),
)
def an_idle_value_of_zero(): ...


@mistake(
    "idle_and_decisive",
    hint="The idle token's score is high, and against the others together it is not: they sum up. Compare with the "
    "log of the sum of their exponentials.",
    replace=(
        "return unit * (level + math.log(99)), output,",
        "return unit * scores.max(), output,",
    ),
    keeps=0.6,
)
def an_idle_key_like_the_best(): ...


@mistake(
    "idle_and_decisive",
    hint="The score is q·k/√d: the √d is missing in your keys, and the weights are others than you think.",
    replace=("unit = q * (math.sqrt(d) / (q @ q))", "unit = q / (q @ q)"),
    keeps=0.6,
)
def forgets_the_scale(): ...


@mistake(
    "idle_and_decisive",
    hint="The decisive value is not far enough away: with a weight of w the output moves by w times its distance.",
    replace=("far[0] = 20 / weight", "far[0] = 20"),
)
def a_value_that_is_too_near(): ...


@mistake(
    "idle_and_decisive",
    hint="The decisive token's weight is too large: its score must lie far below the others together.",
    replace=("weight = 0.005", "weight = 0.05"),
)
def a_decisive_token_with_weight(): ...


@mistake(
    "idle_and_decisive",
    hint="A query of zeros gives every key the same weight: raise a ValueError.",
    replace=("if not q.any():", "if False:"),
)
def takes_any_query(): ...


@mistake(
    "idle_and_decisive",
    hint="Your idle key is the same whatever the other keys are. Which score is large enough depends on theirs: "
    "compare with the log of the sum of their exponentials.",
    replace=(
        "return unit * (level + math.log(99)), output,",
        "return 100 * q, output,",
    ),
    shows=part(0, ignores("k")),
)
def an_idle_key_that_knows_no_others(): ...


@mistake(
    "idle_and_decisive",
    hint="Your decisive key is the same whatever the other keys are. Which score is small enough depends on theirs: "
    "compare with the log of the sum of their exponentials.",
    replace=("unit * (level + math.log(weight / (1 - weight)))", "-100 * q"),
    shows=part(2, ignores("k")),
)
def a_decisive_key_that_knows_no_others(): ...


@mistake(
    "idle_and_decisive",
    hint="Your decisive value is the same whatever the values are. The output moves by the token's weight times the "
    "distance of its value from the output: start from there, and go far enough for that weight.",
    replace=(
        "unit * (level + math.log(weight / (1 - weight))), output + far",
        "unit * (level + math.log(weight / (1 - weight))), torch.full_like(output, 1000.0)",
    ),
    shows=part(3, ignores("v")),
)
def a_decisive_value_that_knows_no_output(): ...
