"""What is predicted of a contraction as it is, with arrays in another order, and as a reduction over rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from mlir import ir

from mlirfuse.analysis.contractions.array_orders import ArrayOrders
from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.dialect.attributes import BY_ROWS
from mlirfuse.dialect.module_target import device_of_module, target_of_module
from mlirfuse.machine.lookup import machine_of
from mlirfuse.passes.fusion.permuted_product import PermutedProduct, microseconds
from mlirfuse.schedule.predict.work import US
from mlirfuse.support.dtypes import bytes_of


@dataclass(frozen=True)
class OrderChoice:
    """Predicted times of a contraction, in microseconds, each with what is copied or computed in another order for it.

    Attributes:
        in_place: as it is.
        permuted: with its arrays in the best of all other orders; infinite if no order was looked at.
        by_rows: as a reduction over rows, or a lower bound that is no less than another time, or than the limit.
        orders: the best of the other orders; None if no order was looked at.
    """

    in_place: float
    permuted: float
    by_rows: float
    orders: ArrayOrders | None

    @property
    def microseconds(self) -> float:
        """The least of the times."""
        return min(self.in_place, self.permuted, self.by_rows)


def order_choice(product: PermutedProduct, *, limit: float = inf, waits: bool = False) -> OrderChoice:
    """Schedules a contraction in all orders of its arrays that may be the best.

    Args:
        product: the contraction.
        limit: microseconds of what the contraction is compared with: only lower times are exact.
        waits: whether the contraction waits for another kernel in any order, whose launch hides none of its own.
    """
    kernel = product.kernel
    least = _least_microseconds(kernel, waits=waits)
    if least >= limit:
        return OrderChoice(inf, inf, inf, None)
    in_place = microseconds(kernel, waits=waits)
    limit = min(limit, in_place)
    orders, permuted = None, inf
    # Looking for the schedule of a reduction takes long; it waits for a product that may be faster than its bound.
    by_rows, is_bound = microseconds(kernel, reduce_by_rows, limit=0.0), True
    for each in product.orders():
        apart = product.apart(each)
        if is_bound and by_rows < min(apart, limit, permuted):
            by_rows, is_bound = microseconds(kernel, reduce_by_rows, waits=waits), False
        if apart + least >= min(limit, permuted, inf if is_bound else by_rows):
            break
        if (total := product.total(each, waits=waits)) < permuted:
            orders, permuted = each, total
    if is_bound and by_rows < min(limit, permuted):
        by_rows = microseconds(kernel, reduce_by_rows, waits=waits)
    return OrderChoice(in_place, permuted, by_rows, orders)


def reduce_by_rows(kernel: ir.Operation) -> None:
    """Makes a kernel's contraction a reduction over rows."""
    contraction = contraction_in(*kernel_space(kernel))
    assert contraction is not None  # the caller's kernels have one
    contraction.structure.op.attributes[BY_ROWS] = ir.UnitAttr.get()


def _least_microseconds(kernel: ir.Operation, *, waits: bool) -> float:
    """Microseconds in which all arrays of static extents move once: a lower bound in every order."""
    module = kernel.parent.operation
    machine = machine_of(target_of_module(module), device_of_module(module))
    type_ = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    every = [each for each in (*type_.inputs, *type_.results) if isinstance(each, ir.RankedTensorType)]
    arrays = [each for each in every if each.has_static_shape]
    moving = sum(map(bytes_of, arrays)) / machine.dram_bandwidth
    return US * (moving + (machine.graph_launch if waits else 0.0))
