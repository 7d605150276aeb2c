// RUN: mlirfuse-opt --fuse-hint-extents --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: not mlirfuse-opt --fuse-hint-extents --split-input-file --show-remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// The hints of views, of kernels' results and of sizes that the host computes follow from those of the arguments. A
// kernel's own hint from before is replaced.
// CHECK-LABEL: func.func @f(
// CHECK-DAG: func.func private @rows(%{{.*}}: tensor<?x32xf32> {fuse.extent_hints = array<i64: 6144, 0>})
// CHECK-DAG: func.func private @use(%{{.*}}: tensor<?x32xf32> {fuse.extent_hints = array<i64: 6144, 0>}, %{{.*}}: tensor<?xf32> {fuse.extent_hints = array<i64: 6144>}, %{{.*}}: tensor<32xf32>)
func.func @f(%x: tensor<?x?x32xf32> {fuse.extent_hints = array<i64: 2048, 3, 0>}, %w: tensor<32xf32>) -> tensor<?x32xf32> {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x32xf32> into tensor<?x32xf32>
  %1 = call @rows(%0) : (tensor<?x32xf32>) -> tensor<?xf32>
  %2 = call @use(%0, %1, %w) : (tensor<?x32xf32>, tensor<?xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  return %2 : tensor<?x32xf32>
}
func.func private @rows(%x: tensor<?x32xf32> {fuse.extent_hints = array<i64: 5, 0>}) -> tensor<?xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x32xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x32xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @use(%x: tensor<?x32xf32>, %s: tensor<?xf32>, %w: tensor<32xf32>) -> tensor<?x32xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  return %x : tensor<?x32xf32>
}

// -----

// Sizes of slices and of expanded shapes are numbers that the host computes; of an extent that nothing is expected of,
// nothing follows.
// CHECK-LABEL: func.func @sizes(
// CHECK: func.func private @k(%{{.*}}: tensor<?x4xf32> {fuse.extent_hints = array<i64: 25, 0>}, %{{.*}}: tensor<?xf32> {fuse.extent_hints = array<i64: 99>}, %{{.*}}: tensor<?xf32>)
func.func @sizes(%x: tensor<?xf32> {fuse.extent_hints = array<i64: 100>}, %y: tensor<?xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %rows = arith.divui %n, %c4 : index
  %0 = tensor.expand_shape %x [[0, 1]] output_shape [%rows, 4] : tensor<?xf32> into tensor<?x4xf32>
  %less = arith.subi %n, %c1 : index
  %1 = tensor.extract_slice %x[1] [%less] [1] : tensor<?xf32> to tensor<?xf32>
  %2 = call @k(%0, %1, %y) : (tensor<?x4xf32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}
func.func private @k(%x: tensor<?x4xf32>, %y: tensor<?xf32>, %z: tensor<?xf32>) -> tensor<?x4xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  return %x : tensor<?x4xf32>
}

// -----

// Without a hint on the host function, a kernel keeps its own.
// CHECK-LABEL: func.func @none(
// CHECK: func.func private @k(%{{.*}}: tensor<?xf32> {fuse.extent_hints = array<i64: 7>})
// REMARK: no argument has a hint
func.func @none(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @k(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @k(%x: tensor<?xf32> {fuse.extent_hints = array<i64: 7>}) -> tensor<?xf32> attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  return %x : tensor<?xf32>
}

// -----

// expected-error @+1 {{extent_hints}}
func.func @wrong(%x: tensor<?xf32> {fuse.extent_hints = array<i64: -1>}) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
