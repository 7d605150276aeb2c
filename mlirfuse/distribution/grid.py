"""The size of the grid: the bound of a tile program's loop over blocks, as an affine map that the launch evaluates."""

from __future__ import annotations

from mlir import ir

from mlirfuse.analysis.kernels import body, grid_least
from mlirfuse.analysis.memory.workspaces import RESIDENT
from mlirfuse.dialect.attributes import GRID, GRID_LEAST, GRID_OPERANDS
from mlirfuse.errors import PassError
from mlirfuse.support.rewriting import defining_op

RESIDENT_BLOCKS = "fuse.resident_blocks"


def set_grid(function: ir.Operation, kernel: ir.Operation, forall: ir.Operation, cluster: int) -> None:
    """Records the number of blocks, as a map over extents of arguments and the number of resident blocks."""
    grid, least, operands = _block_count(forall)
    arguments = list(kernel.regions[0].blocks[0].arguments)
    pairs = [_grid_operand(operand, arguments, forall) for operand in operands]
    for position, (argument, _) in enumerate(pairs):
        if argument == RESIDENT:  # counted in blocks; an iteration of the loop is a whole cluster
            blocks = ir.AffineExpr.get_symbol(position)
            grid = grid.replace(blocks, ir.AffineExpr.get_floor_div(blocks, cluster), 0, len(pairs))
    grid = ir.AffineMap.get(0, len(pairs), [result * cluster for result in grid.results])
    function.attributes[GRID] = ir.AffineMapAttr.get(grid)
    function.attributes[GRID_OPERANDS] = ir.DenseI64ArrayAttr.get([number for pair in pairs for number in pair])
    if any(least):
        function.attributes[GRID_LEAST] = ir.DenseI64ArrayAttr.get([count * cluster for count in least])


def _block_count(forall: ir.Operation) -> tuple[ir.AffineMap, list[int], list[ir.Value]]:
    """The bound of the loop over blocks: a map whose results' minimum is the bound, the least value of each result, and
    the operands of the map's symbols.
    """
    static = list(ir.DenseI64ArrayAttr(forall.attributes["staticUpperBound"]))
    if len(static) != 1:
        raise PassError(f"the loop over blocks must have one dimension, not {len(static)}", where=forall)
    if static[0] != ir.ShapedType.get_dynamic_size():
        return ir.AffineMap.get_constant(static[0]), [0], []
    bound = forall.operands[0]
    producer = defining_op(bound)
    if producer is None or producer.name not in ("affine.apply", "affine.min"):
        return ir.AffineMap.get(0, 1, [ir.AffineExpr.get_symbol(0)]), [0], [bound]
    bound_map, operands = _over_symbols(producer)
    results, least = list(bound_map.results), [0] * len(bound_map.results)
    for number, result in enumerate(results):
        operand = operands[result.position] if isinstance(result, ir.AffineSymbolExpr) else None
        most = defining_op(operand) if operand is not None else None
        if most is None or most.name != "affine.max":
            continue
        inner, symbols = _over_symbols(most, first=len(operands))
        constants = [r.value for r in inner.results if isinstance(r, ir.AffineConstantExpr)]
        others = [r for r in inner.results if not isinstance(r, ir.AffineConstantExpr)]
        if len(others) != 1:
            raise PassError(
                f"the number of blocks is the maximum of {len(others)} run-time numbers, one is allowed",
                where=most,
                hint="take the maximum of one number and constants",
            )
        results[number], least[number] = others[0], max(constants, default=0)
        operands = [*operands, *symbols]
    return _without_unused(ir.AffineMap.get(0, len(operands), results), least, operands)


def _over_symbols(op: ir.Operation, first: int = 0) -> tuple[ir.AffineMap, list[ir.Value]]:
    """An affine op's map with symbols only, numbered from `first` on, and the operands of these symbols."""
    found, operands = op.attributes["map"].value, list(op.operands)
    dims, symbols = operands[: found.n_dims], operands[found.n_dims :]
    count = first + len(operands)
    # From the last symbol to the first, so that no symbol gets the number of one that is still to be replaced.
    for position in reversed(range(len(symbols))):
        number = ir.AffineExpr.get_symbol(first + position)
        found = found.replace(ir.AffineExpr.get_symbol(position), number, len(dims), count)
    for position in range(len(dims)):
        number = ir.AffineExpr.get_symbol(first + len(symbols) + position)
        found = found.replace(ir.AffineExpr.get_dim(position), number, len(dims), count)
    return ir.AffineMap.get(0, count, list(found.results)), [*symbols, *dims]


def _without_unused(
    grid: ir.AffineMap, least: list[int], operands: list[ir.Value]
) -> tuple[ir.AffineMap, list[int], list[ir.Value]]:
    """The same map, minima and operands, without symbols that no result uses."""
    used = [n for n in range(len(operands)) if any(_has_symbol(result, n) for result in grid.results)]
    for position, number in enumerate(used):
        grid = grid.replace(
            ir.AffineExpr.get_symbol(number), ir.AffineExpr.get_symbol(position), 0, max(1, len(operands))
        )
    return ir.AffineMap.get(0, len(used), list(grid.results)), least, [operands[n] for n in used]


def _has_symbol(expr: ir.AffineExpr, number: int) -> bool:
    if isinstance(expr, ir.AffineBinaryExpr):
        return _has_symbol(expr.lhs, number) or _has_symbol(expr.rhs, number)
    return isinstance(expr, ir.AffineSymbolExpr) and expr.position == number


def _grid_operand(operand: ir.Value, arguments: list[ir.Value], forall: ir.Operation) -> tuple[int, int]:
    """(argument, dimension) of an extent; (-1, k) for the blocks that the device holds with k blocks an SM."""
    producer = defining_op(operand)
    if producer is not None and producer.name == RESIDENT_BLOCKS:
        return RESIDENT, ir.IntegerAttr(producer.attributes["per_sm"]).value
    if producer is None or producer.name != "memref.dim" or producer.operands[0] not in arguments:
        raise PassError(
            "the number of blocks depends on more than the extents of arguments",
            where=forall,
            hint=f"compute it from memref.dim of arguments, constants and {RESIDENT_BLOCKS}",
        )
    return arguments.index(producer.operands[0]), ir.IntegerAttr(
        producer.operands[1].owner.operation.attributes["value"]
    ).value


def device_bound(kernel: ir.Operation, forall: ir.Operation) -> ir.Operation | None:
    """The op that bounds the loop over blocks by what the device holds, known at launch only; None if there is none.

    Raises:
        PassError: `fuse.resident_blocks` has another use than that bound.
    """
    limits = [op for op in body(kernel) if op.name == RESIDENT_BLOCKS]
    if not limits:
        return None
    producer = defining_op(forall.operands[0]) if list(forall.operands) else None
    for limit in limits:
        users = [use.owner.operation for use in limit.results[0].uses]
        far = [use.owner.operation for user in users if is_least(user) for use in user.results[0].uses]
        users = [*far, *(user for user in users if not is_least(user))]
        if producer is None or (limit != producer and any(user != producer for user in users)):
            raise PassError(
                f"{RESIDENT_BLOCKS} has another use than the bound of the loop over blocks",
                where=limit,
                hint="inside the loop, use the loop's bound itself",
            )
    return producer


def is_least(op: ir.Operation) -> bool:
    """Whether an op is an `affine.max` of what the device holds and the fewest blocks that a kernel can do with."""
    makers = [defining_op(operand) for operand in op.operands] if op.name == "affine.max" else []
    return any(maker is not None and maker.name == RESIDENT_BLOCKS for maker in makers)


def constant_grid(function: ir.Operation) -> int | None:
    """The number of blocks of a `gpu.func`, if neither extents nor the device decide it; None otherwise."""
    if GRID not in function.attributes:
        return None
    counts = list(ir.AffineMapAttr(function.attributes[GRID]).value.results)
    if not all(isinstance(count, ir.AffineConstantExpr) for count in counts):
        return None
    return min(
        max(ir.AffineConstantExpr(count).value, least)
        for count, least in zip(counts, grid_least(function, len(counts)), strict=True)
    )
