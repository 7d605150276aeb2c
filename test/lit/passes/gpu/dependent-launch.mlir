// RUN: mlirfuse-opt --fuse-dependent-launch --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: mlirfuse-opt --fuse-dependent-launch --target=sm_80 --split-input-file --show-remarks %s 2>&1 | FileCheck %s --check-prefix=SM80
// RUN: mlirfuse-opt --fuse-dependent-launch --fuse-dependent-launch --split-input-file %s | FileCheck %s
// RUN: mlirfuse-opt --fuse-dependent-launch --lower-semaphores --lower-kernel-abi --lower-streaming-accesses --split-input-file --emit=ptx --target=sm_90a %s | FileCheck %s --check-prefix=PTX

#shared = #gpu.address_space<workgroup>

// SM80-NOT: griddepcontrol
// SM80-NOT: fuse.dependent_launch
// SM80: declined: sm_80 has no programmatic dependent launch

// Sizes are parameters, and shared memory is the block's own: ops before the first global load need not wait.
// CHECK-LABEL: gpu.func @row
// CHECK-SAME: fuse.dependent_launch
// REMARK: fuse-dependent-launch: applied: row waits for its predecessor before vector.load
// PTX-LABEL: .entry row(
// PTX: st.shared
// PTX: griddepcontrol.wait;
// PTX: ld.global.cg.b32
// PTX: ld.global.b32
// PTX-NOT: .nc
// PTX: ret;
gpu.module @row {
  gpu.func @row(%x: memref<?xf32>, %w: memref<?xf32>, %y: memref<?xf32>) workgroup(%s : memref<128xi32, #shared>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %n = memref.dim %x, %c0 : memref<?xf32>
    %n32 = arith.index_cast %n : index to i32
    // CHECK: memref.store
    memref.store %n32, %s[%t] : memref<128xi32, #shared>
    // CHECK: memref.cast
    %view = memref.cast %x : memref<?xf32> to memref<128xf32>
    // CHECK-NEXT: nvvm.griddepcontrol wait
    // CHECK-NEXT: vector.load
    // CHECK-NOT: griddepcontrol
    %v = vector.load %view[%t] {alignment = 4 : i64, nontemporal = true} : memref<128xf32>, vector<1xf32>
    %a = vector.extract %v[0] : f32 from vector<1xf32>
    %b = memref.load %w[%t] : memref<?xf32>
    %i = memref.load %s[%t] : memref<128xi32, #shared>
    %f = arith.sitofp %i : i32 to f32
    %c = arith.addf %a, %b : f32
    %d = arith.addf %c, %f : f32
    memref.store %d, %y[%t] : memref<?xf32>
    gpu.return
  }
}

// -----

// Threads that access nothing wait too: blocks end in the order of kernels only if every one of them has waited.
// CHECK-LABEL: gpu.func @clipped
// REMARK: applied: clipped waits for its predecessor before scf.if
gpu.module @clipped {
  gpu.func @clipped(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %n = memref.dim %x, %c0 : memref<?xf32>
    %inside = arith.cmpi slt, %t, %n : index
    // CHECK: nvvm.griddepcontrol wait
    // CHECK-NEXT: scf.if
    // CHECK-NOT: griddepcontrol
    scf.if %inside {
      scf.for %i = %c0 to %n step %n {
        memref.store %zero, %x[%t] : memref<?xf32>
      }
    }
    gpu.return
  }
}

// -----

// Semaphores are global memory, shared with other kernels.
// CHECK-LABEL: gpu.func @arrives
gpu.module @arrives {
  gpu.func @arrives(%y: memref<4xi32>, %s: memref<1xi32> {fuse.workspace = "semaphores"}) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %limit = arith.constant 3 : i32
    // CHECK: nvvm.griddepcontrol wait
    // CHECK-NEXT: fuse.semaphore_arrive
    %old = "fuse.semaphore_arrive"(%s, %c0, %limit) : (memref<1xi32>, index, i32) -> i32
    memref.store %old, %y[%c0] : memref<4xi32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @quiet
// CHECK-NOT: griddepcontrol
// REMARK: declined: the kernel touches no global memory
gpu.module @quiet {
  gpu.func @quiet(%x: memref<?xf32>) workgroup(%s : memref<1xf32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    memref.store %zero, %s[%c0] : memref<1xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// -----

// All memory but shared memory is global, whatever the form of its address space.
// CHECK-LABEL: gpu.func @spaces
gpu.module @spaces {
  gpu.func @spaces(%x: memref<?xf32, 1>, %y: memref<?xf32, #gpu.address_space<global>>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    // CHECK: nvvm.griddepcontrol wait
    // CHECK-NEXT: memref.load
    %v = memref.load %x[%c0] : memref<?xf32, 1>
    memref.store %v, %y[%c0] : memref<?xf32, #gpu.address_space<global>>
    gpu.return
  }
}
