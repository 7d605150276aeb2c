// RUN: mlirfuse-opt --fuse-prologues --verify-diagnostics=only-expected %s | FileCheck %s

// A product reads joined halves. That the join becomes its prologue would take less time than a kernel of its own, but
// what computes the halves will store them in place (fuse-scatter-parts), which costs nothing.
// CHECK-LABEL: func.func @scores(
// CHECK:       %[[K:.*]] = call @scores_1(
// CHECK:       call @scores_2(%arg0, %[[K]])
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2 - 64)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
module attributes {fuse.target = {chip = "sm_90a", device = "NVIDIA H200", sms = 132 : i64}} {
  func.func @scores(%arg0: tensor<8x16x128xbf16> {fuse.align = 16 : i64, fuse.name = "q"}, %arg1: tensor<8x6144x64xi8> {fuse.align = 16 : i64, fuse.name = "p"}) -> tensor<8x16x6144xbf16> attributes {fuse.results = "single"} {
    %0:2 = call @scores_0(%arg1) : (tensor<8x6144x64xi8>) -> (tensor<8x6144x64xbf16>, tensor<8x6144x64xbf16>)
    %1 = "fuse.gathered_view"(%0#1) {basis = array<i64: 8, 6144, 128>, map = #map, ranks = array<i64: 1, 1, 1>} : (tensor<8x6144x64xbf16>) -> tensor<8x6144x128xbf16>
    %2 = "fuse.gathered_view"(%0#1) {basis = array<i64: 8, 6144, 128>, inside = array<i64: 8, 6144, 64>, map = #map, ranks = array<i64: 1, 1, 1>} : (tensor<8x6144x64xbf16>) -> tensor<8x6144x128xi1>
    %3 = "fuse.gathered_view"(%0#0) {basis = array<i64: 8, 6144, 128>, map = #map1, ranks = array<i64: 1, 1, 1>} : (tensor<8x6144x64xbf16>) -> tensor<8x6144x128xbf16>
    %4 = "fuse.gathered_view"(%0#0) {basis = array<i64: 8, 6144, 128>, inside = array<i64: 8, 6144, 64>, map = #map1, ranks = array<i64: 1, 1, 1>} : (tensor<8x6144x64xbf16>) -> tensor<8x6144x128xi1>
    %5 = call @scores_1(%1, %3, %2, %4) : (tensor<8x6144x128xbf16>, tensor<8x6144x128xbf16>, tensor<8x6144x128xi1>, tensor<8x6144x128xi1>) -> tensor<8x6144x128xbf16>
    // expected-remark @below {{scores_1 stays apart from scores_2: one kernel is predicted to take}}
    %6 = call @scores_2(%arg0, %5) : (tensor<8x16x128xbf16>, tensor<8x6144x128xbf16>) -> tensor<8x16x6144xbf16>
    return %6 : tensor<8x16x6144xbf16>
  }
  func.func private @scores_0(%arg0: tensor<8x6144x64xi8> {fuse.align = 16 : i64, fuse.name = "p"}) -> (tensor<8x6144x64xbf16>, tensor<8x6144x64xbf16>) attributes {fuse.kernel, fuse.result_extents = array<i64>} {
    %4 = tensor.empty() : tensor<8x6144x64xbf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<8x6144x64xi8>) outs(%4 : tensor<8x6144x64xbf16>) {
    ^bb0(%in: i8, %out: bf16):
      %c4_i8 = arith.constant 4 : i8
      %7 = arith.shrsi %in, %c4_i8 : i8
      %8 = arith.sitofp %7 : i8 to bf16
      linalg.yield %8 : bf16
    } -> tensor<8x6144x64xbf16>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<8x6144x64xi8>) outs(%4 : tensor<8x6144x64xbf16>) {
    ^bb0(%in: i8, %out: bf16):
      %7 = arith.sitofp %in : i8 to bf16
      linalg.yield %7 : bf16
    } -> tensor<8x6144x64xbf16>
    return %5, %6 : tensor<8x6144x64xbf16>, tensor<8x6144x64xbf16>
  }
  func.func private @scores_1(%arg0: tensor<8x6144x128xbf16> {fuse.align = 16 : i64, fuse.gather = {basis = array<i64: 8, 6144, 128>, map = #map, ranks = array<i64: 1, 1, 1>, source = tensor<8x6144x64xbf16>}, fuse.strides = [64, 64, 1]}, %arg1: tensor<8x6144x128xbf16> {fuse.align = 16 : i64, fuse.gather = {basis = array<i64: 8, 6144, 128>, map = #map1, ranks = array<i64: 1, 1, 1>, source = tensor<8x6144x64xbf16>}, fuse.strides = [64, 64, 1]}, %arg2: tensor<8x6144x128xi1> {fuse.align = 16 : i64, fuse.gather = {basis = array<i64: 8, 6144, 128>, inside = array<i64: 8, 6144, 64>, map = #map, ranks = array<i64: 1, 1, 1>, source = tensor<8x6144x64xbf16>}, fuse.strides = [64, 64, 1]}, %arg3: tensor<8x6144x128xi1> {fuse.align = 16 : i64, fuse.gather = {basis = array<i64: 8, 6144, 128>, inside = array<i64: 8, 6144, 64>, map = #map1, ranks = array<i64: 1, 1, 1>, source = tensor<8x6144x64xbf16>}, fuse.strides = [64, 64, 1]}) -> tensor<8x6144x128xbf16> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
    %0 = tensor.empty() : tensor<8x6144x128xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg1, %arg2, %arg3 : tensor<8x6144x128xbf16>, tensor<8x6144x128xbf16>, tensor<8x6144x128xi1>, tensor<8x6144x128xi1>) outs(%0 : tensor<8x6144x128xbf16>) {
    ^bb0(%in: bf16, %in_0: bf16, %in_1: i1, %in_2: i1, %out: bf16):
      %cst = arith.constant 0.000000e+00 : bf16
      %2 = arith.select %in_1, %in, %cst : bf16
      %3 = arith.select %in_2, %in_0, %2 : bf16
      linalg.yield %3 : bf16
    } -> tensor<8x6144x128xbf16>
    return %1 : tensor<8x6144x128xbf16>
  }
  func.func private @scores_2(%arg0: tensor<8x16x128xbf16> {fuse.align = 16 : i64, fuse.name = "q"}, %arg1: tensor<8x6144x128xbf16> {fuse.align = 16 : i64}) -> tensor<8x16x6144xbf16> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<8x16x6144xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<8x16x6144xf32>) -> tensor<8x16x6144xf32>
    %2 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<8x16x128xbf16>, tensor<8x6144x128xbf16>) outs(%1 : tensor<8x16x6144xf32>) {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %5 = arith.extf %in : bf16 to f32
      %6 = arith.extf %in_0 : bf16 to f32
      %7 = arith.mulf %5, %6 fastmath<contract> : f32
      %8 = arith.addf %out, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<8x16x6144xf32>
    %3 = tensor.empty() : tensor<8x16x6144xbf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<8x16x6144xf32>) outs(%3 : tensor<8x16x6144xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %5 = arith.truncf %in : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<8x16x6144xbf16>
    return %4 : tensor<8x16x6144xbf16>
  }
}
