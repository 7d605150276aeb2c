"""The host function's side of passes that make kernels: its calls, and the order of its ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlir import ir
from mlir.dialects import func, ub

from mlirfuse.analysis.kernels import body, functions, is_tile_program, kernels, symbol
from mlirfuse.dialect.attributes import SPLIT_KERNELS
from mlirfuse.support.rewriting import defining_op, erase, makers, ops_named


def calls(function: ir.Operation) -> list[ir.Operation]:
    """The calls of a host function, in order."""
    return ops_named(function, "func.call")


def callee(call: ir.Operation) -> str:
    """The symbol that a call names."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def launches(module: ir.Operation, function: ir.Operation) -> dict[ir.Operation, ir.Operation]:
    """The calls of a host function, in order, with their kernels on tensors that no other call launches.

    A kernel that is launched elsewhere as well cannot be changed for one of its calls.
    """
    callers = Counter(callee(call) for host in functions(module) for call in calls(host))
    known = {symbol(kernel): kernel for kernel in kernels(module) if not is_tile_program(kernel)}
    return {
        call: known[callee(call)] for call in calls(function) if callee(call) in known and callers[callee(call)] == 1
    }


@contextmanager
def launched(kernel: ir.Operation, operands: Sequence[ir.Value | None], before: ir.Operation) -> Iterator[ir.Operation]:
    """A kernel on trial, with a call of it for the time being: what views of one array share is known by calls.

    Args:
        kernel: the kernel, which is erased in the end.
        operands: what the call passes; None for what nothing of the host makes yet.
        before: the host's op that the call stands in front of.
    """
    arguments = kernel.regions[0].blocks[0].arguments
    with ir.InsertionPoint(before), before.location:
        passed = [
            ub.PoisonOp(argument.type).result if operand is None else operand
            for argument, operand in zip(arguments, operands, strict=True)
        ]
        call = func.CallOp([value.type for value in body(kernel)[-1].operands], symbol(kernel), passed)
    try:
        yield kernel
    finally:
        erase(call)
        for value, operand in zip(passed, operands, strict=True):
            if operand is None:
                erase(value.owner)
        erase(kernel)


def launch_in(
    copy: ir.Operation, host: ir.Operation, kernel: ir.Operation
) -> tuple[ir.Operation, ir.Operation, ir.Operation]:
    """The host function, the call and the kernel of a launch in a copy of its module."""
    same = next(f for f in functions(copy) if symbol(f) == symbol(host))
    return next((same, call, each) for call, each in launches(copy, same).items() if symbol(each) == symbol(kernel))


def to_be_split(host: ir.Operation) -> set[str]:
    """The names of kernels that are to be several, whatever is predicted: as one they spilled."""
    found = ir.ArrayAttr(host.attributes[SPLIT_KERNELS]) if SPLIT_KERNELS in host.attributes else ()
    return {ir.StringAttr(name).value for name in found}


def depends_on(value: ir.Value, op: ir.Operation) -> bool:
    """Whether a value of a host function is computed from results of `op`."""
    return any(maker == op for maker in makers([value]))


def order_host_ops(function: ir.Operation) -> None:
    """Moves host ops behind the ops that compute their operands.

    A call is inserted before its first use, which may be a view in front of the ops of its other operands.
    """
    *ops, terminator = body(function)
    pending = dict.fromkeys(ops)

    def place(op: ir.Operation) -> None:
        del pending[op]
        for value in op.operands:
            owner = defining_op(value)
            if owner in pending:
                place(owner)
        op.move_before(terminator)

    while pending:
        place(next(iter(pending)))
