// Four blocks of 32 threads share a row of 128 numbers: each tells all of its cluster what it has summed.
gpu.module @cluster_sum_kernel {
  gpu.func @cluster_sum_kernel(%x: memref<?x128xf32> {fuse.name = "x"}, %y: memref<?x128xf32> {fuse.name = "y"})
      workgroup(%inbox : memref<4xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>,
                         fuse.grid = affine_map<()[s0] -> (s0 * 4)>, fuse.grid_operands = array<i64: 0, 0>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %i4 = arith.constant 4 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant 0.0 : f32
    %thread = gpu.thread_id x
    %row = gpu.cluster_id x
    %rank = gpu.cluster_block_id x
    %begin = arith.muli %rank, %c32 : index
    %column = arith.addi %begin, %thread : index
    %p0 = memref.load %x[%row, %column] : memref<?x128xf32>
    %p0s, %p0v = gpu.shuffle xor %p0, %i16, %i32 : f32
    %p1 = arith.addf %p0, %p0s : f32
    %p1s, %p1v = gpu.shuffle xor %p1, %i8, %i32 : f32
    %p2 = arith.addf %p1, %p1s : f32
    %p2s, %p2v = gpu.shuffle xor %p2, %i4, %i32 : f32
    %p3 = arith.addf %p2, %p2s : f32
    %p3s, %p3v = gpu.shuffle xor %p3, %i2, %i32 : f32
    %p4 = arith.addf %p3, %p3s : f32
    %p4s, %p4v = gpu.shuffle xor %p4, %i1, %i32 : f32
    %p5 = arith.addf %p4, %p4s : f32
    "fuse.cluster_barrier"() : () -> ()
    %sender = arith.cmpi ult, %thread, %c4 : index
    scf.if %sender {
      "fuse.cluster_store"(%p5, %inbox, %rank, %thread)
        : (f32, memref<4xf32, #gpu.address_space<workgroup>>, index, index) -> ()
    }
    "fuse.cluster_barrier"() : () -> ()
    %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> f32 {
      %part = memref.load %inbox[%k] : memref<4xf32, #gpu.address_space<workgroup>>
      %next = arith.addf %acc, %part : f32
      scf.yield %next : f32
    }
    %share = arith.divf %p0, %sum : f32
    memref.store %share, %y[%row, %column] : memref<?x128xf32>
    gpu.return
  }
}
