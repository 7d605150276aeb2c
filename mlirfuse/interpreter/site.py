"""The view of an op that its rule gets: slots of operands and results, attributes, regions, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlir import ir

from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.source_locations import source_location

if TYPE_CHECKING:
    from mlirfuse.interpreter.program import FunctionCompiler, Program


class Site:
    """One op of a function that is being compiled; only `error` is used while the function runs.

    Attributes:
        op: the operation.
        name: the op's full name.
        operands: slots of the operands, in order.
        results: slots of the results, in order.
    """

    def __init__(self, op: ir.Operation, compiler: FunctionCompiler):
        self.op = op
        self.name: str = op.name
        self.operands = [compiler.slot(value) for value in op.operands]
        self.results = [compiler.slot(value) for value in op.results]
        self.compiler = compiler

    @property
    def location(self) -> str:
        """`file:line:column` of the user's line, or `unknown location`."""
        return source_location(self.op.location) or "unknown location"

    def attribute(self, name: str) -> ir.Attribute | None:
        """An attribute, or None if the op does not have it."""
        return self.op.attributes.get(name)

    def ints(self, name: str) -> list[int]:
        """An integer array attribute of any width; empty if the op does not have it."""
        attribute = self.attribute(name)
        return [] if attribute is None else int_array(attribute)

    def integer(self, name: str) -> int | None:
        """An integer attribute, or None if the op does not have it."""
        attribute = self.attribute(name)
        return None if attribute is None else ir.IntegerAttr(attribute).value

    def segments(self) -> list[list[int]]:
        """The operand slots, grouped by `operandSegmentSizes`."""
        groups, start = [], 0
        for size in self.ints("operandSegmentSizes"):
            groups.append(self.operands[start : start + size])
            start += size
        return groups

    def region(self, index: int) -> Program:
        """The program of a region of the op; raises `InterpreterError` if the region has more than one block."""
        region = self.op.regions[index]
        blocks = list(region.blocks)
        if len(blocks) > 1:
            raise InterpreterError(
                f"{self.name}: region {index} has {len(blocks)} blocks, one is allowed", where=self.op
            )
        return self.compiler.program(blocks[0] if blocks else None)

    def error(self, message: str, frame: Frame | None = None, lane: int | None = None) -> InterpreterError:
        """An error at this op; the message names the block of `frame` and the thread `lane`, if given."""
        who = ""
        if frame is not None:
            who = f"; block {frame.block.index}" + ("" if lane is None else f", thread {lane}")
        return InterpreterError(f"{self.name}: {message}{who}", where=self.op)


def int_array(attribute: ir.Attribute) -> list[int]:
    """The entries of a dense i32 or i64 array, or of an array of integers."""
    for kind in (ir.DenseI64ArrayAttr, ir.DenseI32ArrayAttr):
        if isinstance(attribute, kind):
            return list(kind(attribute))
    return [ir.IntegerAttr(entry).value for entry in ir.ArrayAttr(attribute)]


def gather(values: Sequence[Any], slots: Sequence[int]) -> list[Any]:
    """The values in those slots."""
    return [values[slot] for slot in slots]
