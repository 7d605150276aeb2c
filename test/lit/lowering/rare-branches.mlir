// RUN: mlirfuse-opt --lower-rare-branches --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: mlirfuse-opt --lower-attach-target --lower-kernel-abi --lower-rare-branches --split-input-file --emit=ptx %s | FileCheck %s --check-prefix=PTX

gpu.module @rare {
  // Two cheap additions in one of 32 steps stay behind a branch.
  // CHECK-LABEL: gpu.func @rare
  // CHECK: %[[DUE:.*]] = arith.cmpi eq
  // CHECK: %[[SELDOM:.*]] = llvm.intr.expect %[[DUE]], %false
  // CHECK: scf.if %[[SELDOM]]
  // PTX-LABEL: .entry rare(
  // PTX-NOT: selp.f32
  // expected-remark @below {{1 branches are taken seldom}}
  gpu.func @rare(%x: memref<?xf32>, %n: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %zero) -> (f32, f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %s = arith.addf %a, %v : f32
      %rest = arith.remui %i, %c32 : index
      %due = arith.cmpi eq, %rest, %c0 : index
      %m:2 = scf.if %due -> (f32, f32) {
        %p = arith.addf %b, %s : f32
        %q = arith.subf %s, %p : f32
        scf.yield %q, %p : f32, f32
      } else {
        scf.yield %s, %b : f32, f32
      }
      scf.yield %m#0, %m#1 : f32, f32
    }
    %o = arith.subf %r#0, %r#1 : f32
    memref.store %o, %x[%t] : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @often {
  // One of two steps is not seldom, a remainder by a variable says nothing, and a branch that stores stays one anyway.
  // CHECK-LABEL: gpu.func @often
  // CHECK-NOT: llvm.intr.expect
  // expected-remark @below {{no branch is taken every so many steps}}
  gpu.func @often(%x: memref<?xf32>, %n: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %half = arith.remui %t, %c2 : index
    %even = arith.cmpi eq, %half, %c0 : index
    %v = scf.if %even -> f32 {
      %w = memref.load %x[%t] : memref<?xf32>
      scf.yield %w : f32
    } else {
      scf.yield %zero : f32
    }
    %any = arith.remui %t, %n : index
    %first = arith.cmpi eq, %any, %c0 : index
    %s = scf.if %first -> f32 {
      %w = arith.addf %v, %v : f32
      scf.yield %w : f32
    } else {
      scf.yield %v : f32
    }
    %lane = arith.remui %t, %c32 : index
    %leads = arith.cmpi eq, %lane, %c0 : index
    scf.if %leads {
      memref.store %s, %x[%t] : memref<?xf32>
    }
    gpu.return
  }
}

// -----

gpu.module @nothing {
  // CHECK-LABEL: gpu.func @nothing
  gpu.func @nothing(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}
