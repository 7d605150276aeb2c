"""Kernels that wait for their predecessor themselves: nothing may touch global memory before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mlir import ir

from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.rules.nvvm_grid_dependency import WAIT
from mlirfuse.support.rewriting import nested
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.harnesses.compiling import module_at, row_schedule, specs_of
from tests.support.kernels import parse
from tests.support.reductions.backward import BACKWARD
from tests.support.reductions.numerics import FAMILIES

ACCESSES = {
    "memref.load": "%v = memref.load %x[%t] : memref<32xf32>",
    "vector.store": "vector.store %zero, %y[%t] : memref<32xf32>, vector<1xf32>",
    "fuse.semaphore_wait": """scf.if %first {
      "fuse.semaphore_wait"(%s, %c0, %none) : (memref<1xi32>, index, i32) -> ()
    }""",
}


def kernel(body: str) -> ir.Module:
    """One block of a marked kernel."""
    return parse(f"""
      gpu.module @k {{
        gpu.func @k(%x: memref<32xf32>, %y: memref<32xf32>, %s: memref<1xi32> {{fuse.workspace = "semaphores"}})
            workgroup(%own : memref<32xf32, #gpu.address_space<workgroup>>)
            kernel attributes {{known_block_size = array<i32: 32, 1, 1>, fuse.dependent_launch,
                                fuse.grid = affine_map<() -> (1)>, fuse.grid_operands = array<i64>}} {{
          %t = gpu.thread_id x
          %c0 = arith.constant 0 : index
          %none = arith.constant 0 : i32
          %zero = arith.constant dense<0.0> : vector<1xf32>
          %first = arith.cmpi eq, %t, %c0 : index
          {body}
          gpu.return
        }}
      }}""")


@pytest.mark.parametrize("op", ACCESSES)
def test_an_access_before_the_wait(op: str) -> None:
    module = kernel(ACCESSES[op] + "\nnvvm.griddepcontrol wait")
    message = f"{op}: access to .* before the kernel has waited for its predecessor"
    with pytest.raises(InterpreterError, match=message):
        interpreter.run_kernel(module, "k", [np.ones(32, np.float32)], [np.empty(32, np.float32)])


def test_accesses_behind_the_wait_and_shared_memory_before_it() -> None:
    own = "vector.store %zero, %own[%t] : memref<32xf32, #gpu.address_space<workgroup>>, vector<1xf32>"
    module = kernel("\n".join([own, "nvvm.griddepcontrol wait", *ACCESSES.values()]))
    out = np.ones(32, np.float32)
    interpreter.run_kernel(module, "k", [np.ones(32, np.float32)], [out])
    assert not out.any()


def test_a_wait_that_not_all_threads_reach() -> None:
    module = kernel("scf.if %first {\nnvvm.griddepcontrol wait\n}")
    with pytest.raises(InterpreterError, match="31 of 32 threads do not execute the op"):
        interpreter.run_kernel(module, "k", [np.ones(32, np.float32)], [np.empty(32, np.float32)])


def test_a_kernel_that_lets_the_next_one_start_has_still_waited_itself() -> None:
    module = kernel("nvvm.griddepcontrol launch_dependents\n" + ACCESSES["memref.load"])
    with pytest.raises(InterpreterError, match="before the kernel has waited for its predecessor"):
        interpreter.run_kernel(module, "k", [np.ones(32, np.float32)], [np.empty(32, np.float32)])


def test_some_threads_let_the_next_kernel_start_and_all_go_on() -> None:
    trigger = "scf.if %first {\nnvvm.griddepcontrol launch_dependents\n}"
    module = kernel("\n".join(["nvvm.griddepcontrol wait", trigger, ACCESSES["vector.store"]]))
    out = np.ones(32, np.float32)
    interpreter.run_kernel(module, "k", [np.ones(32, np.float32)], [out])
    assert not out.any()


def _row() -> tuple[Callable, list[np.ndarray], object]:
    family = FAMILIES["layer_norm"]
    return family.fn, family.inputs(5, 96, np.dtype(np.float16)), row_schedule(96, vector=2, warps=2)


def _walk() -> tuple[Callable, list[np.ndarray], object]:
    backward = BACKWARD["layer_norm_backward"]
    return backward.fn, backward.inputs(9, 64, np.dtype(np.float16)), None


def _product(instruction: str) -> Callable[[], tuple[Callable, list[np.ndarray], object]]:
    case = Product(64, 64, 128)
    return lambda: (case.fn, case.inputs(), pinned_schedule(case, 64, 64, instruction=instruction))


@pytest.mark.parametrize(
    "make", [_row, _walk, _product("mma"), _product("wgmma")], ids=["row", "persistent_loop", "mma", "wgmma"]
)
def test_a_compiled_kernel_without_its_wait(make: Callable) -> None:
    """Every family waits, once, and the wait is what lets it run."""
    fn, inputs, schedule = make()
    module = module_at("gpu", fn, specs_of(inputs), schedule)
    waits = [op for op in nested(module.operation) if op.name == WAIT and "wait" in str(op.attributes["kind"])]
    assert len(waits) == sum(op.name == "gpu.func" for op in nested(module.operation))
    interpreter.run(module, fn.__name__, inputs)
    waits[0].erase()
    with pytest.raises(InterpreterError, match="before the kernel has waited for its predecessor"):
        interpreter.run(module, fn.__name__, inputs)
