// RUN: mlirfuse-opt --fuse-verify --split-input-file --verify-diagnostics %s

func.func @legal(%semaphores: memref<?xi32>, %slot: index, %number: i32) -> i32 {
  "fuse.semaphore_wait"(%semaphores, %slot, %number) : (memref<?xi32>, index, i32) -> ()
  %old = "fuse.semaphore_arrive"(%semaphores, %slot, %number) : (memref<?xi32>, index, i32) -> i32
  return %old : i32
}

// -----

func.func @floats(%semaphores: memref<4xf32>, %slot: index, %number: i32) {
  // expected-error @below {{'fuse.semaphore_wait' op semaphores memref<4xf32> must be a one-dimensional memref of i32 in global memory}}
  "fuse.semaphore_wait"(%semaphores, %slot, %number) : (memref<4xf32>, index, i32) -> ()
  return
}

// -----

func.func @shared(%semaphores: memref<4xi32, #gpu.address_space<workgroup>>, %slot: index, %number: i32) {
  // expected-error @below {{must be a one-dimensional memref of i32 in global memory}}
  %old = "fuse.semaphore_arrive"(%semaphores, %slot, %number) : (memref<4xi32, #gpu.address_space<workgroup>>, index, i32) -> i32
  return
}

// -----

func.func @slot_is_no_index(%semaphores: memref<4xi32>, %number: i32) {
  // expected-error @below {{slot i32 must be an index}}
  "fuse.semaphore_wait"(%semaphores, %number, %number) : (memref<4xi32>, i32, i32) -> ()
  return
}

// -----

func.func @wide_number(%semaphores: memref<4xi32>, %slot: index, %number: i64) {
  // expected-error @below {{'fuse.semaphore_wait' op i64 must be i32}}
  "fuse.semaphore_wait"(%semaphores, %slot, %number) : (memref<4xi32>, index, i64) -> ()
  return
}

// -----

func.func @wide_result(%semaphores: memref<4xi32>, %slot: index, %number: i32) {
  // expected-error @below {{'fuse.semaphore_arrive' op result i64 must be i32}}
  %old = "fuse.semaphore_arrive"(%semaphores, %slot, %number) : (memref<4xi32>, index, i32) -> i64
  return
}

// -----

func.func @no_blocks() {
  // expected-error @below {{'fuse.resident_blocks' op per_sm 0 : i64 must be a positive integer}}
  %0 = "fuse.resident_blocks"() {per_sm = 0 : i64} : () -> index
  return
}

// -----

func.func @no_index() {
  // expected-error @below {{'fuse.resident_blocks' op result i64 must be an index}}
  %0 = "fuse.resident_blocks"() {per_sm = 1 : i64} : () -> i64
  return
}
