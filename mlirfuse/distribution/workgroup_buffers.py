"""Arrays in the shared memory of a block."""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir


def add_workgroup_buffer(
    kernel: ir.Operation, memref_type: ir.Type, alignment: int = 16, marks: Mapping[str, ir.Attribute] | None = None
) -> ir.Value:
    """A new workgroup attribution of a `gpu.func`, aligned to `alignment` bytes, with the attributes `marks`."""
    count = kernel.attributes.get("workgroup_attributions", None)
    number = (ir.IntegerAttr(count).value if count is not None else 0) + 1
    i64 = ir.IntegerType.get_signless(64)
    kernel.attributes["workgroup_attributions"] = ir.IntegerAttr.get(i64, number)
    aligned = ir.DictAttr.get({"llvm.align": ir.IntegerAttr.get(i64, alignment), **(marks or {})})
    others = list(kernel.attributes["workgroup_attrib_attrs"]) if number > 1 else []
    kernel.attributes["workgroup_attrib_attrs"] = ir.ArrayAttr.get([*others, aligned])
    return kernel.regions[0].blocks[0].add_argument(memref_type, ir.Location.current)
