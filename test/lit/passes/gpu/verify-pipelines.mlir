// Without --verify-each nothing but the pass itself looks at the ops.
// RUN: mlirfuse-opt --fuse-verify --verify-each=false --split-input-file --verify-diagnostics %s

#shared = #gpu.address_space<workgroup>
func.func @hopper(%a: memref<?x512xbf16>, %ra: memref<4x128x64xbf16, #shared>, %rb: memref<4x64x256xbf16, #shared>,
                  %full: memref<4xi64, #shared>, %s: index, %parity: i32, %acc: vector<128x256xf32>) {
  "fuse.mbarrier_init"(%full) {arrivals = 1 : i64} : (memref<4xi64, #shared>) -> ()
  "fuse.mbarrier_arrive"(%full, %s) {warpgroups = 2 : i64} : (memref<4xi64, #shared>, index) -> ()
  "fuse.mbarrier_expect"(%full, %s) {bytes = 16384 : i64} : (memref<4xi64, #shared>, index) -> ()
  "fuse.mbarrier_wait"(%full, %s, %parity) : (memref<4xi64, #shared>, index, i32) -> ()
  "fuse.async_load"(%a, %ra, %s, %full, %s, %s) {dims = array<i64: 0, 1>}
      : (memref<?x512xbf16>, memref<4x128x64xbf16, #shared>, index, memref<4xi64, #shared>, index, index) -> ()
  %0 = "fuse.warpgroup_mma"(%ra, %rb, %s, %acc) {a_major = "k", b_major = "mn"}
      : (memref<4x128x64xbf16, #shared>, memref<4x64x256xbf16, #shared>, index, vector<128x256xf32>) -> vector<128x256xf32>
  %1 = "fuse.warpgroup_wait"(%0) {pending = 0 : i64} : (vector<128x256xf32>) -> vector<128x256xf32>
  "fuse.set_registers"() {count = 40 : i64, action = "decrease"} : () -> ()
  "fuse.group_barrier"() {warpgroups = 2 : i64} : () -> ()
  %2 = "fuse.elect_one"() : () -> i1
  "fuse.warp_roles"() ({
    vector.yield
  }, {
    vector.yield
  }) {warpgroups = array<i64: 2, 1>, registers = array<i64: 232, 40>} : () -> ()
  "fuse.group_barrier"() {warpgroups = 1 : i64, first = 1 : i64} : () -> ()
  "fuse.warp_roles"() ({
  ^bb0(%group: index):
    vector.yield
  }, {
    vector.yield
  }) {warpgroups = array<i64: 1, 1>, registers = array<i64: 232, 40>, consumer_groups = 2 : i64} : () -> ()
  return
}

// -----

func.func @nobodys_number() {
  // expected-error @below {{2 consumer groups, and arguments of types [] for a consumer group's number}}
  "fuse.warp_roles"() ({
    vector.yield
  }, {
    vector.yield
  }) {warpgroups = array<i64: 1, 1>, registers = array<i64: 232, 40>, consumer_groups = 2 : i64} : () -> ()
  return
}

// -----

func.func @ninth_warpgroup() {
  // expected-error @below {{warpgroups 7 to 8 are not all of a block, which has 8 at most}}
  "fuse.group_barrier"() {warpgroups = 2 : i64, first = 7 : i64} : () -> ()
  return
}

// -----

func.func @global_ring(%a: memref<?x512xbf16>, %ring: memref<4x128x64xbf16>, %full: memref<4xi64, #gpu.address_space<workgroup>>, %s: index) {
  // expected-error @below {{ring memref<4x128x64xbf16> must be a memref in workgroup memory}}
  "fuse.async_load"(%a, %ring, %s, %full, %s, %s) {dims = array<i64: 0, 1>}
      : (memref<?x512xbf16>, memref<4x128x64xbf16>, index, memref<4xi64, #gpu.address_space<workgroup>>, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @narrow_subtile(%a: memref<?x512xbf16>, %ring: memref<4x128x32xbf16, #shared>, %full: memref<4xi64, #shared>, %s: index) {
  // expected-error @below {{a stage must have a multiple of 8 rows, each of whole 128-byte swizzle atoms}}
  "fuse.async_load"(%a, %ring, %s, %full, %s, %s) {dims = array<i64: 0, 1>}
      : (memref<?x512xbf16>, memref<4x128x32xbf16, #shared>, index, memref<4xi64, #shared>, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @more_rows_than_a_stage_has(%a: memref<24x512xbf16>, %ring: memref<4x16x64xbf16, #shared>, %full: memref<4xi64, #shared>, %s: index) {
  // expected-error @below {{rows = 24 is more than the 16 rows of a stage}}
  "fuse.async_load"(%a, %ring, %s, %full, %s, %s) {dims = array<i64: 0, 1>, rows = 24 : i64}
      : (memref<24x512xbf16>, memref<4x16x64xbf16, #shared>, index, memref<4xi64, #shared>, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @some_rows_in_a_cluster(%a: memref<24x512xbf16>, %ring: memref<4x32x64xbf16, #shared>, %full: memref<4xi64, #shared>, %s: index) {
  // expected-error @below {{blocks that share a load copy all rows}}
  "fuse.async_load"(%a, %ring, %s, %full, %s, %s) {dims = array<i64: 0, 1>, peers = 2 : i64, rows = 24 : i64}
      : (memref<24x512xbf16>, memref<4x32x64xbf16, #shared>, index, memref<4xi64, #shared>, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @column_without_unit_stride(%a: memref<?x512xbf16>, %ring: memref<4x128x64xbf16, #shared>, %full: memref<4xi64, #shared>, %s: index) {
  // expected-error @below {{the stride of dimension 0 of memref<?x512xbf16> must be 1}}
  "fuse.async_load"(%a, %ring, %s, %full, %s, %s) {dims = array<i64: 1, 0>}
      : (memref<?x512xbf16>, memref<4x128x64xbf16, #shared>, index, memref<4xi64, #shared>, index, index) -> ()
  return
}

// -----

func.func @barriers_of_another_type(%full: memref<4xi32, #gpu.address_space<workgroup>>) {
  // expected-error @below {{must be a static memref of rank 1 of i64}}
  "fuse.mbarrier_init"(%full) {arrivals = 1 : i64} : (memref<4xi32, #gpu.address_space<workgroup>>) -> ()
  return
}

// -----

func.func @no_arrivals(%full: memref<4xi64, #gpu.address_space<workgroup>>) {
  // expected-error @below {{must be an integer of at least 1}}
  "fuse.mbarrier_init"(%full) {arrivals = 0 : i64} : (memref<4xi64, #gpu.address_space<workgroup>>) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @types_differ(%ra: memref<4x128x128xf8E4M3FN, #shared>, %rb: memref<4x256x64xbf16, #shared>, %s: index, %acc: vector<128x256xf32>) {
  // expected-error @below {{differ in element type or stages}}
  %0 = "fuse.warpgroup_mma"(%ra, %rb, %s, %acc) {a_major = "k", b_major = "k"}
      : (memref<4x128x128xf8E4M3FN, #shared>, memref<4x256x64xbf16, #shared>, index, vector<128x256xf32>) -> vector<128x256xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @rows_of_float8(%ra: memref<4x128x128xf8E4M3FN, #shared>, %rb: memref<4x128x256xf8E5M2, #shared>, %s: index, %acc: vector<128x256xf32>) {
  // expected-error @below {{k must be contiguous in rings of f8E4M3FN, f8E5M2}}
  %0 = "fuse.warpgroup_mma"(%ra, %rb, %s, %acc) {a_major = "k", b_major = "mn"}
      : (memref<4x128x128xf8E4M3FN, #shared>, memref<4x128x256xf8E5M2, #shared>, index, vector<128x256xf32>) -> vector<128x256xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @rounded_halves(%a: memref<?x512xbf16>, %ra: memref<4x128x64xbf16, #shared>, %full: memref<4xi64, #shared>, %s: index) {
  // expected-error @below {{only elements of f32 are rounded to tf32}}
  "fuse.async_load"(%a, %ra, %s, %full, %s, %s) {dims = array<i64: 0, 1>, tf32}
      : (memref<?x512xbf16>, memref<4x128x64xbf16, #shared>, index, memref<4xi64, #shared>, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @k_differs(%ra: memref<4x128x64xbf16, #shared>, %rb: memref<4x128x256xbf16, #shared>, %s: index, %acc: vector<128x256xf32>) {
  // expected-error @below {{have 64 and 128 elements along k}}
  %0 = "fuse.warpgroup_mma"(%ra, %rb, %s, %acc) {a_major = "k", b_major = "mn"}
      : (memref<4x128x64xbf16, #shared>, memref<4x128x256xbf16, #shared>, index, vector<128x256xf32>) -> vector<128x256xf32>
  return
}

// -----

func.func @registers_out_of_range() {
  // expected-error @below {{count = 20 must be a multiple of 8 from 24 to 240}}
  "fuse.set_registers"() {count = 20 : i64, action = "decrease"} : () -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @subtiles(%y: vector<128x256xbf16>, %c: memref<?x512xbf16>, %ring: memref<2x128x64xbf16, #shared>, %s: index) {
  "fuse.stage_tile"(%ring, %s, %y) {offset = 192 : i64} : (memref<2x128x64xbf16, #shared>, index, vector<128x256xbf16>) -> ()
  "fuse.async_store"(%c, %ring, %s, %s, %s) {dims = array<i64: 0, 1>}
      : (memref<?x512xbf16>, memref<2x128x64xbf16, #shared>, index, index, index) -> ()
  "fuse.async_store_wait"() {pending = 0 : i64} : () -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @past_the_tile(%y: vector<128x256xbf16>, %ring: memref<2x128x64xbf16, #shared>, %s: index) {
  // expected-error @below {{columns 224 to 288 of vector<128x256xbf16> do not fill a stage}}
  "fuse.stage_tile"(%ring, %s, %y) {offset = 224 : i64} : (memref<2x128x64xbf16, #shared>, index, vector<128x256xbf16>) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @transposed_subtiles(%y: vector<128x96xbf16>, %ring: memref<2x48x128xbf16, #shared>, %s: index) {
  "fuse.stage_tile"(%ring, %s, %y) {offset = 48 : i64, transposed} : (memref<2x48x128xbf16, #shared>, index, vector<128x96xbf16>) -> ()
  // expected-error @below {{columns 0 to 128 of vector<128x96xbf16> do not fill a stage}}
  "fuse.stage_tile"(%ring, %s, %y) {offset = 0 : i64} : (memref<2x48x128xbf16, #shared>, index, vector<128x96xbf16>) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @staged(%ring: memref<4x128x64xbf16, #shared>, %s: index) {
  %0 = "fuse.staged_tile"(%ring, %s) {offsets = array<i64: 0, 32>} : (memref<4x128x64xbf16, #shared>, index) -> vector<128x96xbf16>
  %1:2 = "fuse.staged_tile"(%ring, %s) {offsets = array<i64: 0>} : (memref<4x128x64xbf16, #shared>, index) -> (vector<2xbf16>, vector<2xbf16>)
  %2 = "fuse.staged_tile"(%ring, %s) {offsets = array<i64: 0, 128>, transposed} : (memref<4x128x64xbf16, #shared>, index) -> vector<64x256xbf16>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @columns_in_no_stage(%ring: memref<4x128x64xbf16, #shared>, %s: index) {
  // expected-error @below {{stages of memref<4x128x64xbf16, #gpu.address_space<workgroup>> from [0, 64] on are not vector<128x192xbf16>}}
  %0 = "fuse.staged_tile"(%ring, %s) {offsets = array<i64: 0, 64>} : (memref<4x128x64xbf16, #shared>, index) -> vector<128x192xbf16>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @vectors_of_two_stages(%ring: memref<4x128x64xbf16, #shared>, %s: index) {
  // expected-error @below {{a thread's vectors are of one stage, not of columns from [0, 64] on}}
  %0 = "fuse.staged_tile"(%ring, %s) {offsets = array<i64: 0, 64>} : (memref<4x128x64xbf16, #shared>, index) -> vector<2xbf16>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @staged_as_another_type(%ring: memref<4x128x64xbf16, #shared>, %s: index) {
  // expected-error @below {{elements of vector<128x64xf16> and memref<4x128x64xbf16, #gpu.address_space<workgroup>> differ}}
  %0 = "fuse.staged_tile"(%ring, %s) {offsets = array<i64: 0>} : (memref<4x128x64xbf16, #shared>, index) -> vector<128x64xf16>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @other_elements(%c: memref<?x512xf32>, %ring: memref<2x128x64xbf16, #shared>, %s: index) {
  // expected-error @below {{elements of memref<?x512xf32> and memref<2x128x64xbf16, #gpu.address_space<workgroup>> differ}}
  "fuse.async_store"(%c, %ring, %s, %s, %s) {dims = array<i64: 0, 1>}
      : (memref<?x512xf32>, memref<2x128x64xbf16, #shared>, index, index, index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @columns_of_a_stage(%ring: memref<4x128x64xbf16, #shared>, %s: index) {
  %0 = "fuse.staged_tile"(%ring, %s) {offsets = array<i64: 0>, first = 48 : i64, columns = 16 : i64} : (memref<4x128x64xbf16, #shared>, index) -> vector<128x16xbf16>
  // expected-error @below {{vector<128x16xbf16> from column 56 on is no part of a stage}}
  %1 = "fuse.staged_tile"(%ring, %s) {offsets = array<i64: 0>, first = 56 : i64, columns = 16 : i64} : (memref<4x128x64xbf16, #shared>, index) -> vector<128x16xbf16>
  return
}
