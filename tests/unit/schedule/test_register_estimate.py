"""The registers that schedules are chosen by, against what ptxas takes: no spills, and estimates near the truth."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.lowering.ptx.ptxas import find_ptxas
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.registers import registers_per_thread
from mlirfuse.schedule.model.residency import registers_left, resident_blocks
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import target_of
from tests.support.forms import fastest_of, problem
from tests.support.pairwise import combined, some
from tests.support.reductions.numerics import DTYPES, FAMILIES

SIZES = (1, 640, 1000, 1024, 2048, 4096, 5140, 16384, 32768, 49152, 65536, 131072)
ALL_SIZES = sorted(
    {*range(64, 1024, 64), *range(1024, 8192, 512), *range(8192, 131073, 4096), *SIZES, 33, 257, 1600, 3001, 12345}
)
REGISTERS, SHARE = 16, 0.3
"""How far an estimate may be off: that many registers, or that share of what ptxas takes."""

pytestmark = pytest.mark.skipif(find_ptxas() is None, reason="ptxas was not found")


def added_layer_norm(x: Any, b0: Any, b1: Any, w: Any, b: Any) -> Any:
    h = (x + b0 + b1).astype(mf.float32)
    mu = mf.mean(h, axis=-1, keepdims=True)
    var = mf.mean((h - mu) ** 2, axis=-1, keepdims=True)
    return ((h - mu) * mf.rsqrt(var + 1e-5) * w + b).astype(x.dtype)


FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "added_layer_norm": (added_layer_norm, 4),
    **{n: (FAMILIES[n].fn, FAMILIES[n].vectors) for n in ("layer_norm", "rms_norm", "softmax", "log_softmax")},
}


def _specs(name: str, dtype: str, columns: int) -> list[mf.TensorSpec]:
    kind = DTYPES[dtype]
    return [mf.TensorSpec((None, columns), kind), *[mf.TensorSpec(columns, kind)] * FUNCTIONS[name][1]]


def _estimate(given: Problem, schedule: Schedule) -> int:
    return registers_per_thread(given, schedule.layout, schedule.order, schedule.shared_spill)


def _fastest_of_one_block(given: Problem) -> Schedule | None:
    """The fastest schedule whose rows are in one block's registers, and leave ptxas the odd one; None if none is."""
    target = target_of("sm_90a")

    def is_such(schedule: Schedule) -> bool:
        layout, blocks = schedule.layout, schedule.blocks_per_sm
        if schedule.persistence != "registers" or schedule.persistent_loop or layout.cluster > 1 or not blocks:
            return False
        spare = registers_left(layout.threads, blocks, target) - _estimate(given, schedule)
        return spare > 0 or schedule.order == "depth"

    return fastest_of(given, is_such)


def _disagreement(name: str, dtype: str, columns: int) -> str | None:
    """What ptxas does that the schedule of one block did not count on; None where it agrees.

    ptxas may spill as many registers as the estimate may be off: the compiler then chooses again.
    """
    fn, specs = FUNCTIONS[name][0], _specs(name, dtype, columns)
    given, target = problem(fn, specs), target_of("sm_90a")
    if (schedule := _fastest_of_one_block(given)) is None:
        return None
    (used,) = mf.fuse(fn, target="sm_90a", schedule=schedule).lower(*specs).compile(choose_again=False).resources
    where = (
        f"{name} {dtype} {columns}: {schedule.layout.elements_per_thread} elements, {schedule.shared_spill} "
        f"spilled to shared memory"
    )
    if (used.spill_store_bytes or 0) > REGISTERS * REGISTER_BYTES:
        return f"{where}: {used.spill_store_bytes} bytes spilled at {used.registers} registers"
    estimate = _estimate(given, schedule)
    # What the wanted number of resident blocks leaves a thread, ptxas may take: it loads more at once then.
    spare = resident_blocks(schedule.layout.threads, -(-used.registers // 8) * 8, target) >= schedule.blocks_per_sm
    off = estimate - used.registers if spare else abs(estimate - used.registers)
    if off > max(REGISTERS, SHARE * used.registers):
        return f"{where}: {estimate} registers estimated, {used.registers} used"
    return None


def _spills(name: str, dtype: str, columns: int) -> bool:
    """Whether a kernel that is compiled in the end spills registers, or the assembler did not say."""
    compiled = mf.fuse(FUNCTIONS[name][0], target="sm_90a").lower(*_specs(name, dtype, columns)).compile()
    return any((used.spill_store_bytes, used.spill_load_bytes) != (0, 0) for used in compiled.resources)


@combined({"columns": some(SIZES, 6), "name": FUNCTIONS, "dtype": ["float16", "float32"]})
def test_rows_of_one_block_fit_the_registers(columns: int, name: str, dtype: str) -> None:
    assert _disagreement(name, dtype, columns) is None


@combined({"columns": SIZES}, turns={"name": FUNCTIONS, "dtype": ["float16", "float32"]})
def test_nothing_is_spilled_of_what_is_chosen_in_the_end(columns: int, name: str, dtype: str) -> None:
    """Whatever the estimates say: clusters with much in shared memory are estimated too low, and chosen again."""
    assert not _spills(name, dtype, columns)


@pytest.mark.skipif("MLIRFUSE_FUZZ_GRAPHS" not in os.environ, reason="run by `make fuzz`: takes minutes")
@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_fuzz_registers_over_the_size_range(name: str, dtype: str) -> None:
    """And what is chosen in the end spills nothing."""
    assert [n for n in ALL_SIZES if _spills(name, dtype, n)] == []
    found = [text for n in ALL_SIZES if (text := _disagreement(name, dtype, n))]
    assert not found, "\n".join(found)
