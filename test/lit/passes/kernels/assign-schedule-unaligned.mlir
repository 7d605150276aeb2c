// RUN: mlirfuse-opt --fuse-assign-schedule --target=sm_90a --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Rows of whole vectors that begin inside of sectors are shifted to lines of 128 bytes.
// CHECK-LABEL: func.func private @lines
// CHECK-SAME: shift_to = array<i64: 0, 64>, vector = array<i64: 1, 4>
// expected-remark @below {{breadth first, rows shifted to cache lines}}
func.func private @lines(%x: tensor<?x5140xf16>) -> tensor<?xf16> attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %lowest = arith.constant 0xFC00 : f16
  %m = tensor.dim %x, %c0 : tensor<?x5140xf16>
  %e = tensor.empty(%m) : tensor<?xf16>
  %init = linalg.fill ins(%lowest : f16) outs(%e : tensor<?xf16>) -> tensor<?xf16>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x5140xf16>) outs(%init : tensor<?xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = arith.maximumf %out, %a : f16
    linalg.yield %v : f16
  } -> tensor<?xf16>
  return %0 : tensor<?xf16>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Rows of whole sectors are not.
// CHECK-LABEL: func.func private @sectors
// CHECK-NOT: shift_to = array<i64: 0
func.func private @sectors(%x: tensor<?x5136xf16>) -> tensor<?xf16> attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %lowest = arith.constant 0xFC00 : f16
  %m = tensor.dim %x, %c0 : tensor<?x5136xf16>
  %e = tensor.empty(%m) : tensor<?xf16>
  %init = linalg.fill ins(%lowest : f16) outs(%e : tensor<?xf16>) -> tensor<?xf16>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x5136xf16>) outs(%init : tensor<?xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = arith.maximumf %out, %a : f16
    linalg.yield %v : f16
  } -> tensor<?xf16>
  return %0 : tensor<?xf16>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Rows that start anywhere are shifted to aligned vectors.
// CHECK-LABEL: func.func private @shifted
// CHECK-SAME: shift_to = array<i64: 0, 8>, vector = array<i64: 1, 8>
// expected-remark @below {{depth first, rows shifted to aligned vectors}}
func.func private @shifted(%x: tensor<?x8193xf16>) -> tensor<?xf16> attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %lowest = arith.constant 0xFC00 : f16
  %m = tensor.dim %x, %c0 : tensor<?x8193xf16>
  %e = tensor.empty(%m) : tensor<?xf16>
  %init = linalg.fill ins(%lowest : f16) outs(%e : tensor<?xf16>) -> tensor<?xf16>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x8193xf16>) outs(%init : tensor<?xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = arith.maximumf %out, %a : f16
    linalg.yield %v : f16
  } -> tensor<?xf16>
  return %0 : tensor<?xf16>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
// Where values that all rows share are combined with them, they are realigned instead.
// CHECK-LABEL: func.func private @realigned
// CHECK-SAME: realigned = array<i64: 0, 1>, {{.*}} vector = array<i64: 1, 8>
// expected-remark @below {{depth first, rows realigned in shared memory}}
func.func private @realigned(%x: tensor<?x8193xf16>, %w: tensor<8193xf16>) -> tensor<?xf16> attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %lowest = arith.constant 0xFC00 : f16
  %m = tensor.dim %x, %c0 : tensor<?x8193xf16>
  %e = tensor.empty(%m) : tensor<?xf16>
  %init = linalg.fill ins(%lowest : f16) outs(%e : tensor<?xf16>) -> tensor<?xf16>
  %0 = linalg.generic {indexing_maps = [#id, #col, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x, %w : tensor<?x8193xf16>, tensor<8193xf16>) outs(%init : tensor<?xf16>) {
  ^bb0(%a: f16, %b: f16, %out: f16):
    %p = arith.mulf %a, %b : f16
    %v = arith.maximumf %out, %p : f16
    linalg.yield %v : f16
  } -> tensor<?xf16>
  return %0 : tensor<?xf16>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// The first row of this argument is not aligned: shifting does not help.
// CHECK-LABEL: func.func private @unaligned
// CHECK-NOT: shift_to
// expected-remark @below {{threads move 2 bytes at once: rows of 16386 bytes are not a multiple of 16 bytes long}}
func.func private @unaligned(%x: tensor<?x8193xf16> {fuse.align = 2 : i64}) -> tensor<?xf16> attributes {fuse.kernel} {
  %c0 = arith.constant 0 : index
  %lowest = arith.constant 0xFC00 : f16
  %m = tensor.dim %x, %c0 : tensor<?x8193xf16>
  %e = tensor.empty(%m) : tensor<?xf16>
  %init = linalg.fill ins(%lowest : f16) outs(%e : tensor<?xf16>) -> tensor<?xf16>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x8193xf16>) outs(%init : tensor<?xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = arith.maximumf %out, %a : f16
    linalg.yield %v : f16
  } -> tensor<?xf16>
  return %0 : tensor<?xf16>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#layout = {vector = array<i64: 1, 8>, lanes = array<i64: 1, 32>, warps = array<i64: 1, 1>, repeats = array<i64: 1, 3>, blocks = array<i64: 1, 1>, shift_to = array<i64: 0, 8>}
// expected-error @below {{the schedule of shifted_chunks is illegal: only rows that stay in registers may be shifted}}
func.func private @shifted_chunks(%x: tensor<?x513xf16>) -> tensor<?xf16>
    attributes {fuse.kernel, fuse.schedule = {tile = array<i64: 1, 513>, layout = #layout, persistence = "multi_pass"}} {
  %c0 = arith.constant 0 : index
  %lowest = arith.constant 0xFC00 : f16
  %m = tensor.dim %x, %c0 : tensor<?x513xf16>
  %e = tensor.empty(%m) : tensor<?xf16>
  %init = linalg.fill ins(%lowest : f16) outs(%e : tensor<?xf16>) -> tensor<?xf16>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
       ins(%x : tensor<?x513xf16>) outs(%init : tensor<?xf16>) {
  ^bb0(%a: f16, %out: f16):
    %v = arith.maximumf %out, %a : f16
    linalg.yield %v : f16
  } -> tensor<?xf16>
  return %0 : tensor<?xf16>
}
