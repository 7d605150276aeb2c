"""Products on Hopper's tensor cores through a ring of stages: exact on integers, at every form and ragged size."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mlirfuse as mf
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from tests.support.contractions.warpgroup_epilogues import CASES, epilogue_inputs
from tests.support.contractions.warpgroup_schedules import cluster_schedule, warpgroup_schedule
from tests.support.gpu.torch_arrays import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="no Hopper GPU"
    ),
]


def nn(x, w):
    return x @ w


def nt(x, w):
    return x @ mf.permute_dims(w, (1, 0))


def tn(x, w):
    return mf.permute_dims(x, (1, 0)) @ w


FORMS = {"nn": nn, "nt": nt, "tn": tn}
SIZES = ((256, 512, 256), (1000, 520, 264), (8, 16, 8), (136, 264, 1032), (64, 8, 4096))
TILES = ((128, 256), (128, 128), (64, 128), (256, 64))


def integers(shape, dtype):
    return torch.randint(-3, 4, shape, device="cuda").to(dtype)


def arguments(form, m, n, k, dtype):
    x = integers((k, m) if form[0] == "t" else (m, k), dtype)
    w = integers((n, k) if form[1] == "t" else (k, n), dtype)
    expected = (x.T if form[0] == "t" else x).double() @ (w.T if form[1] == "t" else w).double()
    return x, w, expected.to(dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_integers_are_exact(form, tile, dtype):
    torch.manual_seed(0)
    product = mf.fuse(FORMS[form], schedule=warpgroup_schedule(*tile))
    for m, n, k in SIZES:
        x, w, expected = arguments(form, m, n, k, dtype)
        out = torch.full((m, n), float("nan"), device="cuda", dtype=dtype)
        product(x, w, out=out)
        assert torch.equal(out, expected), (m, n, k)


@pytest.mark.parametrize("reduction", ["none", "flagged", "grid_sync", "last_block"])
@pytest.mark.parametrize("m", [8, 24, 33, 72, 100])
def test_only_rows_of_an_operand_are_copied(m, reduction):
    """Tiles of more rows than there are, behind a product that leaves NaN in shared memory."""
    torch.manual_seed(0)
    schedule = warpgroup_schedule(128, 64, split=1 if reduction == "none" else 4)
    if reduction in ("flagged", "grid_sync"):
        schedule = with_slices(schedule, reduction)
    product = mf.fuse(nt, schedule=schedule)
    nan = torch.full((256, 2048), float("nan"), device="cuda", dtype=torch.bfloat16)
    for _ in range(3):
        mf.fuse(nt)(nan, nan)
        x, w, expected = arguments("nt", m, 520, 2048, torch.bfloat16)
        out = torch.full((m, 520), float("nan"), device="cuda", dtype=torch.bfloat16)
        product(x, w, out=out)
        assert torch.equal(out, expected)


LAST_ROWS = {
    "both operands": (100, 136, 2048, warpgroup_schedule(64, 64)),
    "persistent": (264, 1032, 520, warpgroup_schedule(128, 64, persistent=True)),
    "consumer_groups": (1000, 520, 264, warpgroup_schedule(128, 112, consumer_groups=2)),
    "cluster": (136, 1000, 1032, warpgroup_schedule(128, 64, cluster=2)),
    "last block": (136, 100, 2048, warpgroup_schedule(64, 64, split=4)),
    "flagged": (136, 104, 2048, with_slices(warpgroup_schedule(64, 64, split=4), "flagged")),
    "one row": (65, 129, 1032, warpgroup_schedule(64, 64, k=128)),
}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("name", LAST_ROWS)
def test_last_tiles_copy_the_rows_that_there_are(name, swapped):
    """Of several tiles, behind a product that leaves NaN in shared memory; nothing is written past the end."""
    m, n, k, schedule = LAST_ROWS[name]
    schedule = replace(schedule, contraction=replace(schedule.contraction, swapped=swapped))
    if swapped:
        m, n = n, m
    product = mf.fuse(nt, schedule=schedule)
    nan = torch.full((256, 2048), float("nan"), device="cuda", dtype=torch.bfloat16)
    torch.manual_seed(0)
    for _ in range(3):
        mf.fuse(nt)(nan, nan)
        x, w, expected = arguments("nt", m, n, k, torch.bfloat16)
        buffer = torch.full((m + 2, n), float("nan"), device="cuda", dtype=torch.bfloat16)
        product(x, w, out=buffer[:m])
        assert torch.equal(buffer[:m], expected)
        assert buffer[m:].isnan().all()


@pytest.mark.parametrize("out", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("grid", [{}, {"persistent": True}, {"consumer_groups": 2}], ids=str)
@pytest.mark.parametrize("tile", [(64, 48), (64, 96), (128, 112), (128, 240)], ids=str)
def test_tiles_whose_last_subtile_overlaps(tile, grid, out):
    if grid.get("consumer_groups") and tile[1] > 128:
        pytest.skip("a consumer group has registers for 128 columns")
    product = mf.fuse(lambda x, w: mf.matmul(x, w.mT, dtype=str(out)[6:]), schedule=warpgroup_schedule(*tile, **grid))
    for m, n, k in ((1000, 520, 264), (2 * tile[0], 2 * tile[1], 136), (2056, 2048, 192)):
        x, w, _ = arguments("nt", m, n, k, torch.bfloat16)
        result = torch.full((m, n), float("nan"), device="cuda", dtype=out)
        product(x, w, out=result)
        assert torch.equal(result, (x.double() @ w.double().T).to(out)), (m, n, k)


@pytest.mark.parametrize("out", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("grid", [{}, {"persistent": True}, {"consumer_groups": 2}], ids=str)
@pytest.mark.parametrize("tile", [(64, 8), (64, 40), (128, 96), (128, 176), (192, 200), (256, 128)], ids=str)
def test_transposed_tiles_leave_through_shared_memory(tile, grid, out):
    if grid.get("consumer_groups") and (tile[0] > 128 or tile[1] > 128):
        pytest.skip("a consumer group has registers for 128 columns of one or two warpgroups' rows")
    schedule = warpgroup_schedule(*tile, **grid)
    schedule = replace(schedule, contraction=replace(schedule.contraction, swapped=True))
    product = mf.fuse(lambda x, w: mf.matmul(x, w.mT, dtype=str(out)[6:]), schedule=schedule)
    for m, n, k in ((1000, 520, 264), (2 * tile[1], 2 * tile[0], 136), (tile[1] + 1, 2048, 192), (136, 132, 64)):
        x, w, _ = arguments("nt", m, n, k, torch.bfloat16)
        result = torch.full((m, n), float("nan"), device="cuda", dtype=out)
        product(x, w, out=result)
        assert torch.equal(result, (x.double() @ w.double().T).to(out)), (m, n, k)


@pytest.mark.parametrize("grid", [{"consumer_groups": 2}, {"persistent": True}], ids=str)
@pytest.mark.parametrize("tile", [(64, 96), (64, 80), (128, 96)], ids=str)
def test_subtiles_are_not_written_while_the_tile_before_leaves(tile, grid):
    """An odd number of subtiles through two stages, behind products so short that stores do not end in time."""
    product = mf.fuse(lambda x, w: mf.matmul(x, w.mT, dtype="float32"), schedule=warpgroup_schedule(*tile, **grid))
    x, w, _ = arguments("nt", 4096, 2048, 64, torch.bfloat16)
    expected = x.float() @ w.float().T
    for _ in range(30):
        result = torch.full_like(expected, float("nan"))
        assert torch.equal(product(x, w, out=result), expected)


def test_other_arrays_get_other_tensor_maps():
    product = mf.fuse(nn, schedule=warpgroup_schedule(128, 128))
    for _ in range(3):
        x, w, expected = arguments("nn", 256, 256, 512, torch.bfloat16)
        assert torch.equal(product(x, w), expected)


@pytest.mark.parametrize("form", FORMS)
def test_a_persistent_grid(form):
    product = mf.fuse(FORMS[form], schedule=warpgroup_schedule(128, 128, persistent=True))
    for m, n, k in (*SIZES, (2056, 2048, 192), (8192, 1024, 64)):
        x, w, expected = arguments(form, m, n, k, torch.bfloat16)
        out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
        product(x, w, out=out)
        assert torch.equal(out, expected), (m, n, k)


@pytest.mark.parametrize("stages", [2, 6])
@pytest.mark.parametrize("form", FORMS)
def test_ping_pong(form, stages):
    product = mf.fuse(FORMS[form], schedule=warpgroup_schedule(128, 128, stages=stages, consumer_groups=2))
    for m, n, k in (*SIZES, (2056, 2048, 192), (8192, 1024, 64), (4104, 2056, 520)):
        for dtype in (torch.bfloat16, torch.float16):
            x, w, expected = arguments(form, m, n, k, dtype)
            out = torch.full((m, n), float("nan"), device="cuda", dtype=dtype)
            for _ in range(3):
                product(x, w, out=out)
                assert torch.equal(out, expected), (m, n, k)


GRIDS = {"one tile a block": {}, "persistent": {"persistent": True}, "consumer_groups": {"consumer_groups": 2}}


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", CASES)
def test_epilogues(name, grid):
    fn, _, reference = CASES[name]
    inputs = epilogue_inputs(name)
    order = "depth" if grid == "consumer_groups" else "breadth"
    fused = mf.fuse(fn, schedule=replace(warpgroup_schedule(128, 64, **GRIDS[grid]), order=order))
    results = fused(*(torch.from_numpy(array).cuda() for array in inputs))
    expected = reference(*(array.astype("float64") for array in inputs))
    for result, want in zip(results if isinstance(results, tuple) else (results,), expected, strict=True):
        assert torch.equal(result.double().cpu(), torch.from_numpy(want))


@pytest.mark.parametrize("cluster", [2, 4])
@pytest.mark.parametrize("form", FORMS)
def test_clusters_share_an_operand(form, cluster):
    for tile in ((128, 128), (64, 64)):
        product = mf.fuse(FORMS[form], schedule=warpgroup_schedule(*tile, stages=4, cluster=cluster))
        for m, n, k in ((256, 512, 256), (1000, 1024, 264), (136, 512, 4104)):
            x, w, expected = arguments(form, m, n, k, torch.bfloat16)
            out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
            product(x, w, out=out)
            assert torch.equal(out, expected), (tile, m, n, k)


@pytest.mark.parametrize("raster", [1, 8])
@pytest.mark.parametrize("cluster", [2, 4])
@pytest.mark.parametrize(
    ("tile", "persistent_loop"),
    [
        ((128, 128), {"consumer_groups": 2}),
        ((64, 64), {"consumer_groups": 2}),
        ((256, 128), {"persistent": True}),
        ((128, 192), {"persistent": True}),
    ],
    ids=str,
)
def test_clusters_loop_the_tiles(tile, persistent_loop, cluster, raster):
    schedule = warpgroup_schedule(*tile, cluster=cluster, **persistent_loop)
    product = mf.fuse(nt, schedule=replace(schedule, contraction=replace(schedule.contraction, raster=raster)))
    columns = tile[1] * cluster
    for m, n, k in ((1000, 2 * columns, 264), (4000, 4096 // columns * columns - 8, 200), (136, columns, 1032)):
        x, w, expected = arguments("nt", m, n, k, torch.bfloat16)
        for _ in range(3):
            out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
            assert torch.equal(product(x, w, out=out), expected), (m, n, k)


@pytest.mark.parametrize("split", [2, 4, 8])
def test_slices_of_k_in_a_cluster(split):
    for tile in ((128, 128), (128, 256), (64, 64)):
        product = mf.fuse(nt, schedule=cluster_schedule(*tile, split))
        for m, n, k in ((256, 512, 1024), (264, 384, 4104), (1000, 520, 2056)):
            x, w, expected = arguments("nt", m, n, k, torch.bfloat16)
            out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
            for _ in range(3):
                product(x, w, out=out)
                assert torch.equal(out, expected), (tile, m, n, k)


@pytest.mark.parametrize("reduction", ["serial", "last_block"])
def test_slices_of_k(reduction):
    schedule = warpgroup_schedule(128, 128)
    for split in (2, 7, 16):
        contraction = replace(schedule.contraction, split=split, reduction=reduction)
        product = mf.fuse(nt, schedule=replace(schedule, contraction=contraction))
        x, w, expected = arguments("nt", 264, 384, 4104, torch.bfloat16)
        for _ in range(3):
            assert torch.equal(product(x, w), expected), split


@pytest.mark.parametrize("stages", [2, 3, 5])
def test_rings_of_any_length(stages):
    product = mf.fuse(nt, schedule=warpgroup_schedule(128, 128, stages=stages))
    for k in (64, 128, 192, 704):
        x, w, expected = arguments("nt", 256, 256, k, torch.bfloat16)
        assert torch.equal(product(x, w), expected), k


def test_random_numbers_as_close_as_the_framework():
    torch.manual_seed(1)
    x, w = (torch.randn(1024, 4096, device="cuda").bfloat16() for _ in range(2))
    exact = x.double() @ w.double().T
    error = (mf.fuse(nt, schedule=warpgroup_schedule(128, 256))(x, w).double() - exact).norm()
    assert error <= 2 * ((x @ w.T).double() - exact).norm()


def test_repeats_are_equal_to_the_bit():
    x, w = (torch.randn(512, 2048, device="cuda").bfloat16() for _ in range(2))
    product = mf.fuse(nt, schedule=warpgroup_schedule(128, 256))
    first = product(x, w)
    assert all(torch.equal(product(x, w), first) for _ in range(20))
