// RUN: mlirfuse-opt --lower-attach-target --target=sm_120 --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s
// RUN: not mlirfuse-opt --lower-attach-target --target=sm_42 %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: unknown target 'sm_42'

// A kernel that waits for its predecessor is for sm_90 and later. LLVM would end the process.
// RUN: not mlirfuse-opt --lower-attach-target --target=sm_80 --split-input-file %s 2>&1 | FileCheck %s --check-prefix=WAIT
// WAIT: error: kernel "waits" uses nvvm.griddepcontrol, which sm_80 does not have
// CHECK: gpu.func @waits
gpu.module @wait {
  gpu.func @waits() kernel {
    nvvm.griddepcontrol wait
    gpu.return
  }
}

// -----

// CHECK: gpu.module @bare [#nvvm.target<O = 3, chip = "sm_120", features = "+ptx87">]
gpu.module @bare {
}

// -----

// CHECK: gpu.module @replaced [#nvvm.target<O = 3, chip = "sm_120", features = "+ptx87">]
gpu.module @replaced [#nvvm.target<chip = "sm_80">] {
}

// -----

// expected-remark @unknown {{the module has no gpu.module to attach a target to}}
// CHECK-LABEL: func.func @no_kernel
func.func @no_kernel() {
  return
}
