"""The pipeline: the passes in their order, and the end of each stage. The order is defined here alone.

Every stage is a textual pipeline that `mlirfuse-opt` runs too, so any stage can be reproduced, stopped in, or started
from by hand. `{fast}` stands for whether roundings may be left out, and subnormal numbers flushed. The architecture is
no option: passes read it from the module (`mlirfuse/dialect/module_target.py`).
"""

from __future__ import annotations

from mlirfuse.errors import PipelineError
from mlirfuse.lowering.ptx.to_ptx import CANONICALIZE
from mlirfuse.passmanager import registry
from mlirfuse.passmanager.syntax import parse_pipeline
from mlirfuse.target.instructions import FAMILIES

TO_KERNELS = (
    "fuse-fold-empty,fuse-copy-results,fuse-views,cse,fuse-fold-joins,fuse-rotate-joins,fuse-flatten-joins,fuse-contract-sums,fuse-unroll-reductions,fuse-bubble-reshapes,fuse-bubble-slices,fuse-views,fuse-reduce-slices,cse,fuse-slice-products,fuse-window-slices,fuse-unroll-sums,fuse-divide-joins,cse,fuse-store-operands,fuse-copy-parts,fuse-store-viewed,fuse-compose-gathers,fuse-gather-reductions,fuse-compose-together,cse,"
    "fuse-merge-groups,fuse-pad-channels,"
    "fuse-collapse-contractions,fuse-expand-reshapes,fuse-reshape-gathers,fuse-copy-reshaped,"
    "fuse-fold-casts{{through-rounding={fast}}},"
    "fuse-multiply-add,fuse-collapse-slices,fuse-defer-epilogues,fuse-segment,fuse-hint-extents,"
    "fuse-mix-order-reduction,fuse-recompute,"
    "fuse-prologues,fuse-factor-sums,fuse-cse,fuse-join-kernels,fuse-permute-operands,fuse-shared-operands,"
    "fuse-operand-sums,fuse-permute-results,"
    "fuse-collapse-dims,fuse-split-rows,fuse-merge-moments,fuse-merge-exp-sums,fuse-split-reductions,"
    "fuse-split-parts,fuse-scatter-results,fuse-scatter-parts,fuse-hint-extents,fuse-flatten-rows"
)
"""Tensors to kernels without schedules."""

ASSIGN = "fuse-assign-schedule{{tuned={tuned}}}"
"""Kernels without schedules to kernels with schedules."""

GRAPH = f"{TO_KERNELS},{ASSIGN}"
"""Tensors to kernels with schedules."""

ADDITIONS_STAY = ",".join(f"CanonicalizeContractAdd<mlir::arith::{op}>" for op in ("AddFOp", "AddIOp"))
"""Upstream's patterns that fold an addition into the accumulator of a contraction without a loop. A contraction with
other uses stays, and is then computed twice from shared operands."""

TILE = (
    "fuse-expand-moments,fuse-expand-exp-sums,fuse-tile-contraction,fuse-split-k,fuse-skip-zeros,fuse-pipeline-contraction,"
    "fuse-stage-results,fuse-stage-residuals,fuse-prefetch-residuals,"
    "fuse-tile-grid-reduction,fuse-tile-grid-persistent,fuse-tile-persistent,fuse-tile-chunked,"
    f"canonicalize{{{{region-simplify=disabled disable-patterns={ADDITIONS_STAY}}}}},cse,"
    "fuse-pack-live-values,fuse-spill-to-shared"
)
"""Kernels to tile programs."""

_CANONICALIZE = CANONICALIZE.replace("{", "{{").replace("}", "}}")

GPU = (
    "fuse-share-arguments,fuse-transpose-operands,fuse-materialize-prologues,fuse-stage-operands,fuse-stage-persistent-loop,fuse-peel-persistent-loop,"
    "fuse-prefetch-tiles,fuse-rematerialize,fuse-transpose-tiles,fuse-flatten-tiles,fuse-assign-layouts,fuse-share-slices,"
    f"fuse-distribute,fuse-unswitch-checks,fuse-resolve-gathers,fuse-resolve-scatters,{_CANONICALIZE},cse,fuse-merge-guards,cse,fuse-merge-loads,fuse-merge-stores,fuse-exchange-stores,fuse-roll-stores,"
    "fuse-interleave-copies,fuse-prefetch-fragments,"
    "fuse-dependent-launch,fuse-launch-dependents,"
    "fuse-assign-l2-policies,fuse-narrow-bounds,fuse-unroll-loops"
)
"""Tile programs to one thread's code."""

PRODUCTS = ",".join(name for family in FAMILIES.values() for name in family.lowerings)
"""The products of all instruction families."""

LOWER = (
    "lower-attach-target,lower-cluster-ops,lower-prefetches,lower-semaphores,"
    "lower-flagged-accesses,lower-accumulations,lower-cluster-views,lower-mbarriers,lower-async-copies,"
    f"lower-stage-tiles,{PRODUCTS},lower-warpgroup-control,lower-cluster-ranks,lower-kernel-abi,"
    "lower-shared-memory,lower-ordered-accesses,lower-l2-policies,lower-streaming-accesses,lower-masked-loads,"
    "lower-carried-loads,"
    "lower-optimization-barriers,lower-rare-branches,"
    "lower-float8,lower-int8,lower-tanh,lower-exponentials{{flush-subnormals={fast}}},lower-divisions,"
    "lower-shared-divisions,lower-bounded-divisions,lower-rounded-divisions,lower-scaled-divisions,lower-math,lower-contraction,"
    "lower-bfloat16,lower-float16,lower-float-to-int"
)
"""One thread's code to where upstream's conversion to NVVM begins."""

NAMED: dict[str, str] = {
    "fuse-graph-pipeline": GRAPH,
    "fuse-tile-pipeline": f"{GRAPH},{TILE}",
    "fuse-gpu-pipeline": f"{GRAPH},{TILE},{GPU}",
    "fuse-lower-pipeline": f"{GRAPH},{TILE},{GPU},{LOWER}",
    "fuse-kernel-pipeline": f"{TILE},{GPU}",
    "fuse-thread-pipeline": LOWER,
}
"""Pipelines by name. All start from the linalg stage but the last two, which go on where `fuse-graph-pipeline` and
`fuse-gpu-pipeline` end.
"""


def named(name: str, *, fast_math: bool = False, tuned: bool = False) -> str:
    """The textual pipeline of that name; raises `PipelineError` for one that is not known.

    Args:
        name: a name of `NAMED`.
        fast_math: whether roundings between operations may be left out, and subnormal numbers flushed.
        tuned: whether tuned schedules come before the cost model's.
    """
    if name not in NAMED:
        raise PipelineError(f"unknown pipeline {name!r}", hint=f"pipelines: {', '.join(NAMED)}")
    return stage(NAMED[name], fast_math=fast_math, tuned=tuned)


def stage(passes: str, *, fast_math: bool = False, tuned: bool = False) -> str:
    """A list of passes as a pipeline over `builtin.module`, with the options of `named`."""
    options = {"fast": str(fast_math).lower(), "tuned": str(tuned).lower()}
    return f"builtin.module({passes.format(**options)})"


def passes() -> tuple[str, ...]:
    """The names of mlirfuse's passes, in the order of the pipeline; passes that are in no pipeline come last."""
    elements = parse_pipeline(named("fuse-lower-pipeline"))
    ours = registry.names()
    ordered = dict.fromkeys(element.name for element in elements if element.name in ours)
    return (*ordered, *(name for name in ours if name not in ordered))
