"""A model is a JSON file; reading checks each field's name, unit and range.

A file has `name`, `devices` (names that CUDA reports for such devices), `chip`, `sms`, and `quantities`: by name, the
`value`, the `unit` and the `source`, which is `measured` with a date and a device, `data sheet`, or `estimate`. It may
have `generic_for`, architectures whose devices without a file take it, scaled to their SMs, and `like`: the stem of
another shipped file. What a file leaves out is that file's, scaled by SMs and clock, and its source says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from mlirfuse.errors import TargetError
from mlirfuse.machine.model import QUANTITIES, UNITS, MachineModel, Quantity
from mlirfuse.machine.scaling import scaled
from mlirfuse.target import Target, target_of

_KEYS = {"name", "devices", "chip", "sms", "quantities"}
_OPTIONAL_KEYS = {"generic_for", "like"}
_HINT = "delete the file, or run `mlirfuse calibrate` again"


@dataclass(frozen=True)
class MachineFile:
    """A file's model, and for which devices it is.

    Attributes:
        model: the model.
        devices: names that CUDA reports for such devices.
        generic_for: architectures, such as `sm_90`, whose devices without a file take it, scaled.
        like: the stem of the shipped file that has what this one leaves out; None where it is complete.
    """

    model: MachineModel
    devices: tuple[str, ...]
    generic_for: tuple[str, ...] = ()
    like: str | None = None


@cache
def shipped() -> Mapping[str, MachineFile]:
    """The files that are part of mlirfuse, by stem."""
    found = (path for path in _data().iterdir() if path.name.endswith(".json"))
    return {path.name.removesuffix(".json"): _shipped(path.name) for path in sorted(found, key=lambda path: path.name)}


def _data() -> Traversable:
    return resources.files("mlirfuse.machine").joinpath("data")


@cache
def _shipped(name: str) -> MachineFile:
    path = _data().joinpath(name)
    return parse(path.read_text(), str(path))


def read(path: Path) -> MachineFile:
    """The model of a file.

    Raises:
        TargetError: a key is missing or unknown, or a quantity is missing, unknown, of another unit or out of range.
        OSError: the file cannot be read.
    """
    return parse(path.read_text(), str(path))


def parse(text: str, where: str) -> MachineFile:
    """The model of a file's text; raises `TargetError` as `read` does.

    Args:
        text: of the file.
        where: its name, for errors.
    """
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise TargetError(f"not a machine model: {error}", where=where, hint=_HINT) from None
    if not isinstance(plain, dict) or not plain.keys() >= _KEYS or plain.keys() - _KEYS - _OPTIONAL_KEYS:
        keys = ", ".join(sorted(_KEYS))
        raise TargetError(f"not a machine model: it must have {keys}", where=where, hint=_HINT)
    for key, kind in (("name", str), ("chip", str), ("sms", int), ("devices", list), ("quantities", dict)):
        if not isinstance(plain[key], kind) or isinstance(plain[key], bool):
            raise TargetError(f"{key} is {plain[key]!r}, which is no {kind.__name__}", where=where, hint=_HINT)
    target = _target(plain, where)
    values, sources = _values(plain["quantities"], where)
    model = _model(plain, target, values, sources, where)
    return MachineFile(model, tuple(plain["devices"]), tuple(plain.get("generic_for", ())), plain.get("like"))


def _target(plain: dict[str, Any], where: str) -> Target:
    try:
        return target_of(plain["chip"]).with_sms(plain["sms"])
    except TargetError as error:
        raise TargetError(error.message, where=where, hint=error.hint) from None


def _model(
    plain: dict[str, Any], target: Target, values: dict[str, Any], sources: dict[str, str], where: str
) -> MachineModel:
    like = plain.get("like")
    if like is None:
        if missing := QUANTITIES.keys() - values.keys():
            raise TargetError(f"it lacks {', '.join(sorted(missing))}", where=where, hint=_HINT)
        return MachineModel(name=plain["name"], chip=target.chip, sms=target.sms, **values, sources=sources)
    if like not in shipped_names():
        raise TargetError(f"like is {like!r}", where=where, hint=f"one of {', '.join(shipped_names())}")
    base = scaled(_shipped(f"{like}.json").model, plain["name"], target, values.get("clock"))
    return replace(base, **values, sources={**base.sources, **sources})


def shipped_names() -> list[str]:
    """The stems of the files that are part of mlirfuse."""
    return sorted(path.name.removesuffix(".json") for path in _data().iterdir() if path.name.endswith(".json"))


def _values(plain: dict[str, Any], where: str) -> tuple[dict[str, float], dict[str, str]]:
    """The quantities of a file by name, and their sources; checks each."""
    values, sources = {}, {}
    for name, entry in plain.items():
        quantity = QUANTITIES.get(name)
        if quantity is None:
            raise TargetError(f"unknown quantity {name!r}", where=where, hint=f"known: {', '.join(QUANTITIES)}")
        if not isinstance(entry, dict) or entry.keys() != {"value", "unit", "source"}:
            raise TargetError(f"{name} must have value, unit and source", where=where, hint=_HINT)
        if entry["unit"] != quantity.unit:
            wanted = f"{quantity.unit} ({UNITS[quantity.unit]})"
            raise TargetError(f"{name} is in {entry['unit']!r}", where=where, hint=f"give it in {wanted}")
        values[name] = in_range(quantity, entry["value"], where)
        sources[name] = str(entry["source"])
    return values, sources


def in_range(quantity: Quantity, value: object, where: str) -> float:
    """A quantity's value; raises `TargetError` where it is no number, or cannot be true.

    Args:
        quantity: the quantity.
        value: its value.
        where: where the value is from, for the error.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and (quantity.low <= value <= quantity.high or (value == 0 and quantity.is_optional)):  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    allowed = f"{quantity.low:g} to {quantity.high:g} {quantity.unit}" + (" or 0" if quantity.is_optional else "")
    raise TargetError(f"{quantity.name} is {value!r}", where=where, hint=f"it must be {allowed}")


def to_text(model: MachineModel, devices: tuple[str, ...], generic_for: tuple[str, ...] = ()) -> str:
    """The text of a file, one quantity a line.

    Args:
        model: the model.
        devices: names that CUDA reports for such devices.
        generic_for: architectures, such as `sm_90`, whose devices without a file take it, scaled.
    """
    lines = ["{", f' "name": {json.dumps(model.name)},', f' "devices": {json.dumps(list(devices))},']
    if generic_for:
        lines.append(f' "generic_for": {json.dumps(list(generic_for))},')
    lines += [f' "chip": {json.dumps(model.chip)},', f' "sms": {model.sms},', ' "quantities": {']
    entries = []
    for name, quantity in QUANTITIES.items():
        value = getattr(model, name)
        is_count = quantity.unit in ("B", "SM")
        entry = {"value": value if is_count else float(f"{value:.4g}"), "unit": quantity.unit}
        entries.append(f'  "{name}": {json.dumps({**entry, "source": model.sources.get(name, "")})}')
    return "\n".join([*lines, ",\n".join(entries), " }", "}", ""])
