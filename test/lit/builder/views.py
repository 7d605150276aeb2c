# RUN: %python %s | FileCheck %s
# ruff: noqa: E501, T201

# Shapes: expand and collapse, never a copy.

from mlirfuse import builder as mf
from mlirfuse.compiler.context import make_context

context = make_context()


# CHECK-LABEL: func.func @merge_and_split
# CHECK-SAME:    %[[X:[^:]*]]: tensor<?x?x64xf16>
# CHECK-DAG:     %[[B:.*]] = tensor.dim %[[X]], %c0
# CHECK-DAG:     %[[S:.*]] = tensor.dim %[[X]], %c1
# CHECK:         %[[FLAT:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2]] : tensor<?x?x64xf16> into tensor<?x64xf16>
# CHECK:         tensor.expand_shape %[[FLAT]] {{\[\[}}0, 1], [2, 3]] output_shape [%[[B]], %[[S]], 4, 16]
# CHECK-NOT:     linalg.generic
# CHECK:         return
def merge_and_split(x):
    batch, sequence, _ = x.shape
    return x.reshape(-1, 64).reshape(batch, sequence, 4, 16)


print(mf.trace(merge_and_split, [mf.TensorSpec(("b", "s", 64), "float16")], context=context))


# CHECK-LABEL: func.func @heads_first
# CHECK:         linalg.transpose {{.*}} permutation = [1, 0, 2]
def heads_first(x):
    return mf.permute_dims(x, (1, 0, 2))


print(mf.trace(heads_first, [mf.TensorSpec((8, 4, 16), "float16")], context=context))


# A strided argument says so; the index on the right adds a dimension that broadcasts.
# CHECK:         #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d0, 0)>
# CHECK-LABEL: func.func @columns
# CHECK-SAME:    tensor<8x4xf32> {fuse.align = 4 : i64, fuse.name = "x", fuse.strides = [1, "?"]}
# CHECK:         tensor.expand_shape {{.*}} : tensor<8xf32> into tensor<8x1xf32>
# CHECK:         linalg.generic {indexing_maps = [#{{.*}}, #[[COLUMN]], #{{.*}}]
def columns(x, y):
    return x + y[:, None]


specs = [mf.TensorSpec((8, 4), "float32", align=4, strides=(1, None)), mf.TensorSpec(8, "float32")]
print(mf.trace(columns, specs, context=context))
