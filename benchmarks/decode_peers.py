"""What benchmarks/decode.py compares with: models with random weights, and the decoders of other
libraries.

`transformers` and CTranslate2 are loaded where they are asked for. CTranslate2 works on words, not
on numbers, and two things of it give other tokens with the same weights: the vocabulary must name
token i by its i-th word (here "i"), and its answer repeats the prompt unless told not to.
"""

from __future__ import annotations

import tempfile
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

MODELS = {
    "tiny": (4, 128, 4),
    "gpt2": (12, 768, 12),
    "gpt2-medium": (24, 1024, 16),
    "gpt2-xl": (48, 1600, 25),
}
"""Layers, width, heads."""


def transformers_model(name: str, device: str, dtype: torch.dtype, seed: int) -> Any:
    """`transformers`' model with random weights: larger than its own start, so that tokens do not
    repeat.
    """
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError as error:
        raise SystemExit(
            "this benchmark compares with transformers: pip install transformers"
        ) from error
    layers, width, heads = MODELS[name]
    torch.manual_seed(seed)
    config = GPT2Config(
        n_layer=layers, n_embd=width, n_head=heads, initializer_range=0.08
    )
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
            attn=SimpleNamespace(
                c_attn=product(width, 3 * width), c_proj=product(width, width)
            ),
            mlp=SimpleNamespace(
                c_fc=product(width, 4 * width), c_proj=product(4 * width, width)
            ),
        )
        for _ in range(layers)
    ]
    tables = {
        "wte": SimpleNamespace(weight=weights(50257, width)),
        "wpe": SimpleNamespace(weight=weights(1024, width)),
    }
    config = SimpleNamespace(
        n_head=heads, n_embd=width, layer_norm_epsilon=1e-5, vocab_size=50257
    )
    return SimpleNamespace(
        config=config, transformer=SimpleNamespace(h=blocks, ln_f=norm(), **tables)
    )


def generate(model: Any, prompt: Tensor, num_new: int) -> Tensor:
    """Greedy decoding by `transformers`. int64 [B, N] -> [B, N + num_new]."""
    ids: Tensor = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=num_new,
        min_new_tokens=num_new,
        do_sample=False,
        pad_token_id=model.config.eos_token_id,
    )
    return ids


class CTranslate2:
    """Greedy decoding by CTranslate2: its own copy of a model's weights, in the same precision, on
    as many threads.

    Args:
        model: a `GPT2LMHeadModel`.
        prompt: int64 [B, N].
        num_new: tokens to generate for each row.
    """

    def __init__(self, model: Any, prompt: Tensor, num_new: int) -> None:
        try:
            import ctranslate2
            from ctranslate2.converters.transformers import GPT2Loader
        except ImportError as error:
            raise SystemExit(
                "--ctranslate2 compares with CTranslate2: pip install ctranslate2"
            ) from error
        words = {str(i): i for i in range(model.config.vocab_size)}
        last = str(model.config.vocab_size - 1)
        tokenizer = SimpleNamespace(
            get_vocab=lambda: words, bos_token=last, eos_token=last, unk_token=last
        )
        spec = GPT2Loader()(model, tokenizer)
        spec.validate()
        dtype = str(model.dtype).removeprefix("torch.")
        with tempfile.TemporaryDirectory() as folder:
            spec.save(folder)
            self.generator = ctranslate2.Generator(
                folder,
                device=prompt.device.type,
                compute_type=dtype,
                intra_threads=torch.get_num_threads(),
            )
        self.prompt = prompt
        self.words = [[str(i) for i in row] for row in prompt.tolist()]
        self.num_new = num_new

    def __call__(self) -> Tensor:
        """int64 [B, N + num_new]."""
        rows = self.generator.generate_batch(
            self.words,
            max_length=self.num_new,
            min_length=self.num_new,
            beam_size=1,
            sampling_topk=1,
            include_prompt_in_result=False,
        )
        return torch.cat(
            [
                self.prompt,
                torch.tensor([row.sequences_ids[0] for row in rows]).to(self.prompt),
            ],
            dim=1,
        )
