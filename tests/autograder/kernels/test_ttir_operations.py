"""Each operation of TTIR against values that were worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from evaluated import evaluate

from autograder.kernels.faults import KernelFault, Unreadable
from autograder.kernels.number_types import read_type

INF, NAN = math.inf, math.nan
FOUR = "tensor<4xf32>"
INTS = "tensor<4xi32>"
BYTES = "tensor<4xi8>"


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("addi", [127, -128, 5, 0], [1, -1, -7, 0], [-128, 127, -2, 0]),  # wraps around
        ("subi", [-128, 0, 5, 0], [1, 1, 7, 0], [127, -1, -2, 0]),
        ("muli", [16, -1, 100, 3], [16, 5, 3, 0], [0, -5, 44, 0]),  # 300 = 256 + 44
        ("divsi", [7, -7, 7, -8], [2, 2, -2, 3], [3, -3, -3, -2]),  # towards zero
        ("remsi", [7, -7, 7, -8], [2, 2, -2, 3], [1, -1, 1, -2]),
        ("ceildivsi", [7, -7, 8, 1], [2, 2, 2, 3], [4, -3, 4, 1]),
        ("floordivsi", [7, -7, 8, 1], [2, 2, 2, 3], [3, -4, 4, 0]),
        ("divui", [-1, 7, 0, 100], [16, 2, 5, 7], [15, 3, 0, 14]),  # -1 is 255
        ("remui", [-1, 7, 0, 100], [16, 2, 5, 7], [15, 1, 0, 2]),
        ("maxsi", [-1, 3, 0, 5], [1, 2, 0, 6], [1, 3, 0, 6]),
        ("minsi", [-1, 3, 0, 5], [1, 2, 0, 6], [-1, 2, 0, 5]),
        ("maxui", [-1, 3, 0, 5], [1, 2, 0, 6], [-1, 3, 0, 6]),
        ("minui", [-1, 3, 0, 5], [1, 2, 0, 6], [1, 2, 0, 5]),
        ("andi", [12, 10, -1, 0], [10, 12, 7, 1], [8, 8, 7, 0]),
        ("ori", [12, 10, -1, 0], [10, 12, 7, 1], [14, 14, -1, 1]),
        ("xori", [12, 10, -1, 0], [10, 12, 7, 1], [6, 6, -8, 1]),
        ("shli", [1, 3, -1, 1], [3, 7, 1, 8], [8, -128, -2, 0]),
        ("shrsi", [-128, 64, -1, -1], [3, 6, 7, 9], [-16, 1, -1, -1]),
        ("shrui", [-128, 64, -1, -1], [3, 6, 7, 9], [16, 1, 1, 0]),
    ],
)
def test_integers_wrap_and_divide_towards_zero(
    name: str, a: list[int], b: list[int], expected: list[int]
) -> None:
    line = f"%r = arith.{name} %a, %b : {BYTES}"
    assert evaluate(line, BYTES, a=(BYTES, a), b=(BYTES, b)) == expected


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("addf", [1.5, INF, -0.5, 2.0], [1.0, 1.0, 0.25, -2.0], [2.5, INF, -0.25, 0.0]),
        ("subf", [1.5, INF, -0.5, 2.0], [1.0, 1.0, 0.25, 2.0], [0.5, INF, -0.75, 0.0]),
        ("mulf", [1.5, -2.0, 0.5, 0.0], [2.0, 3.0, 0.5, 7.0], [3.0, -6.0, 0.25, 0.0]),
        ("divf", [3.0, 1.0, -1.0, 0.5], [2.0, 0.0, 0.0, 2.0], [1.5, INF, -INF, 0.25]),
        ("remf", [7.0, -7.0, 5.5, 1.0], [2.0, 2.0, 2.0, 4.0], [1.0, -1.0, 1.5, 1.0]),
        (
            "maxnumf",
            [1.0, NAN, 2.0, -1.0],
            [2.0, 3.0, NAN, -2.0],
            [2.0, 3.0, 2.0, -1.0],
        ),
        (
            "minnumf",
            [1.0, NAN, 2.0, -1.0],
            [2.0, 3.0, NAN, -2.0],
            [1.0, 3.0, 2.0, -2.0],
        ),
    ],
)
def test_floating_point_numbers(
    name: str, a: list[float], b: list[float], expected: list[float]
) -> None:
    line = f"%r = arith.{name} %a, %b : {FOUR}"
    assert evaluate(line, FOUR, a=(FOUR, a), b=(FOUR, b)) == expected


def test_a_maximum_that_propagates_nan() -> None:
    line = f"%r = arith.maximumf %a, %b : {FOUR}"
    result = evaluate(
        line, FOUR, a=(FOUR, [1.0, NAN, 2.0, 0]), b=(FOUR, [2.0, 3.0, NAN, 0])
    )
    assert (result[0], math.isnan(result[1]), math.isnan(result[2])) == (
        2.0,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("eq", [False, True, False, False]),
        ("ne", [True, False, True, True]),
        ("slt", [True, False, False, True]),
        ("sge", [False, True, True, False]),
        ("ult", [False, False, False, True]),  # -1 is the largest number
        ("ugt", [True, False, True, False]),
    ],
)
def test_comparisons_of_integers(predicate: str, expected: list[bool]) -> None:
    line = f"%r = arith.cmpi {predicate}, %a, %b : {INTS}"
    values = {"a": (INTS, [-1, 2, 5, 3]), "b": (INTS, [1, 2, 4, 4])}
    assert evaluate(line, "tensor<4xi1>", **values) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("oeq", [False, True, False, False]),
        ("one", [True, False, False, False]),
        ("olt", [True, False, False, False]),
        ("ult", [True, False, True, True]),
        ("une", [True, False, True, True]),
        ("uno", [False, False, True, True]),
        ("ord", [True, True, False, False]),
    ],
)
def test_comparisons_with_nan(predicate: str, expected: list[bool]) -> None:
    line = f"%r = arith.cmpf {predicate}, %a, %b : {FOUR}"
    values = {"a": (FOUR, [1.0, 2.0, NAN, 1.0]), "b": (FOUR, [2.0, 2.0, 1.0, NAN])}
    assert evaluate(line, "tensor<4xi1>", **values) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("math.exp2", [0.0, 3.0, -1.0, -INF], [1.0, 8.0, 0.5, 0.0]),
        ("math.log2", [1.0, 8.0, 0.5, 0.0], [0.0, 3.0, -1.0, -INF]),
        ("math.sqrt", [0.0, 4.0, 2.25, 1.0], [0.0, 2.0, 1.5, 1.0]),
        ("math.rsqrt", [0.25, 4.0, 1.0, 16.0], [2.0, 0.5, 1.0, 0.25]),
        ("math.absf", [-1.5, 2.0, -0.0, 3.0], [1.5, 2.0, 0.0, 3.0]),
        ("math.floor", [-1.5, 2.5, 0.9, 3.0], [-2.0, 2.0, 0.0, 3.0]),
        ("math.ceil", [-1.5, 2.5, 0.1, 3.0], [-1.0, 3.0, 1.0, 3.0]),
        ("math.erf", [0.0, INF, -INF, 0.0], [0.0, 1.0, -1.0, 0.0]),
        ("math.exp", [0.0, -INF, 0.0, 0.0], [1.0, 0.0, 1.0, 1.0]),
        ("math.sin", [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
        ("math.cos", [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]),
        ("arith.negf", [1.0, -2.0, 0.5, INF], [-1.0, 2.0, -0.5, -INF]),
        ("tt.precise_sqrt", [0.0, 4.0, 2.25, 1.0], [0.0, 2.0, 1.5, 1.0]),
    ],
)
def test_functions_of_one_number(
    name: str, value: list[float], expected: list[float]
) -> None:
    assert evaluate(f"%r = {name} %a : {FOUR}", FOUR, a=(FOUR, value)) == expected


def test_fma_is_rounded_once() -> None:
    """(1 + 2⁻¹²)² is 1 + 2⁻¹¹ + 2⁻²⁴; float32 keeps the last term only until it is rounded."""
    a = 1 + 2.0**-12
    kind = "tensor<1xf32>"
    line = f"%r = math.fma %a, %a, %c : {kind}"
    assert evaluate(line, kind, a=(kind, [a]), c=(kind, [-1.0 - 2.0**-11])) == [
        2.0**-24
    ]


def test_the_upper_half_of_a_product() -> None:
    """65536² is 2³², whose upper half is 1; (2³² - 1)² is 2⁶⁴ - 2³³ + 1."""
    line = f"%r = tt.mulhiui %a, %a : {INTS}"
    assert evaluate(line, INTS, a=(INTS, [65536, -1, 1, 0])) == [1, -2, 0, 0]
    wide = "tensor<1xi64>"
    assert evaluate(f"%r = tt.mulhiui %a, %a : {wide}", wide, a=(wide, [1 << 40])) == [
        1 << 16
    ]


def test_clamping() -> None:
    line = f"%r = tt.clampf %a, %l, %h, propagateNan = none : {FOUR}"
    limits = {"l": (FOUR, [0.0] * 4), "h": (FOUR, [1.0] * 4)}
    assert evaluate(line, FOUR, a=(FOUR, [-1.0, 0.5, 2.0, NAN]), **limits) == [
        0.0,
        0.5,
        1.0,
        0.0,
    ]


# conversions


@pytest.mark.parametrize(
    ("line", "source", "value", "target", "expected"),
    [
        ("arith.extsi", "i8", [-1, 2], "i32", [-1, 2]),
        ("arith.extui", "i8", [-1, 2], "i32", [255, 2]),
        ("arith.extsi", "i1", [True, False], "i32", [-1, 0]),
        ("arith.extui", "i1", [True, False], "i32", [1, 0]),
        ("arith.trunci", "i32", [257, -1], "i8", [1, -1]),
        ("arith.trunci", "i32", [2, 3], "i1", [False, True]),
        ("arith.sitofp", "i32", [16777217, -3], "f32", [16777216.0, -3.0]),
        ("arith.uitofp", "i8", [-1, 3], "f32", [255.0, 3.0]),
        ("arith.fptosi", "f32", [-2.7, 1e10], "i32", [-2, 2147483647]),
        ("arith.fptoui", "f32", [2.7, 255.0], "i8", [2, -1]),
        ("arith.extf", "f16", [1.5, -2.0], "f32", [1.5, -2.0]),
        ("arith.truncf", "f32", [65519.0, 65520.0], "f16", [65504.0, INF]),
        # halfway between two bfloat16 the even one: 1 + 2⁻⁸ and 1 + 3 · 2⁻⁸
        ("arith.truncf", "f32", [1.00390625, 1.01171875], "bf16", [1.0, 1.015625]),
        ("arith.bitcast", "f32", [1.0, -0.0], "i32", [0x3F800000, -(1 << 31)]),
        ("tt.bitcast", "bf16", [1.0, -2.0], "i16", [0x3F80, -0x4000]),
    ],
)
def test_conversions(
    line: str, source: str, value: list[Any], target: str, expected: list[Any]
) -> None:
    word = "->" if line.startswith("tt.") else "to"
    text = f"%r = {line} %a : tensor<2x{source}> {word} tensor<2x{target}>"
    result = evaluate(text, f"tensor<2x{target}>", a=(f"tensor<2x{source}>", value))
    assert result == expected


@pytest.mark.parametrize(
    ("target", "value", "expected"),
    [
        # 3 bits of mantissa: 17 is halfway between 16 and 18, 19 between 18 and 20
        ("f8E4M3FN", [17.0, 19.0, 500.0, -INF], [16.0, 20.0, 448.0, -448.0]),
        # 2 bits: 9 is halfway between 8 and 10, 11 between 10 and 12
        ("f8E5M2", [9.0, 11.0, 1e6, 2.0**-17], [8.0, 12.0, 57344.0, 0.0]),
        (
            "f8E5M2",
            [2.0**-16, 3 * 2.0**-17, 1.0, -0.5],
            [2.0**-16, 2.0**-15, 1.0, -0.5],
        ),
    ],
)
def test_float8_is_rounded_to_even_and_saturates(
    target: str, value: list[float], expected: list[float]
) -> None:
    kind = f"tensor<4x{target}>"
    text = f"%r = tt.fp_to_fp %a, rounding = rtne : {FOUR} -> {kind}"
    assert evaluate(text, kind, a=(FOUR, value)) == expected


def test_rounding_towards_zero() -> None:
    text = f"%r = tt.fp_to_fp %a, rounding = rtz : {FOUR} -> tensor<4xf16>"
    value = [1.0009, -1.0009, 65519.0, 0.1]  # 2⁻¹⁰ is 0.000977
    expected = [1.0, -1.0, 65504.0, 0.0999755859375]
    assert evaluate(text, "tensor<4xf16>", a=(FOUR, value)) == expected


def test_bfloat16_is_rounded_after_each_operation() -> None:
    """256 + 1 is no bfloat16: 8 bits end at 2."""
    kind = "tensor<2xbf16>"
    line = f"%r = arith.addf %a, %b : {kind}"
    assert evaluate(line, kind, a=(kind, [256.0, 258.0]), b=(kind, [1.0, 1.0])) == [
        256.0,
        260.0,
    ]


# tiles


def test_shapes() -> None:
    matrix = "tensor<2x2xf32>"
    value = [[1.0, 2.0], [3.0, 4.0]]
    turned = f"%r = tt.trans %a {{order = array<i32: 1, 0>}} : {matrix} -> {matrix}"
    assert evaluate(turned, matrix, a=(matrix, value)) == [[1.0, 3.0], [2.0, 4.0]]
    flat = f"%r = tt.reshape %a : {matrix} -> {FOUR}"
    assert evaluate(flat, FOUR, a=(matrix, value)) == [1.0, 2.0, 3.0, 4.0]
    column = "tensor<2x1xf32>"
    lines = (
        f"%c = tt.expand_dims %a {{axis = 1 : i32}} : tensor<2xf32> -> {column}\n"
        f"%r = tt.broadcast %c : {column} -> {matrix}"
    )
    assert evaluate(lines, matrix, a=("tensor<2xf32>", [1.0, 2.0])) == [
        [1.0, 1.0],
        [2.0, 2.0],
    ]


def test_a_tile_of_one_becomes_a_number() -> None:
    assert (
        evaluate(
            "%r = tt.unsplat %a : tensor<1xf32>", "f32", a=("tensor<1xf32>", [3.0])
        )
        == 3.0
    )


def test_join_split_and_cat() -> None:
    two = "tensor<2xf32>"
    inputs = {"a": (two, [1.0, 2.0]), "b": (two, [3.0, 4.0])}
    joined = f"%r = tt.join %a, %b : {two} -> tensor<2x2xf32>"
    assert evaluate(joined, "tensor<2x2xf32>", **inputs) == [[1.0, 3.0], [2.0, 4.0]]
    parted = f"%j{joined[2:]}\n%l, %r = tt.split %j : tensor<2x2xf32> -> {two}"
    assert evaluate(parted, f"%l, %r : {two}, {two}", **inputs) == [
        [1.0, 2.0],
        [3.0, 4.0],
    ]
    assert evaluate(f"%r = tt.cat %a, %b : {two} -> {FOUR}", FOUR, **inputs) == [
        1,
        2,
        3,
        4,
    ]


def test_gather_and_histogram() -> None:
    inputs = {"a": (FOUR, [10.0, 20.0, 30.0, 40.0]), "i": (INTS, [3, 0, 0, 2])}
    line = f"%r = tt.gather %a[%i] {{axis = 0 : i32}} : ({FOUR}, {INTS}) -> {FOUR}"
    assert evaluate(line, FOUR, **inputs) == [40.0, 10.0, 10.0, 30.0]
    line = f"%r = tt.histogram %i : {INTS} -> {INTS}"
    assert evaluate(line, INTS, i=(INTS, [3, 0, 0, 2])) == [2, 0, 1, 1]


REGION = """%r = "{name}"(%a) <{{axis = 0 : i32{more}}}> ({{
^bb0(%x: {element}, %y: {element}):
  %z = {combine} %x, %y : {element}
  {name}.return %z : {element}
}}) : (tensor<4x{element}>) -> {result}"""


@pytest.mark.parametrize(
    ("combine", "element", "value", "expected"),
    [
        ("arith.addf", "f32", [1.0, 2.0, 4.0, 8.0], 15.0),
        (
            "arith.subf",
            "f32",
            [1.0, 2.0, 4.0, 8.0],
            3.0,
        ),  # (1 - 2) - (4 - 8): neighbours first
        ("arith.maxnumf", "f32", [1.0, NAN, 4.0, 2.0], 4.0),
        ("arith.xori", "i32", [1, 2, 4, 8], 15),
        ("arith.minsi", "i32", [3, -2, 4, 8], -2),
    ],
)
def test_reductions_with_any_region(
    combine: str, element: str, value: list[Any], expected: Any
) -> None:
    lines = REGION.format(
        name="tt.reduce", more="", element=element, combine=combine, result=element
    )
    assert evaluate(lines, element, a=(f"tensor<4x{element}>", value)) == expected


@pytest.mark.parametrize(
    ("reverse", "expected"),
    [("false", [1.0, 3.0, 7.0, 15.0]), ("true", [15.0, 14.0, 12.0, 8.0])],
)
def test_scans(reverse: str, expected: list[float]) -> None:
    lines = REGION.format(
        name="tt.scan",
        more=f", reverse = {reverse}",
        element="f32",
        combine="arith.addf",
        result=FOUR,
    )
    assert evaluate(lines, FOUR, a=(FOUR, [1.0, 2.0, 4.0, 8.0])) == expected


def test_half_precision_sums_in_half_precision() -> None:
    """2048 + 1 is 2048 in float16, in each step."""
    lines = REGION.format(
        name="tt.reduce", more="", element="f16", combine="arith.addf", result="f16"
    )
    assert (
        evaluate(lines, "f16", a=("tensor<4xf16>", [2048.0, 1.0, 0.0, 1.0])) == 2048.0
    )


# products

MATRIX = "tensor<2x2xf32>"
THIRD = 1 / 3  # in tf32 0.333251953125 is the nearest number of 10 bits


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        ("", 2 * 0.3333333432674408),
        (", inputPrecision = tf32", 2 * 0.333251953125),
        (", inputPrecision = tf32x3", 2 * 0.3333333432674408),
    ],
)
def test_a_product_rounds_its_operands_where_the_kernel_lets_it(
    precision: str, expected: float
) -> None:
    lines = f"%r = tt.dot %a, %b, %c{precision} : {MATRIX} * {MATRIX} -> {MATRIX}"
    result = evaluate(
        lines,
        MATRIX,
        a=(MATRIX, [[THIRD, THIRD]] * 2),
        b=(MATRIX, [[1.0, 0.0], [1.0, 0.0]]),
        c=(MATRIX, [[0.0, 5.0]] * 2),
    )
    assert result == [[expected, 5.0]] * 2


def test_products_of_bytes_are_summed_in_32_bits() -> None:
    small, wide = "tensor<2x2xi8>", "tensor<2x2xi32>"
    lines = f"%r = tt.dot %a, %a, %c : {small} * {small} -> {wide}"
    result = evaluate(lines, wide, a=(small, [[127, 127]] * 2), c=(wide, [[1, 1]] * 2))
    assert result == [[32259, 32259]] * 2  # 2 · 127² + 1


def test_scaled_products_of_four_bits() -> None:
    """A byte holds two numbers, the lower half first: 0x21 is 0.5 and 1; 2^(128 - 127) is 2."""
    a, scale, b = "tensor<1x1xi8>", "tensor<1x1xi8>", "tensor<2x1xf8E5M2>"
    lines = (
        f"%r = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = e5m2 {{fastMath = false}} : "
        f"{a}, {scale} * {b} -> tensor<1x1xf32>"
    )
    result = evaluate(
        lines,
        "tensor<1x1xf32>",
        a=(a, [[0x21]]),
        s=(scale, [[-128]]),  # 128 as an unsigned byte
        b=(b, [[4.0], [8.0]]),
        c=("tensor<1x1xf32>", [[1.0]]),
    )
    assert result == [[1.0 + 2 * (0.5 * 4 + 1 * 8)]]


# control


def test_loops_and_branches() -> None:
    lines = """%c0 = arith.constant 0 : i32
%c1 = arith.constant 1 : i32
%s = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (i32)  : i32 {
  %odd = arith.andi %i, %c1 : i32
  %is = arith.cmpi eq, %odd, %c1 : i32
  %u = scf.if %is -> (i32) {
    %v = arith.addi %t, %i : i32
    scf.yield %v : i32
  } else {
    scf.yield %t : i32
  }
  scf.yield %u : i32
}
%r = scf.while (%w = %s) : (i32) -> i32 {
  %more = arith.cmpi slt, %w, %n : i32
  scf.condition(%more) %w : i32
} do {
^bb0(%w: i32):
  %x = arith.addi %w, %w : i32
  scf.yield %x : i32
}"""
    assert evaluate(lines, "i32", n=("i32", 6)) == 9  # 1 + 3 + 5
    assert evaluate(lines, "i32", n=("i32", 2)) == 2  # 1, doubled once


@pytest.mark.parametrize(("value", "expected"), [(3, 30), (4, 400)])
def test_jumps(value: int, expected: int) -> None:
    text = """%c10 = arith.constant 10 : i32
%c3 = arith.constant 3 : i32
%is = arith.cmpi eq, %n, %c3 : i32
%a = arith.muli %n, %c10 : i32
cf.cond_br %is, ^bb2(%a : i32), ^bb1
^bb1:  // pred: ^bb0
%b = arith.muli %a, %c10 : i32
cf.br ^bb2(%b : i32)
^bb2(%r: i32):  // 2 preds: ^bb0, ^bb1"""
    assert evaluate(text, "i32", n=("i32", value)) == expected


@pytest.mark.parametrize(
    ("text", "shape", "element", "reference"),
    [
        ("!tt.ptr<bf16>", (), "!tt.ptr<bf16>", ""),
        ("tensor<4x8x!tt.ptr<f32>>", (4, 8), "!tt.ptr<f32>", ""),
        ("!tt.ptr<tensor<4x8xf16>>", (4, 8), "f16", "block"),
        ("!tt.tensordesc<tensor<16x16xsi32>>", (16, 16), "i32", "descriptor"),
        ("!tt.tensordesc<16x16xf32>", (16, 16), "f32", "descriptor"),  # Triton 3.9
        ("<16x16xf32>", (16, 16), "f32", "descriptor"),
    ],
)
def test_types(text: str, shape: tuple[int, ...], element: str, reference: str) -> None:
    kind = read_type(text)
    assert (kind.shape, kind.element.name, kind.reference) == (
        shape,
        element,
        reference,
    )


# what is refused


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            '%r = tt.elementwise_inline_asm "x" {} %a : f32 -> f32',
            "a GPU's own assembler",
        ),
        ("%r = tt.no_such_thing %a : f32", "tt.no_such_thing has no meaning"),
        ("%r = arith.addf %a, %b : f32", "%b is used before it is there"),
        ("%r = arith.addf %a, %a : f128", "numbers of the type f128"),
        ("hello", "no operation: hello"),
    ],
)
def test_what_has_no_meaning_is_refused_in_words(line: str, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        evaluate(line, "f32", a=("f32", 1.0))


def test_an_assertion_fails() -> None:
    with pytest.raises(KernelFault, match="program 0: device_assert fails: n is small"):
        evaluate('tt.assert %c, "n is small" : i1\n%r = arith.negf %a : f32', "f32",
                 c=("i1", False), a=("f32", 1.0))  # fmt: skip
