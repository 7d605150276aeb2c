// Sums the rows of x. Each block leaves its row in scratch memory and arrives; the last one adds all of them.
gpu.module @last_block_kernel {
  gpu.func @last_block_kernel(%x: memref<?x128xf32> {fuse.name = "x"}, %y: memref<128xf32>,
      %semaphores: memref<1xi32> {fuse.workspace = "semaphores"},
      %parts: memref<?x128xf32> {fuse.workspace = "scratch", fuse.workspace_extents = affine_map<()[s0] -> (s0)>,
                                 fuse.workspace_operands = array<i64: 0, 0>})
      workgroup(%told: memref<1xi32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, fuse.grid = affine_map<()[s0] -> (s0)>,
                         fuse.grid_operands = array<i64: 0, 0>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %blocks = gpu.grid_dim x
    %is_first = arith.cmpi eq, %t, %c0 : index
    %limit_index = arith.subi %blocks, %c1 : index
    %limit = arith.index_cast %limit_index : index to i32
    %v = memref.load %x[%b, %t] : memref<?x128xf32>
    memref.store %v, %parts[%b, %t] : memref<?x128xf32>
    gpu.barrier
    scf.if %is_first {
      %old = "fuse.semaphore_arrive"(%semaphores, %c0, %limit) : (memref<1xi32>, index, i32) -> i32
      memref.store %old, %told[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %seen = memref.load %told[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
    %is_last = arith.cmpi eq, %seen, %limit : i32
    scf.if %is_last {
      %sum = scf.for %i = %c0 to %blocks step %c1 iter_args(%partial = %zero) -> f32 {
        %part = memref.load %parts[%i, %t] : memref<?x128xf32>
        %more = arith.addf %partial, %part : f32
        scf.yield %more : f32
      }
      memref.store %sum, %y[%t] : memref<128xf32>
    }
    gpu.return
  }
}
func.func @last_block(%x: tensor<?x128xf32> {fuse.name = "x"}) -> tensor<128xf32> {
  %0 = call @last_block_0(%x) : (tensor<?x128xf32>) -> tensor<128xf32>
  return %0 : tensor<128xf32>
}
func.func private @last_block_0(tensor<?x128xf32>) -> tensor<128xf32>
    attributes {fuse.launch = @last_block_kernel, fuse.result_extents = array<i64>}
