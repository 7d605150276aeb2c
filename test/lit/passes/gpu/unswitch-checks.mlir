// RUN: mlirfuse-opt %s --fuse-unswitch-checks --split-input-file --show-remarks 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// Two neighbours of a row, of which the first element is another array's: threads beside the edge load from one array.
// CHECK-LABEL: gpu.func @edge
// REMARK: fuse-unswitch-checks: applied: edge has 1 branch(es) for single parts
// CHECK: %[[T:.*]] = gpu.thread_id x
// CHECK: %[[START:.*]] = arith.subi %{{.*}}, %c1
// CHECK: %[[WHOLE:.*]] = arith.cmpi ult, %[[START]], %c62
// CHECK: %[[R:.*]]:2 = scf.if %[[WHOLE]] -> (f32, f32) {
// CHECK-NOT: arith.select
// CHECK-DAG: %[[A:.*]] = memref.load %[[BODY:.*]][%{{.*}}] : memref<64xf32, strided<[3]>>
// CHECK-DAG: %[[B:.*]] = memref.load %[[BODY]][%{{.*}}] : memref<64xf32, strided<[3]>>
// CHECK-NOT: memref.load
// CHECK: scf.yield %[[A]], %[[B]]
// CHECK: } else {
// CHECK-COUNT-8: memref.load
// CHECK: scf.yield
// CHECK: memref.store %[[R]]#0
#first = affine_map<(i) -> (i)>
#rest = affine_map<(i) -> (i - 1)>
gpu.module @edge {
  gpu.func @edge(%x: memref<63xf32>, %e: memref<1xf32>, %y: memref<64xf32>) kernel {
    %t = gpu.thread_id x
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %0 = arith.muli %t, %c2 : index
    %1 = arith.addi %0, %c1 : index
    %edge = "fuse.gathered_view"(%e) {basis = array<i64: 64>, ranks = array<i64: 1>, map = #first} : (memref<1xf32>) -> memref<64xf32, strided<[3]>>
    %body = "fuse.gathered_view"(%x) {basis = array<i64: 64>, ranks = array<i64: 1>, map = #rest} : (memref<63xf32>) -> memref<64xf32, strided<[3]>>
    %in_edge = "fuse.gathered_view"(%e) {basis = array<i64: 64>, ranks = array<i64: 1>, inside = array<i64: 1>, map = #first} : (memref<1xf32>) -> memref<64xi1, strided<[3]>>
    %in_body = "fuse.gathered_view"(%x) {basis = array<i64: 64>, ranks = array<i64: 1>, inside = array<i64: 63>, map = #rest} : (memref<63xf32>) -> memref<64xi1, strided<[3]>>
    %a0 = memref.load %edge[%0] : memref<64xf32, strided<[3]>>
    %a1 = memref.load %edge[%1] : memref<64xf32, strided<[3]>>
    %b0 = memref.load %body[%0] : memref<64xf32, strided<[3]>>
    %b1 = memref.load %body[%1] : memref<64xf32, strided<[3]>>
    %p0 = memref.load %in_edge[%0] : memref<64xi1, strided<[3]>>
    %p1 = memref.load %in_edge[%1] : memref<64xi1, strided<[3]>>
    %q0 = memref.load %in_body[%0] : memref<64xi1, strided<[3]>>
    %q1 = memref.load %in_body[%1] : memref<64xi1, strided<[3]>>
    %s0 = arith.select %p0, %a0, %zero : f32
    %s1 = arith.select %p1, %a1, %zero : f32
    %r0 = arith.select %q0, %b0, %s0 : f32
    %r1 = arith.select %q1, %b1, %s1 : f32
    memref.store %r0, %y[%0] : memref<64xf32>
    memref.store %r1, %y[%1] : memref<64xf32>
    gpu.return
  }
}

// -----

// Equal halves: each has a copy of the code.
// CHECK-LABEL: gpu.func @halves
// REMARK: fuse-unswitch-checks: applied: halves has 2 branch(es) for single parts
// CHECK: scf.if
// CHECK: memref.load %[[LEFT:.*]][
// CHECK: } else {
// CHECK: arith.subi %{{.*}}, %c32
// CHECK: scf.if
// CHECK: memref.load
// CHECK: } else {
// CHECK-COUNT-4: memref.load
#left = affine_map<(i) -> (i)>
#right = affine_map<(i) -> (i - 32)>
gpu.module @halves {
  gpu.func @halves(%x: memref<32xf32>, %z: memref<32xf32>, %y: memref<64xf32>) kernel {
    %t = gpu.thread_id x
    %zero = arith.constant 0.0 : f32
    %l = "fuse.gathered_view"(%x) {basis = array<i64: 64>, ranks = array<i64: 1>, map = #left} : (memref<32xf32>) -> memref<64xf32, strided<[3]>>
    %r = "fuse.gathered_view"(%z) {basis = array<i64: 64>, ranks = array<i64: 1>, map = #right} : (memref<32xf32>) -> memref<64xf32, strided<[3]>>
    %in_l = "fuse.gathered_view"(%x) {basis = array<i64: 64>, ranks = array<i64: 1>, inside = array<i64: 32>, map = #left} : (memref<32xf32>) -> memref<64xi1, strided<[3]>>
    %in_r = "fuse.gathered_view"(%z) {basis = array<i64: 64>, ranks = array<i64: 1>, inside = array<i64: 32>, map = #right} : (memref<32xf32>) -> memref<64xi1, strided<[3]>>
    %a = memref.load %l[%t] : memref<64xf32, strided<[3]>>
    %b = memref.load %r[%t] : memref<64xf32, strided<[3]>>
    %p = memref.load %in_l[%t] : memref<64xi1, strided<[3]>>
    %q = memref.load %in_r[%t] : memref<64xi1, strided<[3]>>
    %s = arith.select %p, %a, %zero : f32
    %u = arith.select %q, %b, %s : f32
    memref.store %u, %y[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

// Threads wait for each other between the load and the selection.
// CHECK-LABEL: gpu.func @waits
// REMARK: fuse-unswitch-checks: declined: threads wait for each other, or loop, between the loads and the selections
// CHECK-NOT: scf.if
#rest = affine_map<(i) -> (i - 1)>
gpu.module @waits {
  gpu.func @waits(%x: memref<63xf32>, %y: memref<64xf32>) kernel {
    %t = gpu.thread_id x
    %zero = arith.constant 0.0 : f32
    %body = "fuse.gathered_view"(%x) {basis = array<i64: 64>, ranks = array<i64: 1>, map = #rest} : (memref<63xf32>) -> memref<64xf32, strided<[3]>>
    %in = "fuse.gathered_view"(%x) {basis = array<i64: 64>, ranks = array<i64: 1>, inside = array<i64: 63>, map = #rest} : (memref<63xf32>) -> memref<64xi1, strided<[3]>>
    %b = memref.load %body[%t] : memref<64xf32, strided<[3]>>
    gpu.barrier
    %q = memref.load %in[%t] : memref<64xi1, strided<[3]>>
    %r = arith.select %q, %b, %zero : f32
    memref.store %r, %y[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

// Elements of two parts by turns are none of a single part.
// CHECK-LABEL: gpu.func @interleaved
// REMARK: fuse-unswitch-checks: declined: no part has most of the elements
// CHECK-NOT: scf.if
#turns = affine_map<(i) -> (i mod 2)>
gpu.module @interleaved {
  gpu.func @interleaved(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
    %t = gpu.thread_id x
    %zero = arith.constant 0.0 : f32
    %in = "fuse.gathered_view"(%x) {basis = array<i64: 64>, ranks = array<i64: 1>, inside = array<i64: 1>, map = #turns} : (memref<64xf32>) -> memref<64xi1, strided<[3]>>
    %b = memref.load %x[%t] : memref<64xf32>
    %q = memref.load %in[%t] : memref<64xi1, strided<[3]>>
    %r = arith.select %q, %b, %zero : f32
    memref.store %r, %y[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @no_checks
// REMARK: fuse-unswitch-checks: declined: no element is selected among parts of arrays
gpu.module @no_checks {
  gpu.func @no_checks(%x: memref<64xf32>) kernel {
    gpu.return
  }
}

// -----

// A branch between the loads and the selections has loads of its own, and is part of the code that is copied.
// CHECK-LABEL: gpu.func @nested
// REMARK: fuse-unswitch-checks: applied: nested has 1 branch(es) for single parts
// CHECK: scf.if
#rest = affine_map<(i) -> (i - 1)>
gpu.module @nested {
  gpu.func @nested(%x: memref<63xf32>, %y: memref<64xf32>) kernel {
    %t = gpu.thread_id x
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %body = "fuse.gathered_view"(%x) {basis = array<i64: 64>, ranks = array<i64: 1>, map = #rest} : (memref<63xf32>) -> memref<64xf32, strided<[3]>>
    %in = "fuse.gathered_view"(%x) {basis = array<i64: 64>, ranks = array<i64: 1>, inside = array<i64: 63>, map = #rest} : (memref<63xf32>) -> memref<64xi1, strided<[3]>>
    %b = memref.load %body[%t] : memref<64xf32, strided<[3]>>
    %small = arith.cmpi ult, %t, %c32 : index
    %s = scf.if %small -> (f32) {
      %p = memref.load %in[%t] : memref<64xi1, strided<[3]>>
      %v = arith.select %p, %b, %zero : f32
      scf.yield %v : f32
    } else {
      scf.yield %zero : f32
    }
    %q = memref.load %in[%t] : memref<64xi1, strided<[3]>>
    %r = arith.select %q, %s, %zero : f32
    memref.store %r, %y[%t] : memref<64xf32>
    gpu.return
  }
}
