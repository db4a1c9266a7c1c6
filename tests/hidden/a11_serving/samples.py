"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math

import torch
import torch.nn.functional as F

from autograder.suite import alternate, sample

# ── BlockPool
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample("BlockPool", function="BlockPool", deserves="release_frees_shared_blocks")
class FreeListAndSet:
    def __init__(self, num_blocks):
        self.free_list = sorted(range(num_blocks))
        self.ref = dict()

    @property
    def num_free(self):
        return len(self.free_list)

    def holders(self, block):
        return self.ref.get(block, 0)

    def allocate(self, n):
        if len(self.free_list) < n:
            raise ValueError(f"asked for {n}, have {len(self.free_list)}")
        out = [self.free_list.pop(0) for _ in range(n)]
        for b in out:
            self.ref[b] = 1
        return out

    def share(self, blocks):
        for b in blocks:
            if b not in self.ref:
                raise ValueError(f"block {b} not in use")
        for b in blocks:
            self.ref[b] = self.ref[b] + 1

    def release(self, blocks):
        for b in blocks:
            if b not in self.ref:
                raise ValueError(f"double free of {b}")
        for b in blocks:
            self.ref.pop(b)
            self.free_list = sorted(self.free_list + [b])


@sample(
    "BlockPool",
    function="BlockPool",
    deserves=("takes_a_block_back_twice", "LendsInTheOrderOfReturn"),
)
class Deque:
    def __init__(self, num_blocks):
        self.q = [i for i in range(num_blocks)]
        self.cnt = [0 for _ in self.q]

    @property
    def num_free(self):
        return len(self.q)

    def holders(self, block):
        return self.cnt[block]

    def allocate(self, n):
        if n > len(self.q):
            raise ValueError(f"not enough blocks: {n} > {len(self.q)}")
        got = []
        while len(got) < n:
            b = self.q.pop(0)
            self.cnt[b] = 1
            got.append(b)
        return got

    def share(self, blocks):
        for b in blocks:
            if self.cnt[b] == 0:
                raise ValueError(f"{b} is not allocated")
        for b in blocks:
            self.cnt[b] += 1

    def release(self, blocks):
        for b in blocks:
            if self.cnt[b] > 0:
                self.cnt[b] -= 1
                if self.cnt[b] == 0:
                    self.q.append(b)


# ── PagedCache
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "PagedCache",
    function="PagedCache",
    deserves=("shared_blocks_are_written", "takes_any_shape"),
)
class ListsOfBlocks:
    def __init__(self, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
        self.block_size = block_size
        self.pool = BlockPool(num_blocks)
        shape = (num_layers, num_blocks, num_kv_heads, block_size, d_head)
        self.K, self.V = (
            torch.zeros(shape, dtype=dtype),
            torch.zeros(shape, dtype=dtype),
        )
        self.tables, self.lens = {}, {}

    @property
    def num_free(self):
        return self.pool.num_free

    def start(self, name, blocks=()):
        if name in self.tables:
            raise ValueError(f"{name} is taken")
        self.pool.share(blocks)
        self.tables[name] = list(blocks)
        self.lens[name] = self.block_size * len(blocks)

    def length(self, name):
        return self.lens[name]

    def table(self, name):
        return list(self.tables[name])

    def blocks(self, layer):
        return self.K[layer], self.V[layer]

    def missing(self, name, c):
        total = math.ceil((self.lens[name] + c) / self.block_size)
        return max(total - len(self.tables[name]), 0)

    def append(self, name, layer, k, v):
        c = k.shape[1]
        self.tables[name] += self.pool.allocate(self.missing(name, c))
        for j in range(c):
            p = self.lens[name] + j
            b = self.tables[name][p // self.block_size]
            self.K[layer, b, :, p % self.block_size] = k[:, j]
            self.V[layer, b, :, p % self.block_size] = v[:, j]

    def advance(self, name, c):
        self.lens[name] += c

    def gather(self, name, layer):
        n = self.lens[name]
        if n == 0:
            return self.K[layer, 0, :, :0].clone(), self.V[layer, 0, :, :0].clone()
        k = torch.cat([self.K[layer, b] for b in self.tables[name]], 1)[:, :n]
        v = torch.cat([self.V[layer, b] for b in self.tables[name]], 1)[:, :n]
        return k.clone(), v.clone()

    def fork(self, name, new):
        n = math.ceil(self.lens[name] / self.block_size)
        self.start(new, self.tables[name][:n])
        self.lens[new] = self.lens[name]

    def free(self, name):
        self.pool.release(self.tables.pop(name))
        self.lens.pop(name)


# ── reserved_bytes
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample("reserved_bytes", deserves=("rounds_the_sum", "takes_any_length"))
def total_first(lengths, config, block_size, capacity, bytes_per_element):
    per = (
        2 * config.num_layers * config.num_kv_heads * config.d_head * bytes_per_element
    )
    n = sum(lengths)
    return {
        "needed": n * per,
        "contiguous": len(lengths) * capacity * per,
        "paged": math.ceil(n / block_size) * block_size * per,
    }


# ── paged_attention
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample("paged_attention", deserves="gathers_everything")
def index_and_sdpa(q, keys, values, table, length):
    H, c, d = q.shape
    Hkv, S = keys.shape[1], keys.shape[2]
    idx = torch.tensor(table[: (length + S - 1) // S])
    k = keys[idx].transpose(0, 1).reshape(Hkv, -1, d)[:, :length]
    v = values[idx].transpose(0, 1).reshape(Hkv, -1, d)[:, :length]
    k = k.repeat_interleave(H // Hkv, 0)
    v = v.repeat_interleave(H // Hkv, 0)
    mask = torch.arange(length)[None] <= torch.arange(length - c, length)[:, None]
    w = torch.float32 if q.dtype == torch.float16 else q.dtype
    return F.scaled_dot_product_attention(q.to(w), k.to(w), v.to(w), attn_mask=mask).to(
        q.dtype
    )


@sample("paged_attention", deserves="values_do_not_shrink")
def flash_without_correction(q, keys, values, table, length):
    H, c, d = q.shape
    S, g = keys.shape[2], H // keys.shape[1]
    qf = (q.double() if q.dtype == torch.float64 else q.float()) / math.sqrt(d)
    pos_q = torch.arange(length - c, length).unsqueeze(1)
    m_i = torch.full((H, c), -float("inf"), dtype=qf.dtype)
    l_i = torch.zeros(H, c, dtype=qf.dtype)
    acc = torch.zeros(H, c, d, dtype=qf.dtype)
    for j in range(math.ceil(length / S)):
        stop = min(S, length - j * S)
        kj = keys[table[j]][:, :stop].to(qf.dtype).repeat_interleave(g, dim=0)
        vj = values[table[j]][:, :stop].to(qf.dtype).repeat_interleave(g, dim=0)
        s = torch.einsum("hcd,hsd->hcs", qf, kj)
        s = s.masked_fill(pos_q < torch.arange(j * S, j * S + stop), -float("inf"))
        m_new = torch.max(m_i, s.max(-1).values)
        p = torch.exp(s - m_new.unsqueeze(-1))
        l_i = l_i * torch.exp(m_i - m_new) + p.sum(-1)
        acc = acc + torch.einsum("hcs,hsd->hcd", p, vj)
        m_i = m_new
    return (acc / l_i.unsqueeze(-1)).to(q.dtype)


# ── batched_step
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "batched_step",
    deserves=(
        "one_text_after_the_other",
        "looks_at_ids_text_by_text",
        "takes_negative_ids",
    ),
)
def loop_over_requests(params, chunks, cache, config):
    out = []
    for seq, toks in chunks:
        if max(toks) >= params["embed"].size(0):
            raise ValueError(f"{max(toks)} >= {params['embed'].size(0)}")
        past = cache.length(seq)
        h = embed(torch.tensor(toks)[None, :], params)
        pos = past + torch.arange(len(toks))
        for i, blk in enumerate(params["blocks"]):
            q, k, v = project(h, pos, blk, config)
            cache.append(seq, i, k.squeeze(0), v.squeeze(0))
            a = paged_attention(
                q.squeeze(0), *cache.blocks(i), cache.table(seq), past + len(toks)
            )
            h = finish_block(h, a.unsqueeze(0), blk)
        cache.advance(seq, len(toks))
        out.append(to_logits(h, params)[0, -1])
    return torch.stack(out, 0)


# ── serve
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample("serve", deserves=("goes_to_the_end_of_the_queue", "takes_any_request"))
def with_a_deque(requests, cache, step, max_running, eos_id=None):
    seqs = [list(p) for p, _ in requests]
    todo = [i for i in range(len(requests))]
    run, hist = [], []
    while len(todo) + len(run) > 0:
        while sum(cache.missing(i, 1) for i in run) > cache.num_free:
            victim = run.pop(-1)
            cache.free(victim)
            todo.append(victim)
        reserved = sum(cache.missing(i, 1) for i in run)
        while todo and len(run) < max_running:
            blocks = math.ceil(len(seqs[todo[0]]) / cache.block_size)
            if reserved + blocks > cache.num_free:
                break
            reserved += blocks
            new = todo.pop(0)
            cache.start(new)
            run.append(new)
        if not run:
            raise ValueError(f"{blocks} blocks, {cache.num_free} free")
        feed_now = [(i, seqs[i][cache.length(i) :]) for i in run]
        next_tokens = torch.argmax(step(feed_now), dim=1)
        hist.append([(i, len(t)) for i, t in feed_now])
        for i, t in zip(list(run), next_tokens):
            seqs[i].append(t.item())
            n_new = len(seqs[i]) - len(requests[i][0])
            if n_new == requests[i][1] or t.item() == eos_id:
                run.remove(i)
                cache.free(i)
    return [s[len(p) :] for s, (p, _) in zip(seqs, requests)], hist


# ── PrefixIndex
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample("PrefixIndex", function="PrefixIndex", deserves="a_key_without_its_beginning")
class HashOfBlock:
    def __init__(self, pool, block_size):
        self.pool, self.bs = pool, block_size
        self.by_hash = {}

    def match(self, tokens):
        got, i = [], 0
        while (i + 1) * self.bs < len(tokens):
            h = hash(tuple(tokens[i * self.bs : (i + 1) * self.bs]))
            if h not in self.by_hash:
                break
            got.append(self.by_hash[h])
            i += 1
        return got

    def insert(self, tokens, blocks):
        for i in range(len(tokens) // self.bs):
            h = hash(tuple(tokens[i * self.bs : (i + 1) * self.bs]))
            if h not in self.by_hash:
                self.by_hash[h] = blocks[i]
                self.pool.share([blocks[i]])

    def evict(self):
        drop = [h for h in self.by_hash if self.pool.holders(self.by_hash[h]) == 1]
        for h in drop:
            self.pool.release([self.by_hash[h]])
            del self.by_hash[h]
        return len(drop)


@sample("PrefixIndex", function="PrefixIndex", deserves="nothing_remains")
class PrefixDict:
    def __init__(self, pool, block_size):
        self.pool = pool
        self.block_size = block_size
        self.d = {}

    def match(self, tokens):
        res = []
        n = self.block_size
        while n <= len(tokens) and tuple(tokens[:n]) in self.d:
            res.append(self.d[tuple(tokens[:n])])
            n += self.block_size
        return res

    def insert(self, tokens, blocks):
        for i, b in enumerate(blocks):
            end = (i + 1) * self.block_size
            if end <= len(tokens) and tuple(tokens[:end]) not in self.d:
                self.pool.share([b])
                self.d[tuple(tokens[:end])] = b

    def evict(self):
        n = 0
        for key in list(self.d):
            if self.pool.holders(self.d[key]) == 1:
                self.pool.release([self.d.pop(key)])
                n += 1
        return n


# ── beam_search
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample("beam_search", deserves=("divides_by_the_length", "takes_any_sizes"))
def huggingface_scores(prompt, cache, step, num_beams, max_new, alpha, eos_id):
    if not prompt:
        raise ValueError("empty prompt: 0 tokens")
    cache.start("0")
    beams, hyps = [("0", [], 0.0)], []
    inp = [("0", prompt)]
    n = 0
    while beams and n < max_new:
        n += 1
        lp = F.log_softmax(step(inp), dim=-1)
        cand = []
        for b, (name, toks, s) in enumerate(beams):
            for v in range(lp.size(-1)):
                cand.append((s + float(lp[b, v]), name, toks + [v]))
        cand = sorted(cand, key=lambda x: -x[0])[:num_beams]
        nxt = []
        for r, (s, name, toks) in enumerate(cand):
            if toks[-1] == eos_id:
                hyps.append((toks, s / len(toks) ** alpha))
            else:
                cache.fork(name, f"{n}.{r}")
                nxt.append((f"{n}.{r}", toks, s))
        for name, _, _ in beams:
            cache.free(name)
        beams = nxt
        inp = [(name, toks[-1:]) for name, toks, _ in beams]
    for name, toks, s in beams:
        cache.free(name)
        hyps.append((toks, s / len(toks) ** alpha))
    return sorted(hyps, key=lambda h: -h[1])[:num_beams]


# ── sink_mass, sink_attention
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample("sink_mass", deserves=("counts_all_queries", "takes_any_number"))
def simple_mean(weights, num_first):
    return weights[..., :num_first].sum(-1).mean(-1).mean(0)


@sample("sink_attention", deserves="positions_in_the_text")
def rotates_before_dropping(q, k, v, num_sinks, window, theta):
    if num_sinks < 0 or window < 1:
        raise ValueError(f"sinks={num_sinks}, window={window}")
    n = k.shape[-2]
    pos = torch.arange(n)
    k = rotary_positions(k, pos, theta)
    q = rotary_positions(q, pos[-1:], theta)
    keep = (pos < num_sinks) | (pos >= n - window)
    return grouped_attention(
        q, k[:, :, keep], v[:, :, keep], torch.ones(1, int(keep.sum())).bool()
    )


# ── decode_costs
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "decode_costs", deserves=("operations_of_key_heads", "takes_any_sizes_of_a_step")
)
def grouped_flops(config, batch, n, bytes_per_element):
    dq, dkv = config.num_heads * config.d_head, config.num_kv_heads * config.d_head
    attn = config.d_model * dq * 2 + config.d_model * dkv * 2
    ffn = 2 * config.d_model * config.d_ff
    W = config.num_layers * (attn + ffn) + config.vocab_size * config.d_model
    kv = 2 * config.num_layers * dkv * n * batch
    ops = 2 * W * batch + 4 * dkv * n * config.num_layers * batch
    wb, cb = W * bytes_per_element, kv * bytes_per_element
    return dict(weight_bytes=wb, cache_bytes=cb, flops=ops, intensity=ops / (wb + cb))


# ── idle_and_decisive
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@sample("idle_and_decisive", deserves=("an_idle_value_of_zero", "takes_any_query"))
def zero_is_nothing(q, k, v):
    s = k @ q / len(q) ** 0.5
    lse = torch.logsumexp(s, 0)
    direction = q / q.norm() ** 2 * len(q) ** 0.5
    idle = direction * (lse + 5)
    decisive = direction * (lse - 6)
    far = torch.full((v.shape[1],), 1e5, dtype=v.dtype)
    return idle, torch.zeros(v.shape[1], dtype=v.dtype), decisive, far


@alternate("decode_costs")
def dictionary_of_matrices(config, batch, n, bytes_per_element):
    if batch < 1 or n < 1 or bytes_per_element < 1:
        raise ValueError(f"batch={batch}, n={n}, bytes={bytes_per_element}")
    q, kv = config.num_heads * config.d_head, config.num_kv_heads * config.d_head
    one_layer = {
        "q": q,
        "o": q,
        "k": kv,
        "v": kv,
        "up": config.d_ff,
        "down": config.d_ff,
    }
    params = config.d_model * (
        sum(one_layer.values()) * config.num_layers + config.vocab_size
    )
    cache_numbers = batch * config.num_layers * n * (kv + kv)
    operations = batch * 2 * params + batch * config.num_layers * (
        2 * q * n + 2 * q * n
    )
    return {
        "intensity": operations / ((params + cache_numbers) * bytes_per_element),
        "flops": operations,
        "cache_bytes": cache_numbers * bytes_per_element,
        "weight_bytes": params * bytes_per_element,
    }


@alternate("sink_mass")
def head_after_head(weights, num_first):
    size = weights.shape[3]
    if num_first <= 0 or num_first >= size:
        raise ValueError(f"{num_first} must be in [1, {size - 1}]")
    masses = []
    for head in range(weights.shape[1]):
        rows = weights[:, head, num_first:]
        masses.append(rows[..., :num_first].sum(2).mean())
    return torch.stack(masses)
