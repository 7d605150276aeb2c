// y = x - s - c, where s are the sums of x's columns and c the sums of x - s. Every block needs the sums of all blocks,
// twice: each sum ends at a barrier of the whole grid.
gpu.module @grid_barrier_kernel {
  gpu.func @grid_barrier_kernel(%x: memref<?x128xf32> {fuse.name = "x"}, %y: memref<?x128xf32>,
      %semaphores: memref<2xi32> {fuse.workspace = "semaphores"},
      %parts: memref<2x?x128xf32> {fuse.workspace = "scratch", fuse.workspace_extents = affine_map<()[s0] -> (s0)>,
                                   fuse.workspace_operands = array<i64: -1, 2>})
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, fuse.cooperative,
                         fuse.grid = affine_map<()[s0, s1] -> (s0, s1)>, fuse.grid_operands = array<i64: 0, 0, -1, 2>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %blocks = gpu.grid_dim x
    %rows = memref.dim %x, %c0 : memref<?x128xf32>
    %is_first = arith.cmpi eq, %t, %c0 : index
    %twice = arith.addi %blocks, %blocks : index
    %limit_index = arith.subi %twice, %c1 : index
    %limit = arith.index_cast %limit_index : index to i32
    %all = arith.index_cast %blocks : index to i32
    %sum0 = scf.for %row = %b to %rows step %blocks iter_args(%partial = %zero) -> f32 {
      %v = memref.load %x[%row, %t] : memref<?x128xf32>
      %more = arith.addf %partial, %v : f32
      scf.yield %more : f32
    }
    memref.store %sum0, %parts[%c0, %b, %t] : memref<2x?x128xf32>
    gpu.barrier
    scf.if %is_first {
      %arrived = "fuse.semaphore_arrive"(%semaphores, %c0, %limit) : (memref<2xi32>, index, i32) -> i32
      "fuse.semaphore_wait"(%semaphores, %c0, %all) : (memref<2xi32>, index, i32) -> ()
      %departed = "fuse.semaphore_arrive"(%semaphores, %c0, %limit) {relaxed} : (memref<2xi32>, index, i32) -> i32
    }
    gpu.barrier
    %total0 = scf.for %i = %c0 to %blocks step %c1 iter_args(%partial = %zero) -> f32 {
      %part = memref.load %parts[%c0, %i, %t] : memref<2x?x128xf32>
      %more = arith.addf %partial, %part : f32
      scf.yield %more : f32
    }
    %sum1 = scf.for %row = %b to %rows step %blocks iter_args(%partial = %zero) -> f32 {
      %v = memref.load %x[%row, %t] : memref<?x128xf32>
      %w = arith.subf %v, %total0 : f32
      %more = arith.addf %partial, %w : f32
      scf.yield %more : f32
    }
    memref.store %sum1, %parts[%c1, %b, %t] : memref<2x?x128xf32>
    gpu.barrier
    scf.if %is_first {
      %arrived = "fuse.semaphore_arrive"(%semaphores, %c1, %limit) : (memref<2xi32>, index, i32) -> i32
      "fuse.semaphore_wait"(%semaphores, %c1, %all) : (memref<2xi32>, index, i32) -> ()
      %departed = "fuse.semaphore_arrive"(%semaphores, %c1, %limit) {relaxed} : (memref<2xi32>, index, i32) -> i32
    }
    gpu.barrier
    %total1 = scf.for %i = %c0 to %blocks step %c1 iter_args(%partial = %zero) -> f32 {
      %part = memref.load %parts[%c1, %i, %t] : memref<2x?x128xf32>
      %more = arith.addf %partial, %part : f32
      scf.yield %more : f32
    }
    scf.for %row = %b to %rows step %blocks {
      %v = memref.load %x[%row, %t] : memref<?x128xf32>
      %w = arith.subf %v, %total0 : f32
      %u = arith.subf %w, %total1 : f32
      memref.store %u, %y[%row, %t] : memref<?x128xf32>
    }
    gpu.return
  }
}
func.func @grid_barrier(%x: tensor<?x128xf32> {fuse.name = "x"}) -> tensor<?x128xf32> {
  %0 = call @grid_barrier_0(%x) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
func.func private @grid_barrier_0(tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {fuse.launch = @grid_barrier_kernel, fuse.result_extents = array<i64: 0, 0>}
