"""Workspaces of launches without a GPU: what is placed where, when it is zeroed, and grids that a device limits."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mlirfuse.analysis.memory.workspaces import SCRATCH, SEMAPHORES
from mlirfuse.compiler.kernel_info import KernelInfo, WorkspaceInfo, kernel_infos
from mlirfuse.errors import IRError, RuntimeLaunchError
from mlirfuse.lowering.ptx.assembler import assemble
from mlirfuse.runtime import workspace
from mlirfuse.runtime.device.module import LoadedKernel
from mlirfuse.runtime.memory_plan import MemoryPlan, MemoryPlanner, Place
from tests.support import protocols
from tests.support.fakes.fake_driver import Driver, dispatcher, ndarray
from tests.support.harnesses.lowering_harness import compile_text, lower

CHAIN = protocols.text("tickets").replace(
    "  return %0 : tensor<?x128xf32>",
    """  %1 = call @tickets_0(%0) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  return %1 : tensor<?x128xf32>""",
)
"""Two launches, with an intermediate in between."""


def info(name: str) -> KernelInfo:
    return kernel_infos(lower(protocols.text(name)).operation)[f"{name}_kernel"]


def x(rows: int = 6) -> ndarray:
    return ndarray((rows, 128), 1 << 24)


def test_kernel_info():
    barrier = info("grid_barrier")
    assert barrier.cooperative
    assert barrier.grid_operands == ((0, 0), (-1, 2))
    semaphores, scratch = barrier.workspaces
    assert (semaphores.arg, semaphores.kind, semaphores.element_bytes, semaphores.operands) == (2, SEMAPHORES, 4, ())
    assert (scratch.arg, scratch.kind, scratch.element_bytes, scratch.operands) == (3, SCRATCH, 4, ((-1, 2),))
    shapes = [(300, 128), (300, 128)]
    assert barrier.blocks(shapes, lambda per_sm: 132 * per_sm) == 264
    assert barrier.blocks([(7, 128), (7, 128)], lambda per_sm: 132 * per_sm) == 7
    assert barrier.workspace_shapes(shapes, lambda per_sm: 132 * per_sm) == [(2,), (2, 264, 128)]
    assert not info("last_block").cooperative


def test_intermediates_last_and_the_scratch_of_launches_does_not():
    scratch, semaphores = (WorkspaceInfo(2, kind, 4, (), ()) for kind in (SCRATCH, SEMAPHORES))
    planner = MemoryPlanner([1000, 24])
    planner.add_launch([semaphores, scratch, scratch], [(3,), (10, 2), (5,)])
    planner.add_launch([scratch], [(100,)])
    planner.add_launch([semaphores], [(7,)])
    assert planner.places == [
        Place(SCRATCH, 0, 1000),
        Place(SCRATCH, 1024, 24),
        Place(SEMAPHORES, 0, 12),
        Place(SCRATCH, 1280, 80),
        Place(SCRATCH, 1536, 20),
        Place(SCRATCH, 1280, 400),
        Place(SEMAPHORES, 0, 28),
    ]
    plan = MemoryPlan(tuple(planner.places))
    assert plan.nbytes == {SCRATCH: 1680, SEMAPHORES: 28}


def test_a_launch_gets_its_workspaces(driver: Driver):
    dispatcher(driver, protocols.text("last_block"))((x(),), stream=5)
    (launch,) = driver.launches
    pointers = launch[5]
    assert len(pointers) == 6  # x, its rows, y, semaphores, scratch, its rows
    assert pointers[1] == pointers[5] == 6
    assert driver.runtime.zeroed == [(pointers[3], 4096, 77)], "zeroed once, on a stream of its own"
    assert driver.runtime.sizes[pointers[4]] >= 6 * 128 * 4


def test_one_arena_serves_every_function_on_a_stream(driver: Driver):
    serial_reduction, last = (dispatcher(driver, protocols.text(name)) for name in ("serial", "last_block"))
    for _ in range(3):
        serial_reduction((x(),), stream=5)
        last((x(),), stream=5)
    assert len({launch[5][3] for launch in driver.launches}) == 1
    assert len({launch[5][4] for launch in driver.launches}) == 1
    assert len(driver.runtime.zeroed) == 1
    last((x(),), stream=6)
    assert len(driver.runtime.zeroed) == 2


@pytest.mark.parametrize("stream", [0, 1])
def test_a_stream_that_lasts_is_not_asked_which_it_is(driver: Driver, monkeypatch: pytest.MonkeyPatch, stream: int):
    monkeypatch.setattr(workspace.driver, "stream_id", lambda stream: pytest.fail("asked"))
    run = dispatcher(driver, protocols.text("last_block"))
    for _ in range(2):
        run((x(),), stream=stream)
    assert len({launch[5][3] for launch in driver.launches}) == len(driver.runtime.zeroed) == 1


def test_an_arena_grows(driver: Driver):
    run = dispatcher(driver, protocols.text("last_block"))
    for rows in (6, 1000, 1001, 6):
        run((x(rows),), stream=5)
    first, second, third, fourth = [launch[5][4] for launch in driver.launches]
    assert second != first
    assert second == third == fourth, "there is some headroom"
    assert driver.runtime.freed == [first]
    assert len({launch[5][3] for launch in driver.launches}) == 1, "the semaphores fitted into the workspace"


def test_what_a_graph_uses_is_freed_with_it(driver: Driver):
    run = dispatcher(driver, protocols.text("last_block"))
    for rows in (6, 1000):
        run((x(rows),), stream=99)
    assert driver.runtime.freed == []
    driver.runtime.capture, driver.runtime.graphs_over = 2, 1
    run((x(),), stream=99)
    first, second, third = [launch[5][4] for launch in driver.launches]
    assert driver.runtime.freed == [first]
    assert third == second


def test_captures_have_arenas_of_their_own(driver: Driver):
    run = dispatcher(driver, protocols.text("last_block"))
    run((x(),), stream=98)
    for driver.runtime.capture in (1, 1, 2):
        run((x(),), stream=99)
    eager, first, again, second = [launch[5][3] for launch in driver.launches]
    assert first == again
    assert len({eager, first, second}) == 3
    assert all(stream == 77 for _, _, stream in driver.runtime.zeroed), "no memset is captured"


def test_the_arena_of_a_graph_that_is_gone_is_used_again(driver: Driver):
    run = dispatcher(driver, protocols.text("last_block"))
    for driver.runtime.capture, driver.runtime.graphs_over in ((1, 0), (2, 0), (3, 1), (4, 0)):
        run((x(),), stream=99)
    first, second, third, fourth = [launch[5][3] for launch in driver.launches]
    assert third == first
    assert len({first, second, fourth}) == 3


def test_intermediates_lie_beside_semaphores(driver: Driver):
    dispatcher(driver, CHAIN)((x(),), stream=5)
    first, second = [launch[5] for launch in driver.launches]
    assert first[2] == second[0], "the intermediate"
    assert first[4] == second[4], "the semaphores of both"


def test_a_launch_that_fails_is_cleaned_up_after(driver: Driver):
    run = dispatcher(driver, protocols.text("last_block"))
    run((x(),), stream=5)
    driver.errors = ["CUDA_ERROR_INVALID_VALUE: invalid argument"]
    with pytest.raises(RuntimeLaunchError, match="last_block: the driver refuses the launch"):
        run((x(),), stream=5)
    semaphores = driver.launches[0][5][3]
    run((x(),), stream=5)
    run((x(),), stream=5)
    assert driver.runtime.zeroed == [(semaphores, 4096, 77), (semaphores, 4096, 5)], "on the stream, and once"


def test_a_capture_that_fails_gets_other_semaphores(driver: Driver):
    run = dispatcher(driver, protocols.text("last_block"))
    run((x(),), stream=99)
    driver.errors = ["CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"]
    with pytest.raises(RuntimeLaunchError):
        run((x(),), stream=99)
    run((x(),), stream=99)
    assert driver.launches[0][5][3] != driver.launches[1][5][3]
    assert all(stream == 77 for _, _, stream in driver.runtime.zeroed)


def test_checking_names_the_kernel_and_the_slot(driver: Driver, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(workspace.CHECK, "1")
    run = dispatcher(driver, protocols.text("serial"))
    run((x(),), stream=5)
    semaphores = driver.launches[0][5][3]
    driver.runtime.memory[semaphores + 4] = 7
    with pytest.raises(RuntimeLaunchError, match="serial_kernel: .* left semaphore 1 of argument 2 at 7"):
        run((x(),), stream=5)
    assert driver.runtime.zeroed == [(semaphores, 4096, 77)]
    driver.runtime.memory.clear()
    run((x(),), stream=5)
    assert driver.runtime.zeroed[1:] == [(semaphores, 4096, 5)]


def test_no_memory(driver: Driver):
    with pytest.raises(RuntimeLaunchError, match=r"cannot allocate a workspace of \d+ bytes: out of memory"):
        dispatcher(driver, protocols.text("last_block"))((x(1 << 22),), stream=5)


def test_a_grid_that_must_be_whole(driver: Driver):
    dispatcher(driver, protocols.text("grid_barrier"))((x(1000),), stream=5)
    (launch,) = driver.launches
    assert driver.whole == 1
    assert launch[1] == 264
    dispatcher(driver, protocols.text("last_block"))((x(),), stream=5)
    assert driver.whole == 1


@pytest.mark.parametrize(("fitting", "blocks"), [(1, 132), (2, 264), (5, 264)])
def test_a_grid_is_no_larger_than_the_device(driver: Driver, fitting: int, blocks: int):
    driver.fitting = fitting
    dispatcher(driver, protocols.text("tickets"))((x(1000),), stream=5)
    assert driver.launches[0][1] == blocks


def test_a_kernel_of_which_no_block_fits(driver: Driver):
    driver.fitting = 0
    with pytest.raises(RuntimeLaunchError, match="tickets_kernel: not one block of the kernel fits an SM"):
        dispatcher(driver, protocols.text("tickets"))((x(),), stream=5)


def test_clusters_that_do_not_fill_the_device(driver: Driver, monkeypatch: pytest.MonkeyPatch):
    clustered = SimpleNamespace(name="k", block=128, cluster=4, dynamic_shared_bytes=0)
    kernel = LoadedKernel(clustered, 1, 0, None)
    for clusters, blocks in ((30, 120), (50, 132)):
        monkeypatch.setattr("mlirfuse.runtime.device.driver.max_active_clusters", lambda *_, n=clusters: n)
        assert kernel.resident_blocks(1) == blocks


def test_workspaces_that_do_not_follow_the_arguments(driver: Driver):
    text = protocols.text("tickets").replace("func.call", "call")
    text = text.replace(
        "call @tickets_0(%x) : (tensor<?x128xf32>)", "call @tickets_0(%x, %x) : (tensor<?x128xf32>, tensor<?x128xf32>)"
    )
    text = text.replace("@tickets_0(tensor<?x128xf32>)", "@tickets_0(tensor<?x128xf32>, tensor<?x128xf32>)")
    with pytest.raises(
        IRError, match=r"the workspaces of tickets_kernel are arguments \[2\], its launch has 3 arguments"
    ):
        dispatcher(driver, text)((x(),), stream=5)


@pytest.mark.parametrize("name", protocols.EXPECTED)
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_120"])
def test_ptxas_takes_the_protocols(name: str, chip: str):
    binaries, _, _ = compile_text(protocols.text(name), chip)
    assert assemble(binaries[f"{name}_kernel"]).spill_store_bytes == 0
