// One row a block, eight columns a thread; two reductions through shuffles and shared memory.
gpu.module @layer_norm_kernel {
  gpu.func @layer_norm_kernel(%x: memref<?x1000xf16> {fuse.align = 16 : i64, fuse.name = "x"},
                              %w: memref<1000xf16> {fuse.align = 16 : i64, fuse.name = "w"},
                              %y: memref<?x1000xf16> {fuse.align = 16 : i64, fuse.name = "y"})
      workgroup(%sums : memref<4xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>,
                         fuse.grid = affine_map<()[s0] -> (s0)>, fuse.grid_operands = array<i64: 0, 0>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %c1000 = arith.constant 1000 : index
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %i4 = arith.constant 4 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant 0.0 : f32
    %zeros = arith.constant dense<0.0> : vector<8xf32>
    %pad = arith.constant dense<0.0> : vector<8xf16>
    %n = arith.constant 1000.0 : f32
    %eps = arith.constant 1.0e-5 : f32
    %thread = gpu.thread_id x
    %row = gpu.block_id x
    %warp = arith.divui %thread, %c32 : index
    %lane = arith.remui %thread, %c32 : index
    %leader = arith.cmpi eq, %lane, %c0 : index
    %column = arith.muli %thread, %c8 : index
    %inside = arith.cmpi ult, %column, %c1000 : index
    %raw = scf.if %inside -> vector<8xf16> {
      %v = vector.load %x[%row, %column] {alignment = 16 : i64} : memref<?x1000xf16>, vector<8xf16>
      scf.yield %v : vector<8xf16>
    } else {
      scf.yield %pad : vector<8xf16>
    }
    %h = arith.extf %raw : vector<8xf16> to vector<8xf32>

    // mean
    %p0 = vector.reduction <add>, %h : vector<8xf32> into f32
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
    scf.if %leader {
      memref.store %p5, %sums[%warp] : memref<4xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> f32 {
      %part = memref.load %sums[%k] : memref<4xf32, #gpu.address_space<workgroup>>
      %next = arith.addf %acc, %part : f32
      scf.yield %next : f32
    }
    %mean = arith.divf %sum, %n : f32
    %means = vector.broadcast %mean : f32 to vector<8xf32>
    %centred = arith.subf %h, %means : vector<8xf32>

    // variance
    %square = arith.mulf %centred, %centred : vector<8xf32>
    %kept = arith.select %inside, %square, %zeros : vector<8xf32>
    %q0 = vector.reduction <add>, %kept : vector<8xf32> into f32
    %q0s, %q0v = gpu.shuffle xor %q0, %i16, %i32 : f32
    %q1 = arith.addf %q0, %q0s : f32
    %q1s, %q1v = gpu.shuffle xor %q1, %i8, %i32 : f32
    %q2 = arith.addf %q1, %q1s : f32
    %q2s, %q2v = gpu.shuffle xor %q2, %i4, %i32 : f32
    %q3 = arith.addf %q2, %q2s : f32
    %q3s, %q3v = gpu.shuffle xor %q3, %i2, %i32 : f32
    %q4 = arith.addf %q3, %q3s : f32
    %q4s, %q4v = gpu.shuffle xor %q4, %i1, %i32 : f32
    %q5 = arith.addf %q4, %q4s : f32
    gpu.barrier
    scf.if %leader {
      memref.store %q5, %sums[%warp] : memref<4xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %sum2 = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> f32 {
      %part = memref.load %sums[%k] : memref<4xf32, #gpu.address_space<workgroup>>
      %next = arith.addf %acc, %part : f32
      scf.yield %next : f32
    }
    %variance = arith.divf %sum2, %n : f32
    %shifted = arith.addf %variance, %eps : f32
    %scale = math.rsqrt %shifted : f32
    %scales = vector.broadcast %scale : f32 to vector<8xf32>
    %normal = arith.mulf %centred, %scales : vector<8xf32>
    scf.if %inside {
      %g = vector.load %w[%column] {alignment = 16 : i64} : memref<1000xf16>, vector<8xf16>
      %g32 = arith.extf %g : vector<8xf16> to vector<8xf32>
      %scaled = arith.mulf %normal, %g32 : vector<8xf32>
      %out = arith.truncf %scaled : vector<8xf32> to vector<8xf16>
      vector.store %out, %y[%row, %column] {alignment = 16 : i64} : memref<?x1000xf16>, vector<8xf16>
    }
    gpu.return
  }
}
func.func private @layer_norm_0(tensor<?x1000xf16>, tensor<1000xf16>) -> tensor<?x1000xf16>
    attributes {fuse.launch = @layer_norm_kernel, fuse.result_extents = array<i64: 0, 0>}
func.func @layer_norm(%x: tensor<?x1000xf16> {fuse.name = "x"}, %w: tensor<1000xf16> {fuse.name = "w"}) -> tensor<?x1000xf16> {
  %0 = call @layer_norm_0(%x, %w) : (tensor<?x1000xf16>, tensor<1000xf16>) -> tensor<?x1000xf16>
  return %0 : tensor<?x1000xf16>
}
