"""Planted bugs: at least 95 % of the mutants of each kernel must be noticed, and survivors must be known."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mlirfuse import interpreter
from mlirfuse.interpreter.mutation import MUTATORS, hunt, mutants, plant, spiked_rows
from tests.support.kernels import parse

# (kernel, str(mutant)) of mutants that change nothing, with the reason. None at present.
EQUIVALENT: dict[tuple[str, str], str] = {}


def layer_norm_case():
    x, w = spiked_rows(16, 1000, np.float16), np.random.default_rng(0).normal(1, 1, 1000).astype(np.float16)
    h = x.astype(np.float64)
    expected = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5) * w

    def run(module):
        return interpreter.run(module, "layer_norm", [x, w])[0]

    return run, lambda y: np.allclose(y, expected, rtol=2e-3, atol=4e-3)


def cluster_sum_case():
    x = np.random.default_rng(0).random((2, 128), np.float32)

    def run(module):
        y = np.full_like(x, np.nan)
        interpreter.run_kernel(module, "cluster_sum_kernel", [x], [y])
        return y

    return run, lambda y: np.allclose(y, x / x.sum(1, keepdims=True), rtol=1e-5)


CASES = {"layer_norm": layer_norm_case, "cluster_sum": cluster_sum_case}


@pytest.mark.parametrize("name", CASES)
def test_mutants_are_caught(load, name):
    run, right = CASES[name]()
    module = load(name)
    assert right(run(module))
    report = hunt(module, run, right)
    unknown = [str(mutant) for mutant in report.survivors if (name, str(mutant)) not in EQUIVALENT]
    assert not unknown, f"survived: {unknown}"
    assert len(report.caught) >= 0.95 * (len(report.caught) + len(report.survivors))


@pytest.mark.parametrize(
    ("kind", "check"), [("drop-barrier", "race"), ("drop-cluster-barrier", "never written|may not have")]
)
def test_a_missing_barrier_is_caught_by_a_check_and_not_by_luck(load, kind, check):
    for name, case in CASES.items():
        caught = {m: how for m, how in hunt(load(name), *case()).caught.items() if m.kind == kind}
        assert all(re.search(check, how) for how in caught.values()), caught


def test_every_mutator_has_something_to_mutate(load):
    found = {mutant.kind for name in CASES for mutant in mutants(load(name))}
    elsewhere = {"shrink-mask", "relax-arrive", "raise-limit", "drop-wait", "early-wait", "late-wait"}
    elsewhere |= {"drop-group-barrier", "drop-mbarrier-wait", "drop-mbarrier-arrive", "wait-for-less"}
    elsewhere |= {"drop-numbered-barrier"}
    assert found == set(MUTATORS) - elsewhere, "see below, test_{protocols,contraction_mutants,warp_barriers}.py"


def test_a_shrunk_mask_is_planted():
    module = parse("""
      gpu.module @k { gpu.func @k(%x: memref<8xf32>, %y: memref<8xf32>) kernel
          attributes {known_block_size = array<i32: 1, 1, 1>, fuse.grid = affine_map<() -> (1)>} {
        %c0 = arith.constant 0 : index
        %c5 = arith.constant 5 : index
        %m = vector.create_mask %c5 : vector<8xi1>
        %v = vector.load %x[%c0] : memref<8xf32>, vector<8xf32>
        vector.maskedstore %y[%c0], %m, %v : memref<8xf32>, vector<8xi1>, vector<8xf32>
        gpu.return
      } }""")
    x = np.arange(8, dtype=np.float32) + 1

    def run(mutated) -> np.ndarray:
        y = np.zeros(8, np.float32)
        interpreter.run_kernel(mutated, "k", [x], [y])
        return y

    np.testing.assert_array_equal(run(module), [1, 2, 3, 4, 5, 0, 0, 0])
    (mutant,) = [m for m in mutants(module) if m.kind == "shrink-mask"]
    np.testing.assert_array_equal(run(plant(module, mutant)), [1, 2, 3, 4, 0, 0, 0, 0])


def test_planting_leaves_the_module_alone(load):
    module = load("layer_norm")
    before = str(module)
    for mutant in mutants(module):
        assert str(plant(module, mutant)) != before
    assert str(module) == before
