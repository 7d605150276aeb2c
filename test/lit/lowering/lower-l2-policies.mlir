// RUN: mlirfuse-opt --lower-l2-policies --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-kernel-abi --lower-l2-policies --split-input-file %s | FileCheck %s --check-prefix=ABI

// A block chooses once how it streams, from how many bytes there are; what all blocks read has a policy of its own.
gpu.module @row {
  // CHECK-LABEL: gpu.func @row(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x?x64xf16>, %[[R:[a-z0-9]+]]: memref<8x64xf16>, %[[W:[a-z0-9]+]]: memref<64xf16>
  // CHECK: %[[ROW:.*]] = arith.muli %c128, %{{.*}} : index
  // CHECK: %[[DIM:.*]] = memref.dim %[[X]], %c1{{.*}} :
  // CHECK: %[[ALL:.*]] = arith.muli %[[ROW]], %[[DIM]] : index
  // CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %[[ALL]] : index
  // CHECK: %[[BYTES:.*]] = arith.addi %[[SUM]], %c1024{{.*}} : index
  // CHECK: %[[MANY:.*]] = arith.cmpi ugt, %[[BYTES]], %c1000{{.*}} : index
  // CHECK: %[[NORMAL:.*]] = nvvm.inline_ptx "createpolicy.fractional.L2::evict_normal.b64 $0, 1.0;" -> i64
  // CHECK: %[[FIRST:.*]] = nvvm.inline_ptx "createpolicy.fractional.L2::evict_first.b64 $0, 1.0;" -> i64
  // CHECK: %[[STREAM:.*]] = arith.select %[[MANY]], %[[NORMAL]], %[[FIRST]] : i64
  // CHECK: nvvm.griddepcontrol wait
  // CHECK: nvvm.inline_ptx "ld.global.L1::no_allocate.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, [$4], $5;" ro(%{{.*}}, %[[STREAM]] : !llvm.ptr<1>, i64)
  // CHECK: nvvm.inline_ptx "ld.global.L1::no_allocate.L2::cache_hint.b32 $0, [$1], $2;" ro(%{{.*}}, %[[STREAM]] : !llvm.ptr<1>, i64)
  // Behind the wait: a load that may be moved needs the policy.
  // CHECK: %[[LAST:.*]] = nvvm.inline_ptx "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;" -> i64
  // CHECK: llvm.inline_asm "ld.global.L2::cache_hint.v2.b32 {$0, $1}, [$2], $3;", "=r,=r,l,l" %{{.*}}, %[[LAST]] : (!llvm.ptr<1>, i64) -> !llvm.struct<(i32, i32)>
  // CHECK: llvm.inline_asm "ld.global.L2::cache_hint.b32 $0, [$1], $2;", "=r,l,l" %{{.*}}, %[[LAST]] : (!llvm.ptr<1>, i64) -> i32
  // CHECK: vector.load %[[W]]{{.*}} {alignment = 8 : i64} :
  // CHECK: vector.store

  // Arguments of a kernel that does not wait come by the read-only path, where nobody writes them.
  // ABI: %[[RESTORED:.*]] = memref.reinterpret_cast
  // ABI: memref.dim %[[RESTORED]]
  // ABI: "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.b32
  // ABI: "ld.global.L1::no_allocate.L2::cache_hint.b32
  // ABI: "ld.global.nc.L2::cache_hint.v2.b32
  gpu.func @row(%x: memref<?x?x64xf16>, %r: memref<8x64xf16>, %w: memref<64xf16>, %a: index, %b: index, %i: index)
      kernel attributes {fuse.evict_first_up_to = 1000 : i64} {
    nvvm.griddepcontrol wait
    %x0 = vector.load %x[%a, %b, %i] {alignment = 16 : i64, nontemporal = true} : memref<?x?x64xf16>, vector<8xf16>
    %r0 = vector.load %r[%b, %i] {alignment = 4 : i64, nontemporal = true} : memref<8x64xf16>, vector<2xf16>
    %w0 = vector.load %w[%i] {alignment = 8 : i64, fuse.evict_last} : memref<64xf16>, vector<4xf16>
    %w1 = vector.load %w[%i] {alignment = 4 : i64, fuse.evict_last} : memref<64xf16>, vector<2xf16>
    %w2 = vector.load %w[%i] {alignment = 8 : i64} : memref<64xf16>, vector<4xf16>
    vector.store %r0, %r[%b, %i] {alignment = 4 : i64} : memref<8x64xf16>, vector<2xf16>
    gpu.return
  }
}

// -----

// What only a branch uses goes there, as LLVM would have its own loads go.
gpu.module @branch {
  // CHECK-LABEL: gpu.func @branch(
  // CHECK: llvm.inline_asm "ld.global.L2::cache_hint.b32
  // CHECK: scf.if
  // CHECK-NEXT: memref.extract_strided_metadata
  // CHECK: llvm.inline_asm "ld.global.L2::cache_hint.b32
  // CHECK: arith.mulf
  // CHECK: vector.store
  gpu.func @branch(%w: memref<64xf32>, %y: memref<?xf32>, %t: index, %u: index, %c: i1)
      kernel attributes {fuse.evict_first_up_to = 1000 : i64} {
    %v = vector.load %w[%t] {alignment = 4 : i64, fuse.evict_last} : memref<64xf32>, vector<1xf32>
    %w0 = vector.load %w[%u] {alignment = 4 : i64, fuse.evict_last} : memref<64xf32>, vector<1xf32>
    %p = arith.mulf %v, %w0 : vector<1xf32>
    scf.if %c {
      vector.store %p, %y[%t] {alignment = 4 : i64} : memref<?xf32>, vector<1xf32>
    }
    vector.store %v, %y[%u] {alignment = 4 : i64} : memref<?xf32>, vector<1xf32>
    gpu.return
  }
}

// -----

gpu.module @plain {
  // CHECK-LABEL: gpu.func @plain(
  // CHECK-NOT: inline_ptx
  gpu.func @plain(%x: memref<?xf32>, %i: index) kernel {
    // A kernel that no policies have been chosen for.
    %a = vector.load %x[%i] {alignment = 16 : i64, nontemporal = true} : memref<?xf32>, vector<4xf32>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @narrow(
  // CHECK-NOT: inline_ptx
  gpu.func @narrow(%x: memref<?xf32>, %w: memref<64xf16>, %i: index)
      kernel attributes {fuse.evict_first_up_to = 1000 : i64} {
    // expected-remark @below {{vector.load gets no policy: its alignment is not known to be 16 bytes}}
    %a = vector.load %x[%i] {alignment = 8 : i64, nontemporal = true} : memref<?xf32>, vector<4xf32>
    // expected-remark @below {{vector.load gets no policy: 2 bytes is none of 4, 8, 16}}
    %b = vector.load %w[%i] {alignment = 2 : i64, fuse.evict_last} : memref<64xf16>, vector<1xf16>
    gpu.return
  }
}
