"""Pass names and where their classes are. Modules are imported when a pass is first asked for.

A pass named `fuse-fold-casts` lives in `fuse_fold_casts.py` and is tested by `fuse-fold-casts.mlir` under
`test/lit/passes` (or `lowering`); `tests/unit/test_registry.py` holds every entry to that.
"""

from __future__ import annotations

import difflib
from importlib import import_module

from mlirfuse.errors import PipelineError
from mlirfuse.passes.base import Pass
from mlirfuse.renamed_names import renamed

PASSES: dict[str, str] = {
    "fuse-fold-empty": "mlirfuse.passes.fuse_fold_empty:FuseFoldEmpty",
    "fuse-views": "mlirfuse.passes.fuse_views:FuseViews",
    "fuse-copy-reshaped": "mlirfuse.passes.fuse_copy_reshaped:FuseCopyReshaped",
    "fuse-fold-casts": "mlirfuse.passes.fuse_fold_casts:FuseFoldCasts",
    "fuse-multiply-add": "mlirfuse.passes.fuse_multiply_add:FuseMultiplyAdd",
    "fuse-segment": "mlirfuse.passes.fuse_segment:FuseSegment",
    "fuse-mix-order-reduction": "mlirfuse.passes.fuse_mix_order_reduction:FuseMixOrderReduction",
    "fuse-recompute": "mlirfuse.passes.fuse_recompute:FuseRecompute",
    "fuse-prologues": "mlirfuse.passes.fuse_prologues:FusePrologues",
    "fuse-collapse-dims": "mlirfuse.passes.fuse_collapse_dims:FuseCollapseDims",
    "fuse-split-rows": "mlirfuse.passes.fuse_split_rows:FuseSplitRows",
    "fuse-merge-moments": "mlirfuse.passes.fuse_merge_moments:FuseMergeMoments",
    "fuse-merge-exp-sums": "mlirfuse.passes.fuse_merge_exp_sums:FuseMergeExpSums",
    "fuse-assign-schedule": "mlirfuse.passes.fuse_assign_schedule:FuseAssignSchedule",
    "fuse-expand-moments": "mlirfuse.passes.fuse_expand_moments:FuseExpandMoments",
    "fuse-expand-exp-sums": "mlirfuse.passes.fuse_expand_exp_sums:FuseExpandExpSums",
    "fuse-tile-contraction": "mlirfuse.passes.fuse_tile_contraction:FuseTileContraction",
    "fuse-split-k": "mlirfuse.passes.fuse_split_k:FuseSplitK",
    "fuse-pipeline-contraction": "mlirfuse.passes.fuse_pipeline_contraction:FusePipelineContraction",
    "fuse-stage-results": "mlirfuse.passes.fuse_stage_results:FuseStageResults",
    "fuse-stage-residuals": "mlirfuse.passes.fuse_stage_residuals:FuseStageResiduals",
    "fuse-tile-grid-reduction": "mlirfuse.passes.fuse_tile_grid_reduction:FuseTileGridReduction",
    "fuse-tile-persistent": "mlirfuse.passes.fuse_tile_persistent:FuseTilePersistent",
    "fuse-tile-chunked": "mlirfuse.passes.fuse_tile_chunked:FuseTileChunked",
    "fuse-pack-live-values": "mlirfuse.passes.fuse_pack_live_values:FusePackLiveValues",
    "fuse-park-live-values": "mlirfuse.passes.fuse_park_live_values:FuseParkLiveValues",
    "fuse-turn-factors": "mlirfuse.passes.fuse_turn_factors:FuseTurnFactors",
    "fuse-store-factors": "mlirfuse.passes.fuse_store_factors:FuseStoreFactors",
    "fuse-stage-operands": "mlirfuse.passes.fuse_stage_operands:FuseStageOperands",
    "fuse-stage-walk": "mlirfuse.passes.fuse_stage_walk:FuseStageWalk",
    "fuse-peel-walk": "mlirfuse.passes.fuse_peel_walk:FusePeelWalk",
    "fuse-prefetch-tiles": "mlirfuse.passes.fuse_prefetch_tiles:FusePrefetchTiles",
    "fuse-rematerialize": "mlirfuse.passes.fuse_rematerialize:FuseRematerialize",
    "fuse-cross-tiles": "mlirfuse.passes.fuse_cross_tiles:FuseCrossTiles",
    "fuse-assign-layouts": "mlirfuse.passes.fuse_assign_layouts:FuseAssignLayouts",
    "fuse-distribute": "mlirfuse.passes.fuse_distribute:FuseDistribute",
    "fuse-spread-copies": "mlirfuse.passes.fuse_spread_copies:FuseSpreadCopies",
    "fuse-prefetch-fragments": "mlirfuse.passes.fuse_prefetch_fragments:FusePrefetchFragments",
    "fuse-dependent-launch": "mlirfuse.passes.fuse_dependent_launch:FuseDependentLaunch",
    "fuse-launch-dependents": "mlirfuse.passes.fuse_launch_dependents:FuseLaunchDependents",
    "fuse-assign-l2-policies": "mlirfuse.passes.fuse_assign_l2_policies:FuseAssignL2Policies",
    "lower-attach-target": "mlirfuse.lowering.lower_attach_target:LowerAttachTarget",
    "lower-cluster-ops": "mlirfuse.lowering.lower_cluster_ops:LowerClusterOps",
    "lower-prefetches": "mlirfuse.lowering.lower_prefetches:LowerPrefetches",
    "lower-mma": "mlirfuse.lowering.lower_mma:LowerMma",
    "lower-semaphores": "mlirfuse.lowering.lower_semaphores:LowerSemaphores",
    "lower-mailboxes": "mlirfuse.lowering.lower_mailboxes:LowerMailboxes",
    "lower-accumulations": "mlirfuse.lowering.lower_accumulations:LowerAccumulations",
    "lower-cluster-views": "mlirfuse.lowering.lower_cluster_views:LowerClusterViews",
    "lower-mbarriers": "mlirfuse.lowering.lower_mbarriers:LowerMbarriers",
    "lower-async-copies": "mlirfuse.lowering.lower_async_copies:LowerAsyncCopies",
    "lower-stage-tiles": "mlirfuse.lowering.lower_stage_tiles:LowerStageTiles",
    "lower-warpgroup-mma": "mlirfuse.lowering.lower_warpgroup_mma:LowerWarpgroupMma",
    "lower-warpgroup-control": "mlirfuse.lowering.lower_warpgroup_control:LowerWarpgroupControl",
    "lower-cluster-ranks": "mlirfuse.lowering.lower_cluster_ranks:LowerClusterRanks",
    "lower-kernel-abi": "mlirfuse.lowering.lower_kernel_abi:LowerKernelAbi",
    "lower-shared-memory": "mlirfuse.lowering.lower_shared_memory:LowerSharedMemory",
    "lower-ordered-accesses": "mlirfuse.lowering.lower_ordered_accesses:LowerOrderedAccesses",
    "lower-l2-policies": "mlirfuse.lowering.lower_l2_policies:LowerL2Policies",
    "lower-streaming-accesses": "mlirfuse.lowering.lower_streaming_accesses:LowerStreamingAccesses",
    "lower-pins": "mlirfuse.lowering.lower_pins:LowerPins",
    "lower-float8": "mlirfuse.lowering.lower_float8:LowerFloat8",
    "lower-int8": "mlirfuse.lowering.lower_int8:LowerInt8",
    "lower-math": "mlirfuse.lowering.lower_math:LowerMath",
    "lower-tanh": "mlirfuse.lowering.lower_tanh:LowerTanh",
    "lower-exponentials": "mlirfuse.lowering.lower_exponentials:LowerExponentials",
    "lower-divisions": "mlirfuse.lowering.lower_divisions:LowerDivisions",
    "lower-shared-divisions": "mlirfuse.lowering.lower_shared_divisions:LowerSharedDivisions",
    "lower-rounded-divisions": "mlirfuse.lowering.lower_rounded_divisions:LowerRoundedDivisions",
    "lower-contraction": "mlirfuse.lowering.lower_contraction:LowerContraction",
    "lower-bfloat16": "mlirfuse.lowering.lower_bfloat16:LowerBfloat16",
    "lower-float16": "mlirfuse.lowering.lower_float16:LowerFloat16",
    "lower-float-to-int": "mlirfuse.lowering.lower_float_to_int:LowerFloatToInt",
    "fuse-verify": "mlirfuse.passes.fuse_verify:FuseVerify",
}


def names() -> tuple[str, ...]:
    """The names of all passes, in the order of the pipeline; what is in none comes last."""
    return tuple(PASSES)


def lookup(name: str) -> type[Pass]:
    """The class of that pass; raises `PipelineError` for a name that is not registered."""
    if name not in PASSES:
        raise PipelineError(f"unknown pass {name!r}", hint=suggest(name))
    module, _, attribute = PASSES[name].partition(":")
    cls: type[Pass] = getattr(import_module(module), attribute)
    return cls


def suggest(name: str) -> str:
    """What to try instead of a name that is not registered."""
    if (hint := renamed("pass", name)) is not None:
        return hint
    close = difflib.get_close_matches(name, PASSES, n=1)
    return f"did you mean {close[0]!r}?" if close else "mlirfuse-opt --list-passes lists mlirfuse's passes"


def summary(cls: type[Pass]) -> str:
    """The first line of a pass's docstring."""
    return (cls.__doc__ or "").strip().partition("\n")[0]
