"""`Work`: what a kernel makes a machine do, whatever family its schedule is of; `price` says how long that takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Work:
    """What a kernel makes a machine do.

    Attributes:
        blocks: of the grid.
        cluster: blocks that start together.
        threads: of a block.
        resident: blocks that an SM holds at once.
        sms: SMs that hold such blocks.
        read: bytes read from device memory.
        written: bytes written to it.
        l2_read: bytes of sectors that SMs read from the L2, device memory's included.
        l2_written: bytes of sectors that SMs write.
        l1: bytes of lines that threads read of the L1.
        shared: bytes of accesses to shared memory.
        spilled: bytes of those by which values wait there across a reduction: each block writes them before it reduces,
            and reads them when it has, while it loads nothing.
        dsmem: bytes of accesses to other blocks' shared memory.
        instructions: of threads.
        special: special functions of threads.
        double: operations of threads in double precision.
        rounds: loads that one block waits for, one after the other, from device memory.
        l2_rounds: the same from the L2.
        waits: instructions of one thread that wait for one another.
        barriers: of the block, one after the other.
        cluster_barriers: of the cluster.
        releases: of these, how many wait for stores to device memory.
        steps: of one block that loads ahead, one after the other.
        ahead: steps whose loads are under way during the instructions and barriers of one before; 0 where none are.
        grid_barriers: of the grid.
        messages: from one block to another by way of device memory.
        reads: reads of partial results, one after the other, behind the loop.
        serial: bytes of these that the block reads that has the most.
        gathered: bytes of shared memory through which its warps add them up.
        kernels: that are launched.
    """

    blocks: int
    cluster: int
    threads: int
    resident: int
    sms: int
    read: float = 0.0
    written: float = 0.0
    l2_read: float = 0.0
    l2_written: float = 0.0
    l1: float = 0.0
    shared: float = 0.0
    spilled: float = 0.0
    dsmem: float = 0.0
    instructions: float = 0.0
    special: float = 0.0
    double: float = 0.0
    rounds: float = 1.0
    l2_rounds: float = 0.0
    waits: float = 0.0
    barriers: float = 0.0
    cluster_barriers: float = 0.0
    releases: float = 0.0
    steps: int = 1
    ahead: int = 0
    grid_barriers: int = 0
    messages: int = 0
    reads: float = 0.0
    serial: float = 0.0
    gathered: float = 0.0
    kernels: int = 1
