"""Contractions: what their loops are, and which schedules are legal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlir import ir

import mlirfuse as mf
from mlirfuse import builder
from mlirfuse.analysis.contractions.contraction import contraction_in, has_products
from mlirfuse.analysis.contractions.epilogues import misfit
from mlirfuse.analysis.contractions.problem import contraction_problem
from mlirfuse.analysis.kernels import functions, kernels
from mlirfuse.analysis.loops.iteration_space import IterationSpace, space_of_structures
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.machine import machine_of
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.contractions.candidates import candidates
from mlirfuse.schedule.contractions.checks import check_contraction
from mlirfuse.schedule.contractions.families.fma import fma_schedule
from mlirfuse.schedule.contractions.families.mma import mma_schedule
from mlirfuse.schedule.contractions.families.wgmma import wgmma_schedule
from mlirfuse.schedule.contractions.family import family_schedules
from mlirfuse.schedule.contractions.grid import tile_count
from mlirfuse.schedule.contractions.step_times import unsupported_type
from mlirfuse.schedule.contractions.thread_layouts import with_slices
from mlirfuse.schedule.model.residency import resident_blocks
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict import predict_contraction
from mlirfuse.schedule.schedule import check_schedule, schedule_of
from mlirfuse.target import target_of
from tests.support.contractions.contraction_problems import H200, problem
from tests.support.harnesses.builder_harness import traced


def structures(module: ir.Module) -> list[OpStructure]:
    ops = module.body.operations[0].operation.regions[0].blocks[0].operations
    return [s for op in ops if (s := structure_of(op.operation)) is not None]


def space(found: list[OpStructure]) -> IterationSpace:
    result = space_of_structures(found)
    assert isinstance(result, IterationSpace)
    return result


@pytest.mark.parametrize(
    ("left", "right", "batch", "extents"),
    [
        ((30, 40), (40, 50), (), (30, 50, 40)),
        ((7, 30, 40), (7, 40, 50), (7,), (30, 50, 40)),
        ((7, 30, 40), (40, 50), (7,), (30, 50, 40)),
        ((30, 40), (7, 40, 50), (7,), (30, 50, 40)),
        ((1, 30, 40), (7, 40, 50), (7,), (30, 50, 40)),
    ],
)
def test_loops_are_classed_by_their_maps(left, right, batch, extents) -> None:
    specs = [mf.TensorSpec(shape, mf.float16) for shape in (left, right)]
    module = traced(lambda x, w: x @ w, *specs)
    with module.context:
        found = structures(module)
        joint = space(found)
        contraction = contraction_in(joint, found)
        assert contraction is not None
        assert tuple(joint.extents[d] for d in contraction.batch) == batch
        assert tuple(joint.extents[d] for d in (contraction.m, contraction.n, contraction.k)) == extents
        other = contraction.swapped()
        assert (other.m, other.n, other.pairs) == (contraction.n, contraction.m, ((1, 0),))


@pytest.mark.parametrize(
    ("left", "right"), [((1, 40), (40, 50)), ((30, 40), (40, 1)), ((30, 1), (1, 50)), ((40,), (40,))]
)
def test_products_that_reuse_nothing_are_row_reductions(left, right) -> None:
    module = traced(lambda x, w: x @ w, *[mf.TensorSpec(shape, mf.float32) for shape in (left, right)])
    with module.context:
        found = structures(module)
        assert contraction_in(space(found), found) is None


def test_a_sum_of_squares_is_no_contraction() -> None:
    module = traced(lambda x: builder.sum(x * x, axis=-1), mf.TensorSpec((30, 40), mf.float32))
    with module.context:
        found = structures(module)
        assert contraction_in(space(found), found) is None


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda x, w: builder.exp(x @ w), True),
        (lambda x, w: builder.sum(x * x, axis=-1), False),
        (lambda x, w: builder.exp(x) * 2, False),
    ],
)
def test_products_are_told_before_a_space_is_made(fn: Callable[..., Any], expected: bool) -> None:
    module = traced(fn, mf.TensorSpec((30, 40), mf.float32), mf.TensorSpec((40, 50), mf.float32))
    with module.context:
        assert has_products(next(functions(module.operation))) == expected


@pytest.mark.parametrize(
    ("fn", "reason"),
    [
        (lambda x, w: builder.exp(x @ w) * 2, None),
        (lambda x, w: builder.exp(x) @ w, "a contraction starts a kernel of its own"),
        (lambda x, w: builder.sum(x @ w, axis=-1), None),
        (
            lambda x, w: (lambda y: y / builder.sum(y))(x @ w),
            "every tile would need the result of a reduction over all tiles",
        ),
    ],
)
def test_what_shares_a_contractions_kernel(fn, reason) -> None:
    module = traced(fn, mf.TensorSpec((30, 40), mf.float32), mf.TensorSpec((40, 50), mf.float32))
    with module.context:
        found = structures(module)
        assert misfit(space(found), found) == reason


CASES = [
    ({"instruction": "dot"}, "instruction 'dot' is not one of fma, mma, wgmma"),
    ({"reduction": "tree"}, "reduction 'tree' is not one of serial, last_block, grid_sync"),
    ({"stages": 1}, "stages at least 2"),
    ({"split": 33}, "33 splits of 32 steps along k leave blocks without work"),
    ({"k": 24}, "steps of 24 along k are not a multiple of 16"),
    ({"split": 2, "reduction": "grid_sync"}, "slices need a second_stage_layout"),
]


@pytest.mark.parametrize(("fields", "reason"), CASES, ids=[reason for _, reason in CASES])
def test_illegal_schedules_are_named(fields, reason) -> None:
    given = problem(128, 128, 1024)
    schedule = mma_schedule(given, 64, 64)
    assert schedule.contraction is not None
    changed = replace(schedule.contraction, **fields)
    assert reason in (check_contraction(changed, schedule.tile, schedule.layout, given) or "")


@pytest.mark.parametrize(("run", "fits"), [(1, True), (2, True), (4, True), (3, False), (8, False)])
def test_a_thread_loads_runs_at_once(run, fits) -> None:
    given = problem(128, 128, 1024, mf.float32)
    scalar = fma_schedule(given, 64, 64)
    assert scalar.contraction is not None
    layout = replace(scalar.layout, vector=(1, 1), repeats=(2, 4), warps=(2, 2), run=(run, 1))
    tile = layout.extents
    reason = check_contraction(scalar.contraction, tile, layout, given)
    assert (reason is None) == fits
    assert fits or f"runs of {run} float32" in (reason or "")


PING_PONG_CASES = [
    ({"persistent": False}, {}, "consumer groups alternate over the tiles of a persistent grid"),
    ({"consumer_groups": 3}, {}, "3 consumer groups of 128 threads: there are 2 at most, of 128"),
    ({"consumer_groups": 0}, {}, "consumer groups must be at least 1"),
    ({"split": 2}, {}, "a persistent grid has no splits but of its last tiles: its blocks are on different tiles"),
    ({}, {"accumulator_bytes": 4}, "reductions in the epilogue cannot be combined"),
]


@pytest.mark.parametrize(("fields", "given", "reason"), PING_PONG_CASES, ids=[reason for *_, reason in PING_PONG_CASES])
def test_illegal_consumer_groups_are_named(fields, given, reason) -> None:
    known = problem(4096, 4096, 1024, **given)
    schedule = wgmma_schedule(known, 128, 128, consumer_groups=2)
    assert schedule.contraction is not None
    changed = replace(schedule.contraction, **fields)
    assert reason in (check_contraction(changed, schedule.tile, schedule.layout, known) or "")
    two = wgmma_schedule(known, 128, 128)
    assert two.contraction is not None
    wide = replace(two.contraction, persistent=True, consumer_groups=2)
    assert "2 consumer groups of 256 threads" in (
        check_contraction(wide, two.tile, two.layout, problem(4096, 4096, 1024)) or ""
    )


@pytest.mark.parametrize(
    ("rows", "columns", "consumer_groups", "blocks_per_sm", "fits"),
    [
        (128, 256, 1, 1, True),
        (192, 200, 1, 1, True),
        (192, 208, 1, 1, False),
        (256, 136, 1, 1, True),
        (256, 144, 1, 1, False),
        (128, 128, 2, 1, True),
        (128, 192, 1, 2, True),
        (128, 208, 1, 2, False),
    ],
)
def test_accumulators_fit_the_registers_of_a_launch(rows, columns, consumer_groups, blocks_per_sm, fits) -> None:
    schedule = wgmma_schedule(
        problem(4096, 4096, 1024), rows, columns, consumer_groups=consumer_groups, blocks_per_sm=blocks_per_sm
    )
    assert schedule.contraction is not None
    reason = family_schedules("wgmma").check_registers(
        schedule.contraction, schedule.layout, blocks_per_sm, target_of("sm_90a")
    )
    assert (reason is None) == fits
    assert fits or f"{columns // 2} accumulators that each has of {columns} columns" in (reason or "")


def test_an_instruction_takes_its_types_and_its_layout() -> None:
    given = problem(128, 128, 1024, mf.float32)
    scalar, tensor = fma_schedule(given, 64, 64), mma_schedule(given, 64, 64)
    assert scalar.contraction is not None
    assert tensor.contraction is not None
    assert check_contraction(tensor.contraction, tensor.tile, tensor.layout, given) == (
        "mma does not multiply float32 as ieee"
    )
    half = replace(given, element=mf.float16)
    wrong = replace(scalar.contraction, instruction="mma")
    reason = check_contraction(wrong, scalar.tile, scalar.layout, half)
    assert reason is not None
    assert "an accumulator's fragment has lanes (8, 4)" in reason
    assert unsupported_type("mma", replace(half, accumulator=mf.float16)) == "mma adds up in float32, not in float16"


def test_only_simt_products_take_transposed_operands() -> None:
    schedule = mma_schedule(problem(128, 128, 1024, mf.float16), 64, 64)
    assert schedule.contraction is not None
    changed = replace(schedule.contraction, transposed_operands=True)
    reason = check_contraction(changed, schedule.tile, schedule.layout, problem(128, 128, 1024, mf.float16))
    assert reason == "mma does not take transposed operands"


@pytest.mark.parametrize(
    ("element", "m", "n", "each", "transposed_operands"),
    [
        (mf.float32, 128, 128, (8, 8), True),
        (mf.float32, 64, 128, (8, 8), True),
        (mf.float32, 128, 64, (8, 8), True),
        (mf.float32, 64, 64, (8, 4), False),
        (mf.float32, 32, 32, (2, 4), False),
        (mf.float32, 16, 32, (2, 4), False),
        (mf.float64, 64, 64, (8, 4), True),
        (mf.int8, 128, 128, (8, 8), False),
    ],
)
@pytest.mark.parametrize("along_k", [(True, True), (True, False), (False, True), (False, False)])
def test_a_thread_has_vectors_of_what_lies_side_by_side(element, m, n, each, transposed_operands, along_k) -> None:
    """What is transposed does; operands that the kernel computes stay as they are."""
    for computed in (False, True):
        given = problem(
            256, 256, 1024, element, k_contiguous=along_k, computed_from=(4, 4) if computed else (None, None)
        )
        schedule = fma_schedule(given, m, n)
        layout, contraction = schedule.layout, schedule.contraction
        assert contraction is not None
        assert contraction.transposed_operands == (transposed_operands and any(along_k) and not computed)
        assert layout.extents == (m, n)
        held = tuple(layout.fragments(d) * layout.vector[d] for d in (0, 1))
        assert held == each
        beside = [not k or contraction.transposed_operands for k in along_k]
        widest = [min(n, 16 // element.bytes) if b else 1 for n, b in zip(each, beside, strict=True)]
        assert [layout.neighbours(0), layout.vector[1]] == widest


def test_threads_of_scalar_products_load_columns_from_different_banks() -> None:
    """Of 32 steps of k, which are contiguous, 8 threads read 16 bytes of a row of 36 words each."""
    banks = {}
    for k_contiguous in (True, False):
        layout = fma_schedule(problem(128, 128, 1024, mf.float32, k_contiguous=(True, k_contiguous)), 64, 64).layout
        columns = [layout.vector[1] * lane for lane in range(layout.lanes[1])]
        words = [36 * column if k_contiguous else column for column in columns]
        banks[k_contiguous] = {word % 32 for word in words}
    assert len(banks[True]) == len(banks[False]) == 8


@given(
    st.integers(2, 5000),
    st.integers(2, 5000),
    st.integers(2, 300000),
    st.sampled_from(
        [
            *(
                (dtype, "ieee")
                for dtype in (mf.float16, mf.bfloat16, mf.float32, mf.float64, mf.int32, mf.float8_e4m3fn)
            ),
            (mf.float32, "tf32"),
            (mf.float32, "3xtf32"),
            (mf.float8_e5m2, "fast_accum"),
        ]
    ),
    st.sampled_from([2, 4, 8, 16]),
    st.tuples(st.booleans(), st.booleans()),
)
def test_every_candidate_is_legal(m, n, k, operands, row_bytes, contiguous) -> None:
    dtype, precision = operands
    given = replace(problem(m, n, k, dtype, row_bytes=row_bytes, k_contiguous=contiguous), precision=precision)
    for schedule in candidates(given, H200):
        contraction = schedule.contraction
        assert contraction is not None
        extents = (n, m) if contraction.swapped else (m, n)
        assert check_schedule(schedule, extents, frozenset(), H200) is None
        assert check_contraction(contraction, schedule.tile, schedule.layout, given) is None
        assert predict_contraction(schedule, given, machine_of(H200)).microseconds > 0
        if contraction.reduction in ("grid_sync", "flagged"):
            shared = resident_blocks(schedule.layout.threads, H200.max_registers_per_thread, H200)
            held = 1 if contraction.family.is_asynchronous else shared
            assert tile_count(schedule, given) * contraction.split <= held * H200.sms


def test_a_schedule_goes_through_its_attribute() -> None:
    schedule = with_slices(wgmma_schedule(problem(128, 128, 8192), 128, 128, split=8))
    module = traced(lambda x: x * 2, mf.TensorSpec((4, 4), mf.float32))
    with module.context:
        function = module.body.operations[0].operation
        function.attributes["fuse.schedule"] = schedule.attribute()
        assert schedule_of(function) == schedule


@pytest.mark.parametrize(
    ("out", "dtype", "shows"),
    [
        ("float32", np.float16, True),
        ("float64", np.float16, True),
        ("float16", np.float16, False),
        ("float32", np.float32, False),  # whose operands are rounded as the sums are
    ],
)
def test_errors_show_in_results_as_precise_as_the_sums(out: str, dtype: type, shows: bool) -> None:
    specs = [mf.TensorSpec((64, 64), np.dtype(dtype)) for _ in range(2)]
    assert problem_of(lambda x, w: mf.matmul(x, w, dtype=out) * 2, specs).errors_show == shows


@pytest.mark.parametrize(
    ("fn", "nbytes"),
    [
        (lambda x, w, r: x @ w + r, 2),
        (lambda x, w, r: (mf.matmul(x, w, dtype="float32") * r).astype("float16"), 2),
        (lambda x, w, r: mf.matmul(x, w, dtype="float32") + r, 0),  # of another type than the result
        (lambda x, w, r: x @ w + r.T, 0),  # in another order
        (lambda x, w, r: x @ w, 0),
        (lambda x, w, r: x @ w + x, 2),  # an operand
    ],
)
def test_what_is_read_beside_a_result_of_its_type(fn: Callable[..., Any], nbytes: int) -> None:
    specs = [mf.TensorSpec((64, 64), mf.float16) for _ in range(3)]
    assert problem_of(fn, specs).residual_bytes == nbytes


def test_a_bias_is_no_residual() -> None:
    specs = [mf.TensorSpec(shape, mf.float16) for shape in ((64, 64), (64, 64), (64,))]
    assert problem_of(lambda x, w, b: x @ w + b, specs).residual_bytes == 0


def test_operands_lack_batch_dimensions_that_are_loops_of_the_others() -> None:
    specs = [mf.TensorSpec((4, 96, 32), mf.float16), mf.TensorSpec((16, 64, 32), mf.float16)]
    found = problem_of(lambda x, w: mf.einsum("bse,hde->bhsd", x, w), specs)
    assert (found.batch, found.batch_reads) == ((4, 16), ((True, False), (False, True)))
    assert (
        problem_of(
            lambda x, w: mf.einsum("bse,bde->bsd", x, w), [specs[0], mf.TensorSpec((4, 64, 32), mf.float16)]
        ).batch_reads
        == ()
    )


def test_operands_are_scattered_where_no_dimension_of_their_tiles_is_contiguous() -> None:
    specs = [mf.TensorSpec((2, 8, 64, 64), mf.float16), mf.TensorSpec((2, 64, 8, 64), mf.float16)]
    assert problem_of(lambda x, y: mf.einsum("bijk,bklj->bli", x, y), specs).scattered == (False, True)
    assert problem_of(lambda x, y: mf.einsum("bijk,blkj->bli", x, y), [specs[0]] * 2).scattered == (False, True)
    assert problem_of(lambda x, w: x.mT @ w, [mf.TensorSpec((64, 64), mf.float16)] * 2).scattered == (False, False)


def test_results_and_arguments_beside_are_strided_where_a_batch_is_contiguous() -> None:
    operand, result = mf.TensorSpec((64, 64, 32), mf.float16), mf.TensorSpec((32, 64, 64), mf.float16)
    batch_last = problem_of(lambda x, y: mf.einsum("ikc,jkc->ijc", x, y), [operand] * 2)
    assert batch_last.strided == (1, 0)
    beside = problem_of(lambda x, y, z: mf.einsum("ikc,jkc->ijc", x, y) + z, [operand] * 3)
    assert beside.strided == (1, 1)
    batch_first = problem_of(lambda x, y, z: mf.einsum("ikc,jkc->cij", x, y) + z, [operand, operand, result])
    assert batch_first.strided == (0, 0)


def test_few_tiles_of_scalar_products_are_split_over_several_blocks_an_sm() -> None:
    """Whose waiting they hide; asynchronous copies need one."""
    given = problem(8, 8, 1 << 18, mf.float32)
    found = {schedule.contraction.split for schedule in candidates(given, H200) if schedule.contraction is not None}
    assert {H200.sms, 256} <= found
    asynchronous = [s.contraction for s in candidates(problem(8, 8, 1 << 18), H200)]
    assert max(c.split for c in asynchronous if c.instruction == "wgmma") == H200.sms


def problem_of(fn: Callable[..., Any], specs: Sequence[mf.TensorSpec]) -> ContractionProblem:
    """The problem of a function with a product."""
    lowered = mf.fuse(fn, target="sm_90a").lower(*specs)
    with lowered.module.context:
        run_pipeline(lowered.module, "builtin.module(fuse-views,fuse-fold-casts,fuse-segment)")
        (kernel,) = kernels(lowered.module.operation)
        space, structures = kernel_space(kernel)
        contraction = contraction_in(space, structures)
        assert contraction is not None
        return contraction_problem(kernel, space, contraction)
