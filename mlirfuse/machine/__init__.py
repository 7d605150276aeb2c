"""What a GPU takes for things: rates, latencies and costs of one chip as data, measured or from data sheets.

`mlirfuse.target` has an architecture's limits and instructions; a `MachineModel` has a device's speeds. The shipped
models are the JSON files in `data/`; `mlirfuse calibrate` measures one on the user's GPU (docs/machine.md).
"""

from __future__ import annotations

from mlirfuse.machine.lookup import machine_of, shipped_models
from mlirfuse.machine.model import MachineModel, Quantity, quantities

__all__ = ["MachineModel", "Quantity", "machine_of", "quantities", "shipped_models"]
