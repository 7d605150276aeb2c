# RUN: %python %s > %t.ptx && FileCheck %s < %t.ptx
# RUN: %if ptxas %{ ptxas -arch=sm_90a -v %t.ptx -o %t.cubin 2>&1 | FileCheck %s --check-prefix=PTXAS %}
"""The PTX of a product on Hopper: one fence and one commit a stage, nothing in local memory, no serialised wgmma."""

import sys

import mlirfuse as mf
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.schedule import Schedule


def product(x, w):
    return x @ w


layout = BlockedLayout(
    vector=(1, 2), lanes=(8, 4), warps=(8, 1), repeats=(1, 32), blocks=(1, 1), inner=(2, 1)
)  # fmt: skip
schedule = Schedule((128, 256), layout, contraction=ContractionSchedule(64, "wgmma", 4))
specs = [mf.TensorSpec((8192, 4096), mf.bfloat16), mf.TensorSpec((4096, 4096), mf.bfloat16)]
kernel = mf.fuse(product, target="sm_90a", schedule=schedule).lower(*specs).compile()
sys.stdout.write(kernel.as_text("ptx"))

# PTXAS-NOT: wgmma.mma_async instructions are serialized
# PTXAS: 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads

# CHECK-LABEL: .entry product_0_kernel
# Tensor maps are passed by value, where the hardware reads them.
# CHECK: .param .align 64 .b8 product_0_kernel_param_{{[0-9]+}}[128]
# CHECK: .minnctapersm 1
# CHECK-NOT: .local
# CHECK: mbarrier.init.shared
# CHECK: fence.mbarrier_init
# CHECK: bar.sync 0
# CHECK-DAG: setmaxnreg.dec.sync.aligned.u32 40
# CHECK-DAG: setmaxnreg.inc.sync.aligned.u32 232
