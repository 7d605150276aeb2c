// y = (...(x[0] / 2 + x[1]) / 2 + ...) / 2 + x[n-1]: blocks take turns, in the order of the tickets that they drew.
gpu.module @serial_kernel {
  gpu.func @serial_kernel(%x: memref<?x128xf32> {fuse.name = "x"}, %y: memref<128xf32>,
      %semaphores: memref<2xi32> {fuse.workspace = "semaphores"},
      %running: memref<128xf32> {fuse.workspace = "scratch"})
      workgroup(%told: memref<1xi32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, fuse.grid = affine_map<()[s0] -> (s0)>,
                         fuse.grid_operands = array<i64: 0, 0>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %half = arith.constant 0.5 : f32
    %zero = arith.constant 0 : i32
    %t = gpu.thread_id x
    %blocks = gpu.grid_dim x
    %is_first = arith.cmpi eq, %t, %c0 : index
    %limit_index = arith.subi %blocks, %c1 : index
    %limit = arith.index_cast %limit_index : index to i32
    scf.if %is_first {
      %ticket = "fuse.semaphore_arrive"(%semaphores, %c0, %limit) {relaxed} : (memref<2xi32>, index, i32) -> i32
      memref.store %ticket, %told[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
      "fuse.semaphore_wait"(%semaphores, %c1, %ticket) : (memref<2xi32>, index, i32) -> ()
    }
    gpu.barrier
    %turn = memref.load %told[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
    %row = arith.index_cast %turn : i32 to index
    %v = memref.load %x[%row, %t] : memref<?x128xf32>
    %begins = arith.cmpi eq, %turn, %zero : i32
    %new = scf.if %begins -> f32 {
      scf.yield %v : f32
    } else {
      %before = memref.load %running[%t] : memref<128xf32>
      %halved = arith.mulf %before, %half : f32
      %sum = arith.addf %halved, %v : f32
      scf.yield %sum : f32
    }
    %ends = arith.cmpi eq, %turn, %limit : i32
    scf.if %ends {
      memref.store %new, %y[%t] : memref<128xf32>
    } else {
      memref.store %new, %running[%t] : memref<128xf32>
    }
    gpu.barrier
    scf.if %is_first {
      %old = "fuse.semaphore_arrive"(%semaphores, %c1, %limit) : (memref<2xi32>, index, i32) -> i32
    }
    gpu.return
  }
}
func.func @serial(%x: tensor<?x128xf32> {fuse.name = "x"}) -> tensor<128xf32> {
  %0 = call @serial_0(%x) : (tensor<?x128xf32>) -> tensor<128xf32>
  return %0 : tensor<128xf32>
}
func.func private @serial_0(tensor<?x128xf32>) -> tensor<128xf32>
    attributes {fuse.launch = @serial_kernel, fuse.result_extents = array<i64>}
