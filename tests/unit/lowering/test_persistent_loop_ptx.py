"""Backward kernels down to PTX and ptxas: what loads them, what waits for it, and that no register is spilled."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import mlirfuse as mf
from tests.support.forms import copies_tiles, fastest, loop_of
from tests.support.pairwise import combined, some
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import DTYPES
from tests.support.sass import loops, needs_sass, sass_of

SAMPLE = (
    ("rms_norm_backward", "bfloat16", 7),
    ("rms_norm_backward", "bfloat16", 255),
    ("rms_norm_backward", "bfloat16", 257),
    ("rms_norm_backward", "float32", 257),
    ("add_rms_norm_backward", "float32", 255),
    ("add_rms_norm_backward", "bfloat16", 257),
    ("softmax_backward", "bfloat16", 255),
    ("softmax_backward", "float32", 255),
    ("rms_norm_backward", "float16", 384),
    ("rms_norm_backward", "float32", 1000),
    ("rms_norm_backward", "bfloat16", 1280),
    ("rms_norm_backward", "bfloat16", 5140),
    ("rms_norm_backward", "float32", 8192),
    ("rms_norm_backward", "float16", 20480),
    ("layer_norm_backward", "float32", 40),
    ("layer_norm_backward", "bfloat16", 768),
    ("layer_norm_backward", "float16", 1600),
    ("layer_norm_backward", "bfloat16", 3000),
    ("layer_norm_backward", "float32", 4096),
    ("layer_norm_backward", "bfloat16", 4096),
    ("layer_norm_backward", "bfloat16", 8192),
    ("layer_norm_backward", "bfloat16", 16384),
    ("rms_norm_backward", "bfloat16", 20480),
    ("layer_norm_backward", "float16", 20480),
    ("layer_norm_backward", "bfloat16", 32768),
    ("layer_norm_backward", "bfloat16", 65536),
    ("layer_norm_backward", "float32", 65536),
)
"""Rows of one vector, of single elements and of a cluster, whole and ragged, in the orders that the heuristics choose
for them."""

UNIFORM = (("layer_norm_backward", "bfloat16", 1024), ("layer_norm_backward", "bfloat16", 2048))
"""Where ptxas 13.0 keeps the uniform part of addresses in shared memory apart without optimization barriers."""


def compiled(name: str, dtype: str, columns: int, *, choose_again: bool = False) -> mf.Compiled:
    backward = BACKWARD[name]
    fused = mf.fuse(backward.fn, grid_reduction="grid_sync")  # one kernel, whose blocks meet
    return fused.lower(*backward.specs(columns, DTYPES[dtype])).compile(choose_again=choose_again)


def with_form(
    name: str,
    columns: int,
    has_form: Callable[[mf.Schedule], bool],
    *,
    dtype: str = "bfloat16",
    grid_reduction: str = "grid_sync",
) -> tuple[mf.Schedule, str]:
    """A backward kernel: its fastest schedule of a form, and the PTX of the kernel with the persistent loop."""
    backward = BACKWARD[name]
    specs = backward.specs(columns, DTYPES[dtype])
    schedule = fastest(backward.fn, specs, has_form, grid_reduction=grid_reduction)
    lowered = mf.fuse(backward.fn, target="sm_90a", schedule=schedule).lower(*specs)
    return schedule, next(iter(lowered.compile(choose_again=False).binaries.values())).ptx


@pytest.mark.parametrize(("name", "dtype", "columns"), some(SAMPLE, len(SAMPLE) // 2), ids=str)
def test_no_spills(name: str, dtype: str, columns: int) -> None:
    (kernel,) = compiled(name, dtype, columns, choose_again=True).resources
    assert (kernel.spill_store_bytes, kernel.spill_load_bytes, kernel.stack_bytes) == (0, 0, 0)


def test_loads() -> None:
    """Tiles by asynchronous copies past the L1; nothing by the read-only path, which knows no wait."""
    schedule, ptx = with_form("rms_norm_backward", 384, lambda s: copies_tiles(s) and s.layout.warps[1] == 1)
    fragments, stages = 3, loop_of(schedule).stages
    assert schedule.layout.repeats == (1, fragments)
    assert len(re.findall(r"cp\.async\.cg\.shared\.global \[.*\], 16;", ptx)) == 2 * fragments * stages
    assert len(re.findall(r"cp\.async\.ca\.shared\.global \[.*\], 4;", ptx)) == stages
    assert ptx.count("cp.async.commit_group") == stages
    assert re.findall(r"cp\.async\.wait_group\s+(\d)", ptx) == [str(stages - 1), "0"]  # the last tile is peeled
    assert "ld.global" in ptx
    assert "ld.global.nc" not in ptx


@needs_sass
def test_loops_over_partials_of_warps_are_not_unrolled(tmp_path: Path) -> None:
    """Partials of 16 warps are merged in one loop for each fragment: four before the loop, and four in each step."""
    layout = mf.BlockedLayout((1, 8), (1, 32), (16, 1), (1, 1), (1, 1))
    column_sum = mf.fuse(
        lambda x: mf.sum(x.astype(mf.float32), axis=0), schedule=mf.Schedule((16, 256), layout, "multi_pass")
    )
    ptx = column_sum.lower(mf.TensorSpec((None, 4096), mf.bfloat16)).compile().as_text("ptx")
    loads = [[i.opcode for i in loop if i.opcode.startswith("LD")] for loop in loops(sass_of(ptx, tmp_path))]
    assert loads.count(["LDS.128"] * 8) == 1


@needs_sass
@combined(
    {
        "name": ["rms_norm_backward", "layer_norm_backward"],
        "columns": [1600, 2048, 5140],
        "dtype": ["bfloat16", "float32"],
    }
)
def test_steps_wait_for_what_the_step_before_has_loaded(name: str, columns: int, dtype: str, tmp_path: Path) -> None:
    """Loads of the next step's means are in flight until the exchange: no earlier wait is on the same scoreboard."""
    apart = lambda s: copies_tiles(s) and loop_of(s).row_values == "registers" and s.layout.cluster == 1  # noqa: E731
    _, ptx = with_form(name, columns, apart, dtype=dtype)
    (persistent_loop,) = [
        loop for loop in loops(sass_of(ptx, tmp_path)) if any(i.opcode.startswith("LDGSTS") for i in loop)
    ]
    loads = [at for at, i in enumerate(persistent_loop) if i.opcode.startswith("LDG.")]
    assert loads
    first_sum = next(at for at, i in enumerate(persistent_loop) if i.opcode.startswith("SHFL"))
    for load in loads:
        early = [i for i in persistent_loop[load + 1 : first_sum] if persistent_loop[load].counts in i.waits]
        assert not early, f"{early[0].opcode} {early[0].operands}"


@needs_sass
@pytest.mark.parametrize("columns", [1600, 4096])
def test_steps_wait_for_no_uniform_register(columns: int, tmp_path: Path) -> None:
    """All threads load one mean for the next step, which is not moved to a uniform register before it is there."""
    two_rows = lambda s: copies_tiles(s) and loop_of(s).row_values == "registers" and s.tile[0] == 2  # noqa: E731
    _, ptx = with_form("layer_norm_backward", columns, two_rows, grid_reduction="second_kernel")
    code = sass_of(ptx, tmp_path)
    (persistent_loop,) = [loop for loop in loops(code) if any(i.opcode.startswith("LDGSTS") for i in loop)]
    loaded = {i.operands.split(",")[0] for i in persistent_loop if i.opcode.startswith("LDG.")}
    assert loaded
    assert not [i for i in persistent_loop if i.opcode == "R2UR" and i.operands.split(", ")[1] in loaded]


@needs_sass
@pytest.mark.parametrize(("name", "dtype", "columns"), [*some(SAMPLE, len(SAMPLE) // 4), *UNIFORM], ids=str)
def test_copies_with_policies_are_legal(name: str, dtype: str, columns: int, tmp_path: Path) -> None:
    """No address in shared memory has a uniform part for half of the policy (`lowering/memory/inline_copies.py`)."""
    code = sass_of(compiled(name, dtype, columns).as_text("ptx"), tmp_path)
    for copy in (i.operands for i in code if i.opcode.startswith("LDGSTS")):
        place, descriptor = copy.split("desc")
        assert "UR" not in place, copy
        assert int(re.findall(r"UR(\d+)", descriptor)[0]) % 2 == 0, copy


def test_loops_choose_how_they_stream() -> None:
    """Tiles are copied with a policy, or without if the arrays are large; partials are evicted last until read."""
    _, ptx = with_form("layer_norm_backward", 4096, lambda s: copies_tiles(s) and loop_of(s).streamed)
    policies = {register: kind for kind, register in re.findall(r"createpolicy\S+L2::(\w+)\.b64\s+(%rd\d+)", ptx)}
    hinted = re.findall(r"cp\.async\S+cache_hint \[.*\], 16, (%rd\d+);", ptx)
    plain = re.findall(r"cp\.async\.cg\.shared\.global \[.*\], 16;", ptx)
    assert len(hinted) == len(plain) > 0
    assert {policies[register] for register in hinted} == {"evict_first"}
    stored = re.findall(r"st\.global\.L2::cache_hint\S+\s+\[.*\], \{.*\}, (%rd\d+);", ptx)
    loaded = re.findall(r"ld\.global\.L2::cache_hint\S+\s+\{.*\}, \[.*\], (%rd\d+);", ptx)
    assert {policies[register] for register in stored} == {"evict_last"}
    assert {policies[register] for register in loaded} == {"evict_first"}


@needs_sass
@combined({"columns": [384, 768, 1024]}, turns={"name": ["rms_norm_backward", "layer_norm_backward"]})
def test_steps_of_independent_warps_wait_for_no_load(columns: int, name: str, tmp_path: Path) -> None:
    """The means are copied with the tile, so that a step waits for copies only."""
    alone = lambda s: copies_tiles(s) and s.layout.warps[1] == 1 and s.order == "breadth"  # noqa: E731
    schedule, ptx = with_form(name, columns, alone)
    assert loop_of(schedule).row_values == "shared"
    copying_loops = [loop for loop in loops(sass_of(ptx, tmp_path)) if any(i.opcode.startswith("LDGSTS") for i in loop)]
    persistent_loop = min(copying_loops, key=len)
    assert not [i for i in persistent_loop if i.opcode.startswith("LDG.")]


def test_neutral_partials_are_added_too() -> None:
    """What a block without a tile adds are constants, in registers: `red` takes no immediates."""
    backward = BACKWARD["rms_norm_backward"]
    specs = backward.specs(255, DTYPES["float16"])
    text = mf.fuse(backward.fn, grid_reduction="atomics", target="sm_90a").lower(*specs).compile().as_text("ptx")
    assert re.search(r"mov\.\w32\s+(%\w+), 0[^;]*;(.|\n)*red\.relaxed\.gpu\.global\.add\.f32 \[%rd\d+\], \1;", text)
