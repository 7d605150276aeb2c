"""Every discardable attribute of the `fuse` dialect: its name, its type, what carries it, who sets and who reads it.

Code refers to an attribute by its constant, its full name. Attributes of the dialect's own ops are declared with these.
"""

from __future__ import annotations

from mlir import ir

from mlirfuse.dialect import copies as copies
from mlirfuse.dialect import expected_extents as expected_extents
from mlirfuse.dialect.attribute import (
    ALIGNMENT,
    DICTIONARY,
    I64,
    INTEGERS,
    MAP,
    PAIRS,
    STRIDE_ENTRIES,
    STRING,
    SYMBOL,
    UNIT,
    array_of,
    declare,
    one_of,
)
from mlirfuse.dialect.attribute import ATTRIBUTES as ATTRIBUTES
from mlirfuse.dialect.clamped_attribute import CLAMPED as CLAMPED
from mlirfuse.dialect.flat_attribute import FLAT as FLAT
from mlirfuse.dialect.gather_attribute import GATHER as GATHER
from mlirfuse.dialect.separation import DEFERRED as DEFERRED
from mlirfuse.dialect.separation import OPERATION as OPERATION
from mlirfuse.dialect.separation import STORED as STORED

_ANY, _NONE, _THREADS, _LOWERED = None, (), ("gpu.func",), ("gpu.func", "llvm.func")
_HOST = _TILE = ("func.func",)
_FUNCTIONS = (*_TILE, *_LOWERED)

TARGET = declare(
    "target",
    DICTIONARY,
    ("builtin.module",),
    'What a module is compiled for, `{chip = "sm_90a", sms = 132 : i64}`, with the `device`\'s name where it is known.',
    set_by="dialect/module_target",
    read_by="dialect/module_target",
)

# Host functions: the user's function and options.
NAME = declare(
    "name",
    STRING,
    _NONE,
    "The argument's name in the Python function.",
    set_by="builder",
    read_by="compiler, interpreter, fuse-segment, fuse-copy-reshaped",
    holders=_FUNCTIONS,
)
ALIGN = declare(
    "align",
    ALIGNMENT,
    _NONE,
    "Bytes that the argument's address is a multiple of; 16 where it is absent.",
    set_by="builder, analysis/memory/strided_views, tiling/kernel_signature",
    read_by="analysis, distribution, passes, lower-kernel-abi, interpreter",
    holders=_FUNCTIONS,
)
STRIDES = declare(
    "strides",
    STRIDE_ENTRIES,
    _NONE,
    "On an argument that is not C-contiguous: each dimension's stride in elements, or, where run time alone knows it,"
    ' "?" (not negative), "negative" (of any sign) or "packed" (the next dimension\'s extent times its stride).',
    set_by="builder, analysis/memory/strided_views",
    read_by="analysis, passes, tiling/program, compiler/read_host",
    holders=_FUNCTIONS,
)
EQUAL_EXTENTS = declare(
    "equal_extents",
    array_of("array<i64>", ir.DenseI64ArrayAttr),
    _FUNCTIONS,
    "Groups of (argument, dimension) pairs whose extents are equal, which the runtime checks.",
    set_by="builder, tiling/program",
    read_by="builder, fuse-narrow-bounds",
)
RESULTS = declare(
    "results",
    one_of("single", "tuple", "list"),
    _HOST,
    "How the Python function returned its results.",
    set_by="builder",
    read_by="compiler/read_host",
)
SCHEDULES = declare(
    "schedules",
    DICTIONARY,
    _HOST,
    "The schedules that the user asked for, by kernel.",
    set_by="compiler/requests",
    read_by="fuse-segment, fuse-fold-empty",
)
MIX_ORDER = declare(
    "mix_order",
    STRING,
    _HOST,
    "`split` keeps the kernels of a mix-order reduction apart; `fused` makes it an error where they must stay apart.",
    set_by="compiler/requests",
    read_by="fuse-mix-order-reduction, fuse-join-kernels, fuse-fold-empty",
)
GRID_REDUCTION = declare(
    "grid_reduction",
    one_of("grid_sync", "last_block", "second_kernel", "atomics"),
    _HOST,
    "How all kernels combine the partials of grid reductions.",
    set_by="compiler/requests",
    read_by="fuse-assign-schedule, fuse-mix-order-reduction, fuse-join-kernels, fuse-fold-empty",
)
SPLIT_KERNELS = declare(
    "split_kernels",
    array_of("strings", ir.StringAttr),
    _HOST,
    "Kernels that are to be several: as one, all schedules near the fastest spill.",
    set_by="compiler/split_kernels",
    read_by="passes/kernels/host, fuse-split-reductions",
)
_TRIED, _TRIED_BY = "Schedules tried, with the assembler's reports, by kernel.", "passes/kernels/schedule_attempts"
ATTEMPTS = declare("attempts", DICTIONARY, _HOST, _TRIED, set_by=_TRIED_BY, read_by=_TRIED_BY)
_ROWS = "A sum of products is a reduction over rows."
BY_ROWS = declare("by_rows", UNIT, _ANY, _ROWS, set_by="passes/fusion/order_choice", read_by="analysis/contractions")
_SUMMED = "A factor of an einsum's products is summed over indices that no other factor has, before it is multiplied."
FACTOR_SUM = declare("factor_sum", UNIT, _ANY, _SUMMED, set_by="builder", read_by="fuse-factor-sums")
PRECISION = declare(
    "precision",
    STRING,
    _ANY,
    "On an op of a contraction's body: how exactly it multiplies, one of `support/precision.py`; `ieee` where absent.",
    set_by="builder, tiling/contractions/k_loop",
    read_by="analysis/contractions, fuse-pipeline-contraction, distribution/mma, interpreter",
)

# Kernels: the interface between the host and a kernel.
KERNEL = declare(
    "kernel",
    UNIT,
    _TILE,
    "A function that becomes one kernel.",
    set_by="fuse-segment, passes/kernels/kernel_pair, passes/splitting/row_split, tiling/program",
    read_by="analysis/kernels, compiler/read_host, passes, tools",
)
LAUNCH = declare(
    "launch",
    SYMBOL,
    _HOST,
    "On a declaration that the host calls: the kernel that implements it.",
    set_by="tiling/program",
    read_by="compiler/read_host, interpreter, tools",
)
RESULT_EXTENTS = declare(
    "result_extents",
    PAIRS,
    _HOST,
    "The (argument, dimension) that each dynamic extent of a kernel's results equals.",
    set_by="passes/fusion, passes/kernels, tiling/kernel_signature, tiling/program",
    read_by="analysis/kernels, interpreter",
)
SCHEDULE = declare(
    "schedule",
    DICTIONARY,
    _TILE,
    "The kernel's schedule: the fields of `schedule.Schedule`.",
    set_by="fuse-assign-schedule, passes/fusion, tiling/program",
    read_by="schedule/schedule, passes/kernels, passes/fusion",
)
CLUSTER = declare(
    "cluster",
    I64,
    _TILE,
    "Neighbouring thread blocks, with a tile of their own each, that form a cluster.",
    set_by="fuse-split-k, fuse-pipeline-contraction",
    read_by="fuse-distribute, interpreter",
)
COOPERATIVE = declare(
    "cooperative",
    UNIT,
    _FUNCTIONS,
    "All thread blocks wait for each other, and so must be resident at once.",
    set_by="tiling, fuse-split-k, fuse-distribute",
    read_by="fuse-distribute, compiler/kernel_info, interpreter",
)
WORKSPACE = declare(
    "workspace",
    STRING,
    _NONE,
    "An argument that the runtime allocates: `semaphores` are zero before and after a launch, `scratch` is undefined.",
    set_by="tiling/sync, tiling/reduction",
    read_by="analysis/memory/workspaces, lower-kernel-abi, fuse-assign-l2-policies, passes/pipelining",
    holders=_FUNCTIONS,
)
WORKSPACE_EXTENTS = declare(
    "workspace_extents",
    MAP,
    _NONE,
    "A workspace's dynamic extents, over symbols.",
    set_by="tiling/sync, tiling/reduction",
    read_by="analysis/memory/workspaces",
    holders=_FUNCTIONS,
)
WORKSPACE_OPERANDS = declare(
    "workspace_operands",
    PAIRS,
    _NONE,
    "The (argument, dimension) of each of the symbols; (-1, k) is the blocks that are resident at k an SM.",
    set_by="tiling/sync, tiling/reduction",
    read_by="analysis/memory/workspaces",
    holders=_FUNCTIONS,
)

# Ops of tile programs.
LAYOUT = declare(
    "layout",
    DICTIONARY,
    _ANY,
    "The layout of the op's tile over threads: the fields of `schedule.layout.BlockedLayout`.",
    set_by="fuse-assign-layouts, fuse-transpose-tiles, fuse-materialize-prologues, fuse-stage-operands",
    read_by="distribution/distributor, passes/layouts, fuse-stage-operands",
)
STREAMING = declare(
    "streaming",
    UNIT,
    ("vector.transfer_read", "vector.transfer_write", "fuse.copy_tile", "fuse.copy_fragments"),
    "The grid touches this data once, so that it need not stay in the caches.",
    set_by="tiling/transfers",
    read_by="fuse-spill-to-shared, fuse-prefetch-tiles, fuse-stage-persistent-loop, distribution/access",
)
DIMS = declare(
    "dims",
    INTEGERS,
    ("vector.transfer_write",),
    "The dimensions of the iteration space that the written vector still has; a vector of one number does not tell.",
    set_by="tiling/transfers",
    read_by="distribution/elementwise, distribution/memory/transfers",
)
OWN = declare(
    "own",
    UNIT,
    ("vector.transfer_read",),
    "Of a buffer with an element for each thread, every thread reads its own.",
    set_by="tiling/slot_ring",
    read_by="distribution/memory/transfers",
)
UNDEFINED = declare(
    "undefined",
    INTEGERS,
    ("vector.transfer_read",),
    "Dimensions of the vector in which values past the source's end are used by nothing, and need not be the padding.",
    set_by="tiling/contractions/k_loop, fuse-transpose-operands",
    read_by="tiling/contractions/loops, fuse-transpose-operands, interpreter",
)
INSTRUCTION = declare(
    "instruction",
    STRING,
    ("vector.contract",),
    "The instruction family that multiplies, a name of `target/instructions.py`.",
    set_by="tiling/contractions/k_loop",
    read_by="dialect/contraction_family, tiling/contractions/loops",
)
PHASE = declare(
    "phase",
    I64,
    ("memref.alloc",),
    "The phase of the kernel that uses a shared-memory buffer: buffers of different phases share their memory.",
    set_by="tiling/contractions/stage_ring, tiling/sync/cluster_tiles, distribution/loops",
    read_by="lower-shared-memory, interpreter",
    holders=_THREADS,
)
SECOND_STAGE = declare(
    "second_stage",
    UNIT,
    ("scf.for", "scf.if", "scf.forall"),
    "Tiles in this op have the persistent loop's `second_stage_layout`.",
    set_by="tiling/sync, tiling/reduction",
    read_by="fuse-assign-layouts, fuse-stage-results",
)

# Kernels of threads.
GRID = declare(
    "grid",
    MAP,
    _LOWERED,
    "Thread blocks of the grid: the least of the map's results, over symbols.",
    set_by="distribution/grid",
    read_by="compiler/kernel_info, interpreter",
)
GRID_OPERANDS = declare(
    "grid_operands",
    PAIRS,
    _LOWERED,
    "The symbols of `fuse.grid`, in the form of `fuse.workspace_operands`.",
    set_by="distribution/grid",
    read_by="compiler/kernel_info, interpreter",
)
GRID_LEAST = declare(
    "grid_least",
    INTEGERS,
    _LOWERED,
    "For each result of `fuse.grid` the number that it counts as at least; 0 where absent.",
    set_by="distribution/grid",
    read_by="analysis/kernels",
)
DEPENDENT_LAUNCH = declare(
    "dependent_launch",
    UNIT,
    _LOWERED,
    "The kernel waits for its predecessor in the stream before it touches global memory.",
    set_by="fuse-dependent-launch",
    read_by="fuse-launch-dependents, lower-kernel-abi, compiler/kernel_info, interpreter",
)
ORDERED = declare(
    "ordered",
    UNIT,
    _NONE,
    "Loads of the argument stay in program order, off the read-only path.",
    set_by="fuse-distribute",
    read_by="lower-kernel-abi",
    holders=_THREADS,
)
IN_ORDER = declare(
    "in_order",
    UNIT,
    ("vector.load", "vector.store", "memref.load", "memref.store"),
    "The access stays in program order: `lower-ordered-accesses` makes it a relaxed one.",
    set_by="distribution/threads/ordered_accesses",
    read_by="lower-ordered-accesses, fuse-assign-l2-policies",
)
EVICT_FIRST = declare(
    "evict_first",
    UNIT,
    ("vector.load", "vector.transfer_read", "fuse.copy_tile", "fuse.copy_fragments", "nvgpu.device_async_copy"),
    "Nothing reads this data again: up to `fuse.evict_first_up_to` bytes of it leave the L2 first.",
    set_by="fuse-assign-l2-policies, fuse-stage-persistent-loop, distribution/memory/fragment_copies",
    read_by="lower-l2-policies, fuse-assign-l2-policies",
)
EVICT_LAST = declare(
    "evict_last",
    UNIT,
    ("vector.load", "vector.store"),
    "Other thread blocks read this data: it leaves the L2 last.",
    set_by="fuse-assign-l2-policies",
    read_by="lower-l2-policies",
)
EVICT_FIRST_UP_TO = declare(
    "evict_first_up_to",
    I64,
    _THREADS,
    "Bytes, of all arrays together, that `nontemporal` loads and `fuse.evict_first` copies evict first.",
    set_by="fuse-assign-l2-policies",
    read_by="lower-l2-policies",
)

# Kernels whose memrefs are pointers.
ABI = declare(
    "abi",
    array_of("dictionaries", ir.DictAttr),
    _LOWERED,
    "What each scalar or pointer of the lowered signature is: the fields of `kernel_abi.Parameter`.",
    set_by="lower-kernel-abi",
    read_by="lowering/ptx/to_ptx, compiler/kernel_info, tools",
)
WORKSPACES = declare(
    "workspaces",
    array_of("dictionaries", ir.DictAttr),
    _LOWERED,
    "What the runtime allocates for each workspace argument.",
    set_by="lower-kernel-abi",
    read_by="compiler/kernel_info",
)
SIGNED_STRIDES = declare(
    "signed_strides",
    UNIT,
    _LOWERED,
    "A stride that the kernel is passed may be negative.",
    set_by="lower-kernel-abi",
    read_by="lowering/ptx/to_ptx",
)
TENSOR_MAP = declare(
    "tensor_map",
    DICTIONARY,
    _NONE,
    "An argument that is a TMA descriptor: what it views, and its box.",
    set_by="lower-async-copies",
    read_by="lower-kernel-abi",
    holders=_THREADS,
)
DYNAMIC_SHARED_BYTES = declare(
    "dynamic_shared_bytes",
    I64,
    _LOWERED,
    "Dynamic shared memory of a launch, bytes.",
    set_by="lower-shared-memory",
    read_by="compiler/kernel_info",
)
