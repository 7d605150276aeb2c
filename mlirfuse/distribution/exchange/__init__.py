"""Combining partial results of lanes, warps and the blocks of a cluster, through shuffles and shared memory."""
