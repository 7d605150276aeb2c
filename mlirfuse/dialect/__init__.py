"""The `fuse` dialect: ops and attributes that upstream MLIR lacks. Each op has a file, whose docstring is its
reference.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import irdl
from mlir.dialects._ods_common import _cext

from mlirfuse.dialect import (
    accumulate,
    async_load,
    async_store,
    async_store_wait,
    cluster_barrier,
    cluster_send,
    cluster_store,
    cluster_view,
    convert_layout,
    copy_fragments,
    copy_tile,
    elect_one,
    exp_sum,
    flagged_load,
    flagged_store,
    group_barrier,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    mma,
    moments,
    optimization_barrier,
    prefetch_rows,
    resident_blocks,
    semaphore_arrive,
    semaphore_wait,
    set_registers,
    spill_to_shared,
    stage_tile,
    staged_tile,
    warp_roles,
    warpgroup_mma,
    warpgroup_wait,
)
from mlirfuse.dialect.base import OpDefinition

_cext.globals.append_dialect_search_prefix(__name__)  # the package of `fuse.py`

OPS: dict[str, OpDefinition] = {
    module.DEFINITION.full_name: module.DEFINITION
    for module in (
        moments,
        exp_sum,
        optimization_barrier,
        spill_to_shared,
        convert_layout,
        cluster_store,
        cluster_send,
        cluster_barrier,
        cluster_view,
        copy_tile,
        copy_fragments,
        prefetch_rows,
        mma,
        semaphore_arrive,
        semaphore_wait,
        flagged_store,
        flagged_load,
        accumulate,
        resident_blocks,
        mbarrier_init,
        mbarrier_arrive,
        mbarrier_expect,
        mbarrier_wait,
        async_load,
        stage_tile,
        staged_tile,
        async_store,
        async_store_wait,
        warpgroup_mma,
        warpgroup_wait,
        warp_roles,
        elect_one,
        set_registers,
        group_barrier,
    )
}


def load(context: ir.Context) -> None:
    """Registers the dialect in a context, unless it is registered already.

    IRDL may load a dialect only once: a second load into the same context would abort the process.
    """
    with context, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            dialect = irdl.dialect("fuse")
            with ir.InsertionPoint(dialect.body):
                for definition in OPS.values():
                    definition.declare()
        irdl.load_dialects(module)
