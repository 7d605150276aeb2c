"""`fuse-expand-moments`: where rows are walked in chunks, moments are two reductions again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from mlirfuse.analysis.kernels import body, is_tile_program, kernels
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.schedule.schedule import schedule_of

Scalar = Callable[[Sequence[ir.Value]], ir.Value]


@dataclass(frozen=True)
class FuseExpandMoments(Pass):
    """Replaces `fuse.moments` by a sum, and a sum of squared deviations from the mean that the first sum gives.

    Requires kernels on tensors with a schedule. Applies where the schedule walks rows in chunks: a walk that centres
    its squares needs the whole sum first, so two walks are needed whatever the op promises. Declines elsewhere.

    ```mlir
    %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>}
    ```
    becomes
    ```mlir
    %sum = linalg.generic ... reduce add (%x)
    %m2 = linalg.generic ... reduce add ((%x - %sum / n) * (%x - %sum / n))
    ```
    """

    name: ClassVar[str] = "fuse-expand-moments"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in kernels(module):
            if is_tile_program(kernel):
                continue
            found = [op for op in body(kernel) if op.name == "fuse.moments"]
            if not found or schedule_of(kernel).persistence == "registers":
                remarks.declined(self, "no moments, or rows that stay whole in registers", kernel)
                continue
            for op in found:
                _expand(op)
            remarks.applied(self, f"{len(found)} moments became two reductions each", kernel)


def _expand(op: ir.Operation) -> None:
    source = op.operands[0]
    source_type = ir.RankedTensorType(source.type)
    dims = list(ir.DenseI64ArrayAttr(op.attributes["dims"]))
    kept = [d for d in range(source_type.rank) if d not in dims]
    count = float(prod(source_type.get_dim_size(d) for d in dims))
    element = source_type.element_type
    with ir.InsertionPoint(op), op.location:
        sizes = [
            tensor.DimOp(source, arith.ConstantOp(ir.IndexType.get(), d).result).result
            for d in kept
            if source_type.is_dynamic_dim(d)
        ]
        zero = arith.ConstantOp(element, ir.FloatAttr.get(element, 0.0)).result

        def deviation(arguments: Sequence[ir.Value]) -> ir.Value:
            n = arith.ConstantOp(element, ir.FloatAttr.get(element, count)).result
            centred = arith.SubFOp(arguments[0], arith.DivFOp(arguments[1], n).result).result
            return arith.MulFOp(centred, centred).result

        result_type = op.results[0].type
        total = _sum(result_type, sizes, zero, [source], [None], kept, lambda arguments: arguments[0])
        squares = _sum(result_type, sizes, zero, [source, total], [None, kept], kept, deviation)
    op.results[0].replace_all_uses_with(total)
    op.results[1].replace_all_uses_with(squares)
    op.erase()


def _sum(
    result_type: ir.Type,
    sizes: Sequence[ir.Value],
    zero: ir.Value,
    inputs: Sequence[ir.Value],
    axes: Sequence[Sequence[int] | None],
    kept: Sequence[int],
    scalar: Scalar,
) -> ir.Value:
    """A `linalg.generic` that adds up `scalar` of its inputs' elements over the dimensions that are not kept."""
    rank = ir.RankedTensorType(inputs[0].type).rank
    loops = [ir.AffineExpr.get_dim(d) for d in range(rank)]
    maps = [ir.AffineMap.get(rank, 0, loops if a is None else [loops[d] for d in a]) for a in axes]
    maps.append(ir.AffineMap.get(rank, 0, [loops[d] for d in kept]))
    kinds = ["parallel" if d in kept else "reduction" for d in range(rank)]
    shaped = ir.RankedTensorType(result_type)
    empty = tensor.EmptyOp([*_extents(shaped, sizes)], shaped.element_type).result
    start = linalg.fill(zero, outs=[empty])
    generic = linalg.GenericOp(
        [result_type],
        list(inputs),
        [start],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
        ir.ArrayAttr.parse(f"[{', '.join(f'#linalg.iterator_type<{kind}>' for kind in kinds)}]"),
    )
    types = [ir.RankedTensorType(v.type).element_type for v in [*inputs, start]]
    block = generic.regions[0].blocks.append(*types, arg_locs=[generic.location] * len(types))
    with ir.InsertionPoint(block):
        *elements, accumulator = block.arguments
        linalg.YieldOp([arith.AddFOp(accumulator, scalar(elements)).result])
    return generic.results[0]


def _extents(shaped: ir.RankedTensorType, sizes: Sequence[ir.Value]) -> Sequence[int | ir.Value]:
    rest = iter(sizes)
    return [next(rest) if shaped.is_dynamic_dim(d) else shaped.get_dim_size(d) for d in range(shaped.rank)]
