// The whole way from the gpu stage to PTX, for every architecture.
//
// RUN: mlirfuse-opt --lower-attach-target --target=sm_80 --lower-kernel-abi --lower-shared-memory --lower-streaming-accesses --lower-math --emit=ptx %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --target=sm_90a --lower-kernel-abi --lower-shared-memory --lower-streaming-accesses --lower-math --emit=ptx %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --target=sm_120 --lower-kernel-abi --lower-shared-memory --lower-streaming-accesses --lower-math --emit=ptx %s | FileCheck %s

gpu.module @scale {
  // CHECK: .extern .shared .align 16 .b8 scale_shared[];
  // CHECK: .visible .entry scale(
  // CHECK: .maxntid 128, 1, 1
  // CHECK-NOT: .local
  // CHECK: ld.global.cg.nc.v4.b32
  // CHECK: st.shared.v4.b32
  // CHECK: bar.sync 0;
  // CHECK: ld.shared.v4.b32
  // CHECK: mul.rn.f32
  // CHECK: cvt.rn.f16x2.f32
  // CHECK: st.global.cs.v4.b32
  // CHECK-NOT: .local
  // CHECK: ret;
  gpu.func @scale(%x: memref<?x1024xf16> {fuse.align = 16 : i64}, %y: memref<?x1024xf16>, %factor: f64)
      workgroup(%tile : memref<32768xf16, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %t = gpu.thread_id x
    %row = gpu.block_id x
    %rows = memref.dim %x, %c0 : memref<?x1024xf16>
    %inside = arith.cmpi ult, %row, %rows : index
    scf.if %inside {
      %col = arith.muli %t, %c8 : index
      %v = vector.load %x[%row, %col] {alignment = 16 : i64, nontemporal = true} : memref<?x1024xf16>, vector<8xf16>
      vector.store %v, %tile[%col] {alignment = 16 : i64} : memref<32768xf16, #gpu.address_space<workgroup>>, vector<8xf16>
      gpu.barrier
      %other = vector.load %tile[%col] {alignment = 16 : i64} : memref<32768xf16, #gpu.address_space<workgroup>>, vector<8xf16>
      %wide = arith.extf %other : vector<8xf16> to vector<8xf32>
      %factor32 = arith.truncf %factor : f64 to f32
      %factors = vector.broadcast %factor32 : f32 to vector<8xf32>
      %scaled = arith.mulf %wide, %factors : vector<8xf32>
      %narrow = arith.truncf %scaled : vector<8xf32> to vector<8xf16>
      vector.store %narrow, %y[%row, %col] {alignment = 16 : i64, nontemporal = true} : memref<?x1024xf16>, vector<8xf16>
    }
    gpu.return
  }
}
