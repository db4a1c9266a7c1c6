"""Right answers in other words: nothing of the suite may ask for the wording."""

import math
from collections import defaultdict

import torch

from autograder.suite import alternate

# ── BlockPool
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("BlockPool")
class SetsAndDictionary:
    def __init__(self, num_blocks):
        self.available = set(range(num_blocks))
        self.ref_counts = {}

    @property
    def num_free(self):
        return len(self.available)

    def holders(self, block):
        return self.ref_counts.get(block, 0)

    def allocate(self, n):
        if n > len(self.available):
            raise ValueError(f"cannot lend {n} blocks, only {len(self.available)} left")
        chosen = sorted(self.available)[:n]
        self.available -= set(chosen)
        self.ref_counts.update(dict.fromkeys(chosen, 1))
        return chosen

    def share(self, blocks):
        unknown = [b for b in blocks if b not in self.ref_counts]
        if unknown:
            raise ValueError(f"blocks {unknown} are free")
        for b in blocks:
            self.ref_counts[b] += 1

    def release(self, blocks):
        unknown = [b for b in blocks if b not in self.ref_counts]
        if unknown:
            raise ValueError(f"blocks {unknown} are free")
        for b in blocks:
            self.ref_counts[b] -= 1
            if self.ref_counts[b] == 0:
                del self.ref_counts[b]
                self.available.add(b)


@alternate("BlockPool")
class CountsInATensor:
    def __init__(self, num_blocks):
        self.refs = torch.zeros(num_blocks, dtype=torch.int64)

    @property
    def num_free(self):
        return int((self.refs == 0).sum())

    def holders(self, block):
        return int(self.refs[block])

    def allocate(self, n):
        free = (self.refs == 0).nonzero().flatten()
        if free.numel() < n:
            raise ValueError(f"{n} > {free.numel()}")
        self.refs[free[:n]] = 1
        return free[:n].tolist()

    def _held(self, blocks):
        for b in blocks:
            if self.refs[b] < 1:
                raise ValueError(f"nobody holds {b}")

    def share(self, blocks):
        self._held(blocks)
        for b in blocks:
            self.refs[b] += 1

    def release(self, blocks):
        self._held(blocks)
        for b in blocks:
            self.refs[b] -= 1


# ── PagedCache
# ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Sequence:
    def __init__(self, blocks, done):
        self.blocks, self.done = blocks, done


@alternate("PagedCache")
class FlatSlots:
    """Slots of a layer in one long row; a block is a stretch of it."""

    def __init__(self, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
        self.block_size, self.num_blocks = block_size, num_blocks
        self.heads, self.d_head = num_kv_heads, d_head
        self.pool = BlockPool(num_blocks)
        room = (num_blocks, num_kv_heads, block_size, d_head)
        self.k = [torch.zeros(room, dtype=dtype) for _ in range(num_layers)]
        self.v = [torch.zeros(room, dtype=dtype) for _ in range(num_layers)]
        self.sequences = {}

    @property
    def num_free(self):
        return self.pool.num_free

    def start(self, name, blocks=()):
        if name in self.sequences:
            raise ValueError(f"{name} exists")
        self.pool.share(list(blocks))
        self.sequences[name] = _Sequence(list(blocks), len(blocks) * self.block_size)

    def length(self, name):
        return self.sequences[name].done

    def table(self, name):
        return self.sequences[name].blocks.copy()

    def blocks(self, layer):
        return self.k[layer], self.v[layer]

    def _last_is_shared(self, sequence):
        if sequence.done % self.block_size == 0:
            return False
        return self.pool.holders(sequence.blocks[sequence.done // self.block_size]) > 1

    def missing(self, name, c):
        sequence = self.sequences[name]
        wanted = math.ceil((sequence.done + c) / self.block_size)
        extra = wanted - len(sequence.blocks) if wanted > len(sequence.blocks) else 0
        return extra + 1 if self._last_is_shared(sequence) else extra

    def append(self, name, layer, k, v):
        if k.dim() != 3 or k.shape != v.shape:
            raise ValueError(f"k is {tuple(k.shape)}, v is {tuple(v.shape)}")
        if k.shape[0] != self.heads or k.shape[2] != self.d_head:
            raise ValueError(
                f"{tuple(k.shape)} does not fit {self.heads} heads of {self.d_head}"
            )
        sequence = self.sequences[name]
        needed = self.missing(name, k.shape[1])
        if needed > self.pool.num_free:
            raise ValueError(f"needs {needed} blocks, {self.pool.num_free} free")
        if self._last_is_shared(sequence):
            at = sequence.done // self.block_size
            old, (new,) = sequence.blocks[at], self.pool.allocate(1)
            for store in self.k + self.v:
                store[new].copy_(store[old])
            self.pool.release([old])
            sequence.blocks[at] = new
            needed -= 1
        sequence.blocks.extend(self.pool.allocate(needed))
        where = torch.arange(sequence.done, sequence.done + k.shape[1])
        block = torch.tensor(sequence.blocks)[
            torch.div(where, self.block_size, rounding_mode="floor")
        ]
        slot = torch.remainder(where, self.block_size)
        heads = torch.arange(self.heads)[:, None]
        self.k[layer][block, heads, slot] = k.to(self.k[layer].dtype)
        self.v[layer][block, heads, slot] = v.to(self.v[layer].dtype)

    def advance(self, name, c):
        self.sequences[name].done = self.sequences[name].done + c

    def gather(self, name, layer):
        sequence = self.sequences[name]
        parts = []
        for store in (self.k[layer], self.v[layer]):
            if not sequence.blocks:
                parts.append(store.new_zeros(self.heads, 0, self.d_head))
                continue
            joined = torch.cat([store[b] for b in sequence.blocks], dim=1)
            parts.append(joined[:, : sequence.done].clone())
        return tuple(parts)

    def fork(self, name, new):
        if new in self.sequences:
            raise ValueError(f"{new} exists")
        sequence = self.sequences[name]
        blocks = sequence.blocks[: math.ceil(sequence.done / self.block_size)]
        self.pool.share(blocks)
        self.sequences[new] = _Sequence(blocks, sequence.done)

    def free(self, name):
        self.pool.release(self.sequences.pop(name).blocks)


@alternate(
    "PagedCache",
    replace=[
        ("return max(0, new) + copies", "return (new if new > 0 else 0) + int(copies)"),
        ("return list(self._tables[name])", "return self._tables[name][:]"),
        (
            "positions = torch.arange(start, start + c)  # [c]",
            "positions = start + torch.arange(c)",
        ),
    ],
)
def other_words(): ...


# ── reserved_bytes
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("reserved_bytes")
def with_ceil(lengths, config, block_size, capacity, bytes_per_element):
    if any(n < 1 or n > capacity for n in lengths):
        bad = next(n for n in lengths if n < 1 or n > capacity)
        raise ValueError(f"{bad} is not in 1..{capacity}")
    per_token = (
        config.num_layers * config.num_kv_heads * config.d_head * bytes_per_element * 2
    )
    padded = 0
    for n in lengths:
        padded += n if n % block_size == 0 else n + block_size - n % block_size
    sizes = {
        "paged": padded,
        "needed": sum(lengths),
        "contiguous": capacity * len(lengths),
    }
    return {name: count * per_token for name, count in sizes.items()}


@alternate("reserved_bytes")
def in_a_loop(lengths, config, block_size, capacity, bytes_per_element):
    needed = contiguous = paged = 0
    one = kv_bytes_a_token(config, bytes_per_element)
    for n in lengths:
        if not 0 < n <= capacity:
            raise ValueError(f"length {n}, capacity {capacity}")
        needed += n * one
        contiguous += capacity * one
        paged += (n + block_size - 1) // block_size * block_size * one
    return dict(needed=needed, contiguous=contiguous, paged=paged)


# ── paged_attention
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("paged_attention")
def merged_statistics(q, keys, values, table, length):
    """Each block gives (o, lse); two of them are merged as in assignment 7."""
    H, c, d = q.shape
    S, groups = keys.shape[2], q.shape[0] // keys.shape[1]
    work = q.dtype if q.dtype == torch.float64 else torch.float32
    out = torch.zeros(H, c, d, dtype=work)
    lse = torch.full((H, c), -math.inf, dtype=work)
    position = length - c + torch.arange(c)
    for i in range(math.ceil(length / S)):
        n = min(S, length - i * S)
        k = keys[table[i], :, :n].to(work).repeat_interleave(groups, dim=0)
        v = values[table[i], :, :n].to(work).repeat_interleave(groups, dim=0)
        s = q.to(work) @ k.mT * d**-0.5
        seen = i * S + torch.arange(n) <= position[:, None]
        s = torch.where(seen, s, torch.tensor(-math.inf, dtype=work))
        block_lse = s.logsumexp(dim=-1)
        p = (s - block_lse[..., None]).exp().nan_to_num(0.0)
        new = torch.logaddexp(lse, block_lse)
        out = (
            out * (lse - new).exp()[..., None]
            + p @ v * (block_lse - new).exp()[..., None]
        )
        lse = new
    return out.to(q.dtype)


@alternate("paged_attention")
def two_passes(q, keys, values, table, length):
    """First the largest score and the sum, then the values."""
    heads, c, dim = q.shape
    kv_heads, size = keys.shape[1], keys.shape[2]
    kind = torch.promote_types(torch.float32, q.dtype)
    query = (q.to(kind) / dim**0.5).unflatten(0, (kv_heads, -1))  # [H_kv, G, c, d]
    own = torch.arange(length)[-c:, None]

    def scores(i):
        n = min(size, length - size * i)
        k = keys[table[i], :, None, :n].to(kind)
        hidden = size * i + torch.arange(n) > own
        return (query @ k.mT).masked_fill(hidden, -torch.inf), values[
            table[i], :, None, :n
        ].to(kind)

    count = (length + size - 1) // size
    top = scores(0)[0].amax(-1, keepdim=True)
    for i in range(1, count):
        top = torch.maximum(top, scores(i)[0].amax(-1, keepdim=True))
    norm, out = 0, 0
    for i in range(count):
        s, v = scores(i)
        e = (s - top).exp()
        norm = norm + e.sum(-1, keepdim=True)
        out = out + e @ v
    return (out / norm).flatten(0, 1).to(q.dtype)


# ── batched_step
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("batched_step")
def with_offsets(params, chunks, cache, config):
    V = params["embed"].shape[0]
    flat, pos, ends = [], [], []
    for name, new in chunks:
        n = cache.length(name)
        for j, tok in enumerate(new):
            if tok < 0 or tok >= V:
                raise ValueError(f"token {tok} but vocabulary {V}")
            flat.append(tok)
            pos.append(n + j)
        ends.append(len(flat))
    x = embed(torch.tensor(flat).unsqueeze(0), params)
    pos = torch.tensor(pos)
    for l, block in enumerate(params["blocks"]):
        q, k, v = project(x, pos, block, config)
        y = torch.empty_like(q)
        begin = 0
        for (name, _), end in zip(chunks, ends):
            cache.append(name, l, k[0, :, begin:end], v[0, :, begin:end])
            kk, vv = cache.blocks(l)
            total = cache.length(name) + end - begin
            y[0, :, begin:end] = paged_attention(
                q[0, :, begin:end], kk, vv, cache.table(name), total
            )
            begin = end
        x = finish_block(x, y, block)
    for name, new in chunks:
        cache.advance(name, len(new))
    rows = x[0, [end - 1 for end in ends]]
    return to_logits(rows[None], params).squeeze(0)


@alternate(
    "batched_step",
    replace=[
        (
            "ids = torch.tensor([token for _, part in chunks for token in part])  # [T]",
            "ids = torch.cat([torch.tensor(part) for _, part in chunks])",
        ),
        (
            "last = torch.tensor(sizes).cumsum(dim=0) - 1  # where each chunk ends",
            "last = [sum(sizes[: i + 1]) - 1 for i in range(len(sizes))]",
        ),
    ],
)
def joins_tensors(): ...


# ── serve
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("serve")
def objects_in_a_queue(requests, cache, step, max_running, eos_id=None):
    if max_running <= 0:
        raise ValueError(f"no place: {max_running}")
    for p, m in requests:
        if len(p) == 0 or m <= 0:
            raise ValueError(f"prompt of {len(p)} tokens, {m} new ones")
    size = cache.block_size
    written = {i: [] for i in range(len(requests))}
    queue, active, log = list(range(len(requests)))[::-1], [], []

    def whole(i):
        return [*requests[i][0], *written[i]]

    def wants(i):
        return cache.missing(i, 1)

    while queue or active:
        while sum(map(wants, active)) > cache.num_free:
            loser = active[-1]
            active = active[:-1]
            cache.free(loser)
            queue.append(loser)
        budget = cache.num_free - sum(map(wants, active))
        while queue and len(active) < max_running:
            need = math.ceil(len(whole(queue[-1])) / size)
            if need > budget:
                break
            budget -= need
            i = queue.pop()
            cache.start(i)
            active.append(i)
        if not active:
            need = math.ceil(len(whole(queue[-1])) / size)
            raise ValueError(f"{need} blocks needed, {cache.num_free} there")
        batch = []
        for i in active:
            batch.append((i, whole(i)[cache.length(i) :]))
        logits = step(batch)
        log.append([(i, len(t)) for i, t in batch])
        still = []
        for row, i in enumerate(active):
            token = int(torch.argmax(logits[row]))
            written[i].append(token)
            if len(written[i]) >= requests[i][1] or (
                eos_id is not None and token == eos_id
            ):
                cache.free(i)
            else:
                still.append(i)
        active = still
    return [written[i] for i in range(len(requests))], log


@alternate(
    "serve",
    replace=[
        (
            "while promised > cache.num_free:  # the last one gives way",
            "while running and promised > cache.num_free:",
        ),
        (
            "choices = step(chunks).argmax(dim=-1).tolist()",
            "choices = [int(row.argmax()) for row in step(chunks)]",
        ),
        (
            "needed = -(-len(texts[waiting[0]]) // cache.block_size)",
            "needed = (len(texts[waiting[0]]) - 1) // cache.block_size + 1",
        ),
    ],
)
def rows_one_by_one(): ...


# ── PrefixIndex
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("PrefixIndex")
class Trie:
    """A tree of blocks: a node's children are found by the tokens of the next block."""

    def __init__(self, pool, block_size):
        self.pool, self.size = pool, block_size
        self.root = {"children": {}, "block": None}

    def _cut(self, tokens):
        size = self.size
        return [
            tuple(tokens[i : i + size]) for i in range(0, len(tokens) - size + 1, size)
        ]

    def match(self, tokens):
        node, out = self.root, []
        for part in self._cut(list(tokens)[:-1]):
            node = node["children"].get(part)
            if node is None or node["block"] is None:
                break
            out.append(node["block"])
        return out

    def insert(self, tokens, blocks):
        node = self.root
        for part, block in zip(self._cut(tokens), blocks):
            node = node["children"].setdefault(part, {"children": {}, "block": None})
            if node["block"] is None:
                node["block"] = block
                self.pool.share([block])

    def evict(self):
        def visit(node):
            count = sum(visit(child) for child in node["children"].values())
            if node["block"] is not None and self.pool.holders(node["block"]) == 1:
                self.pool.release([node["block"]])
                node["block"] = None
                count += 1
            return count

        return visit(self.root)


@alternate("PrefixIndex")
class ChainedKeys:
    """A block's key is its parent's key and its own tokens."""

    def __init__(self, pool, block_size):
        self.pool, self.S = pool, block_size
        self.table = {}

    def _keys(self, tokens, count):
        parent = None
        for i in range(count):
            parent = (parent, tuple(tokens[i * self.S : (i + 1) * self.S]))
            yield parent

    def match(self, tokens):
        found = []
        for key in self._keys(tokens, max(0, len(tokens) - 1) // self.S):
            if key not in self.table:
                return found
            found += [self.table[key]]
        return found

    def insert(self, tokens, blocks):
        for key, block in zip(self._keys(tokens, len(tokens) // self.S), blocks):
            if key in self.table:
                continue
            self.table[key] = block
            self.pool.share([block])

    def evict(self):
        before = len(self.table)
        kept = {k: b for k, b in self.table.items() if self.pool.holders(b) > 1}
        self.pool.release([b for k, b in self.table.items() if k not in kept])
        self.table = kept
        return before - len(kept)


# ── beam_search
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("beam_search")
def dictionaries(prompt, cache, step, num_beams, max_new, alpha, eos_id):
    for size in (len(prompt), num_beams, max_new):
        if size < 1:
            raise ValueError(f"got a size of {size}")

    def penalty(n):
        return ((5.0 + n) ** alpha) / ((5.0 + 1.0) ** alpha)

    cache.start("root")
    alive = [{"name": "root", "out": [], "logp": 0.0}]
    done, feed_next = [], [("root", prompt)]
    for t in range(max_new):
        logp = torch.nn.functional.log_softmax(step(feed_next), dim=-1)
        options = []
        for i, beam in enumerate(alive):
            for token in range(logp.shape[1]):
                options.append((beam["logp"] + logp[i, token].item(), i, token))
        options.sort(key=lambda o: o[0], reverse=True)
        new = []
        for score, i, token in options[:num_beams]:
            out = alive[i]["out"] + [token]
            if token == eos_id:
                done.append((out, score))
            else:
                name = f"{t}/{len(new)}"
                cache.fork(alive[i]["name"], name)
                new.append({"name": name, "out": out, "logp": score})
        for beam in alive:
            cache.free(beam["name"])
        alive = new
        feed_next = [(beam["name"], [beam["out"][-1]]) for beam in alive]
        if not alive:
            break
    for beam in alive:
        cache.free(beam["name"])
        done.append((beam["out"], beam["logp"]))
    ranked = [(out, logp / penalty(len(out))) for out, logp in done]
    ranked.sort(key=lambda r: -r[1])
    return ranked[:num_beams]


@alternate("beam_search")
def reuses_the_parent(prompt, cache, step, num_beams, max_new, alpha, eos_id):
    """The first continuation of a beginning keeps its name; only further ones fork."""
    if len(prompt) == 0 or num_beams <= 0 or max_new <= 0:
        raise ValueError(f"prompt {len(prompt)}, beams {num_beams}, tokens {max_new}")
    fresh = 1
    cache.start(0)
    names, texts, sums = [0], [[]], torch.zeros(1, dtype=torch.float64)
    results, chunks = [], [(0, prompt)]
    for _ in range(max_new):
        scores = sums[:, None] + step(chunks).to(torch.float64).log_softmax(-1)
        V = scores.shape[1]
        values, order = scores.view(-1).sort(descending=True)
        new_names, new_texts, new_sums, children = [], [], [], defaultdict(list)
        for value, flat in zip(values[:num_beams].tolist(), order[:num_beams].tolist()):
            b, token = flat // V, flat % V
            if token == eos_id:
                results.append((texts[b] + [token], value))
                continue
            children[b].append((texts[b] + [token], value))
        for b, name in enumerate(names):
            mine = children[b]
            for text, value in mine[1:]:
                cache.fork(name, fresh)
                new_names.append(fresh)
                new_texts.append(text)
                new_sums.append(value)
                fresh += 1
            if mine:
                new_names.append(name)
                new_texts.append(mine[0][0])
                new_sums.append(mine[0][1])
            else:
                cache.free(name)
        names, texts = new_names, new_texts
        sums = torch.tensor(new_sums, dtype=torch.float64)
        chunks = [(name, text[-1:]) for name, text in zip(names, texts)]
        if not names:
            break
    for name, text, value in zip(names, texts, sums.tolist()):
        cache.free(name)
        results.append((text, value))
    lp = [((5 + len(text)) / 6) ** alpha for text, _ in results]
    final = [(text, value / p) for (text, value), p in zip(results, lp)]
    return sorted(final, key=lambda r: r[1])[::-1][:num_beams]


# ── sink_mass
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("sink_mass")
def over_rows(weights, num_first):
    if num_first < 1 or num_first >= weights.size(-1):
        raise ValueError(f"num_first={num_first}, N={weights.size(-1)}")
    per_query = weights[..., :num_first].sum(-1)
    return per_query[..., num_first:].mean(-1).mean(0)


@alternate("sink_mass")
def one_einsum(weights, num_first):
    B, H, N, _ = weights.shape
    if num_first not in range(1, N):
        raise ValueError(f"{num_first} of {N}")
    part = weights[:, :, num_first:, :num_first]
    return torch.einsum("bhqk->h", part) / (B * (N - num_first))


# ── sink_attention
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("sink_attention")
def by_index(q, k, v, num_sinks, window, theta):
    if num_sinks < 0:
        raise ValueError(f"num_sinks {num_sinks}, window {window}")
    if window <= 0:
        raise ValueError(f"num_sinks {num_sinks}, window {window}")
    n = k.size(2)
    kept = [i for i in range(n) if i < num_sinks or i >= n - window]
    k, v = k[:, :, kept], v[:, :, kept]
    m = len(kept)
    k = rotary_positions(k, torch.arange(m), theta)
    q = rotary_positions(q, torch.tensor([m - 1]), theta)
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


@alternate("sink_attention")
def differences_of_positions(q, k, v, num_sinks, window, theta):
    """Only differences matter: the query stays at 0, and keys stand before it."""
    if num_sinks < 0 or window < 1:
        raise ValueError(f"{num_sinks}, {window}")
    n = k.shape[2]
    if n > num_sinks + window:
        k = torch.cat((k[:, :, :num_sinks], k[:, :, -window:]), 2)
        v = torch.cat((v[:, :, :num_sinks], v[:, :, -window:]), 2)
    m = k.shape[2]
    k = rotary_positions(k, torch.arange(1 - m, 1), theta)
    return grouped_attention(q, k, v, torch.ones(1, m, dtype=torch.bool))


# ── decode_costs
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("decode_costs")
def matrix_by_matrix(config, batch, n, bytes_per_element):
    for size in (batch, n, bytes_per_element):
        if size < 1:
            raise ValueError(f"{size} is below 1")
    D, d, L = config.d_model, config.d_head, config.num_layers
    w_q = w_o = D * config.num_heads * d
    w_k = w_v = D * config.num_kv_heads * d
    numbers = L * (w_q + w_k + w_v + w_o + 2 * D * config.d_ff) + D * config.vocab_size
    kv = 2 * L * config.num_kv_heads * d * n * batch
    flops = 2 * numbers * batch
    flops += 2 * (2 * config.num_heads * d * n) * L * batch
    total = bytes_per_element * (numbers + kv)
    return {
        "flops": flops,
        "weight_bytes": bytes_per_element * numbers,
        "cache_bytes": bytes_per_element * kv,
        "intensity": flops / total,
    }


@alternate(
    "decode_costs",
    replace=[
        (
            "flops = batch * (2 * weights + 4 * config.num_layers * wide * n)",
            "flops = 2 * batch * weights + 4 * batch * n * wide * config.num_layers",
        ),
        (
            "layer = 2 * config.d_model * (wide + narrow + config.d_ff)",
            "layer = sum(2 * config.d_model * size for size in (wide, narrow, config.d_ff))",
        ),
    ],
)
def sums_in_another_order(): ...


# ── idle_and_decisive
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@alternate("idle_and_decisive")
def by_a_search(q, k, v):
    """Moves along q until the weights are what they should be."""
    if float(q.abs().max()) == 0.0:
        raise ValueError(f"q is zero, of size {q.numel()}")
    root = math.sqrt(q.numel())

    def weight(key):
        return float(torch.softmax(torch.cat([k, key[None]]) @ q / root, 0)[-1])

    unit = q / (q @ q)
    high = low = float((k @ q).max())
    while weight(unit * high) < 0.95:
        high += root
    while weight(unit * low) > 0.008:
        low -= root
    base = torch.softmax(k @ q / root, 0) @ v
    share = weight(unit * low)
    direction = torch.ones_like(base) / math.sqrt(base.numel())
    return unit * high, base, unit * low, base - direction * (15 / share)


@alternate(
    "idle_and_decisive",
    replace=[
        ("math.log(99)", "4"),
        ("far[0] = 20 / weight", "far[-1] = -11 / weight"),
        ("weight = 0.005", "weight = 0.001"),
    ],
)
def other_numbers(): ...
