"""Facts without a unit that every prediction shares; what has a unit is a quantity of the `MachineModel`."""

from __future__ import annotations

ACCESS_INSTRUCTIONS, STRIDE_INSTRUCTIONS, NEXT_STRIDE_INSTRUCTIONS = 5, 3, 12
"""Instructions of an access to memory: itself, its address, and its predicate or conversion; what an address takes more
where a stride is known at run time only; and for each further such stride: a product and a bound, of 64 bits."""

WINDOW_INSTRUCTIONS = 2
"""Instructions of an access to a window that slides along a thread's run: itself, and the zeros that its registers hold
where it is skipped. All accesses of a thread share an address, from which they are a number apart, and few checks."""

NARROW_INSTRUCTIONS = 2
"""What such an access takes more that is narrower than a register: its address, as it is not predicated, and selecting
zeros; and those of a store, which takes its element out of a register."""

THREAD_INSTRUCTIONS, DIVIDE_INSTRUCTIONS = 30, 80
"""Instructions of a thread beside its elements: its coordinates; and those where it divides by extents of run time."""

STEP_INSTRUCTIONS = 50
"""Instructions of a thread for a step of a persistent loop: the next tile's coordinates, copies, and waits for them."""

PERIOD_INSTRUCTIONS, RESTART_INSTRUCTIONS = 7, 1
"""Instructions for an accumulator where a period ends, of a compensated sum, and in each step, of its restart."""

INSTRUCTION_BYTES, INSTRUCTION_CACHE, LARGEST_INSTRUCTION_CACHE = 16, 32 << 10, 128 << 10
"""Bytes of an instruction, and of an SM's caches for them: that of its schedulers, and its largest one (Jia et al.,
"Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 3.5; as large on Hopper,
`benchmarks/results/instruction_cache-h200.json`)."""

UNCACHED_RATE = 0.55
"""Rate of instructions that come from the largest cache, to that of the schedulers, where several warps of each are at
work (`benchmarks/results/instruction_cache-h200.json`)."""

DEPENDENT_CYCLES = 4
"""Cycles from an instruction to another one that needs its result."""

EXCHANGE_BARRIERS = 9
"""Barriers that an exchange between the warps of a block takes as long as: these write, meet, and read, and seldom
arrive together."""

JOINING = 0.5
"""Share of what clusters add to a launch that they add to each wave of blocks too: blocks of one start together."""

LAST_BLOCK_MESSAGES = 2
"""Messages, one after the other, by which the last block of a grid learns that it is: a block's partial results have to
be seen by all before it counts itself, and the count has to be back before the last one reads them
(`benchmarks/results/candidates_survey-h200.json`)."""

SPECIAL_INSTRUCTIONS = 4
"""Instructions that a thread waits for a special function as long as for."""

SHUFFLE_INSTRUCTIONS = 2
"""Instructions of a step of a reduction over lanes, beside merging two partial results."""

SHUFFLE_WAIT = 12
"""Instructions that a thread waits for such a step as long as for."""

MERGE_INSTRUCTIONS, JOINT_MERGE_INSTRUCTIONS = 2, 10
"""Instructions that merge two partial results: of a plain reduction, and of a joint one, such as a maximum with the sum
of exponentials below it, or a mean with a variance."""

RECENT = 64
"""Times that what a kernel moves fits the L2 where the L2 still has its arguments: what other kernels moved since then
is many times as much."""

WORKING_SET = 0.7
"""Share of a cache that what is read again may take."""

LOST = 0.5
"""Share of what a block reads again that the L1 has lost even where it had room: what streams through displaces it."""

SHORT_RUNS = 1 / 4
"""What device memory takes more for each part beyond the first that a cache line is read in, at different times: for
half lines once this share, for sectors three times."""

PART_READS = 0.15
"""What the L2 takes more for each line beyond the fewest that an access of a warp to a window touches
(`benchmarks/results/depthwise_candidates-h200.json`)."""

SPLIT_SECTOR, SPLIT_KEPT = 448, 0.5
"""Bytes of device memory that a sector takes as long as which is written in two parts at different times, as it is read
for each; and the share of the L2 behind which the first part is gone (`benchmarks/results/grid_orders-h200.json`)."""

ISSUING_WARPS = 4
"""Warps of a scheduler from which on it has an instruction of a window's products to issue in each cycle, where each
thread holds many sums (`benchmarks/results/depthwise_candidates-h200.json`)."""

APART = 1 / 4
"""Share of that where other blocks read the rest of a line at about the same time."""

SPREAD = 1 / 20
"""What device memory takes more for each further block of an SM, as each reads rows of several arrays elsewhere."""

BASE_REGISTERS = 18
"""Registers of a thread beside its elements: addresses, coordinates, constants."""

INDEPENDENT = 0.5
"""Share of the instructions for a thread's elements that wait for others: elements are independent of one another."""
