"""Facts without a unit that every prediction shares; what has a unit is a quantity of the `MachineModel`."""

from __future__ import annotations

LOADS_AHEAD = 4
"""Loads of a thread that ptxas has under way at once in a loop over chunks, by unrolling it."""

UNROLLED_INSTRUCTIONS = 60
"""Instructions of a step from which on ptxas does not unroll a loop over chunks."""

ACCESS_INSTRUCTIONS = 3
"""Instructions of an access to memory: itself, its address, and its predicate or conversion."""

DEPENDENT_CYCLES = 4.5
"""Cycles from an instruction to the next one that needs its result."""

SHUFFLE_CYCLES = 30
"""Cycles of one step of a reduction over lanes: a shuffle and the operation on its result."""

SHUFFLE_INSTRUCTIONS = 2
"""Instructions of one such step."""

WORKING_SET = 0.7
"""Share of the L2 that what is read again may take."""

BASE_REGISTERS = 18
"""Registers of a thread beside its elements: addresses, coordinates, constants."""
