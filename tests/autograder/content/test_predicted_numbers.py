"""Every predicted number of the notebooks, worked out once more from the text of its question."""

from __future__ import annotations

import math
import re
from pathlib import Path

from autograder.authoring.predictions_source import read_predictions
from autograder.authoring.source_notebook import read_source
from autograder.course import load_course

COURSE = load_course(Path(__file__).resolve().parents[3])


def shares(*scores: float) -> list[float]:
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def byte_pair_tokens(word: list[int], merges: list[tuple[int, int]]) -> list[int]:
    for number, pair in enumerate(merges):
        joined: list[int] = []
        for part in word:
            if joined and (joined[-1], part) == pair:
                joined[-1] = 256 + number
            else:
                joined.append(part)
        word = joined
    return word


def surviving_rows() -> float:
    return sum(0.5**k for k in range(64))


def pairs_of_window(words: int, window: int) -> int:
    return sum(
        1 for i in range(words) for j in range(words) if 0 < abs(i - j) <= window
    )


MERGED = shares(0, math.log(2), 2 * math.log(2))
NUMBERS: dict[str, float] = {
    "a1 one_hot": math.dist((1, 0), (0, 1)),
    "a1 cosine_similarity": (3 * 4 + 4 * 3) / (math.hypot(3, 4) * math.hypot(4, 3)),
    "a1 nearest": max(range(4), key=lambda i: 2 * (1, 10, 0, -1)[i]),
    "a1 softmax": shares(0, math.log(2), math.log(5))[2],
    "a1 skip_gram_probabilities": MERGED[2],
    "a1 skip_gram_pairs": pairs_of_window(6, 2),
    "a1 skip_gram_loss": -(math.log(MERGED[2]) + math.log(MERGED[0])) / 2,
    "a1 encode_bpe": len(["s", "ing", "ing"]),
    "a1 embed": 1 + 1 + 1,
    "a2 additive_scores": 2 * math.tanh(math.inf),
    "a2 attend": 0.3 * 0 + 0.5 * 10 + 0.2 * 10,
    "a2 seq2seq_decode": sum(w * h for w, h in zip(shares(0, 0), (1, 3), strict=True)),
    "a2 score_std": math.sqrt(1024) / math.sqrt(512),
    "a2 compare_layers": math.ceil((1000 - 1) / (3 - 1)),
    "a3 simple_self_attention": max((1, 2, 3), key=lambda i: {1: 1, 2: 1, 3: 2}[i]),
    "a3 self_attention": 0.25 * 8 + 0.75 * 0,
    "a3 causal_mask": sum(not any(j <= i + 2 - 5 for j in range(2)) for i in range(5)),
    "a3 sinusoidal_positions": 10000 ** (-2 / 4),
    "a3 product_mask_damage": surviving_rows(),
    "a4 split_heads": 3 * 6 + 0,
    "a4 merge_heads": [0, 1, 2, 6, 7, 8][3],
    "a4 fused_qkv": 1 * 2 * 1,
    "a4 multi_head_attention": shares(math.log(3), 0)[0] * 4,
    "a4 grouped_query_attention": 2 // (4 // 2),
    "a4 attention_flops": 0,
    "a4 attention_matrix_bytes": 2,
    "a5 layer_norm": 1.5 / math.sqrt((1.5**2 + 1.5**2) / 3),
    "a5 layer_norm_backward": 0,
    "a5 rms_norm": 5 / math.sqrt((25 + 25 + 25) / 3),
    "a5 swiglu_hidden": math.ceil(8 * 768 / 3),
    "a5 rotary_positions": 100 * 10000 ** (-2 / 4),
    "a6 count_parameters": 100
    * (50257 * 768)
    / ((50257 + 1024) * 768 + 12 * (12 * 768**2 + 13 * 768) + 2 * 768),
    "a6 train_step": 5 - 1,
    "a6 filtered_probabilities": 1 if 0.5 / (0.5 + 0.3 + 0.15) >= 0.51 else 2,
    "a6 generate": min(3 + 3, 5),
    "a6 encoder_decoder": 1,
    "a6 patchify": (4 // 2) * (6 // 2),
    "a6 attention_distance": (0 + 1 + 1 + math.hypot(1, 1)) / 4,
    "a7 online_softmax_stats": 1 / 4 + 2 / 4 + 4 / 4,
    "a7 merge_stats": (1 * 2 + 3 * 4) / (1 + 3),
    "a7 tiled_attention": (1 * 8 + 3 * 0 + 4 * 4) / 8,
    "a7 tiled_attention_backward": 3 / 8 * (0 - 3),
    "a7 hbm_traffic": (4 * 64 + 4 * 4096) / (2 * 64 + 2 * 64 * 4096 // 128),
    "a7 add_bias": math.ceil(7 / 4) * math.ceil(11 / 8),
    "a7 softmax_rows": 1 / 8,
    "a7 roofline": 64 * 4 / 4,
    "a7 growth_of_costs": (2 * 2 + 2 * 2 * 2) / (2 + 2),
    "a8 KVCache": 1 + 2,
    "a8 ragged_positions": sum((False, False, True, True)),
    "a8 decode_step": sum(n * (n + 1) // 2 for n in range(1000, 1025))
    / (1024 * 1025 // 2),
    "a8 generate_cached": 100 + 99,
    "a8 kv_cache_bytes": 2 * 96 * 96 * 128 * 2048 * 2 / 2**30,
    "a8 SlidingWindowCache": min(6, 3 - 1) + 1,
    "a9 train_byte_bpe": len(byte_pair_tokens([97] * 4, [(97, 97), (256, 256)])),
    "a9 bpe_encode": byte_pair_tokens([97] * 5, [(97, 97), (256, 97)])[-1],
    "a9 gelu": 0.5
    * -100
    * (1 + math.tanh(math.sqrt(2 / math.pi) * (-100 + 0.044715 * (-100) ** 3))),
    "a9 sample_windows": 5 - 4,
    "a9 learning_rate": 10 + (110 - 10) / 2,
    "a9 clip_gradients": 4 * min(1, 1 / math.hypot(3, 0, 4)),
    "a9 adamw_step": 1 - 0.1 * (0.001 / math.sqrt(0.001**2)),
    "a9 perplexity": math.ceil((10 - 1) / 4),
    "a9 train": math.log(256 + 512),
    "a9 induction_score": (1 / 4 + 1 / 5 + 1 / 6) / 3,
    "a9 from_gpt2": 2 * 12 * 64 + 3 * 64,
}


def test_every_predicted_number_is_the_one_worked_out_again() -> None:
    differing = {}
    for assignment in COURSE.assignments():
        for name, prediction in read_predictions(read_source(assignment)).items():
            title = f"{assignment.name.partition('_')[0]} {name}"
            if prediction.choices or title not in NUMBERS:
                continue
            allowed = max(
                prediction.atol, 1e-4
            )  # answers are written with four decimals
            if abs(float(prediction.answer) - NUMBERS[title]) > allowed:
                differing[title] = (prediction.answer, NUMBERS[title])
    assert differing == {}


def test_no_number_of_the_first_nine_is_left_out() -> None:
    names = {
        f"{assignment.name.partition('_')[0]} {name}"
        for assignment in COURSE.assignments()
        for name, prediction in read_predictions(read_source(assignment)).items()
        if not prediction.choices and re.match(r"a\d_", assignment.name)
    }
    assert names <= set(NUMBERS)
