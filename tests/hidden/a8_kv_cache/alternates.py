"""Other right answers, really written differently from the answer key."""

import math

import torch

from autograder.suite import alternate

# ── KVCache
# ──────────────────────────────────────────────────────────────────────────────────────────────────


def _fits(k, v, shape, length, capacity):
    """shape: (batch, num_kv_heads, d_head) of the cache."""
    if k.shape != v.shape or (k.shape[0], k.shape[1], k.shape[3]) != tuple(shape):
        raise ValueError(
            f"k {tuple(k.shape)} and v {tuple(v.shape)} do not fit a cache of {shape}"
        )
    if length + k.shape[2] > capacity:
        raise ValueError(
            f"{length} + {k.shape[2]} = {length + k.shape[2]} tokens, room for {capacity}"
        )


@alternate("KVCache")
class Concatenates:
    """New tensors in every step; nothing is ever written over."""

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.shape, self.capacity, self.dtype = (
            (batch, num_kv_heads, d_head),
            capacity,
            dtype,
        )
        self.layers = [None] * num_layers
        self._n = 0

    length = property(lambda self: self._n)

    def append(self, layer, k, v):
        _fits(k, v, self.shape, self._n, self.capacity)
        k, v = k.to(self.dtype), v.to(self.dtype)
        if self._n == 0:
            self.layers[layer] = (k.clone(), v.clone())
        else:
            old_k, old_v = self.layers[layer]
            self.layers[layer] = (
                torch.cat((old_k[:, :, : self._n], k), dim=-2),
                torch.cat((old_v[:, :, : self._n], v), dim=-2),
            )
        return self.layers[layer]

    def advance(self, c):
        if self._n + c > self.capacity:
            raise ValueError(f"{self._n + c} tokens, room for {self.capacity}")
        self._n = self._n + c

    def reset(self):
        self._n = 0
        self.layers = [None for _ in self.layers]


@alternate("KVCache")
class PreallocatesAndClones:
    """One buffer for everything, [layers, 2, B, H_kv, capacity, d]; what is returned is a copy."""

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.buffer = torch.empty(
            num_layers, 2, batch, num_kv_heads, capacity, d_head, dtype=dtype
        )
        self.tokens = 0

    @property
    def length(self):
        return self.tokens

    def append(self, layer, k, v):
        _, _, batch, num_kv_heads, capacity, d_head = self.buffer.shape
        _fits(k, v, (batch, num_kv_heads, d_head), self.tokens, capacity)
        end = self.tokens + k.shape[2]
        self.buffer[layer, 0, ..., self.tokens : end, :].copy_(k)
        self.buffer[layer, 1, ..., self.tokens : end, :].copy_(v)
        return self.buffer[layer, 0, ..., :end, :].clone(), self.buffer[
            layer, 1, ..., :end, :
        ].clone()

    def advance(self, c):
        capacity = self.buffer.shape[4]
        if self.tokens + c > capacity:
            raise ValueError(f"{self.tokens + c} tokens, room for {capacity}")
        self.tokens += c

    def reset(self):
        self.tokens = 0


@alternate("KVCache")
class RingOfFixedSize:
    """Slots are taken in turn, from a start that reset moves on; what is returned is gathered in
    the order of time.
    """

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.shape, self.capacity = (batch, num_kv_heads, d_head), capacity
        self.rings = torch.zeros(
            2, num_layers, batch, num_kv_heads, capacity, d_head, dtype=dtype
        )
        self.start = self.count = 0

    @property
    def length(self):
        return self.count

    def _slots(self, first, last):
        return (torch.arange(first, last) + self.start) % self.capacity

    def append(self, layer, k, v):
        _fits(k, v, self.shape, self.count, self.capacity)
        end = self.count + k.shape[2]
        new = torch.stack([k, v]).to(self.rings.dtype)
        self.rings[:, layer].index_copy_(3, self._slots(self.count, end), new)
        k_all, v_all = self.rings[:, layer].index_select(3, self._slots(0, end))
        return k_all, v_all

    def advance(self, c):
        if self.count + c > self.capacity:
            raise ValueError(f"{self.count + c} tokens, room for {self.capacity}")
        self.count += c

    def reset(self):
        self.start, self.count = (self.start + self.count) % self.capacity, 0


@alternate("KVCache")
class KeepsAListOfChunks:
    """Chunks are kept apart and joined when they are asked for."""

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.shape, self.capacity, self.dtype = (
            (batch, num_kv_heads, d_head),
            capacity,
            dtype,
        )
        self.chunks = [
            torch.zeros(2, batch, num_kv_heads, 0, d_head, dtype=dtype)
            for _ in range(num_layers)
        ]
        self.waiting = {}
        self.total = 0

    @property
    def length(self):
        return self.total

    def append(self, layer, k, v):
        _fits(k, v, self.shape, self.total, self.capacity)
        self.waiting[layer] = torch.cat(
            [self.chunks[layer], torch.stack([k, v]).to(self.dtype)], dim=3
        )
        return self.waiting[layer][0], self.waiting[layer][1]

    def advance(self, c):
        if self.total + c > self.capacity:
            raise ValueError(f"{self.total + c} tokens, room for {self.capacity}")
        self.total += c
        for layer, both in self.waiting.items():
            self.chunks[layer] = both[:, :, :, : self.total]
        self.waiting = {}

    def reset(self):
        self.total, self.waiting = 0, {}
        self.chunks = [chunk[:, :, :, :0] for chunk in self.chunks]


@alternate("KVCache")
class BuffersOfAModule(torch.nn.Module):
    """One buffer for keys and one for values, written by index."""

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        super().__init__()
        room = (num_layers, batch, num_kv_heads, capacity, d_head)
        self.register_buffer("k", torch.zeros(room, dtype=dtype))
        self.register_buffer("v", torch.zeros(room, dtype=dtype))
        self.position = 0

    @property
    def length(self):
        return self.position

    @torch.no_grad()
    def append(self, layer, k, v):
        _, batch, num_kv_heads, capacity, d_head = self.k.shape
        _fits(k, v, (batch, num_kv_heads, d_head), self.position, capacity)
        slots = torch.arange(self.position, self.position + k.shape[2])
        for buffer, new in ((self.k, k), (self.v, v)):
            buffer[layer].index_copy_(2, slots, new.to(buffer.dtype))
        end = self.position + k.shape[2]
        return self.k[layer].narrow(2, 0, end).clone(), self.v[layer].narrow(
            2, 0, end
        ).clone()

    def advance(self, c):
        if self.position + c > self.k.shape[3]:
            raise ValueError(f"{self.position + c} tokens, room for {self.k.shape[3]}")
        self.position += c

    def reset(self):
        self.position = 0
        self.k.zero_()
        self.v.zero_()


@alternate("KVCache")
class ListsOfChunksCutWhenAsked:
    """Every chunk is an entry of its own; what advance did not keep is cut off at the next
    append.
    """

    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.shape, self.capacity, self.dtype = (
            (batch, num_kv_heads, d_head),
            capacity,
            dtype,
        )
        self.layers = [[] for _ in range(num_layers)]
        self.tokens = 0

    @property
    def length(self):
        return self.tokens

    def append(self, layer, k, v):
        _fits(k, v, self.shape, self.tokens, self.capacity)
        kept = [
            (old_k, old_v, start)
            for old_k, old_v, start in self.layers[layer]
            if start < self.tokens
        ]
        kept.append(
            (k.to(self.dtype, copy=True), v.to(self.dtype, copy=True), self.tokens)
        )
        ends = [start for _, _, start in kept[1:]] + [self.tokens + k.shape[2]]
        kept = [
            (old_k[:, :, : end - start], old_v[:, :, : end - start], start)
            for (old_k, old_v, start), end in zip(kept, ends)
        ]
        self.layers[layer] = kept
        return torch.cat([entry[0] for entry in kept], dim=2), torch.cat(
            [entry[1] for entry in kept], dim=2
        )

    def advance(self, c):
        if self.tokens + c > self.capacity:
            raise ValueError(f"{self.tokens + c} tokens, room for {self.capacity}")
        self.tokens += c

    def reset(self):
        self.tokens = 0
        for chunks in self.layers:
            chunks.clear()


# ── decode_step
# ──────────────────────────────────────────────────────────────────────────────────────────────


def _checked(params, ids, cache, mask):
    """Positions [B, c], after the checks."""
    batch, c = ids.shape
    start, vocab_size = cache.length, len(params["embed"])
    wrong = ids[(ids < 0) | (ids >= vocab_size)]
    if len(wrong):
        raise ValueError(
            f"token {wrong[0].item()} is not in a vocabulary of {vocab_size}"
        )
    if mask is None:
        positions = (torch.arange(c) + start).expand(batch, c)
    else:
        if tuple(mask.shape) != (batch, start + c):
            raise ValueError(
                f"mask {tuple(mask.shape)} for {batch} rows and {start + c} columns"
            )
        positions = ragged_positions(mask)[:, -c:]
    if (
        "positions" in params
        and int(positions.max()) + 1 > params["positions"].shape[0]
    ):
        raise ValueError(
            f"{int(positions.max()) + 1} positions in a table of {params['positions'].shape[0]}"
        )
    return positions


@alternate("decode_step")
def writes_attention_with_einsum(
    params, ids, cache, config, mask=None, last_only=False
):
    positions = _checked(params, ids, cache, mask)
    (batch, c), h_kv, d = ids.shape, config.num_kv_heads, config.d_head
    group, window = config.num_heads // h_kv, getattr(cache, "window", None)
    x = torch.nn.functional.embedding(ids, params["embed"])
    if "positions" in params:
        x = x + torch.nn.functional.embedding(positions, params["positions"])
    for i, b in enumerate(params["blocks"]):
        h = layer_norm(x, b["ln1_gamma"], b["ln1_beta"])
        q = split_heads(h @ b["w_q"], config.num_heads)
        k, v = split_heads(h @ b["w_k"], h_kv), split_heads(h @ b["w_v"], h_kv)
        if "positions" not in params:
            q, k = (
                rotary_positions(q, positions, config.theta),
                rotary_positions(k, positions, config.theta),
            )
        k_all, v_all = cache.append(i, k, v)
        n = k_all.shape[2]
        q = q.reshape(batch, h_kv, group * c, d) * d**-0.5
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k_all.to(q.dtype)).view(
            batch, h_kv, group, c, n
        )
        own = torch.arange(n - c, n)[:, None]
        hidden = torch.arange(n) > own
        if window is not None:
            hidden = hidden | (torch.arange(n) <= own - window)
        if mask is not None:
            hidden = hidden | ~mask[:, -n:].view(batch, 1, 1, 1, n)
        scores = scores.masked_fill(hidden, -torch.inf)
        top = scores.amax(dim=-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).min)
        weights = torch.exp(
            (scores - top).float() if scores.dtype == torch.float16 else scores - top
        )
        weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-30)
        y = weights.to(x.dtype).reshape(batch, h_kv, group * c, n) @ v_all.to(x.dtype)
        x = (
            x
            + y.view(batch, config.num_heads, c, d)
            .permute(0, 2, 1, 3)
            .reshape(batch, c, -1)
            @ b["w_o"]
        )
        x = x + mlp(layer_norm(x, b["ln2_gamma"], b["ln2_beta"]), b)
    cache.advance(c)
    x = layer_norm(
        x[:, -1:] if last_only else x, params["lnf_gamma"], params["lnf_beta"]
    )
    return (
        x @ params["unembed"]
        if "unembed" in params
        else torch.einsum("bnd,vd->bnv", x, params["embed"])
    )


@alternate("decode_step")
def uses_the_librarys_attention(params, ids, cache, config, mask=None, last_only=False):
    positions = _checked(params, ids, cache, mask)
    rotary, c = "positions" not in params, ids.shape[1]
    x = (
        params["embed"][ids]
        if rotary
        else params["embed"][ids] + params["positions"][positions]
    )
    dtype = x.dtype
    for i, block in enumerate(params["blocks"]):
        h = torch.nn.functional.layer_norm(
            x, x.shape[-1:], block["ln1_gamma"], block["ln1_beta"]
        )
        heads = {
            name: (h @ block[name]).unflatten(-1, (-1, config.d_head)).movedim(2, 1)
            for name in ("w_q", "w_k", "w_v")
        }
        if rotary:
            heads |= {
                name: rotary_positions(heads[name], positions, config.theta)
                for name in ("w_q", "w_k")
            }
        k, v = cache.append(i, heads["w_k"], heads["w_v"])
        n = k.shape[2]
        allowed = causal_mask(c, n, getattr(cache, "window", None))[None, None]
        if mask is not None:
            allowed = allowed & mask[:, None, None, n * -1 :]
        # a padded query may look anywhere: nobody reads it
        allowed = allowed | ~allowed.any(dim=-1, keepdim=True)
        group = config.num_heads // config.num_kv_heads
        q = heads["w_q"].reshape(
            len(ids), config.num_kv_heads, group * c, config.d_head
        )
        y = torch.nn.functional.scaled_dot_product_attention(
            q, k.to(dtype), v.to(dtype), allowed.repeat(1, 1, group, 1)
        )
        x = (
            x
            + merge_heads(y.reshape(len(ids), config.num_heads, c, config.d_head))
            @ block["w_o"]
        )
        h = torch.nn.functional.layer_norm(
            x, x.shape[-1:], block["ln2_gamma"], block["ln2_beta"]
        )
        x = x + torch.relu(h @ block["w1"] + block["b1"]) @ block["w2"] + block["b2"]
    cache.advance(c)
    if last_only:
        x = x.narrow(1, c - 1, 1)
    return torch.nn.functional.layer_norm(
        x, x.shape[-1:], params["lnf_gamma"], params["lnf_beta"]
    ) @ unembedding(params)


def _one_layer(x, block, positions, attend, config, rotary):
    h = layer_norm(x, block["ln1_gamma"], block["ln1_beta"])
    q, k, v = (h @ block[name] for name in ("w_q", "w_k", "w_v"))
    q, k, v = (
        split_heads(q, config.num_heads),
        split_heads(k, config.num_kv_heads),
        split_heads(v, config.num_kv_heads),
    )
    if rotary:
        q, k = (
            rotary_positions(q, positions, config.theta),
            rotary_positions(k, positions, config.theta),
        )
    x = x + merge_heads(attend(q, k, v)) @ block["w_o"]
    return x + mlp(layer_norm(x, block["ln2_gamma"], block["ln2_beta"]), block)


@alternate("decode_step")
def gives_each_layer_a_function_that_attends(
    params, ids, cache, config, mask=None, last_only=False
):
    positions = _checked(params, ids, cache, mask)
    start, c, window = cache.length, ids.shape[1], getattr(cache, "window", None)
    rotary = "positions" not in params
    x = params["embed"].index_select(0, ids.flatten()).view(*ids.shape, -1)
    if not rotary:
        x = x + params["positions"][positions]

    def attend_in(layer):
        def attend(q, k, v):
            k, v = cache.append(layer=layer, k=k, v=v)
            keys = torch.arange(
                start + c - k.shape[2], start + c
            )  # columns of the whole text
            queries = torch.arange(start, start + c)[:, None]
            allowed = keys <= queries
            if window is not None:
                allowed = allowed & (queries - keys < window)
            if mask is not None:
                allowed = allowed & mask[:, keys][:, None, None]
            return grouped_attention(q, k, v, allowed)

        return attend

    for layer, block in enumerate(params["blocks"]):
        x = _one_layer(x, block, positions, attend_in(layer), config, rotary)
    cache.advance(c=c)
    x = layer_norm(x, params["lnf_gamma"], params["lnf_beta"])
    return (x[:, [-1]] if last_only else x) @ unembedding(params)


# ── prefill
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("prefill")
def asserts_with_an_error_of_its_own(params, prompt, cache, config, mask=None):
    if cache.length:
        raise ValueError(f"not empty: {cache.length}")
    return decode_step(params, ids=prompt, cache=cache, config=config, mask=mask)


@alternate("prefill")
def makes_a_mask_of_its_own(params, prompt, cache, config, mask=None):
    if cache.length > 0:
        raise ValueError(f"a cache of {cache.length} tokens cannot take a prompt")
    mask = torch.ones(prompt.shape, dtype=torch.bool) if mask is None else mask
    return decode_step(params, prompt, cache, config, mask)


@alternate("prefill")
def compares_and_returns(params, prompt, cache, config, mask=None):
    held = cache.length
    if held == 0:
        return decode_step(params, prompt, cache, config, mask=mask, last_only=False)
    raise ValueError(f"reset the cache first: {held} tokens are in it")


# ── generate_cached
# ──────────────────────────────────────────────────────────────────────────────────────────


def _sizes(prompt, num_new):
    if num_new < 0:
        raise ValueError(f"num_new = {num_new}")
    if prompt.shape[1] == 0:
        raise ValueError("an empty prompt")
    return prompt.shape


def _cache_for(params, config, batch, capacity):
    return KVCache(
        num_layers=config.num_layers, batch=batch, num_kv_heads=config.num_kv_heads,
        d_head=config.d_head,
        capacity=capacity, dtype=params["embed"].dtype,
    )  # fmt: skip


@alternate("generate_cached")
def writes_into_a_full_size_answer(params, prompt, num_new, config):
    batch, n = _sizes(prompt, num_new)
    ids = torch.zeros(batch, n + num_new, dtype=torch.int64)
    ids[:, :n] = prompt
    cache = _cache_for(params, config, batch, max(1, n + num_new - 1))
    done = 0
    for end in range(n, n + num_new):
        logits = decode_step(params, ids[:, done:end], cache, config, last_only=True)
        ids[:, end] = logits[:, 0].argmax(dim=-1)
        done = end
    return ids


@alternate("generate_cached")
def collects_a_list_of_columns(params, prompt, num_new, config):
    batch, n = _sizes(prompt, num_new)
    cache, columns = _cache_for(params, config, batch, n + num_new), [prompt]
    while len(columns) <= num_new:
        logits = decode_step(params, columns[-1], cache, config, None, True)
        columns.append(logits.squeeze(1).max(dim=-1, keepdim=True).indices)
    return torch.cat(columns, dim=1)


@alternate("generate_cached")
def reads_the_prompt_in_two_parts(params, prompt, num_new, config):
    batch, n = _sizes(prompt, num_new)
    if num_new == 0:
        return prompt.clone()
    cache = _cache_for(params, config, batch, n + num_new)
    if n > 1:
        decode_step(
            params,
            prompt[:, :-1],
            cache,
            config | {} if isinstance(config, dict) else config,
            last_only=True,
        )
    ids, newest = prompt.clone(), prompt[:, -1:]
    for _ in range(num_new):
        newest = torch.topk(
            decode_step(params, newest, cache, config)[:, -1], 1
        ).indices
        ids = torch.hstack([ids, newest])
    return ids


@alternate("generate_cached")
def one_row_after_the_other(params, prompt, num_new, config):
    _sizes(prompt, num_new)
    rows = []
    for row in prompt.split(1):
        cache, chunk, text = (
            _cache_for(params, config, 1, row.shape[1] + num_new),
            row,
            row.tolist()[0],
        )
        for _ in range(num_new):
            token = int(
                decode_step(params, chunk, cache, config, last_only=True).argmax()
            )
            text.append(token)
            chunk = torch.tensor([[token]])
        rows.append(text)
    return torch.tensor(rows)


# ── ragged_positions
# ─────────────────────────────────────────────────────────────────────────────────────────


def _of_two_axes(mask):
    if mask.ndim != 2:
        raise ValueError(f"two axes are needed, got {tuple(mask.shape)}")


@alternate("ragged_positions")
def multiplies_by_the_mask(mask):
    _of_two_axes(mask)
    return (torch.cumsum(mask, dim=-1) - 1) * mask


@alternate("ragged_positions")
def loops_over_the_columns(mask):
    _of_two_axes(mask)
    positions, count = (
        torch.zeros(mask.shape, dtype=torch.int64),
        torch.zeros(len(mask), dtype=torch.int64),
    )
    for column in range(mask.shape[1]):
        positions[:, column] = torch.where(mask[:, column], count, 0)
        count = count + mask[:, column]
    return positions


@alternate("ragged_positions")
def multiplies_by_a_triangle(mask):
    _of_two_axes(mask)
    n = mask.shape[1]
    before = torch.ones(n, n, dtype=torch.int64).triu(
        diagonal=1
    )  # [j, i]: j stands before i
    return torch.where(
        mask, mask.long() @ before, torch.zeros_like(mask, dtype=torch.int64)
    )


# ── kv_cache_bytes
# ───────────────────────────────────────────────────────────────────────────────────────────


def _at_least_one(**sizes):
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} = {size}")


@alternate("kv_cache_bytes")
def multiplies_a_list(config, n, batch, bytes_per_element):
    _at_least_one(n=n, batch=batch, bytes_per_element=bytes_per_element)
    return math.prod(
        [
            2,
            config.num_layers,
            batch,
            config.num_kv_heads,
            n,
            config.d_head,
            bytes_per_element,
        ]
    )


@alternate("kv_cache_bytes")
def adds_up_layer_by_layer(config, n, batch, bytes_per_element):
    _at_least_one(n=n, batch=batch, bytes_per_element=bytes_per_element)
    keys = values = batch * n * config.num_kv_heads * config.d_head * bytes_per_element
    return sum(keys + values for _ in range(config.num_layers))


@alternate("kv_cache_bytes")
def measures_an_empty_tensor(config, n, batch, bytes_per_element):
    _at_least_one(n=n, batch=batch, bytes_per_element=bytes_per_element)
    one = torch.empty(
        2,
        config.num_layers,
        config.num_kv_heads,
        config.d_head,
        dtype=torch.uint8,
        device="meta",
    )
    return one.numel() * n * batch * bytes_per_element


# ── SlidingWindowCache
# ───────────────────────────────────────────────────────────────────────────────────────


@alternate("SlidingWindowCache")
class RingOfTheNewest:
    """W - 1 slots; token p lies in slot p mod (W - 1). Slots are written in advance, from the
    chunks that wait.
    """

    def __init__(
        self, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window
    ):
        if window < 1:
            raise ValueError(f"window = {window}")
        self.window, self.capacity, self.shape = (
            window,
            capacity,
            (batch, num_kv_heads, d_head),
        )
        self.ring = torch.zeros(
            num_layers, 2, batch, num_kv_heads, window - 1, d_head, dtype=dtype
        )
        self.waiting, self._seen = {}, 0

    length = property(lambda self: self._seen)

    def append(self, layer, k, v):
        _fits(k, v, self.shape, self._seen, self.capacity)
        self.waiting[layer] = torch.stack([k, v]).to(self.ring.dtype)
        held = min(self._seen, self.window - 1)
        slots = torch.arange(self._seen - held, self._seen) % max(1, self.window - 1)
        past = self.ring[layer].index_select(3, slots)  # in the order of time
        k_all, v_all = torch.cat([past, self.waiting[layer]], dim=3)
        return k_all, v_all

    def advance(self, c):
        if self._seen + c > self.capacity:
            raise ValueError(f"{self._seen + c} tokens, room for {self.capacity}")
        kept = min(c, self.window - 1)
        if kept:
            slots = torch.arange(self._seen + c - kept, self._seen + c) % (
                self.window - 1
            )
            for layer, chunk in self.waiting.items():
                self.ring[layer].index_copy_(3, slots, chunk[:, :, :, c - kept : c])
        self._seen, self.waiting = self._seen + c, {}

    def reset(self):
        self._seen, self.waiting = 0, {}


@alternate("SlidingWindowCache")
class ListOfSingleTokens:
    """A list of the newest tokens, one tensor each."""

    def __init__(
        self, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window
    ):
        if window <= 0:
            raise ValueError(
                f"a token sees itself at least, and the window is {window}"
            )
        self.window, self.capacity, self.dtype = window, capacity, dtype
        self.shape = (batch, num_kv_heads, d_head)
        self.past = [[] for _ in range(num_layers)]
        self.new = [[] for _ in range(num_layers)]
        self.total = 0

    @property
    def length(self):
        return self.total

    def append(self, layer, k, v):
        _fits(k, v, self.shape, self.total, self.capacity)
        self.new[layer] = list(torch.stack([k, v]).to(self.dtype).unbind(dim=3))
        k_all, v_all = torch.stack([*self.past[layer], *self.new[layer]], dim=3)
        return k_all, v_all

    def advance(self, c):
        if self.total + c > self.capacity:
            raise ValueError(f"{self.total + c} tokens, room for {self.capacity}")
        self.total += c
        for layer, new in enumerate(self.new):
            tokens = self.past[layer] + new[:c]
            kept = tokens[max(0, len(tokens) - self.window + 1) :]
            # not slices, which keep the whole chunk
            self.past[layer] = [token.clone() for token in kept]

    def reset(self):
        self.total = 0
        self.past = [[] for _ in self.past]
        self.new = [[] for _ in self.new]


@alternate("SlidingWindowCache")
class ShiftsAFixedBuffer:
    """W - 1 slots, the newest on the right; advance shifts by making a new buffer."""

    def __init__(
        self, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window
    ):
        if window < 1:
            raise ValueError(f"window {window}")
        self.window, self.capacity = window, capacity
        self.buffers = [
            torch.zeros(2, batch, num_kv_heads, window - 1, d_head, dtype=dtype)
            for _ in range(num_layers)
        ]
        self.chunks = {}
        self.steps = []

    @property
    def length(self):
        return sum(self.steps)

    def append(self, layer, k, v):
        buffer = self.buffers[layer]
        _fits(
            k,
            v,
            (buffer.shape[1], buffer.shape[2], buffer.shape[4]),
            self.length,
            self.capacity,
        )
        self.chunks[layer] = torch.stack([k.to(buffer.dtype), v.to(buffer.dtype)])
        first = max(0, self.window - 1 - self.length)
        k_all, v_all = torch.cat([buffer[:, :, :, first:], self.chunks[layer]], dim=3)
        return k_all, v_all

    def advance(self, c):
        if self.length + c > self.capacity:
            raise ValueError(f"{self.length + c} tokens, room for {self.capacity}")
        for layer, chunk in self.chunks.items():
            self.buffers[layer] = torch.cat(
                [self.buffers[layer], chunk[:, :, :, :c]], dim=3
            )[:, :, :, c:].clone()
        self.steps.append(c)

    def reset(self):
        self.steps, self.chunks = [], {}


# ── speculative_accept
# ───────────────────────────────────────────────────────────────────────────────────────


def _all_fit(p, q, drafted, u):
    if p.shape != q.shape:
        raise ValueError(f"p {tuple(p.shape)} and q {tuple(q.shape)}")
    if drafted.shape != (len(p),) or u.shape != (len(p),):
        raise ValueError(
            f"{len(p)} places, drafted {tuple(drafted.shape)}, u {tuple(u.shape)}"
        )


@alternate("speculative_accept")
def loops_until_the_first_rejection(p, q, drafted, u):
    _all_fit(p, q, drafted, u)
    for i, token in enumerate(drafted.tolist()):
        if u[i] * q[i, token] > p[i, token]:
            residual = torch.relu(p[i] - q[i])
            return i, residual / residual.sum()
    return len(p), torch.zeros(p.shape[1], dtype=p.dtype)


@alternate("speculative_accept")
def finds_the_first_rejection_with_gather(p, q, drafted, u):
    _all_fit(p, q, drafted, u)
    p_x = p.gather(1, drafted[:, None])[:, 0]
    q_x = q.gather(1, drafted[:, None])[:, 0]
    rejected = torch.nonzero(u > p_x / q_x)[:, 0].tolist()
    if not rejected:
        return [p.shape[0], p.new_zeros(p.shape[1])]
    first = rejected[0]
    missing = torch.where(p[first] > q[first], p[first] - q[first], 0.0)
    return [first, missing / missing.sum()]


@alternate("speculative_accept")
def subtracts_the_common_part(p, q, drafted, u):
    _all_fit(p, q, drafted, u)
    at = torch.nn.functional.one_hot(drafted, p.shape[1]).to(p.dtype)
    passed = (u * (q * at).sum(dim=1) <= (p * at).sum(dim=1)).tolist() + [False]
    kept = passed.index(False)
    if kept == len(p):
        return kept, 0 * p[0]
    common = torch.minimum(p[kept], q[kept])
    return kept, (p[kept] - common) / (1 - common.sum())


# ── unheard_query
# ────────────────────────────────────────────────────────────────────────────────────────────


def _moved(q, k, query):
    root = math.sqrt(q.shape[1])
    return (
        (
            torch.softmax(k @ query / root, dim=0)
            - torch.softmax(k @ q[-1] / root, dim=0)
        )
        .abs()
        .max()
    )


@alternate("unheard_query")
def tries_all_keys_and_both_ways(q, k):
    last, best = k[-1], None
    for key in k[:-1]:
        side = key - (key @ last) / (last @ last) * last
        if side.norm() > 1e-8 * key.norm():
            for sign in (300.0, -300.0):
                query = q[-1] + sign * math.sqrt(q.shape[1]) * side / side.norm() ** 2
                if best is None or _moved(q, k, query) > _moved(q, k, best):
                    best = query
    if best is None:
        raise ValueError(f"{len(q)} tokens on one line")
    return best


@alternate("unheard_query")
def takes_the_complement_from_an_svd(q, k):
    if len(k) < 2 or torch.linalg.matrix_rank(k) < 2:
        raise ValueError(f"keys {tuple(k.shape)} of rank below 2")
    # [d - 1, d], all square to the last key
    basis = torch.linalg.svd(k[-1:], full_matrices=True).Vh[1:]
    direction = (
        torch.linalg.svd(k @ basis.T).Vh[0] @ basis
    )  # the one that the keys notice most
    reach = 2000 * math.sqrt(q.shape[1]) / (k @ direction).abs().max()
    return max(
        (q[-1] + reach * direction, q[-1] - reach * direction),
        key=lambda t: float(_moved(q, k, t)),
    )


@alternate("unheard_query")
def solves_for_wanted_scores(q, k):
    last = k[-1]
    across = k - torch.outer(k @ last / (last @ last), last)  # [N, d]
    lengths = across.norm(dim=1)
    if len(k) < 2 or lengths.max() < 1e-9 * k.norm():
        raise ValueError(f"{len(k)} tokens: no direction is left")
    unit = across[lengths.argmax()] / lengths.max()
    for size in (10.0, -10.0, 1000.0, -1000.0):
        query = q[-1] + unit * size * math.sqrt(q.shape[1]) / lengths.max()
        if _moved(q, k, query) >= 0.2:
            break
    return query


@alternate("speculative_accept")
def stops_at_the_first_rejection(p, q, drafted, u):
    places = p.shape[0]
    if (
        p.shape != q.shape
        or tuple(drafted.shape) != (places,)
        or tuple(u.shape) != (places,)
    ):
        raise ValueError(
            f"p {tuple(p.shape)}, q {tuple(q.shape)}, drafted {tuple(drafted.shape)}, u "
            f"{tuple(u.shape)}"
        )
    for place, (token, throw) in enumerate(zip(drafted.tolist(), u.tolist())):
        if throw * q[place, token].item() > p[place, token].item():
            missing = torch.maximum(p[place] - q[place], torch.zeros_like(p[place]))
            return place, missing / missing.sum()
    return places, torch.zeros_like(p[0])


@alternate("unheard_query")
def moves_in_the_null_space_of_the_last_key(q, k):
    n, d = q.shape
    if n < 2 or d < 2:
        raise ValueError(f"{n} tokens of size {d}")
    unseen = torch.linalg.svd(k[-1:], full_matrices=True).Vh[1:]  # [d - 1, d]
    others = k[:-1] @ unseen.T  # [n - 1, d - 1]
    if others.abs().max() < 1e-9 * k.abs().max():
        raise ValueError("all keys lie on one line")
    farthest = others[others.norm(dim=1).argmax()]
    way = unseen.T @ (farthest / (farthest @ farthest)) * (500 * d**0.5)
    before = torch.softmax(k @ q[-1] / d**0.5, dim=0)
    moved = [
        (torch.softmax(k @ (q[-1] + sign * way) / d**0.5, dim=0) - before).abs().max()
        for sign in (1, -1)
    ]
    return q[-1] + (way if moved[0] >= moved[1] else -way)
