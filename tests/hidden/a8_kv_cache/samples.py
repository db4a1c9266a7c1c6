"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math

import torch
import torch.nn.functional as F

from autograder.suite import alternate, sample

# ── KVCache
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "KVCache", function="KVCache", deserves=("AdvancesInEveryLayer", "TakesAnyShape")
)
class CountsWhereItWrites:
    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.k = torch.zeros(
            num_layers, batch, num_kv_heads, capacity, d_head, dtype=dtype
        )
        self.v = torch.zeros_like(self.k)
        self.max = capacity
        self.n = 0

    @property
    def length(self):
        return self.n

    def append(self, layer, k, v):
        new = self.n + k.size(2)
        if new > self.max:
            raise ValueError(f"{new} > {self.max}")
        self.k[layer, :, :, self.n : new] = k
        self.v[layer, :, :, self.n : new] = v
        self.n = new
        return self.k[layer, :, :, :new].clone(), self.v[layer, :, :, :new].clone()

    def advance(self, c):
        if self.n > self.max:
            raise ValueError(f"{self.n} > {self.max}")

    def reset(self):
        self.n = 0


@sample(
    "KVCache", function="KVCache", deserves=("HandsOutViewsThatChange", "TakesAnyShape")
)
class OneBigBuffer:
    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.buffer = torch.empty(
            2, num_layers, batch, num_kv_heads, capacity, d_head, dtype=dtype
        )
        self.length = 0

    def append(self, layer, k, v):
        upto = self.length + k.shape[-2]
        if upto > self.buffer.shape[4]:
            raise ValueError(f"{upto} tokens but room for {self.buffer.shape[4]}")
        for which, new in enumerate((k, v)):
            self.buffer[which, layer, :, :, self.length : upto].copy_(new)
        return self.buffer[0, layer, :, :, :upto], self.buffer[1, layer, :, :, :upto]

    def advance(self, c):
        if self.length + c > self.buffer.shape[4]:
            raise ValueError(
                f"{self.length + c} tokens but room for {self.buffer.shape[4]}"
            )
        self.length = self.length + c

    def reset(self):
        self.length = 0


@sample("KVCache", function="KVCache", deserves="SecondAppendAddsInstead")
class GrowsAList:
    def __init__(self, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
        self.shape = (batch, num_kv_heads, d_head)
        self.capacity, self.dtype, self.num_layers = capacity, dtype, num_layers
        self.reset()

    def reset(self):
        self.past = [([], []) for _ in range(self.num_layers)]
        self.length = 0

    def append(self, layer, k, v):
        b, h, c, d = k.shape
        if (b, h, d) != self.shape or k.shape != v.shape:
            raise ValueError(f"{tuple(k.shape)}, {tuple(v.shape)} for {self.shape}")
        if self.length + c > self.capacity:
            raise ValueError(
                f"{self.length} + {c} = {self.length + c} > {self.capacity}"
            )
        ks, vs = self.past[layer]
        ks.append(k.to(self.dtype, copy=True))
        vs.append(v.to(self.dtype, copy=True))
        return torch.cat(ks, dim=2), torch.cat(vs, dim=2)

    def advance(self, c):
        if self.length + c > self.capacity:
            raise ValueError(
                f"{self.length} + {c} = {self.length + c} > {self.capacity}"
            )
        self.length += c


# ── ragged_positions
# ─────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "ragged_positions", deserves=("counts_the_token_itself", "takes_any_number_of_axes")
)
def cumulative_sum_of_the_mask(mask):
    return torch.cumsum(mask.int(), dim=1) * mask


@sample("ragged_positions", deserves=("clamps_at_zero", "takes_any_number_of_axes"))
def huggingface_positions(mask):
    position_ids = mask.long().cumsum(1) - 1
    position_ids[position_ids < 0] = 0
    return position_ids


@sample("ragged_positions", deserves="counts_columns")
def arange_for_every_row(mask):
    if mask.ndim != 2:
        raise ValueError(f"{tuple(mask.shape)}")
    out = torch.zeros(mask.shape, dtype=torch.int64)
    for b in range(mask.size(0)):
        for n in range(mask.size(1)):
            if mask[b, n]:
                out[b, n] = n
    return out


# ── decode_step, prefill, generate_cached
# ────────────────────────────────────────────────────────────────────


@sample("decode_step", deserves=("triangle_at_the_top_left", "takes_any_id"))
def square_triangle(params, ids, cache, config, mask=None, last_only=False):
    B, c = ids.size()
    t0 = cache.length
    if mask is None:
        pos = t0 + torch.arange(c)
    else:
        if tuple(mask.shape) != (B, t0 + c):
            raise ValueError(f"{tuple(mask.shape)} is not {(B, t0 + c)}")
        pos = ragged_positions(mask)[:, t0 : t0 + c]
    if "positions" in params and int(pos.max()) + 1 > params["positions"].size(0):
        raise ValueError(f"{int(pos.max()) + 1} > {params['positions'].size(0)}")
    h = embed(ids, pos, params)
    for i, blk in enumerate(params["blocks"]):
        q, k, v = project(h, pos, blk, params, config)
        K, V = cache.append(i, k, v)
        see = torch.tril(torch.ones(c, K.size(2), dtype=torch.bool))
        if mask is not None:
            see = see & mask[:, None, None, mask.size(1) - K.size(2) :]
        h = finish_block(h, grouped_attention(q, K, V, see), blk)
    cache.advance(c)
    return to_logits(h if not last_only else h[:, -1:, :], params)


@sample(
    "decode_step",
    deserves=("positions_restart_every_step", "takes_any_id", "ignores_last_only"),
)
def forgets_what_the_cache_holds(
    params, ids, cache, config, mask=None, last_only=False
):
    n_new = ids.shape[1]
    p = torch.arange(n_new)
    if mask is not None:
        if mask.shape[0] != ids.shape[0] or mask.shape[1] != cache.length + n_new:
            raise ValueError(
                f"mask {tuple(mask.shape)}, wanted {(ids.shape[0], cache.length + n_new)}"
            )
        p = ragged_positions(mask)[:, -n_new:]
    if "positions" in params and p.max() >= params["positions"].shape[0]:
        raise ValueError(
            f"{p.max().item() + 1} positions, table of {params['positions'].shape[0]}"
        )
    x = embed(ids, p, params)
    for layer in range(len(params["blocks"])):
        block = params["blocks"][layer]
        q, k, v = project(x, p, block, params, config)
        k_all, v_all = cache.append(layer, k, v)
        m = causal_mask(n_new, k_all.shape[2], getattr(cache, "window", None))
        if mask is not None:
            m = torch.logical_and(
                m, mask[:, -k_all.shape[2] :].unsqueeze(1).unsqueeze(1)
            )
        x = finish_block(x, grouped_attention(q, k_all, v_all, m), block)
    cache.advance(n_new)
    return to_logits(x, params)


@sample("decode_step", deserves=("advances_once_a_layer", "takes_any_id"))
def advances_inside_the_loop(params, ids, cache, config, mask=None, last_only=False):
    start, c = cache.length, ids.shape[1]
    if mask is not None and list(mask.shape) != [len(ids), start + c]:
        raise ValueError(f"{list(mask.shape)} instead of {[len(ids), start + c]}")
    where = (
        torch.arange(start, start + c)
        if mask is None
        else ragged_positions(mask)[:, start:]
    )
    if "positions" in params and len(params["positions"]) <= where.max():
        raise ValueError(f"{int(where.max() + 1)} and {len(params['positions'])}")
    x = embed(ids, where, params)
    for layer, block in enumerate(params["blocks"]):
        q, k, v = project(x, where, block, params, config)
        k, v = cache.append(layer, k, v)
        cache.advance(c)
        visible = causal_mask(c, k.shape[2], getattr(cache, "window", None))
        if mask is not None:
            visible = visible & mask[:, None, None, -k.shape[2] :]
        x = finish_block(x, grouped_attention(q, k, v, visible), block)
    return to_logits(x[:, -1:] if last_only else x, params)


@sample("prefill", deserves=("returns_the_last_logits", "takes_a_cache_in_use"))
def what_generation_needs(params, prompt, cache, config, mask=None):
    return decode_step(params, prompt, cache, config, mask=mask, last_only=True)


@sample("prefill", deserves="drops_the_mask")
def three_arguments_are_enough(params, prompt, cache, config, mask=None):
    if cache.length > 0:
        raise ValueError(f"length {cache.length}")
    out = decode_step(params, prompt, cache, config)
    return out


@sample("generate_cached", deserves=("recomputes_everything", "checks_nothing"))
def cache_that_nobody_uses(params, prompt, num_new, config):
    B, N = prompt.shape
    KVCache(
        config.num_layers,
        B,
        config.num_kv_heads,
        config.d_head,
        N + max(num_new, 0),
        params["embed"].dtype,
    )
    tokens = prompt
    for _ in range(num_new):
        nxt = decoder_lm(tokens, params, config)[:, -1, :].argmax(-1)
        tokens = torch.cat((tokens, nxt.unsqueeze(1)), 1)
    return tokens


@sample("generate_cached", deserves="returns_only_what_is_new")
def collects_the_new_tokens(params, prompt, num_new, config):
    if num_new < 0:
        raise ValueError(f"num_new={num_new}")
    if prompt.shape[1] == 0:
        raise ValueError("a prompt of 0 tokens")
    cache = KVCache(
        config.num_layers,
        len(prompt),
        config.num_kv_heads,
        config.d_head,
        prompt.shape[1] + num_new,
        params["embed"].dtype,
    )
    result, feed_in = [prompt[:, :0]], prompt
    while len(result) <= num_new:
        feed_in = torch.argmax(
            decode_step(params, feed_in, cache, config, last_only=True)[:, 0], 1
        )[:, None]
        result.append(feed_in)
    return torch.cat(result, 1)


# ── kv_cache_bytes
# ───────────────────────────────────────────────────────────────────────────────────────────


@sample("kv_cache_bytes", deserves=("counts_query_heads", "accepts_any_size"))
def heads_of_the_queries(config, n, batch, bytes_per_element):
    per_layer = batch * n * config.num_heads * config.d_head
    return config.num_layers * (per_layer + per_layer) * bytes_per_element


@sample("kv_cache_bytes", deserves="keys_without_values")
def one_tensor_a_layer(config, n, batch, bytes_per_element):
    for size in (n, batch, bytes_per_element):
        if size < 1:
            raise ValueError(f"{size} < 1")
    return math.prod(
        [
            config.num_layers,
            batch,
            config.num_kv_heads,
            n,
            config.d_head,
            bytes_per_element,
        ]
    )


# ── SlidingWindowCache
# ───────────────────────────────────────────────────────────────────────────────────────


@sample(
    "SlidingWindowCache",
    function="SlidingWindowCache",
    deserves=("KeepsAWholeWindow", "AcceptsAnyWindow"),
)
class LastWindowTokens:
    def __init__(
        self, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window
    ):
        self.window, self.capacity, self.dtype = window, capacity, dtype
        self.what = (batch, num_kv_heads, d_head)
        self.layers = num_layers
        self.reset()

    def reset(self):
        b, h, d = self.what
        self.old = {
            i: torch.zeros(2, b, h, 0, d, dtype=self.dtype) for i in range(self.layers)
        }
        self.new = dict(self.old)
        self.length = 0

    def append(self, layer, k, v):
        b, h, d = self.what
        c = k.shape[2]
        if tuple(k.shape) != (b, h, c, d) or tuple(v.shape) != (b, h, c, d):
            raise ValueError(f"{tuple(k.shape)} {tuple(v.shape)} for {self.what}")
        if self.length + c > self.capacity:
            raise ValueError(f"{self.length + c} > {self.capacity}")
        both = torch.stack((k, v)).to(self.dtype)
        self.new[layer] = torch.cat((self.old[layer], both), dim=3)
        return self.new[layer][0], self.new[layer][1]

    def advance(self, c):
        if self.length + c > self.capacity:
            raise ValueError(f"{self.length + c} > {self.capacity}")
        for i in range(self.layers):
            end = self.old[i].shape[3] + c
            self.old[i] = self.new[i][:, :, :, max(0, end - self.window) : end].clone()
        self.length += c


@sample(
    "SlidingWindowCache", function="SlidingWindowCache", deserves="LengthIsWhatIsHeld"
)
class LengthOfTheTensors:
    def __init__(
        self, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window
    ):
        if window <= 0:
            raise ValueError(f"window {window}")
        self.window = window
        self.empty = torch.zeros(batch, num_kv_heads, 0, d_head, dtype=dtype)
        self.n_layers, self.capacity = num_layers, capacity
        self.reset()

    def reset(self):
        self.total = 0
        self.ks = [self.empty for _ in range(self.n_layers)]
        self.vs = [self.empty for _ in range(self.n_layers)]
        self.pending = [(self.empty, self.empty)] * self.n_layers

    @property
    def length(self):
        return self.ks[0].size(2)

    def append(self, layer, k, v):
        if (
            k.shape != v.shape
            or k.shape[:2] != self.empty.shape[:2]
            or k.shape[3] != self.empty.shape[3]
        ):
            raise ValueError(
                f"{tuple(k.shape)} {tuple(v.shape)} {tuple(self.empty.shape)}"
            )
        if self.total + k.size(2) > self.capacity:
            raise ValueError(f"{self.total + k.size(2)} in {self.capacity}")
        k_all = torch.cat([self.ks[layer], k.to(self.empty.dtype)], 2)
        v_all = torch.cat([self.vs[layer], v.to(self.empty.dtype)], 2)
        self.pending[layer] = (k_all, v_all)
        return k_all, v_all

    def advance(self, c):
        if self.total + c > self.capacity:
            raise ValueError(f"{self.total + c} in {self.capacity}")
        last = self.length + c
        first = last - min(last, self.window - 1)
        for i, (k, v) in enumerate(self.pending):
            self.ks[i], self.vs[i] = (
                k[:, :, first:last].clone(),
                v[:, :, first:last].clone(),
            )
        self.total += c


# ── speculative_accept, unheard_query
# ────────────────────────────────────────────────────────────────────────


@sample("speculative_accept", deserves=("compares_u_with_p_alone", "takes_any_shapes"))
def loops_until_u_is_larger(p, q, drafted, u):
    n = 0
    for i, token in enumerate(drafted.tolist()):
        if u[i] > p[i, token]:
            break
        n += 1
    if n == drafted.numel():
        return n, torch.zeros(p.size(1), dtype=p.dtype)
    r = F.relu(p[n] - q[n])
    return n, r / r.sum()


@sample(
    "speculative_accept",
    deserves=("residual_of_absolute_differences", "takes_any_shapes"),
)
def distance_of_the_distributions(p, q, drafted, u):
    ratio = p.gather(1, drafted[:, None]).squeeze(1) / q.gather(
        1, drafted[:, None]
    ).squeeze(1)
    rejected = torch.nonzero(u > ratio).flatten()
    if rejected.numel() == 0:
        return len(drafted), torch.zeros_like(p[0])
    first = rejected[0].item()
    rest = torch.abs(p[first] - q[first])
    return first, rest / torch.sum(rest)


@sample("unheard_query", deserves=("makes_the_query_longer", "answers_always"))
def ten_times_the_query(q, k):
    return q[len(q) - 1] * 10.0


# ── right answers
# ────────────────────────────────────────────────────────────────────────────────────────────


@alternate("ragged_positions")
def counts_row_by_row(mask):
    if mask.dim() != 2:
        raise ValueError(f"{tuple(mask.shape)} has {mask.dim()} axes")
    rows = []
    for row in mask.tolist():
        seen, positions = 0, []
        for real in row:
            positions.append(seen if real else 0)
            seen += int(real)
        rows.append(positions)
    return torch.tensor(rows, dtype=torch.int64).reshape(mask.shape)


@alternate("speculative_accept")
def loops_over_the_places(p, q, drafted, u):
    if (
        p.shape != q.shape
        or tuple(drafted.shape) != (len(p),)
        or tuple(u.shape) != (len(p),)
    ):
        raise ValueError(
            f"{tuple(p.shape)} {tuple(q.shape)} {tuple(drafted.shape)} {tuple(u.shape)}"
        )
    for i, x in enumerate(drafted.tolist()):
        if float(u[i]) * float(q[i, x]) > float(p[i, x]):
            left = torch.maximum(p[i] - q[i], torch.zeros_like(p[i]))
            return i, left / left.sum()
    return len(drafted), torch.zeros_like(p[0])
