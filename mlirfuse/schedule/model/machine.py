"""Sizes that all targets share: accesses, registers, warpgroups, tensor maps.

What differs between targets is in `mlirfuse.target`. Sources: CUDA C++ Programming Guide ("Compute Capabilities"), PTX
ISA (`wgmma`, `cp.async.bulk.tensor`), CUDA driver API (`cuTensorMapEncodeTiled`).
"""

from __future__ import annotations

from mlirfuse.dialect import shared_memory

ACCESS_WIDTHS = (4, 8, 16)
"""Bytes that one access of a thread moves in whole registers, and one `cp.async`."""

WIDEST_ACCESS = ACCESS_WIDTHS[-1]
"""Bytes of the widest access of one thread to memory."""

STORED_RUNS_BYTES = 48 << 10
"""Bytes of shared memory through which a block's warps exchange what their threads store, at most."""

DEFAULT_ALIGNMENT = WIDEST_ACCESS
"""Bytes to which kernels may assume buffers aligned that carry no `fuse.align`, such as results and shared memory."""

MATRIX_ROWS, MATRIX_ROW_BYTES = 8, 16
"""Rows of one matrix of `ldmatrix`, and bytes of such a row."""

BANK, BANKS_BYTES = 4, 128
"""Bytes of a bank of shared memory, and of all banks: an access of a warp that has no bank conflict."""

REGISTER_BYTES = 4
"""Bytes of a register."""

REGISTER_STEP = 8
"""A thread's registers are allocated in multiples of this many."""

BLOCK_THREADS = (256, 128, 512)
"""Threads of a block that leave an SM room for several, the most usual number first."""

PARTITIONS = 4
"""Partitions of an SM, each with a warp scheduler and a quarter of the registers."""

RESERVED_SHARED = 1024
"""Bytes of shared memory that the system takes of each resident block (Programming Guide, compute capability 8.x
on)."""

WARPGROUP = 128
"""Threads of a warpgroup: four warps whose first is a multiple of four."""

WARPGROUP_ROWS = 64
"""Rows of one `wgmma`, which a warpgroup multiplies."""

MMA_K_BYTES = 32
"""Bytes along k of one tensor core instruction."""

SWIZZLE_BYTES = shared_memory.ATOM_BYTES
"""Width of a swizzle atom: a stage's tile lies in shared memory as columns of atoms, each of so many bytes of a row."""

SWIZZLE_ROWS = 8
"""Rows after which the pattern of the 128-byte swizzle repeats."""

SWIZZLE_ALIGNMENT = SWIZZLE_ROWS * SWIZZLE_BYTES
"""Bytes to which stages and their swizzle atoms are aligned."""

SWIZZLE_CHUNK = 16
"""Bytes that the swizzle moves as one."""

MAX_BOX = 256
"""Elements of a tensor map's box along one dimension, at most."""

MAX_RANK = 5
"""Dimensions of a tensor map, at most."""

TENSOR_MAP_STRIDE = 16
"""Bytes that a tensor map's base and strides are multiples of."""
