"""`Prediction`: what a kernel is predicted to take, in all and by what takes it."""

from __future__ import annotations

from dataclasses import dataclass

NAMES = {
    "dram": "device memory",
    "l2": "L2 cache",
    "shared": "shared memory",
    "dsmem": "shared memory of the cluster",
    "tensor": "tensor cores",
    "issue": "instruction issue",
    "special": "special functions",
    "latency": "latency of a block",
    "blocks": "starting blocks",
    "exposed": "beginnings and ends of tiles",
    "synchronisation": "combining partial results",
    "launch": "launch",
}
"""Each part as a reader is told of it; nothing overlaps with the last three."""

SHARPNESS = 2.7
"""Exponent of the mean that rates which overlap take together: 1 would be their sum, infinity the largest of them. What
is near to the largest part delays it, as neither is spread evenly over the kernel's time."""

STREAM_SHARPNESS = 3.5
"""The same of blocks that reduce nothing, each of which waits for its loads alone: what they take is spread more evenly
(`benchmarks/results/elementwise_candidates-h200.json`)."""

HIDING, HIDING_AHEAD, MOST_HIDING = 0.5, 1.5, 4.0
"""The same exponent of rates and latency, less 1, for one block in work on an SM, which loads nothing while it
computes; for one that loads ahead, whose steps seldom wait; and at most: it grows with the square root of these
blocks."""


@dataclass(frozen=True)
class Prediction:
    """Microseconds of a kernel, by part; the largest of those that overlap bounds it, or one of the others.

    Attributes:
        dram: reads and writes of device memory, at the device's bandwidth.
        l2: accesses of the L2, at its bandwidth and at each SM's.
        shared: accesses of shared memory, by exchanges and transposed tiles.
        dsmem: accesses of other blocks' shared memory in a cluster.
        issue: instructions, at the rate of the schedulers.
        special: special functions and double precision, at the rates of their units.
        latency: all waves of blocks, each as long as the chain of dependent steps of one block.
        blocks: starting blocks, at the rate of the device.
        synchronisation: grid barriers, and combining partial results.
        launch: of the kernel, and of a second one.
        in_work: blocks in work on an SM at once, those of a cluster together as one, as they wait for one another; and
            the steps that are loaded ahead. No time.
        ahead: whether blocks load ahead. No time.
        streams: whether blocks reduce nothing. No time.
        tensor: products of tensor cores, on the busiest SM.
        exposed: filling the first stages of a tile, and storing its results, where no products overlap with that; the
            first step of a loop; moving values to shared memory and back across a reduction; and what few blocks of a
            last wave wait for.
        sharpness: exponent of the mean of all parts that overlap, where a ring of stages lets copies run ahead; 0 where
            `SHARPNESS` and `in_work` say how much overlaps. No time.
    """

    dram: float
    l2: float
    shared: float
    dsmem: float
    issue: float
    special: float
    latency: float
    blocks: float
    synchronisation: float
    launch: float
    in_work: float
    ahead: bool = False
    streams: bool = False
    tensor: float = 0.0
    exposed: float = 0.0
    sharpness: float = 0.0

    @property
    def microseconds(self) -> float:
        """Of all parts: those that overlap together, and the others behind."""
        return self.loop_microseconds + self.synchronisation + self.launch

    @property
    def loop_microseconds(self) -> float:
        """Of all parts but the launch and combining partial results."""
        each = HIDING_AHEAD if self.ahead else HIDING
        hiding = self.sharpness or min(1.0 + each * self.in_work**0.5, MOST_HIDING)
        return mean((self.busy_microseconds, self.latency), hiding) + self.exposed

    @property
    def busy_microseconds(self) -> float:
        """Of the parts that are rates, as if nothing waited for anything."""
        rates = (self.dram, self.l2, self.shared, self.dsmem, self.tensor, self.issue, self.special, self.blocks)
        exponent = self.sharpness or (STREAM_SHARPNESS if self.streams else SHARPNESS)
        return mean(rates, exponent)

    @property
    def bound(self) -> str:
        """The name of the largest part."""
        return max(NAMES, key=lambda name: getattr(self, name))

    @property
    def explanation(self) -> str:
        """The bound as a reader is told of it."""
        return NAMES[self.bound]


def mean(parts: tuple[float, ...], exponent: float) -> float:
    """The time of parts that overlap: from their sum, with exponent 1, to the largest of them."""
    total = 0.0
    for part in parts:
        total += part**exponent
    return total ** (1.0 / exponent)
