// RUN: mlirfuse-opt --fuse-launch-dependents --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: mlirfuse-opt --fuse-launch-dependents --fuse-launch-dependents --split-input-file %s | FileCheck %s
// RUN: mlirfuse-opt --fuse-launch-dependents --lower-semaphores --lower-optimization-barriers --lower-kernel-abi --lower-flagged-accesses --split-input-file --emit=ptx --target=sm_90a %s | FileCheck %s --check-prefix=PTX

// Partials of other blocks are read slice by slice: after the loop over partials of the last slice there are only stores.
// CHECK-LABEL: gpu.func @slices
// REMARK: fuse-launch-dependents: applied: slices triggers the dependent launch after scf.for in the last iteration of scf.for
// PTX-LABEL: .entry slices(
// PTX: griddepcontrol.wait;
// PTX: ld.acquire
// PTX: griddepcontrol.launch_dependents;
// PTX: ret;
gpu.module @slices {
  gpu.func @slices(%parts: memref<?x128xf32>, %s: memref<1xi32> {fuse.workspace = "semaphores"}, %y: memref<?x128xf32>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, fuse.cooperative, fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %count = arith.constant 8 : i32
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %blocks = gpu.grid_dim x
    nvvm.griddepcontrol wait
    memref.store %zero, %parts[%b, %t] : memref<?x128xf32>
    gpu.barrier
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      "fuse.semaphore_wait"(%s, %c0, %count) : (memref<1xi32>, index, i32) -> ()
    }
    gpu.barrier
    %n = memref.dim %y, %c0 : memref<?x128xf32>
    // CHECK: scf.for %[[SLICE:.*]] = %{{.*}} to %[[END:.*]] step %[[STEP:.*]] {
    scf.for %slice = %b to %n step %blocks {
      // CHECK: scf.for
      %sum = scf.for %p = %c0 to %blocks step %c1 iter_args(%acc = %zero) -> (f32) {
        %part = memref.load %parts[%p, %t] : memref<?x128xf32>
        %next = arith.addf %acc, %part : f32
        scf.yield %next : f32
      }
      // CHECK: }
      // CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[SLICE]], %[[STEP]]
      // CHECK-NEXT: %[[LAST:.*]] = arith.cmpi uge, %[[NEXT]], %[[END]]
      // CHECK-NEXT: scf.if %[[LAST]] {
      // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
      // CHECK-NEXT: }
      // CHECK-NEXT: memref.store
      // CHECK-NOT: griddepcontrol
      memref.store %sum, %y[%slice, %t] : memref<?x128xf32>
    }
    gpu.return
  }
}

// -----

// Some threads store results, others load partials for them: the storing threads trigger.
// CHECK-LABEL: gpu.func @flags
// REMARK: applied: flags triggers the dependent launch after fuse.flagged_load
// PTX-LABEL: .entry flags(
// PTX: ld.relaxed
// PTX: griddepcontrol.launch_dependents;
// PTX: ret;
gpu.module @flags {
  gpu.func @flags(%x: memref<64xf32>, %m: memref<2x64xf32> {fuse.workspace = "semaphores"}, %y: memref<64xf32>)
      workgroup(%own : memref<64xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, fuse.cooperative, fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %t = gpu.thread_id x
    nvvm.griddepcontrol wait
    %stores = arith.cmpi ult, %t, %c64 : index
    scf.if %stores {
      // CHECK: fuse.flagged_load
      %0:2 = "fuse.flagged_load"(%m, %c0, %t) {partials = 2 : i64} : (memref<2x64xf32>, index, index) -> (f32, f32)
      // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
      %sum = arith.addf %0#0, %0#1 : f32
      memref.store %sum, %y[%t] : memref<64xf32>
    } else {
      // CHECK: } else {
      // CHECK-NOT: griddepcontrol
      %u = arith.subi %t, %c64 : index
      %v = memref.load %x[%u] : memref<64xf32>
      memref.store %v, %own[%u] : memref<64xf32, #gpu.address_space<workgroup>>
    }
    gpu.return
  }
}

// -----

// Threads that read nothing from the flagged buffer would be ahead of those that do.
// CHECK-LABEL: gpu.func @some
// REMARK: applied: some triggers the dependent launch after fuse.flagged_load
gpu.module @some {
  gpu.func @some(%m: memref<2x64xf32> {fuse.workspace = "semaphores"}, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, fuse.cooperative, fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    nvvm.griddepcontrol wait
    %inside = arith.cmpi ult, %t, %c64 : index
    // CHECK: scf.if
    %0:2 = scf.if %inside -> (f32, f32) {
      // CHECK-NEXT: fuse.flagged_load
      %1:2 = "fuse.flagged_load"(%m, %c0, %t) {partials = 2 : i64} : (memref<2x64xf32>, index, index) -> (f32, f32)
      // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
      scf.yield %1#0, %1#1 : f32, f32
      // CHECK: } else {
      // CHECK-NOT: griddepcontrol
    } else {
      scf.yield %zero, %zero : f32, f32
    }
    %sum = arith.addf %0#0, %0#1 : f32
    scf.if %inside {
      memref.store %sum, %y[%t] : memref<64xf32>
    }
    gpu.return
  }
}

// -----

// Blocks that do not wait for one another end together where there are no more blocks than SMs. In larger grids only the
// first blocks trigger.
// CHECK-LABEL: gpu.func @alone
// REMARK: applied: the first 132 blocks of alone trigger the dependent launch before memref.store
// PTX-LABEL: .entry alone(
// PTX: ld.global.b32 %[[V:r[0-9]+]],
// PTX: and.b32 %[[ZERO:r[0-9]+]], %{{.*}}, %[[V]];
// PTX: xor.b32 %[[B:r[0-9]+]], %[[ZERO]],
// PTX: setp.gt.u32 %[[LATE:p[0-9]+]], %[[B]], 131;
// PTX: @%[[LATE]] bra
// PTX: griddepcontrol.launch_dependents;
// PTX: st.global
// PTX: ret;
gpu.module @alone {
  gpu.func @alone(%x: memref<?xf32>, %y: memref<?xf32>)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>, fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %before = arith.muli %b, %c256 : index
    %i = arith.addi %before, %t : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    nvvm.griddepcontrol wait
    %v = memref.load %x[%i] : memref<?xf32>
    %inside = arith.cmpi ult, %i, %n : index
    // CHECK: %[[V:.*]] = memref.load
    // CHECK: scf.if
    scf.if %inside {
      // CHECK-NEXT: %[[X:.*]] = gpu.block_id x
      // CHECK-NEXT: %[[B:.*]] = arith.index_cast %[[X]] : index to i32
      // CHECK-NEXT: %[[KNOWN:.*]] = "fuse.optimization_barrier"(%[[B]], %[[V]]) : (i32, f32) -> i32
      // CHECK-NEXT: %[[LIMIT:.*]] = arith.constant 132
      // CHECK-NEXT: %[[FIRST:.*]] = arith.cmpi ult, %[[KNOWN]], %[[LIMIT]]
      // CHECK-NEXT: scf.if %[[FIRST]] {
      // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
      // CHECK-NEXT: }
      // CHECK-NEXT: memref.store
      memref.store %v, %y[%i] : memref<?xf32>
    }
    gpu.return
  }
}

// -----

// The grid's size may be known; the value is waited for all the same.
// CHECK-LABEL: gpu.func @few
// CHECK: %[[V:.*]] = memref.load
// CHECK: fuse.optimization_barrier
// CHECK-SAME: %[[V]]
// CHECK: scf.if
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: }
// CHECK-NEXT: memref.store
// REMARK: applied: few triggers the dependent launch before memref.store
gpu.module @few {
  gpu.func @few(%x: memref<64xf32>, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, fuse.dependent_launch,
                         fuse.grid = affine_map<() -> (132)>, fuse.grid_operands = array<i64>} {
    %t = gpu.thread_id x
    nvvm.griddepcontrol wait
    %v = memref.load %x[%t] : memref<64xf32>
    memref.store %v, %y[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @many
// CHECK-NOT: launch_dependents
// REMARK: declined: its 133 blocks do not wait for each other, and do not all run at once
gpu.module @many {
  gpu.func @many(%x: memref<64xf32>, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, fuse.dependent_launch,
                         fuse.grid = affine_map<() -> (133)>, fuse.grid_operands = array<i64>} {
    %t = gpu.thread_id x
    nvvm.griddepcontrol wait
    %v = memref.load %x[%t] : memref<64xf32>
    memref.store %v, %y[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @wide
// CHECK-NOT: launch_dependents
// REMARK: declined: a thread may still store 64 bytes when nothing is left to read, more than 32
gpu.module @wide {
  gpu.func @wide(%x: memref<64x16xf32>, %y: memref<64x16xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    nvvm.griddepcontrol wait
    %v = vector.load %x[%t, %c0] : memref<64x16xf32>, vector<16xf32>
    vector.store %v, %y[%t, %c0] : memref<64x16xf32>, vector<16xf32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @loops
// CHECK-NOT: launch_dependents
// REMARK: declined: results are stored in a loop
gpu.module @loops {
  gpu.func @loops(%x: memref<?x64xf32>, %y: memref<?x64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %blocks = gpu.grid_dim x
    nvvm.griddepcontrol wait
    %n = memref.dim %x, %c0 : memref<?x64xf32>
    scf.for %i = %b to %n step %blocks {
      %v = memref.load %x[%i, %t] : memref<?x64xf32>
      memref.store %v, %y[%i, %t] : memref<?x64xf32>
    }
    gpu.return
  }
}

// -----

// Nor where only some threads loop, and others load for them.
// CHECK-LABEL: gpu.func @roles
// CHECK-NOT: launch_dependents
// REMARK: declined: results are stored in a loop
gpu.module @roles {
  gpu.func @roles(%x: memref<?x64xf32>, %y: memref<?x64xf32>)
      workgroup(%own : memref<64xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %blocks = gpu.grid_dim x
    nvvm.griddepcontrol wait
    %n = memref.dim %x, %c0 : memref<?x64xf32>
    %stores = arith.cmpi ult, %t, %c64 : index
    scf.if %stores {
      scf.if %stores {
        scf.for %i = %b to %n step %blocks {
          %v = memref.load %own[%t] : memref<64xf32, #gpu.address_space<workgroup>>
          memref.store %v, %y[%i, %t] : memref<?x64xf32>
        }
      }
    } else {
      %u = arith.subi %t, %c64 : index
      scf.for %i = %b to %n step %blocks {
        %v = memref.load %x[%i, %u] : memref<?x64xf32>
        memref.store %v, %own[%u] : memref<64xf32, #gpu.address_space<workgroup>>
      }
    }
    gpu.return
  }
}

// -----

// After a kernel that does not wait, a successor could miss writes of earlier kernels.
// CHECK-LABEL: gpu.func @unmarked
// CHECK-NOT: launch_dependents
// REMARK: declined: the kernel does not wait for its predecessor
gpu.module @unmarked {
  gpu.func @unmarked(%m: memref<2x64xf32> {fuse.workspace = "semaphores"}, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, fuse.cooperative} {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %0:2 = "fuse.flagged_load"(%m, %c0, %t) {partials = 2 : i64} : (memref<2x64xf32>, index, index) -> (f32, f32)
    memref.store %0#0, %y[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @serial
// CHECK-NOT: launch_dependents
// REMARK: declined: its blocks wait for each other in a loop
gpu.module @serial {
  gpu.func @serial(%m: memref<2x64xf32> {fuse.workspace = "semaphores"}, %y: memref<?x64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, fuse.cooperative, fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    nvvm.griddepcontrol wait
    %n = memref.dim %y, %c0 : memref<?x64xf32>
    scf.for %tile = %c0 to %n step %c1 {
      %0:2 = "fuse.flagged_load"(%m, %c0, %t) {partials = 2 : i64} : (memref<2x64xf32>, index, index) -> (f32, f32)
      memref.store %0#0, %y[%tile, %t] : memref<?x64xf32>
    }
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @much
// CHECK-NOT: launch_dependents
// REMARK: declined: a thread may still store 264 bytes when nothing is left to read, more than 192
gpu.module @much {
  gpu.func @much(%m: memref<16x256xf32> {fuse.workspace = "semaphores"}, %y: memref<256xbf16>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, fuse.cooperative, fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %t = gpu.thread_id x
    %at = arith.muli %t, %c4 : index
    nvvm.griddepcontrol wait
    %0:16 = "fuse.flagged_load"(%m, %c0, %at) {partials = 16 : i64} : (memref<16x256xf32>, index, index)
        -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>,
            vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>,
            vector<4xf32>, vector<4xf32>)
    %v = arith.truncf %0#3 : vector<4xf32> to vector<4xbf16>
    vector.store %v, %y[%at] {alignment = 8 : i64} : memref<256xbf16>, vector<4xbf16>
    gpu.return
  }
}

// -----

// Blocks that store in a branch where they have not waited may be ahead of the others.
// CHECK-LABEL: gpu.func @elsewhere
// CHECK-NOT: launch_dependents
// REMARK: declined: the blocks that store results have not waited for others
gpu.module @elsewhere {
  gpu.func @elsewhere(%s: memref<1xi32> {fuse.workspace = "semaphores"}, %x: memref<64xf32>, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, fuse.cooperative, fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    %count = arith.constant 8 : i32
    %t = gpu.thread_id x
    %b = gpu.block_id x
    nvvm.griddepcontrol wait
    %waits = arith.cmpi eq, %b, %c0 : index
    scf.if %waits {
      "fuse.semaphore_wait"(%s, %c0, %count) : (memref<1xi32>, index, i32) -> ()
    } else {
      %v = memref.load %x[%t] : memref<64xf32>
      memref.store %v, %y[%t] : memref<64xf32>
    }
    gpu.return
  }
}
