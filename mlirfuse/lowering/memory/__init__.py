"""Accesses to global and shared memory to NVVM and inline PTX: cache policies, orders, semaphores, prefetches."""
