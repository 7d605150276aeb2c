"""Functions and kernels of a module, and their attributes."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from math import prod

from mlir import ir

from mlirfuse.dialect.attributes import GRID_LEAST, KERNEL, LAUNCH, RESULT_EXTENTS
from mlirfuse.dialect.scatter import scatter_of
from mlirfuse.errors import IRError
from mlirfuse.support.rewriting import ops_named

BLOCK_SIZE, LEAST_BLOCKS = "known_block_size", "nvvm.minctasm"
"""Upstream's attributes of a `gpu.func`: the threads of its blocks, and how many of these an SM is to hold at least."""


def functions(module: ir.Operation) -> Iterator[ir.Operation]:
    """Every top-level `func.func`, in order."""
    for op in list(module.regions[0].blocks[0].operations):
        if op.operation.name == "func.func":
            yield op.operation


def host_functions(module: ir.Operation) -> list[ir.Operation]:
    """The functions of a module that have ops on tensors, and are no kernels."""
    return [f for f in functions(module) if KERNEL not in f.attributes and body(f) and not is_tile_program(f)]


def host_function(module: ir.Operation) -> ir.Operation:
    """The first function that is neither a kernel nor the declaration of one, which calls the kernels."""
    return next(f for f in functions(module) if KERNEL not in f.attributes and LAUNCH not in f.attributes)


def kernels(module: ir.Operation) -> Iterator[ir.Operation]:
    """Every `func.func` with the `fuse.kernel` attribute, in order."""
    return (f for f in functions(module) if KERNEL in f.attributes)


def gpu_kernels(module: ir.Operation) -> list[ir.Operation]:
    """Every `gpu.func` kernel of the module's `gpu.module`s, in order."""
    gpu_modules = [op for op in module.regions[0].blocks[0].operations if op.operation.name == "gpu.module"]
    inside = [op.operation for gpu_module in gpu_modules for op in gpu_module.regions[0].blocks[0].operations]
    return [op for op in inside if op.name == "gpu.func" and "gpu.kernel" in op.attributes]


def block_threads(kernel: ir.Operation) -> int:
    """Threads of a block of a `gpu.func`; 0 where that is not known."""
    return prod(ir.DenseI32ArrayAttr(kernel.attributes[BLOCK_SIZE])) if BLOCK_SIZE in kernel.attributes else 0


def least_resident_blocks(kernel: ir.Operation) -> int:
    """Blocks of a `gpu.func` that an SM is to hold at least; 0 where it does not say."""
    return ir.IntegerAttr(kernel.attributes[LEAST_BLOCKS]).value if LEAST_BLOCKS in kernel.attributes else 0


def is_tile_program(kernel: ir.Operation) -> bool:
    """Whether a kernel is a tile program, whose body has an `scf.forall` over blocks."""
    return bool(ops_named(kernel, "scf.forall"))


def symbol(function: ir.Operation) -> str:
    """The function's symbol name."""
    return ir.StringAttr(function.attributes["sym_name"]).value


def body(function: ir.Operation) -> list[ir.Operation]:
    """The ops of a function's entry block, in order; none for a declaration."""
    return [op.operation for block in list(function.regions[0].blocks)[:1] for op in block.operations]


def content(function: ir.Operation) -> bytes:
    """A digest of a function's IR without its name and locations: equal where analyses find the same."""
    written: str = function.get_asm(enable_debug_info=False, use_local_scope=True, assume_verified=True)
    return blake2b(written.replace(f"@{symbol(function)}(", "@(", 1).encode(), digest_size=16).digest()


def stored_values(kernel: ir.Operation) -> list[ir.Value]:
    """The values that a kernel on tensors stores for its results: of a `fuse.scatter` its sources."""
    stored: list[ir.Value] = []
    for value in body(kernel)[-1].operands:
        op = scatter_of(value)
        stored += [value] if op is None else list(op.operands)
    return stored


def result_sources(function: ir.Operation) -> list[tuple[int, int]]:
    """The (argument, dimension) pair of each dynamic extent of the results of a kernel on tensors, or its declaration.

    Raises:
        IRError: the number of pairs is not the number of dynamic extents; without the attribute there is no pair.
    """
    flat = (
        list(ir.DenseI64ArrayAttr(function.attributes[RESULT_EXTENTS])) if RESULT_EXTENTS in function.attributes else []
    )
    results = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
    dynamic = sum(type_.is_dynamic_dim(axis) for type_ in results for axis in range(type_.rank))
    if len(flat) != 2 * dynamic:
        raise IRError(
            f"the results of {symbol(function)} have {dynamic} dynamic extents, and {RESULT_EXTENTS} has "
            f"{len(flat) / 2:g} pairs",
            where=function,
            hint=f"{RESULT_EXTENTS} needs the number of an argument and a dimension for each dynamic extent",
        )
    return list(zip(flat[::2], flat[1::2], strict=True))


def argument_attributes(function: ir.Operation) -> list[dict[str, ir.Attribute]]:
    """The attributes of each argument, by name."""
    if "arg_attrs" not in function.attributes:
        # The block may have more arguments than there are attributes: workgroup attributions.
        count = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
        return [{} for _ in range(count)]
    return [{a.name: a.attr for a in ir.DictAttr(d)} for d in ir.ArrayAttr(function.attributes["arg_attrs"])]


def grid_least(function: ir.Operation, results: int) -> list[int]:
    """The least value of each result of a kernel's `fuse.grid`, which has `results` results (`fuse.grid_least`)."""
    if GRID_LEAST not in function.attributes:
        return [0] * results
    return list(ir.DenseI64ArrayAttr(function.attributes[GRID_LEAST]))
