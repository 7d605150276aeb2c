"""Functions compiled to lists of closures: attributes are parsed once, not once a thread block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlir import ir

from mlirfuse.errors import InterpreterError
from mlirfuse.interpreter.registry import RULES, Step
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.machine import Frame, ThreadBlock

if TYPE_CHECKING:
    from mlirfuse.interpreter.interpreter import Interpreter

# Terminators of a block, whose operands are the results for the enclosing op or the caller.
TERMINATORS = {
    "func.return", "gpu.return", "scf.yield", "scf.condition", "scf.forall.in_parallel", "linalg.yield",
    "vector.yield",
}  # fmt: skip


@dataclass(frozen=True)
class Program:
    """One block of IR.

    Attributes:
        arguments: slots of the block arguments.
        steps: each op's step, and whether it is a generator function.
        results: slots of the terminator's operands.
    """

    arguments: Sequence[int]
    steps: Sequence[tuple[Step, bool]]
    results: Sequence[int]

    def run(self, frame: Frame) -> Coroutine:
        """Executes the ops in order; suspends where they do."""
        for step, suspends in self.steps:
            if suspends:
                yield from step(frame)  # type: ignore[misc]
            else:
                step(frame)

    def call(self, frame: Frame, arguments: Sequence[Any]) -> Coroutine:
        """As `run`, with the block arguments set first."""
        for slot, value in zip(self.arguments, arguments, strict=True):
            frame.values[slot] = value
        return self.run(frame)

    def outcome(self, frame: Frame) -> list[Any]:
        """The terminator's operands, after `run`."""
        return gather(frame.values, self.results)


@dataclass(frozen=True)
class Function:
    """A compiled `func.func` or `gpu.func`.

    Attributes:
        op: the function.
        program: its body; the arguments are the function's, then a gpu.func's workgroup attributions.
        values: what a fresh frame starts from, constants filled in.
    """

    op: ir.Operation
    program: Program
    values: Sequence[Any]

    def frame(self, block: ThreadBlock) -> Frame:
        """A fresh activation for a block."""
        return Frame(list(self.values), block)


class FunctionCompiler:
    """Compiles one function; rules reach it as `site.compiler`.

    Attributes:
        interpreter: where symbols are looked up and kernels launched.
    """

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter
        self._slots: dict[ir.Value, int] = {}
        self._values: list[Any] = []

    def slot(self, value: ir.Value) -> int:
        """The slot of an SSA value, made on first sight."""
        slot = self._slots.get(value)
        if slot is None:
            slot = self._slots[value] = len(self._values)
            self._values.append(None)
        return slot

    def preset(self, slot: int, value: Any) -> None:
        """Fills a slot for the whole run: constants."""
        self._values[slot] = value

    def program(self, block: ir.Block | None) -> Program:
        """Compiles a block; None is an empty one. Raises `InterpreterError` naming an op that has no rule."""
        if block is None:
            return Program((), (), ())
        arguments = [self.slot(argument) for argument in block.arguments]
        steps: list[tuple[Step, bool]] = []
        results: list[int] = []
        for view in block.operations:
            op = view.operation
            if op.name in TERMINATORS:
                results = [self.slot(value) for value in op.operands]
                continue
            rule = RULES.get(op.name)
            if rule is None:
                raise InterpreterError(
                    f"no rule for op {op.name}",
                    where=op,
                    hint="add one to a module in mlirfuse/interpreter/rules",
                )
            step = rule.build(Site(op, self))
            if step is not None:
                steps.append((step, rule.suspends))
        return Program(arguments, tuple(steps), results)

    def function(self, op: ir.Operation) -> Function:
        """Compiles a function; raises `InterpreterError` if it has no body, or more than one block."""
        blocks = list(op.regions[0].blocks)
        if not blocks:
            raise InterpreterError("the function is only declared, and fuse.launch names no kernel", where=op)
        if len(blocks) > 1:
            raise InterpreterError(
                f"{op.name} has {len(blocks)} blocks; the interpreter runs structured control flow only",
                where=op,
            )
        program = self.program(blocks[0])
        return Function(op, program, tuple(self._values))
