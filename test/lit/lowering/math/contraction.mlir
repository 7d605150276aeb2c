// RUN: mlirfuse-opt --lower-contraction --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-contraction --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX

gpu.module @sums {
  // A product that was marked before ops were duplicated is fused with its sum, also through vectors.
  // CHECK-LABEL: gpu.func @sums
  // CHECK: arith.mulf %[[A:[a-z0-9]+]], %[[A]] fastmath<contract> : vector<2xf32>
  // CHECK: arith.addf %{{.*}} fastmath<contract> : f32
  // CHECK: arith.subf %{{.*}} fastmath<contract> : f32
  // Existing flags are kept.
  // CHECK: arith.addf %{{.*}} fastmath<nnan> : f32
  // Other products, and half precision, round every operation.
  // CHECK: arith.mulf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : f32
  // CHECK: arith.addf %{{.*}} fastmath<contract> : f32
  // CHECK: arith.addf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : f16
  // PTX-LABEL: .entry sums(
  // PTX: fma.rn.f32
  // PTX: fma.rn.f32
  // PTX-NOT: fma
  // PTX: mul.rn.f32 %[[P:[a-z0-9]+]]
  // PTX-NOT: fma
  // PTX: add.f32 %{{.*}}, %[[P]]
  gpu.func @sums(%x: memref<?xf32>, %y: memref<?xf16>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %a = vector.load %x[%t] : memref<?xf32>, vector<2xf32>
    %b = memref.load %x[%c0] : memref<?xf32>
    %0 = arith.mulf %a, %a fastmath<contract> : vector<2xf32>
    %1:2 = vector.to_elements %0 : vector<2xf32>
    %2 = arith.addf %1#0, %b : f32
    %3 = arith.subf %2, %1#1 : f32
    %4 = arith.addf %3, %b fastmath<nnan> : f32
    %5 = arith.mulf %4, %b : f32
    %6 = arith.addf %5, %b : f32
    memref.store %6, %x[%t] : memref<?xf32>
    %h = memref.load %y[%t] : memref<?xf16>
    %7 = arith.addf %h, %h : f16
    memref.store %7, %y[%t] : memref<?xf16>
    gpu.return
  }
}

// -----

gpu.module @none {
  // CHECK-LABEL: gpu.func @none
  // CHECK: arith.mulf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : f32
  // CHECK: arith.addf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : f32
  // PTX-LABEL: .entry none(
  // PTX: mul.rn.f32
  // PTX: add.rn.f32
  // expected-remark @below {{the kernel has no product that may be contracted}}
  gpu.func @none(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %a = memref.load %x[%t] : memref<?xf32>
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %0, %a : f32
    memref.store %1, %x[%t] : memref<?xf32>
    gpu.return
  }
}
