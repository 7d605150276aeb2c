"""Passes for tests of the machinery around passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mlir import ir

from mlirfuse.errors import PassError
from mlirfuse.passmanager.base import Pass, Remarks


@dataclass(frozen=True)
class ToyMark(Pass):
    """Sets the attribute `fuse.mark` on every function, and remarks on each."""

    name: ClassVar[str] = "toy-mark"

    value: int = 1

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        with module.context:
            for op in module.regions[0].blocks[0].operations:
                op.attributes["fuse.mark"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.value)
                remarks.applied(self, f"marked with {self.value}", op)


@dataclass(frozen=True)
class ToyReject(Pass):
    """Raises `PassError` at the first function, or a bug's exception."""

    name: ClassVar[str] = "toy-reject"

    bug: bool = False

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        op = module.regions[0].blocks[0].operations[0]
        if self.bug:
            raise ZeroDivisionError("a bug")
        raise PassError("functions are not allowed", where=op)


@dataclass(frozen=True)
class ToyBreak(Pass):
    """Leaves a fuse.moments whose dims do not verify."""

    name: ClassVar[str] = "toy-break"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name == "fuse.moments":
                op.attributes["dims"] = ir.DenseI64ArrayAttr.get([7], module.context)
            return ir.WalkResult.ADVANCE

        module.walk(visit)


@dataclass(frozen=True)
class ToyOptions(Pass):
    """Has an option of every type."""

    name: ClassVar[str] = "toy-options"

    count: int = 3
    fast_math: bool = False
    scale: float = 1.0
    label: str = "auto"
    dims: tuple[int, ...] = ()
    limit: int | None = None
    alias: str | None = None
    memory: Literal["registers", "shared"] = "registers"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        remarks.declined(self, "does nothing")


@dataclass(frozen=True)
class ToyRequired(Pass):
    """Has an option that must be given and be positive."""

    name: ClassVar[str] = "toy-required"

    size: int

    def __post_init__(self) -> None:
        if self.size <= 0:
            raise ValueError(f"size {self.size} is not positive")

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        remarks.declined(self, "does nothing")


ENTRIES: dict[str, type[Pass]] = {cls.name: cls for cls in (ToyMark, ToyReject, ToyBreak, ToyOptions, ToyRequired)}
