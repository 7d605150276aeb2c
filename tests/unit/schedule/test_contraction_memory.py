"""What tiles of products have of a block's shared memory: rings of stages leave room for all else."""

from __future__ import annotations

import pytest

import mlirfuse as mf
from mlirfuse.schedule.contractions.candidates import candidates
from mlirfuse.schedule.contractions.stages import is_residual_staged
from mlirfuse.target import target_of
from tests.support.contractions.contraction_problems import H200, chosen, problem


def test_rings_of_splits_have_the_memory_that_results_do_not_need() -> None:
    """A stage more would not fit; blocks that stage their results leave room for these."""
    for m, n, k in ((256, 256, 131072), (128, 128, 262144), (512, 512, 8192), (512, 512, 65536)):
        schedule, contraction = chosen(problem(m, n, k))
        stage = 2 * contraction.k * sum(schedule.tile)
        assert contraction.split > 1
        assert contraction.stages * stage < H200.shared_per_block - 1024 < (contraction.stages + 1) * stage
    schedule, contraction = chosen(problem(2048, 2048, 8192))
    assert contraction.stages * 2 * contraction.k * sum(schedule.tile) <= 192 * 1024


def test_rings_leave_room_for_what_epilogues_read() -> None:
    """All subtiles of a tile of each consumer group, beside fewer stages; of four bytes two groups have too many."""
    for size, groups, stages in ((0, 2, 6), (2, 2, 5), (4, 1, 5)):
        given = problem(1024, 5632, 2048, residual_bytes=size)
        schedule, contraction = chosen(given)
        assert (schedule.tile, contraction.consumer_groups, contraction.stages) == ((128, 128), groups, stages)
        assert is_residual_staged(schedule, given) == (size > 0)
    for size, swapped in ((2, False), (4, False), (4, True)):
        given = problem(8192, 4096, 1024, residual_bytes=size)
        for schedule in candidates(given, H200):
            contraction = schedule.contraction
            assert contraction is not None
            if contraction.argument_stages and contraction.swapped == swapped:
                ring = contraction.stages * sum(schedule.tile) * contraction.k * 2
                tile = contraction.consumer_groups * schedule.tile[0] * schedule.tile[1] * size
                assert ring + tile < H200.shared_per_block - 2048
                assert is_residual_staged(schedule, given)


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize("over", [(True, False), (False, True)])
def test_tiles_leave_shared_memory_for_their_reductions(chip: str, over: tuple[bool, bool]) -> None:
    """Columns of 128 x 256 are added up through 8 KB for each reduction; with a dozen of them a smaller tile is
    taken.
    """
    target = target_of(chip)
    for count in (1, 3, 6, 12):
        schedule, contraction = chosen(problem(8192, 8192, 512, accumulator_bytes=4 * count, reduced_over=over), chip)
        ring = contraction.stages * sum(schedule.tile) * contraction.k * 2
        dim = over.index(True) ^ contraction.swapped
        assert ring + 4 * count * schedule.layout.exchanged((dim,)) < target.shared_per_block, count


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wide_types_that_operands_are_computed_from_fit_shared_memory(chip: str, dtype: str) -> None:
    """Copies of three steps of both, and two of what they become: 277 KB of 128 x 128 with 64 elements of k."""

    def cast(x, w):
        return x.astype(mf.bfloat16) @ w.astype(mf.bfloat16)

    specs = [mf.TensorSpec(shape, dtype) for shape in ((4, 512, 512), (512, 512))]
    mf.fuse(cast, target=chip).lower(*specs).compile()


def test_steps_are_shorter_where_wide_types_leave_no_room() -> None:
    for size, k in ((1, 64), (2, 64), (4, 32)):
        given = problem(4096, 4096, 4096, computed_from=(size, size), sources=((size,), (size,)))
        found = [s.contraction for s in candidates(given, H200) if s.tile == (128, 128) and s.contraction is not None]
        assert {c.k for c in found} == {k}, size


def test_results_on_their_way_out_leave_shared_memory_for_reductions() -> None:
    """The bias' gradient beside that of its activation: with 192 KB of stages two subtiles would take what it needs."""

    def gradients(dy, w):
        dx = dy @ w
        return dx, mf.sum(dx.astype(mf.float32), axis=0)

    specs = [mf.TensorSpec(shape, "bfloat16") for shape in ((4096, 1024), (1024, 2048))]
    assert len(mf.fuse(gradients, target="sm_90a").lower(*specs).compile().binaries) == 1
