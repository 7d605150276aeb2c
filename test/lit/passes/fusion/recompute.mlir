// RUN: mlirfuse-opt --fuse-recompute --canonicalize --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// A value of 4 bytes is neither written nor read: the second kernel computes it from two values of 2 bytes, one of which
// it read before, and from a small sum, which the first kernel returns in addition.
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf16>, %[[Y:[a-z0-9]+]]: tensor<?x64xf16>
// CHECK: %[[R:.*]]:2 = call @f_0(%[[X]]) : (tensor<?x64xf16>) -> (tensor<?x64xf16>, tensor<?xf32>)
// CHECK: %[[S:.*]] = call @f_1(%[[Y]], %[[X]], %[[R]]#1)
// CHECK-SAME: (tensor<?x64xf16>, tensor<?x64xf16>, tensor<?xf32>) -> tensor<1024xf32>
// CHECK: return %[[R]]#0, %[[S]]
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: fuse.result_extents = array<i64: 0, 0, 0, 0>
// CHECK-LABEL: func.func private @f_1(
// CHECK-SAME: %{{.*}}: tensor<?x64xf16> {fuse.name = "y"}, %[[A:[a-z0-9]+]]: tensor<?x64xf16> {fuse.name = "x"}, %[[SUM:[a-z0-9]+]]: tensor<?xf32> {fuse.align = 16 : i64})
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[SUM]] :
// CHECK: arith.extf
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}}"reduction", "parallel"
func.func @f(%x: tensor<?x64xf16>, %y: tensor<?x64xf16>) -> (tensor<?x64xf16>, tensor<1024xf32>) {
  %0:2 = call @f_0(%x) : (tensor<?x64xf16>) -> (tensor<?x64xf16>, tensor<?x64xf32>)
  // expected-remark @below {{f_1 computes 1 value(s) that it would have read from f_0}}
  %1 = call @f_1(%0#1, %y) : (tensor<?x64xf32>, tensor<?x64xf16>) -> tensor<1024xf32>
  return %0#0, %1 : tensor<?x64xf16>, tensor<1024xf32>
}
func.func private @f_0(%x: tensor<?x64xf16> {fuse.name = "x"}) -> (tensor<?x64xf16>, tensor<?x64xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64xf16>
  %er = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x64xf16>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f16, %out: f32):
    %w = arith.extf %a : f16 to f32
    %v = arith.addf %out, %w : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %n = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %sum : tensor<?x64xf16>, tensor<?xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f16, %s: f32, %out: f32):
    %w = arith.extf %a : f16 to f32
    %v = arith.mulf %w, %s : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %eh = tensor.empty(%m) : tensor<?x64xf16>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%n : tensor<?x64xf32>) outs(%eh : tensor<?x64xf16>) {
  ^bb0(%a: f32, %out: f16):
    %w = arith.truncf %a : f32 to f16
    linalg.yield %w : f16
  } -> tensor<?x64xf16>
  return %h, %n : tensor<?x64xf16>, tensor<?x64xf32>
}
func.func private @f_1(%n: tensor<?x64xf32>, %y: tensor<?x64xf16> {fuse.name = "y"}) -> tensor<1024xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%n, %y : tensor<?x64xf32>, tensor<?x64xf16>) outs(%init : tensor<1024xf32>) {
  ^bb0(%a: f32, %b: f16, %out: f32):
    %w = arith.extf %b : f16 to f32
    %p = arith.mulf %a, %w : f32
    %v = arith.addf %out, %p : f32
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// A kernel without remaining results is erased. A value that the host returns is written in any case, but not read
// where its source has fewer bytes.
// CHECK-LABEL: func.func @gone(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<65536x1024xf16>
// CHECK-NEXT: %[[S:.*]] = call @gone_1(%[[X]]) : (tensor<65536x1024xf16>) -> tensor<1024xf32>
// CHECK-NEXT: return %[[S]]
// CHECK-NOT: @gone_0
// CHECK-LABEL: func.func @returned(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<65536x1024xf16>
// CHECK-NEXT: %[[W:.*]] = call @returned_0(%[[X]]) : (tensor<65536x1024xf16>) -> tensor<65536x1024xf32>
// CHECK-NEXT: %[[S:.*]] = call @returned_1(%[[X]]) : (tensor<65536x1024xf16>) -> tensor<1024xf32>
// CHECK-NEXT: return %[[W]], %[[S]]
func.func @gone(%x: tensor<65536x1024xf16>) -> tensor<1024xf32> {
  %0 = call @gone_0(%x) : (tensor<65536x1024xf16>) -> tensor<65536x1024xf32>
  // expected-remark @below {{gone_1 computes 1 value(s)}}
  %1 = call @gone_1(%0) : (tensor<65536x1024xf32>) -> tensor<1024xf32>
  return %1 : tensor<1024xf32>
}
func.func private @gone_0(%x: tensor<65536x1024xf16>) -> tensor<65536x1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<65536x1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<65536x1024xf16>) outs(%e : tensor<65536x1024xf32>) {
  ^bb0(%a: f16, %out: f32):
    %w = arith.extf %a : f16 to f32
    linalg.yield %w : f32
  } -> tensor<65536x1024xf32>
  return %0 : tensor<65536x1024xf32>
}
func.func private @gone_1(%n: tensor<65536x1024xf32>) -> tensor<1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%n : tensor<65536x1024xf32>) outs(%init : tensor<1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
func.func @returned(%x: tensor<65536x1024xf16>) -> (tensor<65536x1024xf32>, tensor<1024xf32>) {
  %0 = call @returned_0(%x) : (tensor<65536x1024xf16>) -> tensor<65536x1024xf32>
  // expected-remark @below {{returned_1 computes 1 value(s)}}
  %1 = call @returned_1(%0) : (tensor<65536x1024xf32>) -> tensor<1024xf32>
  return %0, %1 : tensor<65536x1024xf32>, tensor<1024xf32>
}
func.func private @returned_0(%x: tensor<65536x1024xf16>) -> tensor<65536x1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %e = tensor.empty() : tensor<65536x1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<65536x1024xf16>) outs(%e : tensor<65536x1024xf32>) {
  ^bb0(%a: f16, %out: f32):
    %w = arith.extf %a : f16 to f32
    linalg.yield %w : f32
  } -> tensor<65536x1024xf32>
  return %0 : tensor<65536x1024xf32>
}
func.func private @returned_1(%n: tensor<65536x1024xf32>) -> tensor<1024xf32> attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
       ins(%n : tensor<65536x1024xf32>) outs(%init : tensor<1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
// A value computed from constants alone: its reader has no other input with the number of rows.
// CHECK-LABEL: func.func @sized(
// CHECK: %[[A:.*]]:2 = call @sized_0(
// CHECK: call @sized_1(%[[A]]#0)
func.func @sized(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0:2 = call @sized_0(%x) : (tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  // expected-remark @below {{it would read nothing with one of its dynamic extents}}
  %1 = call @sized_1(%0#0) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %1, %0#1 : tensor<?x64xf32>, tensor<?x64xf32>
}
func.func private @sized_0(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0, 0, 0>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %one = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?x64xf32>) {
  ^bb0(%out: f32):
    %number = arith.constant 1.0 : f32
    linalg.yield %number : f32
  } -> tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %one : tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  return %one, %0 : tensor<?x64xf32>, tensor<?x64xf32>
}
func.func private @sized_1(%n: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %n, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%n : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
