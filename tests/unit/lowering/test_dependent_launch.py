"""Kernels that wait for their predecessor: where ptxas leaves the wait, and how they are launched."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.compiler.kernel_info import kernel_infos
from mlirfuse.errors import RuntimeLaunchError
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.fakes.fake_driver import dispatcher, ndarray
from tests.support.harnesses.compiling import row_schedule, specs_of
from tests.support.harnesses.lowering_harness import SCALE, lower
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import FAMILIES
from tests.support.sass import needs_sass, sass_of

WAIT, TRIGGER = "ACQBULK", "PREEXIT"
GLOBAL = re.compile(r"(LDG|STG|LD|ST|ATOMG?|REDG?|LDGSTS|UTMA(LDG|STG|REDG)|UBLKCP)(\.|$)")
"""Instructions of sm_90 that touch global memory."""

F16 = np.dtype(np.float16)


def _product(instruction: str, *split: object) -> tuple[Callable, list[np.ndarray], mf.Schedule]:
    case = Product(256, 256, 1024)
    return case.fn, case.inputs(), pinned_schedule(case, 128, 64, *split, instruction=instruction)


CASES = {
    "rows in registers": lambda: (FAMILIES["layer_norm"].fn, FAMILIES["layer_norm"].inputs(8, 4096, F16), None),
    "odd rows": lambda: (FAMILIES["softmax"].fn, FAMILIES["softmax"].inputs(8, 1001, F16), None),
    "rows in shared memory": lambda: (
        FAMILIES["softmax"].fn,
        FAMILIES["softmax"].inputs(8, 4096, F16),
        row_schedule(4096, vector=8, warps=2, chunk_repeats=1, persistence="shared"),
    ),
    "persistent_loop": lambda: (
        BACKWARD["layer_norm_backward"].fn,
        BACKWARD["layer_norm_backward"].inputs(300, 1024, F16),
        None,
    ),
    "wgmma": lambda: _product("wgmma"),
    "wgmma, flagged": lambda: _product("wgmma", 4, "flagged"),
    "mma": lambda: _product("mma"),
}


@needs_sass
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_moved_above_the_wait(name: str, tmp_path: Path) -> None:
    fn, inputs, schedule = CASES[name]()
    compiled = mf.fuse(fn, target="sm_90a", schedule=schedule).lower(*specs_of(inputs)).compile()
    for binary in compiled.binaries.values():
        found = [instruction.opcode for instruction in sass_of(binary.ptx, tmp_path)]
        accesses = [at for at, opcode in enumerate(found) if GLOBAL.match(opcode)]
        assert found.count(WAIT) == 1
        assert accesses
        assert found.index(WAIT) < accesses[0], found[accesses[0]]


NO_TRIGGER = ("rows in shared memory", "mma")


@needs_sass
@pytest.mark.parametrize("name", CASES)
def test_where_the_next_kernel_may_start(name: str, tmp_path: Path) -> None:
    """In front of the last store, but for kernels that write their results in a loop, or much at once."""
    fn, inputs, schedule = CASES[name]()
    stage = "grid_sync" if name == "persistent_loop" else "auto"
    compiled = mf.fuse(fn, target="sm_90a", schedule=schedule, grid_reduction=stage).lower(*specs_of(inputs)).compile()
    for binary in compiled.binaries.values():
        found = [instruction.opcode for instruction in sass_of(binary.ptx, tmp_path)]
        assert found.count(TRIGGER) == (name not in NO_TRIGGER)
        if TRIGGER in found:
            before, behind = found[: found.index(TRIGGER)], found[found.index(TRIGGER) :]
            assert WAIT in before
            assert any(opcode.startswith(("STG", "UTMASTG")) for opcode in behind)
            if name == "rows in registers":  # code lies in the order in which it runs
                assert any(opcode.startswith("BAR") for opcode in before)
                assert not any(opcode.startswith(("LDG", "BAR")) for opcode in behind)


MARKED = SCALE.replace("kernel attributes {", "kernel attributes {fuse.dependent_launch, ")


@pytest.mark.parametrize(("text", "dependent"), [(SCALE, False), (MARKED, True)])
def test_what_the_launcher_is_told(text: str, dependent: bool) -> None:
    module = lower(text)
    assert kernel_infos(module.operation)["scale_kernel"].dependent == dependent
    assert ("llvm.readonly" in str(module)) != dependent


@pytest.mark.parametrize("whole", [False, True])
def test_launch(driver, whole: bool) -> None:
    """With the attribute, the stream of each call, and the parameters of each call."""
    text = MARKED.replace("fuse.dependent_launch,", "fuse.dependent_launch, fuse.cooperative,") if whole else MARKED
    run = dispatcher(driver, text)
    x, y = (ndarray((6, 512), pointer) for pointer in (1 << 24, 1 << 25))
    out = ndarray((6, 512), 1 << 26)
    for stream, factor in ((7, 0.5), (8, 2.0)):
        run((x, y, factor), out=out, stream=stream)
    assert (driver.dependent, driver.whole) == (2, 2 if whole else 0)
    assert [launch[1:5] for launch in driver.launches] == [(6, 128, 0, 7), (6, 128, 0, 8)]
    assert [launch[5] for launch in driver.launches] == [
        [1 << 24, 6, 1 << 25, 6, factor, 1 << 26, 6] for factor in (0.5, 2.0)
    ]


def test_a_launch_that_is_refused(driver) -> None:
    run = dispatcher(driver, MARKED)
    driver.errors = ["CUDA_ERROR_INVALID_VALUE"]
    with pytest.raises(RuntimeLaunchError, match="scale: the driver refuses the launch: 1"):
        run((ndarray((6, 512), 1 << 24), ndarray((6, 512), 1 << 25), 1.0))
