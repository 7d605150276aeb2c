"""Operands that a product's kernel computes itself, in every kind of schedule."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.support.dtypes import dtype_of
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.contractions.prologues import CASES, Case, K, M, N
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import Row, combined

SCHEDULES = {
    "mma": (64, 32, 1, "last_block", "mma", False),
    "mma, last block": (32, 32, 3, "last_block", "mma", False),
    "mma, grid_sync, swapped": (32, 32, 4, "grid_sync", "mma", True),
    "wgmma that becomes mma": (64, 32, 1, "last_block", "wgmma", False),
}
PLAIN = [case for case in CASES if case.shapes[0][-1] == K and case.dtypes[1:] != ("float32",)]


@combined({"case": CASES}, turns={"stage": ["tile", "gpu"]})
def test_one_kernel(case: Case, stage: str) -> None:
    inputs = case.inputs()
    module = module_at(stage, case.fn, specs_of(inputs))
    assert str(module).count("call @") == 1
    (result,) = interpreter.run(module, case.fn.__name__, inputs, order="random", seed=1)
    case.check(result, inputs)


@combined({"case": PLAIN}, turns={"name": SCHEDULES})
def test_pinned_schedules(case: Case, name: str) -> None:
    m, n, split, reduction, instruction, swapped = SCHEDULES[name]
    schedule = pinned_schedule(Product(M, N, K, "nt", "float16"), m, n, split, reduction, instruction, swapped)
    inputs = case.inputs()
    module = module_at("gpu", case.fn, specs_of(inputs), schedule)
    assert str(module).count("gpu.func") == 1
    (result,) = interpreter.run(module, case.fn.__name__, inputs, order="random", seed=2)
    case.check(result, inputs)


def with_epilogue(x, w, s):
    return mf.where(s, mf.where(s, x, 2) @ w, 0)


def of_both(x, w, s):
    return mf.abs(x + s) @ (w + s)


def of_both_with_epilogue(x, w, s):
    return mf.maximum((x * s) @ mf.maximum(w, s), s)


def of_a_residual(x, w, s):
    return mf.maximum(x, s) @ w + x


def of_a_flag_computed_once(x, w, s):
    flag = s > 0
    return mf.where(flag, mf.maximum(x, s) @ mf.where(flag, w, s), s)


SHARED = [
    (of_a_flag_computed_once, None, [(1,), (1, 1), (1, 24)]),
    (with_epilogue, "bool", [(1,), (1, 1), (24, 1), (1, 24), (24, 24)]),
    (of_both, None, [(1,), (1, 1), (24,), (24, 1), (24, 24)]),
    (of_both_with_epilogue, None, [(1,), (1, 24), (24, 24)]),
    (of_a_residual, None, [(1,), (24, 24)]),
]


def _takes(row: Row) -> bool:
    """Whether a function takes a second operand of that shape."""
    if not {"fn, flag", "shape"} <= row.keys():
        return True
    return any(row["fn, flag"][0] is fn and row["shape"] in shapes for fn, _, shapes in SHARED)


@combined(
    {
        "fn, flag": [(fn, flag) for fn, flag, _ in SHARED],
        "shape": [(1,), (1, 1), (24,), (24, 1), (1, 24), (24, 24)],
        "dtype": ["float16", "bfloat16", "float32", "int8"],
    },
    _takes,
    turns={"rows": [24, "rows"]},
)
def test_what_an_operand_shares_with_other_ops(fn, flag, shape, dtype: str, rows) -> None:
    """Square operands of one tile: reads of an argument for either operand and for the epilogue are the same op."""
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-1, 2, (24, 24)).astype(dtype_of(dtype).numpy) for _ in range(2))
    s = rng.integers(0, 2, shape).astype(dtype_of(flag or dtype).numpy)
    first = mf.TensorSpec((24 if shape[0] == 24 else rows, 24), dtype)
    module = module_at("gpu", fn, [first, *specs_of((w, s))])
    (result,) = interpreter.run(module, fn.__name__, [x, w, s], order="random", seed=3)
    a, b, c = (v if v.dtype == bool else v.astype(np.int64) for v in (x, w, s))
    expected = {
        of_a_flag_computed_once: lambda: np.where(c > 0, np.maximum(a, c) @ np.where(c > 0, b, c), c),
        with_epilogue: lambda: np.where(c, np.where(c, a, 2) @ b, 0),
        of_both: lambda: np.abs(a + c) @ (b + c),
        of_both_with_epilogue: lambda: np.maximum((a * c) @ np.maximum(b, c), c),
        of_a_residual: lambda: np.maximum(a, c) @ b + a,
    }[fn]()
    np.testing.assert_array_equal(result.astype(np.int64), expected)


@pytest.mark.parametrize("shape", [(24, 1), (1, 24)])
def test_one_cast_along_both_operands(shape: tuple[int, int]) -> None:
    """A cast of a column runs along the rows of the first operand, and along those that are summed of the second."""

    def scaled(x, w, s):
        t = s.astype(mf.bfloat16)
        return (x * t) @ mf.where(t > 0, w, t)

    rng = np.random.default_rng(0)
    x, w = (rng.integers(-2, 3, (2, 24, 24)).astype(dtype_of("bfloat16").numpy) for _ in range(2))
    s = rng.integers(-2, 3, shape).astype(np.int8)
    module = module_at("gpu", scaled, specs_of((x, w, s)))
    (result,) = interpreter.run(module, "scaled", [x, w, s], order="random", seed=4)
    a, b, c = (v.astype(np.float64) for v in (x, w, s))
    expected = ((a * c) @ np.where(c > 0, b, c)).astype(dtype_of("bfloat16").numpy)
    np.testing.assert_array_equal(result, expected)


def test_one_step_along_k() -> None:
    def scaled(x, w):
        return (x + 1) @ (w / 2).T

    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((40, 24), (48, 24)))
    module = module_at("gpu", scaled, specs_of((x, w)))
    (result,) = interpreter.run(module, "scaled", [x, w], order="random")
    np.testing.assert_array_equal(result, (x.astype(np.float64) + 1) @ (w.astype(np.float64) / 2).T)


@pytest.mark.parametrize(
    ("fn", "reason"),
    [
        (lambda x, w: ((x * 2) @ w.T, x * 2), "its results are used elsewhere as well"),
        (lambda x, w: (x / mf.sum(x, axis=1, keepdims=True)) @ w.T, "it contains a reduction"),
    ],
)
def test_what_stays_apart_says_why(fn, reason: str) -> None:
    specs = [mf.TensorSpec((64, 128), mf.float16)] * 2
    explained = mf.fuse(fn, target="sm_90a").lower(*specs).compile().explain(verbose=True)
    assert any("fuse-prologues: declined" in line and reason in line for line in explained.splitlines())
