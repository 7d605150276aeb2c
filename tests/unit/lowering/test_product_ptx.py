"""Products down to ptxas, over the families of schedules: no spills, and no `wgmma` that waits for another.

Tiles of every size that the heuristics may choose, of which the largest have hardly a register to spare.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.lowering.ptx.ptxas import find_ptxas
from mlirfuse.schedule.contractions.families.fma import FMA_TILES
from mlirfuse.schedule.contractions.families.mma import MMA_STEPS, MMA_TILES, WIDE_MMA_TILES, mma_schedule
from mlirfuse.schedule.contractions.families.wgmma import (
    BETWEEN_TILES,
    PING_PONG_COLUMNS,
    PING_PONG_ROWS,
    WGMMA_COLUMNS,
    WGMMA_ROWS,
    wgmma_schedule,
)
from mlirfuse.schedule.contractions.family import family_schedules
from mlirfuse.schedule.model.registers import PROMOTED_SETS, PROMOTED_STEP_SETS, fits_promoted
from mlirfuse.schedule.parts.contraction import WHOLE
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.target import target_of
from tests.support.contractions.precisions import PreciseProduct
from tests.support.contractions.product_reductions import CASES as TILE_REDUCTIONS
from tests.support.contractions.product_reductions import Case as Total
from tests.support.contractions.product_reductions import rows_of_squares
from tests.support.contractions.products import MOST_IN_CLUSTER, REDUCTIONS, Product, pinned_schedule
from tests.support.contractions.prologues import CASES as PROLOGUES
from tests.support.contractions.prologues import Case as Prologue
from tests.support.contractions.warpgroup_epilogues import CASES, epilogue_inputs
from tests.support.contractions.warpgroup_schedules import warpgroup_schedule
from tests.support.pairwise import combined, some

pytestmark = pytest.mark.skipif(find_ptxas() is None, reason="ptxas was not found")

LARGE = Product(1032, 520, 4160, "nt")
SHARED = Product(1032, 1024, 4160, "nt")
FLOAT = replace(LARGE, dtype="float32")
PING_PONG = replace(
    warpgroup_schedule(PING_PONG_ROWS, max(PING_PONG_COLUMNS), stages=6, consumer_groups=2), order="depth"
)
LARGEST = ((128, 256), (256, 128))
SPLIT_TILES = {"wgmma": ((64, 128), (128, 128)), "mma": ((64, 64), (16, 64)), "fma": ((64, 64),)}


def _changed(schedule: mf.Schedule, **changes: Any) -> mf.Schedule:
    assert schedule.contraction is not None
    return replace(schedule, contraction=replace(schedule.contraction, **changes))


def _schedules() -> Iterator[tuple[str, Product, mf.Schedule]]:
    for m, n in itertools.product(WGMMA_ROWS, WGMMA_COLUMNS):
        schedule = pinned_schedule(LARGE, m, n, instruction="wgmma")
        assert schedule.contraction is not None
        if family_schedules("wgmma").check_registers(schedule.contraction, schedule.layout, 1, target_of("sm_90a")):
            continue
        yield f"wgmma {m}x{n} persistent", LARGE, _changed(schedule, persistent=True, raster=8)
        if (m, n) in LARGEST:
            yield f"wgmma {m}x{n}", LARGE, schedule
        for promote, sets in ((1, PROMOTED_STEP_SETS), (8, PROMOTED_SETS)):
            if fits_promoted(m, n, sets):
                promoted = _changed(schedule, persistent=True, promote=promote)
                yield f"wgmma {m}x{n} promoted after {promote}", LARGE, promoted
    for m, n in BETWEEN_TILES:
        schedule = pinned_schedule(LARGE, m, n, instruction="wgmma")
        yield f"wgmma {m}x{n}", LARGE, schedule
        for promote, sets in ((1, PROMOTED_STEP_SETS), (8, PROMOTED_SETS)):
            if fits_promoted(m, n, sets):
                yield f"wgmma {m}x{n} promoted after {promote}", LARGE, _changed(schedule, promote=promote)
    for n in PING_PONG_COLUMNS:
        schedule = replace(warpgroup_schedule(PING_PONG_ROWS, n, stages=6, consumer_groups=2), order="depth")
        yield f"wgmma {PING_PONG_ROWS}x{n} in ping-pong", LARGE, schedule
    for form in ("nn", "tn", "tt"):
        product = replace(LARGE, form=form)
        for m, n in LARGEST:
            yield f"wgmma {m}x{n} {form}", product, pinned_schedule(product, m, n, instruction="wgmma")
            swapped = pinned_schedule(product, m, n, instruction="wgmma", swapped=True)
            yield f"wgmma {m}x{n} {form} transposed", product, _changed(swapped, persistent=True)
    for form in ("nn", "nt", "tn", "tt"):
        yield f"wgmma {form} in ping-pong", replace(LARGE, form=form), PING_PONG
        yield f"wgmma {form} transposed in ping-pong", replace(LARGE, form=form), _changed(PING_PONG, swapped=True)
    for cluster in (2, 4):
        yield f"wgmma multicast to {cluster}", SHARED, warpgroup_schedule(128, 256, cluster=cluster)
    for m, n in MMA_TILES:
        yield f"mma {m}x{n}", LARGE, pinned_schedule(LARGE, m, n, instruction="mma")
    for form in ("nn", "nt", "tn", "tt"):
        product = Product(1024, 512, 4096, form)
        for m, n in WIDE_MMA_TILES:
            yield f"mma {m}x{n} {form}, wide", product, pinned_schedule(product, m, n, instruction="mma", wide=True)
    for m, n in FMA_TILES:
        yield f"fma {m}x{n}", FLOAT, pinned_schedule(FLOAT, m, n)
    for instruction, tiles in SPLIT_TILES.items():
        product = FLOAT if instruction == "fma" else LARGE
        for (m, n), reduction in ((tile, reduction) for tile in tiles for reduction in REDUCTIONS):
            split = MOST_IN_CLUSTER if reduction == "cluster" else 13
            # Blocks that wait for each other all fit the device.
            waits = reduction in ("grid_sync", "flagged")
            split_product = replace(product, m=2 * m - 8, n=2 * n - 8) if waits else product
            schedule = pinned_schedule(split_product, m, n, split, reduction, instruction)
            yield f"{instruction} {m}x{n} {reduction}", split_product, schedule
    for (m, n), reduction in (((m, n), reduction) for m, n in FMA_TILES for reduction in WHOLE):
        product = Product(m, n, 4096, "nn", "float32")
        yield f"fma {m}x{n} {reduction} of 128 blocks", product, pinned_schedule(product, m, n, 128, reduction, "fma")


SCHEDULES = {name: (product, schedule) for name, product, schedule in _schedules()}


def check(compiled: mf.Compiled, waiting: int = 0) -> None:
    """`waiting` words may stay elsewhere while the loop along k runs, and be loaded up to twice behind it."""
    for kernel in compiled.resources:
        assert kernel.spill_store_bytes <= 4 * waiting
        assert max(kernel.spill_load_bytes, kernel.stack_bytes) <= 8 * waiting
        assert not kernel.losses


@pytest.mark.parametrize("name", some(SCHEDULES, len(SCHEDULES) // 6))
def test_schedules(name: str) -> None:
    """ptxas fills all registers that there are with what SIMT products multiply next, and some more."""
    product, schedule = SCHEDULES[name]
    compiled = mf.fuse(product.fn, target="sm_90a", schedule=schedule).lower(*product.specs).compile(choose_again=False)
    check(compiled, waiting=5 if name.startswith("fma") else 0)


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("dtype", "m", "n", "k"),
    [
        ("int8", 1024, 1024, 1024),
        ("int32", 1024, 1024, 100),
        ("float32", None, 512, 8),
        ("float64", None, 129, 8),
        ("float64", 33, 31, 31),
        ("int64", 2049, 31, 7),
        ("float64", None, 1000, 31),
        ("int64", 257, 33, 32),
    ],
)
def test_chosen_scalar_products_keep_their_sums(dtype: str, m: int | None, n: int, k: int, chip: str) -> None:
    """Integer products, whose operands are unpacked, and products of one step, whose copies overlap with nothing."""
    specs = [mf.TensorSpec((m, k), dtype), mf.TensorSpec((k, n), dtype)]
    (kernel,) = mf.fuse(lambda x, w: x @ w, target=chip).lower(*specs).compile(choose_again=False).resources
    assert kernel.spill_store_bytes == 0


def test_a_loop_has_room_for_two_of_its_small_exchanges() -> None:
    def product_and_sums(x, w):
        y = mf.matmul(x, w, dtype=mf.float32)
        return y, mf.sum(y, axis=0)

    specs = [mf.TensorSpec((1152, 2240), mf.float16), mf.TensorSpec((2240, 1672), mf.float16)]
    check(mf.fuse(product_and_sums, target="sm_90a").lower(*specs).compile(choose_again=False))


EPILOGUE_SCHEDULES = {
    "one tile a block": warpgroup_schedule(128, 256),
    "persistent": warpgroup_schedule(128, 256, persistent=True),
    "consumer_groups": PING_PONG,
}


@combined({"name": CASES}, turns={"form": EPILOGUE_SCHEDULES})
def test_epilogues(name: str, form: str) -> None:
    specs = [mf.TensorSpec(array.shape, "float16") for array in epilogue_inputs(name)]
    check(
        mf.fuse(CASES[name][0], target="sm_90a", schedule=EPILOGUE_SCHEDULES[form])
        .lower(*specs)
        .compile(choose_again=False)
    )


@pytest.mark.parametrize("steps", range(1, 6))
@pytest.mark.parametrize("persistent", [False, True])
def test_short_sums_of_float8(steps: int, persistent: bool) -> None:
    """Each step's sums are promoted, in a single run of steps or several."""
    product = PreciseProduct(1032, 520, 128 * steps, "nt", "e4m3", "e4m3")
    given = ContractionProblem((), product.m, product.n, product.k, mf.float8_e4m3fn, mf.float32, 16)
    schedule = _changed(wgmma_schedule(given, 128, 128), persistent=persistent)
    check(mf.fuse(product.fn, target="sm_90a", schedule=schedule).lower(*product.specs).compile(choose_again=False))


@pytest.mark.parametrize("case", [*PROLOGUES, *TILE_REDUCTIONS], ids=str)
def test_what_surrounds_products(case: Prologue | Total) -> None:
    specs = [mf.TensorSpec(array.shape, array.dtype.name) for array in case.inputs()]
    check(mf.fuse(case.fn, target="sm_90a").lower(*specs).compile(choose_again=False))


@pytest.mark.parametrize(("m", "n"), MMA_TILES)
def test_tiles_of_computed_operands(m: int, n: int) -> None:
    """Weights of bytes, in steps as deep as the heuristics take them."""

    def dequantised(x, q, s):
        return x @ (q.astype(x.dtype) * s[:, None]).T

    problem = ContractionProblem((), 1032, 520, 4160, mf.float16, mf.float32, 16)
    schedule = mma_schedule(problem, m, n, step_bytes=MMA_STEPS[0])
    shapes = ((1032, 4160), "float16"), ((520, 4160), "int8"), ((520,), "float16")
    specs = [mf.TensorSpec(shape, dtype) for shape, dtype in shapes]
    check(mf.fuse(dequantised, target="sm_90a", schedule=schedule).lower(*specs).compile(choose_again=False))


@pytest.mark.parametrize(("m", "n"), [(128, 256), (256, 128), (64, 256)])
@pytest.mark.parametrize("persistent", [False, True])
def test_reductions_of_large_tiles(m: int, n: int, persistent: bool) -> None:
    schedule = _changed(pinned_schedule(SHARED, m, n, instruction="wgmma"), persistent=persistent)
    specs = [mf.TensorSpec(shape, "float16") for shape in ((1032, 4160), (1024, 4160))]
    check(mf.fuse(rows_of_squares, target="sm_90a", schedule=schedule).lower(*specs).compile(choose_again=False))


def _gelu(x, w, b):
    h = mf.matmul(x, w).astype(mf.float32) + b
    return (0.5 * h * (1 + mf.erf(h * 0.5**0.5))).astype(x.dtype)


def _and_sums_of_columns(x, w):
    y = x.mT @ w.mT
    return y, mf.sum(y.astype(mf.float32), axis=0)


WIDENED = {
    "sums of squares of rows": (rows_of_squares, ((4096, 8192), (14336, 8192))),
    "sums of columns": (_and_sums_of_columns, ((512, 4096), (14336, 512))),
    "GELU of rows that are no subtiles": (_gelu, ((777, 8192), (8192, 1544), (1544,))),
}


@pytest.mark.parametrize("name", WIDENED)
def test_halves_that_are_widened_again(name: str) -> None:
    """Products of float16 that are rounded and then used in single precision, see `lower-float16`."""
    fn, shapes = WIDENED[name]
    specs = [mf.TensorSpec(shape, "float16") for shape in shapes]
    check(mf.fuse(fn, target="sm_90a").lower(*specs).compile(choose_again=False))


@pytest.mark.parametrize(
    ("form", "dtype", "m", "n", "k"),
    [
        ("nt", "bfloat16", 2048, 1544, 68),
        ("nn", "bfloat16", 256, 14336, 68),
        ("nn", "float16", 8192, 100, 200),
        ("nt", "float8_e4m3fn", 5000, 1544, 1001),
    ],
)
def test_chosen_products_of_unaligned_rows(form: str, dtype: str, m: int, n: int, k: int) -> None:
    """Steps of which copies are small and many, in sums of few steps, and copies through registers."""
    shapes = (m, k), (k, n) if form == "nn" else (n, k)
    specs = [mf.TensorSpec(shape, dtype) for shape in shapes]

    def product(x, w):
        return mf.matmul(x, w if form == "nn" else w.mT, dtype=mf.float32 if dtype.startswith("float8") else x.dtype)

    check(mf.fuse(product, target="sm_90a").lower(*specs).compile(choose_again=False))
