// RUN: mlirfuse-opt --lower-float8 --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

gpu.module @widen [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @widen(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: vector<4xf8E4M3FN>
  // CHECK: %[[P:.*]] = vector.extract_strided_slice %[[X]] {offsets = [2], sizes = [2], strides = [1]}
  // CHECK: %[[B:.*]] = vector.bitcast %[[P]] : vector<2xf8E4M3FN> to vector<2xi8>
  // CHECK: nvvm.convert.f8x2.to.f16x2 %[[B]] : vector<2xi8>(f8E4M3FN) -> vector<2xf16>
  // CHECK: %[[W:.*]] = vector.from_elements {{.*}} : vector<4xf16>
  // CHECK: arith.extf %[[W]] : vector<4xf16> to vector<4xf32>
  gpu.func @widen(%x: vector<4xf8E4M3FN>, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %w = arith.extf %x : vector<4xf8E4M3FN> to vector<4xf32>
    vector.store %w, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @scalar [#nvvm.target<chip = "sm_90a">] {
  // bf16 is cast through f32; a scalar is paired with itself.
  // CHECK-LABEL: gpu.func @scalar(
  // CHECK: nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E5M2) -> vector<2xf16>
  // CHECK: %[[F:.*]] = arith.extf %{{.*}} : vector<1xf16> to vector<1xf32>
  // CHECK: %[[H:.*]] = arith.truncf %[[F]] : vector<1xf32> to vector<1xbf16>
  // CHECK: vector.extract %[[H]][0] : bf16 from vector<1xbf16>
  gpu.func @scalar(%x: f8E5M2, %out: memref<4xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %w = arith.extf %x : f8E5M2 to bf16
    memref.store %w, %out[%c0] : memref<4xbf16>
    gpu.return
  }
}

// -----

gpu.module @narrow [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @narrow(
  // CHECK: %[[E:.*]]:2 = vector.to_elements %{{.*}} : vector<2xf32>
  // CHECK: %[[W:.*]] = nvvm.convert.f32x2.to.f8x2 %[[E]]#1, %[[E]]#0 {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16(f8E4M3FN)
  // CHECK: vector.bitcast %{{.*}} : vector<2xi16> to vector<4xf8E4M3FN>
  // CHECK: vector.extract_strided_slice {{.*}} {offsets = [0], sizes = [3], strides = [1]}
  // CHECK: nvvm.convert.f16x2.to.f8x2 %{{.*}} : vector<2xf16> -> i16(f8E5M2)
  // CHECK: arith.extf %{{.*}} : vector<2xbf16> to vector<2xf32>
  // CHECK: nvvm.convert.f32x2.to.f8x2
  gpu.func @narrow(%x: vector<3xf32>, %h: vector<2xf16>, %b: vector<2xbf16>,
                   %o: memref<4xf8E4M3FN>, %p: memref<4xf8E5M2>) kernel {
    %c0 = arith.constant 0 : index
    %n = arith.truncf %x : vector<3xf32> to vector<3xf8E4M3FN>
    vector.store %n, %o[%c0] : memref<4xf8E4M3FN>, vector<3xf8E4M3FN>
    %m = arith.truncf %h : vector<2xf16> to vector<2xf8E5M2>
    vector.store %m, %p[%c0] : memref<4xf8E5M2>, vector<2xf8E5M2>
    %k = arith.truncf %b : vector<2xbf16> to vector<2xf8E4M3FN>
    vector.store %k, %o[%c0] : memref<4xf8E4M3FN>, vector<2xf8E4M3FN>
    gpu.return
  }
}

// -----

gpu.module @others [#nvvm.target<chip = "sm_80">] {
  // Other casts are left to upstream, and float8 data may be copied on any target.
  // CHECK-LABEL: gpu.func @others(
  // CHECK: arith.extf %{{.*}} : f16 to f32
  // CHECK-NOT: nvvm.convert
  gpu.func @others(%x: f16, %b: memref<4xf8E4M3FN>, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %w = arith.extf %x : f16 to f32
    memref.store %w, %out[%c0] : memref<4xf32>
    %v = memref.load %b[%c0] : memref<4xf8E4M3FN>
    memref.store %v, %b[%c1] : memref<4xf8E4M3FN>
    gpu.return
  }
}

// -----

gpu.module @old [#nvvm.target<chip = "sm_80">] {
  gpu.func @old(%x: f8E4M3FN, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{sm_80 cannot convert float8_e4m3fn}}
    %w = arith.extf %x : f8E4M3FN to f32
    memref.store %w, %out[%c0] : memref<4xf32>
    gpu.return
  }
}

// -----

gpu.module @twice [#nvvm.target<chip = "sm_90a">] {
  gpu.func @twice(%x: f64, %out: memref<4xf8E5M2>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{f64 cannot be cast to f8E5M2 at once}}
    %w = arith.truncf %x : f64 to f8E5M2
    memref.store %w, %out[%c0] : memref<4xf8E5M2>
    gpu.return
  }
}

// -----

gpu.module @integers [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @integers(
  // CHECK: %[[F:.*]] = arith.sitofp %{{.*}} : vector<2xi32> to vector<2xf32>
  // CHECK: vector.to_elements
  // CHECK: nvvm.convert.f32x2.to.f8x2
  gpu.func @integers(%x: vector<2xi32>, %o: memref<4xf8E4M3FN>) kernel {
    %c0 = arith.constant 0 : index
    %n = arith.sitofp %x : vector<2xi32> to vector<2xf8E4M3FN>
    vector.store %n, %o[%c0] : memref<4xf8E4M3FN>, vector<2xf8E4M3FN>
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
gpu.module @matrices [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @matrices(
  // CHECK: %[[P:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<3>
  // CHECK: %[[M:.*]] = nvvm.ldmatrix %[[P]] {{.*}}num = 4 : i32{{.*}} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  // CHECK: llvm.extractvalue %[[M]][3]
  // CHECK: vector.bitcast %{{.*}} : vector<4xi32> to vector<16xf8E4M3FN>
  gpu.func @matrices(%i: index, %out: memref<16xf8E4M3FN>) workgroup(%s : memref<16x80xf8E4M3FN, #shared>) kernel {
    %c0 = arith.constant 0 : index
    %m = nvgpu.ldmatrix %s[%i, %c0] {numTiles = 4 : i32, transpose = false} : memref<16x80xf8E4M3FN, #shared> -> vector<4x4xf8E4M3FN>
    %v = vector.shape_cast %m : vector<4x4xf8E4M3FN> to vector<16xf8E4M3FN>
    vector.store %v, %out[%c0] : memref<16xf8E4M3FN>, vector<16xf8E4M3FN>
    gpu.return
  }
}
