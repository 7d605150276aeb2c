// y = x - (the sums of x's columns), in a tile program: all blocks wait for all, each then adds the sums of all.
func.func private @tile_centre_kernel(%x: memref<?x256xf32> {fuse.name = "x", fuse.align = 16 : i64}, %y: memref<?x256xf32>,
    %semaphores: memref<1xi32> {fuse.workspace = "semaphores"},
    %parts: memref<?x256xf32> {fuse.workspace = "scratch", fuse.workspace_extents = affine_map<()[s0] -> (s0)>,
                               fuse.workspace_operands = array<i64: -1, 2>})
    attributes {fuse.kernel, fuse.cooperative, fuse.schedule = {tile = array<i64: 1, 256>, layout = #layout}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1x256xf32>
  %rows = memref.dim %x, %c0 : memref<?x256xf32>
  %resident = "fuse.resident_blocks"() {per_sm = 2 : i64} : () -> index
  %blocks = affine.min affine_map<()[s0, s1] -> (s0, s1)>()[%rows, %resident]
  %twice = arith.muli %blocks, %c2 : index
  %limit_index = arith.subi %twice, %c1 : index
  %limit = arith.index_cast %limit_index : index to i32
  %all = arith.index_cast %blocks : index to i32
  scf.forall (%b) in (%blocks) {
    %part = scf.for %i = %b to %rows step %blocks iter_args(%sum = %zero) -> vector<1x256xf32> {
      %v = vector.transfer_read %x[%i, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
      %w = arith.addf %sum, %v : vector<1x256xf32>
      scf.yield %w : vector<1x256xf32>
    }
    vector.transfer_write %part, %parts[%b, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
    %arrived = "fuse.semaphore_arrive"(%semaphores, %c0, %limit) : (memref<1xi32>, index, i32) -> i32
    "fuse.semaphore_wait"(%semaphores, %c0, %all) : (memref<1xi32>, index, i32) -> ()
    %departed = "fuse.semaphore_arrive"(%semaphores, %c0, %limit) {relaxed} : (memref<1xi32>, index, i32) -> i32
    %total = scf.for %i = %c0 to %blocks step %c1 iter_args(%sum = %zero) -> vector<1x256xf32> {
      %v = vector.transfer_read %parts[%i, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
      %w = arith.addf %sum, %v : vector<1x256xf32>
      scf.yield %w : vector<1x256xf32>
    }
    scf.for %i = %b to %rows step %blocks {
      %v = vector.transfer_read %x[%i, %c0], %pad {fuse.layout = #layout, in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
      %w = arith.subf %v, %total : vector<1x256xf32>
      vector.transfer_write %w, %y[%i, %c0] {fuse.layout = #layout, in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}
func.func @tile_centre(%x: tensor<?x256xf32> {fuse.name = "x"}) -> tensor<?x256xf32> {
  %0 = call @tile_centre_0(%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}
func.func private @tile_centre_0(tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {fuse.launch = @tile_centre_kernel, fuse.result_extents = array<i64: 0, 0>}
