"""Attention on a GPU: are the fast kernels right, how fast are they, and how much memory do they
take?

    python benchmarks/gpu_attention.py                  everything, on a GPU, in under 4 minutes
    python benchmarks/gpu_attention.py --only speed     one part of it: right, memory or speed
    python benchmarks/gpu_attention.py --check-cpu      only whether they are right, at tiny sizes

Needs torch and triton. Measured against the backends of scaled_dot_product_attention (flash, cuDNN,
math) in the same run, with bfloat16 and float16, d = 64 and 128, N = 1024 to 16384 (16384 tokens in
a batch), causal and not. Operations are counted as 4 N² d a head forward and 10 N² d backward, half
of it for causal.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from fast_attention import Config

HEADS_DIMENSION = 2048  # H * d, as in the FlashAttention papers
TOKENS = 16384  # in a batch
LENGTHS = (1024, 2048, 4096, 8192, 16384)
LONGEST = 131072
FLUSHED_BYTES = 2 << 30
"""Forty times the cache of an H200, half a millisecond of writing."""
BACKENDS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "math": "MATH"}
Row = dict[str, Any]
Size = tuple[int, int, bool, str]
"""N, d, causal, dtype."""


def main() -> int:
    arguments = _arguments()
    if arguments.check_cpu:
        os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
    sys.path.insert(0, str(Path(__file__).parent))
    import torch

    if arguments.check_cpu:
        wrong = check_cpu()
        _write(arguments.json, {"device": "cpu", "wrong": wrong})
        return 1 if wrong else 0
    if not torch.cuda.is_available():
        print(
            "no GPU here: --check-cpu checks the kernels in the interpreter",
            file=sys.stderr,
        )
        return 2
    started = time.monotonic()
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {_triton_version()}"
    )
    report: dict[str, Any] = {"device": torch.cuda.get_device_name()}
    save = partial(_write, arguments.json, report)
    if arguments.only in (None, "right"):
        report["wrong"] = check_gpu()
        save()
    if arguments.only in (None, "memory"):
        report["memory"] = []
        measure_memory(report["memory"], save)
    if arguments.only in (None, "speed"):
        report["speed"] = []
        measure_speed(report["speed"], save, started + arguments.seconds)
        report["targets"] = summarize(report["speed"])
    save()
    print(f"{time.monotonic() - started:.0f} s in all")
    return 1 if report.get("wrong") else 0


# right or wrong


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor, causal: bool
) -> tuple[torch.Tensor, ...]:
    """(o, lse, dq, dk, dv) in float64 by the whole matrix."""
    import torch

    q, k, v = (t.detach().double().requires_grad_() for t in (q, k, v))
    n_q, n_k = q.shape[2], k.shape[2]
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    seen = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device)
    if causal:
        seen = seen.tril(n_k - n_q)
    s = s.masked_fill(~seen, -math.inf)
    empty = ~seen.any(dim=-1, keepdim=True)
    o = torch.softmax(s.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0) @ v
    grads = torch.autograd.grad(o, (q, k, v), do.double())
    return (o.detach(), torch.logsumexp(s, dim=-1).detach(), *grads)


def compare(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    do: torch.Tensor,
    causal: bool,
    forward_config: Config,
    backward_config: Config,
    tolerance: float,
) -> list[str]:
    """Names of what is further from float64 than `tolerance`, relative to the largest element."""
    import fast_attention

    o, lse = fast_attention.forward(q, k, v, causal, forward_config)
    grads = fast_attention.backward(q, k, v, o, lse, do, causal, backward_config)
    wrong = []
    for name, mine, theirs in zip(
        ("o", "lse", "dq", "dk", "dv"),
        (o, lse, *grads),
        reference(q, k, v, do, causal),
        strict=True,
    ):
        finite = theirs.isfinite()
        same_infinities = bool((mine.double()[~finite] == theirs[~finite]).all())
        error = (mine.double() - theirs)[finite].abs().max().item()
        largest = max(theirs[finite].abs().max().item(), 1.0)
        if not same_infinities or not error <= tolerance * largest:
            wrong.append(f"{name} (off by {error:.2g})")
    return wrong


def check_cpu() -> list[str]:
    """Tiny sizes in the interpreter: every path of every kernel."""
    import torch
    from fast_attention import Config

    plain, small = Config(32, 16, 4, 1), Config(16, 32, 4, 1)
    described = Config(32, 16, 4, 1, descriptors=True)
    cases = [
        (64, 64, 16, plain),
        (40, 40, 16, plain),
        (24, 56, 32, small),
        (56, 24, 16, small),
        (64, 96, 32, described),
    ]
    wrong = []
    for (n_q, n_k, d, config), causal, dtype in itertools.product(
        cases, (False, True), ("float32", "float16")
    ):
        generator = torch.Generator().manual_seed(n_q)
        q, k, v, do = (
            torch.randn(1, 2, n, d, generator=generator).to(getattr(torch, dtype))
            for n in (n_q, n_k, n_k, n_q)
        )
        found = compare(
            q, k, v, do, causal, config, small, 1e-5 if dtype == "float32" else 4e-3
        )
        case = f"N_q={n_q} N_k={n_k} d={d} causal={causal} {dtype} descriptors={config.descriptors}"
        print(f"{case}: {'right' if not found else 'WRONG: ' + ', '.join(found)}")
        wrong += [f"{case}: {what}" for what in found]
    return wrong


def check_gpu() -> list[str]:
    """Ragged, short and unequal lengths, both dtypes, every configuration that will be measured."""
    import torch
    from fast_attention import BACKWARD, FORWARD

    wrong = []
    for d, (n_q, n_k), causal in itertools.product(
        (64, 128), ((1024, 1024), (333, 1000), (200, 77)), (False, True)
    ):
        for dtype in (torch.bfloat16, torch.float16):
            torch.manual_seed(n_q)
            q, k, v, do = (
                torch.randn(1, 2, n, d, device="cuda", dtype=dtype)
                for n in (n_q, n_k, n_k, n_q)
            )
            found = compare(
                q,
                k,
                v,
                do,
                causal,
                FORWARD[d][0],
                BACKWARD[d][0],
                2e-2 if dtype == torch.bfloat16 else 4e-3,
            )
            wrong += [
                f"N_q={n_q} N_k={n_k} d={d} causal={causal} {dtype}: {what}"
                for what in found
            ]
    print("right against float64" if not wrong else "WRONG:\n  " + "\n  ".join(wrong))
    return wrong


# speed


def measure_speed(rows: list[Row], save: Callable[[], None], deadline: float) -> None:
    """TFLOP/s of every way, forward and backward, as long as there is time. `save` is called after
    each row.
    """
    import torch

    print(
        f"{'':30}"
        + "".join(f"{name:>22}" for name in ("kernel", *BACKENDS))
        + "   TFLOP/s forward / backward"
    )
    best: dict[tuple[int, bool], tuple[Config | None, Config | None]] = {}
    # the sizes that the targets name first, so that a slow machine leaves out the least
    order = sorted(
        itertools.product(LENGTHS, (64, 128), (False, True), ("bfloat16", "float16")),
        key=_importance,
    )
    for n, d, causal, dtype in order:
        if time.monotonic() > deadline:
            print(f"out of time: {len(order) - len(rows)} sizes were not measured")
            break
        torch.manual_seed(0)
        shape = (TOKENS // n, HEADS_DIMENSION // d, n, d)
        q, k, v, do = (
            torch.randn(*shape, device="cuda", dtype=getattr(torch, dtype))
            for _ in range(4)
        )
        if (d, causal) not in best:
            best[d, causal] = tune(q, k, v, do, causal, deadline)
        row: Row = {"n": n, "d": d, "causal": causal, "dtype": dtype}
        row["kernel"] = time_kernel(q, k, v, do, causal, *best[d, causal])
        for name in BACKENDS:
            too_large = name == "math" and n > 4096
            row[name] = (
                (None, None) if too_large else time_sdpa(q, k, v, do, causal, name)
            )
        rows.append(row)
        save()
        cells = "".join(f"{_both(row[name]):>22}" for name in ("kernel", *BACKENDS))
        print(
            f"d={d:<4} N={n:<6} {'causal' if causal else 'full':7}{dtype:10}{cells}",
            flush=True,
        )


def tune(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    do: torch.Tensor,
    causal: bool,
    deadline: float,
) -> tuple[Config | None, Config | None]:
    """The fastest configurations at this shape, forward and backward; None where none works."""
    import fast_attention

    d = q.shape[-1]
    forward = fastest(
        fast_attention.FORWARD[d],
        lambda config: fast_attention.forward(q, k, v, causal, config),
        deadline,
    )
    if forward is None:
        return None, None
    o, lse = fast_attention.forward(q, k, v, causal, forward)
    backward = fastest(
        fast_attention.BACKWARD[d],
        lambda config: fast_attention.backward(q, k, v, o, lse, do, causal, config),
        deadline,
    )
    print(f"  d={d} causal={causal}: forward {forward}, backward {backward}")
    return forward, backward


def fastest(
    configs: Sequence[Config],
    run: Callable[[Config], tuple[torch.Tensor, ...]],
    deadline: float,
    measure: Callable[[Callable[[], object]], float] | None = None,
) -> Config | None:
    """The fastest configuration of those whose results are the first one's; None where none works.

    Args:
        measure: the seconds of a call; the usual clock where there is none.
    """
    measure = measure or partial(_seconds, repeats=5)
    speeds: dict[Config, float] = {}
    first_results: tuple[torch.Tensor, ...] | None = None
    for config in configs:
        try:
            results = run(config)
            first_results = first_results or results
            if not all(map(_is_close, results, first_results)):
                raise RuntimeError("another result than the first configuration")
            speeds[config] = measure(partial(run, config))
        except Exception as error:  # whatever this version of Triton cannot do
            line = str(error).strip().partition("\n")[0]
            print(f"  left out: {config}: {type(error).__name__}: {line}")
        if speeds and time.monotonic() > deadline:
            break
    return min(speeds, key=speeds.__getitem__) if speeds else None


def _is_close(result: torch.Tensor, expected: torch.Tensor) -> bool:
    """Within 2 % of the largest element, and infinite at the same places."""
    finite = expected.isfinite()
    if not bool((result[~finite] == expected[~finite]).all()):
        return False
    largest = max(expected[finite].abs().max().item(), 1e-6)
    difference = (result.float() - expected.float())[finite].abs().max().item()
    return bool(difference <= 2e-2 * largest)


def time_kernel(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    do: torch.Tensor,
    causal: bool,
    forward_config: Config | None,
    backward_config: Config | None,
) -> tuple[float | None, float | None]:
    import fast_attention

    if forward_config is None:
        return None, None
    o, lse = fast_attention.forward(q, k, v, causal, forward_config)
    forward = _seconds(lambda: fast_attention.forward(q, k, v, causal, forward_config))
    if backward_config is None:
        return _teraflops(q, causal, forward, forward)[0], None
    backward = _seconds(
        lambda: fast_attention.backward(q, k, v, o, lse, do, causal, backward_config)
    )
    return _teraflops(q, causal, forward, backward)


def time_sdpa(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    do: torch.Tensor,
    causal: bool,
    backend: str,
) -> tuple[float, float] | tuple[None, None]:
    """(forward, backward) of one backend; (None, None) where it refuses."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    attention = torch.nn.functional.scaled_dot_product_attention
    q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
    try:
        with sdpa_kernel(getattr(SDPBackend, BACKENDS[backend])):
            with torch.no_grad():
                forward = _seconds(lambda: attention(q, k, v, is_causal=causal))
            o = attention(q, k, v, is_causal=causal)
            backward = _seconds(
                lambda: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
            )
    except RuntimeError:  # not built in, or out of memory
        torch.cuda.empty_cache()
        return None, None
    return _teraflops(q, causal, forward, backward)


def summarize(rows: list[Row]) -> list[Row]:
    """The smallest and the middle ratios, against the targets of an H100."""
    found = []
    targets = {
        ("forward", "flash", 64): 1.4,
        ("forward", "flash", 128): 1.4,
        ("forward", "cudnn", 64): 0.95,
        ("forward", "cudnn", 128): 0.85,
        ("backward", "flash", 64): 1.2,
        ("backward", "flash", 128): 1.2,
    }
    for (way, other, d), target in targets.items():
        at = 0 if way == "forward" else 1
        ratios = [
            row["kernel"][at] / row[other][at]
            for row in rows
            if row["d"] == d and row[other][at] and row["kernel"][at]
        ]
        if ratios:
            least, middle = min(ratios), sorted(ratios)[len(ratios) // 2]
            met = "met everywhere" if least >= target else "not met everywhere"
            print(
                f"{way} against {other}, d={d}: least {least:.2f}, median {middle:.2f}; target "
                f"{target}: {met}"
            )
            found.append(
                {
                    "way": way,
                    "other": other,
                    "d": d,
                    "least": least,
                    "median": middle,
                    "target": target,
                }
            )
    return found


# memory


def measure_memory(rows: list[Row], save: Callable[[], None]) -> None:
    """Bytes above the inputs at the peak of forward and backward, one head of d = 64, against the
    naive way. `save` is called after each row.
    """
    import fast_attention
    import torch

    for n in (4096, 16384, 65536, LONGEST):
        q, k, v, do = (
            torch.randn(1, 1, n, 64, device="cuda", dtype=torch.bfloat16)
            for _ in range(4)
        )
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        o, lse = fast_attention.forward(q, k, v, True, fast_attention.FORWARD[64][0])
        grads = fast_attention.backward(
            q, k, v, o, lse, do, True, fast_attention.BACKWARD[64][0]
        )
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - before
        finite = bool(o.isfinite().all()) and all(
            bool(g.isfinite().all()) for g in grads
        )
        rows.append(
            {"n": n, "bytes": peak, "bytes_a_token": peak / n, "finite": finite}
        )
        save()
        print(
            f"N={n:<7} peak {peak / 1e6:.1f} MB, {peak / n:.0f} bytes/token; S alone would be "
            f"{2 * n * n / 1e9:.1f} GB"
        )


# small things


def _seconds(call: Callable[[], object], repeats: int = 10) -> float:
    """Median time of one call, by the GPU's own clock, after two calls to warm up.

    Before each call the cache is overwritten, since an earlier call has left its tensors there.
    While the GPU writes, Python puts the call's kernels into the queue: no launch is waited for.
    """
    import torch

    for _ in range(2):
        call()
    cache = torch.empty(FLUSHED_BYTES, dtype=torch.int8, device="cuda")
    events = [
        [torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)
    ]
    for start, end in events:
        cache.zero_()
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    milliseconds: list[float] = sorted(start.elapsed_time(end) for start, end in events)
    return milliseconds[repeats // 2] / 1e3


def _teraflops(
    q: torch.Tensor, causal: bool, forward: float, backward: float
) -> tuple[float, float]:
    batch, heads, n, d = q.shape
    work = batch * heads * n * n * d / (2 if causal else 1) / 1e12
    return 4 * work / forward, 10 * work / backward


def _importance(size: Size) -> tuple[bool, int, int, bool]:
    n, d, causal, dtype = size
    return (
        dtype != "bfloat16",
        {4096: 0, 16384: 1, 1024: 2, 8192: 3, 2048: 4}[n],
        d,
        causal,
    )


def _both(pair: Sequence[float | None]) -> str:
    return " / ".join("—" if number is None else f"{number:.0f}" for number in pair)


def _triton_version() -> str:
    import triton

    return str(triton.__version__)


def _write(path: str | None, report: dict[str, Any]) -> None:
    """The whole report, or the one before: this process may be killed at any time."""
    if path:
        whole = Path(f"{path}.part")
        whole.write_text(json.dumps(report, indent=1), encoding="utf-8")
        whole.replace(path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check-cpu",
        action="store_true",
        help="check at tiny sizes in the interpreter, then stop",
    )
    parser.add_argument(
        "--only", choices=("right", "memory", "speed"), help="one part, on a GPU"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=200,
        help="begin no further size after this long (200)",
    )
    parser.add_argument("--json", help="write the numbers to this file")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
