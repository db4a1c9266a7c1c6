"""Tokens a second of a fast cached decoder, against `transformers`' GPT-2 `generate`.

Both decode greedily, at batch 1 by default, with the same weights (random, from a fixed seed) in the same precision,
and must give the same tokens. What makes the fast decoder fast stands in the a8 notebook, "The fast path":

* the cache is static: its memory never moves, and a step writes one slot of it;
* reading the weights is what a step costs. On one core a product is fastest as one row times `[in, out]`; MKL keeps to
  that core even where there are more, so on several cores each product is oneDNN's, with its weights reordered once
  (the operation that `torch.compile` puts there);
* a step makes few tensors and asks for nothing: the next token is chosen inside;
* on a GPU the whole step is recorded once as a CUDA graph and replayed; its position is a tensor.

`transformers` is needed by this file only, and not with `--alone`: `pip install transformers`. Run

    python benchmarks/decode.py                          # gpt2 on the CPU, or on the GPU where there is one
    python benchmarks/decode.py --model gpt2-xl --device cuda --dtype float16
    python benchmarks/decode.py --alone                  # without transformers: against reading all again a token

It prints one line a round and the medians. The two decoders take turns, so that a busy machine disturbs both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

MODELS = {"tiny": (4, 128, 4), "gpt2": (12, 768, 12), "gpt2-medium": (24, 1024, 16), "gpt2-xl": (48, 1600, 25)}
"""Layers, width, heads."""


class Product:
    """x [..., in] -> x W + b [..., out], for few rows.

    Args:
        weight: [in, out].
        bias: [out], or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.bias = bias
        self.out = weight.shape[1]
        on_cores = weight.device.type == "cpu" and weight.dtype == torch.float32 and torch.get_num_threads() > 1
        self.by_onednn = on_cores and torch.backends.mkldnn.is_available()
        if self.by_onednn:
            self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.T.contiguous(), 1)
        else:
            self.weight = weight.contiguous()

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        if self.by_onednn:
            y: Tensor = torch.ops.mkldnn._linear_pointwise(rows, self.weight, self.bias, "none", [], "")
        elif self.bias is None:
            y = rows @ self.weight
        else:
            y = torch.addmm(self.bias, rows, self.weight)
        return y.view(*x.shape[:-1], self.out)


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
    """

    def __init__(self, model: Any, capacity: int, batch: int) -> None:
        config, body = model.config, model.transformer
        self.heads = config.n_head
        self.width = config.n_embd
        self.eps = config.layer_norm_epsilon
        self.embed = body.wte.weight.detach()  # [V, D]
        self.unembed = Product(self.embed.T)  # the same numbers, laid out for the product
        self.table = body.wpe.weight.detach()  # [context, D]
        self.final = _pair(body.ln_f)
        self.layers = [
            Layer(
                _pair(block.ln_1), Product(*_pair(block.attn.c_attn)), Product(*_pair(block.attn.c_proj)),
                _pair(block.ln_2), Product(*_pair(block.mlp.c_fc)), Product(*_pair(block.mlp.c_proj)),
            )
            for block in body.h
        ]  # fmt: skip
        room = (len(self.layers), batch, self.heads, capacity, self.width // self.heads)
        self.keys = torch.zeros(room, dtype=self.embed.dtype, device=self.embed.device)
        self.values = torch.zeros_like(self.keys)
        self.capacity = capacity
        self.graph: torch.cuda.CUDAGraph | None = None

    def generate(self, prompt: Tensor, num_new: int) -> Tensor:
        """int64 [B, N] -> [B, N + num_new]."""
        n = prompt.shape[1]
        if n + num_new > self.capacity + 1:
            raise ValueError(f"{n} + {num_new} tokens, and the cache holds {self.capacity}")
        ids = torch.empty(prompt.shape[0], n + num_new, dtype=torch.int64, device=prompt.device)
        ids[:, :n] = prompt
        ids[:, n] = self._read(prompt)
        if prompt.is_cuda:
            self._replay(ids, n, num_new)
        else:
            for position in range(n, n + num_new - 1):
                ids[:, position + 1] = self._step(ids[:, position], position)
        return ids

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
            y = F.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end])  # [B, H, 1, d]
            x = self._rest(x, y.reshape(len(x), self.width), layer)
        return self._choose(x)

    def _replay(self, ids: Tensor, n: int, num_new: int) -> None:
        """The steps on a GPU: one recorded program, whose token and position lie in memory that it updates itself."""
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
        saved = self.keys.clone(), self.values.clone()  # warming up writes into slot 0 and the next ones
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
        """One token a row with fixed shapes: attention over all slots, the empty ones hidden by a mask."""
        visible = (self.slots <= self.position).view(1, 1, 1, -1)
        x = F.embedding(self.token, self.embed) + self.table.index_select(0, self.position)
        for i, layer in enumerate(self.layers):
            q, k, v = self._project(x[:, None], layer)
            self.keys[i].index_copy_(2, self.position, k)
            self.values[i].index_copy_(2, self.position, v)
            y = F.scaled_dot_product_attention(q, self.keys[i], self.values[i], attn_mask=visible)
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
        return self.unembed(F.layer_norm(x, (self.width,), *self.final, self.eps)).argmax(dim=-1)


def _pair(module: Any) -> tuple[Tensor, Tensor]:
    return module.weight.detach(), module.bias.detach()


def library_model(name: str, device: str, dtype: torch.dtype, seed: int) -> Any:
    """`transformers`' model with random weights: larger than its own start, so that tokens do not repeat."""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError as error:
        raise SystemExit("this benchmark compares with transformers: pip install transformers") from error
    layers, width, heads = MODELS[name]
    torch.manual_seed(seed)
    config = GPT2Config(n_layer=layers, n_embd=width, n_head=heads, initializer_range=0.08)
    return GPT2LMHeadModel(config).eval().to(device, dtype)


def plain_model(name: str, device: str, dtype: torch.dtype, seed: int) -> Any:
    """Random weights under the names that `transformers` gives them, without it."""
    layers, width, heads = MODELS[name]
    generator = torch.Generator().manual_seed(seed)

    def weights(*shape: int) -> Tensor:
        return (torch.randn(*shape, generator=generator) * 0.08).to(device, dtype)

    def product(rows: int, columns: int) -> SimpleNamespace:
        return SimpleNamespace(weight=weights(rows, columns), bias=weights(columns))

    def norm() -> SimpleNamespace:
        return SimpleNamespace(weight=1 + weights(width), bias=weights(width))

    blocks = [
        SimpleNamespace(
            ln_1=norm(),
            ln_2=norm(),
            attn=SimpleNamespace(c_attn=product(width, 3 * width), c_proj=product(width, width)),
            mlp=SimpleNamespace(c_fc=product(width, 4 * width), c_proj=product(4 * width, width)),
        )
        for _ in range(layers)
    ]
    tables = {"wte": SimpleNamespace(weight=weights(50257, width)), "wpe": SimpleNamespace(weight=weights(1024, width))}
    config = SimpleNamespace(n_head=heads, n_embd=width, layer_norm_epsilon=1e-5, vocab_size=50257)
    return SimpleNamespace(config=config, transformer=SimpleNamespace(h=blocks, ln_f=norm(), **tables))


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


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    parser.add_argument("--prompt", type=int, default=16, help="tokens of the prompt")
    parser.add_argument("--new", type=int, default=64, help="tokens to generate")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", action="store_true", help="without transformers: against reading all again a token")
    parser.add_argument("--json", help="write the numbers to this file")
    asked = parser.parse_args()

    make = plain_model if asked.alone else library_model
    other = "reading again" if asked.alone else "transformers"
    model = make(asked.model, asked.device, getattr(torch, asked.dtype), asked.seed)
    fast = FastDecoder(model, asked.prompt + asked.new, asked.batch)
    generator = torch.Generator().manual_seed(asked.seed)
    prompt = torch.randint(model.config.vocab_size, (asked.batch, asked.prompt), generator=generator).to(asked.device)
    everything = torch.ones_like(prompt)

    def whole() -> Tensor:
        if asked.alone:
            return read_again(fast, prompt, asked.new)
        ids: Tensor = model.generate(
            prompt, attention_mask=everything, max_new_tokens=asked.new, min_new_tokens=asked.new, do_sample=False,
            pad_token_id=model.config.eos_token_id,
        )  # fmt: skip
        return ids

    def ours() -> Tensor:
        return fast.generate(prompt, asked.new)

    _, theirs = timed(whole)
    _, mine = timed(ours)
    agree = int((theirs == mine).all(dim=0).long().cumprod(dim=0).sum()) - asked.prompt
    different = len(set(mine[0, asked.prompt :].tolist()))
    print(f"{asked.model}, {asked.dtype}, {asked.device}, batch {asked.batch}, {torch.get_num_threads()} threads")
    print(f"{agree} of {asked.new} new tokens agree; {different} different tokens in the first row")
    ratios, speeds = [], []
    for round_ in range(1, asked.rounds + 1):
        slow, _ = timed(whole)
        quick, _ = timed(ours)
        ratios.append(slow / quick)
        speeds.append((asked.batch * asked.new / slow, asked.batch * asked.new / quick))
        print(f"round {round_}: {other} {speeds[-1][0]:.1f} tokens/s, ours {speeds[-1][1]:.1f}, {ratios[-1]:.2f}×")
    medians = [statistics.median(pair[i] for pair in speeds) for i in (0, 1)]
    print(f"median: {other} {medians[0]:.1f} tokens/s, ours {medians[1]:.1f}, {statistics.median(ratios):.2f}×")
    if asked.json:
        report = {
            "model": asked.model,
            "dtype": asked.dtype,
            "device": asked.device,
            "batch": asked.batch,
            "against": other,
            "tokens_that_agree": [agree, asked.new],
            "tokens_a_second": {"ours": medians[1], other: medians[0]},
            "ratio": statistics.median(ratios),
        }
        Path(asked.json).write_text(json.dumps(report, indent=1), encoding="utf-8")
    if agree < asked.new and asked.dtype == "float32":
        raise SystemExit("the two decoders do not give the same tokens")


if __name__ == "__main__":
    main()
