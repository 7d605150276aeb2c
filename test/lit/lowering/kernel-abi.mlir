// RUN: mlirfuse-opt --lower-kernel-abi --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

gpu.module @rows {
  // CHECK-LABEL: gpu.func @rows(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: memref<1xf16> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}, %[[XN:[a-z0-9]+]]: index,
  // CHECK-SAME: %[[Y:[a-z0-9]+]]: memref<1xf16>, %[[YN:[a-z0-9]+]]: index, %[[SCALE:[a-z0-9]+]]: f64)
  // CHECK-SAME: workgroup(%[[SCRATCH:[a-z0-9]+]] : memref<8xf32, #gpu.address_space<workgroup>>)
  // CHECK-SAME: fuse.abi = [{arg = 0 : i64, dim = 0 : i64, kind = "pointer"}, {arg = 0 : i64, dim = 0 : i64, kind = "size"},
  // CHECK-SAME: {arg = 1 : i64, dim = 0 : i64, kind = "pointer"}, {arg = 1 : i64, dim = 0 : i64, kind = "size"},
  // CHECK-SAME: {arg = 2 : i64, dim = 0 : i64, kind = "scalar"}]
  // CHECK-SAME: known_block_size = array<i32: 16, 1, 1>
  gpu.func @rows(%x: memref<?x128xf16> {fuse.name = "x", fuse.align = 16 : i64}, %y: memref<?x128xf16>, %scale: f64)
      workgroup(%scratch : memref<8xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    // CHECK: %[[XV:.*]] = memref.reinterpret_cast %[[X]] to offset: [0], sizes: [%[[XN]], 128], strides: [128, 1] : memref<1xf16> to memref<?x128xf16>
    // CHECK: %[[YV:.*]] = memref.reinterpret_cast %[[Y]] to offset: [0], sizes: [%[[YN]], 128], strides: [128, 1] : memref<1xf16> to memref<?x128xf16>
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    // CHECK: %[[V:.*]] = memref.load %[[XV]]
    %v = memref.load %x[%c0, %t] : memref<?x128xf16>
    %scale32 = arith.truncf %scale : f64 to f32
    // CHECK: memref.store %{{.*}}, %[[SCRATCH]]
    memref.store %scale32, %scratch[%c0] : memref<8xf32, #gpu.address_space<workgroup>>
    // CHECK: memref.store %[[V]], %[[YV]]
    memref.store %v, %y[%c0, %t] : memref<?x128xf16>
    gpu.return
  }
}

// -----

gpu.module @strides {
  // A contiguous memref's strides follow from its sizes; a strided layout's are passed, after the sizes.
  // CHECK-LABEL: gpu.func @strides(
  // CHECK-SAME: %[[A:[a-z0-9]+]]: memref<1xf32> {llvm.noalias, llvm.readonly}, %[[A0:[a-z0-9]+]]: index, %[[A2:[a-z0-9]+]]: index,
  // CHECK-SAME: %[[B:[a-z0-9]+]]: memref<1xf32> {llvm.noalias, llvm.readonly}, %[[B0:[a-z0-9]+]]: index, %[[B1S:[a-z0-9]+]]: index)
  gpu.func @strides(%a: memref<?x3x?xf32>, %b: memref<?x8x1xf32, strided<[1, ?, 0]>>) kernel {
    // CHECK: %[[PLANE:.*]] = arith.muli %{{.*}}, %{{.*}} : index
    // CHECK: memref.reinterpret_cast %[[A]] to offset: [0], sizes: [%[[A0]], 3, %[[A2]]], strides: [%{{.*}}, %{{.*}}, 1] : memref<1xf32> to memref<?x3x?xf32>
    // CHECK: memref.reinterpret_cast %[[B]] to offset: [0], sizes: [%[[B0]], 8, 1], strides: [1, %[[B1S]], 0] : memref<1xf32> to memref<?x8x1xf32, strided<[1, ?, 0]>>
    gpu.return
  }
}

// -----

gpu.module @views {
  // A store through a view counts as a store.
  // CHECK-LABEL: gpu.func @views(
  // CHECK-SAME: %{{[^:]*}}: memref<1xf32>, %{{[^:]*}}: index)
  gpu.func @views(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %view = memref.subview %x[0] [4] [1] : memref<?xf32> to memref<4xf32, strided<[1]>>
    memref.store %zero, %view[%c0] : memref<4xf32, strided<[1]>>
    gpu.return
  }
}

// -----

gpu.module @bools {
  // Booleans are bytes in memory.
  // CHECK-LABEL: gpu.func @bools(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: memref<1xi8> {llvm.noalias, llvm.readonly}, %{{[a-z0-9]+}}: index, %[[Y:[a-z0-9]+]]: memref<1xi8>, %{{[a-z0-9]+}}: index)
  // CHECK-SAME: workgroup(%[[S:[a-z0-9]+]] : memref<4xi8, #gpu.address_space<workgroup>>)
  gpu.func @bools(%x: memref<?xi1>, %y: memref<?xi1>) workgroup(%s : memref<4xi1, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xi1>
    // CHECK: %[[BYTES:.*]] = vector.load %{{.*}} {alignment = 4 : i64} : memref<?xi8>, vector<4xi8>
    // CHECK: %[[BITS:.*]] = arith.cmpi ne, %[[BYTES]], %{{.*}} : vector<4xi8>
    %v = vector.load %x[%c0] {alignment = 4 : i64} : memref<?xi1>, vector<4xi1>
    // CHECK: %[[WIDE:.*]] = arith.extui %[[BITS]] : vector<4xi1> to vector<4xi8>
    // CHECK: vector.store %[[WIDE]], %{{.*}} : memref<?xi8>, vector<4xi8>
    vector.store %v, %y[%c0] : memref<?xi1>, vector<4xi1>
    // CHECK: memref.load %[[S]]
    %b = memref.load %s[%c0] : memref<4xi1, #gpu.address_space<workgroup>>
    // CHECK: arith.extui %{{.*}} : i1 to i8
    memref.store %b, %y[%n] : memref<?xi1>
    // CHECK: memref.extract_strided_metadata %{{.*}} : memref<?xi8> -> memref<i8>, index, index, index
    %base, %offset, %size, %stride = memref.extract_strided_metadata %y : memref<?xi1> -> memref<i1>, index, index, index
    memref.store %b, %y[%offset] : memref<?xi1>
    gpu.return
  }
}

// -----

gpu.module @lowered {
  // expected-remark @below {{the kernel has its ABI already}}
  gpu.func @lowered(%n: index) kernel attributes {fuse.abi = [{arg = 0 : i64, dim = 0 : i64, kind = "scalar"}]} {
    gpu.return
  }
}

// -----

gpu.module @offset {
  // expected-error @below {{argument 0 of kernel "offset" has type memref<4xf32, strided<[1], offset: 8>>, whose offset is not 0}}
  gpu.func @offset(%x: memref<4xf32, strided<[1], offset: 8>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @bool_view {
  // A view of a buffer of bytes is a buffer of bytes too, and has an address.
  // CHECK-LABEL: gpu.func @bool_view(
  gpu.func @bool_view(%n: index)
      workgroup(%s : memref<2x16xi1, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    // CHECK: %[[VIEW:.*]] = memref.subview %{{.*}} : memref<2x16xi8, #gpu.address_space<workgroup>> to memref<16xi8, strided<[1], offset: ?>, #gpu.address_space<workgroup>>
    %slot = memref.subview %s[%n, 0] [1, 16] [1, 1]
        : memref<2x16xi1, #gpu.address_space<workgroup>> to memref<16xi1, strided<[1], offset: ?>, #gpu.address_space<workgroup>>
    // CHECK: memref.extract_aligned_pointer_as_index %[[VIEW]]
    %address = memref.extract_aligned_pointer_as_index %slot : memref<16xi1, strided<[1], offset: ?>, #gpu.address_space<workgroup>> -> index
    // CHECK: vector.load %[[VIEW]]
    %v = vector.load %slot[%c0] : memref<16xi1, strided<[1], offset: ?>, #gpu.address_space<workgroup>>, vector<4xi1>
    // CHECK: %[[TRANSPOSED:.*]] = memref.transpose %{{.*}} (d0, d1) -> (d1, d0) : memref<2x16xi8, #gpu.address_space<workgroup>> to memref<16x2xi8, strided<[1, 16]>, #gpu.address_space<workgroup>>
    %transposed = memref.transpose %s (d0, d1) -> (d1, d0)
        : memref<2x16xi1, #gpu.address_space<workgroup>> to memref<16x2xi1, strided<[1, 16]>, #gpu.address_space<workgroup>>
    // CHECK: memref.load %[[TRANSPOSED]]
    %b = memref.load %transposed[%c0, %c0] : memref<16x2xi1, strided<[1, 16]>, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// -----

gpu.module @bool_use {
  gpu.func @bool_use(%x: memref<8xi1>, %m: vector<4xi1>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{vector.maskedload of a boolean buffer in kernel "bool_use" has no lowering}}
    %0 = vector.maskedload %x[%c0], %m, %m : memref<8xi1>, vector<4xi1>, vector<4xi1> into vector<4xi1>
    gpu.return
  }
}

// -----

// Workspaces are only read here, but another block may write them, so they do not take the read-only path.
gpu.module @workspaces {
  // CHECK-DAG: #[[NONE:.*]] = affine_map<() -> ()>
  // CHECK-DAG: #[[EXTENTS:.*]] = affine_map<()[s0, s1] -> (s1, s0 ceildiv 8)>
  // CHECK-LABEL: gpu.func @workspaces(
  // CHECK-SAME: %{{[a-z0-9]+}}: memref<1xf32> {llvm.noalias, llvm.readonly}, %{{[a-z0-9]+}}: index,
  // CHECK-SAME: %{{[a-z0-9]+}}: memref<1xi32>, %{{[a-z0-9]+}}: memref<1xf32>, %[[N:[a-z0-9]+]]: index, %[[M:[a-z0-9]+]]: index)
  // CHECK-SAME: fuse.workspaces = [{arg = 1 : i64, extents = #[[NONE]], kind = "semaphores", operands = array<i64>, type = memref<3xi32>},
  // CHECK-SAME: {arg = 2 : i64, extents = #[[EXTENTS]], kind = "scratch", operands = array<i64: 0, 0, -1, 2>, type = memref<?x?x4xf32>}]
  gpu.func @workspaces(%x: memref<?xf32>, %semaphores: memref<3xi32> {fuse.workspace = "semaphores"},
      %scratch: memref<?x?x4xf32> {fuse.workspace = "scratch", fuse.workspace_operands = array<i64: 0, 0, -1, 2>,
                                   fuse.workspace_extents = affine_map<()[s0, s1] -> (s1, s0 ceildiv 8)>})
      kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<?xf32>
    // CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%[[N]], %[[M]], 4]
    %w = memref.load %scratch[%c0, %c0, %c0] : memref<?x?x4xf32>
    gpu.return
  }
}

// -----

gpu.module @kind {
  // expected-error @below {{kernel kind: workspace argument 0 of type memref<3xi32>: fuse.workspace is "flags", neither "semaphores" nor "scratch"}}
  gpu.func @kind(%s: memref<3xi32> {fuse.workspace = "flags"}) kernel {
    gpu.return
  }
}

// -----

gpu.module @wide {
  // expected-error @below {{workspace argument 0 of type memref<3xi64> must be a one-dimensional memref of i32 to hold semaphores}}
  gpu.func @wide(%s: memref<3xi64> {fuse.workspace = "semaphores"}) kernel {
    gpu.return
  }
}

// -----

// Inputs of a kernel that starts while they are written are not read-only: no load may move above the wait.
gpu.module @dependent {
  // CHECK-LABEL: gpu.func @dependent(
  // CHECK-NOT: llvm.noalias
  // CHECK-NOT: llvm.readonly
  // CHECK: nvvm.griddepcontrol wait
  // CHECK-NEXT: memref.load
  gpu.func @dependent(%x: memref<4xf32>, %y: memref<4xf32>) kernel attributes {fuse.dependent_launch} {
    %c0 = arith.constant 0 : index
    nvvm.griddepcontrol wait
    %v = memref.load %x[%c0] : memref<4xf32>
    memref.store %v, %y[%c0] : memref<4xf32>
    gpu.return
  }
}

// -----

gpu.module @strided {
  // expected-error @below {{is not a contiguous memref in global memory}}
  gpu.func @strided(%s: memref<3x4xf32, strided<[8, 1]>> {fuse.workspace = "scratch"}) kernel {
    gpu.return
  }
}

// -----

gpu.module @no_extents {
  // expected-error @below {{workspace argument 0 of type memref<?xf32>: fuse.workspace_extents affine_map<() -> ()> over 0 operands does not fit it}}
  gpu.func @no_extents(%s: memref<?xf32> {fuse.workspace = "scratch"}) kernel {
    gpu.return
  }
}

// -----

gpu.module @in_between {
  // expected-error @below {{workspace arguments must follow the operands and results, one after the other}}
  gpu.func @in_between(%s: memref<3xi32> {fuse.workspace = "semaphores"}, %x: memref<4xf32>, %t: memref<3xi32> {fuse.workspace = "semaphores"}) kernel {
    gpu.return
  }
}

// -----

gpu.module @of_itself {
  // expected-error @below {{the extents of workspace argument 0 depend on a workspace}}
  gpu.func @of_itself(%s: memref<?xf32> {fuse.workspace = "scratch", fuse.workspace_extents = affine_map<()[s0] -> (s0)>, fuse.workspace_operands = array<i64: 0, 0>}) kernel {
    gpu.return
  }
}

// -----

gpu.module @reversed {
  // Only a kernel with arguments whose strides may be negative is marked.
  // CHECK-LABEL: gpu.func @reversed(
  // CHECK-SAME: fuse.signed_strides
  gpu.func @reversed(%a: memref<?xf32, strided<[?]>> {fuse.strides = ["negative"]}, %b: memref<?xf32>) kernel {
    gpu.return
  }
}

// -----

gpu.module @forward {
  // CHECK-LABEL: gpu.func @forward(
  // CHECK-NOT: fuse.signed_strides
  // CHECK: gpu.return
  gpu.func @forward(%a: memref<?xf32, strided<[?]>> {fuse.strides = ["?"]}, %b: memref<?xf32>) kernel {
    gpu.return
  }
}
