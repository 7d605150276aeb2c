"""The instruction family of a contraction of tiles, which its attribute `fuse.instruction` names."""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect.attributes import INSTRUCTION
from mlirfuse.target.instructions import DEFAULT_FAMILY


def family_of(contract: ir.Operation) -> str:
    """The name of a `vector.contract`'s instruction family, registered or not; the default's where it has none."""
    attribute = contract.attributes.get(INSTRUCTION)
    return DEFAULT_FAMILY if attribute is None else ir.StringAttr(attribute).value
