"""Rings of stages, interpreted: exact products at the tile and gpu levels, and protocols with one thing wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mlir import ir

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from tests.support.contractions.products import Product
from tests.support.contractions.warpgroup_schedules import cluster_schedule, warpgroup_schedule
from tests.support.harnesses.compiling import module_at
from tests.support.kernels import parse
from tests.support.pairwise import combined

SIZES = (
    (Product(64, 16, 192, "nt"), 64, 16),
    (Product(136, 72, 328, "nt"), 128, 64),
    (Product(136, 72, 200, "nn"), 128, 64),
    (Product(200, 64, 72, "tn", "float16"), 64, 64),
    (Product(72, 128, 64, "tt", "float16"), 64, 64),
    (Product(256, 64, 640, "nt"), 256, 64),
    (Product(72, 64, 136, "nn", "bfloat16", ((3,), (3,))), 64, 64),
)


@pytest.mark.parametrize(("product", "m", "n"), SIZES, ids=str)
@pytest.mark.parametrize("stage", ["tile", "gpu"])
def test_products(product: Product, m: int, n: int, stage: str) -> None:
    inputs = product.inputs()
    schedule = warpgroup_schedule(m, n, batch=len(product.batch[0]))
    module = module_at(stage, product.fn, product.specs, schedule)
    assert "fuse.warpgroup_mma" in str(module)
    (result,) = interpreter.run(module, product.form, inputs, order="random")
    np.testing.assert_array_equal(result, product.expected(inputs))


@pytest.mark.parametrize(
    ("product", "m", "n", "rows"),
    [
        (Product(40, 128, 200, "nt"), 64, 64, "rows = 40"),
        (Product(128, 9, 72, "nt"), 128, 16, "rows = 9"),
        (Product(40, 72, 72, "nn"), 64, 64, "rows = 40"),
    ],
    ids=str,
)
@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("stage", ["tile", "gpu"])
def test_only_rows_of_an_operand_are_copied(
    product: Product, m: int, n: int, rows: str, split: int, stage: str
) -> None:
    """Where one tile has all of them; the stage's other rows are NaN."""
    inputs = product.inputs()
    module = module_at(stage, product.fn, product.specs, warpgroup_schedule(m, n, split=split))
    assert str(module).count(rows) == 1
    (result,) = interpreter.run(module, product.form, inputs, order="random")
    np.testing.assert_array_equal(result, product.expected(inputs))


LAST_ROWS = {
    "both operands": (Product(136, 144, 200, "nt"), warpgroup_schedule(64, 64), 4),
    "splits": (Product(136, 144, 200, "nt"), warpgroup_schedule(64, 64, split=2), 4),
    "batches": (Product(72, 25, 136, "nt", "bfloat16", ((3,), (3,))), warpgroup_schedule(64, 16, batch=1), 4),
    "left operand": (Product(145, 72, 136, "nn"), warpgroup_schedule(128, 64), 1),
    "right operand": (Product(72, 33, 136, "tt"), warpgroup_schedule(64, 16), 1),
    "persistent": (Product(520, 136, 328, "nt"), warpgroup_schedule(128, 64, persistent=True), 4),
    "consumer_groups": (Product(520, 136, 328, "nt"), warpgroup_schedule(128, 64, consumer_groups=2), 4),
    "cluster": (Product(136, 200, 328, "nt"), warpgroup_schedule(128, 64, cluster=2), 1),
}
"""Products, and how many copies of fewer rows than a tile's there are for last tiles, in branches for each case."""


@pytest.mark.parametrize("name", LAST_ROWS)
@pytest.mark.parametrize("stage", ["tile", "gpu"])
def test_last_tiles_copy_the_rows_that_there_are(name: str, stage: str) -> None:
    """The other rows of a stage are NaN; blocks that share copies of an operand copy all of its tile."""
    product, schedule, copies = LAST_ROWS[name]
    module = module_at(stage, product.fn, product.specs, schedule)
    assert str(module).count(", rows = ") == copies
    (result,) = interpreter.run(module, product.form, product.inputs(), order="random", resident=2)
    np.testing.assert_array_equal(result, product.expected(product.inputs()))


def test_transposed_tiles_copy_the_rows_that_there_are() -> None:
    product = Product(40, 136, 200, "nt")
    schedule = warpgroup_schedule(64, 16)
    assert schedule.contraction is not None
    schedule = replace(schedule, contraction=replace(schedule.contraction, swapped=True))
    module = module_at("gpu", product.fn, product.specs, schedule)
    assert len(re.findall(r"rows = 8 : i64", str(module))) == 4
    (result,) = interpreter.run(module, product.form, product.inputs(), order="random")
    np.testing.assert_array_equal(result, product.expected(product.inputs()))


LAST_ROWS_MUTANTS = {
    "a tile before the last one has too few rows": (r"(sge, %\w+, %c)128\b", r"\g<1>64", None),
    "the last tile awaits the rows of a whole one": ("bytes = 9216", "bytes = 16384", "deadlock"),
    "whole tiles await the rows of the last one": ("bytes = 16384", "bytes = 9216", "deadlock"),
    "the last tile lacks a row": ("rows = 8 : i64", "rows = 7 : i64", "deadlock"),
    "the last tile lacks a row, as announced": (
        r"bytes = 9216 : i64([\s\S]*?)rows = 8 : i64",
        r"bytes = 9088 : i64\g<1>rows = 7 : i64",
        None,
    ),
    "the wrong tiles have fewer rows": ("arith.cmpi sge", "arith.cmpi slt", None),
}
"""What is changed, and what is reported; None where the numbers are wrong."""


@pytest.mark.parametrize("name", LAST_ROWS_MUTANTS)
def test_mutants_of_last_tiles_are_caught(name: str) -> None:
    pattern, replacement, message = LAST_ROWS_MUTANTS[name]
    product = Product(136, 64, 328, "nt")
    module = module_at("gpu", product.fn, product.specs, warpgroup_schedule(64, 64))
    text, count = re.subn(pattern, replacement, str(module))
    assert count, f"nothing to change for {name}"
    if message is not None:
        with pytest.raises(InterpreterError, match=message):
            interpreter.run(parse(text), product.form, product.inputs())
        return
    (result,) = interpreter.run(parse(text), product.form, product.inputs())
    assert not np.array_equal(result, product.expected(product.inputs()))


CLUSTERS = (
    (Product(136, 256, 328, "nt"), 128, 64, 2),
    (Product(72, 256, 200, "tn"), 64, 64, 4),
    (Product(200, 128, 264, "nn", "float16"), 128, 64, 2),
)


@pytest.mark.parametrize(("product", "m", "n", "cluster"), CLUSTERS, ids=str)
@pytest.mark.parametrize("stage", ["tile", "gpu"])
def test_clusters_share_an_operand(product: Product, m: int, n: int, cluster: int, stage: str) -> None:
    module = module_at(stage, product.fn, product.specs, warpgroup_schedule(m, n, cluster=cluster))
    assert f"peers = {cluster}" in str(module)
    for order in ("launch", "random"):
        (result,) = interpreter.run(module, product.form, product.inputs(), order=order)
        np.testing.assert_array_equal(result, product.expected(product.inputs()))


@combined(
    {
        "stage": ["tile", "gpu"],
        "cluster": [2, 4],
        "persistent_loop": [{"persistent": True}, {"consumer_groups": 2}],
        "raster": [1, 2, 3],
    },
    turns={"seed": range(2)},
)
def test_clusters_loop_the_tiles(
    stage: str, cluster: int, persistent_loop: dict[str, Any], raster: int, seed: int
) -> None:
    """Several waves of them, for blocks that stay neighbours; of five SMs four have one."""
    product = Product(392, 64 * 3 * cluster - 8, 200, "nt")
    schedule = warpgroup_schedule(64, 64, cluster=cluster, **persistent_loop)
    assert schedule.contraction is not None
    schedule = replace(schedule, contraction=replace(schedule.contraction, raster=raster))
    module = module_at(stage, product.fn, product.specs, schedule)
    assert f"peers = {cluster}" in str(module)
    (result,) = interpreter.run(module, product.form, product.inputs(), order="random", seed=seed, sms=5)
    np.testing.assert_array_equal(result, product.expected(product.inputs()))


@pytest.mark.parametrize("resident", [1, 2, 5])
@pytest.mark.parametrize("stage", ["tile", "gpu"])
def test_a_persistent_grid_loops_the_tiles(stage: str, resident: int) -> None:
    product = Product(520, 72, 328, "nt")
    module = module_at(stage, product.fn, product.specs, warpgroup_schedule(128, 64, persistent=True))
    (result,) = interpreter.run(module, product.form, product.inputs(), order="random", resident=resident)
    np.testing.assert_array_equal(result, product.expected(product.inputs()))


@combined({"stage": ["tile", "gpu"], "out": ["bfloat16", "float32"], "m, n": [(64, 48), (64, 96), (128, 80)]})
def test_tiles_whose_last_subtile_overlaps(stage: str, out: str, m: int, n: int) -> None:
    """Or that are narrower than one; inside of the result, and past its end."""
    for product in (Product(2 * m, 2 * n, 136, "nt"), Product(m + 8, n + 24, 72, "nt")):

        def fn(x, w, out=out):
            return mf.matmul(x, w.mT, dtype=out)

        for schedule in (warpgroup_schedule(m, n), warpgroup_schedule(m, n, consumer_groups=2)):
            module = module_at(stage, fn, product.specs, schedule)
            assert ("fuse.async_store" in str(module)) == (out == "float32" or n > 64)
            (result,) = interpreter.run(module, "fn", product.inputs(), order="random", resident=2)
            np.testing.assert_array_equal(result, product.expected(product.inputs()).astype(result.dtype))


@pytest.mark.parametrize("grid", [{"consumer_groups": 2}, {"persistent": True}], ids=str)
@pytest.mark.parametrize("n", [96, 80, 64])
@pytest.mark.parametrize("stage", ["tile", "gpu"])
def test_the_next_tile_waits_for_the_stores_that_read_its_subtiles(stage: str, n: int, grid: dict[str, Any]) -> None:
    """Three subtiles in two stages: the first one of a tile goes where the last one of the tile before lies."""
    product = Product(296, 2 * n, 72, "nt")

    def fn(x, w):
        return mf.matmul(x, w.mT, dtype="float32")

    module = module_at(stage, fn, product.specs, warpgroup_schedule(64, n, **grid))
    (result,) = interpreter.run(module, "fn", product.inputs(), order="random", resident=1)
    np.testing.assert_array_equal(result, product.expected(product.inputs()).astype(result.dtype))


@combined(
    {"m, k": [(520, 328), (640, 64), (904, 456), (64, 128)], "resident": [1, 2, 5]}, turns={"stage": ["tile", "gpu"]}
)
def test_consumer_groups_alternate_over_the_tiles(m: int, k: int, resident: int, stage: str) -> None:
    """Tiles by the odd number, so that a consumer group has one more than the other; fewer and more steps than
    stages.
    """
    product = Product(m, 72, k, "nt")
    module = module_at(stage, product.fn, product.specs, warpgroup_schedule(128, 64, consumer_groups=2))
    (result,) = interpreter.run(module, product.form, product.inputs(), order="random", resident=resident)
    np.testing.assert_array_equal(result, product.expected(product.inputs()))


PING_PONG_MUTANTS = {
    "a consumer group does not wait at the order barrier": (
        r'"fuse.mbarrier_wait"\([^\n]*\n(?=[^\n]*arith.xori[^\n]*\n[^\n]*scf.for )',
        "",
        "unwritten|in flight|more arrivals|deadlock",
    ),
    "a consumer group does not pass the order barrier on": (
        r'"fuse.mbarrier_arrive"[^\n]*\n(?=[^\n]*"fuse.warpgroup_wait"[^\n]*pending = 0)',
        "",
        "deadlock",
    ),
    "both consumer groups pass the order barrier first": (
        r"c0_i32\) -> \(index, i32, i32\)",
        "c1_i32) -> (index, i32, i32)",
        "unwritten|in flight|more arrivals|deadlock",
    ),
    "a stage is released before its product is done": ("pending = 1", "pending = 2", "still reads the stage"),
    "a tile's last product is not waited for": ("pending = 0", "pending = 1", "a product"),
}


@pytest.mark.parametrize("name", PING_PONG_MUTANTS)
def test_mutants_of_ping_pong_are_caught(name: str) -> None:
    product = Product(648, 72, 328, "nt")
    module = module_at("gpu", product.fn, product.specs, warpgroup_schedule(128, 64, consumer_groups=2))
    _expect_caught(module, product, PING_PONG_MUTANTS[name], seeds=6, resident=2)


@combined(
    {"promote": [1, 2, 5, 99], "k": [64, 640, 712]}, turns={"stage": ["tile", "gpu"], "persistent": [False, True]}
)
def test_sums_are_promoted(promote: int, k: int, stage: str, persistent: bool) -> None:
    """Steps that are a multiple of what is summed at once, and others, or fewer."""
    product = Product(136, 72, k, "nt")
    schedule = warpgroup_schedule(128, 64, promote=promote, persistent=persistent)
    module = module_at(stage, product.fn, product.specs, schedule)
    (result,) = interpreter.run(module, product.form, product.inputs(), order="random", resident=2)
    np.testing.assert_array_equal(result, product.expected(product.inputs()))


SHARED = Product(136, 256, 640, "nt")

SHARED_MUTANTS = {
    "a block does not wait for its peers' consumers": ("arrivals = 4", "arrivals = 2", "more arrivals|still reads"),
    "a block ends while its peers may write to it": (
        r'"fuse.cluster_barrier"\(\) : \(\) -> \(\)\n(?=\s*gpu.return)',
        "",
        "has ended|in flight",
    ),
    "a release reaches its own block only": (r"\{peers = 2 : i64, warpgroups = 2", "{warpgroups = 2", "deadlock"),
}


def _expect_caught(
    module: ir.Module, product: Product, mutant: tuple[str, str, str], seeds: int = 12, **how: Any
) -> None:
    """Asserts that one of some random orders fails where a pattern of the IR is replaced.

    `mutant` is the pattern, its replacement, and a pattern of the interpreter's message.
    """
    pattern, replacement, message = mutant
    text, count = re.subn(pattern, replacement, str(module))
    assert count, f"nothing to change for {pattern}"

    def run_in_many_orders() -> None:
        for seed in range(seeds):
            interpreter.run(parse(text), product.form, product.inputs(), order="random", seed=seed, **how)

    with pytest.raises(InterpreterError, match=message):
        run_in_many_orders()


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("name", SHARED_MUTANTS)
def test_mutants_of_clusters_are_caught(name: str, persistent: bool) -> None:
    schedule = warpgroup_schedule(128, 64, cluster=2, persistent=persistent)
    module = module_at("gpu", SHARED.fn, SHARED.specs, schedule)
    _expect_caught(module, SHARED, SHARED_MUTANTS[name], sms=4)


CLUSTERED = Product(136, 64, 712, "nt")

CLUSTERED_MUTANTS = {
    "partials are read before they are written": (
        r'"fuse.cluster_barrier"\(\) \{warpgroups = 2 : i64\} : \(\) -> \(\)\n',
        "",
        "never written|race with a write",
    ),
    "a partial is written where another warp may still read the ring": (
        r'"fuse.group_barrier"\(\) \{warpgroups = 2 : i64\} : \(\) -> \(\)\n',
        "",
        "race with a read",
    ),
    "a block ends before the others have read its partial": (
        r'"fuse.cluster_barrier"\(\) \{warpgroups = 2 : i64\} : \(\) -> \(\)\n(?=\s*\} else)',
        "",
        "has ended",
    ),
}


@pytest.mark.parametrize("name", CLUSTERED_MUTANTS)
def test_mutants_of_cluster_reductions_are_caught(name: str) -> None:
    module = module_at("gpu", CLUSTERED.fn, CLUSTERED.specs, cluster_schedule(128, 64, 2))
    _expect_caught(module, CLUSTERED, CLUSTERED_MUTANTS[name])


RING = Product(384, 192, 640, "nt")

MUTANTS = {
    "the producer does not wait for empty stages": (
        r'"fuse.mbarrier_wait"\(%\w+, %\w+, %\w+\)((?!"fuse.mbarrier_wait")[\s\S])*?(?="fuse.mbarrier_expect")',
        "",
        "more arrivals than the 1",
    ),
    "the consumers do not wait for data": (
        r'"fuse.mbarrier_wait"\([^\n]*\n(?=[^\n]*"fuse.warpgroup_mma")',
        "",
        "unwritten|in flight",
    ),
    "a stage is released before its product is done": ("pending = 1", "pending = 2", "still reads the stage"),
    "the results are used before they are there": ("pending = 0", "pending = 1", "a product of a warpgroup"),
    "a subtile is stored before all threads have written it": (
        r'"fuse.group_barrier"[^\n]*\n(?=[^\n]*\n[^\n]*"fuse.async_store")',
        "",
        "no barrier after the stage was written",
    ),
    "a subtile is written again too early": (
        r'"fuse.async_store_wait"\(\) \{pending = 1',
        '"fuse.async_store_wait"() {pending = 2',
        "a store without a wait",
    ),
    "the block ends before its stores have read": (
        r'"fuse.async_store_wait"\(\) \{pending = 0',
        '"fuse.async_store_wait"() {pending = 1',
        "an asynchronous store",
    ),
    "too few bytes are announced": ("bytes = 40960", "bytes = 8192", "deadlock"),
    "too many arrivals are awaited": ("arrivals = 2", "arrivals = 3", "deadlock"),
    "an arrival too many is made": ("arrivals = 2", "arrivals = 1", "more arrivals"),
    "nothing shows the barriers to the block": ("gpu.barrier", "", "is used before a barrier"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str) -> None:
    pattern, replacement, message = MUTANTS[name]
    module = module_at("gpu", RING.fn, RING.specs, warpgroup_schedule(128, 192))
    text, count = re.subn(pattern, replacement, str(module))
    assert count, f"nothing to change for {name}"
    with pytest.raises(InterpreterError, match=message):
        interpreter.run(parse(text), RING.form, RING.inputs())


@pytest.mark.parametrize("stage", ["tile", "gpu"])
@pytest.mark.parametrize(("m", "n", "split"), [(128, 64, 2), (64, 128, 4), (128, 64, 8)])
def test_slices_of_k_in_a_cluster(m: int, n: int, split: int, stage: str) -> None:
    product = Product(72, 72, 584, "nt")
    module = module_at(stage, product.fn, product.specs, cluster_schedule(m, n, split))
    assert "fuse.cluster_view" in str(module)
    assert "fuse.semaphore" not in str(module)
    for order in ("launch", "random"):
        (result,) = interpreter.run(module, product.form, product.inputs(), order=order)
        np.testing.assert_array_equal(result, product.expected(product.inputs()))


@pytest.mark.parametrize("reduction", ["serial", "last_block"])
@pytest.mark.parametrize("stage", ["tile", "gpu"])
def test_slices_of_k(stage: str, reduction: str) -> None:
    product = Product(136, 64, 712, "nt")
    schedule = warpgroup_schedule(128, 64)
    assert schedule.contraction is not None
    contraction = replace(schedule.contraction, split=3, reduction=reduction)
    module = module_at(stage, product.fn, product.specs, replace(schedule, contraction=contraction))
    for order in ("launch", "reversed", "random"):
        (result,) = interpreter.run(module, product.form, product.inputs(), order=order)
        np.testing.assert_array_equal(result, product.expected(product.inputs()))
