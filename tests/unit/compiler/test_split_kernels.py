"""Kernels whose fast schedules spill are split where that is predicted to be faster; an assembler says what the test
wants.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

import mlirfuse as mf
from mlirfuse.analysis.kernels import host_function
from mlirfuse.compiler.compile import Compiled, Lowered
from mlirfuse.compiler.feedback import without_spills
from mlirfuse.compiler.split_kernels import _lacking, _microseconds, _split, with_split_kernels
from mlirfuse.dialect.attributes import SPLIT_KERNELS
from mlirfuse.errors import CompileError
from tests.unit.compiler.test_feedback import Assembler

ROWS, COLUMNS = 12500, 256
SPILLS = [112, 104, 96, 88, 80, 72, 64]
"""Bytes that the schedules of a kernel spill, in the order in which they are tried: the last of them least."""


def standardised(x: Any) -> Any:
    """Of columns so long that a cluster's registers hold few of them."""
    centred = mf.maximum(x, 0) - mf.sum(mf.exp(x), axis=0, keepdims=True)
    return centred / mf.sqrt(mf.mean(centred * centred, axis=0, keepdims=True))


def lowered(rows: int = ROWS) -> Lowered:
    return mf.fuse(standardised, target="sm_90a").lower(mf.TensorSpec((rows, COLUMNS), mf.float32))


def compiled_with(function: Lowered, assembler: Assembler) -> tuple[Compiled, Compiled]:
    """What it is compiled to before slow kernels are split, and after."""

    def compile_(each: Lowered) -> Compiled:
        return without_spills(each._compile, assembler)

    found = compile_(function)
    return found, with_split_kernels(function, found, compile_)


def test_a_kernel_whose_fast_schedules_spill_is_split() -> None:
    """Two kernels that do not spill take longer than what one would, but not than it does."""
    before, after = compiled_with(lowered(), Assembler({"standardised_0_kernel": SPILLS}))
    assert list(before.schedules) == ["standardised_0"]
    assert "standardised_0_reductions" in after.schedules
    assert (
        before.predicted().microseconds
        < after.predicted().microseconds
        < _microseconds(before.predicted(), _lacking(before))
    )
    assert "standardised_0_reductions" in after.as_text("tile")


def test_without_spills_a_kernel_stays_whole() -> None:
    before, after = compiled_with(lowered(), Assembler({}))
    assert after is before


def test_a_kernel_that_has_as_fast_a_schedule_stays_whole() -> None:
    before, after = compiled_with(lowered(64), Assembler({"standardised_0_kernel": [24]}))
    assert before.attempts
    assert after is before


def test_a_kernel_whose_parts_cannot_be_compiled_stays_whole() -> None:
    function = lowered()
    found = without_spills(function._compile, Assembler({"standardised_0_kernel": SPILLS}))

    def refuse(each: Lowered) -> Compiled:
        raise CompileError("the assembler refuses it")

    after = with_split_kernels(function, found, refuse)
    assert after.program == found.program
    assert "standardised_0 spills, and cannot be compiled as several kernels: the assembler refuses it" in (
        after.explain()
    )


def sums_of_both_orders(x: Any, y: Any) -> Any:
    """Of rows, and of columns: one kernel, unless it spills."""
    z = mf.exp(x) * y
    return z / mf.sum(z, axis=1, keepdims=True), mf.sum(z, axis=0)


def test_what_was_merged_for_both_orders_is_split() -> None:
    spec = mf.TensorSpec((8192, 4096), mf.float32)
    function = mf.fuse(sums_of_both_orders, target="sm_90a").lower(spec, spec)
    spills = Assembler({"sums_of_both_orders_0_kernel": SPILLS})
    before, after = compiled_with(function, spills)
    assert list(before.schedules) == ["sums_of_both_orders_0"]
    assert len(after.schedules) > 1


def summed_last(x: Any) -> Any:
    """Nothing waits for the sum, which could read what is returned."""
    y = mf.exp(x).astype(mf.float16)
    return y, mf.sum(y.astype(mf.float32))


def test_what_is_reduced_last_is_stored_first() -> None:
    function = mf.fuse(summed_last, target="sm_90a").lower(mf.TensorSpec((1027, 16383), mf.float32))
    before, after = compiled_with(function, Assembler({"summed_last_0_kernel": SPILLS}))
    assert list(before.schedules) == ["summed_last_0"]
    assert "summed_last_0_values" in after.schedules


def test_of_a_kernel_of_parts_the_whole_is_split() -> None:
    """It is split before its parts are, by passes that know it as a whole."""
    module = _split(lowered(), ["standardised_0_parts", "standardised_1"]).module
    known = ir.ArrayAttr(host_function(module.operation).attributes[SPLIT_KERNELS])
    names = [ir.StringAttr(name).value for name in known]
    assert names == ["standardised_0_parts", "standardised_1", "standardised_0"]
