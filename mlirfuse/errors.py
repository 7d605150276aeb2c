"""Every error that mlirfuse raises on purpose. Each says what was asked, what is wrong, where, and what to do.

`MlirFuseError` is the base; anything else that escapes from the package is a bug.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mlirfuse.source_locations import source_location

if TYPE_CHECKING:
    from mlir import ir


class MlirFuseError(Exception):
    """Base of all errors that mlirfuse raises on purpose.

    Args:
        message: what was asked and what is wrong with it, on one line.
        where: the place of the error: an op, a value or a location, named by its `file:line:column`, or a text such
            as an argument's name, a pipeline position or `file:line`.
        hint: what the user can do about it.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | ir.Operation | ir.OpView | ir.Value | ir.Location | None = None,
        hint: str | None = None,
    ):
        self.message = message
        # The text alone is kept: an error may outlive the IR.
        self.where: str | None = (
            where if where is None or isinstance(where, str) else source_location(getattr(where, "location", where))
        )
        self.hint = hint
        super().__init__(self.__str__())

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text


@contextmanager
def errors_at(op: ir.Operation) -> Iterator[None]:
    """Context in which errors without a place, as of functions that know no IR, get the place of an op."""
    try:
        yield
    except MlirFuseError as error:
        if error.where is None:
            error.where = source_location(op.location)
            error.args = (str(error),)
        raise


class TraceError(MlirFuseError):
    """The Python function cannot be traced: an unsupported operation or control flow that depends on data."""


class ShapeError(TraceError):
    """Shapes do not broadcast, an axis is out of range, or a reshape changes the number of elements."""


class DTypeError(TraceError):
    """An operation got a dtype that it does not take, or a dtype that mlirfuse does not know."""


class ArgumentError(MlirFuseError):
    """A call's arguments do not fit: wrong count, rank, dtype, device, or an array that is no array."""


class TargetError(MlirFuseError):
    """An architecture that is not known, or one that lacks what was asked of it."""


class PipelineError(MlirFuseError):
    """A textual pass pipeline does not parse, or names a pass or an option that does not exist."""


class IRError(MlirFuseError):
    """A piece of IR does not parse, does not verify, or is not what a tool expects."""


class PassError(MlirFuseError):
    """IR violates a pass's precondition, or an option or a schedule asks for something illegal."""


class ScheduleError(PassError):
    """A schedule that was asked for is not legal for the kernel or the target."""


class SharedMemoryError(PassError):
    """A kernel needs more shared memory than a block of the target may have.

    Attributes:
        kernel: its name.
    """

    kernel: str


class UnreadExtentError(PassError):
    """Nothing that a kernel reads has one of its dynamic extents; with that extent static it may compile.

    Attributes:
        sources: (argument, dimension) pairs of the function's arguments that have the extent.
    """

    sources: tuple[tuple[int, int], ...]


class CompileError(MlirFuseError):
    """PTX could not be produced or was refused by ptxas."""


class RuntimeLaunchError(MlirFuseError):
    """No GPU, no CuPy, or a launch that the driver refused."""


class InterpreterError(MlirFuseError):
    """The interpreter has no rule for an op, or a kernel violates one of the interpreter's checks."""


class MiscompilationWarning(UserWarning):
    """The only compiler that is installed is known to compile some programs wrongly."""
