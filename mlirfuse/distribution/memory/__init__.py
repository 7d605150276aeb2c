"""Rules of ops that access memory: transfers, copies, semaphores, and tiles that go through shared memory.
Rows that start at any address are in `unaligned`.
"""
