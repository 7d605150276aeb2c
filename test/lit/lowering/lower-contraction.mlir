// RUN: mlirfuse-opt --lower-contraction --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

gpu.module @wide {
  // CHECK-LABEL: gpu.func @wide
  gpu.func @wide(%a: f32, %b: vector<2xf64>, %h: f16, %out: memref<4xf16>) kernel {
    %c0 = arith.constant 0 : index
    // CHECK: arith.mulf %{{.*}} fastmath<contract> : f32
    %0 = arith.mulf %a, %a : f32
    // CHECK: arith.addf %{{.*}} fastmath<contract> : f32
    %1 = arith.addf %0, %a : f32
    // CHECK: arith.subf %{{.*}} fastmath<contract> : vector<2xf64>
    %2 = arith.subf %b, %b : vector<2xf64>
    // Flags that are there already are kept.
    // CHECK: arith.addf %{{.*}} fastmath<nnan> : f32
    %3 = arith.addf %1, %a fastmath<nnan> : f32
    // Half precision rounds every operation, also a product that is rounded to it.
    // CHECK: arith.addf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : f16
    %4 = arith.addf %h, %h : f16
    // CHECK: arith.mulf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : f32
    %5 = arith.mulf %3, %a : f32
    %6 = arith.truncf %5 : f32 to f16
    %7 = arith.addf %6, %4 : f16
    memref.store %7, %out[%c0] : memref<4xf16>
    gpu.return
  }
}

// -----

gpu.module @none {
  // expected-remark @below {{no sum or product in single or double precision}}
  gpu.func @none(%h: f16, %out: memref<4xf16>) kernel {
    %c0 = arith.constant 0 : index
    %0 = arith.addf %h, %h : f16
    memref.store %0, %out[%c0] : memref<4xf16>
    gpu.return
  }
}
