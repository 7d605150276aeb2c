"""Which schedules are chosen for contractions."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import mlirfuse as mf
from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.contraction_choice import choose_contraction, fastest_first
from mlirfuse.schedule.contractions.candidates import CLUSTER_COLUMNS, CLUSTERS, RASTER, SQUARE, candidates
from mlirfuse.schedule.contractions.checks import MOST_AT_ONCE, check_contraction, words_at_once
from mlirfuse.schedule.contractions.families.mma import WIDE_MMA_TILES
from mlirfuse.schedule.contractions.families.wgmma import BETWEEN_TILES, wgmma_schedule
from mlirfuse.schedule.contractions.grid import tile_count
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from mlirfuse.schedule.model.residency import resident_blocks
from mlirfuse.schedule.parts.contraction import LONGEST_SUM, WHOLE
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.target import target_of
from tests.support.contractions.contraction_problems import H200, chosen, problem


def test_long_products_of_small_results_are_split() -> None:
    _, contraction = chosen(problem(128, 128, 262144))
    assert contraction.split >= 16
    assert contraction.reduction == "flagged"


def test_large_parts_meet_by_slices() -> None:
    """Flagged buffers take one pass more over them."""
    for m, n, k in ((512, 512, 65536), (384, 512, 32768), (512, 512, 32768), (512, 640, 32768)):
        schedule, contraction = chosen(problem(m, n, k))
        assert (schedule.tile, contraction.reduction) == ((128, 128), "grid_sync"), (m, n, k)


@pytest.mark.parametrize(("chip", "reduction"), [("sm_80", "grid_sync"), ("sm_90a", "flagged")])
def test_blocks_that_copy_by_threads_meet_too(chip: str, reduction: str) -> None:
    """As far as all are resident whatever registers ptxas takes, and threads have registers for what they add up."""
    target = target_of(chip)
    for given in (problem(64, 64, 131072, mf.float32), problem(100, 200, 4096, row_bytes=8)):
        meeting = [
            (schedule, contraction)
            for schedule in candidates(given, target)
            if (contraction := schedule.contraction) is not None and contraction.reduction in WHOLE
        ]
        assert {contraction.reduction for _, contraction in meeting} == set(WHOLE)
        for schedule, contraction in meeting:
            assert check_contraction(contraction, schedule.tile, schedule.layout, given) is None
            blocks = tile_count(schedule, given) * contraction.split
            held = resident_blocks(schedule.layout.threads, target.max_registers_per_thread, target)
            assert blocks <= held * target.sms
            assert contraction.second_stage_layout is not None
            assert words_at_once(contraction, contraction.second_stage_layout) <= MOST_AT_ONCE
    schedule, contraction = chosen(problem(128, 128, 65536, mf.float32), chip)
    assert (contraction.instruction, contraction.reduction) == ("fma", reduction)


def test_operands_that_the_l2_does_not_keep_are_streamed_through_it() -> None:
    """Where blocks read an operand together, that is: waves of tiles come back to it, and few bytes stay for others.

    Splits stream smaller operands, too.
    """
    for m, n, k in ((128, 128, 262144), (64, 128, 131072), (64, 4096, 14336), (2048, 2048, 8192), (256, 512, 8192)):
        assert chosen(problem(m, n, k))[1].streamed, (m, n, k)
    for m, n, k in ((256, 256, 4096), (1024, 1536, 4096), (8192, 8192, 8192)):
        assert not chosen(problem(m, n, k))[1].streamed, (m, n, k)


def test_products_that_fill_the_device_are_not_split() -> None:
    schedule, contraction = chosen(problem(4096, 4096, 4096))
    assert contraction.split == 1
    assert schedule.tile == (128, 256)


def test_narrow_ping_pong_tiles_have_to_gain_what_their_products_lose() -> None:
    """8192^3 in tiles of 128x112 is 36 waves of 7 * 16 columns, and in 128x256 16 waves of 16 * 16: 1.6 % more."""
    assert chosen(problem(8192, 8192, 8192))[0].tile == (128, 256)
    assert chosen(problem(2048, 11008, 4096))[0].tile == (128, 112)


def test_ping_pong_where_blocks_have_several_tiles() -> None:
    for m, n, k in ((1024, 5632, 2048), (2048, 11008, 4096), (4096, 5120, 1280), (200, 28672, 8192)):
        for dtype, precision in ((mf.bfloat16, "ieee"), (mf.float8_e4m3fn, "fast_accum"), (mf.float32, "tf32")):
            given = problem(m, n, k, dtype, precision=precision, accumulator=mf.float32)
            schedule, contraction = chosen(given)
            assert (schedule.tile[0], contraction.consumer_groups, contraction.persistent) == (128, 2, True), given
    for m, n, k in ((2048, 2048, 8192), (1024, 2048, 50304), (512, 512, 65536), (4096, 4096, 14336)):
        assert chosen(problem(m, n, k))[1].consumer_groups == 1, (m, n, k)
    assert chosen(problem(1024, 5632, 2048, accumulator_bytes=4, reduced_over=(True, False)))[1].consumer_groups == 1


def test_blocks_of_one_wave_take_squares_of_tiles() -> None:
    """Where rows of tiles are longer than a square, and never with tiles of a split that are counted at run time."""
    for m, n, k in ((128, 512, 16384), (256, 1024, 8192), (512, 1024, 4096)):
        assert chosen(problem(m, n, k))[1].raster == SQUARE, (m, n, k)
    for m, n, k in ((256, 256, 131072), (512, 512, 8192)):
        assert chosen(problem(m, n, k))[1].raster == 1, (m, n, k)
    assert chosen(problem(4096, 4096, 4096))[1].raster == RASTER
    for m, rasters in ((4096, {1, SQUARE}), (None, {1})):
        contractions = [s.contraction for s in candidates(problem(m, 64, 8192), H200)]
        assert {c.raster for c in contractions if c is not None and c.split > 1} == rasters


@pytest.mark.parametrize(
    ("m", "n", "k", "tile", "consumer_groups"),
    [
        (1536, 1536, 4096, (128, 144), 1),  # 132 tiles; of 128x128 there are 144
        (256, 5120, 5120, (64, 160), 1),
        (1024, 11008, 4096, (128, 112), 2),  # six waves of 7 * 16 columns
        (3072, 3072, 3072, (128, 96), 2),
        (2240, 2048, 2048, (192, 192), 1),  # 132 tiles; two waves of any other
        (192, 14336, 4096, (192, 112), 1),
    ],
)
def test_tiles_leave_no_multiprocessor_without_work(m, n, k, tile, consumer_groups) -> None:
    schedule, contraction = chosen(problem(m, n, k))
    assert (schedule.tile, contraction.consumer_groups) == (tile, consumer_groups)
    waves = tile_count(schedule, problem(m, n, k)) / H200.sms
    assert waves / math.ceil(waves) > 0.95


def test_tiles_in_between_are_for_one_round_of_a_known_number() -> None:
    given = problem(1536, 1536, 4096)
    between = [s for s in candidates(given, H200) if s.tile in BETWEEN_TILES]
    for schedule in between:
        assert schedule.contraction is not None
        assert schedule.contraction.split == 1
        assert schedule.contraction.consumer_groups == 2 or tile_count(schedule, given) <= H200.sms
    assert {s.tile for s in between if s.contraction and s.contraction.consumer_groups == 1} >= {(128, 144), (128, 160)}
    assert not any(
        s.tile in BETWEEN_TILES
        for s in candidates(problem(None, 1536, 4096), H200)
        if s.contraction and s.contraction.consumer_groups == 1
    )


def test_slices_of_any_width_have_a_layout() -> None:
    given = problem(512, 512, 8192)
    for n in (48, 96, 144, 240):
        schedule = with_slices(wgmma_schedule(given, 128, n, split=4))
        assert schedule.contraction is not None
        assert check_contraction(schedule.contraction, schedule.tile, schedule.layout, given) is None


def test_of_equals_those_of_shorter_steps_come_first() -> None:
    thin = problem(16, 4096, 14336, k_contiguous=(False, False))
    (first, least), *others = fastest_first(thin, H200, machine_of("sm_90a"))
    deeper = [us for schedule, us in others if schedule.tile == first.tile and schedule.contraction_part.k > 64]
    assert first.contraction_part.k == 64
    assert min(deeper) == pytest.approx(least, abs=0.01)


def test_few_rows_become_columns_of_a_transposed_tile() -> None:
    schedule, contraction = chosen(problem(16, 2048, 4096))
    assert contraction.swapped
    assert schedule.tile[1] == 16


def test_the_last_of_several_tiles_may_have_few_rows() -> None:
    for m, n, k, tile in ((72, 4096, 4096, (64, 48)), (200, 2048, 4096, (64, 64)), (260, 264, 16384, (64, 64))):
        assert chosen(problem(m, n, k))[0].tile == tile, (m, n, k)


def test_no_row_of_tiles_is_worked_on_by_itself() -> None:
    """Where blocks go through squares of tiles."""
    for m, n, raster in ((320, 2080, SQUARE + 1), (260, 264, SQUARE + 1), (384, 2048, SQUARE), (256, 2048, SQUARE)):
        for schedule in candidates(problem(m, n, 4096), H200):
            assert schedule.contraction is not None
            rows = -(-m // schedule.tile[0])
            is_square = schedule.contraction.raster in (SQUARE, SQUARE + 1) and not schedule.contraction.swapped
            if is_square and schedule.tile[0] == 64:
                assert schedule.contraction.raster == raster, rows


def test_few_rows_have_narrow_tiles_for_all_multiprocessors() -> None:
    for n, k, tile, split in ((4096, 14336, (64, 32), 1), (3072, 4096, (64, 32), 1), (2048, 14336, (64, 128), 4)):
        schedule, contraction = chosen(problem(64, n, k))
        assert (schedule.tile, contraction.split) == (tile, split), (n, k)
        assert contraction.streamed == (n * k > 3072 * 4096)
    assert chosen(problem(8192, 128, 8192))[0].tile == (64, 128)


def test_what_tensor_maps_cannot_describe_goes_another_way() -> None:
    assert chosen(problem(512, 512, 1001, row_bytes=2))[1].instruction == "mma"
    assert chosen(problem(512, 512, 1024), "sm_80")[1].instruction == "mma"
    assert chosen(problem(512, 512, 1024, mf.float32))[1].instruction == "fma"


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_120"])
def test_warps_of_mma_are_wide_where_tiles_fill_the_operands(chip: str) -> None:
    target = target_of(chip)
    for n, wide in ((4096, True), (4000, False)):
        schedule, contraction = chosen(problem(4096, n, 4096, row_bytes=8), chip)
        # Smaller tiles leave fewer of the SMs of sm_120 without work.
        assert (schedule.tile in WIDE_MMA_TILES) == (wide and chip != "sm_120")
        assert contraction.stages * sum(schedule.tile) * (2 * contraction.k + 16) < target.shared_per_block


def test_rows_that_are_copied_through_registers_have_tiles_for_them() -> None:
    schedule, contraction = chosen(problem(4096, 4096, 4097, row_bytes=2))
    assert (schedule.tile, contraction.k, contraction.stages) == ((128, 128), 32, 3)


@pytest.mark.parametrize(
    ("dtype", "precision", "contiguous", "instruction"),
    [
        (mf.float32, "ieee", (True, True), "fma"),
        (mf.float32, "tf32", (True, True), "wgmma"),
        (mf.float32, "tf32", (True, False), "mma"),
        (mf.float32, "3xtf32", (True, True), "mma"),
        (mf.float8_e4m3fn, "ieee", (True, True), "wgmma"),
        (mf.float8_e5m2, "fast_accum", (False, True), "mma"),
    ],
)
def test_instructions_by_precision(dtype, precision, contiguous, instruction) -> None:
    given = replace(problem(512, 512, 1024, dtype, k_contiguous=contiguous), precision=precision)
    chosen = choose_contraction(given, H200, machine_of(H200)).contraction
    assert chosen is not None
    assert chosen.instruction == instruction


def test_sums_that_are_promoted_fit_registers() -> None:
    """A thread has them twice: the tile's, and those of a stage."""
    given = problem(4096, 4096, 4096, mf.float8_e4m3fn)
    assert given.promotes
    chosen = choose_contraction(given, H200, machine_of(H200))
    assert chosen.tile == (128, 128)
    for each in (given, replace(given, errors_show=True)):
        assert {(s.contraction.k, s.contraction.promote) for s in candidates(each, H200) if s.contraction} == {(128, 1)}
    assert chosen.contraction is not None
    for promote in (0, 3):
        contraction = replace(chosen.contraction, promote=promote)
        assert "promoted after 256 elements" in (
            check_contraction(contraction, chosen.tile, chosen.layout, given) or ""
        )
    fast = replace(given, precision="fast_accum")
    assert not fast.promotes
    assert not any(s.contraction.promote for s in candidates(replace(fast, errors_show=True), H200) if s.contraction)
    assert chosen.contraction.consumer_groups == 1
    assert any(s.contraction.consumer_groups > 1 for s in candidates(fast, H200) if s.contraction)


@pytest.mark.parametrize(
    ("m", "n", "k", "promote"),
    [
        (128, 128, 262144, LONGEST_SUM // 64),
        (1024, 2048, 50304, LONGEST_SUM // 64),
        (8192, 8192, 8192, LONGEST_SUM // 64),  # though faster tiles leave no registers
        (128, 128, 8192, 0),  # whose k is split into shorter sums
    ],
)
def test_long_sums_are_promoted_where_errors_show(m: int, n: int, k: int, promote: int) -> None:
    given = problem(m, n, k, mf.bfloat16)
    assert not any(s.contraction.promote for s in candidates(given, H200) if s.contraction)
    precise = replace(given, errors_show=True)
    schedule = choose_contraction(precise, H200, machine_of(H200))
    assert schedule.contraction is not None
    assert schedule.contraction.promote == promote
    assert check_contraction(schedule.contraction, schedule.tile, schedule.layout, precise) is None
    by_mma = replace(schedule.contraction, instruction="mma", promote=1, persistent=False)
    assert "promotes no sums" in (check_contraction(by_mma, schedule.tile, schedule.layout, precise) or "")


def test_clusters_copy_for_each_other_where_rows_are_in_pieces_of_lines() -> None:
    """Rows of 6000 bytes, each 128 of which are in two lines; not of 6144, nor where one wave or splits are faster."""
    schedule, contraction = chosen(problem(3072, 3072, 3000))
    assert contraction.cluster in CLUSTERS
    assert schedule.tile[-1] >= CLUSTER_COLUMNS
    assert math.ceil(3072 / schedule.tile[-1]) % contraction.cluster == 0
    for m, n, k in ((3072, 3072, 3072), (64, 4096, 14344), (512, 512, 4104)):
        assert chosen(problem(m, n, k))[1].cluster == 1, (m, n, k)
    transposed = problem(3072, 3000, 3072, k_contiguous=(True, False))
    assert any(
        s.contraction is not None and s.contraction.cluster > 1 for s in candidates(transposed, target_of("sm_90a"))
    )


def test_reductions_have_no_clusters() -> None:
    with_totals = problem(3072, 3072, 3000, accumulator_bytes=4, reduced_over=(True, False))
    for given in (with_totals, problem(3072, 3072, 3000)):
        for schedule in candidates(given, target_of("sm_90a")):
            contraction = schedule.contraction
            assert contraction is not None
            if contraction.cluster > 1:
                assert not given.accumulator_bytes
                assert check_contraction(contraction, schedule.tile, schedule.layout, given) is None


def test_tiles_that_multiply_more_zeros_are_not_predicted() -> None:
    """Where one covers a side of the result, as few columns and rows; not of products that share an operand."""

    def tiles(given: ContractionProblem, *, swapped: bool) -> set[tuple[int, ...]]:
        found = ((schedule.tile[-2:], schedule.contraction) for schedule in candidates(given, H200))
        return {tile for tile, c in found if c is not None and c.instruction == "wgmma" and c.swapped == swapped}

    assert tiles(problem(8, 8, 262144, batch=(4,)), swapped=False) == {(64, 16)}
    assert {rows for rows, _ in tiles(problem(200, 4096, 4096), swapped=False)} == {64, 128, 192, 256}
    assert tiles(problem(16, 4096, 4096), swapped=True) == {(64, 16), (128, 16), (256, 16), (192, 96)}
    assert list(candidates(problem(64, 8, 4096, arrays=(1, 3)), H200))


def test_other_instructions_propose_where_tiles_multiply_mostly_zeros() -> None:
    def instructions(given: ContractionProblem) -> set[str]:
        return {schedule.contraction_part.instruction for schedule in candidates(given, H200)}

    assert instructions(problem(4096, 4096, 4096)) == {"wgmma"}
    assert instructions(problem(512, 512, 48)) == {"wgmma"}
    assert instructions(problem(512, 512, 16)) == {"wgmma", "mma"}
    assert instructions(problem(4, 8, 48)) == {"wgmma", "mma"}
    assert instructions(problem(4, 8, 4096)) == {"wgmma"}  # whose operands take longer
    assert instructions(problem(4096, 4096, 16)) == {"wgmma"}  # whose results do


@pytest.mark.parametrize(
    ("dtype", "precision"), [(mf.float32, "tf32"), (mf.float32, "3xtf32"), (mf.float8_e4m3fn, "fast_accum")]
)
@pytest.mark.parametrize("chip", ["sm_89", "sm_90a"])
def test_scalar_products_are_exact_ones(dtype: mf.DType, precision: str, chip: str) -> None:
    """Also where tensor cores multiply mostly zeros, or one kind has no schedule, as of three terms in float8."""
    for m, n, k, row_bytes in ((4, 8, 4096, 16), (241, 2, 3, 1), (4096, 4096, 16, 16)):
        given = problem(m, n, k, dtype, precision=precision, accumulator=mf.float32, row_bytes=row_bytes)
        found = {schedule.contraction_part.instruction for schedule in candidates(given, target_of(chip))}
        assert "fma" not in found
