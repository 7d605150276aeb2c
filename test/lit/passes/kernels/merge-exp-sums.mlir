// RUN: mlirfuse-opt --fuse-merge-exp-sums --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

// Other uses of the exponentials compute them again from the maximum.
// CHECK-LABEL: func.func private @merged
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xf32>)
// CHECK: %[[M:.*]]:2 = "fuse.exp_sum"(%[[X]]) {dims = array<i64: 1>}
// CHECK: %[[D:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[M]]#0 :
// CHECK: arith.subf
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[D]] :
// CHECK: math.exp
// CHECK-NOT: linalg.generic
// CHECK: return %[[E]], %[[M]]#1
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func private @merged(%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8xf32>) attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x64xf32>
  %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<8x64xf32>) outs(%low : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %max : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%d : tensor<8x64xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%e : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %e, %sum : tensor<8x64xf32>, tensor<8xf32>
}

// -----

// Rows that run time counts: nothing is divided by their number, unlike a sum for a mean.
// CHECK-LABEL: func.func private @any_number_of_rows
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>)
// CHECK: %[[M:.*]]:2 = "fuse.exp_sum"(%[[X]]) {dims = array<i64: 0>}
// CHECK-NOT: linalg.generic
// CHECK: return %[[M]]#0, %[[M]]#1
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
func.func private @any_number_of_rows(%x: tensor<?x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e1 = tensor.empty() : tensor<64xf32>
  %e2 = tensor.empty(%rows) : tensor<?x64xf32>
  %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %max = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
         ins(%x : tensor<?x64xf32>) outs(%low : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %max : tensor<?x64xf32>, tensor<64xf32>) outs(%e2 : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%d : tensor<?x64xf32>) outs(%e2 : tensor<?x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<?x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
         ins(%e : tensor<?x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %max, %sum : tensor<64xf32>, tensor<64xf32>
}

// -----

// A minimum is no maximum: about it, exponentials overflow, and partial sums do not merge.
// CHECK-LABEL: func.func private @minimum
// CHECK-NOT: fuse.exp_sum
// CHECK-COUNT-4: linalg.generic
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// expected-remark @below {{no sum of exponentials about a maximum}}
func.func private @minimum(%x: tensor<8x64xf32>) -> tensor<8xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %highest = arith.constant 0x7F800000 : f32
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x64xf32>
  %high = linalg.fill ins(%highest : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %min = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<8x64xf32>) outs(%high : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.minimumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %min : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%d : tensor<8x64xf32>) outs(%e2 : tensor<8x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%e : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %sum : tensor<8xf32>
}

// -----

// The maximum of row i is subtracted from column i: the exponentials' rows are not those of the maximum.
// CHECK-LABEL: func.func private @other_rows
// CHECK-NOT: fuse.exp_sum
// CHECK-COUNT-4: linalg.generic
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
// expected-remark @below {{no sum of exponentials about a maximum}}
func.func private @other_rows(%x: tensor<64x64xf32>) -> tensor<64xf32> attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e1 = tensor.empty() : tensor<64xf32>
  %e2 = tensor.empty() : tensor<64x64xf32>
  %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<64x64xf32>) outs(%low : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %max : tensor<64x64xf32>, tensor<64xf32>) outs(%e2 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%d : tensor<64x64xf32>) outs(%e2 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%e : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}

// -----

// The sum of what the exponentials weigh waits for the maximum too. Its pass over the rows serves both sums.
// CHECK-LABEL: func.func private @weighted
// CHECK-NOT: fuse.exp_sum
// CHECK-COUNT-3: ["parallel", "reduction"]
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// expected-remark @below {{another reduction waits for the maximum alone, and shares its pass}}
func.func private @weighted(%x: tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {fuse.kernel} {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e1 = tensor.empty() : tensor<64xf32>
  %e2 = tensor.empty() : tensor<64x32xf32>
  %low = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%x : tensor<64x32xf32>) outs(%low : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
       ins(%x, %max : tensor<64x32xf32>, tensor<64xf32>) outs(%e2 : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<64x32xf32>
  %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%d : tensor<64x32xf32>) outs(%e2 : tensor<64x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<64x32xf32>
  %w = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
       ins(%e, %d : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e2 : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<64x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%e : tensor<64x32xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %weighted = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
         ins(%w : tensor<64x32xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %out, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %sum, %weighted : tensor<64xf32>, tensor<64xf32>
}
