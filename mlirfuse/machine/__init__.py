"""A `MachineModel` is a GPU's speeds as data: bandwidths, latencies, rates and costs, measured or from data sheets.

Limits and instructions of an architecture are in `mlirfuse.target`. `machine_of(target, device)` returns the model of a
device; shipped ones are files in `mlirfuse/machine/data/`, and `mlirfuse calibrate` measures one on the user's GPU.
"""

from __future__ import annotations

from mlirfuse.machine.lookup import machine_of, shipped_models
from mlirfuse.machine.model import MachineModel, Quantity, quantities

__all__ = ["MachineModel", "Quantity", "machine_of", "quantities", "shipped_models"]
