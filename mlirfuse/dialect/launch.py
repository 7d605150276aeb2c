"""`fuse.launch`: the host runs one kernel.

```mlir
%y = "fuse.launch"(%x, %w, %m) {kernel = @layer_norm_0, operandSegmentSizes = array<i32: 2, 1>}
       : (tensor<?x4096xf16>, tensor<4096xf16>, index) -> tensor<?x4096xf16>
```

`inputs` are the kernel's tensor and scalar arguments. `sizes` are the dynamic extents of the results, in result and
dimension order. The kernel's own type is free to change from stage to stage (tensors, then memrefs with the results
as trailing arguments, then pointers): the launch keeps value semantics throughout.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.dialect.base import VARIADIC, OpDefinition


def _verify(op: ir.Operation) -> str | None:
    if not isinstance(op.attributes["kernel"], ir.FlatSymbolRefAttr):
        return "kernel must be a symbol"
    dynamic = sum(ir.ShapedType(r.type).shape.count(ir.ShapedType.get_dynamic_size()) for r in op.results)
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[1]
    return None if dynamic == sizes else f"has {sizes} sizes for {dynamic} dynamic result extents"


DEFINITION = OpDefinition(
    "launch",
    operands=(("inputs", VARIADIC), ("sizes", VARIADIC)),
    results=(("outputs", VARIADIC),),
    attributes=("kernel",),
    verify=_verify,
)


def launch(
    kernel: str, inputs: Sequence[ir.Value], sizes: Sequence[ir.Value], result_types: Sequence[ir.Type]
) -> ir.Operation:
    """Builds a launch of the kernel of that symbol name at the current insertion point."""
    return ir.Operation.create(
        DEFINITION.full_name,
        results=list(result_types),
        operands=[*inputs, *sizes],
        attributes={
            "kernel": ir.FlatSymbolRefAttr.get(kernel),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(sizes)]),
        },
    )
