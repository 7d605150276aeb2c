"""What the heuristics know of the machine: sizes, speeds, registers, shared memory, resident blocks.

`machine` and `speeds` hold facts, each once; `disagreeing` the numbers on which heuristics disagree; the other modules
estimate what a schedule takes of a target before there is code. Nothing here chooses a schedule.
"""
