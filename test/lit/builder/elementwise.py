# RUN: %python %s | FileCheck %s
# ruff: noqa: T201

# Types inside the bodies: what rounds where.

from mlirfuse import builder as mf
from mlirfuse.compiler.context import make_context

half = mf.TensorSpec((8, 4), "float16")
context = make_context()


# CHECK-LABEL: func.func @transcendental
# CHECK:         arith.extf %{{.*}} : f16 to f32
# CHECK-NEXT:    math.exp %{{.*}} : f32
# CHECK-NEXT:    arith.truncf %{{.*}} : f32 to f16
def transcendental(x):
    return mf.exp(x)


print(mf.trace(transcendental, [half], context=context))


# A Python number is rounded to float16 first, then divided by in float32.
# CHECK-LABEL: func.func @quotient
# CHECK:         %[[A:.*]] = arith.extf %{{.*}} : f16 to f32
# CHECK-NEXT:    %[[C:.*]] = arith.constant 0.0999755859 : f32
# CHECK-NEXT:    %[[Q:.*]] = arith.divf %[[A]], %[[C]] : f32
# CHECK-NEXT:    arith.truncf %[[Q]] : f32 to f16
def quotient(x):
    return x / 0.1


print(mf.trace(quotient, [half], context=context))


# A run-time scalar is captured by the body and rounded there.
# CHECK-LABEL: func.func @scaled
# CHECK-SAME:    %[[ALPHA:[^:]*]]: f64 {fuse.name = "alpha"}
# CHECK:         linalg.generic
# CHECK:           %[[R:.*]] = arith.truncf %[[ALPHA]] : f64 to f16
# CHECK-NEXT:      arith.mulf %{{.*}}, %[[R]] : f16
def scaled(x, alpha):
    return x * alpha


print(mf.trace(scaled, [half, mf.ScalarSpec("float")], context=context))


# CHECK-LABEL: func.func @masked
# CHECK-SAME:    %[[X:[^:]*]]: tensor<8x4xf16>
# CHECK:         %[[MASK:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8x4xf16>) outs({{.*}} : tensor<8x4xi1>)
# CHECK:           arith.cmpf ogt, %{{.*}}, %{{.*}} : f16
# CHECK:         linalg.generic {{.*}} ins(%[[MASK]], %[[X]] :
# CHECK:           arith.select %{{.*}}, %{{.*}}, %{{.*}} : f16
def masked(x):
    return mf.where(x > 0, x, 0)


print(mf.trace(masked, [half], context=context))
