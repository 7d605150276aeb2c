"""Blocks that wait for each other: four protocols in hostile orders, what is wrong with broken ones, planted bugs."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.mutation import MUTATORS, hunt, mutants
from mlirfuse.passmanager.manager import Pipeline
from tests.support import protocols
from tests.support.kernels import parse
from tests.support.pairwise import combined

ROWS = 13
SEMAPHORES = 'memref<4xi32> {fuse.workspace = "semaphores"}'
ORDERS = [("launch", 0), ("reversed", 0), *(("random", seed) for seed in range(8))]

# (protocol, str(mutant)) of mutants that change nothing: of a barrier's two arrivals only the departing one ever wraps.
EQUIVALENT = {
    ("grid_barrier", "raise-limit: fuse.semaphore_arrive at -:30:18"),
    ("grid_barrier", "raise-limit: fuse.semaphore_arrive at -:49:18"),
}


def run(module: ir.Module | ir.Operation, name: str, x: np.ndarray, **options) -> np.ndarray:
    (y,) = interpreter.run(module, name, [x], **options)
    return y


@combined({"sms": [1, 3, 100], "order": ["launch", "reversed", "random"], "name": protocols.EXPECTED})
def test_every_order_of_blocks(name, order, sms):
    module = parse(protocols.text(name))
    for rows in (1, 2, ROWS):
        x = protocols.integers(rows, seed=rows)
        expected = protocols.EXPECTED[name](x.astype(np.float64))
        for seed in range(5 if order == "random" else 1):
            np.testing.assert_array_equal(run(module, name, x, order=order, seed=seed, sms=sms), expected)


@pytest.mark.parametrize("name", ["last_block", "serial", "tickets"])
@pytest.mark.parametrize("resident", [1, 2, 5])
@pytest.mark.parametrize("order", ["launch", "reversed", "random"])
def test_few_resident_blocks(name, resident, order):
    """A serial reduction in the order of tickets needs no order of dispatch: a block that waits, waits for an earlier
    one.
    """
    module, x = parse(protocols.text(name)), protocols.integers(ROWS)
    expected = protocols.EXPECTED[name](x.astype(np.float64))
    np.testing.assert_array_equal(run(module, name, x, order=order, resident=resident), expected)


def test_a_grid_barrier_needs_the_whole_grid():
    module, x = parse(protocols.text("grid_barrier")), protocols.integers(ROWS)
    with pytest.raises(InterpreterError, match="needs all of its 8 blocks resident at once, and only 7 may be"):
        run(module, "grid_barrier", x, resident=7, sms=4)
    unmarked = parse(protocols.text("grid_barrier").replace("fuse.cooperative,", ""))
    with pytest.raises(InterpreterError) as caught:
        run(unmarked, "grid_barrier", x, resident=7, sms=4)
    text = str(caught.value)
    assert "deadlock: none of the 7 resident blocks can continue; 1 more blocks cannot be dispatched" in text
    assert "block 3 waits for fuse.semaphore_wait at -:31:7 (argument 2[0] is 7, it waits for 8)" in text


@pytest.mark.parametrize("name", protocols.EXPECTED)
def test_mutants_are_caught(name):
    module, x = parse(protocols.text(name)), protocols.integers(ROWS)
    expected = protocols.EXPECTED[name](x.astype(np.float64))

    def results(mutant: ir.Operation) -> list[np.ndarray]:
        return [run(mutant, name, x, order=order, seed=seed) for order, seed in ORDERS]

    report = hunt(module, results, lambda ys: all((y == expected).all() for y in ys))
    assert {str(mutant) for mutant in report.survivors} == {text for known, text in EQUIVALENT if known == name}
    for mutant, how in report.caught.items():
        if mutant.kind in ("drop-barrier", "relax-arrive"):
            assert "race" in how, mutant
        if mutant.kind == "raise-limit":
            assert "ends and leaves semaphore" in how, mutant
        if mutant.kind == "late-wait":
            assert "deadlock" in how, mutant


def test_every_mutator_of_semaphores_has_something_to_mutate():
    found = {mutant.kind for name in protocols.EXPECTED for mutant in mutants(parse(protocols.text(name)))}
    assert found >= {"relax-arrive", "raise-limit", "drop-wait", "early-wait", "late-wait"} <= MUTATORS.keys()


def kernel(body: str, *, blocks: int = 2, threads: int = 32, arguments: str = "") -> ir.Module:
    """A kernel with four semaphores `%s`, run as `k`; `%first` is whether the thread is the block's first."""
    return parse(f"""
      gpu.module @k {{
        gpu.func @k({arguments}%s: {SEMAPHORES})
            kernel attributes {{known_block_size = array<i32: {threads}, 1, 1>, fuse.grid_operands = array<i64>,
                                fuse.grid = affine_map<() -> ({blocks})>}} {{
          %t = gpu.thread_id x
          %b = gpu.block_id x
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %zero = arith.constant 0 : i32
          %one = arith.constant 1 : i32
          %two = arith.constant 2 : i32
          %first = arith.cmpi eq, %t, %c0 : index
          {body}
          gpu.return
        }}
      }}""")


ARRIVE = '%old = "fuse.semaphore_arrive"(%s, {slot}, {limit}) : (memref<4xi32>, index, i32) -> i32'
WAIT = '"fuse.semaphore_wait"(%s, {slot}, {count}) : (memref<4xi32>, index, i32) -> ()'


def first(*ops: str) -> str:
    return "scf.if %first {\n" + "\n".join(ops) + "\n}"


def test_a_semaphore_that_is_left_at_another_value():
    module = kernel(first(ARRIVE.format(slot="%c1", limit="%two")))
    with pytest.raises(InterpreterError, match=r"@k ends and leaves semaphore 1 of argument 0 at 2\n.*hint: .*wrap"):
        interpreter.run_kernel(module, "k", [], [])


def test_a_wait_that_nobody_satisfies():
    module = kernel(first(WAIT.format(slot="%c1", count="%two")), blocks=1)
    with pytest.raises(InterpreterError, match=r"argument 0\[1\] is 0, it waits for 2"):
        interpreter.run_kernel(module, "k", [], [])


def test_all_threads_arrive():
    with pytest.raises(
        InterpreterError, match="fuse.semaphore_arrive: executed by 32 threads of the block, not by one"
    ):
        interpreter.run_kernel(kernel(ARRIVE.format(slot="%c0", limit="%one")), "k", [], [])


def test_a_slot_that_is_not_there():
    module = kernel("%c9 = arith.constant 9 : index\n" + first(ARRIVE.format(slot="%c9", limit="%one")))
    with pytest.raises(InterpreterError, match=r"out-of-bounds access: index \(9\) of argument 0; block 0, thread 0"):
        interpreter.run_kernel(module, "k", [], [])


HAND_OVER = """
  %is_writer = arith.cmpi eq, %b, %c0 : index
  scf.if %is_writer {{
    {write}
    {before}
    scf.if %first {{ {arrive} }}
  }} else {{
    scf.if %first {{ {wait}
      {back} }}
    {after}
    {read}
  }}"""
PARTS = '%p: memref<32xf32> {fuse.workspace = "scratch"}, '


def hand_over(
    *, alone: bool = False, before: str = "gpu.barrier", after: str = "gpu.barrier", read: str = ""
) -> ir.Module:
    """Block 0 writes scratch memory, block 1 reads it; with `alone` one thread of each does so."""
    write = "memref.store %v, %p[%t] : memref<32xf32>"
    read = read or "%r = memref.load %p[%t] : memref<32xf32>"
    text = HAND_OVER.format(
        write=f"scf.if %first {{ {write} }}" if alone else write,
        before=before,
        arrive=ARRIVE.format(slot="%c0", limit="%one"),
        wait=WAIT.format(slot="%c0", count="%one"),
        back=ARRIVE.format(slot="%c0", limit="%one"),
        after=after,
        read=f"scf.if %first {{ {read} }}" if alone else read,
    )
    return kernel("%v = arith.constant 1.0 : f32\n" + text, arguments=PARTS)


@pytest.mark.parametrize("order", ["launch", "reversed", "random"])
def test_what_is_released_is_seen(order):
    interpreter.run_kernel(hand_over(), "k", [], [], order=order)


def test_a_thread_releases_its_own_writes_without_a_barrier():
    interpreter.run_kernel(hand_over(alone=True, before="", after=""), "k", [], [], order="reversed")


@pytest.mark.parametrize("missing", ["before", "after"])
def test_other_threads_need_a_barrier(missing):
    with pytest.raises(InterpreterError, match=r"global race with a write by block 0, thread \d+: nothing orders"):
        interpreter.run_kernel(hand_over(**{missing: ""}), "k", [], [])


def test_a_write_after_the_release_is_not_covered():
    text = str(hand_over(alone=True, before="", after=""))
    store = next(line for line in text.splitlines() if "memref.store" in line)
    arrive = next(line for line in text.splitlines() if "semaphore_arrive" in line)
    late = parse(text.replace(arrive, f"{arrive}\n{store}", 1))
    with pytest.raises(InterpreterError, match="global race with a write by block 0, thread 0"):
        interpreter.run_kernel(late, "k", [], [])


def test_a_reader_is_released_before_another_block_overwrites():
    """Block 0 writes, block 1 reads and overwrites: in order only with the barrier in between."""
    read = """%r = memref.load %p[%c0] : memref<32xf32>
      {between}
      memref.store %r, %p[%t] : memref<32xf32>"""
    interpreter.run_kernel(hand_over(read=read.format(between="gpu.barrier")), "k", [], [])
    with pytest.raises(InterpreterError, match="global race with a read by block 1, several threads"):
        interpreter.run_kernel(hand_over(read=read.format(between="")), "k", [], [])


def test_scratch_that_is_read_before_it_is_written():
    module = kernel("%r = memref.load %p[%t] : memref<32xf32>", arguments=PARTS)
    with pytest.raises(InterpreterError, match="read of memory that was never written"):
        interpreter.run_kernel(module, "k", [], [])


def test_scratch_that_two_blocks_write():
    module = kernel("%v = arith.constant 1.0 : f32\nmemref.store %v, %p[%t] : memref<32xf32>", arguments=PARTS)
    with pytest.raises(InterpreterError, match="global race with a write by block 0, thread 0"):
        interpreter.run_kernel(module, "k", [], [])


def test_workspaces_are_no_arguments_of_the_caller():
    (parameters,) = [s.arguments for s in interpreter.signatures(parse(protocols.text("tickets"))) if s.kernel]
    assert [parameter.name for parameter in parameters] == ["x", "argument 1"]


DISTRIBUTE = "builtin.module(fuse-distribute,canonicalize,cse)"


@combined(
    {
        "sms": [1, 3, 50],
        "order": ["launch", "reversed", "random"],
        "layout": protocols.LAYOUTS,
        "name": protocols.TILE_PROGRAMS,
    }
)
def test_a_tile_program_and_what_becomes_of_it(name, layout, order, sms):
    module, x = parse(protocols.tile_program(name, layout)), protocols.integers(ROWS, columns=256)
    expected = protocols.TILE_PROGRAMS[name](x)
    np.testing.assert_array_equal(run(module, name, x, order=order, sms=sms), expected)
    Pipeline.parse(DISTRIBUTE).run(module)
    np.testing.assert_array_equal(run(module, name, x, order=order, sms=sms), expected)


def test_a_tile_program_whose_arrivals_order_nothing():
    text = protocols.tile_program("tile_sum", "block").replace(
        "%limit) : (memref<1xi32>", "%limit) {relaxed} : (memref<1xi32>"
    )
    with pytest.raises(InterpreterError, match="global race with a write by block 0"):
        run(parse(text), "tile_sum", protocols.integers(ROWS, columns=256))


@pytest.mark.parametrize("name", protocols.TILE_PROGRAMS)
@pytest.mark.parametrize("layout", protocols.LAYOUTS)
def test_mutants_of_a_tile_program(name, layout):
    module, x = parse(protocols.tile_program(name, layout)), protocols.integers(ROWS, columns=256)
    expected = protocols.TILE_PROGRAMS[name](x)
    Pipeline.parse(DISTRIBUTE).run(module)

    def results(mutant: ir.Operation) -> list[np.ndarray]:
        return [run(mutant, name, x, order=order, seed=seed) for order, seed in ORDERS]

    report = hunt(module, results, lambda ys: all((y == expected).all() for y in ys))
    kinds = sorted(mutant.kind for mutant in report.survivors)
    # The barrier at a cluster's start is for stores into its blocks' shared memory; here another one precedes those.
    equivalent = ["drop-cluster-barrier"] if layout == "cluster" else []
    # Of a barrier's two arrivals only the departing one ever wraps.
    assert kinds == equivalent + (["raise-limit"] if name == "tile_centre" else [])
