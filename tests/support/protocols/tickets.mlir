// y = x * 2. Blocks that stay draw row after row until there are none left.
gpu.module @tickets_kernel {
  gpu.func @tickets_kernel(%x: memref<?x128xf32> {fuse.name = "x"}, %y: memref<?x128xf32>,
      %semaphores: memref<1xi32> {fuse.workspace = "semaphores"})
      workgroup(%told: memref<1xi32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, fuse.grid = affine_map<()[s0, s1] -> (s0, s1)>,
                         fuse.grid_operands = array<i64: 0, 0, -1, 2>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %two = arith.constant 2.0 : f32
    %t = gpu.thread_id x
    %blocks = gpu.grid_dim x
    %rows = memref.dim %x, %c0 : memref<?x128xf32>
    %is_first = arith.cmpi eq, %t, %c0 : index
    %takes = arith.addi %rows, %blocks : index
    %limit_index = arith.subi %takes, %c1 : index
    %limit = arith.index_cast %limit_index : index to i32
    scf.while : () -> () {
      gpu.barrier
      scf.if %is_first {
        %ticket = "fuse.semaphore_arrive"(%semaphores, %c0, %limit) {relaxed} : (memref<1xi32>, index, i32) -> i32
        memref.store %ticket, %told[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      %drawn = memref.load %told[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
      %row = arith.index_cast %drawn : i32 to index
      %is_row = arith.cmpi ult, %row, %rows : index
      scf.if %is_row {
        %v = memref.load %x[%row, %t] : memref<?x128xf32>
        %w = arith.mulf %v, %two : f32
        memref.store %w, %y[%row, %t] : memref<?x128xf32>
      }
      scf.condition(%is_row)
    } do {
      scf.yield
    }
    gpu.return
  }
}
func.func @tickets(%x: tensor<?x128xf32> {fuse.name = "x"}) -> tensor<?x128xf32> {
  %0 = call @tickets_0(%x) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
func.func private @tickets_0(tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {fuse.launch = @tickets_kernel, fuse.result_extents = array<i64: 0, 0>}
