"""Tokens a second of a fast cached decoder, against `transformers`' GPT-2 `generate` and
CTranslate2.

All decode greedily, at batch 1 by default, with the same weights (random, from a fixed seed) in the
same precision, and must give the same tokens. What makes the fast decoder fast stands in the a8
notebook, "The fast path":

* the cache is static: its memory never moves, and a step writes one slot of it;
* reading the weights is what a step costs, so each product has the layout that is read fastest: see
  `Product`;
* a step makes few tensors and asks for nothing: the next token is chosen inside;
* on a GPU the whole step is recorded once as a CUDA graph and replayed; its position is a tensor.

With `--weights float16` or `bfloat16` a further decoder keeps its weights in half the bytes and
everything else as it was. Its tokens may differ from those in full precision, and the program
counts how many do.

The other decoders are needed by this program only: `pip install "transformers<5" ctranslate2`, the
second for `--ctranslate2` alone, and neither with `--alone`. Run

    python benchmarks/decode.py                  # gpt2, on the GPU where there is one
    python benchmarks/decode.py --ctranslate2 --weights float16
    python benchmarks/decode.py --model gpt2-xl --device cuda --dtype float16
    python benchmarks/decode.py --alone          # without transformers

It prints one line a round, the medians and the ratios. The decoders take turns, so that a busy
machine disturbs all. `OMP_NUM_THREADS` sets the threads of each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import decode_peers
import torch
from torch import Tensor
from torch.nn import functional as F


class Product:
    """x [..., in] -> x W + b [..., out], for few rows.

    For one row the time is that of reading W, and the layout decides how fast that goes:

    * on several cores, oneDNN's, reordered once (the operation that `torch.compile` puts there),
      since MKL keeps one row to one core in every layout of its own;
    * on one core `[in, out]`, unless there is more to sum than to write: then `[out, in]` is a
      sixth faster;
    * in 16 bits on a CPU `[out, in]`, for which torch has a loop that widens the numbers as it
      reads them, and uses every core. It needs no processor that computes in 16 bits. In the other
      layout it is ten times slower.

    Args:
        weight: [in, out].
        bias: [out], or None.
        dtype: what the weight is kept in.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        self.bias = bias
        self.out = weight.shape[1]
        on_cpu = weight.device.type == "cpu"
        on_cores = on_cpu and dtype == torch.float32 and torch.get_num_threads() > 1
        self.by_onednn = on_cores and torch.backends.mkldnn.is_available()
        self.by_dots = on_cpu and (dtype != torch.float32 or weight.shape[0] > self.out)
        weight = weight.to(dtype)
        if self.by_onednn:
            self.weight = torch.ops.mkldnn._reorder_linear_weight(
                weight.T.contiguous(), 1
            )
        else:
            self.weight = weight.T.contiguous() if self.by_dots else weight.contiguous()

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        if self.by_onednn:
            y: Tensor = torch.ops.mkldnn._linear_pointwise(
                rows, self.weight, self.bias, "none", [], ""
            )
        elif self.by_dots:
            y = self._dots(rows)
        elif self.bias is None:
            y = rows @ self.weight
        else:
            y = torch.addmm(self.bias, rows, self.weight)
        return y.view(*x.shape[:-1], self.out)

    def _dots(self, rows: Tensor) -> Tensor:
        # Torch's loop is for one row: for those of a prompt the weights are widened for the moment.
        dtype = self.weight.dtype if len(rows) == 1 else rows.dtype
        y = F.linear(rows.to(dtype), self.weight.to(dtype)).to(rows.dtype)
        return y if self.bias is None else y.add_(self.bias)


@dataclass(frozen=True, slots=True)
class Layer:
    """One block's weights."""

    norm_1: tuple[Tensor, Tensor]
    qkv: Product
    out: Product
    norm_2: tuple[Tensor, Tensor]
    up: Product
    down: Product


class FastDecoder:
    """Greedy decoding of a GPT-2 with a static cache.

    Args:
        model: a `GPT2LMHeadModel`, whose weights are taken.
        capacity: tokens that the cache holds.
        batch: rows.
        weights: the dtype of the weights that are multiplied with; that of the model where None.
    """

    def __init__(
        self, model: Any, capacity: int, batch: int, weights: torch.dtype | None = None
    ) -> None:
        config, body = model.config, model.transformer
        self.heads = config.n_head
        self.width = config.n_embd
        self.eps = config.layer_norm_epsilon
        self.embed = body.wte.weight.detach()  # [V, D]
        kept = weights or self.embed.dtype
        # the same numbers, laid out for the product
        self.unembed = Product(self.embed.T, None, kept)
        self.table = body.wpe.weight.detach()  # [context, D]
        self.final = _pair(body.ln_f)
        self.layers = [
            Layer(
                _pair(block.ln_1),
                Product(*_pair(block.attn.c_attn), kept),
                Product(*_pair(block.attn.c_proj), kept),
                _pair(block.ln_2),
                Product(*_pair(block.mlp.c_fc), kept),
                Product(*_pair(block.mlp.c_proj), kept),
            )
            for block in body.h
        ]
        room = (len(self.layers), batch, self.heads, capacity, self.width // self.heads)
        self.keys = torch.zeros(room, dtype=self.embed.dtype, device=self.embed.device)
        self.values = torch.zeros_like(self.keys)
        self.capacity = capacity
        self.graph: torch.cuda.CUDAGraph | None = None

    def generate(self, prompt: Tensor, num_new: int) -> Tensor:
        """int64 [B, N] -> [B, N + num_new]."""
        n = prompt.shape[1]
        if n + num_new > self.capacity + 1:
            raise ValueError(
                f"{n} + {num_new} tokens, and the cache holds {self.capacity}"
            )
        ids = torch.empty(
            prompt.shape[0], n + num_new, dtype=torch.int64, device=prompt.device
        )
        ids[:, :n] = prompt
        ids[:, n] = self._read(prompt)
        if prompt.is_cuda:
            self._replay(ids, n, num_new)
        else:
            for position in range(n, n + num_new - 1):
                ids[:, position + 1] = self._step(ids[:, position], position)
        return ids

    def choices(self, ids: Tensor, n: int) -> Tensor:
        """What it would choose after each prefix of at least n tokens: int64 [B, N] -> [B, N - n],
        one step each.
        """
        chosen = [self._read(ids[:, :n])]
        chosen += [
            self._step(ids[:, position], position)
            for position in range(n, ids.shape[1] - 1)
        ]
        return torch.stack(chosen, dim=1)

    def _read(self, prompt: Tensor) -> Tensor:
        """The prompt into the cache; the next token [B]."""
        n = prompt.shape[1]
        x = F.embedding(prompt, self.embed) + self.table[:n]  # [B, N, D]
        for i, layer in enumerate(self.layers):
            q, k, v = self._project(x, layer)  # [B, H, N, d] each
            self.keys[i, :, :, :n] = k
            self.values[i, :, :, :n] = v
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = self._rest(x, y.transpose(1, 2).flatten(2), layer)
        return self._choose(x[:, -1])

    def _step(self, token: Tensor, position: int) -> Tensor:
        """One token a row, on the CPU: attention over the slots in use, as a view. [B] -> [B]."""
        x = F.embedding(token, self.embed) + self.table[position]  # [B, D]
        for i, layer in enumerate(self.layers):
            q, k, v = self._project(x[:, None], layer)
            keys, values = self.keys[i], self.values[i]
            keys[:, :, position : position + 1] = k
            values[:, :, position : position + 1] = v
            end = position + 1
            # [B, H, 1, d]
            y = F.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end])
            x = self._rest(x, y.reshape(len(x), self.width), layer)
        return self._choose(x)

    def _replay(self, ids: Tensor, n: int, num_new: int) -> None:
        """The steps on a GPU: one recorded program, whose token and position lie in memory that it
        updates itself.
        """
        if self.graph is None:
            self._record(ids.shape[0])
        assert self.graph is not None
        self.token.copy_(ids[:, n])
        self.position.fill_(n)
        for column in range(n + 1, n + num_new):
            self.graph.replay()
            ids[:, column] = self.token  # a copy on the GPU; nothing waits

    def _record(self, batch: int) -> None:
        device = self.embed.device
        self.token = torch.zeros(batch, dtype=torch.int64, device=device)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)
        self.slots = torch.arange(self.capacity, device=device)
        # warming up writes into slot 0 and the next ones
        saved = self.keys.clone(), self.values.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._static_step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._static_step()
        self.keys.copy_(saved[0])
        self.values.copy_(saved[1])

    def _static_step(self) -> None:
        """One token a row with fixed shapes: attention over all slots, the empty ones hidden by a
        mask.
        """
        visible = (self.slots <= self.position).view(1, 1, 1, -1)
        x = F.embedding(self.token, self.embed) + self.table.index_select(
            0, self.position
        )
        for i, layer in enumerate(self.layers):
            q, k, v = self._project(x[:, None], layer)
            self.keys[i].index_copy_(2, self.position, k)
            self.values[i].index_copy_(2, self.position, v)
            y = F.scaled_dot_product_attention(
                q, self.keys[i], self.values[i], attn_mask=visible
            )
            x = self._rest(x, y.reshape(len(x), self.width), layer)
        self.token.copy_(self._choose(x))
        self.position += 1

    def _project(self, x: Tensor, layer: Layer) -> tuple[Tensor, Tensor, Tensor]:
        """x [B, N, D] -> q, k, v [B, H, N, d]."""
        h = F.layer_norm(x, (self.width,), *layer.norm_1, self.eps)
        both = layer.qkv(h).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return both[0], both[1], both[2]

    def _rest(self, x: Tensor, y: Tensor, layer: Layer) -> Tensor:
        x = x + layer.out(y)
        h = F.layer_norm(x, (self.width,), *layer.norm_2, self.eps)
        return x + layer.down(F.gelu(layer.up(h), approximate="tanh"))

    def _choose(self, x: Tensor) -> Tensor:
        return self.unembed(
            F.layer_norm(x, (self.width,), *self.final, self.eps)
        ).argmax(dim=-1)


def _pair(module: Any) -> tuple[Tensor, Tensor]:
    return module.weight.detach(), module.bias.detach()


def read_again(fast: FastDecoder, prompt: Tensor, num_new: int) -> Tensor:
    """Greedy decoding without a cache: the whole text is read for each token."""
    ids = prompt
    for _ in range(num_new):
        ids = torch.cat([ids, fast._read(ids)[:, None]], dim=1)
    return ids


def timed(decode: Callable[[], Tensor]) -> tuple[float, Tensor]:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begin = time.perf_counter()
    ids = decode()
    if ids.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - begin, ids


def agreement(some: Tensor, others: Tensor, n: int) -> int:
    """New tokens, those from n on, before the first in which a row differs."""
    return int((some == others).all(dim=0).long().cumprod(dim=0).sum()) - n


def in_turns(
    decoders: dict[str, Callable[[], Tensor]], rounds: int, tokens: int
) -> dict[str, list[float]]:
    """Seconds of each decoder in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in decoders}
    for round_ in range(1, rounds + 1):
        for name, decode in decoders.items():
            seconds[name].append(timed(decode)[0])
        print(
            f"round {round_}, "
            f"{_speeds({name: tokens / times[-1] for name, times in seconds.items()})}"
        )
    medians = {
        name: tokens / statistics.median(times) for name, times in seconds.items()
    }
    print(f"median,  {_speeds(medians)}")
    return seconds


def ratios_of(
    seconds: dict[str, list[float]], mine: list[str]
) -> dict[str, tuple[float, float, float]]:
    """How many times faster each of ours is than each other decoder: median, lowest and highest of
    the rounds.
    """
    found = {}
    for one in mine:
        for other in seconds:
            if one != other and other != mine[-1]:
                rounds = [
                    b / a for a, b in zip(seconds[one], seconds[other], strict=True)
                ]
                found[f"{one} / {other}"] = (
                    statistics.median(rounds),
                    min(rounds),
                    max(rounds),
                )
    for pair, (median, low, high) in found.items():
        print(f"{pair}: {median:.2f}× ({low:.2f} to {high:.2f})")
    return found


def _speeds(speeds: dict[str, float]) -> str:
    return "tokens/s: " + "; ".join(
        f"{name} {speed:.1f}" for name, speed in speeds.items()
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=decode_peers.MODELS, default="gpt2")
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu"
    )
    parser.add_argument(
        "--dtype", choices=("float32", "float16", "bfloat16"), default="float32"
    )
    parser.add_argument(
        "--weights",
        choices=("float16", "bfloat16"),
        help="one more decoder, its weights in this",
    )
    parser.add_argument("--prompt", type=int, default=16, help="tokens of the prompt")
    parser.add_argument("--new", type=int, default=64, help="tokens to generate")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--ctranslate2", action="store_true", help="against CTranslate2 too"
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="without transformers: against reading all again a token",
    )
    parser.add_argument("--json", help="write the numbers to this file")
    asked = parser.parse_args()
    if asked.alone and asked.ctranslate2:
        parser.error(
            "CTranslate2 takes its weights from transformers: not with --alone"
        )
    if asked.weights and asked.device != "cpu":
        parser.error(
            "--weights is for the CPU: on a GPU the whole model is narrow, with --dtype"
        )
    return asked


@torch.inference_mode()
def main() -> None:
    asked = arguments()
    make = decode_peers.plain_model if asked.alone else decode_peers.transformers_model
    model = make(asked.model, asked.device, getattr(torch, asked.dtype), asked.seed)
    capacity = asked.prompt + asked.new
    fast = FastDecoder(model, capacity, asked.batch)
    generator = torch.Generator().manual_seed(asked.seed)
    prompt = torch.randint(
        model.config.vocab_size, (asked.batch, asked.prompt), generator=generator
    ).to(asked.device)

    decoders: dict[str, Callable[[], Tensor]] = {}
    if asked.alone:
        decoders["reading again"] = partial(read_again, fast, prompt, asked.new)
    else:
        decoders["transformers"] = partial(
            decode_peers.generate, model, prompt, asked.new
        )
    if asked.ctranslate2:
        decoders["CTranslate2"] = decode_peers.CTranslate2(model, prompt, asked.new)
    mine = ["ours"]
    decoders["ours"] = partial(fast.generate, prompt, asked.new)
    print(
        f"{asked.model}, {asked.dtype}, {asked.device}, batch {asked.batch}, "
        f"{torch.get_num_threads()} threads"
    )
    ids = decoders["ours"]()
    if asked.weights:
        mine.append(f"ours, weights in {asked.weights}")
        narrow = FastDecoder(
            model, capacity, asked.batch, getattr(torch, asked.weights)
        )
        decoders[mine[1]] = partial(narrow.generate, prompt, asked.new)
        other = int((narrow.choices(ids, asked.prompt) != ids[:, asked.prompt :]).sum())
        print(
            f"{mine[1]}: after the same text {other} of {asked.batch * asked.new} tokens are "
            "chosen otherwise"
        )

    agree = {
        name: agreement(decode(), ids, asked.prompt)
        for name, decode in decoders.items()
        if name != "ours"
    }
    for name, count in agree.items():
        print(
            f"{name}: {count} of {asked.new} new tokens as ours before the first that differs"
        )
    print(
        f"{len(set(ids[0, asked.prompt :].tolist()))} different tokens in the first row"
    )

    tokens = asked.batch * asked.new
    seconds = in_turns(decoders, asked.rounds, tokens)
    medians = {
        name: tokens / statistics.median(times) for name, times in seconds.items()
    }
    ratios = ratios_of(seconds, mine)
    if asked.json:
        report = {
            "model": asked.model,
            "dtype": asked.dtype,
            "device": asked.device,
            "batch": asked.batch,
            "new_tokens": asked.new,
            "tokens_that_agree": agree,
            "tokens_a_second": medians,
            "ratios": ratios,
        }
        Path(asked.json).write_text(json.dumps(report, indent=1), encoding="utf-8")
    if asked.dtype == "float32" and any(
        count < asked.new for name, count in agree.items() if name not in mine
    ):
        raise SystemExit("the decoders do not give the same tokens")


if __name__ == "__main__":
    main()
