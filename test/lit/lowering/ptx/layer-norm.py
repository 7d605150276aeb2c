# RUN: %python %s > %t.ptx && FileCheck %s < %t.ptx
# RUN: %if ptxas %{ ptxas -arch=sm_90a -v %t.ptx -o %t.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS %}
"""The PTX of a LayerNorm over 4096 columns in half precision: wide accesses, one barrier, nothing in local memory."""

import sys

import mlirfuse as mf


def layer_norm(x, w, b):
    h = x.astype(mf.float32)
    mu = mf.mean(h, axis=-1, keepdims=True)
    var = mf.mean((h - mu) ** 2, axis=-1, keepdims=True)
    return ((h - mu) * mf.rsqrt(var + 1e-5) * w + b).astype(x.dtype)


specs = [mf.TensorSpec((None, 4096), mf.float16), *[mf.TensorSpec((4096,), mf.float16)] * 2]
sys.stdout.write(mf.fuse(layer_norm, target="sm_90a").lower(*specs).compile().as_text("ptx"))

# SPILLS: 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads

# CHECK-LABEL: .entry layer_norm_0_kernel
# CHECK-NOT: .local
# CHECK: ld.global{{.*}}.v4.b32
# CHECK-NOT: .local
# CHECK: bar.sync
# CHECK-NOT: bar.sync
# CHECK: st.global.cs.v4.b32
# CHECK-NOT: {{bar.sync|\.local}}
