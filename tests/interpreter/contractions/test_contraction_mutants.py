"""Planted bugs in the synchronisation of contractions: rings of copies, and every reduction of partial tiles."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from mlirfuse import interpreter
from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.mutation import MUTATORS, hunt
from mlirfuse.support.rewriting import nested
from tests.support.contractions.products import Product, pinned_schedule
from tests.support.harnesses.compiling import module_at

NOT_SYNCHRONISATION = {"change-shuffle", "shrink-compare", "shrink-mask", "shorten-loop", "drop-neutral"}
KINDS = sorted(set(MUTATORS) - NOT_SYNCHRONISATION)
CASES = {
    "ring": ("mma", 1, "last_block"),
    "scalars": ("fma", 1, "last_block"),
    "last block": ("mma", 3, "last_block"),
    "serial": ("mma", 3, "serial"),
    "grid_sync": ("mma", 3, "grid_sync"),
    "cluster": ("mma", 3, "cluster"),
    "flagged": ("mma", 3, "flagged"),
    "stages": ("wgmma", 1, "last_block"),
    "stages, last block": ("wgmma", 3, "last_block"),
    "stages, serial reduction": ("wgmma", 3, "serial"),
    "stages, grid_sync": ("wgmma", 3, "grid_sync"),
    "stages, cluster": ("wgmma", 3, "cluster"),
    "stages, flagged": ("wgmma", 3, "flagged"),
}
"""The instruction, the number of slices, and the reduction of their partials."""

# A block that arrives for the first time is never the one that wraps the counter: the others wait for it. And the ring
# that `cp.async` fills has memory of its own, so that no warp still reads where a cluster's partial is written.
EQUIVALENT = {"grid_sync": ["raise-limit"], "stages, grid_sync": ["raise-limit"], "cluster": ["drop-barrier"]}


def case(name: str):
    instruction, split, reduction = CASES[name]
    # Three tiles of a ring, since the interpreter lets another role run ahead in each; else one of two warps.
    m, n, k, rows = (192, 32, 1152, 64) if instruction == "wgmma" else (32, 64, 128, 32)
    product = Product(m, n, k, "nt", "float32" if instruction == "fma" else "float16")
    schedule = pinned_schedule(product, rows, n, split, reduction, instruction)
    module = module_at("gpu", product.fn, product.specs, schedule)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(1, 4, a.shape).astype(a.dtype) for a in product.inputs()]
    expected = product.expected(inputs)

    def run(mutant):  # one after the other, as the first wrong result tells
        return (interpreter.run(mutant, product.form, inputs, order="random", seed=seed)[0] for seed in range(4))

    return module, run, lambda results: all(np.array_equal(result, expected) for result in results)


@pytest.mark.parametrize("name", CASES)
def test_synchronisation_bugs_are_caught(name: str) -> None:
    module, run, right = case(name)
    assert right(run(module))
    report = hunt(module, run, right, KINDS)
    assert report.caught
    assert [mutant.kind for mutant in report.survivors] == EQUIVALENT.get(name, [])


@pytest.mark.parametrize("step", ["first", "later"])
@pytest.mark.parametrize("change", ["wait for one group less", "no wait"])
def test_a_slot_that_is_read_too_early_is_caught(change: str, step: str) -> None:
    module, run, _ = case("ring")
    with module.context:
        first, later = (op for op in nested(module.operation) if op.name == "nvvm.cp.async.wait.group")
        wait = first if step == "first" else later
        if change == "no wait":
            wait.erase()
        else:
            i32 = ir.IntegerType.get_signless(32)
            pending = ir.IntegerAttr(wait.attributes["n"]).value
            wait.attributes["n"] = ir.IntegerAttr.get(i32, pending + 1)
    with pytest.raises(InterpreterError, match="never written|race"):
        list(run(module))
