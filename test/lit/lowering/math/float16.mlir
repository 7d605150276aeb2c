// RUN: mlirfuse-opt --lower-float16 --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-float16 --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX

// LLVM would round separately each half that is widened again.
// CHECK-LABEL: gpu.func @pairs(
// CHECK: %[[X:.*]] = vector.load
// CHECK: %[[N:.*]]:4 = vector.to_elements %[[X]] : vector<4xf32>
// CHECK: %[[A:.*]] = nvvm.convert.f32x2.to.f16x2 %[[N]]#1, %[[N]]#0 {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xf16>
// CHECK: %[[B:.*]] = nvvm.convert.f32x2.to.f16x2 %[[N]]#3, %[[N]]#2 {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xf16>
// CHECK: %[[L:.*]]:2 = vector.to_elements %[[A]]
// CHECK: %[[H:.*]]:2 = vector.to_elements %[[B]]
// CHECK: %[[R:.*]] = vector.from_elements %[[L]]#0, %[[L]]#1, %[[H]]#0, %[[H]]#1 : vector<4xf16>
// CHECK: vector.store %[[R]]
// PTX-LABEL: .entry pairs(
// PTX-NOT: cvt.rn.f16.f32
// PTX-COUNT-2: cvt.rn.f16x2.f32
// PTX-NOT: cvt.rn
// PTX: ret
gpu.module @pairs {
  // expected-remark @below {{1 casts to float16 convert pairs}}
  gpu.func @pairs(%x: memref<4xf32>, %y: memref<4xf16>,
                  %z: memref<4xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %d = arith.constant 0 : i64
    %s = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
    %w = nvvm.wgmma.mma_async %d, %d, %s, #nvvm.shape<m = 64, n = 8, k = 16>,
      D [<f32>, #nvvm.wgmma_scale_out<zero>], A [<f16>, #nvvm.wgmma_scale_in<one>, <row>],
      B [<f16>, #nvvm.wgmma_scale_in<one>, <col>]
      : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
    %0 = vector.load %x[%c0] {alignment = 16 : i64} : memref<4xf32>, vector<4xf32>
    %1 = arith.truncf %0 : vector<4xf32> to vector<4xf16>
    vector.store %1, %y[%c0] {alignment = 8 : i64} : memref<4xf16>, vector<4xf16>
    %2 = arith.extf %1 : vector<4xf16> to vector<4xf32>
    vector.store %2, %z[%c0] {alignment = 16 : i64} : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// Without wgmma nothing is serialised.
// CHECK-LABEL: gpu.func @none(
// CHECK-NOT: nvvm.convert
// CHECK: arith.truncf %{{.*}} : vector<4xf32> to vector<4xf16>
// PTX-LABEL: .entry none(
// PTX-COUNT-4: cvt.rn.f16.f32
gpu.module @none {
  // expected-remark @below {{the kernel has no wgmma, which could be serialised by casts to float16}}
  gpu.func @none(%x: memref<4xf32>, %y: memref<4xf16>,
                 %z: memref<4xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %0 = vector.load %x[%c0] {alignment = 16 : i64} : memref<4xf32>, vector<4xf32>
    %1 = arith.truncf %0 : vector<4xf32> to vector<4xf16>
    vector.store %1, %y[%c0] {alignment = 8 : i64} : memref<4xf16>, vector<4xf16>
    %2 = arith.extf %1 : vector<4xf16> to vector<4xf32>
    vector.store %2, %z[%c0] {alignment = 16 : i64} : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// Scalars, odd numbers of elements and other types are left alone, and so are ops that LLVM computes in float16: a product
// of halves, one with a constant, and a select of a half. The sum has an operand of single precision.
// CHECK-LABEL: gpu.func @others(
// CHECK-NOT: nvvm.convert
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: arith.truncf %{{.*}} : vector<3xf32> to vector<3xf16>
// CHECK: arith.truncf %{{.*}} : vector<2xf64> to vector<2xf16>
// CHECK: arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: arith.truncf %[[P]]
// CHECK: %[[Q:.*]] = arith.mulf
// CHECK: arith.truncf %[[Q]]
// CHECK: %[[S:.*]] = arith.select
// CHECK: arith.truncf %[[S]]
// CHECK: %[[T:.*]] = arith.addf
// CHECK-NOT: arith.truncf
// CHECK: nvvm.convert.f32x2.to.f16x2
// PTX-LABEL: .entry others(
// PTX: mul.rn.f16x2
gpu.module @others {
  // expected-remark @below {{1 casts to float16 convert pairs}}
  // expected-remark @below {{2 casts to float16 are of scalars or odd vectors}}
  // expected-remark @below {{3 casts are left to LLVM, which narrows the rounded ops to float16}}
  gpu.func @others(%a: memref<8xf32>, %b: memref<8xf64>, %c: memref<8xf16>, %y: memref<64xf16>, %z: memref<8xbf16>,
                   %p: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %c32 = arith.constant 32 : index
    %c40 = arith.constant 40 : index
    %c48 = arith.constant 48 : index
    %half = arith.constant dense<0.5> : vector<2xf32>
    %d = arith.constant 0 : i64
    %s = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
    %w = nvvm.wgmma.mma_async %d, %d, %s, #nvvm.shape<m = 64, n = 8, k = 16>,
      D [<f32>, #nvvm.wgmma_scale_out<zero>], A [<f16>, #nvvm.wgmma_scale_in<one>, <row>],
      B [<f16>, #nvvm.wgmma_scale_in<one>, <col>]
      : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
    %0 = memref.load %a[%c0] : memref<8xf32>
    %1 = vector.load %a[%c0] : memref<8xf32>, vector<3xf32>
    %2 = vector.load %b[%c0] : memref<8xf64>, vector<2xf64>
    %3 = vector.load %a[%c0] {alignment = 8 : i64} : memref<8xf32>, vector<2xf32>
    %4 = vector.load %c[%c0] {alignment = 4 : i64} : memref<8xf16>, vector<2xf16>
    %5 = arith.extf %4 : vector<2xf16> to vector<2xf32>
    %6 = arith.truncf %0 : f32 to f16
    %7 = arith.truncf %1 : vector<3xf32> to vector<3xf16>
    %8 = arith.truncf %2 : vector<2xf64> to vector<2xf16>
    %9 = arith.truncf %3 : vector<2xf32> to vector<2xbf16>
    %10 = arith.mulf %5, %5 : vector<2xf32>
    %11 = arith.truncf %10 : vector<2xf32> to vector<2xf16>
    %12 = arith.mulf %5, %half : vector<2xf32>
    %13 = arith.truncf %12 : vector<2xf32> to vector<2xf16>
    %14 = arith.select %p, %5, %3 : vector<2xf32>
    %15 = arith.truncf %14 : vector<2xf32> to vector<2xf16>
    %16 = arith.addf %5, %3 : vector<2xf32>
    %17 = arith.truncf %16 : vector<2xf32> to vector<2xf16>
    memref.store %6, %y[%c0] : memref<64xf16>
    vector.store %7, %y[%c8] : memref<64xf16>, vector<3xf16>
    vector.store %8, %y[%c16] : memref<64xf16>, vector<2xf16>
    vector.store %9, %z[%c0] : memref<8xbf16>, vector<2xbf16>
    vector.store %11, %y[%c24] {alignment = 4 : i64} : memref<64xf16>, vector<2xf16>
    vector.store %13, %y[%c32] {alignment = 4 : i64} : memref<64xf16>, vector<2xf16>
    vector.store %15, %y[%c40] {alignment = 4 : i64} : memref<64xf16>, vector<2xf16>
    vector.store %17, %y[%c48] {alignment = 4 : i64} : memref<64xf16>, vector<2xf16>
    gpu.return
  }
}
