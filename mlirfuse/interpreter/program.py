"""Functions compiled to lists of closures, so that attributes are parsed once and not for each thread block."""

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
        steps: the step of each op, and whether the step is a generator function.
        results: slots of the terminator's operands.
    """

    arguments: Sequence[int]
    steps: Sequence[tuple[Step, bool]]
    results: Sequence[int]

    def run(self, frame: Frame) -> Coroutine:
        """Executes the ops in order, and yields what their steps yield."""
        for step, suspends in self.steps:
            if suspends:
                yield from step(frame)  # type: ignore[misc]
            else:
                step(frame)

    def call(self, frame: Frame, arguments: Sequence[Any]) -> Coroutine:
        """Sets the block arguments, and runs the block."""
        for slot, value in zip(self.arguments, arguments, strict=True):
            frame.values[slot] = value
        return self.run(frame)

    def outcome(self, frame: Frame) -> list[Any]:
        """The values of the terminator's operands after `run`."""
        return gather(frame.values, self.results)


@dataclass(frozen=True)
class Function:
    """A compiled `func.func` or `gpu.func`.

    Attributes:
        op: the function.
        program: the body; its arguments are the function's arguments, then the workgroup attributions of a `gpu.func`.
        values: initial values of a frame's slots: constants are set, all others are None.
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
        interpreter: the interpreter, which looks up symbols and launches kernels.
    """

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter
        self._slots: dict[ir.Value, int] = {}
        self._values: list[Any] = []

    def slot(self, value: ir.Value) -> int:
        """The slot of an SSA value, allocated at the first call."""
        slot = self._slots.get(value)
        if slot is None:
            slot = self._slots[value] = len(self._values)
            self._values.append(None)
        return slot

    def preset(self, slot: int, value: Any) -> None:
        """Sets the initial value of a slot, for constants."""
        self._values[slot] = value

    def program(self, block: ir.Block | None) -> Program:
        """Compiles a block, None for an empty one; raises `InterpreterError` for an op without a rule."""
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
            raise InterpreterError(
                "the function is only declared, and its fuse.launch names no kernel",
                where=op,
                hint="give the function a body, or name the kernel that implements it",
            )
        if len(blocks) > 1:
            raise InterpreterError(
                f"{op.name} has {len(blocks)} blocks; the interpreter runs structured control flow only",
                where=op,
            )
        program = self.program(blocks[0])
        return Function(op, program, tuple(self._values))
