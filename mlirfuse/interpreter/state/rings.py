"""Stages of shared memory that Hopper's asynchronous ops fill and read: mbarriers, and copies and products in flight.

Every asynchronous effect happens as late as allowed. A load completes with the phase that its bytes count towards;
until then its stage may be neither read nor written. A product reads its stages until a wait for the product; until
then nothing may be loaded into these stages. Any protocol that releases a stage too early is therefore caught.
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
        nbytes: bytes that count towards the mbarrier.
        land: writes the data to the stage.
    """

    stage: StageKey
    nbytes: int
    land: Callable[[], None]


@dataclass
class Mbarrier:
    """An mbarrier: a phase ends with the last arrival and the last byte.

    Attributes:
        arrivals: number of arrivals in a phase.
        initialised_at: the block's clock at the initialisation; the mbarrier may be used from the next clock on.
        phase: number of completed phases.
        missing: arrivals that the current phase lacks.
        expected: bytes announced in the current phase.
        loads: loads of the current phase.
        sent: clocks that the senders of data to the current phase have released.
        released: the clock that the completed phases have released; None without senders.
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
        """Counts arrivals; returns False if the phase gets more arrivals than it expects."""
        self.missing -= count
        return self.missing >= 0

    @property
    def counted_bytes(self) -> int:
        """Bytes of the loads of the current phase."""
        return sum(load.nbytes for load in self.loads)


@dataclass(eq=False)
class Product:
    """A warpgroup product in flight.

    Attributes:
        consumer_group: the owner; only waits of this group complete the product.
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
        # The block's clock at the last write of threads, by stage; and stages that stores read, in order, by consumer
        # group.
        self._staged: dict[StageKey, int] = {}
        self._stores: dict[int, list[StageKey]] = {}
        # (placeholder, result, product) by the identity of the placeholder.
        self._results: dict[int, tuple[np.ndarray, np.ndarray, Product]] = {}

    def initialise(self, buffer: Buffer, count: int, arrivals: int, clock: int) -> None:
        """Initialises `count` mbarriers."""
        for index in range(count):
            self._barriers[id(buffer), index] = Mbarrier(arrivals, clock)

    def barrier(self, buffer: Buffer, index: int, clock: int) -> Mbarrier | str:
        """An mbarrier, or why it may not be used."""
        barrier = self._barriers.get((id(buffer), index))
        if barrier is None:
            return "was never initialised"
        return "is used before a barrier of the block makes it visible" if barrier.initialised_at == clock else barrier

    def complete(self, barrier: Mbarrier) -> None:
        """Completes the phase after its last arrival and byte; the phase's loads then write their data."""
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
        """Starts a load into a stage, or into a part if `shared`; returns what is wrong with the load, or None."""
        loading = self._loading.setdefault(load.stage, [])
        if any(other not in barrier.loads or not shared for other in loading):
            return "another asynchronous load into the stage is in flight"
        if any(load.stage in product.stages for product in self._products):
            return "a product without a wait for it still reads the stage"
        if any(load.stage in stores for stores in self._stores.values()):
            return "a store without a wait for it still reads the stage"
        loading.append(load)
        barrier.loads.append(load)
        return None

    def start_product(self, consumer_group: int, stages: tuple[StageKey, ...]) -> str | None:
        """Starts a consumer group's product of stages; returns what is wrong with the product, or None."""
        if any(stage in self._loading for stage in stages):
            return "an asynchronous load into the stage is in flight, without a wait for it"
        self._products.append(Product(consumer_group, stages))
        return None

    def is_loading(self, stage: StageKey) -> bool:
        """Whether a load into a stage is in flight."""
        return stage in self._loading

    def stage(self, stage: StageKey, clock: int) -> str | None:
        """Records a write of a stage by threads; returns what is wrong with the write, or None."""
        if any(stage in stores for stores in self._stores.values()):
            return "a store without a wait for it still reads the stage"
        if stage in self._loading or any(stage in product.stages for product in self._products):
            return "a load or a product in flight uses the stage"
        self._staged[stage] = clock
        return None

    def start_store(self, consumer_group: int, stage: StageKey, clock: int) -> str | None:
        """Starts a consumer group's store of a stage; returns what is wrong with the store, or None."""
        if self._staged.get(stage, clock) == clock:
            return "no barrier after the stage was written, or the stage was never written"
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
        """A placeholder, of NaNs or largest integers, for a result of the latest product, which is still in flight."""
        placeholder = np.full_like(value, np.iinfo(value.dtype).max if value.dtype.kind == "i" else np.nan)
        self._results[id(placeholder)] = (placeholder, value, self._products[-1])
        return placeholder

    def value(self, array: np.ndarray) -> np.ndarray:
        """The result that a placeholder stands for; any other array itself."""
        entry = self._results.get(id(array))
        return array if entry is None else entry[1]

    def completed_value(self, array: np.ndarray) -> np.ndarray:
        """The result that a placeholder stands for if its product is complete; otherwise the array itself."""
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
            return "an asynchronous load that was not waited for"
        if self._products:
            return "a product of a warpgroup that was not waited for"
        stores = any(self._stores.values())
        return "an asynchronous store that may still read shared memory" if stores else None
