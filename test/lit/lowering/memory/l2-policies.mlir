// RUN: mlirfuse-opt --lower-l2-policies --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-kernel-abi --lower-l2-policies --split-input-file %s | FileCheck %s --check-prefix=ABI

// A block chooses the policy of streamed data once, by the size of the arrays; data that all blocks read has another policy.
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
  // The policy is created after the wait, because a load that may be moved needs it.
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
  // CHECK-NEXT: memref.extract_aligned_pointer_as_index
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
    // expected-remark @below {{vector.load gets no eviction policy: it is not known to be aligned to 16 bytes}}
    %a = vector.load %x[%i] {alignment = 8 : i64, nontemporal = true} : memref<?xf32>, vector<4xf32>
    // expected-remark @below {{vector.load gets no eviction policy: 2 bytes is none of 4, 8, 16}}
    %b = vector.load %w[%i] {alignment = 2 : i64, fuse.evict_last} : memref<64xf16>, vector<1xf16>
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>
// Copies branch to those with a policy or without; what is between them are addresses, and those in shared memory are
// behind an optimization barrier, each once: constants of them are offsets of the instruction.
gpu.module @persistent_loop {
  // CHECK-LABEL: gpu.func @persistent_loop(
  // CHECK: %[[MANY:.*]] = arith.cmpi ugt, %{{.*}}, %c1000{{.*}} : index
  // CHECK-NOT: evict_normal
  // CHECK: %[[FIRST:.*]] = nvvm.inline_ptx "createpolicy.fractional.L2::evict_first.b64 $0, 1.0;" -> i64
  // CHECK: nvvm.griddepcontrol wait
  // CHECK: scf.if %arg
  // CHECK: %[[TO:.*]] = "fuse.optimization_barrier"(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
  // CHECK: %[[FROM:.*]] = arith.index_cast %{{.*}} : index to i64
  // CHECK: %[[TO2:.*]] = "fuse.optimization_barrier"
  // CHECK: %[[FROM2:.*]] = arith.index_cast %{{.*}} : index to i64
  // CHECK: scf.if %[[MANY]]
  // CHECK-NEXT: nvvm.inline_ptx "cp.async.cg.shared.global [$0+0], [$1+0], 16;" ro(%[[TO]], %[[FROM]] : i32, i64)
  // CHECK-NEXT: nvvm.inline_ptx "cp.async.ca.shared.global [$0+64], [$1+64], 8;" ro(%[[TO2]], %[[FROM2]] : i32, i64)
  // CHECK-NEXT: } else {
  // CHECK-NEXT: nvvm.inline_ptx "cp.async.cg.shared.global.L2::cache_hint [$0+0], [$1+0], 16, $2;" ro(%[[TO]], %[[FROM]], %[[FIRST]] : i32, i64, i64)
  // CHECK-NEXT: nvvm.inline_ptx "cp.async.ca.shared.global.L2::cache_hint [$0+64], [$1+64], 8, $2;" ro(%[[TO2]], %[[FROM2]], %[[FIRST]] : i32, i64, i64)
  // CHECK-NEXT: }
  // Copies do not move past the end of their group.
  // CHECK-NEXT: nvvm.cp.async.commit.group
  // CHECK: scf.if %[[MANY]]
  // CHECK: [$0+0], [$1+0], 16, $2;"
  // CHECK: nvgpu.device_async_copy %arg1
  // CHECK: nvvm.cp.async.commit.group
  // Partials that blocks exchange.
  // CHECK: %[[LAST:.*]] = nvvm.inline_ptx "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;" -> i64
  // CHECK: nvvm.inline_ptx "st.global.L2::cache_hint.v2.b32 [$0], {$1, $2}, $3;" ro(%{{.*}}, %{{.*}}, %{{.*}}, %[[LAST]] : !llvm.ptr<1>, i32, i32, i64)
  // CHECK: %[[TAKEN:.*]] = nvvm.inline_ptx "createpolicy.fractional.L2::evict_first.b64 $0, 1.0;" -> i64
  // CHECK: nvvm.inline_ptx "ld.global.L2::cache_hint.v2.b32 {$0, $1}, [$2], $3;" ro(%{{.*}}, %[[TAKEN]] : !llvm.ptr<1>, i64)
  gpu.func @persistent_loop(%x: memref<?x64xf16>, %w: memref<64xf16>, %partials: memref<?x64xf32>, %c: i1, %a: index, %i: index, %v: vector<2xf32>)
      workgroup(%s : memref<2x64xf16, #shared>) kernel attributes {fuse.evict_first_up_to = 1000 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    nvvm.griddepcontrol wait
    scf.if %c {
      %0 = nvgpu.device_async_copy %x[%a, %i], %s[%c0, %i], 8 {bypassL1, fuse.evict_first, nontemporal = true} : memref<?x64xf16> to memref<2x64xf16, #shared>
      %j = arith.addi %i, %c32 : index
      %1 = nvgpu.device_async_copy %x[%a, %j], %s[%c0, %j], 4 {fuse.evict_first, nontemporal = true} : memref<?x64xf16> to memref<2x64xf16, #shared>
      nvvm.cp.async.commit.group
      %2 = nvgpu.device_async_copy %x[%a, %i], %s[%a, %i], 8 {bypassL1, fuse.evict_first, nontemporal = true} : memref<?x64xf16> to memref<2x64xf16, #shared>
      %3 = nvgpu.device_async_copy %w[%i], %s[%c1, %i], 8 {bypassL1} : memref<64xf16> to memref<2x64xf16, #shared>
      nvvm.cp.async.commit.group
    }
    vector.store %v, %partials[%a, %i] {alignment = 8 : i64, fuse.evict_last} : memref<?x64xf32>, vector<2xf32>
    gpu.barrier
    %p = vector.load %partials[%i, %a] {alignment = 8 : i64, fuse.evict_first} : memref<?x64xf32>, vector<2xf32>
    vector.store %p, %partials[%a, %i] {alignment = 8 : i64} : memref<?x64xf32>, vector<2xf32>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @kept(
  // CHECK-NOT: inline_ptx
  gpu.func @kept(%x: memref<?x64xf16>, %partials: memref<?x64xf32>, %a: index, %i: index, %n: index, %v: vector<2xf32>)
      workgroup(%s : memref<2x64xf16, #shared>) kernel attributes {fuse.evict_first_up_to = 1000 : i64} {
    // expected-remark @below {{nvgpu.device_async_copy gets no eviction policy: it pads its destination}}
    %0 = nvgpu.device_async_copy %x[%a, %i], %s[%a, %i], 8, %n {bypassL1, fuse.evict_first, nontemporal = true} : memref<?x64xf16> to memref<2x64xf16, #shared>
    // expected-remark @below {{nvgpu.device_async_copy gets no eviction policy: its token is used}}
    %1 = nvgpu.device_async_copy %x[%a, %i], %s[%a, %i], 8 {bypassL1, fuse.evict_first, nontemporal = true} : memref<?x64xf16> to memref<2x64xf16, #shared>
    %2 = nvgpu.device_async_create_group %1
    // expected-remark @below {{vector.store gets no eviction policy: it is not known to be aligned to 8 bytes}}
    vector.store %v, %partials[%a, %i] {alignment = 4 : i64, fuse.evict_last} : memref<?x64xf32>, vector<2xf32>
    gpu.return
  }
}
