"""What the user, or a call, asks for, as attributes of the host function that passes read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir

from mlirfuse.dialect.attributes import GRID_REDUCTION, MIX_ORDER, SCHEDULES
from mlirfuse.dialect.copies import COPIED_RESULTS
from mlirfuse.schedule.schedule import Schedule


def set_requests(
    module: ir.Module,
    schedules: Mapping[str, Schedule],
    mix_order: str,
    grid_reduction: str,
    copies: Sequence[int],
) -> None:
    """Attaches the requests of the user, and of a call, to the host function.

    Args:
        module: the traced function.
        schedules: by kernel name.
        mix_order: `auto`, `fused` or `split`.
        grid_reduction: the second stage of grid reductions, or `auto`.
        copies: the results that must be arrays of their own.
    """
    if schedules:
        _set_schedules(module, schedules)
    if mix_order != "auto":
        _set_mix_order(module, mix_order)
    if grid_reduction != "auto":
        _set_grid_reduction(module, grid_reduction)
    if copies:
        _set_copied_results(module, copies)


def _set_schedules(module: ir.Module, schedules: Mapping[str, Schedule]) -> None:
    """Attaches the user's schedules, by kernel name, to the host function, where `fuse-segment` reads them."""
    with module.context, ir.Location.unknown():
        attribute = ir.DictAttr.get({name: schedule.attribute() for name, schedule in schedules.items()})
        module.body.operations[0].attributes[SCHEDULES] = attribute


def _set_mix_order(module: ir.Module, request: str) -> None:
    """Sets the attribute by which `fuse-mix-order-reduction` gets the user's choice, `fused` or `split`."""
    with module.context:
        module.body.operations[0].attributes[MIX_ORDER] = ir.StringAttr.get(request)


def _set_copied_results(module: ir.Module, results: Sequence[int]) -> None:
    """Sets the attribute by which `fuse-copy-results` makes results arrays of their own."""
    with module.context:
        module.body.operations[0].attributes[COPIED_RESULTS] = ir.DenseI64ArrayAttr.get(list(results))


def _set_grid_reduction(module: ir.Module, request: str) -> None:
    """Sets the attribute by which `fuse-assign-schedule` combines the partials of grid reductions."""
    with module.context:
        module.body.operations[0].attributes[GRID_REDUCTION] = ir.StringAttr.get(request)
