// RUN: mlirfuse-opt --lower-ordered-accesses --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

gpu.module @spilled {
  // Marked loads, and the stores that spill to shared memory, are relaxed; accesses without the mark may be moved.
  // CHECK-LABEL: gpu.func @spilled(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x64xf16> {{.*}}, %[[ROW:[a-z0-9]+]]: index, %[[COL:[a-z0-9]+]]: index)
  // CHECK-SAME: workgroup(%[[S:[a-z0-9]+]] : memref<512xf16, #gpu.address_space<workgroup>>)
  gpu.func @spilled(%x: memref<?x64xf16> {llvm.noalias, llvm.readonly}, %row: index, %col: index)
      workgroup(%s: memref<512xf16, #gpu.address_space<workgroup>>) kernel {
    // CHECK: memref.extract_aligned_pointer_as_index %[[X]]
    // CHECK: %[[P:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
    // CHECK: %[[W:.*]]:4 = nvvm.inline_ptx "ld.relaxed.cta.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];" ro(%[[P]] : !llvm.ptr<1>) -> i32, i32, i32, i32
    // CHECK: %[[V:.*]] = vector.from_elements %[[W]]#0, %[[W]]#1, %[[W]]#2, %[[W]]#3 : vector<4xi32>
    // CHECK: %[[F:.*]] = vector.bitcast %[[V]] : vector<4xi32> to vector<8xf16>
    %v = vector.load %x[%row, %col] {alignment = 16 : i64, fuse.in_order, nontemporal = true} : memref<?x64xf16>, vector<8xf16>
    // CHECK: memref.extract_aligned_pointer_as_index %[[S]]
    // CHECK: %[[Q:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<3>
    // CHECK: nvvm.inline_ptx "st.relaxed.cta.shared.v4.b32 [$0], {$1, $2, $3, $4};" ro(%[[Q]], %{{.*}} : !llvm.ptr<3>, i32, i32, i32, i32)
    vector.store %v, %s[%col] {alignment = 16 : i64, fuse.in_order} : memref<512xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    // CHECK: vector.load %[[X]]{{.*}} nontemporal = true
    %u = vector.load %x[%row, %col] {alignment = 16 : i64, nontemporal = true} : memref<?x64xf16>, vector<8xf16>
    // CHECK: vector.store
    vector.store %u, %s[%col] {alignment = 16 : i64} : memref<512xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    gpu.return
  }
}

// -----

gpu.module @declined {
  // CHECK-LABEL: gpu.func @declined
  // CHECK-NOT: nvvm.inline_ptx
  gpu.func @declined(%x: memref<?xf16>, %z: memref<?xf16, 1>, %i: index) workgroup(%s: memref<512xf16, #gpu.address_space<workgroup>>) kernel {
    // expected-remark @below {{vector.load may be moved: 6 bytes is none of 4, 8, 16}}
    %odd = vector.load %x[%i] {alignment = 2 : i64, fuse.in_order} : memref<?xf16>, vector<3xf16>
    // expected-remark @below {{vector.load may be moved: it is not known to be aligned to 16 bytes}}
    %v = vector.load %x[%i] {alignment = 8 : i64, fuse.in_order} : memref<?xf16>, vector<8xf16>
    // expected-remark @below {{vector.store may be moved: only vector loads of global and vector stores to shared memory keep their order}}
    vector.store %v, %x[%i] {alignment = 16 : i64, fuse.in_order} : memref<?xf16>, vector<8xf16>
    // expected-remark @below {{vector.store may be moved: only vector loads of global and vector stores to shared memory keep their order}}
    vector.store %v, %z[%i] {alignment = 16 : i64, fuse.in_order} : memref<?xf16, 1>, vector<8xf16>
    // expected-remark @below {{memref.load may be moved: only vector loads of global and vector stores to shared memory keep their order}}
    %one = memref.load %x[%i] {fuse.in_order} : memref<?xf16>
    // expected-remark @below {{vector.load may be moved: only vector loads of global and vector stores to shared memory keep their order}}
    %own = vector.load %s[%i] {alignment = 16 : i64, fuse.in_order} : memref<512xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    gpu.return
  }
}
