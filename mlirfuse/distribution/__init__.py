"""Lowers whole-tile vectors to the code of one thread, for the `fuse-distribute` pass.

`threads/fragments.py` describes the elements that a thread holds, `threads/threads.py` the thread's coordinates in the
tile, and each op has a rule (in `memory`, `elementwise`, `reduce`, ...) that emits its per-thread code. A rule depends
only on the op and its layouts, not on the pass that made the op.
"""
