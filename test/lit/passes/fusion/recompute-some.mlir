// RUN: mlirfuse-opt --fuse-recompute --canonicalize --show-remarks %s 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// Of two values the second is computed in the kernel that reads it. The first, which that kernel reads along two
// dimensions, stays in memory: it is one number for each row, and the other one for each pair of rows.
// REMARK: fuse-recompute: applied: f_1 computes 1 value(s) that it would have read from f_0
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<80x1000xf32>
// CHECK: %[[Y:.*]] = call @f_0(%[[X]], %{{.*}}) : (tensor<80x1000xf32>, tensor<80x1000xf32>) -> tensor<80x1000xf32>
// CHECK: call @f_1(%[[Y]], %[[X]]) : (tensor<80x1000xf32>, tensor<80x1000xf32>) -> tensor<80x1000xf32>
// CHECK-LABEL: func.func private @f_0(
// CHECK-NOT: tensor<80x1000x1000xf32>
// CHECK-LABEL: func.func private @f_1(
// CHECK: arith.maximumf
// CHECK: arith.minimumf
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module attributes {fuse.target = {chip = "sm_90a", sms = 132 : i64}} {
  func.func @f(%arg0: tensor<80x1000xf32> {fuse.align = 16 : i64, fuse.name = "x"}, %arg1: tensor<80x1000xf32> {fuse.align = 16 : i64, fuse.name = "w"}) -> tensor<80x1000xf32> attributes {fuse.results = "single"} {
    %0:2 = call @f_0(%arg0, %arg1) : (tensor<80x1000xf32>, tensor<80x1000xf32>) -> (tensor<80x1000xf32>, tensor<80x1000x1000xf32>)
    %1 = call @f_1(%0#0, %0#1) : (tensor<80x1000xf32>, tensor<80x1000x1000xf32>) -> tensor<80x1000xf32>
    return %1 : tensor<80x1000xf32>
  }
  func.func private @f_0(%arg0: tensor<80x1000xf32> {fuse.align = 16 : i64, fuse.name = "x"}, %arg1: tensor<80x1000xf32> {fuse.align = 16 : i64, fuse.name = "w"}) -> (tensor<80x1000xf32>, tensor<80x1000x1000xf32>) attributes {fuse.kernel, fuse.result_extents = array<i64>} {
    %0 = tensor.empty() : tensor<80x1000xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<80x1000xf32>, tensor<80x1000xf32>) outs(%0 : tensor<80x1000xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %4 = arith.addf %in, %in_0 : f32
      linalg.yield %4 : f32
    } -> tensor<80x1000xf32>
    %2 = tensor.empty() : tensor<80x1000x1000xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg0 : tensor<80x1000xf32>, tensor<80x1000xf32>) outs(%2 : tensor<80x1000x1000xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %4 = arith.maximumf %in, %in_0 : f32
      linalg.yield %4 : f32
    } -> tensor<80x1000x1000xf32>
    return %1, %3 : tensor<80x1000xf32>, tensor<80x1000x1000xf32>
  }
  func.func private @f_1(%arg0: tensor<80x1000xf32> {fuse.align = 16 : i64}, %arg1: tensor<80x1000x1000xf32> {fuse.align = 16 : i64}) -> tensor<80x1000xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
    %0 = tensor.empty() : tensor<80x1000x1000xf32>
    %1 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg0 : tensor<80x1000xf32>, tensor<80x1000xf32>) outs(%0 : tensor<80x1000x1000xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %6 = arith.minimumf %in, %in_0 : f32
      linalg.yield %6 : f32
    } -> tensor<80x1000x1000xf32>
    %2 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %arg1 : tensor<80x1000x1000xf32>, tensor<80x1000x1000xf32>) outs(%0 : tensor<80x1000x1000xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %6 = arith.subf %in, %in_0 : f32
      linalg.yield %6 : f32
    } -> tensor<80x1000x1000xf32>
    %cst = arith.constant 0xFF800000 : f32
    %3 = tensor.empty() : tensor<80x1000xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<80x1000xf32>) -> tensor<80x1000xf32>
    %5 = linalg.generic {indexing_maps = [#map3, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%2 : tensor<80x1000x1000xf32>) outs(%4 : tensor<80x1000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.maximumf %out, %in : f32
      linalg.yield %6 : f32
    } -> tensor<80x1000xf32>
    return %5 : tensor<80x1000xf32>
  }
}
