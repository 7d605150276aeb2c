"""`fuse-transpose-operands`: transposes operand tiles of SIMT products that are contiguous along k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import vector

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect.attributes import UNDEFINED
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import defining_op, erase, ops_named
from mlirfuse.tiling.contractions.k_loop import feeds_contraction


@dataclass(frozen=True)
class FuseTransposeOperands(Pass):
    """Reads operands of SIMT products whose memory is contiguous along k with rows (or columns) as the last dimension.

    Requires tile programs with `transposed_operands` in their schedule's `contraction`, before `fuse-stage-operands`,
    whose slots then have k as their first dimension: the copies transpose element by element, and threads load a step's
    rows as vectors. Operands that the kernel computes stay as they are.

    ```mlir
    %a = vector.transfer_read %x[%m, %k], %pad : memref<?x512xf32>, vector<128x32xf32>
    %next = vector.contract {indexing_maps = [(m, n, k) -> (m, k), ...]} %a, %b, %sum
    ```
    becomes
    ```mlir
    %a = vector.transfer_read %x[%m, %k], %pad {permutation_map = (d0, d1) -> (d1, d0)}
      : memref<?x512xf32>, vector<32x128xf32>
    %next = vector.contract {indexing_maps = [(m, n, k) -> (k, m), ...]} %a, %b, %sum
    ```
    """

    name: ClassVar[str] = "fuse-transpose-operands"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in filter(is_tile_program, kernels(module)):
            schedule = schedule_of(kernel)
            if schedule is None or schedule.contraction is None:
                continue
            if not schedule.contraction.transposed_operands:
                remarks.declined(self, "scheduled without transposed operands", kernel)
                continue
            contracts = ops_named(kernel, "vector.contract")
            count = sum(_transpose(contract, number) for contract in contracts for number in (0, 1))
            if count:
                remarks.applied(self, f"{count} operand tile(s) with k as their first dimension", kernel)
            else:
                remarks.declined(self, "k is contiguous in no operand that is read from memory", kernel)


def _transpose(contract: ir.Operation, number: int) -> bool:
    """Transposes an operand of a contraction; returns whether there was something to transpose."""
    read = defining_op(contract.operands[number])
    maps = [attribute.value for attribute in contract.attributes["indexing_maps"]]
    loops, result = ([expr.position for expr in maps[n].results] for n in (number, 2))
    if read is None or read.name != "vector.transfer_read" or not feeds_contraction(read) or loops[-1] != len(result):
        return False
    if len(list(read.results[0].uses)) > 1:
        return False  # a product with itself
    outer = loops.index(result[number - 2])
    order = [*(d for d in range(len(loops)) if d != outer), outer]
    with ir.InsertionPoint(read), read.location:
        transposed = _read(read, order)
    read.results[0].replace_all_uses_with(transposed)
    erase(read)
    maps[number] = _permuted(maps[number], order)
    contract.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps])
    return True


def _read(read: ir.Operation, order: Sequence[int]) -> ir.Value:
    """The same read with the dimensions of its tile in another order."""
    buffer, *indices, padding = read.operands
    tile = ir.VectorType(read.results[0].type)
    in_bounds = read.attributes["in_bounds"]
    transposed = vector.TransferReadOp(
        ir.VectorType.get([tile.shape[d] for d in order], tile.element_type),
        buffer,
        indices,
        ir.AffineMapAttr.get(_permuted(read.attributes["permutation_map"].value, order)),
        padding,
        in_bounds=ir.ArrayAttr.get([in_bounds[d] for d in order]),
    )
    if UNDEFINED in read.attributes:
        apart = [order.index(d) for d in ir.DenseI64ArrayAttr(read.attributes[UNDEFINED])]
        transposed.operation.attributes[UNDEFINED] = ir.DenseI64ArrayAttr.get(apart)
    return transposed.result


def _permuted(affine_map: ir.AffineMap, order: Sequence[int]) -> ir.AffineMap:
    results = list(affine_map.results)
    return ir.AffineMap.get(affine_map.n_dims, affine_map.n_symbols, [results[d] for d in order])
