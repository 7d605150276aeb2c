// RUN: mlirfuse-opt --lower-masked-loads --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// REMARK: lower-masked-loads: applied: 2 loads are predicated
gpu.module @loads {
  // CHECK-LABEL: gpu.func @loads(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x64xf16>, %[[W:[a-z0-9]+]]: memref<?xf32> {{.*}}, %[[IN:[a-z0-9]+]]: i1)
  gpu.func @loads(%x: memref<?x64xf16>, %w: memref<?xf32> {llvm.noalias, llvm.readonly}, %y: memref<?x64xf16>, %z: memref<?xf32>, %row: index, %in: i1) kernel {
    %c8 = arith.constant 8 : index
    %next = arith.addi %row, %c8 : index
    %nothing = arith.constant dense<0.0> : vector<4xf16>
    %one = arith.constant dense<1.0> : vector<1xf32>
    // The number of an index is added to the pointer last.
    // CHECK: %[[P:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
    // CHECK: %[[AT:.*]] = llvm.getelementptr %[[P]][16]
    // CHECK: %[[BITS:.*]] = vector.bitcast %{{.*}} : vector<4xf16> to vector<2xi32>
    // CHECK: %[[ZERO:.*]]:2 = vector.to_elements %[[BITS]]
    // CHECK: %[[WORDS:.*]] = llvm.inline_asm has_side_effects "@$3 ld.global.v2.b32 {$0, $1}, [$2];", "=r,=r,l,b,0,1" %[[AT]], %[[IN]], %[[ZERO]]#0, %[[ZERO]]#1
    // CHECK: %[[A:.*]] = llvm.extractvalue %[[WORDS]][0]
    // CHECK: %[[B:.*]] = llvm.extractvalue %[[WORDS]][1]
    // CHECK: %[[BOTH:.*]] = vector.from_elements %[[A]], %[[B]] : vector<2xi32>
    // CHECK: %[[V:.*]] = vector.bitcast %[[BOTH]] : vector<2xi32> to vector<4xf16>
    // CHECK: vector.store %[[V]]
    %m = vector.broadcast %in : i1 to vector<4xi1>
    %v = vector.maskedload %x[%row, %next], %m, %nothing {alignment = 8 : i64} : memref<?x64xf16>, vector<4xi1>, vector<4xf16> into vector<4xf16>
    vector.store %v, %y[%row, %next] : memref<?x64xf16>, vector<4xf16>
    // What is passed through may be any number; an argument that nobody writes is read through the read-only path.
    // CHECK: llvm.inline_asm has_side_effects "@$2 ld.global.nc.b32 $0, [$1];", "=r,l,b,0"
    %n = vector.broadcast %in : i1 to vector<1xi1>
    %u = vector.maskedload %w[%row], %n, %one {alignment = 4 : i64} : memref<?xf32>, vector<1xi1>, vector<1xf32> into vector<1xf32>
    vector.store %u, %z[%row] : memref<?xf32>, vector<1xf32>
    gpu.return
  }
}

// -----

// REMARK: lower-masked-loads: declined: stays masked: its mask is no single condition
// REMARK: lower-masked-loads: declined: stays masked: 2 bytes is none of 4, 8, 16
// REMARK: lower-masked-loads: declined: stays masked: it is not known to be aligned to 8 bytes
// REMARK: lower-masked-loads: declined: stays masked: memory space #gpu.address_space<workgroup> is not global memory
gpu.module @others {
  // CHECK-LABEL: gpu.func @others(
  // CHECK-NOT: llvm.inline_asm
  // CHECK-COUNT-4: vector.maskedload
  // CHECK-NOT: llvm.inline_asm
  gpu.func @others(%x: memref<?xf16>, %y: memref<?xf16>, %i: index, %in: i1, %some: vector<4xi1>) workgroup(%s: memref<64xf16, #gpu.address_space<workgroup>>) kernel {
    %four = arith.constant dense<0.0> : vector<4xf16>
    %one = arith.constant dense<0.0> : vector<1xf16>
    %m = vector.broadcast %in : i1 to vector<4xi1>
    %n = vector.broadcast %in : i1 to vector<1xi1>
    %a = vector.maskedload %x[%i], %some, %four {alignment = 8 : i64} : memref<?xf16>, vector<4xi1>, vector<4xf16> into vector<4xf16>
    %b = vector.maskedload %x[%i], %n, %one {alignment = 2 : i64} : memref<?xf16>, vector<1xi1>, vector<1xf16> into vector<1xf16>
    %c = vector.maskedload %x[%i], %m, %four {alignment = 2 : i64} : memref<?xf16>, vector<4xi1>, vector<4xf16> into vector<4xf16>
    %d = vector.maskedload %s[%i], %m, %four {alignment = 8 : i64} : memref<64xf16, #gpu.address_space<workgroup>>, vector<4xi1>, vector<4xf16> into vector<4xf16>
    vector.store %a, %y[%i] : memref<?xf16>, vector<4xf16>
    vector.store %b, %y[%i] : memref<?xf16>, vector<1xf16>
    vector.store %c, %y[%i] : memref<?xf16>, vector<4xf16>
    vector.store %d, %y[%i] : memref<?xf16>, vector<4xf16>
    gpu.return
  }
}
