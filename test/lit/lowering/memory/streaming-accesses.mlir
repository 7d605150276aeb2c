// RUN: mlirfuse-opt --lower-streaming-accesses --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --pass-pipeline='builtin.module(lower-streaming-accesses{load-hint=cs store-hint=none})' --split-input-file %s | FileCheck %s --check-prefix=CS
// RUN: not mlirfuse-opt --lower-streaming-accesses='load-hint=sometimes' %s 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: option 'load-hint' of lower-streaming-accesses cannot be 'sometimes'

gpu.module @fragments {
  // CHECK-LABEL: gpu.func @fragments(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x64xf16> {{.*}}, %[[Y:[a-z0-9]+]]: memref<?x64xf16>, %[[ROW:[a-z0-9]+]]: index, %[[COL:[a-z0-9]+]]: index)
  gpu.func @fragments(%x: memref<?x64xf16> {llvm.noalias, llvm.readonly}, %y: memref<?x64xf16>, %row: index, %col: index) kernel {
    // CHECK: %[[LINE:.*]] = arith.muli %[[ROW]], %{{.*}} : index
    // CHECK: %[[ELEMENT:.*]] = arith.addi %{{.*}}, %{{.*}} : index
    // CHECK: memref.extract_aligned_pointer_as_index %[[X]]
    // CHECK: %[[P:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
    // CHECK: %[[W:.*]]:4 = nvvm.inline_ptx "ld.global.cg.nc.v4.b32 {$0, $1, $2, $3}, [$4];" ro(%[[P]] : !llvm.ptr<1>) -> i32, i32, i32, i32
    // CHECK: %[[V:.*]] = vector.from_elements %[[W]]#0, %[[W]]#1, %[[W]]#2, %[[W]]#3 : vector<4xi32>
    // CHECK: %[[F:.*]] = vector.bitcast %[[V]] : vector<4xi32> to vector<8xf16>
    // CS: nvvm.inline_ptx "ld.global.cs.nc.v4.b32 {$0, $1, $2, $3}, [$4];"
    %v = vector.load %x[%row, %col] {alignment = 16 : i64, nontemporal = true} : memref<?x64xf16>, vector<8xf16>
    // CHECK: %[[B:.*]] = vector.bitcast %[[F]] : vector<8xf16> to vector<4xi32>
    // CHECK: %[[E:.*]]:4 = vector.to_elements %[[B]] : vector<4xi32>
    // CHECK: nvvm.inline_ptx "st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};" ro(%{{.*}}, %[[E]]#0, %[[E]]#1, %[[E]]#2, %[[E]]#3 :
    // CS: vector.store %{{.*}} nontemporal = true
    vector.store %v, %y[%row, %col] {alignment = 16 : i64, nontemporal = true} : memref<?x64xf16>, vector<8xf16>
    gpu.return
  }
}

// -----

gpu.module @widths {
  // The argument is written, so it is not read through the read-only path.
  // CHECK-LABEL: gpu.func @widths
  gpu.func @widths(%x: memref<?xf32>, %d: memref<?xf64>, %i: index) kernel {
    // CHECK: nvvm.inline_ptx "ld.global.cg.b32 $0, [$1];" ro(%{{.*}} : !llvm.ptr<1>) -> i32
    %one = vector.load %x[%i] {alignment = 4 : i64, nontemporal = true} : memref<?xf32>, vector<1xf32>
    // CHECK: nvvm.inline_ptx "ld.global.cg.v2.b32 {$0, $1}, [$2];"
    %two = vector.load %d[%i] {alignment = 8 : i64, nontemporal = true} : memref<?xf64>, vector<1xf64>
    // CHECK: nvvm.inline_ptx "st.global.cs.b32 [$0], $1;"
    vector.store %one, %x[%i] {alignment = 4 : i64, nontemporal = true} : memref<?xf32>, vector<1xf32>
    // CHECK: nvvm.inline_ptx "st.global.cs.v2.b32 [$0], {$1, $2};"
    vector.store %two, %d[%i] {alignment = 8 : i64, nontemporal = true} : memref<?xf64>, vector<1xf64>
    gpu.return
  }
}

// -----

gpu.module @strided {
  // CHECK-LABEL: gpu.func @strided
  gpu.func @strided(%x: memref<?x8xi32, strided<[?, 1]>>, %y: memref<8xi32>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    // CHECK: %{{.*}}, %{{.*}}, %{{.*}}:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata
    // CHECK: arith.muli %{{.*}}, %[[STRIDES]]#0 : index
    // CHECK: %[[WORDS:.*]]:4 = nvvm.inline_ptx "ld.global.cg.v4.b32
    // A vector of words needs no cast.
    // CHECK: %[[V:.*]] = vector.from_elements
    // CHECK: vector.store %[[V]]
    %v = vector.load %x[%i, %c0] {alignment = 16 : i64, nontemporal = true} : memref<?x8xi32, strided<[?, 1]>>, vector<4xi32>
    vector.store %v, %y[%c0] : memref<8xi32>, vector<4xi32>
    gpu.return
  }
}

// -----

gpu.module @plain {
  // CHECK-LABEL: gpu.func @plain
  // CHECK-NOT: inline_ptx
  gpu.func @plain(%x: memref<?xf32>, %i: index) workgroup(%s : memref<8xf32, #gpu.address_space<workgroup>>) kernel {
    // Not marked.
    %a = vector.load %x[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
    // expected-remark @below {{vector.load stays plain: it is not known to be aligned to 16 bytes}}
    %b = vector.load %x[%i] {alignment = 8 : i64, nontemporal = true} : memref<?xf32>, vector<4xf32>
    // expected-remark @below {{vector.load stays plain: 32 bytes is none of 4, 8, 16}}
    %c = vector.load %x[%i] {alignment = 32 : i64, nontemporal = true} : memref<?xf32>, vector<8xf32>
    // expected-remark @below {{vector.store stays plain: memory space #gpu.address_space<workgroup> is not global memory}}
    vector.store %a, %s[%i] {alignment = 16 : i64, nontemporal = true} : memref<8xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    %d = arith.addf %a, %b : vector<4xf32>
    vector.store %d, %x[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
    vector.store %c, %x[%i] {alignment = 16 : i64} : memref<?xf32>, vector<8xf32>
    gpu.return
  }
}

// -----

gpu.module @constant_terms {
  // The constant part of an index is added to the pointer last, so that two accesses share the rest of their address.
  // CHECK-LABEL: gpu.func @constant_terms
  // CHECK: %[[P:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
  // CHECK: %[[Q:.*]] = llvm.getelementptr %[[P]][16384] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  // CHECK: nvvm.inline_ptx "ld.global.cg.v4.b32 {{.*}}" ro(%[[Q]] : !llvm.ptr<1>)
  gpu.func @constant_terms(%x: memref<?x16384xf16>, %i: index, %j: index) kernel {
    %c0 = arith.constant 0 : index
    %c8192 = arith.constant 8192 : index
    %k = arith.addi %j, %c8192 : index
    %v = vector.load %x[%i, %k] {alignment = 16 : i64, nontemporal = true} : memref<?x16384xf16>, vector<8xf16>
    vector.store %v, %x[%i, %c0] : memref<?x16384xf16>, vector<8xf16>
    gpu.return
  }
}
