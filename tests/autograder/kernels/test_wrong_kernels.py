"""What a GPU would not forgive, in the ways in which people do it: each has a name, and nothing
passes by luck.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("triton")
import triton
import triton.language as tl
import wrong_kernels as wrong

from autograder.kernels import strict_triton
from autograder.kernels.faults import KernelFault
from autograder.kernels.memory import Memory
from autograder.kernels.strict_triton import install, trace
from autograder.kernels.triton_versions import UnknownTriton
from autograder.worker.launches import watch_launches

pytestmark = pytest.mark.filterwarnings("ignore:tl.make_block_ptr is deprecated")
VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])


# block pointers


def row_sums(check: str) -> torch.Tensor:
    x, y = torch.ones(6, 5), torch.empty(6)
    wrong.block_kernel[(2,)](x, y, *x.shape, CHECK=check)
    return y


@pytest.mark.skipif(
    VERSION >= (3, 8),
    reason="since Triton 3.8 a block pointer's checks are not to be seen",
)
def test_a_block_pointer_without_boundary_check_may_not_leave_the_tensor() -> None:
    with pytest.raises(KernelFault) as caught:
        row_sums("none")
    assert str(caught.value) == (
        "program 1 reads x[6, 0], and x has 6 rows (its shape is [6, 5]); boundary_check of this "
        "block pointer leaves "
        "out axis 0 and 1 (line 7 of block_kernel, tile (`tile = tl.load(x)`))"
    )
    with pytest.raises(
        KernelFault, match=r"^program 1 reads x\[6, 0\].* leaves out axis 0 \("
    ):
        row_sums("columns")


@pytest.mark.skipif(VERSION >= (3, 9), reason="Triton 3.9 has no block pointers")
def test_lanes_outside_are_what_the_padding_says_and_nothing_without() -> None:
    with watch_launches(row_sums, ("unpadded",), {}) as record:
        assert row_sums("unpadded").isnan().all()
    assert record.figures()["unfilled"] == ["x"]
    assert row_sums("nan").isnan().all()


# lanes of one program


def lanes(how: str) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = torch.arange(8.0), torch.zeros(16)
    wrong.lanes_kernel[(1,)](x, y, HOW=how)
    return x, y


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        (
            "turned",
            r"^program 0 reads y\[1\], which another lane of it has written: .*tl.debug_barrier\(\)",
        ),
        ("as a tile", r"^program 0 reads y\[0\], which another lane of it has written"),
        ("one place", r"^two lanes of program 0 write y\[0\], and not the same"),
        (
            "stored twice",
            r"^program 0 writes y\[7\], where another lane of it has written something else",
        ),
        (
            "reversed in place",
            r"^program 0 writes x\[7\], which another lane of it has loaded",
        ),
    ],
)
def test_an_order_of_lanes_is_nothing_to_rely_on(how: str, fault: str) -> None:
    with pytest.raises(KernelFault, match=fault):
        lanes(how)


def test_what_depends_on_no_order_is_fine() -> None:
    assert lanes("reversed")[1][:8].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    assert lanes("one place, one value")[1][0] == 1.0
    assert lanes("reversed behind a barrier")[0].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    assert lanes("a column")[1][8:].tolist() == list(range(8))


def test_one_tensor_under_two_names_is_one_memory() -> None:
    x = torch.arange(16.0)
    with pytest.raises(KernelFault, match="which another lane of it has loaded"):
        wrong.lanes_kernel[(1,)](x, x, HOW="reversed")


def test_a_zero_that_one_program_puts_where_others_add_is_luck() -> None:
    with pytest.raises(KernelFault, match="which another program has written"):
        wrong.zeroed_kernel[(8,)](torch.zeros(1))


# what no GPU would compile


@pytest.mark.parametrize(
    ("kernel", "arguments", "said"),
    [
        (
            wrong.printing_kernel,
            1,
            r"line 3 of printing_kernel \(`print\(\"x is\", x\)`\): `print` belongs to Python",
        ),
        (
            wrong.numpy_kernel,
            2,
            r"line 2 of numpy_kernel .*function referenced: <ufunc 'exp'>",
        ),
        (
            wrong.breaking_kernel,
            (4,),
            r"line 4 of breaking_kernel \(`break`\): kernels know no `break`",
        ),
        (
            wrong.continuing_kernel,
            (4,),
            r"line 4 of continuing_kernel \(`continue`\): kernels know no `continue`",
        ),
        (
            wrong.global_kernel,
            1,
            r"line 2 of global_kernel .*: `FACTOR` is neither an argument, nor a tl.constexpr",
        ),
        (
            wrong.unknown_kernel,
            1,
            r"line 2 of unknown_kernel .*: `no_such_thing` is not defined",
        ),
        (
            wrong.plain_kernel,
            1,
            r"line 2 of plain_kernel .*: `plain_function` is neither an argument",
        ),
        (wrong.torch_kernel, 1, r"line 2 of torch_kernel "),
        (wrong.item_kernel, 1, r"line 2 of item_kernel "),
        (
            wrong.dictionary_kernel,
            1,
            r"line 2 of dictionary_kernel .*: kernels know no `dict`",
        ),
        (wrong.comprehension_kernel, (4,), r"line 2 of comprehension_kernel "),
        (
            wrong.small_dot_kernel,
            1,
            r"line 4 of small_dot_kernel .*Input shapes should have",
        ),
        pytest.param(
            wrong.chained_kernel,
            (8,),
            r"line 3 of chained_kernel .*: simultaneous multiple comparison",
            marks=pytest.mark.skipif(
                VERSION >= (3, 9), reason="Triton 3.9 compiles it"
            ),
        ),
        (wrong.changing_kernel, (2,), r"line [34] of changing_kernel "),
    ],
)
def test_what_no_gpu_would_compile_is_told_with_its_line(
    kernel: Any, arguments: int | tuple[int, ...], said: str
) -> None:
    tensors = [
        torch.zeros(16) for _ in range(arguments if isinstance(arguments, int) else 1)
    ]
    with pytest.raises(KernelFault, match="^no GPU would compile " + said):
        kernel[(1,)](*tensors, *(arguments if isinstance(arguments, tuple) else ()))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            "inner",
            r"line 11 of looping_kernel .*Loop-carried variable total has initial type fp32 but "
            r"is re-assigned",
        ),
        (
            "nothing",
            r"line 9 of looping_kernel .*Loop carried variable nothing is not a triton value",
        ),
        (
            "number",
            r"line 9 of looping_kernel .*total has initial type fp32 but is re-assigned to "
            r"int32 in loop",
        ),
        ("two", r"line 19 of looping_kernel .*`no_such_thing` is not defined"),
    ],
)
def test_what_a_loop_hands_on_keeps_its_type(how: str, said: str) -> None:
    with pytest.raises(KernelFault, match="^no GPU would compile " + said):
        wrong.looping_kernel[(1,)](torch.zeros(8), 3, HOW=how)


def test_a_loop_that_changes_no_type_is_fine() -> None:
    x = torch.arange(8.0)
    wrong.looping_kernel[(1,)](x, 3, HOW="right")
    assert x.tolist() == [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]


def test_an_argument_that_is_none_is_told() -> None:
    with pytest.raises(
        KernelFault, match=r"^printing_kernel is given x_ptr = \[1\.0\] \(list\)"
    ):
        wrong.printing_kernel[(1,)]([1.0])


# autotune


def tuned(how: str, n: int = 24) -> torch.Tensor:
    x, y = torch.arange(float(n)), torch.zeros(n)
    wrong.tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n, HOW=how)
    return y


def test_each_configuration_must_be_right_and_the_wrong_one_is_named() -> None:
    with pytest.raises(
        KernelFault,
        match=r"^with the configuration \(BLOCK: 16, EXTRA: 1\): program \d reads x\[24\]",
    ):
        tuned("ragged")
    with pytest.raises(KernelFault) as caught:
        tuned("off")
    assert str(caught.value) == (
        "with the configuration (BLOCK: 16, EXTRA: 1) the kernel writes 1 to y[0], with (BLOCK: "
        "8, EXTRA: 0) 0: "
        "autotune takes the fastest, so each must be right"
    )


def test_of_three_the_one_that_stands_alone_is_named() -> None:
    with pytest.raises(
        KernelFault,
        match=r"^with the configuration \(BLOCK: 8\) the kernel writes 1 to x\[0\]",
    ):
        wrong.outvoted_kernel[lambda meta: (triton.cdiv(40, meta["BLOCK"]),)](
            torch.zeros(40), 40
        )


def test_of_many_configurations_all_have_their_turn() -> None:
    def launch_three_times() -> None:
        for _ in range(3):
            wrong.many_kernel[lambda meta: (triton.cdiv(40, meta["BLOCK"]),)](
                torch.zeros(40), 40
            )

    with pytest.raises(KernelFault, match=r"^with the configuration \(BLOCK: 128\)"):
        launch_three_times()


def test_a_kernel_that_goes_on_from_what_it_left_cannot_be_tuned() -> None:
    with pytest.raises(
        KernelFault,
        match=r"^launched twice, the kernel writes something else to y\[0\]",
    ):
        tuned("counting")


def test_a_configuration_whose_static_assertion_fails_is_left_out() -> None:
    assert torch.equal(tuned("asserted"), torch.arange(24.0))


def test_one_configuration_counts() -> None:
    with watch_launches(tuned, ("asserted",), {}) as record:
        tuned("asserted")
    figures = record.figures()
    assert (figures["kernels"], figures["programs"], figures["loads"]) == (
        1,
        3,
        {"x": 24},
    )


# versions


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not installed anything; the hooks of other tests stay."""
    strict = install()
    monkeypatch.setattr(strict_triton, "owner_of_launches", lambda: None)
    monkeypatch.setattr(strict_triton, "Strict", lambda: strict)


@pytest.mark.parametrize("version", ["3.2.0", "3.5.1"])
@pytest.mark.usefixtures("uninstalled")
def test_an_older_version_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(triton, "__version__", version)
    with pytest.raises(UnknownTriton) as caught:
        install()
    assert str(caught.value) == (
        f"strict Triton knows Triton 3.6 to 3.9, and this is {version}: pip install triton==3.7.1"
    )


@pytest.mark.usefixtures("uninstalled")
def test_a_newer_version_is_tried_with_a_small_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(triton, "__version__", "3.10.0")
    assert install() is not None


@pytest.mark.usefixtures("uninstalled")
def test_a_newer_version_in_which_the_kernel_fails_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(triton, "__version__", "3.10.0")
    said = r"this is 3.10.0, in which it fails \(%s\): pip install triton==3.7.1$"
    with monkeypatch.context() as patched:
        patched.setattr(Memory, "_offsets", None)
        with pytest.raises(
            UnknownTriton, match=said % "TypeError: 'NoneType' object is not callable"
        ):
            install()
    with monkeypatch.context() as patched:
        patched.setattr(
            strict_triton, "_probe_kernel", {(2,): lambda *arguments, block: None}
        )
        with pytest.raises(
            UnknownTriton,
            match=said % "RuntimeError: a small kernel is not what it should be",
        ):
            install()


@pytest.mark.usefixtures("uninstalled")
def test_a_triton_that_interprets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tl, "max", lambda x: x)
    with pytest.raises(UnknownTriton, match="imported with TRITON_INTERPRET=1"):
        install()


# programs that meet


def test_programs_that_store_the_same_value_do_no_harm() -> None:
    y = torch.zeros(2)
    wrong.meeting_kernel[(4,)](torch.zeros(2), y, HOW="same value")
    assert y.tolist() == [7.0, 0.0]


def test_a_write_after_a_foreign_read_is_found_where_the_reader_is_first() -> None:
    with pytest.raises(
        KernelFault,
        match=r"^program 1 writes x\[1\], which another program has read \(program 0\)",
    ):
        wrong.meeting_kernel[(2,)](torch.ones(2), torch.zeros(2), HOW="reader first")


def test_integers_that_nobody_has_filled_are_refused() -> None:
    def from_empty() -> None:
        x = torch.empty(2, dtype=torch.int32)
        wrong.meeting_kernel[(2,)](x, torch.zeros(2), HOW="unfilled")

    with pytest.raises(
        KernelFault, match=r"^program 0 reads x\[0\], which nobody has filled"
    ):
        trace(from_empty)
