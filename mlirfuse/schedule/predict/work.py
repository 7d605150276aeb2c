"""`Work`: what a kernel makes a machine do, whatever family its schedule is of; `price` says how long that takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """What a kernel makes a machine do.

    Attributes:
        blocks: of the grid.
        cluster: blocks that start together.
        threads: of a block.
        resident: blocks that an SM holds at once.
        read: bytes read from device memory.
        written: bytes written to it.
        l2_read: bytes of sectors that SMs read from the L2, device memory's included.
        l2_written: bytes of sectors that SMs write.
        shared: bytes of accesses to shared memory, bank conflicts counted.
        dsmem: bytes of accesses to other blocks' shared memory.
        instructions: of threads.
        special: special functions of threads.
        double: operations of threads in double precision.
        rounds: loads that one block waits for, one after the other, from device memory.
        l2_rounds: the same from the L2.
        cycles: instructions of one warp that depend on one another, in all of the block's steps.
        barriers: of the block, one after the other.
        cluster_barriers: of the cluster.
        grid_barriers: of the grid.
        messages: from one block to another by way of device memory.
        reads: reads of partial results, one latency each, behind the loop.
        serial: bytes that a single block reads behind the loop.
        kernels: that are launched.
    """

    blocks: int
    cluster: int
    threads: int
    resident: int
    read: float = 0.0
    written: float = 0.0
    l2_read: float = 0.0
    l2_written: float = 0.0
    shared: float = 0.0
    dsmem: float = 0.0
    instructions: float = 0.0
    special: float = 0.0
    double: float = 0.0
    rounds: float = 1.0
    l2_rounds: float = 0.0
    cycles: float = 0.0
    barriers: float = 0.0
    cluster_barriers: float = 0.0
    grid_barriers: int = 0
    messages: int = 0
    reads: float = 0.0
    serial: float = 0.0
    kernels: int = 1
