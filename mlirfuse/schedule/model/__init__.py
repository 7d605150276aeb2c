"""What proposals of schedules know of the machine: sizes, registers, shared memory, resident blocks.

`machine` holds sizes, each once; speeds are in `mlirfuse.machine`. The other modules estimate what a schedule takes of
a target before there is code. Nothing here chooses a schedule.
"""
