# RUN: %python %s | FileCheck %s
# ruff: noqa: E501, T201

# LayerNorm with two fused adds: float16 adds round one by one, statistics are float32, nothing is broadcast in memory.

from mlirfuse import builder as mf
from mlirfuse.compiler.context import make_context


def layer_norm(x, b0, b1, w, b):
    h = (x + b0 + b1).astype("float32")
    mu = mf.mean(h, axis=-1, keepdims=True)
    var = mf.mean((h - mu) ** 2, axis=-1, keepdims=True)
    return ((h - mu) * mf.rsqrt(var + 1e-5) * w + b).astype(x.dtype)


rows, column = mf.TensorSpec((None, 4096), "float16"), mf.TensorSpec(4096, "float16")
print(mf.trace(layer_norm, [rows, rows, column, column, column], context=make_context()))

# CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
# CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d1)>
# CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
# CHECK-DAG: #[[KEEP:.*]] = affine_map<(d0, d1) -> (d0, 0)>

# CHECK-LABEL: func.func @layer_norm(
# CHECK-SAME:    %[[X:.*]]: tensor<?x4096xf16> {fuse.align = 16 : i64, fuse.name = "x"}
# CHECK-SAME:    %[[B0:.*]]: tensor<?x4096xf16> {fuse.align = 16 : i64, fuse.name = "b0"}
# CHECK-SAME:    %[[B1:.*]]: tensor<4096xf16> {fuse.align = 16 : i64, fuse.name = "b1"}
# CHECK-SAME:    -> tensor<?x4096xf16>
# CHECK-SAME:    fuse.equal_extents = [array<i64: 0, 0, 1, 0>]
# CHECK-SAME:    fuse.results = "single"

# CHECK:         %[[C0:.*]] = arith.constant 0 : index
# CHECK-NEXT:    %[[M:.*]] = tensor.dim %[[X]], %[[C0]]
# CHECK-NOT:     tensor.dim
# CHECK:         %[[SUM0:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[B0]] :
# CHECK:           arith.addf {{.*}} : f16
# CHECK:         %[[SUM1:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[COLUMN]], #[[ID]]]{{.*}} ins(%[[SUM0]], %[[B1]] :
# CHECK:           arith.addf {{.*}} : f16
# CHECK:         %[[H:.*]] = linalg.generic {{.*}} ins(%[[SUM1]] :
# CHECK:           arith.extf

# CHECK:         %[[EMPTY:.*]] = tensor.empty(%[[M]]) : tensor<?xf32>
# CHECK:         %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
# CHECK:         %[[INIT:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]] :
# CHECK:         %[[TOTAL:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[ROW]]], iterator_types = ["parallel", "reduction"]}
# CHECK-SAME:      ins(%[[H]] : tensor<?x4096xf32>) outs(%[[INIT]] : tensor<?xf32>)
# CHECK:         %[[MEAN:.*]] = linalg.generic {{.*}} ins(%[[TOTAL]] :
# CHECK:           %[[N:.*]] = arith.constant 4.096000e+03 : f32
# CHECK:           arith.divf %{{.*}}, %[[N]] : f32
# CHECK:         %[[MU:.*]] = tensor.expand_shape %[[MEAN]] {{\[\[}}0, 1]] output_shape [%[[M]], 1]

# CHECK:         %[[CENTRED:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[KEEP]], #[[ID]]]{{.*}} ins(%[[H]], %[[MU]] :
# CHECK:         linalg.generic {{.*}} ins(%[[CENTRED]] :
# CHECK-NEXT:    ^bb0(%[[E:.*]]: f32, %{{.*}}: f32):
# CHECK-NEXT:      arith.mulf %[[E]], %[[E]] : f32
# CHECK:         math.rsqrt
# CHECK:         arith.truncf {{.*}} : f32 to f16
# CHECK:         return {{.*}} : tensor<?x4096xf16>
