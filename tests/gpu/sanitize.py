"""Runs every family of kernels once at small shapes, to be watched by a sanitizer.

compute-sanitizer --tool memcheck|racecheck|initcheck|synccheck python3 -m tests.gpu.sanitize [WORD]

With a word, only the kernels that have it in their name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from tests.support import protocols
from tests.support.contractions import product_reductions, prologues
from tests.support.reductions import grid_persistent, split_rows, spread_clusters, static_reductions, wide
from tests.support.views import transposes

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import mlirfuse as mf
from mlirfuse.runtime.dispatch import Dispatcher
from mlirfuse.schedule.contractions.families.mma import WIDE_MMA_TILES
from tests.gpu.contractions import test_convolution_calls as convolution_calls
from tests.gpu.grid.test_protocols import protocol
from tests.support.contractions.compositions import COMPOSITIONS
from tests.support.contractions.packed import random_packed
from tests.support.contractions.precisions import PreciseProduct
from tests.support.contractions.products import (
    MOST_IN_CLUSTER,
    REDUCTIONS,
    SPLITS,
    TAILS,
    WGMMA,
    Product,
    pinned_schedule,
    tail_schedule,
)
from tests.support.contractions.residuals import SCHEDULES as RESIDUAL_SCHEDULES
from tests.support.contractions.residuals import argument_stages, masked, residual, residual_inputs
from tests.support.contractions.warpgroup_epilogues import CASES as EPILOGUES
from tests.support.contractions.warpgroup_epilogues import epilogue_inputs
from tests.support.contractions.warpgroup_schedules import cluster_schedule, warpgroup_schedule
from tests.support.harnesses.compiling import row_schedule
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.nested import random_nested
from tests.support.reductions.numerics import DTYPES, FAMILIES
from tests.support.reductions.pairs import random_pairs
from tests.support.views.joined import Joined
from tests.support.views.sliced import random_reduced, random_sliced

COLUMNS, ODD = 1000, 1001

SCHEDULES: dict[str, dict[str, Any]] = {
    "one warp": {"vector": 8},
    "rows over warps": {"vector": 8, "row_warps": 4},
    "across warps": {"vector": 8, "warps": 3},
    "cluster": {"vector": 8, "warps": 2, "cluster": 4},
    "shared": {"vector": 8, "warps": 2, "chunk_repeats": 1, "persistence": "shared"},
    "shared, cluster": {"vector": 8, "warps": 1, "cluster": 2, "chunk_repeats": 1, "persistence": "shared"},
    "multi_pass": {"vector": 8, "warps": 2, "chunk_repeats": 1, "persistence": "multi_pass"},
}


def _contraction(schedule: mf.Schedule, **changes: Any) -> mf.Schedule:
    assert schedule.contraction is not None
    return replace(schedule, contraction=replace(schedule.contraction, **changes))


WARPGROUP_SCHEDULES = {
    "128x128": warpgroup_schedule(128, 128),
    "64x64 persistent": warpgroup_schedule(64, 64, persistent=True),
    "128x192 persistent": warpgroup_schedule(128, 192, persistent=True),
    "128x64 in ping-pong": warpgroup_schedule(128, 64, consumer_groups=2),
    "64x128 in ping-pong": warpgroup_schedule(64, 128, stages=5, consumer_groups=2),
    "128x80": warpgroup_schedule(128, 80),
    "128x112 in ping-pong": warpgroup_schedule(128, 112, stages=5, consumer_groups=2),
    "64x64 raster": _contraction(warpgroup_schedule(64, 64), raster=3),
    "64x64 raster, persistent": _contraction(warpgroup_schedule(64, 64, persistent=True), raster=2),
    "64x128 transposed": _contraction(warpgroup_schedule(64, 128), swapped=True),
    "128x96 transposed, in ping-pong": _contraction(
        warpgroup_schedule(128, 96, stages=4, consumer_groups=2), swapped=True
    ),
    "192x72": warpgroup_schedule(192, 72),
    "192x80 transposed, persistent": _contraction(warpgroup_schedule(192, 80, persistent=True), swapped=True),
    "64x64 multicast to 2": warpgroup_schedule(64, 64, cluster=2),
    "128x64 multicast to 4": warpgroup_schedule(128, 64, stages=4, cluster=4),
    "64x64 multicast to 2, persistent": _contraction(warpgroup_schedule(64, 64, cluster=2, persistent=True), raster=2),
    "64x72 multicast to 2, transposed": _contraction(warpgroup_schedule(64, 72, cluster=2), swapped=True),
    "128x64 multicast to 2, in ping-pong": warpgroup_schedule(128, 64, cluster=2, consumer_groups=2),
    "128x64 cluster of 2 slices": cluster_schedule(128, 64, 2),
    "64x128 cluster of 3 slices": cluster_schedule(64, 128, 3),
    "128x128 promoted at every step": warpgroup_schedule(128, 128, promote=1),
    "64x64 promoted, persistent": warpgroup_schedule(64, 64, promote=2, persistent=True),
}
"""Persistent grids, rasters, operands that clusters share, and sums that clusters share."""


EINSUMS: list[tuple[Any, ...]] = [
    ("i,j->ij", (33,), (40,)),
    ("bi,bi->b", (3, 5000), (3, 5000)),
    ("ij,j->i", (70, 1000), (1000,)),
    ("i,ij->j", (1000,), (1000, 70)),
    ("ij,bj,bk->ik", (8, 16), (4, 16), (4, 24)),
    ("bijk,bklj->bli", (2, 9, 16, 24), (2, 24, 20, 16)),
    ("bijk,bklj->bli", (2, 8, 64, 72), (2, 72, 7, 64)),  # a thread has all rows of both
    ("pi,pqrs->iqrs", (16, 16), (16, 8, 9, 10)),
    ("abij,cdij->acbd", (4, 5, 8, 8), (6, 3, 8, 8)),
    ("bii->b", (4, 16, 16)),
    ("ik,kj->ij", (70, 1), (33, 40)),
    ("bhqd,bhkd->bhqk", (2, 3, 40, 16), (2, 3, 24, 16)),
]
"""An outer product, long and short sums, vectors on either side, three operands, dimensions that do not collapse."""

DTYPES_OF_CUPY = ("float16", "float32", "int8", "bool")


def elementwise(x, y):
    return mf.where(x > y, mf.tanh(x), x * y)


def subtiles(x):
    e = mf.exp(x - mf.max(x, axis=0, keepdims=True))
    return e / mf.sum(e, axis=0, keepdims=True)


def cases() -> Iterator[tuple[str, Callable[..., Any], list[np.ndarray]]]:
    """(name, function, inputs) of every kernel."""
    dtype = DTYPES["float16"]
    for label, options in SCHEDULES.items():
        for name in ("layer_norm", "softmax"):
            family = FAMILIES[name]
            fused = mf.fuse(family.fn, schedule=row_schedule(COLUMNS, **options))
            yield f"{name}, {label}", fused, family.inputs(7, COLUMNS, dtype)
            if options.get("persistence", "registers") == "registers" and "row_warps" not in options:
                shared_spill = replace(row_schedule(COLUMNS, **{**options, "vector": 2}), order="depth", shared_spill=1)
                yield (
                    f"{name}, {label}, spilled to shared memory",
                    mf.fuse(family.fn, schedule=shared_spill),
                    family.inputs(7, COLUMNS, dtype),
                )
                ordered = mf.fuse(
                    family.fn, schedule=replace(shared_spill, in_order=True, rematerialize_addresses=True)
                )
                yield f"{name}, {label}, spilled to shared memory in order", ordered, family.inputs(7, COLUMNS, dtype)
    for label, options in SCHEDULES.items():
        if options.get("persistence", "registers") != "registers":
            continue
        for name in ("layer_norm", "softmax"):  # rows of an odd number of elements, the last of which ends the memory
            for how in ("shifted",) if "cluster" in options else ("shifted", "realigned"):
                schedule, inputs = row_schedule(ODD, **{how: True}, **options), FAMILIES[name].inputs(9, ODD, dtype)
                yield f"{name}, {label}, {how}", mf.fuse(FAMILIES[name].fn, schedule=schedule), inputs
                recomputed = replace(schedule, rematerialize_addresses=True)
                yield (
                    f"{name}, {label}, {how}, recomputed addresses",
                    mf.fuse(FAMILIES[name].fn, schedule=recomputed),
                    inputs,
                )
                if prod(schedule.layout.repeats) > 1:
                    shared_spill = replace(schedule, order="depth", shared_spill=1)
                    yield (
                        f"{name}, {label}, {how}, spilled to shared memory",
                        mf.fuse(FAMILIES[name].fn, schedule=shared_spill),
                        inputs,
                    )
    for columns in (33, 5140):
        for name, family in FAMILIES.items():
            yield f"{name}, {columns} columns", mf.fuse(family.fn), family.inputs(9, columns, dtype)
    for columns in (8, 5140):  # more rows than the device works on at a time
        family = FAMILIES["layer_norm"]
        yield f"layer_norm, {columns} columns, prefetched", mf.fuse(family.fn), family.inputs(9001, columns, dtype)
    for columns in (257, 1600, 20480):
        for name, backward in BACKWARD.items():
            yield f"{name}, {columns} columns", mf.fuse(backward.fn), backward.inputs(300, columns, dtype)
    for name in ("rms_norm_backward", "layer_norm_backward"):  # few tiles a block, of a row, and of several unrolled
        for rows, columns in ((600, 4096), (601, 3072)):
            inputs = BACKWARD[name].inputs(rows, columns, dtype)
            yield f"{name}, {columns} columns", mf.fuse(BACKWARD[name].fn), inputs
    for columns in (257, 1600, 20480):
        for name in ("layer_norm_backward", "batch_norm_sums"):
            backward = BACKWARD[name]
            fused = mf.fuse(backward.fn, grid_reduction="atomics")
            yield f"{name}, {columns} columns, atomics", fused, backward.inputs(300, columns, dtype)
    for grid_reduction, (name, columns) in product(("last_block", "second_kernel"), product(BACKWARD, (384, 20480))):
        fused = mf.fuse(BACKWARD[name].fn, grid_reduction=grid_reduction)
        yield f"{name}, {columns} columns, {grid_reduction}", fused, BACKWARD[name].inputs(300, columns, dtype)
    rows = cupy.ones((3, 40, 49), cupy.float16)
    yield "flat tiles", mf.fuse(lambda x, w: (x * w[:, None] + x, x - w[:, None])), [rows, cupy.ones(40, cupy.float16)]
    scores = mf.fuse(lambda x: mf.exp(x - mf.max(x, axis=-1, keepdims=True)) / mf.sum(x * x, axis=-1, keepdims=True))
    yield "flat rows", scores, [rows]
    # One barrier between two visits of tiles, or the last block behind one.
    for name, kept in [*product(("forward", "backward", "softmax"), (0, 1, 3)), ("moments", 0), ("log_sum_exp", 0)]:
        case, schedule = grid_persistent.CASES[name], grid_persistent.in_rows(64, vector=8, repeats=2, kept=kept)
        fused = mf.fuse(grid_persistent.with_known_rows(case.fn), schedule=schedule)
        inputs = list(case.inputs((9001, 64), "float16", np.random.default_rng(kept)))
        yield f"grid persistent {name}, {kept} kept", fused, inputs
    for case, m, n, split in (*SPLITS, *WGMMA):
        for reduction in REDUCTIONS if split > 1 else REDUCTIONS[:1]:
            if reduction == "cluster" and split > MOST_IN_CLUSTER:
                continue
            instruction = "wgmma" if (case, m, n, split) in WGMMA else None
            schedule = pinned_schedule(case, m, n, split, reduction, instruction)
            label = f"product {case}, split {split}, {reduction}"
            yield label, mf.fuse(case.fn, schedule=schedule), case.inputs()
    for case in TAILS:
        yield f"product {case[0]}, last tiles", mf.fuse(case[0].fn, schedule=tail_schedule(*case)), case[0].inputs()
    whole = Product(256, 256, 128, "nt", "bfloat16")
    for tile in WIDE_MMA_TILES:
        schedule = pinned_schedule(whole, *tile, instruction="mma", wide=True)
        yield f"product of wide tiles {tile}", mf.fuse(whole.fn, schedule=schedule), whole.inputs()
    for form, precision in product(("nt", "nn"), ("tf32", "3xtf32")):
        precise = PreciseProduct(136, 72, 100, form, "float32", "float32", precision)
        yield f"product in {precision}, {form}", mf.fuse(precise.fn), precise.normal()
    x = FAMILIES["softmax"].inputs(9, 1001, dtype)[0]
    yield "elementwise", mf.fuse(elementwise), [x, x[::-1].copy()]
    x, w = x[:, : wide.COLUMNS], x[0, : wide.COLUMNS].astype(np.float32)
    yield "wide, columns alone", mf.fuse(wide.column_sums, schedule=wide.CHUNKS), [x.copy(), w]
    yield "wide, parts of rows", mf.fuse(wide.sums_of_everything, schedule=wide.parts_of_rows(2)), [x.copy(), w]
    for (label, schedule), form in product(WARPGROUP_SCHEDULES.items(), ("nn", "nt", "tn")):
        case = Product(264, 256, 136, form, "float16")
        yield f"warpgroup product {label}, {form}", mf.fuse(case.fn, schedule=schedule), case.inputs()
    grids: dict[str, dict[str, Any]] = {
        "": {},
        ", persistent": {"persistent": True},
        ", in ping-pong": {"consumer_groups": 2},
    }
    for label, schedule in RESIDUAL_SCHEDULES.items():
        fused = mf.fuse(residual, schedule=schedule)
        yield f"product and residual, {label}", fused, residual_inputs(residual, 648, 200, 72)
    for label in ("persistent", "transposed, persistent", "consumer_groups"):
        fused = mf.fuse(masked, schedule=argument_stages(RESIDUAL_SCHEDULES[label]))
        yield f"product and stages of arguments, {label}", fused, residual_inputs(masked, 648, 208, 72)
    for name, (label, grid) in product(EPILOGUES, grids.items()):
        fused = mf.fuse(EPILOGUES[name][0], schedule=warpgroup_schedule(128, 64, **grid))
        yield f"warpgroup product with {name}{label}", fused, epilogue_inputs(name)
    # CuPy has no float8.
    for other in (*(c for c in prologues.CASES if "float8_e4m3fn" not in c.dtypes), *product_reductions.CASES):
        yield f"product with {other}", mf.fuse(other.fn), other.inputs()
    for composition in COMPOSITIONS:
        yield f"composition {composition}", mf.fuse(composition.fn), composition.inputs()
    for spread in spread_clusters.CASES:
        yield f"spread cluster, {spread}", mf.fuse(spread.fn, schedule=spread.schedule()), spread.inputs()
    for name, reduction_case in (*static_reductions.CASES.items(), *split_rows.CASES.items()):
        if reduction_case.dtype in DTYPES_OF_CUPY:
            yield f"long rows, {name}", mf.fuse(reduction_case.fn), reduction_case.arrays(seed=1)
    for name, transposed in transposes.CASES.items():
        if transposed.dtype in DTYPES_OF_CUPY:
            yield f"transposed arrays, {name}", mf.fuse(transposed.fn), transposed.arrays()
    for rows in (512, 4096):  # in a block, and in a cluster
        yield f"subtiles of {rows} rows", mf.fuse(subtiles), [FAMILIES["softmax"].inputs(rows, 72, dtype)[0]]
    for label, case in convolution_calls.CASES.items():
        arrays = [convolution_calls.few_integers(np.random.default_rng(5), shape) for shape in case.shapes]
        for name, (function, which, _) in convolution_calls.passes(case).items():
            yield f"convolution {name}, {label}", mf.fuse(function), [arrays[n] for n in which]
    for equation, *shapes in EINSUMS:
        for kind in ("float16", "float32"):
            inputs = [np.ones(shape, kind) for shape in shapes]
            yield f"einsum {equation} of {kind}", mf.fuse(partial(mf.einsum, equation)), inputs
    for seed in range(4):
        for label, made in (
            ("slices", random_sliced(seed)),
            ("reduced slices", random_reduced(seed)),
            ("pairs", random_pairs(seed)),
            ("packed product", random_packed(seed)),
            ("short reduction", random_nested(seed)),
        ):
            yield f"{label}, {seed}", mf.fuse(made.function), made.arrays()
        joined = Joined(seed)
        yield f"joined arrays, {seed}", mf.fuse(partial(joined, mf)), joined.arrays()
    for name in protocols.EXPECTED:
        yield f"protocol {name}", partial(_first_result, protocol(name)), [protocols.integers(20)]


def _first_result(run: Dispatcher, *arrays: Any) -> Any:
    return run(arrays)[0]


def main() -> int:
    """Runs all cases; returns 1 if a result is not finite."""
    failed = 0
    cupy.cuda.set_allocator(
        None
    )  # blocks of a pool are larger than what is asked for: nothing would lie behind the end
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    for label, fused, inputs in cases():
        if word not in label:
            continue
        # Uploads initialise memory in a way that initcheck sees; cupy.asarray does too.
        results = fused(*map(cupy.asarray, inputs))
        arrays = map(cupy.asnumpy, results if isinstance(results, tuple) else (results,))
        finite = all(bool(np.isfinite(a.astype(np.float32)).all()) for a in arrays)
        failed += not finite
        print(f"{'ok ' if finite else 'BAD'} {label}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
