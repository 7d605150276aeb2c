"""The choice of schedules for rows: pure functions of a problem and a target."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mlirfuse as mf
from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.choice import RESOLUTION, choose_schedule
from mlirfuse.schedule.choice.proposals import loops, proposals
from mlirfuse.schedule.elementwise import MOST_READ_BYTES, elementwise_schedules
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.registers import registers_per_thread
from mlirfuse.schedule.model.residency import REGISTER_STEP, registers_left, resident_blocks
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.predict import predict
from mlirfuse.schedule.predict.counts.space import with_extents
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem, TransposedProblem
from mlirfuse.schedule.reduction_parts import row_parts
from mlirfuse.schedule.rows.candidates import FEW_SPARE, row_candidates
from mlirfuse.schedule.schedule import check_schedule
from mlirfuse.target import target_of

TARGET = target_of("sm_90a")


def _layer_norm(columns: int) -> Problem:
    """LayerNorm in half precision after two adds, with four operands that all rows share."""
    return Problem(
        (None, columns),
        frozenset({1}),
        1,
        8,
        4,
        2,
        live_bytes=2,
        stores_last=True,
        shared_spill_bytes=2,
        column_bytes=8,
        dependent_reductions=1,
    )


@pytest.mark.parametrize(
    ("columns", "vector", "lanes"),
    [(1024, 8, 16), (1280, 8, 16), (1600, 4, 16), (2048, 8, 32), (3200, 4, 32)],
)
def test_short_rows_fill_their_threads(columns: int, vector: int, lanes: int) -> None:
    schedule = choose_schedule(_layer_norm(columns), TARGET)
    assert (schedule.layout.vector[1], schedule.layout.lanes[1]) == (vector, lanes)
    assert schedule.layout.extents[1] == columns


@pytest.mark.parametrize("nbytes", [1, 2, 3])
@pytest.mark.parametrize("columns", [2, 7, 31])
def test_small_rows_of_narrow_elements_fill_one_block_at_most(columns: int, nbytes: int) -> None:
    """Blocks of 4096 bytes would take more threads than there are in one."""
    schedule = choose_schedule(
        Problem((None, columns), frozenset({1}), 1, 1, nbytes, nbytes, dependent_reductions=1), TARGET
    )
    assert check_schedule(schedule, (None, columns), frozenset({1}), TARGET) is None
    assert schedule.layout.cluster == 1


def test_finer_vectors_leave_no_padding() -> None:
    problem = _layer_norm(3000)
    for candidate in row_candidates(problem, TARGET):
        layout = candidate.layout
        assert layout.extents[1] == 3000 or (layout.vector[1], layout.lanes[1]) == (8, 32)


def test_spilled_fragments_keep_their_order_where_columns_meet_them_early() -> None:
    problems = [replace(_layer_norm(65536), early_column_bytes=n) for n in (0, 4)]
    late, early = ([c for c in row_candidates(p, TARGET) if c.shared_spill] for p in problems)
    assert early == [replace(schedule, in_order=True) for schedule in late] != []


def test_rows_in_registers_have_no_order_to_keep() -> None:
    schedule = choose_schedule(replace(_layer_norm(4096), early_column_bytes=4), TARGET)
    assert not schedule.shared_spill
    assert not schedule.in_order


def test_addresses_are_late_where_registers_are_short() -> None:
    """Of aligned rows: spilled to shared memory ones, and others that are worked on depth first and leave a few
    registers.
    """
    for columns in (3001, 8192, 20480, 65536):
        for schedule in row_candidates(_layer_norm(columns), TARGET):
            problem = _layer_norm(columns)
            needed = registers_per_thread(problem, schedule.layout, schedule.order, schedule.shared_spill)
            spare = registers_left(schedule.layout.threads, schedule.blocks_per_sm, TARGET) - needed
            tight = spare <= FEW_SPARE and schedule.order == "depth"
            assert schedule.rematerialize_addresses == bool(schedule.shared_spill or tight)


def test_rows_that_begin_inside_of_sectors_are_shifted_to_lines() -> None:
    """Long rows in registers, as each write would end in a part of a sector; short ones are not."""
    softmax = Problem(
        (None, 5140),
        frozenset({1}),
        1,
        4,
        4,
        2,
        live_bytes=2,
        stores_last=True,
        shared_spill_bytes=2,
        dependent_reductions=1,
        line=64,
    )
    for columns, shift_to in ((260, ()), (5140, (0, 64))):
        assert choose_schedule(replace(softmax, extents=(None, columns)), TARGET).layout.shift_to == shift_to
    assert choose_schedule(replace(softmax, line=0), TARGET).layout.shift_to == ()


def test_rows_that_are_spilled_in_order_are_not_shifted() -> None:
    for early in (0, 4):
        problem = replace(_layer_norm(50004), vector=4, line=64, early_column_bytes=early)
        spilled = [c for c in row_candidates(problem, TARGET) if c.shared_spill]
        assert spilled
        assert any(schedule.layout.is_shifted for schedule in spilled) == (not early)
        assert all(schedule.in_order == (early > 0) for schedule in spilled)


def test_addresses_of_unaligned_rows_are_late_breadth_first() -> None:
    softmax = Problem(
        (None, 3001),
        frozenset({1}),
        1,
        1,
        2,
        2,
        live_bytes=2,
        stores_last=True,
        shared_spill_bytes=2,
        dependent_reductions=1,
        unaligned_vector=8,
    )
    for columns, late in ((3001, True), (94209, False)):
        schedule = choose_schedule(replace(softmax, extents=(None, columns)), TARGET)
        assert schedule.layout.is_shifted
        assert schedule.rematerialize_addresses == late


@pytest.mark.parametrize("threads", [64, 96, 320, 512, 800, 1024])
def test_registers_left_are_the_most_that_a_number_of_blocks_leaves(threads: int) -> None:
    for blocks in range(1, TARGET.threads_per_sm // threads + 1):
        registers = registers_left(threads, blocks, TARGET)
        assert resident_blocks(threads, registers, TARGET) >= blocks
        more = registers + REGISTER_STEP
        assert more > TARGET.max_registers_per_thread or resident_blocks(threads, more, TARGET) < blocks


@pytest.mark.parametrize("arrays", [1, 50, 51, 100, 101, 500])
def test_threads_of_elementwise_kernels_read_less_of_many_arrays(arrays: int) -> None:
    problem = Problem((None,), frozenset(), 0, 4, 4 * arrays + 4, 4 * arrays)
    layout = choose_schedule(problem, TARGET).layout
    assert layout.elements_per_thread == 1 or layout.elements_per_thread * 4 * arrays <= MOST_READ_BYTES


@pytest.mark.parametrize("arrays", [1, 20, 49, 98])
def test_threads_of_large_blocks_read_what_their_registers_hold(arrays: int) -> None:
    problem = Problem((None, 192), frozenset(), 1, 4, 4 * arrays + 4, 4 * arrays)
    found = list(elementwise_schedules(problem, TARGET))
    assert found
    for layout in (schedule.layout for schedule in found):
        held = registers_left(layout.threads, 1, TARGET) * REGISTER_BYTES
        assert layout.elements_per_thread == 1 or layout.elements_per_thread * 4 * arrays < held


@pytest.mark.parametrize(
    ("read", "written", "most"),
    [((2, 4, 4, 4), (4, 4, 4), 4), ((1,), (2,), 8), ((1, 2, 4), (2, 4), 4), ((2, 2), (2,), 8)],
)
def test_vectors_are_of_16_bytes_of_the_widest_type_at_most(
    read: tuple[int, ...], written: tuple[int, ...], most: int
) -> None:
    """Several accesses of a thread side by side would each write parts of sectors."""
    narrowest = 16 // min((*read, *written))
    widths = [(n, False) for n in read] + [(n, True) for n in written]
    arrays = tuple(ArrayAccess((0,), (1,), n, 16, is_written, is_contiguous=True) for n, is_written in widths)
    problem = Problem(
        (1 << 25,), frozenset(), 0, narrowest, sum(read) + sum(written), sum(read), instructions=8.0, arrays=arrays
    )
    assert choose_schedule(problem, TARGET).layout.vector[0] <= most


@pytest.mark.parametrize("arrays", [48, 64])
def test_sums_of_many_arrays_do_not_spill(arrays: int) -> None:
    fused = mf.fuse(lambda *xs: sum(xs[1:], xs[0]))
    (resources,) = fused.lower(*[mf.TensorSpec((None, 64), mf.float16)] * arrays).compile(choose_again=False).resources
    assert resources.spill_store_bytes == 0


def shareable(extents: tuple[int | None, ...], reduced: int, nbytes: int) -> Problem:
    """Sums over one dimension, which a grid can do too."""
    kept = frozenset(range(len(extents))) - {reduced}
    persistent_loop = PersistentLoopProblem((reduced,), kept, 4, 0, inner=False)
    last = len(extents) - 1
    finer = persistent_loop if reduced == last else None
    return Problem(
        extents, frozenset({reduced}), last, 16 // nbytes, nbytes, nbytes, dependent_reductions=1,
        persistent_loop=persistent_loop, finer_loop=finer,
        loop_is_optional=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("extents", "reduced", "nbytes", "walks"),
    [
        ((1 << 26,), 0, 4, True),
        ((1 << 19,), 0, 4, True),
        ((1 << 18,), 0, 4, False),  # a cluster holds it
        ((4, 1 << 20), 1, 4, True),
        ((300, 1 << 19), 1, 4, False),  # so many rows no block keeps the reductions of
        ((None, 1 << 20), 1, 4, False),
        ((50000, 1024), 0, 2, True),  # a twentieth of the time of blocks with columns of their own, as measured
        ((128, 65536), 0, 2, False),  # 5.9 us where each block has columns of its own, 10.5 us otherwise, as measured
        ((1000000, 16), 0, 2, True),
        ((16, 1 << 20), 0, 2, False),  # a block holds 16 rows of some columns
        ((None, 4, 1024), 1, 2, False),
    ],
)
def test_all_blocks_share_what_none_holds(
    extents: tuple[int | None, ...], reduced: int, nbytes: int, walks: bool
) -> None:
    schedule = choose_schedule(shareable(extents, reduced, nbytes), target_of("sm_90a"))
    assert (schedule.persistent_loop is not None) == walks


def test_columns_that_only_a_cluster_holds_are_looped_by_blocks() -> None:
    schedule = choose_schedule(shareable((None, 512, 1024), 1, 2), target_of("sm_90a"))
    assert (schedule.persistence, schedule.layout.cluster) == ("multi_pass", 1)


@pytest.mark.parametrize(("chip", "cluster"), [("sm_90a", 4), ("sm_80", 1)])
def test_clusters_share_rows_that_are_read_again(chip: str, cluster: int) -> None:
    """Columns too, which blocks with narrow tiles of their own may be faster at."""
    rows, columns = shareable((None, 1 << 20), 1, 4), shareable((None, 16384, 512), 1, 4)
    schedule = choose_schedule(rows, target_of(chip))
    assert (schedule.persistence, schedule.layout.cluster) == ("multi_pass", cluster)
    found = [p.schedule for p in proposals(columns, target_of(chip)) if p.schedule.persistence == "multi_pass"]
    assert {schedule.layout.cluster for schedule in found} == {1, cluster}
    assert choose_schedule(columns, target_of(chip)) in found


def test_columns_of_an_unknown_number_of_matrices_have_blocks_of_their_own() -> None:
    """A persistent loop's tiles would hold all matrices, and a cluster the columns of one."""
    total = mf.fuse(lambda x: mf.sum(x.astype(mf.float32), axis=1), target="sm_90a")
    explained = total.lower(mf.TensorSpec((None, 512, 1024), mf.bfloat16)).compile().explain(verbose=True)
    assert "cluster 1, multi_pass" in explained


@pytest.mark.parametrize(
    ("extents", "reduced", "nbytes", "parts"),
    [
        ((None, 1 << 22), 1, 2, 256),  # of 32 KB
        ((None, 1000000), 1, 2, 100),  # of 10000 numbers: 62 to 99 parts would be of no whole vectors
        ((None, 1 << 17), 1, 2, 8),
        ((None, 1 << 16), 1, 2, 1),  # a block holds it
        ((None, 8 * 131071), 1, 2, 1),  # vectors of a prime number
        ((2, 1 << 22), 1, 2, 1),  # a grid loops overthem
        ((1 << 22,), 0, 2, 1),
        ((None, 1 << 20, 64), 1, 2, 1),  # columns
    ],
)
def test_long_rows_of_an_unknown_number_have_parts(
    extents: tuple[int | None, ...], reduced: int, nbytes: int, parts: int
) -> None:
    assert row_parts(shareable(extents, reduced, nbytes), TARGET) == parts


def test_rows_that_are_needed_again_stay_whole() -> None:
    problem = shareable((None, 1 << 22), 1, 2)
    for other in (
        replace(problem, live_bytes=2, stores_last=True),
        replace(problem, dependent_reductions=2),
        replace(problem, column_bytes=4),
    ):
        assert row_parts(other, TARGET) == 1


@pytest.mark.parametrize("rows", [512, 1024, 4096, 8192, 16384])
def test_clusters_hold_column_tiles_that_are_needed_again(rows: int) -> None:
    """Of whole columns, in registers, and of several sizes where several fit."""
    problem = Problem(
        (None, rows, 1024),
        frozenset({1}),
        2,
        8,
        4,
        2,
        live_bytes=2,
        stores_last=True,
        shared_spill_bytes=2,
        dependent_reductions=1,
    )
    schedule = choose_schedule(problem, TARGET)
    assert (schedule.tile[:2], schedule.persistence) == ((1, rows), "registers")
    assert schedule.layout.elements_per_thread <= 128
    tiles = {s.schedule.tile[2] for s in proposals(problem, TARGET) if s.family == "column_tiles"}
    assert len(tiles) > 1 or rows > 8192


def test_columns_of_which_no_cluster_holds_a_tile_are_read_again() -> None:
    problem = Problem(
        (None, 1 << 17, 1024),
        frozenset({1}),
        2,
        8,
        4,
        2,
        live_bytes=2,
        stores_last=True,
        shared_spill_bytes=2,
        dependent_reductions=1,
    )
    assert choose_schedule(problem, TARGET).persistence == "multi_pass"


@pytest.mark.parametrize(
    ("extents", "reduced", "nbytes", "warps", "repeats"),
    [
        ((None, 3136, 64), 1, 2, 16, 16),  # lanes lie along rows as well
        ((None, 1 << 17), 0, 4, 16, 2),  # four columns a thread
    ],
)
def test_few_warps_loop_columns_that_fill_all_lanes(
    extents: tuple[int | None, ...], reduced: int, nbytes: int, warps: int, repeats: int
) -> None:
    layout = choose_schedule(shareable(extents, reduced, nbytes), TARGET).layout
    assert (layout.warps[reduced], layout.repeats[reduced]) == (warps, repeats)


def test_tiles_of_transposed_arrays_have_a_layout_for_either() -> None:
    """Rows of both are whole lines: eight lanes of 16 bytes, or lanes of one element where rows are not aligned."""
    transposed = TransposedProblem(0, 8, 2, 2)
    schedule = choose_schedule(Problem((8192, 8192), frozenset(), 1, 8, 4, 2, transposed=transposed), TARGET)
    assert schedule.transposed is not None
    for layout, along in ((schedule.layout, 1), (schedule.transposed.layout, 0)):
        assert (layout.lanes[along], layout.vector[along], layout.warps[1 - along]) == (8, 8, 8)
        assert layout.extents == schedule.tile == (64, 64)
    odd = choose_schedule(
        Problem((None, 777), frozenset(), 1, 1, 8, 4, transposed=TransposedProblem(0, 4, 4, 4)), TARGET
    )
    assert odd.transposed is not None
    assert (odd.layout.lanes, odd.transposed.layout.vector, odd.tile) == ((1, 32), (4, 1), (64, 64))
    bytes_ = choose_schedule(
        Problem((None, 4096), frozenset(), 1, 16, 2, 1, transposed=TransposedProblem(0, 16, 1, 1)), TARGET
    )
    assert bytes_.tile == (128, 128)


def test_tiles_mirror_each_other_where_an_array_meets_its_transpose() -> None:
    mirrored = Problem((4, 512, 512), frozenset(), 2, 8, 6, 4, transposed=TransposedProblem(1, 8, 2, 2, mirrored=True))
    schedule = choose_schedule(mirrored, TARGET)
    assert schedule.transposed is not None
    assert schedule.transposed.mirrored


def test_many_transposed_arrays_have_smaller_tiles() -> None:
    many = Problem((512, 512), frozenset(), 1, 4, 44, 40, transposed=TransposedProblem(0, 4, 40, 4))
    schedule = choose_schedule(many, TARGET)
    assert schedule.tile == (32, 32)
    layout = choose_schedule(replace(many, read_bytes=4000), TARGET).layout
    assert layout.elements_per_thread <= 4


def test_lanes_of_narrow_transposed_arrays_lie_along_one_and_vectors_along_the_other() -> None:
    transposed = TransposedProblem(0, 1, 2, 2)
    layout = choose_schedule(Problem((5, 1030), frozenset(), 1, 2, 4, 2, transposed=transposed), TARGET).layout
    assert (layout.lanes, layout.repeats) == ((8, 4), (1, 16))


@pytest.mark.parametrize("rows", [8, 16, 24, 32, 64])
def test_few_warps_tell_each_other_sums_of_columns(rows: int) -> None:
    """Each reads what all have of its columns: 32 warps of a row each took 8 us for what 4 do in one."""
    layout = choose_schedule(
        Problem((512, rows, 1024), frozenset({1}), 2, 8, 2, 2, dependent_reductions=1), TARGET
    ).layout
    columns = layout.elements_per_thread // layout.repeats[1]
    told, read = layout.warps[1] * columns * 4, layout.elements_per_thread * 2
    assert told <= 3 * read


@pytest.mark.parametrize(
    ("extents", "cluster"),
    [
        ((2, 1024), 1),
        ((2, 4096), 1),
        ((2, 65536), 8),
        ((120, 16384), 1),
        ((131, 2048), 1),
        ((512, 16384), 1),
        ((None, 16384), 1),
    ],
)
def test_clusters_share_long_rows_that_are_known_to_be_few(extents: tuple[int | None, int], cluster: int) -> None:
    problem = Problem(
        extents,
        frozenset({1}),
        1,
        8,
        4,
        2,
        live_bytes=2,
        stores_last=True,
        shared_spill_bytes=2,
        dependent_reductions=2,
    )
    assert choose_schedule(problem, TARGET).layout.cluster == cluster


@pytest.mark.parametrize(
    "problem",
    [
        _layer_norm(4096),
        shareable((4096, 4096), 0, 4),
        shareable((64, 1024, 1024), 1, 2),
        Problem((1 << 24,), frozenset(), 0, 4, 12, 8),
    ],
)
def test_the_choice_is_the_least_prediction_of_all_proposals(problem: Problem) -> None:
    machine, sized = machine_of(TARGET), with_extents(problem)
    times = [predict(p.schedule, sized, machine).microseconds for p in proposals(problem, TARGET)]
    chosen = predict(choose_schedule(problem, TARGET), sized, machine).microseconds
    assert min(times) <= chosen <= RESOLUTION * min(times)


def test_choosing_looks_at_few_loops() -> None:
    """As many as are chosen from in 30 ms."""
    loop = PersistentLoopProblem((0,), frozenset({1}), accumulator_bytes=8, column_bytes=4, inner=True, row_bytes=8)
    problem = Problem(
        (8192, 4096),
        frozenset({0, 1}),
        1,
        4,
        12,
        8,
        live_bytes=8,
        stores_last=True,
        column_bytes=4,
        dependent_reductions=1,
    )
    assert sum(1 for _ in loops(replace(problem, persistent_loop=loop), TARGET)) <= 200
