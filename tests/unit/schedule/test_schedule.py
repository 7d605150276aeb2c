"""Schedules: their attribute form, and what makes one illegal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mlir import ir

from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.parts.transposed_tiles import TransposedTiles
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.support.dataclass_attributes import from_attribute, to_attribute
from mlirfuse.target import target_of

LAYOUT = BlockedLayout(vector=(1, 4), lanes=(1, 32), warps=(1, 2), repeats=(1, 1), blocks=(1, 1))
SCHEDULE = Schedule((1, 256), LAYOUT)


def test_the_attribute_round_trips_through_text(context: ir.Context) -> None:
    schedule = replace(SCHEDULE, persistence="shared", order="depth", blocks_per_sm=4)
    assert from_attribute(Schedule, ir.Attribute.parse(str(schedule.attribute()))) == schedule


def test_defaults_may_be_left_out(context: ir.Context) -> None:
    text = f"{{tile = array<i64: 1, 256>, layout = {to_attribute(LAYOUT)}}}"
    assert from_attribute(Schedule, ir.Attribute.parse(text)) == SCHEDULE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("array<i64: 1>", "Schedule must be a dictionary attribute"),
        ("{speed = 1 : i64}", "Schedule has no field 'speed'"),
        ("{tile = array<i64: 1>}", "Schedule lacks the field 'layout'"),
        ("{tile = 1 : i64, layout = {}}", "BlockedLayout lacks the field 'blocks'"),
        ('{tile = "1", layout = LAYOUT}', r"Schedule.tile is \"1\", not a tuple\[int, ...\]"),
        ("{order = 1.5, tile = array<i64: 1>, layout = LAYOUT}", "Schedule.order is 1.5.*, not a str"),
    ],
)
def test_malformed_attributes_are_errors(context: ir.Context, text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        from_attribute(Schedule, ir.Attribute.parse(text.replace("LAYOUT", str(to_attribute(LAYOUT)))))


@pytest.mark.parametrize("value", [1.5, 2**70, (1, 2.5), (1, 2**70), (None,)])
def test_values_that_no_attribute_holds_are_errors(context: ir.Context, value: object) -> None:
    with pytest.raises(ScheduleError, match="not .*(5|None|1180591620717411303424)"):
        to_attribute(value)


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        (SCHEDULE, None),
        (replace(SCHEDULE, tile=(256,)), "tile (256,) has 1 dimensions, the iteration space 2"),
        (replace(SCHEDULE, persistence="disk"), "persistence 'disk' is not one of registers, shared, multi_pass"),
        (
            replace(
                SCHEDULE, tile=(1, 256), layout=replace(LAYOUT, warps=(2, *LAYOUT.warps[1:])), persistence="shared"
            ),
            "elements in shared memory have one thread each, not copies along dimension 0",
        ),
        (replace(SCHEDULE, order="random"), "order 'random' is not one of breadth, depth"),
        (
            replace(SCHEDULE, shared_spill=1),
            "1 fragments cannot be spilled to shared memory of the 1 that a thread holds in registers",
        ),
        (
            replace(SCHEDULE, in_order=True),
            "nothing is spilled to shared memory that could be loaded and stored in order",
        ),
        (replace(SCHEDULE, rematerialize_addresses=True), None),
        (
            replace(SCHEDULE, rematerialize_addresses=True, persistence="shared"),
            "addresses are rematerialized only of rows that wait in registers, not 'shared'",
        ),
        (replace(SCHEDULE, tile=(0, 256)), "tile (0, 256) has no elements"),
        (replace(SCHEDULE, blocks_per_sm=-1), "-1 blocks an SM are not 0 to 32"),
        (replace(SCHEDULE, blocks_per_sm=33), "33 blocks an SM are not 0 to 32"),
        (
            replace(SCHEDULE, blocks_per_sm=32, layout=replace(LAYOUT, warps=(1, 8))),
            "32 blocks of 256 threads exceed the 2048 threads of an SM",
        ),
        (
            Schedule((2**30, 256), replace(LAYOUT, repeats=(2**30, 1))),
            f"a thread would hold more than 4096 elements of the tile {(2**30, 256)}",
        ),
        (replace(SCHEDULE, tile=(2, 256)), "layout covers 1 of the tile's 2 elements in dimension 0"),
        (replace(SCHEDULE, layout=replace(LAYOUT, warps=(1, 64))), "2048 threads exceed the 1024 of a block"),
        (
            replace(SCHEDULE, layout=replace(LAYOUT, blocks=(2, 1))),
            "a cluster may split reduced dimensions only, not dimension 0",
        ),
        (
            replace(SCHEDULE, tile=(1, 128)),
            "persistence in registers needs all 256 elements of dimension 1 in the tile, not 128",
        ),
    ],
)
def test_legality(schedule: Schedule, problem: str | None) -> None:
    assert check_schedule(schedule, (None, 256), frozenset({1}), target_of("sm_90a")) == problem


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        (
            {"grid_reduction": "nobody"},
            "grid_reduction 'nobody' is not one of grid_sync, last_block, second_kernel, atomics",
        ),
        ({"stages": 17}, "17 stages are not 1 to 16"),
        ({"row_values": "shared", "stages": 2}, None),
        ({"row_values": "shared"}, "row values go to shared memory with more than one stage only"),
        ({"streamed": True, "stages": 2}, None),
        ({"streamed": True}, "only tiles that are copied, with more than one stage, can leave the L2 first"),
        ({"row_values": "memory"}, "row_values 'memory' is not one of registers, shared"),
        ({"second_stage_reads": 0}, "a second stage reads 1 to 256 tiles at once, not 0"),
        ({"second_stage_reads": 2**40}, f"a second stage reads 1 to 256 tiles at once, not {2**40}"),
        ({"second_stage_tile": (64, 0)}, "second stage: tile (64, 0) has no elements"),
        (
            {"blocks": 8},
            "8 blocks at most: a second kernel needs their number, the others take as many as are resident",
        ),
    ],
)
def test_legality_of_loops(changes: dict[str, Any], problem: str | None) -> None:
    parts = BlockedLayout(vector=(1, 1), lanes=(32, 1), warps=(2, 1), repeats=(1, 1), blocks=(1, 1))
    persistent_loop = replace(PersistentLoop((0,), "grid_sync", (64, 1), parts), **changes)
    assert (
        check_schedule(
            replace(SCHEDULE, persistent_loop=persistent_loop), (None, 256), frozenset({1}), target_of("sm_90a")
        )
        == problem
    )


def test_threads_copy_tiles_of_a_loop_that_they_alone_read_back() -> None:
    parts = BlockedLayout(vector=(1, 1), lanes=(32, 1), warps=(2, 1), repeats=(1, 1), blocks=(1, 1))
    copies = replace(LAYOUT, lanes=(4, 8), repeats=(1, 4))

    def check(stages: int) -> str | None:
        persistent_loop = PersistentLoop((0,), "grid_sync", (64, 1), parts, stages)
        schedule = replace(SCHEDULE, layout=copies, persistent_loop=persistent_loop)
        return check_schedule(schedule, (None, 256), frozenset({0}), target_of("sm_90a"))

    assert check(stages=1) is None
    assert check(stages=2) == "elements in shared memory have one thread each, not copies along dimension 0"


def test_a_reduced_dimension_that_stays_on_chip_is_static() -> None:
    def check(persistence: str) -> str | None:
        schedule = replace(SCHEDULE, persistence=persistence)
        return check_schedule(schedule, (None, None), frozenset({1}), target_of("sm_90a"))

    problem = "reduced dimension 1 is dynamic, which only multi-pass schedules loop over"
    assert check("registers") == check("shared") == problem
    assert check("multi_pass") is None


def test_clusters_need_a_target_that_has_them() -> None:
    split = replace(SCHEDULE, layout=replace(LAYOUT, blocks=(1, 2)))
    assert check_schedule(split, (None, 256), frozenset({1}), target_of("sm_90a")) is None
    problem = check_schedule(split, (None, 256), frozenset({1}), target_of("sm_80"))
    assert problem == "a cluster of 2 exceeds the 1 of sm_80"


STRAIGHT = BlockedLayout(vector=(1, 4), lanes=(4, 8), warps=(2, 1), repeats=(4, 1), blocks=(1, 1))
ACROSS = BlockedLayout(vector=(4, 1), lanes=(8, 4), warps=(1, 2), repeats=(1, 4), blocks=(1, 1))
TRANSPOSED = Schedule((32, 32), STRAIGHT, transposed=TransposedTiles(0, ACROSS, mirrored=True))


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        (TRANSPOSED, None),
        (replace(TRANSPOSED, transposed=TransposedTiles(2, ACROSS)), "dimension 2 is transposed, of a tile (32, 32)"),
        (replace(TRANSPOSED, transposed=TransposedTiles(0, LAYOUT)), "layout covers 1 of the tile's 32 elements"),
        (replace(TRANSPOSED, tile=(32, 16)), "cover them exactly, not (32, 32) of (32, 16) (transposed)"),
        (
            replace(TRANSPOSED, transposed=TransposedTiles(0, replace(ACROSS, warps=(1, 1), repeats=(1, 8)))),
            "transposed arrays are accessed by 32 threads, the others by 64",
        ),
        (
            Schedule(
                (32, 16), replace(STRAIGHT, lanes=(8, 4), repeats=(2, 1)),
                transposed=TransposedTiles(0, replace(ACROSS, repeats=(1, 2)), mirrored=True),
            ),
            "tiles that mirror each other are squares in the last two dimensions, not (32, 16)",
        ),
    ],
)  # fmt: skip
def test_legality_of_transposed_tiles(schedule: Schedule, problem: str | None) -> None:
    found = check_schedule(schedule, (512, 512), frozenset(), target_of("sm_90a"))
    assert (found is None) if problem is None else (found is not None and problem in found)


@pytest.mark.parametrize("extents", [(512, 256), (None, 512), (512, None), (None, None)])
def test_tiles_mirror_each_other_in_squares(extents: tuple[int | None, ...]) -> None:
    found = check_schedule(TRANSPOSED, extents, frozenset(), target_of("sm_90a"))
    assert found == f"tiles that mirror each other make up a square of a known size, not {extents}"


def test_reductions_have_no_transposed_tiles() -> None:
    found = check_schedule(TRANSPOSED, (512, 32), frozenset({1}), target_of("sm_90a"))
    assert found == "arrays are transposed in elementwise kernels only"
