# RUN: %python %s > %t.ptx && FileCheck %s < %t.ptx
# RUN: %if ptxas %{ ptxas -arch=sm_80 -v %t.ptx -o %t.cubin 2>&1 | FileCheck %s --check-prefix=PTXAS %}
"""The PTX of a product on Ampere: copies in the background, matrices from shared memory, nothing in local memory."""

import sys

import mlirfuse as mf


def product(x, w):
    return x @ w.T


specs = [mf.TensorSpec((4096, 4096), mf.float16)] * 2
kernel = mf.fuse(product, target="sm_80").lower(*specs).compile()
sys.stdout.write(kernel.as_text("ptx"))

# PTXAS: 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads

# CHECK-LABEL: .entry product_0_kernel
# CHECK-NOT: .local
# CHECK-DAG: cp.async.ca.shared.global
# CHECK-DAG: cp.async.commit_group
# CHECK-DAG: cp.async.wait_group 1
# CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
# CHECK-DAG: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
# CHECK-DAG: st.global
