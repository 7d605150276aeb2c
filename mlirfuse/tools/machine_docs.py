"""The text of `docs/machine.md`: quantities of a `MachineModel`, how each is measured, and the shipped models."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from mlirfuse import machine
from mlirfuse.machine import files, lookup
from mlirfuse.machine.files import MachineFile, shipped
from mlirfuse.machine.model import QUANTITIES, UNITS, Quantity
from mlirfuse.tools import calibration
from mlirfuse.tools.calibration.table import BENCHMARKS

_NOTICE = "<!-- Written by `make docs` from `mlirfuse/machine` and `mlirfuse/tools/calibration`. -->"

_SCOPES = {"device": "device", "sm": "one SM", "fixed": ""}


def machine_markdown() -> str:
    """The reference of machine models."""
    sections = [_NOTICE, "# Machine models", _text(machine)]
    sections += [
        "## Quantities",
        _units(),
        _table(("quantity", "unit", "of", "meaning", "how it is measured"), _rows()),
    ]
    sections += ["Two more follow from these:", _derived()]
    sections += [
        "## Calibration",
        _text(calibration),
        "## Files",
        _text(files),
        "## Which model is taken",
        _text(lookup),
    ]
    header = ("file", "device", "chip", "SMs", "measured", "like", "generic for")
    sections += ["## Shipped models", _table(header, map(_device, shipped().items()))]
    return "\n\n".join(sections) + "\n"


def _text(module: object) -> str:
    return inspect.cleandoc(module.__doc__ or "")


def _units() -> str:
    units = ", ".join(f"`{unit}` is {meaning}" for unit, meaning in UNITS.items())
    return (
        f"In SI units: {units}. 0 stands for what a device does not have. Where a model is scaled to another device, "
        "the rates of a whole device grow with its SMs, and those of an SM with the clock."
    )


def _rows() -> Iterable[tuple[str, ...]]:
    how = {name: benchmark.how for benchmark in BENCHMARKS for name in benchmark.measures}
    for quantity in QUANTITIES.values():
        yield (f"`{quantity.name}`", quantity.unit, _scope(quantity), quantity.meaning, how[quantity.name])


def _scope(quantity: Quantity) -> str:
    return _SCOPES[quantity.scope]


def _derived() -> str:
    properties = ("dram_bytes_in_flight", "l2_bytes_in_flight")
    return "\n".join(f"- `{name}`: {_first_line(getattr(machine.MachineModel, name))}" for name in properties)


def _first_line(member: object) -> str:
    text = inspect.getdoc(member) or ""
    return text[:1].lower() + text[1:].rstrip(".")


def _device(entry: tuple[str, MachineFile]) -> tuple[str, ...]:
    stem, file = entry
    measured = sum(source.startswith("measured") for source in file.model.sources.values())
    chips = " ".join(f"`{chip}`" for chip in file.generic_for)
    model = file.model
    return (f"`{stem}.json`", model.name, f"`{model.chip}`", str(model.sms), str(measured), file.like or "", chips)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(cell.replace('|', '') for cell in row)} |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])
