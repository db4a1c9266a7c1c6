"""Wrong answers that people give about caches and decoding, each with one wrong idea."""

import math

import torch

from autograder.suite import mistake

# ── KVCache ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Slots:
    """A good cache; the mistakes change one thing in it."""

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.sizes = (batch, num_kv_heads, d_head)
        self.capacity, self.dtype, self.done = capacity, dtype, 0
        room = (batch, num_kv_heads, capacity, d_head)
        self.stores = [[torch.zeros(room, dtype=dtype) for _ in range(2)] for _ in range(num_layers)]

    @property
    def length(self):
        return self.done

    def fits(self, k, v):
        batch, num_kv_heads, d_head = self.sizes
        if k.shape != v.shape or k.shape != (batch, num_kv_heads, k.shape[2], d_head):
            raise ValueError(f"k {list(k.shape)}, v {list(v.shape)}, cache {self.sizes}")
        if self.length + k.shape[2] > self.capacity:
            raise ValueError(f"{self.length + k.shape[2]} tokens, capacity {self.capacity}")

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
    hint="length moves in append. A model of two layers appends twice a step, so layer 1 starts where layer 0 ended. "
    "append writes; only advance counts.",
)
class AdvancesInEveryLayer(_Slots):
    def append(self, layer, k, v):
        answer = super().append(layer, k, v)
        self.done += k.shape[2]
        return answer

    def advance(self, c):
        if self.length > self.capacity:
            raise ValueError(f"{self.length + c} tokens, capacity {self.capacity}")


@mistake("KVCache", hint="All layers write into the same memory: the last one to append wins. Each layer has its own.")
class OneStoreForAllLayers(_Slots):
    def append(self, layer, k, v):
        return super().append(0, k, v)


@mistake("KVCache", hint="Your values are the keys. Compare what append returns as v_all with the v that you gave it.")
class StoresKeysAsValues(_Slots):
    def append(self, layer, k, v):
        self.fits(k, v)
        return self.write(layer, k, k)


@mistake("KVCache", hint="Your keys are the values: look at which of the two you write where.")
class StoresValuesAsKeys(_Slots):
    def append(self, layer, k, v):
        self.fits(k, v)
        return self.write(layer, v, v)


@mistake(
    "KVCache",
    hint="append returns the past without the chunk. A token attends to itself too: first append, then return.",
)
class LeavesTheChunkOut(_Slots):
    def write(self, layer, k, v):
        return tuple(t[:, :, : self.length] for t in super().write(layer, k, v))


@mistake(
    "KVCache",
    hint="A full cache drops tokens without a word, and the text goes on, wrong. The contract asks for a ValueError.",
)
class DropsWhatDoesNotFit(_Slots):
    def append(self, layer, k, v):
        room = max(0, self.capacity - self.length)
        return super().append(layer, k[:, :, :room], v[:, :, :room])

    def advance(self, c):
        self.done = min(self.capacity, self.done + c)


@mistake("KVCache", hint="The last slot is never used: with a capacity of 7, seven tokens fit.", keeps=0.5)
class OneSlotTooFew(_Slots):
    def fits(self, k, v):
        super().fits(k, v)
        if self.length + k.shape[2] >= self.capacity:
            raise ValueError(f"{self.length + k.shape[2]} tokens, capacity {self.capacity}")


@mistake(
    "KVCache",
    hint="Two caches of yours share their memory: a list that belongs to the class, or a default argument, is made "
    "once and used by all objects.",
)
class SharesStoresBetweenObjects(_Slots):
    shared = {}

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.stores = self.shared.setdefault(sizes, self.stores)


@mistake(
    "KVCache",
    hint="The length is a property of your class, not of the object: a second cache starts where the first one is.",
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
    hint="What append returned is a view, and its slots are written again: by a second append before advance, or after "
    "a reset. Whoever kept it sees other numbers. What could you do in these two cases?",
)
class HandsOutViewsThatChange(_Slots):
    def write(self, layer, k, v):
        end = self.length + k.shape[2]
        super().write(layer, k, v)
        return tuple(store[:, :, :end] for store in self.stores[layer])


@mistake(
    "KVCache",
    hint="Each step shifts the tokens in one buffer, so what earlier steps returned changes under the caller's hands.",
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
        return tuple(t.clone() for t in fresh) if self.length == 0 and old is None and k.shape[2] == 0 else fresh


class _Lists(_Slots):
    """A good cache that concatenates."""

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.sizes, self.capacity, self.dtype, self.done = (batch, num_kv_heads, d_head), capacity, dtype, 0
        self.stores = [None] * num_layers

    def joined(self, layer, k, v):
        old = self.stores[layer]
        if old is None or self.length == 0:
            return k.to(self.dtype).clone(), v.to(self.dtype).clone()
        return tuple(torch.cat([o[:, :, : self.length], n.to(self.dtype)], dim=2) for o, n in zip(old, (k, v)))

    def write(self, layer, k, v):
        self.stores[layer] = self.joined(layer, k, v)
        return self.stores[layer]


@mistake(
    "KVCache",
    hint="The first chunk is kept as the caller's own tensor. When the caller changes it, your cache changes too.",
)
class HoldsTheCallersTensor(_Lists):
    def joined(self, layer, k, v):
        if self.stores[layer] is None or self.length == 0:
            return k.to(self.dtype), v.to(self.dtype)
        return super().joined(layer, k, v)


@mistake(
    "KVCache",
    hint="A second append before advance stands behind the first instead of in its place: the chunk belongs behind the "
    "`length` finished tokens, whatever lies there.",
)
class SecondAppendAddsInstead(_Lists):
    def joined(self, layer, k, v):
        old = self.stores[layer]
        if old is None:
            return k.to(self.dtype).clone(), v.to(self.dtype).clone()
        return tuple(torch.cat([o, n.to(self.dtype)], dim=2) for o, n in zip(old, (k, v)))

    def reset(self):
        self.done, self.stores = 0, [None] * len(self.stores)


@mistake("KVCache", hint="After reset the old tokens are still there: length has to start at 0 again, in all layers.")
class ResetForgetsNothing(_Slots):
    def reset(self):
        self.stores = [[torch.zeros_like(t) for t in pair] for pair in self.stores]


@mistake("KVCache", hint="reset clears layer 0 only: the next append to another layer still finds the old tokens.")
class ResetClearsOneLayer(_Lists):
    def joined(self, layer, k, v):
        old = self.stores[layer]
        if old is None or (self.length == 0 and layer == 0):
            return k.to(self.dtype).clone(), v.to(self.dtype).clone()
        kept = max(self.length, old[0].shape[2] if self.stale else 0)
        return tuple(torch.cat([o[:, :, :kept], n.to(self.dtype)], dim=2) for o, n in zip(old, (k, v)))

    stale = False

    def reset(self):
        self.done, self.stale = 0, True


@mistake("KVCache", hint="The cache was asked to store in its own dtype; yours takes whatever the chunk has.")
class KeepsTheChunksDtype(_Lists):
    def joined(self, layer, k, v):
        self.dtype = k.dtype
        return super().joined(layer, k, v)


@mistake(
    "KVCache", hint="advance counts steps. It should count tokens: a prompt of seven moves length by seven.", keeps=0.5
)
class CountsSteps(_Slots):
    def advance(self, c):
        super().advance(c)
        self.done -= c - 1


@mistake("KVCache", hint="append returns all slots, also those that nobody has written: zeros look like keys.")
class ReturnsEmptySlotsToo(_Slots):
    def write(self, layer, k, v):
        super().write(layer, k, v)
        return tuple(store.clone() for store in self.stores[layer])


@mistake("KVCache", hint="The new tokens are laid along the heads. Which axis of [B, H_kv, n, d] counts tokens?")
class JoinsAlongTheHeads(_Lists):
    def joined(self, layer, k, v):
        old = self.stores[layer]
        if old is None or self.length == 0:
            return k.to(self.dtype).clone(), v.to(self.dtype).clone()
        return tuple(torch.cat([o, n.to(self.dtype)], dim=1) for o, n in zip(old, (k, v)))


@mistake(
    "KVCache",
    hint="A chunk of another batch or head count is broadcast into the cache without a word: compare the shapes first.",
)
class TakesAnyShape(_Slots):
    def fits(self, k, v):
        if self.length + k.shape[2] > self.capacity:
            raise ValueError(f"{self.length + k.shape[2]} tokens, capacity {self.capacity}")


@mistake("KVCache", hint="advance can pass the capacity: then length promises tokens that are nowhere.")
class AdvancesBeyondTheCapacity(_Slots):
    def advance(self, c):
        self.done += c


@mistake(
    "KVCache",
    hint="Every append copies the memory of all layers, and one layer has changed. Keep the layers in a list.",
)
class CopiesAllLayersEveryTime(_Slots):
    def write(self, layer, k, v):
        answer = super().write(layer, k, v)
        everything = torch.stack([torch.stack(pair) for pair in self.stores])
        self.stores = [[t.clone() for t in pair] for pair in everything]
        return answer


@mistake("KVCache", hint="Tokens are written one by one in a Python loop; a slice takes the whole chunk at once.")
class WritesTokenByToken(_Slots):
    def write(self, layer, k, v):
        for i in range(k.shape[2]):
            for store, new in zip(self.stores[layer], (k, v)):
                store[:, :, self.length + i] = new[:, :, i]
        return tuple(store[:, :, : self.length + k.shape[2]].clone() for store in self.stores[layer])


@mistake("KVCache", hint="advance always takes the whole chunk. Only the first c tokens count; the rest is dropped.")
class AdvanceKeepsTheWholeChunk(_Lists):
    def write(self, layer, k, v):
        self.pending = k.shape[2]
        return super().write(layer, k, v)

    def advance(self, c):
        super().advance(c)
        self.done += getattr(self, "pending", c) - c


# ── decode_step ──────────────────────────────────────────────────────────────────────────────────────────────


def _step(params, ids, cache, config, mask=None, last_only=False, wrong=""):
    """A good step, or one with one wrong idea."""
    (batch, c), start = ids.shape, cache.length
    vocab_size = params["embed"].shape[0]
    if wrong != "ids unchecked" and (ids.min() < 0 or ids.max() >= vocab_size):
        raise ValueError(f"ids from {int(ids.min())} to {int(ids.max())} in a vocabulary of {vocab_size}")
    if wrong == "ids unchecked":
        ids = ids.remainder(vocab_size)
    if mask is not None and mask.shape != (batch, start + c) and wrong != "mask unchecked":
        raise ValueError(f"mask must be {[batch, start + c]}, got {list(mask.shape)}")
    first = {"restart": 0, "one late": start + (start > 0), "one early": max(0, start - 1)}.get(wrong, start)
    first = 2 * start if wrong == "past twice" else first
    positions = torch.arange(first, first + c)
    if mask is not None and wrong != "pads count" and mask.shape[1] == start + c:
        positions = ragged_positions(mask)[:, start:]
        if wrong == "ragged positions of the chunk":
            positions = ragged_positions(mask[:, start:])
    rotary = "positions" not in params
    if not rotary:
        table = params["positions"]
        if wrong == "table unchecked":
            positions = positions.clamp(max=len(table) - 1)
        if positions.max() >= len(table):
            raise ValueError(f"{int(positions.max()) + 1} positions, and a table of {len(table)}")
    x = params["embed"][ids]
    if not rotary and wrong != "position of the token":
        x = x + params["positions"][positions]
    for layer, block in enumerate(params["blocks"]):
        if not rotary and wrong == "positions in every layer" and layer:
            x = x + params["positions"][positions]
        h = layer_norm(x, block["ln1_gamma"], block["ln1_beta"])
        q = split_heads(h @ block["w_q"], config.num_heads)
        k, v = (split_heads(h @ block[name], config.num_kv_heads) for name in ("w_k", "w_v"))
        plain = k
        if rotary:
            q, k = (rotary_positions(t, positions, config.theta) for t in (q, k))
        if rotary and wrong == "values turn":
            v = rotary_positions(v, positions, config.theta)
        where = 0 if wrong == "one layer" else layer
        if wrong == "rotates at reading" and rotary:
            k, v = cache.append(where, plain, v)
            k = rotary_positions(k, torch.arange(start + c - k.shape[2], start + c), config.theta)
        else:
            k, v = cache.append(where, k, v)
        if wrong == "rotates again" and rotary and start:
            k = rotary_positions(k, torch.arange(k.shape[2]), config.theta)
        if wrong == "advance in every layer":
            cache.advance(c)
        n = k.shape[2]
        window = None if wrong == "no window" else getattr(cache, "window", None)
        allowed = causal_mask(c, n, window)
        if wrong == "no mask":
            allowed = torch.ones(c, n, dtype=torch.bool)
        if wrong == "top left":
            allowed = torch.ones(c, n).tril().bool()
        if wrong == "not itself":
            allowed = allowed & ~(torch.arange(n) == torch.arange(c)[:, None] + n - c)
        if wrong == "only the past":
            allowed = allowed & (torch.arange(n) < n - c)
        if wrong == "only the chunk":
            allowed = allowed & (torch.arange(n) >= n - c)
        if mask is not None and wrong != "pads seen":
            columns = mask[:, :n] if wrong == "oldest columns" else mask[:, -n:]
            if wrong == "mask over heads":
                allowed = allowed & columns[:, None]
            elif wrong == "first row's mask":
                allowed = allowed & columns[0]
            elif wrong == "mask upside down":
                allowed = allowed & ~columns[:, None, None]
            else:
                allowed = allowed & columns[:, None, None]
        if wrong == "other grouping":
            group = config.num_heads // config.num_kv_heads
            k, v = k.repeat(1, group, 1, 1), v.repeat(1, group, 1, 1)
        if wrong == "copies out":
            group = config.num_heads // config.num_kv_heads
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        y = grouped_attention(q, k, v, allowed)
        x = x + merge_heads(y) @ block["w_o"]
        x = x + mlp(layer_norm(x, block["ln2_gamma"], block["ln2_beta"]), block)
    if wrong not in ("advance in every layer", "never advances"):
        cache.advance({"past twice in advance": start + c, "one token": 1}.get(wrong, c))
    if wrong == "last always" or (last_only and wrong not in ("last ignored", "last cut late", "first instead")):
        x = x[:, -1:]
    if last_only and wrong == "first instead":
        x = x[:, :1]
    if wrong != "no final norm":
        x = layer_norm(x, params["lnf_gamma"], params["lnf_beta"])
    logits = x @ (params["embed"].T if wrong == "always tied" else unembedding(params))
    if last_only and wrong == "last cut late":
        logits = logits[:, -1:]
    if wrong == "probabilities":
        logits = torch.softmax(logits, dim=-1)
    return logits.to(torch.float32) if wrong == "float32" and logits.dtype == torch.float16 else logits


@mistake(
    "decode_step",
    hint="Positions start at 0 in every step. The cache already holds tokens: the first new one comes after them.",
)
def positions_restart_every_step(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "restart")


@mistake(
    "decode_step",
    hint="After the prompt, positions are one too large. With t tokens in the cache, at 0 to t - 1, what is next?",
    keeps=0.5,
)
def positions_are_one_late(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "one late")


@mistake(
    "decode_step",
    hint="The new token gets the position of the newest old one. With t tokens, at 0 to t - 1 …?",
    keeps=0.5,
)
def positions_are_one_early(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "one early")


@mistake("decode_step", hint="The past is counted twice in the positions: once by you, and once by the cache's length.")
def past_counts_twice_in_positions(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "past twice")


@mistake(
    "decode_step",
    hint="The cache is advanced by everything so far. It knows the past already: advance by the chunk.",
)
def advances_by_everything_so_far(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "past twice in advance")


@mistake("decode_step", hint="The cache is advanced once a layer. A step has many layers and is one step.")
def advances_once_a_layer(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "advance in every layer")


@mistake("decode_step", hint="Nobody advances the cache: the next step would write over this one's keys.")
def never_advances(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "never advances")


@mistake("decode_step", hint="The cache is advanced by one, whatever the chunk. Count tokens, not steps.")
def advances_by_one_whatever_the_chunk(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "one token")


@mistake(
    "decode_step",
    hint="There is no causal mask. A single new token needs none, but in a chunk the first would see the last.",
)
def no_mask_inside_the_chunk(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "no mask")


@mistake(
    "decode_step",
    hint="The triangle is aligned at the top left: with 1 query and 8 keys it shows the oldest key only. The newest "
    "query belongs to the newest key.",
)
def triangle_at_the_top_left(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "top left")


@mistake("decode_step", hint="A new token does not attend to itself. Append first, then attend to all of it.")
def token_does_not_see_itself(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "not itself")


@mistake("decode_step", hint="Only the past is attended to; the chunk's own keys are left out. Append, then attend.")
def attends_to_the_past_only(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "only the past")


@mistake("decode_step", hint="Only the chunk is attended to. What append returns holds the past as well: use it.")
def attends_to_the_chunk_only(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "only the chunk")


@mistake("decode_step", hint="All layers use the cache of layer 0. Every layer has keys and values of its own.")
def one_cache_for_all_layers(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "one layer")


@mistake(
    "decode_step",
    hint="Keys that come out of the cache were turned when they went in. A second turn moves them to other positions.",
)
def rotates_cached_keys_again(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "rotates again")


@mistake(
    "decode_step",
    hint="Plain keys are stored, and the whole past is turned anew in every step. A key's position never changes: turn "
    "it once, before it goes into the cache.",
)
def stores_plain_keys(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "rotates at reading")


@mistake("decode_step", hint="Values are turned too. Rotation is for comparing: queries and keys only.")
def rotates_values(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "values turn")


@mistake("decode_step", hint="Query heads take their key heads in turn (0 1 0 1 …). A group is neighbours: 0 0 1 1.")
def deals_key_heads_out_in_turn(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "other grouping")


@mistake(
    "decode_step",
    hint="Each key is copied for every query head that reads it, in every step. The point of sharing is to read it "
    "once: several query heads are more queries of one key head.",
)
def copies_keys_for_every_query_head(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "copies out")


@mistake(
    "decode_step", hint="The cache has a window, and the mask does not know it: in a chunk, late tokens see too far."
)
def ignores_the_window(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "no window")


@mistake("decode_step", hint="Padding is attended to: hide the columns where the mask is False from every query.")
def padding_is_seen(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "pads seen")


@mistake(
    "decode_step",
    hint="Padding shifts the positions: a row's first real token is at position 0, in whatever column it stands.",
)
def padding_counts_as_positions(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "pads count")


@mistake(
    "decode_step",
    hint="Positions are counted inside the chunk's part of the mask. The past counts too: take them from the whole "
    "mask, and then the chunk's part.",
)
def ragged_positions_of_the_chunk_alone(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "ragged positions of the chunk")


@mistake("decode_step", hint="The cache returned the newest keys only. Their columns in the mask are the last ones.")
def takes_the_oldest_columns_of_the_mask(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "oldest columns")


@mistake("decode_step", hint="The rows of the mask meet the heads. It is one a row of the batch: [B, 1, 1, n].")
def mask_goes_to_heads(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "mask over heads")


@mistake("decode_step", hint="All rows use the padding of the first.")
def every_row_has_the_first_rows_padding(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "first row's mask")


@mistake("decode_step", hint="The mask is upside down: True means a real token, which may be attended to.")
def mask_is_upside_down(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "mask upside down")


@mistake("decode_step", hint="The learned positions are missing. They are added to the embeddings, once.")
def forgets_learned_positions(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "position of the token")


@mistake("decode_step", hint="Learned positions are added in every layer. Once, at the input, is enough.")
def adds_positions_in_every_layer(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "positions in every layer")


@mistake(
    "decode_step", hint="The last norm is missing: a pre-norm model normalizes once more before the logits.", keeps=0.5
)
def forgets_the_final_norm(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "no final norm")


@mistake("decode_step", hint="Logits are made with the embedding although the params have an unembedding.")
def always_ties_the_unembedding(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "always tied")


@mistake("decode_step", hint="last_only is ignored: one row of logits is asked for.")
def ignores_last_only(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "last ignored")


@mistake("decode_step", hint="All logits are made and then thrown away but one. Take the last position before.")
def cuts_the_logits_afterwards(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "last cut late")


@mistake("decode_step", hint="Only the last position's logits come back, though nobody asked for last_only.")
def always_last_only(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "last always")


@mistake("decode_step", hint="last_only gives the first position. The next token is foretold by the last.")
def first_instead_of_last(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "first instead")


@mistake("decode_step", hint="These are probabilities. Logits are asked for, before any softmax.")
def returns_probabilities(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "probabilities")


@mistake("decode_step", hint="An id outside the vocabulary goes through; Python counts -1 from the end of the table.")
def takes_any_id(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "ids unchecked")


@mistake("decode_step", hint="Positions beyond the table are moved to its last row. The contract asks for ValueError.")
def clamps_positions(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "table unchecked")


@mistake("decode_step", hint="Half precision comes back as float32.")
def returns_float32(params, ids, cache, config, mask=None, last_only=False):
    return _step(params, ids, cache, config, mask, last_only, "float32")


@mistake(
    "decode_step",
    hint="The chunk goes through the model token by token in a Python loop. All of it can go at once: that is what the "
    "mask is for.",
)
def feeds_the_chunk_token_by_token(params, ids, cache, config, mask=None, last_only=False):
    logits = []
    for i in range(ids.shape[1]):
        part = None if mask is None else mask[:, : cache.length + 1]
        logits.append(_step(params, ids[:, i : i + 1], cache, config, part))
    return logits[-1] if last_only else torch.cat(logits, dim=1)


# ── prefill ──────────────────────────────────────────────────────────────────────────────────────────────────


@mistake("prefill", hint="A cache that is in use is not noticed: the prompt continues somebody else's text.")
def takes_a_cache_in_use(params, prompt, cache, config, mask=None):
    return decode_step(params, prompt, cache, config, mask)


@mistake("prefill", hint="Only the last position's logits come back; all of them are asked for.", keeps=0.5)
def returns_the_last_logits(params, prompt, cache, config, mask=None):
    if cache.length != 0:
        raise ValueError(f"the cache holds {cache.length} tokens")
    return decode_step(params, prompt, cache, config, mask)[:, -1:]


@mistake("prefill", hint="The mask is not handed on, so padding counts as text.")
def drops_the_mask(params, prompt, cache, config, mask=None):
    if cache.length != 0:
        raise ValueError(f"the cache holds {cache.length} tokens")
    return decode_step(params, prompt, cache, config)


@mistake("prefill", hint="The cache is advanced a second time: decode_step has done it.")
def advances_again(params, prompt, cache, config, mask=None):
    if cache.length != 0:
        raise ValueError(f"the cache holds {cache.length} tokens")
    logits = decode_step(params, prompt, cache, config, mask)
    cache.advance(prompt.shape[1])
    return logits


@mistake("prefill", hint="The logits are those of the model without a cache, and nothing has gone into the cache.")
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


@mistake("prefill", hint="The last token of the prompt is kept for later; all of them belong into the cache.")
def leaves_the_last_token_for_later(params, prompt, cache, config, mask=None):
    if cache.length != 0:
        raise ValueError(f"the cache holds {cache.length} tokens")
    return decode_step(params, prompt[:, :-1], cache, config, None if mask is None else mask[:, :-1])


# ── generate_cached ──────────────────────────────────────────────────────────────────────────────────────────


def _asked(prompt, num_new):
    if num_new < 0 or prompt.shape[1] < 1:
        raise ValueError(f"{num_new} new tokens after a prompt of {prompt.shape[1]}")


def _new_cache(params, batch, capacity, config):
    return KVCache(
        config.num_layers, batch, config.num_kv_heads, config.d_head, capacity, params["embed"].dtype
    )  # the answer key's


@mistake(
    "generate_cached",
    hint="The whole text goes through the model for every new token. With a cache only the newest token has to.",
)
def recomputes_everything(params, prompt, num_new, config):
    _asked(prompt, num_new)
    return generate_uncached(params, prompt, num_new, config)


@mistake(
    "generate_cached",
    hint="A cache is made, and the whole text is still fed in every step, into a fresh one. Feed the newest token.",
)
def prefills_anew_for_every_token(params, prompt, num_new, config):
    _asked(prompt, num_new)
    ids = prompt
    for _ in range(num_new):
        cache = _new_cache(params, ids.shape[0], ids.shape[1], config)
        logits = decode_step(params, ids, cache, config, last_only=True)
        ids = torch.cat([ids, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    return ids


@mistake(
    "generate_cached",
    hint="The cache of the last call is used again. A default argument is made once; make a cache per call.",
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
        chunk = decode_step(free, chunk, cache, config, last_only=True)[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, chunk], dim=1)
    return ids


@mistake("generate_cached", hint="Logits are made for every token of the prompt, and only the last is looked at.")
def makes_all_logits_of_the_prompt(params, prompt, num_new, config):
    _asked(prompt, num_new)
    cache, ids, chunk = _new_cache(params, prompt.shape[0], prompt.shape[1] + num_new, config), prompt, prompt
    for _ in range(num_new):
        chunk = decode_step(params, chunk, cache, config)[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, chunk], dim=1)
    return ids


@mistake(
    "generate_cached",
    hint="The last new token goes through the model, too, and nobody reads what comes out. It also needs a position "
    "that the table may not have.",
)
def feeds_the_last_token_for_nobody(params, prompt, num_new, config):
    _asked(prompt, num_new)
    cache, ids = _new_cache(params, prompt.shape[0], prompt.shape[1] + num_new, config), prompt
    logits = decode_step(params, prompt, cache, config, last_only=True)
    for _ in range(num_new):
        chunk = logits[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, chunk], dim=1)
        logits = decode_step(params, chunk, cache, config, last_only=True)
    return ids


@mistake("generate_cached", hint="The logits at position 0 foretell token 1. The next token is foretold by the last.")
def reads_the_first_position(params, prompt, num_new, config):
    _asked(prompt, num_new)
    cache, ids, chunk = _new_cache(params, prompt.shape[0], prompt.shape[1] + num_new, config), prompt, prompt
    for _ in range(num_new):
        chunk = decode_step(params, chunk, cache, config)[:, 0].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, chunk], dim=1)
    return ids


@mistake("generate_cached", hint="One token is chosen for the whole batch; each row has its own most likely one.")
def one_token_for_all_rows(params, prompt, num_new, config):
    _asked(prompt, num_new)
    cache, ids, chunk = _new_cache(params, prompt.shape[0], prompt.shape[1] + num_new, config), prompt, prompt
    for _ in range(num_new):
        logits = decode_step(params, chunk, cache, config, last_only=True)[:, -1]
        chunk = logits[:1].argmax(dim=-1, keepdim=True).expand(len(logits), 1)
        ids = torch.cat([ids, chunk], dim=1)
    return ids


@mistake("generate_cached", hint="The new tokens come back without the prompt in front of them.", keeps=0.5)
def returns_only_what_is_new(params, prompt, num_new, config):
    _asked(prompt, num_new)
    cache, made, chunk = _new_cache(params, prompt.shape[0], prompt.shape[1] + num_new, config), prompt[:, :0], prompt
    for _ in range(num_new):
        chunk = decode_step(params, chunk, cache, config, last_only=True)[:, -1].argmax(dim=-1, keepdim=True)
        made = torch.cat([made, chunk], dim=1)
    return made


@mistake("generate_cached", hint="One token too few: count how many argmaxes it takes for num_new tokens.", keeps=0.5)
def stops_one_token_early(params, prompt, num_new, config):
    _asked(prompt, num_new)
    cache, ids, chunk = _new_cache(params, prompt.shape[0], prompt.shape[1] + num_new, config), prompt, prompt
    for _ in range(num_new - 1):
        chunk = decode_step(params, chunk, cache, config, last_only=True)[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, chunk], dim=1)
    return ids


@mistake("generate_cached", hint="The caller's prompt has changed: the next token is written into a slice of it.")
def writes_into_the_prompt(params, prompt, num_new, config):
    _asked(prompt, num_new)
    cache, ids = _new_cache(params, prompt.shape[0], prompt.shape[1] + num_new, config), prompt.clone()
    chunk, last = prompt, prompt[:, -1:]
    for _ in range(num_new):
        last.copy_(decode_step(params, chunk, cache, config, last_only=True)[:, -1].argmax(dim=-1, keepdim=True))
        chunk = last
        ids = torch.cat([ids, chunk], dim=1)
    return ids


@mistake("generate_cached", hint="A negative number of new tokens is taken for none, and an empty prompt for one.")
def checks_nothing(params, prompt, num_new, config):
    if num_new < 0 or prompt.shape[1] < 1:
        return prompt.clone()
    cache, ids, chunk = _new_cache(params, prompt.shape[0], prompt.shape[1] + num_new, config), prompt, prompt
    for _ in range(num_new):
        chunk = decode_step(params, chunk, cache, config, last_only=True)[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, chunk], dim=1)
    return ids


# ── ragged_positions ─────────────────────────────────────────────────────────────────────────────────────────


def _two_axes(mask):
    if mask.dim() != 2:
        raise ValueError(f"mask must be [B, N], got {list(mask.shape)}")


@mistake("ragged_positions", hint="These are columns. A row with two pads in front has its position 0 in column 2.")
def counts_columns(mask):
    _two_axes(mask)
    return torch.arange(mask.shape[1]).expand(mask.shape).masked_fill(~mask, 0)


@mistake(
    "ragged_positions",
    hint="One too many: a token's position is the number of tokens before it, itself left out.",
    keeps=0.5,
)
def counts_the_token_itself(mask):
    _two_axes(mask)
    return mask.long().cumsum(dim=1).masked_fill(~mask, 0)


@mistake(
    "ragged_positions",
    hint="Padding is at -1, and as an index that is the last row of a table. 0 is asked for.",
    keeps=0.5,
)
def padding_at_minus_one(mask):
    _two_axes(mask)
    return (mask.long().cumsum(dim=1) - 1).masked_fill(~mask, -1)


@mistake(
    "ragged_positions",
    hint="Padding in front is at 0, and padding behind or between is not: clamping catches only what is below 0.",
)
def clamps_at_zero(mask):
    _two_axes(mask)
    return (mask.long().cumsum(dim=1) - 1).clamp(min=0)


@mistake("ragged_positions", hint="The count runs down the batch. Each row is a text of its own.")
def counts_down_the_batch(mask):
    _two_axes(mask)
    return (mask.long().cumsum(dim=0) - 1).masked_fill(~mask, 0)


@mistake("ragged_positions", hint="Pads are counted instead of tokens: True is a real token.")
def counts_the_pads(mask):
    _two_axes(mask)
    return ((~mask).long().cumsum(dim=1) - 1).masked_fill(mask, 0)


@mistake("ragged_positions", hint="Positions look up rows of a table: whole numbers, int64.")
def positions_are_floats(mask):
    _two_axes(mask)
    return (mask.double().cumsum(dim=1) - 1).masked_fill(~mask, 0)


@mistake("ragged_positions", hint="The number of pads is taken from the first row for all.")
def first_rows_padding_for_all(mask):
    _two_axes(mask)
    pads = int((~mask[0]).sum())
    return (torch.arange(mask.shape[1]) - pads).clamp(min=0).expand(mask.shape).masked_fill(~mask, 0)


@mistake(
    "ragged_positions", hint="A mask with other axes is counted along whichever comes second: ValueError is asked."
)
def takes_any_number_of_axes(mask):
    return (mask.long().cumsum(dim=1) - 1).masked_fill(~mask, 0)


# ── kv_cache_bytes ───────────────────────────────────────────────────────────────────────────────────────────


def _positive(*sizes):
    if min(sizes) < 1:
        raise ValueError(f"sizes must be at least 1, got {sizes}")


@mistake("kv_cache_bytes", hint="Half of it: a token leaves a key and a value.", keeps=0.5)
def keys_without_values(config, n, batch, bytes_per_element):
    _positive(n, batch, bytes_per_element)
    return config.num_layers * config.num_kv_heads * config.d_head * n * batch * bytes_per_element


@mistake(
    "kv_cache_bytes", hint="Query heads are counted. What is stored are key and value heads, and these may be few."
)
def counts_query_heads(config, n, batch, bytes_per_element):
    _positive(n, batch, bytes_per_element)
    return 2 * config.num_layers * config.num_heads * config.d_head * n * batch * bytes_per_element


@mistake("kv_cache_bytes", hint="The model width is not what is stored: keys have H_kv·d numbers.")
def counts_the_model_width(config, n, batch, bytes_per_element):
    _positive(n, batch, bytes_per_element)
    width = getattr(config, "d_model", config.num_kv_heads * config.d_head)
    return 2 * config.num_layers * width * n * batch * bytes_per_element


@mistake("kv_cache_bytes", hint="One layer only. Each layer has keys and values of its own.")
def forgets_the_layers(config, n, batch, bytes_per_element):
    _positive(n, batch, bytes_per_element)
    return 2 * config.num_kv_heads * config.d_head * n * batch * bytes_per_element


@mistake("kv_cache_bytes", hint="One row only: every user of the batch has a cache.")
def forgets_the_batch(config, n, batch, bytes_per_element):
    _positive(n, batch, bytes_per_element)
    return 2 * config.num_layers * config.num_kv_heads * config.d_head * n * bytes_per_element


@mistake("kv_cache_bytes", hint="These are elements. How many bytes has one?", keeps=0.5)
def forgets_the_bytes(config, n, batch, bytes_per_element):
    _positive(n, batch, bytes_per_element)
    return 2 * config.num_layers * config.num_kv_heads * config.d_head * n * batch


@mistake("kv_cache_bytes", hint="Bytes are asked for, as an int; a division makes a float, and of another unit.")
def answers_in_mebibytes(config, n, batch, bytes_per_element):
    _positive(n, batch, bytes_per_element)
    return 2 * config.num_layers * config.num_kv_heads * config.d_head * n * batch * bytes_per_element / 2**20


@mistake("kv_cache_bytes", hint="The result is a float: beyond 2^53 it loses bytes, and an int is asked for.")
def answers_as_a_float(config, n, batch, bytes_per_element):
    _positive(n, batch, bytes_per_element)
    return float(2 * config.num_layers * config.num_kv_heads * config.d_head * n * batch * bytes_per_element)


@mistake("kv_cache_bytes", hint="The length comes in squared: the cache holds tokens, not pairs of tokens.")
def counts_pairs_of_tokens(config, n, batch, bytes_per_element):
    _positive(n, batch, bytes_per_element)
    return 2 * config.num_layers * config.num_kv_heads * config.d_head * n * n * batch * bytes_per_element


@mistake("kv_cache_bytes", hint="Minus three rows make a negative number of bytes: refuse sizes below 1.")
def accepts_any_size(config, n, batch, bytes_per_element):
    return 2 * config.num_layers * config.num_kv_heads * config.d_head * n * batch * bytes_per_element


# ── SlidingWindowCache ───────────────────────────────────────────────────────────────────────────────────────


class _Window:
    """A good sliding cache; the mistakes change one thing in it."""

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window):
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
            raise ValueError(f"k {list(k.shape)}, v {list(v.shape)}, cache {self.sizes}")
        if self.seen + k.shape[2] > self.capacity:
            raise ValueError(f"{self.seen + k.shape[2]} tokens, capacity {self.capacity}")

    def append(self, layer, k, v):
        self.fits(k, v)
        both = [torch.cat([old, new.to(self.dtype)], dim=2) for old, new in zip(self.past[layer], (k, v))]
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
        return [torch.zeros(batch, num_kv_heads, 0, d_head, dtype=self.dtype) for _ in range(2)]

    def reset(self):
        self.seen = 0
        self.past = [self.empty() for _ in range(self.num_layers)]
        self.joined = [self.empty() for _ in range(self.num_layers)]


@mistake(
    "SlidingWindowCache",
    hint="One earlier token too many: the window includes the token itself, so W - 1 come before it.",
    keeps=0.5,
)
class KeepsAWholeWindow(_Window):
    def keep(self, t, held, c):
        return t[:, :, max(0, held + c - self.window) : held + c].clone()


@mistake("SlidingWindowCache", hint="One earlier token too few: a token sees itself and W - 1 before it.", keeps=0.5)
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
    hint="A long chunk is cut to the window. Its early tokens are needed by later ones; hiding is the mask's work.",
)
class CutsTheChunk(_Window):
    def append(self, layer, k, v):
        return tuple(t[:, :, -(self.window - 1 + min(k.shape[2], 1)) :] for t in super().append(layer, k, v))


@mistake("SlidingWindowCache", hint="The oldest tokens are kept and the newest dropped.")
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
        self.past[layer] = [self.keep(t, t.shape[2] - k.shape[2], k.shape[2]) for t in answer]
        return answer

    def advance(self, c):
        if self.seen + c > self.capacity:
            raise ValueError(f"{self.seen + c} tokens, capacity {self.capacity}")
        self.seen += c


@mistake(
    "SlidingWindowCache",
    hint="length is what is held. Positions need all tokens seen: with a window of 3, token 12 is still token 12.",
)
class LengthIsWhatIsHeld(_Window):
    @property
    def length(self):
        return min(self.seen, self.window - 1)


@mistake("SlidingWindowCache", hint="length moves in append, once a layer, instead of once a step in advance.")
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
    hint="The ring's slots come back in memory order. After it has gone round once, that is not the order of time.",
)
class ReturnsTheRingUnordered(_Window):
    def append(self, layer, k, v):
        k_all, v_all = super().append(layer, k, v)
        held = k_all.shape[2] - k.shape[2]
        if held == self.window - 1 and held:
            turn = self.seen % held
            k_all, v_all = (torch.cat([t[:, :, :held].roll(turn, 2), t[:, :, held:]], dim=2) for t in (k_all, v_all))
        return k_all, v_all


@mistake(
    "SlidingWindowCache",
    hint="What append returned lies in a buffer that later steps write over. Put the tokens in order in a new tensor.",
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
    hint="Room for the whole capacity is made. A window of 4 needs room for 3 tokens, however long the text may get.",
)
class MakesRoomForTheCapacity(_Window):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        batch, num_kv_heads, d_head = self.sizes
        self.room = torch.zeros(2, batch, num_kv_heads, self.capacity, d_head, dtype=self.dtype)


@mistake(
    "SlidingWindowCache",
    hint="All tokens are kept and cut when append returns: the memory, and the copying, grow with the text.",
)
class KeepsEverythingAndCuts(_Window):
    def keep(self, t, held, c):
        return t[:, :, : held + c]

    def append(self, layer, k, v):
        n = min(self.seen, self.window - 1) + k.shape[2]
        return tuple(t[:, :, t.shape[2] - n :] for t in super().append(layer, k, v))


@mistake("SlidingWindowCache", hint="After reset some of the old tokens are still there.")
class ResetKeepsTheTokens(_Window):
    def reset(self):
        if hasattr(self, "past"):
            self.seen = 0
        else:
            super().reset()


@mistake("SlidingWindowCache", hint="advance(c) with less than the chunk keeps all of it; the rest should be dropped.")
class AdvanceTakesTheWholeChunk(_Window):
    def keep(self, t, held, c):
        return super().keep(t, held, t.shape[2] - held)


@mistake("SlidingWindowCache", hint="The capacity is not looked at: it limits length, all tokens seen.")
class IgnoresTheCapacity(_Window):
    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window):
        super().__init__(num_layers, batch, num_kv_heads, d_head, 10**9, dtype, window)


@mistake("SlidingWindowCache", hint="The cache stores in its own dtype; yours takes that of the chunk.")
class TakesTheChunksDtype(_Window):
    def append(self, layer, k, v):
        self.dtype = k.dtype
        self.past = [[t.to(k.dtype) for t in pair] for pair in self.past]
        return super().append(layer, k, v)


@mistake("SlidingWindowCache", hint="A window of 0 tokens makes no sense: refuse it.")
class AcceptsAnyWindow(_Window):
    def check_window(self, window):
        pass


@mistake("SlidingWindowCache", hint="Values are taken from the keys.")
class ValuesAreKeys(_Window):
    def append(self, layer, k, v):
        self.fits(k, v)
        return super().append(layer, k, k)


# ── speculative_accept ───────────────────────────────────────────────────────────────────────────────────────


def _speculate(p, q, drafted, u, wrong=""):
    if p.shape != q.shape or drafted.shape != p.shape[:1] or u.shape != p.shape[:1]:
        raise ValueError(f"{[list(t.shape) for t in (p, q, drafted, u)]}")
    places = torch.arange(len(drafted))
    p_x, q_x = p[places, drafted], q[places, drafted]
    accepted = u * q_x <= p_x
    if wrong == "greedy":
        accepted = p.argmax(dim=-1) == drafted
    if wrong == "no q":
        accepted = u <= p_x
    if wrong == "swapped":
        accepted = u * p_x <= q_x
    if wrong == "whenever":
        accepted = p_x >= q_x
    kept = int(accepted.sum()) if wrong == "counts all" else int(accepted.long().cumprod(dim=0).sum())
    if wrong == "strict" and bool((u == 0).any()):
        kept = 0
    if kept == len(drafted):
        return kept, (p[-1].clone() if wrong == "p at the end" else torch.zeros_like(p[0]))
    place = {"last place": len(p) - 1, "first place": 0, "one later": min(kept + 1, len(p) - 1)}.get(wrong, kept)
    missing = (p[place] - q[place]).clamp(min=0)
    if wrong == "from p":
        missing = p[place]
    if wrong == "absolute":
        missing = (p[place] - q[place]).abs()
    if wrong == "q minus p":
        missing = (q[place] - p[place]).clamp(min=0)
    return kept, missing if wrong == "not normalized" else missing / missing.sum()


@mistake("speculative_accept", hint="Only the target's favourite is kept. That is greedy decoding: u is never asked.")
def keeps_the_targets_favourite(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "greedy")


@mistake("speculative_accept", hint="u is compared with p alone. A token is kept with probability p / q, not p.")
def compares_u_with_p_alone(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "no q")


@mistake("speculative_accept", hint="p and q have changed places: p is the target, and q is who guessed.")
def swaps_target_and_draft(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "swapped")


@mistake("speculative_accept", hint="A token that the draft likes too much is never kept; sometimes it should be.")
def keeps_only_what_the_target_likes_better(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "whenever")


@mistake(
    "speculative_accept",
    hint="All tokens that pass are counted. Behind the first rejection nothing counts any more.",
)
def counts_behind_the_rejection(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "counts all")


@mistake(
    "speculative_accept", hint="After a rejection p itself is sampled: tokens that the draft offers come too often."
)
def samples_the_target_again(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "from p")


@mistake("speculative_accept", hint="The residual does not sum to 1.", keeps=0.5)
def residual_is_not_normalized(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "not normalized")


@mistake("speculative_accept", hint="|p - q| also counts tokens that the draft liked too much. Only what is missing.")
def residual_of_absolute_differences(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "absolute")


@mistake("speculative_accept", hint="q - p is what the draft has too much. What is missing is the other difference.")
def residual_the_wrong_way_round(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "q minus p")


@mistake("speculative_accept", hint="The residual is taken at the last place; it belongs to the rejected one.")
def residual_of_the_last_place(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "last place")


@mistake("speculative_accept", hint="The residual is taken one place behind the rejected token.")
def residual_of_the_place_behind(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "one later")


@mistake("speculative_accept", hint="Where all are accepted there is no residual: zeros are asked for.")
def returns_p_when_all_are_kept(p, q, drafted, u):
    return _speculate(p, q, drafted, u, "p at the end")


@mistake("speculative_accept", hint="num_accepted should be a plain int, not a tensor.")
def counts_as_a_tensor(p, q, drafted, u):
    kept, residual = _speculate(p, q, drafted, u)
    return torch.tensor(kept), residual


@mistake("speculative_accept", hint="The caller's p has changed: the difference is made in place.")
def subtracts_in_place(p, q, drafted, u):
    answer = _speculate(p, q, drafted, u)
    p -= q
    return answer


@mistake("speculative_accept", hint="Shapes that do not fit are not noticed: compare them first.")
def takes_any_shapes(p, q, drafted, u):
    k, v = min(len(p), len(drafted), len(u)), min(p.shape[1], q.shape[1])
    return _speculate(p[:k, :v], q[:k, :v], drafted[:k], u[:k])


# ── unheard_query ────────────────────────────────────────────────────────────────────────────────────────────


def _across(q, k):
    """What each earlier key has across the last one, checked."""
    last = k[-1]
    across = k[:-1] - (k[:-1] @ last / (last @ last))[:, None] * last
    if len(q) < 2 or across.norm(dim=1).max() < 1e-9 * k.norm(dim=1).max():
        raise ValueError(f"no such query for {len(q)} tokens of size {q.shape[1]}")
    return across[across.norm(dim=1).argmax()]


@mistake("unheard_query", hint="This is the query that was there: no weight of attention moves.")
def returns_the_query_itself(q, k):
    _across(q, k)
    return q[-1].clone()


@mistake(
    "unheard_query", hint="A longer query has another product with its own key, and the notes' formula hears that."
)
def makes_the_query_longer(q, k):
    _across(q, k)
    return 3 * q[-1]


@mistake(
    "unheard_query",
    hint="Towards another key, but that key is not square to the last one: take away what it has along k_N first.",
)
def moves_along_another_key(q, k):
    _across(q, k)
    return q[-1] + 1000 * k[0]


@mistake("unheard_query", hint="The direction is right and the way too short: no weight moves by 0.1.")
def takes_a_small_step(q, k):
    return q[-1] + 1e-3 * _across(q, k)


@mistake(
    "unheard_query",
    hint="You move q square to the first key. The notes' formula compares the last query with the last key.",
)
def square_to_the_first_key(q, k):
    _across(q, k)
    first = k[0]
    return q[-1] + 1000 * (k[-1] - (k[-1] @ first / (first @ first)) * first)


@mistake(
    "unheard_query",
    hint="This works unless that token already has nearly all the weight: then pushing the query further towards it "
    "moves nothing.",
)
def always_pushes_towards_the_key(q, k):
    direction = _across(q, k)
    return q[-1] + direction * (1000 * math.sqrt(q.shape[1]) / (direction @ direction))


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
        q[-1] + push, q[-1] - push, key=lambda t: (torch.softmax(k @ t / math.sqrt(d), dim=0) - before).abs().max()
    )


@mistake("unheard_query", hint="A zero query has another product with its own key.")
def asks_nothing(q, k):
    _across(q, k)
    return torch.zeros_like(q[-1])
