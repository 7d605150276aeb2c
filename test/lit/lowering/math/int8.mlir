// RUN: mlirfuse-opt --lower-int8 --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

// CHECK-LABEL: gpu.func @half(
// CHECK-SAME: %[[X:[a-z0-9]+]]: vector<8xi8>
// CHECK: %[[W:.*]] = vector.bitcast %[[X]] : vector<8xi8> to vector<2xi32>
// CHECK: %[[SIGNS:.*]] = arith.constant dense<-2139062144> : vector<2xi32>
// CHECK: %[[U:.*]] = arith.xori %[[W]], %[[SIGNS]]
// CHECK: %[[E:.*]]:2 = vector.to_elements %[[U]]
// CHECK: %[[HIGH:.*]] = arith.constant 1684300900 : i32
// CHECK: nvvm.prmt <default> %{{.*}}, %[[E]]#0, %[[HIGH]]
// CHECK-COUNT-3: nvvm.prmt
// CHECK: %[[N:.*]] = vector.bitcast %{{.*}} : vector<4xi32> to vector<8xf16>
// CHECK: %[[OFFSET:.*]] = arith.constant dense<1.152000e+03> : vector<8xf16>
// CHECK: %[[R:.*]] = arith.subf %[[N]], %[[OFFSET]]
// CHECK: vector.store %[[R]]
gpu.module @half {
  // expected-remark @below {{1 conversions of bytes are computed by permutations}}
  gpu.func @half(%x: vector<8xi8>, %y: memref<8xf16>) kernel {
    %c0 = arith.constant 0 : index
    %0 = arith.sitofp %x : vector<8xi8> to vector<8xf16>
    vector.store %0, %y[%c0] : memref<8xf16>, vector<8xf16>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @rounded(
// CHECK-COUNT-4: nvvm.prmt
// CHECK: %[[N:.*]] = vector.bitcast %{{.*}} : vector<4xi32> to vector<4xf32>
// CHECK: arith.constant dense<0x4B000080> : vector<4xf32>
// CHECK: %[[S:.*]] = arith.subf %[[N]]
// CHECK: arith.truncf %[[S]] : vector<4xf32> to vector<4xbf16>
gpu.module @rounded {
  // expected-remark @below {{1 conversions of bytes are computed by permutations}}
  gpu.func @rounded(%x: vector<4xi8>, %y: memref<4xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %0 = arith.sitofp %x : vector<4xi8> to vector<4xbf16>
    vector.store %0, %y[%c0] : memref<4xbf16>, vector<4xbf16>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @odd(
// CHECK-NOT: nvvm.prmt
// CHECK: arith.sitofp %{{.*}} : vector<2xi8> to vector<2xf16>
// CHECK: arith.sitofp %{{.*}} : i8 to f32
gpu.module @odd {
  // expected-remark @below {{2 conversions are of scalars, or of vectors that fill no 32-bit words}}
  gpu.func @odd(%x: vector<2xi8>, %z: i8, %y: memref<2xf16>, %v: memref<1xf32>) kernel {
    %c0 = arith.constant 0 : index
    %0 = arith.sitofp %x : vector<2xi8> to vector<2xf16>
    %1 = arith.sitofp %z : i8 to f32
    vector.store %0, %y[%c0] : memref<2xf16>, vector<2xf16>
    memref.store %1, %v[%c0] : memref<1xf32>
    gpu.return
  }
}
