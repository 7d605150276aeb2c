"""Rules of ops that access memory: transfers, copies, semaphores, and tiles that go through shared memory.

Rows of any alignment are in `unaligned`.
"""
