"""Wrong answers that people give about caches and decoding, each with one wrong idea."""

import math

import torch

from autograder.suite import (
    has_dtype,
    ignores,
    ignores_the_size_of,
    mistake,
    needs_the_last_only,
    not_finite,
    sums_to_one,
)

# ── KVCache
# ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Slots:
    """A good cache; the mistakes change one thing in it."""

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.sizes = (batch, num_kv_heads, d_head)
        self.capacity, self.dtype, self.done = capacity, dtype, 0
        room = (batch, num_kv_heads, capacity, d_head)
        self.stores = [
            [torch.zeros(room, dtype=dtype) for _ in range(2)]
            for _ in range(num_layers)
        ]

    @property
    def length(self):
        return self.done

    def fits(self, k, v):
        batch, num_kv_heads, d_head = self.sizes
        if k.shape != v.shape or k.shape != (batch, num_kv_heads, k.shape[2], d_head):
            raise ValueError(
                f"k {list(k.shape)}, v {list(v.shape)}, cache {self.sizes}"
            )
        if self.length + k.shape[2] > self.capacity:
            raise ValueError(
                f"{self.length + k.shape[2]} tokens, capacity {self.capacity}"
            )

    def append(self, layer, k, v):
        self.fits(k, v)
        return self.write(layer, k, v)

    def write(self, layer, k, v):
        start, end = self.length, self.length + k.shape[2]
        for store, new in zip(self.stores[layer], (k, v)):
            store[:, :, start:end] = new
        return tuple(store[:, :, :end].clone() for store in self.stores[layer])

    def advance(self, c):
        if self.length + c > self.capacity:
            raise ValueError(f"{self.length + c} tokens, capacity {self.capacity}")
        self.done += c

    def reset(self):
        self.done = 0


@mistake(
    "KVCache",
    hint="length has moved after append. Only advance moves it, once a step: a model with two "
    "layers appends twice, and layer 1 would start behind layer 0's tokens.",
)
class AdvancesInEveryLayer(_Slots):
    def append(self, layer, k, v):
        answer = super().append(layer, k, v)
        self.done += k.shape[2]
        return answer

    def advance(self, c):
        if self.length > self.capacity:
            raise ValueError(f"{self.length + c} tokens, capacity {self.capacity}")


@mistake(
    "KVCache",
    hint="All layers write into the same memory: the last one to append wins. Each layer "
    "has its own.",
)
class OneStoreForAllLayers(_Slots):
    def append(self, layer, k, v):
        return super().append(0, k, v)


@mistake(
    "KVCache",
    hint="Your values are the keys. Compare what append returns as v_all with the v that "
    "you gave it.",
    keeps=0.65,
)
class StoresKeysAsValues(_Slots):
    def append(self, layer, k, v):
        self.fits(k, v)
        return self.write(layer, k, k)


@mistake(
    "KVCache",
    hint="Your keys are the values: look at which of the two you write where.",
    keeps=0.65,
)
class StoresValuesAsKeys(_Slots):
    def append(self, layer, k, v):
        self.fits(k, v)
        return self.write(layer, v, v)


@mistake(
    "KVCache",
    hint="append returns the past without the chunk. A token attends to itself too: first "
    "append, then return.",
)
class LeavesTheChunkOut(_Slots):
    def write(self, layer, k, v):
        return tuple(t[:, :, : self.length] for t in super().write(layer, k, v))


@mistake(
    "KVCache",
    hint="A full cache takes further tokens without a word. The contract asks for a ValueError.",
)
class DropsWhatDoesNotFit(_Slots):
    def append(self, layer, k, v):
        room = max(0, self.capacity - self.length)
        return super().append(layer, k[:, :, :room], v[:, :, :room])

    def advance(self, c):
        self.done = min(self.capacity, self.done + c)


@mistake(
    "KVCache",
    hint="The last slot is never used: with a capacity of 7, seven tokens fit.",
    keeps=0.65,
)
class OneSlotTooFew(_Slots):
    def fits(self, k, v):
        super().fits(k, v)
        if self.length + k.shape[2] >= self.capacity:
            raise ValueError(
                f"{self.length + k.shape[2]} tokens, capacity {self.capacity}"
            )


@mistake(
    "KVCache",
    hint="Two caches of yours share their memory. (A list of the class, of the module, or a "
    "default argument is made once and used by all objects.)",
)
class SharesStoresBetweenObjects(_Slots):
    shared = {}

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.stores = self.shared.setdefault(sizes, self.stores)


@mistake(
    "KVCache",
    hint="The length does not belong to the object: a second cache starts where the first one is. "
    "(A counter of the class, or outside it, is shared by all caches.)",
)
class CountsForTheWholeClass(_Slots):
    counts = {}

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.key = sizes
        self.counts.setdefault(sizes, 0)

    @property
    def length(self):
        return self.counts[self.key]

    def advance(self, c):
        if self.length + c > self.capacity:
            raise ValueError(f"{self.length + c} tokens, capacity {self.capacity}")
        self.counts[self.key] += c

    def reset(self):
        self.counts[self.key] = 0


@mistake(
    "KVCache",
    hint="What append returned is a view, and its slots are written again: by a second append "
    "before advance, or after "
    "a reset. Whoever kept it sees other numbers. What could you do in these two cases?",
)
class HandsOutViewsThatChange(_Slots):
    def write(self, layer, k, v):
        end = self.length + k.shape[2]
        super().write(layer, k, v)
        return tuple(store[:, :, :end] for store in self.stores[layer])


@mistake(
    "KVCache",
    hint="What an earlier append returned is other numbers after a later one: it lies in a buffer "
    "that you write again.",
)
class ReturnsTheSameBufferEveryTime(_Slots):
    def write(self, layer, k, v):
        fresh = super().write(layer, k, v)
        self.shown = getattr(self, "shown", {})
        old = self.shown.get(layer)
        if old is not None:
            for mine, new in zip(old, fresh):
                mine.copy_(new[:, :, -1:].expand_as(mine))
        self.shown[layer] = fresh
        return (
            tuple(t.clone() for t in fresh)
            if self.length == 0 and old is None and k.shape[2] == 0
            else fresh
        )


class _Lists(_Slots):
    """A good cache that concatenates."""

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.sizes, self.capacity, self.dtype, self.done = (
            (batch, num_kv_heads, d_head),
            capacity,
            dtype,
            0,
        )
        self.stores = [None] * num_layers

    def joined(self, layer, k, v):
        old = self.stores[layer]
        if old is None or self.length == 0:
            return k.to(self.dtype).clone(), v.to(self.dtype).clone()
        return tuple(
            torch.cat([o[:, :, : self.length], n.to(self.dtype)], dim=2)
            for o, n in zip(old, (k, v))
        )

    def write(self, layer, k, v):
        self.stores[layer] = self.joined(layer, k, v)
        return self.stores[layer]


@mistake(
    "KVCache",
    hint="The first chunk is kept as the caller's own tensor. When the caller changes it, your "
    "cache changes too.",
)
class HoldsTheCallersTensor(_Lists):
    def joined(self, layer, k, v):
        if self.stores[layer] is None or self.length == 0:
            return k.to(self.dtype), v.to(self.dtype)
        return super().joined(layer, k, v)


@mistake(
    "KVCache",
    hint="A second append before advance stands behind the first instead of in its place: the "
    "chunk belongs behind the "
    "`length` finished tokens, whatever lies there.",
)
class SecondAppendAddsInstead(_Lists):
    def joined(self, layer, k, v):
        old = self.stores[layer]
        if old is None:
            return k.to(self.dtype).clone(), v.to(self.dtype).clone()
        return tuple(
            torch.cat([o, n.to(self.dtype)], dim=2) for o, n in zip(old, (k, v))
        )

    def reset(self):
        self.done, self.stores = 0, [None] * len(self.stores)


@mistake(
    "KVCache",
    hint="After reset the old tokens are still there: length has to start at 0 again, "
    "in all layers.",
)
class ResetForgetsNothing(_Slots):
    def reset(self):
        self.stores = [[torch.zeros_like(t) for t in pair] for pair in self.stores]


@mistake(
    "KVCache",
    hint="reset clears layer 0 only: the next append to another layer still finds the old tokens.",
)
class ResetClearsOneLayer(_Lists):
    def joined(self, layer, k, v):
        old = self.stores[layer]
        if old is None or (self.length == 0 and layer == 0):
            return k.to(self.dtype).clone(), v.to(self.dtype).clone()
        kept = max(self.length, old[0].shape[2] if self.stale else 0)
        return tuple(
            torch.cat([o[:, :, :kept], n.to(self.dtype)], dim=2)
            for o, n in zip(old, (k, v))
        )

    stale = False

    def reset(self):
        self.done, self.stale = 0, True


@mistake(
    "KVCache",
    hint="The cache was asked to store in its own dtype; yours takes whatever the chunk has.",
)
class KeepsTheChunksDtype(_Lists):
    def joined(self, layer, k, v):
        self.dtype = k.dtype
        return super().joined(layer, k, v)


@mistake(
    "KVCache",
    hint="advance counts steps. It should count tokens: a prompt of seven moves length by seven.",
    keeps=0.65,
)
class CountsSteps(_Slots):
    def advance(self, c):
        super().advance(c)
        self.done -= c - 1


@mistake(
    "KVCache",
    hint="append returns all slots, also those that nobody has written: zeros look like keys.",
    keeps=0.65,
)
class ReturnsEmptySlotsToo(_Slots):
    def write(self, layer, k, v):
        super().write(layer, k, v)
        return tuple(store.clone() for store in self.stores[layer])


@mistake(
    "KVCache",
    hint="The new tokens are laid along the heads. Which axis of [B, H_kv, n, d] counts tokens?",
    keeps=0.65,
)
class JoinsAlongTheHeads(_Lists):
    def joined(self, layer, k, v):
        old = self.stores[layer]
        if old is None or self.length == 0:
            return k.to(self.dtype).clone(), v.to(self.dtype).clone()
        return tuple(
            torch.cat([o, n.to(self.dtype)], dim=1) for o, n in zip(old, (k, v))
        )


@mistake(
    "KVCache",
    hint="A chunk of another batch or head count is taken without a word, or torch complains: "
    "compare the shapes first.",
)
class TakesAnyShape(_Slots):
    def fits(self, k, v):
        if self.length + k.shape[2] > self.capacity:
            raise ValueError(
                f"{self.length + k.shape[2]} tokens, capacity {self.capacity}"
            )


@mistake(
    "KVCache",
    hint="The keys are stored before the values are checked: a refused append has replaced the "
    "keys of the chunk before it. Check both, and write then.",
)
class ChecksTheValuesAfterTheKeysAreStored(_Slots):
    def append(self, layer, k, v):
        self.fits(k, k)
        start, end = self.length, self.length + k.shape[2]
        self.stores[layer][0][:, :, start:end] = k
        self.fits(k, v)
        return self.write(layer, k, v)


@mistake(
    "KVCache",
    hint="advance beyond the capacity is not refused: length would promise tokens that are "
    "nowhere.",
)
class AdvancesBeyondTheCapacity(_Slots):
    def advance(self, c):
        self.done += c


@mistake(
    "KVCache",
    hint="Every append copies the memory of all layers, and one layer has changed. Keep the "
    "layers in a list.",
)
class CopiesAllLayersEveryTime(_Slots):
    def write(self, layer, k, v):
        answer = super().write(layer, k, v)
        everything = torch.stack([torch.stack(pair) for pair in self.stores])
        self.stores = [[t.clone() for t in pair] for pair in everything]
        return answer


@mistake(
    "KVCache",
    hint="Tokens are written one by one in a Python loop; a slice takes the whole chunk at once.",
)
class WritesTokenByToken(_Slots):
    def write(self, layer, k, v):
        for i in range(k.shape[2]):
            for store, new in zip(self.stores[layer], (k, v)):
                store[:, :, self.length + i] = new[:, :, i]
        return tuple(
            store[:, :, : self.length + k.shape[2]].clone()
            for store in self.stores[layer]
        )


@mistake(
    "KVCache",
    hint="advance always takes the whole chunk. Only the first c tokens count; the rest is dropped.",
)
class AdvanceKeepsTheWholeChunk(_Lists):
    def write(self, layer, k, v):
        self.pending = k.shape[2]
        return super().write(layer, k, v)

    def advance(self, c):
        super().advance(c)
        self.done += getattr(self, "pending", c) - c


@mistake(
    "KVCache",
    hint="The values that append returned are a view, and their slots are written again. The "
    "keys are safe: do the "
    "same for both.",
    replace=("values = self._values[layer] = values.clone()", "pass"),
)
def lets_values_change_that_were_returned(): ...


@mistake(
    "KVCache",
    hint="What append returned before a reset changes with the next append, which writes into the same slots. "
    "Somebody may hold a view of these: the new text needs memory of its own.",
    replace=(
        "def reset(self):",
        """
        def reset(self):
            self._shown = [0] * len(self._shown)
        """,
    ),
)
def reset_forgets_what_was_shown(): ...


@mistake(
    "KVCache",
    hint="The first values are kept as the caller's own tensor. When it changes, your "
    "cache does, too.",
)
class HoldsTheCallersValues(_Lists):
    def joined(self, layer, k, v):
        if self.stores[layer] is None or self.length == 0:
            return k.to(self.dtype).clone(), v.to(self.dtype)
        return super().joined(layer, k, v)


@mistake(
    "KVCache",
    hint="A batch of one row loses its first axis. It is [1, H_kv, n, d], too.",
    replace=(
        "return keys[:, :, :end], values[:, :, :end]",
        "return keys[:, :, :end].squeeze(0), values[:, :, :end].squeeze(0)",
    ),
)
def squeezes_a_batch_of_one(): ...


@mistake(
    "KVCache",
    hint="Two caches of yours share their memory. (A list of the class, of the module, or a "
    "default argument is made once and used by all objects.)",
)
class SharesItsListsWithTheClass(_Slots):
    kept = {}

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.reset()

    def reset(self):
        self.done = 0
        batch, heads, d = self.sizes
        for layer in range(len(self.stores)):
            nothing = torch.zeros(batch, heads, 0, d, dtype=self.dtype)
            self.kept[layer] = nothing, nothing

    def append(self, layer, k, v):
        self.fits(k, v)
        self.kept[layer] = tuple(
            torch.cat([old[:, :, : self.done], new.to(self.dtype)], dim=2)
            for old, new in zip(self.kept[layer], (k, v), strict=True)
        )
        return self.kept[layer]


# ── decode_step
# ──────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "decode_step",
    hint="Positions start at 0 in every step. The cache already holds tokens: the first new one "
    "comes after them.",
    replace=("torch.arange(start, start + c)", "torch.arange(c)"),
)
def positions_restart_every_step(): ...


@mistake(
    "decode_step",
    hint="After the prompt, positions are one too large. With t tokens at 0 to t - 1, the next one "
    "is at t.",
    replace=(
        "torch.arange(start, start + c)",
        "torch.arange(start, start + c) + (start > 0)",
    ),
    keeps=0.65,
)
def positions_are_one_late(): ...


@mistake(
    "decode_step",
    hint="The new token gets the position of the newest old one. With t tokens at 0 to t - 1, the "
    "next one is at t.",
    replace=(
        "torch.arange(start, start + c)",
        "torch.arange(start, start + c) - (start > 0)",
    ),
    keeps=0.65,
)
def positions_are_one_early(): ...


@mistake(
    "decode_step",
    hint="The past is counted twice in the positions: cache.length has it already.",
    replace=(
        "torch.arange(start, start + c)",
        "torch.arange(2 * start, 2 * start + c)",
    ),
)
def past_counts_twice_in_positions(): ...


@mistake(
    "decode_step",
    hint="The cache is advanced by everything so far. It knows the past already: advance "
    "by the chunk.",
    replace=("cache.advance(c)", "cache.advance(start + c)"),
)
def advances_by_everything_so_far(): ...


@mistake(
    "decode_step",
    hint="The cache is advanced once a layer. A step has many layers and is one step.",
    replace=(
        """
    x = finish_block(x, grouped_attention(q, k, v, may_attend), block)
cache.advance(c)  # once a step, not once a layer
""",
        """
    x = finish_block(x, grouped_attention(q, k, v, may_attend), block)
    cache.advance(c)
""",
    ),
)
def advances_once_a_layer(): ...


@mistake(
    "decode_step",
    hint="The cache is not advanced: the next step would write over this step's keys.",
    replace=("cache.advance(c)  # once a step, not once a layer", ""),
)
def never_advances(): ...


@mistake(
    "decode_step",
    hint="The cache is advanced by one, whatever the chunk. Count tokens, not steps.",
    replace=("cache.advance(c)", "cache.advance(1)"),
)
def advances_by_one_whatever_the_chunk(): ...


@mistake(
    "decode_step",
    hint="There is no causal mask. A single new token needs none, but in a chunk the first would "
    "see the last.",
    replace=(
        'causal_mask(c, n_k, getattr(cache, "window", None))',
        "torch.ones(c, n_k, dtype=torch.bool)",
    ),
)
def no_mask_inside_the_chunk(): ...


@mistake(
    "decode_step",
    hint="Your triangle starts at the top left, as is_causal of torch's "
    "scaled_dot_product_attention does: with 1 query and 8 keys it shows the oldest key only. The "
    "newest query belongs to the newest key.",
    replace=(
        'causal_mask(c, n_k, getattr(cache, "window", None))',
        "torch.ones(c, n_k).tril().bool()",
    ),
)
def triangle_at_the_top_left(): ...


@mistake(
    "decode_step",
    hint="A new token does not attend to itself. Append first, then attend to all of it.",
    replace=(
        'causal_mask(c, n_k, getattr(cache, "window", None))',
        'causal_mask(c, n_k, getattr(cache, "window", None)) & ~torch.eye(n_k)[-c:].bool()',
    ),
    keeps=0.65,
)
def token_does_not_see_itself(): ...


@mistake(
    "decode_step",
    hint="Only the past is attended to; the chunk's own keys are left out. Append, then attend.",
    replace=(
        'causal_mask(c, n_k, getattr(cache, "window", None))',
        'causal_mask(c, n_k, getattr(cache, "window", None)) & (torch.arange(n_k) < n_k - c)',
    ),
)
def attends_to_the_past_only(): ...


@mistake(
    "decode_step",
    hint="Only the chunk is attended to. What append returns holds the past as well: use it.",
    replace=(
        'causal_mask(c, n_k, getattr(cache, "window", None))',
        'causal_mask(c, n_k, getattr(cache, "window", None)) & (torch.arange(n_k) >= n_k - c)',
    ),
)
def attends_to_the_chunk_only(): ...


@mistake(
    "decode_step",
    hint="All layers use the cache of layer 0. Every layer has keys and values of its own.",
    replace=("cache.append(layer, k, v)", "cache.append(0, k, v)"),
)
def one_cache_for_all_layers(): ...


@mistake(
    "decode_step",
    hint="Keys that come out of the cache were turned when they went in. A second turn moves "
    "them to other positions.",
    replace=(
        "n_k = k.shape[2]",
        """
n_k = k.shape[2]
if "positions" not in params and start:
    k = rotary_positions(k, torch.arange(n_k), config.theta)
""",
    ),
)
def rotates_cached_keys_again(): ...


@mistake(
    "decode_step",
    hint="Plain keys are stored, and the whole past is turned anew in every step. A key's "
    "position never changes: turn "
    "it once, before it goes into the cache.",
    replace=(
        "k, v = cache.append(layer, k, v)",
        """
h = layer_norm(x, block["ln1_gamma"], block["ln1_beta"])
k, v = cache.append(layer, split_heads(h @ block["w_k"], config.num_kv_heads), v)
if "positions" not in params:
    k = rotary_positions(k, torch.arange(start + c - k.shape[2], start + c), config.theta)
""",
    ),
)
def stores_plain_keys(): ...


@mistake(
    "decode_step",
    hint="Values are turned too. Rotation is for comparing: queries and keys only.",
    replace=(
        "k, v = cache.append(layer, k, v)",
        """
if "positions" not in params:
    v = rotary_positions(v, positions, config.theta)
k, v = cache.append(layer, k, v)
""",
    ),
)
def rotates_values(): ...


@mistake(
    "decode_step",
    hint="Query heads take their key heads in turn (0 1 0 1 …). A group is neighbours: 0 0 1 1.",
    replace=(
        "n_k = k.shape[2]",
        """
n_k = k.shape[2]
k, v = (t.repeat(1, config.num_heads // config.num_kv_heads, 1, 1) for t in (k, v))
""",
    ),
)
def deals_key_heads_out_in_turn(): ...


@mistake(
    "decode_step",
    hint="Each key is copied for every query head that reads it, in every step. The point of "
    "sharing is to read it "
    "once: several query heads are more queries of one key head.",
    replace=(
        "n_k = k.shape[2]",
        """
n_k = k.shape[2]
k, v = (t.repeat_interleave(config.num_heads // config.num_kv_heads, dim=1) for t in (k, v))
""",
    ),
)
def copies_keys_for_every_query_head(): ...


@mistake(
    "decode_step",
    hint="The cache has a window, and the mask does not know it: in a chunk, late tokens "
    "see too far.",
    replace=('getattr(cache, "window", None)', "None"),
)
def ignores_the_window(): ...


@mistake(
    "decode_step",
    hint="Padding is attended to: hide from every query the columns in which the mask is False.",
    replace=("may_attend = may_attend & mask[:, None, None, -n_k:]", "pass"),
)
def padding_is_seen(): ...


@mistake(
    "decode_step",
    hint="Padding shifts the positions: a row's first real token is at position 0, in whatever "
    "column it stands.",
    replace=("ragged_positions(mask)[:, start:]", "torch.arange(start, start + c)"),
)
def padding_counts_as_positions(): ...


@mistake(
    "decode_step",
    hint="Positions are counted inside the chunk's part of the mask. The past counts too: take "
    "them from the whole "
    "mask, and then the chunk's part.",
    replace=("ragged_positions(mask)[:, start:]", "ragged_positions(mask[:, start:])"),
)
def ragged_positions_of_the_chunk_alone(): ...


@mistake(
    "decode_step",
    hint="The cache returned the newest keys only. Their columns in the mask are the last ones.",
    replace=("mask[:, None, None, -n_k:]", "mask[:, None, None, :n_k]"),
)
def takes_the_oldest_columns_of_the_mask(): ...


@mistake(
    "decode_step",
    hint="The batch axis of the mask meets the heads. There is one row for each text: [B, 1, 1, "
    "n].",
    replace=(
        "mask[:, None, None, -n_k:]",
        "mask[:, None, -n_k:]",
    ),
)
def mask_goes_to_heads(): ...


@mistake(
    "decode_step",
    hint="All rows use the padding of the first.",
    replace=("mask[:, None, None, -n_k:]", "mask[0, -n_k:]"),
)
def every_row_has_the_first_rows_padding(): ...


@mistake(
    "decode_step",
    hint="The mask is upside down: True means a real token, which may be attended to.",
    replace=("may_attend & mask[", "may_attend & ~mask["),
)
def mask_is_upside_down(): ...


@mistake(
    "decode_step",
    hint="The learned positions are missing. They are added to the embeddings, once.",
    replace=("embed(ids, positions, params)", 'params["embed"][ids]'),
)
def forgets_learned_positions(): ...


@mistake(
    "decode_step",
    hint="Learned positions are added in every layer. Once, at the input, is enough.",
    replace=(
        "q, k, v = project(x, positions, block, params, config)",
        """
if "positions" in params and layer:
    x = x + params["positions"][positions]
q, k, v = project(x, positions, block, params, config)
""",
    ),
)
def adds_positions_in_every_layer(): ...


@mistake(
    "decode_step",
    hint="The last norm is missing: a pre-norm model normalizes once more before the logits.",
    replace=(
        "to_logits(x[:, -1:] if last_only else x, params)",
        "(x[:, -1:] if last_only else x) @ unembedding(params)",
    ),
    keeps=0.65,
)
def forgets_the_final_norm(): ...


@mistake(
    "decode_step",
    hint="Logits are made with the embedding although the params have an unembedding.",
    replace=(
        "to_logits(x[:, -1:] if last_only else x, params)",
        'to_logits(x[:, -1:] if last_only else x, {**params, "unembed": params["embed"].T})',
    ),
)
def always_ties_the_unembedding(): ...


@mistake(
    "decode_step",
    hint="last_only is ignored: one row of logits is asked for.",
    replace=("x[:, -1:] if last_only else x", "x"),
)
def ignores_last_only(): ...


@mistake(
    "decode_step",
    hint="All logits are made and then thrown away but one. Take the last position before.",
    replace=(
        "return to_logits(x[:, -1:] if last_only else x, params)",
        """
logits = to_logits(x, params)
return logits[:, -1:] if last_only else logits
""",
    ),
)
def cuts_the_logits_afterwards(): ...


@mistake(
    "decode_step",
    hint="Only the last position's logits come back, though nobody asked for last_only.",
    replace=("x[:, -1:] if last_only else x", "x[:, -1:]"),
)
def always_last_only(): ...


@mistake(
    "decode_step",
    hint="last_only gives the first position. The next token is foretold by the last.",
    replace=("x[:, -1:] if last_only", "x[:, :1] if last_only"),
)
def first_instead_of_last(): ...


@mistake(
    "decode_step",
    hint="These are probabilities. Logits are asked for, before any softmax.",
    shows=sums_to_one(-1),
    replace=(
        "to_logits(x[:, -1:] if last_only else x, params)",
        "torch.softmax(to_logits(x[:, -1:] if last_only else x, params), dim=-1)",
    ),
    keeps=0.65,
)
def returns_probabilities(): ...


@mistake(
    "decode_step",
    hint="An id outside the vocabulary goes through; Python counts -1 from the end of the table.",
    replace=(
        """
if ids.min() < 0 or ids.max() >= vocab_size:
    raise ValueError(f"ids from {int(ids.min())} to {int(ids.max())} in a vocabulary of {vocab_size}")
""",
        "ids = ids.remainder(vocab_size)",
    ),
)
def takes_any_id(): ...


@mistake(
    "decode_step",
    hint="Positions beyond the table get a row all the same. The contract asks for a ValueError.",
    replace=(
        """
if "positions" in params and positions.max() >= len(params["positions"]):
    raise ValueError(f"{int(positions.max()) + 1} positions, and a table of {len(params['positions'])}")
""",
        """
if "positions" in params:
    positions = positions.clamp(max=len(params["positions"]) - 1)
""",
    ),
)
def clamps_positions(): ...


@mistake(
    "decode_step",
    hint="A position beyond the table is left to torch, which raises an error of its own. The contract asks for a "
    "ValueError with both numbers, before anything goes into the cache.",
    replace=(
        'if "positions" in params and positions.max() >= len(params["positions"]):',
        "if False:",
    ),
)
def leaves_the_table_to_torch(): ...


@mistake(
    "decode_step",
    hint="Half precision comes back as float32.",
    shows=has_dtype("float32"),
    replace=(
        "return to_logits(x[:, -1:] if last_only else x, params)",
        """
logits = to_logits(x[:, -1:] if last_only else x, params)
return logits.float() if logits.dtype == torch.float16 else logits
""",
    ),
)
def returns_float32(): ...


@mistake(
    "decode_step",
    hint="The chunk goes through the model token by token in a Python loop. All of it can go at "
    "once: that is what the "
    "mask is for.",
)
def feeds_the_chunk_token_by_token(
    params, ids, cache, config, mask=None, last_only=False
):
    start, logits = cache.length, []
    if mask is not None and mask.shape != (len(ids), start + ids.shape[1]):
        raise ValueError(
            f"mask must be {[len(ids), start + ids.shape[1]]}, got {list(mask.shape)}"
        )
    if ids.min() < 0 or ids.max() >= len(params["embed"]):
        raise ValueError(
            f"ids from {int(ids.min())} to {int(ids.max())} in a vocabulary of "
            f"{len(params['embed'])}"
        )
    for end in range(start + 1, start + ids.shape[1] + 1):
        positions = (
            torch.tensor([end - 1])
            if mask is None
            else ragged_positions(mask[:, :end])[:, -1:]
        )
        if "positions" in params and positions.max() >= len(params["positions"]):
            raise ValueError(
                f"{int(positions.max()) + 1} positions, and a table of {len(params['positions'])}"
            )
        x = embed(ids[:, end - start - 1 : end - start], positions, params)
        for layer, block in enumerate(params["blocks"]):
            q, k, v = project(x, positions, block, params, config)
            k, v = cache.append(layer, k, v)
            allowed = causal_mask(1, k.shape[2], getattr(cache, "window", None))
            if mask is not None:
                allowed = allowed & mask[:, None, None, end - k.shape[2] : end]
            x = finish_block(x, grouped_attention(q, k, v, allowed), block)
        cache.advance(1)
        logits.append(to_logits(x, params))
    return logits[-1] if last_only else torch.cat(logits, dim=1)


@mistake(
    "decode_step",
    hint="The table is compared with all columns. Padding takes no position: a padded text fits as long as its own tokens do.",
    replace=(
        'positions.max() >= len(params["positions"])',
        'start + c > len(params["positions"])',
    ),
)
def counts_padding_against_the_table(): ...


@mistake(
    "decode_step",
    hint="An id below 0 is no token: Python and torch count it from the end of the table.",
    replace=("ids.min() < 0 or ids.max() >= vocab_size", "ids.max() >= vocab_size"),
)
def takes_negative_ids(): ...


@mistake(
    "decode_step",
    hint="With last_only the newest position is asked for, as [B, 1, V]. Yours has lost that axis.",
    replace=("x[:, -1:] if last_only", "x[:, -1] if last_only"),
    keeps=0.65,
)
def loses_the_axis_of_the_last_position(): ...


# ── prefill
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "prefill",
    hint="A cache that is in use is not noticed: the prompt continues somebody else's text.",
    replace=("cache.length != 0", "False"),
)
def takes_a_cache_in_use(): ...


@mistake(
    "prefill",
    hint="Only the last position's logits come back; all of them are asked for.",
    replace=(
        "decode_step(params, prompt, cache, config, mask)",
        "decode_step(params, prompt, cache, config, mask)[:, -1:]",
    ),
    keeps=0.65,
)
def returns_the_last_logits(): ...


@mistake(
    "prefill",
    hint="The mask is not handed on, so padding counts as text.",
    replace=("cache, config, mask)", "cache, config)"),
)
def drops_the_mask(): ...


@mistake(
    "prefill",
    hint="The cache is advanced a second time: decode_step has done it.",
    replace=(
        "return decode_step(params, prompt, cache, config, mask)",
        """
logits = decode_step(params, prompt, cache, config, mask)
cache.advance(prompt.shape[1])
return logits
""",
    ),
)
def advances_again(): ...


@mistake(
    "prefill",
    hint="The logits are those of the model without a cache, and nothing has gone into the cache.",
)
def leaves_the_cache_empty(params, prompt, cache, config, mask=None):
    if cache.length != 0:
        raise ValueError(f"the cache holds {cache.length} tokens")
    if mask is None:
        return decoder_lm(prompt, params, config)
    rows = [decoder_lm(p[m][None], params, config)[0] for p, m in zip(prompt, mask)]
    out = rows[0].new_zeros(*prompt.shape, rows[0].shape[-1])
    for b, row in enumerate(rows):
        out[b, -len(row) :] = row
    return out


@mistake(
    "prefill",
    hint="The last token of the prompt is kept for later; all of them belong into the cache.",
    replace=(
        "decode_step(params, prompt, cache, config, mask)",
        "decode_step(params, prompt[:, :-1], cache, config, None if mask is None else mask[:, :-1])",
    ),
)
def leaves_the_last_token_for_later(): ...


@mistake(
    "prefill",
    hint="A cache with somebody else's text in it is the caller's error, and "
    "yours goes on without a word: raise a ValueError.",
    replace=(
        'raise ValueError(f"the cache already holds {cache.length} tokens: reset it, or '
        'use a new one")',
        "cache.reset()",
    ),
)
def resets_a_cache_in_use(): ...


@mistake(
    "prefill",
    hint="assert raises an AssertionError, and is left out where Python runs with -O. The docstring asks for a ValueError.",
    replace=(
        """
        if cache.length != 0:
            raise ValueError(f"the cache already holds {cache.length} tokens: reset it, or use a new one")
        """,
        """
        assert cache.length == 0, f"the cache already holds {cache.length} tokens"
        """,
    ),
)
def asserts_an_empty_cache(): ...


# ── generate_cached
# ──────────────────────────────────────────────────────────────────────────────────────────


def _asked(prompt, num_new):
    if num_new < 0 or prompt.shape[1] < 1:
        raise ValueError(f"{num_new} new tokens after a prompt of {prompt.shape[1]}")


def _new_cache(params, batch, capacity, config):
    return KVCache(
        config.num_layers,
        batch,
        config.num_kv_heads,
        config.d_head,
        capacity,
        params["embed"].dtype,
    )  # the answer key's


@mistake(
    "generate_cached",
    hint="The whole text goes through the model for every new token. With a cache only the "
    "newest token has to.",
)
def recomputes_everything(params, prompt, num_new, config):
    _asked(prompt, num_new)
    return generate_uncached(params, prompt, num_new, config)


@mistake(
    "generate_cached",
    hint="A cache is made, and the whole text is still fed in every step, into a fresh one. Feed "
    "the newest token.",
    replace=(
        """
for _ in range(num_new):
    logits = decode_step(params, chunk, cache, config, last_only=True)  # [B, 1, V]
""",
        """
for _ in range(num_new):
    cache.reset()
    logits = decode_step(params, ids, cache, config, last_only=True)
""",
    ),
)
def prefills_anew_for_every_token(): ...


@mistake(
    "generate_cached",
    hint="The cache of an earlier call is used again, with its tokens. (A default argument, or a "
    "variable outside the function, is made once.) Make a cache in every call.",
)
def keeps_its_cache_for_the_next_call(params, prompt, num_new, config, caches={}):  # noqa: B006
    _asked(prompt, num_new)
    key = (prompt.shape[0], config.num_layers, config.num_kv_heads)
    if key not in caches or caches[key].length + prompt.shape[1] + num_new > 60:
        caches[key] = _new_cache(params, prompt.shape[0], 60, config)
    cache, ids, chunk = caches[key], prompt, prompt
    free = {name: value for name, value in params.items() if name != "positions"}
    if "positions" in params:
        free["positions"] = params["positions"].repeat(3, 1)
    for _ in range(num_new):
        chunk = decode_step(free, chunk, cache, config, last_only=True)[:, -1].argmax(
            dim=-1, keepdim=True
        )
        ids = torch.cat([ids, chunk], dim=1)
    return ids


@mistake(
    "generate_cached",
    hint="Logits are made for every token of the prompt, and only the last is looked at.",
    replace=("cache, config, last_only=True)", "cache, config)"),
)
def makes_all_logits_of_the_prompt(): ...


@mistake(
    "generate_cached",
    hint="The prompt goes through the model token by token, with logits for each of them. Hand it "
    "over as one chunk: only the logits behind its last token are needed.",
    replace=(
        "ids, chunk = prompt, prompt",
        """
        ids, chunk = prompt, prompt[:, -1:]
        for place in range(n - 1 if num_new else 0):
            decode_step(params, prompt[:, place : place + 1], cache, config, last_only=True)""",
    ),
)
def reads_the_prompt_token_by_token(): ...


@mistake(
    "generate_cached",
    hint="Keys and values are stored with fewer digits than the model computes with, and close "
    "decisions fall otherwise. Which dtype have the params?",
    replace=('params["embed"].dtype', "torch.float16"),
)
def stores_keys_and_values_in_half_precision(): ...


@mistake(
    "generate_cached",
    hint="The last new token goes through the model too, and nobody reads the result. It also "
    "needs a position that the table may not have.",
)
def feeds_the_last_token_for_nobody(params, prompt, num_new, config):
    _asked(prompt, num_new)
    cache, ids = (
        _new_cache(params, prompt.shape[0], prompt.shape[1] + num_new, config),
        prompt,
    )
    logits = decode_step(params, prompt, cache, config, last_only=True)
    for _ in range(num_new):
        chunk = logits[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, chunk], dim=1)
        logits = decode_step(params, chunk, cache, config, last_only=True)
    return ids


@mistake(
    "generate_cached",
    hint="The logits at position 0 foretell token 1. The next token is foretold by the last.",
    replace=[
        ("cache, config, last_only=True)", "cache, config)"),
        ("logits[:, -1]", "logits[:, 0]"),
    ],
)
def reads_the_first_position(): ...


@mistake(
    "generate_cached",
    hint="One token is chosen for the whole batch; each row has its own most likely one.",
    replace=(
        "logits[:, -1].argmax(dim=-1, keepdim=True)",
        "logits[:1, -1].argmax(dim=-1, keepdim=True).expand(batch, 1)",
    ),
)
def one_token_for_all_rows(): ...


@mistake(
    "generate_cached",
    hint="The new tokens come back without the prompt in front of them.",
    replace=("return ids", "return ids[:, n:]"),
    keeps=0.65,
)
def returns_only_what_is_new(): ...


@mistake(
    "generate_cached",
    hint="One token too few: count how many argmaxes it takes for num_new tokens.",
    replace=("range(num_new)", "range(num_new - 1)"),
    keeps=0.65,
)
def stops_one_token_early(): ...


@mistake(
    "generate_cached",
    hint="The caller's prompt has changed: a new token is written into it.",
)
def writes_into_the_prompt(params, prompt, num_new, config):
    _asked(prompt, num_new)
    cache, ids = (
        _new_cache(params, prompt.shape[0], prompt.shape[1] + num_new, config),
        prompt.clone(),
    )
    chunk, last = prompt, prompt[:, -1:]
    for _ in range(num_new):
        last.copy_(
            decode_step(params, chunk, cache, config, last_only=True)[:, -1].argmax(
                dim=-1, keepdim=True
            )
        )
        chunk = last
        ids = torch.cat([ids, chunk], dim=1)
    return ids


@mistake(
    "generate_cached",
    hint="A negative number of new tokens, or an empty prompt, gets an answer. Both are a "
    "ValueError.",
    replace=(
        'raise ValueError(f"{num_new} new tokens after a prompt of {n}")',
        "return prompt.clone()",
    ),
)
def checks_nothing(): ...


@mistake(
    "generate_cached",
    hint="The cache has as many slots as the context, and a model with rotary positions has no "
    "such limit. How many "
    "tokens will there be?",
    replace=(
        "capacity, dtype = n + num_new, ",
        "capacity, dtype = config.context_length, ",
    ),
)
def takes_the_context_for_the_capacity(): ...


@mistake(
    "generate_cached",
    hint="num_new = 0 asks for no token, and yours makes one before it looks.",
    replace=[
        ("for _ in range(num_new):", "for _ in range(max(num_new, 1)):"),
        ("capacity, dtype = n + num_new", "capacity, dtype = n + max(num_new, 1)"),
    ],
)
def always_makes_a_token(): ...


@mistake(
    "generate_cached",
    hint="The cache is made in the first call and used in all others, whose sizes, weights and dtype "
    "differ. (A default argument, or a variable outside the function, is made once.)",
    keeps=0.65,
)
def keeps_the_cache_of_the_first_call(params, prompt, num_new, config, kept={}):  # noqa: B006
    _asked(prompt, num_new)
    if not kept:
        kept["cache"] = _new_cache(
            params, prompt.shape[0], prompt.shape[1] + num_new, config
        )
    cache, ids, chunk = kept["cache"], prompt, prompt
    cache.reset()
    for _ in range(num_new):
        logits = decode_step(params, chunk, cache, config, last_only=True)
        chunk = logits[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, chunk], dim=1)
    return ids


@mistake(
    "generate_cached",
    hint="The cache has room for the prompt alone: the new tokens have to fit in as well.",
    replace=("capacity, dtype = n + num_new, ", "capacity, dtype = n, "),
    keeps=0.65,
)
def makes_room_for_the_prompt_alone(): ...


@mistake(
    "generate_cached",
    hint="The cache has a head of keys for each query head. With grouped heads there are fewer: "
    "num_kv_heads.",
    replace=(
        "config.num_kv_heads, config.d_head, capacity",
        "config.num_heads, config.d_head, capacity",
    ),
    keeps=0.65,
)
def makes_a_cache_of_all_query_heads(): ...


# ── ragged_positions
# ─────────────────────────────────────────────────────────────────────────────────────────


def _two_axes(mask):
    if mask.dim() != 2:
        raise ValueError(f"mask must be [B, N], got {list(mask.shape)}")


@mistake(
    "ragged_positions",
    hint="The padding of the whole row is taken off every column. Only the padding in front of a "
    "token counts, wherever else there is some.",
    replace=(
        "(mask.long().cumsum(dim=1) - 1).masked_fill(~mask, 0)",
        "(torch.arange(mask.shape[1]) - (~mask).sum(dim=1, keepdim=True))"
        ".clamp(min=0).masked_fill(~mask, 0)",
    ),
)
def takes_all_padding_off(): ...


@mistake(
    "ragged_positions",
    hint="These are columns. A row with two pads in front has its position 0 in column 2.",
    replace=(
        "(mask.long().cumsum(dim=1) - 1).masked_fill(~mask, 0)",
        "torch.arange(mask.shape[1]).expand(mask.shape).masked_fill(~mask, 0)",
    ),
)
def counts_columns(): ...


@mistake(
    "ragged_positions",
    hint="One too many: a token's position is the number of tokens before it, itself left out.",
    replace=(
        "(mask.long().cumsum(dim=1) - 1).masked_fill(~mask, 0)",
        "mask.long().cumsum(dim=1).masked_fill(~mask, 0)",
    ),
    keeps=0.65,
)
def counts_the_token_itself(): ...


@mistake(
    "ragged_positions",
    hint="Padding keeps the count of the token before it, and -1 in front. 0 is asked for.",
    replace=(".masked_fill(~mask, 0)", ""),
    keeps=0.65,
)
def padding_keeps_the_count(): ...


@mistake(
    "ragged_positions",
    hint="Padding is at -1, and as an index that is the last row of a table. 0 is asked for.",
    replace=("masked_fill(~mask, 0)", "masked_fill(~mask, -1)"),
    keeps=0.65,
)
def padding_at_minus_one(): ...


@mistake(
    "ragged_positions",
    hint="Padding is at 1, as some libraries fill it in. 0 is asked for.",
    replace=("masked_fill(~mask, 0)", "masked_fill(~mask, 1)"),
    keeps=0.65,
)
def padding_at_one(): ...


@mistake(
    "ragged_positions",
    hint="Padding behind a text, or inside, is not at 0: the count stands still there, and a clamp "
    "catches only what is below 0.",
    replace=("masked_fill(~mask, 0)", "clamp(min=0)"),
)
def clamps_at_zero(): ...


@mistake(
    "ragged_positions",
    hint="The count runs down the batch. Each row is a text of its own.",
    replace=("cumsum(dim=1)", "cumsum(dim=0)"),
)
def counts_down_the_batch(): ...


@mistake(
    "ragged_positions",
    hint="Pads are counted instead of tokens: True is a real token.",
    replace=(
        "(mask.long().cumsum(dim=1) - 1).masked_fill(~mask, 0)",
        "((~mask).long().cumsum(dim=1) - 1).masked_fill(mask, 0)",
    ),
)
def counts_the_pads(): ...


@mistake(
    "ragged_positions",
    hint="Positions look up rows of a table: whole numbers, int64.",
    shows=has_dtype("float64"),
    replace=("mask.long()", "mask.double()"),
)
def positions_are_floats(): ...


@mistake(
    "ragged_positions", hint="The number of pads is taken from the first row for all."
)
def first_rows_padding_for_all(mask):
    _two_axes(mask)
    pads = int((~mask[0]).sum())
    return (
        (torch.arange(mask.shape[1]) - pads)
        .clamp(min=0)
        .expand(mask.shape)
        .masked_fill(~mask, 0)
    )


@mistake(
    "ragged_positions",
    hint="A mask with another number of axes than two gets an answer. The docstring asks for a "
    "ValueError.",
    replace=(
        """
if mask.dim() != 2:
    raise ValueError(f"mask must be [B, N], got {list(mask.shape)}")
return (mask.long().cumsum(dim=1) - 1).masked_fill(~mask, 0)
""",
        "return (mask.long().cumsum(dim=1) - 1).masked_fill(~mask, 0)",
    ),
)
def takes_any_number_of_axes(): ...


@mistake(
    "ragged_positions",
    hint="Positions are int64: an index of another dtype is refused by some functions.",
    shows=has_dtype("int32"),
    replace=("masked_fill(~mask, 0)", "masked_fill(~mask, 0).int()"),
)
def positions_are_int32(): ...


@mistake(
    "ragged_positions",
    hint="The distance to the first real token counts padding between tokens, too. How many real tokens stand before it?",
    replace=(
        "return (mask.long().cumsum(dim=1) - 1).masked_fill(~mask, 0)",
        "first = mask.long().argmax(dim=1, keepdim=True)\n"
        "return (torch.arange(mask.shape[1]) - first).masked_fill(~mask, 0)",
    ),
)
def counts_padding_between_tokens(): ...


# ── kv_cache_bytes
# ───────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "kv_cache_bytes",
    hint="Half of it: a token leaves a key and a value.",
    replace=(
        "2 * config.num_layers * config.num_kv_heads * config.d_head",
        "config.num_layers * config.num_kv_heads * config.d_head",
    ),
    keeps=0.65,
)
def keys_without_values(): ...


@mistake(
    "kv_cache_bytes",
    hint="Query heads are counted, or the whole model width. What is stored are key and value heads, "
    "and these may be few.",
    shows=ignores("config.num_kv_heads"),
    replace=("config.num_kv_heads", "config.num_heads"),
)
def counts_query_heads(): ...


@mistake(
    "kv_cache_bytes",
    hint="The model width is not what is stored: keys have H_kv·d numbers.",
    shows=ignores("config.d_head") & ignores("config.num_kv_heads"),
    replace=("config.num_kv_heads * config.d_head", "config.d_model"),
)
def counts_the_model_width(): ...


@mistake(
    "kv_cache_bytes",
    hint="One layer only. Each layer has keys and values of its own.",
    shows=ignores("config.num_layers"),
    replace=(
        "2 * config.num_layers * config.num_kv_heads * config.d_head",
        "2 * config.num_kv_heads * config.d_head",
    ),
    keeps=0.65,
)
def forgets_the_layers(): ...


@mistake(
    "kv_cache_bytes",
    hint="One row only: every user of the batch has a cache.",
    shows=ignores("batch"),
    replace=(
        "one_token * n * batch * bytes_per_element",
        "one_token * n * bytes_per_element",
    ),
)
def forgets_the_batch(): ...


@mistake(
    "kv_cache_bytes",
    hint="bytes_per_element plays no part in your answer. How many bytes has an element?",
    shows=ignores("bytes_per_element"),
    replace=("one_token * n * batch * bytes_per_element", "one_token * n * batch"),
    keeps=0.65,
)
def forgets_the_bytes(): ...


@mistake(
    "kv_cache_bytes",
    hint="Bytes are asked for, as an int; a division makes a float, and of another unit.",
    replace=(
        "one_token * n * batch * bytes_per_element",
        "one_token * n * batch * bytes_per_element / 2**20",
    ),
    keeps=0.65,
)
def answers_in_mebibytes(): ...


@mistake(
    "kv_cache_bytes",
    hint="The result is a float: beyond 2^53 it loses bytes, and an int is asked for.",
    replace=(
        "one_token * n * batch * bytes_per_element",
        "float(one_token * n * batch * bytes_per_element)",
    ),
)
def answers_as_a_float(): ...


@mistake(
    "kv_cache_bytes",
    hint="The length comes in squared: the cache holds tokens, not pairs of tokens.",
    replace=(
        "one_token * n * batch * bytes_per_element",
        "one_token * n * n * batch * bytes_per_element",
    ),
)
def counts_pairs_of_tokens(): ...


@mistake(
    "kv_cache_bytes",
    hint="Minus three rows make a negative number of bytes: refuse sizes below 1.",
    replace=("min(n, batch, bytes_per_element) < 1", "False"),
)
def accepts_any_size(): ...


@mistake(
    "kv_cache_bytes",
    hint="An element of no bytes makes a cache of no bytes: refuse all three sizes below 1.",
    replace=("min(n, batch, bytes_per_element)", "min(n, batch)"),
)
def accepts_elements_of_no_bytes(): ...


@mistake(
    "kv_cache_bytes",
    hint="The head size is d_head of the config: d_model / num_heads need not be the same.",
    replace=(
        "config.num_kv_heads * config.d_head",
        "config.num_kv_heads * (config.d_model // config.num_heads)",
    ),
    keeps=0.65,
)
def takes_the_head_size_from_the_width(): ...


# ── SlidingWindowCache
# ───────────────────────────────────────────────────────────────────────────────────────


class _Window:
    """A good sliding cache; the mistakes change one thing in it."""

    def __init__(
        self, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window
    ):
        self.check_window(window)
        self.window, self.capacity, self.dtype = window, capacity, dtype
        self.sizes, self.num_layers = (batch, num_kv_heads, d_head), num_layers
        self.reset()

    def check_window(self, window):
        if window < 1:
            raise ValueError(f"a window of {window} tokens")

    @property
    def length(self):
        return self.seen

    def fits(self, k, v):
        batch, num_kv_heads, d_head = self.sizes
        if k.shape != v.shape or k.shape != (batch, num_kv_heads, k.shape[2], d_head):
            raise ValueError(
                f"k {list(k.shape)}, v {list(v.shape)}, cache {self.sizes}"
            )
        if self.seen + k.shape[2] > self.capacity:
            raise ValueError(
                f"{self.seen + k.shape[2]} tokens, capacity {self.capacity}"
            )

    def append(self, layer, k, v):
        self.fits(k, v)
        both = [
            torch.cat([old, new.to(self.dtype)], dim=2)
            for old, new in zip(self.past[layer], (k, v))
        ]
        self.joined[layer] = both
        return tuple(both)

    def keep(self, t, held, c):
        end = held + c
        return t[:, :, max(0, end - (self.window - 1)) : end].clone()

    def advance(self, c):
        if self.seen + c > self.capacity:
            raise ValueError(f"{self.seen + c} tokens, capacity {self.capacity}")
        for layer in range(self.num_layers):
            held = self.past[layer][0].shape[2]
            self.past[layer] = [self.keep(t, held, c) for t in self.joined[layer]]
        self.seen += c

    def empty(self):
        batch, num_kv_heads, d_head = self.sizes
        return [
            torch.zeros(batch, num_kv_heads, 0, d_head, dtype=self.dtype)
            for _ in range(2)
        ]

    def reset(self):
        self.seen = 0
        self.past = [self.empty() for _ in range(self.num_layers)]
        self.joined = [self.empty() for _ in range(self.num_layers)]


@mistake(
    "SlidingWindowCache",
    hint="One earlier token too many: the window includes the token itself, so W - 1 "
    "come before it.",
    keeps=0.65,
)
class KeepsAWholeWindow(_Window):
    def keep(self, t, held, c):
        return t[:, :, max(0, held + c - self.window) : held + c].clone()


@mistake(
    "SlidingWindowCache",
    hint="One earlier token too few: a token sees itself and W - 1 before it.",
    keeps=0.65,
)
class KeepsOneTooFew(_Window):
    def keep(self, t, held, c):
        return t[:, :, max(0, held + c - max(0, self.window - 2)) : held + c].clone()


@mistake(
    "SlidingWindowCache",
    hint="With a window of 1 everything is kept: x[-0:] is all of x.",
)
class SlicesFromMinusZero(_Window):
    def keep(self, t, held, c):
        return t[:, :, : held + c][:, :, -(self.window - 1) :].clone()


@mistake(
    "SlidingWindowCache",
    hint="A long chunk is cut to the window. Its early tokens are needed by later ones; hiding "
    "is the mask's work.",
)
class CutsTheChunk(_Window):
    def append(self, layer, k, v):
        return tuple(
            t[:, :, -(self.window - 1 + min(k.shape[2], 1)) :]
            for t in super().append(layer, k, v)
        )


@mistake(
    "SlidingWindowCache", hint="The oldest tokens are kept and the newest dropped."
)
class KeepsTheOldest(_Window):
    def keep(self, t, held, c):
        return t[:, :, : min(held + c, self.window - 1)].clone()


@mistake(
    "SlidingWindowCache",
    hint="append forgets already. When it is called again before advance, the past is gone.",
)
class ForgetsInAppend(_Window):
    def append(self, layer, k, v):
        answer = super().append(layer, k, v)
        self.past[layer] = [
            self.keep(t, t.shape[2] - k.shape[2], k.shape[2]) for t in answer
        ]
        return answer

    def advance(self, c):
        if self.seen + c > self.capacity:
            raise ValueError(f"{self.seen + c} tokens, capacity {self.capacity}")
        self.seen += c


@mistake(
    "SlidingWindowCache",
    hint="length is what is held. Positions need all tokens seen: with a window of 3, token 12 "
    "is still token 12.",
)
class LengthIsWhatIsHeld(_Window):
    @property
    def length(self):
        return min(self.seen, self.window - 1)


@mistake(
    "SlidingWindowCache",
    hint="length has moved after append. It moves in advance, once a step, not once a layer.",
)
class LengthMovesInAppend(_Window):
    extra = 0

    @property
    def length(self):
        return self.seen + self.extra

    def append(self, layer, k, v):
        answer = super().append(layer, k, v)
        self.extra += k.shape[2]
        return answer

    def advance(self, c):
        self.extra = 0
        super().advance(c)


@mistake(
    "SlidingWindowCache",
    hint="The tokens do not come back in the order of time. (After a ring has gone round once, the "
    "order of its slots is another one.)",
)
class ReturnsTheRingUnordered(_Window):
    def append(self, layer, k, v):
        k_all, v_all = super().append(layer, k, v)
        held = k_all.shape[2] - k.shape[2]
        if held == self.window - 1 and held:
            turn = self.seen % held
            k_all, v_all = (
                torch.cat([t[:, :, :held].roll(turn, 2), t[:, :, held:]], dim=2)
                for t in (k_all, v_all)
            )
        return k_all, v_all


@mistake(
    "SlidingWindowCache",
    hint="What append returned lies in a buffer that later steps write over. Put the tokens in "
    "order in a new tensor.",
)
class HandsOutItsBuffer(_Window):
    def append(self, layer, k, v):
        answer = super().append(layer, k, v)
        self.buffers = getattr(self, "buffers", {})
        for i, t in enumerate(answer):
            old = self.buffers.get((layer, i, t.shape[2]))
            if old is not None:
                old.copy_(t)
            self.buffers.setdefault((layer, i, t.shape[2]), t)
        return tuple(self.buffers[layer, i, t.shape[2]] for i, t in enumerate(answer))

    def advance(self, c):
        self.joined = [[t.clone() for t in pair] for pair in self.joined]
        super().advance(c)


@mistake(
    "SlidingWindowCache",
    hint="Room for the whole capacity is made. A window of 4 needs room for 3 tokens, however "
    "long the text may get.",
)
class MakesRoomForTheCapacity(_Window):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        batch, num_kv_heads, d_head = self.sizes
        self.room = torch.zeros(
            2, batch, num_kv_heads, self.capacity, d_head, dtype=self.dtype
        )


@mistake(
    "SlidingWindowCache",
    hint="All tokens are kept and cut when append returns: the memory, and the copying, grow "
    "with the text.",
)
class KeepsEverythingAndCuts(_Window):
    def keep(self, t, held, c):
        return t[:, :, : held + c]

    def append(self, layer, k, v):
        n = min(self.seen, self.window - 1) + k.shape[2]
        return tuple(t[:, :, t.shape[2] - n :] for t in super().append(layer, k, v))


@mistake(
    "SlidingWindowCache", hint="After reset some of the old tokens are still there."
)
class ResetKeepsTheTokens(_Window):
    def reset(self):
        if hasattr(self, "past"):
            self.seen = 0
        else:
            super().reset()


@mistake(
    "SlidingWindowCache",
    hint="advance(c) with less than the chunk keeps all of it; the rest should be dropped.",
)
class AdvanceTakesTheWholeChunk(_Window):
    def keep(self, t, held, c):
        return super().keep(t, held, t.shape[2] - held)


@mistake(
    "SlidingWindowCache",
    hint="More tokens are taken in than the capacity allows. It limits length, which counts all "
    "tokens seen, whatever is held.",
)
class IgnoresTheCapacity(_Window):
    def __init__(
        self, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window
    ):
        super().__init__(num_layers, batch, num_kv_heads, d_head, 10**9, dtype, window)


@mistake(
    "SlidingWindowCache",
    hint="The keys are stored before the values are checked: a refused append has replaced the "
    "keys of the chunk before it. Check both, and write then.",
)
class StoresBeforeItChecksTheValues(_Window):
    def append(self, layer, k, v):
        self.fits(k, k)
        old = self.past[layer][0]
        self.joined[layer][0] = torch.cat([old, k.to(self.dtype)], dim=2)
        return super().append(layer, k, v)


@mistake(
    "SlidingWindowCache",
    hint="The cache stores in its own dtype; yours takes that of the chunk.",
)
class TakesTheChunksDtype(_Window):
    def append(self, layer, k, v):
        self.dtype = k.dtype
        self.past = [[t.to(k.dtype) for t in pair] for pair in self.past]
        return super().append(layer, k, v)


@mistake("SlidingWindowCache", hint="A window of 0 tokens makes no sense: refuse it.")
class AcceptsAnyWindow(_Window):
    def check_window(self, window):
        pass


@mistake("SlidingWindowCache", hint="Values are taken from the keys.", keeps=0.65)
class ValuesAreKeys(_Window):
    def append(self, layer, k, v):
        self.fits(k, v)
        return super().append(layer, k, k)


@mistake(
    "SlidingWindowCache",
    hint="What you keep are slices, and behind a slice lies the memory of all that it was cut "
    "from. Make it a copy.",
    replace=(
        "k[:, :, first:end].clone(), v[:, :, first:end].clone()",
        "k[:, :, first:end], v[:, :, first:end]",
    ),
)
def keeps_slices_of_the_chunk(): ...


@mistake(
    "SlidingWindowCache",
    hint="advance(c) with less than the chunk keeps the end of the values; their beginning "
    "counts, as with the keys.",
    replace=(
        "v[:, :, first:end].clone()",
        "v[:, :, v.shape[2] - (end - first) :].clone()",
    ),
)
def keeps_the_newest_values_of_a_part(): ...


@mistake(
    "SlidingWindowCache",
    hint="A window of 1 is allowed: a token sees itself, and nothing is kept.",
    replace=("if window < 1", "if window <= 1"),
)
def refuses_a_window_of_one(): ...


@mistake(
    "SlidingWindowCache",
    hint="A second append to a layer before advance stands behind the first in yours. It replaces the first: "
    "only advance makes a chunk part of the past.",
    replace=[
        ("old_k, old_v = self._past[layer]", "old_k, old_v = self._appended[layer]"),
        (
            "return self._appended[layer]",
            "self._waiting = c\nreturn self._appended[layer]",
        ),
        (
            "for layer, (k, v) in enumerate(self._appended):",
            """
            for layer, (k, v) in enumerate(self._appended):
                before = max(0, k.shape[2] - self._waiting - held)
                k, v = k[:, :, before:], v[:, :, before:]
            """,
        ),
        ("self._length += c", "self._length += c\nself._appended = list(self._past)"),
    ],
)
def piles_up_chunks_before_advance(): ...


@mistake(
    "SlidingWindowCache",
    hint="The cache has no attribute `window`. A model reads it there to know how far a query sees.",
    replace=[
        ("self.window = window", "self._window = window"),
        ("min(self._length, self.window - 1)", "min(self._length, self._window - 1)"),
        ("end - (self.window - 1)", "end - (self._window - 1)"),
    ],
)
def hides_its_window(): ...


@mistake(
    "SlidingWindowCache",
    hint="append takes a chunk that is too long. The capacity limits length, which counts all tokens seen, and append "
    "looks at it as advance does.",
    replace=(
        """
        if self._length + c > self._capacity:
            raise ValueError(f"{self._length + c} tokens do not fit: the capacity is {self._capacity}")
        old_k, old_v = self._past[layer]
        """,
        """
        old_k, old_v = self._past[layer]
        """,
    ),
)
class LooksAtTheCapacityInAdvance: ...


# ── speculative_accept
# ───────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "speculative_accept",
    hint="Only the target's favourite is kept. That is greedy decoding: u is never asked.",
    replace=(
        "u * q[places, drafted] <= p[places, drafted]",
        "p.argmax(dim=-1) == drafted",
    ),
)
def keeps_the_targets_favourite(): ...


@mistake(
    "speculative_accept",
    hint="A token is kept with probability p / q, where u q is at most p. Yours is kept less often, as where u is "
    "compared with p alone.",
    replace=("u * q[places, drafted] <=", "u <="),
)
def compares_u_with_p_alone(): ...


@mistake(
    "speculative_accept",
    hint="p and q have changed places: p is the target, and q is who guessed.",
    replace=(
        "u * q[places, drafted] <= p[places, drafted]",
        "u * p[places, drafted] <= q[places, drafted]",
    ),
)
def swaps_target_and_draft(): ...


@mistake(
    "speculative_accept",
    hint="A token that the draft likes too much is never kept; sometimes it should be.",
    replace=("u * q[places, drafted] <= p", "q[places, drafted] <= p"),
)
def keeps_only_what_the_target_likes_better(): ...


@mistake(
    "speculative_accept",
    hint="All tokens that pass are counted. Behind the first rejection nothing counts any more.",
    replace=("int(accepted.long().cumprod(dim=0).sum())", "int(accepted.sum())"),
)
def counts_behind_the_rejection(): ...


@mistake(
    "speculative_accept",
    hint="After a rejection p itself is sampled: tokens that the draft offers come too often.",
    replace=("(p[num_accepted] - q[num_accepted]).clamp(min=0)", "p[num_accepted]"),
)
def samples_the_target_again(): ...


@mistake(
    "speculative_accept",
    hint="The residual does not sum to 1.",
    replace=("missing / missing.sum()", "missing"),
    keeps=0.65,
)
def residual_is_not_normalized(): ...


@mistake(
    "speculative_accept",
    hint="|p - q| also counts tokens that the draft liked too much. Only what is missing.",
    replace=(
        "(p[num_accepted] - q[num_accepted]).clamp(min=0)",
        "(p[num_accepted] - q[num_accepted]).abs()",
    ),
)
def residual_of_absolute_differences(): ...


@mistake(
    "speculative_accept",
    hint="q - p is what the draft has too much. What is missing is the other difference.",
    replace=("p[num_accepted] - q[num_accepted]", "q[num_accepted] - p[num_accepted]"),
)
def residual_the_wrong_way_round(): ...


@mistake(
    "speculative_accept",
    hint="The residual is taken at the last place; it belongs to the rejected one.",
    replace=("p[num_accepted] - q[num_accepted]", "p[-1] - q[-1]"),
)
def residual_of_the_last_place(): ...


@mistake(
    "speculative_accept",
    hint="The residual is taken one place behind the rejected token.",
    replace=(
        "missing = (p[num_accepted] - q[num_accepted]).clamp(min=0)",
        """
behind = min(num_accepted + 1, len(p) - 1)
missing = (p[behind] - q[behind]).clamp(min=0)
""",
    ),
)
def residual_of_the_place_behind(): ...


@mistake(
    "speculative_accept",
    hint="Where all are accepted there is no residual: zeros are asked for.",
    replace=("torch.zeros_like(p[0])", "p[-1].clone()"),
)
def returns_p_when_all_are_kept(): ...


@mistake(
    "speculative_accept",
    hint="num_accepted should be a plain int, not a tensor.",
    replace=[
        (
            "return num_accepted, torch.zeros_like(p[0])",
            "return torch.tensor(num_accepted), torch.zeros_like(p[0])",
        ),
        (
            "return num_accepted, missing / missing.sum()",
            "return torch.tensor(num_accepted), missing / missing.sum()",
        ),
    ],
)
def counts_as_a_tensor(): ...


@mistake(
    "speculative_accept",
    hint="The caller's p has changed: the difference is made in place.",
    replace=(
        "missing = (p[num_accepted] - q[num_accepted]).clamp(min=0)",
        """
p -= q
missing = p[num_accepted].clamp(min=0)
""",
    ),
)
def subtracts_in_place(): ...


@mistake(
    "speculative_accept",
    hint="Shapes that do not fit are not noticed: compare them first.",
    replace=(
        """
if p.shape != q.shape or drafted.shape != p.shape[:1] or u.shape != p.shape[:1]:
    shapes = [list(t.shape) for t in (p, q, drafted, u)]
    raise ValueError(f"p, q, drafted and u have shapes {shapes}: expected [K, V], [K, V], [K], [K]")
""",
        """
k, v = min(len(p), len(q), len(drafted), len(u)), min(p.shape[1], q.shape[1])
p, q, drafted, u = p[:k, :v], q[:k, :v], drafted[:k], u[:k]
""",
    ),
)
def takes_any_shapes(): ...


@mistake(
    "speculative_accept",
    hint="At u·q = p the token is kept: at most, not less than.",
    replace=("<= p[places, drafted]", "< p[places, drafted]"),
)
def refuses_at_the_border(): ...


@mistake(
    "speculative_accept",
    hint="Where all were accepted yours gives the residual of the last place, which is nan where p and q agree there. "
    "Zeros are asked for.",
    replace=[
        (
            """
            if num_accepted == len(drafted):
                return num_accepted, torch.zeros_like(p[0])
            """,
            """
            place = min(num_accepted, len(drafted) - 1)
            """,
        ),
        (
            "missing = (p[num_accepted] - q[num_accepted]).clamp(min=0)",
            "missing = (p[place] - q[place]).clamp(min=0)",
        ),
    ],
)
def leaves_a_residual_where_all_are_kept(): ...


@mistake(
    "speculative_accept",
    hint="A softmax gives tokens a share that have none: the difference is divided by its sum.",
    replace=("missing / missing.sum()", "torch.softmax(missing, dim=0)"),
)
def residual_by_softmax(): ...


@mistake(
    "speculative_accept",
    hint="p and q are compared, and drafted and u are not: each has a number for each of the K places.",
    replace=(
        "if p.shape != q.shape or drafted.shape != p.shape[:1] or u.shape != p.shape[:1]:",
        "drafted, u = drafted[: len(p)], u[: len(p)]\nif p.shape != q.shape:",
    ),
)
def guesses_are_not_counted(): ...


@mistake(
    "speculative_accept",
    hint="All tokens that pass are counted. Behind the first rejection nothing counts any more.",
    replace=(
        "return num_accepted, missing / missing.sum()",
        "return int(accepted.sum()), missing / missing.sum()",
    ),
)
def counts_all_that_pass(): ...


@mistake(
    "speculative_accept",
    hint="The rejected token is counted too: num_accepted are the tokens before it.",
    replace=(
        "return num_accepted, missing / missing.sum()",
        "return num_accepted + 1, missing / missing.sum()",
    ),
    keeps=0.65,
)
def counts_the_rejected_token(): ...


# ── unheard_query
# ────────────────────────────────────────────────────────────────────────────────────────────


def _across(q, k):
    """What each earlier key has across the last one, checked."""
    last = k[-1]
    across = k[:-1] - (k[:-1] @ last / (last @ last))[:, None] * last
    if len(q) < 2 or across.norm(dim=1).max() < 1e-9 * k.norm(dim=1).max():
        raise ValueError(f"no such query for {len(q)} tokens of size {q.shape[1]}")
    return across[across.norm(dim=1).argmax()]


@mistake(
    "unheard_query", hint="This is the query that was given: no attention weight moves."
)
def returns_the_query_itself(q, k):
    _across(q, k)
    return q[-1].clone()


@mistake(
    "unheard_query",
    hint="A longer query has another product with its own key, so the notes' formula sees the "
    "difference.",
)
def makes_the_query_longer(q, k):
    _across(q, k)
    return 3 * q[-1]


@mistake(
    "unheard_query",
    hint="You move towards another key that is not perpendicular to the last one. First take away "
    "its part along k_N.",
)
def moves_along_another_key(q, k):
    _across(q, k)
    return q[-1] + 1000 * k[0]


@mistake(
    "unheard_query",
    hint="The direction is right, and the step too short: no weight moves by 0.1.",
)
def takes_a_small_step(q, k):
    return q[-1] + 1e-3 * _across(q, k)


@mistake(
    "unheard_query",
    hint="You move q perpendicular to the first key. The notes' formula compares the last query "
    "with the last key.",
)
def square_to_the_first_key(q, k):
    _across(q, k)
    first = k[0]
    return q[-1] + 1000 * (k[-1] - (k[-1] @ first / (first @ first)) * first)


@mistake(
    "unheard_query",
    hint="This works unless that token already has nearly all the weight: then pushing the query "
    "further towards it "
    "moves nothing.",
)
def always_pushes_towards_the_key(q, k):
    direction = _across(q, k)
    return q[-1] + direction * (1000 * math.sqrt(q.shape[1]) / (direction @ direction))


@mistake(
    "unheard_query",
    hint="The direction is right, and the length of your step depends on the size of the keys: where "
    "they are small, no weight moves. Divide by direction · direction.",
    replace=("1000 * math.sqrt(d) / (direction @ direction)", "1000 * math.sqrt(d)"),
)
def steps_as_far_as_the_keys_are_long(q, k): ...


@mistake(
    "unheard_query",
    hint="You move along the part of the first key that is perpendicular to the last one. Where the "
    "first key is a multiple of the last there is none: another key may have one.",
    replace=("across[across.norm(dim=1).argmax()]", "across[0]"),
    shows=not_finite(),
)
def takes_the_first_key(q, k): ...


@mistake(
    "unheard_query",
    hint="You look at the first key alone, and refuse where it is a multiple of the last one. Another key may "
    "notice such a query: only where all keys lie on one line there is none.",
    replace=[
        ("across.norm(dim=1).max() < 1e-9", "across[0].norm() < 1e-9"),
        ("across[across.norm(dim=1).argmax()]", "across[0]"),
    ],
)
def refuses_for_the_first_key(): ...


@mistake("unheard_query", hint="Where no such query exists a ValueError is asked for.")
def answers_always(q, k):
    d, last = q.shape[1], k[-1]
    if len(q) < 2:
        return q[-1]
    across = k[:-1] - (k[:-1] @ last / (last @ last))[:, None] * last
    direction = across[across.norm(dim=1).argmax()]
    push = direction * (1000 * math.sqrt(d) / (direction @ direction).clamp_min(1e-12))
    before = torch.softmax(k @ q[-1] / math.sqrt(d), dim=0)
    return max(
        q[-1] + push,
        q[-1] - push,
        key=lambda t: (torch.softmax(k @ t / math.sqrt(d), dim=0) - before).abs().max(),
    )


@mistake("unheard_query", hint="A zero query has another product with its own key.")
def asks_nothing(q, k):
    _across(q, k)
    return torch.zeros_like(q[-1])


@mistake(
    "unheard_query",
    hint="Your step is as long for small keys as for large ones. How far a score moves depends on the keys: where they "
    "are small, no weight moves. Divide by direction · direction.",
    replace=(
        "1000 * math.sqrt(d) / (direction @ direction)",
        "10 / direction.norm()",
    ),
    shows=ignores_the_size_of("k") & ~ignores("k") & ~needs_the_last_only("k"),
)
def steps_as_far_for_keys_of_any_size(): ...


@mistake(
    "unheard_query",
    hint="You step across the last key, in a direction that you did not take from another key: where none lies that way, "
    "no score moves.",
    replace=(
        "direction = across[across.norm(dim=1).argmax()]",
        "unit = torch.eye(d, dtype=q.dtype)\n"
        "unit = unit - (unit @ last / (last @ last))[:, None] * last\n"
        "direction = unit[unit.norm(dim=1).argmax()]",
    ),
    shows=needs_the_last_only("k") & ~ignores("k"),
)
def steps_towards_no_key(): ...
