// Upstream and mlirfuse passes in one pipeline: order, nesting, --stop-after, printing.

// RUN: mlirfuse-opt %s --pass-pipeline='builtin.module(func.func(canonicalize,cse),fuse-verify)' | FileCheck %s
// RUN: mlirfuse-opt %s --canonicalize --fuse-verify --cse --stop-after=fuse-verify \
// RUN:   --mlir-print-ir-after-all --mlir-timing 2>&1 | FileCheck %s --check-prefix=REPORT
// RUN: mlirfuse-opt - --mlir-print-ir-after-change --fuse-verify --canonicalize < %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CHANGE

// CHECK-LABEL: func.func @sum_with_zero
// CHECK-SAME:    (%[[A:.+]]: i32)
// CHECK-NEXT:    return %[[A]]

// REPORT:     IR Dump After Canonicalizer (canonicalize)
// REPORT:     IR Dump After FuseVerify (fuse-verify)
// REPORT-NOT: IR Dump After CSE
// REPORT:     Execution time report
// REPORT-NOT: CSE
// REPORT:     FuseVerify

// CHANGE-NOT: IR Dump After FuseVerify
// CHANGE:     IR Dump After Canonicalizer

func.func @sum_with_zero(%a: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = arith.addi %a, %zero : i32
  return %sum : i32
}
