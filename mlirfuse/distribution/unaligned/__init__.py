"""Accesses to rows of any alignment, by aligned vectors that are shifted in registers or realigned in shared memory."""
