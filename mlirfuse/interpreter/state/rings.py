"""Stages of shared memory that the asynchronous ops of Hopper fill and read: mbarriers, copies and products under way.

Every asynchronous effect happens as late as allowed. A load lands when a thread waits for the phase that the load
counts towards; until then its stage may be neither read nor written. A product reads its stages until a wait covers it;
until then nothing may be loaded into them. So every protocol that hands a stage over too early is caught.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mlirfuse.interpreter.state.clocks import Clocks
from mlirfuse.interpreter.state.memory import Buffer

StageKey = tuple[int, int]
"""A stage: the identity of its ring's buffer, and the stage's first byte in the buffer."""


@dataclass
class AsyncLoad:
    """An asynchronous load in flight.

    Attributes:
        stage: the destination stage.
        nbytes: bytes that the load counts towards its barrier.
        land: writes the data.
    """

    stage: StageKey
    nbytes: int
    land: Callable[[], None]


@dataclass
class Mbarrier:
    """A barrier whose phase ends with the last arrival and the last byte.

    Attributes:
        arrivals: arrivals of a phase.
        initialised_at: the block's clock when it was initialised; it may be used from the next one on.
        phase: phases completed.
        missing: arrivals that the current phase still lacks.
        expected: bytes announced in the current phase.
        loads: loads of the current phase.
        sent: what the blocks that sent something in the current phase had done before.
        released: that of all phases completed; None if nobody has sent anything.
    """

    arrivals: int
    initialised_at: int
    phase: int = 0
    missing: int = 0
    expected: int = 0
    loads: list[AsyncLoad] = field(default_factory=list)
    sent: list[Clocks] = field(default_factory=list)
    released: Clocks | None = None

    def __post_init__(self) -> None:
        self.missing = self.arrivals

    def arrive(self, count: int) -> bool:
        """Counts arrivals; returns False if they are more than the phase still expects."""
        self.missing -= count
        return self.missing >= 0

    @property
    def counted_bytes(self) -> int:
        """Bytes of the loads of this phase."""
        return sum(load.nbytes for load in self.loads)


@dataclass(eq=False)
class Product:
    """A warpgroup product in flight.

    Attributes:
        consumer_group: the owner; only this group's waits cover the product.
        stages: the stages that the product reads.
    """

    consumer_group: int
    stages: tuple[StageKey, ...]


class Rings:
    """The asynchronous operations of one block."""

    def __init__(self) -> None:
        self._barriers: dict[tuple[int, int], Mbarrier] = {}
        self._loading: dict[StageKey, list[AsyncLoad]] = {}
        self._products: list[Product] = []
        # By stage: the block's clock when threads last wrote it. And by consumer group, stages that stores read, in
        # order.
        self._staged: dict[StageKey, int] = {}
        self._stores: dict[int, list[StageKey]] = {}
        # By identity of the array that stands for it: that array, what it will be, and by which product.
        self._results: dict[int, tuple[np.ndarray, np.ndarray, Product]] = {}

    def initialise(self, buffer: Buffer, count: int, arrivals: int, clock: int) -> None:
        """Makes `count` fresh barriers."""
        for index in range(count):
            self._barriers[id(buffer), index] = Mbarrier(arrivals, clock)

    def barrier(self, buffer: Buffer, index: int, clock: int) -> Mbarrier | str:
        """A barrier, or why it may not be used."""
        barrier = self._barriers.get((id(buffer), index))
        if barrier is None:
            return "was never initialised"
        return "is used before a barrier of the block has shown it" if barrier.initialised_at == clock else barrier

    def complete(self, barrier: Mbarrier) -> None:
        """Completes the phase if all arrivals and bytes have come; the phase's loads then write their data."""
        if barrier.missing or barrier.counted_bytes != barrier.expected:
            return
        for load in barrier.loads:
            load.land()
            self._loading.pop(load.stage, None)
        for clocks in barrier.sent:
            if barrier.released is None:
                barrier.released = clocks.copy()
            barrier.released.join(clocks)
        barrier.sent = []
        barrier.phase += 1
        barrier.missing, barrier.expected, barrier.loads = barrier.arrivals, 0, []

    def load(self, barrier: Mbarrier, load: AsyncLoad, *, shared: bool) -> str | None:
        """Starts a load, of a part of the stage where it is shared; returns what is wrong with that, or None."""
        loading = self._loading.setdefault(load.stage, [])
        if any(other not in barrier.loads or not shared for other in loading):
            return "another asynchronous load into the stage is under way"
        if any(load.stage in product.stages for product in self._products):
            return "a product that no wait has covered still reads the stage"
        if any(load.stage in stores for stores in self._stores.values()):
            return "a store that no wait has covered still reads the stage"
        loading.append(load)
        barrier.loads.append(load)
        return None

    def start_product(self, consumer_group: int, stages: tuple[StageKey, ...]) -> str | None:
        """Starts a consumer group's product, which reads stages; returns what is wrong with that, or None."""
        if any(stage in self._loading for stage in stages):
            return "an asynchronous load into the stage is under way: no wait has covered it"
        self._products.append(Product(consumer_group, stages))
        return None

    def is_loading(self, stage: StageKey) -> bool:
        """Whether a load into a stage is under way."""
        return stage in self._loading

    def stage(self, stage: StageKey, clock: int) -> str | None:
        """Threads write a stage themselves; returns what is wrong with that, or None."""
        if any(stage in stores for stores in self._stores.values()):
            return "a store that no wait has covered still reads the stage"
        if stage in self._loading or any(stage in product.stages for product in self._products):
            return "a load or a product under way uses the stage"
        self._staged[stage] = clock
        return None

    def start_store(self, consumer_group: int, stage: StageKey, clock: int) -> str | None:
        """Starts reading a stage to store it, for a consumer group; returns what is wrong with that, or None."""
        if self._staged.get(stage, clock) == clock:
            return "no barrier after the stage was written, if it was"
        self._stores.setdefault(consumer_group, []).append(stage)
        return None

    def wait_stores(self, consumer_group: int, pending: int) -> None:
        """Ends all of a consumer group's stores but the last `pending`."""
        stores = self._stores.get(consumer_group, [])
        del stores[: max(0, len(stores) - pending)]

    def wait_products(self, consumer_group: int, pending: int) -> None:
        """Ends all of a consumer group's products but the last `pending`."""
        own = [product for product in self._products if product.consumer_group == consumer_group]
        for product in own[: max(0, len(own) - pending)]:
            self._products.remove(product)

    def defer(self, value: np.ndarray) -> np.ndarray:
        """A NaN-filled placeholder for a result of the latest product, which is still in flight."""
        placeholder = np.full_like(value, np.nan)
        self._results[id(placeholder)] = (placeholder, value, self._products[-1])
        return placeholder

    def value(self, array: np.ndarray) -> np.ndarray:
        """The value of an array, or the pending value that it stands for."""
        entry = self._results.get(id(array))
        return array if entry is None else entry[1]

    def completed_value(self, array: np.ndarray) -> np.ndarray:
        """The result that an array stands for if its product is complete; otherwise the array."""
        entry = self._results.get(id(array))
        is_there = entry is not None and not any(entry[2] is product for product in self._products)
        return self.value(array) if is_there else array

    def drop_placeholders(self, consumer_group: int) -> None:
        """Drops a consumer group's placeholders after all of its products are complete."""
        self._results = {
            key: entry for key, entry in self._results.items() if entry[2].consumer_group != consumer_group
        }

    @property
    def in_flight(self) -> str | None:
        """The operations still in flight, or None."""
        if self._loading:
            return "an asynchronous load, for which nobody waited"
        if self._products:
            return "a product of a warpgroup, for which nobody waited"
        stores = any(self._stores.values())
        return "an asynchronous store that may still read shared memory" if stores else None
