// Without --verify-each nothing but the pass itself looks at the ops.
// RUN: mlirfuse-opt --fuse-verify --verify-each=false --split-input-file --verify-diagnostics %s

func.func @moments(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %m2 : tensor<4xf32>
}

// -----

func.func @dimension_out_of_range(%x: tensor<4x8xf32>) {
  // expected-error @below {{'fuse.moments' op dims [2] must be ascending dimensions of tensor<4x8xf32>}}
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 2>} : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @wrong_result_shape(%x: tensor<4x8xf32>) {
  // expected-error @below {{result tensor<8xf32> must have the shape [4] that dims [1] leave of tensor<4x8xf32>}}
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @global_buffer(%value: f32, %buffer: memref<64xf32>, %i: index) {
  // expected-error @below {{'fuse.cluster_store' op buffer memref<64xf32> must be}}
  "fuse.cluster_store"(%value, %buffer, %i, %i) : (f32, memref<64xf32>, index, index) -> ()
  return
}

// -----

func.func @irdl_checks_counts_itself(%x: tensor<4x8xf32>) {
  // expected-error @below {{expects exactly 1 operands, but got 2}}
  %sum, %m2 = "fuse.moments"(%x, %x) {dims = array<i64: 1>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @slot_of_another_type(%x: memref<?x64xbf16>, %slot: memref<16x64xf16, #shared>, %i: index) {
  // expected-error @below {{the slot's element type f16 must be the source's, bf16}}
  "fuse.copy_tile"(%x, %slot, %i, %i) {axes = array<i64: 0, 1>, clipped = array<i64>}
      : (memref<?x64xbf16>, memref<16x64xf16, #shared>, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @one_axis_twice(%x: memref<?x64xf16>, %slot: memref<16x64xf16, #shared>, %i: index) {
  // expected-error @below {{axes [1, 1] must name a different axis}}
  "fuse.copy_tile"(%x, %slot, %i, %i) {axes = array<i64: 1, 1>, clipped = array<i64>}
      : (memref<?x64xf16>, memref<16x64xf16, #shared>, index, index) -> ()
  return
}

// -----

func.func @fragments_of_integers(%a: vector<8xi16>, %b: vector<4xi16>, %c: vector<4xf32>) {
  // expected-error @below {{must be vector<8xT>, vector<4xT>, vector<4xf32>, vector<4xf32> of f16 or bf16, or vector<4xtf32>, vector<2xtf32>, vector<4xf32>, vector<4xf32>}}
  %d = "fuse.mma"(%a, %b, %c) : (vector<8xi16>, vector<4xi16>, vector<4xf32>) -> vector<4xf32>
  return
}

// -----

func.func @fragments_of_tf32(%a: vector<8xtf32>, %b: vector<4xtf32>, %c: vector<4xf32>) {
  // expected-error @below {{types vector<8xtf32>, vector<4xtf32>, vector<4xf32>, vector<4xf32> must be}}
  %d = "fuse.mma"(%a, %b, %c) : (vector<8xtf32>, vector<4xtf32>, vector<4xf32>) -> vector<4xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @fragments_into_a_slot(%x: memref<?x64xf16>, %slot: memref<2x64xf16, #shared>, %i: index) {
  "fuse.copy_fragments"(%x, %slot, %i, %i) {tile = array<i64: 2, 60>, permutation_map = #id, in_bounds = [false, true]}
      : (memref<?x64xf16>, memref<2x64xf16, #shared>, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @fragments_of_another_type(%x: memref<?x64xbf16>, %slot: memref<2x64xf16, #shared>, %i: index) {
  // expected-error @below {{'fuse.copy_fragments' op the slot's element type f16 must be the source's, bf16}}
  "fuse.copy_fragments"(%x, %slot, %i, %i) {tile = array<i64: 2, 64>, permutation_map = #id, in_bounds = [false, true]}
      : (memref<?x64xbf16>, memref<2x64xf16, #shared>, index, index) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @fragments_into_device_memory(%x: memref<?x64xf16>, %slot: memref<2x64xf16>, %i: index) {
  // expected-error @below {{slot memref<2x64xf16> must be in workgroup memory, with a static shape}}
  "fuse.copy_fragments"(%x, %slot, %i, %i) {tile = array<i64: 2, 64>, permutation_map = #id, in_bounds = [false, true]}
      : (memref<?x64xf16>, memref<2x64xf16>, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @fragments_from_one_offset(%x: memref<?x64xf16>, %slot: memref<2x64xf16, #shared>, %i: index) {
  // expected-error @below {{source memref<?x64xf16> needs 2 offsets, not 1}}
  "fuse.copy_fragments"(%x, %slot, %i) {tile = array<i64: 2, 64>, permutation_map = #id, in_bounds = [false, true]}
      : (memref<?x64xf16>, memref<2x64xf16, #shared>, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @fragments_of_another_rank(%x: memref<?x64xf16>, %slot: memref<2x64xf16, #shared>, %i: index) {
  // expected-error @below {{a tile of [1, 2, 64] needs a slot of as many dimensions, not memref<2x64xf16}}
  "fuse.copy_fragments"(%x, %slot, %i, %i) {tile = array<i64: 1, 2, 64>, permutation_map = #id, in_bounds = [false, true]}
      : (memref<?x64xf16>, memref<2x64xf16, #shared>, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @view_of_another_shape(%buffer: memref<8xf32, #shared>, %rank: index) {
  %0 = "fuse.cluster_view"(%buffer, %rank) : (memref<8xf32, #shared>, index) -> memref<8xf32, 7>
  // expected-error @below {{result memref<4xf32, 7> must be memref<8xf32, 7>}}
  %1 = "fuse.cluster_view"(%buffer, %rank) : (memref<8xf32, #shared>, index) -> memref<4xf32, 7>
  return
}

// -----

func.func @elements_that_are_no_floats(%x: tensor<4x8xi32>) {
  // expected-error @below {{'fuse.moments' op elements must be floats, not i32}}
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<4x8xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  return
}

// -----

func.func @results_of_another_type(%x: tensor<4x8xf32>) {
  // expected-error @below {{elements of result tensor<4xf16> must be the source's, f32}}
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (tensor<4x8xf32>) -> (tensor<4xf16>, tensor<4xf16>)
  return
}

// -----

func.func @no_tensor(%x: f32) {
  // expected-error @below {{'fuse.moments' op needs another kind of operand or attribute: Cannot cast type to ShapedType (from Type(f32))}}
  %sum, %m2 = "fuse.moments"(%x) {dims = array<i64: 1>} : (f32) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @no_array(%x: tensor<4x8xf32>) {
  // expected-error @below {{'fuse.moments' op needs another kind of operand or attribute: Cannot cast attribute to DenseI64ArrayAttr}}
  %sum, %m2 = "fuse.moments"(%x) {dims = [1]} : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @value_of_another_type(%value: f16, %buffer: memref<64xf32, #shared>, %i: index) {
  // expected-error @below {{'fuse.cluster_store' op a value of f16 for elements of memref<64xf32, #gpu.address_space<workgroup>>}}
  "fuse.cluster_store"(%value, %buffer, %i, %i) : (f16, memref<64xf32, #shared>, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @rank_that_is_no_index(%value: f32, %buffer: memref<64xf32, #shared>, %i: index, %rank: i32) {
  // expected-error @below {{'fuse.cluster_store' op rank must be an index, not i32}}
  "fuse.cluster_store"(%value, %buffer, %i, %rank) : (f32, memref<64xf32, #shared>, index, i32) -> ()
  return
}

// -----

func.func @part_of_an_operand(%a: vector<64x128xf16>) {
  %0 = "fuse.operand_tile"(%a) {first = 48 : i64, transposed} : (vector<64x128xf16>) -> vector<1x128x16xf16>
  // expected-error @below {{vector<64x128xf16> from element 64 on is no part of vector<64x128xf16>}}
  %1 = "fuse.operand_tile"(%a) {first = 64 : i64} : (vector<64x128xf16>) -> vector<64x128xf16>
  return
}

// -----

func.func @operand_of_another_type(%a: vector<64x128xf16>) {
  // expected-error @below {{elements of vector<64x128xf16> and vector<64x128xf32> differ}}
  %0 = "fuse.operand_tile"(%a) {first = 0 : i64} : (vector<64x128xf16>) -> vector<64x128xf32>
  return
}

// -----

func.func @classes(%v: tensor<2x8x16xf16>) -> tensor<15x16xf16> {
  %0 = "fuse.scatter"(%v) {basis = array<i64: 2, 8, 16>, sources = array<i64>, ranks = array<i64: 1, 1, 1>,
      map = affine_map<(a, h, c) -> (h * 2 + a, c)>} : (tensor<2x8x16xf16>) -> tensor<15x16xf16>
  return %0 : tensor<15x16xf16>
}

// -----

func.func @positions_twice(%v: tensor<2x8x16xf16>) -> tensor<9x16xf16> {
  // expected-error @below {{reaches positions twice, or not at all}}
  %0 = "fuse.scatter"(%v) {basis = array<i64: 2, 8, 16>, sources = array<i64>, ranks = array<i64: 1, 1, 1>,
      map = affine_map<(a, h, c) -> (h + a, c)>} : (tensor<2x8x16xf16>) -> tensor<9x16xf16>
  return %0 : tensor<9x16xf16>
}

// -----

func.func @positions_left_out(%v: tensor<2x8x16xf16>) -> tensor<17x16xf16> {
  // expected-error @below {{index 0 of map (d0, d1, d2) -> (d1 * 2 + d0, d2) leaves out positions below 17}}
  %0 = "fuse.scatter"(%v) {basis = array<i64: 2, 8, 16>, sources = array<i64>, ranks = array<i64: 1, 1, 1>,
      map = affine_map<(a, h, c) -> (h * 2 + a, c)>} : (tensor<2x8x16xf16>) -> tensor<17x16xf16>
  return %0 : tensor<17x16xf16>
}

// -----

func.func @one_position(%v: tensor<2x8xf16>) -> tensor<8xf16> {
  // expected-error @below {{puts elements of component 0 at one position}}
  %0 = "fuse.scatter"(%v) {basis = array<i64: 2, 8>, sources = array<i64>, ranks = array<i64: 1, 1>, map = affine_map<(a, h) -> (h)>}
      : (tensor<2x8xf16>) -> tensor<8xf16>
  return %0 : tensor<8xf16>
}

// -----

func.func @no_linear_position(%v: tensor<8xf16>) -> tensor<4x2xf16> {
  // expected-error @below {{index 0 of map (d0) -> (d0 floordiv 2, d0 mod 2) is not linear}}
  %0 = "fuse.scatter"(%v) {basis = array<i64: 8>, sources = array<i64>, ranks = array<i64: 1>, map = affine_map<(h) -> (h floordiv 2, h mod 2)>}
      : (tensor<8xf16>) -> tensor<4x2xf16>
  return %0 : tensor<4x2xf16>
}

// -----

func.func @scattered_value_is_read(%v: tensor<8xf16>) -> tensor<2x4xf16> {
  // expected-error @below {{its result may only be returned}}
  %0 = "fuse.scatter"(%v) {basis = array<i64: 8>, sources = array<i64>, ranks = array<i64: 1>, map = affine_map<(h) -> (h)>}
      : (tensor<8xf16>) -> tensor<8xf16>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [2, 4] : tensor<8xf16> into tensor<2x4xf16>
  return %1 : tensor<2x4xf16>
}

// -----

func.func @two_sources(%v: tensor<8x16xf16>) -> tensor<15x16xf16> {
  %0 = "fuse.scatter"(%v, %v) {basis = array<i64: 8, 16>, sources = array<i64: 2>, ranks = array<i64: 1, 1>,
      map = affine_map<(h, c, a) -> (h * 2 + a, c)>} : (tensor<8x16xf16>, tensor<8x16xf16>) -> tensor<15x16xf16>
  return %0 : tensor<15x16xf16>
}

// -----

func.func @number_of_sources(%v: tensor<8x16xf16>) -> tensor<15x16xf16> {
  // expected-error @below {{there must be 2 sources of one type}}
  %0 = "fuse.scatter"(%v) {basis = array<i64: 8, 16>, sources = array<i64: 2>, ranks = array<i64: 1, 1>,
      map = affine_map<(h, c, a) -> (h * 2 + a, c)>} : (tensor<8x16xf16>) -> tensor<15x16xf16>
  return %0 : tensor<15x16xf16>
}

// -----

func.func @view_of_one_source(%y: memref<15x16xf16>) {
  %0 = "fuse.scattered"(%y) {basis = array<i64: 8, 16>, ranks = array<i64: 1, 1>,
      map = affine_map<(h, c) -> (h * 2 + 1, c)>} : (memref<15x16xf16>) -> memref<8x16xf16, strided<[16, 1]>>
  // expected-error @below {{reaches positions twice, or not at all}}
  %1 = "fuse.scattered"(%y) {basis = array<i64: 2, 8, 16>, ranks = array<i64: 2, 1>,
      map = affine_map<(a, h, c) -> (h + a, c)>} : (memref<15x16xf16>) -> memref<16x16xf16, strided<[16, 1]>>
  return
}

// -----

func.func @shape_of_a_scattered_view(%y: memref<15x16xf16>) {
  // expected-error @below {{the source's shape must be (2, 8, 16), not [2, 128]}}
  %0 = "fuse.scattered"(%y) {basis = array<i64: 2, 8, 16>, ranks = array<i64: 1, 1, 1>,
      map = affine_map<(a, h, c) -> (h * 2 + a, c)>} : (memref<15x16xf16>) -> memref<2x128xf16, strided<[16, 1]>>
  return
}

// -----

func.func @elements_of_a_scattered_view(%y: memref<16x16xf16>) {
  // expected-error @below {{must have static shapes and one element type}}
  %0 = "fuse.scattered"(%y) {basis = array<i64: 16, 16>, ranks = array<i64: 1, 1>,
      map = affine_map<(h, c) -> (h, c)>} : (memref<16x16xf16>) -> memref<16x16xf32, strided<[16, 1]>>
  return
}

// -----

func.func @elements_of_checks(%x: memref<2x8x16xf16>) {
  // expected-error @below {{elements of the view must be i1, not f16}}
  %0 = "fuse.gathered_view"(%x) {basis = array<i64: 2, 8, 3, 16>, ranks = array<i64: 2, 2>, inside = array<i64: 2, 8, 16>,
      map = affine_map<(n, p, r, c) -> (n, p + r - 1, c)>} : (memref<2x8x16xf16>) -> memref<16x48xf16, strided<[16, 1]>>
  return
}
