"""Which model a device or a target has: the first that there is in this order.

1. The user's calibrated file of the device, in the user's cache directory.
2. The shipped file that names the device.
3. A calibrated or a shipped file of the target's architecture and SMs.
4. Scaled to the target's SMs, a calibrated file of its architecture.
5. Scaled likewise, the architecture's generic file.

Compiling for a target without its device, as `fuse.target` names it by chip and SMs, takes the same steps without the
name. The environment variable `MLIRFUSE_MACHINES` names another directory of calibrated files, or is `off`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from mlirfuse.errors import TargetError
from mlirfuse.machine.files import MachineFile, read, shipped
from mlirfuse.machine.model import MachineModel
from mlirfuse.machine.scaling import scaled
from mlirfuse.support.user_cache import cache_path
from mlirfuse.target import Target, target_of

VARIABLE = "MLIRFUSE_MACHINES"
"""The environment variable that names another directory of calibrated files, or is `off`."""


def machines_path() -> Path | None:
    """The directory of the user's calibrated files; None where they are switched off."""
    return cache_path(VARIABLE, "machines")


def calibrated_path(device: str) -> Path | None:
    """The file of a device's calibrated model, which need not exist; None where such files are switched off.

    Args:
        device: the name that CUDA reports, such as `NVIDIA H200`.
    """
    folder = machines_path()
    return None if folder is None else folder / f"{file_stem(device)}.json"


def file_stem(device: str) -> str:
    """A device's name as a file's: `nvidia-h200`."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


def shipped_models() -> dict[str, MachineModel]:
    """The models that are part of mlirfuse, by the stem of their file."""
    return {stem: file.model for stem, file in shipped().items()}


def machine_of(target: str | Target | None = None, device: str | None = None) -> MachineModel:
    """The model to predict times with.

    The module's docstring has the order in which files are tried; the model's `sources` say what was taken.

    Args:
        target: the architecture; by default mlirfuse's default target.
        device: the name that CUDA reports for the device; None where only the target is known.

    Raises:
        TargetError: the target is not known, or a calibrated file is not valid.
    """
    return _machine_of(target_of(target), device, machines_path())


def shipped_model(target: Target, device: str | None = None) -> MachineModel:
    """What `machine_of` has without the user's calibrated files."""
    return _machine_of(target, device, None)


def forget() -> None:
    """Reads calibrated files again at the next `machine_of`."""
    _machine_of.cache_clear()
    _read.cache_clear()


@lru_cache(maxsize=64)
def _machine_of(target: Target, device: str | None, folder: Path | None) -> MachineModel:
    own = _calibrated(folder)
    known = [*own, *shipped().values()]
    fitting = [file for file in known if file.model.architecture == target.architecture]
    named = [file for file in fitting if device in file.devices]
    generic = [file for file in known if target.architecture in file.generic_for]
    same = [file for file in fitting if file.model.sms == target.sms]
    # Of several devices with as many SMs, the chip's generic one if it is among them.
    same.sort(key=lambda file: file not in own and file not in generic)
    for file in (*named, *same):
        return _for_target(file.model, target)
    for file in (*(file for file in fitting if file in own), *generic):
        return scaled(file.model, device or f"{target.chip} with {target.sms} SMs", target)
    raise TargetError(f"there is no machine model of {target.chip}", hint="run `mlirfuse calibrate` on such a device")


def _for_target(model: MachineModel, target: Target) -> MachineModel:
    if model.sms == target.sms:
        return model
    return scaled(model, f"{target.sms} SMs of {model.name}", target)


@lru_cache(maxsize=8)
def _read(path: Path) -> MachineFile:
    return read(path)


def _calibrated(folder: Path | None) -> list[MachineFile]:
    """The user's files, by name."""
    if folder is None or not folder.is_dir():
        return []
    return [_read(path) for path in sorted(folder.glob("*.json"))]
