// RUN: mlirfuse-opt --lower-math %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --target=sm_100a --lower-math %s | FileCheck %s --check-prefix=PACKED
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-math --emit=ptx %s | FileCheck %s --check-prefix=PTX

gpu.module @roots {
  // CHECK-LABEL: gpu.func @roots
  // PTX-LABEL: .entry roots(
  gpu.func @roots(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf64>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %w = memref.load %z[%t] : memref<?xf64>
    // Of tiny numbers a multiple's; zero and infinity are their own roots.
    // CHECK: %[[TINY:.*]] = arith.cmpf olt
    // CHECK: arith.select %[[TINY]]
    // CHECK: %[[SCALED:.*]] = arith.mulf
    // CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"(%[[SCALED]]) : (f32) -> f32
    // CHECK-COUNT-2: arith.cmpf oeq, %[[SCALED]]
    // CHECK: arith.select %[[TINY]]
    // PTX: rsqrt.approx.ftz.f32
    // PTX-NOT: sqrt.rn.f32
    %exact = math.sqrt %v : f32
    // Another root starts from numbers that are known not to be tiny.
    // CHECK: math.absf
    // CHECK-NOT: arith.cmpf olt
    // CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"
    // CHECK: arith.cmpf oeq
    // CHECK-NOT: arith.cmpf
    %one = arith.constant 1.0 : f32
    %size = math.absf %v : f32
    %more = arith.addf %size, %one : f32
    %bounded = math.sqrt %more : f32
    memref.store %bounded, %x[%t] : memref<?xf32>
    // CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.*}}) : (f64) -> f64
    // PTX: sqrt.rn.f64
    %wide = math.sqrt %w : f64
    memref.store %wide, %z[%t] : memref<?xf64>
    // CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.*}}) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32
    // PTX: sqrt.approx.f32
    %fast = math.sqrt %exact fastmath<afn> : f32
    // Division is exact with no help.
    // PTX: div.rn.f32
    %c3 = arith.constant 3.0 : f32
    %third = arith.divf %fast, %c3 : f32
    memref.store %third, %y[%t] : memref<?xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @others
  // CHECK: math.exp
  // PTX-LABEL: .entry others(
  // PTX: ex2.approx.ftz.f32
  // PTX-NOT: call
  gpu.func @others(%x: memref<?xf32>, %y: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %e = math.exp %v : f32
    memref.store %e, %y[%t] : memref<?xf32>
    gpu.return
  }
}

gpu.module @products {
  // A product of single or double precision calls no function of libdevice. Where instructions could multiply pairs, it
  // is of an element.
  // CHECK-LABEL: gpu.func @products
  // PACKED-LABEL: gpu.func @products
  // CHECK: llvm.intr.fma(%{{.*}}, %{{.*}}, %{{.*}}) : (vector<2xf32>, vector<2xf32>, vector<2xf32>) -> vector<2xf32>
  // PACKED-COUNT-2: llvm.intr.fma(%{{.*}}, %{{.*}}, %{{.*}}) : (f32, f32, f32) -> f32
  // CHECK: llvm.intr.fma(%{{.*}}, %{{.*}}, %{{.*}}) : (f64, f64, f64) -> f64
  // CHECK: math.fma %{{.*}} : f16
  // PTX-LABEL: .entry products(
  // PTX: fma.rn.f32
  // PTX: fma.rn.f64
  gpu.func @products(%x: memref<64xf32>, %y: memref<64xf64>, %z: memref<64xf16>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = vector.load %x[%t] : memref<64xf32>, vector<2xf32>
    %p = math.fma %v, %v, %v : vector<2xf32>
    vector.store %p, %x[%t] : memref<64xf32>, vector<2xf32>
    %w = memref.load %y[%t] : memref<64xf64>
    %q = math.fma %w, %w, %w : f64
    memref.store %q, %y[%t] : memref<64xf64>
    %h = memref.load %z[%t] : memref<64xf16>
    %r = math.fma %h, %h, %h : f16
    memref.store %r, %z[%t] : memref<64xf16>
    gpu.return
  }
}

gpu.module @extremes {
  // Of doubles, the sign of the difference selects, and a comparison finds NaN; a constant is compared with, and a zero
  // that is the larger one wins. Single precision has `max.NaN`.
  // CHECK-LABEL: gpu.func @extremes
  // CHECK: %[[V:.*]] = memref.load %{{.*}} : memref<64xf64>
  // CHECK: %[[LESS:.*]] = arith.cmpf ole, %[[V]], %[[ZERO:.*]] : f64
  // CHECK: %[[M:.*]] = arith.select %[[LESS]], %[[ZERO]], %[[V]] : f64
  // CHECK: %[[MORE:.*]] = arith.cmpf ogt, %[[M]], %[[ONE:.*]] : f64
  // CHECK: %[[N:.*]] = arith.select %[[MORE]], %[[ONE]], %[[M]] : f64
  // CHECK: %[[D:.*]] = arith.subf %[[N]], %[[V]] : f64
  // CHECK: %[[BITS:.*]] = arith.bitcast %[[D]] : f64 to i64
  // CHECK: %[[NEGATIVE:.*]] = arith.cmpi slt, %[[BITS]], %{{.*}} : i64
  // CHECK: %[[NONE:.*]] = arith.cmpf uno, %[[V]], %[[N]] : f64
  // CHECK: %[[EITHER:.*]] = arith.select %[[NEGATIVE]], %[[V]], %[[N]] : f64
  // CHECK: arith.select %[[NONE]], %{{.*}}, %[[EITHER]] : f64
  // CHECK: arith.maximumf %{{.*}} : f32
  // PTX-LABEL: .entry extremes(
  // PTX-NOT: {{max|min}}.f64
  gpu.func @extremes(%x: memref<64xf64>, %y: memref<64xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %zero = arith.constant 0.0 : f64
    %one = arith.constant 1.0 : f64
    %single = arith.constant 0.0 : f32
    %v = memref.load %x[%t] : memref<64xf64>
    %m = arith.maximumf %v, %zero : f64
    %n = arith.minimumf %m, %one : f64
    %o = arith.maximumf %v, %n : f64
    memref.store %o, %x[%t] : memref<64xf64>
    %w = memref.load %y[%t] : memref<64xf32>
    %p = arith.maximumf %w, %single : f32
    memref.store %p, %y[%t] : memref<64xf32>
    gpu.return
  }
}
