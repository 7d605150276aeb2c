"""Compiled kernels at the gpu level, interpreted with all checks, against float64."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.interpreter.mutation import Mutant, Report, hunt, site, spiked_rows
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.schedule import Schedule
from tests.support.harnesses.compiling import module_at, row_schedule
from tests.support.kernels import order_for
from tests.support.pairwise import combined, some
from tests.support.reductions.numerics import DTYPES, FAMILIES, Family, assert_close

COLUMNS = (1, 2, 5, 7, 32, 33, 257, 384, 768, 1000, 1024, 1600, 4096, 4099, 5140, 12288)
HUGE = (33000, 65536, 100353, 131072)
ROWS = (0, 1, 3, 9)
F16 = DTYPES["float16"]

ORDERS: tuple[dict[str, Any], ...] = (
    {},
    {"order": "reversed"},
    {"order": "random", "seed": 3},
    {"order": "random", "seed": 4, "resident": 8, "sms": 1},
)


def run_rows(family: Family, columns: int, dtype: np.dtype, *runs: tuple[int, dict[str, Any]]) -> None:
    """Compiles once, and runs for so many rows in an order each."""
    module = module_at("gpu", family.fn, family.specs(None, columns, dtype))
    for count, order in runs:
        inputs = family.inputs(count, columns, dtype, seed=columns)
        (result,) = interpreter.run(module, family.name, inputs, **order_for(module, order))
        family.check(result, inputs)


@combined(
    {"name": FAMILIES, "columns": some(COLUMNS, 9)},
    turns={"dtype": DTYPES, "rows, order": list(zip(ROWS, ORDERS, strict=True))},
)
def test_sizes(name: str, columns: int, dtype: str, rows: int, order: dict[str, Any]) -> None:
    family = FAMILIES[name]
    run_rows(family, columns, DTYPES[dtype], (rows, order))


@combined(
    {"name, columns": [*product(("layer_norm", "softmax"), HUGE), ("column_sums", 65536)]}, turns={"dtype": DTYPES}
)
def test_huge_rows(name: str, dtype: str, columns: int) -> None:
    run_rows(FAMILIES[name], columns, DTYPES[dtype], (1, ORDERS[0]), (2, ORDERS[1]))


@pytest.mark.parametrize("columns", [33, 5140, 100353])
@pytest.mark.parametrize("name", ["column_sums", "batch_norm", "norm_of_all"])
def test_sums_over_a_known_number_of_rows(name: str, columns: int) -> None:
    family = FAMILIES[name]
    inputs = family.inputs(9, columns, F16)
    module = module_at("gpu", family.fn, family.specs(9, columns, F16))
    (result,) = interpreter.run(module, family.name, inputs)
    family.check(result, inputs)


@pytest.mark.parametrize("name", ["column_sums", "batch_norm"])
def test_a_static_extent_of_0(name: str) -> None:
    family = FAMILIES[name]
    inputs = family.inputs(0, 8, F16)
    module = module_at("gpu", family.fn, family.specs(0, 8, F16))
    (result,) = interpreter.run(module, family.name, inputs)
    assert result.shape == ((8,) if name == "column_sums" else (0, 8))
    assert not result.any()


@pytest.mark.parametrize("shape", [(3, 0), (3, 0, 8), (3, 8, 0)])
def test_rows_of_0_elements_in_two_orders(shape: tuple[int, ...]) -> None:
    sums = mf.fuse(lambda x: (x.sum(-1), x.sum(0)), target="interpret")
    x = np.zeros(shape, np.float32)
    rows, columns = sums(x)
    np.testing.assert_array_equal(rows, x.sum(-1), strict=True)
    np.testing.assert_array_equal(columns, x.sum(0), strict=True)


SCHEDULES: dict[str, dict[str, Any]] = {
    "rows over lanes": {"lanes": 4},
    "rows over warps": {"row_warps": 4},
    "rows over lanes, warps and repeats": {"lanes": 8, "row_warps": 2, "row_repeats": 3},
    "three warps": {"warps": 3},
    "eight warps, two rows a warp": {"warps": 8, "lanes": 16, "row_warps": 2},
    "sixteen warps": {"warps": 16},
    "thirty-two warps": {"warps": 32},
    "cluster of 2": {"warps": 2, "cluster": 2},
    "cluster of 4": {"warps": 4, "cluster": 4},
    "cluster of 8": {"warps": 8, "cluster": 8},
    "cluster of 8 with rows": {"warps": 2, "cluster": 8, "lanes": 16, "row_warps": 2, "row_repeats": 2},
    "shared": {"warps": 2, "chunk_repeats": 1, "persistence": "shared"},
    "shared, three warps": {"warps": 3, "chunk_repeats": 2, "persistence": "shared"},
    "shared with rows": {"lanes": 16, "row_warps": 2, "chunk_repeats": 2, "persistence": "shared"},
    "shared, cluster of 2": {"warps": 2, "cluster": 2, "chunk_repeats": 1, "persistence": "shared"},
    "multi_pass": {"chunk_repeats": 1, "persistence": "multi_pass"},
    "reread, five warps": {"warps": 5, "chunk_repeats": 3, "persistence": "multi_pass"},
    "reread with rows": {
        "lanes": 8, "warps": 2, "row_warps": 2, "row_repeats": 2, "chunk_repeats": 2, "persistence": "multi_pass"
    },
}  # fmt: skip


@combined(
    {"name": ["layer_norm", "softmax"], "schedule": SCHEDULES},
    turns={"columns, vector": [(1000, 8), (257, 1), (24, 8), (1026, 2)]},
)
def test_forced_schedules(name: str, schedule: str, columns: int, vector: int) -> None:
    family = FAMILIES[name]
    forced = row_schedule(columns, vector=vector, **SCHEDULES[schedule])
    module = module_at("gpu", family.fn, family.specs(None, columns, F16), forced)
    for rows, order in zip((0, 1, 9, 23), ORDERS, strict=True):
        inputs = family.inputs(rows, columns, F16)
        (result,) = interpreter.run(module, family.name, inputs, **order)
        family.check(result, inputs)


@pytest.mark.parametrize("chunk", [32, 64, 256])
@pytest.mark.parametrize("persistence", ["shared", "multi_pass"])
@pytest.mark.parametrize("blocks", [1, 2])
def test_chunks_with_one_element_more(persistence: str, chunk: int, blocks: int) -> None:
    """Of which one row is all: MLIR folded the reduction of the last element, and the process aborted."""
    if chunk == 32 and blocks == 2:
        pytest.skip("a block has a warp's 32 elements at least")

    def normalized(x):
        return (x - mf.mean(x, axis=-1, keepdims=True)) * mf.rsqrt(mf.var(x, axis=-1, keepdims=True) + 1)

    layout = BlockedLayout((1,), (32,), (chunk // 32 // blocks,), (1,), (blocks,))
    forced = Schedule((chunk,), layout, persistence)
    x = np.random.default_rng(chunk).normal(3, 2, (1, 2 * 256 + 1)).astype(np.float32)
    module = module_at("gpu", normalized, [mf.TensorSpec(x.shape, mf.float32)], forced)
    for order in ORDERS:
        (result,) = interpreter.run(module, "normalized", [x], **order)
        wide = x.astype(np.float64)
        np.testing.assert_allclose(result, (wide - wide.mean()) / np.sqrt(wide.var() + 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("columns", [1000, 1024, 5140, 33000])
@pytest.mark.parametrize("name", ["layer_norm", "variance"])
def test_statistics_far_from_zero(name: str, columns: int) -> None:
    """Mean 1000 and deviation 1: a variance taken as a difference of squares has no correct digit."""
    family = FAMILIES[name]
    module = module_at("gpu", family.fn, family.specs(None, columns, F16))
    inputs = family.inputs(2, columns, F16, mean=1000)
    (result,) = interpreter.run(module, family.name, inputs)
    family.check(result, inputs)


@pytest.mark.parametrize("columns", [1000, 5140, 33000])
def test_merged_moments_in_float32(columns: int) -> None:
    """Merging partial means rounds them at 1000, as Welford's update does; two passes would not."""
    family = FAMILIES["variance"]
    module = module_at("gpu", family.fn, family.specs(None, columns, DTYPES["float32"]))
    inputs = family.inputs(2, columns, DTYPES["float32"], mean=1000)
    (result,) = interpreter.run(module, family.name, inputs)
    np.testing.assert_allclose(result, family.reference(inputs[0].astype(np.float64)), rtol=1e-5)


@combined(
    {
        "name": ["layer_norm", "rms_norm", "softmax", "log_softmax", "variance"],
        "columns": [1, 33, 1000, 5140],
        "special": [np.nan, np.inf, -np.inf],
    }
)
def test_nan_and_infinity_spread_as_in_numpy(name: str, columns: int, special: float) -> None:
    family = FAMILIES[name]
    module = module_at("gpu", family.fn, family.specs(None, columns, F16))
    inputs = family.inputs(3, columns, F16)
    inputs[0][1, columns // 2] = special
    (result,) = interpreter.run(module, family.name, inputs)
    with np.errstate(all="ignore"):
        expected = family.reference(*(a.astype(np.float32) for a in inputs))
    assert np.array_equal(np.isfinite(result), np.isfinite(expected))
    assert np.array_equal(np.isnan(result), np.isnan(expected))
    assert_close(result[[0, 2]], expected[[0, 2]].astype(np.float64), expected[[0, 2]].astype(F16))


@pytest.mark.parametrize("layout", [{"warps": 4}, {"warps": 2, "cluster": 2}, {"warps": 8, "row_warps": 2}, {}])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_warps_and_blocks_that_hold_only_minus_infinity(name: str, layout: dict[str, int]) -> None:
    """Masked rows: what a warp sums about -inf must not reach the others, and a row of nothing else is NaN."""
    family, columns = FAMILIES[name], 1000
    schedule = row_schedule(columns, **layout)
    module = module_at("gpu", family.fn, family.specs(None, columns, F16), schedule)
    inputs = family.inputs(4, columns, F16)
    inputs[0][1, 1:] = -np.inf
    inputs[0][2, :-1] = -np.inf
    inputs[0][3, :] = -np.inf
    (result,) = interpreter.run(module, family.name, inputs)
    with np.errstate(all="ignore"):
        expected = family.reference(*(a.astype(np.float64) for a in inputs))
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=2e-3, atol=1e-6)


@combined(
    {
        "name": ["layer_norm", "rms_norm", "softmax", "log_softmax", "variance"],
        "dtype": ["float16", "float32"],
        "order": ["depth", "breadth"],
        "layout": [{"vector": 8}, {"vector": 4, "warps": 2}, {"warps": 4}, {"vector": 4, "cluster": 2}],
    }
)
def test_partly_spilled_rows(name: str, dtype: str, order: str, layout: dict[str, int]) -> None:
    """What waits in shared memory comes back where it was, in rows that end inside a spilled to shared memory
    fragment's repeat too.
    """
    family, columns = FAMILIES[name], 1000
    for shared_spill in (1, 2):
        schedule = replace(row_schedule(columns, **layout), order=order, shared_spill=shared_spill)
        module = module_at("gpu", family.fn, family.specs(None, columns, DTYPES[dtype]), schedule)
        inputs = family.inputs(3, columns, DTYPES[dtype])
        (result,) = interpreter.run(module, family.name, inputs, order="random", seed=shared_spill)
        family.check(result, inputs)


@pytest.mark.parametrize("layout", [{"vector": 8}, {"vector": 4, "warps": 2}, {"vector": 4, "cluster": 2}])
@pytest.mark.parametrize("name", ["layer_norm", "softmax"])
def test_spilled_rows_in_program_order(name: str, layout: dict[str, int]) -> None:
    """Fragments that are not spilled to shared memory are loaded after those that are, and results are stored at
    recomputed coordinates.
    """
    family, columns = FAMILIES[name], 1000
    schedule = replace(
        row_schedule(columns, **layout), order="depth", shared_spill=2, in_order=True, rematerialize_addresses=True
    )
    module = module_at("gpu", family.fn, family.specs(None, columns, F16), schedule)
    assert "fuse.in_order" in str(module)
    inputs = family.inputs(3, columns, F16)
    (result,) = interpreter.run(module, family.name, inputs, order="random")
    family.check(result, inputs)


@combined(
    {
        "name": ["layer_norm", "softmax", "variance"],
        "layout": [{}, {"warps": 2}, {"warps": 2, "cluster": 2}, {"lanes": 8, "row_warps": 2}],
        "order": ["breadth", "depth"],
    }
)
def test_recomputed_addresses(name: str, layout: dict[str, int], order: str) -> None:
    """Results go where they belong, in rows that end inside of a fragment's repeat, and not behind the last one."""
    family = FAMILIES[name]
    for columns in (512, 1000):
        schedule = replace(row_schedule(columns, vector=4, **layout), order=order, rematerialize_addresses=True)
        module = module_at("gpu", family.fn, family.specs(None, columns, F16), schedule)
        assert "fuse.optimization_barrier" in str(module)
        inputs = family.inputs(3, columns, F16)
        (result,) = interpreter.run(module, family.name, inputs, order="random")
        family.check(result, inputs)


@pytest.mark.parametrize("columns", [7, 32, 1000])
@pytest.mark.parametrize("name", ["layer_norm", "softmax", "variance"])
def test_strided_rows(name: str, columns: int) -> None:
    """Every other row, and a window of the columns, which no wide load can read."""
    family = FAMILIES[name]
    inputs = family.inputs(9, columns + 3, F16)
    x = inputs[0][::2, 1 : columns + 1]
    specs = family.specs(None, columns, F16, strides=(None, 1), align=2)
    module = module_at("gpu", family.fn, specs)
    arguments = [x, *(v[:columns].copy() for v in inputs[1:])]
    (result,) = interpreter.run(module, family.name, arguments)
    family.check(result, arguments)


@pytest.mark.parametrize("columns", [7, 32, 1000])
@pytest.mark.parametrize("name", ["layer_norm", "softmax", "column_sums"])
def test_transposed_inputs(name: str, columns: int) -> None:
    family = FAMILIES[name]
    inputs = family.inputs(9, columns, F16)
    x = np.asfortranarray(inputs[0])
    specs = family.specs(None, columns, F16, strides=(1, None), align=2)
    module = module_at("gpu", family.fn, specs)
    (result,) = interpreter.run(module, family.name, [x, *inputs[1:]])
    family.check(result, [x, *inputs[1:]])


def test_vectors_of_transposed_inputs() -> None:
    """Rows that are a view's columns are loaded in vectors, as others are."""

    def scaled(x, y):
        return y * x.mT / mf.sum(y * y + x.mT * x.mT, axis=-1, keepdims=True)

    rng = np.random.default_rng(0)
    x, y = np.asfortranarray(rng.random((64, 96), np.float32)), rng.random((96, 64), np.float32)
    specs = [mf.TensorSpec(x.shape, "float32", strides=(1, None)), mf.TensorSpec(y.shape, "float32")]
    module = module_at("gpu", scaled, specs)
    assert "memref<96x64xf32, strided<[?, 1]>>, vector<" in str(module)
    (result,) = interpreter.run(module, "scaled", [x, y])
    np.testing.assert_allclose(result, y * x.T / (y * y + x.T * x.T).sum(-1, keepdims=True), rtol=1e-5)
    mf.fuse(scaled, target="sm_90a").lower(*specs).compile()


def test_a_broadcast_input_has_stride_0() -> None:
    family = FAMILIES["softmax"]
    row = family.inputs(1, 40, F16)[0]
    x = np.broadcast_to(row, (5, 40))
    module = module_at("gpu", family.fn, family.specs(None, 40, F16, strides=(0, 1)))
    (result,) = interpreter.run(module, family.name, [x])
    family.check(result, [x])


MUTATED: dict[str, tuple[int, dict[str, Any]]] = {
    "one warp": (29, {}),
    "across warps": (1000, {"vector": 8, "warps": 2}),
    "cluster": (120, {"warps": 2, "cluster": 2}),
    "shared": (1000, {"vector": 8, "warps": 2, "chunk_repeats": 1, "persistence": "shared"}),
}


HARMLESS = {("layer_norm", "cluster"): 3}
"""Survivors that change nothing: at 120 columns the first of a block's two warps is always full, so what chooses its
number of elements always chooses the same. With the four that feed a maximum, 7 of 201 mutants survive."""


def feeds_a_maximum(module: ir.Module, mutant: Mutant) -> bool:
    """Whether the op only keeps padding out of a maximum, where a lane without data repeats an element of the row."""
    users = [use.owner.operation for use in site(module, mutant).results[0].uses]
    if [user.name for user in users] == ["vector.to_elements"]:
        users = [use.owner.operation for result in users[0].results for use in result.uses]
    return all(user.name in ("arith.maximumf", "arith.extf", "gpu.shuffle") for user in users)


@cache
def report_of(name: str, case: str) -> tuple[ir.Module, Report]:
    """A kernel, and what became of every mutant of it: each mutator at each op that it applies to, none left out."""
    columns, options = MUTATED[case]
    family = FAMILIES[name]
    module = module_at("gpu", family.fn, family.specs(None, columns, F16), row_schedule(columns, **options))
    x = spiked_rows(24, columns, F16)
    x[::3] -= F16.type(1500)  # rows below zero: padding that reads as zero would be their maximum
    x[1::6, columns * 4 // 5 :] += F16.type(1000)  # a step: parts of the row whose means differ
    inputs = [x, *family.inputs(1, columns, F16)[1:]]
    (right,) = interpreter.run(module, family.name, inputs)
    family.check(right, inputs)

    def close(result: np.ndarray) -> bool:
        return np.allclose(result.astype(np.float64), right.astype(np.float64), rtol=2e-3, atol=1e-3)

    return module, hunt(module, lambda mutant: interpreter.run(mutant, family.name, inputs)[0], close)


@pytest.mark.parametrize("case", MUTATED)
@pytest.mark.parametrize("name", ["layer_norm", "softmax"])
def test_planted_bugs_are_found(name: str, case: str) -> None:
    """Those that survive are harmless: they let a maximum see an element twice, or are listed in `HARMLESS`."""
    module, report = report_of(name, case)
    survivors = [m for m in report.survivors if not (m.kind == "drop-neutral" and feeds_a_maximum(module, m))]
    listed = "\n".join(f"{m}: {site(module, m)}" for m in survivors)
    assert len(survivors) <= HARMLESS.get((name, case), 0), f"{len(survivors)} survive:\n{listed}"
    assert len(report.caught) > 10


def test_nineteen_of_twenty_planted_bugs_are_found() -> None:
    """Of all mutants of all kernels, the harmless ones counted as not found."""
    reports = [report_of(name, case)[1] for name in ("layer_norm", "softmax") for case in MUTATED]
    caught, survivors = (sum(len(getattr(r, what)) for r in reports) for what in ("caught", "survivors"))
    assert caught >= 0.95 * (caught + survivors), f"{caught} of {caught + survivors}"
