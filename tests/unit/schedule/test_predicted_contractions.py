"""`predict_contraction`: how near it is to measured times, and what its parts depend on."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mlirfuse as mf
from mlirfuse.machine import MachineModel, machine_of, shipped_models
from mlirfuse.schedule.contractions.candidates import candidates
from mlirfuse.schedule.contractions.families.fma import fma_schedule
from mlirfuse.schedule.contractions.families.mma import mma_schedule
from mlirfuse.schedule.contractions.families.wgmma import wgmma_schedule
from mlirfuse.schedule.contractions.family import family_schedules
from mlirfuse.schedule.contractions.grid import PARTS_KEPT, ContractionGrid
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem, EpilogueWork
from mlirfuse.schedule.predict import Prediction
from mlirfuse.schedule.predict.kernels.contractions import predict_contraction
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import target_of
from tests.support.contractions.contraction_problems import problem
from tests.support.contractions.measured_products import Measured, figures, measured

SQUARE = problem(4096, 4096, 4096)


@pytest.fixture(scope="module")
def h200() -> MachineModel:
    return shipped_models()["h200"]


@pytest.fixture(scope="module")
def products() -> list[Measured]:
    return list(measured())


def with_contraction(schedule: Schedule, **changes: object) -> Schedule:
    assert schedule.contraction is not None
    return replace(schedule, contraction=replace(schedule.contraction, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("held_out", [False, True], ids=["others", "held out"])
def test_predictions_are_near_what_was_measured(products: list[Measured], h200: MachineModel, held_out: bool) -> None:
    """Of products that set constants of the model, and of those that did not."""
    some = [product for product in products if product.held_out == held_out]
    found = figures(some, lambda schedule, given: predict_contraction(schedule, given, h200).microseconds)
    assert found.close >= 0.92
    assert found.rank >= 0.94
    assert found.choice <= 1.04


def test_predictions_of_few_steps_are_near_what_was_measured(h200: MachineModel) -> None:
    """Operands and results take the time of these, and stores of results that other families stage otherwise."""
    found = figures(list(measured("thin_products")), lambda s, given: predict_contraction(s, given, h200).microseconds)
    assert found.close >= 0.77
    assert found.choice <= 1.08


def test_operands_of_few_lines_are_crowded(h200: MachineModel) -> None:
    """All SMs copy the same lines in each step, which few parts of the L2 have; clusters copy them more rarely."""

    def copies(m: int, cluster: int = 1) -> float:
        given = problem(m, 1 << 17, 64)
        schedule = with_contraction(wgmma_schedule(given, 64, 128), cluster=cluster)
        return family_schedules("wgmma").step_times(ContractionGrid(schedule, given, h200)).copies

    assert copies(16) > 1.5 * copies(256)
    assert copies(16, cluster=4) < copies(16)


def test_odd_rows_are_stored_in_parts_of_sectors(h200: MachineModel) -> None:
    def exposed(n: int, *, swapped: bool = False) -> float:
        given = problem(64, n, 64, batch=(4096,))
        return predict_contraction(wgmma_schedule(given, 64, 64, swapped=swapped), given, h200).exposed

    assert exposed(49) > 1.3 * exposed(49, swapped=True) > 1.3 * exposed(48)
    assert exposed(50) < exposed(49)


def test_lines_that_tiles_share_are_moved_again(h200: MachineModel) -> None:
    """Where the L2 keeps the result few lines are; tiles across the columns of a row that is a line have whole ones."""

    def moved(m: int, n: int, columns: int, *, swapped: bool = False) -> float:
        given = problem(m, n, 64)
        return predict_contraction(wgmma_schedule(given, 128, columns, swapped=swapped), given, h200).dram

    long = 1 << 20
    assert moved(long, 256, 32) > 2 * moved(long, 256, 64)
    assert moved(long, 256, 64) < moved(long, 256, 96) < moved(long, 256, 32)
    assert moved(long, 256, 32, swapped=True) == moved(long, 256, 64, swapped=True)
    again = 2 * (1 - PARTS_KEPT) * 4096 * 512  # a tenth of the lines, each of which two tiles have parts of
    assert moved(4096, 256, 32) - moved(4096, 256, 64) == pytest.approx(1e6 * again / h200.dram_bandwidth)


def test_rows_that_end_inside_of_a_copy_take_longer(h200: MachineModel) -> None:
    def copies(k: int, steps: int) -> float:
        grid = ContractionGrid(wgmma_schedule(problem(4096, 4096, k), 128, 128), problem(4096, 4096, k), h200)
        return family_schedules("wgmma").step_times(grid).copies * steps

    assert copies(64, 1) < copies(16, 1) == copies(40, 1)
    assert copies(128, 2) < copies(136, 3) < copies(128, 2) + copies(16, 1) * 1.001


def test_copies_of_next_tiles_go_on_while_a_persistent_block_stores(h200: MachineModel) -> None:
    given = problem(1 << 20, 64, 64)
    schedule = with_contraction(wgmma_schedule(given, 64, 64), persistent=True)
    found = predict_contraction(schedule, given, h200)
    assert found.bound == "dram"
    assert found.exposed < 0.2 * found.dram


def test_each_part_bounds_some_kernel(h200: MachineModel) -> None:
    def bound(schedule: Schedule, given: ContractionProblem) -> str:
        return predict_contraction(schedule, given, h200).bound

    assert bound(with_contraction(wgmma_schedule(SQUARE, 128, 256), persistent=True, raster=8), SQUARE) == "tensor"
    assert bound(with_contraction(wgmma_schedule(SQUARE, 256, 64), persistent=True, raster=8), SQUARE) == "shared"
    few_rows = problem(16, 4096, 14336)
    assert bound(wgmma_schedule(few_rows, 64, 16, swapped=True, stages=9, atoms=2), few_rows) == "dram"
    unaligned = problem(4096, 4104, 4104, k_contiguous=(True, False))
    assert bound(wgmma_schedule(unaligned, 128, 128), replace(unaligned, row_bytes=8)) == "l2"
    scalar = problem(1024, 1024, 1024, mf.float32)
    assert bound(fma_schedule(scalar, 128, 128), scalar) == "issue"
    short = problem(64, 64, 1024)
    assert bound(mma_schedule(short, 16, 32), short) == "latency"


def test_blocks_of_a_split_pay_for_meeting(h200: MachineModel) -> None:
    """One block reads all partial sums, or all blocks read a slice."""
    long = problem(128, 128, 65536)
    whole = wgmma_schedule(long, 128, 128)
    split = with_contraction(whole, split=64)
    met = with_slices(split)
    alone, last, sliced = (predict_contraction(s, long, h200) for s in (whole, split, met))
    assert alone.synchronisation == 0 < sliced.synchronisation < last.synchronisation
    assert last.microseconds < alone.microseconds


def test_consumer_groups_hide_the_results_of_tiles(h200: MachineModel) -> None:
    together = with_contraction(wgmma_schedule(SQUARE, 128, 128), persistent=True, raster=8)
    in_turn = with_contraction(wgmma_schedule(SQUARE, 128, 128, consumer_groups=2), raster=8)
    first, second = (predict_contraction(s, SQUARE, h200) for s in (together, in_turn))
    assert second.exposed < first.exposed


def test_rows_of_tiles_that_run_together_spare_device_memory(h200: MachineModel) -> None:
    """A wave along one row of tiles reads a whole operand, which the L2 does not keep until the next wave."""
    large = problem(16384, 16384, 16384)
    one, eight = (
        predict_contraction(with_contraction(wgmma_schedule(large, 128, 256), persistent=True, raster=r), large, h200)
        for r in (1, 8)
    )
    assert eight.dram < one.dram / 2


def test_operands_without_a_batch_dimension_are_fetched_once_where_the_l2_keeps_them(h200: MachineModel) -> None:
    """As are those of einsum("bse,hde->bhsd"), whose loops b and h are batch dimensions."""
    both = problem(1024, 64, 1024, batch=(4, 16))
    apart = replace(both, batch_reads=((True, False), (False, True)))
    schedule = wgmma_schedule(both, 128, 64)
    operands, result = 2 * 1024 * (4 * 1024 + 16 * 64), 64 * 2 * 1024 * 64
    assert predict_contraction(schedule, apart, h200).dram == pytest.approx(
        1e6 * (operands + result) / h200.dram_bandwidth
    )
    # An operand without the outer dimension is gone when all of the other's products have been traversed.
    large = replace(problem(4096, 4096, 4096, batch=(4, 4)), batch_reads=((False, True), (True, True)))
    grid = ContractionGrid(wgmma_schedule(large, 128, 128), large, h200)
    assert grid.fetches((32e6, 32e6)) == (16, 16)
    assert ContractionGrid(wgmma_schedule(large, 128, 128, swapped=True), large, h200).fetches((1e6, 1e6)) == (16, 4)


def test_copies_of_scattered_elements_take_a_sector_each_and_those_of_zeros_none(h200: MachineModel) -> None:
    def copies(given: ContractionProblem, tile: int) -> float:
        grid = ContractionGrid(fma_schedule(given, tile, tile), given, h200)
        return family_schedules("fma").step_times(grid).copies

    given = problem(128, 128, 4096, mf.float32)
    assert copies(replace(given, scattered=(True, False)), 128) == pytest.approx(copies(given, 128) * (8 + 1) / 2)
    assert copies(problem(32, 32, 4096, mf.float32), 128) == pytest.approx(copies(given, 128) / 4)


def test_parts_follow_the_machine(h200: MachineModel) -> None:
    schedule = with_contraction(wgmma_schedule(SQUARE, 128, 256), persistent=True, raster=8)

    def predicted(**changes: float) -> Prediction:
        return predict_contraction(schedule, SQUARE, replace(h200, **changes))  # type: ignore[arg-type]

    plain = predicted()
    assert predicted(dram_bandwidth=2 * h200.dram_bandwidth).dram == pytest.approx(plain.dram / 2)
    assert predicted(wgmma_16bit_per_sm=2 * h200.wgmma_16bit_per_sm).tensor == pytest.approx(plain.tensor / 2)
    assert predicted(tma_line_bandwidth_per_sm=2 * h200.tma_line_bandwidth_per_sm).l2 == pytest.approx(plain.l2 / 2)
    assert predicted(sms=2 * h200.sms).microseconds < plain.microseconds


@pytest.mark.parametrize("chip", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("dtype", [mf.float16, mf.float32, mf.float64], ids=str)
def test_every_machine_and_type_has_predictions(chip: str, dtype: mf.DType) -> None:
    given = problem(None, 1024, 512, dtype, batch=(3,))
    target, machine = target_of(chip), machine_of(chip)
    schedules = list(candidates(given, target))
    assert schedules
    for schedule in schedules:
        found = predict_contraction(schedule, given, machine)
        assert 1 < found.microseconds < 1e5


def test_what_follows_a_product_takes_bytes_and_instructions(h200: MachineModel) -> None:
    """Results and arguments of four bytes, special functions, and loads that wait for the last product."""
    given = problem(8192, 8192, 128)
    schedule = with_contraction(wgmma_schedule(given, 128, 128, consumer_groups=2), raster=8)
    plain = predict_contraction(schedule, given, h200)
    stored = predict_contraction(schedule, replace(given, epilogue=EpilogueWork(written=4, read=4)), h200)
    assert stored.dram - plain.dram == pytest.approx(6 * 8192**2 / h200.dram_bandwidth * 1e6)
    computed = predict_contraction(schedule, replace(given, epilogue=EpilogueWork(2, 0, 0, 40, 2)), h200)
    assert computed.issue == pytest.approx(h200_rounds(8192, 128) * 128**2 * 40 / h200.issue_per_sm * 1e6)
    assert computed.special > 0
    assert plain.issue == plain.special == 0
    loaded = predict_contraction(schedule, replace(given, epilogue=EpilogueWork(2, 4, 1)), h200)
    copied = predict_contraction(schedule, replace(given, epilogue=EpilogueWork(2, 2, 1), residual_bytes=2), h200)
    assert loaded.latency > copied.latency


def h200_rounds(extent: int, tile: int) -> int:
    """Tiles of the busiest SM of a square result."""
    return -(-((extent // tile) ** 2) // 132)


def test_an_array_that_is_both_operands_is_fetched_once(h200: MachineModel) -> None:
    """Where the tiles of one product run together, or the L2 holds the array."""
    given = problem(256, 256, 16384, batch=(16,), k_contiguous=(False, False))
    schedule = wgmma_schedule(given, 128, 128, split=2)
    apart = predict_contraction(schedule, given, h200).dram
    once = predict_contraction(schedule, replace(given, one_array=True), h200).dram
    assert apart - once == pytest.approx(16 * 256 * 16384 * 2 / h200.dram_bandwidth * 1e6)


def test_windows_are_read_from_memory_once_a_wave(h200: MachineModel) -> None:
    """The nine taps of each channel read the same image, as do waves one after the other."""
    channels, taps, pixels = 64, 9, 256 * 56 * 56
    apart = problem(64, taps * channels, pixels, mf.float16, k_contiguous=(False, False))
    image = replace(apart, windows=(None, (pixels * channels, channels, 0)))
    given = with_contraction(wgmma_schedule(apart, 64, 64), split=14)

    def nbytes(given: Schedule, of: ContractionProblem) -> float:
        return ContractionGrid(given, of, h200).dram_bytes

    x, dy = 2 * pixels * channels, 2 * pixels * 64
    assert nbytes(given, apart) == pytest.approx(taps * x + dy, rel=0.01)
    assert nbytes(given, image) == pytest.approx(x + dy, rel=0.01)
    wide = with_contraction(wgmma_schedule(apart, 64, 64), split=132)  # a tile a wave
    assert nbytes(wide, image) == pytest.approx(taps * (x + dy), rel=0.01)
    forward = problem(pixels, 128, taps * channels, mf.float16, windows=((pixels * channels, pixels, 0), None))
    assert nbytes(wgmma_schedule(forward, 128, 128), forward) == pytest.approx(x + 2 * pixels * 128, rel=0.01)


@pytest.mark.parametrize("strided", [(1, 0), (0, 1)])
def test_elements_that_are_accessed_by_themselves_take_longer(h200: MachineModel, strided: tuple[int, int]) -> None:
    """Each is a part of a sector of its own, of results and of what the epilogue reads."""
    given = ContractionProblem((128,), 384, 384, 384, mf.bfloat16, mf.float32, 16, epilogue=EpilogueWork(2, 2, 1))
    schedule = wgmma_schedule(given, 128, 128)
    plain, apart = (
        predict_contraction(schedule, replace(given, strided=each), h200).exposed for each in ((0, 0), strided)
    )
    assert apart > 2 * plain
