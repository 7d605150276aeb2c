// RUN: mlirfuse-opt --fuse-operand-sums --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#in = affine_map<(k, m) -> (k, m)>
#out = affine_map<(k, m) -> (m)>
// The gradients of a layer's weights and bias read dy in one kernel.
// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<8192x256xf16>, %[[X:[a-z0-9]+]]: tensor<8192x512xf16>
// CHECK-NEXT: %[[R:.*]]:2 = call @f_0(%[[DY]], %[[X]])
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<8192x256xf16> {{.*}}, %{{.*}}: tensor<8192x512xf16> {{.*}}) -> (tensor<256x512xf32>, tensor<256xf32>)
// CHECK: %[[DW:.*]] = linalg.generic {{.*}} ["parallel", "parallel", "reduction"]
// CHECK: %[[DB:.*]] = linalg.generic {{.*}} ["reduction", "parallel"]} ins(%[[A]] :
// CHECK: return %[[DW]], %[[DB]]
// CHECK-NOT: func.func private @f_1
func.func @gradients(%dy: tensor<8192x256xf16>, %x: tensor<8192x512xf16>) -> (tensor<256x512xf32>, tensor<256xf32>) {
  %dw = call @f_0(%dy, %x) : (tensor<8192x256xf16>, tensor<8192x512xf16>) -> tensor<256x512xf32>
  // expected-remark @below {{f_0 and f_1 read an operand in one kernel}}
  %db = call @f_1(%dy) : (tensor<8192x256xf16>) -> tensor<256xf32>
  return %dw, %db : tensor<256x512xf32>, tensor<256xf32>
}
func.func private @f_0(%dy: tensor<8192x256xf16> {fuse.align = 16 : i64}, %x: tensor<8192x512xf16> {fuse.align = 16 : i64}) -> tensor<256x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  %0 = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%dy, %x : tensor<8192x256xf16>, tensor<8192x512xf16>) outs(%init : tensor<256x512xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<256x512xf32>
  return %0 : tensor<256x512xf32>
}
func.func private @f_1(%dy: tensor<8192x256xf16> {fuse.align = 16 : i64}) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "parallel"]}
       ins(%dy : tensor<8192x256xf16>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %s = arith.addf %out, %l : f32
    linalg.yield %s : f32
  } -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// -----

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#in = affine_map<(k, m) -> (k, m)>
#out = affine_map<(k, m) -> (m)>
#column = affine_map<(k, m) -> (k)>
// CHECK-LABEL: func.func @apart(
// CHECK: call @f_0
// CHECK: call @f_1
// CHECK: call @f_2
// CHECK: call @f_3
func.func @apart(%dy: tensor<8192x256xf16>, %x: tensor<8192x512xf16>)
    -> (tensor<256x512xf32>, tensor<256xf16>, tensor<256xf32>, tensor<8192xf32>) {
  %dw = call @f_0(%dy, %x) : (tensor<8192x256xf16>, tensor<8192x512xf16>) -> tensor<256x512xf32>
  // expected-remark @below {{f_0 and f_1 stay apart: it combines its elements by another op than an addition}}
  %0 = call @f_1(%dy) : (tensor<8192x256xf16>) -> tensor<256xf16>
  // expected-remark @below {{f_0 and f_2 stay apart: its elements are not zero where the operand is zero}}
  %1 = call @f_2(%dy) : (tensor<8192x256xf16>) -> tensor<256xf32>
  // expected-remark @below {{f_0 and f_3 stay apart: it sums up no operand of the contraction}}
  %2 = call @f_3(%dy) : (tensor<8192x256xf16>) -> tensor<8192xf32>
  return %dw, %0, %1, %2 : tensor<256x512xf32>, tensor<256xf16>, tensor<256xf32>, tensor<8192xf32>
}
func.func private @f_0(%dy: tensor<8192x256xf16> {fuse.align = 16 : i64}, %x: tensor<8192x512xf16> {fuse.align = 16 : i64}) -> tensor<256x512xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  %0 = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%dy, %x : tensor<8192x256xf16>, tensor<8192x512xf16>) outs(%init : tensor<256x512xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<256x512xf32>
  return %0 : tensor<256x512xf32>
}
func.func private @f_1(%dy: tensor<8192x256xf16> {fuse.align = 16 : i64}) -> tensor<256xf16>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %least = arith.constant 0xFC00 : f16
  %e = tensor.empty() : tensor<256xf16>
  %init = linalg.fill ins(%least : f16) outs(%e : tensor<256xf16>) -> tensor<256xf16>
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "parallel"]}
       ins(%dy : tensor<8192x256xf16>) outs(%init : tensor<256xf16>) {
  ^bb0(%a: f16, %out: f16):
    %s = arith.maximumf %out, %a : f16
    linalg.yield %s : f16
  } -> tensor<256xf16>
  return %0 : tensor<256xf16>
}
func.func private @f_2(%dy: tensor<8192x256xf16> {fuse.align = 16 : i64}) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "parallel"]}
       ins(%dy : tensor<8192x256xf16>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %x = math.exp %l : f32
    %s = arith.addf %out, %x : f32
    linalg.yield %s : f32
  } -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @f_3(%dy: tensor<8192x256xf16> {fuse.align = 16 : i64}) -> tensor<8192xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8192xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8192xf32>) -> tensor<8192xf32>
  %0 = linalg.generic {indexing_maps = [#in, #column], iterator_types = ["parallel", "reduction"]}
       ins(%dy : tensor<8192x256xf16>) outs(%init : tensor<8192xf32>) {
  ^bb0(%a: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %s = arith.addf %out, %l : f32
    linalg.yield %s : f32
  } -> tensor<8192xf32>
  return %0 : tensor<8192xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#in = affine_map<(m, k) -> (m, k)>
#out = affine_map<(m, k) -> (m)>
// Without rows of w there would be no tile.
// CHECK-LABEL: func.func @no_columns(
// CHECK: call @f_0
// CHECK: call @f_1
func.func @no_columns(%x: tensor<256x512xf16>, %w: tensor<?x512xf16>) -> (tensor<256x?xf32>, tensor<256xf32>) {
  %y = call @f_0(%x, %w) : (tensor<256x512xf16>, tensor<?x512xf16>) -> tensor<256x?xf32>
  // expected-remark @below {{f_0 and f_1 stay apart: the other operand has a dynamic extent: if the extent is 0, no block exists to write the sums}}
  %s = call @f_1(%x) : (tensor<256x512xf16>) -> tensor<256xf32>
  return %y, %s : tensor<256x?xf32>, tensor<256xf32>
}
func.func private @f_0(%x: tensor<256x512xf16> {fuse.align = 16 : i64}, %w: tensor<?x512xf16> {fuse.align = 16 : i64}) -> tensor<256x?xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64: 1, 0>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %w, %c0 : tensor<?x512xf16>
  %e = tensor.empty(%n) : tensor<256x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256x?xf32>) -> tensor<256x?xf32>
  %0 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x, %w : tensor<256x512xf16>, tensor<?x512xf16>) outs(%init : tensor<256x?xf32>) {
  ^bb0(%a: f16, %b: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<256x?xf32>
  return %0 : tensor<256x?xf32>
}
func.func private @f_1(%x: tensor<256x512xf16> {fuse.align = 16 : i64}) -> tensor<256xf32>
    attributes {fuse.kernel, fuse.result_extents = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<256x512xf16>) outs(%init : tensor<256xf32>) {
  ^bb0(%a: f16, %out: f32):
    %l = arith.extf %a : f16 to f32
    %s = arith.addf %out, %l : f32
    linalg.yield %s : f32
  } -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
