"""Executes mlirfuse IR on a CPU, at the linalg, tile and gpu stages, and checks it while it runs.

```python
from mlirfuse import interpreter
(y,) = interpreter.run(module, "layer_norm", [x, w, b], order="random", seed=7)
interpreter.run_kernel(module, "layer_norm_0", [x, w, b], [y], resident=2)
```

**Threads.** All threads of a block run in lock step. A value is a NumPy array whose first axis is the thread, of extent
1 where all threads agree; vectors add their own axes behind it. Where threads disagree in an `scf.if`, `scf.for` or
`scf.while`, each side runs under a mask. A tile program is the same machine with one thread a block; the body of a
`linalg.generic` is the same machine with the points of the iteration space for threads. Each op rounds in its own type.

**Blocks.** A block is a coroutine that stops at synchronisation: a barrier (where another block may be let in) or a
wait. Blocks run in launch order, reversed, or randomly interleaved from a seed, and with at most `resident` of them
started at once. Blocks of a cluster start together. When no block can go on, the error lists what each block waits for.
The device has `sms` SMs, on which the grid of a persistent kernel depends. Workspaces are supplied: semaphores that are
zero, scratch memory that is uninitialised.

**Memory.** A buffer is bytes with a base address that is exactly as aligned as was promised: `fuse.align` for inputs
and outputs, or 16, which kernels assume without it; `llvm.align` or `alignment` for shared memory, or the size of an
element. Fresh memory reads as NaN or -1. Inputs are read-only. Shared memory is one allocation a block and op; private
memory is a thread's own. Global memory, shared memory and registers are not bounded in size.

**Checks**, each an `InterpreterError` with the op, the user's line, the block, the thread and the index: access out of
bounds; misaligned access; read of memory never written; an output element never written (`run` only); store to an
input; shared-memory or global race (two threads touch an element, one writes, nothing orders them; a warp's shuffles
order nothing); barrier or shuffle in divergent flow; shared memory of a cluster peer that may not have started or has
ended; a semaphore that a kernel leaves at another value than 0; deadlock. `shadow.py` says how ordering is tracked.

**Adding an op** is one function in a module of `rules/`; see `registry.py`. `signature.py` lists the functions that can
be run; `mutation.py` plants bugs and tests whether the checks find them.
"""

from mlirfuse.interpreter.api import run, run_kernel
from mlirfuse.interpreter.signature import Parameter, Signature, signature, signatures

__all__ = ["Parameter", "Signature", "run", "run_kernel", "signature", "signatures"]
