"""Software pipelining: rings of stages, asynchronous copies, prefetches, peeled loops."""
