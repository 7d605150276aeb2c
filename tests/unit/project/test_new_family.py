"""What docs/targets.md says of a new instruction family: new files and one registration, and no edit of the core."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.compiler.pipeline import passes
from mlirfuse.distribution.mma import contract
from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.contraction_choice import choose_contraction
from mlirfuse.schedule.contractions.checks import check_contraction
from mlirfuse.schedule.contractions.family import PACKAGE, family_schedules
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict import predict_contraction
from mlirfuse.support.strategies import strategy_of
from mlirfuse.target import instructions, target_of
from mlirfuse.target.instructions import DEFAULT_FAMILY, FAMILIES, InstructionFamily
from mlirfuse.tiling.contractions.family import family_pipelining
from tests.support.contractions.products import Product
from tests.support.harnesses.compiling import module_at
from tests.support.toy_families import registered

ROOT = Path(mf.__file__).parent
HOPPER = target_of("sm_90a")
FASTEST = 2 * max(family.flops_per_sm for family in FAMILIES.values())

FMA = InstructionFamily("toy_fma", lambda target: target.has_tma, is_tensor_core=False, flops_per_sm=FASTEST)
ASYNCHRONOUS = InstructionFamily(
    "toy_wgmma",
    lambda target: target.has_wgmma,
    is_asynchronous=True,
    producer_threads=128,
    flops_per_sm=FASTEST,
    fallback="mma",
)

FLOAT32 = ContractionProblem((), 96, 200, 256, mf.float32, mf.float32, 16)
HALF = replace(FLOAT32, element=mf.float16)


@pytest.fixture(params=[FMA, ASYNCHRONOUS], ids=lambda family: family.name)
def toy(request: pytest.FixtureRequest) -> Iterator[InstructionFamily]:
    with registered(request.param):
        yield request.param


def test_a_registered_family_is_chosen_and_checked(toy: InstructionFamily) -> None:
    problem = FLOAT32 if toy is FMA else HALF
    schedule = choose_contraction(problem, HOPPER, machine_of(HOPPER))
    assert schedule.contraction is not None
    assert schedule.contraction.instruction == toy.name
    assert check_contraction(schedule.contraction, schedule.tile, schedule.layout, problem) is None
    assert 0 < predict_contraction(schedule, problem, machine_of(HOPPER)).microseconds < 1e3
    elsewhere = choose_contraction(problem, target_of("sm_80"), machine_of("sm_80")).contraction
    assert elsewhere is not None
    assert elsewhere.instruction != toy.name


def test_a_family_says_what_is_illegal_for_it() -> None:
    with registered(FMA):
        schedule = choose_contraction(FLOAT32, HOPPER, machine_of(HOPPER))
        assert schedule.contraction is not None
        unsplit = replace(schedule.contraction, split=1)
        legal = (unsplit, schedule.tile, schedule.layout)
        assert check_contraction(*legal, HALF) == "toy_fma does not multiply float16"
        wide = replace(schedule.layout, repeats=tuple(2 * n for n in schedule.layout.repeats))
        reason = check_contraction(unsplit, wide.extents, wide, FLOAT32)
        assert reason == "toy_fma has tiles of 32 x 32 alone"
    unregistered = check_contraction(*legal, FLOAT32)
    assert unregistered == f"instruction 'toy_fma' is not one of {', '.join(FAMILIES)}"


def test_where_a_family_has_no_tiles_another_is_chosen() -> None:
    """Rows that are aligned to 8 bytes are described by no tensor map."""
    with registered(ASYNCHRONOUS):
        chosen = choose_contraction(replace(HALF, row_bytes=8), HOPPER, machine_of(HOPPER)).contraction
    assert chosen is not None
    assert chosen.instruction == "mma"


@pytest.mark.parametrize("stage", ["tile", "gpu"])
def test_a_registered_family_multiplies(toy: InstructionFamily, stage: str) -> None:
    product = Product(96, 200, 256, "nt", "float32" if toy is FMA else "float16")
    module = module_at(stage, product.fn, product.specs)
    text = str(module)
    assert ("fuse.warpgroup_mma" in text) == toy.is_asynchronous
    assert (f'fuse.instruction = "{toy.name}"' in text) == (toy is FMA and stage == "tile")
    inputs = product.inputs(seed=1)
    (result,) = interpreter.run(module, product.form, inputs, order="random", seed=2)
    np.testing.assert_array_equal(result, product.expected(inputs))


def test_a_registered_family_compiles_to_ptx(toy: InstructionFamily) -> None:
    product = Product(96, 200, 256, "nt", "float32" if toy is FMA else "float16")
    ptx = mf.fuse(product.fn, target="sm_90a").lower(*product.specs).compile().as_text("ptx")
    assert ("wgmma.mma_async" in ptx) == toy.is_asynchronous


def test_every_family_has_what_multiplies() -> None:
    for name, family in FAMILIES.items():
        assert family_schedules(name)
        assert strategy_of(contract.PACKAGE, name) is not None or family_pipelining(name) is not None
        assert family.is_asynchronous == (family_pipelining(name) is not None)
        assert set(family.lowerings) <= set(passes())
    assert not FAMILIES[DEFAULT_FAMILY].flops_per_sm


def test_an_unregistered_family_has_no_strategy() -> None:
    assert strategy_of(PACKAGE, "toy_fma") is None
    assert family_pipelining("mma") is None


CONSTANTS = {name: family.name for name, family in vars(instructions).items() if isinstance(family, InstructionFamily)}
"""The registered families' names, by the name of the constant."""


def _imports(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of everything that a file imports from a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def _family_of(path: Path) -> str | None:
    """The family whose own file it is: a module of that name in a package `families`."""
    return path.stem if path.parent.name == "families" and path.stem in FAMILIES else None


def test_the_core_names_no_family() -> None:
    """A family's constant is imported by the family's own files alone, and these by other families' alone, so that
    nothing compares with them. That no other file spells a family's name is in `test_targets_are_data.py`.
    """
    assert set(CONSTANTS.values()) == set(FAMILIES)
    own = 0
    for path in ROOT.rglob("*.py"):
        family = _family_of(path)
        own += family is not None
        for module, name in _imports(path):
            if name in CONSTANTS and module == instructions.__name__:
                assert CONSTANTS[name] == family, f"{path} names {name}"
            assert family is not None or ".families." not in module, f"{path} imports {module}"
            assert name != "families" or path.name == "__init__.py", f"{path} imports {module}.families"
    assert own == 6
