// RUN: mlirfuse-opt --fuse-window-slices --split-input-file --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

#id = affine_map<(d0, d1) -> (d0, d1)>
// Neighbours: the second slice begins two elements behind the first.
// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[THIRD:.*]] = affine_map<(d0, d1) -> (d0, d1 + 2)>
// CHECK-LABEL: func.func @neighbours
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<64x512xf32>
// CHECK: %[[LEFT:.*]] = "fuse.gathered_view"(%[[X]]) {{.*}}map = #[[FIRST]]
// CHECK: %[[RIGHT:.*]] = "fuse.gathered_view"(%[[X]]) {{.*}}map = #[[THIRD]]
// CHECK: ins(%[[LEFT]], %[[RIGHT]] :
// REMARK: fuse-window-slices: applied: 2 slices are windows of one array
func.func @neighbours(%x: tensor<64x512xf32>) -> tensor<64x510xf32> {
  %left = tensor.extract_slice %x[0, 0] [64, 510] [1, 1] : tensor<64x512xf32> to tensor<64x510xf32>
  %right = tensor.extract_slice %x[0, 2] [64, 510] [1, 1] : tensor<64x512xf32> to tensor<64x510xf32>
  %e = tensor.empty() : tensor<64x510xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%left, %right : tensor<64x510xf32>, tensor<64x510xf32>) outs(%e : tensor<64x510xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.subf %q, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x510xf32>
  return %y : tensor<64x510xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
// Halves are two arrays.
// CHECK-LABEL: func.func @halves
// CHECK-NOT: fuse.gathered_view
// REMARK: fuse-window-slices: declined: the slices do not overlap
func.func @halves(%x: tensor<64x512xf32>) -> tensor<64x256xf32> {
  %left = tensor.extract_slice %x[0, 0] [64, 256] [1, 1] : tensor<64x512xf32> to tensor<64x256xf32>
  %right = tensor.extract_slice %x[0, 256] [64, 256] [1, 1] : tensor<64x512xf32> to tensor<64x256xf32>
  %e = tensor.empty() : tensor<64x256xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%left, %right : tensor<64x256xf32>, tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.subf %q, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}

// -----

#rows = affine_map<(i, j) -> (i, j)>
// Windows in the opposite order of an array.
// CHECK-DAG: #[[LAST:.*]] = affine_map<(d0, d1) -> (d0, -d1 + 511)>
// CHECK-DAG: #[[BEFORE:.*]] = affine_map<(d0, d1) -> (d0, -d1 + 509)>
// CHECK-LABEL: func.func @reversed
// CHECK-DAG: "fuse.gathered_view"(%arg0) {{.*}}map = #[[LAST]]
// CHECK-DAG: "fuse.gathered_view"(%arg0) {{.*}}map = #[[BEFORE]]
// REMARK: fuse-window-slices: applied: 2 slices are windows of one array
func.func @reversed(%x: tensor<64x512xf32>) -> tensor<64x510xf32> {
  %left = tensor.extract_slice %x[0, 511] [64, 510] [1, -1] : tensor<64x512xf32> to tensor<64x510xf32>
  %right = tensor.extract_slice %x[0, 509] [64, 510] [1, -1] : tensor<64x512xf32> to tensor<64x510xf32>
  %e = tensor.empty() : tensor<64x510xf32>
  %y = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%left, %right : tensor<64x510xf32>, tensor<64x510xf32>) outs(%e : tensor<64x510xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.subf %q, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x510xf32>
  return %y : tensor<64x510xf32>
}

// -----

// CHECK-LABEL: func.func @returned
// CHECK-NOT: fuse.gathered_view
// REMARK: fuse-window-slices: declined: a slice is returned or reshaped, which takes an array
func.func @returned(%x: tensor<64x512xf32>) -> (tensor<64x510xf32>, tensor<64x510xf32>) {
  %left = tensor.extract_slice %x[0, 0] [64, 510] [1, 1] : tensor<64x512xf32> to tensor<64x510xf32>
  %right = tensor.extract_slice %x[0, 2] [64, 510] [1, 1] : tensor<64x512xf32> to tensor<64x510xf32>
  return %left, %right : tensor<64x510xf32>, tensor<64x510xf32>
}

// -----

// REMARK: fuse-window-slices: declined: no array is sliced
func.func @none(%x: tensor<64x512xf32>) -> tensor<64x512xf32> {
  return %x : tensor<64x512xf32>
}
